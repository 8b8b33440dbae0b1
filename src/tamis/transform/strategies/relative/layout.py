"""The state of the relative strategy's kernels, behind what strategies share."""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Bytes, Int32, Int64, Words
from tamis.core.kernel.record import lay_out
from tamis.transform.layout import LEAF_OWN, OWN, OWN_SCALARS, SOURCE_OWN

SOURCE_NEXT, SOURCE_TESTS, SOURCE_LEVEL, SOURCE_LISTED = range(SOURCE_OWN, SOURCE_OWN + 4)
"""A source is read at a state of the NFA: the strings, or the nodes, at the end of a path.

``NEXT``    the next source of the same state; of one above, of the same binding.
``TESTS``   the index of its tests, or ``NONE``.
``LEVEL``   0; of one above a binding's node, how many steps.
``LISTED``  how many transformations return its nodes.
"""

LEAF_FIRST, LEAF_COUNT = range(LEAF_OWN, LEAF_OWN + 2)
"""The first rule that is looked for when a leaf is true, and how many there are."""

RULE_BINDING, RULE_SELECTION, RULE_LEAVES, RULE_NEXT, RULE_NEXT_OF_LEAF, RULE_TESTS = range(6)
RULE = 8
"""A conjunction of leaves that selects nodes of a binding: one way for a selection to be true.

``LEAVES``   the index of its other leaves, which ``NONE`` ends, or ``NONE``.
``NEXT``     the next one of the same binding and leaf; of those without leaves, of the binding.
``NEXT_OF_LEAF``  the next one of the same leaf.
``TESTS``    of the binding's inner steps together, where one leaf does not say it; or ``NONE``.
"""

ALL_LEVELS = 1 << 40
"""More steps than any path has."""

REFUSED = -1
"""The status where a document is to be looked at as a batch."""

LIST_SLOT = 6
"""Source and bound node as a key, document, first pair, last pair, the source, and the next slot of
the bound node."""

(
    ROWS,  # how many occurrences the NFA gave
    SERIAL,  # grows, also from document to document; older stamps are void
    DOCUMENT,  # likewise, one for each document
    FRONTIER_FROM,  # the start in ``frontier`` of the occurrences that a path leads back to
    HITS_USED,
    PAIRS_USED,
    GROUPS_USED,
    MATCHED_USED,
    ANSWERS_USED,
    LIST_KEYS,
    NODES_USED,
    BOUND_USED,
    IS_UNORDERED,  # whether some list is not in document order
) = range(OWN_SCALARS, OWN_SCALARS + 13)


class Work(NamedTuple):
    """What is found in a document."""

    is_bound: Bytes  # by event; whether some binding path leads there
    first_hit: Int64  # by event; of a bound node, the first hit, or NONE
    first_list: Int64  # by event; of a bound node, the slot of its first list, or NONE
    row_stamp: Int64  # by row
    frontier: Int64  # occurrences that a path leads back to
    hits: Int64  # [2 * n]; a leaf that is true of a bound node, and the next hit there
    leaf_stamp: Int64  # by leaf
    binding_stamp: Int64  # by state
    binding_row: Int64  # by state; the occurrence of a binding at the present node
    pairs: Int64  # [2 * n]; a node reference in a list, and the next pair
    lists_of: Int64  # [LIST_SLOT * n]; by bound node and source: the list
    selection_stamp: Int64  # by selection; the document that it was true of
    selection_node: Int64  # by selection; its last node there, first group and last group
    selection_first: Int64
    selection_last: Int64
    groups: Int64  # [2 * n]; a bound node, and the next group of the selection
    matched: Int32  # the selections that have groups
    is_answer: Words  # a bit for each query
    bound_from: Int64  # by selection; its range of ``bound``
    bound_to: Int64
    answers: Int32  # the queries that have groups; what follows is as in ``Groups``
    group_starts: Int64
    group_ends: Int64
    answer_paths: Int64
    of_path: Int64
    path_at: Int64  # by source; where its next list goes
    list_bound: Int64
    list_starts: Int64
    list_ends: Int64
    nodes: Int64
    bound: Int64


class Plans(NamedTuple):
    """All transformations."""

    is_binding: Bytes  # by state; whether a binding path ends there; the state is the binding
    source_of: Int32  # by state; the first source, or NONE
    first_above: Int32  # by binding; the first source above, or NONE
    first_rule: Int32  # by binding; the first rule without leaves, or NONE
    rules: Int32  # [RULE * n]
    rule_leaves: Int32  # lists, each ended by NONE
    rule_pairs: Int64  # a pair table; by binding and leaf, the first rule
    query_starts: Int64  # by selection; its transformations, in ``selection_queries``
    query_counts: Int64
    selection_queries: Int32
    selection_of: Int32  # by transformation
    path_starts: Int64  # by transformation; its sources, in ``paths``
    paths: Int32


class One(NamedTuple):
    """What one document is borrowed from: a tokenizer, and the state of the NFA."""

    recorded: Int64
    places: Int64
    nfa: Int64
    nfa_places: Int64


WORK, PLANS, ONE, STATE_SIZE = lay_out(OWN, Work, Plans, One)
