"""``Service``: a broker, its store and its indexes, for callers on an event loop.

A :class:`tamis.broker.runner.Runner` runs the broker in a thread. Its answers come back to the
event loop, all of a transaction at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tamis.broker.core.broker import Broker
from tamis.broker.core.model import (
    Elsewhere,
    Message,
    Name,
    Quotas,
    Reply,
    StoredMessage,
    Subscription,
    TopicOptions,
    no_topic,
)
from tamis.broker.core.queue import BrokerError, Delivery, Lease
from tamis.broker.payloads import Payloads
from tamis.broker.runner import Answer, Command, Request, Runner
from tamis.broker.store.queries import Queries, Token
from tamis.broker.store.writing import Store
from tamis.core.errors import TamisError

T = TypeVar("T")
_TOGETHER_BYTES = 4 << 20
_MESSAGE_BYTES = 1_000
"""What a message takes beside its body while it waits, about."""


class Taken(NamedTuple):
    """What a consumer gets: a lease, or when there may be one; and how it is delivered.

    Attributes:
        first_left: the first message that is to be delivered, apart from those of the lease.
    """

    lease: Lease | None
    due: float | None
    subscription: Subscription
    number: int
    first_left: int | None = None


class Watch:
    """Tells a consumer that its subscription may have messages."""

    __slots__ = ("_event", "_timer", "has_messages", "number")

    def __init__(self, number: int) -> None:
        self._event, self.has_messages, self.number = asyncio.Event(), True, number
        self._timer: asyncio.TimerHandle | None = None

    def receive(self) -> None:
        """There are messages; or an attempt may begin."""
        self.has_messages = True
        self._event.set()

    def receive_in(self, seconds: float) -> None:
        """There may be messages then."""
        self.close()
        self._timer = asyncio.get_running_loop().call_later(max(0.01, seconds), self.receive)

    def close(self) -> None:
        """Wait for no time any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def wake(self) -> None:
        """End the wait, without messages."""
        self._event.set()

    async def wait(self) -> None:
        """Wait for messages, or for ``wake``."""
        await self._event.wait()
        self._event.clear()


