"""What users set, and do with frames, changes no answer."""

from typing import Any

import pytest
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import tamis
from tamis.spark import match, match_events, transform
from tests.spark.answers import in_process

SETTINGS: dict[str, dict[str, str]] = {
    "one a batch": {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"},
    "all in a batch": {"spark.sql.execution.arrow.maxRecordsPerBatch": "0"},
    "small batches": {"spark.sql.execution.arrow.maxBytesPerBatch": "200"},
    "large types": {"spark.sql.execution.arrow.useLargeVarTypes": "true"},
    "packed": {"spark.sql.execution.arrow.compression.codec": "zstd"},
    "rows": {"spark.sql.inMemoryColumnarStorage.enableVectorizedReader": "false"},
    "case": {"spark.sql.caseSensitive": "true"},
    "local time": {"spark.sql.session.timeZone": "Asia/Kathmandu"},
    "not adaptive": {"spark.sql.adaptive.enabled": "false"},
}
MATCHER = tamis.compile({"a": "//a", "b": "//b[. > 3]", "é": "//é"})
TEXTS = [
    "<a/>",
    "<?xml version='1.0' encoding='UTF-8'?><r><a/><b>4</b></r>",
    *("<é/>", "<a", "", "<c/>"),
]
DOCUMENTS = dict(enumerate(TEXTS * 20))


@pytest.fixture(params=SETTINGS)
def session(spark: SparkSession, request: pytest.FixtureRequest) -> SparkSession:
    """A session of its own, of the same application."""
    found = spark.newSession()
    for name, value in SETTINGS[request.param].items():
        found.conf.set(name, value)
    return found


def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([*DOCUMENTS.items()], "n int, xml string").repartition(3)


def answers(rows: DataFrame) -> list[tuple[Any, ...]]:
    found = [(r.n, r.subscription, r.error and r.error.message) for r in rows.collect()]
    return sorted(found, key=repr)


def expected(times: int = 1) -> list[tuple[Any, ...]]:
    return sorted([*in_process(MATCHER, DOCUMENTS)] * times, key=repr)


@pytest.mark.spark
def test_settings(session: SparkSession) -> None:
    df = frame(session)
    assert answers(match(df, MATCHER)) == expected()
    assert answers(match(df.withColumn("xml", F.encode("xml", "utf-8")), MATCHER)) == expected()
    records = match(df, {"a": "//a"}, record="a", errors="drop").select("n", "record")
    assert sorted(map(tuple, records.collect())) == [(n, 0) for n in range(120) if n % 6 < 2]
    events = df.select(
        "n", F.create_map(F.lit("k"), "n").alias("m"), F.to_json(F.struct("n")).alias("j")
    )
    for wanted in {"column": "j"}, {}:
        path = "n > 100" if wanted else "m.k > 100"
        found = match_events(events, {"x": path}, keep=["n"], **wanted).select("n").collect()
        assert sorted(row.n for row in found) == list(range(101, 120))
    query = {"q": "<x>{ for $b in //b return $b }</x>"}
    messages = transform(df, query, errors="drop").select("n", F.col("message").cast("string"))
    assert sorted(map(tuple, messages.collect())) == [
        (n, "<x><b>4</b></x>") for n in range(1, 120, 6)
    ]


@pytest.mark.spark
def test_frames_that_are_cached_and_used_again(spark: SparkSession) -> None:
    """A result is computed again where it is not kept, and is always the same."""
    df = frame(spark).persist(StorageLevel.MEMORY_ONLY)
    rows = match(df, MATCHER).cache()
    assert answers(rows) == answers(rows) == expected()
    assert answers(rows.unionAll(match(df, MATCHER))) == expected(2)
    joined = rows.select("n", "subscription").join(
        rows.select("n", "subscription"), ["n", "subscription"]
    )
    assert joined.count() == sum(row[1] is not None for row in expected())
    again = match(rows.where("subscription = 'b'").join(df, "n").select("n", "xml"), MATCHER)
    assert answers(again) == [row for row in expected() if row[0] % 6 == 1]
    rows.unpersist()
    df.unpersist()
    assert answers(rows) == expected()
