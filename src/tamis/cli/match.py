"""``tamis match``: which subscriptions match which documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tamis.cli.arguments import (
    DOCUMENT_HELP,
    EngineName,
    NamespacesFile,
    SkipBad,
    SubscriptionsFile,
    Unsupported,
    find_documents,
    read_subscriptions,
)
from tamis.cli.console import Status, progress
from tamis.cli.results import of_error, open_results

EXAMPLES = """\b
Examples:
  tamis match --subscriptions orders.tsv incoming/ > matches.ndjson
  tamis match --subscriptions orders.tsv archive.zip more.xml.gz
  curl -s https://example.org/feed.xml | tamis match --subscriptions orders.tsv -

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
        matches = matcher.match_many(target.document for target in targets)
        for target, found in zip(targets, matches, strict=True):
            if found.error is not None:
                errors += 1
                results.write(of_error(target.name, found.error))
            elif found or not matching_only:
                results.write({"document": target.name, "matches": list(found)})
            advance()
    if errors:
        raise typer.Exit(Status.DOCUMENTS)
