"""``SignatureProgram``: filters grouped by their signatures, in frozen arrays.

A *key* is a name with the kind of values that a constraint accepts: ``temp`` with numbers is
another key than ``temp`` with strings, or with anything, as ``exists`` has it. The *signature* of a
filter is the set of its keys: what an event must have before any value is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64

UInt64 = NDArray[np.uint64]

NUMBERS, STRINGS, BOOLEANS, ANYTHING = range(4)
"""What a key accepts."""

DENSE, SEARCHED, HASHED, FIXED = range(4)
"""How the rank of a value is found: in a table by integers; by binary search; in a hash table, of
keys without an order; or it is given: that of a boolean, and of a key that accepts anything.
"""

HEAD_BYTES, SIZE_BITS = 7, 4
"""So many bytes of a string are compared first, as one number with their own number behind them."""

HOLE = 32
"""The operator of a test that a rank is not the one given; the others are those of the model."""


class Ranks(NamedTuple):
    """The constants of each key, in order, and how the rank of a value among them is found.

    The rank of a value is ``2 * i + 1`` if it is equal to constant i, and ``2 * i`` if it is before
    constant i and behind the one before that. That of NaN is behind all. Of hashed keys, values
    that are no constants have rank 0.

    Attributes:
        key_of: int32[4 * names]; the key of each name and what it accepts, or -1.
        modes: uint8[k].
        starts: int64[k + 1]; the constants of each key.
        kinds: uint8[], values: int64[]; constants. The value of a string is its number below.
        string_starts: int64[], string_bytes: uint8[]; the strings among them, each once.
        string_skips: int32[k]; how many bytes the strings of a key begin with that are the same in
            all of them; string_heads: uint64[] or []; of each constant that is a string, the next
            HEAD_BYTES bytes as a number, and in its last SIZE_BITS how many there are, or that
            there are more.
        table_starts: int64[k + 1]; table_bases: int64[k]; tables: int32[]. Of dense keys, the rank
            of each integer from the base on; of hashed keys, an open hash table of the places of
            constants, or -1.
    """

    key_of: Int32
    modes: Bytes
    starts: Int64
    kinds: Bytes
    values: Int64
    string_starts: Int64
    string_bytes: Bytes
    string_skips: Int32
    string_heads: UInt64
    table_starts: Int64
    table_bases: Int64
    tables: Int32


class Cells(NamedTuple):
    """Filters that are held against the same events: a *cell* for each signature.

    Of a large group those with ``=`` are in cells of their own, by signature, key and constant.

    Attributes:
        arena: int32[]; cells. Each is the number of its keys with flags, the number of its filters,
            and its keys, ascending; where HAS_EQUALS is set, a mask of those by whose constants
            there are further cells; then a column of ranges for each key, and one of filters. The
            rank in a key has to be within ``low`` and ``low + width``, modulo 2**16, so that ``!=``
            is a range too; a range is ``low | width << 16``. Where IS_WIDE is set, it is modulo
            2**32, and each key has two columns, of ``low`` and of ``width``. A filter n < 0 has
            tests besides, those of ``n & 0x7FFFFFFF``; it is where HAS_TESTS is set.
        table: uint64[]; an open hash table of cells, by the sum of the hashes of their keys: the
            lower half of that, and the cell's place in the arena, plus one.
        bloom: uint64[]; a Bloom filter of those sums, one word for each, so that most look-ups end
            in the nearest cache.
        key_hashes: uint64[k].
        under_starts: int64[k + c + 1]; the cells, but those for constants, are each listed under
            one thing that events need: a cell of one filter with ``=`` under that constant, number
            k + i for constant i of ``Ranks``, others under their rarest key.
        under: int32[]; their places in the arena, ascending.
        under_keys: uint64[]; a set of their keys, as a Bloom filter of 64 bits.
    """

    arena: Int32
    table: UInt64
    bloom: UInt64
    key_hashes: UInt64
    under_starts: Int64
    under: Int32
    under_keys: UInt64


HAS_EQUALS, IS_WIDE, HAS_TESTS = 1 << 16, 1 << 17, 1 << 18
NARROW_MAX = 32_766
"""So many constants of a key have ranks of 16 bits."""
KEYS_MAX = HAS_EQUALS - 1
"""So many keys a filter may have."""


class Tests(NamedTuple):
    """What is asked of filters besides ranges of ranks.

    Attributes:
        filters: int32[t]; the distinct filters that have tests.
        starts: int64[t + 1]; the tests of each.
        keys: int32[]; operators: uint8[]; values: int64[]; the number of a string, of a list, or a
            rank.
        list_starts: int64[l + 1]; list_ranks: int32[]; of ``in``: ranks, ascending.
        string_starts: int64[], string_bytes: uint8[]; the strings of the filter table.
    """

    filters: Int32
    starts: Int64
    keys: Int32
    operators: Bytes
    values: Int64
    list_starts: Int64
    list_ranks: Int32
    string_starts: Int64
    string_bytes: Bytes


class SignatureProgram(NamedTuple):
    """Compiled filters; equal ones are one *distinct* filter.

    Attributes:
        ranks, cells, tests: see there.
        member_starts: int64[d + 1]; the filters that distinct filter i stands for are
            ``members[member_starts[i]:member_starts[i + 1]]``.
        members: int32[].
        sizes: bool[]; whether there are signatures of so many keys, up to the largest.
        always: the distinct filter without constraints, or -1.
    """

    ranks: Ranks
    cells: Cells
    tests: Tests
    member_starts: Int64
    members: Int32
    sizes: NDArray[np.bool_]
    always: int

    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        own = (self.member_starts, self.members, self.sizes)
        parts = (*self.ranks, *self.cells, *self.tests, *own)
        return sum(array.nbytes for array in parts)
