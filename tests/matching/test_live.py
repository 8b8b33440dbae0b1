"""Live subscriptions: whatever the changes, the same answers as the same set compiled anew."""

import copy
import gc
import pickle
import weakref
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize

import tamis
from tamis.core.errors import EngineRefused, SubscriptionSyntaxError, UsageError
from tamis.core.index import live as live_module
from tamis.matching import matcher as matcher_module
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tests.support.live_sets import LiveSetMachine, Model, counted, told
from tests.support.strategies import NAMESPACES, documents, subscriptions

DOCUMENTS = ["<a/>", "<a><b>1</b></a>", "<b n='2'><a/></b>", "<c xmlns='urn:p'/>", "<a>"]
EXPRESSIONS = ["//a", "/a/b", "//b[. = 1]", "//@n", "//p:c", "//a[b]", "//*[count(b) = 1]"]
OF_REFERENCE = ["//*[local-name() = 'b']", "//b[name() = 'b'][normalize-space() = '1']"]
OF_LXML = ["//a[last()]", "count(//b) + 1 = 2", "//b[position() < 2]/@n"]
GRAPH = SchemaGraph.of(parse_dtd("<!ELEMENT a (b*)> <!ELEMENT b (#PCDATA | a)*>"), ["a"])


class LiveMatcher(LiveSetMachine):
    kind = tamis.Matcher
    bad = st.sampled_from(["//a[", "//no:a", "string(1, 2)"])
    forms = st.sampled_from(["mapping", "pairs", "parsed"])
    settings = st.fixed_dictionaries(
        {
            "namespaces": st.just(NAMESPACES),
            "default_namespace": st.sampled_from([None, None, "urn:p"]),
            "engine": st.sampled_from(["auto", "auto", "reference"]),
            "dtd": st.sampled_from([None, GRAPH]),
            "unsupported": st.sampled_from(["refuse", "slow"]),
        }
    )
    asked = DOCUMENTS

    @initialize(texts=st.lists(documents(), max_size=2))
    def draw_documents(self, texts: list[str]) -> None:
        self.asked = [*DOCUMENTS, *texts]

    @property
    def expressions(self) -> st.SearchStrategy[str]:
        slow = OF_LXML if self.given_settings["unsupported"] == "slow" else []
        return st.one_of(st.sampled_from([*EXPRESSIONS, *OF_REFERENCE, *slow]), subscriptions())

    def given(self, expressions: Any, form: Any) -> Any:
        if form != "parsed":
            return super().given(expressions, form)
        names = ("namespaces", "default_namespace", "unsupported")
        return tamis.Subscriptions(expressions, **{n: self.given_settings[n] for n in names})

    def anew(self, model: Model) -> Any:
        expressions = {id: each.expression for id, each in model.items()}
        return tamis.compile(expressions, **self.given_settings)

    def answers(self, matcher: Any, model: Model) -> Any:
        """What matches, its nodes and their values; and an explanation."""
        matches = matcher.match_many(self.asked, nodes="all", values=True)
        records = matcher.match_records("<r><a/><b n='1'/></r>", "b")
        explained = [told(matcher.explain, DOCUMENTS[1], id) for id in [*model][:1]]
        return [told(answer_of, m, model) for m in matches], [*map(counted, records)], explained


def answer_of(match: tamis.Match, model: Model) -> Any:
    selected = {id: match.nodes(id) for id in model}
    nodes = {id: (list(found), list(found.values())) for id, found in selected.items()}
    return counted(match), nodes, {id: str(error) for id, error in match.failed.items()}


TestLiveMatcher = LiveMatcher.TestCase
TestLiveMatcher.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)


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


@pytest.mark.parametrize(
    ("live", "answer", "expression"),
    [
        (tamis.Matcher({"x": "//a"}), lambda live: live.match("<a/>"), "//b"),
        (tamis.EventMatcher({"x": "a = 1"}), lambda live: live.match({"a": 1}), "b = 1"),
        (
            tamis.Transformer({"x": "<m>{for $a in //a return $a}</m>"}),
            lambda live: live.transform("<a/>"),
            "<m>{for $b in //b return $b}</m>",
        ),
    ],
    ids=["documents", "events", "transformations"],
)
def test_an_answer_says_the_version_that_it_is_of(live: Any, answer: Any, expression: str) -> None:
    before = answer(live)
    live.add("y", expression)
    live.remove("x")
    after = answer(live)
    assert (before.version, after.version, len(before), len(after)) == (0, live.version, 1, 0)
    assert live.version == live.snapshot().version == 2


def test_a_match_that_is_kept_keeps_no_program() -> None:
    live = tamis.Matcher({"x": "//a"})
    kept = live.match("<a/>")
    program = weakref.ref(live.snapshot()._batches._programs[0])
    live.update({"x": "//b", "y": "//a"})
    live.match("<a/>")
    live.compiled()
    live.match("<a/>")
    gc.collect()
    assert program() is None
    assert list(kept) == ["x"]


def test_answers_are_not_pickled() -> None:
    """They refer to memory of this process."""
    live, events = tamis.Matcher({"x": "//a"}), tamis.EventMatcher({"x": "a = 1"})
    for match in (live.match("<a/>"), next(live.match_many(["<a/>"])), events.match({"a": 1})):
        for copied in (pickle.dumps, copy.deepcopy):
            with pytest.raises(UsageError, match="cannot be pickled or copied"):
                copied(match)
