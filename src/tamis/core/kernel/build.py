"""Compiles all kernels into one native library: ``python -m tamis.core.kernel.build``.

Numba types each function once and writes LLVM's code for it; all that it makes to be called from
Python is left out. That code is optimised once for each level of processors, however many kernels
call the function. The kernels of a package become one module, of which LLVM makes an object for
each level; ``cc`` links the objects. Objects are kept until a source of theirs changes. To compile
kernel by kernel, with Numba's own files for each, took five times as long.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from tamis.core.kernel.library import (
    FOLDER,
    LEVELS,
    LIST,
    SOURCES,
    architecture_levels,
    digest_of,
    file_digest,
    processor_levels,
)

PACKAGES = ("tamis", "tamis_papers", "tamis_workload")
"""The packages that have kernels."""

_DECLARES = re.compile(r"^@kernel$", re.MULTILINE)
_IMPORTS = re.compile(r"^from (tamis\w*\.[\w.]+) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
_HAS_LAYOUT = re.compile(
    r"\.(kernels\b|\w*layout$|vectors$|program$|core\.kernel\.(table|text|values|ahocorasick|dfa)$)"
)


def main() -> None:
    """Build what the command line asks for."""
    parser = argparse.ArgumentParser(description="Compiles Tamis's kernels into a native library.")
    parser.add_argument(
        "--level",
        action="append",
        choices=[*LEVELS, "all"],
        help="level of processors; may be given several times (default: this processor's best); "
        "all: of this architecture",
    )
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write the library")
    options = parser.parse_args()
    levels = options.level or processor_levels()[:1]
    build(architecture_levels() if "all" in levels else levels, options.folder)


def build(levels: list[str], folder: Path) -> None:
    """Compile all kernels for some levels, unless they are there, made of the same sources.

    Of two processes that build at once, one waits for the other. Whole files are renamed into the
    folder, and the list last: who opens a library meanwhile finds the old one or the new one.

    Raises:
        SystemExit: there is no linker.
        subprocess.CalledProcessError: a kernel needs more of C than the library may.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        modules = kernel_modules()
        sources = sorted(_path(name) for name in _sources(modules))
        digest = digest_of(sources)
        if not _is_built(levels, digest, folder):
            _build(levels, modules, sources, folder)
            if digest_of(sources) != digest:
                (folder / LIST).unlink()
                sys.exit("tamis: sources changed while they were compiled: build again")


