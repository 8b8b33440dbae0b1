"""Subscriptions matched against rows that are events: their columns are attributes.

Programs of the engines of events are not saved. The driver sends the filters, and each worker
compiles them: a quarter of a million takes a fraction of a second, less than reading most programs.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - everybody's name for it
from pyspark.sql import types as sql

from tamis.core.arguments import is_store
from tamis.core.errors import SubscriptionId, UsageError
from tamis.core.limits import DEFAULT_LIMITS
from tamis.events.derive import Deriver
from tamis.events.live import EventMatcher
from tamis.events.matcher import CompiledEventMatcher
from tamis.events.matches import EventMatches
from tamis.events.model import ARRAY_TYPES, By, FilterTable
from tamis.events.subscriptions import EventSubscriptions
from tamis.language.entries import SubscriptionItems
from tamis.spark.program import PickledArtifact, given_items, id_type
from tamis.spark.rows import (
    ERROR,
    ColumnTask,
    Errors,
    OutputSpec,
    PassthroughColumns,
    check_columns,
    fields_of,
    id_array,
    id_lists,
    in_steps,
    of_name,
    with_errors,
)

_CONTROL = bytes.maketrans(b"\r\n", b"\x01\x01")
log = logging.getLogger("tamis.spark")

EventSubscriptionSet = (
    CompiledEventMatcher
    | EventSubscriptions
    | SubscriptionItems
    | DataFrame
    | str
    | os.PathLike[str]
)
"""What may be given as subscriptions of events; a ``str`` or path names a file of them."""

_NUMBERS = (sql.IntegralType, sql.DoubleType, sql.FloatType)
_VALUE_TYPES = (sql.BooleanType, sql.NullType, sql.StringType, *_NUMBERS)


def match_events(  # noqa: PLR0913 - what may be asked
    df: DataFrame,
    subscriptions: EventSubscriptionSet,
    column: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    by: By = "subscription",
    as_array: bool = False,
    errors: Errors = "column",
    interfaces: Mapping[SubscriptionId, SubscriptionId] | None = None,
) -> DataFrame:
    """Match rows that are events, as columns are their attributes; one row for each match.

    With ``column``, events are in this column alone: as JSON text, as a VARIANT, a struct or a map.

    An event that matches nothing has no row, and one in error (it is no JSON object, reaches a
    limit, or has a string that is not UTF-8) a single one. A null is as if the attribute were not
    there. If subscriptions name attributes that are no columns, a warning says so. Names are those
    of columns exactly, dots and cases included, and strings are compared by code points, whatever
    their collation. What is in structs, arrays, maps and VARIANTs is named by paths: ``order.sum``,
    ``items[].sku``. Columns with maps and VARIANTs are read as the JSON that Spark's ``to_json``
    writes: there, NaN and times are strings.

    Works on batch and streaming DataFrames, and through Spark Connect, and computes nothing by
    itself.

    Args:
        df: the events. Only the columns that some subscription names are read; others may be of any
            type.
        subscriptions: one of

            * a mapping, pairs, or an ``EventSubscriptions`` of :mod:`tamis.events.subscriptions`;
            * the path of a file of them (see ``EventSubscriptions.from_file``), or of Parquet (a
              file or a folder);
            * a DataFrame, which is collected: ``spark.table("subscriptions")``;
            * what :func:`tamis.compile_events` makes of them, with an engine and limits of choice.

            DataFrames and Parquet have columns ``id`` (string or integer) and ``expression``.
        column: the column of events; without it, each column is an attribute. JSON text is of type
            string or binary, and each text is as a line of a file is (see
            :meth:`tamis.EventMatcher.match_ndjson`). A null is an error, except of a struct: that
            has no attributes.
        columns: those that are attributes; by default all. Not with ``column``.
        keep: the columns that each row repeats; by default all but ``column``.
        by: what is reported: "filter", "subscription" or "interface"; see
            :meth:`tamis.EventMatcher.match`.
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
    for name, names in ("columns", columns), ("keep", keep):
        if isinstance(names, str):
            raise UsageError(f"{name} is a list of names, not one name")
    if by not in get_args(By):
        raise UsageError(f"by={by!r}: write 'filter', 'subscription' or 'interface'")
    if column is not None and columns is not None:
        raise UsageError("choose one of column (which has the events) and columns (of attributes)")
    fields = fields_of(df)
    kept = tuple(name for name in fields if name != column) if keep is None else tuple(keep)
    check_columns(fields, [column] if column is not None else columns or [], kept)
    given = event_subscriptions(subscriptions, interfaces)
    program = EventArtifact.of(given)
    ids = given.ids if by == "subscription" else given.interface_ids
    type = "bigint" if by == "filter" else id_type(ids)
    spec = EventSpec(type, program.set_version, errors, by, as_array)
    if column is not None and not isinstance(fields[column].dataType, sql.StructType):
        return AnswerEvents(program, spec, kept, is_json=True).applied(df, [_text(fields[column])])
    at, own = (of_name, fields) if column is None else _inside(fields[column])
    deriver = Deriver(given.table.names, DEFAULT_LIMITS)
    attributes = _attributes(own, columns, deriver.read_at_top(own), deriver.roots)
    as_json = {name for name in attributes if _needs_json(name, own[name].dataType)}
    numbers = {  # none is sent twice
        name: kept.index(name)
        for name in attributes
        if column is None and name in kept and name not in as_json
    }
    sent: list[Column] = []
    for name in attributes:
        if name not in numbers:
            numbers[name] = len(kept) + len(sent)
            sent.append(_as_json(at(name)) if name in as_json else at(name))
    task = AnswerEvents(program, spec, kept, tuple(numbers.items()), frozenset(as_json))
    return task.applied(df, sent)


