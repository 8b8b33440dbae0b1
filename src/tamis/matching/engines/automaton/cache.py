"""A cache: made empty, grown, measured."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Words
from tamis.core.kernel.table import fill_slots
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels.facts import copy_pairs
from tamis.matching.engines.automaton.layout import CacheArrays, FactSets, Lists, Pairs, Scratch
from tamis.matching.engines.automaton.program import ProgramArrays

T = TypeVar("T", bound=np.generic)
L = TypeVar("L", Lists, FactSets)


def new_arrays(program: ProgramArrays, queries: int) -> CacheArrays:
    """A cache that knows nothing yet."""
    is_sparse = len(program.sparse) > 0
    width = len(program.wildcards)
    return CacheArrays(
        states=_lists(64),
        state_info=np.zeros(64 * at.STATE_COLUMNS, np.int32),
        table=np.zeros(64 * width, np.int32),
        pendings=_lists(64),
        pending_info=np.zeros(64 * at.PENDING_COLUMNS, np.int64),
        facts=_fact_sets(64),
        answers=_lists(64),
        constant_sets=np.zeros(len(program.constants) - 1, np.int32),
        class_sets=np.zeros(program.groups[-1, pr.CLASSES], np.int32),
        query_answers=np.zeros(queries if is_sparse else 0, np.int32),
        reached=_pairs(128),
        closes=_pairs(128),
        merges=_pairs(128),
    )


def _lists(size: int) -> Lists:
    return Lists(
        np.zeros(size + 1, np.int64),
        np.zeros(4 * size, np.int32),
        np.zeros(size, np.uint64),
        np.zeros(2 * size, np.int32),
        np.zeros(2, np.int64),
    )


def _fact_sets(size: int) -> FactSets:
    lists = _lists(size)
    words = np.zeros(len(lists.members), np.uint64)
    return FactSets(lists.starts, lists.members, words, *lists[2:])


def _pairs(size: int) -> Pairs:
    return Pairs(np.zeros(size, np.uint64), np.zeros(size, np.int64), np.zeros(1, np.int64))


def new_scratch(arrays: ProgramArrays, queries: int) -> Scratch:
    """Room for a program."""
    nodes, words = len(arrays.tests), int(arrays.fact_ends[pr.OF_COUNTER])

    def of_words(size: int) -> Words:
        return np.zeros(size, np.uint64)

    def bits(size: int) -> Bytes:
        return np.zeros(size // 8 + 1, np.uint8)

    def numbers(size: int) -> Int32:
        return np.zeros(size, np.int32)

    return Scratch(
        nodes=numbers(nodes + 1),
        members=numbers(nodes),
        others=numbers(nodes),
        sources=numbers(nodes),
        answers=numbers(queries + 2 * len(arrays.sliced) + 2),
        rules=numbers(len(arrays.rules) + 1),
        node_bits=bits(nodes),
        answer_bits=bits(queries),
        pending_bits=bits(nodes),
        needed=of_words(words),
        child_facts=of_words(words),
        derived=of_words(words),
        derived_words=of_words(words // 64 + 1),
        set_places=numbers(words),
        set_words=of_words(words),
        counter_values=numbers(len(arrays.counter_limits)),
        consumed=of_words(len(arrays.sparse)),
        consumed_facts=numbers(len(arrays.sparse_rules)),
    )


def grown(values: NDArray[T], size: int) -> NDArray[T]:
    """A longer copy, zero at its end."""
    result = np.zeros(size, values.dtype)
    result[: len(values)] = values
    return result


def size_of(cache: CacheArrays) -> int:
    """The bytes of all arrays."""
    return sum(
        part.nbytes if isinstance(part, np.ndarray) else sum(array.nbytes for array in part)
        for part in cache
    )


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
