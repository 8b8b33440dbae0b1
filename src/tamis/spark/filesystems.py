"""Paths as Spark, Hadoop and pyarrow write them, and the file systems that they are in.

Spark calls a file of this machine ``file:/d/a.xml`` (``_metadata.file_path``), and one in S3
``s3a://…``. What such paths name is read by pyarrow's file systems; what is on this machine, or
mounted there, by its own.
"""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from fnmatch import fnmatchcase
from functools import lru_cache
from glob import has_magic
from itertools import chain
from typing import IO, Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote, unquote

import pyarrow as pa
from pyarrow import fs

from tamis.core.errors import UsageError

S = TypeVar("S")
T = TypeVar("T")

SECONDS_MAX = 60.0
"""How long a file system may take to answer at all, without credentials or network too."""

ASKED_AT_ONCE = 16
"""How many requests a store has from one process at a time; each waits for the network."""

_MOUNTED = {"file": "", "dbfs": "/dbfs"}
"""Scheme → where its root is on each machine."""
_LOCAL = re.compile(rf"(({'|'.join(_MOUNTED)}):(?://(?:localhost)?)?)(/.*)", re.DOTALL)
_REMOTE = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/+)(.*)", re.DOTALL)
_PYARROW = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "hdfs": "hdfs", "viewfs": "viewfs"}
_PYARROW |= {"abfs": "abfs", "abfss": "abfs", "wasb": "abfs", "wasbs": "abfs"}
"""Spark's name of a scheme → pyarrow's."""
_SETTINGS = {
    "s3": "keys, region and endpoint are those of AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, "
    "AWS_REGION and AWS_ENDPOINT_URL on each machine, or ?region=… in the URI",
    "gs": "credentials are those of GOOGLE_APPLICATION_CREDENTIALS on each machine",
    "abfs": "credentials are those of AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or "
    "AZURE_CLIENT_ID with AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or the managed identity, of "
    "each machine",
    **dict.fromkeys(
        ("hdfs", "viewfs"),
        "it needs Hadoop on each machine: HADOOP_HOME, JAVA_HOME, and in CLASSPATH what "
        "'hadoop classpath --glob' prints",
    ),
}
"""Scheme → where its file system finds what it needs."""
_UNESCAPED = re.compile(r"[^\w\-.!~'()*,;:$&+=/@]")


def is_remote(path: str) -> bool:
    """Whether a path is a URI that pyarrow has to open.

    >>> [is_remote(path) for path in ("a.xml", "file:/d/a.xml", "s3a://b/a.xml", "hdfs:/d/a.xml")]
    [False, False, True, True]
    """
    found = _REMOTE.match(path)
    if found is None or _LOCAL.fullmatch(path):
        return False
    return len(found[2]) >= 2 or found[1].lower() in _PYARROW


def local_path(path: str, folder: str = "") -> str:
    """The path of this machine that is meant; relative ones begin in ``folder``.

    >>> [local_path(path, "/d") for path in ("a.xml", "file:/d/a%20b.xml", "file:///d/a.xml")]
    ['/d/a.xml', '/d/a b.xml', '/d/a.xml']
    """
    found = _LOCAL.fullmatch(path)
    if found is None:
        return os.path.join(folder, path)
    return _MOUNTED[found[2]] + unquote(found[3], errors="surrogateescape")


def named_as(given: str, path: str) -> str:
    """A path of this machine, written as the one that was given was.

    >>> named_as("file:/d", "/d/a b.xml"), named_as("/d", "/d/a b.xml")
    ('file:/d/a%20b.xml', '/d/a b.xml')
    """
    found = _LOCAL.fullmatch(given)
    if found is None:
        return path
    return found[1] + escaped(path.removeprefix(_MOUNTED[found[2]]))


def escaped(path: str) -> str:
    """The path of a URI, with the escapes that Spark writes: those that URIs must have."""
    return _UNESCAPED.sub(lambda found: quote(os.fsencode(found[0])), path)


def opened(path: str) -> IO[bytes]:
    """A file to be read from any place.

    Raises:
        OSError: it cannot be opened, or it is none, or nobody answers.
    """
    if not is_remote(path):
        return open(local_path(path), "rb")
    place = _Place.of(path)

    def found() -> Any:
        if place.scheme == "abfs":  # which has pyarrow abort where opening finds no credentials
            place.system[0].get_file_info(place.inside)
        return place.system[0].open_input_file(place.inside)

    try:
        file = _in_time(found)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        raise OSError(place.failure(error)) from None
    return io.BufferedReader(file)


