"""The paper's examples, sizes, moves, and documents of all shapes."""

from __future__ import annotations

import numpy as np
import pytest

import tamis
from tamis.core.errors import EngineRefused
from tamis.documents.vocabulary import Vocabulary
from tamis.language.xpath import parse
from tamis.matching.engine import reason_of
from tamis.schema.graph import SchemaGraph
from tamis.schema.prune import Heuristics, Pruner
from tamis.schema.reader import parse_dtd
from tamis_papers.pma import ENGINE, PmaOptions, compile_queries, open_pma
from tamis_papers.pma.program import FULL_GOTO_MAX, Pma
from tests.papers.pma.variants import OPTIONS, answers, matchings, parsed, queries_of


def figure_4(count: int) -> list[str]:
    """The filters of the paper's Figure 4."""
    return [f"//b//a{i}/b" for i in range(count)] + [f"//a{i}/b" for i in range(count)]


def pma_of(filters: list[str]) -> tuple[Pma, dict[str, int]]:
    """The automaton of all keywords, and its states by what they are prefixes of."""
    program = compile_queries(queries_of(filters), options=PmaOptions(passes=2))
    pma, names = program.single, ("#", *program.filters.names[1:])
    strings = [""]
    for parent, symbol in zip(pma.parent[1:].tolist(), pma.symbol[1:].tolist(), strict=True):
        strings.append(f"{strings[parent]} {names[symbol]}".strip())
    return pma, {string: state for state, string in enumerate(strings)}


def output(pma: Pma, state: int) -> list[int]:
    return sorted(pma.output[pma.output_starts[state] : pma.output_starts[state + 1]].tolist())


# -- the automaton ---------------------------------------------------------------------------------


def test_keywords() -> None:
    pma, states = pma_of(["//a/b//c/d", "/a/b//c/d"])
    assert set(states) == {"", "a", "a b", "c", "c d", "#", "# a", "# a b"}
    assert [pma.depth[states[word]] for word in ("", "c", "# a b")] == [0, 1, 3]
    assert pma.fail[states["# a b"]] == states["a b"]
    assert pma.fail[states["c d"]] == 0
    # "-1 - i" is the i-th filter of several keywords.
    assert output(pma, states["c d"]) == [-2, -1]
    assert output(pma, states["# a b"]) == [-2]


def test_figure_4() -> None:
    pma, states = pma_of(figure_4(3))
    assert set(states) == {"", "b", "a0", "a1", "a2", "a0 b", "a1 b", "a2 b"}
    assert [pma.fail[states[f"a{i} b"]] for i in range(3)] == [states["b"]] * 3
    assert [pma.output_fail[states[f"a{i} b"]] for i in range(3)] == [states["b"]] * 3
    assert pma.output_fail[states["b"]] == 0
    assert output(pma, states["b"]) == [-3, -2, -1]
    assert output(pma, states["a1 b"]) == [-2, 4]  # keyword 2 of filter 1, and all of filter 3 + 1


def test_sizes_are_linear() -> None:
    sizes = {count: pma_of(figure_4(count))[0].sizes for count in (10, 100, 1000)}
    for count, (states, edges, instances) in sizes.items():
        assert (states, edges, instances) == (2 * count + 2, 2 * count + 1, 3 * count)
    program = compile_queries(queries_of(figure_4(1000)), options=PmaOptions(full_goto=False))
    assert program.memory_usage() < 1000 * 250
    # Output sets with those of the fail path in them would have 1,000 instances of "b" each.
    assert len(program.multi.output) == 3000


def test_the_full_goto_stays_small() -> None:
    filters = [f"//a{i}/b{i}" for i in range(1500)]
    program = compile_queries(queries_of(filters))
    assert program.sizes.states * len(program.filters.names) > FULL_GOTO_MAX
    assert len(program.single.full_goto) == 0
    assert answers(filters, ["<a7><b7/><a3><b4/></a3></a7>"]) == [{"//a7/b7"}]


