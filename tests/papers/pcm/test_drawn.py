"""Drawn filters and events: all variants give the answers of the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.events.encode import encode
from tamis.events.engines import reference
from tamis.events.model import By, FilterTable, TableBuilder
from tamis.language.constraints import Constraint
from tamis_papers.pcm import PcmOptions, compile_filters, ocm
from tests.papers.pcm.variants import OPTIONS
from tests.support.drawn_events import EVENTS, answers, tables

BY = st.sampled_from(["filter", "subscription", "interface"])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("threads", [1, 3])
@settings(max_examples=40)
@given(table=tables(), events=EVENTS, by=BY)
def test_variants(
    options: PcmOptions, threads: int, table: FilterTable, events: list[dict[str, Any]], by: By
) -> None:
    expected = answers(reference.ENGINE, table, events, by)
    assert answers(ocm(options), table, events, by, threads) == expected


def of_numbers(seed: int, names: int, filters: int) -> FilterTable:
    """Filters of up to four names, as the paper has them, ten interfaces."""
    draw = np.random.default_rng(seed)
    builder = TableBuilder()
    for _ in range(filters):
        own = draw.choice(names, draw.integers(1, min(names, 4) + 1), replace=False).tolist()
        builder.add(
            [
                [
                    Constraint(f"n{n}", "= != < >".split()[draw.integers(4)], int(draw.integers(9)))
                    for n in own
                ]
            ],
            int(draw.integers(10)),
        )
    return builder.freeze()


def events_of(seed: int, names: int, events: int, widest: int) -> list[dict[str, Any]]:
    draw = np.random.default_rng(seed)
    found = []
    for _ in range(events):
        own = draw.choice(names, draw.integers(0, min(names, widest) + 1), replace=False).tolist()
        found.append({f"n{n}": int(draw.integers(9)) for n in own})
    return found


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(("names", "widest"), [(3, 3), (30, 5), (300, 300)])
def test_many(options: PcmOptions, names: int, widest: int) -> None:
    """More tables than are chosen at once, more lines, constraints and matches than there is room
    for at first, NameVectors gone over and looked up."""
    table = of_numbers(names, names, 1_200)
    events = events_of(7, names, 60, widest)
    for by in ("filter", "interface"):
        expected = answers(reference.ENGINE, table, events, by)
        for threads in (1, 2, 5):
            assert answers(ocm(options), table, events, by, threads) == expected
        assert any(expected)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_batches(options: PcmOptions) -> None:
    """What is found does not depend on how events are divided into batches."""
    table = of_numbers(1, 12, 300)
    events = events_of(2, 12, 100, 8)
    owners = table.owners("filter")
    expected = answers(reference.ENGINE, table, events, "filter")
    program = compile_filters(table, options)
    engine = ocm(options)
    for threads in (1, 2, 4):
        for size in (1, 7, 33, 100):
            matching = engine.searcher(program, owners, threads)
            found = []
            for start in range(0, len(events), size):
                batch = encode(events[start : start + size], table.names)
                matches = matching.match(batch)
                found += [matches.numbers(event).tolist() for event in range(batch.events)]
            assert found == expected
