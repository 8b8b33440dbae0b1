"""Patterns of strings, and networks: how they are written, and what has them.

A pattern has ``*`` for any characters, none too, and ``?`` for one; a backslash before one of
these, or before a backslash, takes the character as it is.

>>> [Pattern("a*b?").matches(text) for text in ("abc", "a..bx", "ab")]
[True, True, False]
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping

from tamis.core.lazy import lazy_pattern

_SPECIAL = lazy_pattern(r"\\([*?\\])|([*?])")


class Pattern:
    """What is between the ``*`` of a pattern, and how it is found.

    Attributes:
        pieces: what stands between two ``*``; None for ``?``.
    """

    def __init__(self, text: str) -> None:
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
        self.pieces = [pieces[0], *inner, pieces[-1]] if len(pieces) > 1 else pieces
        written = ["".join("." if x is None else re.escape(x) for x in own) for own in self.pieces]
        # Each piece is taken where it is first: there is nothing to try again.
        middle = "".join(f"(?>.*?{piece})" for piece in written[1:-1])
        last = f".*{written[-1]}" if len(written) > 1 else ""
        self._expression = re.compile(written[0] + middle + last, re.DOTALL)

    def matches(self, text: str) -> bool:
        """Whether a whole string is so."""
        return self._expression.fullmatch(text) is not None

    def strings(self) -> list[str | None]:
        """The pieces as strings; None for one with ``?``."""
        return [None if None in own else "".join(map(str, own)) for own in self.pieces]

    def literals(self) -> list[str]:
        """Strings that are part of all that it matches."""
        runs: list[str] = []
        for own in self.pieces:
            runs += "".join("\0" if x is None else x for x in own).split("\0")
        return [run for run in runs if run]


class Networks:
    """Networks, and the names of all those that an address is in.

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
        if not self._names:
            return
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return
        for (version, shift), names in self._names.items():
            if version == address.version:
                yield from names.get(int(address) >> shift, ())
