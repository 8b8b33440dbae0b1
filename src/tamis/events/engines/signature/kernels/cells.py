"""Filters, each once, grouped by signatures, and written as cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, inlined, kernel
from tamis.core.kernel.table import mixed, slot_finder
from tamis.events.engines.signature import program as at
from tamis.events.engines.signature.kernels.candidates import find_entry
from tamis.events.engines.signature.program import UInt64

WORD = 0xFFFFFFFF
HOLE_WIDTH = 0xFFFFFFFE
"""The width of a range that is all but one rank."""
DEAD = -1
"""Instead of its number: a filter that no event can match."""
LINE = 16
"""Words of 32 bits in a line of the cache."""


class Ranges(NamedTuple):
    """The ranks that each constraint accepts in its key."""

    keys: Int32  # [c]
    lows: Int32  # [c]; see ``Cells.arena``
    widths: Int32
    has_test: Bytes  # [c]; whether a test is left
    values: Int64  # [c]; the operand of that test
    list_starts: Int64
    list_ranks: Int32  # the lists of ``in``, as ranks, ascending
    names: Int32  # [k]; of keys, which ascend by name and by what they accept
    accepts: Bytes


class Merged(NamedTuple):
    """Filters, as one range for each key, and tests."""

    column_starts: Int64  # [f + 1]; the ranges of each filter
    column_keys: Int32
    column_lows: Int32
    column_widths: Int32
    test_starts: Int64  # [f + 1]; the tests of each filter
    test_keys: Int32
    test_operators: Bytes
    tested: Int64  # their operands
    is_dead: Bytes  # [f]; whether no event can match


class Groups(NamedTuple):
    """Distinct filters by their signatures."""

    filters: Int32  # [d]; a filter that equals each distinct one
    of: Int32  # [d]; the group of each
    firsts: Int32  # [g]; a distinct filter of each group
    counts: Int32  # [g]; how many distinct filters it has
    hashes: UInt64  # [g]; the sum of the hashes of its keys
    are_wide: Bytes  # [g]; see ``IS_WIDE``


class Division(NamedTuple):
    """Groups divided into cells: first the cells of groups, in order, then those for constants."""

    hashes: UInt64  # [c]
    groups: Int32  # [c]
    counts: Int32  # [c]; of filters
    equals: Int64  # [g]; a mask of the keys by whose constants a group has further cells
    of: Int32  # [d]; the cell of each distinct filter


# -- hashes ------------------------------------------------------------------------------------


@inlined
def constant_hash(signature: np.uint64, key: int, rank: int) -> np.uint64:
    """The hash of a cell for a constant of a key, from the sum for its signature."""
    return mixed(signature + mixed((U(key) << U(32)) | U(rank)))


@inlined
def key_bit(key_hash: np.uint64) -> np.uint64:
    """The bit of a key in a set of keys, of 64 bits."""
    return U(1) << (key_hash >> U(58))


# -- filters -----------------------------------------------------------------------------------


@kernel
def merge_constraints(
    starts: Int64, operators: Bytes, ranges: Ranges, order: Int32, merged: Merged
) -> None:
    """Make one range of all constraints of a filter on a key, and tests of the rest.

    ``order`` is room for the constraints of the longest filter; ``merged`` gets the result.
    """
    keys, lows, widths = ranges.keys, ranges.lows, ranges.widths
    test_keys, test_operators, tested = merged.test_keys, merged.test_operators, merged.tested
    columns = tests = 0
    for filter in range(len(starts) - 1):
        first, count = starts[filter], starts[filter + 1] - starts[filter]
        sort_by_key(keys, first, count, order)
        index = 0
        own_columns, own_tests = columns, tests
        while index < count:
            key = np.int64(keys[order[index]])
            end = index
            low, high = 0, WORD
            while end < count and keys[order[end]] == key:
                start, width = lows[order[end]] & WORD, widths[order[end]] & WORD
                if width != HOLE_WIDTH:
                    low, high = max(low, start), min(high, start + width)
                end += 1
            is_whole = low == 0 and high == WORD
            hole = -1
            for constraint in order[index:end]:
                if ranges.has_test[constraint]:
                    test_keys[tests], test_operators[tests] = key, operators[constraint]
                    tested[tests] = ranges.values[constraint]
                    tests += 1
                if widths[constraint] & WORD != HOLE_WIDTH:
                    continue
                rank = (lows[constraint] & WORD) - 1
                if is_whole and (hole < 0 or rank == hole):
                    hole = rank
                elif not is_whole and rank == low:
                    low += 1
                elif not is_whole and rank == high:
                    high -= 1
                elif low < rank < high:
                    test_keys[tests], test_operators[tests], tested[tests] = key, at.HOLE, rank
                    tests += 1
            index = end
            if low > high:
                merged.is_dead[filter] = 1
            if columns > own_columns:
                before = merged.column_keys[columns - 1]
                if ranges.names[key] == ranges.names[before]:
                    if ranges.accepts[key] == at.ANYTHING:
                        continue  # the key before requires the name too
                    merged.is_dead[filter] = 1
            merged.column_keys[columns] = key
            merged.column_lows[columns] = low if hole < 0 else hole + 1
            merged.column_widths[columns] = high - low if hole < 0 else HOLE_WIDTH
            columns += 1
        if merged.is_dead[filter]:
            columns, tests = own_columns, own_tests
        merged.column_starts[filter + 1] = columns
        merged.test_starts[filter + 1] = tests


@inlined
def sort_by_key(keys: Int32, first: int, count: int, order: Int32) -> None:
    """Sort the constraints of a filter by their keys, by insertion: there are few."""
    for index in range(count):
        place = index
        while place > 0 and keys[order[place - 1]] > keys[first + index]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = first + index


@inlined
def same_rows(
    one: int, other: int, starts: Int64, keys: Int32, firsts: NDArray[Any], seconds: NDArray[Any]
) -> bool:
    """Whether the rows of two filters are the same, in the same order."""
    a, b = starts[one], starts[other]
    size = starts[one + 1] - a
    if starts[other + 1] - b != size:
        return False
    for i in range(size):
        is_same = firsts[a + i] == firsts[b + i] and seconds[a + i] == seconds[b + i]
        if keys[a + i] != keys[b + i] or not is_same:
            return False
    return True


@inlined
def is_filter(known: tuple[Merged, Int32], number: int, filter: int) -> bool:
    """Whether a filter equals a distinct one."""
    of, firsts = known
    first = firsts[number]
    return same_rows(
        filter, first, of.column_starts, of.column_keys, of.column_lows, of.column_widths
    ) and same_rows(filter, first, of.test_starts, of.test_keys, of.test_operators, of.tested)


find_filter = slot_finder(is_filter)


@kernel
def intern_filters(merged: Merged, slots: Int32, firsts: Int32, numbers: Int32) -> int:
    """Number the distinct filters; how many there are. Arguments as of ``intern_constants``."""
    count = 0
    for filter in range(len(numbers)):
        numbers[filter] = DEAD
        if merged.is_dead[filter]:
            continue
        hash = U(0)
        for i in range(merged.column_starts[filter], merged.column_starts[filter + 1]):
            hash = mixed(hash ^ U(merged.column_keys[i])) + U(merged.column_lows[i] & WORD)
            hash = mixed(hash ^ U(merged.column_widths[i] & WORD))
        for i in range(merged.test_starts[filter], merged.test_starts[filter + 1]):
            hash = mixed(hash ^ U(merged.test_keys[i])) + U(merged.test_operators[i])
            hash = mixed(hash ^ U(merged.tested[i]))
        slot = find_filter(slots, hash, (merged, firsts), filter)
        if slots[slot] == 0:
            firsts[count] = filter
            count += 1
            slots[slot] = count
        numbers[filter] = slots[slot] - 1
    return count


# -- groups and cells --------------------------------------------------------------------------


@inlined
def has_signature(known: tuple[Merged, Groups], group: int, filter: int) -> bool:
    """Whether a filter has the signature of a group."""
    merged, groups = known
    first, keys = groups.filters[groups.firsts[group]], merged.column_keys
    return same_rows(filter, first, merged.column_starts, keys, keys, keys)


find_group = slot_finder(has_signature)


@kernel
def find_groups(
    merged: Merged, key_hashes: UInt64, constants: Int64, slots: Int32, groups: Groups
) -> int:
    """Group distinct filters by their signatures; how many groups there are.

    ``constants`` has how many constants keys have. ``groups`` has ``filters``, and gets the rest.
    """
    count = 0
    for distinct in range(len(groups.filters)):
        filter = np.int64(groups.filters[distinct])
        start, end = merged.column_starts[filter], merged.column_starts[filter + 1]
        hash = U(0)
        for i in range(start, end):
            hash += key_hashes[merged.column_keys[i]]
        slot = find_group(slots, mixed(hash), (merged, groups), filter)
        if slots[slot] == 0:
            groups.firsts[count], groups.hashes[count] = distinct, hash
            for i in range(start, end):
                groups.are_wide[count] |= constants[merged.column_keys[i]] > at.NARROW_MAX
            count += 1
            slots[slot] = count
        group = np.int64(slots[slot]) - 1
        groups.of[distinct] = group
        groups.counts[group] += 1
    return count


@inlined
def is_equality(low: int, width: int) -> bool:
    """Whether a range is one constant; it may also be all that is between two of them."""
    return width == 0 and (low & 1) == 1


@inlined
def is_cell(known: Division, cell: int, searched: tuple[np.uint64, int]) -> bool:
    """Whether a cell has a hash, and is of a group."""
    return known.hashes[cell] == searched[0] and known.groups[cell] == searched[1]


find_cell = slot_finder(is_cell)


@kernel
def find_cells(
    merged: Merged, groups: Groups, constants: Int64, large: int, slots: Int32, cells: Division
) -> int:
    """Divide large groups by a constant that filters are equal to; how many cells there are.

    ``constants`` has how many constants keys have: of several ``=``, that of the key with the most
    is the most selective. A group of ``large`` distinct filters is worth it. ``cells`` gets the
    result; it is 0 before.
    """
    lows, widths, keys = merged.column_lows, merged.column_widths, merged.column_keys
    count = len(groups.counts)
    for group in range(count):
        cells.hashes[group], cells.groups[group] = groups.hashes[group], group
    for distinct in range(len(groups.filters)):
        group = np.int64(groups.of[distinct])
        cells.of[distinct] = group
        filter = groups.filters[distinct]
        start, end = merged.column_starts[filter], merged.column_starts[filter + 1]
        best = -1
        if groups.counts[group] >= large:
            for i in range(start, min(end, start + 31)):
                if is_equality(lows[i], widths[i]) and (
                    best < 0 or constants[keys[i]] > constants[keys[best]]
                ):
                    best = i
        if best >= 0:
            hash = constant_hash(groups.hashes[group], keys[best], lows[best])
            slot = find_cell(slots, hash, cells, (hash, group))
            if slots[slot] == 0:
                cells.hashes[count], cells.groups[count] = hash, group
                count += 1
                slots[slot] = count
            cells.of[distinct] = slots[slot] - 1
            cells.equals[group] |= np.int64(1) << (best - start)
        cells.counts[cells.of[distinct]] += 1
    return count


@kernel
def find_lists(
    merged: Merged,
    groups: Groups,
    key_hashes: UInt64,
    uses: Int64,
    constant_starts: Int64,
    lists: Int64,
    key_sets: UInt64,
) -> None:
    """Find the list of each group's cell (see ``Cells.list_starts``), and the set of its keys.

    ``uses`` says in how many groups each key is. The group without keys has the list -1.
    """
    for group in range(len(groups.firsts)):
        filter = groups.filters[groups.firsts[group]]
        rarest = equal = -1
        key_sets[group] = U(0)
        for i in range(merged.column_starts[filter], merged.column_starts[filter + 1]):
            key = np.int64(merged.column_keys[i])
            key_sets[group] |= key_bit(key_hashes[key])
            if rarest < 0 or uses[key] < uses[rarest]:
                rarest = key
            constants = constant_starts[key + 1] - constant_starts[key]
            is_equal = is_equality(merged.column_lows[i], merged.column_widths[i])
            if groups.counts[group] == 1 and is_equal and constants > 1:
                best = np.int64(merged.column_keys[equal]) if equal >= 0 else key
                if equal < 0 or constants > constant_starts[best + 1] - constant_starts[best]:
                    equal = i
        lists[group] = rarest
        if equal >= 0:
            constant = constant_starts[merged.column_keys[equal]] + (merged.column_lows[equal] >> 1)
            lists[group] = len(key_hashes) + constant


@kernel
def place_cells(sizes: Int64, starts: Int64) -> None:
    """Find where each cell begins, and the end: cells that fit into a cache line lie within one."""
    offset = 0
    for cell in range(len(sizes)):
        if sizes[cell] <= LINE and offset % LINE + sizes[cell] > LINE:
            offset += LINE - offset % LINE
        starts[cell] = offset
        offset += sizes[cell]
    starts[len(sizes)] = offset


@kernel
def write_cells(
    merged: Merged,
    groups: Groups,
    cells: Division,
    tests: Int32,
    starts: Int64,
    filled: Int32,
    arena: Int32,
) -> None:
    """Write the cells at their ``starts``; see ``Cells.arena``.

    ``tests`` has the number of each distinct filter among those with tests, or -1; ``filled`` how
    many filters each cell has yet: 0.
    """
    for group in range(len(cells.equals)):  # all of its filters may be in further cells
        if cells.equals[group] != 0:
            size = write_head(merged, groups, cells, group, starts[group], arena)
            arena[starts[group] + 2 + size] = cells.equals[group]
    for distinct in range(len(groups.filters)):
        cell = np.int64(cells.of[distinct])
        group = np.int64(cells.groups[cell])
        size = write_head(merged, groups, cells, cell, starts[cell], arena)
        first = merged.column_starts[groups.filters[distinct]]
        offset, count = starts[cell], np.int64(cells.counts[cell])
        if tests[distinct] >= 0:
            arena[offset] |= at.HAS_TESTS
        offset += 2 + size + (cell < len(cells.equals) and cells.equals[cell] != 0)
        row = filled[cell]
        filled[cell] += 1
        for i in range(first, first + size):
            low, width = merged.column_lows[i], merged.column_widths[i]
            if groups.are_wide[group]:
                arena[offset + row] = low
                offset += count
                arena[offset + row] = width
            else:  # a range that is all, or all but one rank, stays so with fewer bits
                arena[offset + row] = (low & 0xFFFF) | (min(width & WORD, 0xFFFF) << 16)
                if width & WORD == HOLE_WIDTH:
                    arena[offset + row] = (low & 0xFFFF) | -0x20000
            offset += count
        arena[offset + row] = distinct if tests[distinct] < 0 else tests[distinct] | -0x80000000


@inlined
def write_head(
    merged: Merged, groups: Groups, cells: Division, cell: int, start: int, arena: Int32
) -> int:
    """Write what a cell begins with, but HAS_TESTS stays; returns the number of its keys."""
    group = cells.groups[cell]
    first = groups.filters[groups.firsts[group]]
    columns = merged.column_starts[first]
    size = merged.column_starts[first + 1] - columns
    has_equals = cell < len(cells.equals) and cells.equals[cell] != 0
    arena[start] |= size | (at.HAS_EQUALS if has_equals else 0)
    arena[start] |= at.IS_WIDE if groups.are_wide[group] else 0
    arena[start + 1] = cells.counts[cell]
    for i in range(size):
        arena[start + 2 + i] = merged.column_keys[columns + i]
    return size


@kernel
def enter_cells(
    hashes: UInt64, starts: Int64, table: UInt64, bloom: UInt64, table_shift: int, bloom_shift: int
) -> bool:
    """Enter cells in the hash table and the Bloom filter, which are 0 before.

    Returns False if two cells could be taken for each other: once in thousands of sets. Shifting a
    hash by ``table_shift`` or ``bloom_shift`` makes its index.
    """
    for cell in range(len(hashes)):
        hash = hashes[cell]
        slot = find_entry(len(table), hash >> U(table_shift), table, hash & U(0xFFFFFFFF))
        if table[slot] != 0:
            return False
        table[slot] = (hash << U(32)) | U(starts[cell] + 1)
        bits = (U(1) << (hash & U(63))) | (U(1) << ((hash >> U(6)) & U(63)))
        bloom[hash >> U(bloom_shift)] |= bits
    return True
