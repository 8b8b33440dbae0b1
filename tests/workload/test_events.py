"""Drawn filters and events are as asked for, match as the paper's do, and are always the same."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.core.errors import UsageError
from tamis.events.encode import encode
from tamis.events.engines import reference
from tamis.events.model import (
    EQ,
    GT,
    LT,
    NE,
    OPERATORS,
    STRING,
    EventBatch,
    FilterTable,
    TableBuilder,
)
from tamis.language.constraints import Constraint
from tamis_workload import EventWorkload
from tamis_workload.draws import Values
from tamis_workload.events import event_lines, interface_lines, subscription_lines

SMALL = EventWorkload(interfaces=3, filters=(100, 300), names=20, values=30, seed=5)
MIXED = replace(
    SMALL, strings=0.5, string_operators={"prefix": 0.3, "suffix": 0.3, "contains": 0.3, "<": 0.1}
)


def constraints_of(table: FilterTable, filter: int) -> slice:
    return slice(*table.starts[filter : filter + 2])


def test_sizes() -> None:
    table, batch = SMALL.table(), SMALL.events(2_000)
    assert set(np.diff(table.starts)) == {3, 4, 5}
    assert set(np.diff(batch.event_starts)) == {3, 4, 5}
    of_interfaces = np.bincount(table.interfaces[table.subscriptions])
    assert len(of_interfaces) == table.interface_count == 3
    assert all(100 <= size <= 300 for size in of_interfaces)
    assert len(set(of_interfaces)) > 1
    assert table.subscriptions.tolist() == list(range(table.filters))
    assert set(table.values) == set(batch.values) == set(range(1, 31))
    assert set(table.constraint_names) == set(batch.names) == set(range(20))
    assert not any(column.flags.writeable for column in table if isinstance(column, np.ndarray))
    assert not any(column.flags.writeable for column in batch[:6])


def test_shares_of_names_and_operators() -> None:
    table = EventWorkload().table()
    assert 225_000 <= table.filters <= 275_000
    count = len(table.values)
    for column, expected in (
        (table.operators, [0.25, 0.25, 0.25, 0, 0.25]),
        (table.constraint_names, [0.01] * 100),
        (table.values - 1, [0.01] * 100),
    ):
        # Nothing of so many is five standard deviations off.
        deviations = np.sqrt(np.multiply(expected, np.subtract(1, expected)) / count)
        assert np.all(np.abs(np.bincount(column) / count - expected) <= 5 * deviations)
    assert [OPERATORS[code] for code in sorted(set(table.operators))] == ["=", "!=", "<", ">"]


def test_zipf() -> None:
    batch = replace(SMALL, names=50, skew=1.0, attributes=(1, 1)).events(40_000)
    expected = Values(50, 1.0).probabilities
    deviations = np.sqrt(expected * (1 - expected) / 40_000)
    assert np.all(np.abs(np.bincount(batch.names) / 40_000 - expected) <= 5 * deviations)


@pytest.mark.parametrize("skew", [0, 1, 16])
def test_names_are_distinct_if_there_are_enough(skew: float) -> None:
    """Even if all names but one are hardly ever drawn."""
    workload = replace(SMALL, names=5, skew=skew, constraints=(4, 6))
    table, batch = workload.table(), workload.events(100)
    for filter in range(table.filters):
        names = table.constraint_names[constraints_of(table, filter)].tolist()
        assert len(set(names)) == len(names) or len(names) == 6
    for event in range(batch.events):
        names = batch.names[slice(*batch.event_starts[event : event + 2])].tolist()
        assert len(set(names)) == len(names)


def test_strings() -> None:
    table, batch = MIXED.table(), MIXED.events(500)
    for of, names in ((table, table.constraint_names), (batch, batch.names)):
        is_string = np.bincount(names, of.kinds == STRING) / np.bincount(names)
        assert is_string.tolist() == [0, 1] * 10  # each name has one kind
    found = {OPERATORS[code] for code in set(table.operators[table.kinds == STRING])}
    assert found == {"prefix", "suffix", "contains", "<"}
    text = table.string_bytes.tobytes()
    starts = table.string_starts.tolist()
    every = [text[begin:end] for begin, end in pairwise(starts)]
    assert len(set(every)) == len(every)
    assert len(set(batch.values[batch.kinds == STRING])) == 30


def test_text_says_the_same() -> None:
    """What is read from the text, by other means, is the table and the batch again."""
    workload = replace(MIXED, constraints=(1, 3), attributes=(10, 20))
    table, batch = workload.table(), workload.events(50)
    expressions = b"".join(subscription_lines(table)).decode().splitlines()
    interfaces = b"".join(interface_lines(table)).decode().splitlines()
    builder = TableBuilder()
    for number, (line, interface) in enumerate(zip(expressions, interfaces, strict=True), start=1):
        id, _, expression = line.partition("\t")
        assert id == f"s{number}"
        assert re.fullmatch(rf"{id}\ti[123]", interface)
        parts = [part.split(" ") for part in expression.split(" and ")]
        filter = [Constraint(name, operator, json.loads(value)) for name, operator, value in parts]
        builder.add([filter], int(interface[-1]) - 1)
    read = builder.freeze()
    events = [json.loads(line) for line in b"".join(event_lines(batch, table.names)).splitlines()]
    found = matches(read, encode(events, read.names))
    assert found == matches(table, batch)
    assert sum(map(len, found)) > 10


def matches(table: FilterTable, batch: EventBatch) -> list[list[int]]:
    """The filters of each event, of the reference."""
    engine = reference.ENGINE
    found = engine.searcher(engine.compile(table), table.owners("filter"), 1).match(batch)
    return [found.numbers(event).tolist() for event in range(batch.events)]


def test_an_event_does_not_depend_on_others() -> None:
    every, some = SMALL.events(10), SMALL.events(4, first=3)
    begin, end = every.event_starts[3], every.event_starts[7]
    assert every.names[begin:end].tolist() == some.names.tolist()
    assert every.values[begin:end].tolist() == some.values.tolist()
    assert SMALL.events(4).values.tolist() != some.values.tolist()
    assert replace(SMALL, seed=6).events(4).values.tolist() != SMALL.events(4).values.tolist()


def holds(table: FilterTable, places: NDArray[Any], values: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether constraints with numbers are true of these values."""
    constants, operators = table.values[places], table.operators[places]
    true_of = {
        EQ: values == constants,
        NE: values != constants,
        LT: values < constants,
        GT: values > constants,
    }
    return np.select([operators == code for code in true_of], list(true_of.values()), False)


