"""lxml has the nodes that Tamis has, of documents and records with any DTD."""

from __future__ import annotations

from itertools import product

import pytest
from lxml import etree

import tamis
from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents.batch import DocumentBatch
from tamis.documents.source import Source
from tamis.documents.vocabulary import Vocabulary
from tamis.language.xpath import parse_any
from tamis.matching.engines.lxml.execute import answer, compile_queries, lxml_tree
from tests.support.parsing import batch_of, texts, values

SUBSETS = {
    "none": "",
    "external alone": 'SYSTEM "x.dtd"',
    "unused": 'SYSTEM "x.dtd" [<!ENTITY unused "M">]',
    "text": 'SYSTEM "x.dtd" [<!ENTITY x "M&#38;#60;&#13;"><!ENTITY u "">]',
    "markup": 'SYSTEM "x.dtd" [<!ENTITY y "<k>1</k>2<?p d?><!--c-->"><!ENTITY x "&y;">]',
    "external entity": '[<!ENTITY x SYSTEM "c.xml"><!ENTITY u PUBLIC "p" "u">]',
    "entities of entities": 'SYSTEM "x" [<!ENTITY y SYSTEM "c"><!ENTITY x "1&y;2&u;3">]',
    "parameter entity": "[<!ENTITY % p '<!ENTITY x \"M\">'> %p; <!ENTITY u 'U'>]",
    "external parameter entity": "[<!ENTITY % p SYSTEM 'p.ent'> %p; <!ENTITY x 'M'>]",
    "standalone": "[<!ENTITY x 'M'><!ENTITY u 'U'><!-- in the DTD --><?in the DTD?>]",
    "declared twice": "[<!ENTITY x 'M'><!ENTITY x 'N'><!ENTITY u 'U'>]",
    "defaults": """SYSTEM "x" [<!ATTLIST t n NMTOKENS "  1   2 " i ID #IMPLIED f CDATA #FIXED " f "
        xmlns:q CDATA "urn:q" q:m CDATA "3"><!ATTLIST b xml:lang CDATA "en">]""",
    "IDs": "[<!ATTLIST b i ID 'k'><!ATTLIST t i ID 'k'>]",
    "types": "[<!ATTLIST t a NMTOKEN #IMPLIED g (x|y) 'y'><!ENTITY x ' M '><!ENTITY u '\n'>]",
}
CONTENTS = [
    "<t/>",
    "<t>&x;</t>",
    "<t><![CDATA[]]></t><t>1<![CDATA[]]>2</t><t a='1'><![CDATA[]]><!--3--></t>",
    "1&x;2<t>3</t>&x;4",
    "<t a='1&u; 2'/>&u;5",
    "<t a=' &#9;&x; &quot;&lt;'>x<![CDATA[<&x;]]>y&x;<![CDATA[z]]>&u;</t>",
    "<t xml:id='k' xml:space='odd'/><t xml:id='k'/>",
    "<t xml:id='1' a='&u;'/><t xml:id='k'/><t xml:id='k' xmlns:p='a b' p:x=''/>",
    "<p:t xmlns:p='urn:p' p:a='&#10;&#13;'/>&#13;\r\n<t xmlns='urn:t' i='k'/><!--&x;--><?q &x;?>",
]


def nodes_of_batch(batch: DocumentBatch, vocabulary: Vocabulary) -> list[object]:
    elements = [vocabulary.expanded(tag) for tag in batch.tags.tolist() if tag >= 0]
    starts = {event: i for i, event in enumerate((batch.tags >= 0).nonzero()[0].tolist())}
    attributes = sorted(
        (starts[event], vocabulary.expanded(name), value)
        for event, name, value in zip(
            batch.attribute_event.tolist(),
            batch.attribute_name.tolist(),
            values(batch),
            strict=True,
        )
    )
    misc = [
        batch.misc_values[start:end].tobytes().decode()
        for start, end in zip(batch.misc_start.tolist(), batch.misc_end.tolist(), strict=True)
    ]
    return [elements, attributes, texts(batch), misc]


def nodes_of_tree(tree: etree._ElementTree) -> list[object]:
    def expanded(name: str) -> tuple[str, str]:
        found = etree.QName(name)
        return found.namespace or "", found.localname

    elements = tree.xpath("//*")
    attributes = sorted(
        (number, expanded(name), value)
        for number, element in enumerate(elements)
        for name, value in element.items()
    )
    misc = [node.text or "" for node in tree.xpath("//comment() | //processing-instruction()")]
    return [[expanded(e.tag) for e in elements], attributes, tree.xpath("//text()"), misc]


@pytest.mark.parametrize("name", SUBSETS)
def test_lxml_has_the_nodes_that_tamis_has(name: str) -> None:
    read = 0
    for content, standalone in product(CONTENTS, ("", " standalone='yes'")):
        doctype = f"<!DOCTYPE b {SUBSETS[name]}>" if SUBSETS[name] else ""
        document = (
            f"<?xml version='1.0'{standalone}?><!--0-->{doctype}<?p 1?><b>{content}</b><!--9-->"
        ).encode()
        vocabulary = Vocabulary()
        batch, errors = batch_of(document, vocabulary=vocabulary)
        if not errors:
            read += 1
            expected = nodes_of_batch(batch, vocabulary)
            assert nodes_of_tree(lxml_tree(Source(document))) == expected, document
    assert read >= 2, "most documents are right"


