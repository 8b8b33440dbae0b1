"""Runs all operators that have something to do, and writes down the answers."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint64s
from tamis.transform import layout as base
from tamis.transform.kernels.strings import index_events
from tamis_papers.pathsharing import layout as at
from tamis_papers.pathsharing.kernels.group import filter_where, group, outer_join, select_return
from tamis_papers.pathsharing.kernels.join import (
    join,
    list_end,
    list_start,
    make_tuples,
    semijoin,
    write_streams,
)
from tamis_papers.pathsharing.kernels.select import (
    eliminate_duplicates,
    select_shared,
    select_tuples,
    write_output,
)


@kernel
def find_groups(state: Int64) -> int:
    """Find the groups of all plans in a document; a status of ``strings.layout``."""
    status = begin(state)
    if status == base.DONE:
        status = run_scheduled(state, base.NONE)
    if status == base.DONE:
        status = run_ready(state)
    if status == base.DONE:
        status = write_answers(state)
    return state[at.FULL] if status == at.NO_ROOM else status


@kernel
def prepare(state: Int64) -> int:
    """The first part of ``find_groups``, for the profiler: the streams."""
    return begin(state)


@kernel
def run_kind(state: Int64, kind: int) -> int:
    """Its second part: the scheduled operators of one kind, or what these made ready (``NONE``)."""
    return run_ready(state) if kind == base.NONE else run_scheduled(state, kind)


@kernel
def finish(state: Int64) -> int:
    """Its last part."""
    return write_answers(state)


@called
def begin(state: Int64) -> int:
    """Empty all lists, and make the streams."""
    for counted in range(at.TUPLES_USED, at.BOUND_USED + 1):
        state[counted] = 0
    state[at.DOCUMENT] += 1
    index_events(state)
    bits = uint64s(state, at.WORK.is_answer)
    for word in range(len(bits)):
        bits[word] = U(0)
    status = make_tuples(state)
    if status == base.DONE:
        status = write_streams(state)
    return status


@called
def run_scheduled(state: Int64, kind: int) -> int:
    """Run the operators that are scheduled, in their order: all, or those of one kind."""
    operators, scheduled = int32s(state, at.PLANS.operators), int32s(state, at.PLANS.scheduled)
    status = base.DONE
    for place in range(len(scheduled)):
        operator = np.int64(scheduled[place])
        if kind != base.NONE and kind != operators[operator * at.OPERATOR + at.KIND]:
            continue
        status = run(state, operator)
        if status != base.DONE:
            break
    return status


@called
def run_ready(state: Int64) -> int:
    """Run the outputs of shared selections, and what reads them; all others have been run."""
    operators, ready = int32s(state, at.PLANS.operators), int32s(state, at.WORK.ready)
    while state[at.READY_USED] > 0:
        state[at.READY_USED] -= 1
        operator = np.int64(ready[state[at.READY_USED]])
        status = run(state, operator)
        if status != base.DONE:
            return status
        if list_end(state, operator) > list_start(state, operator):
            reader = np.int64(operators[operator * at.OPERATOR + at.FIRST_READER])
            while reader != base.NONE:
                ready[state[at.READY_USED]] = reader
                state[at.READY_USED] += 1
                reader = np.int64(operators[reader * at.OPERATOR + at.NEXT_READER])
    return base.DONE


@called
def run(state: Int64, operator: int) -> int:
    """Run an operator, unless it has nothing to read."""
    operators = int32s(state, at.PLANS.operators)
    row = operator * at.OPERATOR
    kind = operators[row + at.KIND]
    if kind == at.PATH_TUPLES:
        return base.DONE
    if kind == at.SELECTED:
        return write_output(state, operator)
    if kind == at.GROUP_BY:
        return group(state, operator)
    left = np.int64(operators[row + at.LEFT])
    if list_start(state, left) == list_end(state, left):
        return base.DONE
    if kind == at.SELECTION:
        return select_tuples(state, operator)
    if kind == at.DUP_ELIM:
        return eliminate_duplicates(state, operator)
    if kind == at.SEMIJOIN:
        return semijoin(state, operator)
    if kind == at.WHERE_FILTER:
        return filter_where(state, operator)
    if kind == at.JOIN:
        return join(state, operator)
    if kind == at.SHARED_SELECTION:
        return select_shared(state, operator)
    status = (
        select_return(state, operator) if kind == at.RETURN_SELECT else outer_join(state, operator)
    )
    if status == base.DONE:
        note_queries(state, operator)
    return status


@called
def note_queries(state: Int64, operator: int) -> None:
    """Note that the queries that an operator is the last of have groups."""
    bits, operators = uint64s(state, at.WORK.is_answer), int32s(state, at.PLANS.operators)
    row = operator * at.OPERATOR
    number = np.int64(operators[row + at.QUERIES])
    if operators[row + at.MODE] != at.GROUPED:
        bits[number >> 6] |= U(1) << U(number & 63)
        return
    queries = int32s(state, at.PLANS.listed_queries)
    start = int64s(state, at.PLANS.query_starts)[number]
    for place in range(start, start + int64s(state, at.PLANS.query_counts)[number]):
        query = np.int64(queries[place])
        bits[query >> 6] |= U(1) << U(query & 63)


@called
def write_answers(state: Int64) -> int:
    """Write an answer for each bit that is set, ascending."""
    bits = uint64s(state, at.WORK.is_answer)
    answers, path_starts = int32s(state, at.WORK.answers), int64s(state, at.WORK.path_starts)
    group_starts = int64s(state, at.WORK.group_starts)
    group_ends = int64s(state, at.WORK.group_ends)
    bound_from, bound_to = int64s(state, at.WORK.bound_from), int64s(state, at.WORK.bound_to)
    left_of, grouped_from = int32s(state, at.PLANS.left_of), int64s(state, at.PLANS.grouped_from)
    listed_from = int64s(state, at.WORK.listed_from)
    is_grouped = len(grouped_from) > 0
    answer = 0
    for word in range(len(bits)):
        left = bits[word]
        if answer + 64 > len(answers):
            state[at.FULL] = at.WORK.answers
            return at.NO_ROOM
        while left != U(0):
            query = 64 * word + first(left)
            left &= left - U(1)
            bound = np.int64(left_of[query])
            answers[answer] = query
            path_starts[answer] = grouped_from[query] if is_grouped else listed_from[query]
            group_starts[answer], group_ends[answer] = bound_from[bound], bound_to[bound]
            answer += 1
    state[at.ANSWERS_USED] = answer
    return base.DONE
