"""``PostgresStore``: a store in a database of PostgreSQL, which several processes share.

One process owns a topic, by a lease, and only the owner writes to it. So one process numbers the
messages of a topic, in the order in which they are committed: a reader that asks for the numbers
beyond the last one that it saw misses none. Each transaction locks the rows of ``owners`` that it
relies on. A process that stopped for longer than its lease finds there that it owns the topic no
more, and its transaction is undone (fencing).

To back up, use ``pg_dump``, or the archive of PostgreSQL's log.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cache
from itertools import count
from typing import Any
from uuid import uuid4

from tamis.broker.core.model import TopicOptions
from tamis.broker.store.queries import KEPT, MIGRATIONS, Queries
from tamis.broker.store.writing import Store
from tamis.core.errors import MissingExtra, StoreError

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError:
    raise MissingExtra("postgres", "psycopg") from None

LEASE_S = 5.0
_VERSION_MIN = 150_000
_MIGRATING = 0x74616D69
"""The advisory lock of those who make tables: "tami"."""
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 5, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3,
    "tcp_user_timeout": 10_000, "application_name": "tamis", "options": "-c lock_timeout=10s",
}  # fmt: skip
"""A host that is gone is found in ten seconds, and not in an hour."""

_OWNERS = """
    CREATE TABLE processes (
        process TEXT PRIMARY KEY, url TEXT NOT NULL, until TIMESTAMPTZ NOT NULL
    );
    CREATE TABLE owners ( -- one row a topic; nobody's has no process
        topic BIGINT PRIMARY KEY, process TEXT NOT NULL, epoch BIGINT NOT NULL
    );
    CREATE INDEX owner_processes ON owners (process);
    DO $$ BEGIN -- a third of the bytes of XML, in a third of the time that the default takes
        ALTER TABLE messages ALTER body SET COMPRESSION lz4;
    EXCEPTION WHEN feature_not_supported THEN NULL; END $$;
"""
"""What follows the first of ``MIGRATIONS`` here."""
_ACQUIRE = """
    WITH free AS (
        SELECT topic, name, owners.process FROM owners JOIN topics USING (topic)
        WHERE substr(name, 1, 1) <> '/' AND (
            owners.process = ? AND owners.epoch < ? OR owners.process <> ? AND NOT EXISTS (
                SELECT FROM processes
                WHERE processes.process = owners.process AND until > clock_timestamp()
            )
        )
        ORDER BY topic LIMIT ? FOR UPDATE OF owners SKIP LOCKED
    ), next AS (
        UPDATE process SET epoch = epoch + 1 WHERE EXISTS (SELECT FROM free) RETURNING epoch
    ), other AS ( -- the folder of this process may lack what another one did
        UPDATE topics SET indexed = -1 FROM free
        WHERE topics.topic = free.topic AND free.process <> ?
    )
    UPDATE owners SET process = ?, epoch = next.epoch FROM free, next
    WHERE owners.topic = free.topic RETURNING name, owners.epoch
"""
_RENEW = """
    WITH renewed AS (
        INSERT INTO processes VALUES (?, ?, clock_timestamp() + ? * interval '1 second')
        ON CONFLICT (process) DO UPDATE SET url = excluded.url, until = excluded.until
    )
    SELECT name, epoch FROM owners JOIN topics USING (topic) WHERE process = ?
"""
_RELEASE = """
    UPDATE owners SET process = '' FROM topics
    WHERE owners.topic = topics.topic AND process = ? AND epoch = ANY (?)
        AND (?::text[] IS NULL OR name = ANY (?))
    RETURNING name
