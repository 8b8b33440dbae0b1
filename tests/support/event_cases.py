"""Cases of one expression about events, held against every way to match; and comparisons."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from typing import Any

import tamis
from tamis.events.explain import written

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "prefix": str.startswith,
    "suffix": str.endswith,
    "contains": str.__contains__,
}
"""What operators mean, of two values of a kind."""


def check_case(
    expression: str, true: Sequence[dict[str, Any]], false: Sequence[dict[str, Any]], engine: str
) -> None:
    """Events of which an expression is true, and others: one by one, together, as lines."""
    matcher = tamis.compile_events({"s": expression}, engine=engine)
    events = [*true, *false]
    expected = [["s"]] * len(true) + [[]] * len(false)
    assert [list(match) for match in matcher.match_many(events)] == expected
    assert [list(matcher.match(event)) for event in events] == expected
    is_json = ["nan" not in repr(event).lower() for event in events]
    kept = [event for event, has_line in zip(events, is_json, strict=True) if has_line]
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in kept)
    of_lines = [list(match) for match in matcher.match_ndjson(lines)]
    assert of_lines == [ids for ids, has_line in zip(expected, is_json, strict=True) if has_line]
    for event, ids in zip(events, expected, strict=True):
        assert str(matcher.explain(event, "s")).startswith("true" if ids else "false")
    again = tamis.compile_events({"s": written(matcher.table, 0)})
    assert [list(match) for match in again.match_many(events)] == expected
