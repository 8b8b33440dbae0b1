"""The NFA itself: what is shared, and what it costs to add to it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tamis.core.errors import EngineRefused
from tamis.language.filters import Labels
from tamis.matching.engines import nfa
from tamis.matching.engines.nfa.layout import PARENT
from tamis.matching.engines.nfa.states import Nfa
from tests.matching.nfa.answers import asked, by_reference, opened, queries
from tests.support.tuples import path_to


def test_prefixes_are_shared() -> None:
    """The example of YFilter's paper: the eight queries of Figure 3 have equal beginnings."""
    labels, states = Labels(), Nfa()
    texts = "/a/b /a/c /a/b/c /a//b/c /a/*/b /a//c /a/*/*/c /a/b/c".split()
    ends = states.add([labels.read(text) for text in texts])
    # start, a, a/b, a/c, a/b/c, //, a//b, a//b/c, a/*, a/*/b, a//c, a/*/*, a/*/*/c
    assert len(states) == 13
    assert ends[2] == ends[7]
    assert len(set(ends.tolist())) == 7
    assert path_to(states, int(ends[3]))[-2] == states.records[ends[3], PARENT]


def test_adding_leaves_alone_what_is_there() -> None:
    """States keep their numbers and records; arrays are copied as often as they double."""
    draw = random.Random(1)
    states = Nfa()
    given = [
        tuple(draw.randrange(2, 60) for _ in range(draw.randrange(1, 6))) for _ in range(4_000)
    ]
    before = 0
    for codes in dict.fromkeys(given):
        old = states.records.copy()
        (end,) = states.add([codes])
        states.accept(np.array([end], np.int32))
        changed = np.flatnonzero((states.records[: len(old)] != old).any(axis=1))
        assert len(changed) <= 2  # the one that got a child, and an end that was on the way
        assert len(states) - before <= 2 * len(codes) + 1
        before = len(states)
    # Records, the table, and the two lists of sets: each was doubled a few times.
    assert states.copies <= 4 * 15
    together = Nfa()
    together.add(list(dict.fromkeys(given)))
    assert len(together) == len(states)
    assert together.transitions == states.transitions


EXPRESSIONS = [
    *("/a/b", "//b", "/a//c", "//*", "/a/b", "//a[b]", "/a[not(c)]", "//b[@x = '1']", "/a/*/c"),
    *("//a[b]/c", "/a | //d", "//text()", "//d//a", "/e", "//e[text() = 't']", "//@x", "/a/b"),
]
DOCUMENTS = [
    "<a><b x='1'/><c/></a>",
    "<a><c><d><a><b>t</b></a></d></c></a>",
    "<e>t<e x='2'/></e>",
    "<d/>",
]


@pytest.mark.parametrize("first", [0, 1, 7, len(EXPRESSIONS)])
def test_queries_added_to_a_running_nfa(first: int) -> None:
    """After each, it says what is said by an NFA that was compiled with all of them."""
    program = nfa.compile_queries(queries(EXPRESSIONS[:first]))
    states = len(program.nfa)
    running = nfa.open_nfa(program, 0)
    assert asked(running, DOCUMENTS) == asked(opened(EXPRESSIONS[:first]), DOCUMENTS)
    for number, expression in enumerate(EXPRESSIONS[first:], first):
        grown = len(running.program.nfa)
        assert running.add(*queries([expression])) == number
        assert len(running.program.nfa) - grown <= 6
        assert asked(running, DOCUMENTS) == asked(opened(EXPRESSIONS[: number + 1]), DOCUMENTS)
    assert asked(running, DOCUMENTS) == by_reference(queries(EXPRESSIONS), DOCUMENTS)
    fresh = nfa.compile_queries(queries(EXPRESSIONS))
    assert len(running.program.nfa) == len(fresh.nfa)
    assert running.program.projection == fresh.projection
    # The program that it was opened with is as it was: others may be using it.
    assert (len(program.nfa), program.queries) == (states, first)


def test_a_query_that_is_refused_is_not_added() -> None:
    running = opened(["//a"])
    with pytest.raises(EngineRefused, match=r"nfa does not: //a\[2\]: it asks for a position"):
        running.add(*queries(["//a[2]"]))
    assert running.add(*queries(["//b"])) == 1
    assert asked(running, ["<b><a/></b>"]) == [[0, 1]]


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("//a[2]", "position"),
        ("//a[count(b) = 2]", "count()"),
        ("//a[name() = 'x']", "name()"),
        ("//a[local-name() = 'x']", "local-name()"),
        ("//node()", "node()"),
        ("//a[self::b]", "self::"),
        ("//a/descendant-or-self::b", "descendant-or-self::"),
        ("//a[contains(.//b, 'x')]", "the first of several nodes"),
        ("//a[contains(b, 'x')]", None),
        ("//@x[. = 'y']", "has a predicate"),
        ("//a[.//.]", "nodes of any kind"),
        ("//a" + "[b]" * 60, None),
        ("//a" + "/b" * 500, None),
        ("//a" + "[b/c]" * 70, "more than 120 steps"),
    ],
)
def test_refusals(expression: str, reason: str | None) -> None:
    found = nfa.refuses(*queries([expression]))
    assert (found is None) == (reason is None)
    assert reason is None or reason in str(found)
