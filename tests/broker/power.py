"""A disk that loses what was not synced, fails, or is full: a VFS of SQLite, through ``apsw``.

Files are real ones. Beside each, ``Disk`` keeps what the disk has: it changes only with a sync. A
power cut writes that into another folder, with some of the writes that were not synced, and with
halves of them.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from random import Random
from threading import RLock
from typing import Any

import apsw

from tamis.broker.store import sqlite

SECTOR = 512
_names = (f"disk-{number}" for number in count())


class Image:
    """What the disk has of a file.

    Attributes:
        durable: None: the disk does not know the file.
        pending: offset and bytes of what was written since the last sync; or a new size.
        errors: how often pages were lost. The next sync of each descriptor says so, as on Linux.
    """

    def __init__(self, path: str) -> None:
        file = Path(path)
        self.durable = bytearray(file.read_bytes()) if file.exists() else None
        self.pending: list[tuple[int, bytes] | int] = []
        self.errors = 0

    def sync(self) -> None:
        self.durable = _applied(self.durable, self.pending)
        self.pending = []


def _applied(durable: bytearray | None, writes: list[tuple[int, bytes] | int]) -> bytearray:
    found = bytearray() if durable is None else bytearray(durable)
    for each in writes:
        if isinstance(each, int):
            del found[each:]
        else:
            offset, data = each
            found.extend(bytes(max(0, offset - len(found))))
            found[offset : offset + len(data)] = data
    return found


class Disk(apsw.VFS):
    """A disk.

    Attributes:
        off_after: so many writes and syncs from now on, the power is cut.
        syncs_fail: this many syncs fail from now on, and lose what they had to write.
        loses: of files with this ending pages are lost soon; "": of none.
        full_after: so many writes from now on, the disk is full; None: it is not.
        skips: syncs that do nothing: a planted bug.
        sync_s: how long a sync takes.
    """

    def __init__(self, draw: Random) -> None:
        self.name = next(_names)
        super().__init__(self.name, "unix")
        self.draw, self.lock = draw, RLock()
        self.images: dict[str, Image] = {}
        self.deleted: dict[str, bytearray | None] = {}
        self.off_after: int | None = None
        self.cut: dict[str, bytearray] | None = None
        self.syncs_fail, self.skips, self.sync_s = 0, False, 0.0
        self.full_after: int | None = None
        self.loses = ""
        self.syncs = self.writes = 0

    def connect(self, path: Path) -> Any:
        with self.lock:
            for name in (f"{path}", f"{path}-wal", f"{path}-journal"):
                if Path(name).exists():
                    self.images.setdefault(name, Image(name))
        return Connection(path, self.name)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        return File(self, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:  # noqa: N802
        with self.lock:
            self.step()
            super().xDelete(name, syncdir)
            image = self.images.pop(name, None)
            if image is not None and not syncdir:
                self.deleted[name] = image.durable
            else:
                self.deleted.pop(name, None)

    def step(self) -> None:
        """Something is written or synced."""
        if self.cut is not None:
            raise _error(apsw.IOError, apsw.SQLITE_IOERR_WRITE, "the power is off")
        if self.off_after is not None:
            self.off_after -= 1
            if self.off_after < 0:
                self.power_off()
                self.step()

    def power_off(self) -> None:
        """Nothing is written any more. What the disk has is drawn."""
        with self.lock:
            if self.cut is not None:
                return
            share = self.draw.choice([0.0, 0.5, 1.0])
            self.cut = {}
            for name, image in self.images.items():
                writes = [torn(each, self.draw) for each in image.pending
                          if self.draw.random() < share]  # fmt: skip
                if image.durable is not None or self.draw.random() < share:
                    self.cut[name] = _applied(image.durable, writes)
            for name, before in self.deleted.items():
                if name not in self.cut and before is not None and self.draw.random() < 0.5:
                    self.cut[name] = before

    def lose(self, image: Image) -> None:
        """The system could not write the pages of a file, and takes them for clean now."""
        kept = [each for each in image.pending if self.draw.random() < 0.5]
        image.durable = _applied(image.durable, kept)
        image.pending = []
        image.errors += 1

    def killed(self, folder: Path) -> Disk:
        """The same disk after a kill of the process, with all files in another folder."""
        other = Disk(self.draw)
        folder.mkdir()
        with self.lock:
            for name, image in self.images.items():
                path = folder / Path(name).name
                path.write_bytes(Path(name).read_bytes())
                other.images[str(path)] = copy = Image(str(path))
                copy.durable, copy.pending = image.durable, list(image.pending)
            self.power_off()
        return other

    def restored(self, name: str) -> None:
        """A file was written and synced past SQLite."""
        with self.lock:
            self.images[name] = Image(name)
            self.deleted.pop(name, None)

    def after_the_cut(self, folder: Path) -> None:
        """Write what is left into a folder."""
        self.power_off()
        assert self.cut is not None
        folder.mkdir()
        for name, data in self.cut.items():
            (folder / Path(name).name).write_bytes(data)


def torn(write: tuple[int, bytes] | int, draw: Random) -> tuple[int, bytes] | int:
    """Now and then only some sectors of a write: from its start, or from its end."""
    if isinstance(write, int) or draw.random() < 0.8:
        return write
    offset, data = write
    middle = draw.randrange(offset, offset + len(data)) // SECTOR * SECTOR - offset
    middle = max(0, middle)
    return (offset, data[:middle]) if draw.random() < 0.5 else (offset + middle, data[middle:])


class File(apsw.VFSFile):
    """A file of the disk."""

    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.disk, self.path = disk, path
        with disk.lock:
            if path not in disk.images:
                disk.images[path] = Image(path)
            self.image = disk.images[path]
        self.seen = self.image.errors
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        with self.disk.lock:
            self.disk.step()
            self.disk.writes += 1
            if self.disk.full_after is not None:
                self.disk.full_after -= 1
                if self.disk.full_after < 0:
                    raise _error(apsw.FullError, apsw.SQLITE_FULL, "no space left on the device")
            super().xWrite(data, offset)
            self.image.pending.append((offset, bytes(data)))
            loses = self.disk.loses
            if loses and self.path.endswith(loses) and self.disk.draw.random() < 0.1:
                self.disk.loses = ""
                self.disk.lose(self.image)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        with self.disk.lock:
            self.disk.step()
            super().xTruncate(newsize)
            self.image.pending.append(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802
        time.sleep(self.disk.sync_s)
        with self.disk.lock:
            self.disk.step()
            self.disk.syncs += 1
            if self.disk.syncs_fail and self.image.pending:
                self.disk.syncs_fail -= 1
                self.disk.lose(self.image)
            if self.seen < self.image.errors:
                self.seen = self.image.errors
                raise _error(apsw.IOError, apsw.SQLITE_IOERR_FSYNC, "the disk fails")
            if not self.disk.skips:
                if self.image.durable is None:  # SQLite syncs the folder of a new log
                    self.disk.deleted.clear()
                self.image.sync()


def _error(kind: type[Exception], code: int, message: str) -> Exception:
    error: Any = kind(message)
    error.result, error.extendedresult = code & 0xFF, code
    return error  # type: ignore[no-any-return]


@contextmanager
def _translated() -> Iterator[None]:
    """Errors of ``apsw`` as those of ``sqlite3``."""
    try:
        yield
    except apsw.Error as error:
        codes = apsw.mapping_extended_result_codes | apsw.mapping_result_codes
        code = getattr(error, "extendedresult", 0) or getattr(error, "result", 0)
        other = sqlite3.DatabaseError(str(error))
        name = codes.get(code) or codes.get(code & 0xFF, "SQLITE_ERROR")
        other.sqlite_errorname = str(name)
        raise other from error


class Rows:
    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def __iter__(self) -> Rows:
        return self

    def __next__(self) -> Any:
        with _translated():
            return next(self._cursor)

    def fetchall(self) -> list[Any]:
        return list(self)


class Connection:
    """What the store needs of a ``sqlite3.Connection``, over ``apsw``."""

    def __init__(self, path: Path, disk: str) -> None:
        with _translated():
            self._db = apsw.Connection(str(path), vfs=disk)
        self._db.set_busy_timeout(5_000)

    @property
    def in_transaction(self) -> bool:
        return bool(self._db.in_transaction)

    def execute(self, statement: str, values: Any = ()) -> Rows:
        with _translated():
            return Rows(self._db.cursor().execute(statement, tuple(values)))

    def executemany(self, statement: str, rows: Any) -> None:
        with _translated():
            self._db.cursor().executemany(statement, rows)

    def executescript(self, script: str) -> None:
        with _translated():
            self._db.cursor().execute(script)

    def close(self) -> None:
        with suppress(apsw.Error):  # as in sqlite3
            self._db.close()


def restoring(disk: Callable[[], Disk]) -> Any:
    """``_restore_log`` of the store, which writes past SQLite: what it wrote is synced."""
    restore = sqlite._restore_log

    def restored(path: Path) -> None:
        restore(path)
        if sqlite._wal(path).exists():
            disk().restored(str(sqlite._wal(path)))

    return restored
