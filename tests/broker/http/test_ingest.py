"""Messages come in: in all forms, whole, once, and none harms another."""

from __future__ import annotations

import gzip
import json
import socket
import time
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

from tests.broker.http.process import BODY_BYTES, BODY_S, JSON, XML, BrokerProcess, checked

ORDER = b"<order><total>250</total></order>"
LINES = {"content-type": "application/x-ndjson"}
MULTIPART = {"content-type": "multipart/mixed; boundary=frontier"}
BATCH = {"content-type": "application/cloudevents-batch+json"}


@pytest.fixture
def both(broker: BrokerProcess, topic: str) -> str:
    """A topic whose subscriptions ``xml`` and ``hot`` deliver documents."""
    broker.subscribe(topic, "xml", "//order[total > 100]", payload="document")
    broker.subscribe(topic, "hot", "temp > 30", language="events", payload="document")
    return topic


def post(broker: BrokerProcess, topic: str, body: bytes, *headers: dict[str, str]) -> Any:
    merged = {name: value for each in headers for name, value in each.items()}
    return broker.http.post(f"{topic}/messages", content=body, headers=merged)


def unharmed(broker: BrokerProcess, topic: str) -> None:
    """Others can still publish: the broker did not start again."""
    found = broker.publish(topic, ORDER)
    assert found["matches"] == 1
    metrics = broker.http.get("/metrics").text
    assert "tamis_restarts_total 0.0" in metrics


def delivered(broker: BrokerProcess, topic: str, id: str) -> list[dict[str, Any]]:
    lease = broker.lease(topic, id)
    messages: list[dict[str, Any]] = lease["messages"]
    broker.acknowledge(topic, id, lease["token"], *(each["number"] for each in messages))
    return messages


def test_xml_and_json(broker: BrokerProcess, both: str) -> None:
    first = checked(post(broker, both, ORDER, XML, {"x-message-id": "a-1"}), 202)
    assert first == {"number": 1, "version": 2, "matches": 1}
    assert checked(post(broker, both, b'{"temp": 31}', JSON), 202)["matches"] == 1
    assert checked(post(broker, both, b"<order/>", XML), 202)["matches"] == 0
    (xml,), (event,) = delivered(broker, both, "xml"), delivered(broker, both, "hot")
    assert (xml["number"], xml["document"], xml["id"]) == (1, ORDER.decode(), "a-1")
    assert (event["number"], event["document"]) == (2, {"temp": 31})


