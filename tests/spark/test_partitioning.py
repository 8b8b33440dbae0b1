"""Programs that are too large for a worker: divided, and the answers are the same."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import tamis
from tamis.spark import ProgramArtifact, match, match_files, program, run
from tests.support.running import run as run_here

SUBSCRIPTIONS = {f"s{number}": f"//a[@n = {number}]" for number in range(50)} | {
    "all": "//*",
    "not": "not(//a)",
    "first": "contains(.//a, 'x')",  # for another engine
}
FILES = {f"in/{number}.xml": f"<a n='{number}'>x</a>" for number in range(20)} | {
    "in/20.xml": "<b/>",
    "in/bad.xml": "<a>",
}


@pytest.fixture(scope="module")
def divided() -> ProgramArtifact:
    whole = program(SUBSCRIPTIONS)
    made = program(SUBSCRIPTIONS, bytes_max=whole.size // 3)
    assert len(made.parts) > 2
    assert sum(part.count for part in made.parts) == whole.count == made.count
    assert {part.set_version for part in made.parts} == {whole.set_version}
    return made


def matched(rows: list[Any]) -> list[tuple[object, ...]]:
    found = [(row["document"], row["subscription"], row["error"] is None) for row in rows]
    return sorted(found, key=repr)


def expected() -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []
    matches = tamis.compile(SUBSCRIPTIONS).match_many(map(Path, FILES))
    for name, match_of_it in zip(FILES, matches, strict=True):
        if match_of_it.error is not None:
            found.append((name, None, False))
        else:
            found += [(name, id, True) for id in match_of_it]
    return sorted(found, key=repr)


@pytest.mark.spark
def test_a_divided_program_answers_all(
    spark: SparkSession, write: Callable[..., None], divided: ProgramArtifact
) -> None:
    write(FILES)
    assert matched(match_files(spark, "in", divided).collect()) == expected()
    df = spark.createDataFrame([*FILES.items()], "document string, xml string")
    assert matched(match(df, divided).collect()) == expected()
    done = run(spark, divided, "in", "out")
    assert (done.documents, done.errors) == (len(FILES), 1)
    assert done.plan.endswith(f"in {len(divided.parts)} parts, each for 1 task of its own")
    rows = pq.read_table("out/matches").to_pylist()
    assert sorted((row["document"], row["subscription"], True) for row in rows) == [
        row for row in expected() if row[2]
    ]


@pytest.mark.spark
def test_streams_of_a_divided_program(
    spark: SparkSession, tmp_path: Path, divided: ProgramArtifact
) -> None:
    (tmp_path / "1.txt").write_text("<a n='5'>x</a>\n<a>\n")
    lines = spark.readStream.schema("xml string").text(str(tmp_path))
    answers = match(lines, divided, keep=["xml"])
    query = answers.writeStream.format("memory").queryName("parts").start()
    query.processAllAvailable()
    query.stop()
    rows = spark.table("parts").collect()
    found = [(row.xml, row.subscription) for row in rows]
    assert sorted(found, key=repr) == [
        ("<a n='5'>x</a>", "all"),
        ("<a n='5'>x</a>", "first"),
        ("<a n='5'>x</a>", "s5"),
        ("<a>", None),
    ]


def test_what_needs_the_whole_is_refused(divided: ProgramArtifact) -> None:
    from tamis.spark.answers import MatchSpec  # noqa: PLC0415

    with pytest.raises(tamis.UsageError, match="one row a document needs all subscriptions"):
        MatchSpec.of(divided, as_array=True)
    MatchSpec.of(replace(divided, parts=()), as_array=True)


@pytest.mark.spark
def test_the_command_says_how_it_divides(
    spark: SparkSession, write: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import nullcontext  # noqa: PLC0415

    many = "".join(f"{number}\t//a[@n = 'value {number}']\n" for number in range(20_000))
    write({"many.tsv": many, "in/1.xml": "<a n='value 77'/>"})
    monkeypatch.setattr(tamis.spark, "start_spark", lambda *_: nullcontext(spark))
    outcome = run_here(
        *("run", "--subscriptions", "many.tsv", "--input", "in", "--output", "out"),
        *("--program-memory", "1"),
    )
    assert outcome.status == 0
    assert " tasks: a program of " in outcome.err.splitlines()[1]
    assert pq.read_table("out/matches")["subscription"].to_pylist() == ["77"]
