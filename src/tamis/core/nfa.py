r"""Trees of regular expressions, and Thompson's NFA of them (CACM 11, 1968), over bytes of UTF-8.

A tree is made of ``Characters``, ``Assertion``, ``Sequence``, ``Choice`` and ``Repeat``. The NFA's
positions are numbered; one that reads a byte leads to the position behind it, so a step of a set of
positions, as a Python integer, is ``(positions & those that read this byte) << 1``.

>>> nfa = Nfa(Sequence((Characters(((97, 98),)), Characters(((0xE9, 0xE9),)))), 100)
>>> [[byte for byte in range(256) if bytes >> byte & 1] for bytes in nfa.reads.values()]
[[97, 98], [195], [169]]

Two things keep it small, and what is made of it:

* A class with all characters beyond ASCII, such as ``[^a]``, reads any first byte, and then what
  continues the character: two positions instead of seven. Texts are valid UTF-8, so the class need
  not check that.
* Copies of a part are known as such (``Chain``): most of them need not be in a set.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

from tamis.core.errors import SubscriptionLimitError

Ranges = tuple[tuple[int, int], ...]
"""Characters, as code points from and to; ascending, and apart from each other."""

CODE_MAX = 0x10FFFF


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of some."""

    ranges: Ranges


class Assertion(Enum):
    """What holds between two characters."""

    TEXT_START = r"\A"
    TEXT_END = r"\z"
    LINE_START = "(?m)^"
    LINE_END = "(?m)$"
    BOUNDARY = r"\b"
    NO_BOUNDARY = r"\B"


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part, so often; ``most`` is None where there is no bound."""

    part: Node
    least: int
    most: int | None


Node = Characters | Assertion | Sequence | Choice | Repeat


def too_large(states_max: int) -> SubscriptionLimitError:
    """The error of a pattern that needs more."""
    message = (
        "the pattern's automaton is larger, or takes longer to build, than the limit "
        f"subscription_states = {states_max:,}"
    )
    hint = "write smaller numbers in {…}, or * instead; or split the pattern"
    return SubscriptionLimitError(message, hint=hint)


ANY_BYTE = (1 << 256) - 1
"""A set of bytes is an integer, bit by bit."""


def bytes_of(low: int, high: int) -> int:
    """The set of bytes from one to another."""
    return (1 << (high + 1)) - (1 << low)


CONTINUING = bytes_of(0x80, 0xBF)
_FIRST_BYTES = bytes_of(0xC0, 0xFF)
WORD = bytes_of(48, 57) | bytes_of(65, 90) | bytes_of(95, 95) | bytes_of(97, 122)


class Chain:
    """Copies of one part, each of ``stride`` positions from ``start`` on, one after the other.

    Of positions at the same place of several copies, only those of the first copy are needed, or of
    the last. None is needed where ``top``, a position as an integer, is there.
    """

    def __init__(
        self, start: int, stride: int, count: int, is_first_needed: bool, top: int = 0
    ) -> None:
        self._mask = (1 << stride * count) - 1 << start
        # The first positions of all copies: ones that are stride apart.
        self._first = self._mask // ((1 << stride) - 1)
        self.stride = stride
        self._is_first_needed = is_first_needed
        self._top = top

    def reduced(self, positions: int) -> int:
        found = positions & self._mask
        if positions & self._top:
            return positions ^ found
        if not found & (found - 1):
            return positions
        kept, place = positions ^ found, self._first
        for _ in range(self.stride):
            same = found & place
            if same:
                kept |= same & -same if self._is_first_needed else 1 << same.bit_length() - 1
            place <<= 1
        return kept


POSITIONS_PER_STATE = 4
"""An NFA may have so many times the positions that its DFA may have states."""


class Nfa:
    """Positions, numbered from 0, the start, to ``accept``.

    Attributes:
        reads: of positions that read a byte: which bytes, bit by bit.
        leads: of those that lead on without reading: where to.
        asserts: of those that lead to the next one where something holds: what.
        chains: see ``Chain``.
        loops: positions where any text may follow, each with those that are not needed then.
    """

    def __init__(self, tree: Node, states_max: int) -> None:
        self.reads: dict[int, int] = {}
        self.leads: dict[int, list[int]] = {}
        self.asserts: dict[int, Assertion] = {}
        self.chains: list[Chain] = []
        self.loops: list[tuple[int, int]] = []
        self.accept = 0
        self._max = states_max
        for part in tree.parts if isinstance(tree, Sequence) else (tree,):
            before = self.accept
            self._add(part)
            if self.reads.get(self.accept - 2) == ANY_BYTE and self.accept >= before + 3:
                self.loops.append((1 << self.accept - 2, (1 << self.accept - 3) - 1))

    def _next(self) -> int:
        if self.accept > POSITIONS_PER_STATE * self._max:
            raise too_large(self._max)
        self.accept += 1
        return self.accept - 1

    def _read(self, bytes: int) -> None:
        self.reads[self._next()] = bytes

    def _lead(self, *targets: int) -> list[int]:
        found = self.leads[self._next()] = list(targets)
        return found

    def _add(self, node: Node) -> None:
        match node:
            case Characters(ranges):
                self._add_characters(ranges)
            case Sequence(parts):
                for part in parts:
                    self._add(part)
            case Choice(parts):
                split, joins = self._lead(), []
                for part in parts:
                    split.append(self.accept)
                    self._add(part)
                    joins.append(self._lead())
                for join in joins:
                    join.append(self.accept)
            case Repeat(part, least, None):
                self._add_unbounded(part, least)
            case Repeat(part, least, int(most)):
                self._add_copies(part, least)
                self._add_optional(part, most - least)
            case Assertion():
                self.asserts[self._next()] = node

    def _add_copies(self, part: Node, count: int) -> None:
        for _ in range(count):
            self._add(part)

    def _add_optional(self, part: Node, count: int) -> None:
        """Copies that may be left out, the last ones first."""
        start, splits = self.accept, []
        for _ in range(count):
            splits.append(self._lead(self.accept + 1))
            self._add(part)
        for split in splits:
            split.append(self.accept)
        if count > 1:
            self.chains.append(Chain(start, (self.accept - start) // count, count, True))

    def _add_unbounded(self, part: Node, least: int) -> None:
        start = self.accept
        is_loop = isinstance(part, Characters) and _has_rest(part.ranges)
        if least == 0 or is_loop:
            self._add_copies(part, least)
            first = self.accept
            split = self._lead(first + 1)
            if isinstance(part, Characters) and is_loop:
                # Which byte of a character it is need not be known: no other begins within.
                self._read(_ascii(part.ranges) | CONTINUING | _FIRST_BYTES)
            else:
                self._add(part)
            self._lead(first)
            split.append(self.accept)
            end, top = first, 1 << first + 1
        else:
            self._add_copies(part, least)
            end, top = self.accept, 0
            self._lead(start + (end - start) // least * (least - 1), end + 1)
        if least > 1 and end > start:
            self.chains.append(Chain(start, (end - start) // least, least, False, top))

    def _add_characters(self, ranges: Ranges) -> None:
        if _has_rest(ranges):
            self._read(_ascii(ranges) | _FIRST_BYTES)
            self._lead(self.accept + 1, self.accept + 3)
            self._read(CONTINUING)
            self._lead(self.accept - 2)
            return
        todo = [edges_of(ranges)]
        if not any(after for _, after in todo[0]):
            self._read(sum(bytes for bytes, _ in todo[0]))
            return
        starts: dict[Edges, int] = {}
        ends: list[tuple[list[int], Edges]] = []
        for edges in todo:  # which grows meanwhile
            starts[edges] = self.accept
            split = self._lead()
            for bytes, after in edges:
                split.append(self.accept)
                self._read(bytes)
                ends.append((self._lead(), after))
                if after and after not in todo:
                    todo.append(after)
        starts[()] = self.accept
        for end, after in ends:
            end.append(starts[after])


def _has_rest(ranges: Ranges) -> bool:
    """Whether all characters beyond ASCII are there."""
    return bool(ranges) and ranges[-1][0] <= 0x80 and ranges[-1][1] == CODE_MAX


def _ascii(ranges: Ranges) -> int:
    """Those of ASCII, bit by bit."""
    return sum(bytes_of(low, min(high, 0x7F)) for low, high in ranges if low < 0x80)


_LENGTHS = ((0, 0x7F, 0), (0x80, 0x7FF, 0xC0), (0x800, 0xFFFF, 0xE0), (0x10000, CODE_MAX, 0xF0))


Edges = tuple[tuple[int, Any], ...]
"""Sets of bytes, each with the edges that may follow; none where a character ends."""


def edges_of(ranges: Ranges) -> Edges:
    """The bytes of characters in UTF-8; what is not UTF-8 may be among them.

    Characters with equal bytes behind their first ones share the edges for these.

    >>> ((first, ((second, end),)),) = edges_of(((0xC0, 0xFF),))  # from À to ÿ
    >>> f"{first:b}".count("0"), f"{second:b}".count("1"), end
    (195, 64, ())
    """
    found: list[tuple[int, Any]] = []
    for others, (least, most, mark) in enumerate(_LENGTHS):
        # No character is written with more bytes than it needs, so these may be read, too.
        greatest = (1 << (7, 11, 16, 21)[others]) - 1
        own = tuple(
            (0 if low <= least else low, greatest if high >= most else high)
            for low, high in ranges
            if low <= most and high >= least
        )
        found += _edges(own, others, mark)
    return tuple(found)


@lru_cache(1 << 12)
def _edges(ranges: Ranges, others: int, mark: int) -> Edges:
    """The edges of numbers, whose digits to base 64 are one byte and ``others``."""
    unit = 1 << 6 * others
    parts: dict[int, list[tuple[int, int]]] = {}
    for low, high in ranges:
        for digit in range(low // unit, high // unit + 1):
            first = digit * unit
            parts.setdefault(digit, []).append((max(low - first, 0), min(high - first, unit - 1)))
    found: dict[Edges, int] = {}
    for digit, part_ranges in parts.items():
        after = _edges(tuple(part_ranges), others - 1, 0x80) if others else ()
        found[after] = found.get(after, 0) | 1 << digit + mark
    return tuple((bytes, after) for after, bytes in found.items())
