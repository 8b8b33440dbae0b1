"""The stream of ``tamis run --stream``: files that come into folders, answered batch by batch."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.streaming.query import StreamingQuery as StreamingQuery  # noqa: PLC0414 - it is for the command line, too

from tamis.errors import TamisError, UsageError
from tamis.spark.files import AnswerPieces, Paths, path_list
from tamis.spark.job import Place, Summary, write_run
from tamis.spark.listing import Listed
from tamis.spark.output import Output
from tamis.spark.postgres import Postgres, is_postgres
from tamis.spark.program import Program
from tamis.spark.rows import Errors, Form
from tamis.spark.subscriptions import SubscriptionSet, program

log = logging.getLogger("tamis.spark")

Told = Callable[[str, str, Summary], None]
"""Is told of each batch: its name, the version of the set, and what was done."""


class Reloading:
    """Subscriptions of a file, read again when it was changed or replaced.

    Args:
        path: the file.
        read: makes a program of it; by default :func:`tamis.spark.program` does.

    Raises:
        TamisError: they cannot be used. Of a later version that cannot be, that is logged, and the
            one before stays.
    """

    def __init__(
        self, path: str | os.PathLike[str], read: Callable[[], Program] | None = None
    ) -> None:
        self._path = Path(path)
        self._read = read or (lambda: program(self._path))
        self._seen = self._state()
        self._program = self._read()

    def now(self) -> Program:
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
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns


def stream(  # noqa: PLR0913 - what may be asked
    spark: SparkSession,
    subscriptions: SubscriptionSet | Reloading,
    folders: Paths,
    output: str | os.PathLike[str],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    record: str | None = None,
    errors: Errors = "column",
    trigger: str | None = None,
    files_max: int = 1000,
    told: Told | None = None,
) -> StreamingQuery:
    """Match files that come into folders, and add the answers to Parquet or a database.

    Each micro-batch of Spark's is one run: it is published as a whole, once, and so are its files
    noted in the manifest. Whatever dies, the query goes on from its checkpoint when it is started
    again: no match is lost, and none is there twice. Files have to be complete when they come (move
    them into the folder).

    Args:
        spark: a session; not one of Spark Connect.
        subscriptions: as for :func:`tamis.spark.run`. A file of them is read again when it was
            changed, before the next micro-batch; ``set_version`` says which ones matched.
        folders: where ``*.xml`` and ``*.xml.gz`` come.
        output: a folder, as for :func:`tamis.spark.run`, or the URL of a PostgreSQL database
            (``postgresql://…``), which gets the tables ``tamis_matches``, ``tamis_errors`` and
            ``tamis_manifest``; the first two are keyed by batch, document and record, and
            subscription.
        checkpoint: a folder for what Spark has to remember; by default inside the output's.
        record, errors: as for :func:`tamis.spark.run`.
        trigger: ``"10 seconds"``: how often to look; or ``"now"``: match what is there, and end.
            By default a micro-batch follows the other.
        files_max: how many files a micro-batch has at most.
        told: is called after each micro-batch.

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
    place: Output | Postgres
    if is_postgres(output):
        place = Postgres(os.fspath(output))
        if checkpoint is None:
            raise UsageError("a stream into a database needs a folder for its checkpoint")
    else:
        place = Output(output)
    kept = Path(checkpoint or Path(output, ".checkpoint")).absolute()
    batches = _Batches(source, place, _name_of(kept), record, errors, told)
    batches.check()
    writer = arriving(spark, path_list(folders), files_max).writeStream.foreachBatch(batches)
    writer = writer.option("checkpointLocation", str(kept)).queryName("tamis")
    if trigger == "now":
        writer = writer.trigger(availableNow=True)
    elif trigger is not None:
        writer = writer.trigger(processingTime=trigger)
    return writer.start()


def arriving(spark: SparkSession, folders: Iterable[str], files_max: int) -> DataFrame:
    """The files that come into folders: paths, sizes, times; nothing of what is in them."""
    reader = (
        spark.readStream.format("binaryFile")
        .option("maxFilesPerTrigger", files_max)
        .option("pathGlobFilter", "*.{xml,xml.gz}")
        .schema("path string, modificationTime timestamp, length long, content binary")
    )
    frames = [
        reader.load(os.path.abspath(folder)).select(
            "path", "length", F.unix_micros("modificationTime").alias("modified")
        )
        for folder in folders
    ]
    if not frames:
        raise UsageError("which folders?")
    return reduce(DataFrame.unionAll, frames).observe(
        "tamis", F.count("path").alias("files"), F.sum("length").alias("bytes")
    )


class _Batches:
    """What ``foreachBatch`` calls."""

    def __init__(
        self,
        source: Reloading,
        place: Output | Postgres,
        name: str,
        record: str | None,
        errors: Errors,
        told: Told | None,
    ) -> None:
        self.source = source
        self.place = place
        self.name = name
        self.record = record
        self.errors = errors
        self.told = told
        self.reported = ""  # the set of which it was said what was skipped

    def check(self) -> None:
        """See that the answers can be written where others are."""
        self._form(self.source.now())
        self.place.check_ids(self.source.now().id_type)

    def _form(self, made: Program) -> Form:
        return Form.of(made, self.record, False, None, self.errors)

    def __call__(self, batch: DataFrame, number: int) -> None:
        run = f"{self.name}-{number:08d}"
        if run in self.place.runs():  # Spark did not get to note that it is done
            return
        self.place.remove_unfinished()
        made = self.source.now().send(batch.sparkSession)
        self.place.check_ids(made.id_type)
        # Spark takes a ? in a file's name for a pattern, and tells the others beside it twice.
        rows = {row.path: row for row in batch.collect()}
        files = [
            Listed(_path_of(path), row.length, row.modified * 1000) for path, row in rows.items()
        ]
        refused = made.refused if self.reported != made.identity else ()
        answer = AnswerPieces(replace(made, refused=()), self._form(made))
        place: Place[Any] = self.place
        done = write_run(batch.sparkSession, place, run, answer, files, refused=refused)
        self.reported = made.identity
        log.info("%s: %s", run, done)
        if self.told is not None:
            self.told(run, made.set_version, done)


def _path_of(uri: str) -> str:
    """The path of a file of this machine that Spark tells as a URI, or the URI.

    >>> _path_of("file:/in/1 %41.xml"), _path_of("hdfs://there/1.xml")
    ('/in/1 %41.xml', 'hdfs://there/1.xml')
    """
    return uri.removeprefix("file:") if uri.startswith("file:/") else uri


def _name_of(checkpoint: Path) -> str:
    """A name for the stream, which is kept with its checkpoint: another one has other batches.

    Raises:
        UsageError: it cannot be kept there.
    """
    file = checkpoint / "tamis-stream"
    try:
        checkpoint.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            beside = file.with_name(f".{uuid4().hex}")
            beside.write_text(f"stream-{uuid4().hex[:12]}")
            beside.rename(file)
        return file.read_text()
    except OSError as error:
        raise UsageError(f"cannot write {checkpoint}: {error.strerror}") from None
