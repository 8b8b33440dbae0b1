"""Disks that fail, are full or slow, and damaged pages; checkpoints beside readers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tamis.broker.core.model import (
    Counters,
    Matched,
    Message,
    StoredMessage,
    TopicOptions,
    Transaction,
)
from tamis.broker.store import sqlite
from tamis.broker.store.sqlite import SqliteStore
from tamis.core.errors import StoreError
from tests.broker.power import Disk, restoring
from tests.broker.simulation import Violation, check

LOG = 100_000
Patch = pytest.MonkeyPatch


def create() -> Transaction:
    return Transaction({"t/a": TopicOptions()}, {}, {}, {}, {}, {}, {}, [])


def publish(first: int, bodies: list[bytes]) -> Transaction:
    messages = [
        StoredMessage(number, 1.0, Message(body), Matched(1, [number, 7]))
        for number, body in enumerate(bodies, first)
    ]
    counters = {"t/a": Counters(messages[-1].number, 0, 0, 0)}
    return Transaction({}, {"t/a": messages}, {}, {}, {}, {}, counters, [])


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
        self.store.write(create())

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
        check(store.check() == [], "SQLite finds the file damaged")
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


@pytest.mark.parametrize("seed", range(10))
def test_what_was_answered_survives_faults(seed: int, tmp_path: Path, monkeypatch: Patch) -> None:
    Publisher(seed, tmp_path, monkeypatch).run(150)


def _log_is_not_written_again(patch: Patch) -> None:
    patch.setattr(sqlite, "_restore_log", lambda _: None)


def _log_is_deleted_with_lost_pages(patch: Patch) -> None:
    patch.setattr(sqlite, "_kept", lambda path: Path(f"{path}-aside"))
    patch.setattr(sqlite, "_put_back", lambda path: Path(f"{path}-aside").unlink(missing_ok=True))


def _checkpoints_that_failed_are_forgotten(patch: Patch) -> None:
    patch.setattr(sqlite._Checkpoints, "error", property(lambda _: None, lambda *_: None), False)


@pytest.mark.parametrize(
    "plant",
    [
        _log_is_not_written_again,
        _log_is_deleted_with_lost_pages,
        _checkpoints_that_failed_are_forgotten,
    ],
)
def test_planted_bugs_are_found(plant: Callable[[Patch], None], tmp_path: Path) -> None:
    def is_found(seed: int) -> bool:
        folder = tmp_path / str(seed)
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            publisher = Publisher(seed, folder, patch)
            plant(patch)
            try:
                publisher.run(150)
            except (Violation, StoreError):
                return True
            return False

    assert any(map(is_found, range(60)))
