"""Queries outside the streamed fragment, compiled and evaluated by lxml, document by document.

libxml2 parses each document again.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.core.errors import (
    LxmlEvaluationError,
    MalformedDocument,
    MissingExtra,
    SubscriptionError,
    SubscriptionSyntaxError,
)
from tamis.core.index.matchset import MatchSet, Occurrences, QueryValue, Which
from tamis.documents.batch import ATTRIBUTE, DOCUMENT, ELEMENT, KIND_BITS, MISC, TEXT, DocumentBatch
from tamis.documents.rewrite import DOCTYPE, resolved
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.model import Query
from tamis.matching.engine import Sources, UnusableQueries

if TYPE_CHECKING:
    from lxml import etree

# Errors of libxml2 about documents that are well-formed, namespaces included.
_WELL_FORMED = frozenset(("DTD_XMLID_VALUE", "DTD_ID_REDEFINED", "WAR_NS_URI", "NS_ERR_COLON"))
_EMPTY_CDATA = b"<![CDATA[]]>"


def import_lxml() -> Any:
    """``lxml.etree``, imported where it is needed: most users do without.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        from lxml import etree  # noqa: PLC0415
    except ImportError:
        raise MissingExtra("slow", "lxml") from None
    return etree


class LxmlExpression:
    """An absolute expression, compiled for lxml; a default namespace is in it already.

    Its truth is what libxml2 says: lxml leaves the document node out of the node sets that it
    returns.
    """

    def __init__(self, absolute: str, namespaces: Mapping[str, str]) -> None:
        prefixes = {prefix: uri for prefix, uri in namespaces.items() if prefix} or None
        xpath = import_lxml().XPath
        self.truth: etree.XPath = xpath(f"boolean({absolute})", namespaces=prefixes)
        self.value: etree.XPath = xpath(absolute, namespaces=prefixes)
        self.count: etree.XPath = xpath(f"count({absolute})", namespaces=prefixes)


class LxmlProgram(NamedTuple):
    """The expressions of some queries."""

    expressions: tuple[LxmlExpression, ...]

    @property
    def projection(self) -> Projection:
        """Where records stand: lxml reads their bytes."""
        return Projection(offsets=True)

    def memory_usage(self) -> int:
        """0: what libxml2 needs is not known."""
        return 0


def compile_queries(queries: Sequence[Query]) -> LxmlProgram:
    """Compile queries that have the text of an unstreamed expression.

    Raises:
        MissingExtra: lxml is not installed.
        UnusableQueries: lxml refuses expressions that are XPath 1.0.
    """
    etree = import_lxml()
    example = etree.fromstring(b"<a/>")
    expressions: list[LxmlExpression] = []
    refused: dict[int, SubscriptionError] = {}
    for number, query in enumerate(queries):
        assert query.unstreamed is not None, "other engines run the others"
        try:
            expression = LxmlExpression(query.unstreamed, dict(query.namespaces))
            expression.truth(example)  # some mistakes show only now
            expressions.append(expression)
        except (etree.XPathError, ValueError) as error:
            refused[number] = SubscriptionSyntaxError(f"lxml refuses it: {error}")
    if refused:
        raise UnusableQueries(refused)
    return LxmlProgram(tuple(expressions))


class LxmlAnswers(NamedTuple):
    """What lxml says of one document, by the numbers of queries.

    Attributes:
        found: the queries that are true of it, ascending.
        nodes: the references of the nodes that queries select, where nodes are asked for.
        values: the values of queries that select no nodes, likewise.
    """

    found: list[int]
    failed: dict[int, LxmlEvaluationError]
    nodes: dict[int, list[int]]
    values: dict[int, QueryValue]


