"""Sparse facts: what follows from one of many constants, which sets know nothing of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents.parser import Parser
from tamis.documents.source import Source
from tamis.documents.vocabulary import Vocabulary
from tamis.language.xpath import parse
from tamis.matching.engines import reference
from tamis.matching.engines.automaton import compile_queries
from tamis.matching.engines.automaton.compile import arrays
from tamis.matching.engines.automaton.execute import Automaton
from tests.matching.automaton.comparison import STRUCTURE, answers

MANY = [f"//z[y = 'c{n}']" for n in range(arrays.MANY_CONSTANTS)]
"""So that the alphabet of y is large; of these documents none is true."""


def compiled(expressions: Sequence[str]) -> Automaton:
    return Automaton(compile_queries([parse(text) for text in expressions]), 1 << 28)


def facts(expressions: Sequence[str]) -> int:
    """How many facts are sparse."""
    return int(np.bitwise_count(compiled(expressions).program.arrays.sparse).sum())


def true(
    expressions: Sequence[str], documents: Sequence[str], cache: int = 1 << 28
) -> list[set[int]]:
    """Which of them are true of each document; the reference engine says the same.

    Documents are asked twice: one by one, and all together in one.
    """
    queries = [parse(text) for text in expressions]
    sources = [Source(text.encode()) for text in [*documents, f"<w>{''.join(documents) * 2}</w>"]]
    parser = Parser(Vocabulary(), STRUCTURE, DEFAULT_LIMITS)
    automaton = Automaton(compile_queries(queries), cache)
    oracle = reference.ENGINE.searcher(reference.compile_queries(queries), 1 << 28)
    expected = answers(oracle, parser, sources)
    for order in (sources, sources[::-1], sources):
        got = [answers(automaton, parser, [source])[0] for source in order]
        assert got == (expected[::-1] if order[0] is not sources[0] else expected)
    return expected[: len(documents)]


def test_small_alphabets_stay_in_sets() -> None:
    assert facts(MANY[1:]) == 0
    assert facts(MANY) == len(MANY)


@pytest.mark.parametrize(
    "expression",
    [
        "//a[not(y = 'c1')]",
        "//a[y != 'c1']",
        "//a[count(y[. = 'c1']) = 2]",
        "//a[b or not(y = 'c1')]",
        "//a/y[. = 'c1'][2]",
        "//a[y[. = 'c1'][2]]",
    ],
)
def test_what_is_denied_or_counted_is_in_sets(expression: str) -> None:
    """Of the others all are sparse."""
    assert facts([*MANY, expression]) == len(MANY) - 1


@pytest.mark.parametrize(
    ("expression", "documents"),
    [
        ("//a[y = 'c1']", ["<r><a><y>c1</y></a></r>", "<r><a><y>c2</y></a></r>", "<a/>"]),
        ("//a[y = 'c1'][b]", ["<a><y>c1</y><b/></a>", "<a><b/><y>c1</y></a>", "<a><y>c1</y></a>"]),
        ("//a[y = 'c1'][y = 'c2']", ["<a><y>c1</y><y>c2</y></a>", "<r><a><y>c1</y></a><a/></r>"]),
        ("//a[y = 'c1' or b]", ["<a><b/></a>", "<a><y>c1</y></a>", "<a><y>c2</y></a>"]),
        ("//a[y = 'c1' or y = 'c2'][b]", ["<a><y>c2</y><b/></a>", "<a><y>c2</y></a>"]),
        ("//a[y = 'c1' and not(b)]", ["<a><y>c1</y></a>", "<a><y>c1</y><b/></a>"]),
        (
            "//a[not(b[y = 'c1'])][y = 'c2']",
            ["<a><y>c2</y></a>", "<a><b><y>c1</y></b><y>c2</y></a>"],
        ),
        ("//r[.//y = 'c1']/b", ["<r><a><y>c1</y></a><b/></r>", "<a><r/><y>c1</y><b/></a>"]),
        (
            "//a[b[.//y = 'c1'] and c]/d",
            ["<a><b><r><y>c1</y></r></b><c/><d/></a>", "<a><c/><d/></a>"],
        ),
        ("//a[starts-with(y, 'c1')]", ["<a><y>c12</y></a>", "<a><y>x</y><y>c1</y></a>", "<a/>"]),
        ("//a[starts-with(y, 'c1')][b]", ["<a><y>c12</y><b/></a>", "<a><y/><y>c1</y><b/></a>"]),
        (
            "//a[contains(y, 'c1')][b > 3]",
            ["<a><y>-c1-</y><b>4</b></a>", "<a><y>c1</y><b>3</b></a>"],
        ),
        (
            "//a[y = 'c1'][b > 3 and b < 9]",
            ["<a><b>4</b><y>c1</y></a>", "<a><y>c1</y><b>9</b></a>"],
        ),
        (
            "//a[y = 'c1'][starts-with(b, 'x')]",
            ["<a><y>c1</y><b>xy</b></a>", "<a><b/><b>x</b></a>"],
        ),
        ("//a[y = 'c1'][count(b) = 2]", ["<a><b/><y>c1</y><b/></a>", "<a><y>c1</y><b/></a>"]),
        (
            "//a[b[y = 'c1']/c]",
            ["<a><b><y>c1</y><c/></b></a>", "<a><b><y>c1</y></b><b><c/></b></a>"],
        ),
        ("/a[a[a[y = 'c1']]]", ["<a><a><a><y>c1</y></a></a></a>", "<a><a><y>c1</y></a></a>"]),
        ("//a[@y = 'c1']", ["<a y='c1'/>", "<a y='c2'><y>c1</y></a>"]),
        ("//y[text() = 'c1']", ["<y>c1</y>", "<y><b/>c1</y>", "<y>c<b/>1</y>"]),
        ("//*[self::a or self::b][y = 'c1']", ["<b><y>c1</y></b>", "<r><y>c1</y></r>"]),
        ("/*[y = 'c1'] | /r/a", ["<b><y>c1</y></b>", "<r><a/></r>", "<r><y/></r>"]),
    ],
)
def test_answers(expression: str, documents: Sequence[str]) -> None:
    """Of the first document it is true; whatever the reference engine says of the others."""
    many = [*MANY, *(text.replace("y =", "@y =") for text in MANY)]
    many += [text.replace("y =", "text() =").replace("z[", "y[") for text in MANY]
    got = true([expression, *many], documents)
    assert 0 in got[0]
    assert true([expression, *many], documents * 2, cache=1) == got * 2


def test_sets_do_not_multiply() -> None:
    """What is learned of many values is what is learned of one."""
    automaton = compiled([*MANY, "//a[y = 'c1']/b", "//a[y = 'c2'][b = 7]"])
    parser = Parser(Vocabulary(), automaton.program.projection, DEFAULT_LIMITS)

    def learned(number: int) -> tuple[int, int]:
        text = f"<r><a><y>c{number}</y><b>7</b></a><z><y>c{number + 1}</y></z></r>"
        answers(automaton, parser, [Source(text.encode())])
        return int(automaton.cache.closes.counts[0]), int(automaton.cache.merges.counts[0])

    assert len({learned(number) for number in range(1, 20)}) == 1


def test_an_overlay_is_bounded() -> None:
    """A fact that a million elements tell the one around them is there a few times at most."""
    expressions = [*MANY, *(f"//r[a/y = 'c{n}'][b]" for n in range(20))]
    automaton = compiled(expressions)
    parser = Parser(Vocabulary(), automaton.program.projection, DEFAULT_LIMITS)
    text = "".join(f"<a><y>c{n % 40}</y></a>" for n in range(20_000))
    assert answers(automaton, parser, [Source(f"<r>{text}<b/></r>".encode())]) == [
        set(range(len(MANY), len(expressions)))
    ]
    assert len(automaton._state.arrays.overlay_facts) <= 128


def test_a_popular_constant_is_in_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that many subscriptions ask for has all their rules looked at each time it is met."""
    monkeypatch.setattr(arrays, "POPULAR", 10)
    popular = [f"//a[y = 'c1'][b{n}]" for n in range(12)]
    assert facts([*MANY, *popular[:9]]) == len(MANY) + 1  # what y tells a
    assert facts([*MANY, *popular]) == len(MANY) - 1
    assert true([*MANY, *popular], ["<a><y>c1</y><b3/><b11/></a>"]) == [
        {len(MANY) + 3, len(MANY) + 11}
    ]


