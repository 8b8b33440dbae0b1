"""Real stores beside the model: what they have in common, and what kills must leave."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

from tamis.broker.core.model import (
    StoredMessage,
    StoredSubscription,
    StoredTopic,
    TopicOptions,
    Transaction,
)
from tamis.broker.core.queue import Gap
from tamis.broker.store.queries import Queries, StoreCatalog
from tamis.broker.store.sqlite import SqliteStore
from tamis.broker.store.writing import GAPS_PART, Store
from tests.broker.simulation import TOPICS, ModelStore


def open_store(where: str) -> Store:
    """The store in a file of SQLite, or at a URL of PostgreSQL, with all topics."""
    if not where.startswith("postgresql:"):
        return SqliteStore(Path(where))
    from tamis.broker.store.postgres import PostgresStore  # noqa: PLC0415 - not for SQLite

    store = PostgresStore(where, process="test")
    store.acquire()
    return store


class BothStores(ModelStore):
    """A model, and a real store, from which is read."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where
        self.real = self.open()
        for topic in TOPICS:
            self.real.create(topic, TopicOptions({"p": "urn:p"}))

    def open(self) -> Store:
        return open_store(self.where)

    def write(self, transaction: Transaction) -> None:
        super().write(transaction)
        self.real.write(transaction)

    def read(self) -> dict[str, StoredTopic]:
        self.real.close()
        self.real = self.open()
        self.compare()
        return {topic: self.real.read(topic) for topic in TOPICS}

    def compare(self) -> None:
        """The real store has what the model has."""
        assert list(self.real.topics()) == list(TOPICS)
        for topic, model in super().read().items():
            found = self.real.read(topic)
            assert as_read(found) == as_read(model)
            first = self.forgotten[topic] + 1
            assert [each.message for each in self.real.messages(topic, 1, 1 << 39, 1_000)] == [
                each.message._replace(key=None) for each in self.messages[topic][first - 1 :]
            ]
            for number, of in self.of(topic).items():
                both = self.catalog(topic).get(number), super().catalog(topic).get(number)
                assert sorted_failures(both[0]) == sorted_failures(both[1])
                assert self.real.gaps(topic, number) == merged(of.gaps)

    def catalog(self, topic: str) -> Any:
        return StoreCatalog(self.real, topic)


def merged(gaps: list[Gap]) -> list[Gap]:
    """Gaps, as a store has them: in one row for many messages."""
    found: dict[tuple[int, str], Gap] = {}
    for gap in gaps:
        part = gap.first // GAPS_PART, gap.reason
        known = found.get(part, gap._replace(messages=0))
        found[part] = known._replace(last=gap.last, messages=known.messages + gap.messages)
    return sorted(found.values())


def sorted_failures(found: StoredSubscription | None) -> StoredSubscription | None:
    return found and found._replace(failures=sorted(found.failures))


def as_read(topic: StoredTopic) -> StoredTopic:
    matches = [(number, list(of)) for number, of in topic.matches]
    return topic._replace(matches=matches, failing=sorted(topic.failing))


# -- kills -----------------------------------------------------------------------------------------


def publisher(where: str, *options: str) -> subprocess.Popen[str]:
    """A process that publishes to ``t/a`` until it is killed."""
    command = [sys.executable, "-m", "tests.broker.publish", where, *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Answered:
    """What publishers were told: the number of each message, and its body."""

    def __init__(self) -> None:
        self.bodies: dict[int, str] = {}

    def read(self, lines: Iterable[str]) -> None:
        for line in lines:
            number, body = line.split()
            assert self.bodies.setdefault(int(number), body) == body, "two have the same number"

    def read_lines(self, process: subprocess.Popen[str], count: int) -> None:
        assert process.stdout is not None
        self.read(process.stdout.readline() for _ in range(count))

    def read_rest(self, process: subprocess.Popen[str]) -> str:
        """What a process said until its end; and what it said of errors."""
        assert process.stdout is not None
        assert process.stderr is not None
        # `communicate` would lose what `readline` has already buffered
        self.read(process.stdout.read().split("\n")[:-1])  # the last line may be cut
        return process.stderr.read()

    def check(self, store: Queries) -> None:
        """See that everything is stored, and nothing is missing between."""
        stored = store.read("t/a")
        numbers = list(range(1, stored.last + 1))
        assert [number for number, _ in stored.matches] == numbers
        kept: dict[int, StoredMessage] = {
            each.number: each for each in store.messages("t/a", 1, stored.last, stored.last)
        }
        assert [*kept] == numbers
        for number, body in self.bodies.items():
            assert kept[number].message.body == body.encode(), "answered, and not stored"


def kill_publishers(
    where: str, kills: int, kill: Callable[[subprocess.Popen[str]], None] = subprocess.Popen.kill
) -> None:
    """Kill publishers, or what they need, at random moments: nothing that was answered is lost."""
    draw, answered = Random(1), Answered()
    for _ in range(kills):
        with publisher(where) as process:
            answered.read_lines(process, draw.randrange(1, 60))
            kill(process)
            answered.read_rest(process)
        store = open_store(where)
        answered.check(store)
        store.close()
    assert len(answered.bodies) > kills
