"""Eight bytes a clock cycle → start tags and end tags, at most one of them a cycle.

Where tags are dense, there are more of them than words. So words wait in a queue, and ``ready`` is
low while it is long. Names and the ``>`` of tags are taken from a word one a cycle. A name is
compared with the alphabet where it ends, since the bytes before it are always there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

from amaranth.hdl import Array, Cat, Const, Elaboratable, Module, Mux, Signal
from amaranth.lib.memory import Memory

from tamis.hardware.parser import STATUSES, Checker, Observation, encode_one_hot, encoding_latency
from tamis.hardware.signals import all_of, any_of, delayed, later
from tamis.hardware.wordlexer import Marks, WordLexer
from tamis.hardware.words import LANES, Word

WORDS = 64
"""Words that may wait, or be on their way to where they wait."""
WAITING = 16
"""Ends of tags that may wait."""
STOPPING = 7
"""Ends of tags that leave the serializer while their queue stops it."""
TAG_ENDS = 4
"""Ends of tags in a word, and of a name after them: ``<><><><>``, or ``><><><a `` have so many."""
FINDING = 4
"""The cycles of :func:`find_tag_ends`."""
COUNTING = 10
"""Words that are taken while the count of words makes ``ready`` low: one in each of nine cycles,
and one for the end of a document."""
WORDS_READY = WORDS - 1 - COUNTING
"""With fewer of them, the input is taken."""


class Aligner(Elaboratable):
    """Input with gaps → words that are full.

    Attributes:
        data, keep: the bytes, and which of them there are; they follow each other.
        valid, finish: as in the circuit. With ``finish`` there are no bytes.
        word: the words, 5 cycles later.
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
        for bits, unit in ((turn[:2], 1), (delayed(m, turn[2:]), 4)):
            steps = [8 * unit * k for k in range(1 << len(bits))]
            turns = [Cat(data[8 * LANES - k :], data[: 8 * LANES - k]) for k in steps]
            data = delayed(m, Array(turns)[bits])
        below = Array(Const((1 << limit) - 1, 2 * LANES) for limit in range(2 * LANES))
        old, filled = later(m, below[low], 2), later(m, below[high][:LANES], 2)
        valid, finish = later(m, valid, 2), later(m, finish, 2)
        self._collect(m, data, old, filled, valid, finish)
        return m

    def _collect(self, m: Module, new: Any, old: Any, filled: Any, valid: Any, finish: Any) -> None:
        """Fill a word with the bytes that are left in the lanes ``old``, and the new ones."""
        word, rest = self.word, Signal(8 * LANES)
        merged = Cat(
            Mux(old[lane], rest.word_select(lane, 8), new.word_select(lane, 8))
            for lane in range(LANES)
        )
        begins, is_full = Signal(), filled[LANES - 1]
        with m.If(valid):
            m.d.sync += rest.eq(Mux(is_full, new, merged))
        leaves = valid & (is_full | finish) & ~self.reset
        m.d.sync += [word.data.eq(merged), word.filled.eq(filled), word.first.eq(begins)]
        m.d.sync += [word.finish.eq(finish), word.valid.eq(leaves)]
        with m.If(leaves | self.reset):
            m.d.sync += begins.eq(finish | self.reset)


class TagEnd(NamedTuple):
    """The end of a tag in a word, or of a name after all of them.

    Attributes:
        name, closing: the name of the tag ends in this word, and is that of an end tag.
        lane: of the byte after the name.
        data: between the tag before and this one there is character data in this word.
        tag, empty: the tag ends in this word, and is an empty-element tag.
        is_last: there is no further step in this word.
    """

    name: Any
    closing: Any
    lane: Any
    data: Any
    tag: Any
    empty: Any
    is_last: Any

    @classmethod
    def signals(cls) -> TagEnd:
        """Signals for a step."""
        return cls(*(Signal(3 if name == "lane" else 1, name=name) for name in cls._fields))


class TagEnds(NamedTuple):
    """A word with its steps.

    Attributes:
        data: its bytes.
        steps: at most so many as ``TAG_ENDS`` says. The first may be none, without a name or a tag.
        rest: after the last name there is character data.
        doctype, unsupported, complete: see :class:`tamis.hardware.wordlexer.Marks`.
        finish: the document ends.
    """

    data: Any
    steps: list[TagEnd]
    rest: Any
    doctype: Any
    unsupported: Any
    complete: Any
    finish: Any

    @classmethod
    def empty_word(cls) -> TagEnds:
        """Signals for a word."""
        steps = [TagEnd.signals() for _ in range(TAG_ENDS)]
        return cls(Signal(8 * LANES), steps, *(Signal(name=name) for name in cls._fields[2:]))

    def all(self) -> Any:
        steps = (field for step in self.steps for field in step)
        return Cat(self.data, *steps, *self[2:])


