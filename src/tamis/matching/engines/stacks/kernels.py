"""The kernels: at each end tag, the nodes of all twigs at once; a node of 512 twigs at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Int64, Words
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.blocks import BLOCK, BLOCK_BITS, Block, both, differing, either, load, store
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.matching.engines.stacks import layout as at

# -- elements --------------------------------------------------------------------------------------


@called
def close_groups(
    state: Int64, first_group: int, end_group: int, level: int, tests: int, is_first: bool
) -> None:
    """An element ends: some groups tell the element around which of their nodes hold.

    Args:
        level, tests: where the element's row begins in ``levels``, and its symbol's in ``tests``.
        is_first: nothing is known yet of the element around, and its row is not even 0.
    """
    rows, passing = uint64s(state, at.WORK.levels), uint64s(state, at.READ.tests)
    slots, edges = int32s(state, at.PROGRAM.group_slots), edges_of(state)
    below = uint64s(state, at.PROGRAM.below)
    owns, own = int32s(state, at.PROGRAM.owns), uint64s(state, at.PROGRAM.own)
    is_general = uint8s(state, at.PROGRAM.is_general)
    outer = level - state[at.ROW]
    for group in range(first_group, end_group):
        first_slot, slot = np.int64(slots[group]), np.int64(slots[group + 1])
        denies = is_general[group] != 0
        while slot > first_slot:  # children first
            slot -= 1
            place = slot * BLOCK
            satisfied = load(passing, tests + place)
            satisfied = with_children(satisfied, rows, level, edges, slot + group, denies)
            here = load(rows, level + place)
            if denies and owns[slot] >= 0:
                mine = both(satisfied, load(own, np.int64(owns[slot]) * BLOCK))
                store(rows, level + place, either(here, mine))
                satisfied = differing(satisfied, mine)
            told = either(satisfied, both(here, load(below, place)))
            if not is_first:
                told = either(told, load(rows, outer + place))
            store(rows, outer + place, told)


@inlined
def edges_of(state: Int64) -> Any:
    """The arrays of edges, taken out of the state once: a store might change it."""
    return (
        int32s(state, at.PROGRAM.edge_starts),
        int32s(state, at.PROGRAM.edge_slots),
        uint64s(state, at.PROGRAM.unasked),
        int32s(state, at.PROGRAM.denials),
        uint64s(state, at.PROGRAM.denied),
    )


@inlined
def with_children(
    satisfied: Block, rows: Words, level: int, edges: Any, index: int, denies: bool
) -> Block:
    """Those of some twigs whose node has all children that it asks for, and none that it denies."""
    starts, slots, unasked, denials, denied = edges
    for edge in range(starts[index], starts[index + 1]):
        child = load(rows, level + np.int64(slots[edge]) * BLOCK)
        if denies and denials[edge] >= 0:
            child = differing(child, load(denied, np.int64(denials[edge]) * BLOCK))
        satisfied = both(satisfied, either(child, load(unasked, edge * BLOCK)))
    return satisfied


@called
def close_empty(state: Int64, symbol: int) -> None:
    """An element without anything inside begins and ends."""
    rows, passing = uint64s(state, at.WORK.levels), uint64s(state, at.READ.tests)
    slots, is_general = int32s(state, at.PROGRAM.group_slots), uint8s(state, at.PROGRAM.is_general)
    childless = uint64s(state, at.PROGRAM.childless)
    row, is_first = state[at.ROW], become_known(state, state[at.LEVEL])
    outer, tests = state[at.LEVEL] * row, symbol * row
    for group in range(len(is_general)):
        begin, end = np.int64(slots[group]) * BLOCK, np.int64(slots[group + 1]) * BLOCK
        if is_general[group]:
            clear(rows, outer + row + begin, end - begin)
            close_groups(state, group, group + 1, outer + row, tests, is_first)
        else:
            for place in range(begin, end, BLOCK):
                told = both(load(passing, tests + place), load(childless, place))
                if not is_first:
                    told = either(told, load(rows, outer + place))
                store(rows, outer + place, told)


@inlined
def clear(words: Words, begin: int, count: int) -> None:
    """Set some words to 0."""
    for place in range(begin, begin + count):
        words[place] = U(0)


@called
def open_level(state: Int64, symbol: int) -> None:
    """An element begins; there must be room for its level."""
    level = state[at.LEVEL] = state[at.LEVEL] + 1
    int32s(state, at.WORK.open_symbols)[level] = symbol
    uint8s(state, at.WORK.is_known)[level] = 0
    words = state[at.SEEN_WORDS]
    clear(uint64s(state, at.WORK.seen), level * words, words)


@inlined
def become_known(state: Int64, level: int) -> bool:
    """Whether the row of a level was not written yet; from now on it is."""
    is_known = uint8s(state, at.WORK.is_known)
    was_known = is_known[level] != 0
    is_known[level] = 1
    return not was_known


@called
def close_level(state: Int64) -> None:
    """The innermost element ends."""
    level, row = state[at.LEVEL], state[at.ROW]
    if become_known(state, level):
        clear(uint64s(state, at.WORK.levels), level * row, row)
    symbol = np.int64(int32s(state, at.WORK.open_symbols)[level])
    groups = len(uint8s(state, at.PROGRAM.is_general))
    is_first = become_known(state, level - 1)
    close_groups(state, 0, groups, level * row, symbol * row, is_first)
    state[at.LEVEL] = level - 1


@inlined
def is_seen(state: Int64, symbol: int) -> bool:
    """Whether an empty element like this was a child before; from now on it was."""
    seen = uint64s(state, at.WORK.seen)
    word = state[at.LEVEL] * state[at.SEEN_WORDS] + (symbol >> 6)
    bit = U(1) << U(symbol & 63)
    was_seen = seen[word] & bit != U(0)
    seen[word] |= bit
    return was_seen


# -- facts -----------------------------------------------------------------------------------------


@called
def add_fact(state: Int64, fact: int) -> None:
    """A fact is true of the innermost element."""
    rows, starts = uint64s(state, at.WORK.levels), int64s(state, at.PROGRAM.fact_starts)
    words, bits = int64s(state, at.PROGRAM.fact_words), uint64s(state, at.PROGRAM.fact_bits)
    level = state[at.LEVEL] * state[at.ROW]
    if become_known(state, state[at.LEVEL]):
        clear(rows, level, state[at.ROW])
    for place in range(starts[fact], starts[fact + 1]):
        rows[level + words[place]] |= bits[place]


@called
def add_facts(state: Int64, event: int) -> None:
    """Add what is true of the innermost element, which began at an event."""
    events, facts = int64s(state, at.READ.fact_events), int32s(state, at.READ.facts)
    while state[at.FACT_AT] < len(events) and events[state[at.FACT_AT]] == event:
        add_fact(state, np.int64(facts[state[at.FACT_AT]]))
        state[at.FACT_AT] += 1


# -- documents -------------------------------------------------------------------------------------


@called
def full_array(state: Int64) -> int:
    """The field of an array without room for one more level, or 0."""
    levels = state[at.LEVEL] + 3
    if levels * state[at.ROW] > len(uint64s(state, at.WORK.levels)):
        return at.WORK.levels
    if levels * state[at.SEEN_WORDS] > len(uint64s(state, at.WORK.seen)):
        return at.WORK.seen
    return at.WORK.is_known if levels > len(uint8s(state, at.WORK.is_known)) else 0


@called
def run_document(state: Int64, end: int) -> int:
    """The events of a document, from the next one on; or the field of a full array."""
    tags, symbols = int32s(state, at.READ.tags), int32s(state, at.READ.symbols)
    facts = int64s(state, at.READ.fact_events)
    event = state[at.EVENT]
    while event < end:
        tag = np.int64(tags[event])
        if tag < 0:
            close_level(state)
            event += 1
            continue
        full = full_array(state)
        if full:
            state[at.EVENT] = event
            return full
        symbol = np.int64(symbols[tag])
        has_facts = state[at.FACT_AT] < len(facts) and facts[state[at.FACT_AT]] == event
        if tags[event + 1] < 0 and not has_facts:
            if not is_seen(state, symbol):
                close_empty(state, symbol)
            event += 2
        else:
            open_level(state, symbol)
            add_facts(state, event)
            event += 1
    state[at.EVENT] = end
    return 0


@called
def answer(state: Int64) -> int:
    """The document ends: list the twigs that are true; or the field of a full array."""
    rows, found = uint64s(state, at.WORK.levels), int32s(state, at.WORK.found)
    twigs, slots = uint64s(state, at.PROGRAM.twigs), int32s(state, at.PROGRAM.group_slots)
    groups, row = len(slots) - 1, state[at.ROW]
    if state[at.FOUND_USED] + groups * BLOCK_BITS > len(found):
        return at.WORK.found
    level, passing = at.FIRST * row, len(uint64s(state, at.READ.tests)) - row
    close_groups(state, 0, groups, level, passing, True)
    edges, used = edges_of(state), state[at.FOUND_USED]
    for group in range(groups):
        index = np.int64(slots[group + 1]) + group
        asked = load(twigs, group * BLOCK)
        store(rows, 0, with_children(asked, rows, level, edges, index, True))
        for word in range(BLOCK):
            bits = rows[word]
            while bits != U(0):
                found[used] = group * BLOCK_BITS + word * 64 + first(bits)
                used += 1
                bits &= bits - U(1)
    state[at.FOUND_USED] = used
    return 0


@kernel
def run(state: Int64) -> int:
    """Answer the documents of a batch, from the next one on; or the field of a full array."""
    starts, found_starts = (
        int64s(state, at.READ.document_starts),
        int64s(state, at.WORK.found_starts),
    )
    for document in range(state[at.DOCUMENT], len(starts) - 1):
        state[at.DOCUMENT] = document
        if starts[document] < starts[document + 1]:  # else it is in error
            if not state[at.IS_OPEN]:
                state[at.LEVEL] = at.ABOVE
                full = full_array(state)
                if full:
                    return full
                open_level(state, 0)
                state[at.IS_OPEN] = 1
            full = run_document(state, starts[document + 1])
            if full == 0:
                full = answer(state)
            if full:
                return full
            state[at.IS_OPEN] = 0
        found_starts[document + 1] = state[at.FOUND_USED]
    return 0
