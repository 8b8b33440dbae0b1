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
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from numpy.typing import NDArray

from tamis.core.array_file import open_arrays, write_arrays
from tamis.core.errors import DamagedProgram, ProgramError, UnreadableProgram
from tamis.documents.vocabulary import Names, Projection
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.cache import cache_of, fault_of_cache, named_arrays
from tamis.matching.engines.automaton.check import Arrays, fault_of_program
from tamis.matching.engines.automaton.layout import CacheArrays
from tamis.matching.engines.automaton.program import AutomatonProgram, ProgramArrays, Symbols

log = logging.getLogger("tamis")

PROGRAM_VERSION = 10
"""To be raised when the arrays of programs change, or what they mean."""
CACHE_VERSION = 4
"""Likewise of caches; or when a kernel would compute something else."""

_PREFIX = "automaton."


class SavedProgram(NamedTuple):
    """A program that is in a file, and what else was saved with it, which is not checked.

    Attributes:
        identity: a hash of all that is in the file.
    """

    program: AutomatonProgram
    arrays: dict[str, NDArray[Any]]
    metadata: dict[str, Any]
    identity: str


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
    data = _metadata(program.queries, program.projection, program[3:], metadata or {})
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
        said = _read_metadata(file.metadata)
        is_read = _as_text(_metadata(*said)) == _as_text(file.metadata)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        is_read = False
    if not is_read:
        raise DamagedProgram("its metadata are not those of a program", str(path))
    queries, projection, symbols, more = said
    count = pr.FIRST_SYMBOL + sum(len(kind) for both in symbols for kind in both)
    fault = fault_of_program(own, queries, count)
    if fault is not None:
        raise DamagedProgram(f"{fault} cannot be right", str(path))
    program = AutomatonProgram(ProgramArrays(**own), queries, projection, *symbols)
    return SavedProgram(program, others, more, file.identity)


# -- metadata --------------------------------------------------------------------------------------


# What was read is written again, and has to be what was there: so types need no checks.


def _metadata(
    queries: int, projection: Projection, symbols: tuple[Symbols, ...], more: Mapping[str, Any]
) -> dict[str, Any]:
    """What is said of a program, as JSON.

    Its ``names`` are columns, of what each symbol from FIRST_SYMBOL on is: kinds, which are 1 for
    attributes, namespaces and local names. Of these, one is None for any. There may be a million.
    """
    reads = projection._asdict()
    for name in ("attributes", "text"):
        reads[name] = None if reads[name].some is None else sorted(reads[name].some)
    count = sum(len(names) for kind in symbols for names in kind)
    kinds, spaces, ends = [0] * count, [None] * count, [None] * count  # type: Any, Any, Any
    for kind, (both, namespaces, locals) in enumerate(symbols):
        some = (((namespace, None), symbol) for namespace, symbol in namespaces.items())
        others = (((None, local), symbol) for local, symbol in locals.items())
        for each, symbol in chain(both.items(), some, others):
            row = symbol - pr.FIRST_SYMBOL
            kinds[row], (spaces[row], ends[row]) = kind, each
    ordered = [kinds, spaces, ends]
    return {"queries": queries, "projection": reads, "names": ordered, "more": more}


def _read_metadata(
    data: dict[str, Any],
) -> tuple[int, Projection, tuple[Symbols, Symbols], dict[str, Any]]:
    """What ``_metadata`` wrote; of anything else, what is not the same when it is written."""
    reads: dict[str, Any] = {name: bool(value) for name, value in data["projection"].items()}
    for name in ("attributes", "text"):
        some = data["projection"][name]
        reads[name] = Names(None if some is None else [(str(n), str(local)) for n, local in some])
    symbols = Symbols({}, {}, {}), Symbols({}, {}, {})
    names = zip(*data["names"], strict=True)
    for symbol, (kind, namespace, local) in enumerate(names, pr.FIRST_SYMBOL):
        own = symbols[kind]
        if local is None:
            own.namespaces[str(namespace)] = symbol
        elif namespace is None:
            own.locals[str(local)] = symbol
        else:
            own.names[str(namespace), str(local)] = symbol
    return int(data["queries"]), Projection(**reads), symbols, dict(data["more"])


def _as_text(data: Any) -> bytes:
    return orjson.dumps(data, option=orjson.OPT_SORT_KEYS)


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
