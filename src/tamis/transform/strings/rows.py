"""Arrays that grow: records, lists, hash tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int64
from tamis.transform.strings.kernels.tables import put, put_all


class Rows:
    """Records of some numbers each, behind each other, with room for more.

    >>> rows = Rows(2)
    >>> rows.add([1, 2]), rows.add([3, 4])
    (0, 1)
    >>> rows.view
    array([1, 2, 3, 4], dtype=int32)
    """

    def __init__(self, width: int, dtype: Any = np.int32, fill: int = 0) -> None:
        self.width = width
        self.fill = fill
        self.count = 0
        self.array: NDArray[Any] = np.full(16 * width, fill, dtype)

    @property
    def view(self) -> NDArray[Any]:
        """All numbers, as they are now."""
        return self.array[: self.count * self.width]

    def add(self, row: Sequence[Any]) -> int:
        """Add a record, or the beginning of one: its number."""
        start = self.count * self.width
        self.reserve(self.count + 1)
        self.array[start : start + len(row)] = row
        self.count += 1
        return self.count - 1

    def extend(self, numbers: Sequence[Any] | NDArray[Any]) -> int:
        """Add numbers, of records of one each: the place of the first one."""
        start = self.count
        self.reserve(start + len(numbers))
        self.array[start : start + len(numbers)] = numbers
        self.count += len(numbers)
        return start

    def reserve(self, count: int) -> None:
        """Make room for so many records."""
        needed = count * self.width
        if needed > len(self.array):
            wide = np.full(2 * needed, self.fill, self.array.dtype)
            wide[: len(self.array)] = self.array
            self.array = wide

    def stretch(self, count: int) -> None:
        """Have at least so many records."""
        if count > self.count:
            self.reserve(count)
            self.count = count


class Table:
    """A hash table of ``kernels.tables``, at most half full."""

    def __init__(self) -> None:
        self.array: Int64 = np.zeros(2 * 64, np.int64)
        self.count = 0

    def put(self, hash: int, value: int) -> None:
        self.count += 1
        if 4 * self.count > len(self.array):
            wide = np.zeros(2 * len(self.array), np.int64)
            put_all(self.array, wide)
            self.array = wide
        put(self.array, hash, value)


class Slabs:
    """Lists of numbers that grow; one that is full moves to where there is more room.

    Attributes:
        starts, counts: int64; where each list is.
        numbers: int32; what they hold.
        keys: float64; of lists that are kept in their order, the keys of the numbers.
    """

    def __init__(self) -> None:
        self.starts = Rows(1, np.int64)
        self.counts = Rows(1, np.int64)
        self.numbers = Rows(1)
        self.keys = Rows(1, np.float64)
        self._rooms: list[int] = []

    def new(self) -> int:
        """An empty list: its number."""
        self.starts.add([0])
        self._rooms.append(0)
        return self.counts.add([0])

    def add(self, slab: int, number: int) -> None:
        """Add a number at the end of a list."""
        count = int(self.counts.array[slab])
        if count == self._rooms[slab]:
            self._move(slab, count)
        self.numbers.array[int(self.starts.array[slab]) + count] = number
        self.counts.array[slab] = count + 1

    def insert(self, slab: int, key: float, number: int) -> None:
        """Add a number to a list that ascends by keys."""
        count = int(self.counts.array[slab])
        if count == self._rooms[slab]:
            self._move(slab, count)
        start = int(self.starts.array[slab])
        end = start + count
        keys, numbers = self.keys.array, self.numbers.array
        place = start + int(np.searchsorted(keys[start:end], key))
        keys[place + 1 : end + 1] = keys[place:end].copy()
        numbers[place + 1 : end + 1] = numbers[place:end].copy()
        keys[place], numbers[place] = key, number
        self.counts.array[slab] = count + 1

    def _move(self, slab: int, count: int) -> None:
        room = self._rooms[slab] = max(2 * count, 4)
        start = int(self.starts.array[slab])
        moved = self.numbers.count
        for rows in (self.numbers, self.keys):
            rows.stretch(moved + room)
            rows.array[moved : moved + count] = rows.array[start : start + count].copy()
        self.starts.array[slab] = moved
