"""Parquet written by tasks: complete or not there, whatever became of single attempts."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.spark import output
from tamis.spark.output import SCHEMAS, WriteTask, check_output, publish, staged
from tamis.spark.worker import AnswerTask, ShippedMatcher

NOTHING: dict[str, list[str]] = {"matches": [], "errors": []}


def write(staging: Path, *xml: str) -> dict[str, list[str]]:
    """Runs a task on these documents, and returns the files that it wrote."""
    shipped = ShippedMatcher.of(tamis.compile({"a": "//a", "all": "/*"}))
    answer = AnswerTask(shipped, pa.string(), ("document", "record"), "xml")
    names = ["document", "record", "xml"]
    batches = (
        pa.RecordBatch.from_arrays(
            [pa.array([text]), pa.nulls(1, pa.int64()), pa.array([text])], names
        )
        for text in xml
    )
    (done,) = WriteTask(answer, str(staging))(batches)
    (row,) = done.to_pylist()
    return {name: [row["file"]] if row[name] else [] for name in SCHEMAS}


def read(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of an output without their records, which are null."""
    tables = {name: pq.read_table(folder / name) for name in SCHEMAS}
    assert {name: table.schema for name, table in tables.items()} == SCHEMAS
    assert all(table["record"].null_count == len(table) for table in tables.values())
    return {
        name: sorted(zip(*table.drop_columns("record").to_pydict().values(), strict=True))
        for name, table in tables.items()
    }


def test_matches_and_errors_are_apart(tmp_path: Path) -> None:
    with staged(tmp_path) as staging:
        publish(staging, tmp_path, write(staging, "<a/>", "<", "<b/>"))
    assert read(tmp_path) == {
        "matches": [("<a/>", "a"), ("<a/>", "all"), ("<b/>", "all")],
        "errors": [("<", "document-malformed", "unclosed token", 1, 1)],
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["errors", "matches"]


def test_no_rows_still_have_a_schema(tmp_path: Path) -> None:
    with staged(tmp_path) as staging:
        publish(staging, tmp_path, NOTHING)
    assert read(tmp_path) == {"matches": [], "errors": []}


def test_row_groups_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "GROUP_ROWS", 10)
    with staged(tmp_path) as staging:
        files = write(staging, *["<a/>"] * 23)
        file = pq.ParquetFile(staging / "matches" / files["matches"][0])
        rows = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert rows == [10, 10, 10, 10, 6]


def test_attempts_that_do_not_count_leave_no_rows(tmp_path: Path) -> None:
    with staged(tmp_path) as staging:
        files = write(staging, "<a/>", "<")
        write(staging, "<a/>", "<")  # again, as a speculative attempt would
        publish(staging, tmp_path, files)
    assert len(read(tmp_path)["matches"]) == 2
    assert len(read(tmp_path)["errors"]) == 1


def test_a_task_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    with staged(tmp_path) as staging:
        publish(staging, tmp_path, write(staging, "<a/>"))

    def run_and_fail() -> Iterator[None]:
        with staged(tmp_path) as staging:
            write(staging, "<b/>")
            raise RuntimeError("the job failed")

    with pytest.raises(RuntimeError):
        run_and_fail()
    assert read(tmp_path)["matches"] == [("<a/>", "a"), ("<a/>", "all")]
    assert len(list(tmp_path.iterdir())) == 2


def test_results_are_replaced_only_if_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    assert check_output(tmp_path, overwrite=False) == tmp_path
    for text in ("<a/>", "<b/>"):
        with staged(tmp_path) as staging:
            publish(staging, tmp_path, write(staging, text))
    assert read(tmp_path)["matches"] == [("<b/>", "all")]
    assert (tmp_path / "mine.txt").exists()
    assert check_output(tmp_path, overwrite=True) == tmp_path
    with pytest.raises(tamis.UsageError, match="has matches and errors already: name another"):
        check_output(tmp_path, overwrite=False)


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(tamis.UsageError, match=r"file: (File exists|Not a directory)"):
        check_output(tmp_path / "file", overwrite=True)
    with pytest.raises(
        tamis.UsageError, match="cannot write s3://bucket/x: the output is a folder"
    ):
        check_output("s3://bucket/x", overwrite=True)


def test_workers_that_write_elsewhere_are_noticed(tmp_path: Path) -> None:
    with (
        staged(tmp_path) as staging,
        pytest.raises(tamis.UsageError, match="they must share it"),
    ):
        publish(staging, tmp_path, {"matches": ["unseen.parquet"], "errors": []})
    assert list(tmp_path.iterdir()) == []
