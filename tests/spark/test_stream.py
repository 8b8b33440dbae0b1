"""Streams: every file answered once, whatever dies; into Parquet and into PostgreSQL."""

import os
import pickle
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import tamis
from tamis.spark import Reloading, Summary, program, run, stream
from tamis.spark.arrivals import ArrivalsReader, stream_folders
from tamis.spark.parquet import ParquetStore
from tamis.spark.postgres import PostgresStore
from tamis.spark.results import Run, rows_about
from tests.spark.servers import environment, postgres
from tests.support.running import COMMAND


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture
def database(server: str) -> str:
    """The URL of an empty database."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
    return server


def come(name: str, content: str) -> None:
    """A file comes, as a whole."""
    Path("part").write_text(content)
    Path("part").rename(Path("in", name))


def answer(spark: SparkSession, given: Any, output: str, **more: Any) -> list[Summary]:
    """Answers what is there; what was done, for each micro-batch."""
    done: list[Summary] = []
    more.setdefault("checkpoint", "checkpoint")
    more["on_batch"] = lambda *said: done.append(said[2])
    query = stream(spark, given, "in", output, trigger="now", **more)
    query.awaitTermination()
    return done


IS_OLD = pyspark.__version__ < "4.2"
"""Spark 4.1 sets no bounds to sources in Python: a micro-batch has all that came."""


def found(folder: str) -> list[tuple[Any, ...]]:
    rows = pq.read_table(f"{folder}/matches").to_pylist()
    return sorted((Path(row["document"]).name, row["subscription"]) for row in rows)


@pytest.mark.spark
def test_what_comes_is_answered_once(spark: SparkSession, write: Callable[..., None]) -> None:
    write(
        {"in/1.xml": "<a/>", "in/ü %41 #?.xml": "<a/>", "in/2.xml": "<a>", "in/notes.txt": "<a/>"}
    )
    (first,) = answer(spark, {"x": "//a"}, "out")
    assert first[:1] + first[2:4] == (3, 2, 1)
    assert answer(spark, {"x": "//a"}, "out") == []
    come("3.xml", "<a/>")
    come("4.xml", "<a/>")
    batches = [done.documents for done in answer(spark, {"x": "//a"}, "out", files_max=1)]
    assert batches == ([2] if IS_OLD else [1, 1])
    assert found("out") == [("1.xml", "x"), ("3.xml", "x"), ("4.xml", "x"), ("ü %41 #?.xml", "x")]
    assert len(pq.read_table("out/errors")) == 1
    assert len(set(ParquetStore("out").manifest()["run"].to_pylist())) == 1 + len(batches)
    done = run(spark, {"x": "//a"}, "in", "out", only_new=True)
    assert done.documents == 0  # whoever answered them
    come("old.xml", "<a/>")
    os.utime("in/old.xml", (0, 0))
    assert [done.documents for done in answer(spark, {"x": "//a"}, "out")] == [1]


def step(files: dict[str, str], renamed: dict[str, str] | None = None) -> None:
    for old, new in (renamed or {}).items():
        Path("in", old).rename(Path("in", new))
    for name, content in files.items():
        path = Path(os.fsdecode(b"in/" + name.encode("latin-1")))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


STEPS: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"empty.xml": "", "whole.xml": "<a/>", "bad.xml": "<a>", "notes.txt": "<a/>"}, {}),
    ({"_x.xml": "<a/>", ".x.xml": "<a/>", "_empty.xml": "", "a=b/1.xml": "<a/>"}, {}),
    ({"empty.xml": "<a/>"}, {}),  # it is filled
    ({}, {"whole.xml": "renamed.xml", "_x.xml": "x.xml", ".x.xml": "shown.xml"}),
    ({"bad.xml": "<a></a>", "renamed.xml": "<b/>", "x.xml": ""}, {}),  # grown, replaced, emptied
    (dict.fromkeys((
        "a b.xml", "a%20b.xml", "a#b.xml", "a?b.xml", "a:b.xml", "a\nb.xml", "a*b.xml", "[a].xml",
        "{a}.xml", "a\\b.xml", "\xc3\xbc.xml", "caf\xe9.xml", "'\".xml", "a+b.xml", "-.xml.gz",
    ), "<a/>"), {}),
]  # fmt: skip
"""What comes into a folder, with bytes of names as ISO 8859-1, after files were renamed."""


@pytest.mark.spark
def test_a_stream_reports_what_a_job_reports(
    spark: SparkSession, write: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """The same files, matches and errors, each time that something came or changed."""
    write({"in/first.xml": "<a/>"})
    counts = []
    for number, (files, renamed) in enumerate(STEPS):
        step(files, renamed)
        if number == len(STEPS) - 1:
            Path("in/folder.xml").mkdir()
            Path("in/broken.xml").symlink_to("gone")
        done = run(spark, {"x": "//a"}, "in", "job", only_new=True)
        assert [(one.documents, one.matches, one.errors) for one in answer(
            spark, {"x": "//a"}, "stream"
        )] == [(done.documents, done.matches, done.errors)]  # fmt: skip
        counts.append(done.documents)
        for folder in ("in", os.path.abspath("in")):
            said = f"{folder}: 1 file left out, whose name is not like *.xml or *.xml.gz: notes.txt"
            assert caplog.messages.count(said) == number + 1
    assert counts == [4, 2, 1, 3, 3, len(STEPS[-1][0]) + 2]
    for table, columns in (
        ("matches", ["document", "subscription"]),
        ("errors", ["document", "code", "message"]),
        ("manifest", ["file", "size", "modified"]),
    ):
        job, stream = (
            pq.read_table(f"{folder}/{table}").select(columns).to_pylist()
            for folder in ("job", "stream")
        )
        for row in job:
            row[columns[0]] = os.path.abspath(row[columns[0]])
        assert sorted(map(str, stream)) == sorted(map(str, job))
    assert answer(spark, {"x": "//a"}, "stream") == []


def test_a_log_of_arrivals(tmp_path: Path) -> None:
    """A driver dies while it writes, before and after Spark has noted a batch."""

    def reader() -> ArrivalsReader:
        return ArrivalsReader([str(tmp_path)], tmp_path / "log", 2)

    def files_of(found: ArrivalsReader, start: int) -> tuple[int, list[str]]:
        end = found.latestOffset({"batch": start})
        parts = found.partitions({"batch": start}, end)
        (batch,) = found.read(parts[0])
        return end["batch"], [Path(os.fsdecode(path)).name for path in batch["path"].to_pylist()]

    for number, name in enumerate(["1.xml", "2.xml", "3.xml", "caf\udce9.xml", "5.xml"]):
        (tmp_path / name).write_text("<a/>")
        os.utime(tmp_path / name, (number, number))
    first = reader()
    assert files_of(first, 0) == (1, ["1.xml", "2.xml"])
    assert files_of(reader(), 0) == (1, ["1.xml", "2.xml"])  # Spark did not note it
    assert files_of(first, 1) == (2, ["3.xml", "caf\udce9.xml"])
    log = (tmp_path / "log").read_bytes()
    (tmp_path / "log").write_bytes(log[:-10])
    again = reader()
    assert files_of(again, 1) == (2, ["3.xml", "caf\udce9.xml"])
    assert files_of(again, 2) == (3, ["5.xml"])
    assert (tmp_path / "log").read_bytes() == log
    again.commit({"batch": 2})
    assert files_of(again, 2) == (3, ["5.xml"])
    assert files_of(again, 3) == (3, [])
    (tmp_path / "1.xml").write_text("<a/>")
    again.prepareForTriggerAvailableNow()
    (tmp_path / "6.xml").write_text("<a/>")
    assert files_of(again, 3) == (4, ["1.xml"])
    assert files_of(again, 4) == (4, [])
    assert reader().latestOffset() == {"batch": 5}  # as Spark 4.1 asks, which gets all at once


def test_bytes_end_a_batch(tmp_path: Path) -> None:
    for number, size in enumerate([10, 20, 50, 10, 10, 10, 90]):
        (tmp_path / f"{number}.xml").write_bytes(b" " * size)
        os.utime(tmp_path / f"{number}.xml", (number, number))
    found = ArrivalsReader([str(tmp_path)], tmp_path / "log", files_max=3, bytes_max=40)
    found.prepareForTriggerAvailableNow()
    numbers = [sorted(Path(file.path).stem for file in found.waiting[n + 1]) for n in range(4)]
    assert numbers == [["0", "1"], ["2"], ["3", "4", "5"], ["6"]]
    sent = pickle.loads(pickle.dumps(found))
    assert not sent.seen
    assert not sent.waiting


@pytest.mark.spark
def test_a_checkpoint_of_an_earlier_version(
    spark: SparkSession, write: Callable[..., None]
) -> None:
    write({"in/1.xml": "<a/>", "checkpoint/sources/0/0": "v1"})
    with pytest.raises(tamis.UsageError, match="checkpoint is of an earlier version of Tamis"):
        answer(spark, {"x": "//a"}, "out")


@pytest.mark.spark
def test_files_of_the_folder_itself(spark: SparkSession, write: Callable[..., None]) -> None:
    """Not those of folders in it, nor of one whose name its own is a pattern of."""
    write({"in/1.xml": "<a/>", "in/k=1/2.xml": "<a/>", "in/j=2/s=3/3.xml": "<a/>"})
    (first,) = answer(spark, {"x": "//a"}, "out")
    assert first.documents == 1
    come("4.xml", "<a/>")
    answer(spark, {"x": "//a"}, "out")
    assert found("out") == [("1.xml", "x"), ("4.xml", "x")]
    write({"in[1]{a}/1.xml": "<a/>", "in1a/other.xml": "<a/>"})
    options = {"checkpoint": "another", "trigger": "now"}
    stream(spark, {"x": "//a"}, "in[1]{a}", "out2", **options).awaitTermination()
    assert found("out2") == [("1.xml", "x")]


@pytest.mark.parametrize(
    ("folder", "trigger", "message"),
    [
        ("in/1.xml", None, "in/1.xml is no folder"),
        ("gone", None, "gone: there is no such folder"),
        ("in", "often", 'write "now", or a time'),
    ],
)
def test_what_is_no_stream(
    write: Callable[..., None], folder: str, trigger: str | None, message: str
) -> None:
    write({"in/1.xml": "<a/>"})
    with pytest.raises(tamis.UsageError, match=message):
        stream_folders(folder, trigger)


@pytest.mark.spark
def test_a_new_version_takes_effect_with_the_next_batch(
    spark: SparkSession, write: Callable[..., None]
) -> None:
    write({"in/1.xml": "<a/>", "s.tsv": "x\t//a\n"})
    query = stream(spark, "s.tsv", "in", "out")
    try:
        query.processAllAvailable()
        Path("s.tsv").write_text("x\t//a\ny\t//a[\n")  # nobody can use it: the first one stays
        come("2.xml", "<a/>")
        query.processAllAvailable()
        Path("s.tsv").write_text("x\t//a\ny\t//*\n")
        come("3.xml", "<a/>")
        query.processAllAvailable()
        assert query.lastProgress["observedMetrics"].keys() == {"tamis"}
    finally:
        query.stop()
    assert found("out") == [("1.xml", "x"), ("2.xml", "x"), ("3.xml", "x"), ("3.xml", "y")]
    rows = pq.read_table("out/matches").to_pylist()
    versions = {Path(row["document"]).name: row["set_version"] for row in rows}
    assert versions["1.xml"] == versions["2.xml"] == program({"x": "//a"}).set_version
    assert versions["3.xml"] == program({"x": "//a", "y": "//*"}).set_version


@pytest.mark.spark
def test_folders_in_each_other(spark: SparkSession, write: Callable[..., None]) -> None:
    write({f"in/{n}.xml": "<a/>" for n in range(5)} | {f"in/b/{n}.xml": "<a/>" for n in range(5)})
    query = stream(spark, {"x": "//a"}, ["in", "in/b", "in"], "out", trigger="now", files_max=2)
    query.awaitTermination()
    assert len(found("out")) == len(pq.read_table("out/manifest")) == 10


@pytest.mark.spark
def test_a_new_version_that_does_not_fit(
    spark: SparkSession, write: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """Its ids are of another type: the one before stays, and so does the stream."""
    one = '{"id": 1, "expression": "//a"}'
    write({"s.ndjson": one, "in/1.xml": "<a/>"})
    newest = Reloading("s.ndjson")
    query = stream(spark, newest, "in", "out")
    query.processAllAvailable()
    for name, text in (
        ("2.xml", one.replace("1", '"x"')),
        ("3.xml", ""),
        ("4.xml", one.replace("1", "5")),
    ):
        Path("new").write_text(text)
        Path("new").rename("s.ndjson")
        come(name, "<a/>")
        query.processAllAvailable()
    query.stop()
    assert found("out") == [("1.xml", 1), ("2.xml", 1), ("4.xml", 5)]
    assert "the subscriptions before the new ones stay: ids of the type string" in caplog.text


@pytest.mark.spark
def test_a_batch_that_is_done_is_not_done_again(
    spark: SparkSession, write: Callable[..., None]
) -> None:
    """Spark dies before it notes that the last batch is done: it asks for it once more."""
    write({"in/1.xml": "<a/>"})
    answer(spark, {"x": "//a"}, "out")
    (commit,) = Path("checkpoint/commits").glob("[0-9]*")
    commit.unlink()
    Path("checkpoint/commits", f".{commit.name}.crc").unlink(missing_ok=True)
    assert answer(spark, {"y": "//a"}, "out") == []
    assert found("out") == [("1.xml", "x")]


@pytest.mark.spark
def test_another_stream_into_the_same_folder_has_other_batches(
    spark: SparkSession, write: Callable[..., None]
) -> None:
    write({"in/1.xml": "<a/>"})
    answer(spark, {"x": "//a"}, "out")
    answer(spark, {"y": "//a"}, "out", checkpoint="another")
    assert found("out") == [("1.xml", "x"), ("1.xml", "y")]


@pytest.mark.spark
def test_records_of_files_that_come(spark: SparkSession, write: Callable[..., None]) -> None:
    write({"in/1.xml": "<all><r n='1'/><r n='2'/></all>"})
    answer(spark, {"x": "/r[@n = 2]"}, "out", record="r")
    (row,) = pq.read_table("out/matches").to_pylist()
    assert row["record"] == 1


@pytest.mark.spark
def test_the_first_error_may_end_the_stream(
    spark: SparkSession, write: Callable[..., None]
) -> None:
    write({"in/bad.xml": "<a>"})
    with pytest.raises(StreamingQueryException, match=r"in/bad\.xml: the document ends"):
        answer(spark, {"x": "//a"}, "out", errors="fail")
    Path("in/bad.xml").write_text("<a/>")
    for _ in range(1 + IS_OLD):  # Spark 4.1 ends when it has repeated the batch that failed
        answer(spark, {"x": "//a"}, "out", errors="fail")
    assert found("out") == [("bad.xml", "x")]


def test_subscriptions_that_are_gone_for_a_while(tmp_path: Path) -> None:
    file = tmp_path / "s.tsv"
    file.write_text("x\t//a\n")
    source = Reloading(file)
    first = source.now()
    file.unlink()
    assert source.now() is first
    file.write_text("y\t//b\n")
    assert list(source.now().loaded().ids) == ["y"]
    with pytest.raises(tamis.UsageError, match="cannot read"):
        Reloading(tmp_path / "nowhere")


# -- PostgreSQL ------------------------------------------------------------------------------------


def rows_in(database: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database) as connection:
        return connection.execute(query).fetchall()


MATCHES = "SELECT document, record, subscription FROM tamis_matches ORDER BY 1, 2, 3"


@pytest.mark.spark
def test_into_postgresql(spark: SparkSession, write: Callable[..., None], database: str) -> None:
    write({"in/1.xml": "<a/>", "in/2.xml": "<a>"})
    answer(spark, {1: "//a", 2: "//b"}, database)
    come("3.xml", "<b/>")
    answer(spark, {1: "//a", 2: "//b"}, database)
    here = os.getcwd()
    assert rows_in(database, MATCHES) == [
        (f"{here}/in/1.xml", None, 1),
        (f"{here}/in/3.xml", None, 2),
    ]
    errors = rows_in(database, 'SELECT document, code, line, "column", "offset" FROM tamis_errors')
    assert errors == [(f"{here}/in/2.xml", "document-malformed", 1, 4, 3)]
    manifest = rows_in(database, "SELECT file, size, set_version FROM tamis_manifest ORDER BY 1")
    version = program({1: "//a", 2: "//b"}).set_version
    assert manifest == [
        (f"{here}/in/{name}", size, version)
        for name, size in (("1.xml", 4), ("2.xml", 3), ("3.xml", 4))
    ]
    come("4.xml", "<b/>")
    answer(spark, tamis.Subscriptions({1: "//a", 9: "//b["}, skip_bad=True), database)
    skipped = "SELECT document, code FROM tamis_errors WHERE document IS NULL"
    assert rows_in(database, skipped) == [(None, "subscription-syntax")]
    with pytest.raises(tamis.UsageError, match="ids of the type bigint"):
        answer(spark, {"x": "//a"}, database)


@pytest.mark.spark
def test_a_database_of_an_earlier_version(
    spark: SparkSession, write: Callable[..., None], database: str
) -> None:
    """It has no column of subscriptions that fail on a document, which are added."""
    deep = "<a>" * 3000 + "</a>" * 3000  # deeper than libxml2's own limit
    write({"in/1.xml": deep, "in/2.xml": "<a>"})
    PostgresStore(database).prepare("bigint")
    with psycopg.connect(database) as connection:
        connection.execute("ALTER TABLE tamis_errors DROP COLUMN subscription")
        connection.execute(
            "CREATE UNIQUE INDEX tamis_errors_key ON tamis_errors "
            "(batch, md5(document), record, line, md5(message)) NULLS NOT DISTINCT"
        )
    with pytest.raises(tamis.UsageError, match="ids of the type bigint"):
        answer(spark, {"x": "//a"}, database)
    asked = {1: "//a[last()]", 2: "//a[last() = 2]", 3: "//a/a"}
    matcher = tamis.compile(asked, unsupported="slow", limits=tamis.Limits(depth=5000))
    (done,) = answer(spark, matcher, database)
    assert done[2:4] == (1, 3)
    query = "SELECT code, subscription FROM tamis_errors ORDER BY 2"
    assert rows_in(database, query) == [
        ("document-lxml", 1), ("document-lxml", 2), ("document-malformed", None)
    ]  # fmt: skip


@pytest.mark.spark
def test_a_batch_is_in_postgresql_once(
    spark: SparkSession, write: Callable[..., None], database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver dies when the rows are written and the run is not noted; the set changes."""
    write({"in/1.xml": "<a/>", "in/2.xml": "<a>"})
    with monkeypatch.context() as patched:
        patched.setattr(PostgresStore, "publish", None)
        with pytest.raises(StreamingQueryException):
            answer(spark, {"x": "//a", "y": "//*"}, database)
    assert len(rows_in(database, MATCHES)) == 2
    answer(spark, {"x": "//a", "z": "//*"}, database)
    assert [row[2] for row in rows_in(database, MATCHES)] == ["x", "z"]
    assert rows_in(database, "SELECT count(*) FROM tamis_errors") == [(1,)]
    assert rows_in(database, "SELECT is_done FROM tamis_runs") == [(True,)]


