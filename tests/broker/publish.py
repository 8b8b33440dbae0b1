"""Publishes until it is killed, and says the number of each message that was answered.

python -m tests.broker.publish FILE
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from random import Random

from tamis.broker.core.broker import Broker
from tamis.broker.core.model import Message, Reply, Subscription, TopicOptions
from tamis.broker.core.queue import QueueOptions
from tamis.broker.store.queries import StoreCatalog
from tamis.broker.store.sqlite import SqliteStore
from tests.broker.simulation import ModelIndex


def main() -> None:
    store, draw = SqliteStore(Path(sys.argv[1])), Random()
    topics = {name: store.read(name) for name in store.topics()}
    every = Subscription("all", "1", options=QueueOptions(backlog_max=1 << 30))
    broker = Broker(
        topics,
        lambda name: StoreCatalog(store, name),
        lambda _: ModelIndex({1: every} if topics and topics["t/a"].subscriptions else {}),
        draw.random,
        epoch=store.epoch,
    )
    if not topics:  # the first process
        broker.create(None, "t/a", TopicOptions())
        commit(broker, store)
    if not broker.topic("t/a").count:  # a subscription that takes nothing, so that messages stay
        broker.subscribe(None, "t/a", every)
        commit(broker, store)
    while True:
        for _ in range(draw.randrange(1, 5)):
            broker.publish("asked", "t/a", Message(str(draw.randrange(60)).encode()))
        for reply in commit(broker, store):
            if reply.request == "asked":
                print(reply.number, flush=True)


def commit(broker: Broker, store: SqliteStore) -> list[Reply]:
    transaction = broker.begin(time.time())
    assert transaction is not None
    store.write(transaction)
    return broker.committed()


if __name__ == "__main__":
    main()
