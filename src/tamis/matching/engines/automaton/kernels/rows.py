"""The rows of a program that grows: tests, nodes, facts, rules and counters, each added once."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.record import int32s
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import build as at
from tamis.matching.engines.automaton.kernels.formulas import add_formula, add_holds


@inlined
def test_of(state: Int64, node: int) -> int:
    """The number of a node's test."""
    return np.int64(int32s(state, at.TABLES.nodes)[node * at.NODE_ROW + at.TEST])


@inlined
def kind_of(state: Int64, test: int) -> int:
    """The kind of nodes that a test lets pass."""
    return np.int64(int32s(state, at.TABLES.tests)[test * at.TEST_ROW + at.TEST_KIND])


@kernel
def add_test(state: Int64, kind: int, namespace: int, local: int) -> int:
    """The number of a test."""
    return at.add_row(state, at.TEST_TABLE, (kind, namespace, local, 0, 0))


@inlined
def cover_of(state: Int64, test: int, around: int) -> int:
    """The cover of what passes a test, inside of another cover."""
    tests, row = int32s(state, at.TABLES.tests), test * at.TEST_ROW
    if tests[row + at.TEST_KIND] == at.ATTRIBUTE:
        return at.NOTHING_COVERED
    is_one = tests[row + at.TEST_NAMESPACE] >= 0 and tests[row + at.TEST_LOCAL] >= 0
    return at.FIRST_COVER + test if tests[row + at.TEST_KIND] == at.ELEMENT and is_one else around


@called
def is_itself(state: Int64, node: int, test: int) -> int:
    """The formula of: what a node stands for passes another test, on the self axis."""
    nodes, own = int32s(state, at.TABLES.nodes), test_of(state, node)
    both = narrowed(state, own, test)
    if both < 0:
        return at.FALSE
    if both == own:
        return at.TRUE
    parent, is_below = nodes[node * at.NODE_ROW + at.PARENT], nodes[node * at.NODE_ROW + at.BELOW]
    child = add_node(state, np.int64(parent), np.int64(is_below), both)
    fact = add_fact(state, pr.OF_ITSELF, both, at.TRUE)
    add_rule(state, child, at.TRUE, pr.DERIVES, fact, -1)
    return add_holds(state, fact)


@called
def narrowed(state: Int64, own: int, test: int) -> int:
    """The test of what passes two tests, the other on the self axis; -1 where nothing can."""
    tests = int32s(state, at.TABLES.tests)
    kind, asked = kind_of(state, own), kind_of(state, test)
    if asked == at.ANY_CHILD:
        return own
    if kind == at.ANY_CHILD:
        return test
    if kind != asked:
        return -1
    names = tests[own * at.TEST_ROW + at.TEST_NAMESPACE], tests[own * at.TEST_ROW + at.TEST_LOCAL]
    others = (
        tests[test * at.TEST_ROW + at.TEST_NAMESPACE],
        tests[test * at.TEST_ROW + at.TEST_LOCAL],
    )
    for i in range(2):
        if names[i] >= 0 and others[i] >= 0 and names[i] != others[i]:
            return -1
    return add_test(
        state, kind, np.int64(max(names[0], others[0])), np.int64(max(names[1], others[1]))
    )


@kernel
def add_node(state: Int64, node: int, is_below: int, test: int) -> int:
    """The node behind a step from another one, to children or (``is_below``) descendants."""
    return at.add_row(state, at.NODE_TABLE, (node, is_below, test, 0, 0))


@called
def add_fact(state: Int64, kind: int, test: int, formula: int) -> int:
    """The number of a fact."""
    return at.add_row(state, at.FACT_TABLE, (kind, test, formula, 0, 0))


@called
def add_rule(state: Int64, node: int, formula: int, action: int, target: int, source: int) -> None:
    """What follows where a node is reached and a formula holds there."""
    at.add_row(state, at.RULE_TABLE, (node, formula, action, target, source))


@called
def add_derived(state: Int64, node: int, is_below: int, formula: int) -> int:
    """The formula, around a node, of: it is reached and a formula holds there."""
    if formula == at.FALSE:
        return at.FALSE
    kind = pr.OF_DESCENDANT if is_below else pr.OF_CHILD
    fact = add_fact(state, kind, test_of(state, node), formula)
    add_rule(state, node, formula, pr.DERIVES, fact, -1)
    return add_holds(state, fact)


@called
def add_accept(state: Int64, node: int, formula: int, query: int) -> None:
    """A query is true where a node is reached and a formula holds there."""
    if formula == at.TRUE:
        place = state[at.ACCEPTS] * at.ACCEPT_ROW
        accepts = int32s(state, at.TABLES.accepts)
        accepts[place], accepts[place + 1] = node, query
        state[at.ACCEPTS] += 1
    elif formula != at.FALSE:
        add_rule(state, node, formula, pr.ACCEPTS, query, -1)


