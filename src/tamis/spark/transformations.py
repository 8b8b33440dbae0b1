"""What subscriptions make of a column of XML: their messages."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as sql

from tamis.core.arguments import is_store
from tamis.core.errors import (
    BadSubscriptions,
    DocumentError,
    MessageError,
    SubscriptionId,
    UsageError,
)
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.names import declared_namespaces
from tamis.documents.encodings import DeclaredEncoding, checked_declared_encoding
from tamis.language.flwr import read_transformations
from tamis.spark.frames import ColumnDocuments
from tamis.spark.program import PickledArtifact, given_items, id_type
from tamis.spark.rows import (
    OUTPUT_BYTES,
    OUTPUT_ROWS,
    ColumnTask,
    Errors,
    OutputSpec,
    PassthroughColumns,
    kept_columns,
)
from tamis.transform.transformer import Given, Text, Transformer

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
    error. Works on batch and streaming DataFrames, and through Spark Connect, and computes nothing
    by itself. Spark hands the workers Arrow batches of at most
    ``spark.sql.execution.arrow.maxRecordsPerBatch`` documents: lower that where they are large.

    Args:
        df: has the documents, and whatever identifies them.
        subscriptions: one of

            * a mapping of ids to texts, as for :class:`tamis.Transformer`;
            * a path as for ``tamis transform``: a folder of ``ID.xq``, one such file, or
              ``*.ndjson`` with ``{"id": …, "query": "…"}`` a line; or a file of Parquet;
            * a DataFrame, which is collected: ``spark.table("subscriptions")``.

            DataFrames and Parquet have columns ``id`` (string or integer) and ``expression``.
        column, keep, declared_encoding: as for :func:`tamis.spark.match`.
        errors: a "column" tells them, or documents and messages in error are left out ("drop"), or
            the first one makes the job fail ("fail").
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
    if isinstance(keep, str):
        raise UsageError("keep is a list of names, not one name")
    kept = kept_columns(df, column, keep)
    read = _read(subscriptions, namespaces, default_namespace, limits)
    program = TransformationArtifact.of(read)
    encoding = checked_declared_encoding(declared_encoding)
    spec = MessageSpec(id_type(read.transformations), program.set_version, errors, encoding)
    return TransformColumn(program, spec, kept, column).applied(df, [column])


def _read(
    subscriptions: TransformationSubscriptions,
    namespaces: Mapping[str, str] | None,
    default_namespace: str | None,
    limits: Limits,
) -> Transformer:
    if is_store(subscriptions):
        with Transformer.open(subscriptions, read_only=True) as live:
            return live
    items = given_items(subscriptions, folders=False)
    given: Mapping[SubscriptionId, Text]
    if isinstance(items, Path):
        declared = declared_namespaces(namespaces, default_namespace)
        found = read_transformations([items], declared, limits)
        if found.refused:
            raise BadSubscriptions(tuple(refused.error for refused in found.refused))
        given = found.transformations
    elif isinstance(items, Mapping):
        given = dict(items.items())
    elif items is not subscriptions:  # of a table
        given = dict(items)
        if len(given) < len(items):
            ((id, _),) = Counter(id for id, _ in items).most_common(1)
            raise UsageError(
                f"the table of subscriptions has the id {id!r} twice: ids must be unique"
            )
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


@dataclass(frozen=True)
class MessageSpec(OutputSpec):
    """What is wanted of each document."""

    declared_encoding: DeclaredEncoding = "check"

    def answer_columns(self) -> dict[str, sql.DataType]:
        return {"subscription": self.type_of_ids, "message": sql.StringType()}


@dataclass(frozen=True)
class TransformationArtifact(PickledArtifact[Transformer]):
    """Transforming subscriptions in a file."""

    suffix: ClassVar[str] = "transformations"

    @classmethod
    def of(cls, transformer: Transformer) -> TransformationArtifact:
        """What workers need of subscriptions, in a file."""
        transformations = transformer.transformations
        version = hashlib.sha256()
        for id, transformation in transformations.items():
            version.update(f"{id!r} {transformation!r}\n".encode())
        return cls.pickled((transformations, transformer.limits), version.hexdigest())

    def load(self, path: Path) -> Transformer:
        transformations, limits = self.unpickled(path)
        return Transformer(transformations, limits=limits)


class _Row(NamedTuple):
    document: int
    subscription: SubscriptionId | None
    message: bytes | None
    error: DocumentError | MessageError | None


@dataclass(frozen=True, slots=True)
class TransformColumn(ColumnTask[TransformationArtifact, MessageSpec]):
    """Makes messages of the column of XML, which is the last one."""

    column: str

    def answers(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        kept = PassthroughColumns.first_of(batch, self.kept)
        waiting: list[_Row] = []
        size = 0
        for row in self._rows(kept, batch.columns[-1]):
            if row.error is not None and self.spec.errors != "column":
                continue
            waiting.append(row)
            size += len(row.message or b"")
            if len(waiting) == OUTPUT_ROWS or size >= OUTPUT_BYTES:
                yield from self._joined(kept, waiting)
                waiting, size = [], 0
        yield from self._joined(kept, waiting)

    def _rows(self, kept: PassthroughColumns, documents: pa.Array) -> Iterator[_Row]:
        """A row for each message and each error, which is reported too."""
        encoding = self.spec.declared_encoding
        values = ColumnDocuments(self.column, documents, encoding).each()
        found = self.program.loaded().transform_many(values, declared_encoding=encoding)
        for number, messages in enumerate(found):
            if messages.error is not None:
                self.spec.report(kept.name(number), messages.error)
                yield _Row(number, None, None, messages.error)
                continue
            for id, content, error in messages:
                if error is not None:
                    self.spec.report(f"{kept.name(number)}, subscription {id!r}", error)
                yield _Row(number, id, content if error is None else None, error)

    def _joined(self, kept: PassthroughColumns, rows: Sequence[_Row]) -> Iterator[pa.RecordBatch]:
        documents, ids, messages, errors = zip(*rows, strict=True) if rows else [()] * 4
        if self.spec.id_type == "string":
            ids = tuple(None if id is None else str(id) for id in ids)
        type = pa.int64() if self.spec.id_type == "bigint" else pa.string()
        columns = [pa.array(ids, type), pa.array(messages, pa.binary()).cast(pa.string())]
        yield from self.spec.batches(kept, np.array(documents, np.int64), columns, errors)
