"""XML eight bytes a cycle: what each byte of a word is.

Four automata of at most eight states read a word (see :mod:`tamis.hardware.words`): the mode (text,
tag, value, comment, …) and the encoding, then the syntax inside of tags, and references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal

from tamis.hardware.lexer import ASCII, COLON, DIGITS, LETTERS, NAME, NAME_START, SPACE, UTF8_RULES
from tamis.hardware.signals import all_of, any_of, delayed, later
from tamis.hardware.words import LANES, Rules, SpeculativeAutomaton, Word

TEXT, TAG, DOUBLE, SINGLE, COMMENT, INSTRUCTION, CDATA, DOCTYPE = range(8)
"""Modes. DOUBLE, SINGLE: in a value in such quotes."""
MODES = ("text", "tag", "double", "single", "comment", "instruction", "cdata", "doctype")
OUTSIDE, START_NAME, END_NAME, ENDED, SPACED, ATTRIBUTE, EQUALS, TARGET = range(8)
"""States in tags. ENDED: after the name of an end tag; SPACED: after that of a start tag, and
between attributes; EQUALS: after the ``=`` of one; TARGET: in that of a processing instruction. In
a document type declaration, EQUALS and ENDED are strings in double and single quotes.
"""
NO_REFERENCE, ENTITY, NUMBER, DECIMAL, HEX_MARK, HEX = range(6)
"""States in references: after ``&``, ``&#``, ``&#1``, ``&#x`` and ``&#xa``."""

QUOTES = frozenset(b"\"'")
HEX_DIGITS = DIGITS | frozenset(b"abcdefABCDEF")
CONTROL = frozenset(range(32)) - SPACE
ENTITIES = (b"lt", b"gt", b"amp", b"quot", b"apos")

Key = str | frozenset[int]
"""Lines: those of a set of bytes, or what was combined from some."""


class Marks(NamedTuple):
    """What a word has: a bit for each lane, but for the last three.

    Attributes:
        names: the name of a tag ends before this byte; ``closing``: that of an end tag.
        tags: the ``>`` of a tag; ``empty``: that of an empty-element tag.
        data: character data.
        doctype: a document type declaration begins.
        unsupported: something is malformed, or not for the circuit.
        complete: nothing is cut off where the word ends.
    """

    names: Any
    closing: Any
    tags: Any
    empty: Any
    data: Any
    doctype: Any
    unsupported: Any
    complete: Any

    @classmethod
    def empty_word(cls) -> Marks:
        """Signals for the marks of a word."""
        lanes = [Signal(LANES, name=name) for name in cls._fields[:5]]
        return cls(*lanes, *(Signal(name=name) for name in cls._fields[5:]))


