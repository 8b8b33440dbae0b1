"""Load for a broker: requests at a rate (open loop), consumers, and a receiver of webhooks.

Requests are written to sockets as bytes, so that the load costs little beside the broker.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tests.support.postgres import free_port

CONNECTIONS = 256
SECONDS = 5.0
SUBSCRIPTIONS = 10_000
TOPIC = "load"
POINTS: dict[str, Callable[[], Coroutine[Any, Any, dict[str, Any]]]] = {}


def point(run: Callable[[], Coroutine[Any, Any, dict[str, Any]]]) -> Any:
    """What can be measured by its name."""
    POINTS[run.__name__.replace("_", "-")] = run
    return run


class Served(NamedTuple):
    """A broker that listens."""

    host: str
    port: int
    token: str

    def head(self, method: str, path: str, size: int, content_type: str) -> bytes:
        """The first lines of a request."""
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n"
            f"Authorization: Bearer {self.token}\r\n"
            f"Content-Type: {content_type}\r\nContent-Length: {size}\r\n\r\n"
        ).encode()


class Connection:
    """A connection that is kept open, with one request at a time."""

    async def open(self, served: Served) -> Connection:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection(served.host, served.port)
        return self

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        place = head.find(b"content-length:")
        size = int(head[place + 15 : head.index(b"\r\n", place)]) if place >= 0 else 0
        return status, await self._reader.readexactly(size)

    def close(self) -> None:
        """Close it."""
        self._writer.close()


class Run(NamedTuple):
    """What came of requests at a rate.

    Attributes:
        rate: how many were to begin in a second.
        done: how many were answered in a second, from the first to the last.
        latencies_ms: from when each was to begin: the median, the 99th percentile, the longest.
        statuses: how many answers had each status.
    """

    rate: float
    done: float
    latencies_ms: tuple[float, float, float]
    statuses: dict[int, int]

    @property
    def is_kept_up(self) -> bool:
        """Whether all were accepted, and nearly as fast as they came."""
        return set(self.statuses) <= {202} and self.done >= 0.97 * self.rate


async def at_rate(
    served: Served, rate: float, seconds: float, requests: Iterator[bytes], connections: int
) -> Run:
    """Begin so many requests in a second, whether the earlier ones are answered or not."""
    waiting: asyncio.Queue[tuple[float, bytes] | None] = asyncio.Queue()
    latencies: list[float] = []
    statuses: dict[int, int] = {}
    opened = await asyncio.gather(*(Connection().open(served) for _ in range(connections)))

    async def work(connection: Connection) -> None:
        while (item := await waiting.get()) is not None:
            due, request = item
            status, _ = await connection.ask(request)
            latencies.append(time.perf_counter() - due)
            statuses[status] = statuses.get(status, 0) + 1

    workers = [asyncio.ensure_future(work(connection)) for connection in opened]
    start = time.perf_counter()
    count, sent = int(rate * seconds), 0
    while sent < count:
        ready = min(count, int((time.perf_counter() - start) * rate) + 1)
        for number in range(sent, ready):
            waiting.put_nowait((start + number / rate, next(requests)))
        sent = ready
        await asyncio.sleep(0.001)
    for _ in workers:
        waiting.put_nowait(None)
    await asyncio.gather(*workers)
    took = time.perf_counter() - start
    for connection in opened:
        connection.close()
    latencies.sort()
    at = [
        latencies[min(len(latencies) - 1, int(len(latencies) * share))] for share in (0.5, 0.99, 1)
    ]
    return Run(rate, count / took, (at[0] * 1e3, at[1] * 1e3, at[2] * 1e3), statuses)


class Consumers:
    """Consumers of subscriptions; they count what they get."""

    def __init__(self, served: Served, topic: str) -> None:
        self._served, self._path = served, f"/v1/topics/{topic}/subscriptions"
        self.received = 0
        self._tasks: list[asyncio.Task[None]] = []

    def pull(self, id: str) -> None:
        """Lease, and acknowledge."""
        self._tasks.append(asyncio.ensure_future(self._pull(id)))

    def stream(self, id: str) -> None:
        """Read server-sent events."""
        self._tasks.append(asyncio.ensure_future(self._stream(id)))

    async def close(self) -> None:
        """End them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _pull(self, id: str) -> None:
        connection = await Connection().open(self._served)
        asked = orjson.dumps({"max": 1_000, "wait_s": 10})
        head = self._served.head("POST", f"{self._path}/{id}/lease", len(asked), "application/json")
        while True:
            _, body = await connection.ask(head + asked)
            lease = orjson.loads(body)
            if lease["messages"]:
                numbers = [message["number"] for message in lease["messages"]]
                self.received += len(numbers)
                done = orjson.dumps({"token": lease["token"], "numbers": numbers})
                path = f"{self._path}/{id}/acknowledge"
                request = self._served.head("POST", path, len(done), "application/json") + done
                await connection.ask(request)

    async def _stream(self, id: str) -> None:
        reader, writer = await asyncio.open_connection(self._served.host, self._served.port)
        writer.write(self._served.head("GET", f"{self._path}/{id}/events", 0, "text/plain"))
        await reader.readuntil(b"\r\n\r\n")
        try:
            while data := await reader.read(1 << 20):
                self.received += data.count(b"\ndata: ")
        finally:
            writer.close()


