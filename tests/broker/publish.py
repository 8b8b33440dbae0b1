"""Publishes until it is killed, and says the number of each message that was answered.

python -m tests.broker.publish FILE
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from random import Random

from tamis.broker.core.broker import Broker, Message, Subscription
from tamis.broker.core.queue import QueueOptions
from tamis.broker.store.sqlite import SqliteStore
from tests.broker.simulation import ModelIndex


def main() -> None:
    store, draw = SqliteStore(Path(sys.argv[1])), Random()
    store.create_topic("a")
    broker = Broker(store.read(), ModelIndex, draw.random, epoch=store.epoch)
    if store.epoch == 1:  # it takes nothing, so that messages stay
        broker.subscribe(None, "a", Subscription("all", "1", QueueOptions(backlog_max=1 << 30)))
    while True:
        for _ in range(draw.randrange(1, 5)):
            broker.publish("asked", "a", Message(str(draw.randrange(60)).encode()))
        transaction = broker.begin(time.time())
        assert transaction is not None
        store.write(transaction)
        for reply in broker.committed():
            if reply.request == "asked":
                print(reply.number, flush=True)


if __name__ == "__main__":
    main()
