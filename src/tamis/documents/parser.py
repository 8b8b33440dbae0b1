"""The parser that everything uses: the tokenizer where it can, libexpat for the rest.

The tokenizer declines whatever it does not do, and whatever may be wrong, so that odd documents and
all errors are libexpat's. Both give the same events.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int64, freeze, starts_of
from tamis.core.errors import DocumentError
from tamis.core.kernel.state import bound
from tamis.core.limits import Limits
from tamis.documents.batch import DocumentBatch, interleaved
from tamis.documents.column import DocumentColumn
from tamis.documents.source import Source
from tamis.documents.tokenizer.kernels import layout as at
from tamis.documents.tokenizer.kernels.scan import begin_document, read_one
from tamis.documents.tokenizer.scanner import PADDING, PLACES, NameTable, Scanner, declaration_of
from tamis.documents.vocabulary import Projection, Vocabulary

NAMES_MAX = 1 << 15  # names that a parser's documents may bring, before it is better to begin anew
JOINED_BYTES = 1 << 18  # up to this size, documents are read together; others where they are
# What is joined at a time: it should still be in the processor's cache when it is read.
BUFFER_BYTES = 1 << 19
_UTF_8 = (None, "utf-8")
ONE_BYTES = 1 << 16
"""A document of so many bytes at most may be read by itself, into buffers that are there."""

Errors = dict[int, DocumentError]


class Parser:
    """Parses batches of documents, one after the other, and remembers the names that it met.

    It belongs to one thread at a time. ``vocabulary`` takes the names of the documents, ``limits``
    are for each document, and ``declined`` counts the documents that libexpat has read so far.

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
        # Lines are counted by libexpat alone.
        self._tokenizer = None if projection.lines else Tokenizer(vocabulary, projection, limits)

    @property
    def is_full(self) -> bool:
        """Whether so many names were met that it is better to begin anew, with another one."""
        grown = self.vocabulary.size - self._names_before
        is_table_full = self._tokenizer is not None and self._tokenizer.scanner.names.is_full
        return grown > NAMES_MAX or is_table_full

    def parse(
        self, sources: Iterable[Source | DocumentError], *, lent: bool = False
    ) -> tuple[DocumentBatch, Errors]:
        """Parse documents into one batch; the error of an unreadable document stands in its place.

        Returns the batch, and errors by the number of the document. Documents in error have no
        events.

        Args:
            lent: nobody uses the batch any more when the parser is called again; so a small one
                needs no memory of its own.
        """
        documents: Sequence[Source | DocumentError] = sources  # type: ignore[assignment]
        errors: Errors = {}
        if not isinstance(sources, DocumentColumn):
            documents = list(sources)
            errors = {
                number: document
                for number, document in enumerate(documents)
                if isinstance(document, DocumentError)
            }
        if self._tokenizer is None:
            self.declined += len(documents) - len(errors)
            return self._by_expat(documents)
        batch, declined, skipped = self._tokenizer.read(documents, lent=lent)
        for number, times, first in skipped:
            from tamis.documents.expat import warn_of_skipped  # noqa: PLC0415 - few have any

            source = documents[number]
            assert isinstance(source, Source)
            before = bytes(source.data[:first]).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            warn_of_skipped(source.name, times, before.count(b"\n") + 1)
        left = [number for number in declined if number not in errors]
        if not left:
            return batch, errors
        self.declined += len(left)
        others, found = self._by_expat([documents[number] for number in left])
        errors |= {left[number]: error for number, error in found.items()}
        return interleaved(batch, others, left), dict(sorted(errors.items()))

    def read_one(self, source: Source) -> Recorded | None:
        """Record one small document where it is used at once; None where it has to be parsed."""
        return None if self._tokenizer is None else self._tokenizer.read_one(source)

    def _by_expat(
        self, documents: Sequence[Source | DocumentError]
    ) -> tuple[DocumentBatch, Errors]:
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


# -- the fast path ---------------------------------------------------------------------------------


class _Document(NamedTuple):
    """A document and where its declaration ends; no data if the tokenizer is not to try."""

    data: bytes | memoryview | None
    start: int = 0
    is_standalone: bool = False

    @classmethod
    def of(cls, source: Source | DocumentError) -> _Document:
        if isinstance(source, DocumentError):
            return cls(None)
        if type(source.data) is bytes and source.encoding in _UTF_8 and source.data[:5] != b"<?xml":
            return cls(source.data)
        data = source.data if isinstance(source.data, bytes) else memoryview(source.data)
        if source.encoding not in (None, "utf-8") and not bytes(data).isascii():
            return cls(None)
        found = declaration_of(data, source.encoding)
        return cls(None) if found is None else cls(data, found.end, found.is_standalone)


class Recorded(NamedTuple):
    """What a tokenizer recorded last, where it lies: for kernels.

    Attributes:
        state: of the tokenizer.
        places: int64[n, 4]; of each array of a ``DocumentBatch``: its place in the batch, the field
            of ``state`` that it is registered in, the field that says how many items it has, and
            how many more there are.
    """

    state: Int64
    places: Int64

    def places_in(self, fields: Any) -> Int64:
        """The rows with which ``tamis.core.kernel.record.borrow`` fills the fields of its arrays.

        ``fields`` are of a state, and have the names of a ``DocumentBatch``, and others.
        """
        named = [(DocumentBatch._fields[place], row) for place, *row in self.places.tolist()]
        rows = [(getattr(fields, name), *row) for name, row in named if hasattr(fields, name)]
        return np.array(rows).reshape(-1)


