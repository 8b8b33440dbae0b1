"""The fast path: documents in UTF-8, read by the kernels of this folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tamis.documents.batch import EventBatch, freeze
from tamis.documents.demand import Demand
from tamis.documents.source import Source
from tamis.documents.tokenizer import kernels
from tamis.documents.tokenizer.names import NameTable
from tamis.documents.vocabulary import Vocabulary
from tamis.limits import Limits

JOINED_BYTES = 1 << 18
"""Documents up to this size are read together, from one buffer; others where they are."""
BUFFER_BYTES = 1 << 19
"""What is joined at a time: it should still be in the processor's cache when it is read."""

_PADDING = bytes(kernels.PADDING)
_DECLARATION = re.compile(
    rb"""<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(?:"1\.0"|'1\.0')"""
    rb"""(?:[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*"""
    rb"""(?:"([A-Za-z][\w.\-]*)"|'([A-Za-z][\w.\-]*)'))?"""
    rb"""(?:[ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(?:"(yes|no)"|'(yes|no)'))?[ \t\r\n]*\?>"""
)
# With the last two, ASCII is UTF-8 too.
_ENCODINGS = (None, "utf-8", "iso-8859-1", "us-ascii")

_FULL = {
    kernels.FULL_EVENTS: ("tags", "prefixes"),
    kernels.FULL_ATTRIBUTES: (
        "attribute_event", "attribute_name", "attribute_prefixes", "value_start", "value_end"
    ),
    kernels.FULL_VALUES: ("attribute_values",),
    kernels.FULL_TEXTS: ("text_event", "text_start", "text_end"),
    kernels.FULL_TEXT_VALUES: ("text_values",),
    kernels.FULL_MISC: ("misc_event", "misc_text", "misc_name", "misc_start", "misc_end"),
    kernels.FULL_MISC_VALUES: ("misc_values",),
}  # fmt: skip


class Skipped(NamedTuple):
    """References to entities that a document does not declare."""

    times: int
    first: int  # the place of the first one, in the bytes of the document


