"""``SqliteStore``: a store in one file of SQLite, for one process.

A transaction of the broker is one of SQLite, in its write-ahead log, which is synced before the
transaction is over: what was stored survives a power cut. A thread copies the log into the database
beside the writing; see ``_Checkpoints``.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tamis.broker.store.queries import MIGRATIONS, Queries
from tamis.broker.store.writing import Store
from tamis.core.errors import StoreError

log = logging.getLogger("tamis.broker")
Connect = Callable[[Path], sqlite3.Connection]

_LOG_BYTES = 4 << 20
"""The log is copied when it has grown by so many bytes."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a file, for one thread at a time."""
    return sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)


class _Connection(Queries):
    """A connection; one thread uses it at a time."""

    def __init__(self, path: Path, connect: Connect) -> None:
        self._path, self._connect = path, connect
        self._topics = {}
        with self._advising():
            self._connection = connect(path)
        try:
            self._configure()
        except BaseException:
            self._connection.close()
            raise

    def _configure(self) -> None:
        settings = "journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 0"
        for setting in (*settings, f"journal_size_limit = {4 * _LOG_BYTES}", "cell_size_check = 1"):
            for _ in self._rows(f"PRAGMA {setting}"):
                pass

    def _rows(self, statement: str, *values: object) -> Iterator[Any]:
        with self._advising():
            # Not ``yield from``, which closes the cursor, maybe after the connection.
            for row in self._connection.execute(statement, values):  # noqa: UP028
                yield row

    def _damaged(self, what: str) -> StoreError:
        return StoreError(f"{_DAMAGED} ({what})", str(self._path))

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def _advising(self) -> Iterator[None]:
        """Say of an error of SQLite's what to do."""
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise StoreError(_advice(error), str(self._path)) from error

    def checkpoint(self) -> None:
        """Copy the log into the database, as far as no reader and no writer is in the way.

        If all of it is copied, the next transaction begins the log again, unless somebody reads of
        the log.
        """
        self._one("PRAGMA wal_checkpoint(PASSIVE)")


class _Checkpoints:
    """Copies the log of a store into the database, so that the log begins again.

    When the log is long, a thread copies it and syncs the database, while the writer goes on. The
    writer then copies the little that is new, right after a commit: nothing is left, and the next
    transaction begins the log again. Neither waits for a reader. While a reader uses the log, the
    log grows.

    Args:
        path: of the database.
    """

    def __init__(self, connection: _Connection, path: Path) -> None:
        self._connection, self._path = connection, path
        self._bytes, self._due = 0, _LOG_BYTES
        # SQLite syncs the database only when it has copied all of the log. To close a file of the
        # database ends the locks of the process: so this one stays open as long as the store.
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._wake, self._is_copied, self._is_over = threading.Event(), False, False
        self.error: StoreError | None = None
        self._thread = threading.Thread(target=self._run, name="tamis-checkpoints", daemon=True)
        self._thread.start()

    def committed(self, writer: _Connection) -> None:
        """A transaction was committed; in the thread of the writer.

        Raises:
            StoreError: what was copied may be lost. The log must stay, and the store be opened
                again.
        """
        before, self._bytes = self._bytes, wal_bytes(_wal(self._path))
        if self._bytes < before:
            self._due = _LOG_BYTES
        if self._is_copied:
            self._is_copied = False
            self._copy(writer)
        elif self._bytes >= self._due:
            self._due = self._bytes + _LOG_BYTES
            self._wake.set()
        if self.error is not None:
            raise self.error

    def end(self) -> None:
        """End the thread."""
        self._is_over = True
        self._wake.set()
        self._thread.join()
        self._connection.close()

    def close(self) -> None:
        """Close the file, after all connections."""
        os.close(self._file)

    def _run(self) -> None:
        while self._wake.wait() and not self._is_over:
            self._wake.clear()
            for _ in range(2):  # the second time has what came meanwhile
                self._copy(self._connection)
                try:
                    os.fsync(self._file)
                except OSError as error:
                    self.error = StoreError(f"{_DISK} ({error})", str(self._path))
            self._is_copied = self.error is None

    def _copy(self, connection: _Connection) -> None:
        if self.error is not None:
            return
        try:
            connection.checkpoint()
        except StoreError as error:
            if _code(error.__cause__).startswith("SQLITE_IOERR"):
                self.error = error
            else:
                log.warning("the log is not copied into the database: %s", error)


