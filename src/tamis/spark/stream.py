"""The stream of ``tamis run --stream``: files that come into folders, answered batch by batch.

``arrivals.py`` finds the files; its log is in the checkpoint.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from tamis.core.arguments import is_store
from tamis.core.errors import TamisError, UnwritableOutput, UsageError
from tamis.documents.encodings import DeclaredEncoding
from tamis.documents.files import FileStatus
from tamis.documents.record_batch import OnBadRecord
from tamis.spark.answers import MatchSpec
from tamis.spark.arrivals import (
    BATCH_BYTES_MAX,
    BATCH_FILES_MAX,
    LOG,
    ArrivalsSource,
    as_they_were,
    stream_folders,
    warn_of_others,
)
from tamis.spark.files import Paths
from tamis.spark.filesystems import is_remote, local_path
from tamis.spark.job import Summary, write_run
from tamis.spark.parquet import ParquetStore, to_disk
from tamis.spark.postgres import PostgresStore, is_postgres
from tamis.spark.program import ProgramArtifact, SubscriptionSet, program
from tamis.spark.results import ResultStore
from tamis.spark.rows import Errors
from tamis.spark.tables import TableStore, is_table

if TYPE_CHECKING:  # it needs Py4J, which who has only the client of Spark Connect has not
    from pyspark.sql.streaming.query import StreamingQuery as StreamingQuery  # noqa: PLC0414

log = logging.getLogger("tamis.spark")

OnBatch = Callable[[str, str, Summary], None]
"""Is told of each batch: its name, the version of the set, and what was done."""


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
    files_max: int = BATCH_FILES_MAX,
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
    warn_of_others(within)
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
            files = as_they_were(found)
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
