"""The slow lane: subscriptions outside the streamed fragment, document by document, through lxml.

It exists so that a set with a few odd expressions can be moved over whole (``unsupported="slow"``).
Each such subscription costs a full lxml evaluation a document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import isnan
from typing import Any

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
        namespaces = self.namespaces or None
        return [
            etree.XPath(expression, namespaces=namespaces) for _, _, expression in self.expressions
        ]

    def match(self, source: Source) -> Int32:
        """The numbers of the subscriptions that are true of a document, ascending.

        Raises:
            SlowLaneError: lxml cannot parse the document or evaluate an expression on it.
        """
        parser = etree.XMLParser(
            encoding=source.encoding,
            resolve_entities="internal",
            no_network=True,
            load_dtd=False,
            huge_tree=True,  # the document has passed our own limits by now
        )
        try:
            tree = etree.fromstring(bytes(source.data), parser).getroottree()
        except etree.XMLSyntaxError as error:
            line, column = error.position
            raise SlowLaneError(f"lxml cannot parse it: {error.msg}", line, column) from None
        found = []
        evaluated = zip(self.expressions, self.evaluators, strict=True)
        for (number, id, _), evaluator in evaluated:
            try:
                if _as_boolean(evaluator(tree)):
                    found.append(number)
            except etree.XPathError as error:
                raise SlowLaneError(
                    f"lxml cannot evaluate the subscription {id!r}: {error}"
                ) from None
        return np.array(found, dtype=np.int32)


def _as_boolean(result: bool | float | str | list[Any]) -> bool:
    """XPath's boolean() of what lxml returns."""
    return bool(result) and not (isinstance(result, float) and isnan(result))