class SqliteStore(_Connection, Store):
    """A broker's store in a file of SQLite.

    Args:
        path: of the file, which is made if there is none.

    Raises:
        StoreError: the file cannot be used; the message says why, and what to do.
    """

    def __init__(self, path: Path, connect: Connect = connect) -> None:
        self._sizes = {}
        self._lock = _locked(path)
        try:
            _restore_log(path)
            super().__init__(path, connect)
        except BaseException:
            os.close(self._lock)
            raise
        try:
            self._migrate()
            self._checkpoints = _Checkpoints(self.reader(), path)
        except BaseException:
            super().close()
            os.close(self._lock)
            raise
        try:
            with self._transaction():
                self._run("UPDATE process SET epoch = epoch + 1")
            (self.epoch,) = self._one("SELECT epoch FROM process")
        except BaseException:
            self.close()
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
            with self._advising():
                self._connection.executescript(script)

    def reader(self) -> _Connection:
        return _Connection(self._path, self._connect)

    def close(self) -> None:
        """Close the store; once more changes nothing."""
        if self._lock < 0:
            return
        lock, self._lock = self._lock, -1
        try:
            self._checkpoints.end()
            if self._checkpoints.error is not None:
                os.link(_wal(self._path), _kept(self._path))
            super().close()
            self._checkpoints.close()
            _put_back(self._path)
        finally:
            os.close(lock)

    def _many(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        if rows:
            self._connection.executemany(statement, rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._advising():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
        self._checkpoints.committed(self)


def _wal(path: Path) -> Path:
    """The log of a database."""
    return Path(f"{path}-wal")


def _kept(path: Path) -> Path:
    """The log while SQLite closes the database and deletes it: what it copied may be lost."""
    return Path(f"{path}-wal.kept")


def _put_back(path: Path) -> None:
    """Have the log that was kept, if SQLite deleted its own."""
    if _wal(path).exists():
        _kept(path).unlink(missing_ok=True)
    elif _kept(path).exists():
        _kept(path).rename(_wal(path))


def _restore_log(path: Path) -> None:
    """Write the log again as it is, and sync it.

    After a sync that failed, Linux takes pages for clean that the disk does not have. If the log
    has such pages, and others were synced after them, a power cut would lose both.
    """
    try:
        _put_back(path)
        with suppress(FileNotFoundError), _wal(path).open("r+b", buffering=0) as file:
            while chunk := file.read(1 << 20):
                file.seek(-len(chunk), os.SEEK_CUR)
                file.write(chunk)
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(f"{_DISK} ({error})", str(path)) from None


def wal_bytes(wal: Path) -> int:
    """The bytes of a log; its file may be longer, with frames of an earlier log.

    Each frame has the salt of the log that it belongs to: https://www.sqlite.org/walformat.html.
    """
    try:
        file = os.open(wal, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        header = os.pread(file, 32, 0)
        frame = 24 + int.from_bytes(header[8:12], "big")
        low, high = 0, (os.fstat(file).st_size - 32) // frame
        while low < high:
            middle = (low + high) // 2
            if os.pread(file, 8, 32 + middle * frame + 8) == header[16:24]:
                low = middle + 1
            else:
                high = middle
        return low * frame
    finally:
        os.close(file)


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
_DISK = "the disk does not write or read: look at the system's log"
_DAMAGED = "it is damaged: restore the last backup, or keep what `.recover` of sqlite3 saves"


def _code(error: BaseException | None) -> str:
    return getattr(error, "sqlite_errorname", "") or ""


def _advice(error: Exception) -> str:
    """What to do about an error."""
    code = _code(error)
    advice = {
        "SQLITE_BUSY": "another program has it open and writes to it: let the broker alone do so",
        "SQLITE_FULL": "the disk is full: make room, and the broker goes on",
        "SQLITE_IOERR": _DISK,
        "SQLITE_NOTADB": "it is no database of SQLite: name another file",
        "SQLITE_CORRUPT": _DAMAGED,
        "SQLITE_READONLY": "it cannot be written: check who may write to the file and its folder",
        "SQLITE_CANTOPEN": _FOLDER,
    }
    if isinstance(error, UnicodeDecodeError):
        return f"{_DAMAGED} ({error})"
    known = next((said for name, said in advice.items() if code.startswith(name)), None)
    return f"{error}" if known is None else f"{known} ({error})"
