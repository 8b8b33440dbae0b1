"""Where kernels find things: operators as records, and the arrays that they read and write."""

from __future__ import annotations

from typing import Any, NamedTuple

from tamis.core.arrays import Int32, Int64, Words
from tamis.core.kernel.record import lay_out
from tamis.transform.layout import OWN, OWN_SCALARS

(
    PATH_TUPLES,
    SELECTION,
    DUP_ELIM,
    GROUP_BY,
    SEMIJOIN,
    WHERE_FILTER,
    JOIN,
    SHARED_SELECTION,
    SELECTED,
    RETURN_SELECT,
    OUTER_JOIN_SELECT,
) = range(11)
"""Kinds of operators: one may read what those of an earlier kind, or of its own, have written."""

(KIND, MODE, LEFT, RIGHT, LEVELS, ARGUMENT, QUERIES, FIRST_READER, NEXT_READER) = range(9)
OPERATOR = 10
"""An operator, and its *tpList*, where it leaves pointers to its tuples.

``LEFT``, ``RIGHT``  the operators whose lists it reads; or ``NONE``. Of an output of a shared
    selection, the selection; of a shared selection, its left source in ``RIGHT``.
``LEVELS``    from the last field of its (right) tuples to the bound node; of a selection, how many
    steps have tests; of a shared selection, from the bound node to its left source.
``ARGUMENT``  of path-tuples their state; of a selection its tests; of searches and of outer joins,
    where their list begins; of a shared selection its right source.
``QUERIES``   of the last operator of a plan its query; of a ``GROUPED`` one, the last of all plans
    that read its left list, the number of their list; or ``NONE``.
``FIRST_READER``, ``NEXT_READER``  the operators that are run when its list is not empty.

An output of a shared selection has its leaves in ``RIGHT`` and ``ARGUMENT``, plus one; 0 for none.
"""

UNCONDITIONAL = (1 << 31) - 1
"""In a key of ``outputs``, before the number of a shared selection that asks for no leaves."""

IN_ORDER, HASHED, GROUPED = range(3)
"""Modes: an operator relies on the order of what it reads; or on none; or GroupBys did it all."""

SEARCH_CODES, SEARCH_STEPS, SEARCH_TESTS, SEARCH_COMPARISON = range(4)
SEARCH = 4
"""What is searched for in the tree: where its steps are, how many, its tests, what it is compared
with; the last two may be ``NONE``."""

TABLE_SLOT = 4
"""A key, when it was put, the first and the last of a chain."""

NO_ROOM = 1
"""A status: the array of the field ``FULL`` is full."""

(
    FULL,
    ROWS,
    DOCUMENT,
    SERIAL,
    TUPLES_USED,
    POOL_USED,
    CHAIN_USED,
    TABLE_USED,
    READY_USED,
    ANSWERS_USED,
    PATHS_USED,
    LISTED_USED,
    LISTS_USED,
    NODES_USED,
    BOUND_USED,
) = range(OWN_SCALARS, OWN_SCALARS + 15)
"""What is counted while a document is looked at.

``ROWS``      how many occurrences the NFA gave.
``DOCUMENT``  grows with each document; what was stamped with another number is forgotten.
``SERIAL``    likewise, for each hash table.
``READY_USED``  the operators that are to be run.
``PATHS_USED``, ``LISTED_USED``  paths that have lists; references to them.
"""


class Plans(NamedTuple):
    """All plans.

    Attributes:
        operators: int32[OPERATOR * n].
        scheduled: int32[]; the operators that are run in any case, by number.
        stream_of: int32[states]; the stream of each state, or ``NONE``.
        inputs: int32[]; of outer joins: pairs of an operator and its levels, ended by ``NONE``.
        searches: int32[SEARCH * n].
        searched: int32[]; lists of searches, each ended by ``NONE``.
        codes: int32[]; the steps of searches.
        outputs: a pair table; by two leaves plus one, an output of a shared selection.
        query_starts, query_counts: int64[n]; lists of queries, in ``listed_queries``.
        listed_queries: int32[].
        left_of: int32[queries]; the operator whose list has their bound nodes.
        grouped_from: int64[queries]; their paths, where these are made by GroupBys.
        labels, namespace_labels: int32[names]; see ``ElementLabels``.
    """

    operators: Int32
    scheduled: Int32
    stream_of: Int32
    inputs: Int32
    searches: Int32
    searched: Int32
    codes: Int32
    outputs: Int64
    query_starts: Int64
    query_counts: Int64
    listed_queries: Int32
    left_of: Int32
    grouped_from: Int64
    labels: Int32
    namespace_labels: Int32


class Work(NamedTuple):
    """What is found in a document, and what it takes to find it.

    Attributes:
        row_tuples: int64[rows + 1]; the first path-tuple that ends with each occurrence.
        tuples: int64[2 * n]; the node of a path-tuple's last field, and the tuple of those before.
        state_counts: int64[states]; the tuples of each.
        pool: int64[]; what tpLists hold: numbers of tuples, or pairs of them.
        list_stamp, list_from, list_to: int64[operators]; the document, and the range of the pool.
        first_out, last_out: int64[operators]; of an output of a shared selection, a chain.
        chain: int64[2 * n]; a tuple, and the next place.
        table: int64[TABLE_SLOT * slots].
        ready: int32[operators].
        right_leaves: int32[]; that the right tuple of a pair makes true.
        own_states, open_states: int64[events]; the states of a tree search, a bit for each.
        bound_stamp, bound_from, bound_to: int64[operators]; the document, and the range of
            ``bound`` that has the nodes of an operator's list.
        listed_from: int64[queries]; their paths, in ``paths``, where they have their own.
        is_answer: uint64[queries / 64].
        answers: int32[n]; the queries that have groups.
        group_starts, group_ends, path_starts: int64[n]; of answers.
        paths: int32[]; references to paths, of plans that have their own.
        of_path, list_bound, list_starts, list_ends, nodes, bound: see ``Groups``.
    """

    row_tuples: Int64
    tuples: Int64
    state_counts: Int64
    pool: Int64
    list_stamp: Int64
    list_from: Int64
    list_to: Int64
    first_out: Int64
    last_out: Int64
    chain: Int64
    table: Int64
    ready: Int32
    right_leaves: Int32
    own_states: Int64
    open_states: Int64
    bound_stamp: Int64
    bound_from: Int64
    bound_to: Int64
    listed_from: Int64
    is_answer: Words
    answers: Int32
    group_starts: Int64
    group_ends: Int64
    path_starts: Int64
    paths: Int32
    of_path: Int64
    list_bound: Int64
    list_starts: Int64
    list_ends: Int64
    nodes: Int64
    bound: Int64


WORK: Any
PLANS: Any
WORK, PLANS, STATE_SIZE = lay_out(OWN, Work, Plans)
