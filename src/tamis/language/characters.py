r"""Sets of characters, as regular expressions have them: ``[a-z]``, ``\d``, ``[[:alpha:]]``.

A set is a tuple of code points from and to, ascending, and apart from each other.

>>> in_order([(98, 99), (97, 97)]), complement(((0, 96), (98, CODE_MAX)))
(((97, 99),), ((97, 97),))
"""

from __future__ import annotations

import sys
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import groupby

import numpy as np

from tamis.core.arrays import Int32, freeze
from tamis.core.nfa import CODE_MAX, Ranges
from tamis.language.constraints import fold


def in_order(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The set of ranges that may overlap."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    found, start = [], 0
    for low, high in ranges:
        if start < low:
            found.append((start, low - 1))
        start = high + 1
    if start <= CODE_MAX:
        found.append((start, CODE_MAX))
    return tuple(found)


def _set(text: str) -> Ranges:
    """The set of ranges that are written as two characters each."""
    return in_order((ord(low), ord(high)) for low, high in zip(text[::2], text[1::2], strict=True))


ANY: Ranges = ((0, CODE_MAX),)
NOT_NEWLINE = complement(_set("\n\n"))
LETTERS = {"d": _set("09"), "s": _set("\t\n\f\r  "), "w": _set("09AZaz__")}
"""What a letter behind a backslash means; a capital one means all others."""
POSIX = {
    "alnum": _set("09AZaz"),
    "alpha": _set("AZaz"),
    "ascii": _set("\0\x7f"),
    "blank": _set("\t\t  "),
    "cntrl": _set("\0\x1f\x7f\x7f"),
    "digit": _set("09"),
    "graph": _set("!~"),
    "lower": _set("az"),
    "print": _set(" ~"),
    "punct": _set("!/:@[`{~"),
    "space": _set("\t\r  "),
    "upper": _set("AZ"),
    "word": _set("09AZaz__"),
    "xdigit": _set("09AFaf"),
}


@cache
def category(name: str) -> Ranges | None:
    """The characters of one of Unicode's general categories; None where there is none.

    Its version is Python's (``unicodedata.unidata_version``).

    >>> category("Nd")[:2], category("X")
    (((48, 57), (1632, 1641)), None)
    """
    found = [each for own, each in _categories().items() if own.startswith(name)]
    return in_order(pair for each in found for pair in each) if name and found else None


@cache
def _categories() -> dict[str, list[tuple[int, int]]]:
    found = defaultdict(list)
    start = 0
    for own, same in groupby(map(unicodedata.category, map(chr, range(sys.maxunicode + 1)))):
        end = start + sum(1 for _ in same)
        if own not in ("Cs", "Cn"):  # halves of surrogate pairs, and what is no character yet
            found[own].append((start, end - 1))
        start = end
    return found


_CASED_END = 0x20000
"""Only ideographs and marks are behind."""


@cache
def folds() -> dict[int, int]:
    """The characters that fold to another one, ascending, and to which."""
    found = {}
    for start in range(0, _CASED_END, 256):
        together = "".join(map(chr, range(start, start + 256)))
        if not together.casefold() == together == together.lower():
            own = zip(together, fold(together), strict=True)
            found.update({ord(one): ord(other) for one, other in own if one != other})
    return found


@cache
def fold_table() -> Int32:
    """What each character folds to, as far as there are some that fold."""
    found = np.arange(_CASED_END, dtype=np.int32)
    found[list(folds())] = list(folds().values())
    freeze(found)
    return found


@cache
def _cases() -> dict[int, list[int]]:
    """The characters that have others of the same fold, ascending, and all of that fold."""
    of_fold = defaultdict(list)
    for one, other in folds().items():
        of_fold[other].append(one)
    same = [[other, *ones] for other, ones in of_fold.items()]
    return dict(sorted((one, each) for each in same for one in each))


@cache
def _listed(is_folded: bool) -> list[int]:
    return [*(folds() if is_folded else _cases())]


def any_case(ranges: Ranges) -> Ranges:
    r"""A set, and all characters that fold to the same as one of it.

    >>> [chr(low) for low, _ in any_case(_set("kk"))] == ["K", "k", "\N{KELVIN SIGN}"]
    True
    """
    cases = _cases()
    return in_order([
        *ranges,
        *((code, code) for one in _within(ranges, _listed(False)) for code in cases[one]),
    ])  # fmt: skip


def folded(ranges: Ranges) -> Ranges:
    """What the characters of a set fold to.

    >>> folded(_set("AZ"))
    ((97, 122),)
    """
    found, start = [], 0
    for low, high in ranges:
        start = low
        for code in _within(((low, high),), _listed(True)):
            found += [(start, code - 1), (folds()[code], folds()[code])]
            start = code + 1
        found.append((start, high))
    return in_order((low, high) for low, high in found if low <= high)


def _within(ranges: Ranges, codes: list[int]) -> Iterable[int]:
    """Those of ascending codes that are in a set."""
    for low, high in ranges:
        yield from codes[bisect_left(codes, low) : bisect_left(codes, high + 1)]
