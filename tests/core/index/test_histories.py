"""Threads that share a live set: recorded histories are linearizable, and merges go on beside."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tamis.core.errors import BadSubscriptions
from tamis.core.index import live as live_module
from tamis.core.index import store as store_module
from tamis.core.index.live import LiveSet
from tests.core.index.kinds import KINDS, WORDS
from tests.core.index.toy import Words
from tests.support.histories import (
    EXPRESSIONS,
    Calls,
    Kind,
    Operation,
    State,
    drawn_program,
    last_state,
    linearized,
    preempted,
    recorded,
)

OF_ALL_KINDS = pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three subscriptions make a segment, and a thread does all merges."""
    monkeypatch.setattr(live_module, "NEWEST_MAX", 3)
    monkeypatch.setattr(live_module, "_AT_ONCE_MAX", 0)


def fault(kind: Kind, live: Any, seed: int, rounds: int) -> str:
    """Record histories, and return the first that is not linearizable as text, or "".

    Each history begins with the state in which the one before has ended.
    """
    rng, state = random.Random(seed), State()
    with preempted(seed):
        for _ in range(rounds):
            history = recorded(Calls(kind, live), [drawn_program(rng, 6) for _ in range(4)])
            if linearized(history, state) is None:
                in_order = sorted(history, key=lambda each: each.called)
                return "\n".join(map(str, (f"seed {seed}", state, *in_order)))
            state = last_state(history)
    return ""


