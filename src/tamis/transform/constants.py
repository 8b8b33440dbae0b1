"""What strategies that have kernels share: arrays that grow, constants, and the workspace.

Nothing is compiled anew when a transformation is added: its new records go into arrays that grow.
"""

from __future__ import annotations

import struct
from collections import namedtuple
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel.state import State, zeros
from tamis.core.kernel.table import copy_pairs, pair_table
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.values import xpath_number
from tamis.transform import layout as at
from tamis.transform.kernels.strings import key_of_number, key_of_text, put_pair
from tamis.transform.layout import NONE
from tamis.transform.shapes import Comparison, Leaf, Literal, Name
from tamis.transform.strategy import too_many_nodes


class Rows:
    """Records of ``width`` numbers each, one after the other, with room for more.

    >>> rows = Rows(2)
    >>> rows.add([1, 2]), rows.add([3, 4])
    (0, 1)
    >>> rows.view
    array([1, 2, 3, 4], dtype=int32)
    """

    def __init__(self, width: int = 1, dtype: Any = np.int32, fill: int = 0) -> None:
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
        self.stretch(self.count + 1)
        self.array[start : start + len(row)] = row
        return self.count - 1

    def extend(self, numbers: Sequence[Any] | NDArray[Any]) -> int:
        """Add records of one number each: the number of the first one."""
        start = self.count
        self.stretch(start + len(numbers))
        self.array[start : self.count] = numbers
        return start

    def stretch(self, count: int) -> None:
        """Have at least ``count`` records."""
        if count <= self.count:
            return
        self.count = count
        needed = count * self.width
        if needed > len(self.array):
            wide = np.full(2 * needed, self.fill, self.array.dtype)
            wide[: len(self.array)] = self.array
            self.array = wide


class PairTable:
    """A pair table of ``core.kernel.table``, which grows."""

    def __init__(self) -> None:
        self.array: Int64 = pair_table(16)
        self.count = 0

    def setdefault(self, key: int, value: int) -> int:
        """The value of a key, which is not 0; of a new key, this one."""
        found = put_pair(self.array, key, value)
        self.count += found == value
        if 4 * self.count > len(self.array):
            wide = np.zeros(2 * len(self.array), np.int64)
            copy_pairs(self.array, wide)
            self.array = wide
        return found


class Slabs:
    """Lists of numbers that grow; one that is full moves to where there is more room."""

    def __init__(self) -> None:
        self.starts = Rows(1, np.int64)
        self.counts = Rows(1, np.int64)
        self.numbers = Rows()  # the items of all lists
        self.keys = Rows(1, np.float64)  # of lists that are kept in order, those of the numbers
        self._rooms: list[int] = []

    def new(self) -> int:
        """An empty list: its number."""
        self.starts.add([0])
        self._rooms.append(0)
        return self.counts.add([0])

    def add(self, slab: int, number: int, key: float | None = None) -> None:
        """Add a number at the end of a list, or to a list that ascends by keys."""
        count, start = int(self.counts.array[slab]), int(self.starts.array[slab])
        if count == self._rooms[slab]:
            start = self._move(slab, start, count)
        keys, numbers = self.keys.array, self.numbers.array
        place = end = start + count
        if key is not None:
            place = start + int(np.searchsorted(keys[start:end], key))
            keys[place + 1 : end + 1] = keys[place:end].copy()
            numbers[place + 1 : end + 1] = numbers[place:end].copy()
            keys[place] = key
        numbers[place] = number
        self.counts.array[slab] = count + 1

    def _move(self, slab: int, start: int, count: int) -> int:
        room = self._rooms[slab] = max(2 * count, 4)
        moved = self.numbers.count
        for rows in (self.numbers, self.keys):
            rows.stretch(moved + room)
            rows.array[moved : moved + count] = rows.array[start : start + count].copy()
        self.starts.array[slab] = moved
        return moved


