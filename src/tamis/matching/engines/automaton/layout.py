"""The arrays of a cache, and the fields of the state by which kernels find all arrays and numbers.

See ``tamis.core.kernel.record`` for states. The arrays of a program are in ``program``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from tamis.core.arrays import Bytes, Floats, Int32, Int64, Words, dtype_of
from tamis.core.kernel.record import fields, lay_out
from tamis.matching.engines.automaton.program import ProgramArrays

# Numbers that mean something. A table is zero where nothing is known; set 0 has no members.
UNKNOWN, DEAD, START = range(3)
EMPTY = 0
NOTHING = -1
"""No answer."""
NO_RESULT = -2
"""A result that is not known yet."""
NEVER = 1 << 62
"""More queries than there are, and more events."""

# Columns of ``state_info``.
ANSWER, UNCONDITIONAL_FACTS, RESULT, RESULT_ANSWER, RULED, INHERITED, OWN, READS = range(8)
STATE_COLUMNS = 8
# Columns of ``pending_info``.
AROUND, TOTAL, NEEDED, PENDING_COLUMNS = range(4)
# Indices of ``Lists.counts``, and of ``FactSets.counts``.
COUNT, USED = range(2)


class Lists(NamedTuple):
    """Lists of numbers, each stored once; those that are sets are in no order.

    Attributes:
        starts: int64[n + 1]; list i is ``members[starts[i]:starts[i + 1]]``.
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
    one reaches, and the *pending* nodes, around it, of which descendants are sought. What the
    children of an open element derive for it are its *child facts*. What it derives itself, at its
    end, is its *result*. Both are sets of facts. An *answer* is a set of queries.

    Attributes:
        states: the nodes that each state reaches, but for those at which nothing more can come of
            it: first the ones that have rules.
        state_info: int32[s * STATE_COLUMNS]; of each state: its ANSWER at the start of an element;
            the facts that hold as soon as it is reached (UNCONDITIONAL_FACTS); RESULT and
            RESULT_ANSWER without child facts; how many nodes have rules (RULED); which nodes are
            pending around it (INHERITED), and inside (OWN); and whether a rule READS its value.
        table: int32[s * symbols]; the state of a child, by its symbol.
        pendings: nodes that are pending inside of an element and not around it.
        pending_info: int64[p * PENDING_COLUMNS]; the pending nodes AROUND it, how many there are
            with these (TOTAL), and the set of the facts of descendants that its nodes may ask for
            and those around do not (NEEDED).
        constant_sets, class_sets: int32[]; 1 and the set of what is true of a constant, or of a
            class of numbers, or 0.
        query_answers: int32[queries]; 1 and the answer of one query alone, or 0.
        reached: by a state, or from PENDING on pending nodes, and a node: whether it is among them.
        closes: by state and child facts: the result, and from bit 32 on 1 and the answer.
        merges: by child facts and a child's result, or a set of facts about the node's value, of
            which results have none: both together.
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

    Bits say which numbers are listed. Whoever sets bits takes them away again, but for those of
    pending nodes, which stay for the next event.

    Attributes:
        nodes, members, others, sources, answers, rules: room for lists.
        pending_bits: the nodes that are pending at the place that was looked at last.
        needed: the facts that these need.
        child_facts: the facts that hold.
        derived, derived_words: the facts that follow, and which words of these are not 0.
        set_places, set_words: a set of facts that may be new.
        counter_values: 0 between uses.
        consumed, consumed_facts: the sparse facts from which nothing more follows in this document,
            as bits, and as numbers.
        open_queries, open_facts, open_nodes: bits of what may still matter for this document.
        open_sliced: int32[sliced + 1]; how many queries before each of the ``sliced`` may matter.
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
    child_facts: Words
    derived: Words
    derived_words: Words
    set_places: Int32
    set_words: Words
    counter_values: Int32
    consumed: Words
    consumed_facts: Int32
    open_queries: Bytes
    open_facts: Words
    open_nodes: Bytes
    open_sliced: Int32


class Events(NamedTuple):
    """What is read of a batch (see ``DocumentBatch``), and what symbols names are.

    Attributes:
        elements, attributes: int32[names]; the symbol of an element, or an attribute, by name.
    """

    document_starts: Int64
    tags: Int32
    attribute_event: Int64
    attribute_name: Int32
    value_start: Int64
    value_end: Int64
    attribute_values: Bytes
    text_event: Int64
    text_start: Int64
    text_end: Int64
    text_values: Bytes
    misc_starts: Int64
    misc_event: Int64
    misc_text: Int64
    misc_start: Int64
    misc_end: Int64
    misc_values: Bytes
    elements: Int32
    attributes: Int32


