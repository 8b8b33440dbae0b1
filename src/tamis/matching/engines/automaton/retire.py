"""Retirement: what of a program still matters for a document of which much is known to be true.

A query that is true of a document need not be looked at again. In a long document, most of those
that will ever be true are so after a small part of it. What only they ask for is left out then:
nodes of the trie, facts, and with these the values that nobody else reads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, Words, flat_indices, starts_of
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.program import ProgramArrays

Flags = NDArray[np.bool_]


class Open(NamedTuple):
    """What may still matter; see ``layout.Scratch``."""

    queries: Bytes
    facts: Words
    nodes: Bytes
    sliced: Int32


def what_is_open(program: ProgramArrays, queries: Flags) -> Open:
    """What a document may still need of a program, by which of its queries are not true yet.

    >>> from tamis.language.xpath import parse
    >>> from tamis.matching.engines.automaton.compile.queries import compile_queries
    >>> arrays = compile_queries([parse("/a[b]/c"), parse("/a/d")]).arrays
    >>> found = what_is_open(arrays, np.array([False, True]))
    >>> int(np.bitwise_count(found.nodes).sum()), len(arrays.tests)  # the document, a, d
    (3, 5)
    """
    needed = _Needed(program, queries)
    needed.ask_for_grids()
    while needed.ask_for_rules() | needed.ask_for_chains():
        pass
    needed.ask_for_values()
    facts, nodes = _bits(needed.facts).view(np.uint64), _bits(needed.open_nodes())
    return Open(_bits(queries), facts, nodes, starts_of(queries[program.sliced]).astype(np.int32))


def _bits(flags: Flags) -> Bytes:
    return np.packbits(flags, bitorder="little")


def _owners(starts: NDArray[np.integer]) -> Int64:
    """Of each item of some lists: the list that it is in."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


