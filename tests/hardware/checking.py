"""Documents for circuits, and their answers beside those of another engine."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from tamis import DocumentError, Matcher
from tamis.hardware.simulate import Simulator

QUERIES = {
    "child": "/a/b",
    "descendant": "//b//c",
    "wildcard": "//a/*/b",
    "recursive": "//a/b/a/b/c",
    "first": "/*/b",
    "inside": "//*//c",
    "deep": "/a//b/*//c",
    "attribute": '//b[@x="1"]/c',
    "present": "//c[@x]",
    "twig": "//a[b and not(.//c)]",
    "twigs": "/a[.//b[c or @y]]/c",
    "union": "/a/c | //b/b",
    "none": "not(//c)",
}
"""Of all kinds that circuits take."""
DOCUMENTS = [
    b"<a><b><a><b><c/></b></a></b></a>",
    b"<a><b x=\"1\"><c/></b><b x='2'/></a>",
    b"<a><!-- <b> --><b/><![CDATA[<c>]]><?pi <c>?></a>\n",
    b"<b/>",
    b"<a><c/><c><b><b/></b></c></a>",
    b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE a SYSTEM "a.dtd">\n<a\n><b\t/></a >',
    "\ufeff<a>\u00e9\u20ac\U0001f600 &lt;&#65;&#xe9; ]] ></a>".encode(),
    b"<c x='>' y=\"a&gt;'\"><a/>text<a></a><!----><c x=''/></c><!-- - --><?x?>",
    b"<a>" + b"<b/>" * 200 + b"</a>",
    b"<a>" + b"<b><c></c></b>" * 60 + b"</a>",
]
_PIECES = [
    *(b"<", b">", b"/", b"/>", b"</", b"&", b";", b"'", b'"', b"=", b" ", b"\t", b"\r\n", b"\0"),
    *(b"<a>", b"</a>", b"<b/>", b"<c x='1'>", b"<d/>", b"<a:b/>", b"x='1'", b'y="<"', b" x = ''"),
    *(b"<!--", b"-->", b"--", b"<![CDATA[", b"]]>", b"]", b"<?", b"?>", b"<?x y?>", b"<?xml "),
    *(b"<!DOCTYPE a>", b"<!DOCTYPE a [", b"]>", b"<!DOCTYPE a PUBLIC 'x' 'y>'>", b"xmlns='u'"),
    *(b"&amp;", b"&#10;", b"&#x41;", b"&nbsp;", b"\xc3\xa9", b"\xc3", b"\xff", b"\xed\xa0\x80"),
    *(b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"\xf5", b":", b"-", b".", b"!", b"?", b"a", b"1"),
    *(b"<?xml version='1.0'?>", b"<?xml version='1.0' encoding='latin-1'?>", b"standalone='no'"),
]
_UNCAUGHT = re.compile("duplicate attribute|reference to invalid character number")
"""Faults that the README of ``tamis.hardware`` lists as not caught, in messages of errors."""
_UNCHECKED = re.compile(rb"""<\?xml\s.*?\?>|<!DOCTYPE(?:[^>"']|"[^"]*"|'[^']*')*>""", re.DOTALL)
"""Declarations whose syntax ``wide`` does not check."""
_UNSUPPORTED = re.compile(
    rb"""xmlns|:|<!DOCTYPE|<\?xml|<!--+>|=\s*("[^"]*[&\t\r\n]|'[^']*[&\t\r\n])""", re.DOTALL
)
"""What must be in a well-formed document that is not for a circuit."""


def damaged(count: int, seed: int) -> Iterator[bytes]:
    """Documents with pieces put in, taken away and put elsewhere; most are malformed then."""
    draws = random.Random(seed)
    for _ in range(count):
        made = bytearray(draws.choice(DOCUMENTS[:8]))
        for _ in range(draws.choice((1, 1, 1, 2, 3))):
            place = draws.randrange(len(made) + 1)
            length = draws.choice((0, 0, 0, 1, 1, 4))
            piece = draws.choice(_PIECES) if draws.random() < 0.8 else b""
            if draws.random() < 0.1:
                piece = bytes(made[place : place + 9])
                place = draws.randrange(len(made) + 1)
            made[place : place + length] = piece
        yield bytes(made[: draws.randrange(len(made) + 1)] if draws.random() < 0.05 else made)


def check(
    simulator: Simulator, matcher: Matcher, documents: Sequence[bytes], gaps: int = 0, seed: int = 1
) -> Counter[str]:
    """Assert that no answer is wrong; how many documents had an answer, and each status.

    A circuit says nothing of a document that it gives the status *unsupported*, *unknown* or
    *overflow*. So a caller should see to it that enough documents had an answer.
    """
    counts: Counter[str] = Counter()
    generated = simulator.generated
    wide = generated.circuit.options.bytes > 1
    for document, answer in zip(documents, simulator.run(documents, gaps, seed), strict=True):
        counts.update(answer.status or ["answer"])
        expected = _answer(matcher, document)
        if isinstance(expected, DocumentError) and wide and not answer.status:
            expected = _answer(matcher, _UNCHECKED.sub(b"", document))
        if answer.status:
            if not isinstance(expected, DocumentError):
                assert answer.status != ("malformed",), document
                assert answer.status != ("unsupported",) or _UNSUPPORTED.search(document), document
        elif isinstance(expected, DocumentError):
            assert _UNCAUGHT.search(str(expected)), (document, str(expected))
        else:
            found = {id for place in answer.positions for id in generated.ids[place]}
            expected -= generated.refused.keys()
            wrong = [one for one in generated.subscriptions if one.id in found ^ expected]
            assert not wrong, (document, wrong)
    return counts


def _answer(matcher: Matcher, document: bytes) -> set[str] | DocumentError:
    try:
        return set(matcher.match(document))
    except DocumentError as error:
        return error
