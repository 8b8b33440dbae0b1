"""The named cases, against Saxon."""

from __future__ import annotations

import pytest

from tamis.errors import BadSubscriptions
from tamis.transform.transformer import Transformer
from tests.transform.cases import CASES, Case
from tests.transform.saxon import canonical, transformed


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
