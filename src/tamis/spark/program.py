"""Subscriptions for Spark: from Python, files and tables; compiled once, mapped by each worker.

The driver compiles subscriptions into a saved program, which Spark sends to every machine once.
Tasks carry only its name and identity. A worker process maps the program for its first task and
keeps it for the next ones; the workers of one machine share its memory.

Such a file is an *artifact*: its name contains a hash of its content. Spark brings artifacts to the
workers on all clusters, and through Spark Connect. Other files are kept in the user's cache.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import json
import os
import pickle
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tamis.core.arguments import is_store
from tamis.core.array_file import MAGIC, file_identity
from tamis.core.errors import (
    OtherVersion,
    ProgramError,
    SubscriptionError,
    SubscriptionId,
    UsageError,
)
from tamis.core.limits import Limits
from tamis.language.subscriptions import (
    SubscriptionItems,
    Subscriptions,
    Unsupported,
    as_subscriptions,
    check_not_given,
    read_namespaces,
)
from tamis.matching.live import Matcher
from tamis.matching.matcher import CompiledMatcher, compile_subscriptions, load_matcher
from tamis.matching.saved import cache_path
from tamis.spark.session import check_workers

T = TypeVar("T")

PROGRAMS_KEPT = 4
"""How many programs a worker keeps. One job has one; a few may take turns in one application."""
PROGRAM_BYTES_MAX = 4 << 30
"""How much of a machine's memory a program takes at most, by default; its workers share it."""
CACHED_PROGRAMS_MAX = 8
"""How many programs the user's cache keeps, for the processes that plan and match."""

_COLUMNS = ["id", "expression"]
_sending = threading.Lock()
"""When two threads send the same file, Spark takes what it has of the first for another file."""


@dataclass(frozen=True)
class Artifact(Generic[T]):
    """A file that workers load a ``T`` from; its ``identity`` is a hash of its content.

    The path is that of this process, or of all machines.
    """

    path: str = field(compare=False)
    identity: str

    suffix: ClassVar[str]

    @property
    def name(self) -> str:
        """The file's name on every machine."""
        return f"tamis-{self.identity[:32]}.{self.suffix}"

    def moved(self, written: Path) -> Self:
        """The artifact of a file that was just written, moved to where its name says."""
        return replace(self, path=str(written.rename(artifacts_folder() / self.name)))

    def load(self, path: Path) -> T:
        """Read the file; a ProgramError if its content is not that of this artifact."""
        raise NotImplementedError

    def check_identity(self, identity: str, path: Path) -> None:
        """Raise OtherVersion if this is the identity of another file."""
        if identity != self.identity:
            raise OtherVersion("it is not what the driver sent", str(path.absolute()))

    def loaded(self) -> T:
        """What :meth:`load` gives, in a worker or in the driver; read once in each process."""
        found: T = _loaded(self)
        return found

    def send(self, spark: SparkSession, *others: Path) -> None:
        """Have Spark bring the file, and others, to the workers; a repetition costs nothing."""
        check_workers(spark)
        with _sending:
            for path in (self.path, *others):
                spark.addArtifacts(str(path), file=True)


@dataclass(frozen=True)
class PickledArtifact(Artifact[T]):
    """Subscriptions as a pickle, which each worker compiles; ``set_version`` is a hash of them."""

    set_version: str = field(compare=False)

    @classmethod
    def pickled(cls, parts: object, set_version: str) -> Self:
        """The artifact of a new file with these parts."""
        data = pickle.dumps(parts)
        path = new_path()
        path.write_bytes(data)
        return cls("", hashlib.sha256(data).hexdigest(), set_version[:16]).moved(path)

    def unpickled(self, path: Path) -> Any:
        """The parts that are in the file."""
        data = path.read_bytes()
        self.check_identity(hashlib.sha256(data).hexdigest(), path)
        return pickle.loads(data)


@lru_cache(maxsize=PROGRAMS_KEPT)
def _loaded(artifact: Artifact[Any]) -> Any:
    files = _worker_files()
    sent = None if files is None else files.get(artifact.name)
    path = artifact.path if sent is None or not os.path.exists(sent) else sent
    value = artifact.load(Path(path))
    if files is not None:
        gc.freeze()  # Spark collects garbage after each task, and none of this is garbage
    return value


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
    return _temporary_folder("tamis-programs-")


