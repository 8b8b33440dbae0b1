"""Subscriptions matched against files, which the workers read; and the format of ``spark.read``."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, reduce
from typing import Any, cast

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from tamis.core.errors import UsageError
from tamis.core.index.matchset import Which
from tamis.documents.encodings import DeclaredEncoding
from tamis.documents.record_batch import OnBadRecord
from tamis.language.subscriptions import Unsupported
from tamis.spark.answers import AnswerSplits, MatchSpec
from tamis.spark.program import ProgramArtifact, SubscriptionSet, program, shared_program
from tamis.spark.rows import Errors
from tamis.spark.splits import InputSplit, check_paths, list_files, partitions, splits_of

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def match_files(  # noqa: PLR0913 - what may be asked
    spark: SparkSession,
    paths: Paths,
    subscriptions: SubscriptionSet,
    *,
    record: str | None = None,
    as_array: bool = False,
    nodes: Which | None = None,
    values: bool = False,
    errors: Errors = "column",
    declared_encoding: DeclaredEncoding = "check",
    on_bad_record: OnBadRecord = "stop",
    xml: bool = False,
    namespaces: Mapping[str, str] | None = None,
    default_namespace: str | None = None,
    unsupported: Unsupported = "refuse",
) -> DataFrame:
    """Match files; the result has one row for each match.

    Spark's tasks get paths, about equal in bytes, and its Python workers read and match the files.
    All of them, and the driver, must see the files under the same paths. Works through Spark
    Connect, where the driver is the server. In short jobs the JVM should not spend the cores on
    compiling itself: set ``spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1``, and so for
    executors, as ``tamis run`` does.

    Args:
        spark: any session.
        paths: files, folders (their ``*.xml`` and ``*.xml.gz``) and patterns; archives (zip, tar,
            compressed tar), which stand for such members; and URIs of these as Spark writes them
            (``file:/…``, ``s3a://…``, ``abfss://…``, ``hdfs://…``). What is found twice is read
            once. They are listed each time that Spark plans to compute the result.
        subscriptions: whatever :func:`tamis.spark.program` takes, or what it makes.
        record: the tag of the elements that are records, each of which is answered by itself. Tasks
            share the records of a large file, if it is not compressed and in UTF-8.
        as_array, nodes, values, errors, declared_encoding: as for :func:`tamis.spark.match`.
        on_bad_record, namespaces, default_namespace, unsupported: likewise.
        xml: give also the documents themselves; not with ``record``.

    Returns:
        ``document string``: the path, as it was given, or that of the folder or archive and the
        name in it; ``xml binary``, if that is asked for, decompressed; then ``record`` and all that
        :func:`tamis.spark.match` gives.

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: a path leads nowhere, or an argument is none of those above.
    """
    made = program(
        subscriptions,
        namespaces=namespaces,
        default_namespace=default_namespace,
        unsupported=unsupported,
    )
    wanted: dict[str, Any] = {"record": record, "as_array": as_array, "nodes": nodes}
    wanted |= {"values": values, "errors": errors, "declared_encoding": declared_encoding}
    wanted["on_bad_record"] = on_bad_record
    MatchSpec.of(made, **wanted)
    check_xml(xml, record)
    spark.dataSource.register(TamisSource)
    made.send(spark)
    wanted |= {"xml": xml, "paths": json.dumps(path_list(paths)), "folder": os.getcwd()}
    given = {name: value for name, value in wanted.items() if value is not None}
    reader = spark.read.format(TamisSource.name()).options(**given)
    frames = (
        reader.options(program=part.to_json(), reports_errors=number == 0).load()
        for number, part in enumerate(made.partitions)
    )
    try:  # Spark asks for the columns where it has the files
        found = reduce(DataFrame.unionAll, frames)
        found.schema  # noqa: B018 - which Spark Connect puts off
    except AnalysisException as error:
        said = re.search(rf"{UsageError.__name__}: (.+)", str(error))
        raise UsageError(said[1]) if said else error from None
    return found


def path_list(paths: Paths) -> list[str]:
    """Paths, however they are given."""
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not several:
        raise UsageError("which files?")
    return [os.fspath(path) for path in several]


def check_xml(xml: bool, record: str | None) -> None:
    """Raise UsageError unless the documents can be given."""
    if xml and record is not None:
        raise UsageError('the XML of records is not given: ask for their nodes="first" in it')


_FILES = {"subscriptions", "namespaces"}
_USERS = _FILES | {"default_namespace", "unsupported"}
_USERS |= {"record", "as_array", "nodes", "values", "errors", "xml"}
_USERS |= {"declared_encoding", "on_bad_record"}
_BOUNDS = {"files_max", "bytes_max"}
_USERS |= {"log"} | _BOUNDS
_OPTIONS = _USERS | {"path", "paths", "folder", "program", "reports_errors"}


class TamisSource(DataSource):
    """Matches of files, as Arrow batches; XML stays out of the JVM.

    ::

        spark.read.format("tamis").option("subscriptions", "orders.tsv").load("incoming/")

    and in SQL::

        CREATE TEMPORARY VIEW late USING tamis OPTIONS (subscriptions 'orders.tsv', path 'incoming')
        CREATE TABLE late USING tamis OPTIONS (subscriptions 'orders.tsv') LOCATION 'incoming'

    Spark finds it by the package ``pyspark_tamis`` where that is installed. Options:
    ``subscriptions``, a file of them or a saved program; for the former ``namespaces`` (a file),
    ``default_namespace`` (a URI) and ``unsupported``; ``record``, ``as_array``, ``nodes``,
    ``errors``, ``on_bad_record`` and ``xml`` as for :func:`tamis.spark.match_files`. On a cluster,
    a saved program has to be in a folder that all machines see; ``match_files`` sends it to them.
    ``spark.readStream`` takes folders and matches what comes there. It needs ``log``, a folder that
    notes what came; for ``files_max`` and ``bytes_max`` see :func:`tamis.spark.stream`.
    """

    @classmethod
    def name(cls) -> str:
        return "tamis"

    def schema(self) -> StructType:
        options = self._given()
        schema = _answer(options).schema()
        check_paths(_paths(options), options.get("folder", ""))
        if self._is_new_table:
            files = {name: os.path.abspath(options[name]) for name in _FILES if name in options}
            anywhere = {"folder": os.getcwd(), **options, **files}
            schema.fields[0].metadata = {_OF_TABLE: anywhere}
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        of_table = schema.fields[0].metadata.get(_OF_TABLE, {})
        options = {**of_table, **self._given()}
        answer = _answer(options)
        if of_table and answer.schema().simpleString() != schema.simpleString():
            raise UsageError(
                "with these subscriptions and options the table has other columns: make it anew"
            )
        return _Reader(answer, _paths(options), options.get("folder", os.getcwd()))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        """Files as they come. Spark asks when a query starts: nothing tells it apart before."""
        from tamis.spark.arrivals import MatchedArrivals  # noqa: PLC0415 - few streams have it

        del schema
        options = self._given()
        if "log" not in options:
            raise UsageError(
                'a stream of the format tamis needs .option("log", FOLDER): a folder of its own, '
                "which notes the files that came"
            )
        bounds = {name: int(options[name]) for name in _BOUNDS if name in options}
        return MatchedArrivals(_answer(options), _paths(options), options["log"], **bounds)

    @property
    def _is_new_table(self) -> bool:
        """Whether this is CREATE TABLE: then Spark gives the properties of a table."""
        return "provider" in self.options

    def _given(self) -> dict[str, str]:
        """The options, of a table too."""
        options = dict(self.options.items())
        if not self._is_new_table:
            return options
        prefix = "option."
        given = {n.removeprefix(prefix): options[n] for n in options if n.startswith(prefix)}
        return given | ({"path": options["location"]} if "location" in options else {})


_OF_TABLE = "tamis"
"""The metadata of a table's first column that has the options. When a table is read, Spark gives a
source in Python the columns and not the options."""


def _paths(options: Mapping[str, str]) -> list[str]:
    if "paths" not in options and "path" not in options:
        raise UsageError(
            "which files? .load(path), a list of paths, or in SQL OPTIONS (path '…') or LOCATION"
        )
    try:
        found: list[str] = json.loads(options.get("paths", "null")) or [options["path"]]
    except ValueError:
        raise UsageError(f'paths is a JSON list, ["…", "…"], not {options["paths"]}') from None
    return found


def _answer(options: Mapping[str, Any]) -> AnswerSplits:
    unknown = options.keys() - _OPTIONS
    if unknown:
        raise UsageError(
            f"there is no option {min(unknown)}: the options are {', '.join(sorted(_USERS))}"
        )
    if "program" in options:
        made = ProgramArtifact.from_json(options["program"])
    elif "subscriptions" in options:
        made = shared_program(
            options["subscriptions"],
            options.get("namespaces"),
            options.get("default_namespace"),
            cast(Unsupported, options.get("unsupported", "refuse")),
        )
    else:
        raise UsageError('which subscriptions? .option("subscriptions", FILE)')
    spec = MatchSpec.of(
        made,
        options.get("errors", "column"),
        options.get("record"),
        as_array=_is_true(options, "as_array"),
        nodes=options.get("nodes"),
        values=_is_true(options, "values"),
        declared_encoding=options.get("declared_encoding", "check"),
        on_bad_record=options.get("on_bad_record", "stop"),
    )
    xml = _is_true(options, "xml")
    check_xml(xml, spec.record)
    return AnswerSplits(made, spec, xml, _is_true(options, "reports_errors", "true"))


class _Reader(DataSourceReader):
    def __init__(self, answer: AnswerSplits, paths: list[str], folder: str) -> None:
        self.answer = answer
        self.paths = paths
        self.folder = folder

    def partitions(self) -> list[InputPartition]:
        _show_warnings()
        files = list_files(self.paths, self.folder)
        record, limits = self.answer.spec.record, self.answer.program.limits
        splits = splits_of(files, self.folder, record, limits)
        return [InputPartition(found) for found in partitions(splits)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self.answer(cast(list[InputSplit], partition.value or []))


@cache
def _show_warnings() -> None:
    """Have warnings go to stderr, in a process of Spark's where nobody else shows them."""
    logging.getLogger("tamis").addHandler(logging.StreamHandler())


def _is_true(options: Mapping[str, str], name: str, default: str = "false") -> bool:
    given = options.get(name, default)
    if given.lower() in ("true", "false"):
        return given.lower() == "true"
    raise UsageError(f"the option {name} is true or false, not {given!r}")
