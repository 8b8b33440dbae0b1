"""Subscriptions as data: from wherever they are, compiled once, mapped once a worker."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

import tamis
from tamis.core.errors import OtherVersion
from tamis.language.subscriptions import Subscriptions
from tamis.matching.matcher import load_matcher
from tamis.spark import Reloading, match, program
from tamis.spark.answers import MatchSpec
from tamis.spark.frames import AnswerColumn
from tamis.spark.program import ProgramArtifact, _loaded

SUBSCRIPTIONS = {"a": "//a", "big": "//a[@n > 1]", "none": "//z"}


def test_subscriptions_of_every_kind(tmp_path: Path) -> None:
    file = tmp_path / "s.tsv"
    file.write_text("".join(f"{id}\t{text}\n" for id, text in SUBSCRIPTIONS.items()))
    matcher = tamis.compile(SUBSCRIPTIONS, limits=tamis.Limits(depth=10))
    saved = tmp_path / "s.tamis"
    matcher.save(saved)
    parquet = tmp_path / "s.parquet"
    columns = {"expression": [*SUBSCRIPTIONS.values()], "id": [*SUBSCRIPTIONS], "more": [1, 2, 3]}
    pq.write_table(pa.table(columns).take([2, 0, 1]), parquet)
    (tmp_path / "table").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "table" / "part.parquet")
    for subscriptions in (
        *(str(file), file, SUBSCRIPTIONS, tamis.Subscriptions(SUBSCRIPTIONS), saved),
        *(parquet, tmp_path / "table", program(SUBSCRIPTIONS)),
    ):
        assert list(program(subscriptions).loaded().ids) == ["a", "big", "none"]
        assert program(subscriptions).set_version == program(SUBSCRIPTIONS).set_version
    assert program(saved).limits.depth == 10


@pytest.mark.spark
def test_subscriptions_in_a_table(spark: SparkSession) -> None:
    rows = [(3, "//z"), (1, "//a"), (2, "//b")]
    df = spark.createDataFrame(rows, "id int, expression string")
    made = program(df.repartition(2))
    assert (list(made.loaded().ids), made.id_type) == ([1, 2, 3], "bigint")
    assert made == program(df.orderBy("id"))
    with pytest.raises(tamis.UsageError, match="columns id and expression, and not only expr"):
        program(df.select("expression"))
    with pytest.raises(tamis.UsageError, match="without id or expression"):
        program(df.withColumn("expression", F.lit(None).cast("string")))


def test_namespaces_come_with_what_is_parsed_here(tmp_path: Path) -> None:
    assert program({"x": "//p:a[last()]"}, namespaces={"p": "urn:p"}, unsupported="slow").count == 1
    made = program({"x": "//a"})
    for given in (tamis.compile({"x": "//a"}), made, made.path):
        with pytest.raises(tamis.UsageError, match="for Subscriptions"):
            program(given, namespaces={"p": "urn:p"})
        with pytest.raises(tamis.UsageError, match="for Subscriptions"):
            program(given, default_namespace="urn:p")


def test_a_default_namespace_is_of_the_program_and_of_its_parts() -> None:
    asked = {str(number): f"/a{number}" for number in range(4)}
    whole = program(asked, default_namespace="urn:d")
    assert whole.set_version != program(asked).set_version
    parts = program(asked, default_namespace="urn:d", bytes_max=whole.size // 2).parts
    found = [list(part.loaded().match("<a3 xmlns='urn:d'/>")) for part in parts]
    assert [id for ids in found for id in ids] == ["3"]


def test_bad_subscriptions_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(tamis.BadSubscriptions, match="2 bad subscriptions"):
        program({"x": "//a[", "y": "//b["})
    with pytest.raises(tamis.UsageError, match="only their type tells apart"):
        program({1: "//a", "1": "//b"})
    with pytest.raises(tamis.UsageError, match=r"cannot read nowhere\.tsv"):
        program("nowhere.tsv")
    with pytest.raises(tamis.UsageError, match=r"cannot read .*nowhere\.parquet"):
        program(tmp_path / "nowhere.parquet")


@pytest.mark.parametrize(
    ("ids", "type"),
    [([1, -5], "bigint"), ([1, "a"], "string"), ([2**63], "string"), ([], "string")],
)
def test_the_type_of_ids(ids: list[int | str], type: str) -> None:
    assert program([(id, "//a") for id in ids]).id_type == type


def test_the_version_of_a_set_is_of_what_matches() -> None:
    version = program({"x": "//p:a", "y": "//b"}, namespaces={"p": "u"}).set_version
    others = [
        program({"x": "//p:a", "y": "//c"}, namespaces={"p": "u"}),
        program({"x": "//p:a", "z": "//b"}, namespaces={"p": "u"}),
        program({"x": "//p:a", "y": "//b"}, namespaces={"p": "v"}),
        program({"x": "//p:ay", "/": "//b"}, namespaces={"p": "u"}),
    ]
    assert version not in {other.set_version for other in others}
    assert program({"x": "//p:a", "y": "//b"}, namespaces={"p": "u"}).set_version == version


def test_a_worker_maps_a_program_once() -> None:
    made = program({"s": "//only[here]"})
    again = program({"s": "//only[here]"})
    assert made == again
    assert made.loaded() is again.loaded()
    assert program({"s": "//another"}).loaded() is not made.loaded()


def test_a_program_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    made = program({"s": "//a[1]"})
    other = program({"s": "//a[2]"})
    wrong = replace(made, path=other.path)
    _loaded.cache_clear()
    with pytest.raises(OtherVersion, match="not what the driver sent"):
        wrong.loaded()


def test_the_warm_cache_is_sent_too(tmp_path: Path) -> None:
    matcher = tamis.compile(SUBSCRIPTIONS)
    list(matcher.match_many([b"<a n='1'/>"] * 3))
    matcher.save(tmp_path / "s.tamis", warm=True)
    made = program(tmp_path / "s.tamis")
    assert Path(made.path).with_name(Path(made.path).name + ".cache").exists()


def test_a_process_loads_and_checks_a_program_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver does not load what it compiled; a saved file is loaded once, and not again."""
    loaded: list[Path] = []

    def counted(path: str | os.PathLike[str]) -> tamis.CompiledMatcher:
        loaded.append(Path(path))
        return load_matcher(path)

    monkeypatch.setattr(sys.modules[ProgramArtifact.__module__], "load_matcher", counted)
    made = program({"once": "//a[b]"})
    limits = replace(made.limits, depth=77)
    assert loaded == []
    assert list(made.loaded().match("<a><b/></a>")) == ["once"]
    assert made.loaded() is program({"once": "//a[b]"}).loaded()
    assert loaded == [Path(made.path)]
    tamis.compile({"twice": "//a[c]"}).save(tmp_path / "s.tamis")
    program(tmp_path / "s.tamis")
    assert loaded[1:] == [tmp_path / "s.tamis"]
    assert program(load_matcher(made.path).with_limits(limits)).loaded().limits == limits


