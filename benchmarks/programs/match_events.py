"""One of Tamis's engines of attribute–value events.

    python -m benchmarks.programs.match_events EVENTS --engine NAME
        [--by interface] [--threads N] [--batch N | --one-by-one]
        [--name-vector-bits N] [--no-filter-selection] [--parallel tables|events]

``EVENTS`` is a folder as ``benchmarks/events.py`` makes it. ``compile`` makes the program of the
filters' arrays and ``open`` what matches with it; ``cold`` is the events to warm up with, and
``match`` the others: in one call, or in several of some events each. The last options are those of
``ocm``. What the program takes in memory is in the note.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.events import load_batch, load_filters
from benchmarks.programs.protocol import Digest, Phases, answer, skip
from tamis import __version__
from tamis.core.errors import EngineRefused
from tamis.core.index.matches import Matches
from tamis.core.index.matchset import MatchSet
from tamis.events.encode import encode
from tamis.events.model import By, EventBatch, FilterTable
from tamis.events.planner import ENGINES, Engine

PREFIXES: dict[By, str] = {"filter": "s", "subscription": "s", "interface": "i"}
"""What the numbers of owners have before them, from 1 on, in the files of a workload."""


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("events")
    add_engine(parser)
    parser.add_argument("--batch", type=int, metavar="N", help="events of a call; 0: all in one")
    parser.add_argument("--one-by-one", dest="batch", action="store_const", const=1)
    options = parser.parse_args()
    phases = Phases()
    engine, compile = chosen(options)
    table, batch = load_filters(options.events), load_batch(options.events, "events")
    warmup = load_batch(options.events, "warmup")
    owners = table.owners(options.by)
    with phases("load"):
        use(engine, compile, options)
    with phases("compile"):
        program = compile(table)
    with phases("open"):
        matching = engine.searcher(program, owners, options.threads)
    size = options.batch or batch.events
    with phases("cold"):
        for part in parts(warmup, size):
            matching.match(part)
    divided = parts(batch, size)
    with phases("match"):
        found = [matching.match(part) for part in divided]
    counts, digest = counted(found, options.by)
    kilobytes = round(program.memory_usage() / 1e3), round(matching.memory_usage() / 1e3)
    answer(
        phases,
        {**counts, "filters": table.filters},
        version=f"tamis {__version__}",
        engine=engine.name,
        digest=str(digest),
        note="program {:,} KB, working {:,} KB".format(*kilobytes),
    )


def add_engine(parser: ArgumentParser) -> None:
    """The options that choose an engine, and how it works."""
    parser.add_argument("--engine", required=True)
    parser.add_argument("--by", choices=tuple(PREFIXES), default="interface")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--name-vector-bits", type=int)
    parser.add_argument("--no-filter-selection", action="store_true")
    parser.add_argument("--parallel", choices=("tables", "events"))


def chosen(options: Namespace) -> tuple[Engine, Callable[[FilterTable], Any]]:
    """The engine, and what compiles for it; without it the program ends, saying so."""
    try:
        engine: Engine = ENGINES.named(options.engine)
    except EngineRefused:
        skip(f"there is no engine {options.engine} here")
    if options.engine == "ccm" and not import_module("tamis.core.gpu").has_gpu():
        skip("there is no CUDA GPU")
    wanted = {
        "name_vector_bits": options.name_vector_bits,
        "filter_selection": False if options.no_filter_selection else None,
        "parallel": options.parallel,
    }
    given = {name: value for name, value in wanted.items() if value is not None}
    if not given:
        return engine, engine.compile
    made = import_module("tamis_papers.pcm").PcmOptions(**given)
    compile: Any = engine.compile
    return engine, partial(compile, options=made)


def use(engine: Engine, compile: Callable[[FilterTable], Any], options: Namespace) -> None:
    """Match once, so that kernels are loaded."""
    from tamis_workload import EventWorkload  # noqa: PLC0415 - the rest of it is not needed

    small = EventWorkload(interfaces=1, filters=(20, 20), names=9)
    table = small.table()
    owners = table.owners(options.by)
    matching = engine.searcher(compile(table), owners, options.threads)
    matching.match(small.events(20))
    matching.match(encode([{}], table.names))


def parts(batch: EventBatch, size: int) -> list[EventBatch]:
    """The events of a batch, so many at a time; they share its strings."""
    if batch.events <= size:
        return [batch]
    return [
        _part(batch, first, end)
        for first, end in pairwise([*range(0, batch.events, size), batch.events])
    ]


def _part(batch: EventBatch, first: int, end: int) -> EventBatch:
    starts = batch.event_starts[first : end + 1] - batch.event_starts[first]
    starts.flags.writeable = False
    inside = slice(*batch.event_starts[[first, end]])
    return batch._replace(
        event_starts=starts,
        names=batch.names[inside],
        kinds=batch.kinds[inside],
        values=batch.values[inside],
    )


def counted(found: Sequence[MatchSet | Matches[Any]], by: By) -> tuple[dict[str, int], Digest]:
    """How much matched, and the digest of it."""
    digest, prefix = Digest(), PREFIXES[by]
    number = matches = 0
    for part in found:
        for event in range(part.documents):
            numbers = np.asarray(part.numbers(event))
            matches += len(numbers)
            digest.add(" ".join([str(number), *(f"{prefix}{n + 1}" for n in numbers.tolist())]))
            number += 1
    return {"events": number, "matches": matches}, digest


if __name__ == "__main__":
    main()
