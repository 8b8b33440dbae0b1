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


@settings(max_examples=300)
@given(document=documents(), queries=st.lists(transformations(), min_size=1, max_size=3))
def test_kernels_alone_make_the_same_messages(document: str, queries: list[str]) -> None:
    """They answer small documents in bytes; what is given otherwise is looked at as a batch."""
    transformer = Transformer(dict(enumerate(queries)))
    data = document.encode()
    for _ in range(2):  # the second time, all templates and names are known
        assert list(transformer.transform(data)) == list(transformer.transform(memoryview(data)))
