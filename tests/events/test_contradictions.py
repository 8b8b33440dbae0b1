"""What is said to match nothing does so, and as much of it is said as is promised."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.events.engines import reference
from tamis.events.explain import contradictions
from tamis.events.model import FilterTable, TableBuilder
from tamis.events.subscriptions import EventSubscriptions
from tamis.language.constraints import Constraint
from tests.support.drawn_events import CONSTRAINTS, EVENTS, NUMBERS, answers, tables


@given(tables(), EVENTS)
def test_what_never_matches_does_not(table: FilterTable, events: list[dict[str, Any]]) -> None:
    found = {number for matched in answers(reference.ENGINE, table, events, "subscription")
             for number in matched}  # fmt: skip
    assert not found & contradictions(table).keys()


ORDERED = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
TEXTS = st.text("\0ab", max_size=3)
OF_NUMBERS = st.builds(Constraint, st.just("n"), ORDERED, NUMBERS.filter(lambda n: abs(n) < 1e308))
OF_TEXTS = st.one_of(
    st.builds(Constraint, st.just("n"), ORDERED, TEXTS),
    st.builds(Constraint, st.just("n"), st.just("prefix"), TEXTS),
)
# Whatever compares with the constants as any number does, and all strings of these letters.
BASE = [0, 1, -1, 2, 0.5, 1.5, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2.0**63, -(2.0**63)]
NEAR = [*BASE, 5e-324, 1e-323, 0.75, 1.25, 1.75, 3, 2**53 + 2, 2**62, -2, 1e300, -1e300, 2e300]
NEAR += [-(2.0**63) * 1.5, -(2.0**63) * 1.25, -(2.0**62), 2.0**63 * 1.5, float("inf")]
NEAR += [float("-inf"), 2**53 + 3, 2**63 - 2, -(2**63) + 1, -(2**53), -2e300, -0.5, -1e200]
SHORT = [""]
for _ in range(5):
    SHORT += [text + letter for text in SHORT for letter in "\0ab" if len(text) < 5]


@given(st.lists(st.one_of(OF_NUMBERS), min_size=1, max_size=4))
def test_all_of_numbers_is_found(filter: list[Constraint]) -> None:
    check(filter, NEAR)


@given(st.lists(OF_TEXTS, min_size=1, max_size=3))
def test_all_of_strings_is_found(filter: list[Constraint]) -> None:
    check(filter, list(set(SHORT)))


def check(filter: list[Constraint], values: list[Any]) -> None:
    """A filter is said never to match just where none of some values does."""
    builder = TableBuilder()
    builder.add([filter])
    table = builder.freeze()
    found = answers(reference.ENGINE, table, [{"n": value} for value in values], "subscription")
    assert (not any(found)) == (0 in contradictions(table))


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("n > 3 and m = 1 and n < 2", "n > 3 and n < 2 exclude each other"),
        ("n = 9007199254740993 and n < 9007199254740992.0", "exclude each other"),
        ("n > 9007199254740992 and n < 9007199254740993", "exclude each other"),
        ('n = "x" and n != 3', 'n = "x" and n != 3 exclude each other'),
        ('n = "abc" and n suffix "b"', "exclude each other"),
        ('n in ("a", "b") and n contains "c"', "exclude each other"),
        ('n < ""', 'nothing is n < ""'),
        ("n >= 1 and n <= 1 and n != 1", "n >= 1 and n <= 1 and n != 1 exclude each other"),
        ("b = true and b = false or n > 1 and n < 1", "b = true and b = false exclude each other"),
        ('n prefix "ab" and n < "ab"', "exclude each other"),
        ('n prefix "ab" and n >= "ac"', "exclude each other"),
        ("n > 1 and n < 1 or n > 5", None),
        ('n suffix "a" and n contains "b"', None),
        ('n suffix "a" and n suffix "ba"', None),
        ('n suffix "ab" and n suffix "a"', "exclude each other"),
        ("n >= 1 and n <= 1", None),
        ("b != true and b != false", "b != true and b != false exclude each other"),
        ("n exists and n > 2", None),
    ],
)
def test_reasons(expression: str, reason: str | None) -> None:
    found = contradictions(EventSubscriptions({"s": expression}).table)
    assert found.keys() == (set() if reason is None else {0})
    assert reason is None or found[0].endswith(reason)


@given(st.lists(CONSTRAINTS, max_size=6))
def test_any_constraints(filter: list[Constraint]) -> None:
    builder = TableBuilder()
    builder.add([filter])
    assert contradictions(builder.freeze()).keys() <= {0}


def test_nothing_and_much_of_it() -> None:
    assert contradictions(EventSubscriptions({}).table) == {}
    long = " and ".join(f"n != {number}" for number in range(900))
    assert contradictions(EventSubscriptions({"s": f"{long} and n > 5 and n < 7"}).table) == {}
    zeros = [r"\u0000" * count for count in range(40)]  # each is right behind the one before it
    holes = " and ".join(f's != "{text}"' for text in zeros)
    found = contradictions(EventSubscriptions({"s": f'{holes} and s <= "{zeros[-1]}"'}).table)
    assert found[0].startswith("s != ")