def _as_json(column: Column) -> Column:
    return F.to_json(column, {"ignoreNullFields": "false"})


def _needs_json(name: str, type: sql.DataType) -> bool:
    """Whether there is a VARIANT or a map in a column, which are read as JSON."""
    if isinstance(type, sql.MapType):
        keys = type.keyType
        if not isinstance(keys, sql.StringType | sql.IntegralType | sql.BooleanType):
            raise UsageError(
                f"the column {name!r} has a map with keys of the type {keys.simpleString():.80}: "
                "make them strings"
            )
        return True
    if isinstance(type, sql.ArrayType):
        return _needs_json(name, type.elementType)
    if isinstance(type, sql.StructType):
        found = [_needs_json(name, field.dataType) for field in type]  # of each, for its keys
        return any(found)
    return isinstance(type, sql.VariantType)


def _text(field: sql.StructField) -> Column:
    """A column of events as JSON text."""
    if isinstance(field.dataType, sql.StringType | sql.BinaryType):
        return of_name(field.name)
    if not isinstance(field.dataType, sql.MapType | sql.VariantType):
        raise UsageError(
            f"the column {field.name!r} is of type {field.dataType.simpleString():.80}, and events "
            "are JSON text (string, binary), VARIANT, struct or map"
        )
    _needs_json(field.name, field.dataType)
    return _as_json(of_name(field.name))


def _inside(field: sql.StructField) -> tuple[Callable[[str], Column], dict[str, sql.StructField]]:
    """What is in a struct: a function from names to columns, and the fields by name."""
    assert isinstance(field.dataType, sql.StructType)
    names = field.dataType.fieldNames()
    fields = {inner.name: inner for inner in field.dataType}
    if len(fields) < len(names):
        raise UsageError(f"several fields of {field.name!r} have the same name: {', '.join(names)}")
    return of_name(field.name).getField, fields


