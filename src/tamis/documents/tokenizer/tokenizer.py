"""The fast path: documents in UTF-8, read by the kernels of this folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.core.arrays import freeze
from tamis.core.limits import Limits
from tamis.documents.batch import DocumentBatch
from tamis.documents.source import Source
from tamis.documents.tokenizer.kernels import layout as at
from tamis.documents.tokenizer.kernels.scan import begin_document
from tamis.documents.tokenizer.scanner import PADDING, NameTable, Scanner, declaration_of
from tamis.documents.vocabulary import Projection, Vocabulary

JOINED_BYTES = 1 << 18
"""Documents up to this size are read together, from one buffer; others where they are."""
BUFFER_BYTES = 1 << 19
"""What is joined at a time: it should still be in the processor's cache when it is read."""


class Skipped(NamedTuple):
    """References to entities that a document does not declare."""

    times: int
    first: int  # the place of the first one, in the bytes of the document


class Tokenizer:
    """Reads documents, and says of each whether it did.

    Args:
        vocabulary: takes the names that documents have.
    """

    def __init__(self, vocabulary: Vocabulary, projection: Projection, limits: Limits) -> None:
        self.scanner = Scanner(NameTable(vocabulary, projection), projection, limits)
        self.state = self.scanner.state

    @property
    def is_full(self) -> bool:
        """Whether so many names were met that it is better to begin anew."""
        return self.scanner.names.is_full

    def read(self, sources: Sequence[Source | None]) -> Reading:
        """Read documents into one batch; those that are None, or declined, have no events there."""
        documents = [_Document.of(source) for source in sources]
        self._begin(documents)
        joined: list[_Document] = []
        size = 0
        for document in documents:
            if not document.is_small or size >= BUFFER_BYTES:
                self._read_joined(joined)
                joined.clear()
                size = 0
            if document.data is None:
                self._skip_document()
            elif document.is_small:
                joined.append(document)
                size += len(document.data)
            else:
                self._read_in_place(document)
        self._read_joined(joined)
        return self._reading()

    def _begin(self, documents: list[_Document]) -> None:
        size = sum(len(document.data) for document in documents if document.data is not None) + 64
        self.scanner.provide(size, len(documents))
        self.state[at.POSITION : at.ASKED_AT] = 0

    def _skip_document(self) -> None:
        """A document that is not even tried."""
        number = self.state[at.DOCUMENT]
        output = self.scanner.output
        output.declined[number] = True
        output.document_starts[number + 1] = self.state[at.EVENTS]
        output.misc_starts[number + 1] = self.state[at.MISC]
        self.state[[at.DOCUMENT, at.DOCUMENTS]] = number + 1

    def _read_joined(self, documents: list[_Document]) -> None:
        if not documents:
            return
        pieces: list[bytes | memoryview] = []
        origins, starts, ends = [], [], []
        size = 0
        for document in documents:
            assert document.data is not None
            pieces += (document.data, PADDING)
            origins.append(size)
            starts.append(size + document.start)
            ends.append(size + len(document.data))
            size = ends[-1] + len(PADDING)
        data = np.frombuffer(b"".join(pieces), np.uint8)
        standalone = np.array([document.standalone for document in documents], np.uint8)
        parts = at.Parts(np.array(origins), np.array(starts), np.array(ends), standalone)
        self._scan(at.Text(data, data[:0], 0, size, self._next_document, parts))

    def _read_in_place(self, document: _Document) -> None:
        assert document.data is not None
        data = np.frombuffer(document.data, np.uint8)
        size = len(data)
        tail_from = max(0, size - len(PADDING))
        tail = np.zeros(size - tail_from + len(PADDING), np.uint8)
        tail[: size - tail_from] = data[tail_from:]
        freeze(data, tail)
        switch = size - len(PADDING) // 2
        standalone = np.array([document.standalone], np.uint8)
        start, end = np.array([document.start]), np.array([size])
        parts = at.Parts(np.array([0]), start, end, standalone)
        self._scan(at.Text(data, tail, tail_from, switch, self._next_document, parts))

    @property
    def _next_document(self) -> int:
        return int(self.state[at.DOCUMENT])

    def _scan(self, text: at.Text) -> None:
        """Read documents, all to their ends."""
        at.register_text(self.state, text)
        begin_document(self.state, 0)
        self.scanner.run(text.data)

    def _reading(self) -> Reading:
        out = self.scanner.output
        count = int(self.state[at.DOCUMENTS])
        skipped = {
            int(number): Skipped(int(out.skipped[number]), int(out.first_skipped[number]))
            for number in np.flatnonzero(out.skipped[:count])
        }
        declined = np.flatnonzero(out.declined[:count]).tolist()
        return Reading(self.scanner.batch(), declined, skipped)


class Reading(NamedTuple):
    """What was read of some documents.

    Attributes:
        batch: their events.
        declined: the numbers of the documents to read in another way; they have no events.
        skipped: entities that were left out, by the number of the document.
    """

    batch: DocumentBatch
    declined: list[int]
    skipped: dict[int, Skipped]


class _Document(NamedTuple):
    """A document and where its declaration ends; no data if the tokenizer is not to try."""

    data: bytes | memoryview | None
    start: int = 0
    standalone: bool = False

    @property
    def is_small(self) -> bool:
        return self.data is not None and len(self.data) <= JOINED_BYTES

    @classmethod
    def of(cls, source: Source | None) -> _Document:
        if source is None:
            return cls(None)
        data = source.data if isinstance(source.data, bytes) else memoryview(source.data)
        if source.encoding not in (None, "utf-8") and not _is_ascii(data):
            return cls(None)
        found = declaration_of(data, source.encoding)
        return cls(None) if found is None else cls(data, found.end, found.standalone)


def _is_ascii(data: bytes | memoryview) -> bool:
    return data.isascii() if isinstance(data, bytes) else bytes(data).isascii()
