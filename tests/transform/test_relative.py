"""The relative strategy against the reference, on drawn and on real documents."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.language.filters import Labels
from tamis.transform.shapes import NoShapeError, Shapes, Task
from tamis.transform.strategies.reference import find_groups
from tamis.transform.strategies.relative.execute import RelativeStrategy
from tests.support.drawn_transformations import documents, transformations
from tests.support.transform_cases import CASES
from tests.support.transform_strategies import listed, parsed, tasks_of


def check(queries: list[str], document: str) -> int:
    """Compare both strategies; how many transformations the relative one supports."""
    tasks, projection = tasks_of(queries)
    shapes = Shapes(Labels())
    strategy = RelativeStrategy(shapes.labels)
    supported: list[Task] = []
    for task in tasks:
        with suppress(NoShapeError):
            assert strategy.add(shapes.of(task)) == len(supported)
            supported.append(task)
    batch, vocabulary = parsed(document, projection)
    expected = listed(find_groups(supported, batch, vocabulary), supported)
    for _ in range(2):  # what was found before does not matter
        found = strategy.find_groups(batch, vocabulary)
        assert listed(found, supported) == expected
        assert list(listed(found, supported)) == sorted(expected)
    return len(supported)


@settings(max_examples=400)
@given(document=documents(), queries=st.lists(transformations(), min_size=1, max_size=12))
def test_drawn(document: str, queries: list[str]) -> None:
    check(queries, document)


def test_cases() -> None:
    supported = sum(check([case.query], case.document) for case in CASES)
    assert supported > len(CASES) * 2 // 3
