"""What others take for messages that are stored durably: NATS JetStream, and PostgreSQL with lxml.

Neither matches by itself. JetStream stores and delivers; PostgreSQL stores, and a loop over lxml's
compiled XPath decides who is notified.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.broker_load import (
    CONNECTIONS,
    POINTS,
    SECONDS,
    SUBSCRIPTIONS,
    TOPIC,
    Connection,
    numbered,
    orders,
    point,
    posts,
    serving,
    subscribe_many,
)
from tests.support.postgres import free_port, postgres_server

__all__ = ["POINTS"]

BODY = next(orders(range(SUBSCRIPTIONS, SUBSCRIPTIONS + 1), 4_096))


async def _closed_loop(
    publish: Callable[[int], Awaitable[None]], seconds: float = SECONDS
) -> dict[str, Any]:
    """So many clients, of which each sends when its last message is answered."""
    latencies: list[float] = []
    end = time.perf_counter() + seconds

    async def client(number: int) -> None:
        while (begun := time.perf_counter()) < end:
            await publish(number)
            latencies.append(time.perf_counter() - begun)

    start = time.perf_counter()
    await asyncio.gather(*map(client, range(CONNECTIONS)))
    took = time.perf_counter() - start
    latencies.sort()
    at = [round(latencies[int(len(latencies) * share)] * 1e3, 1) for share in (0.5, 0.99)]
    return {"done": round(len(latencies) / took), "p50_ms": at[0], "p99_ms": at[1]}


@asynccontextmanager
async def _jetstream(sync: str) -> AsyncIterator[Any]:
    import nats  # noqa: PLC0415 - of the extra bench

    folder, port = Path(tempfile.mkdtemp(prefix="tamis-nats-")), free_port()
    config = folder / "nats.conf"
    config.write_text(f'jetstream {{ store_dir: "{folder}/data", sync_interval: {sync} }}\n')
    program = Path(sys.executable).parent / "nats-server"
    command = [str(program), "-c", str(config), "-a", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            await asyncio.sleep(1.0)
            client = await nats.connect(f"nats://127.0.0.1:{port}")
            stream = client.jetstream()
            await stream.add_stream(name="load", subjects=["load.>"])
            yield stream
            await client.close()
        finally:
            process.terminate()
            process.wait(30)
            shutil.rmtree(folder)


async def _publish_to_jetstream(sync: str) -> dict[str, Any]:
    async with _jetstream(sync) as stream:

        async def publish(number: int) -> None:
            await stream.publish(f"load.{number}", BODY)

        return await _closed_loop(publish)


@point
async def jetstream_always() -> dict[str, Any]:
    """NATS JetStream with `sync_interval: always`: 256 publishers of 4 KB, nothing is matched."""
    return await _publish_to_jetstream("always")


@point
async def jetstream_default() -> dict[str, Any]:
    """NATS JetStream as it comes: synced every two minutes, so that a power cut loses messages."""
    return await _publish_to_jetstream('"2m"')


@point
async def closed_loop_0() -> dict[str, Any]:
    """Ours, to compare with JetStream: 256 publishers of 4 KB beside 10,000 subscriptions."""
    async with serving() as (served, _):
        await subscribe_many(served, numbered(SUBSCRIPTIONS))
        opened = await asyncio.gather(*(Connection().open(served) for _ in range(CONNECTIONS)))
        bodies = orders(range(SUBSCRIPTIONS, 2 * SUBSCRIPTIONS), 4_096)
        requests = posts(served, TOPIC, bodies)

        async def publish(number: int) -> None:
            status, body = await opened[number].ask(next(requests))
            assert status == 202, body

        return await _closed_loop(publish)


@point
async def postgres_lxml() -> dict[str, Any]:
    """PostgreSQL: an INSERT and NOTIFY a message; a listener loops over 10,000 XPaths with lxml."""
    import psycopg  # noqa: PLC0415
    from lxml import etree  # noqa: PLC0415

    paths = [etree.XPath(f"//order[@n = {number}]/item") for number in range(SUBSCRIPTIONS)]
    with postgres_server("-c", f"max_connections={CONNECTIONS + 20}") as server:
        url = server.url
        admin = await psycopg.AsyncConnection.connect(url, autocommit=True)
        await admin.execute("CREATE TABLE messages (number BIGSERIAL PRIMARY KEY, body BYTEA)")
        clients = [
            await psycopg.AsyncConnection.connect(url, autocommit=True) for _ in range(CONNECTIONS)
        ]

        async def publish(number: int) -> None:
            async with clients[number].transaction():
                found = await clients[number].execute(
                    "INSERT INTO messages (body) VALUES (%s) RETURNING number", [BODY]
                )
                row = await found.fetchone()
                assert row is not None
                await clients[number].execute("SELECT pg_notify('messages', %s)", [str(row[0])])

        stored = await _closed_loop(publish)
        start, matched = time.perf_counter(), 0
        while time.perf_counter() < start + SECONDS:
            tree = etree.fromstring(BODY)
            sum(bool(path(tree)) for path in paths)
            matched += 1
        took = time.perf_counter() - start
        for client in (*clients, admin):
            await client.close()
    return {"stored_alone": stored, "matched_a_second_of_one_core": round(matched / took, 1)}
