"""``tamis run``, and the function behind it: files in, Parquet out, whatever is wrong with some."""

import gzip
import os
import re
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import tamis
from tamis.spark import job, program, run
from tamis.spark.splits import list_files
from tests.spark.test_output import as_before
from tests.support.running import COMMAND, Outcome
from tests.support.running import run as run_here

SUBSCRIPTIONS = "large\t//order[total > 100]\nurgent\t//order[@urgent]\n//item\n"
FILES: dict[str, str | bytes] = {
    "orders.tsv": SUBSCRIPTIONS,
    "in/1.xml": "<order urgent='yes'><total>250</total><item/></order>",
    "in/2.xml": "<order>\n<total>5</order>",
    "in/3.xml": "<order><total>5</total></order>",
    "in/4.xml": b"",
    "in/5.xml": "<?xml version='1.0' encoding='latin-1'?><order><item n='é'/></order>".encode(
        "latin-1"
    ),
}
MATCHES = [("in/1.xml", "3"), ("in/1.xml", "large"), ("in/1.xml", "urgent"), ("in/5.xml", "3")]


def read(folder: str | Path, *columns: str) -> list[tuple[Any, ...]]:
    table = pq.read_table(folder).select(columns).to_pydict()
    return sorted(zip(*table.values(), strict=True))


def matches(output: str) -> list[tuple[Any, ...]]:
    return read(f"{output}/matches", "document", "subscription")


def errors(output: str) -> list[tuple[Any, ...]]:
    return read(f"{output}/errors", "document", "code", "line")


@pytest.mark.spark
def test_files_are_answered_and_errors_stay_where_they_are(
    spark: SparkSession, write: Callable[..., None]
) -> None:
    write(FILES | {"empty/notes.txt": "no XML"})
    Path("gone.xml").symlink_to("nowhere")
    paths = ["in", Path("gone.xml"), "empty", "in/[12].xml", "/proc/self/mem"]
    summary = run(spark, "orders.tsv", paths, "out")
    assert matches("out") == MATCHES
    assert errors("out") == [
        ("/proc/self/mem", "document-unreadable", None),  # where there is one, it has no first byte
        ("empty", "document-unreadable", None),
        ("gone.xml", "document-unreadable", None),
        ("in/2.xml", "document-malformed", 2),
        ("in/4.xml", "document-malformed", 1),
    ]
    size = sum(len(text) for name, text in FILES.items() if name.startswith("in/"))
    assert summary[:4] == (8, size, 4, 5)
    assert summary.plan == "1 task share the documents, with a program of 0 MB"


VERSIONS = [("set_version", "string"), ("tamis_version", "string")]
COLUMNS = {
    "matches": [
        ("document", "string"),
        ("record", "bigint"),
        ("subscription", "bigint"),
        *VERSIONS,
    ],
    "errors": [
        ("document", "string"),
        ("record", "bigint"),
        ("code", "string"),
        ("message", "string"),
        ("line", "bigint"),
        ("column", "bigint"),
        ("offset", "bigint"),
        ("subscription", "bigint"),
    ],
    "manifest": [
        ("file", "string"),
        ("size", "bigint"),
        ("modified", "timestamp"),
        *VERSIONS,
        ("run", "string"),
        ("read", "timestamp"),
    ],
}


