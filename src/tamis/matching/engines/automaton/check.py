"""Whether the arrays of a program, or of a cache, can be trusted: they may come from any file.

Here their types and lengths are compared; the kernels that look at all of their numbers, in
``kernels/checks.py`` and ``kernels/cache_checks.py``, rely on that, and all other kernels on these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int64, dtype_of
from tamis.core.kernel.record import register
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import checks
from tamis.matching.engines.automaton.layout import CacheArrays, FactSets, Lists, Pairs
from tamis.matching.engines.automaton.program import ProgramArrays

PARTS = (
    "the facts", "the nodes", "the tests", "the lists of nodes", "the formulas", "the rules",
    "the index of rules", "the grids", "the chains", "the sparse rules", "the groups",
    "the constants", "the grams", "the searched strings",
)  # fmt: skip
"""Of a program: what ``checks.program_fault`` may find faulty."""
CACHE_PARTS = (
    "the sets of facts", "the answers", "the pending nodes", "the states",
    "what is known of states", "the table", "the sets of constants", "the sets of classes",
    "the answers of single queries", "what is reached", "the closes", "the merges",
)  # fmt: skip
"""Likewise of a cache."""
COLUMNS = {
    "nodes": pr.NODE_COLUMNS,
    "wildcards": -1,
    "rules": pr.RULE_COLUMNS,
    "sparse_rules": pr.RULE_COLUMNS,
    "grids": pr.GRID_COLUMNS,
    "constants": pr.CONSTANT_ROW,
    "grams": pr.GRAM_ROW,
    "searched_rows": -1,
    "groups": pr.GROUP_COLUMNS,
    "comparisons": pr.COMPARISON_COLUMNS,
    "stages": 3,
    "lasts": 2,
}
"""How many numbers a row has of those arrays of a program that have rows; -1: any number."""
PARTS_OF_CACHES = (Lists, FactSets, Pairs)
"""Tuples of arrays that caches are made of, beside arrays."""
_LETTERS = 257
"""One for each byte, and how many they are."""
_NUMBERS_MAX = 1 << 31
"""Numbers of rows, and of queries, have 32 bits."""

Arrays = Mapping[str, NDArray[Any]]


@cache
def dtypes(arrays: Any) -> dict[str, np.dtype[Any]]:
    """The types of the arrays of a tuple.

    >>> dtypes(Pairs)
    {'keys': dtype('uint64'), 'values': dtype('int64'), 'counts': dtype('int64')}
    """
    hints = get_type_hints(arrays)
    return {
        name: dtype_of(hints[name]) for name in arrays._fields if hints[name] not in PARTS_OF_CACHES
    }


def fault_of_program(arrays: Arrays, queries: int, symbols: int) -> str | None:
    """What cannot be so in the arrays of a program, by name; or None, and kernels can have them.

    Args:
        symbols: how many there are.
    """
    if not _are_typed(arrays, ProgramArrays):
        return "the types of its arrays"
    program = ProgramArrays(**arrays)
    if not 0 <= queries < _NUMBERS_MAX or not all(_program_lengths(program, symbols)):
        return "the lengths of its arrays"
    state = _state_of(program, queries)
    part = checks.program_fault(state, np.zeros(len(program.searched_facts), np.int32))
    return None if part < 0 else PARTS[part]


def fault_of_cache(cache: CacheArrays, program: ProgramArrays, queries: int) -> str | None:
    """What cannot be so in a cache of a program that is as it must be; or None."""
    if not all(_cache_lengths(cache, program, queries)):
        return "the lengths of its arrays"
    state = _state_of(program, queries)
    register(state, at.CACHE.states.starts, cache)
    stamps = np.zeros(max(len(program.tests), queries), np.int32)
    children, siblings = (np.zeros(len(cache.pendings.hashes), np.int32) for _ in range(2))
    part = checks.cache_fault(state, stamps, children, siblings)
    return None if part < 0 else CACHE_PARTS[part]


def _state_of(program: ProgramArrays, queries: int) -> Int64:
    """A state that has just the program."""
    state = np.zeros(at.STATE_SIZE, np.int64)
    state[at.WIDTH] = len(program.wildcards)
    state[at.QUERIES] = queries
    register(state, at.PROGRAM.nodes, program)
    return state


def _are_typed(arrays: Arrays, kind: Any) -> bool:
    """Whether the arrays are those of a tuple, with its types and rows."""
    expected = dtypes(kind)
    return arrays.keys() == expected.keys() and all(
        array.dtype == expected[name] and _has_rows(array, COLUMNS.get(name))
        for name, array in arrays.items()
    )


def _has_rows(array: NDArray[Any], columns: int | None) -> bool:
    if columns is None:
        return array.ndim == 1
    return array.ndim == 2 and columns in (-1, array.shape[1])


def _program_lengths(program: ProgramArrays, symbols: int) -> Iterator[bool]:
    """Whether each array is as long as others say."""
    ends = program.fact_ends
    yield 0 < len(program.tests) == len(program.nodes) - 1
    yield symbols == len(program.wildcards)
    yield len(program.rules) * pr.RULE_COLUMNS < _NUMBERS_MAX
    yield len(program.watch_words) == len(program.watch_places) == len(program.watch_ranks)
    yield len(program.formula_starts) == len(program.formula_kinds) + 1
    yield len(program.counter_bases) == len(program.counter_limits)
    yield len(program.grids) > 0
    yield len(program.groups) > 0
    yield len(program.constants) > 0
    yield _is_table(len(program.constant_slots)) and _is_table(len(program.prefix_bits))
    yield len(program.sparse_nodes) > len(program.tests) // 8
    yield len(program.sparse_rules) * pr.RULE_COLUMNS < _NUMBERS_MAX
    yield from _searched_lengths(program)
    yield len(program.stage_starts) > 0
    # Ends first: what follows from them could be any number.
    yield (
        len(ends) == pr.OF_COUNTER + 1 and ends.min() >= 0 and ends.max() <= _told_at_most(program)
    )
    yield len(program.sparse) in (0, ends[-1])
    yield len(program.sparse_starts) == 64 * len(program.sparse) + 1
    stages = 64 * int(ends[pr.OF_STAGE] - ends[pr.OF_VALUE]) + 1
    yield len(program.chain_starts) == len(program.last_starts) == stages
    yield ends[pr.OF_GROUP] == -(-(len(program.groups) - 1) // 64)
    counted = int(ends[pr.OF_COUNTER] - ends[pr.OF_DESCENDANT])
    yield counted == -(-len(program.fact_counters) // 64)


def _searched_lengths(program: ProgramArrays) -> Iterator[bool]:
    """Likewise, of those that tell which strings values contain."""
    yield _is_table(len(program.gram_bits)) and _is_table(len(program.gram_slots))
    yield len(program.grams) > 0
    nodes, keys = len(program.searched_facts), len(program.searched_keys)
    yield _is_table(keys) and keys == len(program.searched_values)
    yield nodes == len(program.searched_failures)
    yield nodes == len(program.searched_outputs) == len(program.searched_shorter)
    yield len(program.searched_letters) == _LETTERS
    near, width = program.searched_rows.shape
    yield 0 < width == program.searched_letters[-1]
    yield 0 < near <= nodes


def _told_at_most(program: ProgramArrays) -> int:
    """More words than there can be facts, each of which is in some array: so room is bounded."""
    told = (
        program.sure, program.rules, program.lasts, program.groups, program.constants,
        program.grams, program.searched_facts, program.comparisons, program.fact_counters,
        program.sparse_rules,
    )  # fmt: skip
    facts = sum(map(len, told))
    return min(facts // 64 + pr.OF_COUNTER + 1, _NUMBERS_MAX // 64 - 1)


def _cache_lengths(cache: CacheArrays, program: ProgramArrays, queries: int) -> Iterator[bool]:
    """Whether each array is as long as others say."""
    for lists in (cache.states, cache.pendings, cache.facts, cache.answers):
        size = len(lists.hashes)
        yield 0 < size < len(lists.slots) < _NUMBERS_MAX and _is_table(len(lists.slots))
        yield len(lists.starts) == size + 1 and len(lists.counts) == 2
    yield len(cache.facts.places) == len(cache.facts.words)
    states, pendings = len(cache.states.hashes), len(cache.pendings.hashes)
    yield len(cache.state_info) == states * at.STATE_COLUMNS
    yield len(cache.table) == states * len(program.wildcards)
    yield len(cache.pending_info) == pendings * at.PENDING_COLUMNS
    yield len(cache.constant_sets) == len(program.constants) - 1
    yield len(cache.query_answers) == (queries if len(program.sparse) else 0)
    yield len(cache.class_sets) == program.groups[-1, pr.CLASSES]
    for pairs in (cache.reached, cache.closes, cache.merges):
        yield _is_table(len(pairs.keys)) and len(pairs.keys) == len(pairs.values)
        yield len(pairs.counts) == 1


def _is_table(size: int) -> bool:
    """Whether a hash table may have this size: its slots are found with a mask."""
    return size > 0 and size & (size - 1) == 0
