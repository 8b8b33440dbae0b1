"""``Broker``: commands of publishers and subscribers in, transactions and replies out.

Nothing here reads a clock, waits, or writes. A command is part of the next transaction. The caller
stores the transaction, and says so; only then are replies given: what was answered is durable. One
transaction is stored at a time, so messages are numbered in the order in which they are stored.

If nobody knows whether a transaction was stored, the ``Broker`` ends: the caller makes another one,
of what is stored. So nothing is ever taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import count
from typing import Any

from tamis.broker.core.model import (
    Catalog,
    Elsewhere,
    Index,
    Matched,
    Message,
    Name,
    OverQuota,
    Quotas,
    Reply,
    StoredMessage,
    StoredTopic,
    Subscription,
    Transaction,
    UnknownName,
    VersionConflict,
    no_topic,
    tenant_of,
)
from tamis.broker.core.queue import Changes, DeliveryQueue, Failure, Lease
from tamis.broker.core.topic import REWIND_MAX, Sources, Topic
from tamis.core.errors import TamisError


class Broker:
    """Topics, their messages and subscriptions, and the deliveries of these.

    Args:
        topics: by name, as they are stored. A name is ``TENANT/TOPIC``.
        catalog_of, index_of: what belongs to a topic. The index of a stored topic contains its
            subscriptions.
        draw: a number from 0 to 1: see ``DeliveryQueue``.
        epoch: brokers that are made later of the same store have larger ones.
        every: the names of all topics of the store, those of other brokers too.
    """

    def __init__(
        self,
        topics: Mapping[str, StoredTopic],
        catalog_of: Callable[[str], Catalog],
        index_of: Callable[[str], Index],
        draw: Callable[[], float],
        *,
        epoch: int = 0,
        quotas: Quotas = Quotas(),
        every: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._catalog_of, self._index_of = catalog_of, index_of
        self._quotas, self._every = quotas, every
        self._sources = Sources(draw, count((epoch << 32) + 1).__next__)
        self._topics: dict[str, Topic] = {}
        self._subscriptions = Counter[str]()  # of tenants
        self._published: dict[str, list[tuple[Any, Message]]] = {}
        self._forgotten: dict[str, int] = {}
        self._touched: dict[str, None] = {}  # topics, in order
        self._changed: dict[Name, None] = {}  # in order
        self._leased: dict[Name, None] = {}
        self._replies: list[Reply] = []
        self._storing: Transaction | None = None
        self._ready: list[Name] = []
        for name, stored in topics.items():
            self.adopt(name, stored)

    def adopt(self, name: str, stored: StoredTopic) -> None:
        """Have a topic that is new, or that another broker had."""
        catalog, index = self._catalog_of(name), self._index_of(name)
        found = self._topics[name] = Topic(name, stored, catalog, index, self._sources)
        self._subscriptions[tenant_of(name)] += stored.subscriptions
        self._ready += [(name, number) for number in found.queues]
        self._take_dropped(name)

    def drop(self, name: str) -> None:
        """Have a topic no more, while no transaction is stored; what waits for one is refused."""
        gone = no_topic(name)
        for request, _ in self._published.pop(name, ()):
            self._replies.append(Reply(request, error=gone))
        found = self._topics.pop(name)
        self._subscriptions[tenant_of(name)] -= found.count
        self._touched.pop(name, None)
        self._forgotten.pop(name, None)
        for each in (self._changed, self._leased):
            for of in [of for of in each if of[0] == name]:
                del each[of]
        self._ready = [of for of in self._ready if of[0] != name]

    # -- topics, messages and subscriptions --------------------------------------------------------

    @property
    def topics(self) -> Mapping[str, Topic]:
        """By name."""
        return self._topics

    def topic(self, name: str) -> Topic:
        """A topic.

        Raises:
            UnknownName: there is none.
            Elsewhere: another broker has it.
        """
        try:
            return self._topics[name]
        except KeyError:
            if name in self._every():
                raise Elsewhere("another process has the topic now: try again") from None
            raise no_topic(name) from None

    def check_new(self, name: str) -> None:
        """See that a tenant may have one topic more.

        Raises:
            OverQuota: it may not.
        """
        topics = sum(tenant_of(each) == tenant_of(name) for each in self._every())
        if topics >= self._quotas.topics_max:
            raise OverQuota(f"the tenant has {topics:,} topics: no more")

    def publish(self, topic: str, messages: Sequence[tuple[Any, Message]]) -> None:
        """Store messages, and who gets them; those whose idempotency keys are known are answered.

        Args:
            messages: each with its request.

        Raises:
            KeyConflict, KeyInFlight: of one of them, see ``Topic.key_of``; none is stored.
        """
        found = self.topic(topic)
        known = [found.key_of(message) if message.key else None for _, message in messages]
        published = self._published.setdefault(topic, [])
        for each, number in zip(messages, known, strict=True):
            if number is None:
                found.hold_key(each[1])
                published.append(each)
            else:
                self._replies.append(Reply(each[0], number))

    def subscribe(self, request: Any, topic: str, subscription: Subscription) -> None:
        """Add a subscription, for all messages that are accepted after the answer."""
        found = self.topic(topic)
        if self._subscriptions[tenant_of(topic)] >= self._quotas.subscriptions_max:
            most = self._quotas.subscriptions_max
            raise OverQuota(f"the tenant has {most:,} subscriptions: no more")
        number = found.subscribe(subscription)
        self._subscriptions[tenant_of(topic)] += 1
        self._touched[topic] = None
        self._replies.append(Reply(request, number, found.version))

    def replace(
        self, request: Any, topic: str, subscription: Subscription, version: int | None = None
    ) -> None:
        """Change a subscription; with a version, only if the stored one has it."""
        name = self._name(topic, subscription.id)
        found = self._expect(name, version)
        found.replace(name[1], subscription)
        self._touched[topic] = None
        self._replies.append(Reply(request, name[1], found.version))

    def unsubscribe(
        self, request: Any, topic: str, subscription: str, version: int | None = None
    ) -> None:
        """Remove a subscription, and what it has still to get."""
        name = self._name(topic, subscription)
        found = self._expect(name, version)
        found.remove(name[1])
        self._subscriptions[tenant_of(topic)] -= 1
        self._ready.append(name)  # who waits for it learns that it is gone
        self._touched[topic] = None
        self._replies.append(Reply(request, name[1], found.version))

    def _expect(self, name: Name, version: int | None) -> Topic:
        found = self._topics[name[0]]
        if version is not None and (known := found.version_of(name[1])) != version:
            raise VersionConflict(f"the subscription has version {known or 'to come'}: read again")
        return found

    def forget(self, topic: str, number: int) -> None:
        """Delete the messages up to a number; who has not got them gets a ``Gap``."""
        found = self.topic(topic)
        self._forgotten[topic] = found.forgotten = number
        self._touched[topic] = None
        for each, queue in found.queues.items():
            queue.forget(number)
            self._changed[topic, each] = None

    # -- deliveries --------------------------------------------------------------------------------

    def take(
        self, topic: str, subscription: str, most: int, now: float, seconds: float
    ) -> Lease | None:
        """What a subscriber gets next: see ``DeliveryQueue.take``."""
        name = self._name(topic, subscription)
        lease = self._queue_of(name).take(most, now, seconds)
        if lease is None:
            self._topics[topic].drop_empty(name[1])
        else:
            self._leased[name] = None
        return lease

    def due(self, topic: str, subscription: str) -> float | None:
        """See ``DeliveryQueue.due``."""
        return self._queue_of(self._name(topic, subscription)).due()

    def received(self, topic: str, subscription: str) -> int | None:
        """All messages up to this one were delivered, dropped or are dead.

        None if it is so old that no consumer can name it: see ``Topic.rewind``.
        """
        queue = self._queue_of(self._name(topic, subscription))
        first = queue.first_left()
        found = queue.cursor if first is None else first - 1
        return None if queue.last - found > REWIND_MAX else found

    def extend(self, topic: str, subscription: str, token: int, until: float) -> None:
        """Let a lease end later."""
        self._queue_of(self._name(topic, subscription)).extend(token, until)

    def release(self, topic: str, subscription: str, token: int) -> None:
        """End a lease whose consumer has gone."""
        name = self._name(topic, subscription)
        self._queue_of(name).release(token)
        self._ready.append(name)

    def acknowledge(
        self, request: Any, topic: str, subscription: str, token: int, numbers: Sequence[int]
    ) -> None:
        """Messages were delivered."""
        name = self._name(topic, subscription)
        self._queue_of(name).acknowledge(token, numbers)
        self._change(name, request)

    def fail(
        self, request: Any, topic: str, subscription: str, token: int, number: int,
        reason: str, now: float, wait_s: float = 0.0,
    ) -> None:  # fmt: skip
        """An attempt failed: see ``DeliveryQueue.fail``."""
        name, reason = self._name(topic, subscription), reason.replace("\0", "\ufffd")
        self._queue_of(name).fail(token, number, reason, now, wait_s)
        self._change(name, request)

    def replay(
        self, request: Any, topic: str, subscription: str, failure: Failure, now: float
    ) -> None:
        """Deliver a dead message again."""
        name = self._name(topic, subscription)
        if failure.number <= self._topics[topic].forgotten:
            raise UnknownName(f"message {failure.number} is deleted: it was kept for its time")
        self._queue_of(name).replay(failure, now)
        self._change(name, request)

    def rewind(self, request: Any, topic: str, subscription: str, to: int) -> None:
        """A consumer says that it has all messages up to ``to``, and no later one."""
        name = self._name(topic, subscription)
        self._queue_of(name)
        self._topics[topic].rewind(name[1], to)
        self._change(name, request)

    def expire(self, now: float) -> None:
        """End the leases whose time is over."""
        leased, self._leased = self._leased, {}
        for topic, number in leased:
            queue = self._topics[topic].queues.get(number)  # None: it was removed, or is empty
            if queue is not None and queue.expire(now):
                self._changed[topic, number] = None
                self._ready.append((topic, number))
            if queue is not None and queue.is_leased:
                self._leased[topic, number] = None

    def _change(self, name: Name, request: Any) -> None:
        self._changed[name] = None
        self._ready.append(name)
        self._replies.append(Reply(request))

    def take_ready(self) -> list[Name]:
        """The queues that may have messages to take, since this was called last."""
        found, self._ready = self._ready, []
        return found

    def _name(self, topic: str, subscription: str) -> Name:
        return topic, self.topic(topic).find(subscription)

    def _queue_of(self, name: Name) -> DeliveryQueue:
        found = self._topics[name[0]].queue(name[1])
        if found is None:
            raise UnknownName("the subscription is not stored yet: wait for the answer")
        return found

    # -- transactions ------------------------------------------------------------------------------

    def begin(self, now: float) -> Transaction | None:
        """The next transaction; None if there is nothing to store, or one is being stored."""
        if self._storing is not None:
            return None
        published, self._published = self._published, {}
        every = {topic: self._numbered(topic, each, now) for topic, each in published.items()}
        messages = {topic: each for topic, each in every.items() if each}
        changes = self._changes()
        touched = dict.fromkeys([*messages, *self._touched, *(name for name, _ in changes)])
        put: dict[Name, tuple[Subscription, int]] = {}
        removed: dict[Name, int] = {}
        for name in touched:
            topic = self._topics[name]
            pending = topic.begin()
            put |= {(name, number): each for number, each in pending.put.items()}
            removed |= {(name, number): each for number, each in pending.removed.items()}
        counters = {name: self._topics[name].counters() for name in touched}
        transaction = Transaction(
            messages, put, removed, changes, self._forgotten, counters, self._replies
        )
        self._touched, self._replies, self._forgotten = {}, [], {}
        if any(transaction):
            self._storing = transaction
        return self._storing

    def _changes(self) -> dict[Name, Changes]:
        found: dict[Name, Changes] = {}
        for topic, number in self._changed:
            queue = self._topics[topic].queues.get(number)  # None: it was removed
            if queue is not None and (changes := queue.changes()) is not None:
                found[topic, number] = changes
        self._changed = {}
        return found

    def _take_dropped(self, name: str) -> None:
        """Have the gaps of queues that were too long stored."""
        dropped = self._topics[name].dropped
        while dropped:
            self._changed[name, dropped.pop()] = None

    def _numbered(
        self, name: str, published: Sequence[tuple[Any, Message]], now: float
    ) -> list[StoredMessage]:
        """Match messages, and number those that are stored."""
        topic, found = self._topics[name], []
        every = topic.index.match([message for _, message in published])
        for (request, message), matched in zip(published, every, strict=True):
            if isinstance(matched, TamisError):
                topic.release_key(message)
                self._replies.append(Reply(request, error=matched))
                continue
            topic.last += 1
            which = Matched(topic.indexed, matched)
            found.append(StoredMessage(topic.last, now, message, which))
            self._replies.append(Reply(request, topic.last, topic.indexed, len(matched)))
        return found

    def committed(self) -> list[Reply]:
        """The transaction is stored: its messages are delivered from now on."""
        transaction, self._storing = self._storing, None
        assert transaction is not None, "no transaction is being stored"
        for name in transaction.counters:
            received = self._topics[name].committed(transaction.messages.get(name, []))
            self._ready += [(name, number) for number in received]
            self._take_dropped(name)
        for name, number in transaction.changes:
            self._topics[name].drop_empty(number)
        return transaction.replies
