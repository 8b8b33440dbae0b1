"""Results in tables of Spark's catalog: of Delta Lake, Iceberg, Hive, or files that Spark writes.

Workers hand their rows to Spark, which appends those of a run to each table at once. The rows have
the run: what a driver appended before it died is not appended again. The manifest comes last.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_schema

from tamis.core.errors import UnwritableOutput, UsageError
from tamis.spark.results import (
    ERRORS,
    MANIFEST,
    MANIFEST_SCHEMA,
    MATCHES,
    RESULTS,
    Run,
    divided,
    not_in,
    schemas,
)
from tamis.spark.splits import FileStatus

_SCHEME = "table:"
_KIND = pa.field("kind", pa.string())
_RUN = pa.field("run", pa.string())


def is_table(output: str | os.PathLike[str]) -> bool:
    """Whether an output names tables."""
    return os.fspath(output).startswith(_SCHEME)


class TableStore:
    """The tables ``NAME_matches``, ``NAME_errors`` and ``NAME_manifest``, of the output table:NAME.

    They are made, in the format that is Spark's default, unless they are there. One driver at a
    time may write them.
    """

    def __init__(self, spark: SparkSession, output: str | os.PathLike[str]) -> None:
        self.spark = spark
        self.given = os.fspath(output)
        self.name = self.given.removeprefix(_SCHEME)
        if not self.name.strip():
            raise UsageError(f"{self.given}: which tables? table:NAME makes NAME_matches")
        self._rows: DataFrame | None = None  # of the run that is written

    @property
    def existing(self) -> list[str]:
        """The results that are there."""
        with self._failure_reported():
            there = (name for name in RESULTS if self.spark.catalog.tableExists(self._table(name)))
            return [name for name in there if not self.spark.table(self._table(name)).isEmpty()]

    def check_new(self) -> None:
        """See that there are no results."""
        if self.existing:
            raise UsageError(
                f"{self.given} has results already: name other tables, or add what is new "
                "(--only-new)"
            )

    def turn(self, *, waits: bool = False) -> AbstractContextManager[None]:
        """Nothing: tables cannot be locked."""
        del waits
        return nullcontext()

    def prepare(self, id_type: str) -> None:
        """Make the tables, if they are not there, and see that they have such ids."""
        with self._failure_reported():
            for name, schema in self._schemas(id_type).items():
                table = self._table(name)
                if not self.spark.catalog.tableExists(table):
                    empty = self.spark.createDataFrame([], from_arrow_schema(schema))
                    empty.write.saveAsTable(table)
                missing = set(schema.names).difference(self.spark.table(table).columns)
                if missing:
                    raise UsageError(f"the table {table} lacks the columns {sorted(missing)}")
            found = self.spark.table(self._table(MATCHES)).schema["subscription"].dataType
            if found.simpleString() != id_type:
                raise UsageError(
                    f"{self._table(MATCHES)} has ids of the type {found.simpleString()}, which "
                    "those of these subscriptions are not: name other tables"
                )

    def manifest(self) -> pa.Table:
        """What was read, by all runs."""
        rows = self.spark.table(self._table(MANIFEST)).select(MANIFEST_SCHEMA.names)
        return rows.toArrow().cast(MANIFEST_SCHEMA)

    def not_in_manifest(self, files: Sequence[FileStatus]) -> list[FileStatus]:
        """Those files that are not in the manifest as they are now."""
        return not_in(self.manifest(), files)

    def is_done(self, run: str) -> bool:
        return self._has(MANIFEST, run)

    @contextmanager
    def sink(self, run: str, id_type: str) -> Iterator[TableSink]:
        """Where tasks write a run: the rows are kept until they are published."""
        del run
        try:
            yield TableSink(id_type)
        finally:
            if self._rows is not None:
                self._rows.unpersist()
                self._rows = None

    def keep(self, rows: DataFrame) -> DataFrame:
        """Have Spark keep what tasks gave; the result are the rows about the tasks."""
        self._rows = rows.persist(StorageLevel.DISK_ONLY)
        return self._rows.where(F.col(_KIND.name).isNull())

    def publish(self, sink: TableSink, written: Run) -> None:
        """Append what the tasks gave, as far as that is not there."""
        assert self._rows is not None
        with self._failure_reported():
            for name, schema in schemas(sink.id_type).items():
                rows = self._rows.where(F.col(_KIND.name) == name).select(schema.names)
                if name == ERRORS and written.wrong.num_rows:
                    rows = rows.union(self.spark.createDataFrame(written.wrong))
                self._append(name, rows, written.name)
            read = written.manifest()
            if read.num_rows:
                self._append(MANIFEST, self.spark.createDataFrame(read).drop("run"), written.name)

    def _append(self, name: str, rows: DataFrame, run: str) -> None:
        if self._has(name, run):  # a driver died behind this
            return
        columns = self.spark.table(self._table(name)).columns  # in the table's order
        rows.withColumn(_RUN.name, F.lit(run)).select(columns).write.insertInto(self._table(name))
        self.spark.catalog.refreshTable(self._table(name))  # the rows may be of another session

    def _has(self, name: str, run: str) -> bool:
        self.spark.catalog.refreshTable(self._table(name))
        return not self.spark.table(self._table(name)).where(F.col("run") == run).isEmpty()

    def _table(self, kind: str) -> str:
        return f"{self.name}_{kind}"

    def _schemas(self, id_type: str) -> dict[str, pa.Schema]:
        found = {name: schema.append(_RUN) for name, schema in schemas(id_type).items()}
        return {**found, MANIFEST: MANIFEST_SCHEMA}

    @contextmanager
    def _failure_reported(self) -> Iterator[None]:
        try:
            yield
        except AnalysisException as error:
            reason = str(error).strip().partition("\n")[0]
            raise UnwritableOutput(f"cannot write {self.given}: {reason}") from None


class TableSink(NamedTuple):
    """What tasks give: rows of results, by their ``kind``."""

    id_type: str

    def schema(self) -> pa.Schema:
        """The columns of all results, and the kind, which rows about tasks lack."""
        both = pa.unify_schemas(list(schemas(self.id_type).values()))
        return both.append(_KIND)

    def rows(
        self, batches: Iterator[pa.RecordBatch], counts: dict[str, int]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of one task, which are counted."""
        schema = self.schema()
        for batch in batches:
            for kind, found in divided(batch).items():
                if not found.num_rows:
                    continue
                counts[kind] += found.num_rows
                columns = [
                    found[field.name].cast(field.type)
                    if field.name in found.schema.names
                    else pa.nulls(found.num_rows, field.type)
                    for field in list(schema)[:-1]
                ]
                columns.append(pa.repeat(pa.scalar(kind, _KIND.type), found.num_rows))
                yield pa.RecordBatch.from_arrays(columns, schema=schema)
