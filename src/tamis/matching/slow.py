"""The slow lane: subscriptions outside the streamed fragment, document by document, through lxml.

It exists so that a set with a few odd expressions can be moved over whole (``unsupported="slow"``).
Each such subscription costs a full lxml evaluation a document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from tamis.documents.batch import Int32
from tamis.documents.source import Source
from tamis.errors import MissingExtra, SlowLaneError, SubscriptionId

try:
    from lxml import etree
except ImportError:
    etree = None  # type: ignore[assignment]


class SlowLane:
    """Expressions that lxml evaluates.

    Args:
        expressions: (subscription number, id, absolute expression).
        namespaces: prefix → URI.

    Raises:
        MissingExtra: lxml is not installed.

    >>> lane = SlowLane([(7, "s", "/a/b[last()]/preceding-sibling::c")], {})
    >>> lane.match(Source(b"<a><c/><b/></a>", None))
    array([7], dtype=int32)
    """

    def __init__(
        self,
        expressions: Sequence[tuple[int, SubscriptionId, str]],
        namespaces: Mapping[str, str],
    ) -> None:
        if etree is None:
            raise MissingExtra("slow", "lxml")
        self.expressions = expressions
        self.namespaces = dict(namespaces)

    @cached_property
    def evaluators(self) -> list[Any]:
        """The expressions compiled by libxml2."""
        return [lxml_boolean(expression, self.namespaces) for _, _, expression in self.expressions]

    def match(self, source: Source) -> Int32:
        """The numbers of the subscriptions that are true of a document, ascending.

        Raises:
            SlowLaneError: lxml cannot parse the document or evaluate an expression on it.
        """
        try:
            tree = lxml_tree(source)
        except etree.XMLSyntaxError as error:
            line, column = error.position
            raise SlowLaneError(f"lxml cannot parse it: {error.msg}", line, column) from None
        found = []
        evaluated = zip(self.expressions, self.evaluators, strict=True)
        for (number, id, _), evaluator in evaluated:
            try:
                if evaluator(tree):
                    found.append(number)
            except etree.XPathError as error:
                raise SlowLaneError(
                    f"lxml cannot evaluate the subscription {id!r}: {error}"
                ) from None
        return np.array(found, dtype=np.int32)


def lxml_boolean(absolute: str, namespaces: Mapping[str, str]) -> etree.XPath:
    """An absolute expression for lxml, returning its boolean.

    libxml2 converts it, since lxml leaves the document node out of the node sets that it returns.
    """
    return etree.XPath(f"boolean({absolute})", namespaces=dict(namespaces) or None)


def lxml_tree(source: Source) -> etree._ElementTree[Any]:
    """Parse a document with lxml to the same nodes as Tamis does; nothing external is fetched.

    Raises:
        etree.XMLSyntaxError: lxml cannot parse it.
    """
    try:
        return _parsed(source, "internal")
    except etree.XMLSyntaxError as error:
        # An entity that an external DTD may declare stands for nothing here, and for an error in
        # lxml, unless lxml leaves all references alone; then there must be no others.
        if error.code != etree.ErrorTypes.WAR_UNDECLARED_ENTITY:
            raise
        tree = _parsed(source, False)
        subset = tree.docinfo.internalDTD
        if subset is not None and any(True for _ in subset.iterentities()):
            raise
        return tree


def _parsed(
    source: Source, resolve_entities: bool | Literal["internal"]
) -> etree._ElementTree[Any]:
    parser = etree.XMLParser(
        encoding=source.encoding,
        resolve_entities=resolve_entities,
        no_network=True,
        load_dtd=False,
        huge_tree=True,  # the document has passed our own limits by now
    )
    return etree.fromstring(bytes(source.data), parser).getroottree()
