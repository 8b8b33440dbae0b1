"""Automata that read eight bytes a cycle.

A small automaton has few states, so what a word does to it is a table: state before → state after.
Tables are composed in a tree, as prefix sums are, with a register after each level; only the last
step, from the state before a word to that after it, has to be done in one cycle (Ladner and
Fischer, *Parallel Prefix Computation*, 1980).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from amaranth.hdl import Array, Const, Elaboratable, Module, Mux, Signal

from tamis.hardware.signals import delayed, later

LANES = 8
"""Bytes of a word."""
Rules = Mapping[int, Sequence[tuple[Any, int]]]
"""State → conditions in the order in which they are tried, and the state that each leads to."""


class Word(NamedTuple):
    """A word of a document; all of its words but the last one are full.

    Attributes:
        valid: there is a word in this cycle.
        first, finish: it is the first of a document, the last.
        filled: a bit for each lane: there is a byte.
        data: the bytes, that of lane 0 in the lowest bits.
    """

    valid: Any
    first: Any
    finish: Any
    filled: Any
    data: Any

    @classmethod
    def empty(cls) -> Word:
        """Signals for a word."""
        return cls(Signal(), Signal(), Signal(), Signal(LANES), Signal(8 * LANES))

    def later(self, m: Module) -> Word:
        """The word a cycle later."""
        return Word(*(delayed(m, one) for one in self))


class SpeculativeAutomaton(Elaboratable):
    """An automaton that reads a word a cycle.

    Attributes:
        word: whose lanes ``rules`` are about.
        before: for each lane the state before its byte, ``LATENCY`` cycles later.
        after: the state after the word.
    """

    CHOOSING = COMPOSING = 2
    """Cycles of a choice from a table; a level of the tree is that for each state."""
    LATENCY = 1 + 3 * COMPOSING + 2 + CHOOSING

    def __init__(self, word: Word, rules: Callable[[int], Rules], states: int) -> None:
        self.word = word
        self._bits = (states - 1).bit_length()
        self.before = [Signal(self._bits, name=f"before_{lane}") for lane in range(LANES)]
        self.after = Signal(self._bits)
        self.reset = Signal()
        self._rules, self._states = [rules(lane) for lane in range(LANES)], states

    def elaborate(self, _: object) -> Module:
        m = Module()
        steps = [[delayed(m, entry) for entry in self._step(lane)] for lane in range(LANES)]
        single = [self._held(m, table) for table in steps]
        double = [self._composed(m, steps[k], steps[k + 1]) for k in range(0, LANES, 2)]
        # A level later.
        triple = [self._composed(m, double[k], single[2 * k + 2]) for k in (0, 2)]
        half = [self._composed(m, double[k], double[k + 1]) for k in (0, 2)]
        single = [self._held(m, table) for table in single]
        double = [self._held(m, table) for table in double]
        # The last level: what the first bytes of a word do, from none of them to all.
        prefixes: list[list[Any]] = [[Const(s, self._bits) for s in range(self._states)]]
        prefixes += [self._held(m, one) for one in (single[0], double[0], triple[0], half[0])]
        rest = (single[4], double[2], triple[1], half[1])
        prefixes += [self._composed(m, half[0], one) for one in rest]
        state = Signal(self._bits)
        before = self.word
        for _ in range(1 + 3 * self.COMPOSING):
            before = before.later(m)
        word = before.later(m)
        begins = [delayed(m, Mux(before.finish, 0, entry)) for entry in prefixes[LANES]]
        with m.If(word.valid):
            m.d.sync += state.eq(Array(begins)[state])
        with m.If(self.reset):
            m.d.sync += state.eq(0)
        # The loop has a register of the state to itself, so that its gates lie beside it.
        known = delayed(m, state)
        for found, table in zip([*self.before, self.after], prefixes, strict=True):
            m.d.comb += found.eq(self._chosen(m, [later(m, one, 2) for one in table], known))
        return m

    def _step(self, lane: int) -> list[Any]:
        """For each state that after the byte of a lane; a lane without a byte changes nothing."""
        rules = self._rules[lane]
        table = []
        for state in range(self._states):
            following: Any = Const(state, self._bits)
            for condition, target in reversed(rules.get(state, ())):
                following = Mux(condition, Const(target, self._bits), following)
            filled = self.word.filled[lane]
            table.append(Mux(filled, following, Const(state, self._bits)))
        return table

    def _held(self, m: Module, table: Sequence[Any]) -> list[Any]:
        return [later(m, entry, self.COMPOSING) for entry in table]

    def _composed(self, m: Module, first: Sequence[Any], then: Sequence[Any]) -> list[Any]:
        """For each state that after ``first``, and ``then``."""
        return [self._chosen(m, then, entry) for entry in first]

    def _chosen(self, m: Module, table: Sequence[Any], state: Any) -> Any:
        """The entry of a state, two cycles later: first from each half, then from both."""
        half = 1 << (self._bits - 1)
        low, high = state[:-1], delayed(m, state[-1])
        chosen = [delayed(m, Array(part)[low]) for part in (table[:half], table[half:]) if part]
        return delayed(m, Mux(high, chosen[-1], chosen[0]))
