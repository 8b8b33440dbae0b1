"""Parquet that the tasks of a job write themselves, and that appears when all of it is there.

Spark's own writer makes one result after the other, and so has to compute them twice or to keep
them in between: three times the work for the JVM, which here never sees the rows. The price is a
commit of our own. Each attempt of a task writes files of new names in a folder that no reader
knows; the driver keeps those of the attempts that Spark counted, and moves them into place.

All files of a run begin with its name. They are moved one after the other, the manifest last: a run
is done when its manifest is there. What there is of a run without one was left by a driver that
died. The next driver removes it, and puts back what that run was to replace; readers who cannot
wait for that take the runs that the manifest has. One driver at a time writes.
"""

from __future__ import annotations

import errno
import fcntl
import glob
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.core.errors import UnwritableOutput, UsageError
from tamis.documents.files import FileStatus
from tamis.spark import results
from tamis.spark.filesystems import is_remote, local_path
from tamis.spark.results import ERRORS, MANIFEST, MATCHES, RESULTS, Run, schemas

log = logging.getLogger("tamis.spark")

_FOLDERS = (*RESULTS, MANIFEST)
_LOCK = ".tamis-lock"
_REPLACED = ".tamis-replaced-by-"
_STAGING = re.compile(r"\.tamis-.+-[0-9a-f]{32}")
_OURS = re.compile(r"(.+)\.(?:[0-9a-f]{32}|driver|empty)\.parquet")
"""Names of files of results, with their run; others may be there, and stay."""
_RUN = re.compile(r"\d{8}T\d{6}-[0-9a-f]{8}|stream-[0-9a-f]{12}-\d{8,}")
"""Names of runs, see ``new_run`` and the batches of streams."""

# A file's row groups end at one of these bounds, and are in memory until then.
GROUP_ROWS = 1 << 20
GROUP_BYTES = 64 << 20