# -- answers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "document", "expected"),
    [
        # A suffix of a keyword is a prefix of the next; a keyword is in the next.
        ("//a/b//b/c //b//a/b/c", "<a><b><c/></b></a>", ""),
        ("//a/b//b/c", "<a><b><b><c/></b></b></a>", "//a/b//b/c"),
        ("//b//a/b/c", "<b><a><b><c/></b></a></b>", "//b//a/b/c"),
        ("//a//a //a//a//a", "<a><b><a/></b><a/></a>", "//a//a"),
        ("//a/b//c/d /a/b//c/d", "<x><a><b><c><d/></c></b></a></x>", "//a/b//c/d"),
        ("/a/b/c //a//c /c /a", "<a><b><c/></b></a>", "/a/b/c //a//c /a"),
        # Not on the same path, not in order, all keywords occurring.
        ("//a//b //b//a", "<x><a/><b/></x>", ""),
        ("//a//b//c", "<x><a><b/><c/></a><c><b><a/></b></c></x>", ""),
        # The frontier goes back, and forth again.
        ("//a//b//c", "<x><a><b/></a><b><a><c/><b><c/></b></a></b></x>", "//a//b//c"),
        # Matched while a list with the next keyword is looked through.
        ("//b //b//b //a/b//b", "<a><b><b/></b></a>", "//b //b//b //a/b//b"),
    ],
)
def test_answers(filters: str, document: str, expected: str) -> None:
    assert answers(filters.split(), [document]) == [set(expected.split())]


def test_what_two_queries_ask() -> None:
    """Each query of a filter is answered, and a union by either of its filters."""
    filters = ["//a//b", "/a//b | //a//b", "//c | //a//b", "//c"]
    assert answers(filters, ["<x><a><b/></a></x>", "<c/>"]) == [set(filters[:3]), set(filters[2:])]


def test_documents_of_all_kinds() -> None:
    filters = ["//a//b", "/a", "//b/b//c"]
    documents = ["<a/>", "<a", "<unknown><b/></unknown>", "<a><b><b><x><c/></x></b></b></a>", ""]
    expected = [{"/a"}, set(), set(), set(filters), set()]
    assert answers(filters, documents) == expected
    assert answers(filters, documents * 100) == expected * 100
    assert answers(filters, []) == []
    assert answers([], documents) == [set()] * len(documents)


def test_names_that_come_later() -> None:
    """The same matching meets another vocabulary, and one that grew."""
    for matching in matchings(queries_of(["//a/b", "//b//c"])):
        for document in ("<x><a><b/></a></x>", "<b><a><b/></a></b>"):
            batch, vocabulary = parsed([document])
            assert matching.match(batch, vocabulary).numbers(0).tolist() == [0]
        vocabulary.add("", "later")
        assert matching.match(batch, vocabulary).numbers(0).tolist() == [0]


def test_namespaces() -> None:
    namespaces = {"p": "urn:p"}
    matcher = tamis.compile(
        {"p": "//p:a//b", "none": "//a//b"}, namespaces=namespaces, engine="pma"
    )
    assert list(matcher.match("<a xmlns='urn:p'><b xmlns=''/></a>")) == ["p"]
    with pytest.raises(EngineRefused, match=r"it has a \* in a namespace"):
        tamis.compile({"p": "//p:*"}, namespaces=namespaces, engine="pma")