class Service:
    """A broker that runs.

    Args:
        folder: of the indexes.
        open_store: opens the store; again, if it failed.
        clock: the time in seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        open_store: Callable[[], Store],
        *,
        quotas: Quotas = Quotas(),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.clock, self._payloads = clock, Payloads()
        self._runner = Runner(
            folder, open_store, quotas, clock,
            self._resolve_soon, self._receive_soon, self._leave_soon,
        )  # fmt: skip
        self.counts = self._runner.counts
        self.is_draining = False
        self._watches: dict[Name, set[Watch]] = {}
        self.on_pushed: Callable[[list[tuple[str, str]]], None] = lambda _: None

    # -- the event loop ----------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the store and the indexes, and begin.

        Raises:
            StoreError: the store cannot be opened.
        """
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._runner.start)

    def drain(self) -> None:
        """End streams, so that the server can stop."""
        self.is_draining = True
        self.beat()

    async def stop(self) -> None:
        """Answer what waits, store it, and close everything."""
        await asyncio.to_thread(self._runner.stop)

    def _call(self, command: Command, parts: int, size: int = 0) -> asyncio.Future[Any]:
        request = Request(command, self._loop.create_future(), parts, size)
        self._runner.submit(request)
        return request.future

    async def ask(self, question: Callable[[Broker], T]) -> T:
        """What a function of the broker returns; nothing is stored."""
        answer: T = await self._call(lambda broker, _: question(broker), 0)
        return answer

    async def publish(self, topic: str, messages: Sequence[Message]) -> list[Reply]:
        """Store messages; the reply of each has its number, or its error.

        Raises:
            TamisError: none was stored.
        """

        def command(broker: Broker, request: int) -> None:
            broker.publish(topic, [((request, n), each) for n, each in enumerate(messages)])

        size = sum(len(message.body) for message in messages) + _MESSAGE_BYTES * len(messages)
        replies: list[Reply] = await self._call(command, len(messages), size)
        return replies

    def submit(self, command: Callable[[Broker, Any], None]) -> asyncio.Future[Any]:
        """Have a command followed before all later ones; the future has a list of its reply."""
        return self._call(lambda broker, request: command(broker, (request, 0)), 1)

    async def change(self, command: Callable[[Broker, Any], None]) -> Reply:
        """Follow a command that has one reply.

        Raises:
            TamisError: it was refused.
        """
        (reply,) = await self.submit(command)
        if reply.error is not None:
            raise reply.error
        found: Reply = reply
        return found

    async def change_many(self, commands: Sequence[Callable[[Broker, Any], None]]) -> list[Reply]:
        """Follow commands; those that are refused have an error in their reply."""

        def command(broker: Broker, request: int) -> None:
            for part, each in enumerate(commands):
                try:
                    each(broker, (request, part))
                except TamisError as error:
                    self._runner.replied(Reply((request, part), error=error), [])

        replies: list[Reply] = await self._call(command, len(commands))
        return replies

    async def take(
        self, topic: str, subscription: str, most: int, seconds: float, wait_s: float = 0.0
    ) -> Taken:
        """What a consumer gets next; waits so long for it, if there is nothing.

        Raises:
            UnknownName: there is no such topic or subscription.
        """
        until = self.clock() + wait_s
        async with self.watch(topic, subscription) as watch:
            while True:
                taken = await self.try_take(topic, subscription, most, seconds)
                left = until - self.clock()
                if taken.lease is not None or left <= 0 or self.is_draining:
                    return taken
                if taken.due is not None:
                    left = min(left, max(0.01, taken.due - self.clock()))
                with suppress(TimeoutError):
                    await asyncio.wait_for(watch.wait(), left)

    async def try_take(self, topic: str, subscription: str, most: int, seconds: float) -> Taken:
        """What a consumer gets now."""

        def command(broker: Broker) -> Taken:
            if topic in broker.topics and not self.holds(topic):
                raise Elsewhere("another process may have the topic now: try again")
            lease = broker.take(topic, subscription, most, self.clock(), seconds)
            if lease is not None:
                self.counts.deliveries += len(lease.deliveries)
            due = None if lease else broker.due(topic, subscription)
            found = broker.topic(topic)
            number = found.find(subscription)
            left = found.queues[number].first_left(lease.token) if lease else None
            return Taken(lease, due, found.subscriptions[number], number, left)

        return await self.ask(command)

    async def acknowledge(
        self, topic: str, subscription: str, token: int, numbers: Sequence[int]
    ) -> None:
        """Messages of a lease were delivered; returns when that is stored."""
        await self.change(
            lambda core, request: core.acknowledge(request, topic, subscription, token, numbers)
        )
        self.counts.acknowledged += len(numbers)

    def acknowledge_soon(
        self, topic: str, subscription: str, token: int, numbers: Sequence[int]
    ) -> None:
        """Messages of a lease were delivered; what comes next does not wait until it is stored."""
        self.counts.acknowledged += len(numbers)
        done = self.submit(
            lambda core, request: core.acknowledge(request, topic, subscription, token, numbers)
        )
        done.add_done_callback(lambda future: future.exception())

    async def fail(
        self, topic: str, subscription: str, token: int, number: int, reason: str,
        wait_s: float = 0.0,
    ) -> None:  # fmt: skip
        """An attempt failed: see ``DeliveryQueue.fail``."""
        now = self.clock()
        await self.change(
            lambda core, request: core.fail(
                request, topic, subscription, token, number, reason, now, wait_s
            )
        )
        self.counts.failed += 1

    async def extend(self, topic: str, subscription: str, token: int, seconds: float) -> float:
        """Let a lease end so many seconds from now, and return that time."""
        until = self.clock() + seconds
        await self.ask(lambda core: core.extend(topic, subscription, token, until))
        return until

    async def release(self, topic: str, subscription: str, token: int) -> None:
        """End a lease whose consumer has gone, if it has not ended."""
        with suppress(BrokerError):
            await self.ask(lambda core: core.release(topic, subscription, token))

    async def deliveries(self, topic: str, taken: Taken) -> AsyncIterator[list[dict[str, Any]]]:
        """The messages of a lease, as JSON has them: some at a time, as they fit into memory."""
        left = taken.lease.deliveries if taken.lease else ()
        title, namespaces = topic.partition("/")[2], dict(self.options(topic).namespaces)

        def make(
            some: Sequence[Delivery], messages: Sequence[StoredMessage | None]
        ) -> list[dict[str, Any]]:
            return [
                self._payloads.delivery(title, namespaces, taken.subscription, *pair)
                for pair in zip(some, messages, strict=True)
            ]

        while left:
            messages = await self.messages(topic, [delivery.number for delivery in left])
            some, left = left[: len(messages)], left[len(messages) :]
            if taken.subscription.payload in ("ids", "document"):
                yield make(some, messages)
            else:
                yield await asyncio.to_thread(make, some, messages)

    async def find(self, topic: str, subscription: str) -> int:
        """The number of a subscription."""
        return await self.ask(lambda core: core.topic(topic).find(subscription))

    @asynccontextmanager
    async def watch(self, topic: str, subscription: str) -> AsyncIterator[Watch]:
        """Watch for the messages that a subscription receives."""
        number = await self.find(topic, subscription)
        name, watch = (topic, number), Watch(number)
        self._watches.setdefault(name, set()).add(watch)
        try:
            yield watch
        finally:
            watch.close()
            watches = self._watches[name]
            watches.discard(watch)
            if not watches:
                del self._watches[name]

    def beat(self) -> None:
        """Wake all watches: connections that are idle send a sign of life."""
        for watches in self._watches.values():
            for watch in watches:
                watch.wake()

    async def messages(self, topic: str, numbers: Sequence[int]) -> list[StoredMessage | None]:
        """The messages of the first of some numbers, of a few MiB together; None: it is deleted."""
        recent = [self._runner.recent.get((topic, number)) for number in numbers]
        if None not in recent:
            return _some(recent)
        return await self.read(
            lambda queries: _some(
                stored or next(iter(queries.messages(topic, number, number, 1)), None)
                for number, stored in zip(numbers, recent, strict=True)
            )
        )

    async def read(self, function: Callable[[Queries], T]) -> T:
        """What a function reads of the store, over a connection of its own."""
        return await asyncio.to_thread(self._runner.read, function)

    async def create_topic(self, topic: str, options: TopicOptions) -> None:
        """Make a topic.

        Raises:
            NameTaken: there is one of this name.
        """
        await self.ask(lambda _: self._runner.create(topic, options))

    async def delete_topic(self, topic: str) -> None:
        """Delete a topic, with all that it has.

        Raises:
            UnknownName: there is none.
        """
        await self.ask(lambda _: self._runner.delete(topic))

    async def write(self, function: Callable[[Store], None]) -> None:
        """Change what is not part of transactions, such as tokens."""
        await self.ask(lambda _: self._runner.write(function))

    def holds(self, topic: str) -> bool:
        """Whether this process has a topic, and no other one can."""
        return self._runner.holds(topic)

    async def owner(self, topic: str) -> str | None:
        """The URL of the process that has a topic which this one does not have.

        Raises:
            Elsewhere: no process has it now.
        """
        url = await self.read(lambda queries: queries.owner(topic))
        if url is None and topic in self._runner.options:
            raise Elsewhere("no process has the topic now: try again")
        return url

    def options(self, topic: str) -> TopicOptions:
        """How a topic is kept.

        Raises:
            UnknownName: there is none.
        """
        found = self._runner.options.get(topic)
        if found is None:
            raise no_topic(topic)
        return found

    def tokens(self) -> list[Token]:
        """The tokens at the start."""
        return self._runner.read(Queries.tokens)

    def _resolve_soon(self, answers: list[Answer]) -> None:
        self._loop.call_soon_threadsafe(_resolve, answers)

    def _receive_soon(self, names: list[Name], pushed: list[tuple[str, str]]) -> None:
        if pushed:
            self._loop.call_soon_threadsafe(self.on_pushed, pushed)
        if watched := [name for name in names if name in self._watches]:
            self._loop.call_soon_threadsafe(self._receive, watched)

    def _leave_soon(self, topics: Collection[str]) -> None:
        self._loop.call_soon_threadsafe(self._leave, topics)

    def _leave(self, topics: Collection[str]) -> None:
        """Have consumers see that their topics have gone."""
        for (topic, _), watches in self._watches.items():
            for watch in watches if topic in topics else ():
                watch.receive()

    def _receive(self, names: list[Name]) -> None:
        for name in names:
            for watch in self._watches.get(name, ()):
                watch.receive()


def _some(messages: Iterable[StoredMessage | None]) -> list[StoredMessage | None]:
    found, size = [], 0
    for stored in messages:
        found.append(stored)
        size += len(stored.message.body) if stored else 0
        if size >= _TOGETHER_BYTES:
            break
    return found


def _resolve(answers: list[Answer]) -> None:
    """Give futures their results, on the event loop."""
    for future, result in answers:
        if future.done():
            continue  # its caller has gone
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
