"""Files that Spark brings to the workers, and files that the user's cache keeps.

An artifact is a file whose name contains a hash of its content. Spark sends it once to every
machine; this works on all clusters, and through Spark Connect.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pyspark.sql import SparkSession

T = TypeVar("T")

PROGRAMS_KEPT = 4
"""How many programs a worker keeps. One job has one; a few may take turns in one application."""

_sending = threading.Lock()
"""When two threads send the same file, Spark takes what it has of the first for another file."""


@dataclass(frozen=True)
class Artifact(Generic[T]):
    """A file that workers load a ``T`` from.

    Attributes:
        path: the file, as this process sees it, or as all machines do.
        identity: a hash of its content.
    """

    path: str = field(compare=False)
    identity: str

    suffix: ClassVar[str]

    @property
    def name(self) -> str:
        """The file's name on every machine."""
        return f"tamis-{self.identity[:32]}.{self.suffix}"

    def load(self, path: Path) -> T:
        """Read the file.

        Raises:
            ProgramError: its content is not that of this artifact.
        """
        raise NotImplementedError

    def loaded(self) -> T:
        """What :meth:`load` gives, in a worker or in the driver; read once in each process."""
        found: T = _loaded(self)
        return found

    def send(self, spark: SparkSession, *others: Path) -> None:
        """Have Spark bring the file, and others, to the workers; a repetition costs nothing."""
        with _sending:
            for path in (self.path, *others):
                spark.addArtifacts(str(path), file=True)


@lru_cache(maxsize=PROGRAMS_KEPT)
def _loaded(artifact: Artifact[Any]) -> Any:
    value = artifact.load(Path(_sent(artifact.name) or artifact.path))
    if _worker_files() is not None:
        gc.freeze()  # Spark collects garbage after each task, and none of this is garbage
    return value


def _sent(name: str) -> str | None:
    """The path of an artifact in a worker, if the artifact is there."""
    files = _worker_files()
    path = None if files is None else files.get(name)
    return path if path is not None and os.path.exists(path) else None


def _worker_files() -> Any:
    """The files that Spark brought to this process; None if the process runs no tasks."""
    try:
        from pyspark import SparkFiles  # noqa: PLC0415
    except ImportError:  # the client of Spark Connect alone
        return None
    return SparkFiles if SparkFiles._is_running_on_worker else None


def new_path() -> Path:
    """The path of a new file among this process's artifacts, to be renamed when it is written."""
    return artifacts_folder() / f"{os.urandom(8).hex()}.new"


@cache
def artifacts_folder() -> Path:
    """The folder of this process's artifacts; it is removed when the process ends."""
    folder = tempfile.mkdtemp(prefix="tamis-programs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def cache_folder(kind: str) -> Path:
    """The user's cache for one kind of files, or a temporary folder if there can be no cache."""
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
    """Remove all but the newest files of a cache; processes that have an old one open keep it."""
    with suppress(FileNotFoundError):  # another process may do the same
        found = folder.glob(pattern)
        newest = sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
        for old in newest[count:]:
            old.unlink()
