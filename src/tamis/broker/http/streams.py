"""``Streams``: deliveries over server-sent events and WebSockets, as bare ASGI.

A client of server-sent events acknowledges by its next ``Last-Event-ID``: where it connects with
one, all messages beyond it come again. A client of a WebSocket acknowledges each message.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, unquote

import orjson

from tamis.broker.core.model import UnknownName
from tamis.broker.core.queue import StaleLease
from tamis.broker.http.access import Access
from tamis.broker.http.consumers import until_first_ends, wait_until_gone
from tamis.broker.http.ingest import (
    BadRequest,
    Receive,
    Scope,
    Send,
    authorization_of,
    headers_in,
    refuse,
)
from tamis.broker.http.problems import status_of
from tamis.broker.service import Service, Taken, Watch
from tamis.core.errors import TamisError

ROUTE = re.compile(r"/v1/topics/([^/]+)/subscriptions/([^/]+)/(events|socket)")
HEARTBEAT_S = 15.0
_LEASE_S = 40 * HEARTBEAT_S  # a client that connects again ends it before
_MOST = 100
_WINDOW_MAX = 1_000
_RESTARTS = 1012
_EVENT_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class Streams:
    """ASGI applications for ``GET …/events`` and for the WebSocket ``…/socket``."""

    def __init__(self, service: Service, access: Access) -> None:
        self._service, self._access = service, access

    def _named(self, scope: Scope) -> tuple[str, str, dict[str, str]]:
        """The topic and the subscription that a request names, and its headers."""
        headers = headers_in(scope)
        query = parse_qs(scope["query_string"].decode("latin-1"))
        authorization = authorization_of(scope)
        token = self._access.check(authorization, "subscribe")
        headers["authorization"] = authorization or ""
        match = ROUTE.fullmatch(scope["path"])
        assert match is not None, "the caller looks at the path"
        for name in ("last-event-id", "window"):
            if name in query:
                headers.setdefault(name, query[name][0])
        return f"{token.tenant}/{unquote(match[1])}", unquote(match[2]), headers

    # -- server-sent events ------------------------------------------------------------------------

    async def events(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for server-sent events."""
        try:
            topic, id, headers = self._named(scope)
            if scope["method"] != "GET":
                raise BadRequest("events are read with GET")
            if last := headers.get("last-event-id"):
                number = _number(last)
                await self._service.change(
                    lambda core, request: core.rewind(request, topic, id, number)
                )
            async with self._watched(topic, id, receive) as (watch, gone):
                head = {"type": "http.response.start", "status": 200, "headers": _EVENT_HEADERS}
                await send(head)
                # The client connects again, and is told what is the matter.
                with suppress(OSError, TamisError):
                    authorization = headers["authorization"]
                    await self._send_events(topic, id, authorization, watch, gone, send)
                with suppress(Exception):
                    await send({"type": "http.response.body", "body": b""})
        except TamisError as error:
            await refuse(send, error)

    async def _send_events(
        self, topic: str, id: str, authorization: str,
        watch: Watch, gone: asyncio.Future[Any], send: Send,
    ) -> None:  # fmt: skip
        # Without the number up to which it has everything, the client could not say so if the
        # connection ends while the first messages are on their way.
        received = await self._service.ask(lambda core: core.received(topic, id))
        body = b"retry: 1000\n" + (b"" if received is None else b"id: %d\n" % received) + b"\n"
        while not (gone.done() or self._service.is_draining):
            if body:
                await send({"type": "http.response.body", "body": body, "more_body": True})
                body = b""
            if not watch.has_messages:
                await watch.wait()
                if not watch.has_messages:
                    self._access.check(authorization, "subscribe")  # it may have been revoked
                    body = b":\n\n"
                continue
            taken = await _take(self._service, topic, id, _MOST, watch)
            if taken.lease is None:
                continue
            numbers = [delivery.number for delivery in taken.lease.deliveries]
            safe = _last_ids(numbers, taken.first_left)
            async for made in self._service.deliveries(topic, taken):
                body = b"".join(_event(each, each["number"] in safe) for each in made)
                await send({"type": "http.response.body", "body": body, "more_body": True})
                body = b""
            if gone.done():
                await self._service.release(topic, id, taken.lease.token)
            else:
                self._service.acknowledge_soon(topic, id, taken.lease.token, numbers)

    @asynccontextmanager
    async def _watched(
        self, topic: str, id: str, receive: Receive
    ) -> AsyncIterator[tuple[Watch, asyncio.Future[Any]]]:
        """A watch, and what is done when the client has gone."""
        async with self._service.watch(topic, id) as watch:
            gone = asyncio.ensure_future(wait_until_gone(receive))
            gone.add_done_callback(lambda _: watch.wake())
            try:
                yield watch, gone
            finally:
                gone.cancel()

    # -- WebSockets --------------------------------------------------------------------------------

    async def socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a WebSocket: messages go out, acknowledgements come in."""
        await receive()  # websocket.connect
        try:
            topic, id, headers = self._named(scope)
            window = min(_number(headers.get("window", "100")), _WINDOW_MAX)
            async with self._service.watch(topic, id) as watch:
                await send({"type": "websocket.accept"})
                socket = _Socket(self._service, self._access, topic, id, window, watch, send)
                await socket.run(receive, headers["authorization"])
                with suppress(Exception):  # it ends as the broker does, or the client has gone
                    await send({"type": "websocket.close", "code": _RESTARTS})
        except TamisError as error:
            with suppress(Exception):
                reason = str(error).encode()[:120].decode("utf-8", "ignore")
                code = 4000 + status_of(error)
                await send({"type": "websocket.close", "code": code, "reason": reason})


def _last_ids(numbers: Sequence[int], first_left: int | None) -> set[int]:
    """The numbers that are larger than none that comes later: a client that has them has all.

    >>> _last_ids([3, 5, 4, 9], 8)
    {3, 4}
    """
    found, least = set(), sys.maxsize if first_left is None else first_left
    for number in reversed(numbers):
        if number < least:
            found.add(number)
        least = min(least, number)
    return found


def _event(delivery: dict[str, Any], is_last_id: bool) -> bytes:
    id = b"id: %d\n" % delivery["number"] if is_last_id else b""
    return b"%bdata: %b\n\n" % (id, orjson.dumps(delivery))


async def _take(service: Service, topic: str, id: str, most: int, watch: Watch) -> Taken:
    """What there is now; else the watch receives when there may be something."""
    watch.has_messages = False
    taken = await service.try_take(topic, id, most, _LEASE_S)
    if taken.number != watch.number:
        if taken.lease is not None:
            await service.release(topic, id, taken.lease.token)
        raise UnknownName(f"the subscription {id!r} was removed, and made again")
    if taken.lease is not None:
        watch.has_messages = True
    elif taken.due is not None:
        watch.receive_in(taken.due - service.clock())
    return taken


class _Socket:
    """A WebSocket that is open.

    It has one lease at a time, of at most as many messages as the window; the next one begins when
    all are acknowledged or failed.
    """

    def __init__(
        self, service: Service, access: Access, topic: str, id: str, window: int, watch: Watch,
        send: Send,
    ) -> None:  # fmt: skip
        self._service, self._access = service, access
        self._topic, self._id, self._window = topic, id, max(1, window)
        self._watch, self._send = watch, send
        self._token, self._is_ordered = 0, True
        self._left: set[int] = set()
        self._last = 0  # the largest number that was sent

    async def run(self, receive: Receive, authorization: str) -> None:
        """Send and receive until the client goes, or its token is revoked."""
        try:
            await until_first_ends(self._send_messages(authorization), self._receive(receive))
        finally:
            if self._left:
                await self._service.release(self._topic, self._id, self._token)

    async def _send_messages(self, authorization: str) -> None:
        while not self._service.is_draining:
            if self._left or not self._watch.has_messages:
                await self._watch.wait()
                self._access.check(authorization, "subscribe")
                if self._left:
                    with suppress(StaleLease):  # the last of it is acknowledged just now
                        await self._service.extend(self._topic, self._id, self._token, _LEASE_S)
                continue
            taken = await _take(self._service, self._topic, self._id, self._window, self._watch)
            if taken.lease is None:
                continue
            self._token = taken.lease.token
            self._is_ordered = taken.subscription.options.is_ordered
            self._left = {delivery.number for delivery in taken.lease.deliveries}
            self._last = max(self._last, *self._left)
            async for made in self._service.deliveries(self._topic, taken):
                for each in made:
                    text = orjson.dumps(each).decode()
                    await self._send({"type": "websocket.send", "text": text})

    async def _receive(self, receive: Receive) -> None:
        while True:
            event = await receive()
            if event["type"] == "websocket.disconnect":
                return
            await self._follow(event.get("text") or event.get("bytes") or "")
            if not self._left:
                self._watch.receive()

    async def _follow(self, text: str | bytes) -> None:
        """Follow what a client says: ``{"acknowledge": [1, 2]}`` or ``{"fail": 3}``."""
        try:
            said = orjson.loads(text)
            acknowledged = [int(number) for number in said.get("acknowledge", [])]
            failed, reason = said.get("fail"), str(said.get("reason", "the consumer refused it"))
        except (orjson.JSONDecodeError, AttributeError, TypeError, ValueError):
            raise BadRequest('say {"acknowledge": [numbers]} or {"fail": number}') from None
        named = [*acknowledged, *([failed] if isinstance(failed, int) else [])]
        if named and max(named) > self._last:
            raise BadRequest(f"the message {max(named)} was not sent")
        if done := self._left.intersection(acknowledged):  # others are acknowledged
            await self._service.acknowledge(self._topic, self._id, self._token, [*done])
            last = max(done) if self._is_ordered else 0
            self._left = {each for each in self._left if each > last and each not in done}
        if failed in self._left:
            await self._fail(failed, reason[:500])

    async def _fail(self, number: int, reason: str) -> None:
        await self._service.fail(self._topic, self._id, self._token, number, reason)
        if self._is_ordered:
            self._left.clear()  # the lease ended
        self._left.discard(number)


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,12}", text):
        raise BadRequest(f"{text[:20]!r} is not the number of a message")
    return int(text)
