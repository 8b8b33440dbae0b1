"""``tamis check``: whether subscriptions can be used, and whether lxml agrees about documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from click.exceptions import Exit

from tamis.cli import arguments as args
from tamis.cli.console import Results, Status, of_document, of_error, open_results, warn
from tamis.cli.documents import DOCUMENT_HELP, DocumentChoice, Documents
from tamis.cli.options import Argument
from tamis.core.arguments import is_store
from tamis.core.errors import DocumentError, UsageError
from tamis.core.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from tamis.core.errors import LxmlEvaluationError, SubscriptionId
    from tamis.core.limits import Limits
    from tamis.documents.encodings import DeclaredEncoding
    from tamis.documents.source import Document
    from tamis.language.subscriptions import Subscription, Subscriptions
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
    subscriptions: args.SubscriptionsFile,
    documents: Annotated[
        list[str] | None, Argument(metavar="DOCUMENT", help=f"For --against. {DOCUMENT_HELP}")
    ] = None,
    namespaces: args.Namespaces = args.Namespaces(),
    declared_encoding: args.EncodingRule = "check",
    unsupported: args.Unsupported = "refuse",
    schema: args.SchemaOptions = args.SchemaOptions(),
    against: Literal["lxml"] | None = None,
    choice: DocumentChoice = DocumentChoice(),
    limit: args.LimitSettings = None,
    events: bool = False,
) -> None:
    """Check subscriptions for errors.

    Lists every bad subscription on standard error, with the position of the error.

    The last line of the results is a summary: how many subscriptions are ok, how many lxml
    evaluates (slow: see --unsupported), and how many are bad.

    With --dtd, also prints each subscription that no valid document can match, with the reason. The
    check uses the nesting of elements; it ignores attributes, order and number. Such subscriptions
    stay usable, because documents may violate their DTD.

    With --events, also prints each subscription that contradicts itself.

    With --against lxml, matches the documents with Tamis and with lxml, and prints each difference.
    "failed" lists the subscriptions that lxml cannot evaluate. lxml accepts exponents in numbers,
    such as 1e3, but XPath 1.0 does not; such a difference is an error of lxml.

    Exit status: 2 if a subscription is bad; else 1 if there are differences; else 3 if a document
    is in error or lxml cannot evaluate it; else 0.

    Options:
        against: Compare the answers to the documents with those of this XPath processor.
        events: The subscriptions are for tamis match-events.
    """
    if events:
        others = (documents, *namespaces, *schema, against, choice.concatenated)
        if any(others) or unsupported != "refuse":
            raise UsageError("--events: all other options are about documents: leave them out")
        raise Exit(_check_events(subscriptions, args.read_limits(limit)))
    if (against is None) != (not documents):
        raise UsageError("give --against lxml and the documents to compare on together")
    limits = args.read_limits(limit)
    from tamis.matching import planner  # noqa: PLC0415 - keeps --help fast

    found = args.parse_subscriptions(subscriptions, namespaces, unsupported, limits)
    args.list_bad(found, subscriptions)
    unstreamed = planner.unstreamed_of(found.queries)
    if len(unstreamed.numbers):  # lxml refuses some of what it would have to answer
        planner.compile_assignment(unstreamed, found)
    slow = len(found.slow)
    summary = {
        "subscriptions": len(found) + len(found.errors),
        "ok": len(found) - slow,
        "slow": slow,
        "bad": len(found.errors),
    }
    status = Status.USAGE if found.errors else 0
    graph = schema.graph(found.limits)
    with open_results() as results:
        if graph is not None:
            summary["never"] = _tell_never(found, graph, results)
        if documents:
            targets = Documents(documents, choice, found.limits)
            counts = _compare(found, targets, results, declared_encoding)
            summary |= counts
            if not status and (counts["differences"] or counts["errors"]):
                status = Status.FAILED if counts["differences"] else Status.DOCUMENTS
        results.write(summary)
    raise Exit(status)


def _check_events(file: Path, limits: Limits) -> int:
    from tamis.events.explain import contradictions  # noqa: PLC0415 - keeps --help fast
    from tamis.events.subscriptions import EventSubscriptions  # noqa: PLC0415

    if is_store(file):
        with args.open_store(file, "events", given=[limits != DEFAULT_LIMITS]) as live:
            found: EventSubscriptions = live.subscriptions
    else:
        found = EventSubscriptions.from_file(file, skip_bad=True, limits=limits)
    args.list_bad(found, file)
    total = len(found) + len(found.errors)
    never = contradictions(found.table)
    summary = {"subscriptions": total, "ok": len(found), "bad": len(found.errors)}
    with open_results() as results:
        for subscription, reason in never.items():
            results.write({"id": found.ids[subscription], "never": reason})
        results.write({**summary, "never": len(never)})
    return Status.USAGE if found.errors else 0


def _tell_never(subscriptions: Subscriptions, graph: SchemaGraph, results: Results) -> int:
    """Write which subscriptions no document of a DTD can match, and count them."""
    from tamis.schema.prune import Pruner  # noqa: PLC0415 - keeps --help fast
    from tamis.schema.twigs import failure_of  # noqa: PLC0415

    pruner, table = Pruner(graph), subscriptions.queries.table
    reasons = [failure_of(table, number, pruner) for number in range(len(table))]
    never = [reasons[number] for number in subscriptions.query_numbers.tolist()]
    for item, reason in zip(subscriptions, never, strict=True):
        if reason is not None:
            results.write({"id": item.id, "expression": item.expression, "never": reason})
    return len(never) - never.count(None)


def _compare(
    subscriptions: Subscriptions, documents: Documents, results: Results, declared: DeclaredEncoding
) -> dict[str, int]:
    """Match with Tamis and with lxml, write where they differ, and count."""
    comparison = AgainstLxml(subscriptions)
    counts = dict.fromkeys(("documents", "errors", "differences"), 0)
    with documents.shown(results.is_terminal) as advance:
        for target in documents:
            counts["documents"] += 1
            try:
                differences, failed = comparison.compare(target.document, declared)
            except DocumentError as error:
                counts["errors"] += 1
                results.write(of_error(target, error))
            else:
                counts["differences"] += len(differences)
                for difference in differences:
                    results.write({**of_document(target), **difference})
                if failed:
                    counts["errors"] += 1
                    texts = {str(id): str(error) for id, error in failed.items()}
                    results.write({**of_document(target), "failed": texts})
            advance()
    return counts


class AgainstLxml:
    """Compares the answers to the subscriptions that Tamis does not itself leave to lxml.

    A warning names each that lxml refuses to compile, such as one with names that came with the
    fifth edition of XML 1.0; it is not compared.
    """

    def __init__(self, subscriptions: Subscriptions) -> None:
        from tamis.language.xpath import absolute_xpath  # noqa: PLC0415 - keeps --help fast
        from tamis.matching.engines.lxml import execute as lxml  # noqa: PLC0415
        from tamis.matching.matcher import compile_subscriptions  # noqa: PLC0415

        namespaces, rules = subscriptions.namespaces, subscriptions.options
        refusals = lxml.import_lxml().XPathError, ValueError
        self.items: list[Subscription] = []
        expressions: list[lxml.LxmlExpression] = []
        for item in subscriptions:
            if item.absolute is not None:
                continue
            text = absolute_xpath(item.expression, rules.namespaces, rules.limits)
            try:
                expression = lxml.LxmlExpression(text, namespaces)
            except refusals as error:
                warn(f"subscription {item.id!r} is not compared: lxml refuses it: {error}")
            else:
                expressions.append(expression)
                self.items.append(item)
        self.lxml = lxml.LxmlProgram(tuple(expressions))
        self.tamis = compile_subscriptions(subscriptions.with_entries(self.items))

    def compare(
        self, document: Document | DocumentError, declared: DeclaredEncoding = "check"
    ) -> tuple[list[dict[str, object]], dict[SubscriptionId, LxmlEvaluationError]]:
        """The differences in a document, and the subscriptions that lxml cannot answer.

        Raises a ``DocumentError`` where Tamis cannot answer the document.
        """
        from tamis.documents.source import read  # noqa: PLC0415
        from tamis.matching.engines.lxml.execute import answer  # noqa: PLC0415

        if isinstance(document, DocumentError):
            raise document
        source = read(document, self.tamis.limits, declared)
        matches = self.tamis.match_batch([source])
        if matches.errors:
            raise matches.errors[0]
        answers = answer(self.lxml, source)
        failed = answers.failed
        by_tamis, by_lxml = set(matches.numbers(0).tolist()), set(answers.found)
        differences: list[dict[str, object]] = [
            {
                "id": item.id,
                "expression": item.expression,
                "tamis": number in by_tamis,
                "lxml": number in by_lxml,
            }
            for number in sorted((by_tamis ^ by_lxml) - failed.keys())
            for item in [self.items[number]]
        ]
        return differences, {self.items[n].id: error for n, error in failed.items()}
