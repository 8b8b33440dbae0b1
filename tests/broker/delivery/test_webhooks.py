"""``WebhookSender`` against local servers that are kind, slow, broken and hostile."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from email.utils import formatdate
from ipaddress import ip_network

import pytest
import trustme
from standardwebhooks import Webhook

from tamis.broker.delivery.addresses import AddressGuard
from tamis.broker.delivery.connections import ConnectionOptions
from tamis.broker.delivery.webhooks import Attempt, Outcome, SenderOptions, WebhookSender
from tamis.core.errors import UsageError
from tests.broker.delivery.endpoints import (
    LOCAL,
    SECRET,
    Answer,
    Server,
    answer,
    attempt_for,
    lookup_of,
    serving,
)

NOW = 1_700_000_000
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody, which is quick to load
QUICK = SenderOptions(
    total_s=0.4, drain_s=0.2, connections=ConnectionOptions(connect_s=0.3, keepalive_s=2.0)
)


def send(
    to: Answer,
    attempts: int = 1,
    host: str = "127.0.0.1",
    change: Callable[[Attempt], Attempt] = lambda attempt: attempt,
) -> tuple[list[Outcome], Server]:
    """Sends attempts one after the other to a server that answers in one way."""

    async def run() -> tuple[list[Outcome], Server]:
        lookup = lookup_of(["127.0.0.1"])
        async with (
            serving(to) as server,
            WebhookSender(LOCAL, QUICK, lookup=lookup, tls=NO_TLS) as sender,
        ):
            attempt = change(attempt_for(f"http://{host}:{server.port}/hook"))
            return [await sender.send(attempt) for _ in range(attempts)], server

    return asyncio.run(run())


def send_one(to: Answer) -> Outcome:
    (outcome,), server = send(to)
    assert len(server.requests) == 1  # nothing is tried twice
    return outcome


# -- what is sent ----------------------------------------------------------------------------------


def test_a_request_is_signed_and_has_its_headers() -> None:
    body = '{"é":1}'.encode()
    now = int(time.time())

    def change(attempt: Attempt) -> Attempt:
        headers = {"authorization": "Bearer a", "user-agent": "mine"}
        return attempt._replace(body=body, timestamp=now, headers=headers)

    (outcome,), server = send(answer(204), change=change)
    assert outcome._replace(seconds=0.0) == Outcome(True, "status 204", 204)
    assert 0.0 < outcome.seconds < 0.4
    (request,) = server.requests
    assert request.line == "POST /hook HTTP/1.1"
    assert Webhook(SECRET).verify(request.body, request.headers) == {"é": 1}
    expected = {
        "host": f"127.0.0.1:{server.port}",
        "content-type": "application/json",
        "accept-encoding": "identity",
        "authorization": "Bearer a",
        "user-agent": "mine",
        "webhook-id": "msg_1",
    }
    assert expected.items() <= request.headers.items()


@pytest.mark.parametrize("size", [0, 1, 2_000_000])
def test_bodies_of_all_sizes(size: int) -> None:
    (outcome,), server = send(answer(200), change=lambda one: one._replace(body=b"a" * size))
    assert outcome.reason == "status 200"
    assert server.requests[0].body == b"a" * size


def test_the_path_is_sent_as_it_is_written() -> None:
    path = "/a%2Fb/../c;d%7E?x=%41+b&y=[1]"

    def change(attempt: Attempt) -> Attempt:
        return attempt._replace(url=attempt.url.replace("/hook", path + "#top"))

    _, server = send(answer(200), change=change)
    assert server.requests[0].line == f"POST {path} HTTP/1.1"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"url": "http://10.0.0.1/"}, "10.0.0.1 is a private address"),
        ({"url": "http://[::1]/"}, "::1 is a loopback address"),
        ({"url": "gopher://127.0.0.1/"}, "the URL does not begin with https://"),
        ({"secrets": ()}, "1 to 8 secrets"),
        ({"secrets": ("hunter2",)}, "begins with whsec_"),
        ({"id": "a.b"}, "webhook id"),
        ({"content_type": "text/plain\r\nx: y"}, "content type"),
        ({"headers": {"Webhook-Signature": "v1,a"}}, "header Webhook-Signature cannot be chosen"),
        ({"headers": {"HOST": "a"}}, "header HOST cannot be chosen"),
        ({"headers": {"content-length": "0"}}, "cannot be chosen"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "cannot be chosen"),
        ({"headers": {"x": "a\r\nHost: b"}}, "value of the header x"),
        ({"headers": {"x y": "a"}}, "'x y' is not the name"),
        ({"headers": {"x:": "a"}}, "'x:' is not the name"),
        ({"headers": {"é": "a"}}, "is not the name"),
        ({"headers": {f"x{n}": "" for n in range(33)}}, "at most 32"),
    ],
)
def test_an_attempt_that_cannot_be_sent(fields: dict[str, object], reason: str) -> None:
    (outcome,), server = send(answer(200), change=lambda attempt: attempt._replace(**fields))
    assert not outcome.is_delivered
    assert reason in outcome.reason
    assert server.connections == 0


def test_http_is_refused_when_it_is_no_longer_allowed() -> None:
    async def run() -> Outcome:
        async with (
            serving(answer(200)) as server,
            WebhookSender(AddressGuard(LOCAL.allowed), tls=NO_TLS) as sender,
        ):
            return await sender.send(attempt_for(f"http://127.0.0.1:{server.port}/"))

    assert asyncio.run(run()).reason == (
        "http is not allowed: use https, or ask the operator to allow it"
    )


def test_a_sender_must_be_open() -> None:
    async def run() -> None:
        sender = WebhookSender()
        with pytest.raises(UsageError, match="async with"):
            await sender.send(attempt_for("https://example.com/"))
        async with sender:
            pass
        with pytest.raises(UsageError, match="async with"):
            await sender.send(attempt_for("https://example.com/"))

    asyncio.run(run())


# -- what is answered ------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299, 400, 404, 410, 413, 429, 500, 503])
def test_what_a_status_means(status: int) -> None:
    outcome = send_one(answer(status))
    assert (outcome.is_delivered, outcome.status) == (status < 300, status)
    assert outcome.reason == f"status {status}"
    assert outcome.is_gone == (status == 410)
    assert outcome.retry_after_s is None


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_redirects_are_not_followed(status: int) -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            target = await stack.enter_async_context(serving(answer(200)))
            to = answer(status, f"Location: http://127.0.0.1:{target.port}/secret")
            server = await stack.enter_async_context(serving(to))
            sender = await stack.enter_async_context(WebhookSender(LOCAL, QUICK, tls=NO_TLS))
            outcome = await sender.send(attempt_for(f"http://127.0.0.1:{server.port}/"))
            assert not outcome.is_delivered
            assert outcome.reason == f"status {status}: redirects are not followed"
            assert (len(server.requests), target.connections) == (1, 0)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        ("99999", 3_600.0),
        ("9" * 5_000, 3_600.0),
        (formatdate(NOW + 60, usegmt=True), 60.0),
        (formatdate(NOW + 60), 60.0),  # ends with -0000
        (formatdate(NOW - 60, usegmt=True), 0.0),
        (formatdate(NOW + 86_400, usegmt=True), 3_600.0),
        ("Tue, 14 Nov 99999 22:13:20 GMT", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("status", [429, 503, 500])
def test_retry_after(text: str, seconds: float | None, status: int) -> None:
    async def run() -> None:
        to = answer(status, f"Retry-After: {text}")
        async with (
            serving(to) as server,
            WebhookSender(LOCAL, clock=lambda: NOW, tls=NO_TLS) as sender,
        ):
            outcome = await sender.send(attempt_for(f"http://127.0.0.1:{server.port}/"))
            assert outcome.status == status
            assert outcome.retry_after_s == (None if status == 500 else seconds)

    asyncio.run(run())


def endless(start: bytes, chunk: bytes, pause_s: float) -> Answer:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        while not writer.is_closing():
            writer.write(chunk)
            await writer.drain()
            await asyncio.sleep(pause_s)

    return write


def closing(start: bytes) -> Answer:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        await writer.drain()
        writer.close()

    return write


async def reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
BAD_HTTP = "the answer is not HTTP, or its headers are too large"
CLOSED = "the endpoint closed the connection before it answered"
SLOW = "no answer within 0.4 s"


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        pytest.param(endless(b"", b"", 0.05), SLOW, id="silence"),
        pytest.param(endless(b"HTTP/1.1 200 OK\r\n", b"a: b\r\n", 0.05), SLOW, id="slow headers"),
        pytest.param(endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.0), SLOW, id="endless 100"),
        pytest.param(closing(b""), CLOSED, id="closed at once"),
        pytest.param(closing(b"HTTP/1.1 200 OK\r\na:"), CLOSED, id="closed in the headers"),
        pytest.param(reset, CLOSED, id="reset"),
        pytest.param(answer(200, "a: " + "b" * 100_000), BAD_HTTP, id="a huge header"),
        pytest.param(answer(200, *["a: b"] * 10_000), BAD_HTTP, id="many headers"),
        pytest.param(endless(b"HTTP/1.1 200 ", b"a" * 9_999, 0.0), BAD_HTTP, id="endless line"),
        pytest.param(closing(b"SSH-2.0-OpenSSH_9.9\r\n"), BAD_HTTP, id="SSH"),
        pytest.param(b"\0\xff\r\n\r\n" * 100, BAD_HTTP, id="garbage"),
        pytest.param(b"HTTP/1.1 20 OK\r\n\r\n", BAD_HTTP, id="a short status"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", BAD_HTTP, id="bad length"),
        pytest.param(CHUNKED + b"zz\r\n", BAD_HTTP, id="bad chunks"),
    ],
)
def test_endpoints_that_do_not_answer(to: Answer, reason: str) -> None:
    outcome = send_one(to)
    assert (outcome.is_delivered, outcome.status) == (False, None)
    assert outcome.reason == reason
    assert outcome.seconds < 1.0


@pytest.mark.parametrize(
    "to",
    [
        pytest.param(endless(answer(200)[:-5] + b"99\r\n\r\n", b"a", 0.05), id="slow body"),
        pytest.param(endless(CHUNKED, b"1\r\na\r\n", 0.05), id="slow chunks"),
        pytest.param(endless(CHUNKED + b"0\r\n", b"a: b\r\n", 0.05), id="slow trailers"),
        pytest.param(endless(CHUNKED, b"1000\r\n" + b"a" * 4_096 + b"\r\n", 0.0), id="endless"),
        pytest.param(answer(200, body=b"a" * 5_000_000), id="a huge body"),
        pytest.param(closing(answer(200)[:-5] + b"9\r\n\r\nabc"), id="closed in the body"),
        pytest.param(answer(200, "Content-Encoding: gzip", body=b"no gzip"), id="not gzip"),
        pytest.param(answer(200, "Set-Cookie: ;=; a=b=c;;; =\x80", body=b"a"), id="a bad cookie"),
    ],
)
def test_the_status_counts_whatever_the_body_is(to: Answer) -> None:
    (first, second), server = send(to, attempts=2)
    assert len(server.requests) == 2
    for outcome in (first, second):
        assert (outcome.is_delivered, outcome.reason) == (True, "status 200")
        assert outcome.seconds < 0.4


def test_cookies_are_not_kept() -> None:
    _, server = send(answer(200, "Set-Cookie: a=b; Path=/"), attempts=2, host="example.com")
    assert [request.headers.get("cookie") for request in server.requests] == [None, None]


# -- where connections go --------------------------------------------------------------------------


def test_a_connection_is_used_again() -> None:
    outcomes, server = send(answer(200, body=b"thanks"), attempts=3, host="example.com")
    assert all(outcome.is_delivered for outcome in outcomes)
    assert (len(server.requests), server.connections) == (3, 1)


def test_a_body_is_not_decompressed() -> None:
    """Otherwise a wrong body would end the connection, and a right one could fill the memory."""
    _, server = send(answer(200, "Content-Encoding: gzip", body=b"no gzip"), attempts=2)
    assert (len(server.requests), server.connections) == (2, 1)


def test_a_connection_is_closed_before_servers_do() -> None:
    async def run() -> None:
        options = QUICK._replace(connections=ConnectionOptions(keepalive_s=0.1))
        async with (
            serving(answer(200)) as server,
            WebhookSender(LOCAL, options, tls=NO_TLS) as sender,
        ):
            for pause_s in (0.0, 0.2, 0.0):
                await asyncio.sleep(pause_s)
                await sender.send(attempt_for(f"http://127.0.0.1:{server.port}/"))
            assert (len(server.requests), server.connections) == (3, 2)

    asyncio.run(run())


def test_a_connection_with_more_to_read_is_not_used_again() -> None:
    outcomes, server = send(answer(200, body=b"a" * 1_000_000), attempts=2)
    assert all(outcome.is_delivered for outcome in outcomes)
    assert (len(server.requests), server.connections) == (2, 2)


def test_connections_to_more_endpoints_are_closed() -> None:
    async def run() -> None:
        options = QUICK._replace(connections=QUICK.connections._replace(kept_endpoints_max=1))
        lookup = lookup_of(["127.0.0.1"])
        async with (
            serving(answer(200)) as server,
            WebhookSender(LOCAL, options, lookup=lookup, tls=NO_TLS) as sender,
        ):
            for host in ("a.example", "a.example", "b.example", "b.example"):
                assert (
                    await sender.send(attempt_for(f"http://{host}:{server.port}/"))
                ).is_delivered
        assert server.connections == 3

    asyncio.run(run())


@pytest.mark.parametrize(
    ("addresses", "reason"),
    [
        (["10.0.0.1"], "10.0.0.1 is a private address"),
        (["127.0.0.1", "10.0.0.1"], "10.0.0.1 is a private address"),
        (["127.0.0.1", "169.254.169.254"], "169.254.169.254 is a cloud metadata address"),
        (["::ffff:127.0.0.1"], "::ffff:"),
        (["::1"], "::1 is a loopback address"),
        (["fe80::1%eth0"], "fe80::1%eth0 is a link-local address"),
        ([], "the name rebind.example has no address"),
        (["localhost"], "the attempt failed: ValueError"),
    ],
)
def test_a_name_that_changes_its_address(addresses: list[str], reason: str) -> None:
    """DNS rebinding: the first lookup is harmless, the second is not."""

    async def run() -> None:
        lookup = lookup_of(["127.0.0.1"], addresses)
        options = QUICK._replace(connections=QUICK.connections._replace(kept_endpoints_max=0))
        async with (
            serving(answer(200)) as server,
            WebhookSender(LOCAL, options, lookup=lookup, tls=NO_TLS) as sender,
        ):
            attempt = attempt_for(f"http://rebind.example:{server.port}/")
            assert (await sender.send(attempt)).is_delivered
            outcome = await sender.send(attempt)
        assert not outcome.is_delivered
        assert outcome.reason.startswith(reason)
        assert server.connections == 1

    asyncio.run(run())


def test_a_name_is_looked_up_once_for_a_connection() -> None:
    async def run() -> None:
        asked: list[tuple[str, int]] = []

        async def lookup(host: str, port: int) -> list[str]:
            asked.append((host, port))
            return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

        async with (
            serving(answer(200)) as server,
            WebhookSender(LOCAL, QUICK, lookup=lookup, tls=NO_TLS) as sender,
        ):
            for _ in range(2):
                attempt = attempt_for(f"http://example.com:{server.port}/")
                assert (await sender.send(attempt)).is_delivered
        assert asked == [("example.com", server.port)]

    asyncio.run(run())


def test_sockets_are_checked_apart_from_names_and_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the check of the URL and that of the name say nothing."""

    async def run() -> list[str]:
        reasons = []
        async with (
            serving(answer(200)) as server,
            WebhookSender(AddressGuard(is_http_allowed=True), QUICK, tls=NO_TLS) as sender,
        ):
            monkeypatch.setattr(AddressGuard, "endpoint", LOCAL.endpoint)
            monkeypatch.setattr(AddressGuard, "permitted", LOCAL.permitted)
            for host in ("127.0.0.1", "localhost"):
                outcome = await sender.send(attempt_for(f"http://{host}:{server.port}/"))
                reasons.append(outcome.reason)
        assert server.connections == 0
        return reasons

    monkeypatch.setattr(
        "tamis.broker.delivery.connections._system_addresses", lambda *_: ["127.0.0.1"]
    )
    assert asyncio.run(run()) == ["127.0.0.1 is a loopback address"] * 2


