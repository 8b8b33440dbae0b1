"""One run of one program: a process, pinned, timed from outside, its answer read and checked.

The protocol is in README.md. This process imports little, on purpose: what the system says of a
child's peak memory begins with that of the process it was forked from.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from benchmarks.declared import Program

ROOT = Path(__file__).parent.parent
_SAID_BYTES = 2_000  # of what a failed program said, at most


class UnavailableError(Exception):
    """What cannot be measured here: a program that is not installed, documents that are absent."""


class AnswerError(Exception):
    """A program that crashed, broke the protocol or gave a wrong answer."""


@dataclass(frozen=True)
class Answer:
    """What a program said, and what the system says of it.

    Attributes:
        times: seconds of each phase.
        counts: what was counted, by name; equal names of all programs have to be equal.
        digest: of the whole answer, or "" where the program gives none.
        version, engine, note: its own words, "" where it has none.
        wall_s: seconds from its start to its end.
        cpu_s: of these, those in which it had a core, of all its threads and children.
        peak_bytes: the most memory that it, or one of its own children, had at a time.
    """

    times: Mapping[str, float]
    counts: Mapping[str, int]
    digest: str = ""
    version: str = ""
    engine: str = ""
    note: str = ""
    wall_s: float = field(default=0.0, compare=False)
    cpu_s: float = field(default=0.0, compare=False)
    peak_bytes: int = field(default=0, compare=False)


@contextmanager
def pinned(cores: int) -> Iterator[list[int]]:
    """Keep this process and its children on a number of cores; gives which (none: unknown).

    Raises:
        UnavailableError: there are not as many.
    """
    if not hasattr(os, "sched_setaffinity"):
        if cores > (os.cpu_count() or 1):
            raise UnavailableError(f"it needs {cores} cores")
        yield []
        return
    before = os.sched_getaffinity(0)
    if cores > len(before):
        raise UnavailableError(f"it needs {cores} cores, and there are {len(before)}")
    chosen = sorted(before)[-cores:]  # the first has most of the system's own work
    os.sched_setaffinity(0, chosen)
    try:
        yield chosen
    finally:
        os.sched_setaffinity(0, before)


def run(program: Program, places: Mapping[str, str], timeout_s: float = 600) -> Answer:
    """Run a program once.

    Args:
        places: what stands in its command in braces, by name; ``python`` is added.

    Raises:
        UnavailableError: it is not installed, or says itself that it cannot run here.
        AnswerError: anything else that is not an answer.
    """
    python = program.checkout / ".venv" / "bin" / "python" if program.checkout else sys.executable
    words = _filled(program, {"python": str(python), **places})
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
        start = time.perf_counter()
        try:
            process = subprocess.Popen(
                words,
                cwd=program.checkout or ROOT,
                env=_environment(program),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=complained,
                start_new_session=True,
            )
        except FileNotFoundError:
            raise UnavailableError(f"{words[0]} is not installed") from None
        except OSError as error:
            raise UnavailableError(f"{words[0]} cannot be run: {error.strerror}") from None
        status, usage = _wait(process, timeout_s)
        wall_s = time.perf_counter() - start
        if status == -signal.SIGKILL and wall_s >= timeout_s:
            raise AnswerError(f"{program.name} was not done after {timeout_s:g} s")
        if status != 0:
            raise AnswerError(
                f"{program.name} ended with status {status}: {_tail(complained) or _tail(said)}"
            )
        return replace(
            _answer(program, _tail(said)),
            wall_s=wall_s,
            cpu_s=usage.ru_utime + usage.ru_stime,
            peak_bytes=usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        )


def _environment(program: Program) -> dict[str, str] | None:
    """That of this process, which is None; but another checkout finds no modules of this one."""
    if program.checkout is None:
        return None
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _filled(program: Program, places: Mapping[str, str]) -> list[str]:
    try:
        return [word.format_map(places) for word in program.command]
    except (KeyError, ValueError, IndexError) as error:
        known = ", ".join(f"{{{name}}}" for name in places)
        raise AnswerError(f"the command of {program.name}: {error}; there are {known}") from None


def _wait(process: subprocess.Popen[bytes], timeout_s: float) -> tuple[int, resource.struct_rusage]:
    """The exit status and what was used; what takes too long is ended."""
    timer = threading.Timer(timeout_s, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage


def _tail(file: IO[bytes]) -> str:
    file.seek(0, os.SEEK_END)
    file.seek(max(0, file.tell() - _SAID_BYTES))
    return file.read().decode(errors="replace").strip()


def _answer(program: Program, said: str) -> Answer:
    """Read the last line of what a program printed."""
    line = said.rpartition("\n")[2]
    try:
        table = json.loads(line)
    except ValueError:
        raise AnswerError(f"the last line of {program.name} is no JSON: {line[:200]!r}") from None
    if not isinstance(table, dict):
        raise AnswerError(f"{program.name} printed no JSON object: {line[:200]!r}")
    if "skip" in table:
        raise UnavailableError(str(table["skip"]))
    times = _numbers(program, table, "times", (int, float))
    counts = _numbers(program, table, "counts", int)
    engine = str(table.get("engine", ""))
    if program.engine is not None and engine != program.engine:
        raise AnswerError(
            f"{program.name} was to use the engine {program.engine}, not {engine or '?'}"
        )
    return Answer(
        times,
        counts,
        digest=str(table.get("digest", "")),
        version=str(table.get("version", "")),
        engine=engine,
        note=str(table.get("note", "")),
    )


def _numbers(
    program: Program,
    table: dict[str, Any],
    key: str,
    types: type[int] | tuple[type[int], type[float]],
) -> dict[str, Any]:
    found = table.get(key)
    if not isinstance(found, dict) or not found:
        raise AnswerError(f'the answer of {program.name} has no "{key}"')
    for name, value in found.items():
        is_number = isinstance(value, types) and not isinstance(value, bool)
        if not is_number or not 0 <= value < float("inf"):
            raise AnswerError(f"the answer of {program.name}: {key}.{name} is {value!r}")
    return found
