"""The case table in a circuit, and documents with namespaces."""

from pathlib import Path

import pytest

import tamis
from tamis.core.limits import Limits
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary
from tamis.hardware.circuit import SYSTEMS
from tamis.hardware.generate import Generated
from tamis.hardware.simulate import Simulator
from tests.hardware.checking import check
from tests.support.case_table import cases
from tests.support.parsing import batch_of, sources

pytestmark = pytest.mark.hardware


def test_each_document_with_the_subscriptions_of_all_cases(tmp_path: Path) -> None:
    chosen = [case for case in cases() if not case.namespaces]
    texts = {case.name: case.subscription for case in chosen if isinstance(case.expected, bool)}
    read = sources((case.document for case in chosen), Limits())
    documents = [bytes(source.data) for source in read if isinstance(source, Source)]
    vocabulary = Vocabulary()
    batch_of(*(case.document for case in chosen), projection=Projection(), vocabulary=vocabulary)
    made = Generated(texts, set(vocabulary), options=SYSTEMS["shared"])
    assert made.tables.bit_count >= 119
    assert len(made.ids) >= 119
    matcher = tamis.compile(texts, engine="reference")
    counts = check(Simulator(made, tmp_path), matcher, documents)
    assert counts["answer"] > 230, counts


PREFIXES = {"": "urn:u", "p": "urn:p", "q": "urn:q", "also-p": "urn:p"}
QUERIES = {
    "default": "//u:b",
    "prefixed": "/p:a/u:b",
    "same name": "//q:b",
    "none": "//b",
    "twig": "//u:b[p:a or @x]",
    "wildcard": "/p:a/*/p:b",
    "attribute": "//u:b/@p:x",
}
ANSWERED = [
    b"<b xmlns='urn:u'/>",
    b"<p:a xmlns:p='urn:p' xmlns='urn:u'><b/></p:a>",
    b'<p:a\n xmlns = "urn:u" x="xmlns" xmlns:q="urn:q" xmlns:p = "urn:p"><q:b/><b><p:b/></b></p:a>',
    b"<p:a p:x='1' xmlns:p='urn:p' xml:lang='en'><p:b/></p:a>",
    b"<b xmlns='urn:u' xmlns:also-p='urn:p'><also-p:a/><b also-p:x='1'/></b>",
    b"<b xmlns='urn:u' xmlns:p='urn:p'><b x='1'/><b p:x='1'/><b><p:a/></b></b>",
]
NOT_FOR_THE_CIRCUIT = [
    b"<b/>",
    b"<b xmlns='urn:x'/>",
    b"<b xmlns='urn:u '/>",
    b"<b xmlns='urn:&#117;'/>",
    b"<b xmlns=''/>",
    b"<b xmlns='urn:u'><b xmlns='urn:p'/></b>",
    b"<b xmlns='urn:u'><p:a xmlns:p='urn:p'/></b>",
    b"<r:b xmlns:r='urn:u'/>",
    b"<b xmlns='urn:u' xmlns:r='urn:r'/>",
    b"<p:b xmlns:p='urn:q'/>",
]


def test_namespaces(tmp_path: Path) -> None:
    namespaces = {"u": "urn:u", "p": "urn:p", "q": "urn:q"}
    subscriptions = tamis.Subscriptions(QUERIES, namespaces=namespaces)
    alphabet = [(uri, name) for uri in namespaces.values() for name in "ab"]
    simulator = Simulator(Generated(subscriptions, alphabet, PREFIXES), tmp_path)
    assert simulator.generated.ids
    matcher = tamis.compile(subscriptions, engine="reference")
    assert check(simulator, matcher, ANSWERED) == {"answer": len(ANSWERED)}
    for answer in simulator.run(NOT_FOR_THE_CIRCUIT):
        assert {"unsupported", "unknown"}.intersection(answer.status)
    undeclared = b"<b xmlns='urn:u'><p:a/></b>"  # malformed
    check(simulator, matcher, [undeclared])
