"""The job of ``tamis run``: files in, Parquet out."""

from __future__ import annotations

import logging
import os
import pickle
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from tamis.errors import SubscriptionError
from tamis.spark.files import AnswerPieces, Counts, Paths, path_list
from tamis.spark.listing import Listed, list_files
from tamis.spark.output import ERRORS, MATCHES, RESULTS, Output, Run, new_run
from tamis.spark.pieces import Piece, pieces_of, shares
from tamis.spark.program import Program
from tamis.spark.rows import Errors, Form
from tamis.spark.subscriptions import SubscriptionSet, program

log = logging.getLogger("tamis.spark")


class Summary(NamedTuple):
    """What a job did.

    Attributes:
        documents: how many there were, those in error included.
        bytes: their size, as they are in their files.
        matches: rows written to ``matches``.
        errors: rows written to ``errors``, one a document, or record, in error, or a subscription
            that was skipped.
        seconds: from listing the documents to the last file written.
        plan: how documents and subscriptions were divided among tasks.

    >>> print(Summary(391, 4_100_000, 1_204, 1, 4.1))
    391 documents (4.1 MB), 1,204 matches, 1 document in error; 4.1 s after Spark's start, 1.0 MB/s
    """

    documents: int
    bytes: int
    matches: int
    errors: int
    seconds: float
    plan: str = ""

    def __str__(self) -> str:
        megabytes = self.bytes / 1e6
        return (
            f"{_counted(self.documents, 'document')} ({megabytes:,.1f} MB), "
            f"{_counted(self.matches, 'match', 'es')}, "
            f"{_counted(self.errors, 'document')} in error; "
            f"{self.seconds:,.1f} s after Spark's start, {megabytes / self.seconds:,.1f} MB/s"
        )


def _counted(number: int, noun: str, plural: str = "s") -> str:
    return f"{number:,} {noun}{'' if number == 1 else plural}"


def run(
    spark: SparkSession,
    subscriptions: SubscriptionSet,
    paths: Paths,
    output: str | os.PathLike[str],
    *,
    record: str | None = None,
    errors: Errors = "column",
    overwrite: bool = False,
    only_new: bool = False,
) -> Summary:
    """Match files, and write what matched and what was in error as Parquet.

    Spark's tasks get paths, about equal in bytes. Its Python workers read, parse and match the
    files and write the results: neither XML nor matches enter the JVM. All workers must see the
    files and the output under the same paths as this process.

    The output has

    * ``matches(document string, record long, subscription, set_version string, tamis_version
      string)``, one row a match;
    * ``errors(document string, record long, code string, message string, line int, column int,
      offset long)``, one row a document, or record, in error;
    * ``manifest(file, size, modified, set_version, tamis_version, run, read)``: the files that were
      read, by absolute paths, and with which subscriptions.

    They appear when the job is done, whatever is wrong with single documents: file by file, at last
    that of the manifest, whose runs are those that are whole. A job that failed, or whose driver
    died, leaves nothing that the next one does not remove. One job at a time writes into a folder.

    Args:
        spark: any session.
        subscriptions: whatever :func:`tamis.spark.program` takes, or what it makes.
        paths, record: as for :func:`tamis.spark.match_files`.
        output: the folder to hold the folders ``matches``, ``errors`` and ``manifest``.
        errors: "column" to write them, "drop" not to, "fail" to end with the first.
        overwrite: replace these folders, if they exist; nothing else in ``output`` is touched.
        only_new: match what is not in the manifest as it is now (by path, size and time), and add
            the answers to those that are there. To do so again does nothing.

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: the output has results already, or cannot be written.
    """
    place = Output(output, overwrite=overwrite)
    if not (overwrite or only_new):
        place.check_new()
    made = program(subscriptions).send(spark)
    form = Form.of(made, record, False, None, errors)
    answer = AnswerPieces(replace(made, refused=()), form)
    start = time.monotonic()
    with place.turn():
        place.prepare(made.id_type)
        files = list_files(path_list(paths))
        if only_new:
            files = place.unread(files)
            if not files and place.existing:
                return Summary(0, 0, 0, 0, time.monotonic() - start)
        done = write_run(spark, place, new_run(), answer, files, refused=made.refused)
    return done._replace(seconds=time.monotonic() - start)