"""


class _Connection(Queries):
    """A connection; one thread uses it at a time. A statement is a transaction of its own."""

    _connection: psycopg.Connection[tuple[Any, ...]]

    def __init__(self, url: str) -> None:
        self._url, self._topics, self._cursors = url, {}, count()
        try:
            self._parameters = _DEFAULTS | conninfo_to_dict(url)
        except psycopg.Error:  # its text may have the password
            message = "it is no URL of PostgreSQL: postgresql://USER@HOST:PORT/DATABASE"
            raise StoreError(message, "PostgreSQL") from None
        user, host, port, database = map(self._parameters.get, ("user", "host", "port", "dbname"))
        self._name = f"postgresql://{user or ''}@{host or ''}:{port or 5432}/{database or ''}"
        self._connect()

    def _connect(self) -> None:
        with self._advising():
            self._connection = psycopg.connect(**self._parameters, autocommit=True)
        try:
            self._check()
        except BaseException:
            self._connection.close()
            raise

    def _check(self) -> None:
        if self._connection.info.server_version < _VERSION_MIN:
            raise StoreError("its version is older than 15: install a newer one", self._name)
        wanted = {"synchronous_commit": ("on", "remote_apply"), "fsync": ("on",)}
        wanted["server_encoding"] = ("UTF8",)
        for name, values in wanted.items():
            (found,) = self._one("SELECT current_setting(?)", name)
            if found not in values:
                message = f"{name} is {found}, so what is stored could be lost: it has to be"
                raise StoreError(f"{message} {values[0]}", self._name)

    def _rows(self, statement: str, *values: object) -> Iterator[Any]:
        with self._advising():
            rows = self._connection.execute(_translated(statement), values, binary=True).fetchall()
        yield from rows

    def _stream(self, statement: str, *values: object) -> Iterator[Any]:
        with (
            self._advising(),
            self._connection.cursor(
                f"rows_{next(self._cursors)}", binary=True, withhold=True
            ) as cursor,
        ):
            cursor.itersize = 2_000
            yield from cursor.execute(_translated(statement), values)

    def _damaged(self, what: str) -> StoreError:
        return StoreError(f"{_ADVICE['XX']} ({what})", self._name)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def owner(self, topic: str) -> str | None:
        """The URL of the process that owns a topic now; None: none does."""
        if "\0" in topic:  # no text of PostgreSQL has it
            return None
        found = self._one(
            "SELECT url FROM topics JOIN owners USING (topic) JOIN processes USING (process) "
            "WHERE name = ? AND until > clock_timestamp()",
            topic,
        )
        return None if found is None else found[0]

    @contextmanager
    def _advising(self) -> Iterator[None]:
        """Say of an error of PostgreSQL's what to do."""
        try:
            yield
        except psycopg.Error as error:
            raise StoreError(_advice(error), self._name) from error


class _Reader(_Connection):
    """A connection that is opened again when it was lost."""

    _is_over = False

    def _rows(self, statement: str, *values: object) -> Iterator[Any]:
        self._reopen()
        try:
            rows = [*super()._rows(statement, *values)]
        except StoreError:  # only then it is known that the connection was lost
            if not self._connection.closed:
                raise
            self._reopen()
            rows = [*super()._rows(statement, *values)]
        yield from rows

    def _stream(self, statement: str, *values: object) -> Iterator[Any]:
        self._reopen()
        yield from super()._stream(statement, *values)

    def _reopen(self) -> None:
        if self._connection.closed and not self._is_over:
            self._connect()

    def close(self) -> None:
        self._is_over = True
        super().close()


