"""What the CUDA kernels cost: their PTX, its registers, and the instructions on the shortest way.

For :mod:`benchmarks.gpu_model`. PTX is what Numba makes of a kernel; registers are those that
``ptxas`` gives. The extra ``cuda`` is needed, and no GPU.
"""

from __future__ import annotations

import heapq
import re
import subprocess
import tempfile
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch


def ptx_of(kernel: Any, signature: tuple[Any, ...], cc: tuple[int, int]) -> str:
    """The PTX of a kernel."""
    cuda: Any = import_module("numba.cuda")
    device = SimpleNamespace(compute_capability=cc)
    with patch("numba.cuda.dispatcher.get_current_device", lambda: device):
        return str(cuda.compile_ptx(kernel.py_func, signature, cc=cc)[0])


def twigstacks_ptx(cc: tuple[int, int], children: str = "arrays") -> str:
    """The PTX of twigstacks; children's matches are in ``"arrays"``, or with ``"atomics"``."""
    from numba import types  # noqa: PLC0415 - the extra cuda

    from tamis_papers.twigstacks import cuda  # noqa: PLC0415

    uint8s, int32s, int64s = types.uint8[::1], types.int32[::1], types.int64[::1]
    number = types.int64
    arrays = (int64s, int64s, int64s, int64s, int32s)
    last = (number, number, uint8s, number, types.uint8[:, ::1])
    kernel = cuda.match_with_atomics if children == "atomics" else cuda.match
    return ptx_of(kernel, (uint8s, number, number, *arrays, *last), cc)


def ccm_ptx(cc: tuple[int, int]) -> str:
    """The PTX of CCM's kernel that evaluates constraints."""
    from numba import types  # noqa: PLC0415 - the extra cuda

    from tamis_papers.pcm import cuda  # noqa: PLC0415

    uint8s, int32s, int64s = types.uint8[::1], types.int32[::1], types.int64[::1]
    uint64s, number = types.uint64[::1], types.int64
    lines, counts, marks = types.int64[:, ::1], types.uint32[:, ::1], types.uint8[:, ::1]
    tables = (uint8s, int64s, int32s, uint64s, int32s, int64s, uint8s, int64s, int64s, uint8s)
    signature = (lines, number, uint64s, uint8s, *tables, int32s, counts, marks, number, number)
    return ptx_of(cuda.evaluate, signature, cc)


def stacks_ptx(cc: tuple[int, int]) -> str:
    """The PTX of the product's kernel."""
    from numba import types  # noqa: PLC0415 - the extra cuda

    from tamis.matching.engines.stacks import cuda  # noqa: PLC0415

    int32s, uint64s, number = types.int32[::1], types.uint64[::1], types.int64
    first = (number, number, int32s, number, number, number, number)
    signature = (*first, int32s, uint64s, uint64s, number, uint64s, uint64s, uint64s)
    return ptx_of(cuda.evaluate, signature, cc)


def resources_of(ptx: str, cc: tuple[int, int]) -> dict[str, int]:
    """Registers of a thread, and bytes of spilt registers."""
    import nvidia.cuda_nvcc  # noqa: PLC0415 - the extra cuda

    ptxas = Path(nvidia.cuda_nvcc.__path__[0]) / "bin" / "ptxas"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx)
        arguments = ["-v", f"-arch=sm_{cc[0]}{cc[1]}", str(source), "-o", f"{folder}/kernel.cubin"]
        done = subprocess.run([ptxas, *arguments], check=True, capture_output=True, text=True)
    patterns = {
        "registers": r"Used (\d+) registers",
        "spill_store_bytes": r"(\d+) bytes spill stores",
    }
    return {name: int(_found(pattern, done.stderr)) for name, pattern in patterns.items()}


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    assert found is not None, text
    return found[1]


# -- instructions counted --------------------------------------------------------------------------

_JUMP = re.compile(r"(?:@!?%p\d+ )?bra(?:\.uni)?\s+(\$L\w+)")
_WIDE = re.compile(r"\.[bsu]64\b")
_FREE = re.compile(r"^(mov|cvta)\b")


