"""Large groups, wide events, many constants: each has a way of its own through the engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.events.encode import encode
from tamis.events.engines import reference, signature
from tamis.events.engines.signature import compile as compiling
from tamis.events.engines.signature import execute as working
from tamis.events.engines.signature import keys
from tamis.events.engines.signature.program import (
    DENSE,
    HASHED,
    IS_WIDE,
    OWNERS,
    SEARCHED,
    UNREPORTED,
)
from tamis.events.model import By, EventBatch, FilterTable, TableBuilder
from tamis.events.subscriptions import EventSubscriptions
from tamis.language.constraints import Constraint
from tamis_workload import EventWorkload
from tests.support.drawn_events import EVENTS, answers, tables

EVERY_BY: tuple[By, ...] = ("filter", "subscription", "interface")


def check(table: FilterTable, batch: EventBatch, by: By = "filter") -> int:
    """Both engines find the same; how many matches there are."""
    found = []
    for engine in (signature.ENGINE, reference.ENGINE):
        matching = engine.searcher(engine.compile(table), table.owners(by), 1)
        matches = matching.match(batch)
        found.append([matches.numbers(event).tolist() for event in range(batch.events)])
    assert found[0] == found[1]
    return sum(map(len, found[0]))


@pytest.mark.parametrize("by", EVERY_BY)
@given(table=tables(), events=EVENTS)
def test_all_groups_are_divided(by: By, table: FilterTable, events: list[dict[str, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "LARGE", 1)
        found = answers(signature.ENGINE, table, events, by)
    assert found == answers(reference.ENGINE, table, events, by)


@pytest.mark.parametrize("by", EVERY_BY)
@pytest.mark.parametrize(
    "options",
    [
        {"names": 4, "values": 3},  # a few groups of hundreds, divided by constants
        {"names": 4, "values": 40, "strings": 0.5},
        {"names": 30, "constraints": (1, 2)},
        {"names": 30, "skew": 1.0},
        {"names": 24, "attributes": (18, 24), "constraints": (1, 3)},  # too wide for subsets
        {"names": 24, "attributes": (1, 24), "constraints": (5, 12), "values": 2},
        {"names": 70, "attributes": (65, 70), "values": 5},
        {"names": 1, "constraints": (1, 1), "attributes": (1, 1)},
    ],
    ids=str,
)
def test_workloads(by: By, options: dict[str, Any]) -> None:
    options = {"attributes": (1, min(5, options["names"])), **options}
    workload = EventWorkload(interfaces=3, filters=(300, 400), seed=1, **options)
    assert check(workload.table(), workload.events(60), by) > 0


def table_of(*filters: list[Constraint]) -> FilterTable:
    builder = TableBuilder()
    for filter in filters:
        builder.add([filter])
    return builder.freeze()


def test_ends_of_a_large_group() -> None:
    """What is before and behind all constants is one rank too, but no constant."""
    operators = ("=", "<", "<=", ">", ">=", "!=")
    filters = [
        [Constraint("a", operator, value), Constraint("b", other, value)]
        for operator in operators
        for other in operators
        for value in (1, 2)
    ]
    events = [{"a": a / 2, "b": b / 2} for a in range(1, 6) for b in range(1, 6)]
    assert check(table_of(*filters), encode(events, ("a", "b"))) > 0


def _modes(table: FilterTable) -> set[int]:
    return set(signature.ENGINE.compile(table).ranks.modes.tolist())


MANY: dict[str, tuple[list[str], Callable[[int], Any], int]] = {
    "dense": (["=", "<", ">="], lambda n: n, DENSE),
    "far apart": (["=", "<", ">="], lambda n: n * 1_000_003, SEARCHED),
    "floats": (["=", "<", ">="], lambda n: n / 7, SEARCHED),
    "beyond doubles": (["=", "<", ">="], lambda n: 2**53 + n * 100_000, SEARCHED),
    "strings": (["=", "<", ">="], lambda n: f"a string with a head {n}", SEARCHED),
    "hashed numbers": (["=", "!="], lambda n: n * 1_000_003, HASHED),
    "hashed floats": (["=", "!="], lambda n: n / 7, HASHED),
    "hashed strings": (["=", "!="], lambda n: f"{n}", HASHED),
}


@pytest.mark.parametrize("name", MANY)
def test_many_constants(name: str) -> None:
    operators, value, mode = MANY[name]
    filters = [
        [Constraint("a", operator, value(n)), Constraint("b", "exists")]
        for n in range(100)
        for operator in operators
    ]
    table = table_of(*filters)
    assert mode in _modes(table)
    given = [value(n) for n in range(-2, 103)]
    given += [float("nan"), 1e300, -1e300, 0.25, "", "zz", 2**63 - 1, -(2**63), True]
    assert check(table, encode([{"a": each, "b": None} for each in given], table.names)) == 0
    assert check(table, encode([{"a": each, "b": 0} for each in given], table.names)) > 0


# Strings of few letters, around the seven bytes that are compared first, with and without a
# beginning that all of them have.
WORDS = st.text("\0aé\U0010ffff", max_size=17)
ALIKE = st.one_of(st.lists(WORDS), st.lists(WORDS.map("a long beginning ".__add__), min_size=1))


@given(constants=ALIKE, others=ALIKE)
def test_strings_that_begin_alike(constants: list[str], others: list[str]) -> None:
    filters = [
        [Constraint("a", operator, constant)]
        for constant in constants
        for operator in ("=", "!=", "<", "<=", ">", ">=", "prefix")
    ]
    given = [*constants, *others, *(constant[:-1] for constant in constants), "", "a long"]
    check(table_of(*filters), encode([{"a": string} for string in given], ("a",)))


@pytest.mark.parametrize("operators", ["=!<", "=!"])
def test_ranks_beyond_16_bits(operators: str) -> None:
    names = {"=": "=", "!": "!=", "<": "<"}
    count = 33_000  # 32,766 constants are the last that fit
    filters = [
        [Constraint("a", names[operators[n % len(operators)]], n * 64), Constraint("b", "=", n % 2)]
        for n in range(count)
    ]
    table = table_of(*filters)
    program = signature.ENGINE.compile(table)
    assert program.cells.arena[program.cells.listed[0]] & IS_WIDE
    values = [0, 1, 64, 128, 32 * 64, 32_765 * 64, 32_766 * 64, (count - 1) * 64, count * 64, -1]
    assert check(table, encode([{"a": each, "b": 1} for each in values], table.names)) > 0


def test_ranks_of_16_bits_at_most() -> None:
    table = table_of(*([Constraint("a", "!=", n)] for n in range(32_766)))
    program = signature.ENGINE.compile(table)
    assert not program.cells.arena[program.cells.listed[0]] & IS_WIDE
    values = [0, 32_765, 32_766, -1, 0.5, float("nan")]
    assert check(table, encode([{"a": each} for each in values], table.names)) > 0


def test_equal_filters_are_one() -> None:
    """In whatever order they say it, and however often."""
    a, b = Constraint("a", ">", 1), Constraint("b", "=", "x")
    program = signature.ENGINE.compile(table_of([a, b], [b, a], [a, b, a], [a]))
    assert program.member_starts.tolist() == [0, 3, 4]


def test_filters_that_no_event_matches() -> None:
    """They are left out; those of one name and two kinds too."""
    contradictions = [
        [Constraint("a", ">", 5), Constraint("a", "<", 5)],
        [Constraint("a", "=", 5), Constraint("a", "!=", 5)],
        [Constraint("a", "=", 5), Constraint("a", "=", "5")],
        [Constraint("a", "=", True), Constraint("a", "exists"), Constraint("a", "<", "x")],
    ]
    program = signature.ENGINE.compile(table_of(*contradictions))
    assert program.members.tolist() == []


@pytest.mark.parametrize("by", EVERY_BY)
@given(table=tables(), events=EVENTS)
def test_room_that_grows(by: By, table: FilterTable, events: list[dict[str, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(working, "_FOUND_AT_FIRST", 1)
        check(table, encode(events * 3, table.names), by)


def test_one_matching_for_many_batches() -> None:
    workload = EventWorkload(interfaces=2, filters=(200, 200), names=8, seed=4)
    table = workload.table()
    matching = signature.ENGINE.searcher(
        signature.ENGINE.compile(table), table.owners("interface"), 1
    )
    whole = workload.events(50)
    expected = reference.ENGINE.searcher(
        reference.ENGINE.compile(table), table.owners("interface"), 1
    ).match(whole)
    for event in range(50):
        found = matching.match(workload.events(1, first=event))
        assert found.numbers(0).tolist() == expected.numbers(event).tolist()


def test_memory_is_known() -> None:
    program = signature.ENGINE.compile(EventWorkload(filters=(10, 10)).table())
    parts = (program.ranks, program.cells, program.tests, program.texts, program)
    arrays = [field for part in parts for field in part if isinstance(field, np.ndarray)]
    assert program.memory_usage() == sum(array.nbytes for array in arrays)


def test_hashes_that_are_too_much_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are taken then, so that no cell stands in for another one."""
    hashes = compiling._hashes

    def alike(keys: int, seed: int) -> Any:
        return hashes(keys, seed) if seed == 2 else np.full(keys, 12345, np.uint64)

    monkeypatch.setattr(compiling, "_hashes", alike)
    workload = EventWorkload(interfaces=1, filters=(50, 50), names=6, seed=2)
    assert check(workload.table(), workload.events(50)) > 0


