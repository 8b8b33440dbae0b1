"""Disks that fail, are full or slow, and damaged pages; checkpoints beside readers."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tamis.broker import runner
from tamis.broker.core.model import (
    Counters,
    Matched,
    Message,
    StoredMessage,
    Subscription,
    TopicOptions,
    Transaction,
)
from tamis.broker.service import Service
from tamis.broker.store import sqlite
from tamis.broker.store.sqlite import SqliteStore, wal_bytes
from tamis.core.errors import StoreError
from tests.broker.power import Disk, restoring
from tests.broker.simulation import Violation, check

LOG = 100_000
Patch = pytest.MonkeyPatch


def publish(first: int, bodies: list[bytes]) -> Transaction:
    messages = [
        StoredMessage(number, 1.0, Message(body), Matched(1, [number, 7]))
        for number, body in enumerate(bodies, first)
    ]
    counters = {"t/a": Counters(messages[-1].number, 0, 0, 0)}
    return Transaction({"t/a": messages}, {}, {}, {}, {}, counters, [])


class Publisher:
    """Publishes on a disk that fails; after each failure it opens the store again."""

    def __init__(self, seed: int, folder: Path, patch: Patch) -> None:
        self.draw, self.folder = Random(seed), folder
        self.path, self.disk = folder / "broker.db", Disk(self.draw)
        patch.setattr(sqlite, "_restore_log", restoring(lambda: self.disk))
        self.answered: dict[int, bytes] = {}
        self.tried: dict[int, bytes] = {}
        self.failures = 0
        self.store = self.open()
        self.store.create("t/a", TopicOptions())

    def open(self) -> SqliteStore:
        while True:
            try:
                return SqliteStore(self.path, self.disk.connect)
            except StoreError:
                self.failures += 1
                self.disk.full_after = None

    def fail(self) -> None:
        """Something is the matter from now on."""
        match self.draw.randrange(5):
            case 0:
                self.disk.syncs_fail = self.draw.randrange(1, 4)
            case 1:
                self.disk.loses = ".db"
            case 2:
                self.disk.loses = "-wal"
            case 3:
                self.disk.full_after = self.draw.randrange(40)

    def run(self, steps: int) -> None:
        for _ in range(steps):
            if self.draw.random() < 0.05:
                self.fail()
            last = self.store.read("t/a").last
            bodies = [self.draw.randbytes(self.draw.randrange(5_000)) for _ in range(3)]
            every = dict(enumerate(bodies, last + 1))
            try:
                self.store.write(publish(last + 1, bodies))
                self.answered |= every
            except StoreError:
                self.failures += 1
                if self.draw.random() < 0.5:
                    folder = self.folder / str(self.failures)
                    self.disk, self.path = self.disk.killed(folder), folder / "broker.db"
                self.store.close()
                self.store = self.open()
                if self.store.read("t/a").last > last:
                    self.tried |= every
        cut = self.folder / "cut"
        self.disk.after_the_cut(cut)
        self.store.close()
        check_stored(cut, self.answered, self.tried)


def check_stored(folder: Path, answered: dict[int, bytes], tried: dict[int, bytes]) -> None:
    """Everything that was answered is in a store, and nothing that was not even tried."""
    store = SqliteStore(folder / "broker.db")
    try:
        sound = list(store._rows("PRAGMA quick_check")) == [("ok",)]
        check(sound, "SQLite finds the file damaged")
        found = {
            each.number: each.message.body for each in store.messages("t/a", 1, 1 << 39, 100_000)
        }
    finally:
        store.close()
    check(found.items() >= answered.items(), "what was answered is lost")
    check((answered | tried).items() >= found.items(), "a message that nobody published")


@pytest.fixture(autouse=True)
def _checkpoints(monkeypatch: Patch) -> None:
    monkeypatch.setattr(sqlite, "_LOG_BYTES", LOG)


@pytest.mark.parametrize("seed", range(6))
def test_what_was_answered_survives_faults(seed: int, tmp_path: Path, monkeypatch: Patch) -> None:
    Publisher(seed, tmp_path, monkeypatch).run(150)


def database_loses_pages(folder: Path, patch: Patch) -> None:
    """The system loses pages that a checkpoint wrote, before SQLite syncs the database."""
    disk = Disk(Random(1))
    patch.setattr(sqlite, "_LOG_BYTES", 1 << 40)
    patch.setattr(sqlite, "_restore_log", restoring(lambda: disk))
    store = SqliteStore(path := folder / "broker.db", disk.connect)
    store.create("t/a", TopicOptions())
    first, second = [[bytes([n]) * 3_000] * 3 for n in (1, 2)]
    store.write(publish(1, first))
    reader = store.reader()
    rows: Any = reader._rows("SELECT place FROM messages")
    next(rows)
    store.write(publish(4, second))
    store.checkpoint()  # as far as the reader reads: SQLite does not sync the database
    disk.lose(disk.images[str(path)])
    rows.close()
    reader.close()
    with pytest.raises(StoreError):
        checkpoint_and_write(store)
    store.close()
    SqliteStore(path, disk.connect).close()
    disk.after_the_cut(folder / "cut")
    check_stored(folder / "cut", dict(enumerate(first + second, 1)), {7: b"x"})


def checkpoint_and_write(store: SqliteStore) -> None:
    store._checkpoints._is_copied = True
    store.write(publish(7, [b"x"]))


def log_loses_pages(folder: Path, patch: Patch) -> None:
    """A commit is not synced; the process is killed, and another one goes on with the log."""
    disk = Disk(Random(1))
    patch.setattr(sqlite, "_LOG_BYTES", 1 << 40)
    patch.setattr(sqlite, "_restore_log", restoring(lambda: disk))
    store = SqliteStore(folder / "broker.db", disk.connect)
    store.create("t/a", TopicOptions())
    disk.syncs_fail = 1
    with pytest.raises(StoreError):
        store.write(publish(1, [b"1" * 20_000]))
    disk = disk.killed(folder / "killed")
    store.close()
    store = SqliteStore(folder / "killed" / "broker.db", disk.connect)
    last = store.read("t/a").last
    store.write(publish(last + 1, [b"2"]))
    disk.after_the_cut(folder / "cut")
    store.close()
    check_stored(folder / "cut", {last + 1: b"2"}, {1: b"1" * 20_000})


@pytest.mark.parametrize("lose", [database_loses_pages, log_loses_pages])
def test_lost_pages(lose: Callable[..., None], tmp_path: Path, monkeypatch: Patch) -> None:
    lose(tmp_path, monkeypatch)


def test_planted_bugs_are_found(tmp_path: Path, monkeypatch: Patch) -> None:
    """SQLite deletes the log while pages are lost; the log is not written again."""
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "_kept", lambda path: Path(f"{path}-aside"))
        patch.setattr(sqlite, "_put_back", lambda _: None)
        with pytest.raises((Violation, StoreError)):
            database_loses_pages(tmp_path / "a", patch)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "_restore_log", lambda _: None)
        patch.setattr("tests.broker.test_faults.restoring", lambda _: sqlite._restore_log)
        with pytest.raises((Violation, StoreError)):
            log_loses_pages(tmp_path / "b", patch)


# -- damaged pages ---------------------------------------------------------------------------------


def everything(path: Path) -> Any:
    """The messages of a store by their numbers, and the subscriptions."""
    store = SqliteStore(path)
    try:
        topic = store.read("t/a")
        matches, failing = dict(topic.matches), list(topic.failing)
        messages = store.messages("t/a", 1, 1 << 39, 1_000)
        assert matches == {each.number: each.matched.subscriptions for each in messages}
        rest = topic._replace(matches=[], failing=failing), store.page("t/a", 0, 100)
        return {each.number: each for each in messages}, rest
    finally:
        store.close()


def stored(folder: Path) -> tuple[Path, bytes, bytes]:
    """A store of 60 messages; its pages, and those of an earlier moment."""
    draw, path, images = Random(1), folder / "broker.db", []
    store = SqliteStore(path)
    store.create("t/a", TopicOptions())
    added = {("t/a", n): (Subscription(f"s{n}", f"//e{n}" * 20), n) for n in range(1, 60)}
    counters = {"t/a": Counters(0, 59, 59, 0)}
    store.write(Transaction({}, added, {}, {}, {}, counters, []))
    for first in range(1, 61, 10):
        store.write(publish(first, [draw.randbytes(draw.randrange(6_000)) for _ in range(10)]))
        if first == 31:
            store.close()
            images.append(path.read_bytes())
            store = SqliteStore(path)
    store.close()
    return path, path.read_bytes(), images[0]


@pytest.mark.parametrize("kind", ["zeroed", "torn", "lost"])
def test_damaged_pages(kind: str, tmp_path: Path) -> None:
    """Each page, one after the other. SQLite and the checksums find what is wrong.

    Pages of an earlier moment are sound: messages may be missing, but each is as it was.
    """
    path, data, before = stored(tmp_path)
    expected, rest = everything(path)
    data, errors, advice = path.read_bytes(), 0, set[str]()
    for start in range(0, len(data), 4_096):
        old = before[start : start + 4_096].ljust(4_096, b"\0")
        now = data[start : start + 4_096]
        page = {"zeroed": bytes(4_096), "torn": now[:2_048] + old[2_048:], "lost": old}[kind]
        if page == now:
            continue
        path.write_bytes(data[:start] + page + data[start + 4_096 :])
        try:
            messages, others = everything(path)
        except StoreError as error:
            advice.add(error.message.partition(" (")[0])
            errors += 1
            continue
        assert messages.items() <= expected.items()
        if kind == "zeroed":
            assert (messages, others) == (expected, rest)
    assert errors > 20
    assert advice <= {sqlite._DAMAGED, "it is no database of SQLite: name another file"}


# -- checkpoints -----------------------------------------------------------------------------------


def write_on(store: SqliteStore, path: Path, transactions: int) -> list[int]:
    """The bytes of the log after each transaction."""
    sizes, last = [], store.read("t/a").last
    for _ in range(transactions):
        store.write(publish(last + 1, [bytes(4_096)] * 5))
        last += 5
        sizes.append(wal_bytes(sqlite._wal(path)))
    return sizes


def test_the_log_stays_short(tmp_path: Path) -> None:
    store = SqliteStore(path := tmp_path / "broker.db")
    store.create("t/a", TopicOptions())
    sizes = [size for _ in range(20) for size in write_on(store, path, 20)]
    assert any(after < before for before, after in itertools.pairwise(sizes))
    assert max(sizes) < 400 * 5 * 8_192 / 2
    store.close()
    assert not store._checkpoints._thread.is_alive()


def test_a_reader_holds_up_nobody(tmp_path: Path) -> None:
    store = SqliteStore(path := tmp_path / "broker.db")
    store.create("t/a", TopicOptions())
    write_on(store, path, 3)
    reader = store.reader()
    rows: Any = reader._rows("SELECT place FROM messages")
    next(rows)  # it reads on for a long time
    start = time.monotonic()
    grown = write_on(store, path, 40)
    assert time.monotonic() - start < 40 * 0.5
    assert grown == sorted(grown)
    rows.close()
    assert any(min(write_on(store, path, 20)) < grown[-1] for _ in range(20))
    reader.close()
    store.close()


def test_a_slow_disk(tmp_path: Path) -> None:
    disk = Disk(Random(1))
    store = SqliteStore(path := tmp_path / "broker.db", disk.connect)
    store.create("t/a", TopicOptions())
    disk.sync_s = 0.05
    sizes = write_on(store, path, 30)
    assert min(sizes[-10:]) < max(sizes)
    store.close()


def test_closing_twice_closes_nothing_else(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "broker.db")
    store.close()
    other = os.open(tmp_path, os.O_RDONLY)
    store.close()
    os.fstat(other)
    os.close(other)


def test_a_log_that_was_put_aside_is_found(tmp_path: Path) -> None:
    """The process was killed while it closed a store whose disk had failed."""
    store = SqliteStore(path := tmp_path / "broker.db")
    store.create("t/a", TopicOptions())
    write_on(store, path, 1)
    store._checkpoints.error = StoreError("the disk fails", "broker.db")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite, "_put_back", lambda _: None)
        store.close()
    assert sqlite._kept(path).exists()
    assert not sqlite._wal(path).exists()
    store = SqliteStore(path)
    assert not sqlite._kept(path).exists()
    assert store.read("t/a").last == 5
    store.close()


# -- a service -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"syncs_fail": 1}, "the disk does not write or read: look at the system's log"),
        ({"full_after": 0}, "the disk is full: make room, and the broker goes on"),
    ],
)
def test_a_service_goes_on(
    fault: dict[str, int], said: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    disk = Disk(Random(1))
    path = tmp_path / "broker.db"
    monkeypatch.setattr(sqlite, "_restore_log", restoring(lambda: disk))
    monkeypatch.setattr(runner, "_RETRY_S", 0.05)

    async def run() -> None:
        service = Service(tmp_path / "index", lambda: SqliteStore(path, disk.connect))
        await service.start()
        await service.create_topic("t/a", TopicOptions())
        added = Subscription("all", "/a")
        await service.change(lambda core, request: core.subscribe(request, "t/a", added))
        await service.publish("t/a", [Message(b"<a>1</a>", "text/xml")])
        for name, value in fault.items():
            setattr(disk, name, value)
        with pytest.raises(StoreError, match=said):
            await service.publish("t/a", [Message(b"<a>2</a>", "text/xml")])
        if disk.full_after is not None:
            with pytest.raises(StoreError, match=said):
                await service.publish("t/a", [Message(b"<a>3</a>", "text/xml")])
        disk.full_after = None
        while service.counts.restarts < 1 or not await tried(service):
            await asyncio.sleep(0.05)
        taken = await service.take("t/a", "all", 10, 30.0)
        assert taken.lease is not None
        found = await service.messages("t/a", [each.number for each in taken.lease.deliveries])
        bodies = [stored.message.body for stored in found if stored]
        assert bodies[0] == b"<a>1</a>"
        assert bodies[-1] == b"<a>4</a>"
        await service.stop()

    asyncio.run(run())


async def tried(service: Service) -> bool:
    """Publish; whether it is accepted."""
    try:
        (reply,) = await service.publish("t/a", [Message(b"<a>4</a>", "text/xml")])
    except StoreError:
        return False
    return reply.error is None
