"""Arrays of a program that take some thought: grids, sparse rules, and what values are asked.

Grids and sparse rules are found in other ways than by their node. What an element derives from an
author is hardly ever what another one derives, with many authors to ask for. A set of such facts is
new each time, and nothing in the cache is of use for it. So facts about one of many constants stay
outside of sets, and so does what follows from them. The rules that they take part in are found by
the fact. What values are compared with is a hash table of strings, and sorted numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Floats, Int32, Int64, distinct, flat_indices, starts_of
from tamis.core.errors import UsageError
from tamis.core.kernel import ahocorasick
from tamis.language.table import OPERATORS
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.compile.builder import Builder
from tamis.matching.engines.automaton.kernels import build as at
from tamis.matching.engines.automaton.kernels import freeze as kernels

GRID_RULES = 256
"""A grid is made for so many rules of facts about the same two tests."""
SPARSEST = 8
"""And for cells of which one in so many has a rule."""
MANY_CONSTANTS = 32
"""An alphabet of as many strings is large."""
FEW_NUMBERS = 256
"""So many comparisons of a value with numbers may be looked at one by one. (Strings are fewer.)"""
POPULAR = 1024
"""A fact by which more rules are found is no sparse one: to look at all of them each time takes as
long as what is done for a set that is new."""
BITS_OF_PREFIX = 16
"""So that one in so many strings, at most, seems to be a prefix that is none."""
_BYTES_MAX = (1 << 31) - 1
"""Places in them are int32."""
_STARTS_WITH, _CONTAINS = OPERATORS.index("starts-with"), OPERATORS.index("contains")
_BITS = np.array([pr.OPERATORS.get(name, 0) for name in OPERATORS], np.int32)

# -- grids and sparse rules ------------------------------------------------------------------------


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


class SparseFacts:
    """Which facts are sparse, and by which of them a formula comes to hold.

    Attributes:
        is_sparse, is_pure: by fact; those that are pure never hold without others that are sparse.
        is_only: by formula; whether it holds only by sparse facts.
    """

    def __init__(self, builder: Builder) -> None:
        count, formulas = len(builder.rows("facts")), int(builder.state[at.FORMULAS])
        self._asked = np.zeros(count, np.int64)
        self._starts = np.zeros(formulas + 1, np.int64)
        self._triggers = np.zeros(0, np.int32)
        self.is_only = np.zeros(formulas, np.uint8)
        flags = self._classify(builder) if count else np.zeros(0, np.uint8)
        self.is_sparse = flags & kernels.SPARSE != 0
        self.is_pure = flags & kernels.PURE != 0
        self.is_any = bool(self.is_sparse.any())

    def _classify(self, builder: Builder) -> Bytes:
        """What is known of each fact; and, in passing, what leads to formulas."""
        large, small = _of_alphabets(builder)
        given = np.zeros(len(self._asked), np.uint8)
        given[small], given[large] = kernels.SMALL, kernels.LARGE
        if len(large) == 0:
            return given
        given[_stages(builder)] |= kernels.DENSE
        uses = np.zeros(len(given), np.int64)
        formulas = len(self.is_only)
        code: Int32 = builder["formula_code"][: int(builder.state[at.CODE])]
        kinds, starts = builder["formula_kinds"][:formulas], builder["formula_starts"]
        kernels.count_uses(kinds, starts[: formulas + 1], code, uses)
        rules = np.bincount(builder.rows("rules")[:, at.RULE_FORMULA], minlength=formulas)
        triggers = np.zeros(len(code), np.int32)
        while True:  # each round takes a fact out, or is the last
            flags = given.copy()
            self._asked[:] = 0
            kernels.classify(builder.state, flags)
            kernels.add_companions(builder.state, flags)
            kernels.find_triggers(
                builder.state, flags, uses, self._asked, self._starts, triggers, self.is_only
            )
            counts = np.diff(self._starts)
            self._triggers = triggers[: self._starts[-1]]
            led = np.bincount(self._triggers, np.repeat(rules, counts), minlength=len(given))
            if not (led > POPULAR).any():
                return flags
            given[led > POPULAR] |= kernels.DENSE

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
            return _sorted_rules(np.zeros(0, np.uint8), np.zeros(0, np.int32), rules[:0])
        counts = np.diff(self._starts)[formulas]
        picked = np.repeat(np.arange(len(rules)), counts)
        triggers = self._triggers[flat_indices(self._starts[formulas], counts)]
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
        return _sorted_rules(bits, found_by, np.concatenate([rows, passed]))

    def _consumes(self, triggers: Int32, rules: Int32) -> NDArray[np.bool_]:
        """Whether nothing else follows from the fact that a rule is found by."""
        is_alone = (rules[:, pr.FORMULA] < 0) & (rules[:, pr.WATCHED] == rules[:, pr.ALSO])
        is_asked_once = (self._asked[triggers] == 1) & (np.bincount(triggers)[triggers] == 1)
        consumes: NDArray[np.bool_] = is_alone & is_asked_once & (rules[:, pr.ACTION] == pr.ACCEPTS)
        return consumes


def _sorted_rules(bits: Bytes, found_by: Int32, rules: Int32) -> dict[str, NDArray[Any]]:
    order = np.argsort(found_by, kind="stable")
    starts = np.searchsorted(found_by[order], np.arange(len(bits) + 1))
    return {
        "sparse": np.packbits(bits, bitorder="little").view(np.uint64),
        "sparse_starts": starts.astype(np.int32),
        "sparse_rules": rules[order],
    }


def _of_alphabets(builder: Builder) -> tuple[Int32, Int32]:
    """The facts about values and one of many strings; and those about one of a few, or a number."""
    values = builder.rows("values")
    is_string = values[:, at.VALUE_LITERAL] >= 0
    keys = 2 * values[:, at.VALUE_GROUP].astype(np.int64) + is_string
    _, groups, counts = np.unique(keys, return_inverse=True, return_counts=True)
    large = is_string & (counts[groups] >= MANY_CONSTANTS)
    small = ~large & (counts[groups] <= FEW_NUMBERS)
    return values[large, at.VALUE_FACT], values[small, at.VALUE_FACT]


def _stages(builder: Builder) -> Int32:
    """The facts that children are counted by; and of chains of several stages, all."""
    chains, lasts = builder.rows("chains"), builder.rows("lasts")
    firsts = chains[:, at.CHAIN_STAGE]
    others = builder.rows("stages")[:, at.STAGE_FACT]
    of_several = lasts[firsts[lasts[:, at.LAST_CHAIN]] < 0, at.LAST_STAGE]
    return np.concatenate([firsts[firsts >= 0], others, of_several])


# -- values ----------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """What is asked of values, by group, and the facts that say so.

    Attributes:
        operators: places in ``tamis.language.table.OPERATORS``.
        literals: the number of a string, or minus one minus that of a number.
    """

    groups: Int32
    operators: Int32
    literals: Int32
    facts: Int32

    def only(self, which: NDArray[Any]) -> Asked:
        """Some of it."""
        return Asked(*(column[which] for column in self))


class Strings(NamedTuple):
    """Strings, one behind the other: where each begins, and at last ends, in the data."""

    starts: Int64
    data: Bytes

    def lengths(self, which: Int32) -> Int64:
        """How many bytes some of them have."""
        return self.starts[which + 1] - self.starts[which]

    def only(self, which: Int32) -> Strings:
        """Some of them."""
        lengths = self.lengths(which)
        return Strings(starts_of(lengths), self.data[flat_indices(self.starts[which], lengths)])


def value_arrays(
    functions: Int32, asked: Asked, strings: Strings, numbers: Floats, is_sparse: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """The arrays of a program that are about values, whose groups have these functions."""
    rows = np.zeros((len(functions) + 1, pr.GROUP_COLUMNS), np.int32)
    rows[:-1, pr.FUNCTION] = functions
    is_string = asked.literals >= 0
    is_searched = is_string & (asked.operators == _CONTAINS)
    return {
        **_constants(rows, asked.only(is_string & ~is_searched), strings),
        **_searched(rows, asked.only(is_searched), strings),
        **_comparisons(rows, asked.only(~is_string), numbers, is_sparse),
        "groups": rows,
    }


def _constants(rows: Int32, asked: Asked, strings: Strings) -> dict[str, NDArray[Any]]:
    """The strings that values are, or begin with."""
    is_prefix = asked.operators == _STARTS_WITH
    own_starts, own_texts = strings.only(asked.literals)
    if own_starts[-1] > _BYTES_MAX:
        raise UsageError(
            "the strings that values are compared with take more than 2 GiB: compile them in parts"
        )
    lengths = np.diff(own_starts)
    rows[:, pr.LONGEST] = -1
    np.maximum.at(rows[:, pr.LONGEST], asked.groups, lengths)
    prefixes = distinct(asked.groups[is_prefix].astype(np.int64) << 32 | lengths[is_prefix])
    rows[:, pr.LENGTHS] = np.searchsorted(prefixes >> 32, np.arange(len(rows)))
    groups = (2 * asked.groups + is_prefix).astype(np.int32)
    constants = np.zeros((len(groups) + 1, pr.CONSTANT_ROW), np.int32)
    constants[:-1, pr.ASKED_OF] = groups
    constants[:, pr.FIRST_BYTE] = own_starts
    constants[:-1, pr.MEANS] = asked.facts
    slots = np.zeros(1 << (2 * len(groups)).bit_length(), np.uint64)
    count = int(np.count_nonzero(is_prefix))
    bits = np.zeros(1 << (BITS_OF_PREFIX * count // 64).bit_length(), np.uint64)
    kernels.fill_slots(constants.reshape(-1), own_texts, slots, bits)
    return {
        "constant_slots": slots,
        "constants": constants,
        "constant_bytes": own_texts,
        "prefix_lengths": (prefixes & 0xFFFFFFFF).astype(np.int32),
        "prefix_bits": bits,
    }


def _searched(rows: Int32, asked: Asked, strings: Strings) -> dict[str, NDArray[Any]]:
    """The strings that values contain: a trie for each group, in one numbering of nodes."""
    groups = distinct(asked.groups)
    first = len(groups) + 1
    rows[groups, pr.ROOT] = np.arange(1, first)
    starts, data = strings.only(asked.literals)
    automaton, ends = ahocorasick.build(
        first, rows[asked.groups, pr.ROOT], starts, data.astype(np.int32)
    )
    facts = np.full(len(automaton.parent), -1, np.int32)
    facts[ends] = asked.facts
    outputs, shorter = ahocorasick.outputs_of(automaton, facts)
    search = ahocorasick.search_of(automaton, ends, outputs)
    found = {f"searched_{name}": array for name, array in search._asdict().items()}
    return {**found, "searched_shorter": shorter, "searched_facts": facts}


def _comparisons(
    rows: Int32, asked: Asked, numbers: Floats, is_sparse: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """The numbers that values are compared with."""
    wanted = numbers[-1 - asked.literals]
    order = np.lexsort((wanted, asked.groups))
    groups, wanted = asked.groups[order], wanted[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (groups[1:] != groups[:-1]) | (wanted[1:] != wanted[:-1])
    every = np.arange(len(rows))
    rows[:, pr.THRESHOLDS] = np.searchsorted(groups[is_new], every)
    rows[:, pr.COMPARISONS] = np.searchsorted(groups, every)
    rows[:, pr.CLASSES] = 2 * (rows[:, pr.THRESHOLDS] + every)
    compared = np.zeros((len(order), pr.COMPARISON_COLUMNS), np.int32)
    compared[:, pr.OPERATOR] = _BITS[asked.operators[order]]
    compared[:, pr.THRESHOLD] = np.cumsum(is_new) - 1 - rows[groups, pr.THRESHOLDS]
    compared[:, pr.FACT] = asked.facts[order]
    sparse_first = np.lexsort((~is_sparse[asked.facts[order]], groups))
    return {"thresholds": wanted[is_new], "comparisons": compared[sparse_first]}
