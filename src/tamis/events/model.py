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
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, dtype_of, freeze
from tamis.core.errors import EventError, UsageError
from tamis.language.constraints import Constant, Constraint, constraint_key

INTEGER, FLOAT, STRING, BOOLEAN = range(4)
"""Kinds of values."""

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "prefix", "suffix", "contains", "in", "exists")
EQ, NE, LT, LE, GT, GE, PREFIX, SUFFIX, CONTAINS, IN, EXISTS = range(len(OPERATORS))
"""Operators of constraints, by their indices in ``OPERATORS``. ``< <= > >=`` compare numbers and
strings, ``prefix suffix contains`` strings, the others all kinds.
"""

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1

By = Literal["filter", "subscription", "interface"]
"""The owner to report where a filter matches: itself, its subscription, or its interface."""


class FilterTable(NamedTuple):
    """Filters, conjunctions of constraints: what every engine compiles.

    A subscription is true of an event if one of its filters matches, and a filter matches if all of
    its constraints are satisfied; one without constraints matches every event.

    Attributes:
        names: attribute names, each once; they are called by their numbers.
        starts: int64[f + 1]; the constraints of filter i are those from ``starts[i]`` on, up to
            ``starts[i + 1]``.
        constraint_names: int32[c].
        operators: uint8[c].
        kinds: uint8[c]; of the constant. Of ``in``: of its first item (all are numbers, or all are
            strings, or booleans). Of ``exists``: 0.
        values: int64[c]; the constant. Of ``in``: the number of a list. Of ``exists``: 0.
        list_starts: int64[l + 1]; the items of list i are those from ``list_starts[i]`` on.
        list_kinds: uint8[]; list_values: int64[].
        string_starts: int64[s + 1]; string i is ``string_bytes[string_starts[i]:…]``.
        string_bytes: uint8[].
        subscriptions: int32[f]; the subscription that each filter is of; they ascend.
        interfaces: int32[subscriptions]; the interface of each subscription.
        interface_count: how many interfaces there are.
    """

    names: tuple[str, ...]
    starts: Int64
    constraint_names: Int32
    operators: Bytes
    kinds: Bytes
    values: Int64
    list_starts: Int64
    list_kinds: Bytes
    list_values: Int64
    string_starts: Int64
    string_bytes: Bytes
    subscriptions: Int32
    interfaces: Int32
    interface_count: int

    @property
    def filters(self) -> int:
        """The number of filters."""
        return len(self.starts) - 1

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

    Attributes that no filter names are left out, and so are nulls. No event has two of a name.

    Attributes:
        event_starts: int64[n + 1]; the attributes of event i are those from ``event_starts[i]`` on,
            up to ``event_starts[i + 1]``. One in error has none.
        names: int32[a]; the attribute's name, by its number in the filter table.
        kinds: uint8[a]; values: int64[a].
        string_starts: int64[s + 1]; string i is ``string_bytes[string_starts[i]:…]``. Equal strings
            may have several numbers.
        string_bytes: uint8[].
        errors: by event number, why events cannot be answered. No filter matches these, not even
            one without constraints.
    """

    event_starts: Int64
    names: Int32
    kinds: Bytes
    values: Int64
    string_starts: Int64
    string_bytes: Bytes
    errors: Mapping[int, EventError]

    @property
    def events(self) -> int:
        """The number of events, those in error included."""
        return len(self.event_starts) - 1


def number(value: int | float) -> tuple[int, int]:
    """The kind and the 64 bits of a number; equal numbers have the same.

    Raises:
        OverflowError: an integer is beyond int64.

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
        self._subscriptions = array("i")
        self._interfaces = array("i")

    def add(self, filters: Iterable[Iterable[Constraint]], interface: int = 0) -> None:
        """Add a subscription, a disjunction of filters."""
        self.add_codes([[self.code(each) for each in filter] for filter in filters], interface)

    def add_codes(self, filters: Iterable[Iterable[int]], interface: int = 0) -> None:
        """Add a subscription whose constraints are given by their codes."""
        number = len(self._interfaces)
        self._interfaces.append(interface)
        for filter in filters:
            self._constraints.extend(filter)
            self._starts.append(len(self._constraints))
            self._subscriptions.append(number)

    def code(self, constraint: Constraint) -> int:
        """The code of a constraint."""
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

    def _value(self, constant: Constant) -> tuple[int, int]:
        if isinstance(constant, str):
            return STRING, self._strings.setdefault(constant, len(self._strings))
        if isinstance(constant, bool):
            return BOOLEAN, int(constant)
        return number(constant)

    def freeze(self) -> FilterTable:
        """The arrays, read-only."""
        string_starts, string_bytes = packed(text.encode() for text in self._strings)
        pool = np.array(self._pool, np.int64).reshape(-1, 4)[np.array(self._constraints, np.int32)]
        return FilterTable(
            names=tuple(self._names),
            starts=np.array(self._starts, np.int64),
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
        ).frozen()


