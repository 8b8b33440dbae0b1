"""``Runner``: the thread that runs a broker, and stores what it decides.

It takes all commands that came while the last transaction was stored, matches their messages
together, and stores them as the next transaction (group commit).
"""

from __future__ import annotations

import asyncio
import logging
import math
import shutil
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path
from random import random
from typing import Any, TypeVar

from tamis.broker.core.broker import Broker
from tamis.broker.core.model import (
    Name,
    Quotas,
    Reply,
    StoredMessage,
    StoredTopic,
    TopicOptions,
    Transaction,
)
from tamis.broker.core.queue import BrokerError
from tamis.broker.index import TopicIndex, open_index
from tamis.broker.store.queries import Queries, StoreCatalog
from tamis.broker.store.writing import Store
from tamis.core.errors import StoreError, TamisError

log = logging.getLogger("tamis.broker")
T = TypeVar("T")
Command = Callable[[Broker, int], Any]
"""Is called with the number of its request: a reply that had the request would be in a cycle."""
Answer = tuple[asyncio.Future[Any], Any]
"""A future, and its result, or the error that is it."""

_WAITING_MAX, _WAITING_BYTES_MAX = 20_000, 128 << 20
_GROUP_MAX = 4_096
_RECENT_BYTES_MAX = 64 << 20
_EXPIRE_S, _MAINTAIN_S, _KEYS_KEPT_S = 0.25, 2.0, 86_400.0
_FORGOTTEN_MAX = 2_000
"""So many messages, or keys, are deleted in a transaction: others wait for 20 ms."""
_FLUSHED_MAX = 20
_RETRY_S = 1.0
_OWN_S = 0.5


class Overloaded(BrokerError):  # noqa: N818 - says what is the matter
    """More commands wait than the broker can follow soon: try again later."""

    code = "broker-overloaded"


class Stopping(BrokerError):  # noqa: N818 - says what is the matter
    """The broker stops: nothing is accepted any more."""

    code = "broker-stopping"


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
        self.published = self.matches = self.deliveries = self.acknowledged = 0
        self.failed = self.commits = self.restarts = 0
        self.commit_s = 0.0


