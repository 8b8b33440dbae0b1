"""OCM: sizes, counters, threads."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tamis.core.errors import MalformedEvent, UsageError
from tamis.events.encode import encode
from tamis.events.engines import reference
from tamis.events.model import FilterTable, TableBuilder
from tamis.language.constraints import Constraint
from tamis_papers.pcm import OcmSearcher, PcmOptions, compile_filters, ocm
from tests.papers.pcm.test_drawn import events_of, of_numbers
from tests.papers.pcm.variants import OPTIONS
from tests.support.drawn_events import answers


def frozen(*filters: list[Constraint]) -> FilterTable:
    builder = TableBuilder()
    for filter in filters:
        builder.add([filter])
    return builder.freeze()


# -- tables ----------------------------------------------------------------------------------------


def test_layout() -> None:
    table = frozen(
        [Constraint("a", "=", 1), Constraint("b", "<", 2)],
        [Constraint("c", "exists")],
        [],
        [Constraint("b", ">", 3), Constraint("a", "!=", "x"), Constraint("b", "<", 9)],
    )
    program = compile_filters(table, PcmOptions(8))
    tables = program.tables
    assert program.numbers.tolist() == [0, 3, 1]
    assert program.empty.tolist() == [2]
    assert program.size_max == 3
    # "b" is the most frequent name, then come "a" and "c".
    assert tables.vector_bits.tolist() == [2, 1, 4]
    assert tables.vectors[: tables.total].tolist() == [3, 4]
    assert tables.row_first.tolist() == [0, 2, 3]
    rows = [(int(row) >> 32, int(row) & 0xFFFFFFFF) for row in tables.rows]
    assert rows == [(0, 0), (1, 2), (2, 5), (0, 6)]
    assert tables.constr_filter_id.tolist() == [0, 1, 0, 1, 1, 2]
    assert tables.constr_val.tolist() == [1, 0, 2, 3, 9, 0]
    assert tables.sizes.tolist() == [2, 3, 1]
    blooms = tables.constr_bf[:6].tolist()
    assert blooms[0] == blooms[4] != blooms[5]
    assert [bloom.bit_count() for bloom in blooms] == [2, 2, 2, 2, 2, 1]


def test_single_table() -> None:
    table = of_numbers(0, 40, 500)
    program = compile_filters(table, PcmOptions(filter_selection=False))
    assert program.tables.total == 1
    assert len(program.tables.rows) - 1 == len(table.names)
    assert compile_filters(table).tables.total > 100


def test_memory() -> None:
    table = of_numbers(0, 100, 20_000)
    constraints = len(table.values)
    program = compile_filters(table, PcmOptions(16))
    assert 21 * constraints < program.memory_usage() < 34 * constraints
    matching = OcmSearcher(program, table.owners("interface"), 2)
    assert 12 * table.filters <= matching.memory_usage() < 30 * table.filters + 20_000


@pytest.mark.parametrize("bits", [0, 65])
def test_bits(bits: int) -> None:
    with pytest.raises(UsageError, match=f"1 to 64 bits, not {bits}"):
        compile_filters(frozen(), PcmOptions(bits))


# -- counters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("size", [14, 15, 16, 17, 31, 32, 255, 256, 257, 700])
def test_large_filters(options: PcmOptions, size: int) -> None:
    """As many constraints as would overflow half bytes and bytes; and one of them not satisfied."""
    table = frozen(
        [Constraint(f"n{number}", "=", number) for number in range(size)],
        [Constraint("n0", ">", -number) for number in range(1, size + 1)],
        [Constraint("n0", "!=", number) for number in range(size)],
        [Constraint("n0", "exists"), Constraint("n0", "=", 0)],
    )
    events = [{f"n{number}": number for number in range(size)}]
    events += [{**events[0], f"n{size - 1}": -1}, {"n0": 0}, {"n0": -1}, *events]
    assert answers(ocm(options), table, events, "filter") == [
        *([[0, 1, 3], [1, 3], [1, 3], [2]]),
        [0, 1, 3],
    ]


def test_counters_of_earlier_events_mean_nothing() -> None:
    table = frozen([Constraint("a", "=", 1), Constraint("b", "=", 1)])
    matching = OcmSearcher(compile_filters(table), table.owners("filter"), 1)
    events: list[dict[str, Any]] = [
        {"a": 1, "b": 0},
        {"b": 1},
        {"a": 1, "b": 1},
        {"a": 1},
        {"b": 1},
    ]
    for _ in range(3):
        matches = matching.match(encode(events, table.names))
        assert [len(matches.numbers(event)) for event in range(5)] == [0, 0, 1, 0, 0]


def test_errors_match_nothing() -> None:
    table = frozen([], [Constraint("a", "exists")])
    batch = encode([{}, {"a": [1]}, {"a": 1}], table.names)
    assert isinstance(batch.errors[1], MalformedEvent)
    for options in OPTIONS:
        for by in ("filter", "interface"):
            matching = ocm(options).searcher(compile_filters(table, options), table.owners(by), 2)
            matches = matching.match(batch)
            assert [bool(len(matches.numbers(event))) for event in range(3)] == [True, False, True]


def test_owners_that_are_interfaces_are_reported_once() -> None:
    builder = TableBuilder()
    for number in range(300):
        builder.add([[Constraint(f"n{number % 5}", "=", 1)], []], number % 3)
    table = builder.freeze()
    batch = encode([{f"n{number}": 1 for number in range(5)}] * 4, table.names)
    for options in OPTIONS:
        for threads in (1, 3):
            program = compile_filters(table, options)
            matches = OcmSearcher(program, table.owners("interface"), threads).match(batch)
            assert sorted(matches.set_ids.tolist()) == sorted([0, 1, 2] * 4)


# -- threads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [2, 3, 8])
@pytest.mark.parametrize("parallel", ["tables", "events"])
def test_thousands_of_small_events(parallel: Any, threads: int) -> None:
    """More threads than cores meet behind each of them."""
    table = of_numbers(3, 8, 60)
    events = events_of(4, 8, 3_000, 4)
    program = compile_filters(table, PcmOptions(parallel=parallel))
    owners = table.owners("interface")
    batch = encode(events, table.names)
    one = OcmSearcher(program, owners, 1).match(batch)
    expected = [one.numbers(event).tolist() for event in range(batch.events)]
    matching = OcmSearcher(program, owners, threads)
    for _ in range(3):
        matches = matching.match(batch)
        assert [matches.numbers(event).tolist() for event in range(batch.events)] == expected


@pytest.mark.parametrize("parallel", ["tables", "events"])
def test_room_is_made(parallel: Any) -> None:
    """Each event matches all filters: many times what there is room for at first."""
    table = frozen(*([Constraint(f"n{number % 9}", "exists")] for number in range(100)))
    batch = encode([{f"n{number}": 0 for number in range(9)}] * 200, table.names)
    for threads in (1, 2, 5):
        program = compile_filters(table, PcmOptions(parallel=parallel))
        matching = OcmSearcher(program, table.owners("filter"), threads)
        for _ in range(2):
            matches = matching.match(batch)
            assert matches.document_starts.tolist() == list(range(0, 20_001, 100))
            assert np.array_equal(matches.numbers(199), np.arange(100))


def test_a_thread_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others do not wait for it, and the next batch is answered."""
    table = of_numbers(3, 8, 60)
    batch = encode(events_of(4, 8, 50, 4), table.names)
    program = compile_filters(table, PcmOptions(parallel="tables"))
    matching = OcmSearcher(program, table.owners("interface"), 4)
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def start_some(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start_some)
        with pytest.raises(RuntimeError, match="can't start"):
            matching.match(batch)
    assert not any(thread.is_alive() for thread in started)
    expected = answers(reference.ENGINE, table, events_of(4, 8, 50, 4), "interface")
    assert len(matching.match(encode([{}] * 3, table.names)).set_ids) == 0  # nothing is left
    matches = matching.match(batch)
    assert [matches.numbers(event).tolist() for event in range(batch.events)] == expected


@pytest.mark.parametrize("parallel", ["tables", "events"])
def test_a_thread_that_fails(monkeypatch: pytest.MonkeyPatch, parallel: Any) -> None:
    """Its error is raised, and the others do not wait for it."""
    from tamis_papers.pcm import execute  # noqa: PLC0415

    table = of_numbers(3, 8, 60)
    batch = encode(events_of(4, 8, 50, 4), table.names)
    compiled = execute.match_events

    def fails_in_another(state: Any) -> int:
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError
        return int(compiled(state))

    program = compile_filters(table, PcmOptions(parallel=parallel))
    at_work = OcmSearcher(program, table.owners("interface"), 3)
    with monkeypatch.context() as patch:
        patch.setattr(execute, "match_events", fails_in_another)
        with pytest.raises(MemoryError):
            at_work.match(batch)
    assert len(at_work.match(encode([{}] * 3, table.names)).set_ids) == 0  # nothing is left
    assert len(at_work.match(batch).set_ids) > 0


@pytest.mark.parametrize("threads", [0, -1])
def test_no_threads(threads: int) -> None:
    table = frozen()
    with pytest.raises(UsageError, match="at least one thread"):
        OcmSearcher(compile_filters(table), table.owners("filter"), threads)
