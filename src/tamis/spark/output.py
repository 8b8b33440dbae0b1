"""Parquet that the tasks of a job write themselves, and that appears when all of it is there.

Spark's own writer makes one result after the other, and so has to compute them twice or to keep
them in between: three times the work for the JVM, which here never sees the rows. The price is a
commit of our own. Each attempt of a task writes files of new names in a folder that no reader
knows; the driver keeps those of the attempts that Spark counted, and moves them into place.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.errors import UsageError
from tamis.spark.worker import ERROR_TYPE, AnswerTask

MATCHES, ERRORS = "matches", "errors"
SCHEMAS = {
    MATCHES: pa.schema(
        [("document", pa.string()), ("record", pa.int64()), ("subscription", pa.string())]
    ),
    ERRORS: pa.schema([("document", pa.string()), ("record", pa.int64()), *ERROR_TYPE]),
}
"""The folders of an output, and what their files have."""

# A file's row groups end at one of these bounds, and are in memory until then.
GROUP_ROWS = 1 << 20
GROUP_BYTES = 64 << 20


def check_output(output: str | os.PathLike[str], overwrite: bool) -> Path:
    """The folder of an output, made if it is new.

    Raises:
        UsageError: it has results already and may not be overwritten, or it cannot be made.
    """
    if "://" in os.fspath(output):
        raise UsageError(f"cannot write {output}: the output is a folder that all workers see")
    folder = Path(output).absolute()
    existing = [name for name in SCHEMAS if os.path.lexists(folder / name)]
    if existing and not overwrite:
        raise UsageError(
            f"{output} has {' and '.join(existing)} already: name another folder, or overwrite"
        )
    with _failure_reported(output):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A folder for the files of the tasks, inside that of the output; in the end it is gone.

    Raises:
        UsageError: it cannot be made.
    """
    staging = folder / f".tamis-{uuid4().hex}"
    try:
        with _failure_reported(folder):
            for name in SCHEMAS:
                (staging / name).mkdir(parents=True)
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def publish(staging: Path, folder: Path, files: Mapping[str, Collection[str]]) -> None:
    """Move what was staged into place, instead of the results that are there, if any.

    Args:
        files: the names of the files that count, by the name of their folder; there may be others,
            of attempts that failed or came too late.

    Raises:
        UsageError: some are missing, or they cannot be moved.
    """
    with _failure_reported(folder):
        for name, schema in SCHEMAS.items():
            written = {file.name for file in (staging / name).iterdir()}
            if not written.issuperset(files[name]):
                raise UsageError(f"the workers wrote to another {folder}: they must share it")
            for other in written.difference(files[name]):
                (staging / name / other).unlink()
            if not files[name]:  # readers want a schema all the same
                pq.write_table(schema.empty_table(), staging / name / "none.parquet")
        for name in SCHEMAS:
            if os.path.lexists(folder / name):
                (folder / name).rename(staging / f"old-{name}")
            (staging / name).rename(folder / name)


@contextmanager
def _failure_reported(output: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot write {output}: {error.strerror}") from None


@dataclass(frozen=True, slots=True)
class WriteTask:
    """The function that ``mapInArrow`` calls to write answers; it returns one row about them.

    Attributes:
        answer: what answers documents; it keeps the columns ``document`` and ``record``.
        staging: see :func:`staged`.
    """

    RETURNS = "file string, matches long, errors long"

    answer: AnswerTask
    staging: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        file = f"{uuid4().hex}.parquet"
        matches = _File(self.staging, MATCHES, file)
        errors = _File(self.staging, ERRORS, file)
        with matches, errors:
            for batch in self.answer(batches):
                is_match = pc.is_null(batch["error"])
                matches.add(batch.filter(is_match))
                errors.add(_with_error_fields(batch.filter(pc.invert(is_match))))
        counts = {"file": [file], MATCHES: [matches.rows], ERRORS: [errors.rows]}
        yield pa.RecordBatch.from_pydict(counts)


def _with_error_fields(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows, with the fields of the error as columns."""
    columns = dict(zip(ERROR_TYPE.names, rows["error"].flatten(), strict=True))
    return pa.RecordBatch.from_pydict(
        {"document": rows["document"], "record": rows["record"], **columns}
    )


class _File:
    """A file of Parquet that is only made if it gets rows, and is closed after its block."""

    def __init__(self, staging: str, folder: str, name: str) -> None:
        self.schema = SCHEMAS[folder]
        self.path = os.path.join(staging, folder, name)
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
