"""What the tasks of a job read: paths → files → input splits → tasks.

The driver finds the files, divides them into splits and assigns these to tasks, about equal in
bytes. It reads no more than the directories of archives, and all of a large file of records to find
where records begin. An index of these is kept for the next job.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from itertools import chain, starmap
from typing import Literal, NamedTuple
from uuid import uuid4

from pyarrow import fs

import tamis
from tamis.core.errors import DocumentError, UnreadableDocument, UsageError
from tamis.core.limits import Limits
from tamis.core.threads import usable_cores
from tamis.documents.files import (
    NO_DOCUMENTS,
    NO_SUCH_NAME,
    FileStatus,
    NameFilter,
    ZipMember,
    archive_members,
    expanded,
    is_packed_tar,
    is_tar,
    is_zip,
    list_folder,
    reason,
    status_of,
)
from tamis.documents.record_batch import RecordRange, StreamPosition
from tamis.documents.record_reader import record_ranges
from tamis.spark.filesystems import (
    at_once,
    children,
    info_of,
    is_pattern,
    is_remote,
    local_path,
    matching,
    named_as,
    opened,
)
from tamis.spark.program import cache_folder, keep_newest
from tamis.spark.rows import printable

log = logging.getLogger("tamis.spark")

NAMES = NameFilter()
"""Which files of folders, and members of archives, are documents."""

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


def list_files(paths: Sequence[str], folder: str = "") -> list[FileStatus]:
    """The files that paths stand for, each once; called as they were given.

    A path is a file, a folder (its ``*.xml`` and ``*.xml.gz``, not those in folders below) or,
    where there is neither, a pattern with ``*``, ``?``, ``[…]`` or ``**``. It may be a URI as Spark
    writes it, see ``filesystems.py``. Relative paths begin in ``folder``, by default the current
    one. A file of a folder that cannot be tried is listed with its problem. A warning says which
    files are no documents by their names.
    """
    remote = dict.fromkeys(filter(is_remote, paths))
    of_stores = dict(zip(remote, at_once(_expanded_uri, [*remote]), strict=True))
    found = chain.from_iterable(
        of_stores[path] if path in of_stores else _expanded(folder, path) for path in paths
    )
    files = list(found)
    named: dict[str, FileStatus] = {}
    for whole, file in zip(whole_paths(files, folder), files, strict=True):
        named.setdefault(whole, file)
    return list(named.values())


def whole_paths(files: Iterable[FileStatus], folder: str = "") -> Iterator[str]:
    """What names each file alone: its URI, or its path from the root."""
    whole = cache(os.path.abspath)  # of folders, which many files share
    for file in files:
        path = file.path
        if not is_remote(path):
            path = local_path(path, folder)
            place, slash, name = path.rpartition("/")
            is_folder = name in ("", ".", "..")
            path = whole(path) if is_folder else os.path.join(whole(place + slash), name)
        yield path


def check_paths(paths: Sequence[str], folder: str = "") -> None:
    """See that paths lead somewhere; nothing is listed. For the arguments see ``list_files``."""
    remote = set(filter(is_remote, paths))
    for path in paths:
        if path not in remote:
            _named(folder, path)
    at_once(info_of, [path for path in remote if not is_pattern(path)])


def _expanded(folder: str, path: str) -> list[FileStatus]:
    """What a path of this machine stands for, called as it was given."""
    found = [file for name in _named(folder, path) for file in list_path(name)]
    if folder and not os.path.isabs(local_path(path)):
        found = [file._replace(path=file.path[len(folder) :].lstrip("/")) for file in found]
    if named_as(path, "/") != "/":
        found = [file._replace(path=named_as(path, file.path)) for file in found]
    return found


def _named(folder: str, path: str) -> list[str]:
    """The files and folders that a path names, which is itself or a pattern."""
    place = local_path(path)
    names = expanded(place, folder)
    if not names:
        raise UsageError(f"{path}: {NO_SUCH_NAME}")
    found = [os.path.join(folder, name) for name in names]
    if names == [place] and not os.path.lexists(found[0]):
        raise UsageError(f"{path}: there is no such file or folder")
    return found


def list_path(path: str, warns: bool = True) -> list[FileStatus]:
    """A file, or the documents of a folder; with ``warns``, it logs which others it leaves out."""
    if not os.path.isdir(path):
        return [status_of(path)]
    found = list_folder(path)
    if warns:
        warn_of_left_out(path, found.left_out)
    return found.files


def warn_of_left_out(place: str, names: Sequence[str]) -> None:
    """Warn of files, or members of an archive, that are no documents by their names."""
    if names:
        log.warning("%s", NAMES.left_out(place, names))


def _expanded_uri(uri: str) -> list[FileStatus]:
    """What a URI of pyarrow's stands for."""
    found = matching(uri) if is_pattern(uri) else [(uri, info_of(uri))]
    if not found:
        raise UsageError(f"{uri}: {NO_SUCH_NAME}")
    listed = at_once(lambda each: list(_of_info(*each)), found)
    return list(chain.from_iterable(listed))


def _of_info(uri: str, info: fs.FileInfo) -> Iterator[FileStatus]:
    """A file, or the documents of a folder."""
    if info.type == fs.FileType.File:
        yield _status_of_info(uri, info)
        return
    within = children(uri)
    files = [found.base_name for _, found in within if found.type == fs.FileType.File]
    warn_of_left_out(uri, [name for name in files if NAMES.leaves_out(name)])
    taken = [(name, found) for name, found in within if NAMES.takes(found.base_name)]
    if not taken:
        yield FileStatus(uri, problem=f"{NO_DOCUMENTS} {NAMES.wanted}")
    yield from starmap(_status_of_info, taken)


