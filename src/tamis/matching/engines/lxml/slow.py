"""The slow lane: subscriptions outside the streamed fragment, document by document, through lxml.

It exists so that a set with a few odd expressions can be moved over whole (``unsupported="slow"``).
Each such subscription costs a full lxml evaluation a document.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import (
    BadSubscriptions,
    MalformedDocument,
    MissingExtra,
    SlowLaneError,
    SubscriptionError,
    SubscriptionId,
    SubscriptionSyntaxError,
)
from tamis.core.lazy import lazy_pattern
from tamis.documents.batch import DOCUMENT
from tamis.documents.records import RecordBatch
from tamis.documents.rewrite import resolved
from tamis.documents.source import Source
from tamis.language.subscriptions import Subscriptions
from tamis.matching.engines.lxml.nodes import TreeNodes

if TYPE_CHECKING:
    from lxml import etree

log = logging.getLogger("tamis")

# What libxml2 refuses though it is well-formed, namespaces included.
_WELL_FORMED = frozenset(("DTD_XMLID_VALUE", "DTD_ID_REDEFINED", "WAR_NS_URI", "NS_ERR_COLON"))
_EMPTY_CDATA = b"<![CDATA[]]>"
# The prolog up to the internal DTD subset.
_DOCTYPE = lazy_pattern(
    rb"""(?:[^<]|<\?.*?\?>|<!--.*?-->)*+<!DOCTYPE(?:"[^"]*+"|'[^']*+'|[^>"'\[])*+(?P<subset>\[)?""",
    re.DOTALL,
)


Selected = Int64 | bool | float | str
"""What an expression selects, as places in a batch; or its value, if it selects no nodes."""


class SlowAnswers(NamedTuple):
    """What lxml says of one document.

    Attributes:
        found: the numbers of the queries that are true of it, ascending.
        failed: the queries that could not be answered.
        selected: what queries select, where nodes are asked for.
    """

    found: Int32
    failed: dict[int, SlowLaneError]
    selected: dict[int, Selected]


class SlowDocument(NamedTuple):
    """A document, or a record, of a batch.

    Attributes:
        source: its bytes; of a record, what it has to be read with comes before these.
        head: how many bytes come before the record; 0 for a document.
    """

    source: Source
    head: int = 0


class _Expression:
    """An absolute expression, compiled for lxml.

    Its boolean is what libxml2 says: lxml leaves the document node out of what it returns.
    """

    def __init__(self, number: int, absolute: str, namespaces: Mapping[str, str]) -> None:
        self.number = number
        self.truth = lxml_boolean(absolute, namespaces)
        self.value = lxml_xpath(absolute, namespaces)
        self.count = lxml_xpath(f"count({absolute})", namespaces)

    def selected(self, tree: Any, nodes: TreeNodes, limit: int) -> Selected:
        """What it selects: at most so many nodes.

        Raises:
            SlowLaneError: where the nodes stand cannot be told.
        """
        value = self.value(tree)
        if not isinstance(value, list):
            return cast("bool | float | str", value)
        if any(isinstance(node, tuple) for node in value):
            raise SlowLaneError("it selects namespace nodes, which stand nowhere in a document")
        places = [nodes.place(node) for node in value[:limit]]
        if len(value) < self.count(tree):
            places = [DOCUMENT, *places][:limit]
        return np.array(places, np.int64)


