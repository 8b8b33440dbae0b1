"""What a command writes: results, as JSON, and messages; and the status it exits with."""

from __future__ import annotations

import enum
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING

import click
from click.exceptions import Exit

from tamis.core.arguments import to_json
from tamis.core.errors import DocumentError, EventError, TamisError, UnwritableOutput, UsageError
from tamis.core.limits import Limits

if TYPE_CHECKING:
    from tamis.cli.documents import Target


_CLEAR_LINE = "\r\x1b[K"
_MINUTE = 60


class Status(enum.IntEnum):
    """What a command exits with, where not all is well (0)."""

    FAILED = 1
    """The output cannot be written. ``check``: Tamis and the other processor differ."""
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
    log = logging.getLogger("tamis")
    log.addHandler(_WARNINGS)  # once, although commands are called inside of groups
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
        raise Exit(_status_of(error)) from None
    finally:
        log.removeHandler(_WARNINGS)


def _status_of(error: TamisError) -> Status:
    if isinstance(error, UnwritableOutput):
        return Status.FAILED
    return Status.DOCUMENTS if isinstance(error, DocumentError | EventError) else Status.USAGE


class _WarningHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warn(in_options(" ".join(record.getMessage().split())))


_WARNINGS = _WarningHandler(logging.WARNING)


@contextmanager
def writing(name: str) -> Iterator[None]:
    """End the command with a message if something cannot be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        say(f"cannot write {name}: {error.strerror}")
        discard_output()
        raise Exit(Status.FAILED) from None


@contextmanager
def reading(name: object) -> Iterator[None]:
    """Make a ``UsageError`` of what keeps a file from being read."""
    try:
        yield
    except (OSError, ValueError) as error:  # a NUL in the path, or no UTF-8
        raise UsageError(f"cannot read {name}: {getattr(error, 'strerror', error)}") from None


def standard_input() -> IO[bytes]:
    """Its bytes; a ``UsageError`` if it is closed."""
    if sys.stdin is None:  # as it is after <&-
        raise UsageError("standard input is closed")
    return sys.stdin.buffer


def discard_output() -> None:
    """Keep Python from complaining, when it ends, that it cannot write what is still to write."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError):  # it is no file
                os.dup2(nowhere, stream.fileno())


# -- messages, on standard error -------------------------------------------------------------------

