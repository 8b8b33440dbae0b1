"""Runs the command: in this process, which is fast, or as a user's shell does."""

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

from tamis.cli import app

COMMAND = str(Path(sysconfig.get_path("scripts"), "tamis"))


class Outcome(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def results(self) -> list[dict[str, Any]]:
        """The objects on standard output, in order."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def answers(self) -> dict[str, Any]:
        """For each document its matches, or its error."""
        return {
            found["document"]: found.get("matches", found.get("error")) for found in self.results
        }


def run(*args: str | Path, stdin: bytes | None = None) -> Outcome:
    """In this process; an exception that nobody catches fails the test."""
    outcome = CliRunner().invoke(app, list(map(str, args)), input=stdin, catch_exceptions=False)
    return Outcome(outcome.exit_code, outcome.stdout, outcome.stderr)


def run_process(
    *args: str | Path, stdin: bytes = b"", redirect: str = "", **options: Any
) -> Outcome:
    """The installed command, as a process of its own; ``redirect`` is for the shell."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {redirect}', COMMAND, *args],
        input=stdin,
        capture_output=True,
        check=False,
        timeout=60,
        **options,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def start(*args: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    """The installed command, started and left to run."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([COMMAND, *args], **(pipes | options))


def environment(**changes: str) -> dict[str, str]:
    """The environment, changed, without what would turn colours on or off."""
    kept = {
        name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")
    }
    return kept | changes
