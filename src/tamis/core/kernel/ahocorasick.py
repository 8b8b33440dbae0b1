"""Automata of Aho and Corasick (CACM 18, 1975): many strings searched at once, of any symbols.

A node of the automaton is a prefix of a string. Its *failure* is the node of the longest proper
suffix of this prefix. Several tries may stand in one numbering of nodes: the nodes below ``first``
are their roots. Other nodes are numbered by depth, so a node comes behind its failure.

>>> words = [b"he", b"hers"]
>>> starts, symbols = np.array([0, 2, 6]), np.frombuffer(b"".join(words), np.uint8)
>>> automaton, ends = build(1, np.zeros(2, np.int32), starts, symbols.astype(np.int32))
>>> automaton.parent, ends
(array([0, 0, 1, 2, 3], dtype=int32), array([2, 4], dtype=int32))

When not to use it: where each symbol of a text is read once for few strings, comparing them one by
one is faster.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, distinct
from tamis.core.kernel.declare import called, inlined, kernel
from tamis.core.kernel.table import add_pair, find_pair, pair, pair_table


class Automaton(NamedTuple):
    """The nodes of an automaton, and the edges between them.

    Attributes:
        edges: int64[]; a pair table: node and symbol → the node behind the edge.
        parent, symbol: int32[nodes]; where the edge to a node comes from, and its symbol.
        depth: int32[nodes]; the length of the prefix.
        failures: int32[nodes]; 0 for roots.
    """

    edges: Int64
    parent: Int32
    symbol: Int32
    depth: Int32
    failures: Int32


def build(first: int, roots: Int32, starts: Int64, symbols: Int32) -> tuple[Automaton, Int32]:
    """The automaton of some strings, and the node of each.

    Args:
        first: how many roots there are.
        roots: int32[strings]; the root of each.
        starts: int64[strings + 1]; string i is ``symbols[starts[i]:starts[i + 1]]``.
    """
    most = first + len(symbols)
    parent, symbol, depth = (np.zeros(most, np.int32) for _ in range(3))
    ends = np.zeros(len(roots), np.int32)
    count = add_strings(
        first, roots, starts, symbols, pair_table(most), parent, symbol, depth, ends
    )
    order = np.argsort(depth[:count], kind="stable")
    rank = np.empty(count, np.int32)
    rank[order] = np.arange(count, dtype=np.int32)
    parent, symbol = rank[parent[order]], symbol[order]
    edges, failures = pair_table(count), np.zeros(count, np.int32)
    link_nodes(first, edges, parent, symbol, failures)
    return Automaton(edges, parent, symbol, depth[order], failures), rank[ends]


NEAR_CELLS = 1 << 18
"""Nodes times symbols for which it is written down where they lead: what fits a cache."""


def nearest_rows(first: int, automaton: Automaton) -> tuple[Bytes, Int32]:
    """Where the bytes of texts lead from the first nodes, which most texts do not leave.

    Returns:
        letters: uint8[257]; by byte: a column, or 0 for bytes that no string has; the last is how
            many columns there are. And rows: int32[nodes, columns].
    """
    count = len(automaton.parent)
    letters = np.zeros(257, np.uint8)
    known = distinct(automaton.symbol[first:])
    letters[known] = np.arange(1, len(known) + 1)
    width = letters[256] = len(known) + 1
    near = min(count, max(first, NEAR_CELLS // width))
    rows = np.zeros((near, width), np.int32)
    children = np.argsort(automaton.parent[first:], kind="stable") + first
    columns = letters[automaton.symbol].astype(np.int32)
    fill_rows(
        first, width, automaton.parent, columns, automaton.failures, children.astype(np.int32),
        rows.reshape(-1),
    )  # fmt: skip
    return letters, rows


@inlined
def step(letters: Bytes, rows: Int32, edges: Int64, failures: Int32, node: int, byte: int) -> int:
    """Where a byte of a text leads from a node; ``nearest_rows`` made the first two."""
    width = np.int64(letters[256])
    near = len(rows) // width
    while node >= near:
        target = child(edges, node, byte)
        if target != 0:
            return target
        node = np.int64(failures[node])
    return np.int64(rows[node * width + letters[byte]])


@inlined
def child(edges: Int64, node: int, symbol: int) -> int:
    """The node behind an edge, or 0 where there is none."""
    return edges[find_pair(edges, pair(node + 1, symbol)) + 1]


@called
def follow(first: int, edges: Int64, failures: Int32, node: int, symbol: int) -> int:
    """Where a symbol leads from a node, by edges and failures: to a root where nothing matches."""
    while True:
        target = child(edges, node, symbol)
        if target > 0:
            return target
        if node < first:
            return node
        node = np.int64(failures[node])


@kernel
def add_strings(
    first: int,
    roots: Int32,
    starts: Int64,
    symbols: Int32,
    edges: Int64,
    parent: Int32,
    symbol: Int32,
    depth: Int32,
    ends: Int32,
) -> int:
    """Add strings to empty tries, which have room for all symbols; how many nodes there are."""
    count = first
    for i in range(len(roots)):
        node = np.int64(roots[i])
        for place in range(starts[i], starts[i + 1]):
            over = np.int64(symbols[place])
            target = child(edges, node, over)
            if target == 0:
                target = count
                count += 1
                add_pair(edges, pair(node + 1, over), target)
                parent[target], symbol[target], depth[target] = node, over, depth[node] + 1
            node = target
        ends[i] = node
    return count


@kernel
def link_nodes(first: int, edges: Int64, parent: Int32, symbol: Int32, failures: Int32) -> None:
    """Fill an empty table of edges, and the failures, of nodes that are ordered by depth."""
    for node in range(first, len(failures)):
        add_pair(edges, pair(parent[node] + 1, symbol[node]), node)
    for node in range(first, len(failures)):
        above = np.int64(parent[node])
        failures[node] = above
        if above >= first:
            over = np.int64(symbol[node])
            failures[node] = follow(first, edges, failures, np.int64(failures[above]), over)


@kernel
def fill_shorter(is_found: Int32, failures: Int32, shorter: Int32) -> None:
    """The next node by failures at which something is found, or 0.

    Args:
        is_found: int32[nodes]; 0 where nothing is.
    """
    for node in range(1, len(failures)):
        failure = failures[node]
        shorter[node] = failure if is_found[failure] else shorter[failure]


@kernel
def fill_rows(
    first: int, width: int, parent: Int32, columns: Int32, failures: Int32, children: Int32,
    rows: Int32,
) -> None:  # fmt: skip
    """Write down where each symbol leads from the first nodes, failures included.

    Args:
        columns: int32[nodes]; the column of the symbol that leads to each node. Column 0 is for the
            symbols that no string has: they lead to a root.
        children: int32[]; all nodes but roots, by parent.
        rows: int32[some nodes * width], zeros.
    """
    position = 0
    for node in range(len(rows) // width):
        row, failure = node * width, np.int64(failures[node]) * width
        for column in range(width):
            rows[row + column] = node if node < first else rows[failure + column]
        while position < len(children) and parent[children[position]] == node:
            target = np.int64(children[position])
            if columns[target] != 0:
                rows[row + columns[target]] = target
            position += 1
