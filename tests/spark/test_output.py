"""Parquet written by tasks: complete or not there, whatever became of single attempts."""

import errno
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.documents.files import FileStatus
from tamis.spark import parquet, program, rows
from tamis.spark.answers import AnswerSplits, MatchSpec
from tamis.spark.job import WriteTask
from tamis.spark.parquet import ParquetSink, ParquetStore
from tamis.spark.results import MANIFEST, RESULTS, Run, rows_about, schemas
from tamis.spark.splits import list_files, splits_of

MADE = program({"a": "//a", "all": "/*"})
ANSWER = AnswerSplits(MADE, MatchSpec.of(MADE))
VERSIONS = ("set_version", "tamis_version")


def write(sink: ParquetSink, *xml: str, run: str = "r") -> Run:
    """Runs a task on these documents, and returns what it wrote."""
    paths = []
    for number, text in enumerate(xml):
        path = Path(sink.staging) / f"{number}.xml"
        path.write_text(text)
        paths.append(str(path))
    files = list_files(paths)
    splits = splits_of(files, "/", None, MADE.limits)
    named = [split._replace(name=text) for split, text in zip(splits, xml, strict=True)]
    batch = pa.RecordBatch.from_pydict({"splits": [pickle.dumps((0, 0, named))]})
    task = pickle.loads(pickle.dumps(WriteTask(ANSWER, sink)))
    (done,) = task(iter([batch]))
    (row,) = done.to_pylist()
    assert row["documents"] == len(xml)
    written = {name: [row["file"]] if row[name] else [] for name in RESULTS}
    return Run(run, "string", MADE.set_version, written, files, rows_about([], {}))


NOTHING = Run("r", "string", "", {"matches": [], "errors": []}, [], rows_about([], {}))


