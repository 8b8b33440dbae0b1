"""A byte a clock cycle → start tags and end tags, and whether the document is for the circuit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Signal
from amaranth.lib.memory import Memory

from tamis.hardware.automaton import AutomatonCircuit
from tamis.hardware.lexer import NAME_END, Lexer
from tamis.hardware.signals import EventBus, any_of, delayed, later

STATUSES = ("malformed", "unsupported", "unknown", "overflow")
"""Why a document's matches do not count, in the order of the bits of a status."""


class Observation:
    """What the checker is told of a clock cycle.

    Attributes:
        push, pop, end: as in :class:`EventBus`.
        names_end: with ``pop``, there is an end tag, with a tag of its own.
        data: character data; ``doctype``: a document type declaration.
        unknown: a tag is not in the alphabet; ``unsupported``: something is not for the circuit.
        complete: with ``end``, nothing was cut off, or malformed by the lexer's rules.
    """

    FIELDS = (
        *("push", "pop", "end", "names_end", "data", "doctype"),
        *("unknown", "unsupported", "complete"),
    )

    def __init__(self) -> None:
        self.push, self.pop, self.end = Signal(), Signal(), Signal()
        self.names_end, self.data, self.doctype = Signal(), Signal(), Signal()
        self.unknown, self.unsupported, self.complete = Signal(), Signal(), Signal()

    def all(self) -> Any:
        return Cat(getattr(self, field) for field in self.FIELDS)


class ByteParser(Elaboratable):
    """The lexer's automaton at work.

    Attributes:
        byte, valid, end: the input; ``end`` is a cycle without a byte, after the last one.
        events, seen: what was read, four cycles later.
    """

    def __init__(self, lexer: Lexer) -> None:
        self.byte, self.valid, self.end = Signal(8), Signal(), Signal()
        self.events = EventBus(len(lexer.tags), len(lexer.shown))
        self.seen = Observation()
        self._lexer = lexer

    def elaborate(self, _: object) -> Module:
        m = Module()
        lexer, events, seen = self._lexer, self.events, self.seen
        m.submodules.automaton = automaton = AutomatonCircuit(lexer)
        m.d.comb += [automaton.byte.eq(self.byte), automaton.valid.eq(self.valid)]
        m.d.comb += automaton.end.eq(self.end)
        active, stepped = automaton.active, automaton.stepped

        def reached(states: Iterable[int]) -> Any:
            return any_of(active[state] for state in states)

        tags, shown = Signal.like(events.tags), Signal.like(events.facts)
        named = reached(lexer.named) & automaton.decoded(NAME_END)
        with m.If(named):
            m.d.sync += tags.eq(Cat(active[state] for state in lexer.tags))
        with m.If(reached(lexer.opened)):
            m.d.sync += shown.eq(0)
        with m.Else():
            m.d.sync += shown.eq(shown | Cat(reached(states) for states in lexer.shown))
        starts, ends = reached(lexer.starts), reached(lexer.ends)
        m.d.sync += [
            events.push.eq(stepped & starts),
            events.pop.eq(stepped & (ends | reached(lexer.empties))),
            events.end.eq(automaton.ended),
            events.tags.eq(tags),
            events.facts.eq(shown),
            seen.names_end.eq(stepped & ends),
            seen.data.eq(stepped & reached(lexer.data) & ~reached(lexer.mark)),
            seen.doctype.eq(stepped & reached(lexer.doctypes)),
            seen.unknown.eq(stepped & (starts | ends) & ~tags.any()),
        ]
        m.d.comb += [seen.push.eq(events.push), seen.pop.eq(events.pop), seen.end.eq(events.end)]
        wrong = [reached(states) & ~reached(unless) for states, unless in lexer.wrong]
        wrong += [reached(lexer.unsupported), self._undeclared(m, reached, stepped, starts, tags)]
        m.d.sync += seen.unsupported.eq(stepped & any_of(wrong))
        complete = Signal()  # of the cycle before: an end makes the automaton start anew
        m.d.sync += complete.eq(reached(lexer.content) & reached(lexer.utf8))
        m.d.sync += seen.complete.eq(complete)
        return m

    def _undeclared(self, m: Module, reached: Any, stepped: Any, starts: Any, tags: Any) -> Any:
        """Whether a declaration is not the one known, or an element lacks that of its prefix.

        The root declares all prefixes that the document uses, so a declaration is in scope
        everywhere.
        """
        lexer = self._lexer
        begins = reached(lexer.spaces)
        pending, is_root = Signal(), Signal()
        closes: list[Any] = []
        missing: list[Any] = []
        ended = self.events.end
        for prefix, states in lexer.declared.items():
            declared = Signal(name=f"declared_{prefix}")
            used = Signal(name=f"used_{prefix}")
            close = reached(states)
            with m.If(stepped & close & is_root):
                m.d.sync += declared.eq(1)
            with m.If(stepped & reached(lexer.uses.get(prefix, ()))):
                m.d.sync += used.eq(1)
            with m.If(ended):
                m.d.sync += [declared.eq(0), used.eq(0)]
            closes.append(close & (declared | is_root))
            needed = used | any_of(tags[tag] for tag in lexer.tags_of(prefix))
            missing.append(needed & ~declared)
        with m.If(stepped & begins):
            m.d.sync += pending.eq(1)
        with m.Elif((stepped & any_of(closes)) | ended):
            m.d.sync += pending.eq(0)
        with m.If(ended):
            m.d.sync += is_root.eq(1)
        with m.Elif(stepped & starts):
            m.d.sync += is_root.eq(0)
        return (begins & pending) | (starts & (pending | any_of(missing)))


