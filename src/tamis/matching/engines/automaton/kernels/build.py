"""What queries are compiled to: rows, formulas and strings, each stored once, in tables that grow.

The rows are nodes of the trie, facts, comparisons of values, and rules. ``TABLES`` says where
kernels find the tables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, lay_out, uint8s
from tamis.core.kernel.table import GOLDEN, free_slot, slot_finder
from tamis.core.kernel.text import hash_bytes, same_bytes
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels.facts import MIXER, are_equal, joined

TRUE, FALSE = 0, -1
"""Numbers of formulas; FALSE is never in a program."""
DEPTH_MAX = 64
"""What a program for a stack may have on it, which is one word."""
# Kinds of node tests.
DOCUMENT, ELEMENT, ATTRIBUTE, TEXT_NODE, ANY_CHILD = range(5)
# Columns of rows; the ``keys`` first of them say what a row is, the others what is known of it.
PARENT, BELOW, TEST, NODE_ROW = range(4)
KIND, FACT_TEST, FACT_FORMULA, FACT_ROW = range(4)
VALUE_GROUP, VALUE_OPERATOR, VALUE_LITERAL, VALUE_FACT, VALUE_ROW = range(5)
RULE_NODE, RULE_FORMULA, RULE_ACTION, RULE_TARGET, RULE_SOURCE, RULE_ROW = range(6)
CHAIN_STAGE, CHAIN_COUNTER, CHAIN_ROW = range(3)
LAST_STAGE, LAST_CHAIN, LAST_FACT, LAST_ROW = range(4)
NUMBER_ROW = ACCEPT_ROW = 2
ALL_COVERED, NOTHING_COVERED, FIRST_COVER = range(3)
"""Covers: all elements; none; and those that pass a test, by its number from FIRST_COVER on."""


class Building(NamedTuple):
    """The tables; ``slots`` of a name are the hash table of its rows: 1 and a row's number, or 0.

    Attributes:
        nodes: int32[n, NODE_ROW]; of the trie: parent, whether on a descendant step, test.
        facts: int32[n, FACT_ROW]; kind, test, formula.
        values: int32[n, VALUE_ROW]; the fact of a group, an operator, a literal (the number of a
            string, or minus one minus that of a number); and the fact that says it.
        rules: int32[n, RULE_ROW]; node, formula, action, target, source.
        chains: int32[n, CHAIN_ROW]; the fact of the only stage, which the first child passes (or
            minus one minus a number of the builder's); and the counter of that stage.
        lasts: int32[n, LAST_ROW]; a fact OF_STAGE and a chain; and the fact that says that a child
            has the first and passed the second.
        numbers: int32[n, NUMBER_ROW]; the bits of float64s.
        formula_depths: uint8[], of their stacks; formula_starts: int64[], into formula_code.
        string_starts: int64[], into string_bytes.
        accepts: int32[n, ACCEPT_ROW]; a node, and a query that is true as soon as it is reached.
        limits: of counters.
        test_covers: int32[tests]; see ``ALL_COVERED``, or -1 where the cover stays.
        reads_text: uint8[covers]; whether the text of a cover is read.
        levels, pending, work, others: room for work.
    """

    nodes: Int32
    node_slots: Int32
    facts: Int32
    fact_slots: Int32
    values: Int32
    value_slots: Int32
    rules: Int32
    rule_slots: Int32
    chains: Int32
    chain_slots: Int32
    lasts: Int32
    last_slots: Int32
    numbers: Int32
    number_slots: Int32
    formula_kinds: Bytes
    formula_depths: Bytes
    formula_starts: Int64
    formula_code: Int32
    formula_slots: Int32
    string_starts: Int64
    string_bytes: Bytes
    string_slots: Int32
    accepts: Int32
    limits: Int32
    test_kinds: Bytes
    test_covers: Int32
    reads_text: Bytes
    levels: Int32
    pending: Int32
    work: Int32
    others: Int32


# The scalars of the state: how many there are.
(NODES, FACTS, VALUES, RULES, CHAINS, LASTS, NUMBERS, FORMULAS, CODE, STRINGS, BYTES, ACCEPTS,
 LIMITS, SCALARS) = range(14)  # fmt: skip
TABLES, STATE_SIZE = lay_out(SCALARS, Building)


class RowTable(NamedTuple):
    """A table of rows: its fields, where its rows are counted, and their width.

    The first ``keys`` numbers say which row it is. Tables without slots may have a row twice.
    """

    rows: int
    slots: int
    used: int
    width: int
    keys: int


NODE_TABLE = RowTable(TABLES.nodes, TABLES.node_slots, NODES, NODE_ROW, 3)
FACT_TABLE = RowTable(TABLES.facts, TABLES.fact_slots, FACTS, FACT_ROW, 3)
VALUE_TABLE = RowTable(TABLES.values, TABLES.value_slots, VALUES, VALUE_ROW, 3)
RULE_TABLE = RowTable(TABLES.rules, TABLES.rule_slots, RULES, RULE_ROW, 5)
CHAIN_TABLE = RowTable(TABLES.chains, TABLES.chain_slots, CHAINS, CHAIN_ROW, 1)
LAST_TABLE = RowTable(TABLES.lasts, TABLES.last_slots, LASTS, LAST_ROW, 2)
NUMBER_TABLE = RowTable(TABLES.numbers, TABLES.number_slots, NUMBERS, NUMBER_ROW, 2)
ACCEPT_TABLE = RowTable(TABLES.accepts, -1, ACCEPTS, ACCEPT_ROW, 0)
LIMIT_TABLE = RowTable(TABLES.limits, -1, LIMITS, 1, 0)
ROW_TABLES = (
    NODE_TABLE, FACT_TABLE, VALUE_TABLE, RULE_TABLE, CHAIN_TABLE, LAST_TABLE, NUMBER_TABLE,
    ACCEPT_TABLE, LIMIT_TABLE,
)  # fmt: skip

# -- rows ------------------------------------------------------------------------------------------


@inlined
def hash_row(keys: int, row: Any) -> np.uint64:
    """The hash of a row's first numbers."""
    hash = MIXER
    for i in range(keys):
        hash = joined(hash, row[i])
    return hash ^ hash >> U(32)


@inlined
def is_row(known: Any, number: int, row: Any) -> bool:
    """Whether a known row, one of ``(rows, width, keys)``, has these first numbers."""
    rows, width, keys = known
    i = 0
    while i < keys and rows[number * width + i] == row[i]:
        i += 1
    return i == keys


find_row = slot_finder(is_row)


@inlined
def add_row(state: Int64, table: Any, row: Any) -> int:
    """The number of a row of a ``RowTable``, which is added where it is new; there must be room."""
    rows, slots, keys = int32s(state, table.rows), int32s(state, table.slots), table.keys
    slot = find_row(slots, hash_row(keys, row), (rows, table.width, keys), row)
    if slots[slot] != 0:
        return np.int64(slots[slot]) - 1
    number = state[table.used]
    state[table.used] += 1
    slots[slot] = number + 1
    for i in range(keys):
        rows[number * table.width + i] = row[i]
    return number


@kernel
def rehash_rows(rows: Int32, width: int, keys: int, count: int, slots: Int32) -> None:
    """Enter all rows into empty slots."""
    for number in range(count):
        hash = hash_row(keys, rows[number * width : number * width + keys])
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
    slots, starts = int32s(state, TABLES.formula_slots), int64s(state, TABLES.formula_starts)
    kinds, known = uint8s(state, TABLES.formula_kinds), int32s(state, TABLES.formula_code)
    hash = hash_code(kind, code, 0, length)
    slot = find_formula(slots, hash, (kinds, starts, known), (kind, code, length))
    if slots[slot] != 0:
        return np.int64(slots[slot]) - 1
    number, start = state[FORMULAS], state[CODE]
    slots[slot] = number + 1
    kinds[number] = kind
    uint8s(state, TABLES.formula_depths)[number] = depth
    for i in range(length):
        known[start + i] = code[i]
    starts[number + 1] = start + length
    state[FORMULAS] += 1
    state[CODE] += length
    return number


@kernel
def add_holds(state: Int64, fact: int) -> int:
    """The formula of: a fact holds."""
    work = int32s(state, TABLES.work)
    work[0] = fact
    return add_formula(state, pr.CONJUNCTION, work, 1, 1)


@kernel
def rehash_formulas(state: Int64) -> None:
    """Enter all formulas into their slots, which are empty."""
    slots, starts = int32s(state, TABLES.formula_slots), int64s(state, TABLES.formula_starts)
    kinds, known = uint8s(state, TABLES.formula_kinds), int32s(state, TABLES.formula_code)
    for number in range(state[FORMULAS]):
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


@kernel
def add_string(state: Int64, text: Bytes, first: int, last: int) -> int:
    """The number of a string, which is added where it is new; there must be room."""
    slots, starts = int32s(state, TABLES.string_slots), int64s(state, TABLES.string_starts)
    known = uint8s(state, TABLES.string_bytes)
    hash = hash_bytes(text, first, last, GOLDEN)
    slot = find_string(slots, hash, (starts, known), (text, first, last))
    if slots[slot] != 0:
        return np.int64(slots[slot]) - 1
    number, start = state[STRINGS], state[BYTES]
    slots[slot] = number + 1
    for i in range(last - first):
        known[start + i] = text[first + i]
    starts[number + 1] = start + last - first
    state[STRINGS] += 1
    state[BYTES] += last - first
    return number


@kernel
def add_strings(state: Int64, starts: Int64, text: Bytes, numbers: Int32) -> None:
    """The numbers of many strings; there must be room for all."""
    for i in range(len(numbers)):
        numbers[i] = add_string(state, text, starts[i], starts[i + 1])


@kernel
def rehash_strings(state: Int64) -> None:
    """Enter all strings into their slots, which are empty."""
    slots, starts = int32s(state, TABLES.string_slots), int64s(state, TABLES.string_starts)
    known = uint8s(state, TABLES.string_bytes)
    for number in range(state[STRINGS]):
        hash = hash_bytes(known, starts[number], starts[number + 1], GOLDEN)
        slots[free_slot(slots, hash)] = number + 1


# -- nodes, facts and rules ------------------------------------------------------------------------


@inlined
def test_of(state: Int64, node: int) -> int:
    """The number of a node's test."""
    return np.int64(int32s(state, TABLES.nodes)[node * NODE_ROW + TEST])


@kernel
def add_node(state: Int64, node: int, is_below: int, test: int) -> int:
    """The node behind a step from another one, to children or (``is_below``) descendants."""
    return add_row(state, NODE_TABLE, (node, is_below, test, 0, 0))


@kernel
def add_fact(state: Int64, kind: int, test: int, formula: int) -> int:
    """The number of a fact."""
    return add_row(state, FACT_TABLE, (kind, test, formula, 0, 0))


@kernel
def add_rule(state: Int64, node: int, formula: int, action: int, target: int, source: int) -> None:
    """What follows where a node is reached and a formula holds there."""
    add_row(state, RULE_TABLE, (node, formula, action, target, source))


@kernel
def add_derived(state: Int64, node: int, is_below: int, formula: int) -> int:
    """The formula, around a node, of: it is reached and a formula holds there."""
    if formula == FALSE:
        return FALSE
    kind = pr.OF_DESCENDANT if is_below else pr.OF_CHILD
    fact = add_fact(state, kind, test_of(state, node), formula)
    add_rule(state, node, formula, pr.DERIVES, fact, -1)
    return add_holds(state, fact)


@kernel
def add_accept(state: Int64, node: int, formula: int, query: int) -> None:
    """A query is true where a node is reached and a formula holds there."""
    if formula == TRUE:
        place = state[ACCEPTS] * ACCEPT_ROW
        accepts = int32s(state, TABLES.accepts)
        accepts[place], accepts[place + 1] = node, query
        state[ACCEPTS] += 1
    elif formula != FALSE:
        add_rule(state, node, formula, pr.ACCEPTS, query, -1)


@kernel
def add_value(state: Int64, node: int, function: int, operator: int, literal: int) -> int:
    """The formula of: the string value of what a node stands for is as asked.

    Args:
        function: of the value: bits of NORMALIZED and LENGTH, or 0.
        operator: a place in OPERATORS.
        literal: the number of a string, or minus one minus that of a number.
    """
    test = test_of(state, node)
    group = add_fact(state, pr.OF_GROUP, test, -2 - function)
    add_rule(state, node, TRUE, pr.DERIVES, group, -1)
    known = state[VALUES]
    row = add_row(state, VALUE_TABLE, (group, operator, literal, 0, 0))
    values = int32s(state, TABLES.values)
    if row == known:
        values[row * VALUE_ROW + VALUE_FACT] = add_fact(state, pr.OF_VALUE, test, -2 - row)
    return add_holds(state, np.int64(values[row * VALUE_ROW + VALUE_FACT]))


@kernel
def add_number(state: Int64, low: int, high: int) -> int:
    """The number of a number, of which the two halves are given."""
    return add_row(state, NUMBER_TABLE, (low, high, 0, 0, 0))


# -- counting --------------------------------------------------------------------------------------


@kernel
def add_counter(state: Int64, limit: int) -> int:
    """The number of a new counter."""
    number = state[LIMITS]
    int32s(state, TABLES.limits)[number] = limit
    state[LIMITS] += 1
    return number


@kernel
def add_stage(state: Int64, node: int, formula: int) -> int:
    """The fact that a child gets to a stage of a chain: a formula holds there."""
    fact = add_fact(state, pr.OF_STAGE, test_of(state, node), formula)
    add_rule(state, node, formula, pr.DERIVES, fact, -1)
    return fact


@kernel
def add_chain(state: Int64, first: int) -> int:
    """The chain of one stage, which the first child passes that has a fact.

    Below 0 is, instead of the fact, what names a chain that the builder knows the stages of.
    """
    known = state[CHAINS]
    chain = add_row(state, CHAIN_TABLE, (first, 0, 0, 0, 0))
    if chain == known:
        counter = add_counter(state, 1) if first >= 0 else -1
        int32s(state, TABLES.chains)[chain * CHAIN_ROW + CHAIN_COUNTER] = counter
    return chain


@kernel
def add_passed(state: Int64, node: int, chain: int, formula: int) -> int:
    """The formula, around a node, of: a child passed a chain, and a formula holds there."""
    end = add_stage(state, node, formula)
    known = state[LASTS]
    row = add_row(state, LAST_TABLE, (end, chain, 0, 0, 0))
    lasts = int32s(state, TABLES.lasts)
    if row == known:
        lasts[row * LAST_ROW + LAST_FACT] = add_fact(state, pr.OF_CHILD, -1, -2 - row)
    return add_holds(state, np.int64(lasts[row * LAST_ROW + LAST_FACT]))
