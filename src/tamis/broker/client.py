"""``Client`` and ``AsyncClient``: a broker, as programs use it.

>>> def example() -> None:
...     with Client("http://127.0.0.1:8080", "@broker/token") as client:
...         client.create_topic("orders")
...         client.subscribe("orders", "large", "//order[total > 100]", payload="document")
...         client.publish("orders", "<order><total>250</total></order>")
...         for message in client.messages("orders", "large"):
...             print(message["document"])

Both have the operations of :mod:`tamis.broker.calls`.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, suppress
from pathlib import Path
from random import random
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx2
import orjson

from tamis.broker import calls
from tamis.broker.calls import (
    BrokerProblem,
    BrokerUnreachable,
    Call,
    Json,
    Lease,
    Published,
    path_of,
    problem_in,
)
from tamis.core.errors import TamisError, UsageError

__all__ = ["AsyncClient", "BrokerProblem", "BrokerUnreachable", "Client", "Lease", "Published"]

P = ParamSpec("P")
T = TypeVar("T")
_URL = "http://127.0.0.1:8080"
_ATTEMPTS, _DELAY_S, _RETRY_AFTER_S_MAX = 6, 0.1, 60.0
_TIMEOUT_S = 30.0


class _Base:
    """What both clients know.

    Args:
        url: of the broker; else the environment variable ``TAMIS_URL``.
        token: ``tms_…``, or ``@FILE``, which has it; else the environment variable ``TAMIS_TOKEN``.

    Raises:
        UsageError: there is no such file, or the URL is none.
    """

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        self.url = (url or os.environ.get("TAMIS_URL") or _URL).rstrip("/")
        try:
            if httpx2.URL(self.url).scheme not in ("http", "https"):
                raise UsageError(f"the URL of a broker is http://… or https://…, not {self.url!r}")
        except httpx2.InvalidURL as error:
            raise UsageError(f"{self.url!r} is not a URL: {error}") from None
        token = token or os.environ.get("TAMIS_TOKEN") or ""
        if token.startswith("@"):
            try:
                token = Path(token[1:]).read_text(encoding="utf-8")
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", error)
                raise UsageError(f"cannot read the token in {token[1:]}: {reason}") from None
        token = token.strip()
        if not (token.isascii() and token.isprintable()):
            raise UsageError("a token is tms_ and further ASCII characters on one line")
        self._settings: dict[str, Any] = {
            "base_url": self.url,
            "headers": {"authorization": f"Bearer {token}"} if token else {},
            "timeout": _TIMEOUT_S,
        }

    def _pause(
        self, is_safe: bool, attempt: int, answer: httpx2.Response | httpx2.TransportError
    ) -> float:
        """How long to wait before a request that failed is sent again.

        Args:
            attempt: from 1.

        Raises:
            BrokerProblem: the broker refused the request.
            BrokerUnreachable: there is no answer.
        """
        may = is_safe and attempt < _ATTEMPTS
        pause = random() * _DELAY_S * 2.0**attempt
        if isinstance(answer, httpx2.TransportError):
            if may:
                return pause
            reason = str(answer) or type(answer).__name__
            raise BrokerUnreachable(
                f"{self.url} does not answer ({reason}): is `tamis serve` running there?"
            ) from answer
        after = answer.headers.get("retry-after", "")
        if may and answer.status_code in (409, 429, 503) and after.isdecimal():
            return pause + min(float(after), _RETRY_AFTER_S_MAX)
        try:
            raise problem_in(answer.json())
        except (ValueError, KeyError, TypeError):
            detail = f"{self.url} answers with status {answer.status_code}: is it a broker?"
            raise BrokerProblem(answer.status_code, "http", detail) from None


def _request(call: Call[Any]) -> dict[str, Any]:
    return {
        "method": call.method,
        "url": call.path,
        "content": call.content,
        "headers": call.headers,
        "timeout": _TIMEOUT_S + call.waits_s,
    }


def _events(topic: str, id: str, last: int | str | None) -> dict[str, Any]:
    headers = {} if last is None else {"last-event-id": str(last)}
    return {"method": "GET", "url": path_of(topic, id, "/events"), "headers": headers}


# -- for threads -----------------------------------------------------------------------------------


def _sync(make: Callable[P, Call[T]]) -> Callable[Concatenate[Client, P], T]:
    @functools.wraps(make)
    def operation(client: Client, /, *args: P.args, **named: P.kwargs) -> T:
        return client.call(make(*args, **named))

    return operation


class Client(_Base):
    """A client for threads; use it with ``with``. See ``_Base`` for its arguments."""

    create_topic = _sync(calls.create_topic)
    delete_topic = _sync(calls.delete_topic)
    topics = _sync(calls.topics)
    publish = _sync(calls.publish)
    publish_many = _sync(calls.publish_many)
    subscribe = _sync(calls.subscribe)
    replace = _sync(calls.replace)
    unsubscribe = _sync(calls.unsubscribe)
    subscription = _sync(calls.subscription)
    subscription_page = _sync(calls.subscription_page)
    import_subscriptions = _sync(calls.import_subscriptions)
    lease = _sync(calls.lease)
    acknowledge = _sync(calls.acknowledge)
    fail = _sync(calls.fail)
    release = _sync(calls.release)

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        super().__init__(url, token)
        self._http = httpx2.Client(**self._settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; leaving ``with`` does so, too."""
        self._http.close()

    def call(self, call: Call[T]) -> T:
        """Send a request; again, if it is safe and the broker has no time."""
        attempt = 0
        while True:
            attempt += 1
            failed: httpx2.Response | httpx2.TransportError
            try:
                failed = answer = self._http.request(**_request(call))
                if answer.is_success:
                    return call.read(answer)
            except httpx2.TransportError as error:
                failed = error
            time.sleep(self._pause(call.is_safe, attempt, failed))

    def subscriptions(self, topic: str) -> Generator[Json, None, None]:
        """All subscriptions of a topic."""
        after: str | None = ""
        while after is not None:
            page = self.subscription_page(topic, after)
            yield from page["items"]
            after = page["next"]

    def messages(
        self, topic: str, id: str, *, count: int | None = None, most: int = 100,
        lease_s: float = 60.0, wait_s: float = 20.0,
    ) -> Generator[Json, None, None]:  # fmt: skip
        """Messages; each is acknowledged when the next one is asked for.

        After an error, or when the time of a lease is over, a message comes once more.

        Args:
            count: end after so many; else there is no end.
            most: fetch so many at a time.
        """
        left = sys.maxsize if count is None else count
        while left > 0:
            max = min(most, left)
            held = self.lease(topic, id, max=max, lease_s=lease_s, wait_s=wait_s)
            token, waiting = held.token or 0, held.messages
            try:
                while waiting:
                    yield waiting[0]
                    self.acknowledge(topic, id, token, [waiting[0]["number"]])
                    del waiting[0]
                    left -= 1
            except BrokerProblem as problem:
                if problem.code != "broker-lease":
                    raise
            finally:
                if waiting:
                    with suppress(TamisError):
                        self.release(topic, id, token)

    def events(self, topic: str, id: str, last: int | None = None) -> Generator[Json, None, None]:
        """Messages as server-sent events, without end: connects again when a connection ends.

        Args:
            last: the number of the last message that the caller has: all later ones come again.
        """
        received, attempt = None if last is None else str(last), 0
        while True:
            attempt += 1
            failed: httpx2.Response | httpx2.TransportError
            try:
                with self._http.stream(**_events(topic, id, received)) as answer:
                    failed = answer
                    if not answer.is_success:
                        answer.read()
                    for event in httpx2.EventSource(answer, None) if answer.is_success else ():
                        attempt = 0
                        if event.data:
                            yield orjson.loads(event.data)
                        received = event.id or received
            except httpx2.TransportError as error:
                failed = error
            ended = isinstance(failed, httpx2.Response) and failed.is_success
            time.sleep(_DELAY_S if ended else self._pause(True, attempt, failed))


