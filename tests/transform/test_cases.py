"""The named cases, against Saxon."""

from __future__ import annotations

import pytest

from tamis.core.errors import BadSubscriptions
from tamis.transform.transformer import Transformer
from tests.support.saxon import canonical, transformed
from tests.support.transform_cases import CASES, Case


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    messages = Transformer({"case": case.query}).transform(case.document)
    if case.expected == "":
        assert len(messages) == 0
        return
    expected = transformed(case.query, case.document) if case.expected is None else case.expected
    assert [canonical(message.text) for message in messages] == [canonical(expected)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1", "cp1252", "shift_jis"])
def test_messages_are_utf_8_whatever_the_encoding_of_the_document(encoding: str) -> None:
    text = "ソ" if encoding == "shift_jis" else "é"
    document = f'<?xml version="1.0" encoding="{encoding}"?><a><b k="{text}">{text}<c/></b></a>'
    query = '<r>{ for $b in /a/b return <x k="{ $b/@k }">{ $b, $b/text() }</x> }</r>'
    (message,) = Transformer({"q": query}).transform(document.encode(encoding))
    assert message.text == f'<r><x k="{text}"><b k="{text}">{text}<c/></b>{text}</x></r>'


STEPS = [
    axis + test
    for axis in ("child::", "descendant::", "descendant-or-self::", "self::", "@")
    for test in ("a", "p:a", "p:*", "*", "node()", "text()")
]
NODES = "<r xmlns:p='urn:p' a='v' p:a='w'><a a='x'>v</a><p:a p:a='v'>t<a/></p:a><!--v--></r>"


@pytest.mark.parametrize("step", STEPS)
def test_node_tests(step: str) -> None:
    """Every node test on every axis, by every strategy that takes it."""
    clauses = (
        f"return <x>{{ $x/{step} }}</x>",
        f'return <x n="{{ count($x/{step}) }}"/>',
        f"where $x/{step} and not($x/{step}/text()) return <x/>",
        f"where $x/{step} = 'v' return <x/>",
    )
    for clause in clauses:
        query = f'declare namespace p = "urn:p"; <r>{{ for $x in //* {clause} }}</r>'
        expected = canonical(transformed(query, NODES))
        for strategy in ("auto", "reference", "relative", "plan-sharing"):
            try:
                messages = Transformer({"q": query}, strategy=strategy).transform(NODES)
            except BadSubscriptions:
                assert strategy not in ("auto", "reference")
                continue
            found = [canonical(message.text) for message in messages] or [b"<r></r>"]
            assert found == [expected]


REFUSED = [
    "where string($x/c) = '1' return <x/>",
    "where number($x/c) = 1 return <x/>",
    "where not(string($x/c/@k) != '') return <x/>",
    "where count($x//b) > 0 return <x/>",
    "where $x/b[../c] return <x/>",
    "where ($x/b | $x/c)/@k = '1' return <x/>",
    "return <x>{ $x/b[string(.) = '1'] }</x>",
    "return <x>{ $x/b/.. }</x>",
    "return <x>{ string($x) }</x>",
    "return <x>{ data($x) }</x>",
    "return <x>{ string($x/b[1]) }</x>",
    'return <x k="{ string($x/b[1]) }-{ data($x/b) }{ string($x/@k) }"/>',
]


@pytest.mark.parametrize("clause", REFUSED)
def test_what_hints_say_is_equivalent(clause: str) -> None:
    """What hints say to write, in place of what was refused, gives what Saxon makes of that."""
    query = mended = f"<r>{{ for $x in //a {clause} }}</r>"
    while True:
        try:
            transformer = Transformer({"q": mended})
            break
        except BadSubscriptions as caught:
            (error,) = caught.errors
            assert str(error.hint).startswith("write ")
            mended = with_hint(mended, error.hint.removeprefix("write "), error.position)
    for document in (
        "<r><a k='1'>x<b>1</b><c k='1'>1</c><b>2<c>1</c></b></a><a><b k='1'><c/></b></a><a/></r>",
        "<a>1<b>0<c>2</c></b><b>1</b><a><c/><b>1</b></a></a>",
    ):
        found = [canonical(m.text) for m in transformer.transform(document)] or [b"<r></r>"]
        assert found == [canonical(transformed(query, document))], mended


def with_hint(query: str, written: str, position: int) -> str:
    """A query with what a hint says, in place of the condition or the enclosed expression."""
    if " where " in query:
        start, end = query.index(" where ") + len(" where "), query.index(" return ")
    else:
        start, end = query.rindex("{", 0, position) + 1, query.index("}", position)
    return f"{query[:start]} {written} {query[end:]}"
