"""The CUDA kernel against the reference: ``python -m tests.papers.twigstacks.simulated``.

Without a GPU, in Numba's simulator: ``NUMBA_ENABLE_CUDASIM=1``. Cases are small there: it starts a
thread of Python's for each of a GPU's.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tamis.core.errors import EngineRefused
from tamis.matching.engines.reference import ENGINE as REFERENCE
from tamis_papers.twigstacks import TwigOptions, cuda, has_gpu, twigstacks_cuda
from tests.papers.twigstacks.drawing import TRAP, answers, drawn_twigs, drawn_xml
from tests.papers.twigstacks.test_twigstacks import ERRATA

LEVELS = 4


def check(options: TwigOptions, twigs: Sequence[str], documents: Sequence[str]) -> None:
    found = answers(twigstacks_cuda(options), twigs, documents)
    assert found == answers(REFERENCE, twigs, documents)


def main() -> None:
    assert has_gpu()
    small = TwigOptions(block=32, levels=LEVELS, stride=4, documents_at_once=3)
    traps = ["/a//c[.//d]/e", "/a//c//d", *(twig for twig, _ in ERRATA[1:7:2])]
    check(small, traps, [TRAP, *(document for _, document in ERRATA[1:7:2])])
    # As deep as the levels in shared memory, one less, one more, and far deeper.
    deep = ["//a[b]", "//b//c", "/a[.//b]", "//a[b]/c", "/a/a/a//b"]
    for depth in (LEVELS - 2, LEVELS - 1, LEVELS, LEVELS + 1):
        for has in (0, 1):
            check(small, deep, [f"{'<a>' * depth}{'<b/><c/>' * has}{'</a>' * depth}"])
    check(TwigOptions(levels=LEVELS), deep[:2], [f"{'<a>' * 1_000}<b/>{'</a>' * 1_000}"])
    # Blocks of threads that take several documents, more than 127 tags, a twig of two
    # warps.
    cuda._BLOCKS_MAX = 2
    draw = random.Random(3)
    check(small, drawn_twigs(draw, 9), [drawn_xml(draw, 3) for _ in range(4)])
    names = [f"//n{number}" for number in range(130)]
    check(TwigOptions(block=64, levels=3, stride=5), names, ["<n129/>", "<x><n0/><n127/></x>"])
    large = "/a" + "".join(f"[b{number}]" for number in range(33))
    bs = [f"<b{number}/>" for number in range(33)]
    check(small, ["//b1", large], [f"<a>{''.join(bs)}</a>"])
    check(small, [], ["<a/>"])
    for options in (TwigOptions(levels=10_000), TwigOptions(block=4_096)):
        try:
            answers(twigstacks_cuda(options), [*names, *deep] * 5, ["<a/>"])
        except EngineRefused:
            continue
        raise AssertionError("more than a block of threads may have")
    print("as the reference")


if __name__ == "__main__":
    main()
