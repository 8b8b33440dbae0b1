"""Options of several commands: subscriptions, namespaces, limits, DTDs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

from click.exceptions import Exit

import tamis
from tamis.cli.console import Status, in_options, progress, say, warn
from tamis.cli.options import Option
from tamis.core.arguments import is_store
from tamis.core.errors import UsageError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.names import declared_namespaces

if TYPE_CHECKING:
    from tamis.events.subscriptions import EventSubscriptions
    from tamis.language.subscriptions import Subscriptions
    from tamis.matching.matcher import CompiledMatcher
    from tamis.schema.graph import SchemaGraph

_SUBSCRIPTIONS = Option(
    help="A UTF-8 file with one subscription per line: id, tab, expression. Without a tab, the "
    "line is an expression, and its id is the line number. Blank lines and lines that begin with # "
    'are skipped. In *.ndjson, each line is {"id": …, "expression": "…"}. Or a folder of tamis '
    "subscriptions."
)
SubscriptionsFile = Annotated[Path, _SUBSCRIPTIONS]
SubscriptionsOrProgram = Annotated[Path | None, _SUBSCRIPTIONS]
ProgramFile = Annotated[
    Path | None, "A program that tamis compile saved, instead of --subscriptions."
]
Unsupported = Annotated[
    Literal["refuse", "slow"],
    "What to do with XPath that Tamis does not support. refuse: report an error. slow: evaluate "
    "it with lxml, one document at a time.",
]
LimitSettings = Annotated[
    list[str] | None,
    Option(
        "--limit",
        metavar="NAME=VALUE",
        help="Change a limit on the size or cost of subscriptions and documents, such as "
        "depth=5000. Errors name the limit that was reached. Repeatable.",
    ),
]
EncodingRule = Annotated[
    Literal["check", "ignore"],
    "What to do with the encoding that a document declares. check: a wrong declaration is an "
    "error. ignore: read the document by its byte order mark, or else as UTF-8.",
]
SkipBad = Annotated[bool, "Skip bad subscriptions, with a warning, instead of stopping."]
ENGINES = (
    "auto",
    "automaton",
    "reference",
    "nfa",
    "stacks",
    "stacks-cuda",
    "pma",
    "twigstacks",
    "twigstacks-cuda",
)
EngineName = Annotated[
    str,
    Option(
        metavar="NAME",
        known=ENGINES,
        help=f"The engine: {', '.join(ENGINES)}. A named engine refuses queries that it does not "
        "support.",
    ),
]
Threads = Annotated[
    int | None,
    Option(
        metavar="N", min=1, help="The number of threads.", show_default="the number of usable cores"
    ),
]
Output = Annotated[
    Path | None,
    "Write the results to this file instead of standard output. The command replaces the file "
    "when the results are complete.",
]
RootNames = Annotated[
    list[str] | None,
    Option(
        metavar="NAME",
        help="A root element of documents. Repeatable. Default: the element in the DOCTYPE, or "
        "else every element that no other element contains.",
    ),
]
CatalogFolders = Annotated[
    list[Path] | None,
    Option(
        metavar="FOLDER",
        help="A folder with files that the DTD refers to, searched after the DTD's own folder. "
        "Repeatable. Tamis fetches nothing from the network.",
    ),
]
DtdTrust = Annotated[
    bool,
    "Assume that every document is valid, and do not check it against the DTD. Answers about "
    "invalid documents may be wrong.",
]
DTD_HELP = "A DTD (*.dtd, *.mod, *.ent) or a document with a DOCTYPE."


class Namespaces(NamedTuple):
    """The namespaces that are declared for expressions.

    Options:
        file: A file that declares prefixes for expressions: one prefix and its URI per line.
        prefixes: Declare one prefix for expressions. Repeatable.
        default: The namespace of element names without a prefix in expressions.
    """

    file: Annotated[Path | None, Option("--namespaces")] = None
    prefixes: Annotated[list[str] | None, Option("--ns", metavar="PREFIX=URI")] = None
    default: Annotated[str | None, Option("--default-ns", metavar="URI", show_default="none")] = (
        None
    )

    def read(self) -> dict[str, Any]:
        """The arguments of the library that declare them."""
        from tamis.language.subscriptions import read_namespaces  # noqa: PLC0415 - keeps --help fast

        if self.file is not None and "=" in str(self.file) and not self.file.exists():
            raise UsageError("--namespaces takes a file: a single prefix is --ns PREFIX=URI")
        found = {} if self.file is None else read_namespaces(self.file)
        for declared in self.prefixes or ():
            prefix, equals, uri = declared.partition("=")
            if not equals or not uri:
                raise UsageError(f"--ns {declared}: expected PREFIX=URI")
            if not prefix:
                raise UsageError(f"--ns {declared}: a default namespace is --default-ns {uri}")
            if found.setdefault(prefix, uri) != uri:
                raise UsageError(
                    f"--ns {declared}: the prefix is declared before, as {found[prefix]}"
                )
        if self.default == "":
            raise UsageError("--default-ns: expected a URI")
        return {"namespaces": found, "default_namespace": self.default}

    def declared(self) -> dict[str, str]:
        """Prefix → URI; the default namespace has the prefix ``""``."""
        return declared_namespaces(**self.read())


class SchemaOptions(NamedTuple):
    """The DTD of the documents.

    Options:
        dtd: The DTD of the documents (*.dtd), or a document with a DOCTYPE. Tamis prunes
            subscriptions with the DTD. Answers stay the same: Tamis answers a document that
            violates the DTD without it.
        root: The root element of documents. Default: the element of --record, else the element in
            the DOCTYPE, else every element that no other element contains.
    """

    dtd: Path | None = None
    root: Annotated[str | None, Option(metavar="NAME")] = None
    catalog: CatalogFolders = None

    def graph(self, limits: Limits = DEFAULT_LIMITS, trust: bool = False) -> SchemaGraph | None:
        """The DTD, if there is one."""
        if self.dtd is not None:
            return read_graph(self.dtd, self.catalog, self.root and [self.root], limits)
        if self.root is not None or self.catalog or trust:
            raise UsageError("--root, --catalog and --dtd-trust are about a DTD: give --dtd too")
        return None


def read_limits(settings: Sequence[str] | None, limits: Limits = DEFAULT_LIMITS) -> Limits:
    """Limits, some of them changed.

    >>> read_limits(["depth=5"]).depth
    5
    """
    known = [field.name for field in fields(Limits)]
    found: dict[str, int] = {}
    for setting in settings or ():
        name, _, value = setting.partition("=")
        if name not in known:
            from difflib import get_close_matches  # noqa: PLC0415 - for a message

            close = get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(known)}"
            raise UsageError(f"--limit {setting}: there is no limit {name!r}: {hint}")
        if not (value.isascii() and value.isdigit()):
            raise UsageError(f"--limit {setting}: expected NAME=VALUE, the value a whole number")
        found[name] = int(value)
    return replace(limits, **found)


class ParseOptions(NamedTuple):
    """How subscriptions are parsed."""

    namespaces: Namespaces = Namespaces()
    unsupported: Literal["refuse", "slow"] = "refuse"
    skip_bad: bool = False
    limits: Sequence[str] | None = None


KINDS = {"xpath": "Matcher", "events": "EventMatcher", "transform": "Transformer"}
"""The class of live sets of each kind, in ``tamis``."""


def open_store(
    folder: Path, kind: str | None = None, *, read_only: bool = True, given: Sequence[object] = ()
) -> Any:
    """The live set that a folder keeps, which knows what it was made with.

    Args:
        kind: that it has to be of; None: it may be of any.
        given: options about subscriptions, which may not be given too.
    """
    from tamis.core.index.store import read_manifest  # noqa: PLC0415 - keeps --help fast

    if not is_store(folder):
        raise UsageError(f"{folder} keeps no subscriptions: tamis subscriptions create makes one")
    if any(given):
        raise UsageError(
            f"{folder} knows namespaces, limits, DTD and engine: give them to tamis subscriptions "
            "create"
        )
    live_set = getattr(tamis, KINDS[read_manifest(folder, kind).kind])
    return live_set.open(folder, read_only=read_only)


Set = TypeVar("Set", "Subscriptions", "EventSubscriptions")
_SHOWN_MIN = 5_000
"""So many subscriptions at least have their progress shown."""


def usable(subscriptions: Set, file: Path, skip_bad: bool) -> Set:
    """The same, when those that cannot be used were listed on standard error.

    Raises:
        Exit: some cannot be used, and ``skip_bad`` is false.
    """
    list_bad(subscriptions, file, skip_bad)
    check_usable(len(subscriptions.errors), len(subscriptions), file, skip_bad)
    return subscriptions


def check_usable(bad: int, good: int, where: object, skip_bad: bool) -> None:
    """End the command if some subscriptions are bad, unless these are skipped; warn of none."""
    if bad and not skip_bad:
        raise Exit(Status.USAGE)
    if not good:
        warn(f"{where} has no subscriptions{' that can be used' if bad else ''}")


def parse_subscriptions(
    file: Path, namespaces: Namespaces, unsupported: Unsupported, limits: Limits
) -> Subscriptions:
    """The subscriptions of a file, with the errors of those that cannot be used."""
    from tamis.language.subscriptions import Subscriptions  # noqa: PLC0415 - keeps --help fast

    if is_store(file):
        given = *namespaces, unsupported != "refuse", limits != DEFAULT_LIMITS
        with open_store(file, "xpath", given=given) as live:
            found: Subscriptions = live.subscriptions
            return found
    with _reading_shown() as shown:
        return Subscriptions.from_file(
            file,
            **namespaces.read(),
            unsupported=unsupported,
            skip_bad=True,
            limits=limits,
            progress=shown,
        )


def read_matcher(
    subscriptions: Path | None,
    program: Path | None,
    options: ParseOptions,
    engine: str,
    schema: SchemaOptions = SchemaOptions(),
    dtd_trust: bool = False,
) -> CompiledMatcher:
    """The subscriptions of a file, compiled, or those that a program was compiled of.

    Subscriptions that cannot be used are listed, and end the command unless they are skipped.
    """
    if (subscriptions is None) == (program is None):
        raise UsageError("give either --subscriptions or --program")
    if is_store(folder := subscriptions or program or Path()):
        about = (*options.namespaces, options.unsupported != "refuse", options.skip_bad)
        others = (options.limits, engine != "auto", *schema, dtd_trust)
        with open_store(folder, "xpath", given=(*about, *others)) as live:
            compiled: CompiledMatcher = live.compiled()
            return compiled
    from tamis.matching.matcher import compile_subscriptions, load_matcher  # noqa: PLC0415

    if subscriptions is not None:
        limits = read_limits(options.limits)
        graph = schema.graph(limits, dtd_trust)
        found = parse_subscriptions(subscriptions, options.namespaces, options.unsupported, limits)
        read = usable(found, subscriptions, options.skip_bad)
        return compile_subscriptions(read, engine=engine, dtd=graph, dtd_trust=dtd_trust)
    assert program is not None
    names = ("--namespaces", "--ns", "--default-ns", "--unsupported", "--skip-bad")
    values = (*options.namespaces, options.unsupported != "refuse", options.skip_bad)
    given = [name for name, value in zip(names, values, strict=True) if value]
    if engine != "auto":
        given.append("--engine")
    if given:
        raise UsageError(
            f"{' and '.join(given)}: not with --program, which was compiled already: give what "
            "concerns subscriptions to tamis compile"
        )
    if schema != SchemaOptions() or dtd_trust:
        raise UsageError("what is about a DTD: not with --program, which is compiled without one")
    matcher = load_matcher(program)
    return matcher.with_limits(read_limits(options.limits, matcher.limits))


@contextmanager
def _reading_shown() -> Iterator[Callable[[int, int], None]]:
    """Show how many subscriptions were read, where they are so many that one waits for them."""
    advance: Callable[[int], None] | None = None
    before = 0

    def shown(done: int, total: int) -> None:
        nonlocal advance, before
        if total < _SHOWN_MIN:
            return
        if advance is None:
            advance = stack.enter_context(progress(total, False, "subscriptions"))
        advance(done - before)
        before = done

    with ExitStack() as stack:
        yield shown


def list_errors(errors: Sequence[str], good: int, where: object, skip_bad: bool) -> None:
    """Print the errors of subscriptions and their number; as warnings if these are skipped."""
    write = warn if skip_bad else say
    for error in errors:
        write(in_options(error))
    bad, total = len(errors), len(errors) + good
    if bad:
        are = f"subscription{'' if total == 1 else 's'}"
        write(f"{where}: {bad:,} of {total:,} {are} cannot be used")


def list_bad(
    subscriptions: Subscriptions | EventSubscriptions, file: Path, skip_bad: bool = False
) -> None:
    """Print the errors of a file's subscriptions, as ``list_errors`` does, and what would help."""
    if not subscriptions.errors:
        return
    from tamis.language.queries import lxml_would_help  # noqa: PLC0415 - for messages
    from tamis.language.subscriptions import Subscriptions  # noqa: PLC0415

    errors = [f"{file}, {error}" for error in subscriptions.errors]
    list_errors(errors, len(subscriptions), file, skip_bad)
    if isinstance(subscriptions, Subscriptions) and lxml_would_help(
        subscriptions.errors, subscriptions.options
    ):
        write = warn if skip_bad else say
        write(in_options('unsupported="slow" evaluates unsupported expressions with lxml'))


