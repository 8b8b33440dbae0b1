"""The slow lane: subscriptions outside the streamed fragment, document by document, through lxml.

It exists so that a set with a few odd expressions can be moved over whole (``unsupported="slow"``).
Each such subscription costs a full lxml evaluation a document.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.documents.batch import Int32
from tamis.documents.resolved import resolved
from tamis.documents.source import Source
from tamis.errors import (
    BadSubscriptions,
    MalformedDocument,
    MissingExtra,
    SlowLaneError,
    SubscriptionError,
    SubscriptionId,
    SubscriptionSyntaxError,
)
from tamis.language.subscriptions import Subscriptions

if TYPE_CHECKING:
    from lxml import etree

log = logging.getLogger("tamis")

# What libxml2 refuses though it is well-formed, namespaces included.
_WELL_FORMED = frozenset(("DTD_XMLID_VALUE", "DTD_ID_REDEFINED", "WAR_NS_URI", "NS_ERR_COLON"))
# The prolog up to the internal DTD subset.
_DOCTYPE = re.compile(
    rb"""(?:[^<]|<\?.*?\?>|<!--.*?-->)*+<!DOCTYPE(?:"[^"]*+"|'[^']*+'|[^>"'\[])*+(?P<subset>\[)?""",
    re.DOTALL,
)


class SlowLane:
    """Expressions that lxml evaluates.

    Args:
        expressions: (query number, id, absolute expression).
        namespaces: prefix → URI.

    Raises:
        MissingExtra: lxml is not installed.
        BadSubscriptions: lxml refuses expressions that are XPath 1.0.

    >>> lane = SlowLane([(7, "s", "/a/b[last()]/preceding-sibling::c")], {})
    >>> lane.match(Source(b"<a><c/><b/></a>", None))
    (array([7], dtype=int32), {})
    """

    def __init__(
        self,
        expressions: Sequence[tuple[int, SubscriptionId, str]],
        namespaces: Mapping[str, str],
    ) -> None:
        etree = import_lxml()
        self.evaluators: list[tuple[int, SubscriptionId, Any]] = []
        refused: list[SubscriptionError] = []
        for number, id, expression in expressions:
            try:
                evaluator = lxml_boolean(expression, namespaces)
                evaluator(etree.fromstring(b"<a/>"))  # some mistakes show only now
                self.evaluators.append((number, id, evaluator))
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

    def match(self, source: Source) -> tuple[Int32, dict[int, SlowLaneError]]:
        """The numbers of the queries that are true of a document, ascending; and the failures.

        A failure concerns its query alone. Where lxml cannot parse the document, all queries fail.
        """
        etree = import_lxml()
        try:
            tree = lxml_tree(source)
        except SlowLaneError as error:
            return np.zeros(0, np.int32), {number: error for number, _, _ in self.evaluators}
        found: list[int] = []
        failed: dict[int, SlowLaneError] = {}
        for number, _, evaluator in self.evaluators:
            try:
                if evaluator(tree):
                    found.append(number)
            except etree.XPathError as error:
                failed[number] = SlowLaneError(f"lxml cannot evaluate the expression: {error}")
        return np.array(found, dtype=np.int32), failed


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

    libxml2 converts it, since lxml leaves the document node out of the node sets that it returns.
    """
    prefixes = {prefix: uri for prefix, uri in namespaces.items() if prefix}
    xpath: etree.XPath = import_lxml().XPath(f"boolean({absolute})", namespaces=prefixes or None)
    return xpath


def lxml_tree(source: Source) -> etree._ElementTree[Any]:
    """Parse a document with lxml to the same nodes as Tamis does; nothing external is fetched.

    What a DTD declares, libxml2 reads otherwise than libexpat, which Tamis follows. So libexpat
    resolves a document with an internal subset first, and one with references to entities that
    only an external DTD could declare.

    Raises:
        SlowLaneError: one of them cannot parse it.
    """
    etree = import_lxml()
    doctype = _DOCTYPE.match(bytes(source.data))
    if doctype is None or not doctype["subset"]:
        try:
            return _parsed(source)
        except etree.XMLSyntaxError as error:
            if doctype is None:
                raise _unparsed(error.msg, *error.position) from None
    try:
        return _parsed(resolved(source))
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
        found = {entry.type_name for entry in parser.error_log}
        if not found or found - _WELL_FORMED:
            raise
        return _parsed(source, recover=True)
    return tree
