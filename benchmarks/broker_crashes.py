"""The broker while it crashes: nothing that was answered is lost, and nothing is wrong.

    python -m benchmarks.broker_crashes [POINT...] [--record FILE]

The record is written after each part, and parts that it has are not done again: so a run can be
stopped at any time. The checks are those of ``tests/broker``, with more seeds.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from benchmarks import recording
from tamis.broker.store import sqlite
from tests.broker import crashes, test_faults, test_power
from tests.broker.simulation import Schedule
from tests.support.postgres import PostgresServer, postgres_server

STEPS = 250
KILLS = 25
"""Kills of a store, before a last process comes to its end."""


class Point(NamedTuple):
    """What is checked.

    Attributes:
        check: with a seed; returns what happened.
        seeds: how many.
        part: seeds between two writes of the record.
    """

    check: Callable[[int], Counter[str]]
    seeds: int
    part: int


def simulated(seed: int) -> Counter[str]:
    """The core with a model of the store, under a schedule of crashes and much else."""
    schedule = Schedule(seed)
    schedule.run(STEPS)
    stored = schedule.store.subscriptions.values()
    return Counter(
        messages=sum(map(len, schedule.store.messages.values())),
        answered=len(schedule.promised),
        deliveries=sum(map(len, schedule.delivered.values())),
        replays=sum(map(len, schedule.again.values())),
        gaps=sum(len(each.gaps) for each in stored),
        crashes=schedule.epoch - 1,
    )


def killed(seed: int) -> Counter[str]:
    """A service with its real index under load, killed (SIGKILL) at random moments."""
    return _killed(seed)


def postgres_killed(seed: int) -> Counter[str]:
    """The same with a store in PostgreSQL, whose server is killed too."""
    with postgres_server() as server:
        return _killed(seed, server)


def _killed(seed: int, server: PostgresServer | None = None) -> Counter[str]:
    url, servers = None if server is None else server.url, 0
    draw, ledger = Random(seed), crashes.Ledger()
    with tempfile.TemporaryDirectory(prefix="tamis-crashes-") as folder:
        for number in range(KILLS + 1):
            arguments = Path(folder), ledger.live, draw.getrandbits(40), number == KILLS, url
            process, output = _forked(arguments)
            data = os.read(output, 1 << 16)
            if number < KILLS:
                until = time.monotonic() + draw.random() * 0.4
                while time.monotonic() < until:
                    ledger.read(data)
                    data = os.read(output, 1 << 16)
                if server is not None and draw.random() < 0.3:
                    servers += 1
                    server.stop()
                    server.start()
                    until = time.monotonic() + 1.0 + draw.random()
                    while time.monotonic() < until:
                        ledger.read(data)
                        data = os.read(output, 1 << 16)
                os.kill(process, signal.SIGKILL)
            while data:
                ledger.read(data)
                data = os.read(output, 1 << 16)
            os.close(output)
            os.waitpid(process, 0)
            ledger.killed()
        ledger.finish()
    return Counter(
        answered=len(ledger.answered),
        subscriptions=len(ledger.live),
        owed=sum(map(len, ledger.owed.values())),
        deliveries=ledger.deliveries,
        replays=ledger.replays,
        kills=KILLS,
        kills_of_the_server=servers,
    )


def _forked(arguments: tuple[Path, dict[str, int], int, bool, str | None]) -> tuple[int, int]:
    """A process that runs the service, and what it writes."""
    output, written = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            crashes.main(*arguments, written)
        finally:
            os._exit(0)
    os.close(written)
    return process, output


def power_cut(seed: int) -> Counter[str]:
    """The core with the store on a disk that loses what was not synced, at random moments."""
    with tempfile.TemporaryDirectory(prefix="tamis-crashes-") as folder:
        sqlite._LOG_BYTES = test_power.CHECKPOINT
        store = test_power.run(seed, Path(folder))
    return Counter(messages=sum(map(len, store.messages.values())), cuts=store.cuts)


def failed(seed: int) -> Counter[str]:
    """The store on a disk that is full, fails to sync, and loses pages; at last a power cut."""
    with tempfile.TemporaryDirectory(prefix="tamis-crashes-") as folder:
        sqlite._LOG_BYTES = test_faults.LOG
        with pytest.MonkeyPatch.context() as patch:
            publisher = test_faults.Publisher(seed, Path(folder), patch)
            publisher.run(150)
    return Counter(answered=len(publisher.answered), failures=publisher.failures)


POINTS = {
    "kills": Point(killed, 40, 2),
    "postgres-kills": Point(postgres_killed, 8, 2),
    "simulated": Point(simulated, 100_000, 2_000),
    "power-cuts": Point(power_cut, 500, 50),
    "faults": Point(failed, 500, 50),
}


def _checked(name: str, seed: int) -> tuple[Counter[str], dict[str, Any] | None]:
    """What happened with a seed; and what must not."""
    try:
        return POINTS[name].check(seed), None
    except Exception as error:
        return Counter(), {"seed": seed, "error": f"{type(error).__name__}: {error}"}


def run(name: str, known: dict[str, Any], keep: Callable[[dict[str, Any]], None]) -> None:
    """Check all seeds that are not known, on all cores; those with a violation again, first."""
    point = POINTS[name]
    found = {"about": (point.check.__doc__ or "").strip(), "seeds": 0, "violations": [], **known}
    counts = Counter(found.pop("counts", {}))
    again, found["violations"] = [each["seed"] for each in found["violations"]], []
    with get_context("spawn").Pool() as pool:
        while again or found["seeds"] < point.seeds:
            start = time.perf_counter()
            end = min(point.seeds, found["seeds"] + point.part)
            seeds = again or range(found["seeds"], end)
            one = partial(_checked, name)
            for happened, violation in pool.imap(one, seeds, len(seeds) // 50 + 1):
                counts += happened
                found["violations"] += [violation] if violation else []
            found["seeds"], again = found["seeds"] if again else end, []
            took = found.get("seconds", 0) + time.perf_counter() - start
            found["seconds"] = round(took, 1)
            keep(found | {"counts": dict(counts)})
            print(f"{name}: {found['seeds']:,} of {point.seeds:,}, {dict(counts)}, "
                  f"{len(found['violations'])} violations", flush=True)  # fmt: skip


def main() -> None:
    """Check all points, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.broker_crashes")
    parser.add_argument("points", nargs="*", metavar="POINT", help=", ".join(POINTS))
    parser.add_argument("--record", type=Path, help="what is known, and is added to")
    given = parser.parse_args()
    table: dict[str, Any] = {"experiment": "broker-crashes", "points": {}}
    if given.record is not None and given.record.exists():
        table = json.loads(given.record.read_text(encoding="utf-8"))
    table["about"] = (__doc__ or "").splitlines()[0]

    def keep(name: str, found: dict[str, Any]) -> None:
        table["points"][name] = found | {"commit": recording.commit()}
        if given.record is not None:
            machine = recording.machine(os.getloadavg()[0])
            table.update(versions=recording.versions(), machine=machine)
            recording.write(given.record, table)

    for name in given.points or POINTS:
        if name not in POINTS:
            raise SystemExit(f"no point {name}; there are {', '.join(POINTS)}")
        run(name, table["points"].get(name, {}), partial(keep, name))
    if any(found["violations"] for found in table["points"].values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
