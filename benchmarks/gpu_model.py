"""A model of both papers' kernels on named GPUs. Nothing is measured, and no GPU is needed.

    python -m benchmarks.gpu_model

Prints a line of JSON for each kernel and architecture. Instructions are counted in the PTX that
Numba makes, along the shortest way through the code that does one event and column (twigstacks) or
one constraint (CCM); registers are those that ``ptxas`` gives. The extra ``cuda`` is needed.

The model takes the larger of two times: integer instructions at the rate of the multiprocessors,
and bytes at the rate of the memory. It leaves out waiting: for barriers, for memory, for launches.
So it says how fast a GPU can be at most.
"""

from __future__ import annotations

import heapq
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

TWIG_BLOCK, TWIG_LEVELS, TWIG_STRIDE = 256, 32, 256
NODES = (5, 10, 15)
TWIGS = (32, 128, 512, 2_048, 100_000)


class Card(NamedTuple):
    """A GPU, as its data sheet has it."""

    name: str
    cc: tuple[int, int]
    multiprocessors: int
    clock_ghz: float
    integers_per_clock: int  # of 32 bits, of one multiprocessor
    memory_gb_s: float
    host_gb_s: float  # PCI Express, one way
    shared_bytes: int  # of one multiprocessor
    threads: int = 2_048
    blocks: int = 32
    registers: int = 65_536


CARDS = (
    Card("A100 SXM 40 GB", (8, 0), 108, 1.41, 64, 1_555, 32, 164 << 10),
    Card("H100 SXM 80 GB", (9, 0), 132, 1.98, 64, 3_350, 64, 228 << 10),
)
_RESERVED = 1 << 10
"""Bytes of shared memory that the system takes of each block."""
_WARP, _WARP_REGISTERS = 32, 256
"""Registers are given to warps in units of so many."""


# -- compiled --------------------------------------------------------------------------------------


def ptx_of(kernel: Any, signature: tuple[Any, ...], cc: tuple[int, int]) -> str:
    """The PTX of a kernel."""
    cuda: Any = import_module("numba.cuda")
    device = SimpleNamespace(compute_capability=cc)
    with patch("numba.cuda.dispatcher.get_current_device", lambda: device):
        return str(cuda.compile_ptx(kernel.py_func, signature, cc=cc)[0])


def twigstacks_ptx(cc: tuple[int, int]) -> str:
    """The PTX of twigstacks."""
    from numba import types  # noqa: PLC0415 - the extra cuda

    from tamis_papers.twigstacks import cuda  # noqa: PLC0415

    uint8s, int32s, int64s = types.uint8[::1], types.int32[::1], types.int64[::1]
    number = types.int64
    arrays = (int64s, int64s, int64s, int64s, int32s)
    last = (number, number, uint8s, number, types.uint8[:, ::1])
    return ptx_of(cuda.match, (uint8s, number, number, *arrays, *last), cc)


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


def resources_of(ptx: str, cc: tuple[int, int]) -> dict[str, int]:
    """Registers of a thread, bytes of spilt registers, and barriers."""
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