def _attributes(
    fields: Mapping[str, sql.StructField],
    columns: Sequence[str] | None,
    names: Sequence[str],
    looked_into: Container[str],
) -> list[str]:
    """The columns that are read; values must be able to have their types."""
    missing = [name for name in names if name not in fields]
    if missing:
        shown = ", ".join(repr(name) for name in missing[:5])
        more = f" and {len(missing) - 5:,} more" if len(missing) > 5 else ""
        log.warning("subscriptions name attributes that are no columns: %s%s", shown, more)
    if columns is None:
        attributes = checked = [name for name in names if name in fields]
    else:
        named = set(names)
        checked = list(dict.fromkeys(columns))
        attributes = [name for name in checked if name in named]
    for name in checked:
        type = fields[name].dataType
        is_variant = isinstance(type, sql.VariantType)
        if not (name in looked_into or is_variant or isinstance(type, _VALUE_TYPES)):
            kind = fields[name].dataType.simpleString()
            raise UsageError(
                f"the column {name!r} is of type {kind:.80}, which values cannot be: make it "
                "numbers, strings or booleans, or leave it out of columns"
            )
    return attributes


_LINE_ENDS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\r\n]', re.DOTALL)


def json_lines(texts: pa.Array) -> bytes:
    r"""JSON texts as lines, from the second on: so the first is not taken for a file of Parquet.

    A null is ``null``, which is no event.

    A line end inside a string is an error of JSON, and stays one.

    >>> json_lines(pa.array(['{"a":\n1}', None, '{"a": "\n"}', ""]))
    b'\n{"a": 1}\nnull\n{"a": "\x01"}\n""\n'
    """
    lines = [
        b"null" if text is None else text or b'""' for text in texts.cast(pa.binary()).to_pylist()
    ]
    for number, line in enumerate(lines):
        if b"\n" in line or b"\r" in line:
            lines[number] = _LINE_ENDS.sub(_in_one_line, line)
        if not lines[number].strip():  # which no reader takes for an event
            lines[number] = b'""'
    return b"\n".join([b"", *lines, b""])


def _in_one_line(found: re.Match[bytes]) -> bytes:
    token = found[0]
    return token.translate(_CONTROL) if token[0] == ord('"') else b" "


def event_subscriptions(
    subscriptions: EventSubscriptionSet,
    interfaces: Mapping[SubscriptionId, SubscriptionId] | None = None,
) -> CompiledEventMatcher | EventSubscriptions:
    """Subscriptions of any kind; for the arguments see :func:`tamis.spark.match_events`."""
    if isinstance(subscriptions, CompiledEventMatcher | EventSubscriptions):
        if interfaces is not None:
            raise UsageError("give interfaces to EventSubscriptions, which has them already")
        return subscriptions
    if is_store(subscriptions):
        with EventMatcher.open(subscriptions, read_only=True) as live:
            return live.compiled()
    return EventSubscriptions(given_items(subscriptions), interfaces=interfaces)


@dataclass(frozen=True)
class EventArtifact(PickledArtifact[CompiledEventMatcher]):
    """Subscriptions of events in a file; the engine that compiles them is not in the version."""

    suffix: ClassVar[str] = "events"

    @classmethod
    def of(cls, given: CompiledEventMatcher | EventSubscriptions) -> EventArtifact:
        """What workers need of subscriptions, in a file."""
        engine, limits = "auto", DEFAULT_LIMITS
        if isinstance(given, CompiledEventMatcher):
            engine, limits = given.named_engine, given.limits
        names = ARRAY_TYPES[FilterTable]
        arrays: dict[str, NDArray[Any]] = {name: getattr(given.table, name) for name in names}
        ids = {"ids": given.ids.packed(), "interface_ids": given.interface_ids.packed()}
        for name, column in ids.items():
            arrays[f"{name}_bytes"], bounds = column.arrays()
            arrays[f"{name}_bounds"] = bounds.astype(np.int64)
        version = hashlib.sha256()
        for name, array in arrays.items():
            version.update(f"{name} {len(array)} ".encode())
            version.update(array.data)
        version.update(ascii(given.table.names).encode())
        return cls.pickled((*ids.values(), given.table, engine, limits), version.hexdigest())

    def load(self, path: Path) -> CompiledEventMatcher:
        ids, interface_ids, table, engine, limits = self.unpickled(path)
        subscriptions = EventSubscriptions.of_columns(ids, interface_ids, table)
        return CompiledEventMatcher(subscriptions, engine, limits)


