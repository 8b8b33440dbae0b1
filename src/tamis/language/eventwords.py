"""The words of expressions about events: tokens, operators, and what to write instead of others."""

from __future__ import annotations

import json
import math
import re
from typing import NoReturn

from tamis.core.errors import SubscriptionLimitError, SubscriptionSyntaxError
from tamis.core.lazy import lazy_pattern
from tamis.language.attributes import KEYWORDS, NAME
from tamis.language.constraints import Constant, fold
from tamis.language.grammar import Token

JOINS = ("and", "or", ")")
SAME = ("=", "!=")
ORDER = ("<", "<=", ">", ">=")
PARTS = ("prefix", "suffix", "contains")
PATTERNS = ("like", "matches")
OPERATORS = "= != < <= > >= prefix suffix contains like matches cidr in between exists absent"
_SHOWN_MAX = 40
INT64 = range(-(1 << 63), 1 << 63)

_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])"
TOKEN = lazy_pattern(
    rf"""[ \t\r\n]*(?:
        (?P<string>(?:ir?|ri?)?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'))
      | (?P<quoted>`(?:[^`]|``)*`)
      | (?P<number>{_NUMBER})
      | (?P<symbol><=|>=|!=|==|<>|&&|\|\||[=<>!(),\[\]*]|\.(?=[`()\s*=!<>]|[^\W\d]))
      | (?P<word>{NAME})
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
COMPARED_NAME = lazy_pattern(r"[\s(]*[^\W\d][\w.-]*\s*[=!<>]")
APART = " \t\r\n=!<>()[]\"'`,~&|"
_ODD = r"[^\s=!<>()\[\]\"'`,~&|]"
ODD_NAME = lazy_pattern(rf"[\w.:-]*(?![\w.:-])({_ODD}){_ODD}*\w{_ODD}*")
"""What is a name only in backquotes, between characters that stand apart; and why."""
_NULL_ONLY = "write = null, or absent for what is missing or null"
_INSTEAD = dict(
    pair.split("→")
    for pair in "==→= <>→!= &&→and ||→or ≥→>= ≤→<= ≠→!= True→true TRUE→true False→false "
    "FALSE→false startswith→prefix starts→prefix endswith→suffix ends→suffix".split()
)
_MATCHES = 'write matches r"…" for a regular expression'
HINTS = {
    **{word: f"write {instead}" for word, instead in _INSTEAD.items()},
    **dict.fromkeys(("~", "regex", "regexp", "re", "rlike"), _MATCHES),
    "None": "write null",
    "*": "write [] for some element of a list; * alone is any value of an event",
    "ilike": 'write like i"…", where case does not matter',
    "null": _NULL_ONLY,
    **dict.fromkeys("“”", "write plain quotes"),
    "not": 'not comes before a whole constraint: not area prefix "a"',
    "!": "write not",
    "NaN": "no constant can be NaN",
    "Infinity": "no constant can be infinite",
    **dict.fromkeys(("I", "R"), "before quotes, i and r are written small"),
    "#": "comments are lines of their own",
    "/": "XPath is for documents: use tamis.compile, or tamis match; a name with / is written in "
    'backquotes, a regular expression as matches r"…"',
    "is": "write =; or exists, or absent",
}


def cut(text: str) -> str:
    """A text for messages, of which a long one is cut."""
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"


def quoted(word: str) -> str:
    """What to write instead of a word where a value is expected."""
    word = cut(word)
    return f'a string is written in quotes: "{word}"; another attribute is field({word})'


def _double_quoted(match: re.Match[str]) -> str:
    """What is special in single quotes, as it is in double ones."""
    return {"\\'": "'", '"': '\\"'}.get(match[0], match[0])


def _letters(token: Token) -> str:
    """What is written before the quotes of a string."""
    return token.text.partition(token.text[-1])[0] if token.kind == "string" else ""


def is_folded(token: Token) -> bool:
    """Whether a string is written with an i before it."""
    return "i" in _letters(token)


class Tokens:
    """The tokens of an expression, one after the other, and their values."""

    def __init__(self, text: str, position: int = 0) -> None:
        self.text = text
        self.token = Token("end", "", 0)
        self._position = position
        self.next()

    def value(self, expected: str, is_regex: bool = False) -> tuple[Constant, Token]:
        token = self.token
        value: Constant
        match token.kind, token.text:
            case "string", _:
                value = self._string(token)
                value = fold(value) if is_folded(token) and not is_regex else value
            case "number", _:
                value = self._number(token)
            case "word", "true" | "false" as word:
                value = word == "true"
            case "word", "r" | "i" | "ir" | "ri" if self.text[self._position :][:1] in ("'", '"'):
                hint = "no string ends in one backslash: before a quote, it belongs to that"
                self.fail("there is no quote at the end of this string", token, hint)
            case "word", "field":
                compared = ", ".join((*SAME, *ORDER, *PARTS))
                self.expected(expected, f"field(…) stands only behind {compared}")
            case "word", word if word not in HINTS:
                self.expected(expected, quoted(word))
            case _:
                self.expected(expected)
        self.next()
        return value, token

    def _string(self, token: Token) -> str:
        letters = _letters(token)
        inner = token.text[len(letters) + 1 : -1]
        if "r" in letters:
            return self.encodable(inner, token)
        if token.text[-1] == "'":  # as JSON has it
            inner = re.sub(r"\\.|\"", _double_quoted, inner, flags=re.DOTALL)
        try:
            value: str = json.loads(f'"{inner}"', strict=False)
        except ValueError:
            hint = r'write \\ for a backslash itself, \" for a quote, \n, \t, \u00e9; or r"…"'
            self.fail("a backslash in a string begins one of JSON's escapes", token, hint)
        return self.encodable(value, token)

    def encodable(self, text: str, token: Token) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail("half of a surrogate pair is no character", token)
        return text

    def _number(self, token: Token) -> int | float:
        if any(character in token.text for character in ".eE"):
            value = float(token.text)
            if math.isinf(value):
                self.fail("the number is beyond what a 64-bit float can be", token)
            return value
        if len(token.text) > 20 or int(token.text) not in INT64:
            hint = "as a float it is less precise: 1e19"
            self.fail("the integer is beyond 64 bits", token, hint)
        return int(token.text)

    def takes(self, text: str) -> bool:
        """Whether the next token is this one, which is passed over then; strings keep quotes."""
        found = self.token.text == text
        if found:
            self.next()
        return found

    def next(self) -> None:
        match = TOKEN.match(self.text, self._position)
        if match is None:
            self._fail_at_character()
        kind = match.lastgroup or "end"
        self.token = Token(kind, match[kind], match.start(kind))
        self._position = match.end()

    def _fail_at_character(self) -> NoReturn:
        start = self._position
        while self.text[start] in " \t\r\n":
            start += 1
        found = Token("character", self.text[start], start)
        if found.text in "\"'`":
            self.fail(f"there is no {found.text} at the end of this", found)
        first = start
        while first and self.text[first - 1] not in APART:
            first -= 1
        is_value = self.token.text in (*SAME, *ORDER, *PARTS)
        name = None if is_value else ODD_NAME.match(self.text, first)
        word = re.compile(r"[\w.+-]+").match(self.text, start)
        if not name and word and (found.text.isdecimal() or found.text in "+-."):
            example = "as in 5, -5, 0.5 and 5e3; a string is written in quotes"
            self.fail(f"{cut(word[0])!r} is no number", found, example)
        hint = None if name and first < start else HINTS.get(found.text)
        if name and hint is None:
            hint = f"a name with {name[1]} is written in backquotes: `{cut(name[0])}`"
        self.fail(f"{found.text!r} has no meaning here", found, hint)

    def expected(self, what: str, hint: str | None = None) -> NoReturn:
        token = self.token
        found = "the end" if token.kind == "end" else repr(cut(token.text))
        lower = token.text.lower()
        if hint is None and token.kind in ("word", "symbol"):
            hint = HINTS.get(token.text)
            if hint is None and token.text != lower and lower in KEYWORDS:
                hint = f"write {lower}"
        self.fail(f"expected {what}, found {found}", token, hint)

    def fail(self, message: str, token: Token, hint: str | None = None) -> NoReturn:
        raise SubscriptionSyntaxError(message, self.text, token.position, hint)

    def reached(self, message: str, start: int | None = None) -> NoReturn:
        at = self.token.position if start is None else start
        raise SubscriptionLimitError(message, self.text, at)
