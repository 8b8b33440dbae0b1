"""Jobs: files in, results out, as ``tamis run`` makes them.

Spark's Python workers write answers into a store, where the driver publishes them. Documents do not
enter the JVM, and answers only where Spark writes them into tables: tasks get paths, and return one
row about what they wrote.
"""

from __future__ import annotations

import logging
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import from_arrow_schema

from tamis.core.errors import DocumentError, UnreadableDocument, UsageError
from tamis.documents.encodings import DeclaredEncoding
from tamis.documents.files import FileStatus
from tamis.documents.record_batch import OnBadRecord
from tamis.spark.answers import AnswerSplits, Counts, MatchSpec
from tamis.spark.files import Paths, path_list
from tamis.spark.parquet import ParquetStore
from tamis.spark.program import ProgramArtifact, SubscriptionSet, program
from tamis.spark.results import (
    ERRORS,
    MATCHES,
    RESULTS,
    ResultStore,
    Run,
    Sink,
    new_run,
    rows_about,
)
from tamis.spark.rows import Errors
from tamis.spark.session import described, is_remote
from tamis.spark.splits import InputSplit, check_paths, list_files, partitions, splits_of
from tamis.spark.tables import TableSink, TableStore, is_table

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

log = logging.getLogger("tamis.spark")

PROGRESS_SECONDS = 1.0
"""How often a job tells how far it is."""

