"""The automaton for filters of several keywords (Algorithms 7 to 9): frontier, log, output sets."""

from __future__ import annotations

from tamis.core.arrays import Int64
from tamis.core.kernel import called, kernel
from tamis.core.kernel.record import int32s, int64s
from tamis_papers.pma.kernels.building import edge
from tamis_papers.pma.kernels.single import walked
from tamis_papers.pma.layout import (
    CANDIDATE_COUNT,
    EVENTS,
    FOUND_COUNT,
    HAS_SINGLE,
    INSTANCES,
    IS_DYNAMIC,
    LOG_COUNT,
    MATCHED_COUNT,
    MOVES,
    MULTI,
    NEVER,
    NO_INSTANCE,
    WORK,
)


@called
def match_multi(state: Int64, start: int, end: int) -> bool:
    """Match one document with the filters that take part; False where it is deeper than the stack.

    Whatever it returns, the frontier is then as it was.
    """
    if state[HAS_SINGLE]:
        candidates = int32s(state, WORK.candidates)
        for place in range(state[CANDIDATE_COUNT]):
            _begin(state, candidates[place])
    is_done = _walk(state, start, end)
    _undo(state, 0)
    matched, first = int32s(state, WORK.matched), int32s(state, INSTANCES.first)
    for place in range(state[MATCHED_COUNT]):
        _begin(state, matched[place])
    state[MATCHED_COUNT] = 0
    if state[HAS_SINGLE]:
        for place in range(state[CANDIDATE_COUNT]):
            filter = candidates[place]
            _leave(state, first[filter])
            int32s(state, WORK.frontier)[filter] = NO_INSTANCE
    return is_done


@kernel
def begin_all(state: Int64) -> None:
    """Let all filters wait for their first keywords."""
    for filter in range(len(int32s(state, WORK.frontier))):
        _begin(state, filter)


@called
def _walk(state: Int64, start: int, end: int) -> bool:
    """The tags of a document: the cycle of Algorithm 4, and the frontier with it."""
    tags, symbols = int32s(state, EVENTS.tags), int32s(state, EVENTS.symbols)
    full_goto, edges = int32s(state, MULTI.full_goto), int32s(state, MULTI.edges)
    parent, symbol = int32s(state, MULTI.parent), int32s(state, MULTI.symbol)
    fail = int32s(state, MULTI.fail)
    stack, marks = int32s(state, WORK.stack), int32s(state, WORK.marks)
    width = len(full_goto) // len(fail)
    q = edge(edges, parent, symbol, 0, 0)
    depth = 0
    for event in range(start, end):
        tag = tags[event]
        if tag < 0:
            depth -= 1
            q = stack[depth]
            if state[LOG_COUNT] > marks[depth]:
                _undo(state, marks[depth])
            continue
        if depth == len(stack):
            return False
        stack[depth] = q
        marks[depth] = state[LOG_COUNT]
        depth += 1
        if width > 0:
            q = full_goto[q * width + symbols[tag]]
        else:
            q = walked(state, edges, parent, symbol, fail, q, symbols[tag])
        if q > 0:
            if state[IS_DYNAMIC]:
                _report_current_output(state, q, depth)
            else:
                _report_output(state, q, depth)
    if width > 0:
        state[MOVES] += (end - start) >> 1
    return True


@called
def _report_output(state: Int64, q: int, depth: int) -> None:
    """Algorithm 9 with the static output sets, of which each instance is compared."""
    output_fail, keyword_length = int32s(state, MULTI.output_fail), int32s(state, MULTI.depth)
    output, starts = int32s(state, MULTI.output), int64s(state, MULTI.output_starts)
    filter_of = int32s(state, INSTANCES.filter)
    frontier, advanced_at = int32s(state, WORK.frontier), int32s(state, WORK.advanced_at)
    while q > 0:
        for place in range(starts[q], starts[q + 1]):
            instance = output[place]
            filter = filter_of[instance]
            if frontier[filter] == instance and (depth - advanced_at[filter] >= keyword_length[q]):
                _advance(state, filter, instance, depth)
        q = output_fail[q]


