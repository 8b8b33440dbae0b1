"""Each hint that says what to write is applied: it matches, and selects, what lxml says."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product

import pytest
from lxml import etree

import tamis
from tamis.core.errors import UnsupportedExpression
from tamis.documents.source import Source
from tamis.language.xpath import absolute_xpath, parse
from tamis.matching.engines.lxml.execute import lxml_tree
from tests.support.case_table import cases
from tests.support.oracles import lxml_xpath

NAMESPACES = {"p": "urn:p"}
LOSES_NODES = ", which matches the same documents, but selects nothing"
SLOW = 'unsupported="slow" has lxml evaluate it'

DOCUMENTS = [
    "<r><a><b>2</b><b>1</b></a><a k='1'><b>1</b><b>x</b></a></r>",
    "<r><a/><a><b/></a><a k=''><b></b></a></r>",
    "<r><a> 1 <b> 1 </b></a><c k='01'/></r>",
    "<a xml:lang='en'><b>1</b><a xml:lang='EN-gb'><c>x</c></a></a>",
    "<a k='x y'><b><c>x</c></b><b k='xx'/></a>",
    "<a k='xy x'>xy<b>xy<c>x</c></b><a k='x'><b>2</b></a></a>",
    "<r><c/><a><c><b k='1'><a><b>1</b></a></b></c><b/></a></r>",
    "<b><a><b><c/></b></a><c k='x'/></b>",
    "<c><c><b>1</b></c><a k='1'>1</a></c>",
    "<!--x--><a>1<!--1--><b>2</b>1</a>",
    "<x/>",
    "<r><a>5</a><a>4</a></r>",
    "<r><a>-4</a><a>4</a><b>x</b></r>",
    "<r xml:lang='en'><a id='i'>12</a><a xml:lang='de'>1</a></r>",
    f"<r>{'<a>x</a>' * 11}</r>",
    "<p:a xmlns:p='urn:p'><a xmlns='urn:q'/><b xmlns='urn:p' k='1'/><c p:k='x'/></p:a>",
]


def drawn_documents() -> Iterator[str]:
    """Small documents of a, b and c, nested in each other, with the strings that are asked for."""
    draw = random.Random(1)

    def element(depth: int) -> str:
        name = draw.choice("aabbc")
        key = draw.choice(["", "", " k='1'", " k='x'", " k=''"])
        inner = "".join(
            element(depth - 1) if depth and draw.random() < 0.6 else draw.choice(TEXTS)
            for _ in range(draw.randrange(4))
        )
        return f"<{name}{key}>{inner}</{name}>"

    for _ in range(30):
        yield element(4)


TEXTS = ["", "", "1", "2", "x", "xy", " 1 ", "01", "-1", "x y", "<!--1-->"]
PATHS = [
    ".", "@k", "b", "b/c", "b/@k", "//b", ".//b", "@*", "*", "text()", "b[2]", "b[@k]", "b[c]/c",
    "a/b/c", "self::a/b", "./b/.", "b/text()", "/a", "/a/b", "b | c",
]  # fmt: skip
LITERALS = ["'1'", "1", "''", "'x'", "-1", "'01'", "'xy'", "0"]
OPERATORS = ["=", "!=", "<", "<=", ">", ">="]
CONTEXTS = ["//a[{}]", "{}", "/a[not({})]/b", "//a[{}][1]", "//b[c or {}]"]
COMPARED = [
    *[f"{function}({path})" for function in ("string", "number", "count") for path in PATHS],
    *[f"-{path}" for path in PATHS],
    "string()", "number()", "number(string(b))", "string(normalize-space(b))",
    "number(normalize-space(b))", "- -b", "substring(b, 1, 1)", "substring(string(b), 1, 2)",
    "2 - 1", "b div 2", "5 mod 3", "1 div 0", "-'1'", "position()", "last()", "lang('en')",
    "concat(b, '')", "translate(b, 'x', '1')", "sum(b)", "floor(b)", "namespace-uri()", "id('x')",
    "string(count(b))", "number(b = 1)", "string(string-length(b))",
]  # fmt: skip
WHOLE = """
//*[namespace-uri() = 'urn:p'] ; //a[namespace-uri(.) != ''] ; //@*[namespace-uri() = 'urn:p'] ;
//*[not(namespace-uri() = 'urn:p') and b] ; //node()[namespace-uri() = ''] ;
//*[namespace-uri(b) = ''] ; //*[namespace-uri() = 'urn:{x}' or @k] ;
//*[namespace-uri() = ' urn:p'] ; namespace-uri(/*) = 'urn:p' ; //b/.. ; //b/../c ; //@k/.. ;
//b/parent::a ; //b/parent::a[@k]/c ; a/b/../c ; b/.. ; /.. ; .. ; //a/descendant::b/.. ;
//a/descendant::b[c]/parent::a ; //text()/.. ; //b[1]/.. ; //b[2]/../c[1] ; //b[..] ; //b[../c] ;
//b[../../c] ; /a/b[../../a] ; /a/b/c[../../@k] ; //b[../@k = '1'] ; //b[parent::a] ;
//b[parent::a/@k = '1'] ; //b[parent::a[@k]] ; //b[not(../c)] ; //a/b[../c][1] ; //b[1][../c] ;
//b[../c and @k] ; //b[@k and ../c and ../a] ; //b[../c or @k] ; //b[count(../b)] ;
//b[count(../b) = 2] ; //b[contains(../@k, 'x')] ; //@k[../b] ; //a/@k[../b = '1'] ; //a[b[../c]]
; //a[b/../c] ; //a[b[../@k = '1'] = '1'] ; //a[not(b/..)] ; //a[string(b/..) = '1'] ; //a[2]/b/..
; //b[parent::node()] ; //b[parent::*/c] ; //b[parent::text()] ; //b[parent::a[1]] ;
//b/parent::a[2] ; //b[ancestor::a] ; //b[ancestor::*] ; //b[ancestor::node()] ;
//b[ancestor::a[@k]] ; //b/ancestor::a ; //b[ancestor::a/@k] ; //b[ancestor::a/@k = '1'] ;
//b[@k][ancestor::a] ; //b[1][ancestor::a] ; //b[ancestor::a][1] ; //b[ancestor::a][ancestor::c] ;
//b[ancestor::a and @k] ; //b[ancestor::a]/c ; //b[ancestor::a[1]] ; //b[ancestor::a = '1'] ;
//b[not(ancestor::a)] ; /a/b[ancestor::a] ; //b[ancestor-or-self::a] ; //b[ancestor-or-self::b] ;
//b[ancestor-or-self::b[@k]]/c ; //b[2][ancestor-or-self::b] ; //*[ancestor-or-self::*/@k = 'x'] ;
//@k[ancestor::a] ; b[ancestor::a] ; (a | b)/c ; (//a | //b)[c] ; (//a | //b)[c]/b ; (//a)[1] ;
(//a)[@k] ; (//a)[@k][1] ; (//a | //b)[1] ; (//b[1])[c] ; (//a[1] | //b[2])/c[1] ;
(//a)[position() = 1] ; (//b)/.. ; (//a | //b)/.. ; (/)[a] ; (a | (b | c))/b ; //a[(b | c)/a] ;
//a[(b | c)[@k]] ; (//a)[b]/c | //b ; (//a)['x'] ; (//a)[last()] ; //a[/b] ; //a[/a] ; //a[//b] ;
//a[not(//b)] ; //a[/a and b] ; //a[/a or b] ; //a[contains(/, 'x')] ; //a[/a/b = '1'] ;
//a[b[/a]] ; //a[not(b[/a])] ; //a[/a][1] ; //a[1][/a] ; //a[b[/a] = '1'] ; //a[/a]/b[//c] ;
//a[/a] | //b ; not(//a[/a]) ; //a[/a] and //b[/b] ; //a[/a] or //b[/b] ; //a[/a/b[/a/c]] ;
//a[count(/a)] ; //a[count(//b) > 1] ; //a[count(//b) > 0] ; //a[/a][last()] ;
//a[string(//b) = '1'] ; //a[(//b)[1] = '1'] ; //a[/a/b = /a/c] ; boolean(//a[/a]) ; //a[/] ;
//a[/a = true()] ; //a[contains(b[/a], 'x')] ; count(//a[/a]) > 0 ; //a[b and (/a and //c)] ;
//a[position() = 1] ; //a[1 = position()] ; //b[@k][position() = 2] ; //a[position() = 1.5] ;
//a[position() = 2]/b ; //a[position() = 1 and b] ; //a[position() > 1] ; //a[position() = last()]
; //a/descendant::b[position() = 1] ; //a[last()] ; //a[last() = 1] ; //a[b][last()] ;
position() = 1 ; /descendant::b[1] ; //@k[1] ; //a/self::a[1] ; //a[count(b)] ;
//a[string-length(b)] ; //a[number(b)] ; count(//a) ; not(count(//a)) ; count(//a) and //b ;
//a[count(.//b) and 1] ; //a[boolean(count(.//b))] ; count(//a | //b) > 0 ; //a[count(b | c) = 0]
; //a[count(b | c) = 2] ; string(//a) ; not(string(//a)) ; //a[string()] ; //a[string(b)] ;
//a[not(string(@k))] ; //a[string(b) and c] ; boolean(string(//b)) ; //a[1 < b < 3] ;
//a[b = 1 = 1] ; 'a' = 'b' ; 1 < '2' ; 'x' < 'y' ; '1' = '1.0' ; 1 = '1.0' ; 2 > 1 > 0 ;
//a[1 + 1] ; //a[2 - 1] ; //a[b = 2 - 1] ; //a[b = 1 div 0] ; //a[b = -1 mod 2] ; //a[1 + b = 2] ;
//a[0.1 + 0.2 = b] ; //a[b = 3 * 0.1] ; //a[b < 10 - 3 - 5] ; //a[- -1] ; //a[b = - - '1'] ; -'1'
; //a[substring(b, 1, 2) = 'xy'] ; //a[substring(b, 1, 2) != 'xy'] ; //a[substring(b, 2, 1) = 'y']
; //a[substring(b, 1, 1) = 'xy'] ; //a[substring(b, 1) = 'xy'] ; substring(//b, 1, 1) = 'x' ;
//a[contains(string(b), 'x')] ; //a[starts-with(string(), 'x')] ;
//a[string-length(string(b)) = 1] ; //a[normalize-space(string(.)) = '1'] ;
//a[contains(string(count(b)), '1')] ; //a[contains(b, c)] ;
//a[contains(concat(' ', @k, ' '), ' x ')] ;
//a[contains(concat(' ', normalize-space(@k), ' '), ' x ')] ; //a[lang('en')] ; //*[lang('EN')] ;
//a[translate(@k, 'X', 'x') = 'x'] ; //a[b = c] ; //a[(b = 1) = (c = 1)] ;
//a[namespace-uri() = ''] ; //*[namespace-uri() = 'urn:p' and local-name() = 'a'] ; id('x') ;
id('x')/b ; //a[following-sibling::b] ; //a/preceding-sibling::a ; //a/following::b ; //comment()
; //namespace::* ; //a[string(b) = '1'][string(c) = 'x'][/a] ;
//a[string(b[string(c) = 'x']) = '1'] ; //a[number(b) = number('1')] ;
//a[string(b)='1']/b[../c]/.. ; (//a | //b)[string(c) = 'x']/.. ; //a[string(string(b)) = '1']
"""


@cache
def refused() -> dict[str, str]:
    """Expressions that are refused, and their hints."""
    draw = random.Random(2)
    compared = [f"{one} {op} {other}" for one, op, other in product(COMPARED, OPERATORS, LITERALS)]
    compared = draw.sample(compared, len(compared) // 3)
    compared += [f"{other} {op} {one}" for one, op, other in product(COMPARED, OPERATORS, ["1"])]
    found = [draw.choice(CONTEXTS).format(each) for each in compared]
    found += [" ".join(text.split()) for text in WHOLE.split(";")]
    found += [c.subscription for c in cases() if c.expected == "subscription-unsupported"]
    hints = {text: hint_of(text) for text in found if "$" not in text}
    return {text: hint for text, hint in hints.items() if hint is not None}


def hint_of(expression: str) -> str | None:
    """The hint of a refused expression; None where it is supported."""
    try:
        parse(expression, NAMESPACES)
    except UnsupportedExpression as error:
        return error.hint or ""
    return None


def instead(hint: str) -> str | None:
    """The expression that a hint says to write."""
    if not hint.startswith("write "):
        return None
    return hint.removeprefix("write ").removesuffix(LOSES_NODES)


def selection(expression: str) -> Callable[[etree._ElementTree], object]:
    """What lxml selects; None where the expression is no path."""
    evaluate = etree.XPath(absolute_xpath(expression, NAMESPACES), namespaces=NAMESPACES)

    def nodes(tree: etree._ElementTree) -> object:
        found = evaluate(tree)
        if not isinstance(found, list):
            return None
        return [
            node if isinstance(node, etree._Element) else (node.getparent(), node.attrname, node)
            for node in found
        ]

    return nodes


def test_what_hints_say_is_equivalent() -> None:
    documents = [*DOCUMENTS, *drawn_documents()]
    hints = {text: found for text, hint in refused().items() if (found := instead(hint))}
    matcher = tamis.compile(hints, namespaces=NAMESPACES)
    oracles = {text: lxml_xpath(text, NAMESPACES) for text in hints}
    selections = {
        text: (selection(text), selection(hint))
        for text, hint in hints.items()
        if text.startswith(("/", "(", "a", "b", ".")) and not refused()[text].endswith(LOSES_NODES)
    }
    for document, match in zip(documents, matcher.match_many(documents), strict=True):
        tree = lxml_tree(Source(document.encode()))
        kept = list(tree.iter())  # or else lxml makes new objects for the same nodes
        true = set(match)
        assert [text for text in hints if oracles[text](tree) != (text in true)] == [], document
        for text, (of_refused, of_hint) in selections.items():
            expected = of_refused(tree)
            assert expected is None or of_hint(tree) == expected, (text, hints[text], document)
        del kept


def test_there_are_hints() -> None:
    """The canary: without hints, nothing would be compared."""
    assert sum(instead(hint) is not None for hint in refused().values()) > 500
    assert sum(hint.endswith(LOSES_NODES) for hint in refused().values()) > 20


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("//a[string(b) = '1']", "write //a[b[1] = '1']"),
        ("string(//b) = 'x'", "write starts-with(//b, 'x') and string-length(//b) = 1"),
        ("//a[number(@k) != 1]", "write //a[not(@k = 1)]"),
        ("//b/../c", "write /descendant-or-self::node()[b]/c"),
        ("//b[parent::a]", "write //a/b"),
        ("//b[ancestor::a]", "write //a//b"),
        ("(a | b)[c]", "write a[c] | b[c]"),
        ("count(//a) > 0", "write //a"),
        ("//a[not(/b)]", "write //a and not(/b)" + LOSES_NODES),
        ("//a[contains(concat(' ', @class, ' '), ' x ')]", SLOW),
        ("//a[lang('en')]", SLOW),
        ("//a[last()]", SLOW),
        ("(//a)[1]", SLOW),
        ("//a[$b]", "put its value there"),
    ],
)  # fmt: skip
def test_hint(expression: str, expected: str) -> None:
    assert hint_of(expression) == expected


def test_what_slow_refuses_is_not_told_to_use_slow() -> None:
    for unsupported in ("refuse", "slow"):
        with pytest.raises(tamis.BadSubscriptions) as caught:
            tamis.Subscriptions({"x": "//a[. = $b or last()]"}, unsupported=unsupported)
        assert "slow" not in str(caught.value)


def test_long_expressions_are_refused_at_once() -> None:
    """What would become too long has no hint; nesting does not multiply the work."""
    for expression in (
        "//a[string(//b[" * 20 + "c" + "]) = 'x']" * 20,
        "(a | b)[" * 30 + "c" + "]" * 30 + "/c",
        "//a[string(" + "/".join("b" * 500) + ") = 'x']",
        "(" + " | ".join(["a"] * 400) + ")/c/..",
    ):
        assert hint_of(expression)
