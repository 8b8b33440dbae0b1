"""What queries are compiled to: nodes of the trie, facts, what values are asked, and rules."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.record import int32s
from tamis.matching.engines.automaton.building import (
    ACCEPT_ROW,
    ACCEPTS,
    AT,
    CHAIN_COUNTER,
    CHAIN_ROW,
    CHAINS,
    FACT_ROW,
    FACTS,
    FALSE,
    LAST_FACT,
    LAST_ROW,
    LASTS,
    LIMITS,
    NODE_ROW,
    NODES,
    NUMBER_ROW,
    NUMBERS,
    RULE_ROW,
    RULES,
    TEST,
    TRUE,
    VALUE_FACT,
    VALUE_ROW,
    VALUES,
)
from tamis.matching.engines.automaton.kernels.formulas import fact_holds
from tamis.matching.engines.automaton.kernels.interning import add_row
from tamis.matching.engines.automaton.program import (
    ACCEPTS as ACCEPTS_QUERY,
)
from tamis.matching.engines.automaton.program import (
    OF_CHILD,
    OF_DESCENDANT,
    OF_GROUP,
    OF_STAGE,
    OF_VALUE,
    TELLS,
)


@inlined
def test_of(state: Int64, node: int) -> int:
    """The number of a node's test."""
    return np.int64(int32s(state, AT.nodes)[node * NODE_ROW + TEST])


@called
def node_behind(state: Int64, node: int, is_below: int, test: int) -> int:
    """The node behind a step from another one, to children or (``is_below``) descendants."""
    return add_row(state, AT.nodes, AT.node_slots, NODES, NODE_ROW, 3, node, is_below, test, 0, 0)


@called
def fact_of(state: Int64, kind: int, test: int, formula: int) -> int:
    """The number of a fact."""
    return add_row(state, AT.facts, AT.fact_slots, FACTS, FACT_ROW, 3, kind, test, formula, 0, 0)


@called
def rule(state: Int64, node: int, formula: int, action: int, target: int, source: int) -> None:
    """What follows where a node is reached and a formula holds there."""
    add_row(
        state, AT.rules, AT.rule_slots, RULES, RULE_ROW, 5, node, formula, action, target, source
    )


@called
def told(state: Int64, node: int, is_below: int, formula: int) -> int:
    """The formula, around a node, of: it is reached and a formula holds there."""
    if formula == FALSE:
        return FALSE
    kind = OF_DESCENDANT if is_below else OF_CHILD
    fact = fact_of(state, kind, test_of(state, node), formula)
    rule(state, node, formula, TELLS, fact, -1)
    return fact_holds(state, fact)


@called
def accept_if(state: Int64, node: int, formula: int, query: int) -> None:
    """A query is true where a node is reached and a formula holds there."""
    if formula == TRUE:
        place = state[ACCEPTS] * ACCEPT_ROW
        accepts = int32s(state, AT.accepts)
        accepts[place], accepts[place + 1] = node, query
        state[ACCEPTS] += 1
    elif formula != FALSE:
        rule(state, node, formula, ACCEPTS_QUERY, query, -1)


@called
def value_is(state: Int64, node: int, function: int, operator: int, literal: int) -> int:
    """The formula of: the string value of what a node stands for is as asked.

    Args:
        function: of the value: bits of NORMALIZED and LENGTH, or 0.
        operator: a place in OPERATORS.
        literal: the number of a string, or minus one minus that of a number.
    """
    test = test_of(state, node)
    group = fact_of(state, OF_GROUP, test, -2 - function)
    rule(state, node, TRUE, TELLS, group, -1)
    known = state[VALUES]
    row = add_row(
        state, AT.values, AT.value_slots, VALUES, VALUE_ROW, 3, group, operator, literal, 0, 0
    )
    values = int32s(state, AT.values)
    if row == known:
        values[row * VALUE_ROW + VALUE_FACT] = fact_of(state, OF_VALUE, test, -2 - row)
    return fact_holds(state, np.int64(values[row * VALUE_ROW + VALUE_FACT]))


# -- counting --------------------------------------------------------------------------------------


@inlined
def new_counter(state: Int64, limit: int) -> int:
    """The number of a new counter."""
    number = state[LIMITS]
    int32s(state, AT.limits)[number] = limit
    state[LIMITS] += 1
    return number


@called
def stage(state: Int64, node: int, formula: int) -> int:
    """The fact that a child gets to a stage of a chain: a formula holds there."""
    fact = fact_of(state, OF_STAGE, test_of(state, node), formula)
    rule(state, node, formula, TELLS, fact, -1)
    return fact


@called
def chain_of(state: Int64, first: int) -> int:
    """The chain of one stage, which the first child passes that tells a fact.

    Args:
        first: the fact; or, below 0, what names a chain that the builder knows the stages of.
    """
    known = state[CHAINS]
    chain = add_row(state, AT.chains, AT.chain_slots, CHAINS, CHAIN_ROW, 1, first, 0, 0, 0, 0)
    if chain == known:
        counter = new_counter(state, 1) if first >= 0 else -1
        int32s(state, AT.chains)[chain * CHAIN_ROW + CHAIN_COUNTER] = counter
    return chain


@called
def passed(state: Int64, node: int, chain: int, formula: int) -> int:
    """The formula, around a node, of: a child passed a chain, and a formula holds there."""
    end = stage(state, node, formula)
    known = state[LASTS]
    row = add_row(state, AT.lasts, AT.last_slots, LASTS, LAST_ROW, 2, end, chain, 0, 0, 0)
    lasts = int32s(state, AT.lasts)
    if row == known:
        lasts[row * LAST_ROW + LAST_FACT] = fact_of(state, OF_CHILD, -1, -2 - row)
    return fact_holds(state, np.int64(lasts[row * LAST_ROW + LAST_FACT]))


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
def add_told(state: Int64, node: int, is_below: int, formula: int) -> int:
    """See ``told``."""
    return told(state, node, is_below, formula)


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
    return add_row(state, AT.numbers, AT.number_slots, NUMBERS, NUMBER_ROW, 2, low, high, 0, 0, 0)


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
