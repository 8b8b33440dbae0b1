"""The automaton of Aho and Corasick: trie, fail, output_fail, and goto made total.

The backtracking automaton for filters of one keyword (Algorithms 4 and 5).

The automaton for filters of several keywords (Algorithms 7 to 9): frontier, log, output sets.

Documents, one by one, in one pass or two.
"""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import U, called, inlined, kernel
from tamis.core.kernel.record import int32s, int64s
from tamis_papers.pma import layout as at

# -- building --------------------------------------------------------------------------------------


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
    progress: Int64, edges: Int32, parent: Int32, symbol: Int32, depth: Int32, q: int, over: int
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
    position = 0
    for q in range(len(fail)):
        if q > 0:
            shorter = np.int64(fail[q])
            for over in range(width):
                full_goto[q * width + over] = full_goto[shorter * width + over]
        while position < len(children) and parent[children[position]] == q:
            target = children[position]
            if symbol[target] != _ROOT:  # no element has it: the column is for those of no label
                full_goto[q * width + symbol[target]] = target
            position += 1


# -- filters of one keyword: Section 3 -------------------------------------------------------------


@called
def walked(
    state: Int64, edges: Int32, parent: Int32, symbol: Int32, fail: Int32, q: int, over: int
) -> int:
    """Where a symbol leads, by goto and fail; the moves are counted."""
    if over == 0:  # no keyword has it
        state[at.MOVES] += 1
        return 0
    while True:
        target = edge(edges, parent, symbol, q, over)
        state[at.MOVES] += 1
        if target > 0 or q == 0:
            return target
        q = fail[q]


@called
def match_single(state: Int64, start: int, end: int) -> bool:
    """Match one document with filters of one keyword; False where it is deeper than the stack.

    Finds these filters, and, of those of several keywords, the candidates.
    """
    tags, symbols = int32s(state, at.EVENTS.tags), int32s(state, at.EVENTS.symbols)
    full_goto, edges = int32s(state, at.SINGLE.full_goto), int32s(state, at.SINGLE.edges)
    parent, symbol = int32s(state, at.SINGLE.parent), int32s(state, at.SINGLE.symbol)
    fail = int32s(state, at.SINGLE.fail)
    scanned_in, stack = int64s(state, at.WORK.scanned_in), int32s(state, at.WORK.stack)
    width = len(full_goto) // len(fail)
    stamp = state[at.STAMP]
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
    full_goto, edges = int32s(state, at.MULTI.full_goto), int32s(state, at.MULTI.edges)
    parent, symbol = int32s(state, at.MULTI.parent), int32s(state, at.MULTI.symbol)
    fail = int32s(state, at.MULTI.fail)
    stack, marks = int32s(state, at.WORK.stack), int32s(state, at.WORK.marks)
    width = len(full_goto) // len(fail)
    q = edge(edges, parent, symbol, 0, 0)
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
            q = walked(state, edges, parent, symbol, fail, q, symbols[tag])
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
