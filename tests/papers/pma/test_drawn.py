"""Drawn filters and documents: all variants give the answers of the other engines."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.core.errors import EngineRefused
from tamis.core.limits import Limits
from tamis.language.filters import WILDCARD
from tamis.schema.graph import SchemaGraph
from tamis.schema.prune import Heuristics, Pruner
from tamis.schema.reader import parse_dtd
from tests.papers.pma.variants import answers, matchings, parsed, queries_of
from tests.schema.test_prune import FILTERS, HEURISTICS, dtd_of, graphs, tree
from tests.support.engines import ENGINES
from tests.support.trees import Tree, trees, xml

_STEP = st.tuples(st.sampled_from(["/", "/", "//"]), st.sampled_from("abc")).map("".join)
_FILTER = st.lists(_STEP, min_size=1, max_size=7).map("".join)
_UNION = st.lists(_FILTER, min_size=1, max_size=2).map(" | ".join)
_NAME = st.sampled_from("abcx")


_TREES = trees("aabbcx", chain_max=6, leaves_max=20)


def of_engine(name: str, filters: list[str], documents: list[str]) -> list[set[str]]:
    (engine,) = (engine for engine in ENGINES if engine.name == name)
    batch, vocabulary = parsed(documents)
    program = engine.compile(queries_of(filters))
    matches = engine.searcher(program, Limits().cache_bytes).match(batch, vocabulary)
    return [
        {filters[number] for number in matches.numbers(document)}
        for document in range(batch.documents)
    ]


@settings(max_examples=300, deadline=None)
@given(
    filters=st.lists(_UNION, min_size=1, max_size=12, unique=True),
    trees=st.lists(_TREES, min_size=1, max_size=4),
)
def test_engines_agree(filters: list[str], trees: list[Tree]) -> None:
    documents = [xml(tree) for tree in trees]
    found = answers(filters, documents)
    assert found == of_engine("reference", filters, documents)
    assert found == of_engine("automaton", filters, documents)


@settings(max_examples=200, deadline=None)
@given(
    graph=graphs(),
    filters=st.lists(FILTERS, min_size=1, max_size=10, unique=True),
    heuristics=HEURISTICS,
    seed=st.integers(0, 1000),
)
def test_pruned(
    graph: dict[str, str], filters: list[str], heuristics: Heuristics, seed: int
) -> None:
    """With a DTD, of documents that keep to it; a set that it does not resolve is refused."""
    draw = random.Random(seed)
    documents = [tree(graph, "a", 6, draw) for _ in range(5)]
    schema = SchemaGraph.of(parse_dtd(dtd_of(graph)), ["a"])
    counting, pruner = Pruner(schema, heuristics), Pruner(schema, heuristics)
    left = [
        code >> 1
        for text in filters
        for codes in counting.prune(counting.labels.read(text), existence_only=True)
        for code in codes
    ]
    if WILDCARD in left:
        with pytest.raises(EngineRefused, match=r"has a \* that would become"):
            answers(filters, documents, pruner)
        return
    found = answers(filters, documents, pruner)
    assert found == of_engine("reference", filters, documents)


def _leaf_depths(tree: Tree, depth: int = 1) -> int:
    _, children = tree
    return sum(_leaf_depths(child, depth + 1) for child in children) if children else depth


def _elements(tree: Tree) -> int:
    return 1 + sum(map(_elements, tree[1]))


@settings(max_examples=200, deadline=None)
@given(filters=st.lists(_FILTER, min_size=1, max_size=8, unique=True), drawn=_TREES)
def test_moves_are_bounded(filters: list[str], drawn: Tree) -> None:
    """By the elements, or by twice the lengths of the paths to leaves; in each pass."""
    batch, vocabulary = parsed([xml(drawn)])
    longest = max(filter.count("/") for filter in filters)
    for matching in matchings(queries_of(filters)):
        matching.match(batch, vocabulary)
        options = matching.program.options
        passes = 2 if options.passes == 2 and len(matching.program.multi.output) else 1
        if options.full_goto:
            assert matching.moves in (_elements(drawn), passes * _elements(drawn))
        else:
            assert _elements(drawn) <= matching.moves
            assert matching.moves <= passes * 2 * _leaf_depths(drawn)
            assert matching.moves <= passes * _elements(drawn) * (longest + 2)
