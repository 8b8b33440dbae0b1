"""The segments of a set of subscriptions: each is compiled once, and only loses subscriptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import distinct
from tamis.core.errors import SubscriptionId
from tamis.core.index.columns import Ids, WrittenIds


class Identified(Protocol):
    """What has subscriptions, by number."""

    @property
    def ids(self) -> Ids:
        """Their ids."""


C = TypeVar("C", bound=Identified)


@dataclass(frozen=True, eq=False)
class Segment(Generic[C]):
    """A compiled part of a set, without the subscriptions that were removed since.

    Attributes:
        is_removed: bool[]; which of its subscriptions are no longer there; None: all are there.
    """

    compiled: C
    is_removed: NDArray[np.bool_] | None = None

    def find(self, id: object) -> int:
        """The number of an id in the segment, or -1 where it is not there."""
        number = self.compiled.ids.find(id)
        is_gone = number >= 0 and self.is_removed is not None and self.is_removed[number]
        return -1 if is_gone else number

    def find_many(self, wanted: WrittenIds) -> NDArray[np.int64]:
        """The numbers of ids in the segment, and -1 for each that is not there."""
        numbers = self.compiled.ids.find_many(wanted)
        if self.is_removed is not None:
            numbers[(numbers >= 0) & self.is_removed[numbers]] = -1
        return numbers

    def ids(self) -> Ids:
        """The ids that are there."""
        return self.compiled.ids if self.is_removed is None else self.compiled.ids.part(self.left())

    def left(self) -> NDArray[np.int64]:
        """The numbers of those that are there."""
        if self.is_removed is None:
            return np.arange(len(self.compiled.ids))
        return np.flatnonzero(~self.is_removed)

    def without(self, numbers: NDArray[np.int64]) -> Segment[C]:
        """The same without some more subscriptions."""
        if self.is_removed is None:
            is_removed = np.zeros(len(self.compiled.ids), np.bool_)
        else:
            is_removed = self.is_removed.copy()
        is_removed[numbers] = True
        return Segment(self.compiled, is_removed)

    def ids_removed(self, later: Segment[C]) -> list[SubscriptionId]:
        """The ids that are here, and not in the same segment later."""
        assert later.is_removed is not None
        gone = later.is_removed if self.is_removed is None else later.is_removed & ~self.is_removed
        return self.compiled.ids.take(np.flatnonzero(gone))

    def __len__(self) -> int:
        removed = 0 if self.is_removed is None else int(np.count_nonzero(self.is_removed))
        return len(self.compiled.ids) - removed


class _OnlyIds(NamedTuple):
    """What is left of something compiled that only tells ids."""

    ids: Ids


class SnapshotIds:
    """The ids of several segments, whose numbers follow each other; removed ones leave gaps.

    >>> class Compiled:
    ...     def __init__(self, *ids):
    ...         self.ids = Ids.of(ids)
    >>> segments = [Segment(Compiled("a", "b"), np.array([True, False])), Segment(Compiled("c"))]
    >>> ids = SnapshotIds(segments)
    >>> len(ids), list(ids), ids.find("c"), ids.find("a"), ids.take(np.array([2, 1]))
    (2, ['b', 'c'], 2, -1, ['c', 'b'])
    """

    def __init__(self, segments: Sequence[Segment[Any]]) -> None:
        # Whoever keeps an answer keeps these, and not what segments were compiled to.
        self._segments = [
            Segment(_OnlyIds(each.compiled.ids), each.is_removed) for each in segments
        ]
        self.firsts = np.cumsum([0, *(len(segment.compiled.ids) for segment in segments)])
        """int64[segments + 1]; the number of the first of each."""

    def segment_of(self, id: object) -> tuple[int, int]:
        """The index of the segment that an id is in, and its number there; or (-1, -1)."""
        for index in range(len(self._segments) - 1, -1, -1):
            if (number := self._segments[index].find(id)) >= 0:
                return index, number
        return -1, -1

    def find(self, id: object) -> int:
        """The number of an id, or -1."""
        index, number = self.segment_of(id)
        return number if number < 0 else int(self.firsts[index]) + number

    def take(self, numbers: NDArray[Any]) -> list[SubscriptionId]:
        """The ids of some numbers."""
        of_segments = np.searchsorted(self.firsts, numbers, "right") - 1
        found = np.empty(len(numbers), object)
        for index in distinct(of_segments).tolist():
            is_own = of_segments == index
            own = numbers[is_own] - self.firsts[index]
            found[is_own] = self._segments[index].compiled.ids.take(own)
        every: list[SubscriptionId] = found.tolist()
        return every

    def __len__(self) -> int:
        return sum(map(len, self._segments))

    def __contains__(self, id: object) -> bool:
        return self.find(id) >= 0

    def __iter__(self) -> Iterator[SubscriptionId]:
        return chain.from_iterable(segment.ids() for segment in self._segments)
