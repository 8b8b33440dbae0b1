"""Rules of others: patterns of EventBridge, filter policies of SNS, matchers of Alertmanager."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tamis
from tamis.core.errors import SubscriptionError, SubscriptionSyntaxError, UnsupportedExpression
from tamis.events.convert import from_filter_policy, from_matchers, from_pattern
from tests.support.corpora import real


@pytest.mark.corpora
def test_the_published_cases_of_event_ruler() -> None:
    lines = real("event-ruler/cases.jsonl").read_text("utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    assert len(cases) > 50
    for case in cases:
        matcher = tamis.compile_events({"s": from_pattern(case["rule"])})
        assert bool(matcher.match(case["event"])) == case["matches"], case["name"]


PATTERNS: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "anything but": (
        {"a": [{"anything-but": ["x", 3]}]},
        [{"a": "y"}, {"a": 4}, {"a": None}, {"a": ["x", "y"]}],
        [{}, {"a": "x"}, {"a": 3}, {"a": []}],
    ),
    "anything but parts": (
        {"a": [{"anything-but": {"prefix": ["x", "y"]}}, {"anything-but": {"suffix": "z"}}]},
        [{"a": "q"}, {"a": "xa"}, {"a": "qz"}],
        [{"a": "xz"}],
    ),
    "absent": ({"a": {"b": [{"exists": False}]}}, [{}, {"a": {}}, {"a": 1}], [{"a": {"b": None}}]),
    "absent, two in an object in another": (
        {"d": {"o": {"a": [{"exists": False}], "b": [{"exists": False}]}}},
        [{}, {"d": {"o": {"c": 1}}}],
        [{"d": {"o": {"a": 1, "b": 1}}}, {"d": {"o": {"a": 1}}}, {"d": [{"o": [{"b": 1}]}]}],
    ),
    "one alternative": (
        {"d": {"$or": [{"x": [{"exists": False}], "y": [1]}]}},
        [{"d": {"y": 1}}],
        [{"d": {"x": 1, "y": 1}}, {"d": {}}, {}],
    ),
    "alternatives": (
        {"$or": [{"a": [1]}, {"b": {"c": ["x"]}}], "d": [True]},
        [{"a": 1, "d": True}, {"b": {"c": "x"}, "d": True}],
        [{"a": 1}, {"a": 2, "d": True}],
    ),
    "texts": (
        {
            "a": [
                {"wildcard": "x*?"},
                {"equals-ignore-case": "YES"},
                {"prefix": {"equals-ignore-case": "Q"}},
            ]
        },
        [{"a": "x1?"}, {"a": "yes"}, {"a": "qu"}],
        [{"a": "x12"}, {"a": "no"}],
    ),
    "networks": (
        {"ip": [{"cidr": "10.0.0.0/8"}]},
        [{"ip": ["1.1.1.1", "10.0.0.1"]}],
        [{"ip": "9.9.9.9"}],
    ),
    "null and numbers": ({"a": [None, 1.5]}, [{"a": None}, {"a": 1.5}], [{}, {"a": "1.5"}]),
    "names": (
        {"k8s.io/x": {"a b": [1]}},
        [{"k8s.io/x": {"a b": 1}}],
        [{"k8s": {"io/x": {"a b": 1}}}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PATTERNS)
def test_patterns(case: str) -> None:
    pattern, true, false = PATTERNS[case]
    for convert in (from_pattern, from_filter_policy):
        matcher = tamis.compile_events({"s": convert(pattern)})
        events = [*true, *false]
        expected = [True] * len(true) + [False] * len(false)
        assert [bool(list(match)) for match in matcher.match_many(events)] == expected


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ([], "a pattern is an object"),
        ({}, "a pattern is an object"),
        ({"a": "x"}, "'a' is a list of values, or an object"),
        ({"a": []}, "'a' is a list of values"),
        ({"a": [{"fuzzy": "x"}]}, "nothing like the rule 'fuzzy'"),
        ({"a": [{"prefix": "x", "suffix": "y"}]}, "a rule has one key"),
        ({"a": [{"numeric": [">"]}]}, "numeric is a list"),
        ({"a": [{"numeric": ["~", 1]}]}, "numeric has no '~'"),
        ({"a": [[1]]}, "is no value"),
        ({"a": [{"anything-but": []}]}, "anything-but has no values"),
        ({"": ["x"]}, "the name is empty"),
        ({"a": [float("nan")]}, "NaN"),
        ({"a": [2**70]}, "beyond 64 bits"),
        ({"a": [{"cidr": "10.0.0.1/8"}]}, "host bits"),
        ({"$or": {}}, r"\$or is a list"),
    ],
)
def test_patterns_that_cannot_be_said(pattern: Any, message: str) -> None:
    with pytest.raises(UnsupportedExpression, match=message):
        from_pattern(pattern)


MATCHERS: dict[str, tuple[str, list[dict[str, str]], list[dict[str, str]]]] = {
    "equal": ('{a="x", b!="y"}', [{"a": "x"}, {"a": "x", "b": "z"}], [{"a": "x", "b": "y"}, {}]),
    "empty is missing": (
        'a="",b!=""',
        [{"b": "1"}, {"a": "", "b": "1"}],
        [{"a": "x", "b": "1"}, {}],
    ),
    "alternatives": ('a=~"x|y"', [{"a": "x"}, {"a": "y"}], [{"a": "xy"}, {}]),
    "a group": ('a=~"(?:x|y.*)"', [{"a": "x"}, {"a": "yz"}], [{"a": "z"}]),
    "all": ('a=~".*"', [{}, {"a": "x"}], []),
    "some": ('a=~".+"', [{"a": "x"}], [{}, {"a": ""}]),
    "not a pattern": ('a!~"web-.*"', [{}, {"a": "x"}], [{"a": "web-1"}]),
    "literal": (r'a=~"x\\.y.z"', [{"a": "x.yaz"}], [{"a": "x-yaz"}]),
    "a backslash that is no escape": (r'a=~"web\.x"', [{"a": "web.x"}], [{"a": "web-x"}]),
    "a class": (
        r'a=~"[ab]+|c\d|(x|y)z"',
        [{"a": "ab"}, {"a": "c1"}, {"a": "yz"}],
        [{"a": "abz"}, {}],
    ),
    "not, of what may be missing": ('a!~"(x|y)*"', [{"a": "z"}], [{"a": "xy"}, {}]),
    "quotes in quotes": (r'a="x\"y"', [{"a": 'x"y'}], [{"a": "xy"}]),
    "without quotes": ("a = x , b=y", [{"a": "x", "b": "y"}], [{"a": "x"}]),
}  # fmt: skip


@pytest.mark.parametrize("case", MATCHERS)
def test_matchers(case: str) -> None:
    text, true, false = MATCHERS[case]
    matcher = tamis.compile_events({"s": from_matchers(text)})
    assert [bool(list(match)) for match in matcher.match_many(true)] == [True] * len(true)
    assert [bool(list(match)) for match in matcher.match_many(false)] == [False] * len(false)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('a=~"x(?=y)"', UnsupportedExpression),
        ('a=~"(x|y"', UnsupportedExpression),
        (r'a=~"(a)\\1"', UnsupportedExpression),
        ("{a=1", SubscriptionSyntaxError),
        ("a", SubscriptionSyntaxError),
        ("a=1 b=2", SubscriptionSyntaxError),
        ("", SubscriptionSyntaxError),
    ],
)
def test_matchers_that_cannot_be_said(text: str, kind: type[SubscriptionError]) -> None:
    with pytest.raises(kind):
        from_matchers(text)
