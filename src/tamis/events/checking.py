"""Whether arrays that somebody else made are what engines take: kernels read them unchecked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int64, freeze
from tamis.core.errors import UsageError
from tamis.events.model import (
    BOOLEAN,
    CONTAINS,
    EXISTS,
    FLOAT,
    GE,
    IN,
    INTEGER,
    LT,
    NE,
    OPERATORS,
    PREFIX,
    STRING,
    EventBatch,
    FilterTable,
    numbers,
)

_TYPES: dict[str, type[np.generic]] = {
    "starts": np.int64,
    "constraint_names": np.int32,
    "operators": np.uint8,
    "kinds": np.uint8,
    "values": np.int64,
    "list_starts": np.int64,
    "list_kinds": np.uint8,
    "list_values": np.int64,
    "string_starts": np.int64,
    "string_bytes": np.uint8,
    "subscriptions": np.int32,
    "interfaces": np.int32,
}
_BATCH_TYPES: dict[str, type[np.generic]] = {
    "event_starts": np.int64,
    "names": np.int32,
    "kinds": np.uint8,
    "values": np.int64,
    "string_starts": np.int64,
    "string_bytes": np.uint8,
}
_CONSTRAINTS_MAX = 1 << 29
"""Engines count them, and twice as many of their parts, in 32 bits."""


def checked_table(table: FilterTable) -> FilterTable:
    """The same table, with frozen arrays.

    Raises:
        UsageError: it is none; with the name of the array, and what is wrong with it.
    """
    arrays: dict[str, Any] = {
        name: _array(name, getattr(table, name), type) for name, type in _TYPES.items()
    }
    table = table._replace(**arrays)
    constraints = len(table.values)
    _check_names(table)
    _require(constraints <= _CONSTRAINTS_MAX, "values", "is too long: divide the filters")
    for name in ("constraint_names", "operators", "kinds"):
        _require(len(arrays[name]) == constraints, name, "is not as long as values")
    _check_starts("starts", table.starts, constraints)
    _check_starts("list_starts", table.list_starts, len(table.list_values))
    _check_starts("string_starts", table.string_starts, len(table.string_bytes))
    _require(len(table.list_kinds) == len(table.list_values), "list_kinds", "is of another length")
    _check_range("constraint_names", table.constraint_names, len(table.names))
    _check_range("operators", table.operators, len(OPERATORS))
    _check_range("interfaces", table.interfaces, table.interface_count)
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
    """See that a batch is one for a table with so many names.

    Raises:
        UsageError: it is none; with the name of the array, and what is wrong with it.
    """
    if not isinstance(batch, EventBatch):
        raise UsageError(
            f"match_batch() takes an EventBatch, not {type(batch).__name__}: give events to "
            "match_many()"
        )
    for name, kind in _BATCH_TYPES.items():
        _array(name, getattr(batch, name), kind)
    attributes = len(batch.values)
    for name in ("names", "kinds"):
        _require(len(getattr(batch, name)) == attributes, name, "is not as long as values")
    _check_starts("event_starts", batch.event_starts, attributes)
    _check_starts("string_starts", batch.string_starts, len(batch.string_bytes))
    _check_range("names", batch.names, names)
    _check_range("kinds", batch.kinds, BOOLEAN + 1)
    _check_strings("values", batch.values[batch.kinds == STRING], batch.string_starts)


def _array(name: str, given: Any, type: type[np.generic]) -> NDArray[Any]:
    _require(isinstance(given, np.ndarray) and given.ndim == 1, name, "is no array")
    wanted = np.dtype(type)
    _require(given.dtype == wanted, name, f"is of type {given.dtype}, not {wanted}")
    if given.flags.writeable:  # also a memmap, whose plain view would still be the file
        array: NDArray[Any] = np.array(given, order="C")
    else:
        array = np.ascontiguousarray(given)
    freeze(array)
    return array


def _check_names(table: FilterTable) -> None:
    names: Any = table.names
    _require(isinstance(names, tuple), "names", f"is of type {type(names).__name__}, not tuple")
    _require(all(isinstance(name, str) for name in names), "names", "has what is no str")
    _require(len(set(names)) == len(names), "names", "has a name twice")
    count: Any = table.interface_count
    is_count = isinstance(count, int) and not isinstance(count, bool) and count >= 0
    _require(is_count, "interface_count", f"is {count!r:.40}: it is a whole number from 0")


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
    _require(not (is_part & (kinds != STRING)).any(), "kinds", "is not that of parts of strings")
    assert NE < LT < GE < PREFIX < CONTAINS < IN < EXISTS


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
    asked = table.operators == IN
    lists = len(table.list_starts) - 1
    of_lists = table.values[asked]
    is_known = not len(of_lists) or (of_lists.min() >= 0 and of_lists.max() < lists)
    _require(bool(is_known), "values", "has the number of a list that is not there")
    sizes = np.diff(table.list_starts)
    _require(bool((sizes[of_lists] > 0).all()), "list_starts", "has a list without items")
    compared = np.where(table.list_kinds == FLOAT, INTEGER, table.list_kinds)
    firsts = np.repeat(table.list_starts[:-1], sizes)
    _require(bool((compared == compared[firsts]).all()), "list_kinds", "has a list of two kinds")
    kinds = np.where(table.kinds == FLOAT, INTEGER, table.kinds)[asked]
    is_same = kinds == compared[table.list_starts[of_lists]]
    _require(bool(is_same.all()), "kinds", "is not that of the list")


def _require(is_so: bool, name: str, message: str) -> None:
    if not is_so:
        raise UsageError(f"these arrays cannot be used: {name} {message}")
