"""The CUDA kernel against the reference: ``python -m tests.papers.twigstacks.simulated``.

Without a GPU, in Numba's simulator: ``NUMBA_ENABLE_CUDASIM=1``. Cases are small there: it starts a
thread of Python's for each of a GPU's.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from unittest.mock import patch

from tamis.core.errors import EngineRefused
from tamis.core.gpu import has_gpu
from tamis.matching.engines.reference import ENGINE as REFERENCE
from tamis_papers.twigstacks import TwigOptions, cuda, twigstacks_cuda
from tests.papers.twigstacks.drawing import TRAP, answers, drawn_twigs, drawn_xml
from tests.papers.twigstacks.test_twigstacks import ERRATA
from tests.support.simulator import run_on_one_core

LEVELS = 4


def check(options: TwigOptions, twigs: Sequence[str], documents: Sequence[str]) -> None:
    found = answers(twigstacks_cuda(options), twigs, documents)
    assert found == answers(REFERENCE, twigs, documents)


def main() -> None:
    assert has_gpu(), "no GPU: set NUMBA_ENABLE_CUDASIM=1"
    run_on_one_core()
    check_variant(TwigOptions(32, LEVELS, 4, documents_at_once=3))
    check_variant(TwigOptions(32, LEVELS, 4, documents_at_once=3, streams=1, has_atomics=True))
    # Far deeper than the levels in shared memory, a twig of two warps, more than 127 tags.
    options = TwigOptions(levels=LEVELS)
    check(options, ["//a[b]", "//b//c"], [f"{'<a>' * 1_000}<b/>{'</a>' * 1_000}"])
    large = "/a" + "".join(f"[b{number}]" for number in range(33))
    bs = [f"<b{number}/>" for number in range(33)]
    check(TwigOptions(32, LEVELS, 4), ["//b1", large], [f"<a>{''.join(bs)}</a>"])
    names = [f"//n{number}" for number in range(130)]
    check(TwigOptions(block=64, levels=3, stride=5), names, ["<n129/>", "<x><n0/><n127/></x>"])
    check(options, [], ["<a/>"])
    for options in (TwigOptions(levels=10_000), TwigOptions(block=4_096)):
        try:
            answers(twigstacks_cuda(options), names * 10, ["<a/>"])
        except EngineRefused:
            continue
        raise AssertionError("more than a block of threads may have")
    print("as the reference")


def check_variant(small: TwigOptions) -> None:
    traps = ["/a//c[.//d]/e", "/a//c//d", *(twig for twig, _ in ERRATA[1:7:2])]
    check(small, traps, [TRAP, *(document for _, document in ERRATA[1:7:2])])
    # As deep as the levels in shared memory, one less, one more.
    deep = ["//a[b]", "//b//c", "/a[.//b]", "//a[b]/c", "/a/a/a//b"]
    for depth in (LEVELS - 2, LEVELS - 1, LEVELS, LEVELS + 1):
        for has in (0, 1):
            check(small, deep, [f"{'<a>' * depth}{'<b/><c/>' * has}{'</a>' * depth}"])
    # Blocks of threads that take several documents.
    draw = random.Random(3)
    with patch.object(cuda, "_BLOCKS_MAX", 2):
        check(small, drawn_twigs(draw, 9), [drawn_xml(draw, 3) for _ in range(4)])


if __name__ == "__main__":
    main()
