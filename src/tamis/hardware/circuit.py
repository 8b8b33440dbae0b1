"""The circuit: documents in, a byte a clock cycle; match bits out, one after the other (§3.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, Const, Elaboratable, Module, Signal
from amaranth.lib.wiring import Component, In, Out

from tamis.core.errors import UsageError
from tamis.hardware.columns import LAYOUTS, Columns
from tamis.hardware.lexer import Lexer
from tamis.hardware.parser import (
    STATUSES,
    ByteParser,
    Checker,
    Observation,
    encode_one_hot,
    encoding_latency,
)
from tamis.hardware.read import Path, Tables, Twig
from tamis.hardware.signals import EventBus, all_of, delayed, later
from tamis.hardware.stacks import PathStacks
from tamis.hardware.twigs import TwigStacks
from tamis.hardware.wordparser import WordFront

READOUT_MIN = 16
"""Cycles that a read-out takes at least: by then the status is there."""
DEPTHS = tuple(1 << bits for bits in range(2, 11))
"""Elements that may be open at once: the rows of a stack."""
FIELD = 3
"""Bits of a tag's code that are decoded together."""
SETTLING = 64
"""A reset takes twice so many cycles: in the first half what was read is forgotten, in the second
half the ends of documents pass that this looks like."""


class Options(NamedTuple):
    """How a circuit is built.

    Attributes:
        layout: of the stacks' columns; see :mod:`tamis.hardware.columns`.
        cluster: paths of a cluster.
        leaves: of the fan-out tree before the clusters: 0: none, one register feeds all clusters.
        parsers: whether each cluster has a parser, as in the paper, or all share one.
        outputs: whether the chip has one output, or each cluster.
        depth: elements that may be open at once.
        bytes: that are read in a cycle.
    """

    layout: Literal["plain", "folded", "shared"] = "shared"
    cluster: int = 128
    leaves: int | Literal["all"] = "all"
    parsers: Literal["one", "cluster"] = "one"
    outputs: Literal["chip", "cluster"] = "chip"
    depth: int = 16
    bytes: Literal[1, 8] = 1


DEFAULT = Options()
SYSTEMS = {
    "shared": DEFAULT,
    "wide": Options(outputs="cluster", bytes=8),
    "NONT": Options("plain", 128, 0, "cluster"),
    "WONT": Options("folded", 128, 0, "cluster"),
    "WOWT": Options("folded", 128, "all", "cluster"),
    "WOWrT": Options("folded", 64, 16, "cluster"),
}
"""The paper's four systems (§4), and the one that shares parser and columns."""


Queries = Columns | Sequence[Twig]
"""What a cluster matches: paths, as columns, or twigs."""


class Cluster(Elaboratable):
    """Paths, their stacks, and the two registers of each match.

    Attributes:
        bus: what comes from the fan-out tree.
        previous, output: the chain of the read-out. ``output`` is the first path's bit first.
        ended: one cycle before the read-out.
    """

    def __init__(self, queries: Queries, bus: int, lexer: Lexer, options: Options) -> None:
        self.bus = Signal(bus)
        self.previous, self.output, self.ended = Signal(), Signal(), Signal()
        self._queries, self._lexer, self._options = queries, lexer, options

    def elaborate(self, _: object) -> Module:
        m = Module()
        if self._options.parsers == "cluster":
            m.submodules.parser = parser = ByteParser(self._lexer)
            m.d.comb += Cat(parser.byte, parser.valid, parser.end).eq(self.bus)
            events = parser.events
        else:
            events = EventBus(len(self._lexer.tags), len(self._lexer.shown))
            code = Signal(_code_bits(self._lexer))
            facts = Signal.like(events.facts)
            push, pop, end = Signal(), Signal(), Signal()
            m.d.comb += Cat(push, pop, end, code, facts).eq(self.bus)
            m.d.sync += [events.push.eq(push), events.pop.eq(pop), events.end.eq(end)]
            m.d.sync += events.facts.eq(facts)
            m.d.comb += events.tags.eq(_decode(m, code, len(events.tags)))
        build: Any = PathStacks if isinstance(self._queries, Columns) else TwigStacks
        stacks = build(self._queries, events, self._options.depth, self._options.bytes == 1)
        m.submodules.stacks = stacks
        shadow = Signal.like(stacks.matches)
        with m.If(stacks.ending):
            m.d.sync += shadow.eq(stacks.matches)
        with m.Else():
            m.d.sync += shadow.eq(Cat(shadow, self.previous)[1:])
        m.d.sync += self.ended.eq(stacks.ending)
        m.d.comb += self.output.eq(shadow[0])
        return m


def _code_bits(lexer: Lexer) -> int:
    return max(1, (len(lexer.tags) - 1).bit_length())


