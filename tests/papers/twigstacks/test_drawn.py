"""Drawn twigs and documents: the answers of the reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.matching.engines.reference import ENGINE as REFERENCE
from tamis_papers.twigstacks import TwigOptions, twigstacks
from tests.papers.twigstacks.drawing import TREES, TWIGS, answers
from tests.support.trees import Tree, xml


@pytest.mark.parametrize("block", [1, 16, 256])
@settings(max_examples=400, deadline=None)
@given(
    twigs=st.lists(TWIGS, min_size=1, max_size=12, unique=True),
    trees=st.lists(TREES, min_size=1, max_size=4),
)
def test_as_the_reference(block: int, twigs: list[str], trees: list[Tree]) -> None:
    documents = list(map(xml, trees))
    engine = twigstacks(TwigOptions(block=block))
    assert answers(engine, twigs, documents) == answers(REFERENCE, twigs, documents)
