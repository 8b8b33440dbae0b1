"""``tamis.spark.match``: DataFrames in, DataFrames out."""

import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import tamis
from tamis.spark import match
from tamis.spark.frames import compiled

SUBSCRIPTIONS = {"a": "//a", "big": "//a[@n > 1]", "none": "//z"}
EXPECTED = [
    (1, "a", None),
    (2, "a", None),
    (2, "big", None),
    (4, None, "document-malformed"),
    (5, None, "document-unreadable"),
]


def rows(answers: DataFrame) -> list[tuple[object, ...]]:
    """The rows in order, with the code in place of the error."""
    found = [(*row[:-1], row.error and row.error.code) for row in answers.collect()]
    return sorted(found, key=repr)


@pytest.fixture
def df(spark: SparkSession) -> DataFrame:
    texts = {1: "<a n='1'/>", 2: "<a n='2'>é</a>", 3: "<b/>", 4: "<a>\n<b></a>", 5: None}
    return spark.createDataFrame(
        [(n, text, None if text is None else text.encode()) for n, text in texts.items()],
        "document int, xml string, bytes binary",
    )


@pytest.mark.spark
@pytest.mark.parametrize("column", ["xml", "bytes"])
def test_one_row_a_match_or_an_error(df: DataFrame, column: str) -> None:
    answers = match(df, SUBSCRIPTIONS, column, keep=["document"])
    assert answers.dtypes == [
        ("document", "int"),
        ("subscription", "string"),
        ("error", "struct<code:string,message:string,line:int,column:int>"),
    ]
    assert rows(answers) == EXPECTED


@pytest.mark.spark
def test_errors_say_what_and_where(df: DataFrame) -> None:
    errors = match(df, SUBSCRIPTIONS).where("error is not null").orderBy("document")
    broken, null = errors.select("error.*").collect()
    message = "mismatched tag: <b> is open"
    assert broken == Row(code="document-malformed", message=message, line=2, column=6)
    message = "there is no document: the column 'xml' is null here"
    assert null == Row(code="document-unreadable", message=message, line=None, column=None)


@pytest.mark.spark
def test_kept_columns(df: DataFrame) -> None:
    assert match(df, SUBSCRIPTIONS).columns == ["document", "bytes", "subscription", "error"]
    assert match(df, SUBSCRIPTIONS, keep=()).columns == ["subscription", "error"]
    assert match(df, SUBSCRIPTIONS, keep=["xml"]).columns == ["xml", "subscription", "error"]


@pytest.mark.spark
def test_kept_columns_of_any_name_and_type_come_through(df: DataFrame) -> None:
    kept = df.select(
        "xml",
        F.lit("x").alias("a.b `c`"),
        F.lit(Decimal("1.50")).alias("decimal"),
        F.lit(datetime.datetime(2026, 1, 2, 3, 4, 5)).alias("time"),
        F.lit(datetime.date(2026, 1, 2)).alias("date"),
        F.array(F.lit(1), F.lit(None)).alias("array"),
        F.create_map(F.lit("k"), F.lit(1.5)).alias("map"),
        F.struct(F.lit(True).alias("yes"), F.lit(None).cast("string").alias("no")).alias("struct"),
        F.lit(None).cast("long").alias("null"),
        F.col("xml").alias("again"),
    )
    answers = match(kept, {"big": "//a[@n > 1]"}).where("error is null")
    answers = answers.drop("subscription", "error")
    assert answers.schema == kept.drop("xml").schema
    assert answers.collect() == kept.where("xml like '%2%'").drop("xml").collect()


@pytest.mark.spark
def test_ids_that_are_integers_stay_so(df: DataFrame) -> None:
    answers = match(df, {7: "//a", 2**40: "//b"}, keep=())
    assert answers.dtypes[0] == ("subscription", "bigint")
    found = answers.where("error is null").collect()
    assert sorted(row.subscription for row in found) == [7, 7, 2**40]
    assert match(df, {7: "//a", "b": "//b"}, keep=()).dtypes[0] == ("subscription", "string")


@pytest.mark.spark
def test_one_document_may_match_very_many(spark: SparkSession) -> None:
    many = dict.fromkeys(range(40_000), "//a")  # more than an output batch has rows
    df = spark.createDataFrame([("<a/>",), ("<b/>",), ("<a><a/></a>",)], "xml string").coalesce(1)
    counted = (
        match(df, many, keep=["xml"])
        .groupBy("xml")
        .agg(F.count("subscription"), F.countDistinct("subscription"))
    )
    expected = [("<a/>", 40_000, 40_000), ("<a><a/></a>", 40_000, 40_000)]
    assert sorted(map(tuple, counted.collect())) == expected


@pytest.mark.spark
def test_streams(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text("<a n='5'/>\n<b/>\n<a>\n")
    lines = spark.readStream.schema("xml string").text(str(tmp_path))
    answers = match(lines, SUBSCRIPTIONS, keep=["xml"])
    query = answers.writeStream.format("memory").queryName("answers").start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    assert rows(spark.table("answers")) == [
        ("<a n='5'/>", "a", None),
        ("<a n='5'/>", "big", None),
        ("<a>", None, "document-malformed"),
    ]


@pytest.mark.spark
def test_bad_calls_are_refused_at_once(df: DataFrame) -> None:
    with pytest.raises(tamis.UsageError, match="no column 'html': the columns are document, xml"):
        match(df, SUBSCRIPTIONS, "html")
    with pytest.raises(tamis.UsageError, match="no column 'name'"):
        match(df, SUBSCRIPTIONS, keep=["name"])
    with pytest.raises(tamis.UsageError, match="'document' is of type int, not string or binary"):
        match(df, SUBSCRIPTIONS, "document")
    with pytest.raises(tamis.UsageError, match="a column 'error' of its own"):
        match(df.withColumnRenamed("document", "error"), SUBSCRIPTIONS)


def test_subscriptions_of_every_kind(tmp_path: Path) -> None:
    file = tmp_path / "s.tsv"
    file.write_text("".join(f"{id}\t{text}\n" for id, text in SUBSCRIPTIONS.items()))
    matcher = tamis.compile(SUBSCRIPTIONS, limits=tamis.Limits(depth=10))
    assert compiled(matcher) is matcher
    for subscriptions in (str(file), file, SUBSCRIPTIONS, tamis.Subscriptions(SUBSCRIPTIONS)):
        assert compiled(subscriptions).ids == ("a", "big", "none")


def test_namespaces_come_with_what_is_parsed_here() -> None:
    assert len(compiled({"x": "//p:a[last()]"}, {"p": "urn:p"}, "slow")) == 1
    with pytest.raises(tamis.UsageError, match="to Subscriptions"):
        compiled(tamis.compile({"x": "//a"}), {"p": "urn:p"})


def test_bad_subscriptions_are_refused_at_once() -> None:
    with pytest.raises(tamis.BadSubscriptions, match="2 bad subscriptions"):
        compiled({"x": "//a[", "y": "//b["})
    with pytest.raises(tamis.UsageError, match="only their type tells apart"):
        compiled({1: "//a", "1": "//b"})
    with pytest.raises(tamis.UsageError, match="cannot read nowhere"):
        compiled("nowhere.tsv")
