"""``Matches``: what engines found, listed by subscription, as sets in Python list it."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.arrays import Int32
from tamis.core.errors import LxmlEvaluationError, MalformedDocument
from tamis.core.index.matches import Listing, Matches, Subscribers
from tamis.core.index.matchset import MatchSet, match_set


class Part(NamedTuple):
    """What an engine found, and the subscriptions of its queries."""

    matches: MatchSet
    subscribers: Subscribers
    size: int


@st.composite
def parts(draw: st.DrawFn, documents: int) -> Part:
    """Sets of queries and slices of queries, that documents refer to, perhaps to several."""
    queries = draw(st.sampled_from([1, 8, 70, 5_000]))
    numbers = st.integers(0, queries - 1)
    sliced = draw(st.lists(numbers, max_size=6))
    slices = st.tuples(st.integers(0, len(sliced)), st.integers(0, len(sliced))).map(sorted)
    own = st.one_of(numbers.map(lambda number: [number]), slices.map(lambda s: [-1 - s[0], s[1]]))
    sets = draw(st.lists(st.lists(own, max_size=4).map(joined), min_size=1, max_size=5))
    refer = st.lists(st.integers(0, len(sets) - 1), max_size=3, unique=True)
    referred = draw(st.lists(refer, min_size=documents, max_size=documents))
    matches = MatchSet(
        starts(referred), flat(referred), starts(sets), flat(sets), np.array(sliced, np.int32)
    )
    asked = draw(st.lists(numbers, max_size=20)) + list(range(queries))
    subscribers = Subscribers.of(np.array(draw(st.permutations(asked)), np.int32), queries)
    size = len(asked)
    if draw(st.booleans()):
        subscribers, size = Subscribers(), queries
    is_removed = np.array(draw(st.lists(st.booleans(), min_size=4, max_size=4)) * size)[:size]
    removed = is_removed if draw(st.booleans()) else None
    return Part(matches, subscribers.within(0, removed), size)


@st.composite
def found(draw: st.DrawFn) -> list[Part]:
    """What some engines found in the same documents."""
    documents = draw(st.integers(0, 6))
    every = draw(st.lists(parts(documents), min_size=1, max_size=3))
    firsts = sums([part.size for part in every])
    return [
        part._replace(subscribers=part.subscribers._replace(first=int(first)))
        for part, first in zip(every, firsts, strict=False)
    ]


def sums(counts: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def starts(lists: list[list[int]]) -> np.ndarray:
    return sums(list(map(len, lists)))


def flat(lists: list[list[int]]) -> Int32:
    return np.array(joined(lists), np.int32)


def joined(lists: list[list[int]]) -> list[int]:
    return [number for found in lists for number in found]


def matches_of(every: list[Part]) -> Matches[MalformedDocument]:
    subscribers = [part.subscribers for part in every]
    listing = Listing(subscribers, None, sum(part.size for part in every))
    return Matches(listing, [part.matches for part in every])


def expected_of(every: list[Part]) -> list[list[int]]:
    """By sets in Python."""
    numbers: list[set[int]] = [set() for _ in range(every[0].matches.documents)]
    for part in every:
        for document, own in enumerate(numbers):
            for query in part.matches.numbers(document).tolist():
                own.update(part.subscribers.numbers_of(query))
    return list(map(sorted, numbers))


@given(found())
def test_all_documents(every: list[Part]) -> None:
    matches, expected = matches_of(every), expected_of(every)
    assert [matches.numbers(number).tolist() for number in range(len(expected))] == expected
    assert list(map(matches.ids, range(len(expected)))) == expected
    assert list(map(json.loads, map(matches.json, range(len(expected))))) == expected


@given(found(), st.data())
def test_any_documents(every: list[Part], data: st.DataObject) -> None:
    """In any order, and until there are so many."""
    matches, expected = matches_of(every), expected_of(every)
    for number in data.draw(st.permutations(range(len(expected)))):
        assert matches.numbers(number).tolist() == expected[number]
        assert matches.count(number) == len(expected[number])
        most = data.draw(st.integers(1, 50))
        bounds, numbers = matches.lists(number, most)
        some = expected[number : number + len(bounds) - 1]
        assert numbers.tolist() == joined(some)
        assert bounds.tolist() == starts(some).tolist()
        assert len(some) == 1 or len(joined(some[:-1])) < most
        assert number + len(some) == len(expected) or len(numbers) >= most


@given(found(), st.data())
def test_only_some_queries(every: list[Part], data: st.DataObject) -> None:
    """Of several engines, each is asked some of the queries of a segment."""
    subscribers = every[0].subscribers
    if not len(subscribers.starts):
        return
    queries = len(subscribers.starts) - 1
    some = data.draw(st.lists(st.integers(0, queries - 1), max_size=5, unique=True))
    only = subscribers.only(np.array(some, np.int32))
    whole = Subscribers(subscribers.starts, subscribers.numbers)
    for number, query in enumerate(some):
        assert only.numbers_of(number) == whole.numbers_of(query)


def test_errors_and_failures() -> None:
    """A document in error raises it; what lxml could not answer is told by subscription."""
    error, failure = MalformedDocument("it ends", 1, 1, 0), LxmlEvaluationError("too deep")
    subscribers = Subscribers.of(np.array([1, 0, 1], np.int32), 2).within(
        3, np.array([False, False, True])
    )
    one = match_set([np.array([0]), np.array([], int)])._replace(
        failed={0: {1: failure, 0: failure}}
    )
    matches = Matches(Listing([subscribers], None, 6), [one], {1: error})
    assert matches.failed == {0: {3: failure, 4: failure}}
    assert matches.ids(0) == [4]
    with pytest.raises(MalformedDocument):
        matches.count(1)
    with pytest.raises(MalformedDocument):
        Matches[MalformedDocument].of_error(error).json(0)


def test_documents_that_are_not_there() -> None:
    matches: Matches[MalformedDocument] = Matches(
        Listing([Subscribers()], None, 2), [match_set([np.array([0]), np.array([1])])]
    )
    for number in (-1, 2, 10**7):
        with pytest.raises(IndexError):
            matches.numbers(number)
    for first in (-1, 3):
        with pytest.raises(IndexError):
            matches.lists(first)
    assert matches.lists(2)[0].tolist() == [0]


def test_arrays_of_other_types() -> None:
    """An engine of another package may have made them; the kernel would read nonsense."""
    found = match_set([np.array([0])])
    listing = Listing([Subscribers()], None, 2)
    with pytest.raises(TypeError):
        Matches(listing, [found._replace(members=found.members.astype(np.int64))]).count(0)


def test_a_query_without_subscribers() -> None:
    some = Subscribers(np.array([0, 2, 2, 3]), np.array([0, 1, 2], np.int32))
    only = some.only(np.array([0, 1], np.int32))
    assert [only.numbers_of(query) for query in range(2)] == [[0, 1], []]


def test_very_many_matches() -> None:
    """More than the room that there is, of one document."""
    size = 3 << 20
    found = match_set([np.arange(5), np.arange(size), np.arange(size, step=7)])
    matches: Matches[MalformedDocument] = Matches(Listing([Subscribers()], None, size), [found])
    assert [matches.count(number) for number in range(3)] == [5, size, -(-size // 7)]
    assert np.array_equal(matches.numbers(1), np.arange(size))
