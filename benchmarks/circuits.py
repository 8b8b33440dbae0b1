"""The FPGA paper's Figures 5 to 7, on a Lattice ECP5: circuits generated, routed, and simulated.

    python -m benchmarks.circuits --record benchmarks/records/circuits.json [POINT ...]

A point is a system with a number of queries, such as ``shared-1024``, or with a number of queries
in a cluster, such as ``WONT-2048-64``. Each takes a minute to half an hour. The record is written
after each stage of a point, and what is in it is not done again, so the run can be stopped at any
time. ``--seeds`` asks for more runs of place and route; ``--documents`` for simulation besides.

Queries and documents are those of the paper's §4: 32 tags of two bytes, a DTD that is recursive
nearly everywhere, at most 6 steps, P(``*``) = P(``//``) = 0.1, documents at most 16 deep.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import tamis
from benchmarks import recording
from tamis.hardware import report, tools
from tamis.hardware.circuit import SYSTEMS
from tamis.hardware.generate import Generated
from tamis.hardware.simulate import Simulator
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_workload import Documents, QueryOptions, queries_from_dtd

TAGS = [first + second for first in "abcdefgh" for second in "wxyz"]
CHILDREN = 6
"""Names of elements that an element may hold."""
DEPTH, STEPS, WILDCARD, DESCENDANT = 16, 6, 0.1, 0.1
COUNTS = (128, 256, 512, 1_024, 2_048, 4_096, 8_192)
SWEEP, CLUSTERS = 2_048, (32, 64, 256, 512, 2_048)
"""Figure 5: so many queries, and sizes of clusters besides that of each system."""
STREAMS = ((1_000, 2_000), (4_000, 500), (25_000, 80), (5_000_000, 1))
"""Bytes of a document, and how many follow each other."""
ENGINES = ("nfa", "automaton", "stacks")
SEED = 1


class Point(NamedTuple):
    """What is measured; ``cluster`` is 0 where it is that of the system."""

    system: str
    queries: int
    cluster: int = 0

    @property
    def name(self) -> str:
        """As in the record."""
        return "-".join(map(str, self if self.cluster else self[:2]))


def points() -> Iterator[Point]:
    """All of them: Figures 6 and 7, then Figure 5."""
    for count in COUNTS:
        for system in SYSTEMS:
            yield Point(system, count)
    for cluster in CLUSTERS:
        for system in ("NONT", "WONT", "WOWT"):
            yield Point(system, SWEEP, cluster)


@cache
def graph() -> SchemaGraph:
    """The DTD's."""
    draws = random.Random(SEED)
    declared = (
        f"<!ELEMENT {tag} (#PCDATA|{'|'.join(draws.sample(TAGS, CHILDREN))})*>" for tag in TAGS
    )
    return SchemaGraph.of(parse_dtd("\n".join(declared)), TAGS[:1])


@cache
def subscriptions(count: int) -> Mapping[str, str]:
    """Distinct queries."""
    options = QueryOptions(depth=(1, STEPS), wildcard=WILDCARD, descendant=DESCENDANT)
    drawn = queries_from_dtd(graph(), count, options=options, distinct=True, seed=SEED)
    return {f"q{number}": text for number, text in enumerate(drawn)}


@cache
def stream(size: int, count: int) -> list[bytes]:
    """Documents of about ``size`` bytes."""
    made = Documents(graph(), depth=DEPTH, size=size, fill=True, seed=SEED)
    return [made.document(number) for number in range(count)]


def synthesis(made: Generated, folder: Path) -> dict[str, Any]:
    """What Yosys makes of a circuit, and how long it took."""
    started = time.perf_counter()
    made.write(folder)
    return {"generation_seconds": round(time.perf_counter() - started, 1)} | report.estimate(
        made, folder
    )


