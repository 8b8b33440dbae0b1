"""Automata of drawn trees against a matcher that tries everything, and their bounds."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.core.automata import ACCEPTED, DEAD, Dfa, _Construction, _merged, build
from tamis.core.errors import SubscriptionLimitError
from tamis.core.kernel.dfa import packed
from tamis.core.nfa import (
    CODE_MAX,
    Assertion,
    Characters,
    Choice,
    Edges,
    Nfa,
    Node,
    Repeat,
    Sequence,
    edges_of,
)
from tests.support.automata import accepted

ANY = Characters(((0, CODE_MAX),))
NO_NEWLINE = Characters(((0, 9), (11, CODE_MAX)))
LETTERS = "ab \né€😀"

SETS = st.sampled_from([
    *(((ord(letter), ord(letter)),) for letter in LETTERS),
    *(ANY.ranges, NO_NEWLINE.ranges, ((0, 97), (99, CODE_MAX))),
    *(((97, 0xE9),), ((0xE0, 0xFFFF),), ((0x20AC, 0x1F600),), ((0, 0x20AB), (0x20AD, CODE_MAX))),
])  # fmt: skip
TREES: st.SearchStrategy[Node] = st.recursive(
    st.builds(Characters, SETS) | st.sampled_from(Assertion),
    lambda inner: (
        st.lists(inner, max_size=4).map(tuple).map(Sequence)
        | st.lists(inner, min_size=1, max_size=3).map(tuple).map(Choice)
        | st.builds(Repeat, inner, st.integers(0, 3), st.none())
        | st.builds(lambda n, least, more: Repeat(n, least, least + more), inner,
                    st.integers(0, 2), st.integers(0, 3))
    ),
    max_leaves=10,
)  # fmt: skip
TEXTS = st.text(LETTERS, max_size=9)


def _is_word(text: str, place: int) -> bool:
    return 0 <= place < len(text) and (text[place].isascii() and text[place].isalnum())


def _holds(assertion: Assertion, text: str, place: int) -> bool:
    is_start, is_end = place == 0, place == len(text)
    is_boundary = _is_word(text, place - 1) != _is_word(text, place)
    return {
        Assertion.TEXT_START: is_start,
        Assertion.TEXT_END: is_end,
        Assertion.LINE_START: is_start or text[place - 1] == "\n",
        Assertion.LINE_END: is_end or text[place] == "\n",
        Assertion.BOUNDARY: is_boundary,
        Assertion.NO_BOUNDARY: not is_boundary,
    }[assertion]


def _ends(node: Node, text: str, starts: set[int]) -> set[int]:
    """Where matches end that begin at one of some places."""
    match node:
        case Characters(ranges):
            inside = [at for at in starts if at < len(text)]
            return {at + 1 for at in inside if any(a <= ord(text[at]) <= b for a, b in ranges)}
        case Sequence(parts):
            for part in parts:
                starts = _ends(part, text, starts)
            return starts
        case Choice(parts):
            return set().union(*(_ends(part, text, starts) for part in parts))
        case Repeat(part, least, most):
            for _ in range(least):
                starts = _ends(part, text, starts)
            found = starts
            for _ in range(len(text) + 1 if most is None else most - least):
                starts = _ends(part, text, starts)
                found = found | starts
            return found
    return {at for at in starts if _holds(node, text, at)}


@given(tree=TREES, texts=st.lists(TEXTS, min_size=1, max_size=20))
def test_automata_find_what_trying_everything_finds(tree: Node, texts: list[str]) -> None:
    dfa = build(tree)
    expected = [bool(_ends(tree, text, set(range(len(text) + 1)))) for text in texts]
    assert [dfa.accepts(text.encode()) for text in texts] == expected
    merged = _merged(dfa)
    assert [merged.accepts(text.encode()) for text in texts] == expected
    other = build(ANY)
    encoded = [text.encode() for text in texts]
    assert accepted(packed([other, dfa, merged]), 1, encoded) == expected
    assert accepted(packed([dfa, merged]), 1, encoded) == expected


def _leads(edges: Edges, encoded: bytes) -> bool:
    """Whether edges lead over these bytes, and end there."""
    if not encoded:
        return edges == ()
    return any(own >> encoded[0] & 1 and _leads(after, encoded[1:]) for own, after in edges)


@given(low=st.integers(0, CODE_MAX), size=st.integers(0, 5_000) | st.integers(0, CODE_MAX))
def test_ranges_are_those_of_utf8(low: int, size: int) -> None:
    high = min(low + size, CODE_MAX)
    edges = edges_of(((low, high),))
    near = {low - 1, low, low + 1, high - 1, high, high + 1, (low + high) // 2, 0x7F, 0x80, 0xFFFF}
    for code in near:
        if 0 <= code <= CODE_MAX and not 0xD800 <= code < 0xE000:
            encoded = chr(code).encode()
            assert _leads(edges, encoded) == (low <= code <= high), code


def _text(text: str) -> Sequence:
    return Sequence(tuple(Characters(((ord(letter), ord(letter)),)) for letter in text))


BOUNDED: list[tuple[str, Node, int]] = [
    ("a.{0,200}b", Sequence((_text("a"), Repeat(NO_NEWLINE, 0, 200), _text("b"))), 410),
    ("a.{200,}b", Sequence((_text("aa"), Repeat(_text("ab"), 200, None), _text("c"))), 500),
    ("a.{3,}b$", Sequence((_text("a"), Repeat(ANY, 3, None), _text("b"), Assertion.TEXT_END)), 20),
    ("[^a]{100}", Repeat(Characters(((0, 96), (98, CODE_MAX))), 100, 100), 110),
    ("like *a*b*c*", Sequence((Assertion.TEXT_START, *(Repeat(ANY, 0, None), _text("aaab")) * 20,
                               Assertion.TEXT_END)), 100),
]  # fmt: skip


@pytest.mark.parametrize(
    ("tree", "most"), [case[1:] for case in BOUNDED], ids=[c[0] for c in BOUNDED]
)
def test_automata_that_must_stay_small(tree: Node, most: int) -> None:
    assert len(build(tree).transitions) <= most


def test_too_many_states_are_refused_and_soon() -> None:
    tree = Sequence((_text("a"), Repeat(NO_NEWLINE, 20, 20), _text("b")))
    for states_max in (100, 10_000):
        start = time.process_time()
        with pytest.raises(SubscriptionLimitError, match=f"subscription_states = {states_max:,}"):
            build(tree, states_max)
        assert time.process_time() - start < 5
    with pytest.raises(SubscriptionLimitError):  # the positions alone are too many
        build(Repeat(Repeat(_text("ab"), 1_000, 1_000), 1_000, 1_000))


def test_nothing_is_read_behind_what_decides() -> None:
    dfa = build(Sequence((Assertion.TEXT_START, _text("ab"))))
    states = {dfa.start}
    for byte in b"ab":
        states.add(int(dfa.transitions[max(states), dfa.classes[byte]]))
    assert ACCEPTED in states
    assert dfa.transitions[dfa.start, dfa.classes[ord("x")]] == DEAD


def test_states_are_merged() -> None:
    texts = [f"{one}{other}z" for one in "abcdefgh" for other in "ijklmnop"]
    tree = Sequence((Assertion.TEXT_START, Choice(tuple(map(_text, texts)))))
    plain = _Construction(Nfa(tree, 1_000), 1_000).dfa()
    assert (len(plain.transitions), len(_merged(plain).transitions)) == (75, 5)
    assert all(_merged(plain).accepts(text.encode()) for text in texts)
    assert not any(_merged(plain).accepts(text[:2].encode()) for text in texts)


def _all_bytes(dfa: Dfa) -> Iterator[int]:
    yield from np.asarray(dfa.classes)


def test_no_automata() -> None:
    assert packed([]).transitions.tolist() == [0, 0]
    assert accepted(packed([build(_text(""))]), 0, [b"", b"a"]) == [True, True]
    assert set(_all_bytes(build(_text("a")))) == {0, 1}
