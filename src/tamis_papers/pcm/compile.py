"""``FilterTable`` → ``PcmProgram``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, freeze
from tamis.core.errors import UsageError
from tamis.events.model import FilterTable
from tamis_papers.pcm.kernels.build import (
    enter_tables,
    fill_rows,
    find_rows,
    number_tables,
    order_by_name,
    order_filters,
)
from tamis_papers.pcm.program import PADDING, PcmOptions, PcmProgram, Tables, UInt64

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_BLOOM_SHIFT = np.uint64(64 - 6)  # bits 0 to 63


class _Rows(NamedTuple):
    """That part of ``Tables``."""

    row_first: Int32
    rows: Int64
    constr_op: Bytes
    constr_val: Int64
    constr_filter_id: Int32
    constr_bf: UInt64


def compile_filters(table: FilterTable, options: PcmOptions | None = None) -> PcmProgram:
    """The tables of filters.

    Raises:
        UsageError: NameVectors cannot have so many bits.

    >>> from tamis.events.model import TableBuilder
    >>> from tamis.language.constraints import Constraint
    >>> builder = TableBuilder()
    >>> builder.add([[Constraint("area", "=", "area1"), Constraint("temp", ">", 30)]])
    >>> builder.add([[Constraint("temp", ">", 30)]])
    >>> tables = compile_filters(builder.freeze()).tables
    >>> tables.total, tables.sizes
    (2, array([2, 1], dtype=int32))
    """
    options = options or PcmOptions()
    if not 1 <= options.name_vector_bits <= 64:
        raise UsageError(f"NameVectors have 1 to 64 bits, not {options.name_vector_bits}")
    vector_bits, bloom_bits = _bits(table, options)
    filters = table.filters
    table_of, blooms = np.empty(filters, np.int32), np.empty(filters, np.uint64)
    vectors = np.zeros(filters + PADDING, np.uint64)
    tables = number_tables(
        table.starts,
        table.constraint_names,
        vector_bits,
        bloom_bits,
        _slots(filters),
        vectors,
        table_of,
        blooms,
    )
    in_tables = int(np.count_nonzero(table_of >= 0))
    constraint_ends = np.zeros(tables, np.int64)
    new_number = np.empty(filters, np.int32)
    numbers, sizes = np.empty(in_tables, np.int32), np.empty(in_tables, np.int32)
    first_filters = np.zeros(tables, np.int64)
    order_filters(
        table.starts, table_of, first_filters, constraint_ends, new_number, numbers, sizes
    )
    rows = _rows(table, table_of, new_number, blooms, constraint_ends)
    slots = _slots(tables)
    enter_tables(vectors, rows.row_first, slots)
    program = PcmProgram(
        tables=Tables(
            vector_bits,
            bloom_bits,
            slots,
            vectors[: tables + PADDING].copy(),
            *rows,
            sizes,
            table.list_starts,
            table.list_kinds,
            table.list_values,
            table.string_starts,
            table.string_bytes,
        ),
        numbers=numbers,
        empty=np.flatnonzero(table_of < 0).astype(np.int32),
        size_max=int(sizes.max(initial=0)),
        options=options,
    )
    freeze(*program.tables, program.numbers, program.empty)
    return program


def _bits(table: FilterTable, options: PcmOptions) -> tuple[UInt64, UInt64]:
    """The bit of each name in NameVectors, and in Bloom filters.

    Names take turns, the most frequent first, so that no two of the frequent ones share a bit while
    another is free. In Bloom filters, those that share one in NameVectors have different bits.
    """
    uses = np.bincount(table.constraint_names, minlength=len(table.names))
    rank = np.empty(len(table.names), np.uint64)
    rank[np.argsort(-uses, kind="stable")] = np.arange(len(table.names), dtype=np.uint64)
    one = np.uint64(1)
    turn = rank % np.uint64(options.name_vector_bits)
    if not options.filter_selection:
        turn = np.zeros_like(rank)
    return one << turn, one << ((rank * _GOLDEN) >> _BLOOM_SHIFT)


def _slots(items: int) -> UInt64:
    """An empty hash table for so many items, at most half full."""
    return np.zeros(2 << max(2 * items - 1, 1).bit_length(), np.uint64)


def _rows(
    table: FilterTable, table_of: Int32, new_number: Int32, blooms: UInt64, next_constraint: Int64
) -> _Rows:
    """The arrays of rows, and those of constraints.

    Args:
        next_constraint: where the constraints of each table begin; gets where they end.
    """
    count = len(table.values)
    ordered, filters = np.empty(count, np.int32), np.empty(count, np.int32)
    next_place = np.zeros(len(table.names) + 1, np.int64)
    order_by_name(table.starts, table.constraint_names, next_place, ordered, filters)
    constr_name = np.empty(count, np.int32)
    constr_op = np.empty(count, np.uint8)
    constr_val = np.empty(count, np.int64)
    constr_filter_id = np.empty(count, np.int32)
    constr_bf = np.zeros(count + PADDING, np.uint64)
    fill_rows(
        table.constraint_names,
        table.operators,
        table.kinds,
        table.values,
        ordered,
        filters,
        table_of,
        new_number,
        blooms,
        next_constraint,
        constr_name,
        constr_op,
        constr_val,
        constr_filter_id,
        constr_bf,
    )
    row_first = np.empty(len(next_constraint) + 1, np.int32)
    rows = np.empty(count + 1, np.int64)
    used = find_rows(constr_name, next_constraint, row_first, rows)
    rows = rows[: used + 1].copy()
    return _Rows(row_first, rows, constr_op, constr_val, constr_filter_id, constr_bf)
