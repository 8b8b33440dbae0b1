"""Parquet that the tasks of a job write themselves, and that appears when all of it is there.

Spark's own writer makes one result after the other, and so has to compute them twice or to keep
them in between: three times the work for the JVM, which here never sees the rows. The price is a
commit of our own. Each attempt of a task writes files of new names in a folder that no reader
knows; the driver keeps those of the attempts that Spark counted, and moves them into place.

A *run* is what is committed at once: a job, or a micro-batch of a stream. All its files begin with
its name. Last of all comes that of the manifest, so a run is done when its manifest is there, and
what others there are of a run without one was left by a driver that died, and is removed by the
next. The manifest has what was read, and with which version of the subscriptions.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

import tamis
from tamis.errors import SubscriptionError, UsageError
from tamis.spark.listing import Listed
from tamis.spark.rows import ERROR_FIELDS, printable

MATCHES, ERRORS, MANIFEST = "matches", "errors", "manifest"
RESULTS = (MATCHES, ERRORS)
_FOLDERS = (MATCHES, ERRORS, MANIFEST)

_ERRORS = to_arrow_schema(
    StructType([StructField(name, type) for name, type in ERROR_FIELDS.items()]), timezone="UTC"
)
_MANIFEST = pa.schema(
    [
        ("file", pa.string()),
        ("size", pa.int64()),
        ("modified", pa.timestamp("ns", "UTC")),
        ("set_version", pa.string()),
        ("tamis_version", pa.string()),
        ("run", pa.string()),
        ("read", pa.timestamp("us", "UTC")),
    ]
)

# A file's row groups end at one of these bounds, and are in memory until then.
GROUP_ROWS = 1 << 20
GROUP_BYTES = 64 << 20


def schemas(id_type: str) -> dict[str, pa.Schema]:
    """What the files of results have; see :class:`Program` for ``id_type``.

    >>> schemas("string")["matches"].names
    ['document', 'record', 'subscription', 'set_version', 'tamis_version']
    """
    start = [("document", pa.string()), ("record", pa.int64())]
    ids = pa.int64() if id_type == "bigint" else pa.string()
    versions = [("set_version", pa.string()), ("tamis_version", pa.string())]
    return {
        MATCHES: pa.schema([*start, ("subscription", ids), *versions]),
        ERRORS: pa.schema([*start, *_ERRORS]),
    }


class Output:
    """A folder of results.

    Args:
        folder: is made if it is new; all workers must see it under the same path.

    Raises:
        UsageError: it cannot be made.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        if "://" in os.fspath(folder):
            raise UsageError(f"cannot write {folder}: the output is a folder that all workers see")
        self.given = os.fspath(folder)
        self.folder = Path(folder).absolute()
        with self._failure_reported():
            self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def existing(self) -> list[str]:
        """The results that are there."""
        return [name for name in RESULTS if os.path.lexists(self.folder / name)]

    def check_new(self) -> None:
        """See that there are no results.

        Raises:
            UsageError: there are.
        """
        if self.existing:
            raise UsageError(
                f"{self.given} has {' and '.join(self.existing)} already: name another folder, "
                "or overwrite, or add what is new"
            )

    def check_ids(self, id_type: str) -> None:
        """See that the results that are there have such ids.

        Raises:
            UsageError: they do not.
        """
        for file in (self.folder / MATCHES).glob("*.parquet"):
            found = pq.read_schema(file).field("subscription").type
            if found != schemas(id_type)[MATCHES].field("subscription").type:
                raise UsageError(
                    f"{self.given} has ids of the type {found}, which those of these "
                    "subscriptions are not: name another folder"
                )
            return

    def manifest(self) -> pa.Table:
        """What was read, by all runs."""
        files = sorted((self.folder / MANIFEST).glob("*.parquet"))
        return pa.concat_tables([_MANIFEST.empty_table(), *map(pq.read_table, files)])

    def runs(self) -> set[str]:
        """The names of the runs that are done."""
        return {_run_of(file) for file in (self.folder / MANIFEST).glob("*.parquet")}

    def unread(self, files: Sequence[Listed]) -> list[Listed]:
        """Those files that are not in the manifest as they are now."""
        rows = self.manifest()
        modified = rows["modified"].cast(pa.int64())
        columns = (rows["file"].to_pylist(), rows["size"].to_pylist(), modified.to_pylist())
        known = set(zip(*columns, strict=True))
        return [
            file for file in files if (printable(file.path), file.size, file.modified) not in known
        ]

    @contextmanager
    def sink(self, run: str, id_type: str) -> Iterator[ParquetSink]:
        """Where tasks write the files of a run: a folder inside, which is gone in the end.

        Raises:
            UsageError: it cannot be made.
        """
        staging = self.folder / f".tamis-{run}-{uuid4().hex}"
        try:
            with self._failure_reported():
                for name in _FOLDERS:
                    (staging / name).mkdir(parents=True)
            yield ParquetSink(str(staging), run, id_type)
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def publish(self, sink: ParquetSink, written: Run, *, overwrite: bool = False) -> None:
        """Move what tasks wrote into place.

        Args:
            overwrite: instead of the results that are there, if any.

        Raises:
            UsageError: some are missing, or they cannot be moved.
        """
        staging = Path(sink.staging)
        with self._failure_reported():
            self._keep_only(staging, written)
            if written.refused:
                refused = staging / ERRORS / f"{written.name}.refused.parquet"
                pq.write_table(refused_rows(written.refused), refused)
            pq.write_table(written.manifest(), staging / MANIFEST / f"{written.name}.parquet")
            for name in _FOLDERS:
                place = self.folder / name
                if overwrite:
                    with suppress(FileNotFoundError):
                        place.rename(staging / f"old-{name}")
                    (staging / name).rename(place)
                    continue
                place.mkdir(exist_ok=True)
                for file in (staging / name).iterdir():
                    file.rename(place / file.name)

    def _keep_only(self, staging: Path, written: Run) -> None:
        """Remove the files of attempts that failed or came too late."""
        for name, schema in schemas(written.id_type).items():
            there = {file.name for file in (staging / name).iterdir()}
            if not there.issuperset(written.files[name]):
                raise UsageError(f"the workers wrote to another {self.folder}: they must share it")
            for other in there.difference(written.files[name]):
                (staging / name / other).unlink()
            if not written.files[name]:  # readers want a schema all the same
                pq.write_table(schema.empty_table(), staging / name / f"{written.name}.parquet")

    def remove_unfinished(self) -> None:
        """Remove what a driver left that died while its tasks wrote, or while it published."""
        done = self.runs()
        with self._failure_reported():
            for left in self.folder.glob(".tamis-*"):
                shutil.rmtree(left, ignore_errors=True)
            for name in RESULTS:
                for file in (self.folder / name).glob("*.parquet"):
                    if _run_of(file) not in done:
                        file.unlink(missing_ok=True)

    @contextmanager
    def _failure_reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UsageError(f"cannot write {self.given}: {error.strerror}") from None


