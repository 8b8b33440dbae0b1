"""The tables of ``docs/benchmarks/circuits.md``, from the record of :mod:`benchmarks.circuits`.

python -m benchmarks.circuit_tables benchmarks/records/circuits.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.circuits import CLUSTERS, COUNTS, NAMES, SWEEP
from tamis.hardware.circuit import SYSTEMS

Known = dict[str, Any]
"""What is known of a point."""
PAPERS = ("NONT", "WONT", "WOWT", "WOWrT")
NONE = "–"


def main() -> None:
    """Print all tables."""
    record = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    points: dict[str, Known] = record["points"]
    for title, cell in (("MHz", clock), ("LUTs", luts), ("registers", registers), ("s", seconds)):
        rows = {
            f"{count:,}": [cell(points.get(f"{system}-{count}", {})) for system in _SYSTEMS]
            for count in COUNTS
        }
        print("\n".join(table(f"queries, {title}", _SYSTEMS, rows)), "\n")
    sweep = {
        f"{cluster:,}": [
            both(points.get(f"{system}-{SWEEP}" + (f"-{cluster}" if cluster != 128 else ""), {}))
            for system in PAPERS[:3]
        ]
        for cluster in sorted((*CLUSTERS, 128))
    }
    print("\n".join(table("queries of a cluster", PAPERS[:3], sweep)), "\n")
    names = {
        f"{tags:,} of {length} bytes": [
            both(points.get(f"{system}-names-{tags}-{length}", {})) for system in ("shared", "wide")
        ]
        for tags, length in NAMES
    }
    print("\n".join(table("names", ("shared", "wide"), names)), "\n")
    print("\n".join(throughput(points)), "\n")
    engines = list(next(iter(record["software"].values()), {}))
    rows = {count: [str(of[one]) for one in engines] for count, of in record["software"].items()}
    print("\n".join(table("queries, MB/s", engines, rows)))


_SYSTEMS = (*PAPERS, *(system for system in SYSTEMS if system not in PAPERS))


def table(first: str, heads: Any, rows: dict[str, list[str]]) -> Iterator[str]:
    """Lines of Markdown."""
    yield f"| {first} | {' | '.join(heads)} |"
    yield "|---" * (len(list(heads)) + 1) + "|"
    for name, cells in rows.items():
        yield f"| {name} | {' | '.join(cells)} |"


def throughput(points: dict[str, Known]) -> Iterator[str]:
    """Megabytes a second of each stream, at the median clock."""
    simulated = {
        name: known for name, known in points.items() if "simulation" in known and _clocks(known)
    }
    streams = {
        (one["kind"], one["bytes"] // one["documents"]): one["bytes_per_event"]
        for known in simulated.values()
        for one in known["simulation"]
    }
    rows = {}
    for (kind, size), per_event in streams.items():
        cells = []
        for known in simulated.values():
            found = [
                one["bytes_per_cycle"]
                for one in known["simulation"]
                if (one["kind"], one["bytes"] // one["documents"]) == (kind, size)
            ]
            cells.append(f"{found[0] * median(_clocks(known)):,.0f}" if found else NONE)
        rows[f"{kind}, {size:,} bytes, {per_event} an event"] = cells
    return table("documents, MB/s", simulated, rows)


def _routed(known: Known) -> list[Known]:
    return [one for one in known.get("routed", {}).values() if "failed" not in one]


def _clocks(known: Known) -> list[float]:
    return sorted(one["megahertz"] for one in _routed(known))


def _of_first(known: Known, show: Callable[[Known], str]) -> str:
    routed = _routed(known)
    if routed:
        return show(routed[0])
    return "does not fit" if known.get("routed") else NONE


def clock(known: Known) -> str:
    """The median of the seeds, and the least and the most."""
    clocks = _clocks(known)
    if len(clocks) > 1:
        return f"{median(clocks):.0f} ({clocks[0]:.0f} to {clocks[-1]:.0f})"
    return _of_first(known, lambda one: f"{one['megahertz']:.0f}")


def luts(known: Known) -> str:
    """With those that LUT-RAM takes, and the share of the device."""
    return _of_first(known, lambda one: f"{one['luts']:,} ({100 * one['luts_share']:.0f} %)")


def registers(known: Known) -> str:
    """Of the routed circuit."""
    return _of_first(known, lambda one: f"{one['registers']:,}")


def seconds(known: Known) -> str:
    """Those of synthesis, and of place and route."""
    synthesis = known.get("synthesis", {}).get("synthesis_seconds", 0)
    return _of_first(known, lambda one: f"{synthesis:.0f} + {one['route_seconds']:.0f}")


def both(known: Known) -> str:
    """LUTs and clock."""
    found = luts(known)
    return f"{found}, {clock(known)} MHz" if _routed(known) else found


if __name__ == "__main__":
    main()
