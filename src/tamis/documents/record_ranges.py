"""A large document in ranges of records, each of which can be parsed alone, by whoever has time."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from threading import Event
from typing import IO, NamedTuple

import numpy as np

from tamis.core.lazy import lazy_pattern
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.core.threads import Flush
from tamis.documents.projection import Projection
from tamis.documents.record_batch import RecordBatch, RecordPlaces, StreamPlace
from tamis.documents.records import parse_records, record_parser
from tamis.documents.streams import Stream, open_stream
from tamis.documents.tokenizer.kernels.lines import pass_over
from tamis.documents.tokenizer.scanner import PADDING
from tamis.documents.vocabulary import Vocabulary


class RecordRange(NamedTuple):
    """Some records of a document, one after the other.

    Attributes:
        start: where the first one begins.
        end: the offset behind the last one; None where all that follows belongs to the range.
        context: what has to be read before them: the DOCTYPE, if there is one, and the start tags
            around the first of them. With that before it, a range is well-formed but for end tags.
    """

    start: StreamPlace
    end: int | None
    context: bytes

    def parse(
        self,
        stream: Stream,
        tag: str,
        vocabulary: Vocabulary,
        projection: Projection,
        limits: Limits,
    ) -> Generator[RecordBatch | Flush, None, None]:
        """Parse them; see :func:`parse_records`.

        Args:
            stream: these bytes of the document.
        """
        parser = record_parser(
            tag,
            vocabulary,
            projection,
            limits,
            encoding=stream.encoding,
            context=self.context,
            start=self.start,
        )
        yield from parser.parse(stream.chunks, is_all=self.end is None)
        parser.warn_of_skipped(stream.name)


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

    Each thread reads a part of the document. All but the first begin at what looks like a record,
    with the context of the first record of all. This is no guess that anything depends on: a part
    counts if whoever read the one before it met a record there, in that context. Else that reader
    goes on, and the part is thrown away.

    Args:
        opened: opens the document, for each thread; the file must be one to ``seek`` in.

    Raises:
        DocumentError: nothing of it can be read.
        UsageError: ``tag`` cannot be one.

    >>> from io import BytesIO
    >>> record_ranges(lambda: BytesIO(b"<all><a/><b/><a>1</a></all>"), "a", 1 << 20)
    [RecordRange(start=StreamPlace(record=0, offset=0, line=1, column=1), end=None, context=b'')]
    """
    ranges = [RecordRange(StreamPlace(), None, b"")]
    with opened() as file:
        stream = open_stream(file)
        if stream.is_decoded or stream.mark:
            return ranges
        found = parse_records(stream, tag, Vocabulary(), Projection(), limits)
        first = next((batch for batch in found if not isinstance(batch, Flush)), None)
        context = b"" if first is None else first.places.contexts[first.places.context[0]]
        if first is None or first.stream_error is not None or _SUBSET.search(context):
            return ranges
        begins = _look_for_records(file, tag, size, threads)
    end = 0
    for step in _steps(_Reader(opened, tag, limits, context), begins):
        if end and step.start.offset - ranges[-1].start.offset >= size:
            ranges[-1] = ranges[-1]._replace(end=end)
            ranges.append(RecordRange(step.start, None, step.context))
        end = step.end
    return ranges


_SUBSET = lazy_pattern(rb"""<!DOCTYPE(?:"[^"]*"|'[^']*'|[^>\["'])*\[""")


def _look_for_records(file: IO[bytes], tag: str, size: int, threads: int) -> list[int]:
    """Offsets where threads but the first may begin: of what looks like start tags of records."""
    end = file.seek(0, 2)
    parts = min(threads, end // size)
    start_tag = re.compile(re.escape(b"<" + tag.encode()) + rb"[\s/>]")
    found = []
    for part in range(1, parts):
        place = file.seek(part * end // parts)
        match = start_tag.search(file.read(_LOOK_BYTES))
        if match is not None:
            found.append(place + match.start())
    return sorted(set(found))


_LOOK_BYTES = 4 << 20


class _Step(NamedTuple):
    """Some records that were read one after the other: a place where a range may begin.

    Attributes:
        start: of the first one.
        context: of that.
        end: the offset behind the last one.
    """

    start: StreamPlace
    context: bytes
    end: int


class _Reader(NamedTuple):
    """Reads parts of a document.

    Attributes:
        context: what parts begin with.
    """

    opened: Callable[[], IO[bytes]]
    tag: str
    limits: Limits
    context: bytes

    def read(
        self, start: int, later: Sequence[int], stopped: Event
    ) -> tuple[list[_Step], StreamPlace | None]:
        """The steps of a part, with places as if the document began with it.

        Args:
            start: an offset.
            later: others, where parts may begin.

        Returns:
            Also the first of these where a record of the context began; None if there is none.
        """
        steps: list[_Step] = []
        part = RecordRange(StreamPlace(offset=start), None, self.context if start else b"")
        with self.opened() as file:
            file.seek(start)
            stream = open_stream(file)
            batches = part.parse(stream, self.tag, Vocabulary(), Projection(), self.limits)
            for batch in batches:
                if isinstance(batch, Flush):
                    continue
                if batch.stream_error is not None or stopped.is_set():
                    break
                met = self._met(batch, later)
                places = batch.places
                before = len(places.starts) if met is None else met
                if before:
                    context = places.contexts[places.context[0]]
                    steps.append(_Step(places.start, context, int(places.ends[before - 1])))
                if met is not None:
                    return steps, self._place(places, met)
        return steps, None

    def _met(self, batch: RecordBatch, later: Sequence[int]) -> int | None:
        """The first record of a batch where a part may begin."""
        starts = batch.places.starts
        for record in np.flatnonzero(np.isin(starts, np.asarray(later, np.int64))).tolist():
            if batch.places.contexts[batch.places.context[record]] == self.context:
                return int(record)
        return None

    def _place(self, places: RecordPlaces, record: int) -> StreamPlace:
        """Where a record of a batch begins."""
        start, offset = places.start, int(places.starts[record])
        with self.opened() as file:
            file.seek(start.offset)
            passed = file.read(offset - start.offset)
        lines = np.array([start.line, start.column, 0])
        pass_over(np.frombuffer(passed + PADDING, np.uint8), 0, len(passed), lines)
        return StreamPlace(places.first + record, offset, int(lines[0]), int(lines[1]))


def _steps(reader: _Reader, begins: Sequence[int]) -> Iterator[_Step]:
    """The steps of a document, whose parts are read at the same time."""
    stopped = Event()
    begins = [0, *begins]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - few have ranges

    with ThreadPoolExecutor(len(begins)) as pool:
        parts = {
            begin: pool.submit(reader.read, begin, begins[number:], stopped)
            for number, begin in enumerate(begins, 1)
        }
        try:
            place: StreamPlace | None = StreamPlace()
            while place is not None:
                steps, met = parts[place.offset].result()
                for step in steps:
                    yield step._replace(start=_moved(step.start, place))
                place = None if met is None else _moved(met, place)
        finally:
            stopped.set()


def _moved(place: StreamPlace, start: StreamPlace) -> StreamPlace:
    """A place that was counted as if the document began at ``start``."""
    return StreamPlace(
        start.record + place.record,
        place.offset,
        start.line + place.line - 1,
        place.column + (start.column - 1 if place.line == 1 else 0),
    )
