"""Every engine that prunes, on the corpora that have a DTD: its answers are lxml's.

The documents are real, and many leave their DTD; subscriptions are drawn from the DTD and from the
documents themselves.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

import tamis
from tamis.core.errors import EngineRefused, SchemaError
from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents.source import Source
from tamis.matching.conformance import Schema
from tamis.matching.engine import Engine, reason_of
from tamis.matching.engines.lxml.execute import lxml_tree
from tamis.matching.matcher import CompiledMatcher
from tamis.schema.graph import SchemaGraph
from tamis.schema.prune import Heuristics, Pruner
from tamis.schema.reader import read_graph
from tamis_workload.observed.generator import draw_from_documents
from tamis_workload.queries.paths import QueryOptions, queries_from_dtd
from tests.support.corpora import ROOT, corpus, real
from tests.support.engines import ENGINES
from tests.support.oracles import lxml_xpath

pytestmark = pytest.mark.corpora

# Corpus → its DTD, the roots, and whether some of the documents that are asked leave it.
DTDS = {
    "blast": ("blast/NCBI_BlastOutput.dtd", (), True),
    "cldr": ("cldr/dtd/ldml.dtd", (), False),
    "dblp": ("dblp/dblp.dtd", (), False),
    "docutils": ("docutils/docutils.dtd", (), False),
    "elife-jats": ("entrez-dtds/JATS-archivearticle1-3-mathml3.dtd", ("article",), False),
    "mondial": ("mondial/mondial.dtd", (), False),
    "shakespeare": ("shakespeare/play.dtd", (), False),  # seven of eight break its order alone
    "usecases": ("usecases/book.dtd", ("book",), True),
    "xmark": ("xmark/auction.dtd", ("site",), False),
}
HEURISTICS = {
    "exhaustive": Heuristics(),
    "leading kept": Heuristics(leading=False),
    "careful": Heuristics(wildcards="only-parent", descendants="single"),
    "wildcards alone": Heuristics(descendants="none"),
    "budget": Heuristics(substitutes_max=8, filters_max=4, steps_max=24),
    "none": Heuristics(wildcards="none", descendants="none"),
}
SMALL = 250_000  # bytes
PRUNING = [engine for engine in ENGINES if engine.heuristics is not None]


@cache
def graph_of(name: str) -> SchemaGraph:
    file, roots, _ = DTDS[name]
    return read_graph(real(file), (), roots)


@cache
def documents_of(name: str) -> list[bytes]:
    """Some documents of a corpus: what lxml can be asked about in the time of a test."""
    paths = [path for path in corpus(name) if path.stat().st_size < SMALL] or corpus(name)[:1]
    return [path.read_bytes() for path in paths[::3][:10] if is_read(path)]


def is_read(path: Path) -> bool:
    try:
        tamis.compile({}).match(path)
    except tamis.DocumentError:
        return False
    return True


@cache
def subscriptions_of(name: str) -> tuple[tamis.Subscriptions, list[set[int]]]:
    """Linear filters of the DTD, twigs, and questions about what is there; with the answers.

    They are those of the reference engine, and lxml's, which on large documents is asked a few
    only, since it takes seconds for one.
    """
    linear = queries_from_dtd(graph_of(name), 150, options=QueryOptions(depth=(1, 8)), seed=1)
    options = QueryOptions(depth=(1, 6), predicates=1, nested=1)
    twigs = queries_from_dtd(graph_of(name), 50, options=options, seed=2)
    observed = draw_from_documents(documents_of(name), 100, seed=3)
    given = tamis.Subscriptions(
        enumerate([*linear, *twigs, *observed]),
        namespaces={**twigs.namespaces, **observed.namespaces},
    )
    expected = []
    matcher = tamis.compile(given, engine="reference")
    for data, match in zip(documents_of(name), matcher.match_many(documents_of(name)), strict=True):
        true = set(match)
        tree = lxml_tree(Source(data))
        for item in list(given)[:: 1 if len(data) < SMALL else 10]:
            oracle = lxml_xpath(item.expression, given.namespaces)
            assert oracle(tree) == (item.id in true), item.expression
        expected.append(true)
    return given, expected


def supported(engine: Engine, name: str, heuristics: Heuristics) -> dict[int, str]:
    """The subscriptions that an engine takes, when they are pruned."""
    pruner = Pruner(graph_of(name), heuristics)
    found = {}
    for number, item in enumerate(subscriptions_of(name)[0]):
        assert item.query is not None
        if engine.is_automatic and reason_of(engine, item.query) is not None:
            continue
        with suppress(EngineRefused):
            engine.compile([item.query], pruner)
            found[number] = item.expression
    return found


@pytest.mark.parametrize("name", DTDS)
@pytest.mark.parametrize("engine", PRUNING, ids=lambda engine: engine.name)
def test_real_documents(engine: Engine, name: str) -> None:
    corpus(name)
    given, expected = subscriptions_of(name)
    schema_violations = False
    for heuristics in HEURISTICS.values():
        schema = Schema(graph_of(name), heuristics=heuristics)
        asked = supported(engine, name, heuristics)
        assert len(asked) > 20
        subscriptions = tamis.Subscriptions(asked, namespaces=given.namespaces)
        matcher = CompiledMatcher(subscriptions, engine.name, DEFAULT_LIMITS, None, schema)
        for match, wanted in zip(matcher.match_many(documents_of(name)), expected, strict=True):
            assert set(match) == wanted & set(asked)
        schema_violations |= matcher.schema_violations > 0
    assert schema_violations == DTDS[name][2]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
@pytest.mark.parametrize("name", DTDS)
def test_without_a_dtd(engine: Engine, name: str) -> None:
    corpus(name)
    given, expected = subscriptions_of(name)
    asked = {
        number: item.expression
        for number, item in enumerate(given)
        if item.query is not None and reason_of(engine, item.query) is None
    }
    assert len(asked) > 20
    subscriptions = tamis.Subscriptions(asked, namespaces=given.namespaces)
    matcher = tamis.compile(subscriptions, engine=engine.name)
    for match, wanted in zip(matcher.match_many(documents_of(name)), expected, strict=True):
        assert set(match) == wanted & set(asked)


CATALOG = [ROOT / "entrez-dtds"]


@pytest.mark.parametrize("engine", PRUNING, ids=lambda engine: engine.name)
def test_documents_with_a_dtd_of_their_own(engine: Engine) -> None:
    """What the doctypes of Entrez's documents name, over several years."""
    answered = 0
    for path in corpus("entrez")[::2]:
        try:
            graph = read_graph(path, CATALOG)
        except SchemaError:  # it has none
            continue
        drawn = queries_from_dtd(graph, 40, options=QueryOptions(depth=(1, 8)), seed=4)
        filters = tamis.Subscriptions(enumerate(drawn), namespaces=drawn.namespaces)
        found = list(tamis.compile(filters, engine=engine.name, dtd=graph).match(path))
        assert found == list(tamis.compile(filters, engine="reference").match(path))
        answered += len(found)
    assert answered > 100
