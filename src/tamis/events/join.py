"""Sets of subscriptions of events → one set: what is left of each, renumbered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64, distinct, flat_indices, starts_of
from tamis.core.errors import SubscriptionId
from tamis.core.index.columns import Ids
from tamis.events import model as at
from tamis.events.model import ARRAY_TYPES, FilterTable, packed

_TYPES = ARRAY_TYPES[FilterTable]
_OF_CONSTRAINTS = ("constraint_names", "operators", "kinds", "values")


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
        # The columns of the table, in parts; those that say where lists begin have their lengths.
        self._parts: dict[str, list[NDArray[Any]]] = {n: [np.zeros(0, _TYPES[n])] for n in _TYPES}
        self._behind = {name: list(parts) for name, parts in self._parts.items()}  # of conditions
        self._subscriptions = self._lists = self._conditions = 0

    def add(self, table: FilterTable, kept: Int64, interfaces: Int64) -> None:
        """Add some subscriptions of a table, by their numbers, which ascend; and interfaces."""
        is_kept = np.zeros(len(table.interfaces), np.bool_)
        is_kept[kept] = True
        filters = np.flatnonzero(is_kept[table.subscriptions])
        clauses, conditions = self._clauses_of(table, filters)
        rows = np.concatenate([filters, table.filters + conditions])
        sizes = np.diff(table.starts)[rows]
        own = flat_indices(table.starts[rows], sizes)
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
        is_field = kinds == at.FIELD
        values[is_field] = self._names_of(table, values[is_field])
        item_values[is_string_item] = string_numbers[item_values[is_string_item]]
        columns: dict[str, NDArray[Any]] = {
            "starts": sizes,
            "constraint_names": self._names_of(table, table.constraint_names[own]),
            "operators": operators,
            "kinds": kinds,
            "values": values,
            "list_starts": list_sizes,
            "list_kinds": item_kinds,
            "list_values": item_values,
            "subscriptions": numbers[table.subscriptions[filters]],
            "interfaces": interfaces,
            **clauses,
        }
        of_filters = dict.fromkeys(_OF_CONSTRAINTS, int(sizes[: len(filters)].sum()))
        of_filters["starts"] = len(filters)
        for name, column in columns.items():
            first = of_filters.get(name, len(column))
            self._parts[name].append(column[:first])
            self._behind[name].append(column[first:])
        self._conditions += len(conditions)
        self._subscriptions += len(kept)
        self._lists += len(used)

    def _clauses_of(
        self, table: FilterTable, filters: Int64
    ) -> tuple[dict[str, NDArray[Any]], Int64]:
        """The columns of the clauses of some filters; and the conditions that these have."""
        if not table.conditions:
            none = np.zeros(0, np.int64)
            counts = np.zeros(len(filters), np.int64)
            return {"clause_starts": counts, "literal_starts": none, "literals": none}, none
        counts = np.diff(table.clause_starts)[filters]
        clauses = flat_indices(table.clause_starts[filters], counts)
        sizes = np.diff(table.literal_starts)[clauses]
        literals = table.literals[flat_indices(table.literal_starts[clauses], sizes)]
        conditions, indices = np.unique(literals.astype(np.int64) >> 1, return_inverse=True)
        numbered = 2 * (indices + self._conditions) + (literals & 1)
        own = {"clause_starts": counts, "literal_starts": sizes, "literals": numbered}
        return own, conditions

    def _names_of(self, table: FilterTable, names: Int32 | Int64) -> Int32:
        numbers = np.zeros(len(table.names), np.int32)
        for name in distinct(names).tolist():
            numbers[name] = self._names.setdefault(table.names[name], len(self._names))
        return numbers[names]

    def _strings_of(self, table: FilterTable, *used: Int64) -> Int64:
        """The new number of each string of a table that is used."""
        numbers = np.zeros(len(table.string_starts) - 1, np.int64)
        for string in distinct(np.concatenate(used)).tolist():
            written = table.bytes_of(string)
            numbers[string] = self._strings.setdefault(written, len(self._strings))
        return numbers

    def table(self) -> FilterTable:
        """All that was added."""
        columns: dict[str, Any] = {
            name: np.concatenate([*parts, *self._behind[name]], dtype=_TYPES[name])
            for name, parts in self._parts.items()
        }
        if not self._conditions:
            del columns["clause_starts"], columns["literal_starts"], columns["literals"]
        for name in ("starts", "list_starts", "clause_starts", "literal_starts"):
            if name in columns:
                columns[name] = starts_of(columns[name])
        columns["string_starts"], columns["string_bytes"] = packed(self._strings)
        count = int(columns["interfaces"].max(initial=-1)) + 1
        return FilterTable(tuple(self._names), interface_count=count, **columns).frozen()


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
