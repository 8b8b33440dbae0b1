"""Commands are functions: their parameters are options and arguments, their docstring is the help.

The docstring's last section, ``Options:``, describes each parameter; the text above it is the help
of the command. A parameter is an option of its name, unless its annotation says more:
``Annotated[T, Option(…)]``, or ``Annotated[T, "the text"]``. A named tuple is a group of options,
which the function gets as one value; its docstring has the same section. Options of several
commands have their text in the annotation.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    get_args,
    get_origin,
    get_type_hints,
)

import click

from tamis.cli.console import open_results, reported, writing
from tamis.core.errors import UsageError
from tamis.core.lazy import registered

FileName = NewType("FileName", str)
"""The name of a local file as it was given, which ``Path`` may write in another way."""

_NAMES_OF_HELP = {"help_option_names": ["--help", "-h"]}
_SHORT = {"--subscriptions": "-s"}

COMPLETIONS = Path(__file__).parent / "completions"
"""The completions of shells, which scripts/make-completions writes."""
EXAMPLES = {
    "completion": """\b
Examples:
  source <(tamis completion bash)       # in ~/.bashrc
  source <(tamis completion zsh)        # in ~/.zshrc, below compinit
  tamis completion fish > ~/.config/fish/completions/tamis.fish
"""
}


class Option:
    """An option.

    Args:
        names: without any, that of the parameter.
        min: the least number.
        known: values that shells complete. Others are accepted too: packages may register them.
        settings: of ``click.Option``. ``show_default`` replaces the default in the help; a path
            without a ``metavar`` is a FILE.
    """

    def __init__(
        self, *names: str, min: int | None = None, known: Sequence[str] = (), **settings: Any
    ) -> None:
        self.names = names
        self.min = min
        self.known = known
        self.settings = {"show_default": True, **settings}

    def parameter(self, key: str, name: str, kind: Any, default: Any, text: str) -> click.Parameter:
        item, is_many = _item_of(kind)
        is_required = default is inspect.Parameter.empty
        names = self.names or ["--" + name.replace("_", "-")]
        metavar = {"metavar": "FILE"} if item is Path else {}
        return click.Option(
            [key, *(_SHORT[long] for long in names if long in _SHORT), *names],
            type=_KnownNames(self.known) if self.known else _type_of(item, self.min),
            is_flag=item is bool,
            multiple=is_many,
            required=is_required,
            # To click from 8.3 on, None is a default, and what is required has been given.
            **({} if is_required else {"default": default}),
            **{"help": text, **metavar, **self.settings},
        )


class Argument(NamedTuple):
    """What is given without the name of an option."""

    metavar: str
    help: str = ""

    def parameter(
        self, key: str, _name: str, kind: Any, default: Any, text: str
    ) -> click.Parameter:
        item, is_many = _item_of(kind)
        made = _Argument(
            [key],
            type=_type_of(item),
            nargs=-1 if is_many else 1,
            required=default is inspect.Parameter.empty,
            metavar=self.metavar,
        )
        made.text = self.help or text
        return made


class _Argument(click.Argument):
    """An argument that has a help text, which click has from version 8.5 on."""

    text: str

    def make_metavar(self, *_: Any) -> str:
        rest = "" if self.nargs == 1 else "..."
        return f"{self.metavar}{rest}" if self.required else f"[{self.metavar}]{rest}"

    def get_error_hint(self, *_: Any) -> str:
        return f"'{self.metavar}'"


class _Command(click.Command):
    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """Read the command line; the help may be printed here."""
        with writing("standard output"):
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with reported():
            return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the arguments too."""
        arguments = [
            (str(one.metavar), one.text + ("  [required]" if one.required else ""))
            for one in self.params
            if isinstance(one, _Argument)
        ]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        super().format_options(ctx, formatter)


def command(function: Callable[..., None], name: str, examples: str) -> click.Command:
    """The command that calls a function."""
    text, described = _described(function)
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    params = [made for one in parameters for made in _click_parameters(one, described)]
    groups = {one.name: one.annotation for one in parameters if hasattr(one.annotation, "_fields")}

    def call(**given: Any) -> None:
        values = {
            key: (list(value) or None) if isinstance(value, tuple) else value
            for key, value in given.items()
        }
        for key, group in groups.items():
            values[key] = group(*[values.pop(f"{key}_{field}") for field in group._fields])
        function(**values)

    return _Command(
        name,
        context_settings=_NAMES_OF_HELP,
        callback=call,
        params=params,
        help=text,
        epilog=examples,
    )