# The row of a task: the file that it wrote, or ""; its part of the program; and ``Counts``.
_DONE = pa.schema(
    {
        "file": pa.string(),
        **dict.fromkeys(("documents", "records", MATCHES, ERRORS, "part"), pa.int64()),
        **dict.fromkeys(("unreadable", "read"), pa.list_(pa.int64())),
        "left_out": pa.list_(pa.string()),
    }
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


class Progress(NamedTuple):
    """How far a job is: what the tasks that are done have counted, as in :class:`Summary`.

    Attributes:
        bytes_all: the size of all files; of a divided program, as often as they are read.
        seconds: since the first task could begin.

    >>> print(Progress(2_000, 50_000_000, 300, 1, 200_000_000, 10))
    2,000 documents (50.0 of 200.0 MB), 300 matches, 1 error; 200 documents/s, 5.0 MB/s, 30 s left
    """

    documents: int = 0
    bytes: int = 0
    matches: int = 0
    errors: int = 0
    bytes_all: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        speed = self.bytes / self.seconds if self.seconds else 0
        left = f"{(self.bytes_all - self.bytes) / speed:,.0f} s left" if speed else "begun"
        return (
            f"{_counted(self.documents, 'document')} "
            f"({self.bytes / 1e6:,.1f} of {self.bytes_all / 1e6:,.1f} MB), "
            f"{_counted(self.matches, 'match', 'es')}, {_counted(self.errors, 'error')}; "
            f"{self.documents / (self.seconds or 1):,.0f} documents/s, "
            f"{speed / 1e6:,.1f} MB/s, {left}"
        )


def _counted(number: int, noun: str, plural: str = "s") -> str:
    return f"{number:,} {noun}{'' if number == 1 else plural}"


OnProgress = Callable[[Progress], None]


def run(  # noqa: PLR0913 - what may be asked
    spark: SparkSession,
    subscriptions: SubscriptionSet,
    paths: Paths,
    output: str | os.PathLike[str],
    *,
    record: str | None = None,
    errors: Errors = "column",
    declared_encoding: DeclaredEncoding = "check",
    on_bad_record: OnBadRecord = "stop",
    overwrite: bool = False,
    only_new: bool = False,
    on_progress: OnProgress | None = None,
) -> Summary:
    """Match files, and write what matched and what was in error as Parquet, or into tables.

    Spark's tasks get paths, about equal in bytes, and its Python workers read, match and write. All
    of them must see the files and the output under the same paths as this process.

    The output has

    * ``matches(document string, record long, subscription, set_version string, tamis_version
      string)``, one row a match;
    * ``errors(document string, record long, code string, message string, line long, column long,
      offset long, subscription)``, one row a document, or record, in error; or, with
      ``subscription``, one row a subscription that could not be answered for one;
    * ``manifest(file, size, modified, set_version, tamis_version, run, read)``: the files that were
      read, by absolute paths, and with which subscriptions. A file that could not be read at all is
      in ``errors`` alone.

    They appear when the job is done, whatever is wrong with single documents: file by file, and
    last of all the manifest's, whose runs are whole. A job that failed, or whose driver died,
    leaves nothing that the next one does not remove. One job at a time writes into a folder.

    Args:
        spark: any session.
        subscriptions: whatever :func:`tamis.spark.program` takes, or what it makes.
        paths, record, declared_encoding, on_bad_record: as for :func:`tamis.spark.match_files`.
        output: the folder to hold the folders ``matches``, ``errors`` and ``manifest``; or
            ``table:NAME``: tables of Spark's catalog, ``NAME_matches``, ``NAME_errors``,
            ``NAME_manifest`` and ``NAME_runs``, which are made where they are not there. Rows count
            where ``NAME_runs`` has their ``run``.
        errors: "column" to write them, "drop" not to, "fail" to end with the first.
        overwrite: replace these folders, if they exist; nothing else in ``output`` is touched. Not
            of tables.
        only_new: match the files whose path, size and time are not in the manifest, and add to the
            answers that are there. A file that could not be read is tried again each time.
        on_progress: is called about once a second from another thread, and when all tasks are done.
            Tasks add to it as they end, by an accumulator of Spark's: so not through Spark Connect.

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: a path leads nowhere; or the output has results already, or cannot be written.
    """
    check_paths(path_list(paths))
    store: ParquetStore | TableStore
    if not is_table(output):
        store = ParquetStore(output, overwrite=overwrite)
    elif overwrite:
        raise UsageError(f"{output} is not replaced: delete rows, or add what is new (--only-new)")
    else:
        store = TableStore(spark, output)
    must_be_new = not (overwrite or only_new)
    if must_be_new:
        with store.turn():
            store.check_new()
    made = program(subscriptions)
    made.send(spark)
    wanted: dict[str, Any] = {"declared_encoding": declared_encoding}
    spec = MatchSpec.of(made, errors, record, **wanted, on_bad_record=on_bad_record)
    start = time.monotonic()
    with store.turn():
        if must_be_new:  # still, after the subscriptions were compiled
            store.check_new()
        store.prepare(made.id_type)
        files = list_files(path_list(paths))
        if only_new:
            files = store.not_in_manifest(files)
            if not files and store.existing:
                return Summary(0, 0, 0, 0, time.monotonic() - start)
        done = write_run(spark, store, new_run(), made, spec, files, on_progress)
    return done._replace(seconds=time.monotonic() - start)


def write_run(
    spark: SparkSession,
    store: ResultStore[Any],
    name: str,
    made: ProgramArtifact,
    spec: MatchSpec,
    files: Sequence[FileStatus],
    on_progress: OnProgress | None = None,
) -> Summary:
    """Match files, and publish the answers, and what is wrong with subscriptions, as one run."""
    start = time.monotonic()
    splits = splits_of(files, os.getcwd(), spec.record, made.limits)
    assigned = product(partitions(splits), range(len(made.partitions)))
    tasks = [(task, part, of_task) for task, (of_task, part) in enumerate(assigned)]
    plan = planned(made, len(tasks) // len(made.partitions))
    log.info("%s: %s", name, plan)
    with store.sink(name, made.id_type) as sink:
        answer = AnswerSplits(replace(made, refused=()), spec)
        size = sum(split.size for _, _, of_task in tasks for split in of_task)
        with (
            described(spark, f"tamis {name}: {len(files):,} files, {plan}"),
            _watched(spark, size, on_progress) as counted_so_far,
        ):
            rows = on_workers(spark, tasks, WriteTask(answer, sink, counted_so_far))
            parts = collected(store.keep(rows) if isinstance(store, TableStore) else rows)
        for message in dict.fromkeys(message for part in parts for message in part["left_out"]):
            log.warning("%s", message)
        if files and spec.record is not None and not any(part["records"] for part in parts):
            log.warning(
                "there is no record %s: write the tag as the documents do, with its prefix; or its "
                "namespace and name, {uri}name",
                spec.record,
            )
        counted = {kind: [part["file"] for part in parts if part[kind]] for kind in RESULTS}
        read, incomplete = _read_by_all(files, parts, len(made.partitions))
        wrong = rows_about(made.refused, incomplete, made.id_type)
        store.publish(sink, Run(name, made.id_type, spec.set_version, counted, read, wrong))
    return Summary(
        documents=sum(part["documents"] for part in parts),
        bytes=sum(file.size for file in files),
        matches=sum(part[MATCHES] for part in parts),
        errors=sum(part[ERRORS] for part in parts) + wrong.num_rows,
        seconds=time.monotonic() - start,
        plan=plan,
    )


@contextmanager
def _watched(
    spark: SparkSession, size: int, on_progress: OnProgress | None
) -> Iterator[Accumulator[Progress] | None]:
    """What tasks add their counts to, and a thread that tells of them."""
    if on_progress is None or is_remote(spark):
        yield None
        return
    from pyspark.accumulators import AccumulatorParam  # noqa: PLC0415 - the client lacks it

    class Sums(AccumulatorParam[Progress]):
        def zero(self, value: Progress) -> Progress:
            return value

        def addInPlace(self, one: Progress, other: Progress) -> Progress:  # noqa: N802 - Spark's
            return Progress(*map(add, one, other))

    found = spark.sparkContext.accumulator(Progress(), Sums())
    start = time.monotonic()
    is_over = threading.Event()

    def tell() -> None:
        was_over = False
        while not was_over:
            was_over = is_over.wait(PROGRESS_SECONDS)
            seconds = time.monotonic() - start
            on_progress(found.value._replace(bytes_all=size, seconds=seconds))

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        is_over.set()
        thread.join()


def _read_by_all(
    files: Sequence[FileStatus], done: Sequence[Mapping[str, Any]], parts: int
) -> tuple[list[FileStatus], dict[str, DocumentError]]:
    """The files that were read; and those that could not be by each part of a divided program."""

    def numbers(part: int, name: str) -> set[int]:
        return {number for task in done if task["part"] == part for number in task[name]}

    missed = [numbers(part, "unreadable") - numbers(part, "read") for part in range(parts)]
    unread = set.intersection(*missed)
    error = UnreadableDocument("some tasks could not read it: not all matches are there")
    partly = sorted(set.union(*missed) - unread)
    incomplete: dict[str, DocumentError] = {files[number].path: error for number in partly}
    return [file for number, file in enumerate(files) if number not in unread], incomplete


def planned(made: ProgramArtifact, tasks: int) -> str:
    """How work is divided, in words; ``tasks`` share the documents."""
    parts = len(made.partitions)
    size = f"a program of {made.size / 1e6:,.0f} MB"
    if parts == 1:
        return f"{_counted(tasks, 'task')} share the documents, with {size}"
    kind = f"in {parts} parts, each for {_counted(tasks, 'task')} of its own"
    return f"{parts * tasks:,} tasks: {size} {kind}"


def on_workers(
    spark: SparkSession, tasks: Sequence[tuple[int, int, Sequence[InputSplit]]], task: WriteTask
) -> DataFrame:
    """What tasks give that do their splits, each by its number and with its part of the program."""
    numbers = pa.array(range(len(tasks)), pa.int32())
    pickled = pa.array([pickle.dumps(found) for found in tasks], pa.binary())
    table = pa.table({"task": numbers, "splits": pickled})
    rows = spark.createDataFrame(table).repartitionById(max(1, len(tasks)), F.col("task"))
    return rows.select("splits").mapInArrow(task, from_arrow_schema(task.schema))


def collected(done: DataFrame) -> list[dict[str, Any]]:
    """The rows about tasks, when these are done."""
    sums = [F.sum(name).alias(name) for name in ("documents", MATCHES, ERRORS)]
    found = done.select(_DONE.names).observe("tamis", *sums).collect()
    return [row.asDict() for row in found]


@dataclass(frozen=True, slots=True)
class WriteTask:
    """The function that ``mapInArrow`` calls to write answers; it gives one row about them.

    Where Spark writes, it gives the answers too.
    """

    answer: AnswerSplits
    sink: Sink | TableSink
    progress: Accumulator[Progress] | None = None

    @property
    def schema(self) -> pa.Schema:
        own = self.sink.schema() if isinstance(self.sink, TableSink) else ()
        return pa.schema([*_DONE, *own])

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for found in batch["splits"]:
                yield from self._done(*pickle.loads(found.as_py()))

    def _done(self, task: int, part: int, splits: Sequence[InputSplit]) -> Iterator[pa.RecordBatch]:
        counts = Counts()
        program = self.answer.program.partitions[part]
        answer = replace(self.answer, program=program, reports_errors=part == 0)
        answers = answer(splits, counts)
        written: dict[str, Any] = {"file": "", "is_first": True, **dict.fromkeys(RESULTS, 0)}
        if isinstance(self.sink, TableSink):
            for rows in self.sink.rows(answers, written):
                unknown = [pa.nulls(rows.num_rows, field.type) for field in _DONE]
                yield pa.RecordBatch.from_arrays([*unknown, *rows.columns], schema=self.schema)
        else:
            written = self.sink.write(task, answers)
        is_first = written.pop("is_first")
        done = written | {
            "documents": 0 if part else counts.documents,
            "records": counts.records,
            "part": part,
            "unreadable": sorted(counts.unreadable) if is_first else [],
            "read": sorted(counts.read) if is_first else [],
            "left_out": counts.left_out,
        }
        if self.progress is not None:
            size = sum(split.size for split in splits)
            found = (done["documents"], size, done[MATCHES], done[ERRORS])
            self.progress.add(Progress(*found))
        yield pa.RecordBatch.from_pylist([done], self.schema)