def _decode(m: Module, code: Signal, count: int) -> Any:
    """A line for each code: groups of its bits are decoded, a cycle later both decide."""
    groups = []
    for low in range(0, len(code), FIELD):
        part = code[low : low + FIELD]
        lines = Signal(1 << len(part), name=f"code_{low}")
        m.d.sync += lines.eq(1 << part)
        groups.append(lines)
    return Cat(
        all_of(lines[(tag >> (FIELD * n)) % len(lines)] for n, lines in enumerate(groups))
        for tag in range(count)
    )


class Front(Elaboratable):
    """The parser, the checker, and the events with tags as numbers.

    Attributes:
        byte, valid, end: the input.
        bus: push, pop, end, code and facts, as a :class:`Cluster` takes them.
        status, ended: see :class:`tamis.hardware.parser.Checker`.
    """

    def __init__(self, lexer: Lexer, depth: int) -> None:
        self.byte, self.valid, self.end = Signal(8), Signal(), Signal()
        self.bus = Signal(3 + _code_bits(lexer) + len(lexer.shown))
        self.status, self.ended = Signal(len(STATUSES)), Signal()
        self._lexer, self._depth = lexer, depth

    def elaborate(self, _: object) -> Module:
        m = Module()
        m.submodules.parser = parser = ByteParser(self._lexer)
        m.submodules.checker = checker = Checker(len(self._lexer.tags), self._depth)
        m.d.comb += Cat(parser.byte, parser.valid, parser.end).eq(
            Cat(self.byte, self.valid, self.end)
        )
        events = parser.events
        code, seen, facts = (
            Signal(_code_bits(self._lexer)),
            Observation(),
            Signal.like(events.facts),
        )
        number, _ = encode_one_hot(m, list(events.tags))
        carried = Cat(parser.seen.all(), events.facts)
        m.d.comb += code.eq(number)
        m.d.comb += Cat(seen.all(), facts).eq(later(m, carried, encoding_latency(len(events.tags))))
        m.d.comb += [checker.seen.all().eq(seen.all()), checker.code.eq(code)]
        m.d.comb += [self.status.eq(checker.status), self.ended.eq(checker.ended)]
        m.d.comb += self.bus.eq(Cat(seen.push, seen.pop, seen.end, code, facts))
        return m


