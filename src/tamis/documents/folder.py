"""The documents of a folder: what every command and job means when it is given one."""

from __future__ import annotations

import os


def folder_documents(folder: str) -> list[tuple[str, str | None]]:
    """The ``*.xml`` and ``*.xml.gz`` of a folder, as a shell has them, in order; nothing is read.

    Returns:
        (path, problem) pairs. What cannot even be tried has a problem: a pipe or a folder of such a
        name, since reading one may never end, and the folder itself where nothing is in it.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if is_document_name(name))
    except OSError as error:
        return [(folder, f"cannot read the folder: {error.strerror}")]
    if not names:
        return [(folder, "a folder without *.xml or *.xml.gz")]
    return [(path, file_problem(path)) for path in (os.path.join(folder, n) for n in names)]


def file_problem(path: str) -> str | None:
    """Why a path should not be opened, or None; that it is missing, its reader will find."""
    is_other = os.path.exists(path) and not os.path.isfile(path)
    return "not a regular file" if is_other else None


def is_document_name(name: str) -> bool:
    """Whether a file of this name, in a folder or an archive, is taken for a document."""
    return name.endswith((".xml", ".xml.gz")) and not name.startswith(".")
