"""Zip archives: their members are documents."""

from __future__ import annotations

import os
import threading
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from tamis.documents.folder import is_document_name
from tamis.errors import UnreadableDocument

# The first bytes of an archive with members, and of one without.
_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")
_ENCRYPTED = 1  # a flag of the format's

# Members may be read by several threads, but zipfile counts the open ones without a lock.
_opening = threading.Lock()


class ZipMember(NamedTuple):
    """A document inside a zip archive; it is read where it is matched.

    Attributes:
        archive: the path of the archive.
        number: the member's place in the archive, from 0, since names need not be unique.
        name: the member's name.
    """

    archive: Path
    number: int
    name: str

    def __str__(self) -> str:
        return f"{self.archive}/{self.name}"

    def chunks(self, size: int) -> Iterator[bytes]:
        """The bytes, in chunks of at most ``size``.

        Raises:
            UnreadableDocument: it is encrypted or damaged, or the archive cannot be read.
        """
        try:
            yield from self._chunks(size)
        except Exception as error:  # whatever zipfile and its decompressors raise
            raise UnreadableDocument(f"cannot read it from the archive: {_reason(error)}") from None

    def _chunks(self, size: int) -> Iterator[bytes]:
        with _opening:
            archive = _opened(self.archive, os.stat(self.archive).st_mtime_ns)
            info = archive.infolist()[self.number]
            if info.flag_bits & _ENCRYPTED:
                raise zipfile.BadZipFile("it is encrypted")
            file = archive.open(info)
        try:
            while chunk := file.read(size):
                yield chunk
        finally:
            with _opening:
                file.close()


def is_zip(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to a file that begins as zip archives do."""
    try:
        if not os.path.isfile(path):  # a pipe must not be opened: its content would be lost
            return False
        with open(path, "rb") as file:
            return file.read(4) in _MAGIC
    except (OSError, ValueError):
        return False


def zip_members(path: str | os.PathLike[str]) -> list[ZipMember]:
    """The ``*.xml`` and ``*.xml.gz`` in a zip archive, in its order; none of them is read.

    Raises:
        UnreadableDocument: the archive cannot be read, or there are none.
    """
    archive = Path(path)
    try:
        with zipfile.ZipFile(archive) as opened:
            names = [info.filename for info in opened.infolist()]
    except Exception as error:  # whatever a damaged directory makes zipfile raise
        raise UnreadableDocument(f"cannot read the zip archive: {_reason(error)}") from None
    members = [
        ZipMember(archive, number, name)
        for number, name in enumerate(names)
        if is_document_name(name.rpartition("/")[2])
    ]
    if not members:
        raise UnreadableDocument("a zip archive without *.xml or *.xml.gz")
    return members


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


@lru_cache(maxsize=4)
def _opened(path: Path, _changed_ns: int) -> zipfile.ZipFile:
    """An archive, kept open for its next member; several threads may read it at once."""
    return zipfile.ZipFile(path)
