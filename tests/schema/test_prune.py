"""Pruned filters: together they say what the filter says, of every document of the graph."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.schema.graph import SchemaGraph
from tamis.schema.prune import Heuristics, Pruner
from tamis.schema.reader import parse_dtd

# The graph of the paper's Figure 1, as its Table 1 tells it.
FIGURE_1 = """
<!ELEMENT a (b, c, d)> <!ELEMENT b (f)> <!ELEMENT c (f)> <!ELEMENT d (e)> <!ELEMENT e (f)>
<!ELEMENT f (i, j)> <!ELEMENT i (k)> <!ELEMENT j (k)> <!ELEMENT k (#PCDATA)>
"""


def pruner_of(dtd: str, **heuristics: object) -> Pruner:
    return Pruner(SchemaGraph.of(parse_dtd(dtd)), Heuristics(**heuristics))  # type: ignore[arg-type]


def pruned(pruner: Pruner, text: str) -> list[str]:
    return [pruner.labels.written(found) for found in pruner.prune(pruner.labels.read(text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/a//f", "/a/b/f /a/c/f /a/d/e/f"),
        ("//c/f//k", "//c/f/i/k //c/f/j/k"),
        ("/*/b", "/a/b"),
        ("/a/*", "/a/b /a/c /a/d"),
        ("/a/*/f", "/a/b/f /a/c/f"),
        ("/*/*/*/*", "/a/b/f/i /a/b/f/j /a/c/f/i /a/c/f/j /a/d/e/f"),
    ],
)
def test_table_1(text: str, expected: str) -> None:
    assert pruned(pruner_of(FIGURE_1, leading=False), text) == expected.split()


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("/b", "the root is a"),
        ("//x", "x is not declared"),
        ("/a/f", "f is never a child of a"),
        ("//d//b", "b is never inside d"),
        ("//k/*", "nothing may stand in k"),
        ("/a/*/k", "k is never a child of any of b, c, d"),
        ("/a//k", None),
        ("//*//k", None),
    ],
)
def test_what_can_never_match(text: str, failure: str | None) -> None:
    pruner = pruner_of(FIGURE_1)
    assert pruner.failure(pruner.labels.read(text)) == failure
    assert (pruned(pruner, text) == []) == (failure is not None)


def test_recursion_is_left() -> None:
    pruner = pruner_of(
        "<!ELEMENT a (s, t)> <!ELEMENT s (s | t | p)*> <!ELEMENT t (p)> <!ELEMENT p (#PCDATA)>"
    )
    assert pruned(pruner, "/a//t/p") == ["/a//t/p"]
    assert pruned(pruner, "/a/t//p") == ["/a/t/p"]
    assert pruned(pruner, "/a/*/t") == ["/a/s/t"]
    assert pruned(pruner, "//s") == ["//s"]


def test_a_ladder_stays_within_the_budget() -> None:
    """Two ways at each of 40 rungs: 2 to the 40 paths, and the filter stays as it is."""
    rungs = "".join(
        f"<!ELEMENT a{n} (b{n} | c{n})> <!ELEMENT b{n} (a{n + 1})> <!ELEMENT c{n} (a{n + 1})>"
        for n in range(40)
    )
    pruner = pruner_of(rungs + "<!ELEMENT a40 (#PCDATA)>")
    assert pruned(pruner, "/a0//a40") == ["/a0//a40"]
    assert sorted(pruned(pruner, "/a0//a2")) == [
        "/a0/b0/a1/b1/a2", "/a0/b0/a1/c1/a2", "/a0/c0/a1/b1/a2", "/a0/c0/a1/c1/a2",
    ]  # fmt: skip
    wild = "/a0" + "".join(f"/*/a{n + 1}" for n in range(40))
    assert pruned(pruner, wild) == [wild]


def test_a_dense_graph_takes_no_time() -> None:
    """Each of 400 elements may hold all behind it: more paths than there are atoms."""
    names = [f"e{number}" for number in range(400)]
    models = (f"({'|'.join(names[number + 1 :])})*" for number in range(399))
    declared = zip(names, [*models, "EMPTY"], strict=True)
    dtd = "".join(f"<!ELEMENT {name} {model}>" for name, model in declared)
    for heuristics in ({}, {"descendants": "single"}):
        pruner = pruner_of(dtd, **heuristics)
        assert pruned(pruner, "//e399") == ["//e399"]
        assert pruned(pruner, "/e0/e1//e3") == (
            ["/e0/e1/e3", "/e0/e1/e2/e3"][::-1] if not heuristics else ["/e0/e1//e3"]
        )


NAMES = "abcdef"


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, str]:
    """For each element what may stand in it."""
    return {
        name: "".join(sorted(draw(st.sets(st.sampled_from(NAMES), max_size=3)))) for name in NAMES
    }


def dtd_of(graph: dict[str, str]) -> str:
    models = {name: f"({'|'.join(inner)})*" if inner else "EMPTY" for name, inner in graph.items()}
    return "".join(f"<!ELEMENT {name} {model}>" for name, model in models.items())


def tree(graph: dict[str, str], name: str, depth: int, draw: random.Random) -> str:
    children = graph[name] if depth else ""
    inner = "".join(
        tree(graph, child, depth - 1, draw) for child in children if draw.random() < 0.8
    )
    return f"<{name}>{inner}</{name}>"


STEPS = st.tuples(st.sampled_from(["/", "//"]), st.sampled_from([*NAMES, "*", "*"])).map("".join)
FILTERS = st.lists(STEPS, min_size=1, max_size=5).map("".join)
HEURISTICS = st.builds(
    Heuristics,
    wildcards=st.sampled_from(["all", "only-parent", "none"]),
    descendants=st.sampled_from(["all", "single", "none"]),
    leading=st.booleans(),
    substitutes_max=st.sampled_from([0, 4, 1000]),
    filters_max=st.sampled_from([1, 5, 1000]),
    steps_max=st.sampled_from([10, 1000]),
    all_steps_max=st.sampled_from([0, 2000, 1 << 26]),
)


@settings(max_examples=100)
@given(
    graph=graphs(),
    filters=st.lists(FILTERS, min_size=1, max_size=10),
    heuristics=HEURISTICS,
    seed=st.integers(0, 1000),
)
def test_the_union_is_the_filter(
    graph: dict[str, str], filters: list[str], heuristics: Heuristics, seed: int
) -> None:
    schema = SchemaGraph.of(parse_dtd(dtd_of(graph)), ["a"])
    pruner = Pruner(schema, heuristics)
    draw = random.Random(seed)
    documents = [tree(graph, "a", 5, draw).encode() for _ in range(5)]
    asked: dict[str, str] = {}
    for number, filter in enumerate(filters):
        codes = pruner.labels.read(filter)
        found = pruned(pruner, filter)
        assert (pruner.failure(codes) is None) == bool(found)
        asked[f"{number}"] = f"boolean({filter})"
        asked[f"{number} pruned"] = f"boolean({' | '.join(found) or '/never'})"
    matcher = tamis.compile(asked)
    for document in documents:
        ids = set(matcher.match(document))
        wrong = [
            id
            for id in ids
            if id.removesuffix(" pruned") not in ids or f"{id[:1]} pruned" not in ids
        ]
        assert not wrong, (asked, document)
