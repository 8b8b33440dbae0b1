"""Answers to documents, in Spark's workers: splits are read, and matches become rows."""

from __future__ import annotations

import io
import logging
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as sql

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentError, LxmlEvaluationError, UnreadableDocument, UsageError
from tamis.core.index.matchset import Which, checked_nodes
from tamis.core.limits import Limits
from tamis.documents.encodings import DeclaredEncoding, checked_declared_encoding
from tamis.documents.files import reason, tar_documents
from tamis.documents.record_batch import OnBadRecord, RecordTag, checked_on_bad_record
from tamis.documents.source import Document, Source, read
from tamis.matching.batches import Answers
from tamis.matching.match import Match
from tamis.matching.matcher import CompiledMatcher
from tamis.matching.selection import Node
from tamis.spark.filesystems import is_remote, opened
from tamis.spark.program import ProgramArtifact
from tamis.spark.rows import (
    ERROR,
    Errors,
    OutputSpec,
    PassthroughColumns,
    combined,
    id_array,
    id_lists,
    in_steps,
    printable,
    with_errors,
)
from tamis.spark.splits import NAMES, InputSplit

log = logging.getLogger("tamis.spark")

T = TypeVar("T")
Failed = Mapping[int, LxmlEvaluationError]
"""The errors of subscriptions, by their numbers."""

FAILED = sql.MapType(sql.StringType(), sql.StringType())
"""The subscriptions that could not be answered, with the messages."""
_NODE = sql.StructType([sql.StructField(name, sql.LongType()) for name in Node._fields])


@dataclass(frozen=True)
class MatchSpec(OutputSpec):
    """What is wanted of each document; for the fields see :func:`tamis.spark.match`."""

    record: str | None = None
    as_array: bool = False
    nodes: Which | None = None
    values: bool = False
    declared_encoding: DeclaredEncoding = "check"
    on_bad_record: OnBadRecord = "stop"

    @classmethod
    def of(
        cls,
        program: ProgramArtifact,
        errors: Errors = "column",
        record: str | None = None,
        **more: Any,
    ) -> MatchSpec:
        """What is wanted of the answers of a program, if it can be had; ``more`` are other fields.

        Raises:
            UsageError: it cannot be had.
        """
        found = cls(program.id_type, program.set_version, errors, record, **more)
        if found.as_array and program.parts:
            raise UsageError(
                f"the program, of {program.size:,} bytes, is divided: one row a document needs all "
                "subscriptions in one task: allow more (bytes_max), or ask for one row a match"
            )
        checked_nodes(found.nodes, found.values)
        if record is not None:
            RecordTag.of(record)
        checked_on_bad_record(found.on_bad_record)
        checked_declared_encoding(found.declared_encoding)
        return found

    def answer_columns(self) -> dict[str, sql.DataType]:
        id = self.type_of_ids
        value = [sql.StructField("value", sql.StringType())] if self.values else []
        nodes: sql.DataType = sql.ArrayType(sql.StructType([*_NODE, *value]))
        if self.as_array:
            id, nodes = sql.ArrayType(id), sql.ArrayType(nodes)
        found = {"record": sql.LongType(), "subscriptions" if self.as_array else "subscription": id}
        return found if self.nodes is None else {**found, "nodes": nodes}

    def error_columns(self) -> dict[str, sql.DataType]:
        return {"failed": FAILED, "error": ERROR}

    def options(self) -> dict[str, Any]:
        """The arguments of this name of ``CompiledMatcher.answers`` and ``record_answers``."""
        found = {"nodes": self.nodes, "values": self.values, "declared": self.declared_encoding}
        return found if self.record is None else {**found, "on_bad": self.on_bad_record}


