"""The reference engine against lxml and elementpath: public query sets, real documents, drawn ones.

The whole comparison with lxml (2,000 subscriptions for each corpus) is ``compare_corpora.py``; its
committed record is checked here for what it claims.
"""

from __future__ import annotations

import json
import tomllib
from functools import cache
from pathlib import Path

import pytest
from lxml import etree

import tamis
from tamis.core.errors import SubscriptionError
from tamis.documents.source import Source
from tamis.language.xpath import parse
from tamis.matching.engines.lxml.execute import lxml_tree
from tamis_workload.observed.generator import draw_from_documents
from tests.matching.compare_corpora import RECORD, compare, digest, draw
from tests.matching.xpath_sets import REFUSED, invented_document, queries, refused
from tests.support.corpora import CORPORA, ROOT, corpus
from tests.support.oracles import elementpath_true, lxml_xpath

pytestmark = pytest.mark.corpora


def small(name: str) -> list[Path]:
    """The documents of a corpus that fit the time of a test: some of each, none of the largest."""
    paths = [path for path in corpus(name) if path.stat().st_size < 400_000]
    return (paths or corpus(name))[::3][:12]


@pytest.mark.parametrize("name", [n for n in CORPORA if n not in ("mondial", "xmark")])
def test_real_documents(name: str) -> None:
    result = compare(small(name), 150, seed=7)
    assert result["differences"] == []
    assert result["subscriptions"] == 150
    assert 30 < result["matched"] < 120
    assert result["documents_matched"] == result["documents"]


def test_the_record_is_whole() -> None:
    record = json.loads(RECORD.read_text())
    assert set(record) == set(CORPORA)
    for name, result in record.items():
        assert result["differences"] == [], name
        assert result["subscriptions"] == 2000
        assert 1 / 3 <= result["matched"] / 2000 <= 2 / 3, name
        assert result["documents_matched"] == result["documents"], name


@pytest.mark.parametrize("name", ["usecases", "entrez", "dblp", "mondial", "shakespeare"])
def test_the_record_is_of_what_is_drawn_today(name: str) -> None:
    _, drawn = draw(corpus(name), 2000)
    assert digest(drawn) == json.loads(RECORD.read_text())[name]["drawn"]


@pytest.mark.parametrize("name", ["usecases", "entrez", "dblp"])
def test_elementpath(name: str) -> None:
    """elementpath is slow: small documents and few subscriptions."""
    paths = [p for p in small(name) if p.stat().st_size < 12_000][:8]
    trees = [lxml_tree(Source(path.read_bytes())) for path in paths]
    drawn = draw_from_documents(paths, 60, seed=11)
    matcher = tamis.compile(enumerate(drawn.expressions), namespaces=drawn.namespaces)
    answered = 0
    for tree, match in zip(trees, matcher.match_many(paths), strict=True):
        for number, text in enumerate(drawn.expressions):
            expected = elementpath_true(text, drawn.namespaces, tree)
            if expected is not None:
                answered += 1
                assert (number in set(match)) == expected, text
    assert answered >= 7 * len(trees)  # known faults of elementpath's bar the others


def test_public_sets_refused() -> None:
    """Only what the design excludes is refused; the committed list says what, by construct."""
    corpus("usecases")
    assert refused() == tomllib.loads(REFUSED.read_text())


@cache
def document_of_set(name: str) -> Path | None:
    found = [path for folder in ("usecases", "xmark") for path in (ROOT / folder).glob(name)]
    return found[0] if found else None


def test_public_sets_answered() -> None:
    """Every other query gets lxml's boolean: on its own document, and on invented ones."""
    corpus("usecases")
    own = true = answers = 0
    for text, namespaces, name in queries():
        try:
            parse(text, namespaces)
        except SubscriptionError:
            continue
        path = document_of_set(name)
        own += path is not None
        documents = [path.read_bytes()] if path is not None else []
        documents += [invented_document(text, namespaces, seed) for seed in range(12)]
        matcher = tamis.compile(tamis.Subscriptions({text: text}, namespaces=namespaces))
        oracle = lxml_xpath(text, namespaces)
        for data, match in zip(documents, matcher.match_many(documents), strict=True):
            expected = oracle(etree.fromstring(data).getroottree())
            assert bool(match) == expected, (text, namespaces, data[:2000])
            answers += 1
            true += expected
    assert own > 30
    assert answers / 5 < true < answers * 4 / 5