@pytest.mark.parametrize("body", [
    b'{\n  "temp":\r\n 31\n}', b'\xef\xbb\xbf{"temp":31}', b' \n{"temp":31}\n',
    b'{"temp":31,"a":"\xe2\x80\xa8"}', b'{"temp":31,\n"deep":' + b"[" * 300 + b"]" * 300 + b"}",
])  # fmt: skip
def test_json_is_delivered_as_json(broker: BrokerProcess, both: str, body: bytes) -> None:
    assert checked(post(broker, both, body, JSON), 202)["matches"] == 1
    expected = json.loads(body.decode("utf-8-sig"))
    (event,) = delivered(broker, both, "hot")
    assert event["document"] == expected
    lines: list[str] = []
    path = f"{both}/subscriptions/hot/events"
    with broker.http.stream("GET", path, headers={"last-event-id": "0"}) as answer:
        for chunk in answer.iter_text():
            lines += chunk.split("\n")
            if any(line.startswith("data:") for line in lines):
                break
    (data,) = [line for line in lines if line.startswith("data:")]
    assert json.loads(data.removeprefix("data:"))["document"] == expected


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (b"<order>", XML, 422, "document-malformed"),
        (b"", XML, 422, "document-malformed"),
        (b"{", JSON, 422, "event-malformed"),
        (b"", JSON, 422, "event-malformed"),
        (b"\xef\xbb\xbf", JSON, 422, "event-malformed"),
        (b"\xef\xbb\xbf" * 2, JSON, 422, "event-malformed"),
        (b'\x0b{"temp": 31}', JSON, 422, "event-malformed"),
        (b'{"temp": NaN}', JSON, 422, "event-malformed"),
        (b'{"temp":\n"\n"}', JSON, 422, "event-malformed"),
        (b"[" * 300 + b"\n" + b"]" * 300, JSON, 422, "event-malformed"),
        (b"[" * 100_000 + b"\n" + b"]" * 100_000, JSON, 422, "event-malformed"),
        (b'{"temp": "\xff"}', JSON, 422, "event-malformed"),
        (b"a,b", {"content-type": "text/csv"}, 415, "broker-content-type"),
        (b"<a/>", XML | {"content-encoding": "br"}, 415, "broker-content-type"),
        (b"<a/>", XML | {"content-encoding": "gzip"}, 400, "broker"),
        (gzip.compress(ORDER)[:-4], XML | {"content-encoding": "gzip"}, 400, "broker"),
        (gzip.compress(b"") * 100 + gzip.compress(ORDER), XML | {"content-encoding": "gzip"}, 400,
         "broker"),
        (ORDER, {"content-type": "multipart/mixed"}, 400, "broker"),
        (b"--frontier\r\n\r\n<a/>\r\n--frontier\r\n\r\n<b", MULTIPART, 400, "broker"),
        (b"nothing", MULTIPART, 400, "broker"),
        (b"--frontier\r\ncontent-type: text/xml\r\n--frontier--\r\n", MULTIPART, 400, "broker"),
        (b"--frontier and more\r\n\r\n<a/>\r\n--frontier--\r\n", MULTIPART, 400, "broker"),
        (b"{}", BATCH, 400, "broker"),
        (b"[", BATCH, 400, "broker"),
        (b"{}", {"content-type": "application/cloudevents+json"}, 400, "broker"),
        (b"{}", JSON | {"ce-specversion": "1.0", "ce-id": "1"}, 400, "broker"),
        (ORDER, XML | {"idempotency-key": "k" * 256}, 400, "broker"),
        (ORDER, XML | {"x-message-id": "i" * 513}, 400, "broker"),
        (ORDER, XML | {"ce-specversion": "1.0", "ce-id": "%00", "ce-source": "s", "ce-type": "t"},
         400, "broker"),
        (b"--frontier\r\nContent-ID: a\x01b\r\n\r\n<a/>\r\n--frontier--\r\n", MULTIPART, 400,
         "broker"),
        (b"x" * (BODY_BYTES + 1), XML, 413, "broker-too-large"),
        (gzip.compress(b" " * (50 << 20)), XML | {"content-encoding": "gzip"}, 413,
         "broker-too-large"),
        (b"{}\n" * 10_001, LINES, 413, "broker-too-large"),
    ],
)  # fmt: skip
def test_bad_bodies(
    broker: BrokerProcess, both: str, body: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    assert checked(post(broker, both, body, headers), status)["code"] == code
    unharmed(broker, both)


def test_a_bad_document_has_its_place(broker: BrokerProcess, topic: str) -> None:
    problem = checked(post(broker, topic, b"<a>\n<b></a>", XML), 422)
    assert (problem["line"], problem["column"]) == (2, 6)


def test_an_entity_bomb(broker: BrokerProcess, both: str) -> None:
    entities = '<!ENTITY a0 "aaaaaaaaaa">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12)
    )
    bomb = f"<!DOCTYPE order [{entities}]><order>&a11;</order>".encode()
    start = time.monotonic()
    answer = post(broker, both, bomb, XML)
    assert answer.status_code == 422, answer.text
    assert time.monotonic() - start < 5
    unharmed(broker, both)


def test_gzip(broker: BrokerProcess, both: str) -> None:
    packed = gzip.compress(ORDER[:10]) + gzip.compress(ORDER[10:])  # of several members
    assert checked(post(broker, both, packed, XML, {"content-encoding": "gzip"}), 202)["matches"]
    assert delivered(broker, both, "xml")[0]["document"] == ORDER.decode()


# -- batches ---------------------------------------------------------------------------------------


def test_ndjson(broker: BrokerProcess, both: str) -> None:
    lines = b'{"temp": 1}\n\n{"temp": 32}\n{"temp":\n{"temp": 33}'
    results = checked(post(broker, both, lines, LINES), 207)["results"]
    assert [each.get("number") for each in results] == [1, 2, None, 3]
    assert [each.get("matches") for each in results] == [0, 1, None, 1]
    assert results[2]["problem"]["status"] == 422
    assert [each["number"] for each in delivered(broker, both, "hot")] == [2, 3]
    assert checked(post(broker, both, b"\n", LINES), 202) == {"results": []}


@pytest.mark.parametrize("kind", ["application/json", "application/xml"])
def test_a_compressed_part_is_refused_and_nothing_else(
    broker: BrokerProcess, both: str, kind: str
) -> None:
    bodies = [b"\x1f\x8b", gzip.compress(b'{"temp": 31}\n' * 3), b'{"temp": 31}', b'{"temp": 1}']
    if kind == "application/xml":
        bodies = [gzip.compress(ORDER), b"\x1f\x8b", ORDER, b"<order/>"]
    head = f"--frontier\r\ncontent-type: {kind}\r\n\r\n".encode()
    parts = b"".join(head + body + b"\r\n" for body in bodies) + b"--frontier--\r\n"
    results = checked(post(broker, both, parts, MULTIPART), 207)["results"]
    assert [each.get("matches") for each in results] == [None, None, 1, 0]
    assert checked(post(broker, both, bodies[0], {"content-type": kind}), 422)
    unharmed(broker, both)


