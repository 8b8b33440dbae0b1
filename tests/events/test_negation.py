"""``not``, ``absent`` and ``null``: named cases, and drawn formulas against plain evaluation."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.core.errors import UsageError
from tamis.events import EventSubscriptions
from tamis.events.explain import written
from tamis.events.model import checked_table
from tamis.language.attributes import plain_name
from tamis.language.constraints import Constraint, print_filters
from tests.support.drawn_events import CONSTRAINTS, EVENTS
from tests.support.event_cases import COMPARE

ENGINES = ("signature", "reference", "sff", "ocm")

CASES: dict[str, tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = {
    "not holds where it is missing": (
        'not a = "x"',
        [{}, {"a": None}, {"a": "y"}, {"a": 1}],
        [{"a": "x"}],
    ),
    "!= does not": ('a != "x"', [{"a": "y"}], [{}, {"a": None}, {"a": 1}, {"a": "x"}]),
    "not !=": ('not a != "x"', [{}, {"a": "x"}, {"a": 1}], [{"a": "y"}]),
    "absent is missing or null": ("a absent", [{}, {"a": None}], [{"a": 0}, {"a": ""}]),
    "exists is the opposite": ("not a exists", [{}, {"a": None}], [{"a": 0}, {"a": ""}]),
    "null is there": ("a = null", [{"a": None}], [{}, {"a": 0}]),
    "missing, but not null": ("a absent and not a = null", [{}], [{"a": None}, {"a": 0}]),
    "!= null": ("a != null", [{"a": 0}], [{}, {"a": None}]),
    "anything but": (
        'a exists and not a in ("x", 3)',
        [{"a": "y"}, {"a": 4}, {"a": True}],
        [{}, {"a": None}, {"a": "x"}, {"a": 3.0}],
    ),
    "one of a list is null": ('a in ("x", null)', [{"a": "x"}, {"a": None}], [{}, {"a": "y"}]),
    "not a range": ("not a > 3", [{}, {"a": 3}, {"a": "z"}, {"a": float("nan")}], [{"a": 4}]),
    "not between": (
        "not a between 1 and 3",
        [{}, {"a": 0}, {"a": 4}, {"a": "2"}],
        [{"a": 1}, {"a": 3}],
    ),
    "not a part": ('not a contains "x"', [{}, {"a": "y"}, {"a": 1}], [{"a": "axb"}]),
    "not without case": ('not a = i"X"', [{}, {"a": "y"}], [{"a": "x"}, {"a": "X"}]),
    "not a group": (
        "n = 1 and not (a = 1 and b = 2)",
        [{"n": 1}, {"n": 1, "a": 1}, {"n": 1, "b": 2}, {"n": 1, "a": 1, "b": 3}],
        [{"n": 1, "a": 1, "b": 2}, {"a": 1}],
    ),
    "not one of several": (
        "n = 1 and not (a = 1 or b = 2)",
        [{"n": 1}, {"n": 1, "a": 2}],
        [{"n": 1, "a": 1}, {"n": 1, "b": 2}, {}],
    ),
    "all of it is true": ("a = 1 or not a = 1", [{}, {"a": 1}, {"a": 2}], []),
    "none of it is true": ("a = 1 and not a = 1", [], [{}, {"a": 1}, {"a": 2}]),
}  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_cases(case: str, engine: str) -> None:
    expression, true, false = CASES[case]
    matcher = tamis.compile_events({"s": expression, "any": "z = 1 or not z = 1"}, engine=engine)
    events = [*true, *false]
    expected = [["s", "any"]] * len(true) + [["any"]] * len(false)
    assert [list(match) for match in matcher.match_many(events)] == expected
    assert [list(matcher.match(event)) for event in events] == expected
    for event, ids in zip(events, expected, strict=True):
        assert str(matcher.explain(event, "s")).startswith("true" if "s" in ids else "false")


# -- drawn formulas --------------------------------------------------------------------------------

Formula = tuple[str, Callable[[dict[str, Any]], bool]]


def _kind(value: object) -> type:
    return float if type(value) is int else type(value)


def holds(constraint: Constraint, event: dict[str, Any]) -> bool:
    """Whether a constraint is satisfied, as docs/events.md says."""
    name, asked, constant = constraint
    value = event.get(plain_name(name))
    if value is None or asked == "exists":
        return value is not None
    if name != plain_name(name) and isinstance(value, str):
        value = {"A": "a", "É": "é"}.get(value, value)  # of the strings that are drawn
    if asked == "in":
        return any(_kind(value) is _kind(item) and value == item for item in constant)  # type: ignore[union-attr]
    return _kind(value) is _kind(constant) and COMPARE[asked](value, constant)


def _is_finite(constraint: Constraint) -> bool:
    constants = (
        constraint.constant if isinstance(constraint.constant, tuple) else [constraint.constant]
    )
    return not any(isinstance(each, float) and math.isinf(each) for each in constants)


def _negated(formula: Formula) -> Formula:
    text, truth = formula
    return f"not ({text})", lambda event: not truth(event)


def _joined(word: str, test: Callable[..., bool], parts: list[Formula]) -> Formula:
    truths = [truth for _, truth in parts]
    text = f" {word} ".join(f"({text})" for text, _ in parts)
    return text, lambda event: test(truth(event) for truth in truths)


def _one(constraint: Constraint) -> Formula:
    return print_filters([[constraint]]), lambda event: holds(constraint, event)


def _grown(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    parts = st.lists(inner, min_size=2, max_size=4)
    return st.one_of(
        inner.map(_negated),
        parts.map(lambda found: _joined("and", all, found)),
        parts.map(lambda found: _joined("or", any, found)),
    )


FORMULAS = st.recursive(CONSTRAINTS.filter(_is_finite).map(_one), _grown, max_leaves=12)


@settings(max_examples=80)
@given(
    formulas=st.lists(FORMULAS, min_size=1, max_size=6),
    events=EVENTS.filter(len),
    engine=st.sampled_from(ENGINES),
)
def test_drawn_formulas(formulas: list[Formula], events: list[dict[str, Any]], engine: str) -> None:
    expressions = {number: text for number, (text, _) in enumerate(formulas)}
    expected = [[n for n, (_, truth) in enumerate(formulas) if truth(event)] for event in events]
    matcher = tamis.compile_events(expressions, engine=engine)
    for _ in range(2):  # after a batch, kernels alone can match single events
        assert [list(match) for match in matcher.match_many(events)] == expected
        assert [list(matcher.match(event)) for event in events] == expected
    again = {
        n: text for n in expressions if len(text := written(matcher.table, n)) < 10_000 and text
    }
    kept = [[number for number in own if number in again] for own in expected]
    assert [list(match) for match in tamis.compile_events(again).match_many(events)] == kept
    live = tamis.EventMatcher(dict(list(expressions.items())[::2]), engine=engine)
    for number, text in list(expressions.items())[1::2]:
        live.add(number, text)
    assert [sorted(match) for match in live.match_many(events)] == expected
    live.compact()
    live.remove(0)
    without = [[number for number in own if number] for own in expected]
    assert [sorted(match) for match in live.match_many(events)] == without
    assert [sorted(live.match(event)) for event in events] == without


def test_interfaces_and_filters() -> None:
    expressions = {"a": "n = 1 and not m = 1", "b": "not k exists or n = 2", "c": "n = 3"}
    matcher = tamis.compile_events(expressions, interfaces={"a": "x", "b": "y", "c": "x"})
    assert list(matcher.match({"n": 1}, by="interface")) == ["x", "y"]
    assert list(matcher.match({"n": 1, "k": 1, "m": 1}, by="interface")) == []
    assert list(matcher.match({"n": 3, "k": 1}, by="interface")) == ["x"]
    assert list(matcher.match({"n": 2}, by="filter")) == [1, 2]
    assert len(matcher.table.subscriptions) == 4


def test_lines_rows_and_dicts_say_the_same() -> None:
    events = [{"a": "x", "n": 1}, {"a": None, "n": 2}, {"a": "y", "n": None}]
    matcher = tamis.compile_events(
        {"null": "a = null", "not": 'not a = "x"', "absent": "n absent", "in": "n in (1, null)"}
    )
    expected = [["in"], ["null", "not"], ["not", "absent", "in"]]
    lines = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    rows = pyarrow.Table.from_pylist(events)
    for found in (
        matcher.match_many(events),
        matcher.match_ndjson(lines),
        matcher.match_arrow(rows),
    ):
        assert [list(match) for match in found] == expected


def test_bad_subscriptions_leave_no_clauses() -> None:
    """Their first constraints were read, before the others were refused."""
    given = {"bad": "not y = 1 and a..b = 2", "good": "x = 1"}
    found = EventSubscriptions(given, skip_bad=True)
    assert (found.table.conditions, len(found)) == (0, 1)
    assert list(tamis.compile_events(found).match({"x": 1})) == ["good"]
    assert checked_table(found.table).conditions == 0
    table = EventSubscriptions({"s": "x = 1 and not y = 2"}).table
    empty = table._replace(literal_starts=np.array([0, 0]), literals=np.zeros(0, np.int32))
    with pytest.raises(UsageError, match="a clause without literals"):
        checked_table(empty)


def test_a_set_with_clauses_is_kept_in_a_folder(tmp_path: Any) -> None:
    expressions = {n: f"n = {n % 7} and not (a = {n} or b absent)" for n in range(300)}
    event = {"n": 3, "a": 10, "b": 0}
    expected = [n for n in range(300) if n % 7 == 3 and n != 10]
    with tamis.EventMatcher.open(tmp_path / "set") as live:
        live.add_many(expressions)
        live.compact()
        assert list(live.match(event)) == expected
    with tamis.EventMatcher.open(tmp_path / "set") as live:
        assert list(live.match(event)) == expected
        assert live.get(10) == expressions[10]