def test_ids_stay_declared() -> None:
    tree = lxml_tree(Source(b"<!DOCTYPE b [<!ATTLIST b i ID #IMPLIED>]><b i='k' j='l'/>"))
    assert tree.xpath("count(id('k'))") == 1
    assert tree.xpath("count(id('l'))") == 0


def test_an_error_of_a_resolved_document_has_no_place_in_it() -> None:
    """The place would be one of what was made of the document."""
    deep = b"<!DOCTYPE a [<!ENTITY e ''>]>" + b"<a>" * 3000 + b"</a>" * 3000
    program = compile_queries([parse_any("//a[last()]", {}, "slow", DEFAULT_LIMITS)])
    failure = answer(program, Source(deep)).failed[0]
    assert (failure.line, "line" in str(failure)) == (None, False)


# -- nodes, and records --------------------------------------------------------------------------

PATHS = ["//*", "//t", "//text()", "//node()", "//@*", "//t/@a", "/", "/b", "//comment()", "//k"]
BOTH = {f"fast {path}": path for path in PATHS} | {
    f"slow {path}": f"({path})[last() > 0]" for path in PATHS
}
"""Each path as it is, and in words that only lxml understands."""


def assert_both_agree(match: tamis.Match) -> int:
    """What both engines say is the same: how many nodes."""
    assert not match.failed
    count = 0
    for path in PATHS:
        fast, slow = (match.nodes(f"{lane} {path}") for lane in ("fast", "slow"))
        assert list(fast) == list(slow), path
        assert list(fast.values()) == list(slow.values()), path
        assert (f"fast {path}" in match) == (f"slow {path}" in match) == bool(fast)
        count += len(fast)
    return count


@pytest.mark.parametrize("name", SUBSETS)
def test_lxml_selects_the_nodes_that_tamis_selects(name: str) -> None:
    matcher = tamis.compile(BOTH, unsupported="slow")
    doctype = f"<!DOCTYPE b {SUBSETS[name]}>" if SUBSETS[name] else ""
    documents = [f"<!--0-->{doctype}<?p 1?>\n<b>{content}</b><!--9-->" for content in CONTENTS]
    matches = list(matcher.match_many(["<b/>", *documents, "<c/>"], nodes="all", values=True))
    counts = [assert_both_agree(match) for match in matches if match.error is None]
    assert sum(counts) > 20
    first = matcher.match(documents[0], nodes="first")
    for path in PATHS:
        assert list(first.nodes(f"slow {path}")) == list(first.nodes(f"fast {path}"))


@pytest.mark.parametrize("name", SUBSETS)
def test_records_are_documents_for_lxml(name: str) -> None:
    """What the DTD declares and the namespaces around a record hold in it, and nothing else."""
    matcher = tamis.compile(BOTH, unsupported="slow")
    doctype = f"<!DOCTYPE l {SUBSETS[name]}>" if SUBSETS[name] else ""
    read = 0
    for content in CONTENTS:
        record = f"<b>{content}</b>"
        document = (
            f"{doctype}<l xmlns:q='urn:q' q:x='1'>1{record}\n<x xmlns='urn:x'>{record}</x></l>"
        )
        matches = list(matcher.match_records(document, "b", nodes="all", values=True))
        if matches[-1].error is None:
            assert [match.record for match in matches] == [0, 1]
            read += sum(map(assert_both_agree, matches))
            again = list(matcher.match_records(document, "b"))
            assert [list(match) for match in again] == [list(match) for match in matches]
    assert read > 30


def test_what_is_around_a_record_is_not_of_it() -> None:
    expressions = {
        "up": "//*[ancestor::*]",
        "before": "//*[preceding::node() or preceding-sibling::node()]",
        "in scope": "/*/namespace::q[. = 'urn:q2']",
        "default": "//*[namespace-uri() = 'urn:d'][last()]",
        "lang": "/*[lang('en')][last()]",
        "id": "id('k')[last()]",
    }
    matcher = tamis.compile(expressions, unsupported="slow")
    document = """<!DOCTYPE l [<!ATTLIST t i ID #IMPLIED>]>
        <l xmlns:q='urn:q1' xml:lang='en'><o/><x xmlns='urn:d' xmlns:q='urn:q2'><t i='k'/></x>
        <t xmlns:q='urn:q3'/></l>"""
    found = [list(match) for match in matcher.match_records(document, "t")]
    assert found == [["in scope", "default", "id"], []]


def test_a_record_that_lxml_cannot_be_given_fails_alone() -> None:
    """Records that an entity holds have no bytes of their own."""
    matcher = tamis.compile({"fast": "/t", "slow": "/t[last()]"}, unsupported="slow")
    document = "<!DOCTYPE l [<!ENTITY e '<t/><t/>'>]><l><t/>&e;<t/></l>"
    found = [(list(match), list(match.failed)) for match in matcher.match_records(document, "t")]
    assert found == [(["fast", "slow"], []), *[(["fast"], ["slow"])] * 2, (["fast", "slow"], [])]


def test_namespace_nodes_stand_nowhere() -> None:
    matcher = tamis.compile({"a": "//a", "n": "//namespace::*"}, unsupported="slow")
    match = matcher.match("<a/>", nodes="all")
    assert (list(match), list(match.failed)) == (["a"], ["n"])
    assert list(matcher.match("<a/>")) == ["a", "n"]
