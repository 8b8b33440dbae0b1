"""The trees that expressions are drawn from are those that lxml reads."""

from __future__ import annotations

from hypothesis import given, settings
from lxml import etree

from tamis_workload.observed.trees import read_trees
from tests.support.strategies import documents


@settings(max_examples=200, deadline=None)
@given(documents())
def test_equal_to_lxml(document: str) -> None:
    (tree,) = read_trees([document])
    found = list(etree.fromstring(document.encode()).iter("*"))
    assert len(tree.elements) == len(found)
    places = {element: index for index, element in enumerate(found)}
    for element, expected in zip(tree.elements, found, strict=True):
        name = etree.QName(expected)
        parent = expected.getparent()
        assert element.name == (name.namespace or "", name.localname)
        assert element.qualified_name == expected.xpath("name()")
        assert element.index == places[expected]
        assert element.end == element.index + len(list(expected.iter("*")))
        assert (element.parent and element.parent.index) == (
            None if parent is None else places[parent]
        )
        assert element.position == 1 + len(list(expected.itersiblings(name.text, preceding=True)))
        assert element.number == 1 + len(list(expected.itersiblings("*", preceding=True)))
        assert len(element.alike) == (1 if parent is None else len(parent.findall(name.text)))
        assert element.alike[element.position - 1] is element
        assert [child.index for child in element.children] == [
            places[child] for child in expected.iterchildren("*")
        ]
        assert element.nodes == expected.xpath("count(node())")
        assert element.string(3) == expected.xpath("string()")[:3]
        assert element.stop - element.start == expected.xpath("string-length()")
        texts = [tree.text[start:stop] for start, stop in element.texts]
        assert texts == expected.xpath("text()")
        assert {
            f"{{{uri}}}{local}" if uri else local: value
            for (uri, local), value in element.attributes
        } == dict(expected.attrib)
        for other in tree.elements:
            below = places[expected] < other.index < element.end
            assert not below or element.has_descendant(other.name)
        for uri, local in tree.places:
            test = f"{{{uri}}}{local}" if uri else local
            assert element.has_descendant((uri, local)) == (expected.find(f".//{test}") is not None)
