"""Drawn filters and events, of few names and values, so that much of it matches."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tamis.events.encode import encode
from tamis.events.model import By, FilterTable, TableBuilder
from tamis.events.planner import Engine
from tamis.language.attributes import folded_name
from tamis.language.constraints import Constraint, fold

NAMES = [f"n{number}" for number in range(6)]
NUMBERS = st.sampled_from(
    [
        0,
        1,
        -1,
        2,
        0.5,
        1.5,
        -0.0,
        1e300,
        -1e300,
        2**53,
        2**53 + 1,
        float(2**53),
        2**63 - 1,
        -(2**63),
        float(2**63),
        -float(2**63),
        -float(2**63) * 1.5,
        5e-324,
        float("inf"),
        float("-inf"),
    ]
)
STRINGS = st.sampled_from(
    ["", "a", "A", "É", "ab", "aba", "b", "ba", "é", "\U0001f41d", "z" * 9, "z" * 8]
)
BOOLEANS = st.booleans()
VALUES = st.one_of(NUMBERS, STRINGS, BOOLEANS, st.just(float("nan")), st.none())

_SAME = st.sampled_from(["=", "!="])
_ORDER = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
_PARTS = st.sampled_from(["prefix", "suffix", "contains"])
_NAME = st.sampled_from(NAMES)


def _lists(of: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(of, min_size=1, max_size=4).map(tuple)


CONSTRAINTS = st.one_of(
    st.builds(Constraint, _NAME, _ORDER, NUMBERS),
    st.builds(Constraint, _NAME, _ORDER, STRINGS),
    st.builds(Constraint, _NAME, _PARTS, STRINGS),
    st.builds(Constraint, _NAME, _SAME, BOOLEANS),
    st.builds(Constraint, _NAME, st.just("exists"), st.none()),
    st.builds(Constraint, _NAME.map(folded_name), st.one_of(_SAME, _PARTS), STRINGS.map(fold)),
    st.builds(
        Constraint, _NAME, st.just("in"), st.one_of(*map(_lists, (NUMBERS, STRINGS, BOOLEANS)))
    ),
)
FILTERS = st.lists(CONSTRAINTS, max_size=5)
SUBSCRIPTIONS = st.lists(
    st.tuples(st.lists(FILTERS, min_size=1, max_size=3), st.integers(0, 3)), max_size=12
)
EVENTS = st.lists(st.dictionaries(_NAME, VALUES), max_size=8)

_TEXTS = st.sampled_from(["", "a:b", '"', "\\", '\\"', "]", "}{", '"n0": [', "é"])
JSON = st.recursive(
    st.one_of(st.none(), BOOLEANS, st.sampled_from([0.5, -1e300, 7, 2**63, -(10**40)]), _TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(_NAME, _TEXTS), inner, max_size=3)
    ),
    max_leaves=8,
)
"""Values that are JSON, also nested ones, with names that events have."""
OTHERS = st.dictionaries(st.one_of(st.just("x"), _TEXTS), JSON, max_size=3)
"""Attributes that no filter names."""


@st.composite
def tables(draw: st.DrawFn) -> FilterTable:
    """Filter tables; filters may have many constraints on one name, and contradict themselves."""
    builder = TableBuilder()
    for filters, interface in draw(SUBSCRIPTIONS):
        builder.add(filters, interface)
    return builder.freeze()


def answers(
    engine: Engine, table: FilterTable, events: list[dict[str, Any]], by: By, threads: int = 1
) -> list[list[int]]:
    """The numbers of the owners that an engine finds for each event."""
    batch = encode(events, table.names)
    matching = engine.searcher(engine.compile(table), table.owners(by), threads)
    matches = matching.match(batch)
    return [matches.numbers(event).tolist() for event in range(batch.events)]
