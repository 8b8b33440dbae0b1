"""``tamis select``: the nodes that an expression selects in documents, or its value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Annotated

from tamis.cli import arguments as args
from tamis.cli import console
from tamis.cli.console import Results, open_results
from tamis.cli.documents import DOCUMENT_HELP, DocumentChoice, Documents, Records, Target
from tamis.cli.options import Argument, Option
from tamis.core.arguments import to_json
from tamis.core.errors import UnsupportedExpression, UsageError
from tamis.language.model import Nodes
from tamis.language.values import number_string, value_string
from tamis.language.xpath import Operand, parse_value

if TYPE_CHECKING:
    from tamis.matching.match import Match

EXAMPLES = """\b
Examples:
  tamis select '//order[total > 100]/item' incoming/
  tamis select --first '//title' enwiki.xml.gz
  tamis select --json '//page[redirect]/@id' --record page enwiki.xml.gz
  curl -s https://example.org/feed.xml | tamis select --value '//item/title' -
  tamis select 'count(//item)' incoming/

\b
Results, of one document, of several, and with --json:
  <item n="1">a &amp; b</item>
  incoming/1.xml:3:<item n="1">a &amp; b</item>
  {"document": "incoming/1.xml", "start": 31, "end": 59, "line": 3,
   "text": "<item n=\\"1\\">a &amp; b</item>", "value": "a & b"}

\b
The same with --value, and of an expression that is a number:
  a & b
  incoming/1.xml:3:a & b
  incoming/1.xml:7
  {"document": "incoming/1.xml", "value": 7}
"""

_ID = "expression"
_TOGETHER_MAX = 1 << 18
"""Nodes are written together until they have so many characters."""


def select(  # noqa: PLR0913, PLR0917 - one for each option
    expression: Annotated[str, Argument(metavar="EXPRESSION")],
    documents: Annotated[list[str], Argument(metavar="DOCUMENT", help=DOCUMENT_HELP)],
    first: bool = False,
    value: bool = False,
    null: Annotated[bool, Option("--null", "-0")] = False,
    as_json: Annotated[bool, Option("--json")] = False,
    namespaces: args.Namespaces = args.Namespaces(),
    declared_encoding: args.EncodingRule = "check",
    unsupported: args.Unsupported = "refuse",
    records: Records = Records(),
    choice: DocumentChoice = DocumentChoice(),
    limit: args.LimitSettings = None,
    threads: args.Threads = None,
    output: args.Output = None,
) -> None:
    """Print the nodes that an expression selects, or its value.

    Prints the markup of each node once, in document order. With several documents, the document
    name and the line number come before each node. Nodes may contain line ends; use --null or
    --json to separate nodes. Tamis does not add namespace declarations from around a node.

    If the expression is a string, a number or a boolean, such as normalize-space(//title),
    count(//item) or //total > 100, prints its value for each document or record.

    Errors of documents go to standard error, or with --json to the results. The exit status is
    then 3.

    Options:
        expression: An XPath expression: a path, a union of paths, a string, a number or a boolean.
        first: Print only the first node of each document or record.
        value: Print the value of each node instead of its markup: the text of an element, or the
            value of an attribute. Entities and CDATA are decoded.
        null: End each result with a NUL byte instead of a line end, for xargs -0.
        as_json: Print one JSON object per node, with its value, byte offsets and line.
    """
    from tamis.matching.matcher import compile_subscriptions, value_matcher  # noqa: PLC0415

    if null and as_json:
        raise UsageError("--null is for text: with --json each result is one line")
    operand: Operand | None = None
    try:
        parsed = parse_value(expression, namespaces.declared())
        operand = None if isinstance(parsed, Nodes) else parsed
    except UnsupportedExpression:
        if unsupported == "refuse":
            console.say("--unsupported slow evaluates unsupported expressions with lxml")
            raise
    if operand is None:
        matcher = compile_subscriptions(
            {_ID: expression}, **namespaces.read(), unsupported=unsupported
        )
    else:
        matcher = value_matcher(operand)
    matcher = matcher.with_limits(args.read_limits(limit, matcher.limits))
    wanted = records.wanted(namespaces)
    given = Documents(documents, choice, matcher.limits, as_streams=records.tag is not None)
    is_one = given.is_one and choice.concatenated is None
    end, which = "\0" if null else "\n", "first" if first else "all"
    with open_results(output) as results:
        printer = _Printer(results, operand, as_json, value, has_names=not is_one, end=end)
        with given.shown(results.is_terminal) as advance:
            for target, found in given.matched(
                matcher,
                wanted,
                advance,
                threads,
                nodes=which,
                values=value or as_json,
                declared_encoding=declared_encoding,
            ):
                printer.write(target, found)
        if not printer.found:
            args.warn_of_namespace(matcher)


@dataclass
class _Printer:
    """Prints what was selected.

    Attributes:
        operand: what to evaluate instead, if the expression selects no nodes.
        as_json: one object each.
        values: as text, print values instead of markup.
        has_names: as text, print the document's name and the line before each.
        end: as text, what ends each.
    """

    results: Results
    operand: Operand | None
    as_json: bool
    values: bool
    has_names: bool
    end: str
    found: bool = False

    def write(self, target: Target, found: Match) -> None:
        error = found.error or found.failed.get(_ID)
        if error is not None:
            if self.as_json:
                self.results.write_error(target, error, found.record)
            else:
                self.results.errors += 1
                console.say(console.about(target.label, error))
        elif self.operand is not None:
            self.write_value(target, found.document_nodes.value(self.operand), found.record)
        elif (value := found.document_nodes.lxml_value(_ID)) is not None:
            self.write_value(target, value, found.record)
        elif found:
            self.write_nodes(target, found)

    def write_value(self, target: Target, value: bool | float | str, record: int | None) -> None:
        self.found = True
        if self.as_json:
            self.results.write({**console.of_document(target, record), "value": _json_value(value)})
        else:
            where = f"{target.label}:" if self.has_names else ""
            self.results.write_text(where + value_string(value), self.end)

    def write_nodes(self, target: Target, found: Match) -> None:
        self.found = True
        selection = found.nodes(_ID)
        if self.as_json:
            document = console.of_document(target, found.record)
            every = zip(selection, selection.fragments(), selection.values(), strict=True)
            objects = (
                to_json({**document, **node._asdict(), "text": text, "value": value}) + "\n"
                for node, text, value in every
            )
            for some in _together(objects):
                self.results.write_bytes(some.encode())
        else:
            texts = selection.values() if self.values else selection.fragments()
            if self.has_names:
                named = zip(selection.lines.tolist(), texts, strict=True)
                texts = (f"{target.label}:{line}:{text}" for line, text in named)
            for some in _together(text + self.end for text in texts):
                self.results.write_text(some, end="")
        if selection.is_cut:
            only = f"only the first {len(selection):,} nodes: the limit {selection.cut_by}"
            console.warn(console.in_options(f"{target.label}: {only}"))


def _together(texts: Iterator[str]) -> Iterator[str]:
    """Texts of many nodes together: to write each by itself takes longer than to find it."""
    some: list[str] = []
    size = 0
    for text in texts:
        some.append(text)
        size += len(text)
        if size > _TOGETHER_MAX:
            yield "".join(some)
            some, size = [], 0
    yield "".join(some)


def _json_value(value: bool | float | str) -> bool | int | float | str:
    """A value for JSON, which writes whole numbers without a point and has no NaN."""
    if isinstance(value, float) and not value.is_integer():
        return value if isfinite(value) else number_string(value)
    return int(value) if isinstance(value, float) else value
