# ruff: noqa: E501 - a case is a line
"""Regular expressions against RE2, Python's ``re`` and themselves; patterns against ``re``."""

from __future__ import annotations

import re
from typing import Any

import pytest
import re2
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tamis.core.errors import SubscriptionLimitError
from tamis.core.kernel.dfa import packed
from tamis.language.constraints import fold
from tamis.language.regex import Regex, RegexError, parse_like, parse_regex
from tests.support.automata import accepted


def found(regex: Regex, texts: list[str]) -> list[bool]:
    """Which texts match, where each of them has what ``literals`` says."""
    matched = accepted(packed([regex.dfa()]), 0, [text.encode() for text in texts])
    for text, is_match in zip(texts, matched, strict=True):
        held = [_satisfies(text, *literal) for literal in regex.literals()]
        assert all(held) or not is_match, (text, regex.literals())
        assert not regex.is_exact or held == [is_match], (text, regex.literals())
    return matched


def _satisfies(text: str, operator: str, constant: str) -> bool:
    match operator:
        case "prefix":
            return text.startswith(constant)
        case "suffix":
            return text.endswith(constant)
        case "contains":
            return constant in text
    return text == constant


def _by_re2(pattern: str, texts: list[str]) -> list[bool] | None:
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(pattern, options)
    except re2.error:
        return None
    return [compiled.search(text) is not None for text in texts]


# -- drawn ---------------------------------------------------------------------------------------

LETTERS = "aAbBkKsSß7_ -\n.é€😀ſK"
ATOMS = st.sampled_from([
    *"aAbBkKsSß7_ -éẞ€😀.", "ab", "[ab]", "[^a]", "[a-k]", "[^A-Z]", "[é-€]", "[^€]", "[€-😀]", "[\\w-]",
    "[[:alpha:]]", "[[:^upper:]]", "[^\\d\\s]", "[\\Wa]", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", "\\.",
    "\\x61", "\\x{1F600}", "\\n", "\\Qa.\\E", "\\pL", "\\PL", "\\p{Lu}", "[\\pN_]", "^", "$", "\\A", "\\z", "()",
])  # fmt: skip
BOUNDARIES = st.sampled_from(["\\b", "\\B"])
SUFFIXES = st.sampled_from(
    ["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}", "{0,2}?", "{0}"]
)
FLAGS = st.sampled_from(["(?i)", "(?s)", "(?m)", "(?is)", "(?i-s)", "(?U)"])


def _patterns(atoms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        atoms,
        lambda inner: (
            st.lists(inner, max_size=4).map("".join)
            | st.tuples(inner, SUFFIXES).map(lambda both: f"(?:{both[0]}){both[1]}")
            | st.tuples(FLAGS, inner).map(lambda both: f"{both[0][:-1]}:{both[1]})")
            | st.tuples(inner, FLAGS, inner).map("".join)
            | st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({'|'.join(parts)})")
        ),
        max_leaves=8,
    )


TEXTS = st.lists(st.text(LETTERS, max_size=8), min_size=1, max_size=20)


@given(pattern=_patterns(ATOMS), texts=TEXTS)
@example(pattern="(?m)^*\n|(?m:^){2,}b", texts=["a\nb", "\n", "b"])
def test_drawn_expressions_equal_re2(pattern: str, texts: list[str]) -> None:
    expected = _by_re2(pattern, texts)
    assert expected is not None
    assert found(parse_regex(pattern), texts) == expected


@given(pattern=_patterns(ATOMS | BOUNDARIES), texts=st.lists(st.text("ab_ -\n.", max_size=8)))
def test_boundaries_equal_re2(pattern: str, texts: list[str]) -> None:
    expected = _by_re2(pattern, texts)
    assert expected is not None
    assert found(parse_regex(pattern), texts) == expected


PLAIN = st.sampled_from(
    [*"aAbB7_ é€😀.", "[ab]", "[^a]", "\\d", "\\w", "\\b", "\\B", "^", "\\n", "\\S"]
)
OWN_FLAGS = st.sampled_from(["", "(?s)", "(?m)"])


