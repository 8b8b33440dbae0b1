"""Generated circuits give the answers of the reference engine."""

from __future__ import annotations

from pathlib import Path

import pytest

import tamis
from tamis.hardware.circuit import SYSTEMS, Options
from tamis.hardware.generate import Generated
from tamis.hardware.simulate import Simulator

pytestmark = pytest.mark.hardware

QUERIES = {
    "child": "/a/b",
    "descendant": "//a//b",
    "wildcard": "//a/*/b",
    "recursive": "//a/b/a/b/c",
    "first": "/*/b",
    "inside": "//*//c",
    "attribute": '//b[@x="1"]/c',
    "twig": "//a[b and not(.//c)]",
    "union": "/a/c | //b/b",
    "none": "not(//c)",
}
DOCUMENTS = [
    b"<a><b><a><b><c/></b></a></b></a>",
    b"<a><b x=\"1\"><c/></b><b x='2'/></a>",
    b"<a><!-- <b> --><b/><![CDATA[<c>]]><?pi <c>?></a>\n",
    b"<b/>",
    b"<a><c/><c><b><b/></b></c></a>",
]


@pytest.mark.parametrize("system", SYSTEMS)
def test_answers_are_those_of_the_reference_engine(system: str, tmp_path: Path) -> None:
    options: Options = SYSTEMS[system]._replace(cluster=3, outputs="cluster")
    matcher = tamis.compile(QUERIES, engine="reference")
    simulator = Simulator(Generated(QUERIES, options=options), tmp_path)
    for gaps in (0, 40):
        answers = list(simulator.run(DOCUMENTS * 3, gaps, seed=gaps + 1))
        assert not any(answer.status for answer in answers)
    refused = simulator.generated.refused
    assert set(refused) == ({"attribute"} if system == "wide" else set())
    for document, found in zip(DOCUMENTS, simulator.match(DOCUMENTS), strict=True):
        assert found == [id for id in matcher.match(document) if id not in refused], document
