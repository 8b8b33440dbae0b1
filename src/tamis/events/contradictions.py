"""Subscriptions that no event can match, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from tamis.core.arrays import Int64, distinct
from tamis.events.engines.reference import Constraint, constraint_of
from tamis.events.explain import written
from tamis.events.model import INT64_MAX, LT, STRING, FilterTable

_PAIRS_MAX = 30
"""Among so many constraints of a name at most, two that exclude each other are looked for."""


def contradictions(table: FilterTable) -> dict[int, str]:
    """The subscriptions all of whose filters contradict themselves, and how the first one does.

    Of ``suffix`` and ``contains`` it is not asked whether one string can have all that is wanted.

    >>> from tamis.events.subscriptions import EventSubscriptions
    >>> found = EventSubscriptions({"a": "n > 3 and n < 2 and m = 1", "b": "n > 3 or n < 2"})
    >>> contradictions(found.table)
    {0: 'n > 3 and n < 2 exclude each other'}
    """
    known = _Constraints(table)
    reasons = {
        filter: reason
        for filter in _doubtful(table).tolist()
        if (reason := _contradiction(table, filter, known)) is not None
    }
    if not reasons:
        return {}
    never, counts = np.unique(table.subscriptions[list(reasons)], return_counts=True)
    totals = np.bincount(table.subscriptions, minlength=len(table.interfaces))[never]
    wanted = dict.fromkeys(never[counts == totals].tolist(), "")
    for filter, reason in reasons.items():
        subscription = int(table.subscriptions[filter])
        if wanted.get(subscription) == "":
            wanted[subscription] = reason
    return wanted


def _doubtful(table: FilterTable) -> Int64:
    """The filters with several constraints on a name, or with one that nothing satisfies."""
    owners = np.repeat(np.arange(table.filters), np.diff(table.starts))
    pairs = owners * np.int64(len(table.names) or 1) + table.constraint_names
    found, counts = np.unique(pairs, return_counts=True)
    several = found[counts > 1] // (len(table.names) or 1)
    least = np.flatnonzero((table.operators == LT) & (table.kinds == STRING))
    strings = table.values[least]
    is_empty = table.string_starts[strings + 1] == table.string_starts[strings]
    return distinct(np.concatenate([several, owners[least[is_empty]]]))


Key = tuple[int, ...]
"""A constraint, as the columns of its table have it."""


class _Constraints:
    """The constraints of a table; what many filters share is looked at once."""

    def __init__(self, table: FilterTable) -> None:
        self._table = table
        self._known: dict[Key, Constraint] = {}
        self._reasons: dict[tuple[Key, ...], str | None] = {}

    def _key(self, place: int) -> Key:
        table = self._table
        columns = (table.constraint_names, table.operators, table.kinds, table.values)
        return tuple(int(column[place]) for column in columns)

    def _of(self, place: int) -> Constraint:
        """The constraint at a place."""
        key = self._key(place)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = constraint_of(self._table, place)
        return found

    def reason(self, places: Sequence[int]) -> str | None:
        """Which of some constraints on one name exclude each other, or None."""
        key = tuple(map(self._key, places))
        if key not in self._reasons:
            self._reasons[key] = self._found_reason(places)
        return self._reasons[key]

    def _found_reason(self, places: Sequence[int]) -> str | None:
        constraints = {place: self._of(place) for place in places}
        if _can_be(list(constraints.values())):
            return None
        if len(places) == 1:
            return f"nothing is {written(self._table, places[0])}"
        pairs = combinations(places, 2) if len(places) <= _PAIRS_MAX else ()
        excluding = (pair for pair in pairs if not _can_be([constraints[at] for at in pair]))
        texts = [written(self._table, place) for place in next(excluding, places)]
        return f"{' and '.join(texts)} exclude each other"


def _contradiction(table: FilterTable, filter: int, known: _Constraints) -> str | None:
    """Which constraints of a filter exclude each other, or None."""
    places: dict[int, list[int]] = {}
    for place in range(*table.starts[filter : filter + 2].tolist()):
        places.setdefault(int(table.constraint_names[place]), []).append(place)
    reasons = map(known.reason, places.values())
    return next((reason for reason in reasons if reason is not None), None)


def _can_be(constraints: Sequence[Constraint]) -> bool:
    """Whether a value satisfies constraints on one name, as far as that is asked."""
    constraints = [one for one in constraints if one.operator != "exists"]
    kinds = {one.kind for one in constraints}
    if len(kinds) != 1:
        return not kinds
    if not _can_end_so([one.constant for one in constraints if one.operator == "suffix"]):
        return False
    is_given = any(one.operator in ("=", "in") for one in constraints)
    if kinds == {bytes} and not is_given:
        constraints = [one for one in constraints if one.operator not in ("suffix", "contains")]
    if is_given and kinds != {bool}:
        return _can_be_one_of(constraints)
    if kinds == {bool}:
        values: Iterator[bytes | float] = iter((False, True))
    else:
        values = _strings(constraints) if kinds == {bytes} else _numbers(constraints)
    return any(all(one.holds({one.name: value}) for one in constraints) for value in values)


def _can_be_one_of(constraints: Sequence[Constraint]) -> bool:
    """Whether a value that ``=`` and ``in`` all name satisfies the other constraints."""
    named = [one for one in constraints if one.operator in ("=", "in")]
    sets = [set(one.constant) if one.operator == "in" else {one.constant} for one in named]
    others = [one for one in constraints if one.operator not in ("=", "in")]
    return any(
        all(one.holds({one.name: value}) for one in others) for value in set.intersection(*sets)
    )


def _can_end_so(suffixes: Sequence[bytes]) -> bool:
    """Whether some string ends with all of these."""
    longest = max(suffixes, key=len, default=b"")
    return all(longest.endswith(suffix) for suffix in suffixes)


def _constants(constraints: Sequence[Constraint]) -> Iterator[bytes | float]:
    for one in constraints:
        yield from one.constant if one.operator == "in" else [one.constant]


def _numbers(constraints: Sequence[Constraint]) -> Iterator[float]:
    """Numbers, one at least of all that compare alike with the constants."""
    yield -math.inf
    for constant in _constants(constraints):
        assert not isinstance(constant, bytes)
        yield constant
        yield _next(constant)


def _next(number: float) -> float:
    """The least number above one, of integers within 64 bits and floats."""
    if math.isinf(number):  # as arrays may have it
        return math.nextafter(number, math.inf)
    above = float(number)
    while above <= number:
        above = math.nextafter(above, math.inf)
    whole = math.floor(number) + 1
    return min(above, whole) if whole <= INT64_MAX else above


def _strings(constraints: Sequence[Constraint]) -> Iterator[bytes]:
    """The least string that may satisfy order and prefixes, and those right behind it."""
    least = b""
    for one in constraints:
        if one.operator in (">", ">=", "prefix"):
            least = max(least, one.constant + b"\0" * (one.operator == ">"))
    for _ in range(len(constraints) + 1):  # each != may exclude one
        yield least
        least += b"\0"