class Runner:
    """Runs a broker.

    Args:
        folder: of the indexes.
        open_store: opens the store; again, if it failed.
        clock: the time in seconds since 1970.
        on_answers: called with answers, in the thread of the broker.
        on_ready: called there with queues that may have messages to take, and with the topics and
            ids of those that have a webhook.
        on_left: called there with topics that other processes own from now on.
    """

    def __init__(
        self,
        folder: Path,
        open_store: Callable[[], Store],
        quotas: Quotas,
        clock: Callable[[], float],
        on_answers: Callable[[list[Answer]], None],
        on_ready: Callable[[list[Name], list[tuple[str, str]]], None],
        on_left: Callable[[Collection[str]], None],
    ) -> None:
        self._folder, self._open_store, self._quotas = folder, open_store, quotas
        self._clock, self._on_answers = clock, on_answers
        self._on_ready, self._on_left = on_ready, on_left
        self.counts = Counts()
        self.options: dict[str, TopicOptions] = {}
        self.recent: OrderedDict[Name, StoredMessage] = OrderedDict()
        self._recent_bytes = 0
        self._commands: deque[Request] = deque()
        self._waiting_bytes = 0
        self._wake, self._is_stopping = threading.Event(), False
        self._outstanding: dict[int, Request] = {}  # by their numbers
        self._next_request = count().__next__
        self._reading, self._opened = threading.Lock(), ExitStack()
        self._indexes: dict[str, TopicIndex] = {}
        self._coming: dict[str, Future[TopicIndex]] = {}  # of topics that are taken over
        self._flushed: dict[str, int] = {}
        self._epochs: dict[str, int] = {}  # since when topics are owned
        self._is_behind = False  # more messages are to be deleted

    def start(self) -> None:
        """Open the store and the indexes, and begin.

        Raises:
            StoreError: the store cannot be opened.
        """
        self._open()
        self._thread = threading.Thread(target=self._run, name="tamis-broker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Follow the commands that wait, store them, and close everything."""
        self._is_stopping = True
        self._wake.set()
        self._thread.join()

    def submit(self, request: Request) -> None:
        """Have a command followed.

        Raises:
            Overloaded: too much waits.
            Stopping: the broker stops.
        """
        if self._is_stopping:
            raise Stopping("the broker stops: try again when it has started")
        is_full = len(self._commands) >= _WAITING_MAX or self._waiting_bytes > _WAITING_BYTES_MAX
        if is_full and request.bytes:  # what ends work is never refused
            raise Overloaded("more comes than the broker can store: try again later")
        self._waiting_bytes += request.bytes
        self._commands.append(request)
        if not self._wake.is_set():  # which takes less time than to set it again
            self._wake.set()

    def holds(self, topic: str) -> bool:
        """Whether this process has a topic, and no other one can; in any thread."""
        return topic in self._indexes and self._store.holds(topic)

    def read(self, function: Callable[[Queries], T]) -> T:
        """What a function reads of the store, over a connection of its own; in any thread."""
        with self._reading:
            return function(self._reader)

    def write(self, function: Callable[[Store], None]) -> None:
        """Change what is not part of transactions; in a command."""
        function(self._store)

    # -- the thread of the broker ------------------------------------------------------------------

    def _open(self) -> None:
        self._store = self._open_store()
        self._opened.callback(self._store.close)
        self._reader = self._store.reader()
        self._opened.callback(self._close_reader, self._reader)
        if math.isfinite(self._store.lease_s):
            self._opened.enter_context(_renewing(self._store))
        self._opened.callback(self._close_indexes)
        self._pool = self._opened.enter_context(ThreadPoolExecutor(1, "tamis-topics"))
        self.options = self._store.topics()
        owned = self._store.own()
        for name in owned:
            self._indexes[name] = self._open_index(name)
        self._broker = Broker(
            {name: self._store.read(name) for name in owned},
            lambda name: StoreCatalog(self._store, name),
            self._indexes.__getitem__,
            random,
            epoch=self._store.epoch,
            quotas=self._quotas,
            every=lambda: self.options,
        )
        self._epochs = dict(owned)
        for index in self._indexes.values():
            self._pool.submit(index.warm)

    def _open_index(self, name: str) -> TopicIndex:
        with closing(self._store.reader()) as reader:
            subscriptions = reader.read(name).subscriptions
            return open_index(self._folder / name, self.options[name], reader, name, subscriptions)

    def _close_indexes(self) -> None:
        """Close the indexes, once no thread opens others."""
        coming = [future.result() for future in self._coming.values() if not future.exception()]
        every, self._indexes, self._coming = [*self._indexes.values(), *coming], {}, {}
        with ExitStack() as closed:
            for index in every:
                closed.callback(index.close)

    def _close_reader(self, reader: Queries) -> None:
        with self._reading:
            reader.close()

    def _run(self) -> None:
        expire = maintain = own = 0.0
        while True:
            self._wake.wait(_EXPIRE_S)
            self._wake.clear()
            is_last = self._is_stopping and not self._commands
            now = self._clock()
            try:
                if now < expire - 2 * _EXPIRE_S or now >= expire:  # the clock may go back
                    self._broker.expire(now)
                    expire = now + _EXPIRE_S
                self._follow()
                self._commit()
                self._notify()
                if math.isfinite(self._store.lease_s) and abs(now - own) >= _OWN_S:
                    self._own()
                    own = now
                if self._is_behind or abs(now - maintain) >= _MAINTAIN_S:
                    self._maintain(now)
                    maintain = now
                if is_last:
                    self._maintain(now)
                    self._opened.close()
                    return
            except Exception as error:  # nobody knows what is stored
                self._restart(error)
                if self._is_stopping:
                    return
            if self._commands:
                self._wake.set()

    def _follow(self) -> None:
        """Follow the commands that wait."""
        answers: list[Answer] = []
        try:
            self._follow_group(answers)
        finally:
            self._answer(answers)

    def _follow_group(self, answers: list[Answer]) -> None:
        for _ in range(min(_GROUP_MAX, len(self._commands))):
            request = self._commands.popleft()
            self._waiting_bytes -= request.bytes
            number = self._next_request()
            self._outstanding[number] = request
            try:
                result = request.command(self._broker, number)
            except StoreError:
                raise
            except Exception as error:
                if not isinstance(error, TamisError):
                    log.exception("a command failed")
                result, request.left, request.replies = error, 0, []
            if request.left == 0:
                self._outstanding.pop(number, None)  # it may have all its replies
                answers.append((request.future, request.replies or result))

    def _notify(self) -> None:
        """Have consumers take what is ready."""
        ready = self._broker.take_ready()
        pushed: dict[tuple[str, str], None] = {}
        for topic, number in ready:
            subscription = self._broker.topics[topic].subscriptions.get(number)
            if subscription is not None and subscription.webhook is not None:
                pushed[topic, subscription.id] = None
        if ready:
            self._on_ready(ready, list(pushed))

    def _commit(self) -> None:
        """Store the next transaction, and answer."""
        transaction = self._broker.begin(self._clock())
        if transaction is None:
            return
        start = time.perf_counter()
        self._store.write(transaction)
        self.counts.commit_s += time.perf_counter() - start
        self.counts.commits += 1
        self._remember(transaction)
        answers: list[Answer] = []
        for reply in self._broker.committed():
            self.replied(reply, answers)
        self._answer(answers)

    def create(self, name: str, options: TopicOptions) -> None:
        """Make a topic, durably; in a command."""
        self._look_at_topics()
        self._broker.check_new(name)
        self._store.create(name, options)
        self.options[name] = options
        self._look_topics_up()
        shutil.rmtree(self._folder / name, ignore_errors=True)  # of one that was deleted
        self._indexes[name] = TopicIndex(self._folder / name, options)
        self._epochs[name] = self._store.epoch
        self._broker.adopt(name, StoredTopic())

    def delete(self, name: str) -> None:
        """Delete a topic, durably; in a command."""
        self._broker.topic(name)
        self._store.delete(name)
        self._look_topics_up()
        self._drop([name])
        del self.options[name]
        shutil.rmtree(self._folder / name, ignore_errors=True)

    def _look_at_topics(self) -> None:
        """Know the topics that other processes have now."""
        if math.isfinite(self._store.lease_s):
            self.options = self._store.topics()

    def _drop(self, names: Collection[str]) -> None:
        for name in names:
            self._broker.drop(name)
            self._indexes.pop(name).close()
            self._flushed.pop(name, None)
            self._epochs.pop(name, None)
            for each in [each for each in self.recent if each[0] == name]:
                self._recent_bytes -= len(self.recent.pop(each).message.body)
        if names:
            self._on_left(names)

    def _look_topics_up(self) -> None:
        """Have names looked up again: each may be another topic's now."""
        self._store.forget_topics()
        self._reader.forget_topics()

    def replied(self, reply: Reply, answers: list[Answer]) -> None:
        """Have the reply of a part of a request."""
        if reply.request is None:
            return
        number, part = reply.request
        if reply.matches is not None:
            self.counts.published += 1
            self.counts.matches += reply.matches
        request = self._outstanding.get(number)  # None: another part failed
        if request is not None and request.reply(part, reply):
            del self._outstanding[number]
            answers.append((request.future, request.replies))

    def _remember(self, transaction: Transaction) -> None:
        """Keep recent messages that somebody gets in memory."""
        for topic, last in transaction.forgotten.items():
            for name in [name for name in self.recent if name[0] == topic and name[1] <= last]:
                self._recent_bytes -= len(self.recent.pop(name).message.body)
        for topic, messages in transaction.messages.items():
            for stored in messages:
                if len(stored.matched.subscriptions):
                    self.recent[topic, stored.number] = stored
                    self._recent_bytes += len(stored.message.body)
        while self._recent_bytes > _RECENT_BYTES_MAX:
            _, stored = self.recent.popitem(last=False)
            self._recent_bytes -= len(stored.message.body)

    def _answer(self, answers: list[Answer]) -> None:
        if answers:
            self._on_answers(answers)

    def _own(self) -> None:
        """Take topics over, and leave others to other processes; nothing of them waits here."""
        owned, had = self._store.own(), {*self._broker.topics}
        # Of a topic that was lost, and taken back, nothing that is known is valid.
        gone = {name for name in had if owned.get(name) != self._epochs[name]}
        self._drop(gone)
        self._store.release(gone - owned.keys())
        self._look_at_topics()
        for name in owned.keys() - (had - gone) - self._coming.keys():
            self._epochs[name] = owned[name]
            self._coming[name] = self._pool.submit(self._open_index, name)
        for name in [name for name, future in self._coming.items() if future.done()]:
            index = self._coming.pop(name).result()
            if owned.get(name) != self._epochs.get(name):
                index.close()
                self._epochs.pop(name, None)
                if name not in owned:
                    self._store.release([name])
                continue
            self._indexes[name] = index
            self._look_topics_up()
            self._broker.adopt(name, self._store.read(name))

    def _maintain(self, now: float) -> None:
        """Delete old messages and keys, and note what the folders of the indexes have."""
        self._is_behind = self._store.expire_keys(now - _KEYS_KEPT_S, _FORGOTTEN_MAX)
        self._is_behind |= self._store.delete_rest(_FORGOTTEN_MAX)
        for name in self._broker.topics:
            if number := self._store.outdated(name, self.options[name], now, _FORGOTTEN_MAX):
                self._broker.forget(name, number)
                self._is_behind = True
        if self._is_behind:
            self._wake.set()
        turns = {name: turn for turn, name in enumerate(self._flushed)}
        changed = [
            name for name, topic in self._broker.topics.items()
            if topic.indexed != self._flushed.get(name)
        ]  # fmt: skip
        changed.sort(key=lambda name: turns.get(name, -1))  # those that waited longest are first
        for name in changed[:_FLUSHED_MAX]:
            version = self._broker.topics[name].indexed
            self._indexes[name].flush()
            self._store.set_indexed(name, version)
            self._flushed.pop(name, None)
            self._flushed[name] = version

    def _restart(self, error: Exception) -> None:
        """Make another broker, of what is stored; nobody knows what became of the last commands."""
        log.error("the broker starts again: %s", error, exc_info=not isinstance(error, TamisError))
        failed = (
            error if isinstance(error, TamisError) else StoreError(str(error), str(self._folder))
        )
        self._answer([(request.future, failed) for request in self._outstanding.values()])
        self._outstanding, self._flushed = {}, {}
        self.counts.restarts += 1
        self.recent.clear()
        self._recent_bytes = 0
        while not self._is_stopping:
            try:
                self._opened.close()
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


@contextmanager
def _renewing(store: Store) -> Iterator[None]:
    """Keep what this process owns, in a thread: a long transaction must not lose it."""
    is_over = threading.Event()

    def renew() -> None:
        while not is_over.wait(store.lease_s / 5):
            try:
                store.renew()
            except StoreError as error:
                log.warning("the topics cannot be kept: %s", error)

    thread = threading.Thread(target=renew, name="tamis-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
