"""``tamis match``: which subscriptions match which documents."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli.arguments import (
    DOCUMENT_HELP,
    EngineName,
    NamespacesFile,
    SkipBad,
    SubscriptionsFile,
    Target,
    Unsupported,
    find_documents,
    read_subscriptions,
)
from tamis.cli.console import Status, progress
from tamis.cli.results import of_error, open_results
from tamis.errors import DocumentError

if TYPE_CHECKING:
    from tamis.documents.source import Document
    from tamis.matching.matcher import CompiledMatcher, Match

EXAMPLES = """\b
Examples:
  tamis match --subscriptions orders.tsv incoming/ > matches.ndjson
  zcat order.xml.gz | tamis match --subscriptions orders.tsv -

\b
Results:
  {"document": "incoming/1.xml", "matches": ["large", "urgent"]}
  {"document": "incoming/2.xml", "error": "mismatched tag", "line": 3, "column": 7}
"""


def match(
    documents: Annotated[list[str], typer.Argument(metavar="DOCUMENT", help=DOCUMENT_HELP)],
    subscriptions: SubscriptionsFile,
    engine: EngineName = "auto",
    namespaces: NamespacesFile = None,
    unsupported: Unsupported = "refuse",
    skip_bad: SkipBad = False,
    matching_only: Annotated[
        bool,
        typer.Option(
            "--matching-only", help="Leave out documents that matched nothing; errors stay."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the results to this file instead of standard output. It is replaced when "
            "all results are there, so that it is never half written.",
        ),
    ] = None,
) -> None:
    """Match documents against subscriptions.

    Prints one JSON object a document, in the order of the documents: the ids of the subscriptions
    that are true of it, in the order of the subscriptions; or its error, with line and column
    where there is a place. An error concerns its document alone, and makes the exit status 3.
    """
    from tamis.matching.matcher import compile_subscriptions  # noqa: PLC0415 - keeps --help fast

    usable = read_subscriptions(subscriptions, namespaces, unsupported, skip_bad)
    matcher = compile_subscriptions(usable, engine=engine)
    targets = find_documents(documents)
    errors = 0
    with (
        open_results(output) as results,
        progress(len(targets), results.is_terminal) as advance,
    ):
        for name, answer in _answers(matcher, targets):
            if isinstance(answer, DocumentError):
                errors += 1
                results.write(of_error(name, answer))
            elif answer or not matching_only:
                results.write({"document": name, "matches": list(answer)})
            advance()
    if errors:
        raise typer.Exit(Status.DOCUMENTS)


def _answers(
    matcher: CompiledMatcher, targets: Sequence[Target]
) -> Iterator[tuple[str, Match | DocumentError]]:
    """The answer to each document, in order, while later ones are being read."""
    waiting: deque[Target] = deque()

    def documents() -> Iterator[Document]:
        for target in targets:
            waiting.append(target)
            if not isinstance(target.document, DocumentError):
                yield target.document

    for found in matcher.match_many(documents()):
        yield from _unreadable(waiting)
        yield waiting.popleft().name, found if found.error is None else found.error
    yield from _unreadable(waiting)


def _unreadable(waiting: deque[Target]) -> Iterator[tuple[str, DocumentError]]:
    """Take the documents in front that were not even tried."""
    while waiting and isinstance(error := waiting[0].document, DocumentError):
        yield waiting.popleft().name, error
