"""Subscriptions over HTTP: made, read, changed, listed, moved, and live when they are answered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.broker.http.process import JSON, BrokerProcess, checked

LINES = {"content-type": "application/x-ndjson"}
EXPRESSION = "//order[total > 100]"


def bulk(broker: BrokerProcess, topic: str, *lines: Any) -> dict[str, Any]:
    text = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in lines)
    answer = broker.http.post(f"{topic}/subscriptions/import", content=text, headers=LINES)
    return checked(answer, 200)


def test_made_read_replaced_and_removed(broker: BrokerProcess, topic: str) -> None:
    new = {"id": "a:b@c~1+2", "expression": EXPRESSION, "payload": "nodes"}
    answer = broker.http.post(f"{topic}/subscriptions", json=new)
    made = checked(answer, 201)
    assert answer.headers["location"] == f"{topic}/subscriptions/{new['id']}"
    found = broker.http.get(answer.headers["location"])
    assert checked(found, 200) == made | {"webhook": None}
    assert found.headers["etag"] == answer.headers["etag"] == '"1"'

    other = {"expression": "//item", "delivery": {"ordered": False, "window": 7}}
    put = broker.http.put(answer.headers["location"], json=other)
    assert checked(put, 200)["expression"] == "//item"
    assert put.headers["etag"] == '"2"'
    stored = checked(broker.http.get(answer.headers["location"]), 200)
    assert (stored["payload"], stored["delivery"]["window"]) == ("ids", 7)

    checked(broker.http.delete(answer.headers["location"]), 204)
    for method in ("GET", "PUT", "DELETE"):
        content = json.dumps(other) if method == "PUT" else None
        gone = broker.http.request(
            method, answer.headers["location"], content=content, headers=JSON
        )
        assert checked(gone, 404)["code"] == "broker-unknown"
    assert checked(broker.http.post(f"{topic}/subscriptions", json=new), 201)["version"] == 4


def test_a_name_is_given_once(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", EXPRESSION)
    again = broker.http.post(f"{topic}/subscriptions", json={"id": "a", "expression": "//b"})
    assert checked(again, 409)["code"] == "broker-taken"
    name = topic.rpartition("/")[2]
    assert checked(broker.http.post("/v1/topics", json={"name": name}), 409)


def test_if_match(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", EXPRESSION)
    path, new = f"{topic}/subscriptions/a", {"expression": "//b"}
    for stale in ('"0"', '"2"', '"999999999999999999"'):
        answer = broker.http.put(path, json=new, headers={"if-match": stale})
        assert checked(answer, 412)["code"] == "broker-version"
        checked(broker.http.delete(path, headers={"if-match": stale}), 412)
    checked(broker.http.put(path, json=new, headers={"if-match": '"1"'}), 200)
    checked(broker.http.put(path, json=new, headers={"if-match": '"1"'}), 412)
    checked(broker.http.put(path, json=new, headers={"if-match": "1"}), 422)
    checked(broker.http.put(path, json=new, headers={"if-match": "*"}), 200)
    checked(broker.http.delete(path, headers={"if-match": '"3"'}), 204)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"expression": "//order["}, "found the end"),
        ({"expression": "temp >", "language": "events"}, ""),
        ({"expression": "for $x in", "language": "flwr"}, ""),
        ({"expression": "//p:a"}, "p"),
        ({"expression": "a\0b"}, ""),
        ({"expression": 'a = "\0"', "language": "events"}, "U+0000"),
        ({"expression": ""}, "at least 1 character"),
        ({"expression": "x" * (1 << 19)}, ""),
        ({"language": "sql"}, "language"),
        ({"id": "a/b"}, "id"),
        ({"id": "ä"}, "id"),
        ({"delivery": {"window": 0}}, "window"),
        ({"delivery": {"window": 1 << 70}}, "window"),
        ({"other": 1}, "other"),
        ({"payload": "message"}, "the payload message is for the language flwr"),
        ({"payload": "nodes", "language": "events", "expression": "a = 1"}, "language xpath"),
        ({"webhook": {"url": "http://169.254.169.254/"}}, ""),
        ({"webhook": {"url": "http://10.0.0.1/"}}, ""),
        ({"webhook": {"url": "ftp://127.0.0.1/"}}, ""),
        ({"webhook": {"url": "http://127.0.0.1/", "secrets": ["short"]}}, "whsec_"),
    ],
)
def test_bad_subscriptions(
    broker: BrokerProcess, topic: str, change: dict[str, Any], part: str
) -> None:
    new = {"id": "bad", "expression": EXPRESSION} | change
    problem = checked(broker.http.post(f"{topic}/subscriptions", json=new), 422)
    assert part in problem["detail"]
    assert len(problem["detail"]) < 5_000
    refused = bulk(broker, topic, new)
    assert (refused["added"], refused["refused"]) == (0, 1)
    assert refused["errors"][0]["problem"]["status"] == 422
    assert checked(broker.http.get(topic), 200)["subscriptions"] == 0
    assert broker.publish(topic, "<order><total>250</total></order>")["matches"] == 0


def test_an_error_has_its_position(broker: BrokerProcess, topic: str) -> None:
    new = {"id": "bad", "expression": "//order[total >> 1]"}
    problem = checked(broker.http.post(f"{topic}/subscriptions", json=new), 422)
    assert problem["code"] == "subscription-syntax"
    assert problem["position"] == 15


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"id": "\\ud800", "expression": "//a"}', b"\xff",
             b'{"id": "a", "expression": NaN}', b"[" * 100_000, b'{"id":' + b"9" * 10_000 + b"}"]
)  # fmt: skip
def test_bodies_that_are_no_subscriptions(broker: BrokerProcess, topic: str, body: bytes) -> None:
    answer = broker.http.post(f"{topic}/subscriptions", content=body, headers=JSON)
    assert answer.status_code in (400, 422), answer.text
    checked(answer, answer.status_code)


@pytest.mark.parametrize("namespaces", [
    {"xml": "urn:x"}, {"p": ""}, {"1p": "urn:x"}, {"": "urn:x"}, {"\ud800": "urn:x"},
])  # fmt: skip
def test_bad_namespaces(broker: BrokerProcess, namespaces: dict[str, str]) -> None:
    body = json.dumps({"name": "bad-namespaces", "namespaces": namespaces})
    checked(broker.http.post("/v1/topics", content=body, headers=JSON), 422)
    checked(broker.http.get("/v1/topics/bad-namespaces"), 404)


def test_namespaces(broker: BrokerProcess) -> None:
    topic = broker.new_topic("namespaces", namespaces={"o": "urn:orders"})
    broker.subscribe(topic, "o", "//o:order", payload="nodes")
    assert broker.publish(topic, "<order/>")["matches"] == 0
    assert broker.publish(topic, '<x:order xmlns:x="urn:orders"/>')["matches"] == 1
    assert len(broker.lease(topic, "o")["messages"][0]["nodes"]) == 1


# -- lists -----------------------------------------------------------------------------------------


def test_pages(broker: BrokerProcess, topic: str) -> None:
    ids = [f"s{n}" for n in range(25)]
    for id in ids:
        broker.subscribe(topic, id, f"//{id}")
    broker.http.delete(f"{topic}/subscriptions/s3")
    ids.remove("s3")
    found: list[str] = []
    after: str | None = None
    pages = 0
    while pages == 0 or after is not None:
        given = {"limit": "8"} | ({"after": after} if after else {})
        page = checked(broker.http.get(f"{topic}/subscriptions", params=given), 200)
        assert len(page["items"]) <= 8
        found += [each["id"] for each in page["items"]]
        after, pages = page["next"], pages + 1
    assert found == ids
    with broker.tamis() as client:
        assert [each["id"] for each in client.subscriptions(topic.rpartition("/")[2])] == ids
    for bad in ({"limit": "0"}, {"limit": "1001"}, {"after": "x"}, {"after": "9" * 19}):
        checked(broker.http.get(f"{topic}/subscriptions", params=bad), 422)


def test_export_and_import(broker: BrokerProcess, topic: str) -> None:
    secret = "whsec_" + "A" * 32
    lines = [
        {"id": "x", "expression": EXPRESSION, "payload": "nodes", "delivery": {"attempts_max": 3}},
        {"id": "e", "expression": "temp > 30", "language": "events"},
        {"id": "f", "expression": "<r>{ for $a in //a return $a/b }</r>", "language": "flwr"},
        {"id": "w", "expression": "//w", "webhook": {
            "url": "http://127.0.0.1/", "secrets": [secret], "raw": True}},
    ]  # fmt: skip
    bad = {"id": "bad", "expression": "//["}
    made = bulk(broker, topic, *lines[:2], bad, "", "{", *lines[2:], lines[0])
    assert (made["added"], made["refused"]) == (4, 3)
    assert [(each["line"], each["problem"]["status"]) for each in made["errors"]] == [
        (3, 422), (5, 422), (8, 409),
    ]  # fmt: skip
    exported = broker.http.get(f"{topic}/subscriptions/export")
    assert exported.headers["content-type"].startswith("application/x-ndjson")
    assert secret not in exported.text
    other = broker.new_topic("imported")
    again = broker.http.post(f"{other}/subscriptions/import", content=exported.text, headers=LINES)
    assert checked(again, 200)["added"] == 4
    assert broker.http.get(f"{other}/subscriptions/export").text == exported.text


def test_a_large_import(broker: BrokerProcess, topic: str) -> None:
    made = bulk(broker, topic, *({"id": f"s{n}", "expression": f"//a{n}"} for n in range(3_000)))
    assert (made["added"], made["errors"]) == (3_000, [])
    found = broker.publish(topic, "<a><a7/><a2999/><a3000/></a>")
    assert (found["matches"], found["version"] >= made["version"]) == (2, True)
    exported = broker.http.get(f"{topic}/subscriptions/export").text.splitlines()
    assert [json.loads(line)["id"] for line in exported] == [f"s{n}" for n in range(3_000)]


# -- what is live ----------------------------------------------------------------------------------


def test_read_your_writes(broker: BrokerProcess, topic: str) -> None:
    for n in range(50):
        made = broker.subscribe(topic, f"s{n}", "//order")
        found = broker.publish(topic, "<order/>")
        assert (found["matches"], found["version"]) == (n + 1, made["version"])
    broker.http.put(f"{topic}/subscriptions/s0", json={"expression": "//item"})
    assert broker.publish(topic, "<order/>")["matches"] == 49
    broker.http.delete(f"{topic}/subscriptions/s1")
    assert broker.publish(topic, "<order><item/></order>")["matches"] == 49


# -- what is only tried ----------------------------------------------------------------------------


def test_a_dry_run(broker: BrokerProcess) -> None:
    asked: dict[str, Any] = {
        "expressions": {"a": "//order", "b": "//item", "c": "//p:x"},
        "document": "<order><x xmlns='urn:p'/></order>",
        "namespaces": {"p": "urn:p"},
    }
    assert checked(broker.http.post("/v1/match", json=asked), 200) == {"matches": ["a", "c"]}
    events = {"expressions": {"hot": "temp > 30"}, "document": '{"temp": 31}', "language": "events"}
    assert checked(broker.http.post("/v1/match", json=events), 200) == {"matches": ["hot"]}


@pytest.mark.parametrize("change", [
    {"expressions": {"a": "//["}}, {"document": "<a>"}, {"document": "\0"}, {"expressions": {}},
    {"namespaces": {"xml": "urn:x"}}, {"language": "events"},
    {"language": "events", "expressions": {"a": "a = 1"}, "document": "[]"},
    {"language": "events", "expressions": {"a": "a = 1"}, "document": "[" * 100_000},
    {"language": "events", "expressions": {"a": "a = 1"}, "document": '{"a": NaN}'},
])  # fmt: skip
def test_bad_dry_runs(broker: BrokerProcess, change: dict[str, Any]) -> None:
    asked = {"expressions": {"a": "//a"}, "document": "<a/>"} | change
    checked(broker.http.post("/v1/match", json=asked), 422)
    expressions = asked.pop("expressions")
    asked["expression"] = next(iter(expressions.values()), "")
    if expressions:
        checked(broker.http.post("/v1/explain", json=asked), 422)


def test_explain(broker: BrokerProcess) -> None:
    asked = {"expression": EXPRESSION, "document": "<order><total>5</total></order>"}
    found = checked(broker.http.post("/v1/explain", json=asked), 200)
    assert found["matches"] is False
    assert "total" in found["text"]
    assert checked(broker.http.post("/v1/explain", json={"expression": EXPRESSION}), 200)


# -- topics that are deleted -----------------------------------------------------------------------


def test_a_topic_is_deleted_with_all_that_it_has(broker: BrokerProcess, topic: str) -> None:
    name = topic.rpartition("/")[2]
    broker.subscribe(topic, "a", "//order")
    assert broker.publish(topic, "<order/>", idempotency_key="k")["number"] == 1
    broker.publish(topic, "<order/>")
    with broker.tamis() as client:
        client.delete_topic(name)
    for path in ("", "/subscriptions", "/subscriptions/a", "/messages/1"):
        assert checked(broker.http.get(f"{topic}{path}"), 404)["code"] == "broker-unknown"
    checked(broker.http.delete(topic), 404)
    assert name not in [each["name"] for each in broker.http.get("/v1/topics").json()]
    broker.new_topic(name)
    assert checked(broker.http.get(f"{topic}/subscriptions"), 200)["items"] == []
    body = {"number": 1, "version": 0, "matches": 0}
    assert broker.publish(topic, "<order/>", idempotency_key="k") == body
    assert broker.publish(topic, "<order/>", idempotency_key="k") == {"number": 1, "repeated": True}


def test_consumers_of_a_topic_that_is_deleted(broker: BrokerProcess, topic: str) -> None:
    broker.subscribe(topic, "a", "//order")
    with broker.http.stream("GET", f"{topic}/subscriptions/a/events") as events:
        lines = events.iter_lines()
        assert next(lines).startswith("retry")
        assert broker.http.delete(topic).status_code == 204
        assert [line for line in lines if line.startswith("data")] == []  # it ends
