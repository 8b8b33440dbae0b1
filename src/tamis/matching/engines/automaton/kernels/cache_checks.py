"""Whether the arrays of a cache can be trusted, which may come from a file that anybody wrote.

As ``checks``, of a program that was checked. That a cache says what the program would have said is
not checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, kernel
from tamis.core.kernel.bits import last
from tamis.core.kernel.record import int32s, int64s, uint64s
from tamis.matching.engines.automaton.cache import (
    ANSWER,
    AROUND,
    COUNT,
    INHERITED,
    NEEDED,
    NO_RESULT,
    OWN,
    PENDING_COLUMNS,
    READS,
    RESULT,
    RESULT_ANSWER,
    RULED,
    START,
    STATE_COLUMNS,
    SURE_FACTS,
    TOTAL,
    USED,
)
from tamis.matching.engines.automaton.kernels.ranges import are_in
from tamis.matching.engines.automaton.kernels.tables import UNSLICED
from tamis.matching.engines.automaton.layout import CACHE, PROGRAM, QUERIES, WIDTH
from tamis.matching.engines.automaton.program import GROUP_COLUMNS, OF_DESCENDANT, OF_GROUP


@kernel
def faulty_part(state: Int64, stamps: Int32, children: Int32, siblings: Int32) -> int:
    """The number of the first of ``validate.CACHE_PARTS`` that cannot be trusted, or -1.

    Args:
        stamps: room for a number for each node, and for each query.
        children, siblings: for each of the ``pendings``.
    """
    # Each relies on those before it.
    if not fact_sets_are_sound(state):
        return 0
    nodes = len(int32s(state, PROGRAM.tests))
    if not are_answers(state, stamps):
        return 1
    if not pendings_are_sound(state, nodes, stamps, children, siblings):
        return 2
    if not are_sets(state, CACHE.states, nodes, stamps):
        return 3
    if not states_are_sound(state):
        return 4
    if not table_is_sound(state):
        return 5
    sets = int64s(state, CACHE.facts.counts)[COUNT] + 1
    if not are_in(int32s(state, CACHE.constant_sets), 0, sets):
        return 6
    if not are_in(int32s(state, CACHE.class_sets), 0, sets):
        return 7
    answers = int64s(state, CACHE.answers.counts)[COUNT] + 1
    if not are_in(int32s(state, CACHE.query_answers), 0, answers):
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
    count, used = counts[COUNT], counts[USED]
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
    for number in range(int64s(state, lists.counts)[COUNT]):
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
    starts, members = int64s(state, CACHE.answers.starts), int32s(state, CACHE.answers.members)
    hashes = uint64s(state, CACHE.answers.hashes)
    if not are_lists_sound(state, CACHE.answers, members):
        return False
    stamps[:] = 0
    for number in range(int64s(state, CACHE.answers.counts)[COUNT]):
        i, end = starts[number], starts[number + 1]
        while i < end and members[i] >= 0:
            member = np.int64(members[i])
            if member >= state[QUERIES] or stamps[member] == number + 1:
                return False
            stamps[member] = number + 1
            i += 1
        if (i < end) != (hashes[number] > UNSLICED) or not are_slices(state, members[i:end]):
            return False
    return True


@called
def are_slices(state: Int64, slices: Int32) -> bool:
    """Whether some numbers are slices, of no more queries than are sliced."""
    left = np.int64(len(int32s(state, PROGRAM.sliced)))
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
    counts, starts = int64s(state, CACHE.facts.counts), int64s(state, CACHE.facts.starts)
    places, words = int32s(state, CACHE.facts.places), uint64s(state, CACHE.facts.words)
    if not are_lists_sound(state, CACHE.facts, places) or counts[COUNT] < 1 or starts[1] != 0:
        return False
    for number in range(counts[COUNT]):
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
    ends = int64s(state, PROGRAM.fact_ends)
    if not 0 <= place < ends[len(ends) - 1]:
        return False
    highest = 64 * place + last(word)
    if place < ends[OF_GROUP]:
        return highest < len(int32s(state, PROGRAM.groups)) // GROUP_COLUMNS - 1
    if place >= ends[OF_DESCENDANT]:
        return highest - 64 * ends[OF_DESCENDANT] < len(int32s(state, PROGRAM.fact_counters))
    return True


# -- states and pending nodes ----------------------------------------------------------------------


@called
def pendings_are_sound(
    state: Int64, nodes: int, stamps: Int32, children: Int32, siblings: Int32
) -> bool:
    """Pending nodes are not pending around themselves; those around have smaller numbers."""
    info, starts = int64s(state, CACHE.pending_info), int64s(state, CACHE.pendings.starts)
    members = int32s(state, CACHE.pendings.members)
    if not are_lists_sound(state, CACHE.pendings, members):
        return False
    count = int64s(state, CACHE.pendings.counts)[COUNT]
    if count < 1 or starts[1] != 0 or info[AROUND] or info[TOTAL] or info[NEEDED]:
        return False
    if not are_in(members[: starts[count]], 0, nodes):
        return False
    children[:] = 0
    sets = int64s(state, CACHE.facts.counts)[COUNT]
    for number in range(1, count):
        row = number * PENDING_COLUMNS
        around = info[row + AROUND]
        if not 0 <= around < number or not 0 <= info[row + NEEDED] < sets:
            return False
        total = info[around * PENDING_COLUMNS + TOTAL] + starts[number + 1] - starts[number]
        if info[row + TOTAL] != total:
            return False
        siblings[number] = children[around]
        children[around] = number
    return are_pending_once(state, stamps, children, siblings)


@called
def are_pending_once(state: Int64, stamps: Int32, children: Int32, siblings: Int32) -> bool:
    """Whether no node is pending twice at one place: all places are visited, from outside in."""
    info, starts = int64s(state, CACHE.pending_info), int64s(state, CACHE.pendings.starts)
    members = int32s(state, CACHE.pendings.members)
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
            number = info[number * PENDING_COLUMNS + AROUND]


@called
def states_are_sound(state: Int64) -> bool:
    """What is known of each state is something that there is."""
    info, starts = int32s(state, CACHE.state_info), int64s(state, CACHE.states.starts)
    count = int64s(state, CACHE.states.counts)[COUNT]
    sets, pendings = (
        int64s(state, CACHE.facts.counts)[COUNT],
        int64s(state, CACHE.pendings.counts)[COUNT],
    )
    answers = int64s(state, CACHE.answers.counts)[COUNT]
    if count <= START or starts[START] != 0:
        return False
    for number in range(START, count):
        row = number * STATE_COLUMNS
        if not (
            -1 <= info[row + ANSWER] < answers
            and 0 <= info[row + SURE_FACTS] < sets
            and (info[row + RESULT] == NO_RESULT or 0 <= info[row + RESULT] < sets)
            and -1 <= info[row + RESULT_ANSWER] < answers
            and 0 <= info[row + RULED] <= starts[number + 1] - starts[number]
            and 0 <= info[row + INHERITED] < pendings
            and 0 <= info[row + OWN] < pendings
            and 0 <= info[row + READS] <= 1
        ):
            return False
    return True


@called
def table_is_sound(state: Int64) -> bool:
    """What is known of steps leads to states; of states that are not there yet, nothing is."""
    table, count = int32s(state, CACHE.table), int64s(state, CACHE.states.counts)[COUNT]
    known = count * state[WIDTH]
    return are_in(table[:known], 0, count) and are_in(table[known:], 0, 1)


# -- pairs -----------------------------------------------------------------------------------------


@called
def reached_are_sound(state: Int64) -> bool:
    """By anything: no status, and there is room."""
    keys, values = uint64s(state, CACHE.reached.keys), int64s(state, CACHE.reached.values)
    used = 0
    for slot in range(len(keys)):
        used += keys[slot] != U(0)
        if values[slot] < 0:
            return False
    return used == int64s(state, CACHE.reached.counts)[0] and 2 * used <= len(keys)


@called
def closes_are_sound(state: Int64) -> bool:
    """By states and sets, of which the one that is empty stands elsewhere: results and answers."""
    keys, values = uint64s(state, CACHE.closes.keys), int64s(state, CACHE.closes.values)
    states = U(int64s(state, CACHE.states.counts)[COUNT])
    sets = U(int64s(state, CACHE.facts.counts)[COUNT])
    answers = int64s(state, CACHE.answers.counts)[COUNT]
    used = 0
    for slot in range(len(keys)):
        key = keys[slot]
        if key != U(0):
            used += 1
            current, gathered = key >> U(32), key & U(0xFFFFFFFF)
            result, answer = U(values[slot] & 0xFFFFFFFF), values[slot] >> 32
            if not (U(START) <= current < states and U(0) < gathered < sets):
                return False
            if not (result < sets and 0 <= answer <= answers):
                return False
    return used == int64s(state, CACHE.closes.counts)[0] and 2 * used <= len(keys)


@called
def merges_are_sound(state: Int64) -> bool:
    """By two sets: a set."""
    keys, values = uint64s(state, CACHE.merges.keys), int64s(state, CACHE.merges.values)
    sets = int64s(state, CACHE.facts.counts)[COUNT]
    used = 0
    for slot in range(len(keys)):
        key = keys[slot]
        if key != U(0):
            used += 1
            if key >> U(32) >= U(sets) or key & U(0xFFFFFFFF) >= U(sets):
                return False
            if not 0 <= values[slot] < sets:
                return False
    return used == int64s(state, CACHE.merges.counts)[0] and 2 * used <= len(keys)
