"""Filters and events as flat arrays: what engines read; how they are built, and checked.

All arrays are C-contiguous and read-only. A value is a *kind* and 64 bits:

===========  ====================================================================================
``INTEGER``  the number, within int64
``FLOAT``    the bits of a double that no int64 is equal to (see :func:`number`); in events it may
             be NaN, in constraints not
``STRING``   the number of a string of the table or the batch that it is in; strings are UTF-8, and
             compared byte by byte, which is by code point
``BOOLEAN``  0 or 1
===========  ====================================================================================

Integers and floats are both numbers, compared exactly. Values of other kinds are never compared: a
constraint is not satisfied by a value of another kind than its own, whatever its operator, nor by
what is missing or null. NaN satisfies ``!=`` and ``exists`` alone.

In constraints there is one more kind: ``FIELD``, the number of another attribute's name, whose
value is the constant.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Literal, NamedTuple, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, dtype_of, freeze, starts_of
from tamis.core.errors import EventError, UsageError
from tamis.core.kernel.check import are_starts, are_within, is_sorted
from tamis.language.constraints import Clause, Constant, Constraint, Field, constraint_key

INTEGER, FLOAT, STRING, BOOLEAN, FIELD = range(5)
"""Kinds of values."""

OPERATORS = tuple("= != < <= > >= prefix suffix contains in exists like matches".split())
EQ, NE, LT, LE, GT, GE, PREFIX, SUFFIX, CONTAINS, IN, EXISTS, LIKE, MATCHES = range(len(OPERATORS))
"""Operators of constraints, by their indices in ``OPERATORS``. ``< <= > >=`` compare numbers and
strings, ``prefix suffix contains like matches`` strings, the others all kinds.
"""

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

By = Literal["filter", "subscription", "interface"]
"""The owner to report where a filter matches: itself, its subscription, or its interface."""


_NO_STARTS, _ONE_START = np.zeros(0, np.int64), np.zeros(1, np.int64)
_NO_LITERALS = np.zeros(0, np.int32)
freeze(_NO_STARTS, _ONE_START, _NO_LITERALS)


class FilterTable(NamedTuple):
    """Filters, conjunctions of constraints: what every engine compiles.

    A subscription is true of an event if one of its filters matches. A filter matches if all of its
    constraints are satisfied, and one literal of each of its clauses is true; one without
    constraints and clauses matches every event. A literal says that a *condition* holds, or does
    not. Conditions are conjunctions of constraints, as filters are, and behind these.

    Constraints with patterns, and those on two attributes, are *residual*: engines do not find
    filters by them, and they are looked at where the others hold.
    """

    names: tuple[str, ...]  # of attributes, each once; they are called by their numbers
    starts: Int64  # [f + c + 1]; the constraints of filter i are those from starts[i] to
    # starts[i + 1]; so are those of condition i - f
    constraint_names: Int32
    operators: Bytes
    kinds: Bytes  # of the constant; of ``in``, of its first item; of ``exists``, 0
    values: Int64  # the constant; of ``in``, the number of a list; of ``exists``, 0
    list_starts: Int64  # [l + 1]; the items of list i are those from list_starts[i] on
    list_kinds: Bytes  # in a list all are numbers, or all are strings, or booleans
    list_values: Int64
    string_starts: Int64  # [s + 1]; string i is string_bytes[string_starts[i]:string_starts[i + 1]]
    string_bytes: Bytes  # no string is there twice
    subscriptions: Int32  # [f]; the subscription that each filter is of; they ascend
    interfaces: Int32  # [subscriptions]; the interface of each
    interface_count: int
    clause_starts: Int64 = _NO_STARTS  # [f + 1]; the clauses of each filter; or [0], of none
    literal_starts: Int64 = _ONE_START  # [clauses + 1]
    literals: Int32 = _NO_LITERALS  # 2 * condition + 1 if it does not hold

    @property
    def filters(self) -> int:
        """The number of filters."""
        return len(self.subscriptions)

    @property
    def conditions(self) -> int:
        """The number of conditions."""
        return len(self.starts) - 1 - self.filters

    @property
    def is_residual(self) -> NDArray[np.bool_]:
        """Which constraints are residual."""
        found: NDArray[np.bool_] = (self.operators >= LIKE) | (self.kinds == FIELD)
        return found

    def bytes_of(self, number: int) -> bytes:
        """A string in UTF-8, by its number."""
        start, end = self.string_starts[number : number + 2].tolist()
        return self.string_bytes[start:end].tobytes()

    def frozen(self) -> FilterTable:
        """The same, its arrays made read-only."""
        freeze(*(field for field in self if isinstance(field, np.ndarray)))
        return self

    def owners(self, by: By) -> Owners:
        """The owner of each filter, which results report."""
        if by == "filter":
            return Owners(np.arange(self.filters, dtype=np.int32), self.filters, False)
        if by == "subscription":
            return Owners(self.subscriptions, len(self.interfaces), False)
        return Owners(self.interfaces[self.subscriptions], self.interface_count, True)


class Owners(NamedTuple):
    """The numbers that results report for filters that match.

    Attributes:
        of: int32[f]; the number of each filter's owner.
        total: how many owners there are.
        are_interfaces: whether owners are the interfaces of the table. An engine reports each of
            these once an event, and may stop when it has reported all. It may report other owners
            several times.
    """

    of: Int32
    total: int
    are_interfaces: bool


class EventBatch(NamedTuple):
    """Events, sets of attributes, in the order that they came in.

    Attributes that no filter names are left out, and so are nulls. No event has two of a name. One
    in error has none; no filter matches it, not even one without constraints.
    """

    event_starts: Int64  # [n + 1]; the attributes of event i are those from event_starts[i] on
    names: Int32  # the number of each attribute's name in the filter table
    kinds: Bytes
    values: Int64
    string_starts: Int64  # as in the filter table; equal strings may have several numbers
    string_bytes: Bytes
    errors: Mapping[int, EventError]  # by event number

    @property
    def events(self) -> int:
        """The number of events, those in error included."""
        return len(self.event_starts) - 1


def number(value: int | float) -> tuple[int, int]:
    """The kind and the 64 bits of a number; equal numbers have the same.

    Raises ``OverflowError`` for an integer beyond int64.

    >>> number(3.0), number(-0.0), number(0.5) == (FLOAT, 0x3FE0000000000000)
    ((0, 3), (0, 0), True)
    """
    if isinstance(value, float):
        if not value.is_integer() or not INT64_MIN <= value <= INT64_MAX:
            bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
            return FLOAT, bits
        value = int(value)
    if not INT64_MIN <= value <= INT64_MAX:
        raise OverflowError(f"{value} is beyond 64 bits")
    return INTEGER, value


def numbers(values: NDArray[np.float64]) -> tuple[Bytes, Int64]:
    """The kinds and the 64 bits of floats.

    >>> numbers(np.array([3.0, -0.0, 2.0**63]))
    (array([0, 0, 1], dtype=uint8), array([                  3,                   0, 4890909195324358656]))
    """  # noqa: E501 - as NumPy prints it
    is_integer = (values == np.floor(values)) & (values >= -(2.0**63)) & (values < 2.0**63)
    bits = values.view(np.int64).copy()
    bits[is_integer] = values[is_integer].astype(np.int64)
    return np.where(is_integer, INTEGER, FLOAT).astype(np.uint8), bits


# -- TableBuilder ------------------------------------------------------------------------------


class TableBuilder:
    """Adds subscriptions one by one. It does not check that operators suit their constants.

    The builder writes equal constraints once, and numbers them; such a number is a *code*.

    >>> builder = TableBuilder()
    >>> builder.add([[Constraint("area", "=", "area1"), Constraint("temp", ">", 30)]])
    >>> builder.freeze().names
    ('area', 'temp')
    """

    def __init__(self) -> None:
        self._codes: dict[tuple[object, ...], int] = {}
        self._pool = array("q")  # of four numbers each: name, operator, kind, value
        self._names: dict[str, int] = {}
        self._strings: dict[str, int] = {}
        self._list_starts = array("q", [0])
        self._list_kinds = bytearray()
        self._list_values = array("q")
        self._constraints = array("i")
        self._starts = array("q", [0])
        self._clauses: dict[tuple[int, ...], int] = {}  # by literals
        self._conditions: dict[tuple[int, ...], int] = {}  # of codes
        self._clause_starts = array("q", [0])
        self._used_clauses = array("q")
        self._subscriptions = array("i")
        self._interfaces = array("i")

    def add(self, filters: Iterable[Iterable[Constraint | Clause]], interface: int = 0) -> None:
        """Add a subscription, a disjunction of filters."""
        self.add_codes((map(self.code, filter) for filter in filters), interface)

    def add_codes(self, filters: Iterable[Iterable[int]], interface: int = 0) -> None:
        """Add a subscription whose constraints and clauses are given by their codes."""
        number = len(self._interfaces)
        self._interfaces.append(interface)
        for filter in filters:
            for code in filter:
                if code >= 0:
                    self._constraints.append(code)
                else:
                    self._used_clauses.append(~code)
            self._starts.append(len(self._constraints))
            self._clause_starts.append(len(self._used_clauses))
            self._subscriptions.append(number)

    def code(self, part: Constraint | Clause) -> int:
        """The code of a constraint; of a clause, which is negative."""
        if isinstance(part, Clause):
            return ~self._clauses.setdefault(self._literals(part), len(self._clauses))
        return self._code(part)

    def _literals(self, clause: Clause) -> tuple[int, ...]:
        found = []
        for constraints, is_negated in clause.literals:
            codes = tuple(sorted(map(self._code, constraints)))
            condition = self._conditions.setdefault(codes, len(self._conditions))
            found.append(2 * condition + is_negated)
        return tuple(sorted(set(found)))

    def _code(self, constraint: Constraint) -> int:
        name, operator, constant = constraint
        key = constraint_key(constraint)
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = len(self._codes)
            number = self._names.setdefault(name, len(self._names))
            self._pool.extend((number, OPERATORS.index(operator), *self._operand(constant)))
        return code

    def _operand(self, constant: Any) -> tuple[int, int]:
        if constant is None:
            return 0, 0
        if not isinstance(constant, tuple):
            return self._value(constant)
        items = [self._value(item) for item in constant]
        self._list_kinds.extend(item[0] for item in items)
        self._list_values.extend(item[1] for item in items)
        self._list_starts.append(len(self._list_values))
        return items[0][0], len(self._list_starts) - 2

    def _value(self, constant: Constant | Field) -> tuple[int, int]:
        if isinstance(constant, Field):
            return FIELD, self._names.setdefault(constant.name, len(self._names))
        if isinstance(constant, str):
            return STRING, self._strings.setdefault(constant, len(self._strings))
        if isinstance(constant, bool):
            return BOOLEAN, int(constant)
        return number(constant)

    def freeze(self) -> FilterTable:
        """The arrays, read-only."""
        string_starts, string_bytes = packed(text.encode() for text in self._strings)
        literals = list(self._clauses)
        used = [literals[clause] for clause in self._used_clauses]
        codes_of = list(self._conditions)
        numbers: dict[int, int] = {}  # of the conditions that are used
        for literal in chain.from_iterable(used):
            numbers.setdefault(literal >> 1, len(numbers))
        conditions = [np.array(codes_of[condition], np.int32) for condition in numbers]
        codes = np.concatenate([np.array(self._constraints, np.int32), *conditions])
        ends = len(self._constraints) + starts_of(list(map(len, conditions)))[1:]
        pool = np.array(self._pool, np.int64).reshape(-1, 4)[codes]
        return FilterTable(
            names=tuple(self._names),
            starts=np.concatenate([np.array(self._starts, np.int64), ends]),
            constraint_names=pool[:, 0].astype(np.int32),
            operators=pool[:, 1].astype(np.uint8),
            kinds=pool[:, 2].astype(np.uint8),
            values=pool[:, 3].copy(),
            list_starts=np.array(self._list_starts, np.int64),
            list_kinds=np.frombuffer(bytes(self._list_kinds), np.uint8),
            list_values=np.array(self._list_values, np.int64),
            string_starts=string_starts,
            string_bytes=string_bytes,
            subscriptions=np.array(self._subscriptions, np.int32),
            interfaces=np.array(self._interfaces, np.int32),
            interface_count=max(self._interfaces, default=-1) + 1,
            clause_starts=np.array(self._clause_starts, np.int64) if used else _NO_STARTS,
            literal_starts=starts_of(list(map(len, used))),
            literals=np.array(
                [2 * numbers[x >> 1] + (x & 1) for x in chain.from_iterable(used)], np.int32
            ),
        ).frozen()


def packed(strings: Iterable[bytes]) -> tuple[Int64, Bytes]:
    """Where each of some strings begins in their bytes, and these bytes."""
    every = list(strings)
    return starts_of(list(map(len, every))), np.frombuffer(b"".join(every), np.uint8)


# -- checks: kernels read arrays unchecked -----------------------------------------------------

_CONSTRAINTS_MAX = 1 << 29
"""Engines count constraints, and twice as many of their parts, in 32 bits."""
ARRAY_TYPES = {
    of: {
        name: dtype_of(hint)
        for name, hint in get_type_hints(of).items()
        if get_origin(hint) is get_origin(Int64)
    }
    for of in (FilterTable, EventBatch)
}
"""The types of arrays, by their names."""

_Invariant = tuple[bool, str, str]
"""Whether it holds, of which array, and what that array is or does where it does not."""


def checked_table(table: FilterTable) -> FilterTable:
    """The same table, with frozen arrays.

    Raises ``UsageError`` with the name of an array that is not as ``FilterTable`` describes it.
    """
    table = table._replace(**_checked_arrays(table))
    _require(_table_invariants(table))
    return table


def check_batch(batch: EventBatch, names: int) -> None:
    """Check that a batch is one for a table with so many names; as ``checked_table`` does."""
    if not isinstance(batch, EventBatch):
        raise UsageError(
            f"match_batch() takes an EventBatch, not {type(batch).__name__}: give events to "
            "match_many()"
        )
    _checked_arrays(batch)
    _require(_batch_invariants(batch, names))


def _require(invariants: Iterable[_Invariant]) -> None:
    for holds, name, message in invariants:
        if not holds:
            raise UsageError(f"these arrays cannot be used: {name} {message}")


def _checked_arrays(arrays: FilterTable | EventBatch) -> dict[str, Any]:
    """The arrays by their names: frozen, contiguous, of their types."""
    types = ARRAY_TYPES[type(arrays)]
    return {name: _array(name, getattr(arrays, name), type) for name, type in types.items()}


def _array(name: str, given: Any, wanted: np.dtype[Any]) -> NDArray[Any]:
    _require([(isinstance(given, np.ndarray) and given.ndim == 1, name, "is no array")])
    _require([(given.dtype == wanted, name, f"is of type {given.dtype}, not {wanted}")])
    if given.flags.writeable:  # also a memmap, whose plain view would still be the file
        array: NDArray[Any] = np.array(given, order="C")
    else:
        array = np.ascontiguousarray(given)
    freeze(array)
    return array


def _table_invariants(table: FilterTable) -> Iterator[_Invariant]:
    """The invariants of a filter table; each relies on those before it."""
    names: Any = table.names
    count: Any = table.interface_count
    operators, kinds, values = table.operators, table.kinds, table.values
    yield isinstance(names, tuple), "names", f"is of type {type(names).__name__}, not tuple"
    yield all(isinstance(name, str) for name in names), "names", "has what is no str"
    yield len(set(names)) == len(names), "names", "has a name twice"
    is_count = isinstance(count, int) and not isinstance(count, bool) and count >= 0
    yield is_count, "interface_count", f"is {count!r:.40}: it is a whole number from 0"
    yield len(values) <= _CONSTRAINTS_MAX, "values", "is too long: divide the filters"
    for name in ("constraint_names", "operators", "kinds"):
        yield len(getattr(table, name)) == len(values), name, "is not as long as values"
    yield _leads("starts", table.starts, values)
    yield _leads("list_starts", table.list_starts, table.list_values)
    yield _leads("string_starts", table.string_starts, table.string_bytes)
    strings = {table.bytes_of(number) for number in range(len(table.string_starts) - 1)}
    yield len(strings) == len(table.string_starts) - 1, "string_starts", "has a string twice"
    yield len(table.list_kinds) == len(table.list_values), "list_kinds", "is of another length"
    yield _counts("constraint_names", table.constraint_names, len(names))
    yield _counts("operators", operators, len(OPERATORS))
    yield _counts("interfaces", table.interfaces, count)
    yield _counts("subscriptions", table.subscriptions, len(table.interfaces))
    has_clauses = len(table.literal_starts) > 1
    is_one_each = table.conditions == 0 or (has_clauses and table.conditions > 0)
    yield is_one_each, "subscriptions", "is not one a filter"
    yield is_sorted(table.subscriptions), "subscriptions", "does not ascend"
    yield _counts("kinds", kinds, FIELD + 1)
    orders = operators[(kinds == BOOLEAN) & (operators >= LT)]
    has_order = bool((orders <= GE).any())
    yield not has_order, "operators", "asks for an order: booleans have no order"
    is_part = (operators >= PREFIX) & (operators <= CONTAINS)
    is_string = np.isin(kinds[is_part], (STRING, FIELD)).all()
    is_string &= (kinds[operators >= LIKE] == STRING).all()
    yield bool(is_string), "kinds", "is not that of parts of strings"
    plain = (operators != IN) & (operators != EXISTS)
    is_field = kinds == FIELD
    yield bool((operators[is_field] < IN).all()), "kinds", "has a field of an operator without one"
    yield _counts("values", values[is_field], len(names))
    plain &= ~is_field
    yield from _value_invariants("values", kinds[plain], values[plain], table)
    yield from _value_invariants("list_values", table.list_kinds, table.list_values, table)
    yield from _list_invariants(table)
    yield from _clause_invariants(table)


def _clause_invariants(table: FilterTable) -> Iterator[_Invariant]:
    clauses = len(table.literal_starts) - 1
    is_one_each = len(table.clause_starts) == (table.filters + 1 if clauses else 0)
    yield is_one_each, "clause_starts", "is not one more than filters, or 0 without clauses"
    if clauses:
        yield _leads("clause_starts", table.clause_starts, table.literal_starts[1:])
    yield _leads("literal_starts", table.literal_starts, table.literals)
    has_literals = bool((np.diff(table.literal_starts) > 0).all())
    yield has_literals, "literal_starts", "has a clause without literals"
    yield _counts("literals", table.literals, 2 * table.conditions)


def _batch_invariants(batch: EventBatch, names: int) -> Iterator[_Invariant]:
    for name in ("names", "kinds"):
        yield len(getattr(batch, name)) == len(batch.values), name, "is not as long as values"
    yield _leads("event_starts", batch.event_starts, batch.values)
    yield _leads("string_starts", batch.string_starts, batch.string_bytes)
    yield _counts("names", batch.names, names)
    yield _counts("kinds", batch.kinds, BOOLEAN + 1)
    yield _refers("values", batch.values[batch.kinds == STRING], batch.string_starts, "string")


def _value_invariants(
    name: str, kinds: Bytes, values: Int64, table: FilterTable
) -> Iterator[_Invariant]:
    yield _counts(name.replace("values", "kinds"), kinds, BOOLEAN + 1)
    yield _refers(name, values[kinds == STRING], table.string_starts, "string")
    is_truth = are_within(values[kinds == BOOLEAN], [(0, 2)])
    yield is_truth, name, "has a boolean beyond 0 and 1"
    floats = values[kinds == FLOAT].view(np.float64)
    is_number = not np.isnan(floats).any() and not (numbers(floats)[0] == INTEGER).any()
    yield is_number, name, "has a float that is NaN, or an integer: see model.number()"


def _list_invariants(table: FilterTable) -> Iterator[_Invariant]:
    is_list = table.operators == IN
    lists = table.values[is_list]
    yield _refers("values", lists, table.list_starts, "list")
    sizes = np.diff(table.list_starts)
    yield bool((sizes[lists] > 0).all()), "list_starts", "has a list without items"
    compared = np.where(table.list_kinds == FLOAT, INTEGER, table.list_kinds)
    firsts = np.repeat(table.list_starts[:-1], sizes)
    yield bool((compared == compared[firsts]).all()), "list_kinds", "has a list of two kinds"
    kinds = np.where(table.kinds == FLOAT, INTEGER, table.kinds)[is_list]
    is_same = kinds == compared[table.list_starts[lists]]
    yield bool(is_same.all()), "kinds", "is not that of the list"


def _leads(name: str, starts: Int64, into: NDArray[Any]) -> _Invariant:
    holds = len(starts) > 0 and are_starts(starts, len(into))
    return holds, name, f"does not ascend from 0 to {len(into):,}"


def _counts(name: str, items: NDArray[Any], count: int) -> _Invariant:
    return are_within(items, [(0, count)]), name, f"has a number beyond 0 to {count - 1:,}"


def _refers(name: str, numbers: Int64, starts: Int64, thing: str) -> _Invariant:
    holds = are_within(numbers, [(0, len(starts) - 1)])
    return holds, name, f"has the number of a {thing} that is not there"