def _temporary_folder(prefix: str) -> Path:
    folder = tempfile.mkdtemp(prefix=prefix)
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
    return _temporary_folder("tamis-")


def keep_newest(folder: Path, pattern: str, count: int) -> None:
    """Remove all but the newest files of a cache; processes that have an old one open keep it."""
    with suppress(FileNotFoundError):  # another process may do the same
        found = folder.glob(pattern)
        newest = sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)
        for old in newest[count:]:
            old.unlink()


@dataclass(frozen=True)
class ProgramArtifact(Artifact[CompiledMatcher]):
    """Compiled subscriptions that workers can map; :func:`tamis.spark.program` makes it.

    Attributes:
        set_version: a hash of the subscriptions, whatever compiled them.
        id_type: of the column of ids: ``bigint`` if all are 64-bit integers, else ``string``.
        count: of the subscriptions.
        limits: the bounds on each document.
        parts: programs of some of the subscriptions each, if the whole is too large for a worker.
            They have the version and the type of ids of the whole, which is then not sent.
        refused: what is wrong with subscriptions that were skipped.
    """

    set_version: str = field(compare=False)
    id_type: str = field(compare=False)
    count: int = field(compare=False)
    limits: Limits = field(repr=False)
    parts: tuple[ProgramArtifact, ...] = field(default=(), compare=False)
    refused: tuple[SubscriptionError, ...] = field(default=(), compare=False, repr=False)

    suffix: ClassVar[str] = "program"

    @classmethod
    def of(cls, matcher: CompiledMatcher) -> ProgramArtifact:
        """The program of a matcher, in a file that nobody changes while this process lives.

        The file is not loaded here: processes that need the matcher load and check it, once.
        """
        errors = matcher.subscriptions.errors
        saved = matcher.loaded_from
        if saved is None:
            written = new_path()
            matcher.save(written)
            made = cls._in_file(written, file_identity(written), matcher).moved(written)
            return replace(made, refused=errors)
        made = cls._in_file(saved.path, saved.identity, matcher)
        path = artifacts_folder() / made.name
        for source, target in ((saved.path, path), (cache_path(saved.path), cache_path(path))):
            if source.exists() and not target.exists():
                _link(source, target)
        return replace(made, path=str(path), refused=errors)

    @classmethod
    def of_file(cls, path: Path) -> ProgramArtifact:
        """A saved program, where it is."""
        matcher = load_matcher(path)
        assert matcher.loaded_from is not None
        return cls._in_file(path, matcher.loaded_from.identity, matcher)

    @classmethod
    def _in_file(cls, path: Path, identity: str, matcher: CompiledMatcher) -> ProgramArtifact:
        version, type = set_version(matcher.subscriptions), id_type(matcher.ids)
        return cls(os.path.abspath(path), identity, version, type, len(matcher), matcher.limits)

    def to_json(self) -> str:
        names = ("path", "identity", "set_version", "id_type", "count")
        known = {name: getattr(self, name) for name in names}
        return json.dumps({**known, "limits": asdict(self.limits)})

    @classmethod
    def from_json(cls, text: str) -> ProgramArtifact:
        known = json.loads(text)
        return cls(**{**known, "limits": Limits(**known["limits"])})

    @property
    def partitions(self) -> tuple[ProgramArtifact, ...]:
        """What workers map: the parts, or the whole."""
        return self.parts or (replace(self, refused=()),)  # workers have no use for errors

    @property
    def size(self) -> int:
        """The file's bytes: about what it takes in the memory of a machine."""
        return os.path.getsize(self.path)

    def send(self, spark: SparkSession, *others: Path) -> None:
        """Have Spark bring the file, or those of the parts, to the workers."""
        for part in self.parts:
            part.send(spark)
        if not self.parts:
            path, cache = Path(self.path), cache_path(Path(self.path))
            if not path.exists():
                raise UsageError(f"{path} is gone: compile the subscriptions again")
            super().send(spark, *([cache] if cache.exists() else []), *others)

    def load(self, path: Path) -> CompiledMatcher:
        matcher = load_matcher(path)
        assert matcher.loaded_from is not None
        self.check_identity(matcher.loaded_from.identity, path)
        return matcher if matcher.limits == self.limits else matcher.with_limits(self.limits)


