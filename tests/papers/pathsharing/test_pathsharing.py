"""The paper's strategies against the reference: with and without claims, sharing and DTD."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.language.filters import Labels
from tamis.schema.graph import ExpandedGraph, SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis.transform.shapes import NoShapeError, Shape, Shapes, Task
from tamis.transform.strategies.reference import find_groups
from tamis_papers.pathsharing.claims import Claims
from tamis_papers.pathsharing.execute import PathSharing
from tamis_papers.pathsharing.plan import FW, FWR, F, Planner, check_planned
from tests.support.drawn_transformations import documents, documents_below, plain_transformations
from tests.support.transform_cases import CASES
from tests.support.transform_strategies import listed, parsed, tasks_of

BELOW = {"a": ("a", "b", "c"), "b": ("c", "d"), "c": ("d", "b"), "d": ()}
"""Which elements may be in which: a may be in itself, b and c in each other, d has none."""
DTD = "".join(
    f"<!ELEMENT {name} ({'|'.join(('#PCDATA', *below))})*>" for name, below in BELOW.items()
)


def strategies(labels: Labels, graph: ExpandedGraph | None) -> Iterator[PathSharing]:
    """All ways to plan, of which those with a graph hold for documents that keep to it."""
    every = [None, Claims(labels, None)]
    if graph is not None:
        every.append(Claims(labels, graph))
    for claims in every:
        for sharing in (F, FW, FWR):
            yield PathSharing(labels, Planner(sharing, claims))
        yield PathSharing(labels, Planner(FWR, claims, is_shared=True))


def check(queries: list[str], document: str, graph: ExpandedGraph | None = None) -> int:
    """Compare all with the reference; how many transformations they support."""
    tasks, projection = tasks_of(queries)
    shapes = Shapes(Labels())
    supported: list[tuple[Task, Shape]] = []
    for task in tasks:
        with suppress(NoShapeError):
            shape = shapes.of(task)
            check_planned(shape)
            supported.append((task, shape))
    ours = [task for task, _ in supported]
    batch, vocabulary = parsed(document, projection)
    expected = listed(find_groups(ours, batch, vocabulary), ours)
    for strategy in strategies(shapes.labels, graph):
        for number, (_, shape) in enumerate(supported):
            assert strategy.add(shape) == number
        for _ in range(2):  # what was found before does not matter
            found = strategy.find_groups(batch, vocabulary)
            assert listed(found, ours) == expected
            assert list(listed(found, ours)) == sorted(expected)
    return len(supported)


@settings(max_examples=150)
@given(document=documents(), queries=st.lists(plain_transformations(), min_size=1, max_size=12))
def test_drawn(document: str, queries: list[str]) -> None:
    check(queries, document)


@pytest.fixture(scope="module")
def graph() -> ExpandedGraph:
    return ExpandedGraph(SchemaGraph.of(parse_dtd(DTD), ("a",)))


@settings(max_examples=200)
@given(
    document=documents_below(BELOW, "a"),
    queries=st.lists(plain_transformations(tuple(BELOW)), min_size=1, max_size=12),
)
def test_drawn_with_a_dtd(document: str, queries: list[str], graph: ExpandedGraph) -> None:
    check(queries, document, graph)


def test_cases() -> None:
    supported = sum(check([case.query], case.document) for case in CASES)
    assert supported > len(CASES) // 4
