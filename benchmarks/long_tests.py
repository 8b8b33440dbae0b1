"""The tests that take minutes, which ``make test`` leaves out; and what they came to.

    python -m benchmarks.long_tests [PYTEST-OPTION...] [--record FILE]

The record has the hash of the kernels' sources: a test says so when they are others.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks import recording
from benchmarks.running import ROOT
from tamis.core.kernel.library import FOLDER, LIST

RECORD = ROOT / "benchmarks/records/long-tests.json"


def kernels_digest() -> str:
    """A hash of the sources that the native library was made of."""
    made = json.loads((FOLDER / LIST).read_text(encoding="utf-8"))
    return str(made["digest"])


class Outcomes:
    """A plugin that notes what each test came to, and how long it took."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one of the three phases of a test."""
        found = self.tests.setdefault(report.nodeid, {"outcome": "passed", "seconds": 0.0})
        found["seconds"] = round(found["seconds"] + report.duration, 1)
        if report.outcome != "passed":
            found["outcome"] = report.outcome


def main() -> int:
    """Run them; keep a record where all passed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.long_tests")
    parser.add_argument("--record", type=Path, help=f"as {RECORD.relative_to(ROOT)}")
    given, options = parser.parse_known_args()
    load, outcomes = os.getloadavg()[0], Outcomes()
    options = options or ["-n", str(os.cpu_count()), "--dist", "worksteal", "tests"]
    status = pytest.main(["-q", "-m", "long", *options], plugins=[outcomes])
    if status == 0 and given.record is not None:
        now = datetime.datetime.now(datetime.UTC)
        table = {
            "experiment": "long-tests",
            "about": (__doc__ or "").splitlines()[0],
            "date": now.strftime("%Y-%m-%d %H:%M UTC"),
            "commit": recording.commit(),
            "machine": recording.machine(load),
            "versions": recording.versions(),
            "kernels": kernels_digest(),
            "tests": dict(sorted(outcomes.tests.items())),
        }
        recording.write(given.record, table)
    return int(status)


if __name__ == "__main__":
    raise SystemExit(main())
