"""Kernels: one specialisation each, cached in a private folder, with every index in bounds."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis import jit
from tests.documents.processes import CHECKED, output, start


def printed(process: subprocess.Popen[str]) -> dict[str, str]:
    """What the process prints, by its first words."""
    return dict(line.rsplit(" ", 1) for line in output(process).splitlines())


def all_but(found: dict[str, str], what: str, expected: str) -> set[str]:
    """The kernels of which something else is said."""
    said = {words: value for words, value in found.items() if words.startswith(f"{what} tamis.")}
    assert len(said) > 40
    return {words for words, value in said.items() if value != expected}


def test_every_kernel() -> None:
    """One specialisation each; no index out of bounds; the second process finds all in the cache.

    What is not in the cache yet takes a minute or two to compile, with checks and without: here,
    beside each other.
    """
    with start("tests.kernels", **CHECKED) as process, start("tests.kernels") as another:
        first, checked = printed(another), printed(process)
    second = printed(start("tests.kernels"))
    assert checked["canary"] == "IndexError"
    assert first["canary"] == second["canary"] == "unnoticed"
    for found in (checked, first, second):
        assert not all_but(found, "signatures of", "1")
        assert found["wrong"] == "None"
    assert not all_but(second, "compiled", "0")
    for answers in ("drawn", "parsed", "read", "filtered", "asked"):
        assert checked[answers] == first[answers] == second[answers]
    assert checked["folder"] != first["folder"] == second["folder"]


_ANNOUNCED = """
import logging, sys
import numba, numpy
logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(name)s: %(message)s")
logging.getLogger("numba").setLevel(logging.WARNING)
from tests.kernels import canary
numba.njit(lambda: 1)()
print("ours:")
for size in (3, 4):
    canary(numpy.zeros(size, numpy.int64), 0)
canary(numpy.zeros(3, numpy.int32), 0)
"""


def test_compiling_is_announced_once_and_only_where_it_is_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = [
        subprocess.run(
            [sys.executable, "-c", _ANNOUNCED], capture_output=True, check=True, text=True
        ).stdout
        for _ in range(2)
    ]
    assert said[0].startswith("ours:\ntamis.jit: compiling, for this version of Tamis")
    assert said[0].count("tamis.core.kernel") == 1
    assert said[1] == "ours:\n"  # it was in the cache


@pytest.fixture
def no_folder_yet() -> Iterator[None]:
    jit.cache_folder.cache_clear()
    yield
    jit.cache_folder.cache_clear()


def is_private(folder: Path) -> bool:
    return stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.usefixtures("no_folder_yet")
def test_the_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jit.cache_folder().is_relative_to(tmp_path)
    assert is_private(jit.cache_folder())


@pytest.mark.usefixtures("no_folder_yet")
@pytest.mark.parametrize("fault", ["nowhere", "a file", "others may write"])
def test_a_private_folder_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if fault == "nowhere":
        monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    elif fault == "a file":
        (tmp_path / "tamis").write_text("")
    else:
        folder = jit.cache_folder()
        folder.chmod(0o777)
        jit.cache_folder.cache_clear()
    folder = jit.cache_folder()
    assert folder.is_dir()
    assert is_private(folder)
    assert not folder.is_relative_to(tmp_path / "tamis")