class ParquetStore:
    """A folder of results, made if it is new; all workers must see it under the same path.

    With ``overwrite``, what is published replaces the results that are there.
    """

    def __init__(self, folder: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        self.given = os.fspath(folder)
        if is_remote(self.given):
            raise UsageError(
                f"cannot write {self.given}: results are in a folder that all machines see, or in "
                "tables (table:NAME); tamis.spark.match_files(spark, …).write.parquet('…') writes "
                "wherever Spark does"
            )
        self.folder = Path(local_path(self.given)).absolute()
        self.overwrite = overwrite
        with self._failure_reported():
            self.folder.mkdir(parents=True, exist_ok=True)

    @property
    def existing(self) -> list[str]:
        """The results that are there."""
        return [name for name in RESULTS if _has_entries(self.folder / name)]

    def check_new(self) -> None:
        """See that there are no results, in one's turn."""
        self._remove_unfinished()
        if self.existing:
            raise UsageError(
                f"{self.given} has {' and '.join(self.existing)} already: name another folder, "
                "or replace them (--overwrite), or add what is new (--only-new)"
            )

    @contextmanager
    def turn(self, *, waits: bool = False) -> Iterator[None]:
        """Be the only driver that writes, inside the ``with`` block."""
        with self._failure_reported():  # a file, since shared folders cannot be locked themselves
            lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(lock)
            raise UsageError(f"another job writes into {self.given}: wait until it ends") from None
        except OSError as error:
            log.warning("%s: nothing keeps other jobs out: %s", self.given, error.strerror)
        try:
            yield
        finally:
            os.close(lock)

    def prepare(self, id_type: str) -> None:
        """Remove what dead drivers left, and see that results can be added, or replaced."""
        self._remove_unfinished()
        if self.overwrite:
            if next((self.folder / MANIFEST).glob("stream-*.parquet"), None) is not None:
                raise UsageError(
                    f"{self.given} has results of a stream, which would not make them again: name "
                    "another folder, or remove this one with the stream's checkpoint"
                )
            return
        has_manifest = (self.folder / MANIFEST).is_dir()
        if not has_manifest and (self.existing or os.path.lexists(self.folder / MANIFEST)):
            raise UsageError(f"{self.given} has results and no manifest: name another folder")
        for file in (self.folder / MATCHES).glob("*.parquet"):
            found = _schema_of(file, "subscription").field("subscription").type
            if found != schemas(id_type)[MATCHES].field("subscription").type:
                raise UsageError(
                    f"{self.given} has ids of the type {found}, which those of these "
                    "subscriptions are not: name another folder"
                )
            break
        self._update_files({ERRORS: schemas(id_type)[ERRORS], MANIFEST: results.MANIFEST_SCHEMA})

    def _update_files(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Rewrite the files of earlier versions, so that those of a folder have one schema.

        Each is replaced at once by one with the same rows: the columns that it lacks, at its end,
        are null. Files that others put there stay.
        """
        with self._failure_reported(), self._staging("update") as staging:
            for name, schema in schemas.items():
                for file in (self.folder / name).glob("*.parquet"):
                    old = _schema_of(file)  # fewer columns, or columns of other types
                    if old.names != schema.names[: len(old)] or old.types == schema.types:
                        continue
                    table = _read(file)
                    for field in list(schema)[table.num_columns :]:
                        table = table.append_column(field, pa.nulls(len(table), field.type))
                    _write(table.cast(schema, safe=False), staging / name / file.name)
                    (staging / name / file.name).rename(file)
                    to_disk(self.folder / name)

    def manifest(self) -> pa.Table:
        """What was read, by all runs."""
        files = sorted((self.folder / MANIFEST).glob("*.parquet"))
        tables = [_read(file).cast(results.MANIFEST_SCHEMA, safe=False) for file in files]
        return pa.concat_tables([results.MANIFEST_SCHEMA.empty_table(), *tables])

    def is_done(self, run: str) -> bool:
        return self._manifest_of(run).exists() or run in self._compacted()

    def _compacted(self) -> set[str]:
        """The runs in files of the manifest that others made of several."""
        found: set[str] = set()
        for file in (self.folder / MANIFEST).glob("*.parquet"):
            if not _RUN.fullmatch(file.stem):
                found.update(_read(file, ["run"])["run"].to_pylist())
        return found

    def not_in_manifest(self, files: Sequence[FileStatus]) -> list[FileStatus]:
        """Those files that are not in the manifest as they are now."""
        return results.not_in(self.manifest(), files)

    @contextmanager
    def sink(self, run: str, id_type: str) -> Iterator[ParquetSink]:
        """Where tasks write the files of a run: a folder inside, which is gone in the end."""
        with self._staging(run) as staging:
            yield ParquetSink(str(staging), run, id_type)

    @contextmanager
    def _staging(self, run: str) -> Iterator[Path]:
        """A folder inside for files that are not to be seen yet, which is gone in the end."""
        staging = self.folder / f".tamis-{run}-{uuid4().hex}"
        try:
            with self._failure_reported():
                for name in _FOLDERS:
                    (staging / name).mkdir(parents=True)
            yield staging
        finally:
            shutil.rmtree(staging, ignore_errors=True)

    def publish(self, sink: ParquetSink, written: Run) -> None:
        """Move the files that count into place: not those of attempts that failed or are late.

        Where this fails, what was there before is there again.
        """
        staging = Path(sink.staging)
        if self.is_done(written.name):
            raise UsageError(f"another driver has done {written.name}: end one of them")
        with self._failure_reported():
            files = {name: self._complete(staging / name, written) for name in RESULTS}
            new = staging / MANIFEST / f"{written.name}.parquet"
            _write(written.manifest(), new)
            try:
                if self.overwrite:
                    self._put_aside(written.name)
                for name in _FOLDERS:
                    (self.folder / name).mkdir(exist_ok=True)
                to_disk(self.folder)
                for name in RESULTS:
                    for file in files[name]:
                        (staging / name / file).rename(self.folder / name / file)
                    to_disk(self.folder / name)
                new.rename(self._manifest_of(written.name))
            except BaseException:
                self._remove_unfinished()
                raise
            to_disk(self.folder / MANIFEST)
            if self.overwrite:
                self._remove(self.folder / f"{_REPLACED}{written.name}")

    def _complete(self, folder: Path, written: Run) -> list[str]:
        """The names of the files to publish, of those in a folder, and of some more."""
        name = folder.name
        files = list(written.files[name])
        if not all((folder / file).exists() for file in files):
            raise UsageError(f"the workers wrote to another {self.folder}: they must share it")
        if name == ERRORS and written.wrong.num_rows:
            files.append(f"{written.name}.driver.parquet")
            _write(written.wrong, folder / files[-1])
        is_new = self.overwrite or not _has_entries(self.folder / name)
        if not files and is_new:  # readers want a schema all the same
            files.append(f"{written.name}.empty.parquet")
            _write(schemas(written.id_type)[name].empty_table(), folder / files[-1])
        return files

    def _put_aside(self, run: str) -> None:
        """Move the results away: the manifest first, so that it never has more than there is."""
        aside = self.folder / f"{_REPLACED}{run}"
        aside.mkdir()
        for name in (MANIFEST, *RESULTS):
            with suppress(FileNotFoundError):
                (self.folder / name).rename(aside / name)

    def _remove(self, aside: Path) -> None:
        """Remove results that were replaced; what cannot be removed is never put back either."""
        removed = self.folder / f".tamis-{aside.name.removeprefix(_REPLACED)}-{uuid4().hex}"
        aside.rename(removed)
        shutil.rmtree(removed, ignore_errors=True)

    def _put_back(self, aside: Path) -> None:
        """Undo what a run did that was to replace results, the manifest last."""
        run = aside.name.removeprefix(_REPLACED)
        for name in (*RESULTS, MANIFEST):
            if os.path.lexists(aside / name):  # then the other one is the run's
                shutil.rmtree(self.folder / name, ignore_errors=True)
                (aside / name).rename(self.folder / name)
            for file in (self.folder / name).glob(f"{glob.escape(run)}.*parquet"):
                file.unlink()
        aside.rmdir()

    def _remove_unfinished(self) -> None:
        """Remove what a driver left that died while its tasks wrote, or while it published."""
        with self._failure_reported():
            for aside in self.folder.glob(f"{_REPLACED}*/"):
                if self.is_done(aside.name.removeprefix(_REPLACED)):
                    self._remove(aside)
                else:
                    self._put_back(aside)
            for left in self.folder.glob(".tamis-*"):
                if _STAGING.fullmatch(left.name):
                    shutil.rmtree(left, ignore_errors=True)
            if not (self.folder / MANIFEST).is_dir():
                return
            compacted = self._compacted()
            for name in RESULTS:
                for file in (self.folder / name).glob("*.parquet"):
                    found = _OURS.fullmatch(file.name)
                    run = found[1] if found else None
                    if run and run not in compacted and not self._manifest_of(run).exists():
                        file.unlink(missing_ok=True)

    def _manifest_of(self, run: str) -> Path:
        return self.folder / MANIFEST / f"{run}.parquet"

    @contextmanager
    def _failure_reported(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            problem = error.strerror or error
            raise UnwritableOutput(f"cannot write {self.given}: {problem}") from None


def _has_entries(folder: Path) -> bool:
    """Whether a path leads to something other than an empty folder."""
    try:
        return next(folder.iterdir(), None) is not None
    except OSError:
        return os.path.lexists(folder)


class ParquetSink(NamedTuple):
    """Where tasks write the rows of a run, matches and errors apart: a folder."""

    staging: str
    run: str
    id_type: str

    def write(self, task: int, batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
        """Write what one attempt of a task has; see ``Sink``."""
        del task  # each attempt has a file of its own
        if not os.path.isdir(self.staging):
            raise UsageError(f"this worker has no {self.staging}: all must share the output")
        name = f"{self.run}.{uuid4().hex}.parquet"
        files = {
            folder: _File(os.path.join(self.staging, folder, name), schema)
            for folder, schema in schemas(self.id_type).items()
        }
        with files[MATCHES], files[ERRORS]:
            for batch in batches:
                for folder, rows in results.divided(batch).items():
                    files[folder].add(rows)
        counts = {folder: file.rows for folder, file in files.items()}
        return {"file": name, **counts, "is_first": True}


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
        rows = sum(batch.num_rows for batch in self._waiting)
        if rows >= GROUP_ROWS or sum(batch.nbytes for batch in self._waiting) >= GROUP_BYTES:
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

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._write_group()
        if self._writer is not None:
            self._writer.close()
            to_disk(self.path)


def _schema_of(path: Path, *columns: str) -> pa.Schema:
    try:
        schema = pq.read_schema(path)
        for column in columns:
            schema.field(column)
    except (KeyError, OSError, pa.ArrowException) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    return schema


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    try:  # a folder k=1 above it is no partition
        table = pq.read_table(path, columns=columns, partitioning=None)
        return table if columns is None else table.select(columns)
    except (OSError, pa.ArrowException, KeyError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def _write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path)
    to_disk(path)


def to_disk(path: str | os.PathLike[str]) -> None:
    """See that a file, or what is in a folder, outlives a machine that loses power."""
    found = os.open(path, os.O_RDONLY)
    try:
        os.fsync(found)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has nothing of the kind
            raise
    finally:
        os.close(found)
