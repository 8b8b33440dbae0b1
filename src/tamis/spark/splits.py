"""Input splits: the files, members of archives and ranges of records that tasks read.

The driver finds the splits and assigns them to tasks, about equal in bytes. It reads no more than
the directories of archives, and all of a large file of records to find where records begin. An
index of these is kept for the next job.
"""

from __future__ import annotations

import hashlib
import heapq
import io
import json
import os
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple
from uuid import uuid4

import tamis
from tamis.core.errors import DocumentError, UnreadableDocument
from tamis.core.limits import Limits
from tamis.core.threads import usable_cores
from tamis.documents.files import is_packed_tar, is_tar, is_zip, reason, tar_documents, tar_members
from tamis.documents.records import RecordRange, StreamPosition, record_ranges
from tamis.documents.source import Document
from tamis.spark.artifacts import cache_folder, keep_newest
from tamis.spark.listing import NAMES, Listed, opened, tell_left_out
from tamis.spark.rows import printable

# What opening a document costs, as the number of bytes that could be matched in that time.
OPENING_BYTES = 4096
# A large job has tasks of TASK_BYTES, as Spark's own sources have. A small one has fewer bytes in
# each, so that all cores have work, until there are SMALL_TASKS; but not below SMALL_TASK_BYTES,
# which cost no more than the 50 ms that Spark takes from one task to the next.
SMALL_TASK_BYTES = 8 << 20
SMALL_TASKS = 16
TASK_BYTES = 128 << 20

# Files whose records are shared, by ranges of RANGE_BYTES: those of more than SHARED_BYTES, where
# there are not so many files that all tasks have one anyway.
RANGE_BYTES = 64 << 20
SHARED_BYTES = 2 * RANGE_BYTES


class InputSplit(NamedTuple):
    """Something that one task reads.

    Attributes:
        name: what the document is called.
        path: the file.
        size: in bytes, about.
        kind: a "file" is a document; so is a "zip" member, by its number, and the part of a "tar"
            from ``at`` on, of ``size`` bytes; a "stream" is a compressed tar, with many documents.
        at: see ``kind``.
        part: which of the records, or None for all of them.
        problem: why it cannot even be tried, or None.
        file: the number of its file among those that were listed.
    """

    name: str
    path: str
    size: int = 0
    kind: Literal["file", "zip", "tar", "stream"] = "file"
    at: int = 0
    part: RecordRange | None = None
    problem: str | None = None
    file: int = 0

    @property
    def is_part(self) -> bool:
        """Whether other splits, or documents, are of the same file."""
        return self.kind != "file" or self.part is not None


# -- in the driver ---------------------------------------------------------------------------------


