"""Kills a stream on a cluster at random, and counts answers that are lost or there twice.

    python -m benchmarks.spark_kills [--kills 200] [--seed 1] [--record FILE]

Files come all the time, and ``tamis run --stream`` answers them into Parquet, with two workers of
one core. Every other second or so an executor, a process of Python or the driver is killed
(SIGKILL); a driver is started again. In the end the stream answers what is left, and each file must
be there once. 200 kills take half an hour.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any

import pyarrow.parquet as pq

from benchmarks import recording
from tests.spark.servers import Cluster, cluster, environment
from tests.support.running import COMMAND

SUBSCRIPTIONS = "any\t//order\nlow\t//order[total < 50]\nhigh\t//order[total >= 50]\n"
FILES_A_SECOND = 5
PAUSES = (1.5, 6.0)
"""Seconds from one kill to the next."""
DRIVER_PAUSES = (12.0, 25.0)
"""And to the next of the driver, which takes some to start."""
KINDS = {"executor": 6, "python": 6, "driver": 1}
"""What is killed, and how often in relation."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name, cluster(Path(name)) as standalone:
        found = Stream(Path(name), standalone, Random(options.seed)).killed(options.kills)
    found |= {"seed": options.seed, "minutes": round((time.monotonic() - start) / 60, 1)}
    print(found)
    if options.record:
        shown: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "commit": recording.commit()}
        shown |= {"machine": recording.machine(os.getloadavg()[0]), "kills": found}
        recording.write(options.record, shown)


class Stream:
    """A stream in a folder, and what kills it."""

    def __init__(self, folder: Path, standalone: Cluster, random: Random) -> None:
        self.folder = folder
        self.cluster = standalone
        self.random = random
        self.files = 0
        self.driver: subprocess.Popen[bytes] | None = None
        for name in ("in", "tmp"):
            (folder / name).mkdir()
        (folder / "s.tsv").write_text(SUBSCRIPTIONS)

    def killed(self, kills: int) -> dict[str, Any]:
        """Kill so often, and count what came of it."""
        is_over = Event()
        feeder = Thread(target=self._feed, args=(is_over,), daemon=True)
        feeder.start()
        counts: Counter[str] = Counter()
        while sum(counts.values()) < kills:
            kind = self.random.choices(list(KINDS), list(KINDS.values()))[0]
            time.sleep(self.random.uniform(*DRIVER_PAUSES if kind == "driver" else PAUSES))
            counts[kind] += self._kill(kind)
        is_over.set()
        feeder.join()
        self._end_driver()
        command = [*self._command(), "--trigger", "now"]
        ended = subprocess.run(command, env=environment(), check=False)
        assert ended.returncode == 0, ended
        return {**counts, "files": self.files, **self._wrong()}

    def _feed(self, is_over: Event) -> None:
        while not is_over.wait(1 / FILES_A_SECOND):
            beside = self.folder / "tmp" / "new"
            beside.write_text(f"<order n='{self.files}'><total>{self.files % 100}</total></order>")
            beside.rename(self.folder / "in" / f"{self.files}.xml")
            self.files += 1

    def _command(self) -> list[str]:
        places = (self.folder / name for name in ("s.tsv", "in", "out"))
        named = zip(("--subscriptions", "--input", "--output"), map(str, places), strict=True)
        given = [word for pair in named for word in pair]
        return [
            *(COMMAND, "run", "--stream", *given, "--master", self.cluster.url),
            *("--conf", "spark.ui.enabled=false", "--conf", "spark.task.maxFailures=1000"),
            *("--conf", "spark.cores.max=2", "--conf", "spark.executor.memory=512m"),
        ]

    def _kill(self, kind: str) -> int:
        """Kill one process of a kind, if there is any; how many it were."""
        if self.driver is None or self.driver.poll() is not None:
            self._begin_driver()
        if kind == "driver":
            self._end_driver()
            return 1
        executors = self.cluster.executors()
        processes = executors if kind == "executor" else _children(executors)
        if not processes:
            return 0
        try:
            os.kill(self.random.choice(processes), signal.SIGKILL)
        except ProcessLookupError:
            return 0
        return 1

    def _begin_driver(self) -> None:
        log = (self.folder / "driver.log").open("ab")
        self.driver = subprocess.Popen(
            self._command(), stderr=log, stdout=log, env=environment(), start_new_session=True
        )
        log.close()

    def _end_driver(self) -> None:
        if self.driver is not None:
            os.killpg(self.driver.pid, signal.SIGKILL)
            self.driver.wait()
        self.driver = None

    def _wrong(self) -> dict[str, int]:
        """How many answers are lost, doubled or wrong."""
        columns = ["document", "subscription"]
        rows = pq.read_table(self.folder / "out" / "matches").select(columns).to_pydict()
        names = map(os.path.basename, rows["document"])
        found = Counter(zip(names, rows["subscription"], strict=True))
        expected = {
            (f"{number}.xml", id)
            for number in range(self.files)
            for id in ("any", "low" if number % 100 < 50 else "high")
        }
        errors = pq.read_table(self.folder / "out" / "errors").num_rows
        return {
            "lost": len(expected - found.keys()),
            "twice": sum(count > 1 for count in found.values()),
            "wrong": len(found.keys() - expected) + errors,
        }


def _children(parents: list[int]) -> list[int]:
    """The processes of Python below executors: daemons and workers."""
    found = []
    family = set(parents)
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        if parent in family:
            family.add(int(folder.name))
            found.append(int(folder.name))
    return found


if __name__ == "__main__":
    main()
