"""The counting algorithm: what its index shares, and that it finds what the reference finds."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.errors import MalformedEvent
from tamis.core.index.matches import Listing, Matches, Subscribers
from tamis.events.encode import encode
from tamis.events.engines import reference
from tamis.events.model import By, FilterTable, TableBuilder
from tamis.language.constraints import Constraint, Filter
from tamis_papers import sff
from tamis_papers.sff import SffSearcher
from tamis_papers.sff.layout import BASE
from tests.support.drawn_events import EVENTS, NUMBERS, STRINGS, answers, tables

BY: list[By] = ["filter", "subscription", "interface"]
NAN = float("nan")


def table_of(*subscriptions: Iterable[Filter], interfaces: Sequence[int] = ()) -> FilterTable:
    """Subscriptions, each with an interface; without, all have the first one."""
    builder = TableBuilder()
    for number, filters in enumerate(subscriptions):
        builder.add(filters, interfaces[number] if interfaces else 0)
    return builder.freeze()


def one_each(*filters: Filter, interfaces: Sequence[int] = ()) -> FilterTable:
    """Filters, each a subscription."""
    return table_of(*([filter] for filter in filters), interfaces=interfaces)


def compare(table: FilterTable, events: list[dict[str, Any]], threads: int = 1) -> None:
    """Hold the answers against those of the reference."""
    for by in BY:
        expected = answers(reference.ENGINE, table, events, by)
        assert answers(sff.ENGINE, table, events, by, threads) == expected, by


def pairs(matching: SffSearcher, events: list[dict[str, Any]], names: Sequence[str]) -> list[Any]:
    """What a matching answers of each event; found one by one, and all together."""
    batch = encode(events, names)
    matches = matching.match(batch)
    listed = Matches(Listing([Subscribers()], None, 1 << 16), [matches])
    by_event = list(map(listed.ids, range(listed.documents)))
    assert by_event == [matches.numbers(event).tolist() for event in range(batch.events)]
    return by_event


# ------------------------------------------------------------------------------------ drawn ones


@given(table=tables(), events=EVENTS, threads=st.integers(1, 5), size=st.integers(1, 4))
def test_threads_and_batches(
    table: FilterTable, events: list[dict[str, Any]], threads: int, size: int
) -> None:
    """However events are divided, among threads or into batches, of which none leaves a trace."""
    program = sff.compile_filters(table)
    for by in BY:
        expected = answers(reference.ENGINE, table, events, by)
        matching = SffSearcher(program, table.owners(by), threads)
        assert pairs(matching, events, table.names) == expected
        divided = [
            found
            for first in range(0, len(events), size)
            for found in pairs(matching, events[first : first + size], table.names)
        ]
        assert divided == expected


@given(
    constants=st.lists(st.tuples(st.sampled_from("= != < <= > >=".split()), NUMBERS), max_size=60),
    values=st.lists(NUMBERS, max_size=20),
)
def test_many_numbers_of_one_name(constants: list[Any], values: list[Any]) -> None:
    table = one_each(*([Constraint("n", *constant)] for constant in constants))
    compare(table, [{"n": value} for value in [*values, NAN, "", "a", True, None]])


@given(
    constants=st.lists(
        st.tuples(
            st.sampled_from("= != < <= > >= prefix suffix contains".split()),
            st.one_of(STRINGS, st.text("ab", max_size=5)),
        ),
        max_size=60,
    ),
    values=st.lists(st.one_of(STRINGS, st.text("abc", max_size=8)), max_size=20),
)
def test_many_strings_of_one_name(constants: list[Any], values: list[Any]) -> None:
    table = one_each(*([Constraint("n", *constant)] for constant in constants))
    compare(table, [{"n": value} for value in [*values, 0, NAN, False, None]])


@given(
    lists=st.lists(st.lists(NUMBERS, min_size=1, max_size=5), max_size=20),
    more=st.lists(NUMBERS, max_size=5),
    values=st.lists(NUMBERS, max_size=20),
)
def test_many_lists_of_one_name(lists: list[Any], more: list[Any], values: list[Any]) -> None:
    both = [Constraint("n", "in", tuple(items)) for items in lists]
    both += [Constraint("n", "=", value) for value in more]
    together = [list(two) for two in itertools.pairwise(both)]
    table = one_each(*([one] for one in both), *together)
    compare(table, [{"n": value} for value in [*values, NAN, "", True]])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("threads", [1, 3])
def test_thousands(seed: int, threads: int) -> None:
    """Enough filters for whole blocks, and for more to be found than there is room for at first."""
    draw = random.Random(seed)
    operators = ["=", "!=", "<", ">", "<=", ">="]
    names = [f"n{number}" for number in range(8)]
    filters, interfaces = [], []
    for _ in range(3_000):
        own = draw.sample(names, draw.choice([1, 1, 2, 3]))
        constants = ((draw.choice(operators), draw.randrange(10)) for _ in own)
        filters.append([Constraint(name, *next(constants)) for name in own])
        interfaces.append(draw.randrange(6))
    events: list[dict[str, Any]] = [
        {name: draw.randrange(10) for name in draw.sample(names, draw.randrange(6))}
        for _ in range(40)
    ]
    table = one_each(*filters, interfaces=interfaces)
    program = sff.compile_filters(table)
    assert program.shift > 0
    assert len(program.filters) <= 1.25 * table.filters
    expected = answers(reference.ENGINE, table, events, "filter")
    assert sum(map(len, expected)) > 4_000
    compare(table, events, threads)


# ------------------------------------------------------------------------------------- the index


def test_equal_constraints_are_one() -> None:
    table = one_each(
        [Constraint("a", "=", 1), Constraint("b", "in", (1, 2.0))],
        [Constraint("a", "=", 1.0), Constraint("b", "in", (2, 1, 1))],
        [Constraint("a", "prefix", "x"), Constraint("a", "=", "x"), Constraint("b", "exists")],
        [Constraint("b", "exists"), Constraint("a", "=", "x"), Constraint("a", "prefix", "x")],
    )
    index = sff.compile_filters(table).constraints
    counts = np.diff(index.posting_starts)
    assert sorted(counts[counts > 0].tolist()) == [2, 2, 2, 2, 2]
    compare(table, [{"a": 1, "b": 2}, {"a": "x", "b": 3}, {"a": 1, "b": 3}, {"b": 1}])


def test_equal_strings_of_a_table_are_one() -> None:
    """A table from elsewhere may have strings more than once, and in any order."""
    table = one_each(
        *([Constraint("n", operator, text)] for operator in ("=", "prefix") for text in "cab")
    )
    twice = table._replace(
        string_starts=np.arange(7),
        string_bytes=np.frombuffer(b"cabcab", np.uint8),
        values=np.arange(6),
    )
    index = sff.compile_filters(twice).constraints
    assert index.string_bytes.tobytes() == b"abc"
    events = [{"n": text} for text in ("a", "b", "c", "ab", "d", "")]
    for by in BY:
        assert answers(sff.ENGINE, twice, events, by) == answers(sff.ENGINE, table, events, by)
    compare(twice, events)


@pytest.mark.parametrize(
    "filter",
    [
        [Constraint("n", ">", 1)] * 3,
        [Constraint("n", "=", 2), Constraint("n", "=", 2.0)],
        [Constraint("n", "in", (1, 2)), Constraint("n", "in", (2.0, 1, 2))],
        [Constraint("n", "exists")] * 2,
        [Constraint("n", "in", (2, 3)), Constraint("n", "in", (1, 2)), Constraint("n", "=", 2)],
    ],
)
def test_a_constraint_twice_counts_once(filter: Filter) -> None:
    table = one_each(filter, [*filter, Constraint("other", "=", 1)])
    compare(table, [{"n": 2}, {"n": 1}, {"n": 2, "other": 1}, {"other": 1}, {"n": 2, "other": 2}])


def test_contradictions_never_match() -> None:
    table = one_each([Constraint("n", "=", 1), Constraint("n", "=", 2)])
    assert answers(sff.ENGINE, table, [{"n": 1}, {"n": 2}, {"n": 3}], "filter") == [[], [], []]


def test_memory_is_counted() -> None:
    table = one_each(*([Constraint("n", "=", number)] for number in range(1_000)))
    program = sff.compile_filters(table)
    assert program.memory_usage() >= 1_000 * (8 + 4)
    one, two = (SffSearcher(program, table.owners("filter"), n).memory_usage() for n in (1, 2))
    assert two - one >= 1_000 * 4


# ---------------------------------------------------------------------------------- the counting


def test_more_constraints_than_a_byte_counts() -> None:
    many: Filter = [Constraint(f"n{number}", ">", number) for number in range(300)]
    on_one: Filter = [Constraint("n0", "!=", number) for number in range(1_000)]
    table = one_each(many, many[:15], many[:16], many[:255], many[:256], on_one)
    whole = {f"n{number}": number + 1 for number in range(300)}
    events: list[dict[str, Any]] = [
        whole,
        {**whole, "n299": 0},
        {**whole, "n0": -1, "n255": 0},
        {**whole, "n255": 0},
        dict(list(whole.items())[:15]),
        {"n0": 1_000},
    ]
    compare(table, events)


def test_counters_begin_anew_before_they_overflow() -> None:
    table = one_each([Constraint("a", "=", 1), Constraint("b", "=", 1)], [Constraint("a", "=", 1)])
    matching = SffSearcher(sff.compile_filters(table), table.owners("filter"), 1)
    events: list[dict[str, Any]] = [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}]
    expected = [[1], [], [0, 1]]
    assert pairs(matching, events, table.names) == expected
    state = matching._workers[0]._state.words
    state[BASE] = 2**31 - 8
    bases = set()
    for _ in range(4):
        assert pairs(matching, events, table.names) == expected
        bases.add(int(state[BASE]))
    assert max(bases) < 2**31 - 3
    assert min(bases) < 100


# --------------------------------------------------------------------------- interfaces, and edges


def test_interfaces_are_found_once_and_then_passed_over() -> None:
    filters = [[Constraint("a", ">", n)] for n in range(100)]
    filters += [[Constraint("b", ">", n), Constraint("a", ">", n)] for n in range(100)]
    interfaces = [n % 3 for n in range(200)]
    table = one_each(*filters, interfaces=interfaces)
    matching = SffSearcher(sff.compile_filters(table), table.owners("interface"), 1)
    batch = encode([{"a": 1_000, "b": 1_000}, {"a": 2}, {"b": 5}], table.names)
    matches = matching.match(batch)
    assert sorted(matches.set_ids[:3].tolist()) == [0, 1, 2]
    assert matches.document_starts.tolist() == [0, 3, 5, 5]
    # It stopped as soon as all were marked: of the counters, hardly any was touched.
    counters = matching._workers[0]._state.arrays.counters
    matching.match(encode([{"a": 1_000, "b": 1_000}], table.names))
    assert np.count_nonzero(counters == counters.max()) < 100


def test_interfaces_without_filters_are_not_waited_for() -> None:
    table = table_of([[Constraint("a", "=", 1)]], [], interfaces=[2, 5])
    assert table.interface_count == 6
    compare(table, [{"a": 1}, {"a": 2}])


def test_filters_without_constraints() -> None:
    table = table_of(
        [[]], [[Constraint("a", "=", 1)], []], [[Constraint("a", "=", 1)]], interfaces=[0, 0, 1]
    )
    compare(table, [{}, {"a": 1}, {"a": 2}, {"b": 1}])


@pytest.mark.parametrize("by", BY)
def test_events_in_error_match_nothing(by: By) -> None:
    table = table_of([[]], [[Constraint("a", "=", 1)]])
    batch = encode([{"a": 2**64}, {"a": 1}, {"a": [1]}, {}], table.names)
    assert set(batch.errors) == {0, 2}
    assert isinstance(batch.errors[0], MalformedEvent)
    for threads in (1, 2):
        matching = SffSearcher(sff.compile_filters(table), table.owners(by), threads)
        matches = matching.match(batch)
        found = [len(matches.numbers(event)) for event in range(4)]
        assert found == [0, 1 if by == "interface" else 2, 0, 1]


@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_at_all(threads: int) -> None:
    assert answers(sff.ENGINE, table_of(), [{}, {"a": 1}], "filter", threads) == [[], []]
    assert answers(sff.ENGINE, table_of([]), [{"a": 1}], "interface", threads) == [[]]
    table = one_each([Constraint("a", "=", 1)])
    assert answers(sff.ENGINE, table, [], "filter", threads) == []


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (
            "prefix",
            {"abc": [0, 1, 2, 4], "ab": [0, 1, 2], "abd": [0, 1, 2], "ac": [0, 1], "b": [0]},
        ),
        ("suffix", {"cba": [0, 1, 5, 6], "ba": [0, 1, 5], "a": [0, 1], "xcba": [0, 1, 5, 6]}),
        ("contains", {"xabcx": [0, 1, 2, 3, 4], "cba": [0, 1, 3, 5, 6], "": [0]}),
    ],
)
def test_parts(operator: str, expected: dict[str, list[int]]) -> None:
    parts = ["", "a", "ab", "c", "abc", "ba", "cba"]
    table = one_each(*([Constraint("n", operator, part)] for part in parts))
    events = [{"n": text} for text in expected]
    assert answers(sff.ENGINE, table, events, "filter") == [*expected.values()]
    compare(table, events)
