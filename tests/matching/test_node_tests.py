"""Every node test on every axis, alone and beside each other: all engines say what lxml says."""

from __future__ import annotations

from itertools import product

import pytest

import tamis
from tamis.core.errors import UnsupportedExpression
from tamis.documents.parser import parse as parse_documents
from tamis.documents.source import Source, read
from tamis.documents.vocabulary import EVERYTHING, Vocabulary
from tamis.language import entries, queries
from tamis.language.xpath import parse
from tamis.matching.engine import Engine, reason_of
from tamis.matching.engines.lxml.execute import lxml_tree
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tests.matching.selected import Oracle
from tests.support.engines import ENGINES
from tests.support.oracles import lxml_xpath

AXES = ["child::", "descendant::", "descendant-or-self::", "self::", "@"]
TESTS = ["a", "p:a", "p:*", "*", "node()", "text()"]
REFUSED_TESTS = ["comment()", "processing-instruction()", "processing-instruction('a')"]
NAMESPACES = {"p": "urn:p"}
STEPS = [axis + test for axis, test in product(AXES, TESTS)]
PATHS = ["/".join(pair) for pair in product(STEPS, STEPS)]
COUNTED = [step for step in STEPS if step.startswith(("child", "@"))]
EXPRESSIONS = [
    *[f"//{step}" for step in STEPS],
    *[f"//{path}" for path in PATHS],
    *[f"//{path} = 'v'" for path in PATHS],
    *[f"//*[{path}]" for path in [*STEPS, *PATHS]],
    *[f"//*[not({path})]" for path in [*STEPS, *PATHS]],
    *[f"/r[{test}]" for step in STEPS for test in (f"contains({step}, 'v')", f"name({step}) = ''")],
    *[f"//*[starts-with({step}, '') and string-length({step}) = 0]" for step in STEPS],
    *[f"//*[count({step}) = {n}]" for step in COUNTED for n in (0, 1)],
    *[f"//{step}[not({other})]" for step, other in product(STEPS, STEPS)],
]
# Abbreviated, as the reader of large sets takes them.
PLAIN_STEPS = ["a", "@a", "p:a", "@p:a", "p:*", "@p:*", "*", "@*", "text()", "@text()"]
ABBREVIATED = [
    *[f"/r/{step}" for step in PLAIN_STEPS],
    *[f"//{step}" for step in PLAIN_STEPS],
    *[f"//{one}/{other}" for one, other in product(PLAIN_STEPS, PLAIN_STEPS)],
    *[f"//*[{one}][not({other})]" for one, other in product(PLAIN_STEPS, PLAIN_STEPS)],
    *[f"//*[not({one}//{other})]" for one, other in product(PLAIN_STEPS, PLAIN_STEPS)],
]
# The first has one node of each kind; each of the others lacks some of them.
DOCUMENTS = [
    "<r xmlns:p='urn:p' a='v' p:a='w'><a a='x'>v</a><p:a p:a='v'>t<a/></p:a><!--v--><?a v?></r>",
    "<a>v</a>",
    "<a/>",
    "<r a='v'/>",
    "<p:a xmlns:p='urn:p' p:a='v'><p:b/></p:a>",
    "<r><!--v--></r>",
    "<r><?a v?></r>",
    "<r><p:b xmlns:p='urn:p'>v</p:b></r>",
    "<!--c--><r b='v'><a><a>u</a></a></r>",
]
DTD = """<!ELEMENT r (#PCDATA | a | p:a | p:b)*> <!ELEMENT a (#PCDATA | a)*>
<!ELEMENT p:a (#PCDATA | a | p:b)*> <!ELEMENT p:b (#PCDATA)> <!ATTLIST a a CDATA #IMPLIED>
<!ATTLIST r a CDATA #IMPLIED p:a CDATA #IMPLIED b CDATA #IMPLIED xmlns:p CDATA #FIXED 'urn:p'>
<!ATTLIST p:a p:a CDATA #IMPLIED xmlns:p CDATA #FIXED 'urn:p'>
<!ATTLIST p:b xmlns:p CDATA #FIXED 'urn:p'>"""