class Tokenizer:
    """Reads documents in UTF-8 by kernels, and reports which ones it declined."""

    def __init__(self, vocabulary: Vocabulary, projection: Projection, limits: Limits) -> None:
        self.scanner = Scanner(NameTable(vocabulary, projection), projection, limits)
        self.state = self.scanner.state
        self._recorded = Recorded(self.state, PLACES)
        self._read_one = bound(read_one, self.state)
        self._is_ready = False  # for one document
        self._text = memoryview(b"")  # of one document

    def read_one(self, source: Source) -> Recorded | None:
        """Record one small document by kernels alone, if they can."""
        scanner = self.scanner
        if len(source.data) > ONE_BYTES:
            return None
        data, start, is_standalone = _Document.of(source)
        if data is None:
            return None
        if not self._is_ready or not scanner.is_ready:
            self._provide_one()
        size = len(data)
        self._text[:size] = data
        self._text[size : size + len(PADDING)] = PADDING
        status = self._read_one(start, size, is_standalone)
        return None if status else self._recorded

    def _provide_one(self) -> None:
        """Make room for one document."""
        scanner = self.scanner
        scanner.provide(ONE_BYTES + 64, 1)
        scanner.lend()
        if not self._text:
            text = np.zeros(ONE_BYTES + len(PADDING), np.uint8)
            self._text, bounds = text.data, np.zeros(3, np.int64)
            parts = at.Parts(bounds[:1], bounds[1:2], bounds[2:], np.zeros(1, np.uint8))
            self._one = at.Text(text, text[:0], 0, 0, 0, parts)
        at.register_text(self.state, self._one)
        self._is_ready = True

    def read(
        self, sources: Sequence[Source | DocumentError], *, lent: bool
    ) -> tuple[DocumentBatch, list[int], list[tuple[int, int, int]]]:
        """Read documents into one batch, which may be lent.

        Returns also the numbers of the declined documents, which have no events in the batch. The
        third result has, for each document with references to undeclared entities, its number, the
        count of these references, and the byte offset of the first one.
        """
        self.state[at.POSITION : at.ASKED_AT] = 0
        if isinstance(sources, DocumentColumn):
            self._read_column(sources)
        else:
            self._read_each([_Document.of(source) for source in sources])
        out = self.scanner.output
        skipped = [
            (number, int(out.skipped[number]), int(out.first_skipped[number]))
            for number in out.skipped[: len(sources)].nonzero()[0].tolist()
        ]
        declined = out.declined[: len(sources)].nonzero()[0].tolist()
        return self.scanner.batch(lent=lent), declined, skipped

    def _read_column(self, column: DocumentColumn) -> None:
        """Read documents that are all small."""
        self.scanner.provide(int((column.ends - column.begins).sum()) + 64, len(column))
        for part in column.groups(len(column), BUFFER_BYTES):
            bounds = zip(part.begins.tolist(), part.ends.tolist(), strict=True)
            pieces = [part.data[begin:end] for begin, end in bounds]
            self._read_joined(pieces, part.bodies - part.begins, part.are_standalone)

    def _read_each(self, documents: Sequence[_Document]) -> None:
        sizes = [0 if document.data is None else len(document.data) for document in documents]
        self.scanner.provide(sum(sizes) + 64, len(documents))
        joined: list[_Document] = []
        together = 0
        for document, size in zip(documents, sizes, strict=True):
            is_joined = size <= JOINED_BYTES and document.data is not None
            if joined and (not is_joined or together >= BUFFER_BYTES):
                self._read_joined(*zip(*joined, strict=True))
                joined, together = [], 0
            if is_joined:
                joined.append(document)
                together += size
            elif document.data is None:
                self._skip_document()
            else:
                self._read_in_place(document.data, document)
        if joined:
            self._read_joined(*zip(*joined, strict=True))

    def _skip_document(self) -> None:
        number = self.state[at.DOCUMENT]
        output = self.scanner.output
        output.declined[number] = True
        output.document_starts[number + 1] = self.state[at.EVENTS]
        output.misc_starts[number + 1] = self.state[at.MISC]
        self.state[[at.DOCUMENT, at.DOCUMENTS]] = number + 1

    def _read_joined(
        self,
        pieces: Sequence[bytes | memoryview],
        starts: Sequence[int] | Int64,
        are_standalone: Sequence[bool] | NDArray[np.uint8],
    ) -> None:
        """Read documents in one buffer; ``starts`` is where their declarations end."""
        data = np.frombuffer(PADDING.join((*pieces, b"")), np.uint8)
        sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
        origins = starts_of(sizes + len(PADDING))[:-1]
        standalone = np.array(are_standalone, np.uint8)
        parts = at.Parts(origins, origins + np.array(starts), origins + sizes, standalone)
        self._scan(at.Text(data, data[:0], 0, len(data), int(self.state[at.DOCUMENT]), parts))

    def _read_in_place(self, data: bytes | memoryview, document: _Document) -> None:
        body = np.frombuffer(data, np.uint8)
        size = len(body)
        tail_from = max(0, size - len(PADDING))
        tail = np.concatenate([body[tail_from:], np.zeros(len(PADDING), np.uint8)])
        freeze(body, tail)
        switch = size - len(PADDING) // 2
        standalone = np.array([document.is_standalone], np.uint8)
        parts = at.Parts(np.array([0]), np.array([document.start]), np.array([size]), standalone)
        self._scan(at.Text(body, tail, tail_from, switch, int(self.state[at.DOCUMENT]), parts))

    def _scan(self, text: at.Text) -> None:
        self._is_ready = False
        at.register_text(self.state, text)
        begin_document(self.state, 0)
        self.scanner.run(text.data)
