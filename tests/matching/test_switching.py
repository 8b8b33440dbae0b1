"""The engine that answers is chosen while documents are matched; answers stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.core.index.matchset import MatchSet, match_set
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.language.queries import Queries
from tamis.language.xpath import parse
from tamis.matching import planner, switching
from tamis.matching.engine import Engine
from tamis.matching.engines import reference
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_workload.documents.grammar import Documents
from tamis_workload.queries.twigs import TwigOptions, twigs_from_dtd
from tests.support.searchers import batch_of

TREEBANK = """
<!ELEMENT treebank (S+)> <!ELEMENT S (NP, VP, PP?)> <!ELEMENT PP (IN, NP)>
<!ELEMENT NP ((DT, NN) | (DT?, JJ+, NN) | PRP | NN | (NP, PP) | (NP, SBAR))>
<!ELEMENT VP ((VB, NP?) | (VB, PP) | (VB, VP) | (VB, SBAR) | VB | (VP, CC, VP))>
<!ELEMENT SBAR (IN, S)> <!ELEMENT DT EMPTY> <!ELEMENT NN EMPTY> <!ELEMENT JJ EMPTY>
<!ELEMENT PRP EMPTY> <!ELEMENT VB EMPTY> <!ELEMENT CC EMPTY> <!ELEMENT IN EMPTY>
"""


POSITIONS = ["//S[2]/NP", "//NP[NN][2]", "//VP[count(VB) = 1]"]


@pytest.mark.parametrize("others", [[], POSITIONS])
def test_answers_are_the_same(others: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kinds of documents alternate; the second engine comes at once, and both answer.

    Stacks refuse positions: those queries stay with the automaton.
    """
    choose = planner._without_cache

    def at_once(queries: Queries) -> switching.WithoutCache:
        return choose(queries)._replace(compile_seconds=0.0)

    monkeypatch.setattr(switching, "COMPILE_MIN", 0.0)
    monkeypatch.setattr(planner, "_without_cache", at_once)
    monkeypatch.setattr(switching, "PROBED", 100.0)
    monkeypatch.setattr(switching, "SAMPLE_EVENTS", 700)
    graph = SchemaGraph.of(parse_dtd(TREEBANK))
    options = TwigOptions(nodes=8, splits=3, descendant=0.3)
    twigs = twigs_from_dtd(graph, 700, options=options, seed=3)
    expressions = dict(enumerate([*others, *twigs, *others]))
    drawn = Documents(graph, depth=20, size=4_000, seed=5)
    documents: list[bytes | str] = []
    for number in range(12):
        documents += [drawn.document(number), "<S><NP><DT/><NN/></NP><VP><VB/></VP></S>", "<broken"]
    matcher = tamis.compile(expressions)
    seen: set[tuple[str, int]] = set()
    measured = switching.SwitchedSearcher._measured

    def noting(self: Any, name: str, *rest: Any) -> MatchSet:
        found = measured(self, name, *rest)
        seen.add((name, len(self._direct)))
        return found

    monkeypatch.setattr(switching.SwitchedSearcher, "_measured", noting)
    expected = [
        match.error or list(match)
        for match in tamis.compile(expressions, engine="reference").match_many(documents)
    ]
    for _ in range(3):
        found = [match.error or list(match) for match in matcher.match_many(documents)]
        assert [str(each) for each in found] == [str(each) for each in expected]
    engines = 2 if others else 1
    assert seen == {("cached", engines), ("direct", engines)}
    located = matcher.match(documents[0], nodes="all")
    assert str(list(located)) == str(found[0])


@pytest.fixture(autouse=True)
def compiled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switching, "in_background", lambda work: work())


def chosen(engine: Engine, queries: Queries) -> Callable[[], switching.WithoutCache]:
    def compile() -> list[planner.CompiledAssignment]:
        numbers = np.arange(len(queries), dtype=np.int32)
        return [(planner.Assignment(engine, queries, numbers), engine.compile(queries))]

    return lambda: switching.WithoutCache(compile, 0.02)


class Clock:
    """Time that passes where a searcher works."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Worker:
    """A searcher that takes so many seconds an event, and knows ever more, or nothing."""

    def __init__(self, clock: Clock, costs: dict[str, float], learns: bool) -> None:
        self.clock, self.costs, self.learns = clock, costs, learns
        self.events = 0
        self.known = 0

    def entries(self) -> int:
        return self.known

    def memory_usage(self) -> int:
        return 0

    def match(self, batch: DocumentBatch, vocabulary: Vocabulary, *_: Any) -> MatchSet:
        root = vocabulary.expanded(int(batch.tags[0]))[1]
        self.clock.now += self.costs[root] * len(batch.tags)
        self.events += len(batch.tags)
        self.known += len(batch.tags) * self.learns
        return match_set([np.zeros(1, np.int32)] * batch.documents)


def switched(cached: Worker, direct: Worker) -> switching.SwitchedSearcher:
    """A searcher of two, of which the second one is compiled in 0.02 s."""
    engine = reference.ENGINE._replace(name="stacks", searcher=lambda *_: direct)
    queries = Queries.of([parse("//x")])
    program: Any = reference.compile_queries(queries)
    return switching.SwitchedSearcher(switching.Switch(chosen(engine, queries), program), cached, 0)


def test_a_large_batch_does_not_put_off_the_other_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where states are new, the automaton gets a few documents at a time, not a whole batch."""
    clock = Clock()
    monkeypatch.setattr(switching, "perf_counter", clock)
    cached = Worker(clock, {"a": 1e-5}, learns=True)
    direct = Worker(clock, {"a": 1e-8}, learns=False)
    searcher = switched(cached, direct)
    vocabulary = Vocabulary()
    batch = batch_of([f"<a>{'<c/>' * 1_000}</a>"] * 1_000, vocabulary)  # 20 s of the automaton
    assert searcher.match(batch, vocabulary).documents == 1_000
    assert clock.now < 1.0
    assert cached.events + direct.events == len(batch.tags)


