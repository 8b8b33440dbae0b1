"""Personalities, packing, refusals, the paper's traps, many tags, deep documents."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.core.errors import EngineRefused
from tamis.language.xpath import parse
from tamis.matching.engine import reason_of
from tamis.matching.engines.reference import ENGINE as REFERENCE
from tamis_papers.twigstacks import ENGINE, TwigOptions, compile, twigstacks
from tamis_papers.twigstacks import layout as at
from tamis_papers.twigstacks.kernels import step
from tests.papers.twigstacks.drawing import TRAP, answers

ERRATA = [
    # Figure 6 lets a split node hold wherever its children were matched, whatever its own tag is.
    ("/a/b[c]/d", "<a><x><c/><d/></x></a>"),
    # Algorithm 1, line 23, ANDs into an entry that push has set to 0: no split would ever match.
    ("/a[b]/c", "<a><b/><c/></a>"),
    ("/a[b]/c", "<a><c/><x/><b/></a>"),
    # Line 19 stands inside the branch for /: nothing begins a leaf under //.
    ("//a", "<x><a/></x>"),
    ("/a[b]//c", "<a><b/><x><c/></x></a>"),
    # What a child reports stays while its siblings come and go.
    ("/a/b[c]", "<a><b><c/><x/><x/></b><x/></a>"),
    # What is reported below one element is not there for the next.
    ("/a/b[c]/d", "<a><b><c/></b><b><d/></b></a>"),
    # A split node with both kinds of children.
    ("//a[b][.//c]", "<a><x><c/></x><a><b/></a></a>"),
    ("//a[b][.//c]", "<a><a><b/></a><b/><x><c/></x></a>"),
    # // is carried down to all elements around, not only to the nearest.
    ("//a[.//b]/c", "<a><a><b/></a><c/></a>"),
]


@pytest.mark.parametrize(("twig", "document"), ERRATA)
def test_errata(twig: str, document: str) -> None:
    assert answers(ENGINE, [twig], [document]) == answers(REFERENCE, [twig], [document])


def test_figure_4() -> None:
    twigs = ["/a//c[.//d]/e", "/a//c//d", "/a//c/e", "/a[.//c//d]//c/e"]
    assert answers(ENGINE, twigs, [TRAP]) == [set(twigs[1:])]


@pytest.mark.parametrize("depth", [1, 31, 32, 33, 63, 64, 65, 1_000])
def test_depth(depth: int) -> None:
    twigs = [f"/{'/'.join('a' * min(depth, 400))}", "//a[b]", "//b//c", "/a[.//b]", "//a[b]/c"]
    inner = "<b/><c/>"
    documents = [f"{'<a>' * depth}{inner * has}{'</a>' * depth}" for has in (0, 1)]
    assert answers(ENGINE, twigs, documents) == answers(REFERENCE, twigs, documents)


@pytest.mark.parametrize(
    ("names", "width"), [(126, 1), (127, 1), (128, 2), (32_767, 2), (32_768, 4)]
)
def test_tags(names: int, width: int) -> None:
    """An event has as many bytes as the tags need."""
    twigs = [f"/a/n{number}" for number in range(names - 1)]
    program = ENGINE.compile(list(map(parse, twigs)))
    assert (len(program.names), program.event_width) == (names, width)
    few = [*twigs[:3], *twigs[-3:]]
    documents = ["<a><n0/></a>", f"<a><n{names - 2}/><n{names - 1}/></a>", f"<n{names - 2}/>"]
    if names < 1_000:
        assert answers(ENGINE, twigs, documents) == answers(REFERENCE, few, documents)
    else:
        found = answers(twigstacks(TwigOptions(block=1024)), twigs, documents)
        assert found == [{twigs[0]}, {twigs[-1]}, set()]


def test_personalities() -> None:
    """Columns: two roots, then the nodes of each level; a split node has the bits of both kinds."""
    program = ENGINE.compile([parse("/a[b]//c"), parse("//*")])
    own = program.arrays.personalities.tolist()
    assert program.queries.tolist() == [0, 1]
    assert program.arrays.child_starts.tolist() == [2, 3, 4, 6, 6, 6, 6]
    assert [int(step.prefix_of(p)) for p in own] == [0, 1, 0, 1, 2, 2]
    assert [p & at.ROOT for p in own] == [at.ROOT, at.ROOT, 1, at.ANY, 2, 3]
    flags = [
        [p >> shift & 1 for p in own]
        for shift in (
            at.LEAF_SHIFT,
            at.DESCENDS_SHIFT,
            at.HAS_CHILDREN_SHIFT,
            at.HAS_DESCENDANTS_SHIFT,
        )
    ]
    assert flags == [[0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 0, 1], [1, 0, 1, 0, 0, 0], [0, 1, 1, 0, 0, 0]]


def test_large_twig() -> None:
    """A twig with more columns than a block has one of its own."""
    large = "/a" + "".join(f"[b{number}]" for number in range(40))
    engine = twigstacks(TwigOptions(block=16))
    program = engine.compile([parse("//a"), parse(large), parse("//b1")])
    assert program.widest == 42
    assert program.blocks == 2
    documents = [f"<a>{''.join(f'<b{n}/>' for n in range(count))}</a>" for count in (39, 40)]
    twigs = ["//a", large, "//b1"]
    assert answers(engine, twigs, documents) == [{"//a", "//b1"}, set(twigs)]


def test_packed_rooms() -> None:
    """No block has more columns than it may, and each twig is in one."""
    sizes = [1 + (number * 37) % 23 for number in range(500)]
    blocks = compile.packed(sizes, 64)
    assert sorted(number for block in blocks for number in block) == list(range(500))
    filled = [sum(sizes[number] for number in block) for block in blocks]
    assert max(filled) <= 64
    assert len(blocks) <= -(-sum(sizes) // 64) + 1


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("//a[not(b)]", "it has or, not"),
        ("//a | //b", "it has or, not"),
        ("//a[@b]", "it asks for attributes"),
        ("//a[2]", "it asks for a position"),
        ("//a[. = 'x']", "it asks for attributes or text"),
        ("//*[self::a]", "it has a self::"),
    ],
)
def test_refused(query: str, reason: str) -> None:
    refused = reason_of(ENGINE, parse(query))
    assert refused is not None
    assert refused.startswith(reason)
    with pytest.raises(EngineRefused, match=r"twigstacks does not: .*: it "):
        ENGINE.compile([parse("//a"), parse(query)])


def test_refused_namespaces() -> None:
    refused = reason_of(ENGINE, parse("//p:*", {"p": "urn:p"}))
    assert refused == "it has a * in a namespace, or for any namespace"


def test_nothing() -> None:
    assert answers(ENGINE, [], ["<a/>", "<b/>"]) == [set(), set()]
    program = ENGINE.compile([parse("//a")])
    assert program.memory_usage() > 0
    assert ENGINE.searcher(program, 0).memory_usage() > 0


def test_uncompiled() -> None:
    """Every line of the kernels, in Python."""
    process = subprocess.run(
        [sys.executable, "-m", "tests.papers.twigstacks.uncompiled"],
        env={**os.environ, "TAMIS_KERNELS": "python", "PYTHONPATH": ":".join(sys.path)},
        cwd=Path(__file__).parents[3],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    kernels = "tamis_papers.twigstacks.kernels"
    assert process.stdout == f"{kernels}.match []\n{kernels}.step []\n", process.stderr[-2000:]
