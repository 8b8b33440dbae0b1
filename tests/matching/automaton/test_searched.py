"""``contains()``: what values contain, near and far from the root of an automaton."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.core.kernel import ahocorasick


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.text("xyz\u00e9", min_size=1, max_size=9)), min_size=1
    ),
    st.lists(st.text("xyz\u00e9!", max_size=30), min_size=1, max_size=4),
    st.sampled_from([0, 12, 1 << 18]),
    st.sampled_from([0, 1 << 19]),
)
def test_as_python(
    asked: list[tuple[str, str]], values: list[str], near_cells: int, pairs_max: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ahocorasick, "NEAR_CELLS", near_cells)
        patch.setattr(ahocorasick, "PAIRS_MAX", pairs_max)
        matcher = tamis.compile(
            [(name + part, f"//{name}[contains(., '{part}')]") for name, part in set(asked)]
        )
    for value in values:
        found = set(matcher.match(f"<r><a>{value}</a><b>{value}{value}</b></r>"))
        assert found == {
            name + part for name, part in asked if part in value * (1 if name == "a" else 2)
        }
