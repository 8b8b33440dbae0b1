"""The arrays of a cache: what an automaton has learned from the documents of one thread."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.matching.engines.automaton.program import CLASSES, OF_COUNTER, ProgramArrays

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
T = TypeVar("T", bound=np.generic)

# Numbers that mean something. A table is zero where nothing is known; set 0 has no members.
UNKNOWN, DEAD, START = range(3)
EMPTY = 0
NOTHING = -1
"""No answer."""
NO_RESULT = -2
"""A result that is not known yet."""

# Columns of ``state_info``.
ANSWER, SURE_FACTS, RESULT, RESULT_ANSWER, RULED, INHERITED, OWN, READS = range(8)
STATE_COLUMNS = 8
# Columns of ``pending_info``.
AROUND, TOTAL, NEEDED, PENDING_COLUMNS = range(4)
# Places in ``Lists.counts``, and in ``FactSets.counts``.
COUNT, USED = range(2)


class Lists(NamedTuple):
    """Lists of numbers, each stored once; those that are sets are in no order.

    Attributes:
        starts: int64[n + 1]; list i is ``members[starts[i]:starts[i + 1]]``.
        members: int32[].
        hashes: uint64[n].
        slots: int32[2**k], a hash table with open addressing: 1 and the number of a list, or 0.
        counts: int64[2]; COUNT, how many lists there are, and USED, how many members.
    """

    starts: Int64
    members: Int32
    hashes: Words
    slots: Int32
    counts: Int64


class FactSets(NamedTuple):
    """Sets of facts, each stored once: words of 64 bits, but for those that are 0.

    Attributes:
        starts: int64[n + 1]; set i is ``words[starts[i]:starts[i + 1]]``.
        places: int32[]; which word each of them is, ascending.
        words: uint64[].
        hashes, slots, counts: as in ``Lists``.
    """

    starts: Int64
    places: Int32
    words: Words
    hashes: Words
    slots: Int32
    counts: Int64


class Pairs(NamedTuple):
    """A table by pairs of numbers, with open addressing.

    Attributes:
        keys: uint64[2**k]; the first number from bit 32 on, and the second. 0: nothing is here.
        values: int64[2**k].
        counts: int64[1]; how many there are.
    """

    keys: Words
    values: Int64
    counts: Int64


class CacheArrays(NamedTuple):
    """What is known of a program, so far; it only grows.

    A *state* is what the tags of the open elements decide: the nodes of the trie that the innermost
    one reaches, and the *pending* nodes, around it, of which descendants are sought. Of what the
    children of an open element tell, the facts are *gathered*; what it tells itself, at its end, is
    its *result*. Both are sets of facts. An *answer* is a set of queries.

    Attributes:
        states: the nodes that each state reaches, but for those at which nothing more can come of
            it: first the ones that have rules.
        state_info: int32[s * STATE_COLUMNS]; of each state: its ANSWER at the start of an element;
            the facts that hold as soon as it is reached (SURE_FACTS); RESULT and RESULT_ANSWER
            where nothing was gathered; how many nodes have rules (RULED); which nodes are pending
            around it (INHERITED), and inside (OWN); and whether a rule READS the string value.
        table: int32[s * symbols]; the state of a child, by its symbol.
        pendings: nodes that are pending inside of an element and not around it.
        pending_info: int64[p * PENDING_COLUMNS]; the pending nodes AROUND it, how many there are
            with these (TOTAL), and the set of the facts of descendants that its nodes may ask for
            and those around do not (NEEDED).
        facts: sets of facts.
        answers: sets of queries.
        constant_sets, class_sets: int32[]; 1 and the set of what is true of a constant, or of a
            class of numbers, or 0.
        query_answers: int32[queries]; 1 and the answer of one query alone, or 0.
        reached: by a state, or from PENDING on pending nodes, and a node: whether it is among them.
        closes: by state and what was gathered: the result, and from bit 32 on 1 and the answer.
        merges: by what was gathered and a child's result, or a set of facts about the node's value,
            of which results have none: what is gathered then.
    """

    states: Lists
    state_info: Int32
    table: Int32
    pendings: Lists
    pending_info: Int64
    facts: FactSets
    answers: Lists
    constant_sets: Int32
    class_sets: Int32
    query_answers: Int32
    reached: Pairs
    closes: Pairs
    merges: Pairs


class Scratch(NamedTuple):
    """Room for the work of one thread.

    Bits say which numbers were noted. Whoever sets bits takes them away again, but for those of
    pending nodes, which stay for the next event.

    Attributes:
        nodes, members, others, sources, answers, rules: int32; room for what is noted.
        node_bits, answer_bits: uint8; a bit for each.
        pending_bits: uint8; the nodes that are pending at the place that was looked at last.
        needed: uint64; the facts that these need.
        gathered: uint64; the facts that hold.
        told, told_words: uint64; the facts that follow, and which words of these are not 0.
        set_places: int32, set_words: uint64; a set of facts that may be new.
        counter_values: int32; 0 between uses.
        spent: uint64; the sparse facts from which nothing more follows in this document, as bits;
            spent_facts: int32; the same, as numbers.
    """

    nodes: Int32
    members: Int32
    others: Int32
    sources: Int32
    answers: Int32
    rules: Int32
    node_bits: Bytes
    answer_bits: Bytes
    pending_bits: Bytes
    needed: Words
    gathered: Words
    told: Words
    told_words: Words
    set_places: Int32
    set_words: Words
    counter_values: Int32
    spent: Words
    spent_facts: Int32


def new_arrays(program: ProgramArrays, queries: int) -> CacheArrays:
    """A cache that knows nothing yet."""
    is_sparse = len(program.sparse) > 0
    width = len(program.wildcards)
    return CacheArrays(
        states=_lists(64),
        state_info=np.zeros(64 * STATE_COLUMNS, np.int32),
        table=np.zeros(64 * width, np.int32),
        pendings=_lists(64),
        pending_info=np.zeros(64 * PENDING_COLUMNS, np.int64),
        facts=_fact_sets(64),
        answers=_lists(64),
        constant_sets=np.zeros(len(program.constants) - 1, np.int32),
        class_sets=np.zeros(program.groups[-1, CLASSES], np.int32),
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
    nodes, words = len(arrays.tests), int(arrays.fact_ends[OF_COUNTER])

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
        gathered=of_words(words),
        told=of_words(words),
        told_words=of_words(words // 64 + 1),
        set_places=numbers(words),
        set_words=of_words(words),
        counter_values=numbers(len(arrays.counter_limits)),
        spent=of_words(len(arrays.sparse)),
        spent_facts=numbers(len(arrays.sparse_rules)),
    )


def grown(values: NDArray[T], size: int) -> NDArray[T]:
    """A longer copy, zero at its end."""
    result = np.zeros(size, values.dtype)
    result[: len(values)] = values
    return result