def set_version(subscriptions: Subscriptions) -> str:
    """A hash of all that decides what matches: ids, expressions, and how these are read.

    >>> set_version(Subscriptions({"x": "//a"}))
    '58bd694845ed1a6a'
    """
    columns = subscriptions.columns
    digest = hashlib.sha256()
    for column in (columns.ids.packed(), columns.texts.packed()):
        digest.update((column.ends - column.starts).astype("<i8").tobytes())
        digest.update(column.data)
    namespaces, unsupported, _ = subscriptions.options
    digest.update(json.dumps([sorted(namespaces.items()), unsupported]).encode())
    return digest.hexdigest()[:16]


def id_type(ids: Iterable[SubscriptionId]) -> str:
    """The type of a column of ids."""
    found = list(ids)
    if len(set(map(str, found))) < len(found):
        raise UsageError("ids that only their type tells apart, as 1 and '1', are one in a column")
    return "bigint" if found and all(map(is_bigint, found)) else "string"


def is_bigint(id: object) -> bool:
    """Whether an id is an integer of 64 bits."""
    return isinstance(id, int) and -(2**63) <= id < 2**63


def _link(source: Path, target: Path) -> None:
    """Keep a file under another name, even if somebody replaces the first one."""
    try:
        os.link(source, target)
    except FileExistsError:  # another thread was faster, with the same content
        pass
    except OSError:  # another file system
        beside = new_path()
        shutil.copyfile(source, beside)
        beside.rename(target)


