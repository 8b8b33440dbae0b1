"""How the programs parse with Tamis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents import expat
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import Parser
from tamis.documents.source import read
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.matching.batches import BATCH_BYTES, BATCH_DOCUMENTS


class OpenParser:
    """A parser for one thread.

    It raises the first error of a document: those that are measured have none.

    Args:
        name: "default", or "expat" for the trusted one.
    """

    def __init__(self, name: str, vocabulary: Vocabulary, projection: Projection) -> None:
        self.parser = Parser(vocabulary, projection, DEFAULT_LIMITS)
        self.is_trusted = name == "expat"

    @property
    def engine(self) -> str:
        """What has read all documents so far."""
        return "expat" if self.is_trusted or self.parser.declined else "tokenizer"

    def parse(self, documents: Sequence[bytes]) -> DocumentBatch:
        """Parse documents into one batch."""
        sources = [read(data, DEFAULT_LIMITS) for data in documents]
        if self.is_trusted:
            parser = self.parser
            batch, errors = expat.parse(
                sources, parser.vocabulary, parser.projection, DEFAULT_LIMITS
            )
        else:
            batch, errors = self.parser.parse(sources)
        for error in errors.values():
            raise error
        return batch


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
    """One parser for each thread; batches are dropped when they are counted."""

    def __init__(self, parser: str, threads: int) -> None:
        self.parsers = [OpenParser(parser, Vocabulary(), Projection()) for _ in range(threads)]

    @property
    def engine(self) -> str:
        """What has read all documents so far, or several."""
        return " and ".join(sorted({parser.engine for parser in self.parsers}))

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


def _counted(parser: OpenParser, grouped: Iterable[list[bytes]]) -> tuple[int, int]:
    """The number of documents and of elements: each of these has a start and an end."""
    documents = events = 0
    for group in grouped:
        batch = parser.parse(group)
        documents += batch.documents
        events += len(batch.tags)
    return documents, events // 2