def test_the_system_is_asked_for_names() -> None:
    async def run() -> None:
        async with (
            serving(answer(200)) as server,
            WebhookSender(AddressGuard(is_http_allowed=True), QUICK, tls=NO_TLS) as sender,
        ):
            refused = await sender.send(attempt_for(f"http://localhost:{server.port}/"))
            assert refused.reason in (
                "127.0.0.1 is a loopback address",
                "::1 is a loopback address",
            )
            assert server.connections == 0
            both = AddressGuard((ip_network("127.0.0.0/8"), ip_network("::1/128")), True)
            async with WebhookSender(both, QUICK, tls=NO_TLS) as permissive:
                assert (
                    await permissive.send(attempt_for(f"http://localhost:{server.port}/"))
                ).is_delivered
                unknown = await permissive.send(attempt_for("http://nothing.invalid/"))
            assert not unknown.is_delivered

    asyncio.run(run())


def test_slow_name_servers_are_given_up() -> None:
    async def run() -> None:
        async def lookup(host: str, port: int) -> list[str]:
            await asyncio.sleep(9)
            return ["127.0.0.1"]

        async with WebhookSender(LOCAL, QUICK, lookup=lookup, tls=NO_TLS) as sender:
            outcome = await sender.send(attempt_for("http://example.com/"))
        assert outcome.reason == "no connection within 0.3 s"
        assert outcome.seconds < 1.0

    asyncio.run(run())


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

        async def run() -> Outcome:
            async with WebhookSender(LOCAL, QUICK, tls=NO_TLS) as sender:
                return await sender.send(attempt_for(f"http://127.0.0.1:{port}/"))

        assert asyncio.run(run()).reason == "no connection: connection refused"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_proxies_of_the_environment_are_ignored(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        async with serving(answer(200)) as proxy, serving(answer(204)) as server:
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            async with WebhookSender(
                LOCAL, QUICK, lookup=lookup_of(["127.0.0.1"]), tls=NO_TLS
            ) as sender:
                outcome = await sender.send(attempt_for(f"http://example.com:{server.port}/"))
            assert (outcome.status, proxy.connections) == (204, 0)

    asyncio.run(run())


# -- limits ----------------------------------------------------------------------------------------


def test_attempts_at_a_time_are_limited() -> None:
    async def run() -> None:
        running = [0, 0]  # now, and at most

        async def slow(writer: asyncio.StreamWriter) -> None:
            running[0] += 1
            running[1] = max(running)
            await asyncio.sleep(0.05)
            running[0] -= 1
            writer.write(answer(200))

        options = SenderOptions(
            total_s=0.4,
            connections=ConnectionOptions(connections_max=4, connections_per_endpoint_max=2),
        )
        lookup = lookup_of(["127.0.0.1"])
        async with (
            serving(slow) as server,
            WebhookSender(LOCAL, options, lookup=lookup, tls=NO_TLS) as sender,
        ):
            for hosts, most in ((1, 2), (5, 4)):
                running[1] = 0
                outcomes = await asyncio.gather(
                    *(
                        sender.send(attempt_for(f"http://h{n % hosts}.example:{server.port}/"))
                        for n in range(20)
                    )
                )
                # the last ones wait longer than an attempt may take, and are delivered
                assert all(outcome.is_delivered for outcome in outcomes)
                assert running[1] == most

    asyncio.run(run())


def test_an_attempt_that_is_cancelled_frees_its_place() -> None:
    async def run() -> None:
        options = QUICK._replace(connections=ConnectionOptions(connections_max=1))
        gate = asyncio.Event()

        async def wait(writer: asyncio.StreamWriter) -> None:
            await gate.wait()
            writer.write(answer(200))

        async with serving(wait) as server, WebhookSender(LOCAL, options, tls=NO_TLS) as sender:
            attempt = attempt_for(f"http://127.0.0.1:{server.port}/")
            task = asyncio.create_task(sender.send(attempt))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            gate.set()
            assert (await sender.send(attempt)).is_delivered

    asyncio.run(run())


def test_endpoints_that_are_idle_are_forgotten() -> None:
    async def run() -> None:
        connections = ConnectionOptions(keepalive_s=-1.0)  # forget them at once
        lookup = lookup_of(["127.0.0.1"])
        async with (
            serving(answer(200)) as server,
            WebhookSender(LOCAL, SenderOptions(connections=connections), lookup=lookup) as sender,
        ):
            for n in range(20):
                await sender.send(attempt_for(f"http://h{n}.example:{server.port}/"))
            assert sender._connections
            assert len(sender._connections._endpoints) == 1

    asyncio.run(run())


# -- TLS -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def send_tls(
    authority: trustme.CA, names: tuple[str, ...], host: str, *, is_trusted: bool = True
) -> tuple[Outcome, Server]:
    """Sends to a server whose certificate has these names."""
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names).configure_cert(server_tls)
    client_tls = ssl.create_default_context()
    if is_trusted:
        authority.configure_trust(client_tls)

    async def run() -> tuple[Outcome, Server]:
        lookup = lookup_of(["127.0.0.1"])
        guard = AddressGuard(LOCAL.allowed)
        options = SenderOptions(total_s=2.0)
        async with (
            serving(answer(200), server_tls) as server,
            WebhookSender(guard, options, lookup=lookup, tls=client_tls) as sender,
        ):
            outcome = await sender.send(attempt_for(f"https://{host}:{server.port}/"))
        return outcome, server

    return asyncio.run(run())


