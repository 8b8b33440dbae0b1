"""The wheel: built for all levels, in environments without Numba and without a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from tamis.core.kernel.library import FOLDER, architecture_levels, processor_levels

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.14t")
TESTED_WITH = ["elementpath", "hypothesis", "lxml", "pyarrow", "pytest"]
TESTS = ["tests/cases", "tests/events/test_engines.py"]
DRAWN = ["tests/matching/test_drawn.py"]
SAMPLES = ["tests.core.every_kernel", "tests.documents.sample"]
MIB = 1 << 20
# Nothing of this checkout, and no other way to run kernels, may be found.
_ENVIRONMENT = {
    name: value
    for name, value in os.environ.items()
    if name != "PYTHONPATH" and not name.startswith("TAMIS_")
}


def pythons() -> dict[str, str]:
    """The Pythons of this machine, by version: on the PATH, or installed by pyenv."""
    installed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found: dict[str, str] = {}
    for version in VERSIONS:
        candidates = [f"python{version}", *map(str, installed.glob(f"{version}*/bin/python"))]
        for python in candidates:
            asked = [python, "-c", "import sys; print('.'.join(map(str, sys.version_info[:2])))"]
            with suppress(OSError, subprocess.CalledProcessError):
                said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
                if said.strip() == version.rstrip("t"):
                    found.setdefault(version, python)
    return found


def run(words: list[str], folder: Path, **environment: str) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        env={**_ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def build(folder: Path, levels: list[str]) -> Path:
    """The wheel of a copy of the sources.

    It takes the objects that were made of the same sources with the same Numba, all but one: that
    one is compiled in the environment of the build.
    """
    ignored = shutil.ignore_patterns("__pycache__", "native")
    for name in (
        "src",
        "tests",
        "benchmarks",
        "docs",
        "scripts",
        "pyproject.toml",
        "hatch_build.py",
        ".gitignore",
        "README.md",
        "LICENSE",
    ):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    if (FOLDER / "objects").is_dir():
        objects = folder / FOLDER.relative_to(ROOT) / "objects"
        shutil.copytree(FOLDER / "objects", objects)
        min(objects.iterdir(), key=lambda path: path.stat().st_size).unlink()
    # In an environment of its own, as pip install does: with what pyproject.toml asks for alone.
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder / "dist"), "."]
    run(pip, folder, TAMIS_LEVELS=",".join(levels))
    shutil.rmtree(folder / "src")
    (wheel,) = (folder / "dist").iterdir()
    return wheel


@pytest.mark.parametrize("levels", [
    pytest.param(processor_levels()[:1], id="this-processor"),
    pytest.param(architecture_levels(), marks=pytest.mark.long, id="all"),
])  # fmt: skip
def test_the_wheel(levels: list[str], tmp_path: Path) -> None:
    """One wheel serves each Python that is here; its answers are the same at each level.

    The tests run in a copy, outside the checkout, with a PATH that has no compiler. All Pythons
    have the same machine code, so only the newest one runs the tests that draw many documents, and
    only where the wheel is for all levels: other tests draw with what this checkout compiles.
    """
    wheel = build(tmp_path, levels)
    assert "-py3-none-manylinux_2_17_" in wheel.name
    assert wheel.stat().st_size <= 4 * MIB
    with zipfile.ZipFile(wheel) as members:
        libraries = [name for name in members.namelist() if name.endswith(".so")]
    assert len(libraries) == len(levels)
    shown = run([sys.executable, "-m", "auditwheel", "show", str(wheel)], tmp_path)
    assert '"manylinux_2_17_' in shown
    found = pythons()
    assert found
    for version, python in found.items():
        venv = tmp_path / version
        run([python, "-m", "venv", str(venv)], tmp_path)
        interpreter, path = str(venv / "bin/python"), str(venv / "bin")
        run([interpreter, "-m", "pip", "install", "-q", str(wheel), *TESTED_WITH], tmp_path)
        assert "numba" not in run([interpreter, "-m", "pip", "list"], tmp_path)
        draws = version == [*found][-1] and levels == architecture_levels()
        tests = [*TESTS, *DRAWN] if draws else ["--hypothesis-profile=few", *TESTS]
        run([interpreter, "-m", "pytest", "-q", "-x", *tests], tmp_path, PATH=path)
    for sample in SAMPLES:
        said = [
            run([interpreter, "-m", sample], tmp_path, PATH=path, TAMIS_LEVEL=level)
            for level in processor_levels()
            if level in levels
        ]
        assert said[0]
        assert said == said[:1] * len(said)
