"""Python's dicts → ``EventBatch``."""

from __future__ import annotations

import datetime
import enum
import math
from collections import ChainMap
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.errors import EventLimitError, MalformedEvent
from tamis.core.limits import Limits
from tamis.events.encode import encode
from tests.events.decoding import canonical, decoded
from tests.support.drawn_events import EVENTS, NAMES


class Colour(enum.StrEnum):
    RED = "red"


def one(value: Any, limits: Limits | None = None) -> Any:
    """What becomes of the value of one attribute, or the message of its error."""
    (found,) = decoded(encode([{"n": value}], ["n"], limits or Limits()), ["n"])
    return found if isinstance(found, str) else found["n"]


@given(EVENTS, st.sets(st.sampled_from(NAMES)))
def test_all_that_is_named_and_not_null(events: list[dict[str, Any]], wanted: set[str]) -> None:
    names = sorted(wanted, reverse=True)
    expected = [
        {name: value for name, value in event.items() if name in names and value is not None}
        for event in events
    ]
    found = decoded(encode(events, names), names)
    assert repr(canonical(found)) == repr(canonical(expected))


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (float(2**63), float(2**63)),
        (-0.0, 0),
        (1.0, 1),
        (math.inf, math.inf),
        (True, True),
        ("", ""),
        ("né\0\U0001f41d", "né\0\U0001f41d"),
        (np.int64(-7), -7),
        (np.uint64(7), 7),
        (np.int8(7), 7),
        (np.float64(0.5), 0.5),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float16(0.5), 0.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (Colour.RED, "red"),
    ],
)
def test_values(given_: Any, expected: Any) -> None:
    found = one(given_)
    assert (type(found), found) == (type(expected), expected)


def test_nan() -> None:
    assert math.isnan(one(math.nan))
    assert math.isnan(one(np.float32("nan")))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1], "is of type list: write n[] for some element of it"),
        ((1,), "is of type tuple: write n[] for some element of it"),
        ({}, "is of type dict: write n.field for what is in it"),
        ({1}, "is of type set: make it a list, and write n[] for some element of it"),
        (np.zeros(2), "is of type ndarray: make it a list, and write n[] for some element of it"),
        (b"x", "is of type bytes: decode it to a str"),
        (Decimal(1), "is of type Decimal: make it an int, a float or a str"),
        (1j, "is of type complex: make it an int, a float or a str"),
        (np.longdouble(1), "is of type longdouble: make it an int, a float or a str"),
        (datetime.date(2026, 1, 1), "is of type date: make it a number or a str"),
        (np.timedelta64(1), "is of type timedelta64: make it a number or a str"),
        (object(), "is of type object: values are str, int, float, bool and None"),
        (2**63, "is an oversized integer, beyond 64 bits: make it a float or a str"),
        (-(2**63) - 1, "is an oversized integer, beyond 64 bits: make it a float or a str"),
        (np.uint64(2**63), "is an oversized integer, beyond 64 bits: make it a float or a str"),
        ("a\ud800", "has a surrogate without the other one: that is no character"),
    ],
)
def test_values_that_are_none(value: Any, message: str) -> None:
    """What is beside the event is encoded; where no filter names the attribute, it is too."""
    events = [{"m": 1}, {"m": 3, "n": value}, {"m": 2}]
    batch = encode(events, ["n", "m"])
    assert decoded(batch, ["n", "m"]) == [{"m": 1}, f"the attribute 'n' {message}", {"m": 2}]
    assert type(batch.errors[1]) is MalformedEvent
    assert decoded(encode(events, ["m"]), ["m"]) == [{"m": 1}, {"m": 3}, {"m": 2}]
    beside_others = {"m": np.int64(3), "é": 1, "n": value}
    assert decoded(encode([beside_others], ["m"]), ["m"]) == [{"m": 3}]


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ([("a", 1)], "an event is a mapping of names to values, not list"),
        (None, "an event is a mapping of names to values, not NoneType"),
        ("a", "an event is a mapping of names to values, not str"),
        ({1: 2}, "names are str, and 1 is of type int"),
        ({None: 2}, "names are str, and None is of type NoneType"),
        ({"\udc00": 2}, "the name '\\udc00' has a surrogate without the other one"),
        ({"x" * 500: []}, f"the attribute '{'x' * 78}… is of type list"),
    ],
)
def test_what_is_no_event(event: Any, message: str) -> None:
    (found,) = decoded(encode([event], ["x" * 500]), ["x" * 500])
    assert isinstance(found, str)
    assert found.startswith(message)


def test_names() -> None:
    event = {"": 1, np.str_("b"): 2, "é": 3}
    assert decoded(encode([event], ["é", "b", ""]), ["é", "b", ""]) == [{"": 1, "b": 2, "é": 3}]


class Pairs(Mapping[str, int]):
    """A mapping that may give a name twice."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __getitem__(self, name: str) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def test_mappings() -> None:
    events = [ChainMap({"a": 1}, {"b": 2}), Pairs("a", "b"), Pairs("a", "b", "a")]
    assert decoded(encode(events, ["a", "b"]), ["a", "b"]) == [
        {"a": 1, "b": 2},
        {"a": 1, "b": 1},
        "there are several attributes 'a': give each name once",
    ]


def test_limits() -> None:
    limits = Limits(event_attributes=2, event_string_bytes=4)
    events = [
        {"a": 1, "b": 2},
        {"a": 1, "b": 2, "c": None},
        {"a": "1234", "b": "éé"},
        {"b": "12345"},
        {"z": "éé1", "a": 3},
        {"x": [], "y": [], "z": []},
    ]
    batch = encode(events, ["a", "b"], limits)
    assert decoded(batch, ["a", "b"]) == [
        {"a": 1, "b": 2},
        "3 attributes, beyond the limit event_attributes = 2",
        {"a": "1234", "b": "éé"},
        "the attribute 'b' is a string of 5 bytes, beyond the limit event_string_bytes = 4",
        {"a": 3},
        "3 attributes, beyond the limit event_attributes = 2",
    ]
    assert {type(error) for error in batch.errors.values()} == {EventLimitError}


def test_events_stay_as_they_are() -> None:
    event = {"a": np.int64(1), "b": [2]}
    assert decoded(encode([event], ["a"]), ["a"]) == [{"a": 1}]
    assert event == {"a": 1, "b": [2]}
    assert type(event["a"]) is np.int64


def test_no_events() -> None:
    assert decoded(encode([], ["a"]), ["a"]) == []
    assert decoded(encode([{}, {}], []), []) == [{}, {}]
