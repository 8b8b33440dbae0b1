"""Stacks on a GPU against the reference: ``python -m tests.matching.stacks.simulated``.

Without a GPU, in Numba's simulator: ``NUMBA_ENABLE_CUDASIM=1``. Cases are small there: it starts a
thread of Python's for each of a GPU's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from unittest.mock import patch

from tamis.core.gpu import has_gpu
from tamis.matching.engine import Searcher
from tamis.matching.engines.stacks import CUDA, cuda
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_workload.documents.grammar import Documents
from tamis_workload.queries.twigs import TwigOptions, twigs_from_dtd
from tests.matching.stacks.test_matching import RECURSIVE
from tests.support.searchers import asked, by_reference, queries
from tests.support.simulator import run_on_one_core

IS_SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
VALUES = [
    "//a[not(b)]",
    "//b[. = '2']",
    "//a[@x or b/c]",
    "//a[@x = '1']//d",
    "//*[*[@x]]",
    "/a[b or not(c)]",
    "//a[text() = 't'][b]",
]
VALUED = ["<a><b>2</b></a>", "<a x='1'/>", "<", "<a x='1'><a><c><d/></c></a>t<b/></a>"]


def opened(expressions: Sequence[str]) -> Searcher:
    return CUDA.searcher(CUDA.compile(queries([*expressions])), 0)


def check(expressions: Sequence[str], documents: Sequence[str]) -> None:
    searcher = opened(expressions)
    good = [text for text in documents if text != "<"]
    answers = iter(by_reference(queries([*expressions]), good))
    expected = [[] if text == "<" else next(answers) for text in documents]
    assert asked(searcher, documents) == expected
    assert asked(searcher, documents) == expected


def drawn(count: int, nodes: int, size: int, documents: int) -> tuple[list[str], list[str]]:
    """Twigs, and documents with some attributes."""
    graph = SchemaGraph.of(parse_dtd(RECURSIVE))
    options = TwigOptions(nodes=nodes, splits=2, wildcard=0.3, descendant=0.4)
    twigs = twigs_from_dtd(graph, count, options=options, seed=3)
    of_dtd = Documents(graph, depth=9, size=size, seed=5)
    texts = [of_dtd.document(number).decode() for number in range(documents)]
    return [*twigs], [text.replace("<a>", "<a x='1'>", n) for n, text in enumerate(texts)]


def check_segments(subtrees: int, scale: int) -> None:
    """A segment ends anywhere: what open elements have of earlier ones stays theirs, facts too."""
    with patch.object(cuda, "_SUBTREES", subtrees):
        check([*VALUES, "//a[b]", "/a//b"], VALUED)
        twigs, texts = drawn(9 * scale, 5, 200 * scale, 2)
        check([*VALUES, *twigs], texts)


def main() -> None:
    assert has_gpu(), "no GPU: set NUMBA_ENABLE_CUDASIM=1"
    run_on_one_core()
    scale = 1 if IS_SIMULATED else 30
    check([], ["<a/>"])
    check(VALUES, VALUED)
    for subtrees in (2, 3, 7):
        check_segments(subtrees, scale)
    # As deep as open elements have rows for, one less, one more; and far deeper.
    for depth in (1, 2, 3, 60 if IS_SIMULATED else 1_000):
        inner = f"{'<a>' * depth}<b/>{'</a>' * depth}"
        twigs = ["//a[b]", "/a//b", "//a[.//c][b]", "/a/a/b", "//a[not(b)]/a"]
        check(twigs, [inner, f"<a>{inner}<b/><c/></a>"])
        with patch.object(cuda, "_SUBTREES", 2):
            check(twigs, [inner])
    # More groups than a launch takes; twigs whose slots fill shared memory.
    with patch.object(cuda, "_LATCHED_WORDS", 1):
        check(*drawn(600 if IS_SIMULATED else 3_000, 5, 100, 1))
    deep = f"{'<a>' * 101}{'</a>' * 101}"
    check(["/*" * 100, "//a[b]"], ["<a><b/></a>", *([] if IS_SIMULATED else [deep])])
    print("as the reference")


if __name__ == "__main__":
    main()