class Tokenizer:
    """Reads documents, and says of each whether it did.

    Args:
        vocabulary: takes the names that documents have.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        demand: Demand,
        limits: Limits,
        multiplier: int | None = None,
    ) -> None:
        self.names = NameTable(vocabulary, demand, multiplier=multiplier)
        self.demand = demand
        self.stack = np.zeros(2 * limits.depth + 8, np.int64)
        self.index = np.zeros(kernels.INDEX_SIZE, np.int64)
        self.state = np.zeros(kernels.STATES, np.int64)
        self.state[kernels.IS_FINAL] = 1
        self.state[kernels.WITH_PREFIXES] = demand.prefixes
        self.state[kernels.WITH_MISC] = demand.misc
        self.state[kernels.DEPTH_MAX] = limits.depth
        self.state[kernels.ATTRIBUTES_MAX] = limits.attributes

    @property
    def is_full(self) -> bool:
        """Whether so many names were met that it is better to begin anew."""
        return self.names.is_full

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
        """Provide room for the documents; memory that nobody writes to costs nothing."""
        size = sum(len(document.data) for document in documents if document.data is not None) + 64
        self.output = _output(self.demand, size, len(documents))
        self._bind()
        self.state[kernels.POSITION : kernels.ASKED_AT] = 0

    def _bind(self) -> None:
        """Tell the kernel where the arrays are, since some of them are new."""
        self._bound = self.names.arrays
        kernels.bind(self._bound, self.output, self.stack, self.index, self.state)

    def _skip_document(self) -> None:
        """A document that is not even tried."""
        number = self.state[kernels.DOCUMENT]
        self.output.declined[number] = True
        self.output.document_starts[number + 1] = self.state[kernels.EVENTS]
        self.output.misc_starts[number + 1] = self.state[kernels.MISC]
        self.state[[kernels.DOCUMENT, kernels.DOCUMENTS]] = number + 1

    def _read_joined(self, documents: list[_Document]) -> None:
        if not documents:
            return
        pieces: list[bytes | memoryview] = []
        origins, starts, ends = [], [], []
        size = 0
        for document in documents:
            assert document.data is not None
            pieces += (document.data, _PADDING)
            origins.append(size)
            starts.append(size + document.start)
            ends.append(size + len(document.data))
            size = ends[-1] + len(_PADDING)
        data = np.frombuffer(b"".join(pieces), np.uint8)
        places = np.array(origins), np.array(starts), np.array(ends)
        standalone = np.array([document.standalone for document in documents], np.uint8)
        self._scan(kernels.Text(data, data[:0], 0, size, *places, standalone, self._next_document))

    def _read_in_place(self, document: _Document) -> None:
        assert document.data is not None
        data = np.frombuffer(document.data, np.uint8)
        size = len(data)
        tail_from = max(0, size - len(_PADDING))
        tail = np.zeros(size - tail_from + len(_PADDING), np.uint8)
        tail[: size - tail_from] = data[tail_from:]
        freeze(data, tail)
        switch = size - len(_PADDING) // 2
        places = np.array([0]), np.array([document.start]), np.array([size])
        standalone = np.array([document.standalone], np.uint8)
        self._scan(
            kernels.Text(data, tail, tail_from, switch, *places, standalone, self._next_document)
        )

    @property
    def _next_document(self) -> int:
        return int(self.state[kernels.DOCUMENT])

    def _scan(self, text: kernels.Text) -> None:
        """Run the kernel over documents, and answer what it asks."""
        state = self.state
        kernels.bind_text(text, state)
        while True:
            if self._bound is not self.names.arrays:
                self._bind()
            status = kernels.scan(state)
            if status == kernels.DONE:
                return
            if status in _FULL:
                self._grow(status)
            elif not self._answer(status, text.data):
                state[kernels.IS_REFUSED] = 1

    def _answer(self, status: int, data: kernels.Bytes) -> bool:
        """Answer what the kernel asks; False if the document is to be declined."""
        state = self.state
        at = int(state[kernels.ASKED_AT])
        length, slot = int(state[kernels.ASKED_LENGTH]), int(state[kernels.ASKED_SLOT])
        if status == kernels.NEW_NAME:
            name = data[at : at + length].tobytes()
            kind, scope = int(state[kernels.ASKED_KIND]), int(state[kernels.ASKED_SCOPE])
            return self.names.add_name(name, kind, scope, slot)
        assert status == kernels.NEW_SCOPE
        declarations = self.names.arrays.declarations[:length].tobytes()
        return self.names.add_scope(declarations, int(state[kernels.ASKED_SCOPE]), slot)

    def _grow(self, status: int) -> None:
        """Double the room for what was full."""
        larger = {}
        for name in _FULL[status]:
            values = getattr(self.output, name)
            larger[name] = np.empty(max(64, 2 * len(values)), values.dtype)
            larger[name][: len(values)] = values
        self.output = self.output._replace(**larger)
        self._bind()

    def _reading(self) -> Reading:
        state, out = self.state, self.output
        count = int(state[kernels.DOCUMENTS])
        events = int(state[kernels.EVENTS])
        attributes, value_bytes = int(state[kernels.ATTRIBUTES]), int(state[kernels.VALUE_BYTES])
        texts, text_bytes = int(state[kernels.TEXTS]), int(state[kernels.TEXT_BYTES])
        misc, misc_bytes = int(state[kernels.MISC]), int(state[kernels.MISC_BYTES])
        prefixes = self.demand.prefixes
        batch = EventBatch(
            document_starts=out.document_starts[: count + 1],
            tags=out.tags[:events],
            attribute_event=out.attribute_event[:attributes],
            attribute_name=out.attribute_name[:attributes],
            value_start=out.value_start[:attributes],
            value_end=out.value_end[:attributes],
            attribute_values=out.attribute_values[:value_bytes],
            text_event=out.text_event[:texts],
            text_start=out.text_start[:texts],
            text_end=out.text_end[:texts],
            text_values=out.text_values[:text_bytes],
            misc_starts=out.misc_starts[: count + 1],
            misc_event=out.misc_event[:misc],
            misc_text=out.misc_text[:misc],
            misc_name=out.misc_name[:misc],
            misc_start=out.misc_start[:misc],
            misc_end=out.misc_end[:misc],
            misc_values=out.misc_values[:misc_bytes],
            prefixes=out.prefixes[: events if prefixes else 0],
            attribute_prefixes=out.attribute_prefixes[: attributes if prefixes else 0],
            lines=np.zeros(0, np.int32),
        )
        freeze(*batch)
        skipped = {
            int(number): Skipped(int(out.skipped[number]), int(out.first_skipped[number]))
            for number in np.flatnonzero(out.skipped[:count])
        }
        return Reading(batch, np.flatnonzero(out.declined[:count]).tolist(), skipped)


class Reading(NamedTuple):
    """What was read of some documents.

    Attributes:
        batch: their events.
        declined: the numbers of the documents to read in another way; they have no events.
        skipped: entities that were left out, by the number of the document.
    """

    batch: EventBatch
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
        if source is None or source.encoding not in _ENCODINGS:
            return cls(None)
        data = source.data if isinstance(source.data, bytes) else memoryview(source.data)
        if source.encoding in ("iso-8859-1", "us-ascii") and not _is_ascii(data):
            return cls(None)
        if data[:5] != b"<?xml" or data[5:6] not in (b" ", b"\t", b"\r", b"\n"):
            return cls(data)
        declaration = _DECLARATION.match(data)
        if declaration is None:
            return cls(None)
        encoding = declaration[1] or declaration[2] or b"utf-8"
        if source.encoding is None and encoding.lower() != b"utf-8":
            return cls(None)
        return cls(data, declaration.end(), b"yes" in (declaration[3], declaration[4]))


def _is_ascii(data: bytes | memoryview) -> bool:
    return data.isascii() if isinstance(data, bytes) else bytes(data).isascii()


def _output(demand: Demand, size: int, documents: int) -> kernels.Output:
    """Buffers for documents of so many bytes."""
    events = size // 4
    prefixes = events if demand.prefixes else 0
    attributes = size // 16 if demand.attributes else 0
    texts = size // 16 if demand.text else 0
    misc = size // 64 if demand.misc else 0

    def values(wanted: object) -> kernels.Bytes:
        return np.empty(size if wanted else 0, np.uint8)

    return kernels.Output(
        tags=np.empty(events, np.int32),
        prefixes=np.empty(prefixes, np.int32),
        attribute_event=np.empty(attributes, np.int64),
        attribute_name=np.empty(attributes, np.int32),
        attribute_prefixes=np.empty(attributes if demand.prefixes else 0, np.int32),
        value_start=np.empty(attributes, np.int64),
        value_end=np.empty(attributes, np.int64),
        attribute_values=values(demand.attributes),
        text_event=np.empty(texts, np.int64),
        text_start=np.empty(texts, np.int64),
        text_end=np.empty(texts, np.int64),
        text_values=values(demand.text),
        misc_event=np.empty(misc, np.int64),
        misc_text=np.empty(misc, np.int64),
        misc_name=np.empty(misc, np.int32),
        misc_start=np.empty(misc, np.int64),
        misc_end=np.empty(misc, np.int64),
        misc_values=values(demand.misc),
        document_starts=np.zeros(documents + 1, np.int64),
        misc_starts=np.zeros(documents + 1, np.int64),
        record_starts=np.zeros(0, np.int64),
        record_ends=np.zeros(0, np.int64),
        record_scopes=np.zeros(0, np.int32),
        declined=np.zeros(documents, np.uint8),
        skipped=np.zeros(documents, np.int64),
        first_skipped=np.zeros(documents, np.int64),
    )
