"""Where kernels find things: the columns of records, and the arrays that they read and write."""

from __future__ import annotations

from typing import Any, NamedTuple

from tamis.arrays import places
from tamis.documents.batch import Bytes, Int32, Int64

NONE = -1
"""No record: the end of a chain."""

(
    SOURCE_KIND,
    SOURCE_NAME,
    SOURCE_NEXT,
    SOURCE_TESTS,
    SOURCE_LEVEL,
    SOURCE_IS_LIST,
    SOURCE_EXISTS,
    SOURCE_TEXTS,
    SOURCE_NUMBERS,
    SOURCE_UNEQUAL,
    SOURCE_RANGES,
) = range(11)
SOURCE = 16
"""What is read at a state of the NFA: the strings, or the nodes, at the end of a path.

``KIND``, ``NAME``  see ``shapes``; the number of the attribute's name, or ``NONE`` for any.
``NEXT``     the next source of the same state; of one above, of the same binding.
``TESTS``    where its tests begin, or ``NONE``.
``LEVEL``    0; of one above a binding's node, how many steps.
``IS_LIST``  whether its nodes are returned.
``EXISTS``   the leaf that asks whether there is a node, or ``NONE``.
``TEXTS``    how many leaves ask for equality with a string.
``NUMBERS``  how many ask for equality with a number.
``UNEQUAL``  the first leaf that asks for a difference, or ``NONE``; chained by ``LEAF_NEXT``.
``RANGES``   four numbers of ranges of thresholds, for ``< <= > >=``, or ``NONE``.
"""

LEAF_SOURCE, LEAF_OPERATOR, LEAF_NEXT, LEAF_TEXT, LEAF_TEXT_END, LEAF_FIRST, LEAF_COUNT = range(7)
LEAF = 8
"""A condition on the strings of a source.

``NEXT``   of those that ask for a difference.
``TEXT``, ``TEXT_END``  the string that it compares with, in ``texts``; or ``NONE``, for a number.
``FIRST``, ``COUNT``    the conjunctions that are looked for when it is true.
"""

RULE_BINDING, RULE_SELECTION, RULE_LEAVES, RULE_NEXT, RULE_NEXT_OF_LEAF, RULE_TESTS = range(6)
RULE = 8
"""A conjunction of leaves that selects nodes of a binding: one way for a selection to be true.

``LEAVES``   where its other leaves begin, which ``NONE`` ends, or ``NONE``.
``NEXT``     the next one of the same binding and leaf; of those without leaves, of the binding.
``NEXT_OF_LEAF``  the next one of the same leaf.
``TESTS``    of the binding's inner steps together, where one leaf does not say it; or ``NONE``.
"""

COMPARISON_KIND, COMPARISON_NAME, COMPARISON_OPERATOR, COMPARISON_TEXT, COMPARISON_TEXT_END = range(
    5
)
COMPARISON = 8
"""A test of a step, of the strings of the node itself."""

EQUAL, UNEQUAL, LESS, LESS_EQUAL, MORE, MORE_EQUAL, EXISTS = range(7)
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "exists")

(
    EVENTS,
    ROWS,
    SERIAL,
    DOCUMENT,
    FRONTIER_FROM,
    HITS_USED,
    PAIRS_USED,
    GROUPS_USED,
    MATCHED_USED,
    ANSWERS_USED,
    LIST_KEYS,
    NODES_USED,
    BOUND_USED,
    FULL,
    _SCALARS,
) = range(15)
"""What is counted while a document is looked at.

``EVENTS``, ``ROWS``  of the document, and how many occurrences the NFA gave.
``SERIAL``         grows: what was stamped with an older one is forgotten; it is kept.
``DOCUMENT``       likewise, one for each document.
``FRONTIER_FROM``  where the nodes that a path leads back to begin.
``FULL``           which array was full, by its number in ``Work``.
"""

DONE, NO_ROOM, ODD_NUMBER = range(3)
"""What a kernel says: all is done; some array is full, and all begins again; or a number has so
many digits that kernels cannot read it."""


