"""The kernels: filters become states; the run over documents.

The run is a stack of active states, one level for each open element. From a state, a step leads on:
to a child, for one level, from what is on ``here``; to a descendant, for all levels inside, from
its ``//``-state, which stays on ``pending`` until its element ends. No state is reached twice at an
element: it has one parent and one step that leads to it, and what is pending is so once.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.record import borrow, int32s, int64s, prefetch, uint8s
from tamis.core.kernel.table import add_pair, find_pair, pair
from tamis.language.filters import WILDCARD
from tamis.matching.engines.nfa import layout as at

# -- filters become states: what is there already is shared ---------------------------------------

STATES, PAIRS, ADDED = range(3)
"""The counts: states, transitions in the table, and filters that the present call has added."""


@called
def add_state(counts: Int64, records: Int32, parent: int, code: int) -> int:
    """A new state, with nothing behind it; there must be room."""
    state = counts[STATES]
    row = state * at.RECORD
    records[row + at.STAR] = records[row + at.BELOW] = records[row + at.ACCEPTS] = -1
    records[row + at.WATCHED] = records[row + at.MASK] = records[row + at.MASK + 1] = 0
    records[row + at.PARENT] = parent
    records[row + at.CODE] = code
    counts[STATES] += 1
    return state


@inlined
def mark(records: Int32, state: int, label: int) -> None:
    """Write in the mask of a state that a transition is there."""
    place = state * at.RECORD + at.MASK + (label >> 5 & 1)
    records[place] = np.int32(records[place] | np.int32(1) << np.int32(label & 31))


@called
def state_behind(counts: Int64, records: Int32, table: Int64, state: int, code: int) -> int:
    """The state that a step leads to from another one; there must be room for two states."""
    origin = state
    if code & 1:
        origin = np.int64(records[state * at.RECORD + at.BELOW])
        if origin < 0:
            origin = add_state(counts, records, state, -1)
            records[state * at.RECORD + at.BELOW] = origin
    label = code >> 1
    if label == WILDCARD:
        target = np.int64(records[origin * at.RECORD + at.STAR])
        if target < 0:
            target = add_state(counts, records, state, code)
            records[origin * at.RECORD + at.STAR] = target
        return target
    key = pair(origin, label)
    slot = find_pair(table, key)
    if table[slot] == key:
        return table[slot + 1]
    target = add_state(counts, records, state, code)
    add_pair(table, key, target)
    mark(records, origin, label)
    counts[PAIRS] += 1
    return target


@inlined
def has_room(counts: Int64, records: Int32, table: Int64, steps: int) -> bool:
    """Whether so many steps can be added, to a table that stays at most half full."""
    has_states = (counts[STATES] + 2 * steps) * at.RECORD <= len(records)
    return has_states and 4 * (counts[PAIRS] + steps) <= len(table)


@kernel
def add_step(counts: Int64, records: Int32, table: Int64, state: int, code: int) -> int:
    """The state that a step leads to from another one, or -1 if there is no room."""
    if not has_room(counts, records, table, 1):
        return -1
    return state_behind(counts, records, table, state, code)


@kernel
def add_filters(
    counts: Int64, records: Int32, table: Int64, starts: Int64, codes: Int32, ends: Int32
) -> bool:
    """Add filters from number ``counts[ADDED]`` on, and write each one's state to ``ends``.

    False if there is no room for the next one.
    """
    for number in range(counts[ADDED], len(starts) - 1):
        if not has_room(counts, records, table, starts[number + 1] - starts[number]):
            return False
        state = 0
        for place in range(starts[number], starts[number + 1]):
            state = state_behind(counts, records, table, state, codes[place])
        ends[number] = state
        counts[ADDED] = number + 1
    return True


# -- the run ---------------------------------------------------------------------------------------

_AHEAD = 12
"""How many states ahead memory is asked for."""


@called
def accept(state: Int64, first: int) -> None:
    """A document reached a state for the first time: the sets that the state answers are found."""
    next_set = int32s(state, at.READ.next_set)
    found = int32s(state, at.WORK.found)
    set = np.int64(first)
    while set >= 0:
        found[state[at.FOUND_USED]] = set
        state[at.FOUND_USED] += 1
        set = np.int64(next_set[set])


@called
def add_occurrence(state: Int64, reached: int, parent: int, event: int) -> None:
    """Write down that an element reached a watched state."""
    occurrences = int64s(state, at.WORK.occurrences)
    tops = int64s(state, at.WORK.tops)
    number = state[at.OCCURRENCES_USED]
    above = tops[parent] if parent >= 0 else -1
    if above >= 0 and occurrences[above * at.OCCURRENCE + at.START] == event:
        above = occurrences[above * at.OCCURRENCE + at.OUTER]  # the element is not around itself
    row = number * at.OCCURRENCE
    occurrences[row + at.STATE] = reached
    occurrences[row + at.START] = event
    occurrences[row + at.END] = -1
    occurrences[row + at.OUTER] = tops[reached]
    occurrences[row + at.ABOVE] = above
    tops[reached] = number
    state[at.OCCURRENCES_USED] = number + 1


@inlined
def put_entry(entries: Int32, used: int, number: int, records: Int32) -> None:
    """Write a state behind a stack; the caller counts it."""
    row = number * at.RECORD
    entries[used * at.ENTRY] = number
    entries[used * at.ENTRY + 1] = records[row + at.STAR]
    entries[used * at.ENTRY + 2] = records[row + at.MASK]
    entries[used * at.ENTRY + 3] = records[row + at.MASK + 1]


@called
def reach(state: Int64, targets: Int32, count: int, event: int) -> None:
    """An element reaches states: what they answer is found, and what is behind them active."""
    records = int32s(state, at.READ.records)
    reached_in = int32s(state, at.WORK.reached_in)
    is_pending = uint8s(state, at.WORK.is_pending)
    here = int32s(state, at.WORK.here)
    pending = int32s(state, at.WORK.pending)
    serial = state[at.SERIAL]
    here_used, pending_used = state[at.HERE_USED], state[at.PENDING_USED]
    for place in range(count):
        prefetch(records, np.int64(targets[min(place + _AHEAD, count - 1)]) * at.RECORD)
        number = np.int64(targets[place])
        row = number * at.RECORD
        if reached_in[number] != serial:
            reached_in[number] = serial
            if records[row + at.ACCEPTS] >= 0:
                accept(state, np.int64(records[row + at.ACCEPTS]))
        if records[row + at.WATCHED] > 0:
            add_occurrence(state, number, np.int64(records[row + at.PARENT]), event)
        put_entry(here, here_used, number, records)
        mask = records[row + at.MASK] | records[row + at.MASK + 1]
        here_used += np.int64(mask != 0) | np.int64(records[row + at.STAR] >= 0)
        below = np.int64(records[row + at.BELOW])
        if below >= 0 and not is_pending[below]:
            is_pending[below] = 1
            put_entry(pending, pending_used, below, records)
            pending_used += 1
    state[at.HERE_USED], state[at.PENDING_USED] = here_used, pending_used


@inlined
def look_up(state: Int64, targets: Int32, used: int, probes: Int32, count: int, label: int) -> int:
    """Append to targets where the transitions for a label lead, from states that may have one."""
    table = int64s(state, at.READ.table)
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
        probes[count] = entries[entry * at.ENTRY]
        count += np.int64(entries[entry * at.ENTRY + word] >> bit & 1)
    return count


@called
def follow(
    state: Int64, entries: Int32, first: int, end: int, used: int, label: int, of_namespace: int
) -> int:
    """Append to the targets where the active states of a stack lead, with an element.

    Each loop does one thing without branches that depend on the states, so that the processor
    need not wait for the memory of one state before it asks for that of the next. The element's
    label, and that of all names of its namespace, may be -1. Returns the number of targets.
    """
    targets = int32s(state, at.WORK.targets)
    probes = int32s(state, at.WORK.probes)
    for entry in range(first, end):
        star = entries[entry * at.ENTRY + 1]
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
    """Write how full the stacks are before an element."""
    levels[depth * at.LEVEL + at.HERE_FROM] = state[at.HERE_USED]
    levels[depth * at.LEVEL + at.PENDING_FROM] = state[at.PENDING_USED]
    levels[depth * at.LEVEL + at.OCCURRENCES_FROM] = state[at.OCCURRENCES_USED]


@called
def enter(state: Int64, label: int, of_namespace: int, event: int) -> None:
    """The start of an element."""
    levels = int64s(state, at.WORK.levels)
    depth = state[at.DEPTH] + 1
    open_level(state, levels, depth)
    here, pending = int32s(state, at.WORK.here), int32s(state, at.WORK.pending)
    here_from = levels[(depth - 1) * at.LEVEL + at.HERE_FROM]
    count = follow(state, here, here_from, state[at.HERE_USED], 0, label, of_namespace)
    count = follow(state, pending, 0, state[at.PENDING_USED], count, label, of_namespace)
    reach(state, int32s(state, at.WORK.targets), count, event)
    levels[depth * at.LEVEL + at.OCCURRENCES_TO] = state[at.OCCURRENCES_USED]
    state[at.DEPTH] = depth


@called
def leave(state: Int64, event: int) -> None:
    """The end of an element, or of a document: what it made active is so no longer."""
    levels = int64s(state, at.WORK.levels)
    row = state[at.DEPTH] * at.LEVEL
    state[at.HERE_USED] = levels[row + at.HERE_FROM]
    is_pending = uint8s(state, at.WORK.is_pending)
    pending = int32s(state, at.WORK.pending)
    for entry in range(levels[row + at.PENDING_FROM], state[at.PENDING_USED]):
        is_pending[pending[entry * at.ENTRY]] = 0
    state[at.PENDING_USED] = levels[row + at.PENDING_FROM]
    occurrences = int64s(state, at.WORK.occurrences)
    tops = int64s(state, at.WORK.tops)
    for number in range(levels[row + at.OCCURRENCES_FROM], levels[row + at.OCCURRENCES_TO]):
        place = number * at.OCCURRENCE
        occurrences[place + at.END] = event
        tops[occurrences[place + at.STATE]] = occurrences[place + at.OUTER]
    state[at.DEPTH] -= 1


@called
def full_array(state: Int64) -> int:
    """The field of an array without room for all that one more element may reach, or 0."""
    depth = state[at.DEPTH]
    here = state[at.HERE_USED] - int64s(state, at.WORK.levels)[depth * at.LEVEL + at.HERE_FROM]
    reached = 3 * (here + state[at.PENDING_USED]) + 1  # by *, by name, by namespace; one is spare
    if (state[at.HERE_USED] + reached) * at.ENTRY > len(int32s(state, at.WORK.here)):
        return at.WORK.here
    if (state[at.PENDING_USED] + reached) * at.ENTRY > len(int32s(state, at.WORK.pending)):
        return at.WORK.pending
    if reached > len(int32s(state, at.WORK.targets)):
        return at.WORK.targets
    if (depth + 2) * at.LEVEL > len(int64s(state, at.WORK.levels)):
        return at.WORK.levels
    if state[at.IS_WATCHING]:
        occurrences = state[at.OCCURRENCES_USED] + reached
        if occurrences * at.OCCURRENCE > len(int64s(state, at.WORK.occurrences)):
            return at.WORK.occurrences
    return 0


@called
def begin(state: Int64, event: int) -> int:
    """The start of a document, in the start state; or the field of a full array."""
    if state[at.FOUND_USED] + state[at.SETS] > len(int32s(state, at.WORK.found)):
        return at.WORK.found
    occurrences = state[at.OCCURRENCES_USED] + 1
    if occurrences * at.OCCURRENCE > len(int64s(state, at.WORK.occurrences)):
        return at.WORK.occurrences
    levels = int64s(state, at.WORK.levels)
    state[at.IS_OPEN] = 1
    state[at.SERIAL] += 1
    state[at.DEPTH] = 0
    open_level(state, levels, 0)
    targets = int32s(state, at.WORK.targets)
    targets[0] = 0
    reach(state, targets, 1, event - 1)
    levels[at.OCCURRENCES_TO] = state[at.OCCURRENCES_USED]
    return 0


@called
def run_document(state: Int64, end: int) -> int:
    """The events of a document, from the next one on; or the field of a full array."""
    tags = int32s(state, at.READ.tags)
    labels = int32s(state, at.READ.labels)
    namespace_labels = int32s(state, at.READ.namespace_labels)
    for event in range(state[at.EVENT], end):
        tag = np.int64(tags[event])
        if tag < 0:
            leave(state, event)
            continue
        full = full_array(state)
        if full:
            state[at.EVENT] = event
            return full
        enter(state, np.int64(labels[tag]), np.int64(namespace_labels[tag]), event)
    state[at.EVENT] = end
    leave(state, end)
    return 0


@kernel
def run(state: Int64) -> int:
    """Run the NFA over the documents of a batch, from the next one on; see ``State``."""
    starts = int64s(state, at.READ.document_starts)
    found_starts = int64s(state, at.WORK.found_starts)
    for document in range(state[at.DOCUMENT], len(starts) - 1):
        state[at.DOCUMENT] = document
        if starts[document] < starts[document + 1]:  # else it is in error
            full = 0 if state[at.IS_OPEN] else begin(state, starts[document])
            if full == 0:
                full = run_document(state, starts[document + 1])
            if full:
                return full
            state[at.IS_OPEN] = 0
        found_starts[document + 1] = state[at.FOUND_USED]
    return 0


@kernel
def run_one(state: Int64) -> int:
    """Run the NFA over a document that a tokenizer recorded; 0, or the field of a full array."""
    borrow(state, at.ONE.recorded, at.ONE.places)
    state[at.DOCUMENT] = state[at.EVENT] = state[at.IS_OPEN] = state[at.DEPTH] = 0
    state[at.HERE_USED] = state[at.PENDING_USED] = 0
    state[at.OCCURRENCES_USED] = state[at.FOUND_USED] = 0
    return run(state)
