"""Comparisons and string functions whose truth is known from the value that they are about.

>>> comparisons = Comparisons(Draws(9, "example"), lambda: "other")
>>> [comparisons.of_only("@id", "x9", 2, holds) for holds in (True, True, False)]
["@id = 'x9'", "contains(@id, '9')", "@id != 'x9'"]
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

from tamis.language.values import compare, xpath_number
from tamis_workload.draws import Draws

SEEN_CHARS = 200
"""So much of a string value is looked at; a longer one is known by its beginning and length."""

_LITERAL_CHARS = 80
_NUMBER_CHARS = 15  # longer ones would be rounded where they are compared
_SPACE = re.compile("[ \t\r\n]+")  # XPath's white space: str.split() knows more
_OPERATORS = ("=", "=", "!=", "<", "<=", ">", ">=")
_OPPOSITE = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Comparisons:
    """Draws comparisons of a path with literals; ``holds`` asks for a true or a false one.

    Values are given by their first ``SEEN_CHARS`` characters and their length.

    Args:
        draws: decides.
        another: some other value, for what is to be false.
        one_line: no literal has a line break or a tab.
    """

    def __init__(self, draws: Draws, another: Callable[[], str], one_line: bool = False) -> None:
        self.draws = draws
        self.another = another
        # XPath's literals have no escapes: what cannot stand in one ends it.
        self.foreign = re.compile("[\t\n\r]" if one_line else "(?!)")

    # -- what a path selects: one node, some nodes, or many of which the first is known ----------

    def of_only(self, path: str, value: str, chars: int, holds: bool) -> str:
        """The path selects one node, which has this value."""
        if self.draws.chance(0.5):
            written = self.comparison(path, value, chars, holds)
            if written is not None:
                return written
        return self.of_first(path, value, chars, holds)

    def of_some(self, path: str, value: str, chars: int) -> str:
        """A true one: some of the nodes that the path selects has this value."""
        return self.comparison(path, value, chars, True) or f"{path}[{self.start('.', value)}]"

    def of_first(self, path: str, value: str, chars: int, holds: bool) -> str:
        """A string function: the first node that the path selects has this value."""
        kind = self.draws.random()
        whole = chars == len(value)
        if not whole and not holds and kind < 0.8:
            kind = 0.4 + kind / 2  # only the beginning is known: not what is absent
        if kind < 0.25:
            return self.contains(path, value, holds)
        if kind < 0.35 and (whole or holds):
            return self.contains(f"normalize-space({path})", self.normalized(value), holds)
        if kind < 0.55:
            start = self.start(path, value)
            return start if holds else self.not_start(path, value)
        if kind < 0.75:
            return self.number(f"string-length({path})", str(chars), holds)
        normalized = self.normalized(value)
        if not whole:
            start = self.start(f"normalize-space({path})", normalized)
            return start if holds else f"not({start})"
        if kind < 0.8:
            return self.number(
                f"string-length(normalize-space({path}))", str(len(normalized)), holds
            )
        written = self.string(f"normalize-space({path})", normalized, holds)
        return written or self.number(f"string-length({path})", str(chars), holds)

    # -- comparisons ---------------------------------------------------------------------------

    def comparison(self, path: str, value: str, chars: int, holds: bool) -> str | None:
        """``path operator literal``, or None where the value is too long, or no literal can be."""
        if chars <= _NUMBER_CHARS and xpath_number(value) == xpath_number(value):
            kind = self.draws.random()
            if kind < 0.6:
                return self.number(path, value.strip(" \t\r\n"), holds)
            if kind < 0.7:
                return self.number(path, value.strip(" \t\r\n"), holds, quote="'")
        return self.string(path, value, holds) if chars == len(value) else None

    def number(self, left: str, written: str, holds: bool, quote: str = "") -> str:
        """A comparison with a number near ``written``, which is the value of ``left``."""
        operator = self.draws.choice(_OPERATORS)
        literal = written
        change = self.draws.choice((0, 0, 0, 1, -1))
        if change:
            literal = format(Decimal(written) + change, "f")
        if quote and operator in ("=", "!="):
            operator = "<"  # of two strings these would compare the strings
        if compare(operator, xpath_number(written), xpath_number(literal)) != holds:
            operator = _OPPOSITE[operator]
        if self.draws.chance(0.05):
            return f"{quote}{literal}{quote} {_MIRRORED[operator]} {left}"
        return f"{left} {operator} {quote}{literal}{quote}"

    def string(self, left: str, value: str, holds: bool) -> str | None:
        """``=`` or ``!=`` with a string; None where no literal can be the value."""
        if len(value) > _LITERAL_CHARS or self.quotable(value) != value:
            return None
        equal = self.draws.chance(0.7)
        if equal != holds:
            # "= 'another'" is false, "!= 'another'" is true.
            other = self.quotable(self.another()[:_LITERAL_CHARS])
            value = other if other != value else value + "_"
        return f"{left} {'=' if equal else '!='} {self.literal(value)}"

    # -- functions -----------------------------------------------------------------------------

    def contains(self, path: str, value: str, holds: bool) -> str:
        """``contains``; where it is to be false ``value`` is whole."""
        start = self.draws.below(len(value))
        chars = 0 if self.draws.chance(0.03) else 1 + self.draws.below(11)
        part = self.quotable(value[start : start + chars])
        if holds:
            return f"contains({path}, {self.literal(part)})"
        other = self.quotable(self.another())
        start = self.draws.below(len(other))
        part = other[start : start + 2 + self.draws.below(10)]
        while part in value:
            part += "_"
        return f"contains({path}, {self.literal(part)})"

    def start(self, path: str, value: str) -> str:
        """A ``starts-with`` that is true."""
        chars = 0 if self.draws.chance(0.05) else 1 + self.draws.below(7)
        return f"starts-with({path}, {self.literal(self.quotable(value[:chars]))})"

    def not_start(self, path: str, value: str) -> str:
        """A ``starts-with`` that is false."""
        if self.draws.chance(0.3):
            return f"not({self.start(path, value)})"
        other = self.quotable(self.another()[: 1 + self.draws.below(6)])
        if value.startswith(other):  # the empty string is the start of all
            other += "_" if value[len(other) : len(other) + 1] != "_" else "-"
        return f"starts-with({path}, {self.literal(other)})"

    # -- literals ------------------------------------------------------------------------------

    def normalized(self, value: str) -> str:
        """What ``normalize-space`` makes of it; of a beginning, a beginning."""
        return _SPACE.sub(" ", value).strip(" ")

    def quotable(self, value: str) -> str:
        """As much of the value as one literal can hold: not both kinds of quotes."""
        foreign = self.foreign.search(value)
        if foreign is not None:
            value = value[: foreign.start()]
        single, double = value.find("'"), value.find('"')
        return value[: max(single, double)] if single >= 0 and double >= 0 else value

    def literal(self, value: str) -> str:
        """A literal, of a value that one can hold."""
        return f'"{value}"' if "'" in value else f"'{value}'"
