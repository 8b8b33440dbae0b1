"""The automaton of Aho and Corasick: trie, fail, output_fail, and goto made total."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel

KEYWORD, STATES = range(2)
"""Places in the progress of ``add_keywords``: the keyword it is at, and the number of states."""

_GOLDEN = U(0x9E3779B97F4A7C15)
_ROOT = 0
"""The symbol ``#``, with which keywords begin that begin at the root."""


@inlined
def slot_of(edges: Int32, parent: Int32, symbol: Int32, from_state: int, over: int) -> int:
    """Where the edge from a state over a symbol stands, or would stand."""
    mask = U(len(edges) - 1)
    hash = (U(from_state) << U(32) | U(over)) * _GOLDEN
    slot = (hash ^ hash >> U(29)) & mask
    while True:
        target = edges[slot]
        if target == 0 or (parent[target] == from_state and symbol[target] == over):
            return np.int64(slot)
        slot = (slot + U(1)) & mask


@inlined
def edge(edges: Int32, parent: Int32, symbol: Int32, from_state: int, over: int) -> int:
    """The function goto: the state that an edge leads to, or 0 where there is none ("fail")."""
    return np.int64(edges[slot_of(edges, parent, symbol, from_state, over)])


@called
def next_state(edges: Int32, parent: Int32, symbol: Int32, fail: Int32, q: int, over: int) -> int:
    """Where a symbol leads, by goto and fail."""
    while True:
        target = edge(edges, parent, symbol, q, over)
        if target > 0 or q == 0:
            return target
        q = np.int64(fail[q])


@kernel
def enter_edges(edges: Int32, parent: Int32, symbol: Int32, states: int) -> None:
    """Put the edges to the first states into an empty hash table."""
    for q in range(1, states):
        edges[slot_of(edges, parent, symbol, parent[q], symbol[q])] = q


@inlined
def _child(
    progress: Int64,
    edges: Int32,
    parent: Int32,
    symbol: Int32,
    depth: Int32,
    q: int,
    over: int,
) -> int:
    """The state behind an edge, which is added where there is none."""
    slot = slot_of(edges, parent, symbol, q, over)
    target = np.int64(edges[slot])
    if target == 0:
        target = progress[STATES]
        progress[STATES] += 1
        edges[slot] = target
        parent[target] = q
        symbol[target] = over
        depth[target] = depth[q] + 1
    return target


@kernel
def add_keywords(
    progress: Int64,
    starts: Int64,
    ends: Int64,
    codes: Int32,
    edges: Int32,
    parent: Int32,
    symbol: Int32,
    depth: Int32,
    state_of: Int32,
) -> bool:
    """Add keywords to the trie, and note the state that each is; False where room is missing."""
    for number in range(progress[KEYWORD], len(starts)):
        start, end = starts[number], ends[number]
        if progress[STATES] + end - start + 1 > len(parent):
            progress[KEYWORD] = number
            return False
        q = 0
        if codes[start] & 1 == 0:
            q = _child(progress, edges, parent, symbol, depth, q, _ROOT)
        for step in range(start, end):
            over = codes[step] >> 1
            q = _child(progress, edges, parent, symbol, depth, q, over)
        state_of[number] = q
    return True


@kernel
def fill_fail(edges: Int32, parent: Int32, symbol: Int32, fail: Int32) -> None:
    """The longest proper suffix of each state that is one, too; states are ordered by depth."""
    for q in range(1, len(fail)):
        if parent[q] > 0:
            over = symbol[q]
            fail[q] = next_state(edges, parent, symbol, fail, fail[parent[q]], over)


@kernel
def fill_output_fail(output_starts: Int64, fail: Int32, output_fail: Int32) -> None:
    """The next state on the fail path that has an output."""
    for q in range(1, len(fail)):
        shorter = fail[q]
        has_output = output_starts[shorter + 1] > output_starts[shorter]
        output_fail[q] = shorter if has_output else output_fail[shorter]


@kernel
def fill_full_goto(
    parent: Int32, symbol: Int32, fail: Int32, children: Int32, full_goto: Int32
) -> None:
    """Make goto total: where a state has no edge, it goes where its fail state goes.

    Args:
        children: all states but the initial one, by parent.
        full_goto: int32[states * width], zeros.
    """
    width = len(full_goto) // len(fail)
    at = 0
    for q in range(len(fail)):
        if q > 0:
            shorter = np.int64(fail[q])
            for over in range(width):
                full_goto[q * width + over] = full_goto[shorter * width + over]
        while at < len(children) and parent[children[at]] == q:
            target = children[at]
            if symbol[target] != _ROOT:  # no element has it: the column is for those of no label
                full_goto[q * width + symbol[target]] = target
            at += 1
