"""The kernel that reads plain expressions: it says what the parser says, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.core.errors import SubscriptionError
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.language.model import Query
from tamis.language.plain.reader import PlainReader
from tamis.language.table import LITERAL_MAX, NESTING_MAX, WORDS_MAX
from tamis.language.xpath import parse
from tamis.schema.graph import SchemaGraph
from tamis.schema.reader import parse_dtd
from tamis_workload import (
    Documents,
    QueryOptions,
    TwigOptions,
    Values,
    draw_from_documents,
    queries_from_dtd,
    twigs_from_dtd,
)
from tests.language.plain_forms import decoded, form, read_plain
from tests.language.strategies import NAMESPACES, QUERIES, Speller
from tests.support.case_table import cases

PLAIN = """
/a
//a
/a/b//c
/*
//*/@*
/a/@b
//@b
//text()
/a/text()
/p:a/p:*/@p:b
/xml:a[@xml:lang]
/and/or/div/mod/not/text/contains/starts-with/node/child/self
//and[and and and or or or div]
/a[not]
/a[not and not(not)]
/a[contains/starts-with]
/a[text]
/a[text()]
/a[ text ( ) ]
/a[not ( b )]
/a-
/a[b][c]
/a[b and c]
/a[b or c]
/a[b or c or d and e and f]
/a[b and (c or d)]
/a[(b and c) or d]
/a[(b or c) or (d or (e or f))]
/a[((b))]
/a[(b and c) and (d and e)]
/a[not(b and c)]
/a[not(b or c)]
/a[not(not(b))]
/a[not((b or c) and d or e)]/f
/a[b[c[d]/e]//f]/g[h]
/a[.//b]
/a[./b]
/a[.//@b]
/a[./text()]
/a[. = 'x']
/a[.='x' or .!="y"]
/a[b = 'x']
/a[b/c//d = "it's"]
/a[b[c] = 1]
/a[@b = 1.5]
/a[@b != -1]
/a[@b < .5]
/a[@b <= 5.]
/a[@b > - 0]
/a[@b >= 007]
/a[@b >= 123456789012345]
/a[@b >= 0.12345678901234]
/a[b = 5and c]
/a[b=5or c=6]
/a[text() = 'x']
/a[contains(., 'x')]
/a[contains ( b , 'x' )]
/a[contains(@b, 'x') and starts-with(text(), "y")]
/a[starts-with(*, 'x') or c]
/a[contains(p:b, 'x')]/c
/a[@b[. = 'x']]
/a/@b[. = 'x' or contains(., 'y')]
/a/text()[starts-with(., 'x')]
/\u00e9l\u00e8ve[@\u00fc = '\u00e4\U0001f600\x85']
/a[b = ' \t x ']
// a [ @ b ]
/a[b = 'and' and c = ']' and d = ')' and e = '/']
/a.b/a-b/_/a1
/a[b = 'x'][c = 'x']
/a[b or or]
""".split("\n")[1:-1]
PLAIN += ["\t/\r\n a \n[ \t b\n]\t/ c\x20", "/a[b = '\r\n']"]

NOT_PLAIN = """
a
a/b
.
./a
..
/
/a and /b
/a | /b
/a = 'x'
(/a)
/a[1]
/a[b[2]]
/a[count(b) = 1]
/a[last()]
/a[b | c]
/a[/b]
/a[//b]
/a[.]
/a[..]
/a/.
/a/./b
/a[b/.]
/a[b/..]
/child::a
/a/self::a
/a[node()]
/a/node()
/a[@node()]
/a/@text()
/a/comment()
/a['x']
/a['x' = b]
/a[5 = b]
/a[b = c]
/a[b = '']
/a[contains(b, '')]
/a[contains(b, c)]
/a[contains('x', 'x')]
/a[contains(b/c, 'x')]
/a[contains(b[c], 'x')]
/a[contains(@*, 'x')]
/a[contains(@p:*, 'x')]
/a[contains(., 'x') = true()]
/a[b < 'x']
/a[b = 5 = 6]
/a[(b) = 'x']
/a[(b)/c]
/a[(b)[c]]
/a[not(b) = 'x']
/a[not(b)/c]
/a[not(b, c)]
/a[not()]
/a[true()]
/a[string(b) = 'x']
/a[string-length(b) > 1]
/a[b = 1234567890123456]
/a[b = 0.1234567890123456]
/a[b = --5]
/a[-b = 5]
/a[b + 1 = 5]
/a[b = 5 + 1]
/a[b = $c]
/a/@b/c
/a/text()/b
/a[@b/c]
/a[@b[c]]
/a[text()[@b]]
/a[text()[contains(b, 'x')]]
/q:b/\u00d7
/undeclared:a
/a[undeclared:*]
""".split("\n")[1:-1]

WRONG = """

/a/
/a//
///a
/ /a
/a[
/a[b
/a[b]]
/a]
/a[]
/a[b and]
/a[and and]
/a[or]or
/a- b
/a[b!or or]
/a[b c]
/a[b andc]
/a[b and:c]
/a[(b]
/a[(b])
/a[b)]
/a[not(b]
/a[not b]
/a b
/a:b:c
/a::b
/a :b
/a: b
/a:
/:a
/1a
/-a
/.a
/a[.b]
/a[.5b]
/a[.[b]]
/a[@]
/@
/a[b = ]
/a[b = 'x]
/a[b = "x']
/a[b ! = 'x']
/a[b == 'x']
/a[b =! 'x']
/a[b < = 5]
/a[b = 5.5.5]
/a[b = 1e3]
/a[b = +5]
/a[b = .]
/a[b = -]
/a[contains(b 'x')]
/a[contains(b, 'x']
/a[contains(b, 'x', 'y')]
/a[contains(b)]
/a[text(b)]
/a[text(]
/a\u00d7
/a[b = '\x01']
/a[b = '\ufffe']
/a[b = '\uffff']
/a[b = '\x00']
/a\x00
/a\x0b/b
/a\u2028
/a\xa0
/a[b#]
/a[b] #
/a,b
/a[b,c]
/a*
/a**
/a[**]
/**
/a[* *]
/a<b
""".replace("\\x0b", "\x0b").split("\n")[1:-1]

UNREADABLE = [
    b"/a[b = '" + literal + b"']"
    for literal in rb"""
\xff \x80 \xed\xa0\x80 \xc0\x80 \xe2\x82 \xe2\x82x \xe0\x80\x80 \xf0\x80\x80\x80 \xf4\x90\x80\x80
""".decode("unicode_escape")
    .encode("latin-1")
    .split()
]
UNREADABLE += [b"/\xff", b"/a\xe9"]


def same_or_declined(texts: Sequence[str], limits: Limits = DEFAULT_LIMITS) -> int:
    """How many of them are plain, once they have proved to be what the parser says."""
    numbers, queries = read_plain(texts, NAMESPACES, limits)
    for text, number in zip(texts, numbers, strict=True):
        if number >= 0:
            assert decoded(queries, number) == form(parse(text, NAMESPACES, limits)), text
    return sum(number >= 0 for number in numbers)


@pytest.mark.parametrize("text", PLAIN)
def test_plain(text: str) -> None:
    assert same_or_declined([text]) == 1


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_not_plain(text: str) -> None:
    assert read_plain([text], NAMESPACES)[0] == [-1]


@pytest.mark.parametrize("text", WRONG)
def test_wrong(text: str) -> None:
    with pytest.raises(SubscriptionError):
        parse(text, NAMESPACES)
    assert read_plain([text], NAMESPACES)[0] == [-1]


def test_not_utf8() -> None:
    numbers, _ = read_plain([*UNREADABLE, "/a[b = '\ud800']", "/\ud800"])
    assert set(numbers) == {-1}


def mutated(text: str, random: Random) -> str:
    """The text with a character replaced, taken away, put in or doubled."""
    at = random.randrange(len(text) + 1)
    letter = random.choice("ab/[]()'\"=!<>.@*: \t-1,|$\u00e9\u00d7\x00&#") * random.randint(0, 1)
    return text[:at] + letter + text[at + random.randint(0, 1) :]


def test_mutations() -> None:
    random = Random(7)
    texts = [mutated(text, random) for text in (PLAIN * 2 + NOT_PLAIN + WRONG) * 30]
    texts += [mutated(text, random) for text in texts]
    plain = same_or_declined(texts)
    assert len(texts) // 8 < plain < len(texts) // 2


def test_whole_expressions_put_together() -> None:
    random = Random(8)
    inner = [text.lstrip("/ \t\r\n") for text in PLAIN]
    texts = [
        f"/a[{random.choice(inner)} {random.choice(['and', 'or'])} {random.choice(inner)}"
        f"{random.choice(['', ')', ' = 5', ' or b', '/c'])}]{random.choice(PLAIN)}"
        for _ in range(5_000)
    ]
    assert same_or_declined(texts) > len(texts) // 4


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(QUERIES, st.randoms(use_true_random=False)), max_size=20))
def test_any_query_in_any_spelling(drawn: list[tuple[Query, Random]]) -> None:
    same_or_declined([Speller(random).query(query) for query, random in drawn])


def test_the_table() -> None:
    for case in cases():
        numbers, queries = read_plain([case.subscription], dict(case.namespaces or {}))
        if numbers[0] >= 0:
            assert decoded(queries, 0) == form(parse(case.subscription, case.namespaces)), case


DTD = """<!ELEMENT list (book | list | journal)*> <!ELEMENT book (title, author*, note?)>
<!ELEMENT journal (title, (book | note)*)> <!ELEMENT title (#PCDATA)> <!ELEMENT author (#PCDATA)>
<!ELEMENT note ANY> <!ATTLIST book year CDATA #IMPLIED id CDATA #REQUIRED>"""
GRAPH = SchemaGraph.of(parse_dtd(DTD))
WORDS = Values(1_000, kind="words")


@pytest.mark.parametrize(
    "drawn",
    [
        queries_from_dtd(GRAPH, 2_000),
        queries_from_dtd(GRAPH, 2_000, options=QueryOptions(predicates=2, nested=2, values=WORDS)),
        twigs_from_dtd(GRAPH, 1_000),
        twigs_from_dtd(GRAPH, 1_000, options=TwigOptions(predicates=3, values=WORDS)),
    ],
    ids=["paths", "with predicates", "twigs", "with values"],
)
def test_workloads_are_plain(drawn: Sequence[str]) -> None:
    texts = list(drawn)
    assert same_or_declined(texts) == len(texts) > 0


def test_what_is_drawn_from_documents() -> None:
    documents = Documents(GRAPH, records=20, seed=3)
    texts = list(draw_from_documents([documents.document(n) for n in range(5)], 2_000))
    assert same_or_declined(texts) > len(texts) // 10


def test_each_query_test_and_literal_is_there_once() -> None:
    texts = [
        "/a[b = 'x']",
        "/ a [b='x']",
        '/a[b = "x"]',
        "/p:a",
        "/z:a",
        "/a[b = 1]",
        "/a[b = 1.0]",
    ]
    numbers, queries = read_plain(texts, {"p": "urn:p", "z": "urn:p"})
    assert numbers == [0, 0, 0, 1, 1, 2, 2]
    assert len(queries) == 3
    assert len(queries.tests) == len(set(queries.tests)) == 3
    assert queries.string_bytes.tobytes() == b"x"
    assert queries.numbers.tolist() == [1.0]


def test_tables_grow() -> None:
    """Names, strings, numbers and queries by the thousand, in several readings."""
    texts = [f"/n{n}[b = 'v{n}' or c = {n}.5]" for n in range(6_000)]
    texts.append("/a[" + " or ".join(f"b = '{'x' * 240}{n}'" for n in range(90)) + "]")
    reader = PlainReader({})
    found = []
    for part in (texts[:3_000], texts[2_000:], texts):
        data = "".join(part).encode()
        ends = np.cumsum([len(text) for text in part], dtype=np.int64)
        starts = ends - [len(text) for text in part]
        found.append(reader.read(np.frombuffer(data, np.uint8), starts, ends).tolist())
    assert found == [[*range(3_000)], [*range(2_000, 6_001)], [*range(6_001)]]
    queries = reader.queries()
    for text, number in zip(texts, found[2], strict=True):
        assert decoded(queries, number) == form(parse(text))


def nested(depth: int) -> str:
    return "/a" + "[a" * (depth - 1) + "]" * (depth - 1)


@pytest.mark.parametrize(
    ("text", "declined"),
    [
        (nested(NESTING_MAX), nested(NESTING_MAX + 1)),
        ("/a" * NESTING_MAX, "/a" * (NESTING_MAX + 1)),
        (f"/a[b = '{'x' * LITERAL_MAX}']", f"/a[b = '{'x' * (LITERAL_MAX + 1)}']"),
        ("/" + "x" * LITERAL_MAX, "/" + "x" * (LITERAL_MAX + 1)),
        ("/a" + "[b]" * (WORDS_MAX // 2 - 1), "/a" + "[b]" * (WORDS_MAX // 2)),
        ("/a[" + "not(" * 57 + "b" + ")" * 57 + "]", "/a[" + "not(" * 70 + "b" + ")" * 70 + "]"),
        ("/a[" + "(" * 60 + "b" + ")" * 60 + "]", "/a[" + "(" * 64 + "b" + ")" * 64 + "]"),
    ],
    ids=lambda text: text[:8],
)
def test_bounds(text: str, declined: str) -> None:
    assert read_plain([text, declined])[0] == [0, -1]
    assert same_or_declined([text]) == 1


@pytest.mark.parametrize(
    ("limit", "texts"),
    [
        ("subscription_chars", ["/a/b", "/\u00e9[b = 'x']"]),
        ("subscription_steps", ["/a//b", "//a//b//c", "/a[.//b]", "/a[contains(., 'x')]"]),
        ("subscription_nesting", ["/a[b[c]]", "/a[(b)]", "/a[not(b)]", "/a[contains(b, 'x')]"]),
        ("subscription_predicates", ["/a[b]", "/a[b = 1]", "/a[not(b)]", "/a[contains(., 'x')]"]),
    ],
)
def test_limits_are_those_of_the_parser(limit: str, texts: list[str]) -> None:
    for text in texts:
        least = next(n for n in range(100) if accepts(text, Limits(**{limit: n})))
        for bound in range(max(least - 3, 0), least):
            assert read_plain([text], NAMESPACES, Limits(**{limit: bound}))[0] == [-1]
        if limit != "subscription_chars":  # which the kernel takes for bytes
            assert read_plain([text], NAMESPACES, Limits(**{limit: least}))[0] == [0]


def accepts(text: str, limits: Limits) -> bool:
    try:
        parse(text, NAMESPACES, limits)
    except SubscriptionError:
        return False
    return True
