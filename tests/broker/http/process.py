"""A broker as users start it: the process ``tamis serve``."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import BaseServer
from threading import Thread
from typing import Any

import httpx2

from tamis.broker.client import Client

_COMMAND = (sys.executable, "-c", "from tamis.cli import main; main()", "serve")
_START_S, _STOP_S = 60.0, 20.0
BODY_BYTES, BODY_S = 1 << 20, 2.0
"""What a body may have in these tests."""
JSON, XML = {"content-type": "application/json"}, {"content-type": "application/xml"}


class BrokerProcess:
    """A process, whose folder outlives it. ``http`` has the token with all rights."""

    def __init__(self, folder: Path, *options: str, token: str = "") -> None:
        self.folder, self._options, self.token = folder, options, token
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "log"
        self.start()

    def start(self) -> None:
        """Start the process, and wait until it accepts messages."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *_COMMAND,
                    "--data",
                    self.folder / "data",
                    "--port",
                    str(self.port),
                    *self._options,
                ],
                stderr=log,
            )
        until = time.monotonic() + _START_S
        while not self._is_ready():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, f"it does not start: {self.log.read_text()}"
            time.sleep(0.05)
        if not self.token:
            self.token = (self.folder / "data/token").read_text().strip()
        self.http, self.anonymous = self.client(self.token), self.client()

    def _is_ready(self) -> bool:
        with suppress(httpx2.TransportError):
            return httpx2.get(f"{self.url}/readyz").status_code == 200
        return False

    def stop(self) -> None:
        """End the process, which has to end well and must not have met an error of its own."""
        self.http.close()
        self.anonymous.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(_STOP_S)
        finally:
            self.process.kill()
            self.process.wait()
        log = self.log.read_text()
        assert status == 0, log
        assert "Traceback" not in log, log
        assert "starts again" not in log, log

    def kill(self) -> None:
        """End the process at once."""
        self.http.close()
        self.anonymous.close()
        self.process.kill()
        self.process.wait()

    # -- requests ----------------------------------------------------------------------------------

    def client(self, token: str | None = None) -> httpx2.Client:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=30)

    def tamis(self, token: str | None = None) -> Client:
        """Tamis's own client."""
        return Client(self.url, token or self.token)

    def new_token(self, *rights: str, **more: Any) -> str:
        answer = self.http.post("/v1/tokens", json={"rights": rights, **more})
        return str(checked(answer, 201)["token"])

    def new_topic(self, name: str, **options: Any) -> str:
        """Make a topic; its path."""
        checked(self.http.post("/v1/topics", json={"name": name, **options}), 201)
        return f"/v1/topics/{name}"

    def subscribe(self, topic: str, id: str, expression: str, **options: Any) -> dict[str, Any]:
        new = {"id": id, "expression": expression, **options}
        return checked(self.http.post(f"{topic}/subscriptions", json=new), 201)

    def publish(self, topic: str, body: bytes | str, **headers: str) -> dict[str, Any]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self.http.post(f"{topic}/messages", content=body, headers=XML | named)
        return checked(answer, 202)

    def lease(self, topic: str, id: str, **asked: Any) -> dict[str, Any]:
        return checked(self.http.post(f"{topic}/subscriptions/{id}/lease", json=asked), 200)

    def acknowledge(self, topic: str, id: str, token: int, *numbers: int) -> None:
        said = {"token": token, "numbers": numbers}
        checked(self.http.post(f"{topic}/subscriptions/{id}/acknowledge", json=said), 204)


def checked(answer: httpx2.Response, status: int) -> Any:
    """The JSON of an answer that has a status; of an error, a problem that says so."""
    assert answer.status_code == status, (answer.status_code, answer.text)
    if status == 204:
        return None
    if status >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert problem["status"] == status
        assert all(problem[name] for name in ("title", "code", "detail"))
        return problem
    return answer.json()


@contextmanager
def serving(server: BaseServer) -> Iterator[None]:
    """Have a server of this process answer, in a thread."""
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()


def eventually(condition: Callable[[], Any], seconds: float = 10.0) -> Any:
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)
    return found
