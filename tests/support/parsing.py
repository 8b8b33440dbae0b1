"""What the tests of documents share: parsing, and the errors that it gives."""

from __future__ import annotations

from collections.abc import Iterable

from tamis.core.errors import DocumentError
from tamis.core.limits import Limits
from tamis.documents.batch import DocumentBatch
from tamis.documents.parser import parse
from tamis.documents.source import Document, Source, read
from tamis.documents.vocabulary import EVERYTHING, Projection, Vocabulary


def sources(documents: Iterable[Document], limits: Limits) -> Iterable[Source | DocumentError]:
    for document in documents:
        try:
            yield read(document, limits)
        except DocumentError as error:
            yield error


def batch_of(
    *documents: Document,
    projection: Projection = EVERYTHING,
    limits: Limits | None = None,
    vocabulary: Vocabulary | None = None,
) -> tuple[DocumentBatch, dict[int, DocumentError]]:
    """The documents as one batch, and their errors by number."""
    limits = limits or Limits()
    vocabulary = Vocabulary() if vocabulary is None else vocabulary
    return parse(sources(documents, limits), vocabulary, projection, limits)


def error_of(document: Document, **options: object) -> DocumentError:
    """The error of one document, which must have one."""
    _, errors = batch_of(document, **options)
    return errors[0]


def texts(batch: DocumentBatch) -> list[str]:
    """The text nodes of a batch."""
    ranges = zip(batch.text_start.tolist(), batch.text_end.tolist(), strict=True)
    return [batch.text_values[start:end].tobytes().decode() for start, end in ranges]


def values(batch: DocumentBatch) -> list[str]:
    """The attribute values of a batch."""
    ranges = zip(batch.value_start.tolist(), batch.value_end.tolist(), strict=True)
    return [batch.attribute_values[start:end].tobytes().decode() for start, end in ranges]
