"""The tests that take minutes, which ``make test`` leaves out; and what they came to.

    python -m benchmarks.long_tests [PYTEST-OPTION...] [--record FILE]

A test says what it is of, ``@pytest.mark.long("tamis/hardware")``, or is of all kernels. The record
has the hashes of these sources; ``make test`` fails where they are others now.
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
from tamis.core.kernel.library import FOLDER, LIST, SOURCES, digest_of

RECORD = ROOT / "benchmarks/records/long-tests.json"


def digest(*parts: str) -> str:
    """A hash of the sources in some packages; or of those of all kernels."""
    names: list[str] = json.loads((FOLDER / LIST).read_text(encoding="utf-8"))["sources"]
    if parts:
        found = (path for part in parts for path in (SOURCES / part).rglob("*.py"))
        names = sorted(str(path.relative_to(SOURCES)) for path in found)
    return digest_of(names)


def outdated() -> list[str]:
    """The tests in the record that failed, or whose sources are others now."""
    tests = json.loads(RECORD.read_text(encoding="utf-8"))["tests"]
    return [
        name
        for name, each in tests.items()
        if each["outcome"] != "passed" or each["digest"] != digest(*each["sources"])
    ]


class Outcomes:
    """A plugin that notes what each test came to, and how long it took."""

    def __init__(self) -> None:
        self.tests: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note one of the three phases of a test."""
        told: dict[str, Any] = dict(report.user_properties)
        sources = told["sources"]
        new = {"outcome": "passed", "seconds": 0.0, "sources": sources, "digest": digest(*sources)}
        found = self.tests.setdefault(report.nodeid, new)
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
            "tests": dict(sorted(outcomes.tests.items())),
        }
        recording.write(given.record, table)
    return int(status)


if __name__ == "__main__":
    raise SystemExit(main())
