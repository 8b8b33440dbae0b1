"""``Store``: the folder that a live set is kept in.

``tamis.store`` is the manifest: what kind of set it is, its settings, and which files hold it.
Segments hold subscriptions, compiled or as texts; journals hold the changes behind them. Files that
the manifest does not name are of no use. ``lock`` is held by the one process that may write.

A checkpoint begins a new journal, which the manifest names before a record is in it. Then it writes
the segments that have no file yet, and a manifest that names them and the new journal alone. So
wherever it stops, the manifest names files that together hold all changes, each of them once.

When a folder is closed, its manifest records the sizes of its journals, which are whole and durable
then. A torn tail can only lie behind these bytes, where a later process appended and was stopped.
"""

from __future__ import annotations

import base64
import fcntl
import json
import logging
import os
import re
import threading
import weakref
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arguments import MANIFEST
from tamis.core.array_file import open_arrays, replacing, sync_folder, write_arrays
from tamis.core.errors import DamagedProgram, ProgramError, StoreError, UnwritableOutput
from tamis.core.index.columns import Ids, Texts, packed_texts, unpacked_texts
from tamis.core.index.journal import Journal, Records, make_whole, read_journal
from tamis.core.index.segments import Segment

log = logging.getLogger("tamis")

_LOCK = "lock"
_VERSION = 1
_JOURNAL_MAX = 4 << 20
"""A checkpoint is due when the journal has more bytes: they are read in 0.3 s."""
_NUMBERED = re.compile(r"\d{6,}\.(segment|journal)")
_TEMPORARY = re.compile(r"\.(tamis\.store|\d{6,}\.segment)\.[0-9a-f]{8}\.tmp")


class Manifest(NamedTuple):
    """What a folder holds.

    Attributes:
        segments: of each its "file", and which of its subscriptions were "removed": packed bits.
        journals: the names of journals, the oldest first.
        next: the number of the next file.
        sizes: the bytes of each journal, by its name, when the folder was last closed.
    """

    kind: str
    settings: Mapping[str, Any]
    segments: list[dict[str, str]]
    journals: list[str]
    next: int
    sizes: Mapping[str, int] = {}


class Contents(NamedTuple):
    """The subscriptions of a store: segments, and the changes behind them."""

    segments: list[Segment[Any]]
    changes: list[dict[str, Any]]


