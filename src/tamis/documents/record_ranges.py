"""A large document in ranges of records, each of which can be parsed alone, by whoever has time."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import NamedTuple

from tamis.documents.demand import Demand
from tamis.documents.record_batch import RecordBatch, StreamPlace
from tamis.documents.records import parse_records, record_parser
from tamis.documents.source import Document
from tamis.documents.streams import Stream, open_stream
from tamis.documents.vocabulary import Vocabulary
from tamis.limits import DEFAULT_LIMITS, Limits


class RecordRange(NamedTuple):
    """Some records of a document, one after the other.

    Attributes:
        start: where the first one begins.
        end: the offset behind the last one; None where all that follows belongs to the range.
        context: what has to be read before them; see ``RecordIndex``.
    """

    start: StreamPlace
    end: int | None
    context: bytes

    def parse(
        self, stream: Stream, tag: str, vocabulary: Vocabulary, demand: Demand, limits: Limits
    ) -> Generator[RecordBatch, None, None]:
        """Parse them; see :func:`parse_records`.

        Args:
            stream: these bytes of the document.
        """
        parser = record_parser(
            tag,
            vocabulary,
            demand,
            limits,
            encoding=stream.encoding,
            context=self.context,
            start=self.start,
        )
        yield from parser.parse(stream.chunks, is_all=self.end is None)
        parser.warn_of_skipped(stream.name)


def record_ranges(
    document: Document, tag: str, size: int, limits: Limits = DEFAULT_LIMITS
) -> list[RecordRange]:
    """Divide a document into ranges of about so many bytes, in one pass over all of it.

    The first begins where the document does, and the last one ends with it: in an error, if there
    is one. What is compressed or not UTF-8 is one range, since its bytes cannot be read from the
    middle on; and so is a document whose DTD declares something, since what its entities expand to
    is counted for all records together.

    Raises:
        DocumentError: nothing of it can be read.
        UsageError: ``tag`` cannot be one, or it is no document at all.

    >>> record_ranges(b"<all><a/><b/><a>1</a></all>", "a", 1 << 20)
    [RecordRange(start=StreamPlace(record=0, offset=0, line=1, column=1), end=None, context=b'')]
    """
    ranges = [RecordRange(StreamPlace(), None, b"")]
    stream = open_stream(document)
    if stream.is_decoded or stream.mark:
        return ranges
    end = 0
    for found in parse_records(stream, tag, Vocabulary(), Demand(), limits):
        if found.stream_error is not None:
            break
        places = found.places
        context = places.contexts[places.context[0]]
        if _SUBSET.search(context):
            return ranges[:1]
        if end and places.start.offset - ranges[-1].start.offset >= size:
            ranges[-1] = ranges[-1]._replace(end=end)
            ranges.append(RecordRange(places.start, None, context))
        end = int(places.ends[-1])
    return ranges


_SUBSET = re.compile(rb"""<!DOCTYPE(?:"[^"]*"|'[^']*'|[^>\["'])*\[""")
