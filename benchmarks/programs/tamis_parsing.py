"""How the programs parse with Tamis; ``open_parser`` is what changes when Tamis's parsers do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from tamis.documents import expat
from tamis.documents.batch import Demand, EventBatch
from tamis.documents.source import read
from tamis.documents.vocabulary import Vocabulary
from tamis.limits import DEFAULT_LIMITS
from tamis.matching.matcher import BATCH_BYTES, BATCH_DOCUMENTS

Parse = Callable[[Sequence[bytes]], EventBatch]


def open_parser(name: str, vocabulary: Vocabulary, demand: Demand) -> tuple[Parse, str]:
    """A parser for one thread, and what it is called in answers.

    It raises the first error of a document: those that are measured have none.

    Args:
        name: "default", or "expat" for the trusted one.
    """
    del name  # there is one parser, so far

    def parse(documents: Sequence[bytes]) -> EventBatch:
        sources = [read(data, DEFAULT_LIMITS) for data in documents]
        batch, errors = expat.parse(sources, vocabulary, demand, DEFAULT_LIMITS)
        for error in errors.values():
            raise error
        return batch

    return parse, "expat"


def groups(documents: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Documents in the groups in which a matcher parses them."""
    group: list[bytes] = []
    size = 0
    for data in documents:
        group.append(data)
        size += len(data)
        if len(group) >= BATCH_DOCUMENTS or size >= BATCH_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


class Parsing:
    """One parser for each thread, without any demand; batches are dropped when they are counted."""

    def __init__(self, parser: str, threads: int) -> None:
        opened = [open_parser(parser, Vocabulary(), Demand()) for _ in range(threads)]
        self.parsers = [parse for parse, _ in opened]
        self.engine = opened[0][1]

    def parse(self, documents: Sequence[bytes]) -> dict[str, int]:
        """Parse documents, each thread every so many-th group; gives the counts."""
        count = len(self.parsers)
        if count == 1:
            shares = [_counted(self.parsers[0], groups(documents))]
        else:
            grouped = list(groups(documents))
            with ThreadPoolExecutor(count) as pool:
                each = (grouped[number::count] for number in range(count))
                shares = list(pool.map(_counted, self.parsers, each))
        return {
            "documents": sum(documents for documents, _ in shares),
            "elements": sum(elements for _, elements in shares),
        }


def _counted(parse: Parse, grouped: Iterable[list[bytes]]) -> tuple[int, int]:
    """The number of documents and of elements: each of these has a start and an end."""
    documents = events = 0
    for group in grouped:
        batch = parse(group)
        documents += batch.documents
        events += len(batch.tags)
    return documents, events // 2
