"""What a broker measures, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tamis.broker.core.topic import Topic
from tamis.broker.service import Service

CONTENT_TYPE = CONTENT_TYPE_LATEST


class _Collector(Collector):
    """Reads the counts of a service when it is asked."""

    def __init__(self, service: Service, topics: Iterable[tuple[str, Topic, int]]) -> None:
        self._service, self._topics = service, topics

    def collect(self) -> Iterator[Metric]:
        counts = self._service.counts
        for name, help, value in (
            ("messages_published", "Messages that were stored.", counts.published),
            ("matches", "Subscriptions that stored messages match.", counts.matches),
            ("deliveries", "Deliveries that were begun.", counts.deliveries),
            ("deliveries_acknowledged", "Deliveries that succeeded.", counts.acknowledged),
            ("deliveries_failed", "Attempts that failed.", counts.failed),
            ("commits", "Transactions that were stored.", counts.commits),
            ("commit_seconds", "Time that storing transactions took.", counts.commit_s),
            ("restarts", "How often the broker started again after an error.", counts.restarts),
        ):
            yield CounterMetricFamily(f"tamis_{name}", help, value)
        subscriptions = GaugeMetricFamily(
            "tamis_subscriptions", "Subscriptions of a topic.", labels=["tenant", "topic"]
        )
        last = CounterMetricFamily(
            "tamis_topic_messages", "Messages that a topic ever had.", labels=["tenant", "topic"]
        )
        waiting = GaugeMetricFamily(
            "tamis_backlog", "Deliveries that are still to be made.", labels=["tenant", "topic"]
        )
        for name, topic, backlog in self._topics:
            labels = name.split("/", 1)
            subscriptions.add_metric(labels, topic.count)
            last.add_metric(labels, topic.last)
            waiting.add_metric(labels, backlog)
        yield from (subscriptions, last, waiting)


async def text_of(service: Service, with_topics: bool) -> bytes:
    """The metrics.

    Args:
        with_topics: also those of each topic, which name the tenants and their topics.
    """
    topics = await service.ask(
        lambda core: [
            (name, topic, sum(queue.backlog for queue in topic.queues.values()))
            for name, topic in (core.topics.items() if with_topics else ())
        ]
    )
    registry = CollectorRegistry()
    registry.register(_Collector(service, topics))
    return generate_latest(registry)