class Plans(NamedTuple):
    """All subscriptions.

    Attributes:
        is_binding: uint8[states]; whether a binding path ends there; the state is the binding.
        source_of: int32[states]; the first source, or ``NONE``.
        first_above: int32[states]; of a binding, the first source above, or ``NONE``.
        first_rule: int32[states]; of a binding, the first rule without leaves, or ``NONE``.
        sources: int32[SOURCE * n].
        leaves: int32[LEAF * n].
        literals: float64[n]; the number that a leaf compares with.
        texts: uint8[]; the strings that leaves and comparisons compare with.
        equals: int64[2 * slots]; by hash, of source and value: the leaf plus one, 0 for none.
        range_starts, range_counts: int64[n]; of thresholds.
        thresholds: float64[]; ascending in each range.
        range_leaves: int32[]; the leaf of each threshold.
        tests: int32[]; for each step from the last one on, the comparisons, each list ended by
            ``NONE``.
        comparisons: int32[COMPARISON * n].
        comparison_literals: float64[n].
        rules: int32[RULE * n].
        rule_leaves: int32[]; lists, each ended by ``NONE``.
        rule_pairs: int64[2 * slots]; by binding and leaf: the first rule plus one, 0 for none.
        query_starts, query_counts: int64[selections]; the transformations of a selection, in
            ``selection_queries``.
        selection_queries: int32[].
        selection_of: int32[queries]; the selection of each transformation.
        path_starts: int64[queries]; its sources, in ``paths``.
        paths: int32[].
        is_live: uint64[queries / 64]; a bit for each one that was not removed.
    """

    is_binding: Bytes
    source_of: Int32
    first_above: Int32
    first_rule: Int32
    sources: Int32
    leaves: Int32
    literals: Any
    texts: Bytes
    equals: Int64
    range_starts: Int64
    range_counts: Int64
    thresholds: Any
    range_leaves: Int32
    tests: Int32
    comparisons: Int32
    comparison_literals: Any
    rules: Int32
    rule_leaves: Int32
    rule_pairs: Int64
    query_starts: Int64
    query_counts: Int64
    selection_queries: Int32
    selection_of: Int32
    path_starts: Int64
    paths: Int32
    is_live: Any


class Read(NamedTuple):
    """The document, one batch: see ``EventBatch``.

    Attributes:
        rows: int64[OCCURRENCE * n]; the NFA's occurrences, by event.
        records: int32[RECORD * n]; the NFA's states.
        names: int32[n]; the vocabulary's ids of the names of attributes that sources have.
    """

    rows: Int64
    records: Int32
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
    names: Int32


class Work(NamedTuple):
    """What is found in a document, and what it takes to find it.

    Attributes:
        ends, parents: int64[events]; the end of a start event; the start of what is around.
        attributes_from, texts_from: int64[events + 1]; the first attribute, and text node, of an
            event or behind it.
        stack: int64[]; open elements.
        is_bound: uint8[events]; whether some binding path leads there.
        first_hit: int64[events]; the first of the hits of a bound node, or ``NONE``.
        first_list: int64[events]; the slot of the first of its lists, or ``NONE``.
        row_stamp: int64[rows].
        frontier: int64[]; occurrences that a path leads back to.
        found_leaves: int32[]; leaves that are true of a node.
        hits: int64[2 * n]; a leaf that is true of a bound node, and the next hit there.
        leaf_stamp: int64[leaves].
        binding_stamp, binding_row: int64[states]; the occurrence of a binding at the present node.
        pairs: int64[2 * n]; a place in a list, and the next pair.
        lists_of: int64[LIST_SLOT * n]; by bound node and source: the list.
        selection_stamp, selection_node, selection_first, selection_last: int64[selections]; the
            document that it was true of, and its groups there.
        groups: int64[2 * n]; a bound node, and the next group of the selection.
        matched: int32[]; the selections that have groups.
        is_answer: uint64[]; a bit for each query.
        bound_from, bound_to: int64[selections]; where its bound nodes are.
        number: float64[1].
        answers: int32[n]; the queries that have groups.
        group_starts, group_ends, answer_paths: int64[n]; of answers.
        of_path, list_bound, list_starts, list_ends, nodes, bound: see ``Groups``.
        path_at: int64[sources]; where the next list of each goes.
    """

    ends: Int64
    parents: Int64
    attributes_from: Int64
    texts_from: Int64
    stack: Int64
    is_bound: Bytes
    first_hit: Int64
    first_list: Int64
    row_stamp: Int64
    frontier: Int64
    found_leaves: Int32
    hits: Int64
    leaf_stamp: Int64
    binding_stamp: Int64
    binding_row: Int64
    pairs: Int64
    lists_of: Int64
    selection_stamp: Int64
    selection_node: Int64
    selection_first: Int64
    selection_last: Int64
    groups: Int64
    matched: Int32
    is_answer: Any
    bound_from: Int64
    bound_to: Int64
    number: Any
    answers: Int32
    group_starts: Int64
    group_ends: Int64
    answer_paths: Int64
    of_path: Int64
    path_at: Int64
    list_bound: Int64
    list_starts: Int64
    list_ends: Int64
    nodes: Int64
    bound: Int64


LIST_SLOT = 6
"""Source and bound node as a key, document, first pair, last pair, the source, and the next slot of
the bound node."""

PLANS: Any = places(Plans, _SCALARS)
READ: Any = places(Read, _SCALARS + 2 * len(Plans._fields))
WORK: Any = places(Work, _SCALARS + 2 * (len(Plans._fields) + len(Read._fields)))
STATE_SIZE = _SCALARS + 2 * (len(Plans._fields) + len(Read._fields) + len(Work._fields))