@pytest.mark.spark
def test_the_file_may_be_replaced_while_it_is_used(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "s.tamis"
    tamis.compile({"old": "//a"}).save(file)
    made = program(file)
    tamis.compile({"new": "//a"}).save(file)
    df = spark.createDataFrame([("<a/>",)], "xml string")
    assert [row.subscription for row in match(df, made).collect()] == ["old"]
    assert [row.subscription for row in match(df, file).collect()] == ["new"]


@pytest.mark.spark
def test_tasks_carry_the_name_alone(spark: SparkSession) -> None:
    """What is pickled into each task does not grow with the subscriptions."""
    many = program({number: f"//a[@n = {number}]" for number in range(20_000)})
    df = spark.createDataFrame([("<a n='7'/>",)], "xml string")
    assert [row.subscription for row in match(df, many).collect()] == [7]
    from pyspark.cloudpickle import dumps  # noqa: PLC0415 - what Spark pickles with

    bad = Subscriptions({f"b{n}": "//a[" for n in range(1_000)} | {"a": "//a"}, skip_bad=True)
    for made in (many, program(bad)):
        (part,) = made.partitions
        task = AnswerColumn(part, MatchSpec.of(made), (), "xml")
        assert len(dumps(task)) < 1_500
    assert os.path.getsize(many.path) > 100_000


@pytest.mark.spark
def test_threads_send_the_same_program(spark: SparkSession) -> None:
    many = program({number: f"//a[@n = {number}]" for number in range(150_000)})
    df = spark.createDataFrame([("<a n='7'/>",)], "xml string")
    with ThreadPoolExecutor(4) as pool:
        rows = list(pool.map(lambda _: match(df, many).collect(), range(4)))
    assert [row.subscription for (row,) in rows] == [7] * 4


def test_a_folder_of_subscriptions_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with tamis.Matcher.open(folder, namespaces={"p": "urn:p"}) as live:
        live.add("x", "//p:a")
        newest = Reloading(folder)
        assert newest.now().count == 1
        live.add("y", "//b")
        assert [newest.now().count, program(live).count, program(str(folder)).count] == [2, 2, 2]
        live.compact()
        live.remove("x")
        assert list(newest.now().loaded().ids) == ["y"]
