"""Whether the arrays of a program that are about values can be trusted (see ``checks``)."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called
from tamis.core.kernel.record import float64s, int32s, uint8s, uint64s
from tamis.matching.engines.automaton.kernels.ranges import are_in, is_of_value
from tamis.matching.engines.automaton.kernels.values import GRAM_BYTES, TAG
from tamis.matching.engines.automaton.layout import PROGRAM
from tamis.matching.engines.automaton.program import (
    ASKED_OF,
    BEGIN,
    CLASSES,
    COMPARISON_COLUMNS,
    COMPARISONS,
    CONSTANT_ROW,
    EQUAL,
    FACT,
    FIRST_BYTE,
    FUNCTION,
    GRAM_ROW,
    GROUP,
    GROUP_COLUMNS,
    LENGTH,
    LENGTHS,
    LESS,
    LONGEST,
    MEANS,
    MORE,
    NORMALIZED,
    OFFSET,
    OPERATOR,
    ROOT,
    SAYS,
    THRESHOLD,
    THRESHOLDS,
)


@called
def groups_are_sound(state: Int64) -> bool:
    """What is asked of values: thresholds and lengths of prefixes ascend, in each group."""
    groups, thresholds = int32s(state, PROGRAM.groups), float64s(state, PROGRAM.thresholds)
    lengths, compared = int32s(state, PROGRAM.prefix_lengths), int32s(state, PROGRAM.comparisons)
    last = len(groups) - GROUP_COLUMNS
    if (
        groups[LENGTHS] | groups[THRESHOLDS] | groups[COMPARISONS] | groups[CLASSES]
        or groups[last + LENGTHS] != len(lengths)
        or groups[last + THRESHOLDS] != len(thresholds)
        or groups[last + COMPARISONS] * COMPARISON_COLUMNS != len(compared)
    ):
        return False
    # All of them, before any is followed.
    for row in range(0, last, GROUP_COLUMNS):
        after = row + GROUP_COLUMNS
        count = np.int64(groups[after + THRESHOLDS]) - groups[row + THRESHOLDS]
        if (
            not 0 <= groups[row + FUNCTION] <= NORMALIZED | LENGTH
            or groups[row + LENGTHS] > groups[after + LENGTHS]
            or count < 0
            or groups[row + COMPARISONS] > groups[after + COMPARISONS]
            or groups[row + CLASSES] + 2 * count + 2 != groups[after + CLASSES]
        ):
            return False
    for row in range(0, last, GROUP_COLUMNS):
        if not is_group_sound(state, row, row + GROUP_COLUMNS):
            return False
    return True


@called
def is_group_sound(state: Int64, row: int, after: int) -> bool:
    """What ``groups_are_sound`` says of one group, whose lists are inside."""
    groups, thresholds = int32s(state, PROGRAM.groups), float64s(state, PROGRAM.thresholds)
    lengths, compared = int32s(state, PROGRAM.prefix_lengths), int32s(state, PROGRAM.comparisons)
    before = np.int64(-1)
    for i in range(groups[row + LENGTHS], groups[after + LENGTHS]):
        if lengths[i] <= before:
            return False
        before = np.int64(lengths[i])
    if before > groups[row + LONGEST]:
        return False
    start, end = np.int64(groups[row + THRESHOLDS]), np.int64(groups[after + THRESHOLDS])
    for i in range(start, end):
        if thresholds[i] != thresholds[i] or (i > start and thresholds[i - 1] >= thresholds[i]):
            return False
    for comparison in range(groups[row + COMPARISONS], groups[after + COMPARISONS]):
        at = comparison * COMPARISON_COLUMNS
        if not (
            0 < compared[at + OPERATOR] < LESS | EQUAL | MORE
            and 0 <= compared[at + THRESHOLD] < end - start
            and is_of_value(state, compared[at + FACT])
        ):
            return False
    return True


@called
def constants_are_sound(state: Int64) -> bool:
    """Constants are in groups, not longer than these know, and about values."""
    groups, constants = int32s(state, PROGRAM.groups), int32s(state, PROGRAM.constants)
    slots = uint64s(state, PROGRAM.constant_slots)
    last = len(constants) - CONSTANT_ROW
    if constants[FIRST_BYTE] != 0:
        return False
    if constants[last + FIRST_BYTE] != len(uint8s(state, PROGRAM.constant_bytes)):
        return False
    for row in range(0, last, CONSTANT_ROW):
        group = np.int64(constants[row + ASKED_OF] >> 1)
        if not 0 <= group < len(groups) // GROUP_COLUMNS - 1:
            return False
        length = constants[row + CONSTANT_ROW + FIRST_BYTE] - np.int64(constants[row + FIRST_BYTE])
        if not 0 <= length <= groups[group * GROUP_COLUMNS + LONGEST]:
            return False
        if not is_of_value(state, constants[row + MEANS]):
            return False
    used = faults = 0
    for i in range(len(slots)):
        used += slots[i] != U(0)
        faults += slots[i] & ~TAG > U(last // CONSTANT_ROW)
        faults += slots[i] != U(0) and slots[i] & ~TAG == U(0)
    return used == last // CONSTANT_ROW and used < len(slots) and faults == 0


# -- strings that values contain -------------------------------------------------------------------


@called
def grams_are_sound(state: Int64) -> bool:
    """Strings with grams are in groups, follow each other, and are about values."""
    groups, grams = int32s(state, PROGRAM.groups), int32s(state, PROGRAM.grams)
    slots = int32s(state, PROGRAM.gram_slots)
    count = len(grams) // GRAM_ROW - 1
    end = count * GRAM_ROW
    if grams[BEGIN] != 0 or grams[end + BEGIN] != len(uint8s(state, PROGRAM.gram_bytes)):
        return False
    for row in range(0, end, GRAM_ROW):
        length = np.int64(grams[row + GRAM_ROW + BEGIN]) - grams[row + BEGIN]
        if not (
            0 <= grams[row + GROUP] < len(groups) // GROUP_COLUMNS - 1
            and 0 <= grams[row + OFFSET] <= length - GRAM_BYTES
            and is_of_value(state, grams[row + SAYS])
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
    width = np.int64(uint8s(state, PROGRAM.searched_letters)[256])
    return len(int32s(state, PROGRAM.searched_rows)) // width


@called
def roots_of_groups(state: Int64) -> int:
    """How many roots there are, which groups have in their order; or -1 if they have not."""
    groups = int32s(state, PROGRAM.groups)
    roots = 0
    for row in range(0, len(groups) - GROUP_COLUMNS, GROUP_COLUMNS):
        root = groups[row + ROOT]
        if root != 0:
            roots += 1
            if root != roots:
                return -1
    return roots


@called
def edges_are_sound(state: Int64, roots: int, depths: Int32) -> bool:
    """One edge leads to each node that is no root, from one with a smaller number; depths."""
    keys, values = uint64s(state, PROGRAM.searched_keys), int32s(state, PROGRAM.searched_values)
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
        int32s(state, PROGRAM.searched_facts),
        int32s(state, PROGRAM.searched_failures),
    )
    outputs, shorter = (
        int32s(state, PROGRAM.searched_outputs),
        int32s(state, PROGRAM.searched_shorter),
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
    letters, rows = uint8s(state, PROGRAM.searched_letters), int32s(state, PROGRAM.searched_rows)
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
