"""Filters → ``SffProgram``, in bulk."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, distinct, freeze, starts_of
from tamis.core.kernel.table import slots_for
from tamis.events.model import (
    BOOLEAN,
    CONTAINS,
    EXISTS,
    FLOAT,
    GE,
    IN,
    INTEGER,
    PREFIX,
    STRING,
    SUFFIX,
    FilterTable,
    packed,
)
from tamis_papers.sff.kernels import count_postings, fill_postings, link_parts, number_distinct
from tamis_papers.sff.program import BOOLEANS, CLASSES, NUMBERS, PARTS, STRINGS, Index, SffProgram

_COMPARING = GE + 1
"""How many operators there are that have sections: the first ones."""

_SHIFT_MAX = 6
_EMPTY_MAX = 0.25
"""How many places may be empty, as a share of the filters."""

_CLASS_OF = np.zeros(4, np.int64)
_CLASS_OF[[INTEGER, FLOAT, STRING, BOOLEAN]] = [NUMBERS, NUMBERS, STRINGS, BOOLEANS]


class _Strings(NamedTuple):
    """Strings, each once, in order; and the number there of each string of the filter table."""

    starts: Int64
    bytes: Bytes
    numbers: Int64


class _Constants(NamedTuple):
    """What values are compared with; see ``Index``.

    Attributes:
        of_constraints: int64[c]; the constant of each constraint that compares.
        of_items: int64[]; the constant of each item of ``_Items``.
    """

    starts: Int64
    kinds: Bytes
    values: Int64
    of_constraints: Int64
    of_items: Int64


class _Items(NamedTuple):
    """The items of all constraints ``in``.

    Attributes:
        constraints: int64[]; the constraints.
        counts: int64[]; how many items each has.
        places: int64[]; which items of the filter table's lists those are.
    """

    constraints: Int64
    counts: Int64
    places: Int64


def compile_filters(table: FilterTable) -> SffProgram:
    """The index of all constraints.

    >>> from tamis.events.model import TableBuilder
    >>> from tamis.language.constraints import Constraint
    >>> builder = TableBuilder()
    >>> builder.add([[Constraint("temp", ">", 30), Constraint("wind", ">", 20)]])
    >>> builder.add([[Constraint("temp", ">", 30)], []])
    >>> program = compile_filters(builder.freeze())
    >>> program.constraints.constant_values, program.constraints.postings, program.always
    (array([30, 20]), array([0, 1, 1], dtype=int32), array([2], dtype=int32))
    """
    names = len(table.names)
    strings = _distinct_strings(table)
    items = _items_of_lists(table)
    constants = _distinct_constants(table, strings, items)
    nodes = np.zeros(len(table.values), np.int32)
    sections = _sections(table, constants, nodes)
    part_node = int(sections[3])
    parts = _parts(table, strings, part_node, nodes)
    exists_node = part_node + len(parts[1])
    exists = np.flatnonzero(table.operators == EXISTS)
    nodes[exists] = exists_node + table.constraint_names[exists]
    in_starts, in_nodes, node_count = _in_nodes(table, items, constants, exists_node + names, nodes)
    freeze(nodes)
    posting_counts, sizes = np.zeros(node_count, np.int64), np.zeros(table.filters, np.int32)
    count_postings(table.starts, nodes, np.full(node_count, -1, np.int32), posting_counts, sizes)
    posting_starts = starts_of(posting_counts)
    filters, block_sizes, shift = _places(table, sizes)
    postings = np.zeros(posting_starts[-1], np.int32)
    next_posting, seen_in = posting_starts[:-1].copy(), np.full(node_count, -1, np.int32)
    freeze(filters)
    fill_postings(table.starts, nodes, filters, seen_in, next_posting, postings)
    index = Index(
        *constants[:3],
        *sections[:3],
        in_starts,
        in_nodes,
        *parts,
        strings.starts,
        strings.bytes,
        posting_starts,
        postings,
        block_sizes,
    )
    places, always = np.maximum(filters, 0), np.flatnonzero(sizes == 0).astype(np.int32)
    freeze(*index, places, always)
    size_max = int(sizes.max(initial=1))
    return SffProgram(index, places, always, shift, size_max, part_node, exists_node)


def _distinct_strings(table: FilterTable) -> _Strings:
    count = len(table.string_starts) - 1
    data, bounds = table.string_bytes.tobytes(), table.string_starts.tolist()
    texts = [data[bounds[number] : bounds[number + 1]] for number in range(count)]
    distinct = sorted(set(texts))
    numbers = {text: number for number, text in enumerate(distinct)}
    starts, bytes = packed(distinct)
    freeze(starts, bytes)
    return _Strings(starts, bytes, np.array([numbers[text] for text in texts], np.int64))


def _items_of_lists(table: FilterTable) -> _Items:
    constraints = np.flatnonzero(table.operators == IN)
    lists = table.values[constraints]
    firsts = table.list_starts[lists]
    counts = table.list_starts[lists + 1] - firsts
    before = starts_of(counts)
    places = np.arange(before[-1]) + np.repeat(firsts - before[:-1], counts)
    return _Items(constraints, counts, places)


def _values(strings: _Strings, kinds: Bytes, values: Int64) -> Int64:
    """Values, of which strings have the numbers that they have here."""
    if not len(strings.numbers):
        return values
    is_string = kinds == STRING
    return np.where(is_string, strings.numbers[np.where(is_string, values, 0)], values)


def _distinct(groups: Int64, kinds: Bytes, values: Int64) -> tuple[Int32, Int32]:
    """The place of the first of each different triple, and which of these each one is."""
    count = len(groups)
    firsts, numbers = np.zeros(count, np.int32), np.zeros(count, np.int32)
    freeze(groups, kinds, values)
    different = number_distinct(groups, kinds, values, slots_for(count), firsts, numbers)
    return firsts[:different], numbers


def _distinct_constants(table: FilterTable, strings: _Strings, items: _Items) -> _Constants:
    compares = np.flatnonzero(table.operators < _COMPARING)
    names = table.constraint_names.astype(np.int64)
    in_names = np.repeat(names[items.constraints], items.counts)
    kinds = np.concatenate([table.kinds[compares], table.list_kinds[items.places]])
    values = np.concatenate([table.values[compares], table.list_values[items.places]])
    values = _values(strings, kinds, values)
    domains = CLASSES * np.concatenate([names[compares], in_names]) + _CLASS_OF[kinds]
    firsts, numbers = _distinct(domains, kinds, values)
    domains, kinds, values = domains[firsts], kinds[firsts], values[firsts]
    # Rounded to doubles, numbers are in order, but for integers among themselves. No integer
    # is equal to a FLOAT; those that are rounded to one, to 2**63, are less.
    rounded = np.where(kinds == FLOAT, values.view(np.float64), 0.0)
    rounded[kinds == INTEGER] = values[kinds == INTEGER]
    order = np.lexsort((values, kinds, rounded, domains))
    place_of = np.empty(len(order), np.int64)
    place_of[order] = np.arange(len(order))
    of_all = place_of[numbers]
    starts = starts_of(np.bincount(domains, minlength=CLASSES * len(table.names)))
    of_constraints = np.zeros(len(table.values), np.int64)
    of_constraints[compares] = of_all[: len(compares)]
    return _Constants(starts, kinds[order], values[order], of_constraints, of_all[len(compares) :])


def _sections(
    table: FilterTable, constants: _Constants, nodes: Int32
) -> tuple[Int64, Bytes, Int64, int]:
    """Where sections begin, their operators and first nodes; and how many nodes they have.

    Args:
        nodes: gets those of constraints that compare.
    """
    compares = np.flatnonzero(table.operators < _COMPARING)
    domains = CLASSES * table.constraint_names[compares].astype(np.int64)
    domains += _CLASS_OF[table.kinds[compares]]
    keys = _COMPARING * domains + table.operators[compares]
    is_used = np.zeros(_COMPARING * CLASSES * len(table.names), np.bool_)
    is_used[keys] = True
    used = np.flatnonzero(is_used)
    own_domains = used // _COMPARING
    first_nodes = starts_of(np.diff(constants.starts)[own_domains])
    within = constants.of_constraints[compares] - constants.starts[domains]
    nodes[compares] = first_nodes[np.searchsorted(used, keys)] + within
    starts = starts_of(np.bincount(own_domains, minlength=CLASSES * len(table.names)))
    operators = (used % _COMPARING).astype(np.uint8)
    return starts, operators, first_nodes[:-1].copy(), int(first_nodes[-1])


def _parts(
    table: FilterTable, strings: _Strings, first_node: int, nodes: Int32
) -> tuple[Int64, Int32, Int32]:
    """Where parts begin, their strings, and which shorter ones are parts of them.

    Args:
        nodes: gets those of the constraints, from the first one on.
    """
    is_part = (table.operators >= PREFIX) & (table.operators <= CONTAINS)
    constraints = np.flatnonzero(is_part)
    groups = PARTS * table.constraint_names[constraints].astype(np.int64)
    groups += table.operators[constraints] - np.uint8(PREFIX)
    kinds = table.kinds[constraints]
    values = _values(strings, kinds, table.values[constraints])
    firsts, numbers = _distinct(groups, kinds, values)
    is_suffix = table.operators[constraints[firsts]] == SUFFIX
    groups, values = groups[firsts], values[firsts]
    ranks = values.copy()
    ranks[is_suffix] = _ranks_from_the_end(strings, values[is_suffix])
    order = np.lexsort((ranks, groups))
    place_of = np.empty(len(order), np.int64)
    place_of[order] = np.arange(len(order))
    nodes[constraints] = first_node + place_of[numbers]
    starts = starts_of(np.bincount(groups, minlength=PARTS * len(table.names)))
    own = values[order].astype(np.int32)
    shorter = np.full(len(own), -1, np.int32)
    freeze(starts, own)
    link_parts(starts, own, strings.starts, strings.bytes, np.zeros(len(own), np.int32), shorter)
    return starts, own, shorter


def _ranks_from_the_end(strings: _Strings, numbers: Int64) -> Int64:
    """Where strings come when they are read from the end."""
    used, of_used = np.unique(numbers, return_inverse=True)
    texts = [
        strings.bytes[strings.starts[number] : strings.starts[number + 1]].tobytes()[::-1]
        for number in used.tolist()
    ]
    ranks = np.zeros(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=texts.__getitem__)] = np.arange(len(texts))
    return ranks[of_used]


def _in_nodes(
    table: FilterTable, items: _Items, constants: _Constants, first_node: int, nodes: Int32
) -> tuple[Int64, Int32, int]:
    """Which nodes each constant is an item of; and how many nodes there are of all operators.

    Args:
        nodes: gets those of the constraints, from the first one on.
    """
    bounds = starts_of(items.counts).tolist()
    known: dict[tuple[int, bytes], int] = {}
    of_nodes = [np.zeros(0, np.int64)]
    names = table.constraint_names[items.constraints].tolist()
    for number, constraint in enumerate(items.constraints.tolist()):
        own = distinct(constants.of_items[bounds[number] : bounds[number + 1]])
        key = names[number], own.tobytes()
        if key not in known:
            known[key] = first_node + len(known)
            of_nodes.append(own)
        nodes[constraint] = known[key]
    of_all = np.concatenate(of_nodes)
    own_nodes = np.repeat(
        np.arange(first_node, first_node + len(known)), [len(own) for own in of_nodes[1:]]
    )
    starts = starts_of(np.bincount(of_all, minlength=len(constants.values)))
    in_nodes = own_nodes[np.argsort(of_all, kind="stable")].astype(np.int32)
    return starts, in_nodes, first_node + len(known)


def _places(table: FilterTable, sizes: Int32) -> tuple[Int32, Int32, int]:
    """Filters by place, -1 where there is none; the size of those of each block; and the shift."""
    filters = np.flatnonzero(sizes)
    interfaces = table.interfaces[table.subscriptions[filters]]
    order = np.lexsort((sizes[filters], interfaces))
    filters, interfaces = filters[order], interfaces[order]
    own_sizes = sizes[filters]
    is_first = np.ones(len(filters), np.bool_)
    is_first[1:] = (np.diff(interfaces) != 0) | (np.diff(own_sizes) != 0)
    firsts = np.flatnonzero(is_first)
    counts = np.diff(np.append(firsts, len(filters)))
    for shift in range(_SHIFT_MAX, -1, -1):
        blocks = (counts + (1 << shift) - 1) >> shift
        if (blocks.sum() << shift) - len(filters) <= _EMPTY_MAX * len(filters):
            break
    starts = starts_of(blocks) << shift
    places = np.arange(len(filters)) + np.repeat(starts[:-1] - firsts, counts)
    result = np.full(starts[-1], -1, np.int32)
    result[places] = filters
    return result, np.repeat(own_sizes[firsts], blocks), shift
