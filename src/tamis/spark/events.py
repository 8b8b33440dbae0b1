"""Subscriptions matched against rows that are events: their columns are attributes.

Programs of the engines of events are not saved. The driver sends the filters, and each worker
compiles them: a quarter of a million takes a fraction of a second, less than reading most programs.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql import types as sql

from tamis.core.array_file import open_arrays, write_arrays
from tamis.core.arrays import Int32, Int64
from tamis.core.errors import OtherVersion, SubscriptionId, UsageError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.events.answers import EventAnswers
from tamis.events.encode import ObjectWarning
from tamis.events.matcher import EventMatcher
from tamis.events.model import By, FilterTable
from tamis.events.subscriptions import EventSubscriptions
from tamis.language.columns import Ids
from tamis.language.entries import SubscriptionItems
from tamis.spark.artifacts import PROGRAMS_KEPT, Artifact, new_path
from tamis.spark.program import frame_items, id_type, is_table, table_items
from tamis.spark.rows import (
    EVENT_ERROR,
    Errors,
    OutputSpec,
    PassthroughColumns,
    by_number,
    check_columns,
    check_errors,
    combined,
    error_column,
    fields_of,
    id_array,
    id_lists,
    in_steps,
    joined_schema,
    with_errors,
)

log = logging.getLogger("tamis.spark")

EventSubscriptionSet = (
    EventMatcher | EventSubscriptions | SubscriptionItems | DataFrame | str | os.PathLike[str]
)
"""What may be given as subscriptions of events; a ``str`` or path names a file of them."""

_ID_COLUMNS = ("ids", "interface_ids")
_VALUE_TYPES = (
    sql.BooleanType,
    sql.ByteType,
    sql.DoubleType,
    sql.FloatType,
    sql.IntegerType,
    sql.LongType,
    sql.NullType,
    sql.ShortType,
    sql.StringType,
)


def match_events(
    df: DataFrame,
    subscriptions: EventSubscriptionSet,
    *,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    by: By = "subscription",
    as_array: bool = False,
    errors: Errors = "column",
    interfaces: Mapping[SubscriptionId, SubscriptionId] | None = None,
) -> DataFrame:
    """Match rows that are events, as columns are their attributes; one row for each match.

    An event that matches nothing has no row, and one in error (it reaches a limit, or has a string
    that is not UTF-8) a single one. A null is as if the attribute were not there, and so is a
    column; if subscriptions name some that are not there, a warning tells. Names are those of
    columns exactly, dots and cases included, and strings are compared by code points, whatever
    their collation.

    Works on batch and streaming DataFrames, and through Spark Connect; needs no more of Spark than
    the DataFrame, and computes nothing by itself.

    Args:
        df: the events. Of their columns those are read that some subscription names; others may be
            of any type.
        subscriptions: one of

            * a mapping, pairs, or an ``EventSubscriptions`` of :mod:`tamis.events.subscriptions`;
            * the path of a file of them (see ``EventSubscriptions.from_file``), or of Parquet (a
              file or a folder);
            * a DataFrame, which is collected: ``spark.table("subscriptions")``;
            * what :func:`tamis.compile_events` makes of them, with an engine and limits of choice.

            DataFrames and Parquet have columns ``id`` (string or integer) and ``expression``.
        columns: those that are attributes; by default all.
        keep: the columns that each row repeats; by default all: say so where less will do.
        by: what is reported: "filter", "subscription" or "interface"; see
            :meth:`tamis.events.matcher.EventMatcher.match`.
        as_array: one row an event, with an array of ids, which may be empty.
        errors: a "column" tells them, or events in error are left out ("drop"), or the first one
            makes the job fail ("fail").
        interfaces: the interface of each id, where an ``EventSubscriptions`` has to be made.

    Returns:
        The kept columns, then:

        * ``subscription`` (long if all ids are integers, else string); or ``filter``, a number, or
          ``interface``, as ``by`` says; or an array of them, ``subscriptions``, ``filters`` or
          ``interfaces``, which is null where the event is in error;
        * ``set_version string``: a hash of the subscriptions; ``tamis_version string``;
        * ``error struct<code string, message string>``, with ``errors="column"``.

    Raises:
        BadSubscriptions: some cannot be used.
        UsageError: there is no such column, or it is of a type that values cannot have.
    """
    for name in ("columns", "keep"):
        if isinstance(locals()[name], str):
            raise UsageError(f"{name} is a list of names, not one name")
    if by not in get_args(By):
        raise UsageError(f"by={by!r}: write 'filter', 'subscription' or 'interface'")
    check_errors(errors)
    fields = fields_of(df)
    kept = list(fields) if keep is None else list(keep)
    check_columns(fields, columns or [], kept)
    given = event_subscriptions(subscriptions, interfaces)
    attributes = _attributes(fields, columns, given.table.names)
    program = EventArtifact.of(given)
    ids = given.ids if by == "subscription" else given.interface_ids
    type = "bigint" if by == "filter" else id_type(ids)
    spec = EventSpec(type, program.set_version, errors, by, as_array)
    schema = joined_schema([fields[name] for name in kept], spec.fields())
    program.send(df.sparkSession)
    read = list(dict.fromkeys([*kept, *attributes]))  # none is sent twice
    numbers = tuple((name, read.index(name)) for name in attributes)
    task = AnswerEvents(program, spec, tuple(kept), numbers)
    # Without any column Spark would not tell how many rows there are.
    return df.select(by_number(read) or F.lit(True).alias("0")).mapInArrow(task, schema)


def _attributes(
    fields: Mapping[str, sql.StructField], columns: Sequence[str] | None, names: Sequence[str]
) -> list[str]:
    """The columns that are read; values must be able to have their types."""
    missing = [name for name in names if name not in fields]
    if missing:
        shown = ", ".join(repr(name) for name in missing[:5])
        more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
        log.warning("subscriptions name attributes that are no columns: %s%s", shown, more)
        structs = (
            name for name, field in fields.items() if isinstance(field.dataType, sql.StructType)
        )
        ObjectWarning(missing).look([{name: {} for name in structs}])
    if columns is None:
        attributes = checked = [name for name in names if name in fields]
    else:
        named = set(names)
        checked = list(dict.fromkeys(columns))
        attributes = [name for name in checked if name in named]
    for name in checked:
        if not isinstance(fields[name].dataType, _VALUE_TYPES):
            kind = fields[name].dataType.simpleString()
            raise UsageError(
                f"the column {name!r} is of type {kind:.80}, which values cannot be: make it "
                "numbers, strings or booleans, or leave it out of columns"
            )
    return attributes


def event_subscriptions(
    subscriptions: EventSubscriptionSet,
    interfaces: Mapping[SubscriptionId, SubscriptionId] | None = None,
) -> EventMatcher | EventSubscriptions:
    """Subscriptions of any kind; for the arguments see :func:`tamis.spark.match_events`."""
    if isinstance(subscriptions, EventMatcher | EventSubscriptions):
        if interfaces is not None:
            raise UsageError("give interfaces to EventSubscriptions, which has them already")
        return subscriptions
    if isinstance(subscriptions, str | os.PathLike):
        path = Path(subscriptions)
        if not is_table(path):
            return EventSubscriptions.from_file(path, interfaces=interfaces)
        subscriptions = table_items(path)
    # Not isinstance(): the DataFrames of Spark Connect are of a class of their own.
    elif hasattr(subscriptions, "toArrow"):
        subscriptions = frame_items(subscriptions)
    return EventSubscriptions(subscriptions, interfaces=interfaces)


@dataclass(frozen=True)
class EventArtifact(Artifact[EventMatcher]):
    """Subscriptions of events in a file that workers can map.

    Attributes:
        set_version: a hash of the subscriptions, whatever engine compiles them.
    """

    set_version: str = field(compare=False)

    suffix: ClassVar[str] = "events"
    content: ClassVar[tuple[str, int]] = "filters of events", 1

    @classmethod
    def of(cls, given: EventMatcher | EventSubscriptions) -> EventArtifact:
        """What workers need of subscriptions, in a file."""
        engine, limits = "auto", DEFAULT_LIMITS
        if isinstance(given, EventMatcher):
            engine, limits = given.named_engine, given.limits
        columns = given.table._asdict().items()
        arrays: dict[str, NDArray[Any]]
        arrays = {name: value for name, value in columns if isinstance(value, np.ndarray)}
        version = hashlib.sha256()
        for name, ids in zip(_ID_COLUMNS, (given.ids, given.interface_ids), strict=True):
            column = ids.packed()
            arrays[f"{name}_bytes"] = np.frombuffer(column.data, np.uint8)
            ends = np.asarray(column.ends, np.int64)
            arrays[f"{name}_bounds"] = np.concatenate([np.zeros(1, np.int64), ends])
        for name, array in arrays.items():
            version.update(f"{name} {len(array)} ".encode())
            version.update(array.data)
        version.update(ascii(given.table.names).encode())
        metadata = {
            "names": list(given.table.names),
            "interface_count": int(given.table.interface_count),
            "engine": engine,
            "limits": asdict(limits),
        }
        path = new_path()
        made = cls("", write_arrays(path, *cls.content, arrays, metadata), version.hexdigest()[:16])
        return replace(made, path=str(path.rename(path.with_name(made.name))))

    def load(self, path: Path) -> EventMatcher:
        """Map the filters and compile them."""
        arrays, metadata, identity = open_arrays(path, *self.content)
        if identity != self.identity:
            raise OtherVersion("it is not what the driver sent", str(path))
        ids, interface_ids = (
            Ids(arrays.pop(f"{name}_bytes").data, bounds[:-1], bounds[1:])
            for name in _ID_COLUMNS
            for bounds in [arrays.pop(f"{name}_bounds")]
        )
        names, count = tuple(metadata["names"]), metadata["interface_count"]
        table = FilterTable(names=names, interface_count=count, **arrays)
        limits = Limits(**metadata["limits"])
        return EventMatcher(ids, interface_ids, table, metadata["engine"], limits)


@dataclass(frozen=True)
class EventSpec(OutputSpec):
    """What is wanted of each event.

    Attributes:
        by: what is reported, and what the ids are of.
        as_array: one row an event, with an array of ids, instead of one row a match.
    """

    by: By
    as_array: bool = False

    def answer_columns(self) -> dict[str, sql.DataType]:
        """The ids."""
        id = self.type_of_ids
        return {f"{self.by}s": sql.ArrayType(id)} if self.as_array else {self.by: id}

    def error_columns(self) -> dict[str, sql.DataType]:
        """The error, which has no place."""
        return {"error": EVENT_ERROR}


@dataclass(frozen=True, slots=True)
class AnswerEvents:
    """The function that ``mapInArrow`` calls for each partition of a DataFrame.

    The input has the columns that each row of the output repeats, and then others.

    Attributes:
        program: the subscriptions.
        spec: what is wanted.
        kept: the names of the columns that are repeated, the first ones.
        attributes: the columns that are attributes: their names and numbers.
    """

    program: EventArtifact
    spec: EventSpec
    kept: tuple[str, ...]
    attributes: tuple[tuple[str, int], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return combined(self._answers(batches))

    def _answers(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = self.program.loaded()
        rows = EventRows(matcher, self.spec)
        names = [name for name, _ in self.attributes]
        numbers = [number for _, number in self.attributes]
        for batch in batches:
            kept = PassthroughColumns.first_of(batch, self.kept, "event")
            events = batch.select(numbers).rename_columns(names)
            for found in matcher.arrow_answers(events, self.spec.by):
                yield from rows.of(kept, found)


class EventRows:
    """Makes rows of answers.

    Args:
        matcher: what answers.
        spec: what is wanted.
    """

    def __init__(self, matcher: EventMatcher, spec: EventSpec) -> None:
        self.ids = _ids_of(matcher, spec.by, spec.id_type)
        self.spec = spec
        self.schema = spec.arrow_schema()

    def of(self, kept: PassthroughColumns, found: EventAnswers) -> Iterator[pa.RecordBatch]:
        """The rows about some events, which are rows of what is kept."""
        assert found.lines is not None
        rows = found.lines - 1
        for number, error in found.errors.items():
            name = kept.name(int(rows[number]))
            if self.spec.errors == "fail":
                raise type(error)(f"{name}: {error.message}")
            log.info("%s: %s", name, error.message)
        wrong = np.array(sorted(found.errors), np.int64)
        for first, end, (matching, numbers) in in_steps(found.matches):
            of_these = wrong[np.searchsorted(wrong, first) : np.searchsorted(wrong, end)]
            if self.spec.as_array:
                events, column = self._arrays(np.arange(first, end), matching, numbers, of_these)
            else:
                shown = of_these if self.spec.errors == "column" else of_these[:0]
                events, told = with_errors(matching, numbers, shown)
                column = self._named(told, told < 0 if len(shown) else None)
            if len(events):
                columns = [column, *self.spec.versions(len(events))]
                if self.spec.errors == "column":
                    columns.append(error_column(self.schema, events, found.errors))
                yield from kept.joined(rows[events], columns, self.schema)

    def _arrays(
        self, rows: Int64, matching: Int64, numbers: Int32, wrong: Int64
    ) -> tuple[Int64, pa.Array]:
        """One row an event, and the column of lists of ids."""
        is_wrong = np.isin(rows, wrong)
        lists = id_lists(rows, matching, self._named(numbers), self.schema[0].type, is_wrong)
        if len(wrong) and self.spec.errors == "drop":
            return rows[~is_wrong], lists.filter(pa.array(~is_wrong))
        return rows, lists

    def _named(self, numbers: Int32, mask: NDArray[np.bool_] | None = None) -> pa.Array:
        taken = pa.array(numbers, pa.int64(), mask=mask)
        return taken if self.ids is None else self.ids.take(taken)


@lru_cache(maxsize=PROGRAMS_KEPT)
def _ids_of(matcher: EventMatcher, by: By, id_type: str) -> pa.Array | None:
    """All ids in their order, made once for all tasks of a worker."""
    if by == "filter":
        return None
    return id_array(matcher.ids if by == "subscription" else matcher.interface_ids, id_type)
