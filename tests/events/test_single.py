"""``match()`` of one event, which goes a shorter way than many: the same answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.errors import EventError
from tamis.events.matcher import compile_events

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.floats(), st.text("abé", max_size=3)
)
TEXTS = [
    *("a = 1", "a != 1.5", "b > 0 and a exists", "c contains 'b'", "c suffix i'É'", "b < 0.5"),
    *("a in (1, 'ab', true)", "b between -1 and 1", "a = true or c = ''", "c prefix 'a'"),
]


@given(
    st.dictionaries(st.sampled_from("abcd"), VALUES),
    st.lists(st.sampled_from(TEXTS), min_size=1, unique=True),
)
def test_one_event_is_answered_as_many_are(event: dict[str, Any], texts: list[str]) -> None:
    matcher = compile_events(dict(enumerate(texts)))
    (many,) = matcher.match_many([event])
    for _ in range(2):
        assert list(matcher.match(event)) == list(many)


def test_in_threads() -> None:
    """What one found is listed before its searcher is used again."""
    live = tamis.EventMatcher({n: f"a{n} = 1" for n in range(8)})
    asked = [[n for n in range(8) if number >> n & 1] for number in range(256)]
    events = [{f"a{n}": 1 for n in names} for names in asked]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            assert list(pool.map(lambda event: list(live.match(event)), events)) == asked


def test_more_than_there_was_room_for() -> None:
    few, many = ({n: f"a{n} = 1" for n in range(300)}, {f"x{n}": "b exists" for n in range(5_000)})
    live = tamis.EventMatcher({**few, **many})
    for _ in range(3):
        assert len(list(live.match({"b": 1.5}))) == 5_000
        assert list(live.match({"b": None, "a0": True})) == []
        assert list(live.match({"a0": 1.0, "other": [1]})) == [0]
    assert len(live.match({"b": "x" * 20_000})) == 5_000
    assert list(live.match({f"a{n}": 1 for n in range(300)})) == list(range(300))


def test_errors_are_those_of_many() -> None:
    matcher = compile_events({"s": "a = 1"})
    for event in ({"a": [1]}, {"a": 1 << 70}, {"a": "\ud800"}, {3: 1}, [1]):
        with pytest.raises(EventError) as caught:
            matcher.match(event)
        (many,) = matcher.match_many([event])
        assert str(many.error) == str(caught.value)