@pytest.mark.spark
def test_rows_that_are_written_twice_are_there_once(database: str) -> None:
    """As two attempts of one task would, at once or one after the other."""
    from tamis.spark.splits import InputSplit  # noqa: PLC0415
    from tests.spark.test_output import ANSWER  # noqa: PLC0415

    place = PostgresStore(database)
    place.prepare("string")
    long = "".join(f"{n:x}" for n in range(9000))  # than what an index takes
    pieces = [InputSplit("a\0b", "/nowhere"), InputSplit(long, __file__)]
    firsts: list[int] = []
    with place.sink("r", "string") as sink, ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            written = list(pool.map(lambda task: sink.write(task, ANSWER(pieces)), [7, 7]))
            assert [(one["matches"], one["errors"]) for one in written] == [(0, 2)] * 2
            firsts.append(sum(one["is_first"] for one in written))
        assert firsts == [1, 0]
        assert sink.write(8, ANSWER(pieces))["is_first"]
    assert rows_in(database, "SELECT document FROM tamis_errors ORDER BY 1") == [(long,), ("a�b",)]


@pytest.mark.spark
def test_tasks_of_a_driver_that_died_write_nothing(database: str) -> None:
    """Whether they come before or after those of the next one, who may have other subscriptions."""
    from tamis.spark.splits import InputSplit  # noqa: PLC0415
    from tests.spark.test_output import ANSWER  # noqa: PLC0415

    place = PostgresStore(database)
    place.prepare("string")
    with place.sink("r", "string") as old, place.sink("r", "string") as new:
        with pytest.raises(tamis.UsageError, match="another driver has taken over r"):
            old.write(0, ANSWER([InputSplit("old", __file__)]))
        new.write(0, ANSWER([InputSplit("new", __file__)]))
        with pytest.raises(tamis.UsageError, match="another driver"):
            old.write(0, ANSWER([InputSplit("old", __file__)]))
        with pytest.raises(tamis.UsageError, match="another driver"):
            place.publish(old, Run("r", "string", "", {}, [], rows_about([], {})))
        assert not place.is_done("r")
        place.publish(new, Run("r", "string", "", {}, [], rows_about([], {})))
        with pytest.raises(tamis.UsageError, match="or it is done"):
            new.write(1, ANSWER([InputSplit("late", __file__)]))
    assert place.is_done("r")
    with pytest.raises(tamis.UsageError, match="another driver has done r"):
        place.sink("r", "string").__enter__()
    assert rows_in(database, "SELECT document FROM tamis_errors") == [("new",)]


