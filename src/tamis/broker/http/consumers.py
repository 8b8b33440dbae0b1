"""The routes of consumers that fetch messages, and of dead messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from tamis.broker.core.model import UnknownName
from tamis.broker.core.queue import Failure
from tamis.broker.http import models
from tamis.broker.http.ingest import BadRequest, Receive
from tamis.broker.http.routes import Broker, Limit, Subscriber
from tamis.broker.payloads import document, rfc3339
from tamis.broker.service import Taken

router = APIRouter(prefix="/v1/topics/{topic}", tags=["deliveries"], responses=models.PROBLEMS)
_SUBSCRIPTION = "/subscriptions/{id}"
MessageNumber = Annotated[int, Path(ge=1, lt=1 << 40)]


@router.post(_SUBSCRIPTION + "/lease", response_model=models.Lease)
async def lease(
    broker: Broker, token: Subscriber, topic: models.TopicName, id: models.SubscriptionId,
    request: Request, asked: models.LeaseRequest | None = None,
) -> Response:  # fmt: skip
    """Fetch messages, for a time: acknowledge them, or they come again."""
    asked = asked or models.LeaseRequest()
    name = f"{token.tenant}/{topic}"
    taken = await _unless_gone(
        request, broker.take(name, id, asked.max, asked.lease_s, asked.wait_s)
    )
    found: dict[str, Any] = {"token": None, "until": None}
    if taken.lease is not None:
        found = {"token": taken.lease.token, "until": rfc3339(taken.lease.until)}
    groups = broker.deliveries(name, taken)
    messages: list[dict[str, Any]] = await anext(groups, [])
    if taken.lease is None or len(messages) == len(taken.lease.deliveries):
        return Response(orjson.dumps(found | {"messages": messages}), media_type="application/json")

    async def parts() -> AsyncIterator[bytes]:
        """The rest as it is read: it may be large."""
        yield orjson.dumps(found | {"messages": messages})[:-2]
        async for group in groups:
            yield b"," + orjson.dumps(group)[1:-1]
        yield b"]}"

    return StreamingResponse(parts(), media_type="application/json")


async def _unless_gone(request: Request, taking: Coroutine[Any, Any, Taken]) -> Taken:
    """What a consumer gets, unless it goes while it waits: then others get it."""
    task, gone = (
        asyncio.ensure_future(taking),
        asyncio.ensure_future(wait_until_gone(request.receive)),
    )
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise BadRequest("the consumer has gone")
        return task.result()
    finally:
        task.cancel()
        gone.cancel()


async def until_first_ends(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run coroutines together, and end all when the first one has ended; its error is raised."""
    tasks = {asyncio.ensure_future(each) for each in coroutines}
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()


async def wait_until_gone(receive: Receive) -> None:
    """Wait for the end of a connection, whose request is read."""
    while (await receive())["type"] != "http.disconnect":
        pass


@router.post(_SUBSCRIPTION + "/acknowledge", status_code=204)
async def acknowledge(
    broker: Broker, token: Subscriber, topic: models.TopicName, id: models.SubscriptionId,
    done: models.Acknowledgement,
) -> None:  # fmt: skip
    """Acknowledge messages. Of an ordered subscription, also all before them in the lease."""
    await broker.acknowledge(f"{token.tenant}/{topic}", id, done.token, done.numbers)


@router.post(_SUBSCRIPTION + "/fail", status_code=204)
async def fail(
    broker: Broker, token: Subscriber, topic: models.TopicName, id: models.SubscriptionId,
    failed: models.Failed,
) -> None:  # fmt: skip
    """Give back a message that cannot be used now: it comes again after a delay."""
    name = f"{token.tenant}/{topic}"
    await broker.fail(name, id, failed.token, failed.number, failed.reason)


@router.post(_SUBSCRIPTION + "/extend", status_code=204)
async def extend(
    broker: Broker, token: Subscriber, topic: models.TopicName, id: models.SubscriptionId,
    asked: models.Extension,
) -> None:  # fmt: skip
    """Have a lease for longer."""
    await broker.extend(f"{token.tenant}/{topic}", id, asked.token, asked.lease_s)


@router.post(_SUBSCRIPTION + "/release", status_code=204)
async def release(
    broker: Broker, token: Subscriber, topic: models.TopicName, id: models.SubscriptionId,
    asked: models.Release,
) -> None:  # fmt: skip
    """End a lease: messages that are not acknowledged come again, and no attempt failed."""
    name = f"{token.tenant}/{topic}"
    await broker.ask(lambda core: core.release(name, id, asked.token))


@router.get(_SUBSCRIPTION + "/dead")
async def list_dead(
    broker: Broker, token: Subscriber, topic: models.TopicName, id: models.SubscriptionId,
    after: Annotated[int, Query(ge=0, lt=1 << 40)] = 0, limit: Limit = 100,
) -> models.DeadPage:  # fmt: skip
    """The dead messages of a subscription: all their attempts failed."""
    name = f"{token.tenant}/{topic}"
    number = await broker.find(name, id)
    found = await broker.read(lambda store: store.dead(name, number, after, limit))
    items = [models.DeadMessage(number=n, attempts=a, reason=reason) for n, a, _, reason in found]
    return models.DeadPage(items=items, next=found[-1].number if len(found) == limit else None)


@router.post(_SUBSCRIPTION + "/dead/{number}/replay", status_code=202)
async def replay(
    broker: Broker, token: Subscriber, topic: models.TopicName, id: models.SubscriptionId,
    number: MessageNumber,
) -> None:  # fmt: skip
    """Deliver a dead message again, from its first attempt on."""
    name = f"{token.tenant}/{topic}"
    own = await broker.find(name, id)
    found: list[Failure] = await broker.read(lambda store: store.dead(name, own, number - 1, 1))
    if not found or found[0].number != number:
        raise UnknownName(f"message {number} is not dead for subscription {id!r}")
    await broker.change(
        lambda core, request: core.replay(request, name, id, found[0], broker.clock())
    )


@router.get(_SUBSCRIPTION + "/gaps")
async def list_gaps(
    broker: Broker, token: Subscriber, topic: models.TopicName, id: models.SubscriptionId
) -> list[models.GapItem]:
    """The messages that were dropped before they were delivered, and why."""
    name = f"{token.tenant}/{topic}"
    number = await broker.find(name, id)
    found = await broker.read(lambda store: store.gaps(name, number))
    return [models.GapItem.model_validate(gap._asdict()) for gap in found]


@router.get("/messages/{number}")
async def get_message(
    broker: Broker, token: Subscriber, topic: models.TopicName, number: MessageNumber
) -> Response:
    """A message that is kept."""
    name = f"{token.tenant}/{topic}"
    await broker.ask(lambda core: bool(core.topic(name)))
    (stored,) = await broker.messages(name, [number])
    if stored is None:
        raise UnknownName(f"topic {topic!r} has no message {number}, or not any more")
    found: dict[str, Any] = {
        "number": number,
        "accepted": rfc3339(stored.accepted),
        "version": stored.matched.version,
        "matches": len(stored.matched.subscriptions),
        "content_type": stored.message.content_type,
        "id": stored.message.id or None,
    }
    found |= document(stored.message.content_type, stored.message.body)
    return Response(orjson.dumps(found), media_type="application/json")
