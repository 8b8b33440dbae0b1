"""Pruned twigs are true of the documents that the twig is true of, if these are of the graph."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import tamis
from tamis.documents.parser import parse as parse_documents
from tamis.documents.source import read
from tamis.documents.vocabulary import EVERYTHING, Vocabulary
from tamis.language import table as t
from tamis.language.lower import lowered
from tamis.language.model import Constant, Query
from tamis.language.printer import print_query
from tamis.language.xpath import parse
from tamis.matching.engines import reference
from tamis.schema.graph import SchemaGraph
from tamis.schema.prune import Heuristics, Pruner
from tamis.schema.reader import parse_dtd
from tamis.schema.twigs import failure_of, prune_queries
from tests.language.raising import raised
from tests.schema.test_prune import FIGURE_1, HEURISTICS, dtd_of, pruner_of
from tests.support.strategies import NAMESPACES, PREDICATES, subscriptions

FALSE = Query(Constant(False))
BOOK = """
<!ELEMENT book (title, section*)> <!ELEMENT section (title, (section | figure | para)*)>
<!ELEMENT figure (title, image)> <!ELEMENT image EMPTY> <!ELEMENT title (#PCDATA)>
<!ELEMENT para (#PCDATA | bold)*> <!ELEMENT bold (#PCDATA)>
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Trunk and branches are about the same element.
        ("//*[image]/title", "//figure[image]/title"),
        ("/book/*[title]//bold", "/book/section[title]//bold"),
        ("//figure[*]", "//figure/image | //figure/title"),
        ("//para[.//bold = 'x']", "//para[bold = 'x']"),
        # What can never be is false, and not() of it true.
        ("//title[bold]", "false()"),
        ("//section[not(image)]", "//section"),
        ("//figure[not(para)]/*", "//figure/image | //figure/title"),
        ("//section[image or figure]", "//section[figure]"),
        ("//section[image and figure]", "false()"),
        ("//para | //image/title", "//para"),
        # All nodes of a step count: it stays.
        ("//section[*[2]/image]", "//section[*[2]/image]"),
        ("//figure[*[2]/image]", "false()"),
        ("//figure[count(*) = 2]", "//figure[count(*) = 2]"),
        ("//figure[contains(*, 'x')]", "//figure[contains(*, 'x')]"),
        ("//para[contains(.//bold, 'x')]", "//para[contains(bold, 'x')]"),
        ("//section[count(*[image or bold]/*) = 2]", "//section[count(*[image or bold]/*) = 2]"),
        ("//section[count(*[image]/*) = 2]", "//section[count(figure[image]/*) = 2]"),
        ("//section[count(figure/figure) = 0]", "//section[count(figure/figure) = 0]"),
        # //* is /* where nothing but existence is asked, and only there.
        (
            "//section[.//*]",
            "//section/figure | //section/para | //section/section | //section/title",
        ),
        ("//para[.//* = 'x']", "//para[bold = 'x']"),
        ("//para//*/@id", "//para/bold/@id"),
    ],
)
def test_named(text: str, expected: str) -> None:
    (pruned,) = pruned_by([parse(text)], pruner_of(BOOK))
    assert pruned == as_boolean(parse(expected)), print_query(pruned)


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("//title[section]", "section is never a child of title"),
        ("//title[section]/x | //y", "section is never a child of title; y is not declared"),
        ("//section[image and title]", "image is never a child of section"),
        ("//section[image or title]", None),
        ("//section[image or . = 'x']", None),
        ("//title[section[2]]", "section is never a child of title"),
        ("//title[starts-with(section, 'x')]", "section is never a child of title"),
        ("//title[not(starts-with(section, 'x'))]", None),
        ("//title[contains(.//section, 'x')]", None),
        ("//title/@id/section", None),
        ("//section[not(image)]", None),
        ("count(chapter) = 0", None),
        ("//p:section", "{urn:p}section is not declared"),
    ],
)
def test_what_can_never_match(text: str, failure: str | None) -> None:
    table = lowered([parse(text, {"p": "urn:p"})])
    assert failure_of(table, 0, pruner_of(BOOK)) == failure


def test_too_many_are_pruned_with_care() -> None:
    query = parse("/a/*/*[*]/*[*]")
    (exhaustive,) = pruned_by([query], pruner_of(FIGURE_1))
    assert "*" not in print_query(exhaustive)
    few = pruner_of(FIGURE_1, steps_max=4)
    assert pruned_by([query, parse("/a/*/*[*]/*[x]")], few) == [as_boolean(query), FALSE]


