"""Whether the arrays of a program can be trusted, which may come from a file that anybody wrote.

The other kernels check no index. What they rely on is checked here, once, when a program is loaded:
each index is inside of what it leads into, lists do not overlap (or there would be more in them
than there is room for), what is followed from one to the next comes to an end. That a program also
says what its subscriptions say is not checked. The lengths of arrays are right by now
(``validate``).
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, kernel
from tamis.core.kernel.bits import first, ones
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.matching.engines.automaton.kernels.ranges import (
    are_in,
    are_starts,
    is_fact,
    is_of_value,
)
from tamis.matching.engines.automaton.kernels.value_checks import (
    constants_are_sound,
    grams_are_sound,
    groups_are_sound,
    searched_are_sound,
)
from tamis.matching.engines.automaton.layout import PROGRAM, QUERIES, WIDTH
from tamis.matching.engines.automaton.program import (
    ACCEPTED,
    ACCEPTS,
    ACTION,
    ALSO,
    AND,
    CELLS,
    CHILDREN,
    COLUMNS,
    CONJUNCTION,
    CONSTANT_TRUE,
    COUNT,
    COUNTS,
    DESCENDANTS,
    FIRST_COLUMN,
    FIRST_ROW,
    FORMULA,
    GENERAL,
    GRID_COLUMNS,
    GRIDS,
    NEEDS,
    NODE_COLUMNS,
    NOT,
    OF_CHILD,
    OF_COUNTER,
    OF_DESCENDANT,
    OF_STAGE,
    OF_VALUE,
    OR,
    PASSES,
    RULE_COLUMNS,
    RULES,
    SOURCE,
    SURE,
    TARGET,
    TELLS,
    THIRD,
    WATCHED,
    WATCHES,
)

STACK_MAX = 64
"""Bits of the word that is the stack of a formula."""


@kernel
def faulty_part(state: Int64, depths: Int32) -> int:
    """The number of the first of ``validate.PARTS`` that cannot be trusted, or -1.

    Args:
        depths: room for a number for each node of the strings that values may contain.
    """
    # Each relies on those before it.
    if not facts_are_sound(state):
        return 0
    if not nodes_are_sound(state):
        return 1
    if not tests_are_sound(state):
        return 2
    if not lists_of_nodes_are_sound(state):
        return 3
    if not formulas_are_sound(state):
        return 4
    if not rules_are_sound(state):
        return 5
    if not watches_are_sound(state):
        return 6
    if not grids_are_sound(state):
        return 7
    if not chains_are_sound(state):
        return 8
    if not sparse_rules_are_sound(state):
        return 9
    if not groups_are_sound(state):
        return 10
    if not constants_are_sound(state):
        return 11
    if not grams_are_sound(state):
        return 12
    return -1 if searched_are_sound(state, depths) else 13


@called
def facts_are_sound(state: Int64) -> bool:
    """Kinds of facts follow each other; those OF_COUNTER say the values of counters."""
    ends = int64s(state, PROGRAM.fact_ends)
    before = np.int64(0)
    for kind in range(OF_COUNTER + 1):
        if ends[kind] < before:
            return False
        before = ends[kind]
    counters = int32s(state, PROGRAM.fact_counters)
    bases, limits = int32s(state, PROGRAM.counter_bases), int32s(state, PROGRAM.counter_limits)
    fact = 64 * ends[OF_DESCENDANT] - 1
    at = 0
    for counter in range(len(limits)):
        limit = np.int64(limits[counter])
        if bases[counter] != fact or limit < 1 or limit > len(counters) - at:
            return False
        for i in range(at, at + limit):
            if counters[i] != counter:
                return False
        at += limit
        fact += limit
    return at == len(counters)


# -- nodes -----------------------------------------------------------------------------------------


@called
def nodes_are_sound(state: Int64) -> bool:
    """The lists of nodes follow each other and end where they must; children are no ancestors."""
    nodes, tests = int32s(state, PROGRAM.nodes), len(int32s(state, PROGRAM.tests))
    last = tests * NODE_COLUMNS
    if (
        nodes[ACCEPTED] | nodes[SURE] | nodes[RULES] | nodes[NEEDS] | nodes[WATCHES]
        or nodes[GRIDS]
        or nodes[last + CHILDREN] != tests
        or nodes[last + ACCEPTED] != len(int32s(state, PROGRAM.accepts))
        or nodes[last + SURE] != len(int32s(state, PROGRAM.sure))
        or nodes[last + RULES] * RULE_COLUMNS != len(int32s(state, PROGRAM.rules))
        or nodes[last + NEEDS] != len(int32s(state, PROGRAM.needs))
        or nodes[last + WATCHES] != len(uint64s(state, PROGRAM.watch_words))
        or (nodes[last + GRIDS] + 1) * GRID_COLUMNS != len(int32s(state, PROGRAM.grids))
    ):
        return False
    faults = 0
    for node in range(tests):
        row = node * NODE_COLUMNS
        after = row + NODE_COLUMNS
        faults |= (
            (nodes[row + CHILDREN] <= node)
            | (nodes[row + CHILDREN] > nodes[row + DESCENDANTS])
            | (nodes[row + DESCENDANTS] > nodes[after + CHILDREN])
            | (nodes[row + ACCEPTED] > nodes[after + ACCEPTED])
            | (nodes[row + SURE] > nodes[after + SURE])
            | (nodes[row + RULES] > nodes[after + RULES])
            | (nodes[row + NEEDS] > nodes[after + NEEDS])
            | (nodes[row + WATCHES] > nodes[after + WATCHES])
            | (nodes[row + GRIDS] > nodes[after + GRIDS])
        )
    return faults == 0


@called
def tests_are_sound(state: Int64) -> bool:
    """Tests are of symbols and wildcards that there are, and ascend where they are searched."""
    tests, nodes = int32s(state, PROGRAM.tests), int32s(state, PROGRAM.nodes)
    wildcards = uint8s(state, PROGRAM.wildcards)
    for i in range(len(wildcards)):
        if wildcards[i] > 1:
            return False
    if not are_in(tests, -(len(wildcards) // state[WIDTH]), state[WIDTH]):
        return False
    for node in range(len(tests)):
        row = node * NODE_COLUMNS
        middle, end = np.int64(nodes[row + DESCENDANTS]), nodes[row + NODE_COLUMNS + CHILDREN]
        for child in range(nodes[row + CHILDREN], end - 1):
            if tests[child] >= tests[child + 1] and child + 1 != middle:
                return False
    return True


@called
def lists_of_nodes_are_sound(state: Int64) -> bool:
    """What is accepted are queries; what is sure, and needed, are facts of the right kinds."""
    ends, sure = int64s(state, PROGRAM.fact_ends), int32s(state, PROGRAM.sure)
    for i in range(len(sure)):
        if not is_fact(state, sure[i]) or is_of_value(state, sure[i]):
            return False
    needs = int32s(state, PROGRAM.needs)
    return are_in(int32s(state, PROGRAM.accepts), 0, state[QUERIES]) and are_in(
        needs, 64 * ends[OF_CHILD], 64 * ends[OF_DESCENDANT]
    )


# -- rules -----------------------------------------------------------------------------------------


@called
def formulas_are_sound(state: Int64) -> bool:
    """Formulas are of facts; programs leave one value, and need no more than one word."""
    starts, code = int64s(state, PROGRAM.formula_starts), int32s(state, PROGRAM.formula_code)
    kinds = uint8s(state, PROGRAM.formula_kinds)
    if not are_starts(starts, len(code)):
        return False
    for formula in range(len(kinds)):
        start, end = starts[formula], starts[formula + 1]
        if kinds[formula] == CONJUNCTION:
            for i in range(start, end):
                if not is_fact(state, code[i]):
                    return False
        elif kinds[formula] != GENERAL or not leaves_one_value(state, code, start, end):
            return False
    return True


@called
def leaves_one_value(state: Int64, code: Int32, start: int, end: int) -> bool:
    """Whether a program for the stack is one, and leaves one value."""
    counters = len(int32s(state, PROGRAM.counter_limits))
    depth = 0
    place = start
    while place < end:
        operator = np.int64(code[place])
        if operator >= 0:
            if not is_fact(state, operator):
                return False
            depth += 1
        elif operator == NOT:
            if depth < 1:
                return False
        elif operator in (AND, OR):
            if depth < 2:
                return False
            depth -= 1
        elif operator == COUNT:
            if end - place < 4 or not 0 <= code[place + 1] < counters:
                return False
            if not 0 <= code[place + 2] <= code[place + 3]:
                return False
            depth += 1
            place += 3
        elif operator == CONSTANT_TRUE:
            depth += 1
        else:
            return False
        if depth > STACK_MAX:
            return False
        place += 1
    return depth == 1


@called
def rules_are_sound(state: Int64) -> bool:
    """What rules watch ascends, at each node; what they need, and do, is there."""
    nodes, rules = int32s(state, PROGRAM.nodes), int32s(state, PROGRAM.rules)
    formulas = len(uint8s(state, PROGRAM.formula_kinds))
    for node in range(len(int32s(state, PROGRAM.tests))):
        before = np.int64(-1)
        start = nodes[node * NODE_COLUMNS + RULES]
        for rule in range(start, nodes[(node + 1) * NODE_COLUMNS + RULES]):
            row = rule * RULE_COLUMNS
            watched = np.int64(rules[row + WATCHED])
            if watched < before or not asks_soundly(state, rules, row, formulas):
                return False
            target, source = np.int64(rules[row + TARGET]), np.int64(rules[row + SOURCE])
            if not can_do(state, np.int64(rules[row + ACTION]), target, source):
                return False
            before = watched
    return True


@called
def asks_soundly(state: Int64, rules: Int32, row: int, formulas: int) -> bool:
    """Whether a rule asks for facts, or for none, and for a formula that there is, or for none."""
    watched = np.int64(rules[row + WATCHED])
    if not watched >= -1 or not -1 <= rules[row + FORMULA] < formulas:
        return False
    return watched < 0 or (
        is_fact(state, watched)
        and is_fact(state, rules[row + ALSO])
        and is_fact(state, rules[row + THIRD])
    )


@called
def sparse_rules_are_sound(state: Int64) -> bool:
    """Those of a fact follow each other; what they need, and do, is there, and so are nodes."""
    rules, starts = int32s(state, PROGRAM.sparse_rules), int32s(state, PROGRAM.sparse_starts)
    formulas = len(uint8s(state, PROGRAM.formula_kinds))
    nodes = len(int32s(state, PROGRAM.tests))
    if not are_starts(starts, len(rules) // RULE_COLUMNS):
        return False
    for row in range(0, len(rules), RULE_COLUMNS):
        action, target = np.int64(rules[row + ACTION]), np.int64(rules[row + TARGET])
        if not asks_soundly(state, rules, row, formulas):
            return False
        if not 0 <= rules[row + SOURCE] < nodes:
            return False
        if not can_do(state, TELLS if action == PASSES else action, target, -1):
            return False
        if action == COUNTS:
            return False
    return True


@called
def can_do(state: Int64, action: int, target: int, source: int) -> bool:
    """Whether a rule can do what it says."""
    ends, counters = int64s(state, PROGRAM.fact_ends), len(int32s(state, PROGRAM.counter_limits))
    if action == TELLS:
        return 64 * ends[OF_VALUE] <= target < 64 * ends[OF_DESCENDANT]
    if action == ACCEPTS:
        return 0 <= target < state[QUERIES]
    return action == COUNTS and 0 <= target < counters and -1 <= source < counters


@called
def watches_are_sound(state: Int64) -> bool:
    """At nodes that have their rules indexed: the index leads to each of those that watch, once."""
    nodes, rules = int32s(state, PROGRAM.nodes), int32s(state, PROGRAM.rules)
    run = 0
    for node in range(len(int32s(state, PROGRAM.tests))):
        row = node * NODE_COLUMNS
        low, high = np.int64(nodes[row + WATCHES]), np.int64(nodes[row + NODE_COLUMNS + WATCHES])
        if low < high:
            rule, end = np.int64(nodes[row + RULES]), np.int64(nodes[row + NODE_COLUMNS + RULES])
            while rule < end and rules[rule * RULE_COLUMNS + WATCHED] < 0:
                rule += 1
            run = end_of_runs(state, low, high, rule, end, run)
            if run < 0:
                return False
    return run == len(int32s(state, PROGRAM.runs))


@called
def end_of_runs(state: Int64, low: int, high: int, rule: int, end: int, run: int) -> int:
    """Where the runs of a node end, or -1 if they are not those of its rules.

    Args:
        low, high: its words.
        rule, end: those of its rules that watch a fact.
        run: where its runs begin.
    """
    rules, runs = int32s(state, PROGRAM.rules), int32s(state, PROGRAM.runs)
    words, ranks = uint64s(state, PROGRAM.watch_words), int32s(state, PROGRAM.watch_ranks)
    places = int32s(state, PROGRAM.watch_places)
    now, at = run, rule
    for i in range(low, high):
        word = words[i]
        if word == U(0) or ranks[i] != now or (i > low and places[i - 1] >= places[i]):
            return -1
        if ones(word) >= len(runs) - now:
            return -1
        while word != U(0):
            if runs[now] != at or at == end:
                return -1
            fact = 64 * np.int64(places[i]) + first(word)
            word &= word - U(1)
            if rules[at * RULE_COLUMNS + WATCHED] != fact:
                return -1
            while at < end and rules[at * RULE_COLUMNS + WATCHED] == fact:
                at += 1
            now += 1
    return now + 1 if at == end and runs[now] == end else -1


@called
def grids_are_sound(state: Int64) -> bool:
    """Rows and columns are facts of children; cells ascend through all queries that are sliced.

    So no two slices overlap that are taken at one node, nor at several, and there is room for all.
    """
    grids, cells = int32s(state, PROGRAM.grids), int32s(state, PROGRAM.grid_cells)
    ends, rows = int64s(state, PROGRAM.fact_ends), int32s(state, PROGRAM.grid_rows)
    first, behind = 64 * ends[OF_STAGE], 64 * ends[OF_CHILD]
    last = len(grids) - GRID_COLUMNS
    if (
        grids[FIRST_ROW] | grids[CELLS]
        or grids[last + FIRST_ROW] != len(rows)
        or grids[last + CELLS] != len(cells)
    ):
        return False
    for at in range(0, last, GRID_COLUMNS):
        column, columns = np.int64(grids[at + FIRST_COLUMN]), np.int64(grids[at + COLUMNS])
        count = np.int64(grids[at + GRID_COLUMNS + FIRST_ROW]) - grids[at + FIRST_ROW]
        if (
            count < 0
            or columns < 0
            or not first <= column <= behind - columns
            or grids[at + CELLS] + count * (columns + 1) != grids[at + GRID_COLUMNS + CELLS]
        ):
            return False
    sliced = int32s(state, PROGRAM.sliced)
    if not are_in(rows, first, behind) or not are_in(sliced, 0, state[QUERIES]):
        return False
    return are_starts(cells, len(sliced)) if len(cells) else len(sliced) == 0


@called
def chains_are_sound(state: Int64) -> bool:
    """Chains begin with facts OF_STAGE; their stages count no further than their counters."""
    ends, limits = int64s(state, PROGRAM.fact_ends), int32s(state, PROGRAM.counter_limits)
    numbers, starts = int32s(state, PROGRAM.chain_numbers), int64s(state, PROGRAM.stage_starts)
    stages, lasts = int32s(state, PROGRAM.stages), int32s(state, PROGRAM.lasts)
    chains = len(starts) - 1
    if not (
        are_starts(int64s(state, PROGRAM.chain_starts), len(numbers))
        and are_starts(starts, len(stages) // 3)
        and are_starts(int64s(state, PROGRAM.last_starts), len(lasts) // 2)
        and are_in(numbers, 0, chains)
    ):
        return False
    for chain in range(chains):
        if starts[chain] == starts[chain + 1]:
            return False
    for i in range(0, len(stages), 3):
        if not (
            64 * ends[OF_VALUE] <= stages[i] < 64 * ends[OF_STAGE]
            and 0 <= stages[i + 1] < len(limits)
            and 0 < stages[i + 2] <= limits[stages[i + 1]]
        ):
            return False
    for i in range(0, len(lasts), 2):
        if not (
            0 <= lasts[i] < chains and 64 * ends[OF_STAGE] <= lasts[i + 1] < 64 * ends[OF_CHILD]
        ):
            return False
    return True
