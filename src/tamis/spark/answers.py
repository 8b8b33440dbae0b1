"""Answers to documents, in Spark's workers: matches become rows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as sql

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentError, LxmlEvaluationError, UnreadableDocument, UsageError
from tamis.core.index.matchset import Which, checked_nodes
from tamis.documents.encodings import DeclaredEncoding, checked_declared_encoding
from tamis.documents.records import check_tag
from tamis.documents.source import Document, read
from tamis.matching.batches import Answers
from tamis.matching.match import Match
from tamis.matching.matcher import CompiledMatcher
from tamis.matching.selection import Node
from tamis.spark.artifacts import PROGRAMS_KEPT
from tamis.spark.program import ProgramArtifact
from tamis.spark.rows import (
    ERROR,
    Errors,
    OutputSpec,
    PassthroughColumns,
    combined,
    error_column,
    id_array,
    id_lists,
    in_steps,
    printable,
    with_errors,
)
from tamis.spark.splits import InputSplit, SplitReader

log = logging.getLogger("tamis.spark")

T = TypeVar("T")
Failed = Mapping[int, LxmlEvaluationError]
"""By the numbers of subscriptions."""

FAILED = sql.MapType(sql.StringType(), sql.StringType())
"""The subscriptions that could not be answered, with the messages."""
_NODE = sql.StructType([sql.StructField(name, sql.LongType()) for name in Node._fields])


@dataclass(frozen=True)
class MatchSpec(OutputSpec):
    """What is wanted of each document.

    Attributes:
        record: the tag of the elements that are records, each of which is answered by itself.
        as_array: one row a document, with an array of ids, instead of one row a match.
        nodes: which of the nodes that were selected are told.
        values: whether the values of nodes are told too.
        declared_encoding: whether the encodings that documents declare count.
    """

    record: str | None = None
    as_array: bool = False
    nodes: Which | None = None
    values: bool = False
    declared_encoding: DeclaredEncoding = "check"

    @classmethod
    def of(
        cls,
        program: ProgramArtifact,
        errors: Errors = "column",
        record: str | None = None,
        **more: Any,
    ) -> MatchSpec:
        """What is wanted of the answers of a program, if it can be had.

        Args:
            more: the other attributes.
        """
        found = cls(program.id_type, program.set_version, errors, record, **more)
        if found.as_array and program.parts:
            raise UsageError(
                f"the program, of {program.size:,} bytes, is divided: one row a document needs all "
                "subscriptions in one task: allow more (bytes_max), or ask for one row a match"
            )
        checked_nodes(found.nodes, found.values)
        if record is not None:
            check_tag(record)
        checked_declared_encoding(found.declared_encoding)
        return found

    def answer_columns(self) -> dict[str, sql.DataType]:
        """The record's number, the ids, and the nodes if they are asked for."""
        id = self.type_of_ids
        value = [sql.StructField("value", sql.StringType())] if self.values else []
        nodes: sql.DataType = sql.ArrayType(sql.StructType([*_NODE, *value]))
        if self.as_array:
            id, nodes = sql.ArrayType(id), sql.ArrayType(nodes)
        found = {"record": sql.LongType(), "subscriptions" if self.as_array else "subscription": id}
        return found if self.nodes is None else {**found, "nodes": nodes}

    def error_columns(self) -> dict[str, sql.DataType]:
        """The subscriptions that failed, and the error."""
        return {"failed": FAILED, "error": ERROR}

    def options(self) -> dict[str, Any]:
        """The arguments of this name of ``CompiledMatcher.answers`` and ``record_answers``."""
        return {"nodes": self.nodes, "values": self.values, "declared": self.declared_encoding}


