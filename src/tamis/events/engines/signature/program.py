"""``SignatureProgram``: filters grouped by their signatures; and the state that kernels receive.

A *key* is a name with the kind of values that a constraint accepts: ``temp`` with numbers is
another key than ``temp`` with strings, or with anything, as ``exists`` has it. The *signature* of a
filter is the set of its keys: an event must have all of them, whatever their values are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel.record import lay_out
from tamis.events.kernels.values import Events

UInt64 = NDArray[np.uint64]

NUMBERS, STRINGS, BOOLEANS, ANYTHING = range(4)
"""The values that a key accepts."""

DENSE, SEARCHED, HASHED, FIXED = range(4)
"""How the rank of a value is found: in a table by integers; by binary search; in a hash table, for
keys without an order; or it is fixed, for booleans and for keys that accept anything.
"""

HEAD_BYTES, SIZE_BITS = 7, 4
"""The bytes of a string that are compared first, as one number; behind them is their count."""

HOLE = 32
"""The operator of a test that a rank is not the one given; the others are those of the model."""


class Ranks(NamedTuple):
    """The constants of each key, in order, and the tables that find the rank of a value.

    The rank of a value is ``2 * i + 1`` if it equals constant i, and ``2 * i`` if it is between
    constants i - 1 and i. The rank of NaN is behind all. In hashed keys, values that are no
    constants have rank 0.
    """

    key_of: Int32  # [4 * names]; the key of each name and what it accepts, or -1
    modes: Bytes  # [k]
    starts: Int64  # [k + 1]; the constants of each key
    kinds: Bytes
    values: Int64  # of constants; of a string, its number below
    string_starts: Int64
    string_bytes: Bytes  # of the strings among the constants, each once
    string_skips: Int32  # [k]; the number of first bytes that all strings of a key share
    string_heads: UInt64  # see ``head_of``; of the constants that are strings, behind the skips
    table_starts: Int64  # [k + 1]
    table_bases: Int64  # [k]
    tables: Int32  # dense: the rank of each integer from the base on; hashed: constants, or -1


class Cells(NamedTuple):
    """Filters that are compared with the same events: a *cell* for each signature.

    In a large group, filters with ``=`` are in cells of their own, by signature, key and constant.

    Attributes:
        arena: int32[]; cells. Each is the number of its keys with flags, the number of its filters,
            and its keys, ascending; with HAS_EQUALS, a mask of the keys by whose constants there
            are further cells; then a column of ranges for each key, and one of filters. The rank in
            a key has to be within ``low`` and ``low + width``, modulo 2**16, so that ``!=`` is a
            range too; a range is ``low | width << 16``. With IS_WIDE, it is modulo 2**32, and each
            key has two columns, of ``low`` and of ``width``. A filter n < 0 has tests besides,
            those of ``n & 0x7FFFFFFF``; only cells with HAS_TESTS have such filters.
        table: an open hash table of cells, by the sum of the hashes of their keys: the lower half
            of the sum, and the cell's offset in the arena, plus one.
        bloom: a Bloom filter of these sums, one word for each, so that most look-ups end in the
            nearest cache.
        list_starts: int64[k + c + 1]; lists of the cells of signatures. Each cell is in one list,
            of something that its events need: a cell of one filter with ``=`` in the list k + i of
            constant i of ``Ranks``, others in the list of their rarest key.
        listed: the offsets of listed cells in the arena, ascending.
        listed_keys: the set of their keys, as a Bloom filter of 64 bits.
    """

    arena: Int32
    table: UInt64
    bloom: UInt64
    key_hashes: UInt64  # [k]
    list_starts: Int64
    listed: Int32
    listed_keys: UInt64


HAS_EQUALS, IS_WIDE, HAS_TESTS = 1 << 16, 1 << 17, 1 << 18
NARROW_MAX = 32_766
"""The constants of a key whose ranks have 16 bits, at most."""
KEYS_MAX = HAS_EQUALS - 1
"""The keys of a filter, at most."""


class Tests(NamedTuple):
    """What filters require besides ranges of ranks."""

    filters: Int32  # [t]; the distinct filters that have tests
    starts: Int64  # [t + 1]; the tests of each
    keys: Int32
    operators: Bytes
    values: Int64  # the number of a string, of a list, or a rank
    list_starts: Int64  # [l + 1]
    list_ranks: Int32  # of ``in``: ranks, ascending
    string_starts: Int64
    string_bytes: Bytes  # of the filter table's strings


class Texts(NamedTuple):
    """What strings may contain or end with: one automaton of Aho and Corasick for each name.

    Each such part of a name's strings is a key of its own, which an event has if the string has
    the part.

    Attributes:
        roots: int32[names]; where the search of a name's strings begins, or 0.
        letters, rows, edges, links, pairs, shallow: the ``ahocorasick.Search`` of all.
        first_contained: int32[nodes], its outputs; the node of the longest constant that the string
            of the node ends with, or 0; next_contained: of the next one.
        contained: int32[nodes]; the key of the constant that the node stands for, or -1.
        ending, first_ending, next_ending: the same of ``suffix``.
    """

    roots: Int32
    letters: Bytes
    rows: Int32
    edges: Int64
    links: Int64
    pairs: Int64
    shallow: Int64
    first_contained: Int32
    next_contained: Int32
    contained: Int32
    first_ending: Int32
    next_ending: Int32
    ending: Int32


class SignatureProgram(NamedTuple):
    """Compiled filters; equal ones are one *distinct* filter."""

    ranks: Ranks
    cells: Cells
    tests: Tests
    texts: Texts
    text_keys: int  # how many keys are of texts: the last ones
    member_starts: Int64  # [d + 1]; where the filters of each distinct one begin in ``members``
    members: Int32
    sizes: NDArray[np.bool_]  # whether there are signatures of this many keys, up to the largest
    always: int  # the distinct filter without constraints, or -1

    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        own = (self.member_starts, self.members, self.sizes)
        parts = (*self.ranks, *self.cells, *self.tests, *self.texts, *own)
        return sum(array.nbytes for array in parts)


# -- the state that kernels receive ------------------------------------------------------------

(
    EVENT,  # the next one to match
    END,  # of the events
    STAMP,  # the number of the current event among all that were ever begun
    FOUND_COUNT,
    CANDIDATE_COUNT,
    ALWAYS,  # the distinct filter without constraints, or -1
    ARE_INTERFACES,  # whether owners are reported, each once an event
    OWNERS,  # how many have filters that can match
    UNREPORTED,  # how many of them are not reported yet
    TABLE_SHIFT,
    BLOOM_SHIFT,
    SIZE_MAX,  # of signatures
    KEYS_START,  # of the current event, in its tile
    KEYS_END,
    TEXT_KEYS,  # how many keys are of texts
    SEARCHES,  # the number of strings that were searched so far
    PART,  # of the listing, see ``match_one``
    SCALARS,
) = range(18)

TILE = 16
"""The events that go through each step together, at most."""
CANDIDATES = 1 << 16
ENUMERATED_MAX = 1 << 15
"""The subsets of an event's keys that are looked up, at most."""
ENUMERATED_KEYS_MAX = 64
FEW_KEYS = 8
"""With at most so many keys, the sums of all subsets are made, where most of these are needed."""

