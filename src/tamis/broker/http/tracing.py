"""Traces of requests and of webhooks, for OpenTelemetry.

A trace goes on from a publisher to the endpoint of a webhook: the message keeps the ``traceparent``
of its request (W3C Trace Context), also where nobody collects traces. With the extra ``tracing``,
and ``OTEL_EXPORTER_OTLP_ENDPOINT`` in the environment, the broker adds spans of its own.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.asgi import OpenTelemetryMiddleware
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from tamis.broker.delivery.webhooks import Attempt, Outcome, WebhookSender
from tamis.broker.http.ingest import authorization_of

_HEADER = "traceparent"


class Traces:
    """Makes spans, and sends them to the collector that the environment names."""

    def __init__(self) -> None:
        resource = Resource.create({"service.name": "tamis"})  # OTEL_SERVICE_NAME goes before
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("tamis.broker")

    def app(self, app: Any) -> Any:
        """An application whose requests are spans, of which messages keep the ``traceparent``."""

        async def traced(scope: Any, receive: Any, send: Any) -> None:
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            if _HEADER in carrier and "headers" in scope:
                headers = [pair for pair in scope["headers"] if pair[0] != _HEADER.encode()]
                headers.append((_HEADER.encode(), carrier[_HEADER].encode()))
                scope = {**scope, "headers": headers}
            await app(scope, receive, send)

        spans = OpenTelemetryMiddleware(
            traced,
            excluded_urls="healthz,readyz,metrics",
            tracer_provider=self._provider,
            exclude_spans=["receive", "send"],
        )

        async def without_tokens(scope: Any, receive: Any, send: Any) -> None:
            if b"token=" in scope.get("query_string", b""):  # a span has the URL
                authorization = (authorization_of(scope) or "").encode("latin-1")
                pairs = parse_qsl(scope["query_string"].decode("latin-1"))
                query = urlencode([pair for pair in pairs if pair[0] != "token"]).encode()
                headers = [*scope["headers"], (b"authorization", authorization)]
                scope = {**scope, "query_string": query, "headers": headers}
            await spans(scope, receive, send)

        return without_tokens

    def sender(self, sender: WebhookSender) -> None:
        """Have each attempt of a sender be a span of its message's trace."""
        send = sender.send

        async def traced(attempt: Attempt) -> Outcome:
            context = propagate.extract(attempt.headers)
            with self._tracer.start_as_current_span(
                "webhook", context, trace.SpanKind.CLIENT,
                {"url.full": attempt.url, "messaging.message.id": attempt.id},
            ) as span:  # fmt: skip
                headers = dict(attempt.headers)
                propagate.inject(headers)
                outcome = await send(attempt._replace(headers=headers))
                if outcome.status is not None:
                    span.set_attribute("http.response.status_code", outcome.status)
                if not outcome.is_delivered:
                    span.set_status(trace.StatusCode.ERROR, outcome.reason)
                return outcome

        sender.send = traced  # type: ignore[method-assign]

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()
