"""The run: a stack of active states, one level for each open element.

From a state, a step leads on: to a child, for one level, from what is on ``here``; to a descendant,
for all levels inside, from its ``//``-state, which stays on ``pending`` until its element ends.
No state is reached twice at an element: it has one parent and one step that leads to it, and what
is pending is so once.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, prefetch, uint8s
from tamis.core.kernel.table import find_pair, pair
from tamis.matching.engines.nfa.layout import (
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

_AHEAD = 12
"""How many states ahead memory is asked for."""


@called
def accept(state: Int64, first: int) -> None:
    """A state was reached that was not yet in this document: what it answers is true of it."""
    next_set = int32s(state, AT.next_set)
    found = int32s(state, AT.found)
    set = np.int64(first)
    while set >= 0:
        found[state[FOUND_USED]] = set
        state[FOUND_USED] += 1
        set = np.int64(next_set[set])


@called
def register(state: Int64, reached: int, parent: int, event: int) -> None:
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
def put_entry(entries: Int32, used: int, number: int, records: Int32) -> None:
    """Write a state behind a stack; it counts when the stack is said to be longer."""
    row = number * RECORD
    entries[used * ENTRY] = number
    entries[used * ENTRY + 1] = records[row + STAR]
    entries[used * ENTRY + 2] = records[row + MASK]
    entries[used * ENTRY + 3] = records[row + MASK + 1]


@called
def reach(state: Int64, targets: Int32, count: int, event: int) -> None:
    """An element reaches states: what they answer is found, and what is behind them active."""
    records = int32s(state, AT.records)
    reached_in = int32s(state, AT.reached_in)
    is_pending = uint8s(state, AT.is_pending)
    here = int32s(state, AT.here)
    pending = int32s(state, AT.pending)
    serial = state[SERIAL]
    here_used, pending_used = state[HERE_USED], state[PENDING_USED]
    for place in range(count):
        prefetch(records, np.int64(targets[min(place + _AHEAD, count - 1)]) * RECORD)
        number = np.int64(targets[place])
        row = number * RECORD
        if reached_in[number] != serial:
            reached_in[number] = serial
            if records[row + ACCEPTS] >= 0:
                accept(state, np.int64(records[row + ACCEPTS]))
        if records[row + WATCHED] > 0:
            register(state, number, np.int64(records[row + PARENT]), event)
        put_entry(here, here_used, number, records)
        mask = records[row + MASK] | records[row + MASK + 1]
        here_used += np.int64(mask != 0) | np.int64(records[row + STAR] >= 0)
        below = np.int64(records[row + BELOW])
        if below >= 0 and not is_pending[below]:
            is_pending[below] = 1
            put_entry(pending, pending_used, below, records)
            pending_used += 1
    state[HERE_USED], state[PENDING_USED] = here_used, pending_used


@inlined
def look_up(state: Int64, targets: Int32, used: int, probes: Int32, count: int, label: int) -> int:
    """Append to targets where the transitions for a label lead, from states that may have one."""
    table = int64s(state, AT.table)
    for place in range(count):
        key = pair(probes[place], label)
        slot = find_pair(table, key)
        targets[used] = table[slot + 1]
        used += np.int64(table[slot] == key)
    return used


@inlined
def probe(entries: Int32, first: int, end: int, probes: Int32, label: int) -> int:
    """List the states of a stack that may have a transition for a label; how many they are."""
    count = 0
    word, bit = 2 + (label >> 5 & 1), label & 31
    for entry in range(first, end):
        probes[count] = entries[entry * ENTRY]
        count += np.int64(entries[entry * ENTRY + word] >> bit & 1)
    return count


@called
def follow(
    state: Int64, entries: Int32, first: int, end: int, used: int, label: int, of_namespace: int
) -> int:
    """Append to the targets where the active states of a stack lead, with an element.

    Each loop does one thing without branches that depend on the states, so that the processor
    need not wait for the memory of one state before it asks for that of the next.

    Args:
        label: the element's, or -1.
        of_namespace: the label of all names of the element's namespace, or -1.

    Returns:
        How many targets there are.
    """
    targets = int32s(state, AT.targets)
    probes = int32s(state, AT.probes)
    for entry in range(first, end):
        star = entries[entry * ENTRY + 1]
        targets[used] = star
        used += np.int64(star >= 0)
    if label >= 0:
        count = probe(entries, first, end, probes, label)
        used = look_up(state, targets, used, probes, count, label)
    if of_namespace >= 0:
        count = probe(entries, first, end, probes, of_namespace)
        used = look_up(state, targets, used, probes, count, of_namespace)
    return used


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
    here, pending = int32s(state, AT.here), int32s(state, AT.pending)
    here_from = levels[(depth - 1) * LEVEL + HERE_FROM]
    count = follow(state, here, here_from, state[HERE_USED], 0, label, of_namespace)
    count = follow(state, pending, 0, state[PENDING_USED], count, label, of_namespace)
    reach(state, int32s(state, AT.targets), count, event)
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
    reached = 3 * (here + state[PENDING_USED]) + 1  # by *, by name, by namespace; one is spare
    state[NEEDED] = reached
    return (
        (state[HERE_USED] + reached) * ENTRY <= len(int32s(state, AT.here))
        and (state[PENDING_USED] + reached) * ENTRY <= len(int32s(state, AT.pending))
        and reached <= len(int32s(state, AT.targets))
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
    targets = int32s(state, AT.targets)
    targets[0] = 0
    reach(state, targets, 1, event - 1)
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
