"""String values: constants looked up, numbers read, and what is asked of Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tamis
from tamis.core.kernel.declare import uncompiled
from tamis.core.kernel.text import parse_number
from tamis.core.limits import DEFAULT_LIMITS
from tamis.documents.parser import Parser
from tamis.documents.source import Source
from tamis.documents.vocabulary import Vocabulary
from tamis.language.values import xpath_number
from tamis.language.xpath import parse
from tamis.matching.engines.automaton import compile_queries
from tamis.matching.engines.automaton.execute import Automaton
from tests.matching.automaton.comparison import STRUCTURE, answers
from tests.matching.automaton.test_cache import UNLIMITED, asked

LONG = "12345678901234567890123"


@settings(deadline=None)
@given(st.text(" \t\n.-0123456789", max_size=24) | st.floats(allow_nan=False).map("{:f}".format))
@example("1e3")
@example("+1")
@example("9007199254740993")
@example("0.1000000000000000055511151231257827")
@example("." + "0" * 22 + "1")
def test_numbers_are_read_exactly_or_not_at_all(text: str) -> None:
    values, number = np.frombuffer(b"?" + text.encode() + b"1", np.uint8), np.zeros(1)
    is_read = uncompiled(parse_number)(values, 1, len(values) - 1, number)
    expected = xpath_number(text)
    if is_read:
        assert math.isnan(number[0]) if math.isnan(expected) else number[0] == expected
    else:
        assert len(text.strip()) > 15


@pytest.mark.parametrize("cache_bytes", [1, UNLIMITED])
def test_what_is_asked_of_python_is_not_taken_for_another_number(cache_bytes: int) -> None:
    """Elements whose string values are the same slice, with other numbers between their ends."""
    expressions = [f"//{name}[. {sign} {n}]" for name in "abc" for sign in "<>=" for n in (1, LONG)]
    expressions += [
        f"//{name}[string-length(normalize-space(.)) > {n}]" for name in "abc" for n in (0, 2, 30)
    ]
    expressions += ["//@x[. > 1]", "//c[@x = 5]", f"//c[@x = {LONG}]", "//a[b > 7][c]"]
    documents = [
        f"<a><b>{LONG}</b><c x='5'/></a>",
        f"<a><b>{LONG}</b><c x='{LONG}1'/></a>",
        f"<a><c x='0.{'0' * 30}1'/><b><b>{LONG}</b></b></a>",
        f"<a>{LONG}<b>0</b><b/></a>",
    ]
    _, grew = asked(expressions, documents, cache_bytes)
    assert grew["ASKS_NUMBER"] > 0


WORDS = [
    first + second + third for first in ("x", "é", "ab") for second in ("", "y") for third in "zé"
]


@pytest.mark.parametrize("cache_bytes", [1, 20_000, UNLIMITED])
def test_many_constants(cache_bytes: int) -> None:
    """Constants that begin with each other and contain each other; nodes of many rules."""
    expressions = [f"//{name}[. = '{word}']" for name in ("a", "*") for word in WORDS]
    expressions += [f"//a[b != '{word}']" for word in WORDS]
    expressions += [f"//a[starts-with(b, '{word}')]/@k" for word in WORDS]
    expressions += [f"//a[contains(., '{word}')]" for word in WORDS]
    expressions += [f"//a[b {sign} {n}]" for sign in ("<", ">=", "!=") for n in range(-3, 30)]
    texts = ["", "xyz", "abyé", "éz", "zxyz", "17", " -3.0 ", "3.5", "abyz é", *WORDS]
    documents = [
        f"<r><a k=''><b>{text}</b><b>{other}</b></a><a>{other}</a></r>"
        for text in texts
        for other in texts[:6]
    ]
    asked(expressions, documents, cache_bytes)


def test_thousands_of_constants_of_all_lengths() -> None:
    """Both copies of the hash, and searches that go on."""
    constants = [f"{n % 7}" * (n % 41) + f"{n:x}" for n in range(3000)]
    expressions = [f"//{'ab'[n % 2]}[. = '{text}']" for n, text in enumerate(constants)]
    expressions += [f"//a[starts-with(., '{text}')]" for text in constants[::3]]
    body = "".join(f"<{name}>{text}</{name}>" for text in constants[::5] for name in "ab")
    asked(expressions, [f"<r>{body}</r>", "<a/>", f"<a>{constants[7]}x</a>"])


def test_constants_in_each_other() -> None:
    words = ["a", "aa", "aab", "b", "ab", "he", "she", "his", "hers", "é", "\u00a9", "éa"]
    texts = ["ushers", "aaab", "abab", "hishe", "xéaé", "\u00c3\u00a9", "", "h", "sheahersaab"]
    queries = [parse(f"contains(., '{word}')") for word in words]
    parser = Parser(Vocabulary(), STRUCTURE, DEFAULT_LIMITS)
    automaton = Automaton(compile_queries(queries), UNLIMITED)
    found = answers(automaton, parser, [Source(f"<a>{text}</a>".encode()) for text in texts])
    assert found == [{n for n, word in enumerate(words) if word in text} for text in texts]


def test_the_values_of_comments_and_of_the_document() -> None:
    expressions = [
        "//node()[. = 'c']",
        "/node()[2][. = 'd ']",
        "//a/node()[contains(., 'c')]",
        ".//node()[starts-with(., 'x')]",
        "/self::node()[. = 'xcy']",
        "contains(., 'xy')",
        "starts-with(/, 'x')",
        ". = 'xcy'",
        "not(. != 7)",
    ]
    documents = [
        "<a>x<!--c-->y</a>",
        "<a>xcy</a>",
        "<!--c--><?p d ?><a/>",
        "<a><b>x</b>cy<?c x?></a>",
        "<a> 7 </a>",
    ]
    asked(expressions, documents)


def test_the_first_of_several_nodes() -> None:
    expressions = [
        "//a[starts-with(b, 'x')]",
        "//a[contains(b/c, 'x')]",
        "//a[contains(b[c]/c, 'x')]",
        "//a[contains(b/@k, 'x')]",
        "//a[starts-with(text(), 'x')]",
        "//a[contains(b[2], 'x')][starts-with(b, '')]",
        "//a[not(starts-with(b, 'x'))]",
    ]
    documents = [
        "<r><a><b>y</b><b>x</b></a></r>",
        "<r><a><b>x</b><b>y</b></a></r>",
        "<r><a><b/><b><c>x</c></b></a></r>",
        "<r><a><b><c/></b><b><c>x</c></b></a></r>",
        "<r><a><b/><b k='x'/></a><a>y<b/>x</a><a>x</a></r>",
    ]
    asked(expressions, documents)


def test_functions_of_long_strings() -> None:
    """More than there is room for at first, and characters of several bytes."""
    spaced = " é  ©\n" * 300
    tight = " ".join(spaced.split())
    expressions = [f"//a[normalize-space({what}) = '{tight}']" for what in (".", "@k", "text()")]
    expressions += [f"//a[string-length({what}) = {len(spaced)}]" for what in (".", "b")]
    expressions += [f"//a[string-length(normalize-space({what})) = {len(tight)}]" for what in ".b"]
    expressions += ["//a[starts-with(normalize-space(.), 'é ©')]", "//a[string-length(b) = 0]"]
    expressions += ["//a[normalize-space(b) = '']", "//a[normalize-space(b) != 'x']"]
    documents = [
        f"<a>{spaced}</a>",
        f"<a><b>{spaced}</b></a>",
        "<a><b> </b>x</a>",
        f"<a>{tight}</a>",
    ]
    asked(expressions, documents)


def test_strings_that_contain_each_other_are_told_once() -> None:
    """It would take a thousand steps a byte otherwise; the test would seem to hang."""
    words = ["a" * n for n in range(1, 250)]
    matcher = tamis.compile({word: f"//a[contains(., '{word}')]" for word in words})
    assert len(matcher.match(f"<a>{'a' * 5_000_000}</a>")) == len(words)
