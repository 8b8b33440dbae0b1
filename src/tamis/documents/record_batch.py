"""``RecordBatch``: some records of a stream, as documents, and where they stand; their parsers.

A *record* is an outermost element of a given tag. It is the root of a document of its own, with its
namespaces in scope, and is numbered from 0. What stands outside of records is checked but not
recorded. Memory is bounded by ``limits.document_bytes`` and the size of a batch.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from tamis.core.arguments import is_one_of
from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentError, UsageError
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.core.names import QNAME
from tamis.core.threads import Flush
from tamis.documents.batch import DocumentBatch
from tamis.documents.offsets import Excerpt
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary

# A batch of records ends when it has so many, or was made of so many bytes of the stream.
BATCH_RECORDS = 4096
BATCH_BYTES = 4 << 20

DECLARES_ENTITIES = lazy_pattern(rb"""<!DOCTYPE(?:"[^"]*"|'[^']*'|[^>\["'])*\[""")
"""Finds a DTD inside a context."""
NOT_READ = "; the rest was not read"
"""How the message ends of an error that ends a stream too early."""


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
        first, start: the number and the position of the first record.
        starts, ends: int64[d]; byte offsets in the stream. A stream error has an entry too: its
            record's start, or the error's own offset if no record is open; and the error's offset.
        context: int32[d]; the number of each record's context.
        contexts: what a parser has to read before a record to read it alone. A context is the
            DOCTYPE, if there is one, and the start tags around the record with their namespaces.
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
        errors: by the number of the document in the batch; a record in error has no events.
        vocabulary: the names of the batch. Later batches may share it and add names at any time; it
            never loses or changes a name.
        stream_error: the error that ended the stream too early, the last of ``errors``; or None.
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
        """The bytes to read a record alone, and the size of the context before it.

        The batch must have an excerpt, and the record no error.
        """
        excerpt, offsets = self.excerpt, self.offsets
        assert excerpt is not None
        head = offsets.context_of(number)
        start, end = offsets.starts[number] - excerpt.start, offsets.ends[number] - excerpt.start
        return Source(head + bytes(excerpt.data[start:end]), excerpt.encoding), len(head)


class RecordTag(NamedTuple):
    """A tag as documents write it, without a namespace; or a namespace (or ``""``), and a name."""

    namespace: str | None
    name: str

    @classmethod
    def of(cls, tag: object) -> RecordTag:
        """The tag of records, or a ``UsageError`` if it cannot be one.

        >>> RecordTag.of("w:p"), RecordTag.of("{urn:w}p")
        (RecordTag(namespace=None, name='w:p'), RecordTag(namespace='urn:w', name='p'))
        """
        if isinstance(tag, str):
            namespace, brace, name = tag.rpartition("}")
            is_name = QNAME.fullmatch(name) is not None and not name.startswith("xmlns:")
            if is_name and not brace:
                return cls(None, name)
            if is_name and namespace.startswith("{") and ":" not in name:
                return cls(namespace[1:], name)
        raise UsageError(
            f"{tag!r} is no tag: give it as documents write it, such as page or w:p; or with its "
            "namespace, {uri}page"
        )


NO_RECORD = RecordTag(None, "")

OnBadRecord = Literal["stop", "resume"]
"""What is done where a stream of records is not well-formed: it ends, or the next record is looked
for."""
_ON_BAD = get_args(OnBadRecord)


def checked_on_bad_record(value: object) -> OnBadRecord:
    """The value, or a ``UsageError`` if it is neither "stop" nor "resume"."""
    if is_one_of(value, _ON_BAD):
        return value  # type: ignore[return-value]
    raise UsageError(f'on_bad_record is "stop" or "resume", not {value!r}')


class RecordRange(NamedTuple):
    """Some records of a document, one after the other.

    Attributes:
        end: the offset behind the last record; None where the rest of the stream is the range.
        context: as in ``RecordOffsets.contexts``. Context and range together are well-formed,
            except that end tags are missing.
    """

    start: StreamPosition = StreamPosition()
    end: int | None = None
    context: bytes = b""


ALL_RECORDS = RecordRange()


@dataclass(eq=False)
class RecordParser:
    """Parses the records of one stream, or of the rest of one from a position outside of records.

    Attributes:
        encoding: overrules the document's declaration.
        record: what the tag means.
        context: to be read before the stream, as in ``RecordOffsets.contexts``.
        start: the position of the stream's first byte.
    """

    tag: str
    vocabulary: Vocabulary
    projection: Projection
    limits: Limits
    encoding: str | None = None
    context: bytes = b""
    start: StreamPosition = ALL_RECORDS.start

    def __post_init__(self) -> None:
        self.record = RecordTag.of(self.tag)

    def parse(
        self, chunks: Iterable[bytes | memoryview], *, is_all: bool = True
    ) -> Generator[RecordBatch | Flush, None, None]:
        """Parse chunks of any size. To be called once.

        An error that ``chunks`` raises ends the stream. Without ``is_all``, they end with a record.
        """
        raise NotImplementedError

    def log_skipped(self, name: str) -> None:
        """Log which references were left out of the stream of this name, if any."""
        raise NotImplementedError


def head_of(doctype: bytes, is_standalone: bool) -> bytes:
    """The beginning of a context: the DOCTYPE, after a declaration if it is standalone."""
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
