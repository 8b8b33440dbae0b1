"""A day of retries, on a clock that is simulated: the memory of the broker stays what it is."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.broker_load import POINTS, point
from tamis.broker.core.broker import Broker
from tamis.broker.core.model import Message, StoredTopic, Subscription, TopicOptions
from tamis.broker.core.queue import QueueOptions
from tamis.broker.index import TopicIndex
from tamis.broker.store.queries import StoreCatalog
from tamis.broker.store.sqlite import SqliteStore

__all__ = ["POINTS"]
TOPIC = "t/a"
DAY_S, EVERY_S = 86_400, 4
SUBSCRIPTIONS = 20
"""Half of them are ordered. A quarter never answers, and another quarter fails half of the time."""
RETENTION_S = 4 * 3_600.0


class Day:
    """A broker with some messages, and consumers of which many fail."""

    def __init__(self, folder: Path) -> None:
        self.store = SqliteStore(folder / "broker.db")
        self.index: dict[str, TopicIndex] = {}
        self.draw = Random(1)
        self.deliveries = self.failures = 0
        self.broker = Broker(
            {},
            lambda name: StoreCatalog(self.store, name),
            self.index.__getitem__,
            self.draw.random,
        )
        self.options = TopicOptions(retention_s=RETENTION_S)
        self.index[TOPIC] = TopicIndex(folder / "index", self.options)
        self.store.create(TOPIC, self.options)
        self.broker.adopt(TOPIC, StoredTopic())
        for number in range(SUBSCRIPTIONS):
            options = QueueOptions(is_ordered=number % 2 == 0, backlog_max=5_000)
            added = Subscription(str(number), "//a", options=options)
            self.broker.subscribe(None, TOPIC, added)
        self.commit(0.0)

    def commit(self, now: float) -> None:
        transaction = self.broker.begin(now)
        if transaction is not None:
            self.store.write(transaction)
            self.broker.committed()

    def second(self, now: float) -> None:
        """A message comes, now and then, and what is due is tried."""
        if now % EVERY_S == 0:
            self.broker.publish(TOPIC, [(None, Message(b"<a>text</a>"))])
        self.broker.expire(now)
        self.broker.take_ready()
        for number in range(SUBSCRIPTIONS):
            self.attempt(str(number), number // 2 % 4, now)
        if now % 60 == 0 and (last := self.store.outdated(TOPIC, self.options, now, 2_000)):
            self.broker.forget(TOPIC, last)
        self.commit(now)

    def attempt(self, id: str, kind: int, now: float) -> None:
        lease = self.broker.take(TOPIC, id, 32, now, 600.0)
        for delivery in lease.deliveries if lease else ():
            assert lease is not None
            self.deliveries += 1
            if kind == 0 or (kind == 1 and self.draw.random() < 0.5):
                self.failures += 1
                self.broker.fail(None, TOPIC, id, lease.token, delivery.number, "no", now)
                if int(id) % 2 == 0:
                    return  # the messages are ordered: the lease ended
            else:
                self.broker.acknowledge(None, TOPIC, id, lease.token, [delivery.number])

    def close(self) -> None:
        self.index[TOPIC].close()
        self.store.close()


def _resident_mb() -> float:
    text = Path("/proc/self/status").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("VmRSS")]
    return round(int(line.split()[1]) / 1024, 1)


@point
async def retries() -> dict[str, Any]:
    """A simulated day of retries: 20 subscriptions, 21,600 messages, half of which fail."""
    hours = []
    with tempfile.TemporaryDirectory(prefix="tamis-broker-") as folder:
        day = Day(Path(folder))
        for now in range(1, DAY_S + 1):
            day.second(float(now))
            if now % 3_600 == 0:
                hours.append(_resident_mb())
                print(f"  hour {len(hours)}: {hours[-1]} MB", flush=True)
        stored = round(sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e6, 1)
        day.close()
    steady = hours[5:]  # messages are kept for four hours
    return {
        "deliveries": day.deliveries, "failures": day.failures, "mb_each_hour": hours,
        "grew": round(steady[-1] / steady[0], 3), "store_mb": stored,
    }  # fmt: skip
