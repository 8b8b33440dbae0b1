"""Publishes until it is killed, and says the number and the body of each message that is answered.

python -m tests.broker.publish FILE|URL [LEASE_S [stops [unfenced]]]
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from itertools import count
from random import Random
from typing import Any

from tamis.broker.core.broker import Broker
from tamis.broker.core.model import Message, Reply, StoredTopic, Subscription, TopicOptions
from tamis.broker.core.queue import QueueOptions
from tamis.broker.store.queries import StoreCatalog
from tamis.broker.store.writing import Store
from tests.broker.simulation import ModelIndex
from tests.broker.stores import open_store

ALL = Subscription("all", "1", options=QueueOptions(backlog_max=1 << 30))
DRAW = Random()


def main() -> None:
    where, *options = sys.argv[1:]
    store = opened_for(where, *options) if options else open_store(where)
    broker = opened_broker(store)
    for turn in count():
        for number, body in publish_some(broker, store).items():
            print(number, body, flush=True)
        if turn == 10 and "stops" in options:
            os.kill(os.getpid(), signal.SIGSTOP)


def opened_broker(store: Store) -> Broker:
    topics = {name: store.read(name) for name in store.topics()}
    broker = Broker(
        topics,
        lambda name: StoreCatalog(store, name),
        lambda _: ModelIndex({1: ALL} if topics and topics["t/a"].subscriptions else {}),
        DRAW.random,
        epoch=store.epoch,
    )
    if not topics:  # the first process
        store.create("t/a", TopicOptions())
        broker.adopt("t/a", StoredTopic())
    if not broker.topic("t/a").count:  # a subscription that takes nothing, so that messages stay
        broker.subscribe(None, "t/a", ALL)
        commit(broker, store)
    return broker


def publish_some(broker: Broker, store: Store) -> dict[int, str]:
    """A transaction of a few messages: the bodies of those that were answered, by number."""
    for _ in range(DRAW.randrange(1, 5)):
        body = str(DRAW.randrange(10**12))
        broker.publish("t/a", [(body, Message(body.encode()))])
    return {reply.number: reply.request for reply in commit(broker, store) if reply.request}


def commit(broker: Broker, store: Store) -> list[Reply]:
    transaction = broker.begin(time.time())
    assert transaction is not None
    store.write(transaction)
    return broker.committed()


def opened_for(url: str, lease_s: str, stops: str = "", unfenced: str = "") -> Any:
    """A store of a process that renews its lease until it stops."""
    from tamis.broker.store.postgres import PostgresStore  # noqa: PLC0415 - not for SQLite

    if unfenced:  # a planted bug
        PostgresStore._fence = lambda _self, _topics: None  # type: ignore[method-assign]
    store = PostgresStore(url, lease_s=float(lease_s))
    store.acquire()
    if stops:  # not in a transaction; so only the epoch keeps it from writing
        store._one("SELECT set_config('application_name', '', false)")

    def renew() -> None:
        while True:
            store.renew()
            time.sleep(float(lease_s) / 5)

    threading.Thread(target=renew, daemon=True).start()
    return store


if __name__ == "__main__":
    main()
