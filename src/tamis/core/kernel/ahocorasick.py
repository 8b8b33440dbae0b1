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
from tamis.core.errors import UsageError
from tamis.core.kernel.declare import U, called, inlined, kernel
from tamis.core.kernel.record import fields, int32s, int64s, uint8s
from tamis.core.kernel.table import add_pair, copy_pairs, find_pair, pair, pair_table


class Automaton(NamedTuple):
    """The nodes of an automaton.

    Attributes:
        first: how many roots there are, node 0 among them.
        parent, symbol: int32[nodes]; where the edge to a node comes from, and its symbol.
        depth: int32[nodes]; the length of the prefix.
        failures: int32[nodes]; 0 for roots.
        by_depth: int32[nodes]; all of them: a node comes behind its failure.
        near: the nodes below this one are numbered by depth.
    """

    first: int
    parent: Int32
    symbol: Int32
    depth: Int32
    failures: Int32
    by_depth: Int32
    near: int


NEAR_CELLS = 1 << 18
"""The rows of near nodes, at most: what the second cache holds."""


def build(first: int, roots: Int32, starts: Int64, symbols: Int32) -> tuple[Automaton, Int32]:
    """The automaton of some strings, and the node of each.

    Args:
        first: how many roots there are.
        roots: int32[strings]; the root of each.
        starts: int64[strings + 1]; string i is ``symbols[starts[i]:starts[i + 1]]``.

    Raises:
        UsageError: the strings are longer than 2 GiB together.
    """
    most = first + len(symbols)
    if most > np.iinfo(np.int32).max:
        raise UsageError(f"{most:,} bytes of strings are too many: divide the subscriptions")
    parent, symbol, depth = (np.zeros(most, np.int32) for _ in range(3))
    ends, edges = np.zeros(len(roots), np.int32), pair_table(most)
    count = add_strings(first, roots, starts, symbols, edges, parent, symbol, depth, ends)
    parent, symbol, depth = parent[:count], symbol[:count], depth[:count]
    by_depth, failures = (
        np.argsort(depth, kind="stable").astype(np.int32),
        np.zeros(count, np.int32),
    )
    link_nodes(first, edges, parent, symbol, by_depth, failures)
    near = min(count, max(first, NEAR_CELLS // (len(distinct(symbols)) + 1)))
    order = np.concatenate([by_depth[:near], np.sort(by_depth[near:])])
    rank = np.empty(count, np.int32)
    rank[order] = np.arange(count, dtype=np.int32)
    parent, failures = rank[parent[order]], rank[failures[order]]
    automaton = Automaton(
        first, parent, symbol[order], depth[order], failures, rank[by_depth], near
    )
    return automaton, rank[ends]


def edges_of(automaton: Automaton, nodes: Int64) -> Int64:
    """A pair table of the edges to some nodes: node and symbol → the node behind the edge."""
    edges = pair_table(len(nodes))
    keys = automaton.parent[nodes].astype(np.int64) + 1 << 32 | automaton.symbol[nodes]
    copy_pairs(np.stack([keys, nodes], axis=1).reshape(-1), edges)
    return edges


def rows_of(automaton: Automaton, nodes: int, width: int, columns: Int32) -> Int32:
    """Where each column leads from the first nodes, failures included: int32[nodes * width].

    Args:
        nodes: how many; all, or no more than the near ones.
        columns: int32[all nodes]; of the symbol that leads to each.
    """
    first, rows = automaton.first, np.zeros(nodes * width, np.int32)
    children = (np.argsort(automaton.parent[first:], kind="stable") + first).astype(np.int32)
    starts = np.searchsorted(automaton.parent[children], np.arange(nodes + 1))
    order = automaton.by_depth[:nodes]
    fill_rows(first, width, order, columns, automaton.failures, starts, children, rows)
    return rows


def outputs_of(automaton: Automaton, found: Int32) -> tuple[Int32, Int32]:
    """By node the longest of its strings that something is, or 0; and the longest shorter one.

    The strings of a node are its prefix and the suffixes of this.

    Args:
        found: int32[nodes]; -1 where nothing is.
    """
    shorter = np.zeros(len(found), np.int32)
    fill_shorter(found + np.int32(1), automaton.failures, automaton.by_depth, shorter)
    return np.where(found >= 0, np.arange(len(found), dtype=np.int32), shorter), shorter


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
            those with which a string begins, and all whose second byte is a string. A pair that has
            the bits of another one costs a step, and changes nothing.
        shallow: int64[1]; nodes below are roots, or one edge from one: no string goes on there
            without a pair. 0 where there are too many roots for pairs.
        outputs: int32[nodes]; 0 where nothing is found.
    """

    letters: Bytes
    rows: Int32
    edges: Int64
    links: Int64
    pairs: Int64
    shallow: Int64
    outputs: Int32


NO_COLUMN = 255
"""No byte has it: the bytes of UTF-8 are fewer."""
PAIR_WORDS = 1 << 8
PAIRS_MAX = 1 << 19
"""Words of the bits of pairs, at most: with more, each byte is a step."""
_AT = fields(Search, 0)


def search_of(automaton: Automaton, ends: Int32, outputs: Int32) -> Search:
    """The search for strings of bytes, which end at these nodes."""
    letters = np.zeros(257, np.uint8)
    known = distinct(automaton.symbol[automaton.first :])
    letters[known] = np.arange(1, len(known) + 1)
    width = letters[256] = len(known) + 1
    columns = letters[automaton.symbol].astype(np.int32)
    rows = rows_of(automaton, automaton.near, width, columns)
    edges, links = _links(automaton, columns)
    return Search(letters, rows, edges, links, *_pairs(automaton, ends), outputs)


def _links(automaton: Automaton, columns: Int32) -> tuple[Int64, Int64]:
    """The edges and the links of a ``Search``: for far nodes, links of others are not read."""
    far = np.arange(max(automaton.first, automaton.near), len(columns))
    parent = automaton.parent[far]
    far, parent = far[parent >= automaton.near], parent[parent >= automaton.near]
    is_next = parent == far - 1
    onward = np.full(len(columns), NO_COLUMN, np.int64)
    onward[parent[is_next]] = columns[far[is_next]]
    onward[parent[~is_next]] |= 256
    links = automaton.failures.astype(np.int64) << 16 | onward
    return edges_of(automaton, far[~is_next]), links


def _pairs(automaton: Automaton, ends: Int32) -> tuple[Int64, Int64]:
    """The pairs of a ``Search``, and which nodes are shallow."""
    first, depth = automaton.first, automaton.depth
    if (first - 1) * PAIR_WORDS > PAIRS_MAX:
        return np.zeros(0, np.int64), np.zeros(1, np.int64)
    parent, symbol = automaton.parent, automaton.symbol & 127
    bits = np.zeros((first, 128, 128), np.bool_)
    second = np.flatnonzero(depth == 2)
    above = parent[second]
    bits[parent[above], symbol[above], symbol[second]] = True
    of_one = ends[depth[ends] == 1]
    bits[parent[of_one], :, symbol[of_one]] = True
    packed = np.packbits(bits[1:].reshape(-1), bitorder="little").view(np.int64)
    return packed, np.array([np.searchsorted(depth[: automaton.near], 2)], np.int64)


@called
def next_output(
    state: Int64, search: int, text: int, root: int, start: int, place: int, end: int, node: int
) -> tuple[int, int]:
    """Follow a text from a place and the node there, up to one with an output.

    Indices are uint64: for int64, Numba tests for negative ones.

    Args:
        search: the field of the letters; the others are behind it.
        text: the field of the bytes of the text, which is there from ``start`` to ``end``.

    Returns:
        The node, and the place behind its last byte. Where the text ended, it may have no output.
    """
    letters, rows = uint8s(state, search + _AT.letters), int32s(state, search + _AT.rows)
    edges, links = int64s(state, search + _AT.edges), int64s(state, search + _AT.links)
    pairs, outputs = int64s(state, search + _AT.pairs), int32s(state, search + _AT.outputs)
    data, shallow = uint8s(state, text), int64s(state, search + _AT.shallow)[0]
    width = np.int64(letters[U(256)])
    near = len(rows) // width
    while place < end:
        if node < shallow:
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
    seen = np.int64(text[U(place - 1)]) if place > start else 0
    while place < end:
        seen = (seen << 7 | np.int64(text[U(place)]) & 127) & 0x3FFF
        if pairs[U(word + (seen >> 6))] >> (seen & 63) & 1:
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
    """Find the failures."""
    for place in range(first, len(failures)):
        node = np.int64(by_depth[place])
        above = np.int64(parent[node])
        failures[node] = above
        if above >= first:
            over = np.int64(symbol[node])
            failures[node] = follow(first, edges, failures, np.int64(failures[above]), over)


@kernel
def fill_shorter(is_found: Int32, failures: Int32, by_depth: Int32, shorter: Int32) -> None:
    """The next node by failures at which something is found, or 0."""
    for place in range(1, len(failures)):
        node = np.int64(by_depth[place])
        failure = failures[node]
        shorter[node] = failure if is_found[failure] else shorter[failure]


@kernel
def fill_rows(
    first: int, width: int, nodes: Int32, columns: Int32, failures: Int32, starts: Int64,
    children: Int32, rows: Int32,
) -> None:  # fmt: skip
    """Write down where each symbol leads from some nodes, whose failures come before them.

    Args:
        columns: int32[all nodes]; the column of the symbol that leads to each. Column 0 is for the
            symbols that no string has: they lead to a root.
        starts: int64[nodes + 1]; where the children of each node begin in ``children``.
        rows: zeros, by node.
    """
    for place in range(len(nodes)):
        node = np.int64(nodes[place])
        row, failure = node * width, np.int64(failures[node]) * width
        for column in range(width):
            rows[row + column] = node if node < first else rows[failure + column]
        for position in range(starts[node], starts[node + 1]):
            target = np.int64(children[position])
            if columns[target] != 0:
                rows[row + columns[target]] = target
