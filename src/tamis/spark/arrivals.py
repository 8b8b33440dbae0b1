"""Files that come into folders, as a stream of Spark's: found as a job finds them.

Spark's own source of files passes over empty files and over names that begin with ``_``, and it
never looks at a name twice. This source lists the folders as :func:`tamis.spark.run` does. A log in
the checkpoint has every file that was found, as it was then, and the number of its batch: the log
tells what is new, and which files a batch that is repeated has.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from tamis.documents.files import NO_DOCUMENTS
from tamis.spark.listing import Listed, list_path
from tamis.spark.output import to_disk

LOG = "tamis-files.ndjson"
"""The log's name in the checkpoint: ``[batch, path, size, modified, problem]``, a line a file."""

# To look takes the more time the more files there are. Where nothing is new, a pause follows which
# is so many times as long, so that who waits leaves the processor to others.
PAUSE = 4
PAUSE_SECONDS_MAX = 1.0


class ArrivalsSource(DataSource):
    """Files that come into folders. Options: ``folders`` (JSON), ``log``, ``files_max``."""

    @classmethod
    def name(cls) -> str:
        return "tamis-arrivals"

    def schema(self) -> str:
        return "path binary, size long, modified long, problem string"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        del schema
        folders = json.loads(self.options["folders"])
        return ArrivalsReader(folders, Path(self.options["log"]), int(self.options["files_max"]))


class ArrivalsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Finds files that are new, or changed; an offset is the number of batches so far.

    Args:
        folders: where files come.
        log: a file, see ``LOG``.
        files_max: of a batch.
    """

    def __init__(self, folders: Sequence[str], log: Path, files_max: int) -> None:
        self.folders = folders
        self.log = log
        self.files_max = files_max
        self.looks = True
        self.count = 0  # of batches
        self.seen: dict[str, tuple[Any, ...]] = {}
        self.waiting: dict[int, list[Listed]] = {}  # batches that may be asked for
        self._read_log()

    def _read_log(self) -> None:
        with self.log.open("a+b") as file:
            file.seek(0)
            whole = 0
            for line in file:
                if not line.endswith(b"\n"):  # the driver died while it wrote
                    break
                whole += len(line)
                batch, *found = json.loads(line)
                self._add(batch, [Listed(*found)])
            file.truncate(whole)
        to_disk(self.log.parent)

    def _add(self, batch: int, files: Sequence[Listed]) -> None:
        self.count = max(self.count, batch)
        self.waiting.setdefault(batch, []).extend(files)
        self.seen.update((file.path, file[1:]) for file in files)

    def _look(self) -> None:
        """Add what is new to the log, the oldest first."""
        listed = (file for folder in self.folders for file in list_path(folder, tells=False))
        found = [file for file in listed if self._is_new(file)]
        files = iter(sorted(found, key=lambda file: file.modified))
        with self.log.open("ab") as log:
            while batch := list(islice(files, self.files_max)):
                number = self.count + 1
                log.writelines(json.dumps([number, *file]).encode() + b"\n" for file in batch)
                self._add(number, batch)
        if found:
            to_disk(self.log)

    def _is_new(self, file: Listed) -> bool:
        is_empty = (file.problem or "").startswith(NO_DOCUMENTS)
        return not is_empty and self.seen.get(file.path) != file[1:]

    # -- what Spark asks -------------------------------------------------------------------------

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"batch": 0}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._look()
        self.looks = False

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        del limit
        done = start["batch"]
        if done == self.count and self.looks:
            begin = time.monotonic()
            self._look()
            if done == self.count:
                time.sleep(min(PAUSE * (time.monotonic() - begin), PAUSE_SECONDS_MAX))
        return {"batch": min(done + 1, self.count)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        numbers = range(start["batch"] + 1, end["batch"] + 1)
        return [InputPartition([file for number in numbers for file in self.waiting[number]])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        files = partition.value
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([os.fsencode(file.path) for file in files], pa.binary()),
                pa.array([file.size for file in files], pa.int64()),
                pa.array([file.modified for file in files], pa.int64()),
                pa.array([file.problem for file in files], pa.string()),
            ],
            names=Listed._fields,
        )

    def commit(self, end: dict[str, int]) -> None:
        self.waiting = {
            number: self.waiting[number] for number in self.waiting if number > end["batch"]
        }
