"""Whatever the text, parsing ends soon and raises nothing but TamisError; lxml judges it alike."""

from __future__ import annotations

import contextlib
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tamis.core.errors import SubscriptionSyntaxError, TamisError
from tamis.core.limits import Limits
from tamis.language.grammar import AXES, parse_syntax
from tamis.language.xpath import absolute_xpath, parse
from tests.support.case_table import cases

NAMESPACES = {"p": "urn:p"}
FUNCTIONS = """last position count id local-name namespace-uri name string concat starts-with
    contains substring-before substring-after substring string-length normalize-space translate
    boolean not true false lang number sum floor ceiling round""".split()
TOKENS = [
    *"( ) [ ] . .. @ , :: / // | + - = != < <= > >= * $ and or div mod".split(),
    *"a b p:a p:* q:a a-b x1 text() node() comment() processing-instruction('a')".split(),
    *"1 0 2.5 .5 5. 'x' \"y\" '' ' text node comment".split(),
    *AXES,
    *(f"{axis}::" for axis in AXES),
    *FUNCTIONS,
    *(f"{function}(" for function in FUNCTIONS),
    *"# ! ; : { } & é \u00d7 \U0001d4b3 \u00a0 \u2028 \x00 \ud800 _ -a".split(" "),
]
SUBSCRIPTIONS = [case.subscription for case in cases()]


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """A good expression with a piece taken out, doubled or replaced."""
    text = draw(st.sampled_from(SUBSCRIPTIONS))
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 4)))
    return text[:start] + draw(st.sampled_from(["", text[start:end] * 2, *TOKENS])) + text[end:]


SOUP = st.one_of(
    st.lists(st.sampled_from(TOKENS), max_size=12).map("".join),
    st.lists(st.sampled_from(TOKENS), max_size=12).map(" ".join),
    spoiled(),
    st.text(max_size=20),
)


@settings(max_examples=500, deadline=5000)
@given(SOUP)
def test_only_our_errors(text: str) -> None:
    for read in (parse, absolute_xpath):
        with contextlib.suppress(TamisError):
            read(text, NAMESPACES)


@settings(max_examples=500, deadline=5000)
@given(SOUP)
def test_lxml_takes_whatever_is_supported(text: str) -> None:
    try:
        parse(text, NAMESPACES)
    except TamisError:
        return
    absolute_xpath(text, NAMESPACES)


@pytest.mark.parametrize("text", ["last() = foo()", "a[last()]/q:b", "a[1 < b < count('c')]"])
def test_what_is_not_xpath_is_told_first(text: str) -> None:
    with pytest.raises(SubscriptionSyntaxError):
        parse(text)


def is_xpath(text: str) -> bool:
    try:
        parse_syntax(text, Limits())
    except SubscriptionSyntaxError:
        return False
    return True


def lxml_takes(text: str) -> bool:
    try:
        etree.XPath(text)
    except (etree.XPathSyntaxError, ValueError):  # ValueError: characters that no XML has
        return False
    return True


# Where lxml judges otherwise: who takes such text, what it looks like, an example, and why.
DIFFERENCES = (
    ("lxml", r"[(,]\s*$", "name(", "takes a call that the end of the text leaves open"),
    ("lxml", r"/\s*/\s*/|/\s+/", "///a", "takes slashes in excess at the beginning"),
    ("lxml", r"\w\s+:", "p :a", "takes white space before the colon of a name"),
    (
        "lxml",
        r"(and|or|div|mod)[-.\w]",
        "a ornode()",
        "does not read an operator's name to its end",
    ),
    ("lxml", r"[0-9.][eE]", "5e0", "reads exponents, which XPath 1.0 does not have"),
    ("tamis", r"[^\x00-\x7f]", "//\U0001d4b3", "lxml knows the names of XML before 2008 only"),
    ("tamis", r"\*\s*:|Q\{", "//*:a | //Q{u}a", "the name tests of XPath 3"),
    ("tamis", r"p:\*\s*\(", "p:*()", "refused as an unknown function, after the syntax is read"),
    ("tamis", r"\$(\s|\S*\*)", "$ a", "a fault: a variable is one token, and has no wildcard"),
)


@settings(max_examples=500, deadline=5000)
@given(SOUP)
def test_what_is_xpath(text: str) -> None:
    ours, theirs = is_xpath(text), lxml_takes(text)
    if ours != theirs:
        taker = "tamis" if ours else "lxml"
        assert any(who == taker and re.search(looks, text) for who, looks, _, _ in DIFFERENCES)


@pytest.mark.parametrize(("taker", "looks", "example", "why"), DIFFERENCES)
def test_differences_are_still_there(taker: str, looks: str, example: str, why: str) -> None:
    """An entry that is no longer true, of lxml or of our own faults, fails."""
    assert re.search(looks, example)
    assert is_xpath(example) == (taker == "tamis"), why
    assert lxml_takes(example) == (taker == "lxml"), why


@pytest.mark.parametrize(
    "text",
    [
        "/" + "a/" * 16_000 + "a",
        "//a" * 13_000,
        " or ".join(["a = 1"] * 900),
        "a|" * 30_000 + "a",
        "-" * 60_000 + "1",
        "(" * 60_000,
        "a[" * 30_000,
        "not(" * 15_000,
        "'" + "x" * 60_000,
        "1" * 60_000,
        "a" + " " * 60_000 + "b",
        "a = '" + "x" * 60_000 + "'",
    ],
    ids=lambda text: text[:8],
)
def test_long_texts_are_read_or_refused_soon(text: str) -> None:
    start = time.process_time()
    for read in (parse, absolute_xpath):
        with contextlib.suppress(TamisError):
            read(text)
    assert time.process_time() - start < 5
