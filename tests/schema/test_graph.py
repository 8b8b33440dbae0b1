"""The graph schema: examples, the DTDs of the corpora, and drawn graphs against brute force."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.errors import UsageError
from tamis.schema.dtd import Child, ContentKind, Dtd, ElementType, Group, Occurs, Particle
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd, read_dtd
from tests.support.corpora import ROOT

PAPER = """<!ELEMENT a (b | c | d)*> <!ELEMENT b (f)> <!ELEMENT c (f)> <!ELEMENT d (e)>
           <!ELEMENT e (f)> <!ELEMENT f EMPTY>"""


def graph_of(text: str, *roots: str) -> SchemaGraph:
    return SchemaGraph.of(parse_dtd(text), roots)


# -- roots -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "roots"),
    [
        (PAPER, ("a",)),
        ("<!ELEMENT b EMPTY> <!ELEMENT a (b)> <!ELEMENT c (b)>", ("a", "c")),
        ("<!ELEMENT c EMPTY> <!ELEMENT a (b)> <!ELEMENT b (a | c)>", ("a", "b")),
        ("<!ELEMENT a (a?)>", ("a",)),
        ("<!ELEMENT a (b)> <!ELEMENT b ANY>", ("a",)),
        ("", ()),
    ],
)
def test_roots_are_guessed(text: str, roots: tuple[str, ...]) -> None:
    assert graph_of(text).roots == roots


def test_roots_that_are_given_come_before_that_of_the_doctype() -> None:
    elements = parse_dtd(PAPER).elements
    assert SchemaGraph.of(Dtd(elements, root="d")).roots == ("d",)
    assert SchemaGraph.of(Dtd(elements, root="d"), ["b", "c", "b"]).roots == ("b", "c")


def test_a_doctype_that_is_not_declared_is_told_and_not_a_root() -> None:
    graph = SchemaGraph.of(Dtd(parse_dtd(PAPER).elements, root="x"))
    assert (graph.roots, graph.undeclared) == (("a",), ("x",))


@pytest.mark.parametrize(
    ("text", "root", "message"),
    [
        ("<!ELEMENT book (title)> <!ELEMENT title EMPTY>", "bok", "did you mean book?"),
        ("<!ELEMENT book (title)> <!ELEMENT title EMPTY>", "x", "there are book, title"),
        ("".join(f"<!ELEMENT e{n} EMPTY>" for n in range(9)), "x", "e6, e7, …"),
        ("", "x", "no element 'x' is declared"),
    ],
)
def test_an_unknown_root_is_refused(text: str, root: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        graph_of(text, root)
    assert str(caught.value).endswith(message)


# -- edges -----------------------------------------------------------------------------------------


def test_edges() -> None:
    graph = graph_of(
        "<!ELEMENT a ((c, b?) | (c, x))> <!ELEMENT b (#PCDATA | a | c)*> <!ELEMENT c (#PCDATA)>"
    )
    assert [graph.children(name) for name in "abc"] == [("c", "b"), ("a", "c"), ()]
    assert [graph.parents(name) for name in "abc"] == [("b",), ("a",), ("a", "b")]
    assert graph.undeclared == ("x",)


def test_any_content_is_every_declared_element() -> None:
    graph = graph_of("<!ELEMENT a (b)> <!ELEMENT b ANY> <!ELEMENT c EMPTY>", "a")
    assert graph.children("b") == ("a", "b", "c")
    assert graph.parents("c") == ("b",)
    assert graph.reachable == ("a", "b", "c")
    assert graph.cycles == (("a", "b"),)


def test_what_no_root_reaches_is_out_of_the_figures() -> None:
    graph = graph_of("<!ELEMENT a (b)> <!ELEMENT b EMPTY> <!ELEMENT c (c | b)>", "a")
    assert graph.reachable == ("a", "b")
    assert (graph.is_recursive, graph.depth, graph.path_count()) == (False, 2, 2)
    assert graph.parents("b") == ("a", "c")
    assert graph.reaches("c") == {"b", "c"}


def test_an_unknown_name_is_a_key_error() -> None:
    graph = graph_of(PAPER)
    for method in (graph.children, graph.parents, graph.reaches, graph.height):
        with pytest.raises(KeyError):
            method("x")


# -- paths -----------------------------------------------------------------------------------------


def test_paths_of_the_paper() -> None:
    graph = graph_of(PAPER)
    found = ["".join(path) for path in graph.paths(None, most=100)]
    assert found == ["a", "ab", "ac", "ad", "abf", "acf", "ade", "adef"]
    assert graph.path_count() == len(found)
    assert (graph.depth, graph.is_recursive) == (4, False)


def test_paths_are_bounded() -> None:
    graph = graph_of("<!ELEMENT a (a | b)*> <!ELEMENT b (a)>")
    assert len(list(graph.paths(None, most=1000))) == 1000
    assert list(graph.paths(None, most=0)) == list(graph.paths(0, most=10)) == []
    assert graph.path_count(0) == 0
    with pytest.raises(UsageError, match="give a depth"):
        graph.path_count()


def test_counts_are_exact() -> None:
    """The example of the paper for exponentially many paths."""
    rungs = 200
    graph = graph_of(
        "".join(
            f"<!ELEMENT a{n} (b{n} | c{n})><!ELEMENT b{n} (a{n + 1})><!ELEMENT c{n} (a{n + 1})>"
            for n in range(rungs)
        )
        + f"<!ELEMENT a{rungs} EMPTY>"
    )
    assert graph.path_count() == 4 * 2**rungs - 3
    assert graph.depth == 2 * rungs + 1


def test_deep_chains_need_no_stack() -> None:
    size = 5_000  # Python permits a stack of 1,000
    chain = "".join(f"<!ELEMENT e{n} (e{n + 1})>" for n in range(size - 1))
    graph = graph_of(f"{chain}<!ELEMENT e{size - 1} EMPTY>")
    assert (graph.roots, graph.depth, graph.height("e0")) == (("e0",), size, size)
    assert len(graph.reaches("e0")) == size - 1
    assert graph.path_count() == size
    ring = graph_of(f"{chain}<!ELEMENT e{size - 1} (e0)>")
    assert (len(ring.roots), len(ring.cycles[0]), ring.height("e0")) == (size, size, None)


# -- heights ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "height"),
    [
        ("EMPTY", 1),
        ("ANY", 1),
        ("(#PCDATA)", 1),
        ("(#PCDATA | deep)*", 1),
        ("(leaf)", 2),
        ("(leaf, deep)", 4),
        ("(leaf | deep)", 2),
        ("(leaf?, deep*)", 1),
        ("(leaf, deep)+", 4),
        ("((leaf | e)+, deep?)", 2),
        ("(e)", None),
        ("(undeclared)", None),
        ("(undeclared | leaf)", 2),
        ("(leaf, endless)", None),
        ("(endless | leaf)", 2),
        ("(endless?)", 1),
    ],
)
def test_heights(model: str, height: int | None) -> None:
    graph = graph_of(
        f"<!ELEMENT e {model}> <!ELEMENT leaf EMPTY> <!ELEMENT deep (middle)>"
        "<!ELEMENT middle (leaf)> <!ELEMENT endless (leaf, more)> <!ELEMENT more (endless)>"
    )
    assert graph.height("e") == height


# -- the DTDs of the corpora -----------------------------------------------------------------------


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("file", "root", "reachable", "recursive", "depth", "paths"),
    [
        ("blast/NCBI_BlastOutput.dtd", "BlastOutput", 67, 0, 8, 75),
        ("docutils/docutils.dtd", "document", 98, 52, None, None),
        ("xmark/auction.dtd", "site", 74, 5, None, None),  # of 77 that are declared
        ("mondial/mondial.dtd", "mondial", 55, 1, None, None),
        ("dblp/dblp.dtd", "dblp", 39, 4, None, None),
        ("shakespeare/play.dtd", "PLAY", 21, 0, 6, 88),
    ],
)
def test_dtds_in_use(
    file: str, root: str, reachable: int, recursive: int, depth: int | None, paths: int | None
) -> None:
    if not ROOT.is_dir():
        pytest.skip(f"the real documents are not at {ROOT}")
    graph = SchemaGraph.of(read_dtd(ROOT / file), [root])
    assert len(graph.reachable) == reachable
    assert sum(map(len, graph.cycles)) == recursive
    assert graph.depth == depth
    assert graph.undeclared == ()
    if paths is not None:
        assert graph.path_count() == paths


# -- drawn graphs against brute force --------------------------------------------------------------

NAMES = "abcde"
_occurs = st.sampled_from(Occurs)
_particles: st.SearchStrategy[Particle] = st.recursive(
    st.builds(Child, st.sampled_from([*NAMES, "undeclared"]), _occurs),
    lambda parts: st.builds(
        Group, st.lists(parts, min_size=1, max_size=3).map(tuple), st.booleans(), _occurs
    ),
    max_leaves=4,
)


@st.composite
def _elements(draw: st.DrawFn, name: str) -> ElementType:
    kind = draw(st.sampled_from(ContentKind))
    model: Particle | None = None
    if kind is ContentKind.CHILDREN:
        model = draw(_particles)
    elif kind is ContentKind.MIXED:
        inside = tuple(map(Child, draw(st.sets(st.sampled_from(NAMES)))))
        model = Group(inside, True, Occurs.ZERO_OR_MORE) if inside else None
    return ElementType(name, kind, model)


@st.composite
def graphs(draw: st.DrawFn) -> SchemaGraph:
    names = draw(st.permutations(NAMES[: draw(st.integers(1, len(NAMES)))]))
    dtd = Dtd({name: draw(_elements(name)) for name in names})
    return SchemaGraph.of(dtd, draw(st.lists(st.sampled_from(names), max_size=2)))


def brute_paths(graph: SchemaGraph, starts: tuple[str, ...], steps: int) -> list[tuple[str, ...]]:
    """All paths of at most so many steps, by trying every sequence of names."""
    return [
        path
        for length in range(1, steps + 1)
        for path in itertools.product(graph.dtd.elements, repeat=length)
        if path[0] in starts
        and all(below in graph.children(above) for above, below in itertools.pairwise(path))
    ]


@given(graphs())
def test_figures_equal_those_of_all_paths(graph: SchemaGraph) -> None:
    names = tuple(graph.dtd.elements)
    steps = len(names) + 1  # enough to go through everything, or once round any cycle
    every = brute_paths(graph, names, steps)
    inside = {
        name: {p[-1] for p in every if p[0] == name and len(p) > 1} & set(names) for name in names
    }
    assert {name: set(graph.reaches(name)) for name in names} == inside
    reachable = {name for root in graph.roots for name in {root} | inside[root]}
    assert graph.reachable == tuple(name for name in names if name in reachable)

    cycles = {
        tuple(n for n in names if n == name or (n in inside[name] and name in inside[n]))
        for name in graph.reachable
        if name in inside[name]
    }
    assert set(graph.cycles) == cycles
    assert list(graph.cycles) == sorted(graph.cycles, key=lambda cycle: names.index(cycle[0]))

    paths = brute_paths(graph, graph.roots, steps)
    assert sorted(graph.paths(steps, most=10**6)) == sorted(paths)
    assert graph.path_count(steps) == len(paths)
    if not cycles:
        assert graph.depth == max(map(len, paths))
        assert graph.path_count() == len(paths)
    else:
        assert graph.depth is None


@given(graphs())
def test_guessed_roots_reach_everything_and_nothing_outside_names_them(graph: SchemaGraph) -> None:
    guess = SchemaGraph.of(graph.dtd)
    assert set(guess.reachable) == set(graph.dtd.elements)
    for name, element in graph.dtd.elements.items():
        for child in element.children:
            assert child not in guess.roots or name in guess.reaches(child)


def need(particle: Particle | None, heights: dict[str, float]) -> float:
    """The levels that a content model needs, as it is defined."""
    if particle is None or particle.occurs in (Occurs.OPTIONAL, Occurs.ZERO_OR_MORE):
        return 0
    if isinstance(particle, Child):
        return heights.get(particle.name, math.inf)
    return (min if particle.is_choice else max)(need(part, heights) for part in particle.parts)


@given(graphs())
def test_heights_are_the_least_solution(graph: SchemaGraph) -> None:
    heights = dict.fromkeys(graph.dtd.elements, math.inf)
    for _ in heights:
        heights = {n: 1 + need(graph.dtd.elements[n].model, heights) for n in heights}
    found = {name: graph.height(name) for name in heights}
    assert found == {n: None if height == math.inf else height for n, height in heights.items()}
