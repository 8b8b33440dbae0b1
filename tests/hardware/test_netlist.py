"""What synthesis makes of a circuit, with registers and memories that hold anything at first."""

from pathlib import Path

import pytest

import tamis
from tamis.hardware.circuit import SYSTEMS
from tamis.hardware.generate import Generated
from tamis.hardware.simulate import Simulator
from tests.hardware.checking import DOCUMENTS, QUERIES, check, damaged

pytestmark = pytest.mark.hardware


def test_the_netlist_answers_as_the_reference_engine(tmp_path: Path) -> None:
    made = Generated(QUERIES, options=SYSTEMS["shared"]._replace(cluster=7))
    simulator = Simulator(made, tmp_path, netlist=True)
    matcher = tamis.compile(QUERIES, engine="reference")
    documents = DOCUMENTS + list(damaged(100, seed=4)) + DOCUMENTS
    for seed in range(1, 6):
        counts = check(simulator, matcher, documents, gaps=seed % 2 * 30, seed=seed)
        assert counts["answer"] >= 2 * len(DOCUMENTS)