def test_deep_documents() -> None:
    depth = 100_000
    document = "<x>" + "<a><b>" * (depth // 2) + "<c/>" + "</b></a>" * (depth // 2) + "</x>"
    filters = ["//a/b/c", "/x//a//c", "//c//a", "//b/a//b/c", "//b/b"]
    expected = set(filters[:2]) | {filters[3]}
    assert answers(filters, [document, "<c/>", document]) == [expected, set(), expected]


def test_many_filters_in_many_documents() -> None:
    """More is found than there is room for at first."""
    filters = [f"//a{i}" for i in range(50)] + [f"//a{i}//b" for i in range(50)]
    nested = "".join(f"<a{i}>" for i in range(50)) + "<b/>"
    nested += "".join(f"</a{i}>" for i in reversed(range(50)))
    assert answers(filters, [nested] * 40) == [set(filters)] * 40


# -- moves -----------------------------------------------------------------------------------------


def comb(depth: int, teeth: int) -> str:
    """A chain of a, with many b inside the last: each is behind the whole chain."""
    return "<a>" * depth + "<b/>" * teeth + "</a>" * depth


def test_moves() -> None:
    """Going back to a parent makes the same fail links be walked again: 2·|x| is no bound."""
    depth, teeth = 50, 200
    filter = "//" + "a/" * (depth - 1) + "a/c"
    batch, vocabulary = parsed([comb(depth, teeth)])
    elements = depth + teeth
    paths = teeth * (depth + 1)  # the lengths of all paths to leaves
    for options in OPTIONS:
        matching = open_pma(compile_queries(queries_of([filter]), options=options), 0)
        matching.match(batch, vocabulary)
        if options.full_goto:
            assert matching.moves == elements
        else:
            assert matching.moves == depth + teeth  # no keyword has b
    others = ["//b/x", filter]  # now one has
    for options in OPTIONS:
        matching = open_pma(compile_queries(queries_of(others), options=options), 0)
        matching.match(batch, vocabulary)
        if options.full_goto:
            assert matching.moves == elements
        else:
            assert matching.moves == depth + teeth * (depth + 1)
            assert 2 * elements < matching.moves <= 2 * paths


def test_room_for_depth_does_not_count_moves_again() -> None:
    batch, vocabulary = parsed([comb(1000, 1)])
    for matching in matchings(queries_of(["//a/b"])):
        for times in (1, 2):
            matching.match(batch, vocabulary)
            assert matching.moves <= times * 2 * 1001
            if len(matching.program.single.full_goto):
                assert matching.moves == times * 1001


# -- what is refused -------------------------------------------------------------------------------

DTD = "<!ELEMENT a (b | c)*> <!ELEMENT b (c)*> <!ELEMENT c (a | c)*>"


def pruner(**heuristics: object) -> Pruner:
    return Pruner(SchemaGraph.of(parse_dtd(DTD), ["a"]), Heuristics(**heuristics))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("//a/*", r"it has a \*, and there is no DTD that says what it may be"),
        ("//a[b]/c", "it has predicates, or the like"),
        ("//a/@b", "more than child and descendant steps to elements"),
        ("count(/a) = 1", "more than child and descendant steps to elements"),
    ],
)
def test_refused(query: str, reason: str) -> None:
    with pytest.raises(EngineRefused, match=reason) as raised:
        compile_queries([parse("//a"), parse(query), parse("//*")])
    assert str(raised.value).startswith("pma does not: ")
    said = reason_of(ENGINE, parse(query))
    assert said is not None
    assert said in str(raised.value)


def test_wildcards_that_a_dtd_resolves() -> None:
    queries = queries_of(["/a/*", "//*/c", "/*//*/*"])
    compile_queries(queries, pruner())
    with pytest.raises(EngineRefused, match=r"/a/\*: it has a \* that would become"):
        compile_queries(queries, pruner(wildcards="none"))


def test_only_who_names_it_gets_it() -> None:
    assert tamis.compile({"s": "//a"}).engine == "automaton"
    assert tamis.compile({"s": "//a"}, engine="pma").engine == "pma"


def test_memory() -> None:
    program = compile_queries(queries_of(figure_4(10)))
    arrays = (*program.single, *program.multi, *program.instances)
    assert not any(array.flags.writeable for array in arrays)
    assert program.memory_usage() > sum(array.nbytes for array in arrays)
    matching = open_pma(program, 0)
    before = matching.memory_usage()
    assert before > 0
    batch, vocabulary = parsed(["<a0><b/></a0>"] * 100)
    matches = matching.match(batch, vocabulary)
    assert not matches.set_ids.flags.writeable
    assert matching.memory_usage() == before
    assert len(Vocabulary()) == 0
    assert np.array_equal(np.diff(matches.document_starts), np.full(100, 1))