class MatchRows:
    """Makes rows of answers.

    Several tasks may read a document, each for a part of the program. One ``reports_errors``: it
    writes the row of the document's error.
    """

    def __init__(
        self, matcher: CompiledMatcher, spec: MatchSpec, reports_errors: bool = True
    ) -> None:
        self.matcher = matcher
        self.ids = id_array(matcher, spec.id_type)
        self.spec = spec
        self.reports_errors = reports_errors
        self.schema = spec.arrow_schema

    def of(self, kept: PassthroughColumns, found: Answers, rows: Int64) -> Iterator[pa.RecordBatch]:
        """The rows about some documents, or records if the specification has a tag of them.

        Args:
            kept: what rows repeat.
            rows: for each document its row there.
        """
        spec, matches = self.spec, found.matches
        first_record = found.offsets.first if spec.record is not None else None
        for first, end, pairs in in_steps(matches):
            documents, numbers = pairs
            errors = _within(matches.errors, first, end)
            failed = _within(matches.failed, first, end)
            self._report(kept, rows, errors, failed, first_record)
            if errors:  # documents in error have no matches
                is_right = ~np.isin(documents, list(errors))
                documents, numbers = documents[is_right], numbers[is_right]
                errors = errors if self.reports_errors else {}
            if spec.errors != "column":
                failed = {}
            if spec.as_array:
                shown, answers = self._lists(
                    np.arange(first, end), documents, numbers, errors, found
                )
            else:
                wrong = [*errors, *failed] if spec.errors == "column" else []
                shown, answers = self._flat(*with_errors(documents, numbers, wrong), found)
            record = pa.nulls(len(shown), pa.int64())
            if first_record is not None:
                record = pa.array(shown + first_record, pa.int64())
            of_rows = [errors.get(document) for document in shown.tolist()] if errors else []
            failures = [self._failed(shown, answers[0], failed)]
            yield from spec.batches(kept, rows[shown], [record, *answers], of_rows, failures)

    def _report(
        self,
        kept: PassthroughColumns,
        rows: Int64,
        errors: Mapping[int, DocumentError],
        failed: Mapping[int, Failed],
        first_record: int | None,
    ) -> None:
        found = [(number, "", error) for number, error in errors.items()]
        found += [
            (number, f", subscription {self.ids[query].as_py()!r}", error)
            for number, of_document in failed.items()
            for query, error in of_document.items()
        ]
        for number, subscription, error in found:
            name = kept.name(int(rows[number]))
            if first_record is not None:
                name = f"{name}, record {first_record + number}"
            if self.spec.errors == "fail":
                raise replace(error, message=f"{name}{subscription}: {error.message}")
            log.info("%s%s: %s", name, subscription, error)

    def _flat(
        self, documents: Int64, numbers: Int32, found: Answers
    ) -> tuple[Int64, list[pa.Array]]:
        """One row a match or an error: the document's number, and the columns of the match."""
        columns = [self.ids.take(pa.array(numbers, mask=numbers < 0))]
        if self.spec.nodes is not None:
            pairs = zip(documents.tolist(), numbers.tolist(), strict=True)
            nodes = [None if pair[1] < 0 else self._nodes(found, *pair) for pair in pairs]
            columns.append(pa.array(nodes, self.schema.field("nodes").type))
        return documents, columns

    def _lists(
        self,
        rows: Int64,
        documents: Int64,
        numbers: Int32,
        errors: Mapping[int, DocumentError],
        found: Answers,
    ) -> tuple[Int64, list[pa.Array]]:
        """One row a document: its number, and the columns of lists."""
        shown, lists = id_lists(
            self.spec, rows, documents, self.ids.take(pa.array(numbers)), errors
        )
        if self.spec.nodes is None:
            return shown, [lists]
        nodes: dict[int, list[Any]] = {row: [] for row in shown.tolist()}
        for document, number in zip(documents.tolist(), numbers.tolist(), strict=True):
            nodes[document].append(self._nodes(found, document, number))
        of_rows = [None if row in errors else of_row for row, of_row in nodes.items()]
        return shown, [lists, pa.array(of_rows, self.schema.field("nodes").type)]

    def _nodes(self, found: Answers, document: int, number: int) -> list[Any]:
        match = Match(found.matches, document, nodes=found.nodes)
        nodes = match.nodes(self.matcher.subscriptions.ids[number])
        rows = [node._asdict() for node in nodes]
        if self.spec.values:
            for row, value in zip(rows, nodes.values(), strict=True):
                row["value"] = value
        return rows

    def _failed(self, documents: Int64, ids: pa.Array, failed: Mapping[int, Failed]) -> pa.Array:
        """The column of subscriptions that failed, filled in the row of the document."""
        type = self.schema.field("failed").type
        if not failed:
            return pa.nulls(len(documents), type)
        messages = {
            number: [
                (str(self.ids[query].as_py()), printable(error.message))
                for query, error in of_document.items()
            ]
            for number, of_document in failed.items()
        }
        is_match = pc.and_(ids.is_valid(), not self.spec.as_array).to_pylist()
        rows = zip(documents.tolist(), is_match, strict=True)
        return pa.array([None if match else messages.get(number) for number, match in rows], type)


