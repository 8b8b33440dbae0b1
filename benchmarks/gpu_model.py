"""A model of the CUDA kernels on named GPUs. Nothing is measured, and no GPU is needed.

    python -m benchmarks.gpu_model

Prints a line of JSON for each kernel and architecture, and for each ablation of the GPU paper:
children's matches in arrays or with atomics, block sizes, streams. Instructions are counted in the
PTX that Numba makes (:mod:`benchmarks.gpu_ptx`), along the shortest way through the code that does
one event and column (twigstacks), one node of 64 twigs (stacks) or one constraint (CCM); registers
are those that ``ptxas`` gives. The extra ``cuda`` is needed.

The model takes the larger of two times: integer instructions at the rate of the multiprocessors,
and bytes at the rate of the memory. It leaves out waiting: for barriers, for memory, for launches.
It counts an instruction of 64 bits as two: a card that does some of them in one is faster (an H200
took 0.7 of the model's time for 2,048 twigs of 15 nodes). So it compares designs; docs/gpu.md has
what was measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.gpu_ptx import (
    Graph,
    ccm_ptx,
    resources_of,
    stacks_counts,
    stacks_ptx,
    twigstacks_counts,
    twigstacks_ptx,
)

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
