"""Subscriptions matched against rows that are events: their columns are attributes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import get_args

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

import tamis
from tamis.core.arrays import Int32, Int64
from tamis.core.errors import EventError, SubscriptionId, UsageError
from tamis.events.answers import EventAnswers
from tamis.events.encode import ObjectWarning
from tamis.events.matcher import EventMatcher
from tamis.events.model import By
from tamis.spark.artifacts import send
from tamis.spark.event_program import (
    EventProgram,
    EventSubscriptionSet,
    event_subscriptions,
    ids_type,
)
from tamis.spark.frames import by_number, check_columns, fields_of, joined_schema
from tamis.spark.program import PROGRAMS_KEPT
from tamis.spark.rows import Errors, Kept, gathered, in_steps, printable

log = logging.getLogger("tamis.spark")

_USABLE = (
    BooleanType,
    ByteType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
)
_ERROR = StructType([StructField("code", StringType()), StructField("message", StringType())])


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
    if errors not in get_args(Errors):
        raise UsageError(f"errors={errors!r}: write 'column', 'drop' or 'fail'")
    fields = fields_of(df)
    kept = list(fields) if keep is None else list(keep)
    check_columns(fields, columns or [], kept)
    given = event_subscriptions(subscriptions, interfaces)
    attributes = _attributes(fields, columns, given.table.names)
    program = EventProgram.of(given)
    form = EventForm(by, ids_type(given, by), program.set_version, as_array, errors)
    schema = joined_schema([fields[name] for name in kept], form.fields())
    send(df.sparkSession, Path(program.path))
    read = list(dict.fromkeys([*kept, *attributes]))  # none is sent twice
    places = tuple((name, read.index(name)) for name in attributes)
    task = AnswerEvents(program, form, tuple(kept), places)
    # Without any column Spark would not tell how many rows there are.
    return df.select(by_number(read) or F.lit(True).alias("0")).mapInArrow(task, schema)


def _attributes(
    fields: Mapping[str, StructField], columns: Sequence[str] | None, names: Sequence[str]
) -> list[str]:
    """The columns that are read.

    Raises:
        UsageError: values cannot have the type of one.
    """
    missing = [name for name in names if name not in fields]
    if missing:
        shown = ", ".join(repr(name) for name in missing[:5])
        more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
        log.warning("subscriptions name attributes that are no columns: %s%s", shown, more)
        structs = (name for name, field in fields.items() if isinstance(field.dataType, StructType))
        ObjectWarning(missing).look([{name: {} for name in structs}])
    if columns is None:
        attributes = checked = [name for name in names if name in fields]
    else:
        named = set(names)
        checked = list(dict.fromkeys(columns))
        attributes = [name for name in checked if name in named]
    for name in checked:
        if not isinstance(fields[name].dataType, _USABLE):
            kind = fields[name].dataType.simpleString()
            raise UsageError(
                f"the column {name!r} is of type {kind:.80}, which values cannot be: make it "
                "numbers, strings or booleans, or leave it out of columns"
            )
    return attributes


@dataclass(frozen=True, slots=True)
class EventForm:
    """What is wanted of each event.

    Attributes:
        by: what is reported.
        id_type: of its ids: ``bigint`` or ``string``.
        set_version: of the subscriptions.
        as_array: one row an event, with an array of ids, instead of one row a match.
        errors: what becomes of events in error.
    """

    by: By
    id_type: str
    set_version: str
    as_array: bool = False
    errors: Errors = "column"

    def fields(self) -> list[StructField]:
        """The columns behind those that are kept."""
        id: DataType = LongType() if self.id_type == "bigint" else StringType()
        found = [
            StructField(f"{self.by}s", ArrayType(id))
            if self.as_array
            else StructField(self.by, id),
            StructField("set_version", StringType()),
            StructField("tamis_version", StringType()),
        ]
        if self.errors == "column":
            found.append(StructField("error", _ERROR))
        return found


@dataclass(frozen=True, slots=True)
class AnswerEvents:
    """The function that ``mapInArrow`` calls for each partition of a DataFrame.

    The input has the columns that each row of the output repeats, and then others.

    Attributes:
        program: the subscriptions.
        form: what is wanted.
        kept: the names of the columns that are repeated, the first ones.
        attributes: the columns that are attributes: their names and places.
    """

    program: EventProgram
    form: EventForm
    kept: tuple[str, ...]
    attributes: tuple[tuple[str, int], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return gathered(self._answers(batches))

    def _answers(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matcher = self.program.matcher()
        rows = EventRows(matcher, self.form)
        names = [name for name, _ in self.attributes]
        places = [place for _, place in self.attributes]
        for batch in batches:
            repeated = pa.RecordBatch.from_arrays(batch.columns[: len(self.kept)], list(self.kept))
            kept = Kept(repeated, batch.num_rows, "event")
            events = batch.select(places).rename_columns(names)
            for found in matcher.arrow_answers(events, self.form.by):
                yield from rows.of(kept, found)


class EventRows:
    """Makes rows of answers.

    Args:
        matcher: what answers.
        form: what is wanted.
    """

    def __init__(self, matcher: EventMatcher, form: EventForm) -> None:
        self.ids = _ids_of(matcher, form.by, form.id_type)
        self.form = form
        self.schema = to_arrow_schema(StructType(form.fields()), timezone="UTC")

    def of(self, kept: Kept, found: EventAnswers) -> Iterator[pa.RecordBatch]:
        """The rows about some events, which are rows of what is kept."""
        assert found.lines is not None
        rows = found.lines - 1
        for number, error in found.errors.items():
            name = kept.name(int(rows[number]))
            if self.form.errors == "fail":
                raise type(error)(f"{name}: {error.message}")
            log.info("%s: %s", name, error.message)
        wrong = np.array(sorted(found.errors), np.int64)
        for first, end, (matching, numbers) in in_steps(found.matches):
            of_these = wrong[np.searchsorted(wrong, first) : np.searchsorted(wrong, end)]
            if self.form.as_array:
                events, column = self._arrays(first, end, matching, numbers, of_these)
            else:
                shown = of_these if self.form.errors == "column" else of_these[:0]
                events, column = self._flat(matching, numbers, shown)
            if len(events):
                columns = [column, *self._others(events, found.errors)]
                yield from kept.joined(rows[events], columns, self.schema)

    def _flat(self, events: Int64, numbers: Int32, wrong: Int64) -> tuple[Int64, pa.Array]:
        """One row a match or an error: the event, and the column of ids."""
        if not len(wrong):
            return events, self._named(numbers)
        events = np.concatenate([events, wrong])
        numbers = np.concatenate([numbers, np.full(len(wrong), -1, np.int32)])
        order = np.argsort(events, kind="stable")
        events, numbers = events[order], numbers[order]
        return events, self._named(numbers, mask=numbers < 0)

    def _arrays(
        self, first: int, end: int, events: Int64, numbers: Int32, wrong: Int64
    ) -> tuple[Int64, pa.Array]:
        """One row an event, and the column of lists of ids."""
        starts = np.searchsorted(events, np.arange(first, end + 1))
        rows = np.arange(first, end)
        is_wrong = np.isin(rows, wrong)
        mask = pa.array(is_wrong) if len(wrong) else None
        lists = pa.ListArray.from_arrays(
            pa.array(starts, pa.int32()), self._named(numbers), self.schema[0].type, mask=mask
        )
        if len(wrong) and self.form.errors == "drop":
            return rows[~is_wrong], lists.filter(pa.array(~is_wrong))
        return rows, lists

    def _named(self, numbers: Int32, mask: np.ndarray | None = None) -> pa.Array:
        """Their ids."""
        taken = pa.array(numbers, pa.int64(), mask=mask)
        return taken if self.ids is None else self.ids.take(taken)

    def _others(self, events: Int64, errors: Mapping[int, EventError]) -> Iterator[pa.Array]:
        """The columns behind that of ids."""
        for said in (self.form.set_version, tamis.__version__):
            yield pa.repeat(pa.scalar(said, pa.string()), len(events))
        if self.form.errors == "column":
            type = self.schema.field("error").type
            if not errors:
                yield pa.nulls(len(events), type)
            else:
                yield pa.array([_said(errors.get(event)) for event in events.tolist()], type)


def _said(error: EventError | None) -> dict[str, str] | None:
    return None if error is None else {"code": error.code, "message": printable(error.message)}


@lru_cache(maxsize=PROGRAMS_KEPT)
def _ids_of(matcher: EventMatcher, by: By, id_type: str) -> pa.Array | None:
    """All ids in their order, made once for all tasks of a worker; filters are their numbers."""
    if by == "filter":
        return None
    ids = matcher.ids if by == "subscription" else matcher.interface_ids
    if id_type == "bigint":
        return pa.array(list(ids), pa.int64())
    return pa.array([str(id) for id in ids], pa.string())
