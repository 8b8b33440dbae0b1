"""``match_files`` and the format ``tamis``: files, folders, archives and URIs of them."""

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import (
    AnalysisException,
    PySparkException,
    PythonException,
    StreamingQueryException,
)
from pyspark.sql import DataFrame, SparkSession

import tamis
from tamis.core.limits import Limits
from tamis.documents import record_batch
from tamis.spark import match_files, program, run, splits
from tamis.spark.answers import SplitReader
from tamis.spark.files import TamisSource
from tamis.spark.splits import list_files

SUBSCRIPTIONS = {"a": "//a", "big": "//a[@n > 1]", "none": "//z"}
FILES: dict[str, str | bytes] = {
    "in/1.xml": "<a n='1'/>",
    "in/2.xml.gz": gzip.compress(b"<x><a n='2'/></x>"),
    "in/3.xml": "<x/>",
    "in/4.xml": "<a>",
    "in/notes.txt": "no XML",
}
ANSWERS = [("1.xml", "a"), ("2.xml.gz", "a"), ("2.xml.gz", "big"), ("4.xml", None)]


def zipped(files: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(files: dict[str, str | bytes], mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def rows(answers: DataFrame) -> list[tuple[str, str | None]]:
    found = [(row.document, row.subscription) for row in answers.collect()]
    return sorted(found, key=lambda row: (row[0], row[1] or ""))


@pytest.mark.spark
def test_what_paths_stand_for(spark: SparkSession, write: Callable[..., None]) -> None:
    archives = {
        "z.zip": zipped(FILES),
        "t.tar": tarred(FILES, "w"),
        "c.tar.gz": tarred(FILES, "w:gz"),
    }
    write(FILES | archives)
    here = f"file://{os.getcwd()}"
    given = {
        "in": "in/",
        "in/*.xml*": "in/",
        "z.zip": "z.zip/in/",
        "t.tar": "t.tar/in/",
        "c.tar.gz": "c.tar.gz/in/",
        f"{here}/in": f"{here}/in/",
        f"{here}/in/*.xml*": f"{here}/in/",
        f"{here}/z.zip": f"{here}/z.zip/in/",
        f"{here}/c.*": f"{here}/c.tar.gz/in/",
        f"{here}/t.tar": f"{here}/t.tar/in/",
    }
    for is_uri in (False, True):  # what is found twice, as a path and as a URI, is read once
        paths = [path for path in given if path.startswith("file:") == is_uri]
        found = rows(match_files(spark, paths, SUBSCRIPTIONS))
        assert found == sorted(
            {(given[path] + name, id) for path in paths for name, id in ANSWERS},
            key=lambda row: (row[0], row[1] or ""),
        )
    assert len(rows(match_files(spark, [*given], SUBSCRIPTIONS))) == len(found)


@pytest.mark.spark
def test_what_cannot_be_read_is_in_the_errors(
    spark: SparkSession, write: Callable[..., None]
) -> None:
    whole = zipped(FILES)
    write(
        {
            "cut.xml.gz": gzip.compress(b"<a>" + os.urandom(5000).hex().encode())[:-900],
            "cut.zip": whole[: len(whole) // 2],
            "cut.tar.gz": tarred(FILES, "w:gz")[:150],
            "empty.zip": zipped({"notes.txt": ""}),
            "empty.tar": tarred({"notes.txt": ""}, "w"),
            "good.xml": "<a/>",
            "spoilt.zip": whole.replace(b"<a n='1'/>", b"<a n='3'/>"),  # not what its CRC is of
        }
    )
    Path("gone.xml").symlink_to("nowhere")
    Path("gone.zip").symlink_to("nowhere")
    answers = match_files(spark, sorted(os.listdir()), SUBSCRIPTIONS).collect()
    wrong = {row.document: row.error.code for row in answers if row.error}
    said = {row.document: row.error.message for row in answers if row.error}
    names = set(wrong)
    assert {"gone.xml", "gone.zip"} <= names
    assert {"cut.xml.gz", "empty.zip", "empty.tar", "spoilt.zip/in/1.xml"} <= names
    assert any(name.startswith("cut.zip") for name in names)
    assert any(name.startswith("cut.tar.gz") for name in names)
    assert set(wrong.values()) == {"document-unreadable", "document-malformed"}
    assert "CRC" in said["spoilt.zip/in/1.xml"]
    good = {(row.document, row.subscription) for row in answers if not row.error}
    assert ("good.xml", "a") in good
    assert ("spoilt.zip/in/2.xml.gz", "big") in good


@pytest.mark.spark
def test_paths_that_lead_nowhere(spark: SparkSession, write: Callable[..., None]) -> None:
    write({**FILES, "s.tsv": "a\t//a\n"})
    here = os.getcwd()
    for path, message in (
        ("nope", "nope: there is no such file or folder"),
        ("nope/*.xml", r"nope/\*.xml: no file has a name like this"),
    ):
        for nowhere in (path, f"{here}/{path}"):
            with pytest.raises(tamis.UsageError, match=message):
                match_files(spark, ["in", nowhere], SUBSCRIPTIONS)
            reader = spark.read.format("tamis").option("subscriptions", f"{here}/s.tsv")
            with pytest.raises(AnalysisException, match=message):
                reader.load(nowhere)
    with pytest.raises(AnalysisException, match="nope: there is no such file or folder"):
        spark.sql(
            f"CREATE TABLE nowhere USING tamis OPTIONS (subscriptions '{here}/s.tsv') "
            f"LOCATION '{here}/nope'"
        )
    answers = match_files(spark, "in/1.xml", SUBSCRIPTIONS)
    Path("in/1.xml").unlink()  # it was there a moment ago
    with pytest.raises(PySparkException, match=r"in/1\.xml: there is no such file"):
        answers.collect()


@pytest.mark.spark
def test_a_job_may_end_with_the_first_error(
    spark: SparkSession, write: Callable[..., None]
) -> None:
    write(FILES)
    with pytest.raises(PythonException, match=r"in/4\.xml: the document ends inside <a>"):
        match_files(spark, "in", SUBSCRIPTIONS, errors="fail").collect()


@pytest.mark.spark
def test_documents_themselves_when_asked_for(
    spark: SparkSession, write: Callable[..., None]
) -> None:
    write(FILES)
    answers = match_files(spark, "in", SUBSCRIPTIONS, xml=True, as_array=True)
    assert answers.columns[:3] == ["document", "xml", "record"]
    found = {row.document: (row.xml, row.subscriptions) for row in answers.collect()}
    assert found["in/2.xml.gz"] == (b"<x><a n='2'/></x>", ["a", "big"])
    assert found["in/4.xml"] == (b"<a>", None)
    with pytest.raises(tamis.UsageError, match="the XML of records"):
        match_files(spark, "in", SUBSCRIPTIONS, record="a", xml=True)


@pytest.mark.spark
def test_the_format(spark: SparkSession, write: Callable[..., None]) -> None:
    """As a user of ``spark.read`` has it: Spark finds it by its package."""
    tsv = "".join(f"{id}\t{text}\n" for id, text in SUBSCRIPTIONS.items())
    write(FILES | {"s.tsv": tsv, "p.tsv": "x\t//p:a\n", "p.txt": "p urn:p"})
    here = os.getcwd()
    reader = spark.read.format("tamis")
    expected = [(f"{here}/in/{name}", id) for name, id in ANSWERS]
    program(SUBSCRIPTIONS).loaded().save("s.tamis")
    for file in ("s.tsv", "s.tamis"):
        answers = reader.option("subscriptions", f"{here}/{file}").load(f"{here}/in")
        assert rows(answers) == expected
    two = reader.option("errors", "drop").load([f"{here}/in/1.xml", f"{here}/in/3.xml"])
    assert (rows(two), two.columns[-1]) == ([(f"{here}/in/1.xml", "a")], "failed")
    Path("in/wrong").write_text("<?xml version='1.0' encoding='utf-16'?><a/>")
    for rule, id in (("check", None), ("ignore", "a")):
        asked = spark.read.format("tamis").option("subscriptions", f"{here}/s.tsv")
        found = asked.option("declared_encoding", rule).load(f"{here}/in/wrong")
        assert rows(found) == [(f"{here}/in/wrong", id)]
    values = reader.options(nodes="all", values=True, subscriptions=f"{here}/s.tsv")
    nodes = values.load(f"{here}/in/2.xml.gz").where("subscription = 'a'").collect()
    assert [node.value for row in nodes for node in row.nodes] == [""]
    options = {"subscriptions": f"{here}/p.tsv", "namespaces": f"{here}/p.txt", "as_array": "true"}
    arrays = spark.read.format("tamis").options(**options).load(f"{here}/in/1.xml").collect()
    assert [row.subscriptions for row in arrays] == [[]]
    options |= {"subscriptions": f"{here}/s.tsv", "default_namespace": "urn:d"}
    arrays = spark.read.format("tamis").options(**options).load(f"{here}/in/1.xml").collect()
    assert [row.subscriptions for row in arrays] == [[]]


@pytest.mark.spark
def test_the_format_in_sql(spark: SparkSession, write: Callable[..., None]) -> None:
    """A view or a table of a path, of several, of a location; each time with these answers."""
    write(FILES | {"s.tsv": "a\t//a\nbig\t//a[@n > 1]\n", "other/5.xml": "<a/>"})
    here = os.getcwd()
    of = f"subscriptions '{here}/s.tsv'"
    two = f"""paths '["{here}/in", "{here}/other/*.xml"]'"""
    both = [*ANSWERS, ("5.xml", "a")]
    for made, expected in (
        (f"TEMPORARY VIEW {{}} USING tamis OPTIONS ({of}, path '{here}/in')", ANSWERS),
        (f"TEMPORARY VIEW {{}} USING tamis OPTIONS ({of}, {two})", both),
        (f"TABLE {{}} USING tamis OPTIONS ({of}) LOCATION '{here}/in'", ANSWERS),
        (f"TABLE {{}} USING tamis OPTIONS ({of}, path '{here}/in') COMMENT 'c'", ANSWERS),
        (f"TABLE {{}} USING tamis OPTIONS ({of}, {two}) TBLPROPERTIES (k = 'v')", both),
    ):
        name = f"answers{abs(hash(made))}"
        spark.sql(f"CREATE {made.format(name)}")
        query = f"SELECT document, subscription FROM {name}"
        found = rows(spark.sql(query))
        assert [(os.path.basename(document), id) for document, id in found] == expected, made
        assert spark.sql(f"{query} WHERE error.code = 'document-malformed'").count() == 1
    drop = spark.read.option("errors", "drop").table(name)
    with pytest.raises(PySparkException, match="the table has other columns: make it anew"):
        drop.collect()
    for options, message in (
        (f"({of})", "which files"),
        (f"({of}, paths 'in')", "paths is a JSON list"),
        (f"({of}, file 'in', path 'in')", "there is no option file"),
        ("(path 'in')", "which subscriptions"),
    ):
        with pytest.raises(PySparkException, match=message):
            spark.sql(f"CREATE TABLE none USING tamis OPTIONS {options}")


@pytest.mark.spark
def test_a_format_that_is_asked_for_nonsense(
    spark: SparkSession, write: Callable[..., None]
) -> None:
    write({"bad.tsv": "x\t//a[\n", "good.tsv": "x\t//a\n"})
    for options, message in (
        ({}, "which subscriptions"),
        ({"subscriptions": "/nowhere.tsv"}, r"cannot read /nowhere\.tsv"),
        ({"subscriptions": f"{os.getcwd()}/bad.tsv"}, "1 bad subscription"),
        ({"subscriptions": f"{os.getcwd()}/good.tsv", "errors": "no"}, "write 'column'"),
    ):
        with pytest.raises(PySparkException, match=message):
            spark.read.format("tamis").options(**options).load("/tmp").collect()


RECORDS = [f"<r xmlns:p='u{n}'>\n<p:a n='{n}'>é</p:a></r>\n" for n in range(200)]


@pytest.mark.spark
def test_tasks_share_the_records_of_a_file(
    spark: SparkSession, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver divides the file; here in its own process, so that the pieces may be small."""
    text = "<all xmlns='u'>" + "".join(RECORDS[:150]) + "<g>" + "".join(RECORDS[150:]) + "</all>"
    write({"records.xml": text, "records.xml.gz": gzip.compress(text.encode()), "one.xml": "<r/>"})
    monkeypatch.setattr(record_batch, "BATCH_RECORDS", 7)
    monkeypatch.setattr(splits, "SHARED_BYTES", 1000)
    monkeypatch.setattr(splits, "RANGE_BYTES", 1000)
    asked = {n: f"//p:a[@n = {n}]" for n in range(200)} | {1000: "/u:r"}
    made = program(tamis.Subscriptions(asked, namespaces={"p": "u150", "u": "u"}))
    listed = list_files(["records.xml", "records.xml.gz", "one.xml"])
    found = splits.splits_of(listed, os.getcwd(), "r", made.limits)
    assert len([piece for piece in found if piece.path.endswith("records.xml")]) > 6
    assert len(found) == len({(piece.path, piece.part) for piece in found})
    summary = run(spark, made, ["records.xml", "records.xml.gz", "one.xml"], "out", record="r")
    answers = spark.read.parquet(f"{os.getcwd()}/out/matches").collect()
    for name in ("records.xml", "records.xml.gz"):
        own = sorted((row.record, row.subscription) for row in answers if row.document == name)
        matcher = made.loaded()
        expected = [
            (match.record, id)
            for match in matcher.match_records(Path(name), "r")
            if match.error is None
            for id in match
        ]
        assert own == sorted(expected)
        assert len(expected) > 190
    errors = spark.read.parquet(f"{os.getcwd()}/out/errors").orderBy("document").collect()
    assert [(row.document, row.record) for row in errors] == [
        ("records.xml", 200),
        ("records.xml.gz", 200),
    ]
    assert errors[0].asDict() | {"document": ""} == errors[1].asDict() | {"document": ""}
    assert (summary.documents, summary.errors) == (3, 2)


def listed_in(path: Path) -> list[splits.InputSplit]:
    return splits.splits_of(list_files([str(path)]), "/", None, Limits())


def test_a_tar_that_is_damaged_ends_in_an_error(tmp_path: Path) -> None:
    """What was there before is answered, compressed or not; so is what is linked, if it can be."""
    members = 5
    with tarfile.open(tmp_path / "whole.tar", "w") as archive:
        for number in range(members):
            info = tarfile.TarInfo(f"{number}.xml")
            info.size = 2000
            archive.addfile(info, io.BytesIO(b"<a>" + b"x" * 1993 + b"</a>"))
        folder = tarfile.TarInfo("0.xml")  # called as a member is, and nothing to read
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        link = tarfile.TarInfo("link.xml")
        link.type, link.linkname = tarfile.LNKTYPE, "0.xml"
        archive.addfile(link)
    whole = (tmp_path / "whole.tar").read_bytes()
    spoilt = bytearray(whole)
    spoilt[3 * 2560 : 3 * 2560 + 190] = b"\xff" * 190
    for data, good, bad in ((whole, 6, 0), (whole[:8000], 3, 1), (bytes(spoilt), 3, 1)):
        for name, packed in (("t.tar", data), ("t.tar.gz", gzip.compress(data))):
            (tmp_path / name).write_bytes(packed)
            listed = splits.splits_of(list_files([str(tmp_path / name)]), "/", None, Limits())
            reader = SplitReader(Limits(), as_streams=False)
            found = [document for piece in listed for _, document in reader.documents(piece)]
            wrong = [each for each in found if isinstance(each, tamis.DocumentError)]
            is_linked = name == "t.tar.gz" and data is whole
            assert (len(found) - len(wrong), len(wrong)) == (good - is_linked, bad + is_linked)


def test_a_zip_that_changed_is_an_error(tmp_path: Path) -> None:
    def packed(*names: str) -> None:
        with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
            for name in names:
                archive.writestr(name, f"<{name[0]}/>")

    packed("a.xml", "b.xml")
    listed = splits.splits_of(list_files([str(tmp_path / "z.zip")]), "/", None, Limits())
    packed("b.xml", "a.xml")
    reader = SplitReader(Limits(), as_streams=False)
    for piece in listed:
        ((_, document),) = reader.documents(piece)
        assert "was changed since" in str(document)


@pytest.mark.spark
def test_options_of_the_format_are_known(spark: SparkSession, write: Callable[..., None]) -> None:
    write({**FILES, "s.tsv": "a\t//a\n"})
    for name, value, message in (
        ("asArray", True, "there is no option asarray"),
        ("as_array", 1, "the option as_array is true or false, not '1'"),
        ("namespaces", "p=u", "namespaces is a file, with a prefix and its URI a line: p=u"),
    ):
        given = os.path.abspath("s.tsv")
        reader = spark.read.format("tamis").option("subscriptions", given)
        with pytest.raises(PySparkException, match=message):
            reader.option(name, value).load("in").collect()


@pytest.mark.spark
def test_the_format_streams_what_comes(
    spark: SparkSession, write: Callable[..., None], tmp_path: Path
) -> None:
    """Over two queries, each file once; the log is what the second one goes on from."""
    write(FILES | {"s.tsv": "x\t//a\n"})
    spark.dataSource.register(TamisSource)
    read = spark.readStream.format("tamis").option("subscriptions", os.path.abspath("s.tsv"))

    with pytest.raises(StreamingQueryException, match=r"needs \.option\(.log., FOLDER\)"):
        read.load(os.path.abspath("in")).writeStream.format("noop").start().awaitTermination(60)

    def answered(**options: Any) -> set[tuple[str, str | None]]:
        df = read.options(**options).load(os.path.abspath("in"))
        assert df.isStreaming
        writer = df.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
        writer.trigger(availableNow=True).start(str(tmp_path / "out")).awaitTermination(60)
        rows = [
            tuple(row)
            for row in spark.read.parquet(str(tmp_path / "out")).select(*columns).collect()
        ]
        assert len(rows) == len(set(rows))
        return {(os.path.basename(name), id or code) for name, id, code in rows}

    columns = ["document", "subscription", "error.code"]
    batch = spark.read.format("tamis").option("subscriptions", os.path.abspath("s.tsv"))
    frame = batch.load(os.path.abspath("in"))
    expected = {
        (os.path.basename(name), id or code) for name, id, code in frame.select(*columns).collect()
    }
    assert answered(log=str(tmp_path / "log"), files_max=1) == expected
    write({"in/new.xml": "<a/>"})
    assert answered(log=str(tmp_path / "log"), files_max=1) == expected | {("new.xml", "x")}


@pytest.mark.spark
def test_paths_as_spark_writes_them(spark: SparkSession, write: Callable[..., None]) -> None:
    """What Spark says of its own files is a path, and rows can be joined with it."""
    write({"in/a b.xml": "<a/>", "in/d=1/é.xml": "<a/>", "in/100%.xml": "<a/>"})
    folder = f"{os.getcwd()}/in"
    text = spark.read.option("recursiveFileLookup", "true").text(folder)
    said = [row[0] for row in text.select("_metadata.file_path").collect()]
    assert len(said) == 3
    local = [path.removeprefix("file:").replace("///", "/") for path in said]
    for paths in ([f"file:{path}" for path in local], [f"file://{path}" for path in local]):
        rows = match_files(spark, paths, {"x": "//a"}).collect()
        assert sorted((row.document, row.subscription) for row in rows) == [
            (path, "x") for path in sorted(paths)
        ]
    for pattern in (f"file:{folder}/**", f"file://{folder}/**/*.xml", f"file:{folder}/*.xml"):
        names = {row.document for row in match_files(spark, pattern, {"x": "//a"}).collect()}
        start = pattern.partition(folder)[0]
        assert names <= {start + path for path in local}
        assert len(names) == (3 if "**" in pattern else 2)
