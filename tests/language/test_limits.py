"""Each bound on a subscription: reached is allowed, beyond it is an error that names it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

import tamis
from tamis.core.errors import SubscriptionLimitError
from tamis.core.limits import Limits
from tamis.language.printer import print_query
from tamis.language.xpath import absolute_xpath, parse

NESTED = [
    ("(", "a", ")"),
    ("a[", "b", "]"),
    ("not(", "a", ")"),
    ("boolean(a[", "b", "])"),
    ("a[not(b = 1 and (", "c", "))]"),
]


Reader = Callable[[str, Mapping[str, str], Limits], object]


@pytest.mark.parametrize("read", [parse, absolute_xpath])
def test_length(read: Reader) -> None:
    limits = Limits(subscription_chars=100)
    assert read("a" * 100, {}, limits)
    with pytest.raises(SubscriptionLimitError, match=r"101 characters .* subscription_chars = 100"):
        read("a" * 101, {}, limits)


@pytest.mark.parametrize("read", [parse, absolute_xpath])
@pytest.mark.parametrize(("opening", "middle", "closing"), NESTED)
def test_nesting(opening: str, middle: str, closing: str, read: Reader) -> None:
    levels = sum(opening.count(bracket) for bracket in "([")
    limits = Limits(subscription_nesting=10 * levels)
    assert read(opening * 10 + middle + closing * 10, {}, limits)
    with pytest.raises(SubscriptionLimitError, match="subscription_nesting = ") as caught:
        read(opening * 11 + middle + closing * 11, {}, limits)
    assert len(opening) * 10 <= caught.value.position < len(opening) * 11


def test_default_nesting_is_within_pythons_recursion() -> None:
    """The deepest that the limit permits can be parsed, printed, hashed and matched."""
    depth = Limits().subscription_nesting
    for opening, middle, closing in (("a[", "b", "]"), ("not(", "a", ")")):
        text = opening * depth + middle + closing * depth
        query = parse(text)
        assert parse(print_query(query)) == query
        assert not tamis.compile({"it": text}).match("<z/>") or opening == "not("


def test_predicates() -> None:
    limits = Limits(subscription_predicates=5)
    assert parse("a[b][c]/d[e[f]][1]", {}, limits)
    with pytest.raises(SubscriptionLimitError, match="subscription_predicates = 5") as caught:
        parse("a[b][c]/d[e[f]][1][2]", {}, limits)
    assert caught.value.position == 18


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (" or ".join(["a = 1"] * 5), 5),
        ("a[b = 1][not(c)]", 4),
        ("count(a) > 1 and not(true())", 4),
        ("a[1][2]", 2),
        ("a | b/text() | c//d", 0),
    ],
)
def test_comparisons_and_calls_count_as_predicates(text: str, count: int) -> None:
    assert parse(text, {}, Limits(subscription_predicates=count))
    if count:
        with pytest.raises(SubscriptionLimitError, match=f"subscription_predicates = {count - 1}"):
            parse(text, {}, Limits(subscription_predicates=count - 1))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("/", 0),
        ("a/@b", 2),
        (".. | text()", 2),
        ("a[b/c = d]", 4),
        ("count(a) > 1 and /b", 2),
        ("(a)[b]/c", 3),
        ("//a", 2),
        ("(a)[b]//c", 4),
    ],
)
def test_steps(text: str, count: int) -> None:
    """Of all paths together; // is a step."""
    assert absolute_xpath(text, {}, Limits(subscription_steps=count))
    if count:
        with pytest.raises(SubscriptionLimitError, match=f"subscription_steps = {count - 1}"):
            absolute_xpath(text, {}, Limits(subscription_steps=count - 1))


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("x" * 100_000, "subscription_chars"),
        ("(" * 10_000 + "a" + ")" * 10_000, "subscription_nesting"),
        ("a" + "[1]" * 10_000, "subscription_predicates"),
        ("a" + "[b]" * 10_000, "subscription_steps"),
        ("/a" * 10_000, "subscription_steps"),
        ("a[" * 10_000 + "b" + "]" * 10_000, "subscription_nesting"),
        ("1 = a or " * 5_000 + "b", "subscription_predicates"),
        ("true() or " * 5_000 + "b", "subscription_predicates"),
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.parametrize("unsupported", ["refuse", "slow"])
def test_default_limits_name_themselves(text: str, limit: str, unsupported: str) -> None:
    """Beyond the defaults there is one short error; the subscriptions beside it are read."""
    subscriptions = tamis.Subscriptions(
        {"bad": text, "good": "//a"}, unsupported=unsupported, skip_bad=True
    )
    assert list(subscriptions.ids) == ["good"]
    (error,) = subscriptions.errors
    assert error.code == "subscription-limit"
    assert limit in str(error)
    assert len(str(error)) < 400
