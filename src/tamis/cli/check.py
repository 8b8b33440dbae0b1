"""``tamis check``: whether subscriptions can be used, and whether lxml agrees about documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from click.exceptions import Exit

from tamis.cli.arguments import (
    CatalogFolders,
    DtdFile,
    DtdRoot,
    EncodingRule,
    LimitSettings,
    Promised,
    SubscriptionsFile,
    Unsupported,
    list_bad,
    parse_event_subscriptions,
    parse_subscriptions,
    read_limits,
)
from tamis.cli.console import Status, say
from tamis.cli.documents import (
    DOCUMENT_HELP,
    Choice,
    ConcatenatedBy,
    Documents,
    Globs,
    Recursive,
)
from tamis.cli.namespaces import DeclaredPrefixes, DefaultNamespace, Namespaces, NamespacesFile
from tamis.cli.options import Argument, Option
from tamis.cli.results import Results, of_document, of_error, open_results
from tamis.core.errors import DocumentError, UsageError

if TYPE_CHECKING:
    from tamis.core.limits import Limits
    from tamis.documents.encodings import DeclaredEncoding
    from tamis.language.subscriptions import Subscriptions
    from tamis.schema.graph import SchemaGraph

EXAMPLES = """\b
Examples:
  tamis check --subscriptions orders.tsv
  tamis check --subscriptions orders.tsv --against lxml incoming/
  tamis check --subscriptions orders.tsv --dtd order.dtd
  tamis check --subscriptions alarms.tsv --events

\b
Results:
  {"document": "incoming/1.xml", "id": "large", "expression": "//order[total > 1]",
   "tamis": false, "lxml": true}
  {"id": "large", "expression": "//order[total > 1]",
   "never": "total is never a child of order"}
  {"subscriptions": 2, "ok": 2, "slow": 0, "bad": 0,
   "documents": 9, "errors": 0, "differences": 1}
