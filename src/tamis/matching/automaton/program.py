"""``Program``: subscriptions, compiled for the automaton, as flat arrays.

The words: a *node* is one of the trie of steps, and stands for all nodes of a document that its
path leads to; *symbols* are what a step can tell apart; a *fact* is what an element tells the one
around it; a *formula* is of facts; a *rule* says what follows where a formula holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import Int32, Int64
from tamis.documents.demand import Demand

# Symbols that are there always; from FIRST_SYMBOL on come those of names and namespaces.
TEXT, MISC, OTHER_ELEMENT, OTHER_ATTRIBUTE, FIRST_SYMBOL = range(5)

# What a rule does, where its formula holds.
TELLS, ACCEPTS, COUNTS, NOTES = range(4)
# Kinds of facts.
OF_CHILD, OF_DESCENDANT, OF_STAGE, OF_COUNTER = range(4)
# Operators in formulas, between facts; COUNT is followed by a counter and its least and greatest
# value.
NOT, AND, OR, COUNT, CONSTANT_TRUE = range(-1, -6, -1)
# Columns of ``rules``; for COUNTS the target is the counter that is added to, and the source the
# one whose value is added, or -1 for 1.
FORMULA, ACTION, TARGET, SOURCE, RULE_COLUMNS = range(5)
# Columns of ``watches``.
WATCHING, ALSO, THIRD, IS_LONG, WATCH_COLUMNS = range(5)
# Kinds of formulas.
CONJUNCTION, GENERAL = range(2)


class ProgramArrays(NamedTuple):
    """What kernels read; all read-only.

    Nodes are numbered breadth first, so that the children of a node follow each other: first those
    on a child step, then those on a descendant step; among these ascending by test.

    Attributes:
        children: int32[nodes + 1]; the children of node n are ``children[n]:children[n + 1]``.
        descendants: int32[nodes]; where among these the descendant steps begin.
        tests: int32[nodes]; the symbol that passes, or minus one minus the number of a wildcard.
        wildcards: uint8[symbols, wildcards]; which of them a symbol passes.
        accept_starts: int64[nodes + 1], accepts: int32[]; the queries that are true as soon as a
            node is reached.
        base_starts: int64[nodes + 1], base_rules: int32[r, RULE_COLUMNS]; by node, the rules whose
            formulas may hold without any fact.
        rule_starts: int64[formulas + 1], rules: int32[r, RULE_COLUMNS], rule_nodes: int32[r]; by
            formula, all others, and the node of each.
        formula_starts: int64[formulas + 1], formula_code: int32[]; facts, all of which must hold,
            the least likely first, or a program for a stack, by formula_kinds: uint8[formulas].
        watch_starts: int64[facts + 1], watches: int32[w, WATCH_COLUMNS]; the formulas that watch a
            fact: each that cannot hold without facts watches one of them. With it stand two others
            that it needs, or else the same fact again; and whether that is not all that it needs.
        fact_kinds: uint8[facts].
        fact_counters: int32[facts]; for facts OF_COUNTER: of which. The fact says the value.
        counter_bases: int32[counters]; the fact that says that the value is 0, if there was one.
        counter_limits: int32[counters]; larger values count as this one.
        needs_starts: int64[nodes + 1], needs: int32[]; facts OF_DESCENDANT that rules of a node
            may ask for.
        chain_starts: int64[facts + 1], chain_numbers: int32[]; the chains that begin with a fact
            OF_STAGE.
        stage_starts: int64[chains + 1]; stages: int32[s, 3]; the fact of a stage, its counter and
            the value that passes. The last stage of a chain has no counter: -1.
        chain_facts: int32[chains]; the fact that holds once all stages were passed.
    """

    children: Int32
    descendants: Int32
    tests: Int32
    wildcards: NDArray[np.uint8]
    accept_starts: Int64
    accepts: Int32
    base_starts: Int64
    base_rules: Int32
    rule_starts: Int64
    rules: Int32
    rule_nodes: Int32
    formula_starts: Int64
    formula_code: Int32
    formula_kinds: NDArray[np.uint8]
    watch_starts: Int64
    watches: Int32
    fact_kinds: NDArray[np.uint8]
    fact_counters: Int32
    counter_bases: Int32
    counter_limits: Int32
    needs_starts: Int64
    needs: Int32
    chain_starts: Int64
    chain_numbers: Int32
    stage_starts: Int64
    stages: Int32
    chain_facts: Int32


class AutomatonProgram(NamedTuple):
    """Compiled queries.

    Attributes:
        arrays: what kernels read.
        queries: how many there are.
        has_notes: whether any rule NOTES.
        demand: what they read of documents.
        element_symbols, attribute_symbols: symbols by expanded name, for all names in tests.
        element_namespaces, attribute_namespaces: those of names that are in no test, in a
            namespace that is.
    """

    arrays: ProgramArrays
    queries: int
    has_notes: bool
    demand: Demand
    element_symbols: Mapping[tuple[str, str], int]
    attribute_symbols: Mapping[tuple[str, str], int]
    element_namespaces: Mapping[str, int]
    attribute_namespaces: Mapping[str, int]

    def memory_usage(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays)