class Graph:
    """The basic blocks of PTX, each with what it costs and where it leads.

    A block costs an instruction for each line: two if it works on 64 bits, none if it moves.
    """

    def __init__(self, ptx: str) -> None:
        body = ptx[ptx.index("{") :].split("\n")
        self.lines: list[list[str]] = [[]]
        self.leads: list[list[str | int]] = [[]]
        self.labels: dict[str, int] = {}
        for line in map(str.strip, body):
            if line.startswith("$L"):
                self._next(falls=True)
                self.labels[line.rstrip(":")] = len(self.lines) - 1
            elif line.endswith(";") and not line.startswith((".", "//")):
                self.lines[-1].append(line)
                jump = _JUMP.match(line)
                if jump:
                    self.leads[-1].append(jump[1])
                    self._next(falls=line.startswith("@"))
                elif line.startswith("bar.sync"):
                    self._next(falls=True)
                elif line == "ret;":
                    self._next(falls=False)

    def _next(self, falls: bool) -> None:
        if falls:
            self.leads[-1].append(len(self.lines))
        self.lines.append([])
        self.leads.append([])

    def cost(self, block: int) -> int:
        """Integer instructions of 32 bits."""
        return sum(
            0 if _FREE.match(line) else 2 if _WIDE.search(line) else 1 for line in self.lines[block]
        )

    def having(self, text: str) -> list[int]:
        """The blocks with some text."""
        return [n for n, lines in enumerate(self.lines) if any(text in line for line in lines)]

    def way(self, start: int, ends: set[int], without: str) -> tuple[int, list[int]]:
        """The cost of the cheapest way to one of some blocks without a text; and that way."""
        avoided = set(self.having(without)) if without else set()
        queue, seen = [(0, start, [start])], set[int]()
        while queue:
            cost, block, way = heapq.heappop(queue)
            if block in ends and len(way) > 1:
                return cost, way
            if block in seen:
                continue
            seen.add(block)
            for lead in self.leads[block]:
                target = self.labels[lead] if isinstance(lead, str) else lead
                if target not in avoided or target in ends:
                    heapq.heappush(queue, (cost + self.cost(block), target, [*way, target]))
        raise AssertionError("there is no such way")


def twigstacks_counts(ptx: str) -> dict[str, float]:
    """Instructions of an event and column: start tag, end tag of a leaf, each child at an end.

    With atomic operations, the end tag has its own, and no child costs more.
    """
    graph = Graph(ptx)
    barriers, atomics = graph.having("bar.sync"), graph.having("atom.")
    first = barriers[0] + 1  # what comes behind the events of a stride are there
    stores = [block for block in graph.having("st.shared.u8") if block > first]

    def ways(start: int) -> list[int]:
        """From a block through each store of a level in shared memory to the next barrier."""
        behind = [graph.way(store, set(barriers), "global")[0] for store in stores]
        before = [graph.way(start, {store}, "global")[0] for store in stores]
        return [sum(both) for both in zip(before, behind, strict=True)]

    push, pop = sorted(ways(first))[:2]
    if atomics:  # the shortest way to the store of an end tag is a root's, which reports nothing
        behind = ways(atomics[0])
        push = min(
            cost for cost, other in zip(ways(first), behind, strict=True) if other != min(behind)
        )
        pop = graph.way(first, {atomics[0]}, "global")[0] + min(behind)
    loads = [b for b in graph.having("ld.shared.u8") if b > first]
    loops = [
        graph.way(block, {block}, "bar.sync")[0] for block in loads if _is_in_loop(graph, block)
    ]
    return {"start": push, "end": pop, "child": min(loops) / 4 if loops else 0}


def stacks_counts(ptx: str) -> dict[str, float]:
    """Instructions of a thread for a slot of a group, for each of its edges, and for each child.

    Each is a loop: the one that stores; those that load from shared memory, and from global memory
    alone. Loops are unrolled, so loads are counted.
    """
    graph = Graph(ptx)
    counts = {"slot": float("inf"), "edge": float("inf"), "child": float("inf")}
    for block in range(len(graph.lines)):
        if not _is_in_loop(graph, block, ""):
            continue
        cost, way = graph.way(block, {block}, "")
        lines = [line for each in way[1:] for line in graph.lines[each]]
        shared = sum("ld.shared" in line for line in lines)
        loads = sum("ld.global.u64" in line for line in lines)
        if any("st.shared" in line for line in lines):
            counts["slot"] = min(counts["slot"], cost)
        elif shared:
            counts["edge"] = min(counts["edge"], cost / shared)
        elif loads:
            counts["child"] = min(counts["child"], cost / loads)
    return counts


def _is_in_loop(graph: Graph, block: int, without: str = "bar.sync") -> bool:
    try:
        graph.way(block, {block}, without)
    except AssertionError:
        return False
    return True