def _within(found: Mapping[int, T], first: int, end: int) -> dict[int, T]:
    return {number: value for number, value in found.items() if first <= number < end}


# -- files -----------------------------------------------------------------------------------------


class SplitReader:
    """Reads splits, one after the other.

    With ``as_streams``, documents may be of any size, and each is read before the next is asked
    for. ``left_out`` has messages that members of compressed archives are no documents by their
    names.
    """

    def __init__(self, limits: Limits, as_streams: bool) -> None:
        self.bytes_max = None if as_streams else limits.document_bytes + 1
        self.left_out: list[str] = []
        self._archive: tuple[str, zipfile.ZipFile] | None = None

    def documents(self, split: InputSplit) -> Iterator[tuple[str, Document | DocumentError]]:
        """The documents of a split, with their names; what cannot be read, as its error."""
        if split.problem is not None:
            yield split.name, UnreadableDocument(split.problem)
        elif split.kind == "stream":
            yield from self._members(split)
        elif split.kind == "file" and split.part is None and not is_remote(split.path):
            yield split.name, Path(split.path)
        else:
            try:
                with self._content(split) as content:
                    yield split.name, self._document(content)
            except Exception as error:  # whatever file systems and decompressors raise
                yield split.name, UnreadableDocument(f"cannot read it: {reason(error)}")

    def _document(self, content: IO[bytes]) -> Document:
        """A document, of which there are not many more bytes than the limit."""
        return content if self.bytes_max is None else bytes(content.read(self.bytes_max))

    @contextmanager
    def _content(self, split: InputSplit) -> Iterator[IO[bytes]]:
        if split.kind == "zip":
            archive = self._opened_archive(split.path)
            info = archive.infolist()[split.at]
            if not split.name.endswith(f"/{printable(info.filename)}"):
                raise zipfile.BadZipFile("the archive was changed since it was listed")
            with archive.open(info) as member:
                yield member
            return
        start, size = split.at, split.size if split.kind == "tar" else None
        if split.part is not None:
            start = split.part.start.offset
            size = None if split.part.end is None else split.part.end - start
        with opened(split.path) as file:
            file.seek(start)
            yield file if size is None else io.BufferedReader(_FileRange(file, size))

    def _members(self, split: InputSplit) -> Iterator[tuple[str, Document | DocumentError]]:
        """The documents of a compressed tar, up to where it cannot be read any further."""
        left_out: list[str] = []
        try:
            with opened(split.path) as file:
                for name, member in tar_documents(file, NAMES, left_out):
                    whole = f"{split.name}/{printable(name)}" if name else split.name
                    if isinstance(member, DocumentError):
                        yield whole, member
                    else:
                        yield whole, self._document(member)
        except Exception as error:  # whatever file systems and decompressors raise
            yield split.name, UnreadableDocument(f"cannot read the archive: {reason(error)}")
        if left_out:
            self.left_out.append(NAMES.left_out(split.name, left_out))

    def _opened_archive(self, path: str) -> zipfile.ZipFile:
        if self._archive is None or self._archive[0] != path:
            file = opened(path) if is_remote(path) else path
            self._archive = path, zipfile.ZipFile(file)
        return self._archive[1]


