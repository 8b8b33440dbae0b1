"""Files of named arrays, which are mapped into memory and read where they are.

A file is a header, a table in JSON, and *sections*, each of which begins at a multiple of 64 bytes
and ends with zeros::

    magic, version of the format, checksum of header and table, bytes of the table, of the file
    {"kind", "version", "metadata", "sections": [{"name", "dtype", "shape", "checksum"}, …]}
    the bytes of each array, one after the other

The place of a section follows from the sections before it, so no file can name a place outside of
itself. Checksums cover all bytes (CRC-32: 2 GB/s, and every fault of one byte is found). They find
accidents, not attacks: the reader must still check what the arrays mean.

>>> from tempfile import TemporaryDirectory
>>> with TemporaryDirectory() as folder:
...     path = Path(folder) / "numbers"
...     identity = write_arrays(path, "numbers", 1, {"odd": np.array([1, 3, 5])}, {"by": "hand"})
...     found = open_arrays(path, "numbers", 1)
>>> found.arrays, found.metadata, found.identity == identity
({'odd': array([1, 3, 5])}, {'by': 'hand'}, True)
"""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.errors import DamagedProgram, OtherVersion, UnreadableProgram
from tamis.core.threads import WorkerPool, usable_cores

MAGIC = b"\x89TAMIS\r\n"
"""How files begin: with what copies as text would change, as that of PNG."""
_FORMAT = 1
_HEADER = struct.Struct("<8sIIQQ")
_BLOCK = 64
_LARGE = 1 << 20  # bytes of which the checksums take longer than to start threads
_DTYPES = {dtype: np.dtype(dtype) for dtype in ("|u1", "<i4", "<i8", "<u8", "<f8")}
_DIMENSIONS_MAX = 2

Array = NDArray[Any]


class ArrayFile(NamedTuple):
    """What is in a file.

    Attributes:
        arrays: by name. They are the file's bytes, which stay mapped as long as one of them lives.
        metadata: what JSON can say.
        identity: a hash of the table, which has the checksum of each section.
    """

    arrays: dict[str, Array]
    metadata: dict[str, Any]
    identity: str


