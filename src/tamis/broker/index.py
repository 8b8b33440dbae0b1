"""``TopicIndex``: the subscriptions of a topic as live sets, kept in a folder.

XML is matched by XPath and FLWR, JSON by event filters. The ids of the live sets are the numbers of
the subscriptions. The store has every change first: the folder only saves compiling all of them at
a start. So a change of the folder is not synced, and changes that it lost are made again.
"""

from __future__ import annotations

import dataclasses
import logging
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from tamis.broker.core.model import Language, Message, Subscription, TopicOptions
from tamis.broker.core.queue import BrokerError
from tamis.broker.store.queries import Change, Queries
from tamis.core.errors import (
    EventError,
    MalformedDocument,
    MalformedEvent,
    StoreError,
    SubscriptionSyntaxError,
    TamisError,
    UnknownSubscription,
    UsageError,
)
from tamis.core.index.durable import DurableSet
from tamis.documents.source import MAGIC
from tamis.events.live import EventMatcher
from tamis.matching.live import Matcher
from tamis.transform.transformer import Transformer

log = logging.getLogger("tamis.broker")
BOM = b"\xef\xbb\xbf"
"""Of UTF-8: the beginning of a JSON document may have it."""

_LANGUAGES: tuple[Language, ...] = "xpath", "flwr", "events"
_COMPILED_MIN = 64
"""So many new subscriptions are compiled at once, and not when the next message waits for them."""
_CHECKPOINT_MIN = 1_000


class UnsupportedContent(BrokerError):  # noqa: N818 - says what the message is
    """A message is neither XML nor JSON."""

    code = "broker-content-type"


class TopicIndex:
    """A :class:`tamis.broker.core.model.Index`.

    Args:
        folder: of the topic. A set is opened, or made, when it is needed.
    """

    def __init__(self, folder: Path, options: TopicOptions) -> None:
        self._folder, self._namespaces = folder, dict(options.namespaces)
        self._sets: dict[Language, DurableSet[Any, Any, Any]] = {}
        self._changes = 0
        self.is_new = not folder.exists()
        for language in _LANGUAGES:
            if (folder / language).exists():
                self._open(language)

    def _open(self, language: Language) -> Any:
        found = self._sets.get(language)
        if found is not None:
            return found
        path = self._folder / language
        path.parent.mkdir(parents=True, exist_ok=True)
        match language:
            case "xpath":
                found = Matcher.open(path, namespaces=self._namespaces)
            case "flwr":
                found = Transformer.open(path, namespaces=self._namespaces)
            case "events":
                found = EventMatcher.open(path)
        self._sets[language] = found
        return found

    def restore(self, changes: Iterable[Change]) -> None:
        """Make changes that the folder may have lost; a change may be there already."""
        put: dict[int, Subscription] = {}
        gone: list[int] = []
        for _, number, subscription in changes:
            if subscription is None:
                gone.append(number)
            else:
                put[number] = subscription
            if len(put) >= 10_000:
                self.change(put, ())
                put = {}
        self.change(put, gone)

    def close(self) -> None:
        """Close the folder."""
        for each in self._sets.values():
            try:
                if self._changes >= _CHECKPOINT_MIN:
                    each.checkpoint()
            finally:
                each.close()

    def flush(self) -> None:
        """Have all changes so far on the disk."""
        for each in self._sets.values():
            each.flush()

    def warm(self) -> None:
        """Make what the first message and the first change would wait for; in any thread."""
        for each in list(self._sets.values()):
            _ = 0 in each
        if "xpath" in self._sets:
            self._open("xpath").match(b"<a/>")
            Matcher({0: "//a"}).match(b"<a/>")  # imports what compiles a change

    # -- subscriptions -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return sum(each.stats().subscriptions for each in self._sets.values())

    def check(self, subscription: Subscription) -> None:
        """See :class:`tamis.broker.core.model.Index`."""
        if "\0" in subscription.expression:
            place = subscription.expression.index("\0")
            message = "the character U+0000 cannot be stored"
            raise SubscriptionSyntaxError(message, subscription.expression, place)
        self._open(subscription.language).check(subscription.expression)

    def change(self, put: Mapping[int, Subscription], gone: Sequence[int]) -> None:
        """See :class:`tamis.broker.core.model.Index`."""
        new: dict[Language, dict[int, str]] = {}
        for number, each in put.items():
            new.setdefault(each.language, {})[number] = each.expression
        for language, live in self._sets.items():
            others = (number for number, each in put.items() if each.language != language)
            for number in (*gone, *(others if len(self._sets) > 1 else ())):
                with suppress(UnknownSubscription):
                    live.remove(number)
        for language, expressions in new.items():
            live = self._open(language)
            live.update(expressions)
            if len(expressions) >= _COMPILED_MIN:
                live.snapshot()
        self._changes += len(put) + len(gone)

    # -- messages ----------------------------------------------------------------------------------

    def match(self, messages: Sequence[Message]) -> list[list[int] | TamisError]:
        """See :class:`tamis.broker.core.model.Index`."""
        kinds = [kind_of(message.content_type) for message in messages]
        if kinds.count("xml") == len(kinds):  # the quick way
            return self._match_xml([message.body for message in messages])
        bodies: dict[str | None, list[bytes]] = {}
        for kind, message in zip(kinds, messages, strict=True):
            bodies.setdefault(kind, []).append(message.body)
        answers = {
            "xml": iter(self._match_xml(bodies["xml"]) if "xml" in bodies else ()),
            "json": iter(self._match_json(bodies["json"]) if "json" in bodies else ()),
            None: (_unsupported(each) for each in messages if kind_of(each.content_type) is None),
        }
        return [next(answers[kind]) for kind in kinds]

    def _match_xml(self, bodies: list[bytes]) -> list[list[int] | TamisError]:
        answers: list[Any] = []
        packed = "the message is compressed: send Content-Encoding: gzip"
        documents = [
            MalformedDocument(packed, 1, 1) if body.startswith(MAGIC) else body for body in bodies
        ]
        for found, *_ in self._open("xpath").snapshot().answers(documents):
            answers += (found.errors.get(n) or found.ids(n) for n in range(found.documents))
        if "flwr" in self._sets:
            for place, made in enumerate(self._open("flwr").transform_many(documents)):
                if made.error is None and isinstance(answers[place], list):
                    answers[place] = sorted({*answers[place], *made.subscriptions})
                elif isinstance(answers[place], list):
                    answers[place] = made.error
        return answers

    def _match_json(self, bodies: list[bytes]) -> list[list[int] | TamisError]:
        lines = [_line(body) for body in bodies]
        text = b"\n" + b"\n".join(line for line in lines if line)  # no body is the head of a file
        found = self._open("events").match_ndjson(text)
        answers: list[Any] = []
        for line in lines:
            match = next(found) if line else None
            if match is None:
                answers.append(MalformedEvent("the message is empty"))
            elif isinstance(match.error, EventError):
                answers.append(dataclasses.replace(match.error, line=None))
            else:
                answers.append(match.error or list(match))
        return answers


