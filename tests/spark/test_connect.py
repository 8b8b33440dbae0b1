"""Spark Connect: the same calls, and nothing of the driver's JVM in this process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tamis
from tests.spark.answers import answers_in, in_process
from tests.spark.servers import connect_server

CLIENT = """
import json, sys
import tamis
from pyspark.sql import SparkSession
from tamis import spark as tamis_spark

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
subscriptions = spark.createDataFrame([(1, "//a"), (2, "//b[@n > 1]")], "id int, expression string")
made = tamis_spark.program(subscriptions)
texts = [(1, "<a><b n='2'/></a>"), (2, "<a>"), (3, "<c/>")]
df = spark.createDataFrame(texts, "document int, xml string")
rows = tamis_spark.match(df, made).collect()
arrays = tamis_spark.match(df, {"x": "//c"}, as_array=True, errors="drop").collect()
files = tamis_spark.match_files(spark, ["in", "gone.xml"], made).collect()
records = tamis_spark.match_files(spark, "in/1.xml", made, record="b").collect()
wanted = {"record": "{u}b", "on_bad_record": "resume"}
bad = "<p:x xmlns:p='u'><p:b/><p:b>&e;</p:b><p:b><a/></p:b></p:x>"
resumed = tamis_spark.match(spark.createDataFrame([(1, bad)], "n int, xml string"), made, **wanted)
summary = tamis_spark.run(spark, made, ["in", "gone.xml"], "out", on_progress=print)
tamis_spark.run(spark, made, ["in"], "table:orders")
again = tamis_spark.run(spark, made, ["in"], "table:orders", only_new=True)
table = spark.sql("SELECT m.* FROM orders_matches m JOIN orders_runs USING (run)").collect()
try:
    tamis_spark.run(spark, made, ["in"], "table:no such.name.at.all")
except tamis.TamisError as error:
    unwritable = str(error)
uri = "file://" + sys.argv[3] + "/in/*.xml"
uris = tamis_spark.match_files(spark, uri, made, errors="drop").collect()
utf_16 = "<?xml version='1.0' encoding='UTF-16'?><a/>"
texts = spark.createDataFrame([(1, utf_16)], "n int, xml string")
ignored = tamis_spark.match(texts, made, declared_encoding="ignore").collect()
nodes = tamis_spark.match(df, made, nodes="all", values=True, errors="drop").collect()
try:
    nowhere = tamis_spark.match_files(spark, ["in", "nope.xml"], made)
except tamis.UsageError as error:
    nowhere = str(error)
lines = spark.readStream.schema("xml string").text(sys.argv[2])
query = tamis_spark.match(lines, made).writeStream.format("memory").queryName("answers").start()
query.processAllAvailable()
query.stop()
print(json.dumps({
    "module": type(spark).__module__,
    "match": [[row.document, row.subscription, row.error and row.error.code] for row in rows],
    "arrays": [[row.document, row.subscriptions] for row in arrays],
    "files": [[row.document, row.subscription, row.error and row.error.code] for row in files],
    "records": [[row.record, row.subscription] for row in records],
    "resumed": [[row.record, row.subscription, row.error is None] for row in resumed.collect()],
    "nowhere": nowhere,
    "table": [[row.document, row.subscription] for row in table],
    "again": again.documents,
    "unwritable": unwritable,
    "uris": [[row.document, row.subscription] for row in uris],
    "ignored": [[row.n, row.subscription] for row in ignored],
    "nodes": [[row.subscription, len(row.nodes), row.nodes[0].value] for row in nodes],
    "summary": summary[:1] + summary[2:4],
    "stream": sorted(row.subscription for row in spark.table("answers").collect()),
}))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


@pytest.mark.spark
def test_a_client_of_spark_connect(server: str, write: Callable[..., None], tmp_path: Path) -> None:
    xml = "<a><b n='2'/><b n='1'/></a>"
    write({"in/1.xml": xml, "in/2.xml": "<c>", "lines/1.txt": "<a><b n='2'/></a>\n<b/>\n"})
    (tmp_path / "gone.xml").symlink_to("nowhere")
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, server, str(tmp_path / "lines"), str(tmp_path)],
        capture_output=True,
        check=False,
        timeout=300,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    found = json.loads(done.stdout)
    assert found.pop("module").startswith("pyspark.sql.connect")
    assert found.pop("unwritable").startswith("cannot write table:no such.name.at.all: ")
    malformed, unreadable = "document-malformed", "document-unreadable"
    assert found == {
        "match": [[1, 1, None], [1, 2, None], [2, None, malformed]],
        "arrays": [[1, []], [3, ["x"]]],
        "files": [
            ["in/1.xml", 1, None],
            ["in/1.xml", 2, None],
            ["in/2.xml", None, malformed],
            ["gone.xml", None, unreadable],
        ],
        "records": [[0, 2]],
        "resumed": [[1, None, False], [2, 1, True]],
        "nowhere": "nope.xml: there is no such file or folder",
        "table": [["in/1.xml", 1], ["in/1.xml", 2]],
        "again": 0,
        "uris": [[f"file://{tmp_path}/in/1.xml", 1], [f"file://{tmp_path}/in/1.xml", 2]],
        "ignored": [[1, 1]],
        "nodes": [[1, 1, ""], [2, 1, ""]],
        "summary": [3, 2, 2],
        "stream": [1, 2],
    }


OF_CORPORA = """
import sys
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tamis import spark as tamis_spark

remote, program, folder, *paths = sys.argv[1:]
spark = SparkSession.builder.remote(remote).getOrCreate()
tamis_spark.run(spark, program, paths, folder + "/out")
found = tamis_spark.match_files(spark, paths, program).toArrow()
pq.write_table(found, folder + "/files.parquet")
"""


@pytest.mark.spark
@pytest.mark.corpora
def test_all_corpora(
    server: str, tmp_path: Path, all_corpora: tuple[tamis.CompiledMatcher, list[Path]]
) -> None:
    matcher, paths = all_corpora
    matcher.save(tmp_path / "all.tamis")
    command = [sys.executable, "-c", OF_CORPORA, server, str(tmp_path / "all.tamis")]
    done = subprocess.run(
        [*command, str(tmp_path), *map(str, paths)],
        capture_output=True,
        check=False,
        timeout=300,
        env=os.environ | {"PYTHONWARNINGS": "ignore"},
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    expected = in_process(matcher, {str(path): path for path in paths})
    assert answers_in(tmp_path / "out") == expected
    rows = pq.read_table(tmp_path / "files.parquet").to_pylist()
    said = {
        (row["document"], row["subscription"], (row["error"] or {}).get("message")) for row in rows
    }
    assert said == expected
    assert len(rows) == len(said)