class Store:
    """The folder of one live set, opened.

    Args:
        kind: what the set holds.
        settings: called for the settings of a store that is made, which is so where the folder is
            absent or empty.
        read_only: nothing is written, and another process may write meanwhile.

    Raises:
        StoreError: it is no store of this kind, it is damaged, or another process writes to it.
    """

    def __init__(
        self, folder: Path, kind: str, settings: Callable[[], Mapping[str, Any]], read_only: bool
    ) -> None:
        self.folder = folder
        self.read_only = read_only
        self.checkpointing = threading.RLock()  # one checkpoint at a time; none when it is closed
        self.is_closed = False
        self._process = os.getpid()
        self._journal: Journal | None = None
        self._files: list[tuple[weakref.ref[Any], str]] = []  # the segments that were written
        self._due = _JOURNAL_MAX
        with self._errors():
            is_new = not (folder / MANIFEST).exists()
            if is_new:
                self._check_empty()
            made = settings() if is_new else {}  # an error leaves no folder
            self._lock = None if read_only else _locked(folder)
            try:
                if is_new:
                    self._next = 1
                    self._write(Manifest(kind, made, [], [], 1))
                self.manifest = read_manifest(folder, kind)
                self._next = self.manifest.next
            except BaseException:
                self.close()
                raise

    @contextmanager
    def _errors(self) -> Any:
        """Faults of the file system as errors of the store."""
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"{error.strerror or error}", str(error.filename or self.folder)
            ) from None
        except UnwritableOutput as error:
            raise StoreError(str(error), str(self.folder)) from None

    def _check_empty(self) -> None:
        names = {path.name for path in self.folder.iterdir()} if self.folder.exists() else set()
        if self.read_only or not all(n == _LOCK or _TEMPORARY.fullmatch(n) for n in names):
            raise StoreError(f"it holds no {MANIFEST}, so it is no store", str(self.folder))

    # -- reading -----------------------------------------------------------------------------------

    def read(self, read_segment: Callable[[Path], Any]) -> Contents:
        """What is in the store; then changes can be written."""
        while True:
            with self._errors():
                try:
                    return self._read(read_segment)
                except (ProgramError, OSError, StoreError) as error:
                    read = self.manifest
                    self.manifest = read_manifest(self.folder, read.kind)
                    if read == self.manifest:  # else a checkpoint of another process was between
                        if isinstance(error, ProgramError):
                            raise StoreError(error.message, error.file) from None
                        raise

    def _read(self, read_segment: Callable[[Path], Any]) -> Contents:
        segments = []
        self._files = []
        for described in self.manifest.segments:
            compiled = read_segment(self.folder / described["file"])
            is_removed = _unpacked(described["removed"], len(compiled.ids))
            segments.append(Segment(compiled, is_removed))
            self._files.append((weakref.ref(compiled), described["file"]))
        paths = [self.folder / name for name in self.manifest.journals]
        journals = [read_journal(path) for path in reversed(paths)][::-1]  # see _check_whole
        _check_whole(paths, journals, self.manifest.sizes)
        if not self.read_only:
            for path, records in zip(paths, journals, strict=True):
                make_whole(path, records)
            self._journal = Journal(paths[-1]) if paths else self._new_journal()
            self._clean()
        return Contents(segments, [change for records in journals for change in records.changes])

    # -- changes -----------------------------------------------------------------------------------

    @property
    def journal(self) -> Journal:
        """What changes are written to.

        Raises:
            StoreError: it was closed, or opened to be read only, or by a parent of this process.
        """
        if self._journal is None or self.is_closed:
            message = "it was closed" if self.is_closed else "it was opened to be read only"
        elif self._process != os.getpid():
            message = "a fork of the process that opened it has it"
        else:
            return self._journal
        raise StoreError(f"{message}: nothing can be changed", str(self.folder))

    def sync(self) -> None:
        """Wait until all changes so far are durable."""
        if self._journal is not None:
            self._check_ours()
            self._journal.sync()

    def _check_ours(self) -> None:
        """See that the folder is still the one that was opened."""
        assert self._lock is not None
        if not self.is_closed:
            with self._errors():
                ours, there = os.fstat(self._lock.fileno()), (self.folder / _LOCK).stat()
            if (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino):
                raise StoreError("the folder was replaced since it was opened", str(self.folder))

    @property
    def is_due(self) -> bool:
        """Whether the journal is so long that there should be a checkpoint."""
        return self._journal is not None and self._journal.size >= self._due

    def close(self) -> None:
        """Make all changes durable, and let others write."""
        is_ours = self._process == os.getpid()  # a fork has files, and no part in the set
        with self.checkpointing:
            try:
                if self._journal is not None and not self.is_closed and is_ours:
                    self._journal.sync()
                    self._write_sizes(self._journal)
            finally:
                self.is_closed = True
                if self._journal is not None:
                    self._journal.close()
                if self._lock is not None and not self._lock.closed:
                    if is_ours:
                        fcntl.flock(self._lock, fcntl.LOCK_UN)  # forks have it open too
                    self._lock.close()

    def _write_sizes(self, journal: Journal) -> None:
        """Record the sizes of the journals, which are durable, in the manifest."""
        with suppress(StoreError), self._errors():  # without it, the folder is as after a crash
            self._check_ours()
            names = self.manifest.journals
            sizes = {name: (self.folder / name).stat().st_size for name in names}
            sizes[journal.path.name] = journal.size  # behind it may be a part of a record
            if sizes != self.manifest.sizes:
                self._write(self.manifest._replace(sizes=sizes))

    # -- checkpoints, with ``checkpointing`` held --------------------------------------------------

    def new_journal(self) -> Journal:
        """A journal that the manifest names, behind those that are there."""
        self.journal.check()
        self._check_ours()
        return self._new_journal()

    def _new_journal(self) -> Journal:
        self._due += _JOURNAL_MAX  # until then, nobody tries again where this fails
        with self._errors():
            path = self.folder / f"{self._number():06}.journal"
            path.write_bytes(b"")  # one that was left there is of no use
            sync_folder(self.folder)
            named = [*self.manifest.journals, path.name]
            self._write(self.manifest._replace(journals=named))
            return Journal(path)

    def switch(self, journal: Journal) -> None:
        """Write changes to a new journal from now on; no change may be under way."""
        before = self.journal
        try:
            before.sync()
            before.check()
        except BaseException:
            journal.close()
            raise
        self._journal = journal
        self._due = _JOURNAL_MAX
        before.close()

    def commit(
        self, segments: Iterable[Segment[Any]], write_segment: Callable[[Path, Any], None]
    ) -> None:
        """Write the segments as they were at the switch; the journals before it are deleted.

        Args:
            write_segment: writes a segment to a file, and returns when it is durable.
        """
        described, files = [], []
        for segment in segments:
            compiled = segment.compiled
            known = (name for made, name in self._files if made() is compiled)
            if (name := next(known, "")) == "":
                name = f"{self._number():06}.segment"
                with self._errors():
                    write_segment(self.folder / name, compiled)
            files.append((weakref.ref(compiled), name))
            described.append({"file": name, "removed": _packed(segment.is_removed)})
        self._check_ours()
        with self._errors():
            journals = [self.journal.path.name]
            self._write(self.manifest._replace(segments=described, journals=journals, sizes={}))
            self._files = files
            self._clean()

    def _number(self) -> int:
        """A number that no file has had, not even one of a checkpoint that failed."""
        self._next += 1
        return self._next - 1

    def _write(self, manifest: Manifest) -> None:
        manifest = manifest._replace(next=self._next)
        described = {"version": _VERSION, **manifest._asdict()}
        text = json.dumps({**described, "checksum": _checksum(described)}, indent=1)
        with replacing(self.folder / MANIFEST) as file:
            file.write(text.encode())
        self.manifest = manifest

    def _clean(self) -> None:
        """Delete the files that the manifest does not name."""
        named = {*self.manifest.journals, *(each["file"] for each in self.manifest.segments)}
        for path in self.folder.iterdir():
            name = path.name
            if name not in named and (_NUMBERED.fullmatch(name) or _TEMPORARY.fullmatch(name)):
                path.unlink(missing_ok=True)


