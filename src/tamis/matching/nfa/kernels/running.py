"""The run: a stack of active states, one level for each open element.

From a state, a step leads on: to a child, for one level, from what is on ``here``; to a descendant,
for all levels inside, from its ``//``-state, which stays on ``pending`` until its element ends.
No state is reached twice at an element: it has one parent and one step that leads to it, and what
is pending is so once.
"""

from __future__ import annotations

import numpy as np

from tamis.arrays import int32s, int64s, uint8s
from tamis.documents.batch import Int32, Int64
from tamis.jit import called, inlined, kernel
from tamis.matching.nfa.kernels.table import key_of, slot_of
from tamis.matching.nfa.layout import (
    ABOVE,
    ACCEPTS,
    AT,
    BELOW,
    DEPTH,
    DOCUMENT,
    DONE,
    END,
    ENTRY,
    EVENT,
    FOUND_USED,
    HERE_FROM,
    HERE_USED,
    IS_OPEN,
    IS_WATCHING,
    LEVEL,
    MASK,
    NEEDED,
    NO_ROOM,
    OCCURRENCE,
    OCCURRENCES_FROM,
    OCCURRENCES_TO,
    OCCURRENCES_USED,
    OUTER,
    PARENT,
    PENDING_FROM,
    PENDING_USED,
    RECORD,
    SERIAL,
    SETS,
    STAR,
    START,
    STATE,
    WATCHED,
)


@called
def accept(state: Int64, first: int) -> None:
    """A state was reached: what it answers is true of the document."""
    found_in = int64s(state, AT.found_in)
    next_set = int32s(state, AT.next_set)
    found = int32s(state, AT.found)
    set = np.int64(first)
    while set >= 0 and found_in[set] != state[SERIAL]:
        found_in[set] = state[SERIAL]
        found[state[FOUND_USED]] = set
        state[FOUND_USED] += 1
        set = np.int64(next_set[set])


@called
def note(state: Int64, reached: int, parent: int, event: int) -> None:
    """Write down that an element reached a watched state."""
    occurrences = int64s(state, AT.occurrences)
    tops = int64s(state, AT.tops)
    number = state[OCCURRENCES_USED]
    above = tops[parent] if parent >= 0 else -1
    if above >= 0 and occurrences[above * OCCURRENCE + START] == event:
        above = occurrences[above * OCCURRENCE + OUTER]  # this element itself is not around it
    row = number * OCCURRENCE
    occurrences[row + STATE] = reached
    occurrences[row + START] = event
    occurrences[row + END] = -1
    occurrences[row + OUTER] = tops[reached]
    occurrences[row + ABOVE] = above
    tops[reached] = number
    state[OCCURRENCES_USED] = number + 1


@inlined
def push(entries: Int32, used: int, number: int, records: Int32) -> None:
    """Put a state on a stack."""
    row = number * RECORD
    entries[used * ENTRY] = number
    entries[used * ENTRY + 1] = records[row + STAR]
    entries[used * ENTRY + 2] = records[row + MASK]
    entries[used * ENTRY + 3] = records[row + MASK + 1]


@called
def reach(state: Int64, number: int, event: int) -> None:
    """An element reaches a state: what that answers is found, and what is behind it active."""
    records = int32s(state, AT.records)
    row = number * RECORD
    if records[row + ACCEPTS] >= 0:
        accept(state, records[row + ACCEPTS])
    if records[row + WATCHED] > 0:
        note(state, number, records[row + PARENT], event)
    if records[row + MASK] | records[row + MASK + 1] or records[row + STAR] >= 0:
        push(int32s(state, AT.here), state[HERE_USED], number, records)
        state[HERE_USED] += 1
    below = np.int64(records[row + BELOW])
    if below >= 0:
        is_pending = uint8s(state, AT.is_pending)
        if not is_pending[below]:
            is_pending[below] = 1
            push(int32s(state, AT.pending), state[PENDING_USED], below, records)
            state[PENDING_USED] += 1


@inlined
def follow_label(state: Int64, entries: Int32, entry: int, label: int, event: int) -> None:
    """Go on from an active state along the transition for a label, if there is one."""
    mask = entries[entry * ENTRY + 2 + (label >> 5 & 1)]
    if mask >> (label & 31) & 1:
        table = int64s(state, AT.table)
        key = key_of(np.int64(entries[entry * ENTRY]), label)
        slot = slot_of(table, key)
        if table[slot] == key:
            reach(state, table[slot + 1], event)


@called
def follow(
    state: Int64, entries: Int32, first: int, end: int, label: int, of_namespace: int, event: int
) -> None:
    """Go on from the active states of a stack, with an element of a label, or -1.

    Args:
        of_namespace: the label of all names of the element's namespace, or -1.
    """
    for entry in range(first, end):
        star = np.int64(entries[entry * ENTRY + 1])
        if star >= 0:
            reach(state, star, event)
        if label >= 0:
            follow_label(state, entries, entry, label, event)
        if of_namespace >= 0:
            follow_label(state, entries, entry, of_namespace, event)


