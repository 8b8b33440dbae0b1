"""``Queries``: what is read of a store, in SQL that SQLite and PostgreSQL share.

A parameter is ``?``. A message has one row, and who gets it is a blob of that row. A subscription
has a row, with the cursor of what it got. Only deliveries whose attempt failed have rows.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from tamis.broker.core.model import (
    Matched,
    Message,
    StoredMessage,
    StoredSubscription,
    StoredTopic,
    Subscription,
    TopicOptions,
    Webhook,
    no_topic,
)
from tamis.broker.core.queue import Failure, Gap, QueueOptions
from tamis.core.errors import StoreError

NUMBER_BITS = 40
_FORGOTTEN_BYTES_MAX = 64 << 20
MIGRATIONS = (
    """
    CREATE TABLE process (epoch INTEGER NOT NULL, last_topic INTEGER NOT NULL);
    INSERT INTO process VALUES (0, 0);
    CREATE TABLE topics (
        topic INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, options TEXT NOT NULL,
        last INTEGER NOT NULL DEFAULT 0, last_subscription INTEGER NOT NULL DEFAULT 0,
        version INTEGER NOT NULL DEFAULT 0, settled INTEGER NOT NULL DEFAULT 0,
        indexed INTEGER NOT NULL DEFAULT 0 -- the version that the folder of the index has at least
    );
    CREATE TABLE messages (
        place INTEGER PRIMARY KEY, -- topic << 40 | number
        accepted REAL NOT NULL,
        size INTEGER NOT NULL, -- of the bodies of the topic up to and with this one
        id TEXT NOT NULL, content_type TEXT NOT NULL, attributes TEXT NOT NULL, trace TEXT NOT NULL,
        version INTEGER NOT NULL,
        subscriptions BLOB NOT NULL, -- int32
        matches_crc INTEGER NOT NULL, message_crc INTEGER NOT NULL, -- see ``checksums``
        body BLOB NOT NULL
    );
    CREATE TABLE subscriptions (
        topic INTEGER, subscription INTEGER, version INTEGER NOT NULL, cursor INTEGER NOT NULL,
        id TEXT NOT NULL, language TEXT NOT NULL, expression TEXT NOT NULL, options TEXT NOT NULL,
        PRIMARY KEY (topic, subscription)
    ) WITHOUT ROWID;
    CREATE UNIQUE INDEX subscription_ids ON subscriptions (topic, id);
    CREATE INDEX subscription_versions ON subscriptions (topic, version);
    CREATE TABLE removals (topic INTEGER, version INTEGER, subscription INTEGER);
    CREATE TABLE failures (
        topic INTEGER, subscription INTEGER, message INTEGER, attempts INTEGER NOT NULL,
        due REAL, reason TEXT NOT NULL, PRIMARY KEY (topic, subscription, message)
    ) WITHOUT ROWID;
    CREATE TABLE gaps (
        topic INTEGER, subscription INTEGER, part INTEGER, reason TEXT, first INTEGER, last INTEGER,
        messages INTEGER, PRIMARY KEY (topic, subscription, part, reason)
    ) WITHOUT ROWID;
    CREATE TABLE keys (
        scope TEXT, key TEXT, fingerprint BLOB NOT NULL, accepted REAL NOT NULL,
        topic INTEGER NOT NULL, message INTEGER NOT NULL, PRIMARY KEY (scope, key)
    ) WITHOUT ROWID;
    CREATE INDEX key_times ON keys (accepted);
    CREATE TABLE tokens (
        id TEXT PRIMARY KEY, tenant TEXT NOT NULL, rights TEXT NOT NULL, secret BLOB NOT NULL,
        created REAL NOT NULL, expires REAL
    );
    """,
)
"""The statements that lead from each version of the schema to the next one, as SQLite has them."""
KEPT = "substr(name, 1, 1) <> '/'"
"""Of topics: all but those that are deleted, whose rows are deleted by and by."""
_SUBSCRIPTION = "id, expression, language, options, version, cursor"


class Token(NamedTuple):
    """Who may do what.

    Attributes:
        rights: of ``publish``, ``subscribe`` and ``admin``.
        secret: a hash of what the client sends.
        expires: when it ends; None: it does not.
    """

    id: str
    tenant: str
    rights: frozenset[str]
    secret: bytes
    created: float
    expires: float | None


class Change(NamedTuple):
    """A change of a topic's subscriptions; None: the subscription was removed."""

    version: int
    number: int
    subscription: Subscription | None


