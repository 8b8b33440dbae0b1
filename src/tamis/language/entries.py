"""Ids and expressions from Python, from text files and from NDJSON, as columns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import GeneratorType, MappingProxyType
from typing import NamedTuple

import numpy as np

from tamis.core.arguments import checked_path, id_problem
from tamis.core.array_file import MAGIC
from tamis.core.arrays import Int64
from tamis.core.errors import (
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    SubscriptionSyntaxError,
    UsageError,
)
from tamis.core.index.columns import Ids, Texts
from tamis.core.lazy import lazy_pattern

SubscriptionItems = (
    Mapping[str, str]
    | Mapping[int, str]
    | Mapping[SubscriptionId, str]
    | Iterable[tuple[SubscriptionId, str]]
    | os.PathLike[str]
)
"""What makes a set: id → expression, pairs of these, or the path of a file with these."""

BOM = b"\xef\xbb\xbf"
TRANSFORMATIONS = (".xq", ".xquery")
"""How files of one transformation each end: they are not for here, but for ``flwr``."""
BULK_MIN = 100
"""So many subscriptions at least are read by kernels.

For fewer, loading those kernels (5 ms) takes longer than it saves: reading 100 takes 4 to 6 ms
without them, and 500 take 12 to 25.
"""


class Entries(NamedTuple):
    """Subscriptions that are still to be read.

    ``lines`` are those of a file that they are in, from 1; ``refused`` has the errors of others.
    ``interfaces``, of events, is what lines of JSON say of interfaces, by id.
    """

    ids: Ids
    expressions: Texts
    lines: Int64 | None
    refused: list[SubscriptionError]
    interfaces: Mapping[SubscriptionId, object] = MappingProxyType({})


def given_entries(items: SubscriptionItems) -> Entries:
    """The entries of a mapping, of pairs or of a file; a ``UsageError`` where it is none.

    >>> list(given_entries({"x": "//a"}).expressions)
    ['//a']
    """
    if isinstance(items, os.PathLike):
        return file_entries(items)
    pairs = [_checked_pair(pair) for pair in given_pairs(items, "expression")]
    ids = Ids.of(id for id, _ in pairs)
    return Entries(ids, Texts.of(expression for _, expression in pairs), None, [])


def given_pairs(items: object, what: str) -> Iterable[object]:
    """The pairs of a mapping, or those that are given, each still to be checked.

    ``what`` says in errors what an id stands for.
    """
    if isinstance(items, Mapping):
        return items.items()
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        path = f": a file is given as pathlib.Path({items!r:.80})" if isinstance(items, str) else ""
        raise UsageError(
            f"subscriptions are a mapping of id → {what}, pairs of these, or a pathlib.Path of "
            f"a file, not {type(items).__name__}{path}"
        )
    if isinstance(items, GeneratorType) and items.gi_frame is None:
        raise UsageError("the generator of subscriptions was used before: it gives them only once")
    return items


def file_entries(path: str | os.PathLike[str]) -> Entries:
    """The entries of a file (see :meth:`Subscriptions.from_file`), if it can be read."""
    path = checked_path(path)
    data = file_bytes(path)
    if path.suffix in TRANSFORMATIONS:
        raise UsageError(f"{path} is a transformation: give it to tamis transform")
    if data.startswith(MAGIC):
        raise UsageError(f"{path} is a program: give it to tamis.load()")
    data = data.removeprefix(BOM)
    if path.suffix == ".ndjson":
        return _line_by_line(data, _read_json_line)
    if data.count(b"\n") < BULK_MIN:
        return _line_by_line(data, _read_text_line)
    return _text_entries(data)


def file_bytes(path: Path) -> bytes:
    """What is in a file; a ``UsageError`` where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {error.filename or path}: {error.strerror}") from None
    except ValueError as error:  # a NUL in the path
        raise UsageError(f"cannot read {str(path)!r}: {error}") from None


_Entry = tuple[SubscriptionId, str, object]
"""An id, its expression, and what a line of JSON says of its interface, or None."""


def _line_by_line(data: bytes, read: Callable[[int, bytes], _Entry | None]) -> Entries:
    refused: list[SubscriptionError] = []
    good: list[tuple[int, SubscriptionId, str]] = []
    interfaces: dict[SubscriptionId, object] = {}
    for number, line in enumerate(data.split(b"\n"), start=1):
        try:
            entry = read(number, line.removesuffix(b"\r"))
        except SubscriptionError as error:
            refused.append(error.located(str(number), number))
            continue
        if entry is not None:
            id, expression, interface = entry
            good.append((number, id, expression))
            if interface is not None:
                interfaces[id] = interface
    lines, ids, expressions = zip(*good, strict=True) if good else ((), (), ())
    numbers = np.array(lines, np.int64)
    return Entries(Ids.of(ids), Texts.of(expressions), numbers, refused, interfaces)


