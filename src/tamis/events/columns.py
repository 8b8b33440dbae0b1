"""Columns of Arrow → ``AttributeBatch``: each is an attribute, each row an event."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import freeze
from tamis.errors import EventError, MalformedEvent, MissingExtra, UnreadableEvents, UsageError
from tamis.events.model import (
    BOOLEAN,
    INT64_MAX,
    INTEGER,
    STRING,
    AttributeBatch,
    Bytes,
    Int64,
    numbers,
)
from tamis.events.values import oversized, shown, string_too_long, too_many
from tamis.limits import Limits

ROWS = 1 << 14
"""So many rows at most are encoded at once."""
_CELLS = 1 << 20

Bools = NDArray[np.bool_]

_ADVICE = {
    "binary": "cast it to a string",
    "date": "cast it to an integer or a string",
    "decimal": "cast it to a float or a string",
    "duration": "cast it to an integer",
    "extension": "cast it to its storage type",
    "fixed_size_list": "make its items columns of their own",
    "fixed_size_binary": "cast it to a string",
    "list": "make its items columns of their own",
    "run_end_encoded": "decode it",
    "struct": "make its fields columns of their own",
    "time": "cast it to an integer or a string",
}
"""What to do about types, by what their names begin with, but for ``large_``."""


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
        yield from source if isinstance(source, Iterable) else [source]


class _Column(NamedTuple):
    """A column as arrays.

    Attributes:
        is_there: where it is not null.
        kinds, bits: of the values that are there; of strings, their numbers in the column.
        string_starts, string_bytes: the column's strings, as in a batch.
        errors: of rows.
    """

    is_there: Bools
    kinds: Bytes
    bits: Int64
    string_starts: Int64
    string_bytes: Bytes
    errors: Mapping[int, EventError]


def encode_columns(batch: Any, places: Mapping[str, int], limits: Limits) -> AttributeBatch:
    """Encode a record batch.

    Args:
        places: of the names in the filter table.

    Raises:
        UsageError: there are two columns of a name, or one of a type that values cannot have, or it
            is damaged.
    """
    rows = batch.num_rows
    columns = []
    errors: dict[int, EventError] = {}
    count = np.zeros(rows, np.int64)
    for name, values in zip(_checked_names(batch.schema), batch.columns, strict=True):
        try:
            column = _column(name, values, limits.event_string_bytes)
        except UsageError:
            if name in places:
                raise
            continue  # nobody asks what is in it
        count += column.is_there
        for row, error in column.errors.items():
            errors.setdefault(row, error)
        if name in places:
            columns.append((places[name], column))
    for row in np.flatnonzero(count > limits.event_attributes).tolist():
        errors[row] = too_many(int(count[row]), limits)
    return _joined(rows, columns, errors)


def _checked_names(schema: Any) -> list[str]:
    names: list[str] = schema.names
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise UsageError(f"there are several columns {shown(twice)}: rename all but one")
    return names


def _joined(
    rows: int, columns: list[tuple[int, _Column]], errors: Mapping[int, EventError]
) -> AttributeBatch:
    """Columns beside each other, as events behind each other."""
    is_there = _beside([column.is_there for _, column in columns], rows, np.bool_)
    is_there[list(errors)] = False
    starts = np.zeros(rows + 1, np.int64)
    np.cumsum(is_there.sum(axis=1), out=starts[1:])
    names = np.array([number for number, _ in columns], np.int32)
    bits = []
    string_starts, string_bytes = [], []
    strings = size = 0
    for _, column in columns:
        bits.append(np.where(column.kinds == STRING, column.bits + strings, column.bits))
        string_starts.append(column.string_starts[:-1] + size)
        string_bytes.append(column.string_bytes)
        strings += len(column.string_starts) - 1
        size += len(column.string_bytes)
    batch = AttributeBatch(
        starts,
        np.broadcast_to(names, is_there.shape)[is_there],
        _beside([column.kinds for _, column in columns], rows, np.uint8)[is_there],
        _beside(bits, rows, np.int64)[is_there],
        np.concatenate([*string_starts, np.array([size], np.int64)]),
        np.concatenate([*string_bytes, _NO_BYTES]),
        errors,
    )
    freeze(*batch[:6])
    return batch


def _beside(columns: list[NDArray[Any]], rows: int, dtype: Any) -> NDArray[Any]:
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0), dtype)


_NO_BYTES = np.zeros(0, np.uint8)
_NO_STRINGS = np.zeros(1, np.int64)


def _column(name: str, values: Any, string_max: int) -> _Column:
    """Read a column.

    Raises:
        UsageError: values cannot have its type, or it is damaged.
    """
    import pyarrow as pa  # noqa: PLC0415 - an extra

    kind = values.type
    if pa.types.is_dictionary(kind):
        _check_codes(name, values)
        if _is_string(kind.value_type) and len(values.dictionary) <= len(values):
            return _coded(name, values, string_max)
        return _column(name, values.dictionary_decode(), string_max)
    if _is_string(kind):
        return _strings(name, values, string_max)
    is_there = _is_there(values)
    kinds = np.full(len(values), INTEGER, np.uint8)
    errors: dict[int, EventError] = {}
    if pa.types.is_null(kind):
        bits = np.zeros(len(values), np.int64)
    elif pa.types.is_boolean(kind):
        kinds[:] = BOOLEAN
        bits = values.fill_null(False).to_numpy(zero_copy_only=False).astype(np.int64)
    elif pa.types.is_integer(kind):
        given = _numbers(values)
        if kind == pa.uint64():
            for row in np.flatnonzero(is_there & (given > INT64_MAX)).tolist():
                errors[row] = oversized(name)
        bits = given.astype(np.int64)
    elif pa.types.is_floating(kind):
        kinds, bits = numbers(_numbers(values).astype(np.float64))
    else:
        raise _unusable(name, kind)
    return _Column(is_there, kinds, bits, _NO_STRINGS, _NO_BYTES, errors)


def _numbers(values: Any) -> NDArray[Any]:
    """Numbers of whatever width; anything where they are null."""
    dtype = np.dtype(values.type.to_pandas_dtype())
    buffer = values.buffers()[1]
    if not len(values):  # it may have no buffer
        return np.zeros(0, dtype)
    return np.frombuffer(buffer, dtype, len(values), values.offset * dtype.itemsize)


def _is_there(values: Any) -> Bools:
    if values.null_count == 0:
        return np.ones(len(values), np.bool_)
    found: Bools = values.is_valid().to_numpy(zero_copy_only=False)
    return found.copy()


def _is_string(kind: Any) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _strings(name: str, values: Any, string_max: int) -> _Column:
    """A column of strings."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    values, not_text = _checked_strings(name, values)
    if pa.types.is_binary_view(values.type):
        values = values.cast(pa.large_binary())
    is_there = _is_there(values)
    rows = len(values)
    _, starts_buffer, bytes_buffer = values.buffers()
    starts, every = _NO_STRINGS, _NO_BYTES
    if rows:  # or there may be no buffer
        is_wide = values.type == pa.large_binary()
        dtype = np.dtype(np.int64 if is_wide else np.int32)
        starts = np.frombuffer(starts_buffer, dtype, rows + 1, values.offset * dtype.itemsize)
        starts = starts.astype(np.int64)
    if bytes_buffer is not None:
        every = np.frombuffer(bytes_buffer, np.uint8)
    sizes = np.diff(starts)
    errors: dict[int, EventError] = {
        row: string_too_long(name, int(sizes[row]), string_max)
        for row in np.flatnonzero(is_there & (sizes > string_max)).tolist()
    }
    for row in not_text:
        errors.setdefault(row, MalformedEvent(f"the attribute {shown(name)} is no UTF-8"))
    return _Column(
        is_there,
        np.full(rows, STRING, np.uint8),
        np.arange(rows),
        starts - starts[0],
        every[starts[0] : starts[-1]],
        errors,
    )


