"""Sets of subscriptions of events: from Python and files, what is wrong with them, interfaces."""

from __future__ import annotations

import json
import pickle
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tamis.core.errors import (
    BadSubscriptions,
    SubscriptionIdError,
    SubscriptionLimitError,
    SubscriptionSyntaxError,
    UsageError,
)
from tamis.core.limits import Limits
from tamis.events.encode import encode
from tamis.events.engines import reference
from tamis.events.matcher import compile_events
from tamis.events.model import FilterTable, TableBuilder
from tamis.events.subscriptions import EventSubscriptions
from tamis.language.constraints import Constraint, print_filters
from tamis.language.events import parse_filters
from tamis_workload import EventWorkload
from tests.support.drawn_events import CONSTRAINTS


def filters_of(table: FilterTable) -> list[list[tuple[Any, ...]]]:
    """The filters of a table, with names."""
    filters = reference.ENGINE.compile(table).filters  # type: ignore[attr-defined]
    return [[(table.names[each.name], *each[1:]) for each in filter] for filter in filters]


def test_mappings_and_pairs() -> None:
    one = EventSubscriptions({"s": "a = 1", 7: "b = 1 or c = 1"})
    other = EventSubscriptions([("s", "a = 1"), (7, "b = 1 or c = 1")])
    assert list(one.ids) == list(other.ids) == list(one) == ["s", 7]
    assert 7 in one
    assert "7" not in one
    assert repr(one) == "<EventSubscriptions: 2>"
    assert one.table.subscriptions.tolist() == [0, 1, 1]
    assert one.table.interfaces.tolist() == [0, 1]
    again = pickle.loads(pickle.dumps(one))
    assert filters_of(again.table) == filters_of(other.table)


def test_a_file_of_text(tmp_path: Path) -> None:
    path = tmp_path / "s.tsv"
    path.write_text("# comment\nhot\ttemp > 30\n\nwind > 20\ncold\ttemp <\nhot\ta = 1\n")
    with pytest.raises(BadSubscriptions) as caught:
        EventSubscriptions.from_file(path)
    assert [type(error) for error in caught.value.errors] == [
        SubscriptionSyntaxError,
        SubscriptionIdError,
    ]
    assert [(error.line, error.id) for error in caught.value.errors] == [(5, "cold"), (6, "hot")]
    kept = EventSubscriptions.from_file(path, skip_bad=True)
    assert list(kept.ids) == ["hot", "4"]
    assert len(kept.errors) == 2
    assert kept.table.names == ("temp", "wind")


def test_a_long_file(tmp_path: Path) -> None:
    """It is divided into lines by kernels."""
    path = tmp_path / "s.tsv"
    lines = [f"s{n}\ta = {n} and b < {n}\n" if n % 3 else f"a = {n}\n" for n in range(3_000)]
    lines[1_000] = "bad\ta ==\n"
    path.write_text("".join(lines))
    with pytest.raises(BadSubscriptions) as caught:
        EventSubscriptions.from_file(path)
    assert [(error.line, error.id) for error in caught.value.errors] == [(1_001, "bad")]
    kept = EventSubscriptions.from_file(path, skip_bad=True)
    assert len(kept) == 2_999
    assert kept.ids[:3] == ("1", "s1", "s2")


def test_a_file_of_json(tmp_path: Path) -> None:
    path = tmp_path / "s.ndjson"
    rows = [{"id": 1, "expression": "a = 1"}, {"id": "1", "expression": 'b = "x"'}]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert list(EventSubscriptions.from_file(path).ids) == [1, "1"]


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        EventSubscriptions.from_file(tmp_path / "none.tsv")


def test_interfaces() -> None:
    given = {"a": "a = 1", "b": "b = 1", "c": "c = 1"}
    made = EventSubscriptions(given, interfaces={"a": "north", "b": 7, "c": "north"})
    assert list(made.interface_ids) == ["north", 7]
    assert made.table.interfaces.tolist() == [0, 1, 0]
    assert made.table.interface_count == 2


