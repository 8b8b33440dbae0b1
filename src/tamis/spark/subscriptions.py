"""Where subscriptions come from: Python, files, tables, saved programs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tamis.core.errors import UsageError
from tamis.language.subscriptions import (
    SubscriptionItems,
    Subscriptions,
    Unsupported,
    as_subscriptions,
    check_not_given,
)
from tamis.matching.matcher import CompiledMatcher, compile_subscriptions, load_matcher
from tamis.spark.program import Program, is_program

SubscriptionSet = Program | CompiledMatcher | Subscriptions | SubscriptionItems | DataFrame | str
"""What may be given as subscriptions; a ``str`` or path names a file of them."""

_COLUMNS = ["id", "expression"]


PROGRAM_BYTES_MAX = 4 << 30
"""What a program may take of a machine's memory, if nothing else is said; its workers share it."""


def program(
    subscriptions: SubscriptionSet,
    *,
    namespaces: Mapping[str, str] | None = None,
    default_namespace: str | None = None,
    unsupported: Unsupported = "refuse",
    skip_bad: bool = False,
    bytes_max: int = PROGRAM_BYTES_MAX,
) -> Program:
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
    if isinstance(subscriptions, Program):
        check_not_given(namespaces, default_namespace, unsupported)
        return subscriptions
    matcher = compiled(
        subscriptions, namespaces, unsupported, skip_bad, default_namespace=default_namespace
    )
    made = Program.of(matcher)
    count = min(-(-made.size // max(1, bytes_max)), made.count)
    if count <= 1:
        return made
    parts = tuple(
        replace(Program.of(part), set_version=made.set_version, id_type=made.id_type)
        for part in _divided(matcher, count)
    )
    return replace(made, parts=parts)


def _divided(matcher: CompiledMatcher, count: int) -> Iterator[CompiledMatcher]:
    """Matchers of some of the subscriptions each, about as many in all."""
    rules = matcher.subscriptions.rules
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
    elif isinstance(subscriptions, Program):
        subscriptions = subscriptions.matcher()
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
    """Whether a path is of Parquet: a file or a folder."""
    return path.is_dir() or path.suffix == ".parquet"


def table_items(path: Path) -> list[tuple[Any, Any]]:
    """The ids and expressions of Parquet.

    Raises:
        UsageError: it has none.
    """
    return _pairs(_parquet(path), str(path))


def frame_items(df: Any) -> list[tuple[Any, Any]]:
    """The ids and expressions of a DataFrame.

    Raises:
        UsageError: it has none.
    """
    return _pairs(_collected(df), "the DataFrame")


def _parquet(path: Path) -> pa.Table:
    try:
        return pq.read_table(path, columns=_COLUMNS)
    except (OSError, pa.ArrowException) as error:
        raise UsageError(f"cannot read {path}: {error}") from None


def _collected(df: Any) -> pa.Table:
    missing = [name for name in _COLUMNS if name not in df.columns]
    if missing:
        raise UsageError(
            f"a DataFrame of subscriptions has the columns id and expression, and not only "
            f"{', '.join(df.columns)}"
        )
    return df.select(*_COLUMNS).toArrow()


def _pairs(table: pa.Table, name: str) -> list[tuple[Any, Any]]:
    """The subscriptions of a table, in the order of their ids, since tables have none."""
    missing = [column for column in _COLUMNS if column not in table.column_names]
    if missing or any(table[column].null_count for column in _COLUMNS):
        raise UsageError(f"{name} has subscriptions without {' or '.join(missing or _COLUMNS)}")
    return list(zip(*table.sort_by("id").to_pydict().values(), strict=True))
