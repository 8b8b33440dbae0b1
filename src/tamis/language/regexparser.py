r"""Reads RE2's syntax of regular expressions into trees (:mod:`tamis.core.nfa`).

>>> Parser("a{2,}", False).parse()
Repeat(part=Characters(ranges=((97, 97),)), least=2, most=None)

What RE2 takes is read as RE2 reads it, but ``{,n}`` is refused, which others read otherwise. Beside
RE2's, there is ``\uHHHH``, and each punctuation may have a backslash before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, NoReturn

from tamis.core.lazy import lazy_pattern
from tamis.core.nfa import CODE_MAX, Assertion, Characters, Choice, Node, Ranges, Repeat, Sequence
from tamis.language import characters

REPEATED_MAX = 1_000
"""How often a part may be repeated by numbers, those of groups around it multiplied; as in RE2."""
NESTING_MAX = 100
"""Groups inside each other."""


class RegexError(ValueError):
    """A text is no regular expression, or is one that cannot be used.

    Attributes:
        message: what is wrong.
        position: index into the text.
        hint: what to write instead, or None.
    """

    def __init__(self, message: str, position: int, hint: str | None = None) -> None:
        super().__init__(message, position, hint)
        self.message, self.position, self.hint = message, position, hint

    def __str__(self) -> str:
        hint = "" if self.hint is None else f": {self.hint}"
        return f"position {self.position}: {self.message}{hint}"


def flat(parts: Iterable[Node]) -> Iterator[Node]:
    """The parts, with those of sequences among them in their place."""
    for part in parts:
        if isinstance(part, Sequence):
            yield from flat(part.parts)
        else:
            yield part


class _Flags(NamedTuple):
    is_caseless: bool = False
    is_dotall: bool = False
    is_multiline: bool = False


_NO_MEMORY = "an automaton reads a string once, and remembers nothing: "
_GROUP = lazy_pattern(r"\(\?(?:P?<(?P<name>\w+)>|(?P<flags>[a-zA-Z]*(?:-[a-zA-Z]+)?)(?P<end>[:)]))")
_REFUSED_GROUPS = {
    "(?=": ("looks ahead", "join another condition with and"),
    "(?!": ("looks ahead", "join another condition with and not"),
    "(?<=": ("looks behind", "write what comes before as a part of the pattern"),
    "(?<!": ("looks behind", "write what may come before, as in (?:^|[^a])"),
    "(?>": ("gives nothing back", "write (?:…)"),
    "(?P=": ("refers back to a group", "write out what it has to match"),
    "(?#": ("is a comment", "leave it out"),
}
_REFUSED_FLAGS = {
    "x": "write the pattern without the spaces and comments",
    "a": r"\d, \w and \s are of ASCII anyway",
    "u": r"write \pL for letters and \pN for numbers, of all scripts",
    "L": "text is Unicode",
}
_COUNTS = lazy_pattern(r"\{(\d+)(,?)(\d*)\}")
_NO_LEAST = lazy_pattern(r"\{,\d+\}")
_PLAIN_ESCAPES = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_HEX = lazy_pattern(
    r"x\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(0[0-7]{0,2}|[1-7][0-7]{1,2})"
)
_CATEGORY = lazy_pattern(r"[pP](?:\{(\^?)(\w+)\}|([A-Z]))")
_POSIX = lazy_pattern(r"\[:(\^?)(\w*):\]")
_ASSERTIONS = {
    "A": Assertion.TEXT_START,
    "z": Assertion.TEXT_END,
    "b": Assertion.BOUNDARY,
    "B": Assertion.NO_BOUNDARY,
}
_REFUSED_ESCAPES = {
    "Z": r"write \z for the end of the string, or \n?\z",
    "G": r"write ^ for the start of the string",
    "C": r"write [\x00-\x{10FFFF}] for any character",
    "K": "leave it out: whether a string matches is all that is asked",
    "R": r"write (?:\r\n|[\n\r])",
    "X": "write . for any character",
    "h": r"write [ \t]",
    "e": r"write \x1b",
    "k": "write out what the group has to match",
}


class Parser:
    """Reads an expression from left to right; ``place`` is where it is."""

    def __init__(self, text: str, folded: bool) -> None:
        self.text = text
        self.ranges = 0  # in all classes so far
        self.place = 0
        self.flags = _Flags()
        self.folded = folded
        self.is_quoted = False
        self.names: set[str] = set()
        self.opened: list[int] = []

    def parse(self) -> Node:
        tree = self._choice()
        if self.place < len(self.text):
            self._fail("there is no ( for this )", self.place, r"write \) for the character itself")
        return tree

    def _fail(self, message: str, position: int, hint: str | None = None) -> NoReturn:
        raise RegexError(message, position, hint)

    def _choice(self) -> Node:
        flags = self.flags
        parts = [self._sequence()]
        while self.text.startswith("|", self.place):
            self.place += 1
            parts.append(self._sequence())
        self.flags = flags
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        is_repeatable = False
        while self.place < len(self.text):
            character = self.text[self.place]
            if self.is_quoted:
                if self.text.startswith("\\E", self.place):
                    self.is_quoted = False
                    self.place += 2
                else:
                    parts.append(self._literal(ord(character), self.place))
                    self.place += 1
                    is_repeatable = True
                continue
            if character in "|)":
                break
            counts = self._counts()
            if counts is not None:
                if not is_repeatable:
                    what = "there is nothing that this repeats"
                    self._fail(what, self.place, f"write \\{character} for the character itself")
                parts[-1] = self._repeated(parts[-1], *counts)
                is_repeatable = False
            else:
                atom = self._atom(character)
                is_repeatable = atom is not None
                parts += [] if atom is None else [atom]
        found = tuple(flat(parts))
        return found[0] if len(found) == 1 else Sequence(found)

    # -- repetition

    def _counts(self) -> tuple[int, int | None, int] | None:
        """How often what is before is repeated, and where that ends; None where it is not."""
        plain = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(self.text[self.place])
        if plain is not None:
            return (*plain, self.place + 1)
        found = _COUNTS.match(self.text, self.place)
        if found is None:
            if _NO_LEAST.match(self.text, self.place):
                hint = r"write {0,…}, or \{ for the character itself"
                self._fail("a number is missing before the comma", self.place, hint)
            return None
        least, last = (int(digits[-9:] or 0) for digits in (found[1], found[3]))
        most = last if found[3] else None if found[2] else least
        if max(least, last) > REPEATED_MAX or max(len(found[1]), len(found[3])) > 9:
            hint = f"write at most {REPEATED_MAX}, or no second number as in {{9,}}"
            self._fail(f"{found[0]} repeats too often", self.place, hint)
        if most is not None and least > most:
            self._fail(f"{found[0]} is from more to less", self.place, f"write {{{most},{least}}}")
        return least, most, found.end()

    def _repeated(self, part: Node, least: int, most: int | None, end: int) -> Node:
        start, self.place = self.place, end
        if self.text.startswith("?", end):  # the shortest match is asked for: as good as any
            self.place += 1
        elif self.text.startswith("+", end):
            message = f"{self.text[start : end + 1]} gives nothing back"
            self._fail(message, start, f"{_NO_MEMORY}write {self.text[start:end]}")
        if self.place < len(self.text) and self._counts() is not None:
            message = f"{self.text[start : self.place + 1]} repeats twice"
            self._fail(message, start, "write (?:…) around what is repeated first")
        if _copies(part) * max(least, most or 1) > REPEATED_MAX:
            hint = f"multiplied, numbers of repetitions come to {REPEATED_MAX:,} at most"
            self._fail("what this repeats is repeated too often itself", start, hint)
        if most == 0 or part == Sequence(()):
            return Sequence(())
        return part if (least, most) == (1, 1) else Repeat(part, least, most)

    # -- what is repeated

    def _atom(self, character: str) -> Node | None:
        """The next part; None for what only changes how others are read."""
        start = self.place
        match character:
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escape()
            case ".":
                found: Node = Characters(
                    characters.ANY if self.flags.is_dotall else characters.NOT_NEWLINE
                )
            case "^":
                multiline = self.flags.is_multiline
                found = Assertion.LINE_START if multiline else Assertion.TEXT_START
            case "$":
                multiline = self.flags.is_multiline
                found = Assertion.LINE_END if multiline else Assertion.TEXT_END
            case _:
                found = self._literal(ord(character), start)
        self.place = start + 1
        return found

    def _literal(self, code: int, position: int) -> Characters:
        if 0xD800 <= code < 0xE000:
            self._fail("half of a surrogate pair is no character", position)
        return Characters(self._cased(((code, code),)))

    def _cased(self, ranges: Ranges) -> Ranges:
        """Characters as the automaton reads them, where case does not matter."""
        self.ranges += sum(1 + (high - low >> 8) for low, high in ranges)
        if self.ranges > _RANGES_MAX:
            self._fail("classes list too many characters, all together", self.place)
        if self.folded:
            return characters.folded(ranges)
        return characters.any_case(ranges) if self.flags.is_caseless else ranges

    def _group(self) -> Node | None:
        start = self.place
        flags = self.flags
        if not self.text.startswith("(?", start):
            self.place += 1
        else:
            found = _GROUP.match(self.text, start)
            if found is None:
                self._fail_at_group(start)
            if found["name"] in self.names:
                self._fail(f"two groups are called {found['name']}", start, "name them apart")
            self.names |= {found["name"]} - {None}
            self.place = found.end()
            if found["flags"] is not None:
                self._set_flags(found["flags"], start + 2)
            if found["end"] == ")":
                return None
        self.opened.append(start)
        if len(self.opened) > NESTING_MAX:
            self._fail(f"groups are nested deeper than {NESTING_MAX}", start)
        inner = self._choice()
        if not self.text.startswith(")", self.place):
            self._fail("there is no ) for this (", start, r"write \( for the character itself")
        self.place += 1
        self.opened.pop()
        self.flags = flags
        return inner

    def _fail_at_group(self, start: int) -> NoReturn:
        for opening, (what, hint) in _REFUSED_GROUPS.items():
            if self.text.startswith(opening, start):
                self._fail(f"{opening}…) {what}", start, _NO_MEMORY * (opening != "(?#") + hint)
        hint = "groups are (…), (?:…), (?P<name>…), and (?i:…) with flags of i, m, s"
        self._fail(f"{self.text[start : start + 3]!r} begins no group", start, hint)

    def _set_flags(self, letters: str, position: int) -> None:
        value = True
        for place, letter in enumerate(letters, position):
            match letter:
                case "-":
                    value = False
                case "i" if self.folded and not value:
                    hint = (
                        "leave out the i before the string, and write (?i) where case is no matter"
                    )
                    self._fail("case cannot matter here alone", place, hint)
                case "i":
                    self.flags = self.flags._replace(is_caseless=value)
                case "s":
                    self.flags = self.flags._replace(is_dotall=value)
                case "m":
                    self.flags = self.flags._replace(is_multiline=value)
                case "U":
                    pass  # which of several matches is found does not matter
                case _:
                    hint = _REFUSED_FLAGS.get(letter, "flags are i, m, s and U")
                    self._fail(f"there is no flag {letter}", place, hint)

    # -- escapes

    def _escape(self) -> Node | None:
        start = self.place
        letter = self.text[start + 1 : start + 2]
        if letter == "Q":
            self.is_quoted = True
            self.place += 2
            return None
        if letter in _ASSERTIONS:
            self.place += 2
            return _ASSERTIONS[letter]
        found = self._set_of_escape()
        if found is not None:
            return Characters(found)
        return self._literal(self._code_of_escape(), start)

    def _set_of_escape(self) -> Ranges | None:
        """The characters of an escape for several ones, if it is one."""
        start = self.place
        letter = self.text[start + 1 : start + 2]
        if letter.lower() in characters.LETTERS:
            self.place += 2
            found = self._cased(characters.LETTERS[letter.lower()])
            return characters.complement(found) if letter.isupper() else found
        category = _CATEGORY.match(self.text, start + 1)
        if category is None:
            return None
        ranges = characters.category(category[2] or category[3])
        if ranges is None:
            hint = r"write one of Unicode's general categories, as in \pL, \p{Lu}, \PN"
            self._fail(f"{self.text[start : category.end()]} is not known", start, hint)
        self.place = category.end()
        is_negated = (letter == "P") != bool(category[1])
        return characters.complement(self._cased(ranges)) if is_negated else self._cased(ranges)

    def _code_of_escape(self) -> int:
        """The character of an escape for one."""
        start = self.place
        letter = self.text[start + 1 : start + 2]
        found = _HEX.match(self.text, start + 1)
        if found:
            self.place = found.end()
            digits = found[1] or found[2] or found[3]
            code = int(digits[-9:], 16) if digits else int(found[4], 8)
            if code > CODE_MAX or len(digits or "") > 9:
                self._fail(f"{found[0]} is no character", start, r"the last one is \x{10FFFF}")
            return code
        if letter in _PLAIN_ESCAPES or (letter.isascii() and letter and not letter.isalnum()):
            self.place += 2
            return _PLAIN_ESCAPES.get(letter, ord(letter))
        if not letter:
            self._fail("a backslash ends the pattern", start, r"write \\ for the character itself")
        if letter.isdecimal():
            what = f"\\{letter} refers back to a group"
            self._fail(what, start, f"{_NO_MEMORY}write out what it has to match")
        hint = _REFUSED_ESCAPES.get(
            letter, rf"write {letter} for the character, \\ for a backslash"
        )
        self._fail(f"\\{letter} has no meaning", start, hint)

    # -- classes

    def _class(self) -> Node:
        start = self.place
        self.place += 1
        is_negated = self.text.startswith("^", self.place)
        self.place += is_negated
        first = self.place
        ranges: list[tuple[int, int]] = []
        while self.place == first or not self.text.startswith("]", self.place):
            if self.place >= len(self.text):
                self._fail("there is no ] for this [", start, r"write \[ for the character itself")
            ranges += self._ranges_of_item()
        self.place += 1
        found = in_class = characters.in_order(ranges)
        if is_negated:
            found = characters.complement(in_class)
        if not found:
            self._fail("no character is in this class", start, "write some, as in [a-z]")
        return Characters(found)

    def _ranges_of_item(self) -> Ranges:
        """What is next in a class: some characters with a name, or one, or from one to another."""
        start = self.place
        posix = _POSIX.match(self.text, start)
        if posix:
            own = characters.POSIX.get(posix[2])
            if own is None:
                hint = f"there are {', '.join(characters.POSIX)}"
                self._fail(f"{posix[0]} is not known", start, hint)
            self.place = posix.end()
            return characters.complement(self._cased(own)) if posix[1] else self._cased(own)
        if self.text[start] == "\\":
            found = self._set_of_escape()
            if found is not None:
                return found
        low = high = self._code_in_class()
        after = self.text[self.place : self.place + 2]
        if after[:1] == "-" and after[1:] not in ("", "]"):
            self.place += 1
            high = self._code_in_class()
            if low > high:
                what = self.text[start : self.place]
                self._fail(f"{what} is from a later character to an earlier one", start)
        return self._cased(((low, high),))

    def _code_in_class(self) -> int:
        if self.text[self.place] == "\\":
            return self._code_of_escape()
        self.place += 1
        return ord(self.text[self.place - 1])


_RANGES_MAX = 20_000
"""Ranges of all classes of a pattern, as they are written; all letters are 650."""


def _copies(node: Node) -> int:
    """How often a part of a node is repeated by numbers."""
    match node:
        case Sequence(parts) | Choice(parts):
            return max(map(_copies, parts), default=1)
        case Repeat(part, least, most):
            return max(1, least, most or 0) * _copies(part)
    return 1
