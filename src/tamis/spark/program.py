"""Subscriptions for Spark: from Python, files and tables; compiled once, mapped by each worker.

The driver compiles subscriptions into a saved program, which Spark sends to every machine once.
Tasks carry only its name and identity. A worker process maps the program for its first task and
keeps it for the next ones; the workers of one machine share its memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

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
from tamis.matching.matcher import CompiledMatcher, compile_subscriptions, load_matcher
from tamis.matching.saved import cache_path
from tamis.spark.artifacts import Artifact, artifacts_folder, cache_folder, keep_newest, new_path

_COLUMNS = ["id", "expression"]

PROGRAM_BYTES_MAX = 4 << 30
"""How much of a machine's memory a program takes at most, by default; its workers share it."""
CACHED_PROGRAMS_MAX = 8
"""How many programs the user's cache keeps, for the processes that plan and match."""


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
        saved = matcher.loaded_from
        if saved is not None:
            made = cls._in_file(saved.path, saved.identity, matcher)
            path = artifacts_folder() / made.name
            for source, target in ((saved.path, path), (cache_path(saved.path), cache_path(path))):
                if source.exists() and not target.exists():
                    _link(source, target)
        else:
            written = new_path()
            matcher.save(written)
            made = cls._in_file(written, file_identity(written), matcher)
            path = written.rename(artifacts_folder() / made.name)
        return replace(made, path=str(path), refused=matcher.subscriptions.errors)

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
        """What a worker has to know."""
        names = ("path", "identity", "set_version", "id_type", "count")
        known = {name: getattr(self, name) for name in names}
        return json.dumps({**known, "limits": asdict(self.limits)})

    @classmethod
    def from_json(cls, text: str) -> ProgramArtifact:
        """The program that :meth:`to_json` describes."""
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
        """Map the file."""
        matcher = load_matcher(path)
        assert matcher.loaded_from is not None
        if matcher.loaded_from.identity != self.identity:
            raise OtherVersion("it is not what the driver sent", str(path.absolute()))
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
    whole = found and all(isinstance(id, int) and -(2**63) <= id < 2**63 for id in found)
    return "bigint" if whole else "string"


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
    ProgramArtifact | CompiledMatcher | Subscriptions | SubscriptionItems | DataFrame | str
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
    """Compile subscriptions for Spark's workers, once for all that is done with them.

    Everything that takes subscriptions does it by itself; this is for who wants to do it once.

    Args:
        subscriptions: one of

            * a mapping, pairs, or a :class:`tamis.Subscriptions`;
            * the path of a file of them (see ``Subscriptions.from_file``), of Parquet (a file or a
              folder) or of a saved program;
            * a DataFrame, which is collected: ``spark.table("subscriptions")``;
            * what :func:`tamis.compile` makes of them, with an engine and limits of choice.

            DataFrames and Parquet have columns ``id`` (string or integer) and ``expression``.
        namespaces, default_namespace, unsupported, skip_bad: as for :class:`tamis.Subscriptions`,
            where one has to be made. Jobs that write results write what is wrong with those that
            were skipped, too.
        bytes_max: what the program may take of a worker's memory (those of one machine share it). A
            larger one is divided, and each task matches with one of its parts: documents are then
            read once for each.

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
    matcher = compiled(
        subscriptions, namespaces, unsupported, skip_bad, default_namespace=default_namespace
    )
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
    """Matchers of some of the subscriptions each, about as many in all."""
    rules = matcher.subscriptions.options
    items = [(item.id, item.expression) for item in matcher.subscriptions]
    size = -(-len(items) // count)
    for start in range(0, len(items), size):
        part = Subscriptions(
            items[start : start + size],
            namespaces=matcher.subscriptions.namespaces,
            default_namespace=matcher.subscriptions.default_namespace,
            unsupported=rules.unsupported,
            limits=rules.limits,
        )
        yield compile_subscriptions(part, engine=matcher.named_engine, limits=matcher.limits)


def compiled(
    subscriptions: SubscriptionSet,
    namespaces: Mapping[str, str] | None = None,
    unsupported: Unsupported = "refuse",
    skip_bad: bool = False,
    *,
    default_namespace: str | None = None,
) -> CompiledMatcher:
    """Subscriptions of any kind, compiled; for the arguments see :func:`program`."""
    if isinstance(subscriptions, str | os.PathLike):
        path = Path(subscriptions)
        if is_program(path):
            subscriptions = load_matcher(path)
        else:
            subscriptions = table_items(path) if is_table(path) else path
    elif isinstance(subscriptions, ProgramArtifact):
        subscriptions = subscriptions.loaded()
    # Not isinstance(): the DataFrames of Spark Connect are of a class of their own.
    elif hasattr(subscriptions, "toArrow"):
        subscriptions = frame_items(subscriptions)
    if isinstance(subscriptions, CompiledMatcher):
        check_not_given(namespaces, default_namespace, unsupported)
        return subscriptions
    return compile_subscriptions(
        as_subscriptions(
            subscriptions,
            namespaces=namespaces,
            default_namespace=default_namespace,
            unsupported=unsupported,
            skip_bad=skip_bad,
        )
    )


def is_table(path: Path) -> bool:
    """Whether a path is one of Parquet: a file or a folder."""
    return path.is_dir() or path.suffix == ".parquet"


def table_items(path: Path) -> list[tuple[Any, Any]]:
    """The ids and expressions of Parquet."""
    try:
        table = pq.read_table(path, columns=_COLUMNS)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"cannot read {path}: {error}") from None
    return _pairs(table, str(path))


def frame_items(df: Any) -> list[tuple[Any, Any]]:
    """The ids and expressions of a DataFrame."""
    if not {*_COLUMNS} <= {*df.columns}:
        raise UsageError(
            f"a DataFrame of subscriptions has the columns id and expression, and not only "
            f"{', '.join(df.columns)}"
        )
    return _pairs(df.select(*_COLUMNS).toArrow(), "the DataFrame")


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

    Args:
        namespaces: a file of them, or None.
    """
    if is_program(Path(path)):
        return ProgramArtifact.of_file(Path(path))
    prefixes = None if namespaces is None else read_namespaces(namespaces)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    key = hashlib.sha256(
        content + json.dumps([prefixes, default_namespace, unsupported]).encode()
    ).hexdigest()
    folder = cache_folder("programs")
    kept = folder / f"{key}{Path(path).suffix}.program"
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
