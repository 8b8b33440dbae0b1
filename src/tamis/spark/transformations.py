"""What subscriptions make of a column of XML: their messages."""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as sql

from tamis.core.errors import (
    BadSubscriptions,
    DocumentError,
    MessageError,
    SubscriptionId,
    UsageError,
)
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.documents.encodings import DeclaredEncoding, checked_declared_encoding
from tamis.language.flwr import read_transformations
from tamis.language.subscriptions import declared_namespaces
from tamis.spark.artifacts import Artifact, new_path
from tamis.spark.frames import column_values
from tamis.spark.program import frame_items, id_type, is_table, table_items
from tamis.spark.rows import (
    OUTPUT_BYTES,
    OUTPUT_ROWS,
    Errors,
    OutputSpec,
    PassthroughColumns,
    by_number,
    check_errors,
    combined,
    document_columns,
    error_row,
    joined_schema,
)
from tamis.transform.transformer import Given, Text, Transformer

log = logging.getLogger("tamis.spark")

TransformationSubscriptions = Given | DataFrame | str | os.PathLike[str]
"""What may be given as transforming subscriptions; a ``str`` or path names a file of them."""


def transform(  # noqa: PLR0913 - what may be asked
    df: DataFrame,
    subscriptions: TransformationSubscriptions,
    column: str = "xml",
    *,
    keep: Sequence[str] | None = None,
    errors: Errors = "column",
    declared_encoding: DeclaredEncoding = "check",
    namespaces: Mapping[str, str] | None = None,
    default_namespace: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> DataFrame:
    """Transform a column of XML; the result has one row for each message.

    A document that no subscription finds anything in has no row. One in error has a single row,
    without a subscription; so has a null. A message that cannot be made has its row, with the
    error. Works on batch and streaming DataFrames, and through Spark Connect; needs no more of
    Spark than the DataFrame, and computes nothing by itself.

    Spark hands the workers Arrow batches of at most so many documents as
    ``spark.sql.execution.arrow.maxRecordsPerBatch`` says: lower that where they are large.

    Args:
        df: has the documents, and whatever identifies them.
        subscriptions: one of

            * a mapping of ids to texts, as for :class:`tamis.Transformer`;
            * a path as for ``tamis transform``: a folder of ``ID.xq``, one such file, or
              ``*.ndjson`` with ``{"id": …, "query": "…"}`` a line; or a file of Parquet;
            * a DataFrame, which is collected: ``spark.table("subscriptions")``.

            DataFrames and Parquet have columns ``id`` (string or integer) and ``expression``.
        column: the column of XML, of type string or binary. A string that declares an encoding
            other than UTF-8 is an error, unless ``declared_encoding`` says otherwise.
        keep: the columns that each row repeats; by default all but ``column``.
        errors: a "column" tells them, or documents and messages in error are left out ("drop"), or
            the first one makes the job fail ("fail").
        declared_encoding: as for :func:`tamis.spark.match`.
        namespaces, default_namespace: as for :class:`tamis.Transformer`.
        limits: bounds on subscriptions, documents and messages.

    Returns:
        The kept columns, then:

        * ``subscription`` (long if all ids are integers, else string); null where the document is
          in error;
        * ``message string``: XML, null where there is an error;
        * ``set_version string``: a hash of the subscriptions; ``tamis_version string``;
        * ``error struct<code string, message string, line long, column long, offset long>``, with
          ``errors="column"``.

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: there is no such column, or it is of another type; or the subscriptions cannot
            be read.
    """
    check_errors(errors)
    if isinstance(keep, str):
        raise UsageError("keep is a list of names, not one name")
    kept = document_columns(df, column, keep)
    names = tuple(field.name for field in kept)
    read = _read(subscriptions, namespaces, default_namespace, limits)
    program = TransformationArtifact.of(read, limits)
    encoding = checked_declared_encoding(declared_encoding)
    spec = MessageSpec(id_type(read.transformations), program.set_version, errors, encoding)
    schema = joined_schema(kept, spec.fields())
    program.send(df.sparkSession)
    task = TransformColumn(program, spec, names, column)
    return df.select(by_number([*names, column])).mapInArrow(task, schema)


def _read(
    subscriptions: TransformationSubscriptions,
    namespaces: Mapping[str, str] | None,
    default_namespace: str | None,
    limits: Limits,
) -> Transformer:
    declared = declared_namespaces(namespaces, default_namespace)
    given: Mapping[SubscriptionId, Text]
    if isinstance(subscriptions, str | os.PathLike):
        path = Path(subscriptions)
        if path.suffix == ".parquet" and is_table(path):
            given = _unique(table_items(path))
        else:
            found = read_transformations([path], declared, limits)
            if found.refused:
                raise BadSubscriptions(tuple(refused.error for refused in found.refused))
            given = found.transformations
    # Not isinstance(): the DataFrames of Spark Connect are of a class of their own.
    elif hasattr(subscriptions, "toArrow"):
        given = _unique(frame_items(subscriptions))
    elif isinstance(subscriptions, Mapping):
        given = dict(subscriptions.items())
    else:
        raise UsageError(
            "subscriptions are a mapping of ids to transformations, a path or a DataFrame, not "
            f"{type(subscriptions).__name__}"
        )
    if not given:
        raise UsageError("there are no subscriptions")
    return Transformer(
        given, namespaces=namespaces, default_namespace=default_namespace, limits=limits
    )


def _unique(items: Sequence[tuple[SubscriptionId, str]]) -> dict[SubscriptionId, str]:
    found = dict(items)
    if len(found) < len(items):
        id = next(id for id, count in Counter(id for id, _ in items).items() if count > 1)
        raise UsageError(f"the table of subscriptions has the id {id!r} twice: ids must be unique")
    return found


@dataclass(frozen=True)
class MessageSpec(OutputSpec):
    """What is wanted of each document.

    Attributes:
        declared_encoding: whether the encodings that documents declare count.
    """

    declared_encoding: DeclaredEncoding = "check"

    def answer_columns(self) -> dict[str, sql.DataType]:
        """The id of the subscription, and its message."""
        return {"subscription": self.type_of_ids, "message": sql.StringType()}


@dataclass(frozen=True)
class TransformationArtifact(Artifact[Transformer]):
    """Transforming subscriptions in a file that workers read.

    Attributes:
        set_version: a hash of the subscriptions.
    """

    set_version: str = field(compare=False)

    suffix: ClassVar[str] = "transformations"

    @classmethod
    def of(cls, transformer: Transformer, limits: Limits) -> TransformationArtifact:
        """What workers need of subscriptions, in a file."""
        transformations = transformer.transformations
        version = hashlib.sha256()
        for id, transformation in transformations.items():
            version.update(f"{id!r} {transformation!r}\n".encode())
        data = pickle.dumps((transformations, limits))
        made = cls("", hashlib.sha256(data).hexdigest(), version.hexdigest()[:16])
        path = new_path()
        path.write_bytes(data)
        return replace(made, path=str(path.rename(path.with_name(made.name))))

    def load(self, path: Path) -> Transformer:
        """Read the file."""
        transformations, limits = pickle.loads(path.read_bytes())
        return Transformer(transformations, limits=limits)


@dataclass(frozen=True, slots=True)
class TransformColumn:
    """The function that ``mapInArrow`` calls for each partition of a DataFrame.

    The input has the columns that each row of the output repeats, and then one of XML.

    Attributes:
        program: the subscriptions.
        spec: what is wanted.
        kept: the names of the columns that are repeated.
        column: what messages call the column of XML.
    """

    program: TransformationArtifact
    spec: MessageSpec
    kept: tuple[str, ...]
    column: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return combined(self._answers(batches))

    def _answers(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = self.spec.arrow_schema()
        for batch in batches:
            kept = PassthroughColumns.first_of(batch, self.kept)
            waiting: list[_Row] = []
            size = 0
            for row in self._rows(kept, batch.columns[-1]):
                waiting.append(row)
                size += len(row.message or b"")
                if len(waiting) == OUTPUT_ROWS or size >= OUTPUT_BYTES:
                    yield from self._joined(kept, waiting, schema)
                    waiting, size = [], 0
            if waiting:
                yield from self._joined(kept, waiting, schema)

    def _rows(self, kept: PassthroughColumns, documents: pa.Array) -> Iterator[_Row]:
        encoding = self.spec.declared_encoding
        values = column_values(self.column, documents, encoding)
        transformer = self.program.loaded()
        found = transformer.transform_many(values, declared_encoding=encoding)
        for number, messages in enumerate(found):
            if messages.error is not None:
                yield from self._of_error(kept, _Row(number, None, None, messages.error))
                continue
            for message in messages:
                if message.error is None:
                    yield _Row(number, message.subscription, message.content, None)
                else:
                    row = _Row(number, message.subscription, None, message.error)
                    yield from self._of_error(kept, row)

    def _of_error(self, kept: PassthroughColumns, row: _Row) -> Iterator[_Row]:
        error, name = row.error, kept.name(row.document)
        if row.subscription is not None:
            name = f"{name}, subscription {row.subscription!r}"
        assert error is not None
        if self.spec.errors == "fail":
            said = f"{name}: {error}"
            raise type(error)(said)
        log.info("%s: %s", name, error)
        if self.spec.errors == "column":
            yield row

    def _joined(
        self, kept: PassthroughColumns, rows: Sequence[_Row], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        ids = [row.subscription for row in rows]
        if self.spec.id_type == "string":
            ids = [None if id is None else str(id) for id in ids]
        messages = pa.array([row.message for row in rows], pa.binary())
        columns = [pa.array(ids, schema.field("subscription").type), messages.cast(pa.string())]
        columns += self.spec.versions(len(rows))
        if self.spec.errors == "column":
            errors = [error_row(row.error) for row in rows]
            columns.append(pa.array(errors, schema.field("error").type))
        documents = np.array([row.document for row in rows], np.int64)
        yield from kept.joined(documents, columns, schema)


class _Row(NamedTuple):
    document: int
    subscription: SubscriptionId | None
    message: bytes | None
    error: DocumentError | MessageError | None