class SlowLane:
    """Expressions that lxml evaluates.

    Args:
        expressions: (query number, id, absolute expression).
        namespaces: prefix → URI.

    Raises:
        MissingExtra: lxml is not installed.
        BadSubscriptions: lxml refuses expressions that are XPath 1.0.

    >>> lane = SlowLane([(7, "s", "/a/b[last()]/preceding-sibling::c")], {})
    >>> lane.match(SlowDocument(Source(b"<a><c/><b/></a>"))).found
    array([7], dtype=int32)
    """

    def __init__(
        self,
        expressions: Sequence[tuple[int, SubscriptionId, str]],
        namespaces: Mapping[str, str],
    ) -> None:
        etree = import_lxml()
        self.expressions: list[_Expression] = []
        refused: list[SubscriptionError] = []
        for number, id, absolute in expressions:
            try:
                expression = _Expression(number, absolute, namespaces)
                expression.truth(etree.fromstring(b"<a/>"))  # some mistakes show only now
                self.expressions.append(expression)
            except (etree.XPathError, ValueError) as error:
                refused.append(SubscriptionSyntaxError(f"lxml refuses it: {error}", id=id))
        if refused:
            raise BadSubscriptions(tuple(refused))

    @classmethod
    def of(cls, subscriptions: Subscriptions, first: int) -> SlowLane | None:
        """The lane for those of a set that need it, or None; a warning says how many they are.

        Args:
            first: the number of the first one as a query.
        """
        odd = [
            (number, entry.id, entry.absolute)
            for number, entry in enumerate(subscriptions.slow, start=first)
            if entry.absolute is not None
        ]
        if not odd:
            return None
        lane = cls(odd, subscriptions.namespaces)
        log.warning("%d of %d subscriptions go through lxml", len(odd), len(subscriptions))
        return lane

    def match(
        self,
        document: SlowDocument,
        nodes_of: Callable[[Any], TreeNodes] | None = None,
        limit: int = 0,
    ) -> SlowAnswers:
        """What is true of a document.

        A failure concerns its query alone. Where lxml cannot parse the document, all queries fail.

        Args:
            nodes_of: where the nodes of a tree stand; None where nodes are not asked for.
            limit: nodes of one query.
        """
        etree = import_lxml()
        found: list[int] = []
        answers = SlowAnswers(np.zeros(0, np.int32), {}, {})
        try:
            tree = lxml_tree(document.source, document.head)
            nodes = None if nodes_of is None else nodes_of(tree)
        except SlowLaneError as error:
            return answers._replace(failed={each.number: error for each in self.expressions})
        for expression in self.expressions:
            number = expression.number
            try:
                is_true = expression.truth(tree)
                if nodes is not None:
                    answers.selected[number] = expression.selected(tree, nodes, limit)
                if is_true:
                    found.append(number)
            except SlowLaneError as error:
                answers.failed[number] = error
            except etree.XPathError as error:
                answers.failed[number] = SlowLaneError(
                    f"lxml cannot evaluate the expression: {error}"
                )
        return answers._replace(found=np.array(found, np.int32))


def record_documents(found: RecordBatch) -> Iterator[SlowDocument | None]:
    """The records of a batch, to be read alone; None for one in error."""
    excerpt, offsets = found.excerpt, found.offsets
    for number in range(found.batch.documents):
        if number in found.errors:
            yield None
            continue
        assert excerpt is not None, "the batch has offsets"
        head = offsets.context_of(number)
        start, end = offsets.starts[number] - excerpt.start, offsets.ends[number] - excerpt.start
        yield SlowDocument(
            Source(head + bytes(excerpt.data[start:end]), excerpt.encoding), len(head)
        )


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


def lxml_boolean(absolute: str, namespaces: Mapping[str, str]) -> etree.XPath:
    """An absolute expression for lxml, returning its boolean.

    libxml2 converts it: lxml leaves the document node out of the node sets that it returns.
    """
    return lxml_xpath(f"boolean({absolute})", namespaces)


def lxml_xpath(absolute: str, namespaces: Mapping[str, str]) -> etree.XPath:
    """An absolute expression for lxml.

    A default namespace is in the expression already (``parse_for_slow_lane``).
    """
    prefixes = {prefix: uri for prefix, uri in namespaces.items() if prefix}
    xpath: etree.XPath = import_lxml().XPath(absolute, namespaces=prefixes or None)
    return xpath


def lxml_tree(source: Source, head: int = 0) -> etree._ElementTree[Any]:
    """Parse a document with lxml to the same nodes as Tamis does; nothing external is fetched.

    What a DTD declares, libxml2 reads otherwise than libexpat, which Tamis follows; and it makes
    nodes of empty CDATA sections. So libexpat resolves such documents first, records, and documents
    with references to entities that only an external DTD could declare.

    Args:
        head: how many bytes come before a record; 0 where there is none.

    Raises:
        SlowLaneError: one of them cannot parse it.
    """
    etree = import_lxml()
    data = bytes(source.data)
    doctype = _DOCTYPE.match(data)
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


def _unparsed(message: str, *place: int) -> SlowLaneError:
    without_place = re.sub(r", line \d+, column \d+$", "", message)
    return SlowLaneError(f"lxml cannot parse the document: {without_place}", *place)


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
