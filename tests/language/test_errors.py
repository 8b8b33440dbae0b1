"""What a user reads about an expression that cannot be used: the whole message, with its caret.

``errors.txt`` alternates an expression, after ``> ``, and the message that it gives, with the
error's code in front; the prefix ``p`` is declared. To write the present messages into the file,
run these tests with ``TAMIS_WRITE_GOLDEN=1`` and read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tamis.core.errors import SubscriptionError, SubscriptionSyntaxError, UnsupportedExpression
from tamis.language.xpath import absolute_xpath, parse
from tests.support.case_table import cases

GOLDEN = Path(__file__).with_name("errors.txt")
NAMESPACES = {"p": "urn:p"}

Reader = Callable[[str, Mapping[str, str]], object]


def blocks() -> list[tuple[str, str]]:
    """Expression and message, of each block of the file."""
    text = GOLDEN.read_text(encoding="utf-8")
    pairs = [block.partition("\n") for block in text.strip("\n").split("\n\n")]
    return [(first.removeprefix("> "), rest) for first, _, rest in pairs]


def message(expression: str) -> str:
    with pytest.raises(SubscriptionError) as caught:
        parse(expression, NAMESPACES)
    return f"{caught.value.code}: {caught.value}"


def test_messages() -> None:
    found = [(expression, message(expression)) for expression, _ in blocks()]
    if os.environ.get("TAMIS_WRITE_GOLDEN"):
        GOLDEN.write_text("\n\n".join(f"> {e}\n{m}" for e, m in found) + "\n", encoding="utf-8")
    assert found == blocks()


# Each construct outside the fragment, with the place of the fault marked by ‸.
UNSUPPORTED = """
    ‸..; ‸parent::x; ‸ancestor::x; ‸ancestor-or-self::x; ‸following::x; ‸following-sibling::x;
    ‸preceding::x; ‸preceding-sibling::x; ‸namespace::x; y/‸..; y//‸following::*; y[‸..];
    ‸comment(); ‸processing-instruction(); y/‸processing-instruction('t'); ‸self::comment();
    ‸last(); ‸position(); y[‸last()]; y[‸position() = 2]; y[z < ‸last()]; y[not(‸last())];
    descendant::y[‸2]; @y[‸1]; self::y[‸1]; descendant-or-self::y[‸3]; y[z[@w[‸2]]];
    y[‸count(z)]; y[‸string-length()]; (y)[‸1]; (y)[‸z]; (y)[‸z]/w; ‸(y | z)/w; (y | z)[‸w];
    ‸$v; ‸$v/y; y[z = ‸$v]; contains(‸$v, 'a');
    y ‸+ 1; y ‸- 1; y ‸* 2; y ‸div 2; y ‸mod 2; ‸-y; ‸-'5'; ‸- -y; 1 ‸+ 1 = 2; y[1 ‸+ z];
    y ‸= z; y ‸!= @z; y ‸< count(z); name() ‸= local-name(); 'a' ‸= 'a'; 1 ‸< 2;
    (y = 1) ‸= (z = 1); y = z ‸= w; 1 < y ‸< 3; y = 1 ‸!= z;
    y[‸/z]; y[‸//z]; y[‸/]; y[z = 1 and ‸/w]; y[contains(‸/z, 'a')];
    count(‸//y); count(‸.); count(‸y/.); count(y ‸| z); count(‸descendant::y);
    contains(y, ‸z); contains(y, ‸1); starts-with(y, ‸name()); contains(y ‸| z, 'a');
    contains(‸'y', 'a'); contains(‸count(y), 'a'); contains(‸true(), 'a'); contains(y ‸= 1, 'a');
    name(y ‸| z); string-length(‸5); normalize-space(‸'a'); string-length(y ‸| z);
    ‸string(y); ‸string(); ‸concat(y, z); ‸substring(y, 1); ‸substring-before(y, 'a');
    ‸substring-after(y, 'a'); ‸translate(y, 'a', 'b'); ‸number(y); ‸sum(y); ‸floor(y);
    ‸ceiling(y); ‸round(y); ‸id('a'); ‸id('a')/y; ‸lang('en'); ‸namespace-uri(y)
"""

# Each kind of text that is not XPath 1.0.
SYNTAX = r"""
    ‸; a/‸; //‸; a//‸; //‸/a; / ‸/ a; a[‸; a[‸]; a[b‸; a‸]; (a‸; ‸); (‸); a ‸b; a and‸; a or ‸= b;
    a = ‸; ‸= a; a = ‸= b; a ‸! b; a | ‸; ‸| a; a *‸; **‸; * ‸a; -‸; a - ‸; a + ‸+ b; a < ‸> b;
    ‸and(b); ‸foo(a); ‸contians(a, 'b'); ‸matches(a, 'b'); ‸p:f(a); ‸Count(a); a[‸exists(b)];
    ‸true(1); ‸contains(a); ‸concat('a'); ‸not(); ‸count(); ‸substring(a); ‸last(1); ‸name(a, b);
    count(‸'a'); name(‸1); local-name(‸true()); sum(‸5); count(a ‸= b); count(‸-a);
    ‸true()/a; (a ‸= b)[1]; ‸'a'/b; ‸5[1]; ‸count(a)/b; (a ‸+ b)/c; a | ‸'b'; ‸1 | a; a | ‸count(b);
    a[. = ‸'x]; ‸"; ‸'a"; a = 'b' ‸'c'; 'it's‸';
    a‸#b; ‸%; a[‸{b}]; ‸&amp; a‸\b; ‸~a; a ‸^ b; a ‸? b; ‸<a/>; a ‸&& b; a =‸= b; a‸`b;
    ‸foo::a; ‸CHILD::a; child::‸; child::‸[1]; ‸::a; ‸a::b; ‸a :: b; self::‸@b; child::child‸::a;
    ‸q:a; //‸q:*; a/‸@q:b; ‸child::q:b; p‸:; p‸:1; a ‸:b; p‸: a; p:a‸:b; *:a‸:b; *‸:*; * ‸:a; *‸: a;
    a ‸*:b; ‸*:f(a); ‸{u}a; a/Q ‸{u}a; Q‸{u}; Q‸{u} a; Q{u}p‸:a; Q‸{{u}}a;
    Q{u}a‸{b}; ‸Q{u}f(a); ‸Q{u}child::a;
    1‸a; 1.2‸.3; 1‸e3; ‸+5; 5‸(1); 1 ‸2; 0‸x1F; 1‸,5;
    .‸[1]; ..‸[a]; ..‸.; .‸a; ./‸; ..‸..;
    a/text(‸1); a/‸count(b); child::‸foo(a); @‸count(a); comment(‸'x'); processing-instruction(‸x);
    $‸; $‸1; a‸, b; contains(a ‸'b'); contains(a,‸); contains(‸,a); count(a‸; a(b‸;
    @‸; @‸@a; @‸.; a/@‸/b; a/‸[b]; a[b]‸c; a[1 ‸2]
"""


def marked(text: str) -> list[tuple[str, int]]:
    """Expressions and the place of the mark in each."""
    found = [" ".join(line.split()) for line in text.split(";")]
    return [(line.replace("‸", ""), line.index("‸")) for line in found]


@pytest.mark.parametrize(("expression", "place"), marked(UNSUPPORTED))
@pytest.mark.parametrize(
    "around", ["{}", "//q[{}]", "q and {}", "not({})", "q[r][s = 1 or {}]/t", " (\n{}\t) or q"]
)
def test_unsupported_is_refused_at_its_place(expression: str, place: int, around: str) -> None:
    """Alone and inside whatever is supported; lxml answers it, but for variables."""
    whole = around.format(expression)
    with pytest.raises(UnsupportedExpression) as caught:
        parse(whole)
    assert caught.value.position == around.index("{}") + place
    assert caught.value.expression == whole
    if "$" not in expression:
        absolute_xpath(whole)


@pytest.mark.parametrize(("expression", "place"), marked(SYNTAX))
@pytest.mark.parametrize("read", [parse, absolute_xpath])
def test_syntax_errors_are_found_at_their_place(read: Reader, expression: str, place: int) -> None:
    with pytest.raises(SubscriptionSyntaxError) as caught:
        read(expression, NAMESPACES)
    assert caught.value.position == place


def test_operands_of_a_union_for_lxml() -> None:
    with pytest.raises(SubscriptionSyntaxError):
        absolute_xpath("a[last()] | 'b'")


def test_refused_cases_are_refused_for_one_place() -> None:
    """The refused rows of the table point at something that is in the expression."""
    for case in cases():
        if case.expected == "subscription-unsupported":
            with pytest.raises(UnsupportedExpression) as caught:
                parse(case.subscription, case.namespaces)
            assert caught.value.position is not None
            assert 0 <= caught.value.position < len(case.subscription)
