"""Every engine gives the answers of the table, however documents and subscriptions arrive."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping

import pytest

import tamis
from tamis.core.errors import EngineRefused
from tamis.documents.parser import parse as parse_documents
from tamis.documents.source import read
from tamis.documents.vocabulary import EVERYTHING, Vocabulary
from tamis.language.xpath import parse
from tamis.matching.engine import Engine, reason_of
from tests.support.case_table import Case, cases
from tests.support.engines import ENGINES

CASES = cases()


def answer(case: Case, engine: str) -> bool | str:
    """What Tamis says: true, false, or the code of its error."""
    try:
        matcher = tamis.compile(
            {"it": case.subscription}, namespaces=case.namespaces, engine=engine
        )
        return bool(matcher.match(case.document))
    except tamis.BadSubscriptions as error:
        return error.errors[0].code
    except tamis.DocumentError as error:
        return error.code
    except EngineRefused as refusal:
        pytest.skip(str(refusal))


@pytest.mark.parametrize("engine", [engine.name for engine in ENGINES])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_answer(case: Case, engine: str) -> None:
    assert answer(case, engine) == case.expected


def supports(engine: Engine, case: Case) -> bool:
    if str(case.expected).startswith("subscription-"):
        return False
    return reason_of(engine, parse(case.subscription, case.namespaces)) is None


def matrix(engine: Engine) -> list[tuple[Mapping[str, str], list[Case]]]:
    """The cases that an engine can run, by their namespaces."""
    usable = [case for case in CASES if supports(engine, case)]
    by_namespaces = sorted(usable, key=lambda case: sorted(case.namespaces.items()))
    return [
        (dict(namespaces), list(found))
        for namespaces, found in itertools.groupby(
            by_namespaces, lambda case: sorted(case.namespaces.items())
        )
    ]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
@pytest.mark.parametrize("live", [False, True], ids=["compiled", "live"])
def test_all_subscriptions_and_all_documents_together(live: bool, engine: Engine) -> None:
    """What stands beside a document or a subscription changes nothing."""
    for namespaces, found in matrix(engine):
        items = {case.name: case.subscription for case in found}
        if live:
            matcher = tamis.Matcher(engine=engine.name, namespaces=namespaces)
            for name, subscription in items.items():
                matcher.add(name, subscription)
        else:
            matcher = tamis.compile(items, namespaces=namespaces, engine=engine.name)
        documents = list(dict.fromkeys(case.document for case in found))
        handed_over = [d if live or isinstance(d, str) else memoryview(d) for d in documents]
        matches = dict(zip(documents, matcher.match_many(handed_over), strict=True))
        for case in found:
            match = matches[case.document]
            got = case.name in match if match.error is None else match.error.code
            assert got == case.expected, case


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: engine.name)
def test_parsed_with_every_projection(engine: Engine) -> None:
    """A batch that holds more than the program asked for gives the same answers."""
    for namespaces, found in matrix(engine):
        answered = [case for case in found if isinstance(case.expected, bool)]
        vocabulary = Vocabulary()
        queries = [parse(case.subscription, namespaces) for case in answered]
        program = engine.compile(queries)
        sources = [read(case.document, tamis.Limits()) for case in answered]
        batch, errors = parse_documents(sources, vocabulary, EVERYTHING, tamis.Limits())
        assert not errors
        matching = engine.searcher(program, tamis.Limits().cache_bytes)
        matches = matching.match(batch, vocabulary)
        for number, case in enumerate(answered):
            assert (number in matches.numbers(number)) == case.expected, case


def test_names_are_unique() -> None:
    assert [name for name, count in Counter(case.name for case in CASES).items() if count > 1] == []


def test_table_is_not_empty() -> None:
    """The canary: a loader that finds nothing would make every test here pass."""
    assert len(CASES) > 700
    usable = {engine.name: sum(supports(engine, case) for case in CASES) for engine in ENGINES}
    assert usable["reference"] > 600
    assert usable["automaton"] > 200
    assert usable["pma"] > 10
    assert usable["nfa"] > 150
    assert usable["twigstacks"] > 30
    assert {case.expected for case in CASES} >= {True, False, "subscription-unsupported"}