@pytest.mark.parametrize(
    ("interfaces", "message"),
    [
        ({"a": "x"}, "'b' of the subscriptions have no interface"),
        ({"a": "x", "b": "x", "z": "x"}, "'z' have an interface, but are no subscriptions"),
        ({"a": "x", "b": 1.5}, "the interface of 'b' is no id: 1.5"),
        ({"a": "x", "b": True}, "the interface of 'b' is no id: True"),
        ({"a": "x", "b": ""}, "the interface of 'b' is no id: ''"),
        ({"a": "x", "b": "y\tz"}, "the interface of 'b' is no id"),
        ({"a": "x", "b": []}, "the interface of 'b' is no id"),
    ],
)
def test_interfaces_that_are_none(interfaces: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        EventSubscriptions({"a": "a = 1", "b": "b = 1"}, interfaces=interfaces)


def test_bad_ones_need_no_interface() -> None:
    made = EventSubscriptions(
        {"a": "a = 1", "b": "b ="}, interfaces={"a": 1, "b": 2}, skip_bad=True
    )
    assert list(made.interface_ids) == [1]


def test_limits_hold_where_constraints_are_known() -> None:
    """Plain conjunctions are not parsed whole."""
    limits = Limits(subscription_predicates=2)
    with pytest.raises(BadSubscriptions) as caught:
        EventSubscriptions(
            {"a": "a = 1 and b = 1", "b": "a = 1 and b = 1 and a = 1"}, limits=limits
        )
    assert [type(error) for error in caught.value.errors] == [SubscriptionLimitError]


def test_tables_have_no_names_of_others() -> None:
    odd = {"s": 'x = "foo and ghost = 5 and bar"', "t": "ghoul = 1 and a ="}
    assert EventSubscriptions(odd, skip_bad=True).table.names == ("x",)


PIECES = st.sampled_from(
    [" and ", "and", '"', "'", "`", "in", "a = 1", " or ", "=", "(", "é", "prefix"]
)
STRINGS = st.lists(PIECES, max_size=4).map("".join)


@given(
    st.lists(
        st.lists(
            st.lists(
                st.one_of(
                    CONSTRAINTS,
                    st.builds(Constraint, st.just("s"), st.sampled_from(["=", "prefix"]), STRINGS),
                    st.builds(Constraint, STRINGS, st.just("="), STRINGS),
                ),
                min_size=1,
                max_size=4,
            ),
            min_size=1,
            max_size=2,
        ),
        max_size=5,
    )
)
def test_plain_ones_mean_what_the_parser_says(drawn: list[list[list[Constraint]]]) -> None:
    assume("inf" not in repr(drawn))
    assume(all(constraint.name for filters in drawn for filter in filters for constraint in filter))
    expressions = [print_filters(filters) for filters in drawn]
    builder = TableBuilder()
    for expression in expressions:
        builder.add(parse_filters(expression))
    found = EventSubscriptions(enumerate(expressions)).table
    assert filters_of(found) == filters_of(builder.freeze())


def test_a_set_that_is_a_table() -> None:
    table = EventWorkload(interfaces=2, filters=(3, 3)).table()
    numbered = EventSubscriptions.of_table(table)
    assert list(numbered.ids) == list(range(6))
    assert list(numbered.interface_ids) == [0, 1]
    assert list(EventSubscriptions.of_table(table, list("abcdef")).ids) == list("abcdef")
    with pytest.raises(UsageError, match="1 ids for 6 subscriptions"):
        EventSubscriptions.of_table(table, ["a"])


FAULTS: list[tuple[str, Any, str | None]] = [
    ("starts", np.array([0, 2, 1, 3]), "starts"),
    ("starts", np.array([0, 1, 2, 9]), "starts"),
    ("starts", np.array([0, 1, 2, 3], np.int32), "starts is of type int32"),
    ("constraint_names", np.array([0, 5, 0], np.int32), "constraint_names"),
    ("operators", np.array([0, 99, 0], np.uint8), "operators"),
    ("kinds", np.array([0, 9, 0], np.uint8), "kinds"),
    ("kinds", np.array([3, 3, 0], np.uint8), "booleans have no order"),
    ("operators", np.array([0, 0, 6], np.uint8), "parts of strings"),
    ("values", np.array([1, 2], np.int64), "values"),
    ("kinds", np.array([2, 0, 0], np.uint8), "a string"),
    ("subscriptions", np.array([0, 2, 1], np.int32), "subscriptions"),
    ("subscriptions", np.array([0, 1, 3], np.int32), "subscriptions"),
    ("interfaces", np.array([0, 7, 0], np.int32), "interfaces"),
    ("names", ("a", "a"), "names"),
    ("names", ("a", 1), "names has what is no str"),
    ("names", ("a", []), "names has what is no str"),
    ("names", ["a", "b"], "names is of type list, not tuple"),
    ("names", "ab", "names is of type str, not tuple"),
    ("names", None, "names is of type NoneType, not tuple"),
    ("interface_count", None, "interface_count is None"),
    ("interface_count", True, "interface_count is True"),
    ("interface_count", 1.5, "interface_count is 1.5"),
    ("interface_count", -1, "interface_count is -1"),
    ("interface_count", 0, "interfaces has a number beyond"),
    ("starts", np.array([1, 1, 2, 3]), "starts does not ascend"),
    ("starts", np.zeros(0, np.int64), "starts does not ascend"),
    ("starts", [0, 1, 2, 3], "starts is no array"),
    ("values", np.array([[1, 2, 3]], np.int64), "values is no array"),
    ("constraint_names", np.array([0, -1, 0], np.int32), "constraint_names has a number beyond"),
    ("operators", np.array([0, 0], np.uint8), "operators is not as long as values"),
    ("operators", np.array([0, 0, 9], np.uint8), "a list that is not there"),
    ("list_starts", np.array([0, 1], np.int64), "list_starts does not ascend from 0 to 0"),
    ("list_values", np.array([1], np.int64), "list_starts does not ascend from 0 to 1"),
    ("list_kinds", np.array([0], np.uint8), "list_kinds is of another length"),
    ("string_starts", np.array([0, 5], np.int64), "string_starts does not ascend from 0 to 0"),
    ("subscriptions", np.array([0, 1], np.int32), "subscriptions is not one a filter"),
    ("subscriptions", np.array([-1, 1, 2], np.int32), "subscriptions has a number beyond"),
    ("kinds", np.array([3, 0, 0], np.uint8), None),  # 1 is true
    ("values", np.array([2, 2, 3], np.int64), None),
]


@pytest.mark.parametrize(("field", "value", "message"), FAULTS)
def test_tables_are_checked(field: str, value: Any, message: str | None) -> None:
    good = EventSubscriptions({"x": "a = 1", "y": "a < 2", "z": "b = 3"}, interfaces=dict.fromkeys("xyz", 0)).table  # fmt: skip  # noqa: E501
    EventSubscriptions.of_table(good)
    changed = good._replace(**{field: value})
    if message is None:
        assert EventSubscriptions.of_table(changed).table.filters == 3
        return
    with pytest.raises(UsageError, match=message):
        EventSubscriptions.of_table(changed)


def test_booleans_in_tables_are_0_or_1() -> None:
    good = EventSubscriptions({"x": "a = true", "y": "a in (true, false)"}).table
    EventSubscriptions.of_table(good)
    with pytest.raises(UsageError, match="values has a boolean beyond 0 and 1"):
        EventSubscriptions.of_table(good._replace(values=np.array([2, 0])))
    with pytest.raises(UsageError, match="list_values has a boolean beyond 0 and 1"):
        EventSubscriptions.of_table(good._replace(list_values=np.array([1, 2])))


def test_tables_keep_no_array_that_can_be_written(tmp_path: Path) -> None:
    good = EventSubscriptions({"x": "a = 1", "y": "b = 2"}).table
    plain = np.array([1, 2], np.int64)
    strided = np.array([1, 9, 2, 9], np.int64)[::2]
    mapped = np.memmap(tmp_path / "values", np.int64, "w+", shape=2)
    mapped[:] = 1, 2
    for array in (plain, strided, mapped):
        values = EventSubscriptions.of_table(good._replace(values=array)).table.values
        array[0] = 9
        assert values.tolist() == [1, 2]
        assert values.flags.c_contiguous
        assert not values.flags.writeable
        assert array.flags.writeable
    assert EventSubscriptions.of_table(good).table.values is good.values  # frozen: no copy


def test_large_tables_are_checked_in_no_time() -> None:
    table = EventWorkload(interfaces=4, filters=(25_000, 25_000)).table()
    start = time.process_time()
    EventSubscriptions.of_table(table)
    assert time.process_time() - start < 1  # some thousandths; seconds, one by one in Python


def test_floats_in_tables_are_no_integers_and_numbers() -> None:
    good = EventSubscriptions({"x": "a = 0.5"}).table
    for float_value in (float("nan"), 5.0):
        bits = np.array([float_value]).view(np.int64)
        with pytest.raises(UsageError, match="values"):
            EventSubscriptions.of_table(good._replace(values=bits))


def test_lists_in_tables_are_of_one_kind() -> None:
    good = EventSubscriptions({"x": "a in (1, 2.5)"}).table
    EventSubscriptions.of_table(good)
    with pytest.raises(UsageError, match="list"):
        EventSubscriptions.of_table(good._replace(list_kinds=np.array([0, 3], np.uint8)))
    with pytest.raises(UsageError, match="list"):
        EventSubscriptions.of_table(good._replace(list_starts=np.array([0, 0], np.int64)))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("names", np.array([0, 9], np.int32), "names has a number beyond"),
        ("names", np.array([0, 1], np.int64), "names is of type int64"),
        ("values", np.array([0, 7], np.int64), "a string that is not there"),
        ("event_starts", np.array([0, 5], np.int64), "event_starts does not ascend"),
        ("kinds", np.array([2], np.uint8), "kinds is not as long"),
    ],
)
def test_batches_are_checked(field: str, value: Any, message: str) -> None:
    matcher = compile_events({"x": 'a = "1" and b = "2"'})
    good = encode([{"a": "1", "b": "2"}], matcher.table.names)
    assert matcher.match_batch(good).numbers(0).tolist() == [0]
    with pytest.raises(UsageError, match=message):
        matcher.match_batch(good._replace(**{field: value}))
