"""The JSON of requests and answers, as OpenAPI describes it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tamis.broker.core.model import Language, Payload, Subscription, TopicOptions, Webhook
from tamis.broker.core.queue import QueueOptions
from tamis.broker.http.access import Right

TopicName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
SubscriptionId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._~:@+-]{1,256}$")]
Tenant = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
Number = Annotated[int, Field(ge=1, lt=1 << 40)]
Seconds = Annotated[float, Field(gt=0, le=365 * 86_400)]
_PREFIX = r"^[A-Za-z_][A-Za-z0-9._-]{0,63}$"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Problem(BaseModel):
    """An error (RFC 9457)."""

    type: str = "about:blank"
    title: str
    status: int
    code: str
    detail: str


PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {
        "model": Problem,
        "content": {"application/problem+json": {}},
        "description": "An error",
    }
}
"""The answers of all routes that are errors."""


class NewTopic(_Model):
    """A topic to make."""

    name: TopicName
    namespaces: dict[Annotated[str, Field(pattern=_PREFIX)], str] = Field(
        default={}, description="Prefixes that the expressions of the topic may use."
    )
    retention_s: Seconds = Field(
        default=7 * 86_400.0, description="Older messages are deleted, delivered or not."
    )
    retention_bytes: Annotated[int, Field(ge=1 << 20, le=1 << 50)] = Field(
        default=64 << 30, description="With larger bodies, the oldest messages are deleted."
    )

    def options(self) -> TopicOptions:
        """As the broker has them."""
        return TopicOptions(self.namespaces, self.retention_s, self.retention_bytes)


class Topic(BaseModel):
    """A topic."""

    name: str
    subscriptions: int
    messages: int = Field(description="The number of the last message.")
    version: int = Field(description="Of the subscriptions.")


class Delivery(_Model):
    """How messages are delivered."""

    ordered: bool = Field(
        default=True,
        description="The attempts of a message begin when all before it are acknowledged or dead.",
    )
    window: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=1_000, description="Without order: how many messages may be on lease."
    )
    attempts_max: Annotated[int, Field(ge=1, le=1_000)] = Field(
        default=16, description="A message that failed so often is dead."
    )
    delay_s: Annotated[float, Field(ge=0.01, le=86_400)] = Field(
        default=1.0, description="The second attempt waits up to so long, each further twice that."
    )
    delay_max_s: Annotated[float, Field(ge=0.01, le=30 * 86_400)] = 3_600.0
    backlog_max: Annotated[int, Field(ge=1, le=10_000_000)] = Field(
        default=100_000, description="With more messages to get, the oldest are dropped (a gap)."
    )

    def options(self) -> QueueOptions:
        """As the broker has them."""
        return QueueOptions(
            self.ordered, self.window, self.attempts_max,
            self.delay_s, self.delay_max_s, self.backlog_max,
        )  # fmt: skip


class NewWebhook(_Model):
    """Where messages are sent: signed as Standard Webhooks has it."""

    url: Annotated[str, Field(max_length=2_048)]
    secrets: list[Annotated[str, Field(max_length=200)]] = Field(
        default=[],
        max_length=2,
        description="`whsec_…`, at most two while one is rotated. Without one, one is made, and "
        "the answer has it.",
    )
    raw: bool = Field(
        default=False, description="The body is the payload, and not a JSON envelope."
    )


_LANGUAGES: dict[Payload, Language] = {"nodes": "xpath", "message": "flwr"}
"""Payloads that can be made for one language only."""


class NewSubscription(_Model):
    """A subscription to make, or to replace one by."""

    expression: Annotated[str, Field(min_length=1, max_length=1 << 20)] = Field(
        examples=["//order[total > 100]"]
    )
    language: Language = Field(
        default="xpath", description="XPath and FLWR match XML, event filters JSON."
    )
    payload: Payload = Field(
        default="ids",
        description="What a delivery has: `nodes` are those that an XPath selects, and `message` "
        "is what a FLWR expression makes.",
    )
    delivery: Delivery = Delivery()
    webhook: NewWebhook | None = Field(
        default=None, description="Without one, consumers fetch the messages."
    )

    @model_validator(mode="after")
    def _see_payload(self) -> Self:
        wanted = _LANGUAGES.get(self.payload, self.language)
        if self.language != wanted:
            raise ValueError(f"the payload {self.payload} is for the language {wanted}")
        return self

    def subscription(self, id: str, webhook: Webhook | None) -> Subscription:
        """As the broker has it."""
        return Subscription(
            id, self.expression, self.language, self.payload, self.delivery.options(), webhook
        )


class NamedSubscription(NewSubscription):
    """A subscription to make, with its id."""

    id: SubscriptionId


class StoredWebhook(BaseModel):
    """A webhook, without its secrets."""

    url: str
    raw: bool
    secrets: list[str] = Field(default=[], description="Only in the answer that made them.")


class StoredSubscription(BaseModel):
    """A subscription."""

    id: str
    expression: str
    language: Language
    payload: Payload
    delivery: Delivery
    webhook: StoredWebhook | None
    version: int = Field(description="The first version of the subscriptions that has it.")

    @classmethod
    def of(
        cls, subscription: Subscription, version: int, secrets: tuple[str, ...] = ()
    ) -> StoredSubscription:
        """As an answer has it."""
        queue, webhook = subscription.options, subscription.webhook
        return cls(
            id=subscription.id,
            expression=subscription.expression,
            language=subscription.language,
            payload=subscription.payload,
            delivery=Delivery(
                ordered=queue.is_ordered, window=queue.window, attempts_max=queue.attempts_max,
                delay_s=queue.delay_s, delay_max_s=queue.delay_max_s, backlog_max=queue.backlog_max,
            ),
            webhook=None if webhook is None else StoredWebhook(
                url=webhook.url, raw=webhook.is_raw, secrets=list(secrets)
            ),
            version=version,
        )  # fmt: skip


class SubscriptionPage(BaseModel):
    """Some subscriptions of a topic."""

    items: list[StoredSubscription]
    next: str | None = Field(description="Ask for the next ones with `after`; null: no more.")


class Imported(BaseModel):
    """What became of the lines of an import."""

    added: int
    refused: int
    version: int = Field(description="The first version that has all that were added.")
    errors: list[dict[str, Any]] = Field(description="The first hundred: a line and a problem.")


class LeaseRequest(_Model):
    """A consumer asks for messages."""

    max: Annotated[int, Field(ge=1, le=1_000)] = 100
    lease_s: Annotated[float, Field(ge=1, le=3_600)] = Field(
        default=30.0, description="Messages that are not acknowledged in this time come again."
    )
    wait_s: Annotated[float, Field(ge=0, le=60)] = Field(
        default=0.0, description="How long to wait for a message."
    )


class Published(BaseModel):
    """A message that is stored.

    Attributes:
        version: of the subscriptions that it was matched with.
    """

    number: int
    version: int | None = None
    matches: int | None = Field(default=None, description="How many subscriptions it matches.")
    repeated: bool = Field(
        default=False, description="An earlier request had the idempotency key: it stored this."
    )


class Refused(BaseModel):
    """A message that is not stored."""

    problem: Problem


class PublishedMany(BaseModel):
    """What became of the messages of a request, in their order."""

    results: list[Published | Refused]


class Lease(BaseModel):
    """Messages that a consumer has for some time."""

    token: int | None = Field(description="Acknowledge with it; null: there are no messages.")
    until: str | None
    messages: list[dict[str, Any]]


class Acknowledgement(_Model):
    """Messages that were delivered."""

    token: int
    numbers: list[Number] = Field(max_length=1_000)


class Failed(_Model):
    """A message that a consumer could not use."""

    token: int
    number: Number
    reason: Annotated[str, Field(max_length=500)] = "the consumer refused it"


class Extension(_Model):
    """A lease that is to end later."""

    token: int
    lease_s: Annotated[float, Field(ge=1, le=3_600)] = 30.0


class Release(_Model):
    """A lease that is to end now."""

    token: int


class DeadMessage(BaseModel):
    """A message that will not be tried again, unless it is replayed."""

    number: int
    attempts: int
    reason: str


class DeadPage(BaseModel):
    """Some dead messages of a subscription."""

    items: list[DeadMessage]
    next: int | None


class GapItem(BaseModel):
    """Messages that were dropped before they were delivered."""

    first: int
    last: int
    messages: int
    reason: Literal["backlog", "retention"]


class NewToken(_Model):
    """A token to make."""

    rights: list[Right] = Field(min_length=1)
    tenant: Tenant | None = Field(default=None, description="For operators; else the same tenant.")
    days: Annotated[float, Field(gt=0, le=3_650)] | None = None


class StoredToken(BaseModel):
    """A token."""

    id: str
    tenant: str
    rights: list[str]
    expires: str | None
    token: str | None = Field(default=None, description="Only in the answer that made it.")


class DryRun(_Model):
    """Expressions, and a document or an event that they are tried with."""

    expressions: dict[SubscriptionId, Annotated[str, Field(max_length=1 << 20)]] = Field(
        min_length=1, max_length=1_000
    )
    document: Annotated[str, Field(max_length=16 << 20)]
    language: Literal["xpath", "events"] = "xpath"
    namespaces: dict[str, str] = {}


class Matches(BaseModel):
    """The ids of the expressions that match."""

    matches: list[str]


class Question(_Model):
    """An expression that is explained, with a document or an event if there is one."""

    expression: Annotated[str, Field(max_length=1 << 20)]
    document: Annotated[str, Field(max_length=16 << 20)] | None = None
    language: Literal["xpath", "events"] = "xpath"
    namespaces: dict[str, str] = {}


class Explanation(BaseModel):
    """What an expression means, or why a document does or does not match it."""

    matches: bool | None
    text: str