def pruned_by(queries: list[Query], pruner: Pruner) -> list[Query]:
    """What queries become, as syntax trees."""
    table = prune_queries(lowered(queries), pruner)
    return [as_boolean(raised(table, number)) for number in range(len(table))]


def as_boolean(query: Query) -> Query:
    """The tree that is read from the words of a query that only tells whether it is true."""
    again = lowered([replace(query, is_truth=True)])
    return replace(raised(again, 0), is_truth=False)


def document(graph: dict[str, str], name: str, depth: int, draw: random.Random) -> str:
    text = draw.choice(["", "", "1", "2", "ab", " a  b "])
    attributes = "".join(
        f' {n}="{draw.choice(["1", "10", "ab"])}"' for n in "xy" if draw.random() < 0.4
    )
    inner = "".join(
        document(graph, child, depth - 1, draw)
        for child in (graph[name] * 2 if depth else "")
        if draw.random() < 0.5
    )
    return f"<{name}{attributes}>{text}{inner}</{name}>"


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, str]:
    sets = st.sets(st.sampled_from("abcd"), max_size=3)
    return {name: "".join(sorted(draw(sets))) for name in "abcd"}


TWIGS = st.one_of(
    subscriptions(),
    st.builds(
        "{}{}[{}]{}".format,
        st.sampled_from(["//", "/*/", "/a//", "/a/"]),
        st.sampled_from(["*", "*", "a", "b", "c"]),
        st.one_of(PREDICATES, st.sampled_from(["not(b)", "not(*/a)", "c or not(a)"])),
        st.sampled_from(["", "/*", "//*", "//b", "/*[b]", "/*[not(d)]/*", "/*[b][1]/*"]),
    ),
)


def truths(queries: list[Query], documents: list[str]) -> list[set[int]]:
    """Which queries are true of each document."""
    vocabulary = Vocabulary()
    sources = [read(text, tamis.Limits()) for text in documents]
    batch, errors = parse_documents(sources, vocabulary, EVERYTHING, tamis.Limits())
    assert not errors
    searcher = reference.ENGINE.searcher(reference.compile_queries(queries), 0)
    matches = searcher.match(batch, vocabulary)
    return [set(matches.numbers(number).tolist()) for number in range(len(documents))]


@settings(max_examples=400, deadline=None)
@given(
    graph=graphs(),
    texts=st.lists(TWIGS, min_size=1, max_size=5),
    heuristics=HEURISTICS,
    seed=st.integers(0, 1000),
)
def test_pruned_is_the_same(
    graph: dict[str, str], texts: list[str], heuristics: Heuristics, seed: int
) -> None:
    pruner = Pruner(SchemaGraph.of(parse_dtd(dtd_of(graph)), ["a"]), heuristics)
    draw = random.Random(seed)
    documents = [document(graph, "a", 4, draw) for _ in range(6)]
    queries = [parse(text, NAMESPACES) for text in texts]
    pruned = pruned_by(queries, pruner)
    for number, (query, found) in enumerate(zip(queries, pruned, strict=True)):
        event("pruned" if as_boolean(query) != found else "as it was")
        if failure_of(lowered(queries), number, pruner) is not None:
            assert found == FALSE, print_query(found)
    for true in truths([*queries, *pruned], documents):
        for number, query in enumerate(queries):
            shown = print_query(query), print_query(pruned[number]), dtd_of(graph)
            assert (number in true) == (number + len(queries) in true), shown


def test_much_is_pruned() -> None:
    """The canary: a pruner that leaves all as it is would pass."""
    counted: Counter[bool] = Counter()

    @settings(max_examples=200, deadline=None, database=None, derandomize=True)
    @given(graphs(), TWIGS)
    def count(graph: dict[str, str], text: str) -> None:
        query = parse(text, NAMESPACES)
        pruner = Pruner(SchemaGraph.of(parse_dtd(dtd_of(graph)), ["a"]))
        (found,) = pruned_by([query], pruner)
        counted[found not in (as_boolean(query), FALSE)] += 1

    count()
    assert counted[True] > 20, counted


def test_as_many_steps_as_there_may_be() -> None:
    pruner = pruner_of("<!ELEMENT a (a | b)> <!ELEMENT b EMPTY>")
    for text in ("/a" * 999, "/*" * 999, "/a[b]" * 499, "/*[.//*]" * 200 + "/b"):
        table = lowered([parse(text)])
        assert failure_of(table, 0, pruner) is None
        assert prune_queries(table, pruner).words(0) != [t.ANY, t.END]
