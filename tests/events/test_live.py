"""Live subscriptions of events: the same answers as the same set compiled anew."""

import pickle
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

import tamis
from tamis.core.errors import UsageError
from tamis.events import EventSubscriptions
from tamis.language.constraints import print_filters
from tamis.language.events import is_filter
from tests.support import drawn_events
from tests.support.live_sets import LiveSetMachine, Model, counted, told

EVENTS: list[dict[str, Any]] = [
    {},
    {"a": 1, "b": "x"},
    {"a": 2, "c": True, "d.e": "xyz"},
    {"b": "xyz", "a": [1]},
    {"f": 1.5, "b": "q", "g": 3},
]
EXPRESSIONS = [
    "a = 1",
    "a > 1 and c = true",
    'b in ("x", "q") or f exists',
    'b prefix "x" and a exists',
    '`d.e` contains "y"',
    "g in (1, 2, 3)",
    'f >= 1.5 or b suffix "z"',
]
DRAWN = st.lists(st.lists(drawn_events.CONSTRAINTS, min_size=1, max_size=3), min_size=1, max_size=2)


class LiveEvents(LiveSetMachine):
    kind = tamis.EventMatcher
    expressions = st.one_of(
        st.sampled_from(EXPRESSIONS), DRAWN.map(print_filters).filter(is_filter)
    )
    bad = st.sampled_from(["a >", "= 1"])
    forms = st.sampled_from(["mapping", "pairs", 0, 1, 2])
    settings = st.fixed_dictionaries({"engine": st.sampled_from(["auto", "reference"])})
    asked = EVENTS

    @initialize(events=drawn_events.EVENTS)
    def draw_events(self, events: list[dict[str, Any]]) -> None:
        self.asked = [*EVENTS, *events]

    def given(self, expressions: Any, form: Any) -> Any:
        if form in ("mapping", "pairs"):
            return super().given(expressions, form)
        interfaces = {id: interface_of(id, form) for id in expressions}
        return EventSubscriptions(expressions, interfaces=interfaces)

    def anew(self, model: Model) -> Any:
        expressions = {id: each.expression for id, each in model.items()}
        interfaces = {id: interface_of(id, each.form) for id, each in model.items()}
        return tamis.compile_events(expressions, interfaces=interfaces, **self.given_settings)

    def answers(self, matcher: Any, model: Model) -> Any:
        """What matches; filters by how many, as they have other numbers in segments."""
        return (
            [told(counted, match) for match in matcher.match_many(self.asked)],
            [told(counted, match) for match in matcher.match_many(self.asked, by="interface")],
            [told(len, match) for match in matcher.match_many(self.asked, by="filter")],
            [told(matcher.explain, event, id) for id in [*model][:1] for event in self.asked],
        )


def interface_of(id: str | int, form: Any) -> str | int:
    """Its own, or one of three, of which each form gives an id another."""
    return id if form in ("mapping", "pairs") else ("i", "j", 7)[(len(str(id)) + form) % 3]


TestLiveEvents = LiveEvents.TestCase
TestLiveEvents.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)


def test_many_are_added_beside_others() -> None:
    """Merges of large segments keep the names, strings and lists of their filters."""
    expressions = {n: f'a{n % 7} = {n} and s in ("v{n % 50}", "w{n}")' for n in range(2000)}
    live = tamis.EventMatcher()
    for number, expression in expressions.items():
        live.add(number, expression)
        if number % 100 == 99:
            live.match({})
    for number in range(0, 2000, 3):
        live.remove(number)
        del expressions[number]
    events = [{f"a{n % 7}": n, "s": f"w{n}"} for n in range(0, 2000, 11)]
    anew = tamis.compile_events(expressions)
    expected = list(map(list, anew.match_many(events)))
    assert list(map(list, live.match_many(events))) == expected
    assert list(map(list, live.compiled().match_many(events))) == expected
    lines = b'{"a1": 1, "s": "v1"}\n\n{"a1": [2]}\n'
    assert next((m.line, list(m)) for m in live.match_ndjson(lines)) == (1, [1])


def test_versions_and_pickles() -> None:
    live = tamis.EventMatcher({1: "a = 1"}, interfaces={1: "i"})
    before = live.snapshot()
    live.add(2, "b = 1")
    assert (before.version, live.version, live.snapshot().version) == (0, 1, 1)
    assert list(live.match({"a": 1, "b": 1}, by="interface")) == ["i", 2]
    for what in (live, live.snapshot()):
        with pytest.raises(UsageError, match="pickle compiled"):
            pickle.dumps(what)
    again = pickle.loads(pickle.dumps(live.compiled()))
    assert list(again.match({"a": 1, "b": 1}, by="interface")) == ["i", 2]
    assert list(before.match({"a": 1, "b": 1})) == [1]


def test_names_of_removed_subscriptions_may_have_any_value() -> None:
    live = tamis.EventMatcher({"a": "x > 1", "b": "y > 1"})
    event = {"x": 5, "y": [1]}
    with pytest.raises(tamis.TamisError):
        live.match(event)
    live.remove("b")
    assert list(live.match(event)) == ["a"]
    live.compact()
    assert list(live.match(event)) == ["a"]


def test_interfaces_are_in_the_order_of_a_fresh_compile() -> None:
    given = dict.fromkeys("abc", "x > 1")
    interfaces = {"a": "I1", "b": "I2", "c": "I1"}
    live = tamis.EventMatcher(EventSubscriptions(given, interfaces=interfaces))
    live.remove("a")
    assert list(live.match({"x": 5}, by="interface")) == ["I2", "I1"]
    live.remove("c")
    assert list(live.snapshot().interface_ids) == ["I2"]
