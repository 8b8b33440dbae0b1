"""No two documents of a workload are equal, and all are what was declared."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from benchmarks.documents import AbsentError, altered, copies, make

DTD = "<!ELEMENT a (b | c)*> <!ELEMENT b (a | c)*> <!ELEMENT c (a | b)*>"


def declared(documents: dict[str, Any], repetition: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "documents": documents,
        "subscriptions": {},
        "repetition": repetition,
        "data": "",
        **more,
    }


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("*.xml"))]


def test_altered_documents_have_other_text_of_the_same_length() -> None:
    document = b"<a b='c'><!-- d > e -->Zoo f\xc3\xbcr &lt; alle<d/>\n12 x]]</a>"
    other = altered(document, 1)
    assert other == b"<a b='c'><!-- d > f -->App g\xc3\xbcs &lt; alle<d/>\n12 y]]</a>"
    texts = {altered(document, turn) for turn in range(26)}
    assert len(texts) == 26
    assert altered(document, 0) == document


def test_copies_are_all_different() -> None:
    originals = [b"<a>one</a>", b"<a>two</a>", b"<a>three</a>"]
    made = list(copies(originals, 10 * sum(map(len, originals)), 0))
    assert len(made) == 30
    assert len({*made, *originals}) == 33
    with pytest.raises(ValueError, match="there are 25 ways to alter"):
        next(copies(originals, 10_000, 0))


def test_a_corpus(data: Path, tmp_path: Path) -> None:
    table = {"kind": "corpus", "folder": "tiny", "size": 150}
    size = make(declared(table, data=str(data)), tmp_path / "first")
    made = contents(tmp_path / "first" / "documents")
    assert size == {"documents": len(made), "bytes": sum(map(len, made)), "seed": 0}
    assert size["bytes"] >= 150
    assert contents(tmp_path / "first" / "warmup") == contents(data / "tiny")
    make(declared(table, 1, data=str(data)), tmp_path / "second")
    assert not set(made) & set(contents(tmp_path / "second" / "documents"))
    with pytest.raises(AbsentError, match="the real documents none are not in data/"):
        make(declared({**table, "folder": "none"}, data=str(data)), tmp_path / "third")


def test_generated_documents(tmp_path: Path) -> None:
    table = {"kind": "dblp", "number": 3, "records": 2}
    wanted = {"count": 4, "matching": 0.5, "from": 2}
    for name, repetition in (("first", 0), ("again", 0), ("second", 1)):
        make(declared(table, repetition, subscriptions=wanted), tmp_path / name)
    first, again, second = (
        contents(tmp_path / name / "documents") for name in ("first", "again", "second")
    )
    assert first == again
    warmup = contents(tmp_path / "first" / "warmup")
    assert len({*first, *second, *warmup}) == 6 + 100
    for line in (tmp_path / "first" / "subscriptions.tsv").read_text().splitlines():
        etree.XPath(line.partition("\t")[2])


def test_documents_of_a_dtd(tmp_path: Path) -> None:
    table = {"kind": "dtd", "size": 2000, "depth": 9, "dtd": "<!ELEMENT a (b*)> <!ELEMENT b (a?)>"}
    size = make(declared(table), tmp_path)
    (document,) = contents(tmp_path / "documents")
    assert 1500 < size["bytes"] == len(document) <= 2000
    assert document not in contents(tmp_path / "warmup")


def test_halves_of_a_corpus(data: Path, tmp_path: Path) -> None:
    table = {"kind": "corpus", "folder": "tiny", "size": 1, "halves": True}
    make(declared(table, data=str(data)), tmp_path / "made")
    (document,) = contents(tmp_path / "made" / "documents")
    (other,) = contents(tmp_path / "made" / "warmup")
    tags = re.compile(rb"<[^>]*>")
    assert tags.findall(document) != tags.findall(other)


def test_as_much_to_warm_up_with_as_was_asked_for(tmp_path: Path) -> None:
    table = {"kind": "dtd", "size": 1000, "depth": 9, "dtd": DTD, "warmup": 300_000}
    make(declared(table), tmp_path)
    warmup = contents(tmp_path / "warmup")
    assert len(warmup) > 100
    assert 297_000 <= sum(map(len, warmup)) < 300_000


def test_alternating_documents(tmp_path: Path) -> None:
    drawn = {"kind": "dtd", "size": 300, "depth": 9, "dtd": DTD}
    parts = [{"kind": "dblp", "records": 2}, drawn]
    make(declared({"kind": "alternating", "parts": parts, "number": 4, "warmup": 3_000}), tmp_path)
    for folder in ("documents", "warmup"):
        roots = [etree.fromstring(data).tag for data in contents(tmp_path / folder)]
        assert roots[::2] == ["dblp"] * len(roots[::2])
        assert "dblp" not in roots[1::2]
    make(declared({**drawn, "number": 2}), tmp_path / "apart")
    assert contents(tmp_path / "apart" / "documents") == contents(tmp_path / "documents")[1::2]


@pytest.mark.parametrize(
    "wanted",
    [
        {"kind": "paths", "depth": [2, 4], "wildcard": 0.3},
        {"kind": "twigs", "sizes": [[3, 1], [5, 2]], "descendant": 0.5},
    ],
)
def test_subscriptions_of_a_dtd(wanted: dict[str, Any], data: Path, tmp_path: Path) -> None:
    (data / "x.dtd").write_text(DTD)
    table = {"kind": "dtd", "size": 200, "depth": 9, "dtd_file": "x.dtd"}
    wanted = {**wanted, "count": 7, "distinct": True}
    make(declared(table, data=str(data), subscriptions=wanted), tmp_path / "first")
    text = (tmp_path / "first" / "subscriptions.tsv").read_text()
    lines = [line.split("\t") for line in text.splitlines()]
    assert [id for id, _ in lines] == [f"s{number}" for number in range(7)]
    assert len({expression for _, expression in lines}) == 7
    assert all(etree.XPath(expression) for _, expression in lines)
    make(declared(table, 1, data=str(data)), tmp_path / "second")
    assert not (tmp_path / "second" / "subscriptions.tsv").exists()
    with pytest.raises(AbsentError, match=r"the DTD y\.dtd is not in data/"):
        make(declared({**table, "dtd_file": "y.dtd"}, data=str(data)), tmp_path / "third")