def test_an_event_is_done_when_all_that_can_be_found_is() -> None:
    """An interface whose filters contradict themselves is not waited for."""
    table = EventSubscriptions({"a": "n > 1", "never": "n > 5 and n < 5", "b": "m = 2"}).table
    matching = signature.ENGINE.searcher(
        signature.ENGINE.compile(table), table.owners("interface"), 1
    )
    assert isinstance(matching, working.SignatureSearcher)
    matching.match(encode([{"n": 2, "m": 2}], table.names))
    words = matching._state.words
    assert (words[OWNERS], words[UNREPORTED]) == (2, 0)


@pytest.mark.parametrize("least", [2**63 - 1, -(2**63)])
def test_constants_at_the_ends_of_64_bits(least: int) -> None:
    inner = least - 1 if least > 0 else least + 1
    given = {"is": f"n = {least}", "inner": f"n {'>' if least > 0 else '<'} {inner}"}
    table = EventSubscriptions(given).table
    events = encode([{"n": least}, {"n": inner}, {"n": 0}, {"n": -1}], table.names)
    assert check(table, events) == 2
    one = EventSubscriptions({"is": f"n = {least}"}).table
    assert check(one, encode([{"n": least}, {"n": inner}], one.names)) == 1


def test_lists_and_parts_beyond_what_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are tests then, with the same answers."""
    texts = {
        **{n: f"a in ({', '.join(map(str, range(n, n + n % 9 + 2)))})" for n in range(60)},
        "two": "a in (1, 2, 3) and b in ('x', 'y') and c contains 'long'",
        "long": f"c contains '{'long' * 100}'",
        "end": f"c suffix '{'long' * 100}' and a in (1, 2)",
    }
    table = EventSubscriptions(texts).table
    given = [{"a": n % 70, "b": "xyz"[n % 3], "c": "long" * (n % 120)} for n in range(300)]
    events = encode(given, table.names)
    assert check(table, events) > 0
    monkeypatch.setattr(keys, "_COPIES_EACH", 1)
    monkeypatch.setattr(keys, "_COPIES_MIN", 30)
    monkeypatch.setattr(keys, "_PART_MAX", 3)
    assert check(table, events) > 0
