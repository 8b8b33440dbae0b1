"""``SqliteStore``: what a broker has to keep, in one file of SQLite; for one process.

A transaction of the broker is one of SQLite, in the write-ahead log, which is synced before it is
over: what was stored survives a power cut. A message is one row, and whom it is for a blob of it.
A subscription has a row, with the cursor of what it got; there are rows of deliveries only where an
attempt failed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tamis.broker.core.broker import (
    Key,
    Message,
    StoredMessage,
    StoredTopic,
    Subscription,
    Transaction,
)
from tamis.broker.core.queue import Changes, Failure, QueueOptions
from tamis.core.errors import StoreError

_MIGRATIONS = (
    """
    CREATE TABLE process (epoch INTEGER NOT NULL);
    INSERT INTO process VALUES (0);
    CREATE TABLE topics (
        topic INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
        last INTEGER NOT NULL DEFAULT 0, last_subscription INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE messages (
        place INTEGER PRIMARY KEY, -- topic << 40 | number
        accepted REAL NOT NULL, id TEXT NOT NULL, content_type TEXT NOT NULL, body BLOB NOT NULL,
        version INTEGER NOT NULL, subscriptions BLOB NOT NULL -- int32
    );
    CREATE TABLE subscriptions (
        topic INTEGER, subscription INTEGER, id TEXT NOT NULL, expression TEXT NOT NULL,
        options TEXT NOT NULL, cursor INTEGER NOT NULL, PRIMARY KEY (topic, subscription)
    ) WITHOUT ROWID;
    CREATE TABLE failures (
        topic INTEGER, subscription INTEGER, message INTEGER, attempts INTEGER NOT NULL,
        due REAL, reason TEXT NOT NULL, PRIMARY KEY (topic, subscription, message)
    ) WITHOUT ROWID;
    CREATE TABLE gaps (
        topic INTEGER, subscription INTEGER, first INTEGER, last INTEGER, messages INTEGER
    );
    CREATE TABLE keys (
        scope TEXT, key TEXT, fingerprint BLOB NOT NULL, topic INTEGER NOT NULL,
        message INTEGER NOT NULL, PRIMARY KEY (scope, key)
    ) WITHOUT ROWID;
    """,
)
"""The statements that lead from each version of the schema to the next one."""
_NUMBER_BITS = 40


class SqliteStore:
    """A broker's store.

    Args:
        path: of the file, which is made if there is none.

    Attributes:
        epoch: how often the store was opened.

    Raises:
        StoreError: the file cannot be used; the message says why, and what to do.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._told():
            self._connection = sqlite3.connect(
                path, timeout=1.0, isolation_level=None, check_same_thread=False
            )
            self._configure()
            self._migrate()
            with self._transaction():
                self._connection.execute("UPDATE process SET epoch = epoch + 1")
            (self.epoch,) = self._one("SELECT epoch FROM process")
            self._topics = dict(self._rows("SELECT name, topic FROM topics"))

    def _configure(self) -> None:
        """Have transactions synced; and nobody else write, for whom there would be two brokers."""
        for statement in (
            "PRAGMA locking_mode = EXCLUSIVE",
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
        ):
            self._connection.execute(statement).fetchall()
        found = [self._one(f"PRAGMA {name}")[0] for name in ("journal_mode", "synchronous")]
        if found != ["wal", 2]:
            raise StoreError(f"SQLite does not sync what it writes here: {found}", str(self._path))

    def _migrate(self) -> None:
        (version,) = self._one("PRAGMA user_version")
        if version > len(_MIGRATIONS):
            message = f"a newer Tamis wrote it (its schema has version {version}): use that one"
            raise StoreError(message, str(self._path))
        for number, statements in enumerate(_MIGRATIONS[version:], version + 1):
            script = f"BEGIN IMMEDIATE; {statements}; PRAGMA user_version = {number}; COMMIT;"
            self._connection.executescript(script)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # -- reading -----------------------------------------------------------------------------------

    def read(self) -> dict[str, StoredTopic]:
        """All topics, as a broker begins with them."""
        with self._told():
            return {name: self._topic(number) for name, number in self._topics.items()}

    def _topic(self, topic: int) -> StoredTopic:
        last, last_subscription = self._one(
            "SELECT last, last_subscription FROM topics WHERE topic = ?", topic
        )
        failures: dict[int, list[Failure]] = {}
        for subscription, *failure in self._rows(
            "SELECT subscription, message, attempts, due, reason FROM failures "
            "WHERE topic = ? AND due IS NOT NULL",
            topic,
        ):
            failures.setdefault(subscription, []).append(Failure(*failure))
        subscriptions = {
            number: (
                Subscription(id, expression, QueueOptions(**json.loads(options))),
                cursor,
                failures.get(number, []),
            )
            for number, id, expression, options, cursor in self._rows(
                "SELECT subscription, id, expression, options, cursor FROM subscriptions "
                "WHERE topic = ?",
                topic,
            )
        }
        keys = {
            Key(scope, key, fingerprint): message
            for scope, key, fingerprint, message in self._rows(
                "SELECT scope, key, fingerprint, message FROM keys WHERE topic = ?", topic
            )
        }
        least = min((cursor for _, cursor, _ in subscriptions.values()), default=last)
        matches = self._matches(topic, least)
        return StoredTopic(last, last_subscription, subscriptions, matches, keys)

    def _matches(self, topic: int, behind: int) -> Iterator[tuple[int, list[int]]]:
        with self._told():
            for place, subscriptions in self._rows(
                "SELECT place, subscriptions FROM messages "
                "WHERE place > ? AND place < ? ORDER BY place",
                _place(topic, behind),
                _place(topic + 1, 0),
            ):
                yield place - _place(topic, 0), np.frombuffer(subscriptions, np.int32).tolist()

    def message(self, topic: str, number: int) -> Message | None:
        """A message; None if it is not kept any more."""
        with self._told():
            row = self._connection.execute(
                "SELECT body, content_type, id FROM messages WHERE place = ?",
                (_place(self._topics[topic], number),),
            ).fetchone()
        return None if row is None else Message(*row)

    # -- writing -----------------------------------------------------------------------------------

    def create_topic(self, name: str) -> None:
        """Have a topic; it may be there."""
        with self._told(), self._transaction():
            self._connection.execute("INSERT OR IGNORE INTO topics (name) VALUES (?)", (name,))
            self._topics = dict(self._rows("SELECT name, topic FROM topics"))

    def write(self, transaction: Transaction) -> None:
        """Store a transaction, whole or not at all.

        Raises:
            StoreError: it is not known whether it was stored: the broker has to begin again.
        """
        with self._told(), self._transaction():
            for name, messages in transaction.messages.items():
                self._write_messages(self._topics[name], messages)
            for (name, number), (subscription, since) in transaction.added.items():
                self._add(self._topics[name], number, subscription, since)
            for name, number in transaction.removed:
                self._remove(self._topics[name], number)
            for (name, number), changes in transaction.changes.items():
                self._write_changes(self._topics[name], number, changes)

    def _write_messages(self, topic: int, messages: list[StoredMessage]) -> None:
        rows, keys = [], []
        for number, accepted, message, matched in messages:
            numbers = np.asarray(matched.subscriptions, np.int32).tobytes()
            content = message.id, message.content_type, message.body
            rows.append((_place(topic, number), accepted, *content, matched.version, numbers))
            if message.key is not None:
                keys.append((*message.key, topic, number))
        self._many("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self._many("INSERT INTO keys VALUES (?, ?, ?, ?, ?)", keys)
        self._run("UPDATE topics SET last = ? WHERE topic = ?", messages[-1].number, topic)

    def _add(self, topic: int, number: int, subscription: Subscription, since: int) -> None:
        options = json.dumps(subscription.options._asdict())
        own = subscription.id, subscription.expression, options
        self._run("INSERT INTO subscriptions VALUES (?, ?, ?, ?, ?, ?)", topic, number, *own, since)
        self._run("UPDATE topics SET last_subscription = ? WHERE topic = ?", number, topic)

    def _remove(self, topic: int, number: int) -> None:
        for table in ("subscriptions", "failures", "gaps"):
            self._run(f"DELETE FROM {table} WHERE topic = ? AND subscription = ?", topic, number)

    def _write_changes(self, topic: int, number: int, changes: Changes) -> None:
        own, of = (topic, number), "topic = ? AND subscription = ?"
        self._run(f"UPDATE subscriptions SET cursor = ? WHERE {of}", changes.cursor, *own)
        for message, failure in changes.failures.items():
            if failure is None:
                self._run(f"DELETE FROM failures WHERE {of} AND message = ?", *own, message)
            else:
                self._many("REPLACE INTO failures VALUES (?, ?, ?, ?, ?, ?)", [(*own, *failure)])
        gaps = [(*own, *gap) for gap in changes.gaps]
        self._many("INSERT INTO gaps VALUES (?, ?, ?, ?, ?)", gaps)

    # -- SQLite ------------------------------------------------------------------------------------

    def _run(self, statement: str, *values: object) -> None:
        self._connection.execute(statement, values)

    def _many(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        self._connection.executemany(statement, rows)

    def _rows(self, statement: str, *values: object) -> Iterator[Any]:
        return iter(self._connection.execute(statement, values))

    def _one(self, statement: str, *values: object) -> Any:
        return next(self._rows(statement, *values))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say of an error of SQLite's what to do."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise StoreError(_advice(error), str(self._path)) from error


def _place(topic: int, number: int) -> int:
    return topic << _NUMBER_BITS | number


def _advice(error: sqlite3.DatabaseError) -> str:
    """What to do about an error."""
    code = getattr(error, "sqlite_errorname", "") or ""
    advice = {
        "SQLITE_BUSY": "another process has it open: one broker writes to a store of SQLite",
        "SQLITE_FULL": "the disk is full: make room, and the broker goes on",
        "SQLITE_NOTADB": "it is no database of SQLite: name another file",
        "SQLITE_CORRUPT": "it is damaged: restore the last backup, or keep what `.recover` of "
        "sqlite3 saves",
        "SQLITE_READONLY": "it cannot be written: check who may write to the file and its folder",
        "SQLITE_CANTOPEN": "it cannot be opened: check that the folder is there, and who may write "
        "to it",
    }
    known = next((said for name, said in advice.items() if code.startswith(name)), None)
    return f"{error}" if known is None else f"{known} ({error})"
