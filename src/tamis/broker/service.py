"""``Service``: a broker, its store and its indexes, for callers on an event loop.

One thread runs the :class:`tamis.broker.core.broker.Broker`. It takes all commands that came while
the last transaction was stored, matches their messages together, and stores them as the next
transaction (group commit). Answers go back to the event loop, all of a transaction at once.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import random
from typing import Any, NamedTuple, TypeVar

from tamis.broker.core.broker import Broker
from tamis.broker.core.model import (
    Message,
    Name,
    Quotas,
    Reply,
    Subscription,
    TopicOptions,
    Transaction,
)
from tamis.broker.core.queue import BrokerError, Lease
from tamis.broker.index import TopicIndex, open_index
from tamis.broker.payloads import Payloads
from tamis.broker.store.queries import Kept, Queries, StoreCatalog, Token
from tamis.broker.store.writing import Store
from tamis.core.errors import StoreError, TamisError

log = logging.getLogger("tamis.broker")
T = TypeVar("T")
Command = Callable[[Broker, "Request"], Any]

_WAITING_MAX, _WAITING_BYTES_MAX = 20_000, 128 << 20
_GROUP_MAX = 4_096
_RECENT_BYTES_MAX = 64 << 20
_EXPIRE_S, _MAINTAIN_S, _KEYS_S, _KEYS_KEPT_S = 0.25, 2.0, 600.0, 86_400.0
_FORGOTTEN_MAX = 2_000
"""So many messages are deleted in a transaction: others wait for 20 ms."""
_RETRY_S = 1.0


class Overloaded(BrokerError):  # noqa: N818 - says what is the matter
    """More commands wait than the broker can follow soon: try again later."""

    code = "broker-overloaded"


class Stopping(BrokerError):  # noqa: N818 - says what is the matter
    """The broker stops: nothing is accepted any more."""

    code = "broker-stopping"


class Taken(NamedTuple):
    """What a consumer gets: a lease, or when there may be one; and how it is delivered."""

    lease: Lease | None
    due: float | None
    subscription: Subscription


class Watch:
    """Tells a consumer that its subscription may have messages."""

    __slots__ = ("_event", "has_messages")

    def __init__(self) -> None:
        self._event, self.has_messages = asyncio.Event(), True

    def receive(self) -> None:
        """There are messages; or an attempt may begin."""
        self.has_messages = True
        self._event.set()

    def wake(self) -> None:
        """End the wait, without messages."""
        self._event.set()

    async def wait(self) -> None:
        """Wait for messages, or for ``wake``."""
        await self._event.wait()
        self._event.clear()


class Request:
    """A command on its way, with one reply for each of its parts."""

    __slots__ = ("bytes", "command", "future", "left", "replies")

    def __init__(
        self, command: Command, future: asyncio.Future[Any], parts: int, size: int
    ) -> None:
        self.command, self.future, self.left, self.bytes = command, future, parts, size
        self.replies: list[Any] = [None] * parts

    def reply(self, part: int, reply: Reply) -> bool:
        """Have a reply; whether it was the last one."""
        self.replies[part] = reply
        self.left -= 1
        return self.left == 0


class Counts:
    """What happened since the start."""

    def __init__(self) -> None:
        self.published = self.refused = self.matches = self.deliveries = self.acknowledged = 0
        self.failed = self.commits = self.restarts = 0
        self.commit_s = 0.0


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
        self._folder, self._open_store, self._quotas = folder, open_store, quotas
        self.clock, self.counts, self.payloads = clock, Counts(), Payloads()
        self._commands: deque[Request] = deque()
        self._waiting_bytes = 0
        self._wake, self._is_stopping = threading.Event(), False
        self._outstanding: set[Request] = set()
        self._recent: OrderedDict[Name, Kept] = OrderedDict()
        self._recent_bytes = 0
        self._watches: dict[Name, set[Watch]] = {}
        self.on_pushed: Callable[[list[tuple[str, str]]], None] = lambda _: None
        self._reading = threading.Lock()
        self.is_draining = False
        self._indexes: dict[str, TopicIndex] = {}
        self._flushed: dict[str, int] = {}

    # -- the event loop ----------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the store and the indexes, and begin.

        Raises:
            StoreError: the store cannot be opened.
        """
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._open)
        self._thread = threading.Thread(target=self._run, name="tamis-broker", daemon=True)
        self._thread.start()

    def drain(self) -> None:
        """End streams, so that the server can stop."""
        self.is_draining = True
        self.beat()

    async def stop(self) -> None:
        """Answer what waits, store it, and close everything."""
        self._is_stopping = True
        self._wake.set()
        await asyncio.to_thread(self._thread.join)

    def _call(self, command: Command, parts: int, size: int = 0) -> asyncio.Future[Any]:
        if self._is_stopping:
            raise Stopping("the broker stops: try again when it has started")
        if len(self._commands) >= _WAITING_MAX or self._waiting_bytes > _WAITING_BYTES_MAX:
            raise Overloaded("more comes than the broker can store: try again later")
        request = Request(command, self._loop.create_future(), parts, size)
        self._waiting_bytes += size
        self._commands.append(request)
        self._wake.set()
        return request.future

    async def ask(self, question: Callable[[Broker], T]) -> T:
        """What a function of the broker returns; nothing is stored."""
        answer: T = await self._call(lambda broker, _: question(broker), 0)
        return answer

    async def publish(self, topic: str, messages: Sequence[Message]) -> list[Reply]:
        """Store messages; the reply of each has its number, or its error."""

        def command(broker: Broker, request: Request) -> None:
            broker.topic(topic)
            for part, message in enumerate(messages):
                broker.publish((request, part), topic, message)

        size = sum(len(message.body) for message in messages)
        replies: list[Reply] = await self._call(command, len(messages), size)
        return replies

    async def change(self, command: Callable[[Broker, Any], None]) -> Reply:
        """Follow a command that has one reply.

        Raises:
            TamisError: it was refused.
        """
        (reply,) = await self._call(lambda broker, request: command(broker, (request, 0)), 1)
        if reply.error is not None:
            raise reply.error
        found: Reply = reply
        return found

    async def change_many(self, commands: Sequence[Callable[[Broker, Any], None]]) -> list[Reply]:
        """Follow commands; those that are refused have an error in their reply."""

        def command(broker: Broker, request: Request) -> None:
            for part, each in enumerate(commands):
                try:
                    each(broker, (request, part))
                except TamisError as error:
                    self._replied(Reply((request, part), error=error), [])

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
                if taken.lease is not None or left <= 0 or self._is_stopping:
                    return taken
                if taken.due is not None:
                    left = min(left, max(0.01, taken.due - self.clock()))
                with suppress(TimeoutError):
                    await asyncio.wait_for(watch.wait(), left)

    async def try_take(self, topic: str, subscription: str, most: int, seconds: float) -> Taken:
        """What a consumer gets now."""

        def command(broker: Broker) -> Taken:
            lease = broker.take(topic, subscription, most, self.clock(), seconds)
            if lease is not None:
                self.counts.deliveries += len(lease.deliveries)
            due = None if lease else broker.due(topic, subscription)
            found = broker.topic(topic)
            return Taken(lease, due, found.subscriptions[found.find(subscription)])

        return await self.ask(command)

    @asynccontextmanager
    async def watch(self, topic: str, subscription: str) -> AsyncIterator[Watch]:
        """Watch for the messages that a subscription receives."""
        number = await self.ask(lambda broker: broker.topic(topic).find(subscription))
        name, watch = (topic, number), Watch()
        self._watches.setdefault(name, set()).add(watch)
        try:
            yield watch
        finally:
            watches = self._watches[name]
            watches.discard(watch)
            if not watches:
                del self._watches[name]

    def beat(self) -> None:
        """Wake all watches: connections that are idle send a sign of life."""
        for watches in self._watches.values():
            for watch in watches:
                watch.wake()

    async def messages(self, topic: str, numbers: Iterable[int]) -> dict[int, Kept]:
        """The messages of some numbers that are kept."""
        wanted = list(numbers)
        found = {number: self._recent[topic, number] for number in wanted
                 if (topic, number) in self._recent}  # fmt: skip
        missing = [number for number in wanted if number not in found]
        if missing:

            def read(queries: Queries) -> list[Kept]:
                return [kept for each in missing for kept in queries.messages(topic, each, each, 1)]

            found |= {kept.number: kept for kept in await self.read(read)}
        return found

    async def read(self, function: Callable[[Queries], T]) -> T:
        """What a function reads of the store, over a connection of its own."""

        def reading() -> T:
            with self._reading:
                return function(self._reader)

        return await asyncio.to_thread(reading)

    async def write(self, function: Callable[[Store], None]) -> None:
        """Change what is not part of transactions, such as tokens."""
        await self.ask(lambda _: function(self._store))

    def options(self, topic: str) -> TopicOptions:
        """How a topic is kept."""
        return self._options[topic]

    def tokens(self) -> list[Token]:
        """The tokens at the start."""
        return self._reader.tokens()

    # -- the thread of the broker ------------------------------------------------------------------

    def _open(self) -> None:
        self._store = self._open_store()
        self._reader = self._store.reader()
        self._options = self._store.topics()
        for name, options in self._options.items():
            tenant, _, topic = name.partition("/")
            folder = self._folder / tenant / topic
            self._indexes[name] = open_index(folder, options, self._store, name)
        self._broker = Broker(
            {name: self._store.read(name) for name in self._options},
            lambda name: StoreCatalog(self._store, name),
            self._indexes.__getitem__,
            random,
            epoch=self._store.epoch,
            quotas=self._quotas,
        )

    def _close(self) -> None:
        for index in self._indexes.values():
            index.close()
        self._indexes = {}
        with self._reading:
            self._reader.close()
            self._store.close()

    def _run(self) -> None:
        expire = maintain = keys = 0.0
        while True:
            self._wake.wait(_EXPIRE_S)
            self._wake.clear()
            is_last = self._is_stopping and not self._commands
            now = self.clock()
            try:
                if now < expire - 2 * _EXPIRE_S or now >= expire:  # the clock may go back
                    self._broker.expire(now)
                    expire = now + _EXPIRE_S
                self._follow()
                self._commit()
                self._notify()
                if abs(now - maintain) >= _MAINTAIN_S:
                    self._maintain(now)
                    maintain = now
                if abs(now - keys) >= _KEYS_S:
                    self._store.expire_keys(now - _KEYS_KEPT_S)
                    keys = now
                if is_last:
                    self._maintain(now)
                    self._close()
                    return
            except Exception as error:  # nobody knows what is stored
                self._restart(error)
                if self._is_stopping:
                    return
            if self._commands:
                self._wake.set()

    def _follow(self) -> None:
        """Follow the commands that wait."""
        answers: list[tuple[asyncio.Future[Any], Any]] = []
        for _ in range(min(_GROUP_MAX, len(self._commands))):
            request = self._commands.popleft()
            self._waiting_bytes -= request.bytes
            self._outstanding.add(request)
            try:
                result = request.command(self._broker, request)
            except StoreError:
                raise
            except Exception as error:
                if not isinstance(error, TamisError):
                    log.exception("a command failed")
                result, request.replies = error, []
            if request.left == 0 or isinstance(result, BaseException):
                self._outstanding.discard(request)
                answers.append((request.future, request.replies or result))
        self._answer(answers)

    def _notify(self) -> None:
        """Have consumers take what is ready."""
        ready = self._broker.take_ready()
        pushed: dict[tuple[str, str], None] = {}
        for topic, number in ready:
            subscription = self._broker.topics[topic].subscriptions.get(number)
            if subscription is not None and subscription.webhook is not None:
                pushed[topic, subscription.id] = None
        if pushed:
            self._loop.call_soon_threadsafe(self.on_pushed, list(pushed))
        if watched := [name for name in ready if name in self._watches]:
            self._loop.call_soon_threadsafe(self._receive, watched)

    def _receive(self, names: list[Name]) -> None:
        for name in names:
            for watch in self._watches.get(name, ()):
                watch.receive()

    def _commit(self) -> None:
        """Store the next transaction, and answer."""
        name: Any
        transaction = self._broker.begin(self.clock())
        if transaction is None:
            return
        for name, options in transaction.created.items():
            self._open_new(name, options)
        start = time.perf_counter()
        self._store.write(transaction)
        self.counts.commit_s += time.perf_counter() - start
        self.counts.commits += 1
        self._remember(transaction)
        answers: list[tuple[asyncio.Future[Any], Any]] = []
        for reply in self._broker.committed():
            self._replied(reply, answers)
        self._answer(answers)

    def _open_new(self, name: str, options: TopicOptions) -> None:
        tenant, _, topic = name.partition("/")
        self._options[name] = options
        self._indexes[name] = TopicIndex(self._folder / tenant / topic, options)

    def _replied(self, reply: Reply, answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
        if reply.request is None:
            return
        request, part = reply.request
        if reply.matches is not None:
            self.counts.published += 1
            self.counts.matches += reply.matches
        if request.reply(part, reply):
            self._outstanding.discard(request)
            answers.append((request.future, request.replies))

    def _remember(self, transaction: Transaction) -> None:
        """Keep recent messages that somebody gets in memory."""
        for topic, messages in transaction.messages.items():
            for number, accepted, message, (version, matched) in messages:
                if len(matched):
                    self._recent[topic, number] = Kept(number, accepted, message, version, matched)
                    self._recent_bytes += len(message.body)
        while self._recent_bytes > _RECENT_BYTES_MAX:
            _, kept = self._recent.popitem(last=False)
            self._recent_bytes -= len(kept.message.body)

    def _answer(self, answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
        if answers:
            self._loop.call_soon_threadsafe(_resolve, answers)

    def _maintain(self, now: float) -> None:
        """Delete old messages, and note what the folders of the indexes have."""
        for name, topic in self._broker.topics.items():
            if number := self._store.outdated(name, self._options[name], now, _FORGOTTEN_MAX):
                self._broker.forget(name, number)
                self._wake.set()
            if topic.indexed != self._flushed.get(name):
                self._indexes[name].flush()
                self._store.set_indexed(name, topic.indexed)
                self._flushed[name] = topic.indexed

    def _restart(self, error: Exception) -> None:
        """Make another broker, of what is stored; nobody knows what became of the last commands."""
        log.error("the broker starts again: %s", error, exc_info=not isinstance(error, TamisError))
        failed = (
            error if isinstance(error, TamisError) else StoreError(str(error), str(self._folder))
        )
        self._answer([(request.future, failed) for request in self._outstanding])
        self._outstanding, self._flushed = set(), {}
        self.counts.restarts += 1
        self._recent.clear()
        self._recent_bytes = 0
        while not self._is_stopping:
            try:
                self._close()
            except Exception as again:
                log.error("closing the store: %s", again)
            try:
                self._open()
                return
            except Exception as again:
                log.error("the store cannot be opened, tried again in %s s: %s", _RETRY_S, again)
                waiting, self._commands = self._commands, deque()
                self._answer([(request.future, failed) for request in waiting])
                self._waiting_bytes = 0
                time.sleep(_RETRY_S)


def _resolve(answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
    """Give futures their results, on the event loop."""
    for future, result in answers:
        if future.done():
            continue  # its caller has gone
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)
