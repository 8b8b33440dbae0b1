"""The named cases, against Saxon."""

from __future__ import annotations

import pytest

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
