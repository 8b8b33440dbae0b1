"""The FPGA paper's Figures 5 to 7, on a Lattice ECP5: circuits generated, routed, and simulated.

    python -m benchmarks.circuits --record benchmarks/records/circuits.json [POINT ...]

A point is a system with a number of queries, such as ``shared-1024``, or with a number of queries
in a cluster, such as ``WONT-2048-64``. Each takes a minute to half an hour. The record is written
after each stage of a point, and what is in it is not done again, so the run can be stopped at any
time. ``--seeds`` asks for more runs of place and route; ``--documents`` for simulation besides.

Queries and documents are those of the paper's §4: 32 tags of two bytes, a DTD that is recursive
nearly everywhere, at most 6 steps, P(``*``) = P(``//``) = 0.1, documents at most 16 deep.

``names-512-16`` is a circuit of 128 queries with an alphabet of 512 names of 16 bytes.
``comparators`` is what the paper's shared decoder of tags saves: the area of a comparator of the
same bytes in each step instead.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from string import ascii_lowercase
from typing import Any, NamedTuple

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal

import tamis
from benchmarks import recording
from tamis.hardware import report, tools
from tamis.hardware.circuit import SYSTEMS
from tamis.hardware.generate import Generated
from tamis.hardware.lexer import Lexer
from tamis.hardware.parser import ByteParser
from tamis.hardware.simulate import Simulator
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_workload import DocumentOptions, Documents, QueryOptions, Values, queries_from_dtd
from tamis_workload.draws import pseudo_word

TAGS = [first + second for first in "abcdefgh" for second in "wxyz"]
CHILDREN = 6
"""Names of elements that an element may hold."""
DEPTH, STEPS, WILDCARD, DESCENDANT = 16, 6, 0.1, 0.1
COUNTS = (128, 256, 512, 1_024, 2_048, 4_096, 8_192)
SWEEP, CLUSTERS = 2_048, (32, 64, 256, 512, 2_048)
"""Figure 5: so many queries, and sizes of clusters besides that of each system."""
SIZES = ((1_000, 2_000), (4_000, 500), (25_000, 80), (5_000_000, 1))
"""Bytes of a document, and how many follow each other."""
LONG = (50_000_000, 1)
"""Besides, for the systems ``LONG_FOR`` with 1,024 queries."""
LONG_FOR = ("shared", "wide")
WORDS = [pseudo_word(number) for number in range(1_000)]
NAMES = ((32, 4), (128, 8), (512, 16), (2_048, 24))
"""How many names an alphabet has, and how long they are."""
NAMED_QUERIES = 128
ENGINES = ("nfa", "automaton", "stacks")
SIMULATED = (1_024, 8_192)
SEED = 1


Stages = Callable[[dict[str, Any], Path, int], Iterator[None]]
"""Do what is not yet known of a point, with its folder and a number of seeds; a step a stage."""


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
def graph(tags: int = 0, length: int = 0) -> SchemaGraph:
    """The DTD's: of the paper's 32 tags, or of so many made ones of a length."""
    draws = random.Random(SEED)
    names = ["".join(draws.choices(ascii_lowercase, k=length)) for _ in range(tags)] or TAGS
    declared = (
        f"<!ELEMENT {name} (#PCDATA|{'|'.join(draws.sample(names, CHILDREN))})*>" for name in names
    )
    return SchemaGraph.of(parse_dtd("\n".join(declared)), names[:1])


@cache
def subscriptions(count: int, schema: SchemaGraph | None = None) -> Mapping[str, str]:
    """Distinct queries."""
    options = QueryOptions(depth=(1, STEPS), wildcard=WILDCARD, descendant=DESCENDANT)
    drawn = queries_from_dtd(schema or graph(), count, options=options, distinct=True, seed=SEED)
    return {f"q{number}": text for number, text in enumerate(drawn)}


def stream(size: int, count: int, kind: str = "tags") -> list[bytes]:
    """Documents of about ``size`` bytes; ``mixed``: with texts of up to 14 words."""
    draws = random.Random(SEED)
    texts = (" ".join(draws.choices(WORDS, k=draws.randint(1, 14))) for _ in range(1_000))
    values = Values.of(tuple(texts)) if kind == "mixed" else Values()
    options = DocumentOptions(values=values)
    made = Documents(graph(), options=options, depth=DEPTH, size=size, fill=True, seed=SEED)
    return [made.document(number) for number in range(count)]


def densest(size: int) -> bytes:
    """A document that is all empty-element tags: two events in five bytes."""
    root, child = TAGS[:2]
    return f"<{root}>{f'<{child}/>' * (size // 5)}</{root}>".encode()


def synthesis(made: Generated, folder: Path) -> dict[str, Any]:
    """What Yosys makes of a circuit, and how long it took."""
    started = time.perf_counter()
    made.write(folder)
    return {"generation_seconds": round(time.perf_counter() - started, 1)} | report.estimate(
        made, folder
    )


def simulation(made: Generated, folder: Path, long: bool) -> list[dict[str, Any]]:
    """Bytes of a cycle, with the read-out of all match bits; answers equal those of ``stacks``."""
    simulator = Simulator(made, folder)
    twin = tamis.compile(dict(subscriptions(made.tables.bit_count)), engine="stacks")
    streams = [(kind, stream(*one, kind)) for kind in ("tags", "mixed") for one in SIZES]
    streams += [("densest", [densest(SIZES[-1][0])])]
    streams += [(kind, stream(*LONG, kind)) for kind in ("tags", "mixed") if long]
    result = []
    for kind, documents in streams:
        started = time.perf_counter()
        answers = list(simulator.run(documents))
        for number, answer in enumerate(answers):
            found = sorted(id for place in answer.positions for id in made.ids[place])
            if answer.status or found != sorted(twin.match(documents[number])):
                raise SystemExit(f"{made.circuit.options}: another answer to document {number}")
        total = sum(map(len, documents))
        events = sum(2 * one.count(b"<") - 2 * one.count(b"</") for one in documents)
        result.append(
            {
                "kind": kind,
                "bytes": total,
                "documents": len(documents),
                "bytes_per_event": round(total / events, 1),
                "cycles": answers[-1].cycle,
                "bytes_per_cycle": round(total / answers[-1].cycle, 3),
                "seconds": round(time.perf_counter() - started, 1),
            }
        )
    return result


class Comparator(Elaboratable):  # type: ignore[misc]
    """Sees ``<name>`` in a stream of bytes: what a step needs if there is no decoder of tags."""

    def __init__(self, name: str) -> None:
        self.byte, self.valid, self.seen = Signal(8), Signal(), Signal()
        self._text = f"<{name}>".encode()

    def elaborate(self, _: object) -> Module:
        m = Module()
        before: Any = 1
        for value in self._text:
            after = Signal()
            with m.If(self.valid):
                m.d.sync += after.eq(before & (self.byte == value))
            before = after
        m.d.comb += self.seen.eq(before)
        return m


def comparators(known: dict[str, Any], folder: Path, _: int) -> Iterator[None]:
    """LUTs of a decoder of all tags, and of a comparator, and how many steps would have one."""
    if known:
        return
    known["steps"] = {count: _named_steps(count) for count in COUNTS}
    decoder = ByteParser(Lexer(TAGS, [], {}))
    outputs = [decoder.byte, decoder.valid, decoder.end, decoder.events.tags]
    made = {
        "decoder": (decoder, outputs),
        "comparator": (one := Comparator(TAGS[0]), [one.byte, one.valid, one.seen]),
    }
    for name, (circuit, ports) in made.items():
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        top = Module()
        top.domains.sync = domain = ClockDomain(reset_less=True)
        top.submodules.inner = circuit
        text = rtlil.convert(top, name="tamis", ports=[domain.clk, *ports], emit_src=False)
        (target / "tamis.il").write_text(text)
        tools.synthesize(target)
        known[name] = tools.count_cells(target)["lut"]
    yield


def _named_steps(count: int) -> int:
    texts = subscriptions(count).values()
    return sum(step not in ("", "*") for text in texts for step in text.split("/"))


def software(count: int) -> dict[str, float]:
    """Megabytes a second of the engines, on one core, from bytes to sets of matches."""
    result = {}
    for engine, kind in product(ENGINES, ("tags", "mixed")):
        document, other = stream(5_000_000, 2, kind)
        matcher = tamis.compile(dict(subscriptions(count)), engine=engine)
        matcher.match(other)
        started = time.perf_counter()
        matcher.match(document)
        result[f"{engine}, {kind}"] = round(
            len(document) / (time.perf_counter() - started) / 1e6, 1
        )
    return result


def measure(point: Point, known: dict[str, Any], folder: Path, seeds: int) -> Iterator[None]:
    """Do what is not ``known`` of a point; yields after each stage, for the record to be kept."""
    simulates = point.queries in SIMULATED and not point.cluster and "simulation" not in known
    if "synthesis" in known and not _missing(known, seeds) and not simulates:
        return
    options = SYSTEMS[point.system]
    options = options._replace(cluster=point.cluster or options.cluster, depth=DEPTH)
    made = Generated(subscriptions(point.queries), [("", tag) for tag in TAGS], options=options)
    yield from synthesised_and_routed(made, known, folder, seeds)
    if simulates:
        long = point.system in LONG_FOR and point.queries == min(SIMULATED)
        known["simulation"] = simulation(made, folder, long)
        yield


def measure_names(
    system: str, tags: int, length: int, known: dict[str, Any], folder: Path, seeds: int
) -> Iterator[None]:
    """A circuit with an alphabet of so many names."""
    if "synthesis" in known and not _missing(known, seeds):
        return
    schema = graph(tags, length)
    alphabet = [("", name) for name in schema.dtd.elements]
    options = SYSTEMS[system]
    made = Generated(subscriptions(NAMED_QUERIES, schema), alphabet, options=options)
    yield from synthesised_and_routed(made, known, folder, seeds)


def synthesised_and_routed(
    made: Generated, known: dict[str, Any], folder: Path, seeds: int
) -> Iterator[None]:
    """Both, where they are missing."""
    if "synthesis" not in known or not (folder / "netlist.json").exists():
        known["commit"] = recording.commit()
        known["synthesis"] = synthesis(made, folder)
        yield
    for seed in _missing(known, seeds):
        try:
            found = report.of_routed(tools.place_and_route(folder, seed, report.AIM))
        except tools.ToolFailed as error:
            found = {"failed": error.reason}
        known.setdefault("routed", {})[str(seed)] = found
        yield


def _missing(known: dict[str, Any], seeds: int) -> list[int]:
    return [seed for seed in range(1, seeds + 1) if str(seed) not in known.get("routed", {})]


def main() -> None:
    """Measure all points, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.circuits")
    parser.add_argument("points", nargs="*", metavar="POINT", help="by default all")
    parser.add_argument("--record", type=Path, required=True, help="what is known, and is added to")
    parser.add_argument("--folder", type=Path, default=Path("build/circuits"), help="for the tools")
    parser.add_argument("--seeds", type=int, default=1, help="runs of place and route")
    given = parser.parse_args()
    for name, stages in _chosen(given.points):
        known = _read(given.record)["points"].get(name, {})
        for _ in stages(known, given.folder / name, given.seeds):
            _keep(given.record, "points", name, known)
        print(name, json.dumps(known), flush=True)
    for count in COUNTS if not given.points else ():
        if str(count) not in _read(given.record)["software"]:
            _keep(given.record, "software", str(count), software(count))


def _chosen(names: Sequence[str]) -> Iterator[tuple[str, Stages]]:
    """The points of these names, or all; and what measures them."""
    known: dict[str, Stages] = {point.name: partial(measure, point) for point in points()}
    for system, (tags, length) in product(LONG_FOR, NAMES):
        known[f"{system}-names-{tags}-{length}"] = partial(measure_names, system, tags, length)
    known["comparators"] = comparators
    for name in names or known:
        if name not in known:
            raise SystemExit(f"no point {name}; there are {', '.join(known)}")
        yield name, known[name]


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
