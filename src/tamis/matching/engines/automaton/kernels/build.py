"""What queries are compiled to: rows, formulas and strings, each stored once.

The rows are nodes of the trie, facts, comparisons of values, and rules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.core.kernel.table import GOLDEN, free_slot, slot_finder
from tamis.core.kernel.text import hash_bytes, same_bytes
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.compile import layout as at
from tamis.matching.engines.automaton.kernels.facts import MIXER, are_equal, joined

# -- rows ------------------------------------------------------------------------------------------


@inlined
def hash_row(keys: int, row: Any) -> np.uint64:
    """The hash of a row's first numbers."""
    hash = joined(MIXER, row[0])
    if keys > 1:
        hash = joined(hash, row[1])
    if keys > 2:
        hash = joined(hash, row[2])
    if keys > 3:
        hash = joined(joined(hash, row[3]), row[4])
    return hash ^ hash >> U(32)


@inlined
def is_row(known: Any, number: int, row: Any) -> bool:
    """Whether a known row, one of ``(rows, width, keys)``, has these first numbers."""
    rows, width, keys = known
    index = number * width
    return (
        rows[index] == row[0]
        and (keys < 2 or rows[index + 1] == row[1])
        and (keys < 3 or rows[index + 2] == row[2])
        and (keys < 4 or (rows[index + 3] == row[3] and rows[index + 4] == row[4]))
    )


find_row = slot_finder(is_row)


@inlined
def add_row(state: Int64, table: Any, row: Any) -> int:
    """The number of a row, which is added where it is new; there must be room.

    Args:
        table: a ``RowTable``; its ``keys`` of the five numbers are looked at.
    """
    rows, slots, keys = int32s(state, table.rows), int32s(state, table.slots), table.keys
    slot = find_row(slots, hash_row(keys, row), (rows, table.width, keys), row)
    if slots[slot] != 0:
        return np.int64(slots[slot]) - 1
    number = state[table.used]
    state[table.used] += 1
    slots[slot] = number + 1
    index = number * table.width
    rows[index] = row[0]
    if keys > 1:
        rows[index + 1] = row[1]
    if keys > 2:
        rows[index + 2] = row[2]
    if keys > 3:
        rows[index + 3] = row[3]
        rows[index + 4] = row[4]
    return number


@kernel
def rehash_rows(rows: Int32, width: int, keys: int, count: int, slots: Int32) -> None:
    """Enter all rows into empty slots."""
    for number in range(count):
        i = number * width
        b = np.int64(rows[i + 1]) if keys > 1 else 0
        c = np.int64(rows[i + 2]) if keys > 2 else 0
        d = np.int64(rows[i + 3]) if keys > 3 else 0
        e = np.int64(rows[i + 4]) if keys > 3 else 0
        hash = hash_row(keys, (np.int64(rows[i]), b, c, d, e))
        slots[free_slot(slots, hash)] = number + 1


# -- programs of formulas --------------------------------------------------------------------------


@inlined
def hash_code(kind: int, code: Int32, start: int, end: int) -> np.uint64:
    """The hash of a formula."""
    hash = joined(MIXER, kind)
    for i in range(start, end):
        hash = joined(hash, code[i])
    return hash ^ hash >> U(32)


@inlined
def is_formula(known: Any, number: int, searched: Any) -> bool:
    """Whether a known formula is of a kind, and of a code of some length."""
    kinds, starts, codes = known
    kind, code, length = searched
    start = starts[number]
    return (
        kinds[number] == kind
        and starts[number + 1] - start == length
        and are_equal(codes, start, code, length)
    )


find_formula = slot_finder(is_formula)


@called
def add_formula(state: Int64, kind: int, code: Int32, length: int, depth: int) -> int:
    """The number of a formula, which is added where it is new; there must be room."""
    slots, starts = int32s(state, at.TABLES.formula_slots), int64s(state, at.TABLES.formula_starts)
    kinds, known = uint8s(state, at.TABLES.formula_kinds), int32s(state, at.TABLES.formula_code)
    hash = hash_code(kind, code, 0, length)
    slot = find_formula(slots, hash, (kinds, starts, known), (kind, code, length))
    if slots[slot] != 0:
        return np.int64(slots[slot]) - 1
    number, start = state[at.FORMULAS], state[at.CODE]
    slots[slot] = number + 1
    kinds[number] = kind
    uint8s(state, at.TABLES.formula_depths)[number] = depth
    for i in range(length):
        known[start + i] = code[i]
    starts[number + 1] = start + length
    state[at.FORMULAS] += 1
    state[at.CODE] += length
    return number


