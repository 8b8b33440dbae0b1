"""Circuits of more than a thousand queries: megabytes, as the engines answer them."""

from pathlib import Path

import pytest

import tamis
from tamis.hardware.circuit import SYSTEMS
from tamis.hardware.generate import Generated
from tamis.hardware.simulate import Simulator
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_workload import DocumentOptions, Documents, QueryOptions, Values, queries_from_dtd
from tests.hardware.checking import DOCUMENTS, QUERIES, check, damaged

pytestmark = pytest.mark.hardware

TAGS = ["a", "b", "c", *("element-" + 3 * letter for letter in "defghijkl"), "größe", "x" * 21]
GRAPH = SchemaGraph.of(
    parse_dtd("".join(f"<!ELEMENT {tag} (#PCDATA|{'|'.join(TAGS)})*>" for tag in TAGS)), ["a"]
)
TWIGS = {
    f"twig-{n}": f"//{TAGS[n % 12]}[{TAGS[n // 12]} and not(.//{TAGS[n % 7]}/b)]" for n in range(84)
}


def drawn_queries() -> dict[str, str]:
    """1,024 paths, 84 twigs, and all kinds that there are."""
    options = QueryOptions(depth=(1, 6), wildcard=0.1, descendant=0.1)
    drawn = queries_from_dtd(GRAPH, 1_024, options=options, distinct=True, seed=3)
    return {f"path-{n}": path for n, path in enumerate(drawn)} | TWIGS | QUERIES


def drawn_documents(size: int, count: int, depth: int = 16) -> list[bytes]:
    """With texts of many lengths, so that tags are at every place of a word."""
    values = Values.of(tuple("x" * (n % 9) + "é" * (n // 9) for n in range(40)))
    options = DocumentOptions(values=values)
    made = Documents(GRAPH, options=options, depth=depth, size=size, fill=True, seed=5)
    return [made.document(number) for number in range(count)]


def aligned(document: bytes) -> list[bytes]:
    """The document with up to seven bytes before it and after it."""
    return [b" " * n + document + b"\n" * (7 - n) for n in range(8)]


# What the README of tamis.hardware lists as not caught: a fault, and the document without it.
NOT_CAUGHT = [
    ("<a><b x='1' x='1'/></a>", "<a><b x='1'/></a>"),
    ("<a><b x×='1'/></a>", "<a><b y='1'/></a>"),
    ("<a><b xml:1='1'/></a>", "<a><b/></a>"),
    ("<!DOCTYPE a:b:c><a><b/></a>", "<a><b/></a>"),
    ("<!DOCTYPE a PUBLIC '{}' 'x'><a><b/></a>", "<a><b/></a>"),
    ("<a><b/>&#0;&#xD800;\uffff</a>", "<a><b/></a>"),
]
NOT_CAUGHT_IN_WIDE = [
    ("<?xml version='1.0' foo='1'?><a><b/></a>", "<a><b/></a>"),
    ("<?xml version='1.1' foo='1.0'?><a><b/></a>", "<a><b/></a>"),
    ("<!DOCTYPE a SYSTEM><a><b/></a>", "<a><b/></a>"),
    ("<!DOCTYPE><a><b/></a>", "<a><b/></a>"),
]


def check_not_caught(simulator: Simulator, pairs: list[tuple[str, str]]) -> None:
    """A document with a fault has the answer of the one without it."""
    for documents in pairs:
        faulty, correct = simulator.run([document.encode() for document in documents])
        assert not faulty.status, documents
        assert faulty.positions == correct.positions, documents
        with pytest.raises(tamis.DocumentError):
            tamis.compile({"q": "//a"}).match(documents[0].encode())


@pytest.mark.long("tamis/hardware")
@pytest.mark.parametrize("system", ["shared", "wide"])
def test_a_thousand_queries(system: str, tmp_path: Path) -> None:
    queries = drawn_queries()
    alphabet = [("", tag) for tag in TAGS]
    made = Generated(queries, alphabet, options=SYSTEMS[system]._replace(outputs="cluster"))
    simulator = Simulator(made, tmp_path)
    reference = tamis.compile(queries, engine="reference")
    twin = tamis.compile(queries, engine="stacks")
    # Back to back, from one byte a document to some kilobytes, at every alignment, with gaps.
    small = drawn_documents(300, 30) + [
        one for document in DOCUMENTS[:5] for one in aligned(document)
    ]
    for gaps in (0, 30, 80):
        assert check(simulator, reference, small, gaps, gaps + 1) == {"answer": len(small)}
    # Every beginning of a document is cut off.
    (document,) = drawn_documents(700, 1)
    beginnings = [document[:length] for length in range(len(document) - 1)]
    assert check(simulator, twin, beginnings) == {"malformed": len(beginnings)}
    # Megabytes; the second run fills the queues as fast as can be.
    large = drawn_documents(1_000_000, 1) + drawn_documents(25_000, 10)
    assert check(simulator, twin, large, seed=7) == {"answer": len(large)}
    dense = b"<a>" + b"<b/>" * 100_000 + b"</a>"
    assert check(simulator, twin, [dense, *DOCUMENTS[3:5], dense], seed=8) == {"answer": 4}
    (answer,) = simulator.run([dense])
    assert 2 * answer.cycle < 1.01 * len(dense) or system == "shared"
    # What a circuit must not answer.
    deep = b"<a>" * 16 + b"</a>" * 16
    deeper = b"<a>" * 17 + b"</a>" * 17
    assert check(simulator, twin, [deep, deeper, deep]) == {"answer": 2, "overflow": 1}
    assert check(simulator, twin, [b"<a><unknown/></a>", deep]) == {"answer": 1, "unknown": 1}
    broken = list(damaged(3_000, seed=2))
    for gaps in (0, 40):
        counts = check(simulator, twin, broken, gaps, seed=gaps + 1)
        assert counts["answer"] > 300, counts
    if system == "shared":
        check_not_caught(simulator, NOT_CAUGHT)
        for faulty, _ in NOT_CAUGHT_IN_WIDE:
            (answer,) = simulator.run([faulty.encode()])
            assert answer.status, faulty
    else:
        without_prefixes = [pair for pair in NOT_CAUGHT if ":" not in pair[0]]
        check_not_caught(simulator, without_prefixes + NOT_CAUGHT_IN_WIDE)
