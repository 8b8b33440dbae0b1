"""A broker under a seeded schedule: crashes, consumers that vanish, duplicates, clock jumps.

The store is a model: a transaction is in it whole, or not at all. What was answered, delivered and
acknowledged is noted as publishers and consumers see it, and compared with what is stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from tamis.broker.core.broker import Broker
from tamis.broker.core.model import (
    Counters,
    Key,
    Message,
    Quotas,
    Reply,
    StoredMessage,
    StoredSubscription,
    StoredTopic,
    Subscription,
    Transaction,
)
from tamis.broker.core.queue import BrokerError, Failure, Gap, Lease, QueueOptions, StaleLease
from tamis.core.errors import MalformedDocument, TamisError

TOPICS = "t/a", "t/b"
SECONDS = 30.0


class Violation(AssertionError):  # noqa: N818 - says what it is
    """What must not happen, happened."""


def check(holds: bool, message: str) -> None:
    if not holds:
        raise Violation(message)


class ModelIndex:
    """A subscription to k is matched by the numbers that it divides."""

    def __init__(self, subscriptions: Mapping[int, Subscription]) -> None:
        self._divisors = dict[int, int]()
        self.change(subscriptions, [])

    def check(self, subscription: Subscription) -> None:
        int(subscription.expression)

    def change(self, put: Mapping[int, Subscription], gone: Sequence[int]) -> None:
        self._divisors |= {number: int(each.expression) for number, each in put.items()}
        for number in gone:
            self._divisors.pop(number, None)

    def match(self, messages: Sequence[Message]) -> list[list[int] | TamisError]:
        return [self._match(message.body) for message in messages]

    def _match(self, body: bytes) -> list[int] | TamisError:
        if not body.isdigit():
            return MalformedDocument("no number")
        return [number for number, k in self._divisors.items() if int(body) % k == 0]


class Stored:
    """What is stored of a subscription."""

    def __init__(self, since: int) -> None:
        self.since = self.cursor = since
        self.versions: list[tuple[int, Subscription]] = []
        self.failures: dict[int, Failure] = {}
        self.gaps: list[Gap] = []

    @property
    def subscription(self) -> Subscription:
        return self.versions[-1][1]

    def is_over(self, number: int) -> bool:
        """Whether a message is dead, or was dropped."""
        failure = self.failures.get(number)
        is_dropped = any(gap.first <= number <= gap.last for gap in self.gaps)
        return is_dropped or (failure is not None and failure.due is None)

    def open_failures(self) -> list[Failure]:
        """Those with a next attempt, and dead ones beyond the cursor."""
        every = self.failures.values()
        return [each for each in every if each.due is not None or each.number > self.cursor]


class ModelCatalog:
    def __init__(self, store: ModelStore, topic: str) -> None:
        self.store, self.topic = store, topic

    def find(self, id: str) -> int | None:
        own = self.store.of(self.topic).items()
        return next((number for number, of in own if of.subscription.id == id), None)

    def get(self, number: int) -> StoredSubscription | None:
        if (of := self.store.subscriptions.get((self.topic, number))) is None:
            return None
        version, subscription = of.versions[-1]
        return StoredSubscription(subscription, version, of.cursor, of.open_failures())

    def key(self, scope: str, key: str) -> tuple[bytes, int] | None:
        return self.store.keys.get((scope, key))

    def matched(self, number: int, after: int, last: int) -> list[int]:
        kept = self.store.messages[self.topic][self.store.forgotten[self.topic] :]
        own = [n for n, _, _, of in kept if after < n <= last and number in of.subscriptions]
        failures = self.store.subscriptions[self.topic, number].failures
        return [n for n in own if n not in failures or failures[n].due is not None]


class ModelStore:
    def __init__(self) -> None:
        self.messages: dict[str, list[StoredMessage]] = {topic: [] for topic in TOPICS}
        self.counters = dict.fromkeys(TOPICS, Counters(0, 0, 0, 0))
        self.forgotten = dict.fromkeys(TOPICS, 0)
        self.subscriptions: dict[tuple[str, int], Stored] = {}
        self.removed: dict[tuple[str, int], tuple[Stored, int]] = {}
        self.keys: dict[tuple[str, str], tuple[bytes, int]] = {}

    def of(self, topic: str) -> dict[int, Stored]:
        return {number: of for (name, number), of in self.subscriptions.items() if name == topic}

    def catalog(self, topic: str) -> ModelCatalog:
        return ModelCatalog(self, topic)

    def write(self, transaction: Transaction) -> None:
        for topic, messages in transaction.messages.items():
            self.messages[topic] += messages
            for number, _, message, _ in messages:
                if message.key:
                    self.keys[message.key[:2]] = message.key.fingerprint, number
        for name, (subscription, version) in transaction.put.items():
            last = transaction.counters[name[0]].last
            stored = self.subscriptions.setdefault(name, Stored(last))
            stored.versions.append((version, subscription))
        for name, version in transaction.removed.items():
            self.removed[name] = self.subscriptions.pop(name), version
        for name, (cursor, failures, gaps) in transaction.changes.items():
            of = self.subscriptions[name]
            of.cursor = cursor
            of.gaps += gaps
            for number, failure in failures.items():
                if failure is None:
                    of.failures.pop(number, None)
                else:
                    of.failures[number] = failure
        self.forgotten |= transaction.forgotten
        self.counters |= transaction.counters

    def read(self) -> dict[str, StoredTopic]:
        return {topic: self._topic(topic) for topic in TOPICS}

    def _topic(self, topic: str) -> StoredTopic:
        own, counters = self.of(topic), self.counters[topic]
        failing = [number for number, of in own.items() if any(f.due for f in of.failures.values())]
        after = max(counters.settled, self.forgotten[topic])
        matches = [(n, of.subscriptions) for n, _, _, of in self.messages[topic] if n > after]
        return StoredTopic(*counters, len(own), failing, matches)

    def expected(self, topic: str, message: StoredMessage) -> set[int]:
        """Who matches a message in its version."""
        found, version = set(), message.matched.version
        every = {name: (of, version + 1) for name, of in self.subscriptions.items()} | self.removed
        for (at, number), (of, removed) in every.items():
            if at == topic and removed > version:
                asked = [each for since, each in of.versions if since <= version]
                if asked and int(message.message.body) % int(asked[-1].expression) == 0:
                    found.add(number)
        return found


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
        self.settled: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)  # and the step
        self.ended: dict[tuple[str, int], set[int]] = defaultdict(set)
        self.again: dict[tuple[str, int], set[int]] = defaultdict(set)  # replayed or rewound
        self.rewound = self.step = 0
        self.start()

    def start(self) -> None:
        self.epoch += 1
        self.requests.clear()
        self.replacing: list[tuple[str, int]] = []
        self.broker = Broker(
            self.store.read(), self.store.catalog, self.index, self.draw.random,
            epoch=self.epoch, quotas=Quotas(subscriptions_max=15),
        )  # fmt: skip

    def index(self, topic: str) -> ModelIndex:
        own = self.store.of(topic)
        return ModelIndex({number: of.subscription for number, of in own.items()})

    def run(self, steps: int) -> None:
        actions = [
            (self.publish, 8), (self.subscribe, 2), (self.unsubscribe, 0.3), (self.take, 8),
            (self.acknowledge, 8), (self.fail, 2), (self.pass_time, 3), (self.commit, 8),
            (self.crash, 0.7), (self.replay, 0.5), (self.rewind, 0.4), (self.replace, 0.3),
            (self.forget, 0.3),
        ]  # fmt: skip
        functions, weights = zip(*actions, strict=True)
        for action in self.draw.choices(functions, weights, k=steps):
            self.step += 1
            action()
        self.finish()

    # -- publishers and subscribers ----------------------------------------------------------------

    def publish(self) -> None:
        topic, number = self.draw.choice(TOPICS), self.draw.randrange(60)
        body = str(number).encode() if self.draw.random() < 0.95 else b"x"
        name = str(self.draw.randrange(200))
        key = Key(topic, name, body) if self.draw.random() < 0.5 else None
        owed = {of for (at, _), of in self.live.items() if at == topic}
        owed.difference_update(of for at, of in self.replacing if at == topic)
        self.request += 1
        self.requests[self.request] = topic, Message(body, key=key), owed
        try:
            self.broker.publish(topic, [(self.request, Message(body, key=key))])
        except BrokerError:
            del self.requests[self.request]

    def subscribe(self) -> None:
        topic, k = self.draw.choice(TOPICS), self.draw.randrange(1, 6)
        options = QueueOptions(
            is_ordered=self.draw.random() < 0.6,
            window=4,
            attempts_max=self.draw.randrange(1, 4),
            backlog_max=self.draw.choice([6, 20]),
        )
        subscription = Subscription(str(self.draw.randrange(9)), str(k), options=options)
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
        self.owe_not(topic, self.live.pop((topic, name)))

    def replace(self) -> None:
        if not self.live:
            return
        topic, name = self.draw.choice([*self.live])
        number = self.live[topic, name]
        options = self.store.subscriptions[topic, number].subscription.options
        other = Subscription(name, str(self.draw.randrange(1, 6)), options=options)
        version = self.store.subscriptions[topic, number].versions[-1][0]
        try:
            self.request += 1
            self.broker.replace(self.request, topic, other, self.draw.choice([None, version]))
        except BrokerError:
            return
        self.requests[self.request] = topic, None, None
        self.owe_not(topic, number)
        self.replacing.append((topic, number))

    def owe_not(self, topic: str, number: int) -> None:
        """Whether a subscription gets messages on their way is not known any more."""
        for at, _, owed in self.promised:
            if at == topic:
                owed.discard(number)
        for at, _, owed in self.requests.values():
            if owed is not None and at == topic:
                owed.discard(number)

    def forget(self) -> None:
        topic = self.draw.choice(TOPICS)
        number = self.store.forgotten[topic] + self.draw.randrange(1, 12)
        if number <= len(self.store.messages[topic]):
            self.broker.forget(topic, number)

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
            attempts_max = stored.subscription.options.attempts_max
            check(attempt <= attempts_max, "too many attempts")
            failure = stored.failures.get(number)
            is_dead = failure is not None and failure.due is None
            check(not is_dead or number in self.again[of], "a dead message comes again")
            if stored.subscription.options.is_ordered:
                missing = {each for each in asked if stored.since < each < number} - before
                missing -= self.settled[of].keys() | self.ended[of]
                missing = {each for each in missing if not self.is_over(of, each)}
                check(not missing, f"{number} is delivered before {missing}")
            before.add(number)
            self.delivered[of].add(number)
            if attempt == attempts_max:
                self.ended[of].add(number)  # acknowledged or dead, however this ends

    def is_over(self, of: tuple[str, int], number: int) -> bool:
        gaps = list(self.broker._topics[of[0]].queues[of[1]]._gaps)
        transaction = self.broker._storing
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
            self.broker.acknowledge(-1, topic, name, lease.token, [number])
        except StaleLease:
            return
        except BrokerError:
            return
        check(not self.is_stale(lease), "a lease of another process is taken")
        queue = self.broker._topics[topic].queues[of]
        taken = [each.number for each in lease.deliveries if each.number <= number]
        taken = taken if queue.options.is_ordered else [number]
        self.settled[topic, of].update(dict.fromkeys(taken, self.step))

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
        self.again[topic, self.live[topic, name]].add(failure.number)

    def rewind(self) -> None:
        if not self.live:
            return
        topic, name = self.draw.choice([*self.live])
        of = topic, self.live[topic, name]
        last = len(self.store.messages[topic])
        to = self.store.subscriptions[of].cursor + self.draw.randrange(-10, 4)
        to = min(max(0, to), last)
        try:
            self.request += 1
            self.broker.rewind(self.request, topic, name, to)
        except BrokerError:
            return
        forgotten = max(self.store.forgotten[topic], self.broker.topic(topic).forgotten)
        lost = [number for number in self.settled[of] if number > max(to, forgotten)]
        self.requests[self.request] = topic, (of, lost, self.step), None
        for number in range(1, to + 1):  # the consumer says that it has them
            self.settled[of][number] = self.step
        self.again[of].update(range(to + 1, last + 1))
        if to < self.store.subscriptions[of].cursor:
            self.rewound += 1

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
        if isinstance(asked, tuple) and not isinstance(asked, Message):
            of, lost, step = asked
            for number in lost:
                if self.settled[of].get(number, step) < step:
                    del self.settled[of][number]  # it must come again
            return
        if asked is None:
            self.replacing.remove((topic, reply.number))
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
            self.broker.acknowledge(-1, topic, name, lease.token, [delivery.number])
            self.settled[topic, self.live[topic, name]][delivery.number] = self.step

    def check_got(self, of: tuple[str, int], number: int) -> None:
        is_over = self.store.subscriptions[of].is_over(number)
        check(is_over or number in self.settled[of], f"message {number} is lost")

    def check_all(self, of: tuple[str, int]) -> None:
        stored = self.store.subscriptions[of]
        for message in self.store.messages[of[0]]:
            expected = self.store.expected(of[0], message)
            check({*message.matched.subscriptions} == expected, "a match of another version")
            if message.number > stored.since and of[1] in message.matched.subscriptions:
                self.check_got(of, message.number)
                past = max(stored.cursor, self.store.forgotten[of[0]])
                is_behind = message.number > past and not stored.is_over(message.number)
                check(not is_behind, "the cursor stays behind")
        due = [each for each in stored.failures.values() if each.due is not None]
        check(not due, "a failure stays")
