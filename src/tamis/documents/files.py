"""Which files are documents: folders, patterns, and the members of archives (zip, tar)."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from glob import glob, has_magic
from operator import attrgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from tamis.core.errors import UnreadableDocument

if TYPE_CHECKING:
    import tarfile
    import zipfile


NO_SUCH_NAME = "no file has a name like this"
NO_DOCUMENTS = "a folder without"
"""How the problem of a folder begins in which nothing is taken."""
_SHOWN = 3  # of the names that were left out a message lists so many
TARS = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".tbz")
"""How the names of tar archives end."""
_ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")  # of an archive with members, and of one without
_ENCRYPTED = 1  # a flag of the format's
_SPARSE = "a file with holes, as tar --sparse packs it: pack it without"
_LINKED = (
    "a hard link in a compressed archive: pack it with tar --hard-dereference, or uncompressed"
)
# Members may be read by several threads, but zipfile counts the open ones without a lock.
_opening = threading.Lock()


class NameFilter(NamedTuple):
    """Which files of folders, and which members of archives, are documents: by their names.

    Attributes:
        globs: the patterns of names to take, such as ``*.rss``; by default, names that end in
            ``.xml`` or ``.xml.gz``, in any case. As in a shell, no pattern takes a name that begins
            with a dot, unless the pattern does.
        recursive: whether the folders in a folder are read too.

    >>> NameFilter().takes("ONE.XML"), NameFilter(("*.rss",)).takes("news.rss")
    (True, True)
    """

    globs: Sequence[str] = ()
    recursive: bool = False

    def takes(self, name: str) -> bool:
        """Whether a file of this name, without its folder, is a document."""
        if not self.globs:
            return name.lower().endswith((".xml", ".xml.gz")) and not name.startswith(".")
        return any(
            fnmatchcase(name, pattern) and name.startswith(".") <= pattern.startswith(".")
            for pattern in self.globs
        )

    def takes_member(self, name: str) -> bool:
        """Whether a member of an archive is a document."""
        return self.takes(name.rpartition("/")[2])

    def leaves_out(self, name: str) -> bool:
        """Whether a member of an archive is a file that is no document, and is not hidden."""
        base = name.rpartition("/")[2]
        return bool(base) and not base.startswith(".") and not self.takes(base)

    @property
    def wanted(self) -> str:
        """The names that are taken, for messages."""
        return " or ".join(self.globs or ("*.xml", "*.xml.gz"))

    def left_out(self, place: str, names: Sequence[str]) -> str:
        """The message that files, or members, of a place were left out.

        >>> NameFilter().left_out("in", ["a.kml"])
        'in: 1 file left out, whose name is not like *.xml or *.xml.gz: a.kml'
        """
        shown = ", ".join([*names[:_SHOWN], *(["…"] if len(names) > _SHOWN else [])])
        what = "file left out, whose name is"
        if len(names) != 1:
            what = "files left out, whose names are"
        return f"{place}: {len(names):,} {what} not like {self.wanted}: {shown}"


class FileStatus(NamedTuple):
    """A file that a path stands for. Path, size in bytes and time in ns identify a version of it.

    Attributes:
        problem: why it must not be opened, or None. Pipes are never opened, since reading one may
            never end. A folder without documents is found itself, with a problem.
    """

    path: str
    size: int = 0
    modified: int = 0
    problem: str | None = None


class FolderListing(NamedTuple):
    """The documents of a folder, and the names of the files that are none."""

    files: list[FileStatus]
    left_out: list[str]


def expanded(path: str, folder: str = "") -> list[str]:
    """The paths that a pattern stands for, in order; a path that is there stands for itself.

    Patterns have ``*``, ``?``, ``[…]`` or ``**`` (folders at any depth). Relative paths begin in
    ``folder``, by default the current one.
    """
    if not has_magic(path) or os.path.lexists(os.path.join(folder, path)):
        return [path]
    return sorted(set(_matching(path, folder)))


def _matching(pattern: str, folder: str) -> Iterator[str]:
    """What a pattern matches; ``**`` is all folders below, but hidden ones and links, as in Bash.

    ``glob`` follows links at ``**``: two that lead upwards would keep it busy for ever. A pattern
    that ends in ``**`` matches files alone, since a folder stands for its files.
    """
    parts = pattern.split("/")
    if "**" not in parts:
        yield from glob(pattern, root_dir=folder or None)
        return
    place = parts.index("**")
    before, after = "/".join([*parts[:place], ""]), "/".join(parts[place + 1 :])
    for start in glob(before, root_dir=folder or None) if before else [""]:
        top = os.path.join(folder, start) or "."
        for found, folders, files in os.walk(top):
            folders[:] = [name for name in folders if not name.startswith(".")]
            below = os.path.relpath(found, top)
            inside = start if below == "." else f"{os.path.join(start, below)}/"
            visible = (name for name in files if not name.startswith("."))
            names = _matching(after, found) if after else visible
            yield from (inside + name for name in names)


def list_folder(folder: str, names: NameFilter = NameFilter()) -> FolderListing:  # noqa: B008
    """The documents of a folder, in order; nothing is read.

    Folders in it that are hidden, or links, are not read.
    """
    files: list[FileStatus] = []
    left_out: list[str] = []
    has_folders = False
    places = [folder]
    while places:
        place = places.pop()
        try:
            with os.scandir(place) as found:
                entries = sorted(found, key=attrgetter("name"))
        except OSError as error:
            files.append(FileStatus(place, problem=f"cannot read the folder: {error.strerror}"))
            continue
        below = [entry.path for entry in entries if entry.name[0] != "." and _is_folder(entry)]
        has_folders = has_folders or bool(below)
        for entry in entries:
            if names.takes(entry.name):
                if not (names.recursive and _is_folder(entry)):
                    files.append(status_of(entry))
            elif entry.name[0] != "." and os.path.isfile(entry):
                left_out.append(os.path.relpath(entry.path, folder))
        if names.recursive:
            places += [path for path in reversed(below) if not os.path.islink(path)]
    if not files:
        unread = has_folders and not names.recursive
        said = ", but with folders, which were not read" if unread else ""
        files = [FileStatus(folder, problem=f"{NO_DOCUMENTS} {names.wanted}{said}")]
    return FolderListing(files, left_out)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads in a circle
        return False


def status_of(path: str | os.DirEntry[str]) -> FileStatus:
    """A file of this machine, as it is now; that it is missing, its reader will find."""
    name = os.fspath(path)
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return FileStatus(name)
    if not stat.S_ISREG(found.st_mode):
        return FileStatus(name, problem="not a regular file")
    return FileStatus(name, found.st_size, min(found.st_mtime_ns, 2**63 - 1))


# -- archives --------------------------------------------------------------------------------------


class ZipMember(NamedTuple):
    """A document inside a zip archive; it is read where it is matched.

    Attributes:
        number: its number in the archive, from 0, since names need not be unique.
        size: in bytes, as it is packed.
    """

    archive: Path
    number: int
    name: str
    size: int = 0

    def __str__(self) -> str:
        return f"{self.archive}/{self.name}"

    def chunks(self, size: int) -> Iterator[bytes]:
        """The bytes, in chunks of at most ``size``, or ``UnreadableDocument``."""
        try:
            with _opening:
                archive = _opened(self.archive, os.stat(self.archive).st_mtime_ns)
                info = archive.infolist()[self.number]
                if info.flag_bits & _ENCRYPTED:
                    raise ValueError("it is encrypted")
                file = archive.open(info)
            try:
                while chunk := file.read(size):
                    yield chunk
            finally:
                with _opening:
                    file.close()
        except Exception as error:  # whatever zipfile and its decompressors raise
            raise UnreadableDocument(f"cannot read it from the archive: {reason(error)}") from None


def is_zip(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads to a file that begins as zip archives do."""
    try:
        if not os.path.isfile(path):  # a pipe must not be opened: its content would be lost
            return False
        with open(path, "rb") as file:
            return file.read(4) in _ZIP_MAGIC
    except (OSError, ValueError):
        return False