def find_tag_ends(m: Module, word: Word, marks: Marks) -> tuple[Any, TagEnds]:
    """The steps of a word, ``FINDING`` cycles later: which lanes belong to the tag with a number.

    Names and ends of tags alternate. So a name, and the data before it, belong to the tag whose
    number is that of the ends of tags before them.
    """
    ranks = _all_ranks(m, marks.tags)
    of = [delayed(m, Cat(rank[number] for rank in ranks[:LANES])) for number in range(TAG_ENDS)]
    total = delayed(m, Cat(ranks[LANES]))
    names, closing, tags, empty, data = (later(m, one, 2) for one in marks[:5])
    steps = []
    for number in range(TAG_ENDS):
        name, tag = names & of[number], tags & of[number]
        lane = (name[k].replicate(3) & k for k in range(LANES))
        steps.append(
            TagEnd(
                delayed(m, name.any()),
                delayed(m, (name & closing).any()),
                delayed(m, any_of(lane)),
                delayed(m, (data & of[number]).any()),
                delayed(m, tag.any()),
                delayed(m, (tag & empty).any()),
                Const(0),
            )
        )
    counted = delayed(m, total)  # a line for each number of tags
    after = [counted[number] & steps[number].name for number in range(TAG_ENDS)]
    count_is = [
        (counted[number] & ~after[number] if number < TAG_ENDS else counted[number])
        | (after[number - 1] if number else Const(0))
        for number in range(TAG_ENDS + 1)
    ]
    lasts = [count_is[0] | count_is[1], *count_is[2:]]
    rest = any_of(counted[k] & steps[k].data & ~steps[k].name for k in range(TAG_ENDS))
    found = [
        TagEnd(*[delayed(m, field) for field in (*step[:-1], last)])
        for step, last in zip(steps, lasts, strict=True)
    ]
    others = [marks.doctype, marks.unsupported, marks.complete, word.finish]
    result = TagEnds(
        later(m, word.data, FINDING),
        found,
        delayed(m, rest),
        *(later(m, one, FINDING) for one in others),
    )
    return later(m, word.valid, FINDING), result


def _all_ranks(m: Module, bits: Any) -> list[list[Any]]:
    """The ranks of the bits before each lane, and of all of them, a cycle later: from halves."""
    half = LANES // 2
    low, high = (
        [[delayed(m, one) for one in _ranks(part[:count])] for count in range(half + 1)]
        for part in (bits[:half], bits[half:])
    )
    both = [
        [
            any_of(low[half][k] & rank[number - k] for k in range(number + 1))
            for number in range(TAG_ENDS + 1)
        ]
        for rank in high[1:]
    ]
    return low + both


def _ranks(bits: Any) -> list[Any]:
    """For each number up to ``TAG_ENDS`` whether so many bits are set."""
    ranks: list[Any] = [Const(1, 1)] + [Const(0, 1)] * TAG_ENDS
    for bit in bits:
        ranks = [
            (rank & ~bit) | (before & bit)
            for rank, before in zip(ranks, [Const(0, 1), *ranks], strict=False)
        ]
    return ranks


