"""Each system that reads a byte a cycle, with a small circuit: the reference engine's answers."""

from pathlib import Path

import pytest

import tamis
from tamis.hardware.circuit import SYSTEMS, Options
from tamis.hardware.generate import Generated
from tamis.hardware.simulate import Simulator
from tests.hardware.checking import DOCUMENTS, QUERIES, check, damaged

pytestmark = pytest.mark.hardware


@pytest.mark.parametrize("system", [name for name, made in SYSTEMS.items() if made.bytes == 1])
def test_answers_are_those_of_the_reference_engine(system: str, tmp_path: Path) -> None:
    options: Options = SYSTEMS[system]._replace(cluster=5)
    if system == "WOWrT":  # fewer leaves of the tree than clusters
        options = options._replace(leaves=2)
    matcher = tamis.compile(QUERIES, engine="reference")
    simulator = Simulator(Generated(QUERIES, options=options), tmp_path)
    assert not simulator.generated.refused
    broken = list(damaged(1_500, seed=1))
    for gaps in (0, 40):
        found = check(simulator, matcher, DOCUMENTS * 3, gaps, seed=gaps + 1)
        assert found == {"answer": 3 * len(DOCUMENTS)}
        counts = check(simulator, matcher, broken, gaps, seed=gaps + 1)
        assert counts["answer"] > 150, counts
        assert counts["malformed"] > 600, counts
