"""Cells written down, and how they are found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, kernel
from tamis.events.engines.signature.kernels.filters import HOLE_WIDTH, WORD, is_equality
from tamis.events.engines.signature.kernels.words import key_bit
from tamis.events.engines.signature.program import HAS_EQUALS, HAS_TESTS, IS_WIDE, UInt64

LINE = 16
"""Words of 32 bits in a line of the cache."""


@kernel
def place_cells(sizes: Int64, starts: Int64) -> None:
    """Where each cell begins: those that fit into a cache line are within one.

    Args:
        sizes: of the cells.
        starts: gets that; and behind the last, where it ends.
    """
    at = 0
    for cell in range(len(sizes)):
        if sizes[cell] <= LINE and at % LINE + sizes[cell] > LINE:
            at += LINE - at % LINE
        starts[cell] = at
        at += sizes[cell]
    starts[len(sizes)] = at


@kernel
def write_cells(
    filters: Int32,
    cells: Int32,
    column_starts: Int64,
    column_keys: Int32,
    column_lows: Int32,
    column_widths: Int32,
    tests: Int32,
    cell_starts: Int64,
    cell_counts: Int32,
    are_wide: Bytes,
    equals: NDArray[np.int64],
    filled: Int32,
    arena: Int32,
) -> None:
    """Write the cells; see ``Cells.arena``.

    Args:
        filters, cells: of each distinct filter.
        tests: the place of each distinct filter among those with tests, or -1.
        cell_starts: where each cell begins; cell_counts: its filters; are_wide: see ``Cells``.
        equals: of the cells that have further ones; there are as many as groups.
        filled: how many filters each cell has yet: 0.
    """
    for distinct in range(len(filters)):
        cell = cells[distinct]
        start = column_starts[filters[distinct]]
        size = column_starts[filters[distinct] + 1] - start
        at, count = cell_starts[cell], cell_counts[cell]
        for place in range(size):
            arena[at + 2 + place] = column_keys[start + place]
        has_equals = cell < len(equals) and equals[cell] != 0
        arena[at] |= size | (HAS_EQUALS if has_equals else 0) | (IS_WIDE if are_wide[cell] else 0)
        if tests[distinct] >= 0:
            arena[at] |= HAS_TESTS
        arena[at + 1] = count
        at += 2 + size
        if has_equals:
            at += 1
        row = filled[cell]
        filled[cell] += 1
        for place in range(size):
            low, width = column_lows[start + place], column_widths[start + place]
            if are_wide[cell]:
                arena[at + row] = low
                at += count
                arena[at + row] = width
            else:  # what is all, or all but one rank, stays so with fewer bits
                arena[at + row] = (low & 0xFFFF) | (min(width & WORD, 0xFFFF) << 16)
                if width & WORD == HOLE_WIDTH:
                    arena[at + row] = (low & 0xFFFF) | -0x20000
            at += count
        number = distinct if tests[distinct] < 0 else tests[distinct] | -0x80000000
        arena[at + row] = number


@kernel
def write_empty_cells(
    filters: Int32,
    firsts: Int32,
    column_starts: Int64,
    column_keys: Int32,
    cell_starts: Int64,
    are_wide: Bytes,
    equals: NDArray[np.int64],
    arena: Int32,
) -> None:
    """Write the keys of cells that have further ones, since there may be no filter that does.

    Args:
        firsts: a distinct filter of each group.
    """
    for group in range(len(equals)):
        if equals[group] == 0:
            continue
        start = column_starts[filters[firsts[group]]]
        size = column_starts[filters[firsts[group]] + 1] - start
        at = cell_starts[group]
        arena[at] = size | HAS_EQUALS | (IS_WIDE if are_wide[group] else 0)
        for place in range(size):
            arena[at + 2 + place] = column_keys[start + place]
        arena[at + 2 + size] = equals[group]


@kernel
def enter_cells(
    hashes: UInt64, starts: Int64, table: UInt64, bloom: UInt64, table_shift: int, bloom_shift: int
) -> bool:
    """Enter cells in the hash table and the Bloom filter, which are 0 before.

    False if two cells could be taken for each other, which is as rare as one in thousands of sets.

    Args:
        hashes, starts: of the cells.
        table_shift, bloom_shift: a hash that is shifted so far is a place.
    """
    mask = U(len(table) - 1)
    for cell in range(len(hashes)):
        found = hashes[cell]
        place = found >> U(table_shift)
        while table[place] != 0:
            if table[place] >> U(32) == found & U(0xFFFFFFFF):
                return False
            place = (place + U(1)) & mask
        table[place] = (found << U(32)) | U(starts[cell] + 1)
        bits = (U(1) << (found & U(63))) | (U(1) << ((found >> U(6)) & U(63)))
        bloom[found >> U(bloom_shift)] |= bits
    return True


@kernel
def find_access(
    filters: Int32,
    firsts: Int32,
    counts: Int32,
    column_starts: Int64,
    column_keys: Int32,
    column_lows: Int32,
    column_widths: Int32,
    key_hashes: UInt64,
    uses: Int64,
    constant_starts: Int64,
    access: Int64,
    key_sets: UInt64,
) -> None:
    """Find what each group is listed under; see ``Cells.under_starts``.

    Args:
        firsts: a distinct filter of each group; counts: how many there are.
        uses: in how many groups each key is.
        constant_starts: the constants of each key.
        access, key_sets: get what was found.
    """
    keys = len(key_hashes)
    for group in range(len(firsts)):
        filter = filters[firsts[group]]
        rarest = equal = -1
        key_sets[group] = U(0)
        for place in range(column_starts[filter], column_starts[filter + 1]):
            key = column_keys[place]
            key_sets[group] |= key_bit(key_hashes[key])
            if rarest < 0 or uses[key] < uses[rarest]:
                rarest = key
            constants = constant_starts[key + 1] - constant_starts[key]
            is_equal = is_equality(column_lows[place], column_widths[place])
            if counts[group] == 1 and is_equal and constants > 1:
                best = column_keys[equal] if equal >= 0 else key
                if equal < 0 or constants > constant_starts[best + 1] - constant_starts[best]:
                    equal = place
        access[group] = rarest
        if equal >= 0:
            constant = constant_starts[column_keys[equal]] + (column_lows[equal] >> 1)
            access[group] = keys + constant
