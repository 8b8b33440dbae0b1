"""``tamis.spark.match``: DataFrames in, DataFrames out."""

import datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import tamis
from tamis.spark import match, program

SUBSCRIPTIONS = {"a": "//a", "big": "//a[@n > 1]", "none": "//z"}
EXPECTED = [
    (1, "a", None),
    (2, "a", None),
    (2, "big", None),
    (4, None, "document-malformed"),
    (5, None, "document-unreadable"),
]


def rows(answers: DataFrame) -> list[tuple[object, ...]]:
    """The rows in order, without versions, and with the code in place of the error."""
    dropped = answers.drop("record", "set_version", "tamis_version", "failed")
    found = [(*row[:-1], row.error and row.error.code) for row in dropped.collect()]
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
        ("record", "bigint"),
        ("subscription", "string"),
        ("set_version", "string"),
        ("tamis_version", "string"),
        ("failed", "map<string,string>"),
        ("error", "struct<code:string,message:string,line:bigint,column:bigint,offset:bigint>"),
    ]
    assert rows(answers) == EXPECTED


@pytest.mark.spark
def test_errors_say_what_and_where(df: DataFrame) -> None:
    errors = match(df, SUBSCRIPTIONS).where("error is not null").orderBy("document")
    broken, null = errors.select("error.*").collect()
    message = "mismatched tag: <b> is open"
    assert broken == Row(code="document-malformed", message=message, line=2, column=6, offset=9)
    message = "there is no document: the column 'xml' is null here"
    assert null == Row(
        code="document-unreadable", message=message, line=None, column=None, offset=None
    )


@pytest.mark.spark
def test_kept_columns(df: DataFrame) -> None:
    own = ["record", "subscription", "set_version", "tamis_version", "failed", "error"]
    assert match(df, SUBSCRIPTIONS).columns == ["document", "bytes", *own]
    assert match(df, SUBSCRIPTIONS, keep=()).columns == own
    assert match(df, SUBSCRIPTIONS, keep=["xml"]).columns == ["xml", *own]


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
    answers = answers.drop(
        "record", "subscription", "set_version", "tamis_version", "failed", "error"
    )
    assert answers.schema == kept.drop("xml").schema
    assert answers.collect() == kept.where("xml like '%2%'").drop("xml").collect()


@pytest.mark.spark
def test_ids_that_are_integers_stay_so(df: DataFrame) -> None:
    answers = match(df, {7: "//a", 2**40: "//b"}, keep=())
    assert answers.dtypes[1] == ("subscription", "bigint")
    found = answers.where("error is null").collect()
    assert sorted(row.subscription for row in found) == [7, 7, 2**40]
    assert match(df, {7: "//a", "b": "//b"}, keep=()).dtypes[1] == ("subscription", "string")


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


@pytest.mark.spark
@pytest.mark.parametrize(
    ("value", "type"),
    [
        ("interval 1 year", "interval year"),
        ("make_interval(1)", "interval"),
        ("array(struct(interval 1 month))", "array<struct<col1:interval month>>"),
        ("cast('x' as char(3))", r"char\(3\)"),
    ],
)
def test_columns_that_arrow_lacks(spark: SparkSession, value: str, type: str) -> None:
    spark.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    try:
        df = spark.sql(f"select '<a/>' xml, {value} odd")
        message = f"the column 'odd' is of type {type}, which Arrow lacks: .*keep="
        with pytest.raises(tamis.UsageError, match=message):
            match(df, {"x": "//a"})
        assert match(df, {"x": "//a"}, keep=[]).count() == 1
    finally:
        spark.conf.unset("spark.sql.preserveCharVarcharTypeInfo")


