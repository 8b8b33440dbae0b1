"""Filters, each once, as one range for each key and tests; and the groups that they are in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, inlined, kernel
from tamis.events.engines.signature.kernels.words import constant_hash, mixed
from tamis.events.engines.signature.program import ANYTHING, HOLE, NARROW_MAX, UInt64

WORD = 0xFFFFFFFF
HOLE_WIDTH = 0xFFFFFFFE
"""The width of a range that is all but one rank."""
DEAD = -1
"""Instead of its number: that of a filter that no event can match."""


@kernel
def merge_constraints(
    starts: Int64,
    keys: Int32,
    lows: Int32,
    widths: Int32,
    operators: Bytes,
    test_values: Int64,
    has_test: Bytes,
    key_names: Int32,
    key_accepts: Bytes,
    order: Int32,
    column_starts: Int64,
    column_keys: Int32,
    column_lows: Int32,
    column_widths: Int32,
    test_starts: Int64,
    test_keys: Int32,
    test_operators: Bytes,
    tested: Int64,
    is_dead: Bytes,
) -> None:
    """Make one range of all that a filter asks of a key, and tests of what is left.

    Args:
        starts: of the filters; keys, lows, widths, operators, test_values, has_test: of the
            constraints; a constraint that is a test has a range of ranks besides.
        key_names, key_accepts: of keys, which ascend by both.
        order: room for the constraints of the longest filter.
        column_starts, column_keys, column_lows, column_widths: get the ranges.
        test_starts, test_keys, test_operators, tested: get the tests.
        is_dead: gets whether no event can match.
    """
    columns = tests = 0
    for filter in range(len(starts) - 1):
        first, count = starts[filter], starts[filter + 1] - starts[filter]
        for index in range(count):  # there are few: sorted by insertion
            place = index
            while place > 0 and keys[order[place - 1]] > keys[first + index]:
                order[place] = order[place - 1]
                place -= 1
            order[place] = first + index
        index = 0
        own_columns, own_tests = columns, tests
        while index < count:
            key = keys[order[index]]
            end = index
            low, high = 0, WORD
            while end < count and keys[order[end]] == key:
                at = order[end]
                start, width = lows[at] & WORD, widths[at] & WORD
                if width != HOLE_WIDTH:
                    low, high = max(low, start), min(high, start + width)
                end += 1
            is_whole = low == 0 and high == WORD
            hole = -1
            for place in range(index, end):
                at = order[place]
                if has_test[at]:
                    test_keys[tests], test_operators[tests] = key, operators[at]
                    tested[tests] = test_values[at]
                    tests += 1
                if widths[at] & WORD != HOLE_WIDTH:
                    continue
                rank = (lows[at] & WORD) - 1
                if is_whole and (hole < 0 or rank == hole):
                    hole = rank
                elif not is_whole and rank == low:
                    low += 1
                elif not is_whole and rank == high:
                    high -= 1
                elif low < rank < high:
                    test_keys[tests], test_operators[tests], tested[tests] = key, HOLE, rank
                    tests += 1
            index = end
            if low > high:
                is_dead[filter] = 1
            if columns > own_columns and key_names[key] == key_names[column_keys[columns - 1]]:
                if key_accepts[key] == ANYTHING:
                    continue  # which the key before asks for too
                is_dead[filter] = 1
            column_keys[columns] = key
            column_lows[columns] = low if hole < 0 else hole + 1
            column_widths[columns] = high - low if hole < 0 else HOLE_WIDTH
            columns += 1
        if is_dead[filter]:
            columns, tests = own_columns, own_tests
        column_starts[filter + 1] = columns
        test_starts[filter + 1] = tests


@inlined
def same_rows(
    one: int,
    other: int,
    starts: Int64,
    keys: Int32,
    firsts: NDArray[Any],
    seconds: NDArray[Any],
) -> bool:
    """Whether the rows of two filters are the same, in the same order."""
    a, b = starts[one], starts[other]
    size = starts[one + 1] - a
    if starts[other + 1] - b != size:
        return False
    for place in range(size):
        if (
            keys[a + place] != keys[b + place]
            or firsts[a + place] != firsts[b + place]
            or seconds[a + place] != seconds[b + place]
        ):
            return False
    return True


@inlined
def same_filter(
    one: int,
    other: int,
    column_starts: Int64,
    column_keys: Int32,
    column_lows: Int32,
    column_widths: Int32,
    test_starts: Int64,
    test_keys: Int32,
    test_operators: Bytes,
    tested: Int64,
) -> bool:
    """Whether two filters ask for the same, in the same order."""
    return same_rows(
        one, other, column_starts, column_keys, column_lows, column_widths
    ) and same_rows(one, other, test_starts, test_keys, test_operators, tested)


@kernel
def intern_filters(
    column_starts: Int64,
    column_keys: Int32,
    column_lows: Int32,
    column_widths: Int32,
    test_starts: Int64,
    test_keys: Int32,
    test_operators: Bytes,
    tested: Int64,
    is_dead: Bytes,
    table: Int32,
    firsts: Int32,
    numbers: Int32,
) -> int:
    """Number the distinct filters; how many there are. Arguments as of ``intern_constants``."""
    mask = len(table) - 1
    count = 0
    for filter in range(len(numbers)):
        numbers[filter] = DEAD
        if is_dead[filter]:
            continue
        found = U(0)
        for place in range(column_starts[filter], column_starts[filter + 1]):
            found = mixed(found ^ U(column_keys[place])) + U(column_lows[place] & WORD)
            found = mixed(found ^ U(column_widths[place] & WORD))
        for place in range(test_starts[filter], test_starts[filter + 1]):
            found = mixed(found ^ U(test_keys[place])) + U(test_operators[place])
            found = mixed(found ^ U(tested[place]))
        place = np.int64(found & U(mask))
        while table[place] >= 0 and not same_filter(
            filter,
            firsts[table[place]],
            column_starts,
            column_keys,
            column_lows,
            column_widths,
            test_starts,
            test_keys,
            test_operators,
            tested,
        ):
            place = (place + 1) & mask
        if table[place] < 0:
            table[place] = count
            firsts[count] = filter
            count += 1
        numbers[filter] = table[place]
    return count


@kernel
def find_groups(
    filters: Int32,
    column_starts: Int64,
    column_keys: Int32,
    key_hashes: UInt64,
    constants: Int64,
    table: Int32,
    firsts: Int32,
    hashes: UInt64,
    counts: Int32,
    are_wide: Bytes,
    groups: Int32,
) -> int:
    """Group distinct filters by their signatures; how many groups there are.

    Args:
        filters: a filter that is as each distinct one.
        constants: how many constants keys have.
        table: as of ``intern_constants``.
        firsts: gets a distinct filter of each group; hashes: the sum of the hashes of its keys;
            are_wide: whether ranks in one of these need more than 16 bits.
        counts: gets how many distinct filters are in each; is 0 before.
        groups: gets the group of each distinct filter.
    """
    mask = len(table) - 1
    count = 0
    for distinct in range(len(filters)):
        start, end = column_starts[filters[distinct]], column_starts[filters[distinct] + 1]
        found = U(0)
        for place in range(start, end):
            found += key_hashes[column_keys[place]]
        slot = np.int64(mixed(found) & U(mask))
        while table[slot] >= 0:
            group = table[slot]
            other = column_starts[filters[firsts[group]]]
            size = column_starts[filters[firsts[group]] + 1] - other
            is_same = size == end - start
            place = 0
            while is_same and place < size:
                is_same = column_keys[start + place] == column_keys[other + place]
                place += 1
            if is_same:
                break
            slot = (slot + 1) & mask
        if table[slot] < 0:
            table[slot] = count
            firsts[count], hashes[count] = distinct, found
            for place in range(start, end):
                are_wide[count] |= constants[column_keys[place]] > NARROW_MAX
            count += 1
        group = table[slot]
        groups[distinct] = group
        counts[group] += 1
    return count


@inlined
def is_equality(low: int, width: int) -> bool:
    """Whether a range is one constant; it may also be all that is between two of them."""
    return width == 0 and (low & 1) == 1


@kernel
def find_cells(
    filters: Int32,
    column_starts: Int64,
    column_keys: Int32,
    column_lows: Int32,
    column_widths: Int32,
    groups: Int32,
    group_counts: Int32,
    group_hashes: UInt64,
    constants: Int64,
    large: int,
    table: Int32,
    cell_hashes: UInt64,
    cell_groups: Int32,
    cell_counts: Int32,
    equals: NDArray[np.int64],
    cells: Int32,
) -> int:
    """Divide large groups by a constant that filters are equal to; how many cells there are.

    Args:
        filters, groups: of each distinct filter; group_counts, group_hashes: of groups.
        constants: int64[k]; how many constants keys have: of several ``=`` that with the most is
            the most selective.
        large: how many distinct filters a group has that is worth it.
        table: -1 at first; as of ``intern_constants``.
        cell_hashes, cell_groups, cell_counts: get the cells: first those of the groups, in order.
        equals: gets for each group a mask of the keys by whose constants it has further cells.
        cells: gets the cell of each distinct filter.
    """
    mask = len(table) - 1
    count = len(group_counts)
    for group in range(count):
        cell_hashes[group], cell_groups[group] = group_hashes[group], group
    for distinct in range(len(filters)):
        group = groups[distinct]
        cells[distinct] = group
        start, end = column_starts[filters[distinct]], column_starts[filters[distinct] + 1]
        best = -1
        if group_counts[group] >= large:
            for place in range(start, min(end, start + 31)):
                if is_equality(column_lows[place], column_widths[place]) and (
                    best < 0 or constants[column_keys[place]] > constants[column_keys[best]]
                ):
                    best = place
        if best >= 0:
            found = constant_hash(group_hashes[group], column_keys[best], column_lows[best])
            slot = np.int64(found & U(mask))
            while table[slot] >= 0 and (
                cell_hashes[table[slot]] != found or cell_groups[table[slot]] != group
            ):
                slot = (slot + 1) & mask
            if table[slot] < 0:
                table[slot] = count
                cell_hashes[count], cell_groups[count] = found, group
                count += 1
            cells[distinct] = table[slot]
            equals[group] |= np.int64(1) << (best - start)
        cell_counts[cells[distinct]] += 1
    return count