# -- for asyncio -----------------------------------------------------------------------------------


def _async(make: Callable[P, Call[T]]) -> Callable[Concatenate[AsyncClient, P], Awaitable[T]]:
    @functools.wraps(make)
    def operation(client: AsyncClient, /, *args: P.args, **named: P.kwargs) -> Awaitable[T]:
        return client.call(make(*args, **named))

    return operation


class AsyncClient(_Base):
    """A client for asyncio; use it with ``async with``. See :class:`Client`."""

    create_topic = _async(calls.create_topic)
    delete_topic = _async(calls.delete_topic)
    topics = _async(calls.topics)
    publish = _async(calls.publish)
    publish_many = _async(calls.publish_many)
    subscribe = _async(calls.subscribe)
    replace = _async(calls.replace)
    unsubscribe = _async(calls.unsubscribe)
    subscription = _async(calls.subscription)
    subscription_page = _async(calls.subscription_page)
    import_subscriptions = _async(calls.import_subscriptions)
    lease = _async(calls.lease)
    acknowledge = _async(calls.acknowledge)
    fail = _async(calls.fail)
    release = _async(calls.release)

    def __init__(self, url: str | None = None, token: str | None = None) -> None:
        super().__init__(url, token)
        self._http = httpx2.AsyncClient(**self._settings)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """See :meth:`Client.close`."""
        await self._http.aclose()

    async def call(self, call: Call[T]) -> T:
        """See :meth:`Client.call`."""
        attempt = 0
        while True:
            attempt += 1
            failed: httpx2.Response | httpx2.TransportError
            try:
                failed = answer = await self._http.request(**_request(call))
                if answer.is_success:
                    return call.read(answer)
            except httpx2.TransportError as error:
                failed = error
            await asyncio.sleep(self._pause(call.is_safe, attempt, failed))

    async def subscriptions(self, topic: str) -> AsyncGenerator[Json, None]:
        """See :meth:`Client.subscriptions`."""
        after: str | None = ""
        while after is not None:
            page = await self.subscription_page(topic, after)
            for each in page["items"]:
                yield each
            after = page["next"]

    async def messages(
        self, topic: str, id: str, *, count: int | None = None, most: int = 100,
        lease_s: float = 60.0, wait_s: float = 20.0,
    ) -> AsyncGenerator[Json, None]:  # fmt: skip
        """See :meth:`Client.messages`; close it with ``contextlib.aclosing``."""
        left = sys.maxsize if count is None else count
        while left > 0:
            max = min(most, left)
            held = await self.lease(topic, id, max=max, lease_s=lease_s, wait_s=wait_s)
            token, waiting = held.token or 0, held.messages
            try:
                while waiting:
                    yield waiting[0]
                    await self.acknowledge(topic, id, token, [waiting[0]["number"]])
                    del waiting[0]
                    left -= 1
            except BrokerProblem as problem:
                if problem.code != "broker-lease":
                    raise
            finally:
                if waiting:
                    with suppress(TamisError):
                        await self.release(topic, id, token)

    async def events(
        self, topic: str, id: str, last: int | None = None
    ) -> AsyncGenerator[Json, None]:
        """See :meth:`Client.events`; close it with ``contextlib.aclosing``."""
        received, attempt = None if last is None else str(last), 0
        while True:
            attempt += 1
            failed: httpx2.Response | httpx2.TransportError
            try:
                async with self._http.stream(**_events(topic, id, received)) as answer:
                    failed = answer
                    if answer.is_success:
                        async with aclosing(aiter(httpx2.EventSource(answer, None))) as source:  # type: ignore[type-var]
                            async for event in source:
                                attempt = 0
                                if event.data:
                                    yield orjson.loads(event.data)
                                received = event.id or received
                    else:
                        await answer.aread()
            except httpx2.TransportError as error:
                failed = error
            ended = isinstance(failed, httpx2.Response) and failed.is_success
            await asyncio.sleep(_DELAY_S if ended else self._pause(True, attempt, failed))
