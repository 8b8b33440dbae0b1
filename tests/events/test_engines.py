"""Every engine gives the answers of the reference."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from tamis.events.model import By, FilterTable
from tamis.events.pcm import has_gpu
from tamis.events.planner import engines
from tests.events.drawing import EVENTS, answers, tables

ENGINES = engines()
NAMES = [
    pytest.param(name, marks=pytest.mark.skipif(name == "ccm" and not has_gpu(), reason="no GPU"))
    for name in ENGINES
    if name != "reference"
]


@pytest.mark.parametrize("by", ["filter", "subscription", "interface"])
@pytest.mark.parametrize("name", NAMES)
@given(table=tables(), events=EVENTS)
def test_drawn(name: str, by: By, table: FilterTable, events: list[dict[str, Any]]) -> None:
    expected = answers(ENGINES["reference"], table, events, by)
    assert answers(ENGINES[name], table, events, by) == expected
