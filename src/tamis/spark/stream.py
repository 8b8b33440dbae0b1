"""The stream of ``tamis run --stream``: files that come into folders, answered batch by batch.

Spark's own source of files passes over empty files and over names that begin with ``_``, and it
never looks at a name twice. The source here lists the folders as :func:`tamis.spark.run` does. A
log in the checkpoint has every file that was found, as it was then, and the number of its batch:
the log tells what is new, and which files a batch that is repeated has.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from tamis.core.arguments import is_store
from tamis.core.errors import TamisError, UnwritableOutput, UsageError
from tamis.documents.encodings import DeclaredEncoding
from tamis.documents.files import NO_DOCUMENTS, FileStatus, list_folder, status_of
from tamis.documents.record_batch import OnBadRecord
from tamis.spark.answers import MatchSpec
from tamis.spark.files import Paths, path_list
from tamis.spark.filesystems import is_remote, local_path
from tamis.spark.job import Summary, write_run
from tamis.spark.parquet import ParquetStore, to_disk
from tamis.spark.postgres import PostgresStore, is_postgres
from tamis.spark.program import ProgramArtifact, SubscriptionSet, program
from tamis.spark.results import ResultStore
from tamis.spark.rows import Errors
from tamis.spark.splits import list_path, warn_of_left_out
from tamis.spark.tables import TableStore, is_table

if TYPE_CHECKING:  # it needs Py4J, which who has only the client of Spark Connect has not
    from pyspark.sql.streaming.query import StreamingQuery as StreamingQuery  # noqa: PLC0414

log = logging.getLogger("tamis.spark")

LOG = "tamis-files.ndjson"
"""The log's name in the checkpoint: ``[batch, path, size, modified, problem]``, a line a file."""

# Where a look finds nothing new, a pause follows that is so many times as long as the look, which
# takes the more time the more files there are.
PAUSE = 4
PAUSE_SECONDS_MAX = 1.0

BATCH_BYTES_MAX = 10 << 30
"""So many bytes end a micro-batch, by default: its answers appear when all of it is matched."""

OnBatch = Callable[[str, str, Summary], None]
"""Is told of each batch: its name, the version of the set, and what was done."""
_INTERVAL = re.compile(r"\d+ *(millisecond|second|minute|hour|day)s?")


class Reloading:
    """Subscriptions of a file or a folder, read again when it was changed or replaced.

    ``read`` makes a program of the file; by default :func:`tamis.spark.program` does. If a later
    version cannot be used, a warning says so, and the one before stays.

    Raises:
        TamisError: the subscriptions cannot be used.
    """

    def __init__(
        self, path: str | os.PathLike[str], read: Callable[[], ProgramArtifact] | None = None
    ) -> None:
        self._path = Path(path)
        self._read = read or (lambda: program(self._path))
        self._seen = self._state()
        self._program = self._read()

    def now(self) -> ProgramArtifact:
        """The subscriptions as they are now."""
        seen = self._state()
        if seen not in (None, self._seen):
            self._seen = seen
            try:
                self._program = self._read()
            except TamisError as error:
                log.warning("%s: the subscriptions before it stay: %s", self._path, error)
        return self._program

    def _state(self) -> tuple[int, ...] | None:
        try:
            if is_store(self._path):  # which changes append to, or replace the files of
                files = [path.stat() for path in sorted(self._path.iterdir())]
            else:
                files = [self._path.stat()]
        except OSError:
            return None
        if not all(stat.S_ISREG(each.st_mode) for each in files):  # to read a pipe may never end
            return None
        return tuple(chain.from_iterable((f.st_ino, f.st_size, f.st_mtime_ns) for f in files))


