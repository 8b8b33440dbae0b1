"""A model of the CUDA kernels on named GPUs. Nothing is measured, and no GPU is needed.

    python -m benchmarks.gpu_model

Prints a line of JSON for each kernel and architecture, and for each ablation of the GPU paper:
children's matches in arrays or with atomics, block sizes, streams. Instructions are counted in the
PTX that Numba makes, along the shortest way through the code that does one event and column
(twigstacks), one node of 64 twigs (stacks) or one constraint (CCM); registers are those that
``ptxas`` gives. The extra ``cuda`` is needed.

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
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

CHILDREN = ("arrays", "atomics")
"""Where children's matches go."""
BLOCKS = (32, 64, 128, 256, 512, 1_024)
BATCHES = (500, 1_000)
DOCUMENT_BYTES, XML_BYTES_PER_EVENT = 25_000, 15.8
"""Of a DBLP-like document of a batch."""
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


def twigstacks_ptx(cc: tuple[int, int], children: str = "arrays") -> str:
    """The PTX of twigstacks; ``children`` is of ``CHILDREN``."""
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


# -- the model -------------------------------------------------------------------------------------


class Compiled(NamedTuple):
    """The kernel of twigstacks on a card.

    Attributes:
        children: of ``CHILDREN``.
        numbers: see ``resources_of``. counts: see ``twigstacks_counts``.
    """

    card: Card
    children: str
    ptx: str
    numbers: dict[str, int]
    counts: dict[str, float]

    @property
    def mean(self) -> float:
        """Instructions of an event and column.

        Each node but the root is a child once; half of the events are ends.
        """
        return sum(self.counts.values()) / 2

    @property
    def rate(self) -> float:
        """Instructions a second."""
        return _instructions_per_s(self.card)


def _instructions_per_s(card: Card) -> float:
    return card.multiprocessors * card.clock_ghz * 1e9 * card.integers_per_clock


def twigstacks_compiled() -> list[Compiled]:
    """For all cards, in both variants."""
    found = []
    for card in CARDS:
        for children in CHILDREN:
            ptx = twigstacks_ptx(card.cc, children)
            resources = resources_of(ptx, card.cc)
            found.append(Compiled(card, children, ptx, resources, twigstacks_counts(ptx)))
    return found


def _shared_bytes(block: int, children: str) -> int:
    """Of shared memory, for a block of threads whose columns are all used."""
    from tamis_papers.twigstacks import TwigOptions, cuda  # noqa: PLC0415 - the extra cuda

    options = TwigOptions(block, has_atomics=children == "atomics")
    return cuda.shared_bytes(options, block)


