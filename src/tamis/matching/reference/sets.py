"""Sets of nodes as masks, and XPath's axes on them, forwards and backwards.

Nodes are rows in document order and a subtree is a range of rows, so that each axis is one or two
array operations, linear in the number of nodes whatever the depth. ``kind``, ``parent`` and ``end``
are those of :class:`tamis.matching.reference.nodes.NodeTable`.
"""

from __future__ import annotations

import numpy as np

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]
Rows = np.ndarray[tuple[int], np.dtype[np.int64]]


def children(parent: Rows, nodes: Mask) -> Mask:
    """Rows whose parent is among ``nodes``, attributes included.

    >>> parent = np.array([0, 0, 1, 1, 0])
    >>> children(parent, np.array([False, True, False, False, False])).nonzero()[0]
    array([2, 3])
    """
    found: Mask = nodes[parent]
    found &= parent != np.arange(len(parent))  # a document node has no parent
    return found


def descendants(end: Rows, nodes: Mask) -> Mask:
    """Rows strictly inside the subtree of one of ``nodes``, attributes included.

    >>> end = np.array([5, 4, 3, 4, 5])
    >>> descendants(end, np.array([False, True, False, False, False])).nonzero()[0]
    array([2, 3])
    """
    rows = nodes.nonzero()[0]
    change = np.zeros(len(nodes) + 1, dtype=np.int64)
    change[rows + 1] += 1
    np.subtract.at(change, end[rows], 1)
    return np.cumsum(change)[:-1] > 0


def first_child(parent: Rows, value: Rows, none: int) -> Rows:
    """For each row the least ``value`` of its children; ``none`` where no child has one.

    >>> first_child(np.array([0, 0, 1, 1]), np.array([9, 9, 3, 2]), 9)
    array([9, 2, 9, 9])
    """
    found = np.full(len(value), none, dtype=np.int64)
    rows = (value < none).nonzero()[0]
    rows = rows[parent[rows] != rows]
    np.minimum.at(found, parent[rows], value[rows])
    return found


def first_descendant(end: Rows, value: Rows, none: int) -> Rows:
    """For each row the least ``value`` strictly inside its subtree; ``none`` where there is none.

    ``value[y]`` must be ``none`` or lie in the subtree of ``y``. Then the least value among *all*
    rows after ``x`` decides: if it lies before ``end[x]``, so does its row; if it does not, no row
    inside has a smaller one.

    >>> first_descendant(np.array([4, 3, 3, 4]), np.array([9, 9, 2, 3]), 9)
    array([2, 2, 9, 9])
    """
    after = np.full(len(value) + 1, none, dtype=np.int64)
    after[:-1] = np.minimum.accumulate(value[::-1])[::-1]
    least = after[1:]
    return np.where(least < end, least, none)


def nth_of_parent(parent: Rows, nodes: Mask, number: int) -> Mask:
    """Those of ``nodes`` that are the ``number``-th (from 1) among those with the same parent.

    >>> nth_of_parent(np.array([0, 0, 0, 0]), np.array([False, True, True, True]), 2).nonzero()[0]
    array([2])
    """
    rows = nodes.nonzero()[0]
    by_parent = rows[np.argsort(parent[rows], kind="stable")]
    parents = parent[by_parent]
    places = np.arange(len(by_parent))
    is_first = np.ones(len(by_parent), dtype=bool)
    is_first[1:] = parents[1:] != parents[:-1]
    start = np.maximum.accumulate(np.where(is_first, places, 0))
    found = np.zeros_like(nodes)
    found[by_parent[places - start + 1 == number]] = True
    return found