def test_many_lines_are_not_made_first(broker: BrokerProcess, both: str) -> None:
    packed = gzip.compress(b"11\n" * 1_000_000)
    checked(post(broker, both, packed, LINES, {"content-encoding": "gzip"}), 413)


def test_multipart(broker: BrokerProcess, both: str) -> None:
    parts = (
        b"--frontier\r\nContent-Type: application/json\r\n\r\n" + b'{"temp": 31}' + b"\r\n"
        b"--frontier\r\nContent-ID: <x-1>\r\n\r\n" + ORDER + b"\r\n"
        b"--frontier\r\ncontent-type: text/csv\r\n\r\na,b\r\n"
        b"--frontier \t\r\ncontent-type: text/xml;\r\n charset=utf-8\r\n\r\n<a>\r\n--frontier--\r\n"
        b"what follows is no part\r\n--frontier\r\n"
    )
    results = checked(post(broker, both, parts, MULTIPART), 207)["results"]
    assert [each.get("matches") for each in results] == [1, 1, None, None]
    assert [each["problem"]["status"] for each in results[2:]] == [415, 422]
    (xml,) = delivered(broker, both, "xml")
    assert (xml["id"], xml["document"]) == ("x-1", ORDER.decode())


# -- CloudEvents -----------------------------------------------------------------------------------


def cloud_event(number: int, data: Any, content_type: str = "application/json") -> CloudEvent:
    attributes = {
        "id": f"e{number}", "source": "/sensors/é", "type": "reading", "specversion": "1.0",
        "datacontenttype": content_type, "subject": "100% sure", "dataschema": "urn:schema",
        "datasetid": "s7",
    }  # fmt: skip
    return CloudEvent(attributes, data)


def send(broker: BrokerProcess, topic: str, message: HTTPMessage) -> Any:
    return post(broker, topic, message.body, dict(message.headers))


def check_event(message: dict[str, Any], event: CloudEvent) -> None:
    assert message["id"] == event.get_id()
    found = message["cloudevent"]
    expected = {name: value for name, value in event.get_attributes().items()
                if name not in ("datacontenttype", "time")}  # fmt: skip
    assert {name: found[name] for name in expected} == expected


def test_cloudevents_binary_and_structured(broker: BrokerProcess, both: str) -> None:
    events = [cloud_event(1, {"temp": 31}), cloud_event(2, {"temp": 32})]
    checked(send(broker, both, to_binary_event(events[0])), 202)
    checked(send(broker, both, to_structured_event(events[1])), 202)
    messages = delivered(broker, both, "hot")
    assert [each["document"] for each in messages] == [{"temp": 31}, {"temp": 32}]
    for message, event in zip(messages, events, strict=True):
        check_event(message, event)


def test_cloudevents_with_xml(broker: BrokerProcess, both: str) -> None:
    events = [cloud_event(n, ORDER, "application/xml") for n in (1, 2)]
    checked(send(broker, both, to_binary_event(events[0])), 202)
    checked(send(broker, both, to_structured_event(events[1])), 202)  # as data_base64
    messages = delivered(broker, both, "xml")
    assert [each["document"] for each in messages] == [ORDER.decode()] * 2
    for message, event in zip(messages, events, strict=True):
        check_event(message, event)


def test_a_batch_of_cloudevents(broker: BrokerProcess, both: str) -> None:
    bodies = [to_structured_event(cloud_event(n, {"temp": 30 + n})).body for n in range(3)]
    results = checked(post(broker, both, b"[" + b",".join(bodies) + b"]", BATCH), 202)["results"]
    assert [each["matches"] for each in results] == [0, 1, 1]
    assert [each["id"] for each in delivered(broker, both, "hot")] == ["e1", "e2"]


def test_a_bad_event_of_a_batch(broker: BrokerProcess, both: str) -> None:
    good = to_structured_event(cloud_event(1, {"temp": 31})).body
    batch = b'[{"id": "5"}, ' + good + b", 7]"
    results = checked(post(broker, both, batch, BATCH), 207)["results"]
    assert [each.get("matches") for each in results] == [None, 1, None]
    assert "'specversion'" in results[0]["problem"]["detail"]


