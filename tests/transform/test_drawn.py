"""Drawn transformations of drawn documents, against Saxon."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.transform.transformer import Transformer
from tests.support.drawn_transformations import documents, transformations
from tests.support.saxon import canonical, transformed


@settings(max_examples=300)
@given(document=documents(), queries=st.lists(transformations(), min_size=1, max_size=3))
def test_messages_equal_those_of_saxon(document: str, queries: list[str]) -> None:
    messages = Transformer(dict(enumerate(queries))).transform(document)
    found = {message.subscription: canonical(message.text) for message in messages}
    for number, query in enumerate(queries):
        expected = canonical(transformed(query, document))
        assert found.get(number, b"<r></r>") == expected
