"""Whether the arrays of a program can be trusted: they may come from any file.

Kernels check no index. What they rely on is checked here, once, when a file is loaded: first types
and lengths, then all numbers. An index is inside of what it leads into. Lists do not overlap, or
they would have more members than there is room for. What is followed from one to the next ends.
Whether a program says what its subscriptions say is not checked. Of caches, see ``cache``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int64
from tamis.core.kernel import ahocorasick
from tamis.core.kernel.check import (
    Domains,
    Invariant,
    Parts,
    Starts,
    Within,
    are_starts,
    are_within,
    ascend_within,
    first_fault,
    is_sorted,
)
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.compile.freeze import index_watched
from tamis.matching.engines.automaton.kernels.build import DEPTH_MAX
from tamis.matching.engines.automaton.kernels.values import TAG
from tamis.matching.engines.automaton.layout import dtypes
from tamis.matching.engines.automaton.program import ROW_COLUMNS, ProgramArrays

_LETTERS = 257
"""One for each byte, and how many they are."""
NUMBERS_MAX = 1 << 31
"""Numbers of rows, and of queries, have 32 bits."""
_PUSHED = np.array([1, 0, -1, -1, 1, 1])
"""What a fact puts on the stack of a formula, and what NOT, AND, OR, COUNT and CONSTANT_TRUE do."""

Arrays = Mapping[str, NDArray[Any]]


def fault_of_program(arrays: Arrays, queries: int, symbols: int) -> str | None:
    """What cannot be so in the arrays of a program, by name; or None, and kernels can have them."""
    if not _are_typed(arrays):
        return "the types of its arrays"
    # Invariants are of columns, which are read many times: then no other column is read with them.
    program = ProgramArrays(**{name: np.asfortranarray(array) for name, array in arrays.items()})
    if not 0 <= queries < NUMBERS_MAX or not all(_program_lengths(program, symbols)):
        return "the lengths of its arrays"
    return first_fault(PARTS, program, _domains(program, queries))


def _domains(program: ProgramArrays, queries: int) -> dict[str, list[tuple[int, int]]]:
    """What numbers of a program may be. Of groups and counters, fewer facts exist than bits."""
    ends = [64 * int(end) for end in program.fact_ends]
    groups, last = len(program.groups) - 1, ends[pr.OF_DESCENDANT] + len(program.fact_counters)
    return {
        "queries": [(0, queries)],
        "nodes": [(0, len(program.tests))],
        "tests": [(-program.wildcards.shape[1], len(program.wildcards))],
        "formulas": [(0, len(program.formula_kinds))],
        "counters": [(0, len(program.counter_limits))],
        "groups": [(0, groups)],
        "chains": [(0, len(program.stage_starts) - 1)],
        "bits": [(0, 2)],
        "functions": [(0, (pr.NORMALIZED | pr.LENGTH) + 1)],
        "operators": [(1, pr.LESS | pr.EQUAL | pr.MORE)],
        "rule actions": [(pr.DERIVES, pr.COUNTS + 1)],
        "sparse actions": [(pr.DERIVES, pr.ACCEPTS + 1), (pr.PASSES, pr.PASSES + 1)],
        "facts": [(0, groups), (ends[pr.OF_GROUP], last)],
        "unconditional facts": [
            (0, groups),
            (ends[pr.OF_GROUP], ends[pr.OF_ITSELF]),
            (ends[pr.OF_VALUE], last),
        ],
        "facts of values": [(ends[pr.OF_ITSELF], ends[pr.OF_VALUE])],
        "stages": [(ends[pr.OF_VALUE], ends[pr.OF_STAGE])],
        "facts of children": [(ends[pr.OF_STAGE], ends[pr.OF_CHILD])],
        "facts of descendants": [(ends[pr.OF_CHILD], ends[pr.OF_DESCENDANT])],
        "derived facts": [(ends[pr.OF_VALUE], ends[pr.OF_DESCENDANT])],
    }


# -- programs --------------------------------------------------------------------------------------


def _counters(program: ProgramArrays, _: Domains) -> bool:
    """Kinds of facts follow each other; those OF_COUNTER say the values of counters."""
    limits, of = program.counter_limits.astype(np.int64), program.fact_counters
    if not is_sorted(program.fact_ends) or (limits < 1).any() or limits.sum() != len(of):
        return False
    bases = 64 * program.fact_ends[pr.OF_DESCENDANT] - 1 + np.cumsum(limits) - limits
    numbers = np.repeat(np.arange(len(limits)), limits)
    return np.array_equal(program.counter_bases, bases) and np.array_equal(of, numbers)


def _children(program: ProgramArrays, _: Domains) -> bool:
    """Children come after their parents; their lists follow each other to the end."""
    children, below = program.nodes[:, pr.CHILDREN], program.nodes[:-1, pr.DESCENDANTS]
    return bool(
        children[-1] == len(program.tests)
        and (children[:-1] > np.arange(len(below))).all()
        and (children[:-1] <= below).all()
        and (below <= children[1:]).all()
    )


def _tests_ascend(program: ProgramArrays, _: Domains) -> bool:
    nodes = program.nodes
    return ascend_within(program.tests, nodes[:, pr.CHILDREN], nodes[:-1, pr.DESCENDANTS])


def _formulas(program: ProgramArrays, domains: Domains) -> bool:
    """Formulas are of facts; programs leave one value, and need no more than one word."""
    sizes, is_general = np.diff(program.formula_starts), program.formula_kinds == pr.GENERAL
    in_general = np.repeat(is_general, sizes)
    code, sizes = program.formula_code[in_general], sizes[is_general]
    numbers = np.arange(len(sizes))
    counts, ends = np.flatnonzero(code == pr.COUNT), np.cumsum(sizes)
    behind = np.repeat(ends, sizes)[counts] - counts
    if not sizes.all() or (behind < 4).any():
        return False
    arguments = counts[:, None] + (1, 2, 3)
    counters, lowest, highest = code[arguments].T
    pushed = _PUSHED[-np.clip(code, pr.CONSTANT_TRUE, 0)]
    pushed[arguments] = 0
    depths = np.cumsum(pushed)
    is_fact = code >= 0
    is_fact[arguments] = False
    return (
        are_within(program.formula_kinds, [(pr.CONJUNCTION, pr.GENERAL + 1)])
        and are_within(program.formula_code[~in_general], domains["facts"])
        and are_within(code[is_fact], domains["facts"])
        and bool((code >= pr.CONSTANT_TRUE).all())
        and are_within(counters, domains["counters"])
        and bool(((lowest >= 0) & (lowest <= highest)).all())
        and np.array_equal(depths[ends - 1], numbers + 1)
        and are_within(depths - np.repeat(numbers, sizes), [(1, DEPTH_MAX + 1)])
    )


def _watched_ascend(program: ProgramArrays, _: Domains) -> bool:
    """What rules watch ascends, at each node; some may watch the same."""
    watched = program.rules[:, pr.WATCHED]
    begins = np.zeros(len(watched) + 1, np.bool_)
    begins[program.nodes[:, pr.RULES]] = True
    return bool(np.all((watched[1:] >= watched[:-1]) | begins[1:-1]))


def _watches(program: ProgramArrays, _: Domains) -> bool:
    """The index of rules is the one that is made for the same nodes."""
    watches = program.nodes[:, pr.WATCHES]
    starts, watched = program.nodes[:, pr.RULES], program.rules[:, pr.WATCHED]
    begins, arrays = index_watched(starts, watched, np.diff(watches) > 0)
    return np.array_equal(begins, watches) and all(
        np.array_equal(array, getattr(program, name)) for name, array in arrays.items()
    )


def _cells(program: ProgramArrays, domains: Domains) -> bool:
    """Cells ascend through all queries that are sliced, by row and column of each grid.

    So no two slices overlap that are taken at one node, nor at several, and there is room for all.
    """
    grids, cells = program.grids.astype(np.int64), program.grid_cells
    columns, first = grids[:-1, pr.COLUMNS], grids[:-1, pr.FIRST_COLUMN]
    ((low, high),) = domains["facts of children"]
    sizes = np.diff(grids[:, pr.FIRST_ROW]) * (columns + 1)
    return bool(
        (columns >= 0).all()
        and (first >= low).all()
        and (first + columns <= high).all()
        and grids[0, pr.CELLS] == 0
        and grids[-1, pr.CELLS] == len(cells)
        and (np.diff(grids[:, pr.CELLS]) == sizes).all()
        and (are_starts(cells, len(program.sliced)) if len(cells) else not len(program.sliced))
    )


def _stages(program: ProgramArrays, _: Domains) -> bool:
    """Each chain has a stage; stages count no further than their counters."""
    counters, values = program.stages[:, 1], program.stages[:, 2]
    return bool(
        (program.stage_starts[1:] > program.stage_starts[:-1]).all()
        and (values > 0).all()
        and (values <= program.counter_limits[counters]).all()
    )


def _groups(program: ProgramArrays, _: Domains) -> bool:
    """Thresholds and lengths of prefixes ascend in each group; classes are numbered by them."""
    groups, lengths, thresholds = program.groups, program.prefix_lengths, program.thresholds
    counts = np.diff(groups[:, pr.THRESHOLDS])
    of_lengths = np.repeat(np.arange(len(counts)), np.diff(groups[:, pr.LENGTHS]))
    of_compared = np.repeat(np.arange(len(counts)), np.diff(groups[:, pr.COMPARISONS]))
    compared = program.comparisons[:, pr.THRESHOLD]
    classes = groups[:, pr.CLASSES].astype(np.int64)
    return bool(
        classes[0] == 0
        and (np.diff(classes) == 2 * counts.astype(np.int64) + 2).all()
        and (lengths >= 0).all()
        and (lengths <= groups[of_lengths, pr.LONGEST]).all()
        and ascend_within(lengths, groups[:, pr.LENGTHS])
        and not np.isnan(thresholds).any()
        and ascend_within(thresholds, groups[:, pr.THRESHOLDS])
        and (compared >= 0).all()
        and (compared < counts[of_compared]).all()
    )


def _constants(program: ProgramArrays, domains: Domains) -> bool:
    """Constants are in groups, and not longer than these know; their hash table is of all."""
    groups = program.constants[:-1, pr.ASKED_OF] >> 1
    lengths = np.diff(program.constants[:, pr.FIRST_BYTE])
    numbers = program.constant_slots & ~TAG
    return (
        are_within(groups, domains["groups"])
        and bool((lengths <= program.groups[groups, pr.LONGEST]).all())
        and bool(((numbers != 0) == (program.constant_slots != 0)).all())
        and int(numbers.max()) <= len(groups)
        and np.count_nonzero(numbers) == len(groups) < len(numbers)
    )


def _searched(program: ProgramArrays, domains: Domains) -> bool:
    """Roots are numbered from 1; what leads from node to node stays among them, and ends."""
    facts, rows = program.searched_facts, program.searched_rows
    nodes, near = len(facts), len(rows) // int(program.searched_letters[-1])
    roots = program.groups[:-1, pr.ROOT]
    roots = roots[roots != 0]
    count, shallow = len(roots), int(program.searched_shallow[0])
    known, keys = facts[facts != -1], program.searched_edges[::2]
    return (
        count < near
        and np.array_equal(roots, np.arange(1, count + 1))
        and 0 <= shallow <= near
        and (shallow == 0 or len(program.searched_pairs) == count * ahocorasick.PAIR_WORDS)
        and are_within(known, domains["facts of values"])
        and _lead_to_constants(program.searched_outputs, facts)
        and _lead_to_constants(program.searched_shorter, facts)
        and are_within(program.searched_letters[:-1], [(0, program.searched_letters[-1])])
        and are_within(rows, [(0, nodes)])
        and are_within(program.searched_edges[1::2], [(0, nodes)])
        and bool((keys == 0).any())
        and _links_end(program.searched_links, near)
    )


def _links_end(links: Int64, near: int) -> bool:
    """Whether the last node has no next one; and few failures lead from each to a near node."""
    far, nodes = links[near:], len(links)
    failures = np.arange(nodes)
    failures[near:] = far >> 16
    if nodes > near and far[-1] & 255 != ahocorasick.NO_COLUMN:
        return False
    if not are_within(failures, [(0, nodes)]):
        return False
    for _ in range((pr.SEARCHED_MAX - 1).bit_length()):  # each round goes twice as far
        if (failures < near).all():
            break
        failures = failures[failures]
    return bool((failures < near).all())


def _lead_to_constants(links: Any, facts: Any) -> bool:
    """Whether each is 0, or a node of a constant."""
    own = links[links != 0]
    return are_within(own, [(1, len(facts))]) and bool((facts[own] >= 0).all())


def _rules(array: str) -> Iterator[Within]:
    """What rules need is there, and what they derive or accept."""
    watches = (pr.DERIVES, "derived facts"), (pr.ACCEPTS, "queries"), (pr.PASSES, "derived facts")
    for column in (pr.WATCHED, pr.ALSO, pr.THIRD):
        yield Within(array, "facts", column, or_none=True)
    yield Within(array, "formulas", pr.FORMULA, or_none=True)
    for action, domain in watches:
        yield Within(array, domain, pr.TARGET, where=(pr.ACTION, action))


def _watch_three(array: str) -> Invariant:
    """Whether rules that watch a fact have the two others too."""

    def watch_three(arrays: Any, _: Domains) -> bool:
        rules = getattr(arrays, array)
        others = np.minimum(rules[:, pr.ALSO], rules[:, pr.THIRD])
        return bool(((rules[:, pr.WATCHED] < 0) | (others >= 0)).all())

    return watch_three


# What must be so in each part of a program.
PARTS: Parts = {
    "the facts": (_counters,),
    "the nodes": (
        _children,
        Starts("nodes", "accepts", pr.ACCEPTED),
        Starts("nodes", "unconditional", pr.UNCONDITIONAL),
        Starts("nodes", "rules", pr.RULES),
        Starts("nodes", "needs", pr.NEEDS),
        Starts("nodes", "watch_words", pr.WATCHES),
        lambda program, _: are_starts(program.nodes[:, pr.GRIDS], len(program.grids) - 1),
    ),
    "the tests": (Within("wildcards", "bits"), Within("tests", "tests"), _tests_ascend),
    "the lists of nodes": (
        Within("accepts", "queries"),
        Within("unconditional", "unconditional facts"),
        Within("needs", "facts of descendants"),
    ),
    "the formulas": (Starts("formula_starts", "formula_code"), _formulas),
    "the rules": (
        *_rules("rules"),
        _watch_three("rules"),
        Within("rules", "rule actions", pr.ACTION),
        Within("rules", "counters", pr.TARGET, where=(pr.ACTION, pr.COUNTS)),
        Within("rules", "counters", pr.SOURCE, or_none=True, where=(pr.ACTION, pr.COUNTS)),
        _watched_ascend,
    ),
    "the index of rules": (_watches,),
    "the grids": (
        Starts("grids", "grid_rows", pr.FIRST_ROW),
        Within("grid_rows", "facts of children"),
        Within("sliced", "queries"),
        _cells,
    ),
    "the chains": (
        Starts("chain_starts", "chain_numbers"),
        Starts("stage_starts", "stages"),
        Starts("last_starts", "lasts"),
        Within("chain_numbers", "chains"),
        Within("stages", "stages", 0),
        Within("stages", "counters", 1),
        _stages,
        Within("lasts", "chains", 0),
        Within("lasts", "facts of children", 1),
    ),
    "the sparse rules": (
        Starts("sparse_starts", "sparse_rules"),
        *_rules("sparse_rules"),
        _watch_three("sparse_rules"),
        Within("sparse_rules", "sparse actions", pr.ACTION),
        Within("sparse_rules", "nodes", pr.SOURCE),
    ),
    "the groups": (
        Starts("groups", "prefix_lengths", pr.LENGTHS),
        Starts("groups", "thresholds", pr.THRESHOLDS),
        Starts("groups", "comparisons", pr.COMPARISONS),
        Within("groups", "functions", pr.FUNCTION, has_end=True),
        _groups,
        Within("comparisons", "operators", pr.OPERATOR),
        Within("comparisons", "facts of values", pr.FACT),
    ),
    "the constants": (
        Starts("constants", "constant_bytes", pr.FIRST_BYTE),
        _constants,
        Within("constants", "facts of values", pr.MEANS, has_end=True),
    ),
    "the searched strings": (_searched,),
}


# -- types and lengths -----------------------------------------------------------------------------


def _are_typed(arrays: Arrays) -> bool:
    """Whether the arrays are those of a program, with their types and rows."""
    expected = dtypes(ProgramArrays)
    return arrays.keys() == expected.keys() and all(
        array.dtype == expected[name]
        and (
            array.ndim == 2 and ROW_COLUMNS[name] in (-1, array.shape[1])
            if name in ROW_COLUMNS
            else array.ndim == 1
        )
        for name, array in arrays.items()
    )


def _program_lengths(program: ProgramArrays, symbols: int) -> Iterator[bool]:
    """Whether each array is as long as others say."""
    ends = program.fact_ends
    yield 0 < len(program.tests) == len(program.nodes) - 1
    yield symbols == len(program.wildcards)
    yield len(program.rules) * pr.RULE_COLUMNS < NUMBERS_MAX
    yield len(program.watch_words) == len(program.watch_places) == len(program.watch_ranks)
    yield len(program.formula_starts) == len(program.formula_kinds) + 1
    yield len(program.counter_bases) == len(program.counter_limits)
    yield len(program.grids) > 0
    yield len(program.groups) > 0
    yield len(program.constants) > 0
    yield is_table(len(program.constant_slots)) and is_table(len(program.prefix_bits))
    yield len(program.sparse_nodes) > len(program.tests) // 8
    yield len(program.sparse_rules) * pr.RULE_COLUMNS < NUMBERS_MAX
    yield from _searched_lengths(program)
    yield len(program.stage_starts) > 0
    # Ends first: what follows from them could be any number.
    yield len(ends) == pr.OF_COUNTER + 1 and ends.min() >= 0 and ends.max() <= _words_max(program)
    yield len(program.sparse) in (0, ends[-1])
    yield len(program.sparse_starts) == 64 * len(program.sparse) + 1
    stages = 64 * int(ends[pr.OF_STAGE] - ends[pr.OF_VALUE]) + 1
    yield len(program.chain_starts) == len(program.last_starts) == stages
    yield ends[pr.OF_GROUP] == -(-(len(program.groups) - 1) // 64)
    counted = int(ends[pr.OF_COUNTER] - ends[pr.OF_DESCENDANT])
    yield counted == -(-len(program.fact_counters) // 64)


def _searched_lengths(program: ProgramArrays) -> Iterator[bool]:
    """Likewise, of the arrays about strings that values contain."""
    nodes = len(program.searched_facts)
    yield is_table(len(program.searched_edges)) and len(program.searched_edges) > 1
    yield nodes == len(program.searched_links)
    yield nodes == len(program.searched_outputs) == len(program.searched_shorter)
    yield len(program.searched_letters) == _LETTERS
    yield len(program.searched_shallow) == 1
    width = int(program.searched_letters[-1])
    yield width > 0 and len(program.searched_rows) % width == 0
    yield 0 < len(program.searched_rows) // width <= nodes


def _words_max(program: ProgramArrays) -> int:
    """More words than there can be facts, each of which is in some array: so room is bounded."""
    columns = (
        program.unconditional, program.rules, program.lasts, program.groups, program.constants,
        program.searched_facts, program.comparisons, program.fact_counters,
        program.sparse_rules,
    )  # fmt: skip
    facts = sum(map(len, columns))
    return min(facts // 64 + pr.OF_COUNTER + 1, NUMBERS_MAX // 64 - 1)


def is_table(size: int) -> bool:
    """Whether a hash table may have this size: its slots are found with a mask."""
    return size > 0 and size & (size - 1) == 0
