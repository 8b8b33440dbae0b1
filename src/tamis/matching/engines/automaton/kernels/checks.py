"""Whether the arrays of a program, or of a cache, can be trusted: they may come from any file.

The other kernels check no index. What they rely on is checked here, once, when a file is loaded:
each index is inside of what it leads into, lists do not overlap (or there would be more in them
than there is room for), what is followed from one to the next comes to an end. That a program also
says what its subscriptions say is not checked. Types and lengths are right by now (``check``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, kernel
from tamis.core.kernel.bits import first, last, ones
from tamis.core.kernel.record import float64s, int32s, int64s, uint8s, uint64s
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels.facts import UNSLICED
from tamis.matching.engines.automaton.kernels.values import GRAM_BYTES, TAG


@called
def are_in(values: Any, start: int, end: int) -> bool:
    """Whether all numbers are in a range."""
    faults = 0
    for i in range(len(values)):
        faults += (values[i] < start) | (values[i] >= end)
    return faults == 0


@called
def are_starts(starts: Any, length: int) -> bool:
    """Whether numbers ascend from 0 to the length of what they lead into."""
    last = len(starts) - 1
    faults = (starts[0] != 0) | (starts[last] != length)
    for i in range(last):
        faults |= starts[i] > starts[i + 1]
    return faults == 0


@called
def is_of_value(state: Int64, fact: int) -> bool:
    """Whether a fact may be one about a value."""
    ends = int64s(state, at.PROGRAM.fact_ends)
    return 64 * ends[pr.OF_ITSELF] <= fact < 64 * ends[pr.OF_VALUE]


@called
def is_fact(state: Int64, fact: int) -> bool:
    """Whether there may be a fact of a number."""
    ends = int64s(state, at.PROGRAM.fact_ends)
    groups = len(int32s(state, at.PROGRAM.groups)) // pr.GROUP_COLUMNS - 1
    last = 64 * ends[pr.OF_DESCENDANT] + len(int32s(state, at.PROGRAM.fact_counters))
    return 0 <= fact < last and (fact < groups or fact >= 64 * ends[pr.OF_GROUP])


STACK_MAX = 64
"""Bits of the word that is the stack of a formula."""


@kernel
def program_fault(state: Int64, depths: Int32) -> int:
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
    ends = int64s(state, at.PROGRAM.fact_ends)
    before = np.int64(0)
    for kind in range(pr.OF_COUNTER + 1):
        if ends[kind] < before:
            return False
        before = ends[kind]
    counters = int32s(state, at.PROGRAM.fact_counters)
    bases, limits = (
        int32s(state, at.PROGRAM.counter_bases),
        int32s(state, at.PROGRAM.counter_limits),
    )
    fact = 64 * ends[pr.OF_DESCENDANT] - 1
    index = 0
    for counter in range(len(limits)):
        limit = np.int64(limits[counter])
        if bases[counter] != fact or limit < 1 or limit > len(counters) - index:
            return False
        for i in range(index, index + limit):
            if counters[i] != counter:
                return False
        index += limit
        fact += limit
    return index == len(counters)


# -- nodes -----------------------------------------------------------------------------------------


@called
def nodes_are_sound(state: Int64) -> bool:
    """The lists of nodes follow each other and end where they must; children are no ancestors."""
    nodes, tests = int32s(state, at.PROGRAM.nodes), len(int32s(state, at.PROGRAM.tests))
    last = tests * pr.NODE_COLUMNS
    if (
        nodes[pr.ACCEPTED] | nodes[pr.SURE] | nodes[pr.RULES] | nodes[pr.NEEDS] | nodes[pr.WATCHES]
        or nodes[pr.GRIDS]
        or nodes[last + pr.CHILDREN] != tests
        or nodes[last + pr.ACCEPTED] != len(int32s(state, at.PROGRAM.accepts))
        or nodes[last + pr.SURE] != len(int32s(state, at.PROGRAM.sure))
        or nodes[last + pr.RULES] * pr.RULE_COLUMNS != len(int32s(state, at.PROGRAM.rules))
        or nodes[last + pr.NEEDS] != len(int32s(state, at.PROGRAM.needs))
        or nodes[last + pr.WATCHES] != len(uint64s(state, at.PROGRAM.watch_words))
        or (nodes[last + pr.GRIDS] + 1) * pr.GRID_COLUMNS != len(int32s(state, at.PROGRAM.grids))
    ):
        return False
    faults = 0
    for node in range(tests):
        row = node * pr.NODE_COLUMNS
        after = row + pr.NODE_COLUMNS
        faults |= (
            (nodes[row + pr.CHILDREN] <= node)
            | (nodes[row + pr.CHILDREN] > nodes[row + pr.DESCENDANTS])
            | (nodes[row + pr.DESCENDANTS] > nodes[after + pr.CHILDREN])
            | (nodes[row + pr.ACCEPTED] > nodes[after + pr.ACCEPTED])
            | (nodes[row + pr.SURE] > nodes[after + pr.SURE])
            | (nodes[row + pr.RULES] > nodes[after + pr.RULES])
            | (nodes[row + pr.NEEDS] > nodes[after + pr.NEEDS])
            | (nodes[row + pr.WATCHES] > nodes[after + pr.WATCHES])
            | (nodes[row + pr.GRIDS] > nodes[after + pr.GRIDS])
        )
    return faults == 0


@called
def tests_are_sound(state: Int64) -> bool:
    """Tests are of symbols and wildcards that there are, and ascend where they are searched."""
    tests, nodes = int32s(state, at.PROGRAM.tests), int32s(state, at.PROGRAM.nodes)
    wildcards = uint8s(state, at.PROGRAM.wildcards)
    for i in range(len(wildcards)):
        if wildcards[i] > 1:
            return False
    if not are_in(tests, -(len(wildcards) // state[at.WIDTH]), state[at.WIDTH]):
        return False
    for node in range(len(tests)):
        row = node * pr.NODE_COLUMNS
        middle, end = (
            np.int64(nodes[row + pr.DESCENDANTS]),
            nodes[row + pr.NODE_COLUMNS + pr.CHILDREN],
        )
        for child in range(nodes[row + pr.CHILDREN], end - 1):
            if tests[child] >= tests[child + 1] and child + 1 != middle:
                return False
    return True


@called
def lists_of_nodes_are_sound(state: Int64) -> bool:
    """What is accepted are queries; what is sure, and needed, are facts of the right kinds."""
    ends, sure = int64s(state, at.PROGRAM.fact_ends), int32s(state, at.PROGRAM.sure)
    for i in range(len(sure)):
        if not is_fact(state, sure[i]) or is_of_value(state, sure[i]):
            return False
    needs = int32s(state, at.PROGRAM.needs)
    return are_in(int32s(state, at.PROGRAM.accepts), 0, state[at.QUERIES]) and are_in(
        needs, 64 * ends[pr.OF_CHILD], 64 * ends[pr.OF_DESCENDANT]
    )


# -- rules -----------------------------------------------------------------------------------------


@called
def formulas_are_sound(state: Int64) -> bool:
    """Formulas are of facts; programs leave one value, and need no more than one word."""
    starts, code = int64s(state, at.PROGRAM.formula_starts), int32s(state, at.PROGRAM.formula_code)
    kinds = uint8s(state, at.PROGRAM.formula_kinds)
    if not are_starts(starts, len(code)):
        return False
    for formula in range(len(kinds)):
        start, end = starts[formula], starts[formula + 1]
        if kinds[formula] == pr.CONJUNCTION:
            for i in range(start, end):
                if not is_fact(state, code[i]):
                    return False
        elif kinds[formula] != pr.GENERAL or not leaves_one_value(state, code, start, end):
            return False
    return True


@called
def leaves_one_value(state: Int64, code: Int32, start: int, end: int) -> bool:
    """Whether a program for the stack is one, and leaves one value."""
    counters = len(int32s(state, at.PROGRAM.counter_limits))
    depth = 0
    place = start
    while place < end:
        operator = np.int64(code[place])
        if operator >= 0:
            if not is_fact(state, operator):
                return False
            depth += 1
        elif operator == pr.NOT:
            if depth < 1:
                return False
        elif operator in (pr.AND, pr.OR):
            if depth < 2:
                return False
            depth -= 1
        elif operator == pr.COUNT:
            if end - place < 4 or not 0 <= code[place + 1] < counters:
                return False
            if not 0 <= code[place + 2] <= code[place + 3]:
                return False
            depth += 1
            place += 3
        elif operator == pr.CONSTANT_TRUE:
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
    nodes, rules = int32s(state, at.PROGRAM.nodes), int32s(state, at.PROGRAM.rules)
    formulas = len(uint8s(state, at.PROGRAM.formula_kinds))
    for node in range(len(int32s(state, at.PROGRAM.tests))):
        before = np.int64(-1)
        start = nodes[node * pr.NODE_COLUMNS + pr.RULES]
        for rule in range(start, nodes[(node + 1) * pr.NODE_COLUMNS + pr.RULES]):
            row = rule * pr.RULE_COLUMNS
            watched = np.int64(rules[row + pr.WATCHED])
            if watched < before or not asks_soundly(state, rules, row, formulas):
                return False
            target, source = np.int64(rules[row + pr.TARGET]), np.int64(rules[row + pr.SOURCE])
            if not can_do(state, np.int64(rules[row + pr.ACTION]), target, source):
                return False
            before = watched
    return True


@called
def asks_soundly(state: Int64, rules: Int32, row: int, formulas: int) -> bool:
    """Whether a rule asks for facts, or for none, and for a formula that there is, or for none."""
    watched = np.int64(rules[row + pr.WATCHED])
    if not watched >= -1 or not -1 <= rules[row + pr.FORMULA] < formulas:
        return False
    return watched < 0 or (
        is_fact(state, watched)
        and is_fact(state, rules[row + pr.ALSO])
        and is_fact(state, rules[row + pr.THIRD])
    )


@called
def sparse_rules_are_sound(state: Int64) -> bool:
    """Those of a fact follow each other; what they need, and do, is there, and so are nodes."""
    rules, starts = int32s(state, at.PROGRAM.sparse_rules), int32s(state, at.PROGRAM.sparse_starts)
    formulas = len(uint8s(state, at.PROGRAM.formula_kinds))
    nodes = len(int32s(state, at.PROGRAM.tests))
    if not are_starts(starts, len(rules) // pr.RULE_COLUMNS):
        return False
    for row in range(0, len(rules), pr.RULE_COLUMNS):
        action, target = np.int64(rules[row + pr.ACTION]), np.int64(rules[row + pr.TARGET])
        if not asks_soundly(state, rules, row, formulas):
            return False
        if not 0 <= rules[row + pr.SOURCE] < nodes:
            return False
        if not can_do(state, pr.TELLS if action == pr.PASSES else action, target, -1):
            return False
        if action == pr.COUNTS:
            return False
    return True


@called
def can_do(state: Int64, action: int, target: int, source: int) -> bool:
    """Whether a rule can do what it says."""
    ends, counters = (
        int64s(state, at.PROGRAM.fact_ends),
        len(int32s(state, at.PROGRAM.counter_limits)),
    )
    if action == pr.TELLS:
        return 64 * ends[pr.OF_VALUE] <= target < 64 * ends[pr.OF_DESCENDANT]
    if action == pr.ACCEPTS:
        return 0 <= target < state[at.QUERIES]
    return action == pr.COUNTS and 0 <= target < counters and -1 <= source < counters


@called
def watches_are_sound(state: Int64) -> bool:
    """At nodes that have their rules indexed: the index leads to each of those that watch, once."""
    nodes, rules = int32s(state, at.PROGRAM.nodes), int32s(state, at.PROGRAM.rules)
    run = 0
    for node in range(len(int32s(state, at.PROGRAM.tests))):
        row = node * pr.NODE_COLUMNS
        low, high = (
            np.int64(nodes[row + pr.WATCHES]),
            np.int64(nodes[row + pr.NODE_COLUMNS + pr.WATCHES]),
        )
        if low < high:
            rule, end = (
                np.int64(nodes[row + pr.RULES]),
                np.int64(nodes[row + pr.NODE_COLUMNS + pr.RULES]),
            )
            while rule < end and rules[rule * pr.RULE_COLUMNS + pr.WATCHED] < 0:
                rule += 1
            run = end_of_runs(state, low, high, rule, end, run)
            if run < 0:
                return False
    return run == len(int32s(state, at.PROGRAM.runs))


@called
def end_of_runs(state: Int64, low: int, high: int, rule: int, end: int, run: int) -> int:
    """Where the runs of a node end, or -1 if they are not those of its rules.

    Args:
        low, high: its words.
        rule, end: those of its rules that watch a fact.
        run: where its runs begin.
    """
    rules, runs = int32s(state, at.PROGRAM.rules), int32s(state, at.PROGRAM.runs)
    words, ranks = uint64s(state, at.PROGRAM.watch_words), int32s(state, at.PROGRAM.watch_ranks)
    places = int32s(state, at.PROGRAM.watch_places)
    now, index = run, rule
    for i in range(low, high):
        word = words[i]
        if word == U(0) or ranks[i] != now or (i > low and places[i - 1] >= places[i]):
            return -1
        if ones(word) >= len(runs) - now:
            return -1
        while word != U(0):
            if runs[now] != index or index == end:
                return -1
            fact = 64 * np.int64(places[i]) + first(word)
            word &= word - U(1)
            if rules[index * pr.RULE_COLUMNS + pr.WATCHED] != fact:
                return -1
            while index < end and rules[index * pr.RULE_COLUMNS + pr.WATCHED] == fact:
                index += 1
            now += 1
    return now + 1 if index == end and runs[now] == end else -1


@called
def grids_are_sound(state: Int64) -> bool:
    """Rows and columns are facts of children; cells ascend through all queries that are sliced.

    So no two slices overlap that are taken at one node, nor at several, and there is room for all.
    """
    grids, cells = int32s(state, at.PROGRAM.grids), int32s(state, at.PROGRAM.grid_cells)
    ends, rows = int64s(state, at.PROGRAM.fact_ends), int32s(state, at.PROGRAM.grid_rows)
    first, behind = 64 * ends[pr.OF_STAGE], 64 * ends[pr.OF_CHILD]
    last = len(grids) - pr.GRID_COLUMNS
    if (
        grids[pr.FIRST_ROW] | grids[pr.CELLS]
        or grids[last + pr.FIRST_ROW] != len(rows)
        or grids[last + pr.CELLS] != len(cells)
    ):
        return False
    for index in range(0, last, pr.GRID_COLUMNS):
        column, columns = (
            np.int64(grids[index + pr.FIRST_COLUMN]),
            np.int64(grids[index + pr.COLUMNS]),
        )
        count = (
            np.int64(grids[index + pr.GRID_COLUMNS + pr.FIRST_ROW]) - grids[index + pr.FIRST_ROW]
        )
        if (
            count < 0
            or columns < 0
            or not first <= column <= behind - columns
            or grids[index + pr.CELLS] + count * (columns + 1)
            != grids[index + pr.GRID_COLUMNS + pr.CELLS]
        ):
            return False
    sliced = int32s(state, at.PROGRAM.sliced)
    if not are_in(rows, first, behind) or not are_in(sliced, 0, state[at.QUERIES]):
        return False
    return are_starts(cells, len(sliced)) if len(cells) else len(sliced) == 0


@called
def chains_are_sound(state: Int64) -> bool:
    """Chains begin with facts OF_STAGE; their stages count no further than their counters."""
    ends, limits = int64s(state, at.PROGRAM.fact_ends), int32s(state, at.PROGRAM.counter_limits)
    numbers, starts = (
        int32s(state, at.PROGRAM.chain_numbers),
        int64s(state, at.PROGRAM.stage_starts),
    )
    stages, lasts = int32s(state, at.PROGRAM.stages), int32s(state, at.PROGRAM.lasts)
    chains = len(starts) - 1
    if not (
        are_starts(int64s(state, at.PROGRAM.chain_starts), len(numbers))
        and are_starts(starts, len(stages) // 3)
        and are_starts(int64s(state, at.PROGRAM.last_starts), len(lasts) // 2)
        and are_in(numbers, 0, chains)
    ):
        return False
    for chain in range(chains):
        if starts[chain] == starts[chain + 1]:
            return False
    for i in range(0, len(stages), 3):
        if not (
            64 * ends[pr.OF_VALUE] <= stages[i] < 64 * ends[pr.OF_STAGE]
            and 0 <= stages[i + 1] < len(limits)
            and 0 < stages[i + 2] <= limits[stages[i + 1]]
        ):
            return False
    for i in range(0, len(lasts), 2):
        if not (
            0 <= lasts[i] < chains
            and 64 * ends[pr.OF_STAGE] <= lasts[i + 1] < 64 * ends[pr.OF_CHILD]
        ):
            return False
    return True


@called
def groups_are_sound(state: Int64) -> bool:
    """What is asked of values: thresholds and lengths of prefixes ascend, in each group."""
    groups, thresholds = int32s(state, at.PROGRAM.groups), float64s(state, at.PROGRAM.thresholds)
    lengths, compared = (
        int32s(state, at.PROGRAM.prefix_lengths),
        int32s(state, at.PROGRAM.comparisons),
    )
    last = len(groups) - pr.GROUP_COLUMNS
    if (
        groups[pr.LENGTHS] | groups[pr.THRESHOLDS] | groups[pr.COMPARISONS] | groups[pr.CLASSES]
        or groups[last + pr.LENGTHS] != len(lengths)
        or groups[last + pr.THRESHOLDS] != len(thresholds)
        or groups[last + pr.COMPARISONS] * pr.COMPARISON_COLUMNS != len(compared)
    ):
        return False
    # All of them, before any is followed.
    for row in range(0, last, pr.GROUP_COLUMNS):
        after = row + pr.GROUP_COLUMNS
        count = np.int64(groups[after + pr.THRESHOLDS]) - groups[row + pr.THRESHOLDS]
        if (
            not 0 <= groups[row + pr.FUNCTION] <= pr.NORMALIZED | pr.LENGTH
            or groups[row + pr.LENGTHS] > groups[after + pr.LENGTHS]
            or count < 0
            or groups[row + pr.COMPARISONS] > groups[after + pr.COMPARISONS]
            or groups[row + pr.CLASSES] + 2 * count + 2 != groups[after + pr.CLASSES]
        ):
            return False
    for row in range(0, last, pr.GROUP_COLUMNS):
        if not is_group_sound(state, row, row + pr.GROUP_COLUMNS):
            return False
    return True


@called
def is_group_sound(state: Int64, row: int, after: int) -> bool:
    """What ``groups_are_sound`` says of one group, whose lists are inside."""
    groups, thresholds = int32s(state, at.PROGRAM.groups), float64s(state, at.PROGRAM.thresholds)
    lengths, compared = (
        int32s(state, at.PROGRAM.prefix_lengths),
        int32s(state, at.PROGRAM.comparisons),
    )
    before = np.int64(-1)
    for i in range(groups[row + pr.LENGTHS], groups[after + pr.LENGTHS]):
        if lengths[i] <= before:
            return False
        before = np.int64(lengths[i])
    if before > groups[row + pr.LONGEST]:
        return False
    start, end = np.int64(groups[row + pr.THRESHOLDS]), np.int64(groups[after + pr.THRESHOLDS])
    for i in range(start, end):
        if thresholds[i] != thresholds[i] or (i > start and thresholds[i - 1] >= thresholds[i]):
            return False
    for comparison in range(groups[row + pr.COMPARISONS], groups[after + pr.COMPARISONS]):
        index = comparison * pr.COMPARISON_COLUMNS
        if not (
            0 < compared[index + pr.OPERATOR] < pr.LESS | pr.EQUAL | pr.MORE
            and 0 <= compared[index + pr.THRESHOLD] < end - start
            and is_of_value(state, compared[index + pr.FACT])
        ):
            return False
    return True


@called
def constants_are_sound(state: Int64) -> bool:
    """Constants are in groups, not longer than these know, and about values."""
    groups, constants = int32s(state, at.PROGRAM.groups), int32s(state, at.PROGRAM.constants)
    slots = uint64s(state, at.PROGRAM.constant_slots)
    last = len(constants) - pr.CONSTANT_ROW
    if constants[pr.FIRST_BYTE] != 0:
        return False
    if constants[last + pr.FIRST_BYTE] != len(uint8s(state, at.PROGRAM.constant_bytes)):
        return False
    for row in range(0, last, pr.CONSTANT_ROW):
        group = np.int64(constants[row + pr.ASKED_OF] >> 1)
        if not 0 <= group < len(groups) // pr.GROUP_COLUMNS - 1:
            return False
        length = constants[row + pr.CONSTANT_ROW + pr.FIRST_BYTE] - np.int64(
            constants[row + pr.FIRST_BYTE]
        )
        if not 0 <= length <= groups[group * pr.GROUP_COLUMNS + pr.LONGEST]:
            return False
        if not is_of_value(state, constants[row + pr.MEANS]):
            return False
    used = faults = 0
    for i in range(len(slots)):
        used += slots[i] != U(0)
        faults += slots[i] & ~TAG > U(last // pr.CONSTANT_ROW)
        faults += slots[i] != U(0) and slots[i] & ~TAG == U(0)
    return used == last // pr.CONSTANT_ROW and used < len(slots) and faults == 0


# -- strings that values contain -------------------------------------------------------------------


@called
def grams_are_sound(state: Int64) -> bool:
    """Strings with grams are in groups, follow each other, and are about values."""
    groups, grams = int32s(state, at.PROGRAM.groups), int32s(state, at.PROGRAM.grams)
    slots = int32s(state, at.PROGRAM.gram_slots)
    count = len(grams) // pr.GRAM_ROW - 1
    end = count * pr.GRAM_ROW
    if grams[pr.BEGIN] != 0 or grams[end + pr.BEGIN] != len(uint8s(state, at.PROGRAM.gram_bytes)):
        return False
    for row in range(0, end, pr.GRAM_ROW):
        length = np.int64(grams[row + pr.GRAM_ROW + pr.BEGIN]) - grams[row + pr.BEGIN]
        if not (
            0 <= grams[row + pr.GROUP] < len(groups) // pr.GROUP_COLUMNS - 1
            and 0 <= grams[row + pr.OFFSET] <= length - GRAM_BYTES
            and is_of_value(state, grams[row + pr.SAYS])
        ):
            return False
    used = 0
    for i in range(len(slots)):
        used += slots[i] != 0
    return used < len(slots) and are_in(slots, 0, count + 1)


@called
def searched_are_sound(state: Int64, depths: Int32) -> bool:
    """Tries are numbered from their roots on; what leads from node to node does so without end.

    Args:
        depths: room for a number for each node.
    """
    roots = roots_of_groups(state)
    if not 0 <= roots < min(len(depths), near_nodes(state)):
        return False
    return (
        edges_are_sound(state, roots, depths)
        and links_are_sound(state, roots, depths)
        and rows_are_sound(state, depths)
    )


@called
def near_nodes(state: Int64) -> int:
    """For how many nodes it is written down where letters lead."""
    width = np.int64(uint8s(state, at.PROGRAM.searched_letters)[256])
    return len(int32s(state, at.PROGRAM.searched_rows)) // width


@called
def roots_of_groups(state: Int64) -> int:
    """How many roots there are, which groups have in their order; or -1 if they have not."""
    groups = int32s(state, at.PROGRAM.groups)
    roots = 0
    for row in range(0, len(groups) - pr.GROUP_COLUMNS, pr.GROUP_COLUMNS):
        root = groups[row + pr.ROOT]
        if root != 0:
            roots += 1
            if root != roots:
                return -1
    return roots


@called
def edges_are_sound(state: Int64, roots: int, depths: Int32) -> bool:
    """One edge leads to each node that is no root, from one with a smaller number; depths."""
    keys, values = (
        uint64s(state, at.PROGRAM.searched_keys),
        int32s(state, at.PROGRAM.searched_values),
    )
    nodes = np.int64(len(depths))
    depths[:] = 0
    used = 0
    for slot in range(len(keys)):
        if keys[slot] == U(0):
            continue
        used += 1
        node, value = np.int64(keys[slot] >> U(8)), np.int64(values[slot])
        if not (0 < node < value < nodes and roots < value) or depths[value]:
            return False
        depths[value] = node
    if used != nodes - 1 - roots or used >= len(keys):
        return False
    for node in range(roots + 1, nodes):
        depths[node] = depths[depths[node]] + 1
    return True


@called
def links_are_sound(state: Int64, roots: int, depths: Int32) -> bool:
    """Failures lead nearer to a root, so that a search takes no longer than its text is."""
    facts, failures = (
        int32s(state, at.PROGRAM.searched_facts),
        int32s(state, at.PROGRAM.searched_failures),
    )
    outputs, shorter = (
        int32s(state, at.PROGRAM.searched_outputs),
        int32s(state, at.PROGRAM.searched_shorter),
    )
    for node in range(roots + 1):
        if failures[node] or outputs[node] or shorter[node] or facts[node] < -1:
            return False
    for node in range(roots + 1, len(facts)):
        failure = np.int64(failures[node])
        if not 0 < failure < node or depths[failure] >= depths[node]:
            return False
        if facts[node] != -1 and not is_of_value(state, facts[node]):
            return False
        if not (is_said(facts, roots, outputs[node], node + 1)):
            return False
        if not (is_said(facts, roots, shorter[node], node)):
            return False
    return True


@called
def is_said(facts: Int32, roots: int, node: int, end: int) -> bool:
    """Whether a node before another is one of a constant, or 0."""
    return node == 0 or (roots < node < end and facts[node] >= 0)


@called
def rows_are_sound(state: Int64, depths: Int32) -> bool:
    """Letters are those of the rows, in which they lead to nodes that are one deeper at most."""
    letters, rows = (
        uint8s(state, at.PROGRAM.searched_letters),
        int32s(state, at.PROGRAM.searched_rows),
    )
    width = np.int64(letters[256])
    if not are_in(letters[:256], 0, width) or not are_in(rows[:width], 0, 1):
        return False
    if not are_in(rows[width:], 1, len(depths)):
        return False
    for node in range(1, len(rows) // width):
        deepest = depths[node] + 1
        for place in range(node * width, (node + 1) * width):
            if depths[rows[place]] > deepest:
                return False
    return True


@kernel
def cache_fault(state: Int64, stamps: Int32, children: Int32, siblings: Int32) -> int:
    """The number of the first of ``validate.CACHE_PARTS`` that cannot be trusted, or -1.

    Args:
        stamps: room for a number for each node, and for each query.
        children, siblings: for each of the ``pendings``.
    """
    # Each relies on those before it.
    if not fact_sets_are_sound(state):
        return 0
    nodes = len(int32s(state, at.PROGRAM.tests))
    if not are_answers(state, stamps):
        return 1
    if not pendings_are_sound(state, nodes, stamps, children, siblings):
        return 2
    if not are_sets(state, at.CACHE.states, nodes, stamps):
        return 3
    if not states_are_sound(state):
        return 4
    if not table_is_sound(state):
        return 5
    sets = int64s(state, at.CACHE.facts.counts)[at.COUNT] + 1
    if not are_in(int32s(state, at.CACHE.constant_sets), 0, sets):
        return 6
    if not are_in(int32s(state, at.CACHE.class_sets), 0, sets):
        return 7
    answers = int64s(state, at.CACHE.answers.counts)[at.COUNT] + 1
    if not are_in(int32s(state, at.CACHE.query_answers), 0, answers):
        return 8
    if not reached_are_sound(state):
        return 9
    if not closes_are_sound(state):
        return 10
    return -1 if merges_are_sound(state) else 11


# -- lists -----------------------------------------------------------------------------------------


@called
def are_lists_sound(state: Int64, lists: Any, members: Int32) -> bool:
    """Whether lists follow each other, inside of their room, and their hash table is not full."""
    counts, starts = int64s(state, lists.counts), int64s(state, lists.starts)
    slots, hashes = int32s(state, lists.slots), uint64s(state, lists.hashes)
    count, used = counts[at.COUNT], counts[at.USED]
    if not 0 <= count <= len(hashes) or not 0 <= used <= len(members):
        return False
    if starts[0] != 0 or starts[count] != used:
        return False
    for number in range(count):
        if starts[number] > starts[number + 1]:
            return False
    filled = 0
    for slot in range(len(slots)):
        if not 0 <= slots[slot] <= count:
            return False
        filled += slots[slot] != 0
    return filled == count


@called
def are_sets(state: Int64, lists: Any, end: int, stamps: Int32) -> bool:
    """Whether lists are sound, their members less than ``end``, and no two in one the same."""
    starts, members = int64s(state, lists.starts), int32s(state, lists.members)
    if not are_lists_sound(state, lists, members):
        return False
    stamps[:] = 0
    for number in range(int64s(state, lists.counts)[at.COUNT]):
        for i in range(starts[number], starts[number + 1]):
            member = np.int64(members[i])
            if not 0 <= member < end or stamps[member] == number + 1:
                return False
            stamps[member] = number + 1
    return True


@called
def are_answers(state: Int64, stamps: Int32) -> bool:
    """Whether answers are queries, no two the same, and slices behind them, that are not too long.

    The hashes say which of them have slices.
    """
    starts, members = (
        int64s(state, at.CACHE.answers.starts),
        int32s(state, at.CACHE.answers.members),
    )
    hashes = uint64s(state, at.CACHE.answers.hashes)
    if not are_lists_sound(state, at.CACHE.answers, members):
        return False
    stamps[:] = 0
    for number in range(int64s(state, at.CACHE.answers.counts)[at.COUNT]):
        i, end = starts[number], starts[number + 1]
        while i < end and members[i] >= 0:
            member = np.int64(members[i])
            if member >= state[at.QUERIES] or stamps[member] == number + 1:
                return False
            stamps[member] = number + 1
            i += 1
        if (i < end) != (hashes[number] > UNSLICED) or not are_slices(state, members[i:end]):
            return False
    return True


@called
def are_slices(state: Int64, slices: Int32) -> bool:
    """Whether some numbers are slices, of no more queries than are sliced."""
    left = np.int64(len(int32s(state, at.PROGRAM.sliced)))
    length = left
    if len(slices) % 2:
        return False
    for i in range(0, len(slices), 2):
        start, end = -1 - np.int64(slices[i]), np.int64(slices[i + 1])
        left -= end - start
        if not 0 <= start < end <= length or left < 0:
            return False
    return True


@called
def fact_sets_are_sound(state: Int64) -> bool:
    """Sets of facts are words that are not 0, ascending, of facts that there are; 0 is empty."""
    counts, starts = int64s(state, at.CACHE.facts.counts), int64s(state, at.CACHE.facts.starts)
    places, words = int32s(state, at.CACHE.facts.places), uint64s(state, at.CACHE.facts.words)
    if not are_lists_sound(state, at.CACHE.facts, places) or counts[at.COUNT] < 1 or starts[1] != 0:
        return False
    for number in range(counts[at.COUNT]):
        before = np.int64(-1)
        for i in range(starts[number], starts[number + 1]):
            place = np.int64(places[i])
            if place <= before or words[i] == U(0):
                return False
            if not are_facts(state, place, words[i]):
                return False
            before = place
    return True


@called
def are_facts(state: Int64, place: int, word: np.uint64) -> bool:
    """Whether all bits of a word are facts: of groups and counters, no more than there are."""
    ends = int64s(state, at.PROGRAM.fact_ends)
    if not 0 <= place < ends[len(ends) - 1]:
        return False
    highest = 64 * place + last(word)
    if place < ends[pr.OF_GROUP]:
        return highest < len(int32s(state, at.PROGRAM.groups)) // pr.GROUP_COLUMNS - 1
    if place >= ends[pr.OF_DESCENDANT]:
        return highest - 64 * ends[pr.OF_DESCENDANT] < len(int32s(state, at.PROGRAM.fact_counters))
    return True


# -- states and pending nodes ----------------------------------------------------------------------


@called
def pendings_are_sound(
    state: Int64, nodes: int, stamps: Int32, children: Int32, siblings: Int32
) -> bool:
    """Pending nodes are not pending around themselves; those around have smaller numbers."""
    info, starts = int64s(state, at.CACHE.pending_info), int64s(state, at.CACHE.pendings.starts)
    members = int32s(state, at.CACHE.pendings.members)
    if not are_lists_sound(state, at.CACHE.pendings, members):
        return False
    count = int64s(state, at.CACHE.pendings.counts)[at.COUNT]
    if count < 1 or starts[1] != 0 or info[at.AROUND] or info[at.TOTAL] or info[at.NEEDED]:
        return False
    if not are_in(members[: starts[count]], 0, nodes):
        return False
    children[:] = 0
    sets = int64s(state, at.CACHE.facts.counts)[at.COUNT]
    for number in range(1, count):
        row = number * at.PENDING_COLUMNS
        around = info[row + at.AROUND]
        if not 0 <= around < number or not 0 <= info[row + at.NEEDED] < sets:
            return False
        total = info[around * at.PENDING_COLUMNS + at.TOTAL] + starts[number + 1] - starts[number]
        if info[row + at.TOTAL] != total:
            return False
        siblings[number] = children[around]
        children[around] = number
    return are_pending_once(state, stamps, children, siblings)


@called
def are_pending_once(state: Int64, stamps: Int32, children: Int32, siblings: Int32) -> bool:
    """Whether no node is pending twice at one place: all places are visited, from outside in."""
    info, starts = int64s(state, at.CACHE.pending_info), int64s(state, at.CACHE.pendings.starts)
    members = int32s(state, at.CACHE.pendings.members)
    stamps[:] = 0
    number = np.int64(0)
    while True:
        for i in range(starts[number], starts[number + 1]):
            if stamps[members[i]]:
                return False
            stamps[members[i]] = 1
        if children[number]:
            number = np.int64(children[number])
            continue
        while True:
            for i in range(starts[number], starts[number + 1]):
                stamps[members[i]] = 0
            if number == 0:
                return True
            if siblings[number]:
                number = np.int64(siblings[number])
                break
            number = info[number * at.PENDING_COLUMNS + at.AROUND]


@called
def states_are_sound(state: Int64) -> bool:
    """What is known of each state is something that there is."""
    info, starts = int32s(state, at.CACHE.state_info), int64s(state, at.CACHE.states.starts)
    count = int64s(state, at.CACHE.states.counts)[at.COUNT]
    sets, pendings = (
        int64s(state, at.CACHE.facts.counts)[at.COUNT],
        int64s(state, at.CACHE.pendings.counts)[at.COUNT],
    )
    answers = int64s(state, at.CACHE.answers.counts)[at.COUNT]
    if count <= at.START or starts[at.START] != 0:
        return False
    for number in range(at.START, count):
        row = number * at.STATE_COLUMNS
        if not (
            -1 <= info[row + at.ANSWER] < answers
            and 0 <= info[row + at.SURE_FACTS] < sets
            and (info[row + at.RESULT] == at.NO_RESULT or 0 <= info[row + at.RESULT] < sets)
            and -1 <= info[row + at.RESULT_ANSWER] < answers
            and 0 <= info[row + at.RULED] <= starts[number + 1] - starts[number]
            and 0 <= info[row + at.INHERITED] < pendings
            and 0 <= info[row + at.OWN] < pendings
            and 0 <= info[row + at.READS] <= 1
        ):
            return False
    return True


@called
def table_is_sound(state: Int64) -> bool:
    """What is known of steps leads to states; of states that are not there yet, nothing is."""
    table, count = int32s(state, at.CACHE.table), int64s(state, at.CACHE.states.counts)[at.COUNT]
    known = count * state[at.WIDTH]
    return are_in(table[:known], 0, count) and are_in(table[known:], 0, 1)


# -- pairs -----------------------------------------------------------------------------------------


@called
def reached_are_sound(state: Int64) -> bool:
    """By anything: no status, and there is room."""
    keys, values = uint64s(state, at.CACHE.reached.keys), int64s(state, at.CACHE.reached.values)
    used = 0
    for slot in range(len(keys)):
        used += keys[slot] != U(0)
        if values[slot] < 0:
            return False
    return used == int64s(state, at.CACHE.reached.counts)[0] and 2 * used <= len(keys)


@called
def closes_are_sound(state: Int64) -> bool:
    """By states and sets, of which the one that is empty stands elsewhere: results and answers."""
    keys, values = uint64s(state, at.CACHE.closes.keys), int64s(state, at.CACHE.closes.values)
    states = U(int64s(state, at.CACHE.states.counts)[at.COUNT])
    sets = U(int64s(state, at.CACHE.facts.counts)[at.COUNT])
    answers = int64s(state, at.CACHE.answers.counts)[at.COUNT]
    used = 0
    for slot in range(len(keys)):
        key = keys[slot]
        if key != U(0):
            used += 1
            current, gathered = key >> U(32), key & U(0xFFFFFFFF)
            result, answer = U(values[slot] & 0xFFFFFFFF), values[slot] >> 32
            if not (U(at.START) <= current < states and U(0) < gathered < sets):
                return False
            if not (result < sets and 0 <= answer <= answers):
                return False
    return used == int64s(state, at.CACHE.closes.counts)[0] and 2 * used <= len(keys)


@called
def merges_are_sound(state: Int64) -> bool:
    """By two sets: a set."""
    keys, values = uint64s(state, at.CACHE.merges.keys), int64s(state, at.CACHE.merges.values)
    sets = int64s(state, at.CACHE.facts.counts)[at.COUNT]
    used = 0
    for slot in range(len(keys)):
        key = keys[slot]
        if key != U(0):
            used += 1
            if key >> U(32) >= U(sets) or key & U(0xFFFFFFFF) >= U(sets):
                return False
            if not 0 <= values[slot] < sets:
                return False
    return used == int64s(state, at.CACHE.merges.counts)[0] and 2 * used <= len(keys)