def _coded(name: str, values: Any, string_max: int) -> _Column:
    """A column of strings by their numbers in a dictionary."""
    words = _strings(name, values.dictionary, string_max)
    is_there = _is_there(values.indices)
    codes = np.where(is_there, _numbers(values.indices), 0).astype(np.int64)
    if len(words.is_there):
        is_there &= words.is_there[codes]
    errors = {
        row: words.errors[code]
        for code in words.errors
        for row in np.flatnonzero(is_there & (codes == code)).tolist()
    }
    return words._replace(
        is_there=is_there,
        kinds=np.full(len(values), STRING, np.uint8),
        bits=codes,
        errors=errors,
    )


def _check_codes(name: str, values: Any) -> None:
    """See that the numbers of a column are of its dictionary.

    Raises:
        UsageError: they are not.
    """
    codes = _numbers(values.indices)[_is_there(values.indices)]
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < len(values.dictionary):
        raise UsageError(f"the column {shown(name)} is damaged: its dictionary is too small")


def _checked_strings(name: str, values: Any) -> tuple[Any, list[int]]:
    """Strings as binary data, and the rows that are not UTF-8.

    Raises:
        UsageError: they are damaged otherwise.
    """
    import pyarrow as pa  # noqa: PLC0415 - an extra

    if pa.types.is_string_view(values.type):
        raw = values.cast(pa.binary_view())
    else:
        raw = values.view(pa.binary() if values.type == pa.string() else pa.large_binary())
    try:
        raw.validate(full=True)
    except pa.ArrowInvalid as error:
        raise UsageError(f"the column {shown(name)} is damaged: {error}") from None
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        data = enumerate(raw.to_pylist())
        return raw, [row for row, text in data if text is not None and not _is_text(text)]
    return raw, []


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _unusable(name: str, kind: Any) -> UsageError:
    text = str(kind)
    word = text.removeprefix("large_")
    found = (advice for prefix, advice in _ADVICE.items() if word.startswith(prefix))
    advice = next(found, "make it numbers, strings or booleans, or leave it out")
    shortened = text if len(text) <= 80 else f"{text[:79]}…"
    return UsageError(
        f"the column {shown(name)} is of type {shortened}, which values cannot be: {advice}"
    )
