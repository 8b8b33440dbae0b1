"""Nested events and rules, in the shapes of the benchmarks of event-ruler and quamina.

    python -m benchmarks.programs.event_shapes SHAPE-KIND-RULES --seed N [--by PROGRAM]

Shapes are ``lots``, features of GeoJSON of 400 bytes with the properties that both projects' data
has; and ``calls``, records of an audit trail of 4 KB. All values are drawn, none is of published
data. Rules are event-ruler's patterns, each drawn from one of the events, so that it matches some.

Tamis reads bytes of NDJSON (``ndjson``) or Python's ``dicts``; the rivals are those of
``rivals_shapes.py``. ``match`` ends with Python's ids, or with columns of pairs.
"""

from __future__ import annotations

import json
import random
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.programs.protocol import Digest, Phases, answer, load

Json = dict[str, Any]
KINDS = ("equality", "prefix", "anything-but", "numeric", "wildcard")
PARTS = "BAL COR DEN FUL GER HOL IRV JON KEL LOM MAR NOR ORT PIN RIV SAN TAR VEN WAL YOR".split()
NAMES = ["".join(random.Random(n).choices(PARTS, k=1 + n % 4)) for n in range(1_000)]


class Batch(NamedTuple):
    """The same events as bytes of NDJSON, as a file of these, and as dicts."""

    lines: bytes
    file: str
    events: list[Json]


Found = list[list[int]] | tuple[Any, Any]
"""The rules of each event, in order; or columns of events' numbers and rules'."""
Compiled = tuple[Callable[[Batch], Found], str]
"""How events are matched, and a version."""


def lot(draw: random.Random) -> Json:
    """A lot of a city."""
    block, plot, first = f"{draw.randrange(7_000):04}", f"{draw.randrange(200):03}", draw.random()
    x, y = -122.5 + draw.random() / 8, 37.7 + draw.random() / 8
    corners = [[round(x + draw.random() / 1e3, 7), round(y + first / 1e3, 7)] for _ in range(4)]
    properties = {
        "MAPBLKLOT": block + plot,
        "BLKLOT": block + plot,
        "BLOCK_NUM": block,
        "LOT_NUM": plot,
        "FROM_ST": f"{4_000 * first:.0f}",
        "TO_ST": f"{4_000 * first + 8:.0f}",
        "STREET": draw.choice(NAMES) if first > 0.03 else None,
        "ST_TYPE": draw.choice(("ST", "AVE", "BLVD", "WAY", None)),
        "ODD_EVEN": draw.choice("OE"),
    }
    corner = {"x": corners[0][0], "y": corners[0][1]}
    geometry = {"type": "Polygon", "firstCoordinates": corner, "coordinates": [corners]}
    return {"type": "Feature", "properties": properties, "geometry": geometry}


def call(draw: random.Random) -> Json:
    """A record of an audit trail, most of which is what rules do not ask for."""
    account, person = f"{draw.randrange(500):012}", draw.choice(NAMES).lower()
    items = [
        {
            "id": f"i-{draw.getrandbits(64):016x}",
            "state": {"code": draw.choice((0, 16, 32)), "name": draw.choice(("up", "down"))},
            "tags": [{"key": "team", "value": draw.choice(NAMES)}, {"key": "zone", "value": "b"}],
            "volumes": [draw.randrange(10**9) for _ in range(4)],
        }
        for _ in range(18)
    ]
    detail = {
        "eventName": draw.choice(("Run", "Stop", "Get", "Put", "List")) + draw.choice(NAMES),
        "eventSource": f"service-{draw.randrange(40)}",
        "sourceIPAddress": ".".join(str(draw.randrange(256)) for _ in range(4)),
        "userIdentity": {
            "type": draw.choice(("Role", "User", "Root")),
            "arn": f"arn:iam::{account}:user/{person}",
            "sessionContext": {"attributes": {"mfa": draw.random() > 0.5}, "issuer": person},
        },
        "requestParameters": {"instances": {"items": items}},
        "bytes": draw.randrange(1_000_000),
        "errorCode": draw.choice((None, None, "Denied", "Throttled")),
    }
    return {"id": f"{draw.getrandbits(128):032x}", "account": account, "detail": detail}


class Shape(NamedTuple):
    """How events are drawn, how many; fields for equality, for texts; a number's, and ranges'."""

    draw: Callable[[random.Random], Json]
    events: int
    equal: list[list[str]]
    texts: list[str]
    number: str
    width: float


_LOT = ["properties.MAPBLKLOT"], ["properties.BLOCK_NUM", "geometry.type"], ["properties.STREET"]
_CALL = ["detail.sourceIPAddress"], ["account", "detail.eventSource"], ["detail.eventName"]
_CALL_TEXTS = ["detail.eventName", "detail.sourceIPAddress", "detail.userIdentity.arn"]
SHAPES = {
    "lots": Shape(lot, 5_000, [*_LOT], [*_LOT[2], *_LOT[0]], "geometry.firstCoordinates.x", 0.0005),
    "calls": Shape(call, 1_000, [*_CALL], _CALL_TEXTS, "detail.bytes", 2_000),
}


