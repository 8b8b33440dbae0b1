"""``tamis.spark.transform``: messages of a column of XML."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession

import tamis
from tamis.core.limits import Limits
from tamis.schema.reader import read_graph
from tamis.spark import transform
from tamis_workload import TransformationOptions, transformations_from_dtd
from tests.spark.servers import connect_server
from tests.support.corpora import ROOT, corpus

SUBSCRIPTIONS = {
    "titles": "<t>{ for $b in /bib/book return $b/title }</t>",
    "cheap": "<c>{ for $b in /bib/book where $b/price < 10 return <b>{ count($b/title) }</b> }</c>",
}
BOOKS = "<bib><book><title>A&amp;B</title><price>{}</price></book></bib>"
VERSIONS = ("set_version", "tamis_version")


@pytest.fixture
def df(spark: SparkSession) -> DataFrame:
    given = [(1, BOOKS.format(5)), (2, BOOKS.format(50)), (3, "<bib/>"), (4, "<bib>"), (5, None)]
    return spark.createDataFrame(given, "number int, xml string")


def rows(answers: DataFrame) -> list[tuple[object, ...]]:
    """The rows in order, without versions, and with the code in place of the error."""
    found = answers.drop(*VERSIONS).collect()
    plain = [
        (*row[:-1], row.error and row.error.code) if "error" in answers.columns else tuple(row)
        for row in found
    ]
    return sorted(plain, key=repr)


TITLE = "<t><title>A&amp;B</title></t>"
MESSAGES = [
    (1, "cheap", "<c><b>1</b></c>", None),
    (1, "titles", TITLE, None),
    (2, "titles", TITLE, None),
]


@pytest.mark.spark
def test_one_row_a_message(df: DataFrame) -> None:
    answers = transform(df, SUBSCRIPTIONS)
    assert [name for name, _ in answers.dtypes] == [
        "number",
        "subscription",
        "message",
        *VERSIONS,
        "error",
    ]
    errors = [(4, None, None, "document-malformed"), (5, None, None, "document-unreadable")]
    assert rows(answers) == sorted([*MESSAGES, *errors], key=repr)
    (versions,) = answers.select(*VERSIONS).distinct().collect()
    assert versions.tamis_version == tamis.__version__
    assert len(versions.set_version) == 16


@pytest.mark.spark
def test_errors(df: DataFrame) -> None:
    assert rows(transform(df, SUBSCRIPTIONS, errors="drop")) == [row[:-1] for row in MESSAGES]
    with pytest.raises(PythonException, match="number=4"):
        transform(df, SUBSCRIPTIONS, errors="fail").collect()
    few = Limits(message_bytes=20)
    limited = [row for row in rows(transform(df, SUBSCRIPTIONS, limits=few)) if row[1] is not None]
    assert limited == [
        (1, "cheap", "<c><b>1</b></c>", None),
        (1, "titles", None, "message-limit"),
        (2, "titles", None, "message-limit"),
    ]


@pytest.mark.spark
def test_a_declared_encoding_that_is_wrong(spark: SparkSession) -> None:
    text = "<?xml version='1.0' encoding='utf-16'?>" + BOOKS.format(5)
    df = spark.createDataFrame([(text,)], "xml string")
    assert [row.error.code for row in transform(df, SUBSCRIPTIONS).collect()] == [
        "document-encoding"
    ]
    found = transform(df, SUBSCRIPTIONS, declared_encoding="ignore", keep=[])
    assert rows(found) == [("cheap", "<c><b>1</b></c>", None), ("titles", TITLE, None)]


@pytest.mark.spark
def test_subscriptions_of_files_and_tables(
    spark: SparkSession, df: DataFrame, tmp_path: Path
) -> None:
    folder = tmp_path / "queries"
    folder.mkdir()
    for id, text in SUBSCRIPTIONS.items():
        (folder / f"{id}.xq").write_text(text)
    assert rows(transform(df, folder, errors="drop")) == [row[:-1] for row in MESSAGES]
    (folder / "bad.xq").write_text("<r>{ for $b in //b return let }</r>")
    with pytest.raises(tamis.BadSubscriptions, match="bad"):
        transform(df, folder)
    table = spark.createDataFrame([(7, SUBSCRIPTIONS["titles"])], "id bigint, expression string")
    found = transform(df, table, errors="drop", keep=[])
    assert found.dtypes[0] == ("subscription", "bigint")
    assert rows(found) == [(7, TITLE), (7, TITLE)]


@pytest.mark.spark
def test_refused(df: DataFrame) -> None:
    for wrong, message in (
        ({"column": "no"}, "there is no column 'no'"),
        ({"column": "number"}, "is of type int, not string or binary"),
        ({"errors": "none"}, "write 'column', 'drop' or 'fail'"),
        ({"keep": "number"}, "keep is a list of names"),
    ):
        with pytest.raises(tamis.UsageError, match=message):
            transform(df, SUBSCRIPTIONS, **wrong)
    with pytest.raises(tamis.UsageError, match="there are no subscriptions"):
        transform(df, {})


@pytest.mark.spark
def test_streams(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text(BOOKS.format(5) + "\n")
    lines = spark.readStream.schema("xml string").text(str(tmp_path))
    answers = transform(lines, SUBSCRIPTIONS)
    query = answers.writeStream.format("memory").queryName("messages").start()
    try:
        query.processAllAvailable()
        (tmp_path / "2.txt").write_text("<bib>\n")
        query.processAllAvailable()
    finally:
        query.stop()
    found = rows(spark.table("messages"))
    assert [row[-1] for row in found] == [None, None, "document-malformed"]


@pytest.mark.spark
@pytest.mark.corpora
def test_real_documents(spark: SparkSession) -> None:
    """The messages are those of a transformer, also where they are many."""
    graph = read_graph(ROOT / "usecases" / "book.dtd")
    options = TransformationOptions(predicates=0, binding_depth=3)
    drawn = dict(enumerate(transformations_from_dtd(graph, 100, options=options, distinct=True)))
    drawn[1000] = "<all>{ for $x in //* return $x }</all>"
    paths = [path for name in ("usecases", "docutils") for path in corpus(name)[:20]]
    expected = []
    for path, messages in zip(paths, tamis.Transformer(drawn).transform_many(paths), strict=True):
        if messages.error is not None:
            expected.append((path.name, None, None, messages.error.code))
        else:
            expected += [(path.name, each.subscription, each.text, None) for each in messages]
    df = spark.createDataFrame(
        [(path.name, path.read_bytes()) for path in paths], "name string, xml binary"
    )
    assert rows(transform(df, drawn)) == sorted(expected, key=repr)
    assert len(expected) > len(paths) + 20


CLIENT = """
import json, sys
from pyspark.sql import SparkSession
from tamis import spark as tamis_spark

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
df = spark.createDataFrame([(1, "<b><t>x</t></b>"), (2, "<b")], "number int, xml string")
texts = [("t", "<r>{ for $t in //t return $t }</r>")]
asked = spark.createDataFrame(texts, "id string, expression string")
rows = tamis_spark.transform(df, asked).collect()
print(json.dumps([[row.number, row.subscription, row.message, row.error is None] for row in rows]))
"""


@pytest.mark.spark
def test_a_client_of_spark_connect(tmp_path: Path) -> None:
    with connect_server(tmp_path) as server:
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, server],
            capture_output=True,
            check=False,
            timeout=300,
            env=os.environ | {"PYTHONWARNINGS": "ignore"},
        )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    assert sorted(json.loads(done.stdout)) == [
        [1, "t", "<r><t>x</t></r>", True],
        [2, None, None, False],
    ]
