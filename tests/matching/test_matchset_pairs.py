"""``MatchSet.pairs``: what ``numbers`` says of each document, of many at once."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.arrays import Int32
from tamis.core.index.matchset import MatchSet, Subscribers


@st.composite
def match_sets(draw: st.DrawFn) -> MatchSet:
    """Sets of queries and slices of queries, that documents refer to, perhaps to several."""
    queries = draw(st.integers(1, 8))
    numbers = st.integers(0, queries - 1)
    sliced = draw(st.lists(numbers, max_size=6))
    slices = st.tuples(st.integers(0, len(sliced)), st.integers(0, len(sliced))).map(sorted)
    parts = st.one_of(numbers.map(lambda number: [number]), slices.map(lambda s: [-1 - s[0], s[1]]))
    sets = draw(st.lists(st.lists(parts, max_size=4).map(joined), min_size=1))
    refer = st.lists(st.integers(0, len(sets) - 1), max_size=3, unique=True)
    documents = draw(st.lists(refer, max_size=6))
    asked = draw(st.lists(st.integers(0, 2), min_size=queries, max_size=queries))
    order = draw(st.permutations(range(sum(asked))))
    return MatchSet(
        starts(documents),
        flat(documents),
        starts(sets),
        flat(sets),
        np.array(sliced, np.int32),
        draw(st.sampled_from([None, Subscribers(sums(asked), np.array(order, np.int32))])),
        {},
    )


def sums(counts: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def starts(lists: list[list[int]]) -> np.ndarray:
    return sums(list(map(len, lists)))


def flat(lists: list[list[int]]) -> Int32:
    return np.array(joined(lists), np.int32)


def joined(lists: list[list[int]]) -> list[int]:
    return [number for found in lists for number in found]


@given(match_sets(), st.data())
def test_pairs_are_the_numbers_of_each_document(matches: MatchSet, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, matches.documents))
    end = data.draw(st.integers(first, matches.documents))
    documents, numbers = matches.pairs(first, end)
    expected = [
        (document, number)
        for document in range(first, end)
        for number in matches.numbers(document).tolist()
    ]
    assert list(zip(documents.tolist(), numbers.tolist(), strict=True)) == expected
    assert numbers.dtype == np.int32
