"""Whether the arrays of a cache can be trusted, which may come from any file (see ``check``)."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from tamis.core.arrays import Int32, Int64, Words
from tamis.core.kernel.check import (
    Domains,
    Parts,
    Within,
    are_starts,
    are_within,
    ascend_within,
    first_fault,
)
from tamis.core.kernel.record import register
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.check import NUMBERS_MAX, is_table, state_of
from tamis.matching.engines.automaton.kernels import checks
from tamis.matching.engines.automaton.layout import CacheArrays, FactSets, Lists, Pairs
from tamis.matching.engines.automaton.program import ProgramArrays


def fault_of_cache(cache: CacheArrays, program: ProgramArrays, queries: int) -> str | None:
    """What cannot be so in a cache of a program that is as it must be; or None."""
    if not all(_cache_lengths(cache, program, queries)):
        return "the lengths of its arrays"
    state = state_of(program, queries)
    register(state, at.CACHE.states.starts, cache)
    states, pendings, facts, answers = (
        int(lists.counts[at.COUNT])
        for lists in (cache.states, cache.pendings, cache.facts, cache.answers)
    )
    known = max(states, 0) * len(program.wildcards)
    # What is in use by the numbers of lists. These may be wrong, until the lists were looked at.
    used = SimpleNamespace(
        cache=cache,
        program=program,
        state=state,
        stamps=np.zeros(max(len(program.tests), queries), np.int32),
        states=cache.state_info.reshape(-1, at.STATE_COLUMNS)[at.START : max(states, 0)],
        pendings=cache.pending_info.reshape(-1, at.PENDING_COLUMNS)[: max(pendings, 0)],
        known=cache.table[:known],
        unknown=cache.table[known:],
        constant_sets=cache.constant_sets,
        class_sets=cache.class_sets,
        query_answers=cache.query_answers,
        reached=cache.reached.values,
    )
    domains = {
        "nothing": [(0, 1)],
        "bits": [(0, 2)],
        "numbers": [(0, 1 << 63)],
        "sets": [(0, facts)],
        "results": [(at.NO_RESULT, at.NO_RESULT + 1), (0, facts)],
        "1 and a set": [(0, facts + 1)],
        "answers": [(0, answers)],
        "1 and an answer": [(0, answers + 1)],
        "states": [(0, states)],
        "pendings": [(0, pendings)],
    }
    return first_fault(CACHE_PARTS, used, domains)


def _cache_lengths(cache: CacheArrays, program: ProgramArrays, queries: int) -> Iterator[bool]:
    """Whether each array is as long as others say."""
    for lists in (cache.states, cache.pendings, cache.facts, cache.answers):
        size = len(lists.hashes)
        yield 0 < size < len(lists.slots) < NUMBERS_MAX and is_table(len(lists.slots))
        yield len(lists.starts) == size + 1 and len(lists.counts) == 2
    yield len(cache.facts.places) == len(cache.facts.words)
    states, pendings = len(cache.states.hashes), len(cache.pendings.hashes)
    yield len(cache.state_info) == states * at.STATE_COLUMNS
    yield len(cache.table) == states * len(program.wildcards)
    yield len(cache.pending_info) == pendings * at.PENDING_COLUMNS
    yield len(cache.constant_sets) == len(program.constants) - 1
    yield len(cache.query_answers) == (queries if len(program.sparse) else 0)
    yield len(cache.class_sets) == program.groups[-1, pr.CLASSES]
    for pairs in (cache.reached, cache.closes, cache.merges):
        yield is_table(len(pairs.keys)) and len(pairs.keys) == len(pairs.values)
        yield len(pairs.counts) == 1


def _are_lists(lists: Lists | FactSets, members: Int32) -> bool:
    """Whether lists follow each other, inside of their room, and their hash table is not full."""
    count, used = lists.counts.tolist()
    return (
        0 <= count <= len(lists.hashes)
        and 0 <= used <= len(members)
        and are_starts(lists.starts[: count + 1], used)
        and are_within(lists.slots, [(0, count + 1)])
        and np.count_nonzero(lists.slots) == count
    )


def _fact_sets(used: Any, _: Domains) -> bool:
    """Sets of facts are words that are not 0, ascending, of facts that exist; set 0 is empty."""
    facts, program = used.cache.facts, used.program
    if not _are_lists(facts, facts.places) or facts.counts[at.COUNT] < 1 or facts.starts[1]:
        return False
    starts = facts.starts[: facts.counts[at.COUNT] + 1]
    places, words = facts.places[: starts[-1]], facts.words[: starts[-1]]
    if not are_within(places, [(0, int(program.fact_ends[-1]))]) or not words.all():
        return False
    for first, count in (
        (0, len(program.groups) - 1),
        (program.fact_ends[pr.OF_DESCENDANT], len(program.fact_counters)),
    ):  # of which the last word is not full
        last = words[places == first + count // 64]
        if count % 64 and (last >> np.uint64(count % 64)).any():
            return False
    return ascend_within(places, starts)


def _answers(used: Any, _: Domains) -> bool:
    """Answers are queries, no two the same, and slices behind them, that are not too long."""
    answers = used.cache.answers
    return _are_lists(answers, answers.members) and checks.are_answers(used.state, used.stamps)


def _pendings(used: Any, domains: Domains) -> bool:
    """Pending nodes are not pending around themselves; those around have smaller numbers."""
    lists, rows = used.cache.pendings, used.pendings
    if not _are_lists(lists, lists.members) or not len(rows) or lists.starts[1] or rows[0].any():
        return False
    around, total = rows[:, at.AROUND], rows[:, at.TOTAL]
    starts = lists.starts[: len(rows) + 1]
    return (
        are_within(lists.members[: starts[-1]], [(0, len(used.program.tests))])
        and are_within(around, domains["pendings"])
        and bool((around[1:] < np.arange(1, len(rows))).all())
        and are_within(rows[:, at.NEEDED], domains["sets"])
        and bool((total == total[around] + np.diff(starts)).all())
        and checks.are_pending_once(used.state, used.stamps, *np.zeros((2, len(rows)), np.int32))
    )


def _states(used: Any, _: Domains) -> bool:
    states = used.cache.states
    return _are_lists(states, states.members) and checks.are_states(used.state, used.stamps)


def _ruled(used: Any, _: Domains) -> bool:
    """Of the nodes of each state, no more have rules than there are."""
    states = used.cache.states
    sizes = np.diff(states.starts[at.START : states.counts[at.COUNT] + 1])
    ruled = used.states[:, at.RULED]
    is_there = states.counts[at.COUNT] > at.START and not states.starts[at.START]
    return bool(is_there and ((ruled >= 0) & (ruled <= sizes)).all())


def _halves(words: Any) -> tuple[Any, Any]:
    """The numbers from bit 32 on, and below."""
    return words >> words.dtype.type(32), words & words.dtype.type(0xFFFFFFFF)


def _used(pairs: Pairs) -> tuple[Words, Int64] | None:
    """The keys and values of a table that is not crowded, or None."""
    is_used = pairs.keys != 0
    count = int(np.count_nonzero(is_used))
    if count != pairs.counts[0] or 2 * count > len(is_used):
        return None
    return pairs.keys[is_used], pairs.values[is_used]


def _reached(used: Any, _: Domains) -> bool:
    return _used(used.cache.reached) is not None


def _closes(used: Any, domains: Domains) -> bool:
    """By states and sets, of which the one that is empty stands elsewhere: results and answers."""
    pairs = _used(used.cache.closes)
    if pairs is None:
        return False
    (states, sets), (answers, results) = map(_halves, pairs)
    return (
        are_within(states, domains["states"])
        and bool((states >= at.START).all() and (sets > 0).all())
        and are_within(sets, domains["sets"])
        and are_within(results, domains["sets"])
        and are_within(answers, domains["1 and an answer"])
    )


def _merges(used: Any, domains: Domains) -> bool:
    """By two sets: a set."""
    pairs = _used(used.cache.merges)
    return pairs is not None and all(
        are_within(numbers, domains["sets"]) for numbers in (*_halves(pairs[0]), pairs[1])
    )


CACHE_PARTS: Parts = {
    "the sets of facts": (_fact_sets,),
    "the answers": (_answers,),
    "the pending nodes": (_pendings,),
    "the states": (_states,),
    "what is known of states": (
        _ruled,
        Within("states", "answers", at.ANSWER, or_none=True),
        Within("states", "sets", at.UNCONDITIONAL_FACTS),
        Within("states", "results", at.RESULT),
        Within("states", "answers", at.RESULT_ANSWER, or_none=True),
        Within("states", "pendings", at.INHERITED),
        Within("states", "pendings", at.OWN),
        Within("states", "bits", at.READS),
    ),
    "the table": (Within("known", "states"), Within("unknown", "nothing")),
    "the sets of constants": (Within("constant_sets", "1 and a set"),),
    "the sets of classes": (Within("class_sets", "1 and a set"),),
    "the answers of single queries": (Within("query_answers", "1 and an answer"),),
    "what is reached": (Within("reached", "numbers"), _reached),
    "the closes": (_closes,),
    "the merges": (_merges,),
}
"""Of a cache: what must be so in each part."""
