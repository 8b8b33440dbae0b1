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


@inlined
def kind_of(state: Int64, test: int) -> int:
    """The kind of nodes that a test lets pass."""
    return np.int64(int32s(state, TABLES.tests)[test * TEST_ROW + TEST_KIND])


@kernel
def add_test(state: Int64, kind: int, namespace: int, local: int) -> int:
    """The number of a test."""
    return add_row(state, TEST_TABLE, (kind, namespace, local, 0, 0))


@inlined
def cover_of(state: Int64, test: int, around: int) -> int:
    """The cover of what passes a test, inside of another cover."""
    tests, row = int32s(state, TABLES.tests), test * TEST_ROW
    if tests[row + TEST_KIND] == ATTRIBUTE:
        return NOTHING_COVERED
    is_one = tests[row + TEST_NAMESPACE] >= 0 and tests[row + TEST_LOCAL] >= 0
    return FIRST_COVER + test if tests[row + TEST_KIND] == ELEMENT and is_one else around


@called
def is_itself(state: Int64, node: int, test: int) -> int:
    """The formula of: what a node stands for passes another test, on the self axis."""
    nodes, own = int32s(state, TABLES.nodes), test_of(state, node)
    both = narrowed(state, own, test)
    if both < 0:
        return FALSE
    if both == own:
        return TRUE
    parent, is_below = nodes[node * NODE_ROW + PARENT], nodes[node * NODE_ROW + BELOW]
    child = add_node(state, np.int64(parent), np.int64(is_below), both)
    fact = add_fact(state, pr.OF_ITSELF, both, TRUE)
    add_rule(state, child, TRUE, pr.DERIVES, fact, -1)
    return add_holds(state, fact)


@called
def narrowed(state: Int64, own: int, test: int) -> int:
    """The test of what passes two tests, the other on the self axis; -1 where nothing can."""
    tests = int32s(state, TABLES.tests)
    kind, asked = kind_of(state, own), kind_of(state, test)
    if asked == ANY_CHILD:
        return own
    if kind == ANY_CHILD:
        return test
    if kind != asked:
        return -1
    names = tests[own * TEST_ROW + TEST_NAMESPACE], tests[own * TEST_ROW + TEST_LOCAL]
    others = tests[test * TEST_ROW + TEST_NAMESPACE], tests[test * TEST_ROW + TEST_LOCAL]
    for i in range(2):
        if names[i] >= 0 and others[i] >= 0 and names[i] != others[i]:
            return -1
    return add_test(
        state, kind, np.int64(max(names[0], others[0])), np.int64(max(names[1], others[1]))
    )


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


@called
def add_stage_of_chain(state: Int64, before: int, fact: int, number: int) -> int:
    """The stage behind another, or behind none (-1): the n-th child that gets there passes it."""
    return add_row(state, STAGE_TABLE, (before, fact, number, 0, 0))


@called
def add_chain(state: Int64, first: int) -> int:
    """A chain of stages, as CHAIN_STAGE names it."""
    known = state[CHAINS]
    chain = add_row(state, CHAIN_TABLE, (first, 0, 0, 0, 0))
    if chain == known:
        stages = int32s(state, TABLES.stages)
        counter = add_counter(state, 1) if first >= 0 else -1
        stage = -1 - first
        while stage >= 0:
            counter = add_counter(state, np.int64(stages[stage * STAGE_ROW + STAGE_NUMBER]))
            stage = np.int64(stages[stage * STAGE_ROW + STAGE_BEFORE])
        int32s(state, TABLES.chains)[chain * CHAIN_ROW + CHAIN_COUNTER] = counter
    return chain


@called
def add_counter_of(state: Int64, node: int, formula: int, inner: int, limit: int) -> int:
    """The counter, around a node, of children that reach it and for which a formula holds.

    Args:
        inner: a counter of the node, of which the value is added instead of 1; or -1.
        limit: counting stops here.
    """
    known = state[COUNTED]
    row = add_row(state, COUNTED_TABLE, (test_of(state, node), formula, inner, limit, 0))
    counted = int32s(state, TABLES.counted)
    if row == known:
        counted[row * COUNTED_ROW + COUNTED_BY] = add_counter(state, limit)
    counter = np.int64(counted[row * COUNTED_ROW + COUNTED_BY])
    add_rule(state, node, formula, pr.COUNTS, counter, inner)
    return counter


@called
def add_between(state: Int64, counter: int, lowest: int, highest: int) -> int:
    """The formula of: the value of a counter is in a range."""
    work = int32s(state, TABLES.work)
    work[0], work[1], work[2], work[3] = pr.COUNT, counter, lowest, highest
    return add_formula(state, pr.GENERAL, work, 4, 1)


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
