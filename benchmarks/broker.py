"""The broker under load, on SQLite, with everything durable; beside NATS JetStream and PostgreSQL.

    python -m benchmarks.broker [POINT...] [--record FILE]

The broker is `tamis serve`, a process of its own. Requests come at a rate, and a latency counts
from when a request was to begin. Load, consumers and broker share the cores of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from benchmarks import broker_retries, broker_rivals, recording
from benchmarks.broker_load import (
    CONNECTIONS,
    POINTS,
    SECONDS,
    SUBSCRIPTIONS,
    TOPIC,
    Connection,
    Consumers,
    Run,
    Served,
    ask,
    at_rate,
    batches,
    best,
    numbered,
    orders,
    point,
    posts,
    receive_webhooks,
    serving,
    shown,
    subscribe_many,
)
from tests.support.postgres import free_port

RATES = (500, 1_000, 1_500, 2_000, 2_250, 2_500, 3_000, 3_500, 4_000, 5_000)


WARM_S = 15.0
"""So long documents come before it is measured: until then it is known which engine suits them."""


def every(count: int, **others: Any) -> Iterator[dict[str, Any]]:
    """Subscriptions that each document matches."""
    for number in range(count):
        yield {"id": f"all{number}", "expression": f"//order[@n >= -{number}]", **others}


# -- points ----------------------------------------------------------------------------------------


async def _publish(matches: int, rates: tuple[int, ...], consumers: int) -> dict[str, Any]:
    async with serving() as (served, _):
        hot = every(matches, delivery={"backlog_max": 10_000_000})
        await subscribe_many(served, itertools.chain(hot, numbered(SUBSCRIPTIONS - matches)))
        clients = Consumers(served, TOPIC)
        for number in range(consumers):
            (clients.stream if number % 2 else clients.pull)(f"all{number}")
        bodies = orders(range(SUBSCRIPTIONS, 2 * SUBSCRIPTIONS), 4_096)
        requests = posts(served, TOPIC, bodies)
        await at_rate(served, min(1_000, rates[-1] // 3), WARM_S, requests, CONNECTIONS)
        runs, good = [], None
        for rate in rates:
            await asyncio.sleep(5.0)  # consumers have everything
            clients.received = 0
            run = await at_rate(served, rate, SECONDS, requests, CONNECTIONS)
            await asyncio.sleep(1.0)
            due = consumers * sum(run.statuses.values())
            runs.append(shown(run) | {"to_deliver": due, "delivered": clients.received})
            print(f"  {rate}/s:", runs[-1], flush=True)
            if not run.is_kept_up or clients.received < due:
                break
            good = runs[-1]
        await clients.close()
    return {"best": good, "runs": runs, "consumers": consumers}


async def _rising(
    served: Served,
    rates: tuple[int, ...],
    requests: Iterator[bytes],
    connections: int = CONNECTIONS,
) -> list[Run]:
    runs: list[Run] = []
    for rate in rates:
        runs.append(await at_rate(served, rate, SECONDS, requests, connections))
        print(f"  {rate}/s:", shown(runs[-1]), flush=True)
        if not runs[-1].is_kept_up:
            break
    return runs


def _summary(runs: list[Run], latency_ms_max: float) -> dict[str, Any]:
    found = best(runs, latency_ms_max)
    return {"best": None if found is None else shown(found), "runs": [shown(run) for run in runs]}


@point
async def publish_0() -> dict[str, Any]:
    """Single documents of 4 KB that match nothing; 10,000 subscriptions."""
    return await _publish(0, RATES, 0)


@point
async def publish_5() -> dict[str, Any]:
    """Single documents of 4 KB that match five subscriptions, which pull and stream."""
    return await _publish(5, RATES, 5)


@point
async def publish_1000() -> dict[str, Any]:
    """Single documents of 4 KB that match 1,000 subscriptions, of which 20 pull and stream."""
    return await _publish(1_000, (50, 100, 150, 200, 300), 20)


@point
async def publish_batches() -> dict[str, Any]:
    """Documents of 1 KB that match nothing, in batches of 100."""
    async with serving() as (served, _):
        await subscribe_many(served, numbered(SUBSCRIPTIONS))
        bodies = orders(range(SUBSCRIPTIONS, 2 * SUBSCRIPTIONS), 1_024)
        requests = batches(served, TOPIC, bodies, 100)
        await at_rate(served, 100, WARM_S, requests, 8)
        runs = await _rising(served, (50, 75, 100, 125, 150, 175, 200, 250, 300), requests, 8)
    return _summary(runs, 1_000.0) | {"documents_in_a_batch": 100}


@point
async def webhooks() -> dict[str, Any]:
    """Documents that one webhook gets: from the request to the webhook."""
    found: dict[str, Any] = {"runs": []}
    async with serving("--allow-http", "--allow-network", "127.0.0.0/8") as (served, _):
        port, times = free_port(), dict[int, float]()
        arrived: dict[int, float] = {}

        def on_body(body: bytes) -> None:
            arrived[orjson.loads(body)["data"]["number"]] = time.perf_counter()

        server = await receive_webhooks(port, on_body)
        hooks = every(8, webhook={"url": f"http://127.0.0.1:{port}/"}, delivery={"ordered": False})
        await subscribe_many(served, itertools.chain(itertools.islice(hooks, 1), numbered(9_999)))
        bodies = orders(range(SUBSCRIPTIONS, 2 * SUBSCRIPTIONS), 4_096)
        for rate in (50, 200, 400, 600, 800, 1_000):
            times.clear()
            arrived.clear()
            run = await _timed(served, rate, posts(served, TOPIC, bodies), times)
            for _ in range(200):
                if len(arrived) >= len(times):
                    break
                await asyncio.sleep(0.05)
            late = sorted(arrived[n] - times[n] for n in times if n in arrived)
            p99 = round(late[int(len(late) * 0.99)] * 1e3, 1) if late else None
            one = shown(run) | {"webhooks": len(late), "webhook_p99_ms": p99}
            one["webhook_p50_ms"] = round(late[len(late) // 2] * 1e3, 1) if late else None
            print(f"  {rate}/s:", one, flush=True)
            found["runs"].append(one)
            if p99 is None or p99 > 500 or len(late) < len(times):
                break
        server.close()
    return found


async def _timed(
    served: Served, rate: int, requests: Iterator[bytes], times: dict[int, float]
) -> Run:
    """As ``at_rate``, and when the request of each message was to begin."""
    ask_one = Connection.ask

    async def asked(self: Connection, request: bytes) -> tuple[int, bytes]:
        begun = time.perf_counter()
        status, body = await ask_one(self, request)
        times[orjson.loads(body)["number"]] = begun
        return status, body

    Connection.ask = asked  # type: ignore[method-assign]
    try:
        return await at_rate(served, rate, SECONDS, requests, CONNECTIONS)
    finally:
        Connection.ask = ask_one  # type: ignore[method-assign]


@point
async def million() -> dict[str, Any]:
    """A million subscriptions: how they are imported, a start, and one more."""
    folder = Path(tempfile.mkdtemp(prefix="tamis-broker-"))
    count = int(os.environ.get("TAMIS_BENCH_MILLION", "1000000"))
    found: dict[str, Any] = {"subscriptions": count}
    try:
        async with serving(folder=folder) as (served, _):
            start = time.perf_counter()
            await subscribe_many(served, numbered(count))
            found["import_s"] = round(time.perf_counter() - start, 1)
        start = time.perf_counter()
        async with serving(folder=folder) as (served, process):
            found["start_s"] = round(time.perf_counter() - start, 2)
            start = time.perf_counter()
            body = next(orders(range(3, 4), 4_096))
            path = f"/topics/{TOPIC}/messages"
            first = await ask(served, "POST", path, body, "xml")
            found["first_message_s"] = round(time.perf_counter() - start, 3)
            assert first["matches"] == 1, first
            found["live_ms"] = [await _live(served, number) for number in range(20)]
            found["peak_mb"] = _peak_mb(process)
    finally:
        shutil.rmtree(folder)
    return found


async def _live(served: Served, number: int) -> float:
    """How long it takes from a new subscription to the answer that a document matches it."""
    body = b'<new%d n="1"/>' % number
    start = time.perf_counter()
    new = {"id": f"new{number}", "expression": f"//new{number}"}
    await ask(served, "POST", f"/topics/{TOPIC}/subscriptions", new)
    found = await ask(served, "POST", f"/topics/{TOPIC}/messages", body, "xml")
    assert found["matches"] == 1, found
    return round((time.perf_counter() - start) * 1e3, 1)


def _peak_mb(process: int) -> float:
    text = Path(f"/proc/{process}/status").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("VmHWM")]
    return round(int(line.split()[1]) / 1024)


@point
async def idle_streams() -> dict[str, Any]:
    """10,000 connections with server-sent events that are idle."""
    async with serving() as (served, process):
        await subscribe_many(served, numbered(SUBSCRIPTIONS))
        before = _peak_mb(process)
        clients = Consumers(served, TOPIC)
        for number in range(SUBSCRIPTIONS):
            clients.stream(f"n{number}")
            if number % 200 == 199:
                await asyncio.sleep(0.2)
        await asyncio.sleep(20.0)  # a heartbeat
        found = {"connections": SUBSCRIPTIONS, "mb_before": before, "mb": _peak_mb(process)}
        bodies = orders(range(100), 1_024)
        run = await at_rate(served, 100, 2.0, posts(served, TOPIC, bodies), 8)
        await asyncio.sleep(2.0)
        found |= {"received": clients.received, "messages": sum(run.statuses.values())}
        await clients.close()
    return found


def main() -> None:
    """Measure all points, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.broker")
    assert broker_rivals.POINTS is broker_retries.POINTS is POINTS
    parser.add_argument("points", nargs="*", metavar="POINT", help=", ".join(POINTS))
    parser.add_argument("--record", type=Path, help="what is known, and is added to")
    given = parser.parse_args()
    for name in given.points or POINTS:
        if name not in POINTS:
            raise SystemExit(f"no point {name}; there are {', '.join(POINTS)}")
        about = (POINTS[name].__doc__ or "").strip()
        print(f"{name}: {about}", flush=True)
        load = os.getloadavg()[0]
        found = {"about": about, "load": round(load, 2), **asyncio.run(POINTS[name]())}
        print(" ", json.dumps(found), flush=True)
        if given.record is not None:
            _keep(given.record, name, found)


def _keep(record: Path, name: str, found: dict[str, Any]) -> None:
    table: dict[str, Any] = {"experiment": "broker", "about": (__doc__ or "").splitlines()[0]}
    if record.exists():
        table = json.loads(record.read_text(encoding="utf-8"))
    table.setdefault("points", {})[name] = found
    table |= {"commit": recording.commit(), "versions": recording.versions()}
    recording.write(record, table | {"machine": recording.machine(0)})


if __name__ == "__main__":
    main()
