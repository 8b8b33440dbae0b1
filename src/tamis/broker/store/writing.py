"""``Store``: what a broker has to keep, in a database. Transactions are stored whole, or not."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np

from tamis.broker.core.model import Name, NameTaken, StoredMessage, TopicOptions, Transaction
from tamis.broker.core.queue import Changes
from tamis.broker.store.queries import KEPT, Queries, Token, checksums, options_of, place_of

_OF_TOPICS = {
    "failures": "subscription, message",
    "gaps": "subscription, part, reason",
    "removals": "subscription, version",
    "subscriptions": "subscription",
}
"""Tables with rows of topics, and what else is in their keys."""
GAPS_PART = 100_000
"""One row has all gaps among so many messages: they do not grow without end."""


class Store(Queries):
    """A database that brokers write to: :mod:`.sqlite`, for one of them, and :mod:`.postgres`.

    Attributes:
        epoch: how often a broker was made of the store.
        lease_s: so long after ``renew`` others may own the topics; infinite: there are no others.
    """

    epoch: int
    lease_s = math.inf

    @abstractmethod
    def _many(self, statement: str, rows: Iterable[tuple[object, ...]]) -> None:
        """Run a statement for each row."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[None]:
        """Commit what is done inside, or nothing. Errors become a ``StoreError``."""

    def _fence(self, topics: Iterable[str]) -> None:
        """See in a transaction that this process alone writes to topics, until it is committed."""

    # -- who owns topics ---------------------------------------------------------------------------

    def own(self) -> dict[str, int]:
        """The topics that this process is to own, and the epochs since when it does."""
        return dict.fromkeys(self.topics(), self.epoch)

    def holds(self, topic: str) -> bool:
        """Whether nobody else can own a topic now; in any thread."""
        return True

    def renew(self) -> None:
        """Keep the topics for another ``lease_s``; ``own`` says which are still owned."""
        raise NotImplementedError("nobody else writes to the store")

    def release(self, topics: Collection[str] | None = None) -> None:
        """Let others have topics; None: all."""

    # -- transactions ------------------------------------------------------------------------------

    @abstractmethod
    def reader(self) -> Queries:
        """Another connection, which reads while this one writes."""

    def _run(self, statement: str, *values: object) -> None:
        self._many(statement, [values])

    @contextmanager
    def _changing(self) -> Iterator[None]:
        sizes = dict(self._sizes)
        try:
            with self._transaction():
                yield
        except BaseException:
            self._sizes = sizes
            raise

    _sizes: dict[int, int]
    """By topic: of all bodies that were ever stored."""

    def _size(self, topic: int) -> int:
        if topic not in self._sizes:
            found = self._one(
                "SELECT size FROM messages WHERE place > ? AND place < ? "
                "ORDER BY place DESC LIMIT 1",
                place_of(topic, 0), place_of(topic + 1, 0),
            )  # fmt: skip
            self._sizes[topic] = found[0] if found else 0
        return self._sizes[topic]

    def write(self, transaction: Transaction) -> None:
        """Store a transaction, whole or not at all.

        Raises:
            StoreError: nobody knows whether it is stored: the broker has to start again.
        """
        with self._changing():
            self._fence(transaction.counters)
            for name, number in transaction.forgotten.items():
                self._forget(self._topic(name), number)
            for name, messages in transaction.messages.items():
                self._write_messages(self._topic(name), messages)
            self._remove(transaction.removed)  # first: the id of one may be used again
            self._put(transaction)
            self._write_changes(transaction.changes)
            self._many(
                "UPDATE topics SET last = ?, last_subscription = ?, version = ?, settled = ? "
                "WHERE topic = ?",
                [(*each, self._topic(name)) for name, each in transaction.counters.items()],
            )

    def _forget(self, topic: int, number: int) -> None:
        first, last = place_of(topic, 0), place_of(topic, number)
        self._run("DELETE FROM messages WHERE place > ? AND place <= ?", first, last)
        self._run("DELETE FROM failures WHERE topic = ? AND message <= ?", topic, number)

    def _write_messages(self, topic: int, messages: list[StoredMessage]) -> None:
        rows, keys, size = [], [], self._size(topic)
        for number, accepted, message, (version, subscriptions) in messages:
            body, kind, id, attributes, key, trace = message
            size += len(body)
            numbers = np.array(subscriptions, np.int32).tobytes() if len(subscriptions) else b""
            place = place_of(topic, number)
            crcs = checksums(place, version, numbers, message)
            text = id, kind, attributes, trace
            rows.append((place, accepted, size, *text, version, numbers, *crcs, body))
            if key is not None:
                keys.append((*key, accepted, topic, number))
        self._sizes[topic] = size
        self._many("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        self._many(
            "INSERT INTO keys VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (scope, key) DO UPDATE SET "
            "fingerprint = excluded.fingerprint, accepted = excluded.accepted, "
            "topic = excluded.topic, message = excluded.message",  # it was a deleted topic's
            keys,
        )

    def _put(self, transaction: Transaction) -> None:
        rows = []
        for (name, number), (subscription, version) in transaction.put.items():
            cursor = transaction.counters[name].last
            of = self._topic(name), number, version, cursor
            text = subscription.id, subscription.language, subscription.expression
            rows.append((*of, *text, options_of(subscription)))
        self._many(
            "INSERT INTO subscriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (topic, subscription) DO UPDATE SET version = excluded.version, "
            "language = excluded.language, expression = excluded.expression, "
            "options = excluded.options",
            rows,
        )

    def _remove(self, removed: dict[Name, int]) -> None:
        rows = [(self._topic(name), number) for name, number in removed]
        for table in ("subscriptions", "failures", "gaps"):
            self._many(f"DELETE FROM {table} WHERE topic = ? AND subscription = ?", rows)
        versions = [(topic, version, number) for (topic, number), version
                    in zip(rows, removed.values(), strict=True)]  # fmt: skip
        self._many("INSERT INTO removals VALUES (?, ?, ?)", versions)

    def _write_changes(self, changes: dict[Name, Changes]) -> None:
        cursors, over, failures, gaps = [], [], [], []
        for (name, number), (cursor, failed, dropped) in changes.items():
            of = self._topic(name), number
            cursors.append((cursor, *of))
            over += [(*of, message) for message, failure in failed.items() if failure is None]
            failures += [(*of, *failure) for failure in failed.values() if failure is not None]
            gaps += [(*of, gap.first // GAPS_PART, gap.reason, *gap[:3]) for gap in dropped]
        own = "topic = ? AND subscription = ?"
        self._many(f"UPDATE subscriptions SET cursor = ? WHERE {own}", cursors)
        self._many(f"DELETE FROM failures WHERE {own} AND message = ?", over)
        self._many(
            "INSERT INTO failures VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (topic, subscription, message) DO UPDATE SET "
            "attempts = excluded.attempts, due = excluded.due, reason = excluded.reason",
            failures,
        )
        self._many(
            "INSERT INTO gaps VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (topic, subscription, part, reason) DO UPDATE SET "
            "last = excluded.last, messages = gaps.messages + excluded.messages",
            gaps,
        )

    # -- what is not part of a transaction ---------------------------------------------------------

    def set_indexed(self, name: str, version: int) -> None:
        """The folder of a topic's index durably has all changes up to a version."""
        topic = self._topic(name)
        with self._changing():
            self._fence([name])
            self._run("UPDATE topics SET indexed = ? WHERE topic = ?", version, topic)
            self._run("DELETE FROM removals WHERE topic = ? AND version <= ?", topic, version)

    def create(self, name: str, options: TopicOptions) -> None:
        """Make a topic, which this process owns.

        Raises:
            NameTaken: there is one of this name.
        """
        with self._changing():
            self._run("UPDATE process SET last_topic = last_topic + 1")  # others wait here
            if self._one("SELECT 1 FROM topics WHERE name = ?", name) is not None:
                raise NameTaken(f"there is a topic {name.partition('/')[2]!r}")
            self._run(
                "INSERT INTO topics (topic, name, options) SELECT last_topic, ?, ? FROM process",
                name, json.dumps(options._asdict()),
            )  # fmt: skip
            self._own_new(name)
        self.forget_topics()

    def _own_new(self, name: str) -> None:
        """A topic that is made is this process's."""

    def delete(self, name: str) -> None:
        """Delete a topic; its rows are left to ``delete_rest``."""
        topic = self._topic(name)
        with self._changing():
            self._fence([name])
            self._run("UPDATE topics SET name = ? WHERE topic = ?", f"/{topic}", topic)
            self._disown(topic)
        self._sizes.pop(topic, None)
        self.forget_topics()

    def _disown(self, topic: int) -> None:
        """A topic that is deleted has no owner any more."""

    def delete_rest(self, most: int) -> bool:
        """Delete so many rows of topics that are deleted.

        Returns:
            Whether there were any.
        """
        found = self._one(f"SELECT topic FROM topics WHERE NOT {KEPT} LIMIT 1")
        if found is None:
            return False
        (topic,) = found
        bounds = place_of(topic, 0), place_of(topic + 1, 0)
        with self._changing():
            rows = "SELECT place FROM messages WHERE place > ? AND place < ? ORDER BY place LIMIT ?"
            is_over = self._one(rows, *bounds, 1) is None
            self._run(f"DELETE FROM messages WHERE place IN ({rows})", *bounds, most)
            for table, key in _OF_TOPICS.items():
                rows = f"SELECT {key} FROM {table} WHERE topic = ? LIMIT ?"
                is_over = is_over and self._one(rows, topic, 1) is None
                self._run(
                    f"DELETE FROM {table} WHERE topic = ? AND ({key}) IN ({rows})",
                    topic, topic, most,
                )  # fmt: skip
            if is_over:
                self._run("DELETE FROM topics WHERE topic = ?", topic)
        return True

    def expire_keys(self, before: float, most: int) -> bool:
        """Delete so many idempotency keys of messages that were accepted before a time.

        Returns:
            Whether there were any.
        """
        if self._one("SELECT 1 FROM keys WHERE accepted < ? LIMIT 1", before) is None:
            return False
        with self._changing():
            self._run(
                "DELETE FROM keys WHERE (scope, key) IN (SELECT scope, key FROM keys "
                "WHERE accepted < ? ORDER BY accepted LIMIT ?)",
                before, most,
            )  # fmt: skip
        return True

    def add_token(self, token: Token) -> None:
        """Store a token."""
        with self._changing():
            row = token._replace(rights=" ".join(sorted(token.rights)))  # type: ignore[arg-type]
            self._run("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?)", *row)

    def remove_token(self, id: str) -> None:
        """Delete a token, if there is one of this id."""
        with self._changing():
            self._run("DELETE FROM tokens WHERE id = ?", id)