class Run(NamedTuple):
    """What a job did.

    Attributes:
        name: of the run.
        id_type, set_version: see :class:`Program`.
        files: the names of the files that count, by the name of their folder.
        read: what was read.
        refused: what is wrong with subscriptions that were left out.
    """

    name: str
    id_type: str
    set_version: str
    files: Mapping[str, Collection[str]]
    read: Sequence[Listed]
    refused: Sequence[SubscriptionError] = ()

    def manifest(self) -> pa.Table:
        """What there is to say of the run."""
        count = len(self.read)
        modified = pa.array([file.modified for file in self.read], pa.int64())
        same = [self.set_version, tamis.__version__, self.name, datetime.now(UTC)]
        return pa.Table.from_arrays(
            [
                pa.array([printable(file.path) for file in self.read], pa.string()),
                pa.array([file.size for file in self.read], pa.int64()),
                modified.cast(_MANIFEST.field("modified").type),
                *(
                    pa.array([value] * count, field.type)
                    for value, field in zip(same, list(_MANIFEST)[3:], strict=True)
                ),
            ],
            schema=_MANIFEST,
        )


def refused_rows(refused: Sequence[SubscriptionError]) -> pa.Table:
    """Rows of ``errors`` about subscriptions: of no document, with their lines in their file."""
    rows = [
        {
            "code": error.code,
            "message": printable(f"subscription {error.id!r}: {error.message}"),
            "line": error.line,
            "column": None if error.position is None else error.position + 1,
        }
        for error in refused
    ]
    return pa.Table.from_pylist(rows, schema=schemas("string")[ERRORS])


def new_run() -> str:
    """A name for a run that has none of its own: later ones come later in order."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid4().hex[:8]}"


def _run_of(file: Path) -> str:
    """The run that a file is of."""
    return file.stem.partition(".")[0]


class ParquetSink(NamedTuple):
    """Where tasks write the rows of a run, matches and errors apart.

    Attributes:
        staging: the folder.
        run: what files are called after.
        id_type: see :class:`Program`.
    """

    staging: str
    run: str
    id_type: str

    def write(self, batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
        """Write what one attempt of a task has: the file's name, and how many rows of each kind."""
        name = f"{self.run}.{uuid4().hex}.parquet"
        files = {
            folder: _File(os.path.join(self.staging, folder, name), schema)
            for folder, schema in schemas(self.id_type).items()
        }
        with files[MATCHES], files[ERRORS]:
            for batch in batches:
                for folder, rows in divided(batch).items():
                    files[folder].add(rows)
        return {"file": name, **{folder: file.rows for folder, file in files.items()}}


def divided(batch: pa.RecordBatch) -> dict[str, pa.RecordBatch]:
    """Rows of matches, and of errors, whose fields become columns."""
    if "error" not in batch.schema.names:
        return {MATCHES: batch, ERRORS: batch.slice(0, 0)}
    is_match = pc.is_null(batch["error"])
    wrong = batch.filter(pc.invert(is_match))
    columns = dict(zip(ERROR_FIELDS, wrong["error"].flatten(), strict=True))
    start = {name: wrong[name] for name in ("document", "record")}
    return {
        MATCHES: batch.filter(is_match),
        ERRORS: pa.RecordBatch.from_pydict({**start, **columns}),
    }


class _File:
    """A file of Parquet that is only made if it gets rows, and is closed after its block."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self.schema = schema
        self.path = path
        self.rows = 0
        self._writer: pq.ParquetWriter | None = None
        self._waiting: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        self.rows += batch.num_rows
        self._waiting.append(batch.select(self.schema.names))
        if (
            sum(batch.num_rows for batch in self._waiting) >= GROUP_ROWS
            or sum(batch.nbytes for batch in self._waiting) >= GROUP_BYTES
        ):
            self._write_group()

    def _write_group(self) -> None:
        if not self._waiting:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self.path, self.schema)
        self._writer.write_table(pa.Table.from_batches(self._waiting).cast(self.schema))
        self._waiting.clear()

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._write_group()
        if self._writer is not None:
            self._writer.close()
