"""What runs inside Spark's Python workers: batches of documents in, batches of answers out."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from tamis.documents.batch import Int32
from tamis.documents.source import Document
from tamis.errors import DocumentError, SubscriptionId, UnreadableDocument
from tamis.matching.matcher import CompiledMatcher

# An output batch ends at one of these bounds, so that one document with very many matches, or a
# large kept column repeated for each of them, still goes out in pieces. (A single row that is
# larger goes out alone.)
OUTPUT_ROWS = 1 << 14
OUTPUT_BYTES = 16 << 20

# How many matchers a worker keeps. One job has one; a few may take turns in one application.
MATCHERS_KEPT = 4

ERROR_TYPE = pa.struct(
    [("code", pa.string()), ("message", pa.string()), ("line", pa.int32()), ("column", pa.int32())]
)


@dataclass(frozen=True, slots=True)
class ShippedMatcher:
    """A matcher on its way to the workers, equal to any other with the same content.

    Attributes:
        digest: of the content; the only thing that is compared.
        pickled: the :class:`CompiledMatcher`, which is compiled again where it is loaded.
    """

    digest: str
    pickled: bytes = field(compare=False, repr=False)

    @classmethod
    def of(cls, matcher: CompiledMatcher) -> ShippedMatcher:
        """Pack a matcher."""
        pickled = pickle.dumps(matcher)
        return cls(hashlib.sha256(pickled).hexdigest(), pickled)


@lru_cache(maxsize=MATCHERS_KEPT)
def unpacked(shipped: ShippedMatcher) -> CompiledMatcher:
    """The matcher, compiled once in a worker process and then kept from task to task."""
    matcher: CompiledMatcher = pickle.loads(shipped.pickled)
    return matcher


def id_type(ids: Iterable[SubscriptionId]) -> pa.DataType:
    """The type of a column of ids: 64-bit integers if all are such, else strings.

    >>> id_type([1, 2]), id_type([1, "a"]), id_type([2**63]), id_type([])
    (DataType(int64), DataType(string), DataType(string), DataType(string))
    """
    found = list(ids)
    whole = found and all(isinstance(id, int) and -(2**63) <= id < 2**63 for id in found)
    return pa.int64() if whole else pa.string()


@dataclass(frozen=True, slots=True)
class AnswerTask:
    """The function that ``mapInArrow`` calls for each partition; small but for its matcher.

    The input has the columns that each row of the output repeats, and then the documents: a column
    of XML, or of paths (as bytes) and one of what the driver found wrong with them, or null.

    Attributes:
        shipped: the subscriptions.
        ids: the type of the output column ``subscription``.
        kept: the names of the columns that are repeated.
        column: what messages call the column of XML.
        folder: the folder that relative paths start from, or None where the documents are XML.
    """

    shipped: ShippedMatcher
    ids: pa.DataType
    kept: tuple[str, ...]
    column: str = ""
    folder: str | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = unpacked(self.shipped)
        ids = pa.array(
            list(matcher.ids) if self.ids == pa.int64() else [str(id) for id in matcher.ids],
            self.ids,
        )
        for batch in batches:
            kept, documents = batch.columns[: len(self.kept)], batch.columns[len(self.kept) :]
            yield from answers(
                matcher,
                ids,
                pa.RecordBatch.from_arrays(kept, list(self.kept)),
                _values(self.column, *documents)
                if self.folder is None
                else _files(self.folder, *documents),
            )


def _files(folder: str, paths: pa.Array, problems: pa.Array) -> Iterator[Document | DocumentError]:
    for path, problem in zip(paths, problems, strict=True):
        if problem.is_valid:
            yield UnreadableDocument(problem.as_py())
        else:
            yield Path(folder, os.fsdecode(path.as_py()))


def _values(name: str, column: pa.Array) -> Iterator[Document | DocumentError]:
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    for value in column:
        if not value.is_valid:
            yield UnreadableDocument(f"there is no document: the column {name!r} is null here")
        else:
            yield value.as_py() if is_text else memoryview(value.as_buffer())


def answers(
    matcher: CompiledMatcher,
    ids: pa.Array,
    kept: pa.RecordBatch,
    documents: Iterable[Document | DocumentError],
) -> Iterator[pa.RecordBatch]:
    """The rows about the documents of one input batch, in batches of bounded size.

    Args:
        ids: the ids of the subscriptions, in order.
        kept: for each document the columns that its rows repeat.
        documents: the documents, or an error where there is none.

    >>> import tamis
    >>> matcher = tamis.compile({"x": "//a"})
    >>> kept = pa.RecordBatch.from_pydict({"n": [1, 2, 3]})
    >>> (batch,) = answers(matcher, pa.array(["x"]), kept, [b"<a/>", b"<b/>", b"<a>"])
    >>> batch.select(["n", "subscription"]).to_pylist()
    [{'n': 1, 'subscription': 'x'}, {'n': 3, 'subscription': None}]
    >>> batch["error"][1]["message"].as_py()
    'the document ends inside <a>: no element found'
    """
    rows = RowBuilder(kept, ids)
    for row, match in enumerate(matcher.match_many(documents)):
        if match.error is not None:
            yield from rows.add_error(row, match.error)
        else:
            yield from rows.add(row, match.indices)
    yield from rows.flush()


class RowBuilder:
    """Collects answers, and yields a batch whenever the next answer would make it too large."""

    def __init__(self, kept: pa.RecordBatch, ids: pa.Array) -> None:
        self.kept = kept
        self.ids = ids
        self.id_bytes = ids.nbytes // max(1, len(ids)) + 1
        self.schema = pa.schema(
            [*kept.schema, pa.field("subscription", ids.type), pa.field("error", ERROR_TYPE)]
        )
        self.clear()

    def clear(self) -> None:
        self.count = 0
        self.bytes = 0
        self.rows: list[tuple[int, int]] = []  # (row of the input, how many rows it makes)
        self.numbers: list[Int32] = []
        self.errors: dict[int, DocumentError] = {}  # by the row of the output

    def add(self, row: int, numbers: Int32) -> Iterator[pa.RecordBatch]:
        """Add the numbers of the subscriptions that matched."""
        if len(numbers) == 0:
            return
        row_bytes = self.kept.slice(row, 1).nbytes + self.id_bytes
        step = min(OUTPUT_ROWS, max(1, OUTPUT_BYTES // row_bytes))
        for start in range(0, len(numbers), step):
            part = numbers[start : start + step]
            yield from self.reserve(len(part), len(part) * row_bytes)
            self.rows.append((row, len(part)))
            self.numbers.append(part)

    def add_error(self, row: int, error: DocumentError) -> Iterator[pa.RecordBatch]:
        """Add a document that could not be answered."""
        yield from self.reserve(1, self.kept.slice(row, 1).nbytes + len(error.message))
        self.errors[self.count - 1] = error
        self.rows.append((row, 1))
        self.numbers.append(_NO_SUBSCRIPTION)

    def reserve(self, count: int, size: int) -> Iterator[pa.RecordBatch]:
        if self.count + count > OUTPUT_ROWS or self.bytes + size > OUTPUT_BYTES:
            yield from self.flush()
        self.count += count
        self.bytes += size

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yield what was collected since the last batch, if anything."""
        if not self.rows:
            return
        rows = np.repeat(*np.array(self.rows, dtype=np.int64).T)
        numbers = np.concatenate(self.numbers)
        yield pa.RecordBatch.from_arrays(
            [
                *(column.take(pa.array(rows)) for column in self.kept.columns),
                self.ids.take(pa.array(numbers, mask=numbers < 0)),
                self.error_column(),
            ],
            schema=self.schema,
        )
        self.clear()

    def error_column(self) -> pa.Array:
        if not self.errors:
            return pa.nulls(self.count, ERROR_TYPE)
        values: list[dict[str, object] | None] = [None] * self.count
        for row, error in self.errors.items():
            values[row] = {
                "code": error.code,
                "message": printable(error.message),
                "line": error.line,
                "column": error.column,
            }
        return pa.array(values, ERROR_TYPE)


_NO_SUBSCRIPTION = np.array([-1], dtype=np.int32)


def printable(text: str) -> str:
    r"""A text that Arrow can hold: file names may have bytes that are not UTF-8, which it cannot.

    >>> printable(os.fsdecode(b"caf\xe9.xml"))
    'caf?.xml'
    """
    return text.encode(errors="replace").decode()