@pytest.mark.parametrize("host", ["hook.example.com", "HOOK.example.com.", "127.0.0.1", "0x7f.1"])
def test_tls_verifies_the_name_at_the_address_that_was_checked(
    host: str, authority: trustme.CA
) -> None:
    outcome, server = send_tls(authority, ("hook.example.com", "127.0.0.1"), host)
    assert (outcome.is_delivered, outcome.reason) == (True, "status 200")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("names", "host"),
    [
        (("other.example.com",), "hook.example.com"),
        (("127.0.0.1",), "hook.example.com"),  # that of the address is not enough
        (("hook.example.com",), "127.0.0.1"),
        (("*.example.com",), "a.hook.example.com"),
    ],
)
def test_certificates_for_another_name_are_refused(
    names: tuple[str, ...], host: str, authority: trustme.CA
) -> None:
    outcome, server = send_tls(authority, names, host)
    assert outcome.reason == f"the certificate is not valid for {host}"
    assert server.requests == []


def test_certificates_of_an_unknown_authority_are_refused(authority: trustme.CA) -> None:
    outcome, server = send_tls(authority, ("a.example",), "a.example", is_trusted=False)
    assert outcome.reason.startswith("the certificate is not trusted: ")
    assert server.requests == []


def test_an_endpoint_without_tls() -> None:
    def change(attempt: Attempt) -> Attempt:
        return attempt._replace(url=attempt.url.replace("http", "https"))

    (outcome,), server = send(closing(answer(200)), change=change)
    assert not outcome.is_delivered
    assert server.requests == []


@pytest.mark.parametrize("is_name", [True, False])
def test_a_context_that_does_not_verify_is_refused(is_name: bool) -> None:
    tls = ssl.create_default_context()
    tls.check_hostname = False
    if not is_name:
        tls.verify_mode = ssl.CERT_NONE

    async def run() -> None:
        with pytest.raises(UsageError, match="verifies certificates"):
            async with WebhookSender(tls=tls):
                pass

    asyncio.run(run())