@dataclass(frozen=True)
class EventSpec(OutputSpec):
    """What is wanted of each event: ``by`` says what is reported, and what the ids are of."""

    by: By
    as_array: bool = False

    def answer_columns(self) -> dict[str, sql.DataType]:
        id = self.type_of_ids
        return {f"{self.by}s": sql.ArrayType(id)} if self.as_array else {self.by: id}

    def error_columns(self) -> dict[str, sql.DataType]:
        """The error, which has no place."""
        return {"error": sql.StructType(ERROR.fields[:2])}


@dataclass(frozen=True, slots=True)
class AnswerEvents(ColumnTask[EventArtifact, EventSpec]):
    """Answers the rows of a batch.

    Attributes:
        attributes: the names and numbers of the columns that are attributes.
        as_json: those of them that are JSON.
        is_json: the last column has events, as JSON.
    """

    attributes: tuple[tuple[str, int], ...] = ()
    as_json: frozenset[str] = frozenset()
    is_json: bool = False

    def answers(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        matcher = self.program.loaded()
        kept = PassthroughColumns.first_of(batch, self.kept, "event")
        first = 0
        for found in self._found(matcher, batch):
            if found.lines is None:
                found.number_rows(first + 1)
            first += found.documents
            yield from self._rows(matcher, kept, found)

    def _found(
        self, matcher: CompiledEventMatcher, batch: pa.RecordBatch
    ) -> Iterator[EventMatches]:
        by = self.spec.by
        if self.is_json:
            for found in matcher.ndjson_answers(json_lines(batch.columns[-1]), by):
                assert found.lines is not None
                found.lines = found.lines - 1
                yield found
            return
        numbers = [number for _, number in self.attributes]
        events = batch.select(numbers).rename_columns([name for name, _ in self.attributes])
        if not self.as_json:
            yield from matcher.arrow_answers(events, by)
            return
        rows: list[Any] = list(matcher.encoder.rows(events))
        for number, row in enumerate(rows):
            try:
                row |= {
                    name: json.loads(row[name])
                    for name in self.as_json
                    if row.get(name) is not None
                }
            except (ValueError, RecursionError):
                rows[number] = None  # which is no event
        yield from matcher.event_answers(rows, by)

    def _rows(
        self, matcher: CompiledEventMatcher, kept: PassthroughColumns, found: EventMatches
    ) -> Iterator[pa.RecordBatch]:
        """The rows about some events, which are rows of what is kept."""
        assert found.lines is not None
        spec, rows = self.spec, found.lines - 1
        for number, error in found.errors.items():  # whose lines are those of a batch
            spec.report(kept.name(int(rows[number])), type(error)(error.message))
        for first, end, pairs in in_steps(found):
            events, numbers = pairs
            wrong = [number for number in sorted(found.errors) if first <= number < end]
            if spec.as_array:
                ids = self._ids(matcher, pa.array(numbers, pa.int64()))
                events, column = id_lists(spec, np.arange(first, end), events, ids, wrong)
            else:
                wrong = wrong if spec.errors == "column" else []
                events, numbers = with_errors(events, numbers, wrong)
                mask = numbers < 0 if wrong else None
                column = self._ids(matcher, pa.array(numbers, pa.int64(), mask=mask))
            said = [found.errors.get(event) for event in events.tolist()] if wrong else []
            yield from spec.batches(kept, rows[events], [column], said)

    def _ids(self, matcher: CompiledEventMatcher, numbers: pa.Array) -> pa.Array:
        if self.spec.by == "filter":
            return numbers
        name = "ids" if self.spec.by == "subscription" else "interface_ids"
        return id_array(matcher, self.spec.id_type, name).take(numbers)
