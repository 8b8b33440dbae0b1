"""Declared invariants: what the numbers may be in arrays that come from a file.

Kernels check no index, so whoever loads arrays for them checks once what the kernels rely on. A
table lists the invariants part by part. Each invariant relies on those before it:

>>> from typing import NamedTuple
>>> class Lists(NamedTuple):
...     starts: object
...     members: object
>>> parts = {"the lists": (Starts("starts", into="members"), Within("members", "queries"))}
>>> lists = Lists(np.array([0, 2, 3]), np.array([4, 0, 1]))
>>> [first_fault(parts, lists, {"queries": [(0, count)]}) for count in (5, 4)]
[None, 'the lists']

An invariant is a function of the arrays and the domains. What cannot be declared is a function
written by hand in the same table. NumPy does each in a call or two, so none is a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Domains = Mapping[str, Sequence[tuple[int, int]]]
"""By name: ascending ranges, apart from each other, of which one has the number."""
Invariant = Callable[[Any, Domains], bool]
Parts = Mapping[str, Sequence[Invariant]]
"""The invariants of each part of a file, by the part's name in messages."""


def first_fault(parts: Parts, arrays: Any, domains: Domains) -> str | None:
    """The name of the first part that breaks an invariant, or None.

    Args:
        arrays: has an attribute for each array.
    """
    for name, invariants in parts.items():
        if not all(invariant(arrays, domains) for invariant in invariants):
            return name
    return None


@dataclass(frozen=True)
class Within:
    """Each number of an array, or of a column, is in a domain.

    Attributes:
        or_none: -1 is allowed too.
        where: a column and a value; only rows with that value are looked at.
        has_end: the last row says only where lists end, and is left out.
    """

    array: str
    domain: str
    column: int | None = None
    or_none: bool = False
    where: tuple[int, int] | None = None
    has_end: bool = False

    def __call__(self, arrays: Any, domains: Domains) -> bool:
        rows = getattr(arrays, self.array)
        rows = rows[:-1] if self.has_end else rows
        values = rows if self.column is None else rows[:, self.column]
        if self.where is not None:
            values = values[rows[:, self.where[0]] == self.where[1]]
        none = [(-1, 0)] if self.or_none else []
        return are_within(values, [*none, *domains[self.domain]])


@dataclass(frozen=True)
class Starts:
    """An array, or a column, says where lists begin in another array, and at last where they end.

    Attributes:
        into: the name of the other array, whose rows the numbers count.
    """

    array: str
    into: str
    column: int | None = None

    def __call__(self, arrays: Any, domains: Domains) -> bool:
        rows = getattr(arrays, self.array)
        return are_starts(
            rows if self.column is None else rows[:, self.column], len(getattr(arrays, self.into))
        )


def are_within(values: NDArray[Any], ranges: Sequence[tuple[int, int]]) -> bool:
    """Whether all numbers are in one of some ranges.

    >>> are_within(np.array([1, 5]), [(0, 2)]), are_within(np.array([1, 5]), [(0, 2), (5, 6)])
    (False, True)
    """
    ranges = [(low, high) for low, high in ranges if low < high]
    if not values.size or not ranges:
        return not values.size
    low, high = ranges[0][0], ranges[-1][1]
    if int(values.min()) < low or int(values.max()) >= high:
        return False
    return not any(
        np.any((values >= high) & (values < low)) for (_, high), (low, _) in pairwise(ranges)
    )


def are_starts(starts: NDArray[Any], length: int) -> bool:
    """Whether numbers ascend from 0 to the length of what they lead into.

    >>> are_starts(np.array([0, 2, 2, 3]), 3), are_starts(np.array([0, 2, 1, 3]), 3)
    (True, False)
    """
    return int(starts[0]) == 0 and int(starts[-1]) == length and is_sorted(starts)


def is_sorted(values: NDArray[Any]) -> bool:
    """Whether no number is less than the one before it."""
    return not np.any(values[1:] < values[:-1])


def ascend_within(values: NDArray[Any], *starts: NDArray[Any]) -> bool:
    """Whether numbers ascend, no two equal, in each of some lists, whose starts are right.

    >>> ascend_within(np.array([3, 5, 1, 2]), np.array([0, 2, 4]))
    True
    """
    begins = np.zeros(len(values) + 1, np.bool_)
    for positions in starts:
        begins[positions] = True
    return bool(np.all((values[1:] > values[:-1]) | begins[1:-1]))
