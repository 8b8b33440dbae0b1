"""XML as an automaton over bytes: what starts and ends elements, and what is not for the circuit.

The nesting of elements is not regular: :class:`tamis.hardware.parser.Checker` sees to it. What else
makes a document well formed is here as far as the table in ``README.md`` says. Where no state is
active, there was a byte that no document has at that place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tamis.hardware.automaton import START, Automaton
from tamis.hardware.read import Fact

SPACE = frozenset(b" \t\r\n")
LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
DIGITS = frozenset(b"0123456789")
NAME_START = LETTERS | frozenset(range(0x80, 0x100)) | frozenset(b"_")
NAME = NAME_START | DIGITS | frozenset(b"-.")
"""Of names without a prefix."""
COLON = frozenset(b":")
NAME_END = SPACE | frozenset(b"/>")
CHARACTERS = frozenset(range(32, 256)) | SPACE
"""Bytes of the characters that XML permits."""
ASCII, LAST, TWO, THREE, E0, ED, F0, F4 = range(8)
"""States in UTF-8: so many bytes are still to come; or that was the first byte."""
CONTINUED = frozenset(range(0x80, 0xC0))
UTF8_RULES = {
    ASCII: {
        frozenset(range(0xC2, 0xE0)): LAST,
        frozenset([*range(0xE1, 0xED), 0xEE, 0xEF]): TWO,
        frozenset(range(0xF1, 0xF4)): THREE,
        frozenset([0xE0]): E0,
        frozenset([0xED]): ED,
        frozenset([0xF0]): F0,
        frozenset([0xF4]): F4,
        frozenset(range(0x80)): ASCII,
    },
    LAST: {CONTINUED: ASCII},
    TWO: {CONTINUED: LAST},
    THREE: {CONTINUED: TWO},
    E0: {frozenset(range(0xA0, 0xC0)): LAST},
    ED: {frozenset(range(0x80, 0xA0)): LAST},
    F0: {frozenset(range(0x90, 0xC0)): TWO},
    F4: {frozenset(range(0x80, 0x90)): TWO},
}
"""State → bytes → state (RFC 3629); another byte is a fault."""


def but(taken: bytes) -> frozenset[int]:
    """All bytes of characters but these."""
    return CHARACTERS - frozenset(taken)


class Lexer(Automaton):
    """The automaton, and what its states mean; each attribute lists states.

    Attributes:
        opened: a tag begins.
        starts: a start tag is complete, but for the ``>`` of an empty-element tag.
        ends: an end tag is complete; ``empties``: an empty-element tag is.
        content, utf8: the document may end where a state of each is active.
        data: character data, which needs an open element; but for a byte order ``mark``.
        doctypes: a document type declaration begins.
        unsupported: what is not for the circuit.
        wrong: pairs; it is an error if a state of the first is active, and none of the second.
        tags: for each tag the state that is its last byte; ``named``: those of any name.
        shown: for each fact the states in which a start tag shows it.
        spaces: a namespace declaration begins.
        declared: for each prefix the states in which its declaration is complete.
        uses: for each prefix the states in which an attribute has it.
    """

    def __init__(
        self, tags: Sequence[str], facts: Sequence[Fact] = (), prefixes: Mapping[str, str] = {}
    ) -> None:
        super().__init__()
        self.wrong: list[tuple[list[int], list[int]]] = []
        self.unsupported: list[int] = []
        self._references: list[tuple[int, int]] = []  # the states of "&" and ";"
        self.mark = self._add_mark()
        beginning = [START, self.mark[-1]]
        self.content = list(beginning)
        opened = self.add(b"<", [])
        self.opened = [opened]
        self._add_tags(opened)
        bang = self.add(b"!", [opened])
        self._add_comments(bang)
        self._add_cdata(bang)
        self._add_doctype(bang)
        self._add_instructions(opened, beginning)
        self._add_text()
        self.extend(opened, self.content)
        self._add_references()
        self._add_utf8()
        self._prefixes = [tag.partition(":")[0] if ":" in tag else "" for tag in tags]
        names = self.trie([tag.encode() for tag in tags], [opened, self._closing])
        self.tags = [names[tag.encode()] for tag in tags]
        self._add_facts(facts)
        self._add_prefixes(prefixes)

    def tags_of(self, prefix: str) -> list[int]:
        """The numbers of the tags with a prefix."""
        return [tag for tag, of in enumerate(self._prefixes) if of == prefix]

    def _add_mark(self) -> list[int]:
        states = [START]
        for byte in b"\xef\xbb\xbf":
            states.append(self.add([byte], states[-1:]))
        return states[1:]

    # -- content -----------------------------------------------------------------------------------

    def _add_text(self) -> None:
        """Character data. ``]]>`` is an error."""
        space, text = self.add(SPACE, []), self.add(but(b"<&]> \t\r\n"), [])
        bracket = self.add(b"]", self.content)
        brackets = self.add(b"]", [bracket], loops=True)
        greater, (ampersand, semicolon) = self.add(b">", self.content), self._reference()
        plain = [space, text, greater, semicolon]
        for state in (space, text, ampersand):
            self.extend(state, [*self.content, *plain, bracket, brackets])
        self.extend(greater, [*plain, bracket])
        self.extend(bracket, plain)
        self.content += [*plain, bracket, brackets]
        self.data = [text, bracket, greater, ampersand, self._cdata]

    def _reference(self) -> tuple[int, int]:
        """The states of the ``&`` and of the ``;`` of a reference."""
        ampersand = self.add(b"&", [])
        held = self.add(LETTERS | DIGITS | frozenset(b"#"), [ampersand], loops=True)
        semicolon = self.add(b";", [held])
        self._references.append((ampersand, semicolon))
        return ampersand, semicolon

    def _add_references(self) -> None:
        """What may be between ``&`` and ``;``. Entities of a document type are unsupported."""
        begins, ends = map(list, zip(*self._references, strict=True))
        entities = self.trie([b"lt", b"gt", b"amp", b"quot", b"apos"], begins)
        hash_sign = self.add(b"#", begins)
        digits = self.add(DIGITS, [hash_sign], loops=True)
        x = self.add(b"x", [hash_sign])
        hexadecimal = self.add(DIGITS | frozenset(b"abcdefABCDEF"), [x], loops=True)
        end = self.add(b";", [*entities.values(), digits, hexadecimal])
        self.wrong.append((ends, [end]))

    def _add_utf8(self) -> None:
        """Bytes are UTF-8: a state for each transition of ``UTF8_RULES``."""
        made = {
            (source, target): self.add(read, [START] if source == ASCII else [])
            for source, rules in UTF8_RULES.items()
            for read, target in rules.items()
        }
        for (source, _), state in made.items():
            self.extend(state, (before for (_, target), before in made.items() if target == source))
        self.utf8 = [START, *(state for (_, target), state in made.items() if target == ASCII)]

    # -- tags --------------------------------------------------------------------------------------

    def _name(self, before: list[int], inside: frozenset[int] = NAME | COLON) -> list[int]:
        first = self.add(NAME_START, before)
        return [first, self.add(inside, [first], loops=True)]

    def _add_tags(self, opened: int) -> None:
        name = self._name([opened])
        self._space = space = self.add(SPACE, name, loops=True)
        self._attribute = attribute = self._name([space])
        equals, quotes = self._equals(attribute)
        self._quotes = dict(zip(b"\"'", quotes, strict=True))
        closes = []
        for quote, begin in self._quotes.items():
            ampersand, semicolon = self._reference()
            value = self.add(but(b"<&" + bytes([quote])), [begin, semicolon], loops=True)
            self.extend(ampersand, [begin, value, semicolon])
            closes.append(self.add([quote], [begin, value, semicolon]))
        self._equals_sign = equals
        self.extend(space, closes)
        slash = self.add(b"/", [*name, space, *closes])
        end = self.add(b">", [*name, space, *closes])
        empty = self.add(b">", [slash])
        self._closing = self.add(b"/", [opened])
        closing_name = self._name([self._closing])
        closing_space = self.add(SPACE, closing_name, loops=True)
        closed = self.add(b">", [*closing_name, closing_space])
        self.starts, self.ends, self.empties = [end, slash], [closed], [empty]
        self.named = [*name, *closing_name]
        self.content += [end, closed, empty]

    def _equals(self, before: list[int]) -> tuple[int, list[int]]:
        """``=`` with space around it; the states of both quotes after it."""
        space = self.add(SPACE, before, loops=True)
        equals = self.add(b"=", [*before, space])
        after = self.add(SPACE, [equals], loops=True)
        return equals, [self.add([quote], [equals, after]) for quote in b"\"'"]

    def _add_facts(self, facts: Sequence[Fact]) -> None:
        """Attributes that are asked for. A value that is asked for must be written as it is."""
        texts = sorted({name.encode() for fact in facts for name in fact.names})
        names = self.trie(texts, [self._space])
        equals = {name: self._equals([state]) for name, state in names.items()}
        self.shown: list[list[int]] = [[] for _ in facts]
        asked: dict[int, list[int]] = {quote: [] for quote in b"\"'"}
        for name, (sign, quotes) in equals.items():
            wanted = [n for n, fact in enumerate(facts) if name.decode() in fact.names]
            for quote, begin in zip(b"\"'", quotes, strict=True):
                values = {facts[n].value for n in wanted} - {None}
                usable = sorted(v for v in values if v is not None and quote not in v)
                last = self.trie([value for value in usable if value], [begin])
                asked[quote] += [begin] if values else []
                for n in wanted:
                    value = facts[n].value
                    if value is not None and value in usable:
                        self.shown[n].append(self.add([quote], [last.get(value, begin)]))
            for n in wanted:
                if facts[n].value is None:
                    self.shown[n].append(sign)
        for quote, begins in asked.items():
            if begins:
                inside = self.add(but(b"&\t\r\n" + bytes([quote])), begins, loops=True)
                self.unsupported.append(self.add(b"&\t\r\n", [*begins, inside]))

    def _add_prefixes(self, prefixes: Mapping[str, str]) -> None:
        """Namespace declarations, and the prefixes of attributes."""
        xmlns = self.literal(b"xmlns", [self._space])
        self.spaces = [self.add(SPACE | frozenset(b":="), [xmlns])]
        colon = self.add(b":", self._attribute)
        known = self.trie([p.encode() for p in (*prefixes, "xml", "xmlns") if p], [self._space])
        self.uses = {
            prefix: [self.add(b":", [known[prefix.encode()]])]
            for prefix in (*prefixes, "xml", "xmlns")
            if prefix
        }
        self.wrong.append(([colon], [state for states in self.uses.values() for state in states]))
        for prefix in ("xml", "xmlns"):
            del self.uses[prefix]
        self.declared: dict[str, list[int]] = {}
        for prefix, uri in prefixes.items():
            name = self.literal(b":" + prefix.encode(), [xmlns]) if prefix else xmlns
            self.declared[prefix] = [
                self.add([quote], [self.literal(uri.encode(), [begin])])
                for quote, begin in zip(b"\"'", self._equals([name])[1], strict=True)
            ]

    # -- the rest ----------------------------------------------------------------------------------

    def _add_comments(self, bang: int) -> None:
        begin = self.literal(b"--", [bang])
        body = self.add(but(b"-"), [begin], loops=True)
        dash = self.add(b"-", [begin, body])
        self.extend(body, [dash])
        self.content.append(self.literal(b"->", [dash]))

    def _add_cdata(self, bang: int) -> None:
        self._cdata = begin = self.literal(b"[CDATA[", [bang])
        body = self.add(but(b"]>"), [begin], loops=True)
        greater = self.add(b">", [begin, body], loops=True)
        bracket = self.add(b"]", [begin, body, greater])
        brackets = self.add(b"]", [bracket], loops=True)
        self.extend(body, [greater, bracket, brackets])
        self.extend(greater, [bracket])
        self.content.append(self.add(b">", [brackets]))

    def _add_doctype(self, bang: int) -> None:
        """A document type without an internal subset. Its identifiers are not checked."""
        self.doctypes = [self.literal(b"DOCTYPE", [bang])]
        space = self.add(SPACE, self.doctypes, loops=True)
        name = self._name([space])
        after = self.add(SPACE, name, loops=True)
        public = self._quoted(self.literal(b"PUBLIC", [after]))
        system = self._quoted(self.literal(b"SYSTEM", [after]), *public)
        last = self.add(SPACE, system, loops=True)
        self.content.append(self.add(b">", [*name, after, *system, last]))
        self.unsupported.append(self.add(b"[", [*name, after, *system, last]))

    def _quoted(self, *before: int) -> list[int]:
        """Space, and a string in quotes."""
        space = self.add(SPACE, before, loops=True)
        closes = []
        for quote in b"\"'":
            begin = self.add([quote], [space])
            body = self.add(but(bytes([quote])), [begin], loops=True)
            closes.append(self.add([quote], [begin, body]))
        return closes

    def _add_instructions(self, opened: int, beginning: list[int]) -> None:
        """Processing instructions, and the XML declaration at the beginning."""
        mark = self.add(b"?", [opened])
        target = self._name([mark], NAME)
        space = self.add(SPACE, target, loops=True)
        body = self.add(but(b"?>"), [space], loops=True)
        greater = self.add(b">", [space, body], loops=True)
        last = self.add(b"?", [space, body, greater], loops=True)
        bare = self.add(b"?", target)
        self.extend(body, [greater, last])
        self.content.append(self.add(b">", [last, bare]))
        xml = self.literal(b"xml", [mark], any_case=True)
        reserved = self.add(SPACE | frozenset(b"?"), [xml])
        declaration = self.literal(b"<?xml", beginning)
        self.wrong.append(([reserved], [self.add(SPACE, [declaration])]))
        inside = self.add(but(b">"), [declaration], loops=True)
        self._add_declaration(declaration, self.add(b">", [inside]))

    def _add_declaration(self, begin: int, end: int) -> None:
        """``<?xml version="1.0" encoding="UTF-8" standalone="yes"?>``; the last two may lack."""
        version = self._pseudo(b"version", [begin], [b"1.0"])
        encoding = self._pseudo(b"encoding", version, [b"utf-8"], any_case=True)
        standalone = self._pseudo(b"standalone", [*version, *encoding], [b"yes", b"no"])
        space = self.add(SPACE, [*version, *encoding, *standalone], loops=True)
        before = [*version, *encoding, *standalone, space]
        self.wrong.append(([end], [self.literal(b"?>", before)]))

    def _pseudo(
        self, name: bytes, before: list[int], values: Iterable[bytes], any_case: bool = False
    ) -> list[int]:
        """Space, a name, ``=`` and one of the values in quotes."""
        last = self.literal(name, [self.add(SPACE, before, loops=True)])
        return [
            self.add([quote], [self.literal(value, [begin], any_case) for value in values])
            for quote, begin in zip(b"\"'", self._equals([last])[1], strict=True)
        ]
