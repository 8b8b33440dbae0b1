"""The native library: what is refused before it runs, and how its kernels are called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tamis.core.errors import LibraryError, UsageError
from tamis.core.kernel import library
from tamis.core.kernel.build import PACKAGES, kernel_modules
from tamis.core.kernel.library import FOLDER, LEVELS, LIST, SOURCES, open_library


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the library, to damage."""
    return Path(shutil.copytree(FOLDER, tmp_path / "native"))


def change_list(folder: Path, **changes: object) -> None:
    made = json.loads((folder / LIST).read_text())
    (folder / LIST).write_text(json.dumps({**made, **changes}))


def truncate(folder: Path) -> None:
    for file in folder.glob("*.so"):
        os.truncate(file, file.stat().st_size // 2)


def remove_libraries(folder: Path) -> None:
    for file in folder.glob("*.so"):
        file.unlink()


def rename_levels(folder: Path) -> None:
    made = json.loads((folder / LIST).read_text())["levels"]
    change_list(folder, levels={"x86-64-v9": next(iter(made.values()))})


FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "absent": (lambda folder: (folder / LIST).unlink(), "there is no native library of kernels"),
    "truncated": (truncate, "is damaged"),
    "gone": (remove_libraries, "cannot read"),
    "another processor": (rename_levels, "is for processors of x86-64-v9, and this one has"),
    "other sources": (lambda folder: change_list(folder, digest="0"), "made of other sources"),
    "a source that is gone": (
        lambda folder: change_list(folder, sources=["nothing.py"]),
        "made of other sources",
    ),
    "no list": (lambda folder: (folder / LIST).write_text("{"), "cannot be read"),
    "an empty list": (lambda folder: (folder / LIST).write_text("{}"), "cannot be read"),
    "a deep list": (lambda folder: (folder / LIST).write_text("[" * 200_000), "cannot be read"),
    **{
        f"{key} are {value!r}": (partial(change_list, **{key: value}), "cannot be read")
        for key, value in [
            ("levels", None),
            ("levels", dict.fromkeys(LEVELS)),
            ("levels", {level: {"file": 5, "digest": "0"} for level in LEVELS}),
            ("sources", None),
            ("sources", [1]),
            ("sources", ["a\0"]),
            ("kernels", None),
            ("kernels", {"tamis_core_kernel_table_copy_pairs": [["int7"], ""]}),
            ("kernels", {"tamis_core_kernel_table_copy_pairs": None}),
        ]
    },
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_library_that_does_not_belong_here_is_refused(fault: str, folder: Path) -> None:
    open_library(folder)
    damage, expected = FAULTS[fault]
    damage(folder)
    with pytest.raises(LibraryError, match=expected) as caught:
        open_library(folder).caller("tamis_core_kernel_table_copy_pairs")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("pip install --force-reinstall tamis")


def test_a_level_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    built = list(json.loads((FOLDER / LIST).read_text())["levels"])
    monkeypatch.setenv("TAMIS_LEVEL", built[-1])
    assert built[-1] in open_library().path.name
    monkeypatch.setenv("TAMIS_LEVEL", "x86-64-v9")
    with pytest.raises(UsageError, match=r"TAMIS_LEVEL=x86-64-v9: built are .*; this processor"):
        open_library()


def test_no_kernel_is_missing() -> None:
    declared = set()
    for module in kernel_modules():
        lines = (SOURCES / library_path(module)).read_text().splitlines()
        for before, line in pairwise(lines):
            if before == "@kernel":
                declared.add(f"{module}.{line.split('(')[0].removeprefix('def ')}")
    assert len(declared) > 80
    expected = {name.replace(".", "_") for name in declared}
    assert expected == set(open_library().prototypes)
    with pytest.raises(LibraryError, match="the kernel nothing is missing from kernels-"):
        open_library().caller("nothing")


def library_path(module: str) -> Path:
    return Path(*module.split(".")).with_suffix(".py")


@pytest.mark.parametrize(
    "state",
    [
        np.zeros(8, np.int32),
        np.zeros(16, np.int64)[::2],
        np.zeros(8, np.float64),
        np.int64(5),
        np.broadcast_to(np.int64(5), (8,)),
    ],
)
def test_what_is_no_state_is_refused(state: Any) -> None:
    """A kernel would write beyond it, or anywhere."""
    compact = open_library().caller(
        "tamis_matching_engines_automaton_kernels_overlay_compact_overlay"
    )
    with pytest.raises(TypeError, match="a state is a"):
        compact(state)


def test_arrays_of_other_types_are_refused() -> None:
    rehash = open_library().caller("tamis_core_kernel_table_fill_slots")
    words, slots = np.zeros(4, np.uint64), np.zeros(8, np.int32)
    for arguments in [(words, 0, words), (slots, 0, slots), (words.reshape(2, 2), 0, slots)]:
        with pytest.raises(TypeError, match="a kernel takes a contiguous"):
            rehash(*arguments)
    with pytest.raises(ValueError, match="shorter"):
        rehash(words, 0)


# -- processes -----------------------------------------------------------------------------------

_MATCH = "import tamis; print(list(tamis.compile({'x': '//b'}).match('<a><b/></a>')))"
_KERNEL = """
import numpy as np
from tamis.core.kernel.table import copy_pairs
table, into = np.array([5, 7, 0, 0]), np.zeros(8, np.int64)
copy_pairs(table, into)
print(into[into != 0].tolist())
"""
_WITHOUT_NUMBA = "import sys; sys.modules.update(numba=None, llvmlite=None)\n"


def run(code: str, sources: Path = SOURCES, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(sources), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


_EVERYTHING = """
import tamis
assert list(tamis.compile({'x': '//b'}).match('<a><b/></a>')) == ['x']
assert list(tamis.compile({'x': '//a//b', 'y': '/a/b'}, engine='nfa').match('<a><b/></a>'))
assert list(tamis.compile({'x': '//a//b'}, engine='pma').match('<a><b/></a>'))
assert list(tamis.compile({'x': '//a//b'}, engine='twigstacks').match('<a><b/></a>'))
assert len(tamis.compile({n: f'/a/b{n}' for n in range(3000)}).match('<a><b7/></a>')) == 1
assert list(tamis.compile_events({'x': 'n > 3'}).match({'n': 5})) == ['x']
assert list(tamis.Transformer({'t': '<t>{ for $b in //b return $b }</t>'}).transform('<b/>'))
import tamis_workload as workload
assert b''.join(workload.dblp(records=1))
assert 'numba' not in sys.modules or sys.modules['numba'] is None
"""


def test_nothing_imports_numba() -> None:
    done = run(_WITHOUT_NUMBA + _EVERYTHING)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the packages, to change."""
    ignored = shutil.ignore_patterns("__pycache__")
    for package in PACKAGES:
        shutil.copytree(SOURCES / package, tmp_path / package, ignore=ignored)
    return tmp_path


def test_other_sources_are_compiled_in_memory_or_refused(sources: Path) -> None:
    """With one line, where Numba is; else with an error of one line.

    One small kernel is compiled here. Others are in ``test_every_kernel_with_every_index_checked``.
    """
    with (sources / "tamis/documents/tokenizer/kernels/scan.py").open("a") as source:
        source.write("# changed\n")
    done = run(_KERNEL, sources)
    assert (done.stdout, done.stderr.count("\n")) == ("[5, 7]\n", 1), done.stderr
    assert "was made of other sources" in done.stderr
    assert "Numba compiles kernels in memory" in done.stderr
    refused = run(_WITHOUT_NUMBA + _MATCH, sources)
    assert refused.returncode == 1
    assert "LibraryError: the native library was made of other sources" in refused.stderr


def test_ways_of_running_kernels() -> None:
    for mode in ("native", "python"):
        assert run(_MATCH, TAMIS_KERNELS=mode).stdout == "['x']\n"
    done = run(_MATCH, TAMIS_KERNELS="fast")
    assert "TAMIS_KERNELS=fast: write native, jit or python" in done.stderr


def test_two_processes_that_build_at_once(sources: Path) -> None:
    """One waits for the other, and finds what that one made."""
    others = ("documents", "events", "language", "matching", "transform")
    for part in (*(f"tamis/{part}" for part in others), "tamis_papers", "tamis_workload"):
        shutil.rmtree(sources / part)  # the kernels of tamis.core will do
    native = sources / "tamis/core/kernel/native"
    shutil.rmtree(native)
    command = [sys.executable, "-m", "tamis.core.kernel.build", "--level", "x86-64-v2"]
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    both = [
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate()[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert sorted("kernels were compiled in" in text for text in said) == [False, True]
    found = open_library(native, sources)
    assert "tamis_core_kernel_table_copy_pairs" in found.prototypes
    assert sorted(path.suffix for path in native.iterdir()) == ["", "", ".json", ".so"]


def test_the_list_of_levels_is_complete() -> None:
    assert set(library.processor_levels()) <= set(library.LEVELS)
