"""``FilterTable`` → ``SignatureProgram``: constants are ranked, then filters are grouped."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, distinct, flat_indices, freeze, starts_of
from tamis.core.errors import UsageError
from tamis.core.kernel.state import zeros
from tamis.core.kernel.table import GOLDEN, slots_for
from tamis.events import model
from tamis.events.engines.signature import program as at
from tamis.events.engines.signature.kernels import cells as kernels
from tamis.events.engines.signature.kernels.cells import (
    HOLE_WIDTH,
    LINE,
    WORD,
    Division,
    Groups,
    Merged,
    Ranges,
)
from tamis.events.engines.signature.kernels.match import LANES
from tamis.events.engines.signature.kernels.ranks import fill_tables, intern_constants
from tamis.events.engines.signature.keys import Keys, find_keys, make_texts, with_items
from tamis.events.engines.signature.program import Cells, Ranks, SignatureProgram, Tests, UInt64
from tamis.events.model import FilterTable, packed

_SEEDS = 100
LARGE = 24
"""Groups of so many filters are divided by constants: of fewer, comparing is as fast as finding."""

_BLOOM_BITS_EACH, _BLOOM_BITS_MAX = 16, 1 << 25
_DENSE_PER_CONSTANT = 8
"""The entries of a table by integers for each constant, at most."""
_HASHED_MIN = 64
"""With fewer constants, a binary search is as fast."""


def compile_filters(table: FilterTable) -> SignatureProgram:
    """Group filters by their signatures; ``UsageError`` for too many keys, or too large filters."""
    table, origins = with_items(table)
    keys = find_keys(table)
    ranks, ranges = _rank_constraints(table, keys)
    merged = _merge(table, ranges)
    firsts, numbers = np.zeros((2, table.filters), np.int32)
    count = kernels.intern_filters(merged, slots_for(table.filters), firsts, numbers)
    filters = firsts[:count]
    test_counts = np.diff(merged.test_starts)[filters]
    tested = np.flatnonzero(test_counts).astype(np.int32)
    test_numbers = np.full(count, -1, np.int32)
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
    member_starts = starts_of(np.bincount(numbers[is_alive], minlength=count))
    members = origins[np.argsort(numbers, kind="stable")[np.count_nonzero(~is_alive) :]]
    always = np.flatnonzero((sizes == 0) & (test_counts == 0))
    tests = _make_tests(table, ranges, merged, filters[tested], tested)
    texts = make_texts(table, keys)
    freeze(*ranks, *cells, *tests, *texts, member_starts, members, is_size)
    always_number = int(always[0]) if len(always) else -1
    return SignatureProgram(
        ranks, cells, tests, texts, len(keys.texts), member_starts, members, is_size, always_number
    )


def _merge(table: FilterTable, ranges: Ranges) -> Merged:
    filters, constraints = table.filters, len(table.values)
    merged = zeros(
        Merged, constraints, column_starts=filters + 1, test_starts=filters + 1, is_dead=filters
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
    list_count = len(constants) + int(constant_starts[-1])
    list_starts = starts_of(np.bincount(lists[listed], minlength=list_count))
    listed_cells = starts[listed].astype(np.int32)
    return Cells(arena, table, bloom, key_hashes, list_starts, listed_cells, key_sets[listed])


def _group(merged: Merged, filters: Int32, key_hashes: UInt64, constants: Int64) -> Groups:
    groups = zeros(Groups, len(filters), filters=filters)
    found = kernels.find_groups(merged, key_hashes, constants, slots_for(len(filters)), groups)
    parts = {name: getattr(groups, name)[:found] for name in Groups._fields[2:]}
    return groups._replace(**parts)


def _divide(merged: Merged, groups: Groups, constants: Int64) -> Division:
    count, found = len(groups.filters), len(groups.firsts)
    cells = zeros(Division, found + count, equals=found, of=count)
    used = kernels.find_cells(merged, groups, constants, LARGE, slots_for(count), cells)
    parts = {name: getattr(cells, name)[:used] for name in Division._fields[:3]}
    return cells._replace(**parts)


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
    table: FilterTable, ranges: Ranges, merged: Merged, filters: Int32, tested: Int32
) -> Tests:
    sizes = np.diff(merged.test_starts)[filters]
    own = flat_indices(merged.test_starts[filters], sizes)
    return Tests(
        tested,
        starts_of(sizes),
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
        word = np.arange(seed * keys + 1, (seed + 1) * keys + 1, dtype=np.uint64) * GOLDEN
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


# -- ranks of constants, and ranges of constraints -----------------------------------------------


class _Operands(NamedTuple):
    """All constants that have ranks: of comparisons, then of lists, then of prefixes."""

    keys: Int32  # [n]
    kinds: Bytes  # [n]
    values: Int64  # [n]; of strings, their numbers in order
    compared: Int64  # the constraints of the comparisons
    items: Int64  # those of the items of lists
    prefixes: Int64  # those of the rest: all prefixes, then all their successors


def _rank_constraints(table: FilterTable, keys: Keys) -> tuple[Ranks, Ranges]:
    """The constants of a table in order, and its constraints as ranges of ranks."""
    strings, string_numbers, successors = _ordered_strings(table)
    operands = _find_operands(table, keys.of, string_numbers, successors)
    indices, starts, kinds, values = _ordered(operands, len(keys.names))
    ranks = _make_ranks(table, operands, starts, kinds, values, strings, keys)
    return ranks, _find_ranges(table, operands, indices, np.diff(starts), keys)


def _ordered_strings(table: FilterTable) -> tuple[list[bytes], Int64, Int64]:
    """All strings that have ranks, in order, and the number of each of the table's among them.

    Also of each prefix the number of its *successor*: the first string that is greater than all
    that begin with the prefix. UTF-8 has no byte 255.
    """
    data, bounds = table.string_bytes.tobytes(), table.string_starts.tolist()
    given = [data[start:end] for start, end in pairwise(bounds)]
    prefixes = distinct(table.values[table.operators == model.PREFIX]).tolist()
    behind = {}
    for number in prefixes:
        prefix = given[number]
        behind[number] = prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else b"\xff"
    ordered = sorted({*given, *behind.values()})
    number_of = {string: number for number, string in enumerate(ordered)}
    numbers = np.fromiter((number_of[string] for string in given), np.int64, len(given))
    successors = np.zeros(len(given), np.int64)
    for number, string in behind.items():
        successors[number] = number_of[string]
    return ordered, numbers, successors


def _find_operands(
    table: FilterTable, keys: Int32, string_numbers: Int64, successors: Int64
) -> _Operands:
    operators, kinds = table.operators, table.kinds
    has_order = kinds != model.BOOLEAN
    compared = np.flatnonzero((operators <= model.GE) & has_order)
    prefixes = np.flatnonzero(operators == model.PREFIX)
    lists = np.flatnonzero((operators == model.IN) & has_order)
    starts = table.list_starts[table.values[lists]]
    sizes = table.list_starts[table.values[lists] + 1] - starts
    of_lists = flat_indices(starts, sizes)
    items = np.repeat(lists, sizes)
    of_prefixes = table.values[prefixes]
    prefix_kinds = np.full(2 * len(prefixes), model.STRING, np.uint8)
    own_kinds = np.concatenate([kinds[compared], table.list_kinds[of_lists], prefix_kinds])
    values = np.concatenate([table.values[compared], table.list_values[of_lists]])
    is_string = own_kinds[: len(values)] == model.STRING
    values[is_string] = string_numbers[values[is_string]]
    values = np.concatenate([values, string_numbers[of_prefixes], successors[of_prefixes]])
    own = np.concatenate([compared, items, prefixes, prefixes])
    return _Operands(keys[own], own_kinds, values, compared, items, prefixes)


def _ordered(operands: _Operands, keys: int) -> tuple[Int64, Int64, Bytes, Int64]:
    """The index of each operand among those of its key; and the constants of keys, in order."""
    firsts, numbers = np.zeros((2, len(operands.keys)), np.int32)
    found = intern_constants(*operands[:3], slots_for(len(operands.keys)), firsts, numbers)
    first = firsts[:found]
    own_keys, kinds = operands.keys[first], operands.kinds[first]
    values = operands.values[first]
    is_float = kinds == model.FLOAT
    if is_float.any():
        size = np.where(is_float, values.view(np.float64), values.astype(np.float64))
        # 2**63 - 1 is rounded to 2**63, which is greater: the float comes behind.
        order = np.lexsort((values, is_float, size, own_keys))
    else:
        order = np.lexsort((values, own_keys))
    starts = starts_of(np.bincount(own_keys, minlength=keys))
    indices = np.empty(found, np.int64)
    indices[order] = np.arange(found) - starts[own_keys[order]]
    return indices[numbers], starts, kinds[order], values[order]


def _make_ranks(
    table: FilterTable,
    operands: _Operands,
    starts: Int64,
    kinds: Bytes,
    values: Int64,
    strings: list[bytes],
    keys: Keys,
) -> Ranks:
    counts, accepts = np.diff(starts), keys.accepts
    is_searched = (accepts == at.NUMBERS) | (accepts == at.STRINGS)
    modes = np.where(is_searched, at.SEARCHED, at.FIXED).astype(np.uint8)
    modes[_without_order(table, operands, len(modes)) & (counts >= _HASHED_MIN)] = at.HASHED
    bases, sizes = _dense(starts, kinds, values, accepts)
    modes[sizes > 0] = at.DENSE
    is_hashed = modes == at.HASHED
    # The least power of two that is greater than twice the constants.
    sizes[is_hashed] = [1 << (2 * count).bit_length() for count in counts[is_hashed].tolist()]
    table_starts = starts_of(sizes)
    ranks = Ranks(
        keys.key_of,
        modes,
        starts,
        kinds,
        values,
        *packed(strings),
        *_heads(strings, starts, values, accepts),
        table_starts,
        bases,
        tables=np.full(table_starts[-1], -1, np.int32),
    )
    fill_tables(ranks, (accepts == at.STRINGS).astype(np.uint8))
    return ranks


def _without_order(table: FilterTable, operands: _Operands, keys: int) -> NDArray[np.bool_]:
    """The keys whose constraints test equality alone, and so need no order."""
    has_order = np.zeros(keys, np.bool_)
    compared = operands.compared
    own = operands.keys[: len(compared)]
    has_order[own[table.operators[compared] > model.NE]] = True
    has_order[operands.keys[len(compared) + len(operands.items) :]] = True
    return ~has_order


def _dense(starts: Int64, kinds: Bytes, values: Int64, accepts: Bytes) -> tuple[Int64, Int64]:
    """The least constant of each key, and the size of a table by integers, 0 if it does not pay."""
    counts = np.diff(starts)
    bases, sizes = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.int64)
    owners = np.repeat(np.arange(len(counts)), counts)
    floats = np.bincount(owners[kinds == model.FLOAT], minlength=len(counts))
    keys = np.flatnonzero((accepts == at.NUMBERS) & (counts > 0) & (floats == 0))
    low, high = values[starts[keys]], values[starts[keys + 1] - 1]
    room = _DENSE_PER_CONSTANT * counts[keys]
    pays = high.astype(np.float64) - low.astype(np.float64) < room
    bases[keys[pays]] = low[pays]
    sizes[keys[pays]] = high[pays] - low[pays] + 1
    return bases, sizes


def _heads(
    strings: list[bytes], starts: Int64, values: Int64, accepts: Bytes
) -> tuple[Int32, UInt64]:
    """``Ranks.string_skips`` and ``string_heads``."""
    skips = np.zeros(len(accepts), np.int32)
    heads = np.zeros(len(values) if strings else 0, np.uint64)
    for key in np.flatnonzero((accepts == at.STRINGS) & (np.diff(starts) > 0)).tolist():
        start, end = starts[key : key + 2].tolist()
        own = [strings[value] for value in values[start:end].tolist()]
        first, last = own[0], own[-1]
        pairs = enumerate(zip(first, last, strict=False))
        differs = (index for index, (one, other) in pairs if one != other)
        skip = skips[key] = next(differs, min(len(first), len(last)))
        parts = [string[skip : skip + at.HEAD_BYTES + 1] for string in own]
        data = b"".join(b"\0" + part[: at.HEAD_BYTES].ljust(at.HEAD_BYTES, b"\0") for part in parts)
        sizes = np.fromiter(map(len, parts), np.uint64, len(parts))
        heads[start:end] = np.frombuffer(data, ">u8").astype(np.uint64) << at.SIZE_BITS | sizes
    return skips, heads


def _find_ranges(
    table: FilterTable, operands: _Operands, indices: Int64, counts: Int64, keys: Keys
) -> Ranges:
    operators = table.operators
    last = 2 * counts[keys.of]  # the rank behind all constants
    low, high = np.zeros(len(operators), np.int64), last.copy()
    high[(operators == model.EXISTS) | keys.are_texts] = WORD
    rank = np.zeros(len(operators), np.int64)
    compared, items, prefixes = operands.compared, operands.items, operands.prefixes
    rank[compared] = 2 * indices[: len(compared)] + 1
    is_boolean = (table.kinds == model.BOOLEAN) & (operators <= model.NE)
    rank[is_boolean] = 2 * table.values[is_boolean] + 1
    low = np.where((operators == model.EQ) | (operators == model.GE), rank, low)
    low = np.where(operators == model.GT, rank + 1, low)
    high = np.where((operators == model.EQ) | (operators == model.LE), rank, high)
    high = np.where(operators == model.LT, rank - 1, high)
    of_prefixes = indices[len(compared) + len(items) :].reshape(2, -1)
    string_starts, strings = table.string_starts, table.values[prefixes]
    is_empty = string_starts[strings + 1] == string_starts[strings]
    low[prefixes] = np.where(is_empty, 0, 2 * of_prefixes[0] + 1)
    high[prefixes] = np.where(is_empty, last[prefixes], 2 * of_prefixes[1])
    width = high - low
    is_hole = operators == model.NE
    low[is_hole], width[is_hole] = rank[is_hole] + 1, HOLE_WIDTH
    has_test = np.isin(operators, [model.SUFFIX, model.CONTAINS]).astype(np.uint8)
    has_test[keys.are_texts] = 0
    values = table.values.copy()
    item_indices = indices[len(compared) : len(compared) + len(items)]
    list_starts, list_ranks = _ranked_lists(table, item_indices, values)
    is_list = np.flatnonzero(operators == model.IN)
    lists = values[is_list]
    low[is_list] = list_ranks[list_starts[lists]]
    width[is_list] = list_ranks[list_starts[lists + 1] - 1] - low[is_list]
    has_test[is_list] = list_starts[lists + 1] - list_starts[lists] > 1
    return Ranges(
        keys.of,
        low.astype(np.uint32).view(np.int32),
        width.astype(np.uint32).view(np.int32),
        has_test,
        values,
        list_starts,
        list_ranks,
        keys.names,
        keys.accepts,
    )


def _ranked_lists(table: FilterTable, items: Int64, values: Int64) -> tuple[Int64, Int32]:
    """The distinct lists, as ranks; ``values`` gets their numbers.

    ``items`` are the indices of the items of all lists but those of booleans.
    """
    found: dict[tuple[int, ...], int] = {}
    of_items = iter((2 * items + 1).tolist())
    for constraint in np.flatnonzero(table.operators == model.IN).tolist():
        first, end = table.list_starts[table.values[constraint] :][:2].tolist()
        if table.kinds[constraint] == model.BOOLEAN:
            ranks = [2 * value + 1 for value in table.list_values[first:end].tolist()]
        else:
            ranks = [next(of_items) for _ in range(first, end)]
        values[constraint] = found.setdefault(tuple(sorted(set(ranks))), len(found))
    return starts_of(list(map(len, found))), np.array(
        [rank for ranks in found for rank in ranks], np.int32
    )
