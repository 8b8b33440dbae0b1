"""How long the way of the data is: the calls of Python's functions, and the modules they are in."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tamis

SUBSCRIPTIONS = {"x": "//a[b]", "y": "/a/b", 1: "//c[@n > 1]"}
DOCUMENT = b"<a n='3'><b/><c n='2'/></a>"
FILTERS = {"x": "a = 1 and b > 2", "y": "a exists"}
ROOT = str(Path(tamis.__file__).parent)


def traced(call: Callable[[], Any]) -> Counter[str]:
    """The calls of functions of Tamis, by module, of the third of some calls: caches are warm."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            calls[frame.f_code.co_filename] += 1

    call(), call()
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(before)
    return calls


MATCHER, EVENTS = tamis.compile(SUBSCRIPTIONS), tamis.compile_events(FILTERS)
LIVE, LIVE_EVENTS = tamis.Matcher(SUBSCRIPTIONS), tamis.EventMatcher(FILTERS)
# Calls and modules, at most.
WAYS = {
    "a document": (lambda: list(MATCHER.match(DOCUMENT)), 46, 15),
    "a document, of a live set": (lambda: list(LIVE.match(DOCUMENT)), 46, 16),
    "an event": (lambda: list(EVENTS.match({"a": 1, "b": 3})), 35, 10),
    "an event, of a live set": (lambda: list(LIVE_EVENTS.match({"a": 1, "b": 3})), 35, 11),
    "a document without matches": (lambda: len(MATCHER.match(b"<z/>")), 41, 14),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_match_takes_few_calls(way: str) -> None:
    call, calls_max, modules_max = WAYS[way]
    calls = traced(call)
    assert calls, "the kernels do everything, or nothing was traced"
    assert calls.total() <= calls_max, calls
    assert len(calls) <= modules_max, calls


def test_an_added_subscription_takes_few_modules() -> None:
    """From its text until it is in the set; what compiles it with others is the next match's."""
    numbers = iter(range(10))
    calls = traced(lambda: LIVE.add(f"new {next(numbers)}", "/a/b[@n = 'x']"))
    assert len(calls) <= 13, calls
