"""CCM against the reference: ``python -m tests.papers.pcm.simulated``.

Without a GPU, in Numba's simulator: ``NUMBA_ENABLE_CUDASIM=1``. Cases are small: it starts a thread
of Python's for each of a GPU's.
"""

from __future__ import annotations

from typing import Any

from tamis.core.gpu import has_gpu
from tamis.events.encode import encode
from tamis.events.engines import reference
from tamis.events.model import By, FilterTable, TableBuilder
from tamis.language.constraints import Constraint
from tamis_papers.pcm import PcmOptions, ccm
from tamis_papers.pcm import cuda as at_work
from tests.papers.pcm.test_drawn import events_of, of_numbers
from tests.support.drawn_events import answers
from tests.support.simulator import run_on_one_core

MIXED: list[list[Constraint]] = [
    [],
    [Constraint("a", "=", 1), Constraint("b", "prefix", "x")],
    [Constraint("a", "=", "x")],
    [Constraint("a", "!=", 1)],
    [Constraint("a", ">", 0.5), Constraint("a", "<", 2), Constraint("a", "!=", 1.5)],
    [Constraint("b", "contains", "é"), Constraint("b", "suffix", "z")],
    [Constraint("b", ">=", "x"), Constraint("b", "<=", "xé")],
    [Constraint("c", "=", True)],
    [Constraint("c", "in", (True, False)), Constraint("a", "exists")],
    [Constraint("a", "in", (1, 1.5, 2.0**63))],
    [Constraint("b", "in", ("", "xéz")), Constraint("b", "exists")],
]
MIXED_EVENTS: list[dict[str, Any]] = [
    {},
    {"a": 1, "b": "xéz"},
    {"a": 1.5, "b": ""},
    {"a": float("nan"), "b": "z", "c": True},
    {"a": 2.0**63, "c": False},
    {"a": "x", "b": 1, "c": 1},
    {"a": [], "b": "x"},
    {"a": 1.75, "b": "x"},
]


def mixed() -> FilterTable:
    builder = TableBuilder()
    for number, filter in enumerate(MIXED):
        builder.add([filter], number % 3)
    return builder.freeze()


def large(size: int) -> FilterTable:
    """A filter of so many constraints, and two of one."""
    builder = TableBuilder()
    builder.add([[Constraint("a", "!=", number) for number in range(size)]])
    builder.add([[Constraint("a", "=", 0)], [Constraint("b", "=", 0)]])
    return builder.freeze()


def check(table: FilterTable, events: list[dict[str, Any]], options: PcmOptions, by: By) -> None:
    expected = answers(reference.ENGINE, table, events, by)
    engine = ccm(options)
    matching = engine.searcher(engine.compile(table), table.owners(by), 1)
    batch = encode(events, table.names)
    for _ in range(2):
        matches = matching.match(batch)
        assert [matches.numbers(event).tolist() for event in range(batch.events)] == expected
    assert matching.memory_usage() > 0


def main() -> None:
    assert has_gpu(), "no GPU: set NUMBA_ENABLE_CUDASIM=1"
    run_on_one_core()
    at_once = PcmOptions(3, events_at_once=1)
    for by in ("filter", "subscription", "interface"):
        check(mixed(), MIXED_EVENTS, PcmOptions(), by)
    # One event a launch: more launches of each lane than there are stages.
    check(mixed(), MIXED_EVENTS * 3, at_once, "filter")
    check(mixed(), [], at_once, "filter")
    check(TableBuilder().freeze(), [{"a": 1}], at_once, "filter")
    for size in (14, 15, 16, 17, 40):
        events: list[dict[str, Any]] = [{"a": 50}, {"a": 0, "b": 0}] * 9
        check(large(size), events, at_once, "filter")
        check(large(size), events, PcmOptions(events_at_once=5), "interface")
    check(of_numbers(5, 6, 80), events_of(6, 6, 12, 6), PcmOptions(4, events_at_once=5), "filter")
    single = PcmOptions(filter_selection=False, events_at_once=4)
    check(of_numbers(5, 6, 80), events_of(6, 6, 12, 6), single, "interface")
    at_work._LINES_AT_FIRST = 2
    check(of_numbers(5, 6, 40), events_of(6, 6, 6, 6), PcmOptions(4, events_at_once=5), "filter")
    print("as the reference")


if __name__ == "__main__":
    main()