def _text_entries(data: bytes) -> Entries:
    """The entries of a large text file, most of which no Python looks at."""
    from tamis.language.plain import reader  # noqa: PLC0415 - imports kernels
    from tamis.language.plain.layout import NUMBERED, ODD  # noqa: PLC0415

    found = reader.found_lines(data)
    refused: list[SubscriptionError] = []
    kept = np.ones(len(found.lines), np.bool_)
    for number in np.flatnonzero(found.tabs == ODD).tolist():
        line = int(found.lines[number])
        start, end = int(found.starts[number]), int(found.ends[number])
        try:
            kept[number] = _read_text_line(line, data[start:end]) is not None
        except SubscriptionError as error:
            kept[number] = False
            refused.append(error.located(str(line), line))
        tab = data.find(b"\t", start, end)
        found.tabs[number] = tab if tab >= 0 else NUMBERED
    if not kept.all():
        found = reader.Lines(*(array[kept] for array in found))
    ids = reader.ids_of_lines(data, found)
    starts = np.where(found.tabs >= 0, found.tabs + 1, found.starts)
    return Entries(ids, Texts(data, starts, found.ends), found.lines, refused)


def _checked_pair(pair: object) -> tuple[SubscriptionId, str]:
    match pair:
        case (str() | int() as id, str() as expression) if not isinstance(id, bool):
            return id, expression
    numbered = ": dict(enumerate(…)) gives ids to expressions" if isinstance(pair, str) else ""
    raise UsageError(
        "a subscription is a pair of an id (str or int) and an expression (str), as in "
        f"{{id: expression}}, not {pair!r:.200}{numbered}"
    )


# What an editor makes of "id<TAB>//path" where it writes spaces for tabs.
_SPACED = lazy_pattern(r"([^\s/\[\]()@*|'\"=<>!,$:.]+) +/")


def _read_text_line(number: int, line: bytes) -> _Entry | None:
    if not line.strip() or line.startswith(b"#"):
        return None
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise SubscriptionSyntaxError(f"the line is not UTF-8: {error}") from None
    id, tab, expression = text.partition("\t")
    if tab:
        return id, expression, None
    spaced = _SPACED.match(text)
    if spaced is None:
        return str(number), text, None
    # As XPath it would be a path that begins with the id, and never be true.
    message = "an id and its expression are divided by a tab, and this line has none"
    hint = "put a tab here; or, if it is all one path, take the space away"
    raise SubscriptionSyntaxError(message, text, spaced.end(1), hint)


def _read_json_line(_number: int, line: bytes) -> _Entry | None:
    return read_json(line, "expression") if line.strip() else None


def read_json(line: bytes, key: str) -> _Entry:
    """An entry of a line of NDJSON whose text stands under a key; a ``SubscriptionSyntaxError``."""
    try:
        given = json.loads(line)
        return *_checked_pair((given["id"], given[key])), given.get("interface")
    except (ValueError, RecursionError) as error:
        raise SubscriptionSyntaxError(f"the line is not JSON: {error}") from None
    except (KeyError, TypeError, UsageError):
        raise SubscriptionSyntaxError(f'expected an object {{"id": …, "{key}": "…"}}') from None


def bad_ids(entries: Entries) -> Iterator[tuple[int, SubscriptionIdError]]:
    """The numbers of entries whose ids cannot be used, and why."""
    for number, id, first in _suspects(entries):
        if first >= 0:
            where = "" if entries.lines is None else f", first in line {entries.lines[first]}"
            problem = f"the id is used twice{where}: ids must be unique"
        else:
            problem = id_problem(id)
        if problem:
            yield number, SubscriptionIdError(problem)


def _suspects(entries: Entries) -> Iterator[tuple[int, SubscriptionId, int]]:
    """Entries to be looked at: their ids, and the first entry with the same id before, or -1."""
    if len(entries.ids) < BULK_MIN:
        seen: dict[SubscriptionId, int] = {}
        for number, id in enumerate(entries.ids):
            first = seen.setdefault(id, number)
            yield number, id, first if first < number else -1
        return
    from tamis.language.plain.reader import suspect_ids  # noqa: PLC0415 - imports kernels

    first_ones, is_odd = suspect_ids(entries.ids)
    for number in np.flatnonzero((first_ones >= 0) | (is_odd != 0)).tolist():
        yield number, entries.ids[number], int(first_ones[number])