def twigstacks(compiled: Sequence[Compiled]) -> Iterator[dict[str, Any]]:
    """Events a second of many documents at once: enough work for all multiprocessors."""
    for each in compiled:
        card, block, has_atomics = each.card, 256, each.children == "atomics"
        shared = _shared_bytes(block, each.children)
        yield {
            "kernel": "twigstacks",
            "children": each.children,
            "card": card.name,
            **each.numbers,
            "shared_bytes": shared,
            **occupancy(each.numbers["registers"], card, block, shared),
            "calls": each.ptx.count("call.uni"),
            "atomics": each.ptx.count("atom."),
            "barriers": each.ptx.count("bar.sync"),
            "atomics_per_event_and_column": 0.5 * has_atomics,
            "barriers_per_event": 1 + 0.5 * has_atomics,
            "instructions": each.counts,
            "instructions_per_event_and_column": each.mean,
            "shared_bytes_per_event_and_column": 3.5,
            "global_bytes_per_event_and_block": 1,
            "model_events_per_s": {
                f"{twigs} twigs of {nodes} nodes": round(
                    min(
                        each.rate / (twigs * (nodes + 1) * each.mean),
                        card.memory_gb_s * 1e9 / -(-twigs * (nodes + 1) // block),
                    )
                )
                for nodes in NODES
                for twigs in TWIGS
            },
        }


def block_sizes(compiled: Sequence[Compiled]) -> Iterator[dict[str, Any]]:
    """What fits on a card by the threads of a block: 2,048 twigs, a third each of ``NODES``."""
    from tamis_papers.twigstacks.compile import packed  # noqa: PLC0415 - the extra cuda

    sizes = [NODES[number % len(NODES)] + 1 for number in range(2_048)]
    for each in compiled:
        for block in BLOCKS:
            shared, blocks = _shared_bytes(block, each.children), len(packed(sizes, block))
            registers = each.numbers["registers"]
            found = occupancy(registers, each.card, block, shared)
            at_once = found.pop("blocks") * each.card.multiprocessors
            yield {
                "ablation": "block size",
                "children": each.children,
                "card": each.card.name,
                "threads": block,
                "registers": registers,
                "shared_bytes": shared,
                "blocks_on_a_multiprocessor": at_once // each.card.multiprocessors,
                **found,
                "blocks": blocks,
                "columns_used": round(sum(sizes) / (blocks * block), 3),
                "twigs_at_once": round(at_once * len(sizes) / blocks),
            }


def streams(compiled: Sequence[Compiled]) -> Iterator[dict[str, Any]]:
    """Bytes copied and seconds of a batch with one stream and with two: 128 twigs of 10 nodes.

    Launches are as in ``CudaTwigSearcher``. Each direction of copies and the kernel are one queue.
    """
    from tamis_papers.twigstacks import TwigOptions  # noqa: PLC0415 - the extra cuda

    twigs, nodes, at_once = 128, 10, TwigOptions().documents_at_once
    events = DOCUMENT_BYTES / XML_BYTES_PER_EVENT
    for each in compiled:
        for documents in BATCHES if each.children == "arrays" else ():
            chunks = [min(at_once, documents - n) for n in range(0, documents, at_once)]
            copied_in = [round(count * events) + 8 * (count + 1) for count in chunks]
            copied_out = [count * twigs for count in chunks]
            link = each.card.host_gb_s * 1e9
            work = twigs * (nodes + 1) * each.mean / each.rate
            stages = [
                (into / link, count * events * work, out / link)
                for into, count, out in zip(copied_in, chunks, copied_out, strict=True)
            ]
            yield {
                "ablation": "streams",
                "card": each.card.name,
                "documents": documents,
                "launches": len(chunks),
                "bytes_to_the_card": sum(copied_in),
                "bytes_back": sum(copied_out),
                "model_us": {
                    "copies": round(1e6 * sum(into + out for into, _, out in stages), 1),
                    "kernel": round(1e6 * sum(kernel for _, kernel, _ in stages), 1),
                    "one_stream": round(1e6 * scheduled(stages, 1), 1),
                    "two_streams": round(1e6 * scheduled(stages, 2), 1),
                },
            }


def scheduled(chunks: Sequence[tuple[float, ...]], streams: int) -> float:
    """Seconds of some chunks, whose stages wait for their queue, and for their stream.

    >>> scheduled([(1, 2, 1)] * 3, 1), scheduled([(1, 2, 1)] * 3, 2)
    (12.0, 8.0)
    """
    queues, ends = [0.0] * len(chunks[0]), [0.0] * streams
    for number, stages in enumerate(chunks):
        now = ends[number % streams]
        for queue, seconds in enumerate(stages):
            now = queues[queue] = max(now, queues[queue]) + seconds
        ends[number % streams] = now
    return max(ends)


def stacks() -> Iterator[dict[str, Any]]:
    """Distinct subtrees a second: 2,048 twigs of 15 nodes in 4 groups, elements of two children."""
    from tamis.core.kernel.blocks import BLOCK  # noqa: PLC0415 - the extra cuda

    groups, slots, edges, children, block = 4, 15, 56, 2, 64
    for card in CARDS:
        ptx = stacks_ptx(card.cc)
        numbers, counts = resources_of(ptx, card.cc), stacks_counts(ptx)
        each_slot = counts["slot"] + children * counts["child"]
        instructions = groups * BLOCK * (slots * each_slot + edges * counts["edge"])
        shared = block * slots * 8
        # What is latched is written, and read where the subtree is a child; the rest is in caches.
        moved = groups * BLOCK * 8 * slots * (1 + children)
        yield {
            "kernel": "stacks",
            "card": card.name,
            **numbers,
            "shared_bytes": shared,
            **occupancy(numbers["registers"], card, block, shared),
            "calls": ptx.count("call.uni"),
            "barriers": ptx.count("bar.sync"),
            "instructions": counts,
            "instructions_per_subtree": instructions,
            "global_bytes_per_subtree": moved,
            "model_subtrees_per_s": round(
                min(_instructions_per_s(card) / instructions, card.memory_gb_s * 1e9 / moved)
            ),
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
        rate = _instructions_per_s(card)
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

    compiled = twigstacks_compiled()
    for found in (
        *twigstacks(compiled),
        *block_sizes(compiled),
        *streams(compiled),
        *stacks(),
        *ccm(),
    ):
        print(json.dumps(found))


if __name__ == "__main__":
    main()
