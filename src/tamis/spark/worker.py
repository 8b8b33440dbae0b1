"""What runs in Spark's Python workers: batches of documents in, batches of answers out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tamis.documents.encodings import HEAD_BYTES, check_text
from tamis.documents.source import Document
from tamis.errors import DocumentError, UnreadableDocument
from tamis.spark.program import Program
from tamis.spark.rows import Form, Kept, Rows, gathered


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """The function that ``mapInArrow`` calls for each partition of a DataFrame.

    The input has the columns that each row of the output repeats, and then one of XML.

    Attributes:
        program: the subscriptions.
        form: what is wanted.
        kept: the names of the columns that are repeated.
        column: what messages call the column of XML.
        tells_errors: see :class:`Rows`.
    """

    program: Program
    form: Form
    kept: tuple[str, ...]
    column: str
    tells_errors: bool = True

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return gathered(self._answers(batches))

    def _answers(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = Rows(self.program.matcher(), self.form, self.tells_errors)
        for batch in batches:
            repeated = pa.RecordBatch.from_arrays(batch.columns[:-1], list(self.kept))
            kept = Kept(repeated, batch.num_rows)
            documents = _values(self.column, batch.columns[-1])
            if self.form.record is None:
                first = 0
                for found in rows.matcher.answers(documents, nodes=self.form.nodes):
                    end = first + found.matches.documents
                    yield from rows.of(kept, found, np.arange(first, end), False)
                    first = end
                continue
            for row, document in enumerate(documents):
                tag, nodes = self.form.record, self.form.nodes
                for found in rows.matcher.record_answers(document, tag, nodes=nodes):
                    same = np.full(found.matches.documents, row)
                    yield from rows.of(kept, found, same, True)


def _values(name: str, column: pa.Array) -> Iterator[Document | DocumentError]:
    """The documents of a column, in the memory that it has them in."""
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    wide = pa.large_binary()
    _, offsets, data = column.cast(pa.large_string() if is_text else wide).cast(wide).buffers()
    bounds = np.frombuffer(offsets, np.int64)[column.offset :][: len(column) + 1].tolist()
    content = memoryview(data if data is not None else b"")
    is_there = column.is_valid().to_pylist()
    for row, (start, end) in enumerate(pairwise(bounds)):
        if not is_there[row]:
            yield UnreadableDocument(f"there is no document: the column {name!r} is null here")
        elif is_text:
            yield _text(content[start:end])
        else:
            yield content[start:end]


def _text(data: memoryview) -> Document | DocumentError:
    """A document that is text: what it declares has to be so."""
    head = bytes(data[:HEAD_BYTES])
    if b"<" not in head or b"\0" in head:
        return str(data, "utf-8")  # which is looked at more closely
    try:
        check_text(head.decode(errors="ignore"))
    except DocumentError as error:
        return error
    return data
