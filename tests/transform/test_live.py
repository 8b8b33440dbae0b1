"""A live ``Transformer``: whatever the changes, the same messages as the same set compiled anew."""

from __future__ import annotations

import pickle
import threading
from typing import Any
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import tamis
from tamis.core.errors import DocumentLimitError, SubscriptionIdError, UsageError
from tamis.core.index import live as live_module
from tamis.language.flwr import parse_transformation
from tamis.transform import snapshot as snapshot_module

DOCUMENTS = [
    "<a/>",
    "<a k='1'><b>1</b><b>2</b></a>",
    "<b><a k='2'><c><b>3</b></c></a></b>",
    "<a>" + "<b>1</b>" * 9 + "</a>",
    "<b>" * 7 + "</b>" * 7,
    "<a>",
]
TEXTS = [
    "<r>{ for $x in //a return <m>{ $x/b }</m> }</r>",
    "<r>{ for $x in //a[@k = 1] return <m k='{ $x/@k }'/> }</r>",
    "<r>{ for $x in //b where $x = 1 return $x }</r>",
    "<r>{ for $x in //b return <m>{ $x//b }</m> }</r>",
    "<r>{ for $x in /a where count($x/b) > 1 return <n>{ count($x/b) }</n> }</r>",  # reference
    "<r>{ for $x in //a return <m>{ $x/*[2] }</m> }</r>",  # reference
]
BAD = ["<r/>", "//a", "<r>{ for $x in //b[last()] return $x }</r>"]
NODES_MAX = 12
ids = st.sampled_from(["x", "y", "z", 1, 2, "1"])
sets = st.dictionaries(ids, st.sampled_from(TEXTS), max_size=4)
Model = dict[str | int, str]


def answers(transformer: Any) -> list[Any]:
    """Of each document the messages, or the error."""
    return [
        str(messages.error) if messages.error else list(messages)
        for messages in transformer.transform_many(DOCUMENTS)
    ]


class LiveSet(RuleBasedStateMachine):
    """A transformer, and a dictionary that it is to be like."""

    limits = tamis.Limits()

    def __init__(self) -> None:
        super().__init__()
        self.patch = mock.patch.object(live_module, "NEWEST_MAX", 3)
        self.patch.start()
        self.live = tamis.Transformer(limits=self.limits)
        self.model: Model = {}
        self.snapshots: list[tuple[Any, Model]] = []

    def teardown(self) -> None:
        self.patch.stop()

    @rule(id=ids, text=st.sampled_from(TEXTS), is_parsed=st.booleans())
    def add(self, id: str | int, text: str, is_parsed: bool) -> None:
        given = parse_transformation(text) if is_parsed else text
        if id in self.model:
            with pytest.raises(SubscriptionIdError, match="the id is taken"):
                self.live.add(id, given)
        else:
            self.live.add(id, given)
            self.model[id] = text

    @rule(given=sets, bad=st.lists(st.sampled_from(BAD), max_size=2), as_pairs=st.booleans())
    def add_many(self, given: Model, bad: list[str], as_pairs: bool) -> None:
        wrong = {f"bad {number}": text for number, text in enumerate(bad)}
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
    def update(self, given: Model, bad: list[str]) -> None:
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
        self.snapshots.append((self.live.snapshot(), {id: self.model[id] for id in self.live.ids}))

    @rule()
    def a_snapshot_stays(self) -> None:
        for snapshot, model in self.snapshots[-3:]:
            self.check(snapshot, model)

    def check(self, transformer: Any, model: Model) -> None:
        """The same messages and explanations as of the same set compiled anew."""
        snapshot = transformer.snapshot()
        assert list(snapshot.ids) == list(model)
        assert len(snapshot) == len(model)
        anew = tamis.Transformer(model, limits=self.limits)
        self.compare(answers(transformer), answers(anew), model)
        for id in [*model][:2]:
            assert transformer.explain(id) == anew.explain(id)
        with pytest.raises(UsageError, match="no such subscription"):
            transformer.explain("bad")

    def compare(self, found: list[Any], expected: list[Any], model: Model) -> None:
        assert found == expected

    @invariant()
    def is_as_if_compiled_anew(self) -> None:
        live, model = self.live, self.model
        assert list(live) == list(live.ids) == list(live.transformations)
        assert {*live.ids} == {*model}
        assert all(id in live and live.get(id) == model[id] for id in model)
        assert "bad" not in live
        assert live.get("bad") is None
        self.check(live, {id: model[id] for id in live.ids})


