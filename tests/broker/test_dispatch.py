"""``Dispatcher``: endpoints that fail are left alone, and one that works again gets everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from tamis.broker.core.broker import Broker
from tamis.broker.core.model import Message, Subscription, TopicOptions, Webhook
from tamis.broker.core.queue import QueueOptions
from tamis.broker.delivery.addresses import AddressGuard
from tamis.broker.delivery.breaker import BreakerOptions, CircuitBreakers
from tamis.broker.delivery.signing import new_secret
from tamis.broker.delivery.webhooks import Attempt, Outcome, WebhookSender
from tamis.broker.dispatch import Dispatcher
from tamis.broker.service import Service, Taken
from tamis.broker.store.sqlite import SqliteStore

TOPIC = "tenant/topic"
URL = "https://example.com/hook"


class Endpoint(WebhookSender):
    """A sender whose endpoint answers as the test says, without a network."""

    def __init__(self) -> None:
        super().__init__()
        self.works, self.sent = True, list[str]()

    async def send(self, attempt: Attempt) -> Outcome:
        self.sent.append(attempt.id)
        await asyncio.sleep(3_600 if "slow" in attempt.url else 0)
        return Outcome(self.works, "" if self.works else "status 503")


class Counted(Service):
    """Counts the leases that are asked for."""

    takes = 0

    async def try_take(self, topic: str, subscription: str, most: int, seconds: float) -> Taken:
        self.takes += 1
        return await super().try_take(topic, subscription, most, seconds)


@asynccontextmanager
async def running(
    folder: Path, breakers: BreakerOptions, options: QueueOptions
) -> AsyncIterator[tuple[Counted, Endpoint]]:
    service = Counted(folder / "index", lambda: SqliteStore(folder / "broker.db"))
    endpoint = Endpoint()
    dispatcher = Dispatcher(service, endpoint, AddressGuard())
    dispatcher._breakers = CircuitBreakers(breakers)
    await service.start()
    try:
        await service.create_topic(TOPIC, TopicOptions())
        webhook = Webhook(URL, (new_secret(),))
        added = Subscription("a", "//a", options=options, webhook=webhook)
        await service.change(lambda core, request: core.subscribe(request, TOPIC, added))
        yield service, endpoint
    finally:
        await dispatcher.close()
        await service.stop()


async def until(holds: object, seconds: float = 10.0) -> None:
    assert callable(holds)
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("is_ordered", [True, False])
def test_an_endpoint_that_fails_is_left_alone(is_ordered: bool, tmp_path: Path) -> None:
    options = QueueOptions(is_ordered=is_ordered, delay_s=0.0, attempts_max=100)

    async def test() -> None:
        async with running(tmp_path, BreakerOptions(failures=2, open_s=600.0), options) as both:
            service, endpoint = both
            endpoint.works = False
            await service.publish(TOPIC, [Message(b"<a/>")] * 5)
            await until(lambda: len(endpoint.sent) >= 2)
            await asyncio.sleep(0.3)
            sent, takes = len(endpoint.sent), service.takes
            await asyncio.sleep(0.7)
            assert len(endpoint.sent) == sent <= 5
            assert service.takes == takes <= 10, "leases are taken, and given back, again and again"
            await service.publish(TOPIC, [Message(b"<a/>")])
            await asyncio.sleep(0.3)
            assert len(endpoint.sent) == sent

    asyncio.run(test())


@pytest.mark.parametrize("is_ordered", [True, False])
def test_an_endpoint_that_works_again_gets_everything(is_ordered: bool, tmp_path: Path) -> None:
    options = QueueOptions(is_ordered=is_ordered, delay_s=0.0, attempts_max=100)

    async def test() -> None:
        async with running(tmp_path, BreakerOptions(failures=2, open_s=0.2), options) as both:
            service, endpoint = both
            endpoint.works = False
            await service.publish(TOPIC, [Message(b"<a/>")] * 5)
            await until(lambda: len(endpoint.sent) >= 3)
            endpoint.works = True
            await until(lambda: service.counts.acknowledged == 5)
            dead = await service.read(lambda store: store.dead(TOPIC, 1, 0, 10))
            assert dead == []

    asyncio.run(test())


def test_another_endpoint_is_tried_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        breakers, options = BreakerOptions(failures=1, open_s=600.0), QueueOptions(delay_s=0.0)
        async with running(tmp_path, breakers, options) as (service, endpoint):
            endpoint.works = False
            await service.publish(TOPIC, [Message(b"<a/>")])
            await until(lambda: len(endpoint.sent) == 1)
            endpoint.works = True
            webhook = Webhook("https://example.org/hook", (new_secret(),))
            other = Subscription("a", "//a", options=options, webhook=webhook)
            await service.change(lambda core, request: core.replace(request, TOPIC, other))
            await service.publish(TOPIC, [Message(b"<a/>")])
            await until(lambda: service.counts.acknowledged == 2)

    asyncio.run(test())


def test_without_its_webhook_a_subscription_keeps_its_messages(tmp_path: Path) -> None:
    async def test() -> None:
        breakers, options = BreakerOptions(failures=100), QueueOptions(delay_s=0.2, attempts_max=50)
        async with running(tmp_path, breakers, options) as (service, endpoint):
            endpoint.works = False
            await service.publish(TOPIC, [Message(b"<a/>")] * 3)
            await until(lambda: len(endpoint.sent) == 1)
            other = Subscription("a", "//a", options=options)
            await service.change(lambda core, request: core.replace(request, TOPIC, other))
            await asyncio.sleep(0.5)
            takes = service.takes
            taken = await service.take(TOPIC, "a", 10, 30.0, wait_s=5.0)
            assert taken.lease is not None
            assert [each.number for each in taken.lease.deliveries] == [1, 2, 3]
            assert takes <= 10

    asyncio.run(test())


def test_a_tenant_with_slow_endpoints_holds_up_no_other_one(tmp_path: Path) -> None:
    async def test() -> None:
        options = QueueOptions(is_ordered=False)
        async with running(tmp_path, BreakerOptions(), options) as (service, endpoint):
            slow = Webhook("https://slow.example.com/", (new_secret(),))
            await service.create_topic("other/topic", TopicOptions())
            await service.change_many([
                partial(_subscribe, Subscription(str(n), "//a", options=options, webhook=slow))
                for n in range(1_000)
            ])  # fmt: skip
            await service.publish("other/topic", [Message(b"<a/>")] * 3)
            await until(lambda: len(endpoint.sent) >= 30)
            await service.publish(TOPIC, [Message(b"<a/>")])
            await until(lambda: service.counts.acknowledged == 1)
            assert len(endpoint.sent) < 40

    asyncio.run(test())


def _subscribe(added: Subscription, core: Broker, request: object) -> None:
    core.subscribe(request, "other/topic", added)
