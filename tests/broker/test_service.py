"""``Service``: the real index and the real store; what it does when these fail."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tamis.broker import runner
from tamis.broker.core.model import Message, NameTaken, Subscription, TopicOptions, UnknownName
from tamis.broker.core.queue import Gap, QueueOptions, StaleLease
from tamis.broker.runner import Overloaded, Stopping
from tamis.broker.service import Service
from tamis.broker.store.sqlite import SqliteStore
from tamis.core.errors import MalformedDocument, StoreError, SubscriptionSyntaxError

TOPIC = "tenant/topic"
ORDER = b"<order><total>250</total></order>"


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def running(
    folder: Path, clock: Clock | None = None, options: TopicOptions = TopicOptions()
) -> AsyncIterator[Service]:
    service = Service(
        folder / "index", lambda: SqliteStore(folder / "broker.db"), clock=clock or Clock()
    )
    await service.start()
    try:
        with suppress(NameTaken):
            await service.create_topic(TOPIC, options)
        yield service
    finally:
        await service.stop()


def run(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that runs on an event loop."""

    def running_test(tmp_path: Path) -> None:
        asyncio.run(asyncio.wait_for(test(tmp_path), 60))

    return running_test


async def subscribe(service: Service, id: str, expression: str, **others: Any) -> int:
    added = Subscription(id, expression, **others)
    reply = await service.change(lambda core, request: core.subscribe(request, TOPIC, added))
    return reply.number


async def matches(service: Service, body: bytes, content_type: str = "text/xml") -> int | None:
    (reply,) = await service.publish(TOPIC, [Message(body, content_type)])
    if reply.error is not None:
        raise reply.error
    return reply.matches


async def taken(service: Service, id: str) -> list[int]:
    """The messages that a subscription gets; they are acknowledged."""
    found: list[int] = []
    while lease := (await service.try_take(TOPIC, id, 10, 30.0)).lease:
        numbers = [delivery.number for delivery in lease.deliveries]
        await service.acknowledge(TOPIC, id, lease.token, numbers)
        found += numbers
    return found


@run
async def test_a_subscription_matches_the_next_message(folder: Path) -> None:
    async with running(folder) as service:
        for number in range(20):
            await subscribe(service, f"s{number}", f"//order[total > {number}]")
            assert await matches(service, ORDER) == number + 1


@run
async def test_languages(folder: Path) -> None:
    async with running(folder) as service:
        await subscribe(service, "xpath", "//order[total > 100]")
        await subscribe(service, "events", "total > 100", language="events")
        flwr = "<m>{ for $o in /order where $o/total > 100 return $o/total }</m>"
        await subscribe(service, "flwr", flwr, language="flwr")
        assert await matches(service, ORDER) == 2
        assert await matches(service, b'{"total": 250}', "application/json") == 1
        assert await matches(service, b"<order><total>5</total></order>") == 0
        assert await taken(service, "flwr") == await taken(service, "xpath") == [1]
        assert await taken(service, "events") == [2]
        other = Subscription("flwr", "total > 1", "events")
        await service.change(lambda core, request: core.replace(request, TOPIC, other))
        assert await matches(service, ORDER) == 1
        assert await matches(service, b'{"total": 250}', "application/json") == 2


@run
async def test_errors_stop_nothing_beside_them(folder: Path) -> None:
    async with running(folder) as service:
        await subscribe(service, "a", "//order")
        with pytest.raises(SubscriptionSyntaxError):
            await subscribe(service, "b", "//order[")
        with pytest.raises(NameTaken):
            await subscribe(service, "a", "//order")
        bodies = [ORDER, b"<order", b"", ORDER]
        replies = await service.publish(TOPIC, [Message(body) for body in bodies])
        assert [reply.number for reply in replies] == [1, 0, 0, 2]
        assert isinstance(replies[1].error, MalformedDocument)
        with pytest.raises(UnknownName):
            await service.publish("tenant/none", [Message(ORDER)])
        assert await taken(service, "a") == [1, 2]


# -- the folder of the index -----------------------------------------------------------------------


