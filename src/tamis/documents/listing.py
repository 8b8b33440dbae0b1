"""Which files are documents: what every command and job means by a folder or a pattern."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from glob import glob, has_magic
from typing import NamedTuple

NO_SUCH_NAME = "no file has a name like this"
NO_DOCUMENTS = "a folder without"
"""How the problem of a folder begins in which nothing is taken."""
_SHOWN = 3
"""So many of the names that were left out are told."""


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
        what = (
            "file left out, whose name is" if len(names) == 1 else "files left out, whose names are"
        )
        return f"{place}: {len(names):,} {what} not like {self.wanted}: {shown}"


class Found(NamedTuple):
    """A file that a path stands for.

    Attributes:
        path: where it is.
        problem: why reading it cannot even be tried, or None: a pipe or a folder of such a name,
            since reading one may never end; or the folder itself, where nothing is in it.
    """

    path: str
    problem: str | None = None


class FolderListing(NamedTuple):
    """The documents of a folder, and the names of the files that are none."""

    files: list[Found]
    left_out: list[str]


def expanded(path: str, folder: str = "") -> list[str]:
    """The paths that a pattern stands for, in order; a path that is there stands for itself.

    Args:
        path: perhaps with ``*``, ``?``, ``[…]`` or ``**`` (folders at any depth).
        folder: where relative paths begin; by default in the current folder.
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
    files: list[Found] = []
    left_out: list[str] = []
    has_folders = False

    def fail(error: OSError) -> None:
        files.append(Found(error.filename, f"cannot read the folder: {error.strerror}"))

    for place, folders, others in os.walk(folder, onerror=fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        has_folders = has_folders or bool(folders)
        for name in sorted(others if names.recursive else others + folders):
            path = os.path.join(place, name)
            if names.takes(name):
                files.append(Found(path, file_problem(path)))
            elif not name.startswith(".") and os.path.isfile(path):
                left_out.append(os.path.relpath(path, folder))
        if not names.recursive:
            break
    if not files:
        unread = has_folders and not names.recursive
        below = ", but with folders, which were not read" if unread else ""
        files = [Found(folder, f"{NO_DOCUMENTS} {names.wanted}{below}")]
    return FolderListing(files, left_out)


def file_problem(path: str) -> str | None:
    """Why a path should not be opened, or None; that it is missing, its reader will find."""
    is_other = os.path.exists(path) and not os.path.isfile(path)
    return "not a regular file" if is_other else None