def _unsupported(message: Message) -> TamisError:
    name = message.content_type
    return UnsupportedContent(f"the content type {name!r} is neither XML nor JSON")


def _line(body: bytes) -> bytes:
    """A JSON document as one line; a line break within a string, which is an error, stays one."""
    line = body.removeprefix(BOM).strip(b" \t\r\n")
    if line.startswith(BOM):  # at the beginning of all lines it would be passed over
        return b"\x01"
    if b"\n" in line or b"\r" in line:
        import orjson  # noqa: PLC0415 - few events have several lines

        instead = b"\x01"
        with suppress(orjson.JSONDecodeError):
            orjson.loads(line)  # so no string has a line break
            instead = b" "
        line = line.replace(b"\n", instead).replace(b"\r", instead)
    return line


@lru_cache(256)
def kind_of(content_type: str) -> str | None:
    """Whether a content type is of ``"xml"`` or ``"json"``; None: of neither.

    >>> [kind_of(it) for it in ("text/xml; charset=utf-8", "application/soap+xml", "text/csv")]
    ['xml', 'xml', None]
    """
    kind = content_type.partition(";")[0].strip().lower().rpartition("/")[2]
    for suffix in ("xml", "json"):
        if kind == suffix or kind.endswith(f"+{suffix}"):
            return suffix
    return None


def open_index(
    folder: Path, options: TopicOptions, store: Queries, topic: str, count: int
) -> TopicIndex:
    """The index of a topic, with all changes that the store has.

    A folder that is damaged, or incomplete, is put aside, and another one made.

    Args:
        count: how many subscriptions the store has.
    """
    try:
        index = TopicIndex(folder, options)
        index.restore(store.changes(topic, is_whole=index.is_new))
        if len(index) == count:
            return index
        message = f"it has {len(index):,} subscriptions and not {count:,}"
        index.close()
    except (StoreError, UsageError) as error:  # as of a deleted topic with other namespaces
        message = str(error)
    aside = folder.parents[1] / ".damaged" / f"{folder.parent.name}-{folder.name}"
    log.warning("%s: %s: the index is made again, and the folder is now %s", folder, message, aside)
    shutil.rmtree(aside, ignore_errors=True)
    aside.parent.mkdir(exist_ok=True)
    folder.rename(aside)
    index = TopicIndex(folder, options)
    index.restore(store.changes(topic, is_whole=True))
    return index
