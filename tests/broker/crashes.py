"""A broker under load that is killed; and what its publishers and consumers saw, as a ledger.

    python -m tests.broker.crashes FOLDER LIVE SEED [--to-the-end] [URL]

The URL is of a store in PostgreSQL, whose server may be killed as well. It runs a ``Service`` with
its real index, publishers, a subscriber and consumers, and writes a line for each answer, once the
answer is there. ``LIVE`` has the subscriptions that were answered before.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from tamis.broker import runner
from tamis.broker.core.model import Message, NameTaken, Subscription, TopicOptions
from tamis.broker.core.queue import QueueOptions, StaleLease
from tamis.broker.service import Service
from tamis.broker.store import sqlite
from tamis.broker.store.sqlite import SqliteStore
from tamis.broker.store.writing import Store
from tamis.core.errors import StoreError
from tests.broker.simulation import check

TOPIC = "t/a"
DIVISORS = range(1, 6)
PUBLISHERS, SUBSCRIPTIONS_MAX = 6, 12
SECONDS = 600.0


def body_of(value: int) -> bytes:
    """A document that subscriptions to the divisors of a number match."""
    names = "".join(f"<d{k}/>" for k in DIVISORS if value % k == 0)
    return f"<m><value>{value}</value>{names}<filler>{'x' * (value % 3_000)}</filler></m>".encode()


def subscribe(added: Subscription, core: Any, request: Any) -> None:
    core.subscribe(request, TOPIC, added)


class Process:
    """The process that is killed."""

    def __init__(
        self, folder: Path, live: dict[str, int], seed: int, output: int, url: str | None
    ) -> None:
        self.live, self.draw, self.output = live, Random(seed), output

        def open_store() -> Store:
            if url is None:
                return SqliteStore(folder / "broker.db")
            from tamis.broker.store.postgres import PostgresStore  # noqa: PLC0415

            return PostgresStore(url, process="one")

        self.service = Service(folder / "index", open_store)

    def say(self, *words: object) -> None:
        os.write(self.output, (json.dumps(words) + "\n").encode())

    async def run(self, to_the_end: bool) -> None:
        runner._MAINTAIN_S, sqlite._LOG_BYTES = 0.1, 200_000  # all that is there happens often
        await self.service.start()
        with suppress(NameTaken):
            await self.service.create_topic(TOPIC, TopicOptions())
        if to_the_end:
            for id in self.live:
                while await self.consume(id):
                    pass
            await self.service.stop()
            self.say("end")
            return
        await asyncio.gather(
            *(self.again(self.publish) for _ in range(PUBLISHERS)),
            self.again(self.subscribe),
            *(self.again(partial(self.consume_on, worker)) for worker in range(3)),
        )

    async def again(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Go on when the store is back."""
        while True:
            with suppress(StoreError):
                await work()
                return
            await asyncio.sleep(0.02)

    async def publish(self) -> None:
        while True:
            owed = [*self.live]
            values = [self.draw.randrange(100_000) for _ in range(self.draw.randrange(1, 4))]
            messages = [Message(body_of(value), "text/xml") for value in values]
            for value, reply in zip(
                values, await self.service.publish(TOPIC, messages), strict=True
            ):
                assert reply.error is None, reply.error
                self.say("answered", reply.number, value, owed)

    async def subscribe(self) -> None:
        while len(self.live) < SUBSCRIPTIONS_MAX:
            id, k = f"s{self.draw.getrandbits(60)}", self.draw.choice(DIVISORS)
            options = QueueOptions(
                attempts_max=1_000, delay_s=0.01, delay_max_s=0.01, backlog_max=1 << 30
            )
            added = Subscription(id, f"/m/d{k}", options=options)
            await self.service.change(partial(subscribe, added))
            self.say("subscribed", id, k)
            self.live[id] = k
            await asyncio.sleep(0.05)

    async def consume_on(self, worker: int) -> None:
        while True:
            mine = [*self.live][worker::4]  # a quarter of the subscriptions has no consumer
            if not mine or not await self.consume(self.draw.choice(mine)):
                await asyncio.sleep(0.01)

    async def consume(self, id: str) -> bool:
        """Take some messages, and acknowledge them; sometimes one fails."""
        most = self.draw.randrange(1, 40)
        lease = (await self.service.take(TOPIC, id, most, SECONDS, wait_s=0.02)).lease
        if lease is None:
            return False
        kept = await self.service.messages(TOPIC, [each.number for each in lease.deliveries])
        for (number, _, is_replay), stored in zip(lease.deliveries, kept, strict=True):
            assert stored is not None
            value = int(stored.message.body.split(b"</value>")[0][10:])
            check(stored.message.body == body_of(value), "another body")
            self.say("delivered", id, number, value, is_replay)
        numbers = [each.number for each in lease.deliveries]
        failed = numbers.pop() if self.draw.random() < 0.1 else None
        with suppress(StaleLease):
            if numbers:
                self.say("acknowledging", id, numbers)
                await self.service.change(
                    lambda core, request: core.acknowledge(request, TOPIC, id, lease.token, numbers)
                )
                self.say("acknowledged", id, numbers)
            if failed is not None:
                now = self.service.clock()
                await self.service.change(
                    lambda core, request: core.fail(
                        request, TOPIC, id, lease.token, failed, "no", now
                    )
                )
        return True