class _FileRange(io.RawIOBase):
    """Some bytes of a file, from where it is."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)


@dataclass(slots=True)
class Counts:
    """What a task read.

    Attributes:
        documents: how many there were. A document whose records are shared counts for the task that
            has the first ones.
        records: how many there were, those in error included.
        unreadable: the numbers of files of which something could not be read.
        read: the numbers of files of which something was read, if they are more than one document
            or split.
        left_out: messages that members of compressed archives are no documents by their names.
    """

    documents: int = 0
    records: int = 0
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
    """Answers what tasks read; with ``xml``, the rows have the documents too.

    For ``reports_errors`` see :class:`MatchRows`.
    """

    program: ProgramArtifact
    spec: MatchSpec
    xml: bool = False
    reports_errors: bool = True

    def schema(self) -> sql.StructType:
        xml = [sql.StructField("xml", sql.BinaryType())] if self.xml else []
        document = sql.StructField("document", sql.StringType())
        return sql.StructType([document, *xml, *self.spec.fields()])

    def __call__(
        self, splits: Iterable[InputSplit], counts: Counts | None = None
    ) -> Iterator[pa.RecordBatch]:
        rows = MatchRows(self.program.loaded(), self.spec, self.reports_errors)
        reader = SplitReader(rows.matcher.limits, as_streams=self.spec.record is not None)
        counts = counts or Counts()
        counts.left_out = reader.left_out
        answers = self._of_documents if self.spec.record is None else self._of_records
        return combined(answers(rows, reader, splits, counts))

    def _of_documents(
        self, rows: MatchRows, reader: SplitReader, splits: Iterable[InputSplit], counts: Counts
    ) -> Iterator[pa.RecordBatch]:
        taken: deque[tuple[str, bytes | None, InputSplit]] = deque()  # and not answered yet

        def documents() -> Iterator[Any]:
            for split in splits:
                for name, document in reader.documents(split):
                    counts.documents += 1
                    source, content = self._read(rows, document) if self.xml else (document, None)
                    taken.append((name, content, split))
                    yield source

        for found in rows.matcher.answers(documents(), 1, **self.spec.options()):
            count = found.matches.documents
            done = [taken.popleft() for _ in range(count)]
            for number, (_, _, split) in enumerate(done):
                counts.add(split, found.matches.errors.get(number))
            columns = {"document": pa.array([name for name, _, _ in done], pa.string())}
            if self.xml:
                columns["xml"] = pa.array([content for _, content, _ in done], pa.binary())
            kept = PassthroughColumns(pa.RecordBatch.from_pydict(columns))
            yield from rows.of(kept, found, np.arange(count))

    def _read(
        self, rows: MatchRows, document: Document | DocumentError
    ) -> tuple[Source | DocumentError, bytes | None]:
        """A document that is read before it is matched, and its content."""
        try:
            if isinstance(document, DocumentError):
                raise document
            source = read(document, rows.matcher.limits, self.spec.declared_encoding)
        except DocumentError as error:
            return error, None
        return source, bytes(source.data)

    def _of_records(
        self, rows: MatchRows, reader: SplitReader, splits: Iterable[InputSplit], counts: Counts
    ) -> Iterator[pa.RecordBatch]:
        record = self.spec.record
        assert record is not None
        for split in splits:
            for name, document in reader.documents(split):
                counts.documents += split.part is None or not split.part.start.offset
                kept = PassthroughColumns(pa.RecordBatch.from_pydict({"document": [name]}))
                is_first = True
                for found in rows.matcher.record_answers(
                    document, record, part=split.part, **self.spec.options()
                ):
                    count = found.matches.documents
                    counts.records += count
                    is_all = is_first and count == 1
                    counts.add(split, found.matches.errors.get(0) if is_all else None)
                    is_first = False
                    yield from rows.of(kept, found, np.zeros(count, np.int64))