_LIMITS = "|".join(field.name for field in fields(Limits))
# How the library names an argument or a function → the option of commands in its place.
_OPTIONS = (
    (rf"\bthe limit (?:is [\d,]+ \()?({_LIMITS})\b(?: = [\d,]+|\))?", r"\g<0> (--limit \1=…)"),
    (r"(?<=with )match_records\(\)", "--record TAG"),
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
        (name,) = re.findall(r"--[a-z]+(?:-[a-z]+)*", option)[:1]
        with_command = option.replace(name, f"{_command_prefix(name)}{name}", 1)
        message = re.sub(pattern, with_command, message)
    return message


def _command_prefix(option: str) -> str:
    """``tamis match``, which has all of the options above, where the running command lacks one."""
    context = click.get_current_context(silent=True)
    has_it = context is None or any(option in param.opts for param in context.command.params)
    return "" if has_it else "tamis match "


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

    Yields a function to call after each document, or with how many were done since the last call.
    """
    if sys.stderr is None or not sys.stderr.isatty() or output_is_terminal:
        yield lambda _count=1: None
        return
    from rich import console, progress  # noqa: PLC0415 - takes long to import

    in_bytes = of == "bytes"
    columns = (
        progress.BarColumn(),
        progress.DownloadColumn() if in_bytes else progress.MofNCompleteColumn(),
        progress.TextColumn("," if in_bytes else f"{of},"),
        progress.TimeRemainingColumn(compact=True),
        progress.TextColumn("left"),
    )
    terminal = console.Console(stderr=True)
    with progress.Progress(
        *columns, console=terminal, transient=True, redirect_stdout=False
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda count=1: bar.advance(task, count)


@contextmanager
def status_line() -> Iterator[Callable[[object], None]]:
    """Show how far a job is: in a line that changes; one a minute, if standard error is a file."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    next_time = monotonic() + _MINUTE

    def show(said: object) -> None:
        nonlocal next_time
        if is_terminal:
            width = shutil.get_terminal_size().columns
            sys.stderr.write(f"{_CLEAR_LINE}{f'tamis: {said}'[:width]}")
            sys.stderr.flush()
        elif monotonic() >= next_time:
            next_time += _MINUTE
            say(str(said))

    try:
        yield show
    finally:
        if is_terminal:
            sys.stderr.write(_CLEAR_LINE)


# -- results, on standard output or in a file ------------------------------------------------------


@dataclass
class Results:
    """Where results go.

    Attributes:
        name: what messages call it.
        at_once: pass each result on at once, for a reader who waits for it.
        errors: how many documents, events or messages are in error.
    """

    stream: IO[bytes]
    name: str
    at_once: bool
    errors: int = 0

    @property
    def is_terminal(self) -> bool:
        return self.stream.isatty()

    def write(self, result: Mapping[str, object]) -> None:
        """Write one object."""
        self.write_bytes(to_json(result).encode() + b"\n")

    def write_error(self, target: Target, error: DocumentError, record: int | None = None) -> None:
        """Write and count a document, or a record of it, that is in error."""
        self.errors += 1
        self.write(of_error(target, error, record))

    def write_text(self, text: str, end: str = "\n") -> None:
        """Write text for human readers, whatever the encoding of their terminal."""
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        self.write_bytes((text + end).encode(encoding, "backslashreplace"))

    def close(self) -> None:
        """Write what is left; nothing may follow."""
        with writing(self.name):
            self.stream.close()

    def write_bytes(self, data: bytes) -> None:
        with writing(self.name):
            self.stream.write(data)
            if self.at_once:
                self.stream.flush()


def of_document(target: Target, record: int | None = None) -> dict[str, object]:
    """How a result begins: with the document, its number and that of the record, if it has one."""
    found: dict[str, object] = {"document": target.name}
    if target.number is not None:
        found["number"] = target.number
    if record is not None:
        found["record"] = record
    return found


def of_error(target: Target, error: DocumentError, record: int | None = None) -> dict[str, object]:
    """The result of a document in error, or of a record."""
    return {
        **of_document(target, record),
        "error": in_options(error.message),
        "line": error.line,
        "column": error.column,
    }


@contextmanager
def open_results(output: Path | None = None) -> Iterator[Results]:
    """Standard output (also for ``-``), or a file; errors make the exit status 3.

    A file appears, or is replaced, when all results are in it; a command that is stopped leaves
    what was there. What is not a regular file (a device, a pipe) is written to as it is.
    """
    with _written(output) as results:
        yield results
    if results.errors:
        raise Exit(Status.DOCUMENTS)


@contextmanager
def _written(output: Path | None) -> Iterator[Results]:
    if output is None or str(output) == "-":
        if sys.stdout is None:  # as it is after >&-
            raise UnwritableOutput("standard output is closed")
        yield Results(sys.stdout.buffer, "standard output", at_once=True)
    elif os.path.exists(output) and not os.path.isfile(output):
        with _opened(output, "wb", str(output), at_once=True) as results:
            yield results
    else:
        target = _replaceable(output)
        part = target.with_name(f".tamis-{os.getpid()}.part")
        with _opened(part, "xb", str(output), at_once=False) as results:
            try:
                yield results
                results.close()
                with writing(results.name):
                    if target.exists():
                        shutil.copymode(target, part)
                    part.replace(target)
            finally:
                part.unlink(missing_ok=True)


def _replaceable(output: Path) -> Path:
    """The file to replace: what a link names, not the link."""
    target = Path(os.path.realpath(output))
    try:
        target.stat()
    except FileNotFoundError:
        pass
    except OSError as error:  # better now than when the work is done
        raise UnwritableOutput(f"cannot write {output}: {error.strerror}") from None
    return target


@contextmanager
def _opened(path: Path, mode: str, name: str, at_once: bool) -> Iterator[Results]:
    try:
        stream: IO[bytes] = path.open(mode)
    except OSError as error:
        raise UnwritableOutput(f"cannot write {name}: {error.strerror}") from None
    results = Results(stream, name, at_once)
    try:
        yield results
        results.close()
    finally:
        with suppress(OSError):  # it was reported when writing failed
            stream.close()
