"""Words of queries: written down, read back, and printed, they say the same."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from tamis.language.lower import Lowering, lowered
from tamis.language.model import Query
from tamis.language.printer import print_query
from tamis.language.xpath import parse
from tests.language.raising import raised
from tests.language.strategies import NAMESPACES, QUERIES
from tests.support.case_table import cases


def check(query: Query, namespaces: dict[str, str]) -> None:
    lowering = Lowering()
    number = lowering.add(query)
    again = raised(lowering.table(), number)
    assert lowering.add(again) == number
    assert lowering.add(parse(print_query(again), namespaces)) == number


@settings(max_examples=200, deadline=None)
@given(QUERIES)
def test_what_is_read_back_has_the_same_words(query: Query) -> None:
    check(query, NAMESPACES)


@pytest.mark.parametrize(
    "text",
    [
        "a or string-length(b) = 0",
        "a[starts-with(b, '') or contains(name(c), '') or d]",
        "boolean(a | /a)",
        "a[.//b or not(c or string-length(d) < 1)]",
    ],
)
def test_alternatives_are_flat_and_distinct(text: str) -> None:
    check(parse(text), {})


def test_the_case_table() -> None:
    for case in cases():
        if isinstance(case.expected, bool):
            check(parse(case.subscription, case.namespaces), dict(case.namespaces or {}))


def test_different_queries_have_different_words() -> None:
    texts = """//a[b]/c //a[b][c] //a/b //a[b] boolean(//a[b]) //a[2] //a[b][2] //a[2][b] /a //a
        /self::a //self::a //. / /@a //@a //@* a[.='1'] a[.=1] a[.!=1] a='1' a[@b='1']
        a[string-length()=1] a[count(b)=1] a[count(b/c)=1] a[count(b[c])=1] a[name()='1']
        a[local-name()='1'] a[contains(b,'1')] a[starts-with(b,'1')] a[contains(b/c,'1')]
        a[not(b)] a[b|c] a[not(b|c)] not(a) true() false() a[true()] /a|/b""".split()
    lowering = Lowering()
    numbers = {text: lowering.add(parse(text)) for text in texts}
    assert len(set(numbers.values())) == len(texts), numbers
    same = [
        ("//a[b and c]", "//a[b][c]"),
        ("/descendant::a", "//a"),
        ("a[b or (c or d)]", "a[b or c or d]"),
    ]
    for one, other in same:
        assert lowering.add(parse(one)) == lowering.add(parse(other))


@pytest.mark.parametrize("function", ["starts-with(x/y[{}], 'a')", "string-length(x[{}]) = 0"])
def test_nested_functions_take_few_words(function: str) -> None:
    """A first node that is written as positions repeats what is behind it."""
    text = "x"
    for _ in range(25):
        text = function.replace("{}", text)
    assert len(lowered([parse(f"//a[{text}]")]).code) < 1 << 15
