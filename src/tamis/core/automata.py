r"""Deterministic finite automata of regular expressions: from a tree (:mod:`.nfa`) to a table.

``build`` makes states of the sets of positions of the NFA. The automaton says whether a match
*begins anywhere* in a text; ``Assertion.TEXT_START`` ties it to the start.

>>> from tamis.core.nfa import Characters, Repeat, Sequence
>>> digits = Characters(((48, 57),))
>>> dfa = build(Sequence((digits, Repeat(Characters(((97, 97),)), 2, 3), Assertion.TEXT_END)))
>>> [dfa.accepts(text) for text in (b"7aa", b"x7aaa", b"7a", b"7aab")]
[True, True, False, False]

Three things keep it small:

* Of the optional copies of ``x{0,9}``, the first one matches all that later ones do, so later ones
  are left out of a set; of the copies of ``x{9,}``, earlier ones are. ``a.{0,99}b`` would have
  2**99 states otherwise.
* Where any text may follow, as behind a ``*`` of ``like``, earlier positions are left out.
* In a large automaton, states that the same texts lead on from are merged.

When not to use it: ``a.{20}b`` has 2**20 states, in whatever way it is built. ``build`` refuses it.

This module is apart from :mod:`.kernel.dfa`, which kernels import: changes here compile none again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int64, Words, distinct
from tamis.core.kernel.declare import Rows
from tamis.core.nfa import ANY_BYTE, CONTINUING, WORD, Assertion, Nfa, Node, bytes_of, too_large

STATES_MAX = 10_000


class Dfa(NamedTuple):
    """A deterministic automaton.

    State ``DEAD`` is one that nothing leads out of. So is ``ACCEPTED``, for texts that match
    whatever follows.

    Attributes:
        start: the first state.
        classes: uint8[256]; bytes of the same class lead from each state to the same state.
        transitions: int32[states, classes + 1]; the state behind each class. The last column is
            for the end of the text: it has ``ACCEPTED`` or ``DEAD``.
    """

    start: int
    classes: Bytes
    transitions: Rows[np.int32]

    def accepts(self, text: bytes) -> bool:
        """Whether a text matches; kernels are a hundred times faster."""
        state = self.start
        for byte in text:
            state = int(self.transitions[state, self.classes[byte]])
        return bool(self.transitions[state, -1] == ACCEPTED)


DEAD, ACCEPTED = 0, 1


def build(tree: Node, states_max: int = STATES_MAX) -> Dfa:
    """The automaton that finds a match of a tree anywhere in a text.

    Raises:
        SubscriptionLimitError: it has more states than ``states_max``.
    """
    dfa = _Construction(Nfa(tree, states_max), states_max).dfa()
    return dfa if len(dfa.transitions) < _MERGED_MIN else _merged(dfa)


class _Kind(IntEnum):
    """What is before or after a place in a text."""

    EDGE = 0
    OTHER = 1
    NEWLINE = 2
    WORD = 3
    WITHIN = 4
    """A byte that continues a character."""


_LOOKS_BEHIND = (Assertion.TEXT_START, Assertion.LINE_START)


def _holds(assertion: Assertion, before: _Kind, after: _Kind) -> bool:
    match assertion:
        case Assertion.TEXT_START:
            return before == _Kind.EDGE
        case Assertion.TEXT_END:
            return after == _Kind.EDGE
        case Assertion.LINE_START:
            return before in (_Kind.EDGE, _Kind.NEWLINE)
        case Assertion.LINE_END:
            return after in (_Kind.EDGE, _Kind.NEWLINE)
        case Assertion.BOUNDARY:
            return (before == _Kind.WORD) != (after == _Kind.WORD)
        case Assertion.NO_BOUNDARY:
            is_same = (before == _Kind.WORD) == (after == _Kind.WORD)
            return is_same and after != _Kind.WITHIN


_WORK_MAX = 2_000_000
"""Steps of a construction, one or two seconds; few patterns take a hundredth."""


class _Construction:
    """Sets of positions become states: those that read, that accept, and that wait.

    An assertion waits for the byte after it, unless it looks behind only.
    """

    def __init__(self, nfa: Nfa, states_max: int) -> None:
        self._nfa = nfa
        self._max = states_max
        self._work = 0
        self._words = 1 + (nfa.accept >> 10)  # operations on sets of positions take longer
        self._pruning = len(nfa.loops) + sum(1 + chain.stride // 4 for chain in nfa.chains)
        self._blocks = self._classes()
        self._masks = self._masks_of_classes()
        self._behind: dict[_Kind, dict[int, int]] = {kind: {} for kind, _ in self._masks}
        self._accept = 1 << nfa.accept
        self._waiting = sum(1 << p for p, a in nfa.asserts.items() if a not in _LOOKS_BEHIND)
        self._unread = sum(1 << p for p in (*nfa.leads, *nfa.asserts))
        self._closed: dict[tuple[int, _Kind, _Kind | None], int] = {}
        self._begins_later = any(self._close(1, kind, None) for kind, _ in self._masks)
        self._states: dict[tuple[int, _Kind], int] = {}
        self._sets: list[tuple[int, _Kind]] = []

    def _spend(self, steps: int) -> None:
        self._work += steps * self._words
        if self._work > _WORK_MAX:
            raise too_large(self._max)

    def _kinds(self) -> dict[_Kind, int]:
        """Kinds of bytes that assertions tell apart."""
        asserted = set(self._nfa.asserts.values())
        found = {}
        if asserted & {Assertion.LINE_START, Assertion.LINE_END}:
            found[_Kind.NEWLINE] = bytes_of(10, 10)
        if asserted & {Assertion.BOUNDARY, Assertion.NO_BOUNDARY}:
            found |= {_Kind.WORD: WORD, _Kind.WITHIN: CONTINUING}
        return found

    def _classes(self) -> list[tuple[int, _Kind]]:
        """Bytes that no position and no assertion tells apart, and their kind."""
        kinds = self._kinds()
        blocks = [ANY_BYTE]
        for bytes in {*self._nfa.reads.values(), *kinds.values()}:
            parts = ((block & bytes, block & ~bytes) for block in blocks)
            blocks = [part for both in parts for part in both if part]
        of = {block: [kind for kind, bytes in kinds.items() if block & bytes] for block in blocks}
        return sorted(
            ((block, (*of[block], _Kind.OTHER)[0]) for block in blocks), key=lambda each: each[1]
        )

    def _masks_of_classes(self) -> list[tuple[_Kind, list[int]]]:
        """The positions that read each class, kind by kind."""
        same: dict[int, int] = {}
        for position, bytes in self._nfa.reads.items():
            same[bytes] = same.get(bytes, 0) | 1 << position
        found: dict[_Kind, list[int]] = {}
        for block, kind in self._blocks:
            mask = sum(positions for bytes, positions in same.items() if bytes & block)
            found.setdefault(kind, []).append(mask)
        return [*found.items()]

    def _close(self, positions: int, before: _Kind, after: _Kind | None) -> int:
        """Add what is reached without reading; assertions wait while ``after`` is not known."""
        todo = positions & self._unread
        if not todo:
            return positions
        key = todo, before, after
        if key not in self._closed:
            self._closed[key] = self._reached(todo, before, after)
        return positions & ~todo | self._closed[key]

    def _reached(self, todo: int, before: _Kind, after: _Kind | None) -> int:
        nfa, seen = self._nfa, todo
        while todo:
            self._spend(1)
            position = todo.bit_length() - 1
            todo ^= 1 << position
            targets = nfa.leads.get(position, [])
            if assertion := nfa.asserts.get(position):
                is_known = after is not None or assertion in _LOOKS_BEHIND
                if is_known and _holds(assertion, before, after or _Kind.EDGE):
                    targets = [position + 1]
            for target in targets:
                if not seen >> target & 1:
                    seen |= 1 << target
                    todo |= 1 << target & self._unread
        return seen & ~(self._unread & ~(self._waiting if after is None else 0))

    def _state(self, positions: int, before: _Kind) -> int:
        """The state of a set of positions, which is made if there is none."""
        found = self._close(positions, before, None) | self._close(1, before, None)
        if found & self._accept:
            return ACCEPTED
        self._spend(1 + self._pruning)
        for loop, needless in self._nfa.loops:
            if found & loop:
                found &= ~needless
        for chain in self._nfa.chains:
            found = chain.reduced(found)
        if not found and not self._begins_later:
            return DEAD
        key = found, before if found & self._waiting else _Kind.OTHER
        state = self._states.setdefault(key, len(self._sets) + 2)
        if state == len(self._sets) + 2:
            if len(self._sets) == self._max:
                raise too_large(self._max)
            self._sets.append(key)
        return state

    def dfa(self) -> Dfa:
        start = self._state(0, _Kind.EDGE)
        width = len(self._blocks) + 1
        rows = [[DEAD] * width, [ACCEPTED] * width]
        for positions, before in self._sets:  # which grows meanwhile
            rows.append(self._row(positions, before))
        classes = np.zeros(256, np.uint8)
        for number, (block, _) in enumerate(self._blocks):
            classes[[byte for byte in range(256) if block >> byte & 1]] = number
        return Dfa(start, classes, np.array(rows, np.int32))

    def _row(self, positions: int, before: _Kind) -> list[int]:
        """The states behind each class and, last, what the end of the text comes to."""
        row = []
        self._spend(len(self._blocks))
        for kind, masks in self._masks:
            closed = self._close(positions, before, kind)
            if closed & self._accept:
                row += [ACCEPTED] * len(masks)
                continue
            known = self._behind[kind]
            for mask in masks:
                reading = closed & mask
                state = known.get(reading)
                if state is None:
                    is_within = kind == _Kind.WITHIN
                    after = _Kind.OTHER if is_within else kind
                    state = known[reading] = self._state(reading << 1, after)
                row.append(state)
        is_match = self._close(positions, before, _Kind.EDGE) & self._accept
        return [*row, ACCEPTED if is_match else DEAD]


_MERGED_MIN = 64
"""Automata with fewer states fit a cache as they are, and most of them cannot become smaller."""
_MERGED_ITEMS = 5_000_000
"""Transitions that may be looked at, about 100 ms; long repetitions need many rounds."""


def _merged(dfa: Dfa) -> Dfa:
    """The same automaton with the fewest states (Moore, 1956), unless that takes too long.

    States are told apart by a hash of their row; at the end it is checked that it told all apart.
    """
    table = dfa.transitions
    groups = np.minimum(np.arange(len(table)), 2)
    # The rounds of products of odd numbers below are modulo 2**64.
    salt = np.arange(1, 2 * table.shape[1], 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    count = 0
    for _ in range(_MERGED_ITEMS // table.size):
        hashes = (_mixed(groups)[table] * salt).sum(axis=1, dtype=np.uint64)
        hashes ^= _mixed(groups)
        hashes[:2] = (0, 1)
        values = distinct(hashes)
        groups = np.searchsorted(values, hashes)
        if len(values) == count:
            break
        count = len(values)
    else:
        return dfa
    firsts = np.zeros(count, np.int64)
    firsts[groups[::-1]] = np.arange(len(table))[::-1]
    order = np.sort(firsts)
    numbers = np.searchsorted(order, firsts)[groups]
    merged = numbers[table]
    if (merged != merged[order][numbers]).any() or (numbers[:2] != (0, 1)).any():
        return dfa
    return Dfa(int(numbers[dfa.start]), dfa.classes, merged[order].astype(np.int32))


def _mixed(numbers: Int64) -> Words:
    mixed: Words = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0x94D049BB133111EB)
    return mixed ^ mixed >> np.uint64(32)
