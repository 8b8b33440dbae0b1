"""The kernel on the CPU: documents, and for each one block of twigs after the other.

What a block needs (a byte of stack for each column and level, eight bytes of personality) stays in
the nearest cache while the events go by.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis_papers.twigstacks import layout as at
from tamis_papers.twigstacks.kernels import step

decoded = inlined(step.decoded)
prefix_of = inlined(step.prefix_of)
passes = inlined(step.passes)
pushed = inlined(step.pushed)
popped = inlined(step.popped)
has_reported = inlined(step.has_reported)


# -- Table 1 ---------------------------------------------------------------------------------------


@kernel
def encode(tags: Int32, symbols: Int32, width: int, open_tags: Int32, events: Bytes) -> None:
    """Encode the events of a batch.

    Args:
        tags: as in ``DocumentBatch``.
        symbols: int32[names]; the tag of each name of the vocabulary.
        width: bytes of an event.
        open_tags: int32[depth]; room for the tags of open elements.
        events: uint8[width * n]; gets the encoded events.
    """
    depth = 0
    for event in range(len(tags)):
        if tags[event] >= 0:
            code = np.int64(symbols[tags[event]])
            open_tags[depth] = code
            depth += 1
        else:
            depth -= 1
            code = open_tags[depth] | (np.int64(1) << (8 * width - 1))
        for byte in range(width):
            events[event * width + byte] = (code >> (8 * byte)) & 255


# -- blocks ----------------------------------------------------------------------------------------


@inlined
def have_children(stack: Bytes, level: int, child: int, end: int) -> int:
    """1 if all children of a column reported to a level, else 0.

    Args:
        level: where its entries begin.
        child, end: the columns of the children.
    """
    result = np.int64(1)
    while child < end:
        result &= has_reported(stack[level + child])
        child += 1
    return result


@called
def push(state: Int64, block: int, tag: int, level: int) -> None:
    """An element begins: all columns of a block.

    Args:
        level: where the entries of its level begin.
    """
    starts, stack = int64s(state, at.PROGRAM.block_starts), uint8s(state, at.WORK.stack)
    personalities = int64s(state, at.PROGRAM.personalities)
    first, columns = starts[block], starts[block + 1] - starts[block]
    below = level - columns
    for column in range(columns):
        own = personalities[first + column]
        prefix = stack[below + prefix_of(own)]
        passed = passes(own, tag)
        stack[level + column] = pushed(own, passed, stack[below + column], prefix)


@called
def pop(state: Int64, block: int, tag: int, level: int) -> None:
    """An element ends: all columns of a block.

    Args:
        level: where the entries of its level begin.
    """
    starts, stack = int64s(state, at.PROGRAM.block_starts), uint8s(state, at.WORK.stack)
    personalities = int64s(state, at.PROGRAM.personalities)
    children = int32s(state, at.PROGRAM.child_starts)
    first, columns = starts[block], starts[block + 1] - starts[block]
    below, child = level - columns, first + block
    for column in range(columns):
        own = personalities[first + column]
        passed = passes(own, tag)
        begin, end = np.int64(children[child + column]), np.int64(children[child + column + 1])
        held = have_children(stack, level, begin, end)
        closed = stack[level + column]
        stack[below + column] = popped(own, passed, stack[below + column], closed, held)


@called
def match_block(state: Int64, block: int, start: int, end: int) -> None:
    """Match a document with the twigs of a block."""
    starts, stack = int64s(state, at.PROGRAM.block_starts), uint8s(state, at.WORK.stack)
    twig_starts, children = (
        int64s(state, at.PROGRAM.twig_starts),
        int32s(state, at.PROGRAM.child_starts),
    )
    events, found = uint8s(state, at.READ.events), int32s(state, at.WORK.found)
    width = state[at.WIDTH]
    columns = starts[block + 1] - starts[block]
    twigs = twig_starts[block + 1] - twig_starts[block]
    for column in range(columns):
        stack[column] = at.BEGINNING if column < twigs else 0
    level = np.int64(0)
    for event in range(start, end):
        code = decoded(events, event * width, width)
        if code & 1 == 0:
            level += columns
            push(state, block, code >> 1, level)
        else:
            pop(state, block, code >> 1, level)
            level -= columns
    child = starts[block] + block
    for twig in range(twigs):
        begin, last = np.int64(children[child + twig]), np.int64(children[child + twig + 1])
        if have_children(stack, np.int64(0), begin, last):
            found[state[at.FOUND_COUNT]] = twig_starts[block] + twig
            state[at.FOUND_COUNT] += 1


@kernel
def match_documents(state: Int64) -> int:
    """Match the documents of a batch, from the next one on; or the field of a full array."""
    starts = int64s(state, at.READ.document_starts)
    found_starts = int64s(state, at.WORK.found_starts)
    blocks = len(int64s(state, at.PROGRAM.block_starts)) - 1
    twigs = int64s(state, at.PROGRAM.twig_starts)[blocks]
    for document in range(state[at.DOCUMENT], len(starts) - 1):
        state[at.DOCUMENT] = document
        if state[at.FOUND_COUNT] + twigs > len(int32s(state, at.WORK.found)):
            return at.WORK.found
        if starts[document] < starts[document + 1]:  # else it is in error
            for block in range(blocks):
                match_block(state, block, starts[document], starts[document + 1])
        found_starts[document + 1] = state[at.FOUND_COUNT]
    return 0
