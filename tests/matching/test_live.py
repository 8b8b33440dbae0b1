"""Live subscriptions: whatever the changes, the same answers as the same set compiled anew."""

import pickle
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import tamis
from tamis.core.errors import (
    EngineRefused,
    SubscriptionIdError,
    SubscriptionSyntaxError,
    UsageError,
)
from tamis.core.index import live as live_module
from tamis.matching import matcher as matcher_module

DOCUMENTS = ["<a/>", "<a><b>1</b></a>", "<b n='2'><a/></b>", "<c xmlns='urn:p'/>"]
EXPRESSIONS = ["//a", "/a/b", "//b[. = 1]", "//@n", "//p:c", "//*[local-name() = 'b']", "//a[b]"]
BAD = ["//a[", "//q:a", "//a[last()]"]
ids = st.sampled_from(["x", "y", "z", 1, 2, "1"])
sets = st.dictionaries(ids, st.sampled_from(EXPRESSIONS), max_size=4)


class LiveSet(RuleBasedStateMachine):
    """A matcher, and a dictionary that it is to be like."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = mock.patch.object(live_module, "NEWEST_MAX", 3)
        self.patch.start()
        self.live = tamis.Matcher(namespaces={"p": "urn:p"})
        self.model: dict[str | int, str] = {}
        self.snapshots: list[tuple[tamis.CompiledMatcher, dict[str | int, str]]] = []

    def teardown(self) -> None:
        self.patch.stop()

    @rule(id=ids, expression=st.sampled_from(EXPRESSIONS))
    def add(self, id: str | int, expression: str) -> None:
        if id in self.model:
            with pytest.raises(SubscriptionIdError, match="the id is taken"):
                self.live.add(id, expression)
        else:
            self.live.add(id, expression)
            self.model[id] = expression

    @rule(given=sets, bad=st.lists(st.sampled_from(BAD), max_size=2), as_pairs=st.booleans())
    def add_many(self, given: dict[str | int, str], bad: list[str], as_pairs: bool) -> None:
        wrong = {f"bad {number}": expression for number, expression in enumerate(bad)}
        all_of_them: Any = {**given, **wrong}
        items = list(all_of_them.items()) if as_pairs else all_of_them
        expected = [*wrong, *(id for id in given if id in self.model)]
        if expected:
            with pytest.raises(tamis.BadSubscriptions) as caught:
                self.live.add_many(items)
            assert [error.id for error in caught.value.errors] == expected
        else:
            self.live.add_many(items)
            self.model |= given

    @rule(given=sets, bad=st.lists(st.sampled_from(BAD), max_size=1))
    def update(self, given: dict[str | int, str], bad: list[str]) -> None:
        if bad:
            with pytest.raises(tamis.BadSubscriptions):
                self.live.update([*given.items(), ("bad", bad[0])])
        else:
            self.live.update(given)
            self.model |= given

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

    def check(self, matcher: Any, model: dict[str | int, str]) -> None:
        """The same answers, nodes and explanations as of the same set compiled anew."""
        assert list(matcher.snapshot().ids) == list(model)
        assert len(matcher.snapshot().ids) == len(matcher) == len(model)
        anew = tamis.compile(model, namespaces={"p": "urn:p"})
        pairs = zip(
            matcher.match_many(DOCUMENTS, nodes="all"),
            anew.match_many(DOCUMENTS, nodes="all"),
            strict=True,
        )
        for found, expected in pairs:
            assert list(found) == list(expected)
            assert len(found) == len(expected)
            for id in model:
                assert list(found.nodes(id)) == list(expected.nodes(id))
        for id in [*model][:1]:
            document = DOCUMENTS[1]
            assert matcher.explain(document, id) == anew.explain(document, id)
        records = [list(match) for match in matcher.match_records("<r><a/><b n='1'/></r>", "b")]
        assert records == [list(m) for m in anew.match_records("<r><a/><b n='1'/></r>", "b")]

    @invariant()
    def is_as_if_compiled_anew(self) -> None:
        live, model = self.live, self.model
        assert list(live) == list(live.ids)
        assert {*live.ids} == {*model}
        assert all(id in live and live.get(id) == model[id] for id in model)
        assert "bad" not in live
        assert live.get("bad") is None
        self.check(live, {id: model[id] for id in live.ids})


TestLiveSet = LiveSet.TestCase
TestLiveSet.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)


def test_it_is_made_of_what_compile_takes(tmp_path: Path) -> None:
    file = tmp_path / "s.tsv"
    file.write_text("x\t//a\ny\t//b\n")
    expected = {"x": "//a", "y": "//b"}
    for given in (expected, expected.items(), file, tamis.Subscriptions(expected)):
        live = tamis.Matcher(given)
        assert {id: live.get(id) for id in live} == expected
        assert list(tamis.compile(given).match("<a/>")) == list(live.match("<a/>")) == ["x"]
        other = tamis.Matcher({"x": "//b"})
        with pytest.raises(tamis.BadSubscriptions, match="subscription 'x': the id is taken"):
            other.add_many(given)
        assert (other.ids, other.get("x")) == (("x",), "//b")
        other.update(given)
        assert (other.ids, other.get("x")) == (("x", "y"), "//a")
    assert repr(live) == "<Matcher: 2 subscriptions>"
    live.compiled().save(tmp_path / "s.tamis")
    assert list(tamis.load(tmp_path / "s.tamis").match("<b/>")) == ["y"]


def test_a_set_that_was_parsed_by_other_rules_is_refused() -> None:
    live = tamis.Matcher({"x": "//p:a"}, namespaces={"p": "urn:p"})
    with pytest.raises(UsageError, match="parsed with other namespaces"):
        live.update(tamis.Subscriptions({"x": "//p:a"}, namespaces={"p": "urn:other"}))
    live.update(tamis.Subscriptions({"y": "//p:b"}, namespaces={"p": "urn:p"}))
    assert list(live.match("<b xmlns='urn:p'/>")) == ["y"]
    with pytest.raises(UsageError, match="are parsed already"):
        tamis.Matcher(tamis.Subscriptions({}), namespaces={"p": "urn:p"})


@pytest.mark.parametrize("call", ["add_many", "update"])
def test_what_an_engine_or_lxml_refuses_changes_nothing(call: str) -> None:
    live = tamis.Matcher({"x": "//a"}, engine="automaton")
    with pytest.raises(EngineRefused):
        getattr(live, call)({"y": "//b", "z": "//a[name() = 'a']"})
    assert live.ids == ("x",)
    live = tamis.Matcher({"x": "//a"}, unsupported="slow")
    with pytest.raises(tamis.BadSubscriptions) as caught:
        getattr(live, call)({"y": "//b", "z": "//a[", "s": "string(1, 2)"})
    assert {error.id for error in caught.value.errors} == {"z", "s"}
    assert live.ids == ("x",)
    getattr(live, call)({"y": "//b[last()]"})
    assert list(live.match("<r><b/></r>")) == ["y"]


def test_many_subscriptions_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[int] = []
    compile_assignment = matcher_module.compile_assignment

    def counting(assignment: Any, *given: Any) -> Any:
        compiled.append(len(assignment.queries))
        return compile_assignment(assignment, *given)

    monkeypatch.setattr(matcher_module, "compile_assignment", counting)
    many = {number: f"//a{number}/b" for number in range(20_000)}
    live = tamis.Matcher(many)
    assert list(live.match("<a7><b/></a7>")) == [7]
    assert compiled == [20_000]
    live = tamis.Matcher({"x": "//b"})
    compiled.clear()
    live.add_many(many)
    live.update({7: "//c", 8: "//b"})
    assert list(live.match("<a9><b/></a9>")) == ["x", 9, 8]
    assert compiled == [20_000]  # two subscriptions are equal


def test_its_subscriptions_are_listed_without_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    live, events = tamis.Matcher({"x": "//a", 1: "//b"}), tamis.EventMatcher({"x": "a = 1"})
    for kind, expression in ((live, "//c"), (events, "c = 1")):
        monkeypatch.setattr(kind, "_compiled", None)  # which would be called
        assert list(kind.subscriptions.ids) == list(kind.ids)
        kind.update({"x": expression, "z": expression})
        assert list(kind.subscriptions.ids) == list(kind.ids)
    assert [each.expression for each in live.subscriptions] == ["//b", "//c", "//c"]
    assert [events.subscriptions.expression(number) for number in range(2)] == ["c = 1"] * 2


def test_readers_see_all_of_a_change_or_nothing() -> None:
    live = tamis.Matcher(dict.fromkeys(range(10), "//a"))
    failures: list[object] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen = [len(live.match("<a/>")), len(live.match("<b/>")), len(live.ids)]
            if not (set(seen[:2]) <= {0, 10} and seen[2] in (10, 15)):
                failures.append(seen)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for number in range(60):
            expression = "//b" if number % 2 else "//a"
            live.update(dict.fromkeys(range(10), expression))
            with pytest.raises(tamis.BadSubscriptions):
                live.add_many({"new": "//a", 3: "//b"})
        live.add_many({f"new {number}": "//c" for number in range(5)})
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert not failures


def test_one_bad_subscription_is_its_own_error() -> None:
    live = tamis.Matcher()
    with pytest.raises(SubscriptionSyntaxError) as caught:
        live.add("x", "//a[")
    assert caught.value.id == "x"
    with pytest.raises(tamis.BadSubscriptions) as several:
        tamis.Matcher({"x": "//a[", "y": "//b]"})
    assert len(several.value.errors) == 2


def test_a_bool_is_no_id() -> None:
    live = tamis.Matcher({1: "//a", 0: "//b"})
    assert True not in live
    assert live.get(False) is None
    with pytest.raises(tamis.core.errors.SubscriptionIdError):
        live.remove(True)
    assert live.ids == (1, 0)


def test_changes_while_a_segment_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is removed, replaced and added meanwhile is so in the next match."""
    monkeypatch.setattr(live_module, "NEWEST_MAX", 4)
    live = tamis.Matcher(dict.fromkeys(range(6), "//a"))
    live.add_many(dict.fromkeys(range(6, 10), "//a"))
    compile = live._compile

    def changing(old: Any, new: Any) -> Any:
        monkeypatch.setattr(live, "_compile", compile)
        live.remove(2)
        live.remove(7)
        live.update({3: "//b", 8: "//b"})
        live.remove(9)
        live.add(9, "//b")
        return compile(old, new)

    monkeypatch.setattr(live, "_compile", changing)
    assert list(live.match("<a/>")) == [*range(10)]
    assert list(live.match("<a/>")) == [0, 1, 4, 5, 6]
    assert list(live.match("<b/>")) == [3, 8, 9]
    assert sorted(live.ids) == [0, 1, 3, 4, 5, 6, 8, 9]
    assert list(live.compiled().match("<b/>")) == [3, 8, 9]


def test_the_newest_do_not_pile_up_while_others_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "NEWEST_MAX", 4)
    live = tamis.Matcher({"x": "//a"})
    compile = live._compile

    def changing(old: Any, new: Any) -> Any:
        if new:  # which a merge beside has none of
            live.add(f"n{len(live)}", "//a")
        return compile(old, new)

    monkeypatch.setattr(live, "_compile", changing)
    for _ in range(50):
        live.add(f"m{len(live)}", "//a")
        live.match("<a/>")
        assert len(live._new) <= 6
    matched = len(live.match("<a/>"))
    assert len(live) == matched + 1


def test_only_what_is_compiled_as_one_is_pickled() -> None:
    live = tamis.Matcher({1: "//a"})
    live.add(2, "//b")
    assert list(live.match("<b/>")) == [2]
    for what in (live, live.snapshot()):
        with pytest.raises(UsageError, match=r"pickle .*compiled\(\)"):
            pickle.dumps(what)
    assert list(pickle.loads(pickle.dumps(live.compiled())).match("<b/>")) == [2]
    assert True not in live.snapshot().ids
