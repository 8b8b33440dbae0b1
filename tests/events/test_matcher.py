"""``compile_events``: answers by filter, subscription and interface, from everywhere, in order."""

from __future__ import annotations

import gzip
import io
import json
import math
import pickle
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.errors import (
    EngineRefused,
    EventError,
    EventLimitError,
    MalformedEvent,
    UnreadableEvents,
    UsageError,
)
from tamis.core.index import matches as matches_module
from tamis.core.index.columns import Ids
from tamis.core.index.matches import Listing
from tamis.core.kernel import ahocorasick
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.events import matcher as matcher_module
from tamis.events.encode import encode
from tamis.events.explain import contradictions
from tamis.events.matcher import CompiledEventMatcher, compile_events
from tamis.events.matches import EventMatch
from tamis.events.model import By, FilterTable, TableBuilder
from tamis.events.planner import ENGINES
from tamis.events.subscriptions import EventSubscriptions
from tamis.language.characters import folds
from tamis.language.constraints import Constraint, fold
from tests.support.drawn_events import EVENTS, NAMES, OTHERS, VALUES, answers, tables

FINITE = VALUES.filter(lambda value: not isinstance(value, float) or math.isfinite(value))
"""Values that JSON has."""

BYS: list[By] = ["filter", "subscription", "interface"]


def built() -> FilterTable:
    builder = TableBuilder()
    area = Constraint("area", "=", "a1")
    builder.add([[area, Constraint("temp", ">", 30)], [Constraint("wind", ">", 20)]], 1)
    builder.add([[area]], 0)
    builder.add([[]], 1)
    builder.add([[Constraint("area", "in", ("a1", "a2")), Constraint("on", "=", True)]], 0)
    return builder.freeze()


def of_table(
    table: FilterTable, engine: str = "auto", limits: Limits = DEFAULT_LIMITS
) -> CompiledEventMatcher:
    ids = Ids.of(n if n % 2 else f"s{n}" for n in range(len(table.interfaces)))
    interface_ids = Ids.of(f"i{n}" for n in range(table.interface_count))
    subscriptions = EventSubscriptions.of_columns(ids, interface_ids, table)
    return CompiledEventMatcher(subscriptions, engine, limits)


MATCHER = of_table(built())
EVENT = {"area": "a1", "temp": 35, "wind": 25.5}


def said(matches: Iterator[EventMatch]) -> list[Any]:
    return [match.error.code if match.error else list(match) for match in matches]


def test_by() -> None:
    found = {by: list(MATCHER.match(EVENT, by=by)) for by in BYS}
    expected = {"filter": [0, 1, 2, 3], "subscription": ["s0", 1, "s2"], "interface": ["i0", "i1"]}
    assert found == expected
    assert all(type(number) is int for number in found["filter"])
    assert list(MATCHER.match({})) == ["s2"]


@given(tables(), EVENTS, st.sampled_from(BYS))
def test_drawn(table: FilterTable, events: list[dict[str, Any]], by: By) -> None:
    matcher = of_table(table)
    expected = answers(ENGINES.named("reference"), table, events, by)
    assert [match.indices.tolist() for match in matcher.match_many(events, by=by)] == expected
    batch = matcher.match_batch(encode(events, table.names), by)
    assert [batch.numbers(number).tolist() for number in range(len(events))] == expected


@given(tables(), st.lists(st.tuples(st.dictionaries(st.sampled_from(NAMES), FINITE), OTHERS)))
def test_what_no_filter_names_is_passed_over(
    table: FilterTable, drawn: list[tuple[dict[str, Any], dict[str, Any]]]
) -> None:
    """By dicts, by lines one at a time, and by lines that are read together."""
    matcher = of_table(table)
    expected = [match.indices.tolist() for match in matcher.match_many(event for event, _ in drawn)]
    events = [
        {**others, **event} if number % 2 else {**event, **others}
        for number, (event, others) in enumerate(drawn)
    ]
    assert [match.indices.tolist() for match in matcher.match_many(events)] == expected
    lines = [json.dumps(event).encode() + b"\n" for event in events]
    singly = [next(matcher.match_ndjson(line)) for line in lines]
    assert [match.indices.tolist() for match in singly] == expected
    together = matcher.match_ndjson(b"".join(lines))
    assert [match.indices.tolist() for match in together] == expected


