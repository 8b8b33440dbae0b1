"""Rows of answers: what the answers about documents, events and messages have in common.

An ``OutputSpec`` says which columns rows have, a ``ColumnTask`` makes them of the rows of a
DataFrame, and ``PassthroughColumns`` puts kept columns beside them, in batches of bounded size.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import signature
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import to_arrow_schema

import tamis
from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentError, EventError, MessageError, SubscriptionId, UsageError
from tamis.core.index.matches import Matches
from tamis.spark.program import PROGRAMS_KEPT, Artifact

log = logging.getLogger("tamis.spark")

# An output batch ends at one of these bounds, so that one document with very many matches, or a
# large column repeated for each of them, still goes out in pieces. (A single row that is larger
# goes out alone.)
OUTPUT_ROWS = 1 << 14
OUTPUT_BYTES = 16 << 20

Errors = Literal["column", "drop", "fail"]
"""What becomes of documents in error: rows with a column of them, nothing, or the job fails."""
AnyError = DocumentError | EventError | MessageError

ERROR_FIELDS: dict[str, sql.DataType] = {
    **dict.fromkeys(("code", "message"), sql.StringType()),
    **dict.fromkeys(("line", "column", "offset"), sql.LongType()),
}
ERROR = sql.StructType([sql.StructField(name, type) for name, type in ERROR_FIELDS.items()])


def arrow_schema(fields: Iterable[sql.StructField]) -> pa.Schema:
    """What Spark gives for columns; their times are of UTC."""
    options: Any = {}
    if "timezone" in signature(to_arrow_schema).parameters:  # Spark 4.1 has no other
        options = {"timezone": "UTC"}
    return to_arrow_schema(sql.StructType([*fields]), **options)


@dataclass(frozen=True)
class OutputSpec:
    """The columns of the answers, and what becomes of errors.

    Attributes:
        id_type: ``bigint`` or ``string``; see :class:`ProgramArtifact`.
    """

    id_type: str
    set_version: str
    errors: Errors

    def __post_init__(self) -> None:
        if self.errors not in get_args(Errors):
            raise UsageError(f"errors={self.errors!r}: write 'column', 'drop' or 'fail'")

    def answer_columns(self) -> dict[str, sql.DataType]:
        raise NotImplementedError

    def error_columns(self) -> dict[str, sql.DataType]:
        """The columns of errors, the last of which is there for ``errors="column"`` alone."""
        return {"error": ERROR}

    def fields(self) -> list[sql.StructField]:
        """The columns behind those that are passed through."""
        text = sql.StringType()
        found = {**self.answer_columns(), "set_version": text, "tamis_version": text}
        found |= self.error_columns()
        if self.errors != "column":
            del found["error"]
        return [sql.StructField(name, type) for name, type in found.items()]

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return arrow_schema(self.fields())

    @property
    def type_of_ids(self) -> sql.DataType:
        return sql.LongType() if self.id_type == "bigint" else sql.StringType()

    def report(self, name: str, error: Exception) -> None:
        """Raise the error of a document, or an event, if the job is to fail; else log it."""
        if self.errors == "fail":
            said = f"{name}: {error}"
            raise type(error)(said)
        log.info("%s: %s", name, error)

    def batches(
        self,
        kept: PassthroughColumns,
        rows: Int64,
        answers: Sequence[pa.Array],
        errors: Sequence[AnyError | None] = (),
        failed: Sequence[pa.Array] = (),
    ) -> Iterator[pa.RecordBatch]:
        """Rows of answers in batches of bounded size.

        Args:
            rows: for each row of the answers, the row of ``kept`` that goes with it.
            errors: of each row; or empty, if there are none.
            failed: the other columns of errors.
        """
        if not len(rows):
            return
        schema = self.arrow_schema
        texts = (self.set_version, tamis.__version__)
        versions = (pa.repeat(pa.scalar(text, pa.string()), len(rows)) for text in texts)
        columns = [*answers, *versions, *failed]
        if self.errors == "column":
            type = schema.field("error").type
            said = [error_row(error) for error in errors]
            columns.append(pa.array(said, type) if said else pa.nulls(len(rows), type))
        yield from kept.joined(rows, columns, schema)


# -- columns of a DataFrame ------------------------------------------------------------------------

A = TypeVar("A", bound=Artifact[Any])
S = TypeVar("S", bound=OutputSpec)


@dataclass(frozen=True)
class ColumnTask(Generic[A, S]):
    """The function that ``mapInArrow`` calls for each partition of a DataFrame.

    The input has the columns ``kept``, which each row of the output repeats, and then others.
    """

    program: A
    spec: S
    kept: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return combined(answers for batch in batches for answers in self.answers(batch))

    def answers(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The rows about one batch of the input."""
        raise NotImplementedError

    def applied(self, df: DataFrame, others: Sequence[str | Column]) -> DataFrame:
        """The answers to a DataFrame, of which the kept and these other columns are read."""
        fields = fields_of(df)
        schema = joined_schema([fields[name] for name in self.kept], self.spec.fields())
        self.program.send(df.sparkSession)
        # Columns are called by number, since mapInArrow() cannot deal with every name.
        read = [
            each if isinstance(each, Column) else of_name(each) for each in (*self.kept, *others)
        ]
        columns = [each.alias(str(number)) for number, each in enumerate(read)]
        # Without any column Spark would not tell how many rows there are.
        return df.select(columns or F.lit(True).alias("0")).mapInArrow(self, schema)


