"""Events as rows of Arrow: a source is read in parts, whose columns are attributes."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, freeze, starts_of
from tamis.core.errors import EventError, MalformedEvent, MissingExtra, UnreadableEvents, UsageError
from tamis.core.limits import Limits
from tamis.events import model as at
from tamis.events.checks import Part, oversized, shown, string_too_long, too_many
from tamis.events.derive import of_string
from tamis.events.kernels.values import find_ones, join_columns
from tamis.events.model import EventBatch
from tamis.language.attributes import ADDRESS, NULL, attribute_of, print_name

ROWS, _CELLS = 1 << 15, 1 << 22
"""So many rows, and cells with nulls included, are encoded at once at most."""

_ADVICE = {
    "binary": "cast it to a string",
    "date": "cast it to an integer or a string",
    "decimal": "cast it to a float or a string",
    "duration": "cast it to an integer",
    "extension": "cast it to its storage type",
    "fixed_size_list": "write {name}[] for some element of it",
    "fixed_size_binary": "cast it to a string",
    "list": "write {name}[] for some element of it",
    "run_end_encoded": "decode it",
    "struct": "write {name}.field for what is in it",
    "time": "cast it to an integer or a string",
}
"""What to do about a type, by the beginning of its name without ``large_``."""

_NO_BYTES = np.zeros(0, np.uint8)
_NO_ROWS = np.zeros(0, np.int64)
_NO_STRINGS = np.zeros(1, np.int64)


def _pyarrow() -> Any:
    try:
        import pyarrow  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("arrow", "pyarrow") from None
    return pyarrow


def read_rows(source: object, rows_max: Callable[[], int] = lambda: ROWS) -> Iterator[Part]:
    """The rows of a source, at most ``rows_max()`` in each part, and fewer of very wide ones.

    Sources and errors are those of :meth:`EventMatcher.match_arrow`. Where the source cannot be
    read any further, the last part has the error.
    """
    pa = _pyarrow()
    row = 1
    try:
        for batch in _batches(source, pa):
            if not isinstance(batch, pa.RecordBatch):
                raise UsageError(
                    "events are record batches of pyarrow's, a table, a data set or the "
                    f"pathlib.Path of a Parquet file, not {type(batch).__name__}"
                )
            size_max = max(1, _CELLS // max(1, batch.num_columns))
            start = 0
            while start < batch.num_rows:
                size = min(rows_max(), size_max)
                yield Part(batch.slice(start, size), row + start)
                start += size
            row += int(batch.num_rows)
    except (pa.ArrowException, OSError, ValueError) as error:  # a NUL in the path
        name = f"{os.fspath(source)}: " if isinstance(source, os.PathLike) else "them: "
        reason = " ".join((getattr(error, "strerror", None) or str(error)).split())[:200]
        yield Part(None, row, UnreadableEvents(f"cannot read {name}{reason}", row, "row"))


def _batches(source: Any, pa: Any) -> Iterator[Any]:
    if isinstance(source, os.PathLike):
        from pyarrow import parquet  # noqa: PLC0415 - an extra

        os.stat(source)  # says better why it cannot be read
        with parquet.ParquetFile(source) as file:
            yield from file.iter_batches(batch_size=ROWS)
    elif isinstance(source, pa.RecordBatch):
        yield source
    elif hasattr(source, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(source)
    elif hasattr(source, "to_batches"):
        yield from source.to_batches()
    else:
        is_many = isinstance(source, Iterable) and not isinstance(source, str | bytes)
        yield from source if is_many else [source]


# -- columns → EventBatch ----------------------------------------------------------------------


class _Column(NamedTuple):
    """The values of a column that are not null."""

    rows: Int64  # ascending
    kinds: Bytes
    bits: Int64  # of strings, their numbers in the column
    string_starts: Int64
    string_bytes: Bytes
    errors: Mapping[int, EventError]  # by the number of a value


def encode_columns(batch: Any, numbers: Mapping[str, int], limits: Limits) -> EventBatch:
    """Encode a record batch. Columns whose names have no numbers are not read.

    Raises ``UsageError`` as :meth:`Encoder.arrow` does.
    """
    errors: dict[int, EventError] = {}
    if batch.num_columns > limits.event_attributes:
        count = sum(map(_is_valid, batch.columns), start=np.zeros(batch.num_rows, np.int64))
        for row in np.flatnonzero(count > limits.event_attributes).tolist():
            errors[row] = too_many(int(count[row]), limits)
    column_names: list[str] = batch.schema.names
    _check_twice(column_names)
    names, columns = [], []
    for index, name in enumerate(column_names):
        if name in numbers:
            column = _column(name, batch.column(index), limits.event_string_bytes)
            names.append(numbers[name])
            columns.append(column)
            for value, error in column.errors.items():
                errors.setdefault(int(column.rows[value]), error)
    return _joined(batch.num_rows, np.array(names, np.int32), columns, errors)


def with_derived(batch: Any, derived: Mapping[str, str]) -> Any:
    """A record batch, with columns of derived names: which strings are folded, and where nulls are.

    ``derived`` has the attribute of each.
    """
    pa = _pyarrow()
    for name, own in derived.items():
        if own not in batch.schema.names:
            continue
        column = batch[own]
        mark = attribute_of(name).mark
        if mark == NULL:
            is_null = [each or None for each in column.is_null().to_pylist()]
            batch = batch.append_column(name, pa.array(is_null, pa.bool_()))
            continue
        of_items = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if _is_string(of_items):
            # As bytes, which need not be UTF-8: that is told where the column is encoded.
            values = column.cast(of_items).cast(pa.large_binary()).to_pylist()
            found = (_of_string(mark, value) for value in values)
            column = pa.array(found, pa.large_binary()).view(pa.large_string())
        elif mark == ADDRESS and not pa.types.is_nested(column.type):
            continue
        batch = batch.append_column(name, column)
    return batch


def rows_of(batch: Any, names: Container[str]) -> list[dict[str, Any]]:
    """The rows of some columns as events, with what is in lists and structures.

    Raises ``UsageError`` for what Python cannot have, such as strings that are not UTF-8.
    """
    read = [name for name in batch.schema.names if name in names]
    _check_twice(read)
    try:
        rows: list[dict[str, Any]] = batch.select(read).to_pylist()
    except (ValueError, KeyError, OverflowError, _pyarrow().ArrowException) as error:
        reason = " ".join(str(error).split())[:200]
        raise UsageError(f"cannot read what is inside of the columns: {reason}") from None
    return rows


def _check_twice(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise UsageError(f"there are several columns {shown(twice)}: rename all but one")


def _of_string(mark: str, value: bytes | None) -> bytes | None:
    """What a mark makes of a string; of one that is not UTF-8, that it is not."""
    try:
        found = None if value is None else of_string(mark, value.decode())
    except UnicodeDecodeError:
        return value
    return None if found is None else str(found).encode()


def _is_valid(values: Any) -> Int64:
    """1 where a column is not null."""
    types = _pyarrow().types
    if types.is_dictionary(values.type):  # pyarrow crashes where the dictionary is of nulls
        if types.is_null(values.type.value_type):
            return np.zeros(len(values), np.int64)
        values = values.indices
    found: Int64 = values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _joined(
    rows: int, names: Int32, columns: list[_Column], errors: Mapping[int, EventError]
) -> EventBatch:
    """Columns beside each other, as events behind each other."""
    is_bad = np.zeros(rows, np.uint8)
    is_bad[list(errors)] = 1
    column_starts = starts_of([len(column.rows) for column in columns])
    strings = [len(column.string_starts) - 1 for column in columns]
    bits = [
        column.bits + first if own else column.bits
        for column, own, first in zip(columns, strings, starts_of(strings), strict=False)
    ]
    byte_starts = starts_of([len(column.string_bytes) for column in columns])
    string_starts = [
        column.string_starts[:-1] + start
        for column, start in zip(columns, byte_starts, strict=False)
    ]
    starts = np.zeros(rows + 1, np.int64)
    total = int(column_starts[-1])
    row_names, kinds = np.empty(total, np.int32), np.empty(total, np.uint8)
    row_bits = np.empty(total, np.int64)
    count = join_columns(
        column_starts,
        np.concatenate([*(column.rows for column in columns), _NO_ROWS]),
        names,
        np.concatenate([*(column.kinds for column in columns), _NO_BYTES]),
        np.concatenate([*bits, _NO_ROWS]),
        is_bad,
        starts,
        row_names,
        kinds,
        row_bits,
    )
    batch = EventBatch(
        starts,
        row_names[:count],
        kinds[:count],
        row_bits[:count],
        np.concatenate([*string_starts, byte_starts[-1:]]),
        np.concatenate([*(column.string_bytes for column in columns), _NO_BYTES]),
        errors,
    )
    freeze(*batch[:6])
    return batch


def _column(name: str, values: Any, string_max: int) -> _Column:
    pa = _pyarrow()
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _dictionary_column(name, values, string_max)
    if _is_string(kind):
        return _string_column(name, values, string_max)
    rows = _rows(values)
    kinds = np.full(len(rows), at.INTEGER, np.uint8)
    errors: dict[int, EventError] = {}
    if pa.types.is_null(kind):
        bits = _NO_ROWS
    elif pa.types.is_boolean(kind):
        kinds[:] = at.BOOLEAN
        bits = values.drop_null().to_numpy(zero_copy_only=False).astype(np.int64)
    elif pa.types.is_integer(kind):
        integers = _numbers(values)[rows]
        if kind == pa.uint64():
            too_large = np.flatnonzero(integers > at.INT64_MAX).tolist()
            errors = dict.fromkeys(too_large, oversized(name))
        bits = integers.astype(np.int64, copy=False)
    elif pa.types.is_floating(kind):
        kinds, bits = at.numbers(_numbers(values)[rows].astype(np.float64, copy=False))
    else:
        text = str(kind)
        word = text.removeprefix("large_")
        found = (advice for prefix, advice in _ADVICE.items() if word.startswith(prefix))
        advice = next(found, "make it numbers, strings or booleans, or leave it out")
        shortened = text if len(text) <= 80 else f"{text[:79]}…"
        raise UsageError(
            f"the column {shown(name)} is of type {shortened}, which values cannot be: "
            + advice.replace("{name}", print_name(name)[:80])
        )
    return _Column(rows, kinds, bits, _NO_STRINGS, _NO_BYTES, errors)


def _numbers(values: Any) -> NDArray[Any]:
    """Numbers of whatever width; anything where they are null."""
    dtype = np.dtype(values.type.to_pandas_dtype())
    return _items(values, values.buffers()[1], dtype, len(values))


def _items(values: Any, buffer: Any, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Items of a buffer, from the array's offset on; none of an empty array, which may lack it."""
    if not len(values):
        return np.zeros(0, dtype)
    return np.frombuffer(buffer, dtype, count, values.offset * dtype.itemsize)


