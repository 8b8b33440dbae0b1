"""Why an event matches a subscription or not, and why no event can match one."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, combinations
from typing import Any

import numpy as np

from tamis.core.arrays import Int64, distinct
from tamis.core.errors import SubscriptionId
from tamis.core.index.matchset import Explanation
from tamis.events import model as at
from tamis.events.checks import Value
from tamis.events.derive import value_at
from tamis.events.engines.reference import (
    Constraint,
    Literals,
    constraint_of,
    constraints_in,
    holds,
    names_of,
    parts_of,
)
from tamis.events.model import FilterTable
from tamis.language.attributes import EVERY, Path, attribute_of, path_name, plain_name, print_name
from tamis.language.constraints import Field, print_clause, print_constraint
from tamis.language.patterns import Pattern

_TRUTHS = ("false", "true")
_ANY = ("exists", "like", "matches")
"""Operators of which it is not examined what excludes them."""
_PAIRS_MAX = 30
"""Among so many constraints of a name at most, two that exclude each other are looked for."""


def explain(
    table: FilterTable, subscription: int, id: SubscriptionId, event: Mapping[str, Value]
) -> Explanation:
    """Which constraint of each filter of a subscription fails first in an event of plain values."""
    lines: list[str] = []
    matched = False
    attributes = {
        number: value.encode() if isinstance(value, str) else value
        for number, name in enumerate(table.names)
        if (value := event.get(name)) is not None and isinstance(value, str | int | float)
    }
    for filter in np.flatnonzero(table.subscriptions == subscription).tolist():
        parts = parts_of(table, filter)
        texts = [_part(table, part) for part in parts]
        truths = [holds(part, attributes) for part in parts]
        matched |= all(truths)
        lines.append(f"  {_TRUTHS[all(truths)]}: {' and '.join(texts) or 'every event'}")
        width = max(map(len, texts), default=0)
        for part, text, is_true in zip(parts, texts, truths, strict=True):
            numbers = dict.fromkeys(chain.from_iterable(map(names_of, constraints_in(part))))
            names = list(dict.fromkeys(plain_name(table.names[number]) for number in numbers))
            found = ", ".join(_found(name, event, len(names) > 1) for name in names)
            fails = "" if is_true else "  ← fails here"
            lines.append(f"    {text:<{width}}  found: {found}{fails}")
            if not is_true:
                break
    return Explanation(matched, (f"{_TRUTHS[matched]}: {id}", *lines))


def written(table: FilterTable, subscription: int) -> str:
    """The expression of a subscription.

    >>> from tamis.events.subscriptions import EventSubscriptions
    >>> written(EventSubscriptions({"s": "a=1 and not_b exists or c in(1,2)"}).table, 0)
    'a = 1 and not_b exists or c in (1, 2)'
    """
    filters = range(*np.searchsorted(table.subscriptions, [subscription, subscription + 1]))
    every = [parts_of(table, filter) for filter in filters]
    return " or ".join(" and ".join(_part(table, part, str) for part in parts) for parts in every)


def _part(
    table: FilterTable, part: Constraint | Literals, cut: Callable[[str], str] | None = None
) -> str:
    def written(one: Constraint) -> str:
        constant = one.constant
        if one.kind is None:
            constant = Field(table.names[constant])
        return print_constraint(table.names[one.name], one.operator, _text(constant), cut or _cut)

    if isinstance(part, Constraint):
        return written(part)
    return print_clause([(list(map(written, own)), is_negated) for own, is_negated in part])


def _text(constant: Any) -> Any:
    if isinstance(constant, list):
        return [_text(item) for item in constant]
    if isinstance(constant, Pattern):
        return constant.text
    return constant.decode() if isinstance(constant, bytes) else constant


def _found(name: str, event: Mapping[str, Value], is_named: bool) -> str:
    path = attribute_of(name).path
    if path == (EVERY,):
        return "any value of the event"
    value, reached = value_at(event, path)
    found = _shown(value)
    if len(reached) < len(path):
        found = f"nothing beyond {_print_path(reached)}" if reached else "no such attribute"
        found += ", which is a list: write []" if isinstance(value, list | tuple) else ""
    return f"{print_name(name)} {found}" if is_named else found


def _print_path(path: Path) -> str:
    return print_name(path_name(path))


def _shown(value: Any) -> str:
    """A value as constraints write it; long ones are cut."""
    if isinstance(value, Mapping | list | tuple):
        try:
            return _cut(json.dumps(value, ensure_ascii=False, default=repr))
        except (TypeError, ValueError, RecursionError):  # as only dicts can be
            return reprlib.repr(value)
    return _cut(json.dumps(value, ensure_ascii=False, default=repr))


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


# -- contradictions ----------------------------------------------------------------------------


def contradictions(table: FilterTable) -> dict[int, str]:
    """The subscriptions all of whose filters contradict themselves, and how the first one does.

    Whether one string can satisfy several ``suffix`` and ``contains`` is not examined.

    >>> from tamis.events.subscriptions import EventSubscriptions
    >>> found = EventSubscriptions({"a": "n > 3 and n < 2 and m = 1", "b": "n > 3 or n < 2"})
    >>> contradictions(found.table)
    {0: 'n > 3 and n < 2 exclude each other'}
    """
    columns = table.constraint_names, table.operators, table.kinds, table.values
    number_of: dict[tuple[int, ...], int] = {}  # a constraint is known by its columns
    # Filters share most constraints, and many share pairs of them: each is examined once.
    constraint = cache(lambda key: constraint_of(table, number_of[key]))
    exclusion = cache(lambda keys: _exclusion(table, list(map(constraint, keys))))
    reasons: dict[int, str] = {}
    for filter in _suspects(table).tolist():
        of_names: dict[int, list[tuple[int, ...]]] = {}
        for number in range(*table.starts[filter : filter + 2].tolist()):
            key = tuple(int(column[number]) for column in columns)
            number_of.setdefault(key, number)
            of_names.setdefault(key[0], []).append(key)
        found = (exclusion(tuple(keys)) for keys in of_names.values())
        reason = next((one for one in found if one is not None), None)
        if reason is not None:
            reasons[filter] = reason
    if not reasons:
        return {}
    never, counts = np.unique(table.subscriptions[list(reasons)], return_counts=True)
    totals = np.bincount(table.subscriptions, minlength=len(table.interfaces))[never]
    first = dict.fromkeys(never[counts == totals].tolist(), "")
    for filter, reason in reasons.items():
        subscription = int(table.subscriptions[filter])
        if first.get(subscription) == "":
            first[subscription] = reason
    return first


def _suspects(table: FilterTable) -> Int64:
    """The filters with several constraints on a name, or with one that nothing satisfies."""
    names = len(table.names) or 1
    sizes = np.diff(table.starts[: table.filters + 1])
    owners = np.repeat(np.arange(table.filters), sizes)
    own = table.constraint_names[: len(owners)]
    pairs, counts = np.unique(owners * np.int64(names) + own, return_counts=True)
    is_less = (table.operators == at.LT) & (table.kinds == at.STRING)
    less = np.flatnonzero(is_less[: len(owners)])
    strings = table.values[less]
    is_empty = table.string_starts[strings + 1] == table.string_starts[strings]
    return distinct(np.concatenate([pairs[counts > 1] // names, owners[less[is_empty]]]))


def _exclusion(table: FilterTable, constraints: Sequence[Constraint]) -> str | None:
    """Which of some constraints on one name exclude each other, or None."""
    if _are_satisfiable(constraints):
        return None
    if len(constraints) == 1:
        return f"nothing is {_part(table, constraints[0])}"
    pairs = combinations(constraints, 2) if len(constraints) <= _PAIRS_MAX else ()
    excluding = next((pair for pair in pairs if not _are_satisfiable(pair)), constraints)
    return f"{' and '.join(_part(table, one) for one in excluding)} exclude each other"


def _are_satisfiable(constraints: Sequence[Constraint]) -> bool:
    """Whether a value satisfies constraints on one name, as far as this is examined."""
    constraints = [one for one in constraints if one.operator not in _ANY and one.kind]
    kinds = {one.kind for one in constraints}
    if len(kinds) != 1:
        return not kinds
    suffixes = [one.constant for one in constraints if one.operator == "suffix"]
    longest = max(suffixes, key=len, default=b"")
    if not all(longest.endswith(suffix) for suffix in suffixes):
        return False
    naming = [one for one in constraints if one.operator in ("=", "in")]
    if naming and kinds != {bool}:  # only a value that all of these name can satisfy them
        sets = [set(one.constant) if one.operator == "in" else {one.constant} for one in naming]
        constraints = [one for one in constraints if one.operator not in ("=", "in")]
        values = iter(set.intersection(*sets))
    elif kinds == {bool}:
        values = iter((False, True))
    elif kinds == {bytes}:
        constraints = [one for one in constraints if one.operator not in ("suffix", "contains")]
        values = _strings(constraints)
    else:
        values = _numbers(constraints)
    return any(all(one.holds({one.name: value}) for one in constraints) for value in values)


def _numbers(constraints: Sequence[Constraint]) -> Iterator[float]:
    """Numbers, at least one of all that compare alike with the constants."""
    yield -math.inf
    for one in constraints:
        yield one.constant
        yield _next(one.constant)


def _next(number: float) -> float:
    """The least number above one, of integers within 64 bits and floats."""
    if math.isinf(number):  # as arrays may have it
        return math.nextafter(number, math.inf)
    above = float(number)
    while above <= number:
        above = math.nextafter(above, math.inf)
    whole = math.floor(number) + 1
    return min(above, whole) if whole <= at.INT64_MAX else above


def _strings(constraints: Sequence[Constraint]) -> Iterator[bytes]:
    """The least string that may satisfy order and prefixes, and those right behind it."""
    least = b""
    for one in constraints:
        if one.operator in (">", ">=", "prefix"):
            least = max(least, one.constant + b"\0" * (one.operator == ">"))
    for _ in range(len(constraints) + 1):  # each != may exclude one
        yield least
        least += b"\0"