def test_a_deep_cloudevent(broker: BrokerProcess, both: str) -> None:
    body = json.loads(to_structured_event(cloud_event(1, {})).body)
    text = json.dumps(body).replace('"data": {}', '"data": ' + "[" * 300 + "]" * 300)
    headers = {"content-type": "application/cloudevents+json"}
    assert checked(post(broker, both, text.encode(), headers), 400)["code"] == "broker"
    unharmed(broker, both)


# -- idempotency -----------------------------------------------------------------------------------


def test_a_key_stores_once(broker: BrokerProcess, both: str) -> None:
    key = {"idempotency-key": "key"}
    first = checked(post(broker, both, ORDER, XML, key), 202)
    again = checked(post(broker, both, ORDER, XML, key), 202)
    assert again == {"number": first["number"], "repeated": True}
    for other in (ORDER + b" ", XML), (ORDER, XML | {"x-message-id": "other"}):
        assert checked(post(broker, both, *other, key), 422)["code"] == "broker-key"
    assert checked(broker.http.get(both), 200)["messages"] == 1
    other_topic = broker.new_topic("another-scope")
    assert checked(post(broker, other_topic, b"<x/>", XML, key), 202)["number"] == 1


def test_a_key_of_a_batch(broker: BrokerProcess, both: str) -> None:
    key = {"idempotency-key": "key"}
    lines = b'{"temp": 1}\n{"temp":\n{"temp": 2}'
    first = checked(post(broker, both, lines, LINES, key), 207)["results"]
    again = checked(post(broker, both, lines, LINES, key), 207)["results"]
    assert [each.get("number") for each in again] == [each.get("number") for each in first]
    longer = lines.replace(b"2", b"3") + b'\n{"temp": 4}'
    assert checked(post(broker, both, longer, LINES, key), 422)["code"] == "broker-key"
    assert checked(broker.http.get(both), 200)["messages"] == 2


# -- slow, large, gone -----------------------------------------------------------------------------


def head(broker: BrokerProcess, path: str, *more: str, token: bool = True) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: broker", "content-type: application/json", *more]
    if token:
        lines.append(f"authorization: Bearer {broker.token}")
    return "\r\n".join([*lines, "", ""]).encode()


def connect(broker: BrokerProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), timeout=20)


def status(talking: socket.socket) -> int:
    return int(talking.recv(4096).split(b" ")[1])


@pytest.mark.parametrize("path", ["/messages", "/subscriptions", "/subscriptions/import"])
def test_a_slow_body(broker: BrokerProcess, both: str, path: str) -> None:
    with connect(broker) as talking:
        talking.sendall(head(broker, both + path, "content-length: 100") + b'{"te')
        start = time.monotonic()
        assert status(talking) == 408
        assert BODY_S - 0.5 < time.monotonic() - start < BODY_S + 5
    unharmed(broker, both)


@pytest.mark.parametrize("path", ["/messages", "/subscriptions"])
def test_a_body_without_a_length_that_is_too_large(
    broker: BrokerProcess, both: str, path: str
) -> None:
    with connect(broker) as talking:
        talking.sendall(head(broker, both + path, "transfer-encoding: chunked"))
        chunk = b"%x\r\n" % 65_536 + b" " * 65_536 + b"\r\n"
        for _ in range(BODY_BYTES // 65_536 + 1):
            talking.sendall(chunk)
        assert status(talking) == 413


def test_no_body_is_read_without_a_token(broker: BrokerProcess, both: str) -> None:
    for path in ("/messages", "/subscriptions", "/subscriptions/import"):
        with connect(broker) as talking:
            length = f"content-length: {BODY_BYTES}"
            talking.sendall(head(broker, both + path, length, token=False))
            start = time.monotonic()
            assert status(talking) == 401
            assert time.monotonic() - start < BODY_S / 2


def test_a_connection_that_ends_within_a_body(broker: BrokerProcess, both: str) -> None:
    with connect(broker) as talking:
        talking.sendall(head(broker, f"{both}/messages", "content-length: 100") + b'{"temp": 31}')
    unharmed(broker, both)
    assert checked(broker.http.get(both), 200)["messages"] == 1


def test_huge_headers(broker: BrokerProcess, both: str) -> None:
    with connect(broker) as talking:
        talking.sendall(head(broker, both, "x: " + "y" * (2 << 20))[: 2 << 20])
        assert status(talking) in (400, 431)
    unharmed(broker, both)


def test_an_unknown_topic(broker: BrokerProcess) -> None:
    for name in ("none", "%2e%2e", "..%2f..", "%00", "x" * 5_000):
        answer = post(broker, f"/v1/topics/{name}", ORDER, XML)
        assert answer.status_code in (404, 405, 422), answer.text
