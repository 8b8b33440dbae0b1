"""The kernels: at each end tag, the nodes of all twigs at once; a node of 512 twigs at a time."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64, Words
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.blocks import BLOCK, BLOCK_BITS, Block, both, differing, either, load, store
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.matching.engines.stacks import layout as at

# -- the step: plain functions of a block here, of a word on a GPU ---------------------------------


@inlined
def held(satisfied: Block, child: Block, unasked: Block) -> Block:
    """The twigs whose node still holds, after one more of its children."""
    return both(satisfied, either(child, unasked))


@inlined
def latched(above: Block, satisfied: Block, here: Block, below: Block) -> Block:
    """What the element around knows of a node, after a child of its has ended.

    Args:
        above: what it knew.
        satisfied: the twigs whose node holds at the child; here: those whose node holds further
            down, where that matters for a node that is BELOW.
    """
    return either(above, either(satisfied, both(here, below)))


# -- elements --------------------------------------------------------------------------------------


@called
def close_groups(state: Int64, first_group: int, end_group: int, level: int, tests: int) -> None:
    """An element ends: some groups tell the element around which of their nodes hold.

    Args:
        level, tests: where the element's row begins in ``levels``, and its symbol's in ``tests``.
    """
    rows, passing = uint64s(state, at.WORK.levels), uint64s(state, at.READ.tests)
    slots, starts = int32s(state, at.PROGRAM.group_slots), int32s(state, at.PROGRAM.edge_starts)
    below = uint64s(state, at.PROGRAM.below)
    owns, own = int32s(state, at.PROGRAM.owns), uint64s(state, at.PROGRAM.own)
    outer = level - state[at.ROW]
    for group in range(first_group, end_group):
        slot = np.int64(slots[group + 1])
        while slot > slots[group]:  # children first
            slot -= 1
            place = slot * BLOCK
            satisfied = load(passing, tests + place)
            satisfied = with_children(state, satisfied, starts, slot + group, level)
            here = load(rows, level + place)
            if owns[slot] >= 0:
                mine = both(satisfied, load(own, np.int64(owns[slot]) * BLOCK))
                store(rows, level + place, either(here, mine))
                satisfied = differing(satisfied, mine)
            above = load(rows, outer + place)
            store(rows, outer + place, latched(above, satisfied, here, load(below, place)))


@inlined
def with_children(state: Int64, satisfied: Block, starts: Int32, index: int, level: int) -> Block:
    """Those of some twigs whose node has all children that it asks for, and none that it denies."""
    rows, edge_slots = uint64s(state, at.WORK.levels), int32s(state, at.PROGRAM.edge_slots)
    unasked = uint64s(state, at.PROGRAM.unasked)
    denials, denied = int32s(state, at.PROGRAM.denials), uint64s(state, at.PROGRAM.denied)
    for edge in range(starts[index], starts[index + 1]):
        child = load(rows, level + np.int64(edge_slots[edge]) * BLOCK)
        if denials[edge] >= 0:
            child = differing(child, load(denied, np.int64(denials[edge]) * BLOCK))
        satisfied = held(satisfied, child, load(unasked, edge * BLOCK))
    return satisfied


@called
def close_empty(state: Int64, symbol: int) -> None:
    """An element without anything inside begins and ends."""
    rows, passing = uint64s(state, at.WORK.levels), uint64s(state, at.READ.tests)
    slots, is_general = int32s(state, at.PROGRAM.group_slots), uint8s(state, at.PROGRAM.is_general)
    childless = uint64s(state, at.PROGRAM.childless)
    outer, tests = state[at.LEVEL] * state[at.ROW], symbol * state[at.ROW]
    for group in range(len(is_general)):
        begin, end = np.int64(slots[group]) * BLOCK, np.int64(slots[group + 1]) * BLOCK
        if is_general[group]:
            clear(rows, outer + state[at.ROW] + begin, end - begin)
            close_groups(state, group, group + 1, outer + state[at.ROW], tests)
        else:
            for place in range(begin, end, BLOCK):
                satisfied = both(load(passing, tests + place), load(childless, place))
                store(rows, outer + place, either(load(rows, outer + place), satisfied))


@inlined
def clear(words: Words, begin: int, count: int) -> None:
    """Set some words to 0."""
    for place in range(begin, begin + count):
        words[place] = U(0)


@called
def open_level(state: Int64, symbol: int) -> None:
    """An element begins, and knows nothing yet; there must be room for its level."""
    level = state[at.LEVEL] = state[at.LEVEL] + 1
    int32s(state, at.WORK.open_symbols)[level] = symbol
    clear(uint64s(state, at.WORK.levels), level * state[at.ROW], state[at.ROW])
    words = state[at.SEEN_WORDS]
    clear(uint64s(state, at.WORK.seen), level * words, words)


@called
def close_level(state: Int64) -> None:
    """The innermost element ends."""
    level, row = state[at.LEVEL], state[at.ROW]
    symbol = np.int64(int32s(state, at.WORK.open_symbols)[level])
    groups = len(uint8s(state, at.PROGRAM.is_general))
    close_groups(state, 0, groups, level * row, symbol * row)
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
    return at.WORK.open_symbols if levels > len(int32s(state, at.WORK.open_symbols)) else 0


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
    twigs, starts = uint64s(state, at.PROGRAM.twigs), int32s(state, at.PROGRAM.edge_starts)
    slots = int32s(state, at.PROGRAM.group_slots)
    groups, row = len(slots) - 1, state[at.ROW]
    if state[at.FOUND_USED] + groups * BLOCK_BITS > len(found):
        return at.WORK.found
    level, passing = at.FIRST * row, len(uint64s(state, at.READ.tests)) - row
    close_groups(state, 0, groups, level, passing)
    used = state[at.FOUND_USED]
    for group in range(groups):
        index = np.int64(slots[group + 1]) + group
        true = with_children(state, load(twigs, group * BLOCK), starts, index, level)
        store(rows, at.ABOVE, true)
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
