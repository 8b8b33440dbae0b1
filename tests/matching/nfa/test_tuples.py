"""Occurrences are linked: path-tuples from them bind the steps in each way, once."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from lxml import etree

from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tests.support.searchers import batch_of
from tests.support.tuples import path_tuples

Tuples = list[tuple[int, ...]]


def streams(filters: Sequence[str], documents: Sequence[str]) -> list[tuple[Tuples, list[int]]]:
    """Of each filter the tuples, as numbers of start tags in their document, and the documents."""
    vocabulary = Vocabulary()
    batch = batch_of(documents, vocabulary)
    starts_before = np.concatenate([[0], np.cumsum(batch.tags >= 0)])
    result = []
    for stream in path_tuples(filters, batch, vocabulary):
        firsts = starts_before[batch.document_starts[stream.documents]]
        nodes = starts_before[stream.nodes] - firsts[:, None]
        last = stream.nodes[:, -1]
        assert (last[1:] >= last[:-1]).all(), "the guarantee"
        assert (batch.tags[stream.nodes] >= 0).all()
        result.append(([tuple(row) for row in nodes.tolist()], stream.documents.tolist()))
    return result


def brute_force(filter: str, document: str) -> Tuples:
    """All tuples, by looking at each element's ancestors."""
    labels = Labels()
    codes = labels.read(filter)
    elements = list(etree.fromstring(document).iter())
    number = {element: place for place, element in enumerate(elements)}

    def passes(element: etree._Element, code: int) -> bool:
        return code >> 1 == 0 or element.tag == labels.names[code >> 1]

    def ways(element: etree._Element, codes: Sequence[int]) -> Iterator[tuple[int, ...]]:
        *before, code = codes
        if not passes(element, code):
            return
        above = list(element.iterancestors()) if code & 1 else [element.getparent()]
        if not before:
            if code & 1 or above == [None]:
                yield (number[element],)
            return
        for ancestor in above:
            if ancestor is not None:
                yield from ((*way, number[element]) for way in ways(ancestor, before))

    return [way for element in elements for way in ways(element, codes)]


def test_sections_and_figures() -> None:
    """The broker paper's example, of a figure in two sections: two tuples bind the same figure."""
    document = (
        "<section><section><figure><title>XML processing</title></figure></section></section>"
    )
    ((tuples, _),) = streams(["//section//figure"], [document])
    assert sorted(tuples) == [(0, 2), (1, 2)]


def test_order_of_the_predicate_path() -> None:
    """The broker paper's example for Query 3: section 2 comes before section 1."""
    document = (
        "<section><section><figure><title>XML processing</title></figure></section>"
        "<figure><title>XML processing</title></figure></section>"
    )
    ((tuples, _),) = streams(["//section/figure/title"], [document])
    assert tuples == [(1, 2, 3), (0, 4, 5)]


@pytest.mark.parametrize(
    ("filter", "document", "expected"),
    [
        ("/a", "<a><a/></a>", [(0,)]),
        ("//a", "<a><a/></a>", [(0,), (1,)]),
        ("//a//a", "<a><a><a/></a></a>", [(0, 1), (0, 2), (1, 2)]),
        ("//a/a", "<a><a><a/></a></a>", [(0, 1), (1, 2)]),
        ("//a/*//b", "<a><a><a><b/></a></a></a>", [(0, 1, 3), (1, 2, 3)]),
        ("//a//*/b", "<a><a><a><b/></a></a></a>", [(0, 2, 3), (1, 2, 3)]),
        ("/a/b", "<b><a/></b>", []),
        ("//b", "<a/>", []),
    ],
)
def test_named(filter: str, document: str, expected: Tuples) -> None:
    ((tuples, documents),) = streams([filter], [document])
    assert sorted(tuples) == sorted(expected) == sorted(brute_force(filter, document))
    assert documents == [0] * len(tuples)


def drawn_document(draw: random.Random, size: int) -> str:
    """Elements of three names, in each other again and again."""
    text, names = "", []
    for _ in range(size):
        if len(names) > 1 and draw.random() < 0.4:
            text += f"</{names.pop()}>"
        names.append(draw.choice("aab"))
        text += f"<{names[-1]}>"
    return text + "".join(f"</{name}>" for name in reversed(names))


@pytest.mark.parametrize("seed", range(40))
def test_drawn(seed: int) -> None:
    """Several filters at once, on several documents: what brute force finds, each tuple once."""
    draw = random.Random(seed)
    documents = [drawn_document(draw, draw.choice([3, 12, 40])) for _ in range(3)] + ["<", "<c/>"]
    filters = [
        "".join(draw.choice(["/", "//", "//"]) + draw.choice("aab*") for _ in range(length))
        for length in (1, 2, 2, 3, 3, 4)
    ]
    filters = list(dict.fromkeys(filters))
    for filter, (tuples, of) in zip(filters, streams(filters, documents), strict=True):
        pairs = list(zip(of, tuples, strict=True))
        assert len(set(pairs)) == len(pairs)
        expected = [
            (number, way)
            for number, document in enumerate(documents)
            if document != "<"
            for way in brute_force(filter, document)
        ]
        assert sorted(pairs) == sorted(expected), filter


def test_very_many() -> None:
    """161,700 tuples of nested elements."""
    depth = 100
    document = "<a>" * depth + "</a>" * depth
    ((tuples, _),) = streams(["//a//a//a"], [document])
    assert len(set(tuples)) == len(tuples) == depth * (depth - 1) * (depth - 2) // 6


def test_the_oracle_can_fail() -> None:
    """The canary: brute force finds what is there, and no more."""
    assert brute_force("/a//b", "<a><b/><c><b/></c></a>") == [(0, 1), (0, 3)]
    assert brute_force("/a/b", "<b><a/></b>") == []
    assert list(itertools.pairwise(brute_force("//*", "<a><b/></a>"))) == [((0,), (1,))]
