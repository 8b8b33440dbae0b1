"""The oracle: every filter held against every event, in Python, with Python's own comparisons."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int64, distinct
from tamis.core.index.matchset import MatchSet, match_set
from tamis.events import model as at
from tamis.events.model import EventBatch, FilterTable, Owners
from tamis.events.planner import Engine
from tamis.language.patterns import pattern_of

Value = bytes | int | float | bool

_IS_SO: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "prefix": bytes.startswith,
    "suffix": bytes.endswith,
    "contains": operator.contains,
    "in": lambda value, items: any(value == item for item in items),
    "like": lambda value, pattern: pattern.matches(value),
    "matches": lambda value, pattern: pattern.matches(value),
}


_ORDERS = ("=", "!=", "<", "<=", ">", ">=")


class Constraint(NamedTuple):
    """A constraint with Python's own values."""

    name: int
    operator: str
    kind: type | None  # what values are compared as: bytes, float or bool; None: as a field is
    constant: Any  # of ``in``, a list; of a field, the number of its name

    def holds(self, attributes: Mapping[int, Value]) -> bool:
        """Whether it is satisfied by the attributes of an event, by the numbers of names."""
        if self.name not in attributes:
            return False
        value = attributes[self.name]
        if self.operator == "exists":
            return True
        if self.kind is None:
            return self._compares(value, attributes.get(self.constant))
        return _kind(value) is self.kind and _IS_SO[self.operator](value, self.constant)

    def _compares(self, value: Value, other: Value | None) -> bool:
        """Whether a value is so to another one."""
        kind = _kind(value)
        has_operator = self.operator in {bytes: _IS_SO, float: _ORDERS, bool: ("=", "!=")}[kind]
        return (
            other is not None
            and kind is _kind(other)
            and has_operator
            and bool(_IS_SO[self.operator](value, other))
        )


class ReferenceProgram(NamedTuple):
    """The constraints and clauses of each filter."""

    filters: list[list[Constraint | Literals]]

    def memory_usage(self) -> int:
        """Not known."""
        return 0


class ReferenceSearcher:
    """Holds every filter against every event, in one thread."""

    def __init__(self, program: ReferenceProgram, owners: Owners, _threads: int) -> None:
        self.program = program
        self.owners = owners

    def match(self, batch: EventBatch) -> MatchSet:
        """The owners of filters that match each event."""
        found = []
        for event in range(batch.events):
            first, end = batch.event_starts[event : event + 2].tolist()
            names = batch.names[first:end].tolist()
            values = (_value(batch, batch.kinds, batch.values, i) for i in range(first, end))
            attributes = dict(zip(names, values, strict=True))
            matched = [
                filter
                for filter, parts in enumerate(self.program.filters)
                if event not in batch.errors and all(holds(part, attributes) for part in parts)
            ]
            found.append(distinct(self.owners.of[matched]))
        return match_set(found)

    def memory_usage(self) -> int:
        """None worth counting."""
        return 0


Literals = list[tuple[list[Constraint], bool]]
"""A clause: conditions, and whether each is not to hold."""


def compile_filters(table: FilterTable) -> ReferenceProgram:
    """The constraints and clauses of each filter, with Python's own values."""
    return ReferenceProgram([parts_of(table, filter) for filter in range(table.filters)])


def parts_of(table: FilterTable, filter: int) -> list[Constraint | Literals]:
    """The constraints and the clauses of a filter."""
    return [*constraints_of(table, filter), *clauses_of(table, filter)]


def constraints_of(table: FilterTable, filter: int) -> list[Constraint]:
    """The constraints of a filter, or of a condition."""
    return [constraint_of(table, n) for n in range(*table.starts[filter : filter + 2].tolist())]


def clauses_of(table: FilterTable, filter: int) -> list[Literals]:
    """The clauses of a filter."""
    if not table.conditions:
        return []

    def condition(literal: int) -> tuple[list[Constraint], bool]:
        return constraints_of(table, table.filters + literal // 2), bool(literal % 2)

    clauses = range(*table.clause_starts[filter : filter + 2].tolist())
    bounds = [table.literal_starts[clause : clause + 2].tolist() for clause in clauses]
    return [list(map(condition, table.literals[first:end].tolist())) for first, end in bounds]


def holds(part: Constraint | Literals, attributes: Mapping[int, Value]) -> bool:
    """Whether a constraint is satisfied, or a literal of a clause is true."""
    if isinstance(part, Constraint):
        return part.holds(attributes)
    return any(all(one.holds(attributes) for one in own) != no for own, no in part)


def constraints_in(part: Constraint | Literals) -> list[Constraint]:
    """All constraints of a part of a filter."""
    return [part] if isinstance(part, Constraint) else [one for own, _ in part for one in own]


def names_of(constraint: Constraint) -> list[int]:
    """The attributes that a constraint is about, by the numbers of their names."""
    return [constraint.name] if constraint.kind else [constraint.name, constraint.constant]


def constraint_of(table: FilterTable, number: int) -> Constraint:
    """A constraint of a table, by its number."""
    code = int(table.operators[number])
    constant: Any = None
    kind: type | None = bool
    name = int(table.constraint_names[number])
    if int(table.kinds[number]) == at.FIELD:
        kind, constant = None, int(table.values[number])
    elif code >= at.LIKE:
        text = table.bytes_of(int(table.values[number])).decode()
        kind = bytes
        constant = pattern_of(at.OPERATORS[code], text, table.names[name])
    elif code == at.IN:
        items = range(*table.list_starts[table.values[number] :][:2].tolist())
        constant = [_value(table, table.list_kinds, table.list_values, item) for item in items]
        kind = _kind(constant[0])
    elif code != at.EXISTS:
        constant = _value(table, table.kinds, table.values, number)
        kind = _kind(constant)
    return Constraint(name, at.OPERATORS[code], kind, constant)


def _kind(value: Value) -> type:
    """The type that a value is compared as."""
    return float if type(value) is int else type(value)


def _value(of: FilterTable | EventBatch, kinds: Bytes, values: Int64, number: int) -> Value:
    """The value that a kind and its bits stand for."""
    kind, value = int(kinds[number]), int(values[number])
    if kind == at.INTEGER:
        return value
    if kind == at.FLOAT:
        return float(values[number : number + 1].view(np.float64)[0])
    if kind == at.BOOLEAN:
        return bool(value)
    assert kind == at.STRING
    return of.string_bytes[of.string_starts[value] : of.string_starts[value + 1]].tobytes()


ENGINE = Engine("reference", compile_filters, ReferenceSearcher, is_whole=True)