@pytest.mark.spark
def test_one_row_a_document(df: DataFrame) -> None:
    answers = match(df, SUBSCRIPTIONS, keep=["document"], as_array=True).orderBy("document")
    assert answers.dtypes[2] == ("subscriptions", "array<string>")
    found = [(row.document, row.subscriptions, row.error is None) for row in answers.collect()]
    assert found == [
        (1, ["a"], True),
        (2, ["a", "big"], True),
        (3, [], True),
        (4, None, False),
        (5, None, False),
    ]
    dropped = match(df, SUBSCRIPTIONS, keep=["document"], as_array=True, errors="drop")
    assert sorted(row.document for row in dropped.collect()) == [1, 2, 3]


@pytest.mark.spark
def test_nodes(df: DataFrame) -> None:
    asked = {"n": "//a/@n", "none": "//z", "true": "boolean(//a)"}
    answers = match(df, asked, keep=["document"], nodes="all", errors="drop")
    assert answers.dtypes[3] == ("nodes", "array<struct<start:bigint,end:bigint,line:bigint>>")
    found = {(row.document, row.subscription): row.nodes for row in answers.collect()}
    assert found == {
        (1, "n"): [Row(start=3, end=8, line=1)],
        (1, "true"): [],
        (2, "n"): [Row(start=3, end=8, line=1)],
        (2, "true"): [],
    }
    answers = match(df, asked, keep=["document"], nodes="first", as_array=True)
    rows = {row.document: (row.subscriptions, row.nodes) for row in answers.collect()}
    assert rows[1] == (["n", "true"], [[Row(start=3, end=8, line=1)], []])
    assert (rows[3], rows[4]) == (([], []), (None, None))


@pytest.mark.spark
def test_values_of_nodes(df: DataFrame) -> None:
    asked = {"n": "//a/@n", "text": "//a/text()", "true": "boolean(//a)"}
    answers = match(df, asked, keep=["document"], nodes="all", values=True, errors="drop")
    kind = "array<struct<start:bigint,end:bigint,line:bigint,value:string>>"
    assert answers.dtypes[3] == ("nodes", kind)
    found = {(row.document, row.subscription): row.nodes for row in answers.collect()}
    assert found == {
        (1, "n"): [Row(start=3, end=8, line=1, value="1")],
        (1, "true"): [],
        (2, "n"): [Row(start=3, end=8, line=1, value="2")],
        (2, "text"): [Row(start=9, end=11, line=1, value="é")],
        (2, "true"): [],
    }
    records = match(df, {"n": "/a/@n"}, keep=["document"], record="a", nodes="all", values=True)
    values = [node.value for row in records.collect() if row.nodes for node in row.nodes]
    assert sorted(values) == ["1", "2"]
    with pytest.raises(tamis.UsageError, match="values are of nodes"):
        match(df, asked, values=True)


@pytest.mark.spark
def test_records_of_values(spark: SparkSession) -> None:
    texts = [(1, "<all><a n='1'/><b/><a n='2'/></all>"), (2, "<all/>"), (3, "<all><a/><a></all>")]
    df = spark.createDataFrame(texts, "document int, xml string")
    answers = match(df, {"n": "/a/@n"}, record="a")
    found = [(row.document, row.record, row.subscription, row.error) for row in answers.collect()]
    assert [row[:3] for row in found] == [(1, 0, "n"), (1, 1, "n"), (3, 1, None)]
    assert found[-1][3].message.endswith("the rest was not read")


@pytest.mark.spark
def test_errors_may_end_the_job(df: DataFrame) -> None:
    assert match(df, SUBSCRIPTIONS, errors="drop").columns[-2:] == ["tamis_version", "failed"]
    answers = match(df, SUBSCRIPTIONS, keep=["document"], errors="fail")
    with pytest.raises(PythonException, match="4: mismatched tag: <b> is open"):
        answers.collect()


