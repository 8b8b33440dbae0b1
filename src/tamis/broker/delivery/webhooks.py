"""``WebhookSender``: sends one attempt to deliver a message, and says what came of it.

>>> async def example(sender: WebhookSender, secret: str) -> None:
...     body = envelope("tamis.match", time.time(), {"topic": "news"})
...     attempt = Attempt("https://example.com/hook", "msg_1", body, (secret,), int(time.time()))
...     print((await sender.send(attempt)).reason)
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import NamedTuple, Self

import aiohttp
from yarl import URL

from tamis.broker.delivery.addresses import AddressGuard, Endpoint, EndpointRefused
from tamis.broker.delivery.connections import ConnectionOptions, Connections, Lookup
from tamis.broker.delivery.signing import envelope, headers_of
from tamis.core.errors import UsageError

__all__ = ["Attempt", "Outcome", "SenderOptions", "WebhookSender", "check_headers", "envelope"]

_RESERVED = re.compile(
    r"webhook-.*|proxy-.*|accept-encoding|connection|content-(encoding|length|type)|cookie|expect"
    r"|host|keep-alive|te|trailer|transfer-encoding|upgrade"
)
_NAME, _VALUE = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}"), re.compile(r"[ -~]{0,4096}")
_HEADERS_MAX = 32
_NAME_MISMATCH = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH


class SenderOptions(NamedTuple):
    """How attempts are made.

    Attributes:
        total_s: for an attempt, until the headers of the answer are there. The wait for a free
            connection does not count.
        drain_s, drain_bytes_max: how long, and how much of the body of an answer, is read. What is
            read is dropped: it only lets the connection be used again.
        retry_after_s_max: an endpoint cannot ask for a longer pause.
    """

    total_s: float = 15.0
    drain_s: float = 1.0
    drain_bytes_max: int = 65_536
    retry_after_s_max: float = 3_600.0
    connections: ConnectionOptions = ConnectionOptions()


class Attempt(NamedTuple):
    """One try to deliver a message.

    Attributes:
        id: of the message, the same in all attempts.
        secrets: see :func:`tamis.broker.delivery.signing.headers_of`.
        timestamp: now, in seconds since 1970.
        headers: further ones that the subscriber asked for.
    """

    url: str
    id: str
    body: bytes
    secrets: tuple[str, ...]
    timestamp: int
    content_type: str = "application/json"
    headers: Mapping[str, str] = MappingProxyType({})


class Outcome(NamedTuple):
    """What came of an attempt.

    Attributes:
        reason: one line that says what happened. It has no text that the endpoint chose.
        status: of the answer; None if there was none.
        retry_after_s: how long the endpoint asks to wait (statuses 429 and 503).
        seconds: how long the attempt took.
        is_gone: the endpoint wants no more webhooks (status 410): disable the subscription.
    """

    is_delivered: bool
    reason: str
    status: int | None = None
    retry_after_s: float | None = None
    seconds: float = 0.0
    is_gone: bool = False


def check_headers(headers: Mapping[str, str]) -> None:
    """Checks the further headers of a subscription.

    Raises:
        UsageError: a header cannot be sent, or the sender sets it itself.
    """
    if len(headers) > _HEADERS_MAX:
        raise UsageError(f"a webhook has at most {_HEADERS_MAX} further headers")
    for name, value in headers.items():
        if not _NAME.fullmatch(name):
            raise UsageError(f"{name!a} is not the name of a header")
        if _RESERVED.fullmatch(name.lower()):
            raise UsageError(f"the header {name} cannot be chosen: leave it out")
        if not _VALUE.fullmatch(value):
            raise UsageError(f"the value of the header {name} is not visible ASCII on one line")


class WebhookSender:
    """Sends webhooks. Use it with ``async with``; one sender serves all subscriptions.

    Args:
        guard: which URLs and addresses may be called.
        lookup, tls: see :class:`tamis.broker.delivery.connections.Connections`.
        clock: seconds since 1970, for answers that give a date to come back.
    """

    def __init__(
        self,
        guard: AddressGuard | None = None,
        options: SenderOptions | None = None,
        *,
        lookup: Lookup | None = None,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._guard, self._options = guard or AddressGuard(), options or SenderOptions()
        self._clock = clock
        self._lookup, self._tls = lookup, tls
        self._connections: Connections | None = None

    async def __aenter__(self) -> Self:
        self._connections = Connections(
            self._guard, self._options.connections, self._lookup, self._tls
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._connections:
            await self._connections.close()
            self._connections = None

    async def send(self, attempt: Attempt) -> Outcome:
        """Sends a request and waits for the headers of the answer.

        Whatever the endpoint does, and whatever is wrong with the attempt, is told by the outcome
        and raises nothing.

        Raises:
            UsageError: the sender is not open.
        """
        if self._connections is None:
            raise UsageError("the sender is not open: use it with async with")
        try:
            endpoint = self._guard.endpoint(attempt.url)
            headers = _headers(attempt)
        except UsageError as error:
            return Outcome(False, str(error))
        async with self._connections.session(endpoint) as session:
            begin = time.monotonic()
            outcome = await self._send(session, endpoint, attempt.body, headers)
            return outcome._replace(seconds=time.monotonic() - begin)

    async def _send(
        self,
        session: aiohttp.ClientSession,
        endpoint: Endpoint,
        body: bytes,
        headers: dict[str, str],
    ) -> Outcome:
        try:
            async with asyncio.timeout(self._options.total_s):
                response = await session.post(
                    URL(endpoint.url, encoded=True),
                    data=io.BytesIO(body),  # aiohttp warns of long bytes
                    headers=headers,
                    allow_redirects=False,
                )
        except Exception as error:  # no answer of an endpoint may end the delivery to others
            return Outcome(False, self._reason(error, endpoint.host))
        try:
            await self._drain(response)
        finally:
            response.close()  # does nothing if the whole body was read
        return self._outcome(response)

    async def _drain(self, response: aiohttp.ClientResponse) -> None:
        """Reads the body, within limits. The status says already what came of the attempt."""
        left = self._options.drain_bytes_max
        with suppress(Exception):
            async with asyncio.timeout(self._options.drain_s):
                while left > 0 and (read := await response.content.read(left)):
                    left -= len(read)

    def _outcome(self, response: aiohttp.ClientResponse) -> Outcome:
        status = response.status
        reason = f"status {status}"
        if 300 <= status <= 399:
            reason += ": redirects are not followed"
        asked = response.headers.get("Retry-After") if status in (429, 503) else None
        return Outcome(
            is_delivered=200 <= status <= 299,
            reason=reason,
            status=status,
            retry_after_s=None if asked is None else self._retry_after(asked),
            is_gone=status == 410,
        )

    def _retry_after(self, text: str) -> float | None:
        """The pause that a header asks for, in seconds or as a date; None if it is neither."""
        if re.fullmatch(r"[0-9]+", text):
            seconds = float(text[:16])
        else:
            try:
                date = parsedate_to_datetime(text)
                seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
            except (TypeError, ValueError, OverflowError):
                return None
            seconds -= self._clock()
        return min(max(seconds, 0.0), self._options.retry_after_s_max)

    def _reason(self, error: Exception, host: str) -> str:
        """One line that says why there was no answer."""
        match error:
            case EndpointRefused():
                return str(error)
            case aiohttp.ConnectionTimeoutError():
                return f"no connection within {self._options.connections.connect_s:g} s"
            case TimeoutError():
                return f"no answer within {self._options.total_s:g} s"
            case aiohttp.ClientConnectorCertificateError(certificate_error=cause):
                if getattr(cause, "verify_code", None) in _NAME_MISMATCH:
                    return f"the certificate is not valid for {host}"
                return f"the certificate is not trusted: {getattr(cause, 'verify_message', cause)}"
            case aiohttp.ClientConnectorSSLError():
                return "the endpoint does not speak TLS as it should"
            case aiohttp.ClientConnectorDNSError():
                return f"the name {host} has no address"
            case aiohttp.ClientConnectorError():
                why = os.strerror(error.errno).lower() if error.errno else "several reasons"
                return f"no connection: {why}"
            case aiohttp.ServerDisconnectedError() | aiohttp.ClientOSError():
                return "the endpoint closed the connection before it answered"
            case aiohttp.ClientResponseError():
                return "the answer is not HTTP, or its headers are too large"
        return f"the attempt failed: {type(error).__name__}"


def _headers(attempt: Attempt) -> dict[str, str]:
    check_headers(attempt.headers)
    if not _VALUE.fullmatch(attempt.content_type):
        raise UsageError("the content type is not visible ASCII on one line")
    return {
        "User-Agent": "tamis-webhooks",
        **attempt.headers,
        "Accept-Encoding": "identity",
        "Content-Type": attempt.content_type,
        **headers_of(attempt.id, attempt.timestamp, attempt.body, attempt.secrets),
    }