class MatchRows:
    """Makes rows of answers, and batches of rows.

    Args:
        matcher: what answers.
        spec: what is wanted.
        tells_errors: whether there are rows of them; of all tasks that read a document, one has.
    """

    def __init__(
        self, matcher: CompiledMatcher, spec: MatchSpec, tells_errors: bool = True
    ) -> None:
        self.matcher = matcher
        self.ids = _ids_of(matcher, spec.id_type)
        self.spec = spec
        self.tells_errors = tells_errors
        self.schema = spec.arrow_schema()

    def of(
        self, columns: PassthroughColumns, found: Answers, rows: Int64
    ) -> Iterator[pa.RecordBatch]:
        """The rows about some documents, or records if the specification has a tag of them.

        Args:
            columns: what rows repeat.
            rows: for each document its row there.
        """
        matches = found.matches
        firsts = found.offsets.first if self.spec.record is not None else None
        for first, end, pairs in in_steps(matches):
            documents, numbers = pairs
            errors = _within(matches.errors, first, end)
            failed = _within(matches.failed, first, end)
            self._report(columns, rows, errors, failed, firsts)
            if errors:  # what is true of a document without anything is not said of these
                is_right = ~np.isin(documents, list(errors))
                documents, numbers = documents[is_right], numbers[is_right]
                errors = errors if self.tells_errors else {}
            if self.spec.errors != "column":
                failed = {}
            block = _Block(first, end, documents, numbers, errors, failed, found)
            yield from self._batches(columns, rows, block, firsts)

    def _report(
        self,
        kept: PassthroughColumns,
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
            if self.spec.errors == "fail":
                said = f"{name}{subscription}: {error.message}"
                raise type(error)(said, error.line, error.column, error.offset)
            log.info("%s%s: %s", name, subscription, error)

    def _batches(
        self, kept: PassthroughColumns, rows: Int64, block: _Block, firsts: int | None
    ) -> Iterator[pa.RecordBatch]:
        is_shown = self.spec.errors == "column"
        documents, columns = self._arrays(block) if self.spec.as_array else self._flat(block)
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
        columns += [*self.spec.versions(len(documents)), failed]
        if is_shown:
            columns.append(error_column(self.schema, documents, block.errors))
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
        is_match = pc.and_(ids.is_valid(), not self.spec.as_array).to_pylist()
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
            documents, numbers = with_errors(documents, numbers, wrong)
        columns = [self.ids.take(pa.array(numbers, mask=numbers < 0))]
        if self.spec.nodes is not None:
            pairs = zip(documents.tolist(), numbers.tolist(), strict=True)
            nodes = [self._nodes(block, document, number) for document, number in pairs]
            columns.append(pa.array(nodes, self.schema.field("nodes").type))
        return documents, columns

    def _arrays(self, block: _Block) -> tuple[Int64, list[pa.Array]]:
        documents = np.arange(block.first, block.end)
        is_wrong = np.isin(documents, list(block.errors))
        type = self.schema.field("subscriptions").type
        values = self.ids.take(pa.array(block.numbers))
        columns = [id_lists(documents, block.documents, values, type, is_wrong)]
        if self.spec.nodes is not None:
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
        if self.spec.values:
            for node, value in zip(found, nodes.values(), strict=True):
                node["value"] = value
        return found


@lru_cache(maxsize=PROGRAMS_KEPT)
def _ids_of(matcher: CompiledMatcher, id_type: str) -> pa.Array:
    """The ids of all subscriptions, made once for all tasks of a worker."""
    return id_array(matcher.ids, id_type)


def _within(found: Mapping[int, T], first: int, end: int) -> dict[int, T]:
    """The items of the documents from ``first`` to ``end``."""
    return {number: value for number, value in found.items() if first <= number < end}


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


@dataclass(slots=True)
class Counts:
    """What a task met.

    Attributes:
        documents: how many there were. A document whose records are shared counts for the task that
            has the first ones.
        unreadable: the numbers of files of which something could not be read.
        read: the numbers of files of which something was read, if they are more than one document
            or split.
        left_out: messages that members of compressed archives are no documents by their names.
    """

    documents: int = 0
    unreadable: set[int] = field(default_factory=set)
    read: set[int] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)

    def add(self, split: InputSplit, error: DocumentError | None) -> None:
        """Count a document as read or unreadable."""
        if isinstance(error, UnreadableDocument):
            self.unreadable.add(split.file)
        elif split.is_part:
            self.read.add(split.file)


