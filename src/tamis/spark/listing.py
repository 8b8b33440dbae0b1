"""Which files a job reads, found on the driver."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from glob import has_magic
from typing import IO, Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from tamis.core.errors import UsageError
from tamis.documents.files import (
    NO_DOCUMENTS,
    NO_SUCH_NAME,
    NameFilter,
    expanded,
    file_problem,
    list_folder,
)

log = logging.getLogger("tamis.spark")

NAMES = NameFilter()
"""Which files of folders, and members of archives, are documents."""


class Listed(NamedTuple):
    """A file to read.

    Attributes:
        path: as it was given, or the folder that was given and the name in it; perhaps a URI.
        size: in bytes.
        modified: when it was last changed, in ns; what it was then is known by path, size and this.
        problem: why it cannot even be tried, or None.
    """

    path: str
    size: int = 0
    modified: int = 0
    problem: str | None = None


def list_files(paths: Iterable[str], folder: str = "") -> list[Listed]:
    """The files that paths stand for, each once.

    Args:
        folder: where relative paths begin; by default in the current folder.

    A path is a file, a folder (its ``*.xml`` and ``*.xml.gz``, not those in folders below) or,
    where there is neither, a pattern with ``*``, ``?``, ``[…]`` or ``**``; or the URI of one of
    these in a file system that pyarrow knows, where a pattern may stand in the last part alone.
    A file of a folder that cannot be tried is listed with its problem. A warning says which files
    of a folder are no documents by their names.
    """
    found = (file for path in paths for file in _found_from(folder, path))
    files: dict[str, Listed] = {}
    for file in found:
        files.setdefault(_key(folder, file.path), file)
    return list(files.values())


def _key(folder: str, path: str) -> str:
    return path if "://" in path else os.path.abspath(os.path.join(folder, path))


def _found_from(folder: str, path: str) -> Iterator[Listed]:
    """What a path stands for, called as it was given."""
    if "://" in path:
        yield from _expanded_uri(path)
        return
    is_relative = folder and not os.path.isabs(path)
    for file in _expanded(folder, path):
        yield file._replace(path=file.path[len(folder) :].lstrip("/")) if is_relative else file


def check_paths(paths: Iterable[str], folder: str = "") -> None:
    """See that paths lead somewhere; nothing is listed. For the arguments see ``list_files``."""
    for path in paths:
        if "://" not in path:
            _named(folder, path)
        elif not has_magic(path.rpartition("/")[2]):
            _info_of(path)


def _expanded(folder: str, path: str) -> Iterator[Listed]:
    for name in _named(folder, path):
        yield from list_path(name)


def _named(folder: str, path: str) -> list[str]:
    """The files and folders that a path names, which is itself or a pattern."""
    names = expanded(path, folder)
    if not names:
        raise UsageError(f"{path}: {NO_SUCH_NAME}")
    found = [os.path.join(folder, name) for name in names]
    if names == [path] and not os.path.lexists(found[0]):
        raise UsageError(f"{path}: there is no such file or folder")
    return found


def list_path(path: str, tells: bool = True) -> Iterator[Listed]:
    """A file, or the documents of a folder.

    Args:
        tells: whether a warning says what was left out.
    """
    if not os.path.isdir(path):
        yield listed(path, file_problem(path))
        return
    found = list_folder(path)
    if tells:
        tell_left_out(path, found.left_out)
    for name, problem in found.files:
        yield listed(name, problem)


def tell_left_out(place: str, names: Sequence[str]) -> None:
    """Warn of files, or members of an archive, that are no documents by their names."""
    if names:
        log.warning("%s", NAMES.left_out(place, names))


def listed(path: str, problem: str | None = None) -> Listed:
    """A file of this machine, as it is now."""
    try:
        found = os.stat(path) if problem is None else None
    except (OSError, ValueError):  # the task that reads it will say what is the matter
        found = None
    if found is None:
        return Listed(path, problem=problem)
    return Listed(path, found.st_size, min(found.st_mtime_ns, 2**63 - 1))


# -- file systems of pyarrow -----------------------------------------------------------------------


def file_system(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system of a URI, and the path in it.

    Raises:
        OSError: there is none.
    """
    try:
        system, path = fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, ValueError) as error:
        raise OSError(str(error)) from None
    return system, path


def opened(path: str) -> IO[bytes]:
    """A file to be read from any place.

    Raises:
        OSError: it cannot be opened, or it is none.
    """
    if "://" in path:
        system, inside = file_system(path)
        found: Any = system.open_input_file(inside)
        return io.BufferedReader(found)
    return open(path, "rb")


def _expanded_uri(uri: str) -> Iterator[Listed]:
    uri, options = _without_options(uri)
    folder, _, pattern = uri.rstrip("/").rpartition("/")
    if has_magic(pattern):
        found = [i for i in _children(folder + options) if fnmatchcase(i.base_name, pattern)]
        if not found:
            raise UsageError(f"{uri}: {NO_SUCH_NAME}")
    else:
        info = _info_of(uri + options)
        if info.type != fs.FileType.Directory:
            yield _of_info(uri + options, info)
            return
        folder = uri.rstrip("/")
        children = _children(folder + options)
        found = [info for info in children if NAMES.takes(info.base_name)]
        files = [info.base_name for info in children if info.type == fs.FileType.File]
        tell_left_out(folder, [name for name in files if NAMES.leaves_out(name)])
        if not found:
            yield Listed(uri + options, problem=f"{NO_DOCUMENTS} {NAMES.wanted}")
    for info in found:
        yield _of_info(f"{folder}/{quote(info.base_name)}{options}", info)


def _info_of(uri: str) -> fs.FileInfo:
    with _listing_of(uri):
        system, path = file_system(uri)
        info = system.get_file_info(path)
    if info.type == fs.FileType.NotFound:
        raise UsageError(f"{uri}: there is no such file or folder")
    return info


@contextmanager
def _listing_of(uri: str) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError) as error:  # the latter of names that are not UTF-8
        raise UsageError(f"{uri}: cannot list it: {error}") from None


def _without_options(uri: str) -> tuple[str, str]:
    """A URI, and the options of its file system: what follows a ``?`` that is no pattern.

    >>> _without_options("s3://b/?.xml?region=eu"), _without_options("s3://b/1?.xml")
    (('s3://b/?.xml', '?region=eu'), ('s3://b/1?.xml', ''))
    """
    place, mark, options = uri.rpartition("?")
    return (place, mark + options) if "=" in options and "/" not in options else (uri, "")


def _children(uri: str) -> list[fs.FileInfo]:
    with _listing_of(uri):
        system, path = file_system(uri)
        found = system.get_file_info(fs.FileSelector(path))
    return sorted(found, key=lambda info: str(info.path))


def _of_info(uri: str, info: fs.FileInfo) -> Listed:
    if info.type == fs.FileType.File:
        return Listed(uri, info.size or 0, info.mtime_ns or 0)
    return Listed(uri, problem="not a regular file")