def stream(  # noqa: PLR0913 - what may be asked
    spark: SparkSession,
    subscriptions: SubscriptionSet | Reloading,
    folders: Paths,
    output: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    record: str | None = None,
    errors: Errors = "column",
    declared_encoding: DeclaredEncoding = "check",
    on_bad_record: OnBadRecord = "stop",
    trigger: str | None = None,
    files_max: int = 1000,
    bytes_max: int = BATCH_BYTES_MAX,
    on_batch: OnBatch | None = None,
) -> StreamingQuery:
    """Match files that come into folders, and add the answers to Parquet or a database.

    Each micro-batch of Spark's is one run, and is published once, with its files in the manifest:
    into Parquet as a whole; the rows of a database count where ``tamis_runs`` has the run as done,
    and those of tables where the table of runs has their run.
    Other runs' manifests are not looked at. Whatever dies, the query goes on from its checkpoint
    when it is started again: no match is lost, and none is there twice.

    Args:
        spark: a session; not one of Spark Connect.
        subscriptions: as for :func:`tamis.spark.run`. A file of them is read again when it was
            changed, before the next micro-batch; ``set_version`` says which ones matched. (Spark
            keeps each version, as a file, until it stops.)
        folders: where ``*.xml`` and ``*.xml.gz`` come, as :func:`tamis.spark.run` finds them. Move
            complete files there; a file that is being written may have a name that begins with
            ``.``. A file whose size or time changes is answered again. A process of the driver's
            keeps all names in memory: move away what is done.
        output: a folder, as for :func:`tamis.spark.run`, or the URL of a PostgreSQL database
            (``postgresql://…``), which gets the tables ``tamis_matches``, ``tamis_errors`` and
            ``tamis_manifest``; the first two are keyed by batch, document and record, and
            subscription. Or tables of Spark's catalog (``table:NAME``), as for
            :func:`tamis.spark.run`.
        checkpoint: a folder for what Spark has to remember; by default inside the output's.
        record, errors, declared_encoding, on_bad_record: as for :func:`tamis.spark.run`.
        trigger: ``"10 seconds"``: how often to look; or ``"now"``: match what is there, and end.
            By default a micro-batch follows the other.
        files_max: how many files a micro-batch has at most.
        bytes_max: so many bytes end a micro-batch; a file that is larger is one by itself.
        on_batch: is called after each micro-batch.

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: the output cannot be written; or there is no place for the checkpoint.
    """
    if isinstance(subscriptions, Reloading):
        source = subscriptions
    elif isinstance(subscriptions, str | os.PathLike):
        source = Reloading(subscriptions)
    else:
        fixed = program(subscriptions)
        source = Reloading(fixed.path, lambda: fixed)
    store: ResultStore[Any]
    if checkpoint is None:
        check_is_folder(output)
    if is_postgres(output):
        store = PostgresStore(os.fspath(output))
    elif is_table(output):
        store = TableStore(spark, output)
    else:
        store = ParquetStore(output)
    checkpoint = os.fspath(checkpoint or Path(output, ".checkpoint"))
    if is_remote(checkpoint):
        raise UsageError(f"the checkpoint {checkpoint} is in no folder of this machine: name one")
    within = stream_folders(folders, trigger)
    for folder in within:
        warn_of_left_out(folder, list_folder(folder).left_out)
    kept = Path(local_path(checkpoint)).absolute()
    wanted: dict[str, Any] = {"record": record, "declared_encoding": declared_encoding}
    wanted |= {"errors": errors, "on_bad_record": on_bad_record}
    batches = _Batches(source, store, _name_of(kept), wanted, on_batch)
    batches.prepare()
    spark.dataSource.register(ArrivalsSource)
    reader = spark.readStream.format(ArrivalsSource.name())
    reader = reader.options(files_max=files_max, bytes_max=bytes_max)
    found = reader.options(folders=json.dumps(within), log=str(kept / LOG)).load()
    sums = F.count("path").alias("files"), F.sum("size").alias("bytes")
    writer = found.observe("tamis", *sums).writeStream.foreachBatch(batches)
    writer = writer.option("checkpointLocation", f"file://{kept}").queryName("tamis")
    if trigger == "now":
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    return writer.start()