def _described(documented: object) -> tuple[str, dict[str, str]]:
    """The text of a docstring, and what its section ``Options:`` says of each parameter."""
    text, _, section = (inspect.getdoc(documented) or "").partition("\nOptions:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section, re.MULTILINE)
    return text, {name: " ".join(said.split()) for name, said in found}


def _click_parameters(
    parameter: inspect.Parameter, described: Mapping[str, str]
) -> Iterator[click.Parameter]:
    name, declared = parameter.name, parameter.annotation
    if not hasattr(declared, "_fields"):
        yield _click_parameter(name, name, declared, parameter.default, described)
        return
    _, described = _described(declared)
    for field, annotation in get_type_hints(declared, include_extras=True).items():
        default = declared._field_defaults[field]
        yield _click_parameter(f"{name}_{field}", field, annotation, default, described)


def _click_parameter(
    key: str, name: str, annotation: Any, default: Any, described: Mapping[str, str]
) -> click.Parameter:
    is_annotated = get_origin(annotation) is Annotated
    kind, how = get_args(annotation) if is_annotated else (annotation, Option())
    if isinstance(how, str):
        how = Option(help=how)
    made: click.Parameter = how.parameter(key, name, kind, default, described.get(name, ""))
    return made


def _item_of(kind: Any) -> tuple[Any, bool]:
    """What one value is of, and whether there may be several; None apart.

    >>> _item_of(list[str] | None), _item_of(int)
    ((<class 'str'>, True), (<class 'int'>, False))
    """
    if isinstance(kind, UnionType) or type(None) in get_args(kind):
        (kind,) = (one for one in get_args(kind) if one is not type(None))
    return (get_args(kind)[0], True) if get_origin(kind) is list else (kind, False)


class _LocalFile(click.ParamType):  # type: ignore[type-arg]  # of click 8.5
    """A local file or folder, since ``Path`` would make http:/e.org of http://e.org."""

    name = "path"

    def __init__(self, make: Callable[[str], str | Path]) -> None:
        self.make = make

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | Path:
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", value):
            is_folder = getattr(param, "metavar", None) in {"FOLDER", "DIR"}
            asked = "folder" if is_folder else "file"
            self.fail(f"{value} is a URL, and nothing is fetched: give a {asked}", param, ctx)
        return self.make(value)


class _KnownNames(click.ParamType):  # type: ignore[type-arg]  # of click 8.5
    """A name. ``choices`` has the names for scripts/make-completions; others are accepted too."""

    name = "name"

    def __init__(self, choices: Sequence[str]) -> None:
        self.choices = choices


def _type_of(item: Any, least: int | None = None) -> Any:
    if get_origin(item) is Literal:
        return click.Choice(get_args(item))
    if item in {Path, FileName}:
        return _LocalFile(item)
    return item if least is None else click.IntRange(min=least)


class Commands(_Command, click.Group):
    """Commands, each of which is imported when it is called.

    Args:
        lines: the name of each command, and its help in one line.
        package: the package of the commands' modules.
        modules: the module of each command whose module has another name.
        settings: of ``click.Group``.
    """

    def __init__(
        self,
        name: str,
        lines: Mapping[str, str],
        package: str,
        modules: Mapping[str, str],
        **settings: Any,
    ) -> None:
        stubs = [click.Command(one, help=line) for one, line in lines.items()]
        settings |= {"context_settings": _NAMES_OF_HELP, "no_args_is_help": True}
        super().__init__(name, commands=stubs, **settings)
        self.package = package
        self.modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in their order, not in that of the alphabet

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give the option whose value may be left out its default."""
        whole = ["--concatenated=xml" if arg == "--concatenated" else arg for arg in args]
        return super().parse_args(ctx, whole)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, None if found is None else self.imported(str(found.name)), rest

    def imported(self, name: str) -> click.Command:
        """A command, from its module."""
        called = name.replace("-", "_")
        path = f"{self.package}.{self.modules.get(name, called)}"
        if find_spec(path) is None:
            registered_group: Commands | None = registered("tamis.commands", name)
            if registered_group is None:
                raise UsageError(
                    f"no installed package has the command {name}: install Tamis again, whole"
                )
            return registered_group
        module = import_module(path)
        group: Commands | None = getattr(module, "commands", None)
        if group is not None and group is not self:
            return group
        examples = module.EXAMPLES if isinstance(module.EXAMPLES, str) else module.EXAMPLES[name]
        return command(getattr(module, called), name, examples)


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], Argument(metavar="SHELL")]) -> None:
    """Print a script that completes commands, options and values in a shell.

    Options:
        shell: bash, zsh or fish.
    """
    with open_results() as results:
        results.write_bytes((COMPLETIONS / f"tamis.{shell}").read_bytes())
