"""What queries are compiled to: rows, formulas and strings, each stored once.

The rows are nodes of the trie, facts, comparisons of values, and rules.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.compile import layout as at
from tamis.matching.engines.automaton.kernels.facts import GOLDEN, MIXER, joined

# -- rows ------------------------------------------------------------------------------------------


@inlined
def hash_row(keys: int, a: int, b: int, c: int, d: int, e: int) -> np.uint64:
    """The hash of a row's first numbers."""
    hash = joined(MIXER, a)
    if keys > 1:
        hash = joined(hash, b)
    if keys > 2:
        hash = joined(hash, c)
    if keys > 3:
        hash = joined(joined(hash, d), e)
    return hash ^ hash >> U(32)


@inlined
def find_row(
    rows: Int32, slots: Int32, width: int, keys: int, a: int, b: int, c: int, d: int, e: int
) -> int:
    """The number of the row with these first numbers; or minus one minus the slot it would have."""
    mask = U(len(slots) - 1)
    slot = hash_row(keys, a, b, c, d, e) & mask
    while slots[slot] != 0:
        number = np.int64(slots[slot]) - 1
        row = number * width
        if (
            rows[row] == a
            and (keys < 2 or rows[row + 1] == b)
            and (keys < 3 or rows[row + 2] == c)
            and (keys < 4 or (rows[row + 3] == d and rows[row + 4] == e))
        ):
            return number
        slot = (slot + U(1)) & mask
    return -1 - np.int64(slot)


@inlined
def add_row(
    state: Int64,
    place: int,
    slots_place: int,
    count: int,
    width: int,
    keys: int,
    a: int,
    b: int,
    c: int,
    d: int,
    e: int,
) -> int:
    """The number of a row, which is added where it is new; there must be room.

    Args:
        count: the scalar that says how many rows there are.
        keys: how many of the numbers say which row it is: 1, 2, 3 or 5.
    """
    rows, slots = int32s(state, place), int32s(state, slots_place)
    number = find_row(rows, slots, width, keys, a, b, c, d, e)
    if number >= 0:
        return number
    slot = -1 - number
    number = state[count]
    state[count] += 1
    slots[slot] = number + 1
    row = number * width
    rows[row] = a
    if keys > 1:
        rows[row + 1] = b
    if keys > 2:
        rows[row + 2] = c
    if keys > 3:
        rows[row + 3] = d
        rows[row + 4] = e
    return number


@kernel
def rehash_rows(rows: Int32, width: int, keys: int, count: int, slots: Int32) -> None:
    """Put all rows into an empty hash table."""
    mask = U(len(slots) - 1)
    for number in range(count):
        row = number * width
        b = rows[row + 1] if keys > 1 else 0
        c = rows[row + 2] if keys > 2 else 0
        d = rows[row + 3] if keys > 3 else 0
        e = rows[row + 4] if keys > 3 else 0
        slot = hash_row(keys, rows[row], b, c, d, e) & mask
        while slots[slot] != 0:
            slot = (slot + U(1)) & mask
        slots[slot] = number + 1


# -- programs of formulas --------------------------------------------------------------------------


@inlined
def hash_code(kind: int, code: Int32, start: int, end: int) -> np.uint64:
    """The hash of a formula."""
    hash = joined(MIXER, kind)
    for i in range(start, end):
        hash = joined(hash, code[i])
    return hash ^ hash >> U(32)


@called
def find_formula(state: Int64, kind: int, code: Int32, length: int) -> int:
    """The number of a formula; or minus one minus the slot that it would have."""
    slots, starts = int32s(state, at.TABLES.formula_slots), int64s(state, at.TABLES.formula_starts)
    kinds, known = uint8s(state, at.TABLES.formula_kinds), int32s(state, at.TABLES.formula_code)
    mask = U(len(slots) - 1)
    slot = hash_code(kind, code, 0, length) & mask
    while slots[slot] != 0:
        number = np.int64(slots[slot]) - 1
        start = starts[number]
        if kinds[number] == kind and starts[number + 1] - start == length:
            i = 0
            while i < length and known[start + i] == code[i]:
                i += 1
            if i == length:
                return number
        slot = (slot + U(1)) & mask
    return -1 - np.int64(slot)


@called
def add_formula(state: Int64, kind: int, code: Int32, length: int, depth: int) -> int:
    """The number of a formula, which is added where it is new; there must be room."""
    number = find_formula(state, kind, code, length)
    if number >= 0:
        return number
    slot = -1 - number
    number = state[at.FORMULAS]
    int32s(state, at.TABLES.formula_slots)[slot] = number + 1
    uint8s(state, at.TABLES.formula_kinds)[number] = kind
    uint8s(state, at.TABLES.formula_depths)[number] = depth
    start = state[at.CODE]
    known = int32s(state, at.TABLES.formula_code)
    for i in range(length):
        known[start + i] = code[i]
    int64s(state, at.TABLES.formula_starts)[number + 1] = start + length
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
    """Put all formulas into their hash table, which is empty."""
    slots, starts = int32s(state, at.TABLES.formula_slots), int64s(state, at.TABLES.formula_starts)
    kinds, known = uint8s(state, at.TABLES.formula_kinds), int32s(state, at.TABLES.formula_code)
    mask = U(len(slots) - 1)
    for number in range(state[at.FORMULAS]):
        slot = hash_code(kinds[number], known, starts[number], starts[number + 1]) & mask
        while slots[slot] != 0:
            slot = (slot + U(1)) & mask
        slots[slot] = number + 1