def _rows(values: Any) -> Int64:
    """Where a column is not null."""
    nulls = values.null_count
    if nulls == 0:
        return np.arange(len(values))
    if nulls == len(values):
        return _NO_ROWS
    rows = np.empty(len(values), np.int64)
    bitmap = np.frombuffer(values.buffers()[0], np.uint8)
    bitmap.flags.writeable = False  # kernels take read-only arrays, and some are not
    return rows[: find_ones(bitmap, values.offset, rows)]


def _is_string(kind: Any) -> bool:
    types = _pyarrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _string_column(name: str, values: Any, string_max: int) -> _Column:
    pa = _pyarrow()
    rows = _rows(values)
    values, is_text = _checked_strings(name, values)
    values = values.cast(pa.large_binary()).drop_null()
    _, starts_buffer, bytes_buffer = values.buffers()
    starts = _NO_STRINGS
    if rows.size:  # or there may be no buffer
        starts = _items(values, starts_buffer, np.dtype(np.int64), len(rows) + 1)
    every = _NO_BYTES if bytes_buffer is None else np.frombuffer(bytes_buffer, np.uint8)
    sizes = np.diff(starts)
    errors: dict[int, EventError] = {
        value: string_too_long(name, int(sizes[value]), string_max)
        for value in np.flatnonzero(sizes > string_max).tolist()
    }
    for value, data in enumerate(() if is_text else values.to_pylist()):
        try:
            data.decode()
        except UnicodeDecodeError:
            errors.setdefault(value, MalformedEvent(f"the attribute {shown(name)} is no UTF-8"))
    kinds, every = np.full(len(rows), at.STRING, np.uint8), every[starts[0] : starts[-1]]
    return _Column(rows, kinds, np.arange(len(rows)), starts - starts[0], every, errors)


