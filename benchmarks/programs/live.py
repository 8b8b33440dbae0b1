"""How long changes of a live set take, and what they cost the matches beside them.

    python -m benchmarks.programs.live documents|events [segments]

A million expressions, or 100,000 filters of three constraints. Each phase is a number of single
calls; the note has their percentiles. At the end, answers equal those of the same set, compiled
anew. With ``segments``, the set is made of many, and then of one: what that costs, and what it
costs readers and memory when they are merged.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from time import perf_counter, sleep
from typing import Any

from benchmarks.programs.protocol import Phases, answer

CHANGES, MATCHES, SECONDS = 5_000, 2_000, 10.0
RATES = {1: 5_000, 100: 20_000}
"""Of subscriptions added together: how many are added a second beside matches."""
NAMES = 340
"""Of elements: each may have four of its own inside."""
STREAM = 100
"""So many documents or events are given to ``match_many`` together."""


class Documents:
    """Paths of two to five of 340 names, of which a fifth compare; documents of some 3 KB.

    As in most collections, the name of an element says where it stands, so documents have few
    different paths; and few of the subscriptions ask for what one document has.
    """

    count = 1_000_000

    def __init__(self) -> None:
        random = Random(1)
        self.subscriptions = iter(lambda: _path(random), None)
        self.inputs = [_element(random, 0) for _ in range(200)]

    @staticmethod
    def live(subscriptions: dict[int, str]) -> Any:
        import tamis  # noqa: PLC0415

        return tamis.Matcher(subscriptions)

    @staticmethod
    def anew(subscriptions: dict[int, str]) -> Any:
        import tamis  # noqa: PLC0415

        return tamis.compile(subscriptions)


class Events:
    """Filters of three constraints on a hundred names, and events of 12 attributes."""

    count = 100_000

    def __init__(self) -> None:
        random = Random(1)
        self.subscriptions = iter(lambda: _filter(random), None)
        self.inputs = [
            {f"a{random.randrange(100)}": random.randrange(1_000) for _ in range(12)}
            for _ in range(200)
        ]

    @staticmethod
    def live(subscriptions: dict[int, str]) -> Any:
        import tamis  # noqa: PLC0415

        return tamis.EventMatcher(subscriptions)

    @staticmethod
    def anew(subscriptions: dict[int, str]) -> Any:
        import tamis  # noqa: PLC0415

        return tamis.compile_events(subscriptions)


def _path(random: Random) -> str:
    steps = (f"{random.choice(('/', '/', '//'))}e{random.randrange(NAMES)}" for _ in range(5))
    path = "".join(islice(steps, random.randrange(2, 6)))
    return f"{path}[@v = {random.randrange(100)}]" if random.random() < 0.2 else path


def _element(random: Random, name: int) -> str:
    own = [child for child in range(4 * name + 1, 4 * name + 5) if child < NAMES]
    children = (_element(random, child) for child in own if random.random() < 0.7)
    return f"<e{name} v='{random.randrange(100)}'>{''.join(children)}</e{name}>"


def _filter(random: Random) -> str:
    parts = (
        f"a{random.randrange(100)} {random.choice(('=', '>', '<='))} {random.randrange(1_000)}"
        for _ in range(3)
    )
    return " and ".join(parts)


class Calls:
    """Times single calls, and keeps their percentiles for the note."""

    def __init__(self, phases: Phases) -> None:
        self.phases = phases
        self.notes: list[str] = []

    def __call__(self, phase: str, calls: Iterator[Callable[[], object]]) -> float:
        """Time calls; their mean in seconds."""
        times = []
        with self.phases(phase):
            for call in calls:
                start = perf_counter()
                call()
                times.append(perf_counter() - start)
        self.phases.times[phase] = sum(times)
        times.sort()
        middle, late, last = (times[int(len(times) * share)] for share in (0.5, 0.999, 0.99999))
        self.notes.append(
            f"{phase} {1e6 * middle:,.0f} µs (p99.9 {1e3 * late:.1f} ms, at most {1e3 * last:.1f})"
        )
        return sum(times) / len(times)


def changes(live: Any, made: Iterator[str], calls: Calls) -> None:
    """Adds, updates and removals, one by one."""
    texts = list(islice(made, 3 * CHANGES))
    live.add(-1, texts[0])  # the index of ids is made
    calls("add", (partial(live.add, -2 - n, texts[n]) for n in range(CHANGES)))
    calls("update", (partial(live.update, {n: texts[CHANGES + n]}) for n in range(CHANGES)))
    calls("remove", (partial(live.remove, 2 * CHANGES + n) for n in range(CHANGES)))


def beside(live: Any, made: Iterator[str], inputs: list[Any], calls: Calls) -> None:
    """Streams are matched while another thread adds subscriptions, at each of the rates."""
    alone = stream(live, inputs, calls, "stream-alone", SECONDS / 2)
    for size, rate in RATES.items():
        texts = list(islice(made, int(2 * SECONDS * rate)))
        stopping = threading.Event()
        writer = threading.Thread(target=write, args=(live, texts, size, rate, stopping))
        before = live.version
        writer.start()
        mean = stream(live, inputs, calls, f"stream-beside-{size}", SECONDS)
        stopping.set()
        writer.join()
        added = (live.version - before) * size / SECONDS
        calls.notes.append(
            f"{added:,.0f} added a second by {size}, {alone / mean:.0%} of the speed"
        )


def write(live: Any, texts: list[str], size: int, rate: int, stopping: threading.Event) -> None:
    start, first = perf_counter(), -(10**9) - live.version * 1_000
    for number in range(0, len(texts), size):
        if stopping.is_set():
            return
        part = {first - number - n: text for n, text in enumerate(texts[number : number + size])}
        if size == 1:
            live.add(*part.popitem())
        else:
            live.add_many(part)
        sleep(max(0.0, start + (number + size) / rate - perf_counter()))


def stream(live: Any, inputs: list[Any], calls: Calls, phase: str, seconds: float) -> float:
    """Match streams for some seconds, after one of each: the mean time of one."""
    parts = [inputs[first : first + STREAM] for first in range(0, len(inputs), STREAM)]
    for part in parts:
        _matches(live, part)
    end = perf_counter() + seconds

    def each() -> Iterator[Callable[[], object]]:
        number = 0
        while perf_counter() < end:
            part = parts[number % len(parts)]
            yield partial(_matches, live, part)
            number += 1

    mean = calls(phase, each())
    calls.phases.times[phase] = mean  # the sum is what was asked for
    return mean


def _matches(live: Any, inputs: list[Any]) -> int:
    return sum(map(len, live.match_many(inputs)))


def segments(live: Any, made: Iterator[str], inputs: list[Any], calls: Calls) -> None:
    """Many segments beside one; and the merge of the two largest, beside which others match."""
    alone = len(live)
    before = stream(live, inputs, calls, "stream-of-one", SECONDS / 2)
    size = alone
    while (size := size * 5 // 16) >= 100:  # any larger, and it is merged with the one before
        live.add_many({f"{size} {n}": text for n, text in enumerate(islice(made, size))})
        live.snapshot()
    count = live.stats().segments
    time = stream(live, inputs, calls, "stream-of-many", SECONDS / 2)
    live.compiled()
    after = stream(live, inputs, calls, "stream-merged", SECONDS / 2)
    calls.notes.append(
        f"{count} segments: {after / time:.0%} of the speed; the same in one: "
        f"{before * len(live) / alone / after:.0%}, by the number of subscriptions"
    )
    merge(live, made, inputs, calls)


def merge(live: Any, made: Iterator[str], inputs: list[Any], calls: Calls) -> None:
    """As many subscriptions again, which are merged with the others while these are matched."""
    texts = {f"again {n}": text for n, text in enumerate(islice(made, len(live) * 2 // 3))}
    matches = [partial(_matches, live, [one]) for one in inputs]
    for match in matches:
        match()
    live.add_many(texts)
    del texts
    memory = Memory()
    live.snapshot()  # begins the merge
    end = perf_counter() + 6 * SECONDS

    def each() -> Iterator[Callable[[], object]]:
        number = 0
        while perf_counter() < end:
            yield matches[number % len(matches)]
            number += 1

    calls("match-beside-merge", each())
    assert live.stats().segments == 1, live.stats()
    calls.notes.append(f"memory while {len(live):,} are merged: {memory.most():.2f} times")


class Memory:
    """Watches the memory of the process: the most beside what there was."""

    def __init__(self) -> None:
        self._sizes = [self._size()]
        self._stop = threading.Event()
        self._watching = threading.Thread(target=self._watch)
        self._watching.start()

    @staticmethod
    def _size() -> int:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages)

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            self._sizes.append(self._size())

    def most(self) -> float:
        """How many times as large the process was as at first, at most."""
        self._stop.set()
        self._watching.join()
        return max(self._sizes) / self._sizes[0]


def main() -> None:
    phases = Phases()
    with phases("import"):
        import tamis  # noqa: F401, PLC0415
    workload: Any = {"documents": Documents, "events": Events}[sys.argv[1]]()
    made, inputs, calls = workload.subscriptions, workload.inputs, Calls(phases)
    subscriptions = dict(enumerate(islice(made, workload.count)))
    with phases("build"):
        live = workload.live(subscriptions)
    if sys.argv[2:] == ["segments"]:
        segments(live, made, inputs, calls)
        answer(phases, {"subscriptions": workload.count}, note="; ".join(calls.notes))
        return
    every = (partial(_matches, live, [inputs[n % len(inputs)]]) for n in range(MATCHES))
    calls("match", every)
    changes(live, made, calls)
    texts = list(islice(made, 300))

    def add_and_match(number: int) -> None:
        live.add(-100_000 - number, texts[number])
        live.match(inputs[number % len(inputs)])

    calls("add-and-match", (partial(add_and_match, n) for n in range(300)))
    beside(live, made, inputs, calls)
    anew = workload.anew({id: live.get(id) for id in live})
    for one in inputs:
        assert sorted(map(str, live.match(one))) == sorted(map(str, anew.match(one))), one
    answer(phases, {"subscriptions": workload.count}, note="; ".join(calls.notes))


if __name__ == "__main__":
    main()
