"""``Words``: the smallest kind of live set, for tests of what all kinds share."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tamis.core.errors import SubscriptionError, SubscriptionId, SubscriptionSyntaxError
from tamis.core.index.columns import Ids
from tamis.core.index.durable import DurableSet
from tamis.core.index.segments import Segment


class Word(NamedTuple):
    id: SubscriptionId
    expression: str


class Compiled:
    """Some words: ``ids`` and all of them by number."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = tuple(words)
        self.ids = Ids.of(word.id for word in words)

    def entry(self, number: int) -> Word:
        return self.words[number]


class Snapshot(dict[SubscriptionId, str]):
    """The words as they were in a version."""

    def __init__(self, words: Iterable[Word], version: int) -> None:
        super().__init__(words)
        self.version = version

    @property
    def ids(self) -> list[SubscriptionId]:
        return list(self)

    def snapshot(self) -> "Snapshot":
        return self


class Words(DurableSet[Word, Compiled, Snapshot]):
    """Subscriptions that are words; a snapshot is a dictionary."""

    KIND = "words"

    def __init__(self, language: str = "en") -> None:
        self.language = language
        super().__init__(Compiled([]))

    def _settings(self) -> dict[str, Any]:
        return {"language": self.language}

    def _parsed(self, id: SubscriptionId, expression: Any) -> Word | None:
        return Word(id, expression) if expression.isalpha() else None

    def _read(self, given: Any) -> tuple[Iterable[Word], Sequence[SubscriptionError]]:
        words = [Word(*pair) for pair in (given.items() if isinstance(given, dict) else given)]
        bad = [word for word in words if not word.expression.isalpha()]
        return words, [SubscriptionSyntaxError("no word", w.expression, id=w.id) for w in bad]

    def _compile(self, old: Sequence[Segment[Compiled]], new: Sequence[Word]) -> Compiled:
        return Compiled([*words_left(old), *new])

    def _snapshot_of(self, segments: Sequence[Segment[Compiled]], version: int) -> Snapshot:
        return Snapshot(words_left(segments), version)


def words_left(segments: Sequence[Segment[Compiled]]) -> list[Word]:
    return [each.compiled.words[n] for each in segments for n in each.left().tolist()]


def contents(words: Words) -> dict[SubscriptionId, str]:
    """What is in a set, in three ways that have to agree."""
    found = dict(words.snapshot())
    assert list(words.ids) == list(found)
    assert len(words) == len(found)
    assert all(words.get(id) == word for id, word in found.items())
    return found
