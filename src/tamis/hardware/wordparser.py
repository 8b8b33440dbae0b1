"""Eight bytes a clock cycle → start tags and end tags, at most one of them a cycle.

Where tags are dense, there are more of them than words. So words wait in a queue, and ``ready`` is
low while it is long. Names and the ``>`` of tags are taken from a word one a cycle. A name is
compared with the alphabet where it ends, since the bytes before it are always there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_
from typing import Any

from amaranth.hdl import Array, Cat, Elaboratable, Module, Mux, ResetInserter, Signal
from amaranth.lib.fifo import SyncFIFO

from tamis.hardware.parser import STATUSES, Checker, Observation, number_latency, number_of
from tamis.hardware.stacks import delayed, later
from tamis.hardware.wordlexer import Marks, WordLexer
from tamis.hardware.words import LANES, Word

WORDS = 32
"""Words that may wait."""
WORDS_READY = WORDS - WordLexer.LATENCY - 8
"""With fewer of them, the input is taken: those in the lexer have a place."""
STEPS = 16
"""Ends of tags that may wait."""


class Aligner(Elaboratable):
    """Input with gaps → words that are full.

    Attributes:
        data, keep: the bytes, and which of them there are; they follow each other.
        valid, finish: as in the circuit. ``finish`` must be followed by two cycles without input.
        word: the words, 3 cycles later.
    """

    def __init__(self) -> None:
        self.data, self.keep = Signal(8 * LANES), Signal(LANES)
        self.valid, self.finish, self.reset = Signal(), Signal(), Signal()
        self.word = Word.empty()

    def elaborate(self, _: object) -> Module:
        m = Module()
        count, first = Signal(range(LANES + 1)), Signal(range(LANES))
        m.d.sync += count.eq(reduce(lambda a, b: a + b, (self.keep[k] for k in range(LANES))))
        for lane in reversed(range(LANES)):
            with m.If(self.keep[lane] & ~self.keep[:lane].any()):
                m.d.sync += first.eq(lane)
        valid, finish, data = (delayed(m, one) for one in (self.valid, self.finish, self.data))
        carried = Signal(range(LANES))  # bytes that are left of the words before
        with m.If(valid):
            m.d.sync += carried.eq(Mux(finish, 0, (carried + count)[:3]))
        with m.If(self.reset):
            m.d.sync += carried.eq(0)
        turn = delayed(m, (carried - first)[:3])
        low, high = delayed(m, carried), delayed(m, carried + count)
        valid, finish, data = (delayed(m, one) for one in (valid, finish, data))
        turned = Array(
            Cat(data[8 * (LANES - by) :], data[: 8 * (LANES - by)]) for by in range(LANES)
        )[turn]
        self._collect(m, turned, (low, high), valid, finish)
        return m

    def _collect(self, m: Module, turned: Any, span: Any, valid: Any, finish: Any) -> None:
        """Fill a word with the bytes that are left, and the new ones from ``low`` to ``high``."""
        low, high = span
        word, rest = self.word, Signal(8 * LANES)
        new = Signal(8 * LANES)
        m.d.comb += new.eq(turned)
        filled = Cat(lane < high for lane in range(LANES))
        merged = Cat(
            Mux(lane < low, rest.word_select(lane, 8), new.word_select(lane, 8))
            for lane in range(LANES)
        )
        begins, flushes, left = Signal(init=1), Signal(), Signal(LANES)
        is_full = high >= LANES
        m.d.sync += [word.valid.eq(0), flushes.eq(0), word.first.eq(begins)]
        with m.If(valid):
            m.d.sync += rest.eq(Mux(is_full, new, merged))
            m.d.sync += left.eq(Cat(lane + LANES < high for lane in range(LANES)))
            m.d.sync += [word.data.eq(merged), word.filled.eq(filled)]
            m.d.sync += [word.valid.eq(is_full | finish), flushes.eq(finish & (high > LANES))]
            m.d.sync += word.finish.eq(finish & (high <= LANES))
            with m.If(is_full | finish):
                m.d.sync += begins.eq(finish & (high <= LANES))
        with m.If(flushes):
            m.d.sync += [word.data.eq(rest), word.filled.eq(left), word.valid.eq(1)]
            m.d.sync += [word.finish.eq(1), begins.eq(1)]
        with m.If(self.reset):
            m.d.sync += [begins.eq(1), flushes.eq(0), word.valid.eq(0)]


class Serializer(Elaboratable):
    """Marks of words → the end of a tag a cycle, with its name if that ends in the same word.

    Attributes:
        valid, word, marks: the next word; ``taken``: it is taken in this cycle.
        stalled: take nothing.
        step: what follows is new.
        name, closing, data, doctype: a name ends, it is that of an end tag, there was data or a
            document type since the one before; ``text``: the bytes before its end, the last first.
        tag, empty: after the name, a tag ends; it is an empty-element tag.
        finish, unsupported, complete: the document ends, after this; ``last_data``: after data.
    """

    def __init__(self, length: int) -> None:
        self.valid, self.word = Signal(), Word.empty()
        self.marks = Marks.empty_word()
        self.taken, self.stalled, self.reset = Signal(), Signal(), Signal()
        self.name, self.closing, self.data, self.doctype = (Signal() for _ in range(4))
        self.tag, self.empty, self.step = Signal(), Signal(), Signal()
        self.finish, self.unsupported, self.complete = Signal(), Signal(), Signal()
        self.last_data = Signal()
        self.text = [Signal(8, name=f"back_{place}") for place in range(length)]

    def elaborate(self, _: object) -> Module:
        m = Module()
        head, marks = Word.empty(), Marks(*(Signal.like(one) for one in self.marks))
        full, faulty = Signal(), Signal()
        names, tags = Signal(LANES), Signal(LANES)
        tag = _lowest(tags)
        until = Signal(LANES)  # lanes up to that of the end of the tag; all, if there is none
        m.d.comb += until.eq(tag | (tag - 1))
        name = _lowest(names) & until
        more_names, more_tags = names & ~name, tags & ~tag
        is_last = ~more_names.any() & ~more_tags.any()
        goes = full & ~self.stalled
        ends = goes & is_last & head.finish
        m.d.comb += self.taken.eq(self.valid & (~full | (goes & is_last)))
        m.d.sync += [
            self.step.eq(goes & (name.any() | tag.any() | ends)),
            self.name.eq(name.any()),
            self.closing.eq((marks.closing & name).any()),
            self.tag.eq(tag.any()),
            self.empty.eq((marks.empty & tag).any()),
            self.finish.eq(ends),
            self.unsupported.eq(faulty | marks.unsupported),
            self.complete.eq(marks.complete),
        ]
        with m.If(goes):
            m.d.sync += [names.eq(more_names), tags.eq(more_tags), full.eq(~is_last)]
            m.d.sync += faulty.eq((faulty | marks.unsupported) & ~ends)
        self._gather(m, goes, ends, name, marks)
        count = -(-len(self.text) // LANES) + 1
        history = [Signal(8 * LANES, name=f"history_{k}") for k in range(count)]
        with m.If(goes & is_last):
            shifted = zip(history, [head.data, *history], strict=False)
            m.d.sync += [one.eq(two) for one, two in shifted]
        with m.If(self.taken):
            m.d.sync += [one.eq(two) for one, two in zip(head, self.word, strict=True)]
            m.d.sync += [one.eq(two) for one, two in zip(marks, self.marks, strict=True)]
            m.d.sync += [full.eq(1), names.eq(self.marks.names), tags.eq(self.marks.tags)]
        with m.If(self.reset):
            m.d.sync += [full.eq(0), faulty.eq(0)]
        self._select(m, name, Cat(*reversed(history), head.data), count)
        return m

    def _gather(self, m: Module, goes: Any, ends: Any, name: Any, marks: Marks) -> None:
        """What there was before a name, since the one before it; or before the document's end."""
        doctype, data = Signal(), Signal()  # in words before this one, or in what was taken of it
        before = Signal(LANES)  # lanes before the name; all, if there is none
        m.d.comb += before.eq(name - 1)
        has_data = data | (marks.data & before).any()
        has_doctype = doctype | marks.doctype
        rest = marks.data & ~before
        m.d.sync += [self.data.eq(has_data), self.doctype.eq(has_doctype)]
        m.d.sync += self.last_data.eq(Mux(name.any(), rest.any(), has_data))
        with m.If(goes):
            m.d.sync += [data.eq(~name.any() & has_data), marks.data.eq(rest)]
            m.d.sync += [doctype.eq(~name.any() & has_doctype), marks.doctype.eq(0)]
        with m.If(self.taken & goes):
            m.d.sync += data.eq(Mux(name.any(), rest.any(), has_data))
        with m.If(ends | self.reset):
            m.d.sync += [data.eq(0), doctype.eq(0)]

    def _select(self, m: Module, name: Any, window: Any, count: int) -> None:
        """The bytes before the end of a name, a cycle later."""
        lane = Signal(range(LANES))
        codes = (name[k].replicate(3) & k for k in range(LANES))
        m.d.sync += lane.eq(reduce(or_, codes))
        held = delayed(m, window)
        for place, byte in enumerate(self.text):
            choices = (held.word_select(LANES * count + k - 1 - place, 8) for k in range(LANES))
            m.d.comb += byte.eq(Array(choices)[lane])