def _is_built(levels: list[str], digest: str, folder: Path) -> bool:
    """Whether a folder has the library that these sources make."""
    try:
        made = json.loads((folder / LIST).read_bytes())
        return made["digest"] == digest and all(
            file_digest(folder / made["levels"][level]["file"]) == made["levels"][level]["digest"]
            for level in levels
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _build(levels: list[str], modules: list[str], sources: list[str], folder: Path) -> None:
    started = perf_counter()
    linker = _linker()
    os.environ["TAMIS_KERNELS"] = "build"  # of the processes below
    names = sorted({module.rpartition(".kernels")[0] for module in modules})
    sys.stderr.write(
        f"tamis: compiling the kernels for {', '.join(levels)}: about a minute on two cores\n"
    )
    parts = [[name for name in modules if name.rpartition(".kernels")[0] == part] for part in names]
    parts.sort(key=lambda part: -sum(_file(name).stat().st_size for name in part))
    with ProcessPoolExecutor(
        len(os.sched_getaffinity(0)), get_context("spawn"), max_tasks_per_child=1
    ) as pool:
        everywhere = len(parts)
        compiled = list(
            pool.map(_compiled, parts, [levels] * everywhere, [folder / "objects"] * everywhere)
        )
    kernels = {symbol: kernel for part in compiled for symbol, kernel in part.kernels.items()}
    made = {}
    with tempfile.TemporaryDirectory(dir=folder) as working:
        for level in levels:
            objects = [part.objects[level] for part in compiled]
            linked = _linked(linker, objects, list(kernels), Path(working))
            digest = file_digest(linked)
            file = f"kernels-{level}-{digest[:12]}.so"
            linked.rename(folder / file)
            made[level] = {"file": file, "digest": digest}
        listed = Path(working, LIST)
        what = {"digest": digest_of(sources), "levels": made, "sources": sources}
        listed.write_text(json.dumps({**what, "kernels": kernels}, indent=1))
        listed.rename(folder / LIST)
    used = {level["file"] for level in made.values()}
    for part in parts:  # objects of other levels are kept, too
        used |= {file.name for file in _files(part, [*LEVELS], folder / "objects").values()}
    for old in (*folder.glob("*.so"), *(folder / "objects").iterdir()):
        if old.name not in used:
            old.unlink(missing_ok=True)
    taken = perf_counter() - started
    sys.stderr.write(f"tamis: {len(kernels)} kernels were compiled in {taken:.0f} s\n")


# -- sources ------------------------------------------------------------------------------------


def kernel_modules() -> list[str]:
    """The modules that declare kernels, by name."""
    return [
        ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        for package in PACKAGES
        for path in sorted((SOURCES / package).rglob("*.py"))
        if _DECLARES.search(path.read_text(encoding="utf-8"))
    ]


def _sources(modules: Iterable[str]) -> set[str]:
    """The modules that machine code is made of: kernels, layouts, and what these import.

    Imports of other modules are not followed: kernels have constants of them, and types.
    """
    found: set[str] = set()
    todo = [*modules, *(f"tamis.core.kernel.{name}" for name in ("build", "codegen", "declare"))]
    while todo:
        module = todo.pop()
        if module in found or not _file(module).is_file():
            continue
        found.add(module)
        todo.append(f"{module}_llvm")
        if not _HAS_LAYOUT.search(module):
            continue
        for source, names in _IMPORTS.findall(_file(module).read_text(encoding="utf-8")):
            todo += [source, *(f"{source}.{name}" for name in re.findall(r"\w+", names))]
    return found


def _path(module: str) -> str:
    """The file of a module, in the folder of the packages."""
    path = Path(*module.split("."))
    is_package = (SOURCES / path / "__init__.py").is_file()
    return (path / "__init__.py" if is_package else path.with_suffix(".py")).as_posix()


def _file(module: str) -> Path:
    return SOURCES / _path(module)


# -- compiling ----------------------------------------------------------------------------------


class _Compiled(NamedTuple):
    """What became of some modules.

    Attributes:
        kernels: the prototype of each kernel, by symbol.
        objects: machine code, by level.
    """

    kernels: dict[str, tuple[list[Any], str]]
    objects: dict[str, bytes]


def _files(modules: list[str], levels: list[str], kept: Path) -> dict[str, Path]:
    """By level: the file of the object of some modules, named by all that it is made of."""
    sources = digest_of(sorted(_path(name) for name in _sources(modules)))
    made_by = [f"{name} {version(name)}" for name in ("numba", "llvmlite")]
    digests = {
        level: hashlib.sha256("\n".join([sources, *made_by, level]).encode()).hexdigest()
        for level in levels
    }
    return {level: kept / f"{digest}.json" for level, digest in digests.items()}


def _compiled(modules: list[str], levels: list[str], kept: Path) -> _Compiled:
    """Compile the kernels of some modules, unless that was done; runs in a process of its own.

    Args:
        kept: the folder of objects.
    """
    files = _files(modules, levels, kept)
    found = _Compiled({}, {})
    for level, file in files.items():
        with suppress(OSError, ValueError, TypeError, LookupError):
            read = json.loads(file.read_bytes())
            found.kernels.update(read["kernels"])
            found.objects[level] = bytes.fromhex(read["object"])
    missing = [level for level in levels if level not in found.objects]
    if not missing:
        return found
    from tamis.core.kernel.codegen import Collector  # noqa: PLC0415 - imports Numba
    from tamis.core.kernel.declare import KERNELS  # noqa: PLC0415

    for module in modules:
        import_module(module)
    collector = Collector()
    for kernel in KERNELS:
        if kernel.__module__ in modules:
            collector.add(kernel)
    kept.mkdir(exist_ok=True)
    for level in missing:
        code = found.objects[level] = collector.object_for(level)
        working = files[level].with_suffix(f".{os.getpid()}")
        working.write_text(json.dumps({"kernels": collector.prototypes, "object": code.hex()}))
        working.rename(files[level])
    return _Compiled(collector.prototypes, found.objects)


# -- linking ------------------------------------------------------------------------------------


def _linked(linker: list[str], objects: Iterable[bytes], symbols: list[str], folder: Path) -> Path:
    """A shared library of objects that offers these symbols alone."""
    files = [folder / f"{number}.o" for number, _ in enumerate(objects)]
    for file, code in zip(files, objects, strict=True):
        file.write_bytes(code)
    script = folder / "symbols"
    script.write_text(f"{{ global: {' '.join(f'{symbol};' for symbol in symbols)} local: *; }};")
    library = folder / "kernels.so"
    # With all symbols defined, and no library but libc: a kernel that needs Python fails here.
    flags = ["-shared", "-s", "-nostdlib", "-Wl,-z,defs", "-Wl,--gc-sections"]
    flags += [f"-Wl,--version-script={script}", "-o", str(library)]
    subprocess.run([*linker, *flags, *files, "-lc"], check=True)
    return library


def _linker() -> list[str]:
    """The system's C compiler, which links; or else that of the package ziglang."""
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    try:
        import_module("ziglang")
    except ImportError:
        sys.exit("tamis: there is no C compiler to link with: install cc, or: pip install ziglang")
    return [sys.executable, "-m", "ziglang", "cc"]


if __name__ == "__main__":
    main()
