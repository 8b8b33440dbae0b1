"""Records: each outermost element of a given tag is a document of its own, in a stream of any size.

A record is the root of its document, with its namespaces in scope; it is numbered from 0. What
stands outside of records is checked but not recorded. The tokenizer reads them where it can, and
libexpat the rest. Memory is bounded by ``limits.document_bytes`` and the size of a batch.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Protocol

from tamis.core.limits import Limits
from tamis.core.threads import Flush
from tamis.documents.expat_records import ExpatRecords
from tamis.documents.projection import Projection
from tamis.documents.record_batch import RecordBatch, StreamPlace, check_tag
from tamis.documents.streams import Stream
from tamis.documents.vocabulary import Vocabulary


def parse_records(
    stream: Stream, tag: str, vocabulary: Vocabulary, projection: Projection, limits: Limits
) -> Generator[RecordBatch | Flush, None, None]:
    """Parse the records of a stream, in batches.

    What a stream has is parsed before more is waited for: ``Flush.FLUSH`` is among the batches
    then.

    An error of one record, a limit that it reaches, concerns it alone. Where the stream is not
    well-formed, or cannot be read any further, it ends with an error: that of the record it is in,
    or of the next one.

    Args:
        tag: the name of the elements that are records, with its prefix, as the document writes it.
        vocabulary: the names to know; batches have forks of it.

    Raises:
        UsageError: ``tag`` cannot be one.

    >>> from tamis.documents.streams import open_stream
    >>> stream = open_stream(b"<all><a/><b/><a><a/></a></all>")
    >>> (found,) = parse_records(stream, "a", Vocabulary(), Projection(), Limits())
    >>> found.batch.document_starts, found.places.starts, found.places.ends
    (array([0, 2, 6]), array([ 5, 13]), array([ 9, 24]))
    """
    parser = record_parser(tag, vocabulary, projection, limits, encoding=stream.encoding)
    found = parser.parse(stream.chunks)
    try:
        yield from found
    finally:
        found.close()
        parser.warn_of_skipped(stream.name)


def record_parser(
    tag: str,
    vocabulary: Vocabulary,
    projection: Projection,
    limits: Limits,
    *,
    encoding: str | None = None,
    context: bytes = b"",
    start: StreamPlace = StreamPlace(),  # noqa: B008 - it is immutable
) -> RecordParser:
    """What parses a stream, or the rest of one; for the arguments see :class:`ExpatRecords`."""
    check_tag(tag)
    if projection.lines:  # which only libexpat counts for each event
        kind: type[ExpatRecords | TokenizedRecords] = ExpatRecords
    else:
        from tamis.documents.tokenizer.records import TokenizedRecords  # noqa: PLC0415 - imports kernels

        kind = TokenizedRecords
    return kind(
        tag, vocabulary, projection, limits, encoding=encoding, context=context, start=start
    )


class RecordParser(Protocol):
    """Parses the records of one stream, or of the rest of one from a place outside of records."""

    def parse(
        self, chunks: Iterable[bytes | memoryview], *, is_all: bool = True
    ) -> Generator[RecordBatch | Flush, None, None]:
        """Parse the chunks, of any size; may be called once.

        Args:
            chunks: may raise a ``DocumentError``, which then ends the stream.
            is_all: whether the stream ends with them. If not, they must end with a record.
        """
        ...

    def warn_of_skipped(self, name: str) -> None:
        """Log what was left out of the stream of this name, if anything."""