# -- strings ---------------------------------------------------------------------------------------


@inlined
def hash_bytes(text: Bytes, start: int, end: int) -> np.uint64:
    """The hash of a string."""
    hash = MIXER
    for i in range(start, end):
        hash = (hash ^ U(text[i])) * GOLDEN
        hash ^= hash >> U(29)
    return hash ^ hash >> U(32)


@called
def add_string(state: Int64, text: Bytes, first: int, last: int) -> int:
    """The number of a string, which is added where it is new; there must be room."""
    slots, starts = int32s(state, at.TABLES.string_slots), int64s(state, at.TABLES.string_starts)
    known = uint8s(state, at.TABLES.string_bytes)
    mask = U(len(slots) - 1)
    slot = hash_bytes(text, first, last) & mask
    length = last - first
    while slots[slot] != 0:
        number = np.int64(slots[slot]) - 1
        start = starts[number]
        if starts[number + 1] - start == length:
            i = 0
            while i < length and known[start + i] == text[first + i]:
                i += 1
            if i == length:
                return number
        slot = (slot + U(1)) & mask
    number = state[at.STRINGS]
    slots[slot] = number + 1
    start = state[at.BYTES]
    for i in range(length):
        known[start + i] = text[first + i]
    starts[number + 1] = start + length
    state[at.STRINGS] += 1
    state[at.BYTES] += length
    return number


@kernel
def add_strings(state: Int64, starts: Int64, text: Bytes, numbers: Int32) -> None:
    """The numbers of many strings; there must be room for all."""
    for i in range(len(numbers)):
        numbers[i] = add_string(state, text, starts[i], starts[i + 1])


@kernel
def rehash_strings(state: Int64) -> None:
    """Put all strings into their hash table, which is empty."""
    slots, starts = int32s(state, at.TABLES.string_slots), int64s(state, at.TABLES.string_starts)
    known = uint8s(state, at.TABLES.string_bytes)
    mask = U(len(slots) - 1)
    for number in range(state[at.STRINGS]):
        slot = hash_bytes(known, starts[number], starts[number + 1]) & mask
        while slots[slot] != 0:
            slot = (slot + U(1)) & mask
        slots[slot] = number + 1


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
    return add_row(
        state,
        at.TABLES.nodes,
        at.TABLES.node_slots,
        at.NODES,
        at.NODE_ROW,
        3,
        node,
        is_below,
        test,
        0,
        0,
    )


@called
def fact_of(state: Int64, kind: int, test: int, formula: int) -> int:
    """The number of a fact."""
    return add_row(
        state,
        at.TABLES.facts,
        at.TABLES.fact_slots,
        at.FACTS,
        at.FACT_ROW,
        3,
        kind,
        test,
        formula,
        0,
        0,
    )


@called
def rule(state: Int64, node: int, formula: int, action: int, target: int, source: int) -> None:
    """What follows where a node is reached and a formula holds there."""
    add_row(
        state,
        at.TABLES.rules,
        at.TABLES.rule_slots,
        at.RULES,
        at.RULE_ROW,
        5,
        node,
        formula,
        action,
        target,
        source,
    )


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
    row = add_row(
        state,
        at.TABLES.values,
        at.TABLES.value_slots,
        at.VALUES,
        at.VALUE_ROW,
        3,
        group,
        operator,
        literal,
        0,
        0,
    )
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
    """The chain of one stage, which the first child passes that tells a fact.

    Args:
        first: the fact; or, below 0, what names a chain that the builder knows the stages of.
    """
    known = state[at.CHAINS]
    chain = add_row(
        state,
        at.TABLES.chains,
        at.TABLES.chain_slots,
        at.CHAINS,
        at.CHAIN_ROW,
        1,
        first,
        0,
        0,
        0,
        0,
    )
    if chain == known:
        counter = new_counter(state, 1) if first >= 0 else -1
        int32s(state, at.TABLES.chains)[chain * at.CHAIN_ROW + at.CHAIN_COUNTER] = counter
    return chain


@called
def passed(state: Int64, node: int, chain: int, formula: int) -> int:
    """The formula, around a node, of: a child passed a chain, and a formula holds there."""
    end = stage(state, node, formula)
    known = state[at.LASTS]
    row = add_row(
        state, at.TABLES.lasts, at.TABLES.last_slots, at.LASTS, at.LAST_ROW, 2, end, chain, 0, 0, 0
    )
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
    """See ``told``."""
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
    return add_row(
        state,
        at.TABLES.numbers,
        at.TABLES.number_slots,
        at.NUMBERS,
        at.NUMBER_ROW,
        2,
        low,
        high,
        0,
        0,
        0,
    )


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
