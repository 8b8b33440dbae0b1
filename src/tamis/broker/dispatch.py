"""``Dispatcher``: sends the messages of subscriptions with a webhook.

A subscription whose queue is ready has a task, which takes a lease, sends its messages, and goes on
until there is nothing to take. An ordered subscription sends one message after the other; another
one sends many at a time. Slow endpoints hold up nobody else: there are so many connections to each.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import defaultdict
from contextlib import suppress
from typing import Any, Literal

import orjson

from tamis.broker.core.broker import Broker
from tamis.broker.core.model import Subscription, tenant_of
from tamis.broker.core.queue import BrokerError, Delivery, Lease
from tamis.broker.delivery.addresses import AddressGuard, EndpointRefused
from tamis.broker.delivery.breaker import CircuitBreakers
from tamis.broker.delivery.signing import envelope
from tamis.broker.delivery.webhooks import Attempt, Outcome, WebhookSender
from tamis.broker.service import Service, Taken
from tamis.core.errors import TamisError

log = logging.getLogger("tamis.broker")

_MOST = 32
_LEASE_S, _LEFT_S = 600.0, 300.0
_TAKING_MAX, _SENDING_MAX = 64, 32
"""So many subscriptions, and messages, of a tenant are on their way: others have room too."""
_Target = tuple[str, str]
"""A topic, and the id of one of its subscriptions."""


class Dispatcher:
    """Sends messages while it is open.

    Args:
        guard: of addresses that may be sent to.
    """

    def __init__(self, service: Service, sender: WebhookSender, guard: AddressGuard) -> None:
        self._service, self._sender, self._guard = service, sender, guard
        self._breakers = CircuitBreakers()
        self._tasks: dict[_Target, asyncio.Task[None]] = {}
        self._again: set[_Target] = set()
        self._timers: dict[_Target, asyncio.TimerHandle] = {}
        self._taking = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(_TAKING_MAX))
        self._sending = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(_SENDING_MAX))
        self._is_open = True
        service.on_pushed = self.wake

    def wake(self, names: list[_Target]) -> None:
        """Send what subscriptions, by topic and id, may have."""
        for name in names if self._is_open else ():
            if name in self._tasks:
                self._again.add(name)
            else:
                task = self._tasks[name] = asyncio.ensure_future(self._run(*name))
                task.add_done_callback(lambda _, name=name: self._ended(name))  # type: ignore[misc]

    def _ended(self, name: _Target) -> None:
        task = self._tasks.pop(name)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("webhook of %s: %s", name, error, exc_info=error)
        if name in self._again:
            self._again.discard(name)
            self.wake([name])

    async def close(self) -> None:
        """End the tasks. What they did not acknowledge is sent again at the next start."""
        self._is_open = False
        for timer in self._timers.values():
            timer.cancel()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, topic: str, id: str) -> None:
        with suppress(BrokerError):  # the subscription was removed, or the broker stops
            while self._is_open:
                async with self._taking[tenant_of(topic)]:
                    self._again.discard((topic, id))
                    if (due := await self._held_until(topic, id)) is not None:
                        self._wake_at(due, (topic, id))
                        return
                    taken = await self._service.try_take(topic, id, _MOST, _LEASE_S)
                    if taken.lease is None:
                        if taken.due is not None:
                            self._wake_at(taken.due, (topic, id))
                        return
                    if taken.subscription.webhook is None:  # it was replaced
                        await self._service.release(topic, id, taken.lease.token)
                        return
                    await self._send_all(topic, taken)

    async def _held_until(self, topic: str, id: str) -> float | None:
        """Until when a subscription's endpoint is left alone; None: it is not.

        This is asked before a lease is taken: to give one back makes the queue ready again.
        """
        if not len(self._breakers):
            return None
        subscription = await self._service.ask(
            lambda core: core.topic(topic).stored(id).subscription
        )
        if subscription.webhook is None:
            return None
        try:
            endpoint = self._guard.endpoint(subscription.webhook.url)
        except EndpointRefused:
            return None
        until = self._breakers.open_until((endpoint.host, endpoint.port))
        return until if until is not None and until > self._service.clock() else None

    def _wake_at(self, due: float, name: _Target) -> None:
        """Wake a subscription then, and not when it was to be woken before."""
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()

        def wake() -> None:
            self._timers.pop(name, None)
            self.wake([name])

        delay = max(0.01, due - self._service.clock())
        self._timers[name] = asyncio.get_running_loop().call_later(delay, wake)

    async def _send_all(self, topic: str, taken: Taken) -> None:
        """Send what a lease has, and give back what is not sent."""
        assert taken.lease is not None
        try:
            results = await self._send_leased(topic, taken, taken.lease)
        except TamisError:  # as when the store cannot be read
            results = ["held"]
        if "held" in results:
            await self._service.release(topic, taken.subscription.id, taken.lease.token)

    async def _send_leased(self, topic: str, taken: Taken, lease: Lease) -> list[str]:
        """Send what a lease has; what became of each message that was tried."""
        token, subscription = lease.token, taken.subscription
        deliveries, until = iter(lease.deliveries), lease.until
        results: list[str] = []
        async for made in self._service.deliveries(topic, taken):
            sends = (
                self._send(topic, subscription, Lease(token, until, (next(deliveries),)), one)
                for one in made
            )
            if not subscription.options.is_ordered:
                results += await asyncio.gather(*sends)
                continue
            for send in sends:
                results.append(await send)
                if results[-1] != "delivered":
                    break
                if until - self._service.clock() < _LEASE_S / 2:
                    until = await self._service.extend(topic, subscription.id, token, _LEASE_S)
            else:
                continue
            break  # the lease ended
        return results

    async def _send(
        self, topic: str, subscription: Subscription, lease: Lease, made: dict[str, Any]
    ) -> Literal["delivered", "failed", "held"]:
        """Make one attempt, unless the endpoint is to be left alone, or the lease ends soon."""
        id, service, token = subscription.id, self._service, lease.token
        (delivery,) = lease.deliveries
        if not service.holds(topic):
            return "held"
        try:
            endpoint = self._guard.endpoint(subscription.webhook.url)  # type: ignore[union-attr]
        except EndpointRefused as refused:  # it was allowed once
            outcome = Outcome(False, str(refused))
        else:
            key = endpoint.host, endpoint.port
            async with self._sending[tenant_of(topic)]:
                late = service.clock() > lease.until - _LEFT_S
                if late or not self._breakers.admit(key, service.clock()):
                    return "held"
                attempt = self._attempt(topic, subscription, delivery, made)
                outcome = await self._sender.send(attempt)
            if outcome.is_delivered:
                self._breakers.succeeded(key)
            else:
                self._breakers.failed(key, service.clock())
        if outcome.is_delivered or "deleted" in made:
            service.acknowledge_soon(topic, id, token, [delivery.number])
            return "delivered"
        wait_s = outcome.retry_after_s or 0.0
        await service.fail(topic, id, token, delivery.number, outcome.reason, wait_s)
        if outcome.is_gone:
            await service.ask(lambda core: _remove_webhook(core, topic, subscription))
        return "failed"

    def _attempt(
        self, topic: str, subscription: Subscription, delivery: Delivery, made: dict[str, Any]
    ) -> Attempt:
        webhook = subscription.webhook
        assert webhook is not None
        # A topic that is deleted and made again has the same numbers.
        parts = topic, subscription.id, str(delivery.number), made.get("accepted", "")
        name = "\0".join(parts).encode()
        id = f"msg_{hashlib.sha256(name).hexdigest()[:24]}"
        now = self._service.clock()
        content_type = "application/json"
        if not webhook.is_raw:
            body = envelope("tamis.match", now, made)
        elif "message" in made and made["message"] is not None:
            body, content_type = made["message"].encode(), "application/xml"
        elif "document" in made and isinstance(made["document"], str):
            body, content_type = made["document"].encode(), made["content_type"]
        else:
            body = orjson.dumps(made.get("document", made))
        headers = {"tamis-replay": "true"} if delivery.is_replay else {}
        if "traceparent" in made:
            headers["traceparent"] = made["traceparent"]
        return Attempt(webhook.url, id, body, webhook.secrets, int(now), content_type, headers)


def _remove_webhook(core: Broker, topic: str, gone: Subscription) -> None:
    """Remove the webhook of a subscription, if it has the same one still."""
    found = core.topic(topic).stored(gone.id)
    present, url = found.subscription, gone.webhook.url if gone.webhook else ""
    if present.webhook is not None and present.webhook.url == url:
        log.warning("%s, subscription %s: its webhook is gone, and is removed", topic, gone.id)
        core.replace(None, topic, present._replace(webhook=None), found.version)