def _dictionary_column(name: str, values: Any, string_max: int) -> _Column:
    """A column of numbers of words in a dictionary."""
    rows = _rows(values.indices)
    codes = _numbers(values.indices)[rows].astype(np.int64, copy=False)
    if len(codes) and not 0 <= int(codes.min()) <= int(codes.max()) < len(values.dictionary):
        raise UsageError(f"the column {shown(name)} is damaged: its dictionary is too small")
    dictionary = values.dictionary
    if len(dictionary) > len(values):  # or it would be read again for each few rows
        used, codes = np.unique(codes, return_inverse=True)
        dictionary = _words(name, dictionary, used)
    words = _column(name, dictionary, string_max)
    if len(words.rows) < len(dictionary):  # some of it is null
        of_words = np.full(len(dictionary), -1, np.int64)
        of_words[words.rows] = np.arange(len(words.rows))
        codes = of_words[codes]
        rows, codes = rows[codes >= 0], codes[codes >= 0]
    bad = np.flatnonzero(np.isin(codes, list(words.errors))) if words.errors else _NO_ROWS
    errors = {value: words.errors[int(codes[value])] for value in bad.tolist()}
    return words._replace(
        rows=rows, kinds=words.kinds[codes], bits=words.bits[codes], errors=errors
    )


