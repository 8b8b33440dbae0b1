# ruff: noqa: E501 - a case is a line
"""The language of subscriptions of events: what expressions mean, and what is wrong with others."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tamis.core.errors import SubscriptionError, SubscriptionLimitError, SubscriptionSyntaxError
from tamis.core.limits import Limits
from tamis.events.model import number
from tamis.language.attributes import (
    EVERY,
    address_name,
    elements_name,
    folded_name,
    null_name,
    path_name,
)
from tamis.language.constraints import (
    Clause,
    Constraint,
    Field,
    Filter,
    Literal,
    constraints_in,
    fold,
    print_filters,
)
from tamis.language.events import parse_filters
from tests.support.drawn_events import CONSTRAINTS


def c(name: str, operator: str, constant: object = None) -> Constraint:
    return Constraint(name, operator, constant)  # type: ignore[arg-type]


A, B, C, D = (c(name, "=", 1) for name in "abcd")


def unless(*literals: tuple[list[Constraint], bool]) -> Clause:
    """A clause: constraints, and whether they are not to hold."""
    return Clause(tuple(Literal(tuple(own), no) for own, no in literals))


N = unless(([B], True))

CASES: dict[str, tuple[str, list[list[Constraint | Clause]]]] = {
    "one": ("a=1", [[A]]),
    "and": ("a = 1 and b = 1", [[A, B]]),
    "or": ("a = 1 or b = 1", [[A], [B]]),
    "and binds tighter": ("a=1 or b=1 and c=1", [[A], [B, C]]),
    "parentheses": ("(a=1 or b=1) and c=1", [[A, C], [B, C]]),
    "parentheses on both sides": ("(a=1 or b=1) and (c=1 or d=1)", [[A, C], [A, D], [B, C], [B, D]]),
    "parentheses in parentheses": ("((a=1))and(((b=1)or c=1))", [[A, B], [A, C]]),
    "a constraint twice": ("a=1 and b=1 and a=1", [[A, B]]),
    "a filter twice": ("a=1 or b=1 or a=1", [[A], [B]]),
    "one and true are not the same": ("a=1 or a=true", [[A], [c("a", "=", True)]]),
    "in that order too": ("a in (true) or a in (1)", [[c("a", "in", (True,))], [c("a", "in", (1,))]]),
    "all orders": (
        "a<1 and b<=1 and c>1 and d>=1 and e!=1",
        [[c("a", "<", 1), c("b", "<=", 1), c("c", ">", 1), c("d", ">=", 1), c("e", "!=", 1)]],
    ),
    "parts": (
        'a prefix "x" and a suffix "" and a contains "y"',
        [[c("a", "prefix", "x"), c("a", "suffix", ""), c("a", "contains", "y")]],
    ),
    "exists": ("a exists", [[c("a", "exists")]]),
    "absent": ("a absent", [[unless(([c("a", "exists")], True))]]),
    "null": ("a = null or b != null", [[c(null_name("a"), "exists")], [c("b", "exists")]]),
    "null in a list": ("a in (null)", [[c(null_name("a"), "exists")]]),
    "not binds tightest": ("not b = 1 and a = 1", [[A, N]]),
    "not alone": ("not b=1", [[N]]),
    "not of a group": ("a=1 and not (b=1 and c=1)", [[A, unless(([B, C], True))]]),
    "not of alternatives": ("a=1 and not (b=1 or c=1)", [[A, N, unless(([C], True))]]),
    "not of not": ("not not a=1 and not (not (b=1 or c=1))", [[A, B], [A, C]]),
    "not in a group that is not": ("not (a=1 and not b=1)", [[unless(([A], True), ([B], False))]]),
    "alternatives of not": ("a=1 and (not b=1 or c=1)", [[A, N], [A, C]]),
    "not twice": ("not b=1 and not b=1", [[N]]),
    "a name like an operator": ("absent = 1", [[c("absent", "=", 1)]]),
    "in": ("a in (1, 2.5,1)", [[c("a", "in", (1, 2.5))]]),
    "in of several kinds": (
        'a in (1, "1", true, 2.0) and b = 1',
        [[c("a", "in", (1, 2.0)), B], [c("a", "in", ("1",)), B], [c("a", "in", (True,)), B]],
    ),
    "orders of strings": ('a >= "b"', [[c("a", ">=", "b")]]),
    "names": ("net-if_0:rx=1 and _x=1", [[c("net-if_0:rx", "=", 1), c("_x", "=", 1)]]),
    "paths": ("net.if-0:rx.`a.b`=1", [[c(path_name(("net", "if-0:rx", "a.b")), "=", 1)]]),
    "a name with dots": ("`a.b`=1", [[c("a.b", "=", 1)]]),
    "positions": ("a[0].b[10] = 1", [[c(path_name(("a", 0, "b", 10)), "=", 1)]]),
    "without case, in a path": ("a.b = i'X'", [[c(folded_name(path_name(("a", "b"))), "=", "x")]]),
    "null in a path": ("a.b = null", [[c(null_name(path_name(("a", "b"))), "exists")]]),
    "a pattern": ("a like 'x*y'", [[c("a", "like", "x*y")]]),
    "a pattern that is a string": ("a like 'x\\\\*'", [[c("a", "=", "x*")]]),
    "a pattern that is a part": ("a like i'*X*'", [[c(folded_name("a"), "contains", "x")]]),
    "a regular expression": (r'a matches r"x\d"', [[c("a", "matches", r"x\d")]]),
    "one without case": (r'a matches i"X\\D"', [[c(folded_name("a"), "matches", r"X\D")]]),
    "one that asks for a part": ('a matches "x.y|z" and b matches "xy"', [[c("a", "matches", "x.y|z"), c("b", "contains", "xy")]]),
    "another attribute": ("a < field(b.c)", [[c("a", "<", Field(path_name(("b", "c"))))]]),
    "another attribute, without case": ("a = i field(b)", [[c(folded_name("a"), "=", Field(folded_name("b")))]]),
    "any value": ("* > 3", [[c(elements_name((EVERY,), " > 3"), "exists")]]),
    "networks": (
        "a cidr ('10.0.0.0/8', '::/0')",
        [[c(address_name("a"), "prefix", "400001010")], [c(address_name("a"), "prefix", "6")]],
    ),
    "the element itself": ("a[].(. = 1 or b = 2)", [[c(elements_name(("a",), ".(. = 1 or b = 2)"), "exists")]]),
    "some element": ("a[] > 3", [[c(elements_name(("a",), " > 3"), "exists")]]),
    "a field of some element": ("a.b[].c = 1", [[c(elements_name(("a", "b"), ".c = 1"), "exists")]]),
    "conditions on one element": (
        "a[].(b=1 and c=1)",
        [[c(elements_name(("a",), ".(b = 1 and c = 1)"), "exists")]],
    ),
    "elements of elements": (
        "a[].b[].(c=1 or not d=1)",
        [[c(elements_name(("a",), ".b[].(c = 1 or not d = 1)"), "exists")]],
    ),
    "words of the language in a path": ("a.in.`or`=1", [[c(path_name(("a", "in", "or")), "=", 1)]]),
    "names of all alphabets": ("größe=1 and 数=1", [[c("größe", "=", 1), c("数", "=", 1)]]),
    "names in backquotes": ("`a b`=1 and `and`=1 and ```q`=1", [[c("a b", "=", 1), c("and", "=", 1), c("`q", "=", 1)]]),
    "names that begin with keywords": ("order=1 and android=1", [[c("order", "=", 1), c("android", "=", 1)]]),
    "escapes": (r'a = "\"\\\n\u00e9\ud83d\ude00"', [[c("a", "=", '"\\\né\U0001f600')]]),
    "single quotes": (r"""a = 'it\'s "so"'""", [[c("a", "=", 'it\'s "so"')]]),
    "a string with words of the language": ('a = "x and b = 1 or (" and b = 1', [[c("a", "=", "x and b = 1 or ("), B]]),
    "numbers": (
        "a in (0, -0.0, -5, 1e3, 1.5E-3, 9223372036854775807, -9223372036854775808)",
        [[c("a", "in", (0, -5, 1000.0, 0.0015, 2**63 - 1, -(2**63)))]],
    ),
    "integers are exact": ("a = 9007199254740993", [[c("a", "=", 2**53 + 1)]]),
    "white space": ("\t a\n=\r\n1 ", [[A]]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_meaning(name: str) -> None:
    expression, expected = CASES[name]
    found = parse_filters(expression)
    assert [list(filter) for filter in found] == expected
    kinds = [[type(constraint.constant) for constraint in constraints_in(each)] for each in found]
    assert kinds == [[type(own.constant) for own in constraints_in((*each,))] for each in expected]


BAD = [
    ("", 0, "expected the name of an attribute, found the end", ""),
    (
        "temp",
        4,
        "expected an operator (= != < <= > >= prefix suffix contains like matches cidr in between exists absent)",
        "",
    ),
    ("temp >", 6, "expected a value, found the end", ""),
    ("temp > warm", 7, "expected a value, found 'warm'", 'in quotes: "warm"'),
    ("temp == 1", 5, "found '=='", "write ="),
    ("temp <> 1", 5, "found '<>'", "write !="),
    ("a = 1 && b = 2", 6, "expected and, or, or the end, found '&&'", "write and"),
    ("a = 1 || b = 2", 6, "found '||'", "write or"),
    ("a = 1 AND b = 2", 6, "found 'AND'", "write and"),
    ("a = TRUE", 4, "found 'TRUE'", "write true"),
    ("a not = 1", 2, "expected an operator", "not comes before a whole constraint"),
    ("!a = 1", 0, "expected the name of an attribute, found '!'", "write not"),
    ("not", 3, "expected the name of an attribute, found the end", ""),
    ("not not (a = 1", 14, "expected and, or, or ), found the end", ""),
    ("and = 1", 0, "found 'and'", "`and`"),
    ("a > null", 4, "found 'null'", "write = null, or absent"),
    ("a prefix null", 9, "found 'null'", "write = null, or absent"),
    ("a = NaN", 4, "found 'NaN'", "no constant can be NaN"),
    ("a = 1 b = 2", 6, "expected and, or, or the end, found 'b'", ""),
    ("(a = 1", 6, "expected and, or, or ), found the end", ""),
    ("a = 1)", 5, "expected and, or, or the end, found ')'", ""),
    ("a = 1 and", 9, "expected the name of an attribute, found the end", ""),
    ("a in 1", 5, "expected ( and values, found '1'", ""),
    ("a in ()", 6, "expected a value, found ')'", ""),
    ("a in (1 2)", 8, "expected , or ), found '2'", ""),
    ("a < true", 4, "booleans have no order", "write = or !="),
    ("a prefix 5", 9, "prefix asks for a part of a string, not 5", ""),
    ("a contains true", 11, "contains asks for a part of a string", ""),
    ('a = "open', 4, 'there is no " at the end', ""),
    ("`open = 1", 0, "there is no ` at the end", ""),
    ("`` = 1", 0, "the name is empty", ""),
    (r'a = "\x41"', 4, "one of JSON's escapes", r"\\ for a backslash"),
    (r'a = "\ud800"', 4, "half of a surrogate pair", ""),
    ("a = '\ud800'", 4, "half of a surrogate pair", ""),
    ("a = 9223372036854775808", 4, "beyond 64 bits", "as a float"),
    ("a = -9223372036854775809", 4, "beyond 64 bits", ""),
    ("a = 1e999", 4, "beyond what a 64-bit float can be", ""),
    ("a = 007", 4, "'007' is no number", "as in 5"),
    ("a = 5.", 4, "'5.' is no number", ""),
    ("a = .5", 4, "'.5' is no number", ""),
    ("a = +5", 4, "'+5' is no number", ""),
    ("a = 5x", 4, "'5x' is no number", ""),
    ("a = $5", 4, "'$' has no meaning here", ""),
    ("a..b = 1", 0, "no name between two dots", "`a..b`"),
    ("a[].(. .x = 1)", 7, "expected an operator", ""),
    ("a[].(. [0] = 1)", 7, "expected an operator", ""),
    (". = 1", 0, "expected the name of an attribute, found '.'", ""),
    ("a like 3", 7, "like asks for a pattern, not 3", ""),
    ("a cidr '10.0.0.1/8'", 7, "is no network", 'write "10.0.0.0/8"'),
    ("a cidr 'x'", 7, "'x' is no network", 'write "10.0.0.0/8", or'),
    ("a cidr i'10.0.0.0/8'", 7, "a network is a string", ""),
    ("a ilike 'x'", 2, "found 'ilike'", "write like i"),
    ("a regex 'x'", 2, "found 'regex'", "write matches"),
    ("a[-1] = 1", 2, "a position is a whole number", ""),
    ("a[1.5] = 1", 2, "a position is a whole number", ""),
    ("a[*].b = 1", 2, "expected a position", "write [] for some element"),
    ("a[x] = 1", 2, "expected a position, or ], found 'x'", ""),
    ("a[].(b = 1", 10, "expected and, or, or ), found the end", ""),
    ("a[] = ", 6, "expected a value, found the end", ""),
    ("`\x02a` = 1", 0, "no such control characters", ""),
    ("//a[b]", 0, "'/' has no meaning here", "XPath is for documents"),
    ("a/b = 3", 1, "", "a name with / is written in backquotes: `a/b`"),
    ("@timestamp > 3", 0, "'@' has no meaning here", "backquotes: `@timestamp`"),
    ("x = 1 and a.b.#id exists", 13, "", "a name with # is written in backquotes: `a.b.#id`"),
    ("= 1", 0, "expected the name of an attribute, found '='", ""),
    ("'a' = 1", 0, "expected the name of an attribute", ""),
    ("a->5", 1, "'-' is no number", ""),
    ("a between 1 and true", 16, "between asks for an order", ""),
    ("a between 1 and 'x'", 16, "both are strings", ""),
    ("exists a", 0, "found 'exists'", "the name comes first"),
    ("contains(a, 'x')", 0, "found 'contains'", "the name comes first"),
    ("a startswith 'x'", 2, "found 'startswith'", "write prefix"),
    ("'a' = 1", 0, "expected the name of an attribute", "in backquotes"),
    ("a = “x”", 4, "has no meaning here", "plain quotes"),
    ("a and b = 1", 2, "expected an operator", "write = true"),
    ("a = 1 or or b = 1", 9, "found 'or'", ""),
]


@pytest.mark.parametrize(
    ("expression", "position", "message", "hint"), BAD, ids=[b[0] for b in BAD]
)
def test_errors(expression: str, position: int, message: str, hint: str) -> None:
    with pytest.raises(SubscriptionSyntaxError) as caught:
        parse_filters(expression)
    assert message in caught.value.message
    assert caught.value.position == position
    assert hint in (caught.value.hint or "")


LIMITED = [
    ("a=1 or b=1", Limits(subscription_chars=9), "10 characters: the limit is 9"),
    ("((a=1))", Limits(subscription_nesting=1), "nested deeper than 1"),
    ("a=1 or b=1", Limits(subscription_predicates=1), "subscription_predicates = 1"),
    ("a=1 or b=1", Limits(subscription_filters=1), "has 2 filters: the limit is 1"),
    ("(a=1 or b=1) and (c=1 or d=1)", Limits(subscription_filters=3), "has 4 filters"),
    ("(" * 60_000, Limits(), "nested deeper than 64"),
    ("(" * 100_000, Limits(subscription_chars=10**6), "nested deeper than 64"),
    ("a=1", Limits(subscription_filters=0), "has 1 filters: the limit is 0"),
    ('a in (1, "x", true)', Limits(subscription_filters=2), "has 3 filters: the limit is 2"),
    ('(a in (1, "x", true))', Limits(subscription_filters=2), "has 3 filters: the limit is 2"),
    ('a in (1, "x") and b=1', Limits(subscription_filters=1), "has 2 filters: the limit is 1"),
]


@pytest.mark.parametrize(("expression", "limits", "message"), LIMITED)
def test_limits(expression: str, limits: Limits, message: str) -> None:
    with pytest.raises(SubscriptionLimitError, match=message):
        parse_filters(expression, limits)


def test_alternatives_that_would_multiply_are_clauses() -> None:
    lists = [" or ".join(f"{name} = {n}" for n in range(18)) for name in "abc"]
    (first, *others) = parse_filters(" and ".join(f"({each})" for each in lists))
    assert len(others) == 17  # 5,832 as a disjunction of conjunctions
    assert [len(part.literals) for part in first if isinstance(part, Clause)] == [18, 18]
    three = " or ".join(f"(a = {n} and not b = {n})" for n in range(6))
    nested = " and ".join(
        [f"({three})"] * 2 + ["x = 1"] + [f"(c{n}=1 or d{n}=1)" for n in range(7)]
    )
    assert len(parse_filters(nested)) <= 64


def test_clauses_do_not_multiply_without_bound() -> None:
    pairs = " and ".join(f"(p{n} = 1 or q{n} = 1)" for n in range(6))
    both = (" and ".join(f"not {name}{n} = 0" for n in range(30)) for name in "bc")
    many = " or ".join(f"a{n} = 1" for n in range(900))
    expression = f"{pairs} and ({' or '.join(f'({each})' for each in both)} or {many})"
    with pytest.raises(SubscriptionLimitError, match="subscription_filters"):
        parse_filters(expression)


@pytest.mark.parametrize("behind", [" = 1", "[] = 1", "[].b = 1", "[0] = 1"])
def test_paths_have_a_limit(behind: str) -> None:
    path = ".".join(["a"] * 64)
    assert parse_filters(f"{path[2:]}{behind}")
    with pytest.raises(SubscriptionLimitError, match="subscription_nesting"):
        parse_filters(f"{path}.a{behind}")


def test_parentheses_of_elements_count() -> None:
    nested = "b = 1"
    for _ in range(10):
        nested = f"a[].({'(' * 6}{nested}{')' * 6})"
    with pytest.raises(SubscriptionLimitError, match="nested deeper than 64"):
        parse_filters(nested)


def test_limits_beyond_what_python_can_do() -> None:
    expression = "(" * 5_000 + "a=1" + ")" * 5_000
    with pytest.raises(SubscriptionLimitError, match="deeper than Python can follow"):
        parse_filters(expression, Limits(subscription_nesting=1_000_000))


def test_a_limit_itself_is_allowed() -> None:
    limits = Limits(subscription_filters=4, subscription_predicates=4, subscription_nesting=1)
    assert len(parse_filters("(a=1 or b=1) and (c=1 or d=1)", limits)) == 4


def refusal(expression: str) -> SubscriptionError | None:
    """Why an expression is refused, or None if it means something."""
    try:
        found: tuple[Filter, ...] = parse_filters(expression)
    except SubscriptionError as error:
        return error
    assert found
    return None


@pytest.mark.parametrize(
    "expression",
    [
        " and ".join(f"(a{n}=1 or b{n}=1)" for n in range(400)),  # 2**400 filters
        "(" + " or ".join(f"b{n}=1" for n in range(490)) + ") and " + " and ".join(f"a{n}=1" for n in range(500)),
        " " * 65_000,
        f"a in ({', '.join(map(str, range(8_000)))})",
        'a = "' + "x" * 65_000,
    ],
    ids=["exponential", "long filters", "spaces", "a long list", "an open string"],
)  # fmt: skip
def test_none_takes_long(expression: str) -> None:
    start = time.process_time()
    error = refusal(expression)
    assert error is None or len(str(error)) < 500
    assert time.process_time() - start < 5  # some hundredths; minutes, where it is not linear


def test_long_conjunctions_are_read_in_linear_time() -> None:
    limits = Limits(subscription_chars=10**7, subscription_predicates=10**6)
    expression = " and ".join(f"a{number}=1" for number in range(20_000))
    start = time.process_time()
    assert len(parse_filters(expression, limits)[0]) == 20_000
    assert time.process_time() - start < 2  # some tenths; several seconds, where it is quadratic


GOLDEN = Path(__file__).with_name("constraint_errors.txt")


def golden_blocks() -> list[tuple[str, str]]:
    """Expression and message, of each block of the file."""
    text = GOLDEN.read_text(encoding="utf-8")
    pairs = [block.partition("\n") for block in text.strip("\n").split("\n\n")]
    return [(first.removeprefix("> "), rest) for first, _, rest in pairs]


def test_whole_messages() -> None:
    """As in ``test_errors.py``: ``TAMIS_WRITE_GOLDEN=1`` writes the present ones."""
    blocks = golden_blocks()
    assert len(blocks) >= 30
    found = []
    for expression, _ in blocks:
        error = refusal(expression)
        assert error is not None, expression
        found.append((expression, f"{error.code}: {error}"))
    if os.environ.get("TAMIS_WRITE_GOLDEN"):
        GOLDEN.write_text("\n\n".join(f"> {e}\n{m}" for e, m in found) + "\n", encoding="utf-8")
    assert found == golden_blocks()


def test_caret() -> None:
    with pytest.raises(SubscriptionSyntaxError) as caught:
        parse_filters("temp => 5")
    assert str(caught.value).splitlines() == [
        "expected a value, found '>'",
        "  temp => 5",
        "        ^",
    ]


@given(st.lists(st.lists(CONSTRAINTS, min_size=1, max_size=4), min_size=1, max_size=4))
def test_printed_and_read_again(drawn: list[list[Constraint]]) -> None:
    assume("inf" not in repr(drawn))  # there are no such constants in the language
    once = parse_filters(print_filters(drawn))
    assert parse_filters(print_filters(once)) == once
    assert meaning(once) == meaning(drawn)


def meaning(filters: object) -> set[frozenset[object]]:
    """What filters ask for, in whatever order; equal numbers are the same."""
    assert isinstance(filters, tuple | list)
    return {frozenset(map(_plain, filter)) for filter in filters}


def _plain(constraint: Constraint | Clause) -> object:
    if isinstance(constraint, Clause):
        return frozenset((frozenset(map(_plain, own)), no) for own, no in constraint.literals)
    constant = constraint.constant
    values = constant if isinstance(constant, tuple) else (constant,)
    return constraint.name, constraint.operator, frozenset(map(_value, values))


def _value(value: object) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number(value) if is_number else (type(value), value)  # type: ignore[arg-type]


WORDS = (
    'a b ` " \' \\ ( ) , = != < <= > >= and or not in exists absent prefix 1 -1 1.5 e "x" '
    "'y' true null \n é \ud800"
)


@given(st.lists(st.sampled_from(WORDS.split(" "))), st.sampled_from(["", " "]))
def test_whatever_is_written(words: list[str], between: str) -> None:
    """It is read, or refused with a place inside of it."""
    expression = between.join(words)
    error = refusal(expression)
    if error is not None:
        assert isinstance(error, SubscriptionSyntaxError)
        assert error.position is not None
        assert 0 <= error.position <= len(expression)


@pytest.mark.parametrize(
    "text",
    [
        'a = i"abc"',
        'a != i"abc" and b prefix i"é"',
        'a in (i"x", i"y") or a in ("Z") or a in (3)',
        '`odd name` contains i"x"',
    ],
)
def test_strings_without_case_are_printed_as_they_are_written(text: str) -> None:
    assert print_filters(parse_filters(text)) == text
    upper = re.sub(r'i"(\w+)"', lambda found: f"i'{found[1].upper()}'", text)
    assert print_filters(parse_filters(upper)) == text


def test_folding_keeps_the_number_of_characters() -> None:
    every = [chr(code) for code in range(0x11000) if not 0xD800 <= code < 0xE000]
    folded = list(map(fold, every))
    assert all(len(one) == 1 for one in folded)
    assert list(map(fold, folded)) == folded
    same = [one for one, other in zip(every, folded, strict=True) if len(one.casefold()) == 1]
    assert all(fold(one) == one.casefold() for one in same)


def test_between_is_two_constraints() -> None:
    assert parse_filters("a between 1 and 2.5 and b = 1") == parse_filters(
        "a >= 1 and a <= 2.5 and b = 1"
    )
    assert parse_filters("not_a = 1 or (a between 'x' and 'y')") == parse_filters(
        "not_a = 1 or a >= 'x' and a <= 'y'"
    )
