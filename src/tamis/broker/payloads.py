"""``Payloads``: what a delivery contains: ids, the document, the nodes, or a message of FLWR.

Nodes and messages are made when they are delivered, of the document and the subscription's present
expression: so a message that thousands of subscriptions match is stored once.
"""

from __future__ import annotations

import base64
import threading
from collections import OrderedDict
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

import tamis
from tamis.broker.core.model import Message, StoredMessage, Subscription
from tamis.broker.core.queue import Delivery
from tamis.broker.index import BOM, kind_of
from tamis.core.errors import MessageLimitError, TamisError

_COMPILED_MAX = 1_000
_PAYLOAD_CHARACTERS_MAX = 16 << 20


class Payloads:
    """Makes the JSON of deliveries. The expressions that were used last are kept compiled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compiled: OrderedDict[tuple[Any, ...], Any] = OrderedDict()

    def delivery(
        self,
        topic: str,
        namespaces: dict[str, str],
        subscription: Subscription,
        delivery: Delivery,
        stored: StoredMessage | None,
    ) -> dict[str, Any]:
        """What a consumer gets.

        Args:
            stored: the message; None: it is deleted, which the delivery says.
        """
        found: dict[str, Any] = {
            "topic": topic,
            "subscription": subscription.id,
            "number": delivery.number,
            "attempt": delivery.attempt,
            "replay": delivery.is_replay,
        }
        if stored is None:
            return found | {"deleted": True}
        message = stored.message
        found |= {"accepted": rfc3339(stored.accepted), "version": stored.matched.version}
        found["content_type"] = message.content_type
        if message.id:
            found["id"] = message.id
        if message.attributes:
            found["cloudevent"] = orjson.Fragment(message.attributes)
        if message.trace:
            found["traceparent"] = message.trace
        try:
            return found | self._payload(namespaces, subscription, message)
        except TamisError as error:  # the subscription was replaced by one that it cannot answer
            return found | {"error": str(error)}

    def _payload(
        self, namespaces: dict[str, str], subscription: Subscription, message: Message
    ) -> dict[str, Any]:
        body = message.body
        match subscription.payload:
            case "document":
                return document(message.content_type, body)
            case "nodes" if subscription.language == "xpath":
                matcher = self._matcher(namespaces, subscription)
                match = matcher.match(body, nodes="all")
                return {"nodes": _bounded(match.nodes("s").fragments()) if match else []}
            case "message" if subscription.language == "flwr":
                made = self._matcher(namespaces, subscription).transform(body)
                return {"message": made[0].text if len(made) else None}
        return {}

    def _matcher(self, namespaces: dict[str, str], subscription: Subscription) -> Any:
        language, expression = subscription.language, subscription.expression
        key = language, expression, *sorted(namespaces.items())
        with self._lock:
            found = self._compiled.pop(key, None)
            if found is None:
                make: Any = tamis.compile if language == "xpath" else tamis.Transformer
                found = make({"s": expression}, namespaces=namespaces)
            self._compiled[key] = found
            while len(self._compiled) > _COMPILED_MAX:
                self._compiled.popitem(last=False)
        return found


def _bounded(fragments: Iterable[str]) -> list[str]:
    """The fragments, which may lie within each other, up to a limit."""
    found, left = [], _PAYLOAD_CHARACTERS_MAX
    for fragment in fragments:
        left -= len(fragment)
        if left < 0:
            message = f"the nodes have more than {_PAYLOAD_CHARACTERS_MAX:,} characters together"
            raise MessageLimitError(f"{message}: select smaller ones, or fetch the document")
        found.append(fragment)
    return found


def document(content_type: str, body: bytes) -> dict[str, Any]:
    """A document as a member of a JSON object: JSON as it is, else text, else base 64."""
    if kind_of(content_type) == "json":  # strings of JSON have no line breaks; a stream has lines
        line = body.removeprefix(BOM).replace(b"\n", b" ").replace(b"\r", b" ")
        return {"document": orjson.Fragment(line)}
    try:
        return {"document": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"document_base64": base64.b64encode(body).decode("ascii")}


@lru_cache(4_096)  # the messages of a transaction have one time
def rfc3339(seconds: float) -> str:
    """A time.

    >>> rfc3339(0.5)
    '1970-01-01T00:00:00.500000Z'
    """
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"