class ConstantIndex:
    """Sources of strings, the leaves that compare them with constants, and tests of steps.

    A leaf is found from the string that makes it true. A test of a step is evaluated at each
    element that the step leads to. Equal leaves, and equal tests, are stored once. Some columns of
    sources and leaves are the strategy's own.
    """

    def __init__(self) -> None:
        self.attributes: list[tuple[str, str]] = []  # their names, by number
        self.sources = Rows(at.SOURCE)
        self.leaves = Rows(at.LEAF)
        self._numbers: dict[Hashable, int] = {}
        self._literals = Rows(1, np.float64)
        self._texts = Rows(1, np.uint8)
        self._equals = PairTable()
        self._ranges = Slabs()
        self._tests = Rows()
        self._comparisons = Rows(at.COMPARED)
        self._comparison_literals = Rows(1, np.float64)

    def arrays(self) -> at.Constants:
        """The arrays, as they are now; those that grow may be replaced."""
        return at.Constants(
            sources=self.sources.view,
            leaves=self.leaves.view,
            literals=self._literals.view,
            texts=self._texts.view,
            equals=self._equals.array,
            range_starts=self._ranges.starts.view,
            range_counts=self._ranges.counts.view,
            thresholds=self._ranges.keys.view,
            range_leaves=self._ranges.numbers.view,
            tests=self._tests.view,
            comparisons=self._comparisons.view,
            comparison_literals=self._comparison_literals.view,
        )

    def add_source(self, kind: int, name: Name, own: Sequence[int] = ()) -> int:
        """A new source: its number. ``own`` are the first of the strategy's columns."""
        row = [kind, self._attribute(name), NONE, 0, 0, NONE, NONE, NONE, NONE, NONE]
        return self.sources.add([*row, *own])

    def leaf(self, source: int, condition: Leaf | Comparison, own: Sequence[int] = ()) -> int:
        """The leaf of a condition on a source. ``own`` are the strategy's columns of a new one."""
        literal = condition.literal
        operator = at.OPERATORS.index(condition.operator)
        key = ("leaf", source, operator, isinstance(literal, bytes), literal)
        found = self._numbers.get(key)
        if found is None:
            row = [source, operator, NONE, *self._text(literal), *own]
            found = self._numbers[key] = self.leaves.add(row)
            self._literals.add([_number(literal)])
            self._index(found, source, operator, literal)
        return found

    def tests(self, steps: Iterable[Iterable[Comparison]]) -> int:
        """The index at which tests of steps are listed, the last step's first; -1 ends each."""
        key = ("tests", tuple(map(tuple, steps)))
        found = self._numbers.get(key)
        if found is None:
            listed = [number for tests in key[1] for number in (*map(self.comparison, tests), NONE)]
            found = self._numbers[key] = self._tests.extend(listed)
        return found

    def comparison(self, test: Comparison) -> int:
        """The number of a test of a step."""
        found = self._numbers.get(test)
        if found is None:
            operator = at.OPERATORS.index(test.operator)
            row = [test.kind, self._attribute(test.name), operator, *self._text(test.literal)]
            found = self._numbers[test] = self._comparisons.add(row)
            self._comparison_literals.add([_number(test.literal)])
        return found

    def _attribute(self, name: Name) -> int:
        if name is None:
            return NONE
        number = self._numbers.setdefault(("attribute", name), len(self.attributes))
        if number == len(self.attributes):
            self.attributes.append(name)
        return number

    def _text(self, literal: Literal) -> tuple[int, int]:
        """The start and end of a string in ``texts``; ``NONE`` for other literals."""
        if not isinstance(literal, bytes):
            return NONE, NONE
        start = self._texts.extend(np.frombuffer(literal, np.uint8))
        return start, start + len(literal)

    def _index(self, leaf: int, source: int, operator: int, literal: Literal) -> None:
        """Have kernels find a new leaf."""
        row = self.sources.array[source * at.SOURCE : (source + 1) * at.SOURCE]
        if operator == at.EXISTS:
            row[at.SOURCE_EXISTS] = leaf
        elif operator == at.UNEQUAL:
            self.leaves.array[leaf * at.LEAF + at.LEAF_NEXT] = row[at.SOURCE_UNEQUAL]
            row[at.SOURCE_UNEQUAL] = leaf
        elif isinstance(literal, bytes):
            row[at.SOURCE_TEXTS] += 1
            text = np.frombuffer(literal, np.uint8)
            text.flags.writeable = False
            self._put_equal(key_of_text(text, source), leaf)
        elif operator == at.EQUAL:
            row[at.SOURCE_NUMBERS] += 1
            (bits,) = struct.unpack("<q", struct.pack("<d", _number(literal) + 0.0))
            self._put_equal(key_of_number(bits, source), leaf)
        else:
            column = at.SOURCE_RANGES + operator - at.LESS
            if row[column] == NONE:
                row[column] = self._ranges.new()
            self._ranges.add(int(row[column]), leaf, _number(literal))

    def _put_equal(self, key: int, leaf: int) -> None:
        first = self._equals.setdefault(key, leaf)
        if first != leaf:  # another leaf has the same hash
            links = self.leaves.array[at.LEAF_NEXT :: at.LEAF]
            links[leaf], links[first] = links[first], leaf