def test_kinds_are_bounded() -> None:
    """Where each batch has root elements of its own, later ones are measured together."""
    queries = Queries.of([parse("//x")])
    program: Any = reference.compile_queries(queries)
    switch = switching.Switch(chosen(reference.ENGINE, queries), program)
    costs = [switch.costs_of(number) for number in range(1_000)]
    assert [*map(id, costs)] == [id(switch.costs_of(number)) for number in range(1_000)]
    assert len({*map(id, costs)}) == switching.KINDS_MAX + 1


@pytest.mark.parametrize("cheap", ["cached", "direct"])
def test_the_cheaper_one_answers(cheap: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two kinds that alternate, one is cheap for each engine; measuring takes a share."""
    clock = Clock()
    monkeypatch.setattr(switching, "perf_counter", clock)
    costs = {"a": 1e-8, "b": 1e-6} if cheap == "cached" else {"a": 1e-6, "b": 1e-8}
    cached = Worker(clock, costs, learns=True)
    direct = Worker(clock, {"a": 1e-7, "b": 1e-7}, learns=False)
    searcher = switched(cached, direct)
    vocabulary = Vocabulary()
    batches = [batch_of([f"<{name}>{'<c/>' * 50_000}</{name}>"], vocabulary) for name in "ab"]
    for _ in range(300):
        for batch in batches:
            assert searcher.match(batch, vocabulary).documents == 1
    events, started = len(batches[0].tags), clock.now
    for _ in range(200):
        for batch in batches:
            searcher.match(batch, vocabulary)
    best = 200 * events * (1e-8 + 1e-7)  # of each kind the cheaper engine
    assert clock.now - started < 1.25 * best
    assert cached.events > 0 < direct.events


def test_what_learns_nothing_new_is_tried_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where documents repeat themselves, compiling another engine takes a tenth of the time."""
    clock = Clock()
    monkeypatch.setattr(switching, "perf_counter", clock)
    batch = batch_of(["<a><b/></a>"] * 50, vocabulary := Vocabulary())
    cached = Worker(clock, {"a": 0.02 / len(batch.tags)}, learns=False)
    queries = Queries.of([parse("//x")])
    program: Any = reference.compile_queries(queries)
    switch = switching.Switch(chosen(reference.ENGINE, queries), program)
    searcher = switching.SwitchedSearcher(switch, cached, 0)
    for _ in range(9):
        assert searcher.match(batch, vocabulary).documents == 50
    assert switch.is_open
    assert not switch.direct()
    searcher.match(batch, vocabulary)
    searcher.match(batch, vocabulary)
    assert switch.direct()


def test_a_cleared_cache_counts_as_new_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that is too small for the documents is cleared again and again."""
    clock = Clock()
    monkeypatch.setattr(switching, "perf_counter", clock)
    cached = Worker(clock, {"a": 1.0}, learns=False)
    queries = Queries.of([parse("//x")])
    program: Any = reference.compile_queries(queries)
    switch = switching.Switch(chosen(reference.ENGINE, queries), program)
    cached.known = 100
    searcher = switching.SwitchedSearcher(switch, cached, 0)
    cached.known = 10
    vocabulary = Vocabulary()
    searcher.match(batch_of(["<a><b/></a>"], vocabulary), vocabulary)
    assert not switch.is_open
    assert switch.direct()


def test_what_reads_more_is_left_out() -> None:
    """Documents are parsed for the automaton: an engine that reads more of them cannot serve."""
    queries = Queries.of([parse("//x[@a = 'y']")])
    program: Any = reference.compile_queries(queries)._replace(projection=Projection())
    switch = switching.Switch(chosen(reference.ENGINE, queries), program)
    switch.add_lost(1e9)
    assert not switch.direct()
    assert not switch.is_open


def test_a_long_document_is_not_tried_on_the_other_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be measured on the whole of it, which may take as long as all before."""
    monkeypatch.setattr(switching, "LONG_EVENTS", 50)
    monkeypatch.setattr(switching, "COMPILE_MIN", 0.0)
    monkeypatch.setattr(
        planner, "_without_cache", lambda _: switching.WithoutCache(pytest.fail, 0.0)
    )
    matcher = tamis.compile({"x": "//a[b]", "y": "//n3"})
    long = "<r>" + "".join(f"<n{n}/>" for n in range(30)) + "</r>"
    found = matcher.match_many([long, long])
    assert [list(match) for match in found] == [["y"], ["y"]]
