"""Constants → ``Ranks``, and the ranges of ranks that constraints accept."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, distinct
from tamis.events.engines.signature.kernels.constants import fill_tables, intern_constants
from tamis.events.engines.signature.kernels.filters import HOLE_WIDTH, WORD
from tamis.events.engines.signature.program import (
    ANYTHING,
    BOOLEANS,
    DENSE,
    FIXED,
    HASHED,
    HEAD_BYTES,
    NUMBERS,
    SEARCHED,
    SIZE_BITS,
    STRINGS,
    Ranks,
    UInt64,
)
from tamis.events.model import (
    BOOLEAN,
    CONTAINS,
    EQ,
    EXISTS,
    FLOAT,
    GE,
    GT,
    IN,
    LE,
    LT,
    NE,
    PREFIX,
    STRING,
    SUFFIX,
    FilterTable,
    packed,
)

_ACCEPTS = np.array([NUMBERS, NUMBERS, STRINGS, BOOLEANS], np.int32)
"""By kind."""
_DENSE_PER_CONSTANT = 8
"""A table by integers may have so many entries for each constant."""
_HASHED_MIN = 64
"""So few constants are searched as fast."""


class Ranges(NamedTuple):
    """What each constraint accepts of its key.

    Attributes:
        keys: int32[c].
        lows, widths: int32[c]; see ``Cells.arena``.
        has_test: uint8[c]; whether a test is left; values: int64[c]; what it is of.
        list_starts, list_ranks: the lists of ``in``, as ranks, ascending.
        names: int32[k]; accepts: uint8[k]; of keys.
    """

    keys: Int32
    lows: Int32
    widths: Int32
    has_test: Bytes
    values: Int64
    list_starts: Int64
    list_ranks: Int32
    names: Int32
    accepts: Bytes


class _Operands(NamedTuple):
    """All constants that have ranks: of comparisons, of lists, prefixes, and what is behind these.

    Attributes:
        keys: int32[n]; kinds: uint8[n]; values: int64[n]; of strings, their numbers in order.
        compared: int64[]; the constraints that the first of them are of; items: int64[]; those
            that come next, of lists; prefixes: int64[]; those of the rest, of which each has two.
    """

    keys: Int32
    kinds: Bytes
    values: Int64
    compared: Int64
    items: Int64
    prefixes: Int64


class _Keys(NamedTuple):
    """The key of each constraint; and the name of each key, and what it accepts."""

    of: Int32
    names: Int32
    accepts: Bytes


def rank_constraints(table: FilterTable) -> tuple[Ranks, Ranges]:
    """The constants of a table in order, and its constraints as ranges of ranks."""
    keys, key_of, names, accepts = _find_keys(table)
    strings, string_numbers, successors = _ordered_strings(table)
    operands = _find_operands(table, keys, string_numbers, successors)
    place, starts, kinds, values = _ordered(operands, len(names))
    ranks = _make_tables(table, operands, starts, kinds, values, accepts, strings, key_of)
    of_keys = _Keys(keys, names, accepts)
    return ranks, _find_ranges(table, operands, place, np.diff(starts), of_keys)


def _find_keys(table: FilterTable) -> tuple[Int32, Int32, Int32, Bytes]:
    """The key of each constraint, and of each name with what it accepts; both of each key."""
    accepts = np.where(table.operators == EXISTS, np.int32(ANYTHING), _ACCEPTS[table.kinds])
    wide = table.constraint_names * 4 + accepts
    is_used = np.zeros(4 * len(table.names), np.bool_)
    is_used[wide] = True
    used = np.flatnonzero(is_used).astype(np.int32)
    key_of = np.full(len(is_used), -1, np.int32)
    key_of[used] = np.arange(len(used), dtype=np.int32)
    return key_of[wide], key_of, used // 4, (used % 4).astype(np.uint8)


def _ordered_strings(table: FilterTable) -> tuple[list[bytes], Int64, Int64]:
    """All strings that have ranks, in order; and where among them are each of the table's, and what
    comes right behind all that begin with it.
    """  # noqa: D205
    data, bounds = table.string_bytes.tobytes(), table.string_starts.tolist()
    given = [data[start:end] for start, end in pairwise(bounds)]
    prefixes = distinct(table.values[table.operators == PREFIX]).tolist()
    behind = {number: _behind(given[number]) for number in prefixes}
    ordered = sorted({*given, *behind.values()})
    number_of = {string: number for number, string in enumerate(ordered)}
    numbers = np.fromiter((number_of[string] for string in given), np.int64, len(given))
    successors = np.zeros(len(given), np.int64)
    for number, string in behind.items():
        successors[number] = number_of[string]
    return ordered, numbers, successors


def _behind(prefix: bytes) -> bytes:
    """The first string that is greater than all that begin with a prefix, which is UTF-8."""
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else b"\xff"


def _find_operands(
    table: FilterTable, keys: Int32, string_numbers: Int64, successors: Int64
) -> _Operands:
    operators, kinds = table.operators, table.kinds
    has_order = kinds != BOOLEAN
    compared = np.flatnonzero((operators <= GE) & has_order)
    prefixes = np.flatnonzero(operators == PREFIX)
    lists = np.flatnonzero((operators == IN) & has_order)
    numbers = table.values[lists]
    sizes = table.list_starts[numbers + 1] - table.list_starts[numbers]
    at = np.arange(sizes.sum()) + np.repeat(
        table.list_starts[numbers] - np.concatenate([[0], np.cumsum(sizes)[:-1]])[: len(sizes)],
        sizes,
    )
    items = np.repeat(lists, sizes)
    of_prefixes = table.values[prefixes]
    own_kinds = np.concatenate(
        [kinds[compared], table.list_kinds[at], np.full(2 * len(prefixes), STRING, np.uint8)]
    )
    values = np.concatenate([table.values[compared], table.list_values[at]])
    is_string = own_kinds[: len(values)] == STRING
    values[is_string] = string_numbers[values[is_string]]
    values = np.concatenate([values, string_numbers[of_prefixes], successors[of_prefixes]])
    own = np.concatenate([compared, items, prefixes, prefixes])
    return _Operands(keys[own], own_kinds, values, compared, items, prefixes)


def _ordered(operands: _Operands, keys: int) -> tuple[Int64, Int64, Bytes, Int64]:
    """The place of each operand among those of its key; and the constants of keys, in order."""
    count = len(operands.keys)
    table = empty_slots(count)
    firsts = np.zeros(count, np.int32)
    numbers = np.zeros(count, np.int32)
    distinct = intern_constants(*operands[:3], table, firsts, numbers)
    first = firsts[:distinct]
    own_keys, kinds = operands.keys[first], operands.kinds[first]
    values = operands.values[first]
    is_float = kinds == FLOAT
    if is_float.any():
        size = np.where(is_float, values.view(np.float64), values.astype(np.float64))
        # 2**63 - 1 is rounded to 2**63, which is greater: the float comes behind.
        order = np.lexsort((values, is_float, size, own_keys))
    else:
        order = np.lexsort((values, own_keys))
    starts = np.zeros(keys + 1, np.int64)
    np.cumsum(np.bincount(own_keys, minlength=keys), out=starts[1:])
    place = np.empty(distinct, np.int64)
    place[order] = np.arange(distinct) - starts[own_keys[order]]
    return place[numbers], starts, kinds[order], values[order]


def _make_tables(
    table: FilterTable,
    operands: _Operands,
    starts: Int64,
    kinds: Bytes,
    values: Int64,
    accepts: Bytes,
    strings: list[bytes],
    key_of: Int32,
) -> Ranks:
    counts = np.diff(starts)
    modes = np.where((accepts == NUMBERS) | (accepts == STRINGS), SEARCHED, FIXED).astype(np.uint8)
    modes[_without_order(table, operands, len(modes)) & (counts >= _HASHED_MIN)] = HASHED
    bases, sizes = _dense(starts, kinds, values, accepts)
    modes[sizes > 0] = DENSE
    is_hashed = modes == HASHED
    sizes[is_hashed] = [_power_above(2 * count) for count in counts[is_hashed].tolist()]
    table_starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=table_starts[1:])
    tables = np.full(table_starts[-1], -1, np.int32)
    string_starts, string_bytes = packed(strings)
    are_strings = (accepts == STRINGS).astype(np.uint8)
    fill_tables(
        modes,
        starts,
        kinds,
        values,
        string_starts,
        string_bytes,
        are_strings,
        table_starts,
        bases,
        tables,
    )
    return Ranks(
        key_of,
        modes,
        starts,
        kinds,
        values,
        string_starts,
        string_bytes,
        *_heads(strings, starts, values, accepts),
        table_starts,
        bases,
        tables,
    )


def _without_order(table: FilterTable, operands: _Operands, keys: int) -> NDArray[np.bool_]:
    """The keys that are asked for equality alone, and so need no order."""
    has_order = np.zeros(keys, np.bool_)
    compared = operands.compared
    own = operands.keys[: len(compared)]
    has_order[own[table.operators[compared] > NE]] = True
    has_order[operands.keys[len(compared) + len(operands.items) :]] = True
    return ~has_order


def _dense(starts: Int64, kinds: Bytes, values: Int64, accepts: Bytes) -> tuple[Int64, Int64]:
    """The least constant of each key, and how far it is to the greatest, if a table pays."""
    counts = np.diff(starts)
    bases, sizes = np.zeros(len(counts), np.int64), np.zeros(len(counts), np.int64)
    are_floats = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(
        np.bincount(_owners(starts)[kinds == FLOAT], minlength=len(counts)), out=are_floats[1:]
    )
    plain = (accepts == NUMBERS) & (counts > 0) & (np.diff(are_floats) == 0)
    keys = np.flatnonzero(plain)
    low, high = values[starts[keys]], values[starts[keys + 1] - 1]
    room = _DENSE_PER_CONSTANT * counts[keys]
    pays = high.astype(np.float64) - low.astype(np.float64) < room
    bases[keys[pays]] = low[pays]
    sizes[keys[pays]] = high[pays] - low[pays] + 1
    return bases, sizes


def _owners(starts: Int64) -> Int64:
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _heads(
    strings: list[bytes], starts: Int64, values: Int64, accepts: Bytes
) -> tuple[Int32, UInt64]:
    """``Ranks.string_skips`` and ``string_heads``."""
    skips = np.zeros(len(accepts), np.int32)
    heads = np.zeros(len(values) if strings else 0, np.uint64)
    for key in np.flatnonzero((accepts == STRINGS) & (np.diff(starts) > 0)).tolist():
        start, end = starts[key : key + 2].tolist()
        own = [strings[value] for value in values[start:end].tolist()]
        first, last = own[0], own[-1]
        differs = (
            place
            for place, (one, other) in enumerate(zip(first, last, strict=False))
            if one != other
        )
        skip = skips[key] = next(differs, min(len(first), len(last)))
        parts = [string[skip : skip + HEAD_BYTES + 1] for string in own]
        data = b"".join(b"\0" + part[:HEAD_BYTES].ljust(HEAD_BYTES, b"\0") for part in parts)
        sizes = np.fromiter(map(len, parts), np.uint64, len(parts))
        heads[start:end] = np.frombuffer(data, ">u8").astype(np.uint64) << SIZE_BITS | sizes
    return skips, heads


def _find_ranges(
    table: FilterTable, operands: _Operands, place: Int64, counts: Int64, of_keys: _Keys
) -> Ranges:
    operators, keys = table.operators, of_keys.of
    last = 2 * counts[keys]  # the rank of what is behind all constants
    low, high = np.zeros(len(keys), np.int64), last.copy()
    high[operators == EXISTS] = WORD
    at = np.zeros(len(keys), np.int64)
    compared, items, prefixes = operands.compared, operands.items, operands.prefixes
    at[compared] = 2 * place[: len(compared)] + 1
    is_boolean = (table.kinds == BOOLEAN) & (operators <= NE)
    at[is_boolean] = 2 * table.values[is_boolean] + 1
    low = np.where((operators == EQ) | (operators == GE), at, low)
    low = np.where(operators == GT, at + 1, low)
    high = np.where((operators == EQ) | (operators == LE), at, high)
    high = np.where(operators == LT, at - 1, high)
    behind = place[len(compared) + len(items) :].reshape(2, -1)
    is_any = (
        table.string_starts[table.values[prefixes] + 1]
        == table.string_starts[table.values[prefixes]]
    )
    low[prefixes] = np.where(is_any, 0, 2 * behind[0] + 1)
    high[prefixes] = np.where(is_any, last[prefixes], 2 * behind[1])
    width = high - low
    is_hole = operators == NE
    low[is_hole], width[is_hole] = at[is_hole] + 1, HOLE_WIDTH
    has_test = np.isin(operators, [SUFFIX, CONTAINS]).astype(np.uint8)
    values = table.values.copy()
    list_starts, list_ranks = _ranked_lists(table, items, place[len(compared) :], values)
    is_list = np.flatnonzero(operators == IN)
    numbers = values[is_list]
    sizes = list_starts[numbers + 1] - list_starts[numbers]
    low[is_list] = list_ranks[list_starts[numbers]]
    width[is_list] = list_ranks[list_starts[numbers + 1] - 1] - low[is_list]
    has_test[is_list] = sizes > 1
    return Ranges(
        keys,
        low.astype(np.uint32).view(np.int32),
        width.astype(np.uint32).view(np.int32),
        has_test,
        values,
        list_starts,
        list_ranks,
        of_keys.names,
        of_keys.accepts,
    )


def _ranked_lists(
    table: FilterTable, items: Int64, places: Int64, values: Int64
) -> tuple[Int64, Int32]:
    """The distinct lists, as ranks; the constraints' ``values`` become their numbers."""
    found: dict[tuple[int, ...], int] = {}
    of_items = iter((2 * places[: len(items)] + 1).tolist())
    for constraint in np.flatnonzero(table.operators == IN).tolist():
        first, end = table.list_starts[table.values[constraint] :][:2].tolist()
        if table.kinds[constraint] == BOOLEAN:
            ranks = [2 * value + 1 for value in table.list_values[first:end].tolist()]
        else:
            ranks = [next(of_items) for _ in range(first, end)]
        values[constraint] = found.setdefault(tuple(sorted(set(ranks))), len(found))
    starts = np.cumsum([0, *map(len, found)], dtype=np.int64)
    return starts, np.array([rank for ranks in found for rank in ranks], np.int32)


def empty_slots(items: int) -> Int32:
    """An empty hash table for so many."""
    return np.full(_power_above(2 * items), -1, np.int32)


def _power_above(count: int) -> int:
    """The least power of two that is greater."""
    return 1 << max(count, 1).bit_length()
