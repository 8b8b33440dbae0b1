"""XPath's axes on sets of nodes, forwards and backwards.

A set is a sorted array of rows of a :class:`.nodes.NodeTable`. Rows are in document order and a
subtree is a range of rows, ``x`` to ``end[x] - 1``, so that each axis is a few array operations on
the sets alone, whatever the depth.
"""

from __future__ import annotations

import numpy as np

Rows = np.ndarray[tuple[int], np.dtype[np.int64]]
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def have_parent_in(parent: Rows, candidates: Rows, contexts: Rows) -> Mask:
    """Which of the candidates are children (or attributes) of one of the contexts.

    >>> parent = np.array([0, 0, 1, 1, 0])
    >>> have_parent_in(parent, np.array([2, 4]), np.array([1]))
    array([ True, False])
    """
    member = np.zeros(len(parent), dtype=bool)
    member[contexts] = True
    return np.asarray(member[parent[candidates]])


def have_ancestor_in(end: Rows, candidates: Rows, contexts: Rows) -> Mask:
    """Which of the candidates lie strictly inside the subtree of one of the contexts.

    Of the contexts before a candidate, the one whose subtree ends last decides.

    >>> end = np.array([5, 4, 3, 4, 5])
    >>> have_ancestor_in(end, np.array([1, 3, 4]), np.array([1]))
    array([False,  True, False])
    """
    furthest = np.zeros(len(contexts) + 1, dtype=np.int64)
    np.maximum.accumulate(end[contexts], out=furthest[1:])
    return np.asarray(furthest[np.searchsorted(contexts, candidates)] > candidates)


def first_child(parent: Rows, contexts: Rows, nodes: Rows, value: Rows, none: int) -> Rows:
    """For each context the least ``value`` of those of ``nodes`` that are its children.

    The parents of ``nodes`` must all be contexts.

    >>> parent = np.array([0, 0, 1, 1])
    >>> first_child(parent, np.array([0, 1]), np.array([2, 3]), np.array([3, 2]), 9)
    array([9, 2])
    """
    found = np.full(len(contexts), none, dtype=np.int64)
    np.minimum.at(found, np.searchsorted(contexts, parent[nodes]), value)
    return found


def first_descendant(end: Rows, contexts: Rows, nodes: Rows, value: Rows, none: int) -> Rows:
    """For each context the least ``value`` of those of ``nodes`` that are inside its subtree.

    ``value[i]`` must be ``none`` or lie in the subtree of ``nodes[i]``. Then the least value among
    *all* nodes after a context decides: if it lies before the context's end, so does its node; if
    it does not, no node inside has a smaller one.

    >>> end = np.array([4, 3, 3, 4])
    >>> first_descendant(end, np.array([0, 1, 3]), np.array([2, 3]), np.array([2, 3]), 9)
    array([2, 2, 9])
    """
    after = np.full(len(nodes) + 1, none, dtype=np.int64)
    after[:-1] = np.minimum.accumulate(value[::-1])[::-1]
    least = after[np.searchsorted(nodes, contexts, side="right")]
    return np.where(least < end[contexts], least, none)


def nth_of_parent(parent: Rows, nodes: Rows, number: int) -> Rows:
    """Those of ``nodes`` that are the ``number``-th (from 1) of those with the same parent.

    >>> nth_of_parent(np.array([0, 0, 0, 0]), np.array([1, 2, 3]), 2)
    array([2])
    """
    by_parent = nodes[np.argsort(parent[nodes], kind="stable")]
    parents = parent[by_parent]
    places = np.arange(len(by_parent))
    is_first = np.ones(len(by_parent), dtype=bool)
    is_first[1:] = parents[1:] != parents[:-1]
    start = np.maximum.accumulate(np.where(is_first, places, 0))
    return np.sort(by_parent[places - start + 1 == number])
