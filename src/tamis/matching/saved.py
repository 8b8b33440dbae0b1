"""Compiled subscriptions as files: the automaton's program, and all else beside it.

Columns in memory are columns in the file, and read where it is mapped: a million subscriptions are
no Python objects until they are asked for. Queries of other engines are saved as expressions, and
compiled again. The cache of the automaton is in a file of its own (``cache_path``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DamagedProgram, SubscriptionError, UnwritableOutput, UsageError
from tamis.core.index.columns import packed_texts, unpacked_texts
from tamis.core.index.matches import Subscribers
from tamis.core.kernel.check import are_starts, are_within, ascend_within
from tamis.core.limits import Limits
from tamis.language.queries import ParseOptions
from tamis.language.subscriptions import Columns, Subscriptions
from tamis.matching.engine import Searcher
from tamis.matching.engines.automaton import ENGINE as AUTOMATON
from tamis.matching.engines.automaton import compile_queries, open_automaton
from tamis.matching.engines.automaton.execute import Automaton
from tamis.matching.engines.automaton.program import AutomatonProgram
from tamis.matching.engines.automaton.save import (
    SavedProgram,
    load_cache,
    load_program,
    save_cache,
    save_program,
)
from tamis.matching.planner import ENGINES, Assignment, CompiledAssignment, compile_assignment, plan


class Compiled(NamedTuple):
    """Subscriptions, the engine that was asked for or "auto", and what was compiled."""

    subscriptions: Subscriptions
    engine: str
    limits: Limits
    assignments: list[CompiledAssignment]
    subscribers: Subscribers


class LoadedProgram(NamedTuple):
    """The contents of a file, and which file."""

    compiled: Compiled
    path: Path
    identity: str


class _Arrays(NamedTuple):
    """What is beside the automaton's arrays; see ``Columns`` and ``Subscribers``.

    Attributes:
        id_bytes, text_bytes: ids and expressions.
        id_bounds, text_bounds: int32[n + 1] or int64[n + 1]; where each begins, the last one ends.
        others: the queries that are not the automaton's, ascending.
    """

    id_bytes: NDArray[np.uint8]
    id_bounds: NDArray[Any]
    text_bytes: NDArray[np.uint8]
    text_bounds: NDArray[Any]
    query_numbers: Int32
    subscriber_starts: Int64
    subscriber_numbers: Int32
    others: Int32


_DTYPES = _Arrays("|u1", "<i4 <i8", "|u1", "<i4 <i8", "<i4", "<i8", "<i4", "<i4")  # type: ignore[arg-type]


def cache_path(path: Path) -> Path:
    """Where the cache of a program is.

    >>> cache_path(Path("news.tamis")).name
    'news.tamis.cache'
    """
    return path.with_name(f"{path.name}.cache")


# -- saving ----------------------------------------------------------------------------------------


def save(path: Path, compiled: Compiled, searchers: Sequence[Searcher] = ()) -> None:
    """Write all of it to a file, whole or not at all.

    The largest cache of the searchers is saved too. Without any, there is no cache beside the file.

    Raises:
        UnwritableOutput: a file cannot be written.
    """
    try:
        identity = save_program(path, *_written(compiled))
        cached = [getattr(searcher, "cached", searcher) for searcher in searchers]
        known = [searcher for searcher in cached if isinstance(searcher, Automaton)]
        if known:
            most = max(known, key=Automaton.memory_usage)
            save_cache(cache_path(path), most.cache, identity)
        else:
            cache_path(path).unlink(missing_ok=True)  # it would be of another program
    except OSError as error:
        raise UnwritableOutput(f"cannot write {path}: {error.strerror}") from None
    except ValueError as error:  # a NUL in the path, or no name
        raise UnwritableOutput(f"cannot write {str(path)!r}: {error}") from None


def _written(compiled: Compiled) -> tuple[AutomatonProgram, dict[str, Any], dict[str, Any]]:
    """The program, the arrays beside it, and the metadata."""
    others = [np.zeros(0, np.int32)]
    own = None
    for assignment, program in compiled.assignments:
        if isinstance(program, AutomatonProgram):
            own = program
        else:
            others.append(assignment.numbers)
    columns = compiled.subscriptions.columns
    arrays = _Arrays(
        **packed_texts(columns.ids, columns.texts),
        query_numbers=columns.query_numbers,
        subscriber_starts=compiled.subscribers.starts,
        subscriber_numbers=compiled.subscribers.numbers,
        others=np.sort(np.concatenate(others)),
    )
    namespaces, unsupported, limits = compiled.subscriptions.options
    metadata = {
        "engine": compiled.engine,
        "limits": asdict(compiled.limits),
        "namespaces": dict(namespaces),
        "unsupported": unsupported,
        "expression_limits": asdict(limits),
    }
    return own or compile_queries([]), arrays._asdict(), metadata


# -- loading ---------------------------------------------------------------------------------------


class _Fault(Exception):  # noqa: N818 - says what is at fault
    """Something in a file cannot be right."""


def load(path: Path) -> LoadedProgram:
    """Map a file, and check all of it except for the texts of ids and expressions.

    Raises:
        ProgramError: it is no such file, or damaged, or another version of Tamis wrote it.
        MissingExtra: lxml has to evaluate some and is not installed.
    """
    try:
        saved = load_program(path)
    except ValueError as error:  # a NUL in the path
        raise UsageError(f"cannot read {str(path)!r}: {error}") from None
    try:
        compiled = _read(path, saved)
    except (_Fault, SubscriptionError, UnicodeDecodeError) as error:
        raise DamagedProgram(f"{error} cannot be right", str(path)) from None
    return LoadedProgram(compiled, path, saved.identity)


def _read(path: Path, saved: SavedProgram) -> Compiled:
    """The contents of a file, of which the program was checked."""
    engine, limits, rules = _read_metadata(saved.metadata)
    arrays = _typed(saved.arrays)
    for what, is_right in _checks(arrays, saved.program.queries):
        if not is_right:
            raise _Fault(what)
    columns = Columns(*unpacked_texts(arrays._asdict()), arrays.query_numbers)
    subscribers = Subscribers(arrays.subscriber_starts, arrays.subscriber_numbers)
    examples = subscribers.numbers[subscribers.starts[:-1]]
    try:
        subscriptions = Subscriptions.of_columns(columns, examples, rules)
    except UsageError:
        raise _Fault("the namespaces") from None
    assignments = _assignments(path, saved, subscriptions, arrays.others, engine)
    return Compiled(subscriptions, engine, limits, assignments, subscribers)


def _assignments(
    path: Path, saved: SavedProgram, subscriptions: Subscriptions, others: Int32, engine: str
) -> list[CompiledAssignment]:
    """The programs: the automaton's as it is, the others compiled again."""
    queries = subscriptions.queries
    assignments: list[CompiledAssignment] = []
    if saved.program.queries or (not len(others) and engine in ("auto", AUTOMATON.name)):
        own = np.delete(np.arange(len(queries), dtype=np.int32), others)

        def searcher(program: Any, cache_bytes: int) -> Searcher:
            return open_automaton(program, cache_bytes, load_cache(cache_path(path), saved))

        automaton = AUTOMATON._replace(searcher=searcher)
        part = queries.part(own) if len(others) else queries
        assignments.append((Assignment(automaton, part, own), saved.program))
    if len(others) or not assignments:
        parsed = [queries[number] for number in others.tolist()]  # once, for all that read them
        for assignment in plan(parsed, engine):
            numbers = others[assignment.numbers]
            compiled = compile_assignment(assignment._replace(numbers=numbers), subscriptions)
            assignments.append(compiled)
    return assignments


