"""A broker: documents and events in, matches and messages out; what was answered is not lost.

:mod:`.core` decides what happens, without a clock, a network or a disk: commands go in, and
transactions and replies come out. :mod:`.store` keeps transactions. What is answered was stored::

    commands ──▶ Broker ──▶ Transaction ──▶ store.write() ──▶ Broker.committed() ──▶ replies
                   ▲                            │ fails, or nobody knows
                   └── a new one, of what is ◀──┘
                       stored: store.read()

The messages of a topic are numbered in the order in which they are stored. A message is matched
with one version of the topic's subscriptions, and goes to the queue of each that it matches:
:class:`tamis.broker.core.queue.DeliveryQueue`.
"""