@OF_ALL_KINDS
def test_histories_are_linearizable(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    merge, merged = LiveSet._merge, []

    def merge_and_tell(live: Any) -> None:
        merged.append(live)
        merge(live)

    monkeypatch.setattr(LiveSet, "_merge", merge_and_tell)
    sets, rounds = (8, 15) if kind is WORDS else (3, 10)
    for seed in range(sets):
        found = fault(kind, kind.make(), seed, rounds)
        assert not found, found
    assert len(merged) > sets


def test_histories_of_a_folder_are_linearizable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(store_module, "_JOURNAL_MAX", 200)
    for seed in range(4):
        with Words.open(tmp_path / str(seed)) as live:
            found = fault(WORDS, live, seed, 15)
            assert not found, found
        with Words.open(tmp_path / str(seed)) as other:
            assert list(other.snapshot().items()) == list(live.snapshot().items())


@OF_ALL_KINDS
def test_readers_see_all_of_a_change_or_nothing(kind: Kind) -> None:
    """Many subscriptions at once, and no pauses."""
    of = [dict.fromkeys(range(10), kind.text(number)) for number in EXPRESSIONS]
    live = kind.make()
    live.update(of[0])
    failures: list[object] = []
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            seen = [len(ids) for ids in kind.answer(live)], len(live.ids)
            if seen[0][:2] not in ([10, 0], [0, 10]) or seen[0][2] not in (0, 5):
                failures.append(seen)
            if seen[1] not in (10, 15):
                failures.append(seen)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for number in range(80):
            live.update(of[number % 2])
            with pytest.raises(BadSubscriptions):
                live.add_many({"new": kind.text(0), 3: kind.text(0)})
        live.add_many({f"new {number}": kind.text(2) for number in range(5)})
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert not failures


# -- the checker can fail --------------------------------------------------------------------------


def done(called: int, returned: int, method: str, *arguments: Any, gave: Any = ()) -> Operation:
    return Operation(method, arguments, called, gave, returned)


NOTHING, X, BOTH = [[], [], []], [["x"], [], []], [["x", "y"], [], []]
X_AND_Y = (("x", 0), ("y", 0))
NOT_LINEARIZABLE = {
    "a stale read": [done(0, 1, "add", "x", 0), done(2, 3, "match", gave=NOTHING)],
    "half of a change": [done(0, 5, "add_many", X_AND_Y), done(1, 2, "match", gave=X)],
    "a lost update": [
        done(0, 5, "add", "x", 0),
        done(1, 4, "add", "y", 0),
        done(6, 7, "match", gave=X),
    ],
    "what was seen is gone": [
        done(0, 9, "update", X_AND_Y),
        done(1, 2, "match", gave=BOTH),
        done(3, 4, "match", gave=NOTHING),
    ],
    "two readers differ in the order of two changes": [
        done(0, 9, "add", "x", 0),
        done(0, 9, "add", "y", 1),
        done(1, 2, "match", gave=X),
        done(3, 4, "match", gave=[["x"], ["y"], []]),
        done(3, 4, "match", gave=[[], ["y"], []]),
    ],
    "a version without its change": [
        done(0, 9, "add", "x", 0),
        done(1, 2, "changes", gave=1),
        done(3, 4, "match", gave=NOTHING),
    ],
    "a snapshot of another version": [
        done(0, 1, "add", "x", 0),
        done(2, 3, "snapshot", gave=(0, X)),
    ],
    "both take an id": [done(0, 5, "add", "x", 0), done(1, 4, "add", "x", 1)],
    "nobody takes an id": [done(0, 5, "add", "x", 0, gave=("x",))],
    "others are refused too": [
        done(0, 1, "add", "x", 0),
        done(2, 3, "add_many", X_AND_Y, gave=("x", "y")),
    ],
    "the order changes": [
        done(0, 1, "update", X_AND_Y),
        done(2, 3, "ids", gave=("x", "y")),
        done(4, 5, "ids", gave=("y", "x")),
    ],
    "a change before its call": [done(0, 1, "contains", "x", gave=True), done(2, 3, "add", "x", 0)],
    "an error": [done(0, 1, "match", gave="ValueError()")],
}
LINEARIZABLE = {
    "a match beside a change": [
        done(0, 9, "add_many", X_AND_Y),
        done(1, 4, "match", gave=NOTHING),
        done(2, 6, "match", gave=BOTH),
        done(3, 7, "match", gave=NOTHING),
    ],
    "one of two takes an id": [
        done(0, 5, "add", "x", 0, gave=("x",)),
        done(1, 4, "add", "x", 1),
        done(2, 3, "match", gave=NOTHING),
    ],
}


@pytest.mark.parametrize("name", NOT_LINEARIZABLE)
def test_what_is_not_linearizable(name: str) -> None:
    assert linearized(NOT_LINEARIZABLE[name]) is None


@pytest.mark.parametrize("name", LINEARIZABLE)
def test_what_is_linearizable(name: str) -> None:
    assert linearized(LINEARIZABLE[name]) is not None


def is_explained(order: Sequence[Operation]) -> bool:
    """Whether operations can take effect in an order."""
    state = State()
    for number, each in enumerate(order):
        if any(later.returned < each.called for later in order[number:]):
            return False
        result, state = getattr(state, each.method)(*each.arguments)
        if result != each.result:
            return False
    return True


def test_it_finds_an_order_where_any_of_all_is_one() -> None:
    """Drawn histories, some of them with the results of others."""
    rng = random.Random(1)
    counted = [0, 0]
    for _ in range(400):
        state, history = State(), []
        for number, (method, arguments) in enumerate(drawn_program(rng, 5)):
            result, state = getattr(state, method)(*arguments)
            called, returned = number - 3 * rng.random(), number + 3 * rng.random()
            history.append(Operation(method, arguments, called, result, returned))
        one, other = rng.sample(range(5), 2)
        if rng.random() < 0.7:
            history[one] = history[one]._replace(result=history[other].result)
        found = linearized(history)
        assert (found is not None) == any(map(is_explained, permutations(history)))
        assert found is None or is_explained(found)
        counted[found is None] += 1
    assert min(counted) > 50


class Stale(Words):
    def _changed(self) -> None:
        self._version += 1


class ByHalves(Words):
    def add_many(self, subscriptions: Any, *, durable: bool = False) -> None:
        for id, word in subscriptions.items():
            self.add(id, word)


class KeepsWhatIsOld(Words):
    """A snapshot is kept though there was a change meanwhile."""

    def snapshot(self) -> Any:
        self._snapshot = super().snapshot()
        return self._snapshot


class LosesChanges(Words):
    """What was removed while segments were merged is there again."""

    def _replace(self, old: Any, new: Any, compiled: Any) -> bool:
        old = [each for each in self._segments if each.compiled in [one.compiled for one in old]]
        return super()._replace(old, new, compiled)


@pytest.mark.parametrize("broken", [Stale, ByHalves, KeepsWhatIsOld, LosesChanges])
def test_faults_are_found(broken: type[Words]) -> None:
    assert any(fault(WORDS, broken(), seed, 20) for seed in range(10))


# -- merges beside ---------------------------------------------------------------------------------


@OF_ALL_KINDS
def test_a_match_waits_for_no_merge(kind: Kind) -> None:
    """Segments are merged beside matches and changes, which are seen before and after it."""
    live = kind.make()
    calls, state = Calls(kind, live), State()
    compile, has_begun, may_end = live._compile, threading.Event(), threading.Event()

    def compile_beside(old: Any, new: Any) -> Any:
        compiled = compile(old, new)
        if threading.current_thread().name == "tamis-merge":
            has_begun.set()
            assert may_end.wait(60)
        return compiled

    def do(method: str, *arguments: Any) -> None:
        nonlocal state
        expected, state = getattr(state, method)(*arguments)
        assert getattr(calls, method)(*arguments) == expected

    live._compile = compile_beside
    for first in (0, 3):
        do("add_many", tuple((number, number % 2) for number in range(first, first + 3)))
        do("match")
    assert has_begun.wait(60)
    kept = live.snapshot(), calls.snapshot()
    changes = [("remove", 1), ("update", ((4, 2), (0, 2))), ("add", 1, 2), ("remove", 5)]
    changes += [("add_many", ((6, 0), (7, 0), (8, 0))), ("remove", 6)]
    for change in changes:
        do(*change)
        do("match")
        do("snapshot")
    segments = live.stats().segments
    may_end.set()
    if (merger := live._merger) is not None:
        merger.join()
    assert live.stats().segments < segments
    do("match")
    do("ids")
    do("compiled")
    assert kept[1] == (kept[0].version, kind.answer(kept[0]))


def test_a_set_is_compacted_though_a_merge_ends_meanwhile() -> None:
    live = Words()
    compile, may_end = live._compile, threading.Event()

    def compile_beside(old: Any, new: Any) -> Any:
        if threading.current_thread().name == "tamis-merge":
            assert may_end.wait(60)
        elif len(old) > 1:
            merger = live._merger
            may_end.set()
            merger.join()  # type: ignore[union-attr]
        return compile(old, new)

    live._compile = compile_beside  # type: ignore[method-assign]
    for first in (0, 3):
        live.add_many(dict.fromkeys(range(first, first + 3), "a"))
        live.snapshot()
    live.add("x", "a")
    live.compact()
    stats = live.stats()
    assert (stats.segments, stats.newest, stats.removed) == (1, 0, 0)


def test_one_thread_merges_at_a_time() -> None:
    """More is due when the thread of the last merge has said that it ends, and has not ended."""
    live = Words()
    threads: list[threading.Thread] = []  # one for each merge
    compile, lock = live._compile, live._lock

    def compile_beside(old: Any, new: Any) -> Any:
        if (thread := threading.current_thread()).name == "tamis-merge" and not new:
            threads.append(thread)
            if thread is not threads[0]:
                threads[0].join()
        return compile(old, new)

    def add_three() -> None:
        live.add_many(dict.fromkeys(range(len(live), len(live) + 3), "a"))
        live.snapshot()

    class Watched:
        """The lock of the set, which the thread has released when it goes on to its end."""

        def __enter__(self) -> None:
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            is_merger = threading.current_thread().name == "tamis-merge"
            has_said = is_merger and live._merger is None
            lock.release()
            if has_said and not has_added.is_set():
                has_added.set()
                add_three()
                is_due.set()

    has_added, is_due = threading.Event(), threading.Event()
    live._compile, live._lock = compile_beside, Watched()  # type: ignore[method-assign,assignment]
    add_three()
    add_three()
    assert is_due.wait(60)
    if (merger := live._merger) is not None:
        merger.join()
    assert list(live.ids) == list(range(9))
    assert (len(threads), live.stats().segments) == (2, 1)


def test_who_reads_a_version_matches_by_it() -> None:
    seen: list[tuple[int, int]] = []

    class Watched(Words):
        """Another thread reads the set as soon as there is a new version."""

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "_version" and value > 0:
                reader = threading.Thread(target=self.look)
                reader.start()
                reader.join(0.1)  # it may wait for the change
                readers.append(reader)

        def look(self) -> None:
            seen.append((self.version, self.snapshot().version))

    readers: list[threading.Thread] = []
    live = Watched()
    for number in range(3):
        live.snapshot()
        live.add(number, "a")
    for reader in readers:
        reader.join()
    assert len(seen) == 3
    assert all(matched >= version for version, matched in seen)


def test_entries_are_those_of_the_call() -> None:
    live = Words()
    live.update({"x": "a", "y": "b"})
    entries = live.entries()
    live.remove("x")
    assert [entry.id for entry in entries] == ["x", "y"]
