"""What queries are compiled to: rows, formulas and strings, each stored once, in tables that grow.

The rows are nodes of the trie, facts, comparisons of values, and rules. ``TABLES`` says where
kernels find the tables.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Floats, Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, lay_out, uint8s
from tamis.core.kernel.table import GOLDEN, free_slot, slot_finder
from tamis.core.kernel.text import hash_bytes, same_bytes
from tamis.matching.engines.automaton.kernels.facts import MIXER, joined

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
TEST_KIND, TEST_NAMESPACE, TEST_LOCAL, TEST_ROW = range(4)
RULE_NODE, RULE_FORMULA, RULE_ACTION, RULE_TARGET, RULE_SOURCE, RULE_ROW = range(6)
CHAIN_STAGE, CHAIN_COUNTER, CHAIN_ROW = range(3)
STAGE_BEFORE, STAGE_FACT, STAGE_NUMBER, STAGE_ROW = range(4)
COUNTED_TEST, COUNTED_FORMULA, COUNTED_INNER, COUNTED_LIMIT, COUNTED_BY, COUNTED_ROW = range(6)
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
        tests: int32[n, TEST_ROW]; what nodes are tested for: a kind, a namespace and a local name,
            by number, or -1 for any.
        chains: int32[n, CHAIN_ROW]; the fact of the only stage, which the first child passes (or
            minus one minus the last of several stages); and the counter of the first stage. Of
            several, each has the counter before that of the stage before.
        stages: int32[n, STAGE_ROW]; the stage before, or -1; a fact; and how many children that
            have the fact and passed that stage there are with the one that passes.
        counted: int32[n, COUNTED_ROW]; what the counter COUNTED_BY counts: a test, a formula, a
            counter that is added, or -1, and where counting stops.
        lasts: int32[n, LAST_ROW]; a fact OF_STAGE and a chain; and the fact that says that a child
            has the first and passed the second.
        numbers: int32[n, NUMBER_ROW]; the bits of float64s.
        formula_depths: uint8[], of their stacks; formula_starts: int64[], into formula_code.
        string_starts: int64[], into string_bytes.
        accepts: int32[n, ACCEPT_ROW]; a node, and a query that is true as soon as it is reached.
        limits: of counters.
        code: the words of queries; tests_of_words, strings_of_words and numbers_of_words are the
            numbers here of their tests and literals, and number_values the values of numbers.
        reads_text: uint8[covers]; whether the text of a cover is read (see ``ALL_COVERED``).
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
    tests: Int32
    test_slots: Int32
    chains: Int32
    chain_slots: Int32
    stages: Int32
    stage_slots: Int32
    counted: Int32
    counted_slots: Int32
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
    reads_text: Bytes
    code: Int32
    tests_of_words: Int32
    strings_of_words: Int32
    numbers_of_words: Int32
    number_values: Floats
    levels: Int32
    pending: Int32
    work: Int32
    others: Int32


# The scalars of the state: how many there are.
(NODES, FACTS, VALUES, RULES, TESTS, CHAINS, STAGES, COUNTED, LASTS, NUMBERS, FORMULAS, CODE,
 STRINGS, BYTES, ACCEPTS, LIMITS,
 # Of the query that is read: the node, and its cover; the place in its words; how many levels are
 # open, and formulas pending; the levels outside of which it is accepted. READS_MISC: some query
 # reads comments.
 NODE, COVER, PLACE, LEVEL, HELD, OUTER, READS_MISC,
 # Of what is counted: whether that goes on, the counter so far, and what is asked of it.
 COUNTING, COUNTER, LOWEST, HIGHEST, LIMIT, IS_NEGATED, SCALARS) = range(30)  # fmt: skip
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
TEST_TABLE = RowTable(TABLES.tests, TABLES.test_slots, TESTS, TEST_ROW, 3)
STAGE_TABLE = RowTable(TABLES.stages, TABLES.stage_slots, STAGES, STAGE_ROW, 3)
COUNTED_TABLE = RowTable(TABLES.counted, TABLES.counted_slots, COUNTED, COUNTED_ROW, 4)
CHAIN_TABLE = RowTable(TABLES.chains, TABLES.chain_slots, CHAINS, CHAIN_ROW, 1)
LAST_TABLE = RowTable(TABLES.lasts, TABLES.last_slots, LASTS, LAST_ROW, 2)
NUMBER_TABLE = RowTable(TABLES.numbers, TABLES.number_slots, NUMBERS, NUMBER_ROW, 2)
ACCEPT_TABLE = RowTable(TABLES.accepts, -1, ACCEPTS, ACCEPT_ROW, 0)
LIMIT_TABLE = RowTable(TABLES.limits, -1, LIMITS, 1, 0)
ROW_TABLES = (
    NODE_TABLE, FACT_TABLE, VALUE_TABLE, RULE_TABLE, TEST_TABLE, CHAIN_TABLE, STAGE_TABLE,
    COUNTED_TABLE, LAST_TABLE, NUMBER_TABLE, ACCEPT_TABLE, LIMIT_TABLE,
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