class Names(Elaboratable):
    """The tags of names, by comparing the bytes before their ends with the alphabet.

    The characters of a place are decoded once for all tags, as in the paper's decoder.

    Attributes:
        text: the bytes before the end of a name, the last first.
        closing: it is that of an end tag, so there is a ``/`` before it.
        code, known: the number of the tag, and whether there is one, ``latency`` cycles later.
    """

    def __init__(self, tags: Sequence[str]) -> None:
        self._tags = [tag.encode() for tag in tags]
        self.length = max(map(len, self._tags), default=0) + 1
        self.text = [Signal(8, name=f"text_{place}") for place in range(self.length)]
        self.closing = Signal()
        self.code, self.known = Signal(range(max(len(tags), 2))), Signal()
        self.latency = 2 + number_latency(len(tags))

    def elaborate(self, _: object) -> Module:
        m = Module()
        lines: dict[tuple[int, int], Any] = {}

        def line(place: int, byte: int) -> Any:
            if (place, byte) not in lines:
                lines[place, byte] = delayed(m, self.text[place] == byte)
            return lines[place, byte]

        closing = delayed(m, self.closing)
        begins = [
            Mux(closing, line(size, ord("/")), line(size, ord("<"))) for size in range(self.length)
        ]
        hits = []
        for tag in self._tags:
            parts = [line(place, byte) for place, byte in enumerate(reversed(tag))]
            hits.append(delayed(m, reduce(and_, [*parts, begins[len(tag)]])))
        code, known = number_of(m, hits)
        m.d.comb += [self.code.eq(code), self.known.eq(known)]
        return m