class Ledger:
    """What was seen, over all processes."""

    def __init__(self) -> None:
        self.live: dict[str, int] = {}
        self.answered: dict[int, int] = {}
        self.owed: dict[str, set[int]] = {}
        self.delivered: dict[str, set[int]] = {}
        self.acknowledging: dict[str, set[int]] = {}
        self.acknowledged: dict[str, set[int]] = {}
        self.deliveries = self.replays = 0
        self.is_over = False
        self._rest = b""

    def read(self, data: bytes) -> None:
        """Read what a process wrote."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            what, *words = json.loads(line)
            getattr(self, f"_{what}")(*words)

    def killed(self) -> None:
        self._rest = b""

    def _end(self) -> None:
        self.is_over = True

    def _subscribed(self, id: str, k: int) -> None:
        self.live[id] = k
        for each in (self.owed, self.delivered, self.acknowledging, self.acknowledged):
            each[id] = set()

    def _answered(self, number: int, value: int, owed: Sequence[str]) -> None:
        check(number not in self.answered, "two messages have the same number")
        self.answered[number] = value
        for id in owed:
            if value % self.live[id] == 0:
                self.owed[id].add(number)

    def _delivered(self, id: str, number: int, value: int, is_replay: bool) -> None:
        delivered = self.delivered[id]
        check(value % self.live[id] == 0, "a delivery of what is not matched")
        check(self.answered.get(number, value) == value, "another message has this number")
        check(is_replay or number not in delivered, "a duplicate without a marker")
        check(number not in self.acknowledged[id], "an acknowledged message comes again")
        check(is_replay or number > max(delivered, default=0), "a message overtakes another one")
        delivered.add(number)
        self.deliveries += 1
        self.replays += is_replay

    def _acknowledging(self, id: str, numbers: Sequence[int]) -> None:
        self.acknowledging[id].update(numbers)

    def _acknowledged(self, id: str, numbers: Sequence[int]) -> None:
        self.acknowledged[id].update(numbers)

    def finish(self) -> None:
        """Everything was taken."""
        check(self.is_over, "the last process did not come to its end")
        for id, owed in self.owed.items():
            lost = owed - self.acknowledging[id]
            check(not lost, f"{id}: {sorted(lost)[:5]} are lost")


def main(
    folder: Path, live: dict[str, int], seed: int, to_the_end: bool, url: str | None, output: int
) -> None:  # fmt: skip
    asyncio.run(Process(folder, live, seed, output, url).run(to_the_end))


if __name__ == "__main__":
    given_folder, given_live, given_seed, *more = sys.argv[1:]
    to_the_end, given_url = "--to-the-end" in more, next((x for x in more if "://" in x), None)
    main(Path(given_folder), json.loads(given_live), int(given_seed), to_the_end, given_url, 1)
