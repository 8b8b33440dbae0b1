"""``Connections``: HTTP connections to permitted addresses, with limits on their number.

The resolver looks a name up once for each connection, and checks all addresses of the name. It
gives the addresses to aiohttp, so nothing looks the name up again. aiohttp does not ask it about an
address in a URL. So a second check stands where aiohttp makes a socket: no connection is without.
TLS verifies the certificate against the name. A connection that is used again passed both checks,
since the guard never changes.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import NamedTuple, TypeAlias

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from tamis.broker.delivery.addresses import AddressGuard, Endpoint, EndpointRefused
from tamis.core.errors import UsageError

Lookup: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a name and a port to all addresses of the name; raises ``OSError`` if there are none."""
_AddressInfo: TypeAlias = tuple[int, int, int, str, tuple[object, ...]]

_ADDRESSES_MAX = 8  # of one name: a name must not start hundreds of connections
_LOOKUPS_MAX = 16


class ConnectionOptions(NamedTuple):
    """How connections are made.

    Attributes:
        connect_s: for the lookup of the name, TCP and TLS together.
        connections_max, connections_per_endpoint_max: attempts that run at a time.
        keepalive_s: how long an unused connection stays open. It is shorter than what servers
            commonly use (5 s), so that they seldom close a connection just as an attempt begins.
        kept_endpoints_max: connections to further endpoints close after each attempt. This limits
            the number of unused connections.
    """

    connect_s: float = 5.0
    connections_max: int = 1_000
    connections_per_endpoint_max: int = 4
    keepalive_s: float = 4.0
    kept_endpoints_max: int = 64


@dataclass(slots=True)
class _Slots:
    """The attempts to one endpoint.

    Attributes:
        free: how many more may run.
        is_kept: whether connections stay open after an attempt.
        attempts: that run or wait.
        used: when the last one ended.
    """

    free: asyncio.Semaphore
    is_kept: bool
    attempts: int = 0
    used: float = field(default_factory=time.monotonic)


class Connections:
    """Sessions of aiohttp that connect to permitted addresses only. Make it in a running loop.

    Args:
        lookup: another way to find the addresses of a name.
        tls: a context with other certificate authorities. It must verify certificates and names.
    """

    def __init__(
        self,
        guard: AddressGuard,
        options: ConnectionOptions,
        lookup: Lookup | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        tls = tls or ssl.create_default_context()
        if not tls.check_hostname or tls.verify_mode != ssl.CERT_REQUIRED:
            raise UsageError(
                "webhooks need a TLS context that verifies certificates and host names"
            )
        self._guard, self._options, self._tls = guard, options, tls
        self._threads = ThreadPoolExecutor(_LOOKUPS_MAX, "tamis-dns")
        self._resolver = _Resolver(guard, lookup or self._look_up)
        self._endpoints: OrderedDict[tuple[str, int], _Slots] = OrderedDict()
        self._free = asyncio.Semaphore(options.connections_max)
        self._keeping, self._closing = self._session(True), self._session(False)

    async def close(self) -> None:
        """Closes all connections; attempts that run fail."""
        await self._keeping.close()
        await self._closing.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    @asynccontextmanager
    async def session(self, endpoint: Endpoint) -> AsyncIterator[aiohttp.ClientSession]:
        """Waits until an attempt to the endpoint may run, and gives the session for it.

        An attempt waits for its endpoint first: an endpoint with many slow attempts does not hold
        what others need.
        """
        key = (endpoint.host, endpoint.port)
        slots = self._endpoints.get(key)
        if slots is None:
            self._forget()
            free = asyncio.Semaphore(self._options.connections_per_endpoint_max)
            is_kept = len(self._endpoints) < self._options.kept_endpoints_max
            slots = self._endpoints[key] = _Slots(free, is_kept)
        slots.attempts += 1
        try:
            async with slots.free, self._free:
                yield self._keeping if slots.is_kept else self._closing
        finally:
            slots.attempts -= 1
            slots.used = time.monotonic()
            self._endpoints.move_to_end(key)

    def _forget(self) -> None:
        """Forgets endpoints whose connections are closed by now."""
        over = time.monotonic() - 2 * self._options.keepalive_s - 1.0
        while self._endpoints:
            key, slots = next(iter(self._endpoints.items()))
            if slots.attempts or slots.used > over:
                return
            del self._endpoints[key]

    def _session(self, is_kept: bool) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            resolver=self._resolver,
            socket_factory=self._socket,
            ssl=self._tls,
            use_dns_cache=False,
            limit=0,  # session() limits them
            force_close=not is_kept,
            keepalive_timeout=self._options.keepalive_s if is_kept else None,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=self._options.connect_s),
            trust_env=False,  # no proxy, no .netrc
            auto_decompress=False,
        )

    def _socket(self, info: _AddressInfo) -> socket.socket:
        """Makes a socket for an address, if it may be called."""
        if refusal := self._guard.refusal(ip_address(str(info[4][0]))):
            raise EndpointRefused(refusal)
        return socket.socket(info[0], info[1], info[2])

    async def _look_up(self, host: str, port: int) -> list[str]:
        """Asks the system. It has threads of its own: slow name servers stop nothing else."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _system_addresses, host, port)
        return found


def _system_addresses(host: str, port: int) -> list[str]:
    flags = socket.AI_ADDRCONFIG
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [str(address[0]) for _, _, _, _, address in found]


class _Resolver(AbstractResolver):
    """Looks names up, and gives their addresses to aiohttp if all of them may be called."""

    def __init__(self, guard: AddressGuard, lookup: Lookup) -> None:
        self._guard, self._lookup = guard, lookup

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Overrides; an address that is refused raises ``EndpointRefused``."""
        addresses = self._guard.permitted(await self._lookup(host, port))[:_ADDRESSES_MAX]
        if not addresses:
            raise OSError(f"{host} has no address")
        return [
            ResolveResult(
                hostname=host,
                host=str(each),
                port=port,
                family=socket.AF_INET if each.version == 4 else socket.AF_INET6,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for each in addresses
        ]

    async def close(self) -> None:
        """Overrides: there is nothing to close."""
