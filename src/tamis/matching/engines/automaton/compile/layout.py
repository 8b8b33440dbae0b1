"""The growing form of a program: tables of rows, each row once, that kernels find and add to."""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel.record import lay_out

TRUE, FALSE = 0, -1
"""Numbers of formulas; FALSE is never in a program."""
DEPTH_MAX = 64
"""What a program for a stack may have on it, which is one word."""
# Kinds of node tests.
DOCUMENT, ELEMENT, ATTRIBUTE, TEXT_NODE, ANY_CHILD = range(5)
# Columns of rows; ``KEYS`` of them say what a row is, those behind them what is known of it.
PARENT, BELOW, TEST, NODE_ROW = range(4)
KIND, FACT_TEST, FACT_FORMULA, FACT_ROW = range(4)
VALUE_GROUP, VALUE_OPERATOR, VALUE_LITERAL, VALUE_FACT, VALUE_ROW = range(5)
RULE_NODE, RULE_FORMULA, RULE_ACTION, RULE_TARGET, RULE_SOURCE, RULE_ROW = range(6)
CHAIN_STAGE, CHAIN_COUNTER, CHAIN_ROW = range(3)
LAST_STAGE, LAST_CHAIN, LAST_FACT, LAST_ROW = range(4)
NUMBER_ROW = 2
ACCEPT_ROW = 2
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
        formula_kinds: uint8[]; formula_depths: uint8[], of their stacks; formula_starts: int64[],
            into formula_code: int32[].
        string_starts: int64[], into string_bytes: uint8[].
        accepts: int32[n, ACCEPT_ROW]; a node, and a query that is true as soon as it is reached.
        limits: int32[]; of counters.
        test_kinds: uint8[tests]; test_covers: int32[tests], see below, or -1 where it stays.
        reads_text: uint8[covers]; whether the text of a cover is read.
        levels, pending, work, others: int32[]; room for work.
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