@given(flags=OWN_FLAGS, pattern=_patterns(PLAIN), texts=TEXTS)
def test_drawn_expressions_equal_python(flags: str, pattern: str, texts: list[str]) -> None:
    try:
        expected = re.compile(flags + pattern, re.ASCII)
    except (re.error, RecursionError):
        return  # flags that are not at the start
    assume("(?i" not in pattern)  # that is about ASCII alone there
    texts = [text for text in texts if text]  # in an empty one, older versions find no \B
    assert found(parse_regex(flags + pattern), texts) == [
        expected.search(text) is not None for text in texts
    ]


@given(pattern=_patterns(ATOMS), texts=TEXTS)
def test_folded_expressions_equal_those_without_case(pattern: str, texts: list[str]) -> None:
    folded = found(parse_regex(pattern, folded=True), [fold(text) for text in texts])
    assert folded == _by_re2(f"(?i){pattern}", texts)
    assert folded == found(parse_regex(f"(?i){pattern}"), texts)


# Text that need not be an expression: it is refused, or means what it means to RE2.
ODD = st.lists(
    st.sampled_from(
        [*"ab(|)[]^-*+?{},12\\$.:PQE<>=!is&", "(?", "(?P<", "[:", "\\x", "[[:", "\\p{"]
    ),
    max_size=12,
)


@given(pattern=ODD.map("".join), texts=st.lists(st.text("ab12-]{}[,", max_size=6), max_size=9))
def test_what_is_read_means_what_it_means_to_re2(pattern: str, texts: list[str]) -> None:
    regex, position = None, 0
    try:
        regex = parse_regex(pattern)
    except RegexError as error:
        position = error.position
    assert 0 <= position <= len(pattern)
    if regex is not None:
        assert found(regex, texts) == _by_re2(pattern, texts)


# -- patterns ------------------------------------------------------------------------------------

WRITTEN = st.lists(
    st.sampled_from(["a", "b", "é", "K", "*", "?", "\\*", "\\?", "\\\\", "\n", "\\a"])
).map("".join)


@given(pattern=WRITTEN, texts=st.lists(st.text("abéKk*?\\\n", max_size=8), max_size=20))
def test_patterns_equal_regular_expressions(pattern: str, texts: list[str]) -> None:
    meanings = {"*": ".*", "?": "."}
    parts = re.findall(r"\\[*?\\]|.", pattern, re.DOTALL)
    expected = re.compile(
        "".join(meanings.get(each) or re.escape(each[-1]) for each in parts), re.DOTALL
    )
    texts += [pattern, pattern.replace("*", "ab").replace("?", "é"), pattern.replace("\\", "")]
    assert found(parse_like(pattern), texts) == [bool(expected.fullmatch(text)) for text in texts]
    folded = found(parse_like(pattern, folded=True), [fold(text) for text in texts])
    expected = re.compile(expected.pattern.replace("K", "k"), re.DOTALL)
    assert folded == [bool(expected.fullmatch(fold(text))) for text in texts]


@pytest.mark.parametrize(
    ("pattern", "literals", "is_exact"),
    [
        ("abc", [("=", "abc")], True),
        ("abc*", [("prefix", "abc")], True),
        ("**abc", [("suffix", "abc")], True),
        ("*abc*", [("contains", "abc")], True),
        ("*", [("prefix", "")], True),
        ("", [("=", "")], True),
        (r"a\*b", [("=", "a*b")], True),
        ("a*b", [("prefix", "a"), ("suffix", "b")], False),
        ("a*bc*d", [("prefix", "a"), ("contains", "bc"), ("suffix", "d")], False),
        ("?", [], False),
        ("?a*", [("contains", "a")], False),
    ],
)
def test_literals_of_patterns(
    pattern: str, literals: list[tuple[str, str]], is_exact: bool
) -> None:
    regex = parse_like(pattern)
    assert (regex.literals(), regex.is_exact) == (literals, is_exact)


