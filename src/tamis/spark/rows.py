"""Rows of answers: their columns, and Arrow batches of bounded size.

What the answers about documents, events and messages have in common.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql import types as sql
from pyspark.sql.pandas.types import to_arrow_schema

import tamis
from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentError, EventError, MessageError, SubscriptionId, UsageError
from tamis.core.index.matchset import MatchSet

log = logging.getLogger("tamis.spark")

# An output batch ends at one of these bounds, so that one document with very many matches, or a
# large column repeated for each of them, still goes out in pieces. (A single row that is larger
# goes out alone.)
OUTPUT_ROWS = 1 << 14
OUTPUT_BYTES = 16 << 20

Errors = Literal["column", "drop", "fail"]
"""What becomes of documents in error: rows with a column of them, nothing, or the job fails."""

ERROR_FIELDS = {
    "code": sql.StringType(),
    "message": sql.StringType(),
    "line": sql.LongType(),
    "column": sql.LongType(),
    "offset": sql.LongType(),
}
ERROR = sql.StructType([sql.StructField(name, type) for name, type in ERROR_FIELDS.items()])
EVENT_ERROR = sql.StructType(ERROR.fields[:2])


@dataclass(frozen=True)
class OutputSpec:
    """What is wanted of each document or event.

    Attributes:
        id_type: of the ids: ``bigint`` or ``string``; see :class:`ProgramArtifact`.
        set_version: of the subscriptions.
        errors: what becomes of documents in error.
    """

    id_type: str
    set_version: str
    errors: Errors

    def __post_init__(self) -> None:
        check_errors(self.errors)

    def answer_columns(self) -> dict[str, sql.DataType]:
        """The columns of the answers, by name."""
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

    def arrow_schema(self) -> pa.Schema:
        """The same for Arrow."""
        return to_arrow_schema(sql.StructType(self.fields()), timezone="UTC")

    @property
    def type_of_ids(self) -> sql.DataType:
        """The type of a column of ids."""
        return sql.LongType() if self.id_type == "bigint" else sql.StringType()

    def versions(self, count: int) -> list[pa.Array]:
        """The columns of versions, of so many rows."""
        texts = (self.set_version, tamis.__version__)
        return [pa.repeat(pa.scalar(text, pa.string()), count) for text in texts]


def check_errors(errors: Errors) -> None:
    """Raise UsageError unless this says what becomes of errors."""
    if errors not in get_args(Errors):
        raise UsageError(f"errors={errors!r}: write 'column', 'drop' or 'fail'")


# -- columns of a DataFrame ------------------------------------------------------------------------


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


def document_columns(
    df: DataFrame, column: str, keep: Sequence[str] | None
) -> list[sql.StructField]:
    """The columns that rows repeat beside one of documents, by default all others."""
    fields = fields_of(df)
    kept = [name for name in fields if name != column] if keep is None else list(keep)
    check_columns(fields, [column], kept)
    if not isinstance(fields[column].dataType, sql.BinaryType | sql.StringType):
        kind = fields[column].dataType.simpleString()
        raise UsageError(f"the column {column!r} is of type {kind}, not string or binary")
    return [fields[name] for name in kept]


def joined_schema(
    kept: Sequence[sql.StructField], own: Sequence[sql.StructField]
) -> sql.StructType:
    """The columns that are kept, and the result's own behind them, whose names must differ."""
    in_lower_case = {field.name.lower() for field in kept}  # Spark does not tell cases apart
    for field in own:
        if field.name in in_lower_case:
            raise UsageError(
                f"the result has a column {field.name!r} of its own: rename the input's"
            )
    return sql.StructType([*kept, *own])


def by_number(names: Sequence[str]) -> list[Column]:
    """Columns that are called by number, since mapInArrow() itself cannot deal with every name."""
    # Spark takes a name apart at its dots unless it is quoted.
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    return [F.col(name).alias(str(number)) for number, name in enumerate(quoted)]


