"""An index of the records of a document: where each stands, and what it takes to read it alone."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tamis.documents.batch import Int64, freeze
from tamis.documents.demand import Demand
from tamis.documents.record_batch import RecordBatch, StreamPlace
from tamis.documents.records import parse_records, record_parser
from tamis.documents.source import Document
from tamis.documents.streams import open_stream
from tamis.documents.vocabulary import Vocabulary
from tamis.limits import DEFAULT_LIMITS, Limits


class RecordIndex(NamedTuple):
    """Where the records of one document are.

    Attributes:
        tag: the name of the elements that are records, as the document writes it.
        starts, ends: int64[r]; byte offsets in the stream that :func:`open_stream` gives, which is
            the document itself where that is UTF-8 without a byte order mark, and not compressed.
        context_starts: int64[c]; the number of the first record of each run of records that have
            the same context.
        contexts: for each run the bytes that have to be read before a record: the DOCTYPE, if there
            is one, and the start tags of the elements around it.
    """

    tag: str
    starts: Int64
    ends: Int64
    context_starts: Int64
    contexts: tuple[bytes, ...]

    def context(self, record: int) -> bytes:
        """What has to be read before a record, or before the bytes from it to the end of another.

        ``context(n) + data[starts[n]:ends[n]]`` is well-formed but for the end tags of the context.
        """
        return self.contexts[bisect_right(self.context_starts, record) - 1]

    @property
    def records(self) -> int:
        """The number of records."""
        return len(self.starts)


def record_index(document: Document, tag: str, limits: Limits = DEFAULT_LIMITS) -> RecordIndex:
    """Find the records of a document, in one pass and in bounded memory but for the index itself.

    Raises:
        DocumentError: the document cannot be read to its end.
        UsageError: ``tag`` cannot be one, or it is no document at all.

    >>> index = record_index(b'<all xmlns="u"><a/><b/><a>1</a></all>', "a")
    >>> index.starts, index.ends, index.context(1)
    (array([15, 23]), array([19, 31]), b'<all xmlns="u">')
    """
    starts: list[Int64] = []
    ends: list[Int64] = []
    runs: list[tuple[int, bytes]] = []
    error = None
    for found in parse_records(open_stream(document), tag, Vocabulary(), Demand(), limits):
        starts.append(found.places.starts)
        ends.append(found.places.ends)
        places = found.places
        numbers, contexts = places.context, places.contexts
        for change in np.flatnonzero(np.diff(numbers, prepend=-1)).tolist():
            context = contexts[numbers[change]]
            if not runs or runs[-1][1] != context:
                runs.append((places.first + change, context))
        error = found.stream_error
    if error is not None:
        raise error
    index = RecordIndex(
        tag,
        np.concatenate(starts or [_NONE]),
        np.concatenate(ends or [_NONE]),
        np.array([number for number, _ in runs], dtype=np.int64),
        tuple(context for _, context in runs),
    )
    freeze(index.starts, index.ends, index.context_starts)
    return index


def parse_range(
    index: RecordIndex,
    first: int,
    data: bytes | memoryview,
    vocabulary: Vocabulary,
    demand: Demand,
    limits: Limits,
) -> Iterator[RecordBatch]:
    """Parse some of the records of a document: those from ``first`` on that ``data`` has.

    Args:
        data: the bytes of the stream from ``index.starts[first]`` to the end of a record. Lines and
            columns are counted from its beginning.
    """
    start = StreamPlace(first, int(index.starts[first]))
    parser = record_parser(
        index.tag, vocabulary, demand, limits, context=index.context(first), start=start
    )
    return parser.parse([data], is_all=False)


_NONE = np.zeros(0, dtype=np.int64)
