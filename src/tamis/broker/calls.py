"""The requests that clients of a broker send, and how they read the answers.

An operation is a function that returns a :class:`Call`. It knows no connection, so that
:mod:`tamis.broker.client` needs it once for both of its clients.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote

import httpx2
import orjson

from tamis.core.errors import TamisError, UsageError

T = TypeVar("T")
Json = dict[str, Any]
Body = bytes | str | Mapping[str, Any]
"""A document, or an event as an object: one message."""


class BrokerProblem(TamisError):  # noqa: N818 - what HTTP calls it
    """The broker refused a request.

    Attributes:
        status: of HTTP.
        code: stable, such as ``broker-unknown``.
        detail: what is wrong, and what to do.
        more: further members, such as ``line`` and ``column``.
    """

    def __init__(self, status: int, code: str, detail: str, more: Json | None = None) -> None:
        super().__init__(status, code, detail, more or {})
        self.status, self.detail, self.more = status, detail, more or {}
        self.code = code  # type: ignore[misc] # each has its own

    def __str__(self) -> str:
        return self.detail


class BrokerUnreachable(TamisError):  # noqa: N818 - says what is the matter
    """The broker does not answer."""

    code = "broker-unreachable"


class Published(NamedTuple):
    """A message that is stored.

    Attributes:
        version, matches: of the subscriptions it was matched with, and how many it matches; None:
            an earlier request with the same idempotency key stored it.
    """

    number: int
    version: int | None
    matches: int | None


class Lease(NamedTuple):
    """Messages that the caller has for some time. ``token`` is None if there are none."""

    token: int | None
    until: str | None
    messages: list[Json]


class Call(NamedTuple, Generic[T]):
    """A request, and what reads its answer.

    Attributes:
        is_safe: it may be sent again if the answer is lost.
        waits_s: how long the broker may wait before it answers.
    """

    method: str
    path: str
    read: Callable[[httpx2.Response], T]
    content: bytes | None = None
    headers: Mapping[str, str] = {}
    is_safe: bool = False
    waits_s: float = 0.0


def path_of(topic: str, id: str | None = None, rest: str = "") -> str:
    """The path of the subscriptions of a topic, or of one of them."""
    named = "" if id is None else f"/{quote(id, safe='')}"
    return f"/v1/topics/{quote(topic, safe='')}/subscriptions{named}{rest}"


def create_topic(name: str, **options: Any) -> Call[Json]:
    """Make a topic; options are ``namespaces``, ``retention_s``, ``retention_bytes``."""
    return _json("POST", "/v1/topics", {"name": name, **options})


def topics() -> Call[list[Json]]:
    """The topics of the tenant."""
    return Call("GET", "/v1/topics", httpx2.Response.json, is_safe=True)


def delete_topic(name: str) -> Call[None]:
    """Delete a topic, with its messages and subscriptions."""
    return Call("DELETE", f"/v1/topics/{quote(name, safe='')}", _nothing)


def publish(
    topic: str, body: Body, *, content_type: str | None = None, key: str | None = None, id: str = ""
) -> Call[Published]:
    """Publish a message; returns when it is stored durably.

    Args:
        body: XML, or an event as an object.
        content_type: XML's if it is left out, and JSON's for an object.
        key: the idempotency key. Without one, one is made: what is sent again, since an answer was
            lost, is stored once.
        id: of the message, for its consumers.
    """
    data, kind = _encoded(body, content_type)
    return _publication(topic, data, kind, key, {"x-message-id": id} if id else {}, _published)


def publish_many(
    topic: str, bodies: Iterable[Body], *, content_type: str | None = None, key: str | None = None
) -> Call[list[Published | BrokerProblem]]:
    """Publish messages in one request, of at most 10,000 messages.

    Returns the number of each message, or why it was refused; others are stored.
    """
    parts = [_encoded(body, content_type) for body in bodies]
    if all(kind == "application/json" and b"\n" not in data.strip() for data, kind in parts):
        data, kind = b"\n".join(data for data, _ in parts), "application/x-ndjson"
    else:
        boundary = uuid.uuid4().hex
        head = f"--{boundary}\r\ncontent-type: "
        lines = [f"{head}{kind}\r\n\r\n".encode() + data + b"\r\n" for data, kind in parts]
        data, kind = b"".join(lines), f"multipart/mixed; boundary={boundary}"
        data += f"--{boundary}--\r\n".encode()
    return _publication(topic, data, kind, key, {}, _published_many)


def subscribe(topic: str, id: str, expression: str, **options: Any) -> Call[Json]:
    """Add a subscription; options are ``language``, ``payload``, ``delivery`` and ``webhook``.

    The answer alone has the secret that was made for a webhook.
    """
    return _json("POST", path_of(topic), {"id": id, "expression": expression, **options})


def replace(
    topic: str, id: str, expression: str, *, version: int | None = None, **options: Any
) -> Call[Json]:
    """Replace a subscription; with a version, only if the broker has that one."""
    headers = {} if version is None else {"if-match": f'"{version}"'}
    return _json("PUT", path_of(topic, id), {"expression": expression, **options}, headers=headers)


def unsubscribe(topic: str, id: str) -> Call[None]:
    """Remove a subscription."""
    return Call("DELETE", path_of(topic, id), _nothing)


def subscription(topic: str, id: str) -> Call[Json]:
    """A subscription, as it is stored."""
    return Call("GET", path_of(topic, id), httpx2.Response.json, is_safe=True)


def subscription_page(topic: str, after: str = "", limit: int = 1_000) -> Call[Json]:
    """Some subscriptions, and ``next``, with which to ask for those after them."""
    path = f"{path_of(topic)}?limit={limit}" + (f"&after={after}" if after else "")
    return Call("GET", path, httpx2.Response.json, is_safe=True)


def import_subscriptions(topic: str, subscriptions: Iterable[Json]) -> Call[Json]:
    """Add many subscriptions; the answer lists those that were refused."""
    data = b"".join(orjson.dumps(each) + b"\n" for each in subscriptions)
    headers = {"content-type": "application/x-ndjson"}
    return Call("POST", path_of(topic) + "/import", httpx2.Response.json, data, headers)


def lease(
    topic: str, id: str, *, max: int = 100, lease_s: float = 60.0, wait_s: float = 0.0
) -> Call[Lease]:
    """Fetch messages for some time; wait for them, if there are none."""
    asked = {"max": max, "lease_s": lease_s, "wait_s": wait_s}
    call = _json("POST", path_of(topic, id, "/lease"), asked)
    return call._replace(read=lambda answer: Lease(**answer.json()), is_safe=True, waits_s=wait_s)


def acknowledge(topic: str, id: str, token: int, numbers: Iterable[int]) -> Call[None]:
    """Say that messages of a lease were received."""
    return _command(topic, id, "/acknowledge", {"token": token, "numbers": [*numbers]})


def fail(topic: str, id: str, token: int, number: int, reason: str = "") -> Call[None]:
    """Give a message back that could not be used: it comes again later."""
    said = {"reason": reason} if reason else {}
    return _command(topic, id, "/fail", {"token": token, "number": number, **said})


def release(topic: str, id: str, token: int) -> Call[None]:
    """End a lease: messages that were not acknowledged come again at once."""
    return _command(topic, id, "/release", {"token": token})


def _json(method: str, path: str, value: Json, headers: Mapping[str, str] = {}) -> Call[Any]:
    try:
        data = orjson.dumps(value)
    except TypeError as error:
        raise UsageError(f"this cannot be sent as JSON: {error}") from None
    typed = {"content-type": "application/json", **headers}
    return Call(method, path, httpx2.Response.json, data, typed)


def _command(topic: str, id: str, rest: str, value: Json) -> Call[None]:
    return _json("POST", path_of(topic, id, rest), value)._replace(read=_nothing)


def _nothing(_: httpx2.Response) -> None:
    return None


def _encoded(body: Body, content_type: str | None) -> tuple[bytes, str]:
    if isinstance(body, Mapping):
        try:
            return orjson.dumps(dict(body)), content_type or "application/json"
        except TypeError as error:
            raise UsageError(f"an event cannot be sent as JSON: {error}") from None
    data = body.encode() if isinstance(body, str) else body
    return data, content_type or "application/xml"


def _publication(
    topic: str, data: bytes, kind: str, key: str | None, more: Json,
    read: Callable[[httpx2.Response], T],
) -> Call[T]:  # fmt: skip
    headers = {"content-type": kind, "idempotency-key": key or uuid.uuid4().hex, **more}
    return Call("POST", f"/v1/topics/{quote(topic, safe='')}/messages", read, data, headers, True)


def _published(answer: httpx2.Response) -> Published:
    return _result(answer.json())


def _published_many(answer: httpx2.Response) -> list[Published | BrokerProblem]:
    return [
        problem_in(each["problem"]) if "problem" in each else _result(each)
        for each in answer.json()["results"]
    ]


def _result(found: Json) -> Published:
    return Published(found["number"], found.get("version"), found.get("matches"))


def problem_in(found: Json) -> BrokerProblem:
    """The error that an answer has."""
    more = {name: value for name, value in found.items() if name in ("line", "column", "position")}
    return BrokerProblem(found["status"], found["code"], found["detail"], more)
