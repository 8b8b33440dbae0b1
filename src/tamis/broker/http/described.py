"""The routes that bare ASGI answers, as OpenAPI describes them.

``App`` looks at paths first, so these functions are never called. They also make FastAPI answer
other methods with status 405.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Header, Query, Response

from tamis.broker.http import models
from tamis.broker.http.routes import Subscriber, token_with
from tamis.broker.store.queries import Token

router = APIRouter(prefix="/v1/topics/{topic}", responses=models.PROBLEMS)
_OBJECT: dict[str, Any] = {"schema": {"type": "object"}}
_TEXT: dict[str, Any] = {"schema": {"type": "string"}}
_BODIES = {
    "application/xml": _TEXT,
    "application/json": _OBJECT,
    "application/x-ndjson": _TEXT,
    "multipart/mixed": _TEXT,
    "application/cloudevents+json": _OBJECT,
    "application/cloudevents-batch+json": {
        "schema": {"type": "array", "items": {"type": "object"}}
    },
}
_PROBLEM, _JSON = "application/problem+json", "application/json"
Publisher = Annotated[Token, token_with("publish")]


def openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document; FastAPI would give problems the content type of other answers."""
    found = FastAPI.openapi(app)
    for path in found["paths"].values():
        for operation in path.values():
            content = operation["responses"].get("default", {}).get("content", {})
            if _JSON in content:
                content[_PROBLEM] = content.pop(_JSON)
    return found


@router.post(
    "/messages",
    status_code=202,
    tags=["messages"],
    responses={207: {"model": models.PublishedMany, "description": "Some were refused"}},
    openapi_extra={"requestBody": {"required": True, "content": _BODIES}},
)
async def publish(
    topic: models.TopicName,
    _: Publisher,
    idempotency_key: Annotated[str | None, Header(max_length=255)] = None,
    x_message_id: Annotated[str | None, Header()] = None,
) -> models.Published | models.PublishedMany:
    """Publish a message, or many: the answer comes when they are stored durably.

    Lines of JSON, a multipart body and a batch of CloudEvents have many messages. An event may be a
    CloudEvent in binary mode, too. The body may be compressed with gzip.
    """
    raise NotImplementedError


@router.get("/subscriptions/{id}/events", tags=["deliveries"], responses={200: {
    "content": {"text/event-stream": _TEXT}, "description": "Server-sent events",
}}, response_class=Response)  # fmt: skip
async def events(
    topic: models.TopicName,
    id: models.SubscriptionId,
    _: Subscriber,
    last_event_id: Annotated[str | None, Header(pattern=r"^[0-9]{1,12}$")] = None,
    token: Annotated[str | None, Query(description="For browsers: instead of the header.")] = None,
) -> Response:
    """Receive messages as server-sent events.

    Messages up to ``Last-Event-ID`` are acknowledged, and all beyond it come again.
    """
    raise NotImplementedError