class PostgresStore(_Connection, Store):
    """A broker's store in a database of PostgreSQL, which has no other tables.

    ``write`` stores changes of topics that this process owns: see ``acquire``. Topics that it makes
    are its own. ``renew``, ``holds`` and ``release`` may be called in any thread.

    Args:
        url: of the database, ``postgresql://USER@HOST:PORT/DATABASE``, and not of a pooler. All
            processes have the same user, so that they can end each other's connections.
        process: who owns topics; the next store of the same name has them at once. Processes that
            run at the same time, or have other folders of indexes, have other names.
        address: the URL under which others reach this process.
        lease_s: so long after the last ``renew`` others may acquire its topics.

    Attributes:
        owned: by name, the epochs in which topics were acquired. They grow with each owner.

    Raises:
        StoreError: the database cannot be used; the message says why, and what to do.
    """

    def __init__(
        self, url: str, *, process: str | None = None, address: str = "", lease_s: float = LEASE_S
    ) -> None:
        self.process, self.address, self.lease_s = process or uuid4().hex, address, lease_s
        self._sizes, self.owned = {}, dict[str, int]()
        self._leased_until, self._lock = 0.0, threading.Lock()
        super().__init__(url)
        with ExitStack() as opened:
            opened.callback(super().close)
            self._migrate()
            self._renewing = opened.enter_context(closing(self.reader()))
            self.renew()
            name = f"tamis {self.process}"  # so other processes find the connection, and end it
            self._end("SELECT ?::text AS name", name)
            self._one("SELECT set_config('application_name', ?, false)", name)
            # What an earlier connection of this process began is stored or undone from here on.
            for _ in self._rows("SELECT FROM owners WHERE process = ? FOR UPDATE", self.process):
                pass
            self.epoch = self._next_epoch()
            opened.pop_all()

    def _next_epoch(self) -> int:
        """A number that no store had; who has locked it may stand still until its lease is over."""
        statement = "UPDATE process SET epoch = epoch + 1 RETURNING epoch"
        try:
            (epoch,) = self._one(statement)
        except StoreError:
            self.renew()
            (epoch,) = self._one(statement)
        return int(epoch)

    def _migrate(self) -> None:
        with self._advising(), self._connection.transaction():
            execute = self._connection.execute
            execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
            if self._one("SELECT to_regclass('schema_version')")[0] is None:
                execute("CREATE TABLE schema_version AS SELECT 0::bigint AS version")
            (version,) = self._one("SELECT version FROM schema_version")
            if version > len(MIGRATIONS):
                message = f"a newer Tamis wrote it (its schema has version {version}): use that one"
                raise StoreError(message, self._name)
            for number, statements in enumerate(MIGRATIONS[version:], version + 1):
                execute(_types(statements) + (_OWNERS if number == 1 else ""))
                execute("UPDATE schema_version SET version = %s", (number,))

    def reader(self) -> _Reader:
        return _Reader(self._url)

    def close(self) -> None:
        """Let others have the topics, and close the connections."""
        super().close()
        with suppress(StoreError):
            self.release()
            self._renewing._one("DELETE FROM processes WHERE process = ? RETURNING 1", self.process)
        self._renewing.close()

    # -- transactions ------------------------------------------------------------------------------

    def _many(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_translated(statement), rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._advising(), self._connection.transaction(), self._connection.pipeline():
            yield

    def _fence(self, topics: Iterable[str]) -> None:
        names = list(topics)
        rows = self._rows(
            "SELECT name, epoch FROM owners JOIN topics USING (topic) "
            "WHERE process = ? AND name = ANY (?) FOR SHARE OF owners",
            self.process, names,
        ) if names else ()  # fmt: skip
        found = dict(rows)
        for name in names:
            if name not in found or found[name] != self.owned.get(name):
                self.owned.pop(name, None)
                message = f"this process does not own the topic {name!r}, or not any more"
                raise StoreError(f"{message}: nothing is stored, try again", self._name)

    def create(self, name: str, options: TopicOptions) -> None:
        super().create(name, options)
        self.owned[name] = self.epoch

    def _own_new(self, name: str) -> None:
        self._run(
            "INSERT INTO owners SELECT topic, ?, ? FROM topics WHERE name = ?",
            self.process, self.epoch, name,
        )  # fmt: skip

    def delete(self, name: str) -> None:
        super().delete(name)
        self.owned.pop(name, None)

    def _disown(self, topic: int) -> None:
        self._run("DELETE FROM owners WHERE topic = ?", topic)

    # -- who owns topics ---------------------------------------------------------------------------

    def acquire(self, most: int | None = None) -> dict[str, int]:
        """Own topics that nobody owns, or whose owner has not renewed its lease.

        Args:
            most: no more than so many.

        Returns:
            The new ones, and their epochs. Nothing of them that was read before is valid.
        """
        self.renew()
        me = self.process
        new = dict(self._rows(_ACQUIRE, me, self.epoch, me, most, me, me))
        if new:
            self.forget_topics()
        for name in new:
            self._sizes.pop(self._topic(name), None)
        self.owned |= new
        return new

    def _end(self, which: str, *values: object) -> None:
        """End the connections that write, of processes that may have stopped in a transaction."""
        for _ in self._renewing._rows(
            f"SELECT pg_terminate_backend(pid, 1000) FROM ({which}) AS ended "
            "JOIN pg_stat_activity ON application_name = name WHERE datname = current_database()",
            *values,
        ):
            pass

    def own(self) -> dict[str, int]:
        """As many topics as each process is to have, so that all together have all."""
        topics, processes = self._one(
            f"SELECT (SELECT count(*) FROM topics WHERE {KEPT}), "
            "(SELECT count(*) FROM processes WHERE until > clock_timestamp())"
        )
        share = -(-topics // max(1, processes))
        if len(self.owned) < share:
            self.acquire(most=share - len(self.owned))
        for _ in self._rows(  # what an earlier connection owned, and this one has no room for
            "UPDATE owners SET process = '' WHERE process = ? AND epoch < ? RETURNING topic",
            self.process, self.epoch,
        ):  # fmt: skip
            pass
        return dict(sorted(dict(self.owned).items())[:share])

    def renew(self) -> None:
        with self._lock:
            now, known = time.monotonic(), dict(self.owned)
            me = self.process, self.address, self.lease_s, self.process
            own = dict(self._renewing._rows(_RENEW, *me))
            for name, epoch in known.items():
                if own.get(name) != epoch and self.owned.get(name) == epoch:
                    self.owned.pop(name, None)
            self._leased_until = now + self.lease_s
            # What they have locked, this process may wait for.
            self._end(
                "SELECT 'tamis ' || process AS name FROM processes WHERE until < clock_timestamp()"
            )

    def holds(self, topic: str) -> bool:
        return topic in self.owned and time.monotonic() < self._leased_until

    def release(self, topics: Collection[str] | None = None) -> None:
        names = None if topics is None else list(topics)
        with self._lock:
            epochs = [self.epoch, *self.owned.values()]
            released = self._renewing._rows(_RELEASE, self.process, epochs, names, names)
            for (name,) in released:
                self.owned.pop(name, None)


@cache
def _translated(statement: str) -> str:
    return statement.replace("?", "%s")


def _types(statements: str) -> str:
    """A migration, as PostgreSQL has it."""
    for old, new in ("INTEGER", "BIGINT"), ("REAL", "DOUBLE PRECISION"), ("BLOB", "BYTEA"):
        statements = re.sub(rf"\b{old}\b", new, statements)
    return statements.replace(" WITHOUT ROWID", "")


_REFUSED = "the server refuses the user: check the name, the password, and pg_hba.conf"
_NO_RIGHTS = "the user has no rights: let it own the tables, and GRANT ALL ON SCHEMA public"
_NO_DATABASE = "there is no such database: make it with createdb"
_LOST = (
    "the connection is lost, and nobody knows whether the last transaction is stored: check that "
    "the server runs; the broker opens the store again"
)
_DOWN = "no server answers: check that it runs, its host and its port"
_ADVICE = {
    "08": _LOST,
    "23505": "another process wrote the same: try again",
    "25006": "it cannot be written, it is a standby: name the primary server",
    "28": _REFUSED,
    "3D": _NO_DATABASE,
    "40": "other transactions were in the way: try again",
    "3F": _NO_RIGHTS,
    "42501": _NO_RIGHTS,
    "53100": "the disk of the server is full: make room, and the broker goes on",
    "53": "the server has not enough connections or memory: give it more",
    "55P03": "another process holds what is to be written for too long: try again",
    "57P01": f"the server stops, or another process took over, and {_LOST.partition(', and ')[2]}",
    "57": f"the server stops or starts, and {_LOST.partition(', and ')[2]}",
    "58": "the disk of the server does not write or read: look at the system's log",
    "XX": "it is damaged: restore the last backup",
}
"""By the beginning of the code of an error."""
_AT_THE_START = (  # no error of a connection that was never made has a code
    (r"authentication|password|pg_hba\.conf|role .* does not exist", _REFUSED),
    (r"database .* does not exist", _NO_DATABASE),
    (r"connection failed|could not|timeout|resolve", _DOWN),
)


def _advice(error: psycopg.Error) -> str:
    """What to do about an error."""
    said = str(error).strip().replace("\n", " ")
    code = error.sqlstate or ""
    known = next((advice for start, advice in _ADVICE.items() if code.startswith(start)), None)
    if known is None and not code:
        found = (advice for pattern, advice in _AT_THE_START if re.search(pattern, said))
        known = next(found, _LOST if isinstance(error, psycopg.OperationalError) else None)
    return said if known is None else f"{known} ({said})"
