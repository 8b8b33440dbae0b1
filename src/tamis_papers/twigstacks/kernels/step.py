"""One event and one column: plain functions, which the CPU's kernel and the GPU's both compile.

They do not call each other, since each compiler makes functions of its own of them. All numbers are
integers, and nothing branches: the threads of a GPU's warp never diverge here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis_papers.twigstacks import layout as at

_TAG = (1 << at.TAG_BITS) - 1
_PREFIX = (1 << at.PREFIX_BITS) - 1


def decoded(events: Any, first: int, width: int) -> int:
    """An encoded event, as ``tag << 1 | is_pop``.

    Args:
        first: where its bytes begin.
        width: how many it has: one, or more if there are more than 127 tags.
    """
    code = np.int64(events[first])
    for byte in range(1, width):
        code |= np.int64(events[np.uint64(first + byte)]) << np.int64(8 * byte)
    is_pop = code >> np.int64(8 * width - 1)
    return ((code << 1) ^ (is_pop << np.int64(8 * width))) | is_pop


def prefix_of(personality: int) -> int:
    """The column of a node's parent."""
    return (personality >> at.PREFIX_SHIFT) & _PREFIX


def passes(personality: int, tag: int) -> int:
    """1 if a node's name test passes at an element, else 0."""
    own = personality & _TAG
    return np.int64(own == tag) | np.int64(own == at.ANY)


def pushed(personality: int, passed: int, own: int, prefix: int) -> int:
    """The entry of a column at a start tag: Figure 5, and nothing reported yet.

    Args:
        passed: whether the node's name test passes.
        own, prefix: the entries of the column and of its prefix, a level below.
    """
    descends = (personality >> at.DESCENDS_SHIFT) & 1
    seen = (prefix >> (at.PUSH_CHILD_SHIFT - descends)) & 1
    matched = seen & passed
    for_children = ((personality >> at.HAS_CHILDREN_SHIFT) | (personality >> at.LEAF_SHIFT)) & 1
    for_descendants = (personality >> at.HAS_DESCENDANTS_SHIFT) & 1
    return (
        ((matched & for_children) << at.PUSH_CHILD_SHIFT)
        | ((matched & for_descendants) << at.PUSH_DESC_SHIFT)
        | (own & at.PUSH_DESC)
    )


def popped(personality: int, passed: int, own: int, closed: int, has_children: int) -> int:
    """The entry of a column at an end tag: Figure 6, as it has to be.

    Args:
        passed: whether the node's name test passes.
        own: the entry of the column at the level that is now the top.
        closed: its entry at the level that ends.
        has_children: 1 if all children reported to the level that ends, else 0.
    """
    is_leaf = (personality >> at.LEAF_SHIFT) & 1
    was_matched = (closed >> at.PUSH_CHILD_SHIFT) & 1
    holds = passed & has_children & (was_matched | (is_leaf ^ 1))
    reported = (closed >> at.POP_DESC_SHIFT) | (closed >> at.POP_CHILD_SHIFT)
    carried = reported & (personality >> at.DESCENDS_SHIFT) & 1
    return own | (holds << at.POP_CHILD_SHIFT) | (carried << at.POP_DESC_SHIFT)


def has_reported(entry: int) -> int:
    """1 if a column reported to the entry's level, else 0."""
    return ((entry >> at.POP_DESC_SHIFT) | (entry >> at.POP_CHILD_SHIFT)) & 1
