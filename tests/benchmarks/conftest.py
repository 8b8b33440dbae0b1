"""Fake programs, and experiments that run them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.declared import Experiment, Program, load

DOCUMENTS = 'documents = { kind = "corpus", folder = "tiny", size = 50 }'


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of real documents: two of them, with six elements."""
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    (folder / "one.xml").write_text("<a><b>some words</b><b/></a>")
    (folder / "two.xml").write_text("<a><c d='e'>other</c><b/></a>")
    return tmp_path / "data"


@pytest.fixture
def fake(tmp_path: Path) -> Callable[..., Program]:
    """Makes a program that runs some Python, ``says`` an object, or prints what is ``printed``."""

    def make(
        name: str = "fake",
        says: Any = None,
        printed: str = "",
        code: str = "",
        engine: str | None = None,
    ) -> Program:
        text = json.dumps(says) if says is not None else printed
        path = tmp_path / f"{name}.py"
        path.write_text(f"import sys\n{code}\nprint({text!r})\n")
        return Program(name, (sys.executable, str(path)), engine)

    return make


@pytest.fixture
def declare(tmp_path: Path) -> Callable[..., Experiment]:
    """Reads an experiment from TOML, with the programs given; its path is ``tiny.toml``."""

    def make(*programs: Program, workload: str = DOCUMENTS, more: str = "") -> Experiment:
        lines = ['about = "fake"', 'measure = ["parse"]', "repetitions = 2", more]
        for program in programs:
            command = " ".join(f"'{word}'" for word in program.command)
            lines.append(f"[programs.{program.name}]\ncommand = {json.dumps(command)}")
            if program.engine:
                lines.append(f"engine = {json.dumps(program.engine)}")
        lines.append(f"[workloads.tiny]\n{workload}")
        path = tmp_path / "tiny.toml"
        path.write_text("\n".join(lines))
        return load(path)

    return make
