"""Files that Spark brings to the workers, as artifacts of the session: once to every machine.

Each is named after what is in it; this is one way for all clusters, and for Spark Connect.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

_sending = threading.Lock()
"""Of two threads that send the same file, Spark takes what it has of the first for another file."""


# -- in the driver ---------------------------------------------------------------------------------


@cache
def artifacts_folder() -> Path:
    """Where this process keeps what it sends, while it lives."""
    folder = tempfile.mkdtemp(prefix="tamis-programs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def send(spark: SparkSession, *paths: Path) -> None:
    """Have Spark bring files to the workers; to do so again costs nothing."""
    with _sending:
        for path in paths:
            spark.addArtifacts(str(path), file=True)


# -- in the workers --------------------------------------------------------------------------------


def sent(name: str) -> str | None:
    """The path of an artifact in a worker, if it is there."""
    files = _files()
    path = None if files is None else files.get(name)
    return path if path is not None and os.path.exists(path) else None


def in_worker() -> bool:
    """Whether this process is one that runs tasks."""
    return _files() is not None


def _files() -> Any:
    """What knows the files that Spark brought here; None where that is no worker."""
    try:
        from pyspark import SparkFiles  # noqa: PLC0415
    except ImportError:  # the client of Spark Connect alone
        return None
    return SparkFiles if SparkFiles._is_running_on_worker else None