async def receive_webhooks(
    port: int, on_body: Callable[[bytes], None]
) -> asyncio.base_events.Server:
    """A server that answers each POST with 204."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                place = head.index(b"content-length:")
                size = int(head[place + 15 : head.index(b"\r\n", place)])
                on_body(await reader.readexactly(size))
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", port)


@asynccontextmanager
async def serving(*options: str, folder: Path | None = None) -> AsyncIterator[tuple[Served, int]]:
    """`tamis serve` on a free port, and the number of its process."""
    own = folder or Path(tempfile.mkdtemp(prefix="tamis-broker-"))
    port = free_port()
    command = [sys.executable, "-c", "from tamis.cli import main; main()", "serve"]
    command += ["--data", str(own), "--port", str(port), *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            await asyncio.to_thread(_wait_for, port, process)
            token = (own / "token").read_text().strip()
            yield Served("127.0.0.1", port, token), process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            if folder is None:
                shutil.rmtree(own)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz").close()
            return
        except OSError:
            time.sleep(0.02)
    raise SystemExit("tamis serve did not start")


async def ask(served: Served, method: str, path: str, body: Any = None, kind: str = "json") -> Any:
    """The answer to one request."""
    data = b"" if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
    connection = await Connection().open(served)
    status, answer = await connection.ask(
        served.head(method, f"/v1{path}", len(data), f"application/{kind}") + data
    )
    connection.close()
    if status >= 300:
        raise SystemExit(f"{method} {path}: {status} {answer.decode()}")
    return orjson.loads(answer) if answer else None


async def subscribe_many(served: Served, lines: Iterator[dict[str, Any]]) -> None:
    """Make the topic, and import subscriptions."""
    await ask(served, "POST", "/topics", {"name": TOPIC})
    path = f"/topics/{TOPIC}/subscriptions/import"
    while group := list(itertools.islice(lines, 20_000)):
        body = b"\n".join(map(orjson.dumps, group))
        found = await ask(served, "POST", path, body, "x-ndjson")
        assert found["refused"] == 0, found["errors"][:3]


def numbered(count: int) -> Iterator[dict[str, Any]]:
    """Subscriptions to one number each."""
    for number in range(count):
        yield {"id": f"n{number}", "expression": f"//order[@n = {number}]/item"}


# -- documents, and requests ----------------------------------------------------------------------


def orders(matched: range, size: int) -> Iterator[bytes]:
    """Documents of about so many bytes; each has a number of the range."""
    filler = b"<x>text of an element</x>" * max(1, (size - 40) // 25)
    while True:
        for number in matched:
            yield b'<order n="%d"><item/>' % number + filler + b"</order>"


def posts(served: Served, topic: str, bodies: Iterator[bytes]) -> Iterator[bytes]:
    """A request for each document."""
    for body in bodies:
        path = f"/v1/topics/{topic}/messages"
        yield served.head("POST", path, len(body), "application/xml") + body


def batches(served: Served, topic: str, bodies: Iterator[bytes], count: int) -> Iterator[bytes]:
    """A request for so many documents."""
    while True:
        parts = b"".join(
            b"--b\r\nContent-Type: application/xml\r\n\r\n" + next(bodies) + b"\r\n"
            for _ in range(count)
        )
        body, kind = parts + b"--b--\r\n", "multipart/mixed; boundary=b"
        yield served.head("POST", f"/v1/topics/{topic}/messages", len(body), kind) + body


def best(runs: list[Run], latency_ms_max: float) -> Run | None:
    """The run of the highest rate that was kept up, with a 99th percentile of at most so much."""
    good = [run for run in runs if run.is_kept_up and run.latencies_ms[1] <= latency_ms_max]
    return max(good, key=lambda run: run.rate, default=None)


def shown(run: Run) -> dict[str, Any]:
    """As a record has it."""
    median, high, longest = (round(each, 1) for each in run.latencies_ms)
    return {
        "rate": run.rate, "done": round(run.done), "p50_ms": median, "p99_ms": high,
        "max_ms": longest, "statuses": {str(status): n for status, n in run.statuses.items()},
    }  # fmt: skip
