"""``tamis.spark.match_events``: rows are events, and columns their attributes."""

import json
import logging
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import tamis
from tamis.core.errors import MalformedEvent, OtherVersion
from tamis.events.matcher import CompiledEventMatcher
from tamis.events.subscriptions import EventSubscriptions
from tamis.spark import match_events
from tamis.spark.events import AnswerEvents, EventArtifact, EventSpec, event_subscriptions
from tamis_workload import EventWorkload
from tests.spark.servers import connect_server

SUBSCRIPTIONS = {
    "hot": "temp > 30",
    "coast": 'area = "coast" or area prefix "sea"',
    "no": "temp = 0",
}
VERSIONS = ("set_version", "tamis_version")


@pytest.fixture
def df(spark: SparkSession) -> DataFrame:
    given = [
        (1, 35, "coast", [1]),
        (2, 31, "hills", None),
        (3, None, "seaside", [2]),
        (4, None, None, None),
        (5, 3, "x", []),
    ]
    return spark.createDataFrame(given, "event int, temp int, area string, other array<int>")


def rows(answers: DataFrame) -> list[tuple[object, ...]]:
    """The rows in order, without versions, and with the code in place of the error."""
    found = answers.drop(*VERSIONS).collect()
    plain = [
        (*row[:-1], row.error and row.error.code) if "error" in answers.columns else tuple(row)
        for row in found
    ]
    return sorted(plain, key=repr)


def in_a_task(
    batches: list[pa.RecordBatch], given: CompiledEventMatcher, form: EventSpec, kept: list[str]
) -> pa.Table:
    """What a worker answers, without Spark."""
    names = [*kept, *(name for name in batches[0].schema.names if name not in kept)]
    attributes = tuple((name, names.index(name)) for name in names if name in given.table.names)
    task = AnswerEvents(EventArtifact.of(given), form, tuple(kept), attributes)
    return pa.Table.from_batches(task(batch.select(names) for batch in batches))


@pytest.mark.spark
def test_one_row_a_match(df: DataFrame) -> None:
    answers = match_events(df, SUBSCRIPTIONS, keep=["event"])
    assert answers.dtypes == [
        ("event", "int"),
        ("subscription", "string"),
        ("set_version", "string"),
        ("tamis_version", "string"),
        ("error", "struct<code:string,message:string>"),
    ]
    expected = [(1, "coast", None), (1, "hot", None), (2, "hot", None), (3, "coast", None)]
    assert rows(answers) == expected
    (said,) = answers.select(*VERSIONS).distinct().collect()
    assert tuple(said) == (
        EventArtifact.of(EventSubscriptions(SUBSCRIPTIONS)).set_version,
        tamis.__version__,
    )


@pytest.mark.spark
def test_strings_without_case(df: DataFrame) -> None:
    asked = {"coast": "area = i'COAST'", "s": "area prefix i'Sea' or temp between 3 and 31"}
    answers = match_events(df, asked, keep=["event"])
    expected = [(1, "coast", None), (2, "s", None), (3, "s", None), (5, "s", None)]
    assert rows(answers) == expected


@pytest.mark.spark
def test_kept_columns(df: DataFrame) -> None:
    own = ["subscription", *VERSIONS, "error"]
    answers = match_events(df, {"hot": "temp > 31"})
    assert answers.columns == [*df.columns, *own]
    assert answers.drop(*own).collect() == df.where("temp > 31").collect()
    assert match_events(df, SUBSCRIPTIONS, keep=[]).columns == own
    assert match_events(df, SUBSCRIPTIONS, keep=["other", "temp"]).columns == [
        "other",
        "temp",
        *own,
    ]


@pytest.mark.spark
def test_one_row_an_event(df: DataFrame) -> None:
    answers = match_events(df, SUBSCRIPTIONS, keep=["event"], as_array=True)
    assert answers.dtypes[1] == ("subscriptions", "array<string>")
    found = {row.event: row.subscriptions for row in answers.collect()}
    assert found == {1: ["hot", "coast"], 2: ["hot"], 3: ["coast"], 4: [], 5: []}


@pytest.mark.spark
def test_events_are_counted_without_any_column(df: DataFrame) -> None:
    answers = match_events(df, {1: "nothing exists"}, keep=[], as_array=True)
    assert [row.subscriptions for row in answers.collect()] == [[]] * 5


