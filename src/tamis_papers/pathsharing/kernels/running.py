"""Runs all operators that have something to do, and writes down the answers."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint64s
from tamis.transform.kernels import index_events
from tamis.transform.layout import DONE, NONE
from tamis_papers.pathsharing.kernels.grouping import group, outer_join
from tamis_papers.pathsharing.kernels.joining import join, semijoin
from tamis_papers.pathsharing.kernels.searching import filter_where, select_return
from tamis_papers.pathsharing.kernels.selecting import eliminate_duplicates, select_tuples
from tamis_papers.pathsharing.kernels.sharing import select_shared, write_output
from tamis_papers.pathsharing.kernels.tuples import (
    list_end,
    list_start,
    make_tuples,
    write_streams,
)
from tamis_papers.pathsharing.layout import (
    ANSWERS_USED,
    BOUND_USED,
    DOCUMENT,
    DUP_ELIM,
    FIRST_READER,
    FULL,
    GROUP_BY,
    GROUPED,
    JOIN,
    KIND,
    LEFT,
    MODE,
    NEXT_READER,
    NO_ROOM,
    OPERATOR,
    PATH_TUPLES,
    PLANS,
    QUERIES,
    READY_USED,
    RETURN_SELECT,
    SELECTED,
    SELECTION,
    SEMIJOIN,
    SHARED_SELECTION,
    TUPLES_USED,
    WHERE_FILTER,
    WORK,
)


@kernel
def find_groups(state: Int64) -> int:
    """Find the groups of all plans in a document; a status of ``strings.layout``."""
    status = begin(state)
    if status == DONE:
        status = run_scheduled(state, NONE)
    if status == DONE:
        status = run_ready(state)
    if status == DONE:
        status = write_answers(state)
    return state[FULL] if status == NO_ROOM else status


@kernel
def prepare(state: Int64) -> int:
    """The first part of ``find_groups``, for the profiler: the streams."""
    return begin(state)


@kernel
def run_kind(state: Int64, kind: int) -> int:
    """Its second part: the scheduled operators of one kind, or what these made ready (``NONE``)."""
    return run_ready(state) if kind == NONE else run_scheduled(state, kind)


@kernel
def finish(state: Int64) -> int:
    """Its last part."""
    return write_answers(state)


@called
def begin(state: Int64) -> int:
    """Empty all lists, and make the streams."""
    for counted in range(TUPLES_USED, BOUND_USED + 1):
        state[counted] = 0
    state[DOCUMENT] += 1
    index_events(state)
    bits = uint64s(state, WORK.is_answer)
    for word in range(len(bits)):
        bits[word] = U(0)
    status = make_tuples(state)
    if status == DONE:
        status = write_streams(state)
    return status


@called
def run_scheduled(state: Int64, kind: int) -> int:
    """Run the operators that are scheduled, in their order: all, or those of one kind."""
    operators, scheduled = int32s(state, PLANS.operators), int32s(state, PLANS.scheduled)
    status = DONE
    for place in range(len(scheduled)):
        operator = np.int64(scheduled[place])
        if kind != NONE and kind != operators[operator * OPERATOR + KIND]:
            continue
        status = run(state, operator)
        if status != DONE:
            break
    return status


@called
def run_ready(state: Int64) -> int:
    """Run the outputs of shared selections, and what reads them; all others have been run."""
    operators, ready = int32s(state, PLANS.operators), int32s(state, WORK.ready)
    while state[READY_USED] > 0:
        state[READY_USED] -= 1
        operator = np.int64(ready[state[READY_USED]])
        status = run(state, operator)
        if status != DONE:
            return status
        if list_end(state, operator) > list_start(state, operator):
            reader = np.int64(operators[operator * OPERATOR + FIRST_READER])
            while reader != NONE:
                ready[state[READY_USED]] = reader
                state[READY_USED] += 1
                reader = np.int64(operators[reader * OPERATOR + NEXT_READER])
    return DONE


@called
def run(state: Int64, operator: int) -> int:
    """Run an operator, unless it has nothing to read."""
    operators = int32s(state, PLANS.operators)
    row = operator * OPERATOR
    kind = operators[row + KIND]
    if kind == PATH_TUPLES:
        return DONE
    if kind == SELECTED:
        return write_output(state, operator)
    if kind == GROUP_BY:
        return group(state, operator)
    left = np.int64(operators[row + LEFT])
    if list_start(state, left) == list_end(state, left):
        return DONE
    if kind == SELECTION:
        return select_tuples(state, operator)
    if kind == DUP_ELIM:
        return eliminate_duplicates(state, operator)
    if kind == SEMIJOIN:
        return semijoin(state, operator)
    if kind == WHERE_FILTER:
        return filter_where(state, operator)
    if kind == JOIN:
        return join(state, operator)
    if kind == SHARED_SELECTION:
        return select_shared(state, operator)
    status = (
        select_return(state, operator) if kind == RETURN_SELECT else outer_join(state, operator)
    )
    if status == DONE:
        note_queries(state, operator)
    return status


@called
def note_queries(state: Int64, operator: int) -> None:
    """Note that the queries that an operator is the last of have groups."""
    bits, operators = uint64s(state, WORK.is_answer), int32s(state, PLANS.operators)
    row = operator * OPERATOR
    number = np.int64(operators[row + QUERIES])
    if operators[row + MODE] != GROUPED:
        bits[number >> 6] |= U(1) << U(number & 63)
        return
    queries = int32s(state, PLANS.listed_queries)
    start = int64s(state, PLANS.query_starts)[number]
    for place in range(start, start + int64s(state, PLANS.query_counts)[number]):
        query = np.int64(queries[place])
        bits[query >> 6] |= U(1) << U(query & 63)


@called
def write_answers(state: Int64) -> int:
    """Write an answer for each bit that is set, ascending."""
    bits, live = uint64s(state, WORK.is_answer), uint64s(state, PLANS.is_live)
    answers, path_starts = int32s(state, WORK.answers), int64s(state, WORK.path_starts)
    group_starts, group_ends = int64s(state, WORK.group_starts), int64s(state, WORK.group_ends)
    bound_from, bound_to = int64s(state, WORK.bound_from), int64s(state, WORK.bound_to)
    left_of, grouped_from = int32s(state, PLANS.left_of), int64s(state, PLANS.grouped_from)
    listed_from = int64s(state, WORK.listed_from)
    is_grouped = len(grouped_from) > 0
    answer = 0
    for word in range(len(live)):
        left = bits[word] & live[word]
        if answer + 64 > len(answers):
            state[FULL] = WORK.answers
            return NO_ROOM
        while left != U(0):
            query = 64 * word + first(left)
            left &= left - U(1)
            bound = np.int64(left_of[query])
            answers[answer] = query
            path_starts[answer] = grouped_from[query] if is_grouped else listed_from[query]
            group_starts[answer], group_ends[answer] = bound_from[bound], bound_to[bound]
            answer += 1
    state[ANSWERS_USED] = answer
    return DONE
