"""What string values are compared with, as arrays: a hash table of strings, and sorted numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import Bytes, Int32, Int64
from tamis.language.plain import OPERATORS as NAMES
from tamis.matching.automaton.kernels.constants import add_searched, fill_slots, link_searched
from tamis.matching.automaton.program import (
    CLASSES,
    COMPARISON_COLUMNS,
    COMPARISONS,
    FACT,
    FUNCTION,
    GROUP_COLUMNS,
    LENGTHS,
    LONGEST,
    OPERATOR,
    OPERATORS,
    ROOT,
    THRESHOLD,
    THRESHOLDS,
)

_STARTS_WITH, _CONTAINS = NAMES.index("starts-with"), NAMES.index("contains")
_BITS = np.array([OPERATORS.get(name, 0) for name in NAMES], np.int32)


class Asked(NamedTuple):
    """What is asked of values.

    Attributes:
        groups: int32[n]; by which it is.
        operators: int32[n]; places in ``tamis.language.plain.OPERATORS``.
        literals: int32[n]; the number of a string, or minus one minus that of a number.
        facts: int32[n]; that say so.
    """

    groups: Int32
    operators: Int32
    literals: Int32
    facts: Int32

    def only(self, which: NDArray[np.bool_]) -> Asked:
        """Some of it."""
        return Asked(*(column[which] for column in self))


def value_arrays(
    functions: Int32,
    asked: Asked,
    starts: Int64,
    texts: Bytes,
    numbers: NDArray[np.float64],
) -> dict[str, NDArray[Any]]:
    """The arrays of a program that are about values.

    Args:
        functions: that of each group.
        starts, texts: the strings.
    """
    rows = np.zeros((len(functions) + 1, GROUP_COLUMNS), np.int32)
    rows[:-1, FUNCTION] = functions
    is_string = asked.literals >= 0
    is_searched = is_string & (asked.operators == _CONTAINS)
    return {
        **_constants(rows, asked.only(is_string & ~is_searched), starts, texts),
        **_searched(rows, asked.only(is_searched), starts, texts),
        **_comparisons(rows, asked.only(~is_string), numbers),
        "groups": rows,
    }


def _constants(rows: Int32, asked: Asked, starts: Int64, texts: Bytes) -> dict[str, NDArray[Any]]:
    """The strings that values are, or begin with."""
    is_prefix = asked.operators == _STARTS_WITH
    firsts = starts[asked.literals]
    lengths = starts[asked.literals + 1] - firsts
    own_starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    places = np.arange(own_starts[-1]) + np.repeat(firsts - own_starts[:-1], lengths)
    own_texts = texts[places]
    rows[:, LONGEST] = -1
    np.maximum.at(rows[:, LONGEST], asked.groups, lengths)
    prefixes = np.unique(
        np.stack([asked.groups[is_prefix], lengths[is_prefix]], axis=1), axis=0
    ).reshape(-1, 2)
    rows[:, LENGTHS] = np.searchsorted(prefixes[:, 0], np.arange(len(rows)))
    groups = (2 * asked.groups + is_prefix).astype(np.int32)
    slots = np.zeros(1 << (2 * len(groups)).bit_length(), np.int32)
    fill_slots(groups, own_starts, own_texts, slots)
    return {
        "constant_slots": slots,
        "constant_groups": groups,
        "constant_starts": own_starts,
        "constant_bytes": own_texts,
        "constant_facts": asked.facts,
        "prefix_lengths": prefixes[:, 1].astype(np.int32),
    }


def _searched(rows: Int32, asked: Asked, starts: Int64, texts: Bytes) -> dict[str, NDArray[Any]]:
    """The strings that values contain: a trie for each group, in one numbering of nodes."""
    roots = np.unique(asked.groups)
    most = 1 + len(roots) + int(np.sum(starts[asked.literals + 1] - starts[asked.literals]))
    keys = np.zeros(1 << (2 * most).bit_length(), np.uint64)
    values = np.zeros(len(keys), np.int32)
    facts = np.full(most, -1, np.int32)
    # By node: the one before it, the byte between, and how far from the root it is.
    before, byte, depth = (np.zeros(most, np.int32) for _ in range(3))
    rows[roots, ROOT] = np.arange(1, len(roots) + 1)
    count = add_searched(
        rows[asked.groups, ROOT], asked.literals, asked.facts, starts, texts,
        keys, values, facts, before, byte, depth, len(roots) + 1,
    )  # fmt: skip
    failures, outputs = np.zeros(count, np.int32), np.zeros(count, np.int32)
    order = np.argsort(depth[:count], kind="stable").astype(np.int32)
    link_searched(order, keys, values, facts, before, byte, failures, outputs)
    return {
        "trie_keys": keys,
        "trie_values": values,
        "trie_failures": failures,
        "trie_outputs": outputs,
        "trie_facts": facts[:count],
    }


def _comparisons(
    rows: Int32, asked: Asked, numbers: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """The numbers that values are compared with."""
    wanted = numbers[-1 - asked.literals]
    order = np.lexsort((wanted, asked.groups))
    groups, wanted = asked.groups[order], wanted[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (groups[1:] != groups[:-1]) | (wanted[1:] != wanted[:-1])
    every = np.arange(len(rows))
    rows[:, THRESHOLDS] = np.searchsorted(groups[is_new], every)
    rows[:, COMPARISONS] = np.searchsorted(groups, every)
    rows[:, CLASSES] = 2 * (rows[:, THRESHOLDS] + every)
    compared = np.zeros((len(order), COMPARISON_COLUMNS), np.int32)
    compared[:, OPERATOR] = _BITS[asked.operators[order]]
    compared[:, THRESHOLD] = np.cumsum(is_new) - 1 - rows[groups, THRESHOLDS]
    compared[:, FACT] = asked.facts[order]
    return {"thresholds": wanted[is_new], "comparisons": compared}