@called
def fact_holds(state: Int64, fact: int) -> int:
    """The formula of: a fact holds."""
    work = int32s(state, at.TABLES.work)
    work[0] = fact
    return add_formula(state, pr.CONJUNCTION, work, 1, 1)


@kernel
def rehash_formulas(state: Int64) -> None:
    """Enter all formulas into their slots, which are empty."""
    slots, starts = int32s(state, at.TABLES.formula_slots), int64s(state, at.TABLES.formula_starts)
    kinds, known = uint8s(state, at.TABLES.formula_kinds), int32s(state, at.TABLES.formula_code)
    for number in range(state[at.FORMULAS]):
        hash = hash_code(kinds[number], known, starts[number], starts[number + 1])
        slots[free_slot(slots, hash)] = number + 1


# -- strings ---------------------------------------------------------------------------------------


@inlined
def is_string(known: Any, number: int, searched: Any) -> bool:
    """Whether a known string is a part of a text."""
    starts, data = known
    text, first, last = searched
    return same_bytes(data, starts[number], starts[number + 1], text, first, last)


find_string = slot_finder(is_string)


@called
def add_string(state: Int64, text: Bytes, first: int, last: int) -> int:
    """The number of a string, which is added where it is new; there must be room."""
    slots, starts = int32s(state, at.TABLES.string_slots), int64s(state, at.TABLES.string_starts)
    known = uint8s(state, at.TABLES.string_bytes)
    hash = hash_bytes(text, first, last, GOLDEN)
    slot = find_string(slots, hash, (starts, known), (text, first, last))
    if slots[slot] != 0:
        return np.int64(slots[slot]) - 1
    number, start = state[at.STRINGS], state[at.BYTES]
    slots[slot] = number + 1
    for i in range(last - first):
        known[start + i] = text[first + i]
    starts[number + 1] = start + last - first
    state[at.STRINGS] += 1
    state[at.BYTES] += last - first
    return number


@kernel
def add_strings(state: Int64, starts: Int64, text: Bytes, numbers: Int32) -> None:
    """The numbers of many strings; there must be room for all."""
    for i in range(len(numbers)):
        numbers[i] = add_string(state, text, starts[i], starts[i + 1])


@kernel
def rehash_strings(state: Int64) -> None:
    """Enter all strings into their slots, which are empty."""
    slots, starts = int32s(state, at.TABLES.string_slots), int64s(state, at.TABLES.string_starts)
    known = uint8s(state, at.TABLES.string_bytes)
    for number in range(state[at.STRINGS]):
        hash = hash_bytes(known, starts[number], starts[number + 1], GOLDEN)
        slots[free_slot(slots, hash)] = number + 1


@kernel
def put_string(state: Int64, text: Bytes) -> int:
    """See ``add_string``."""
    return add_string(state, text, 0, len(text))


@inlined
def test_of(state: Int64, node: int) -> int:
    """The number of a node's test."""
    return np.int64(int32s(state, at.TABLES.nodes)[node * at.NODE_ROW + at.TEST])


@called
def node_behind(state: Int64, node: int, is_below: int, test: int) -> int:
    """The node behind a step from another one, to children or (``is_below``) descendants."""
    return add_row(state, at.NODE_TABLE, (node, is_below, test, 0, 0))


@called
def fact_of(state: Int64, kind: int, test: int, formula: int) -> int:
    """The number of a fact."""
    return add_row(state, at.FACT_TABLE, (kind, test, formula, 0, 0))


@called
def rule(state: Int64, node: int, formula: int, action: int, target: int, source: int) -> None:
    """What follows where a node is reached and a formula holds there."""
    add_row(state, at.RULE_TABLE, (node, formula, action, target, source))


@called
def derived(state: Int64, node: int, is_below: int, formula: int) -> int:
    """The formula, around a node, of: it is reached and a formula holds there."""
    if formula == at.FALSE:
        return at.FALSE
    kind = pr.OF_DESCENDANT if is_below else pr.OF_CHILD
    fact = fact_of(state, kind, test_of(state, node), formula)
    rule(state, node, formula, pr.DERIVES, fact, -1)
    return fact_holds(state, fact)


@called
def accept_if(state: Int64, node: int, formula: int, query: int) -> None:
    """A query is true where a node is reached and a formula holds there."""
    if formula == at.TRUE:
        place = state[at.ACCEPTS] * at.ACCEPT_ROW
        accepts = int32s(state, at.TABLES.accepts)
        accepts[place], accepts[place + 1] = node, query
        state[at.ACCEPTS] += 1
    elif formula != at.FALSE:
        rule(state, node, formula, pr.ACCEPTS, query, -1)