@pytest.mark.spark
def test_a_database_that_dies_in_mid_batch(
    spark: SparkSession, write: Callable[..., None], database: str
) -> None:
    """One of its processes is killed, so it ends all others and recovers; so does the stream."""
    write({f"in/{number}.xml": "<a/>" for number in range(300)})
    subscriptions = {number: f"//a[count(b) < {number + 1}]" for number in range(200)}
    query = stream(spark, subscriptions, "in", database, checkpoint="checkpoint", trigger="now")
    copying = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'COPY new_matches %'"
    end = time.monotonic() + 60
    while not (found := rows_in(database, copying)):
        assert query.isActive, query.exception()
        assert time.monotonic() < end
    os.kill(found[0][0], signal.SIGKILL)
    with pytest.raises(StreamingQueryException, match="PostgreSQL: "):
        query.awaitTermination()
    while True:
        try:
            assert rows_in(database, "SELECT is_done FROM tamis_runs") == [(False,)]
            break
        except psycopg.OperationalError:  # it is not up yet
            assert time.monotonic() < end
            time.sleep(0.1)
    answer(spark, subscriptions, database)
    counted = "SELECT count(*), count(DISTINCT (document, subscription)) FROM tamis_matches"
    assert rows_in(database, counted) == [(300 * 200, 300 * 200)]
    assert rows_in(database, "SELECT is_done FROM tamis_runs") == [(True,)]


