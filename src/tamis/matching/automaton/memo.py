"""The arrays of a memo: what an automaton has learned from the documents of one thread."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import Int32, Int64
from tamis.matching.automaton.program import ProgramArrays

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
T = TypeVar("T", bound=np.generic)

# Numbers that mean something. A table is zero where nothing is known; set 0 has no members.
UNKNOWN, DEAD, START = range(3)
EMPTY = 0
NOTHING = -1
"""No answer; a result that is not known yet."""
NO_RESULT = -2

# Columns of ``info``.
ANSWER, RESULT, RESULT_ANSWER, INHERITED, OWN, INFO_COLUMNS = range(6)
# Places in ``Lists.counts``.
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


class MemoArrays(NamedTuple):
    """What is known of a program, so far; it only grows.

    A *state* is what the tags of the open elements decide: the nodes of the trie that the innermost
    one reaches, and the *pending* nodes, around it, of which descendants are sought. Of what the
    children of an open element tell, the facts are *gathered*; what it tells itself, at its end, is
    its *result*. Both are sets of facts. An *answer* is a set of queries.

    Attributes:
        states: the nodes that each state reaches.
        info: int32[s * INFO_COLUMNS]; of each state: its ANSWER at the start of an element; RESULT
            and RESULT_ANSWER where nothing was gathered; which nodes are pending around it
            (INHERITED), and inside (OWN).
        table: int32[s * symbols]; the state of a child, by its symbol.
        pendings: nodes that are pending inside of an element and not around it.
        pending_info: int64[2 * p]; the pending nodes around it, and how many there are with these.
        needed: for each of ``pendings``, the facts of descendants that its nodes may ask for and
            those around do not.
        facts: sets of facts.
        answers: sets of queries.
        closes: by state and what was gathered: the result, and from bit 32 on 1 and the answer.
        merges: by what was gathered and a child's result: what is gathered then.
    """

    states: Lists
    info: Int32
    table: Int32
    pendings: Lists
    pending_info: Int64
    needed: Lists
    facts: Lists
    answers: Lists
    closes: Pairs
    merges: Pairs


class Scratch(NamedTuple):
    """Room for the work of one thread.

    Bits say which numbers were noted, so that each is noted once; whoever sets bits takes them away
    again. They are small enough to stay near the processor.

    Attributes:
        nodes, sources, facts, answers, watches, rules: int32; room for what is noted.
        node_bits, source_bits, fact_bits, told_bits, answer_bits: uint8; a bit for each.
        counter_values: int32; 0 between uses.
    """

    nodes: Int32
    sources: Int32
    facts: Int32
    answers: Int32
    watches: Int32
    rules: Int32
    node_bits: Bytes
    source_bits: Bytes
    fact_bits: Bytes
    told_bits: Bytes
    answer_bits: Bytes
    counter_values: Int32


def new_arrays(width: int, start_facts: int, start_answers: int) -> MemoArrays:
    """A memo that knows nothing yet.

    Args:
        width: how many symbols there are.
        start_facts, start_answers: how many facts the document needs, and how many queries are true
            of each, at most: so much room there has to be.
    """
    return MemoArrays(
        states=_lists(64),
        info=np.zeros(64 * INFO_COLUMNS, np.int32),
        table=np.zeros(64 * width, np.int32),
        pendings=_lists(64),
        pending_info=np.zeros(128, np.int64),
        needed=_lists(64, start_facts),
        facts=_lists(64),
        answers=_lists(64, start_answers),
        closes=_pairs(128),
        merges=_pairs(128),
    )


def _lists(size: int, members: int = 0) -> Lists:
    return Lists(
        np.zeros(size + 1, np.int64),
        np.zeros(max(members, 4 * size), np.int32),
        np.zeros(size, np.uint64),
        np.zeros(2 * size, np.int32),
        np.zeros(2, np.int64),
    )


def _pairs(size: int) -> Pairs:
    return Pairs(np.zeros(size, np.uint64), np.zeros(size, np.int64), np.zeros(1, np.int64))


def new_scratch(arrays: ProgramArrays, queries: int) -> Scratch:
    """Room for a program."""
    nodes, facts = len(arrays.tests), len(arrays.fact_kinds)

    def bits(size: int) -> Bytes:
        return np.zeros(size // 8 + 1, np.uint8)

    def numbers(size: int) -> Int32:
        return np.zeros(size, np.int32)

    return Scratch(
        nodes=numbers(nodes),
        sources=numbers(nodes),
        facts=numbers(facts),
        answers=numbers(queries),
        watches=numbers(len(arrays.watches) + 1),
        rules=numbers(len(arrays.rules) + 1),
        node_bits=bits(nodes),
        source_bits=bits(nodes),
        fact_bits=bits(facts),
        told_bits=bits(facts),
        answer_bits=bits(queries),
        counter_values=numbers(len(arrays.counter_limits)),
    )


def grown(values: NDArray[T], size: int) -> NDArray[T]:
    """A longer copy, zero at its end."""
    result = np.zeros(size, values.dtype)
    result[: len(values)] = values
    return result