@called
def value_is(state: Int64, node: int, function: int, operator: int, literal: int) -> int:
    """The formula of: the string value of what a node stands for is as asked.

    Args:
        function: of the value: bits of NORMALIZED and LENGTH, or 0.
        operator: a place in OPERATORS.
        literal: the number of a string, or minus one minus that of a number.
    """
    test = test_of(state, node)
    group = fact_of(state, pr.OF_GROUP, test, -2 - function)
    rule(state, node, at.TRUE, pr.DERIVES, group, -1)
    known = state[at.VALUES]
    row = add_row(state, at.VALUE_TABLE, (group, operator, literal, 0, 0))
    values = int32s(state, at.TABLES.values)
    if row == known:
        values[row * at.VALUE_ROW + at.VALUE_FACT] = fact_of(state, pr.OF_VALUE, test, -2 - row)
    return fact_holds(state, np.int64(values[row * at.VALUE_ROW + at.VALUE_FACT]))


# -- counting --------------------------------------------------------------------------------------


@inlined
def new_counter(state: Int64, limit: int) -> int:
    """The number of a new counter."""
    number = state[at.LIMITS]
    int32s(state, at.TABLES.limits)[number] = limit
    state[at.LIMITS] += 1
    return number


@called
def stage(state: Int64, node: int, formula: int) -> int:
    """The fact that a child gets to a stage of a chain: a formula holds there."""
    fact = fact_of(state, pr.OF_STAGE, test_of(state, node), formula)
    rule(state, node, formula, pr.DERIVES, fact, -1)
    return fact


@called
def chain_of(state: Int64, first: int) -> int:
    """The chain of one stage, which the first child passes that has a fact.

    Args:
        first: the fact; or, below 0, what names a chain that the builder knows the stages of.
    """
    known = state[at.CHAINS]
    chain = add_row(state, at.CHAIN_TABLE, (first, 0, 0, 0, 0))
    if chain == known:
        counter = new_counter(state, 1) if first >= 0 else -1
        int32s(state, at.TABLES.chains)[chain * at.CHAIN_ROW + at.CHAIN_COUNTER] = counter
    return chain


@called
def passed(state: Int64, node: int, chain: int, formula: int) -> int:
    """The formula, around a node, of: a child passed a chain, and a formula holds there."""
    end = stage(state, node, formula)
    known = state[at.LASTS]
    row = add_row(state, at.LAST_TABLE, (end, chain, 0, 0, 0))
    lasts = int32s(state, at.TABLES.lasts)
    if row == known:
        lasts[row * at.LAST_ROW + at.LAST_FACT] = fact_of(state, pr.OF_CHILD, -1, -2 - row)
    return fact_holds(state, np.int64(lasts[row * at.LAST_ROW + at.LAST_FACT]))


# -- for Python ------------------------------------------------------------------------------------


@kernel
def add_node(state: Int64, node: int, is_below: int, test: int) -> int:
    """See ``node_behind``."""
    return node_behind(state, node, is_below, test)


@kernel
def add_fact(state: Int64, kind: int, test: int, formula: int) -> int:
    """See ``fact_of``."""
    return fact_of(state, kind, test, formula)


@kernel
def add_rule(state: Int64, node: int, formula: int, action: int, target: int, source: int) -> None:
    """See ``rule``."""
    rule(state, node, formula, action, target, source)


@kernel
def add_accept(state: Int64, node: int, formula: int, query: int) -> None:
    """See ``accept_if``."""
    accept_if(state, node, formula, query)


@kernel
def add_derived(state: Int64, node: int, is_below: int, formula: int) -> int:
    """See ``derived``."""
    return derived(state, node, is_below, formula)


@kernel
def add_holds(state: Int64, fact: int) -> int:
    """See ``fact_holds``."""
    return fact_holds(state, fact)


@kernel
def add_value(state: Int64, node: int, function: int, operator: int, literal: int) -> int:
    """See ``value_is``."""
    return value_is(state, node, function, operator, literal)


@kernel
def add_number(state: Int64, low: int, high: int) -> int:
    """The number of a number, of which the two halves are given."""
    return add_row(state, at.NUMBER_TABLE, (low, high, 0, 0, 0))


@kernel
def add_counter(state: Int64, limit: int) -> int:
    """See ``new_counter``."""
    return new_counter(state, limit)


@kernel
def add_stage(state: Int64, node: int, formula: int) -> int:
    """See ``stage``."""
    return stage(state, node, formula)


@kernel
def add_chain(state: Int64, first: int) -> int:
    """See ``chain_of``."""
    return chain_of(state, first)


@kernel
def add_passed(state: Int64, node: int, chain: int, formula: int) -> int:
    """See ``passed``."""
    return passed(state, node, chain, formula)