def reason(error: Exception) -> str:
    """The message of an error of the system or of a decompressor."""
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return said or type(error).__name__


@lru_cache(maxsize=4)
def _opened(path: Path, _changed_ns: int) -> zipfile.ZipFile:
    """An archive, kept open for its next member; several threads may read it at once."""
    return _zip_file(path)


def _zip_file(file: Path | IO[bytes]) -> zipfile.ZipFile:
    import zipfile  # noqa: PLC0415 - few documents are in archives

    return zipfile.ZipFile(file)


class TarMember(NamedTuple):
    """A document inside a tar archive that is not compressed; it is read where it is matched.

    It begins at the offset ``start``, in bytes; ``problem`` says why it cannot be read, or is None.
    """

    archive: Path
    start: int
    size: int
    name: str
    problem: str | None = None

    def __str__(self) -> str:
        return f"{self.archive}/{self.name}"

    def chunks(self, size: int) -> Iterator[bytes]:
        """The bytes, in chunks of at most ``size``, or ``UnreadableDocument``."""
        if self.problem is not None:
            raise UnreadableDocument(self.problem)
        try:
            with open(self.archive, "rb") as file:
                file.seek(self.start)
                left = self.size
                while left and (chunk := file.read(min(size, left))):
                    left -= len(chunk)
                    yield chunk
        except OSError as error:
            raise UnreadableDocument(f"cannot read it from the archive: {reason(error)}") from None
        if left:
            raise UnreadableDocument("cannot read it from the archive: it ends too early")


