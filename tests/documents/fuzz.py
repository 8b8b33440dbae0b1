"""Mutated documents, parsed in both ways and compared: ``python -m tests.documents.fuzz --help``.

Documents come in batches; seed, number of the batch and its family of seeds (``--families``, which
the batches take in turns) say what is in one, so that it can be made again by itself.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import Any, NamedTuple
from xml.parsers import expat

import numpy as np

from tamis.core.errors import DocumentError
from tamis.core.kernel import declare
from tamis.core.limits import Limits
from tamis.documents.source import Source, read
from tests.documents.both_paths import PROJECTIONS, BothPaths, Counts, Difference
from tests.documents.mutations import Mutator
from tests.documents.seeds import FAMILIES, available, seeds

BATCH = 500
BLOCK = 20  # batches that share a parser and its vocabulary, as in a long run
TIGHT = Limits(depth=5, attributes=3)
_ENCODINGS = (None, None, None, "utf-8", "utf-8", None, None, "utf-8", "iso-8859-1", "us-ascii")
_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\0", b"<\0", b"\xef\xbb\xbf")


class Run(NamedTuple):
    """What is fuzzed."""

    seed: int
    families: tuple[str, ...]

    def again(self, what: str, number: int) -> str:
        """The command that compares one batch, or one block, again."""
        return (
            f"python -m tests.documents.fuzz --seed {self.seed} "
            f"--families {' '.join(self.families)} --{what} {number}"
        )


class Findings(NamedTuple):
    """What a block of batches came to."""

    counts: Counts
    messages: Counter[str]
    sizes: Counter[str]


def documents(run: Run, batch: int) -> list[bytes]:
    """The documents of a batch."""
    family = run.families[batch % len(run.families)]
    mutator = Mutator(*seeds(family), key=f"{run.seed} {family} {batch}")
    return [mutator.document() for _ in range(BATCH)]


def sources(run: Run, batch: int) -> list[Source | DocumentError]:
    """The documents of a batch, as the parsers get them."""
    return [_source(data, number) for number, data in enumerate(documents(run, batch))]


def _source(data: bytes, number: int) -> Source | DocumentError:
    if data.startswith(_MARKS) or b"encoding" in data[:100]:
        try:
            return read(data, Limits())
        except DocumentError as error:
            return error
    # For all others read() does the same, but for encodings of its own choice.
    encoding = _ENCODINGS[number % len(_ENCODINGS)]
    return Source(memoryview(data) if number % 7 == 0 else data, encoding)


def paths(block: int) -> BothPaths:
    """What a block is compared with; blocks take projections, limits and orders in turns."""
    projection = "all" if block % 2 else list(PROJECTIONS)[block // 2 % len(PROJECTIONS)]
    return BothPaths(
        PROJECTIONS["all" if projection == "lines too" else projection],
        TIGHT if block % 8 == 3 else Limits(),
        fast_first=block % 3 == 0,
    )


def compare_block(run: Run, block: int, batches: range) -> Findings:
    """Compare the batches of a block; that they come in this order may matter for a difference."""
    log = logging.getLogger("tamis")
    level = log.level
    log.setLevel(logging.ERROR)  # entities that are left out are many
    both = paths(block)
    counts = Counts()
    try:
        for batch in batches:
            counts = counts.plus(both.compare(sources(run, batch), run.again("batch", batch)))
    finally:
        log.setLevel(level)
    return Findings(counts, both.messages, both.sizes)


def fuzz(run: Run, count: int, processes: int, progress: bool = False) -> dict[str, Any]:
    """Compare ``count`` documents (rounded up to whole batches) and say what they were.

    Raises:
        Difference: the paths disagree on one.
    """
    began = time.perf_counter()
    batches = -(-count // BATCH)
    blocks = [range(n, min(n + BLOCK, batches)) for n in range(0, batches, BLOCK)]
    counts, messages, sizes = Counts(), Counter[str](), Counter[str]()
    for done, found in enumerate(_findings(run, blocks, processes), 1):
        counts = counts.plus(found.counts)
        messages.update(found.messages)
        sizes.update(found.sizes)
        if progress:
            seconds = time.perf_counter() - began
            print(f"{seconds:8.0f} s  block {done} of {len(blocks)}: {counts}", file=sys.stderr)
    return record(run, counts, messages, sizes, time.perf_counter() - began, processes)


def _findings(run: Run, blocks: list[range], processes: int) -> Iterator[Findings]:
    if processes == 1:
        for block, batches in enumerate(blocks):
            yield compare_block(run, block, batches)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context) as pool:
        waiting = dict(enumerate(blocks))
        running: dict[Future[Findings], int] = {}
        try:
            while waiting or running:
                # A few at a time: a long run neither fills memory nor goes on after a fault.
                while waiting and len(running) < 2 * processes:
                    block = next(iter(waiting))
                    task = pool.submit(compare_block, run, block, waiting.pop(block))
                    running[task] = block
                task = next(as_completed(running))
                yield task.result()
                del running[task]
        except Exception as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if isinstance(error, Difference):
                raise
            # A crash takes the process with it, so which block it was is not known.
            again = "\n".join(run.again("block", block) for block in sorted(running.values()))
            raise Difference(f"{error!r} in one of:\n{again}") from error


def record(
    run: Run,
    counts: Counts,
    messages: Counter[str],
    sizes: Counter[str],
    seconds: float,
    processes: int,
) -> dict[str, Any]:
    """What a run shows, for the eye and for JSON."""
    return {
        "seed": run.seed,
        "families": run.families,
        **counts._asdict(),
        "accepted_share": round(counts.accepted / counts.documents, 4),
        "declined_share_of_accepted": round(counts.declined / max(1, counts.accepted), 4),
        "per_accepted_document": {
            name: round(size / max(1, counts.accepted), 2) for name, size in sorted(sizes.items())
        },
        "errors": dict(messages.most_common(25)),
        "seconds": round(seconds, 1),
        "processes": processes,
        "versions": {
            "python": platform.python_version(),
            "expat": expat.EXPAT_VERSION,
            "numpy": np.__version__,
            "kernels": declare.mode(),
        },
    }


def replay(run: Run, batch: int, number: int | None) -> Counts:
    """Compare one batch, or one document of it, with every projection."""
    chosen = sources(run, batch)
    if number is not None:
        chosen = [chosen[number]]
        print(chosen[0])
    counts = Counts()
    for projection in PROJECTIONS.values():
        for limits in (Limits(), TIGHT):
            for fast_first in (False, True):
                both = BothPaths(projection, limits, fast_first)
                counts = both.compare(chosen, run.again("batch", batch))
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.documents.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="documents to compare")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=available())
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--block", type=int, help=f"compare these {BLOCK} batches only")
    parser.add_argument("--batch", type=int, help="compare this batch only, with every projection")
    parser.add_argument("--document", type=int, help="show and compare this document of it only")
    options = parser.parse_args()
    run = Run(options.seed, tuple(options.families))
    try:
        if options.block is not None:
            first = options.block * BLOCK
            print(compare_block(run, options.block, range(first, first + BLOCK)).counts)
        elif options.batch is not None:
            print(replay(run, options.batch, options.document))
        else:
            print(json.dumps(fuzz(run, options.count, options.processes, progress=True), indent=1))
    except Difference as difference:
        print(difference, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
