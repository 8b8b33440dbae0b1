"""The NFA itself: what is shared, and what it costs to add to it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tamis.core.errors import EngineRefused
from tamis.language.filters import Labels
from tamis.matching.engine import reason_of
from tamis.matching.engines import nfa
from tamis.matching.engines.nfa.layout import PARENT
from tamis.matching.engines.nfa.states import Nfa
from tests.support.searchers import opened, queries
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
    """States keep their numbers and records."""
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
    together = Nfa()
    together.add(list(dict.fromkeys(given)))
    assert len(together) == len(states)
    assert together.transitions == states.transitions


def test_a_query_that_is_refused_names_its_engine() -> None:
    with pytest.raises(EngineRefused, match=r"nfa does not: //a\[count\(b\) = 2\]: it calls count"):
        opened(["//a", "//a[count(b) = 2]"])


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("//a[2]//b[c][3]", None),
        ("//a[count(b) = 2]", "count()"),
        ("//a[name() = 'x']", "name()"),
        ("//a[local-name() = 'x']", "local-name()"),
        ("//node()", "node()"),
        ("//a[self::b]", "self::"),
        ("//a/descendant-or-self::b", "descendant-or-self::"),
        ("//a[contains(.//b, 'x')]", "the first of several nodes"),
        ("//a[contains(b, 'x')]", None),
        ("//@x[. > 1][. < 3]", "has a predicate"),
        ("//a[.//.]", "nodes of any kind"),
        ("//a" + "[b]" * 60, None),
        ("//a" + "/b" * 500, None),
        ("//a" + "[b/c]" * 70, "more than 120 steps"),
    ],
)
def test_refusals(expression: str, reason: str | None) -> None:
    found = reason_of(nfa.ENGINE, *queries([expression]))
    assert (found is None) == (reason is None)
    assert reason is None or reason in str(found)