def is_program(path: Path) -> bool:
    """Whether a file begins as saved programs do."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


# -- from subscriptions of any kind ----------------------------------------------------------------

SubscriptionSet = (
    ProgramArtifact
    | CompiledMatcher
    | Matcher
    | Subscriptions
    | SubscriptionItems
    | DataFrame
    | str
)
"""What may be given as subscriptions; a ``str`` or path names a file of them."""


def program(
    subscriptions: SubscriptionSet,
    *,
    namespaces: Mapping[str, str] | None = None,
    default_namespace: str | None = None,
    unsupported: Unsupported = "refuse",
    skip_bad: bool = False,
    bytes_max: int = PROGRAM_BYTES_MAX,
) -> ProgramArtifact:
    """Compile subscriptions once, for several functions that would each do it by themselves.

    Args:
        subscriptions: one of

            * a mapping, pairs, or a :class:`tamis.Subscriptions`;
            * the path of a file of them (see ``Subscriptions.from_file``), of Parquet (a file or a
              folder), of a saved program, or of a folder that keeps them (:meth:`Matcher.open`);
            * a DataFrame, which is collected: ``spark.table("subscriptions")``;
            * what :func:`tamis.compile` makes of them, with an engine and limits of choice, or a
              :class:`tamis.Matcher`, as it is now.

            DataFrames and Parquet have columns ``id`` (string or integer) and ``expression``.
        namespaces, default_namespace, unsupported, skip_bad: as for :class:`tamis.Subscriptions`,
            where one has to be made. Jobs that write results write what is wrong with those that
            were skipped, too.
        bytes_max: what the program may take of a machine's memory. A larger one is divided, and
            each task matches with one of its parts: documents are then read once for each.

    Raises:
        BadSubscriptions: some cannot be used.
        ProgramError: the saved program cannot be used.
        UsageError: they cannot be read; or ids that only their type tells apart; or ``namespaces``,
            ``default_namespace`` or ``unsupported`` is given for what is parsed already.

    >>> made = program({"late": "//order[@due < 20]", "any": "//order"})
    >>> made.count, made.id_type
    (2, 'string')
    """
    if isinstance(subscriptions, ProgramArtifact):
        check_not_given(namespaces, default_namespace, unsupported)
        return subscriptions
    if isinstance(subscriptions, str | os.PathLike) and is_program(Path(subscriptions)):
        subscriptions = load_matcher(subscriptions)
    elif is_store(subscriptions):
        with Matcher.open(subscriptions, read_only=True) as live:
            subscriptions = live.compiled()
    elif isinstance(subscriptions, Matcher):
        subscriptions = subscriptions.compiled()
    if isinstance(subscriptions, CompiledMatcher):
        check_not_given(namespaces, default_namespace, unsupported)
        matcher = subscriptions
    else:
        parsed = as_subscriptions(
            given_items(subscriptions),
            namespaces=namespaces,
            default_namespace=default_namespace,
            unsupported=unsupported,
            skip_bad=skip_bad,
        )
        matcher = compile_subscriptions(parsed)
    made = ProgramArtifact.of(matcher)
    count = min(-(-made.size // max(1, bytes_max)), made.count)
    if count <= 1:
        return made
    parts = tuple(
        replace(ProgramArtifact.of(part), set_version=made.set_version, id_type=made.id_type)
        for part in _divided(matcher, count)
    )
    return replace(made, parts=parts)


def _divided(matcher: CompiledMatcher, count: int) -> Iterator[CompiledMatcher]:
    """Matchers of equal shares of the subscriptions."""
    entries = list(matcher.subscriptions)
    size = -(-len(entries) // count)
    for start in range(0, len(entries), size):
        part = matcher.subscriptions.with_entries(entries[start : start + size])
        yield compile_subscriptions(part, engine=matcher.named_engine, limits=matcher.limits)


def given_items(subscriptions: Any, folders: bool = True) -> Any:
    """The ids and expressions of a DataFrame or of Parquet; other paths as a ``Path``, or the same.

    ``folders`` says whether a folder is one of Parquet.
    """
    if isinstance(subscriptions, str | os.PathLike):
        path = Path(subscriptions)
        if not (path.suffix == ".parquet" or (folders and path.is_dir())):
            return path
        try:
            return _pairs(pq.read_table(path, columns=_COLUMNS), str(path))
        except (OSError, pa.ArrowException) as error:
            raise UsageError(f"cannot read {path}: {error}") from None
    # Not isinstance(): the DataFrames of Spark Connect are of a class of their own.
    if not hasattr(subscriptions, "toArrow"):
        return subscriptions
    if not {*_COLUMNS} <= {*subscriptions.columns}:
        raise UsageError(
            "a DataFrame of subscriptions has the columns id and expression, and not only "
            f"{', '.join(subscriptions.columns)}"
        )
    return _pairs(subscriptions.select(*_COLUMNS).toArrow(), "the DataFrame")


def _pairs(table: pa.Table, name: str) -> list[tuple[Any, Any]]:
    """The subscriptions of a table, sorted by id, since tables have no order."""
    missing = [column for column in _COLUMNS if column not in table.column_names]
    if missing or any(table[column].null_count for column in _COLUMNS):
        raise UsageError(f"{name} has subscriptions without {' or '.join(missing or _COLUMNS)}")
    return list(zip(*table.sort_by("id").to_pydict().values(), strict=True))


def shared_program(
    path: str, namespaces: str | None, default_namespace: str | None, unsupported: Unsupported
) -> ProgramArtifact:
    """A saved program; or one that is compiled from a file of subscriptions, in the user's cache.

    Spark has processes of its own that ask for the columns, plan and match: the first one compiles.
    ``namespaces`` is a file of them.
    """
    if is_program(Path(path)):
        return ProgramArtifact.of_file(Path(path))
    if namespaces and "=" in namespaces and not os.path.exists(namespaces):
        raise UsageError(f"namespaces is a file, with a prefix and its URI a line: {namespaces}")
    prefixes = None if namespaces is None else read_namespaces(namespaces)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    key = hashlib.sha256(content)
    key.update(json.dumps([prefixes, default_namespace, unsupported]).encode())
    folder = cache_folder("programs")
    kept = folder / f"{key.hexdigest()}{Path(path).suffix}.program"
    if kept.exists():
        kept.touch()  # the oldest go
        with suppress(ProgramError):  # another version of Tamis made it
            return ProgramArtifact.of_file(kept)
    given = Subscriptions.from_file(
        path, namespaces=prefixes, default_namespace=default_namespace, unsupported=unsupported
    )
    compile_subscriptions(given).save(kept)
    keep_newest(folder, "*.program", CACHED_PROGRAMS_MAX)
    return ProgramArtifact.of_file(kept)
