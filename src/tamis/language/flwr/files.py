"""Transforming subscriptions in files: a folder of ``ID.xq``, one such file, or NDJSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tamis.core.errors import (
    SubscriptionError,
    SubscriptionId,
    SubscriptionIdError,
    SubscriptionSyntaxError,
    UsageError,
)
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language.entries import TRANSFORMATIONS, file_bytes
from tamis.language.flwr import parse_transformation
from tamis.language.flwr.model import Transformation


class Refused(NamedTuple):
    """A subscription that cannot be used, and the file that it is in."""

    file: Path
    error: SubscriptionError


class TransformationSet(NamedTuple):
    """Subscriptions that were read, in their order, and those that cannot be used."""

    transformations: Mapping[SubscriptionId, Transformation]
    refused: tuple[Refused, ...]


class _Entry(NamedTuple):
    file: Path
    line: int | None
    id: SubscriptionId | None
    text: str | SubscriptionError


def read_transformations(
    paths: Iterable[str | Path],
    namespaces: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> TransformationSet:
    """Read the subscriptions of folders, of files, or of NDJSON.

    Args:
        paths: folders, of which each ``ID.xq`` (or ``ID.xquery``) is one, sorted by name; such
            files; or ``*.ndjson``, with an object ``{"id": …, "query": "…"}`` a line.
        namespaces: prefix → URI, of prefixes that the texts do not declare.
    """
    found: dict[SubscriptionId, Transformation] = {}
    refused: list[Refused] = []
    for entry in chain.from_iterable(_entries(Path(path)) for path in paths):
        try:
            if isinstance(entry.text, SubscriptionError):
                raise entry.text
            assert entry.id is not None
            if entry.id in found:
                raise SubscriptionIdError("the id is used twice: ids must be unique")
            found[entry.id] = parse_transformation(entry.text, namespaces, limits)
        except SubscriptionError as error:
            refused.append(Refused(entry.file, error.located(entry.id, entry.line)))
    return TransformationSet(found, tuple(refused))


def _entries(path: Path) -> Iterator[_Entry]:
    if path.is_dir():
        try:
            files = [file for file in path.iterdir() if file.suffix in TRANSFORMATIONS]
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        files = sorted(file for file in files if not file.is_dir())
        if not files:
            raise UsageError(f"there is no *.xq in {path}: each of them is a subscription")
        for file in files:
            yield _Entry(file, None, file.stem, _text(file_bytes(file)))
        return
    data = file_bytes(path)
    if path.suffix in ("", *TRANSFORMATIONS):
        yield _Entry(path, None, path.stem, _text(data))
        return
    if path.suffix != ".ndjson":
        raise UsageError(f"{path}: transformations are in *.xq, or in *.ndjson")
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if line.strip():
            yield _json_entry(path, number, line)


def _text(data: bytes) -> str | SubscriptionError:
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        return SubscriptionSyntaxError(f"the file is not UTF-8: {error}")


def _json_entry(file: Path, number: int, line: bytes) -> _Entry:
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        not_json = SubscriptionSyntaxError(f"the line is not JSON: {error}")
        return _Entry(file, number, None, not_json)
    if isinstance(given, dict):
        id, query = given.get("id"), given.get("query")
        if isinstance(id, str | int) and not isinstance(id, bool) and isinstance(query, str):
            return _Entry(file, number, id, query)
    expected = SubscriptionSyntaxError('expected an object {"id": …, "query": "…"}')
    return _Entry(file, number, None, expected)