class Sink(Protocol):
    """Where tasks write."""

    def write(self, task: int, batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
        """Write what one attempt of a task has; see :meth:`ParquetSink.write`."""
        ...


S = TypeVar("S", bound=Sink)


class Place(Protocol[S]):
    """Where the results of runs are: a folder of Parquet, or a database."""

    def turn(self, *, waits: bool = False) -> AbstractContextManager[None]:
        """Be the only driver that writes, where two would harm each other."""
        ...

    def prepare(self, id_type: str) -> None:
        """Make ready what was not used yet, or not since a driver died."""
        ...

    def is_done(self, run: str) -> bool:
        """Whether a run was published."""
        ...

    def sink(self, run: str, id_type: str) -> AbstractContextManager[S]:
        """Where the tasks of a run write."""
        ...

    def publish(self, sink: S, written: Run) -> None:
        """Make what the tasks wrote a result."""
        ...


def write_run(
    spark: SparkSession,
    place: Place[S],
    name: str,
    answer: AnswerPieces,
    files: Sequence[Listed],
    refused: Sequence[SubscriptionError] = (),
) -> Summary:
    """Match files, and publish the answers as one run."""
    start = time.monotonic()
    made, form = answer.program, answer.form
    pieces = pieces_of(files, os.getcwd(), form.record, made)
    divided = product(shares(pieces), range(len(made.shares)))
    tasks = [(task, part, share) for task, (share, part) in enumerate(divided)]
    plan = planned(made, len(tasks) // len(made.shares))
    log.info("%s: %s", name, plan)
    with place.sink(name, made.id_type) as sink:
        parts = on_workers(spark, tasks, WriteTask(answer, sink))
        counted = {folder: [part["file"] for part in parts if part[folder]] for folder in RESULTS}
        written = Run(name, made.id_type, form.set_version, counted, files, refused)
        place.publish(sink, written)
    return Summary(
        documents=sum(part["documents"] for part in parts),
        bytes=sum(file.size for file in files),
        matches=sum(part[MATCHES] for part in parts),
        errors=sum(part[ERRORS] for part in parts) + len(refused),
        seconds=time.monotonic() - start,
        plan=plan,
    )


def planned(made: Program, tasks: int) -> str:
    """How work is divided, in words.

    Args:
        tasks: among which documents are divided.
    """
    parts = len(made.shares)
    size = f"a program of {made.size / 1e6:,.0f} MB"
    if parts == 1:
        return f"{_counted(tasks, 'task')} share the documents, with {size}"
    kind = f"in {parts} parts, each for {_counted(tasks, 'task')} of its own"
    return f"{parts * tasks:,} tasks: {size} {kind}"


def on_workers(
    spark: SparkSession, tasks: Sequence[tuple[int, int, Sequence[Piece]]], task: WriteTask
) -> list[dict[str, Any]]:
    """Have tasks do their shares, each by its number and with its part of the program."""
    table = pa.table(
        {
            "task": pa.array(range(len(tasks)), pa.int32()),
            "share": pa.array([pickle.dumps(share) for share in tasks], pa.binary()),
        }
    )
    rows = spark.createDataFrame(table).repartitionById(max(1, len(tasks)), F.col("task"))
    done = rows.select("share").mapInArrow(task, WriteTask.RETURNS)
    sums = [F.sum(name).alias(name) for name in ("documents", MATCHES, ERRORS)]
    return [row.asDict() for row in done.observe("tamis", *sums).collect()]


@dataclass(frozen=True, slots=True)
class WriteTask:
    """The function that ``mapInArrow`` calls to write answers; it returns one row about them.

    Attributes:
        answer: what answers documents.
        sink: what writes the rows.
    """

    RETURNS = "file string, documents long, matches long, errors long"

    answer: AnswerPieces
    sink: Sink

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            done = [self._done(*pickle.loads(share.as_py())) for share in batch["share"]]
            yield pa.RecordBatch.from_pylist(done)

    def _done(self, task: int, part: int, pieces: Sequence[Piece]) -> dict[str, Any]:
        counts = Counts()
        program = self.answer.program.shares[part]
        answer = replace(self.answer, program=program, tells_errors=part == 0)
        written = self.sink.write(task, answer(pieces, counts))
        return {
            "file": written["file"],
            "documents": 0 if part else counts.documents,
            MATCHES: written[MATCHES],
            ERRORS: written[ERRORS],
        }
