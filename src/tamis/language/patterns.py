"""Patterns of strings, of ``like`` and ``matches``: what they imply, and their automata."""

from __future__ import annotations

from functools import lru_cache

from tamis.core.automata import Dfa
from tamis.core.lazy import lazy_pattern
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
        literals: constraints that all strings satisfy that it matches: operators and constants.
        is_exact: whether these are all that it asks for.

    Raises:
        RegexError: the text is no regular expression, or one that cannot be used.

    >>> like = Pattern("like", "a*b?", is_folded=False)
    >>> like.literals, [like.matches(text) for text in (b"abc", b"a..bx", b"ab")]
    ((('prefix', 'a'), ('contains', 'b')), [True, True, False])
    """

    def __init__(self, operator: str, text: str, is_folded: bool) -> None:
        self.operator, self.text, self.is_folded = operator, text, is_folded
        self._dfa: Dfa | None = None
        self.literals: tuple[tuple[str, str], ...]
        simple = _SIMPLE.fullmatch(text) if operator == "like" else None
        if simple is not None:  # as most are
            literal = _ESCAPED.sub(r"\1", simple[2])
            literal = fold(literal) if is_folded else literal
            self.literals, self.is_exact = ((_OPERATORS[simple[1], simple[3]], literal),), True
        else:
            regex = self._regex()
            self.literals, self.is_exact = tuple(regex.literals()), regex.is_exact

    def _regex(self) -> Regex:
        parse = parse_like if self.operator == "like" else parse_regex
        return parse(self.text, self.is_folded)

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


_KEPT_MAX = 1 << 14
"""Transitions of an automaton that is kept: most have hundreds."""


@lru_cache(1 << 12)
def pattern_of(operator: str, text: str, is_folded: bool) -> Pattern:
    """A pattern; those that were used lately are compiled once."""
    return Pattern(operator, text, is_folded)