def of_name(name: str) -> Column:
    """The column of this name, which Spark takes apart at its dots unless it is quoted."""
    return F.col("`" + name.replace("`", "``") + "`")


def fields_of(df: DataFrame) -> dict[str, sql.StructField]:
    """The columns by name, which must differ."""
    fields = {field.name: field for field in df.schema}
    if len(fields) < len(df.schema):
        raise UsageError(f"several columns have the same name: {', '.join(df.columns)}")
    return fields


def check_columns(
    fields: Mapping[str, sql.StructField], read: Sequence[str], kept: Sequence[str]
) -> None:
    """Raise UsageError unless the columns are there, and none is kept twice."""
    for name in [*read, *kept]:
        if name not in fields:
            raise UsageError(f"there is no column {name!r}: the columns are {', '.join(fields)}")
    for number, name in enumerate(kept):
        if name in kept[:number]:
            raise UsageError(f"the column {name!r} is kept twice")


def kept_columns(df: DataFrame, column: str, keep: Sequence[str] | None) -> tuple[str, ...]:
    """The columns that rows repeat beside one of documents, by default all others."""
    fields = fields_of(df)
    kept = [name for name in fields if name != column] if keep is None else list(keep)
    check_columns(fields, [column], kept)
    if not isinstance(fields[column].dataType, sql.BinaryType | sql.StringType):
        kind = fields[column].dataType.simpleString()
        raise UsageError(f"the column {column!r} is of type {kind}, not string or binary")
    return tuple(kept)


def joined_schema(
    kept: Sequence[sql.StructField], own: Sequence[sql.StructField]
) -> sql.StructType:
    """The columns that are kept, and the result's own behind them, whose names must differ."""
    for field in kept:
        try:
            arrow_schema([field])
        except PySparkException:
            raise UsageError(
                f"the column {field.name!r} is of type {field.dataType.simpleString()}, which "
                "Arrow lacks: cast it to a string, or leave it out of what rows repeat (keep=)"
            ) from None
    in_lower_case = {field.name.lower() for field in kept}  # Spark does not tell cases apart
    for field in own:
        if field.name in in_lower_case:
            raise UsageError(
                f"the result has a column {field.name!r} of its own: rename the input's"
            )
    return sql.StructType([*kept, *own])


