"""Spark's answers are those of the same subscriptions in this process."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import tamis
from tamis.documents import record_batch
from tamis.spark import match, match_files, program, run, splits, stream
from tamis.spark.splits import list_files, splits_of
from tamis_workload.observed.generator import draw_from_documents
from tests.spark.answers import Answers, answers_in, in_process
from tests.support.corpora import CORPORA, corpus
from tests.support.oracles import read
from tests.support.replay import command
from tests.support.strategies import NAMESPACES, documents, subscriptions


def on_spark(spark: SparkSession, matcher: tamis.CompiledMatcher, given: Sequence[str]) -> Answers:
    df = spark.createDataFrame(list(enumerate(given)), "document long, xml string")
    rows = match(df, matcher).select("document", "subscription", "error.message").collect()
    assert len(rows) == len(set(rows))
    return {tuple(row) for row in rows}


@pytest.mark.spark
@settings(
    max_examples=12,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # shrinking would take many Spark jobs
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
    ],
)
@given(
    texts=st.lists(documents() | st.sampled_from(["<a>", "", "<a>&b;</a>"]), max_size=40),
    expressions=st.lists(subscriptions(), min_size=1, max_size=20),
)
def test_drawn_documents(spark: SparkSession, texts: list[str], expressions: list[str]) -> None:
    matcher = tamis.compile(dict(enumerate(expressions)), namespaces=NAMESPACES)
    expected = in_process(matcher, dict(enumerate(texts)))
    found = on_spark(spark, matcher, texts)
    for document, subscription, _ in list(found ^ expected)[:5]:
        if subscription is not None:
            note(command(expressions[subscription], texts[document], NAMESPACES))
    assert found == expected


@pytest.mark.spark
@pytest.mark.corpora
@pytest.mark.parametrize("name", sorted(CORPORA))
def test_real_documents(spark: SparkSession, tmp_path: Path, name: str) -> None:
    paths = corpus(name)
    good = [path for path in paths[:8] if read(path) is not None]
    drawn = draw_from_documents(good, 40, seed=7)
    matcher = tamis.compile(enumerate(drawn.expressions), namespaces=drawn.namespaces)
    run(spark, matcher, paths, tmp_path)
    found: Answers = set()
    for folder in ("matches", "errors"):
        for row in pq.read_table(tmp_path / folder).to_pylist():
            found.add((row["document"], row.get("subscription"), row.get("message")))
    expected = in_process(matcher, {str(path): path for path in paths})
    assert found == expected
    assert len(expected) > len(paths) / 2


@pytest.mark.spark
def test_records_behind_bad_ones(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By their namespaces, and wherever they are read: no good record is lost."""
    monkeypatch.setattr(record_batch, "BATCH_RECORDS", 7)
    monkeypatch.setattr(splits, "RANGE_BYTES", 1000)
    monkeypatch.setattr(splits, "SHARED_BYTES", 2000)
    damage = {60: "<p:r>&e;</p:r>", 61: "<p:r><b>", 99: "<p:r"}
    rows = (f"<p:r n='{n}'>{'<b/>' * (n % 3)}</p:r>\n{damage.get(n, '')}" for n in range(200))
    text = f"<p:all xmlns:p='u'>{''.join(rows)}</p:all>"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.xml").write_text(text)
    (tmp_path / "in" / "2.xml").write_text(text.replace("p:", "other:").replace(":p", ":other"))
    (tmp_path / "in" / "3.xml").write_text("<r xmlns='u'><b/></r>")
    matcher = tamis.compile({1: "//b", 2: "/p:r[@n > 150]"}, namespaces={"p": "u"})
    wanted: dict[str, Any] = {"record": "{u}r", "on_bad_record": "resume"}
    paths = sorted((tmp_path / "in").iterdir())
    expected = {
        (str(path), match.record, id, match.error.message if match.error else None)
        for path in paths
        for match in matcher.match_records(path, "{u}r", on_bad_record="resume")
        for id in ([None] if match.error else match)
    }
    assert len([row for row in expected if row[3]]) == 6
    assert len({row[:2] for row in expected if row[2] == 1}) == 2 * 133
    listed = splits_of(list_files([*map(str, paths)]), "", "{u}r", matcher.limits)
    assert len(listed) == 5  # up to the first bad record

    def of_rows(rows: Any) -> set[Any]:
        return {(r.document, r.record, r.subscription, r.error and r.error.message) for r in rows}

    assert of_rows(match_files(spark, paths, matcher, **wanted).collect()) == expected
    df = spark.createDataFrame(
        [(str(path), path.read_text()) for path in paths], "document string, xml string"
    )
    assert of_rows(match(df, matcher, **wanted).collect()) == expected
    matcher.save(tmp_path / "saved.tamis")
    source = spark.read.format("tamis").options(
        **wanted, subscriptions=str(tmp_path / "saved.tamis")
    )
    assert of_rows(source.load(str(tmp_path / "in")).collect()) == expected
    run(spark, matcher, paths, tmp_path / "run", **wanted)
    stream(
        spark, matcher, tmp_path / "in", tmp_path / "stream", trigger="now", **wanted
    ).awaitTermination()
    for folder in ("run", "stream"):
        found = {
            (row["document"], row["record"], row.get("subscription"), row.get("message"))
            for kind in ("matches", "errors")
            for row in pq.read_table(tmp_path / folder / kind).to_pylist()
        }
        assert found == expected


@pytest.mark.spark
@pytest.mark.corpora
def test_every_way_gives_the_same(
    spark: SparkSession, tmp_path: Path, all_corpora: tuple[tamis.CompiledMatcher, list[Path]]
) -> None:
    """A divided program, arrays, the source, and a stream of files."""
    matcher, paths = all_corpora
    expected = in_process(matcher, {str(path): path for path in paths})
    whole = program(matcher)
    divided = program(matcher, bytes_max=whole.size // 2)
    assert len(divided.partitions) > 1
    run(spark, divided, paths, tmp_path / "divided")
    assert answers_in(tmp_path / "divided") == expected
    arrays: Answers = set()
    for row in match_files(spark, paths, whole, as_array=True).collect():
        if row.error is not None:
            arrays.add((row.document, None, row.error.message))
        arrays.update((row.document, id, None) for id in row.subscriptions or ())
    assert arrays == expected
    (tmp_path / "in").mkdir()
    names: dict[object, Any] = {}
    for number, path in enumerate(paths):
        link = tmp_path / "in" / f"{number}{''.join(path.suffixes[-1:])}"
        if link.suffix in (".xml", ".gz"):
            link = link.with_name(f"{number}.xml{'.gz' if link.suffix == '.gz' else ''}")
            link.write_bytes(path.read_bytes())
            names[str(link)] = str(path)
    options: dict[str, Any] = {"trigger": "now", "files_max": 40}
    stream(spark, whole, tmp_path / "in", tmp_path / "stream", **options).awaitTermination()
    streamed = {(names[name], id, said) for name, id, said in answers_in(tmp_path / "stream")}
    assert streamed == {row for row in expected if row[0] in names.values()}
