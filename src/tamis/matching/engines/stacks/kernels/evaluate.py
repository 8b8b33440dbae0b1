"""What subtrees latch into the elements around them; a node of 512 twigs at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Int32, Int64, Words
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.bits import first, ones
from tamis.core.kernel.blocks import BLOCK, load, or_, store
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.matching.engines.stacks import layout as at
from tamis.matching.engines.stacks.kernels.compress import compress
from tamis.matching.engines.stacks.kernels.step import document_answers, evaluate_subtree

# -- children --------------------------------------------------------------------------------------


@inlined
def clear(words: Words, begin: int, end: int) -> None:
    """Set some words to 0."""
    for place in range(begin, end):
        words[place] = U(0)


@called
def add_fact(state: Int64, fact: int, row: int, begin: int, end: int) -> None:
    """A fact is true of the element of a row: set its nodes, in the words of one group."""
    starts, fact_at = int64s(state, at.PROGRAM.fact_starts), int64s(state, at.WORK.fact_at)
    words, bits = int64s(state, at.PROGRAM.fact_words), uint64s(state, at.PROGRAM.fact_bits)
    levels, place = uint64s(state, at.WORK.levels), fact_at[fact]
    while place < starts[fact + 1] and words[place] < begin:  # of a group before
        place += 1
    fact_at[fact] = place
    while place < starts[fact + 1] and words[place] < end:
        levels[row * state[at.ROW] + words[place]] |= bits[place]
        place += 1


@inlined
def row_with_facts(
    state: Int64, subtree: int, begin: int, end: int, bounds: tuple[int, int]
) -> int:
    """The row of ``levels`` that has what is known of an element beside its children's subtrees.

    Args:
        bounds: of the facts among its children.
    """
    row = np.int64(int32s(state, at.DAG.rows)[subtree])
    if bounds[0] < bounds[1]:
        if row == at.NOTHING:
            row = at.SCRATCH
            words = row * state[at.ROW]
            clear(uint64s(state, at.WORK.levels), words + begin, words + end)
        children = int32s(state, at.WORK.children)
        for index in range(bounds[0], bounds[1]):
            add_fact(state, ~np.int64(children[index]), row, begin, end)
    return row


@inlined
def end_of_facts(children: Int32, child: int, end: int) -> int:
    """Where facts end among some children; they come before subtrees."""
    while child < end and children[child] < 0:
        child += 1
    return child


@called
def keep_open(state: Int64, begin: int, end: int) -> None:
    """The segment ends inside a document: its open elements keep what they have of one group."""
    pending, starts = int32s(state, at.WORK.pending), int64s(state, at.WORK.starts)
    has_row, levels = uint8s(state, at.WORK.has_row), uint64s(state, at.WORK.levels)
    latched, width = uint64s(state, at.WORK.latched), end - begin
    for level in range(at.FIRST, state[at.LEVEL] + 1):
        row = level * state[at.ROW] + begin
        if has_row[level] == 0:
            clear(levels, row, row + width)
        behind = starts[level + 1] if level < state[at.LEVEL] else state[at.PENDING]
        for index in range(starts[level], behind):
            child = np.int64(pending[index])
            if child < 0:
                add_fact(state, ~child, level, begin, end)
                continue
            for place in range(0, width, BLOCK):
                known = load(levels, row + place)
                store(levels, row + place, or_(known, load(latched, child * width + place)))


# -- elements --------------------------------------------------------------------------------------


@inlined
def program_of(state: Int64) -> Any:
    """The arrays of a program, taken out of the state once: a store might change it."""
    edges = (
        int32s(state, at.PROGRAM.edge_starts),
        int32s(state, at.PROGRAM.edge_slots),
        uint64s(state, at.PROGRAM.unasked),
        int32s(state, at.PROGRAM.negations),
        uint64s(state, at.PROGRAM.negated),
    )
    owns, own = int32s(state, at.PROGRAM.owns), uint64s(state, at.PROGRAM.own)
    return uint64s(state, at.PROGRAM.below), owns, own, edges


@called
def evaluate_group(state: Int64, number: int) -> None:
    """What all subtrees of the segment latch, for one group; and answers of documents."""
    slots, symbols = int32s(state, at.PROGRAM.group_slots), int32s(state, at.DAG.symbols)
    starts, children = int64s(state, at.DAG.child_starts), int32s(state, at.WORK.children)
    passing, levels = uint64s(state, at.READ.tests), uint64s(state, at.WORK.levels)
    latched, program = (uint64s(state, at.WORK.latched), 0), program_of(state)
    twigs, answers = uint64s(state, at.PROGRAM.twigs), uint64s(state, at.WORK.answers)
    begin, end = np.int64(slots[number]) * BLOCK, np.int64(slots[number + 1]) * BLOCK
    group = (number, begin, end, uint8s(state, at.PROGRAM.is_general)[number] != 0)
    inner = (uint64s(state, at.WORK.inner), -begin)
    row_words, answer, answer_words = state[at.ROW], number * BLOCK, (len(slots) - 1) * BLOCK
    for subtree in range(state[at.SUBTREES]):
        last = starts[subtree + 1]
        first = end_of_facts(children, starts[subtree], last)
        row = row_with_facts(state, subtree, begin, end, (starts[subtree], first))
        tests = (passing, np.int64(symbols[subtree]) * row_words)
        below = (children, first, last)
        element = (levels, row * row_words), tests, below, subtree
        evaluate_subtree(program, group, element, latched, inner)
        if symbols[subtree] == state[at.DOCUMENT_SYMBOL]:
            store(answers, answer, document_answers(program, twigs, group, inner))
            answer += answer_words
    keep_open(state, begin, end)


@called
def evaluate(state: Int64) -> int:
    """What all subtrees of the segment latch, for all groups; or the field of a full array."""
    if (state[at.LEVEL] + 1) * state[at.ROW] > len(uint64s(state, at.WORK.levels)):
        return at.WORK.levels
    for group in range(len(uint8s(state, at.PROGRAM.is_general))):
        evaluate_group(state, group)
    state[at.PHASE] = at.COLLECT
    return 0


# -- segments --------------------------------------------------------------------------------------


@kernel
def collect(state: Int64) -> int:
    """List the queries that are true of each distinct document; or the field of a full array."""
    answers, members = uint64s(state, at.WORK.answers), int32s(state, at.WORK.members)
    queries, starts = int32s(state, at.READ.queries), int64s(state, at.WORK.set_starts)
    words = len(uint8s(state, at.PROGRAM.is_general)) * BLOCK
    before, used = state[at.SEGMENT_SETS], state[at.MEMBERS]
    count = np.int64(0)
    for place in range((state[at.SETS] - before) * words):
        count += ones(answers[place])
    if used + count > len(members):
        return at.WORK.members
    for each in range(before, state[at.SETS]):
        for word in range(words):
            bits = answers[(each - before) * words + word]
            while bits != U(0):
                members[used] = queries[word * 64 + first(bits)]
                used += 1
                bits &= bits - U(1)
        starts[each + 1] = used
    state[at.SEGMENT_SETS], state[at.MEMBERS] = state[at.SETS], used
    state[at.PHASE] = at.BEGIN
    return 0


@called
def begin_segment(state: Int64) -> None:
    """The next segment knows nothing of this one."""
    slots, places = int32s(state, at.DAG.slots), int32s(state, at.DAG.places)
    starts, has_row = int64s(state, at.WORK.starts), uint8s(state, at.WORK.has_row)
    for subtree in range(state[at.SUBTREES]):
        slots[places[subtree]] = 0
    state[at.SUBTREES] = state[at.CHILDREN] = state[at.PENDING] = 0
    for level in range(at.FIRST, state[at.LEVEL] + 1):
        starts[level], has_row[level] = 0, 1


@kernel
def compress_segment(state: Int64) -> int:
    """List the subtrees of the next documents, until a segment is full; or a full array's field."""
    if state[at.PHASE] == at.BEGIN:
        begin_segment(state)
        state[at.PHASE] = at.COMPRESS
    full = compress(state)
    if full == 0:
        state[at.PHASE] = at.EVALUATE
    return full


@kernel
def run(state: Int64) -> int:
    """Answer the documents of a batch, from the next one on; or the field of a full array."""
    documents = len(int64s(state, at.READ.document_starts)) - 1
    full = 0
    while full == 0 and (state[at.DOCUMENT] < documents or state[at.PHASE] != at.BEGIN):
        if state[at.PHASE] == at.EVALUATE:
            full = evaluate(state)
        elif state[at.PHASE] == at.COLLECT:
            full = collect(state)
        else:
            full = compress_segment(state)
    return full
