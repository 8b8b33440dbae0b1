"""Where the records of large files stand, found once: an index of each is kept for the next job."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from uuid import uuid4

import tamis
from tamis.core.limits import Limits
from tamis.documents.records import RecordRange, StreamPosition, record_ranges
from tamis.spark.cache import cache_folder, keep_newest
from tamis.spark.listing import Listed, opened

INDEXES_MAX = 256
"""So many are kept in the cache of a user, of some kilobytes each."""


def indexed_ranges(
    path: str, file: Listed, tag: str, size: int, limits: Limits, threads: int
) -> list[RecordRange]:
    """The ranges of a file's records: from its index, or by reading all of it, once.

    An index is that of a file by its path, size and time.

    Args:
        path: from the root, or a URI.
        file: how large and how old it is.
        tag, size, limits, threads: see :func:`record_ranges`.

    Raises:
        DocumentError: nothing of it can be read.
        OSError: the same.
    """
    said = [path, file.size, file.modified, tag, size, asdict(limits), tamis.__version__]
    key = _digest(json.dumps(said))
    folder = cache_folder("records")
    kept = folder / f"{key}.json"
    with suppress(OSError, ValueError):
        digest, text = kept.read_text().split("\n")
        if digest == _digest(text):
            return [_range(*row) for row in json.loads(text)]
    found = record_ranges(lambda: opened(path), tag, size, limits, threads)
    if file.modified:  # else nobody can tell that it has changed
        with suppress(OSError):
            beside = folder / f".{uuid4().hex}"
            text = json.dumps([_row(part) for part in found])
            beside.write_text(f"{_digest(text)}\n{text}")
            beside.rename(kept)
            keep_newest(folder, "*.json", INDEXES_MAX)
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _row(part: RecordRange) -> list[object]:
    return [*part.start, part.end, part.context.decode()]


def _range(
    record: int, offset: int, line: int, column: int, end: int | None, context: str
) -> RecordRange:
    return RecordRange(StreamPosition(record, offset, line, column), end, context.encode())