WIDEST = 64
"""Lines that are combined in one cycle."""


def encoding_latency(lines: int) -> int:
    """The cycles that :func:`encode_one_hot` takes."""
    return 1 if lines <= WIDEST else 1 + encoding_latency(-(-lines // WIDEST))


def encode_one_hot(m: Module, lines: Sequence[Any]) -> tuple[Any, Any]:
    """The number of the line that is set, and whether there is one, some cycles later."""
    bits = max(1, (len(lines) - 1).bit_length())
    parts = [[line for n, line in enumerate(lines) if n >> bit & 1] for bit in range(bits)]
    parts.append(list(lines))
    for _ in range(encoding_latency(len(lines))):
        parts = [
            [delayed(m, any_of(part[k : k + WIDEST])) for k in range(0, len(part), WIDEST)]
            or [Const(0)]
            for part in parts
        ]
    *code, known = (part[0] for part in parts)
    return Cat(code), known


class Checker(Elaboratable):
    """The nesting of elements, and the status of each document; a circuit has one.

    Attributes:
        seen: what a :class:`ByteParser` says of an event, besides its tag.
        code: the number of the tag.
        status: with ``ended``, a bit for each of ``STATUSES``; 0: the matches count.
    """

    def __init__(self, tags: int, depth: int = 16) -> None:
        self.seen = Observation()
        self.code = Signal(range(max(tags, 2)))
        self.status = Signal(len(STATUSES))
        self.ended = Signal()
        self._depth = depth

    def elaborate(self, _: object) -> Module:
        m = Module()
        seen = self.seen
        row, top_row = Signal(range(self._depth)), Signal(range(self._depth))
        empty, full, rooted, typed = Signal(), Signal(), Signal(), Signal()
        m.submodules.tags = memory = Memory(shape=self.code.shape(), depth=self._depth, init=[])
        port, reader = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [port.addr.eq(row), port.data.eq(self.code), port.en.eq(seen.push)]
        m.d.comb += reader.addr.eq(top_row)
        with m.If(seen.push):
            m.d.sync += [row.eq(row + 1), top_row.eq(row), empty.eq(0), rooted.eq(1)]
            m.d.sync += full.eq(row == self._depth - 1)
        with m.Elif(seen.pop):
            m.d.sync += [row.eq(row - 1), top_row.eq(row - 2), full.eq(0), empty.eq(row == 1)]
        with m.If(seen.doctype):
            m.d.sync += typed.eq(1)
        cut = seen.end & (~seen.complete | ~empty | ~rooted)
        malformed = [
            seen.push & empty & rooted,
            seen.pop & empty,
            seen.names_end & (reader.data != self.code),
            seen.data & empty,
            seen.doctype & (~empty | rooted | typed),
            cut,
        ]
        faults = Cat(
            delayed(m, Cat(malformed)).any(),
            *(delayed(m, one) for one in (seen.unsupported, seen.unknown, seen.push & full)),
        )
        found, now = Signal(len(STATUSES)), delayed(m, faults)
        ending = later(m, seen.end, 2)
        m.d.sync += [found.eq(found | now), self.ended.eq(ending)]
        with m.If(seen.end):
            m.d.sync += [row.eq(0), empty.eq(1), full.eq(0), rooted.eq(0), typed.eq(0)]
        status = found | now
        with m.If(ending):  # after an overflow, end tags are compared with the wrong ones
            m.d.sync += self.status.eq(Cat(status[0] & ~status[-1], status[1:]))
            m.d.sync += found.eq(0)
        return m