class WordFront(Elaboratable):
    """The parser of eight bytes a cycle, the checker, and the events with tags as numbers.

    Attributes:
        data, keep, valid, finish, reset: the input.
        ready: there is room for input.
        bus, status, ended: see :class:`tamis.hardware.circuit.Front`.
    """

    def __init__(self, tags: Sequence[str], depth: int) -> None:
        self.data, self.keep = Signal(8 * LANES), Signal(LANES)
        self.valid, self.finish, self.reset = Signal(), Signal(), Signal()
        self.ready = Signal()
        self._names = Names(tags)
        self._checker = Checker(len(tags), depth)
        self.bus = Signal(3 + len(self._checker.code))
        self.status, self.ended = Signal(len(STATUSES)), Signal()

    def elaborate(self, _: object) -> Module:
        m = Module()
        m.submodules.aligner = aligner = Aligner()
        m.submodules.lexer = lexer = WordLexer()
        m.submodules.serializer = serializer = Serializer(self._names.length)
        m.submodules.names = names = self._names
        for part in (aligner, lexer, serializer):
            m.d.comb += part.reset.eq(self.reset)
        m.d.comb += [aligner.data.eq(self.data), aligner.keep.eq(self.keep)]
        m.d.comb += [aligner.valid.eq(self.valid), aligner.finish.eq(self.finish)]
        m.d.comb += [one.eq(two) for one, two in zip(lexer.input, aligner.word, strict=True)]
        queue = self._queue(m, "words", 8 * LANES + 1 + 5 * LANES + 3, WORDS)
        word = lexer.word
        m.d.comb += queue.w_data.eq(Cat(word.data, word.finish, *lexer.marks))
        m.d.comb += queue.w_en.eq(word.valid)
        m.d.comb += [serializer.valid.eq(queue.r_rdy), queue.r_en.eq(serializer.taken)]
        given = Cat(serializer.word.data, serializer.word.finish, *serializer.marks)
        m.d.comb += given.eq(queue.r_data)
        m.d.sync += self.ready.eq(queue.w_level < WORDS_READY)
        m.d.comb += [one.eq(two) for one, two in zip(names.text, serializer.text, strict=True)]
        m.d.comb += names.closing.eq(serializer.closing)
        self._issue(m, serializer, names)
        return m

    def _queue(self, m: Module, name: str, width: int, depth: int) -> Any:
        queue = SyncFIFO(width=width, depth=depth)
        m.submodules[name] = ResetInserter(self.reset)(queue)
        return queue

    def _issue(self, m: Module, serializer: Serializer, names: Names) -> None:
        """Steps → events: for each end of a tag one, or two if the element is empty."""
        flags = [serializer.name, serializer.closing, serializer.data, serializer.doctype]
        flags += [serializer.tag, serializer.empty, serializer.finish, serializer.unsupported]
        flags += [serializer.complete, serializer.last_data]
        steps = self._queue(m, "steps", len(flags) + 1 + len(names.code), STEPS)
        about = later(m, Cat(flags), names.latency)
        m.d.comb += steps.w_data.eq(Cat(about, names.known, names.code))
        m.d.comb += steps.w_en.eq(later(m, serializer.step, names.latency))
        m.d.sync += serializer.stalled.eq(steps.w_level >= STEPS - names.latency - 4)
        fields = {name: Signal(name=f"step_{name}") for name in _STEP}
        code, held = Signal.like(names.code), Signal(4 + len(names.code))
        m.d.comb += Cat(*fields.values(), code).eq(steps.r_data)
        tag, empty, finish = fields["tag"], fields["empty"], fields["finish"]
        current = Signal.like(held)
        about_name = [fields[one] for one in ("closing", "data", "doctype", "known")]
        m.d.comb += current.eq(Mux(fields["name"], Cat(about_name, code), held))
        is_end, has_data, has_doctype, is_known, number = (
            current[0],
            current[1],
            current[2],
            current[3],
            current[4:],
        )
        opened, tagged = Signal(), Signal()  # its start was issued; all but its end of a document
        issues = steps.r_rdy & tag & ~tagged
        starts = issues & ~is_end & ~opened
        more = (starts & empty) | (issues & finish)
        ends = steps.r_rdy & finish & (~tag | tagged)
        m.d.comb += steps.r_en.eq(steps.r_rdy & ~more)
        m.d.sync += [opened.eq(starts & empty), tagged.eq(issues & finish & ~(starts & empty))]
        with m.If(steps.r_rdy):
            m.d.sync += held.eq(current)
        seen, out = Observation(), Signal.like(code)
        m.d.sync += [
            seen.push.eq(starts),
            seen.pop.eq(issues & ~starts),
            seen.end.eq(ends),
            seen.names_end.eq(issues & is_end),
            seen.data.eq(Mux(ends, fields["last_data"], issues & has_data & ~opened)),
            seen.doctype.eq(issues & has_doctype & ~opened),
            seen.unknown.eq(issues & ~is_known),
            seen.unsupported.eq(ends & fields["unsupported"]),
            seen.complete.eq(fields["complete"]),
            out.eq(number),
        ]
        m.submodules.checker = checker = self._checker
        m.d.comb += [checker.seen.all().eq(seen.all()), checker.code.eq(out)]
        m.d.comb += [self.status.eq(checker.status), self.ended.eq(checker.ended)]
        m.d.comb += self.bus.eq(Cat(seen.push, seen.pop, seen.end, out))


_STEP = (
    *("name", "closing", "data", "doctype", "tag", "empty", "finish", "unsupported"),
    *("complete", "last_data", "known"),
)


def _lowest(bits: Any) -> Any:
    """The lowest bit that is set."""
    return Cat(bits[k] & ~bits[:k].any() if k else bits[0] for k in range(len(bits)))
