"""``tamis match`` and ``tamis compile``: which subscriptions match which documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from click.exceptions import Exit

from tamis.cli import arguments as args
from tamis.cli.console import Results, Status, about, of_document, open_results, say, warn
from tamis.cli.documents import DOCUMENT_HELP, DocumentChoice, Documents, Records, Target
from tamis.cli.options import Argument, Option
from tamis.core.arguments import to_json
from tamis.core.errors import UsageError

if TYPE_CHECKING:
    from tamis.core.index.matchset import Which
    from tamis.matching.match import Match

_TOGETHER_MAX = 1 << 20
"""Lines are passed on when their lists have so many bytes."""

EXAMPLES = {
    "match": """\b
Examples:
  tamis match --subscriptions orders.tsv incoming/ > matches.ndjson
  tamis match --subscriptions orders.tsv archive.zip more.xml.gz
  curl -s https://example.org/feed.xml | tamis match --subscriptions orders.tsv -
  efetch … | tamis match --subscriptions genes.tsv --concatenated -
  tamis match --subscriptions orders.tsv --recursive --glob '*.rss' feeds/
  tamis match --subscriptions titles.tsv --record page enwiki.xml.gz
  tamis match --program orders.tamis incoming/
  tamis match --subscriptions orders.tsv --engine nfa --dtd order.dtd incoming/

\b
Results:
  {"document": "incoming/1.xml", "matches": ["large", "urgent"]}
  {"document": "incoming/2.xml", "error": "mismatched tag", "line": 3, "column": 7}
  {"document": "incoming/3.xml", "matches": ["large"], "failed": {"odd": "lxml cannot …"}}
  {"document": "enwiki.xml.gz", "record": 0, "matches": ["redirect"]}
  {"document": "-", "number": 0, "matches": []}
  {"document": "incoming/1.xml", "matches": ["large"],
   "nodes": {"large": [{"start": 26, "end": 81, "line": 2}]}}

\b
With --values each node has its value:
  {"start": 26, "end": 52, "line": 2, "value": "Smith & Co"}
""",
    "compile": """\b
Examples:
  tamis compile --subscriptions orders.tsv --output orders.tamis
  tamis compile --subscriptions orders.tsv --output orders.tamis --warm yesterday/
  tamis match --program orders.tamis incoming/
