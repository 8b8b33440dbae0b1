"""What is kept in the cache of a user: some of each kind, the newest."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def keep_newest(folder: Path, pattern: str, count: int) -> None:
    """Leave the newest files of a cache; whoever has an old one open keeps it."""
    with suppress(FileNotFoundError):  # another process may do the same
        found = folder.glob(pattern)
        newest = sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
        for old in newest[count:]:
            old.unlink()