class LxmlSearcher(NamedTuple):
    """A program at work; it has no cache."""

    program: LxmlProgram

    def match(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        nodes: Which | None = None,
        sources: Sources | None = None,
    ) -> MatchSet:
        """Which queries are true of which documents; each set of the result is one query."""
        assert sources is not None, "lxml parses documents itself"
        found, found_starts = array("i"), array("q", [0])
        pairs, pair_starts = array("q"), array("q", [0])  # a query and a node, in turns
        failed: dict[int, dict[int, LxmlEvaluationError]] = {}
        values: dict[int, dict[int, QueryValue]] = {}
        for document in range(batch.documents):
            if batch.document_starts[document] < batch.document_starts[document + 1]:  # no error
                source, head = sources(document)
                parsed = None if nodes is None else (batch, document, vocabulary)
                answers = answer(self.program, source, head, parsed, is_first=nodes == "first")
                found.extend(answers.found)
                for query, refs in answers.nodes.items():
                    pairs.extend(chain.from_iterable((query, ref) for ref in refs))
                if answers.failed:
                    failed[document] = answers.failed
                values[document] = answers.values
            found_starts.append(len(found))
            pair_starts.append(len(pairs) // 2)
        occurrences = None
        if nodes is not None:
            sets, node_refs = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
            starts = np.array(pair_starts, np.int64)
            occurrences = Occurrences(starts, sets.astype(np.int32), node_refs, values)
        count = len(self.program.expressions)
        return MatchSet(
            document_starts=np.array(found_starts, np.int64),
            set_ids=np.array(found, np.int32),
            set_starts=np.arange(count + 1),
            members=np.arange(count, dtype=np.int32),
            occurrences=occurrences,
            failed=failed,
        )

    def memory_usage(self) -> int:
        """0: nothing is kept."""
        return 0


def answer(
    program: LxmlProgram,
    source: Source,
    head: int = 0,
    parsed: tuple[DocumentBatch, int, Vocabulary] | None = None,
    *,
    is_first: bool = False,
) -> LxmlAnswers:
    """What is true of a document.

    A failure concerns its query alone. Where lxml cannot parse the document, all queries fail.

    Args:
        head: how many bytes come before a record.
        parsed: the document of a batch, where nodes are asked for; with ``is_first`` the first one.
    """
    answers = LxmlAnswers([], {}, {}, {})
    try:
        tree = lxml_tree(source, head)
        nodes = None if parsed is None else TreeNodes(tree, *parsed)
    except LxmlEvaluationError as error:
        return answers._replace(failed=dict.fromkeys(range(len(program.expressions)), error))
    for number, expression in enumerate(program.expressions):
        try:
            is_true = expression.truth(tree)
            if nodes is not None:
                value = expression.value(tree)
                if isinstance(value, list):
                    answers.nodes[number] = _refs(expression, tree, value, nodes, is_first)
                else:
                    answers.values[number] = value
            if is_true:
                answers.found.append(number)
        except LxmlEvaluationError as error:
            answers.failed[number] = error
        except import_lxml().XPathError as error:
            answers.failed[number] = LxmlEvaluationError(
                f"lxml cannot evaluate the expression: {error}"
            )
    return answers


def _refs(
    expression: LxmlExpression, tree: Any, value: list[Any], nodes: TreeNodes, is_first: bool
) -> list[int]:
    """The references of the nodes that an expression selected."""
    if any(isinstance(node, tuple) for node in value):
        raise LxmlEvaluationError("it selects namespace nodes, which stand nowhere in a document")
    refs = [nodes.ref(node) for node in (value[:1] if is_first else value)]
    return [DOCUMENT, *refs] if len(value) < expression.count(tree) else refs


class TreeNodes:
    """The references of the nodes of a document that lxml has read.

    Both have the nodes in document order. The batch has all nodes of the document.

    Raises:
        LxmlEvaluationError: lxml has other nodes.
    """

    def __init__(
        self, tree: Any, batch: DocumentBatch, document: int, vocabulary: Vocabulary
    ) -> None:
        self._batch = batch
        self._vocabulary = vocabulary
        events = batch.document_starts[document : document + 2]
        elements = np.flatnonzero(batch.tags[slice(*events)] >= 0) + events[0]
        texts = range(*np.searchsorted(batch.text_event, events))
        misc = range(*batch.misc_starts[document : document + 2])
        self._refs: dict[Any, int] = {}
        self._add(tree, "//*", ELEMENT, elements)
        self._add(tree, "//text()", TEXT, texts)
        self._add(tree, "//comment() | //processing-instruction()", MISC, misc)

    def _add(self, tree: Any, expression: str, kind: int, numbers: Iterable[int]) -> None:
        nodes = tree.xpath(expression)
        try:
            for node, number in zip(nodes, numbers, strict=True):
                self._refs[_key(node)] = int(number) << KIND_BITS | kind
        except ValueError:
            raise LxmlEvaluationError("lxml reads other nodes in the document than Tamis") from None

    def ref(self, node: Any) -> int:
        """The reference of a node that an expression selected."""
        if not getattr(node, "is_attribute", False):
            return self._refs[_key(node)]
        event = self._refs[node.getparent()] >> KIND_BITS
        namespace, _, local = node.attrname.rpartition("}")
        name = namespace[1:], local
        batch = self._batch
        for row in range(*np.searchsorted(batch.attribute_event, [event, event + 1]).tolist()):
            if self._vocabulary.expanded(int(batch.attribute_name[row])) == name:
                return row << KIND_BITS | ATTRIBUTE
        raise LxmlEvaluationError("lxml reads other attributes in the document than Tamis")


def _key(node: Any) -> Any:
    """The key of a node; of text, which is no object in lxml, its element and its side."""
    return (node.getparent(), node.is_tail) if hasattr(node, "is_tail") else node


def lxml_tree(source: Source, head: int = 0) -> etree._ElementTree[Any]:
    """Parse a document with lxml to the same nodes as Tamis does; nothing external is fetched.

    What a DTD declares, libxml2 reads otherwise than libexpat, which Tamis follows; and it makes
    nodes of empty CDATA sections. So libexpat resolves such documents first, records, and documents
    with references to entities that only an external DTD could declare.

    Args:
        head: how many bytes come before a record; 0 where there is none.

    Raises:
        LxmlEvaluationError: one of them cannot parse it.
    """
    etree = import_lxml()
    data = bytes(source.data)
    doctype = DOCTYPE.match(data)
    has_subset = doctype is not None and doctype["subset"] is not None
    if not (head or has_subset or _EMPTY_CDATA in data):
        try:
            return _parsed(source)
        except etree.XMLSyntaxError as error:
            if doctype is None:
                raise _unparsed(error.msg, *error.position) from None
    try:
        return _parsed(resolved(source, head))
    except etree.XMLSyntaxError as error:  # its line would be one of the resolved document
        raise _unparsed(error.msg) from None
    except MalformedDocument as error:
        raise _unparsed(error.message) from None


def _unparsed(message: str, *place: int) -> LxmlEvaluationError:
    without_place = re.sub(r", line \d+, column \d+$", "", message)
    return LxmlEvaluationError(f"lxml cannot parse the document: {without_place}", *place)


def _parsed(source: Source, recover: bool = False) -> etree._ElementTree[Any]:
    lxml = import_lxml()
    parser = lxml.XMLParser(
        encoding=source.encoding,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=True,  # the document has passed our own limits by now
        recover=recover,
    )
    try:
        tree: etree._ElementTree[Any] = lxml.fromstring(bytes(source.data), parser).getroottree()
    except lxml.XMLSyntaxError:
        found = {entry.type_name for entry in parser.error_log.filter_from_errors()}
        if not found or found - _WELL_FORMED:
            raise
        return _parsed(source, recover=True)
    return tree
