"""Ids of answers as JSON: each is written once, and answers are put together from that."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np

from tamis.core.arguments import to_json
from tamis.core.arrays import Bytes, Int32, Int64, distinct, starts_of
from tamis.core.index.kernels import write_lists

if TYPE_CHECKING:
    from tamis.core.index.columns import Ids
    from tamis.core.index.segments import SnapshotIds


class WrittenLists:
    """Lists of ids as JSON. Threads share it.

    Args:
        ids: by number; None: the numbers are the ids.
        size: the numbers are less than this.

    >>> written = WrittenLists(None, 8)
    >>> data, bounds = written.of(np.array([0, 2, 2, 3]), np.array([5, 7, 5], np.int32))
    >>> data, bounds
    (b'[5, 7][][5]', [0, 6, 8, 11])
    """

    def __init__(self, ids: Ids | SnapshotIds | None, size: int) -> None:
        self._ids = ids
        self._lock = threading.Lock()  # of what follows: where each id is in the data, or 0, 0
        self._begins, self._ends = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self._data: Bytes = np.zeros(1 << 10, np.uint8)
        self._used = 0

    def of(self, starts: Int64, numbers: Int32) -> tuple[bytes, list[int]]:
        """The lists of ``numbers[starts[i]:starts[i + 1]]``, and where each begins, and the end."""
        with self._lock:
            new = numbers[self._ends[numbers] == 0]
            if len(new):
                self._add(distinct(new))
            data = self._data
        begins, ends = self._begins, self._ends
        size = int((ends[numbers] - begins[numbers]).sum()) + 2 * (len(numbers) + len(starts) - 1)
        into, bounds = np.empty(size, np.uint8), np.zeros(len(starts), np.int64)
        write_lists(starts, numbers, data, begins, ends, into, bounds)
        return into[: bounds[-1]].tobytes(), bounds.tolist()

    def _add(self, numbers: Int32) -> None:
        ids = numbers.tolist() if self._ids is None else self._ids.take(numbers)
        written = [to_json(id).encode() for id in ids]
        bounds = self._used + starts_of(list(map(len, written)))
        end = int(bounds[-1])
        if end > len(self._data):
            data = np.zeros(2 * end, np.uint8)  # others may be reading what there was
            data[: self._used] = self._data[: self._used]
            self._data = data
        self._data[self._used : end] = np.frombuffer(b"".join(written), np.uint8)
        self._begins[numbers], self._ends[numbers] = bounds[:-1], bounds[1:]
        self._used = end
