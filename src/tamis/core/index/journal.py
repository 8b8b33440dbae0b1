"""``Journal``: changes in a file, one record each, made durable by groups.

A record is its magic bytes, a checksum of the rest, the length of its payload, and how many bytes
of the file were known to be durable when it was written. The payload is JSON::

    {"put": [[id, expression], …], "gone": [id, …]}

First the subscriptions that are ``gone`` leave the set, then those of ``put`` enter it.
"""

from __future__ import annotations

import json
import logging
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from tamis.core.errors import StoreError

log = logging.getLogger("tamis")

MAGIC = b"\x89tj\n"
"""How records begin: with a byte that payloads do not have, and without zeros."""
_HEADER = struct.Struct("<4sI")
_REST = struct.Struct("<QQ")  # bytes of the payload, durable bytes of the file
_START = _HEADER.size + _REST.size
_SECTOR = 512


class Records(NamedTuple):
    """What is in a journal.

    Attributes:
        changes: the good records, as they were written.
        end: where they end.
        size: the bytes of the file; what is behind ``end`` is a torn tail.
    """

    changes: list[dict[str, Any]]
    end: int
    size: int


class Journal:
    """The end of a journal, which records are appended to.

    ``append`` is called by one thread at a time, ``sync`` by any. After a fault that may have left
    the file in any state, both raise errors.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=0)
        self.size = self._file.tell()
        self._synced = 0  # bytes known to be durable
        self._syncing = threading.Lock()
        self._fault = ""

    def append(self, payload: bytes) -> None:
        """Write a record, whole or not at all.

        Raises:
            StoreError: it cannot be written.
        """
        self.check()
        rest = _REST.pack(len(payload), self._synced)
        header = _HEADER.pack(MAGIC, crc32(payload, crc32(rest)))
        left = memoryview(header + rest + payload)
        size = self.size + len(left)
        try:
            while left:
                left = left[os.write(self._file.fileno(), left) :]
        except BaseException as error:
            self._cut_back()
            if isinstance(error, OSError):
                raise self._error(f"cannot write: {error.strerror}; nothing was changed") from None
            raise
        self.size = size

    def _cut_back(self) -> None:
        try:
            os.ftruncate(self._file.fileno(), self.size)
        except OSError as error:
            self._fault = f"a part of a record cannot be taken back: {error.strerror}"

    def sync(self) -> None:
        """Wait until all records so far are durable; threads that wait share one fsync.

        Raises:
            StoreError: the system cannot say that they are.
        """
        wanted = self.size
        with self._syncing:
            if self._synced >= wanted:
                return
            self.check()
            size = self.size
            try:
                os.fsync(self._file.fileno())
            except OSError as error:  # what the system still has of the records is not known
                self._fault = f"the last changes may be lost: {error.strerror}"
                self.check()
            self._synced = size

    def close(self) -> None:
        """Refuse more records."""
        self._fault = self._fault or "it was closed"
        self._file.close()

    def check(self) -> None:
        """Raise an error after a fault."""
        if self._fault:
            raise self._error(f"{self._fault}; open the folder again")

    def _error(self, message: str) -> StoreError:
        return StoreError(message, str(self.path))


# -- reading ---------------------------------------------------------------------------------------


def read_journal(path: Path) -> Records:
    """Read a journal.

    A process or a machine that stopped may leave a torn tail: records that are not whole, none of
    which was durable. The last ones may be there only in part: or in any order, with sectors of
    zeros between.

    Raises:
        StoreError: records are damaged that are no torn tail.
        OSError: the file cannot be read.
    """
    data = path.read_bytes()
    changes: list[dict[str, Any]] = []
    place = 0
    while (found := _record(data, place)) is not None:
        changes.append(json.loads(data[place + _START : found.end]))
        place = found.end
    if place < len(data) and _is_damage(data, place):
        raise StoreError("a record was changed since it was written", str(path), place)
    return Records(changes, place, len(data))


def make_whole(path: Path, records: Records) -> None:
    """Cut the torn tail of a journal, and tell; make the rest durable, before more is written."""
    if records.end < records.size:
        log.warning(
            "%s: the last %d bytes, from offset %d, are no whole record and are cut: a change was "
            "under way when a process or the machine stopped",
            path,
            records.size - records.end,
            records.end,
        )
    with path.open("r+b", buffering=0) as file:
        file.truncate(records.end)
        os.fsync(file.fileno())


class _Record(NamedTuple):
    end: int
    synced: int


def _record(data: bytes, place: int) -> _Record | None:
    """The good record at a place, if there is one."""
    if place + _START > len(data) or not data.startswith(MAGIC, place):
        return None
    _, checksum = _HEADER.unpack_from(data, place)
    length, synced = _REST.unpack_from(data, place + _HEADER.size)
    end = place + _START + length
    if end > len(data) or crc32(memoryview(data)[place + _HEADER.size : end]) != checksum:
        return None
    return _Record(end, synced)


def _good_ones(data: bytes, place: int) -> Iterator[tuple[int, _Record]]:
    """The good records behind a place."""
    while (place := data.find(MAGIC, place + 1)) >= 0:
        if (found := _record(data, place)) is not None:
            yield place, found
            place = found.end - 1


def _is_damage(data: bytes, place: int) -> bool:
    """Whether a bad record is no torn tail.

    It is none where a good record behind it says that it was durable, or where it has been written:
    what was not has sectors of zeros.
    """
    behind = list(_good_ones(data, place))
    if any(found.synced > place for _, found in behind):
        return True
    return bool(behind) and not _has_hole(data, place, behind[0][0])


def _has_hole(data: bytes, start: int, end: int) -> bool:
    """Whether some sector, as far as it lies between two places, has zeros alone."""
    firsts = range(start - start % _SECTOR, end, _SECTOR)
    return any(not data[max(f, start) : min(f + _SECTOR, end)].strip(b"\0") for f in firsts)
