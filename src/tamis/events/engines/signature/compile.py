"""``FilterTable`` → ``SignatureProgram``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, freeze
from tamis.core.errors import UsageError
from tamis.events.engines.signature.kernels.cells import (
    LINE,
    enter_cells,
    find_access,
    place_cells,
    write_cells,
    write_empty_cells,
)
from tamis.events.engines.signature.kernels.filters import (
    find_cells,
    find_groups,
    intern_filters,
    merge_constraints,
)
from tamis.events.engines.signature.kernels.words import LANES
from tamis.events.engines.signature.program import KEYS_MAX, Cells, SignatureProgram, Tests, UInt64
from tamis.events.engines.signature.ranking import Ranges, empty_slots, rank_constraints
from tamis.events.model import FilterTable

_SEEDS = 100
LARGE = 24
"""A group of so many filters is divided by constants: for fewer, to look is as fast as to find."""

_BLOOM_BITS_EACH, _BLOOM_BITS_MAX = 16, 1 << 25


class _Merged(NamedTuple):
    """Filters, as one range for each key and tests; see ``merge_constraints``."""

    column_starts: Int64
    column_keys: Int32
    column_lows: Int32
    column_widths: Int32
    test_starts: Int64
    test_keys: Int32
    test_operators: Bytes
    tested: Int64
    is_dead: Bytes


def compile_filters(table: FilterTable) -> SignatureProgram:
    """Group filters by their signatures.

    Raises:
        UsageError: a filter has too many keys, or all together are too large.
    """
    ranks, ranges = rank_constraints(table)
    merged = _merge(table, ranges)
    total = table.filters
    slots, firsts = empty_slots(total), np.zeros(total, np.int32)
    numbers = np.zeros(total, np.int32)
    distinct = intern_filters(*merged, slots, firsts, numbers)
    filters = firsts[:distinct]
    test_counts = np.diff(merged.test_starts)[filters]
    tested = np.flatnonzero(test_counts).astype(np.int32)
    places = np.full(distinct, -1, np.int32)
    places[tested] = np.arange(len(tested), dtype=np.int32)
    sizes = np.diff(merged.column_starts)[filters]
    if len(sizes) and sizes.max() > KEYS_MAX:
        raise UsageError(f"a filter names {sizes.max():,} attributes: {KEYS_MAX:,} are possible")
    cells = _make_cells(merged, filters, places, ranks.starts)
    is_size = np.zeros(int(sizes.max(initial=0)) + 1, np.bool_)
    is_size[sizes] = True
    is_alive = numbers >= 0
    member_starts = np.zeros(distinct + 1, np.int64)
    np.cumsum(np.bincount(numbers[is_alive], minlength=distinct), out=member_starts[1:])
    members = np.argsort(numbers, kind="stable")[total - is_alive.sum() :].astype(np.int32)
    always = np.flatnonzero((sizes == 0) & (test_counts == 0))
    tests = _make_tests(table, ranges, merged, filters[tested], tested)
    program = SignatureProgram(
        ranks,
        cells,
        tests,
        member_starts,
        members,
        is_size,
        int(always[0]) if len(always) else -1,
    )
    freeze(*ranks, *cells, *tests, member_starts, members, is_size)
    return program


def _merge(table: FilterTable, ranges: Ranges) -> _Merged:
    filters, constraints = table.filters, len(table.values)
    merged = _Merged(
        np.zeros(filters + 1, np.int64),
        np.zeros(constraints, np.int32),
        np.zeros(constraints, np.int32),
        np.zeros(constraints, np.int32),
        np.zeros(filters + 1, np.int64),
        np.zeros(constraints, np.int32),
        np.zeros(constraints, np.uint8),
        np.zeros(constraints, np.int64),
        np.zeros(filters, np.uint8),
    )
    longest = int(np.diff(table.starts).max(initial=0))
    merge_constraints(
        table.starts,
        ranges.keys,
        ranges.lows,
        ranges.widths,
        table.operators,
        ranges.values,
        ranges.has_test,
        ranges.names,
        ranges.accepts,
        np.zeros(longest, np.int32),
        *merged,
    )
    return merged


class _Groups(NamedTuple):
    """Distinct filters by their signatures.

    Attributes:
        filters: int32[d]; a filter that is as each distinct one.
        of: int32[d]; the group of each.
        firsts: int32[g]; a distinct filter of each group; counts: int32[g]; how many there are.
        hashes: uint64[g]; the sum of the hashes of its keys; are_wide: uint8[g]; see ``IS_WIDE``.
    """

    filters: Int32
    of: Int32
    firsts: Int32
    counts: Int32
    hashes: UInt64
    are_wide: Bytes


def _make_cells(merged: _Merged, filters: Int32, tests: Int32, constant_starts: Int64) -> Cells:
    """Cells with the first hashes by which none can be taken for another one."""
    tries = (_try_cells(merged, filters, tests, constant_starts, seed) for seed in range(_SEEDS))
    found = next((cells for cells in tries if cells is not None), None)
    assert found is not None, "all of many random hashes are alike"
    return found


def _try_cells(
    merged: _Merged, filters: Int32, tests: Int32, constant_starts: Int64, seed: int
) -> Cells | None:
    constants = np.diff(constant_starts)
    key_hashes = _hashes(len(constants), seed)
    groups = _group(merged, filters, key_hashes, constants)
    access, key_sets = _accesses(merged, groups, key_hashes, constant_starts)
    hashes, owners, counts, equals, of = _divide(merged, groups, constants)
    # In the order of the lists, so that to go over one is to go forward in the arena.
    order = np.lexsort((np.arange(len(owners)) >= len(access), access[owners]))
    widths = np.diff(merged.column_starts)[filters[groups.firsts]][owners]
    are_wide = groups.are_wide[owners]
    room = 2 + widths + counts * (widths * (1 + are_wide) + 1)
    room[: len(equals)] += equals != 0
    ordered, starts = np.zeros(len(order) + 1, np.int64), np.zeros(len(order), np.int64)
    place_cells(room[order], ordered)
    starts[order] = ordered[:-1]
    if ordered[-1] > np.iinfo(np.int32).max - 2 * LANES:
        raise UsageError(f"{len(filters):,} distinct filters are too many: divide them")
    arena = _aligned(int(ordered[-1]) + LANES)  # so many are loaded at a time
    columns = merged[:4]
    write_empty_cells(filters, groups.firsts, *columns[:2], starts, are_wide, equals, arena)
    filled = np.zeros(len(order), np.int32)
    write_cells(filters, of, *columns, tests, starts, counts, are_wide, equals, filled, arena)
    entered = _enter(hashes, starts)
    if entered is None:
        return None
    listed = np.argsort(access, kind="stable")[np.count_nonzero(access < 0) :]
    under_starts = np.zeros(len(constants) + constant_starts[-1] + 1, np.int64)
    sizes = np.bincount(access[listed], minlength=len(under_starts) - 1)
    np.cumsum(sizes, out=under_starts[1:])
    under = starts[listed].astype(np.int32)
    return Cells(arena, *entered, key_hashes, under_starts, under, key_sets[listed])


def _group(merged: _Merged, filters: Int32, key_hashes: UInt64, constants: Int64) -> _Groups:
    distinct = len(filters)
    groups = _Groups(
        filters,
        np.zeros(distinct, np.int32),
        np.zeros(distinct, np.int32),
        np.zeros(distinct, np.int32),
        np.zeros(distinct, np.uint64),
        np.zeros(distinct, np.uint8),
    )
    found = find_groups(
        filters,
        *merged[:2],
        key_hashes,
        constants,
        empty_slots(distinct),
        groups.firsts,
        groups.hashes,
        groups.counts,
        groups.are_wide,
        groups.of,
    )
    own = (groups.firsts[:found], groups.counts[:found], groups.hashes[:found])
    return _Groups(filters, groups.of, *own, groups.are_wide[:found])


def _divide(
    merged: _Merged, groups: _Groups, constants: Int64
) -> tuple[UInt64, Int32, Int32, Int64, Int32]:
    """The cells: hashes, groups, how many filters they have; which groups have further cells, by
    which keys; and the cell of each distinct filter.
    """  # noqa: D205
    distinct, found = len(groups.filters), len(groups.firsts)
    hashes = np.zeros(found + distinct, np.uint64)
    owners, counts = np.zeros(found + distinct, np.int32), np.zeros(found + distinct, np.int32)
    equals, of = np.zeros(found, np.int64), np.zeros(distinct, np.int32)
    cells = find_cells(
        groups.filters,
        *merged[:4],
        groups.of,
        groups.counts,
        groups.hashes,
        constants,
        LARGE,
        empty_slots(distinct),
        hashes,
        owners,
        counts,
        equals,
        of,
    )
    return hashes[:cells], owners[:cells], counts[:cells], equals, of


def _accesses(
    merged: _Merged, groups: _Groups, key_hashes: UInt64, constant_starts: Int64
) -> tuple[Int64, UInt64]:
    """What each group is listed under, -1 for the one without keys; and the sets of their keys."""
    first = groups.filters[groups.firsts]
    sizes = np.diff(merged.column_starts)[first]
    at = np.arange(sizes.sum()) + np.repeat(
        merged.column_starts[first] - np.concatenate([[0], np.cumsum(sizes)])[:-1], sizes
    )
    uses = np.bincount(merged.column_keys[at], minlength=len(key_hashes)).astype(np.int64)
    access, key_sets = np.zeros(len(first), np.int64), np.zeros(len(first), np.uint64)
    find_access(
        groups.filters,
        groups.firsts,
        groups.counts,
        *merged[:4],
        key_hashes,
        uses,
        constant_starts,
        access,
        key_sets,
    )
    return access, key_sets


def _enter(hashes: UInt64, starts: Int64) -> tuple[UInt64, UInt64] | None:
    """The hash table and the Bloom filter of cells; None if some have hashes too much alike."""
    table_bits = max((2 * len(hashes)).bit_length(), 4)
    wanted = min(max(_BLOOM_BITS_EACH * len(hashes), 1 << 12), _BLOOM_BITS_MAX)
    bloom_bits = (wanted - 1).bit_length() - 6
    table, bloom = np.zeros(1 << table_bits, np.uint64), np.zeros(1 << bloom_bits, np.uint64)
    is_entered = enter_cells(hashes, starts, table, bloom, 64 - table_bits, 64 - bloom_bits)
    return (table, bloom) if is_entered else None


def _make_tests(
    table: FilterTable, ranges: Ranges, merged: _Merged, filters: Int32, distinct: Int32
) -> Tests:
    sizes = np.diff(merged.test_starts)[filters]
    starts = np.zeros(len(filters) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    at = np.arange(starts[-1]) + np.repeat(merged.test_starts[filters] - starts[:-1], sizes)
    return Tests(
        distinct,
        starts,
        merged.test_keys[at],
        merged.test_operators[at],
        merged.tested[at],
        ranges.list_starts,
        ranges.list_ranks,
        table.string_starts,
        table.string_bytes,
    )


def _aligned(size: int) -> Int32:
    """Zeros, the first of which begins a line of the cache."""
    room = np.zeros(size + LINE, np.int32)
    before = -room.__array_interface__["data"][0] // room.itemsize % LINE
    return room[before : before + size]


def _hashes(keys: int, seed: int) -> UInt64:
    """A random number for each key: always the same ones."""
    with np.errstate(over="ignore"):
        word = np.arange(seed * keys + 1, (seed + 1) * keys + 1, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
