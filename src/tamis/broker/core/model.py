"""What a broker speaks of: messages, subscriptions, transactions; and its errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from tamis.broker.core.queue import BrokerError, Changes, Failure, QueueOptions
from tamis.core.errors import TamisError

Language = Literal["xpath", "flwr", "events"]
Payload = Literal["ids", "document", "nodes", "message"]


class Elsewhere(BrokerError):  # noqa: N818 - says what is the matter
    """Another process has the topic, or none has."""

    code = "broker-elsewhere"


class UnknownName(BrokerError):  # noqa: N818 - says what is unknown
    """There is no such topic, subscription or message."""

    code = "broker-unknown"


class NameTaken(BrokerError):  # noqa: N818 - says what is the matter
    """A topic or subscription of this name exists."""

    code = "broker-taken"


class OverQuota(BrokerError):  # noqa: N818 - says what is the matter
    """The tenant has as many of them as it may have."""

    code = "broker-quota"


class KeyConflict(BrokerError):  # noqa: N818 - says what is the matter
    """Another request had this idempotency key."""

    code = "broker-key"


class KeyInFlight(BrokerError):  # noqa: N818 - says what is the matter
    """The first request with this idempotency key has no answer yet."""

    code = "broker-key-in-flight"


class VersionConflict(BrokerError):  # noqa: N818 - says what is the matter
    """The subscription has another version than the request expects."""

    code = "broker-version"


class Key(NamedTuple):
    """An idempotency key: a second message with the same key is not stored.

    Attributes:
        scope: the tenant and the route.
        fingerprint: a hash of the request. A request with another one may not use the key.
    """

    scope: str
    key: str
    fingerprint: bytes


class Message(NamedTuple):
    """A message as it was published.

    Attributes:
        id: of the publisher, or nothing.
        attributes: of the CloudEvent that it is, as a JSON object, or nothing.
        trace: the ``traceparent`` of the request (W3C Trace Context), or nothing.
    """

    body: bytes
    content_type: str = "application/xml"
    id: str = ""
    attributes: str = ""
    key: Key | None = None
    trace: str = ""


class Webhook(NamedTuple):
    """Where a subscription's messages are sent.

    Attributes:
        url: of the endpoint.
        secrets: each signs every request; two of them while a secret is rotated.
        is_raw: the body is the payload itself, and not a JSON envelope.
    """

    url: str
    secrets: tuple[str, ...] = ()
    is_raw: bool = False


class Subscription(NamedTuple):
    """What a subscriber asks for, and how messages are delivered.

    Attributes:
        payload: what a delivery contains beside the ids of the message and the subscription.
        webhook: None: consumers fetch the messages.
    """

    id: str
    expression: str
    language: Language = "xpath"
    payload: Payload = "ids"
    options: QueueOptions = QueueOptions()
    webhook: Webhook | None = None


class Matched(NamedTuple):
    """The numbers of the subscriptions that a message matches, in a version of the index."""

    version: int
    subscriptions: Sequence[int]


class StoredMessage(NamedTuple):
    """A message, its number in the topic, when it was accepted, and who gets it."""

    number: int
    accepted: float
    message: Message
    matched: Matched


class StoredSubscription(NamedTuple):
    """What is stored of a subscription.

    Attributes:
        version: of the index that its last change made.
        cursor: see :class:`tamis.broker.core.queue.Changes`.
        failures: those with a next attempt, and dead messages beyond the cursor.
    """

    subscription: Subscription
    version: int
    cursor: int
    failures: list[Failure]


class StoredTopic(NamedTuple):
    """What is stored of a topic, as a broker starts with it.

    Attributes:
        last, last_subscription: the highest number that a message and a subscription ever had.
        version: of the index.
        settled: no message up to this number has a delivery to come, failures apart.
        subscriptions: how many there are.
        failing: the subscriptions that have failures with a next attempt.
        matches: number and subscriptions of the messages beyond ``settled``, numbers ascending.
    """

    last: int = 0
    last_subscription: int = 0
    version: int = 0
    settled: int = 0
    subscriptions: int = 0
    failing: Iterable[int] = ()
    matches: Iterable[tuple[int, Sequence[int]]] = ()


class Catalog(Protocol):
    """What is stored of a topic, as a broker looks it up."""

    def find(self, id: str) -> int | None:
        """The number of a subscription."""

    def get(self, number: int) -> StoredSubscription | None:
        """A subscription."""

    def key(self, scope: str, key: str) -> tuple[bytes, int] | None:
        """The fingerprint of an idempotency key, and the number of its message."""

    def matched(self, number: int, after: int, last: int) -> Sequence[int]:
        """The messages for a subscription beyond ``after``, up to ``last``, without dead ones."""


class Index(Protocol):
    """The subscriptions of a topic, as they match messages."""

    def check(self, subscription: Subscription) -> None:
        """Raise a ``SubscriptionError`` if the subscription cannot be used."""

    def change(self, put: Mapping[int, Subscription], gone: Sequence[int]) -> None:
        """Add or replace subscriptions, and remove others."""

    def match(self, messages: Sequence[Message]) -> Sequence[Sequence[int] | TamisError]:
        """The subscriptions that each message matches, or why a message cannot be read."""


class Reply(NamedTuple):
    """The answer to a request.

    Attributes:
        number: of the message or the subscription; 0 if there is none.
        version: of the index that matched the message, or the first one with the change.
        matches: how many subscriptions the message matches; None for a repeated request.
        error: why the command was refused.
    """

    request: Any
    number: int = 0
    version: int = 0
    matches: int | None = None
    error: TamisError | None = None


Name = tuple[str, int]
"""A topic, and the number of one of its subscriptions."""


def no_topic(name: str) -> UnknownName:
    """What is said of a topic that is not there."""
    return UnknownName(f"there is no topic {name.partition('/')[2]!r}")


def tenant_of(topic: str) -> str:
    """The tenant of a topic, which is named ``TENANT/TOPIC``."""
    return topic.partition("/")[0]


class Counters(NamedTuple):
    """The numbers of a topic: see ``StoredTopic``."""

    last: int
    last_subscription: int
    version: int
    settled: int


class Transaction(NamedTuple):
    """What is stored together.

    Attributes:
        messages: by topic, numbers ascending.
        put: subscriptions that are new or replaced, and the versions that contain them. A new one
            has the cursor ``Counters.last`` of its topic.
        removed: subscriptions, and the first versions without them.
        changes: of the deliveries of subscriptions.
        forgotten: by topic: messages up to this number are deleted.
        counters: of each topic that the transaction concerns.
        replies: the answers that are given when all this is stored.
    """

    messages: dict[str, list[StoredMessage]]
    put: dict[Name, tuple[Subscription, int]]
    removed: dict[Name, int]
    changes: dict[Name, Changes]
    forgotten: dict[str, int]
    counters: dict[str, Counters]
    replies: list[Reply]


class TopicOptions(NamedTuple):
    """How a topic is kept.

    Attributes:
        namespaces: prefixes that expressions may use.
        retention_s, retention_bytes: older messages are deleted, delivered or not.
    """

    namespaces: Mapping[str, str] = {}
    retention_s: float = 7 * 86_400.0
    retention_bytes: int = 64 << 30


class Quotas(NamedTuple):
    """How much a tenant may have."""

    topics_max: int = 1_000
    subscriptions_max: int = 2_000_000