@given(tables(), EVENTS)
def test_explained_as_answered(table: FilterTable, events: list[dict[str, Any]]) -> None:
    matcher = of_table(table)
    for event in events:
        found = matcher.match(event)
        for id in matcher.ids:
            explanation = matcher.explain(event, id)
            assert bool(explanation) == explanation.matched == (id in list(found))
            assert str(explanation).startswith("true: " if explanation else "false: ")
            truths = [line.split(":")[0] for line in explanation.lines[1:] if line[3] != " "]
            assert ("  true" in truths) == explanation.matched


def test_match() -> None:
    match = MATCHER.match(EVENT)
    assert (bool(match), len(match), match.line, match.error) == (True, 3, None, None)
    assert match.indices.tolist() == [0, 1, 2]
    assert match.indices.dtype == np.int32
    assert not match.indices.flags.writeable
    assert repr(match) == "<EventMatch: 3 matches>"
    assert repr(MATCHER) == f"<CompiledEventMatcher: 4 subscriptions, engine {MATCHER.engine}>"
    assert len(MATCHER) == 4
    with pytest.raises(MalformedEvent, match="'temp' is of type list"):
        MATCHER.match({"temp": [1]})


def test_an_event_in_error_raises_it_when_it_is_asked() -> None:
    _, bad, good = MATCHER.match_many([{}, {"wind": b""}, EVENT])
    assert repr(bad) == "<EventMatch: event-malformed>"
    for ask in (bool, len, list, lambda match: match.indices):
        with pytest.raises(MalformedEvent):
            ask(bad)
    assert list(good) == ["s0", 1, "s2"]


def test_what_cannot_be_asked() -> None:
    for call in (
        lambda: MATCHER.match({}, by="filters"),  # type: ignore[arg-type]
        lambda: MATCHER.match_ndjson(b"", by="id"),  # type: ignore[arg-type]
        lambda: MATCHER.match_many(EVENT),  # type: ignore[arg-type]
        lambda: MATCHER.match_many([], threads=0),
        lambda: MATCHER.match_ndjson(b"", threads=0),
        lambda: list(MATCHER.match_ndjson("events.ndjson")),  # type: ignore[arg-type]
        lambda: MATCHER.explain({}, "s9"),
    ):
        with pytest.raises(UsageError):
            call()
    with pytest.raises(EngineRefused, match="there is no engine 'fast'"):
        of_table(built(), "fast")


def test_explain() -> None:
    assert str(MATCHER.explain({"area": "a2", "temp": "hot"}, "s0")).splitlines() == [
        "false: s0",
        '  false: area = "a1" and temp > 30',
        '    area = "a1"  found: "a2"  ← fails here',
        "  false: wind > 20",
        "    wind > 20  found: no such attribute  ← fails here",
    ]
    assert str(MATCHER.explain({"area": "a2", "on": False}, 3)).splitlines() == [
        "false: 3",
        '  false: area in ("a1", "a2") and on = true',
        '    area in ("a1", "a2")  found: "a2"',
        "    on = true             found: false  ← fails here",
    ]
    assert str(MATCHER.explain({}, "s2")).splitlines() == ["true: s2", "  true: every event"]
    with pytest.raises(MalformedEvent):
        MATCHER.explain({"area": {}}, "s0")
    assert MATCHER.explain({"area": "a1", "temp": 31, "tags": ["x"], "n": 2**64}, "s0")


# ---------------------------------------------------------------------- many, in order, threads


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert [t for t in threading.enumerate() if t.name.startswith("tamis")] == []


EVENTS_OF_ALL_KINDS: list[Any] = [
    {"area": f"a{n % 3}", "temp": n % 70, "wind": [] if n % 11 == 0 else n / 7} for n in range(500)
]


