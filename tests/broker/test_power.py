"""Power cuts under ``SqliteStore``: what was answered is there; and planted bugs are found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tamis.broker.core.model import StoredTopic, Transaction
from tamis.broker.store import sqlite
from tamis.broker.store.sqlite import SqliteStore
from tamis.core.errors import StoreError
from tests.broker.power import Disk, File
from tests.broker.simulation import TOPICS, ModelStore, Schedule, Violation
from tests.broker.stores import BothStores

SEEDS, STEPS = 12, 250
CHECKPOINT = 100_000
"""A log is copied when it has so many bytes: often, in these short histories."""
Patch = pytest.MonkeyPatch


class PowerCut(Exception):  # noqa: N818 - is no error
    """The store is another one now: a broker starts with it."""


class CutStores(BothStores):
    """A model, and a real store on a disk whose power is cut at random moments."""

    def __init__(self, folder: Path, draw: Random) -> None:
        self.folder, self.draw, self.cuts = folder, draw, 0
        self.disk = Disk(draw)
        self.unknown: Transaction | None = None
        super().__init__(str(folder / "0.db"))
        self.disk.off_after = self.next_cut()

    def open(self) -> SqliteStore:
        return SqliteStore(Path(self.where), self.disk.connect)

    def next_cut(self) -> int:
        return self.draw.choice([self.draw.randrange(60), self.draw.randrange(1_500)])

    def write(self, transaction: Transaction) -> None:
        try:
            self.real.write(transaction)
        except StoreError:
            self.unknown = transaction
            raise PowerCut from None
        ModelStore.write(self, transaction)

    def cut(self) -> None:
        """Cut the power, and open what is left; again, if it is cut while the store is opened."""
        while True:
            self.cuts += 1
            folder = self.folder / str(self.cuts)
            self.disk.after_the_cut(folder)
            self.real.close()
            self.disk = Disk(self.draw)
            self.where = str(folder / Path(self.where).name)
            if self.draw.random() < 0.2:
                self.disk.off_after = self.draw.randrange(20)
            try:
                self.real = self.open()
            except StoreError:
                if self.disk.cut is None:
                    raise
                continue
            break
        if self.disk.cut is None:
            self.disk.off_after = None

    def read(self) -> dict[str, StoredTopic]:
        self.cut()
        unknown, self.unknown = self.unknown, None
        try:
            self.compare()
        except (AssertionError, Violation):
            if unknown is None:
                raise Violation("what was stored is not there") from None
            ModelStore.write(self, unknown)
            self.check_same()
        self.disk.off_after = self.next_cut()
        return {topic: self.real.read(topic) for topic in TOPICS}

    def check_same(self) -> None:
        try:
            self.compare()
        except AssertionError:
            raise Violation("neither without the last transaction nor with it") from None


class CutSchedule(Schedule):
    """A schedule that starts again after each power cut. A crash is one, too."""

    store: CutStores

    def commit(self) -> None:
        try:
            super().commit()
        except PowerCut:
            self.start()

    def finish(self) -> None:
        if self.store.disk.cut is not None:  # a thread copied the log when the power was cut
            self.start()
        self.store.disk.off_after = None
        super().finish()


def run(seed: int, folder: Path, kind: type[CutStores] = CutStores) -> CutStores:
    draw = Random(seed)
    store = kind(folder, draw)
    try:
        CutSchedule(seed, store).run(STEPS)
    finally:
        store.disk.power_off()
        store.real.close()
    return store


@pytest.fixture(autouse=True)
def _checkpoints(monkeypatch: Patch) -> None:
    monkeypatch.setattr(sqlite, "_LOG_BYTES", CHECKPOINT)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_was_answered_survives_power_cuts(seed: int, tmp_path: Path) -> None:
    assert run(seed, tmp_path).cuts


# -- planted bugs ----------------------------------------------------------------------------------

BUGS: dict[str, Callable[[Patch], None]] = {}


def bug(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
    BUGS[plant.__name__] = plant
    return plant


def _with_setting(patch: Patch, setting: str) -> None:
    configure = sqlite._Connection._configure

    def configured(self: Any) -> None:
        configure(self)
        self._connection.execute(f"PRAGMA {setting}").fetchall()

    patch.setattr(SqliteStore, "_configure", configured)


@bug
def commits_are_not_synced(patch: Patch) -> None:
    _with_setting(patch, "synchronous = NORMAL")


@bug
def nothing_is_synced(patch: Patch) -> None:
    _with_setting(patch, "synchronous = OFF")


@bug
def an_answer_before_the_commit(patch: Patch) -> None:
    write = CutStores.write

    def early(self: CutStores, transaction: Transaction) -> None:
        try:
            write(self, transaction)
        except PowerCut:
            ModelStore.write(self, transaction)
            self.unknown = None

    patch.setattr(CutStores, "write", early)


@bug
def the_disk_lies(patch: Patch) -> None:
    init = Disk.__init__

    def made(self: Disk, draw: Random) -> None:
        init(self, draw)
        self.skips = True

    patch.setattr(Disk, "__init__", made)


@bug
def the_log_is_deleted_at_the_start(patch: Patch) -> None:
    patch.setattr(sqlite, "_restore_log", lambda path: sqlite._wal(path).unlink(missing_ok=True))


@bug
def the_database_is_not_synced_before_the_log_begins_again(patch: Patch) -> None:
    sync = File.xSync

    def synced(self: File, flags: int) -> None:
        if self.path.endswith("-wal"):
            sync(self, flags)

    patch.setattr(File, "xSync", synced)


def is_found(seed: int, folder: Path) -> bool:
    folder.mkdir()
    try:
        run(seed, folder)
    except (Violation, StoreError):
        return True
    return False


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_are_found(name: str, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        BUGS[name](patch)
        assert any(is_found(seed, tmp_path / str(seed)) for seed in range(60))
