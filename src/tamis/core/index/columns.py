"""Strings in one buffer: the ids and expressions of a set, which may have millions of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar, overload
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import SubscriptionId

T = TypeVar("T")

KEPT_MAX = 1 << 20
"""A column of so many items at most keeps those that were asked for as objects."""
_CHUNK = 1 << 14


class Column(Sequence[T]):
    """Items of a kind, as bytes in one buffer; each becomes an object when it is asked for.

    Item i is written ``data[starts[i]:ends[i]]``; perhaps it is mapped from a file.
    """

    def __init__(self, data: bytes | memoryview, starts: NDArray[Any], ends: NDArray[Any]) -> None:
        self.data = data
        self.starts = starts
        self.ends = ends
        self._known: tuple[NDArray[np.object_], NDArray[np.bool_]] | None = None

    @classmethod
    def of(cls, items: Iterable[T]) -> Self:
        """A column of these items."""
        written = list(map(cls.write, items))
        return cls(b"".join(written), *_bounds(list(map(len, written))))

    @classmethod
    def of_arrays(cls, data: NDArray[Any], bounds: NDArray[Any]) -> Self:
        """A column of bytes, and of where each item begins and the last one ends."""
        return cls(data.data, bounds[:-1], bounds[1:])

    @staticmethod
    @abstractmethod
    def write(item: Any) -> bytes:
        """The bytes of an item; different items have different ones."""

    @staticmethod
    @abstractmethod
    def read(written: bytes) -> Any:
        """The item of some bytes."""

    def part(self, numbers: NDArray[Any]) -> Self:
        """Those of some numbers, in the same buffer."""
        return type(self)(self.data, self.starts[numbers], self.ends[numbers])

    @classmethod
    def joined(cls, columns: Sequence[Self]) -> Self:
        """The items of several columns."""
        every = [column.packed() for column in columns]
        lengths = [column.ends - column.starts for column in every]
        bounds = _bounds(np.concatenate([np.zeros(0, np.int64), *lengths]))
        return cls(b"".join(column.data for column in every), *bounds)

    def compact(self) -> Self:
        """The same in less memory, if the buffer is not too long for that."""
        if len(self.data) > np.iinfo(np.int32).max:
            return self
        return type(self)(self.data, self.starts.astype(np.int32), self.ends.astype(np.int32))

    def take(self, numbers: NDArray[Any]) -> list[T]:
        """The items of some numbers."""
        if len(self) <= KEPT_MAX:
            # Another thread may do the same at once. Items are there before ``are_known`` says so.
            known = self._known
            if known is None:
                known = self._known = np.empty(len(self), object), np.zeros(len(self), np.bool_)
            items, are_known = known
            new = numbers[~are_known[numbers]]
            if len(new):
                items[new] = self._read(self.starts[new], self.ends[new])
                are_known[new] = True
            found: list[T] = items[numbers].tolist()
            return found
        return self._read(self.starts[numbers], self.ends[numbers])

    def _read(self, starts: NDArray[Any], ends: NDArray[Any]) -> list[T]:
        return [self.read(bytes(part)) for part in self._parts(starts, ends)]

    def _parts(self, starts: NDArray[Any], ends: NDArray[Any]) -> Iterator[memoryview]:
        data = memoryview(self.data)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            yield data[start:end]

    def packed(self) -> Self:
        """The same in a buffer of their own, without anything between."""
        starts, ends = _bounds(self.ends - self.starts)
        if np.array_equal(self.starts, starts) and len(self.data) == ends[-1:].sum():
            return self
        data = b"".join(self._parts(self.starts, self.ends))
        return type(self)(data, starts, ends).compact()

    def arrays(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """What ``of_arrays`` makes the same column of."""
        column = self.packed()
        bounds = np.concatenate([np.zeros(1, column.ends.dtype), column.ends])
        return np.frombuffer(column.data, np.uint8), bounds

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self._read(self.starts[index], self.ends[index]))
        item: T = self.read(bytes(self.data[self.starts[index] : self.ends[index]]))
        return item

    def __iter__(self) -> Iterator[T]:
        for first in range(0, len(self), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            yield from self._read(self.starts[chunk], self.ends[chunk])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Column | tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,}>"

    def __getstate__(self) -> tuple[bytes, NDArray[Any], NDArray[Any]]:
        return bytes(self.data), self.starts, self.ends

    def __setstate__(self, state: tuple[bytes, NDArray[Any], NDArray[Any]]) -> None:
        self.__init__(*state)  # type: ignore[misc]


def _bounds(lengths: NDArray[Any] | list[int]) -> tuple[Int64, Int64]:
    """Where items of some lengths begin and end when they follow each other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    return ends - np.asarray(lengths, np.int64), ends