""",
}


def match(  # noqa: PLR0913, PLR0917 - one for each option
    documents: Annotated[list[str], Argument(metavar="DOCUMENT", help=DOCUMENT_HELP)],
    subscriptions: args.SubscriptionsOrProgram = None,
    program: args.ProgramFile = None,
    schema: args.SchemaOptions = args.SchemaOptions(),
    dtd_trust: args.DtdTrust = False,
    engine: args.EngineName = "auto",
    namespaces: args.Namespaces = args.Namespaces(),
    declared_encoding: args.EncodingRule = "check",
    unsupported: args.Unsupported = "refuse",
    skip_bad: args.SkipBad = False,
    records: Records = Records(),
    choice: DocumentChoice = DocumentChoice(),
    limit: args.LimitSettings = None,
    threads: args.Threads = None,
    matching_only: bool = False,
    nodes: bool = False,
    values: bool = False,
    output: args.Output = None,
) -> None:
    """Match documents against subscriptions or a saved program.

    Prints one JSON object per document, in the order of the documents. "matches" lists the ids of
    the matching subscriptions, in the order of the subscriptions. A document in error has "error"
    instead, with line and column if they are known. The other documents are answered, and the
    exit status is 3. If lxml cannot evaluate a subscription, "failed" gives the reason, and the
    exit status is 3 too.

    With --nodes, "nodes" lists the nodes that each matching expression selects, in document order.
    A comparison or another boolean expression selects no nodes. Offsets count bytes of the
    decompressed document. If its encoding is UTF-16 or similar, they count bytes of its UTF-8
    transcoding. "cut" lists the ids with more nodes than the limit.

    With --record, prints one object per record, with the number of the record, from 0. If a
    document becomes unreadable, the records before that point are answered.

    With --concatenated, prints one object per document of an input, with its number, from 0.
    With --record or --concatenated, the data of a pipe is answered as soon as it arrives.

    Options:
        matching_only: Print only documents and records with matches, errors or failures.
        nodes: Print the nodes that each expression selects: elements, attributes or text, with
            byte offsets and line.
        values: Print the nodes, as with --nodes, and the value of each: the text of an element, or
            the value of an attribute.
    """
    wanted = records.wanted(namespaces)
    options = args.ParseOptions(namespaces, unsupported, skip_bad, limit)
    if schema.dtd and not schema.root:
        schema = schema._replace(root=records.root(wanted))
    matcher = args.read_matcher(subscriptions, program, options, engine, schema, dtd_trust)
    nodes = nodes or values
    if nodes and len(set(map(str, matcher.ids))) < len(matcher):
        raise UsageError("with --nodes no id may be a number and another one the same as a string")
    which: Which | None = "all" if nodes else None
    found = Documents(documents, choice, matcher.limits, as_streams=records.tag is not None)
    with open_results(output) as results:
        answers = _Answers(results, matching_only, nodes, values)
        with found.shown(results.is_terminal) as advance:
            for target, match in found.matched(
                matcher,
                wanted,
                advance,
                threads,
                nodes=which,
                values=values,
                declared_encoding=declared_encoding,
            ):
                answers.write(target, match)
        if not answers.matched:
            args.warn_of_namespace(matcher)
        if matcher.schema_violations:
            what = "documents" if records.tag is None else "records"
            warn(
                f"{what} that violate the DTD: {matcher.schema_violations:,}, the first by "
                f"{matcher.first_violation}; Tamis answered them without the DTD"
            )


class _Answers:
    """Writes answers: lists of ids as they stand ready, and many lines at a time."""

    def __init__(
        self, results: Results, matching_only: bool, with_nodes: bool, with_values: bool
    ) -> None:
        self.results = results
        self.matching_only = matching_only
        self.with_nodes, self.with_values = with_nodes, with_values
        self.matched = False
        self._parts: list[bytes] = []
        self._size = 0
        self._target: Target | None = None
        self._head = ""  # of the target's lines, without its end

    def write(self, target: Target, found: Match) -> None:
        """Write an answer; those that are matched together are passed on together."""
        if found.error is not None:
            self.flush()
            self.results.write_error(target, found.error, found.record)
        elif self.with_nodes or found.failed:
            self.flush()
            self._write_all(target, found)
        elif found or not self.matching_only:
            if target is not self._target:
                self._target, self._head = target, to_json(of_document(target))[:-1]
            record = "" if found.record is None else f', "record": {found.record}'
            ids = found.json()
            self._parts += (f'{self._head}{record}, "matches": '.encode(), ids, b"}\n")
            self._size += len(ids)
            self.matched |= len(ids) > len(b"[]")
        if found.is_last or self._size > _TOGETHER_MAX:
            self.flush()

    def flush(self) -> None:
        """Pass on what was not yet."""
        if self._parts:
            self.results.write_bytes(b"".join(self._parts))
            self._parts, self._size = [], 0

    def _write_all(self, target: Target, found: Match) -> None:
        ids, failures = list(found), found.failed
        if not ids and not failures and self.matching_only:
            return
        self.matched |= bool(ids)
        result: dict[str, object] = {**of_document(target, found.record), "matches": ids}
        if self.with_nodes:
            result |= _nodes_of(found, self.with_values)
        if failures:
            self.results.errors += 1
            result["failed"] = {str(id): str(error) for id, error in failures.items()}
        self.results.write(result)


def _nodes_of(found: Match, with_values: bool) -> dict[str, object]:
    """What each of the ids that matched selects, and those of which there is more."""
    selections = {str(id): found.nodes(id) for id in found}
    cut = [id for id, selection in selections.items() if selection.is_cut]
    nodes: dict[str, list[dict[str, object]]] = {
        id: [node._asdict() for node in selection] for id, selection in selections.items()
    }
    if with_values:
        for id, selection in selections.items():
            for node, value in zip(nodes[id], selection.values(), strict=True):
                node["value"] = value
    return {"nodes": nodes, **({"cut": cut} if cut else {})}


def compile(
    subscriptions: args.SubscriptionsFile,
    output: Path,
    namespaces: args.Namespaces = args.Namespaces(),
    unsupported: args.Unsupported = "refuse",
    skip_bad: args.SkipBad = False,
    warm: Annotated[
        list[str] | None,
        Option(
            "--warm",
            metavar="DOCUMENT",
            help="Match documents first, and save the warm cache beside the program, in "
            f"FILE.cache. Repeatable. {DOCUMENT_HELP}",
        ),
    ] = None,
    choice: DocumentChoice = DocumentChoice(),
    limit: args.LimitSettings = None,
) -> None:
    """Compile subscriptions and save the program for tamis match --program.

    A program loads in a fraction of a second, and processes that match with the same program share
    its memory. A program works only with the version of Tamis that saved it.

    Options:
        output: The file for the program. The command replaces an existing file when the new program
            is complete. Processes that use the old program keep it.
    """
    options = args.ParseOptions(namespaces, unsupported, skip_bad, limit)
    matcher = args.read_matcher(subscriptions, None, options, "auto")
    answered = errors = 0
    documents = Documents(warm or [], choice, matcher.limits)
    with documents.shown(False) as advance:
        # With one thread, so that one cache has all.
        for target, found in documents.answered(matcher.match_many):
            if found.error is None:
                answered += 1
            else:
                errors += 1
                warn(f"--warm skips a document: {about(target.label, found.error)}")
            advance()
    matcher.save(output, warm=bool(answered))
    if warm and not answered:
        say(f"--warm: no document can be read: {output} has no warm cache")
        raise Exit(Status.DOCUMENTS)
    if errors:
        raise Exit(Status.DOCUMENTS)