"""


def check(  # noqa: PLR0913, PLR0917 - one for each option
    subscriptions: SubscriptionsFile,
    documents: Annotated[
        list[str] | None,
        Argument(metavar="DOCUMENT", help=f"For --against. {DOCUMENT_HELP}"),
    ] = None,
    namespaces: NamespacesFile = None,
    ns: DeclaredPrefixes = None,
    default_ns: DefaultNamespace = None,
    declared_encoding: EncodingRule = "check",
    unsupported: Unsupported = "refuse",
    dtd: DtdFile = None,
    root: DtdRoot = None,
    catalog: CatalogFolders = None,
    against: Annotated[
        Literal["lxml"] | None,
        Option("--against", help="Match the documents with this too, and tell where it differs."),
    ] = None,
    recursive: Recursive = False,
    glob: Globs = None,
    concatenated: ConcatenatedBy = None,
    limit: LimitSettings = None,
    events: Annotated[
        bool,
        Option("--events", help="The subscriptions are those of tamis match-events."),
    ] = False,
) -> None:
    """Check that subscriptions can be used.

    Lists every one that cannot, with the place of the fault.

    The last line of the results is a summary: how many subscriptions are ok, how many go through
    lxml (slow: see --unsupported), and how many are bad.

    With --dtd, those that can never match are lines of the results, each with the reason, as far as
    the DTD says it by which element may stand in which: attributes, order and number are not asked.
    They can be used all the same: documents may break their DTD.

    With --events, those that contradict themselves are such lines too.

    With --against lxml, those that are ok are matched with Tamis and with lxml, and each
    difference is a line of the results; "failed" says what lxml cannot answer. Where they differ
    about a number such as 1e3, lxml is wrong: XPath 1.0 has no exponents.

    Exit status: 2 if a subscription is bad; else 1 if there are differences; else 3 if a document
    was in error, or lxml could not answer it; else 0.
    """
    from tamis.matching.engines.lxml.slow import SlowLane  # noqa: PLC0415 - keeps --help fast

    if events:
        others = (documents, namespaces, ns, default_ns, dtd, root, catalog, against, concatenated)
        if any(others) or unsupported != "refuse":
            raise UsageError("--events: all other options are about documents: leave them out")
        raise Exit(_check_events(subscriptions, read_limits(limit)))
    if (against is None) != (not documents):
        raise UsageError("give --against lxml and the documents to compare on together")
    declared = Namespaces(namespaces, ns, default_ns)
    found = parse_subscriptions(subscriptions, declared, unsupported, read_limits(limit))
    list_bad(found, subscriptions, say)
    SlowLane.of(found, first=0)  # lxml refuses some of what it would have to answer
    slow = len(found.slow)
    summary = {
        "subscriptions": len(found) + len(found.errors),
        "ok": len(found) - slow,
        "slow": slow,
        "bad": len(found.errors),
    }
    status = Status.USAGE if found.errors else 0
    graph = Promised(dtd, root, catalog).graph(found.limits)
    with open_results() as results:
        if graph is not None:
            summary["never"] = _tell_never(found, graph, results)
        if documents:
            choice = Choice(recursive, glob, concatenated)
            targets = Documents(documents, choice, found.limits)
            compared = _compare(found, targets, results, declared_encoding)
            summary |= compared._asdict()
            status = status or compared.status
        results.write(summary)
    raise Exit(status)


def _check_events(file: Path, limits: Limits) -> int:
    """Check subscriptions of events; gives the exit status."""
    from tamis.events.explain import contradictions  # noqa: PLC0415 - keeps --help fast

    found = parse_event_subscriptions(file, limits=limits)
    list_bad(found, file, say)
    total = len(found) + len(found.errors)
    never = contradictions(found.table)
    summary = {"subscriptions": total, "ok": len(found), "bad": len(found.errors)}
    with open_results() as results:
        for subscription, reason in never.items():
            results.write({"id": found.ids[subscription], "never": reason})
        results.write({**summary, "never": len(never)})
    return Status.USAGE if found.errors else 0


class _Compared(NamedTuple):
    """What the comparison counted."""

    documents: int
    errors: int
    differences: int

    @property
    def status(self) -> int:
        if self.differences:
            return Status.FAILED
        return Status.DOCUMENTS if self.errors else 0


def _tell_never(subscriptions: Subscriptions, graph: SchemaGraph, results: Results) -> int:
    """Write which subscriptions no document of a DTD can match, and count them."""
    from tamis.schema.prune import Pruner  # noqa: PLC0415 - keeps --help fast
    from tamis.schema.twigs import failure_of  # noqa: PLC0415

    pruner = Pruner(graph)
    count = 0
    for item in subscriptions:
        reason = None if item.query is None else failure_of(item.query, pruner)
        if reason is not None:
            count += 1
            results.write({"id": item.id, "expression": item.expression, "never": reason})
    return count


def _compare(
    subscriptions: Subscriptions,
    documents: Documents,
    results: Results,
    declared: DeclaredEncoding,
) -> _Compared:
    """Match with Tamis and with lxml, and write where they differ."""
    from tamis.cli.against_lxml import AgainstLxml  # noqa: PLC0415 - keeps --help fast

    comparison = AgainstLxml(subscriptions)
    total = errors = differences = 0
    with documents.shown(results.is_terminal) as advance:
        for target in documents:
            total += 1
            try:
                compared = comparison.compare(target.document, declared)
            except DocumentError as error:
                errors += 1
                results.write(of_error(target, error))
            else:
                differences += len(compared.differences)
                for difference in compared.differences:
                    results.write({**of_document(target), **difference._asdict()})
                if compared.failed:
                    errors += 1
                    failed = {str(id): str(error) for id, error in compared.failed.items()}
                    results.write({**of_document(target), "failed": failed})
            advance()
    return _Compared(total, errors, differences)
