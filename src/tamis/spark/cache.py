"""What is kept in the cache of a user: some of each kind, the newest."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path


@cache
def cache_folder(kind: str) -> Path:
    """The user's folder for one kind of files, or a temporary one where none can be made."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) / "tamis" / kind
    with suppress(OSError):  # no home, or nothing can be written there
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid == os.getuid() and os.access(folder, os.W_OK):
            return folder
    temporary = Path(tempfile.mkdtemp(prefix="tamis-"))
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return temporary


def keep_newest(folder: Path, pattern: str, count: int) -> None:
    """Leave the newest files of a cache; whoever has an old one open keeps it."""
    with suppress(FileNotFoundError):  # another process may do the same
        found = folder.glob(pattern)
        newest = sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
        for old in newest[count:]:
            old.unlink()