@pytest.fixture(scope="module")
def truth() -> dict[str, list[bool]]:
    """What lxml says of each expression, for each document."""
    trees = [lxml_tree(Source(document.encode())) for document in DOCUMENTS]
    return {
        expression: [bool(evaluate(tree)) for tree in trees]
        for expression in [*EXPRESSIONS, *ABBREVIATED]
        for evaluate in [lxml_xpath(expression, NAMESPACES)]
    }


def wrong(answers: list[set[object]], truth: dict[str, list[bool]], of: list[str]) -> list[str]:
    """The expressions of which the answers are not as lxml's, with the first such document."""
    return [
        f"{expression} of {document}"
        for expression in of
        for document, found, true in zip(DOCUMENTS, answers, truth[expression], strict=True)
        if (expression in found) != true
    ]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_alone(engine: Engine, truth: dict[str, list[bool]]) -> None:
    sources = [read(document, tamis.Limits()) for document in DOCUMENTS]
    asked = [text for text in EXPRESSIONS[::7] + ABBREVIATED if is_taken(engine, text)]
    answers: list[set[object]] = [set() for _ in DOCUMENTS]
    for expression in asked:
        vocabulary = Vocabulary()
        batch, _ = parse_documents(sources, vocabulary, EVERYTHING, tamis.Limits())
        program = engine.compile([parse(expression, NAMESPACES)])
        matches = engine.searcher(program, tamis.Limits().cache_bytes).match(batch, vocabulary)
        for number, found in enumerate(answers):
            if len(matches.numbers(number)):
                found.add(expression)
    assert wrong(answers, truth, asked) == []


def is_taken(engine: Engine, expression: str) -> bool:
    return reason_of(engine, parse(expression, NAMESPACES)) is None


@pytest.mark.parametrize("bulk", [False, True], ids=["parser", "bulk"])
@pytest.mark.parametrize("dtd", [None, DTD], ids=["", "dtd"])
@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_beside_each_other(
    engine: Engine,
    dtd: str | None,
    bulk: bool,
    truth: dict[str, list[bool]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if bulk:
        monkeypatch.setattr(entries, "BULK_MIN", 1)
        monkeypatch.setattr(queries, "BULK_MIN", 1)
    asked = [text for text in EXPRESSIONS + ABBREVIATED if is_taken(engine, text)]
    graph = dtd and SchemaGraph.of(parse_dtd(dtd), ["r", "a", "p:a"])
    matcher = tamis.compile(
        {text: text for text in asked}, engine=engine.name, namespaces=NAMESPACES, dtd=graph
    )
    answers: list[set[object]] = [set(match) for match in matcher.match_many(DOCUMENTS)]
    assert wrong(answers, truth, asked) == []


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_selected_nodes(engine: str) -> None:
    """Paths select the nodes that lxml selects; ``Oracle`` wants something beside the root."""
    paths = [f"//{path}" for path in [*STEPS, *PATHS]] + [
        text for text in ABBREVIATED if "not(" not in text
    ]
    matcher = tamis.compile({path: path for path in paths}, engine=engine, namespaces=NAMESPACES)
    for document in DOCUMENTS:
        oracle = Oracle(f"<!--c-->{document.removeprefix('<!--c-->')}".encode())
        match = matcher.match(oracle.data, nodes="all")
        for path in paths:
            found = oracle.found(list(match.nodes(path)))
            assert sorted(map(str, found)) == sorted(map(str, oracle.expected(path, NAMESPACES)))


@pytest.mark.parametrize(("axis", "test"), [*product(AXES, REFUSED_TESTS)])
def test_comments_and_instructions_are_refused(axis: str, test: str) -> None:
    for expression in (f"/r/{axis}{test}", f"//*[not({axis}{test})]"):
        with pytest.raises(UnsupportedExpression, match=r"the node test (comment|processing)"):
            parse(expression)


def test_answers_differ(truth: dict[str, list[bool]]) -> None:
    """The canary: what is always true, or never, would tell little."""
    assert sum(len(set(found)) == 2 for found in truth.values()) > 1_000
