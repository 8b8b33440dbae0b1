"""Generated queries parse, follow the DTD, and have the statistics that were asked for."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator

import pytest

import tamis
from tamis.core.errors import UsageError
from tamis.language.model import DESCEND, Compare, Exists, NameTest, Path, Step
from tamis.language.xpath import parse
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd, read_dtd
from tamis_workload.documents.grammar import DocumentOptions, Documents
from tamis_workload.draws import Values
from tamis_workload.names import QueryNames
from tamis_workload.queries.paths import QueryOptions, queries_from_dtd
from tamis_workload.queries.twigs import TwigOptions, twigs_from_dtd
from tests.support.corpora import ROOT

DTD = """
<!ELEMENT shop (item*, note?)>  <!ATTLIST shop open CDATA #IMPLIED>
<!ELEMENT item (name, price, item*)>
<!ATTLIST item kind (new | used) #REQUIRED id ID #IMPLIED x:y CDATA #IMPLIED>
<!ELEMENT name (#PCDATA)>  <!ELEMENT price (#PCDATA)>
<!ELEMENT note (#PCDATA | name)*>
<!ELEMENT lost (name)>
<!ELEMENT never (never)>
"""


def graph() -> SchemaGraph:
    return SchemaGraph.of(parse_dtd(DTD), ["shop"])


def path_of(text: str) -> Path:
    expression = parse(text).expression
    assert isinstance(expression, Exists)
    return expression.paths[0]


def levels(path: Path) -> Iterator[tuple[bool, Step]]:
    """The named steps, and whether ``//`` stands before each."""
    below = False
    for step in path.steps:
        if step == DESCEND:
            below = True
        else:
            yield below, step
            below = False


def is_wildcard(step: Step) -> bool:
    return isinstance(step.test, NameTest) and step.test.local is None


@pytest.mark.parametrize(("wildcard", "descendant"), [(0, 0), (0.2, 0.1), (0.5, 0.5), (1, 1)])
def test_probabilities(wildcard: float, descendant: float) -> None:
    options = QueryOptions(wildcard=wildcard, descendant=descendant, depth=(2, 5))
    steps = [
        step
        for text in queries_from_dtd(graph(), 3_000, options=options, seed=3)
        for step in levels(path_of(text))
    ]
    # Some 8,000 draws: four standard deviations of a share are at most 0.023.
    assert sum(is_wildcard(step) for _, step in steps) / len(steps) == pytest.approx(
        wildcard, abs=0.023
    )
    assert sum(below for below, _ in steps) / len(steps) == pytest.approx(descendant, abs=0.023)


def test_depth() -> None:
    for low, high in ((1, 1), (2, 4), (6, 6)):
        options = QueryOptions(depth=(low, high), wildcard=0, descendant=0)
        texts = list(queries_from_dtd(graph(), 500, options=options))
        lengths = {len(path_of(text).steps) for text in texts}
        assert max(lengths) == high
        leaves = {"name", "price"}
        for text in texts:  # a shorter one ends where nothing is below
            assert len(path_of(text).steps) >= low or text.rpartition("/")[2] in leaves


def follows(path: Path, schema: SchemaGraph) -> bool:
    """Whether the names of a path without ``*`` and predicates can be below each other so."""
    possible = set(schema.reachable) if path.steps[0] == DESCEND else set(schema.roots)
    for index, (below, step) in enumerate(levels(path)):
        assert isinstance(step.test, NameTest)
        if index:
            inside = {c for name in possible for c in schema.children(name)}
            deeper = {c for name in possible for c in schema.reaches(name)}
            possible = deeper if below else inside
        if step.test.local is not None:
            possible &= {step.test.local}
    return bool(possible)


def test_consistent_with_the_dtd_when_asked_to_be() -> None:
    schema = graph()
    consistent = [path_of(text) for text in queries_from_dtd(schema, 1_000)]
    assert all(follows(path, schema) for path in consistent)
    loose = queries_from_dtd(schema, 1_000, options=QueryOptions(consistent=False))
    assert 0.1 < sum(follows(path_of(text), schema) for text in loose) / 1_000 < 0.9


def test_names_that_no_document_has_are_not_drawn() -> None:
    text = "\n".join(queries_from_dtd(graph(), 2_000, options=QueryOptions(predicates=1)))
    assert not re.search("lost|never|x:y|@id", text)
    assert re.search("@open", text)


def test_distinct() -> None:
    texts = list(queries_from_dtd(graph(), 2_000, distinct=True))
    assert len(set(texts)) == 2_000
    # Without: some twice, and the same ones at first.
    assert len(set(queries_from_dtd(graph(), 2_000))) < 2_000
    options = QueryOptions(depth=(1, 1), descendant=0, wildcard=0.5)
    with pytest.raises(UsageError, match="only 2 distinct queries were found"):
        list(queries_from_dtd(graph(), 3, distinct=True, options=options))


def test_skew() -> None:
    options = QueryOptions(depth=(2, 2), wildcard=0, descendant=0, skew=1)
    counts = Counter(queries_from_dtd(graph(), 3_000, options=options))
    assert counts["/shop/item"] / counts["/shop/note"] == pytest.approx(2, rel=0.2)


def test_predicates_and_nested_paths() -> None:
    options = QueryOptions(predicates=2, nested=1, depth=(2, 4), nested_depth=2)
    for text in queries_from_dtd(graph(), 500, options=options):
        predicates = [p for step in path_of(text).steps for p in step.predicates]
        compared = [p for p in predicates if isinstance(p, Compare)]
        nested = [p for p in predicates if isinstance(p, Exists)]
        assert len(compared) == 2
        assert len(nested) <= 1  # none where nothing is below
        for predicate in nested:
            assert len(list(levels(predicate.paths[0]))) in (1, 2, 3)  # "." of .// is a step
    texts = "".join(queries_from_dtd(graph(), 500, options=options))
    for part in ("[name ", "[price ", "[text() ", "[@kind = 'new']", "[@open ", "[.//", "[item"):
        assert part in texts


@pytest.mark.parametrize("skew", [0, 1.2])
@pytest.mark.parametrize("selectivity", [0.05, 0.3, 0.8])
def test_selectivity(skew: float, selectivity: float) -> None:
    """Predicates are true of that share of the values in generated documents."""
    values = Values(200, skew)
    dtd = "<!ELEMENT a (#PCDATA)>"
    schema = SchemaGraph.of(parse_dtd(dtd))
    documents = Documents(schema, options=DocumentOptions(values=values))
    options = QueryOptions(
        predicates=1, depth=(1, 1), wildcard=0, descendant=0, values=values, selectivity=selectivity
    )
    matcher = tamis.compile(enumerate(queries_from_dtd(schema, 40, options=options)))
    found = [len(match) for match in matcher.match_many(map(documents.document, range(600)))]
    # The 24,000 answers are of 600 documents: four deviations of their share.
    tolerance = 4 * (selectivity * (1 - selectivity) / 600) ** 0.5 + 0.01
    assert sum(found) / 600 / 40 == pytest.approx(
        selectivity, abs=min(tolerance, 0.9 * selectivity)
    )


def test_bad_odds() -> None:
    for options in (
        {"depth": (0, 2)},
        {"depth": (3, 2)},
        {"wildcard": 1.1},
        {"descendant": -0.1},
        {"selectivity": 2},
        {"predicates": -1},
        {"nested": 101},
        {"nested_depth": 0},
    ):
        with pytest.raises(UsageError):
            QueryOptions(**options)  # type: ignore[arg-type]
        if options.keys() <= {"wildcard", "descendant", "selectivity", "predicates"}:
            with pytest.raises(UsageError):
                TwigOptions(**options)  # type: ignore[arg-type]
    empty = SchemaGraph.of(parse_dtd("<!ELEMENT a EMPTY>"))
    with pytest.raises(UsageError, match="no element has attributes or texts"):
        list(queries_from_dtd(empty, 1, options=QueryOptions(predicates=1)))


def test_predicates_where_hardly_anything_has_a_value() -> None:
    deep = SchemaGraph.of(parse_dtd("<!ELEMENT a (b)> <!ELEMENT b (c)> <!ELEMENT c (#PCDATA)>"))
    options = QueryOptions(predicates=1, depth=(1, 1), descendant=0)
    with pytest.raises(UsageError, match="no path of 1 to 1 steps has a value to compare"):
        list(queries_from_dtd(deep, 1, options=options))
    words = Values(10, kind="words")
    with pytest.raises(UsageError, match="words have no ranges"):
        queries_from_dtd(deep, 1, options=QueryOptions(values=words, selectivity=0.5))


def test_of_several_roots_the_one_that_documents_begin_with() -> None:
    """Elements that nothing uses are roots by the graph, but no documents begin with them."""
    schema = SchemaGraph.of(
        parse_dtd("<!ELEMENT lost EMPTY> <!ELEMENT a (b*)> <!ELEMENT b EMPTY> <!ELEMENT c (b)>")
    )
    assert schema.roots == ("lost", "a", "c")
    assert Documents(schema).document(0).startswith(b"<a>")
    text = "".join(queries_from_dtd(schema, 500))
    assert "lost" not in text
    assert "c" not in text
    assert queries_from_dtd(schema, 1).namespaces == {}


# -- twigs -----------------------------------------------------------------------------------------


def nodes_of(path: Path) -> Iterator[tuple[Step, int]]:
    """The nodes of a twig, with the number of their children."""
    named = [step for _, step in levels(path)]
    for index, step in enumerate(named):
        branches = [p for p in step.predicates if isinstance(p, Exists)]
        if not (isinstance(step.test, NameTest)):
            continue  # the "." of .//
        yield step, len(branches) + (index < len(named) - 1)
        for branch in branches:
            yield from nodes_of(branch.paths[0])


@pytest.mark.parametrize(
    ("nodes", "splits", "children"), [(1, 0, 2), (5, 1, 4), (10, 3, 4), (15, 6, 4), (15, 7, 2)]
)
def test_shape_of_twigs(nodes: int, splits: int, children: int) -> None:
    options = TwigOptions(
        nodes=nodes, splits=splits, children=children, wildcard=0.3, descendant=0.3
    )
    schema = SchemaGraph.of(parse_dtd("<!ELEMENT a (a|b|c|d)*><!ELEMENT b (a|b|c|d)*>"
                                      "<!ELEMENT c (a|b)*><!ELEMENT d EMPTY>"))  # fmt: skip
    widest = 0
    for text in twigs_from_dtd(schema, 300, options=options):
        found = list(nodes_of(path_of(text)))
        assert len(found) == nodes
        assert sum(below > 1 for _, below in found) == splits
        widest = max(widest, *(below for _, below in found))
    assert widest <= children
    assert splits == 0 or nodes == 2 * splits + 1 or widest > 2


def test_probabilities_of_twigs() -> None:
    options = TwigOptions(nodes=9, splits=2, wildcard=0.3, descendant=0.5)
    schema = SchemaGraph.of(parse_dtd("<!ELEMENT a (a|b|c)*><!ELEMENT b (a|b)*><!ELEMENT c (a)*>"))
    texts = list(twigs_from_dtd(schema, 1_000, options=options))
    found = [step for text in texts for step, _ in nodes_of(path_of(text))]
    assert sum(map(is_wildcard, found)) / len(found) == pytest.approx(0.3, abs=0.02)
    assert sum(text.count("//") for text in texts) / len(found) == pytest.approx(0.5, abs=0.022)


def test_twigs_can_match() -> None:
    """Each twig is true of some document, since it was drawn as a part of one."""
    schema = SchemaGraph.of(
        parse_dtd("<!ELEMENT a (b | c)*> <!ELEMENT b (a | c)*> <!ELEMENT c (b*)>"), ["a"]
    )
    options = TwigOptions(nodes=6, splits=2, wildcard=0.3, descendant=0.3, predicates=0)
    matcher = tamis.compile(enumerate(twigs_from_dtd(schema, 200, options=options)))
    documents = Documents(
        schema, size=20_000, depth=9, options=DocumentOptions(repeats=(0, 5)), fill=True
    )
    found = {number for i in range(20) for number in matcher.match(documents.document(i))}
    assert len(found) > 190


def test_twigs_that_the_dtd_has_no_room_for() -> None:
    flat = SchemaGraph.of(parse_dtd("<!ELEMENT a (b*)> <!ELEMENT b (#PCDATA)>"))
    with pytest.raises(UsageError, match="no room for twigs of 15 nodes with 6 splits"):
        list(twigs_from_dtd(flat, 1))
    with pytest.raises(UsageError, match="need 13 nodes at least, not 12"):
        TwigOptions(nodes=12, splits=6)
    assert list(
        twigs_from_dtd(flat, 1, options=TwigOptions(nodes=2, splits=0, wildcard=0, descendant=0))
    )


# -- always the same -------------------------------------------------------------------------------


def test_the_same_text_everywhere() -> None:
    """Taken once: a change of these is a change of everybody's workloads."""
    options = QueryOptions(predicates=1, nested=1, skew=0.7, values=Values(30, 0.5))
    queries = "\n".join(queries_from_dtd(graph(), 1_000, options=options, distinct=True, seed=9))
    schema = SchemaGraph.of(
        parse_dtd("<!ELEMENT a (a|b|c)*><!ELEMENT b (a|b)*><!ELEMENT c (#PCDATA)>")
    )
    odds_of_twigs = TwigOptions(predicates=1, wildcard=0.3, descendant=0.3)
    twigs = "\n".join(twigs_from_dtd(schema, 1_000, options=odds_of_twigs, seed=9))
    digests = [hashlib.sha256(text.encode()).hexdigest()[:16] for text in (queries, twigs)]
    assert digests == GOLDEN


GOLDEN = ["cdc66e8bf0ecdf98", "b027c1b565f1fc83"]


@pytest.mark.corpora
@pytest.mark.parametrize(
    "dtd", ["docutils/docutils.dtd", "xmark/auction.dtd", "dblp/dblp.dtd", "cldr/dtd/ldml.dtd",
            "entrez-dtds/JATS-archivearticle1-3-mathml3.dtd"]
)  # fmt: skip
def test_queries_of_real_dtds_parse(dtd: str) -> None:
    if not ROOT.is_dir():
        pytest.skip(f"the real DTDs are not at {ROOT}")
    schema = SchemaGraph.of(read_dtd(ROOT / dtd))
    options = QueryOptions(predicates=1, nested=1)
    texts = list(queries_from_dtd(schema, 3_000, options=options, distinct=True))
    texts += twigs_from_dtd(schema, 1_000, options=TwigOptions(nodes=7, splits=2, predicates=1))
    parsed = tamis.Subscriptions(enumerate(texts), namespaces=QueryNames(schema).namespaces)
    assert len(parsed) == 4_000
