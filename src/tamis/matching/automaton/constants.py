"""What string values are compared with, as arrays: a hash table of strings, and sorted numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.matching.automaton.program import FUNCTION, GROUP_COLUMNS, LENGTHS, LONGEST, ROOT

_GOLDEN, _MIXER, _MASK = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, (1 << 64) - 1


def value_arrays(
    functions: Sequence[int],
    constants: Mapping[tuple[int, bytes], int],
    contained: Mapping[tuple[int, bytes], int],
    comparisons: Sequence[Sequence[tuple[int, float, int]]],
) -> dict[str, NDArray[Any]]:
    """The arrays of a program that are about values.

    Args:
        functions: that of each group.
        constants: the fact of each; by twice the group, and 1 where values need only begin with it.
        contained: the fact of each string that values may contain, by the group.
        comparisons: of each group: operator, number and fact.
    """
    groups = len(functions)
    rows = np.zeros((groups + 1, GROUP_COLUMNS), np.int32)
    rows[:-1, FUNCTION] = functions
    rows[:, LONGEST] = -1
    lengths: list[set[int]] = [set() for _ in range(groups)]
    for key, text in constants:
        group = key // 2
        rows[group, LONGEST] = max(rows[group, LONGEST], len(text))
        if key % 2:
            lengths[group].add(len(text))
    thresholds: list[float] = []
    compared: list[tuple[int, int, int]] = []
    prefix_lengths: list[int] = []
    classes = 0
    for group in range(groups):
        rows[group, LENGTHS:] = len(prefix_lengths), len(thresholds), len(compared), classes
        prefix_lengths += sorted(lengths[group])
        numbers = sorted({number for _, number, _ in comparisons[group]})
        ranks = {number: rank for rank, number in enumerate(numbers)}
        compared += [
            (operator, ranks[number], fact) for operator, number, fact in comparisons[group]
        ]
        thresholds += numbers
        classes += 2 * len(numbers) + 2
    rows[groups, LENGTHS:] = len(prefix_lengths), len(thresholds), len(compared), classes
    texts = [text for _, text in constants]
    trie = _Trie(contained)
    for group, root in trie.roots.items():
        rows[group, ROOT] = root
    return {
        "groups": rows,
        "constant_slots": _slots(constants),
        "constant_groups": np.array([key for key, _ in constants], np.int32),
        "constant_starts": np.cumsum([0, *map(len, texts)], dtype=np.int64),
        "constant_bytes": np.frombuffer(b"".join(texts), np.uint8),
        "constant_facts": np.array(list(constants.values()), np.int32),
        "prefix_lengths": np.array(prefix_lengths, np.int32),
        **trie.arrays(),
        "thresholds": np.array(thresholds, np.float64),
        "comparisons": np.array(compared, np.int32).reshape(-1, 3),
    }


class _Trie:
    """The strings that values may contain: a trie for each group, in one numbering of nodes."""

    def __init__(self, contained: Mapping[tuple[int, bytes], int]) -> None:
        self.roots: dict[int, int] = {}
        self._next: dict[tuple[int, int], int] = {}
        self._facts = [-1]
        for (group, text), fact in contained.items():
            node = self.roots.setdefault(group, len(self._facts))
            if node == len(self._facts):
                self._facts.append(-1)
            for byte in text:
                following = self._next.setdefault((node, byte), len(self._facts))
                if following == len(self._facts):
                    self._facts.append(-1)
                node = following
            self._facts[node] = fact

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of a program."""
        failures, outputs = self._failures()
        size = 1 << (2 * len(self._next)).bit_length()
        keys, values = np.zeros(size, np.uint64), np.zeros(size, np.int32)
        for (node, byte), following in self._next.items():
            key = node << 8 | byte
            hash = key * _GOLDEN & _MASK
            slot = (hash ^ hash >> 29) & size - 1
            while keys[slot]:
                slot = (slot + 1) & size - 1
            keys[slot], values[slot] = key, following
        return {
            "trie_keys": keys,
            "trie_values": values,
            "trie_failures": failures,
            "trie_outputs": outputs,
            "trie_facts": np.array(self._facts, np.int32),
        }

    def _failures(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        failures = np.zeros(len(self._facts), np.int32)
        outputs = np.zeros(len(self._facts), np.int32)
        edges: dict[int, list[tuple[int, int]]] = {}
        for (node, byte), following in self._next.items():
            edges.setdefault(node, []).append((byte, following))
        for root in self.roots.values():
            level = [root]
            while level:
                found = []
                for node in level:
                    for byte, following in edges.get(node, ()):
                        found.append(following)
                        failure = root if node == root else int(failures[node])
                        while failure != root and (failure, byte) not in self._next:
                            failure = int(failures[failure])
                        if node != root:
                            failure = self._next.get((failure, byte), root)
                        failures[following] = failure
                        is_output = self._facts[failure] >= 0
                        outputs[following] = failure if is_output else outputs[failure]
                level = found
        return failures, outputs


def _slots(constants: Mapping[tuple[int, bytes], int]) -> NDArray[np.int32]:
    """A hash table of constants: 1 and the number of each.

    The hash is that of the kernels (``hashed`` in ``kernels/values.py``).
    """
    size = 1 << (2 * len(constants)).bit_length()
    slots = np.zeros(size, np.int32)
    for number, (key, text) in enumerate(constants):
        hash = key // 2 * 2 * _MIXER & _MASK
        for byte in text:
            hash = ((hash ^ byte) * _GOLDEN ^ hash >> 47) & _MASK
        slot = (hash ^ hash >> 29) & size - 1
        while slots[slot]:
            slot = (slot + 1) & size - 1
        slots[slot] = number + 1
    return slots
