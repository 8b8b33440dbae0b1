"""Records: each outermost element of a given tag is a document of its own, in a stream of any size.

A record is the root of its document, with its namespaces in scope; it is numbered from 0. What
stands outside of records is checked but not recorded. The tokenizer reads them where it can, and
libexpat the rest. Memory is bounded by ``limits.document_bytes`` and the size of a batch.

A large document can be divided into ranges of records, each of which can be parsed alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import IO, NamedTuple

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentError, UsageError
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.names import QNAME
from tamis.core.threads import Flush
from tamis.documents.batch import DocumentBatch
from tamis.documents.encodings import LineCounter
from tamis.documents.offsets import Excerpt
from tamis.documents.source import Source, Stream, open_stream
from tamis.documents.vocabulary import Projection, Vocabulary

# A batch of records ends when it has so many, or was made of so many bytes of the stream.
BATCH_RECORDS = 4096
BATCH_BYTES = 4 << 20


class StreamPosition(NamedTuple):
    """A position in a stream, outside of records: ``record`` is the number of the next one.

    The offset is in bytes of UTF-8, from 0; line and column are from 1, columns in characters.
    """

    record: int = 0
    offset: int = 0
    line: int = 1
    column: int = 1


class RecordOffsets(NamedTuple):
    """Where the records of a batch stand in their stream.

    Attributes:
        first, start: the number and the position of the first one.
        starts, ends: int64[d]; byte offsets in the stream. Of the error that ended the stream:
            where its record began, or where it was noticed outside of records, and where it was
            noticed.
        context: int32[d]; which of the ``contexts`` each record has to be read with, to be read
            alone: the DOCTYPE, if there is one, and the start tags around it, with the namespaces
            that they declare.
    """

    first: int
    starts: Int64
    ends: Int64
    context: Int32
    contexts: tuple[bytes, ...]
    start: StreamPosition

    def context_of(self, record: int) -> bytes:
        return self.contexts[int(self.context[record])]


class RecordBatch(NamedTuple):
    """Some records of a stream, one after the other; each is a document of the batch.

    Attributes:
        errors: by the number of the document in the batch; such a record has no events.
        vocabulary: what the batch was parsed with. Later batches may share it, and add names to it
            at any time; it never loses or changes one.
        stream_error: what ended the stream too early: the last of ``errors``; or None.
        excerpt: the bytes from the first record to the end of the last one, where offsets are
            projected; or None.
    """

    batch: DocumentBatch
    errors: dict[int, DocumentError]
    vocabulary: Vocabulary
    offsets: RecordOffsets
    stream_error: DocumentError | None
    excerpt: Excerpt | None = None

    def source(self, number: int) -> tuple[Source, int]:
        """The bytes to read a record alone, and how many of them come before it.

        The batch has an excerpt, and the record no error.
        """
        excerpt, offsets = self.excerpt, self.offsets
        assert excerpt is not None
        head = offsets.context_of(number)
        start, end = offsets.starts[number] - excerpt.start, offsets.ends[number] - excerpt.start
        return Source(head + bytes(excerpt.data[start:end]), excerpt.encoding), len(head)


def check_tag(tag: object) -> str:
    """The tag of records, or a ``UsageError`` if it cannot be one.

    >>> check_tag("w:p")
    'w:p'
    """
    if not isinstance(tag, str) or tag.startswith("xmlns:") or not QNAME.fullmatch(tag):
        raise UsageError(f"{tag!r} is no tag: give it as documents write it, such as page or w:p")
    return tag


class RecordRange(NamedTuple):
    """Some records of a document, one after the other.

    Attributes:
        end: the offset behind the last one; None where all that follows belongs to the range.
        context: as in ``RecordOffsets.contexts``. With that before it, a range is well-formed but
            for end tags.
    """

    start: StreamPosition = StreamPosition()
    end: int | None = None
    context: bytes = b""


ALL_RECORDS = RecordRange()


def parse_records(
    stream: Stream,
    tag: str,
    vocabulary: Vocabulary,
    projection: Projection,
    limits: Limits,
    part: RecordRange = ALL_RECORDS,
) -> Generator[RecordBatch | Flush, None, None]:
    """Parse the records of a stream, in batches.

    What a stream has is parsed before more is waited for: ``Flush.FLUSH`` is among the batches
    then.

    An error of one record, a limit that it reaches, concerns it alone. Where the stream is not
    well-formed, or cannot be read any further, it ends with an error: that of the record it is in,
    or of the next one.

    Records are the elements whose name the document writes as ``tag``, with its prefix. Batches
    have forks of the vocabulary. If only a part is to be read, the stream has only its bytes.

    >>> stream = open_stream(b"<all><a/><b/><a><a/></a></all>")
    >>> (found,) = parse_records(stream, "a", Vocabulary(), Projection(), Limits())
    >>> found.batch.document_starts, found.offsets.starts, found.offsets.ends
    (array([0, 2, 6]), array([ 5, 13]), array([ 9, 24]))
    """
    from tamis.documents.expat_records import ExpatRecords  # noqa: PLC0415 - few have records

    kind: type[RecordParser] = ExpatRecords
    if not projection.lines:  # which only libexpat counts for each event
        from tamis.documents.tokenizer.records import TokenizedRecords  # noqa: PLC0415 - kernels

        kind = TokenizedRecords
    parser = kind(tag, vocabulary, projection, limits, stream.encoding, part.context, part.start)
    found = parser.parse(stream.chunks, is_all=part.end is None)
    try:
        yield from found
    finally:
        found.close()
        parser.log_skipped(stream.name)


@dataclass(eq=False)
class RecordParser:
    """Parses the records of one stream, or of the rest of one from a position outside of records.

    Attributes:
        encoding: overrules what the document declares.
        context: what has to be read before the rest, as in ``RecordOffsets.contexts``.
        start: where the rest of the stream begins.
    """

    tag: str
    vocabulary: Vocabulary
    projection: Projection
    limits: Limits
    encoding: str | None = None
    context: bytes = b""
    start: StreamPosition = ALL_RECORDS.start

    def __post_init__(self) -> None:
        check_tag(self.tag)

    def parse(
        self, chunks: Iterable[bytes | memoryview], *, is_all: bool = True
    ) -> Generator[RecordBatch | Flush, None, None]:
        """Parse the chunks, of any size; may be called once.

        An error that they raise ends the stream. If they are not all, they must end with a record.
        """
        raise NotImplementedError

    def log_skipped(self, name: str) -> None:
        """Log which references were left out of the stream of this name, if any."""
        raise NotImplementedError


def head_of(doctype: bytes, is_standalone: bool) -> bytes:
    """How contexts begin: with the DOCTYPE, and what says how to read it."""
    return (b"<?xml version='1.0' standalone='yes'?>" if is_standalone else b"") + doctype


def start_tag(name: str, declared: Iterable[tuple[str | None, str | None]]) -> bytes:
    """A start tag, in UTF-8, with namespaces that it declares.

    >>> start_tag("a", [(None, "u"), ("p", "v&w")])
    b'<a xmlns="u" xmlns:p="v&#38;w">'
    """
    text = f"<{name}"
    for prefix, uri in declared:
        attribute = f"xmlns:{prefix}" if prefix else "xmlns"
        escaped = re.sub('[&<"\t\n\r]', lambda found: f"&#{ord(found[0])};", uri or "")
        text += f' {attribute}="{escaped}"'
    return f"{text}>".encode()


# -- ranges ----------------------------------------------------------------------------------------


def record_ranges(
    opened: Callable[[], IO[bytes]],
    tag: str,
    size: int,
    limits: Limits = DEFAULT_LIMITS,
    threads: int = 1,
) -> list[RecordRange]:
    """Divide a document into ranges of about so many bytes, in one pass over all of it.

    The first begins where the document does, and the last one ends with it: in an error, if there
    is one. What is compressed or not UTF-8 is one range, since its bytes cannot be read from the
    middle on; and so is a document whose DTD declares something, since what its entities expand to
    is counted for all records together.

    Each thread reads a part of the document, which ``opened`` opens for it. All but the first begin
    at what looks like a record, with the context of the first record of all. This is no guess that
    anything depends on: a part counts if whoever read the one before it met a record there, in that
    context. Else that reader goes on, and the part is thrown away.

    >>> from io import BytesIO
    >>> record_ranges(lambda: BytesIO(b"<all><a/><b/><a>1</a></all>"), "a", 1 << 20)
    [RecordRange(start=StreamPosition(record=0, offset=0, line=1, column=1), end=None, context=b'')]
    """
    ranges = [ALL_RECORDS]
    with opened() as file:
        stream = open_stream(file)
        if stream.is_decoded or stream.base_offset:
            return ranges
        found = parse_records(stream, tag, Vocabulary(), Projection(), limits)
        first = next((batch for batch in found if not isinstance(batch, Flush)), None)
        context = b"" if first is None else first.offsets.context_of(0)
        if first is None or first.stream_error is not None or _SUBSET.search(context):
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


_SUBSET = lazy_pattern(rb"""<!DOCTYPE(?:"[^"]*"|'[^']*'|[^>\["'])*\[""")
_LOOK_BYTES = 4 << 20


def _look_for_records(file: IO[bytes], tag: str, size: int, threads: int) -> list[int]:
    """Offsets where threads but the first may begin: of what looks like start tags of records."""
    end = file.seek(0, 2)
    parts = min(threads, end // size)
    start_tag = re.compile(re.escape(b"<" + tag.encode()) + rb"[\s/>]")
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
            found = parse_records(
                open_stream(file), self.tag, Vocabulary(), Projection(), self.limits, part
            )
            for batch in found:
                if isinstance(batch, Flush):
                    continue
                if batch.stream_error is not None or stopped.is_set():
                    break
                offsets = batch.offsets
                possible = np.flatnonzero(np.isin(offsets.starts, np.asarray(later, np.int64)))
                parts = (n for n in possible.tolist() if offsets.context_of(n) == self.context)
                met = next(parts, None)
                before = len(offsets.starts) if met is None else met
                if before:
                    end = int(offsets.ends[before - 1])
                    steps.append(RecordRange(offsets.start, end, offsets.context_of(0)))
                if met is not None:
                    return steps, self._position(offsets, met)
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
                steps, met = parts[position.offset].result()
                for step in steps:
                    yield step._replace(start=_moved(step.start, position))
                position = None if met is None else _moved(met, position)
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
