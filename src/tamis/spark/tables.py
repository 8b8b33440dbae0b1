"""Results in tables of Spark's catalog: of Delta Lake, Iceberg, Hive, or files that Spark writes.

Workers hand their rows to Spark, which appends them. Rows have the *attempt* at a run that made
them. Last of all comes a row of the table of runs: rows count where that has their attempt. What a
driver appended before it died has an attempt that is not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_schema

from tamis.core.errors import UnwritableOutput, UsageError
from tamis.documents.files import FileStatus
from tamis.spark.results import ERRORS, MANIFEST, MANIFEST_SCHEMA, Run, divided, not_in, schemas
from tamis.spark.session import spark_errors

_SCHEME = "table:"
_RUNS = "runs"
_KIND = pa.field("kind", pa.string())
_RUN = pa.field("run", pa.string())
_RUNS_SCHEMA = pa.schema([_RUN, ("name", pa.string())])


def is_table(output: str | os.PathLike[str]) -> bool:
    """Whether an output names tables."""
    return os.fspath(output).startswith(_SCHEME)


class TableStore:
    """The tables ``NAME_matches``, ``_errors``, ``_manifest`` and ``_runs``, of table:NAME.

    They are made, in the format that is Spark's default, unless they are there.
    """

    def __init__(self, spark: SparkSession, output: str | os.PathLike[str]) -> None:
        self.spark = spark
        self.given = os.fspath(output)
        self.name = self.given.removeprefix(_SCHEME)
        if not self.name.strip():
            raise UsageError(f"{self.given}: which tables? table:NAME makes NAME_matches")
        self._rows: DataFrame | None = None  # of the run that is written

    @property
    def existing(self) -> bool:
        """Whether there are results."""
        with self._failure_reported():
            is_there = self.spark.catalog.tableExists(self._table(_RUNS))
            return is_there and not self._read(_RUNS).isEmpty()

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
        """Make the tables, if they are not there, and see that results can be added."""
        with self._failure_reported():
            for name, schema in self._schemas(id_type).items():
                table, wanted = self._table(name), from_arrow_schema(schema)
                if not self.spark.catalog.tableExists(table):
                    self.spark.createDataFrame([], wanted).write.saveAsTable(table)
                found = self.spark.catalog.getTable(table)
                if found.isTemporary or "VIEW" in found.tableType.upper():
                    raise UsageError(f"{table} is a view: name other tables")
                types = {field.name.lower(): field.dataType for field in self._read(name).schema}
                for field in wanted:
                    has = types.get(field.name)
                    if has != field.dataType:
                        said = "lacks it" if has is None else f"has {has.simpleString()}"
                        raise UsageError(
                            f"{table} is to have a column {field.name} of the type "
                            f"{field.dataType.simpleString()}, and {said}: name other tables"
                        )

    def not_in_manifest(self, files: Sequence[FileStatus]) -> list[FileStatus]:
        """Those files that are not in the manifest as they are now."""
        with self._failure_reported():
            rows = self._read(MANIFEST).join(self._read(_RUNS), _RUN.name, "left_semi")
            return not_in(rows.select(MANIFEST_SCHEMA.names).toArrow().cast(MANIFEST_SCHEMA), files)

    def is_done(self, run: str) -> bool:
        with self._failure_reported():
            return not self._read(_RUNS).where(F.col("name") == run).isEmpty()

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
        """Append what the tasks gave, and last of all that it counts."""
        assert self._rows is not None
        if self.is_done(written.name):
            raise UsageError(f"another driver has done {written.name}: end one of them")
        attempt = f"{written.name}-{uuid4().hex[:8]}"
        with self._failure_reported():
            for name, schema in schemas(sink.id_type).items():
                rows = self._rows.where(F.col(_KIND.name) == name).select(schema.names)
                if name == ERRORS and written.wrong.num_rows:
                    rows = rows.union(self.spark.createDataFrame(written.wrong))
                self._append(name, rows, attempt)
            self._append(MANIFEST, self._frame(written.manifest()), attempt)
            self._append(_RUNS, self._frame(pa.table({"name": [written.name]})), attempt)

    def _frame(self, table: pa.Table) -> DataFrame:
        return self.spark.createDataFrame(table.to_pylist(), from_arrow_schema(table.schema))

    def _append(self, name: str, rows: DataFrame, attempt: str) -> None:
        own = rows.withColumn(_RUN.name, F.lit(attempt))
        columns = [  # in the table's order; there may be more
            field.name if field.name.lower() in own.columns else F.lit(None).alias(field.name)
            for field in self._read(name).schema
        ]
        own.select(columns).write.insertInto(self._table(name))
        self.spark.catalog.refreshTable(self._table(name))  # the rows may be of another session

    def _read(self, name: str) -> DataFrame:
        """A table as it is now, whatever other sessions wrote."""
        self.spark.catalog.refreshTable(self._table(name))
        return self.spark.table(self._table(name))

    def _table(self, name: str) -> str:
        return f"{self.name[:-1]}_{name}`" if self.name.endswith("`") else f"{self.name}_{name}"

    def _schemas(self, id_type: str) -> dict[str, pa.Schema]:
        found = {name: schema.append(_RUN) for name, schema in schemas(id_type).items()}
        return {**found, MANIFEST: MANIFEST_SCHEMA, _RUNS: _RUNS_SCHEMA}

    @contextmanager
    def _failure_reported(self) -> Iterator[None]:
        try:
            yield
        except spark_errors() as error:
            reason = str(error).strip().splitlines()[0]
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
