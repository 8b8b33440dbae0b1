"""``Nfa``: the states of all paths, which grow as filters are added."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.core.arrays import Int32, Int64, freeze
from tamis.core.kernel.table import copy_pairs
from tamis.matching.engines.nfa import layout as at
from tamis.matching.engines.nfa.kernels import ADDED, PAIRS, STATES, add_filters, add_step

_ROOM = 64


class Nfa:
    """One automaton for all filters, in which equal beginnings are the same states.

    What it holds stays where it is when filters are added: an array that is full is copied to one
    of twice the size, so each of n filters costs its steps, and a constant share of the copying.

    >>> from tamis.language.filters import Labels
    >>> labels, nfa = Labels(), Nfa()
    >>> nfa.add([labels.read("/a/b"), labels.read("/a//c"), labels.read("/a/b")])
    array([2, 4, 2], dtype=int32)
    >>> len(nfa), nfa.path(4)  # the third state is what is below a
    (5, [1, 4])

    Attributes:
        copies: how often an array was copied, because it was full.
    """

    def __init__(self) -> None:
        self.copies = 0
        self._counts = np.array([1, 0, 0], np.int64)
        self._records = np.zeros(_ROOM * at.RECORD, np.int32)
        self._records[[at.STAR, at.BELOW, at.ACCEPTS, at.PARENT, at.CODE]] = -1
        self._table = np.zeros(4 * _ROOM, np.int64)
        self._next_set = np.full(_ROOM, -1, np.int32)
        self._ends = np.full(_ROOM, -1, np.int32)
        self._sets = 0
        self._watches = 0

    def copy(self) -> Nfa:
        """The same automaton, which grows on its own."""
        other = Nfa.__new__(Nfa)
        other.__dict__.update(
            {
                name: value.copy() if isinstance(value, np.ndarray) else value
                for name, value in self.__dict__.items()
            }
        )
        return other

    def __len__(self) -> int:
        """How many states there are, ``//``-states included."""
        return int(self._counts[STATES])

    @property
    def transitions(self) -> int:
        """How many labels lead on, from all states together."""
        return int(self._counts[PAIRS])

    @property
    def records(self) -> Int32:
        """All states, a view: int32[n, RECORD]."""
        return self._records.reshape(-1, at.RECORD)[: len(self)]

    @property
    def table(self) -> Int64:
        """The hash table of transitions."""
        return self._table

    @property
    def sets(self) -> int:
        """How many sets of queries there are."""
        return self._sets

    @property
    def next_set(self) -> Int32:
        """For each set the next one that the same state answers, or -1; with room for more."""
        return self._next_set

    def memory_usage(self) -> int:
        """The bytes of its arrays."""
        arrays = (self._records, self._table, self._next_set, self._ends)
        return sum(array.nbytes for array in arrays)

    # -- paths -------------------------------------------------------------------------------------

    def add(self, filters: Sequence[Sequence[int]]) -> Int32:
        """Add some filters, and say to which state each leads."""
        starts = np.cumsum([0, *map(len, filters)], dtype=np.int64)
        codes = np.array([code for filter in filters for code in filter], np.int32)
        freeze(starts, codes)
        return self.add_many(starts, codes)

    def add_many(self, starts: Int64, codes: Int32) -> Int32:
        """Add filters as ``Filters`` has them, and say to which state each leads."""
        ends = np.zeros(len(starts) - 1, np.int32)
        self._counts[ADDED] = 0
        while not add_filters(self._counts, self._records, self._table, starts, codes, ends):
            number = self._counts[ADDED]
            self._make_room(int(starts[number + 1] - starts[number]))
        return ends

    def step(self, state: int, code: int) -> int:
        """The state that a step leads to from another one."""
        while True:
            found = int(add_step(self._counts, self._records, self._table, state, code))
            if found >= 0:
                return found
            self._make_room(1)

    def path(self, state: int) -> list[int]:
        """The states that the steps of a filter lead to, the last one being that state."""
        found: list[int] = []
        while state > 0:
            found.append(state)
            state = int(self.records[state, at.PARENT])
        return found[::-1]

    def _make_room(self, steps: int) -> None:
        """Make room for so many more steps, and for as many again as there are."""
        needed = (len(self) + 2 * steps) * at.RECORD
        if needed > len(self._records):
            self._records = self._widened(self._records, needed)
        pairs = self.transitions + steps
        if 4 * pairs > len(self._table):
            table = np.zeros(1 << (4 * pairs).bit_length(), np.int64)
            copy_pairs(self._table, table)
            self._table = table
            self.copies += 1

    def _widened(self, array: Int32, needed: int) -> Int32:
        self.copies += 1
        wide = np.full(2 * needed, -1, np.int32)
        wide[: len(array)] = array
        return wide

    # -- sets --------------------------------------------------------------------------------------

    def accept(self, ends: Int32) -> None:
        """Add as many sets of queries, each answered by a state; -1 for one that no state answers.

        The states are distinct. One that answers some already answers the new one too.
        """
        first, last = self._sets, self._sets + len(ends)
        if last > len(self._ends):
            self._ends = self._widened(self._ends, last)
            self._next_set = self._widened(self._next_set, last)
        self._ends[first:last] = ends
        self._sets = last
        real = ends >= 0
        states, numbers = ends[real], np.arange(first, last, dtype=np.int32)[real]
        self._next_set[numbers] = self.records[states, at.ACCEPTS]
        self.records[states, at.ACCEPTS] = numbers

    def end(self, set: int) -> int:
        """The state that answers a set of queries, or -1 if none does alone."""
        return int(self._ends[set])

    def watch(self, states: Sequence[int], by: int = 1) -> None:
        """Have the nodes that reach some states written down; with ``by=-1``, no longer.

        States are watched as often as somebody asked for it.
        """
        np.add.at(self.records[:, at.WATCHED], list(states), by)
        self._watches += by * len(states)

    @property
    def is_watching(self) -> bool:
        """Whether any state is watched."""
        return self._watches > 0

    def descends(self, state: int) -> bool:
        """Whether the last step to a state is one to descendants."""
        return bool(self.records[state, at.CODE] & 1)