@pytest.mark.spark
@pytest.mark.parametrize("is_added", [False, True])
def test_others_read_what_was_written(
    spark: SparkSession, write: Callable[..., None], is_added: bool
) -> None:
    """Spark, DuckDB and pandas; also where it was added to what an earlier version wrote."""
    write(FILES)
    run(spark, {1: "//order"}, ["in/3.xml"], "out")
    if is_added:
        as_before(Path("out"))
        run(spark, {1: "//order"}, ["in/2.xml", "in/3.xml"], "out", only_new=True)
    rows = {"matches": 1, "errors": is_added, "manifest": 1 + is_added}
    assert sorted(COLUMNS) == [name for name in sorted(os.listdir("out")) if name[0] != "."]
    for name, columns in COLUMNS.items():
        frame = spark.read.parquet(str(Path("out", name).absolute()))
        assert frame.dtypes == columns
        known = [row.asDict() for row in frame.collect()]
        table = duckdb.sql(f"SELECT * FROM read_parquet('out/{name}/*.parquet')")
        names = [column for column, _ in columns]
        assert table.columns == names
        assert (len(table), len(known)) == (rows[name], rows[name])
        again = pd.read_parquet(Path("out", name))
        assert list(again.columns) == names
        for column in ("document", "subscription", "message", "file", "size"):
            if column in names:
                expected = sorted(row[column] for row in known if row[column] is not None)
                assert sorted(again[column].dropna()) == expected
                found = [value for (value,) in table[column].fetchall() if value is not None]
                assert sorted(found) == expected
    seen = int(again.sort_values("file")["modified"].iloc[-1].timestamp() * 1e6)
    assert abs(seen - os.stat("in/3.xml").st_mtime_ns // 1000) <= 1


@pytest.mark.spark
def test_odd_file_names(spark: SparkSession, write: Callable[..., None]) -> None:
    write({"in/ü %41 #?.xml": "<order/>"})
    with open(os.fsencode("in/") + b"caf\xe9.xml", "wb") as file:
        file.write(b"<order/>")
    with open(os.fsencode("in/") + b"b\xe4d.xml", "wb") as file:
        file.write(b"<order>")
    run(spark, {"o": "/order"}, ["in"], "out put:1")
    assert matches("out put:1") == [("in/caf?.xml", "o"), ("in/ü %41 #?.xml", "o")]
    assert [row[:2] for row in errors("out put:1")] == [("in/b?d.xml", "document-malformed")]


@pytest.mark.spark
@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_and_folders(spark: SparkSession, write: Callable[..., None]) -> None:
    write(FILES | {"locked/1.xml": "<order/>"})
    Path("in/1.xml").chmod(0)
    Path("locked").chmod(stat.S_IXUSR)
    try:
        run(spark, "orders.tsv", ["in/1.xml", "in/5.xml", "locked"], "out")
    finally:
        Path("locked").chmod(0o755)
    assert matches("out") == [("in/5.xml", "3")]
    assert [row[0] for row in errors("out")] == ["in/1.xml", "locked"]


@pytest.mark.spark
def test_a_job_that_fails_leaves_the_old_results(
    spark: SparkSession, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(FILES)
    run(spark, "orders.tsv", ["in"], "out")
    monkeypatch.setattr(SparkSession, "createDataFrame", None)
    with pytest.raises(TypeError):
        run(spark, {"o": "//order"}, ["in"], "out", overwrite=True)
    assert matches("out") == MATCHES
    assert sorted(os.listdir("out")) == [".tamis-lock", "errors", "manifest", "matches"]


ARGUMENTS = ("run", "--subscriptions", "orders.tsv", "--output", "out")


def run_process(*arguments: str, **environment: str) -> Outcome:
    """The installed command, as a process of its own."""
    done = subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        check=False,
        timeout=300,
        env=os.environ | environment,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.spark
def test_the_command(write: Callable[..., None]) -> None:
    """A whole run, with its own Spark: quiet but for the summary, and nothing left lying about."""
    write(FILES)
    Path("gone.xml").symlink_to("nowhere")
    done = run_process(*ARGUMENTS, "--input", "in/1.xml", "gone.xml", "in/2.xml")
    assert done.status == 3, done.err
    assert done.out == ""
    line, where = done.err.splitlines()
    assert line.startswith("tamis: 3 documents (0.0 MB), 3 matches, 2 errors; ")
    assert where == "tamis: what is wrong with them is in out/errors"
    assert matches("out") == MATCHES[:3]
    assert [row[:2] for row in errors("out")] == [
        ("gone.xml", "document-unreadable"),
        ("in/2.xml", "document-malformed"),
    ]
    assert sorted(os.listdir()) == ["gone.xml", "in", "orders.tsv", "out"]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["nope"], "tamis: nope: there is no such file or folder\n"),
        (["in", "nope.xml"], "tamis: nope.xml: there is no such file or folder\n"),
        (["in/*.html"], "tamis: in/*.html: no file has a name like this\n"),
        (["nope", "--stream"], "tamis: nope: there is no such folder\n"),
    ],
)
def test_paths_that_lead_nowhere_end_it_before_anything_starts(
    write: Callable[..., None], paths: list[str], message: str
) -> None:
    write(FILES)
    outcome = run_here(*ARGUMENTS, "--input", *paths)
    assert outcome[:] == (2, "", message)
    assert sorted(os.listdir()) == ["in", "orders.tsv"]