def info_of(uri: str) -> fs.FileInfo:
    """What a URI leads to; a ``UsageError`` if there is nothing, or nobody answers."""

    def found(place: _Place, system: fs.FileSystem) -> fs.FileInfo:
        return _in_time(lambda: system.get_file_info(place.inside))

    info = _listed(uri, found)
    if info.type == fs.FileType.NotFound:
        raise UsageError(f"{uri}: there is no such file or folder")
    return info


def children(uri: str) -> list[tuple[str, fs.FileInfo]]:
    """What is in a folder: URIs, in order of their names."""
    return _listed(uri, lambda place, system: place.named(_infos(system, place.inside)))


def matching(uri: str) -> list[tuple[str, fs.FileInfo]]:
    """What a pattern leads to: URIs, in order; patterns are those of ``documents/files.py``."""

    def found(place: _Place, system: fs.FileSystem) -> list[tuple[str, fs.FileInfo]]:
        parts = place.path.split("/")
        first = next(number for number, part in enumerate(parts) if has_magic(part))
        folder = place._replace(path="/".join(parts[:first])).inside
        _in_time(lambda: system.get_file_info(folder))  # a long list may take longer
        return place.named(_matching(system, folder, [_pattern(part) for part in parts[first:]]))

    return _listed(uri, found)


def _pattern(part: str) -> str:
    """A part of a pattern without its escapes; characters that were escaped stand for themselves.

    >>> _pattern("a%5B1%5D*%20.xml")
    'a[[]1]* .xml'
    """
    return unquote(
        re.sub("%(?:2A|3F|5B)", lambda found: f"[{found[0]}]", part, flags=re.IGNORECASE)
    )


def is_pattern(uri: str) -> bool:
    """Whether a URI has a pattern in its path.

    >>> is_pattern("s3a://b/date=*/"), is_pattern("s3://b/d?region=eu-west-1")
    (True, False)
    """
    return has_magic(_Place.of(uri).path)


class _Place(NamedTuple):
    """Where a URI leads.

    Attributes:
        root: the scheme, the authority and a ``/``, as given.
        path: of the file or folder behind that, with its escapes: an escaped ``[`` is no pattern.
        options: of the file system, from ``?`` on.
    """

    root: str
    path: str
    options: str

    @classmethod
    def of(cls, uri: str) -> _Place:
        found = _REMOTE.fullmatch(uri)
        assert found is not None, uri
        scheme, slashes, rest = found[1].lower(), found[2], found[3]
        if scheme not in _PYARROW:
            raise UsageError(
                f"{uri}: Tamis reads {', '.join([*_MOUNTED, *_PYARROW])}, and not {scheme}: have "
                "Spark read it, spark.read.format('binaryFile').load(…), and match the column "
                "content"
            )
        rest, options = _without_options(rest)
        authority, _, path = rest.partition("/")
        if _PYARROW[scheme] in ("hdfs", "viewfs") and len(slashes) != 2:  # the default's
            authority, path = "", rest
        return cls(f"{found[1]}://{authority}/", path.rstrip("/"), options)

    @property
    def scheme(self) -> str:
        return _PYARROW[self.root.partition(":")[0].lower()]

    @property
    def system(self) -> tuple[fs.FileSystem, str]:
        """The file system, and where the root is in it."""
        return _connected(self.scheme, self.root.partition("://")[2], self.options)

    @property
    def inside(self) -> str:
        """The path in the file system."""
        base = self.system[1]
        between = "/" if base and self.path and not base.endswith("/") else ""
        return f"{base}{between}{unquote(self.path)}"

    def named(self, infos: Iterable[fs.FileInfo]) -> list[tuple[str, fs.FileInfo]]:
        """Files and folders with their URIs, in order."""
        base = self.system[1].rstrip("/")
        paths = {info.path: info for info in infos}
        return [
            (f"{self.root}{escaped(path[len(base) :].lstrip('/'))}{self.options}", paths[path])
            for path in sorted(paths)
        ]

    def failure(self, error: Exception) -> str:
        """Why a file system does not answer, and what it needs."""
        return f"{' '.join(str(error).split())[:300]} ({_SETTINGS[self.scheme]})"


def _listed(uri: str, ask: Callable[[_Place, fs.FileSystem], T]) -> T:
    """What a file system says of a URI; a ``UsageError`` if it does not."""
    place = _Place.of(uri)
    try:
        system, _ = _in_time(lambda: place.system)
        return ask(place, system)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UsageError(f"{uri}: cannot list it: {place.failure(error)}") from None


