"""Filters distributed to tables, and constraints to rows: by counting, never by comparing."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, kernel
from tamis.core.kernel.table import find_pair
from tamis_papers.pcm.program import KIND_SHIFT, UInt64


@kernel
def number_tables(
    starts: Int64,
    names: Int32,
    vector_bits: UInt64,
    bloom_bits: UInt64,
    slots: UInt64,
    vectors: UInt64,
    table_of: Int32,
    blooms: UInt64,
) -> int:
    """The number of NameVectors; all arrays behind ``bloom_bits`` are written.

    Args:
        starts, names: of filters' constraints.
        slots: an empty hash table, with room for a NameVector of each filter.
        vectors: gets the NameVectors.
        table_of: gets the table of each filter, -1 for those without constraints.
        blooms: gets the Bloom filter of each.
    """
    tables = 0
    for filter in range(len(starts) - 1):
        vector, bloom = U(0), U(0)
        for place in range(starts[filter], starts[filter + 1]):
            vector |= vector_bits[names[place]]
            bloom |= bloom_bits[names[place]]
        blooms[filter] = bloom
        table_of[filter] = -1
        if vector != U(0):
            slot = find_pair(slots, vector)
            if slots[slot] == U(0):
                slots[slot] = vector
                slots[slot + 1] = U(tables)
                vectors[tables] = vector
                tables += 1
            table_of[filter] = slots[slot + 1]
    return tables


@kernel
def enter_tables(vectors: UInt64, row_first: Int32, slots: UInt64) -> None:
    """Put the NameVectors of all tables, and their rows, into an empty hash table."""
    for table in range(len(row_first) - 1):
        slot = find_pair(slots, vectors[table])
        slots[slot] = vectors[table]
        slots[slot + 1] = U(row_first[table]) << U(32) | U(row_first[table + 1])


@kernel
def order_filters(
    starts: Int64,
    table_of: Int32,
    next_filter: Int64,
    next_constraint: Int64,
    new_number: Int32,
    numbers: Int32,
    sizes: Int32,
) -> None:
    """Number filters anew, by table.

    Args:
        next_filter: int64[tables], zeros.
        next_constraint: int64[tables]; gets the place of the first constraint of each.
        new_number: gets the new number of each filter, -1 for those without constraints.
        numbers, sizes: get the old number and the size of each, by new numbers.
    """
    for filter in range(len(table_of)):
        table = table_of[filter]
        if table >= 0:
            next_filter[table] += 1
            next_constraint[table] += starts[filter + 1] - starts[filter]
    filters = constraints = 0
    for table in range(len(next_filter)):
        filters, next_filter[table] = filters + next_filter[table], filters
        constraints, next_constraint[table] = constraints + next_constraint[table], constraints
    for filter in range(len(table_of)):
        table = table_of[filter]
        new_number[filter] = -1
        if table >= 0:
            number = next_filter[table]
            next_filter[table] += 1
            new_number[filter] = number
            numbers[number] = filter
            sizes[number] = starts[filter + 1] - starts[filter]


@kernel
def order_by_name(
    starts: Int64, names: Int32, next_place: Int64, constraints: Int32, filters: Int32
) -> None:
    """Order constraints by name.

    Args:
        next_place: int64[names + 1], zeros.
        constraints, filters: get the constraints and their filters, in that order.
    """
    for place in range(len(names)):
        next_place[names[place] + 1] += 1
    for name in range(1, len(next_place)):
        next_place[name] += next_place[name - 1]
    for filter in range(len(starts) - 1):
        for constraint in range(starts[filter], starts[filter + 1]):
            place = next_place[names[constraint]]
            next_place[names[constraint]] += 1
            constraints[place] = constraint
            filters[place] = filter


@kernel
def fill_rows(
    names: Int32,
    operators: Bytes,
    kinds: Bytes,
    values: Int64,
    constraints: Int32,
    filters: Int32,
    table_of: Int32,
    new_number: Int32,
    blooms: UInt64,
    next_constraint: Int64,
    constr_name: Int32,
    constr_op: Bytes,
    constr_val: Int64,
    constr_filter_id: Int32,
    constr_bf: UInt64,
) -> None:
    """Put constraints, ordered by name, behind each other in their tables."""
    for at in range(len(constraints)):
        constraint, filter = constraints[at], filters[at]
        table = table_of[filter]
        place = next_constraint[table]
        next_constraint[table] += 1
        constr_name[place] = names[constraint]
        constr_op[place] = operators[constraint] | (kinds[constraint] << KIND_SHIFT)
        constr_val[place] = values[constraint]
        constr_filter_id[place] = new_number[filter]
        constr_bf[place] = blooms[filter]


@kernel
def find_rows(constr_name: Int32, constraint_ends: Int64, row_first: Int32, rows: Int64) -> int:
    """The number of rows; each is what follows each other in a table and is of one name.

    Args:
        constraint_ends: int64[tables]; where the constraints of each end.
        row_first, rows: get the rows, and have room for one of each constraint, and one more.
    """
    count = place = 0
    for table in range(len(constraint_ends)):
        row_first[table] = count
        start = place
        while place < constraint_ends[table]:
            if place == start or constr_name[place] != constr_name[place - 1]:
                rows[count] = np.int64(constr_name[place]) << 32 | place
                count += 1
            place += 1
    row_first[len(constraint_ends)] = count
    rows[count] = place
    return count