class LimitedSet(LiveSet):
    """The same, where some documents have more nodes in their lists than is allowed."""

    limits = tamis.Limits(transformed_nodes=NODES_MAX)

    def compare(self, found: list[Any], expected: list[Any], model: Model) -> None:
        """What is compiled as one lists nodes of every path around every bound node.

        So its lists may be too long where those of segments are not.
        """
        for own, other, all_of_them in zip(
            found, expected, answers(tamis.Transformer(model)), strict=True
        ):
            assert own == other or ("transformed_nodes" in other and own == all_of_them)


TestLiveSet = LiveSet.TestCase
TestLimitedSet = LimitedSet.TestCase
for test in (TestLiveSet, TestLimitedSet):
    test.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)


def limited(nodes_max: int) -> tamis.Transformer:
    return tamis.Transformer(limits=tamis.Limits(transformed_nodes=nodes_max))


def error_of(transformer: Any, document: str) -> Any:
    (messages,) = transformer.transform_many([document])
    return messages.error


def test_the_limit_is_of_all_segments_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "NEWEST_MAX", 100)
    lists = [f"<r>{{ for $x in /a return <m>{{ $x/{name} }}</m> }}</r>" for name in "bc*"]
    document = "<a>" + "<b/>" * 10 + "<c/>" * 5 + "</a>"
    for nodes_max, is_found in ((29, False), (30, True)):
        live = limited(nodes_max)
        live.update({1: lists[0], 2: lists[2]})
        live.compiled()
        live.update({3: lists[1]})
        assert live.stats().segments == 1
        assert live.stats().newest == 1
        assert (error_of(live, document) is None) == is_found
        live.remove(2)
        assert error_of(live, document) is None
    # A list that both have counts once; one of a removed subscription does not count.
    live = limited(10)
    live.update({1: lists[0]})
    live.compiled()
    live.update({2: lists[0]})
    assert [message.subscription for message in live.transform(document)] == [1, 2]
    live.update({3: lists[1]})
    assert isinstance(error_of(live, document), DocumentLimitError)
    live.compiled()
    live.remove(3)
    assert live.stats().removed == 1
    assert [message.subscription for message in live.transform(document)] == [1, 2]


def test_the_reference_strategy_counts_too() -> None:
    texts = {1: TEXTS[0], 2: "<r>{ for $x in /a where count($x/b) return <m>{ $x/b }</m> }</r>"}
    for nodes_max, is_found in ((17, False), (18, True)):
        live = limited(nodes_max)
        live.update(texts)
        assert (error_of(live, DOCUMENTS[3]) is None) == is_found


def test_an_addition_compiles_the_newest_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    live = tamis.Transformer(dict.fromkeys(range(1_000), TEXTS[0]))
    compiled: list[int] = []
    plans = snapshot_module.Plans

    def counting(planner: Any, tasks: list[Any]) -> Any:
        compiled.append(len(tasks))
        return plans(planner, tasks)

    monkeypatch.setattr(snapshot_module, "Plans", counting)
    for number in range(3):
        live.add(f"new {number}", TEXTS[4])
        assert len(live.transform(DOCUMENTS[1])) == 1_001 + number
    live.remove(0)
    assert len(live.transform(DOCUMENTS[1])) == 1_002
    assert compiled == [1, 2, 3]
    assert live.version == 4


def test_readers_see_all_of_a_change_or_nothing() -> None:
    live = tamis.Transformer(dict.fromkeys(range(5), TEXTS[0]))
    failures: list[object] = []
    stop = threading.Event()

    def transform() -> None:
        while not stop.is_set():
            seen = {message.text for message in live.transform(DOCUMENTS[1])}
            if len(seen) != 1:
                failures.append(seen)

    readers = [threading.Thread(target=transform) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for number in range(40):
            live.update(dict.fromkeys(range(5), TEXTS[4 if number % 2 else 0]))
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert not failures


def test_ids_and_pickles() -> None:
    live = tamis.Transformer({1: TEXTS[0], "1": TEXTS[1]})
    assert True not in live
    with pytest.raises(SubscriptionIdError):
        live.remove(True)
    with pytest.raises(UsageError, match="an id is a str or an int"):
        live.add(True, TEXTS[0])
    with pytest.raises(UsageError, match="a transformation is a str, not int"):
        live.add("x", 5)
    with pytest.raises(tamis.BadSubscriptions, match="the id is used twice"):
        live.add_many([("x", TEXTS[0]), ("x", TEXTS[0])])
    assert live.ids == (1, "1")
    for what in (live, live.snapshot()):
        with pytest.raises(UsageError, match="pickle its transformations"):
            pickle.dumps(what)
    again = tamis.Transformer(pickle.loads(pickle.dumps(live.transformations)))
    assert (again.get("1"), answers(again)) == (TEXTS[1], answers(live))
