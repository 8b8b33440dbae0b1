"""Errors as problem details (RFC 9457): a stable ``code``, the status, and what to do."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from tamis.broker.core.queue import BrokerError
from tamis.core.errors import (
    BadSubscriptions,
    DocumentError,
    EventError,
    MessageError,
    StoreError,
    SubscriptionError,
    TamisError,
    UsageError,
)

CONTENT_TYPE = "application/problem+json"
_STATUS = {
    "broker": 400,
    "broker-unknown": 404,
    "broker-taken": 409,
    "broker-quota": 403,
    "broker-key": 422,
    "broker-key-in-flight": 409,
    "broker-version": 412,
    "broker-lease": 409,
    "broker-overloaded": 429,
    "broker-stopping": 503,
    "broker-elsewhere": 503,
    "broker-unauthorized": 401,
    "broker-forbidden": 403,
    "broker-content-type": 415,
    "broker-too-large": 413,
    "broker-slow": 408,
}
_UNUSABLE = (
    BadSubscriptions, DocumentError, EventError, MessageError, SubscriptionError, UsageError,
)  # fmt: skip
_RETRY_AFTER_S = {
    "broker-overloaded": 1,
    "broker-key-in-flight": 1,
    "broker-stopping": 5,
    "broker-elsewhere": 1,
    "store": 5,
}


class TooLarge(BrokerError):  # noqa: N818 - says what the body is
    """A body has more bytes than one may have."""

    code = "broker-too-large"


class TooSlow(BrokerError):  # noqa: N818 - says what the body is
    """A body did not come within its time."""

    code = "broker-slow"


def status_of(error: TamisError) -> int:
    """The status of an error."""
    if isinstance(error, BrokerError):
        return _STATUS[error.code]
    if isinstance(error, StoreError):
        return 503
    if isinstance(error, _UNUSABLE):
        return 422
    return 500


def problem_of(error: TamisError) -> dict[str, Any]:
    """The members of the problem that an error is."""
    status = status_of(error)
    detail = error.message if isinstance(error, DocumentError | EventError) else str(error)
    found: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": error.code,
        "detail": "the store cannot be written" if isinstance(error, StoreError) else detail,
    }
    for name in ("line", "column", "position"):
        if isinstance(value := getattr(error, name, None), int):
            found[name] = value
    return found


def last_line(error: TamisError) -> bytes:
    """What ends an answer of lines of JSON that cannot go on: without it, it would look whole."""
    return orjson.dumps(problem_of(error)) + b"\n"


def headers_of(error: TamisError) -> dict[str, str]:
    """The headers of a problem."""
    headers = {"content-type": CONTENT_TYPE}
    if error.code in _RETRY_AFTER_S:
        headers["retry-after"] = str(_RETRY_AFTER_S[error.code])
    if error.code == "broker-unauthorized":
        headers["www-authenticate"] = 'Bearer realm="tamis"'
    return headers


def respond(error: TamisError) -> Response:
    """The answer to a request that has an error."""
    return Response(orjson.dumps(problem_of(error)), status_of(error), headers_of(error))


async def on_error(_: Request, error: Exception) -> Response:
    """What FastAPI answers to an error of Tamis."""
    assert isinstance(error, TamisError)
    return respond(error)


async def on_http_error(_: Request, error: Exception) -> Response:
    """What FastAPI answers to an error of routing."""
    assert isinstance(error, HTTPException)
    return _plain(error.status_code, str(error.detail), dict(error.headers or {}))


async def on_invalid(_: Request, error: Exception) -> Response:
    """What FastAPI answers to a request that its model refuses."""
    assert isinstance(error, RequestValidationError)
    faults = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:10]]
    return _plain(422, "; ".join(faults), {})


def _plain(status: int, detail: str, headers: dict[str, str]) -> Response:
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "code": "http",
        "detail": detail,
    }
    return Response(orjson.dumps(body), status, headers | {"content-type": CONTENT_TYPE})
