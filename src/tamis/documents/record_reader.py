"""Reads the records of a stream of any size, and divides a document into ranges of records.

The tokenizer reads records where it can, and libexpat the rest. Each range of a large document can
be parsed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from threading import Event
from typing import IO, NamedTuple

import numpy as np

from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.threads import Flush
from tamis.documents.encodings import LineCounter
from tamis.documents.record_batch import (
    ALL_RECORDS,
    DECLARES_ENTITIES,
    OnBadRecord,
    RecordBatch,
    RecordOffsets,
    RecordParser,
    RecordRange,
    RecordTag,
    StreamPosition,
)
from tamis.documents.resumed_records import ResumedRecords, start_tags
from tamis.documents.source import Stream, open_stream
from tamis.documents.vocabulary import Projection, Vocabulary


def parse_records(
    stream: Stream,
    tag: str,
    vocabulary: Vocabulary,
    projection: Projection,
    limits: Limits,
    part: RecordRange = ALL_RECORDS,
    on_bad: OnBadRecord = "stop",
) -> Generator[RecordBatch | Flush, None, None]:
    """Parse the records of a stream, in batches, and yield ``FLUSH`` before a read that may wait.

    A record that reaches a limit is in error; the other records are not. A stream that is not
    well-formed, or cannot be read any further, ends with an error. The error is that of the record
    in which the stream ends, or of the next one.

    With ``on_bad="resume"``, a stream that is not well-formed is read on from what looks like the
    next start tag of a record, in the context of the record before, if there is one and the DTD
    declares nothing. The error says which bytes were passed over.

    ``tag`` is as for ``RecordTag``. Batches have forks of the vocabulary. The stream has the bytes
    of ``part`` alone.

    >>> stream = open_stream(b"<all><a/><b/><a><a/></a></all>")
    >>> (found,) = parse_records(stream, "a", Vocabulary(), Projection(), Limits())
    >>> found.batch.document_starts, found.offsets.starts, found.offsets.ends
    (array([0, 2, 6]), array([ 5, 13]), array([ 9, 24]))
    """
    from tamis.documents.expat_records import ExpatRecords  # noqa: PLC0415 - few have records

    kind: type[RecordParser] = ExpatRecords
    if not projection.lines:  # which only libexpat counts for each event
        from tamis.documents.tokenizer.tokenized_records import TokenizedRecords  # noqa: PLC0415 - kernels

        kind = TokenizedRecords

    def parsed(
        chunks: Iterable[bytes | memoryview], part: RecordRange
    ) -> Generator[RecordBatch | Flush, None, None]:
        known = stream.encoding, part.context, part.start
        parser = kind(tag, vocabulary, projection, limits, *known)
        batches = parser.parse(chunks, is_all=part.end is None)
        try:
            yield from batches
        finally:
            batches.close()
            parser.log_skipped(stream.name)

    if on_bad == "stop":
        yield from parsed(stream.chunks, part)
    else:
        known = parsed, stream.chunks, part, tag, limits, stream.encoding
        yield from ResumedRecords(*known).read()


def record_ranges(
    opened: Callable[[], IO[bytes]],
    tag: str,
    size: int,
    limits: Limits = DEFAULT_LIMITS,
    threads: int = 1,
) -> list[RecordRange]:
    """Divide a document into ranges of about so many bytes, in one pass over all of it.

    The first range begins where the document begins. The last one ends with the document, or with
    its error. A document that is compressed or not UTF-8 is one range: its bytes cannot be read
    from the middle on. A document whose DTD declares something is one range too: the limit on what
    entities expand to holds for all records together.

    Each thread reads a part of the document, which ``opened`` opens for it. All parts but the first
    begin at what looks like a record, with the context of the document's first record. The reader
    of the part before checks that: it stops only where a record begins in that context. Otherwise
    it reads on, and the wrong part is discarded.

    >>> from io import BytesIO
    >>> record_ranges(lambda: BytesIO(b"<all><a/><b/><a>1</a></all>"), "a", 1 << 20)
    [RecordRange(start=StreamPosition(record=0, offset=0, line=1, column=1), end=None, context=b'')]
    """
    ranges = [ALL_RECORDS]
    with opened() as file:
        stream = open_stream(file)
        if stream.is_decoded or stream.base_offset:
            return ranges
        batches = parse_records(stream, tag, Vocabulary(), Projection(), limits)
        first = next((batch for batch in batches if not isinstance(batch, Flush)), None)
        context = b"" if first is None else first.offsets.context_of(0)
        if first is None or first.stream_error is not None or DECLARES_ENTITIES.search(context):
            return ranges
        begins = _look_for_records(file, tag, size, threads)
    end = 0
    for step in _steps(_Reader(opened, tag, limits, context), begins):
        if end and step.start.offset - ranges[-1].start.offset >= size:
            ranges[-1] = ranges[-1]._replace(end=end)
            ranges.append(step._replace(end=None))
        assert step.end is not None
        end = step.end
    return ranges


_LOOK_BYTES = 4 << 20


def _look_for_records(file: IO[bytes], tag: str, size: int, threads: int) -> list[int]:
    """Offsets where threads but the first may begin: of what looks like start tags of records."""
    end = file.seek(0, 2)
    parts = min(threads, end // size)
    start_tag = start_tags(RecordTag.of(tag))
    found = set()
    for part in range(1, parts):
        offset = file.seek(part * end // parts)
        match = start_tag.search(file.read(_LOOK_BYTES))
        if match is not None:
            found.add(offset + match.start())
    return sorted(found)


class _Reader(NamedTuple):
    """Reads parts of a document, all but the first with ``context`` before them."""

    opened: Callable[[], IO[bytes]]
    tag: str
    limits: Limits
    context: bytes

    def read(
        self, start: int, later: Sequence[int], stopped: Event
    ) -> tuple[list[RecordRange], StreamPosition | None]:
        """The steps of a part: some records each, where a range may begin.

        Their positions are counted as if the document began with the part. Reading ends at the
        first of the ``later`` offsets where a record of the context begins: the second result.
        """
        steps: list[RecordRange] = []
        part = RecordRange(StreamPosition(offset=start), None, self.context if start else b"")
        with self.opened() as file:
            file.seek(start)
            batches = parse_records(
                open_stream(file), self.tag, Vocabulary(), Projection(), self.limits, part
            )
            for batch in batches:
                if isinstance(batch, Flush):
                    continue
                if batch.stream_error is not None or stopped.is_set():
                    break
                offsets = batch.offsets
                candidates = np.flatnonzero(np.isin(offsets.starts, np.asarray(later, np.int64)))
                begins = (n for n in candidates.tolist() if offsets.context_of(n) == self.context)
                next_part = next(begins, None)
                before = len(offsets.starts) if next_part is None else next_part
                if before:
                    end = int(offsets.ends[before - 1])
                    steps.append(RecordRange(offsets.start, end, offsets.context_of(0)))
                if next_part is not None:
                    return steps, self._position(offsets, next_part)
        return steps, None

    def _position(self, offsets: RecordOffsets, record: int) -> StreamPosition:
        start, offset = offsets.start, int(offsets.starts[record])
        with self.opened() as file:
            file.seek(start.offset)
            lines = LineCounter(start.line, start.column)
            lines.pass_over(file.read(offset - start.offset).decode())
        return StreamPosition(offsets.first + record, offset, lines.line, lines.column)


def _steps(reader: _Reader, begins: Sequence[int]) -> Iterator[RecordRange]:
    """The steps of a document, whose parts are read at the same time."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - few have ranges

    stopped = Event()
    begins = [0, *begins]
    with ThreadPoolExecutor(len(begins)) as pool:
        parts = {
            begin: pool.submit(reader.read, begin, begins[number:], stopped)
            for number, begin in enumerate(begins, 1)
        }
        try:
            position: StreamPosition | None = StreamPosition()
            while position is not None:
                steps, next_position = parts[position.offset].result()
                for step in steps:
                    yield step._replace(start=_moved(step.start, position))
                position = next_position and _moved(next_position, position)
        finally:
            stopped.set()


def _moved(position: StreamPosition, start: StreamPosition) -> StreamPosition:
    """A position that was counted as if the document began at ``start``."""
    return StreamPosition(
        start.record + position.record,
        position.offset,
        start.line + position.line - 1,
        position.column + (start.column - 1 if position.line == 1 else 0),
    )