def simulation(made: Generated, folder: Path) -> list[dict[str, Any]]:
    """Bytes of a cycle, with the read-out of all match bits; answers equal those of ``stacks``."""
    simulator = Simulator(made, folder)
    twin = tamis.compile(dict(subscriptions(made.tables.bit_count)), engine="stacks")
    result = []
    for size, count in STREAMS:
        documents = stream(size, count)
        answers = list(simulator.run(documents))
        for number, answer in enumerate(answers):
            found = sorted(id for place in answer.positions for id in made.ids[place])
            if answer.status or found != sorted(twin.match(documents[number])):
                raise SystemExit(f"{made.circuit.options}: another answer to document {number}")
        total = sum(map(len, documents))
        measured = {"bytes": total, "documents": count, "cycles": answers[-1].cycle}
        result.append(measured | {"bytes_per_cycle": round(total / answers[-1].cycle, 3)})
    return result


def software(count: int) -> dict[str, float]:
    """Megabytes a second of the engines, on one core, from bytes to sets of matches."""
    documents, others = stream(5_000_000, 2)[:1], stream(5_000_000, 2)[1:]
    result = {}
    for engine in ENGINES:
        matcher = tamis.compile(dict(subscriptions(count)), engine=engine)
        for document in others:
            matcher.match(document)
        started = time.perf_counter()
        for document in documents:
            matcher.match(document)
        result[engine] = round(len(documents[0]) / (time.perf_counter() - started) / 1e6, 1)
    return result


def measure(point: Point, known: dict[str, Any], folder: Path, seeds: int) -> Iterator[None]:
    """Do what is not ``known`` of a point; yields after each stage, for the record to be kept."""
    missing = [seed for seed in range(1, seeds + 1) if str(seed) not in known.get("routed", {})]
    simulates = point.queries in (1_024, 8_192) and not point.cluster
    if "synthesis" in known and not missing and ("simulation" in known or not simulates):
        return
    options = SYSTEMS[point.system]
    options = options._replace(cluster=point.cluster or options.cluster, depth=DEPTH)
    made = Generated(subscriptions(point.queries), [("", tag) for tag in TAGS], options=options)
    if "synthesis" not in known or not (folder / "netlist.json").exists():
        known["commit"] = recording.commit()
        known["synthesis"] = synthesis(made, folder)
        yield
    routed = known.setdefault("routed", {})
    for seed in missing:
        try:
            routed[str(seed)] = report.of_routed(tools.place_and_route(folder, seed, report.AIM))
        except tools.ToolFailed as reason:
            routed[str(seed)] = {"failed": str(reason).split("; see")[0]}
        yield
    if simulates and "simulation" not in known:
        known["simulation"] = simulation(made, folder)
        yield


def main() -> None:
    """Measure all points, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.circuits")
    parser.add_argument("points", nargs="*", metavar="POINT", help="by default all")
    parser.add_argument("--record", type=Path, required=True, help="what is known, and is added to")
    parser.add_argument("--folder", type=Path, default=Path("build/circuits"), help="for the tools")
    parser.add_argument("--seeds", type=int, default=1, help="runs of place and route")
    given = parser.parse_args()
    chosen = [one for one in points() if not given.points or one.name in given.points]
    for point in chosen:
        known = _read(given.record)["points"].get(point.name, {})
        for _ in measure(point, known, given.folder / point.name, given.seeds):
            _keep(given.record, "points", point.name, known)
        print(point.name, json.dumps(known), flush=True)
    for count in COUNTS if not given.points else ():
        if str(count) not in _read(given.record)["software"]:
            _keep(given.record, "software", str(count), software(count))


def _read(record: Path) -> dict[str, Any]:
    if record.exists():
        found: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        return found
    about = "Circuits of the FPGA paper's systems and of ours: routed for an LFE5U-85F, simulated"
    return {"experiment": "circuits", "about": about, "points": {}, "software": {}}


def _keep(record: Path, part: str, name: str, found: Any) -> None:
    """Add to a record, which another process may have added to."""
    table = _read(record)
    table[part][name] = found
    table |= {"machine": recording.machine(0), "versions": recording.versions()}
    recording.write(record, table)


if __name__ == "__main__":
    main()
