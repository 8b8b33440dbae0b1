"""From the growing form of a program to its arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Floats, Int32, Int64, Words, distinct, freeze, starts_of
from tamis.core.errors import UsageError
from tamis.documents.vocabulary import ALL_NAMES, Name, Names, Projection
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.compile.arrays import (
    Asked,
    SparseFacts,
    Strings,
    grid_arrays,
    value_arrays,
)
from tamis.matching.engines.automaton.compile.builder import Builder, Test
from tamis.matching.engines.automaton.kernels import build as at
from tamis.matching.engines.automaton.kernels.freeze import count_uses, finish, weigh
from tamis.matching.engines.automaton.program import AutomatonProgram, ProgramArrays, Symbols

MOST_WORDS = (1 << 31) // 64 - 1
"""Words of facts: their numbers have 32 bits."""
MANY_RULES = 16
"""A node of more rules has them indexed by what they watch."""


def freeze_program(builder: Builder, queries: int) -> AutomatonProgram:
    """The program of all that was added."""
    symbols = _SymbolTable(builder.tests)
    rows = builder.rows("nodes")
    parents = rows[:, at.PARENT]
    below = rows[:, at.BELOW] != 0
    codes = symbols.codes[rows[:, at.TEST]]
    order = _breadth_first(parents, below, codes)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order), dtype=np.int32)
    facts, fact_arrays = _numbered_facts(builder)
    children, descendants = _children(rank[parents[order[1:]]], below[order])
    accepts = builder.rows("accepts")
    accept_starts, accept_order = _grouped(rank[accepts[:, 0]], len(order))
    words = int(fact_arrays["fact_ends"][-1])
    unconditional_starts, unconditional, of_rules, rules, of_formulas, formulas = _ruled(
        builder, rank, facts, fact_arrays["counter_bases"]
    )
    needs = _needs(builder, rank, facts)
    sparse = SparseFacts(builder)
    sparse_rules = sparse.arrays(facts, words, of_rules, rules, of_formulas, needs)
    needs = needs[~np.isin(needs & (1 << 32) - 1, facts[sparse.is_pure])]
    is_left = sparse.is_only[of_formulas] == 0
    of_rules, rules = of_rules[is_left], rules[is_left]
    is_sliced, grid_starts, grids = grid_arrays(
        of_rules, rules, _numbered_tests(builder, facts, words)
    )
    of_rules, rules = of_rules[~is_sliced], rules[~is_sliced]
    rule_starts = np.searchsorted(of_rules, np.arange(len(order) + 1))
    nodes = np.zeros((len(order) + 1, pr.NODE_COLUMNS), np.int32)
    nodes[:, pr.CHILDREN] = children
    nodes[:-1, pr.DESCENDANTS] = descendants
    nodes[:, pr.ACCEPTED] = accept_starts
    nodes[:, pr.UNCONDITIONAL] = unconditional_starts
    nodes[:, pr.RULES] = rule_starts
    nodes[:, pr.NEEDS] = np.searchsorted(needs >> 32, np.arange(len(order) + 1))
    nodes[:, pr.WATCHES], watches = index_watched(
        rule_starts, rules[:, pr.WATCHED], np.diff(rule_starts) > MANY_RULES
    )
    nodes[:, pr.GRIDS] = np.searchsorted(grid_starts, np.arange(len(order) + 1))
    arrays = ProgramArrays(
        nodes=nodes,
        tests=codes[order],
        wildcards=symbols.wildcards,
        accepts=accepts[accept_order, 1],
        unconditional=unconditional,
        rules=rules,
        needs=(needs & (1 << 32) - 1).astype(np.int32),
        sparse_nodes=_node_bits(sparse_rules["sparse_rules"], len(order)),
        **sparse_rules,
        **watches,
        **grids,
        **formulas,
        **fact_arrays,
        **_chain_arrays(builder, facts, fact_arrays["fact_ends"]),
        **_value_arrays(builder, facts, sparse),
    )
    arrays = ProgramArrays(*map(np.ascontiguousarray, arrays))  # read by their addresses
    freeze(*arrays)
    return AutomatonProgram(
        arrays, queries, _projection(builder), symbols.elements, symbols.attributes
    )


def _projection(builder: Builder) -> Projection:
    """What queries read of documents."""
    reads = np.flatnonzero(builder["reads_text"])
    text = _names(
        builder.tests[cover - at.FIRST_COVER] for cover in reads if cover >= at.FIRST_COVER
    )
    used = distinct(builder.rows("nodes")[:, at.TEST])
    attributes = _names(
        builder.tests[test] for test in used.tolist() if builder.tests[test][0] == at.ATTRIBUTE
    )
    all_text = ALL_NAMES if at.ALL_COVERED in reads else text
    return Projection(attributes, all_text, misc=bool(builder.state[at.READS_MISC]))


def _names(tests: Iterable[Test]) -> Names:
    """The names of tests; all where one of them is a wildcard."""
    names: list[Name] = []
    for _, namespace, local in tests:
        if namespace is None or local is None:
            return ALL_NAMES
        names.append((namespace, local))
    return Names(names)


# -- facts -----------------------------------------------------------------------------------------


def _numbered_facts(builder: Builder) -> tuple[Int32, dict[str, NDArray[Any]]]:
    """The number of each fact in the program; and what is known of these numbers.

    Kinds follow each other, each from a new word on; in a kind, facts about the same test: an
    element derives few words of facts then.
    """
    rows = builder.rows("facts")
    kinds = rows[:, at.KIND]
    order = np.lexsort((_value_ranks(builder), rows[:, at.FACT_TEST], kinds))
    counts = np.bincount(kinds, minlength=pr.OF_COUNTER)[: pr.OF_COUNTER]
    limits = builder.rows("limits")[:, 0]
    ends = np.cumsum([-(-count // 64) for count in [*counts.tolist(), int(limits.sum())]])
    if ends[-1] > MOST_WORDS:
        raise UsageError(
            f"the subscriptions count up to {limits.sum():,} nodes in all, more than "
            f"{64 * MOST_WORDS:,}: use smaller numbers in count() and positions, or "
            "engine='reference'"
        )
    starts = 64 * np.concatenate([[0], ends[:-1]])
    firsts = np.cumsum(counts) - counts
    numbers = np.empty(len(kinds), np.int32)
    sorted_kinds = kinds[order]
    numbers[order] = np.arange(len(kinds)) - firsts[sorted_kinds] + starts[sorted_kinds]
    return numbers, {
        "fact_ends": ends.astype(np.int64),
        "fact_counters": np.repeat(np.arange(len(limits), dtype=np.int32), limits),
        "counter_bases": (starts[-1] + np.cumsum(limits) - limits - 1).astype(np.int32),
        "counter_limits": limits.copy(),
    }


def _value_ranks(builder: Builder) -> Int32:
    """By fact about a value: its rank; what is true of one value is in few words then."""
    ranks = np.zeros(len(builder.rows("facts")), np.int32)
    values = builder.rows("values")
    literals = values[:, at.VALUE_LITERAL]
    is_string = literals >= 0
    numbers = np.zeros(len(values))
    numbers[~is_string] = _numbers(builder)[-1 - literals[~is_string]]
    begins = np.zeros((len(values), 2), np.uint64)
    begins[is_string] = _begins(builder)[literals[is_string]]
    keys = (begins[:, 1], begins[:, 0], numbers, values[:, at.VALUE_OPERATOR], is_string)
    order = np.lexsort(keys)
    ranks[values[order, at.VALUE_FACT]] = np.arange(len(values), dtype=np.int32)
    # What is derived from just that follows suit.
    facts = builder.rows("facts")
    derived = np.flatnonzero(
        (facts[:, at.KIND] == pr.OF_CHILD) & (facts[:, at.FACT_FORMULA] > at.TRUE)
    )
    formulas = facts[derived, at.FACT_FORMULA]
    starts = builder["formula_starts"]
    asked = builder["formula_code"][starts[formulas]]
    is_one = (starts[formulas + 1] - starts[formulas] == 1) & (asked >= 0)
    ranks[derived[is_one]] = ranks[asked[is_one]]
    return ranks


def _numbers(builder: Builder) -> Floats:
    """The numbers that values are compared with."""
    return np.ascontiguousarray(builder.rows("numbers")).view(np.float64)[:, 0]


def _begins(builder: Builder) -> Words:
    """How each string begins, as two words that sort as it does."""
    count = int(builder.state[at.STRINGS])
    starts, data = builder["string_starts"][: count + 1], builder["string_bytes"]
    places = starts[:-1, None] + np.arange(16)
    is_inside = places < starts[1:, None]
    begins = np.where(is_inside, data[np.where(is_inside, places, 0)], 0).astype(np.uint8)
    return begins.view(">u8").astype(np.uint64)


# -- rules -----------------------------------------------------------------------------------------


def _ruled(
    builder: Builder, rank: Int32, facts: Int32, counter_bases: Int32
) -> tuple[Int64, Int32, Int32, Int32, Int32, dict[str, NDArray[Any]]]:
    """By node: what is unconditional, rules, and the numbers of their formulas; the formulas."""
    given = builder.rows("rules")
    formulas, actions = given[:, at.RULE_FORMULA], given[:, at.RULE_ACTION]
    nodes, targets = rank[given[:, at.RULE_NODE]], given[:, at.RULE_TARGET].copy()
    derived = actions == pr.DERIVES
    targets[derived] = facts[targets[derived]]
    is_unconditional = (formulas == at.TRUE) & (
        derived | (actions == pr.COUNTS) & (given[:, at.RULE_SOURCE] < 0)
    )
    counted = is_unconditional & ~derived
    targets[counted] = counter_bases[targets[counted]] + 1
    unconditional_starts, unconditional_order = _grouped(nodes[is_unconditional], len(rank))
    unconditional = targets[is_unconditional][unconditional_order]
    watches, arrays = _formula_arrays(builder, facts)
    nodes = nodes[~is_unconditional]
    rows = np.zeros((len(nodes), pr.RULE_COLUMNS), np.int32)
    rows[:, : pr.FORMULA + 1] = watches[formulas[~is_unconditional]]
    rows[:, pr.ACTION] = actions[~is_unconditional]
    rows[:, pr.TARGET] = targets[~is_unconditional]
    rows[:, pr.SOURCE] = given[~is_unconditional, at.RULE_SOURCE]
    order = np.lexsort((rows[:, pr.WATCHED], nodes))
    return (
        unconditional_starts,
        unconditional,
        nodes[order],
        rows[order],
        formulas[~is_unconditional][order],
        arrays,
    )


def _numbered_tests(builder: Builder, facts: Int32, words: int) -> Int32:
    """By number of a fact of children: the test of the children, from 1 on; 0 for others."""
    rows = builder.rows("facts")
    result = np.zeros(64 * words, np.int32)
    derived = rows[:, at.KIND] == pr.OF_CHILD
    result[facts[derived]] = rows[derived, at.FACT_TEST] + 1
    return result


def _formula_arrays(builder: Builder, facts: Int32) -> tuple[Int32, dict[str, NDArray[Any]]]:
    """What stands with rules, by formula, and the formulas.

    In a conjunction the facts that ask for most, the least likely, come first, and of these the
    ones that few others ask for. What holds of the element itself is no child fact, and not
    watched.
    """
    count = int(builder.state[at.FORMULAS])
    kinds: Bytes = builder["formula_kinds"][:count].copy()
    starts: Int64 = builder["formula_starts"][: count + 1].copy()
    code: Int32 = builder["formula_code"][: int(builder.state[at.CODE])].copy()
    weights, uses = np.zeros(len(facts), np.int64), np.zeros(len(facts), np.int64)
    weigh(builder.state, weights)
    count_uses(kinds, starts, code, uses)
    ranks = np.empty(len(facts), np.int32)
    ranks[np.lexsort((uses, -weights))] = np.arange(len(facts), dtype=np.int32)
    is_child_fact = (builder.rows("facts")[:, at.KIND] != pr.OF_ITSELF).astype(np.uint8)
    watches = np.empty((count, pr.FORMULA + 1), np.int32)
    finish(kinds, starts, code, facts, is_child_fact, ranks, watches.reshape(-1))
    return watches, {"formula_starts": starts, "formula_code": code, "formula_kinds": kinds}


def _node_bits(rules: Int32, nodes: int) -> Bytes:
    """Bits of the nodes of sparse rules."""
    bits = np.zeros(nodes + 1, np.uint8)
    bits[rules[rules[:, pr.ACTION] != pr.PASSES, pr.SOURCE]] = 1
    return np.packbits(bits, bitorder="little")


def _needs(builder: Builder, rank: Int32, facts: Int32) -> Int64:
    """Nodes, from bit 32 on, and the facts of descendants that are derived for them: ascending."""
    rules = builder.rows("rules")
    kinds = builder.rows("facts")[:, at.KIND]
    derived = rules[rules[:, at.RULE_ACTION] == pr.DERIVES]
    derived = derived[kinds[derived[:, at.RULE_TARGET]] == pr.OF_DESCENDANT]
    around = rank[builder.rows("nodes")[derived[:, at.RULE_NODE], at.PARENT]].astype(np.int64)
    return distinct(around << 32 | facts[derived[:, at.RULE_TARGET]])


def _chain_arrays(builder: Builder, facts: Int32, ends: Int64) -> dict[str, NDArray[Any]]:
    stages = [
        [(facts[fact], of_stage, number) for fact, of_stage, number in chain]
        for chain in _stages_of_chains(builder)
    ]
    first, of_stages = 64 * ends[pr.OF_VALUE], 64 * int(ends[pr.OF_STAGE] - ends[pr.OF_VALUE])
    begins = np.array([chain[0][0] for chain in stages], np.int32)
    chain_starts, order = _grouped(begins - first, of_stages)
    lasts = builder.rows("lasts")
    derived = facts[lasts[:, at.LAST_STAGE]]
    last_starts, last_order = _grouped(derived - first, of_stages)
    rows = np.stack([lasts[:, at.LAST_CHAIN], facts[lasts[:, at.LAST_FACT]]], axis=1)
    return {
        "chain_starts": chain_starts,
        "chain_numbers": order,
        "stage_starts": starts_of(list(map(len, stages))),
        "stages": np.array([stage for chain in stages for stage in chain], np.int32),
        "last_starts": last_starts,
        "lasts": rows[last_order],
    }


def _stages_of_chains(builder: Builder) -> Iterator[list[tuple[int, int, int]]]:
    """The stages of each chain: a fact, a counter and a number."""
    rows = builder.rows("stages").tolist()
    for first, counter in builder.rows("chains").tolist():
        if first >= 0:
            yield [(first, counter, 1)]
            continue
        found: list[tuple[int, int]] = []
        stage = -1 - first
        while stage >= 0:
            stage, fact, number = rows[stage]
            found.append((fact, number))
        yield [(fact, counter - n, number) for n, (fact, number) in enumerate(reversed(found))]


def _value_arrays(builder: Builder, facts: Int32, sparse: SparseFacts) -> dict[str, NDArray[Any]]:
    """What values are compared with, by the test of the nodes that ask, and the function."""
    rows = builder.rows("facts")
    is_group = rows[:, at.KIND] == pr.OF_GROUP
    functions = np.empty(np.count_nonzero(is_group), np.int32)
    functions[facts[is_group]] = -2 - rows[is_group, at.FACT_FORMULA]
    values = builder.rows("values")
    asked = Asked(
        facts[values[:, at.VALUE_GROUP]],
        values[:, at.VALUE_OPERATOR],
        values[:, at.VALUE_LITERAL],
        facts[values[:, at.VALUE_FACT]],
    )
    is_sparse = np.zeros(int(facts.max(initial=0)) + 1, bool)
    is_sparse[facts[sparse.is_sparse]] = True
    count = int(builder.state[at.STRINGS])
    strings = Strings(builder["string_starts"][: count + 1], builder["string_bytes"])
    return value_arrays(functions, asked, strings, _numbers(builder), is_sparse)


# -- tests -----------------------------------------------------------------------------------------


class _SymbolTable:
    """The symbols of names, and the codes of tests.

    Attributes:
        codes: int32[tests]; the symbol that passes, or minus one minus a wildcard's number.
        wildcards: uint8[symbols, wildcards]; which of them a symbol passes.
    """

    def __init__(self, tests: list[Test]) -> None:
        self.elements, self.attributes = Symbols({}, {}, {}), Symbols({}, {}, {})
        # Those of TEXT, MISC, OTHER_ELEMENT and OTHER_ATTRIBUTE come first.
        kinds = (at.TEXT_NODE, at.ANY_CHILD, at.ELEMENT, at.ATTRIBUTE)
        symbols: list[Test] = [(kind, None, None) for kind in kinds]
        for kind, namespace, local in _distinct_tests(tests):
            number = len(symbols)
            symbols.append((kind, namespace, local))
            of_kind = self.attributes if kind == at.ATTRIBUTE else self.elements
            if namespace is not None and local is not None:
                of_kind.names[namespace, local] = number
            elif namespace is not None:
                of_kind.namespaces[namespace] = number
            elif local is not None:
                of_kind.locals[local] = number
        passing = Counter(chain.from_iterable(map(_passed, symbols)))
        wild = [test for test in tests if _is_wild(test) and passing[test] > 1]
        columns = {test: column for column, test in enumerate(wild)}
        numbers = {test: number for number, test in enumerate(symbols)}
        codes = [-1 - columns[test] if test in columns else numbers.get(test, 0) for test in tests]
        self.codes: Int32 = np.array(codes, np.int32)
        self.wildcards = np.zeros((len(symbols), len(wild)), np.uint8)
        for number, symbol in enumerate(symbols):
            passed = [columns[test] for test in _passed(symbol) if test in columns]
            self.wildcards[number, passed] = 1


def _distinct_tests(tests: list[Test]) -> dict[Test, None]:
    """The tests of names, and what passes two of them: ``p:a`` where ``p:*`` and ``*:a`` are."""
    named = [
        test for test in tests if test[0] in (at.ELEMENT, at.ATTRIBUTE) and test[1:] != (None, None)
    ]
    found = dict.fromkeys(named)
    for kind in (at.ELEMENT, at.ATTRIBUTE):
        namespaces = [test[1] for test in named if test[0] == kind and test[2] is None]
        names = [test[2] for test in named if test[0] == kind and test[1] is None]
        found |= dict.fromkeys((kind, *both) for both in product(namespaces, names))
    return found


def _passed(symbol: Test) -> set[Test]:
    """The wildcards that a symbol passes."""
    kind, namespace, local = symbol
    passed: set[Test] = set() if kind == at.ATTRIBUTE else {(at.ANY_CHILD, None, None)}
    return passed | {(kind, None, None), (kind, namespace, None), (kind, None, local)}


def index_watched(
    starts: NDArray[Any], watched: Int32, is_indexed: NDArray[np.bool_]
) -> tuple[Int64, dict[str, NDArray[Any]]]:
    """Where the watches of each node begin, and these, for the nodes that have their rules indexed.

    Args:
        starts: by node, where its rules begin; and behind them, where the last ones end.
        watched: the facts that these watch, ascending for each node, or -1.
    """
    of_rule = np.repeat(np.arange(len(is_indexed), dtype=np.int32), np.diff(starts))
    picked = np.flatnonzero(is_indexed[of_rule] & (watched >= 0))
    nodes, facts = of_rule[picked], watched[picked]
    begins = _is_first(nodes, facts)
    nodes, facts, runs = nodes[begins], facts[begins], picked[begins]
    # Behind the runs of a node stands where its rules end.
    wide = np.flatnonzero(_is_first(nodes))
    places = facts >> 6
    is_word = _is_first(nodes, places)
    ranks = np.flatnonzero(is_word) + np.cumsum(_is_first(nodes))[is_word] - 1
    behind = np.append(wide[1:], len(nodes)) if len(wide) else wide
    runs = np.insert(runs, behind, starts[1:][nodes[wide]])
    bits = np.uint64(1) << (facts & 63).astype(np.uint64)
    words = np.bitwise_or.reduceat(bits, np.flatnonzero(is_word)) if len(bits) else bits
    numbers = np.arange(len(starts), dtype=np.int32)
    return np.searchsorted(nodes[is_word], numbers), {
        "watch_words": words,
        "watch_places": places[is_word],
        "watch_ranks": ranks.astype(np.int32),
        "runs": runs.astype(np.int32),
    }


def _is_first(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows differ from the one before."""
    result = np.zeros(len(columns[0]), bool)
    result[:1] = True
    for column in columns:
        result[1:] |= column[1:] != column[:-1]
    return result


