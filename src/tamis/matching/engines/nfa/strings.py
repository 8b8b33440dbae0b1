"""``Strings``: strings of nodes, and what is asked of them, once for all that are equal."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int64
from tamis.language.values import normalize_space, xpath_number
from tamis.matching.engines.nfa.conditions import Asked

Mask = NDArray[np.bool_]

_COMPARISONS = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


_NONE = np.zeros(0, np.int64)


class Strings:
    """A sequence of strings.

    Attributes:
        distinct: each, once.
        ids: int64[n]; which of these each is.

    >>> strings = Strings([b"1", b" a", b"1.0"])
    >>> strings.find(Asked((), "=", 1.0)), strings.find(Asked((), "=", b"1"))
    (array([0, 2]), array([0]))
    >>> strings.find(Asked(("normalize-space",), "starts-with", b"a"))
    array([1])
    """

    def __init__(self, values: Iterable[bytes]) -> None:
        numbers: dict[bytes, int] = {}
        ids = [numbers.setdefault(value, len(numbers)) for value in values]
        self._numbers = numbers
        self.distinct = list(numbers)
        self.ids: Int64 = np.array(ids, np.int64)

    def find(self, asked: Asked) -> Int64:
        """The places of those that are as asked, in no order."""
        if not asked.functions and asked.operator == "=" and isinstance(asked.literal, bytes):
            number = self._numbers.get(asked.literal)
            if number is None:
                return _NONE
            order, starts = self._by_number
            return order[starts[number] : starts[number + 1]]
        return np.flatnonzero(self._where_distinct(asked)[self.ids])

    @cached_property
    def _by_number(self) -> tuple[Int64, Int64]:
        """The places of all, those of equal ones together; and where those of each begin."""
        order = np.argsort(self.ids, kind="stable")
        return order, np.searchsorted(self.ids[order], np.arange(len(self.distinct) + 1))

    def _where(self, asked: Asked) -> Mask:
        """Which of them are as asked."""
        return self._where_distinct(asked)[self.ids]

    def _where_distinct(self, asked: Asked) -> Mask:
        literal = asked.literal
        if asked.functions:
            *inner, last = asked.functions
            if last == "string-length":
                return self._compared(self._lengths(tuple(inner)), asked)
            return self._normalized._where(Asked((), asked.operator, literal))
        if isinstance(literal, float):
            return self._compared(self._as_numbers, asked)
        if asked.operator == "contains":
            return np.array([literal in value for value in self.distinct], np.bool_)
        if asked.operator == "starts-with":
            return np.array([value.startswith(literal) for value in self.distinct], np.bool_)
        is_equal = np.zeros(len(self.distinct), np.bool_)
        if (number := self._numbers.get(literal)) is not None:
            is_equal[number] = True
        return is_equal if asked.operator == "=" else ~is_equal

    @staticmethod
    def _compared(numbers: NDArray[np.float64], asked: Asked) -> Mask:
        return np.asarray(_COMPARISONS[asked.operator](numbers, asked.literal), np.bool_)

    def _lengths(self, functions: tuple[str, ...]) -> NDArray[np.float64]:
        """How many characters each distinct one has, after what functions make of it."""
        if functions:
            normalized = self._normalized
            return normalized._lengths(())[normalized.ids]
        return np.array([len(value.decode()) for value in self.distinct], np.float64)

    @cached_property
    def _normalized(self) -> Strings:
        """What normalize-space() makes of each distinct one."""
        return Strings(map(normalize_space, self.distinct))

    @cached_property
    def _as_numbers(self) -> NDArray[np.float64]:
        """What number() makes of each distinct one."""
        return np.array([xpath_number(value) for value in self.distinct], np.float64)