@pytest.mark.spark
def test_a_declared_encoding_that_is_wrong(
    spark: SparkSession, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"orders.tsv": "x\t//a\n", "in/1.xml": "<?xml version='1.0' encoding='utf-16'?><a/>"})
    monkeypatch.setattr(tamis.spark, "start_spark", lambda *_: nullcontext(spark))
    assert run_here(*ARGUMENTS, "--input", "in").status == 3
    for more in (["--overwrite"], ["--stream", "--trigger", "now", "--checkpoint", "checkpoint"]):
        asked = [*ARGUMENTS, "--input", "in", "--declared-encoding", "ignore", *more]
        assert run_here(*asked).status == 0
        assert {Path(row[0]).name for row in matches("out")} == {"1.xml"}


@pytest.mark.spark
def test_what_is_left_out_is_told(
    spark: SparkSession, write: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """Of folders, also as URIs, and archives; each once, with what counts as a document."""
    members = {"1.xml": "<order/>", "b.kml": "<kml/>", ".hidden": "", "ONE.XML": "<order/>"}
    write(FILES | {f"f/{name}": text for name, text in members.items()})
    for name, mode in (("t.tar", "w"), ("t.tar.gz", "w:gz")):
        with tarfile.open(name, mode) as archive:
            archive.add("f/1.xml")
            archive.add("f/b.kml")
    with zipfile.ZipFile("z.zip", "w") as packed:
        packed.write("f/1.xml")
        packed.write("f/b.kml")
    uri = f"file://{os.getcwd()}/f"
    summary = run(spark, {"x": "//order"}, [uri, "f", "t.tar", "t.tar.gz", "z.zip"], "out")
    assert summary[:1] + summary[2:4] == (5, 5, 0)  # two are found twice
    said = [message for message in caplog.messages if "left out" in message]
    end = "1 file left out, whose name is not like *.xml or *.xml.gz: "
    assert sorted(said) == sorted(
        [f"{place}: {end}b.kml" for place in ("f", os.path.abspath("f"))]
        + [f"{place}: {end}f/b.kml" for place in ("t.tar", "t.tar.gz", "z.zip")]
    )


@pytest.mark.spark
def test_the_command_over_old_results(
    spark: SparkSession, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(FILES | {"out/matches/old.parquet": ""})
    monkeypatch.setattr(tamis.spark, "start_spark", lambda *_: nullcontext(spark))
    outcome = run_here(*ARGUMENTS, "--input", "in/5.xml", "--overwrite")
    assert outcome.status == 0
    assert outcome.err.startswith("tamis: 1 document (0.0 MB), 1 match, 0 errors; ")
    assert (matches("out"), errors("out")) == (MATCHES[3:], [])


def test_without_java_it_says_so(write: Callable[..., None]) -> None:
    write(FILES)
    nowhere = dict.fromkeys(("PATH", "JAVA_HOME", "TAMIS_JVM_DIRS"), "/nowhere")
    done = run_process(*ARGUMENTS, "--input", "in", **nowhere)
    assert done == (
        2,
        "",
        "tamis: Spark needs Java 17 or newer, and none was found: install it (on Debian or Ubuntu, "
        "the package openjdk-17-jre-headless) or set JAVA_HOME to it\n",
    )


def test_bad_subscriptions_are_all_listed_before_anything_starts(
    write: Callable[..., None],
) -> None:
    write(FILES | {"orders.tsv": "x\t//a[\ny\t//b\nx\t//c\n//d/parent::e\n"})
    outcome = run_here(*ARGUMENTS, "--input", "in")
    assert outcome.status == 2
    heads = [line.split(":")[1] for line in outcome.err.splitlines() if "orders.tsv, line" in line]
    assert heads == [" orders.tsv, line 1", " orders.tsv, line 3", " orders.tsv, line 4"]
    assert not Path("out").exists()


def test_results_that_exist_are_not_replaced_unasked(write: Callable[..., None]) -> None:
    write(FILES | {"out/errors/part.parquet": ""})
    outcome = run_here(*ARGUMENTS, "--input", "in")
    assert outcome.status == 2
    assert outcome.err.startswith("tamis: out has errors already: name another folder")


@pytest.mark.spark
def test_a_file_that_vanishes_after_it_was_listed(
    spark: SparkSession, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(FILES)
    listed = list_files(["in"])
    monkeypatch.setattr(job, "list_files", lambda _: listed)
    Path("in/1.xml").unlink()
    Path("in/2.xml").write_text("<order/>")
    run(spark, "orders.tsv", ["in"], "out")
    assert matches("out") == [("in/5.xml", "3")]
    assert errors("out") == [
        ("in/1.xml", "document-unreadable", None),
        ("in/4.xml", "document-malformed", 1),
    ]


@pytest.mark.spark
def test_the_first_error_may_end_the_job(spark: SparkSession, write: Callable[..., None]) -> None:
    write(FILES)
    with pytest.raises(PythonException, match=r"in/[24]\.xml: "):
        run(spark, "orders.tsv", ["in"], "out", errors="fail")
    assert os.listdir("out") == [".tamis-lock"]
    run(spark, "orders.tsv", ["in/1.xml"], "out", errors="fail")
    assert matches("out") == MATCHES[:3]


@pytest.mark.spark
def test_subscriptions_that_are_skipped_are_in_the_errors(
    spark: SparkSession, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = "orders\t//order\nopen\t//order[\nlast\t//order[last()]\n"
    write(FILES | {"bad.tsv": bad})
    monkeypatch.setattr(tamis.spark, "start_spark", lambda *_: nullcontext(spark))
    arguments = ("run", "--subscriptions", "bad.tsv", "--input", "in/2.xml", "--output", "out")
    assert run_here(*arguments).status == 2
    assert run_here(*arguments, "--skip-bad").status == 3
    assert set(read("out/errors", "line", "column", "code", "document")) == {
        (2, 11, "document-malformed", "in/2.xml"),
        (2, 9, "subscription-syntax", None),
        (3, 9, "subscription-unsupported", None),
    }
    messages = pq.read_table("out/errors")["message"].to_pylist()
    assert any(message.startswith("subscription 'last': ") for message in messages)


@pytest.mark.spark
def test_only_what_is_new(spark: SparkSession, write: Callable[..., None]) -> None:
    write(FILES)
    first = run(spark, "orders.tsv", ["in/1.xml", "in/2.xml"], "out", only_new=True)
    assert first[:1] + first[2:4] == (2, 3, 1)
    assert run(spark, "orders.tsv", ["in/1.xml", "in/2.xml"], "out", only_new=True)[:4] == (0,) * 4
    again = run(spark, {"three": "//item"}, ["in"], "out", only_new=True)
    assert again[:1] + again[2:4] == (3, 1, 1)
    assert matches("out") == [*MATCHES[:3], ("in/5.xml", "three")]
    assert [row[0] for row in errors("out")] == ["in/2.xml", "in/4.xml"]
    manifest = pq.read_table("out/manifest").to_pylist()
    here = f"{os.getcwd()}/"
    versions = {row["file"].removeprefix(here): row["set_version"] for row in manifest}
    assert len(manifest) == 5
    assert versions["in/1.xml"] == program("orders.tsv").set_version != versions["in/5.xml"]
    os.utime("in/1.xml")  # it was changed: perhaps into something else
    assert run(spark, "orders.tsv", ["in"], "out", only_new=True).documents == 1


@pytest.mark.spark
@pytest.mark.parametrize("record", [None, "order"])
def test_what_could_not_be_read_is_tried_again(
    spark: SparkSession, write: Callable[..., None], record: str | None
) -> None:
    """But not what was answered in part: that would be answered twice."""
    write(FILES)
    packed = gzip.compress(b"<a>" + b"<order/>" * 50_000 + b"</a>")
    Path("in/6.xml.gz").write_bytes(packed[:20])
    Path("in/7.xml.gz").write_bytes(packed[:-20])
    for name, mode in (("in/8.tar.gz", "w:gz"), ("in/9.tar", "w")):
        with tarfile.open(name, mode) as archive:
            archive.add("in/1.xml")
            archive.add("in/6.xml.gz", "0.xml")
            archive.addfile(tarfile.TarInfo("1.xml"))
    with Path("in/9.tar").open("r+b") as file:
        file.seek(-7500, 2)  # in the second member
        file.write(b"no header" * 800)
    with zipfile.ZipFile("in/a.zip", "w") as packed_too:
        packed_too.writestr("1.xml", "<order urgent='yes'/>")
    whole = Path("in/a.zip").read_bytes()
    Path("in/a.zip").write_bytes(whole.replace(b"urgent='yes'", b"urgent='YES'"))  # its checksum
    Path("gone.xml").symlink_to("nowhere")
    paths = ["gone.xml", *sorted(map(str, Path("in").iterdir()))]
    first = run(spark, "orders.tsv", paths, "out", record=record, only_new=True)
    before = matches("out")
    again = run(spark, "orders.tsv", paths, "out", record=record, only_new=True)
    assert matches("out") == before
    tried = ["gone.xml", "in/6.xml.gz", *([] if record else ["in/7.xml.gz"]), "in/a.zip"]
    assert again[0] == again[3] == len(tried)
    assert first.errors > again.errors
    read = set(pq.read_table("out/manifest")["file"].to_pylist())
    known = {path for path in paths if path in read or os.path.abspath(path) in read}
    assert set(paths) - known == set(tried)


@pytest.mark.spark
def test_what_one_part_could_not_read_is_told(
    spark: SparkSession, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a divided program: it was answered in part, so it is an error and not tried again."""
    write(FILES)
    whole = program("orders.tsv")
    divided = program("orders.tsv", bytes_max=whole.size // 2)
    collected = job.collected

    def one_fails(*given: Any) -> list[dict[str, Any]]:
        done = collected(*given)
        done[-1]["unreadable"].append(0)  # of the last part
        return done

    monkeypatch.setattr(job, "collected", one_fails)
    done = run(spark, divided, ["in/1.xml", "in/5.xml"], "out")
    assert (done.documents, done.errors) == (2, 1)
    assert [row[:2] for row in errors("out")] == [("in/1.xml", "document-unreadable")]
    assert len(pq.read_table("out/manifest")) == 2


@pytest.mark.spark
@pytest.mark.parametrize("parts", [1, 2])
def test_subscriptions_that_fail_on_a_document(
    spark: SparkSession, write: Callable[..., None], parts: int
) -> None:
    """Each is a row of the errors, also beside those of an earlier version; the others answer."""
    deep = "<a>" * 3000 + "</a>" * 3000  # deeper than libxml2's own limit
    write({"in/1.xml": "<a>", "in/2.xml": deep, "in/3.xml": "<a/>"})
    asked = {1: "//a/a", 2: "//a[last()]", 3: "//a[last() = 2]", 4: "//a"}
    matcher = tamis.compile(asked, unsupported="slow", limits=tamis.Limits(depth=5000))
    run(spark, matcher, "in/1.xml", "out", only_new=True)
    as_before(Path("out"))
    whole = program(matcher)
    made = program(matcher, bytes_max=whole.size // parts + parts)
    assert len(made.partitions) == parts
    summary = run(spark, made, "in", "out", only_new=True)
    assert summary[:1] + summary[2:4] == (2, 4, 2)
    assert matches("out") == [("in/2.xml", 1), ("in/2.xml", 4), ("in/3.xml", 2), ("in/3.xml", 4)]
    table = pq.read_table("out/errors").to_pylist()
    wrong = [(row["document"], row["code"], row["subscription"]) for row in table]
    assert sorted(wrong, key=str) == [
        ("in/1.xml", "document-malformed", None),
        ("in/2.xml", "document-lxml", 2),
        ("in/2.xml", "document-lxml", 3),
    ]
    assert {"lxml cannot parse" in row["message"] for row in table if row["subscription"]} == {True}
    assert run(spark, made, "in", "out", only_new=True).documents == 0


@pytest.mark.spark
def test_ids_of_another_type_are_not_added(spark: SparkSession, write: Callable[..., None]) -> None:
    write(FILES)
    run(spark, "orders.tsv", ["in/1.xml"], "out")
    with pytest.raises(tamis.UsageError, match="has ids of the type string"):
        run(spark, {1: "//item"}, ["in"], "out", only_new=True)


@pytest.mark.spark
def test_what_a_driver_left_that_died_is_removed(
    spark: SparkSession, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends when the results are in place and the manifest is not."""
    write(FILES)
    run(spark, "orders.tsv", ["in/1.xml"], "out", only_new=True)
    rename = Path.rename

    def rename_or_die(path: Path, target: Path) -> Path:
        if path.parent.name == "manifest":
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", rename_or_die)
        with pytest.raises(KeyboardInterrupt):
            run(spark, "orders.tsv", ["in/5.xml"], "out", only_new=True)
    run(spark, "orders.tsv", ["in/3.xml"], "out", only_new=True)
    assert matches("out") == MATCHES[:3]
    run(spark, "orders.tsv", ["in/5.xml"], "out", only_new=True)
    assert matches("out") == MATCHES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing option '--input'"),
        (["--input", "in", "--conf", "spark.x"], "--conf spark.x: expected KEY=VALUE"),
        (["--input", "in", "--engine", "warp"], "there is no engine 'warp'"),
        (["--input", "in", "--namespaces", "gone"], "cannot read gone"),
        (["--input", "in", "--unsupported", "maybe"], "Invalid value for '--unsupported'"),
    ],
)
def test_wrong_usage(write: Callable[..., None], arguments: list[str], message: str) -> None:
    write(FILES)
    outcome = run_here(*ARGUMENTS, *arguments)
    assert (outcome.status, message in outcome.err) == (2, True), outcome.err


def test_an_output_that_cannot_be_written(write: Callable[..., None]) -> None:
    write(FILES)
    outcome = run_here(*ARGUMENTS, "--input", "in", "--output", "/dev/null/x")
    assert (outcome.status, outcome.out) == (1, "")
    assert outcome.err.startswith("tamis: cannot write /dev/null/x: ")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--master", "nowhere"], "Master must either be yarn or start with spark, k8s, or local"),
        (["--conf", "spark.driver.memory=much"], "Invalid maximum heap size: -Xmxmuch"),
    ],
)
def test_spark_that_does_not_start(
    write: Callable[..., None], arguments: list[str], message: str
) -> None:
    write(FILES)
    done = run_process(*ARGUMENTS, "--input", "in", *arguments)
    assert done.status == 2
    assert done.err.startswith("tamis: Spark does not start: ")
    assert message in done.err
    assert len(done.err.splitlines()) <= 3


@pytest.mark.spark
def test_a_job_that_spark_gives_up(
    spark: SparkSession, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What Spark says is passed on, without the stack of the JVM."""
    write(FILES)
    monkeypatch.setattr(tamis.spark, "start_spark", lambda *_: nullcontext(spark))
    failing = spark.range(1).select(F.raise_error(F.lit("no")))
    monkeypatch.setattr(job, "list_files", lambda _: failing.collect())
    outcome = run_here(*ARGUMENTS, "--input", "in/5.xml")
    assert outcome.status == 1
    assert outcome.err.startswith("tamis: Spark could not finish the job:\n")
    assert "no" in outcome.err
    assert "\tat " not in outcome.err
    assert os.listdir("out") == [".tamis-lock"]


def test_a_summary_of_nothing() -> None:
    summary = tamis.spark.Summary(0, 0, 0, 0, 0.5)
    assert str(summary) == ("0 documents (0.0 MB), 0 matches, 0 errors; 0.5 s, 0.0 MB/s")


@pytest.mark.spark
def test_the_ui_says_what_a_job_does(spark: SparkSession, write: Callable[..., None]) -> None:
    write(FILES)
    spark.sparkContext.setJobDescription("mine")
    run(spark, {"x": "//a"}, "in", "out")
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)  # type: ignore[attr-defined]
    said = [jobs.apply(number).description().toString() for number in range(jobs.size())]
    assert any(
        re.match(r"Some\(tamis \d{8}T\d{6}-[0-9a-f]{8}: \d files, \d tasks? share the", text)
        for text in said
    )
    assert spark.sparkContext.getLocalProperty("spark.job.description") == "mine"
    spark.sparkContext.setLocalProperty("spark.job.description", None)


@pytest.mark.spark
def test_a_tag_that_no_record_has(
    spark: SparkSession, write: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    write({"in/1.xml": "<p:all xmlns:p='u'><p:a/></p:all>"})
    for tag, found in (("a", 0), ("p:a", 1)):
        caplog.clear()
        summary = run(spark, {"x": "/*"}, "in", "out", record=tag, overwrite=True)
        assert summary.matches == found
        assert ("there is no record a: write the tag as" in caplog.text) == (not found)


@pytest.mark.spark
def test_progress_is_told(spark: SparkSession, write: Callable[..., None]) -> None:
    write(FILES)
    told: list[job.Progress] = []
    found = run(spark, "orders.tsv", "in", "out", on_progress=told.append)
    last = told[-1]
    assert last[:4] == found[:4]
    assert last.bytes == last.bytes_all
    assert str(last).endswith("0 s left")


@pytest.mark.spark
def test_the_command_shows_its_progress_on_terminals(write: Callable[..., None]) -> None:
    write(FILES)
    ours, theirs = os.openpty()
    command = [COMMAND, "run", "-s", "orders.tsv", "--input", "in", "--output", "out"]
    with subprocess.Popen(command, stderr=theirs, stdin=subprocess.DEVNULL) as running:
        os.close(theirs)
        said = b""
        try:
            while chunk := os.read(ours, 1 << 16):
                said += chunk
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    *shown, last = said.decode().split("\r\x1b[K")
    assert running.returncode == 3
    assert "5 documents" in shown[-1]
    assert "left" in shown[-1] or len(shown[-1]) >= 80
    assert last.startswith("tamis: 5 documents")