def test_many_stars_and_long_patterns_stay_small() -> None:
    assert len(parse_like("*a" * 200 + "*b").dfa().transitions) < 210
    assert len(parse_like("*?*?" * 50 + "b").dfa().transitions) < 300
    assert parse_like("***?*?") == parse_like("??*") == parse_like("*??")


# -- named cases ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "literals", "is_exact"),
    [
        ("abc", [("contains", "abc")], True),
        ("^abc", [("prefix", "abc")], True),
        ("abc$", [("suffix", "abc")], True),
        (r"\Aabc\z", [("=", "abc")], True),
        (".*abc.*", [("contains", "abc")], True),
        ("^(?s:.*)abc$", [("suffix", "abc")], True),
        ("^.*abc$", [("suffix", "abc")], False),
        ("", [("contains", "")], True),
        ("^$", [("=", "")], True),
        ("^abc.*def$", [("prefix", "abc"), ("suffix", "def")], False),
        (r"foo\d+bar", [("contains", "foo"), ("contains", "bar")], False),
        ("x(ab)+y", [("contains", "xab"), ("contains", "aby")], False),
        ("a{3}b{2,}c", [("contains", "aaabb"), ("contains", "bbc")], False),
        ("(abc|abd)x", [("contains", "x")], False),
        ("(?i)abc-7", [("contains", "-7")], False),
        (r"foo\bbar", [("contains", "foobar")], False),
        ("(?m)^abc", [("contains", "abc")], False),
        ("a?bc", [("contains", "bc")], True),
        ("bc+", [("contains", "bc")], True),
    ],
)
def test_literals(pattern: str, literals: list[tuple[str, str]], is_exact: bool) -> None:
    regex = parse_regex(pattern)
    assert (regex.literals(), regex.is_exact) == (literals, is_exact)


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"a\/b\-\ \_\%\"", ['a/b- _%"'], ["a\\/b"]),
        (r"é\u00e9\x{1F600}\x41\101\07", ["éé😀AA\a"], ["éé😀AB\a"]),
        (r"\a\f\n\r\t\v", ["\a\f\n\r\t\v"], ["afnrtv"]),
        (r"^\Qa.b*\E$", ["a.b*"], ["aab*", "a.bb"]),
        (r"(?P<one>a)(?<two>b)", ["ab"], ["ba"]),
        (r"[]a][^]a]", ["]b", "ab"], ["]]", "ba"]),
        (r"[a\-z][a-][-a][\w-z]", ["-a-z", "z-a-"], ["b---"]),
        (r"a$", ["a", "ba"], ["a\n", "ab"]),
        (r"(?m)a$", ["a", "a\nb"], ["ab"]),
        (r"(?i)K", ["k", "K", "K"], ["x"]),
        (r"(?i)s[^s]", ["ſa", "S7"], ["ss", "sſ", "S"]),
        (r"(?i)ß", ["ß", "ẞ"], ["ss"]),
        (r"(?i:a)b", ["ab", "Ab"], ["aB", "AB"]),
        (r"a(?i)b|c", ["ab", "aB", "C"], ["Ab"]),
        (r"a{,b{a}{1", ["a{,b{a}{1"], ["ab"]),
        (r"\bé\b", ["aéa"], ["é", "aé", " é "]),
        (r"a\Bb|€\B😀", ["ab", "€😀"], ["a b", "a€"]),
        (r"\p{Lu}\PL[\pN]", ["É1٣", "A-2"], ["é11", "AA1"]),
        (r"a.c", ["a😀c", "aéc"], ["a\nc", "ac"]),
        (r"^[^\x00-\x7F]{2}$", ["é€"], ["é", "éa"]),
    ],
)
def test_constructs(pattern: str, matching: list[str], other: list[str]) -> None:
    regex = parse_regex(pattern)
    assert found(regex, matching + other) == [True] * len(matching) + [False] * len(other)


def test_between_the_bytes_of_a_character_is_no_place() -> None:
    """RE2 finds one there: it goes from byte to byte."""
    assert found(parse_regex(r"^a\B|\B\z"), ["éa", "é"]) == [False, True]
    assert found(parse_regex(r"(?:^|a)\B(?:$|a)"), ["aéa"]) == [False]
    assert found(parse_regex(r"\B"), ["aéa", "a"]) == [False, False]