def read(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of an output without their records, which are null, and without versions."""
    tables = {name: pq.read_table(folder / name, partitioning=None) for name in RESULTS}
    assert {name: table.schema for name, table in tables.items()} == schemas("string")
    assert all(table["record"].null_count == len(table) for table in tables.values())
    tables["matches"] = tables["matches"].drop_columns(VERSIONS)
    return {
        name: sorted(zip(*table.drop_columns("record").to_pydict().values(), strict=True), key=str)
        for name, table in tables.items()
    }


def test_matches_and_errors_are_apart(tmp_path: Path) -> None:
    store = ParquetStore(tmp_path)
    with store.sink("r", "string") as sink:
        store.publish(sink, write(sink, "<a/>", "<", "<b/>"))
    assert read(tmp_path) == {
        "matches": [("<a/>", "a"), ("<a/>", "all"), ("<b/>", "all")],
        "errors": [("<", "document-malformed", "unclosed token", 1, 1, 0, None)],
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["errors", "manifest", "matches"]


def test_no_rows_still_have_a_schema(tmp_path: Path) -> None:
    store = ParquetStore(tmp_path)
    with store.sink("r", "string") as sink:
        store.publish(sink, NOTHING)
    assert read(tmp_path) == {"matches": [], "errors": []}
    assert store.manifest().num_rows == 0
    assert store.is_done("r")


def test_row_groups_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 10)
    monkeypatch.setattr(rows, "OUTPUT_ROWS", 2)
    with ParquetStore(tmp_path).sink("r", "string") as sink:
        written = write(sink, *["<a/>"] * 23)
        file = pq.ParquetFile(Path(sink.staging) / "matches" / next(iter(written.files["matches"])))
        counts = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert counts == [10, 10, 10, 10, 6]


def test_attempts_that_do_not_count_leave_no_rows(tmp_path: Path) -> None:
    store = ParquetStore(tmp_path)
    with store.sink("r", "string") as sink:
        written = write(sink, "<a/>", "<")
        write(sink, "<a/>", "<")  # again, as a speculative attempt would
        store.publish(sink, written)
    assert len(read(tmp_path)["matches"]) == 2
    assert len(read(tmp_path)["errors"]) == 1


def test_a_task_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    store = ParquetStore(tmp_path)
    with store.sink("r", "string") as sink:
        store.publish(sink, write(sink, "<a/>"))

    def run_and_fail() -> None:
        with store.sink("s", "string") as sink:
            write(sink, "<b/>")
            raise RuntimeError("the job failed")

    with pytest.raises(RuntimeError):
        run_and_fail()
    assert read(tmp_path)["matches"] == [("<a/>", "a"), ("<a/>", "all")]
    assert len(list(tmp_path.iterdir())) == 3


def test_results_are_replaced_only_if_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    store = ParquetStore(tmp_path)
    store.check_new()
    for text, overwrite in (("<a/>", True), ("<b/>", True), ("<c/>", False)):
        store = ParquetStore(tmp_path, overwrite=overwrite)
        with store.sink(text[1], "string") as sink:
            store.publish(sink, write(sink, text, run=text[1]))
    assert read(tmp_path)["matches"] == [("<b/>", "all"), ("<c/>", "all")]
    assert set(store.manifest()["run"].to_pylist()) == {"b", "c"}
    assert (tmp_path / "mine.txt").exists()
    with pytest.raises(tamis.UsageError, match="has matches and errors already: name another"):
        store.check_new()


def test_outputs_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(tamis.UsageError, match=r"file: (File exists|Not a directory)"):
        ParquetStore(tmp_path / "file")
    with pytest.raises(tamis.UsageError, match="results are in a folder that all machines see"):
        ParquetStore("s3://bucket/x")


def test_a_worker_that_does_not_share_the_output(tmp_path: Path) -> None:
    sink = ParquetSink(str(tmp_path / "nowhere"), "r", "string")
    with pytest.raises(tamis.UsageError, match="nowhere: all must share the output"):
        sink.write(0, iter([]))


def test_workers_that_write_elsewhere_are_noticed(tmp_path: Path) -> None:
    store = ParquetStore(tmp_path)
    unseen = NOTHING._replace(files={"matches": ["unseen.parquet"], "errors": []})
    with (
        store.sink("r", "string") as sink,
        pytest.raises(tamis.UsageError, match="they must share it"),
    ):
        store.publish(sink, unseen)
    assert list(tmp_path.iterdir()) == []


def test_the_manifest_knows_what_was_read(tmp_path: Path) -> None:
    files = [FileStatus("a\udce9.xml", 3, 1_700_000_000_123_456_789), FileStatus("b.xml", 4, 5)]
    same = files[0]._replace(path="a\udce8.xml")
    store = ParquetStore(tmp_path)
    with store.sink("r", "string") as sink:
        store.publish(sink, NOTHING._replace(read=files))
    assert store.not_in_manifest(files) == []
    later = files[1]._replace(modified=1005)
    others = [same, files[0]._replace(size=4), later, FileStatus("c.xml", 3, 5)]
    assert store.not_in_manifest([*files, *others]) == others
    (name,) = (tmp_path / MANIFEST).iterdir()
    assert name.name == "r.parquet"


def as_before(folder: Path) -> None:
    """Make a folder of results what an earlier version made.

    Times are in nanoseconds, and errors are of whole documents.
    """
    for file in (folder / "errors").iterdir():
        pq.write_table(pq.read_table(file, partitioning=None).drop_columns("subscription"), file)
    for file in (folder / MANIFEST).iterdir():
        table = pq.read_table(file, partitioning=None)
        modified = table["modified"].cast(pa.timestamp("ns", "UTC"))
        table = table.set_column(2, "modified", modified)
        pq.write_table(table, file)


def test_results_of_an_earlier_version(tmp_path: Path) -> None:
    """They are known, whatever their times are kept in, and get the schema of the new ones."""
    files = [FileStatus("a.xml", 3, 1_700_000_000_123_456_789), FileStatus("b.xml", 4, -1_500)]
    folder = tmp_path / "k=1"  # which is no partition
    with ParquetStore(folder).sink("old", "string") as sink:
        ParquetStore(folder).publish(sink, write(sink, "<a/>", "<", run="old")._replace(read=files))
    as_before(folder)
    (old,) = (folder / MANIFEST).iterdir()
    times = pa.array([file.modified for file in files], pa.timestamp("ns", "UTC"))
    exact = pq.read_table(old, partitioning=None).set_column(2, "modified", times)
    pq.write_table(exact, old)
    assert ParquetStore(folder).not_in_manifest(files) == []
    store = ParquetStore(folder)
    store.prepare("string")
    with store.sink("new", "string") as sink:
        store.publish(sink, write(sink, "<b/>", "<b", run="new"))
    others = [file._replace(modified=file.modified + 1_000) for file in files]
    assert store.not_in_manifest([*files, *others]) == others
    assert len({str(pq.read_schema(file)) for file in (folder / MANIFEST).iterdir()}) == 1
    assert (len(read(folder)["matches"]), len(read(folder)["errors"])) == (3, 2)
    assert sorted(os.listdir(folder)) == ["errors", "manifest", "matches"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_driver_dies_at_any_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overwrite: bool, is_killed: bool
) -> None:
    """What the manifest has is there, and nothing else: of the run before, or of the new one."""
    said = []
    for count in range(9):
        folder = tmp_path / f"{count}"
        store = ParquetStore(folder)
        with store.sink("a", "string") as sink:
            store.publish(sink, write(sink, "<a/>", "<", run="a"))
        (folder / "matches" / "others.txt").write_text("")
        store = ParquetStore(folder, overwrite=overwrite)
        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            if is_killed:
                patched.setattr("shutil.rmtree", lambda *_, **__: None)
            with store.sink("b", "string") as sink:
                written = write(sink, "<a/>", "<", run="b")
                patched.setattr(Path, "rename", dying(count))
                store.publish(sink, written)
        again = ParquetStore(folder)
        again.prepare("string")
        done = [run for run in "ab" if again.is_done(run)]
        assert (folder / "matches" / "others.txt").exists() == ("a" in done)
        (folder / "matches" / "others.txt").unlink(missing_ok=True)
        found = read(folder)
        assert (len(found["matches"]), len(found["errors"])) == (2 * len(done), len(done))
        assert not list(folder.glob(".tamis-*"))
        said.append("".join(done))
    assert (said[0], said[-1]) == ("a", "b" if overwrite else "ab")


def test_results_that_cannot_be_replaced_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when the last of the new files is written, or moved."""
    for text, overwrite, failing in (
        ("<a/>", False, None),
        ("<b/>", True, (parquet, "_write")),
        ("<b/>", True, (Path, "mkdir")),
    ):
        store = ParquetStore(tmp_path, overwrite=overwrite)
        with (
            monkeypatch.context() as patched,
            suppress(tamis.UsageError),
            store.sink(text[1], "string") as sink,
        ):
            written = write(sink, text, run=text[1])
            if failing is not None:
                patched.setattr(*failing, full)
            store.publish(sink, written)
    assert read(tmp_path)["matches"] == [("<a/>", "a"), ("<a/>", "all")]
    assert ParquetStore(tmp_path).is_done("a")
    assert sorted(os.listdir(tmp_path)) == ["errors", "manifest", "matches"]


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_manifest_that_others_compacted(tmp_path: Path) -> None:
    """Its runs are known by what it says, and their results stay."""
    store = ParquetStore(tmp_path)
    for run in "ab":
        with store.sink(run, "string") as sink:
            store.publish(sink, write(sink, "<a/>", run=run))
    whole = store.manifest()
    for file in list((tmp_path / MANIFEST).iterdir()):
        file.unlink()
    pq.write_table(whole, tmp_path / MANIFEST / "part-00000.parquet")
    again = ParquetStore(tmp_path)
    again.prepare("string")
    assert again.is_done("a")
    assert not again.is_done("c")
    assert len(read(tmp_path)["matches"]) == 4
    (tmp_path / MANIFEST / "part-00000.parquet").write_bytes(b"PAR1")
    with pytest.raises(tamis.UsageError, match=r"part-00000\.parquet cannot be read"):
        again.check_new()
    assert len(read(tmp_path)["matches"]) == 4


def test_results_that_are_elsewhere_are_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ParquetStore(tmp_path)
    with store.sink("a", "string") as sink:
        store.publish(sink, write(sink, "<a/>", run="a"))
    (tmp_path / "matches").rename(tmp_path / "elsewhere")
    (tmp_path / "matches").symlink_to("elsewhere")
    store = ParquetStore(tmp_path, overwrite=True)
    with (
        monkeypatch.context() as patched,
        suppress(KeyboardInterrupt),
        store.sink("b", "string") as sink,
    ):
        written = write(sink, "<a/>", run="b")
        patched.setattr(Path, "rename", dying(4))
        store.publish(sink, written)
    ParquetStore(tmp_path).prepare("string")
    assert (tmp_path / "matches").is_symlink()
    assert len(read(tmp_path)["matches"]) == 2


def test_results_of_a_stream_are_not_replaced(tmp_path: Path) -> None:
    store = ParquetStore(tmp_path)
    with store.sink("stream-0123456789ab-00000000", "string") as sink:
        store.publish(sink, write(sink, "<a/>", run="stream-0123456789ab-00000000"))
    with pytest.raises(tamis.UsageError, match="has results of a stream"):
        ParquetStore(tmp_path, overwrite=True).prepare("string")


def dying(count: int) -> Callable[[Path, Path], Path]:
    """Renames so many files, and then dies."""
    renames = iter(range(count))
    rename = Path.rename

    def rename_or_die(path: Path, target: Path) -> Path:
        if next(renames, None) is None:
            raise KeyboardInterrupt
        return rename(path, target)

    return rename_or_die


def test_what_others_put_there_stays(tmp_path: Path) -> None:
    store = ParquetStore(tmp_path)
    with store.sink("a", "string") as sink:
        store.publish(sink, write(sink, "<a/>", run="a"))
    (file,) = (tmp_path / "matches").iterdir()
    file.rename(file.with_name("part-00000-compacted.snappy.parquet"))
    pq.write_table(pq.read_table(tmp_path / "matches"), tmp_path / "matches" / "b.driver.parquet")
    store.prepare("string")
    assert [path.name for path in (tmp_path / "matches").iterdir()] == [
        "part-00000-compacted.snappy.parquet"
    ]


def test_one_driver_at_a_time(tmp_path: Path) -> None:
    with (
        ParquetStore(tmp_path).turn(),
        pytest.raises(tamis.UsageError, match="another job writes into"),
        ParquetStore(tmp_path).turn(),
    ):
        pass
    with ParquetStore(tmp_path).turn(), ParquetStore(tmp_path / "other").turn():
        pass


def test_a_run_is_published_once(tmp_path: Path) -> None:
    store = ParquetStore(tmp_path)
    with store.sink("r", "string") as old, store.sink("r", "string") as new:
        store.publish(new, write(new, "<a/>"))
        with pytest.raises(tamis.UsageError, match="another driver has done r"):
            store.publish(old, write(old, "<a/>"))
    assert len(read(tmp_path)["matches"]) == 2
