"""Tasks that write: answers go from Spark's Python workers into a place, and are published there.

Neither documents nor answers enter the JVM: what tasks get are paths, and what they return is a row
about what they wrote.
"""

from __future__ import annotations

import logging
import os
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, LongType, StringType, StructType

from tamis.core.errors import DocumentError, SubscriptionError, UnreadableDocument
from tamis.spark.files import AnswerPieces, Counts
from tamis.spark.listing import Listed
from tamis.spark.output import ERRORS, MATCHES, RESULTS, Run, rows_about
from tamis.spark.pieces import Piece, pieces_of, shares
from tamis.spark.program import Program

log = logging.getLogger("tamis.spark")

# What a task tells of what it wrote: a file, or ""; with which part of
# the program; and the numbers of files, and messages, see ``Counts``.
_DONE = (
    StructType()
    .add("file", StringType())
    .add("documents", LongType())
    .add(MATCHES, LongType())
    .add(ERRORS, LongType())
    .add("part", LongType())
    .add("unreadable", ArrayType(LongType()))
    .add("read", ArrayType(LongType()))
    .add("left_out", ArrayType(StringType()))
)


class Summary(NamedTuple):
    """What a job did.

    Attributes:
        documents: how many there were, those in error included.
        bytes: their size, as they are in their files.
        matches: rows written to ``matches``.
        errors: rows written to ``errors``, one a document, or record, in error, a subscription that
            failed on one, or one that was skipped.
        seconds: from listing the documents to the last file written.
        plan: how documents and subscriptions were divided among tasks.

    >>> print(Summary(391, 4_100_000, 1_204, 1, 4.1))
    391 documents (4.1 MB), 1,204 matches, 1 error; 4.1 s, 1.0 MB/s
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
            f"{_counted(self.errors, 'error')}; "
            f"{self.seconds:,.1f} s, {megabytes / self.seconds:,.1f} MB/s"
        )


def _counted(number: int, noun: str, plural: str = "s") -> str:
    return f"{number:,} {noun}{'' if number == 1 else plural}"


class Sink(Protocol):
    """Where tasks write."""

    def write(self, task: int, batches: Iterator[pa.RecordBatch]) -> dict[str, Any]:
        """Write what one attempt of a task has.

        Returns:
            ``file``, its name or ""; how many rows of ``matches`` and ``errors``; and ``is_first``:
            whether these are of this attempt, and not of another one that was faster.
        """
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
        for said in {said: None for part in parts for said in part["left_out"]}:
            log.warning("%s", said)
        counted = {kind: [part["file"] for part in parts if part[kind]] for kind in RESULTS}
        read, incomplete = _read_by_all(files, parts, len(made.shares))
        wrong = rows_about(refused, incomplete, made.id_type)
        place.publish(sink, Run(name, made.id_type, form.set_version, counted, read, wrong))
    return Summary(
        documents=sum(part["documents"] for part in parts),
        bytes=sum(file.size for file in files),
        matches=sum(part[MATCHES] for part in parts),
        errors=sum(part[ERRORS] for part in parts) + wrong.num_rows,
        seconds=time.monotonic() - start,
        plan=plan,
    )


def _read_by_all(
    files: Sequence[Listed], done: Sequence[Mapping[str, Any]], parts: int
) -> tuple[list[Listed], dict[str, DocumentError]]:
    """The files that were read; and those that could not be by each part of a divided program."""
    missed: list[set[int]] = []
    for part in range(parts):
        tasks = [task for task in done if task["part"] == part]
        unreadable, read = (
            {number for task in tasks for number in task[name]} for name in ("unreadable", "read")
        )
        missed.append(unreadable - read)
    unread = set.intersection(*missed)
    error = UnreadableDocument("some tasks could not read it: not all matches are there")
    partly = sorted(set.union(*missed) - unread)
    incomplete: dict[str, DocumentError] = {files[number].path: error for number in partly}
    return [file for number, file in enumerate(files) if number not in unread], incomplete


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
    done = rows.select("share").mapInArrow(task, _DONE)
    sums = [F.sum(name).alias(name) for name in ("documents", MATCHES, ERRORS)]
    return [row.asDict() for row in done.observe("tamis", *sums).collect()]


@dataclass(frozen=True, slots=True)
class WriteTask:
    """The function that ``mapInArrow`` calls to write answers; it returns one row about them.

    Attributes:
        answer: what answers documents.
        sink: what writes the rows.
    """

    answer: AnswerPieces
    sink: Sink

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            done = [self._done(*pickle.loads(share.as_py())) for share in batch["share"]]
            yield pa.RecordBatch.from_pylist(done, to_arrow_schema(_DONE, timezone="UTC"))

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
            "part": part,
            "unreadable": sorted(counts.unreadable) if written["is_first"] else [],
            "read": sorted(counts.read) if written["is_first"] else [],
            "left_out": counts.left_out,
        }