class _Needed:
    """Facts and counters that open queries need, found by going from these to what they rest on."""

    def __init__(self, program: ProgramArrays, queries: Flags) -> None:
        self._program = program
        self._queries = queries
        self.facts = np.zeros(64 * int(program.fact_ends[pr.OF_COUNTER]), np.bool_)
        self._counters = np.zeros(len(program.counter_limits), np.bool_)
        rules, sparse = (
            array.reshape(-1, pr.RULE_COLUMNS) for array in (program.rules, program.sparse_rules)
        )
        self._rules: Int32 = np.concatenate([rules, sparse])
        self._sparse_from = len(rules)
        self._is_open = np.zeros(len(self._rules), np.bool_)
        self._found_by = _owners(program.sparse_starts)  # the fact of each sparse rule
        code = program.formula_code
        counts = np.flatnonzero(code == pr.COUNT)
        self._is_fact = code >= 0
        self._is_counter = np.zeros(len(code), np.bool_)
        for place in (1, 2, 3):
            self._is_fact[counts + place] = False
        self._is_counter[counts + 1] = True

    def ask_for_rules(self) -> bool:
        """Ask for what rules rest on that matter: whether some were not known to."""
        targets = self._rules[:, pr.TARGET]
        of_kinds = {
            pr.ACCEPTS: self._queries,
            pr.DERIVES: self.facts,
            pr.PASSES: self.facts,
            pr.COUNTS: self._counters,
        }
        is_open = self._is_open.copy()
        for action, flags in of_kinds.items():
            which = np.flatnonzero(~is_open & (self._rules[:, pr.ACTION] == action))
            is_open[which] = flags[targets[which]]
        new = np.flatnonzero(is_open & ~self._is_open)
        self._is_open = is_open
        if not len(new):
            return False
        rows = self._rules[new]
        watched = rows[:, [pr.WATCHED, pr.ALSO, pr.THIRD]]
        self.facts[watched[watched >= 0]] = True
        self.facts[self._found_by[new[new >= self._sparse_from] - self._sparse_from]] = True
        sources = rows[rows[:, pr.ACTION] == pr.COUNTS, pr.SOURCE]
        self._counters[sources[sources >= 0]] = True
        formulas = rows[rows[:, pr.FORMULA] >= 0, pr.FORMULA]
        starts = self._program.formula_starts
        places = flat_indices(starts[formulas], starts[formulas + 1] - starts[formulas])
        code = self._program.formula_code
        self.facts[code[places[self._is_fact[places]]]] = True
        self._counters[code[places[self._is_counter[places]]]] = True
        return True

    def ask_for_chains(self) -> bool:
        """Ask for the stages of chains that matter, and their counters: whether some were new."""
        before = np.count_nonzero(self.facts) + np.count_nonzero(self._counters)
        program = self._program
        lasts, stages = program.lasts.reshape(-1, 2), program.stages.reshape(-1, 3)
        is_asked = self.facts[lasts[:, 1]]
        self.facts[64 * program.fact_ends[pr.OF_VALUE] + _owners(program.last_starts)[is_asked]] = 1
        chains = np.zeros(len(program.stage_starts) - 1, np.bool_)
        chains[lasts[is_asked, 0]] = True
        asked = stages[chains[_owners(program.stage_starts)]]
        self.facts[asked[:, 0]] = True
        self._counters[asked[:, 1]] = True
        first = 64 * program.fact_ends[pr.OF_DESCENDANT]
        self.facts[first + np.flatnonzero(self._counters[program.fact_counters])] = True
        return bool(np.count_nonzero(self.facts) + np.count_nonzero(self._counters) > before)

    def ask_for_grids(self) -> None:
        """Ask for the facts of the rows and columns of grids that have open queries."""
        program = self._program
        cells = np.searchsorted(program.grid_cells, np.arange(len(program.sliced)), "right") - 1
        cells = cells[self._queries[program.sliced]]
        grids = program.grids.reshape(-1, pr.GRID_COLUMNS)
        self._open_grids = np.searchsorted(grids[:, pr.CELLS], cells, "right") - 1
        of = grids[self._open_grids]
        rows, columns = np.divmod(cells - of[:, pr.CELLS], of[:, pr.COLUMNS] + 1)
        self.facts[program.grid_rows[of[:, pr.FIRST_ROW] + rows]] = True
        self.facts[of[:, pr.FIRST_COLUMN] + columns] = True

    def ask_for_values(self) -> None:
        """Have the values read of which something is asked; a fact of a group has its number."""
        program = self._program
        groups = program.groups.reshape(-1, pr.GROUP_COLUMNS)
        comparisons = program.comparisons.reshape(-1, pr.COMPARISON_COLUMNS)
        constants = program.constants.reshape(-1, pr.CONSTANT_ROW)[:-1]
        found = np.flatnonzero(program.searched_facts >= 0)
        searched = np.flatnonzero(groups[:-1, pr.ROOT])
        compared = _owners(groups[:, pr.COMPARISONS])
        for owners, facts in (
            (compared, comparisons[:, pr.FACT]),
            (constants[:, pr.ASKED_OF] >> 1, constants[:, pr.MEANS]),
            (searched[self._roots_of(found, len(searched)) - 1], program.searched_facts[found]),
        ):
            self.facts[owners[self.facts[facts]]] = True

    def _roots_of(self, nodes: NDArray[np.int64], roots: int) -> NDArray[np.int64]:
        """The roots of nodes of the search: failures lead there."""
        while (nodes > roots).any():
            nodes = np.where(nodes > roots, self._program.searched_links[nodes] >> 16, nodes)
        return nodes

    def open_nodes(self) -> Flags:
        """The nodes at or below which there is something that matters."""
        program = self._program
        rows = program.nodes.reshape(-1, pr.NODE_COLUMNS)
        found = np.zeros(len(program.tests), np.bool_)
        found[0] = True
        found[_owners(rows[:, pr.ACCEPTED])[self._queries[program.accepts]]] = True
        found[_owners(rows[:, pr.UNCONDITIONAL])[self.facts[program.unconditional]]] = True
        found[_owners(rows[:, pr.RULES])[self._is_open[: self._sparse_from]]] = True
        found[_owners(rows[:, pr.GRIDS])[self._open_grids]] = True
        sparse = self._rules[self._sparse_from :][self._is_open[self._sparse_from :]]
        found[sparse[:, pr.SOURCE]] = True
        parents = _owners(rows[:, pr.CHILDREN])  # of all nodes but the first
        count = 0
        while count < (count := int(np.count_nonzero(found))):
            found[parents[found[1:]]] = True
        return found
