"""What string values are compared with, as arrays: a hash table of strings, and sorted numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Floats, Int32, Int64, Words, distinct
from tamis.core.errors import UsageError
from tamis.language.plain import OPERATORS as NAMES
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels.freeze import (
    add_searched,
    fill_grams,
    fill_rows,
    fill_slots,
    link_searched,
)
from tamis.matching.engines.automaton.kernels.values import GRAM_BYTES

BITS_OF_PREFIX = 16
"""So that one in so many strings, at most, seems to be a prefix that is none."""
MOST_ALIKE = 8
"""Strings of a group with the same gram."""
SEARCHED_CELLS = 1 << 18
"""Nodes times letters for which it is written down where they lead: what fits a cache."""
_BYTES_MAX = (1 << 31) - 1
"""Places in them are int32."""
_STARTS_WITH, _CONTAINS = NAMES.index("starts-with"), NAMES.index("contains")
_BITS = np.array([pr.OPERATORS.get(name, 0) for name in NAMES], np.int32)


class Asked(NamedTuple):
    """What is asked of values, by group, and the facts that say so.

    Attributes:
        operators: places in ``tamis.language.plain.OPERATORS``.
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
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        behind = np.repeat(self.starts[which] - starts[:-1], lengths)
        return Strings(starts, self.data[np.arange(starts[-1]) + behind])


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
        **_contained(rows, asked.only(is_searched), strings),
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
    fill_slots(constants.reshape(-1), own_texts, slots, bits)
    return {
        "constant_slots": slots,
        "constants": constants,
        "constant_bytes": own_texts,
        "prefix_lengths": (prefixes & 0xFFFFFFFF).astype(np.int32),
        "prefix_bits": bits,
    }


def _contained(rows: Int32, asked: Asked, strings: Strings) -> dict[str, NDArray[Any]]:
    """The strings that values contain: by a gram of theirs, or else in tries."""
    firsts, lengths = strings.starts[asked.literals], strings.lengths(asked.literals)
    which = np.flatnonzero(lengths >= GRAM_BYTES)
    grams, offsets = _rarest(firsts[which], lengths[which], strings.data)
    order = np.lexsort((grams, asked.groups[which]))
    which, grams, offsets = which[order], grams[order], offsets[order]
    # Of those that have all in common, a few are compared one by one.
    groups = asked.groups[which]
    begins = np.ones(len(which), bool)
    begins[1:] = (groups[1:] != groups[:-1]) | (grams[1:] != grams[:-1])
    places = np.arange(len(which))
    kept = places - np.maximum.accumulate(np.where(begins, places, 0)) < MOST_ALIKE
    has_gram = np.zeros(len(lengths), bool)
    has_gram[which[kept]] = True
    return {
        **_grams(rows, asked.only(which[kept]), grams[kept], offsets[kept], strings),
        **_searched(rows, asked.only(~has_gram), strings),
    }


def _rarest(firsts: Int64, lengths: Int64, texts: Bytes) -> tuple[NDArray[np.uint32], Int64]:
    """Of each string the gram that fewest strings have, as a number, and where it is."""
    counts = lengths - GRAM_BYTES + 1
    ends = np.cumsum(counts)
    of = np.repeat(np.arange(len(counts)), counts)
    offsets = np.arange(len(of)) - np.repeat(ends - counts, counts)
    places = firsts[of] + offsets
    grams = np.zeros(len(of), np.uint32)
    for number in range(GRAM_BYTES):
        grams |= texts[places + number].astype(np.uint32) << np.uint32(8 * number)
    _, inverse, uses = np.unique(grams, return_inverse=True, return_counts=True)
    order = np.lexsort((uses[inverse.reshape(-1)], of))
    chosen = order[ends - counts]
    return grams[chosen], offsets[chosen]


def _grams(
    rows: Int32, asked: Asked, grams: NDArray[np.uint32], offsets: Int64, strings: Strings
) -> dict[str, NDArray[Any]]:
    """The strings with a gram, sorted by group and gram."""
    own_starts, own_texts = strings.only(asked.literals)
    table = np.zeros((len(grams) + 1, pr.GRAM_ROW), np.int32)
    table[:-1, pr.GROUP] = asked.groups
    table[:-1, pr.GRAM] = grams.view(np.int32)
    table[:-1, pr.OFFSET] = offsets
    table[:, pr.BEGIN] = own_starts
    table[:-1, pr.SAYS] = asked.facts
    rows[asked.groups, pr.HAS_GRAMS] = 1
    bits = np.zeros(1 << min(max(len(grams).bit_length(), 7), 17), np.uint64)
    slots = np.zeros(1 << (2 * len(grams)).bit_length(), np.int32)
    fill_grams(table.reshape(-1), bits, slots)
    return {"gram_bits": bits, "gram_slots": slots, "grams": table, "gram_bytes": own_texts}


def _searched(rows: Int32, asked: Asked, strings: Strings) -> dict[str, NDArray[Any]]:
    """The strings that values contain: a trie for each group, in one numbering of nodes."""
    groups = distinct(asked.groups)
    roots = len(groups)
    rows[groups, pr.ROOT] = np.arange(1, roots + 1)
    most = 1 + roots + int(np.sum(strings.lengths(asked.literals)))
    # By node: the one before it, the byte between, how far from the root it is, and the fact.
    before, byte, depth = (np.zeros(most, np.int32) for _ in range(3))
    facts = np.full(most, -1, np.int32)
    keys, values = _table(most)
    count = add_searched(
        rows[asked.groups, pr.ROOT], asked.literals, asked.facts, *strings,
        keys, values, facts, before, byte, depth, roots + 1,
    )  # fmt: skip
    depth[0] = -1
    order = np.argsort(depth[:count], kind="stable")
    rank = np.empty(count, np.int32)
    rank[order] = np.arange(count, dtype=np.int32)
    before, byte, facts = rank[before[order]], byte[order], facts[order]
    failures, outputs, shorter = (np.zeros(count, np.int32) for _ in range(3))
    keys, values = _table(count)
    link_searched(roots, keys, values, facts, before, byte, failures, outputs, shorter)
    letters = np.zeros(257, np.uint8)
    known = distinct(byte[roots + 1 :])
    letters[known] = np.arange(1, len(known) + 1)
    width = letters[256] = len(known) + 1
    near = min(count, max(roots + 1, SEARCHED_CELLS // width))
    leads = np.zeros((near, width), np.int32)
    fill_rows(roots, keys, values, failures, letters, width, leads.reshape(-1))
    return {
        "searched_letters": letters, "searched_rows": leads, "searched_keys": keys,
        "searched_values": values, "searched_failures": failures, "searched_outputs": outputs,
        "searched_shorter": shorter, "searched_facts": facts,
    }  # fmt: skip


def _table(count: int) -> tuple[Words, Int32]:
    """An empty hash table, by nodes and bytes, of more than so many nodes."""
    size = 1 << (2 * count).bit_length()
    return np.zeros(size, np.uint64), np.zeros(size, np.int32)


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
