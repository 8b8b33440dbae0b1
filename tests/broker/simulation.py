"""A broker under a seeded schedule: crashes, consumers that vanish, duplicates, clock jumps.

The store is a model: a transaction is in it whole, or not at all. What was answered, delivered and
acknowledged is noted as publishers and consumers see it, and compared with what is stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tamis.broker.core.broker import (
    Broker,
    Key,
    Matched,
    Message,
    Reply,
    StoredMessage,
    StoredTopic,
    Subscription,
    Transaction,
)
from tamis.broker.core.queue import BrokerError, Failure, Gap, Lease, QueueOptions, StaleLease
from tamis.core.errors import MalformedDocument, TamisError

TOPICS = "a", "b"
SECONDS = 30.0


class Violation(AssertionError):  # noqa: N818 - says what it is
    """What must not happen, happened."""


def check(holds: bool, message: str) -> None:
    if not holds:
        raise Violation(message)


class ModelIndex:
    """A subscription to k is matched by the numbers that it divides."""

    def __init__(self) -> None:
        self.version, self._divisors = 0, dict[int, int]()

    def add(self, expressions: Mapping[int, str]) -> None:
        self._divisors |= {number: int(text) for number, text in expressions.items()}
        self.version += 1

    def remove(self, number: int) -> None:
        del self._divisors[number]
        self.version += 1

    def match(self, messages: Sequence[Message]) -> list[Matched | TamisError]:
        return [self._match(message.body) for message in messages]

    def _match(self, body: bytes) -> Matched | TamisError:
        if not body.isdigit():
            return MalformedDocument("no number")
        found = [number for number, k in self._divisors.items() if int(body) % k == 0]
        return Matched(self.version, found)


class Stored:
    """What is stored of a subscription."""

    def __init__(self, subscription: Subscription, since: int) -> None:
        self.subscription, self.since, self.cursor = subscription, since, since
        self.failures: dict[int, Failure] = {}
        self.gaps: list[Gap] = []

    def waiting(self) -> list[Failure]:
        return [each for each in self.failures.values() if each.due is not None]

    def is_over(self, number: int) -> bool:
        """Whether a message is dead, or was dropped."""
        failure = self.failures.get(number)
        is_dropped = any(gap.first <= number <= gap.last for gap in self.gaps)
        return is_dropped or (failure is not None and failure.due is None)


class ModelStore:
    def __init__(self) -> None:
        self.messages: dict[str, list[StoredMessage]] = {topic: [] for topic in TOPICS}
        self.subscriptions: dict[tuple[str, int], Stored] = {}
        self.numbers = dict.fromkeys(TOPICS, 0)

    def write(self, transaction: Transaction) -> None:
        for topic, messages in transaction.messages.items():
            self.messages[topic] += messages
        for name, (subscription, since) in transaction.added.items():
            self.subscriptions[name] = Stored(subscription, since)
            self.numbers[name[0]] = name[1]
        for name in transaction.removed:
            del self.subscriptions[name]
        for name, (cursor, failures, gaps) in transaction.changes.items():
            of = self.subscriptions[name]
            of.cursor = cursor
            of.gaps += gaps
            for number, failure in failures.items():
                if failure is None:
                    of.failures.pop(number, None)
                else:
                    of.failures[number] = failure

    def read(self) -> dict[str, StoredTopic]:
        return {topic: self._topic(topic) for topic in TOPICS}

    def _topic(self, topic: str) -> StoredTopic:
        own = {number: of for (name, number), of in self.subscriptions.items() if name == topic}
        messages = self.messages[topic]
        keys = {each.message.key: each.number for each in messages if each.message.key}
        waiting = {
            number: (
                of.subscription,
                of.cursor,
                [f for f in of.failures.values() if f.due is not None],
            )
            for number, of in own.items()
        }
        matches = [(each.number, each.matched.subscriptions) for each in messages]
        return StoredTopic(len(messages), self.numbers[topic], waiting, matches, keys)


class Schedule:
    """One run."""

    def __init__(self, seed: int, store: ModelStore | None = None) -> None:
        self.draw = Random(seed)
        self.store, self.now, self.epoch = store or ModelStore(), 0.0, 0
        self.requests: dict[int, Any] = {}
        self.request = 0
        self.answered: dict[Key, int] = {}
        self.promised: list[tuple[str, int, set[int]]] = []  # messages, and who must get them
        self.live: dict[tuple[str, str], int] = {}  # subscriptions that were answered
        self.leases: list[tuple[str, str, int, Lease, int]] = []  # the last: the epoch
        self.delivered: dict[tuple[str, int], set[int]] = defaultdict(set)
        self.settled: dict[tuple[str, int], set[int]] = defaultdict(set)
        self.ended: dict[tuple[str, int], set[int]] = defaultdict(set)
        self.start()

    def start(self) -> None:
        self.epoch += 1
        self.requests.clear()
        self.broker = Broker(
            self.store.read(), ModelIndex, self.draw.random, epoch=self.epoch, subscriptions_max=9
        )

    def run(self, steps: int) -> None:
        actions = [
            (self.publish, 8), (self.subscribe, 2), (self.unsubscribe, 0.3), (self.take, 8),
            (self.acknowledge, 8), (self.fail, 2), (self.pass_time, 3), (self.commit, 8),
            (self.crash, 0.7), (self.replay, 0.5),
        ]  # fmt: skip
        functions, weights = zip(*actions, strict=True)
        for action in self.draw.choices(functions, weights, k=steps):
            action()
        self.finish()

    # -- publishers and subscribers ----------------------------------------------------------------

    def publish(self) -> None:
        topic, number = self.draw.choice(TOPICS), self.draw.randrange(60)
        body = str(number).encode() if self.draw.random() < 0.95 else b"x"
        name = str(self.draw.randrange(200))
        key = Key(topic, name, body) if self.draw.random() < 0.5 else None
        owed = {of for (at, _), of in self.live.items() if at == topic}
        self.request += 1
        self.requests[self.request] = topic, Message(body, key=key), owed
        self.broker.publish(self.request, topic, Message(body, key=key))

    def subscribe(self) -> None:
        topic, k = self.draw.choice(TOPICS), self.draw.randrange(1, 6)
        options = QueueOptions(
            is_ordered=self.draw.random() < 0.6, window=4, attempts_max=3, backlog_max=20
        )
        subscription = Subscription(str(self.draw.randrange(9)), str(k), options)
        self.request += 1
        self.requests[self.request] = topic, subscription, None
        try:
            self.broker.subscribe(self.request, topic, subscription)
        except BrokerError:
            del self.requests[self.request]

    def unsubscribe(self) -> None:
        if not self.live:
            return
        topic, name = self.draw.choice([*self.live])
        try:
            self.broker.unsubscribe(-1, topic, name)
        except BrokerError:
            return
        number = self.live.pop((topic, name))
        for _, _, owed in self.promised:
            owed.discard(number)
        for at, _, owed in self.requests.values():
            if owed is not None and at == topic:
                owed.discard(number)

    # -- consumers ---------------------------------------------------------------------------------

    def take(self) -> None:
        if self.live:
            topic, name = self.draw.choice([*self.live])
            self.take_from(topic, name, self.draw.randrange(1, 5))

    def take_from(self, topic: str, name: str, most: int) -> Lease | None:
        of = topic, self.live[topic, name]
        try:
            lease = self.broker.take(topic, name, most, self.now, SECONDS)
        except BrokerError:
            return None  # it is being removed
        if lease is not None:
            self.leases.append((topic, name, of[1], lease, self.epoch))
            self.note(of, lease)
        return lease

    def note(self, of: tuple[str, int], lease: Lease) -> None:
        check(of in self.store.subscriptions, "a delivery of a subscription that is not stored")
        stored, before = self.store.subscriptions[of], set[int]()
        messages = self.store.messages[of[0]]
        asked = [each.number for each in messages if of[1] in each.matched.subscriptions]
        for number, attempt, is_replay in lease.deliveries:
            check(number in asked, "a delivery of what is not stored, or not matched")
            check(is_replay or number not in self.delivered[of], "a duplicate without a marker")
            check(attempt <= 3, "too many attempts")
            if stored.subscription.options.is_ordered:
                missing = {each for each in asked if stored.since < each < number} - before
                missing -= self.settled[of] | self.ended[of]
                missing = {each for each in missing if not self.is_over(of, each)}
                check(not missing, f"{number} is delivered before {missing}")
            before.add(number)
            self.delivered[of].add(number)
            if attempt == 3:
                self.ended[of].add(number)  # acknowledged or dead, however this ends

    def is_over(self, of: tuple[str, int], number: int) -> bool:
        gaps = list(self.broker._topics[of[0]].queue(of[1])._gaps)
        transaction = self.broker._stored_now
        if transaction is not None and of in transaction.changes:
            gaps += transaction.changes[of].gaps
        is_dropped = any(gap.first <= number <= gap.last for gap in gaps)
        return is_dropped or self.store.subscriptions[of].is_over(number)

    def chosen(self) -> tuple[str, str, int, Lease] | None:
        if not self.leases:
            return None
        topic, name, number, lease, _ = self.draw.choice(self.leases)
        return (topic, name, number, lease) if self.live.get((topic, name)) == number else None

    def is_stale(self, lease: Lease) -> bool:
        (epoch,) = {each[4] for each in self.leases if each[3] is lease}
        return epoch != self.epoch

    def acknowledge(self) -> None:
        if (found := self.chosen()) is None:
            return
        topic, name, of, lease = found
        number = self.draw.choice(lease.deliveries).number
        try:
            self.broker.acknowledge(-1, topic, name, lease.token, number)
        except StaleLease:
            return
        except BrokerError:
            return
        check(not self.is_stale(lease), "a lease of another process is taken")
        queue = self.broker._topics[topic].queue(of)
        taken = [each.number for each in lease.deliveries if each.number <= number]
        self.settled[topic, of].update(taken if queue.options.is_ordered else [number])

    def fail(self) -> None:
        if (found := self.chosen()) is None:
            return
        topic, name, _, lease = found
        number = self.draw.choice(lease.deliveries).number
        try:
            self.broker.fail(-1, topic, name, lease.token, number, "no", self.now)
        except BrokerError:
            return
        check(not self.is_stale(lease), "a lease of another process is failed")

    def replay(self) -> None:
        if not self.live:
            return
        topic, name = self.draw.choice([*self.live])
        of = topic, self.live[topic, name]
        if of in self.store.subscriptions:
            dead = [f for f in self.store.subscriptions[of].failures.values() if f.due is None]
            if dead:
                self.replay_dead(topic, name, self.draw.choice(dead))

    def replay_dead(self, topic: str, name: str, failure: Failure) -> None:
        try:
            self.broker.replay(-1, topic, name, failure, self.now)
        except BrokerError:
            return

    # -- time, and the store -----------------------------------------------------------------------

    def pass_time(self) -> None:
        self.now += self.draw.choice([0.1, 1.0, 40.0, 10_000.0])
        self.broker.expire(self.now)

    def commit(self) -> None:
        transaction = self.broker.begin(self.now)
        if transaction is None:
            return
        kind = self.draw.random()
        if kind < 0.03:  # nobody knows whether it is stored
            if self.draw.random() < 0.5:
                self.store.write(transaction)
            self.start()
            return
        if kind < 0.3:  # others come meanwhile
            for action in self.draw.choices([self.publish, self.acknowledge, self.take], k=2):
                action()
        self.store.write(transaction)
        for reply in self.broker.committed():
            self.answer(reply)

    def crash(self) -> None:
        self.start()

    def answer(self, reply: Reply) -> None:
        if reply.request not in self.requests or reply.error is not None:
            return
        topic, asked, owed = self.requests.pop(reply.request)
        if isinstance(asked, Subscription):
            self.live[topic, asked.id] = reply.number
            return
        # The same message again is matched as it was at first.
        self.promised.append((topic, reply.number, owed if reply.version else set()))
        stored = self.store.messages[topic][reply.number - 1 :][:1]
        check(bool(stored) and stored[0].message.body == asked.body, "answered, and not stored")
        if asked.key is not None:
            known = self.answered.setdefault(
                asked.key.scope.encode() + asked.key.key.encode(), reply.number
            )
            check(known == reply.number, "a key has two messages")

    # -- the end -----------------------------------------------------------------------------------

    def finish(self) -> None:
        """Consumers take and acknowledge everything; then nothing may be missing."""
        for _ in range(60):
            self.now += 10_000.0
            self.broker.expire(self.now)
            for topic, name in self.live:
                while lease := self.take_from(topic, name, 50):
                    self.settle(topic, name, lease)
            if (transaction := self.broker.begin(self.now)) is None:
                break
            self.store.write(transaction)
            for reply in self.broker.committed():
                self.answer(reply)
        else:
            raise Violation("it does not come to an end")
        for (topic, _), number in self.live.items():
            self.check_all((topic, number))
        for topic, number, owed in self.promised:
            matched = self.store.messages[topic][number - 1].matched
            body = int(self.store.messages[topic][number - 1].message.body)
            for of in owed:
                k = int(self.store.subscriptions[topic, of].subscription.expression)
                if body % k == 0:
                    check(of in matched.subscriptions, "a subscription is not read")
                    self.check_got((topic, of), number)

    def settle(self, topic: str, name: str, lease: Lease) -> None:
        for delivery in lease.deliveries:
            self.broker.acknowledge(-1, topic, name, lease.token, delivery.number)
            self.settled[topic, self.live[topic, name]].add(delivery.number)

    def check_got(self, of: tuple[str, int], number: int) -> None:
        is_over = self.store.subscriptions[of].is_over(number)
        check(is_over or number in self.settled[of], f"message {number} is lost")

    def check_all(self, of: tuple[str, int]) -> None:
        stored = self.store.subscriptions[of]
        for message in self.store.messages[of[0]]:
            if message.number > stored.since and of[1] in message.matched.subscriptions:
                self.check_got(of, message.number)
                check(message.number <= stored.cursor, "the cursor stays behind")
        due = [each for each in stored.failures.values() if each.due is not None]
        check(not due, "a failure stays")
