"""Patterns of strings, of ``like`` and ``matches``: what they imply, and their automata."""

from __future__ import annotations

from functools import lru_cache

from tamis.core.automata import Dfa
from tamis.core.lazy import lazy_pattern
from tamis.language.attributes import EVERY, FOLDED
from tamis.language.constraints import fold
from tamis.language.regex import Regex, parse_like, parse_regex

_UNBOUNDED = 1 << 30
_SIMPLE = lazy_pattern(r"(\*?)((?:[^*?\\]|\\[*?\\]?)*+)(\*?)")
"""A pattern of ``like`` without wildcards but at its ends."""
_ESCAPED = lazy_pattern(r"\\([*?\\])")
_OPERATORS = {("", ""): "=", ("", "*"): "prefix", ("*", ""): "suffix", ("*", "*"): "contains"}


class Pattern:
    """A pattern of whole strings (``like``) or of parts (``matches``). Threads may share it.

    Attributes:
        operator, text, is_folded: as it is written; folded strings are matched by folded patterns.
        is_joined: whether it is one of ``like`` for a part of one of several strings, which are
            joined as ``EVERY`` has them.
        literals: constraints that all strings satisfy that it matches: operators and constants.
        is_exact: whether these are all that it asks for.

    Raises:
        RegexError: the text is no regular expression, or one that cannot be used.

    >>> like = Pattern("like", "a*b?", is_folded=False)
    >>> like.literals, [like.matches(text) for text in (b"abc", b"a..bx", b"ab")]
    ((('prefix', 'a'), ('contains', 'b')), [True, True, False])
    """

    def __init__(self, operator: str, text: str, is_folded: bool, is_joined: bool = False) -> None:
        self.operator, self.text, self.is_folded = operator, text, is_folded
        self.is_joined = is_joined
        self._dfa: Dfa | None = None
        self.literals: tuple[tuple[str, str], ...]
        simple = _SIMPLE.fullmatch(text) if operator == "like" and not is_joined else None
        if simple is not None:  # as most are
            literal = _ESCAPED.sub(r"\1", simple[2])
            literal = fold(literal) if is_folded else literal
            self.literals, self.is_exact = ((_OPERATORS[simple[1], simple[3]], literal),), True
        else:
            regex = self._regex()
            self.literals, self.is_exact = tuple(regex.literals()), regex.is_exact

    def _regex(self) -> Regex:
        if self.operator == "like":
            return parse_like(self.text, self.is_folded, self.is_joined)
        return parse_regex(self.text, self.is_folded)

    def dfa(self, states_max: int = _UNBOUNDED) -> Dfa:
        """Its automaton, which is kept if it is small.

        Raises:
            SubscriptionLimitError: it has more states.
        """
        if self._dfa is not None and len(self._dfa.transitions) <= states_max:
            return self._dfa
        found = self._regex().dfa(states_max)
        self._dfa = found if found.transitions.size <= _KEPT_MAX else None
        return found

    def matches(self, text: bytes) -> bool:
        """Whether a string is so, in UTF-8; it was folded, if the pattern is."""
        return self.dfa().accepts(text)


_OF_A_PART = lazy_pattern(r"(?s)\*(?:[^\\]|\\.)*\*")


def asks_for_a_part(text: str) -> bool:
    """Whether a pattern of ``like`` begins and ends with ``*``."""
    return _OF_A_PART.fullmatch(text) is not None


_KEPT_MAX = 1 << 14
"""Transitions of an automaton that is kept: most have hundreds."""


def pattern_of(operator: str, text: str, name: str = "") -> Pattern:
    """A pattern of the attribute of a name; those that were used lately are compiled once."""
    is_joined = operator == "like" and name[-1:] == EVERY
    return _pattern(operator, text, name[:1] == FOLDED, is_joined)


@lru_cache(1 << 12)
def _pattern(operator: str, text: str, is_folded: bool, is_joined: bool) -> Pattern:
    return Pattern(operator, text, is_folded, is_joined)
