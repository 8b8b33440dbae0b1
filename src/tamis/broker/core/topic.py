"""``Topic``: the subscriptions of a topic, and the queues of those that have messages to get."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import NamedTuple

from tamis.broker.core.model import (
    Catalog,
    Counters,
    Index,
    KeyConflict,
    KeyInFlight,
    Message,
    NameTaken,
    StoredMessage,
    StoredSubscription,
    StoredTopic,
    Subscription,
    UnknownName,
)
from tamis.broker.core.queue import BrokerError, DeliveryQueue

REWIND_MAX = 100_000
"""The thread of the broker reads so many rows in a second."""
_QUEUES_KEPT = 50_000
"""To make a queue again takes two look-ups; a queue takes a kilobyte."""


class Sources(NamedTuple):
    """What queues need from outside.

    Attributes:
        draw: a number from 0 to 1: see ``DeliveryQueue``.
        next_token: the token of a new lease.
    """

    draw: Callable[[], float]
    next_token: Callable[[], int]


class Pending(NamedTuple):
    """Changes of a topic's subscriptions that are not stored yet.

    Attributes:
        put: by number: the subscriptions that are new or replaced, and the versions with them.
        numbers: by id: those that are new.
        removed: by number: the versions without the subscriptions that are removed.
    """

    put: dict[int, tuple[Subscription, int]]
    numbers: dict[str, int]
    removed: dict[int, int]


def _nothing() -> Pending:
    return Pending({}, {}, {})


class Topic:
    """A topic.

    A subscription is looked up in the catalog when it is needed. Only those that have messages to
    get have a queue: a million others cost nothing.

    Args:
        stored: what there is. Its failures and matches become queues.
    """

    def __init__(
        self, name: str, stored: StoredTopic, catalog: Catalog, index: Index, sources: Sources
    ) -> None:
        self.catalog, self.index, self._sources = catalog, index, sources
        self.title = name.partition("/")[2]  # as its tenant calls it
        self.last = self.received = self._known = stored.last  # ``received``: by the queues
        self.last_subscription = stored.last_subscription
        self.version = self.indexed = self._storing_version = stored.version
        self.count, self.forgotten = stored.subscriptions, 0
        self.queues: dict[int, DeliveryQueue] = {}
        self.subscriptions: dict[int, Subscription] = {}  # those that have a queue
        self.pending, self.storing = _nothing(), _nothing()
        self._keys: dict[tuple[str, str], tuple[bytes, int]] = {}  # of messages not stored yet
        self._open: list[tuple[int, int]] = []  # a heap: of a queue, a message at most as late
        self._tracked: set[int] = set()  # as the first open one; and the subscriptions in it
        self.dropped: list[int] = []  # the subscriptions whose queues were too long
        for number in stored.failing:
            self.queue(number)
        for message, matched in stored.matches:
            for number in matched:
                self.add(number, message)

    # -- subscriptions -----------------------------------------------------------------------------

    def find(self, id: str) -> int:
        """The number of a subscription.

        Raises:
            UnknownName: there is none.
        """
        for each in (self.pending, self.storing):
            if id in each.numbers:
                return each.numbers[id]
        number = None if "\0" in id else self.catalog.find(id)  # PostgreSQL has no such text
        if number is None or number in self.pending.removed or number in self.storing.removed:
            raise UnknownName(f"topic {self.title!r} has no subscription {id!r}")
        return number

    def subscribe(self, subscription: Subscription) -> int:
        """Add a subscription, and return its number."""
        if self._has(subscription.id):
            raise NameTaken(f"topic {self.title!r} has a subscription {subscription.id!r}")
        self.index.check(subscription)
        self.last_subscription += 1
        self.version += 1
        self.count += 1
        self.pending.put[self.last_subscription] = subscription, self.version
        self.pending.numbers[subscription.id] = self.last_subscription
        return self.last_subscription

    def _has(self, id: str) -> bool:
        try:
            self.find(id)
        except UnknownName:
            return False
        return True

    def replace(self, number: int, subscription: Subscription) -> None:
        """Give a subscription another expression and other options; it keeps its messages."""
        self.index.check(subscription)
        self.version += 1
        self.pending.put[number] = subscription, self.version

    def remove(self, number: int) -> None:
        """Remove a subscription, and the messages that it has still to get."""
        self.version += 1
        self.count -= 1
        new = self.pending.put.pop(number, None)
        if new is None or self.pending.numbers.pop(new[0].id, None) is None:
            self.pending.removed[number] = self.version
        self._drop(number)

    def stored(self, id: str) -> StoredSubscription:
        """A subscription, as it is stored.

        Raises:
            UnknownName: there is none, or it is not stored yet.
        """
        found = self.catalog.get(self.find(id))
        if found is None:
            raise UnknownName(f"topic {self.title!r} has no subscription {id!r} yet")
        return found

    def version_of(self, number: int) -> int:
        """The version of the index that a stored subscription is from; 0 while it is changed."""
        is_changed = number in self.pending.put or number in self.storing.put
        stored = None if is_changed else self.catalog.get(number)
        return stored.version if stored else 0

    # -- queues ------------------------------------------------------------------------------------

    def queue(self, number: int) -> DeliveryQueue | None:
        """The queue of a subscription; None if the subscription is not stored, or not any more."""
        found = self.queues.get(number)
        if found is not None or number in self.pending.removed or number in self.storing.removed:
            return found
        stored = self.catalog.get(number)
        if stored is None:
            return None
        self.subscriptions[number] = stored.subscription
        found = self.queues[number] = DeliveryQueue(
            stored.subscription.options, *self._sources,
            cursor=stored.cursor, failures=stored.failures, known=self._known,
        )  # fmt: skip
        found.forget(self.forgotten)
        return found

    def add(self, number: int, message: int) -> None:
        """Add a message to a queue, if the subscription has not got it."""
        queue = self.queue(number)
        if queue is None or message <= queue.cursor:
            return
        if number not in self._tracked:
            self._tracked.add(number)
            heapq.heappush(self._open, (message, number))
        if queue.add(message):
            self.dropped.append(number)

    def rewind(self, number: int, to: int) -> None:
        """Messages up to ``to`` are acknowledged, and all beyond are delivered again.

        Raises:
            BrokerError: too many messages would have to be looked at.
        """
        queue = self.queue(number)
        if queue is None:
            return
        first, last = queue.first_open(), queue.last
        if queue.options.is_ordered and first is not None:
            last = first - 1  # what is beyond is to be delivered anyway
        if last - to > REWIND_MAX:
            raise BrokerError(f"no more than the last {REWIND_MAX:,} messages can come again")
        stored = self.catalog.matched(number, to, last) if to < last else ()
        numbers = sorted({*stored, *queue.settled_beyond(to)})
        queue.rewind(to, numbers)
        for message in numbers[:1]:
            heapq.heappush(self._open, (message, number))

    def drop_empty(self, number: int) -> None:
        """Where there are many queues, forget that of a subscription that has got everything."""
        queue = self.queues.get(number)
        if queue is not None and len(self.queues) > _QUEUES_KEPT and queue.is_empty:
            self._drop(number)

    def _drop(self, number: int) -> None:
        self.queues.pop(number, None)
        self.subscriptions.pop(number, None)

    def settled(self) -> int:
        """The last message before which, and with which, everything is delivered or failed."""
        while self._open:
            message, number = self._open[0]
            queue = self.queues.get(number)
            first = None if queue is None else queue.first_open()
            if first == message:
                break
            heapq.heappop(self._open)
            if first is None:
                self._tracked.discard(number)
            else:
                heapq.heappush(self._open, (first, number))
        return self._open[0][0] - 1 if self._open else self.received

    # -- messages ----------------------------------------------------------------------------------

    def key_of(self, message: Message) -> int | None:
        """The number of the message that has this one's idempotency key; None if there is none.

        Raises:
            KeyConflict: the key is another request's.
            KeyInFlight: the message is being stored.
        """
        if message.key is None:
            return None
        scope, key, fingerprint = message.key
        known = self._keys.get((scope, key))
        found = self.catalog.key(scope, key) if known is None else known
        if found is None:
            return None
        named = key.rpartition("/")[0] or key  # without the part of the request
        if found[0] != fingerprint:
            raise KeyConflict(f"another request had the idempotency key {named!r}: use a new key")
        if known is not None:
            raise KeyInFlight(f"the request with the idempotency key {named!r} is being stored")
        return found[1]

    def hold_key(self, message: Message) -> None:
        """Hold the idempotency key of a message until it is stored."""
        if message.key is not None:
            self._keys[message.key.scope, message.key.key] = message.key.fingerprint, 0

    def release_key(self, message: Message) -> None:
        """Release the idempotency key: the message is stored, or refused."""
        if message.key is not None:
            del self._keys[message.key.scope, message.key.key]

    def counters(self) -> Counters:
        """What a transaction stores of the topic itself."""
        return Counters(self.last, self.last_subscription, self.version, self.settled())

    def begin(self) -> Pending:
        """The changes of subscriptions, which are stored now."""
        self.storing, self.pending = self.pending, _nothing()
        self._storing_version = self.version
        return self.storing

    def committed(self, messages: list[StoredMessage]) -> list[int]:
        """The changes are stored, and messages; the index contains the changes from now on.

        Returns:
            The subscriptions that received messages.
        """
        if self.storing.put or self.storing.removed:
            put = {number: each for number, (each, _) in self.storing.put.items()}
            self.index.change(put, list(self.storing.removed))
            for number in put.keys() & self.queues.keys():
                self.subscriptions[number] = put[number]
                self.queues[number].configure(put[number].options)
        self.indexed, self.received = self._storing_version, self.last
        self.storing = _nothing()
        received = []
        for message in messages:
            self.release_key(message.message)
            for number in message.matched.subscriptions:
                self.add(number, message.number)
                received.append(number)
        return received
