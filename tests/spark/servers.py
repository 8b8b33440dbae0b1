"""Parts of Spark as processes of their own, from the jars of the pip package, on loopback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyspark

from tamis.spark.session import find_java
from tests.support.postgres import HOST, free_port, postgres_server

SPARK_HOME = Path(pyspark.__file__).parent
START_SECONDS_MAX = 90


def environment(**more: str) -> dict[str, str]:
    """What Spark needs to find Java and this Python."""
    spark = {
        "JAVA_HOME": find_java(),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_NO_DAEMONIZE": "1",
        "PYSPARK_PYTHON": sys.executable,
    }
    return os.environ | spark | more


@contextmanager
def started(log: Path, said: str, *command: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs until the end of the ``with`` block; it is ready when it has said so."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment(**more), start_new_session=True
        )
        try:
            wait_until(process, log, said)
            yield process
        finally:
            stop(process)


def wait_until(process: subprocess.Popen[bytes], log: Path, said: str) -> None:
    """Wait until a process has said something."""
    end = time.monotonic() + START_SECONDS_MAX
    while said not in log.read_text(errors="replace"):
        assert process.poll() is None, log.read_text(errors="replace")[-2000:]
        assert time.monotonic() < end, log.read_text(errors="replace")[-2000:]
        time.sleep(0.1)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started, which are of its session."""
    try:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=20)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        pass
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def connect_server(folder: Path, **more: str) -> Iterator[str]:
    """A server of Spark Connect, whose environment has ``more``: its URL."""
    port = free_port()
    with started(
        folder / "connect.log",
        "Spark Connect server started",
        str(SPARK_HOME / "bin" / "spark-submit"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--master", "local[2]"),
        *("--conf", f"spark.connect.grpc.binding.address={HOST}"),
        *("--conf", f"spark.connect.grpc.binding.port={port}"),
        *("--conf", "spark.ui.enabled=false"),
        *("--conf", f"spark.sql.warehouse.dir={folder}"),
        "spark-internal",
        **more,
    ):
        yield f"sc://{HOST}:{port}"


class Cluster(NamedTuple):
    """A standalone cluster.

    Attributes:
        url: of the master.
        workers: one process each, of one core.
    """

    url: str
    workers: list[subprocess.Popen[bytes]]

    def executors(self) -> list[int]:
        """The ids of the processes that run tasks; each has processes of Python of its own."""
        sessions = {worker.pid for worker in self.workers}
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes()
                is_ours = os.getsid(int(folder.name)) in sessions
            except OSError:  # it has ended
                continue
            if is_ours and b"CoarseGrainedExecutorBackend" in command:
                found.append(int(folder.name))
        return found

    def working(self) -> list[int]:
        """Those of the executors that have Python processes: they have begun with some task."""
        parents = set()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if b"pyspark.daemon" in (folder / "cmdline").read_bytes():
                    after_name = (folder / "stat").read_text().rpartition(")")[2]
                    parents.add(int(after_name.split()[1]))
            except OSError:  # it has ended
                continue
        return [executor for executor in self.executors() if executor in parents]


@contextmanager
def cluster(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """One master and some workers."""
    port = free_port()
    with ExitStack() as stack:
        start = str(SPARK_HOME / "bin" / "spark-class")
        address = ("--host", HOST, "--port")
        stack.enter_context(
            started(
                folder / "master.log",
                "I have been elected leader",
                *(start, "org.apache.spark.deploy.master.Master", *address, str(port)),
                *("--webui-port", "0"),
            )
        )
        url = f"spark://{HOST}:{port}"
        processes = [
            stack.enter_context(
                started(
                    folder / f"worker-{number}.log",
                    "Successfully registered with master",
                    # Of several hosts: Spark does a late task twice only if they differ.
                    *(start, "org.apache.spark.deploy.worker.Worker", "--port", "0"),
                    *("--host", f"127.0.0.{1 + number}"),
                    *("--webui-port", "0", "--cores", "1", "--memory", "1g"),
                    *("--work-dir", str(folder / f"work-{number}"), url),
                )
            )
            for number in range(workers)
        ]
        yield Cluster(url, processes)


@contextmanager
def postgres() -> Iterator[str]:
    """A PostgreSQL of its own, which syncs nothing: the URL of an empty database."""
    with postgres_server("-F") as server:
        yield server.url
