"""Documents that leave their DTD are answered without it, by every engine that prunes."""

from __future__ import annotations

import logging
import pickle
import random
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import tamis
from tamis.core.errors import EngineRefused, SchemaError, UsageError
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tests.schema.test_prune import FILTERS, NAMES, dtd_of, graphs, tree
from tests.schema.test_twigs import TWIGS
from tests.support.engines import ENGINES
from tests.support.strategies import NAMESPACES

PRUNING = [engine.name for engine in ENGINES if engine.heuristics]
DTD = """
<!ELEMENT book (title, chapter+)> <!ELEMENT chapter (title, note*)>
<!ELEMENT title (#PCDATA)> <!ELEMENT note (#PCDATA)>
"""
VALID = "<book><title/><chapter><title/><note/></chapter></book>"
DEPARTED = {
    "undeclared": "<book><title/><chapter><title/><x/></chapter></book>",
    "edge": "<book><note/></book>",
    "root": "<chapter><title/></chapter>",
    "namespace": "<book xmlns='urn:b'><title/></book>",
    "prefix": "<book xmlns:p='urn:b'><p:note/></book>",
}


@pytest.fixture
def dtd(tmp_path: Path) -> Path:
    path = tmp_path / "book.dtd"
    path.write_text(DTD)
    return path


@pytest.mark.parametrize("engine", PRUNING)
@pytest.mark.parametrize("how", DEPARTED)
def test_departures_are_noticed(engine: str, how: str, dtd: Path) -> None:
    asked = {"/book/note": "/book/note", "//note": "//note", "//title": "//title",
             "/chapter": "/chapter", "//x": "//x", "//chapter/x": "//chapter/x"}  # fmt: skip
    matcher = tamis.compile(asked, engine=engine, dtd=dtd)
    expected = list(tamis.compile(asked).match(DEPARTED[how]))
    documents = [VALID, DEPARTED[how], VALID, "<a", DEPARTED[how]]
    found = list(matcher.match_many(documents))
    assert list(found[0]) == list(found[2]) == ["//note", "//title"]
    assert list(found[1]) == list(found[4]) == expected
    assert found[3].error is not None
    assert matcher.schema_violations == 2


def test_violations_are_noticed_though_lxml_answers_all(dtd: Path) -> None:
    matcher = tamis.compile({"l": "//note[last()]"}, unsupported="slow", dtd=dtd)
    assert list(matcher.match(DEPARTED["edge"])) == ["l"]
    assert (matcher.schema_violations, matcher.first_violation) == (1, "note in book")
    with pytest.raises(UsageError, match="what automaton pruned with a DTD cannot be saved"):
        matcher.save(dtd.parent / "l.tamis")


@pytest.mark.parametrize("engine", PRUNING)
def test_trusted_documents_are_not_looked_at(engine: str, dtd: Path) -> None:
    """What was pruned is asked as it is: the only way to see that the check is off."""
    asked = {"note": "/book/note", "title": "//title"}
    matcher = tamis.compile(asked, engine=engine, dtd=dtd, dtd_trust=True)
    assert list(matcher.match(DEPARTED["edge"])) == []
    assert list(matcher.match(VALID)) == ["title"]
    assert matcher.schema_violations == 0


def test_nothing_departed_is_true_under_not(dtd: Path) -> None:
    asked = {"none": "not(/book/note)", "no chapter": "/book[not(note)]"}
    matcher = tamis.compile(asked, engine="nfa", dtd=dtd)
    assert list(matcher.match(DEPARTED["edge"])) == []
    assert list(matcher.match(VALID)) == ["none", "no chapter"]


def test_a_root_and_records(dtd: Path) -> None:
    matcher = tamis.compile({"n": "/chapter/note"}, engine="pma", dtd=dtd, root="chapter")
    assert [list(found) for found in matcher.match_records(VALID, "chapter")] == [["n"]]
    assert matcher.schema_violations == 0