class Queries(ABC):
    """Reads a store over one connection; for one thread at a time."""

    _topics: dict[str, int]
    """Name → number. Topics that are not here are looked up."""

    @abstractmethod
    def _rows(self, statement: str, *values: object) -> Iterator[Any]:
        """The rows of a statement."""

    def _stream(self, statement: str, *values: object) -> Iterator[Any]:
        """The rows of a statement that has many: they need not be in memory together."""
        return self._rows(statement, *values)

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    @abstractmethod
    def _damaged(self, what: str) -> StoreError:
        """The error that a row is not what was stored."""

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        """Say of a row that has other types than it should that the store is damaged."""
        try:
            yield
        except (TypeError, ValueError, KeyError) as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from error

    def _one(self, statement: str, *values: object) -> Any:
        return next(self._rows(statement, *values), None)

    def forget_topics(self) -> None:
        """Look topics up again: one may be deleted, and its name be another one's."""
        self._topics = {}

    def _topic(self, name: str) -> int:
        if name not in self._topics:
            self._topics = dict(self._rows("SELECT name, topic FROM topics"))
        try:
            return self._topics[name]
        except KeyError:
            raise no_topic(name) from None

    # -- topics ------------------------------------------------------------------------------------

    def read(self, name: str) -> StoredTopic:
        """A topic, as a broker starts with it."""
        topic = self._topic(name)
        last, last_subscription, version, settled, stored = self._one(
            "SELECT last, last_subscription, version, settled, "
            "(SELECT max(place) FROM messages WHERE place > ? AND place < ?) "
            "FROM topics WHERE topic = ?",
            place_of(topic, 0), place_of(topic + 1, 0), topic,
        )  # fmt: skip
        if (stored or 0) > place_of(topic, last):
            raise self._damaged(f"the topic {name!r} has fewer messages than there are")
        (count,) = self._one("SELECT count(*) FROM subscriptions WHERE topic = ?", topic)
        failing = self._rows(
            "SELECT DISTINCT subscription FROM failures WHERE topic = ? AND due IS NOT NULL", topic
        )
        return StoredTopic(
            last,
            last_subscription,
            version,
            settled,
            count,
            [number for (number,) in failing],
            self._matches(topic, settled, last),
        )

    def topics(self) -> dict[str, TopicOptions]:
        """All topics."""
        rows = self._rows(f"SELECT name, options FROM topics WHERE {KEPT} ORDER BY topic")
        return {name: TopicOptions(**json.loads(options)) for name, options in rows}

    def counts(self, tenant: str) -> list[tuple[str, int, int, int]]:
        """The topics of a tenant: names, last messages, versions, and numbers of subscriptions."""
        rows = self._rows(
            "SELECT name, last, version, (SELECT count(*) FROM subscriptions "
            "WHERE subscriptions.topic = topics.topic) FROM topics "
            "WHERE substr(name, 1, ?) = ? ORDER BY topic",
            len(tenant) + 1, f"{tenant}/",
        )  # fmt: skip
        return [tuple(row) for row in rows]

    def owner(self, topic: str) -> str | None:
        """The URL of the process that owns a topic now; None: none does, or it is this one."""
        return None

    def changes(self, name: str, *, is_whole: bool = False) -> Iterator[Change]:
        """The changes of subscriptions that the folder of the index may not have.

        Args:
            is_whole: the folder has nothing.
        """
        topic = self._topic(name)
        (indexed,) = self._one("SELECT indexed FROM topics WHERE topic = ?", topic)
        for version, number in self._rows(
            "SELECT version, subscription FROM removals WHERE topic = ? AND version > ?",
            topic, indexed,
        ):  # fmt: skip
            yield Change(version, number, None)
        for number, *row in self._stream(
            f"SELECT subscription, {_SUBSCRIPTION} FROM subscriptions "
            "WHERE topic = ? AND version > ? ORDER BY subscription",
            topic, -1 if is_whole else indexed,
        ):  # fmt: skip
            yield Change(row[4], number, self._subscription(*row[:4]))

    # -- messages ----------------------------------------------------------------------------------

    def _matches(self, topic: int, after: int, last: int) -> Iterator[tuple[int, list[int]]]:
        before = None
        for place, version, subscriptions, crc in self._stream(
            "SELECT place, version, subscriptions, matches_crc FROM messages "
            "WHERE place > ? AND place <= ? ORDER BY place",
            place_of(topic, after), place_of(topic, last),
        ):  # fmt: skip
            with self._decoding():
                is_same = crc == checksums(place, version, subscriptions)[0]
            if not is_same or before not in {None, place - 1}:
                raise self._damaged(f"at the message {place}")
            before = place
            yield place - place_of(topic, 0), np.frombuffer(subscriptions, np.int32).tolist()

    def messages(self, name: str, first: int, last: int, most: int) -> list[StoredMessage]:
        """The messages that are kept from ``first`` to ``last``, but no more than ``most``."""
        topic = self._topic(name)
        found = []
        rows = self._rows(
            "SELECT place, accepted, version, subscriptions, matches_crc, message_crc, body, "
            "content_type, id, attributes, trace FROM messages WHERE place >= ? AND place <= ? "
            "ORDER BY place LIMIT ?",
            place_of(topic, first), place_of(topic, last), most,
        )  # fmt: skip
        for place, accepted, version, subscriptions, *row in rows:
            crcs, (body, kind, id, attributes, trace) = row[:2], row[2:]
            with self._decoding():
                message = Message(bytes(body), kind, id, attributes, trace=trace)
                is_same = tuple(crcs) == checksums(place, version, subscriptions, message)
            if not is_same:
                raise self._damaged(f"at the message {place}")
            number = place - place_of(topic, 0)
            matched = np.frombuffer(subscriptions, np.int32).tolist()
            found.append(StoredMessage(number, accepted, message, Matched(version, matched)))
        return found

    def outdated(self, name: str, options: TopicOptions, now: float, most: int) -> int:
        """The last message that is not to be kept any more; 0 if there is none.

        Args:
            most: of the messages that there are, no more than so many are named, of 64 MiB.
        """
        topic = self._topic(name)
        bounds = place_of(topic, 0), place_of(topic + 1, 0)
        first, last = self._one(  # SQLite uses the index for each alone
            "SELECT (SELECT min(place) FROM messages WHERE place > ? AND place < ?), "
            "(SELECT max(place) FROM messages WHERE place > ? AND place < ?)",
            *bounds, *bounds,
        )  # fmt: skip
        if first is None:
            return 0
        (base,) = self._one("SELECT size FROM messages WHERE place = ?", first)
        (total,) = self._one("SELECT size FROM messages WHERE place = ?", last)
        oldest, size = now - options.retention_s, total - options.retention_bytes
        low, high = first, min(last, first + most - 1)  # places: the first one to keep is between
        while low <= high:
            middle = (low + high) // 2
            found = self._one("SELECT accepted, size FROM messages WHERE place = ?", middle)
            is_old = found is None or found[0] < oldest or found[1] <= size
            if is_old and (found is None or found[1] - base <= _FORGOTTEN_BYTES_MAX):
                low = middle + 1
            else:
                high = middle - 1
        number: int = low - 1 - place_of(topic, 0)
        return number if low > first else 0

    def _subscription(self, *row: Any) -> Subscription:
        with self._decoding():
            return _subscription_of(*row)

    # -- subscriptions -----------------------------------------------------------------------------

    def find(self, name: str, id: str) -> int | None:
        """The number of a subscription."""
        found = self._one(
            "SELECT subscription FROM subscriptions WHERE topic = ? AND id = ?",
            self._topic(name), id,
        )  # fmt: skip
        return None if found is None else found[0]

    def get(self, name: str, number: int) -> StoredSubscription | None:
        """A subscription."""
        topic = self._topic(name)
        found = self._one(
            f"SELECT {_SUBSCRIPTION} FROM subscriptions WHERE topic = ? AND subscription = ?",
            topic, number,
        )  # fmt: skip
        if found is None:
            return None
        *row, version, cursor = found
        failures = self._rows(
            "SELECT message, attempts, due, reason FROM failures WHERE topic = ? "
            "AND subscription = ? AND (due IS NOT NULL OR message > ?)",
            topic, number, cursor,
        )  # fmt: skip
        every = [Failure(*failure) for failure in failures]
        return StoredSubscription(self._subscription(*row), version, cursor, every)

    def page(self, name: str, after: int, most: int) -> list[tuple[int, int, Subscription]]:
        """The numbers, versions and subscriptions of a topic, beyond a number."""
        rows = self._rows(
            f"SELECT subscription, {_SUBSCRIPTION} FROM subscriptions "
            "WHERE topic = ? AND subscription > ? ORDER BY subscription LIMIT ?",
            self._topic(name), after, most,
        )  # fmt: skip
        return [(number, row[4], self._subscription(*row[:4])) for number, *row in rows]

    def matched(self, name: str, number: int, after: int, last: int) -> list[int]:
        """See ``Catalog.matched``."""
        topic = self._topic(name)
        dead = {
            message
            for (message,) in self._rows(
                "SELECT message FROM failures WHERE topic = ? AND subscription = ? AND due IS NULL",
                topic, number,
            )
        }  # fmt: skip
        matches = self._matches(topic, after, last)
        return [message for message, of in matches if number in of and message not in dead]

    def dead(self, name: str, number: int, after: int, most: int) -> list[Failure]:
        """Dead messages of a subscription, beyond a message."""
        rows = self._rows(
            "SELECT message, attempts, due, reason FROM failures WHERE topic = ? "
            "AND subscription = ? AND due IS NULL AND message > ? ORDER BY message LIMIT ?",
            self._topic(name), number, after, most,
        )  # fmt: skip
        return [Failure(*row) for row in rows]

    def gaps(self, name: str, number: int) -> list[Gap]:
        """The gaps of a subscription."""
        rows = self._rows(
            "SELECT first, last, messages, reason FROM gaps "
            "WHERE topic = ? AND subscription = ? ORDER BY first",
            self._topic(name), number,
        )  # fmt: skip
        return [Gap(*row) for row in rows]

    def key(self, name: str, scope: str, key: str) -> tuple[bytes, int] | None:
        """See ``Catalog.key``."""
        found = self._one(
            "SELECT fingerprint, message FROM keys WHERE scope = ? AND key = ? AND topic = ?",
            scope, key, self._topic(name),
        )  # fmt: skip
        return None if found is None else (bytes(found[0]), found[1])

    def tokens(self) -> list[Token]:
        """All tokens."""
        rows = self._rows("SELECT id, tenant, rights, secret, created, expires FROM tokens")
        return [
            Token(id, tenant, frozenset(rights.split()), bytes(secret), *times)
            for id, tenant, rights, secret, *times in rows
        ]