@run
async def test_an_index_that_is_behind_is_made_up(folder: Path) -> None:
    async with running(folder) as service:
        for name in "abc":
            await subscribe(service, name, "//order")
        await subscribe(service, "event", "total > 1", language="events")
    shutil.copytree(folder / "index", folder / "old")
    async with running(folder) as service:
        await service.change(lambda core, request: core.unsubscribe(request, TOPIC, "a"))
        other = Subscription("b", "//none")
        await service.change(lambda core, request: core.replace(request, TOPIC, other))
        await subscribe(service, "d", "//order/total")
        # The old folder stands for one whose last changes were not synced in a power cut.
        indexed = service._runner._flushed[TOPIC]
    shutil.rmtree(folder / "index")
    shutil.copytree(folder / "old", folder / "index")
    store = SqliteStore(folder / "broker.db")
    store.set_indexed(TOPIC, 0)
    store._run("INSERT INTO removals SELECT topic, 5, 1 FROM topics")
    store.close()
    assert indexed > 0
    async with running(folder) as service:
        assert await matches(service, ORDER) == 2
        assert await taken(service, "c") == await taken(service, "d") == [1]


@pytest.mark.parametrize("harm", ["removed", "emptied", "damaged"])
def test_an_index_that_is_lost_is_made_again(harm: str, tmp_path: Path) -> None:
    @run
    async def test(folder: Path) -> None:
        async with running(folder) as service:
            for number in range(200):
                await subscribe(service, f"s{number}", f"//order[total > {number}]")
            await service.change(lambda core, request: core.unsubscribe(request, TOPIC, "s7"))
        xpath = folder / "index" / TOPIC / "xpath"
        match harm:
            case "removed":
                shutil.rmtree(folder / "index")
            case "emptied":
                shutil.rmtree(xpath)
            case "damaged":
                for path in xpath.iterdir():
                    path.write_bytes(path.read_bytes()[:-9] + b"x")
        async with running(folder) as service:
            assert await matches(service, ORDER) == 199

    test(tmp_path)


# -- the store fails -------------------------------------------------------------------------------


@run
async def test_a_store_that_fails_is_opened_again(folder: Path) -> None:
    async with running(folder) as service:
        await subscribe(service, "a", "//order")
        assert await matches(service, ORDER) == 1
        lease = (await service.try_take(TOPIC, "a", 1, 30.0)).lease
        assert lease is not None
        write, left = SqliteStore.write, [1, 1]

        def fails(self: SqliteStore, transaction: Any) -> None:
            if left.pop():
                write(self, transaction)  # it is stored, but nobody knows
            raise StoreError("the disk is full", "broker.db")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SqliteStore, "write", fails)
            with pytest.raises(StoreError, match="the disk is full"):
                await matches(service, ORDER)
        assert await matches(service, ORDER) == 1
        assert service.counts.restarts == 1
        with pytest.raises(StaleLease):
            await service.change(
                lambda core, request: core.acknowledge(request, TOPIC, "a", lease.token, [1])
            )
        assert await taken(service, "a") == [1, 2, 3]


@run
async def test_a_store_that_cannot_be_opened_is_tried_again(folder: Path) -> None:
    async with running(folder) as service:
        await subscribe(service, "a", "//order")
        fails = [True, True, False]
        opened = service._runner._open_store

        def open_store() -> Any:
            if fails.pop(0):
                raise StoreError("no disk", "broker.db")
            return opened()

        def broken(*_: Any) -> None:
            raise StoreError("no disk", "broker.db")

        service._runner._open_store = open_store
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runner, "_RETRY_S", 0.05)
            patch.setattr(SqliteStore, "write", broken)
            with pytest.raises(StoreError):
                await matches(service, ORDER)
        assert fails
        for _ in range(100):
            try:
                assert await matches(service, ORDER) == 1
                break
            except StoreError:
                await asyncio.sleep(0.05)
        assert await taken(service, "a") == [1]


@run
async def test_a_command_that_fails_does_not_take_the_answers_of_others(folder: Path) -> None:
    async with running(folder) as service:

        def fail(_: Any) -> None:
            raise StoreError("the disk is gone", "broker.db")

        both = await asyncio.gather(
            service.ask(lambda core: len(core.topics)), service.ask(fail), return_exceptions=True
        )
        assert both[0] == 1
        assert isinstance(both[1], StoreError)
        assert await matches(service, ORDER) == 0


# -- time and room ---------------------------------------------------------------------------------


