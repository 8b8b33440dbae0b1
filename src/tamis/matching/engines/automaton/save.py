"""Programs, and caches of them, as files.

A program is a file that is mapped into memory: it is there at once, and all processes that load it
share it. Nothing in it is trusted: a file that Tamis did not write, or that was changed, is refused
before a kernel reads it (``check``). A cache is a file of its own, so that it can be
written again and again while programs stay as they are, and a fault in it costs but what it would
have saved.

A file must not be written into while it is mapped; these functions put another one in its place.

>>> from tempfile import TemporaryDirectory
>>> from tamis.language.xpath import parse
>>> from tamis.matching.engines.automaton import compile_queries
>>> with TemporaryDirectory() as folder:
...     path = Path(folder) / "news.tamis"
...     identity = save_program(path, compile_queries([parse("//a[b = 'x']")]))
...     saved = load_program(path)
...     nothing = load_cache(path.with_suffix(".cache"), saved)
>>> saved.program.queries, saved.identity == identity, nothing
(1, True, None)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray

from tamis.core.array_file import open_arrays, write_arrays
from tamis.core.errors import DamagedProgram, ProgramError, UnreadableProgram
from tamis.documents.vocabulary import Name, Names, Projection
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.cache import cache_of, fault_of_cache, named_arrays
from tamis.matching.engines.automaton.check import Arrays, fault_of_program
from tamis.matching.engines.automaton.layout import CacheArrays
from tamis.matching.engines.automaton.program import AutomatonProgram, ProgramArrays, Symbols

log = logging.getLogger("tamis")

PROGRAM_VERSION = 7
"""To be raised when the arrays of programs change, or what they mean."""
CACHE_VERSION = 4
"""Likewise of caches; or when a kernel would compute something else."""

_PREFIX = "automaton."

T = TypeVar("T")


class SavedProgram(NamedTuple):
    """A program that is in a file, and what else was saved with it, which is not checked.

    Attributes:
        identity: a hash of all that is in the file.
    """

    program: AutomatonProgram
    arrays: dict[str, NDArray[Any]]
    metadata: dict[str, Any]
    identity: str


class _BadMetadata(Exception):  # noqa: N818 - says what is the matter
    """Metadata do not say what they should."""


# -- programs --------------------------------------------------------------------------------------


def save_program(
    path: Path,
    program: AutomatonProgram,
    arrays: Arrays | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> str:
    """Write a program to a file, whole or not at all: the file's identity.

    Args:
        arrays: more of them, with names without a dot.
        metadata: what else there is to say, as JSON.

    Raises:
        OSError: it cannot be written.
    """
    arrays = arrays or {}
    assert not any("." in name for name in arrays), arrays.keys()
    own = {  # the arrays that have rows have them even if there are none
        _PREFIX + name: array.reshape(-1, pr.ROW_COLUMNS[name])
        if pr.ROW_COLUMNS.get(name, -1) > 0
        else array
        for name, array in program.arrays._asdict().items()
    }
    data = {
        "queries": program.queries,
        "projection": _projection_to_json(program.projection),
        "names": _symbols_to_json(program),
        "more": metadata or {},
    }
    return write_arrays(path, "program", PROGRAM_VERSION, {**own, **arrays}, data)


def load_program(path: Path) -> SavedProgram:
    """Map a file into memory, and check that kernels can have the program in it.

    Raises:
        DamagedProgram: it is not as Tamis wrote it.
        OtherVersion: another version of Tamis wrote it.
        UnreadableProgram: there is no such file, or it cannot be read.
    """
    file = open_arrays(path, "program", PROGRAM_VERSION)
    own: dict[str, NDArray[Any]] = {}
    others: dict[str, NDArray[Any]] = {}
    for name, array in file.arrays.items():
        (own if name.startswith(_PREFIX) else others)[name.removeprefix(_PREFIX)] = array
    try:
        data = _object(file.metadata, {"queries", "projection", "names", "more"})
        queries, more = _typed(int, data["queries"]), _typed(dict, data["more"])
        projection, symbols = _projection_of(data["projection"]), _symbols_of(data["names"])
    except _BadMetadata:
        raise DamagedProgram("its metadata are not those of a program", str(path)) from None
    count = pr.FIRST_SYMBOL + sum(len(kind) for both in symbols for kind in both)
    fault = fault_of_program(own, queries, count)
    if fault is not None:
        raise DamagedProgram(f"{fault} cannot be right", str(path))
    program = AutomatonProgram(ProgramArrays(**own), queries, projection, *symbols)
    return SavedProgram(program, others, more, file.identity)


# -- metadata --------------------------------------------------------------------------------------


def _projection_to_json(projection: Projection) -> dict[str, Any]:
    data = projection._asdict()
    for name in ("attributes", "text"):
        data[name] = None if data[name].some is None else sorted(data[name].some)
    return data


def _symbols_to_json(program: AutomatonProgram) -> list[list[Any]]:
    """What each symbol from FIRST_SYMBOL on is: a kind, a namespace and a local name.

    The kind is 1 for attributes; the namespace, or the local name, is None for any.
    """
    data: dict[int, list[Any]] = {}
    for kind, (names, namespaces, locals) in enumerate((program.elements, program.attributes)):
        data |= {symbol: [kind, *name] for name, symbol in names.items()}
        data |= {symbol: [kind, namespace, None] for namespace, symbol in namespaces.items()}
        data |= {symbol: [kind, None, local] for local, symbol in locals.items()}
    return [data[symbol] for symbol in range(pr.FIRST_SYMBOL, len(program.arrays.wildcards))]


def _projection_of(data: Any) -> Projection:
    data = _object(data, set(Projection._fields))
    return Projection(
        _names_of(data["attributes"]),
        _names_of(data["text"]),
        *(_typed(bool, data[name]) for name in ("misc", "prefixes", "lines")),
    )


def _names_of(data: Any) -> Names:
    if data is None:
        return Names(None)
    return Names(_name(pair) for pair in _typed(list, data))


def _name(data: Any) -> Name:
    namespace, local = _several(data, 2)
    return _typed(str, namespace), _typed(str, local)


def _symbols_of(data: Any) -> tuple[Symbols, Symbols]:
    """The symbols of elements, and of attributes."""
    both = Symbols({}, {}, {}), Symbols({}, {}, {})
    for symbol, row in enumerate(_typed(list, data), pr.FIRST_SYMBOL):
        kind, namespace, local = _several(row, 3)
        if _typed(int, kind) not in (0, 1) or namespace is local is None:
            raise _BadMetadata
        symbols = both[kind]
        if local is None:
            symbols.namespaces[_typed(str, namespace)] = symbol
        elif namespace is None:
            symbols.locals[_typed(str, local)] = symbol
        else:
            symbols.names[_name([namespace, local])] = symbol
    return both


def _object(data: Any, names: set[str]) -> dict[str, Any]:
    result: dict[str, Any] = _typed(dict, data)
    if result.keys() != names:
        raise _BadMetadata
    return result


def _several(data: Any, count: int) -> list[Any]:
    if len(_typed(list, data)) != count:
        raise _BadMetadata
    return list(data)


def _typed(kind: type[T], data: Any) -> T:
    """What was data, which has to be of a type; True is no number."""
    if type(data) is not kind:
        raise _BadMetadata
    return data


# -- caches ----------------------------------------------------------------------------------------


def save_cache(path: Path, cache: CacheArrays, identity: str) -> None:
    """Write a cache to a file, whole or not at all; ``identity`` is that of its program's file.

    Raises:
        OSError: it cannot be written.
    """
    write_arrays(path, "cache", CACHE_VERSION, named_arrays(cache), {"program": identity})


def load_cache(path: Path, saved: SavedProgram) -> CacheArrays | None:
    """A warm cache of a program; or None where there is no use in the file, which is logged.

    What is added later stays in this process. Each automaton needs a cache of its own.
    """
    try:
        return _loaded_cache(path, saved)
    except UnreadableProgram as error:
        log.info("there is no warm cache: %s", error)
    except ProgramError as error:
        log.warning("the warm cache is left out: %s", error)
    return None


def _loaded_cache(path: Path, saved: SavedProgram) -> CacheArrays:
    file = open_arrays(path, "cache", CACHE_VERSION, is_private=True)
    if file.metadata != {"program": saved.identity}:
        raise DamagedProgram("it is of another program", str(path))
    cache = cache_of(file.arrays)
    if cache is None:
        raise DamagedProgram("the types of its arrays cannot be right", str(path))
    fault = fault_of_cache(cache, saved.program.arrays, saved.program.queries)
    if fault is not None:
        raise DamagedProgram(f"{fault} cannot be right", str(path))
    return cache
