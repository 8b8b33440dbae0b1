"""``SqliteStore``: a store in one file of SQLite, for one process.

A transaction of the broker is one of SQLite, in its write-ahead log, which is synced before the
transaction is over: what was stored survives a power cut. The log is copied into the database
beside the writing, over another connection; see ``checkpoint``.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tamis.broker.store.queries import MIGRATIONS, Queries
from tamis.broker.store.writing import Store
from tamis.core.errors import StoreError


class _Connection(Queries):
    """A connection; one thread uses it at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._topics = {}
        with self._told():
            self._connection = sqlite3.connect(
                path, timeout=5.0, isolation_level=None, check_same_thread=False
            )
            self._configure()

    def _configure(self) -> None:
        for setting in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 0"):
            self._connection.execute(f"PRAGMA {setting}").fetchall()

    def _rows(self, statement: str, *values: object) -> Iterator[Any]:
        with self._told():
            yield from self._connection.execute(statement, values)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say of an error of SQLite's what to do."""
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise StoreError(_advice(error), str(self._path)) from error

    def backup(self, target: Path) -> None:
        """Copy the database as it is now into another file, while others write.

        Raises:
            StoreError: the file cannot be written; or there is one.
        """
        if target.exists():
            raise StoreError("there is a file: name another one", str(target))
        with self._told():
            copy = sqlite3.connect(target)
            with copy:
                self._connection.backup(copy)
            copy.close()

    def check(self) -> list[str]:
        """What SQLite's own check finds wrong with the file; nothing if it is sound."""
        found = [message for (message,) in self._rows("PRAGMA quick_check")]
        return [] if found == ["ok"] else found

    def checkpoint(self, *, is_whole: bool = False) -> int:
        """Copy the log into the database, and return the bytes of the log.

        Args:
            is_whole: copy all of it, and let the log begin again. The writer does so, after most of
                the log was copied over another connection: that takes little time.
        """
        for _ in self._rows(f"PRAGMA wal_checkpoint({'RESTART' if is_whole else 'PASSIVE'})"):
            pass
        log = Path(f"{self._path}-wal")
        return log.stat().st_size if log.exists() else 0


class SqliteStore(_Connection, Store):
    """A broker's store in a file of SQLite.

    Args:
        path: of the file, which is made if there is none.

    Raises:
        StoreError: the file cannot be used; the message says why, and what to do.
    """

    def __init__(self, path: Path) -> None:
        self._sizes = {}
        self._lock = _locked(path)
        try:
            super().__init__(path)
            self._migrate()
            with self._transaction():
                self._run("UPDATE process SET epoch = epoch + 1")
            (self.epoch,) = self._one("SELECT epoch FROM process")
        except BaseException:
            os.close(self._lock)
            raise

    def _configure(self) -> None:
        super()._configure()
        found = [self._one(f"PRAGMA {name}")[0] for name in ("journal_mode", "synchronous")]
        if found != ["wal", 2]:
            raise StoreError(f"SQLite does not sync what it writes here: {found}", str(self._path))

    def _migrate(self) -> None:
        (version,) = self._one("PRAGMA user_version")
        if version > len(MIGRATIONS):
            message = f"a newer Tamis wrote it (its schema has version {version}): use that one"
            raise StoreError(message, str(self._path))
        for number, statements in enumerate(MIGRATIONS[version:], version + 1):
            script = f"BEGIN IMMEDIATE; {statements}; PRAGMA user_version = {number}; COMMIT;"
            with self._told():
                self._connection.executescript(script)

    def reader(self) -> _Connection:
        return _Connection(self._path)

    def close(self) -> None:
        super().close()
        os.close(self._lock)

    def _many(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        self._connection.executemany(statement, rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._told():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def _locked(path: Path) -> int:
    """Hold the lock that says that one broker writes to a file."""
    try:
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"{_FOLDER} ({error.strerror})", str(path)) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        message = "another process has it open: one broker writes to a store of SQLite"
        raise StoreError(message, str(path)) from None
    return lock


_FOLDER = "it cannot be opened: check that the folder is there, and who may write to it"
_DAMAGED = "it is damaged: restore the last backup, or keep what `.recover` of sqlite3 saves"


def _advice(error: Exception) -> str:
    """What to do about an error."""
    code = getattr(error, "sqlite_errorname", "") or ""
    advice = {
        "SQLITE_BUSY": "another program has it open and writes to it: let the broker alone do so",
        "SQLITE_FULL": "the disk is full: make room, and the broker goes on",
        "SQLITE_IOERR": "the disk does not write or read: look at the system's log",
        "SQLITE_NOTADB": "it is no database of SQLite: name another file",
        "SQLITE_CORRUPT": _DAMAGED,
        "SQLITE_READONLY": "it cannot be written: check who may write to the file and its folder",
        "SQLITE_CANTOPEN": _FOLDER,
    }
    if isinstance(error, UnicodeDecodeError):
        return f"{_DAMAGED} ({error})"
    known = next((said for name, said in advice.items() if code.startswith(name)), None)
    return f"{error}" if known is None else f"{known} ({error})"
