"""Documents → the DAG of their distinct subtrees, a segment at a time.

Subtrees are equal for all twigs if their elements pass the same tests, and have the same facts and
the same set of children. So a document is compressed as in Buneman, Grohe and Koch (*Path Queries
on Compressed XML*, VLDB 2003), but without the order of children and most of their repetitions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.blocks import BLOCK
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.core.kernel.table import GOLDEN, slot_finder
from tamis.matching.engines.stacks import layout as at

SHARED_MAX = 16
"""An element with more children gets a new subtree: it is not searched for among the others."""

# -- subtrees --------------------------------------------------------------------------------------


@inlined
def _is_subtree(known: Any, number: int, searched: Any) -> bool:
    (hashes, starts, children), (hash, pending, first, count) = known, searched
    start, same = starts[number], 0
    if hashes[number] != hash or starts[number + 1] - start != count:
        return False
    while same < count and children[start + same] == pending[first + same]:
        same += 1
    return same == count


_find_subtree = slot_finder(_is_subtree)


@inlined
def sort(values: Int32, first: int, end: int) -> None:
    """Sort a few values."""
    for index in range(first + 1, end):
        value, place = values[index], index
        while place > first and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@inlined
def hash_of(symbol: int, values: Int32, first: int, end: int) -> np.uint64:
    """A hash of an element's symbol and of its children."""
    hash = U(symbol + 1) * GOLDEN
    for index in range(first, end):
        hash = (hash ^ hash >> U(29) ^ U(np.int64(values[index]))) * GOLDEN
    return hash ^ hash >> U(32)


@called
def add_subtree(state: Int64, symbol: int, first: int, end: int, hash: np.uint64, row: int) -> int:
    """Add a subtree whose children are pending; its number."""
    pending, children = int32s(state, at.WORK.pending), int32s(state, at.WORK.children)
    number, used = state[at.SUBTREES], state[at.CHILDREN]
    for index in range(first, end):
        children[used] = pending[index]
        used += 1
    int32s(state, at.DAG.symbols)[number] = symbol
    int64s(state, at.DAG.child_starts)[number + 1] = used
    int32s(state, at.DAG.rows)[number] = row
    uint64s(state, at.DAG.hashes)[number] = hash
    int64s(state, at.DAG.parents)[number] = int32s(state, at.DAG.places)[number] = 0
    state[at.SUBTREES], state[at.CHILDREN] = number + 1, used
    return number


@inlined
def subtree_of(state: Int64, symbol: int, first: int) -> int:
    """The number of a subtree whose children are pending from some index on."""
    end, pending = state[at.PENDING], int32s(state, at.WORK.pending)
    sort(pending, first, end)
    hash = hash_of(symbol, pending, first, end)
    slots, hashes = int32s(state, at.DAG.slots), uint64s(state, at.DAG.hashes)
    starts, children = int64s(state, at.DAG.child_starts), int32s(state, at.WORK.children)
    searched = (hash, pending, first, end - first)
    slot = _find_subtree(slots, hash, (hashes, starts, children), searched)
    if slots[slot] == 0:
        number = add_subtree(state, symbol, first, end, hash, at.NOTHING)
        int32s(state, at.DAG.places)[number] = slot
        slots[slot] = number + 1
    return np.int64(slots[slot]) - 1


@inlined
def add_child(state: Int64, subtree: int) -> None:
    """The innermost element gets a child, unless it was the last element that got that subtree."""
    parents = int64s(state, at.DAG.parents)
    element = int64s(state, at.WORK.elements)[state[at.LEVEL]]
    if parents[subtree] != element:
        parents[subtree] = element
        int32s(state, at.WORK.pending)[state[at.PENDING]] = subtree
        state[at.PENDING] += 1


# -- elements --------------------------------------------------------------------------------------


@called
def open_level(state: Int64, symbol: int, element: int) -> None:
    """An element begins; there must be room for its level."""
    level = state[at.LEVEL] = state[at.LEVEL] + 1
    int32s(state, at.WORK.open_symbols)[level] = symbol
    int64s(state, at.WORK.elements)[level] = element
    int64s(state, at.WORK.starts)[level] = state[at.PENDING]
    uint8s(state, at.WORK.has_row)[level] = 0


@called
def close_level(state: Int64) -> int:
    """The innermost element ends; the number of its subtree."""
    level = state[at.LEVEL]
    symbol = np.int64(int32s(state, at.WORK.open_symbols)[level])
    first, end = int64s(state, at.WORK.starts)[level], state[at.PENDING]
    if uint8s(state, at.WORK.has_row)[level] != 0:
        subtree = add_subtree(state, symbol, first, end, U(0), level)
    elif end - first > SHARED_MAX:
        subtree = add_subtree(state, symbol, first, end, U(0), at.NOTHING)
    else:
        subtree = subtree_of(state, symbol, first)
    state[at.PENDING] = first
    state[at.LEVEL] = level - 1
    return subtree


