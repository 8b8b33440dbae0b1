"""XPath's string values of the nodes that expressions select: the same as lxml's.

Drawn and real documents are compared in ``test_nodes``, with the places of the nodes.
"""

import io

import pytest
from hypothesis import given, note, settings

import tamis
from tamis.core.errors import EngineRefused, SubscriptionError, UsageError
from tamis.core.limits import Limits
from tamis.documents.source import Source
from tamis.language.model import Nodes
from tamis.language.xpath import absolute_xpath, parse_value
from tamis.matching.engines.lxml.execute import lxml_tree
from tamis.matching.matcher import value_matcher
from tests.matching.test_drawn import thorough
from tests.support.strategies import NAMESPACES, documents, subscriptions

DTD = """<!DOCTYPE a [<!ATTLIST b d CDATA 'D' k NMTOKENS #IMPLIED><!ENTITY t 'tt'>
<!ENTITY e '<b>1<c/>2</b>x'>]>"""
DOCUMENTS = [
    "<a>x<b>y<i>&amp;&#49;</i><![CDATA[<z>]]></b>w</a>",
    "<a>x<!-- c --><b/><?p  d ?>y</a><!--after-->",
    "<a n=' 1\n2&lt;&#10;' p:n='3' xmlns:p='u'>\r\n<b/>\r</a>",
    f"{DTD}<a>&t;&e;&t;<b k='  1  2 '/></a>",
    "<é ü='ö'>ä<b>😀</b></é>",
    "<a><a>1<a>2</a>3</a></a>",
]
EXPRESSIONS = [
    "/",
    "//*",
    "//@*",
    "//text()",
    "//node()",
    "//b | //@n",
    "//b[1]",
    "//*[not(@*)]",
    "//*[local-name() = 'b']",
]
ENGINES = ("auto", "automaton", "reference", "nfa", "stacks")


def lxml_values(document: bytes, expression: str) -> list[str]:
    tree = lxml_tree(Source(document))
    if expression == "/":
        return [tree.xpath("string(/*)")]  # libxml2's string(/) has the entities of a DTD before
    found = tree.xpath(expression)
    return [str(node) if isinstance(node, str) else node.xpath("string()") for node in found]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_values(expression: str, engine: str) -> None:
    try:
        matcher = tamis.compile({"x": expression, "other": "//i"}, engine=engine)
    except EngineRefused:
        pytest.skip("the engine does not take it")
    given = [document.encode() for document in DOCUMENTS]
    matches = list(matcher.match_many(given, nodes="all", values=True))
    for document, match in zip(given, matches, strict=True):
        nodes = match.nodes("x")
        assert list(nodes.values()) == lxml_values(document, expression)
        assert len(list(nodes.values())) == len(nodes)
    for document, match in zip(given, matches, strict=True):
        first = matcher.match(document, nodes="first", values=True).nodes("x")
        assert list(first.values()) == list(match.nodes("x").values())[:1]


@settings(thorough, max_examples=150)
@given(subscriptions(), documents())
def test_expressions_that_select_no_nodes(subscription: str, document: str) -> None:
    """Drawn expressions, evaluated as they are, and what they select counted and made a string."""
    note(f"{subscription!r} on {document!r}")
    tree = lxml_tree(Source(document.encode()))
    for text in ("{}", "count({})", "string({})", "normalize-space({})", "count({}) > 1"):
        expression = text.format(subscription)
        try:
            operand = parse_value(expression, NAMESPACES)
        except SubscriptionError:
            continue
        if isinstance(operand, Nodes):
            continue
        match = value_matcher(operand).match(document, nodes="all")
        absolute = absolute_xpath(expression, NAMESPACES)
        assert match.document_nodes.value(operand) == tree.xpath(absolute, namespaces=NAMESPACES)


@pytest.mark.parametrize("doctype", ["", DTD.replace("a [", "r [")])
@pytest.mark.parametrize("expression", ["/", "/a", "//b", "//@n", "//text()", "/a/node()"])
def test_values_of_records(expression: str, doctype: str) -> None:
    texts = [f"<a n='{n}&amp;'>x{n}<b>&lt;<![CDATA[{n}]]></b><!--c-->y</a>" for n in range(50)]
    stream = io.BytesIO(f"{doctype}<r> {' '.join(texts)}</r>".encode())
    matcher = tamis.compile({"x": expression})
    records = matcher.match_records(stream, "a", nodes="all", values=True)
    for text, record in zip(texts, records, strict=True):
        assert list(record.nodes("x").values()) == lxml_values(text.encode(), expression)


def test_values_are_asked_for() -> None:
    matcher = tamis.compile({"x": "//a"})
    with pytest.raises(UsageError, match=r"values were not asked for: match.*values=True"):
        matcher.match("<a/>", nodes="all").nodes("x").values()
    for call in (matcher.match, lambda one, **asked: matcher.match_many([one], **asked)):
        with pytest.raises(UsageError, match='say nodes="all", or "first"'):
            call("<a/>", values=True)
    live = tamis.Matcher()
    live.add("x", "//a")
    assert list(live.match("<a>1</a>", nodes="all", values=True).nodes("x").values()) == ["1"]


def test_a_limit_cuts_values_too() -> None:
    matcher = tamis.compile({"x": "//b"}, limits=Limits(matched_nodes=2))
    nodes = matcher.match("<a><b>1</b><b>2</b><b>3</b></a>", nodes="all", values=True).nodes("x")
    assert (list(nodes.values()), nodes.cut_by) == (["1", "2"], "matched_nodes")


def test_values_of_nested_elements_have_a_limit_of_their_own() -> None:
    """All text is in the value of each element around it: 1,000 times the document, if allowed."""
    document = f"{'<a>' * 900}{'x' * 1000}{'</a>' * 900}"
    matcher = tamis.compile({"x": "//a"}, limits=Limits(matched_value_bytes=10_500))
    nodes = matcher.match(document, nodes="all", values=True).nodes("x")
    assert (len(nodes), nodes.is_cut, nodes.cut_by) == (10, True, "matched_value_bytes")
    assert len(nodes.starts) == len(list(nodes.fragments())) == 10
    assert [len(value) for value in nodes.values()] == [1000] * 10
    assert len(matcher.match(document, nodes="all").nodes("x")) == 900
    for size, count in ((1000, 1), (999, 0)):
        matcher = tamis.compile({"x": "//a"}, limits=Limits(matched_value_bytes=size))
        nodes = matcher.match(document, nodes="first", values=True).nodes("x")
        assert (len(list(nodes.values())), nodes.is_cut) == (count, count == 0)