def occupancy(registers: int, card: Card, block: int, shared: int) -> dict[str, Any]:
    """How many blocks fit on a multiprocessor, and what limits them."""
    of_warp = -(-registers * _WARP // _WARP_REGISTERS) * _WARP_REGISTERS
    limits = {
        "threads": card.threads // block,
        "blocks": card.blocks,
        "registers": card.registers // (of_warp * (block // _WARP)),
        "shared memory": card.shared_bytes // (shared + _RESERVED),
    }
    limit = min(limits, key=lambda name: limits[name])
    share = limits[limit] * block / card.threads
    return {"blocks": limits[limit], "limited_by": limit, "occupancy": share}


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
    """Instructions of an event and column: start tag, end tag of a leaf, each child at an end."""
    graph = Graph(ptx)
    barriers = graph.having("bar.sync")
    first = barriers[0] + 1  # what comes behind the events of a stride are there
    stores = [block for block in graph.having("st.shared.u8") if block > first]
    costs = []
    for store in stores:
        before, _ = graph.way(first, {store}, "global")
        behind, _ = graph.way(store, {barriers[1]}, "global")
        costs.append(before + behind)
    loads = [b for b in graph.having("ld.shared.u8") if b > first]
    loops = [
        graph.way(block, {block}, "bar.sync")[0] for block in loads if _is_in_loop(graph, block)
    ]
    push, pop = sorted(costs)[:2]
    return {"start": push, "end": pop, "child": min(loops) / 4 if loops else 0}


def _is_in_loop(graph: Graph, block: int) -> bool:
    try:
        graph.way(block, {block}, "bar.sync")
    except AssertionError:
        return False
    return True


# -- the model -------------------------------------------------------------------------------------


def twigstacks() -> Iterator[dict[str, Any]]:
    """Events a second of many documents at once: enough work for all multiprocessors."""
    for card in CARDS:
        ptx = twigstacks_ptx(card.cc)
        numbers, counts = resources_of(ptx, card.cc), twigstacks_counts(ptx)
        shared = 4 * TWIG_STRIDE + TWIG_LEVELS * TWIG_BLOCK
        # Each node but the root is a child once; half of the events are ends.
        mean = (counts["start"] + counts["end"] + counts["child"]) / 2
        rate = card.multiprocessors * card.clock_ghz * 1e9 * card.integers_per_clock
        yield {
            "kernel": "twigstacks",
            "card": card.name,
            **numbers,
            "shared_bytes": shared,
            **occupancy(numbers["registers"], card, TWIG_BLOCK, shared),
            "calls": ptx.count("call.uni"),
            "atomics": ptx.count("atom."),
            "barriers": ptx.count("bar.sync"),
            "instructions": counts,
            "instructions_per_event_and_column": mean,
            "shared_bytes_per_event_and_column": 3.5,
            "global_bytes_per_event_and_block": 1,
            "model_events_per_s": {
                f"{twigs} twigs of {nodes} nodes": round(
                    min(
                        rate / (twigs * (nodes + 1) * mean),
                        card.memory_gb_s * 1e9 / -(-twigs * (nodes + 1) // TWIG_BLOCK),
                    )
                )
                for nodes in NODES
                for twigs in TWIGS
            },
        }


def ccm() -> Iterator[dict[str, Any]]:
    """Microseconds an event of the PCM paper's default scenario."""
    import numpy as np  # noqa: PLC0415

    from tamis_papers.pcm import PcmOptions, compile_filters  # noqa: PLC0415
    from tamis_papers.pcm import layout as at  # noqa: PLC0415
    from tamis_papers.pcm.execute import Preparation  # noqa: PLC0415
    from tamis_workload import EventWorkload  # noqa: PLC0415

    workload = EventWorkload()
    program, events = compile_filters(workload.table(), PcmOptions()), 1_000
    preparation, batch = Preparation(program), workload.events(events)
    preparation.begin(batch)
    lines, blooms = np.zeros((1 << 16, at.LINE_WIDTH), np.int64), np.zeros(events, np.uint64)
    prepared = preparation.prepare(lines, blooms)
    constraints = int(lines[: preparation.lines, at.LINE_NUM_CONSTR].sum()) / prepared
    line_bytes = preparation.lines * at.LINE_WIDTH * 8 / prepared
    for card in CARDS:
        ptx = ccm_ptx(card.cc)
        numbers, graph = resources_of(ptx, card.cc), Graph(ptx)
        # A constraint that its Bloom filter leaves out reads that word alone.
        loads = graph.having("ld.global.u64")
        instructions = min(graph.way(0, {block}, "")[0] for block in loads if block)
        rate = card.multiprocessors * card.clock_ghz * 1e9 * card.integers_per_clock
        # The counters of an event are cleared once in eight launches.
        cleared = 4 * len(program.tables.sizes) / 8
        moved = 8 * constraints + line_bytes + cleared
        seconds = {
            "instructions": constraints * instructions / rate,
            "memory": moved / (card.memory_gb_s * 1e9),
            "transfer": line_bytes / (card.host_gb_s * 1e9),
        }
        yield {
            "kernel": "ccm",
            "card": card.name,
            **numbers,
            **occupancy(numbers["registers"], card, 256, 0),
            "constraints_per_event": round(constraints, 1),
            "global_bytes_per_event": round(moved),
            "transferred_bytes_per_event": round(line_bytes),
            "instructions_per_constraint": instructions,
            "model_us_per_event": {name: round(1e6 * s, 4) for name, s in seconds.items()},
        }


def main() -> None:
    import numba_cuda  # noqa: F401, PLC0415 - registers the target

    for found in (*twigstacks(), *ccm()):
        print(json.dumps(found))


if __name__ == "__main__":
    main()