def _number(literal: Literal) -> float:
    return literal if isinstance(literal, float) else float("nan")


# -- the workspace ---------------------------------------------------------------------------------


def read_of(
    rows: Int64,
    records: Int32,
    batch: DocumentBatch,
    attributes: Sequence[tuple[str, str]],
    vocabulary: Vocabulary,
) -> at.Read:
    """What kernels read of a document; ``attributes`` are the names that sources have."""
    names = np.array([vocabulary.find(*name) for name in attributes], np.int32)
    own = {name: getattr(batch, name) for name in at.Read._fields[2:-1]}
    return at.Read(rows=rows.reshape(-1), records=records.reshape(-1), **own, names=names)


BY_EVENT = ("ends", "parents", "attributes_from", "texts_from", "stack")
ROOM, _ROOM_MAX = 256, 1 << 20
_named_tuple: Any = namedtuple


class Workspace(State[Any]):
    """The state of a strategy, for one thread.

    Arrays keep nothing from document to document, so a kernel that finds one full begins again.

    Args:
        own: the fields of the strategy's own arrays that kernels fill, which begin at ``OWN``.
        arrays: these, each with room for ``ROOM`` things.
        nodes_max: in the lists of a document. Other arrays may have as many things, and always
            ``_ROOM_MAX``.
    """

    def __init__(
        self, size: int, own: Any, arrays: Any, together: Sequence[Sequence[str]], nodes_max: int
    ) -> None:
        every = _named_tuple("every", at.NODES._fields + own._fields)
        nodes = zeros(at.Nodes, ROOM, long_found=2 * ROOM)
        super().__init__(size, every(*at.NODES, *own), every(*nodes, *arrays), together)
        self._nodes_max = nodes_max
        things = max(nodes_max, _ROOM_MAX)
        self._lengths_max = {
            name: len(array) // ROOM * things for name, array in self.arrays._asdict().items()
        }

    def grow(self, name: str) -> None:
        """Double an array that is full; ``DocumentLimitError`` if it has room for all allowed."""
        if len(getattr(self.arrays, name)) >= self._lengths_max[name]:
            raise too_many_nodes(self._nodes_max)
        super().grow(name)

    def find(self, kernel: Callable[[Int64], int], read: at.Read, nodes_used: int) -> None:
        """Run a kernel over a document, again where it found numbers that it could not read.

        ``nodes_used`` is the number in the state that says how many nodes are in lists. Raises
        ``DocumentLimitError`` if there are more than is allowed, or more of what leads to them.
        """
        self.register(at.READ, read)
        self.words[at.LONG_KNOWN] = 0
        while self.run(kernel) == at.DONE and self.words[at.LONG_FOUND] > 0:
            self._read_long_numbers(read)
        if self.words[nodes_used] > self._nodes_max:
            raise too_many_nodes(self._nodes_max)

    def _read_long_numbers(self, read: at.Read) -> None:
        """Have Python read the numbers that kernels cannot, beside those that it has read."""
        found = self.arrays.long_found[: 2 * self.words[at.LONG_FOUND]].reshape(-1, 2)
        known = self.arrays.long_known[: 2 * self.words[at.LONG_KNOWN]].reshape(-1, 2)
        strings = np.unique(np.concatenate([found, known]), axis=0)
        buffers = read.text_values, read.attribute_values
        values = [
            xpath_number(bytes(buffers[key & 1][key >> 1 : end])) for key, end in strings.tolist()
        ]
        self.reserve(strings.size, "long_known")
        self.reserve(len(values), "long_values")
        self.arrays.long_known[: strings.size] = strings.reshape(-1)
        self.arrays.long_values[: len(values)] = values
        self.words[at.LONG_KNOWN] = len(values)
