"""Patterns, comparisons of two attributes, and any value: named cases, and drawn ones."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import numpy as np
import orjson
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.core.errors import EventError, UsageError
from tamis.core.limits import Limits
from tamis.events import EventSubscriptions
from tamis.events import model as at
from tamis.events.derive import values_in
from tests.support.event_cases import COMPARE, check_case

ENGINES = ("signature", "reference", "sff", "ocm")
CASES: dict[str, tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = {
    "a part matches": (
        r'a matches r"b+\d"',
        [{"a": "xbb7y"}, {"a": "b0"}],
        [{"a": "b"}, {"a": "B0"}, {"a": 7}, {"a": None}, {}],
    ),
    "the whole matches": (
        'a matches "^(x|yz)$"',
        [{"a": "x"}, {"a": "yz"}],
        [{"a": "x\n"}, {"a": "xyz"}],
    ),
    "without case": (
        'a matches i"ÉT[A-C]"',
        [{"a": "éta"}, {"a": "xÉTC"}],
        [{"a": "étd"}, {"a": "et"}],
    ),
    "flags": ('a matches "(?i)x(?-i)y"', [{"a": "Xy"}], [{"a": "xY"}]),
    "not": ('not a matches "x.y"', [{}, {"a": "xy"}, {"a": 3}], [{"a": "xzy"}]),
    "in alternatives": (
        'n = 1 and (a matches "x.y" or not b like "p*q?r")',
        [{"n": 1, "a": "xzy", "b": "pqqr"}, {"n": 1}, {"n": 1, "b": "pq"}],
        [{"n": 1, "b": "p-qqr"}, {"a": "xzy"}],
    ),
    "together": (
        'a matches "x.+y" and a matches "y.+z" and a contains "w"',
        [{"a": "x-y-zw"}],
        [{"a": "x-yzw"}, {"a": "x-y-z"}],
    ),
    "what is exact": (
        'a matches "b" or a matches "^c" or a matches "d$"',
        [{"a": "abc"}, {"a": "cx"}, {"a": "xd"}],
        [{"a": "xc"}, {"a": "dx"}],
    ),
    "of elements": (
        'a[] matches "^x.$"',
        [{"a": ["y", "xy"]}, {"a": "xy"}],
        [{"a": ["xyz"]}, {"a": []}],
    ),
    "inside": ('a.b matches "x.z"', [{"a": {"b": "xyz"}}, {"a.b": "xyz"}], [{"a": {"b": "xz"}}]),
    "a string with backslashes": (
        r'a = r"C:\x" or a = "\\y"',
        [{"a": "C:\\x"}, {"a": "\\y"}],
        [{"a": "C:x"}],
    ),
    "two attributes": (
        "a = field(b)",
        [
            {"a": 1, "b": 1.0},
            {"a": "x", "b": "x"},
            {"a": True, "b": True},
            {"a": 2**62 + 1, "b": 2**62 + 1},
        ],
        [
            {"a": 1, "b": True},
            {"a": 1},
            {"b": 1},
            {"a": None, "b": None},
            {"a": "1", "b": 1},
            {"a": 2**62 + 1, "b": 2.0**62},
            {},
        ],
    ),
    "two that differ": (
        "a != field(b)",
        [{"a": 1, "b": 2}, {"a": float("nan"), "b": float("nan")}],
        [{"a": 1, "b": "x"}, {"a": 1}, {}],
    ),
    "not so": ("not a = field(b)", [{}, {"a": 1}, {"a": 1, "b": "1"}], [{"a": 1, "b": 1}]),
    "an order": (
        "a > field(b)",
        [{"a": 2, "b": 1}, {"a": "b", "b": "a"}],
        [{"a": 1, "b": 2}, {"a": True, "b": False}, {"a": 2, "b": "1"}],
    ),
    "parts of strings": (
        "a suffix field(b) or a contains field(c)",
        [{"a": "xyz", "b": "yz"}, {"a": "xyz", "c": "y"}, {"a": "x", "b": ""}],
        [{"a": "xyz", "b": "xy"}, {"a": 11, "c": 1}],
    ),
    "two without case": (
        "a = i field(b)",
        [{"a": "É", "b": "é"}, {"a": 1, "b": 1}],
        [{"a": "E", "b": "é"}],
    ),
    "two inside": (
        "a.b < field(c[1])",
        [{"a": {"b": 1}, "c": [0, 2]}],
        [{"a": {"b": 1}, "c": [2]}],
    ),
    "two of one element": (
        "l[].(a < field(b))",
        [{"l": [{"a": 3, "b": 2}, {"a": 1, "b": 2}]}],
        [{"l": [{"a": 1}, {"b": 2}]}],
    ),
    "any value": (
        '* contains "x"',
        [{"a": "x"}, {"a": {"b": [["yx"]]}}],
        [{"x": "y"}, {"a": 1}, {}],
    ),
    "any value, with a wildcard inside": (
        '* like i"*P?q*r*"',
        [{"a": "p-Qr"}, {"a": [1, {"b": "xxPéQ..R", "c": "z"}]}, {"n": "p\0qr"}],
        [{"a": "pq", "b": "r"}, {"a": "p", "b": "qr"}, {"a": "p-q", "b": ["r"]}, {"a": 1}],
    ),
    "any value, of two strings": (
        '* contains "ab" and not * contains "\\u0000"',
        [{"a": "cab"}, {"a": ["a", "b", "ab"]}],
        [{"a": "a", "b": "b"}, {"a": "ab", "b": "\0"}, {"ab": "a"}],
    ),
    "any value of an element, without case": (
        'l[].(a = 1 and * contains i"É")',
        [{"l": [{"a": 1, "b": {"c": "xé"}}]}],
        [{"l": [{"a": 1}, {"b": "é"}]}],
    ),
    "any value, of a kind": (
        "* = 3 or * = true",
        [{"a": [{"b": 3.0}]}, {"a": True}],
        [{"a": "3"}, {"a": None}],
    ),
    "one of any value": ("*.(. > 3 and . < 9)", [{"a": 1, "b": 5}], [{"a": 1, "b": 10}]),
    "no value": ('not * matches "x.z"', [{}, {"a": "xz"}], [{"a": ["xyz"]}]),
    "any value of an element": (
        'l[].(a = 1 and * = "x")',
        [{"l": [{"a": 1, "b": {"c": "x"}}]}],
        [{"l": [{"a": 1}, {"b": "x"}]}],
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_cases(case: str, engine: str) -> None:
    check_case(*CASES[case], engine)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.text("abA\0É", min_size=1, max_size=3), min_size=1, max_size=4),
    st.recursive(
        st.text("abAé\0\n", max_size=4) | st.sampled_from([1, None, 0.5]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    ),
)
def test_parts_of_any_value(texts: list[str], value: Any) -> None:
    """Each string of an event, with case and without, as Python finds it."""
    expressions = {}
    for number, text in enumerate(texts):
        expressions[number, ""] = f"* contains {json.dumps(text)}"
        expressions[number, "i"] = f"* like i{json.dumps(f'*{text[:1]}?{text[1:]}*')}"
    matcher = tamis.compile_events({f"{n}{i}": each for (n, i), each in expressions.items()})
    strings = [each for each in values_in({"v": value}, Limits()) if isinstance(each, str)]
    expected = []
    for number, text in enumerate(texts):
        regex = re.compile(f"{text[:1]}.{text[1:]}".lower(), re.DOTALL)
        expected += [f"{number}"] * any(text in each for each in strings)
        expected += [f"{number}i"] * any(regex.search(each.lower()) for each in strings)
    events = [{"v": value}, {}]
    assert [list(found) for found in matcher.match_many(events)] == [expected, []]
    assert list(matcher.match(events[0])) == expected
    lines = json.dumps(events[0]).encode() + b"\n" + orjson.dumps(events[0])
    assert [list(found) for found in matcher.match_ndjson(lines)] == [expected] * 2


def test_any_value_that_cannot_be_read() -> None:
    matcher = tamis.compile_events(
        {"s": '* contains "x"'}, limits=Limits(event_string_bytes=4, event_attributes=3)
    )
    bad = [{"a": ["12345"]}, {"a": [1, 2, 3]}, {"a": {"b": "\ud800"}}, {"a": b"x"}]
    for event in bad:
        with pytest.raises(EventError) as raised:
            matcher.match(event)
        found = list(matcher.match_many([{"a": "x"}, event, {"a": 2**70}]))
        assert [list(found[0]), str(found[1].error), list(found[2])] == [
            ["s"],
            str(raised.value),
            [],
        ]
    for event in bad[:2]:
        (of_line,) = matcher.match_ndjson(json.dumps(event).encode())
        with pytest.raises(EventError) as raised:
            matcher.match(event)
        assert str(of_line.error) == f"line 1: {raised.value}"


BAD = {
    'a matches "x(?=y)"': ("look", ""),
    'a matches "(x"': ("", ""),
    'a matches "(.*a.{14})"': ("states", "subscription_states"),
    "a matches 3": ("matches asks for a pattern", ""),
    "a = b": ("expected a value, found 'b'", "another attribute is field(b)"),
    "a = field": ("expected a value", "field(field)"),
    "a like field(b)": ("expected a pattern", "stands only behind =, !="),
    "a[] = field(b)": ("has no fields", "of the element"),
    "a[].(b = field(.))": ("has no fields", ""),
    'a = r"x\\"': ("no quote at the end", "one backslash"),
    'a = I"x"': ("expected a value", "written small"),
    "a = field(b[])": ("one value", "a position"),
    "a < i field(b)": ("have no order", "leave out the i"),
    "a in (field(b))": ("expected a value", ""),
    "*.b = 1": ("which has no fields", "write *."),
    "a.* = 1": ("expected the name of an attribute", "write [] for some element"),
    'a =~ "x"': ("", 'write matches r"'),
    'a regex "x"': ("", 'write matches r"'),
    r'a matches "\d"': ("JSON's escapes", 'r"…"'),
}


@pytest.mark.parametrize("expression", BAD)
def test_what_is_refused(expression: str) -> None:
    with pytest.raises(tamis.BadSubscriptions) as caught:
        tamis.compile_events({"s": expression})
    for part in BAD[expression]:
        assert part in str(caught.value)


def test_many_patterns_of_one_attribute() -> None:
    """Those whose parts are not there are not looked at; answers are those of ``re``."""
    regexes = [f"w{n}[a-c]+z{n % 7}" for n in range(300)] + [r"\d{3}", "[x-z]$"]
    matcher = tamis.compile_events({n: f'a matches r"{regex}"' for n, regex in enumerate(regexes)})
    texts = ["w7abz0", "w77cccz0 w14bz0", "w1z1", "x123", "", "w299abcz5z"]
    for text, found in zip(texts, matcher.match_many({"a": text} for text in texts), strict=True):
        assert list(found) == [n for n, regex in enumerate(regexes) if re.search(regex, text)]


def test_a_part_of_a_pattern_that_another_filter_asks_for() -> None:
    """The string is one, or an engine would find one of the two filters."""
    matcher = tamis.compile_events({"part": 'a contains "xyz"', "like": 'a like "*xyz*|*q*"'})
    assert list(matcher.match({"a": "xyz"})) == ["part"]
    assert list(matcher.match({"a": "xyz|q"})) == ["part", "like"]


def test_sets_are_joined_saved_and_changed(tmp_path: Any) -> None:
    live = tamis.EventMatcher.open(tmp_path / "set")
    live.add_many(
        {n: f'k = {n % 9} and (a matches r"x{n}\\b" or b > field(c))' for n in range(200)}
    )
    live.add("any", '* like i"*p?q*"')
    event = {"k": 3, "a": "x12 x3", "b": 1, "c": 2, "d": "P-Q"}
    assert list(live.match(event)) == [3, 12, "any"]
    live.remove(3)
    live.compact()
    assert list(live.match(event)) == [12, "any"]
    live.close()
    with tamis.EventMatcher.open(tmp_path / "set") as again:
        assert list(again.match(event)) == [12, "any"]


def test_rows_of_arrow_and_their_derived_columns() -> None:
    matcher = tamis.compile_events(
        {
            "re": 'a matches "x.z"',
            "net": "ip cidr '10.0.0.0/8'",
            "two": "n < field(m)",
            "any": "* = 7",
        }
    )
    events: list[dict[str, Any]] = [
        {"a": "xyz", "ip": "10.1.1.1", "n": 1, "m": 2.5},
        {"a": "xz", "ip": "::1", "n": 7, "m": 0.5},
        {"a": None, "ip": "no", "n": None, "m": None},
    ]
    expected = [["re", "net", "two"], ["any"], []]
    assert [list(match) for match in matcher.match_many(events)] == expected
    table = pyarrow.Table.from_pylist(events)
    assert [list(match) for match in matcher.match_arrow(table)] == expected
    fewer = tamis.compile_events({"net": "ip cidr '10.0.0.0/8'", "two": "n < field(m)"})
    assert [list(match) for match in fewer.match_arrow(table)] == [["net", "two"], [], []]


def test_arrays_with_what_is_no_pattern() -> None:
    table = EventSubscriptions({"s": 'a like "x*y?z"'}).table
    broken = table._replace(string_bytes=np.frombuffer(b"(((((", np.uint8))
    broken = broken._replace(operators=np.full(1, at.MATCHES, np.uint8))
    with pytest.raises(UsageError, match="no pattern"):
        tamis.compile_events(EventSubscriptions.of_table(broken))


@pytest.mark.parametrize("engine", ENGINES)
def test_large_floats_of_dicts_are_there_once(engine: str) -> None:
    matcher = tamis.compile_events({"s": "c = 1 and d = 2", "t": "l > 1e307"}, engine=engine)
    events = [{"l": 1.7e308, "c": 1}, {}, {"l": 1.7e308, "c": 1, "d": 2}]
    assert [list(match) for match in matcher.match_many(events)] == [["t"], [], ["s", "t"]]


def test_what_the_json_library_writes_is_one_line() -> None:
    matcher = tamis.compile_events({"s": "a = 1"})
    events = [{"b": orjson.Fragment(b'1}\n{"a":1')}, {"a": 1}]
    assert [list(match) for match in matcher.match_many(events)] == [[], ["s"]]


def test_names_of_events_that_mean_something_here() -> None:
    matcher = tamis.compile_events({"s": "o.x = 1 or a = i'x'"})
    assert list(matcher.match({"\2o\2x": [1], "\0a": 2**70})) == []


@pytest.mark.parametrize(
    "pattern", ["x" + "a?" * 9_000 + "b", r"(\PL*\pN){5,300}x", r"[^\pL\d]?" * 999]
)
def test_patterns_that_would_take_long(pattern: str) -> None:
    start = time.process_time()
    for case in ("", "i"):
        with pytest.raises(tamis.BadSubscriptions):
            tamis.compile_events({"s": f"a matches {case}{json.dumps(pattern)}"})
    assert time.process_time() - start < 20


def test_too_many_values() -> None:
    matcher = tamis.compile_events({"s": "* = 1"}, limits=tamis.Limits(event_attributes=9))
    circular: dict[str, Any] = {}
    circular["x"] = circular
    assert list(matcher.match({"a": [1, 2, 3]})) == ["s"]
    for event in ({"a": list(range(20))}, circular):
        with pytest.raises(EventError, match="event_attributes = 9"):
            matcher.match(event)


# -- drawn -----------------------------------------------------------------------------------------

VALUES = st.one_of(
    st.sampled_from([0, 1, -1, 1.5, float("nan"), 2**53, 2**53 + 1, 2.0**53, True, False, None]),
    st.text(alphabet="aAéß", max_size=3),
)
EVENTS = st.lists(st.dictionaries(st.sampled_from("abc"), VALUES), min_size=1, max_size=9)
_PARTS = ("prefix", "suffix", "contains")


def _compares(operator: str, one: Any, other: Any) -> bool:
    kinds = [float if type(value) in (int, float) else type(value) for value in (one, other)]
    if None in (one, other) or kinds[0] != kinds[1]:
        return False
    if operator in _PARTS:
        return kinds[0] is str and COMPARE[operator](one, other)
    if kinds[0] is bool and operator not in ("=", "!="):
        return False
    if kinds[0] is str:  # by code points, as UTF-8 is
        one, other = one.encode(), other.encode()
    return COMPARE[operator](one, other)


@settings(max_examples=300)
@given(
    asked=st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.sampled_from([*COMPARE]),
            st.sampled_from("abc"),
            st.booleans(),
        ),
        min_size=1,
        max_size=6,
    ),
    events=EVENTS,
    engine=st.sampled_from(ENGINES),
)
def test_drawn_comparisons(
    asked: list[tuple[str, str, str, bool]], events: list[dict[str, Any]], engine: str
) -> None:
    expressions = {
        n: f"{'not ' * negated}{one} {operator} field({other})"
        for n, (one, operator, other, negated) in enumerate(asked)
    }
    matcher = tamis.compile_events(expressions, engine=engine)
    for event, match in zip(events, matcher.match_many(events), strict=True):
        expected = [
            n
            for n, (one, operator, other, negated) in enumerate(asked)
            if _compares(operator, event.get(one), event.get(other)) != negated
        ]
        assert list(match) == list(matcher.match(event)) == expected