@called
def _report_current_output(state: Int64, q: int, depth: int) -> None:
    """Algorithm 9 with the current output sets.

    What is put into a set meanwhile was advanced at this depth and is not deep enough.
    """
    output_fail, keyword_length = int32s(state, MULTI.output_fail), int32s(state, MULTI.depth)
    filter_of, advanced_at = int32s(state, INSTANCES.filter), int32s(state, WORK.advanced_at)
    head, next = int32s(state, WORK.head), int32s(state, WORK.next)
    while q > 0:
        instance = head[q]
        while instance >= 0:
            following = next[instance]
            filter = filter_of[instance]
            if depth - advanced_at[filter] >= keyword_length[q]:
                _advance(state, filter, instance, depth)
            instance = following
        q = output_fail[q]


# -- the frontier ----------------------------------------------------------------------------------


@called
def _advance(state: Int64, filter: int, instance: int, depth: int) -> None:
    """The keyword that a filter waits for has matched (Algorithm 8)."""
    first, advanced_at = int32s(state, INSTANCES.first), int32s(state, WORK.advanced_at)
    _leave(state, instance)
    if instance + 1 == first[filter + 1]:
        int32s(state, WORK.frontier)[filter] = NO_INSTANCE
        found, matched = int32s(state, WORK.found), int32s(state, WORK.matched)
        found[state[FOUND_COUNT]] = int32s(state, INSTANCES.number)[filter]
        state[FOUND_COUNT] += 1
        matched[state[MATCHED_COUNT]] = filter
        state[MATCHED_COUNT] += 1
        return
    logged = state[LOG_COUNT]
    int32s(state, WORK.log_filter)[logged] = filter
    int32s(state, WORK.log_advanced_at)[logged] = advanced_at[filter]
    state[LOG_COUNT] = logged + 1
    _wait_for(state, filter, instance + 1, depth)


@called
def _undo(state: Int64, mark: int) -> None:
    """Take back what was logged after a mark, the last first; what has matched stays so."""
    log_filter, log_advanced_at = (
        int32s(state, WORK.log_filter),
        int32s(state, WORK.log_advanced_at),
    )
    frontier = int32s(state, WORK.frontier)
    for place in range(state[LOG_COUNT] - 1, mark - 1, -1):
        filter = log_filter[place]
        instance = frontier[filter]
        if instance != NO_INSTANCE:
            _leave(state, instance)
            _wait_for(state, filter, instance - 1, log_advanced_at[place])
    state[LOG_COUNT] = mark


@called
def _begin(state: Int64, filter: int) -> None:
    """Let a filter wait for its first keyword (Algorithm 7)."""
    _wait_for(state, filter, int32s(state, INSTANCES.first)[filter], NEVER)


@called
def _wait_for(state: Int64, filter: int, instance: int, advanced_at: int) -> None:
    """Let a filter wait for an instance, which joins the current output of its state."""
    int32s(state, WORK.frontier)[filter] = instance
    int32s(state, WORK.advanced_at)[filter] = advanced_at
    if state[IS_DYNAMIC]:
        head, next = int32s(state, WORK.head), int32s(state, WORK.next)
        previous = int32s(state, WORK.previous)
        q = int32s(state, INSTANCES.state)[instance]
        following = head[q]
        next[instance] = following
        previous[instance] = NO_INSTANCE
        if following >= 0:
            previous[following] = instance
        head[q] = instance


@called
def _leave(state: Int64, instance: int) -> None:
    """Take an instance that was waited for from the current output of its state."""
    if state[IS_DYNAMIC]:
        next, previous = int32s(state, WORK.next), int32s(state, WORK.previous)
        before, following = previous[instance], next[instance]
        if before >= 0:
            next[before] = following
        else:
            int32s(state, WORK.head)[int32s(state, INSTANCES.state)[instance]] = following
        if following >= 0:
            previous[following] = before
