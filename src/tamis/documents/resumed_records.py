"""Reads on behind a bad record: a stream that is not well-formed is read again from the next one.

XML ends where a document is not well-formed. Whoever has a file of a million records and one that
is damaged wants the others. What is between the damage and the next start tag of a record is passed
over, and told as one error. The context of the records before it is the context of those behind it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace

from tamis.core.errors import DocumentError, DocumentLimitError, MalformedDocument
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.core.threads import Flush
from tamis.documents.encodings import LineCounter
from tamis.documents.record_batch import (
    DECLARES_ENTITIES,
    NOT_READ,
    RecordBatch,
    RecordRange,
    RecordTag,
    StreamPosition,
)
from tamis.documents.source import too_large

Parsed = Callable[
    [Iterable[bytes | memoryview], RecordRange], Generator[RecordBatch | Flush, None, None]
]
"""Parses chunks, which are the records of a range."""
_HEAD = lazy_pattern(rb"(?:<\?xml[^>]*\?>)?(?:<!DOCTYPE[^>]*>)?")  # of a context: not its elements
_TAG_MAX = 1 << 20
_AGAIN, _AGAIN_BYTES = 8, 1 << 20
"""How often each byte is read again at most, on average; and so many bytes in any case."""
_PIECE, _PIECES_MAX = 1 << 16, 1 << 22
"""What is read at first behind a bad record, since others may be near; later pieces are larger."""
_KEPT_BEYOND = 16 << 20
"""What is kept of a stream, beyond one record: what parsers read ahead, and a batch."""


def start_tags(record: RecordTag) -> re.Pattern[bytes]:
    """What start tags of records look like."""
    prefix = rb"" if record.namespace is None else rb"(?:[^\s<>/:!?]+:)?"
    return re.compile(rb"<" + prefix + re.escape(record.name.encode()) + rb"[\s/>]")


@dataclass(eq=False)
class ResumedRecords:
    """Reads a stream of records, and goes on behind what is not well-formed.

    Each bad record costs what it takes to begin anew, with the context, and no byte is read much
    more than ``_AGAIN`` times. Memory is bounded by ``limits.document_bytes``.

    Attributes:
        part: what is to be read next.
    """

    parsed: Parsed
    chunks: Iterable[bytes | memoryview]
    part: RecordRange
    tag: str
    limits: Limits
    encoding: str | None = None

    def __post_init__(self) -> None:
        first = self.part.start.offset
        pattern = start_tags(RecordTag.of(self.tag))
        self._kept = _KeptChunks(self.chunks, first, self.limits, pattern)
        self._context = self.part.context
        self._may_read_again = _AGAIN_BYTES - _AGAIN * first

    def read(self) -> Generator[RecordBatch | Flush, None, None]:
        """All records and errors, as ``parse_records`` says."""
        is_again = False
        while (found := (yield from self._read_on(is_again))) is not None:
            position = yield from self._next_start(found)
            if position is None:
                yield found
                return
            yield _resumed(found, position.offset)
            record = found.offsets.first + len(found.offsets.starts)
            start = position._replace(record=record)
            self.part = self.part._replace(start=start, context=self._context)
            is_again = True

    def _read_on(self, is_again: bool) -> Generator[RecordBatch | Flush, None, RecordBatch | None]:
        """Yield batches; the result is the one with an error, if the stream does not end before."""
        kept = self._kept
        kept.answered = self.part.start.offset
        chunks = kept.read_from(self.part.start.offset, _PIECE if is_again else _PIECES_MAX)
        with closing(self.parsed(chunks, self.part)) as batches:
            for found in batches:
                if isinstance(found, Flush):
                    if kept.is_paused:
                        yield found
                    continue
                self._context = _context_of(found) or self._context or _around(found, -1)
                if found.stream_error:
                    return found
                yield found
                kept.answered = int(found.offsets.ends[-1])
                kept.forget(kept.answered)
        return None

    def _next_start(self, found: RecordBatch) -> Generator[Flush, None, StreamPosition | None]:
        """Where the next record begins behind an error, or None where that is not to be read."""
        kept, context = self._kept, self._context
        # What is around records must be known, and is UTF-8. Entities are limited for all records
        # together. A limit is no damage: the document may be well-formed.
        is_utf8 = self.encoding in (None, "utf-8") or context.isascii()
        if kept.is_failed or not context or not is_utf8 or DECLARES_ENTITIES.search(context):
            return None
        if isinstance(found.stream_error, DocumentLimitError) and not kept.is_full:
            return None
        start, end = int(found.offsets.starts[-1]), int(found.offsets.ends[-1])
        kept.damaged_to = max(kept.damaged_to, end)
        # A record without an end tag seems to go on to the next error, or to where its parent ends.
        # What looks like records inside of it is read for itself; but not again and again.
        least = max(end, self.part.start.offset + 1)
        if kept.start <= start < end and self._may_read_again + _AGAIN * end > end - start:
            self._may_read_again -= end - start
            least = start + 1
        error, known = found.stream_error, found.offsets.start
        assert error is not None
        if known.offset < kept.start:
            known = StreamPosition(0, min(end, least), error.line or 1, error.column or 1)
        lines = _Lines(known, self.encoding)
        return (yield from kept.find(least, lines))


def _context_of(found: RecordBatch) -> bytes:
    """The context of the last record, of an error outside records that of the record before.

    Nothing if there is none, or no element is around it.
    """
    starts, ends = found.offsets.starts, found.offsets.ends
    is_outside = found.stream_error is not None and starts[-1] == ends[-1]
    return _around(found, -2 if is_outside else -1) if len(starts) > is_outside else b""


def _around(found: RecordBatch, record: int) -> bytes:
    context = found.offsets.context_of(record)
    return context if _HEAD.fullmatch(context) is None else b""


class _Lines:
    """Counts lines from a position on, over bytes that come in pieces."""

    def __init__(self, known: StreamPosition, encoding: str | None) -> None:
        self.offset = known.offset
        self._counter = LineCounter(known.line, known.column)
        self._decoder = codecs.getincrementaldecoder(encoding or "utf-8")("replace")

    def pass_over(self, data: bytes | bytearray) -> None:
        """Go on by the next bytes."""
        self._counter.pass_over(self._decoder.decode(data))
        self.offset += len(data)

    def position(self) -> StreamPosition:
        """Where that has come to."""
        return StreamPosition(0, self.offset, self._counter.line, self._counter.column)


def _resumed(found: RecordBatch, end: int) -> RecordBatch:
    """The batch, whose error does not end the stream, and says what is passed over."""
    error, start = found.stream_error, int(found.offsets.starts[-1])
    assert error is not None
    passed = f"bytes {start:,} to {end:,} were" if start < end else "nothing was"
    message = f"{error.message.removesuffix(NOT_READ)}; {passed} passed over"
    number = len(found.offsets.starts) - 1
    errors = {**found.errors, number: replace(error, message=message)}
    return found._replace(errors=errors, stream_error=None)


class _KeptChunks:
    """The chunks of a stream, of which what may be read again is kept.

    Attributes:
        data, start: what is kept, and where in the stream that begins.
        answered: the offset up to which records are answered.
        damaged_to: the offset of the furthest error. Before it, a record ends where the next one
            begins: one without an end tag is told there.
        is_paused: reading on may have to wait.
        is_full: a record has become too large to be kept.
        is_failed: the stream itself cannot be read any further.
    """

    def __init__(
        self,
        chunks: Iterable[bytes | memoryview],
        start: int,
        limits: Limits,
        pattern: re.Pattern[bytes],
    ) -> None:
        self.data, self.start = bytearray(), start
        self.answered, self.damaged_to = start, -1
        self.is_paused = self.is_full = self.is_failed = False
        self._chunks = iter(chunks)
        self._limits, self._pattern = limits, pattern

    def read_from(self, offset: int, piece: int) -> Iterator[bytes]:
        """What is kept from an offset on, and then the rest.

        The pieces grow. A pause is behind each, which has parsers give what is complete, until they
        have the greatest size. Where there is damage, pieces end before start tags of records.

        Raises:
            MalformedDocument: a record there is not complete at the end of a piece.
        """
        self.is_full = False
        while True:
            at = offset - self.start
            end = at + piece
            if is_damaged := offset < self.damaged_to:
                after = self._pattern.search(self.data, end)
                end = after.start() if after else len(self.data)
            found = bytes(self.data[at:end])
            if not found:
                chunk = self.next()
                if chunk is None:
                    return
                if not chunk:
                    yield b""
                continue
            offset += len(found)
            yield found
            if piece < _PIECES_MAX or is_damaged:
                piece = min(2 * piece, _PIECES_MAX)
                yield b""
                if is_damaged and offset < self.damaged_to and self._is_inside(offset):
                    raise MalformedDocument("it does not end before the next record")

    def _is_inside(self, offset: int) -> bool:
        """Whether something that looks like a record is before an offset, and not answered."""
        found = self._pattern.search(self.data, self.answered - self.start, offset - self.start)
        return found is not None

    def next(self) -> bytes | memoryview | None:
        """Read on: the next chunk, which is empty where that may have to wait; None at the end."""
        try:
            chunk = next(self._chunks, None)
        except DocumentError:
            self.is_failed = True
            raise
        self.is_paused = chunk is not None and not chunk
        if chunk:
            self.data += chunk
            excess = len(self.data) - self._limits.document_bytes - _KEPT_BEYOND
            if excess > 0:
                if self._pattern.search(self.data) is not None and not self.is_full:
                    self.is_full = True
                    raise DocumentLimitError(too_large(self._limits))
                self.forget(self.start + excess)
        return chunk

    def forget(self, offset: int) -> None:
        """Nothing before an offset is read again."""
        count = max(0, min(offset - self.start, len(self.data)))
        del self.data[:count]
        self.start += count

    def find(self, least: int, lines: _Lines) -> Generator[Flush, None, StreamPosition | None]:
        """Where something looks like a record first, from an offset on; or None.

        What is before the found one is forgotten.
        """
        while True:
            match = self._pattern.search(self.data, least - self.start)
            if match is not None:
                least = self.start + match.start()
            else:  # what is cut off may be a tag
                tag = self.data.rfind(b"<", max(least - self.start, len(self.data) - _TAG_MAX))
                least = max(least, self.start + (len(self.data) if tag < 0 else tag))
            lines.pass_over(self.data[lines.offset - self.start : least - self.start])
            self.forget(least)
            if match is not None:
                return lines.position()
            try:
                chunk = self.next()
            except DocumentError:
                return None
            if chunk is None:
                return None
            if not chunk:
                yield Flush.FLUSH
