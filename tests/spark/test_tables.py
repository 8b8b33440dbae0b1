"""Results in tables of Spark's catalog: whatever dies, each row is there once."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

import tamis
from tamis.spark import match, run, stream
from tamis.spark.tables import TableStore

SUBSCRIPTIONS = {1: "//b[@n > 2]", 2: "/a"}
Write = Callable[..., None]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A database of its own, in a folder of its own."""
    name = f"lake_{uuid4().hex[:8]}"
    spark.sql(f"create database {name} location '{tmp_path}/warehouse'")
    yield name
    spark.sql(f"drop database {name} cascade")


def rows(spark: SparkSession, table: str) -> Counter[tuple[Any, ...]]:
    """What matches and errors count, and how often they are there."""
    runs = spark.table(f"{table}_runs")
    matches = spark.table(f"{table}_matches").join(runs, "run").select("document", "subscription")
    errors = spark.table(f"{table}_errors").join(runs, "run").select("document", "code")
    names = (tuple(row) for row in [*matches.collect(), *errors.collect()])
    return Counter((os.path.basename(document), what) for document, what in names)


def documents(write: Write, first: int, last: int) -> Counter[tuple[Any, ...]]:
    """Write some, and say what is to be found of them."""
    write({f"in/{n}.xml": f"<a><b n='{n}'/></a>" if n % 4 else "<a>" for n in range(first, last)})
    found: Counter[tuple[Any, ...]] = Counter()
    for n in range(first, last):
        ids = ["document-malformed"] if n % 4 == 0 else [1, 2] if n > 2 else [2]
        found.update((f"{n}.xml", id) for id in ids)
    return found


@pytest.mark.spark
def test_a_run_into_tables(spark: SparkSession, lake: str, write: Write) -> None:
    expected = documents(write, 0, 9)
    summary = run(spark, SUBSCRIPTIONS, "in", f"table:{lake}.orders")
    assert (summary.documents, summary.matches, summary.errors) == (9, 10, 3)
    assert rows(spark, f"{lake}.orders") == expected
    with pytest.raises(tamis.UsageError, match="has results already: name other tables"):
        run(spark, SUBSCRIPTIONS, "in", f"table:{lake}.orders")
    with pytest.raises(tamis.UsageError, match="is not replaced: delete rows"):
        run(spark, SUBSCRIPTIONS, "in", f"table:{lake}.orders", overwrite=True)
    expected += documents(write, 9, 11)
    again = run(spark, SUBSCRIPTIONS, "in", f"table:{lake}.orders", only_new=True)
    assert again.documents == 2
    assert rows(spark, f"{lake}.orders") == expected
    assert spark.table(f"{lake}.orders_manifest").count() == 11
    assert spark.table(f"{lake}.orders_runs").count() == 2
    assert run(spark, SUBSCRIPTIONS, "in", f"table:{lake}.orders", only_new=True).documents == 0


