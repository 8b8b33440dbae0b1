"""Attribute–value events from their bytes to the ids that match, with Tamis's library.

    python -m benchmarks.programs.events_end_to_end EVENTS --form ndjson|arrow [--in-bulk]
        [--engine NAME]

``EVENTS`` is a folder as ``benchmarks/events.py`` makes it, with text. ``compile`` is of
expressions, as (id, expression) pairs in memory. ``match`` is of bytes of NDJSON, or of Arrow's
record batches, in memory too: event by event until all ids that matched are Python's objects, or in
bulk until they are arrays, of the events' numbers and of the subscriptions'.
"""

from __future__ import annotations

from argparse import ArgumentParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.programs.protocol import Digest, Phases, answer, load, read_subscriptions, skip


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("events")
    parser.add_argument("--form", choices=("ndjson", "arrow"), default="ndjson")
    parser.add_argument("--in-bulk", action="store_true")
    parser.add_argument("--engine", default="auto")
    options = parser.parse_args()
    folder, phases = Path(options.events), Phases()
    tamis = load("tamis", phases)
    pairs = read_subscriptions(str(folder / "subscriptions.tsv"))
    names = ("warmup", "events")
    warmup, measured = (_read(folder / f"{name}.{options.form}", phases) for name in names)
    match = _match_in_bulk if options.in_bulk else _match
    with phases("load"):
        match(tamis.compile_events(pairs[:10], engine=options.engine), warmup)
    with phases("compile"):
        matcher = tamis.compile_events(pairs, engine=options.engine)
    with phases("cold"):
        match(matcher, warmup)
    with phases("match"):
        ids, ends = match(matcher, measured)
    if options.in_bulk:
        ids = matcher.ids.take(ids)
    digest = Digest()
    for number, (start, end) in enumerate(pairwise([0, *ends])):
        digest.add(" ".join([str(number), *ids[start:end]]))
    answer(
        phases,
        {"events": len(ends), "matches": len(ids)},
        version=f"tamis {tamis.__version__}",
        digest=str(digest),
    )


def _read(path: Path, phases: Phases) -> Any:
    """The bytes of NDJSON, or a list of record batches."""
    if path.suffix == ".ndjson":
        return path.read_bytes()
    pyarrow = load("pyarrow", phases)
    if not path.exists():
        skip(f"{path.name} could not be made")
    with pyarrow.ipc.open_file(str(path)) as file:
        return [file.get_batch(number) for number in range(file.num_record_batches)]


def _match(matcher: Any, events: Any) -> tuple[list[str], list[int]]:
    """The ids that match, of all events behind each other, and where those of each event end."""
    ids: list[str] = []
    ends = []
    match_source = matcher.match_ndjson if isinstance(events, bytes) else matcher.match_arrow
    for source in [events] if isinstance(events, bytes) else events:
        for match in match_source(source):
            ids.extend(match)
            ends.append(len(ids))
    return ids, ends


def _match_in_bulk(matcher: Any, events: Any) -> tuple[Any, Any]:
    """The same, of numbers in arrays."""
    numbers, ends = [], [np.zeros(1, np.int64)]
    answer_source = matcher.ndjson_answers if isinstance(events, bytes) else matcher.arrow_answers
    for source in [events] if isinstance(events, bytes) else events:
        for answers in answer_source(source):
            starts, found = answers.lists(0)
            numbers.append(found)
            ends.append(starts[1:] + ends[-1][-1])
    return np.concatenate(numbers), np.concatenate(ends)[1:]


if __name__ == "__main__":
    main()
