"""What tasks read: whole files, members of archives, ranges of records; and how they are dealt out.

The driver finds the pieces, without reading more of the files than the directories of archives (and
all of a large file of records, to find where these begin). Tasks get about equal shares.
"""

from __future__ import annotations

import heapq
import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from tamis.core.errors import DocumentError, UnreadableDocument
from tamis.core.limits import Limits
from tamis.core.threads import usable_cores
from tamis.documents.files import (
    is_packed_tar,
    is_tar,
    is_zip,
    reason,
    tar_documents,
    tar_members,
)
from tamis.documents.records import RecordRange
from tamis.documents.source import Document
from tamis.spark.listing import NAMES, Listed, opened, tell_left_out
from tamis.spark.program import Program
from tamis.spark.record_index import indexed_ranges
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


class Piece(NamedTuple):
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
        """Whether other pieces, or documents, are of the same file."""
        return self.kind != "file" or self.part is not None


# -- in the driver ---------------------------------------------------------------------------------


def pieces_of(
    files: Sequence[Listed], folder: str, record: str | None, program: Program
) -> list[Piece]:
    """What has to be read, each piece by one task.

    Args:
        folder: where relative paths begin.
        record: the tag of the elements that are records, or None.
        program: has the bounds on each document.
    """
    pieces = [
        piece for number, file in enumerate(files) for piece in _members(number, file, folder)
    ]
    if record is None:
        return pieces
    limits = program.shares[0].matcher().limits
    least = max(SHARED_BYTES, sum(piece.size for piece in pieces) // SMALL_TASKS)
    large = [
        number
        for number, piece in enumerate(pieces)
        if piece.kind == "file" and not piece.problem and piece.size > least
    ]
    cores = usable_cores()
    threads = max(1, cores // max(1, len(large)))

    def shared(number: int) -> list[Piece]:
        piece = pieces[number]
        return _ranges(piece, files[piece.file], record, limits, threads)

    with ThreadPoolExecutor(cores) as pool:  # kernels let others run
        parts = dict(zip(large, pool.map(shared, large), strict=True))
    return [part for number, piece in enumerate(pieces) for part in parts.get(number, [piece])]


def _ranges(piece: Piece, file: Listed, record: str, limits: Limits, threads: int) -> list[Piece]:
    """A file in ranges of its records."""
    try:
        ranges = indexed_ranges(piece.path, file, record, RANGE_BYTES, limits, threads)
    except (DocumentError, OSError):  # whoever reads it will say so
        return [piece]
    if len(ranges) == 1:
        return [piece]
    return [
        piece._replace(size=(part.end or piece.size) - part.start.offset, part=part)
        for part in ranges
    ]


def _members(number: int, file: Listed, folder: str) -> Iterator[Piece]:
    """A file, or the documents of an archive."""
    name = file.path
    path = name if "://" in name else os.path.join(folder, name)
    whole = Piece(printable(name), path, file.size, problem=file.problem, file=number)
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


def _zip_members(whole: Piece) -> Iterator[Piece]:
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


def _tar_members(whole: Piece) -> Iterator[Piece]:
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


def deal(sizes: Sequence[int]) -> list[int]:
    """For each piece the number of the task that reads it, so that tasks are about equal.

    The largest piece goes first, each to the task that has least to do by then.

    >>> deal([9_600_000, 3_200_000, 2_400_000, 4_000_000])
    [0, 1, 1, 1]
    """
    costs = [size + OPENING_BYTES for size in sizes]
    loads = [(0, task) for task in range(_tasks(sum(costs), len(costs)))]
    tasks = [0] * len(costs)
    for piece in sorted(range(len(costs)), key=lambda piece: -costs[piece]):
        load, task = loads[0]
        heapq.heapreplace(loads, (load + costs[piece], task))
        tasks[piece] = task
    return tasks


def _tasks(cost: int, pieces: int) -> int:
    tasks = max(min(cost // SMALL_TASK_BYTES, SMALL_TASKS), cost // TASK_BYTES, 1)
    return min(tasks, max(pieces, 1))


def shares(pieces: Sequence[Piece]) -> list[list[Piece]]:
    """The pieces of each task, in their order."""
    found: dict[int, list[Piece]] = {}
    for piece, task in zip(pieces, deal([piece.size for piece in pieces]), strict=True):
        found.setdefault(task, []).append(piece)
    return [found[task] for task in sorted(found)]


# -- in the workers --------------------------------------------------------------------------------


class Reader:
    """Reads pieces, one after the other.

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

    def documents(self, piece: Piece) -> Iterator[tuple[str, Document | DocumentError]]:
        """The documents of a piece, with their names; what cannot be read, as its error."""
        if piece.problem is not None:
            yield piece.name, UnreadableDocument(piece.problem)
        elif piece.kind == "stream":
            yield from self._members(piece)
        elif piece.kind == "file" and piece.part is None and "://" not in piece.path:
            yield piece.name, Path(piece.path)
        else:
            try:
                with self._content(piece) as content:
                    yield piece.name, self._document(content)
            except Exception as error:  # whatever file systems and decompressors raise
                yield piece.name, UnreadableDocument(f"cannot read it: {reason(error)}")

    def _document(self, content: IO[bytes]) -> Document:
        """A document, of which there are not many more bytes than the limit."""
        return content if self.bytes_max is None else bytes(content.read(self.bytes_max))

    @contextmanager
    def _content(self, piece: Piece) -> Iterator[IO[bytes]]:
        if piece.kind == "zip":
            archive = self._opened_archive(piece.path)
            info = archive.infolist()[piece.at]
            if not piece.name.endswith(f"/{printable(info.filename)}"):
                raise zipfile.BadZipFile("the archive was changed since it was listed")
            with archive.open(info) as member:
                yield member
            return
        start, size = piece.at, piece.size if piece.kind == "tar" else None
        if piece.part is not None:
            start = piece.part.start.offset
            size = None if piece.part.end is None else piece.part.end - start
        with opened(piece.path) as file:
            file.seek(start)
            yield file if size is None else io.BufferedReader(_Part(file, size))

    def _members(self, piece: Piece) -> Iterator[tuple[str, Document | DocumentError]]:
        """The documents of a compressed tar, up to where it cannot be read any further."""
        left_out: list[str] = []
        try:
            with opened(piece.path) as file:
                for name, member in tar_documents(file, NAMES, left_out):
                    whole = f"{piece.name}/{printable(name)}" if name else piece.name
                    if isinstance(member, DocumentError):
                        yield whole, member
                    else:
                        yield whole, self._document(member)
        except Exception as error:  # whatever file systems and decompressors raise
            yield piece.name, UnreadableDocument(f"cannot read the archive: {reason(error)}")
        if left_out:
            self.left_out.append(NAMES.left_out(piece.name, left_out))

    def _opened_archive(self, path: str) -> zipfile.ZipFile:
        """An archive, kept open for its next member."""
        if self._archive is None or self._archive[0] != path:
            file = opened(path) if "://" in path else path
            self._archive = path, zipfile.ZipFile(file)
        return self._archive[1]


class _Part(io.RawIOBase):
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
