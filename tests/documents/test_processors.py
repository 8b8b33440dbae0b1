"""The same answers without the vectors of this processor, and with every index checked."""

from __future__ import annotations

import pytest

from tests.documents.processes import CHECKED, output, start

MODULE = "tests.documents.sample"
ENVIRONMENTS = {
    "bounds": {"TAMIS_KERNELS": "jit", **CHECKED},
    "narrow": {"TAMIS_KERNELS": "jit", "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""},
}


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    """What the sample gives as the tests run."""
    return parsed(output(start(MODULE)))


def parsed(text: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in text.splitlines())


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_the_same_answers(name: str, here: dict[str, str]) -> None:
    other = parsed(output(start(MODULE, **ENVIRONMENTS[name])))
    assert other["processor"] == ("generic" if name == "narrow" else "this one")
    assert other["bounds"] == str(name == "bounds")
    answers = "nasty lengths places fuzzed digest".split()
    assert {key: other[key] for key in answers} == {key: here[key] for key in answers}
