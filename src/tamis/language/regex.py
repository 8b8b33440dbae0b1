r"""Regular expressions and patterns of strings: how they are written, and what they mean.

``parse_regex`` reads RE2's syntax, and finds a match anywhere in a string:

>>> regex = parse_regex(r"^cmd(\.exe)?\s+/[ck] .*&&")
>>> regex.literals()
[('prefix', 'cmd'), ('contains', '/'), ('contains', ' '), ('contains', '&&')]

``parse_like`` reads a pattern of a whole string. It has ``*`` for any characters, none too, and
``?`` for one; a backslash before one of these, or before a backslash, takes the character as it is:

>>> [(parse_like(text).literals(), parse_like(text).is_exact) for text in ("a*", "a*b?")]
[([('prefix', 'a')], True), ([('prefix', 'a'), ('contains', 'b')], False)]

Nothing is tried twice: ``Regex.dfa`` makes an automaton, which reads a string once. So what needs a
memory is refused: backreferences, and what looks ahead or behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tamis.core.automata import STATES_MAX, Dfa, build
from tamis.core.lazy import lazy_pattern
from tamis.core.nfa import Assertion, Characters, Node, Repeat, Sequence
from tamis.language.attributes import SEPARATOR
from tamis.language.characters import ANY, complement
from tamis.language.constraints import fold
from tamis.language.regexparser import Parser, RegexError, flat

__all__ = ["Regex", "RegexError", "parse_like", "parse_regex"]


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression: strings have it in them, at any place that it does not bind itself to.

    Attributes:
        tree: its parts, one after the other.
    """

    tree: Sequence

    @property
    def is_exact(self) -> bool:
        """Whether it means the same as its ``literals``, of which there is one then.

        >>> [parse_regex(text).is_exact for text in ("^ab", ".*ab.*", "ab$", "^ab$", "a.b", "a|b")]
        [True, True, True, True, False, False]
        """
        parts = self.tree.parts
        inner = parts[parts[:1] == (Assertion.TEXT_START,) :]
        inner = inner[: len(inner) - (inner[-1:] == (Assertion.TEXT_END,))]
        return all(_only(part) is not None for part in inner)

    def literals(self) -> list[tuple[str, str]]:
        r"""Constraints that each string satisfies which it matches: operators and constants.

        The operators are ``= prefix suffix contains``.

        >>> parse_regex(r"foo\d+ba[rz]$").literals()
        [('contains', 'foo'), ('contains', 'ba')]
        """
        runs = _runs(_items(self.tree))
        if self.is_exact:
            return [(run.operator, run.text) for run in runs[:1]] or [("contains", "")]
        found = dict.fromkeys((run.operator, run.text) for run in runs if run.text)
        return [
            (operator, text)
            for operator, text in found
            if operator != "contains"
            or not any(text in other and text != other for _, other in found)
        ]

    def dfa(self, states_max: int = STATES_MAX) -> Dfa:
        """Its automaton, over the UTF-8 of strings.

        Raises:
            SubscriptionLimitError: it has more states than ``states_max``.
        """
        return build(self.tree, states_max)


def parse_regex(text: str, folded: bool = False) -> Regex:
    r"""Read a regular expression in RE2's syntax; its ``$`` is the end of the string alone.

    Args:
        folded: case does not matter: the strings were folded (``constraints.fold``).

    Raises:
        RegexError: it is none, or one that cannot be used.

    >>> try:
    ...     parse_regex("a(b|c")
    ... except RegexError as error:
    ...     print(error)
    position 1: there is no ) for this (: write \( for the character itself
    """
    return Regex(_trimmed((Parser(text, folded).parse(),)))


_SPECIAL = lazy_pattern(r"\\([*?\\])|([*?]+)")


def parse_like(text: str, folded: bool = False, is_joined: bool = False) -> Regex:
    """Read a pattern of a whole string; see the module's docstring.

    Args:
        folded: as of ``parse_regex``.
        is_joined: a part of one of several strings is so, which ``SEPARATOR`` divides.
    """
    anything = _NO_SEPARATOR if is_joined else _ANYTHING
    parts: list[Node] = [] if is_joined else [Assertion.TEXT_START]
    start = 0
    text = fold(text) if folded else text
    for found in _SPECIAL.finditer(text):
        parts += map(_character, text[start : found.start()])
        start = found.end()
        if found[1]:
            parts.append(_character(found[1]))
        else:
            parts += [anything] * found[2].count("?")
            parts += [Repeat(anything, 0, None)] * ("*" in found[2])
    parts += map(_character, text[start:])
    return Regex(_trimmed(parts if is_joined else (*parts, Assertion.TEXT_END)))


_ANYTHING = Characters(ANY)
_NO_SEPARATOR = Characters(complement(((ord(SEPARATOR), ord(SEPARATOR)),)))


def _character(character: str) -> Characters:
    return Characters(((ord(character), ord(character)),))


# -- what trees mean -----------------------------------------------------------------------------


def _trimmed(parts: Iterable[Node]) -> Sequence:
    """The parts, without what changes nothing at the ends: other text may be there anyway."""
    inner = [*flat(parts)]
    for bound in (Assertion.TEXT_END, Assertion.TEXT_START):
        inner.reverse()  # so what is looked at comes first
        while inner:
            match inner[:2]:
                case [Assertion() as at, Repeat(part, 0, None)] if (at, part) == (bound, _ANYTHING):
                    del inner[:2]
                case [Repeat(_, 0, _), *_]:
                    del inner[0]
                case [Repeat(part, 1, _), *_]:
                    own = [*flat((part,))]
                    inner[:1] = own if bound is Assertion.TEXT_START else reversed(own)
                case [Repeat(part, int(least), most), *_] if most != least:
                    inner[0] = Repeat(part, least, least)
                case _:
                    break
    return Sequence(tuple(inner))


def _only(node: Node) -> str | None:
    """The character that a node is, if it is one."""
    match node:
        case Characters(((int(low), int(high)),)) if low == high:
            return chr(low)
    return None


class _Run(NamedTuple):
    """Characters that follow each other in each match; and whether they begin or end the string."""

    text: str
    is_start: bool
    is_end: bool

    @property
    def operator(self) -> str:
        return (("contains", "suffix"), ("prefix", "="))[self.is_start][self.is_end]


_ITEMS_MAX = 1_000


def _items(node: Node) -> list[str | Assertion | None]:
    """What each match has, in order: characters, assertions, and None for what is not known."""
    match node:
        case Sequence(parts):
            return [item for part in parts for item in _items(part)]
        case Repeat(part, least, most) if least:
            own = _items(part)
            copies = least if least * len(own) <= _ITEMS_MAX else 1
            return own * copies + ([] if copies == most else [None, *own * copies])
        case Assertion():
            return [node]
    return [_only(node)]


def _runs(items: Iterable[str | Assertion | None]) -> list[_Run]:
    found = [_Run("", False, False)]
    for item in items:
        match item:
            case str():
                found[-1] = found[-1]._replace(text=found[-1].text + item)
            case Assertion.TEXT_START:
                found.append(_Run("", True, False))
            case Assertion.TEXT_END:
                found[-1] = found[-1]._replace(is_end=True)
                found.append(_Run("", False, False))
            case None:
                found.append(_Run("", False, False))
    return [run for run in found if run.text or run.is_start or run.is_end]