def splits_of(
    files: Sequence[Listed], folder: str, record: str | None, limits: Limits
) -> list[InputSplit]:
    """What has to be read, each split by one task.

    Args:
        folder: where relative paths begin.
        record: the tag of the elements that are records, or None.
        limits: the bounds on each document.
    """
    splits = [
        split for number, file in enumerate(files) for split in _members(number, file, folder)
    ]
    if record is None:
        return splits
    least = max(SHARED_BYTES, sum(split.size for split in splits) // SMALL_TASKS)
    large = [
        number
        for number, split in enumerate(splits)
        if split.kind == "file" and not split.problem and split.size > least
    ]
    cores = usable_cores()
    threads = max(1, cores // max(1, len(large)))

    def shared(number: int) -> list[InputSplit]:
        split = splits[number]
        return _ranges(split, files[split.file], record, limits, threads)

    with ThreadPoolExecutor(cores) as pool:  # kernels let others run
        parts = dict(zip(large, pool.map(shared, large), strict=True))
    return [part for number, split in enumerate(splits) for part in parts.get(number, [split])]


def _ranges(
    split: InputSplit, file: Listed, record: str, limits: Limits, threads: int
) -> list[InputSplit]:
    try:
        ranges = indexed_ranges(split.path, file, record, RANGE_BYTES, limits, threads)
    except (DocumentError, OSError):  # whoever reads it will say so
        return [split]
    if len(ranges) == 1:
        return [split]
    return [
        split._replace(size=(part.end or split.size) - part.start.offset, part=part)
        for part in ranges
    ]


def _members(number: int, file: Listed, folder: str) -> Iterator[InputSplit]:
    """A file, or the documents of an archive."""
    name = file.path
    path = name if "://" in name else os.path.join(folder, name)
    whole = InputSplit(printable(name), path, file.size, problem=file.problem, file=number)
    try:
        if file.problem is not None:
            yield whole
        elif is_tar(name):
            yield from _tar_members(whole)
        elif (
            name.endswith(".zip")
            if "://" in name
            else not NAMES.takes_member(name) and is_zip(path)
        ):
            yield from _zip_members(whole)
        else:
            yield whole
    except UnreadableDocument as error:
        yield whole._replace(problem=error.message)
    except Exception as error:  # whatever damaged archives make their readers raise
        yield whole._replace(problem=f"cannot read the archive: {reason(error)}")


def _zip_members(whole: InputSplit) -> Iterator[InputSplit]:
    with opened(whole.path) as file, zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        tell_left_out(whole.name, [name for name in names if NAMES.leaves_out(name)])
        members = [
            whole._replace(
                name=f"{whole.name}/{printable(info.filename)}",
                size=info.compress_size,
                kind="zip",
                at=number,
            )
            for number, info in enumerate(archive.infolist())
            if NAMES.takes_member(info.filename)
        ]
    yield from members or [whole._replace(problem=f"an archive without {NAMES.wanted}")]


def _tar_members(whole: InputSplit) -> Iterator[InputSplit]:
    if is_packed_tar(whole.path):
        yield whole._replace(kind="stream")
        return
    left_out: list[str] = []
    with opened(whole.path) as file:
        for member in tar_members(file, whole.path, NAMES, left_out):
            yield whole._replace(
                name=f"{whole.name}/{printable(member.name)}",
                size=member.size,
                kind="tar",
                at=member.start,
                problem=member.problem,
            )
    tell_left_out(whole.name, left_out)


def assign_splits(sizes: Sequence[int]) -> list[int]:
    """For each split the number of the task that reads it, so that tasks are about equal.

    The largest split goes first, each to the task that has least to do by then.

    >>> assign_splits([9_600_000, 3_200_000, 2_400_000, 4_000_000])
    [0, 1, 1, 1]
    """
    costs = [size + OPENING_BYTES for size in sizes]
    loads = [(0, task) for task in range(_tasks(sum(costs), len(costs)))]
    tasks = [0] * len(costs)
    for split in sorted(range(len(costs)), key=lambda split: -costs[split]):
        load, task = loads[0]
        heapq.heapreplace(loads, (load + costs[split], task))
        tasks[split] = task
    return tasks


def _tasks(cost: int, splits: int) -> int:
    tasks = max(min(cost // SMALL_TASK_BYTES, SMALL_TASKS), cost // TASK_BYTES, 1)
    return min(tasks, max(splits, 1))


def partitions(splits: Sequence[InputSplit]) -> list[list[InputSplit]]:
    """The splits of each task, in their order."""
    found: dict[int, list[InputSplit]] = {}
    for split, task in zip(splits, assign_splits([split.size for split in splits]), strict=True):
        found.setdefault(task, []).append(split)
    return [found[task] for task in sorted(found)]


# -- indexes of records ----------------------------------------------------------------------------

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


# -- in the workers --------------------------------------------------------------------------------


class SplitReader:
    """Reads splits, one after the other.

    Args:
        limits: bounds on each document.
        as_streams: documents may be of any size, and each is read before the next is asked for.

    Attributes:
        left_out: messages that members of compressed archives are no documents by their names.
    """

    def __init__(self, limits: Limits, as_streams: bool) -> None:
        self.bytes_max = None if as_streams else limits.document_bytes + 1
        self.left_out: list[str] = []
        self._archive: tuple[str, zipfile.ZipFile] | None = None

    def documents(self, split: InputSplit) -> Iterator[tuple[str, Document | DocumentError]]:
        """The documents of a split, with their names; what cannot be read, as its error."""
        if split.problem is not None:
            yield split.name, UnreadableDocument(split.problem)
        elif split.kind == "stream":
            yield from self._members(split)
        elif split.kind == "file" and split.part is None and "://" not in split.path:
            yield split.name, Path(split.path)
        else:
            try:
                with self._content(split) as content:
                    yield split.name, self._document(content)
            except Exception as error:  # whatever file systems and decompressors raise
                yield split.name, UnreadableDocument(f"cannot read it: {reason(error)}")

    def _document(self, content: IO[bytes]) -> Document:
        """A document, of which there are not many more bytes than the limit."""
        return content if self.bytes_max is None else bytes(content.read(self.bytes_max))

    @contextmanager
    def _content(self, split: InputSplit) -> Iterator[IO[bytes]]:
        if split.kind == "zip":
            archive = self._opened_archive(split.path)
            info = archive.infolist()[split.at]
            if not split.name.endswith(f"/{printable(info.filename)}"):
                raise zipfile.BadZipFile("the archive was changed since it was listed")
            with archive.open(info) as member:
                yield member
            return
        start, size = split.at, split.size if split.kind == "tar" else None
        if split.part is not None:
            start = split.part.start.offset
            size = None if split.part.end is None else split.part.end - start
        with opened(split.path) as file:
            file.seek(start)
            yield file if size is None else io.BufferedReader(_FileRange(file, size))

    def _members(self, split: InputSplit) -> Iterator[tuple[str, Document | DocumentError]]:
        """The documents of a compressed tar, up to where it cannot be read any further."""
        left_out: list[str] = []
        try:
            with opened(split.path) as file:
                for name, member in tar_documents(file, NAMES, left_out):
                    whole = f"{split.name}/{printable(name)}" if name else split.name
                    if isinstance(member, DocumentError):
                        yield whole, member
                    else:
                        yield whole, self._document(member)
        except Exception as error:  # whatever file systems and decompressors raise
            yield split.name, UnreadableDocument(f"cannot read the archive: {reason(error)}")
        if left_out:
            self.left_out.append(NAMES.left_out(split.name, left_out))

    def _opened_archive(self, path: str) -> zipfile.ZipFile:
        if self._archive is None or self._archive[0] != path:
            file = opened(path) if "://" in path else path
            self._archive = path, zipfile.ZipFile(file)
        return self._archive[1]


class _FileRange(io.RawIOBase):
    """Some bytes of a file, from where it is."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)
