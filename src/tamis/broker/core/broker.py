"""``Broker``: commands of publishers and subscribers in, transactions and replies out.

Nothing here reads a clock, waits, or writes. A command is part of the next transaction. The caller
stores it, and says so; replies are given then, and not before: what was answered is durable. One
transaction is on its way at a time, so messages are numbered in the order in which they are stored.

A transaction of which nobody can say whether it was stored ends a ``Broker``: the caller makes
another one, of what is stored. So nothing is ever taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from tamis.broker.core.queue import (
    BrokerError,
    Changes,
    DeliveryQueue,
    Failure,
    Lease,
    QueueOptions,
)
from tamis.core.errors import TamisError


class UnknownName(BrokerError):  # noqa: N818 - says what is unknown
    """There is no such topic or subscription."""

    code = "broker-unknown"


class NameTaken(BrokerError):  # noqa: N818 - says what is the matter
    """There is a topic or subscription of this name."""

    code = "broker-taken"


class OverQuota(BrokerError):  # noqa: N818 - says what is the matter
    """There are as many of them as there may be."""

    code = "broker-quota"


class KeyConflict(BrokerError):  # noqa: N818 - says what is the matter
    """Another request had this idempotency key, or the same one is being followed."""

    code = "broker-key"


class Key(NamedTuple):
    """An idempotency key: a message that comes again with it is not stored again.

    Attributes:
        scope: the tenant and the route.
        fingerprint: of the whole request: another one may not have the key.
    """

    scope: str
    key: str
    fingerprint: bytes


class Message(NamedTuple):
    """A message as it was published."""

    body: bytes
    content_type: str = "application/xml"
    id: str = ""
    key: Key | None = None


class Subscription(NamedTuple):
    """What a subscriber asks for, and how it is delivered."""

    id: str
    expression: str
    options: QueueOptions = QueueOptions()


class Matched(NamedTuple):
    """The numbers of the subscriptions that a message matches, in a version of the index."""

    version: int
    subscriptions: Sequence[int]


class StoredMessage(NamedTuple):
    """A message, its number in the topic, when it was accepted, and whom it is for."""

    number: int
    accepted: float
    message: Message
    matched: Matched


class Index(Protocol):
    """The subscriptions of a topic, as they match messages."""

    @property
    def version(self) -> int: ...

    def add(self, expressions: Mapping[int, str]) -> None: ...

    def remove(self, number: int) -> None: ...

    def match(self, messages: Sequence[Message]) -> Sequence[Matched | TamisError]: ...


class Reply(NamedTuple):
    """The answer to a request.

    Attributes:
        number: of the message or the subscription; 0 if there is none.
        version: of the index that matched the message, or from which on the subscription counts.
        error: if the command was not followed.
    """

    request: Any
    number: int = 0
    version: int = 0
    error: TamisError | None = None


_Name = tuple[str, int]
"""A topic, and the number of one of its subscriptions."""


class Transaction(NamedTuple):
    """What is stored together.

    Attributes:
        messages: by topic, numbers ascending.
        added: subscriptions, and the last message that was there before.
        removed: subscriptions.
        changes: of the deliveries of subscriptions.
        replies: what is answered when all this is stored.
    """

    messages: dict[str, list[StoredMessage]]
    added: dict[_Name, tuple[Subscription, int]]
    removed: list[_Name]
    changes: dict[_Name, Changes]
    replies: list[Reply]


class StoredTopic(NamedTuple):
    """What is stored of a topic.

    Attributes:
        last, last_subscription: the numbers of the last message and subscription that there were.
        subscriptions: by number, with the cursor and the failures that are not dead.
        matches: of the messages at least behind the least cursor, numbers ascending: the number,
            and the subscriptions that it is for.
        keys: idempotency keys that hold, and the numbers of their messages.
    """

    last: int
    last_subscription: int
    subscriptions: dict[int, tuple[Subscription, int, list[Failure]]]
    matches: Iterable[tuple[int, Sequence[int]]]
    keys: dict[Key, int]


class _Topic:
    """A topic: its index, and what is to be delivered to each subscription.

    Most subscriptions have nothing to get, and no queue.
    """

    def __init__(
        self, stored: StoredTopic, index: Index, draw: Callable[[], float], epoch: int
    ) -> None:
        self.index, self._draw, self._epoch = index, draw, epoch
        self.last = self._known = stored.last
        self.last_subscription = stored.last_subscription
        self.subscriptions = dict(stored.subscriptions)
        asked = {number: each[0] for number, each in self.subscriptions.items()}
        self.numbers = {each.id: number for number, each in asked.items()}
        self.queues: dict[int, DeliveryQueue] = {}
        self.keys = {
            (key.scope, key.key): (key.fingerprint, number) for key, number in stored.keys.items()
        }
        index.add({number: each.expression for number, each in asked.items()})
        for message, matched in stored.matches:
            for number in matched:
                if number in self.subscriptions and message > self.subscriptions[number][1]:
                    self.queue(number).add(message)

    def queue(self, number: int) -> DeliveryQueue:
        """That of a subscription."""
        found = self.queues.get(number)
        if found is None:
            subscription, cursor, failures = self.subscriptions[number]
            found = self.queues[number] = DeliveryQueue(
                subscription.options, self._draw,
                cursor=cursor, failures=failures, known=self._known, epoch=self._epoch,
            )  # fmt: skip
        return found

    def add(self, subscription: Subscription) -> int:
        """Its number. It gets messages behind the last one."""
        self.index.add({self.last_subscription + 1: subscription.expression})
        self.last_subscription += 1
        self.subscriptions[self.last_subscription] = subscription, self.last, []
        self.numbers[subscription.id] = self.last_subscription
        return self.last_subscription

    def remove(self, number: int) -> None:
        self.index.remove(number)
        del self.numbers[self.subscriptions.pop(number)[0].id]
        self.queues.pop(number, None)

    def key_of(self, message: Message) -> int | None:
        """The number of the message that has this one's key; 0 while it is being stored."""
        if message.key is None:
            return None
        found = self.keys.get((message.key.scope, message.key.key))
        if found is not None and found[0] != message.key.fingerprint:
            raise KeyConflict(f"another request had the idempotency key {message.key.key!r}")
        return None if found is None else found[1]

    def enter(self, message: Message, number: int) -> None:
        """Have the key of a message, if it has one."""
        if message.key is not None:
            self.keys[message.key.scope, message.key.key] = message.key.fingerprint, number

    def leave(self, message: Message) -> None:
        """Do not have its key any more."""
        if message.key is not None:
            del self.keys[message.key.scope, message.key.key]