def check_is_folder(output: str | os.PathLike[str]) -> None:
    """See that the output can have the checkpoint inside."""
    if is_postgres(output) or is_table(output):
        raise UsageError(
            "a stream into a database or tables needs a folder of its own (--checkpoint)"
        )


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


@dataclass
class _Batches:
    """What ``foreachBatch`` calls."""

    source: Reloading
    store: ResultStore[Any]
    name: str
    wanted: dict[str, Any]  # of ``MatchSpec.of``
    on_batch: OnBatch | None
    unfit: str = ""  # the newest set that cannot be used
    reported: str = ""  # the set of which it was said what was skipped

    def prepare(self) -> None:
        """See that the answers can be written where others are."""
        self.made = self.source.now()
        self._spec(self.made)
        with self.store.turn(waits=True):
            self.store.prepare(self.made.id_type)

    def _newest(self) -> ProgramArtifact:
        """The subscriptions as they are now, if what they are asked for can be said of them."""
        made = self.source.now()
        if made.identity in (self.made.identity, self.unfit):
            return self.made
        try:
            if not made.count:  # whose ids would be of any type
                made = replace(made, id_type=self.made.id_type)
            if made.id_type != self.made.id_type:
                raise UsageError(
                    f"ids of the type {made.id_type}, where results have {self.made.id_type}"
                )
            self._spec(made)
            self.made = made
        except UsageError as error:
            log.warning("the subscriptions before the new ones stay: %s", error)
            self.unfit = made.identity
        return self.made

    def _spec(self, made: ProgramArtifact) -> MatchSpec:
        return MatchSpec.of(made, **self.wanted)

    def __call__(self, batch: DataFrame, number: int) -> None:
        run = f"{self.name}-{number:08d}"
        with self.store.turn(waits=True):
            if self.store.is_done(run):  # Spark did not get to note it
                return
            made = self._newest()
            made.send(batch.sparkSession)
            found = [FileStatus(os.fsdecode(bytes(path)), *more) for path, *more in batch.collect()]
            # A file that was replaced comes with a later batch; what is gone is an error.
            files = [f for f in found if f.problem or status_of(f.path) in (f, FileStatus(f.path))]
            # What is wrong with subscriptions is written once.
            artifact = replace(made, refused=()) if self.reported == made.identity else made
            spec = self._spec(made)
            done = write_run(batch.sparkSession, self.store, run, artifact, spec, files)
        self.reported = made.identity
        log.info("%s: %s", run, done)
        if self.on_batch is not None:
            self.on_batch(run, made.set_version, done)


def _name_of(checkpoint: Path) -> str:
    """A name for the stream, which is kept with its checkpoint: another one has other batches."""
    file = checkpoint / "tamis-stream"
    if (checkpoint / "sources").exists() and not (checkpoint / LOG).exists():
        raise UsageError(
            f"the checkpoint {checkpoint} is of an earlier version of Tamis, which noted the files "
            "that were read in another way: name another folder for it"
        )
    try:
        checkpoint.mkdir(parents=True, exist_ok=True)
        if not file.exists() or not file.stat().st_size:
            beside = file.with_name(f".{uuid4().hex}")
            beside.write_text(f"stream-{uuid4().hex[:12]}")
            to_disk(beside)
            beside.rename(file)
        return file.read_text()
    except OSError as error:
        raise UnwritableOutput(f"cannot write {checkpoint}: {error.strerror}") from None


# -- the source of files ---------------------------------------------------------------------------


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
        self, folders: Sequence[str], log: Path, files_max: int, bytes_max: int = BATCH_BYTES_MAX
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
        types = pa.binary(), pa.int64(), pa.int64(), pa.string()
        schema = pa.schema(list(zip(FileStatus._fields, types, strict=True)))
        rows = [{**f._asdict(), "path": os.fsencode(f.path)} for f in partition.value]
        yield pa.RecordBatch.from_pylist(rows, schema)

    def commit(self, end: dict[str, int]) -> None:
        self.waiting = {n: files for n, files in self.waiting.items() if n > end["batch"]}
