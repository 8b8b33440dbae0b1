"""Checks of arguments that many functions take, each raising a ``UsageError``; and JSON."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import GeneratorType
from typing import TypeGuard

from tamis.core.errors import UsageError
from tamis.core.limits import DEFAULT_LIMITS, Limits


def checked_path(path: object) -> Path:
    """The path of a file.

    >>> checked_path(3)
    Traceback (most recent call last):
    tamis.core.errors.UsageError: the path of a file is a str or a pathlib.Path, not int
    """
    if not isinstance(path, str | os.PathLike):
        raise UsageError(
            f"the path of a file is a str or a pathlib.Path, not {type(path).__name__}"
        )
    return Path(os.fsdecode(path))


def checked_limits(limits: object) -> Limits:
    """Bounds; the default ones for None.

    >>> checked_limits(5)
    Traceback (most recent call last):
    tamis.core.errors.UsageError: limits is a tamis.Limits, such as Limits(depth=100), not int
    """
    if limits is None:
        return DEFAULT_LIMITS
    if not isinstance(limits, Limits):
        raise UsageError(
            "limits is a tamis.Limits, such as Limits(depth=100), not " + type(limits).__name__
        )
    return limits


def is_one_of(value: object, choices: Collection[str]) -> bool:
    """Whether a value is one of some strings; it may be anything.

    >>> is_one_of("first", ("first", "all")), is_one_of(["first"], {"first": 1})
    (True, False)
    """
    return isinstance(value, str) and value in choices


_ID_BITS_MAX = 13_000
"""Python writes no integer of over 4,300 digits as a text."""


def id_problem(id: object) -> str:
    """Why an id cannot be used, or "".

    >>> id_problem("a 1"), id_problem(-7), id_problem("")
    ('', '', 'the id is empty')
    """
    if isinstance(id, bool) or not isinstance(id, str | int):
        return "an id is a str or an int"
    if isinstance(id, int) and id.bit_length() > _ID_BITS_MAX:
        return "the id has over 4,000 digits"
    if isinstance(id, int) or (id and id.isprintable()):
        return ""
    if not id:
        return "the id is empty"
    return "the id has a tab, a newline or another character that cannot be printed"


def check_many(items: object, what: str, one: str) -> None:
    """Refuse anything that is no iterable of documents or events.

    Args:
        what: the noun, for messages.
        one: the method that takes a single one, for messages.

    >>> check_many("<a/>", "documents", "match()")
    Traceback (most recent call last):
    tamis.core.errors.UsageError: many documents are an iterable, such as a list, not str: give \
one to match()
    """
    if isinstance(items, str | bytes | bytearray | memoryview | Mapping | os.PathLike):
        hint = f": give one to {one}"
    elif isinstance(items, GeneratorType) and items.gi_frame is None:
        raise UsageError(f"the generator of {what} was used before: it gives them only once")
    elif isinstance(items, Iterable):
        return
    else:
        hint = ""
    kind = type(items).__name__
    raise UsageError(f"many {what} are an iterable, such as a list, not {kind}{hint}")


MANIFEST = "tamis.store"
"""The file that a folder of subscriptions has."""


def is_store(path: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether something is the path of a folder that keeps subscriptions."""
    return isinstance(path, str | os.PathLike) and Path(path, MANIFEST).is_file()


def to_json(value: object) -> str:
    r"""A value as JSON that UTF-8 can hold.

    The bytes of a file name that is not UTF-8 are escaped as Python escapes them: the line is valid
    JSON, and ``os.fsencode`` gives the name back.

    >>> to_json({"document": "né.xml"}), to_json({"document": "n\udce9.xml"})
    ('{"document": "né.xml"}', '{"document": "n\\udce9.xml"}')
    """
    import json  # noqa: PLC0415 - few write any

    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text