def test_any_content_is_every_declared_element(tmp_path: Path) -> None:
    path = tmp_path / "any.dtd"
    path.write_text("<!ELEMENT a ANY> <!ELEMENT b EMPTY>")
    matcher = tamis.compile({"b": "/a/a//b"}, engine="nfa", dtd=path, root="a")
    assert [bool(m) for m in matcher.match_many(["<a><a><b/></a></a>", "<a><a/><b/></a>"])] == [
        True,
        False,
    ]
    assert matcher.schema_violations == 0
    assert not matcher.match("<a><b><b/></b></a>")
    assert matcher.schema_violations == 1


def test_departures_are_logged(dtd: Path, caplog: pytest.LogCaptureFixture) -> None:
    matcher = tamis.compile({"x": "//x"}, engine="pma", dtd=dtd)
    with caplog.at_level(logging.INFO, logger="tamis"):
        assert list(matcher.match(DEPARTED["undeclared"])) == ["x"]
    assert "1 of 1 documents leave the DTD, the first by x in chapter" in caplog.text
    assert matcher.first_violation == "x in chapter"


def test_the_oracle_makes_no_use_of_a_dtd(dtd: Path, tmp_path: Path) -> None:
    matcher = tamis.compile({"x": "//x"}, engine="reference", dtd=dtd)
    assert list(matcher.match(DEPARTED["undeclared"])) == ["x"]
    assert matcher.schema_violations == 0
    matcher.save(tmp_path / "x.tamis")


