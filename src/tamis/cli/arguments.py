"""What several commands are asked in the same words: subscriptions, documents, DTDs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypedDict, TypeVar

from click.exceptions import Exit

from tamis.cli.console import Status, in_options, progress, say, warn
from tamis.cli.options import Option
from tamis.core.errors import UsageError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.names import declared_namespaces

if TYPE_CHECKING:
    from tamis.events.subscriptions import EventSubscriptions
    from tamis.language.subscriptions import Subscriptions
    from tamis.matching.matcher import CompiledMatcher
    from tamis.schema.graph import SchemaGraph

_SUBSCRIPTIONS = Option(
    help="One subscription a line: id, tab, expression; a line without a tab is an expression "
    "whose id is its line number. Lines that begin with # are comments, blank lines are skipped. "
    'In *.ndjson: one {"id": …, "expression": "…"} a line. UTF-8.'
)
SubscriptionsFile = Annotated[Path, _SUBSCRIPTIONS]
SubscriptionsOrProgram = Annotated[Path | None, _SUBSCRIPTIONS]
ProgramFile = Annotated[
    Path | None, "Instead of subscriptions: what tamis compile has made of them."
]
Unsupported = Annotated[
    Literal["refuse", "slow"],
    "XPath outside the streamed fragment: refuse it, or evaluate it slowly, with lxml, "
    "document by document.",
]
LimitSettings = Annotated[
    list[str] | None,
    Option(
        "--limit",
        metavar="NAME=VALUE",
        help="Change a limit on what a subscription or a document may cost, as depth=5000; errors "
        "name the limit that was reached. May be given several times.",
    ),
]
EncodingRule = Annotated[
    Literal["check", "ignore"],
    "The encoding that documents declare: check it, or ignore it, and read documents by "
    "their byte order mark, or as UTF-8.",
]
SkipBad = Annotated[bool, "Go on without the subscriptions that cannot be used."]
EngineName = Annotated[
    str,
    Option(
        metavar="NAME",
        help="Use this engine, or refuse where it cannot serve: automaton, reference, nfa or pma.",
    ),
]
Threads = Annotated[
    int | None,
    Option(
        metavar="N",
        min=1,
        help="How many threads match at once.",
        show_default="as many as there are usable cores",
    ),
]
Output = Annotated[
    Path | None,
    "Write the results to this file instead of standard output. It is replaced when "
    "all results are there, so that it is never half written.",
]
RootNames = Annotated[
    list[str] | None,
    Option(
        metavar="NAME",
        help="An element that documents begin with; or several of these. Without it: the one in "
        "the DOCTYPE, or else those that no other element names as its content.",
    ),
]
CatalogFolders = Annotated[
    list[Path] | None,
    Option(
        metavar="FOLDER",
        help="Where to look for files that the DTD refers to, after its own folder; or several of "
        "these. Nothing is ever fetched.",
    ),
]
DtdTrust = Annotated[
    bool,
    "Documents are known to be valid: do not look whether they keep to the DTD. Answers "
    "about those that do not may be wrong.",
]
DTD_HELP = "A DTD (*.dtd, *.mod, *.ent), or a document with a DOCTYPE."


class _Declared(TypedDict):
    namespaces: dict[str, str]
    default_namespace: str | None


class Namespaces(NamedTuple):
    """The namespaces that are declared for expressions.

    Options:
        file: The prefixes that expressions use: one prefix and its URI a line.
        prefixes: Declare a prefix that expressions use. May be given several times.
        default: The namespace of elements that expressions name without a prefix.
    """

    file: Annotated[Path | None, Option("--namespaces")] = None
    prefixes: Annotated[list[str] | None, Option("--ns", metavar="PREFIX=URI")] = None
    default: Annotated[str | None, Option("--default-ns", metavar="URI", show_default="none")] = (
        None
    )

    def read(self) -> _Declared:
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
        dtd: The DTD of the documents (*.dtd), or a document with a DOCTYPE: subscriptions are
            pruned with it. It never changes an answer: documents that leave it are answered without
            it.
        root: The element that documents begin with. Without it: that of --record; or the one in the
            DTD's DOCTYPE, or else those that no other element names as its content.
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
        write("what is not supported, --unsupported slow answers through lxml")


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
