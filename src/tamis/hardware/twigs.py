"""Twigs in hardware: what is below an element is gathered in its row, until it ends.

The paper leaves twigs to future work. As in the engine ``stacks``, a node of a twig holds at an
element by what holds below it, so a row is written when an element ends (Absalyamov et al.,
*High-performance XML twig filtering using GPUs*, 2013, call it the pop stack).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Elaboratable, Module, Signal
from amaranth.lib.memory import Memory

from tamis.hardware.read import Twig
from tamis.hardware.signals import EventBus, all_of, any_of
from tamis.hardware.stacks import end_of
from tamis.matching.engines.stacks.read import CHILD, DESCENDANT, FACT, GROUP, NEVER


class Node(NamedTuple):
    """A node with all that is below it; equal nodes of several twigs are one.

    Attributes:
        kind: see :mod:`tamis.matching.engines.stacks.read`.
        tags: of the element, one of these; None: any.
        fact: of a FACT.
        below: what else must hold: each node, and whether it is negated.
    """

    kind: int
    tags: tuple[int, ...] | None
    fact: int
    below: tuple[tuple[Node, bool], ...]


def root_of(twig: Twig) -> Node:
    """The node of the document, with all that is below it.

    >>> from tamis.hardware.read import read_queries
    >>> from tamis.language.xpath import parse
    >>> root, = map(root_of, read_queries([parse("//a[not(b)][c]")]).twigs)
    >>> [(node.tags, negated) for node, negated in root.below[0][0].below]
    [((1,), True), ((2,), False)]
    """
    children: list[list[tuple[Node, bool]]] = [[] for _ in twig]
    for number in range(len(twig) - 1, -1, -1):
        node = twig[number]
        below = tuple(sorted(children[number], key=repr))
        made = Node(node.kind, node.tags, node.fact, below)
        if number:
            children[node.parent].append((made, node.negated))
    return _at_document(made)


def _at_document(node: Node) -> Node:
    """What a node asks of the document, which is no element and has no attributes."""
    if node.kind in (CHILD, DESCENDANT):
        return node
    if node.kind != GROUP:
        return node._replace(kind=NEVER, tags=None, below=())
    return node._replace(below=tuple((_at_document(one), no) for one, no in node.below))


class TwigStacks(Elaboratable):
    """The stacks of a cluster of twigs: the row on top is in registers, the others in LUT-RAM.

    Attributes:
        events: what is matched. With ``pop`` there is the tag of the element that ends.
        matches: with ``ending``, a bit for each twig.
    """

    def __init__(
        self, twigs: Sequence[Twig], events: EventBus, depth: int = 16, spaced: bool = False
    ) -> None:
        self.events = events
        self.matches = Signal(len(twigs))
        self.ending = Signal()
        self._roots = [root_of(twig) for twig in twigs]
        self._depth = depth
        self._spaced = spaced
        self._columns: dict[Node, int] = {}
        self._facts: dict[int, int] = {}
        for root in self._roots:
            self._number(root)

    def _number(self, node: Node) -> None:
        """Give the nodes about other elements a column, and the facts."""
        for below, _ in node.below:
            if below.kind in (CHILD, DESCENDANT):
                self._columns.setdefault(below, len(self._columns))
            elif below.kind == FACT:
                self._facts.setdefault(below.fact, len(self._facts))
            self._number(below)

    def elaborate(self, _: object) -> Module:
        m = Module()
        events = self.events
        row, push, pop = Signal(range(self._depth)), Signal(), Signal()
        m.d.sync += [push.eq(events.push), pop.eq(events.pop)]
        m.d.comb += self.ending.eq(end_of(m, events, self._spaced))
        self._tags, facts = Signal.like(events.tags), Signal.like(events.facts)
        m.d.sync += [self._tags.eq(events.tags), facts.eq(events.facts)]
        below = Signal(range(self._depth))  # the row under the one on top
        with m.If(push):
            m.d.sync += [row.eq(row + 1), below.eq(row)]
        with m.Elif(pop):
            m.d.sync += [row.eq(row - 1), below.eq(row - 2)]
        with m.If(self.ending):
            m.d.sync += row.eq(0)
        self._found = Signal(len(self._columns))
        self._shown = Signal(len(self._facts))
        top = Cat(self._found, self._shown, Const(0, 1))  # no memory is empty
        m.submodules.rows = memory = Memory(shape=len(top), depth=self._depth, init=[])
        port, reader = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [port.addr.eq(row), port.data.eq(top), port.en.eq(push)]
        m.d.comb += reader.addr.eq(below)
        gathered = [
            reader.data[bit] | self._holds(node) | (self._found[bit] & (node.kind == DESCENDANT))
            for node, bit in self._columns.items()
        ]
        with m.If(pop):
            m.d.sync += self._found.eq(Cat(gathered))
            m.d.sync += self._shown.eq(reader.data[len(self._found) : -1])
        with m.Elif(push):
            m.d.sync += self._shown.eq(Cat(facts[fact] for fact in self._facts))
        with m.If(push | self.ending):
            m.d.sync += self._found.eq(0)
        m.d.comb += self.matches.eq(Cat(self._holds(root) for root in self._roots))
        return m

    def _holds(self, node: Node) -> Any:
        """Whether a node holds at the element on top, which ends."""
        parts = [self._passes(below) ^ Const(negated, 1) for below, negated in node.below]
        if node.tags is not None:
            parts.append(any_of(self._tags[tag] for tag in node.tags))
        return all_of(parts)

    def _passes(self, node: Node) -> Any:
        """Whether the element on top has what a node asks."""
        if node.kind in (CHILD, DESCENDANT):
            return self._found[self._columns[node]]
        if node.kind == FACT:
            return self._shown[self._facts[node.fact]]
        return Const(0, 1) if node.kind == NEVER else self._holds(node)
