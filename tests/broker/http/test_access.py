"""Who may do what: every route refuses who has no token, not the right, or another tenant's."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.broker.http.process import JSON, XML, BrokerProcess, checked

OPEN = {"/healthz", "/readyz", "/metrics"}
SECRET = "s3cr3t"
_NUMBERS = count(1)
RIGHTS = ("publish", "subscribe", "admin", "operator")
BODIES: dict[tuple[str, str], Any] = {
    ("post", "/v1/topics"): {"name": "new"},
    ("post", "/v1/topics/{topic}/subscriptions"): {"id": "new", "expression": "//a"},
    ("put", "/v1/topics/{topic}/subscriptions/{id}"): {"expression": "//a"},
    ("post", "/v1/topics/{topic}/subscriptions/import"): {"id": "new2", "expression": "//a"},
    ("post", "/v1/topics/{topic}/messages"): {"temp": 1},
    ("post", "/v1/tokens"): {"rights": ["publish"]},
    ("post", "/v1/match"): {"expressions": {"a": "//a"}, "document": "<a/>"},
    ("post", "/v1/explain"): {"expression": "//a"},
    ("post", "/v1/topics/{topic}/subscriptions/{id}/lease"): {},
    ("post", "/v1/topics/{topic}/subscriptions/{id}/acknowledge"): {"token": 1, "numbers": [1]},
    ("post", "/v1/topics/{topic}/subscriptions/{id}/fail"): {"token": 1, "number": 1},
    ("post", "/v1/topics/{topic}/subscriptions/{id}/extend"): {"token": 1},
    ("post", "/v1/topics/{topic}/subscriptions/{id}/release"): {"token": 1},
}
NOT_THE_TENANTS = {"/v1/topics", "/v1/tokens", "/v1/match", "/v1/explain"}
"""Routes that name nothing of a tenant: they answer what the caller has."""


@pytest.fixture
def own(broker: BrokerProcess) -> str:
    """A topic of the first tenant, with a subscription, a dead message, and a message."""
    topic = broker.new_topic(f"{SECRET}-topic-{next(_NUMBERS)}")
    options = {"delivery": {"attempts_max": 1}}
    broker.subscribe(topic, f"{SECRET}-id", f"//{SECRET}", payload="document", **options)
    for _ in range(2):
        broker.publish(topic, f"<{SECRET}/>")
    lease = broker.lease(topic, f"{SECRET}-id", max=1)
    failed = {"token": lease["token"], "number": 1, "reason": SECRET}
    checked(broker.http.post(f"{topic}/subscriptions/{SECRET}-id/fail", json=failed), 204)
    return topic


def routes(broker: BrokerProcess) -> Iterator[tuple[str, str]]:
    described = checked(broker.http.get("/openapi.json"), 200)
    found = [(method, path) for path, each in described["paths"].items() for method in each]
    assert len(found) > 25
    assert {"/v1/topics/{topic}/messages", "/v1/topics/{topic}/subscriptions/{id}/events"} <= {
        path for _, path in found
    }
    yield from ((method, path) for method, path in found if path not in OPEN)


def call(
    broker: BrokerProcess, own: str, method: str, path: str, token: str | None
) -> httpx2.Response:
    content = BODIES.get((method, path))
    id = broker.token.split("_")[1] if "/tokens/" in path else f"{SECRET}-id"
    named = path.format(topic=own.rpartition("/")[2], id=id, number=1)
    body = None if content is None else json.dumps(content)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    headers |= JSON if content is not None else {}
    with broker.anonymous.stream(method.upper(), named, content=body, headers=headers) as answer:
        if not (answer.is_success and path.endswith("/events")):  # a stream has no end
            answer.read()
        return answer


def test_every_route_needs_a_token(broker: BrokerProcess, own: str) -> None:
    good = broker.token
    for method, path in routes(broker):
        for token in (None, "tms_", good[:-1], good[:-1] + ("A" if good[-1] != "A" else "B"),
                      "tms_" + "0" * 16 + good[20:], good + "x"):  # fmt: skip
            answer = call(broker, own, method, path, token)
            assert checked(answer, 401)["code"] == "broker-unauthorized", path
            assert answer.headers["www-authenticate"].startswith("Bearer")


def test_every_route_needs_a_right(broker: BrokerProcess, own: str) -> None:
    tokens = {right: broker.new_token(right) for right in RIGHTS}
    with_right: dict[str, set[str]] = {right: set() for right in RIGHTS}
    for method, path in routes(broker):
        if method == "delete":
            continue
        for right, token in tokens.items():
            answer = call(broker, own, method, path, token)
            if answer.status_code == 403:
                assert checked(answer, 403)["code"] == "broker-forbidden"
            else:
                assert answer.status_code < 500
                with_right[right].add(f"{method} {path}")
    assert with_right["publish"] == {"post /v1/topics/{topic}/messages"}
    assert with_right["operator"] == set()
    assert with_right["admin"] == {"post /v1/topics", "get /v1/tokens", "post /v1/tokens"}
    deleted = {path for method, path in routes(broker) if method == "delete"}
    assert deleted == {"/v1/tokens/{id}", "/v1/topics/{topic}", _SUBSCRIPTION}
    for path in deleted:
        right = "subscribe" if path == _SUBSCRIPTION else "admin"
        for other in set(RIGHTS) - {right}:
            checked(call(broker, own, "delete", path, tokens[other]), 403)


_SUBSCRIPTION = "/v1/topics/{topic}/subscriptions/{id}"


def test_nothing_of_another_tenant(broker: BrokerProcess, own: str) -> None:
    other = broker.new_token(*RIGHTS[:3], tenant="other")
    before = snapshot(broker, own)
    for method, path in routes(broker):
        answer = call(broker, own, method, path, other)
        if path in NOT_THE_TENANTS:
            assert answer.is_success, (path, answer.text)
        else:
            assert checked(answer, 404)["code"] == "broker-unknown", path
        answered = answer.text.replace(own.rpartition("/")[2], "").replace(f"{SECRET}-id", "")
        assert SECRET not in answered, (path, answer.text)
    assert snapshot(broker, own) == before
    operator = broker.new_token("operator", tenant="other")
    for token in (None, other):
        with broker.client(token) as client:
            assert SECRET not in client.get("/metrics").text
    with broker.client(operator) as client:
        assert SECRET in client.get("/metrics").text


def snapshot(broker: BrokerProcess, topic: str) -> list[str]:
    paths = (
        topic,
        f"{topic}/subscriptions",
        f"{topic}/subscriptions/{SECRET}-id/dead",
        "/v1/tokens",
    )
    found = [broker.http.get(path).text for path in paths]
    return [text for text in found if '"other"' not in text]


def test_a_topic_of_the_same_name(broker: BrokerProcess, own: str) -> None:
    """Two tenants have a topic, a subscription and a key of the same name: nothing crosses."""
    token = broker.new_token(*RIGHTS[:3], tenant="twin")
    with broker.client(token) as twin:
        checked(twin.post("/v1/topics", json={"name": own.rpartition("/")[2]}), 201)
        new = {"id": f"{SECRET}-id", "expression": "//*", "payload": "document"}
        checked(twin.post(f"{own}/subscriptions", json=new), 201)
        key = XML | {"idempotency-key": "same"}
        first = broker.http.post(f"{own}/messages", content=f"<{SECRET}/>", headers=key)
        again = twin.post(f"{own}/messages", content="<twin/>", headers=key)
        assert checked(first, 202)["matches"] == checked(again, 202)["matches"] == 1
        leased = checked(twin.post(f"{own}/subscriptions/{SECRET}-id/lease", json={}), 200)
        assert [each["document"] for each in leased["messages"]] == ["<twin/>"]
        lease = broker.lease(own, f"{SECRET}-id")
        acknowledged = {"token": lease["token"], "numbers": [lease["messages"][0]["number"]]}
        stolen = twin.post(f"{own}/subscriptions/{SECRET}-id/acknowledge", json=acknowledged)
        assert checked(stolen, 409)["code"] == "broker-lease"
        path = f"{own}/subscriptions/{SECRET}-id/release"
        checked(broker.http.post(path, json={"token": lease["token"]}), 204)


def test_streams_need_a_token(broker: BrokerProcess, own: str) -> None:
    stream = f"{own}/subscriptions/{SECRET}-id"
    publisher, other = broker.new_token("publish"), broker.new_token("subscribe", tenant="other")
    for token, status in ((None, 401), ("tms_x", 401), (publisher, 403), (other, 404)):
        query = "" if token is None else f"?token={token}"
        with broker.client() as client:
            checked(client.get(f"{stream}/events{query}"), status)
        address = f"ws://127.0.0.1:{broker.port}{stream}/socket{query}"
        with pytest.raises(InvalidStatus) as refused, connect(address):
            pass
        assert refused.value.response.status_code == 403  # what ASGI has before a socket opens


def test_expired_and_revoked(broker: BrokerProcess) -> None:
    brief = broker.new_token("subscribe", days=1 / 86_400)
    with broker.client(brief) as client:
        checked(client.get("/v1/topics"), 200)
        time.sleep(1.1)
        assert "expired" in checked(client.get("/v1/topics"), 401)["detail"]
    token = broker.new_token("subscribe")
    with broker.client(token) as client:
        checked(client.get("/v1/topics"), 200)
        checked(broker.http.delete(f"/v1/tokens/{token.split('_')[1]}"), 204)
        assert "revoked" in checked(client.get("/v1/topics"), 401)["detail"]


def test_tokens_are_not_shown_again(broker: BrokerProcess) -> None:
    token = broker.new_token("publish")
    listed = broker.http.get("/v1/tokens")
    mine = [each for each in checked(listed, 200) if each["id"] == token.split("_")[1]]
    assert [each["token"] for each in mine] == [None]
    assert token.split("_", 2)[2] not in listed.text
    assert all(secret not in path.read_bytes() for path in (broker.folder / "data").glob("*.db*")
               for secret in [token.split("_", 2)[2].encode()])  # fmt: skip
    assert (broker.folder / "data/token").stat().st_mode & 0o777 == 0o600


def test_an_admin_makes_no_operator(broker: BrokerProcess) -> None:
    admin = broker.new_token("admin")
    with broker.client(admin) as client:
        for new in ({"rights": ["operator"]}, {"rights": ["publish"], "tenant": "other"}):
            checked(client.post("/v1/tokens", json=new), 403)
        made = checked(client.post("/v1/tokens", json={"rights": ["publish"]}), 201)
        assert made["tenant"] == "default"
    checked(broker.http.post("/v1/tokens", json={"rights": ["publish"], "tenant": "../x"}), 422)
