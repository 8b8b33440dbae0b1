"""``tamis match``: which subscriptions match which documents."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli.arguments import (
    DOCUMENT_HELP,
    EngineName,
    NamespacesFile,
    ProgramFile,
    ReadingRules,
    SkipBad,
    SubscriptionsOrProgram,
    Unsupported,
    find_documents,
    read_matcher,
)
from tamis.cli.console import Status, progress, warn
from tamis.cli.results import Results, of_document, of_error, open_results

if TYPE_CHECKING:
    from tamis.matching.matcher import Match

EXAMPLES = """\b
Examples:
  tamis match --subscriptions orders.tsv incoming/ > matches.ndjson
  tamis match --subscriptions orders.tsv archive.zip more.xml.gz
  curl -s https://example.org/feed.xml | tamis match --subscriptions orders.tsv -
  tamis match --subscriptions titles.tsv --record page enwiki.xml.gz
  tamis match --program orders.tamis incoming/

\b
Results:
  {"document": "incoming/1.xml", "matches": ["large", "urgent"]}
  {"document": "incoming/2.xml", "error": "mismatched tag", "line": 3, "column": 7}
  {"document": "enwiki.xml.gz", "record": 0, "matches": ["redirect"]}
"""


def match(  # noqa: PLR0913, PLR0917 - one for each option
    documents: Annotated[list[str], typer.Argument(metavar="DOCUMENT", help=DOCUMENT_HELP)],
    subscriptions: SubscriptionsOrProgram = None,
    program: ProgramFile = None,
    engine: EngineName = "auto",
    namespaces: NamespacesFile = None,
    unsupported: Unsupported = "refuse",
    skip_bad: SkipBad = False,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="TAG",
            help="Match each outermost element of this tag as a document of its own; TAG is as "
            "documents write it: page, or w:p. Documents may be of any size: they are read while "
            "they are matched.",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="How many threads match at once.",
            show_default="as many as there are usable cores",
        ),
    ] = None,
    matching_only: Annotated[
        bool,
        typer.Option(
            "--matching-only",
            help="Leave out documents, and records, that matched nothing; errors stay.",
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
    """Match documents against subscriptions, or the program that tamis compile made of them.

    Prints one JSON object a document, in the order of the documents: the ids of the subscriptions
    that are true of it, in the order of the subscriptions; or its error, with line and column
    where there is a place. An error concerns its document alone, and makes the exit status 3.

    With --record, one object a record, with its number, from 0. Where a document cannot be read any
    further, the records before that are answered.
    """
    from tamis.matching.threads import usable_cores  # noqa: PLC0415 - keeps --help fast

    rules = ReadingRules(namespaces, unsupported, skip_bad)
    matcher = read_matcher(subscriptions, program, rules, engine)
    targets = find_documents(documents)
    with (
        open_results(output) as results,
        progress(len(targets), results.is_terminal) as advance,
    ):
        answers = _Answers(results, matching_only)
        if record is None:
            given = (target.document for target in targets)
            matches = matcher.match_many(given, threads or usable_cores())
            for target, found in zip(targets, matches, strict=True):
                answers.write(target.name, found)
                advance()
        else:
            for target in targets:
                matches = matcher.match_records(target.document, record, threads or usable_cores())
                answers.write_records(target.name, record, matches)
                advance()
    if answers.errors:
        raise typer.Exit(Status.DOCUMENTS)


class _Answers:
    """Writes what was found, and counts the errors."""

    def __init__(self, results: Results, matching_only: bool) -> None:
        self.results = results
        self.matching_only = matching_only
        self.errors = 0

    def write(self, name: str, found: Match) -> None:
        if found.error is not None:
            self.errors += 1
            self.results.write(of_error(name, found.error, found.record))
        elif found or not self.matching_only:
            self.results.write({**of_document(name, found.record), "matches": list(found)})

    def write_records(self, name: str, tag: str, matches: Iterable[Match]) -> None:
        found = None
        for found in matches:
            self.write(name, found)
        if found is None:
            warn(f"{name} has no element {tag}: it has no records")
