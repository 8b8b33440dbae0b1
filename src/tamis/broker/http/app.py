"""``App``: the broker as an ASGI application, and the process that serves it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from granian.constants import HTTPModes
from granian.http import HTTP1Settings
from granian.server.embed import Server
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from tamis import __version__
from tamis.broker.core.model import Quotas
from tamis.broker.delivery.addresses import AddressGuard, Network
from tamis.broker.delivery.webhooks import WebhookSender
from tamis.broker.dispatch import Dispatcher
from tamis.broker.http import consumers, described, ingest, metrics, problems, routes, streams
from tamis.broker.http.access import RIGHTS, Access
from tamis.broker.http.forwarding import Forwarding
from tamis.broker.payloads import rfc3339
from tamis.broker.service import Service
from tamis.broker.store.sqlite import SqliteStore
from tamis.broker.store.writing import Store
from tamis.core.errors import MissingExtra, TamisError, UsageError

log = logging.getLogger("tamis.broker")

_CONNECTIONS_MAX = 100_000
_DESCRIPTORS_MIN = 16_384
_HEADERS_BYTES_MAX = 65_536
_REFRESH_S = 0.5
_COLLECTOR = "OTEL_EXPORTER_OTLP_ENDPOINT"
"""The variable of the environment that says where spans are sent."""


class ServeOptions(NamedTuple):
    """How a broker is served.

    Attributes:
        data: the folder that it keeps everything in; with a store elsewhere, the indexes.
        origins: of web pages that browsers may read the answers in.
        store: the URL of a database of PostgreSQL, which other processes share; None: a file.
        address: the URL under which these reach this process; None: of the host and port.
        allowed: networks that webhooks may be sent to, though they are private.
        is_http_allowed: whether a webhook may be sent without TLS.
        bodies: how large and how slow the body of a request may be.
    """

    data: Path
    host: str = "127.0.0.1"
    port: int = 8080
    allowed: tuple[Network, ...] = ()
    is_http_allowed: bool = False
    quotas: Quotas = Quotas()
    bodies: ingest.IngestOptions = ingest.IngestOptions()
    origins: tuple[str, ...] = ()
    store: str | None = None
    address: str | None = None

    @property
    def url(self) -> str:
        """Where requests are answered."""
        return f"http://{self.host}:{self.port}"


class JsonLines(logging.Formatter):
    """A record of a log as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        found = {
            "time": rfc3339(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(found).decode()


class App:
    """An ASGI application: the hot routes, and FastAPI for all others."""

    def __init__(
        self,
        service: Service,
        access: Access,
        guard: AddressGuard,
        bodies: ingest.IngestOptions = ingest.IngestOptions(),
        forwarding: Forwarding | None = None,
    ) -> None:
        self._forwarding = forwarding
        self._access, self._bodies = access, ingest.Bodies(bodies)
        self._ingest = ingest.Ingest(service, access, self._bodies)
        self._streams = streams.Streams(service, access)
        self.rest = _rest(service, access, guard)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        kind, path = scope["type"], scope.get("path", "")
        if self._forwarding is not None and await self._forwarding(scope, receive, send):
            return
        if kind == "http" and scope["method"] == "POST" and ingest.ROUTE.fullmatch(path):
            await self._ingest(scope, receive, send)
        elif kind in ("http", "websocket") and (match := streams.ROUTE.fullmatch(path)):
            is_socket = match[3] == "socket"
            if is_socket == (kind == "websocket"):
                await (self._streams.socket if is_socket else self._streams.events)(
                    scope, receive, send
                )
            else:
                await self.rest(scope, receive, send)
        elif kind == "http" and path.startswith("/v1/"):
            await self._checked(scope, receive, send)
        else:
            await self.rest(scope, receive, send)

    async def _checked(self, scope: Any, receive: Any, send: Any) -> None:
        """Look at the token, and at the size of the body, before FastAPI reads all of it."""
        headers = ingest.headers_in(scope)
        try:
            self._access.check(headers.get("authorization"))
            if scope["method"] in ("POST", "PUT", "PATCH"):
                if scope["path"].endswith("/import"):
                    receive = ingest.timed(receive, self._bodies.options)
                else:
                    body = await self._bodies.read(headers, receive)
                    receive = ingest.replayed(receive, body)
        except TamisError as error:
            await ingest.refuse(send, error)
        else:
            await self.rest(scope, receive, send)


def _rest(service: Service, access: Access, guard: AddressGuard) -> FastAPI:
    rest = FastAPI(
        title="Tamis",
        version=__version__,
        description="Documents and events in, matches and messages out.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,  # what generated clients call it
    )
    rest.openapi = partial(described.openapi, rest)  # type: ignore[method-assign]
    rest.state.service, rest.state.access, rest.state.guard = service, access, guard
    rest.add_exception_handler(TamisError, problems.on_error)
    rest.add_exception_handler(HTTPException, problems.on_http_error)
    rest.add_exception_handler(RequestValidationError, problems.on_invalid)
    for each in (described.router, routes.router, consumers.router):
        rest.include_router(each)

    @rest.get("/healthz", tags=["operation"], response_class=PlainTextResponse)
    async def health() -> str:
        """Whether the process runs."""
        return "ok\n"

    @rest.get("/readyz", tags=["operation"], response_class=PlainTextResponse)
    async def ready() -> PlainTextResponse:
        """Whether messages are accepted."""
        try:
            async with asyncio.timeout(2.0):
                await service.ask(lambda core: len(core.topics))
        except (TamisError, TimeoutError) as error:
            reason = str(error) or "the broker does not answer"
            return PlainTextResponse(f"not ready: {reason}\n", 503)
        return PlainTextResponse("ok\n")

    @rest.get("/metrics", tags=["operation"], response_class=PlainTextResponse)
    async def measured(request: Request) -> PlainTextResponse:
        """Metrics, in the text format of Prometheus; those of topics for an operator's token."""
        authorization = request.headers.get("authorization")
        if authorization is not None:
            access.check(authorization, "operator")
        text = await metrics.text_of(service, with_topics=authorization is not None)
        return PlainTextResponse(text, media_type=metrics.CONTENT_TYPE)

    return rest


async def serve(options: ServeOptions, started: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        started: called with the URL, when requests are answered.

    Raises:
        StoreError: the store cannot be opened.
    """
    _check_port(options.host, options.port)
    _raise_descriptors()
    os.umask(0o077)  # messages, and secrets of webhooks, are the owner's alone
    options.data.mkdir(parents=True, exist_ok=True)
    guard = AddressGuard(options.allowed, options.is_http_allowed)
    service = Service(options.data / "index", _store_of(options), quotas=options.quotas)
    async with WebhookSender(guard) as sender, AsyncExitStack() as stack:
        dispatcher = Dispatcher(service, sender, guard)
        await service.start()
        try:
            access = Access(service)
            if not len(access):
                await _first_token(access, options.data)
            (options.data / "pid").write_text(f"{os.getpid()}\n")
            forwarding = None
            if options.store is not None:
                address = options.address or options.url
                forwarding = await stack.enter_async_context(Forwarding(service, access, address))
                stack.enter_context(_every(_REFRESH_S, access.refresh))
            app: Any = App(service, access, guard, options.bodies, forwarding)
            if options.origins:
                app = CORSMiddleware(
                    app, allow_origins=options.origins, allow_methods=["*"], allow_headers=["*"],
                    expose_headers=["etag", "location", "retry-after"],
                )  # fmt: skip
            if _COLLECTOR in os.environ:
                app = _traced(app, sender, stack)
            await _serve(app, service, options, started)
        finally:
            await dispatcher.close()
            await service.stop()
            (options.data / "pid").unlink(missing_ok=True)


def _traced(app: Any, sender: WebhookSender, stack: AsyncExitStack) -> Any:
    """An application, and a sender, whose spans are sent to a collector of OpenTelemetry."""
    try:
        from tamis.broker.http.tracing import Traces  # noqa: PLC0415 - an extra of its own
    except ModuleNotFoundError as error:
        raise MissingExtra("tracing", error.name or "opentelemetry") from None
    traces = Traces()
    stack.callback(traces.close)
    traces.sender(sender)
    return traces.app(app)


def _store_of(options: ServeOptions) -> Callable[[], Store]:
    """What opens the store; again, if it failed."""
    if options.store is None:
        return lambda: SqliteStore(options.data / "broker.db")
    from tamis.broker.store.postgres import PostgresStore  # noqa: PLC0415 - an extra of its own

    url, name = options.store, options.data / "process"
    if not name.exists():  # the next process with the same indexes is the same owner
        name.write_text(uuid4().hex)
    process, address = name.read_text(), options.address or options.url
    return lambda: PostgresStore(url, process=process, address=address)


@contextmanager
def _every(seconds: float, function: Callable[[], Awaitable[None]]) -> Iterator[None]:
    """Call a function again and again, until the end of the ``with`` block."""

    async def run() -> None:
        while True:
            await asyncio.sleep(seconds)
            with suppress(TamisError):  # the store cannot be read now
                await function()

    task = asyncio.ensure_future(run())
    try:
        yield
    finally:
        task.cancel()


def _check_port(host: str, port: int) -> None:
    """See that the address can be listened at: Granian ends the process if it cannot."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
    except OSError as error:
        message = f"cannot listen at {host}, port {port} ({error.strerror}): choose another port"
        raise UsageError(message) from None


def _raise_descriptors() -> None:
    """Permit as many open connections as the system does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS_MAX if hard == resource.RLIM_INFINITY else min(hard, _CONNECTIONS_MAX)
    if wanted > soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    if wanted < _DESCRIPTORS_MIN:
        log.warning("at most %d connections can be open: raise the limit of ulimit -n", wanted)


async def _first_token(access: Access, data: Path) -> None:
    """Make the token of the operator, in a file that only the operator reads."""
    _, text = await access.create("default", RIGHTS)
    descriptor = os.open(data / "token", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")


async def _serve(
    app: Any, service: Service, options: ServeOptions, started: Callable[[str], None]
) -> None:
    server = Server(
        app, options.host, options.port, interface="asginl", http=HTTPModes.http1,  # type: ignore[arg-type]
        backlog=4_096, backpressure=_CONNECTIONS_MAX, log_enabled=False,
        http1_settings=HTTP1Settings(max_buffer_size=max(8_192, _HEADERS_BYTES_MAX * 8)),
    )  # fmt: skip
    loop = asyncio.get_running_loop()
    ends = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ends.set)
    serving = asyncio.ensure_future(server.serve())
    waiting = asyncio.ensure_future(ends.wait())
    gc.freeze()  # to look at all modules again and again holds requests up for 0.1 s
    sys.setswitchinterval(0.0005)  # a thread that compiles holds the others up for less time
    gc.set_threshold(10_000)  # messages on their way are no garbage
    gc.enable()
    started(options.url)

    async def beat() -> None:
        service.beat()

    with _every(streams.HEARTBEAT_S, beat):  # one for all idle connections
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        serving.result()
    service.drain()
    server.stop()  # type: ignore[no-untyped-call]
    with suppress(TimeoutError):
        async with asyncio.timeout(10.0):
            await serving
