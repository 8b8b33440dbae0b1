"""Constants → ``Ranks``, and the ranges of ranks that constraints accept."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, distinct
from tamis.core.kernel.table import slots_for
from tamis.events import model
from tamis.events.engines.signature import program as at
from tamis.events.engines.signature.kernels.candidates import fill_tables, intern_constants
from tamis.events.engines.signature.kernels.cells import HOLE_WIDTH, WORD, Ranges
from tamis.events.engines.signature.program import Ranks, UInt64
from tamis.events.model import FilterTable, packed

_ACCEPTS = np.array([at.NUMBERS, at.NUMBERS, at.STRINGS, at.BOOLEANS], np.int32)
"""By kind."""
_DENSE_PER_CONSTANT = 8
"""The entries of a table by integers for each constant, at most."""
_HASHED_MIN = 64
"""With fewer constants, a binary search is as fast."""


class _Keys(NamedTuple):
    """Keys.

    Attributes:
        of: int32[c]; the key of each constraint.
        key_of: see ``Ranks``.
        names: int32[k]; accepts: uint8[k].
    """

    of: Int32
    key_of: Int32
    names: Int32
    accepts: Bytes


class _Operands(NamedTuple):
    """All constants that have ranks: of comparisons, then of lists, then of prefixes.

    Attributes:
        keys: int32[n]; kinds: uint8[n]; values: int64[n]; of strings, their numbers in order.
        compared: int64[]; the constraints of the comparisons; items: int64[]; those of the items of
            lists; prefixes: int64[]; those of the rest: all prefixes, then all their successors.
    """

    keys: Int32
    kinds: Bytes
    values: Int64
    compared: Int64
    items: Int64
    prefixes: Int64


def rank_constraints(table: FilterTable) -> tuple[Ranks, Ranges]:
    """The constants of a table in order, and its constraints as ranges of ranks."""
    keys = _find_keys(table)
    strings, string_numbers, successors = _ordered_strings(table)
    operands = _find_operands(table, keys.of, string_numbers, successors)
    indices, starts, kinds, values = _ordered(operands, len(keys.names))
    ranks = _make_ranks(table, operands, starts, kinds, values, strings, keys)
    return ranks, _find_ranges(table, operands, indices, np.diff(starts), keys)


def flat_indices(starts: Int64, sizes: Int64) -> Int64:
    """The indices of the items of some lists, list after list.

    >>> flat_indices(np.array([10, 5]), np.array([2, 3]))
    array([10, 11,  5,  6,  7])
    """
    indices: Int64 = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return indices


def _find_keys(table: FilterTable) -> _Keys:
    is_any = table.operators == model.EXISTS
    accepts = np.where(is_any, np.int32(at.ANYTHING), _ACCEPTS[table.kinds])
    wide = table.constraint_names * 4 + accepts
    is_used = np.zeros(4 * len(table.names), np.bool_)
    is_used[wide] = True
    used = np.flatnonzero(is_used).astype(np.int32)
    key_of = np.full(len(is_used), -1, np.int32)
    key_of[used] = np.arange(len(used), dtype=np.int32)
    return _Keys(key_of[wide], key_of, used // 4, (used % 4).astype(np.uint8))


def _ordered_strings(table: FilterTable) -> tuple[list[bytes], Int64, Int64]:
    """All strings that have ranks, in order.

    Returns them, the number of each of the table's strings among them, and of each prefix the
    number of its *successor*: the first string that is greater than all that begin with the prefix.
    """
    data, bounds = table.string_bytes.tobytes(), table.string_starts.tolist()
    given = [data[start:end] for start, end in pairwise(bounds)]
    prefixes = distinct(table.values[table.operators == model.PREFIX]).tolist()
    behind = {number: _successor(given[number]) for number in prefixes}
    ordered = sorted({*given, *behind.values()})
    number_of = {string: number for number, string in enumerate(ordered)}
    numbers = np.fromiter((number_of[string] for string in given), np.int64, len(given))
    successors = np.zeros(len(given), np.int64)
    for number, string in behind.items():
        successors[number] = number_of[string]
    return ordered, numbers, successors


def _successor(prefix: bytes) -> bytes:
    """The successor of a prefix, which is UTF-8, and so has no byte 255."""
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else b"\xff"


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
    count = len(operands.keys)
    firsts, numbers = np.zeros(count, np.int32), np.zeros(count, np.int32)
    found = intern_constants(*operands[:3], slots_for(count), firsts, numbers)
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
    starts = np.zeros(keys + 1, np.int64)
    np.cumsum(np.bincount(own_keys, minlength=keys), out=starts[1:])
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
    keys: _Keys,
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
    table_starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=table_starts[1:])
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
    table: FilterTable, operands: _Operands, indices: Int64, counts: Int64, keys: _Keys
) -> Ranges:
    operators = table.operators
    last = 2 * counts[keys.of]  # the rank behind all constants
    low, high = np.zeros(len(operators), np.int64), last.copy()
    high[operators == model.EXISTS] = WORD
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

    Args:
        items: the indices of the items of all lists but those of booleans.
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
    starts = np.cumsum([0, *map(len, found)], dtype=np.int64)
    return starts, np.array([rank for ranks in found for rank in ranks], np.int32)
