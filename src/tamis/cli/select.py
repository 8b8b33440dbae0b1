"""``tamis select``: what an expression selects in documents, as they have it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from tamis.cli.arguments import (
    DOCUMENT_HELP,
    NamespacesFile,
    Output,
    RecordTag,
    Threads,
    find_documents,
    read_prefixes,
)
from tamis.cli.console import Status, progress, say, warn
from tamis.cli.results import Results, of_document, of_error, open_results
from tamis.errors import UsageError

if TYPE_CHECKING:
    from tamis.matching.matcher import CompiledMatcher, Match
    from tamis.matching.matchset import Which

EXAMPLES = """\b
Examples:
  tamis select '//order[total > 100]/item' incoming/
  tamis select --first '//title' enwiki.xml.gz
  tamis select --json '//page[redirect]/@id' --record page enwiki.xml.gz
  curl -s https://example.org/feed.xml | tamis select '//item/title/text()' -

\b
Results, of one document, of several, and with --json:
  <item n="1"/>
  incoming/1.xml:3:<item n="1"/>
  {"document": "incoming/1.xml", "start": 31, "end": 44, "line": 3, "text": "<item n=\\"1\\"/>"}
"""

_ID = "expression"


def select(
    expression: Annotated[
        str, typer.Argument(metavar="EXPRESSION", help="An XPath expression: a path, or a union.")
    ],
    documents: Annotated[list[str], typer.Argument(metavar="DOCUMENT", help=DOCUMENT_HELP)],
    first: Annotated[
        bool, typer.Option("--first", help="Only the first node of each document, or record.")
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="One JSON object a node, with its place: byte offsets and line."
        ),
    ] = False,
    namespaces: NamespacesFile = None,
    record: RecordTag = None,
    threads: Threads = None,
    output: Output = None,
) -> None:
    """Print what an expression selects: elements, attributes and text, as documents have them.

    In document order, each node once and on a line of its own (or on several, where it has line
    ends); of several documents, behind the document's name and the line. Nodes are not changed:
    namespaces that are declared around them are not declared again.

    What cannot be read is told on standard error (with --json as a result), and makes the exit
    status 3.
    """
    from tamis.language.xpath import parse  # noqa: PLC0415 - keeps --help fast
    from tamis.matching.matcher import compile_subscriptions  # noqa: PLC0415
    from tamis.matching.threads import usable_cores  # noqa: PLC0415

    prefixes = read_prefixes(namespaces)
    if not parse(expression, prefixes).selects:
        raise UsageError(
            f"{expression} selects no nodes: it is true or false, as tamis match tells"
        )
    matcher = compile_subscriptions({_ID: expression}, namespaces=prefixes)
    targets = find_documents(documents)
    is_one = [target.name for target in targets] == documents and len(targets) == 1
    with (
        open_results(output) as results,
        progress(len(targets), results.is_terminal) as advance,
    ):
        printer = _Printer(results, matcher, as_json, has_names=not is_one)
        which: Which = "first" if first else "all"
        if record is None:
            given = (target.document for target in targets)
            matches = matcher.match_many(given, threads or usable_cores(), nodes=which)
            for target, found in zip(targets, matches, strict=True):
                printer.write(target.name, found)
                advance()
        else:
            for target in targets:
                printer.write_all(
                    target.name,
                    matcher.match_records(
                        target.document, record, threads or usable_cores(), nodes=which
                    ),
                )
                advance()
    if printer.errors:
        raise typer.Exit(Status.DOCUMENTS)


class _Printer:
    """Prints what was selected, and counts the errors."""

    def __init__(
        self, results: Results, matcher: CompiledMatcher, as_json: bool, has_names: bool
    ) -> None:
        self.results = results
        self.limit = matcher.limits.matched_nodes
        self.as_json = as_json
        self.has_names = has_names
        self.errors = 0

    def write_all(self, name: str, matches: Iterable[Match]) -> None:
        for found in matches:
            self.write(name, found)

    def write(self, name: str, found: Match) -> None:
        if found.error is not None:
            self.errors += 1
            if self.as_json:
                self.results.write(of_error(name, found.error, found.record))
            else:
                say(f"{name}: {found.error}")
            return
        if not found:
            return
        selection = found.nodes(_ID)
        for node, fragment in zip(selection, selection.fragments(), strict=True):
            if self.as_json:
                place = {**of_document(name, found.record), **node._asdict()}
                self.results.write({**place, "text": fragment})
            else:
                where = f"{name}:{node.line}:" if self.has_names else ""
                self.results.write_text(where + fragment)
        if selection.is_cut:
            warn(f"{name}: only the first {self.limit:,} nodes: the limit matched_nodes")
