"""A cache: made empty, grown, measured; and whether one that comes from a file can be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

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
from tamis.core.kernel.library import flat
from tamis.core.kernel.state import zeros
from tamis.core.kernel.table import fill_slots
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.check import NUMBERS_MAX, is_table
from tamis.matching.engines.automaton.kernels.facts import UNSLICED, are_sets, copy_pairs
from tamis.matching.engines.automaton.layout import CacheArrays, FactSets, Lists, Pairs, Scratch
from tamis.matching.engines.automaton.program import ProgramArrays

T = TypeVar("T", bound=np.generic)
L = TypeVar("L", Lists, FactSets)

_ROOM = 64
"""Lists of each kind that a new cache has room for."""


def new_arrays(program: ProgramArrays, queries: int) -> CacheArrays:
    """A cache that knows nothing yet."""
    room = {"starts": _ROOM + 1, "slots": 2 * _ROOM, "counts": 2}

    def lists() -> Lists:
        return zeros(Lists, _ROOM, members=4 * _ROOM, **room)

    def pairs() -> Pairs:
        return zeros(Pairs, 2 * _ROOM, counts=1)

    return CacheArrays(
        states=lists(),
        state_info=np.zeros(_ROOM * at.STATE_COLUMNS, np.int32),
        table=np.zeros(_ROOM * len(program.wildcards), np.int32),
        pendings=lists(),
        pending_info=np.zeros(_ROOM * at.PENDING_COLUMNS, np.int64),
        facts=zeros(FactSets, _ROOM, places=4 * _ROOM, words=4 * _ROOM, **room),
        answers=lists(),
        constant_sets=np.zeros(len(program.constants) - 1, np.int32),
        class_sets=np.zeros(program.groups[-1, pr.CLASSES], np.int32),
        query_answers=np.zeros(queries if len(program.sparse) else 0, np.int32),
        reached=pairs(),
        closes=pairs(),
        merges=pairs(),
    )


def new_scratch(arrays: ProgramArrays, queries: int) -> Scratch:
    """Room for a program."""
    nodes, words = len(arrays.tests), int(arrays.fact_ends[pr.OF_COUNTER])
    return zeros(
        Scratch,
        words,
        nodes=nodes + 1,
        members=nodes,
        others=nodes,
        sources=nodes,
        answers=queries + 2 * len(arrays.sliced) + 2,
        rules=len(arrays.rules) + 1,
        node_bits=nodes // 8 + 1,
        answer_bits=queries // 8 + 1,
        pending_bits=nodes // 8 + 1,
        derived_words=words // 64 + 1,
        counter_values=len(arrays.counter_limits),
        consumed=len(arrays.sparse),
        consumed_facts=len(arrays.sparse_rules),
        open_queries=np.full(queries // 8 + 1, 0xFF, np.uint8),
        open_facts=np.full(words, ~np.uint64(0)),
        open_nodes=np.full(nodes // 8 + 1, 0xFF, np.uint8),
        open_sliced=np.arange(len(arrays.sliced) + 1, dtype=np.int32),
    )


def grown(values: NDArray[T], size: int) -> NDArray[T]:
    """A longer copy, zero at its end."""
    result = np.zeros(size, values.dtype)
    result[: len(values)] = values
    return result


def size_of(cache: CacheArrays) -> int:
    """The bytes of all arrays."""
    return sum(array.nbytes for array in flat(cache))


def grown_lists(lists: L) -> L:
    """The same lists with twice the room of the kind that is short."""
    count, size = int(lists.counts[at.COUNT]), len(lists.hashes)
    if count < size:
        if isinstance(lists, FactSets):
            room = 2 * len(lists.words)
            return lists._replace(places=grown(lists.places, room), words=grown(lists.words, room))
        return lists._replace(members=grown(lists.members, 2 * len(lists.members)))
    hashes = grown(lists.hashes, 2 * size)
    slots = np.zeros(4 * size, np.int32)
    fill_slots(hashes, count, slots)
    return lists._replace(starts=grown(lists.starts, 2 * size + 1), hashes=hashes, slots=slots)


def grown_pairs(pairs: Pairs) -> Pairs:
    """The same table with twice the room."""
    size = 2 * len(pairs.keys)
    keys, values = np.zeros(size, np.uint64), np.zeros(size, np.int64)
    copy_pairs(pairs.keys, pairs.values, keys, values)
    return Pairs(keys, values, pairs.counts)


# -- by name ---------------------------------------------------------------------------------------


def named_arrays(cache: CacheArrays) -> dict[str, NDArray[Any]]:
    """All arrays of a cache, by their names."""
    return dict(zip(at.dtypes(CacheArrays), flat(cache), strict=True))


def cache_of(arrays: Mapping[str, NDArray[Any]]) -> CacheArrays | None:
    """The arrays as a cache, or None where these are not its arrays."""
    expected = at.dtypes(CacheArrays)
    if arrays.keys() != expected.keys() or not all(
        array.ndim == 1 and array.dtype == expected[name] for name, array in arrays.items()
    ):
        return None
    cache: CacheArrays = at.nested(CacheArrays, iter([arrays[name] for name in expected]))
    return cache


# -- whether it can be trusted (see ``check``) -----------------------------------------------------


def fault_of_cache(cache: CacheArrays, program: ProgramArrays, queries: int) -> str | None:
    """What cannot be so in a cache of a program that is as it must be; or None."""
    if not all(_cache_lengths(cache, program, queries)):
        return "the lengths of its arrays"
    states, pendings, facts, answers = (
        int(lists.counts[at.COUNT])
        for lists in (cache.states, cache.pendings, cache.facts, cache.answers)
    )
    known = max(states, 0) * len(program.wildcards)
    # What is in use by the numbers of lists. These may be wrong, until the lists were looked at.
    used = SimpleNamespace(
        cache=cache,
        program=program,
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
        "queries": [(0, queries)],
        "nodes": [(0, len(program.tests))],
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


def _answers(used: Any, domains: Domains) -> bool:
    """Answers are queries, no two the same, and slices behind them; the hashes say which have some.

    Slices are of no more queries than are sliced.
    """
    lists = used.cache.answers
    if not _are_lists(lists, lists.members):
        return False
    starts, members = _in_use(lists)
    is_sliced, sizes = lists.hashes[: len(starts) - 1] > UNSLICED, np.diff(starts)
    in_sliced = np.repeat(is_sliced, sizes)
    sizes, left = sizes[is_sliced], len(used.program.sliced)
    # Of lists with slices: which one a member is in, how many are behind it, whether it begins one.
    answer = np.repeat(np.arange(len(sizes)), sizes)
    behind = np.repeat(np.cumsum(sizes), sizes) - np.arange(len(answer))
    mixed = members[in_sliced]
    is_begin = mixed < 0
    begins, first = np.flatnonzero(is_begin), np.full(len(sizes), len(mixed))
    np.minimum.at(first, answer[begins], begins)
    is_query = np.arange(len(mixed)) < first[answer]
    slices = np.stack([-1 - mixed[begins], np.append(mixed, 0)[begins + 1]], axis=1)
    taken = np.bincount(answer[begins], slices[:, 1] - slices[:, 0], len(sizes))
    stamps = np.zeros(domains["queries"][0][1], np.int32)
    return (
        bool((first < len(mixed)).all())
        and np.array_equal(is_begin, ~is_query & (behind % 2 == 0))
        and are_within(slices, [(0, left + 1)])
        and bool((slices[:, 0] < slices[:, 1]).all() and (taken <= left).all())
        and are_within(members[~in_sliced], domains["queries"])
        and are_within(mixed[is_query], domains["queries"])
        and bool(are_sets(starts, members, stamps))
    )


def _in_use(lists: Lists) -> tuple[Int64, Int32]:
    """Where the lists begin that there are, and their members."""
    starts = lists.starts[: lists.counts[at.COUNT] + 1]
    return starts, lists.members[: starts[-1]]


def _pendings(used: Any, domains: Domains) -> bool:
    """Pending nodes are not pending around themselves; those around have smaller numbers."""
    lists, rows = used.cache.pendings, used.pendings
    if not _are_lists(lists, lists.members) or not len(rows) or lists.starts[1] or rows[0].any():
        return False
    starts, members = _in_use(lists)
    around, total = rows[:, at.AROUND], rows[:, at.TOTAL]
    return (
        are_within(members, domains["nodes"])
        and are_within(around, domains["pendings"])
        and bool((around[1:] < np.arange(1, len(rows))).all())
        and are_within(rows[:, at.NEEDED], domains["sets"])
        and bool((total == total[around] + np.diff(starts)).all())
        and _are_pending_once(around, starts, members)
    )


def _are_pending_once(around: Int64, starts: Int64, members: Int32) -> bool:
    """Whether no node is pending twice at one place: all places are visited, from outside in."""
    inside: list[list[int]] = [[] for _ in around]
    for number, outer in enumerate(around.tolist()):
        inside[outer].append(number)
    pending: set[int] = set()
    todo = [(number, False) for number in inside[0][1:]]
    while todo:
        number, is_left = todo.pop()
        nodes = members[starts[number] : starts[number + 1]].tolist()
        if is_left:
            pending.difference_update(nodes)
            continue
        before = len(pending)
        pending.update(nodes)
        if len(pending) != before + len(nodes):
            return False
        todo.append((number, True))
        todo += [(each, False) for each in inside[number]]
    return True


def _states(used: Any, domains: Domains) -> bool:
    """States are nodes, no two the same."""
    lists = used.cache.states
    if not _are_lists(lists, lists.members):
        return False
    starts, members = _in_use(lists)
    stamps = np.zeros(len(used.program.tests), np.int32)
    return are_within(members, domains["nodes"]) and bool(are_sets(starts, members, stamps))


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


# What must be so in each part of a cache.
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