def at(event: Json, path: str) -> Any:
    """What is at a path: ``at({"a": {"b": 1}}, "a.b")`` is 1."""
    value: Any = event
    for name in path.split("."):
        value = value[name]
    return value


def nested(fields: Json) -> Json:
    """What is at paths as objects in objects.

    >>> nested({"a.b": ["x"], "a.c": ["y"]})
    {'a': {'b': ['x'], 'c': ['y']}}
    """
    found: Json = {}
    for path, value in fields.items():
        *names, last = path.split(".")
        inner = found
        for name in names:
            inner = inner.setdefault(name, {})
        inner[last] = value
    return found


def rule(draw: random.Random, shape: Shape, kind: str, events: list[Json]) -> Json:
    """What a pattern asks of fields, by their paths."""
    kind = draw.choice(KINDS) if kind == "mixed" else kind
    event, text = draw.choice(events), draw.choice(shape.texts)
    equal = {path: [at(event, path)] for path in draw.choice(shape.equal)}
    value = at(event, text)
    if value is None or [None] in equal.values():
        return rule(draw, shape, kind, events)
    if kind == "equality":
        return equal
    if kind == "prefix":
        return {text: [{"prefix": value[: draw.randint(3, 5) if len(value) < 20 else -3]}]}
    if kind == "numeric":
        low = at(event, shape.number) - draw.random() * shape.width
        return {shape.number: [{"numeric": [">=", low, "<", low + shape.width]}]}
    if kind == "wildcard":
        forms = ["*" + value[-5:], f"{value[:2]}*{value[-2:]}", f"*{value[1:5]}*"]
        forms.append(f"{value[0]}*{value[len(value) // 2 :][:3]}*")
        return {text: [{"wildcard": draw.choice(forms) if len(value) > 6 else value + "*"}]}
    but = {shape.texts[0]: [{"anything-but": [value, "OTHER"]}]}
    if draw.random() < 0.01:  # alone, it is true of nearly all
        return but
    return {**{path: [at(event, path)] for path in shape.equal[1]}, **but}


def ours(rules: list[Json], phases: Phases, is_ndjson: bool) -> Compiled:
    """Tamis: patterns as expressions."""
    tamis = load("tamis", phases)
    from tamis.events.convert import from_pattern  # noqa: PLC0415

    with phases("compile"):
        texts = [from_pattern(nested(each)) for each in rules]
        matcher = tamis.compile_events(dict(enumerate(texts)))

    def match(batch: Batch) -> Found:
        if is_ndjson:
            return [list(found) for found in matcher.match_ndjson(batch.lines)]
        return [list(found) for found in matcher.match_many(batch.events)]

    return match, f"tamis {tamis.__version__}"


def main() -> None:
    from benchmarks.programs.rivals_shapes import RIVALS  # noqa: PLC0415

    parser = ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--by", choices=("ndjson", "dicts", *RIVALS), default="ndjson")
    given = parser.parse_args()
    name, kind, count = given.workload.replace("anything-but", "anything_but").split("-")
    shape, draw, phases = SHAPES[name], random.Random(given.seed), Phases()
    events, cold = ([shape.draw(draw) for _ in range(n)] for n in (shape.events, 200))
    rules = [rule(draw, shape, kind.replace("_", "-"), events) for _ in range(int(count))]
    if given.by in RIVALS:
        match, version = RIVALS[given.by](rules, phases)
    else:
        match, version = ours(rules, phases, given.by == "ndjson")
    with tempfile.TemporaryDirectory() as folder:
        for phase, some in (("cold", cold), ("match", events)):
            file, texts = Path(folder, phase), [json.dumps(event) + "\n" for event in some]
            batch = Batch("".join(texts).encode(), str(file), some)
            file.write_bytes(batch.lines)
            with phases(phase):
                found = match(batch)
    digest, by_event = Digest(), _by_event(found, len(events))
    for number, ids in enumerate(by_event):
        digest.add(" ".join(map(str, [number, *ids])))
    each = 1e6 * phases.times["match"] / len(events)
    note = f"{len(batch.lines) / len(events):,.0f} bytes, {each:,.1f} µs an event"
    counts = {"events": len(events), "matches": sum(map(len, by_event))}
    answer(phases, counts, version=version, digest=str(digest), note=note)


def _by_event(found: Found, count: int) -> list[list[int]]:
    if isinstance(found, list):
        return found
    events, rules = map(np.asarray, found)
    order = np.lexsort((rules, events))
    ends = np.searchsorted(events[order], np.arange(1, count))
    return [each.tolist() for each in np.split(rules[order], ends)]


if __name__ == "__main__":
    main()