NO_CELL = -1
ABSENT = -1
"""The rank of a key that the event does not have."""


class Reported(NamedTuple):
    """The owners of distinct filters."""

    starts: Int64  # [d + 1]
    numbers: Int32
    only: Int32  # [d], of interfaces: the one owner of a filter, or -1; it saves a memory access


class Work(NamedTuple):
    """Working memory."""

    found_starts: Int64  # [n + 1]
    found: Int32  # the matches of each event
    ranks: Int32  # [k]; of the current event's value in each key, or ABSENT
    tile_starts: Int64  # [TILE + 1]; the keys of each event of a tile; none without candidates
    tile_keys: Int32
    tile_ranks: Int32
    tile_attributes: Int64  # of these keys, ``~`` if the key accepts anything
    candidate_starts: Int64  # [TILE + 1]
    candidates: UInt64  # hashes of cells that may exist
    found_cells: Int32  # their offsets, or NO_CELL
    is_wide: Bytes  # [TILE]; events with so many keys that their subsets are not looked up
    sums: UInt64  # of the hashes of subsets
    chosen: Int32  # a subset while it is made
    few_subsets: Bytes  # those of FEW_KEYS keys that have the size of a signature: masks, ascending
    few_counts: Int64  # [FEW_KEYS + 1]; how many are of the first n keys; -1: make them one by one
    own_ranks: Int32  # those that a cell asks for
    sizes: Bytes  # see ``SignatureProgram``
    subsets: Int64  # the number of subsets, of up to SIZE_MAX keys, of so many keys
    reported_in: Int64  # [owners]; the last event that each was reported for
    found_in: Int64  # [text keys]; the last search that found each


class One(NamedTuple):
    """Where a single event is listed."""

    listing: Int64  # the state of ``tamis.core.index.kernels.list_one``; its part begins at PART


RANKS, CELLS, TESTS, TEXTS, EVENTS, REPORTED, WORK, ONE, STATE_SIZE = lay_out(
    SCALARS, Ranks, Cells, Tests, Texts, Events, Reported, Work, One
)
