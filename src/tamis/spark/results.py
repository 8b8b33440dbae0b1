"""Results of runs, wherever they are stored: their columns, and what a store of them can do.

A *run* is what is committed at once: a job, or a micro-batch of a stream. Tasks write into a sink;
the driver then publishes the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tamis
from tamis.core.errors import DocumentError, LxmlEvaluationError, SubscriptionError, SubscriptionId
from tamis.documents.files import FileStatus
from tamis.spark.program import is_bigint
from tamis.spark.rows import ERROR, ERROR_FIELDS, arrow_schema, concatenated, printable
from tamis.spark.splits import whole_paths

MATCHES, ERRORS, MANIFEST = "matches", "errors", "manifest"
RESULTS = (MATCHES, ERRORS)

ERROR_SCHEMA = arrow_schema(ERROR.fields)
_TIME = pa.timestamp("us", "UTC")  # Spark reads no nanoseconds
MANIFEST_SCHEMA = pa.schema(
    [
        *(("file", pa.string()), ("size", pa.int64()), ("modified", _TIME)),
        *((name, pa.string()) for name in ("set_version", "tamis_version", "run")),
        ("read", _TIME),
    ]
)


def schemas(id_type: str) -> dict[str, pa.Schema]:
    """What the files of results have; see :class:`ProgramArtifact` for ``id_type``.

    >>> schemas("string")["matches"].names
    ['document', 'record', 'subscription', 'set_version', 'tamis_version']
    """
    start = [("document", pa.string()), ("record", pa.int64())]
    ids = pa.int64() if id_type == "bigint" else pa.string()
    versions = [("set_version", pa.string()), ("tamis_version", pa.string())]
    return {
        MATCHES: pa.schema([*start, ("subscription", ids), *versions]),
        ERRORS: pa.schema([*start, *ERROR_SCHEMA, ("subscription", ids)]),
    }


class Sink(Protocol):
    """Where tasks write."""

    def write(self, task: int, batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
        """Write what one attempt of a task has.

        Returns ``file``, its name or ""; how many rows of ``matches`` and ``errors``; and
        ``is_first``: whether these are of this attempt, and not of another one that was faster.
        """


S = TypeVar("S")


class ResultStore(Protocol[S]):
    """Where the results of runs are: a folder of Parquet, tables of Spark's, or a database."""

    def turn(self, *, waits: bool = False) -> AbstractContextManager[None]:
        """Be the only driver that writes, where two would harm each other."""

    def prepare(self, id_type: str) -> None:
        """Make ready what was not used yet, or not since a driver died."""

    def is_done(self, run: str) -> bool:
        """Whether a run was published."""

    def sink(self, run: str, id_type: str) -> AbstractContextManager[S]:
        """Where the tasks of a run write."""

    def publish(self, sink: S, written: Run) -> None:
        """Make what the tasks wrote a result."""


class Run(NamedTuple):
    """What a job did.

    Attributes:
        files: the names of the files that count, by the name of their folder.
        wrong: errors that the driver adds to those of the tasks.
    """

    name: str
    id_type: str
    set_version: str
    files: Mapping[str, Collection[str]]
    read: Sequence[FileStatus]
    wrong: pa.Table

    def manifest(self) -> pa.Table:
        """The run's rows of the manifest."""
        table = as_in_manifest(self.read)
        same = [self.set_version, tamis.__version__, self.name, datetime.now(UTC)]
        for value, field in zip(same, list(MANIFEST_SCHEMA)[3:], strict=True):
            table = table.append_column(field, pa.array([value] * len(table), field.type))
        return table


def rows_about(
    refused: Sequence[SubscriptionError],
    documents: Mapping[str, DocumentError],
    id_type: str = "string",
) -> pa.Table:
    """Rows of ``errors``: about subscriptions, with their lines in their file, and documents."""
    schema = schemas(id_type)[ERRORS]
    rows: list[dict[str, object]] = [
        {
            "code": error.code,
            "message": printable(f"subscription {error.id!r}: {error.message}"),
            "line": error.line,
            "column": None if error.position is None else error.position + 1,
            "subscription": _in_column(error.id, id_type),
        }
        for error in refused
    ]
    rows += [
        {"document": printable(name), "code": error.code, "message": printable(error.message)}
        for name, error in documents.items()
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def _in_column(id: SubscriptionId | None, id_type: str) -> SubscriptionId | None:
    """An id as a column of ids has it, or None where it cannot: others may all be integers."""
    if id_type == "bigint":
        return id if is_bigint(id) else None
    return None if id is None else printable(str(id))


def new_run() -> str:
    """A name for a run that has none of its own: later ones come later in order."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:8]}"


def as_in_manifest(files: Sequence[FileStatus]) -> pa.Table:
    """The columns of the manifest that tell files, as they are now, apart.

    However a file was given, it has the same name there, and no other file has it.
    """
    modified = pa.array([file.modified for file in files], pa.timestamp("ns", "UTC"))
    columns = [
        pa.array(
            [path.encode(errors="backslashreplace").decode() for path in whole_paths(files)],
            pa.string(),
        ),
        pa.array([file.size for file in files], pa.int64()),
        modified.cast(MANIFEST_SCHEMA.field("modified").type, safe=False),
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(list(MANIFEST_SCHEMA)[:3]))


def not_in(manifest: pa.Table, files: Sequence[FileStatus]) -> list[FileStatus]:
    """Those files that are not in a manifest as they are now.

    Times are compared in whole microseconds: manifests of earlier versions have nanoseconds.
    """
    keys = ["file", "size", "modified"]
    table = as_in_manifest(files)
    table = table.append_column("number", pa.array(range(len(files)), pa.int64()))
    left = table.join(manifest.select(keys), keys, join_type="left anti")
    return [files[number] for number in sorted(left["number"].to_pylist())]


def divided(batch: pa.RecordBatch) -> dict[str, pa.RecordBatch]:
    """Rows of matches, and of errors: of documents, and of subscriptions that failed."""
    if "error" not in batch.schema.names:
        return {MATCHES: batch, ERRORS: batch.slice(0, 0)}
    wrong = batch.filter(pc.is_valid(batch["error"]))
    columns = dict(zip(ERROR_FIELDS, wrong["error"].flatten(), strict=True))
    start = {name: wrong[name] for name in ("document", "record", "subscription")}
    found = [pa.RecordBatch.from_pydict({**start, **columns})]
    failing = batch.filter(pc.is_valid(batch["failed"]))
    if failing.num_rows:
        found.append(_failures(failing).cast(found[0].schema))
    return {MATCHES: batch.filter(pc.is_valid(batch["subscription"])), ERRORS: concatenated(found)}


def _failures(batch: pa.RecordBatch) -> pa.RecordBatch:
    failed = batch["failed"]
    counts = np.diff(failed.offsets.to_numpy())
    rows = pa.array(np.repeat(np.arange(len(failed)), counts))
    start = {name: batch[name].take(rows) for name in ("document", "record")}
    ids = failed.keys.cast(batch["subscription"].type)
    said = {name: pa.nulls(len(rows), ERROR_SCHEMA.field(name).type) for name in ERROR_FIELDS}
    said["code"] = pa.repeat(pa.scalar(LxmlEvaluationError.code, pa.string()), len(rows))
    said["message"] = failed.items
    return pa.RecordBatch.from_pydict({**start, "subscription": ids, **said})
