"""Automata of Aho and Corasick (CACM 18, 1975): many strings searched at once, of any symbols.

A node of the automaton is a prefix of a string. Its *failure* is the node of the longest proper
suffix of this prefix. Several tries may stand in one numbering of nodes: the nodes below ``first``
are their roots. The nearest others are numbered by depth, and those behind them in the order of
the strings: the end of a long string is in one place of the memory.

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
from tamis.core.kernel.declare import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.core.kernel.table import add_pair, copy_pairs, find_pair, pair, pair_table


class Automaton(NamedTuple):
    """The nodes of an automaton, and the edges between them.

    Attributes:
        edges: int64[]; a pair table: node and symbol → the node behind the edge.
        parent, symbol: int32[nodes]; where the edge to a node comes from, and its symbol.
        depth: int32[nodes]; the length of the prefix.
        failures: int32[nodes]; 0 for roots.
        by_depth: int32[nodes]; all of them: a node comes behind its failure.
        near: the nodes below this one are numbered by depth.
    """

    edges: Int64
    parent: Int32
    symbol: Int32
    depth: Int32
    failures: Int32
    by_depth: Int32
    near: int


NEAR_CELLS = 1 << 18
"""The rows of near nodes, at most: what fits a cache."""


def build(
    first: int, roots: Int32, starts: Int64, symbols: Int32, near_cells: int | None = None
) -> tuple[Automaton, Int32]:
    """The automaton of some strings, and the node of each.

    Args:
        first: how many roots there are.
        roots: int32[strings]; the root of each.
        starts: int64[strings + 1]; string i is ``symbols[starts[i]:starts[i + 1]]``.
        near_cells: the nodes that are near, times their symbols; NEAR_CELLS by default.
    """
    most = first + len(symbols)
    parent, symbol, depth = (np.zeros(most, np.int32) for _ in range(3))
    ends = np.zeros(len(roots), np.int32)
    count = add_strings(
        first, roots, starts, symbols, pair_table(most), parent, symbol, depth, ends
    )
    by_depth = np.argsort(depth[:count], kind="stable").astype(np.int32)
    cells = NEAR_CELLS if near_cells is None else near_cells
    near = min(count, max(first, cells // (len(distinct(symbols)) + 1)))
    order = np.concatenate([by_depth[:near], np.sort(by_depth[near:])])
    rank = np.empty(count, np.int32)
    rank[order] = np.arange(count, dtype=np.int32)
    parent, symbol, by_depth = rank[parent[order]], symbol[order], rank[by_depth]
    edges, failures = pair_table(count), np.zeros(count, np.int32)
    link_nodes(first, edges, parent, symbol, by_depth, failures)
    return Automaton(edges, parent, symbol, depth[order], failures, by_depth, near), rank[ends]


class Search(NamedTuple):
    """What kernels need to search texts of UTF-8 for strings: see ``next_output``.

    *Near* nodes have rows. Most nodes behind them have one edge, which leads to the next node.

    Attributes:
        letters: uint8[257]; by byte: a column, or 0 for bytes that no string has; the last is how
            many columns there are.
        rows: int32[near * columns]; where each column leads from near nodes, failures included.
        edges: int64[]; a pair table of the edges of other nodes that do not lead to the next one.
        links: int64[nodes]; the column of the edge to the next node, or NO_COLUMN; 256 if there are
            others; and from bit 16 on the failure.
        pairs: int64[]; of each root but node 0 a bit for each pair of bytes, by their lower 7 bits:
            those with which a string begins, and all whose second byte is a string.
        further: int64[1]; nodes below are at the root, or an edge from it: no string goes on there
            without a pair. 0 where there are too many roots for pairs.
        outputs: int32[nodes]; 0 where nothing is found.
    """

    letters: Bytes
    rows: Int32
    edges: Int64
    links: Int64
    pairs: Int64
    further: Int64
    outputs: Int32


NO_COLUMN = 255
"""No byte has it: the bytes of UTF-8 are fewer."""
PAIR_WORDS = 1 << 8
PAIRS_MAX = 1 << 19
"""Words of the bits of pairs, at most: with more, each byte is a step."""
_AT = Search(*range(0, 14, 2))


def search_of(first: int, automaton: Automaton, ends: Int32, outputs: Int32) -> Search:
    """The search for strings of bytes, which end at these nodes."""
    letters = np.zeros(257, np.uint8)
    known = distinct(automaton.symbol[first:])
    letters[known] = np.arange(1, len(known) + 1)
    width = letters[256] = len(known) + 1
    columns = letters[automaton.symbol].astype(np.int32)
    rows = np.zeros(automaton.near * int(width), np.int32)
    children = np.argsort(automaton.parent[first:], kind="stable") + first
    fill_rows(
        first, int(width), automaton.parent, columns, automaton.failures,
        children.astype(np.int32), rows,
    )  # fmt: skip
    edges, links = _links(first, automaton, columns)
    return Search(letters, rows, edges, links, *_pairs(first, automaton, ends), outputs)


def _links(first: int, automaton: Automaton, columns: Int32) -> tuple[Int64, Int64]:
    nodes = np.arange(first, len(columns))
    parent = automaton.parent[first:].astype(np.int64)
    is_next = parent == nodes - 1
    onward = np.full(len(columns), NO_COLUMN, np.int64)
    onward[parent[is_next]] = columns[first:][is_next]
    is_other = ~is_next & (parent >= automaton.near)
    onward[parent[is_other]] |= 256
    edges = pair_table(int(np.count_nonzero(is_other)))
    keys = (parent + 1) << 32 | automaton.symbol[first:]
    copy_pairs(np.stack([keys[is_other], nodes[is_other]], axis=1).reshape(-1), edges)
    return edges, automaton.failures.astype(np.int64) << 16 | onward


def _pairs(first: int, automaton: Automaton, ends: Int32) -> tuple[Int64, Int64]:
    if (first - 1) * PAIR_WORDS > PAIRS_MAX:
        return np.zeros(0, np.int64), np.zeros(1, np.int64)
    parent, symbol = automaton.parent, automaton.symbol & 127
    bits = np.zeros((first, 128, 128), np.bool_)
    second = np.flatnonzero(automaton.depth == 2)
    above = parent[second]
    bits[parent[above], symbol[above], symbol[second]] = True
    of_one = ends[automaton.depth[ends] == 1]
    bits[parent[of_one], :, symbol[of_one]] = True
    packed = np.packbits(bits[1:].reshape(-1), bitorder="little").view(np.int64)
    further = np.searchsorted(automaton.depth[: automaton.near], 2)
    return packed, np.array([further], np.int64)


@called
def next_output(
    state: Int64, search: int, text: int, root: int, start: int, place: int, end: int, node: int
) -> tuple[int, int]:
    """Follow a text from a place and the node there, up to one with an output.

    Indices are words: Numba lets others be negative, and looks.

    Args:
        search: the field of the letters; the others are behind it.
        text: the field of the bytes of the text, which is there from ``start`` to ``end``.

    Returns:
        The node, and the place behind its last byte. There is no output where the text ends so.
    """
    letters, rows = uint8s(state, search + _AT.letters), int32s(state, search + _AT.rows)
    edges, links = int64s(state, search + _AT.edges), int64s(state, search + _AT.links)
    pairs, outputs = int64s(state, search + _AT.pairs), int32s(state, search + _AT.outputs)
    data, further = uint8s(state, text), int64s(state, search + _AT.further)[0]
    width = np.int64(letters[U(256)])
    near = len(rows) // width
    while place < end:
        if node < further:
            place = next_pair(pairs, (root - 1) * PAIR_WORDS, data, start, place, end)
            if place > start:
                node = np.int64(rows[U(root * width + letters[U(data[U(place - 1)])])])
            if place == end:
                break
        byte = np.int64(data[U(place)])
        column = np.int64(letters[U(byte)])
        while node >= near:
            link = links[U(node)]
            target = node + 1 if link & 255 == column else np.int64(0)
            if target == 0 and link & 256:
                target = child(edges, node, byte)
            if target != 0:
                node = target
                break
            node = link >> 16
        else:
            node = np.int64(rows[U(node * width + column)])
        place += 1
        if outputs[U(node)] != 0:
            break
    return node, place


@called
def next_pair(pairs: Int64, word: int, text: Bytes, start: int, place: int, end: int) -> int:
    """The next byte of a text that is the second of a pair, from a place on; or the end.

    Args:
        word: where the bits of the root begin.
    """
    pair = np.int64(text[U(place - 1)]) if place > start else 0
    while place < end:
        pair = (pair << 7 | np.int64(text[U(place)]) & 127) & 0x3FFF
        if pairs[U(word + (pair >> 6))] >> (pair & 63) & 1:
            return place
        place += 1
    return end


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
def link_nodes(
    first: int, edges: Int64, parent: Int32, symbol: Int32, by_depth: Int32, failures: Int32
) -> None:
    """Fill an empty table of edges, and the failures."""
    for node in range(first, len(failures)):
        add_pair(edges, pair(parent[node] + 1, symbol[node]), node)
    for place in range(first, len(failures)):
        node = np.int64(by_depth[place])
        above = np.int64(parent[node])
        failures[node] = above
        if above >= first:
            over = np.int64(symbol[node])
            failures[node] = follow(first, edges, failures, np.int64(failures[above]), over)


@kernel
def fill_shorter(is_found: Int32, failures: Int32, by_depth: Int32, shorter: Int32) -> None:
    """The next node by failures at which something is found, or 0.

    Args:
        is_found: int32[nodes]; 0 where nothing is.
    """
    for place in range(1, len(failures)):
        node = np.int64(by_depth[place])
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
