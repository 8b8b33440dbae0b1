"""Rules that are found in other ways than by their node: in grids, and by sparse facts.

What an element derives from an author is hardly ever what another one derives, with many authors
to ask for. A set of such facts is new each time, and nothing in the cache is of use for it. So
facts about one of many constants stay outside of sets, and so does what follows from them. The
rules that they take part in are found by the fact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, distinct
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.compile.builder import Builder
from tamis.matching.engines.automaton.kernels import build as at
from tamis.matching.engines.automaton.kernels.freeze import (
    DENSE,
    LARGE,
    PURE,
    SMALL,
    SPARSE,
    add_companions,
    classify,
    count_uses,
    find_triggers,
)

GRID_RULES = 256
"""A grid is made for so many rules of facts about the same two tests."""
SPARSEST = 8
"""And for cells of which one in so many has a rule."""


def grid_arrays(
    nodes: Int32, rules: Int32, tests: Int32
) -> tuple[NDArray[np.bool_], Int32, dict[str, NDArray[Any]]]:
    """Which rules are in grids; the node of each grid, ascending; and the arrays of a program.

    The rules come with their nodes, which ascend, and with the tests of facts of children, from 1
    on.
    """
    is_sliced = np.zeros(len(rules), bool)
    grids: list[tuple[int, int, int, int]] = []
    of_nodes: list[int] = []
    rows: list[Int32] = [np.zeros(0, np.int32)]
    cells: list[Int32] = [np.zeros(0, np.int32)]
    sliced: list[Int32] = [np.zeros(0, np.int32)]
    used = np.zeros(3, np.int64)  # rows, cells and queries so far
    for members in _candidates(nodes, rules, tests):
        one, other = rules[members, pr.WATCHED], rules[members, pr.ALSO]
        turned = tests[one] > tests[other]
        one, other = np.where(turned, other, one), np.where(turned, one, other)
        if len(distinct(one)) > len(distinct(other)):
            one, other = other, one
        facts, row = np.unique(one, return_inverse=True)
        first = int(other.min())
        width = int(other.max()) - first + 2
        if len(facts) * width > SPARSEST * len(members):
            continue
        key = row.astype(np.int64) * width + other - first
        order = np.argsort(key, kind="stable")
        grids.append((int(used[0]), first, width - 1, int(used[1])))
        of_nodes.append(int(nodes[members[0]]))
        rows.append(facts)
        ends = np.searchsorted(key[order], np.arange(len(facts) * width))
        cells.append((ends + used[2]).astype(np.int32))
        sliced.append(rules[members[order], pr.TARGET])
        is_sliced[members] = True
        used += len(facts), len(cells[-1]), len(members)
    grids.append((int(used[0]), 0, 0, int(used[1])))  # where the last one ends
    arrays = {
        "grids": np.array(grids, np.int32),
        "grid_rows": np.concatenate(rows),
        "grid_cells": np.concatenate(cells),
        "sliced": np.concatenate(sliced),
    }
    return is_sliced, np.array(of_nodes, np.int32), arrays


def _candidates(nodes: Int32, rules: Int32, tests: Int32) -> list[Int64]:
    """Rules of a node that accept, of two facts, of children of two tests."""
    first, other = rules[:, pr.WATCHED], rules[:, pr.ALSO]
    fits = (rules[:, pr.ACTION] == pr.ACCEPTS) & (rules[:, pr.FORMULA] < 0) & (first >= 0)
    fits &= (first != other) & (rules[:, pr.THIRD] == first)
    fits &= (tests[first] > 0) & (tests[other] > 0) & (tests[first] != tests[other])
    which = np.flatnonzero(fits)
    pairs = np.stack([tests[first[which]], tests[other[which]]], axis=1)
    pairs.sort(axis=1)
    keys = np.column_stack([nodes[which], pairs])
    _, groups, counts = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(groups.reshape(-1), kind="stable")
    ends = np.cumsum(counts)
    return [
        which[order[end - count : end]]
        for end, count in zip(ends.tolist(), counts.tolist(), strict=True)
        if count >= GRID_RULES
    ]


MANY_CONSTANTS = 32
"""An alphabet of as many strings is large."""
FEW_NUMBERS = 256
"""So many comparisons of a value with numbers may be looked at one by one. (Strings are fewer.)"""
POPULAR = 1024
"""A fact by which more rules are found is no sparse one: to look at all of them each time takes as
long as what is done for a set that is new."""


class SparseFacts:
    """Which facts are sparse, and by which of them a formula comes to hold.

    Attributes:
        is_sparse, is_pure: by fact; those that are pure never hold without others that are sparse.
        is_only: by formula; whether it holds only by sparse facts.
    """

    def __init__(self, builder: Builder) -> None:
        tables = builder.tables
        count, formulas = len(tables.rows("facts")), int(tables.state[at.FORMULAS])
        self._asked = np.zeros(count, np.int64)
        self._starts = np.zeros(formulas + 1, np.int64)
        self._triggers = np.zeros(0, np.int32)
        self.is_only = np.zeros(formulas, np.uint8)
        flags = self._classify(builder) if count else np.zeros(0, np.uint8)
        self.is_sparse = flags & SPARSE != 0
        self.is_pure = flags & PURE != 0
        self.is_any = bool(self.is_sparse.any())

    def _classify(self, builder: Builder) -> Bytes:
        """What is known of each fact; and, in passing, what leads to formulas."""
        tables = builder.tables
        large, small = _of_alphabets(builder)
        given = np.zeros(len(self._asked), np.uint8)
        given[small], given[large] = SMALL, LARGE
        if len(large) == 0:
            return given
        given[_stages(builder)] |= DENSE
        uses = np.zeros(len(given), np.int64)
        formulas = len(self.is_only)
        code: Int32 = tables["formula_code"][: int(tables.state[at.CODE])]
        kinds, starts = tables["formula_kinds"][:formulas], tables["formula_starts"]
        count_uses(kinds, starts[: formulas + 1], code, uses)
        rules = np.bincount(tables.rows("rules")[:, at.RULE_FORMULA], minlength=formulas)
        triggers = np.zeros(len(code), np.int32)
        while True:  # each round takes a fact out, or is the last
            flags = given.copy()
            self._asked[:] = 0
            classify(tables.state, flags)
            add_companions(tables.state, flags)
            find_triggers(
                tables.state, flags, uses, self._asked, self._starts, triggers, self.is_only
            )
            counts = np.diff(self._starts)
            self._triggers = triggers[: self._starts[-1]]
            led = np.bincount(self._triggers, np.repeat(rules, counts), minlength=len(given))
            if not (led > POPULAR).any():
                return flags
            given[led > POPULAR] |= DENSE

    def arrays(
        self, facts: Int32, words: int, nodes: Int32, rules: Int32, formulas: Int32, needs: Int64
    ) -> dict[str, NDArray[Any]]:
        """The rules, by the facts that they are found by, as arrays of a program.

        Args:
            facts: the number of each fact in the program, of so many words.
            nodes, formulas: of each rule.
            needs: nodes, from bit 32 on, and facts of descendants that they need; ascending.
        """
        if not self.is_any:
            return _arrays(np.zeros(0, np.uint8), np.zeros(0, np.int32), rules[:0])
        counts = np.diff(self._starts)[formulas]
        picked = np.repeat(np.arange(len(rules)), counts)
        places = np.arange(len(picked)) - np.repeat(np.cumsum(counts) - counts, counts)
        triggers = self._triggers[self._starts[formulas[picked]] + places]
        found_by = facts[triggers]
        rows = rules[picked]
        rows[:, pr.SOURCE] = nodes[picked]
        rows[:, pr.CONSUMES] = self._consumes(triggers, rows)
        bits = np.zeros(64 * words, np.uint8)
        bits[facts[self.is_sparse]] = 1
        needed = needs & (1 << 32) - 1
        passes = np.flatnonzero(bits[needed])
        passed = np.full((len(passes), pr.RULE_COLUMNS), -1, np.int32)
        passed[:, [pr.ACTION, pr.CONSUMES]] = pr.PASSES, 0
        passed[:, pr.TARGET] = needed[passes]
        passed[:, pr.SOURCE] = needs[passes] >> 32
        found_by = np.concatenate([found_by, passed[:, pr.TARGET]])
        return _arrays(bits, found_by, np.concatenate([rows, passed]))

    def _consumes(self, triggers: Int32, rules: Int32) -> NDArray[np.bool_]:
        """Whether nothing else follows from the fact that a rule is found by."""
        is_alone = (rules[:, pr.FORMULA] < 0) & (rules[:, pr.WATCHED] == rules[:, pr.ALSO])
        is_asked_once = (self._asked[triggers] == 1) & (np.bincount(triggers)[triggers] == 1)
        consumes: NDArray[np.bool_] = is_alone & is_asked_once & (rules[:, pr.ACTION] == pr.ACCEPTS)
        return consumes


def _arrays(bits: Bytes, found_by: Int32, rules: Int32) -> dict[str, NDArray[Any]]:
    order = np.argsort(found_by, kind="stable")
    starts = np.searchsorted(found_by[order], np.arange(len(bits) + 1))
    return {
        "sparse": np.packbits(bits, bitorder="little").view(np.uint64),
        "sparse_starts": starts.astype(np.int32),
        "sparse_rules": rules[order],
    }


def _of_alphabets(builder: Builder) -> tuple[Int32, Int32]:
    """The facts about values and one of many strings; and those about one of a few, or a number."""
    values = builder.tables.rows("values")
    is_string = values[:, at.VALUE_LITERAL] >= 0
    keys = 2 * values[:, at.VALUE_GROUP].astype(np.int64) + is_string
    _, groups, counts = np.unique(keys, return_inverse=True, return_counts=True)
    large = is_string & (counts[groups] >= MANY_CONSTANTS)
    small = ~large & (counts[groups] <= FEW_NUMBERS)
    return values[large, at.VALUE_FACT], values[small, at.VALUE_FACT]


def _stages(builder: Builder) -> Int32:
    """The facts that children are counted by; and of chains of several stages, all."""
    chains, lasts = builder.tables.rows("chains"), builder.tables.rows("lasts")
    firsts = chains[:, at.CHAIN_STAGE]
    others = [fact for chain in builder.chains for fact, _, _ in chain]
    of_several = lasts[firsts[lasts[:, at.LAST_CHAIN]] < 0, at.LAST_STAGE]
    return np.concatenate([firsts[firsts >= 0], np.array(others, np.int32), of_several])
