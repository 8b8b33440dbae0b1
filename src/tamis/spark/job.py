"""The batch job of ``tamis run``: files in, Parquet out."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it

from tamis.spark.frames import SubscriptionSet, compiled
from tamis.spark.listing import Listed, deal, list_documents
from tamis.spark.output import ERRORS, MATCHES, WriteTask, check_output, publish, staged
from tamis.spark.worker import AnswerTask, ShippedMatcher, printable


class Summary(NamedTuple):
    """What a job did.

    Attributes:
        documents: how many there were, those in error included.
        bytes: their size.
        matches: rows written to ``matches``.
        errors: rows written to ``errors``, one a document in error.
        seconds: from listing the documents to the last file written.

    >>> print(Summary(391, 4_100_000, 1_204, 1, 4.1))
    391 documents (4.1 MB), 1,204 matches, 1 document in error; 4.1 s after Spark's start, 1.0 MB/s
    """

    documents: int
    bytes: int
    matches: int
    errors: int
    seconds: float

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
    paths: Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> Summary:
    """Match files, and write what matched and what was in error as Parquet.

    Spark's tasks get paths, about equal in bytes. Its Python workers read, parse and match the
    files and write the results: neither XML nor matches enter the JVM. All workers must see the
    files and the output under the same paths as this process.

    The output has ``matches(document string, record long, subscription string)``, one row a match,
    where ``record`` is null, and ``errors(document string, record long, code string, message
    string, line int, column int)``, one row a document in error. Both appear when the job is done,
    whatever is wrong with single documents.

    Args:
        spark: any session.
        subscriptions: as for :func:`tamis.spark.match`.
        paths: files, folders (their ``*.xml`` and ``*.xml.gz``) and patterns; a document found
            twice is read once.
        output: the folder to hold the folders ``matches`` and ``errors``.
        overwrite: replace these two, if they exist; nothing else in ``output`` is touched.

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: the output has results already, or cannot be written.
    """
    folder = check_output(output, overwrite)
    shipped = ShippedMatcher.of(compiled(subscriptions))
    start = time.monotonic()
    documents = list_documents(os.fspath(path) for path in paths)
    with staged(folder) as staging:
        kept = ("document", "record")
        answer = AnswerTask(shipped, pa.string(), kept, folder=os.getcwd())
        task = WriteTask(answer, str(staging))
        parts = _tasks(spark, documents).mapInArrow(task, WriteTask.RETURNS).collect()
        publish(
            staging,
            folder,
            {name: [part.file for part in parts if part[name]] for name in (MATCHES, ERRORS)},
        )
    return Summary(
        documents=len(documents),
        bytes=sum(document.size for document in documents),
        matches=sum(part.matches for part in parts),
        errors=sum(part.errors for part in parts),
        seconds=time.monotonic() - start,
    )


def _tasks(spark: SparkSession, documents: Sequence[Listed]) -> DataFrame:
    """The documents, each in the partition of the task that reads it."""
    tasks = deal([document.size for document in documents])
    table = pa.table(
        {
            "task": pa.array(tasks, pa.int32()),
            "document": pa.array([printable(found.path) for found in documents], pa.string()),
            "record": pa.nulls(len(documents), pa.int64()),
            "path": pa.array([os.fsencode(found.path) for found in documents], pa.binary()),
            "problem": pa.array([found.problem for found in documents], pa.string()),
        }
    )
    rows = spark.createDataFrame(table)
    return rows.repartitionById(max(tasks, default=0) + 1, F.col("task")).drop("task")
