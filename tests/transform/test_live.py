"""A live ``Transformer``: whatever the changes, the same messages as the same set compiled anew."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

import tamis
from tamis.core.errors import DocumentLimitError, SubscriptionIdError, UsageError
from tamis.core.index import live as live_module
from tamis.language.flwr import parse_transformation
from tamis.transform import snapshot as snapshot_module
from tests.support.drawn_transformations import documents, transformations
from tests.support.live_sets import LiveSetMachine, Model

DOCUMENTS = [
    "<a/>",
    "<a k='1'><b>1</b><b>2</b></a>",
    "<b><a k='2'><c><b>3</b></c></a></b>",
    "<a>" + "<b>1</b>" * 9 + "</a>",
    "<b>" * 7 + "</b>" * 7,
    "<a xmlns='urn:p'><b/></a>",
    "<a>",
]
TEXTS = [
    "<r>{ for $x in //a return <m>{ $x/b }</m> }</r>",
    "<r>{ for $x in //a[@k = 1] return <m k='{ $x/@k }'/> }</r>",
    "<r>{ for $x in //b where $x = 1 return $x }</r>",
    "<r>{ for $x in //b return <m>{ $x//b }</m> }</r>",
    "<r>{ for $x in /a where count($x/b) > 1 return <n>{ count($x/b) }</n> }</r>",  # reference
    "<r>{ for $x in //a return <m>{ $x/*[2] }</m> }</r>",  # reference
    "<r>{ for $x in //p:a return <p:m>{ $x/p:b }</p:m> }</r>",
]
NAMES = {"p": "urn:p"}
NODES_MAX = 12


def answers(transformer: Any, asked: list[str] = DOCUMENTS) -> list[Any]:
    """Of each document the messages, or the error."""
    return [
        str(messages.error) if messages.error else list(messages)
        for messages in transformer.transform_many(asked)
    ]


class LiveTransformer(LiveSetMachine):
    kind = tamis.Transformer
    expressions = st.one_of(st.sampled_from(TEXTS), transformations())
    bad = st.sampled_from(["<r/>", "//a", "<r>{ for $x in //b[last()] return $x }</r>"])
    forms = st.sampled_from(["mapping", "pairs", "parsed"])
    limits = tamis.Limits()
    asked = DOCUMENTS

    @property
    def settings(self) -> st.SearchStrategy[dict[str, Any]]:
        strategy = st.sampled_from(["auto", "auto", "reference"])
        return st.fixed_dictionaries(
            {"strategy": strategy, "namespaces": st.just(NAMES), "limits": st.just(self.limits)}
        )

    @initialize(texts=st.lists(documents(), max_size=2))
    def draw_documents(self, texts: list[str]) -> None:
        self.asked = [*DOCUMENTS, *texts]

    def given(self, expressions: Any, form: Any) -> Any:
        if form == "parsed":
            expressions = {id: parse_transformation(s, NAMES) for id, s in expressions.items()}
        return super().given(expressions, form)

    def anew(self, model: Model) -> Any:
        texts = {id: each.expression for id, each in model.items()}
        return tamis.Transformer(texts, **self.given_settings)

    def answers(self, matcher: Any, model: Model) -> Any:
        with pytest.raises(UsageError, match="no such subscription"):
            matcher.explain("bad")
        explained = [matcher.explain(id) for id in [*model][:2]]
        return answers(matcher, self.asked), explained


class LimitedTransformer(LiveTransformer):
    """The same, where some documents have more nodes in their lists than is allowed."""

    limits = tamis.Limits(transformed_nodes=NODES_MAX)

    def compare(self, found: Any, expected: Any, model: Model) -> None:
        """What is compiled as one lists nodes of every path around every bound node.

        So its lists may be too long where those of segments are not.
        """
        assert found[1:] == expected[1:]
        texts = {id: each.expression for id, each in model.items()}
        unlimited = answers(tamis.Transformer(texts, namespaces=NAMES), self.asked)
        for own, other, all_of_them in zip(found[0], expected[0], unlimited, strict=True):
            assert own == other or ("transformed_nodes" in other and own == all_of_them)


TestLiveTransformer = LiveTransformer.TestCase
TestLimitedTransformer = LimitedTransformer.TestCase
TestLiveTransformer.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
TestLimitedTransformer.settings = TestLiveTransformer.settings


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
