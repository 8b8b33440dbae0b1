"""The backtracking automaton for filters of one keyword (Algorithms 4 and 5)."""

from __future__ import annotations

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import called
from tamis.core.kernel.record import int32s, int64s
from tamis_papers.pma.kernels.building import edge
from tamis_papers.pma.layout import (
    CANDIDATE_COUNT,
    EVENTS,
    FOUND_COUNT,
    INSTANCES,
    MOVES,
    SINGLE,
    STAMP,
    WORK,
)


@called
def walked(
    state: Int64, edges: Int32, parent: Int32, symbol: Int32, fail: Int32, q: int, over: int
) -> int:
    """Where a symbol leads, by goto and fail; the moves are counted."""
    if over == 0:  # no keyword has it
        state[MOVES] += 1
        return 0
    while True:
        target = edge(edges, parent, symbol, q, over)
        state[MOVES] += 1
        if target > 0 or q == 0:
            return target
        q = fail[q]


@called
def match_single(state: Int64, start: int, end: int) -> bool:
    """Match one document with filters of one keyword; False where it is deeper than the stack.

    Finds these filters, and, of those of several keywords, the candidates.
    """
    tags, symbols = int32s(state, EVENTS.tags), int32s(state, EVENTS.symbols)
    full_goto, edges = int32s(state, SINGLE.full_goto), int32s(state, SINGLE.edges)
    parent, symbol = int32s(state, SINGLE.parent), int32s(state, SINGLE.symbol)
    fail = int32s(state, SINGLE.fail)
    scanned_in, stack = int64s(state, WORK.scanned_in), int32s(state, WORK.stack)
    width = len(full_goto) // len(fail)
    stamp = state[STAMP]
    scanned_in[0] = stamp  # every output path ends here
    q = edge(edges, parent, symbol, 0, 0)
    depth = 0
    for event in range(start, end):
        tag = tags[event]
        if tag < 0:
            depth -= 1
            q = stack[depth]
            continue
        if depth == len(stack):
            return False
        stack[depth] = q
        depth += 1
        if width > 0:
            q = full_goto[q * width + symbols[tag]]
        else:
            q = walked(state, edges, parent, symbol, fail, q, symbols[tag])
        if scanned_in[q] != stamp:
            report_output(state, q)
    if width > 0:
        state[MOVES] += (end - start) >> 1
    return True


@called
def report_output(state: Int64, q: int) -> None:
    """Report the keywords on the output path of a state, up to one that was scanned before."""
    scanned_in, stamp = int64s(state, WORK.scanned_in), state[STAMP]
    output, starts = int32s(state, SINGLE.output), int64s(state, SINGLE.output_starts)
    output_fail, found = int32s(state, SINGLE.output_fail), int32s(state, WORK.found)
    count = state[FOUND_COUNT]
    while scanned_in[q] != stamp:
        scanned_in[q] = stamp
        for place in range(starts[q], starts[q + 1]):
            filter = output[place]
            if filter >= 0:
                found[count] = filter
                count += 1
            else:
                _see(state, -1 - filter)
        q = output_fail[q]
    state[FOUND_COUNT] = count


@called
def _see(state: Int64, filter: int) -> None:
    """Another keyword of a filter of several occurs; of each, the state is scanned once."""
    seen_in, seen = int64s(state, WORK.seen_in), int32s(state, WORK.seen)
    first = int32s(state, INSTANCES.first)
    if seen_in[filter] != state[STAMP]:
        seen_in[filter] = state[STAMP]
        seen[filter] = 0
    seen[filter] += 1
    if seen[filter] == first[filter + 1] - first[filter]:
        int32s(state, WORK.candidates)[state[CANDIDATE_COUNT]] = filter
        state[CANDIDATE_COUNT] += 1
