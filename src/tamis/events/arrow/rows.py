"""Whatever has record batches → ``Rows``, some thousand at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

from tamis.core.errors import EventError, MissingExtra, UnreadableEvents, UsageError

ROWS = 1 << 15
"""So many rows at most are encoded at once."""
_CELLS = 1 << 22
"""So many cells at most, also of those that are null."""


class Rows(NamedTuple):
    """Some rows.

    Attributes:
        batch: a record batch of pyarrow's, or None where they could not be read.
        row: the number of the first one, from 1.
        error: why they could not be read.
    """

    batch: Any
    row: int
    error: EventError | None = None


def import_pyarrow() -> ModuleType:
    """The package.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import pyarrow  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("arrow", "pyarrow") from None
    module: ModuleType = pyarrow
    return module


def read_rows(source: object) -> Iterator[Rows]:
    """The rows of whatever has some, at most ``ROWS`` at a time, and fewer of very wide ones.

    Where it cannot be read any further, the last one has the error.

    Args:
        source: a record batch, a table, a data set; record batches, as a reader or otherwise; what
            else offers Arrow's stream, or the path of a Parquet file.

    Raises:
        MissingExtra: pyarrow is not installed.
        UsageError: it is none of these.
    """
    pyarrow = import_pyarrow()
    row = 1
    try:
        for batch in _batches(source, pyarrow):
            if not isinstance(batch, pyarrow.RecordBatch):
                raise UsageError(
                    "events are record batches of pyarrow's, a table, a data set or the "
                    f"pathlib.Path of a Parquet file, not {type(batch).__name__}"
                )
            size = max(1, min(ROWS, _CELLS // max(1, batch.num_columns)))
            for start in range(0, batch.num_rows, size):
                yield Rows(batch.slice(start, size), row + start)
            row += int(batch.num_rows)
    except (pyarrow.ArrowException, OSError, ValueError) as error:  # a NUL in the path
        name = f"{os.fspath(source)}: " if isinstance(source, os.PathLike) else "them: "
        reason = " ".join((getattr(error, "strerror", None) or str(error)).split())[:200]
        yield Rows(None, row, UnreadableEvents(f"cannot read {name}{reason}", row))


def _batches(source: Any, pyarrow: ModuleType) -> Iterator[Any]:
    if isinstance(source, os.PathLike):
        from pyarrow import parquet  # noqa: PLC0415 - an extra

        os.stat(source)  # says better why it cannot be read
        with parquet.ParquetFile(source) as file:
            yield from file.iter_batches(batch_size=ROWS)
    elif isinstance(source, pyarrow.RecordBatch):
        yield source
    elif hasattr(source, "__arrow_c_stream__"):
        yield from pyarrow.RecordBatchReader.from_stream(source)
    elif hasattr(source, "to_batches"):
        yield from source.to_batches()
    else:
        is_many = isinstance(source, Iterable) and not isinstance(source, str | bytes)
        yield from source if is_many else [source]
