"""Several processes that share a store of PostgreSQL, as users start them."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.broker.http.process import XML, BrokerProcess, checked
from tests.support.postgres import PostgresServer, postgres_server

pytestmark = pytest.mark.spark  # the tier that has PostgreSQL
ORDER = "<order/>"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture
def started(server: PostgresServer, tmp_path: Path) -> Iterator[Callable[[], BrokerProcess]]:
    """Starts processes, of which the first has an empty store."""
    processes: list[BrokerProcess] = []
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")

    def start() -> BrokerProcess:
        token = processes[0].token if processes else ""
        folder = tmp_path / str(len(processes))
        processes.append(BrokerProcess(folder, "--store", server.url, token=token))
        return processes[-1]

    with ExitStack() as stack:
        stack.callback(lambda: [each.kill() for each in processes])
        yield start


def until(function: Callable[[], Any], seconds: float = 20.0) -> Any:
    """What a function returns, once it returns something and does not fail."""
    end = time.monotonic() + seconds
    while True:
        try:
            if found := function():
                return found
        except (AssertionError, httpx2.TransportError):
            if time.monotonic() > end:
                raise
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.05)


def is_unknown(process: BrokerProcess, url: str) -> bool:
    return process.http.get(url).status_code == 404


def taken(process: BrokerProcess, topic: str, id: str) -> list[int]:
    """The numbers of all messages that there are now, which are acknowledged."""
    found = []
    while (lease := process.lease(topic, id))["messages"]:
        numbers = [each["number"] for each in lease["messages"]]
        done = {"token": lease["token"], "numbers": numbers}
        answer = process.http.post(f"{topic}/subscriptions/{id}/acknowledge", json=done)
        assert answer.status_code == 204, answer.text
        found += numbers
    return found


def test_any_process_answers_for_any_topic(started: Callable[[], BrokerProcess]) -> None:
    one, two = started(), started()
    topics = [one.new_topic("orders"), two.new_topic("others")]
    for topic in topics:
        for each in (one, two):
            each.subscribe(topic, f"of-{each.port}", "//order")
            with httpx2.stream(
                "GET",
                f"{each.url}{topic}/subscriptions/of-{each.port}/events",
                headers={"authorization": f"Bearer {each.token}"},
                timeout=20,
            ) as events:
                other = two if each is one else one
                number = other.publish(topic, ORDER)["number"]
                lines = (line for line in events.iter_lines() if line.startswith("data"))
                assert f'"number":{number}' in next(lines)
    assert [each["name"] for each in two.http.get("/v1/topics").json()] == ["orders", "others"]
    assert two.http.get(topics[0]).json() == one.http.get(topics[0]).json()
    assert two.http.get("/v1/topics/none").status_code == 404
    assert two.anonymous.get(topics[0]).status_code == 401
    refused = two.http.post("/v1/topics", json={"name": "orders"})
    assert checked(refused, 409)["code"] == "broker-taken"
    large = b"<order>" + b"<a>text</a>" * 50_000 + b"</order>"
    for each in (one, two):
        answer = each.http.post(f"{topics[0]}/messages", content=large, headers=XML)
        assert checked(answer, 202)["matches"] == 2
    assert two.http.delete(topics[0]).status_code == 204
    assert [each["name"] for each in one.http.get("/v1/topics").json()] == ["others"]
    two.new_topic("orders")
    assert one.publish(topics[0], ORDER) == {"number": 1, "version": 0, "matches": 0}
    for each in (one, two):
        for id in ("%00", "%2500"):
            url = f"{topics[1]}/subscriptions/{id}/events"
            until(partial(is_unknown, each, url))
    for each in (one, two):
        each.stop()
    one.start()  # what is read now was stored as the new topic's
    assert one.http.get(f"{topics[0]}/messages/1").json()["document"] == ORDER
    assert one.http.get(f"{topics[0]}/messages/2").status_code == 404
    one.stop()


def test_two_processes_make_a_topic_at_once(started: Callable[[], BrokerProcess]) -> None:
    one, two = started(), started()
    with ThreadPoolExecutor(2) as pool:
        for number in range(30):
            new = {"name": f"t{number}"}
            made = [pool.submit(each.http.post, "/v1/topics", json=new) for each in (one, two)]
            assert sorted(each.result().status_code for each in made) == [201, 409]
    for each in (one, two):
        assert "tamis_restarts_total 0" in each.http.get("/metrics").text


def test_an_export_that_is_cut_says_so(started: Callable[[], BrokerProcess]) -> None:
    one, two = started(), started()
    topic = one.new_topic("orders")
    each = {"expression": "//order", "webhook": {"url": "https://example.com/" + "x" * 900}}
    lines = b"".join(json.dumps({"id": f"s{n}"} | each).encode() + b"\n" for n in range(10_000))
    answer = one.http.post(f"{topic}/subscriptions/import", content=lines, timeout=120)
    assert checked(answer, 200)["added"] == 10_000
    headers = {"authorization": f"Bearer {two.token}"}
    url = f"{two.url}{topic}/subscriptions/export"
    with httpx2.stream("GET", url, headers=headers, timeout=60) as export:
        found = export.iter_lines()
        next(found)
        one.kill()
        *_, last = found
    assert json.loads(last)["code"] == "broker-elsewhere"


def test_a_websocket_goes_to_the_process_of_its_topic(started: Callable[[], BrokerProcess]) -> None:
    one, two = started(), started()
    topic = one.new_topic("orders")
    one.subscribe(topic, "all", "//order")
    one.publish(topic, ORDER)
    headers = {"authorization": f"Bearer {two.token}"}
    url = f"ws{two.url[4:]}{topic}/subscriptions"
    with connect(f"{url}/all/socket", additional_headers=headers) as socket:
        assert '"number":1' in socket.recv(20)
        socket.send('{"acknowledge": [1]}')
        one.publish(topic, ORDER)
        assert '"number":2' in socket.recv(20)
        socket.send("no")
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4400
    assert taken(one, topic, "all") == [2]


def test_a_process_takes_the_topics_of_one_that_is_killed(
    started: Callable[[], BrokerProcess],
) -> None:
    one, two = started(), started()
    topic = one.new_topic("orders")
    one.subscribe(topic, "all", "//order")
    numbers = [each.publish(topic, ORDER)["number"] for each in (one, two, two)]
    one.kill()
    assert numbers == [1, 2, 3]
    refused = two.http.post(f"{topic}/messages", content=ORDER, headers=XML)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert until(lambda: two.publish(topic, ORDER))["number"] == 4
    assert taken(two, topic, "all") == [1, 2, 3, 4]
    one.start()
    assert one.publish(topic, ORDER)["number"] == 5
    assert taken(one, topic, "all") == [5]


def test_a_process_that_stands_still_loses_its_topics(started: Callable[[], BrokerProcess]) -> None:
    one, two = started(), started()
    topic = one.new_topic("orders")
    one.subscribe(topic, "all", "//order")
    one.publish(topic, ORDER)
    one.process.send_signal(signal.SIGSTOP)
    assert until(lambda: two.publish(topic, ORDER))["number"] == 2
    one.process.send_signal(signal.SIGCONT)
    assert until(lambda: one.publish(topic, ORDER))["number"] == 3
    assert taken(one, topic, "all") == [1, 2, 3]


def test_topics_are_shared_out(started: Callable[[], BrokerProcess]) -> None:
    one = started()
    topics = [one.new_topic(f"t{number}") for number in range(4)]
    for topic in topics:
        one.subscribe(topic, "all", "//order")
        one.publish(topic, ORDER)
    two = started()

    statuses = set()
    while [owned_by(each) for each in (one, two)] != [2, 2]:
        for topic in topics:
            answer = one.http.post(f"{topic}/messages", content="<other/>", headers=XML)
            statuses.add((answer.status_code, answer.headers.get("retry-after")))
    assert statuses <= {(202, None), (503, "1")}
    for topic in topics:
        until(partial(two.publish, topic, ORDER))
        assert len(taken(two, topic, "all")) == 2
    two.stop()
    until(lambda: owned_by(one) == 4)
    for topic in topics:
        until(partial(one.publish, topic, ORDER))
        assert len(taken(one, topic, "all")) == 1
    one.stop()


def owned_by(process: BrokerProcess) -> int:
    """How many topics a process has."""
    return process.http.get("/metrics").text.count("tamis_topic_messages_total{")


def test_tokens_are_those_of_all_processes(started: Callable[[], BrokerProcess]) -> None:
    one, two = started(), started()
    made: dict[str, Any] = checked(one.http.post("/v1/tokens", json={"rights": ["subscribe"]}), 201)
    with two.client(made["token"]) as client:
        until(lambda: client.get("/v1/topics").status_code == 200, 1.5)
        assert one.http.delete(f"/v1/tokens/{made['id']}").status_code == 204
        until(lambda: client.get("/v1/topics").status_code == 401, 1.5)