def test_the_paper_s_matches() -> None:
    """About 0.32 filters an event match in the default scenario."""
    workload = EventWorkload()
    table, batch = workload.table(), workload.events(1_000)
    order = np.argsort(table.constraint_names, kind="stable")
    ends = np.searchsorted(table.constraint_names[order], np.arange(101))
    filters = np.repeat(np.arange(table.filters), np.diff(table.starts))
    found = 0
    for event in range(batch.events):
        counted = []
        for place in range(*batch.event_starts[event : event + 2]):
            name = batch.names[place]
            places = order[ends[name] : ends[name + 1]]
            counted.append(filters[places[holds(table, places, batch.values[place])]])
        satisfied, times = np.unique(np.concatenate(counted), return_counts=True)
        found += np.count_nonzero(times == np.diff(table.starts)[satisfied])
    assert 0.25 <= found / batch.events <= 0.40


def digest(workload: EventWorkload) -> str:
    table, batch = workload.table(), workload.events(100, first=7)
    hashed = hashlib.sha256()
    for pieces in (
        subscription_lines(table),
        interface_lines(table),
        event_lines(batch, table.names),
    ):
        hashed.update(b"".join(pieces))
    return hashed.hexdigest()[:16]


@pytest.mark.parametrize(
    ("workload", "golden"),
    [
        (SMALL, "b9f0037f515b1dd3"),
        (MIXED, "be57ec0278102e26"),
        (replace(SMALL, skew=0.8, constraints=(1, 9), seed=-3), "1e07838256b483fb"),
    ],
)
def test_the_same_everywhere(workload: EventWorkload, golden: str) -> None:
    """These never change, or everybody's workloads do."""
    assert digest(workload) == golden


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interfaces": 0}, "the number of interfaces is 1 to"),
        ({"filters": (5, 4)}, "the filters of an interface are 0 to"),
        ({"filters": (0, 1 << 24)}, "filters at most"),
        ({"constraints": (0, 3)}, "the constraints of a filter are 1 to"),
        ({"names": 4}, "an event of 5 attributes needs as many names: there are 4"),
        ({"values": 10**7}, "the number of values is 1 to 1,000,000, not 10,000,000"),
        ({"skew": -1}, "the skew of names"),
        ({"strings": 1.5}, "the share of strings"),
        ({"operators": {"prefix": 1}}, "'prefix' is no operator of numbers"),
        ({"operators": {"=": 0.5}}, "are 1 together, not 0.5"),
        ({"string_operators": {"=": 2, "<": -1}}, "the share of = is 0 to 1"),
    ],
)
def test_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        EventWorkload(**options)
    with pytest.raises(UsageError, match="0 or more"):
        EventWorkload().events(-1)