@pytest.mark.parametrize("by", BYS)
@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_nothing(threads: int, by: By, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = said(MATCHER.match_many(EVENTS_OF_ALL_KINDS, by=by))
    assert expected.count("event-malformed") == 46
    monkeypatch.setattr(matcher_module, "GROUP_EVENTS", 7)
    assert said(MATCHER.match_many(EVENTS_OF_ALL_KINDS, by=by, threads=threads)) == expected
    assert said(MATCHER.match_many(iter([]), threads=threads)) == []


def test_users_threads_share_a_matcher() -> None:
    expected = said(MATCHER.match_many(EVENTS_OF_ALL_KINDS))
    found: list[Any] = []
    workers = [
        threading.Thread(target=lambda: found.append(said(MATCHER.match_many(EVENTS_OF_ALL_KINDS))))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [expected] * 4
    assert all(len(idle) <= 8 for idle in MATCHER.program._idle.values())


@pytest.mark.parametrize("threads", [1, 3])
def test_look_ahead_is_bounded(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher_module, "GROUP_EVENTS", 5)
    taken = 0

    def endless() -> Iterator[dict[str, Any]]:
        nonlocal taken
        while True:
            taken += 1
            yield {}

    found = MATCHER.match_many(endless(), threads=threads)
    assert [list(next(found)) for _ in range(3)] == [["s2"]] * 3
    assert taken <= 5 * (threads + 2)
    found.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("threads", [1, 3])
def test_what_comes_before_a_failure_is_answered(threads: int) -> None:
    def failing() -> Iterator[dict[str, Any]]:
        yield EVENT
        raise OSError("gone")

    found = MATCHER.match_many(failing(), threads=threads)
    assert list(next(found)) == ["s0", 1, "s2"]
    with pytest.raises(OSError, match="gone"):
        next(found)


def test_pickled() -> None:
    restored = pickle.loads(pickle.dumps(MATCHER))
    assert said(restored.match_many(EVENTS_OF_ALL_KINDS)) == said(
        MATCHER.match_many(EVENTS_OF_ALL_KINDS)
    )
    assert not restored.table.values.flags.writeable
    assert list(restored.ids) == ["s0", 1, "s2", 3]


def test_memory_usage() -> None:
    MATCHER.match({})
    assert set(MATCHER.memory_usage()) == {"program", "work"}


def test_wide_matches_are_listed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = said(MATCHER.match_many(EVENTS_OF_ALL_KINDS, by="filter"))
    monkeypatch.setattr(matches_module, "LISTED_TOGETHER", 0)
    assert said(MATCHER.match_many(EVENTS_OF_ALL_KINDS, by="filter")) == expected


def test_a_list_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """``list()`` asks for the length too."""
    calls = []
    find = Listing.lists
    monkeypatch.setattr(Listing, "lists", lambda *asked: calls.append(asked) or find(*asked))
    (match,) = MATCHER.match_many([{"area": "a1"}])
    assert len(list(match)) == len(match) == len(match.indices) > 0
    assert len(calls) == 1


# ------------------------------------------------------------------------------------- ndjson

LINES = (
    b'\xef\xbb\xbf{"area": "a1", "temp": 35}\r\n\n{"area": 1, "area": 2}\n[1]\n'
    b'{"wind": 1e30}\n{"wind": 99999999999999999999}\n{"on": true, "area": "a2"}\n'
    b'{"x": 99999999999999999999, "wind": 21}\n{"x": [{"wind": 21}], "area": "a1"}'
)
ANSWERS = [
    (1, ["s0", 1, "s2"]),
    (3, "event-malformed"),
    (4, "event-malformed"),
    (5, ["s0", "s2"]),
    (6, "event-malformed"),
    (7, ["s2", 3]),
    (8, ["s0", "s2"]),
    (9, [1, "s2"]),
]


def with_lines(matches: Iterator[EventMatch]) -> list[tuple[int | None, Any]]:
    return [(m.line, m.error.code if m.error else list(m)) for m in matches]


@pytest.mark.parametrize("threads", [1, 3])
def test_ndjson_from_everywhere(threads: int, tmp_path: Path) -> None:
    plain, packed = tmp_path / "events.ndjson", tmp_path / "events.gz"
    plain.write_bytes(LINES)
    packed.write_bytes(gzip.compress(LINES[:40]) + gzip.compress(LINES[40:]))
    with plain.open("rb") as file, plain.open("rb", buffering=0) as raw:
        sources = [LINES, memoryview(LINES), plain, packed, file, raw, io.BytesIO(LINES)]
        for source in sources:
            assert with_lines(MATCHER.match_ndjson(source, threads=threads)) == ANSWERS
    assert with_lines(MATCHER.match_ndjson(b"")) == []


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("by", BYS)
def test_ndjson_in_many_chunks(threads: int, by: By, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.events.ndjson.CHUNK_BYTES", 1_000)
    data = b"".join(json.dumps(event).encode() + b"\n" for event in EVENTS_OF_ALL_KINDS)
    found = with_lines(MATCHER.match_ndjson(data, by=by, threads=threads))
    expected = said(MATCHER.match_many(EVENTS_OF_ALL_KINDS, by=by))
    assert found == list(enumerate(expected, 1))


def test_ndjson_errors_have_their_lines(tmp_path: Path) -> None:
    for match in MATCHER.match_ndjson(LINES):
        if match.error is not None:
            assert match.error.line == match.line
            assert str(match.error).startswith(f"line {match.line}: ")
    ((_, code),) = with_lines(MATCHER.match_ndjson(tmp_path / "none"))
    assert code == UnreadableEvents.code
    cut = gzip.compress(LINES * 3)[:-9]
    assert with_lines(MATCHER.match_ndjson(cut))[-1][1] == UnreadableEvents.code


def test_limits() -> None:
    matcher = of_table(built(), limits=Limits(event_attributes=1, event_bytes=40))
    data = b'{"a": 1}\n{"a": 1, "b": 2}\n{"a": "' + b"x" * 40 + b'"}\n'
    _, wide, long = matcher.match_ndjson(data)
    assert isinstance(wide.error, EventLimitError)
    assert isinstance(long.error, EventLimitError)
    with pytest.raises(EventLimitError, match="event_attributes = 1"):
        matcher.match({"a": 1, "b": 2})


# ------------------------------------------------------------------------------ compile_events


def test_compile_events() -> None:
    matcher = tamis.compile_events({"s": 'area = "a1" and temp > 30', 7: "wind > 20"})
    assert list(matcher.match(EVENT)) == ["s", 7]
    assert list(matcher.match({"wind": 20.5})) == [7]
    assert list(tamis.compile_events([("s", "temp > 30")]).match(EVENT)) == ["s"]
    assert list(compile_events({"s": "temp > 30"}, engine="reference").match(EVENT)) == ["s"]
    with pytest.raises(tamis.BadSubscriptions, match="subscription 's'"):
        tamis.compile_events({"s": "temp >> 30"})


def test_importing_tamis_imports_neither_numba_nor_orjson() -> None:
    code = "import sys, tamis; print({'numba', 'orjson', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_errors_cross_processes() -> None:
    for match in MATCHER.match_ndjson(LINES):
        error = match.error
        if error is not None:
            restored: EventError = pickle.loads(pickle.dumps(error))
            assert (type(restored), str(restored)) == (type(error), str(error))


def test_a_dict_that_has_an_order_of_its_own() -> None:
    event = OrderedDict(a=1, b=2)
    event.move_to_end("a")
    matcher = compile_events({"a1": "a = 1", "b1": "b = 1", "b2": "b = 2"})
    assert list(matcher.match(event)) == ["a1", "b2"]
    assert [list(match) for match in matcher.match_many([event, {"b": 1}])] == [
        ["a1", "b2"],
        ["b1"],
    ]


def test_interfaces_that_are_no_mapping() -> None:
    for interfaces in ([("s", 1)], "st", 5):
        with pytest.raises(UsageError, match="interfaces are a mapping"):
            compile_events({"s": "a = 1"}, interfaces=interfaces)


def test_large_lists_that_exclude_each_other_are_soon_told() -> None:
    lists = (",".join(map(str, numbers)) for numbers in (range(5_000), range(6_000, 9_000)))
    both = " and ".join(f"n in ({numbers})" for numbers in lists)
    either = " or ".join(f"x = {number}" for number in range(300))
    table = EventSubscriptions({"s": f"{both} and ({either})"}).table
    start = time.process_time()
    assert contradictions(table).keys() == {0}
    assert time.process_time() - start < 5  # half a second; minutes, where each is tried with each


_FORKING = """
import os
from tamis.core.threads import WorkerPool
pool = WorkerPool(2)
assert pool.run([lambda: 1, lambda: 2]) == [1, 2]
child = os.fork()
found = pool.run([lambda: 3, lambda: 4])
if child == 0:
    os._exit(0 if found == [3, 4] else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_a_crew_is_had_anew_behind_a_fork() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", _FORKING], check=True, timeout=60)


LETTERS = "aAéÉßẞſKk\u212aσς"
OF_PARTS: dict[str, Callable[[str, str], bool]] = {
    "=": str.__eq__,
    "!=": str.__ne__,
    "prefix": str.startswith,
    "suffix": str.endswith,
    "contains": str.__contains__,
}


@given(
    st.lists(st.tuples(st.sampled_from([*OF_PARTS]), st.text(LETTERS, max_size=3)), min_size=1),
    st.lists(st.text(LETTERS, max_size=5), min_size=1),
    st.sampled_from(["auto", "reference", "sff", "ocm"]),
)
def test_strings_without_case(asked: list[tuple[str, str]], values: list[str], engine: str) -> None:
    """By Python, on folded strings; dicts, lines and columns alike."""
    texts = {n: f'a {operator} i"{part}"' for n, (operator, part) in enumerate(asked)}
    matcher = compile_events({**texts, "own": 'a = "aA"', "number": "a = 1"}, engine=engine)
    expected = [
        [n for n, (operator, part) in enumerate(asked) if OF_PARTS[operator](fold(v), fold(part))]
        + ["own"] * (v == "aA")
        for v in values
    ]
    events = [{"a": value} for value in values]
    assert [list(match) for match in matcher.match_many(events)] == expected
    lines = "".join(f"{json.dumps(event)}\n" for event in events).encode()
    assert [list(match) for match in matcher.match_ndjson(lines)] == expected
    for column in (pa.array(values), pa.array(values).dictionary_encode()):
        found = matcher.match_arrow(pa.table({"a": column}))
        assert [list(match) for match in found] == expected


def test_all_characters_have_the_same_fold_in_lines() -> None:
    cased = [chr(code) for each in folds().items() for code in each]
    together = "".join(
        [*cased, *map(chr, range(0x2D00, 0x2D80)), *map(chr, range(0x1FFF0, 0x20010))]
    )
    texts = [together[start : start + 256] for start in range(0, len(together), 256)]
    texts += ["\N{LATIN CAPITAL LETTER A WITH STROKE}" * 300]  # it becomes a half longer
    matcher = compile_events({n: f"a = i{json.dumps(text)}" for n, text in enumerate(texts)})
    for is_ascii in (True, False):
        lines = "".join(json.dumps({"a": each}, ensure_ascii=is_ascii) + "\n" for each in texts)
        found = [list(match) for match in matcher.match_ndjson(lines.encode())]
        assert found == [[n] for n in range(len(texts))]
    assert list(matcher.match({"a": texts[-1]})) == [len(texts) - 1]


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.text("xyzé", min_size=1, max_size=9)), min_size=1),
    st.lists(st.text("xyzé!", max_size=30), min_size=1, max_size=4),
    st.sampled_from([0, 12, 1 << 18]),
    st.sampled_from([0, 1 << 19]),
)
def test_parts_near_and_far_of_the_root(
    asked: list[tuple[str, str]], values: list[str], near_cells: int, pairs_max: int
) -> None:
    parts = {
        f"{name} {operator} {json.dumps(part)}": (name, operator, part)
        for name, part in asked
        for operator in ("contains", "suffix")
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahocorasick, "NEAR_CELLS", near_cells)
        patch.setattr(ahocorasick, "PAIRS_MAX", pairs_max)
        matcher = compile_events([(text, text) for text in parts])
    for event in ({"a": one, "b": other} for one, other in product(values, repeat=2)):
        assert {*matcher.match(event)} == {
            text
            for text, (name, operator, part) in parts.items()
            if OF_PARTS[operator](event[name], part)
        }
