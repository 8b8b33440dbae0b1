"""``tamis explain``: what an expression asks, and why a document matches it or does not."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tamis.cli.arguments import NamespacesFile, find_document, read_prefixes
from tamis.cli.console import Status, say
from tamis.cli.results import open_results
from tamis.errors import DocumentError, EventError, UsageError

EXAMPLES = """\b
Examples:
  tamis explain '//order[total > 100]/item[2]'
  tamis explain '//order[total > 100]/item[2]' order.xml
  echo '{"temp": 25}' | tamis explain --events 'area = "a1" and temp > 30 or wind > 20' -
"""


def explain(
    expression: Annotated[
        str,
        typer.Argument(
            metavar="EXPRESSION",
            help="An XPath expression; with --events, one of tamis match-events.",
        ),
    ],
    document: Annotated[
        str | None, typer.Argument(metavar="DOCUMENT", help="A file, or - for standard input.")
    ] = None,
    namespaces: NamespacesFile = None,
    events: Annotated[
        bool,
        typer.Option("--events", help="It is of events, and the document is one: a JSON object."),
    ] = False,
) -> None:
    """Explain an expression, or its answer to a document.

    Without a document: how the expression is read, part by part. With one: what each step and
    each predicate found in it, up to the first that found nothing. With --events: the filters that
    it comes to, and in each the first constraint that an event does not satisfy.

    Exit status 0, whether the document matches or not.
    """
    if events:
        if namespaces is not None:
            raise UsageError("--events: --namespaces is about documents: leave it out")
        explanation = _of_events(expression, document)
    else:
        explanation = _of_documents(expression, read_prefixes(namespaces), document)
    with open_results() as results:
        results.write_text(explanation)


def _of_documents(expression: str, prefixes: dict[str, str], document: str | None) -> str:
    from tamis.language.xpath import parse  # noqa: PLC0415 - keeps --help fast

    query = parse(expression, prefixes)
    if document is None:
        from tamis.cli.outline import outline  # noqa: PLC0415 - keeps --help fast

        return "\n".join(outline(query))
    return _on_document(expression, prefixes, document)


def _of_events(expression: str, argument: str | None) -> str:
    from tamis.events.explain import explain as explain_event  # noqa: PLC0415
    from tamis.events.ndjson.kernels import ODD  # noqa: PLC0415
    from tamis.events.ndjson.reader import read_line  # noqa: PLC0415
    from tamis.events.subscriptions import EventSubscriptions  # noqa: PLC0415
    from tamis.language.constraints import parse_filters, print_filters  # noqa: PLC0415
    from tamis.limits import DEFAULT_LIMITS  # noqa: PLC0415

    filters = parse_filters(expression)
    if argument is None:
        return "\n".join(["any of", *(f"  {print_filters([filter])}" for filter in filters)])
    table = EventSubscriptions([("expression", expression)]).table
    try:
        event = read_line(_read_event(argument), ODD, table.names, DEFAULT_LIMITS)
    except EventError as error:
        say(f"{argument}: {error}")
        raise typer.Exit(Status.DOCUMENTS) from None
    return str(explain_event(table, 0, "expression", event))


def _read_event(argument: str) -> bytes:
    """The bytes of a file, or of standard input."""
    try:
        if argument != "-":
            return Path(argument).read_bytes()
        if sys.stdin is None:  # as it is after <&-
            raise UsageError("standard input is closed")
        return sys.stdin.buffer.read()
    except (OSError, ValueError) as error:  # a NUL in the path
        raise UsageError(f"cannot read {argument}: {getattr(error, 'strerror', error)}") from None


def _on_document(expression: str, prefixes: dict[str, str], argument: str) -> str:
    from tamis.language.subscriptions import Subscriptions  # noqa: PLC0415 - keeps --help fast
    from tamis.matching.matcher import compile_subscriptions  # noqa: PLC0415

    matcher = compile_subscriptions(
        Subscriptions([("expression", expression)], namespaces=prefixes)
    )
    document = find_document(argument).document
    try:
        if isinstance(document, DocumentError):
            raise document
        return str(matcher.explain(document, "expression"))
    except DocumentError as error:
        say(f"{argument}: {error}")
        raise typer.Exit(Status.DOCUMENTS) from None
