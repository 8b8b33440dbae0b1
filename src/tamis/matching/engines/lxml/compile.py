"""Queries outside the streamed fragment → expressions that lxml has compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.core.errors import MissingExtra, SubscriptionError, SubscriptionSyntaxError
from tamis.documents.vocabulary import Projection
from tamis.language.model import Query
from tamis.matching.engine import UnusableQueries

if TYPE_CHECKING:
    from lxml import etree


class LxmlExpression:
    """An absolute expression, compiled for lxml.

    Its truth is what libxml2 says: lxml leaves the document node out of the node sets that it
    returns.
    """

    def __init__(self, absolute: str, namespaces: Mapping[str, str]) -> None:
        self.truth = lxml_boolean(absolute, namespaces)
        self.value = lxml_xpath(absolute, namespaces)
        self.count = lxml_xpath(f"count({absolute})", namespaces)


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
    """The truth of an absolute expression, for lxml."""
    return lxml_xpath(f"boolean({absolute})", namespaces)


def lxml_xpath(absolute: str, namespaces: Mapping[str, str]) -> etree.XPath:
    """An absolute expression for lxml; a default namespace is in it already."""
    prefixes = {prefix: uri for prefix, uri in namespaces.items() if prefix}
    xpath: etree.XPath = import_lxml().XPath(absolute, namespaces=prefixes or None)
    return xpath
