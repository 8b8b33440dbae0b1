"""Several threads: the same answers in the same order, a bounded look-ahead, and none left."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.core.errors import UsageError
from tamis.core.threads import WorkerPool
from tamis.documents.source import read
from tamis.matching import batches

DOCUMENTS = [f"<a n='{n}'/>" if n % 7 else "<a" for n in range(1000)]
MATCHER = tamis.compile({n: f"/a[@n = {n}]" for n in range(0, 1000, 3)})


def threads_left() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("tamis")]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    assert threads_left() == []


def answers(documents: object, threads: int) -> list[object]:
    found = MATCHER.match_many(documents, threads)
    return [match.error.code if match.error else list(match) for match in found]


@pytest.mark.parametrize("threads", [2, 3, 16])
def test_the_same_answers_in_order(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_DOCUMENTS", 7)
    assert answers(DOCUMENTS, threads) == answers(DOCUMENTS, 1)
    assert answers([], threads) == []
    live = tamis.Matcher()
    live.add("x", "/a")
    assert len(list(live.match_many(DOCUMENTS[1:7], threads))) == 6


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_records_in_order(threads: int) -> None:
    document = "<x>" + "".join(DOCUMENTS[1:7] * 200) + "</y>"
    found = list(MATCHER.match_records(document, "a", threads))
    assert [match.record for match in found] == list(range(1201))
    assert [list(match) for match in found[:6]] == [[], [], [3], [], [], [6]]
    assert found[-1].error is not None


def test_files_are_read_by_the_threads_and_all_else_by_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: dict[object, str] = {}

    def noted(document: object, *options: Any) -> object:
        readers[document] = threading.current_thread().name
        return read(document, *options)

    monkeypatch.setattr(batches, "read", noted)
    path = tmp_path / "a.xml"
    path.write_text("<a n='3'/>")
    assert answers([path, "<a n='6'/>"], 2) == [[3], [6]]
    assert readers[path].startswith("tamis")
    assert readers["<a n='6'/>"] == threading.current_thread().name


@pytest.mark.parametrize("threads", [2, 3])
def test_the_look_ahead_is_bounded(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_DOCUMENTS", 4)
    taken = 0

    def endless() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "<a n='3'/>"

    matches = MATCHER.match_many(endless(), threads)
    for given in range(1, 100):
        assert list(next(matches)) == [3]
        assert taken <= given + 4 * (threads + 1)
    assert threads_left()
    matches.close()
    assert not threads_left()


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("failure", [OSError("the caller's own"), KeyboardInterrupt()])
def test_a_failure_of_the_callers_iterator(
    threads: int, failure: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_DOCUMENTS", 2)

    def failing() -> Iterator[str]:
        yield from DOCUMENTS[1:6]
        raise failure

    matches = MATCHER.match_many(failing(), threads)
    found: list[object] = []
    with pytest.raises(type(failure)):
        found.extend(list(match) for match in matches)
    if isinstance(failure, Exception):
        assert found == [[], [], [3], [], []]


def test_results_that_are_there_are_not_held_back() -> None:
    """An iterator that is slow to give documents does not delay the answers to those it gave."""
    answered: list[int] = []

    def slow() -> Iterator[int]:
        for number in range(10):
            deadline = time.monotonic() + 10
            while len(answered) < number - 1 and time.monotonic() < deadline:
                time.sleep(0.001)
            time.sleep(0.05)
            yield number

    for number in WorkerPool(8).map_in_order(lambda number: number, slow()):
        answered.append(number)
    assert answered == list(range(10))


def test_a_failure_in_a_thread_is_raised_in_its_place() -> None:
    def inverse(number: int) -> float:
        return 1 / number

    found: list[object] = []
    with pytest.raises(ZeroDivisionError):
        found.extend(WorkerPool(2).map_in_order(inverse, [1, 2, 0, 3]))
    assert found == [1, 0.5]


@pytest.mark.parametrize("threads", [0, -1])
@pytest.mark.parametrize(
    "call",
    [
        lambda threads: MATCHER.match_many([], threads),
        lambda threads: MATCHER.match_records("<a/>", "a", threads),
    ],
)
def test_a_number_that_is_none(call: Callable[[int], object], threads: int) -> None:
    with pytest.raises(UsageError, match="at least one thread"):
        call(threads)


def test_open_files_do_not_pile_up(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<a n='3'/>")
    before = len(os.listdir("/proc/self/fd"))
    assert answers([path] * 600, 4) == [[3]] * 600
    assert len(os.listdir("/proc/self/fd")) <= before
