"""``FilterTable`` → ``SignatureProgram``."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64, freeze
from tamis.core.errors import UsageError
from tamis.core.kernel.table import slots_for
from tamis.events.engines.signature import program as at
from tamis.events.engines.signature.kernels import cells as kernels
from tamis.events.engines.signature.kernels.cells import LINE, Division, Groups, Merged, Ranges
from tamis.events.engines.signature.kernels.match import LANES
from tamis.events.engines.signature.program import Cells, SignatureProgram, Tests, UInt64
from tamis.events.engines.signature.ranking import flat_indices, rank_constraints
from tamis.events.model import FilterTable

_SEEDS = 100
LARGE = 24
"""Groups of so many filters are divided by constants: of fewer, comparing is as fast as finding."""

_BLOOM_BITS_EACH, _BLOOM_BITS_MAX = 16, 1 << 25


def compile_filters(table: FilterTable) -> SignatureProgram:
    """Group filters by their signatures.

    Raises:
        UsageError: a filter has too many keys, or all together are too large.
    """
    ranks, ranges = rank_constraints(table)
    merged = _merge(table, ranges)
    total = table.filters
    firsts, numbers = np.zeros(total, np.int32), np.zeros(total, np.int32)
    distinct = kernels.intern_filters(merged, slots_for(total), firsts, numbers)
    filters = firsts[:distinct]
    test_counts = np.diff(merged.test_starts)[filters]
    tested = np.flatnonzero(test_counts).astype(np.int32)
    test_numbers = np.full(distinct, -1, np.int32)
    test_numbers[tested] = np.arange(len(tested), dtype=np.int32)
    sizes = np.diff(merged.column_starts)[filters]
    if len(sizes) and sizes.max() > at.KEYS_MAX:
        raise UsageError(f"a filter names {sizes.max():,} attributes: {at.KEYS_MAX:,} are possible")
    tries = (
        _try_cells(merged, filters, test_numbers, ranks.starts, seed) for seed in range(_SEEDS)
    )
    cells = next((cells for cells in tries if cells is not None), None)
    assert cells is not None, "all of many random hashes are alike"
    is_size = np.zeros(int(sizes.max(initial=0)) + 1, np.bool_)
    is_size[sizes] = True
    is_alive = numbers >= 0
    member_starts = np.zeros(distinct + 1, np.int64)
    np.cumsum(np.bincount(numbers[is_alive], minlength=distinct), out=member_starts[1:])
    members = np.argsort(numbers, kind="stable")[total - is_alive.sum() :].astype(np.int32)
    always = np.flatnonzero((sizes == 0) & (test_counts == 0))
    tests = _make_tests(table, ranges, merged, filters[tested], tested)
    freeze(*ranks, *cells, *tests, member_starts, members, is_size)
    always_number = int(always[0]) if len(always) else -1
    return SignatureProgram(ranks, cells, tests, member_starts, members, is_size, always_number)


def _merge(table: FilterTable, ranges: Ranges) -> Merged:
    filters, constraints = table.filters, len(table.values)
    merged = Merged(
        column_starts=np.zeros(filters + 1, np.int64),
        column_keys=np.zeros(constraints, np.int32),
        column_lows=np.zeros(constraints, np.int32),
        column_widths=np.zeros(constraints, np.int32),
        test_starts=np.zeros(filters + 1, np.int64),
        test_keys=np.zeros(constraints, np.int32),
        test_operators=np.zeros(constraints, np.uint8),
        tested=np.zeros(constraints, np.int64),
        is_dead=np.zeros(filters, np.uint8),
    )
    order = np.zeros(int(np.diff(table.starts).max(initial=0)), np.int32)
    kernels.merge_constraints(table.starts, table.operators, ranges, order, merged)
    return merged


def _try_cells(
    merged: Merged, filters: Int32, tests: Int32, constant_starts: Int64, seed: int
) -> Cells | None:
    """Cells with hashes of a seed; None if one cell could be taken for another one."""
    constants = np.diff(constant_starts)
    key_hashes = _hashes(len(constants), seed)
    groups = _group(merged, filters, key_hashes, constants)
    lists, key_sets = _lists(merged, groups, key_hashes, constant_starts)
    cells = _divide(merged, groups, constants)
    # In the order of the lists, so that to go over a list is to go forward in the arena.
    count, listed_count = len(cells.hashes), len(groups.firsts)
    order = np.lexsort((np.arange(count) >= listed_count, lists[cells.groups]))
    widths = np.diff(merged.column_starts)[filters[groups.firsts]][cells.groups]
    room = 2 + widths + cells.counts * (widths * (1 + groups.are_wide[cells.groups]) + 1)
    room[:listed_count] += cells.equals != 0
    ordered, starts = np.zeros(count + 1, np.int64), np.zeros(count, np.int64)
    kernels.place_cells(room[order], ordered)
    starts[order] = ordered[:-1]
    if ordered[-1] > np.iinfo(np.int32).max - 2 * LANES:
        raise UsageError(f"{len(filters):,} distinct filters are too many: divide them")
    arena = _aligned(int(ordered[-1]) + LANES)  # kernels load so many words at a time
    kernels.write_cells(merged, groups, cells, tests, starts, np.zeros(count, np.int32), arena)
    table_bits = max((2 * count).bit_length(), 4)
    bloom_bits = min(max(_BLOOM_BITS_EACH * count, 1 << 12), _BLOOM_BITS_MAX)
    bloom_words = (bloom_bits - 1).bit_length() - 6
    table, bloom = np.zeros(1 << table_bits, np.uint64), np.zeros(1 << bloom_words, np.uint64)
    if not kernels.enter_cells(
        cells.hashes, starts, table, bloom, 64 - table_bits, 64 - bloom_words
    ):
        return None
    listed = np.argsort(lists, kind="stable")[np.count_nonzero(lists < 0) :]
    list_starts = np.zeros(len(constants) + constant_starts[-1] + 1, np.int64)
    sizes = np.bincount(lists[listed], minlength=len(list_starts) - 1)
    np.cumsum(sizes, out=list_starts[1:])
    listed_cells = starts[listed].astype(np.int32)
    return Cells(arena, table, bloom, key_hashes, list_starts, listed_cells, key_sets[listed])


def _group(merged: Merged, filters: Int32, key_hashes: UInt64, constants: Int64) -> Groups:
    distinct = len(filters)
    groups = Groups(
        filters,
        of=np.zeros(distinct, np.int32),
        firsts=np.zeros(distinct, np.int32),
        counts=np.zeros(distinct, np.int32),
        hashes=np.zeros(distinct, np.uint64),
        are_wide=np.zeros(distinct, np.uint8),
    )
    found = kernels.find_groups(merged, key_hashes, constants, slots_for(distinct), groups)
    return groups._replace(
        firsts=groups.firsts[:found],
        counts=groups.counts[:found],
        hashes=groups.hashes[:found],
        are_wide=groups.are_wide[:found],
    )


def _divide(merged: Merged, groups: Groups, constants: Int64) -> Division:
    distinct, found = len(groups.filters), len(groups.firsts)
    cells = Division(
        hashes=np.zeros(found + distinct, np.uint64),
        groups=np.zeros(found + distinct, np.int32),
        counts=np.zeros(found + distinct, np.int32),
        equals=np.zeros(found, np.int64),
        of=np.zeros(distinct, np.int32),
    )
    count = kernels.find_cells(merged, groups, constants, LARGE, slots_for(distinct), cells)
    return cells._replace(
        hashes=cells.hashes[:count], groups=cells.groups[:count], counts=cells.counts[:count]
    )


def _lists(
    merged: Merged, groups: Groups, key_hashes: UInt64, constant_starts: Int64
) -> tuple[Int64, UInt64]:
    """The list of each group's cell, and the set of its keys."""
    first = groups.filters[groups.firsts]
    sizes = np.diff(merged.column_starts)[first]
    used = merged.column_keys[flat_indices(merged.column_starts[first], sizes)]
    uses = np.bincount(used, minlength=len(key_hashes)).astype(np.int64)
    lists, key_sets = np.zeros(len(first), np.int64), np.zeros(len(first), np.uint64)
    kernels.find_lists(merged, groups, key_hashes, uses, constant_starts, lists, key_sets)
    return lists, key_sets


def _make_tests(
    table: FilterTable, ranges: Ranges, merged: Merged, filters: Int32, distinct: Int32
) -> Tests:
    sizes = np.diff(merged.test_starts)[filters]
    starts = np.zeros(len(filters) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    own = flat_indices(merged.test_starts[filters], sizes)
    return Tests(
        distinct,
        starts,
        merged.test_keys[own],
        merged.test_operators[own],
        merged.tested[own],
        ranges.list_starts,
        ranges.list_ranks,
        table.string_starts,
        table.string_bytes,
    )


def _aligned(size: int) -> Int32:
    """Zeros that begin with a line of the cache."""
    room = np.zeros(size + LINE, np.int32)
    before = -room.__array_interface__["data"][0] // room.itemsize % LINE
    return room[before : before + size]


def _hashes(keys: int, seed: int) -> UInt64:
    """A random number for each key, always the same ones: SplitMix64."""
    with np.errstate(over="ignore"):
        word = np.arange(seed * keys + 1, (seed + 1) * keys + 1, dtype=np.uint64) * np.uint64(
            0x9E3779B97F4A7C15
        )
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))