def packed(strings: Iterable[bytes]) -> tuple[Int64, Bytes]:
    """Where each of some strings begins in their bytes, and these bytes."""
    every = list(strings)
    starts = np.zeros(len(every) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, every), np.int64, len(every)), out=starts[1:])
    return starts, np.frombuffer(b"".join(every), np.uint8)


# -- checks: kernels read arrays unchecked -----------------------------------------------------

_CONSTRAINTS_MAX = 1 << 29
"""Engines count constraints, and twice as many of their parts, in 32 bits."""
_TYPES = {
    of: {
        name: dtype_of(hint)
        for name, hint in get_type_hints(of).items()
        if get_origin(hint) is get_origin(Int64)
    }
    for of in (FilterTable, EventBatch)
}
"""The types of arrays, by their names."""


def checked_table(table: FilterTable) -> FilterTable:
    """The same table, with frozen arrays.

    Raises:
        UsageError: an array is not as ``FilterTable`` describes it; the message names it.
    """
    names: Any = table.names
    table = table._replace(**_checked_arrays(table))
    constraints = len(table.values)
    _require(isinstance(names, tuple), "names", f"is of type {type(names).__name__}, not tuple")
    _require(all(isinstance(name, str) for name in names), "names", "has what is no str")
    _require(len(set(names)) == len(names), "names", "has a name twice")
    count: Any = table.interface_count
    is_count = isinstance(count, int) and not isinstance(count, bool) and count >= 0
    _require(is_count, "interface_count", f"is {count!r:.40}: it is a whole number from 0")
    _require(constraints <= _CONSTRAINTS_MAX, "values", "is too long: divide the filters")
    for name in ("constraint_names", "operators", "kinds"):
        _require(len(getattr(table, name)) == constraints, name, "is not as long as values")
    _check_starts("starts", table.starts, constraints)
    _check_starts("list_starts", table.list_starts, len(table.list_values))
    _check_starts("string_starts", table.string_starts, len(table.string_bytes))
    _require(len(table.list_kinds) == len(table.list_values), "list_kinds", "is of another length")
    _check_range("constraint_names", table.constraint_names, len(names))
    _check_range("operators", table.operators, len(OPERATORS))
    _check_range("interfaces", table.interfaces, count)
    _check_range("subscriptions", table.subscriptions, len(table.interfaces))
    _require(len(table.subscriptions) == table.filters, "subscriptions", "is not one a filter")
    _require(bool((np.diff(table.subscriptions) >= 0).all()), "subscriptions", "does not ascend")
    _check_operators(table)
    plain = (table.operators != IN) & (table.operators != EXISTS)
    _check_values("values", table.kinds[plain], table.values[plain], table)
    _check_values("list_values", table.list_kinds, table.list_values, table)
    _check_lists(table)
    return table


def check_batch(batch: EventBatch, names: int) -> None:
    """Check that a batch is one for a table with so many names.

    Raises:
        UsageError: an array is not as ``EventBatch`` describes it; the message names it.
    """
    if not isinstance(batch, EventBatch):
        raise UsageError(
            f"match_batch() takes an EventBatch, not {type(batch).__name__}: give events to "
            "match_many()"
        )
    _checked_arrays(batch)
    attributes = len(batch.values)
    for name in ("names", "kinds"):
        _require(len(getattr(batch, name)) == attributes, name, "is not as long as values")
    _check_starts("event_starts", batch.event_starts, attributes)
    _check_starts("string_starts", batch.string_starts, len(batch.string_bytes))
    _check_range("names", batch.names, names)
    _check_range("kinds", batch.kinds, BOOLEAN + 1)
    _check_strings("values", batch.values[batch.kinds == STRING], batch.string_starts)


