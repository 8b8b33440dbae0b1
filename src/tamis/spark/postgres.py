"""Results in PostgreSQL, written by the tasks; a run that is repeated adds nothing twice.

A task copies its rows into a table of its own, and from there into the results. Of several
attempts of a task, the first to commit counts, and the others write nothing. A run is in
``tamis_runs``, with the driver that is at it, and whether it is done. Who begins one anew, since
its driver died, takes it over and removes its rows; tasks that are left of that driver, which may
have matched with other subscriptions, find so before they commit. Rows count for readers where
``tamis_runs`` says that their run is done.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa

from tamis.core.errors import MissingExtra, UsageError
from tamis.spark.results import ERRORS, MATCHES, Run, divided, schemas

# Keys are of hashes, since a path or a message may be longer than what an index takes.
_TABLES = (
    """
    CREATE TABLE IF NOT EXISTS tamis_matches (
        batch text NOT NULL, document text NOT NULL, record bigint, subscription {ids} NOT NULL,
        set_version text NOT NULL, tamis_version text NOT NULL
    )
    """,
    """
    CREATE UNIQUE INDEX IF NOT EXISTS tamis_matches_key
    ON tamis_matches (batch, md5(document), record, md5(subscription::text)) NULLS NOT DISTINCT
    """,
    """
    CREATE TABLE IF NOT EXISTS tamis_errors (
        batch text NOT NULL, document text, record bigint, code text NOT NULL,
        message text NOT NULL, line bigint, "column" bigint, "offset" bigint, subscription {ids}
    )
    """,
    "ALTER TABLE tamis_errors ADD COLUMN IF NOT EXISTS subscription {ids}",
    "DROP INDEX IF EXISTS tamis_errors_key",  # of an earlier version, without subscription
    """
    CREATE UNIQUE INDEX IF NOT EXISTS tamis_errors_rows_key
    ON tamis_errors (
        batch, md5(document), record, line, md5(message), md5(subscription::text)
    ) NULLS NOT DISTINCT
    """,
    """
    CREATE TABLE IF NOT EXISTS tamis_manifest (
        file text NOT NULL, size bigint NOT NULL, modified timestamptz NOT NULL,
        set_version text NOT NULL, tamis_version text NOT NULL, run text NOT NULL,
        read timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS tamis_runs (
        run text PRIMARY KEY, driver text NOT NULL, is_done boolean NOT NULL DEFAULT false
    )
    """,
    """
    CREATE TABLE IF NOT EXISTS tamis_tasks (
        run text, task integer, matches bigint NOT NULL, errors bigint NOT NULL,
        PRIMARY KEY (run, task)
    )
    """,
)


def is_postgres(output: str | os.PathLike[str]) -> bool:
    """Whether an output is the URL of a PostgreSQL database."""
    return os.fspath(output).startswith(("postgresql://", "postgres://"))


@contextmanager
def _connected(url: str) -> Iterator[Any]:
    """A transaction; a UsageError if the database cannot be used."""
    try:
        import psycopg  # noqa: PLC0415 - only who has a database needs it
    except ImportError:
        raise MissingExtra("postgres", "psycopg") from None
    try:
        with psycopg.connect(url) as connection:
            yield connection
    except psycopg.Error as error:
        said = str(error).strip().partition("\n")[0]
        raise UsageError(f"PostgreSQL: {said}") from None


class PostgresStore:
    """A database of results, version 15 or newer.

    All workers must reach it under its URL, ``postgresql://user@host:port/name``.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def turn(self, *, waits: bool = False) -> AbstractContextManager[None]:
        """Nothing: drivers do not harm each other here, but for those that are at the same run."""
        del waits
        return nullcontext()

    def prepare(self, id_type: str) -> None:
        """Make the tables, if they are not there, and see that they have such ids."""
        ids = "bigint" if id_type == "bigint" else "text"
        with _connected(self.url) as connection:
            # Of several who would make them at once, one does.
            connection.execute("SELECT pg_advisory_xact_lock(7267)")
            for statement in _TABLES:
                connection.execute(statement.format(ids=ids))
            (found,) = connection.execute(
                "SELECT format_type(atttypid, atttypmod) FROM pg_attribute "
                "WHERE attrelid = 'tamis_matches'::regclass AND attname = 'subscription'"
            ).fetchone()
            if found != ids:
                raise UsageError(
                    f"tamis_matches has ids of the type {found}, which those of these "
                    "subscriptions are not: name another database"
                )

    def is_done(self, run: str) -> bool:
        with _connected(self.url) as connection:
            query = "SELECT 1 FROM tamis_runs WHERE run = %s AND is_done"
            return connection.execute(query, (run,)).fetchone() is not None

    @contextmanager
    def sink(self, run: str, id_type: str) -> Iterator[PostgresSink]:
        """Where tasks write a run; what is there of it is removed."""
        driver = uuid4().hex
        with _connected(self.url) as connection:
            begun = connection.execute(
                "INSERT INTO tamis_runs VALUES (%s, %s) ON CONFLICT (run) "
                "DO UPDATE SET driver = excluded.driver WHERE NOT tamis_runs.is_done",
                (run, driver),
            )
            if not begun.rowcount:
                raise UsageError(f"another driver has done {run}: end one of them")
            for table, column in ("matches", "batch"), ("errors", "batch"), ("tasks", "run"):
                connection.execute(f"DELETE FROM tamis_{table} WHERE {column} = %s", (run,))
        yield PostgresSink(self.url, run, driver, id_type)

    def publish(self, sink: PostgresSink, written: Run) -> None:
        """Note that a run is done."""
        with _connected(self.url) as connection, connection.cursor() as cursor:
            sink.check_driver(cursor)
            cursor.execute("UPDATE tamis_runs SET is_done = true WHERE run = %s", (sink.run,))
            cursor.execute("DELETE FROM tamis_tasks WHERE run = %s", (sink.run,))
            with cursor.copy("COPY tamis_manifest FROM STDIN") as copy:
                for row in _rows(written.manifest()):
                    copy.write_row(row)
            sink.begin(cursor)
            sink.add(cursor, ERRORS, written.wrong)
            sink.commit(cursor)


class PostgresSink(NamedTuple):
    """Where tasks write the rows of a run, which ``driver`` is at."""

    url: str
    run: str
    driver: str
    id_type: str

    def check_driver(self, cursor: Any) -> None:
        """See that the run is this driver's, and not done, and stays so in this transaction."""
        query = "SELECT driver FROM tamis_runs WHERE run = %s AND NOT is_done FOR SHARE"
        cursor.execute(query, (self.run,))
        if cursor.fetchone() != (self.driver,):
            raise UsageError(f"another driver has taken over {self.run}, or it is done")

    def write(self, task: int, batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
        """Write what one attempt of a task has, in one transaction; see ``Sink``."""
        counts = dict.fromkeys((MATCHES, ERRORS), 0)
        with _connected(self.url) as connection, connection.cursor() as cursor:
            self.begin(cursor)
            for batch in batches:
                for name, rows in divided(batch).items():
                    counts[name] += rows.num_rows
                    self.add(cursor, name, rows)
            self.check_driver(cursor)
            cursor.execute(
                "INSERT INTO tamis_tasks VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (self.run, task, *counts.values()),
            )
            is_first = cursor.rowcount == 1
            if is_first:
                self.commit(cursor)
            else:  # another attempt was faster
                query = "SELECT matches, errors FROM tamis_tasks WHERE run = %s AND task = %s"
                written = cursor.execute(query, (self.run, task)).fetchone()
                counts = dict(zip(counts, written, strict=True))
        return {"file": "", **counts, "is_first": is_first}

    def begin(self, cursor: Any) -> None:
        """Make tables for what is new, which this transaction has for itself."""
        for name in (MATCHES, ERRORS):
            cursor.execute(f"CREATE TEMP TABLE new_{name} (LIKE tamis_{name}) ON COMMIT DROP")

    def add(self, cursor: Any, name: str, rows: pa.RecordBatch | pa.Table) -> None:
        """Fill them."""
        if not rows.num_rows:
            return
        with cursor.copy(f"COPY new_{name} FROM STDIN") as copy:
            for row in _rows(rows.select(schemas(self.id_type)[name].names)):
                copy.write_row((self.run, *row))

    def commit(self, cursor: Any) -> None:
        """Add what is in them to the results."""
        for name in (MATCHES, ERRORS):
            cursor.execute(
                f"INSERT INTO tamis_{name} SELECT * FROM new_{name} ON CONFLICT DO NOTHING"
            )


def _rows(table: pa.Table | pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The rows; a NUL, which PostgreSQL cannot hold, becomes what stands for no character."""
    columns = [
        [value.replace("\0", "�") if isinstance(value, str) else value for value in column]
        for column in (column.to_pylist() for column in table.columns)
    ]
    return zip(*columns, strict=True)