Member = ZipMember | TarMember


def is_tar(path: str) -> bool:
    """Whether a path leads to a tar archive, by its name."""
    return path.lower().endswith(TARS)


def is_packed_tar(path: str) -> bool:
    """Whether a tar archive is compressed, by its name."""
    return not path.lower().endswith(".tar")


def archive_members(
    file: IO[bytes], path: str, names: NameFilter, left_out: list[str]
) -> Iterator[Member]:
    """The documents in an open zip archive, or tar archive that is not compressed, in its order.

    ``left_out`` is given the names that the filter does not take.

    Raises:
        Exception: whatever damaged archives make their reader raise.
    """
    read = _tar_members if is_tar(path) and not is_packed_tar(path) else _zip_members
    for member in read(file, path):
        if names.takes_member(member.name):
            yield member
        elif names.leaves_out(member.name):
            left_out.append(member.name)


def _zip_members(file: IO[bytes], path: str) -> Iterator[ZipMember]:
    for number, info in enumerate(_zip_file(file).infolist()):
        yield ZipMember(Path(path), number, info.filename, info.compress_size)


def _tar_members(file: IO[bytes], path: str) -> Iterator[TarMember]:
    data: dict[str, tarfile.TarInfo] = {}
    with _opened_tar(file, "r:") as opened:
        for info in opened:
            if info.isreg():
                data[info.name] = info
            found = data.get(info.linkname) if info.islnk() else info
            if found is not None and found.isreg():
                problem = _SPARSE if found.issparse() else None
                yield TarMember(Path(path), found.offset_data, found.size, info.name, problem)


def tar_documents(
    file: IO[bytes], names: NameFilter, left_out: list[str] | None = None
) -> Iterator[tuple[str, IO[bytes] | UnreadableDocument]]:
    """The documents in a compressed tar archive, which is read once, each with its name.

    Each is open until the next is asked for. Where the archive cannot be read any further, the last
    one has no name, and the error. ``left_out`` is given the names that the filter does not take.
    """
    count = 0
    try:
        with _opened_tar(file, "r|*") as archive:
            for info in archive:
                if not (info.isreg() or info.islnk()):
                    continue
                if not names.takes_member(info.name):
                    if left_out is not None and names.leaves_out(info.name):
                        left_out.append(info.name)
                    continue
                count += 1
                member = archive.extractfile(info) if info.isreg() else None
                yield info.name, UnreadableDocument(_LINKED) if member is None else member
    except Exception as error:  # whatever tarfile and its decompressors raise
        yield "", UnreadableDocument(f"cannot read the archive: {reason(error)}")
        return
    if not count:
        yield "", UnreadableDocument(f"an archive without {names.wanted}")


def _opened_tar(file: IO[bytes], mode: Any) -> tarfile.TarFile:
    import tarfile  # noqa: PLC0415 - few documents are in archives

    return tarfile.open(fileobj=file, mode=mode, tarinfo=_header())


@cache
def _header() -> type[tarfile.TarInfo]:
    """A header: what is none ends an archive in an error, and not as if it were its end."""
    import tarfile  # noqa: PLC0415

    class Header(tarfile.TarInfo):
        @classmethod
        def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Header:
            try:
                return super().fromtarfile(tarfile_)
            except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
                raise
            except tarfile.HeaderError as error:
                raise tarfile.ReadError(str(error)) from None

    return Header
