"""Subscriptions matched against files, which the workers read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from tamis.core.errors import DocumentError, UnreadableDocument, UsageError
from tamis.core.index.matchset import Which
from tamis.documents.encodings import DeclaredEncoding
from tamis.documents.source import Document, read
from tamis.language.subscriptions import Unsupported
from tamis.spark.pieces import Piece, Reader
from tamis.spark.program import Program
from tamis.spark.rows import Errors, Form, Kept, Rows, gathered
from tamis.spark.subscriptions import SubscriptionSet, program

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def match_files(  # noqa: PLR0913 - what may be asked
    spark: SparkSession,
    paths: Paths,
    subscriptions: SubscriptionSet,
    *,
    record: str | None = None,
    as_array: bool = False,
    nodes: Which | None = None,
    values: bool = False,
    errors: Errors = "column",
    declared_encoding: DeclaredEncoding = "check",
    xml: bool = False,
    namespaces: Mapping[str, str] | None = None,
    default_namespace: str | None = None,
    unsupported: Unsupported = "refuse",
) -> DataFrame:
    """Match files; the result has one row for each match.

    Spark's tasks get paths, about equal in bytes. Its Python workers read, parse and match: XML
    does not enter the JVM. All of them, and the driver, must see the files under the same paths.
    Works through Spark Connect, where the driver is the server. Where the JVM does little else, let
    it not compile itself for speed, which takes the cores of short jobs, as ``tamis run`` does:
    ``spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1``, and so for executors.

    Args:
        spark: any session.
        paths: files, folders (their ``*.xml`` and ``*.xml.gz``) and patterns; archives (zip, tar,
            compressed tar), which stand for such members; and URIs of these in a file system of
            pyarrow's (``s3://…``, ``hdfs://…``). What is found twice is read once. They are listed
            each time that Spark plans to compute the result.
        subscriptions: whatever :func:`tamis.spark.program` takes, or what it makes.
        record: the tag of the elements that are records, each of which is answered by itself. Tasks
            share the records of a large file, if it is not compressed and in UTF-8.
        as_array, nodes, values, errors, declared_encoding: as for :func:`tamis.spark.match`.
        namespaces, default_namespace, unsupported: likewise.
        xml: give also the documents themselves; not with ``record``.

    Returns:
        ``document string``: the path, as it was given, or that of the folder or archive and the
        name in it; ``xml binary``, if that is asked for, decompressed; then ``record`` and all that
        :func:`tamis.spark.match` gives.

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: a path leads nowhere, or an argument is none of those above.
    """
    made = program(
        subscriptions,
        namespaces=namespaces,
        default_namespace=default_namespace,
        unsupported=unsupported,
    )
    Form.of(made, record, as_array, nodes, errors, values, declared_encoding)
    check_xml(xml, record)
    from tamis.spark.source import TamisSource  # noqa: PLC0415 - it needs this module

    spark.dataSource.register(TamisSource)
    made.send(spark)
    options = {
        "paths": json.dumps(path_list(paths)),
        "folder": os.getcwd(),
        "record": record,
        "as_array": as_array,
        "nodes": nodes,
        "values": values,
        "errors": errors,
        "declared_encoding": declared_encoding,
        "xml": xml,
    }
    given = {name: value for name, value in options.items() if value is not None}
    reader = spark.read.format(TamisSource.name()).options(**given)
    frames = (
        reader.options(program=json.dumps(part.as_options()), tells_errors=number == 0).load()
        for number, part in enumerate(made.shares)
    )
    try:  # Spark asks for the columns where it has the files
        found = reduce(lambda one, other: one.unionAll(other), frames)
        found.schema  # noqa: B018 - which Spark Connect puts off
    except AnalysisException as error:
        said = re.search(rf"{UsageError.__name__}: (.+)", str(error))
        raise UsageError(said[1]) if said else error from None
    return found


def path_list(paths: Paths) -> list[str]:
    """Paths, however they are given."""
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not several:
        raise UsageError("which files?")
    return [os.fspath(path) for path in several]


def check_xml(xml: bool, record: str | None) -> None:
    """See that the documents can be given.

    Raises:
        UsageError: they cannot.
    """
    if xml and record is not None:
        raise UsageError('the XML of records is not given: ask for their nodes="first" in it')


@dataclass(slots=True)
class Counts:
    """What a task met.

    Attributes:
        documents: how many there were; one whose records are shared counts for the task that has
            its first ones.
        unreadable: the numbers of files of which something could not be read.
        read: those of files of which something was, if they are more than one document or piece.
        left_out: messages that members of compressed archives are no documents by their names.
    """

    documents: int = 0
    unreadable: set[int] = field(default_factory=set)
    read: set[int] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)

    def note(self, piece: Piece, error: DocumentError | None) -> None:
        """Note what became of a document."""
        if isinstance(error, UnreadableDocument):
            self.unreadable.add(piece.file)
        elif piece.is_part:
            self.read.add(piece.file)


@dataclass(frozen=True, slots=True)
class AnswerPieces:
    """Answers what tasks read.

    Attributes:
        program: the subscriptions.
        form: what is wanted.
        xml: whether the documents are wanted too.
        tells_errors: see :class:`Rows`.
    """

    program: Program
    form: Form
    xml: bool = False
    tells_errors: bool = True

    def schema(self) -> StructType:
        """The columns of the rows."""
        xml = [StructField("xml", BinaryType())] if self.xml else []
        return StructType([StructField("document", StringType()), *xml, *self.form.fields()])

    def __call__(
        self, pieces: Iterable[Piece], counts: Counts | None = None
    ) -> Iterator[pa.RecordBatch]:
        rows = Rows(self.program.matcher(), self.form, self.tells_errors)
        reader = Reader(rows.matcher.limits, as_streams=self.form.record is not None)
        counts = counts or Counts()
        counts.left_out = reader.left_out
        if self.form.record is None:
            return gathered(self._of_documents(rows, reader, pieces, counts))
        return gathered(self._of_records(rows, reader, pieces, counts))

    def _of_documents(
        self, rows: Rows, reader: Reader, pieces: Iterable[Piece], counts: Counts
    ) -> Iterator[pa.RecordBatch]:
        names: list[str] = []  # of documents that were taken and are not answered
        taken: list[Piece] = []  # what they are of
        contents: list[bytes | None] = []

        def documents() -> Iterator[Document | DocumentError]:
            for piece in pieces:
                for name, document in reader.documents(piece):
                    names.append(name)
                    taken.append(piece)
                    counts.documents += 1
                    if not self.xml:
                        yield document
                        continue
                    source, content = _with_content(rows, document)
                    contents.append(content)
                    yield source

        nodes, values, declared = self.form.nodes, self.form.values, self.form.declared_encoding
        for found in rows.matcher.answers(documents(), 1, nodes, values, declared):
            count = found.matches.documents
            columns = {"document": pa.array(names[:count], pa.string())}
            if self.xml:
                columns["xml"] = pa.array(contents[:count], pa.binary())
            kept = Kept(pa.RecordBatch.from_pydict(columns), count)
            for number, piece in enumerate(taken[:count]):
                counts.note(piece, found.matches.errors.get(number))
            del names[:count], taken[:count], contents[:count]
            yield from rows.of(kept, found, np.arange(count), False)

    def _of_records(
        self, rows: Rows, reader: Reader, pieces: Iterable[Piece], counts: Counts
    ) -> Iterator[pa.RecordBatch]:
        record = self.form.record
        assert record is not None
        for piece in pieces:
            for name, document in reader.documents(piece):
                counts.documents += piece.part is None or not piece.part.start.offset
                kept = Kept(pa.RecordBatch.from_pydict({"document": [name]}), 1)
                answers = rows.matcher.record_answers(
                    document,
                    record,
                    nodes=self.form.nodes,
                    values=self.form.values,
                    declared=self.form.declared_encoding,
                    part=piece.part,
                )
                is_first = True
                for found in answers:
                    errors = found.matches.errors
                    is_all = is_first and found.matches.documents == 1
                    counts.note(piece, errors.get(0) if is_all else None)
                    is_first = False
                    same = np.zeros(found.matches.documents, np.int64)
                    yield from rows.of(kept, found, same, True)


def _with_content(
    rows: Rows, document: Document | DocumentError
) -> tuple[Document | DocumentError, bytes | None]:
    """A document that was read, and its bytes."""
    if isinstance(document, DocumentError):
        return document, None
    try:
        source = read(document, rows.matcher.limits, rows.form.declared_encoding)
    except DocumentError as error:
        return error, None
    return source, bytes(source.data)  # type: ignore[return-value]
