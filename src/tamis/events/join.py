"""Sets of subscriptions of events → one set: what is left of each, renumbered."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, distinct, flat_indices, starts_of
from tamis.core.errors import SubscriptionId
from tamis.core.index.columns import Ids
from tamis.events import model as at
from tamis.events.model import FilterTable, packed

_NONE = np.zeros(0, np.int64)


class TableJoiner:
    """Joins parts of filter tables; names and strings that several have are one.

    >>> from tamis.events.subscriptions import EventSubscriptions
    >>> one = EventSubscriptions({"a": 'x = "1"', "b": "y > 2"}).table
    >>> joiner = TableJoiner()
    >>> joiner.add(one, np.array([1]), np.array([0]))
    >>> joiner.add(one, np.array([0, 1]), np.array([1, 2]))
    >>> table = joiner.table()
    >>> table.names, table.constraint_names, table.subscriptions
    (('y', 'x'), array([0, 1, 0], dtype=int32), array([0, 1, 2], dtype=int32))
    """

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._strings: dict[bytes, int] = {}
        self._parts: list[tuple[NDArray[np.generic], ...]] = []
        self._subscriptions = self._lists = 0

    def add(self, table: FilterTable, kept: Int64, interfaces: Int64) -> None:
        """Add some subscriptions of a table, by their numbers, which ascend; and interfaces."""
        is_kept = np.zeros(len(table.interfaces), np.bool_)
        is_kept[kept] = True
        filters = np.flatnonzero(is_kept[table.subscriptions])
        sizes = np.diff(table.starts)[filters]
        own = flat_indices(table.starts[filters], sizes)
        numbers = np.cumsum(is_kept) - 1 + self._subscriptions
        operators, kinds, values = table.operators[own], table.kinds[own], table.values[own]
        is_list = operators == at.IN
        used, indices = np.unique(values[is_list], return_inverse=True)
        list_sizes = np.diff(table.list_starts)[used]
        items = flat_indices(table.list_starts[used], list_sizes)
        values[is_list] = indices + self._lists
        item_kinds, item_values = table.list_kinds[items], table.list_values[items]
        is_string = (kinds == at.STRING) & ~is_list & (operators != at.EXISTS)
        is_string_item = item_kinds == at.STRING
        string_numbers = self._strings_of(table, values[is_string], item_values[is_string_item])
        values[is_string] = string_numbers[values[is_string]]
        item_values[is_string_item] = string_numbers[item_values[is_string_item]]
        self._parts.append(
            (
                sizes,
                self._names_of(table, table.constraint_names[own]),
                *(operators, kinds, values),
                *(list_sizes, item_kinds, item_values),
                numbers[table.subscriptions[filters]],
                interfaces,
            )
        )
        self._subscriptions += len(kept)
        self._lists += len(used)

    def _names_of(self, table: FilterTable, names: Int32) -> Int32:
        numbers = np.zeros(len(table.names), np.int32)
        for name in distinct(names).tolist():
            numbers[name] = self._names.setdefault(table.names[name], len(self._names))
        return numbers[names]

    def _strings_of(self, table: FilterTable, *used: Int64) -> Int64:
        """The new number of each string of a table that is used."""
        numbers = np.zeros(len(table.string_starts) - 1, np.int64)
        for string in distinct(np.concatenate(used)).tolist():
            start, end = table.string_starts[string : string + 2].tolist()
            written = table.string_bytes[start:end].tobytes()
            numbers[string] = self._strings.setdefault(written, len(self._strings))
        return numbers

    def table(self) -> FilterTable:
        """All that was added."""

        def column(index: int, dtype: type[np.generic]) -> NDArray[np.generic]:
            return np.concatenate([_NONE.astype(dtype), *(part[index] for part in self._parts)])

        def ints(index: int) -> Int32:
            return column(index, np.int32).astype(np.int32)

        def longs(index: int) -> Int64:
            return column(index, np.int64).astype(np.int64)

        def kinds(index: int) -> Bytes:
            return column(index, np.uint8).astype(np.uint8)

        string_starts, string_bytes = packed(self._strings)
        interfaces = ints(9)
        return FilterTable(
            names=tuple(self._names),
            starts=starts_of(longs(0)),
            constraint_names=ints(1),
            operators=kinds(2),
            kinds=kinds(3),
            values=longs(4),
            list_starts=starts_of(longs(5)),
            list_kinds=kinds(6),
            list_values=longs(7),
            string_starts=string_starts,
            string_bytes=string_bytes,
            subscriptions=ints(8),
            interfaces=interfaces,
            interface_count=int(interfaces.max(initial=-1)) + 1,
        ).frozen()


class InterfaceNumbers:
    """Numbers interfaces of several sets: those with the same id are one."""

    def __init__(self) -> None:
        self._numbers: dict[SubscriptionId, int] = {}

    def of(self, ids: Sequence[SubscriptionId]) -> Int64:
        """The numbers of some interfaces."""
        numbers = (self._numbers.setdefault(id, len(self._numbers)) for id in ids)
        return np.fromiter(numbers, np.int64, len(ids))

    def ids(self) -> Ids:
        """The ids, by their numbers."""
        return Ids.of(self._numbers)