@pytest.mark.spark
def test_ids_and_what_is_reported(df: DataFrame) -> None:
    asked = {7: "temp > 30 or temp > 34", 2**40: 'area = "x"', -1: "temp > 32"}
    answers = match_events(df, asked, keep=["event"])
    assert answers.dtypes[1] == ("subscription", "bigint")
    assert rows(answers) == [(1, -1, None), (1, 7, None), (2, 7, None), (5, 2**40, None)]
    answers = match_events(df, asked, keep=["event"], by="filter", errors="drop")
    assert answers.dtypes[1] == ("filter", "bigint")
    assert rows(answers) == [(1, 0), (1, 1), (1, 3), (2, 0), (5, 2)]
    hosts = {7: "east", 2**40: "west", -1: "east"}
    answers = match_events(df, asked, keep=["event"], by="interface", interfaces=hosts)
    assert answers.dtypes[1] == ("interface", "string")
    assert rows(answers) == [(1, "east", None), (2, "east", None), (5, "west", None)]
    answers = match_events(
        df, asked, keep=["event"], by="interface", interfaces=hosts, as_array=True
    )
    assert answers.dtypes[1] == ("interfaces", "array<string>")


@pytest.mark.spark
def test_all_types_and_names(spark: SparkSession) -> None:
    df = spark.sql("""
        select 'yes' as `a.b`, true as Bool, 5Y as byte, 6S as short, 7 as int, 8L as long,
        float(0.5) as float, double('NaN') as double, null as nothing, '' as empty, 'é' as `q``é`,
        timestamp'2026-01-02 03:04:05' as time, 1.5BD as exact, struct(1) as parts,
        map('k', 1) as map
    """)
    asked = {
        "bool": "Bool = true",
        "case": "bool exists",
        "dots": 'a.b = "yes"',
        "empty": 'empty = ""',
        "float": "float = 0.5",
        "integers": "byte = 5 and short = 6 and int = 7 and long = 8.0",
        "nan": "double exists and double != 1",
        "no nan": "double < 1 or double >= 1",
        "nothing": "nothing exists",
        "type": 'byte = "5" or Bool = 1',
    }
    answers = match_events(df, asked)
    assert answers.drop("subscription", *VERSIONS, "error").schema == df.schema
    found = {row.subscription for row in answers.collect()}
    assert found == {"bool", "dots", "empty", "float", "integers", "nan"}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("column", "type"),
    [
        ("cast(1 as decimal(38, 0))", "decimal(38,0)"),  # as unsigned 64-bit integers are read
        ("timestamp'2026-01-02 03:04:05'", "timestamp"),
        ("named_struct('x', 1)", "struct<x:int>"),
        ("array(1)", "array<int>"),
        ("binary('x')", "binary"),
    ],
)
def test_unusable_columns(spark: SparkSession, column: str, type: str) -> None:
    df = spark.sql(f"select 1 as temp, {column} as `odd.one`")
    said = f"the column 'odd.one' is of type {type}".replace("(", r"\(").replace(")", r"\)")
    asked = {"hot": "temp > 0 or odd.one exists"}
    with pytest.raises(tamis.UsageError, match=said):
        match_events(df, asked)
    with pytest.raises(tamis.UsageError, match=said):
        match_events(df, {"hot": "temp > 0"}, columns=["temp", "odd.one"])
    assert rows(match_events(df, asked, columns=["temp"], keep=["temp"])) == [(1, "hot", None)]
    assert match_events(df, {"hot": "temp > 0"}).count() == 1


@pytest.mark.spark
def test_columns_that_are_no_attributes(df: DataFrame) -> None:
    answers = match_events(df, SUBSCRIPTIONS, columns=["area", "event"], keep=["event"])
    assert rows(answers) == [(1, "coast", None), (3, "coast", None)]


