"""The routes of topics, subscriptions, tokens, and of what is only tried."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import ValidationError

import tamis
from tamis.broker.core.model import UnknownName, Webhook
from tamis.broker.delivery.addresses import AddressGuard
from tamis.broker.delivery.signing import decode_secret, new_secret
from tamis.broker.http import models
from tamis.broker.http.access import RIGHTS, Access, Forbidden, Right
from tamis.broker.http.problems import last_line, problem_of
from tamis.broker.payloads import rfc3339
from tamis.broker.service import Service
from tamis.broker.store.queries import Queries, Token
from tamis.core.errors import TamisError, UsageError
from tamis.core.names import declared_namespaces

router = APIRouter(prefix="/v1", responses=models.PROBLEMS)
_bearer = HTTPBearer(auto_error=False, description="`tms_…`, as `POST /v1/tokens` makes it")
_IMPORTED = 1_000
_ERRORS_MAX = 100


def service_of(request: Request) -> Service:
    """The broker."""
    found: Service = request.app.state.service
    return found


def token_with(right: Right) -> Any:
    """A parameter of a route: the token of the request, which has a right."""

    def dependency(
        request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> Token:
        access: Access = request.app.state.access
        return access.check(request.headers.get("authorization"), right)

    return Depends(dependency)


Broker = Annotated[Service, Depends(service_of)]
Subscriber = Annotated[Token, token_with("subscribe")]
Admin = Annotated[Token, token_with("admin")]
After = Annotated[str | None, Query(max_length=20, pattern=r"^\d{1,13}$")]
Limit = Annotated[int, Query(ge=1, le=1_000)]
IfMatch = Annotated[str | None, Header(pattern=r'^("\d{1,18}"|\*)$')]


# -- topics ----------------------------------------------------------------------------------------


@router.post("/topics", status_code=201, tags=["topics"])
async def create_topic(broker: Broker, token: Admin, new: models.NewTopic) -> models.Topic:
    """Make a topic."""
    name = f"{token.tenant}/{new.name}"
    declared_namespaces(new.namespaces)  # or no message of the topic could be matched
    await broker.create_topic(name, new.options())
    return models.Topic(name=new.name, subscriptions=0, messages=0, version=0)


@router.get("/topics", tags=["topics"])
async def list_topics(broker: Broker, token: Subscriber) -> list[models.Topic]:
    """The topics of the tenant."""
    return [
        models.Topic(name=name.partition("/")[2], messages=last, version=version, subscriptions=n)
        for name, last, version, n in await broker.read(lambda store: store.counts(token.tenant))
    ]


@router.get("/topics/{topic}", tags=["topics"])
async def get_topic(broker: Broker, token: Subscriber, topic: models.TopicName) -> models.Topic:
    """A topic."""
    found = await broker.ask(lambda core: core.topic(f"{token.tenant}/{topic}"))
    return models.Topic(
        name=topic, subscriptions=found.count, messages=found.last, version=found.indexed
    )


@router.delete("/topics/{topic}", status_code=204, tags=["topics"])
async def delete_topic(broker: Broker, token: Admin, topic: models.TopicName) -> None:
    """Delete a topic, with its messages and subscriptions."""
    await broker.delete_topic(f"{token.tenant}/{topic}")


# -- subscriptions ---------------------------------------------------------------------------------

_SUBSCRIPTIONS = "/topics/{topic}/subscriptions"


@router.post(_SUBSCRIPTIONS, status_code=201, tags=["subscriptions"])
async def subscribe(
    broker: Broker, token: Subscriber, request: Request, response: Response,
    topic: models.TopicName, new: models.NamedSubscription,
) -> models.StoredSubscription:  # fmt: skip
    """Add a subscription: it is in the version of every message that is accepted afterwards."""
    name = f"{token.tenant}/{topic}"
    webhook = _webhook(request, new.webhook)
    added = new.subscription(new.id, webhook)
    reply = await broker.change(lambda core, each: core.subscribe(each, name, added))
    response.headers["etag"] = f'"{reply.version}"'
    response.headers["location"] = f"/v1/topics/{topic}/subscriptions/{new.id}"
    return models.StoredSubscription.of(added, reply.version, _made(new.webhook, webhook))


@router.put(_SUBSCRIPTIONS + "/{id}", tags=["subscriptions"])
async def replace(
    broker: Broker, token: Subscriber, request: Request, response: Response,
    topic: models.TopicName, id: models.SubscriptionId, new: models.NewSubscription,
    if_match: IfMatch = None,
) -> models.StoredSubscription:  # fmt: skip
    """Replace a subscription, which keeps the messages that it has still to get."""
    name = f"{token.tenant}/{topic}"
    webhook = _webhook(request, new.webhook)
    other = new.subscription(id, webhook)
    version = _version(if_match)
    reply = await broker.change(lambda core, each: core.replace(each, name, other, version))
    response.headers["etag"] = f'"{reply.version}"'
    return models.StoredSubscription.of(other, reply.version, _made(new.webhook, webhook))


@router.delete(_SUBSCRIPTIONS + "/{id}", status_code=204, tags=["subscriptions"])
async def unsubscribe(
    broker: Broker, token: Subscriber,
    topic: models.TopicName, id: models.SubscriptionId, if_match: IfMatch = None,
) -> None:  # fmt: skip
    """Remove a subscription, and the messages that it has still to get."""
    name, version = f"{token.tenant}/{topic}", _version(if_match)
    await broker.change(lambda core, each: core.unsubscribe(each, name, id, version))


@router.get(_SUBSCRIPTIONS, tags=["subscriptions"])
async def list_subscriptions(
    broker: Broker, token: Subscriber, topic: models.TopicName,
    after: After = None, limit: Limit = 100,
) -> models.SubscriptionPage:  # fmt: skip
    """The subscriptions of a topic, in the order in which they were added."""
    name = f"{token.tenant}/{topic}"
    await broker.ask(lambda core: bool(core.topic(name)))
    found = await broker.read(lambda store: store.page(name, int(after or 0), limit))
    return models.SubscriptionPage(
        items=[models.StoredSubscription.of(each, version) for _, version, each in found],
        next=str(found[-1][0]) if len(found) == limit else None,
    )


@router.get(_SUBSCRIPTIONS + "/export", tags=["subscriptions"], responses={200: {
    "content": {"application/x-ndjson": {"schema": {"type": "string"}}},
    "description": "A JSON object a line; where it cannot go on, the last one is a problem",
}}, response_class=StreamingResponse)  # fmt: skip
async def export(broker: Broker, token: Subscriber, topic: models.TopicName) -> Response:
    """All subscriptions of a topic, a JSON object a line, as an import takes them."""
    name = f"{token.tenant}/{topic}"
    await broker.ask(lambda core: bool(core.topic(name)))

    async def lines() -> AsyncIterator[bytes]:
        after = 0
        page = partial(Queries.page, name=name, most=_IMPORTED)
        try:
            while found := await broker.read(partial(page, after=after)):
                after = found[-1][0]
                each = (models.StoredSubscription.of(one, version) for _, version, one in found)
                yield b"".join(orjson.dumps(_exported(one)) + b"\n" for one in each)
        except TamisError as error:
            yield last_line(error)

    return StreamingResponse(lines(), media_type="application/x-ndjson")


def _exported(subscription: models.StoredSubscription) -> dict[str, Any]:
    found = subscription.model_dump(exclude={"version"})
    if found["webhook"] is not None:
        del found["webhook"]["secrets"]
    return found


@router.post(_SUBSCRIPTIONS + "/import", tags=["subscriptions"], openapi_extra={
    "requestBody": {"required": True, "content": {"application/x-ndjson": {
        "schema": {"type": "string"},
    }}},
})  # fmt: skip
async def import_subscriptions(
    broker: Broker, token: Subscriber, request: Request, topic: models.TopicName
) -> models.Imported:
    """Add the subscriptions of lines of JSON; those that cannot be used are listed."""
    name = f"{token.tenant}/{topic}"
    added, refused, version = 0, 0, await broker.ask(lambda core: core.topic(name).indexed)
    errors: list[dict[str, Any]] = []
    async for group in _groups(request):
        commands, numbers = [], []
        problems: list[tuple[int, TamisError]] = []
        for number, line in group:
            try:
                commands.append(_import_command(request, name, line))
                numbers.append(number)
            except TamisError as error:
                problems.append((number, error))
        replies = await broker.change_many(commands) if commands else []
        for number, reply in zip(numbers, replies, strict=True):
            if reply.error is not None:
                problems.append((number, reply.error))
            version = max(version, reply.version)
        added += len(group) - len(problems)
        refused += len(problems)
        problems.sort(key=lambda each: each[0])
        for number, problem in problems[: _ERRORS_MAX - len(errors)]:
            errors.append({"line": number, "problem": problem_of(problem)})
    return models.Imported(added=added, refused=refused, version=version, errors=errors)


async def _groups(request: Request) -> AsyncIterator[list[tuple[int, bytes]]]:
    """The lines of a body that are not blank, with their numbers, in groups."""
    rest, number = b"", 0
    group: list[tuple[int, bytes]] = []
    async for chunk in request.stream():
        lines = (rest + chunk).split(b"\n")
        rest = lines.pop()
        if len(rest) > 1 << 21:
            raise UsageError(f"line {number + len(lines) + 1} has more than 2 MiB")
        for line in lines:
            number += 1
            if line.strip():
                group.append((number, line))
            if len(group) == _IMPORTED:
                yield group
                group = []
    if rest.strip():
        group.append((number + 1, rest))
    if group:
        yield group


def _import_command(request: Request, name: str, line: bytes) -> Callable[[Any, Any], None]:
    try:
        new = models.NamedSubscription.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{where}: {first['msg']}" if where else first["msg"]) from None
    subscription = new.subscription(new.id, _webhook(request, new.webhook))
    return lambda core, each: core.subscribe(each, name, subscription)


@router.get(_SUBSCRIPTIONS + "/{id}", tags=["subscriptions"])
async def get_subscription(
    broker: Broker, token: Subscriber, response: Response,
    topic: models.TopicName, id: models.SubscriptionId,
) -> models.StoredSubscription:  # fmt: skip
    """A subscription; its version is also the ETag."""
    name = f"{token.tenant}/{topic}"
    found = await broker.ask(lambda core: core.topic(name).stored(id))
    response.headers["etag"] = f'"{found.version}"'
    return models.StoredSubscription.of(found.subscription, found.version)


def _version(if_match: str | None) -> int | None:
    return None if if_match in (None, "*") else int(if_match.strip('"'))


def _webhook(request: Request, new: models.NewWebhook | None) -> Webhook | None:
    """A webhook whose URL and secrets can be used."""
    if new is None:
        return None
    guard: AddressGuard = request.app.state.guard
    url = guard.endpoint(new.url).url
    for secret in new.secrets:
        decode_secret(secret)
    return Webhook(url, tuple(new.secrets) or (new_secret(),), new.raw)


def _made(new: models.NewWebhook | None, webhook: Webhook | None) -> tuple[str, ...]:
    """The secrets that were made for a webhook."""
    return () if new is None or webhook is None or new.secrets else webhook.secrets


# -- tokens ----------------------------------------------------------------------------------------


@router.post("/tokens", status_code=201, tags=["tokens"])
async def create_token(request: Request, token: Admin, new: models.NewToken) -> models.StoredToken:
    """Make a token. The answer alone has its text."""
    is_operator = "operator" in token.rights
    tenant = new.tenant or token.tenant
    if not is_operator and (tenant != token.tenant or "operator" in new.rights):
        raise Forbidden("only an operator makes tokens of other tenants, and of operators")
    access: Access = request.app.state.access
    days = new.days
    if token.expires is not None:  # no token outlives the one that made it
        left = (token.expires - service_of(request).clock()) / 86_400.0
        days = left if days is None else min(days, left)
    made, text = await access.create(tenant, new.rights, days)
    return _stored_token(made, text)


@router.get("/tokens", tags=["tokens"])
async def list_tokens(request: Request, token: Admin) -> list[models.StoredToken]:
    """The tokens of the tenant."""
    return [_stored_token(each) for each in request.app.state.access.of(token.tenant)]


@router.delete("/tokens/{id}", status_code=204, tags=["tokens"])
async def remove_token(request: Request, token: Admin, id: str) -> None:
    """Revoke a token of the tenant."""
    access: Access = request.app.state.access
    found = next((each for each in access.of(token.tenant) if each.id == id), None)
    if found is None:
        raise UnknownName(f"there is no token {id!r}")
    if "operator" in found.rights and "operator" not in token.rights:
        raise Forbidden("only an operator revokes the token of an operator")
    await access.remove(id)


def _stored_token(token: Token, text: str | None = None) -> models.StoredToken:
    expires = None if token.expires is None else rfc3339(token.expires)
    rights = [right for right in RIGHTS if right in token.rights]
    return models.StoredToken(
        id=token.id, tenant=token.tenant, rights=list(rights), expires=expires, token=text
    )


# -- what is only tried ----------------------------------------------------------------------------


@router.post("/match", tags=["tools"])
async def match(_: Subscriber, asked: models.DryRun) -> models.Matches:
    """Match a document or an event against expressions, of which nothing is stored."""

    def run() -> list[str]:
        if asked.language == "events":
            return [str(id) for id in tamis.compile_events(asked.expressions).match(
                _event(asked.document))]  # fmt: skip
        compiled = tamis.compile(asked.expressions, namespaces=asked.namespaces)
        return [str(id) for id in compiled.match(asked.document)]

    return models.Matches(matches=await asyncio.to_thread(run))


@router.post("/explain", tags=["tools"])
async def explain(_: Subscriber, asked: models.Question) -> models.Explanation:
    """Explain an expression, or why a document or an event does or does not match it."""

    def run() -> models.Explanation:
        expressions = {"expression": asked.expression}
        found: Any
        if asked.language == "events":
            filters = tamis.compile_events(expressions)
            if asked.document is None:
                return models.Explanation(matches=None, text=asked.expression)
            found = filters.explain(_event(asked.document), "expression")
        else:
            compiled = tamis.compile(expressions, namespaces=asked.namespaces)
            if asked.document is None:
                return models.Explanation(matches=None, text=asked.expression)
            found = compiled.explain(asked.document, "expression")
        return models.Explanation(matches=bool(found), text=str(found))

    return await asyncio.to_thread(run)


def _refuse(constant: str) -> None:
    raise ValueError(f"there is no {constant}")


def _event(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the event is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageError("an event is a JSON object")
    return found
