"""Local servers that answer webhooks as a test says."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_network
from typing import NamedTuple

from tamis.broker.delivery.addresses import AddressGuard
from tamis.broker.delivery.webhooks import Attempt

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
LOCAL = AddressGuard((ip_network("127.0.0.0/8"),), is_http_allowed=True)


class Request(NamedTuple):
    line: str
    headers: dict[str, str]
    body: bytes


Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


class Server:
    """What a server got, and from how many connections."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.port, self.connections = answer, 0, 0
        self.requests: list[Request] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(OSError, asyncio.IncompleteReadError):
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *rest = head.strip().split("\r\n")
                headers = {k.lower(): v for k, v in (each.split(": ", 1) for each in rest)}
                assert len(headers) == len(rest), f"a header is there twice: {rest}"
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                self.requests.append(Request(line, headers, body))
                if callable(self.answer):
                    await self.answer(writer)
                else:
                    writer.write(self.answer)
                await writer.drain()


@asynccontextmanager
async def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answer)
    tasks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await server.talk(reader, writer)
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            writer.transport.abort()

    listener = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=tls)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)


def answer(status: int, *headers: str, body: bytes = b"") -> bytes:
    head = [f"HTTP/1.1 {status} Something", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(head).encode() + body


def attempt_for(url: str, body: bytes = b'{"a":1}', **fields: object) -> Attempt:
    return Attempt(url, "msg_1", body, (SECRET,), 1_700_000_000)._replace(**fields)


def lookup_of(*answers: list[str]) -> Callable[[str, int], Awaitable[list[str]]]:
    """Gives one of the answers after the other, the last one again and again."""
    left = list(answers)

    async def lookup(host: str, port: int) -> list[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return lookup