def read_graph(
    file: Path,
    catalog: Sequence[Path] | None,
    roots: Sequence[str] | None,
    limits: Limits = DEFAULT_LIMITS,
) -> SchemaGraph:
    """The DTD of a file, seen from its roots."""
    from tamis.schema import reader  # noqa: PLC0415 - keeps --help fast

    return reader.read_graph(file, catalog or (), roots or (), limits)


def warn_of_namespace(matcher: CompiledMatcher) -> None:
    """Warn if nothing was found because documents have the names in another namespace."""
    found = matcher.namespace_mismatch()
    if found is None:
        return
    test, namespace = found
    uri = shlex.quote(namespace)
    subscriptions = matcher.subscriptions
    prefixes = {uri: prefix for prefix, uri in subscriptions.namespaces.items()}
    where = f"in the namespace {test.namespace}" if test.namespace else "in none"
    if not namespace:
        advice = f"leave out --default-ns, or write Q{{}}{test.local}"
    elif namespace in prefixes:
        advice = f"write {prefixes[namespace]}:{test.local}"
    elif test.prefix is None:
        advice = f"give --ns p={uri} and write p:{test.local}"
        if subscriptions.default_namespace is None:
            advice = f"give --default-ns {uri}; or {advice}"
    elif "{" in test.prefix:
        advice = f"write Q{{{namespace}}}{test.local}"
    else:
        advice = f"give --ns {test.prefix}={uri}"
    if matcher.loaded_from is not None:
        advice = advice.replace("give --", "give tamis compile --")
    has = f"in the namespace {namespace}" if namespace else "in no namespace"
    warn(
        f"nothing was found: the documents have '{test.local}' {has}, and "
        f"it was asked for {where}: {advice}"
    )
