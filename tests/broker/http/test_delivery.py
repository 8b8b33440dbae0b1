"""Messages go out: leases, streams and webhooks; and a restart in the middle loses nothing."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from standardwebhooks import Webhook
from websockets.sync.client import ClientConnection, connect

from tamis.broker.client import BrokerUnreachable
from tests.broker.http.process import XML, BrokerProcess, checked, eventually, serving

ORDER = "<order><total>250</total><item>é</item></order>"
QUICK = {"delay_s": 0.01, "delay_max_s": 0.01}
SLOW = {"delay_s": 2.0, "delay_max_s": 2.0}


def numbers(messages: list[dict[str, Any]]) -> list[int]:
    return [each["number"] for each in messages]


def say(broker: BrokerProcess, topic: str, verb: str, status: int = 204, **said: Any) -> Any:
    return checked(broker.http.post(f"{topic}/subscriptions/a/{verb}", json=said), status)


# -- leases ----------------------------------------------------------------------------------------


def test_a_lease(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", "//order")
    for _ in range(5):
        broker.publish(topic, ORDER)
    lease = broker.lease(topic, "a", max=3)
    assert numbers(lease["messages"]) == [1, 2, 3]
    first = lease["messages"][0]
    assert first == {
        "topic": topic.rpartition("/")[2], "subscription": "a", "number": 1, "attempt": 1,
        "replay": False, "version": 1, "accepted": first["accepted"],
        "content_type": "application/xml",
    }  # fmt: skip
    nothing = broker.lease(topic, "a")  # the messages are ordered: there is one lease at a time
    assert nothing == {"token": None, "until": None, "messages": []}
    broker.acknowledge(topic, "a", lease["token"], 2)  # and so the first
    assert say(broker, topic, "acknowledge", 409, token=lease["token"] + 1, numbers=[3])
    say(broker, topic, "release", token=lease["token"])
    rest = broker.lease(topic, "a")
    assert numbers(rest["messages"]) == [3, 4, 5]
    assert [each["attempt"] for each in rest["messages"]] == [1, 1, 1]
    assert [each["replay"] for each in rest["messages"]] == [True, False, False]
    assert say(broker, topic, "acknowledge", 409, token=lease["token"], numbers=[3])


def test_a_lease_waits(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", "//order")
    start = time.monotonic()
    assert broker.lease(topic, "a", wait_s=0.3)["messages"] == []
    assert time.monotonic() - start >= 0.3
    Thread(target=lambda: (time.sleep(0.3), broker.publish(topic, ORDER))).start()
    assert numbers(broker.lease(topic, "a", wait_s=20)["messages"]) == [1]
    assert time.monotonic() - start < 10


def test_who_goes_while_it_waits_takes_nothing(broker: BrokerProcess, topic: str) -> None:
    import httpx2  # noqa: PLC0415

    broker.subscribe(topic, "a", "//order")
    with broker.client(broker.token) as client, pytest.raises(httpx2.ReadTimeout):
        client.post(f"{topic}/subscriptions/a/lease", json={"wait_s": 30}, timeout=0.5)
    time.sleep(0.2)
    broker.publish(topic, ORDER)
    assert numbers(broker.lease(topic, "a", wait_s=5)["messages"]) == [1]


def test_a_lease_ends_and_is_extended(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", "//order", delivery=QUICK)
    broker.publish(topic, ORDER)
    first = broker.lease(topic, "a", lease_s=1)
    say(broker, topic, "extend", token=first["token"], lease_s=3)
    assert broker.lease(topic, "a", wait_s=1.5)["messages"] == []
    second = broker.lease(topic, "a", wait_s=10)
    assert (second["messages"][0]["attempt"], second["messages"][0]["replay"]) == (2, True)
    say(broker, topic, "acknowledge", 409, token=first["token"], numbers=[1])
    say(broker, topic, "extend", 409, token=first["token"])


def test_failed_dead_and_replayed(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", "//order", delivery=QUICK | {"attempts_max": 2})
    for _ in range(3):
        broker.publish(topic, ORDER)
    for attempt in (1, 2):
        lease = broker.lease(topic, "a", wait_s=5)
        first = lease["messages"][0]
        assert (first["number"], first["attempt"]) == (1, attempt)
        say(broker, topic, "fail", token=lease["token"], number=1, reason="no\U0001f600")
    path = f"{topic}/subscriptions/a/dead"
    dead = checked(broker.http.get(path), 200)
    assert dead["items"] == [{"number": 1, "attempts": 2, "reason": "no\U0001f600"}]
    rest = broker.lease(topic, "a")
    assert numbers(rest["messages"]) == [2, 3]
    broker.acknowledge(topic, "a", rest["token"], 3)
    checked(broker.http.post(f"{path}/2/replay"), 404)
    checked(broker.http.post(f"{path}/1/replay"), 202)
    again = broker.lease(topic, "a", wait_s=5)["messages"]
    assert [(each["number"], each["attempt"], each["replay"]) for each in again] == [(1, 1, True)]
    assert checked(broker.http.get(path), 200)["items"] == []
    for bad in ("after=-1", f"after={1 << 63}", f"after={10**30}", "limit=0"):
        checked(broker.http.get(f"{path}?{bad}"), 422)
    for bad in (0, 1 << 63, 10**30):
        checked(broker.http.post(f"{path}/{bad}/replay"), 422)
        checked(broker.http.get(f"{topic}/messages/{bad}"), 422)


def test_large_messages_are_leased_some_at_a_time(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", "//order", payload="document")
    bodies = [f"<order>{str(n) * 900_000}</order>" for n in range(9)]
    for body in bodies:
        broker.publish(topic, body)
    assert [each["document"] for each in broker.lease(topic, "a")["messages"]] == bodies


def test_gaps(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", "//order", delivery={"backlog_max": 10})
    for _ in range(12):
        broker.publish(topic, ORDER)
    path = f"{topic}/subscriptions/a/gaps"
    gap = {"first": 1, "last": 2, "messages": 2, "reason": "backlog"}
    eventually(lambda: checked(broker.http.get(path), 200) == [gap])
    assert numbers(broker.lease(topic, "a")["messages"]) == list(range(3, 13))


def test_without_order(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", "//order", delivery=QUICK | {"ordered": False, "window": 4})
    for _ in range(6):
        broker.publish(topic, ORDER)
    one, two = (broker.lease(topic, "a", max=2) for _ in range(2))
    assert numbers(one["messages"] + two["messages"]) == [1, 2, 3, 4]
    assert broker.lease(topic, "a")["messages"] == []  # the window is full
    broker.acknowledge(topic, "a", two["token"], 4)
    say(broker, topic, "fail", token=one["token"], number=2)
    found = numbers(broker.lease(topic, "a", wait_s=5)["messages"])
    assert {5} <= {*found} <= {2, 5, 6}


# -- payloads --------------------------------------------------------------------------------------

FLWR = "<late>{ for $o in //order where $o/total > 100 return <o>{ $o/item }</o> }</late>"


@pytest.mark.parametrize(
    ("payload", "expression", "language", "expected"),
    [
        ("ids", "//order", "xpath", {}),
        ("document", "//order", "xpath", {"document": ORDER}),
        ("nodes", "//order/item", "xpath", {"nodes": ["<item>é</item>"]}),
        ("message", FLWR, "flwr", {"message": "<late><o><item>é</item></o></late>"}),
    ],
)
def test_payloads(
    broker: BrokerProcess, topic: str, payload: str, expression: str, language: str, expected: Any
) -> None:
    broker.subscribe(topic, "a", expression, language=language, payload=payload)
    broker.publish(topic, ORDER)
    (found,) = broker.lease(topic, "a")["messages"]
    names = ("document", "nodes", "message", "error", "deleted")
    assert {name: found[name] for name in names if name in found} == expected


def test_a_document_that_is_not_utf_8(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", "//a", payload="document")
    body = '<?xml version="1.0" encoding="iso-8859-1"?><a>é</a>'.encode("latin-1")
    broker.publish(topic, body)
    import base64  # noqa: PLC0415

    (found,) = broker.lease(topic, "a")["messages"]
    assert base64.b64decode(found["document_base64"]) == body
    stored = checked(broker.http.get(f"{topic}/messages/1"), 200)
    assert (stored["matches"], stored["document_base64"]) == (1, found["document_base64"])


# -- server-sent events ----------------------------------------------------------------------------


def test_events_over_a_reconnect(broker: BrokerProcess, topic: str) -> None:
    """What was on its way when a connection ended comes again, and no more than that."""
    name = topic.rpartition("/")[2]
    broker.subscribe(topic, "a", "//order", payload="document")
    for _ in range(5):
        broker.publish(topic, ORDER)
    with broker.tamis() as client:
        stream = client.events(name, "a")
        assert numbers([next(stream), next(stream)]) == [1, 2]
        stream.close()
        again = client.events(name, "a", 1)  # the second was not worked on
        found = [next(again) for _ in range(4)]
        assert numbers(found) == [2, 3, 4, 5]
        assert {each["document"] for each in found} == {ORDER}
        assert found[0]["replay"]
        broker.publish(topic, ORDER)
        assert next(again)["number"] == 6
        again.close()
    for bad in ("x", "-1", "1" * 40):
        headers = {"last-event-id": bad}
        checked(broker.http.get(f"{topic}/subscriptions/a/events", headers=headers), 400)
    checked(broker.http.post(f"{topic}/subscriptions/a/events"), 400)


def test_a_stream_says_first_where_it_begins(broker: BrokerProcess, topic: str) -> None:
    """A client that lost the first messages must be able to say so."""
    broker.subscribe(topic, "a", "//order")
    broker.publish(topic, ORDER)
    lease = broker.lease(topic, "a")
    broker.acknowledge(topic, "a", lease["token"], 1)
    with broker.http.stream("GET", f"{topic}/subscriptions/a/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        first = next(answer.iter_text())
    assert "id: 1\n" in first
    assert "data:" not in first


@pytest.mark.parametrize("ordered", [True, False])
def test_a_stream_names_no_message_before_which_others_are_to_come(
    broker: BrokerProcess, topic: str, ordered: bool
) -> None:
    """What failed before would be lost: the client's next ``Last-Event-ID`` acknowledges it."""
    broker.subscribe(topic, "a", "//order", delivery={"ordered": ordered, **SLOW})
    for _ in range(3):
        broker.publish(topic, ORDER)
    lease = broker.lease(topic, "a", max=1)
    say(broker, topic, "fail", token=lease["token"], number=1, reason="no")
    last = "0"
    with broker.http.stream("GET", f"{topic}/subscriptions/a/events") as answer:
        text = ""
        for part in answer.iter_text():
            text += part
            if ordered or text.count("data:") == 2:  # of those that did not fail
                break
    assert re.findall(r"^id: (\d+)$", text, re.MULTILINE) == [last]
    headers = {"last-event-id": last}
    with broker.http.stream("GET", f"{topic}/subscriptions/a/events", headers=headers) as again:
        events = (json.loads(line[5:]) for line in again.iter_lines() if line.startswith("data:"))
        assert {next(events)["number"] for _ in range(3)} == {1, 2, 3}