def test_what_was_pruned_is_not_saved(dtd: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be saved"):
        tamis.compile({"x": "//x"}, engine="nfa", dtd=dtd).save(tmp_path / "x.tamis")


def test_pickled_with_its_dtd(dtd: Path) -> None:
    matcher = pickle.loads(pickle.dumps(tamis.compile({"x": "//note"}, engine="nfa", dtd=dtd)))
    assert list(matcher.match(VALID)) == ["x"]
    assert list(matcher.match(DEPARTED["edge"])) == ["x"]
    assert matcher.schema_violations == 1


@pytest.mark.parametrize("arguments", [{"root": "a"}, {"dtd_trust": True}])
def test_what_is_about_a_dtd_needs_one(arguments: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="give dtd too"):
        tamis.compile({}, **arguments)  # type: ignore[arg-type]


def test_a_live_matcher_has_a_dtd_too(dtd: Path) -> None:
    live = tamis.Matcher(engine="nfa", dtd=dtd)
    live.add("x", "//chapter[note]")
    assert list(live.match(VALID)) == ["x"]
    assert live.compiled().schema_violations == 0


HTML = """
<!ELEMENT html (body)> <!ATTLIST html xmlns CDATA #FIXED "urn:h"> <!ELEMENT body (p | m:math)*>
<!ELEMENT p (#PCDATA)> <!ELEMENT m:math (m:mi)> <!ATTLIST m:math xmlns:m CDATA #FIXED "urn:m">
<!ELEMENT m:mi (#PCDATA)>
"""
PAGE = """<html xmlns="urn:h"><body><p/><m:math xmlns:m="urn:m"><m:mi/></m:math></body></html>"""


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("engine", PRUNING)
def test_namespaces_that_the_dtd_declares(engine: str, trust: bool) -> None:
    asked = ["//h:p", "//m:*", "/h:html//m:mi", "/h:html/h:*/h:p", "/h:html/m:*", "//p", "//h:body"]
    graph = SchemaGraph.of(parse_dtd(HTML))
    given = tamis.Subscriptions(enumerate(asked), namespaces={"h": "urn:h", "m": "urn:m"})
    expected = list(tamis.compile(given).match(PAGE))
    assert expected == [0, 1, 2, 3, 6]
    for number, text in enumerate(asked):
        one = tamis.Subscriptions({number: text}, namespaces=given.namespaces)
        with suppress(EngineRefused):
            matcher = tamis.compile(one, engine=engine, dtd=graph, dtd_trust=trust)
            assert list(matcher.match(PAGE)) == ([number] if number in expected else [])
            assert matcher.schema_violations == 0


@pytest.mark.parametrize(
    ("dtd", "trust", "message"),
    [
        ("", False, "no element is declared here"),
        ("<!ELEMENT a (b)> <!ELEMENT b (a)>", False, None),
        ("<!ENTITY % x SYSTEM 'away.mod'> %x; <!ELEMENT a ANY>", True, "away.mod"),
        ("<!ENTITY % x SYSTEM 'away.mod'> %x; <!ELEMENT a ANY>", False, None),
        (
            "<!ELEMENT a ANY>" + "".join(f"<!ELEMENT e{n} EMPTY>" for n in range(9000)),
            False,
            "9,001",
        ),
    ],
)
def test_dtds_that_are_of_no_use(
    tmp_path: Path, dtd: str, trust: bool, message: str | None
) -> None:
    path = tmp_path / "x.dtd"
    path.write_text(dtd)
    if message is None:
        tamis.compile({"x": "//b"}, dtd=path, dtd_trust=trust)
        return
    with pytest.raises((UsageError, SchemaError), match=message):
        tamis.compile({"x": "//b"}, dtd=path, dtd_trust=trust)


@pytest.mark.parametrize("dtd", [b"<!ELEMENT a ANY>", 5])
def test_what_is_no_dtd(dtd: object) -> None:
    with pytest.raises(UsageError, match="the path of a file, or a SchemaGraph"):
        tamis.compile({}, dtd=dtd)  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", PRUNING)
@settings(max_examples=100, deadline=None)
@given(graph=graphs(), texts=st.lists(FILTERS, min_size=1, max_size=6), seed=st.integers(0, 1000))
def test_the_same_nodes_are_selected(
    engine: str, graph: dict[str, str], texts: list[str], seed: int
) -> None:
    schema = SchemaGraph.of(parse_dtd(dtd_of(graph)), ["a"])
    draw = random.Random(seed)
    documents = [tree(graph, "a", 4, draw).encode() for _ in range(4)]
    expected = tamis.compile({text: text for text in texts}, engine="reference")
    for text in texts:
        with suppress(EngineRefused):
            matcher = tamis.compile({text: text}, engine=engine, dtd=schema)
            for found, wanted in zip(
                matcher.match_many(documents, nodes="all"),
                expected.match_many(documents, nodes="all"),
                strict=True,
            ):
                assert list(found.nodes(text)) == list(wanted.nodes(text)), (text, dtd_of(graph))


@pytest.mark.parametrize("engine", PRUNING)
@settings(max_examples=150, deadline=None)
@given(
    graph=graphs(),
    other=graphs(),
    texts=st.lists(st.one_of(FILTERS, TWIGS), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
)
def test_drawn(
    engine: str, graph: dict[str, str], other: dict[str, str], texts: list[str], seed: int
) -> None:
    """Documents of the graph, and of another one, beside each other."""
    schema = SchemaGraph.of(parse_dtd(dtd_of(graph)), ["a"])
    draw = random.Random(seed)
    documents = [tree(draw.choice([graph, other]), "a", 4, draw).encode() for _ in range(8)]
    documents.append(tree(other, draw.choice(NAMES), 3, draw).encode())
    asked: dict[str, str] = {}
    for text in texts:
        try:
            tamis.compile({"": text}, engine=engine, dtd=schema, namespaces=NAMESPACES)
        except (EngineRefused, tamis.BadSubscriptions):
            event("refused")
        else:
            asked[text] = text
            event("answered")
    matcher = tamis.compile(asked, engine=engine, dtd=schema, namespaces=NAMESPACES)
    expected = tamis.compile(asked, engine="reference", namespaces=NAMESPACES)
    for document, found, wanted in zip(
        documents, matcher.match_many(documents), expected.match_many(documents), strict=True
    ):
        assert list(found) == list(wanted), (dtd_of(graph), document)
