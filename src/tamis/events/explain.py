"""Why an event matches a subscription or not: which constraint of each filter fails first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np

from tamis.core.errors import SubscriptionId
from tamis.core.index.matchset import Explanation
from tamis.events.model import BOOLEAN, EXISTS, FLOAT, IN, OPERATORS, STRING, FilterTable
from tamis.events.values import Value, object_of
from tamis.language.constraints import print_name


def explain(
    table: FilterTable, subscription: int, id: SubscriptionId, event: Mapping[str, Value]
) -> Explanation:
    """Explain a subscription's answer to an event whose values that filters name are plain."""
    lines: list[str] = []
    matched = False
    filters = np.flatnonzero(table.subscriptions == subscription).tolist()
    if filters:
        of_filter = _explained(_part(table, filters[0], filters[-1] + 1), event)
        for holds, text, details in of_filter:
            matched |= holds
            lines += [f"  {_truth(holds)}: {text}", *(f"    {line}" for line in details)]
    return Explanation(matched, (f"{_truth(matched)}: {id}", *lines))


def _part(table: FilterTable, first: int, end: int) -> FilterTable:
    """Some of the filters, which follow each other."""
    starts = table.starts[first : end + 1]
    part = slice(int(starts[0]), int(starts[-1]))
    return table._replace(
        starts=starts - starts[0],
        constraint_names=table.constraint_names[part],
        operators=table.operators[part],
        kinds=table.kinds[part],
        values=table.values[part],
        subscriptions=table.subscriptions[first:end],
    )


def _explained(
    table: FilterTable, event: Mapping[str, Value]
) -> Iterator[tuple[bool, str, list[str]]]:
    """Of each filter: whether it matches, how it is written, and its constraints one by one."""
    from tamis.events.engines.reference import compile_filters  # noqa: PLC0415 - seldom needed

    attributes = {
        number: value.encode() if isinstance(value, str) else value
        for number, name in enumerate(table.names)
        if (value := event.get(name)) is not None
    }
    for filter, constraints in enumerate(compile_filters(table).filters):
        first, end = table.starts[filter : filter + 2].tolist()
        texts = [written(table, place) for place in range(first, end)]
        truths = [constraint.holds(attributes) for constraint in constraints]
        width = max(map(len, texts), default=0)
        details = []
        for place, text, holds in zip(range(first, end), texts, truths, strict=True):
            name = table.names[table.constraint_names[place]]
            value = event.get(name)
            found = _value(value) if name in event else _missing(name, event)
            details.append(f"{text:<{width}}  found: {found}{'' if holds else '  ← fails here'}")
            if not holds:
                break
        yield all(truths), " and ".join(texts) or "every event", details


def written(table: FilterTable, place: int) -> str:
    """A constraint, as it is written."""
    name = print_name(table.names[table.constraint_names[place]])
    operator = int(table.operators[place])
    value = int(table.values[place])
    if operator == EXISTS:
        return f"{name} exists"
    if operator == IN:
        items = range(*table.list_starts[value : value + 2].tolist())
        constants = [
            _constant(table, int(table.list_kinds[item]), int(table.list_values[item]))
            for item in items
        ]
        return f"{name} in ({', '.join(constants)})"
    return f"{name} {OPERATORS[operator]} {_constant(table, int(table.kinds[place]), value)}"


def _constant(table: FilterTable, kind: int, value: int) -> str:
    if kind == STRING:
        start, end = table.string_starts[value : value + 2].tolist()
        return _value(table.string_bytes[start:end].tobytes().decode())
    if kind == FLOAT:
        return _value(float(np.int64(value).view(np.float64)))
    return _value(bool(value) if kind == BOOLEAN else value)


def _value(value: Value | None) -> str:
    """A value as constraints write it; long ones are cut."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _missing(name: str, event: Mapping[str, Value]) -> str:
    found = object_of(name, event)
    if found is None:
        return "no such attribute"
    return (
        f"no such attribute; {_value(found)} is an object, but names are flat: flatten events "
        "first (docs/events.md)"
    )


def _truth(holds: bool) -> str:
    return "true" if holds else "false"
