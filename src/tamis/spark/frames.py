"""Subscriptions matched against a column of XML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from tamis.core.errors import DocumentEncodingError, DocumentError, UnreadableDocument, UsageError
from tamis.core.index.matchset import Which
from tamis.core.limits import Limits
from tamis.documents.column import DocumentColumn, runs
from tamis.documents.encodings import HEAD_BYTES, DeclaredEncoding, check_text
from tamis.documents.record_batch import OnBadRecord
from tamis.documents.source import Document
from tamis.language.subscriptions import Unsupported
from tamis.spark.answers import MatchRows, MatchSpec
from tamis.spark.program import ProgramArtifact, SubscriptionSet, program
from tamis.spark.rows import ColumnTask, Errors, PassthroughColumns, kept_columns


def match(  # noqa: PLR0913 - what may be asked
    df: DataFrame,
    subscriptions: SubscriptionSet,
    column: str = "xml",
    *,
    keep: Sequence[str] | None = None,
    record: str | None = None,
    as_array: bool = False,
    nodes: Which | None = None,
    values: bool = False,
    errors: Errors = "column",
    declared_encoding: DeclaredEncoding = "check",
    on_bad_record: OnBadRecord = "stop",
    namespaces: Mapping[str, str] | None = None,
    default_namespace: str | None = None,
    unsupported: Unsupported = "refuse",
) -> DataFrame:
    """Match a column of XML; the result has one row for each match.

    A document that matches nothing has no row. One in error has a single row, without a
    subscription; so has a null. Works on batch and streaming DataFrames, and through Spark Connect,
    and computes nothing by itself. Spark hands the workers Arrow batches of at most
    ``spark.sql.execution.arrow.maxRecordsPerBatch`` documents: lower that where they are large.

    Args:
        df: has the documents, and whatever identifies them.
        subscriptions: whatever :func:`tamis.spark.program` takes, or what it makes.
        column: the column of XML, of type string or binary. A string that declares an encoding
            other than UTF-8 (as ``nvarchar`` columns of databases do) is an error, unless
            ``declared_encoding`` says otherwise. Do not cast it to binary: that makes UTF-8 of it,
            which would be read as what it declares.
        keep: the columns that each row repeats; by default all but ``column``.
        record: the tag of the elements that are records, each of which is answered by itself; see
            :meth:`tamis.CompiledMatcher.match_records`.
        as_array: one row a document, or record, with an array of ids, which may be empty.
        nodes: tell also which nodes were selected, the "first" or "all".
        values: tell also the string values of these nodes, as XPath defines them.
        errors: a "column" tells them, or documents in error are left out ("drop"), or the first one
            makes the job fail ("fail"). The same is done with subscriptions that failed.
        declared_encoding: with "ignore", the encoding that a document declares is left out; see
            :meth:`tamis.CompiledMatcher.match`.
        on_bad_record: with "resume", a document that is not well-formed is read on from the next
            record; see :meth:`tamis.CompiledMatcher.match_records`.
        namespaces, default_namespace, unsupported: as for :class:`tamis.Subscriptions`, where one
            has to be made.

    Returns:
        The kept columns, then:

        * ``record long``: the record's number in its document; null without ``record``;
        * ``subscription`` (long if all ids are integers, else string); or ``subscriptions``, an
          array of them, null where the document is in error;
        * ``nodes array<struct<start long, end long, line long>>``, where they are asked for: byte
          ranges, see :meth:`tamis.Match.nodes`; with ``values``, a fourth field, ``value string``;
          with ``as_array``, an array of these, one for each subscription;
        * ``set_version string``: a hash of the subscriptions; ``tamis_version string``;
        * ``failed map<string, string>``: the subscriptions that could not be answered for a
          document whose others were, with the message; null where none failed. Without
          ``as_array``, a row of its own has it. Only subscriptions that go through lxml can fail;
        * ``error struct<code string, message string, line long, column long, offset long>``, with
          ``errors="column"``.

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: there is no such column, or it is of another type.
    """
    if not isinstance(column, str):
        raise UsageError(f"column is the name of one, not {type(column).__name__}")
    kept = kept_columns(df, column, keep)
    made = program(
        subscriptions,
        namespaces=namespaces,
        default_namespace=default_namespace,
        unsupported=unsupported,
    )
    wanted: dict[str, Any] = {"as_array": as_array, "nodes": nodes, "values": values}
    wanted |= {"declared_encoding": declared_encoding, "on_bad_record": on_bad_record}
    spec = MatchSpec.of(made, errors, record, **wanted)
    tasks = (
        AnswerColumn(part, spec, kept, column, reports_errors=number == 0)
        for number, part in enumerate(made.partitions)
    )
    return reduce(DataFrame.unionAll, (task.applied(df, [column]) for task in tasks))


@dataclass(frozen=True, slots=True)
class AnswerColumn(ColumnTask[ProgramArtifact, MatchSpec]):
    """Answers the last column, of XML; for ``reports_errors`` see ``MatchRows``."""

    column: str
    reports_errors: bool = True

    def answers(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        rows = MatchRows(self.program.loaded(), self.spec, self.reports_errors)
        record, options = self.spec.record, self.spec.options()
        kept = PassthroughColumns.first_of(batch, self.kept)
        documents = ColumnDocuments(self.column, batch.columns[-1], self.spec.declared_encoding)
        if record is not None:
            for row, document in enumerate(documents.each()):
                for found in rows.matcher.record_answers(document, record, **options):
                    yield from rows.of(kept, found, np.full(found.matches.documents, row))
            return
        first = 0
        for found in rows.matcher.answers(documents.together(rows.matcher.limits), **options):
            end = first + found.matches.documents
            yield from rows.of(kept, found, np.arange(first, end))
            first = end


class ColumnDocuments:
    """The documents of a column, in the memory that it has them in."""

    def __init__(self, name: str, column: pa.Array, declared: DeclaredEncoding) -> None:
        self.name = name
        self.declared = declared
        self.is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        wide = pa.large_binary()
        as_text = column.cast(pa.large_string() if self.is_text else wide)
        _, offsets, data = as_text.cast(wide).buffers()
        self.bounds = np.frombuffer(offsets, np.int64)[column.offset :][: len(column) + 1]
        self.content = memoryview(data if data is not None else b"")
        self.is_there = column.is_valid().to_numpy(zero_copy_only=False)

    def each(self) -> Iterator[Document | DocumentError]:
        """One after the other."""
        return map(self._document, range(len(self.is_there)))

    def together(self, limits: Limits) -> Iterator[Document | DocumentError | DocumentColumn]:
        """As many at a time as can be."""
        how: Any = {"is_text": self.is_text, "declared": self.declared}
        for found in runs(self.content, self.bounds, self.is_there, limits, **how):
            yield self._document(found) if isinstance(found, int) else found

    def _document(self, row: int) -> Document | DocumentError:
        if not self.is_there[row]:
            said = f"there is no document: the column {self.name!r} is null here"
            return UnreadableDocument(said)
        found = self.content[self.bounds[row] : self.bounds[row + 1]]
        return _text(found, self.declared) if self.is_text else found


def _text(data: memoryview, declared: DeclaredEncoding) -> Document | DocumentError:
    """A document that is text: what it declares has to be right, if that counts."""
    head = bytes(data[:HEAD_BYTES])
    if b"<" not in head or b"\0" in head:
        return str(data, "utf-8")  # which is looked at more closely
    try:
        check_text(head.decode(errors="ignore"), declared)
    except DocumentEncodingError as error:  # which says what to do with text that is no column
        said = error.message.replace("a str", "text", 1).rpartition(": ")[0]
        hint = 'read it as the text that it is, declared_encoding="ignore" (no cast to binary)'
        return replace(error, message=f"{said}: {hint}")
    except DocumentError as error:
        return error
    return data