class Progress(NamedTuple):
    """Where a scan is, and what it found.

    Attributes:
        outer_states, outer_child_facts, symbols: by open element: the state around it, the child
            facts there, and its symbol.
        outer_texts: how many text nodes there were before each of them.
        text: room for a string without its white space.
        number: float64[1]; the number that was read last.
        found_starts: int64[documents + 1], into found: the answers of each document.
        seen: by answer, the stamp of the last document that had it.
        overlay_facts, overlay_levels: the sparse facts of the open elements, and how deep each of
            these is; the innermost one's are the last.
        occurrence_starts, occurrence_answers, occurrence_nodes: see ``Occurrences``.
    """

    outer_states: Int32
    outer_child_facts: Int32
    symbols: Int32
    outer_texts: Int64
    text: Bytes
    number: Floats
    found_starts: Int64
    found: Int32
    seen: Int64
    overlay_facts: Int32
    overlay_levels: Int32
    occurrence_starts: Int64
    occurrence_answers: Int32
    occurrence_nodes: Int64


# The scalars of a scan.
(DOCUMENT, EVENT, IS_OPEN, DEPTH, CURRENT, CHILD_FACTS, ATTRIBUTE_AT, TEXT_AT, MISC_AT, DUE,
 FOUND_COUNT, STAMP, RESTORED, WIDTH, HAS_COUNTERS, TAKEN, TURNED_TO, QUERIES, COUNTED_FROM,
 TRUE_AT_MOST, LOOK_AT, IS_SETTLED, NUMBER_BUFFER, NUMBER_START, NUMBER_END,
 DOCUMENT_TEXT, TEXT_NEEDED, OCCURRENCES, OCCURRENCE_COUNT, OVERLAID, LEVEL, CONSUMED,
 RETIRE_AFTER, RETIRE_AT, HAS_RETIRED, PART, SCALARS) = range(37)  # fmt: skip
# Values of OCCURRENCES: which of the nodes that reach states with answers are listed.
OCCURRENCES_NONE, OCCURRENCES_FIRST, OCCURRENCES_ALL = range(3)
# What ``scan`` returns: what has to grow; that Python has to read a number, or to look which
# queries are true; that a document ENDED from which some had retired. Negated, it is what the
# functions return that add to the cache.
(DONE, FULL_STATES, FULL_PENDINGS, FULL_FACTS, FULL_ANSWERS, FULL_CLOSES, FULL_MERGES, FULL_FOUND,
 FULL_DEPTH, FULL_TEXT, FULL_OVERLAY, FULL_REACHED, ASKS_NUMBER, ASKS_OPEN, ENDED,
 ) = range(15)  # fmt: skip


def nested(kind: Any, values: Iterator[Any]) -> Any:
    """A tuple, with the tuples in it, of the arrays of all, or of their fields, in order."""
    hints = get_type_hints(kind).values()
    return kind(*(nested(each, values) if _is_tuple(each) else next(values) for each in hints))


@cache
def dtypes(kind: Any) -> dict[str, np.dtype[Any]]:
    """The types of the arrays of a tuple, and of the tuples in it, by name.

    >>> dtypes(Pairs)
    {'keys': dtype('uint64'), 'values': dtype('int64'), 'counts': dtype('int64')}
    """
    found: dict[str, np.dtype[Any]] = {}
    for name, each in get_type_hints(kind).items():
        if _is_tuple(each):
            found |= {f"{name}.{inner}": dtype for inner, dtype in dtypes(each).items()}
        else:
            found[name] = dtype_of(each)
    return found


def _is_tuple(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, tuple)


class One(NamedTuple):
    """One document, as a tokenizer recorded it, and where its queries are listed.

    Attributes:
        recorded: the state of the tokenizer.
        places: int64[n, 4]; of each array of ``Events``: its field, that of the tokenizer, the
            field that says how many items it has, and how many more there are.
        listing: the state of ``tamis.core.index.kernels.list_one``; its part begins at PART.
    """

    recorded: Int64
    places: Int64
    listing: Int64


PROGRAM = fields(ProgramArrays, SCALARS)
CACHE: Any = nested(CacheArrays, count(PROGRAM[-1] + 2, 2))
SCRATCH, EVENTS, PROGRESS, ONE, STATE_SIZE = lay_out(
    CACHE[-1][-1] + 2, Scratch, Events, Progress, One
)