class Serializer(Elaboratable):
    """Words with steps → a step a cycle.

    Attributes:
        valid, word: the next word; ``free``: if there is one, it is taken.
        stalls: do nothing in the next cycle.
        goes: what follows is new.
        step: its fields; ``data``, ``doctype``: there was some since the name before, or before
            the end of the document.
        text: the bytes before the end of the name, the last first.
        finish, unsupported, complete: the document ends after this step.
    """

    def __init__(self, length: int) -> None:
        self.valid, self.word = Signal(), TagEnds.empty_word()
        self.free, self.stalls, self.reset = Signal(), Signal(), Signal()
        self.goes, self.step = Signal(), TagEnd.signals()
        self.data, self.doctype, self.last_data = Signal(), Signal(), Signal()
        self.finish, self.unsupported, self.complete = Signal(), Signal(), Signal()
        self.text = [Signal(8, name=f"back_{place}") for place in range(length)]

    def elaborate(self, _: object) -> Module:
        m = Module()
        head = TagEnds.empty_word()
        full, at = Signal(), Signal(TAG_ENDS)
        step = TagEnd(
            *(
                any_of(at[k].replicate(len(one[k])) & one[k] for k in range(TAG_ENDS))
                for one in zip(*head.steps, strict=True)
            )
        )
        # A bit for each step from this one on: it is the last of its word.
        lasts, stalled, is_end = Signal(TAG_ENDS), delayed(m, self.stalls), Signal()
        is_last = lasts[0]
        goes = full & ~stalled
        leaves, ends = goes & is_last, goes & is_end
        # Whether a word can be taken is decided a cycle before: the way to its registers is long.
        taken, next_full, next_last = self.valid & self.free, Signal(), Signal()
        m.d.comb += next_full.eq(taken | (full & ~leaves))
        following = Mux(goes, lasts[1], is_last)
        m.d.comb += next_last.eq(Mux(taken, self.word.steps[0].is_last, following))
        m.d.sync += [full.eq(next_full & ~self.reset)]
        m.d.sync += self.free.eq(~next_full | (next_last & ~self.stalls) | self.reset)
        pending, doctype, faulty = Signal(), Signal(), Signal()
        m.d.sync += [one.eq(two) for one, two in zip(self.step, step, strict=True)]
        m.d.sync += [
            self.goes.eq(goes & (step.name | step.tag | is_end)),
            self.data.eq(step.data | pending),
            self.doctype.eq(doctype | head.doctype),
            self.last_data.eq((pending & ~step.name) | head.rest),
            self.finish.eq(is_end),
            self.unsupported.eq(faulty | head.unsupported),
            self.complete.eq(head.complete),
        ]
        with m.If(goes):
            m.d.sync += [at.eq(at << 1), lasts.eq(lasts >> 1), is_end.eq(lasts[1] & head.finish)]
            m.d.sync += pending.eq((pending & ~step.name) | (is_last & head.rest))
            m.d.sync += doctype.eq((doctype | head.doctype) & ~step.name)
            m.d.sync += head.doctype.eq(0)
            m.d.sync += faulty.eq(faulty | head.unsupported)
        with m.If(ends | self.reset):
            m.d.sync += [pending.eq(0), doctype.eq(0), faulty.eq(0)]
        count = -(-len(self.text) // LANES) + 1
        history = [Signal(8 * LANES, name=f"history_{k}") for k in range(count)]
        with m.If(leaves):
            shifted = zip(history, [head.data, *history], strict=False)
            m.d.sync += [one.eq(two) for one, two in shifted]
        with m.If(taken):
            m.d.sync += [head.all().eq(self.word.all()), at.eq(1)]
            m.d.sync += lasts.eq(Cat(step.is_last for step in self.word.steps))
            m.d.sync += is_end.eq(self.word.steps[0].is_last & self.word.finish)
        # A cycle later, the bytes before the end of the name are chosen, and registered.
        window = delayed(m, Cat(*reversed(history), head.data))
        for place, byte in enumerate(self.text):
            first = LANES * count - 1 - place
            choices = (window.word_select(first + lane, 8) for lane in range(LANES))
            m.d.sync += byte.eq(Array(choices)[self.step.lane])
        return m


class TagDecoder(Elaboratable):
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
        self.latency = 2 + encoding_latency(len(tags))

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
            hits.append(delayed(m, all_of([*parts, begins[len(tag)]])))
        code, known = encode_one_hot(m, hits)
        m.d.comb += [self.code.eq(code), self.known.eq(known)]
        return m


class Fifo(Elaboratable):
    """A queue in LUT-RAM, whose first entry is in registers. It must not be filled.

    Attributes:
        input, added: an entry, and whether it is added.
        level: the entries besides the first one, of the cycle before.
        output, valid: the first entry, and whether there is one; ``leaves``: then it is taken.
    """

    def __init__(self, width: int, depth: int) -> None:
        self.input, self.added, self.reset = Signal(width), Signal(), Signal()
        self.output, self.valid, self.leaves = Signal(width), Signal(), Signal()
        self.level = Signal(range(depth))
        self._depth = depth

    def elaborate(self, _: object) -> Module:
        m = Module()
        m.submodules.rows = rows = Memory(shape=len(self.input), depth=self._depth, init=[])
        port, reader = rows.write_port(), rows.read_port(domain="comb")
        first, end = reader.addr, port.addr
        m.d.comb += [port.data.eq(self.input), port.en.eq(self.added)]
        # What is known of the level is two cycles old: since then, two entries may have left.
        exceeds = [Signal(name=f"exceeds_{count}") for count in range(3)]
        level, left, moves, exists = self.level, Signal(2), Signal(), Signal()
        m.d.sync += level.eq(end - first)
        m.d.sync += [exceeds[0].eq(level.any()), exceeds[1].eq(level[1:].any())]
        m.d.sync += exceeds[2].eq(level[2:].any() | level[:2].all())
        m.d.comb += exists.eq(Mux(left.any(), Mux(left.all(), *exceeds[:0:-1]), exceeds[0]))
        m.d.comb += moves.eq(~self.valid | self.leaves)
        m.d.sync += left.eq(Cat(moves & exists, left[0]))
        with m.If(self.added):
            m.d.sync += end.eq(end + 1)
        with m.If(moves & exists):
            m.d.sync += first.eq(first + 1)
        with m.If(moves):
            m.d.sync += [self.output.eq(reader.data), self.valid.eq(exists)]
        with m.If(self.reset):
            forgotten = (first, end, level, *exceeds, left, self.valid)
            m.d.sync += [one.eq(0) for one in forgotten]
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
        self._names = TagDecoder(tags)
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
        valid, found = find_tag_ends(m, lexer.word, lexer.marks)
        m.submodules.words = queue = Fifo(len(found.all()), WORDS)
        waiting = Signal(range(WORDS))  # words between the aligner and the serializer
        m.d.comb += [queue.input.eq(found.all()), queue.added.eq(valid)]
        m.d.comb += queue.reset.eq(self.reset)
        m.d.comb += [serializer.valid.eq(queue.valid), queue.leaves.eq(serializer.free)]
        m.d.comb += serializer.word.all().eq(queue.output)
        left = delayed(m, queue.valid & queue.leaves)
        with m.If(aligner.word.valid & ~left):
            m.d.sync += waiting.eq(waiting + 1)
        with m.Elif(left & ~aligner.word.valid):
            m.d.sync += waiting.eq(waiting - 1)
        with m.If(self.reset):
            m.d.sync += waiting.eq(0)
        m.d.comb += self.ready.eq(delayed(m, waiting < WORDS_READY))
        m.d.comb += [one.eq(two) for one, two in zip(names.text, serializer.text, strict=True)]
        m.d.sync += names.closing.eq(serializer.step.closing)
        self._issue(m, serializer, names)
        return m

    def _issue(self, m: Module, serializer: Serializer, names: TagDecoder) -> None:
        """TagEnds → events: for each end of a tag one, or two if the element is empty."""
        step = serializer.step
        flags = [step.name, step.closing, serializer.data, serializer.doctype, step.tag, step.empty]
        flags += [serializer.finish, serializer.unsupported, serializer.complete]
        flags += [serializer.last_data]
        m.submodules.steps = steps = Fifo(len(flags) + 1 + len(names.code), WAITING)
        m.d.comb += steps.reset.eq(self.reset)
        about = later(m, Cat(flags), 1 + names.latency)
        m.d.comb += steps.input.eq(Cat(about, names.known, names.code))
        m.d.comb += steps.added.eq(later(m, serializer.goes, 1 + names.latency))
        m.d.sync += serializer.stalls.eq(steps.level >= WAITING - names.latency - STOPPING)
        fields = {name: Signal(name=f"step_{name}") for name in _STEP}
        code, held = Signal.like(names.code), Signal(4 + len(names.code))
        m.d.comb += Cat(*fields.values(), code).eq(steps.output)
        tag, empty, finish = fields["tag"], fields["empty"], fields["finish"]
        current = Signal.like(held)
        about_name = [fields[one] for one in ("closing", "data", "doctype", "known")]
        m.d.comb += current.eq(Mux(fields["name"], Cat(about_name, code), held))
        (is_end, has_data, has_doctype, is_known), number = current[:4], current[4:]
        opened, tagged = Signal(), Signal()  # its start was issued; all but its end of a document
        issues = steps.valid & tag & ~tagged
        starts = issues & ~is_end & ~opened
        more = tag & ~tagged & ((empty & ~opened) | finish)
        ends = steps.valid & finish & (~tag | tagged)
        m.d.comb += steps.leaves.eq(~more)
        m.d.sync += [
            opened.eq(issues & empty & ~opened),
            tagged.eq(issues & finish & (~empty | opened)),
        ]
        with m.If(steps.valid):
            m.d.sync += held.eq(current)
        seen, out = Observation(), Signal.like(code)
        m.d.sync += [
            seen.push.eq(starts),
            seen.pop.eq(issues & ~starts),
            seen.end.eq(ends | self.reset),
            seen.names_end.eq(issues & is_end),
            seen.data.eq(Mux(ends, fields["last_data"], issues & has_data & ~opened)),
            seen.doctype.eq(
                (issues & has_doctype & ~opened) | (ends & fields["doctype"] & ~fields["name"])
            ),
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
