"""All kinds of live sets, as histories of calls have them."""

from typing import Any

import tamis
from tamis.core.errors import SubscriptionId
from tests.core.index.toy import Compiled, Words
from tests.support.histories import EXPRESSIONS, Kind


def words_found(found: Any) -> list[list[SubscriptionId]]:
    words = found.words if isinstance(found, Compiled) else found.snapshot().items()
    return [[id for id, word in words if word == "abc"[number]] for number in EXPRESSIONS]


def documents_found(matcher: Any) -> list[list[SubscriptionId]]:
    return [list(match) for match in matcher.match_many([f"<a{n}/>" for n in EXPRESSIONS])]


def events_found(matcher: Any) -> list[list[SubscriptionId]]:
    return [list(match) for match in matcher.match_many([{"a": n} for n in EXPRESSIONS])]


def transformations_found(transformer: Any) -> list[list[SubscriptionId]]:
    if not hasattr(transformer, "transform_many"):  # which has no such methods
        transformer = tamis.Transformer(
            {each.id: each.transformation for each in transformer.subscriptions}
        )
    documents = [f"<a{n}/>" for n in EXPRESSIONS]
    return [messages.subscriptions for messages in transformer.transform_many(documents)]


WORDS = Kind("words", Words, lambda n: "abc"[n], words_found)
KINDS = [
    WORDS,
    Kind("documents", tamis.Matcher, lambda n: f"/a{n}", documents_found),
    Kind("events", tamis.EventMatcher, lambda n: f"a = {n}", events_found),
    Kind(
        "transformations",
        tamis.Transformer,
        lambda n: f"<r>{{ for $a in /a{n} return <m/> }}</r>",
        transformations_found,
    ),
]
