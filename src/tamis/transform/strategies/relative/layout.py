"""Where kernels find things: the columns of records, and the arrays that they read and write."""

from __future__ import annotations

from typing import Any, NamedTuple

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel.record import fields
from tamis.transform.strings.layout import LEAF_OWN, OWN, OWN_SCALARS, SOURCE_OWN

SOURCE_NEXT, SOURCE_TESTS, SOURCE_LEVEL, SOURCE_LISTED = range(SOURCE_OWN, SOURCE_OWN + 4)
"""A source is read at a state of the NFA: the strings, or the nodes, at the end of a path.

``NEXT``     the next source of the same state; of one above, of the same binding.
``TESTS``    where its tests begin, or ``NONE``.
``LEVEL``    0; of one above a binding's node, how many steps.
``LISTED``  how many transformations return its nodes, those that were removed left out.
"""

LEAF_FIRST, LEAF_COUNT = range(LEAF_OWN, LEAF_OWN + 2)
"""``FIRST``, ``COUNT``: of a leaf, the conjunctions that are looked for when it is true."""

RULE_BINDING, RULE_SELECTION, RULE_LEAVES, RULE_NEXT, RULE_NEXT_OF_LEAF, RULE_TESTS = range(6)
RULE = 8
"""A conjunction of leaves that selects nodes of a binding: one way for a selection to be true.

``LEAVES``   where its other leaves begin, which ``NONE`` ends, or ``NONE``.
``NEXT``     the next one of the same binding and leaf; of those without leaves, of the binding.
``NEXT_OF_LEAF``  the next one of the same leaf.
``TESTS``    of the binding's inner steps together, where one leaf does not say it; or ``NONE``.
"""

(
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
    IS_UNORDERED,
) = range(OWN_SCALARS, OWN_SCALARS + 13)
"""What is counted while a document is looked at.

``ROWS``           how many occurrences the NFA gave.
``SERIAL``         grows: what was stamped with an older one is forgotten; it is kept.
``DOCUMENT``       likewise, one for each document.
``FRONTIER_FROM``  where the nodes that a path leads back to begin.
``IS_UNORDERED``   whether some list is not in document order.
"""


class Plans(NamedTuple):
    """All subscriptions.

    Attributes:
        is_binding: uint8[states]; whether a binding path ends there; the state is the binding.
        source_of: int32[states]; the first source, or ``NONE``.
        first_above: int32[states]; of a binding, the first source above, or ``NONE``.
        first_rule: int32[states]; of a binding, the first rule without leaves, or ``NONE``.
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


class Work(NamedTuple):
    """What is found in a document, and what it takes to find it.

    Attributes:
        is_bound: uint8[events]; whether some binding path leads there.
        first_hit: int64[events]; the first of the hits of a bound node, or ``NONE``.
        first_list: int64[events]; the slot of the first of its lists, or ``NONE``.
        row_stamp: int64[rows].
        frontier: int64[]; occurrences that a path leads back to.
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
        answers: int32[n]; the queries that have groups.
        group_starts, group_ends, answer_paths: int64[n]; of answers.
        of_path, list_bound, list_starts, list_ends, nodes, bound: see ``Groups``.
        path_at: int64[sources]; where the next list of each goes.
    """

    is_bound: Bytes
    first_hit: Int64
    first_list: Int64
    row_stamp: Int64
    frontier: Int64
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

PLANS: Any = fields(Plans, OWN)
WORK: Any = fields(Work, OWN + 2 * len(Plans._fields))
STATE_SIZE = OWN + 2 * (len(Plans._fields) + len(Work._fields))
