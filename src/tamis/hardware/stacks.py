"""Columns → stacks in hardware: a start tag pushes a row of bits, an end tag pops it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Signal
from amaranth.lib.memory import Memory

from tamis.hardware.columns import ANYWHERE, FIRST, INSIDE, ROOT, Columns, Term
from tamis.hardware.signals import EventBus, all_of, any_of, delayed, later


def end_of(m: Module, events: EventBus, spaced: bool) -> Signal:
    """When a cluster's matches are complete: all clusters read them out together.

    If events are spaced, a match may be seen in the row that was written, two cycles later.
    """
    end = delayed(m, events.end)
    return later(m, end, 2 * spaced)


class PathStacks(Elaboratable):
    """The stacks of a cluster, as one memory of LUT-RAM with a row for each open element.

    The depth is counted one cycle ahead: tags arrive at the columns together with where they are
    (in the root's place, or inside), so that a column is one LUT.

    Args:
        columns: of the stacks.
        events: what is matched.
        depth: rows.
        spaced: whether a start tag comes at least three cycles after the event before it, as with a
            byte a cycle. Then the row on top is read into registers. Otherwise there can be an
            event in each cycle.

    Attributes:
        events: what is matched.
        matches: a bit for each path, set from its first match until the document is over.
        ending: the matches are complete; in the next cycle, they are zero.
    """

    def __init__(
        self, columns: Columns, events: EventBus, depth: int = 16, spaced: bool = False
    ) -> None:
        self.events = events
        self.matches = Signal(len(columns.matches))
        self.ending = Signal()
        self._columns = columns
        self._depth = depth
        self._spaced = spaced

    def elaborate(self, _: object) -> Module:
        m = Module()
        bits = (self._depth - 1).bit_length()
        events = self.events
        write = Signal(bits)  # the row after the one on top, at the next event
        inside, first = Signal(), Signal()
        with m.If(events.push):
            m.d.sync += [write.eq(write + 1), inside.eq(1), first.eq(~inside)]
        with m.Elif(events.pop):
            m.d.sync += [write.eq(write - 1), inside.eq(write != 1), first.eq(write == 2)]
        with m.If(events.end):
            m.d.sync += [write.eq(0), inside.eq(0), first.eq(0)]
        # All of what follows is one cycle later.
        row, top_row, push = Signal(bits), Signal(bits), Signal()
        m.d.sync += [row.eq(write), top_row.eq(write - 1), push.eq(events.push)]
        m.d.comb += self.ending.eq(end_of(m, events, self._spaced))
        self._at = {ANYWHERE: Const(1), INSIDE: inside, FIRST: first, ROOT: ~inside}
        self._lines: dict[tuple[int, int | None], Signal] = {}
        self._m = m
        self._facts = Signal.like(events.facts)
        m.d.sync += self._facts.eq(events.facts)
        self._open_tags = (
            self._stack("tags", self._all_tags(), row, top_row, push)
            if self._columns.uses_top()
            else None
        )
        self._top = Signal(len(self._columns.columns))
        data = Cat(self._next(number) for number in range(len(self._columns.columns)))
        if len(data):
            m.d.comb += self._top.eq(self._stack("columns", data, row, top_row, push))
        if self._columns.stored:
            settled = later(m, push, 2)
            hits = Cat(self._top[term.source] for term in self._columns.matches)
        else:
            settled = push
            hits = Cat(self._term(term) for term in self._columns.matches)
        with m.If(settled):
            m.d.sync += self.matches.eq(self.matches | hits)
        with m.If(self.ending):
            m.d.sync += self.matches.eq(0)
        return m

    def _all_tags(self) -> Any:
        return Cat(self._line(ANYWHERE, tag) for tag in range(len(self.events.tags)))

    def _stack(self, name: str, data: Any, row: Any, top_row: Any, push: Any) -> Signal:
        """The row on top of a stack onto which ``data`` are pushed."""
        memory = Memory(shape=len(data), depth=self._depth, init=[])
        self._m.submodules[name] = memory
        port, reader = memory.write_port(), memory.read_port(domain="comb")
        self._m.d.comb += [port.addr.eq(row), port.data.eq(data), port.en.eq(push)]
        self._m.d.comb += reader.addr.eq(top_row)
        return delayed(self._m, reader.data) if self._spaced else reader.data

    def _line(self, where: int, tag: int | None) -> Any:
        """A register: the new element has a tag (None: any), and is where a source says."""
        line = self._lines.get((where, tag))
        if line is None:
            line = self._lines[where, tag] = Signal(name=f"tag_{tag}_{where % 8}")
            is_tag = self.events.tags[tag] if tag is not None else Const(1)
            self._m.d.sync += line.eq(is_tag & self._at[where])
        return line

    def _term(self, term: Term) -> Any:
        source = INSIDE if term.source >= 0 else term.source
        tags = (None,) if term.tags is None else term.tags
        parts = [any_of(self._line(source, tag) for tag in tags)]
        if term.tags is None and source == ANYWHERE:
            parts = [Const(1)]
        if term.source >= 0:
            parts.append(self._top[term.source])
        if term.top is not None:
            assert self._open_tags is not None
            parts.append(any_of(self._open_tags[tag] for tag in term.top))
        parts += [self._facts[fact] for fact in term.facts]
        return all_of(parts)

    def _next(self, number: int) -> Any:
        column = self._columns.columns[number]
        terms = [self._term(term) for term in column.terms]
        if column.keeps:
            terms.append(self._top[number] & self._line(INSIDE, None))
        return any_of(terms)
