"""Tamis's own clients: for threads, for asyncio, and on the command line."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
from collections.abc import Iterator
from contextlib import aclosing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tamis.broker import calls
from tamis.broker.client import (
    AsyncClient,
    BrokerProblem,
    BrokerUnreachable,
    Client,
    Lease,
    Published,
)
from tamis.cli import app
from tamis.core.errors import UsageError
from tests.broker.http.process import BrokerProcess, serving

ORDER = "<order><total>250</total></order>"


def name_of(topic: str) -> str:
    return topic.rpartition("/")[2]


def test_for_threads(broker: BrokerProcess, topic: str) -> None:
    name = name_of(topic)
    with Client(broker.url, broker.token) as client:
        with pytest.raises(BrokerProblem) as problem:
            client.create_topic(name)
        assert (problem.value.status, problem.value.code) == (409, "broker-taken")
        assert name in [each["name"] for each in client.topics()]
        client.subscribe(name, "a", "//order[total > 100]", payload="document")
        client.subscribe(name, "e", "temp > 30", language="events", payload="document")
        assert client.publish(name, ORDER, key="k", id="m") == Published(1, 2, 1)
        assert client.publish(name, ORDER, key="k", id="m") == Published(1, None, None)
        many = client.publish_many(name, [ORDER.encode(), "<a>", {"temp": 31}])
        assert [type(each) for each in many] == [Published, BrokerProblem, Published]
        refused = many[1]
        assert isinstance(refused, BrokerProblem)
        assert (refused.status, refused.more) == (422, {"line": 1, "column": 4})
        assert pickle.loads(pickle.dumps(refused)).detail == refused.detail
        lines = client.publish_many(name, [{"temp": n} for n in (1, 40)], key="b")
        assert [each.matches for each in lines if isinstance(each, Published)] == [0, 1]
        lease = client.lease(name, "a", max=1)
        assert lease.token
        assert [each["id"] for each in lease.messages] == ["m"]
        client.fail(name, "a", lease.token, 1, "no")
        found = [*client.messages(name, "a", count=2, wait_s=5)]
        assert [each["document"] for each in found] == [ORDER, ORDER]
        assert client.lease(name, "a") == Lease(None, None, [])
        events = client.messages(name, "e", wait_s=5)
        assert next(events)["document"] == {"temp": 31}
        events.close()  # it was not acknowledged, and comes again at once
        assert [each["attempt"] for each in client.messages(name, "e", count=2)] == [1, 1]
        version = client.subscription(name, "a")["version"]
        with pytest.raises(BrokerProblem, match="version"):
            client.replace(name, "a", "//x", version=version + 9)
        client.replace(name, "a", "//x", version=version)
        client.unsubscribe(name, "e")
        made = client.import_subscriptions(
            name, [{"id": str(n), "expression": "//x"} for n in "12"]
        )
        assert made["added"] == 2
        assert [each["id"] for each in client.subscriptions(name)] == ["a", "1", "2"]
        with pytest.raises(UsageError, match="JSON"):
            client.publish(name, {"a": object()})


def test_for_asyncio(broker: BrokerProcess, topic: str) -> None:
    name = name_of(topic)

    async def talk() -> None:
        async with AsyncClient(broker.url, broker.token) as client:
            await client.subscribe(name, "a", "//order", payload="document")
            published = await asyncio.gather(*(client.publish(name, ORDER) for _ in range(5)))
            assert sorted(each.number for each in published) == [1, 2, 3, 4, 5]
            async with aclosing(client.messages(name, "a", count=2)) as messages:
                assert [each["number"] async for each in messages] == [1, 2]
            async with aclosing(client.messages(name, "a")) as messages:
                assert (await anext(messages))["number"] == 3
            async with aclosing(client.events(name, "a")) as events:
                assert [(await anext(events))["number"] for _ in range(3)] == [3, 4, 5]
            async with aclosing(client.events(name, "a", 3)) as events:
                assert (await anext(events))["number"] == 4
            assert [each["id"] async for each in client.subscriptions(name)] == ["a"]
            with pytest.raises(BrokerProblem, match="no topic"):
                await client.publish("none", ORDER)

    asyncio.run(talk())


def test_both_have_every_operation() -> None:
    operations = {
        name for name, each in vars(calls).items()
        if inspect.isfunction(each) and each.__annotations__.get("return", "").startswith("Call[")
        and not name.startswith("_")
    }  # fmt: skip
    assert len(operations) > 10
    for client in (Client, AsyncClient):
        assert operations <= {*vars(client)}
        assert {"subscriptions", "messages", "events"} <= {*vars(client)}


# -- what fails ------------------------------------------------------------------------------------


class Failing(ThreadingHTTPServer):
    """Answers with the statuses that it is given; the status 0 ends the connection."""

    def __init__(self, statuses: list[int]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses, self.keys = statuses, list[str]()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Failing)
        self.rfile.read(int(self.headers["content-length"]))
        self.server.keys.append(self.headers["idempotency-key"])
        status = self.server.statuses.pop(0)
        if not status:
            return
        body = {"number": 1} if status == 202 else {"status": status, "code": "c", "detail": "no"}
        self.send_response(status)
        if status in (409, 429, 503):
            self.send_header("retry-after", "0")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def failing() -> Iterator[Failing]:
    with Failing([]) as server, serving(server):
        yield server


def test_a_retry_has_the_same_key(failing: Failing) -> None:
    failing.statuses = [503, 0, 429, 409, 202, 202]
    url = f"http://127.0.0.1:{failing.server_address[1]}"
    with Client(url, "tms_x") as client:
        assert client.publish("t", ORDER).number == 1
        assert len(failing.keys) == 5
        assert len({*failing.keys}) == 1
        client.publish("t", ORDER)
        assert failing.keys[5] != failing.keys[0]
        failing.statuses = [429, 422, 202]
        with pytest.raises(BrokerProblem) as problem:  # that will not become better
            client.publish("t", ORDER)
        assert problem.value.status == 422
        failing.statuses = [503] * 20
        with pytest.raises(BrokerProblem, match="no"):
            client.publish("t", ORDER)
        assert 10 < len(failing.statuses) < 19
        failing.statuses = [503, 202]
        with pytest.raises(BrokerProblem):  # nobody knows what became of it
            client.subscribe("t", "a", "//a")


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with Client("http://127.0.0.1:9") as client, pytest.raises(BrokerUnreachable, match="serve"):
        client.create_topic("t")
    monkeypatch.setenv("TAMIS_URL", "http://127.0.0.1:9/")
    (tmp_path / "token").write_text(" tms_x\n")
    monkeypatch.setenv("TAMIS_TOKEN", f"@{tmp_path / 'token'}")
    with Client() as client:
        assert client.url == "http://127.0.0.1:9"
        assert client._settings["headers"] == {"authorization": "Bearer tms_x"}
    for url, token in (("ftp://x", None), ("127.0.0.1:80", None), (None, "@none"), (None, "a\nb")):
        with pytest.raises(UsageError):
            Client(url, token)


# -- the command line ------------------------------------------------------------------------------


def run(broker: BrokerProcess, *arguments: str, stdin: str | None = None) -> Result:
    server = [] if "--url" in arguments else ["--url", broker.url]
    token = [] if "--token" in arguments else ["--token", f"@{broker.folder / 'data/token'}"]
    return CliRunner().invoke(app, [*arguments, *server, *token], input=stdin)


def lines(result: Result, status: int = 0) -> list[Any]:
    assert result.exit_code == status, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_on_the_command_line(broker: BrokerProcess, tmp_path: Path) -> None:
    topic = ["--topic", "commands"]
    one = ["--id", "large", "--expression", "//order[total > 100]", "--payload", "document"]
    missing = run(broker, "subscribe", *topic, *one)
    assert missing.exit_code == 2
    assert "--create-topic" in missing.stderr
    (made,) = lines(run(broker, "subscribe", *topic, *one, "--create-topic"))
    assert (made["id"], made["version"]) == ("large", 1)
    (tmp_path / "s.tsv").write_text("hot\ttemp > 30\nbad\ttemp >\n")
    many = ["--subscriptions", str(tmp_path / "s.tsv"), "--language", "events"]
    refused = run(broker, "subscribe", *topic, *many, "--create-topic")
    assert lines(refused, 2) == [{"added": 1, "refused": 1, "version": 2}]
    assert "subscription 2" in refused.stderr
    exported = broker.http.get("/v1/topics/commands/subscriptions/export").text
    (tmp_path / "e.ndjson").write_text(exported + "\n")
    copied = run(broker, "subscribe", "--topic", "copied", "--create-topic",
                 "--subscriptions", str(tmp_path / "e.ndjson"))  # fmt: skip
    assert lines(copied) == [{"added": 2, "refused": 0, "version": 2}]
    assert broker.http.get("/v1/topics/copied/subscriptions/export").text == exported
    (tmp_path / "1.xml").write_text(ORDER)
    (tmp_path / "2.xml").write_text("<order>")
    names = [str(tmp_path / name) for name in ("1.xml", "2.xml", "3.xml")]
    first, second, third = lines(run(broker, "publish", *topic, *names), 3)
    assert first == {"document": names[0], "number": 1, "version": 2, "matches": 1}
    assert (second["line"], second["column"]) == (1, 8)
    assert "No such file" in third["error"]
    events = run(broker, "publish", *topic, "--events", "-", stdin='{"temp":31}\n\n{"temp":\n{}')
    assert [(each["line"], each.get("number")) for each in lines(events, 3)] == [
        (1, 2), (3, None), (4, 3),
    ]  # fmt: skip
    (tailed,) = lines(run(broker, "tail", *topic, "--id", "large", "--count", "1"))
    assert (tailed["number"], tailed["document"]) == (1, ORDER)
    assert broker.lease("/v1/topics/commands", "large")["messages"] == []  # it was acknowledged
    hooked = run(broker, "subscribe", *topic, "--id", "h", "--expression", "//a",
                 "--webhook", "http://127.0.0.1:9999/")  # fmt: skip
    assert lines(hooked)[0]["webhook"]["secrets"][0].startswith("whsec_")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("tail", "--id", "a", "--topic", "t", "--token", "tms_x"), "--token @FOLDER/token"),
        (("tail", "--id", "a", "--topic", "t", "--url", "http://127.0.0.1:9"), "tamis serve"),
        (("tail", "--id", "a", "--topic", "t", "--url", "x"), "http://"),
        (("tail", "--id", "a", "--topic", "t", "--token", "@/none"), "cannot read the token"),
        (("publish", "--topic", "t", "-", "-"), "only once"),
        (("publish", "--topic", "t", "a.json"), "add --events"),
        (("subscribe", "--topic", "t", "--id", "a"), "either --subscriptions"),
        (("subscribe", "--topic", "t", "--id", "a", "--expression", "//["), "no topic"),
    ],
)
def test_wrong_usage(broker: BrokerProcess, arguments: tuple[str, ...], part: str) -> None:
    result = run(broker, *arguments)
    assert result.exit_code == 2
    assert part in result.stderr
    assert "Traceback" not in result.stderr
