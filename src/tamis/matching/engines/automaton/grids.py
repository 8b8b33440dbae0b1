"""Grids: many rules of two facts at a node, told apart by rows and columns (see the kernels)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, distinct
from tamis.matching.engines.automaton.program import (
    ACCEPTS,
    ACTION,
    ALSO,
    CELLS,
    COLUMNS,
    FIRST_COLUMN,
    FIRST_ROW,
    FORMULA,
    GRID_COLUMNS,
    TARGET,
    THIRD,
    WATCHED,
)

GRID_RULES = 256
"""A grid is made for so many rules of facts about the same two tests."""
SPARSEST = 8
"""And for cells of which one in so many has a rule."""


def grid_arrays(
    nodes: Int32, rules: Int32, tests: Int32
) -> tuple[NDArray[np.bool_], Int32, dict[str, NDArray[Any]]]:
    """Which rules are in grids; the node of each grid, ascending; and the arrays of a program.

    Args:
        nodes: that of each rule, ascending.
        tests: by fact that children tell, from 1 on.
    """
    is_sliced = np.zeros(len(rules), bool)
    grids: list[tuple[int, int, int, int]] = []
    of_nodes: list[int] = []
    rows: list[Int32] = [np.zeros(0, np.int32)]
    cells: list[Int32] = [np.zeros(0, np.int32)]
    sliced: list[Int32] = [np.zeros(0, np.int32)]
    used = np.zeros(3, np.int64)  # rows, cells and queries so far
    for members in _candidates(nodes, rules, tests):
        one, other = rules[members, WATCHED], rules[members, ALSO]
        turned = tests[one] > tests[other]
        one, other = np.where(turned, other, one), np.where(turned, one, other)
        if len(distinct(one)) > len(distinct(other)):
            one, other = other, one
        facts, row = np.unique(one, return_inverse=True)
        first = int(other.min())
        width = int(other.max()) - first + 2
        if len(facts) * width > SPARSEST * len(members):
            continue
        key = row.astype(np.int64) * width + other - first
        order = np.argsort(key, kind="stable")
        grids.append((int(used[0]), first, width - 1, int(used[1])))
        of_nodes.append(int(nodes[members[0]]))
        rows.append(facts)
        ends = np.searchsorted(key[order], np.arange(len(facts) * width))
        cells.append((ends + used[2]).astype(np.int32))
        sliced.append(rules[members[order], TARGET])
        is_sliced[members] = True
        used += len(facts), len(cells[-1]), len(members)
    table = np.zeros((len(grids) + 1, GRID_COLUMNS), np.int32)
    table[:-1, [FIRST_ROW, FIRST_COLUMN, COLUMNS, CELLS]] = np.array(grids).reshape(-1, 4)
    table[-1, [FIRST_ROW, CELLS]] = used[:2]
    return (
        is_sliced,
        np.array(of_nodes, np.int32),
        {
            "grids": table,
            "grid_rows": np.concatenate(rows),
            "grid_cells": np.concatenate(cells),
            "sliced": np.concatenate(sliced),
        },
    )


def _candidates(nodes: Int32, rules: Int32, tests: Int32) -> list[NDArray[np.int64]]:
    """Rules of a node that accept, of two facts that children of two tests tell."""
    first, other = rules[:, WATCHED], rules[:, ALSO]
    fits = (rules[:, ACTION] == ACCEPTS) & (rules[:, FORMULA] < 0) & (first >= 0)
    fits &= (first != other) & (rules[:, THIRD] == first)
    fits &= (tests[first] > 0) & (tests[other] > 0) & (tests[first] != tests[other])
    which = np.flatnonzero(fits)
    pairs = np.stack([tests[first[which]], tests[other[which]]], axis=1)
    pairs.sort(axis=1)
    keys = np.column_stack([nodes[which], pairs])
    _, groups, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(groups.reshape(-1), kind="stable")
    ends = np.cumsum(counts)
    return [
        which[order[end - count : end]]
        for end, count in zip(ends.tolist(), counts.tolist(), strict=True)
        if count >= GRID_RULES
    ]
