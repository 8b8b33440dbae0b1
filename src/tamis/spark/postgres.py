"""Results in PostgreSQL, written by the tasks; a run that is repeated adds nothing twice.

A task copies its rows into a table of its own, and from there into the results, whose keys keep out
what another attempt has written. A run is in ``tamis_runs``, with the driver that is at it, and
whether it is done. Who begins one anew, since its driver died, takes it over and removes its rows;
tasks that are left of that driver, which may have matched with other subscriptions, find so before
they commit, and write nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa

from tamis.errors import MissingExtra, UsageError
from tamis.spark.output import ERRORS, MATCHES, Run, divided, refused_rows, schemas

_TABLES = {
    MATCHES: """
        CREATE TABLE IF NOT EXISTS tamis_matches (
            batch text NOT NULL,
            document text NOT NULL,
            record bigint,
            subscription {ids} NOT NULL,
            set_version text NOT NULL,
            tamis_version text NOT NULL,
            UNIQUE NULLS NOT DISTINCT (batch, document, record, subscription)
        )
    """,
    ERRORS: """
        CREATE TABLE IF NOT EXISTS tamis_errors (
            batch text NOT NULL,
            document text,
            record bigint,
            code text NOT NULL,
            message text NOT NULL,
            line integer,
            "column" integer,
            "offset" bigint,
            UNIQUE NULLS NOT DISTINCT (batch, document, record, message)
        )
    """,
}
_MANIFEST = """
    CREATE TABLE IF NOT EXISTS tamis_manifest (
        file text NOT NULL,
        size bigint NOT NULL,
        modified timestamptz NOT NULL,
        set_version text NOT NULL,
        tamis_version text NOT NULL,
        run text NOT NULL,
        read timestamptz NOT NULL
    )
"""
_RUNS = """
    CREATE TABLE IF NOT EXISTS tamis_runs (
        run text PRIMARY KEY,
        driver text NOT NULL,
        is_done boolean NOT NULL DEFAULT false
    )
"""


def is_postgres(output: str | os.PathLike[str]) -> bool:
    """Whether an output is the URL of a PostgreSQL database."""
    return os.fspath(output).startswith(("postgresql://", "postgres://"))


@contextmanager
def _connected(url: str) -> Iterator[Any]:
    """A transaction.

    Raises:
        MissingExtra: psycopg is not installed.
        UsageError: the database cannot be used.
    """
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


class Postgres:
    """A database of results, version 15 or newer.

    Args:
        url: ``postgresql://user@host:port/name``; all workers must reach it under that.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def check_ids(self, id_type: str) -> None:
        """Make the tables, if they are not there, and see that they have such ids.

        Raises:
            UsageError: they have others; or the database cannot be used.
        """
        ids = "bigint" if id_type == "bigint" else "text"
        with _connected(self.url) as connection:
            # Of several who would make them at once, one does.
            connection.execute("SELECT pg_advisory_xact_lock(7267)")
            for statement in (*_TABLES.values(), _MANIFEST, _RUNS):
                connection.execute(statement.format(ids=ids))
            (found,) = connection.execute(
                "SELECT data_type FROM information_schema.columns "
                "WHERE table_name = 'tamis_matches' AND column_name = 'subscription'"
            ).fetchone()
        if found != ids:
            raise UsageError(
                f"tamis_matches has ids of the type {found}, which those of these subscriptions "
                "are not: name another database"
            )

    def runs(self) -> set[str]:
        """The names of the runs that are done."""
        with _connected(self.url) as connection:
            rows = connection.execute("SELECT run FROM tamis_runs WHERE is_done")
            return {run for (run,) in rows}

    def remove_unfinished(self) -> None:
        """Nothing: see :meth:`sink`."""

    @contextmanager
    def sink(self, run: str, id_type: str) -> Iterator[PostgresSink]:
        """Where tasks write a run; what is there of it is removed."""
        driver = uuid4().hex
        with _connected(self.url) as connection:
            connection.execute(
                "INSERT INTO tamis_runs VALUES (%s, %s) "
                "ON CONFLICT (run) DO UPDATE SET driver = excluded.driver",
                (run, driver),
            )
            for name in _TABLES:
                connection.execute(f"DELETE FROM tamis_{name} WHERE batch = %s", (run,))
        yield PostgresSink(self.url, run, driver, id_type)

    def publish(self, sink: PostgresSink, written: Run, *, overwrite: bool = False) -> None:
        """Note that a run is done."""
        assert not overwrite, "what others wrote stays"
        with _connected(self.url) as connection, connection.cursor() as cursor:
            sink.check_driver(cursor)
            cursor.execute("UPDATE tamis_runs SET is_done = true WHERE run = %s", (sink.run,))
            with cursor.copy("COPY tamis_manifest FROM STDIN") as copy:
                table = written.manifest()
                for row in _rows(table.cast(_in_microseconds(table.schema))):
                    copy.write_row(row)
            with cursor.copy("COPY tamis_errors FROM STDIN") as copy:
                for row in _rows(refused_rows(written.refused)):
                    copy.write_row((written.name, *row))


class PostgresSink(NamedTuple):
    """Where tasks write the rows of a run.

    Attributes:
        url: of the database.
        run: the name of the run.
        driver: who is at it.
        id_type: see :class:`Program`.
    """

    url: str
    run: str
    driver: str
    id_type: str

    def check_driver(self, cursor: Any) -> None:
        """See that nobody else has begun the run anew, nor does before this transaction ends.

        Raises:
            UsageError: somebody has.
        """
        cursor.execute("SELECT driver FROM tamis_runs WHERE run = %s FOR SHARE", (self.run,))
        if cursor.fetchone() != (self.driver,):
            raise UsageError(f"another driver has taken over {self.run}: end one of them")

    def write(self, batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
        """Write what one attempt of a task has, in one transaction; see ``ParquetSink``."""
        columns = {name: schema.names for name, schema in schemas(self.id_type).items()}
        counts = dict.fromkeys(columns, 0)
        with _connected(self.url) as connection, connection.cursor() as cursor:
            for name in columns:
                cursor.execute(f"CREATE TEMP TABLE new_{name} (LIKE tamis_{name}) ON COMMIT DROP")
            for batch in batches:
                for name, rows in divided(batch).items():
                    if not rows.num_rows:
                        continue
                    counts[name] += rows.num_rows
                    with cursor.copy(f"COPY new_{name} FROM STDIN") as copy:
                        for row in _rows(rows.select(columns[name])):
                            copy.write_row((self.run, *row))
            self.check_driver(cursor)
            for name in columns:
                cursor.execute(
                    f"INSERT INTO tamis_{name} SELECT * FROM new_{name} ON CONFLICT DO NOTHING"
                )
        return {"file": "", **counts}


def _rows(table: pa.Table | pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """The rows; a NUL, which PostgreSQL cannot hold, becomes what stands for no character."""
    columns = [
        [value.replace("\0", "�") if isinstance(value, str) else value for value in column]
        for column in (column.to_pylist() for column in table.columns)
    ]
    return zip(*columns, strict=True)


def _in_microseconds(schema: pa.Schema) -> pa.Schema:
    at = schema.get_field_index("modified")
    return schema.set(at, pa.field("modified", pa.timestamp("us", "UTC")))