def _checked_arrays(given: FilterTable | EventBatch) -> dict[str, Any]:
    """The arrays by their names: frozen, contiguous, of their types."""
    types = _TYPES[type(given)]
    return {name: _array(name, getattr(given, name), type) for name, type in types.items()}


def _array(name: str, given: Any, wanted: np.dtype[Any]) -> NDArray[Any]:
    _require(isinstance(given, np.ndarray) and given.ndim == 1, name, "is no array")
    _require(given.dtype == wanted, name, f"is of type {given.dtype}, not {wanted}")
    if given.flags.writeable:  # also a memmap, whose plain view would still be the file
        array: NDArray[Any] = np.array(given, order="C")
    else:
        array = np.ascontiguousarray(given)
    freeze(array)
    return array


def _check_starts(name: str, starts: Int64, end: int) -> None:
    is_good = len(starts) > 0 and starts[0] == 0 and starts[-1] == end
    _require(
        is_good and bool((np.diff(starts) >= 0).all()), name, f"does not ascend from 0 to {end:,}"
    )


def _check_range(name: str, items: NDArray[Any], count: int) -> None:
    is_good = not len(items) or (int(items.min()) >= 0 and int(items.max()) < count)
    _require(is_good, name, f"has a number beyond 0 to {count - 1:,}")


def _check_operators(table: FilterTable) -> None:
    operators, kinds = table.operators, table.kinds
    _check_range("kinds", kinds, BOOLEAN + 1)
    orders_booleans = (kinds == BOOLEAN) & (operators >= LT) & (operators <= GE)
    _require(not orders_booleans.any(), "operators", "asks for an order: booleans have no order")
    is_part = (operators >= PREFIX) & (operators <= CONTAINS)
    is_string = kinds == STRING
    _require(not (is_part & ~is_string).any(), "kinds", "is not that of parts of strings")


def _check_values(name: str, kinds: Bytes, values: Int64, table: FilterTable) -> None:
    _check_range(name.replace("values", "kinds"), kinds, BOOLEAN + 1)
    _check_strings(name, values[kinds == STRING], table.string_starts)
    booleans = values[kinds == BOOLEAN]
    _require(bool(((booleans == 0) | (booleans == 1)).all()), name, "has a boolean beyond 0 and 1")
    floats = values[kinds == FLOAT].view(np.float64)
    is_number = not np.isnan(floats).any() and not (numbers(floats)[0] == INTEGER).any()
    _require(bool(is_number), name, "has a float that is NaN, or an integer: see model.number()")


def _check_strings(name: str, numbers: Int64, starts: Int64) -> None:
    is_known = not len(numbers) or (numbers.min() >= 0 and numbers.max() < len(starts) - 1)
    _require(bool(is_known), name, "has the number of a string that is not there")


def _check_lists(table: FilterTable) -> None:
    is_list = table.operators == IN
    lists = table.values[is_list]
    is_known = not len(lists) or (lists.min() >= 0 and lists.max() < len(table.list_starts) - 1)
    _require(bool(is_known), "values", "has the number of a list that is not there")
    sizes = np.diff(table.list_starts)
    _require(bool((sizes[lists] > 0).all()), "list_starts", "has a list without items")
    compared = np.where(table.list_kinds == FLOAT, INTEGER, table.list_kinds)
    firsts = np.repeat(table.list_starts[:-1], sizes)
    _require(bool((compared == compared[firsts]).all()), "list_kinds", "has a list of two kinds")
    kinds = np.where(table.kinds == FLOAT, INTEGER, table.kinds)[is_list]
    is_same = kinds == compared[table.list_starts[lists]]
    _require(bool(is_same.all()), "kinds", "is not that of the list")


def _require(holds: bool, name: str, message: str) -> None:
    if not holds:
        raise UsageError(f"these arrays cannot be used: {name} {message}")
