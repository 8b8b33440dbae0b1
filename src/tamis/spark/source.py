"""The format ``tamis`` of ``spark.read``: paths and subscriptions in, matches out."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tamis.errors import UsageError
from tamis.language.subscriptions import Subscriptions, Unsupported, read_namespaces
from tamis.matching.matcher import compile_subscriptions
from tamis.spark.cache import keep_newest
from tamis.spark.files import AnswerPieces, check_xml
from tamis.spark.listing import list_files
from tamis.spark.pieces import Piece, pieces_of, shares
from tamis.spark.program import Program, is_program
from tamis.spark.rows import Form

_USERS = {"subscriptions", "namespaces", "unsupported"}
_USERS |= {"record", "as_array", "nodes", "errors", "xml"}
_OPTIONS = _USERS | {"path", "paths", "folder", "program", "tells_errors"}

PROGRAMS_MAX = 8
"""So many compiled sets are kept in the cache of a user, for the processes that plan and match."""


class TamisSource(DataSource):
    """Matches of files, as Arrow batches; XML stays out of the JVM.

    ::

        spark.read.format("tamis").option("subscriptions", "orders.tsv").load("incoming/")

    Spark finds it by the package ``pyspark_tamis`` where that is installed. Options:
    ``subscriptions``, a file of them or a saved program, and ``namespaces`` (a file) and
    ``unsupported`` for the former; ``record``, ``as_array``, ``nodes``, ``errors`` and ``xml`` as
    for :func:`tamis.spark.match_files`.

    On a cluster, a saved program has to be in a folder that all machines see; ``match_files`` sends
    it to them.
    """

    @classmethod
    def name(cls) -> str:
        return "tamis"

    def schema(self) -> StructType:
        return self._answer().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        options = self.options
        if "paths" in options:
            paths: list[str] = json.loads(options["paths"])
        elif "path" in options:
            paths = [options["path"]]
        else:
            raise UsageError("which files? .load(path), or a list of paths")
        return _Reader(self._answer(), paths, options.get("folder", os.getcwd()))

    def _answer(self) -> AnswerPieces:
        options: Any = self.options
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
                cast(Unsupported, options.get("unsupported", "refuse")),
            )
        else:
            raise UsageError('which subscriptions? .option("subscriptions", FILE)')
        form = Form(
            made.id_type,
            made.set_version,
            options.get("record"),
            _is_true(options, "as_array"),
            options.get("nodes"),
            options.get("errors", "column"),
        )
        xml = _is_true(options, "xml")
        if "program" not in options:  # else it was checked
            Form.of(made, form.record, form.as_array, form.nodes, form.errors)
            check_xml(xml, form.record)
        return AnswerPieces(made, form, xml, _is_true(options, "tells_errors", "true"))


class _Reader(DataSourceReader):
    def __init__(self, answer: AnswerPieces, paths: list[str], folder: str) -> None:
        self.answer = answer
        self.paths = paths
        self.folder = folder

    def partitions(self) -> list[InputPartition]:
        files = list_files(self.paths, self.folder)
        pieces = pieces_of(files, self.folder, self.answer.form.record, self.answer.program)
        return [InputPartition(share) for share in shares(pieces)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        pieces = cast(list[Piece], partition.value or [])
        return self.answer(pieces)


def _is_true(options: Mapping[str, str], name: str, default: str = "false") -> bool:
    given = options.get(name, default)
    if given.lower() in ("true", "false"):
        return given.lower() == "true"
    raise UsageError(f"the option {name} is true or false, not {given!r}")


def shared_program(path: str, namespaces: str | None, unsupported: Unsupported) -> Program:
    """A saved program; or one compiled from a file of subscriptions, in the cache of the user.

    Spark has processes of its own that ask for the columns, plan, and match: the first one
    compiles.

    Args:
        namespaces: a file of them, or None.
    """
    if is_program(Path(path)):
        return replace(Program.of_file(Path(path)), path=os.path.abspath(path))
    prefixes = None if namespaces is None else read_namespaces(namespaces)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    key = hashlib.sha256(content + json.dumps([prefixes, unsupported]).encode()).hexdigest()
    from tamis.jit import cache_folder  # noqa: PLC0415 - imports Numba

    folder = cache_folder() / "programs"
    folder.mkdir(exist_ok=True)
    kept = folder / f"{key}{Path(path).suffix}.program"
    if kept.exists():
        kept.touch()  # the oldest go
    else:
        given = Subscriptions.from_file(path, namespaces=prefixes, unsupported=unsupported)
        compile_subscriptions(given).save(kept)
        keep_newest(folder, "*.program", PROGRAMS_MAX)
    return Program.of_file(kept)
