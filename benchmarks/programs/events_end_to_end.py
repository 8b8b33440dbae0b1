"""Attribute–value events from their bytes to the ids that match, with Tamis's library.

    python -m benchmarks.programs.events_end_to_end EVENTS --form ndjson|arrow [--engine NAME]

``EVENTS`` is a folder as ``benchmarks/events.py`` makes it, with text. ``compile`` is of
expressions, as (id, expression) pairs in memory. ``match`` is of bytes of NDJSON, or of Arrow's
record batches, in memory too, until all ids that matched are Python's objects.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from benchmarks.programs.protocol import (
    Digest,
    Phases,
    answer,
    load,
    read_subscriptions,
    skip,
)


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("events")
    parser.add_argument("--form", choices=("ndjson", "arrow"), default="ndjson")
    parser.add_argument("--engine", default="auto")
    options = parser.parse_args()
    folder, phases = Path(options.events), Phases()
    tamis = load("tamis", phases)
    pairs = read_subscriptions(str(folder / "subscriptions.tsv"))
    names = ("warmup", "events")
    warmup, measured = (_read(folder / f"{name}.{options.form}", phases) for name in names)
    with phases("load"):
        _match(tamis.compile_events(pairs[:10], engine=options.engine), warmup)
    with phases("compile"):
        matcher = tamis.compile_events(pairs, engine=options.engine)
    with phases("cold"):
        _match(matcher, warmup)
    with phases("match"):
        found = _match(matcher, measured)
    digest = Digest()
    for number, ids in enumerate(found):
        digest.add(" ".join([str(number), *ids]))
    answer(
        phases,
        {"events": len(found), "matches": sum(map(len, found))},
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


def _match(matcher: Any, events: Any) -> list[list[str]]:
    if isinstance(events, bytes):
        return [list(match) for match in matcher.match_ndjson(events)]
    return [list(match) for batch in events for match in matcher.match_arrow(batch)]


if __name__ == "__main__":
    main()
