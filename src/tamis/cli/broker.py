"""``tamis serve``: the broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tamis.cli.console import say
from tamis.cli.options import Option
from tamis.core.errors import MissingExtra, UsageError

EXAMPLES = {
    "serve": """\b
Examples:
  tamis serve --data broker/
  tamis serve --data broker/ --host 0.0.0.0 --port 80 --allow-http --allow-network 10.0.0.0/8

\b
  curl -H "Authorization: Bearer $(cat broker/token)" http://127.0.0.1:8080/v1/topics
"""
}


def serve(
    data: Annotated[Path, Option(metavar="FOLDER")],
    host: Annotated[str, Option(metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, Option(metavar="N", min=1)] = 8080,
    allow_network: Annotated[list[str] | None, Option(metavar="NETWORK")] = None,
    allow_http: bool = False,
    body_bytes: Annotated[int, Option(metavar="N", min=1)] = 64 << 20,
    body_seconds: Annotated[float, Option(metavar="SECONDS")] = 30.0,
) -> None:
    """Serve a broker: messages in, matches and messages out, over HTTP.

    Keeps everything in one folder, and answers a message only when it is stored durably. The first
    start writes a token with all rights to FOLDER/token, which only its owner can read.

    Ends with SIGTERM or SIGINT, after it answered and stored what has come in.

    Options:
        data: The folder that keeps messages, subscriptions and tokens. It is made if it is absent.
        host: The address to listen at.
        port: The port to listen at.
        allow_network: A network that webhooks may be sent to, although it is private, such as
            127.0.0.0/8; may be repeated.
        allow_http: Webhooks may be sent without TLS.
        body_bytes: The largest body of a request, also when it is decompressed.
        body_seconds: How long the body of a request may take to arrive.
    """
    try:
        import uvloop  # noqa: PLC0415 - only this command needs the extra

        from tamis.broker.http.app import ServeOptions  # noqa: PLC0415
        from tamis.broker.http.app import serve as run  # noqa: PLC0415
        from tamis.broker.http.ingest import IngestOptions  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtra("broker", error.name or "fastapi") from None
    networks, bodies = _networks(allow_network or []), IngestOptions(body_bytes, body_seconds)
    options = ServeOptions(data, host, port, networks, allow_http, bodies=bodies)

    def started(url: str) -> None:
        say(f"serving {url}, data in {data}, token in {data / 'token'}")

    uvloop.run(run(options, started))


def _networks(names: list[str]) -> tuple[str, ...]:
    from ipaddress import ip_network  # noqa: PLC0415 - keeps --help fast

    for name in names:
        try:
            ip_network(name)
        except ValueError as error:
            raise UsageError(f"--allow-network: {error}") from None
    return tuple(names)
