"""Tamis and lxml, side by side on the same documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tamis.cli.console import warn
from tamis.core.errors import DocumentError, SlowLaneError, SubscriptionId
from tamis.documents.encodings import DeclaredEncoding
from tamis.documents.source import Document, read
from tamis.language.subscriptions import Subscription, Subscriptions
from tamis.language.xpath import parse_for_slow_lane
from tamis.matching.engines.lxml.slow import SlowDocument, SlowLane, lxml_boolean
from tamis.matching.matcher import compile_subscriptions


class Difference(NamedTuple):
    """A subscription that one of them finds true of a document, and the other false."""

    id: SubscriptionId
    expression: str
    tamis: bool
    lxml: bool


class Compared(NamedTuple):
    """The differences in one document, and the subscriptions that lxml cannot answer."""

    differences: list[Difference]
    failed: dict[SubscriptionId, SlowLaneError]


class AgainstLxml:
    """Compares the answers to the subscriptions that Tamis does not itself leave to lxml.

    A warning names each that lxml refuses to compile; it is not compared.

    Raises:
        MissingExtra: lxml is not installed.
    """

    def __init__(self, subscriptions: Subscriptions) -> None:
        streamed = [item for item in subscriptions if item.absolute is None]
        self.lxml, self.items = _accepted_by_lxml(streamed, subscriptions)
        self.tamis = compile_subscriptions(subscriptions.with_entries(self.items))

    def compare(
        self, document: Document | DocumentError, declared: DeclaredEncoding = "check"
    ) -> Compared:
        """Match a document with both.

        Raises:
            DocumentError: Tamis cannot answer it.
        """
        if isinstance(document, DocumentError):
            raise document
        source = read(document, self.tamis.limits, declared)
        matches = self.tamis.match_batch([source])
        if matches.errors:
            raise matches.errors[0]
        found, failed, _ = self.lxml.match(SlowDocument(source))
        by_tamis, by_lxml = set(matches.numbers(0).tolist()), set(found.tolist())
        differences = [
            Difference(item.id, item.expression, number in by_tamis, number in by_lxml)
            for number in sorted((by_tamis ^ by_lxml) - failed.keys())
            for item in [self.items[number]]
        ]
        return Compared(differences, {self.items[n].id: error for n, error in failed.items()})


def _accepted_by_lxml(
    items: Sequence[Subscription], subscriptions: Subscriptions
) -> tuple[SlowLane, list[Subscription]]:
    """Those that lxml can compile, compiled together.

    It knows no names that came with XML 1.0's fifth edition, for instance.
    """
    namespaces, rules = subscriptions.namespaces, subscriptions.rules
    SlowLane([], namespaces)  # without lxml, this says what to install
    from lxml.etree import XPathError  # noqa: PLC0415

    accepted: list[Subscription] = []
    expressions: list[tuple[int, SubscriptionId, str]] = []
    for item in items:
        text = parse_for_slow_lane(item.expression, rules.namespaces, rules.limits)
        try:
            lxml_boolean(text, namespaces)
        except (XPathError, ValueError) as error:
            warn(f"subscription {item.id!r} is not compared: lxml refuses it: {error}")
        else:
            expressions.append((len(accepted), item.id, text))
            accepted.append(item)
    return SlowLane(expressions, namespaces), accepted