class Circuit(Component):
    """All of it. A transfer takes place in a cycle where ``valid`` and ``ready`` are set.

    Attributes:
        clk: the clock; all registers change on its rising edge, and none has a reset.
        reset: forgets the document, and what is read out. Needed once, at the beginning. Input and
            output begin when ``ready`` is high again.
        data, valid, ready: the input, a byte in a cycle.
        finish: with ``valid``, the document is over. With a byte a cycle there is none in this one.
        keep: with more bytes a cycle, which of them there are; they follow each other.
        match: with ``match_valid`` the next match bit; or the next of each cluster.
        match_last: with ``match_valid``, it is the last one, and ``status`` is the document's.
        bits: for each position of the read-out the number of a match bit; for each cluster.
    """

    def __init__(self, tables: Tables, options: Options, prefixes: Mapping[str, str]) -> None:
        if options.depth not in DEPTHS:
            raise UsageError(f"depth {options.depth}: expected a power of 2 from 4 to 1,024")
        if options.layout not in LAYOUTS or options.bytes not in (1, 8) or options.cluster < 1:
            raise UsageError(f"there is no circuit with {options}")
        if options.bytes > 1 and options.parsers == "cluster":
            raise UsageError("a circuit that reads eight bytes a cycle has one parser")
        self.options = options
        self._tags = tables.tags
        self._lexer = Lexer(tables.tags, tables.facts, prefixes)
        paths, twigs = tables.paths, tables.twigs
        order = sorted(range(len(paths)), key=lambda bit: _sort_key(paths[bit]))
        self.bits = list(_parts(order, options.cluster))
        build = LAYOUTS[options.layout]
        self._queries: list[Queries] = [build([paths[bit] for bit in part]) for part in self.bits]
        for part in _parts(range(len(twigs)), options.cluster):
            self.bits.append([len(paths) + number for number in part])
            self._queries.append([twigs[number] for number in part])
        inputs = {"clk": 1, "reset": 1, "data": 8 * options.bytes, "valid": 1, "finish": 1}
        if options.bytes > 1:
            inputs["keep"] = options.bytes
        outputs = {"ready": 1, "match": 1, "match_valid": 1, "match_last": 1}
        outputs["status"] = len(STATUSES)
        if options.outputs == "cluster":
            outputs["match"] = len(self.bits)
        ports = {name: In(width) for name, width in inputs.items()}
        super().__init__(ports | {name: Out(width) for name, width in outputs.items()})

    def elaborate(self, _: object) -> Module:
        m = Module()
        m.domains.sync = domain = ClockDomain(reset_less=True)
        m.d.comb += domain.clk.eq(self.clk)
        # The end of a document waits for the read-out of the one before, and no input follows it
        # for three cycles.
        busy, waiting, ended = Signal(), Signal(), Signal()
        settling = Signal(range(2 * SETTLING))
        with m.If(self.reset):
            m.d.sync += settling.eq(2 * SETTLING - 1)
        with m.Elif(settling.any()):
            m.d.sync += settling.eq(settling - 1)
        reset = delayed(m, settling[-1])
        taken = self.valid & self.ready
        finishes = (taken & self.finish) | waiting
        m.d.sync += [ended.eq(finishes & ~busy), waiting.eq(finishes & busy & ~reset)]
        after = delayed(m, ended)
        room: Any = Const(1)
        if self.options.bytes == 1:
            byte, valid = delayed(m, self.data), delayed(m, taken & ~self.finish)
            end = ended | delayed(m, reset)
            m.submodules.front = front = Front(self._lexer, self.options.depth)
            m.d.comb += [front.byte.eq(byte), front.valid.eq(valid), front.end.eq(end)]
            bus = Cat(byte, valid, end) if self.options.parsers == "cluster" else front.bus
        else:
            m.submodules.front = front = WordFront(self._tags, self.options.depth)
            valid = delayed(m, self.valid) & delayed(m, self.ready)  # apart: ``ready`` is slow
            keep, finish = delayed(m, self.keep), delayed(m, after)
            m.d.comb += [front.data.eq(later(m, self.data, 2)), front.finish.eq(finish)]
            m.d.sync += front.keep.eq(keep & valid.replicate(len(keep)))
            m.d.comb += front.valid.eq(delayed(m, valid) | finish)
            m.d.sync += front.reset.eq(reset)
            bus, room = front.bus, front.ready
        settled = delayed(m, ~settling.any() & ~self.reset)
        m.d.sync += self.ready.eq(room & settled & ~self.reset & ~finishes & ~ended & ~after)
        clusters = [Cluster(q, len(bus), self._lexer, self.options) for q in self._queries]
        leaves = _tree(m, bus, len(clusters), self.options.leaves)
        outputs: list[Any] = []
        following: Any = Const(0)
        for number, cluster in reversed(list(enumerate(clusters))):
            m.submodules[f"cluster_{number}"] = cluster
            m.d.comb += cluster.bus.eq(leaves[number * len(leaves) // len(clusters)])
            outputs.insert(0, cluster.output)
            if self.options.outputs == "chip":
                m.d.comb += cluster.previous.eq(following)
                following = cluster.output
        read_out = Cat(outputs) if self.options.outputs == "cluster" else outputs[0]
        m.d.sync += self.match.eq(read_out)
        self._count(m, reset, ended, clusters[0].ended, busy)
        with m.If(front.ended):
            m.d.sync += self.status.eq(front.status)
        return m

    def _count(self, m: Module, reset: Any, ended: Any, settled: Any, busy: Any) -> None:
        """Counts the bits of a read-out; until it is over, no further document may end."""
        lengths = [len(part) for part in self.bits]
        length = max(lengths) if self.options.outputs == "cluster" else sum(lengths)
        left = Signal(range(max(length, READOUT_MIN)))  # besides the one that is read out
        last, answering = Signal(), Signal()
        m.d.comb += self.match_last.eq(last)
        with m.If(self.match_valid):
            m.d.sync += [left.eq(left - 1), last.eq(left == 1), self.match_valid.eq(~last)]
        with m.If(last):
            m.d.sync += busy.eq(0)
        with m.If(settled & answering):
            m.d.sync += [left.eq(max(length, READOUT_MIN) - 1), self.match_valid.eq(1)]
            m.d.sync += answering.eq(0)
        with m.If(ended):
            m.d.sync += [busy.eq(1), answering.eq(1)]
        with m.If(reset):
            m.d.sync += [busy.eq(0), answering.eq(0), last.eq(0), self.match_valid.eq(0)]

    def rtlil(self) -> str:
        """The circuit for Yosys."""
        text: str = rtlil.convert(self, name="tamis", emit_src=False)
        return text


class Node(Elaboratable):
    """A node of the fan-out tree: a register, in a module of its own so that none are merged."""

    def __init__(self, width: int) -> None:
        self.input, self.output = Signal(width), Signal(width)

    def elaborate(self, _: object) -> Module:
        m = Module()
        m.d.sync += self.output.eq(self.input)
        return m


def _tree(m: Module, bus: Any, clusters: int, leaves: int | str) -> list[Any]:
    """The leaves of a binary tree of registers, or one register."""
    wanted = clusters if leaves == "all" else max(1, min(int(leaves), clusters))
    level = [bus]
    count = 1
    while True:
        nodes = [Node(len(bus)) for _ in range(count)]
        for number, node in enumerate(nodes):
            m.submodules[f"fanout_{count}_{number}"] = node
            m.d.comb += node.input.eq(level[number * len(level) // count])
        level = [node.output for node in nodes]
        if count == wanted:
            return level
        count = min(wanted, 2 * count)


def _parts(numbers: Sequence[int], size: int) -> Iterator[list[int]]:
    for first in range(0, len(numbers), size):
        yield list(numbers[first : first + size])


def _sort_key(path: Path) -> Any:
    return [(step.below, step.tags or (), step.facts) for step in path]