@called
def add_value(state: Int64, node: int, function: int, operator: int, literal: int) -> int:
    """The formula of: the string value of what a node stands for is as asked.

    Args:
        function: of the value: bits of NORMALIZED and LENGTH, or 0.
        operator: a place in OPERATORS.
        literal: the number of a string, or minus one minus that of a number.
    """
    test = test_of(state, node)
    group = add_fact(state, pr.OF_GROUP, test, -2 - function)
    add_rule(state, node, at.TRUE, pr.DERIVES, group, -1)
    known = state[at.VALUES]
    row = at.add_row(state, at.VALUE_TABLE, (group, operator, literal, 0, 0))
    values = int32s(state, at.TABLES.values)
    if row == known:
        values[row * at.VALUE_ROW + at.VALUE_FACT] = add_fact(state, pr.OF_VALUE, test, -2 - row)
    return add_holds(state, np.int64(values[row * at.VALUE_ROW + at.VALUE_FACT]))


@kernel
def add_number(state: Int64, low: int, high: int) -> int:
    """The number of a number, of which the two halves are given."""
    return at.add_row(state, at.NUMBER_TABLE, (low, high, 0, 0, 0))


# -- counting --------------------------------------------------------------------------------------


@called
def add_counter(state: Int64, limit: int) -> int:
    """The number of a new counter."""
    number = state[at.LIMITS]
    int32s(state, at.TABLES.limits)[number] = limit
    state[at.LIMITS] += 1
    return number


@called
def add_stage(state: Int64, node: int, formula: int) -> int:
    """The fact that a child gets to a stage of a chain: a formula holds there."""
    fact = add_fact(state, pr.OF_STAGE, test_of(state, node), formula)
    add_rule(state, node, formula, pr.DERIVES, fact, -1)
    return fact


@called
def add_stage_of_chain(state: Int64, before: int, fact: int, number: int) -> int:
    """The stage behind another, or behind none (-1): the n-th child that gets there passes it."""
    return at.add_row(state, at.STAGE_TABLE, (before, fact, number, 0, 0))


@called
def add_chain(state: Int64, first: int) -> int:
    """A chain of stages, as at.CHAIN_STAGE names it."""
    known = state[at.CHAINS]
    chain = at.add_row(state, at.CHAIN_TABLE, (first, 0, 0, 0, 0))
    if chain == known:
        stages = int32s(state, at.TABLES.stages)
        counter = add_counter(state, 1) if first >= 0 else -1
        stage = -1 - first
        while stage >= 0:
            counter = add_counter(state, np.int64(stages[stage * at.STAGE_ROW + at.STAGE_NUMBER]))
            stage = np.int64(stages[stage * at.STAGE_ROW + at.STAGE_BEFORE])
        int32s(state, at.TABLES.chains)[chain * at.CHAIN_ROW + at.CHAIN_COUNTER] = counter
    return chain


@called
def add_counter_of(state: Int64, node: int, formula: int, inner: int, limit: int) -> int:
    """The counter, around a node, of children that reach it and for which a formula holds.

    Args:
        inner: a counter of the node, of which the value is added instead of 1; or -1.
        limit: counting stops here.
    """
    known = state[at.COUNTED]
    row = at.add_row(state, at.COUNTED_TABLE, (test_of(state, node), formula, inner, limit, 0))
    counted = int32s(state, at.TABLES.counted)
    if row == known:
        counted[row * at.COUNTED_ROW + at.COUNTED_BY] = add_counter(state, limit)
    counter = np.int64(counted[row * at.COUNTED_ROW + at.COUNTED_BY])
    add_rule(state, node, formula, pr.COUNTS, counter, inner)
    return counter


@called
def add_between(state: Int64, counter: int, lowest: int, highest: int) -> int:
    """The formula of: the value of a counter is in a range."""
    work = int32s(state, at.TABLES.work)
    work[0], work[1], work[2], work[3] = pr.COUNT, counter, lowest, highest
    return add_formula(state, pr.GENERAL, work, 4, 1)


@called
def add_passed(state: Int64, node: int, chain: int, formula: int) -> int:
    """The formula, around a node, of: a child passed a chain, and a formula holds there."""
    end = add_stage(state, node, formula)
    known = state[at.LASTS]
    row = at.add_row(state, at.LAST_TABLE, (end, chain, 0, 0, 0))
    lasts = int32s(state, at.TABLES.lasts)
    if row == known:
        lasts[row * at.LAST_ROW + at.LAST_FACT] = add_fact(state, pr.OF_CHILD, -1, -2 - row)
    return add_holds(state, np.int64(lasts[row * at.LAST_ROW + at.LAST_FACT]))
