"""``Ingest``: the route that messages come in through, as bare ASGI.

One message a request: XML or JSON, or a CloudEvent in binary or structured mode. Many: lines of
JSON, a multipart body, or a batch of CloudEvents. A body may be compressed with gzip.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import email.message
import email.parser
import hashlib
import re
import zlib
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote

import orjson

from tamis.broker.core.model import Key, Message, Reply
from tamis.broker.core.queue import BrokerError
from tamis.broker.http.access import Access
from tamis.broker.http.problems import TooLarge, TooSlow, headers_of, problem_of, status_of
from tamis.broker.index import UnsupportedContent, kind_of
from tamis.broker.service import Service
from tamis.core.errors import TamisError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

ROUTE = re.compile(r"/v1/topics/([^/]+)/messages")
_LINES = {"application/x-ndjson", "application/ndjson", "application/jsonl"}
_DATA = {"data", "data_base64", "datacontenttype"}
_KEY_MAX, _TEXT_MAX, _GZIP_MEMBERS_MAX = 255, 512, 16
_JSON_BYTES_MAX = 16 << 20
FORWARDED = b"tamis-forwarded"
"""The header of a request that comes from another process of the broker."""


_TRACE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_JSON = {"content-type": "application/json"}


class BadRequest(BrokerError):  # noqa: N818 - says what is the matter
    """A request that cannot be understood."""


class IngestOptions(NamedTuple):
    """What a request may have.

    Attributes:
        body_bytes_max: of the body, also when it is decompressed.
        body_s_max: how long the body may take to come.
        messages_max: of one request.
    """

    body_bytes_max: int = 64 << 20
    body_s_max: float = 30.0
    messages_max: int = 10_000


class Ingest:
    """An ASGI application for ``POST /v1/topics/TOPIC/messages``."""

    def __init__(self, service: Service, access: Access, bodies: Bodies) -> None:
        self._service, self._access = service, access
        self._bodies, self._options = bodies, bodies.options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            status, body = await self._answer(scope, receive)
            headers = _JSON
        except TamisError as error:
            status, body, headers = status_of(error), problem_of(error), headers_of(error)
        await _send(send, status, body, headers)

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, Any]:
        headers = headers_in(scope)
        token = self._access.check(headers.get("authorization"), "publish")
        match = ROUTE.fullmatch(scope["path"])
        assert match is not None, "the caller looks at the path"
        topic = f"{token.tenant}/{unquote(match[1])}"
        body = await self._bodies.read(headers, receive)
        if "content-encoding" in headers:
            body = await asyncio.to_thread(self._decoded, headers, body)
        every, is_batch = read_messages(headers, body, self._options)
        messages = [each for each in every if isinstance(each, Message)]
        for text in {message.id for message in messages}:
            _check_text(text, text.isprintable())
        for text in {message.content_type for message in messages}:
            _check_text(text, text.isprintable() and text.isascii())
        trace = headers.get("traceparent", "")
        if _TRACE.fullmatch(trace):
            messages = [message._replace(trace=trace) for message in messages]
        if key := headers.get("idempotency-key"):
            messages = _keyed(messages, key, f"{topic} messages", headers, body)
        replies = await self._service.publish(topic, messages) if messages else []
        if is_batch:
            stored = iter(replies)
            results = [
                _result(next(stored) if isinstance(each, Message) else Reply(None, error=each))
                for each in every
            ]
            refused = len(every) > len(messages) or any(reply.error for reply in replies)
            return 207 if refused else 202, {"results": results}
        (reply,) = replies
        if reply.error is not None:
            raise reply.error
        return 202, _result(reply)

    def _decoded(self, headers: dict[str, str], body: bytes) -> bytes:
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding == "identity":
            return body
        if encoding not in ("gzip", "x-gzip"):
            raise UnsupportedContent(f"the content encoding {encoding!r} is not gzip")
        most = self._options.body_bytes_max
        found = b""
        for _ in range(_GZIP_MEMBERS_MAX):  # what follows a member is copied for each
            if not body:
                return found
            stream = zlib.decompressobj(wbits=31)
            try:
                found += stream.decompress(body, most + 1 - len(found))
            except zlib.error as error:
                raise BadRequest(f"the body is not gzip: {error}") from None
            if len(found) > most:
                raise TooLarge(f"a body has at most {most:,} bytes when it is decompressed")
            if not stream.eof:
                raise BadRequest("the body ends within a gzip stream")
            body = stream.unused_data
        raise BadRequest(f"the body has more than {_GZIP_MEMBERS_MAX} members of gzip")


def authorization_of(scope: Scope) -> str | None:
    """The header of a request, or what a browser sends instead of it."""
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return headers_in(scope).get("authorization") or (
        f"Bearer {query['token'][0]}" if "token" in query else None
    )


async def refuse(send: Send, error: TamisError) -> None:
    """Answer a request that has an error."""
    await _send(send, status_of(error), problem_of(error), headers_of(error))


async def _send(send: Send, status: int, body: Any, headers: dict[str, str]) -> None:
    data = orjson.dumps(body)
    head = [(name.encode(), value.encode()) for name, value in headers.items()]
    head.append((b"content-length", str(len(data)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": data})


def headers_in(scope: Scope) -> dict[str, str]:
    """The headers of a request; their names are in lower case."""
    headers = scope["headers"]
    # Another process sends in UTF-8 what it has read as Latin 1.
    encoding = "utf-8" if (FORWARDED, b"1") in headers else "latin-1"
    return {name.decode("latin-1"): value.decode(encoding, "replace") for name, value in headers}


class Bodies:
    """Reads the bodies of requests.

    One timer looks for all bodies that are late: ``asyncio.timeout`` takes a tenth of the time of a
    small request.
    """

    def __init__(self, options: IngestOptions = IngestOptions()) -> None:
        self.options = options
        self._due: dict[asyncio.Task[Any], float] = {}  # in order
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def read(self, headers: dict[str, str], receive: Receive) -> bytes:
        """The body of a request; the task reads no other one.

        Raises:
            TooLarge: it has too many bytes.
            TooSlow: it does not come in time.
            BadRequest: the connection ends before the body does.
        """
        most, length = self.options.body_bytes_max, headers.get("content-length", "0")
        if length.isdecimal() and int(length) > most:
            raise TooLarge(f"a body has at most {most:,} bytes")
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None, "a request is answered in a task"
        self._due[task] = loop.time() + self.options.body_s_max
        if self._timer is None:
            self._timer = loop.call_at(self._due[task], self._end_late)
        try:
            return await _whole(receive, most)
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            task.uncancel()
            message = f"the body did not come in {self.options.body_s_max:g} s"
            raise TooSlow(message) from None
        finally:
            self._due.pop(task, None)
            self._late.discard(task)

    def _end_late(self) -> None:
        loop, self._timer = asyncio.get_running_loop(), None
        for task, due in list(self._due.items()):
            if due > loop.time():
                self._timer = loop.call_at(due, self._end_late)
                return
            del self._due[task]
            self._late.add(task)
            task.cancel()


async def _whole(receive: Receive, most: int) -> bytes:
    parts, size = [], 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise BadRequest("the connection ended before the body did")
        parts.append(event.get("body", b""))
        size += len(parts[-1])
        if size > most:
            raise TooLarge(f"a body has at most {most:,} bytes")
        if not event.get("more_body"):
            return b"".join(parts)


def replayed(receive: Receive, body: bytes) -> Receive:
    """Gives a body that was read; then what else comes."""
    parts = [body]

    async def next_event() -> MutableMapping[str, Any]:
        if parts:
            return {"type": "http.request", "body": parts.pop(), "more_body": False}
        return await receive()

    return next_event


def timed(receive: Receive, options: IngestOptions) -> Receive:
    """Gives a body of any size, of which each part comes in time."""

    async def next_event() -> MutableMapping[str, Any]:
        try:
            return await asyncio.wait_for(receive(), options.body_s_max)
        except TimeoutError:
            raise TooSlow(f"nothing of the body came in {options.body_s_max:g} s") from None

    return next_event


def read_messages(
    headers: dict[str, str], body: bytes, options: IngestOptions
) -> tuple[Sequence[Message | BrokerError], bool]:
    """The messages of a request, or what is wrong with one of a batch; and whether it is one."""
    content_type = headers.get("content-type", "application/xml")
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/cloudevents+json":
        return [_structured(_json(body))], False
    if kind == "application/cloudevents-batch+json":
        found = _json(body)
        if not isinstance(found, list):
            raise BadRequest("a batch of CloudEvents is a JSON array")
        messages: list[Any] = [_structured_or_error(each) for each in found]
    elif kind in _LINES:
        if body.count(b"\n") > 2 * options.messages_max:  # blank ones too
            raise TooLarge(_too_many(options))
        messages = [Message(line, "application/json") for line in body.split(b"\n") if line.strip()]
    elif kind.startswith("multipart/"):
        messages = _parts(content_type, body, options)
    else:
        if kind_of(content_type) is None:
            raise UnsupportedContent(f"the content type {content_type!r} is neither XML nor JSON")
        return [_binary(headers, content_type, body)], False
    if len(messages) > options.messages_max:
        raise TooLarge(_too_many(options))
    return messages, True


def _too_many(options: IngestOptions) -> str:
    return f"a request has at most {options.messages_max:,} messages"


def _check_text(text: str, is_header: bool) -> None:
    """See that an id or a content type can be stored, and sent as a header."""
    if len(text) > _TEXT_MAX or not is_header:
        raise BadRequest(
            f"an id and a content type have at most {_TEXT_MAX} characters, all printable: "
            f"{text[:20]!r}"
        )


def _json(body: bytes) -> Any:
    if len(body) > _JSON_BYTES_MAX:  # it takes thirty times its bytes at most
        raise TooLarge(f"a body of CloudEvents has at most {_JSON_BYTES_MAX:,} bytes")
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error}") from None


# -- CloudEvents -----------------------------------------------------------------------------------


def _binary(headers: dict[str, str], content_type: str, body: bytes) -> Message:
    """A message whose CloudEvents attributes, if it has any, are headers."""
    if "ce-specversion" not in headers:
        return Message(body, content_type, headers.get("x-message-id", ""))
    attributes = {
        name[3:]: unquote(value) for name, value in headers.items() if name.startswith("ce-")
    }
    return _event(attributes, body, content_type)


def _structured_or_error(event: Any) -> Message | BrokerError:
    try:
        return _structured(event)
    except BrokerError as error:
        return error


def _structured(event: Any) -> Message:
    if not isinstance(event, dict):
        raise BadRequest("a CloudEvent is a JSON object")
    attributes = {name: value for name, value in event.items() if name not in _DATA}
    content_type = event.get("datacontenttype", "application/json")
    if not isinstance(content_type, str) or kind_of(content_type) is None:
        raise UnsupportedContent(f"the datacontenttype {content_type!r} is neither XML nor JSON")
    if "data_base64" in event:
        try:
            data = base64.b64decode(event["data_base64"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise BadRequest("data_base64 is not base 64") from None
    elif kind_of(content_type) == "json":
        data = _dumps(event.get("data"))
    elif isinstance(event.get("data"), str):
        data = event["data"].encode()
    else:
        raise BadRequest("the data of a CloudEvent with XML is a string, or data_base64")
    return _event(attributes, data, content_type)


def _event(attributes: dict[str, Any], body: bytes, content_type: str) -> Message:
    for name in ("specversion", "id", "source", "type"):
        if not isinstance(attributes.get(name), str) or not attributes[name]:
            raise BadRequest(f"a CloudEvent has the attribute {name!r}, a text that is not empty")
    if attributes["specversion"] != "1.0":
        raise BadRequest(f"the version of CloudEvents is {attributes['specversion']!r} and not 1.0")
    return Message(body, content_type, attributes["id"], _dumps(attributes).decode())


def _dumps(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise BadRequest("the CloudEvent is too deep: 254 levels are the most") from None


# -- multipart -------------------------------------------------------------------------------------


def _parts(content_type: str, body: bytes, options: IngestOptions) -> list[Message]:
    """The messages of a multipart body (RFC 2046), each of the content type of its part."""
    head = email.message.Message()
    head["content-type"] = content_type
    if not (boundary := head.get_boundary()):
        raise BadRequest("a multipart content type has a boundary")
    delimiter = b"\r\n--" + boundary.encode("latin-1", "replace")
    if body.count(delimiter) > options.messages_max + 1:
        raise TooLarge(_too_many(options))
    known: dict[bytes, tuple[str, str]] = {}  # most parts have the same headers
    messages: list[Message] = []
    for part in (b"\r\n" + body).split(delimiter)[1:]:
        headers, end, data = part.partition(b"\r\n\r\n")
        if not end or headers not in known:
            if part.startswith(b"--"):
                return messages
            if not end or headers.lstrip(b" \t")[:2] not in (b"", b"\r\n"):
                raise BadRequest(f"the multipart body is malformed at its part {len(messages) + 1}")
            known[headers] = _part_headers(headers)
        messages.append(Message(data, *known[headers]))
    raise BadRequest("the multipart body ends before its last boundary")


def _part_headers(lines: bytes) -> tuple[str, str]:
    """The content type and the id of a part."""
    found = email.parser.BytesHeaderParser().parsebytes(lines.strip())
    kind, id = found.get("content-type", "application/xml"), found.get("content-id", "")
    return " ".join(str(kind).split()), str(id).strip("<>")


# -- idempotency, and answers ----------------------------------------------------------------------


def _keyed(
    messages: Sequence[Message], key: str, scope: str, headers: dict[str, str], body: bytes
) -> list[Message]:
    if len(key) > _KEY_MAX or not key.isascii():
        raise BadRequest(f"an idempotency key has at most {_KEY_MAX} characters, all ASCII")
    told = [headers.get("content-type", ""), headers.get("x-message-id", "")]
    told += sorted(f"{name}: {value}" for name, value in headers.items() if name[:3] == "ce-")
    hashed = hashlib.sha256("\0".join([*told, ""]).encode() + body).digest()
    return [
        message._replace(key=Key(scope, f"{key}/{part}", hashed))
        for part, message in enumerate(messages)
    ]


def _result(reply: Reply) -> dict[str, Any]:
    if reply.error is not None:
        return {"problem": problem_of(reply.error)}
    found: dict[str, Any] = {"number": reply.number}
    if reply.matches is None:
        return found | {"repeated": True}
    return found | {"version": reply.version, "matches": reply.matches}
