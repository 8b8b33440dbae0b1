"""Live subscriptions of events: the same answers as the same set compiled anew."""

import pickle
import threading
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import tamis
from tamis.core.errors import SubscriptionIdError, UsageError
from tamis.core.index import live as live_module
from tamis.events import EventSubscriptions

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
BAD = ["a >", "= 1"]
ids = st.sampled_from(["x", "y", "z", 1, 2, "1"])
sets = st.dictionaries(ids, st.sampled_from(EXPRESSIONS), max_size=4)
interfaces = st.one_of(st.none(), st.sampled_from(["i", "j", 7]))


class LiveSet(RuleBasedStateMachine):
    """A matcher, and a dictionary that it is to be like."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = mock.patch.object(live_module, "NEWEST_MAX", 3)
        self.patch.start()
        self.live = tamis.EventMatcher()
        self.model: dict[str | int, tuple[str, str | int]] = {}
        self.snapshots: list[tuple[Any, Any]] = []

    def teardown(self) -> None:
        self.patch.stop()

    @rule(id=ids, expression=st.sampled_from(EXPRESSIONS))
    def add(self, id: str | int, expression: str) -> None:
        if id in self.model:
            with pytest.raises(SubscriptionIdError, match="the id is taken"):
                self.live.add(id, expression)
        else:
            self.live.add(id, expression)
            self.model[id] = expression, id

    @rule(given=sets, bad=st.lists(st.sampled_from(BAD), max_size=1))
    def add_many(self, given: dict[str | int, str], bad: list[str]) -> None:
        wrong = dict.fromkeys(["bad"], bad[0]) if bad else {}
        all_of_them: Any = {**given, **wrong}
        expected = [*wrong, *(id for id in given if id in self.model)]
        if expected:
            with pytest.raises(tamis.BadSubscriptions) as caught:
                self.live.add_many(all_of_them)
            assert [error.id for error in caught.value.errors] == expected
        else:
            self.live.add_many(all_of_them)
            self.model |= {id: (expression, id) for id, expression in given.items()}

    @rule(given=sets, interface=interfaces)
    def update(self, given: dict[str | int, str], interface: str | int | None) -> None:
        own = {id: id if interface is None else interface for id in given}
        self.live.update(given if interface is None else EventSubscriptions(given, interfaces=own))
        for id, expression in given.items():
            self.model.pop(id, None)
            self.model[id] = expression, own[id]

    @rule(id=ids)
    def remove(self, id: str | int) -> None:
        if id in self.model:
            self.live.remove(id)
            del self.model[id]
        else:
            with pytest.raises(SubscriptionIdError, match="no such subscription"):
                self.live.remove(id)

    @rule()
    def compile_all(self) -> None:
        assert list(self.live.compiled().ids) == list(self.live.ids)

    @rule()
    def take_snapshot(self) -> None:
        model = {id: self.model[id] for id in self.live.ids}
        self.snapshots.append((self.live.snapshot(), model))

    @rule()
    def a_snapshot_stays(self) -> None:
        for snapshot, model in self.snapshots[-3:]:
            self.check(snapshot, model)

    def check(self, matcher: Any, model: dict[str | int, tuple[str, str | int]]) -> None:
        """The same answers and explanations as of the same set compiled anew."""
        snapshot = matcher.snapshot()
        assert list(snapshot.ids) == list(model)
        anew = tamis.compile_events(
            {id: expression for id, (expression, _) in model.items()},
            interfaces={id: interface for id, (_, interface) in model.items()},
        )
        for event, found, expected in zip(
            EVENTS, matcher.match_many(EVENTS), anew.match_many(EVENTS), strict=True
        ):
            # Names that only removed subscriptions have may still be read.
            if expected.error is None and found.error is None:
                assert (list(found), len(found)) == (list(expected), len(expected))
                for id in [*model][:1]:
                    assert matcher.explain(event, id) == anew.explain(event, id)
        for by in ("interface", "filter"):
            pairs = zip(
                matcher.match_many(EVENTS, by=by), anew.match_many(EVENTS, by=by), strict=True
            )
            for found, expected in pairs:
                if expected.error is None and found.error is None:
                    assert len(found) == len(expected)
                    if by == "interface":
                        assert set(found) == set(expected)

    @invariant()
    def is_as_if_compiled_anew(self) -> None:
        assert {id: self.live.get(id) for id in self.live} == {
            id: expression for id, (expression, _) in self.model.items()
        }
        self.check(self.live, {id: self.model[id] for id in self.live.ids})
        assert self.live.stats().subscriptions == len(self.live) == len(self.model)


TestLiveSet = LiveSet.TestCase
TestLiveSet.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


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


def test_readers_see_all_of_a_change_or_nothing() -> None:
    live = tamis.EventMatcher(dict.fromkeys(range(10), "a = 1"))
    stop = threading.Event()
    failures = []

    def read() -> None:
        while not stop.is_set():
            seen = len(live.match({"a": 1})), len(live.match({"b": 1}))
            if not set(seen) <= {0, 10}:
                failures.append(seen)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for number in range(100):
            live.update(dict.fromkeys(range(10), "b = 1" if number % 2 else "a = 1"))
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert not failures


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