@pytest.mark.spark
def test_names_without_a_column_are_told(df: DataFrame, caplog: pytest.LogCaptureFixture) -> None:
    asked = SUBSCRIPTIONS | {"gone": "Temp > 0 or wind exists", "more": "wind > 1"}
    with caplog.at_level(logging.WARNING, "tamis.spark"):
        answers = match_events(df, asked, keep=["event"])
    (record,) = caplog.records
    assert record.getMessage() == (
        "subscriptions name attributes that are no columns: 'Temp', 'wind'"
    )
    assert rows(answers) == rows(match_events(df, SUBSCRIPTIONS, keep=["event"]))


@pytest.mark.spark
def test_structs_and_arrays_are_looked_into(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [(1, (5,), ["a", "b"]), (2, (2,), []), (3, None, None)]
    df = spark.createDataFrame(rows, "n long, d struct<t int>, tags array<string>")
    asked = {"hot": "d.t > 3", "b": 'tags[] = "b"', "none": "d.t absent and not tags[] = 'a'"}
    with caplog.at_level(logging.WARNING, "tamis"):
        found = match_events(df, asked, keep=["n"]).select("n", "subscription").collect()
    assert sorted(map(tuple, found)) == [(1, "b"), (1, "hot"), (3, "none")]
    assert caplog.messages == []


NESTED = {
    "sum": "order.sum > 100",
    "sku": 'items[].(sku = "a" and n > 1)',
    "tag": 'tags.env = "prod" or tags.`a.b` exists',
    "any": 'order.notes[] prefix "x"',
    "kind": 'kind = "late" and not order.sum exists',
    "nan": "f != 1",
}
COLUMNS = """kind string, f double, order struct<sum: long, notes: array<string>>,
    items array<struct<sku: string, n: int>>, tags map<string, string>"""


def nested_events(count: int) -> list[dict[str, object]]:
    draw = random.Random(3)
    return [
        {
            "kind": draw.choice(["late", 'a"b\n', None, "é"]),
            "f": draw.choice([1.0, 0.5, None]),
            "order": draw.choice(
                [
                    None,
                    {"sum": draw.randrange(200), "notes": ["x1", "y"]},
                    {"sum": None, "notes": []},
                ]
            ),
            "items": [{"sku": draw.choice("ab"), "n": draw.randrange(3)} for _ in range(n % 4)],
            "tags": draw.choice([None, {}, {"env": "prod"}, {"env": "x", "a.b": "1"}]),
        }
        for n in range(count)
    ]


@pytest.mark.spark
def test_nested_events_in_every_form(spark: SparkSession) -> None:
    """Columns, JSON text, VARIANT, struct and map: nobody flattens them by hand."""
    events = nested_events(500)
    matcher = tamis.compile_events(NESTED)
    expected = sorted((n, id) for n, m in enumerate(matcher.match_many(events)) for id in m)
    assert {id for _, id in expected} == NESTED.keys()
    df = spark.createDataFrame(
        [{"event": n, **event} for n, event in enumerate(events)], f"event long, {COLUMNS}"
    )
    texts = spark.createDataFrame(
        [(n, json.dumps(e, indent=n % 3 or None)) for n, e in enumerate(events)],
        "event long, body string",
    )
    names = "kind, f, order, items, tags"
    without_maps = "kind, f, order, items, parse_json(to_json(tags)) as tags"
    ways = [
        (df, None),
        (
            df.selectExpr(
                "event", "parse_json(to_json(order)) as order", "kind", "f", "items", "tags"
            ),
            None,
        ),
        (texts, "body"),
        (texts.selectExpr("event", "cast(body as binary) body"), "body"),
        (texts.selectExpr("event", "parse_json(body) body"), "body"),
        (df.selectExpr("event", f"struct({names}) as body"), "body"),
        (df.selectExpr("event", f"struct({without_maps}) as body"), "body"),
    ]
    for way, column in ways:
        found = match_events(way, matcher, column, keep=["event"], errors="fail")
        assert sorted((r.event, r.subscription) for r in found.collect()) == expected, way.dtypes
    plain = {name: asked for name, asked in NESTED.items() if name != "tag"}
    structs = df.selectExpr("event", "struct(kind, f, order, items) as body")
    found = match_events(structs, plain, "body", errors="fail").collect()
    assert sorted((r.event, r.subscription) for r in found) == [
        e for e in expected if e[1] in plain
    ]
    found = match_events(df.where("tags is not null"), {"env": 'env = "prod"'}, "tags").collect()
    assert [r.event for r in found] == [
        n for n, e in enumerate(events) if e["tags"] == {"env": "prod"}
    ]


@pytest.mark.spark
def test_texts_that_are_no_events(spark: SparkSession) -> None:
    texts = [None, "", " \n", "[1]", '{"a":', '{"a": "1\n"}', "PAR1", "\ufeff{}", '{"a": 2}']
    df = spark.createDataFrame(list(enumerate(texts)), "n int, body string").coalesce(1)
    for first in range(len(texts)):  # whatever the first is, no other is lost
        found = match_events(df.where(f"n >= {first}"), {"x": "a = 2"}, "body").collect()
        assert [row.n for row in found] == list(range(first, 9))
        assert [row.subscription for row in found] == [None] * (8 - first) + ["x"]
        assert all(row.error.code == "event-malformed" for row in found[:-1])
    with pytest.raises(tamis.UsageError, match="'n' is of type int, and events are JSON text"):
        match_events(df, {"x": "a = 2"}, "n")
    with pytest.raises(tamis.UsageError, match="choose one of column"):
        match_events(df, {"x": "a = 2"}, "body", columns=["n"])
    with pytest.raises(tamis.UsageError, match="there is no column 'b'"):
        match_events(df, {"x": "a = 2"}, "b")
    dates = spark.sql("select map(date'2026-01-01', 1) as m, struct(1 as a, 2 as a) as s")
    for column in (None, "m"):
        with pytest.raises(tamis.UsageError, match="a map with keys of the type date: make them"):
            match_events(dates, {"x": "m.a = 1 or a = 2"}, column)
    with pytest.raises(tamis.UsageError, match="several fields of 's' have the same name: a, a"):
        match_events(dates, {"x": "a = 2"}, "s")


@pytest.mark.spark
def test_values_beside_maps_are_what_they_are(spark: SparkSession) -> None:
    """A map in a struct changes nothing of the other fields; one bad value is one error."""
    asked = {"f": "f > 0.1", "nan": "d != 1", "no": "f = 0.1", "none": "not z exists"}
    struct = "float(0.1) as f, double('NaN') as d, interval '1' year as y"
    for more in ("", ", map('a', 1) as m, parse_json('1') as v"):
        df = spark.sql(f"select struct({struct}{more}) as s union all select null")
        found = match_events(df, asked, "s", keep=[]).collect()
        assert sorted(row.subscription for row in found) == ["f", "nan", "none", "none"]
    deep = "parse_json(concat('{\"b\": 1, \"a\":', repeat('[', 990), repeat(']', 990), '}'))"
    df = spark.sql(f"select id, if(id = 1, {deep}, parse_json('{{\"b\": 1}}')) v from range(3)")
    found = match_events(df, {"x": "v.b = 1"}, keep=["id"]).collect()
    assert [row.id for row in found] == [0, 1, 2]
    assert [row.subscription for row in found if row.id != 1] == ["x", "x"]
    empty = spark.sql("select struct() as s from range(2)")
    assert match_events(empty, {"x": "not q exists"}, "s", keep=[]).count() == 2


def small_limits(subscriptions: dict[str, str]) -> CompiledEventMatcher:
    return tamis.compile_events(subscriptions, limits=tamis.Limits(event_string_bytes=5))


@pytest.mark.spark
def test_events_in_error(df: DataFrame) -> None:
    asked = small_limits(SUBSCRIPTIONS)
    answers = match_events(df, asked, keep=["event"])
    hot, coast = (1, "hot", None), (1, "coast", None)
    assert rows(answers) == [coast, hot, (2, "hot", None), (3, None, "event-limit")]
    (error,) = (row.error for row in answers.where("error is not null").collect())
    assert error.message.startswith("the attribute 'area' is a string of 7 bytes")
    arrays = match_events(df, asked, keep=["event"], as_array=True)
    found = {row.event: (row.subscriptions, row.error is None) for row in arrays.collect()}
    assert (found[3], found[4]) == ((None, False), ([], True))
    dropped = match_events(df, asked, keep=["event"], errors="drop")
    assert rows(dropped) == [(1, "coast"), (1, "hot"), (2, "hot")]
    dropped = match_events(df, asked, keep=["event"], errors="drop", as_array=True)
    assert {row.event for row in dropped.collect()} == {1, 2, 4, 5}
    with pytest.raises(PythonException, match="the event with event=3: the attribute 'area'"):
        match_events(df, asked, keep=["event"], errors="fail").collect()


@pytest.mark.spark
def test_strings_that_are_not_utf8(spark: SparkSession) -> None:
    df = spark.sql("select id, if(id = 1, cast(X'61FF' as string), 'a') as s from range(3)")
    answers = match_events(df, {"a": 's prefix "a"'}, keep=["id"])
    assert rows(answers) == [(0, "a", None), (1, None, "event-malformed"), (2, "a", None)]


@pytest.mark.spark
def test_streams(spark: SparkSession, tmp_path: Path) -> None:
    for number, lines in enumerate((["35,coast", ",sea"], ["1,x", "40,x"])):
        (tmp_path / f"{number}.csv").write_text("\n".join(lines))
    events = spark.readStream.schema("temp int, area string").csv(str(tmp_path))
    answers = match_events(events, SUBSCRIPTIONS)
    query = answers.writeStream.format("memory").queryName("event_answers").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert rows(spark.table("event_answers")) == [
        (35, "coast", "coast", None),
        (35, "coast", "hot", None),
        (40, "x", "hot", None),
        (None, "sea", "coast", None),
    ]


@pytest.mark.spark
def test_bad_calls_are_refused_at_once(df: DataFrame) -> None:
    def refused(said: str) -> object:
        return pytest.raises(tamis.UsageError, match=said)

    with refused("no column 'wind': the columns are event, temp"):
        match_events(df, SUBSCRIPTIONS, columns=["wind"])
    with refused("no column 'Temp'"):
        match_events(df, SUBSCRIPTIONS, keep=["Temp"])
    with refused("'temp' is kept twice"):
        match_events(df, SUBSCRIPTIONS, keep=["temp", "temp"])
    with refused("keep is a list of names"):
        match_events(df, SUBSCRIPTIONS, keep="temp")
    with refused("by='id'"):
        match_events(df, SUBSCRIPTIONS, by="id")  # type: ignore[arg-type]
    with refused("errors='ignore'"):
        match_events(df, SUBSCRIPTIONS, errors="ignore")  # type: ignore[arg-type]
    with refused("a column 'subscription' of its own"):
        match_events(df.withColumnRenamed("event", "Subscription"), SUBSCRIPTIONS)
    with refused("several columns have the same name"):
        match_events(df.select("temp", "temp"), SUBSCRIPTIONS)
    with refused("as 1 and '1', are one in a column"):
        match_events(df, {1: "temp > 1", "1": "temp > 2"})
    with refused("give interfaces to EventSubscriptions"):
        match_events(df, tamis.compile_events({"x": "temp > 1"}), interfaces={"x": "y"})
    with pytest.raises(tamis.BadSubscriptions, match="subscription 'x'"):
        match_events(df, {"x": "temp >"})


@pytest.mark.spark
def test_subscriptions_of_every_kind(df: DataFrame, spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "s.tsv"
    file.write_text("".join(f"{id}\t{text}\n" for id, text in SUBSCRIPTIONS.items()))
    items = sorted(SUBSCRIPTIONS.items())
    table = pa.table(dict(zip(("id", "expression"), zip(*items, strict=True), strict=True)))
    pq.write_table(table, tmp_path / "s.parquet")
    for given in (
        *(file, str(file), items, EventSubscriptions(items), tamis.compile_events(items)),
        *(tmp_path / "s.parquet", spark.createDataFrame(items, "id string, expression string")),
    ):
        assert sorted(event_subscriptions(given).ids) == ["coast", "hot", "no"]
    expected = rows(match_events(df, SUBSCRIPTIONS, keep=["event"]))
    for given in (file, tamis.compile_events(items, engine="sff")):
        assert rows(match_events(df, given, keep=["event"])) == expected


# -- drawn, and compared with this process ---------------------------------------------------------


def drawn(strings: float, events: int) -> tuple[CompiledEventMatcher, list[dict[str, object]]]:
    """The matcher and the events of a small workload of which much matches."""
    workload = EventWorkload(
        interfaces=5, filters=(150, 200), constraints=(1, 3), attributes=(2, 6), names=12,
        values=20, strings=strings, seed=5,
    )  # fmt: skip
    matcher = tamis.compile_events(EventSubscriptions.of_table(workload.table()))
    batch = workload.events(events)
    texts = batch.string_bytes.tobytes()
    found = []
    for start, end in zip(batch.event_starts[:-1], batch.event_starts[1:], strict=True):
        event: dict[str, object] = {}
        for place in range(start, end):
            value = int(batch.values[place])
            if batch.kinds[place] == 2:
                text = texts[batch.string_starts[value] : batch.string_starts[value + 1]]
                event[matcher.table.names[batch.names[place]]] = text.decode()
            else:
                event[matcher.table.names[batch.names[place]]] = value
        found.append(event)
    return matcher, found


def as_table(matcher: CompiledEventMatcher, events: list[dict[str, object]]) -> pa.Table:
    columns = {name: [event.get(name) for event in events] for name in matcher.table.names}
    return pa.table({"event": list(range(len(events)))} | columns)


@pytest.mark.spark
@pytest.mark.parametrize("by", ["filter", "subscription", "interface"])
def test_equal_to_the_library(spark: SparkSession, by: str) -> None:
    matcher, events = drawn(0.5, 3_000)
    expected = {
        (number, id)
        for number, match in enumerate(matcher.match_many(events, by=by))  # type: ignore[arg-type]
        for id in match
    }
    assert len(expected) > 3_000
    df = spark.createDataFrame(as_table(matcher, events)).repartition(5)
    answers = match_events(df, matcher, keep=["event"], by=by, errors="drop")  # type: ignore[arg-type]
    found = [(row[0], row[1]) for row in answers.collect()]
    assert set(found) == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("size", [1, 7, 20_000])
def test_a_task_equals_the_library(size: int, as_array: bool) -> None:
    """With errors among the events, at every size of batches, in order."""
    matcher, events = drawn(1.0, 1_000 if size == 1 else 20_000)
    long = "x" * 60
    for number in range(0, len(events), 17):
        events[number]["a1"] = long
    limits = tamis.Limits(event_string_bytes=50)
    set = EventSubscriptions.of_table(matcher.table)
    matcher = tamis.compile_events(set, limits=limits)
    batches = as_table(matcher, events).to_batches(max_chunksize=size)
    form = EventSpec("bigint", "v", "column", "subscription", as_array)
    found = in_a_task(batches, matcher, form, ["event"])
    expected: list[tuple[int, object, bool]] = []
    for number, match in enumerate(matcher.match_many(events)):
        if match.error is not None:
            expected.append((number, None, True))
        elif as_array:
            expected.append((number, list(match), False))
        else:
            expected.extend((number, id, False) for id in match)
    ids = found.column(1).to_pylist()
    errors = [error is not None for error in found["error"].to_pylist()]
    assert list(zip(found["event"].to_pylist(), ids, errors, strict=True)) == expected


def test_one_event_may_match_very_many() -> None:
    matcher = tamis.compile_events(dict.fromkeys(range(40_000), "temp > 1"))
    batch = pa.record_batch({"temp": [5, 0, 7]})
    form = EventSpec("bigint", "v", "fail", "subscription")
    found = in_a_task([batch], matcher, form, ["temp"])
    assert found["temp"].to_pylist() == [5] * 40_000 + [7] * 40_000
    assert np.array_equal(found["subscription"].to_numpy(), [*range(40_000)] * 2)
    assert len(found.to_batches()) > 2  # an output batch is bounded


def test_errors_may_end_a_task() -> None:
    batch = pa.record_batch({"s": pa.array([b"a", b"\xff"]).cast(pa.binary()).view(pa.string())})
    form = EventSpec("string", "v", "fail", "subscription")
    with pytest.raises(MalformedEvent, match=r"^an event: the attribute 's' is no UTF-8"):
        in_a_task([batch], tamis.compile_events({"x": 's = "a"'}), form, [])


def test_set_versions_say_what_matches() -> None:
    def version(given: CompiledEventMatcher | EventSubscriptions) -> str:
        return EventArtifact.of(given).set_version

    given = EventSubscriptions({"x": "a > 1", 2: "b exists"})
    assert version(given) == version(tamis.compile_events(given, engine="sff"))
    others = (
        {"x": "a > 1", "2": "b exists"},
        {"x": "a > 2", 2: "b exists"},
        {"x": "c > 1", 2: "b exists"},
        {2: "b exists", "x": "a > 1"},
        {"x": "a > 1"},
    )
    versions = {version(given), *(version(EventSubscriptions(other)) for other in others)}
    assert len(versions) == 6


def test_programs_come_back_as_they_were() -> None:
    given = tamis.compile_events(
        {"x": 'a > 1 or b in ("é", "")', 2: "b exists"}, engine="sff", interfaces={"x": 1, 2: "i"},
        limits=tamis.Limits(event_attributes=9),
    )  # fmt: skip
    program = EventArtifact.of(given)
    found = program.loaded()
    assert found is EventArtifact.of(given).loaded()  # compiled once
    assert (found.ids, found.interface_ids) == (given.ids, given.interface_ids)
    assert (found.named_engine, found.limits) == (given.named_engine, given.limits)
    for one, other in zip(found.table, given.table, strict=True):
        assert np.array_equal(one, other)
    empty = EventArtifact.of(EventSubscriptions({})).loaded()
    assert list(next(empty.match_many([{"a": 1}]))) == []


def test_another_file_is_not_taken() -> None:
    one = EventArtifact.of(EventSubscriptions({"x": "only_here > 1"}))
    other = EventArtifact.of(EventSubscriptions({"x": "only_here > 2"}))
    os.replace(other.path, one.path)
    with pytest.raises(OtherVersion, match="not what the driver sent"):
        one.loaded()


# -- Spark Connect ---------------------------------------------------------------------------------

CLIENT = """
import json, sys
import tamis
from pyspark.sql import SparkSession
from tamis import spark as tamis_spark

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
items = [(1, "temp > 30"), (2, 'area = "coast"')]
asked = spark.createDataFrame(items, "id int, expression string")
events = [(1, 35, "coast"), (2, 31, None), (3, 1, "x")]
df = spark.createDataFrame(events, "event int, temp int, area string")
rows = tamis_spark.match_events(df, asked).collect()
arrays = tamis_spark.match_events(df, {"x": "temp < 9"}, as_array=True, errors="drop").collect()
bodies = spark.createDataFrame([('{"temp": 31}',), ("[]",)], "body string")
nested = tamis_spark.match_events(bodies.selectExpr("body", "parse_json(body) v"), asked, "v")
lines = spark.readStream.schema("temp int, area string").csv(sys.argv[2])
answers = tamis_spark.match_events(lines, asked)
query = answers.writeStream.format("memory").queryName("answers").start()
query.processAllAvailable()
query.stop()
many = {number: f"temp > {number} and wind < 7" for number in range(250_000)}
wide = tamis_spark.match_events(spark.sql("select 3 as temp, 5 as wind"), many)
try:
    tamis_spark.match_events(df.selectExpr("struct(temp) as temp"), asked)
except tamis.UsageError as error:
    refused = str(error)
print(json.dumps({
    "module": type(spark).__module__,
    "rows": [[row.event, row.subscription, row.error] for row in rows],
    "arrays": [[row.event, row.subscriptions] for row in arrays],
    "stream": sorted(row.subscription for row in spark.table("answers").collect()),
    "nested": [[row.body, row.subscription, row.error is None] for row in nested.collect()],
    "many": sorted(row.subscription for row in wide.collect()),
    "refused": refused,
}))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.mark.spark
def test_a_client_of_spark_connect(server: str, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("35,coast\n1,x\n")
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, server, str(tmp_path)],
        capture_output=True,
        check=False,
        timeout=300,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    found = json.loads(done.stdout)
    assert found.pop("module").startswith("pyspark.sql.connect")
    assert found.pop("refused").startswith("the column 'temp' is of type struct<temp:int>")
    assert found == {
        "rows": [[1, 1, None], [1, 2, None], [2, 1, None]],
        "arrays": [[1, []], [2, []], [3, ["x"]]],
        "stream": [1, 2],
        "nested": [['{"temp": 31}', 1, True], ["[]", None, False]],
        "many": [0, 1, 2],
    }
