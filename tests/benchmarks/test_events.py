"""Events and their filters, made and measured: engines, a whole system, sweeps and plots."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.events import load_batch, load_filters, make
from benchmarks.figures import with_mean
from tamis.core.errors import EventError
from tamis_workload import EventWorkload

FILTERS = {"interfaces": 2, "filters": [30, 40], "names": 9, "strings": 0.3, "seed": 4}


def test_files(tmp_path: Path) -> None:
    declared = {
        "events": {"number": 12, "warmup": 5, "text": True},
        "filters": FILTERS,
        "repetition": 2,
    }
    made = make(declared, tmp_path)
    workload = EventWorkload(interfaces=2, filters=(30, 40), names=9, strings=0.3, seed=7)
    expected = workload.table()
    assert made == {"events": 12, "filters": expected.filters, "seed": 7}
    folder = tmp_path / "events"
    table, errors = load_filters(str(folder)), dict[int, EventError]()
    for name, column in table._asdict().items():
        np.testing.assert_array_equal(column, getattr(expected, name))
    for name, batch in (("events", workload.events(12)), ("warmup", workload.events(5, first=12))):
        read = load_batch(str(folder), name)
        assert read.errors == errors
        for one, other in zip(read[:6], batch[:6], strict=True):
            np.testing.assert_array_equal(one, other)
            assert not one.flags.writeable
        assert len((folder / f"{name}.ndjson").read_bytes().splitlines()) == read.events
    assert len((folder / "subscriptions.tsv").read_bytes().splitlines()) == table.filters
    assert len((folder / "interfaces.tsv").read_bytes().splitlines()) == table.filters


SWEEP = '''
about = "x"
measure = ["match"]
baseline = "one"
repetitions = 2
[programs]
one.command = """{python} -m benchmarks.programs.match_events
    {events} --engine reference --one-by-one"""
all.command = "{python} -m benchmarks.programs.match_events {events} --engine reference"
none.command = "{python} -m benchmarks.programs.match_events {events} --engine warp"
[sweeps.names]
axis = "names"
events = { number = 30, warmup = 3 }
filters = { interfaces = 3, filters = [40, 50], constraints = [1, 2], strings = 0.5 }
target = [
    { program = "all", ratio = 1000 },
    { program = "all", microseconds_per_event = 1e9 },
]
points = [
    { at = 10, filters = { names = 10 } },
    { at = 100, filters = { names = 100 }, repetitions = 1 },
]
'''


def test_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, record = tmp_path / "sweep.toml", tmp_path / "record.json"
    path.write_text(SWEEP)
    assert main([str(path), "--record", str(record)]) == 0
    text = capsys.readouterr().out
    assert "all at least 1000 × one: MISSED" in text
    assert "all at most 1e+09 µs an event: MET" in text
    assert "µs/event (mean ± 95 %)" in text
    assert "SKIPPED none: there is no engine warp here" in text
    found = json.loads(record.read_text())
    first, second = found["workloads"]["names-10"], found["workloads"]["names-100"]
    assert (first["repetitions"], second["repetitions"]) == (2, 1)
    assert (first["seeds"], first["counts"]["events"]) == ([1, 2], 30)
    assert first["programs"]["all"]["digest"] == first["programs"]["one"]["digest"] != ""
    assert "interval" in first["programs"]["all"]["microseconds_per_event"]
    assert second["point"] == {"sweep": "names", "axis": "names", "at": 100, "rates": False}
    draw(found, tmp_path)


def draw(record: dict[str, object], folder: Path) -> None:
    """The same plot twice, where plots can be drawn: a panel for the sweep."""
    try:
        import matplotlib  # noqa: F401, PLC0415 - an extra
    except ImportError:
        return
    from benchmarks import plots  # noqa: PLC0415

    drawn = []
    for name in ("one.svg", "two.svg"):
        assert plots.draw(record, folder / name)
        drawn.append((folder / name).read_text())
    assert drawn[0] == drawn[1]
    assert ">µs an event<" in drawn[0]
    assert drawn[0].count(">all<") == 1


SYSTEM = """
about = "x"
measure = ["process"]
repetitions = 1
cores = 2
[programs]
drop.command = '''{python} -m benchmarks.programs.event_system {events} --engine reference
    --rate {at}'''
block.command = '''{python} -m benchmarks.programs.event_system {events} --engine reference
    --rate {at} --full block --queue 10'''
[sweeps.rate]
rates = true
axis = "events a second"
events = { number = 600, text = true }
filters = { filters = [10, 10], names = 6 }
points = [{ at = 200 }, { at = 1_000_000 }]
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="it needs two cores")
def test_a_system(tmp_path: Path) -> None:
    """At a low rate nothing is dropped; at a high one the queue is full. Waiting loses nothing."""
    path, record = tmp_path / "system.toml", tmp_path / "record.json"
    path.write_text(SYSTEM)
    assert main([str(path), "--record", str(record)]) == 0
    slow, fast = json.loads(record.read_text())["workloads"].values()
    # All matches are those of the program that waits: the other one counts none.
    assert slow["counts"]["matches"] > 10
    assert slow["programs"]["drop"]["note"].endswith("dropped 0")
    assert slow["programs"]["drop"]["microseconds_per_event"]["mean"] > 1e6 / 250
    assert not fast["programs"]["drop"]["note"].endswith("dropped 0")
    assert fast["programs"]["block"]["note"].endswith("dropped 0")


def test_confidence() -> None:
    """By the definition, and the quantile of nine degrees of freedom."""
    values = [float(value) for value in range(10)]
    found = with_mean(values)
    expected = 2.262 * math.sqrt(sum((value - 4.5) ** 2 for value in values) / 9 / 10)
    assert found["interval"] == pytest.approx(expected, rel=1e-3)
    assert found["mean"] == 4.5
    assert "interval" not in with_mean([1.0])