@called
def add_facts(state: Int64, event: int) -> None:
    """What is true of the innermost element, which began at an event, is among its children."""
    events, facts = int64s(state, at.READ.fact_events), int32s(state, at.READ.facts)
    starts, fact_at = int64s(state, at.PROGRAM.fact_starts), int64s(state, at.WORK.fact_at)
    pending, first = int32s(state, at.WORK.pending), state[at.PENDING]
    while state[at.FACT] < len(events) and events[state[at.FACT]] == event:
        fact, used = np.int64(facts[state[at.FACT]]), state[at.PENDING]
        state[at.FACT] += 1
        if used == first or pending[used - 1] != ~fact:  # not of another text node, too
            fact_at[fact] = starts[fact]
            pending[used] = ~fact
            state[at.PENDING] = used + 1


# -- documents -------------------------------------------------------------------------------------


@called
def full_array(state: Int64) -> int:
    """The field of an array without room for one more element with all facts, or 0."""
    room = state[at.PENDING] + len(int64s(state, at.WORK.fact_at)) + 2
    if room > len(int32s(state, at.WORK.pending)):
        return at.WORK.pending
    if state[at.CHILDREN] + state[at.LEVEL] + room > len(int32s(state, at.WORK.children)):
        return at.WORK.children
    levels = len(int32s(state, at.WORK.open_symbols))
    return at.WORK.open_symbols if state[at.LEVEL] + 2 > levels else 0


@inlined
def is_full(state: Int64) -> bool:
    """Whether the segment has no room for a subtree."""
    return state[at.SUBTREES] == len(int32s(state, at.DAG.symbols))


@called
def compress_document(state: Int64, end: int) -> int:
    """The events of a document, from the next one on, while there is room in the segment."""
    tags, symbols = int32s(state, at.READ.tags), int32s(state, at.READ.symbols)
    facts = int64s(state, at.READ.fact_events)
    event = state[at.EVENT]
    full = 0
    while event < end and not is_full(state):
        tag = np.int64(tags[event])
        if tag < 0:
            add_child(state, close_level(state))
            event += 1
            continue
        full = full_array(state)
        if full:
            break
        has_facts = state[at.FACT] < len(facts) and facts[state[at.FACT]] == event
        symbol = np.int64(symbols[tag])
        if tags[event + 1] < 0 and not has_facts:
            add_child(state, subtree_of(state, symbol, state[at.PENDING]))
            event += 2
        else:
            open_level(state, symbol, event + 1)
            add_facts(state, event)
            event += 1
    state[at.EVENT] = event
    return full


@called
def close_document(state: Int64) -> int:
    """The document ends; the field of a full array, or 0."""
    groups, sets = len(uint8s(state, at.PROGRAM.is_general)), state[at.SETS]
    room = (sets - state[at.SEGMENT_SETS] + 1) * groups * BLOCK
    if room > len(uint64s(state, at.WORK.answers)):
        return at.WORK.answers
    known, set_of = state[at.SUBTREES], int32s(state, at.DAG.sets)
    subtree = close_level(state)
    if subtree == known:
        set_of[subtree] = sets
        state[at.SETS] = sets + 1
    int32s(state, at.WORK.document_sets)[state[at.DOCUMENT]] = set_of[subtree]
    state[at.IS_OPEN] = 0
    return 0


@called
def compress(state: Int64) -> int:
    """Documents, from the next event on, until the segment is full; or the field of a full array.

    A segment that is half full ends with a document.
    """
    starts, half = int64s(state, at.READ.document_starts), len(int32s(state, at.DAG.symbols)) >> 1
    full = 0
    while state[at.DOCUMENT] < len(starts) - 1 and full == 0 and not is_full(state):
        document, end = state[at.DOCUMENT], starts[state[at.DOCUMENT] + 1]
        if starts[document] == end:  # it is in error
            state[at.DOCUMENT] = document + 1
            continue
        if state[at.IS_OPEN] == 0:
            if state[at.SUBTREES] > half:
                break
            state[at.LEVEL] = at.FIRST - 1
            state[at.EVENT] = starts[document]
            open_level(state, state[at.DOCUMENT_SYMBOL], -1 - document)
            state[at.IS_OPEN] = 1
        full = compress_document(state, end)
        if full == 0 and state[at.EVENT] == end and not is_full(state):
            full = close_document(state)
            state[at.DOCUMENT] += full == 0
    return full


@kernel
def list_heights(state: Int64, heights: Int32) -> None:
    """How high each subtree of the segment is: 0 for one without any in it."""
    starts, children = int64s(state, at.DAG.child_starts), int32s(state, at.WORK.children)
    for subtree in range(state[at.SUBTREES]):
        height = np.int64(0)
        for index in range(starts[subtree], starts[subtree + 1]):
            child = np.int64(children[index])
            if child >= 0:
                height = max(height, np.int64(heights[child]) + 1)
        heights[subtree] = height