def _status_of_info(uri: str, info: fs.FileInfo) -> FileStatus:
    if info.type == fs.FileType.File:
        return FileStatus(uri, info.size or 0, info.mtime_ns or 0)
    return FileStatus(uri, problem="not a regular file")


# -- splits ----------------------------------------------------------------------------------------


class InputSplit(NamedTuple):
    """Something that one task reads.

    Attributes:
        name: what the document is called.
        size: in bytes, about.
        kind: a "file" is a document; so is a "zip" member, whose number is ``at``, and the part of
            a "tar" from ``at`` on, of ``size`` bytes; a "stream" is a compressed tar, with many.
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


def splits_of(
    files: Sequence[FileStatus], folder: str, record: str | None, limits: Limits
) -> list[InputSplit]:
    """What has to be read, each split by one task; relative paths begin in ``folder``."""
    wholes = [_whole(number, file, folder) for number, file in enumerate(files)]
    archives = [whole for whole in wholes if whole.problem is None and _is_archive(whole)]
    members = dict(
        zip((whole.file for whole in archives), at_once(_members, archives), strict=True)
    )
    splits = [split for whole in wholes for split in members.get(whole.file, [whole])]
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
        path, file = split.path, files[split.file]
        try:
            ranges = indexed_ranges(path, file, record, RANGE_BYTES, limits, threads)
        except (DocumentError, OSError):  # whoever reads it will say so
            return [split]
        if len(ranges) == 1:
            return [split]
        return [split._replace(size=(r.end or split.size) - r.start.offset, part=r) for r in ranges]

    with ThreadPoolExecutor(cores) as pool:  # kernels let others run
        parts = dict(zip(large, pool.map(shared, large), strict=True))
    return [part for number, split in enumerate(splits) for part in parts.get(number, [split])]


def _whole(number: int, file: FileStatus, folder: str) -> InputSplit:
    path = file.path if is_remote(file.path) else local_path(file.path, folder)
    return InputSplit(printable(file.path), path, file.size, problem=file.problem, file=number)


def _is_archive(whole: InputSplit) -> bool:
    if NAMES.takes_member(whole.path):
        return False
    is_uri = is_remote(whole.path)
    return is_tar(whole.path) or (whole.path.endswith(".zip") if is_uri else is_zip(whole.path))


def _members(whole: InputSplit) -> list[InputSplit]:
    """The documents of an archive; of a damaged one those that come before the fault."""
    if is_tar(whole.path) and is_packed_tar(whole.path):  # which is read from its beginning
        return [whole._replace(kind="stream")]
    found = []
    try:
        for split in _archived(whole):
            found.append(split)
    except UnreadableDocument as error:
        found.append(whole._replace(problem=error.message))
    except Exception as error:  # whatever damaged archives make their readers raise
        found.append(whole._replace(problem=f"cannot read the archive: {reason(error)}"))
    return found


def _archived(whole: InputSplit) -> Iterator[InputSplit]:
    left_out: list[str] = []
    split = None
    with opened(whole.path) as file:
        for member in archive_members(file, whole.path, NAMES, left_out):
            split = whole._replace(name=f"{whole.name}/{printable(member.name)}", size=member.size)
            if isinstance(member, ZipMember):
                yield split._replace(kind="zip", at=member.number)
            else:
                yield split._replace(kind="tar", at=member.start, problem=member.problem)
    warn_of_left_out(whole.name, left_out)
    if split is None:
        raise UnreadableDocument(f"an archive without {NAMES.wanted}")


def assign_splits(sizes: Sequence[int]) -> list[int]:
    """For each split the number of the task that reads it, so that tasks are about equal.

    The largest split goes first, each to the task that has least to do by then.

    >>> assign_splits([9_600_000, 3_200_000, 2_400_000, 4_000_000])
    [0, 1, 1, 1]
    """
    costs = [size + OPENING_BYTES for size in sizes]
    cost = sum(costs)
    count = max(min(cost // SMALL_TASK_BYTES, SMALL_TASKS), cost // TASK_BYTES, 1)
    loads = [(0, task) for task in range(min(count, max(1, len(costs))))]
    tasks = [0] * len(costs)
    for split in sorted(range(len(costs)), key=lambda split: -costs[split]):
        load, task = loads[0]
        heapq.heapreplace(loads, (load + costs[split], task))
        tasks[split] = task
    return tasks


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
    path: str, file: FileStatus, tag: str, size: int, limits: Limits, threads: int
) -> list[RecordRange]:
    """The ranges of a file's records: from its index, or by reading all of it, once.

    An index is that of a file by its path, from the root or a URI, size and time. For the other
    arguments, and the errors, see :func:`record_ranges`.
    """
    said = [path, file.size, file.modified, tag, size, asdict(limits), tamis.__version__]
    key = _digest(json.dumps(said))
    folder = cache_folder("records")
    kept = folder / f"{key}.json"
    with suppress(OSError, ValueError):
        digest, text = kept.read_text().split("\n")
        if digest == _digest(text):
            rows = json.loads(text)
            return [RecordRange(StreamPosition(*r[:4]), r[4], r[5].encode()) for r in rows]
    found = record_ranges(lambda: opened(path), tag, size, limits, threads)
    if file.modified:  # else nobody can tell that it has changed
        with suppress(OSError):
            beside = folder / f".{uuid4().hex}"
            text = json.dumps([[*part.start, part.end, part.context.decode()] for part in found])
            beside.write_text(f"{_digest(text)}\n{text}")
            beside.rename(kept)
            keep_newest(folder, "*.json", INDEXES_MAX)
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
