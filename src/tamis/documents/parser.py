"""The parser that everything uses: the tokenizer where it can, libexpat for the rest.

The tokenizer declines whatever it does not do, and whatever may be wrong, so that odd documents and
all errors are libexpat's. Both give the same events.
"""

from __future__ import annotations

from collections.abc import Iterable

from tamis.core.errors import DocumentError
from tamis.core.limits import Limits
from tamis.documents.batch import DocumentBatch, interleaved
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary

NAMES_MAX = 1 << 15
"""Names that a parser's documents may bring, before it is better to begin anew."""

Errors = dict[int, DocumentError]


class Parser:
    """Parses batches of documents, one after the other, and remembers the names that it met.

    It belongs to one thread at a time.

    Args:
        vocabulary: takes the names of the documents.
        projection: what to record.
        limits: bounds on each document.

    Attributes:
        declined: how many documents libexpat has read so far.

    >>> parser = Parser(Vocabulary(), Projection(), Limits())
    >>> batch, errors = parser.parse([Source(b"<a><b/></a>"), Source(b"<a>")])
    >>> batch.tags
    array([ 0,  1, -1, -1], dtype=int32)
    >>> print(errors[1])
    line 1, column 4: the document ends inside <a>: no element found
    """

    def __init__(self, vocabulary: Vocabulary, projection: Projection, limits: Limits) -> None:
        self.vocabulary = vocabulary
        self.projection = projection
        self.limits = limits
        self.declined = 0
        self._names_before = vocabulary.size
        from tamis.documents.tokenizer.tokenizer import Tokenizer  # noqa: PLC0415 - imports kernels

        # Lines are counted by libexpat alone.
        self._tokenizer = None if projection.lines else Tokenizer(vocabulary, projection, limits)

    @property
    def is_full(self) -> bool:
        """Whether so many names were met that it is better to begin anew, with another one."""
        grown = self.vocabulary.size - self._names_before
        return grown > NAMES_MAX or (self._tokenizer is not None and self._tokenizer.is_full)

    def parse(self, sources: Iterable[Source | DocumentError]) -> tuple[DocumentBatch, Errors]:
        """Parse documents into one batch.

        Args:
            sources: the documents; one that could not even be read is given by its error.

        Returns:
            The batch, and the errors by the number of the document; such a document has no events.
        """
        documents = list(sources)
        errors = {
            number: document
            for number, document in enumerate(documents)
            if isinstance(document, DocumentError)
        }
        if self._tokenizer is None:
            self.declined += len(documents) - len(errors)
            return self._by_expat(documents)
        reading = self._tokenizer.read(
            [None if isinstance(document, DocumentError) else document for document in documents]
        )
        for number, skipped in reading.skipped.items():
            from tamis.documents.expat import warn_of_skipped  # noqa: PLC0415 - few have any

            source = documents[number]
            assert isinstance(source, Source)
            warn_of_skipped(source.name, skipped.times, _line(source, skipped.first))
        left = [number for number in reading.declined if number not in errors]
        if not left:
            return reading.batch, errors
        self.declined += len(left)
        others, found = self._by_expat([documents[number] for number in left])
        errors |= {left[number]: error for number, error in found.items()}
        return interleaved(reading.batch, others, left), dict(sorted(errors.items()))

    def _by_expat(self, documents: list[Source | DocumentError]) -> tuple[DocumentBatch, Errors]:
        from tamis.documents import expat  # noqa: PLC0415 - the tokenizer reads nearly all

        return expat.parse(documents, self.vocabulary, self.projection, self.limits)


def parse(
    sources: Iterable[Source | DocumentError],
    vocabulary: Vocabulary,
    projection: Projection,
    limits: Limits,
) -> tuple[DocumentBatch, Errors]:
    """Parse documents into one batch, as :meth:`Parser.parse` does."""
    return Parser(vocabulary, projection, limits).parse(sources)


def _line(source: Source, place: int) -> int:
    before = bytes(source.data[:place])
    return before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n") + 1