def test_a_database_that_is_not_there(write: Callable[..., None]) -> None:
    with pytest.raises(tamis.UsageError, match="PostgreSQL: "):
        PostgresStore("postgresql://nobody@127.0.0.1:1/nothing").prepare("string")


# -- the command -----------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_driver_that_is_killed(write: Callable[..., None]) -> None:
    """It is killed while files come, and goes on: no match is lost, and none is there twice."""
    write({"s.tsv": "x\t//a\ny\t/a[@n]\n", "in/0.xml": "<a n='0'/>"})
    arguments = ["run", "--subscriptions", "s.tsv", "--input", "in", "--output", "out", "--stream"]
    count = 1
    for kill in (signal.SIGKILL, signal.SIGTERM):
        with Path("log").open("wb") as log:
            driver = subprocess.Popen(
                [COMMAND, *arguments, "--max-files", "10"], stderr=log, env=environment(),
                start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + 120
        while b"stream-" not in Path("log").read_bytes():
            assert driver.poll() is None, Path("log").read_text()
            assert time.monotonic() < end
            time.sleep(0.05)
        for _ in range(20):
            come(f"{count}.xml", f"<a n='{count}'/>")
            count += 1
        time.sleep(0.5)
        if kill == signal.SIGTERM:
            while len(pq.read_table("out/manifest")) < count:
                assert time.monotonic() < end, Path("log").read_text()
                time.sleep(0.1)
            driver.terminate()
            assert driver.wait(timeout=60) == 0
            assert "stopped: started again" in Path("log").read_text()
        else:
            os.killpg(driver.pid, kill)  # the JVM and the workers are of its session
            driver.wait()
    expected = sorted((f"{n}.xml", id) for n in range(count) for id in ("x", "y"))
    assert found("out") == expected
    assert len(pq.read_table("out/manifest")) == count


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--overwrite", "--stream"], "choose one of --overwrite and --stream"),
        (["--trigger", "now"], "--max-files and --max-bytes are for --stream"),
        (["--output", "postgresql://x"], "a database is an output of --stream"),
    ],
)
def test_wrong_usage(write: Callable[..., None], arguments: list[str], message: str) -> None:
    write({"s.tsv": "x\t//a\n", "in/1.xml": "<a/>"})
    done = subprocess.run(
        [
            COMMAND,
            "run",
            "--subscriptions",
            "s.tsv",
            "--output",
            "out",
            "--input",
            "in",
            *arguments,
        ],
        check=False,
        capture_output=True,
    )
    assert (done.returncode, message in done.stderr.decode()) == (2, True), done.stderr
