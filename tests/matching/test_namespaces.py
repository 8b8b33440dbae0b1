"""A default namespace, and name tests that say the namespace: the same answers, however written."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

import tamis
from tamis.errors import EngineRefused
from tamis.language.entries import BULK_MIN
from tamis.matching import planner
from tests.oracles import lxml_xpath

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


@pytest.mark.parametrize("engine", ["auto", *(engine.name for engine in planner.ENGINES)])
def test_a_default_namespace_is_a_prefix_that_is_not_written(engine: str) -> None:
    pairs = {}
    for short, long in PAIRS:
        try:
            tamis.compile({"x": long}, namespaces=NAMES, engine=engine)
        except EngineRefused:
            continue
        pairs[short] = long
    given = tamis.compile(
        {short: short for short in pairs},
        namespaces=NAMES,
        default_namespace=URI,
        engine=engine,
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
    assert len(matcher.subscriptions.queries.plain) == BULK_MIN
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
    with pytest.raises(tamis.UsageError, match="give namespaces, default_namespace"):
        tamis.compile(tamis.Subscriptions({}), default_namespace="u")
