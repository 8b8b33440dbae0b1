"""The job of ``tamis run``: files in, Parquet out."""

from __future__ import annotations

import os
import time
from dataclasses import replace

from pyspark.sql import SparkSession

from tamis.documents.encodings import DeclaredEncoding
from tamis.spark.files import AnswerPieces, Paths, path_list
from tamis.spark.listing import check_paths, list_files
from tamis.spark.output import Output, new_run
from tamis.spark.rows import Errors, Form
from tamis.spark.subscriptions import SubscriptionSet, program
from tamis.spark.writing import Summary, write_run


def run(  # noqa: PLR0913 - what may be asked
    spark: SparkSession,
    subscriptions: SubscriptionSet,
    paths: Paths,
    output: str | os.PathLike[str],
    *,
    record: str | None = None,
    errors: Errors = "column",
    declared_encoding: DeclaredEncoding = "check",
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
    * ``errors(document string, record long, code string, message string, line long, column long,
      offset long, subscription)``, one row a document, or record, in error; or, with
      ``subscription``, one row a subscription that could not be answered for one;
    * ``manifest(file, size, modified, set_version, tamis_version, run, read)``: the files that were
      read, by absolute paths, and with which subscriptions. A file that could not be read at all is
      in ``errors`` alone.

    They appear when the job is done, whatever is wrong with single documents: file by file, at last
    that of the manifest, whose runs are those that are whole. A job that failed, or whose driver
    died, leaves nothing that the next one does not remove. One job at a time writes into a folder.

    Args:
        spark: any session.
        subscriptions: whatever :func:`tamis.spark.program` takes, or what it makes.
        paths, record: as for :func:`tamis.spark.match_files`.
        output: the folder to hold the folders ``matches``, ``errors`` and ``manifest``.
        declared_encoding: as for :func:`tamis.spark.match`.
        errors: "column" to write them, "drop" not to, "fail" to end with the first.
        overwrite: replace these folders, if they exist; nothing else in ``output`` is touched.
        only_new: match what is not in the manifest as it is now (by path, size and time), and add
            the answers to those that are there. To do so again does nothing, but try once more what
            could not be read (and say so again, where it cannot).

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: a path leads nowhere; or the output has results already, or cannot be written.
    """
    check_paths(path_list(paths))
    place = Output(output, overwrite=overwrite)
    must_be_new = not (overwrite or only_new)
    if must_be_new:
        with place.turn():
            place.check_new()
    made = program(subscriptions).send(spark)
    form = Form.of(made, record, False, None, errors, declared_encoding=declared_encoding)
    answer = AnswerPieces(replace(made, refused=()), form)
    start = time.monotonic()
    with place.turn():
        if must_be_new:  # still, after the subscriptions were compiled
            place.check_new()
        place.prepare(made.id_type)
        files = list_files(path_list(paths))
        if only_new:
            files = place.not_in_manifest(files)
            if not files and place.existing:
                return Summary(0, 0, 0, 0, time.monotonic() - start)
        done = write_run(spark, place, new_run(), answer, files, refused=made.refused)
    return done._replace(seconds=time.monotonic() - start)
