"""Every engine gives the answers of the reference."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tamis.core.gpu import has_gpu
from tamis.events.model import By, FilterTable
from tamis.events.planner import ENGINES
from tests.support.drawn_events import EVENTS, answers, tables

NAMES = [
    pytest.param(name, marks=pytest.mark.skipif(name == "ccm" and not has_gpu(), reason="no GPU"))
    for name in ENGINES.names()
    if name != "reference"
]


@pytest.mark.parametrize("by", ["filter", "subscription", "interface"])
@pytest.mark.parametrize("name", NAMES)
@given(table=tables(), events=EVENTS)
def test_drawn(name: str, by: By, table: FilterTable, events: list[dict[str, Any]]) -> None:
    expected = answers(ENGINES.named("reference"), table, events, by)
    assert answers(ENGINES.named(name), table, events, by) == expected