class _Section(NamedTuple):
    """An array in a file: ``padded`` bytes from ``start`` on are its own."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    checksum: int
    start: int
    padded: int


# -- writing ---------------------------------------------------------------------------------------


def write_arrays(
    path: Path, kind: str, version: int, arrays: Mapping[str, Array], metadata: Mapping[str, Any]
) -> str:
    """Write a file, whole or not at all, and return its identity.

    It replaces a file that is there; processes that have the old one mapped keep it.

    Args:
        kind, version: of what is in it; ``open_arrays`` has to ask for the same.

    Raises:
        OSError: it cannot be written.
    """
    sections = [
        {
            "name": name,
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "checksum": _checksum([_bytes(array), bytes(-array.nbytes % _BLOCK)]),
        }
        for name, array in arrays.items()
    ]
    described = {"kind": kind, "version": version, "metadata": metadata, "sections": sections}
    table = json.dumps(described, allow_nan=False, separators=(",", ":")).encode()
    table += b" " * (-(len(table) + _HEADER.size) % _BLOCK)
    size = _HEADER.size + len(table) + sum(_padded(array.nbytes) for array in arrays.values())
    checksum = _checksum([_header(0, len(table), size), table])
    with replacing(path) as file:
        file.write(_header(checksum, len(table), size) + table)
        for array in arrays.values():
            file.write(_bytes(array).data)
            file.write(bytes(-array.nbytes % _BLOCK))
    return hashlib.sha256(table).hexdigest()


def _header(checksum: int, table_bytes: int, file_bytes: int) -> bytes:
    return _HEADER.pack(MAGIC, _FORMAT, checksum, table_bytes, file_bytes)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A temporary file that replaces the one at ``path`` at the end, unless an error is raised.

    A symbolic link stays, and its target is replaced. Devices and pipes are refused.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file")
    beside = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_folder(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a crash of the machine."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _bytes(array: Array) -> Array:
    """An array as bytes; of no dtype that a file could not have."""
    assert array.dtype.str in _DTYPES, array.dtype
    assert array.flags.c_contiguous
    assert 1 <= array.ndim <= _DIMENSIONS_MAX
    return array.reshape(-1).view(np.uint8)


def _padded(size: int) -> int:
    return size + -size % _BLOCK


def _checksum(parts: list[Any]) -> int:
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return checksum


# -- reading ---------------------------------------------------------------------------------------


def open_arrays(path: Path, kind: str, version: int | None, is_private: bool = False) -> ArrayFile:
    """Map a file, and check that it is whole.

    Args:
        version: of what is in it; None for any.
        is_private: the arrays can be written to: the pages that are, are copied, and the file stays
            as it is. Otherwise they are read-only, and all processes share them.

    Raises:
        DamagedProgram: it is no such file, or some of it was changed or is missing.
        OtherVersion: what is in it is of another version.
        UnreadableProgram: there is no such file, or it cannot be read.
    """
    mapped = _mapped(path, is_private)
    table = _table(path, mapped)
    described = _described(path, table)
    if described["kind"] != kind:
        raise DamagedProgram(f"it has a {described['kind']} in it, not a {kind}", str(path))
    if version not in (None, described["version"]):
        raise OtherVersion(_other(kind), str(path))
    start = _HEADER.size + len(table)
    sections = list(_sections(path, described["sections"], start, len(mapped)))
    if start + sum(section.padded for section in sections) != len(mapped):
        raise DamagedProgram("there is more behind its end", str(path))
    _check_sections(path, mapped, sections)
    arrays: dict[str, Array] = {}
    for section in sections:
        count = int(np.prod(section.shape, dtype=np.int64))
        flat = np.frombuffer(mapped, section.dtype, count, section.start)
        arrays[section.name] = flat.reshape(section.shape)
    return ArrayFile(arrays, described["metadata"], hashlib.sha256(table).hexdigest())


def file_identity(path: Path) -> str:
    """The identity of a file, of which the table alone is read and checked, not the arrays.

    Raises:
        ProgramError: as for :func:`open_arrays`.
    """
    return hashlib.sha256(_table(path, _mapped(path, False))).hexdigest()


def _check_sections(path: Path, mapped: mmap.mmap, sections: list[_Section]) -> None:
    """Compare all checksums; of a large file by threads, as loading spends most time here."""
    content = memoryview(mapped)

    def checksum(section: _Section) -> int:
        return zlib.crc32(content[section.start : section.start + section.padded])

    pool = WorkerPool(1 if len(mapped) < _LARGE else usable_cores())
    with closing(pool.map_in_order(checksum, sections)) as checksums:
        for section, found in zip(sections, checksums, strict=True):
            if found != section.checksum:
                raise DamagedProgram(f"{section.name} was changed since it was written", str(path))


def _mapped(path: Path, is_private: bool) -> mmap.mmap:
    access = mmap.ACCESS_COPY if is_private else mmap.ACCESS_READ
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UnreadableProgram("it is not a file", str(path))
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < _HEADER.size:
                raise DamagedProgram("it is too short for a file of Tamis's", str(path))
            return mmap.mmap(file.fileno(), 0, access=access)
    except OSError as error:
        raise UnreadableProgram(f"cannot read it: {error.strerror}", str(path)) from None


def _table(path: Path, mapped: mmap.mmap) -> bytes:
    """The bytes of the table, which are as they were written."""
    magic, format, checksum, table_bytes, file_bytes = _HEADER.unpack_from(mapped)
    if magic != MAGIC:
        raise DamagedProgram("it is not a file of Tamis's", str(path))
    if format != _FORMAT:
        raise OtherVersion(_other("file"), str(path))
    if file_bytes != len(mapped):
        missing = f"it has {len(mapped):,} bytes instead of {file_bytes:,}"
        raise DamagedProgram(missing, str(path))
    end = _HEADER.size + table_bytes
    if end > len(mapped) or end % _BLOCK:
        raise DamagedProgram("its table is not inside", str(path))
    table = mapped[_HEADER.size : end]
    if _checksum([_header(0, table_bytes, file_bytes), table]) != checksum:
        raise DamagedProgram("its table was changed since it was written", str(path))
    return table


def _described(path: Path, table: bytes) -> dict[str, Any]:
    try:
        found = json.loads(table, object_pairs_hook=_object, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise DamagedProgram("its table is not JSON", str(path)) from None
    if (
        not isinstance(found, dict)
        or found.keys() != {"kind", "version", "metadata", "sections"}
        or not isinstance(found["kind"], str)
        or not isinstance(found["metadata"], dict)
        or not isinstance(found["sections"], list)
    ):
        raise DamagedProgram("its table is not one of Tamis's", str(path))
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(result := dict(pairs)) != len(pairs):
        raise ValueError("a name comes twice")
    return result


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON's")


def _sections(path: Path, listed: list[Any], start: int, end: int) -> Iterator[_Section]:
    """The sections that are listed, from a place on; none reaches further than the end."""
    names: set[str] = set()
    for row in listed:
        section = _section(row, start)
        if section is None or section.name in names:
            raise DamagedProgram("its table lists what is no array", str(path))
        start += section.padded
        if start > end:
            raise DamagedProgram(f"{section.name} is not inside", str(path))
        names.add(section.name)
        yield section


def _section(row: Any, start: int) -> _Section | None:
    """What a row of the table says, or None where it says nothing that can be."""
    if not isinstance(row, dict) or row.keys() != {"name", "dtype", "shape", "checksum"}:
        return None
    name, dtype, shape, checksum = row["name"], row["dtype"], row["shape"], row["checksum"]
    if not isinstance(name, str) or not isinstance(dtype, str) or dtype not in _DTYPES:
        return None
    if not isinstance(shape, list) or not 1 <= len(shape) <= _DIMENSIONS_MAX:
        return None
    if not all(type(length) is int and 0 <= length < 1 << 31 for length in shape):
        return None
    if type(checksum) is not int:
        return None
    found = _DTYPES[dtype]
    size = found.itemsize
    for length in shape:
        size *= length
    return _Section(name, found, tuple(shape), checksum, start, _padded(size))


def _other(what: str) -> str:
    return f"another version of Tamis made this {what}: make it again with this one"