class StoreCatalog:
    """A :class:`tamis.broker.core.model.Catalog`: one topic of a store."""

    def __init__(self, queries: Queries, topic: str) -> None:
        self._queries, self._topic = queries, topic

    def find(self, id: str) -> int | None:
        return self._queries.find(self._topic, id)

    def get(self, number: int) -> StoredSubscription | None:
        return self._queries.get(self._topic, number)

    def key(self, scope: str, key: str) -> tuple[bytes, int] | None:
        return self._queries.key(self._topic, scope, key)

    def matched(self, number: int, after: int, last: int) -> list[int]:
        return self._queries.matched(self._topic, number, after, last)


def place_of(topic: int, number: int) -> int:
    """The key of a message's row."""
    return topic << NUMBER_BITS | number


_NO_MESSAGE = Message(b"")


def checksums(
    place: int, version: int, subscriptions: bytes, message: Message = _NO_MESSAGE
) -> tuple[int, int]:
    """The CRC-32 of who gets a message, and of that with the message.

    A disk that lost a write leaves another row there, or zeros. SQLite sees it in its own
    structures, but not inside a body.
    """
    matches = crc32(subscriptions, crc32(b"%d %d" % (place, version)))
    text = "\0".join((message.content_type, message.id, message.attributes, message.trace))
    return matches, crc32(message.body, crc32(text.encode(), matches))


def options_of(subscription: Subscription) -> str:
    """What the column ``options`` has."""
    webhook = subscription.webhook
    return json.dumps(
        {
            "payload": subscription.payload,
            "options": subscription.options._asdict(),
            "webhook": None if webhook is None else webhook._asdict(),
        }
    )


def _subscription_of(id: str, expression: str, language: Any, options: str) -> Subscription:
    read = json.loads(options)
    webhook = read["webhook"]
    if webhook is not None:
        webhook = Webhook(webhook["url"], tuple(webhook["secrets"]), webhook["is_raw"])
    queue = QueueOptions(**read["options"])
    return Subscription(id, expression, language, read["payload"], queue, webhook)
