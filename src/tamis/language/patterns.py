"""Patterns of strings, and networks: how they are written, and what has them.

A pattern has ``*`` for any characters, none too, and ``?`` for one; a backslash before one of
these, or before a backslash, takes the character as it is. It is matched piece by piece between the
``*``, each where it is found first: so there is nothing to try again.

>>> [Pattern.read("a*b?").matches(text) for text in ("abc", "a..bx", "ab")]
[True, True, False]
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tamis.core.lazy import lazy_pattern

_SPECIAL = lazy_pattern(r"\\([*?\\])|([*?])")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Piece(NamedTuple):
    """Characters between two ``*``; ``None`` is any one."""

    characters: tuple[str | None, ...]

    @property
    def text(self) -> str | None:
        """The piece as a string, where it has no ``?``."""
        return "".join(map(str, self.characters)) if None not in self.characters else None

    def find(self, text: str, start: int, end: int) -> int:
        """Where it is first, from ``start`` on and before ``end``; or -1."""
        if self.text is not None:
            return text.find(self.text, start, end)
        last = end - len(self.characters)
        return next((at for at in range(start, last + 1) if self.is_at(text, at)), -1)

    def is_at(self, text: str, start: int) -> bool:
        """Whether it stands at a place."""
        found = text[start : start + len(self.characters)]
        return len(found) == len(self.characters) and all(
            one is None or one == other for one, other in zip(self.characters, found, strict=True)
        )


class Pattern(NamedTuple):
    """Pieces, with any characters between each two of them."""

    pieces: tuple[Piece, ...]

    @classmethod
    def read(cls, text: str) -> Pattern:
        """A pattern as it is written."""
        pieces: list[list[str | None]] = [[]]
        start = 0
        for found in _SPECIAL.finditer(text):
            pieces[-1] += text[start : found.start()]
            start = found.end()
            if found[1] is not None:
                pieces[-1].append(found[1])
            elif found[2] == "?":
                pieces[-1].append(None)
            else:
                pieces.append([])
        pieces[-1] += text[start:]
        inner = [piece for piece in pieces[1:-1] if piece]
        kept = [pieces[0], *inner, pieces[-1]] if len(pieces) > 1 else pieces
        return cls(tuple(Piece(tuple(piece)) for piece in kept))

    def matches(self, text: str) -> bool:
        """Whether a whole string is so."""
        first, last = self.pieces[0], self.pieces[-1]
        if len(self.pieces) == 1:
            return len(text) == len(first.characters) and first.is_at(text, 0)
        at, end = len(first.characters), len(text) - len(last.characters)
        if end < at or not first.is_at(text, 0) or not last.is_at(text, end):
            return False
        for piece in self.pieces[1:-1]:
            found = piece.find(text, at, end)
            if found < 0:
                return False
            at = found + len(piece.characters)
        return True


class Networks:
    """Networks by what is asked of them: the longest prefix need not be found, but all that hold.

    >>> asked = Networks({"a": "10.0.0.0/8", "b": "10.1.0.0/16", "c": "fe80::/10"})
    >>> list(asked.of("10.1.2.3")), list(asked.of("fe80::1")), list(asked.of("x"))
    (['a', 'b'], ['c'], [])
    """

    def __init__(self, asked: Mapping[str, str]) -> None:
        self._names: dict[tuple[int, int], dict[int, list[str]]] = {}
        for name, text in asked.items():
            network = ipaddress.ip_network(text)
            shift = network.max_prefixlen - network.prefixlen
            of_size = self._names.setdefault((network.version, shift), {})
            of_size.setdefault(int(network.network_address) >> shift, []).append(name)

    def of(self, text: str) -> Iterator[str]:
        """What is asked for networks that have an address."""
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return
        for (version, shift), names in self._names.items():
            if version == address.version:
                yield from names.get(int(address) >> shift, ())