def _words(name: str, dictionary: Any, used: Int64) -> Any:
    """The words of a dictionary with some numbers, which are in it; others are not read."""
    pa = _pyarrow()
    kind = dictionary.type
    if pa.types.is_null(kind):
        return pa.nulls(len(used))
    if pa.types.is_string_view(kind):
        dictionary, _ = _checked_strings(name, dictionary)
        dictionary, kind = dictionary.cast(pa.large_binary()), pa.large_string()
    elif not _is_string(kind):
        return dictionary.take(pa.array(used))
    dtype = np.dtype(np.int64 if kind == pa.large_string() else np.int32)
    _, starts_buffer, bytes_buffer = dictionary.buffers()
    size = bytes_buffer.size if bytes_buffer is not None else 0
    offsets = np.zeros(0, dtype)
    if len(used):
        offsets = _items(dictionary, starts_buffer, dtype, len(dictionary) + 1)
    starts, ends = offsets[used].astype(np.int64), offsets[used + 1].astype(np.int64)
    if len(used) and not (starts.min() >= 0 and (starts <= ends).all() and ends.max() <= size):
        raise UsageError(f"the column {shown(name)} is damaged: its strings are not where it says")
    data = memoryview(bytes_buffer) if bytes_buffer is not None else memoryview(b"")
    is_valid = dictionary.is_valid().to_numpy(zero_copy_only=False)[used]
    words = [
        data[start:end].tobytes() if valid else None
        for start, end, valid in zip(starts.tolist(), ends.tolist(), is_valid.tolist(), strict=True)
    ]
    return pa.array(words, pa.large_binary()).view(pa.large_string())


def _checked_strings(name: str, values: Any) -> tuple[Any, bool]:
    """Strings as binary data, and whether all are UTF-8; ``UsageError`` for other damage."""
    pa = _pyarrow()
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
        return raw, False
    return raw, True
