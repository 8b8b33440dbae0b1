"""What the NFA says of documents, of every shape; the table of cases asks it too."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tamis.core.errors import EngineRefused
from tamis.core.limits import Limits
from tamis.documents.vocabulary import Vocabulary
from tests.support.searchers import asked, batch_of, by_reference, opened, queries


@pytest.mark.parametrize(
    ("expression", "document", "expected"),
    [
        # The broker paper's Queries 2 and 3: sections in sections, with figures.
        ("//section//figure", "<section><section><figure/></section></section>", True),
        ("//section/figure/title", "<section><s/><figure><title/></figure></section>", True),
        ("//section[title]/section/figure",
         "<section><section><figure/></section></section>", False),
        ("//section[figure/title]//figure",
         "<section><section><figure/></section><figure><title/></figure></section>", True),
        # The parts of a twig are all there, but at different nodes.
        ("//a[b]/c", "<x><a><b/></a><a><c/></a></x>", False),
        ("//a[b]/c", "<x><a><b/><a><c/></a></a></x>", False),
        ("//a[b]//c", "<x><a><b/><a><c/></a></a></x>", True),
        ("//a[b//c]//d", "<a><b/><a><b><c/></b></a><d/></a>", False),
        ("//a[a[b]/c]", "<a><a><b/></a><a><c/></a></a>", False),
        # Not the first match of a part, but another one, is part of that of the whole.
        ("//a[@x = '2']/b[. = 't']",
         "<r><a x='1'><b>t</b></a><a x='2'><b>s</b><b>t</b></a></r>", True),
        ("//a[@x = '2']/b[. = 't']", "<r><a x='1'><b>t</b></a><a x='2'><b>s</b></a></r>", False),
        ("not(//a)", "<b/>", True),
        ("/a/b = 3", "<a><b>2</b><b> 3.0 </b></a>", True),
        ("//a[not(b = 'x')]", "<a><b>x</b></a>", False),
        ("//a[b != 'x']", "<a><b>x</b><b>y</b></a>", True),
        ("//a[.//text() = 'x']", "<a>y<b><c/>x</b></a>", True),
        ("//a[text() = 'x']", "<a>y<b>x</b></a>", False),
        ("//a[text() = 'x']", "<a>y<b/>x</a>", True),
        ("/a[string-length(.) = 2]", "<a>é<b>1</b></a>", True),
        ("contains(/, 'x')", "<a><b>wxy</b></a>", True),
        ("contains(//@x, '')", "<a/>", True),
            ("contains(//@x, 'y')", "<a/>", None),
        ("//a[starts-with(@x, '')]", "<a/>", True),
        ("//a[starts-with(normalize-space(@x), 'b c')]", "<a x='  b  c d'/>", True),
        ("/", "<a/>", True),
        ("//a[contains(b, 'x')]", "<a><b>y</b><b>x</b></a>", False),
        ("//a[contains(b[@x], 'x')]", "<a><b>y</b><b x=''>x</b></a>", True),
        ("//a[contains(b[@x]/c/@y, 'x')]", "<a><b><c y='x'/></b><b x=''><c/><c y='x'/></b></a>",
         True),
        ("//a[contains(b/c/@y, 'x')]", "<a><b><c y='z'/></b><b x=''><c/><c y='x'/></b></a>", False),
        ("//a[starts-with(b/text(), 'x')]", "<a><b><c>y</c>x</b></a>", True),
        ("//a[string-length(b/c) = 0]", "<a><b/></a>", True),
        ("//a[b[string-length(c) = 1]]", "<a><b/><b><c>x</c></b></a>", True),
        ("string-length(/a/b) = 2", "<a><b>é1</b><b/></a>", True),
        ("//a[contains(d, '')]", "<a/>", True),
    ],
)  # fmt: skip
def test_named(expression: str, document: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(EngineRefused):
            opened([expression])
        return
    assert asked(opened([expression]), [document]) == [[0] if expected else []]
    assert by_reference(queries([expression]), [document]) == [[0] if expected else []]


def test_documents_are_apart() -> None:
    """Nothing of a document is there in the next; documents in error say nothing."""
    expressions = ["/a/b", "//c", "//a[b]", "not(//c)", "//c[. = 't']", "//b[.//d]", "/*"]
    documents = ["<a/>", "<a><b/></a>", "<broken>", "<c>t</c>", "<b/>", "<", "<a><b/><d/></a>"]
    matching = opened(expressions)
    good = [text for text in documents if text not in ("<broken>", "<")]
    expected = dict(zip(good, by_reference(queries(expressions), good), strict=True))
    for times in (1, 300):
        for text, found in zip(documents * times, asked(matching, documents * times), strict=True):
            assert found == expected.get(text, [])
    for text in good:
        assert asked(matching, [text]) == [expected[text]]


def test_nothing() -> None:
    matching = opened([])
    assert asked(matching, []) == []
    assert asked(matching, ["<a/>", "<"]) == [[], []]
    assert asked(opened(["//a", "//a[b]"]), []) == []
    assert asked(opened(["//a", "//a[b]"]), ["<"]) == [[]]


def test_deep_documents() -> None:
    """100,000 elements inside each other; stacks grow while they are in use."""
    depth = 100_000
    names = ["a", "b", "c"]
    opening = "".join(f"<{names[level % 3]}>" for level in range(depth))
    closing = "".join(f"</{names[level % 3]}>" for level in reversed(range(depth)))
    document = f"{opening}<z x='1'/>{closing}"
    expressions = ["//a/b/c//z", "/a/b/c/a", "//b//b//b", "//a[z]", "//b[.//z]", "//*/*", "/b"]
    expressions += ["//a[not(.//z)]", "//c/c", "//z[@x = 1]", "/a[b]"]
    vocabulary = Vocabulary()
    limits = Limits(depth=depth + 1)
    batch = batch_of([document, "<b/>"], vocabulary, limits)
    assert len(batch.tags) == 2 * depth + 4
    matches = opened(expressions).match(batch, vocabulary)
    # The last element around z is an a, since 100,000 is 1 more than a multiple of 3.
    assert matches.numbers(0).tolist() == [0, 1, 2, 3, 4, 5, 9, 10]
    assert matches.numbers(1).tolist() == [6]


def test_wide_stacks() -> None:
    """More states at once than there is room for at first."""
    expressions = [f"/a/*//n{number}/*" for number in range(3_000)]
    expressions += [f"//a/*/n{number}//*/n{number}" for number in range(3_000)]
    document = "<a><b><n7><c><n7/></c></n7></b></a>"
    assert asked(opened(expressions), [document]) == [[7, 3_007]]
    matching = opened([f"//*[n{number}]" for number in range(2_000)] + ["//*//*//*[@x]"])
    nested = "<b>" * 60 + "<n5/>" + "<c x=''/>" * 5_000 + "</b>" * 60
    assert asked(matching, [nested, "<n5/>"]) == [[5, 2_000], []]


def test_namespaces() -> None:
    declared = {"p": "urn:p", "q": "urn:q"}
    expressions = ["/p:a", "/a", "//p:*", "//p:*/q:*", "//*/p:b", "//@p:x", "//@p:*", "//q:*[@x]"]
    documents = [
        "<a xmlns='urn:p'><b xmlns='urn:q' x='1'/></a>",
        "<a xmlns:z='urn:p' z:y=''><z:b/></a>",
        "<a p:x='' xmlns:p='urn:p'/>",
        "<a/>",
    ]
    given = queries(expressions, declared)
    found = asked(opened(expressions, declared), documents)
    assert found == by_reference(given, documents) == [[0, 2, 3, 7], [1, 2, 4, 6], [1, 5, 6], [1]]


def test_names_come_with_the_documents() -> None:
    """One vocabulary for many batches, in which names get known later."""
    vocabulary = Vocabulary()
    matching = opened(["//x/y", "//z[@w]"])
    for text, expected in [
        ("<a><b/></a>", []),
        ("<x><b/><y/></x>", [0]),
        ("<q><z w='' v=''/></q>", [1]),
        ("<x><y/><z w=''/></x>", [0, 1]),
    ]:
        matches = matching.match(batch_of([text], vocabulary), vocabulary)
        assert matches.numbers(0).tolist() == expected


def test_what_was_answered_stays() -> None:
    """The arrays of a ``MatchSet`` are frozen, and its own."""
    matching, vocabulary = opened(["//a", "//a[b]"]), Vocabulary()
    first = matching.match(batch_of(["<a><b/></a>"], vocabulary), vocabulary)
    for array in first[:5]:
        assert isinstance(array, np.ndarray)
        assert not array.flags.writeable
    matching.match(batch_of(["<b/>", "<a/>"], vocabulary), vocabulary)
    assert first.numbers(0).tolist() == [0, 1]
    assert matching.memory_usage() > 0
    assert matching.program.memory_usage() > 0


def test_many_values() -> None:
    """Equal values are asked once, whoever has them; each way of asking, of many."""
    draw = random.Random(3)
    words = ["1", "2.0", " 2", "x", "x y", " x  y ", "", "10", "-1", "é"]
    conditions = ["= {}", "!= {}", "< {}", ">= {}"]
    expressions = [
        f"//{name}[{of} {draw.choice(conditions).format(draw.choice(['1', '2', '-1']))}]"
        for name in "ab"
        for of in ("@x", ".", "text()", "b", "b/@x", "string-length(.)", "string-length(@x)")
        for _ in range(3)
    ]
    expressions += [
        f"//{name}[{of} {operator} '{word}']"
        for name in "ab*"
        for of in ("@x", ".", "text()", "normalize-space(.)", "normalize-space(@x)")
        for word in words
        for operator in ("=", "!=")
    ]
    expressions += [f"//a[contains({of}, '{word}')]" for of in ("@x", ".") for word in words]
    documents = []
    for _ in range(20):
        parts = [
            f"<{name} x='{one}'>{two}<b>{three}</b></{name}>"
            for name in draw.choices("abc", k=3)
            for one, two, three in [draw.choices(words, k=3)]
        ]
        documents.append(f"<r>{''.join(parts)}</r>")
    given = queries(expressions)
    assert asked(opened(expressions), documents) == by_reference(given, documents)