# -- WebSockets ------------------------------------------------------------------------------------


def socket(broker: BrokerProcess, topic: str, window: int | str = 100) -> ClientConnection:
    address = f"ws://127.0.0.1:{broker.port}{topic}/subscriptions/a/socket?window={window}"
    return connect(address, additional_headers={"authorization": f"Bearer {broker.token}"})


def receive(talking: ClientConnection, count: int) -> list[int]:
    return [json.loads(talking.recv(timeout=10))["number"] for _ in range(count)]


def test_a_socket(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", "//order", delivery=QUICK)
    for _ in range(5):
        broker.publish(topic, ORDER)
    with socket(broker, topic, window=2) as talking:
        assert receive(talking, 2) == [1, 2]
        with pytest.raises(TimeoutError):  # the window is full
            talking.recv(timeout=0.5)
        talking.send('{"acknowledge": [2]}')
        assert receive(talking, 2) == [3, 4]
        talking.send(b'{"acknowledge": [3]}')
        talking.send('{"fail": 4, "reason": "later"}')
        assert receive(talking, 1) == [4]
    # The client went without having acknowledged it.
    again = broker.lease(topic, "a", wait_s=10)
    assert numbers(again["messages"]) == [4, 5]
    assert again["messages"][0]["attempt"] == 2


@pytest.mark.parametrize("said", ['{"acknowledge": [2]}', '{"acknowledge": [99]}', '{"fail": 2}'])
def test_a_socket_that_names_what_was_not_sent(
    broker: BrokerProcess, topic: str, said: str
) -> None:
    """Nothing of it is followed, and the next consumer has everything."""
    broker.subscribe(topic, "a", "//order")
    for _ in range(2):
        broker.publish(topic, ORDER)
    with socket(broker, topic, window=1) as talking:
        assert receive(talking, 1) == [1]
        talking.send(said)
        with pytest.raises(Exception) as ended:  # noqa: PT011 - closed with our code
            talking.recv(timeout=10)
    assert ended.value.rcvd.code == 4400  # type: ignore[attr-defined]
    with socket(broker, topic, window=1) as talking:
        assert receive(talking, 1) == [1]
        talking.send('{"acknowledge": [1]}')
        assert receive(talking, 1) == [2]
        talking.send('{"acknowledge": [1]}')  # once more
        talking.send('{"acknowledge": [2]}')
    until = time.monotonic() + 5
    while broker.lease(topic, "a", max=1)["messages"] and time.monotonic() < until:
        time.sleep(0.1)


@pytest.mark.parametrize("said", ["{", "[]", '{"acknowledge": 1}', '{"acknowledge": ["x"]}',
                                  '{"acknowledge": [77]}', "[" * 10_000])  # fmt: skip
def test_what_a_socket_does_not_understand(broker: BrokerProcess, topic: str, said: str) -> None:
    broker.subscribe(topic, "a", "//order")
    with socket(broker, topic) as talking:
        talking.send(said)
        with pytest.raises(Exception) as ended:  # noqa: PT011 - closed with our code
            talking.recv(timeout=10)
    assert 4400 <= ended.value.rcvd.code < 4500  # type: ignore[attr-defined]
    broker.publish(topic, ORDER)
    assert numbers(broker.lease(topic, "a", wait_s=5)["messages"]) == [1]


def test_a_socket_with_a_bad_window(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", "//order")
    with pytest.raises(Exception, match="403"), socket(broker, topic, "²"):
        pass


# -- webhooks --------------------------------------------------------------------------------------


class Receiver(ThreadingHTTPServer):
    """An endpoint that answers with the statuses that it is given, and then with 204."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses: list[int] = []
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/hook"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Receiver)
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
        statuses = self.server.statuses
        self.send_response(statuses.pop(0) if statuses else 204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server, serving(server):
        yield server


def test_a_webhook(broker: BrokerProcess, topic: str, receiver: Receiver) -> None:
    made = broker.subscribe(
        topic, "a", "//order", payload="document", webhook={"url": receiver.url}, delivery=QUICK
    )
    (secret,) = made["webhook"]["secrets"]
    receiver.statuses = [503, 500]
    number = broker.publish(topic, ORDER)["number"]
    eventually(lambda: len(receiver.got) == 3)
    for headers, body in receiver.got:
        envelope = Webhook(secret).verify(body, headers)
        assert envelope["type"] == "tamis.match"
        assert (envelope["data"]["number"], envelope["data"]["document"]) == (number, ORDER)
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1
    assert [json.loads(body)["data"]["attempt"] for _, body in receiver.got] == [1, 2, 3]
    headers, body = receiver.got[0]
    with pytest.raises(Exception, match="signature"):
        Webhook(secret).verify(body.replace(b"250", b"251"), headers)
    for path in ("/a", "", "/export"):
        assert secret not in broker.http.get(f"{topic}/subscriptions{path}").text
    # It was acknowledged: nobody gets it again.
    broker.http.put(f"{topic}/subscriptions/a", json={"expression": "//order"})
    assert broker.lease(topic, "a", wait_s=0.5)["messages"] == []


def test_a_webhook_with_two_secrets(broker: BrokerProcess, topic: str, receiver: Receiver) -> None:
    secrets = ["whsec_" + letter * 32 for letter in "AB"]
    webhook = {"url": receiver.url, "secrets": secrets, "raw": True}
    made = broker.subscribe(topic, "a", "//order", payload="document", webhook=webhook)
    assert made["webhook"]["secrets"] == []
    broker.publish(topic, ORDER)
    ((headers, body),) = eventually(lambda: [*receiver.got])
    assert body.decode() == ORDER
    assert headers["content-type"] == "application/xml"
    for secret in secrets:
        Webhook(secret).verify(body, headers, json_parse=False)


def test_a_webhook_that_dies(broker: BrokerProcess, topic: str, receiver: Receiver) -> None:
    receiver.statuses = [302, 302]  # redirects are not followed
    options = QUICK | {"attempts_max": 2}
    broker.subscribe(topic, "a", "//order", webhook={"url": receiver.url}, delivery=options)
    broker.publish(topic, ORDER)
    path = f"{topic}/subscriptions/a/dead"
    (dead,) = eventually(lambda: checked(broker.http.get(path), 200)["items"])
    assert (dead["number"], dead["attempts"]) == (1, 2)
    assert "302" in dead["reason"]
    checked(broker.http.post(f"{path}/1/replay"), 202)
    eventually(lambda: len(receiver.got) == 3)
    assert json.loads(receiver.got[2][1])["data"]["replay"]


# -- the process -----------------------------------------------------------------------------------


@contextmanager
def own_broker(folder: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess(folder, "--allow-http", "--allow-network", "127.0.0.0/8")
    try:
        yield process
    finally:
        process.stop()


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_restart_loses_nothing(tmp_path: Path, end: str) -> None:
    """Publishers and consumers go on over a restart: everything comes, in order."""
    with own_broker(tmp_path) as broker, broker.tamis() as client:
        topic = broker.new_topic("t")
        broker.subscribe(topic, "a", "//order", payload="document", delivery=QUICK)
        broker.subscribe(topic, "b", "//order")
        lease_of_b = broker.lease(topic, "b")
        assert lease_of_b["messages"] == []
        stored: list[int] = []

        def publish() -> None:
            while len(stored) < 60:
                n = len(stored)
                with suppress(BrokerUnreachable):  # the client gave up, before the broker was back
                    stored.append(client.publish("t", f"<order>{n}</order>", key=str(n)).number)

        publisher = Thread(target=publish)
        publisher.start()
        eventually(lambda: len(stored) >= 20)
        with broker.tamis() as consumer:
            before = [*consumer.messages("t", "a", count=10)]
        leased = broker.lease(topic, "b", max=5)  # it will never be acknowledged
        getattr(broker, end)()
        broker.start()
        publisher.join()
        assert stored == list(range(1, 61))
        with broker.tamis() as consumer:
            rest = [*consumer.messages("t", "a", count=50)]
        assert numbers(before + rest) == stored
        assert [each["document"] for each in before + rest] == [
            f"<order>{n}</order>" for n in range(60)
        ]
        again = broker.lease(topic, "b", wait_s=5)
        assert numbers(again["messages"]) == stored
        assert again["messages"][0]["replay"]
        assert again["token"] > leased["token"]
        late = {"token": leased["token"], "numbers": [1]}
        checked(broker.http.post(f"{topic}/subscriptions/b/acknowledge", json=late), 409)
        metrics = broker.http.get("/metrics").text
        assert 'tamis_subscriptions{tenant="default",topic="t"} 2.0' in metrics


def test_events_over_a_restart(tmp_path: Path) -> None:
    """A stream of events connects again by itself."""
    with own_broker(tmp_path) as broker, broker.tamis() as client:
        topic = broker.new_topic("t")
        broker.subscribe(topic, "a", "//order")
        broker.publish(topic, ORDER)
        stream = client.events("t", "a")
        assert next(stream)["number"] == 1
        broker.stop()  # a stream does not hold it up
        starting = Thread(target=broker.start)
        starting.start()
        starting.join()
        checked(broker.http.post(f"{topic}/messages", content=ORDER, headers=XML), 202)
        assert next(stream)["number"] == 2
        stream.close()
