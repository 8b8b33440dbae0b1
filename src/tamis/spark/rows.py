"""Answers as rows: what the columns are, and how matches become Arrow batches of bounded size."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, TypeVar, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

import tamis
from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentError, MessageError, SlowLaneError, UsageError
from tamis.core.index.matchset import MatchSet, Which, checked_nodes
from tamis.documents.encodings import DeclaredEncoding, checked_declared_encoding
from tamis.documents.records import check_tag
from tamis.matching.matcher import Answers, CompiledMatcher, Match
from tamis.matching.selection import Node
from tamis.spark.program import PROGRAMS_KEPT, Program

log = logging.getLogger("tamis.spark")

# An output batch ends at one of these bounds, so that one document with very many matches, or a
# large kept column repeated for each of them, still goes out in pieces. (A single row that is
# larger goes out alone.)
OUTPUT_ROWS = 1 << 14
OUTPUT_BYTES = 16 << 20

T = TypeVar("T")
Failed = Mapping[int, SlowLaneError]
"""By the numbers of subscriptions."""
Errors = Literal["column", "drop", "fail"]
"""What becomes of documents in error: rows with a column of them, nothing, or the job fails."""

ERROR_FIELDS = {
    "code": StringType(),
    "message": StringType(),
    "line": LongType(),
    "column": LongType(),
    "offset": LongType(),
}
ERROR = StructType([StructField(name, type) for name, type in ERROR_FIELDS.items()])
FAILED = MapType(StringType(), StringType())
"""The subscriptions that could not be answered, with what is the matter."""
_NODE = StructType([StructField(name, LongType()) for name in Node._fields])


@dataclass(frozen=True)
class Form:
    """What is wanted of each document.

    Attributes:
        id_type: of the ids; see :class:`Program`.
        set_version: of the subscriptions.
        record: the tag of the elements that are records, each of which is answered by itself.
        as_array: one row a document, with an array of ids, instead of one row a match.
        nodes: which of the nodes that were selected are told.
        errors: what becomes of documents in error.
        values: whether the values of nodes are told too.
        declared_encoding: whether the encodings that documents declare count.
    """

    id_type: str
    set_version: str
    record: str | None = None
    as_array: bool = False
    nodes: Which | None = None
    errors: Errors = "column"
    values: bool = False
    declared_encoding: DeclaredEncoding = "check"

    @classmethod
    def of(
        cls,
        program: Program,
        record: str | None,
        as_array: bool,
        nodes: Which | None,
        errors: Errors,
        values: bool = False,
        declared_encoding: DeclaredEncoding = "check",
    ) -> Form:
        """What is wanted, if it can be.

        Raises:
            UsageError: it cannot.
        """
        if errors not in get_args(Errors):
            raise UsageError(f"errors={errors!r}: write 'column', 'drop' or 'fail'")
        if as_array and program.parts:
            raise UsageError(
                f"the program, of {program.size:,} bytes, is divided: one row a document needs all "
                "subscriptions in one task: allow more (bytes_max), or ask for one row a match"
            )
        checked_nodes(nodes, values)
        if record is not None:
            check_tag(record)
        encoding = checked_declared_encoding(declared_encoding)
        return cls(
            program.id_type, program.set_version, record, as_array, nodes, errors, values, encoding
        )

    def fields(self) -> list[StructField]:
        """The columns behind those that are kept."""
        id: DataType = LongType() if self.id_type == "bigint" else StringType()
        value = [StructField("value", StringType())] if self.values else []
        nodes: DataType = ArrayType(StructType([*_NODE, *value]))
        if self.as_array:
            id, nodes = ArrayType(id), ArrayType(nodes)
        found = [
            StructField("record", LongType()),
            StructField("subscriptions" if self.as_array else "subscription", id),
        ]
        if self.nodes is not None:
            found.append(StructField("nodes", nodes))
        found += [
            StructField("set_version", StringType()),
            StructField("tamis_version", StringType()),
        ]
        found.append(StructField("failed", FAILED))
        if self.errors == "column":
            found.append(StructField("error", ERROR))
        return found


class Rows:
    """Makes rows of answers, and batches of rows.

    Args:
        matcher: what answers.
        form: what is wanted.
        tells_errors: whether there are rows of them; of all tasks that read a document, one has.
    """

    def __init__(self, matcher: CompiledMatcher, form: Form, tells_errors: bool = True) -> None:
        self.matcher = matcher
        self.ids = _ids_of(matcher, form.id_type)
        self.form = form
        self.tells_errors = tells_errors
        self.schema = to_arrow_schema(StructType(form.fields()), timezone="UTC")

    def of(
        self, kept: Kept, found: Answers, rows: Int64, is_record: bool
    ) -> Iterator[pa.RecordBatch]:
        """The rows about some documents.

        Args:
            kept: what rows repeat.
            rows: for each document its row there.
            is_record: whether the documents are records.
        """
        matches = found.matches
        firsts = found.places.first if is_record else None
        for first, end, pairs in in_steps(matches):
            documents, numbers = pairs
            errors = _within(matches.errors, first, end)
            failed = _within(matches.failed, first, end)
            self._report(kept, rows, errors, failed, firsts)
            if errors:  # what is true of a document without anything is not said of these
                is_right = ~np.isin(documents, list(errors))
                documents, numbers = documents[is_right], numbers[is_right]
                errors = errors if self.tells_errors else {}
            if self.form.errors != "column":
                failed = {}
            block = _Block(first, end, documents, numbers, errors, failed, found)
            yield from self._batches(kept, rows, block, firsts)

    def _report(
        self,
        kept: Kept,
        rows: Int64,
        errors: Mapping[int, DocumentError],
        failed: Mapping[int, Failed],
        firsts: int | None,
    ) -> None:
        found = [(number, "", error) for number, error in errors.items()]
        found += [
            (number, f", subscription {self.ids[query].as_py()!r}", error)
            for number, of_document in failed.items()
            for query, error in of_document.items()
        ]
        for number, subscription, error in found:
            name = kept.name(int(rows[number]))
            if firsts is not None:
                name = f"{name}, record {firsts + number}"
            if self.form.errors == "fail":
                said = f"{name}{subscription}: {error.message}"
                raise type(error)(said, error.line, error.column, error.offset)
            log.info("%s%s: %s", name, subscription, error)

    def _batches(
        self, kept: Kept, rows: Int64, block: _Block, firsts: int | None
    ) -> Iterator[pa.RecordBatch]:
        is_shown = self.form.errors == "column"
        documents, columns = self._arrays(block) if self.form.as_array else self._flat(block)
        if not is_shown and block.errors:
            is_right = pa.array(~np.isin(documents, list(block.errors)))
            documents = documents[is_right.to_numpy(zero_copy_only=False)]
            columns = [column.filter(is_right) for column in columns]
        if not len(documents):
            return
        failed = self._failed(block, documents, columns[0])
        if firsts is None:
            columns.insert(0, pa.nulls(len(documents), pa.int64()))
        else:
            columns.insert(0, pa.array(documents + firsts, pa.int64()))
        columns += [
            pa.repeat(pa.scalar(said, pa.string()), len(documents))
            for said in (self.form.set_version, tamis.__version__)
        ]
        columns.append(failed)
        if is_shown:
            columns.append(_error_column(documents, block.errors))
        yield from kept.joined(rows[documents], columns, self.schema)

    def _failed(self, block: _Block, documents: Int64, ids: pa.Array) -> pa.Array:
        """The column of subscriptions that failed: told by the row of the document."""
        if not block.failed:
            return pa.nulls(len(documents), self.schema.field("failed").type)
        told = {
            number: [
                (str(self.ids[query].as_py()), printable(error.message))
                for query, error in failed.items()
            ]
            for number, failed in block.failed.items()
        }
        is_match = pc.and_(ids.is_valid(), not self.form.as_array).to_pylist()
        rows = zip(documents.tolist(), is_match, strict=True)
        found = [None if match else told.get(number) for number, match in rows]
        return pa.array(found, self.schema.field("failed").type)

    def _flat(self, block: _Block) -> tuple[Int64, list[pa.Array]]:
        """One row a match or an error: the document's number, and the columns of the match.

        A document of which subscriptions failed has one more row, as one in error has.
        """
        documents, numbers = block.documents, block.numbers
        if block.errors or block.failed:
            wrong = np.array([*block.errors, *block.failed], np.int64)
            documents = np.concatenate([documents, wrong])
            numbers = np.concatenate([numbers, np.full(len(wrong), -1, np.int32)])
            order = np.argsort(documents, kind="stable")
            documents, numbers = documents[order], numbers[order]
        columns = [self.ids.take(pa.array(numbers, mask=numbers < 0))]
        if self.form.nodes is not None:
            pairs = zip(documents.tolist(), numbers.tolist(), strict=True)
            nodes = [self._nodes(block, document, number) for document, number in pairs]
            columns.append(pa.array(nodes, self.schema.field("nodes").type))
        return documents, columns

    def _arrays(self, block: _Block) -> tuple[Int64, list[pa.Array]]:
        """One row a document."""
        documents = np.arange(block.first, block.end)
        starts = np.searchsorted(block.documents, np.arange(block.first, block.end + 1))
        offsets = pa.array(starts, pa.int32())
        is_wrong = np.isin(documents, list(block.errors))
        mask = pa.array(is_wrong) if block.errors else None
        type = self.schema.field("subscriptions").type
        values = self.ids.take(pa.array(block.numbers))
        columns = [pa.ListArray.from_arrays(offsets, values, type, mask=mask)]
        if self.form.nodes is not None:
            nodes: list[Any] = [
                None if is_wrong[row] else [] for row in range(block.end - block.first)
            ]
            pairs = zip(block.documents.tolist(), block.numbers.tolist(), strict=True)
            for document, number in pairs:
                nodes[document - block.first].append(self._nodes(block, document, number))
            columns.append(pa.array(nodes, self.schema.field("nodes").type))
        return documents, columns

    def _nodes(self, block: _Block, document: int, number: int) -> list[Any] | None:
        """The nodes that a subscription selects; None for that of an error."""
        if number < 0:
            return None
        match = block.match(self.matcher, document)
        (id,) = self.matcher.ids.take(np.array([number]))
        nodes = match.nodes(id)
        found = [node._asdict() for node in nodes]
        if self.form.values:
            for node, value in zip(found, nodes.values(), strict=True):
                node["value"] = value
        return found


@lru_cache(maxsize=PROGRAMS_KEPT)
def _ids_of(matcher: CompiledMatcher, id_type: str) -> pa.Array:
    """The ids of all subscriptions, in their order, made once for all tasks of a worker."""
    if id_type == "bigint":
        return pa.array(list(matcher.ids), pa.int64())
    return pa.array([str(id) for id in matcher.ids], pa.string())


def _within(found: Mapping[int, T], first: int, end: int) -> dict[int, T]:
    """The items of the documents from ``first`` to ``end``."""
    return {number: value for number, value in found.items() if first <= number < end}


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


class _Block(NamedTuple):
    """Some documents of a batch.

    Attributes:
        first, end: their numbers.
        documents, numbers: what matched; see ``MatchSet.pairs``.
        errors: by number.
        failed: the subscriptions that failed, by number.
        found: the whole batch.
    """

    first: int
    end: int
    documents: Int64
    numbers: Int32
    errors: dict[int, DocumentError]
    failed: dict[int, Failed]
    found: Answers

    def match(self, matcher: CompiledMatcher, document: int) -> Match:
        """What matched one of them."""
        matches, nodes, _ = self.found
        return Match(matcher.ids, matches, document, nodes=nodes)


class Kept:
    """Columns that rows repeat, and how documents are called.

    Args:
        batch: for each document a row.
        count: how many there are: a batch without columns does not know.
        what: they are, for messages: "document" or "event".
    """

    def __init__(self, batch: pa.RecordBatch, count: int, what: str = "document") -> None:
        self.batch = batch
        self.count = count
        self.what = what

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


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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


def _error_column(documents: Int64, errors: dict[int, DocumentError]) -> pa.Array:
    type = to_arrow_schema(StructType([StructField("error", ERROR)]), timezone="UTC")[0].type
    if not errors:
        return pa.nulls(len(documents), type)
    return pa.array([said(errors.get(document)) for document in documents.tolist()], type)


def said(error: DocumentError | MessageError | None) -> dict[str, object] | None:
    """An error as a row of ``ERROR``."""
    if error is None:
        return None
    if isinstance(error, MessageError):
        return {"code": error.code, "message": printable(str(error))}
    where = {"line": error.line, "column": error.column, "offset": error.offset}
    return {"code": error.code, "message": printable(error.message), **where}


def printable(text: str) -> str:
    r"""A text that Arrow can hold: file names may have bytes that are not UTF-8, which it cannot.

    >>> printable(b"caf\xe9.xml".decode(errors="surrogateescape"))
    'caf?.xml'
    """
    return text.encode(errors="replace").decode()
