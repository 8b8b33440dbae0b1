"""``Forwarding``: a request for a topic that another process has goes to that process.

So a client may speak to any process that shares the store, such as through a load balancer.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Self
from urllib.parse import quote, unquote

import aiohttp
from yarl import URL

from tamis.broker.core.model import Elsewhere
from tamis.broker.http.access import Access, Unauthorized
from tamis.broker.http.consumers import until_first_ends, wait_until_gone
from tamis.broker.http.ingest import (
    FORWARDED,
    Receive,
    Scope,
    Send,
    authorization_of,
    headers_in,
    refuse,
)
from tamis.broker.http.problems import last_line, status_of
from tamis.broker.service import Service
from tamis.core.errors import StoreError, TamisError

_TOPIC = re.compile(r"/v1/topics/([^/]+)(?:/.*)?")
_MARK = FORWARDED.decode()
_KNOWN_S = 1.0
_PER_CONNECTION = {
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer",
    "transfer-encoding", "upgrade", "host",
}  # fmt: skip
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=2.0)
_WENT = "the process that has the topic does not answer: try again"


class Forwarding:
    """Answers requests for topics of other processes. Use it with ``async with``.

    Args:
        address: the URL of this process.
    """

    def __init__(self, service: Service, access: Access, address: str) -> None:
        self._service, self._access, self._address = service, access, address
        self._owners: dict[str, tuple[str, float]] = {}

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers={_MARK: "1"},
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=_TIMEOUT,
            auto_decompress=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request, unless this process answers it."""
        match = _TOPIC.fullmatch(scope["path"])
        if match is None:
            return False
        exchange = self._socket if scope["type"] == "websocket" else self._request
        try:
            token = self._access.check(authorization_of(scope))
            topic = f"{token.tenant}/{unquote(match[1])}"
            if self._service.holds(topic) or (url := await self._owner(topic)) is None:
                return False  # it is this process's, or there is no such topic
            if url == self._address or _MARK in headers_in(scope):
                raise Elsewhere("the topic is on its way to another process: try again")
            await self._while_owned(topic, url, exchange(url, scope, receive, send))
        except Unauthorized:
            return False  # who answers says why
        except TamisError as error:
            with suppress(Exception):  # the answer may have begun
                if scope["type"] == "websocket":
                    await send({"type": "websocket.close", "code": 4000 + status_of(error)})
                else:
                    await refuse(send, error)
        return True

    async def _owner(self, topic: str) -> str | None:
        """The URL of the process that has a topic; None: there is no such topic."""
        url, until = self._owners.get(topic, (None, 0.0))
        if time.monotonic() >= until:
            self._owners.pop(topic, None)
            url = await self._service.owner(topic)
            if url is not None:
                self._owners[topic] = url, time.monotonic() + _KNOWN_S
        return url

    async def _while_owned(self, topic: str, url: str, exchange: Coroutine[Any, Any, None]) -> None:
        """Pass an answer on, unless its process stands still, and loses the topic."""
        task = asyncio.ensure_future(exchange)
        try:
            while not (await asyncio.wait({task}, timeout=_KNOWN_S))[0]:
                if self._service.is_draining:
                    raise Elsewhere("this process ends: connect again")
                with suppress(StoreError):  # nobody knows: it is as before
                    if await self._owner(topic) != url:
                        raise Elsewhere(_WENT)
            task.result()
        except (aiohttp.ClientError, TimeoutError):
            self._owners.pop(topic, None)
            raise Elsewhere(_WENT) from None
        finally:
            task.cancel()

    # -- HTTP --------------------------------------------------------------------------------------

    async def _request(self, url: str, scope: Scope, receive: Receive, send: Send) -> None:
        headers = headers_in(scope)
        has_body = "content-length" in headers or "transfer-encoding" in headers
        async with self._session.request(
            scope["method"], _target(url, scope), headers=_passed(headers.items()),
            data=_body(receive) if has_body else None,
            skip_auto_headers=("user-agent", "accept", "accept-encoding", "content-type"),
            allow_redirects=False,
        ) as response:  # fmt: skip
            head = _passed(response.headers.items())
            await send({
                "type": "http.response.start", "status": response.status,
                "headers": [(name.encode(), value.encode()) for name, value in head.items()],
            })  # fmt: skip
            try:
                await _pass_on(response, receive, send)
            except BaseException:
                if response.content_type == "application/x-ndjson":
                    body = last_line(Elsewhere(_WENT))
                    await send({"type": "http.response.body", "body": body})
                raise

    # -- WebSockets --------------------------------------------------------------------------------

    async def _socket(self, url: str, scope: Scope, receive: Receive, send: Send) -> None:
        passed = _passed(headers_in(scope).items())
        headers = {name: value for name, value in passed.items() if name[:4] != "sec-"}
        await receive()  # websocket.connect
        try:
            async with self._session.ws_connect(
                _target(url, scope), headers=headers, max_msg_size=0
            ) as socket:
                await send({"type": "websocket.accept"})
                ups = asyncio.ensure_future(_send_up(receive, socket))
                try:
                    async for message in socket:
                        if message.type is not aiohttp.WSMsgType.TEXT:
                            break
                        await send({"type": "websocket.send", "text": message.data})
                finally:
                    ups.cancel()
                is_lost = socket.close_code in {None, aiohttp.WSCloseCode.ABNORMAL_CLOSURE}
                code = aiohttp.WSCloseCode.SERVICE_RESTART if is_lost else socket.close_code
                await send({"type": "websocket.close", "code": code})
        except aiohttp.WSServerHandshakeError as error:
            await send({"type": "websocket.close", "code": 4000 + error.status})


def _passed(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    passed = {name.lower(): value for name, value in headers}
    return {name: value for name, value in passed.items() if name not in _PER_CONNECTION}


def _target(url: str, scope: Scope) -> URL:
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    query = scope["query_string"]
    target: bytes = path + b"?" * bool(query) + query
    return URL(url + target.decode("latin-1"), encoded=True)  # as it is: with its dots


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise aiohttp.ClientPayloadError("the client has gone")
        yield event.get("body", b"")
        if not event.get("more_body"):
            return


async def _pass_on(response: aiohttp.ClientResponse, receive: Receive, send: Send) -> None:
    """Pass the body of an answer on, until it or the client ends."""

    async def read() -> None:
        async for chunk in response.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    await until_first_ends(read(), wait_until_gone(receive))


async def _send_up(receive: Receive, socket: aiohttp.ClientWebSocketResponse) -> None:
    while True:
        event: Any = await receive()
        if event["type"] == "websocket.disconnect":
            await socket.close()
            return
        if event.get("text") is not None:
            await socket.send_str(event["text"])
        else:
            await socket.send_bytes(event.get("bytes") or b"")
