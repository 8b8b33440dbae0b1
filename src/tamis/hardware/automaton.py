"""Byte automata as circuits: a register for each state, all of them in parallel.

In a *homogeneous* automaton, all transitions into a state read the same set of bytes. So its
register is one gate: the byte is in the set, and one of the states before is active (Sidhu and
Prasanna, *Fast Regular Expression Matching using FPGAs*, 2001). Sets of bytes are decoded once for
all states, one cycle earlier (Clark and Schimmel, 2003; the paper's character decoder).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Elaboratable, Module, Signal

from tamis.hardware.signals import any_of

START = 0
"""The state before the first byte."""


class _State(NamedTuple):
    bytes: frozenset[int]
    before: list[int]


class Automaton:
    """States and the bytes that lead into them.

    >>> automaton = Automaton()
    >>> a = automaton.add(b"a", [START])
    >>> last = automaton.literal(b"bc", [a])
    >>> automaton.states[last]
    _State(bytes=frozenset({99}), before=[2])
    """

    def __init__(self) -> None:
        self.states = [_State(frozenset(), [])]

    def add(self, read: Iterable[int], before: Iterable[int], loops: bool = False) -> int:
        """A new state, into which ``read`` leads from the states ``before``, and from itself."""
        new = len(self.states)
        self.states.append(_State(frozenset(read), [*before, *([new] if loops else [])]))
        return new

    def extend(self, state: int, before: Iterable[int]) -> None:
        """Further states before one."""
        self.states[state].before.extend(before)

    def literal(self, text: bytes, before: Iterable[int], any_case: bool = False) -> int:
        """The last of new states that read ``text``."""
        last = list(before)
        for byte in text:
            read = {byte, *bytes([byte]).lower(), *bytes([byte]).upper()} if any_case else {byte}
            last = [self.add(read, last)]
        return last[0]

    def trie(self, texts: Iterable[bytes], before: Collection[int]) -> dict[bytes, int]:
        """The last state of each text; equal beginnings share their states."""
        known: dict[bytes, int] = {}
        texts = list(texts)
        for text in texts:
            for length in range(1, len(text) + 1):
                if text[:length] not in known:
                    above = [known[text[: length - 1]]] if length > 1 else before
                    known[text[:length]] = self.add(text[length - 1 : length], above)
        return {text: known[text] for text in texts}


class AutomatonCircuit(Elaboratable):
    """The circuit of an automaton.

    Attributes:
        byte, valid, end: the input; ``end`` starts anew, without a byte.
        active: a bit for each state. They follow the input by three cycles.
        stepped: ``active`` is that after a byte, for one cycle. So is ``ended`` after an ``end``.
        decoded: sets of bytes, and whether the byte that is read next is in them.
    """

    def __init__(self, automaton: Automaton) -> None:
        self.byte, self.valid, self.end = Signal(8), Signal(), Signal()
        self.active = Signal(len(automaton.states))
        self.stepped, self.ended = Signal(), Signal()
        self._automaton = automaton
        self._lines: dict[frozenset[int], Signal] = {}

    def decoded(self, read: Iterable[int]) -> Signal:
        """Whether the byte that leads to the next ``active`` is one of these."""
        return self._lines.setdefault(frozenset(read), Signal(name=f"set_{len(self._lines)}"))

    def elaborate(self, _: object) -> Module:
        m = Module()
        byte, reading, ending, valid, end = Signal(8), Signal(), Signal(), Signal(), Signal()
        m.d.sync += [byte.eq(self.byte), reading.eq(self.valid), ending.eq(self.end)]
        m.d.sync += [valid.eq(reading), end.eq(ending)]
        m.d.sync += [self.stepped.eq(valid & ~end), self.ended.eq(end)]
        following: list[Any] = [end]
        for state in self._automaton.states[1:]:
            before = any_of(self.active[one] for one in state.before)
            following.append(self.decoded(state.bytes) & before & ~end)
        for read, line in self._lines.items():
            m.d.sync += line.eq(is_in(byte, read))
        with m.If(valid | end):
            m.d.sync += self.active.eq(Cat(following))
        return m


def is_in(byte: Any, read: Collection[int]) -> Any:
    """Whether a byte is in a set."""
    if len(read) > 128:
        return ~is_in(byte, frozenset(range(256)) - frozenset(read))
    return any_of(byte == one for one in sorted(read))