class WordLexer(Elaboratable):
    """Words → marks.

    Attributes:
        input: the words of documents.
        word, marks: ``LATENCY`` cycles later.
        reset: forget what was read.
    """

    MODES_KNOWN = 2 + SpeculativeAutomaton.LATENCY + 1
    STATES_KNOWN = MODES_KNOWN + SpeculativeAutomaton.LATENCY + 1
    LATENCY = STATES_KNOWN + 4

    def __init__(self) -> None:
        self.input, self.word = Word.empty(), Word.empty()
        self.marks = Marks.empty_word()
        self.reset = Signal()

    def elaborate(self, _: object) -> Module:
        self._m = m = Module()
        self._words = {0: self.input.later(m)}
        self._halves: dict[tuple[int, int, frozenset[int]], Any] = {}
        self._lines: dict[tuple[Key, int], Any] = {}
        self._held: dict[tuple[Key, int], Any] = {}
        self._combine()
        mode = self._speculate("mode", 2, self._mode_rules, len(MODES))
        encoding = self._speculate("encoding", 2, self._utf8_rules, len(UTF8_RULES))
        for number, name in enumerate(MODES):
            lines = Cat(before == number for before in mode.before)
            self._define(f"in {name}", self.MODES_KNOWN, lines)
        tag = self._speculate("tag", self.MODES_KNOWN, self._tag_rules, 8)
        reference = self._speculate("reference", self.MODES_KNOWN, self._reference_rules, 6)
        self._tag = [delayed(m, Cat(b == state for b in tag.before)) for state in range(8)]
        self._reference = [
            delayed(m, Cat(b == state for b in reference.before)) for state in range(6)
        ]
        self._mark()
        early = [self._encoding_faults(encoding), self._declaration_faults()]
        faults = delayed(m, any_of(delayed(m, fault) for fault in self._faults()))
        faults = faults.any() | early[0] | early[1]
        m.d.sync += self.marks.unsupported.eq(faults)
        early_end = (mode.after == TEXT) & (encoding.after == ASCII)
        early_end = later(m, early_end, 1 + SpeculativeAutomaton.LATENCY)
        complete = early_end & (reference.after == NO_REFERENCE)
        m.d.sync += self.marks.complete.eq(later(m, complete, 3))
        for ours, theirs in zip(self.word, self._word(self.LATENCY - 1), strict=True):
            m.d.comb += ours.eq(theirs)
        return m

    # -- lines -------------------------------------------------------------------------------------

    def _word(self, stage: int) -> Word:
        if stage not in self._words:
            self._words[stage] = self._word(stage - 1).later(self._m)
        return self._words[stage]

    def _at(self, key: Key, stage: int) -> Any:
        """Lines at a stage of the pipeline; those of bytes are decoded in the first one."""
        if (key, stage) not in self._lines:
            if stage > 1:
                value = self._at(key, stage - 1)
            else:
                assert isinstance(key, frozenset)
                lanes = (self._is_in(lane, key) for lane in range(LANES))
                value = Cat(lanes)
            self._lines[key, stage] = delayed(self._m, value)
        return self._lines[key, stage]

    def _is_in(self, lane: int, read: frozenset[int]) -> Any:
        """Whether the byte of a lane is in a set, from sets of both its halves."""
        by_low: dict[frozenset[int], set[int]] = {}
        for high in range(16):
            low = frozenset(byte & 15 for byte in read if byte >> 4 == high)
            by_low.setdefault(low, set()).add(high)
        parts = (
            self._half(lane, 0, low) & self._half(lane, 4, frozenset(highs))
            for low, highs in by_low.items()
            if low
        )
        return any_of(parts)

    def _half(self, lane: int, shift: int, read: frozenset[int]) -> Any:
        """A register: four bits of a byte are in a set; of no byte, the upper ones never are."""
        key = lane, shift, read
        if key not in self._halves:
            bits = self.input.data.word_select(lane, 8)[shift : shift + 4]
            value = any_of(bits == one for one in sorted(read))
            filled = self.input.filled[lane] if shift else Const(1)
            self._halves[key] = delayed(self._m, value & filled)
        return self._halves[key]

    def _define(self, name: str, stage: int, lines: Any) -> None:
        """Register lines, which are there from this stage on."""
        self._lines[name, stage] = delayed(self._m, lines)

    def _before(self, key: Key, count: int, stage: int = 1) -> Any:
        """The lines of the bytes that are ``count`` before those of the word at a stage."""
        lines = self._at(key, stage)
        if count == 0:
            return lines
        if (key, stage) not in self._held:
            m, word = self._m, self._word(stage)
            held = Signal(LANES)
            with m.If(word.valid):
                m.d.sync += held.eq(Mux(word.finish, 0, lines))
            with m.If(self.reset):
                m.d.sync += held.eq(0)
            self._held[key, stage] = held
        both = Cat(self._held[key, stage], lines)
        return both[LANES - count : 2 * LANES - count]

    def _text(self, text: bytes, back: int = 0, any_case: bool = False) -> Any:
        """Where a text ends ``back`` bytes before, at stage 1."""
        parts = []
        for place, byte in enumerate(reversed(text)):
            one = bytes([byte])
            read = frozenset(one + one.upper() if any_case else one)
            parts.append(self._before(read, back + place))
        return all_of(parts)

    def _combine(self) -> None:
        """Stage 2: what several bytes are together, of which the last is in the lane."""

        def at(read: Iterable[int]) -> Any:
            return self._at(frozenset(read), 1)

        define = self._define
        space = at(SPACE)
        for text in (b"<!--", b"-->", b"<?", b"?>", b"<![CDATA[", b"]]>", b"<!DOCTYPE", b"</"):
            define(text.decode(), 2, self._text(text))
        define("markup", 2, self._text(b"<!") | self._text(b"<?"))
        define("after space", 2, self._before(SPACE, 1))
        define("after slash", 2, self._text(b"/", 1) & ~self._text(b"<", 2))
        define("after &", 2, self._text(b"&", 1))
        define("dashes", 2, self._text(b"--", 1) & ~at(b">"))
        define("no target", 2, self._text(b"<?", 1) & at(frozenset(range(256)) - NAME_START))
        entities = (self._text(b"&" + entity + b";") for entity in ENTITIES)
        define("entity", 2, any_of(entities))
        named = self._before(SPACE, 6) & self._text(b"xmlns", 1) & (space | at(b"="))
        known = self._before(SPACE, 4) & self._text(b"xml", 1)
        define("prefix", 2, named | (at(b":") & ~known))
        target = self._text(b"<?", 4) & self._text(b"xml", 1, any_case=True)
        define("reserved", 2, target & (space | at(b"?")))
        first = self._word(1).first
        sixth = Cat(Const(0, 5), first, Const(0, 2))
        define("declaration", 2, sixth & self._text(b"<?xml", 1) & space)
        for name, value, any_case in (("version", b"1.0", False), ("utf-8", b"utf-8", True)):
            quoted = (self._text(q + value + q, 0, any_case) for q in (b'"', b"'"))
            define(name, 2, any_of(quoted))
        define("encoding", 2, self._text(b"encoding"))
        mark = first & self._text(b"\xef\xbb\xbf")[2]
        define("byte order mark", 2, Cat(mark, mark, mark, Const(0, 5)))

    # -- automata ----------------------------------------------------------------------------------

    def _speculate(
        self, name: str, stage: int, rules: Callable[[int], Rules], states: int
    ) -> SpeculativeAutomaton:
        """An automaton over the word at a stage."""
        made = SpeculativeAutomaton(self._word(stage), rules, states)
        self._m.submodules[name] = made
        self._m.d.comb += made.reset.eq(self.reset)
        return made

    def _mode_rules(self, lane: int) -> Rules:
        def at(key: Key | bytes) -> Any:
            return self._at(frozenset(key) if isinstance(key, bytes) else key, 2)[lane]

        opens = {"<!--": COMMENT, "<?": INSTRUCTION, "<![CDATA[": CDATA, "<!DOCTYPE": DOCTYPE}
        in_tag = [(at(text), mode) for text, mode in opens.items()]
        in_tag += [(at(b">"), TEXT), (at(b'"'), DOUBLE), (at(b"'"), SINGLE)]
        return {
            TEXT: [(at(b"<"), TAG)],
            TAG: in_tag,
            DOUBLE: [(at(b'"'), TAG)],
            SINGLE: [(at(b"'"), TAG)],
            COMMENT: [(at("-->"), TEXT)],
            INSTRUCTION: [(at("?>"), TEXT)],
            CDATA: [(at("]]>"), TEXT)],
            DOCTYPE: [(at(b">"), TEXT)],
        }

    def _utf8_rules(self, lane: int) -> Rules:
        return {
            state: [(self._at(read, 2)[lane], target) for read, target in rules.items()]
            for state, rules in UTF8_RULES.items()
        }

    def _lane(self, lane: int) -> Callable[[Key | bytes], Any]:
        """The lines of a lane where modes are known."""

        def at(key: Key | bytes) -> Any:
            read = frozenset(key) if isinstance(key, bytes) else key
            return self._at(read, self.MODES_KNOWN)[lane]

        return at

    def _tag_rules(self, lane: int) -> Rules:
        at = self._lane(lane)
        text, tag = at("in text"), at("in tag")
        over = at("in instruction") & (at(SPACE) | at(b"?"))
        quotes = [at("in doctype") & at(quote) for quote in (b'"', b"'")]
        return {
            OUTSIDE: [(text & at(b"<"), START_NAME), (quotes[0], EQUALS), (quotes[1], ENDED)],
            START_NAME: [
                (tag & at("<?"), TARGET),
                (tag & (at("markup") | at(b">")), OUTSIDE),
                (tag & at("</"), END_NAME),
                (tag & (at(SPACE) | at(b"/")), SPACED),
            ],
            END_NAME: [(tag & at(b">"), OUTSIDE), (tag & at(SPACE), ENDED)],
            ENDED: [(tag & at(b">"), OUTSIDE), (quotes[1], OUTSIDE)],
            SPACED: [(tag & at(b">"), OUTSIDE), (tag & at(NAME_START), ATTRIBUTE)],
            ATTRIBUTE: [(tag & at(b"="), EQUALS)],
            EQUALS: [(tag & at(QUOTES), SPACED), (quotes[0], OUTSIDE)],
            TARGET: [(over, OUTSIDE)],
        }

    def _reference_rules(self, lane: int) -> Rules:
        at = self._lane(lane)
        may_begin = at("in text") | at("in double") | at("in single")
        over = Const(1), NO_REFERENCE
        return {
            NO_REFERENCE: [(at(b"&") & may_begin, ENTITY)],
            ENTITY: [(at(b"#"), NUMBER), (at(LETTERS), ENTITY), over],
            NUMBER: [(at(DIGITS), DECIMAL), (at(b"x"), HEX_MARK), over],
            DECIMAL: [(at(DIGITS), DECIMAL), over],
            HEX_MARK: [(at(HEX_DIGITS), HEX), over],
            HEX: [(at(HEX_DIGITS), HEX), over],
        }

    # -- marks and faults --------------------------------------------------------------------------

    def _here(self, key: Key | bytes) -> Any:
        """Lines where the states in tags and references are known."""
        read = frozenset(key) if isinstance(key, bytes) else key
        return self._at(read, self.STATES_KNOWN)

    def _mark(self) -> None:
        """The marks of tags and data."""
        here, m, tag = self._here, self._m, self._tag
        delimits = here(SPACE) | here(b">")
        ends = [tag[START_NAME] & (delimits | (here(b"/") & ~here("</"))), tag[END_NAME] & delimits]
        closes = here("in tag") & here(b">") & ~tag[OUTSIDE]
        text = here("in text") & here(frozenset(range(256)) - SPACE - {ord("<")})
        found = {
            "names": here("in tag") & (ends[0] | ends[1]),
            "closing": tag[END_NAME],
            "tags": closes,
            "empty": closes & here("after slash"),
            "data": (text & ~here("byte order mark")) | (here("in tag") & here("<![CDATA[")),
            "doctype": (here("in tag") & here("<!DOCTYPE")).any(),
        }
        for name, value in found.items():
            m.d.sync += getattr(self.marks, name).eq(later(m, value, 2))

    def _faults(self) -> list[Any]:
        """Where a byte cannot be, or is of something that the circuit does not know."""
        here, tag, reference = self._here, self._tag, self._reference
        every = frozenset(range(256))

        def but(*allowed: Iterable[int]) -> Any:
            return here(every.difference(*allowed))

        spaced_name = here(NAME) & here("after space")
        marks = here("in instruction") & tag[TARGET] & here(b"?")
        self._lines["mark after target", self.STATES_KNOWN] = marks
        marked = self._before("mark after target", 1, self.STATES_KNOWN)
        in_tags = [
            tag[OUTSIDE] & here(b"<>\"'"),
            tag[START_NAME] & (but(NAME, COLON, SPACE, b"/>!?") | (here(b"!?") & ~here("markup"))),
            tag[END_NAME] & but(NAME, COLON, SPACE, b">"),
            tag[ENDED] & but(SPACE, b">"),
            tag[SPACED] & (but(NAME_START, SPACE, b"/>")),
            tag[SPACED] & (here(NAME_START) & ~here("after space")),
            tag[ATTRIBUTE] & (but(NAME, COLON, SPACE, b"=") | spaced_name | here("prefix")),
            tag[EQUALS] & but(SPACE, QUOTES),
            here("after slash") & but(b">"),
        ]
        comment = [self._before("in comment", count, self.STATES_KNOWN) for count in (1, 2)]
        by_mode = {
            "text": here("]]>"),
            "double": here(b"<"),
            "single": here(b"<"),
            "comment": (here("dashes") & comment[0] & comment[1]) | (here("-->") & ~comment[1]),
            "instruction": here("no target")
            | (tag[TARGET] & but(NAME, SPACE, b"?"))
            | (here("reserved") & ~here("declaration"))
            | (marked & but(b">")),
            "doctype": here(b"<[") | (here(b">") & ~tag[OUTSIDE]),
        }
        letters = but(LETTERS, b"#;") | (here(b";") & ~here("entity"))
        in_references = [
            reference[ENTITY] & (letters | (here(b"#") & ~here("after &"))),
            reference[NUMBER] & but(DIGITS, b"x"),
            reference[DECIMAL] & but(DIGITS, b";"),
            reference[HEX_MARK] & but(HEX_DIGITS),
            reference[HEX] & but(HEX_DIGITS, b";"),
        ]
        faults = [here("in tag") & value for value in in_tags]
        faults += [here(f"in {mode}") & value for mode, value in by_mode.items()]
        return [*faults, *in_references, here(CONTROL)]

    def _encoding_faults(self, encoding: SpeculativeAutomaton) -> Any:
        """Whether some byte is no UTF-8, when faults are registered."""
        stage = 2 + SpeculativeAutomaton.LATENCY
        faults = []
        for state, rules in UTF8_RULES.items():
            wrong = frozenset(range(256)).difference(*rules)
            in_state = Cat(before == state for before in encoding.before)
            faults.append(in_state & self._at(wrong, stage))
        found = delayed(self._m, any_of(faults))
        return later(self._m, found.any(), self.STATES_KNOWN + 1 - stage)

    def _declaration_faults(self) -> Any:
        """Whether an XML declaration is none of XML 1.0 in UTF-8."""
        m, word = self._m, self._word(self.MODES_KNOWN + 1)

        def has(name: str) -> Any:
            lines = self._at(name, self.MODES_KNOWN) & self._at("in instruction", self.MODES_KNOWN)
            return delayed(m, lines.any())

        names = ("declaration", "version", "encoding", "utf-8")
        seen = [Signal(name=f"seen_{number}") for number in range(len(names))]
        now = [has(name) | before for name, before in zip(names, seen, strict=True)]
        ends = has("?>")
        with m.If(word.valid):
            for before, value in zip(seen, now, strict=True):
                m.d.sync += before.eq(value & ~ends & ~word.finish)
        with m.If(self.reset):
            m.d.sync += [before.eq(0) for before in seen]
        declared, version, encoding, is_utf8 = now
        fault = word.valid & ends & declared & ~(version & (~encoding | is_utf8))
        return later(m, fault, self.STATES_KNOWN + 1 - self.MODES_KNOWN)
