"""Which files a job reads, found on the driver."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from glob import glob, has_magic
from typing import IO, Any, NamedTuple

import pyarrow as pa
from pyarrow import fs

from tamis.documents.folder import file_problem, folder_documents, is_document_name


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
    where there is neither, a pattern with ``*``, ``?`` or ``[…]``; or the URI of one of these in
    a file system that pyarrow knows, where a pattern may stand in the last part alone. What leads
    nowhere is listed with its problem, or is found missing by whoever reads it.
    """
    found = (listed for path in paths for listed in _found_from(folder, path))
    return list({listed.path: listed for listed in found}.values())


def _found_from(folder: str, path: str) -> Iterator[Listed]:
    """What a path stands for, called as it was given."""
    if not folder or "://" in path or os.path.isabs(path):
        yield from _expanded(path)
        return
    for listed in _expanded(os.path.join(folder, path)):
        yield listed._replace(path=listed.path[len(folder) :].lstrip("/"))


def _expanded(path: str) -> Iterator[Listed]:
    if "://" in path:
        yield from _expanded_uri(path)
        return
    if not has_magic(path) or os.path.lexists(path):
        yield from _list_path(path)
        return
    names = sorted(glob(path))
    if not names:
        yield Listed(path, problem=_NO_SUCH_NAME)
    for name in names:
        yield from _list_path(name)


_NO_SUCH_NAME = "no file has a name like this"


def _list_path(path: str) -> Iterator[Listed]:
    if not os.path.isdir(path):
        yield _listed(path, file_problem(path))
        return
    for name, problem in folder_documents(path):
        yield _listed(name, problem)


def _listed(path: str, problem: str | None) -> Listed:
    try:
        found = os.stat(path) if problem is None else None
    except (OSError, ValueError):  # the task that reads it will say what is the matter
        found = None
    if found is None:
        return Listed(path, problem=problem)
    return Listed(path, found.st_size, found.st_mtime_ns)


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
    folder, _, pattern = uri.rstrip("/").rpartition("/")
    try:
        if has_magic(pattern):
            found = [info for info in _children(folder) if fnmatchcase(info.base_name, pattern)]
            problem = _NO_SUCH_NAME
        else:
            system, path = file_system(uri)
            info = system.get_file_info(path)
            if info.type != fs.FileType.Directory:
                yield _of_info(uri, info)
                return
            folder = uri.rstrip("/")
            found = [info for info in _children(folder) if is_document_name(info.base_name)]
            problem = "a folder without *.xml or *.xml.gz"
    except OSError as error:
        yield Listed(uri, problem=f"cannot list it: {error}")
        return
    if not found:
        yield Listed(uri, problem=problem)
    for info in found:
        yield _of_info(f"{folder}/{info.base_name}", info)


def _children(uri: str) -> list[fs.FileInfo]:
    system, path = file_system(uri)
    found = system.get_file_info(fs.FileSelector(path))
    return sorted(found, key=lambda info: str(info.path))


def _of_info(uri: str, info: fs.FileInfo) -> Listed:
    if info.type == fs.FileType.File:
        return Listed(uri, info.size or 0, info.mtime_ns or 0)
    missing = info.type == fs.FileType.NotFound
    return Listed(uri, problem="there is no such file" if missing else "not a regular file")
