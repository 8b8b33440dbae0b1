"""What our own programs share: reading what they are given, timing, and printing the answer."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, NoReturn


class Phases:
    """Seconds by phase; a phase that is timed again is added to."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}

    @contextmanager
    def __call__(self, phase: str) -> Iterator[None]:
        start = perf_counter()
        yield
        self.times[phase] = self.times.get(phase, 0.0) + perf_counter() - start


class Digest:
    """The hash of all answers: a line for each document, its number and the ids that matched."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, line: str) -> None:
        self._hash.update(line.encode() + b"\n")

    def __str__(self) -> str:
        return self._hash.hexdigest()


def load(module: str, phases: Phases) -> Any:
    """Import a module, timed; where it is not installed, the program says so and ends."""
    with phases("import"):
        try:
            return importlib.import_module(module)
        except ImportError as error:
            if (error.name or "").split(".")[0] != module.partition(".")[0]:
                raise  # it is there, and broken
    skip(f"{module.partition('.')[0]} is not installed")


def read_folder(folder: str) -> list[bytes]:
    """The documents of a folder, in order."""
    return [path.read_bytes() for path in sorted(Path(folder).glob("*.xml"))]


def read_subscriptions(path: str) -> list[tuple[str, str]]:
    """The (id, expression) pairs of a file, one a line with a tab between."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    pairs = [line.partition("\t") for line in lines]
    return [(id, expression) for id, _, expression in pairs]


def parse_each(
    parse: Callable[[bytes], Any],
    elements: Callable[[Any], int] | None,
    phases: Phases,
    folders: Iterable[str],
) -> dict[str, int]:
    """Parse the documents of two folders, those to measure and those to warm up with.

    Only ``parse`` is timed: not the counting of elements, nor the freeing of trees.

    Returns:
        What was counted.
    """
    documents, warmup = map(read_folder, folders)
    with phases("cold"):
        for data in warmup:
            parse(data)
    counts = {"documents": 0}
    seconds = 0.0
    for data in documents:
        start = perf_counter()
        parsed = parse(data)
        seconds += perf_counter() - start
        counts["documents"] += 1
        if elements is not None:
            counts["elements"] = counts.get("elements", 0) + elements(parsed)
        del parsed
    phases.times["parse"] = seconds
    return counts


def answer(phases: Phases, counts: dict[str, int], **more: str) -> None:
    """Print the answer: the last line of standard output."""
    print(json.dumps({**more, "times": phases.times, "counts": counts}))


def skip(reason: str) -> NoReturn:
    """Say that the program cannot run here, and end."""
    print(json.dumps({"skip": reason}))
    sys.exit(0)
