"""What expressions read of documents: worked out by hand, and never too little."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, note, settings

import tamis
from tamis.documents.parser import parse as parse_documents
from tamis.documents.source import read
from tamis.documents.vocabulary import ALL_NAMES, EVERYTHING, NO_NAMES, Names, Vocabulary
from tamis.language.lower import lowered
from tamis.language.xpath import parse
from tamis.matching.engine import reason_of
from tamis.matching.projection import projection_of
from tests.support.engines import ENGINES
from tests.support.replay import command
from tests.support.strategies import NAMESPACES, documents, subscriptions

A, B, X = (Names([("", name)]) for name in "abx")


@pytest.mark.parametrize(
    ("expression", "attributes", "text"),
    [
        ("//a", NO_NAMES, NO_NAMES),
        ("/", NO_NAMES, NO_NAMES),
        ("//a[@x]", X, NO_NAMES),
        ("//a[@x = 'x' or @b > 1]", X | B, NO_NAMES),
        ("//@xml:x", Names([("http://www.w3.org/XML/1998/namespace", "x")]), NO_NAMES),
        ("//@*", ALL_NAMES, NO_NAMES),
        ("//@p:*", ALL_NAMES, NO_NAMES),
        ("//@node()", ALL_NAMES, NO_NAMES),
        ("//a/@x[. = '1']", X, NO_NAMES),
        ("//a/@x/self::node()[. = '1']", X, NO_NAMES),
        ("//p:a = '1'", NO_NAMES, Names([("urn:p", "a")])),
        ("//a[b = '1']", NO_NAMES, B),
        ("//a[. = '1']", NO_NAMES, A),
        ("//a[.//b > 1]", NO_NAMES, B),
        ("//a/text()", NO_NAMES, A),
        ("//a//text()", NO_NAMES, A),
        ("//a[text() = '1']", NO_NAMES, A),
        ("//a/text()[. = '1']", NO_NAMES, A),
        ("//a/descendant-or-self::text()", NO_NAMES, A),
        ("//text()", NO_NAMES, ALL_NAMES),
        ("//a/*[. = '1']", NO_NAMES, A),
        ("//a[* = '1']", NO_NAMES, A),
        ("//a//p:*[. = '1']/b", NO_NAMES, A),
        ("//a/b/self::*[. = '1']", NO_NAMES, B),
        ("//*[self::a = '1']", NO_NAMES, A),
        ("//a/node()", NO_NAMES, A),
        ("//a/node()[b = '1']", NO_NAMES, B),  # only an element has a b
        ("//a[count(node()) = 1]", NO_NAMES, A),
        ("//a[node()/b]", NO_NAMES, NO_NAMES),
        (". = '1'", NO_NAMES, ALL_NAMES),
        ("* = '1'", NO_NAMES, ALL_NAMES),
        ("(a | b) = '1'", NO_NAMES, A | B),
        ("contains(//a, '1') and not(starts-with(//@x, '1'))", X, A),
        ("//a[normalize-space() = '1']", NO_NAMES, A),
        ("//a[string-length(b) > 1]", NO_NAMES, B),
        ("//a[name(b) = 'b']", NO_NAMES, NO_NAMES),
        ("//a[name(text()) = '']", NO_NAMES, A),
    ],
)
def test_names(expression: str, attributes: Names, text: Names) -> None:
    projection = projection_of(lowered([parse(expression, {"p": "urn:p"})]))
    assert (projection.attributes, projection.text) == (attributes, text)


@settings(
    max_examples=600,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(subscriptions(), documents())
def test_projection_is_enough(subscription: str, document: str) -> None:
    """The answer is the same as where everything was recorded."""
    note(command(subscription, document, NAMESPACES))
    query = parse(subscription, NAMESPACES)
    engines = [engine for engine in ENGINES if reason_of(engine, query) is None]
    assert "reference" in [engine.name for engine in engines]
    source = read(document, tamis.Limits())
    for engine in engines:
        program = engine.compile([query])
        matching = engine.searcher(program, tamis.Limits().cache_bytes)
        found = []
        for projection in (program.projection, EVERYTHING):
            vocabulary = Vocabulary()
            batch, _ = parse_documents([source], vocabulary, projection, tamis.Limits())
            found.append(matching.match(batch, vocabulary).numbers(0).tolist())
        assert found[0] == found[1]


@pytest.mark.parametrize("engine", ["automaton", "reference"])
def test_a_prefix_on_which_no_answer_depends_is_not_recorded(engine: str) -> None:
    """The nodes of a twig are selected by its tree, which calls name() all the same."""
    matcher = tamis.compile({"x": "//a[contains(name(.), '')]/b"}, engine=engine)
    match = matcher.match(b"<a><b/></a>", nodes="all")
    assert [node.start for node in match.nodes("x")] == [3]