@pytest.mark.parametrize(
    ("pattern", "position", "message", "hint"),
    [
        ("ab(c", 2, "there is no ) for this (", r"\("),
        ("ab)c", 2, "there is no ( for this )", r"\)"),
        ("ab[c", 2, "there is no ] for this [", r"\["),
        ("a[]", 1, "there is no ] for this [", r"\["),
        ("a**", 1, "** repeats twice", "(?:…)"),
        ("a*+b", 1, "*+ gives nothing back", "write *"),
        ("a{2}{3}", 1, "{2}{ repeats twice", "(?:…)"),
        ("*a", 0, "there is nothing that this repeats", r"\*"),
        ("a|+", 2, "there is nothing that this repeats", r"\+"),
        ("({2})", 1, "there is nothing that this repeats", r"\{"),
        ("a{,3}", 1, "a number is missing", "{0,…}"),
        ("a{3,2}", 1, "{3,2} is from more to less", "{2,3}"),
        ("a{1001}", 1, "{1001} repeats too often", "1000"),
        ("(?:a{50}){50}", 9, "what this repeats is repeated too often", "1,000"),
        ("x(?=a)", 1, "(?=…) looks ahead", "and"),
        ("x(?!a)", 1, "(?!…) looks ahead", "not"),
        ("(?<=a)x", 0, "(?<=…) looks behind", "before"),
        ("(?<!a)x", 0, "(?<!…) looks behind", "(?:^|[^a])"),
        ("(?>a)x", 0, "(?>…) gives nothing back", "(?:…)"),
        (r"(a)\1", 3, r"\1 refers back to a group", "write out"),
        ("(?P<a>b)(?P=a)", 8, "(?P=…) refers back to a group", "write out"),
        ("(?P<a>b)(?P<a>c)", 8, "two groups are called a", "apart"),
        ("(?#a)", 0, "(?#…) is a comment", "leave it out"),
        ("(?x)a b", 2, "there is no flag x", "spaces"),
        ("a(?<>", 1, "'(?<' begins no group", "(?:…)"),
        (r"[b-a]", 1, "b-a is from a later character", None),
        (r"[a-\d]", 3, r"\d has no meaning", r"\\"),
        (r"[[:foo:]]", 1, "[:foo:] is not known", "alpha"),
        (r"[^\x00-\x{10FFFF}]", 0, "no character is in this class", "[a-z]"),
        (r"\p{Greek}", 0, r"\p{Greek} is not known", r"\p{Lu}"),
        (r"\Z", 0, r"\Z has no meaning", r"\z"),
        (r"\y", 0, r"\y has no meaning", "write y"),
        ("a\\", 1, "a backslash ends the pattern", r"\\"),
        (r"\x{110000}", 0, "x{110000} is no character", "10FFFF"),
        (r"\uD83D\uDE00", 0, "half of a surrogate pair", None),
        ("(" * 101 + ")" * 101, 100, "groups are nested deeper", None),
    ],
)
def test_errors(pattern: str, position: int, message: str, hint: str | None) -> None:
    with pytest.raises(RegexError) as raised:
        parse_regex(pattern)
    error: Any = raised.value
    assert (error.position, error.message[: len(message)]) == (position, message)
    assert (hint or "") in (error.hint or "")
    assert str(error).startswith(f"position {position}: {message}")


def test_case_cannot_matter_in_what_is_folded() -> None:
    assert found(parse_regex("(?i)A[^B]", folded=True), ["aa", "ab"]) == [True, False]
    with pytest.raises(RegexError, match="case cannot matter here alone"):
        parse_regex("a(?-i:A)", folded=True)


def test_limits() -> None:
    with pytest.raises(SubscriptionLimitError, match="subscription_states = 10,000"):
        parse_regex("a.{20}b").dfa()
    with pytest.raises(SubscriptionLimitError, match="subscription_states = 10"):
        parse_regex("abcdefghijk").dfa(10)
    assert len(parse_regex("a.{0,500}b").dfa().transitions) < 1_100
