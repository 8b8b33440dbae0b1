"""The examples of the README and of docs/ do what they say, and links lead somewhere.

The examples of a page build on each other, in one folder. A recipe of the cookbook stands alone.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKING = [*PAGES, *(ROOT / "docs").glob("*/*.md"), ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"]

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDS_JAVA = re.compile(r"^\$ tamis run|start_spark", re.MULTILINE)
NEEDS_VERILATOR = re.compile(r"^\$ tamis hardware simulate", re.MULTILINE)


def parts() -> Iterator[Any]:
    """Pages, and recipes of the cookbook, by name; those with a tier of their own are marked."""
    for page in PAGES:
        text = page.read_text("utf-8")
        recipes = re.split(r"^(?=## )", text, flags=re.MULTILINE) if "cookbook" in page.stem else []
        for part in recipes or [text]:
            name = part.splitlines()[0].lstrip("# ") if recipes else page.stem
            blocks = "".join(block[2] for block in BLOCK.finditer(part))
            marks = [pytest.mark.spark] if NEEDS_JAVA.search(blocks) else []
            marks += [pytest.mark.hardware] if NEEDS_VERILATOR.search(blocks) else []
            yield pytest.param(part, id=name, marks=marks)


@pytest.mark.parametrize("text", list(parts()))
def test_examples(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in BLOCK.finditer(text):
        if block[1] == "console":
            for command, expected in console_examples(block[2]):
                said = run(command)
                pattern = re.escape(expected).replace("…", ".*")
                assert re.fullmatch(pattern, said), f"$ {command}{said}"
        elif block[1] == "python":
            check_python(block[2], names)


def console_examples(block: str) -> list[tuple[str, str]]:
    """Commands (with their continuation lines) and what they print, in order."""
    examples = []
    for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = example.splitlines(keepends=True)
        size = 1
        while size < len(lines) and lines[size].startswith(("> ", ">\n")):
            size += 1
        command = lines[0] + "".join(line[1:].removeprefix(" ") for line in lines[1:size])
        examples.append((command, "".join(lines[size:])))
    return examples


def run(command: str) -> str:
    """Standard error and output, and the exit status where it is not 0."""
    binaries = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": binaries},
        check=False,
    )
    status = f"[exit status {done.returncode}]\n" if done.returncode else ""
    return done.stderr + done.stdout + status


def check_python(block: str, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block, {}, "example", None, None)
    test.globs = names
    said: list[str] = []
    doctest.DocTestRunner().run(test, out=said.append, clear_globs=False)
    assert not said, "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_is_executed(page: Path) -> None:
    for block in BLOCK.finditer(page.read_text("utf-8")):
        first = block[2].split("\n", 1)[0]
        expected = {"console": "$ ", "python": ">>> "}.get(block[1])
        if expected:
            assert first.startswith(expected)
        else:
            assert block[1] in {"sh", "text"}
            assert not first.startswith(("$ ", ">>> "))


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.stem)
def test_links(page: Path) -> None:
    prose = BLOCK.sub("", page.read_text("utf-8"))
    for target in re.findall(r"\]\(([^)]+)\)", prose):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        if anchor:
            assert anchor in anchors(file), target


def anchors(page: Path) -> set[str]:
    """What links call the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