@lru_cache(maxsize=64)
def _connected(scheme: str, authority: str, options: str) -> tuple[fs.FileSystem, str]:
    """A file system, and where in it the root of its URIs is."""
    container, mark, host = authority.rstrip("/").rpartition("@")
    if scheme == "abfs" and mark:
        return _azure(host, dict(parse_qsl(options[1:]))), container
    system, base = fs.FileSystem.from_uri(f"{scheme}://{authority}{options}")
    return system, base


def _azure(host: str, options: Mapping[str, str]) -> fs.FileSystem:
    """The storage of an account: with its key, which pyarrow takes from no URI."""
    account, _, domain = host.partition(".")  # account.dfs.core.windows.net
    domain = domain.partition(".")[2]
    scheme = "http" if options.get("enable_tls") == "false" else "https"
    services = {f"{name}_storage_scheme": scheme for name in ("blob", "dfs")}
    services |= {
        (name := f"{service}_storage_authority"): options.get(name, f".{service}.{domain}")
        for service in ("blob", "dfs")
    }
    key, token = map(os.environ.get, ("AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN"))
    return fs.AzureFileSystem(account, account_key=key, sas_token=token, **services)


def _in_time(ask: Callable[[], T]) -> T:
    """What a call returns or raises, within ``SECONDS_MAX``; it is left alone after that."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(ask())
        except BaseException as error:  # which the caller raises
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return done.result(SECONDS_MAX)
    except FutureTimeout:
        raise OSError(f"no answer within {SECONDS_MAX:.0f} s") from None


def at_once(ask: Callable[[S], T], items: Sequence[S]) -> list[T]:
    """What ``ask`` returns for each item, or the first that it raises; several ask at a time."""
    if len(items) < 2:
        return list(map(ask, items))
    pool = ThreadPoolExecutor(ASKED_AT_ONCE)
    try:
        return list(pool.map(ask, items))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _infos(system: fs.FileSystem, folder: str, *, recursive: bool = False) -> Sequence[fs.FileInfo]:
    selector = fs.FileSelector(folder, allow_not_found=True, recursive=recursive)
    found: Sequence[fs.FileInfo] = system.get_file_info(selector)
    return found


def _matching(system: fs.FileSystem, folder: str, pattern: Sequence[str]) -> list[fs.FileInfo]:
    """What matches in a folder; the first part of the pattern has magic in it."""
    name, rest = pattern[0], pattern[1:]
    if name == "**":  # all at once: a request for each folder would take long
        return [
            info
            for info in _infos(system, folder, recursive=True)
            if (rest or info.type == fs.FileType.File)
            and _fits(info.path[len(folder) :].strip("/").split("/"), pattern)
        ]
    found = [info for info in _infos(system, folder) if _is_called(info.base_name, name)]
    if not rest:
        return found
    plain = next((n for n, part in enumerate(rest) if has_magic(part)), len(rest))
    below = ["/".join([info.path, *rest[:plain]]) for info in found]
    if plain < len(rest):
        within = at_once(lambda place: _matching(system, place, rest[plain:]), below)
        return list(chain.from_iterable(within))
    named = at_once(system.get_file_info, below)
    return [info for info in named if info.type != fs.FileType.NotFound]


def _fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether names match the parts of a pattern.

    >>> [_fits(["a", "b", "c.xml"], p) for p in (["**", "*.xml"], ["*", "*.xml"], ["a", "**"])]
    [True, False, True]
    """
    if not pattern or not names:
        return not pattern and not names
    if pattern[0] != "**":
        return _is_called(names[0], pattern[0]) and _fits(names[1:], pattern[1:])
    if len(pattern) == 1:
        return not any(name.startswith(".") for name in names)
    is_below = not names[0].startswith(".") and _fits(names[1:], pattern)
    return is_below or _fits(names, pattern[1:])


def _is_called(name: str, pattern: str) -> bool:
    is_hidden = name.startswith(".") and not pattern.startswith(".")
    return not is_hidden and fnmatchcase(name, pattern)


def _without_options(path: str) -> tuple[str, str]:
    """A path, and the options of its file system: what follows a ``?`` that is no pattern.

    >>> _without_options("b/?.xml?region=eu"), _without_options("b/1?.xml")
    (('b/?.xml', '?region=eu'), ('b/1?.xml', ''))
    """
    place, mark, options = path.rpartition("?")
    return (place, mark + options) if "=" in options and "/" not in options else (path, "")
