"""The singular form answers as the general one, of which ``by="filter"`` is."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.core.errors import EventError
from tamis.core.limits import Limits
from tamis.events.convert import from_pattern
from tamis.events.forms import SingularForm
from tamis.events.live import EventMatcher
from tamis.events.matcher import MatchesEvents

Event = dict[str, Any]
Answer = list[int] | str


class Odd(Enum):
    NONE, NAN = None, float("nan")


EXPRESSIONS = [
    "a[].(b[] = 1 and c[] = 2)",
    "a[].b[].(. > 0 and not . = 2)",
    "a[].(b[] exists or b[] = null) or not c[] = 'x'",
    "not a[].(b[] exists or b[] = null)",
    "a[].((b[] = 1 or b[] = i'X') and c[] prefix 'x')",
    "a[].(not b[] = 1)",  # without a there is no element
    "a[].b = 1",  # without [], a list is an error
    "a[].b[].c[] like '*x*x'",
    "a[] cidr '10.0.0.0/8' and b[] = null",
    "a[] matches r'^x+y' or a[].(. = field(.) and . != 1)",
    "a.b[] = 1 or `a.b`[] = 1 or a.b = null",
    "a[].*.(. = 'x') or *.(. contains 'xx')",
    "c > 1 and a[].c[] in (1, 'x', true)",
]


def numbers(found: Any) -> Answer:
    return str(found.error) if found.error else found.indices.tolist()


def general(matcher: Any, found: Any) -> Answer:
    """The subscriptions of filters."""
    if found.error:
        return str(found.error)
    of = matcher.compiled() if isinstance(matcher, EventMatcher) else matcher
    return sorted(set(of.table.subscriptions[found.indices].tolist()))


def check(matcher: Any, events: list[Event]) -> None:
    """Events together, one by one, as lines."""
    expected = [general(matcher, each) for each in matcher.match_many(events, by="filter")]
    assert [numbers(each) for each in matcher.match_many(events)] == expected
    alone = [numbers(each) for event in events for each in matcher.match_many([event])]
    assert alone == expected
    for event, answer in zip(events, expected, strict=True):
        if isinstance(answer, list):
            assert matcher.match(event).indices.tolist() == answer
        else:
            with pytest.raises(EventError) as raised:
                matcher.match(event)
            assert str(raised.value) == answer
    check_lines(matcher, "".join(json.dumps(event) + "\n" for event in events).encode())


def check_lines(matcher: Any, data: bytes) -> None:
    lines = [
        (each.line, general(matcher, each)) for each in matcher.match_ndjson(data, by="filter")
    ]
    assert [(each.line, numbers(each)) for each in matcher.match_ndjson(data)] == lines


def has_singular(matcher: MatchesEvents) -> bool:
    return isinstance(matcher.snapshot()._form("subscription"), SingularForm)


SCALARS = st.sampled_from([None, True, 1, 2, 0.5, "x", "xxy", "X", "10.1.2.3", 2**65])
NAMES = st.sampled_from(["a", "b", "c", "a.b", "b.c"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.dictionaries(NAMES, inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=5,
)
OBJECTS = st.recursive(
    SCALARS, lambda inner: st.dictionaries(NAMES, inner, max_size=3), max_leaves=6
)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.sampled_from(EXPRESSIONS), min_size=1, max_size=4),
    st.lists(st.dictionaries(NAMES, OBJECTS | VALUES, max_size=4), min_size=1, max_size=6),
)
def test_drawn(expressions: list[str], events: list[Event]) -> None:
    check(tamis.compile_events(dict(enumerate(expressions))), events)


def test_of_several_errors_the_same_is_told() -> None:
    huge = 1 << 65
    events: list[Event] = [{"a": huge}, {"a": {"a": None, "b": huge}}, {"a": {"b": huge}}]
    expressions = ["a[].(b[] = 1 and c[] = 2)", "a[].*.(. = 'x') or *.(. contains 'xx')"]
    check(tamis.compile_events(dict(enumerate(expressions))), events)
    events = [{"a": [huge], "b": {"c": [huge]}}, {"e": huge, "d": huge}, {"d": huge, "e": huge}]
    matcher = tamis.compile_events({1: "a[] = 1", 2: "b.c[] = 1", 3: "d > 1", 4: "e > 1"})
    lines = "".join(json.dumps(event) + "\n" for event in events).encode()
    said = [
        [each.error.message for each in found if each.error]
        for found in (
            matcher.match_many(events),
            matcher.match_ndjson(lines),
            matcher.match_many(events, by="filter"),
            matcher.match_ndjson(lines, by="filter"),
        )
    ]
    assert said == [said[0]] * 4
    assert ["'d'" in said[0][1], "'d'" in said[0][2]] == [False, True]


@pytest.mark.parametrize(
    ("expression", "is_singular"),
    [
        ("a[] = 1", True),
        ("a[].(b[] = 1 and c[] = 2)", True),
        ("not a[].b[].(. = 1 or . = null)", True),
        ("a[].(not b[] = 1)", False),
        ("a[].(b[].(not c[] = 1))", False),
        ("a[].(b[] = 1 and c = 2)", False),
        ("a.b[] = 1", False),
        ("a[].b[0] = 1", False),
        ("* contains 'x'", False),
        ("a[].(* = 1)", False),
        ("a = 1", False),
    ],
)
def test_what_has_a_singular_form(expression: str, is_singular: bool) -> None:
    assert has_singular(tamis.compile_events({"s": expression})) == is_singular


def test_events_without_lists_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = tamis.compile_events({"s": "a[].(b[] = 1 and c[] = 2)"})
    matcher.match({"a": 1})
    form = matcher._form("subscription")
    assert isinstance(form, SingularForm)
    monkeypatch.setattr(form.general, "encoder", None)
    events = [{"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": {}}}, {"a": None}, {}, {"b": [2]}]
    assert [list(match) for match in matcher.match_many(events)] == [["s"], [], [], [], []]


def test_lines_in_error_among_others() -> None:
    matcher = tamis.compile_events(
        {"s": "a[].(b[] = 1 and c[] = 2)", "t": "not a[].b[] = 'x'"},
        limits=Limits(event_attributes=3, event_string_bytes=9, event_bytes=99),
    )
    lines = [
        b'{"a": {"b": 1, "c": 2}}',
        b"",
        b'{"a": {"b": 1, "b": 1}}',
        b'{"a": [{"b": 1, "c": 2}, {"b": "x"}]}',
        b'{"a": {"b": "0123456789"}}',
        b'{"a": {"b": 1, "c": 2, "d": 3, "e": 4}}',
        b'{"d": {"a": 1, "c": 2, "d": 3}, "e": 4}',
        b"nothing",
        b'{"a": {"b": 1e400}}',
        b'{"a": {"b": 36893488147419103232}}',
        b'{"x": "' + 100 * b"x" + b'"}',
        b'{"a": {"b": 1.0, "c": 2}}',
    ]
    check_lines(matcher, b"\n".join(lines))
    found = [numbers(each) for each in matcher.match_ndjson(b"\n".join(lines))]
    assert [each if isinstance(each, list) else "error" for each in found] == [
        [0, 1], "error", [0], "error", "error", [1], "error", "error", "error", "error", [0, 1]
    ]  # fmt: skip


def test_interfaces_and_rows() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    subscriptions = {n: from_pattern({"a": {"b": [n]}, "c": ["x"]}) for n in range(4)}
    matcher = tamis.compile_events(subscriptions, interfaces={0: "e", 1: "o", 2: "e", 3: "o"})
    assert has_singular(matcher)
    events = [{"a": {"b": n}, "c": "x"} for n in range(5)] + [{"a": [{"b": 1}, {"b": 2}], "c": "x"}]
    expected = [["e"], ["o"], ["e"], ["o"], [], ["e", "o"]]
    assert [list(match) for match in matcher.match_many(events, by="interface")] == expected
    rows = pyarrow.table({"a": [event["a"] for event in events[:5]], "c": ["x"] * 5})
    assert [list(match) for match in matcher.match_arrow(rows, by="interface")] == expected[:5]
    assert [match.line for match in matcher.match_arrow(rows)] == [1, 2, 3, 4, 5]


def test_live() -> None:
    live = EventMatcher({"s": "a = 1"})
    events: list[Event] = [{"a": 1}, {"a": {"b": 1}}, {"a": [{"b": 1}]}, {"b": 1}]
    assert not has_singular(live)
    live.remove("s")
    live.add("t", "a[].b[] = 1")
    live.add("u", "not a[] exists")
    assert has_singular(live)
    assert [list(match) for match in live.match_many(events)] == [[], ["t", "u"], ["t", "u"], ["u"]]
    live.update({"t": "b = 1", "u": "a[] = 1"})
    assert [list(match) for match in live.match_many(events)] == [["u"], [], [], ["t"]]
    check(live, events)


ODD_FLOATS = st.sampled_from([None, 1, 10, "x", float("nan"), float("inf"), Odd.NAN, Odd.NONE])
ODD_VALUES = st.recursive(
    ODD_FLOATS,
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner) | st.lists(inner, max_size=2),
    max_leaves=5,
)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.dictionaries(st.sampled_from("abcil"), ODD_VALUES), min_size=1, max_size=5))
def test_floats_that_json_has_not(events: list[Event]) -> None:
    """A line has null for them; what Python itself encodes is the oracle."""
    oracle = ODD_MATCHER.match_batch(ODD_MATCHER.encoder.plain_events(events))
    expected = [each.indices.tolist() if each.error is None else None for each in oracle]
    found = ODD_MATCHER.match_many(events)
    assert [None if each.error else each.indices.tolist() for each in found] == expected
    for event, answer in zip(events, expected, strict=True):
        if answer is not None:
            assert ODD_MATCHER.match(event).indices.tolist() == answer


ODD_MATCHER = tamis.compile_events(
    dict(
        enumerate(
            [
                *("a exists", "a = null", "b > 3", "a[] exists", "a[].b[] > 5", "l[] = null"),
                *("* = true", "*.(. > 9)", "* contains 'x'", "c[].a[] = null", "i < field(b)"),
            ]
        )
    )
)


def test_single_events_as_together() -> None:
    """What a kernel leaves to Python, at any place of an event."""
    matcher = tamis.compile_events(
        {
            "net": "ip cidr '10.0.0.0/8' and u = i'É'",
            "no": "not ip cidr '10.0.0.0/8' and a exists",
            "number": "n > 0.1 and n < 0.31",
            "any": "* like i'*ü?x*'",
            "null": "e = null or l[] = null",
        }
    )
    events: list[Event] = [
        {"ip": "10.1.2.3", "u": "é", "a": 1},
        {"u": "É", "ip": "x", "a": 1, "n": 0.30000000000000004},
        {"a": 2, "ip": "11.0.0.1", "n": 123456789.123456789e-9, "u": "Üyx"},
        {"ip": "10.1.2.3", "u": "é" * 3_000},
        {"u": "é" * 9_000, "ip": "10.1.2.3"},
        {"e": Odd.NONE, "l": [Odd.NONE], "a": Odd.NAN},
        {f"a{n}": n for n in range(300)} | {"a": 1},
    ]
    together = [numbers(each) for each in matcher.match_many([*events, {}])]
    assert [matcher.match(event).indices.tolist() for event in events] == together[:-1]
    assert together[:3] == [[0], [1, 2], [1, 2, 3]]
    assert together[-3:] == [[1, 4], [1], []]