def _is_wild(test: Test) -> bool:
    return test[0] == at.ANY_CHILD or (test[0] in (at.ELEMENT, at.ATTRIBUTE) and None in test)


def _breadth_first(parents: Int32, below: NDArray[np.bool_], codes: Int32) -> Int32:
    """The nodes, in the order in which they are numbered."""
    level = np.zeros(1, np.int64)
    levels = [level]
    by_parent = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[by_parent], np.arange(len(parents) + 1))
    while True:
        counts = starts[level + 1] - starts[level]
        total = int(counts.sum())
        if total == 0:
            return np.concatenate(levels).astype(np.int32)
        offsets = np.repeat(starts[level] - np.cumsum(counts) + counts, counts) + np.arange(total)
        found = by_parent[offsets]
        place = np.repeat(np.arange(len(level)), counts)
        level = found[np.lexsort((codes[found], below[found], place))]
        levels.append(level)


def _children(parents: Int32, below: NDArray[np.bool_]) -> tuple[Int32, Int32]:
    """Where the children of each node begin, and among them the descendant steps.

    Args:
        parents: of all nodes but the first, ascending.
        below: of all nodes.
    """
    numbers = np.arange(len(below) + 1)
    children = 1 + np.searchsorted(parents, numbers)
    near = np.bincount(parents[~below[1:]], minlength=len(below))[: len(below)]
    return children.astype(np.int32), (children[:-1] + near).astype(np.int32)


def _grouped(keys: Int32, groups: int) -> tuple[Int64, Int32]:
    """Where each group of ascending keys begins, and the order that groups them."""
    order = np.argsort(keys, kind="stable").astype(np.int32)
    starts = np.searchsorted(keys[order], np.arange(groups + 1)).astype(np.int64)
    return starts, order
