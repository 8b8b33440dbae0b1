"""``Program``: subscriptions, compiled for the automaton, as flat arrays.

The words: a *node* is one of the trie of steps, and stands for all nodes of a document that its
path leads to; *symbols* are what a step can tell apart; a *fact* is what an element derives for
the one around it; a *formula* is of facts; a *rule* says what follows where a formula holds.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Bytes, Floats, Int32, Int64, Words
from tamis.documents.vocabulary import NameNumbers, Projection

# Symbols that are there always; from FIRST_SYMBOL on come those of names and namespaces.
TEXT, MISC, OTHER_ELEMENT, OTHER_ATTRIBUTE, FIRST_SYMBOL = range(5)

# What a rule does, where its formula holds. That of a sparse fact PASSES it on to nodes around.
DERIVES, ACCEPTS, COUNTS, PASSES = range(4)
# Kinds of facts, in the order in which they are numbered; each kind begins a new word of bits.
# Of the node itself: OF_GROUP, that a rule reads its string value; OF_ITSELF, that it passes a test
# on the self axis; OF_VALUE, what is true of its value. Told to its parent: OF_STAGE, that it gets
# to a stage of a chain; OF_CHILD and OF_COUNTER; and, to all around it, OF_DESCENDANT.
OF_GROUP, OF_ITSELF, OF_VALUE, OF_STAGE, OF_CHILD, OF_DESCENDANT, OF_COUNTER = range(7)
# Operators in formulas, between facts; COUNT is followed by a counter and its least and greatest
# value.
NOT, AND, OR, COUNT, CONSTANT_TRUE = range(-1, -6, -1)
# Columns of ``nodes``: a row is half a line of cache, and the next row says where its lists end.
CHILDREN, DESCENDANTS, ACCEPTED, UNCONDITIONAL, RULES, NEEDS, WATCHES, GRIDS = range(8)
NODE_COLUMNS = 8
# Columns of ``rules``; for COUNTS the target is the counter that is added to, and the source the
# one whose value is added, or -1 for 1. In ``sparse_rules`` the source is the node, and CONSUMES
# says that nothing more follows from the fact in a document of which the query is true.
WATCHED, ALSO, THIRD, FORMULA, ACTION, TARGET, SOURCE, CONSUMES = range(8)
RULE_COLUMNS = 8
# Columns of ``grids``.
FIRST_ROW, FIRST_COLUMN, COLUMNS, CELLS, GRID_COLUMNS = range(5)
# Kinds of formulas.
CONJUNCTION, GENERAL = range(2)
# Columns of ``groups``, and of ``comparisons``.
FUNCTION, LONGEST, ROOT, LENGTHS, THRESHOLDS, COMPARISONS, CLASSES, GROUP_COLUMNS = range(8)
# Columns of ``constants``; a row is a quarter of a line of cache.
ASKED_OF, FIRST_BYTE, MEANS = range(3)
CONSTANT_ROW = 4
SEARCHED_MAX = 256
"""The bytes of a string that values may contain, at most."""
# Functions of string values, as bits.
NORMALIZED, LENGTH = 1, 2
OPERATOR, THRESHOLD, FACT, COMPARISON_COLUMNS = range(4)
# Operators between numbers: a comparison holds where the bit of less, equal or more is set; but for
# "!=", which alone holds of what is no number.
LESS, EQUAL, MORE = 1, 2, 4
OPERATORS = {
    "<": LESS,
    "<=": LESS | EQUAL,
    "=": EQUAL,
    ">=": EQUAL | MORE,
    ">": MORE,
    "!=": LESS | MORE,
}


ROW_COLUMNS = {
    "nodes": NODE_COLUMNS, "wildcards": -1, "rules": RULE_COLUMNS, "sparse_rules": RULE_COLUMNS,
    "grids": GRID_COLUMNS, "constants": CONSTANT_ROW, "groups": GROUP_COLUMNS,
    "comparisons": COMPARISON_COLUMNS, "stages": 3, "lasts": 2,
}  # fmt: skip
"""How many numbers a row has of those arrays that have rows; -1: any number."""


class ProgramArrays(NamedTuple):
    """What kernels read; all read-only.

    Nodes are numbered breadth first, so that the children of a node follow each other: first those
    on a child step, then those on a descendant step; among these ascending by test.

    Attributes:
        nodes: int32[nodes + 1, NODE_COLUMNS]; by node, where its part of these lists begins:
            CHILDREN, nodes; DESCENDANTS, those among them on a descendant step; ACCEPTED, of
            ``accepts``; UNCONDITIONAL, of ``unconditional``; RULES, of ``rules``; NEEDS, of
            ``needs``; WATCHES, of ``watch_words``; GRIDS, of ``grids``.
        tests: int32[nodes]; the symbol that passes, or minus one minus the number of a wildcard.
        wildcards: uint8[symbols, wildcards]; which of them a symbol passes.
        accepts, unconditional: queries that are true, and facts that hold, as soon as the node is
            reached.
        rules: int32[r, RULE_COLUMNS]; what follows at the node where a formula holds. Each that
            cannot hold without facts has one that is WATCHED; the others, -1, come first, and then
            they ascend. With it stand two more facts that the formula needs, or the same again, and
            the FORMULA, or -1 where these are all that it needs.
        watch_words: uint64[w], watch_places: int32[w]; at nodes of many rules, the facts that these
            watch, as words that are not 0, and which words of all facts they are.
        watch_ranks: int32[w]; for the first fact of such a word, its place in ``runs``; the others
            follow.
        runs: int32[]; where the rules of the node that watch a fact begin; those of one end where
            the next ones begin.
        grids: int32[g + 1, GRID_COLUMNS]; rules of two facts that accept, at nodes that have many
            of them: FIRST_ROW, where its part of ``grid_rows`` begins; FIRST_COLUMN, the first of
            as many facts as it has COLUMNS; CELLS, where its part of ``grid_cells`` begins.
        grid_rows: the fact of each row.
        grid_cells: by row and column, where the queries begin among the ``sliced`` that
            ask for the row's fact and that column's or a later one; and, behind the columns, where
            those of the row end.
        sliced: queries.
        sparse: uint64[words or 0]; bits of the facts that stay outside of sets.
        sparse_starts: int32[facts + 1 or 1], sparse_rules: int32[s, RULE_COLUMNS]; the rules that
            are looked at where a sparse fact holds; and those that say which node around needs it.
        sparse_nodes: uint8[]; bits of the nodes that have such rules.
        needs: int32[]; facts OF_DESCENDANT that rules of the node may ask for.
        formula_starts: int64[formulas + 1], formula_code: int32[]; facts, all of which must hold,
            the least likely first, or a program for a stack, by formula_kinds: uint8[formulas].
        fact_ends: int64[OF_COUNTER + 1]; where the facts of a kind end, and the next begin, in
            words of 64.
        fact_counters: int32[]; of which counter a fact OF_COUNTER is. The fact says the value.
        counter_bases: int32[counters]; the fact that says that the value is 0, if there was one.
        counter_limits: int32[counters]; larger values count as this one.
        groups: int32[g + 1, GROUP_COLUMNS]; what is asked of string values, by the test of the
            nodes that ask and the FUNCTION: the LONGEST constant that they are or begin with, or
            -1; the ROOT of those that they may contain, or 0; and where
            their part of these lists begins: LENGTHS, of ``prefix_lengths``; THRESHOLDS;
            COMPARISONS; CLASSES, of the numbers between and at thresholds, and what is no number.
        constant_slots: uint64[2**k], a hash table with open addressing: 1 and the number of a
            constant, and from bit 32 on a part of its hash; or 0.
        constants: int32[c + 1, CONSTANT_ROW]; ASKED_OF twice the group, and 1 where values need
            only begin with it; its FIRST_BYTE in constant_bytes: uint8[]; and what it MEANS: the
            fact that is true of a value that is the constant.
        prefix_lengths: int32[]; of the constants that values may begin with, in bytes, ascending.
        prefix_bits: uint64[2**k]; bits by the hash of these.
        searched_letters, searched_rows, searched_edges, searched_links, searched_pairs,
            searched_shallow: the ``ahocorasick.Search`` of strings that values may contain. A node
            stands for the strings that begin like it; they are numbered from 1.
        searched_outputs: int32[n]; the node of the longest constant that the string of the node is
            or ends with, or 0; searched_shorter: int32[n]; that ends with and is not.
        searched_facts: int32[n]; what is true of a value that contains the constant, or -1.
        thresholds: float64[]; ascending.
        comparisons: int32[n, COMPARISON_COLUMNS]; OPERATOR, number of the THRESHOLD in the group,
            and FACT; in a group those with sparse facts come first.
        chain_starts: int64[], chain_numbers: int32[]; the chains that begin with a fact OF_STAGE.
        stage_starts: int64[chains + 1]; stages: int32[s, 3]; the fact of a stage, its counter and
            the value that passes.
        last_starts: int64[], lasts: int32[l, 2]; by fact OF_STAGE: chains, and what follows of a
            child that passed the chain and has this one.
    """

    nodes: Int32
    tests: Int32
    wildcards: Bytes
    accepts: Int32
    unconditional: Int32
    rules: Int32
    watch_words: Words
    watch_places: Int32
    watch_ranks: Int32
    runs: Int32
    grids: Int32
    grid_rows: Int32
    grid_cells: Int32
    sliced: Int32
    sparse: Words
    sparse_starts: Int32
    sparse_rules: Int32
    sparse_nodes: Bytes
    needs: Int32
    formula_starts: Int64
    formula_code: Int32
    formula_kinds: Bytes
    fact_ends: Int64
    fact_counters: Int32
    counter_bases: Int32
    counter_limits: Int32
    groups: Int32
    constant_slots: Words
    constants: Int32
    constant_bytes: Bytes
    prefix_lengths: Int32
    prefix_bits: Words
    searched_letters: Bytes
    searched_rows: Int32
    searched_edges: Int64
    searched_links: Int64
    searched_pairs: Int64
    searched_shallow: Int64
    searched_outputs: Int32
    searched_shorter: Int32
    searched_facts: Int32
    thresholds: Floats
    comparisons: Int32
    chain_starts: Int64
    chain_numbers: Int32
    stage_starts: Int64
    stages: Int32
    last_starts: Int64
    lasts: Int32


class Symbols(NamedTuple):
    """The symbols of the names of elements, or of attributes.

    Attributes:
        names: by expanded name, of all names in tests. Where a test is ``p:*`` and another one
            ``*:a``, ``p:a`` is one of them.
        namespaces: of other names, in the namespace of a test ``p:*``.
        locals: of other names, with the local name of a test ``*:a``.
    """

    names: dict[tuple[str, str], int]
    namespaces: dict[str, int]
    locals: dict[str, int]

    def numbers(self, other: int) -> NameNumbers:
        """The symbols of names; another one where no test tells a name from others."""

        def of(namespace: str, local: str) -> int:
            found = self.namespaces.get(namespace)
            return self.locals.get(local, other) if found is None else found

        return NameNumbers(self.names, of if self.namespaces or self.locals else other)


class AutomatonProgram(NamedTuple):
    """Compiled queries: how many there are, what they read of documents, the symbols of names."""

    arrays: ProgramArrays
    queries: int
    projection: Projection
    elements: Symbols
    attributes: Symbols

    def memory_usage(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays)
