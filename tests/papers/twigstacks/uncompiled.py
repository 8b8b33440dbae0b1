"""The kernels without a compiler: ``python -m tests.papers.twigstacks.uncompiled``.

With ``TAMIS_KERNELS=python``. Compares answers with the reference's, and prints the lines of the
kernels that have not run.
"""

from __future__ import annotations

import sys
from types import FrameType, ModuleType
from typing import Any

from tamis.matching.engines.reference import ENGINE as REFERENCE
from tamis_papers.twigstacks import ENGINE
from tamis_papers.twigstacks.kernels import match, step
from tests.papers.twigstacks.drawing import TRAP, answers
from tests.papers.twigstacks.test_twigstacks import ERRATA

KERNELS = {str(module.__file__): module for module in (match, step)}
RUN: set[tuple[str, int]] = set()


def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
    """Remember the lines of kernels that run."""
    if frame.f_code.co_filename not in KERNELS:
        return None
    RUN.add((frame.f_code.co_filename, frame.f_lineno))
    return trace


def lines_of(module: ModuleType) -> set[int]:
    """The lines of a module's functions."""
    found = set()
    for value in vars(module).values():
        code = getattr(getattr(value, "__wrapped__", value), "__code__", None)
        if code is not None and code.co_filename == module.__file__:
            found |= {line for *_, line in code.co_lines() if line}
    return found


def main() -> None:
    twigs = [twig for twig, _ in ERRATA]
    documents = [TRAP, *(document for _, document in ERRATA)]
    true = ["/a", "//a", "/*", "//*", "//b", "/a/b", "/a/*", "/*/b", "/a[b]"]
    wide = [f"//n{number}" for number in range(128)]
    sys.settrace(trace)
    found = [
        answers(ENGINE, twigs, documents),
        answers(ENGINE, true, ["<a><b/></a>"] * 40),  # more than there is room for at first
        answers(ENGINE, wide, ["<n127/>"]),
    ]
    sys.settrace(None)
    assert found[0] == answers(REFERENCE, twigs, documents)
    assert found[1:] == [[set(true)] * 40, [{"//n127"}]]
    for file, module in KERNELS.items():
        left = lines_of(module) - {line for name, line in RUN if name == file}
        print(module.__name__, sorted(left))


if __name__ == "__main__":
    main()