class Texts(Column[str]):
    """Strings.

    >>> texts = Texts.of(["//a", "//b", "//é"])
    >>> texts[2], list(texts.part(np.array([0, 2])))
    ('//é', ['//a', '//é'])
    """

    @staticmethod
    def write(item: str) -> bytes:
        return item.encode(errors="surrogatepass")

    @staticmethod
    def read(written: bytes) -> str:
        return written.decode(errors="surrogatepass")


class WrittenIds(NamedTuple):
    """Ids that are looked for in several columns: how they are written, and checksums of that."""

    written: Sequence[bytes]
    checksums: NDArray[np.uint32]

    @classmethod
    def of(cls, ids: Sequence[SubscriptionId]) -> WrittenIds:
        """Those of some ids."""
        written = list(map(Ids.write, ids))
        return cls(written, np.fromiter(map(crc32, written), np.uint32, len(ids)))


class Ids(Column[SubscriptionId]):
    """Ids, which keep their type: numbers are their digits behind a byte that no string has.

    >>> ids = Ids.of(["x", 7, "7"])
    >>> list(ids), ids.find("7"), ids.find(8), 7 in ids, ids.find_many(WrittenIds.of([8, "x", 7]))
    (['x', 7, '7'], 2, -1, True, array([-1,  0,  1]))
    """

    @staticmethod
    def write(item: SubscriptionId) -> bytes:
        if isinstance(item, int):
            return b"\xff%x" % item if item >= 0 else b"\xff-%x" % -item  # of any size
        return item.encode(errors="surrogatepass")

    @staticmethod
    def read(written: bytes) -> SubscriptionId:
        if written.startswith(b"\xff"):
            return int(written[1:], 16)
        return written.decode(errors="surrogatepass")

    def find(self, id: object) -> int:
        """The number of an id, or -1."""
        if not isinstance(id, str | int) or isinstance(id, bool):  # as True would be 1
            return -1
        wanted = self.write(id)
        checksums, order = self._by_checksum
        checksum = np.uint32(crc32(wanted))
        first, last = (np.searchsorted(checksums, checksum, side) for side in ("left", "right"))
        for number in order[first:last].tolist():
            if self.data[self.starts[number] : self.ends[number]] == wanted:
                return int(number)
        return -1

    def find_many(self, wanted: WrittenIds) -> Int64:
        """The numbers of ids, and -1 for each that is not there."""
        checksums, order = self._by_checksum
        bounds = (np.searchsorted(checksums, wanted.checksums, side) for side in ("left", "right"))
        firsts, ends = bounds
        found = np.full(len(wanted.written), -1)
        for index in np.flatnonzero(firsts < ends).tolist():
            for number in order[firsts[index] : ends[index]].tolist():
                if self.data[self.starts[number] : self.ends[number]] == wanted.written[index]:
                    found[index] = number
        return found

    def make_index(self) -> None:
        """Make what ``find`` needs now, which takes a third of a second for a million ids."""
        _ = self._by_checksum

    @cached_property
    def _by_checksum(self) -> tuple[NDArray[np.uint32], Int32]:
        checksums = map(crc32, self._parts(self.starts, self.ends))
        found = np.fromiter(checksums, np.uint32, len(self))
        order = np.argsort(found, kind="stable").astype(np.int32)
        return found[order], order

    def __contains__(self, id: object) -> bool:
        return self.find(id) >= 0


_TEXT_ARRAYS = ("id_bytes", "id_bounds", "text_bytes", "text_bounds")


def packed_texts(ids: Ids, texts: Texts) -> dict[str, NDArray[Any]]:
    """Ids and expressions as arrays: their bytes; where each begins, and the last one ends."""
    return dict(zip(_TEXT_ARRAYS, (*ids.arrays(), *texts.arrays()), strict=True))


def unpacked_texts(arrays: Mapping[str, NDArray[Any]]) -> tuple[Ids, Texts]:
    """What ``packed_texts`` packed; a ``KeyError`` where an array is missing."""
    ids, id_bounds, texts, text_bounds = (arrays[name] for name in _TEXT_ARRAYS)
    return Ids.of_arrays(ids, id_bounds), Texts.of_arrays(texts, text_bounds)
