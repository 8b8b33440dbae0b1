"""One subtree and one group of twigs: what its children latched, what holds, what it latches.

All is written in terms of blocks. On a processor, a block is eight words in vector registers. In a
CUDA kernel (``cuda.py``), eight threads have a word each, and run this same code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.kernel import inlined
from tamis.core.kernel.blocks import BLOCK, Block, and_, load, or_, store, xor


@inlined
def with_children(satisfied: Block, inner: Any, edges: Any, index: int, negates: bool) -> Block:
    """Those of some twigs whose node has all its children, and none of its negated ones.

    Args:
        inner: some words, and where slot 0 of all groups would be in them.
        index: whose edges they are.
        negates: whether a child of some edge may be negated.
    """
    (words, slot_0), (starts, slots, unasked, negations, negated) = inner, edges
    for edge in range(starts[index], starts[index + 1]):
        child = load(words, slot_0 + np.int64(slots[edge]) * BLOCK)
        if negates and negations[edge] >= 0:
            child = xor(child, load(negated, np.int64(negations[edge]) * BLOCK))
        satisfied = and_(satisfied, or_(child, load(unasked, edge * BLOCK)))
    return satisfied


@inlined
def with_latched(known: Block, latched: Any, width: int, children: Any) -> Block:
    """What is known of one node inside an element, and what its children latched for it.

    Args:
        latched: some words, and where those of subtree 0 are for the node.
    """
    (words, subtree_0), (numbers, child, end) = latched, children
    while child < end:
        known = or_(known, load(words, subtree_0 + np.int64(numbers[child]) * width))
        child += 1
    return known


@inlined
def evaluate_subtree(program: Any, group: Any, element: Any, latched: Any, inner: Any) -> None:
    """What a subtree latches into the element around it, for the nodes of one group.

    Args:
        program: its arrays ``below``, ``owns``, ``own``, and those of edges.
        group: its number; where its words begin and end in a row; whether it is general.
        element: rows of words, and where those of the element begin: what is known inside it, and
            the nodes whose test it passes; its children; its number.
        latched: some words, and where those of subtree 0 begin for this group.
        inner: some words, and where slot 0 of all groups would be in them. They are filled.
    """
    below, owns, own, edges = program
    number, begin, end, is_general = group
    (known, known_row), (passing, tests), children, subtree = element
    (latched_words, subtree_0), (inner_words, slot_0), width = latched, inner, end - begin
    place = end
    while place > begin:  # children first
        place -= BLOCK
        slot = place // BLOCK
        here = load(known, known_row + place)
        here = with_latched(here, (latched_words, subtree_0 + place - begin), width, children)
        store(inner_words, slot_0 + place, here)
        satisfied = load(passing, tests + place)
        satisfied = with_children(satisfied, inner, edges, slot + number, is_general)
        if is_general and owns[slot] >= 0:
            mine = and_(satisfied, load(own, np.int64(owns[slot]) * BLOCK))
            store(inner_words, slot_0 + place, or_(here, mine))
            satisfied = xor(satisfied, mine)
        satisfied = or_(satisfied, and_(here, load(below, place)))
        store(latched_words, subtree_0 + subtree * width + place - begin, satisfied)


@inlined
def document_answers(program: Any, twigs: Any, group: Any, inner: Any) -> Block:
    """The twigs of a group that are true of a document, whose ``inner`` is filled."""
    number, _, end, _ = group
    asked = load(twigs, number * BLOCK)
    return with_children(asked, inner, program[3], end // BLOCK + number, True)
