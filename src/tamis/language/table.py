"""Queries as flat arrays: the one form of them that engines compile.

A query is a sequence of words, ``kind | payload << KIND_BITS``:

=========== ===================================================================================
``STEP``    begins a level, at what a step leads to; payload: its flags, and from ``TEST_SHIFT``
            on the number of its test
``ALL``     begins a group: all in it hold
``ANY``     begins a group: one of the items in it holds
``NOT``     begins a group: not all in it hold
``END``     ends a level or group
``COMPARE`` compares the string value of the current level's node with the literal that follows;
            payload: the operator's index in ``OPERATORS``, and from ``FUNCTION_SHIFT`` on the
            functions that are applied to the value first
``LITERAL`` stands behind ``COMPARE``; payload: n is string n, -1 - n is number n
``NTH``     of the children of one parent that satisfy all items before it in this level, only the
            n-th passes; payload: n
=========== ===================================================================================

A level is true if one node satisfies all its items. The next step of a path is an item of the
level, like a predicate. The flags of a step:

============== ================================================================================
``DESCENDANT`` to descendants, as after ``//``; of an attribute: also to that of the context node
``SELF``       to the context node; with ``DESCENDANT`` to its descendants too
``FIRST``      a path begins of which the value is asked, as ``string()`` has it: that of the
               first node in the order of the document, or "" where there is none. Its steps are
               the last items of the levels, and ``COMPARE`` is the last item of the last one
``COUNTED``    so is each step of a path whose nodes are counted; ``COMPARE`` is about their number
``MAIN``       the step is on the path that selects nodes. Other steps only test
============== ================================================================================

So ``//a[b = 'x' or @c]/d`` is::

    STEP a|DESCENDANT|MAIN, ANY, STEP b, COMPARE =, LITERAL 0, END, STEP @c, END, END,
    STEP d|MAIN, END, END

Most tests of a first node become positions: ``starts-with(b/c, 'x')`` has the words of
``b[c][1]/c[1][starts-with(., 'x')]``. ``FIRST`` is left for the others.

A kernel reads most expressions from bytes to words, some hundred thousand a second, without a
Python object for any (:mod:`tamis.language.plain.reader`). What it declines,
:func:`tamis.language.xpath.parse` reads, and :mod:`tamis.language.lower` writes down. The reference
engine does not read words: so it can be compared with the engines that do.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64, flat_indices, freeze, starts_of
from tamis.language.model import NodeTest

STEP, ALL, ANY, NOT, END, COMPARE, LITERAL, NTH = range(8)
KIND_BITS = 4
KIND_MASK = (1 << KIND_BITS) - 1
DESCENDANT, SELF, FIRST, COUNTED, MAIN = 1, 2, 4, 8, 16
TEST_SHIFT = 5
NTH_MAX = (1 << 31 - KIND_BITS) - 1
"""The largest position; larger ones are taken for it."""
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "starts-with", "contains")
FUNCTION_SHIFT = 4
NORMALIZED, LENGTH, NAME, LOCAL_NAME, COUNT = 1, 2, 4, 8, 16
"""Functions of what is asked. COUNT: of the number of nodes that a path leads to."""

WORDS_MAX = 500
"""Words of a plain query."""
NESTING_MAX = 60
"""Levels and groups of a plain query inside each other."""
LITERAL_MAX = 255
"""Bytes of a string literal of a plain query, and of a name as it is written."""


_DOUBLED_MAX = 40


class QueryTable(NamedTuple):
    """The words of queries.

    Attributes:
        starts: int64[q + 1]; the words of query i are ``code[starts[i]:starts[i + 1]]``.
        code: int32[].
        tests: by number, whether a test is on the attribute axis, and the test.
        string_starts: int64[s + 1]; string i is ``string_bytes[string_starts[i]:…]``.
        string_bytes: uint8[]; the string literals, UTF-8.
        numbers: float64[n]; the number literals.
    """

    starts: NDArray[np.int64]
    code: NDArray[np.int32]
    tests: tuple[tuple[bool, NodeTest], ...]
    string_starts: NDArray[np.int64]
    string_bytes: NDArray[np.uint8]
    numbers: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def words(self, number: int) -> list[int]:
        """The words of a query."""
        start, end = self.starts[number : number + 2]
        found: list[int] = self.code[start:end].tolist()
        return found

    def literal(self, word: int) -> bytes | float:
        """What a literal is, by its word."""
        number = word >> KIND_BITS
        if number < 0:
            return float(self.numbers[-1 - number])
        start, end = self.string_starts[number : number + 2]
        return self.string_bytes[start:end].tobytes()

    def strings(self) -> Iterator[bytes]:
        """All string literals."""
        data = self.string_bytes.tobytes()
        return (data[start:end] for start, end in pairwise(self.string_starts.tolist()))

    def part(self, numbers: NDArray[np.integer[Any]]) -> QueryTable:
        """Some queries, with the tests and literals of all."""
        lengths = np.diff(self.starts)[numbers]
        starts, code = starts_of(lengths), self.code[flat_indices(self.starts[numbers], lengths)]
        freeze(starts, code)
        return QueryTable(starts, code, *self[2:])

    def extents(self) -> tuple[Int64, Int64]:
        """For each query, how many words are read to compile it, and the greatest nesting.

        The content of a descendant-or-self step is read twice.
        """
        kinds, both = self.kinds, DESCENDANT | SELF
        is_twofold = (kinds == STEP) & (self.payloads & both == both)
        begun = np.cumsum((kinds <= NOT).astype(np.int64) - (kinds == END))
        depths, twofold = np.zeros((2, len(self)), np.int64)
        has_words = np.diff(self.starts) > 0
        begins = self.starts[:-1][has_words]
        if len(begins):
            depths[has_words] = np.maximum.reduceat(begun, begins)
            twofold[has_words] = np.add.reduceat(is_twofold, begins, dtype=np.int64)
        # More than that many copies are too many, whatever is in them.
        copies = np.minimum(twofold, _DOUBLED_MAX)
        return np.left_shift(np.diff(self.starts), copies, dtype=np.int64), depths

    @property
    def kinds(self) -> Int32:
        """The kind of each word."""
        return self.code & np.int32(KIND_MASK)

    @property
    def payloads(self) -> Int32:
        """The payload of each word."""
        return self.code >> np.int32(KIND_BITS)


NO_QUERIES = QueryTable(
    starts=np.zeros(1, np.int64),
    code=np.zeros(0, np.int32),
    tests=(),
    string_starts=np.zeros(1, np.int64),
    string_bytes=np.zeros(0, np.uint8),
    numbers=np.zeros(0, np.float64),
)
# As those of all others are: kernels are compiled for that.
freeze(*(array for array in NO_QUERIES if isinstance(array, np.ndarray)))
