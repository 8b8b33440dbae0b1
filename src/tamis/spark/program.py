"""Subscriptions as data: compiled once, sent to the workers as a file, mapped once by each.

The driver compiles them into a saved program, which Spark brings to every machine once, as an
artifact of the session. What tasks carry is its name and what has to be in it. A worker process
maps it for its first task, and keeps it for the next ones; workers of a machine share its memory.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tamis.core.array_file import MAGIC
from tamis.core.errors import OtherVersion, SubscriptionError, SubscriptionId, UsageError
from tamis.language.subscriptions import Subscriptions
from tamis.matching.matcher import CompiledMatcher, load_matcher
from tamis.matching.saved import cache_path
from tamis.spark.artifacts import artifacts_folder, in_worker, send, sent

PROGRAMS_KEPT = 4
"""How many a worker keeps mapped. One job has one; a few may take turns in one application."""


@dataclass(frozen=True, slots=True)
class Program:
    """Compiled subscriptions that workers can map; :func:`tamis.spark.program` makes it.

    Attributes:
        path: the file, where this process has it, or where all machines do.
        identity: a hash of what is in it.
        set_version: a hash of the subscriptions, whatever compiled them.
        id_type: of the column of ids: ``bigint`` if all are 64-bit integers, else ``string``.
        count: of the subscriptions.
        parts: where it is too large for a worker: programs of some of the subscriptions each, with
            the version and the ids of the whole. Then this one is not sent.
        refused: what is wrong with subscriptions that were left out, of a set that skips these.
    """

    path: str = field(compare=False)
    identity: str
    set_version: str = field(compare=False)
    id_type: str = field(compare=False)
    count: int = field(compare=False)
    parts: tuple[Program, ...] = field(default=(), compare=False)
    refused: tuple[SubscriptionError, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def of(cls, matcher: CompiledMatcher) -> Program:
        """What a matcher has, in a file that nobody changes while this process lives.

        Raises:
            UsageError: the ids cannot be told apart in a column.
        """
        return replace(cls.of_file(_in_file(matcher)), refused=matcher.subscriptions.errors)

    @classmethod
    def of_file(cls, path: Path) -> Program:
        """What is in a saved program, where it is."""
        matcher = load_matcher(path)
        found = matcher.kept_in
        assert found is not None
        version, type = set_version(matcher.subscriptions), id_type(matcher.ids)
        return cls(str(path), found.identity, version, type, len(matcher))

    def as_options(self) -> dict[str, Any]:
        """What a worker has to know, as JSON can say it."""
        names = ("path", "identity", "set_version", "id_type", "count")
        return {name: getattr(self, name) for name in names}

    @property
    def name(self) -> str:
        """What the file is called on every machine."""
        return _name(self.identity)

    @property
    def shares(self) -> tuple[Program, ...]:
        """What workers map: the parts, or the whole."""
        return self.parts or (replace(self, refused=()),)  # of which they have no use

    @property
    def size(self) -> int:
        """Of the file, in bytes: about what it takes in the memory of a machine."""
        return os.path.getsize(self.path)

    def send(self, spark: SparkSession) -> Program:
        """Have Spark bring the file to the workers; to do so again costs nothing.

        Raises:
            UsageError: it is gone.
        """
        for part in self.parts:
            part.send(spark)
        if self.parts:
            return self
        path, cache = Path(self.path), cache_path(Path(self.path))
        if not path.exists():
            raise UsageError(f"{path} is gone: compile the subscriptions again")
        send(spark, *((path, cache) if cache.exists() else (path,)))
        return self

    def matcher(self) -> CompiledMatcher:
        """The matcher, in a worker or in the driver; mapped the first time."""
        return _mapped(self)


def set_version(subscriptions: Subscriptions) -> str:
    """A hash of all that says what matches: ids, expressions, and how these are read.

    >>> set_version(Subscriptions({"x": "//a"}))
    '58bd694845ed1a6a'
    """
    columns = subscriptions.columns
    digest = hashlib.sha256()
    for column in (columns.ids.packed(), columns.texts.packed()):
        digest.update((column.ends - column.starts).astype("<i8").tobytes())
        digest.update(column.data)
    namespaces, unsupported, _ = subscriptions.rules
    digest.update(json.dumps([sorted(namespaces.items()), unsupported]).encode())
    return digest.hexdigest()[:16]


def id_type(ids: Iterable[SubscriptionId]) -> str:
    """The type of a column of ids.

    Raises:
        UsageError: the ids cannot be told apart in a column.
    """
    found = list(ids)
    if len(set(map(str, found))) < len(found):
        raise UsageError("ids that only their type tells apart, as 1 and '1', are one in a column")
    whole = found and all(isinstance(id, int) and -(2**63) <= id < 2**63 for id in found)
    return "bigint" if whole else "string"


def _name(identity: str) -> str:
    return f"tamis-{identity[:32]}.program"


# -- in the driver ---------------------------------------------------------------------------------


def _in_file(matcher: CompiledMatcher) -> Path:
    """A matcher's file, named after what is in it."""
    folder = artifacts_folder()
    kept = matcher.kept_in
    if kept is None:
        saved = folder / f"{os.urandom(8).hex()}.new"
        matcher.save(saved)
        kept = load_matcher(saved).kept_in
        assert kept is not None
    path = folder / _name(kept.identity)
    for source, target in ((kept.path, path), (cache_path(kept.path), cache_path(path))):
        if source.exists() and not target.exists():
            _link(source, target)
    if kept.path.suffix == ".new":
        kept.path.unlink()
    return path


def _link(source: Path, target: Path) -> None:
    """Keep a file under another name, even where somebody replaces the first one."""
    try:
        os.link(source, target)
    except FileExistsError:  # another thread was faster; it has the same in it
        pass
    except OSError:  # another file system
        beside = target.with_name(f"{os.urandom(8).hex()}.new")
        shutil.copyfile(source, beside)
        beside.rename(target)


def is_program(path: Path) -> bool:
    """Whether a file begins as saved programs do."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


# -- in the workers --------------------------------------------------------------------------------


@lru_cache(maxsize=PROGRAMS_KEPT)
def _mapped(program: Program) -> CompiledMatcher:
    """The matcher that the driver sent."""
    matcher = load_matcher(sent(program.name) or program.path)
    found = matcher.kept_in
    assert found is not None
    if found.identity != program.identity:
        raise OtherVersion("it is not what the driver sent", str(found.path))
    if in_worker():
        gc.freeze()  # Spark collects garbage after each task, and all that is here is none
    return matcher
