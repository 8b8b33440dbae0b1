"""``TableBuilder``: filters of Python's values → ``FilterTable``."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import freeze
from tamis.events.model import BOOLEAN, EXISTS, IN, OPERATORS, STRING, FilterTable, number

Constant = str | int | float | bool
"""What a constraint compares with."""


class Constraint(NamedTuple):
    """``name operator constant``, of one attribute.

    Attributes:
        constant: of ``in``, a tuple; of ``exists``, None.
    """

    name: str
    operator: str
    constant: Constant | tuple[Constant, ...] | None = None


Filter = Sequence[Constraint]
"""A conjunction."""


class TableBuilder:
    """Adds subscriptions one by one. Operators have to suit their constants: that is not checked.

    >>> builder = TableBuilder()
    >>> builder.add([[Constraint("area", "=", "area1"), Constraint("temp", ">", 30)]])
    >>> builder.freeze().names
    ('area', 'temp')
    """

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._strings: dict[str, int] = {}
        self._starts = array("q", [0])
        self._constraint_names = array("i")
        self._operators = bytearray()
        self._kinds = bytearray()
        self._values = array("q")
        self._list_starts = array("q", [0])
        self._list_kinds = bytearray()
        self._list_values = array("q")
        self._subscriptions = array("i")
        self._interfaces = array("i")

    def add(self, filters: Iterable[Filter], interface: int = 0) -> None:
        """Add a subscription, a disjunction of filters."""
        number = len(self._interfaces)
        self._interfaces.append(interface)
        for filter in filters:
            for constraint in filter:
                self._add_constraint(*constraint)
            self._starts.append(len(self._values))
            self._subscriptions.append(number)

    def _add_constraint(self, name: str, operator: str, constant: Any) -> None:
        code = OPERATORS.index(operator)
        kind = value = 0
        if code == IN:
            value = len(self._list_starts) - 1
            items = [self._value(item) for item in constant]
            kind = items[0][0]
            self._list_kinds.extend(item[0] for item in items)
            self._list_values.extend(item[1] for item in items)
            self._list_starts.append(len(self._list_values))
        elif code != EXISTS:
            kind, value = self._value(constant)
        self._constraint_names.append(self._names.setdefault(name, len(self._names)))
        self._operators.append(code)
        self._kinds.append(kind)
        self._values.append(value)

    def _value(self, constant: Constant) -> tuple[int, int]:
        if isinstance(constant, str):
            return STRING, self._strings.setdefault(constant, len(self._strings))
        if isinstance(constant, bool):
            return BOOLEAN, int(constant)
        return number(constant)

    def freeze(self) -> FilterTable:
        """The arrays, read-only."""
        string_starts, string_bytes = packed(text.encode() for text in self._strings)
        table = FilterTable(
            names=tuple(self._names),
            starts=np.array(self._starts, np.int64),
            constraint_names=np.array(self._constraint_names, np.int32),
            operators=_bytes(self._operators),
            kinds=_bytes(self._kinds),
            values=np.array(self._values, np.int64),
            list_starts=np.array(self._list_starts, np.int64),
            list_kinds=_bytes(self._list_kinds),
            list_values=np.array(self._list_values, np.int64),
            string_starts=string_starts,
            string_bytes=string_bytes,
            subscriptions=np.array(self._subscriptions, np.int32),
            interfaces=np.array(self._interfaces, np.int32),
            interface_count=max(self._interfaces, default=-1) + 1,
        )
        freeze(*(field for field in table if isinstance(field, np.ndarray)))
        return table


def packed(strings: Iterable[bytes]) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """Strings behind each other, and where each begins."""
    every = list(strings)
    starts = np.zeros(len(every) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, every), np.int64, len(every)), out=starts[1:])
    return starts, _bytes(b"".join(every))


def _bytes(data: bytes | bytearray) -> NDArray[np.uint8]:
    return np.frombuffer(bytes(data), np.uint8)