@run
async def test_old_messages_are_deleted_and_told(folder: Path) -> None:
    clock = Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_MAINTAIN_S", 0.0)
        async with running(folder, clock, TopicOptions(retention_s=3_600.0)) as service:
            number = await subscribe(service, "a", "//order")
            for _ in range(3):
                await matches(service, ORDER)
            clock.now += 3_000.0
            await matches(service, ORDER)
            clock.now += 1_000.0
            for _ in range(100):
                gaps = await service.read(lambda store: store.gaps(TOPIC, number))
                if gaps:
                    break
                await asyncio.sleep(0.05)
            assert gaps == [Gap(1, 3, 3, "retention")]
            deleted, kept = await service.messages(TOPIC, [3, 4])
            assert deleted is None
            assert kept is not None
            assert await taken(service, "a") == [4]


@run
async def test_large_topics_lose_their_oldest_messages(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_MAINTAIN_S", 0.0)
        options = TopicOptions(retention_bytes=10 * len(ORDER))
        async with running(folder, None, options) as service:
            await service.publish(TOPIC, [Message(ORDER)] * 100)
            for _ in range(100):
                kept = await service.read(lambda store: store.messages(TOPIC, 1, 100, 200))
                if len(kept) == 10:
                    break
                await asyncio.sleep(0.05)
            assert [each.number for each in kept] == list(range(91, 101))


@run
async def test_too_much_is_refused(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "_WAITING_MAX", 5)
        async with running(folder) as service:
            results = await asyncio.gather(
                *(service.publish(TOPIC, [Message(ORDER)]) for _ in range(50)),
                return_exceptions=True,
            )
            refused = [each for each in results if isinstance(each, Overloaded)]
            assert 0 < len(refused) <= 45
            stored = await service.ask(lambda core: core.topic(TOPIC).last)
            assert stored == 50 - len(refused)


@run
async def test_what_ends_work_is_not_refused(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        async with running(folder) as service:
            await subscribe(service, "a", "//order")
            await matches(service, ORDER)
            patch.setattr(runner, "_WAITING_MAX", 0)
            with pytest.raises(Overloaded):
                await matches(service, ORDER)
            assert await taken(service, "a") == [1]


# -- consumers -------------------------------------------------------------------------------------


@run
async def test_a_consumer_waits_for_a_message(folder: Path) -> None:
    async with running(folder) as service:
        await subscribe(service, "a", "//order")
        waiting = asyncio.ensure_future(service.take(TOPIC, "a", 1, 30.0, wait_s=30.0))
        await asyncio.sleep(0.1)
        await matches(service, ORDER)
        lease = (await asyncio.wait_for(waiting, 5)).lease
        assert lease is not None
        assert [delivery.number for delivery in lease.deliveries] == [1]


@run
async def test_a_consumer_waits_for_the_lease_of_another_one(folder: Path) -> None:
    clock = Clock()
    async with running(folder, clock) as service:
        await subscribe(service, "a", "//order", options=QueueOptions(delay_s=0.0))
        await matches(service, ORDER)
        assert (await service.take(TOPIC, "a", 1, 30.0)).lease is not None
        waiting = asyncio.ensure_future(service.take(TOPIC, "a", 1, 30.0, wait_s=1e6))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        clock.now += 31.0
        lease = (await asyncio.wait_for(waiting, 5)).lease
        assert lease is not None
        (delivery,) = lease.deliveries
        assert (delivery.attempt, delivery.is_replay) == (2, True)


@run
async def test_what_waits_is_answered_before_the_end(folder: Path) -> None:
    async with running(folder) as service:
        every = [asyncio.ensure_future(service.publish(TOPIC, [Message(ORDER)])) for _ in range(99)]
        await asyncio.sleep(0)
        await service.stop()
        replies = await asyncio.gather(*every)
        assert sorted(reply.number for (reply,) in replies) == list(range(1, 100))
        with pytest.raises(Stopping):
            await service.publish(TOPIC, [Message(ORDER)])
    async with running(folder) as service:
        assert await service.ask(lambda core: core.topic(TOPIC).last) == 99


@run
async def test_a_consumer_learns_that_its_subscription_is_removed(folder: Path) -> None:
    async with running(folder) as service:
        await subscribe(service, "a", "//order")
        waiting = asyncio.ensure_future(service.take(TOPIC, "a", 1, 30.0, wait_s=30.0))
        await asyncio.sleep(0.1)
        await service.change(lambda core, request: core.unsubscribe(request, TOPIC, "a"))
        with pytest.raises(UnknownName):
            await asyncio.wait_for(waiting, 5)
