"""What files must have that cannot be declared for an array of numbers (see ``check``)."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, kernel
from tamis.core.kernel.bits import first, ones
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels.facts import UNSLICED

STACK_MAX = 64
"""Bits of the word that is the stack of a formula."""


@kernel
def are_formulas(state: Int64) -> bool:
    """Formulas are of facts; programs leave one value, and need no more than one word."""
    starts, code = int64s(state, at.PROGRAM.formula_starts), int32s(state, at.PROGRAM.formula_code)
    kinds = uint8s(state, at.PROGRAM.formula_kinds)
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
def is_fact(state: Int64, fact: int) -> bool:
    """Whether there may be a fact of a number."""
    ends = int64s(state, at.PROGRAM.fact_ends)
    groups = len(int32s(state, at.PROGRAM.groups)) // pr.GROUP_COLUMNS - 1
    last = 64 * ends[pr.OF_DESCENDANT] + len(int32s(state, at.PROGRAM.fact_counters))
    return 0 <= fact < last and (fact < groups or fact >= 64 * ends[pr.OF_GROUP])


STACK_MAX = 64
"""Bits of the word that is the stack of a formula."""


@kernel
def are_watches(state: Int64) -> bool:
    """At nodes that have their rules indexed: the index leads to each of those that watch, once."""
    nodes, rules = int32s(state, at.PROGRAM.nodes), int32s(state, at.PROGRAM.rules)
    run = 0
    for node in range(len(int32s(state, at.PROGRAM.tests))):
        row = node * pr.NODE_COLUMNS
        low = np.int64(nodes[row + pr.WATCHES])
        high = np.int64(nodes[row + pr.NODE_COLUMNS + pr.WATCHES])
        if low < high:
            rule = np.int64(nodes[row + pr.RULES])
            end = np.int64(nodes[row + pr.NODE_COLUMNS + pr.RULES])
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


@kernel
def are_edges(state: Int64, roots: int, depths: Int32) -> bool:
    """Whether one edge leads to each node that is no root, from one with a smaller number.

    Args:
        depths: filled; how far each node is from its root.
    """
    keys = uint64s(state, at.PROGRAM.searched_keys)
    values = int32s(state, at.PROGRAM.searched_values)
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


@kernel
def are_answers(state: Int64, stamps: Int32) -> bool:
    """Whether answers are queries, no two the same, and slices behind them, that are not too long.

    The hashes say which of them have slices.
    """
    starts = int64s(state, at.CACHE.answers.starts)
    members = int32s(state, at.CACHE.answers.members)
    hashes = uint64s(state, at.CACHE.answers.hashes)
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


@kernel
def are_states(state: Int64, stamps: Int32) -> bool:
    """Whether the members of states are nodes, no two in one the same."""
    starts, members = int64s(state, at.CACHE.states.starts), int32s(state, at.CACHE.states.members)
    nodes = len(int32s(state, at.PROGRAM.tests))
    stamps[:] = 0
    for number in range(int64s(state, at.CACHE.states.counts)[at.COUNT]):
        for i in range(starts[number], starts[number + 1]):
            member = np.int64(members[i])
            if not 0 <= member < nodes or stamps[member] == number + 1:
                return False
            stamps[member] = number + 1
    return True


@kernel
def are_pending_once(state: Int64, stamps: Int32, children: Int32, siblings: Int32) -> bool:
    """Whether no node is pending twice at one place: all places are visited, from outside in.

    Args:
        children, siblings: zeros, for each of the ``pendings``.
    """
    info, starts = int64s(state, at.CACHE.pending_info), int64s(state, at.CACHE.pendings.starts)
    members = int32s(state, at.CACHE.pendings.members)
    for number in range(1, len(children)):
        around = info[number * at.PENDING_COLUMNS + at.AROUND]
        siblings[number] = children[around]
        children[around] = number
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
