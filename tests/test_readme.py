"""The README's examples do what it says they do."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_python_examples() -> None:
    assert doctest.testfile(str(README), module_relative=False).failed == 0


def console_examples() -> list[tuple[str, str]]:
    """Commands (with their continuation lines) and what they print, in order."""
    examples = []
    for block in re.findall(r"```console\n(.*?)```", README.read_text(), re.DOTALL):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = example.splitlines(keepends=True)
            size = 1
            while size < len(lines) and lines[size].startswith("> "):
                size += 1
            command = lines[0] + "".join(line[2:] for line in lines[1:size])
            examples.append((command, "".join(lines[size:])))
    return examples


def run(command: str, folder: Path) -> str:
    """Standard error and output, and the exit status where it is not 0."""
    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PATH": binaries},
        check=False,
    )
    status = f"[exit status {done.returncode}]\n" if done.returncode else ""
    return done.stderr + done.stdout + status


@pytest.mark.spark  # one of the examples needs Java, and they build on each other
def test_console_examples(tmp_path: Path) -> None:
    examples = console_examples()
    assert len(examples) > 8
    for command, expected in examples:
        pattern = re.escape(expected).replace("…", ".*")
        said = run(command, tmp_path)
        assert re.fullmatch(pattern, said), f"$ {command}{said}"