class PassthroughColumns:
    """Columns that rows repeat: a row for each document, or event, as ``what`` says."""

    def __init__(self, batch: pa.RecordBatch, what: str = "document") -> None:
        self.batch = batch
        self.what = what

    @classmethod
    def first_of(
        cls, batch: pa.RecordBatch, names: Sequence[str], what: str = "document"
    ) -> PassthroughColumns:
        """The first columns of a batch, under these names."""
        return cls(batch.select(range(len(names))).rename_columns(list(names)), what)

    def name(self, row: int) -> str:
        """What messages call a document: its name, or what is kept of it."""
        values = {name: self.batch[name][row].as_py() for name in self.batch.schema.names}
        if self.what == "document" and "document" in values:
            return str(values["document"])
        said = ", ".join(f"{name}={value!r:.80}" for name, value in values.items())
        article = "an" if self.what[0] in "aeiou" else "a"
        return f"the {self.what} with {said}" if said else f"{article} {self.what}"

    @cached_property
    def sizes(self) -> NDArray[np.float64]:
        """About how many bytes each row takes."""
        total = np.zeros(self.batch.num_rows)
        for column in self.batch.columns:
            if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
                total += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
            else:
                total += column.nbytes / max(1, len(column))
        return total

    def joined(
        self, rows: Int64, columns: Sequence[pa.Array], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """These rows with columns of answers beside them, in batches of bounded size."""
        own = sum(column.nbytes for column in columns) / len(rows)
        sums = np.cumsum(self.sizes[rows] + own)
        whole = pa.schema([*self.batch.schema, *schema])
        first = 0
        while first < len(rows):
            before = sums[first - 1] if first else 0
            within = int(np.searchsorted(sums, before + OUTPUT_BYTES, "right"))
            end = min(first + OUTPUT_ROWS, max(within, first + 1))
            taken = pa.array(rows[first:end])
            repeated = [column.take(taken) for column in self.batch.columns]
            answers = [
                column.slice(first, end - first).cast(field.type)
                for column, field in zip(columns, schema, strict=True)
            ]
            yield pa.RecordBatch.from_arrays([*repeated, *answers], schema=whole)
            first = end


def combined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches, each of which costs."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if waiting and (rows + batch.num_rows > OUTPUT_ROWS or size + batch.nbytes > OUTPUT_BYTES):
            yield concatenated(waiting)
            waiting.clear()
            rows = size = 0
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if waiting:
        yield concatenated(waiting)


def concatenated(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """All rows in one batch."""
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch


# -- columns of answers ----------------------------------------------------------------------------


@lru_cache(maxsize=PROGRAMS_KEPT)
def id_array(matcher: Any, id_type: str, name: str = "ids") -> pa.Array:
    """The ids of a matcher, in the attribute ``name``: made once for all tasks of a worker."""
    ids: Sequence[SubscriptionId] = getattr(matcher, name)
    if id_type == "bigint":
        return pa.array(np.fromiter(ids, np.int64, len(ids)))  # no list of all in each worker
    return pa.array((str(id) for id in ids), pa.string(), size=len(ids))


def with_errors(rows: Int64, numbers: Int32, wrong: Collection[int]) -> tuple[Int64, Int32]:
    """Pairs of a row and a subscription, with one more pair for each error, of number -1."""
    if not wrong:
        return rows, numbers
    rows = np.concatenate([rows, np.array([*wrong], np.int64)])
    numbers = np.concatenate([numbers, np.full(len(wrong), -1, np.int32)])
    order = np.argsort(rows, kind="stable")
    return rows[order], numbers[order]


def id_lists(
    spec: OutputSpec, rows: Int64, matching: Int64, ids: pa.Array, wrong: Collection[int]
) -> tuple[Int64, pa.Array]:
    """One row a document or event, with a list of ids: null where it is in error, if it is there.

    Args:
        rows: consecutive numbers.
        matching: for each of the ids its row, ascending.
        wrong: rows in error.
    """
    type = pa.list_(ids.type)
    starts = np.searchsorted(matching, np.append(rows, rows[-1] + 1))
    if not wrong:
        return rows, pa.ListArray.from_arrays(pa.array(starts, pa.int32()), ids, type)
    is_wrong = np.isin(rows, [*wrong])
    mask = pa.array(is_wrong)
    lists = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), ids, type, mask=mask)
    if spec.errors == "column":
        return rows, lists
    return rows[~is_wrong], lists.filter(pc.invert(mask))


def error_row(error: AnyError | None) -> dict[str, object] | None:
    """An error as a row of ``ERROR``; one without a place as its first two columns."""
    if error is None:
        return None
    message = str(error) if isinstance(error, MessageError) else error.message
    found: dict[str, object] = {"code": error.code, "message": printable(message)}
    if isinstance(error, DocumentError):
        found |= {"line": error.line, "column": error.column, "offset": error.offset}
    return found


def in_steps(matches: Matches[Any]) -> Iterator[tuple[int, int, tuple[Int64, Int32]]]:
    """Documents of a batch, as many at a time as have about so many rows.

    Yields:
        the numbers of the first one and of that behind the last one; and, for each match, the
        document's number and the subscription's, both ascending.
    """
    first = 0
    while first < matches.documents:
        starts, numbers = matches.lists(first, OUTPUT_ROWS)
        end = first + len(starts) - 1
        yield first, end, (np.repeat(np.arange(first, end), np.diff(starts)), numbers)
        first = end


def printable(text: str) -> str:
    r"""A text that Arrow can hold: file names may have bytes that are not UTF-8, which it cannot.

    >>> printable(b"caf\xe9.xml".decode(errors="surrogateescape"))
    'caf?.xml'
    """
    return text.encode(errors="replace").decode()
