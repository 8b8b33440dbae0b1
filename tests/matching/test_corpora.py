"""Real documents: what is drawn from them is answered by nfa and stacks as by the automaton."""

from __future__ import annotations

import pytest

import tamis
from tamis.core.errors import SubscriptionError
from tamis.language.xpath import parse
from tamis.matching.engine import Engine, reason_of
from tamis.matching.engines import automaton, nfa, stacks
from tamis_workload.observed.generator import draw_from_documents
from tests.support.corpora import CORPORA, corpus
from tests.support.oracles import read

pytestmark = pytest.mark.corpora

DRAWN = 1_500
BYTES = 3_000_000  # of a corpus; its first document is larger, perhaps


def is_taken(engine: Engine, expression: str, namespaces: dict[str, str]) -> bool:
    try:
        query = parse(expression, namespaces)
    except SubscriptionError:
        return False
    return reason_of(engine, query) is None and reason_of(automaton.ENGINE, query) is None


@pytest.mark.parametrize("engine", [nfa.ENGINE, stacks.ENGINE], ids=["nfa", "stacks"])
@pytest.mark.parametrize("name", CORPORA)
def test_real_documents(name: str, engine: Engine) -> None:
    documents: list[bytes] = []
    for path in sorted(corpus(name), key=lambda path: (path.stat().st_size, path.name)):
        data = read(path)
        if data is not None and (not documents or sum(map(len, documents)) + len(data) < BYTES):
            documents.append(data)
    drawn = draw_from_documents(documents, DRAWN, seed=23)
    namespaces = dict(drawn.namespaces)
    asked = [text for text in drawn if is_taken(engine, text, namespaces)]
    assert len(asked) > DRAWN / 8
    subscriptions = tamis.Subscriptions(dict(enumerate(asked)), namespaces=namespaces)
    found, expected = (
        [match.error or list(match) for match in matcher.match_many(documents)]
        for matcher in (
            tamis.compile(subscriptions, engine=each) for each in (engine.name, "automaton")
        )
    )
    assert [str(each) for each in found] == [str(each) for each in expected]
    assert sum(len(each) for each in found if isinstance(each, list)) > len(documents)