# -- what may be in a file -------------------------------------------------------------------------


def _read_metadata(metadata: Mapping[str, Any]) -> tuple[str, Limits, ParseOptions]:
    """The engine that was asked for, the limits, and how expressions were read."""
    names = {"engine", "limits", "namespaces", "unsupported", "expression_limits"}
    if (
        metadata.keys() != names
        or (engine := metadata["engine"]) not in ["auto", *ENGINES.names()]
        or not isinstance(namespaces := metadata["namespaces"], dict)
        or (unsupported := metadata["unsupported"]) not in ("refuse", "slow")
    ):
        raise _Fault("what it says of itself")
    try:
        limits, bounds = (Limits(**metadata[name]) for name in ("limits", "expression_limits"))
    except (TypeError, UsageError):
        raise _Fault("the limits") from None
    return engine, limits, ParseOptions(namespaces, unsupported, bounds)


def _typed(arrays: Mapping[str, NDArray[Any]]) -> _Arrays:
    if arrays.keys() != set(_Arrays._fields):
        raise _Fault("the arrays beside the program")
    for name, dtypes in _DTYPES._asdict().items():
        if arrays[name].ndim != 1 or arrays[name].dtype.str not in dtypes.split():
            raise _Fault(f"the type of {name}")
    return _Arrays(**arrays)


def _checks(arrays: _Arrays, own: int) -> Iterator[tuple[str, Any]]:
    """What has to be so, and whether it is; each check relies on those before it.

    There are as many ids, and expressions, as subscriptions, and each subscription asks one query,
    of which ``own`` are the automaton's. So there are no more queries than subscriptions, and no
    number in a file asks for more room than the file has.
    """
    numbers, starts = arrays.subscriber_numbers, arrays.subscriber_starts
    count, queries = len(arrays.query_numbers), own + len(arrays.others)
    for what, data, bounds in (
        ("the ids", arrays.id_bytes, arrays.id_bounds),
        ("the expressions", arrays.text_bytes, arrays.text_bounds),
    ):
        yield what, len(bounds) == count + 1 and are_starts(bounds, len(data))
    who = "who asks the queries"
    yield who, queries == len(starts) - 1 and are_starts(starts, count)
    sizes = np.diff(starts)
    yield who, (sizes > 0).all() and len(numbers) == count and are_within(numbers, [(0, count)])
    expected = np.repeat(np.arange(queries, dtype=np.int32), sizes)
    yield who, np.array_equal(arrays.query_numbers[numbers], expected)
    yield who, ascend_within(numbers, starts)  # so no number is there twice
    others = arrays.others
    yield "the other queries", are_within(others, [(0, queries)]) and ascend_within(others)
