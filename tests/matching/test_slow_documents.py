"""What lxml is given of a document has the nodes that Tamis has, whatever its DTD declares."""

from __future__ import annotations

from itertools import product

import pytest
from lxml import etree

from tamis.documents.batch import EventBatch
from tamis.documents.source import Source
from tamis.documents.vocabulary import Vocabulary
from tamis.matching.slow import SlowLane, lxml_tree
from tests.documents.parsing import batch_of, texts, values

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
    "1&x;2<t>3</t>&x;4",
    "<t a='1&u; 2'/>&u;5",
    "<t a=' &#9;&x; &quot;&lt;'>x<![CDATA[<&x;]]>y&x;<![CDATA[z]]>&u;</t>",
    "<t xml:id='1' a='&u;'/><t xml:id='k'/><t xml:id='k' xmlns:p='a b' p:x=''/>",
    "<p:t xmlns:p='urn:p' p:a='&#10;&#13;'/>&#13;\r\n<t xmlns='urn:t' i='k'/><!--&x;--><?q &x;?>",
]


def nodes_of_batch(batch: EventBatch, vocabulary: Vocabulary) -> list[object]:
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
    return [[expanded(e.tag) for e in elements], attributes, tree.xpath("//text()[. != '']"), misc]


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
    _, failed = SlowLane([(0, "x", "//a[last()]")], {}).match(Source(deep))
    assert (failed[0].line, "line" in str(failed[0])) == (None, False)