@dataclass(frozen=True, slots=True)
class AnswerSplits:
    """Answers what tasks read.

    Attributes:
        program: the subscriptions.
        spec: what is wanted.
        xml: whether the documents are wanted too.
        tells_errors: see :class:`MatchRows`.
    """

    program: ProgramArtifact
    spec: MatchSpec
    xml: bool = False
    tells_errors: bool = True

    def schema(self) -> sql.StructType:
        """The columns of the rows."""
        xml = [sql.StructField("xml", sql.BinaryType())] if self.xml else []
        document = sql.StructField("document", sql.StringType())
        return sql.StructType([document, *xml, *self.spec.fields()])

    def __call__(
        self, splits: Iterable[InputSplit], counts: Counts | None = None
    ) -> Iterator[pa.RecordBatch]:
        rows = MatchRows(self.program.loaded(), self.spec, self.tells_errors)
        reader = SplitReader(rows.matcher.limits, as_streams=self.spec.record is not None)
        counts = counts or Counts()
        counts.left_out = reader.left_out
        answers = self._of_documents if self.spec.record is None else self._of_records
        return combined(answers(rows, reader, splits, counts))

    def _of_documents(
        self, rows: MatchRows, reader: SplitReader, splits: Iterable[InputSplit], counts: Counts
    ) -> Iterator[pa.RecordBatch]:
        names: list[str] = []  # of documents that were taken and are not answered
        taken: list[InputSplit] = []  # what they are of
        contents: list[bytes | None] = []

        def documents() -> Iterator[Document | DocumentError]:
            for split in splits:
                for name, document in reader.documents(split):
                    names.append(name)
                    taken.append(split)
                    counts.documents += 1
                    if not self.xml:
                        yield document
                        continue
                    source, content = self._with_content(rows, document)
                    contents.append(content)
                    yield source

        for found in rows.matcher.answers(documents(), 1, **self.spec.options()):
            count = found.matches.documents
            columns = {"document": pa.array(names[:count], pa.string())}
            if self.xml:
                columns["xml"] = pa.array(contents[:count], pa.binary())
            kept = PassthroughColumns(pa.RecordBatch.from_pydict(columns), count)
            for number, split in enumerate(taken[:count]):
                counts.add(split, found.matches.errors.get(number))
            del names[:count], taken[:count], contents[:count]
            yield from rows.of(kept, found, np.arange(count))

    def _with_content(
        self, rows: MatchRows, document: Document | DocumentError
    ) -> tuple[Document | DocumentError, bytes | None]:
        if isinstance(document, DocumentError):
            return document, None
        try:
            source = read(document, rows.matcher.limits, self.spec.declared_encoding)
        except DocumentError as error:
            return error, None
        return source, bytes(source.data)  # type: ignore[return-value]

    def _of_records(
        self, rows: MatchRows, reader: SplitReader, splits: Iterable[InputSplit], counts: Counts
    ) -> Iterator[pa.RecordBatch]:
        record = self.spec.record
        assert record is not None
        for split in splits:
            for name, document in reader.documents(split):
                counts.documents += split.part is None or not split.part.start.offset
                kept = PassthroughColumns(pa.RecordBatch.from_pydict({"document": [name]}), 1)
                is_first = True
                for found in rows.matcher.record_answers(
                    document, record, part=split.part, **self.spec.options()
                ):
                    errors = found.matches.errors
                    is_all = is_first and found.matches.documents == 1
                    counts.add(split, errors.get(0) if is_all else None)
                    is_first = False
                    yield from rows.of(kept, found, np.zeros(found.matches.documents, np.int64))
