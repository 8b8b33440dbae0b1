"""Circuits of expressions that Hypothesis draws, with documents that it draws."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tamis
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.hardware.circuit import SYSTEMS
from tamis.hardware.generate import Generated
from tamis.hardware.simulate import Simulator
from tests.hardware.checking import check
from tests.support.parsing import batch_of
from tests.support.strategies import NAMESPACES, documents, subscriptions

pytestmark = pytest.mark.hardware


def drawn(strategy: st.SearchStrategy[str], count: int) -> list[str]:
    """Distinct examples."""
    found: dict[str, None] = {}

    @settings(
        max_examples=count,
        database=None,
        derandomize=True,  # what is drawn has to be enough for the bounds below
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: str) -> None:
        found[example] = None

    collect()
    return list(found)


def test_drawn_expressions_on_drawn_documents(tmp_path: Path) -> None:
    texts = {f"q{number}": text for number, text in enumerate(drawn(subscriptions(), 2_000))}
    queries = tamis.Subscriptions(texts, namespaces=NAMESPACES)
    data = [document.encode() for document in drawn(documents(), 300)]
    vocabulary = Vocabulary()
    batch_of(*data, projection=Projection(), vocabulary=vocabulary)
    options = SYSTEMS["shared"]._replace(cluster=1, outputs="cluster")
    made = Generated(queries, set(vocabulary), NAMESPACES, options)
    assert made.tables.bit_count > 90
    assert len(made.tables.twigs) > 30
    simulator = Simulator(made, tmp_path)
    counts = check(simulator, tamis.compile(queries, engine="reference"), data)
    assert counts["answer"] > 100, counts