class Broker:
    """Topics, their messages and subscriptions, and the deliveries of these.

    Args:
        topics: by name, as they are stored.
        make_index: makes one without subscriptions.
        draw: a number from 0 to 1: see ``DeliveryQueue``.
        epoch: brokers that are made later of the same store have larger ones.
        subscriptions_max: of a topic.
    """

    def __init__(
        self,
        topics: Mapping[str, StoredTopic],
        make_index: Callable[[], Index],
        draw: Callable[[], float],
        *,
        epoch: int = 0,
        subscriptions_max: int = 1_000_000,
    ) -> None:
        self._subscriptions_max = subscriptions_max
        self._topics = {
            name: _Topic(stored, make_index(), draw, epoch) for name, stored in topics.items()
        }
        self._published: dict[str, list[tuple[Any, Message]]] = {}
        self._added: dict[_Name, tuple[Subscription, int]] = {}
        self._removed: list[_Name] = []
        self._changed: dict[_Name, None] = {}  # in order
        self._leased: dict[_Name, None] = {}
        self._replies: list[Reply] = []
        self._stored_now: Transaction | None = None

    # -- commands ----------------------------------------------------------------------------------

    def publish(self, request: Any, topic: str, message: Message) -> None:
        """Store a message, and whom it is for."""
        self._topic(topic)
        self._published.setdefault(topic, []).append((request, message))

    def subscribe(self, request: Any, topic: str, subscription: Subscription) -> None:
        """Add a subscription, for messages that are accepted after the answer, at the latest."""
        found = self._topic(topic)
        if subscription.id in found.numbers:
            raise NameTaken(f"topic {topic!r} has a subscription {subscription.id!r}")
        if len(found.numbers) >= self._subscriptions_max:
            raise OverQuota(f"topic {topic!r} has {len(found.numbers):,} subscriptions: no more")
        number = found.add(subscription)
        self._added[topic, number] = subscription, found.last
        self._replies.append(Reply(request, number, found.index.version))

    def unsubscribe(self, request: Any, topic: str, subscription: str) -> None:
        """Remove a subscription, and what was to be delivered to it."""
        name = self._name(topic, subscription)
        self._topics[topic].remove(name[1])
        self._removed.append(name)
        self._replies.append(Reply(request, name[1], self._topics[topic].index.version))

    def take(
        self, topic: str, subscription: str, most: int, now: float, seconds: float
    ) -> Lease | None:
        """What a subscriber is to get next: see ``DeliveryQueue.take``."""
        name = self._name(topic, subscription)
        lease = self._queue_of(name).take(most, now, seconds)
        if lease is not None:
            self._leased[name] = None
        return lease

    def acknowledge(
        self, request: Any, topic: str, subscription: str, token: int, number: int
    ) -> None:
        """A message was delivered."""
        name = self._name(topic, subscription)
        self._queue_of(name).acknowledge(token, number)
        self._change(name, request)

    def fail(
        self, request: Any, topic: str, subscription: str, token: int, number: int,
        reason: str, now: float,
    ) -> None:  # fmt: skip
        """An attempt failed."""
        name = self._name(topic, subscription)
        self._queue_of(name).fail(token, number, reason, now)
        self._change(name, request)

    def replay(
        self, request: Any, topic: str, subscription: str, failure: Failure, now: float
    ) -> None:
        """Deliver a dead message again."""
        name = self._name(topic, subscription)
        self._queue_of(name).replay(failure, now)
        self._change(name, request)

    def expire(self, now: float) -> None:
        """End leases whose time is over."""
        leased, self._leased = self._leased, {}
        for topic, number in leased:
            queue = self._topics[topic].queues.get(number)  # None: it was removed
            if queue is not None and queue.expire(now):
                self._changed[topic, number] = None
            if queue is not None and queue.is_leased:
                self._leased[topic, number] = None

    def _change(self, name: _Name, request: Any) -> None:
        self._changed[name] = None
        self._replies.append(Reply(request))

    def _topic(self, name: str) -> _Topic:
        try:
            return self._topics[name]
        except KeyError:
            raise UnknownName(f"there is no topic {name!r}") from None

    def _name(self, topic: str, subscription: str) -> _Name:
        try:
            return topic, self._topic(topic).numbers[subscription]
        except KeyError:
            raise UnknownName(f"topic {topic!r} has no subscription {subscription!r}") from None

    def _queue_of(self, name: _Name) -> DeliveryQueue:
        return self._topics[name[0]].queue(name[1])

    # -- transactions ------------------------------------------------------------------------------

    def begin(self, now: float) -> Transaction | None:
        """The next transaction; None if there is nothing to store, or one is on its way."""
        if self._stored_now is not None:
            return None
        published, self._published = self._published, {}
        every = {topic: self._numbered(topic, each, now) for topic, each in published.items()}
        messages = {topic: each for topic, each in every.items() if each}
        changes = {}
        for topic, number in self._changed:
            queue = self._topics[topic].queues.get(number)  # None: it was removed
            if queue is not None and (found := queue.changes()) is not None:
                changes[topic, number] = found
        transaction = Transaction(messages, self._added, self._removed, changes, self._replies)
        self._added, self._removed, self._changed, self._replies = {}, [], {}, []
        self._stored_now = transaction if any(transaction) else None
        return self._stored_now

    def _numbered(
        self, name: str, published: Sequence[tuple[Any, Message]], now: float
    ) -> list[StoredMessage]:
        """Match messages, and number those that are stored."""
        topic, found = self._topics[name], []
        fresh: list[tuple[Any, Message]] = []
        for request, message in published:
            try:
                number = topic.key_of(message)
            except KeyConflict as error:
                self._replies.append(Reply(request, error=error))
                continue
            if number is None:
                fresh.append((request, message))
                topic.enter(message, 0)
            elif number:
                self._replies.append(Reply(request, number))
            else:
                conflict = KeyConflict("a request with this idempotency key is being followed")
                self._replies.append(Reply(request, error=conflict))
        every = topic.index.match([message for _, message in fresh])
        for (request, message), matched in zip(fresh, every, strict=True):
            if isinstance(matched, TamisError):
                topic.leave(message)
                self._replies.append(Reply(request, error=matched))
                continue
            topic.last += 1
            topic.enter(message, topic.last)
            found.append(StoredMessage(topic.last, now, message, matched))
            self._replies.append(Reply(request, topic.last, matched.version))
        return found

    def committed(self) -> list[Reply]:
        """The transaction is stored: its messages are delivered from now on."""
        transaction = self._stored_now
        assert transaction is not None, "no transaction is on its way"
        self._stored_now = None
        for name, messages in transaction.messages.items():
            topic = self._topics[name]
            for message in messages:
                for number in message.matched.subscriptions:
                    # It may have been removed meanwhile.
                    if number in topic.subscriptions and topic.queue(number).add(message.number):
                        self._changed[name, number] = None
        return transaction.replies
