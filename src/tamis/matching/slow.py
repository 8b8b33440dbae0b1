"""The slow lane: subscriptions outside the streamed fragment, document by document, through lxml.

It exists so that a set with a few odd expressions can be moved over whole (``unsupported="slow"``).
Each such subscription costs a full lxml evaluation a document.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tamis.documents.batch import Int32
from tamis.documents.source import Source
from tamis.errors import (
    BadSubscriptions,
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
    array([7], dtype=int32)
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

    def match(self, source: Source) -> Int32:
        """The numbers of the queries that are true of a document, ascending.

        Raises:
            SlowLaneError: lxml cannot parse the document or evaluate an expression on it.
        """
        etree = import_lxml()
        try:
            tree = lxml_tree(source)
        except etree.XMLSyntaxError as error:
            line, column = error.position
            raise SlowLaneError(f"lxml cannot parse it: {error.msg}", line, column) from None
        found = []
        for number, id, evaluator in self.evaluators:
            try:
                if evaluator(tree):
                    found.append(number)
            except etree.XPathError as error:
                raise SlowLaneError(
                    f"lxml cannot evaluate the subscription {id!r}: {error}"
                ) from None
        return np.array(found, dtype=np.int32)


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

    Raises:
        etree.XMLSyntaxError: lxml cannot parse it.
    """
    etree = import_lxml()
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
    lxml = import_lxml()
    parser = lxml.XMLParser(
        encoding=source.encoding,
        attribute_defaults=True,  # which would read external DTDs, but for the resolver below
        resolve_entities=resolve_entities,
        no_network=True,
        load_dtd=False,
        huge_tree=True,  # the document has passed our own limits by now
    )

    class Nothing(lxml.Resolver):  # type: ignore[misc, name-defined]
        def resolve(self, _url: str, _public: str, context: Any) -> Any:
            return self.resolve_string("", context)  # resolve_empty() would read it

    parser.resolvers.add(Nothing())
    tree: etree._ElementTree[Any] = lxml.fromstring(bytes(source.data), parser).getroottree()
    return tree
