"""All rivals that match events give the answers of the reference."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.programs.protocol import Digest
from benchmarks.programs.rivals_events import RIVALS, constraints, read
from tamis.events.engines import reference
from tamis.events.model import TableBuilder
from tamis.language.constraints import Constraint
from tests.support.drawn_events import answers

ROOT = Path(__file__).parents[2]
NAMES = [f"n{number}" for number in range(5)]
TEXTS = ["", "a", "ab", "aba", "b", "ba", "é", "\U0001f41d", "and x = 1", "'"]
NUMBERS = [0, 1, -1, 2, 10, 0.5, -1.5, 3.0, 1e300, 5e-324, 2**53, -(2**53)]
VALUES = [*TEXTS, *NUMBERS, True, False, None]
COMPARING = "= != < <= > >=".split()


def drawn_constraint(draw: random.Random) -> str:
    name = draw.choice(NAMES)
    if draw.random() < 0.5:
        return f"{name} {draw.choice(COMPARING)} {json.dumps(draw.choice(NUMBERS))}"
    operator = draw.choice([*COMPARING, "prefix", "suffix", "contains"])
    return f'{name} {operator} "{draw.choice(TEXTS)}"'


def expected(subscriptions: str, events: str) -> tuple[dict[str, int], str]:
    """What the reference counts, and its digest."""
    filters, objects = read(subscriptions, events)
    builder = TableBuilder()
    for _, filter in filters:
        builder.add([filter])
    found = answers(reference.ENGINE, builder.freeze(), [*objects], "subscription")
    digest = Digest()
    for number, matched in enumerate(found):
        digest.add(" ".join([str(number), *(filters[place][0] for place in matched)]))
    counts = {"events": len(found), "matches": sum(map(len, found))}
    return counts, str(digest)


@pytest.mark.parametrize("rival", RIVALS)
def test_answers(rival: str, tmp_path: Path) -> None:
    draw = random.Random(9)
    filters = [
        " and ".join(drawn_constraint(draw) for _ in range(draw.choice([1, 1, 2, 3])))
        for _ in range(150)
    ]
    events: list[dict[str, Any]] = [
        {name: draw.choice(VALUES) for name in draw.sample([*NAMES, "other"], draw.randrange(5))}
        for _ in range(60)
    ]
    subscriptions, lines = tmp_path / "filters.tsv", tmp_path / "events.ndjson"
    subscriptions.write_text("".join(f"s{n}\t{text}\n" for n, text in enumerate(filters)))
    lines.write_text("".join(json.dumps(event) + "\n" for event in events))
    words = ["benchmarks.programs.rivals_events", str(subscriptions), str(lines), "--rival", rival]
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout.splitlines()[-1])
    if "skip" in said:
        pytest.skip(said["skip"])
    counts, digest = expected(str(subscriptions), str(lines))
    assert counts["matches"] > 300
    assert said["counts"] == counts
    assert said["digest"] == digest
    assert said["engine"] == rival
    assert said["version"]
    assert {"compile", "match"} <= set(said["times"])


def test_constraints_are_read() -> None:
    assert constraints('a="x and y" and b_1 contains ""and c>=-2 and d < 1.5e3') == [
        Constraint("a", "=", "x and y"),
        Constraint("b_1", "contains", ""),
        Constraint("c", ">=", -2),
        Constraint("d", "<", 1500.0),
    ]


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "a",
        "a = ",
        "a = 1 or b = 2",
        "a = 1 and",
        "a = 1 b = 2",
        'a = "x',
        "a == 1",
        "a prefixx",
    ],
)
def test_others_are_refused(expression: str) -> None:
    with pytest.raises(SystemExit, match="no constraint"):
        constraints(expression)