@inlined
def open_level(state: Int64, levels: Int64, depth: int) -> None:
    """Note how full the stacks are before an element."""
    levels[depth * LEVEL + HERE_FROM] = state[HERE_USED]
    levels[depth * LEVEL + PENDING_FROM] = state[PENDING_USED]
    levels[depth * LEVEL + OCCURRENCES_FROM] = state[OCCURRENCES_USED]


@called
def enter(state: Int64, label: int, of_namespace: int, event: int) -> None:
    """The start of an element."""
    levels = int64s(state, AT.levels)
    depth = state[DEPTH] + 1
    open_level(state, levels, depth)
    here_from = levels[(depth - 1) * LEVEL + HERE_FROM]
    here_used, pending_used = state[HERE_USED], state[PENDING_USED]
    follow(state, int32s(state, AT.here), here_from, here_used, label, of_namespace, event)
    follow(state, int32s(state, AT.pending), 0, pending_used, label, of_namespace, event)
    levels[depth * LEVEL + OCCURRENCES_TO] = state[OCCURRENCES_USED]
    state[DEPTH] = depth


@called
def leave(state: Int64, event: int) -> None:
    """The end of an element, or of a document: what it made active is so no longer."""
    levels = int64s(state, AT.levels)
    row = state[DEPTH] * LEVEL
    state[HERE_USED] = levels[row + HERE_FROM]
    is_pending = uint8s(state, AT.is_pending)
    pending = int32s(state, AT.pending)
    for entry in range(levels[row + PENDING_FROM], state[PENDING_USED]):
        is_pending[pending[entry * ENTRY]] = 0
    state[PENDING_USED] = levels[row + PENDING_FROM]
    occurrences = int64s(state, AT.occurrences)
    tops = int64s(state, AT.tops)
    for number in range(levels[row + OCCURRENCES_FROM], levels[row + OCCURRENCES_TO]):
        occurrences[number * OCCURRENCE + END] = event
        tops[occurrences[number * OCCURRENCE + STATE]] = occurrences[number * OCCURRENCE + OUTER]
    state[DEPTH] -= 1


@called
def has_room(state: Int64) -> bool:
    """Whether the stacks have room for all that one more element may reach."""
    depth = state[DEPTH]
    here = state[HERE_USED] - int64s(state, AT.levels)[depth * LEVEL + HERE_FROM]
    reached = 3 * (here + state[PENDING_USED])  # by *, by name, by namespace
    state[NEEDED] = reached
    return (
        (state[HERE_USED] + reached) * ENTRY <= len(int32s(state, AT.here))
        and (state[PENDING_USED] + reached) * ENTRY <= len(int32s(state, AT.pending))
        and (depth + 2) * LEVEL <= len(int64s(state, AT.levels))
        and (
            not state[IS_WATCHING]
            or (state[OCCURRENCES_USED] + reached) * OCCURRENCE
            <= len(int64s(state, AT.occurrences))
        )
    )


@called
def begin(state: Int64, event: int) -> bool:
    """The start of a document, where the start state is active; False if there is no room."""
    is_full = state[FOUND_USED] + state[SETS] > len(int32s(state, AT.found))
    is_full |= (state[OCCURRENCES_USED] + 1) * OCCURRENCE > len(int64s(state, AT.occurrences))
    if is_full:
        state[NEEDED] = 1
        return False
    levels = int64s(state, AT.levels)
    state[IS_OPEN] = 1
    state[SERIAL] += 1
    state[DEPTH] = 0
    open_level(state, levels, 0)
    reach(state, 0, event - 1)
    levels[OCCURRENCES_TO] = state[OCCURRENCES_USED]
    return True


@called
def run_document(state: Int64, end: int) -> bool:
    """The events of a document, from the next one on; False if there is no room."""
    tags = int32s(state, AT.tags)
    labels = int32s(state, AT.labels)
    namespace_labels = int32s(state, AT.namespace_labels)
    for event in range(state[EVENT], end):
        tag = np.int64(tags[event])
        if tag < 0:
            leave(state, event)
        elif has_room(state):
            enter(state, np.int64(labels[tag]), np.int64(namespace_labels[tag]), event)
        else:
            state[EVENT] = event
            return False
    state[EVENT] = end
    leave(state, end)
    return True


@kernel
def run(state: Int64) -> int:
    """Run the NFA over the documents of a batch, from the next one on."""
    starts = int64s(state, AT.document_starts)
    found_starts = int64s(state, AT.found_starts)
    for document in range(state[DOCUMENT], len(starts) - 1):
        state[DOCUMENT] = document
        if starts[document] < starts[document + 1]:  # else it is in error
            if not state[IS_OPEN] and not begin(state, starts[document]):
                return NO_ROOM
            if not run_document(state, starts[document + 1]):
                return NO_ROOM
            state[IS_OPEN] = 0
        found_starts[document + 1] = state[FOUND_USED]
    return DONE
