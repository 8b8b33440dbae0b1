"""Documents matched one by one, in one pass or two.

The backtracking automaton for filters of one keyword is Algorithms 4 and 5 of the paper. That for
filters of several keywords is Algorithms 7 to 9: frontier, log, output sets.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import called, kernel
from tamis.core.kernel.ahocorasick import child
from tamis.core.kernel.record import int32s, int64s
from tamis_papers.pma import layout as at

# -- filters of one keyword: Section 3 -------------------------------------------------------------


@called
def walked(state: Int64, edges: Int64, fail: Int32, q: int, over: int) -> int:
    """Where a symbol leads, by goto and fail; the moves are counted."""
    if over == 0:  # no keyword has it
        state[at.MOVES] += 1
        return 0
    while True:
        target = child(edges, q, over)
        state[at.MOVES] += 1
        if target > 0 or q == 0:
            return target
        q = np.int64(fail[q])


@called
def match_single(state: Int64, start: int, end: int) -> bool:
    """Match one document with filters of one keyword; False where it is deeper than the stack.

    Finds these filters, and, of those of several keywords, the candidates.
    """
    tags, symbols = int32s(state, at.EVENTS.tags), int32s(state, at.EVENTS.symbols)
    full_goto, edges = int32s(state, at.SINGLE.full_goto), int64s(state, at.SINGLE.edges)
    fail = int32s(state, at.SINGLE.fail)
    scanned_in, stack = int64s(state, at.WORK.scanned_in), int32s(state, at.WORK.stack)
    width = len(full_goto) // len(fail)
    stamp = state[at.STAMP]
    scanned_in[0] = stamp  # every output path ends here
    q = child(edges, 0, 0)
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
            q = walked(state, edges, fail, q, symbols[tag])
        if scanned_in[q] != stamp:
            report_output(state, q)
    if width > 0:
        state[at.MOVES] += (end - start) >> 1
    return True


@called
def report_output(state: Int64, q: int) -> None:
    """Report the keywords on the output path of a state, up to one that was scanned before."""
    scanned_in, stamp = int64s(state, at.WORK.scanned_in), state[at.STAMP]
    output, starts = int32s(state, at.SINGLE.output), int64s(state, at.SINGLE.output_starts)
    output_fail, found = int32s(state, at.SINGLE.output_fail), int32s(state, at.WORK.found)
    count = state[at.FOUND_COUNT]
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
    state[at.FOUND_COUNT] = count


@called
def _see(state: Int64, filter: int) -> None:
    """Another keyword of a filter of several occurs; of each, the state is scanned once."""
    seen_in, seen = int64s(state, at.WORK.seen_in), int32s(state, at.WORK.seen)
    first = int32s(state, at.INSTANCES.first)
    if seen_in[filter] != state[at.STAMP]:
        seen_in[filter] = state[at.STAMP]
        seen[filter] = 0
    seen[filter] += 1
    if seen[filter] == first[filter + 1] - first[filter]:
        int32s(state, at.WORK.candidates)[state[at.CANDIDATE_COUNT]] = filter
        state[at.CANDIDATE_COUNT] += 1


# -- filters of several keywords: Section 4 --------------------------------------------------------


@called
def match_multi(state: Int64, start: int, end: int) -> bool:
    """Match one document with the filters that take part; False where it is deeper than the stack.

    Whatever it returns, the frontier is then as it was.
    """
    if state[at.HAS_SINGLE]:
        candidates = int32s(state, at.WORK.candidates)
        for place in range(state[at.CANDIDATE_COUNT]):
            _begin(state, candidates[place])
    is_done = _walk(state, start, end)
    _undo(state, 0)
    matched, first = int32s(state, at.WORK.matched), int32s(state, at.INSTANCES.first)
    for place in range(state[at.MATCHED_COUNT]):
        _begin(state, matched[place])
    state[at.MATCHED_COUNT] = 0
    if state[at.HAS_SINGLE]:
        for place in range(state[at.CANDIDATE_COUNT]):
            filter = candidates[place]
            _leave(state, first[filter])
            int32s(state, at.WORK.frontier)[filter] = at.NO_INSTANCE
    return is_done


@kernel
def begin_all(state: Int64) -> None:
    """Let all filters wait for their first keywords."""
    for filter in range(len(int32s(state, at.WORK.frontier))):
        _begin(state, filter)


@called
def _walk(state: Int64, start: int, end: int) -> bool:
    """The tags of a document: the cycle of Algorithm 4, and the frontier with it."""
    tags, symbols = int32s(state, at.EVENTS.tags), int32s(state, at.EVENTS.symbols)
    full_goto, edges = int32s(state, at.MULTI.full_goto), int64s(state, at.MULTI.edges)
    fail = int32s(state, at.MULTI.fail)
    stack, marks = int32s(state, at.WORK.stack), int32s(state, at.WORK.marks)
    width = len(full_goto) // len(fail)
    q = child(edges, 0, 0)
    depth = 0
    for event in range(start, end):
        tag = tags[event]
        if tag < 0:
            depth -= 1
            q = stack[depth]
            if state[at.LOG_COUNT] > marks[depth]:
                _undo(state, marks[depth])
            continue
        if depth == len(stack):
            return False
        stack[depth] = q
        marks[depth] = state[at.LOG_COUNT]
        depth += 1
        if width > 0:
            q = full_goto[q * width + symbols[tag]]
        else:
            q = walked(state, edges, fail, q, symbols[tag])
        if q > 0:
            if state[at.IS_DYNAMIC]:
                _report_current_output(state, q, depth)
            else:
                _report_output(state, q, depth)
    if width > 0:
        state[at.MOVES] += (end - start) >> 1
    return True


@called
def _report_output(state: Int64, q: int, depth: int) -> None:
    """Algorithm 9 with the static output sets, of which each instance is compared."""
    output_fail, keyword_length = int32s(state, at.MULTI.output_fail), int32s(state, at.MULTI.depth)
    output, starts = int32s(state, at.MULTI.output), int64s(state, at.MULTI.output_starts)
    filter_of = int32s(state, at.INSTANCES.filter)
    frontier, advanced_at = int32s(state, at.WORK.frontier), int32s(state, at.WORK.advanced_at)
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
    output_fail, keyword_length = int32s(state, at.MULTI.output_fail), int32s(state, at.MULTI.depth)
    filter_of, advanced_at = int32s(state, at.INSTANCES.filter), int32s(state, at.WORK.advanced_at)
    head, next = int32s(state, at.WORK.head), int32s(state, at.WORK.next)
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
    first, advanced_at = int32s(state, at.INSTANCES.first), int32s(state, at.WORK.advanced_at)
    _leave(state, instance)
    if instance + 1 == first[filter + 1]:
        int32s(state, at.WORK.frontier)[filter] = at.NO_INSTANCE
        found, matched = int32s(state, at.WORK.found), int32s(state, at.WORK.matched)
        found[state[at.FOUND_COUNT]] = int32s(state, at.INSTANCES.number)[filter]
        state[at.FOUND_COUNT] += 1
        matched[state[at.MATCHED_COUNT]] = filter
        state[at.MATCHED_COUNT] += 1
        return
    logged = state[at.LOG_COUNT]
    int32s(state, at.WORK.log_filter)[logged] = filter
    int32s(state, at.WORK.log_advanced_at)[logged] = advanced_at[filter]
    state[at.LOG_COUNT] = logged + 1
    _wait_for(state, filter, instance + 1, depth)


@called
def _undo(state: Int64, mark: int) -> None:
    """Take back what was logged after a mark, the last first; what has matched stays so."""
    log_filter = int32s(state, at.WORK.log_filter)
    log_advanced_at = int32s(state, at.WORK.log_advanced_at)
    frontier = int32s(state, at.WORK.frontier)
    for place in range(state[at.LOG_COUNT] - 1, mark - 1, -1):
        filter = log_filter[place]
        instance = frontier[filter]
        if instance != at.NO_INSTANCE:
            _leave(state, instance)
            _wait_for(state, filter, instance - 1, log_advanced_at[place])
    state[at.LOG_COUNT] = mark


@called
def _begin(state: Int64, filter: int) -> None:
    """Let a filter wait for its first keyword (Algorithm 7)."""
    _wait_for(state, filter, int32s(state, at.INSTANCES.first)[filter], at.NEVER)


@called
def _wait_for(state: Int64, filter: int, instance: int, advanced_at: int) -> None:
    """Let a filter wait for an instance, which joins the current output of its state."""
    int32s(state, at.WORK.frontier)[filter] = instance
    int32s(state, at.WORK.advanced_at)[filter] = advanced_at
    if state[at.IS_DYNAMIC]:
        head, next = int32s(state, at.WORK.head), int32s(state, at.WORK.next)
        previous = int32s(state, at.WORK.previous)
        q = int32s(state, at.INSTANCES.state)[instance]
        following = head[q]
        next[instance] = following
        previous[instance] = at.NO_INSTANCE
        if following >= 0:
            previous[following] = instance
        head[q] = instance


@called
def _leave(state: Int64, instance: int) -> None:
    """Take an instance that was waited for from the current output of its state."""
    if state[at.IS_DYNAMIC]:
        next, previous = int32s(state, at.WORK.next), int32s(state, at.WORK.previous)
        before, following = previous[instance], next[instance]
        if before >= 0:
            next[before] = following
        else:
            int32s(state, at.WORK.head)[int32s(state, at.INSTANCES.state)[instance]] = following
        if following >= 0:
            previous[following] = before


# -- documents -------------------------------------------------------------------------------------


@kernel
def match_documents(state: Int64) -> int:
    """Match documents from ``DOCUMENT`` on; each has matched whole, or else is begun again.

    A document finds each filter at most once, so room for them all is there before it begins.
    """
    starts = int64s(state, at.EVENTS.document_starts)
    found_starts = int64s(state, at.WORK.found_starts)
    room = len(int32s(state, at.WORK.found)) - state[at.FILTERS]
    for document in range(state[at.DOCUMENT], len(starts) - 1):
        state[at.DOCUMENT] = document
        before, moves = state[at.FOUND_COUNT], state[at.MOVES]
        if before > room:
            return at.WORK.found
        state[at.STAMP] += 1
        state[at.CANDIDATE_COUNT] = 0
        start, end = starts[document], starts[document + 1]
        is_done = True
        if state[at.HAS_SINGLE]:
            is_done = match_single(state, start, end)
        asks_multi = state[at.CANDIDATE_COUNT] > 0 if state[at.HAS_SINGLE] else state[at.HAS_MULTI]
        if is_done and asks_multi:
            is_done = match_multi(state, start, end)
        if not is_done:
            state[at.FOUND_COUNT], state[at.MOVES] = before, moves
            return at.WORK.stack
        found_starts[document + 1] = state[at.FOUND_COUNT]
    return 0