@pytest.mark.spark
def test_runs_whose_driver_dies(
    spark: SparkSession, lake: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it left does not count, and the next run reads all again; also where nothing is read."""
    expected = documents(write, 0, 3)
    append = TableStore._append
    for last in ("_errors", "_runs"):

        def dying(self: TableStore, name: str, *given: Any, last: str = last) -> None:
            if last.endswith(name):
                raise KeyError("the driver dies")
            append(self, name, *given)

        with monkeypatch.context() as patch:
            patch.setattr(TableStore, "_append", dying)
            with pytest.raises(KeyError):
                run(spark, SUBSCRIPTIONS, "in", f"table:{lake}.d", only_new=True)
        assert not rows(spark, f"{lake}.d")
    assert spark.table(f"{lake}.d_matches").count() == 4
    run(spark, SUBSCRIPTIONS, "in", f"table:{lake}.d")
    assert rows(spark, f"{lake}.d") == expected
    write({"bad/1.xml.gz": b"\x1f\x8b\x08 damaged"})
    run(spark, SUBSCRIPTIONS, "bad", f"table:{lake}.d", only_new=True)
    assert rows(spark, f"{lake}.d") == expected + Counter([("1.xml.gz", "document-unreadable")])


@pytest.mark.spark
def test_tables_that_are_there(
    spark: SparkSession, lake: str, write: Write, tmp_path: Path
) -> None:
    """In another format, with more columns in another order; and what cannot be written."""
    spark.sql(
        f"create table {lake}.x_matches (run string, subscription bigint, document string, "
        "record bigint, tamis_version string, set_version string, `Mine` int) using orc"
    )
    expected = documents(write, 1, 3)
    run(spark, SUBSCRIPTIONS, "in", f"table:{lake}.x")
    assert rows(spark, f"{lake}.x") == expected
    run(spark, SUBSCRIPTIONS, "in", f"table:{lake}.`t1`")
    assert spark.table(f"{lake}.`t1_matches`").count() == 2
    with pytest.raises(tamis.UsageError, match="subscription of the type string, and has bigint"):
        run(spark, {"a": "/a"}, "in", f"table:{lake}.x", only_new=True)
    spark.sql(f"create table {lake}.y_errors (run string) using orc")
    with pytest.raises(tamis.UsageError, match="y_errors is to have a column document of the type"):
        run(spark, SUBSCRIPTIONS, "in", f"table:{lake}.y")
    spark.sql(f"create view {lake}.z_matches as select 1 as x")
    with pytest.raises(tamis.UsageError, match="z_matches is a view"):
        run(spark, SUBSCRIPTIONS, "in", f"table:{lake}.z")
    (tmp_path / "warehouse" / "full_matches").mkdir()
    (tmp_path / "warehouse" / "full_matches" / "x").write_text("")
    for name, said in (
        ("nowhere.x", "SCHEMA_NOT_FOUND"),
        (" ", "which tables"),
        ("a b", "SYNTAX"),
        (f"{lake}.full", "LOCATION_ALREADY_EXISTS"),
    ):
        with pytest.raises(tamis.UsageError, match=said):
            run(spark, SUBSCRIPTIONS, "in", f"table:{name}")


@pytest.mark.spark
def test_a_stream_in_the_form_of_kafka(spark: SparkSession, tmp_path: Path) -> None:
    """A sink of the user's own, which fails in the middle: what is repeated is there once."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5)
    numbers = reader.option("numPartitions", 2).load()
    xml = "if(value % 7 = 6, '<a>', concat('<a><b n=\"', value, '\"/></a>'))"
    messages = numbers.selectExpr(
        "'orders' topic", "0 partition", "value offset", f"cast({xml} as binary) value"
    )
    left = [2]  # batches until it fails

    def write(batch: DataFrame, number: int) -> None:
        found = match(batch, SUBSCRIPTIONS, "value", keep=["topic", "partition", "offset"])
        found.write.mode("overwrite").parquet(f"{tmp_path}/answers/batch={number}")
        left[0] -= 1
        if left[0] == 0:
            raise KeyError("the driver dies")

    def started() -> StreamingQuery:
        writer = messages.writeStream.foreachBatch(write)
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    with pytest.raises(StreamingQueryException):
        started().awaitTermination()
    query = started()
    while left[0] > -3:
        query.awaitTermination(1)
    query.stop()
    found = spark.read.parquet(f"{tmp_path}/answers")
    offsets = {row.offset for row in found.collect()}
    assert offsets == set(range(len(offsets)))
    assert len(offsets) >= 20
    expected = sum(1 if n % 7 == 6 or n <= 2 else 2 for n in offsets)
    assert found.count() == found.dropDuplicates(["offset", "subscription"]).count() == expected
    assert found.where("error is not null").count() == len([n for n in offsets if n % 7 == 6])


@pytest.mark.spark
def test_a_stream_whose_driver_dies(
    spark: SparkSession, lake: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done again counts once, with the subscriptions and documents of then."""
    append = TableStore._append
    left = [0]

    def dying(self: TableStore, *given: Any) -> None:
        append(self, *given)
        left[0] -= 1
        if left[0] == 0:
            raise KeyError("the driver dies")

    monkeypatch.setattr(TableStore, "_append", dying)
    expected: Counter[tuple[Any, ...]] = Counter()
    for death in (1, 3, 4, 5):  # behind the matches, the manifest, the runs; and not at all
        expected += documents(write, 10 * death, 10 * death + 3)
        left[0] = death
        wanted: dict[str, Any] = {"checkpoint": "checkpoint", "trigger": "now"}
        query = stream(spark, SUBSCRIPTIONS, "in", f"table:{lake}.s", **wanted)
        try:
            query.awaitTermination()
            assert death == 5
        except StreamingQueryException:
            left[0] = 0
            stream(spark, SUBSCRIPTIONS, "in", f"table:{lake}.s", **wanted).awaitTermination()
        assert rows(spark, f"{lake}.s") == expected
    with pytest.raises(tamis.UsageError, match="tables needs a folder of its own"):
        stream(spark, SUBSCRIPTIONS, "in", f"table:{lake}.s")