@pytest.mark.spark
@pytest.mark.parametrize("column", ["xml", "bytes"])
def test_a_declared_encoding_that_is_wrong(spark: SparkSession, column: str) -> None:
    """A column of strings may have what was bytes of another encoding once."""
    xml = "<?xml version='1.0' encoding='utf-16'?><r><a>é</a></r>"
    df = spark.createDataFrame([(xml, xml.encode())], "xml string, bytes binary")
    (row,) = match(df, {"x": "//a"}, column).collect()
    assert (row.subscription, row.error.code) == (None, "document-encoding")
    if column == "xml":
        assert row.error.message == (
            "text that declares the encoding 'utf-16': read it as the text that it is, "
            'declared_encoding="ignore" (no cast to binary)'
        )
    for record in (None, "a"):
        asked = {"declared_encoding": "ignore", "nodes": "all", "values": True, "record": record}
        (row,) = match(df, {"x": "//a"}, column, **asked).collect()
        assert (row.subscription, row.error, row.nodes[0].value) == ("x", None, "é")
    with pytest.raises(tamis.UsageError, match='declared_encoding is "check" or "ignore"'):
        match(df, {"x": "//a"}, column, declared_encoding="utf-8")  # type: ignore[arg-type]


@pytest.mark.spark
def test_subscriptions_that_fail_on_a_document(spark: SparkSession) -> None:
    """They have a row of their own, or the document's; its matches are there."""
    deep = "<a>" * 3000 + "</a>" * 3000  # deeper than libxml2's own limit
    df = spark.createDataFrame([(1, deep), (2, "<a/>"), (3, "<a>"), (4, deep)], "n int, xml string")
    asked = {"plain": "//a/a", "x": "//a[last()]", "y": "//a[last() = 2]"}
    matcher = tamis.compile(asked, unsupported="slow", limits=tamis.Limits(depth=5000))
    made = program(matcher)
    found = {}
    for row in match(df, made).collect():
        of_document = found.setdefault(row.n, [])
        of_document.append((row.subscription, row.failed and sorted(row.failed), row.error is None))
        assert all("lxml cannot parse" in said for said in (row.failed or {}).values())
    for n in (1, 4):
        assert found[n] == [("plain", None, True), (None, ["x", "y"], True)]
    assert (found[2], found[3]) == ([("x", None, True)], [(None, None, False)])
    arrays = {row.n: row for row in match(df, made, as_array=True).collect()}
    assert (arrays[1].subscriptions, sorted(arrays[1].failed)) == (["plain"], ["x", "y"])
    assert [arrays[n].failed for n in (2, 3)] == [None, None]
    dropped = match(df, made, errors="drop").collect()
    assert sorted((row.n, row.subscription, row.failed) for row in dropped) == [
        (1, "plain", None), (2, "x", None), (4, "plain", None)
    ]  # fmt: skip
    records = match(df.selectExpr("n", "concat('<r>', xml, '<a/></r>') xml"), made, record="a")
    rows = records.where("n = 1").collect()
    assert [(row.record, row.subscription, row.failed and sorted(row.failed)) for row in rows] == [
        (0, "plain", None), (0, None, ["x", "y"]), (1, "x", None)
    ]  # fmt: skip
    with pytest.raises(PythonException, match="n=1, subscription 'x': lxml cannot parse"):
        match(df.where("n = 1"), made, errors="fail").collect()


@pytest.mark.spark
def test_versions_say_what_matched(df: DataFrame) -> None:
    answers = match(df, SUBSCRIPTIONS, errors="drop").collect()
    assert {row.tamis_version for row in answers} == {tamis.__version__}
    version = program(SUBSCRIPTIONS).set_version
    assert {row.set_version for row in answers} == {version}


@pytest.mark.spark
def test_what_cannot_be_asked(df: DataFrame) -> None:
    with pytest.raises(tamis.UsageError, match="'a b' is no tag"):
        match(df, SUBSCRIPTIONS, record="a b")
    with pytest.raises(tamis.UsageError, match="errors='ignore'"):
        match(df, SUBSCRIPTIONS, errors="ignore")  # type: ignore[arg-type]
