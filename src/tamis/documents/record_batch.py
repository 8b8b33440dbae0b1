"""What the records of a stream are parsed into, whatever parses them."""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentError, UsageError
from tamis.core.names import QNAME
from tamis.documents.batch import DocumentBatch
from tamis.documents.offsets import Excerpt
from tamis.documents.vocabulary import Vocabulary

# A batch of records ends when it has so many, or was made of so many bytes of the stream.
BATCH_RECORDS = 4096
BATCH_BYTES = 4 << 20


class StreamPlace(NamedTuple):
    """A place in a stream, outside of records.

    Attributes:
        record: the number of the next record.
        offset: in bytes of UTF-8, from 0.
        line, column: from 1; columns are characters.
    """

    record: int = 0
    offset: int = 0
    line: int = 1
    column: int = 1


class RecordPlaces(NamedTuple):
    """Where the records of a batch stand in their stream.

    Attributes:
        first: the number of the first one.
        starts, ends: int64[d]; byte offsets in the stream. Of the error that ended the stream:
            where its record began, or where it was noticed outside of records, and where it was
            noticed.
        context: int32[d]; the number in ``contexts`` of what each record has to be read with, to be
            read alone.
        contexts: the DOCTYPE, if there is one, and the start tags around records, with the
            namespaces that they declare.
        start: the place of the first record.
    """

    first: int
    starts: Int64
    ends: Int64
    context: Int32
    contexts: tuple[bytes, ...]
    start: StreamPlace


class RecordBatch(NamedTuple):
    """Some records of a stream, one after the other; each is a document of the batch.

    Attributes:
        batch: the events.
        errors: by the number of the document in the batch; such a record has no events.
        vocabulary: what the batch was parsed with. Later batches may share it, and add names to it
            at any time; it never loses or changes one.
        places: where the records stand.
        stream_error: what ended the stream too early: the last of ``errors``; or None.
        excerpt: the bytes from the first record to the end of the last one, where offsets are
            projected; or None.
    """

    batch: DocumentBatch
    errors: dict[int, DocumentError]
    vocabulary: Vocabulary
    places: RecordPlaces
    stream_error: DocumentError | None
    excerpt: Excerpt | None = None


def check_tag(tag: object) -> str:
    """The tag of records, if it can be one.

    Raises:
        UsageError: it cannot.

    >>> check_tag("w:p")
    'w:p'
    """
    if not isinstance(tag, str) or tag.startswith("xmlns:") or not QNAME.fullmatch(tag):
        raise UsageError(f"{tag!r} is no tag: give it as documents write it, such as page or w:p")
    return tag
