"""Files that come into folders, found again and again, as sources of Spark's streams.

Spark's own source of files passes over empty files and over names that begin with ``_``, and it
never looks at a name twice. The source here lists the folders as :func:`tamis.spark.run` does. A
log has every file that was found, as it was then, and the number of its batch: the log tells what
is new, and which files a batch that is repeated has.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from tamis.core.errors import UnwritableOutput, UsageError
from tamis.documents.files import NO_DOCUMENTS, FileStatus, list_folder, status_of
from tamis.spark.answers import AnswerSplits
from tamis.spark.files import Paths, path_list
from tamis.spark.filesystems import is_remote, local_path
from tamis.spark.parquet import to_disk
from tamis.spark.splits import InputSplit, list_path, partitions, splits_of, warn_of_left_out

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # Spark 4.1, where each micro-batch has all that came: see latestOffset
    SupportsTriggerAvailableNow = object  # type: ignore[misc, assignment]

LOG = "tamis-files.ndjson"
"""The log's name in its folder: ``[batch, path, size, modified, problem]``, a line a file."""

# Where a look finds nothing new, a pause follows that is so many times as long as the look, which
# takes the more time the more files there are.
PAUSE = 4
PAUSE_SECONDS_MAX = 1.0

BATCH_FILES_MAX, BATCH_BYTES_MAX = 1000, 10 << 30
"""Where a micro-batch ends, by default: its answers appear when all of it is matched."""

_INTERVAL = re.compile(r"\d+ *(millisecond|second|minute|hour|day)s?")


def stream_folders(folders: Paths, trigger: str | None) -> list[str]:
    """The folders of a stream, from the root."""
    if trigger not in (None, "now") and not _INTERVAL.fullmatch(trigger or ""):
        raise UsageError(f'the trigger {trigger!r}: write "now", or a time such as "10 seconds"')
    paths = [local_path(folder) for folder in path_list(folders)]
    for folder in paths:
        if is_remote(folder):
            raise UsageError(
                f"{folder}: a stream watches folders of the driver's machine: mount it, or match "
                "what is new there from time to time (--only-new)"
            )
        if not os.path.exists(folder):
            raise UsageError(f"{folder}: there is no such folder")
        if not os.path.isdir(folder):
            raise UsageError(f"{folder} is no folder: a stream is of files that come into folders")
    return list(dict.fromkeys(os.path.abspath(folder) for folder in paths))


def warn_of_others(folders: Sequence[str]) -> None:
    """Warn of the files that are there and are no documents by their names."""
    for folder in folders:
        warn_of_left_out(folder, list_folder(folder).left_out)


def as_they_were(files: Sequence[FileStatus]) -> list[FileStatus]:
    """The files that are as they were found, or gone, which is an error.

    One that was replaced comes with a later batch.
    """
    return [f for f in files if f.problem or status_of(f.path) in (f, FileStatus(f.path))]


class ArrivalsSource(DataSource):
    """Files that come into folders: paths, sizes, times, and nothing of what is in them.

    Options: ``folders`` (JSON), ``log``, ``files_max``, ``bytes_max``.
    """

    @classmethod
    def name(cls) -> str:
        return "tamis-arrivals"

    def schema(self) -> str:
        return "path binary, size long, modified long, problem string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        del schema
        folders = json.loads(self.options["folders"])
        bounds = int(self.options["files_max"]), int(self.options["bytes_max"])
        return ArrivalsReader(folders, Path(self.options["log"]), *bounds)


class ArrivalsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Finds files that are new, or changed; an offset is the number of batches so far.

    For ``log`` see ``LOG``; ``files_max`` and ``bytes_max`` are those of a batch.
    """

    def __init__(
        self,
        folders: Sequence[str],
        log: Path,
        files_max: int = BATCH_FILES_MAX,
        bytes_max: int = BATCH_BYTES_MAX,
    ) -> None:
        self.folders = folders
        self.log = log
        self.files_max = files_max
        self.bytes_max = bytes_max
        self.looks = True
        self.count = 0  # of batches
        self.seen: dict[str, tuple[Any, ...]] = {}
        self.waiting: dict[int, list[FileStatus]] = {}  # batches that may be asked for
        self._read_log()

    def __getstate__(self) -> dict[str, Any]:
        """What workers get: not all names, which Spark would send with each micro-batch."""
        return {**self.__dict__, "seen": {}, "waiting": {}}

    def _read_log(self) -> None:
        with self.log.open("a+b") as file:
            file.seek(0)
            whole = 0
            for line in file:
                if not line.endswith(b"\n"):  # the driver died while it wrote
                    break
                whole += len(line)
                batch, *found = json.loads(line)
                self._add(batch, [FileStatus(*found)])
            file.truncate(whole)
        to_disk(self.log.parent)

    def _add(self, batch: int, files: Sequence[FileStatus]) -> None:
        self.count = max(self.count, batch)
        self.waiting.setdefault(batch, []).extend(files)
        self.seen.update((file.path, file[1:]) for file in files)

    def _look(self) -> None:
        """Add what is new to the log, the oldest first."""
        listed = (file for folder in self.folders for file in list_path(folder, warns=False))
        found = [file for file in listed if self._is_new(file)]
        found.sort(key=lambda file: file.modified)
        with self.log.open("ab") as log:
            for batch in self._batches(found):
                number = self.count + 1
                log.writelines(json.dumps([number, *file]).encode() + b"\n" for file in batch)
                self._add(number, batch)
        if found:
            to_disk(self.log)

    def _batches(self, files: Sequence[FileStatus]) -> Iterator[Sequence[FileStatus]]:
        start = size = 0
        for number, file in enumerate(files):
            if number - start == self.files_max or (size and size + file.size > self.bytes_max):
                yield files[start:number]
                start, size = number, 0
            size += file.size
        if files:
            yield files[start:]

    def _is_new(self, file: FileStatus) -> bool:
        is_empty = (file.problem or "").startswith(NO_DOCUMENTS)
        return not is_empty and self.seen.get(file.path) != file[1:]

    # -- what Spark asks -------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"batch": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._look()
        self.looks = False

    def latestOffset(  # noqa: N802
        self, start: dict[str, int] | None = None, limit: object = None
    ) -> dict[str, int]:
        del limit
        done = self.count if start is None else start["batch"]
        if done == self.count and self.looks:
            begin = time.monotonic()
            self._look()
            if done == self.count:
                time.sleep(min(PAUSE * (time.monotonic() - begin), PAUSE_SECONDS_MAX))
        return {"batch": self.count if start is None else min(done + 1, self.count)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(self._between(start, end))]

    def _between(self, start: dict[str, int], end: dict[str, int]) -> list[FileStatus]:
        numbers = range(start["batch"] + 1, end["batch"] + 1)
        return [file for number in numbers for file in self.waiting[number]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        types = pa.binary(), pa.int64(), pa.int64(), pa.string()
        schema = pa.schema(list(zip(FileStatus._fields, types, strict=True)))
        rows = [{**f._asdict(), "path": os.fsencode(f.path)} for f in partition.value]
        yield pa.RecordBatch.from_pylist(rows, schema)

    def commit(self, end: dict[str, int]) -> None:
        self.waiting = {n: files for n, files in self.waiting.items() if n > end["batch"]}


class MatchedArrivals(ArrivalsReader):
    """Files that come, answered by the workers: the format tamis of ``spark.readStream``."""

    def __init__(self, answer: AnswerSplits, folders: Paths, log: str, **bounds: int) -> None:
        self.answer = answer
        if is_remote(log):
            raise UsageError(f"the log {log} is in no folder of this machine: name one")
        place = Path(local_path(log))
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UnwritableOutput(f"cannot write {log}: {error.strerror}") from None
        super().__init__(stream_folders(folders, None), place / LOG, **bounds)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        files = as_they_were(self._between(start, end))
        record, limits = self.answer.spec.record, self.answer.program.limits
        return [InputPartition(found) for found in partitions(splits_of(files, "", record, limits))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.answer(cast(list[InputSplit], partition.value or []))
