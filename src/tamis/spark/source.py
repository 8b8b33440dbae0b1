"""The format ``tamis`` of ``spark.read``: paths and subscriptions in, matches out."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tamis.core.errors import UsageError
from tamis.language.subscriptions import Subscriptions, Unsupported, read_namespaces
from tamis.matching.matcher import compile_subscriptions
from tamis.spark.cache import cache_folder, keep_newest
from tamis.spark.files import AnswerPieces, check_xml
from tamis.spark.listing import check_paths, list_files
from tamis.spark.pieces import Piece, pieces_of, shares
from tamis.spark.program import Program, is_program
from tamis.spark.rows import Form

_FILES = {"subscriptions", "namespaces"}
_USERS = _FILES | {"default_namespace", "unsupported"}
_USERS |= {"record", "as_array", "nodes", "values", "errors", "xml", "declared_encoding"}
_OPTIONS = _USERS | {"path", "paths", "folder", "program", "tells_errors"}

PROGRAMS_MAX = 8
"""So many compiled sets are kept in the cache of a user, for the processes that plan and match."""


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
    ``errors`` and ``xml`` as for :func:`tamis.spark.match_files`.

    On a cluster, a saved program has to be in a folder that all machines see; ``match_files`` sends
    it to them.
    """

    @classmethod
    def name(cls) -> str:
        return "tamis"

    def schema(self) -> StructType:
        options = self._given()
        schema = _answer(options).schema()
        check_paths(_paths(options), options.get("folder", ""))
        if self._is_new_table:
            schema.fields[0].metadata = {_OF_TABLE: _from_anywhere(options)}
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        kept = schema.fields[0].metadata.get(_OF_TABLE, {})
        options = {**kept, **self._given()}
        answer = _answer(options)
        if kept and answer.schema().simpleString() != schema.simpleString():
            raise UsageError(
                "with these subscriptions and options the table has other columns: make it anew"
            )
        return _Reader(answer, _paths(options), options.get("folder", os.getcwd()))

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


def _from_anywhere(options: Mapping[str, str]) -> dict[str, str]:
    """Options that mean the same in another folder."""
    files = {name: os.path.abspath(options[name]) for name in _FILES if name in options}
    return {"folder": os.getcwd(), **options, **files}


def _paths(options: Mapping[str, str]) -> list[str]:
    if "paths" not in options and "path" not in options:
        raise UsageError(
            "which files? .load(path), a list of paths, or in SQL OPTIONS (path '…') or LOCATION"
        )
    try:
        found = json.loads(options.get("paths", "null")) or [options["path"]]
    except ValueError:
        raise UsageError(f'paths is a JSON list, ["…", "…"], not {options["paths"]}') from None
    # Spark writes the location of a table so.
    return [path if "://" in path else path.removeprefix("file:") for path in found]


def _answer(options: Mapping[str, Any]) -> AnswerPieces:
    unknown = options.keys() - _OPTIONS
    if unknown:
        raise UsageError(
            f"there is no option {min(unknown)}: the options are {', '.join(sorted(_USERS))}"
        )
    if "program" in options:
        made = Program(**json.loads(options["program"]))
    elif "subscriptions" in options:
        made = shared_program(
            options["subscriptions"],
            options.get("namespaces"),
            options.get("default_namespace"),
            cast(Unsupported, options.get("unsupported", "refuse")),
        )
    else:
        raise UsageError('which subscriptions? .option("subscriptions", FILE)')
    form = Form.of(
        made,
        options.get("record"),
        _is_true(options, "as_array"),
        options.get("nodes"),
        options.get("errors", "column"),
        _is_true(options, "values"),
        options.get("declared_encoding", "check"),
    )
    xml = _is_true(options, "xml")
    check_xml(xml, form.record)
    return AnswerPieces(made, form, xml, _is_true(options, "tells_errors", "true"))


class _Reader(DataSourceReader):
    def __init__(self, answer: AnswerPieces, paths: list[str], folder: str) -> None:
        self.answer = answer
        self.paths = paths
        self.folder = folder

    def partitions(self) -> list[InputPartition]:
        _show_warnings()
        files = list_files(self.paths, self.folder)
        pieces = pieces_of(files, self.folder, self.answer.form.record, self.answer.program)
        return [InputPartition(share) for share in shares(pieces)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        pieces = cast(list[Piece], partition.value or [])
        return self.answer(pieces)


@cache
def _show_warnings() -> None:
    """Have warnings go to stderr, in a process of Spark's where nobody else shows them."""
    logging.getLogger("tamis").addHandler(logging.StreamHandler())


def _is_true(options: Mapping[str, str], name: str, default: str = "false") -> bool:
    given = options.get(name, default)
    if given.lower() in ("true", "false"):
        return given.lower() == "true"
    raise UsageError(f"the option {name} is true or false, not {given!r}")


def shared_program(
    path: str, namespaces: str | None, default_namespace: str | None, unsupported: Unsupported
) -> Program:
    """A saved program; or one compiled from a file of subscriptions, in the cache of the user.

    Spark has processes of its own that ask for the columns, plan, and match: the first one
    compiles.

    Args:
        namespaces: a file of them, or None.
        default_namespace: a URI, or None.
    """
    if is_program(Path(path)):
        return replace(Program.of_file(Path(path)), path=os.path.abspath(path))
    prefixes = None if namespaces is None else read_namespaces(namespaces)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    key = hashlib.sha256(
        content + json.dumps([prefixes, default_namespace, unsupported]).encode()
    ).hexdigest()
    folder = cache_folder("programs")
    kept = folder / f"{key}{Path(path).suffix}.program"
    if kept.exists():
        kept.touch()  # the oldest go
    else:
        given = Subscriptions.from_file(
            path,
            namespaces=prefixes,
            default_namespace=default_namespace,
            unsupported=unsupported,
        )
        compile_subscriptions(given).save(kept)
        keep_newest(folder, "*.program", PROGRAMS_MAX)
    return Program.of_file(kept)