def test_what_is_asked_on_its_own_is_told() -> None:
    """Years are sparse where nobody asks for a year alone."""
    together = [*MANY, "//a[y = 'c1'][b > 3]"]
    assert facts(together) == len(MANY) + 3
    assert facts([*together, "//a[b > 3]/d"]) == len(MANY) + 1
    assert true([*together, "//a[b > 3]/d"], ["<a><b>4</b><d/><y>c1</y></a>"]) == [
        {len(MANY), len(MANY) + 1}
    ]


def test_a_fact_that_others_ask_for_is_not_spent() -> None:
    """A query is true of a document once; what it asks for may be asked for again."""
    both = ["//a[y = 'c1']", "//a[y = 'c1'][y = 'c2']", "//a[y = 'c3']"]
    document = f"<r>{'<a><y>c1</y><y>c3</y></a>' * 3}<a><y>c2</y><y>c1</y></a></r>"
    first = len(MANY)
    all_of_them = {first, first + 1, first + 2}
    expected = [all_of_them, {first + 2}, all_of_them]
    assert true([*MANY, *both], [document, "<a><y>c3</y></a>", document]) == expected


def test_room_on_the_overlay() -> None:
    """What one value, and one element, lays over may take any room."""
    count = 300
    tells = [f"//a[y = 'c{n}'][b]" for n in range(count)]
    contained = [f"//a[contains(y, '{n}')][b]" for n in range(count)]
    text = " ".join(map(str, range(count)))
    values = "".join(f"<y>c{n}</y>" for n in range(count))
    expected = true([*tells, *contained], [f"<a><y>{text}</y>{values}<b/></a>"] * 2)
    assert expected == [set(range(2 * count))] * 2


@pytest.mark.parametrize("function", ["starts-with", "contains"])
def test_a_fact_is_spent_in_one_document(function: str) -> None:
    """One that was spent when it was told again is told in the next document."""
    document = "<a><y>c1</y></a>"
    expected = [{len(MANY)}] * 3
    assert (
        true([*MANY, f"//a[{function}(y, 'c1')]"], [f"<r>{document * 3}</r>", document, document])
        == expected
    )


def test_rules_of_popular_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever many rules would be found by is in sets, however they come to be many."""
    monkeypatch.setattr(arrays, "POPULAR", 10)
    for popular in (
        [f"//p{n}/y[. = 'c1']" for n in range(12)],
        [f"//a[y = 'c1' or d{n}]" for n in range(12)],
        [f"//a[y = 'c{n}' and x[n > 3 and b{n}]]" for n in range(12)],
    ):
        program = compiled([*MANY, *popular]).program.arrays
        assert np.diff(program.sparse_starts).max() <= 10
    either = compiled([*MANY, *(f"//a[y = 'c{n}' and (b > 3 or b < 1)]" for n in range(12))])
    assert np.diff(either.program.arrays.sparse_starts).max() <= 10
