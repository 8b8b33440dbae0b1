"""How the programs read records with Tamis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tamis.core.limits import DEFAULT_LIMITS
from tamis.core.threads import Flush
from tamis.documents.record_reader import parse_records
from tamis.documents.source import open_stream
from tamis.documents.vocabulary import Names, Projection, Vocabulary


def records(paths: Sequence[Path], tag: str, names: Sequence[str]) -> dict[str, int]:
    """Read and parse files; gives the counts.

    Returns:
        ``documents``: files. ``records``: outermost elements ``tag``. ``record_elements``: elements
        in records, these included. ``value_bytes``: UTF-8 of all texts that were recorded.
    """
    projection = Projection(text=Names(("", name) for name in names))
    counts = {"documents": 0, "records": 0, "record_elements": 0, "value_bytes": 0}
    for path in paths:
        counts["documents"] += 1
        vocabulary = Vocabulary()
        found = parse_records(open_stream(path), tag, vocabulary, projection, DEFAULT_LIMITS)
        for records in found:
            if isinstance(records, Flush):
                continue
            if records.stream_error is not None:
                raise records.stream_error
            counts["records"] += records.batch.documents
            counts["record_elements"] += len(records.batch.tags) // 2
            counts["value_bytes"] += len(records.batch.text_values)
    return counts
