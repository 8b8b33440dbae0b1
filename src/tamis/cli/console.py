"""What a command says on standard error, and the status it exits with."""

from __future__ import annotations

import enum
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields

from click.exceptions import Exit

from tamis.core.errors import DocumentError, EventError, TamisError
from tamis.core.limits import Limits


class Status(enum.IntEnum):
    """What a command exits with, where not all is well (0)."""

    FAILED = 1
    """The results could not be written. ``check``: Tamis and the other processor differ."""
    USAGE = 2
    """Wrong usage, or a bad subscription."""
    DOCUMENTS = 3
    """Some document or event was in error; the others were answered."""
    INTERRUPTED = 130
    """By Ctrl-C: 128 and the number of the signal, as shells have it."""
    BROKEN_PIPE = 141
    """Nobody reads the results any more, likewise."""


@contextmanager
def reported() -> Iterator[None]:
    """Show warnings; what a user can cause ends in a message and a status, not in a traceback."""
    with _status_of_errors(), _warnings_shown():
        yield


@contextmanager
def _status_of_errors() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        say("interrupted")
        raise Exit(Status.INTERRUPTED) from None
    except BrokenPipeError:
        discard_output()
        raise Exit(Status.BROKEN_PIPE) from None
    except TamisError as error:
        say(in_options(str(error)))
        in_document = isinstance(error, DocumentError | EventError)
        raise Exit(Status.DOCUMENTS if in_document else Status.USAGE) from None


def discard_output() -> None:
    """Keep Python from complaining, when it ends, that it cannot write what is still to write."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError):  # it is no file
                os.dup2(nowhere, stream.fileno())


@contextmanager
def _warnings_shown() -> Iterator[None]:
    """Show what the library warns of while a command runs."""
    log, handler = logging.getLogger("tamis"), _SayingHandler(logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


class _SayingHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warn(in_options(" ".join(record.getMessage().split())))


_LIMITS = "|".join(field.name for field in fields(Limits))
# How the library names what a command has an option for → the option.
_OPTIONS = (
    (rf"\bthe limit (?:is [\d,]+ \()?({_LIMITS})\b(?: = [\d,]+|\))?", r"\g<0> (--limit \1=…)"),
    (r"with match_records\(\)", "with --record TAG"),
    (r"what tamis\.documents\.concatenated\.split\(\) divides", "read with --concatenated"),
    (r"give it to tamis\.load\(\)", "give it as --program"),
    (r'namespaces=\{"(.*?)": "…"\}', r"--ns \1=URI, or --namespaces FILE"),
    (r'namespaces=\{"(.*?)": "(.*?)"\}', r"--ns \1=\2"),
    (r'unsupported="slow"', "--unsupported slow"),
    (r'declared_encoding="ignore"', "--declared-encoding ignore"),
)


def in_options(message: str) -> str:
    """A message of the library, with options in place of arguments and functions.

    >>> in_options("deeper than the limit depth = 5")
    'deeper than the limit depth = 5 (--limit depth=…)'
    """
    for pattern, option in _OPTIONS:
        message = re.sub(pattern, option, message)
    return message


def about(name: str, error: TamisError) -> str:
    """The message of an error about a file, which names the file once."""
    message = in_options(str(error))
    return message if message.startswith(f"cannot read {name}: ") else f"{name}: {message}"


def say(message: str) -> None:
    """A message on standard error; further lines of it are shown below the first."""
    if sys.stderr is not None:  # as it is after 2>&-
        sys.stderr.write(f"tamis: {_printable(message)}\n")


def warn(message: str) -> None:
    """A message about something that did not stop the command."""
    say(f"warning: {message}")


def _printable(text: str) -> str:
    r"""The text, harmless to terminals: control characters and the like are escaped.

    >>> _printable("red\x1b[31m")
    'red\\x1b[31m'
    """
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )


@contextmanager
def progress(
    total: int | None, output_is_terminal: bool, of: str = "documents"
) -> Iterator[Callable[..., None]]:
    """Show how many documents, bytes or others are done, where standard error is a terminal.

    Not where the results come out on a terminal too: they show the progress themselves.

    Yields:
        A function to call after each document, or with how many were done since the last call.
    """
    if sys.stderr is None or not sys.stderr.isatty() or output_is_terminal:
        yield lambda _count=1: None
        return
    from rich.console import Console  # noqa: PLC0415 - takes long to import
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    counted = (
        (DownloadColumn(), TextColumn(","))
        if of == "bytes"
        else (MofNCompleteColumn(), TextColumn(f"{of},"))
    )
    columns = (
        BarColumn(),
        *counted,
        TimeRemainingColumn(compact=True),
        TextColumn("left"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as bar:
        task = bar.add_task("", total=total)
        yield lambda count=1: bar.advance(task, count)
