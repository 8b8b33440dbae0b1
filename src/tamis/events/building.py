"""``TableBuilder``: filters of Python's values → ``FilterTable``."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.events.model import BOOLEAN, OPERATORS, STRING, FilterTable, number
from tamis.language.constraints import Constant, Constraint, constraint_key


class TableBuilder:
    """Adds subscriptions one by one. Operators have to suit their constants: that is not checked.

    Equal constraints are written once while the table grows, and are numbers, their *codes*.

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
        """The same, of codes."""
        number = len(self._interfaces)
        self._interfaces.append(interface)
        for filter in filters:
            self._constraints.extend(filter)
            self._starts.append(len(self._constraints))
            self._subscriptions.append(number)

    def code(self, constraint: Constraint) -> int:
        """The number of a constraint."""
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
            list_kinds=_bytes(self._list_kinds),
            list_values=np.array(self._list_values, np.int64),
            string_starts=string_starts,
            string_bytes=string_bytes,
            subscriptions=np.array(self._subscriptions, np.int32),
            interfaces=np.array(self._interfaces, np.int32),
            interface_count=max(self._interfaces, default=-1) + 1,
        ).frozen()


def packed(strings: Iterable[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Strings behind each other, and where each begins."""
    every = list(strings)
    starts = np.zeros(len(every) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, every), np.int64, len(every)), out=starts[1:])
    return starts, _bytes(b"".join(every))


def _bytes(data: bytes | bytearray) -> NDArray[np.uint8]:
    return np.frombuffer(bytes(data), np.uint8)
