"""Results on standard output or in a file, one JSON object a line."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from click.exceptions import Exit

from tamis.cli.console import Status, discard_output, in_options, say
from tamis.core.errors import DocumentError, UsageError

if TYPE_CHECKING:
    from tamis.cli.documents import Target


class Results:
    """Where results go.

    Args:
        stream: what they are written to.
        name: what messages call it.
        at_once: pass each result on at once, for a reader who waits for it.
    """

    def __init__(self, stream: IO[bytes], name: str, at_once: bool) -> None:
        self.stream = stream
        self.name = name
        self.at_once = at_once

    @property
    def is_terminal(self) -> bool:
        """Whether they come out on a terminal."""
        return self.stream.isatty()

    def write(self, result: Mapping[str, object]) -> None:
        """Write one object."""
        self.write_bytes(encode(result))

    def write_text(self, text: str, end: str = "\n") -> None:
        """Write text for human readers, whatever the encoding of their terminal."""
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        self.write_bytes((text + end).encode(encoding, "backslashreplace"))

    def close(self) -> None:
        """Write what is left; nothing may follow."""
        with _failure_reported(self.name):
            self.stream.close()

    def write_bytes(self, data: bytes) -> None:
        """Write bytes as they are."""
        with _failure_reported(self.name):
            self.stream.write(data)
            if self.at_once:
                self.stream.flush()


def encode(result: Mapping[str, object]) -> bytes:
    r"""One line of JSON, in UTF-8.

    The bytes of a file name that is not UTF-8 are escaped as Python escapes them: the line is valid
    JSON, and ``os.fsencode`` gives the name back.

    >>> encode({"document": "né.xml"}).decode()
    '{"document": "né.xml"}\n'
    >>> encode({"document": "n\udce9.xml"}).decode()
    '{"document": "n\\udce9.xml"}\n'
    """
    try:
        return json.dumps(result, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(result).encode() + b"\n"


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
    """Standard output (also for ``-``), or a file.

    A file appears, or is replaced, when all results are in it; a command that is stopped leaves
    what was there. What is not a regular file (a device, a pipe) is written to as it is.

    Raises:
        UsageError: it cannot be written.
    """
    if output is None or str(output) == "-":
        if sys.stdout is None:  # as it is after >&-
            raise UsageError("standard output is closed")
        yield Results(sys.stdout.buffer, "standard output", at_once=True)
    elif os.path.exists(output) and not os.path.isfile(output):
        with _opened(output, "wb", str(output), at_once=True) as results:
            yield results
    else:
        target = _replaceable(output)
        part = target.with_name(f".tamis-{os.getpid()}.part")
        with _opened(part, "xb", str(output), at_once=False) as results, _temporary(part):
            yield results
            results.close()
            with _failure_reported(results.name):
                if target.exists():
                    shutil.copymode(target, part)
                part.replace(target)


def _replaceable(output: Path) -> Path:
    """The file to replace; a link stays, and what it names is replaced."""
    target = Path(os.path.realpath(output))
    try:
        target.stat()
    except FileNotFoundError:
        pass
    except OSError as error:  # better now than when the work is done
        raise UsageError(f"cannot write {output}: {error.strerror}") from None
    return target


@contextmanager
def _opened(path: Path, mode: str, name: str, at_once: bool) -> Iterator[Results]:
    try:
        stream: IO[bytes] = path.open(mode)
    except OSError as error:
        raise UsageError(f"cannot write {name}: {error.strerror}") from None
    results = Results(stream, name, at_once)
    try:
        yield results
        results.close()
    finally:
        with suppress(OSError):  # it was reported when writing failed
            stream.close()


@contextmanager
def _temporary(path: Path) -> Iterator[None]:
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _failure_reported(name: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        say(f"cannot write {name}: {error.strerror}")
        discard_output()
        raise Exit(Status.FAILED) from None