class PassthroughColumns:
    """Columns that rows repeat, and how messages name documents.

    Args:
        batch: for each document a row.
        count: of the documents, which a batch without columns does not know.
        what: "document" or "event".
    """

    def __init__(self, batch: pa.RecordBatch, count: int, what: str = "document") -> None:
        self.batch = batch
        self.count = count
        self.what = what

    @classmethod
    def first_of(
        cls, batch: pa.RecordBatch, names: Sequence[str], what: str = "document"
    ) -> PassthroughColumns:
        """The first columns of a batch, under these names."""
        columns = pa.RecordBatch.from_arrays(batch.columns[: len(names)], list(names))
        return cls(columns, batch.num_rows, what)

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
        total = np.zeros(self.count)
        for column in self.batch.columns:
            if pa.types.is_binary(column.type) or pa.types.is_string(column.type):
                total += pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
            else:
                total += column.nbytes / max(1, len(column))
        return total

    def joined(
        self, rows: Int64, columns: list[pa.Array], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Kept columns with others beside them, in batches of bounded size."""
        own = sum(column.nbytes for column in columns) / len(rows)
        sums = np.cumsum(self.sizes[rows] + own)
        whole = pa.schema([*self.batch.schema, *schema])
        first = 0
        while first < len(rows):
            before = sums[first - 1] if first else 0
            within = int(np.searchsorted(sums, before + OUTPUT_BYTES, "right"))
            end = min(first + OUTPUT_ROWS, max(within, first + 1))
            taken = pa.array(rows[first:end])
            yield pa.RecordBatch.from_arrays(
                [column.take(taken) for column in self.batch.columns]
                + [
                    column.slice(first, end - first).cast(field.type)
                    for column, field in zip(columns, schema, strict=True)
                ],
                schema=whole,
            )
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


def id_array(ids: Sequence[SubscriptionId], id_type: str) -> pa.Array:
    """Ids in their order, as a column has them."""
    if id_type == "bigint":
        return pa.array(list(ids), pa.int64())
    return pa.array([str(id) for id in ids], pa.string())


def with_errors(rows: Int64, numbers: Int32, wrong: Int64) -> tuple[Int64, Int32]:
    """Pairs of a row and a subscription, with one more pair for each error, of number -1."""
    if not len(wrong):
        return rows, numbers
    rows = np.concatenate([rows, wrong])
    numbers = np.concatenate([numbers, np.full(len(wrong), -1, np.int32)])
    order = np.argsort(rows, kind="stable")
    return rows[order], numbers[order]


def id_lists(
    rows: Int64, matching: Int64, ids: pa.Array, type: pa.DataType, is_wrong: NDArray[np.bool_]
) -> pa.Array:
    """A list of ids for each row, which is null where the row is in error.

    Args:
        rows: consecutive numbers.
        matching: for each of the ids its row, ascending.
    """
    starts = np.searchsorted(matching, np.append(rows, rows[-1] + 1))
    mask = pa.array(is_wrong) if is_wrong.any() else None
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), ids, type, mask=mask)


def error_column(
    schema: pa.Schema, rows: Int64, errors: Mapping[int, DocumentError] | Mapping[int, EventError]
) -> pa.Array:
    """The column of errors of some rows."""
    type = schema.field("error").type
    if not errors:
        return pa.nulls(len(rows), type)
    return pa.array([error_row(errors.get(row)) for row in rows.tolist()], type)


def error_row(error: DocumentError | EventError | MessageError | None) -> dict[str, object] | None:
    """An error as a row of ``ERROR`` or ``EVENT_ERROR``."""
    if error is None:
        return None
    if isinstance(error, DocumentError):
        where = {"line": error.line, "column": error.column, "offset": error.offset}
        return {"code": error.code, "message": printable(error.message), **where}
    message = error.message if isinstance(error, EventError) else str(error)
    return {"code": error.code, "message": printable(message)}


def in_steps(matches: MatchSet) -> Iterator[tuple[int, int, tuple[Int64, Int32]]]:
    """Documents of a batch, as many at a time as have about so many rows.

    Yields:
        the numbers of the first one and of that behind the last one; and ``MatchSet.pairs`` of
        these.
    """
    first, step = 0, 1
    while first < matches.documents:
        end = min(matches.documents, first + step)
        pairs = matches.pairs(first, end)
        yield first, end, pairs
        step = max(1, step // 2) if len(pairs[0]) > 4 * OUTPUT_ROWS else min(4096, 4 * step)
        first = end


def printable(text: str) -> str:
    r"""A text that Arrow can hold: file names may have bytes that are not UTF-8, which it cannot.

    >>> printable(b"caf\xe9.xml".decode(errors="surrogateescape"))
    'caf?.xml'
    """
    return text.encode(errors="replace").decode()
