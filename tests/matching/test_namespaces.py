"""A default namespace, and name tests that say the namespace: the same answers, however written."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

import tamis
from tamis.core.errors import EngineRefused
from tamis.language.entries import BULK_MIN
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tests.support.bulk import read_in_bulk
from tests.support.engines import ENGINES
from tests.support.oracles import lxml_xpath
from tests.support.saxon import transformed

URI = "http://maven.apache.org/POM/4.0.0"
DOCUMENTS = [
    f"<project xmlns='{URI}'><version>1</version><dependencies><dependency scope='test'>"
    "<version>2</version></dependency></dependencies></project>",
    "<project><version>1</version></project>",
    f"<m:project xmlns:m='{URI}' m:scope='x'><version/><m:version>1</m:version></m:project>",
    f"<project xmlns='{URI}' scope='test'><version xmlns=''>1</version></project>",
]
# Each expression as it is with the default namespace, and as it is with a prefix.
PAIRS = [
    ("/project/version", "/m:project/m:version"),
    ("//version = 2", "//m:version = 2"),
    ("//dependency[@scope = 'test']/version", "//m:dependency[@scope = 'test']/m:version"),
    ("//@scope", "//@scope"),
    ("//*[version]", "//*[m:version]"),
    ("//m:version | /project/@m:scope", "//m:version | /m:project/@m:scope"),
    ("/project[not(dependencies)]", "/m:project[not(m:dependencies)]"),
    ("//node()[self::version]", "//node()[self::m:version]"),
    ("//dependency/attribute::scope", "//m:dependency/attribute::scope"),
    ("count(/project/version) = 1", "count(/m:project/m:version) = 1"),
    ("//version[text()]", "//m:version[text()]"),
]
SLOW = [
    ("//version[last()]/..", "//m:version[last()]/.."),
    ("/project[dependencies]/version[position() < 2]", "/m:project[m:dependencies]/m:version[1]"),
    ("//version/ancestor::project[@scope or @m:scope]", "//m:version/ancestor::m:project/@m:scope"),
]
NAMES = {"m": URI}


def said(matcher: tamis.CompiledMatcher) -> list[list[tamis.SubscriptionId]]:
    return [list(match) for match in matcher.match_many(DOCUMENTS)]


@pytest.mark.parametrize("engine", ["auto", *(engine.name for engine in ENGINES)])
def test_a_default_namespace_is_a_prefix_that_is_not_written(engine: str) -> None:
    pairs = {}
    for short, long in PAIRS:
        try:
            tamis.compile({"x": long}, namespaces=NAMES, engine=engine)
        except EngineRefused:
            continue
        pairs[short] = long
    given = tamis.compile(
        {short: short for short in pairs}, namespaces=NAMES, default_namespace=URI, engine=engine
    )
    expected = tamis.compile(pairs, namespaces=NAMES, engine=engine)
    assert said(given) == said(expected)
    assert any(said(given))


def test_all_that_carries_subscriptions_carries_it(tmp_path: Path) -> None:
    pairs = dict(PAIRS + SLOW)
    given = tamis.Subscriptions(
        {s: s for s in pairs}, namespaces=NAMES, default_namespace=URI, unsupported="slow"
    )
    assert (given.namespaces, given.default_namespace) == (NAMES, URI)
    expected = [
        [
            short
            for short, long in pairs.items()
            if lxml_xpath(long, NAMES)(etree.ElementTree(etree.fromstring(document)))
        ]
        for document in DOCUMENTS
    ]
    matcher = tamis.compile(given)
    assert said(matcher) == expected
    matcher.save(tmp_path / "it")
    loaded = tamis.load(tmp_path / "it")
    assert loaded.subscriptions.default_namespace == URI
    for other in (loaded, pickle.loads(pickle.dumps(matcher)), pickle.loads(pickle.dumps(loaded))):
        assert said(other) == expected
    live = tamis.Matcher(namespaces=NAMES, default_namespace=URI, unsupported="slow")
    for short in pairs:
        live.add(short, short)
    assert [list(match) for match in live.match_many(DOCUMENTS)] == expected


def test_a_large_set_reads_it_in_bulk() -> None:
    asked = {number: f"//a{number}[@k = 'v']/b{number}" for number in range(BULK_MIN)}
    matcher = tamis.compile(asked, default_namespace=URI)
    assert read_in_bulk(matcher.subscriptions.queries) == BULK_MIN
    document = "<r><a7 k='v' {}><b7/></a7><x:a8 xmlns:x='{}' k='v'><b8/></x:a8></r>"
    assert list(matcher.match(document.format(f"xmlns='{URI}'", URI))) == [7]
    assert list(matcher.match(document.format("", "urn:x"))) == []
    assert list(matcher.match(document.replace("<b8", "<x:b8").format("", URI))) == [8]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"namespaces": {None: "u"}}, "a default namespace is default_namespace='u'"),
        ({"namespaces": {"": "u"}}, "a default namespace is default_namespace='u'"),
        ({"default_namespace": ""}, "default_namespace is a URI, not ''"),
        ({"default_namespace": {"p": "u"}}, "default_namespace is a URI"),
    ],
)
def test_what_is_no_default_namespace_is_refused(given: dict[str, Any], message: str) -> None:
    for make in (tamis.compile, tamis.Subscriptions, tamis.Transformer):
        with pytest.raises(tamis.UsageError, match=message):
            make({}, **given)
    with pytest.raises(tamis.UsageError, match="are for Subscriptions"):
        tamis.compile(tamis.Subscriptions({}), default_namespace="u")


def test_a_large_set_has_names_of_xpath_3() -> None:
    """Its kernels decline them; a wildcard of names and one of a namespace pass one name each."""
    tests = ["*:a{}", "Q{{urn:n{}}}b", "Q{{urn:n{}}}*", "@*:k{}", "@Q{{urn:n{}}}*", "Q{{}}c{}"]
    asked = {
        f"{text} {number}": "//" + text.format(number) for text in tests for number in range(400)
    }
    matcher = tamis.compile(asked)
    assert (len(asked) > BULK_MIN, matcher.engine) == (True, "automaton")
    document = (
        "<r><p:a1 xmlns:p='urn:n2'/><a3/><b xmlns='urn:n4'/><c5 q:k6='' xmlns:q='urn:n7'/>"
        "<c8 xmlns='urn:n' k9=''/></r>"
    )
    assert set(matcher.match(document)) == {
        f"{tests[0]} 1", f"{tests[2]} 2", f"{tests[0]} 3", f"{tests[1]} 4", f"{tests[2]} 4",
        f"{tests[5]} 5", f"{tests[3]} 6", f"{tests[4]} 7", f"{tests[3]} 9",
    }  # fmt: skip
    oracle = etree.ElementTree(etree.fromstring(document))
    for id in ("*:a{} 1", "Q{{urn:n{}}}* 4", "Q{{}}c{} 8"):
        assert lxml_xpath(asked[id], {})(oracle) == (id in matcher.match(document))


@pytest.mark.parametrize("engine", [engine.name for engine in ENGINES])
def test_a_dtd_prunes_what_is_around_them(engine: str) -> None:
    dtd = parse_dtd(
        "<!ELEMENT a (b | c)*><!ELEMENT b (a | c)*><!ELEMENT c EMPTY><!ATTLIST c k CDATA #IMPLIED>"
    )
    asked = [
        "//b/*:c",
        "/*/*:b//Q{}*",
        "/a/b/*:a[*:c/@*:k]",
        "//*[Q{}c]",
        "/*:d",
        "//Q{u}a",
        "//b/c",
    ]
    asked += ["//*:b/*/c", "//a[not(*:b)]", "/*:a/*"]
    documents = ["<a><b><c k='1'/><a><c k='2'/></a></b></a>", "<a/>", "<a><c/></a>", "<d/>"]
    for text in asked:
        try:
            pruned = tamis.compile({1: text}, engine=engine, dtd=SchemaGraph.of(dtd, ["a"]))
        except EngineRefused:
            continue
        expected = tamis.compile({1: text}, engine="reference")
        for document in documents:
            assert list(pruned.match(document)) == list(expected.match(document)), (text, document)


def test_transformations_have_them() -> None:
    query = "<r>{{ for $b in //{} where $b/@{} = 1 return <x>{{ $b/{}/text() }}</x> }}</r>"
    document = "<a xmlns:p='u'><p:b p:k='1'><c xmlns='u'>1</c></p:b><b k='1'><c>2</c></b></a>"
    asked = {
        "<r><x>1</x></r>": ("Q{u}b", "Q{u}k", "*:c"),
        "<r><x>2</x></r>": ("*:b", "Q{}k", "Q{}*"),
        "<r><x>1</x><x>2</x></r>": ("*:b", "*:k", "*:c"),
    }
    for expected, names in asked.items():
        assert tamis.Transformer({1: query.format(*names)}).transform(document)[0].text == expected
        assert transformed(query.format(*names), document).endswith(expected)
