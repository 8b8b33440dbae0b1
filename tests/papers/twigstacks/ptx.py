"""The CUDA kernel compiled without a GPU: ``python -m tests.papers.twigstacks.ptx``.

Prints a line of JSON for each architecture: what ``ptxas`` says of registers and memory, the blocks
of 256 threads that fit on a multiprocessor, and the instructions of the loop over events.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import numba_cuda  # noqa: F401 - registers the target
import nvidia.cuda_nvcc
from numba import cuda, types

from tamis_papers.twigstacks import cuda as at_work
from tamis_papers.twigstacks.program import TwigOptions

_BYTES, _INT32S, _INT64S, _INT = types.uint8[::1], types.int32[::1], types.int64[::1], types.int64
SIGNATURE = (
    *(_BYTES, _INT, _INT, _INT64S, _INT64S, _INT64S, _INT64S, _INT32S),
    *(_INT, _INT, _BYTES, _INT, types.uint8[:, ::1]),
)


class Multiprocessor(NamedTuple):
    """What a streaming multiprocessor has (CUDA C++ Programming Guide, table of features)."""

    threads: int
    blocks: int
    registers: int
    shared_bytes: int


MULTIPROCESSORS = {
    (8, 0): Multiprocessor(2_048, 32, 65_536, 164 << 10),  # A100
    (9, 0): Multiprocessor(2_048, 32, 65_536, 228 << 10),  # H100
}
_RESERVED = 1 << 10
"""Bytes of shared memory that the system takes of each block."""
_WARP_REGISTERS = 256
"""Registers are given to warps in units of so many."""


def ptx_of(cc: tuple[int, int]) -> str:
    """The PTX of the kernel."""
    device = SimpleNamespace(compute_capability=cc)
    with patch("numba.cuda.dispatcher.get_current_device", lambda: device):
        return str(cuda.compile_ptx(at_work.match.py_func, SIGNATURE, cc=cc)[0])


def resources_of(ptx: str, cc: tuple[int, int]) -> dict[str, int]:
    """Registers of a thread, bytes of its stack frame and of spilt registers."""
    ptxas = Path(nvidia.cuda_nvcc.__path__[0]) / "bin" / "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx)
        arguments = ["-v", f"-arch=sm_{cc[0]}{cc[1]}", str(source), "-o", f"{folder}/kernel.cubin"]
        done = subprocess.run([ptxas, *arguments], check=True, capture_output=True, text=True)
    report = done.stderr
    found = {
        "registers": r"Used (\d+) registers",
        "stack_bytes": r"(\d+) bytes stack frame",
        "spill_store_bytes": r"(\d+) bytes spill stores",
        "barriers": r"used (\d+) barriers",
    }
    numbers = {}
    for name, pattern in found.items():
        match = re.search(pattern, report)
        assert match is not None, report
        numbers[name] = int(match[1])
    return numbers


def occupancy(registers: int, cc: tuple[int, int], options: TwigOptions) -> dict[str, Any]:
    """How many blocks fit on a multiprocessor, and what limits them; events of one byte."""
    has = MULTIPROCESSORS[cc]
    warps = -(-options.block // 32)
    own = -(-registers * 32 // _WARP_REGISTERS) * _WARP_REGISTERS * warps
    shared = at_work.EVENT_BYTES * options.stride + options.levels * options.block
    limits = {
        "threads": has.threads // options.block,
        "blocks": has.blocks,
        "registers": has.registers // own,
        "shared_memory": has.shared_bytes // (shared + _RESERVED),
    }
    limit = min(limits, key=lambda name: limits[name])
    return {
        "shared_bytes": shared,
        "blocks_per_multiprocessor": limits[limit],
        "limited_by": limit,
        "occupancy": limits[limit] * options.block / has.threads,
    }


def main() -> None:
    for cc in MULTIPROCESSORS:
        ptx = ptx_of(cc)
        numbers = resources_of(ptx, cc)
        assert f".target sm_{cc[0]}{cc[1]}" in ptx
        found: dict[str, Any] = {
            "architecture": f"sm_{cc[0]}{cc[1]}",
            **numbers,
            **occupancy(numbers["registers"], cc, TwigOptions()),
            "calls": ptx.count("call.uni"),
            "atomics": ptx.count("atom."),
            "barriers_in_ptx": len(re.findall(r"\bbar(?:rier)?\.sync", ptx)),
        }
        print(json.dumps(found))


if __name__ == "__main__":
    main()