def _locked(folder: Path) -> Any:
    """The lock of a folder, which is made if it is not there."""
    if not folder.exists():
        folder.mkdir(parents=True)
        sync_folder(folder.parent)
    lock = (folder / _LOCK).open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        message = "it is in use by another process: close it there, or open it to be read only"
        raise StoreError(message, str(folder)) from None
    return lock


def read_manifest(folder: Path, kind: str | None) -> Manifest:
    """The manifest of a store, if it is of a kind, or of any."""
    path = folder / MANIFEST
    try:
        found = json.loads(path.read_bytes())
        checksum, version = found.pop("checksum"), found.pop("version")
        is_whole = checksum == _checksum({"version": version, **found})
        if is_whole and version != _VERSION:
            raise StoreError(f"it is of version {version}, made by another Tamis", str(path))
        manifest = Manifest(**found)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        is_whole = False
    if not is_whole:
        raise StoreError("it was changed since it was written, and cannot be read", str(path))
    if kind not in (None, manifest.kind):
        raise StoreError(f"its subscriptions are of the kind {manifest.kind!r}", str(folder))
    return manifest


def _checksum(described: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(described, sort_keys=True).encode())


def _check_whole(
    paths: Sequence[Path], journals: Sequence[Records], sizes: Mapping[str, int]
) -> None:
    """See that there is a torn tail only in the last journal, and only behind its known size.

    A journal is whole before there is a record in the next one. So the next one is read first: then
    it has no record that a change misses which another process wrote meanwhile.
    """
    for number, (path, records) in enumerate(zip(paths, journals, strict=True)):
        is_torn = records.end < records.size
        is_followed = any(later.size for later in journals[number + 1 :])
        if (is_torn and is_followed) or records.end < sizes.get(path.name, 0):
            message = "a record was changed since it was written"
            raise StoreError(message, str(path), records.end)


def _packed(is_removed: NDArray[np.bool_] | None) -> str:
    if is_removed is None:
        return ""
    return base64.b64encode(zlib.compress(np.packbits(is_removed).tobytes())).decode()


def _unpacked(packed: str, count: int) -> NDArray[np.bool_] | None:
    if not packed:
        return None
    bits = np.frombuffer(zlib.decompress(base64.b64decode(packed)), np.uint8)
    return np.unpackbits(bits, count=count).astype(np.bool_)


# -- segments of texts -----------------------------------------------------------------------------

_TEXTS_VERSION = 1


def write_texts(path: Path, ids: Ids, texts: Texts) -> None:
    """Write ids and expressions to a file."""
    write_arrays(path, "subscriptions", _TEXTS_VERSION, packed_texts(ids, texts), {})


def read_texts(path: Path, kind: str = "subscriptions") -> tuple[Ids, Texts]:
    """The ids and expressions of a file, whatever version of Tamis wrote it."""
    try:
        return unpacked_texts(open_arrays(path, kind, None).arrays)
    except KeyError:
        raise DamagedProgram("it has no ids and expressions", str(path)) from None
