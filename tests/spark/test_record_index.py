"""The index of a large file's records: read instead of the file, as long as it is of that file."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tamis.core.limits import Limits
from tamis.documents.files import FileStatus
from tamis.documents.record_batch import RecordRange
from tamis.documents.record_reader import record_ranges
from tamis.spark import splits
from tamis.spark.program import cache_folder, keep_newest
from tamis.spark.splits import indexed_ranges, list_files

RECORDS = "<all>" + "".join(f"\n<r n='{n}'>é</r>" for n in range(9000)) + "</all>"


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch, write: Callable[..., None]) -> list[str]:
    """The tags that files were read for; there is a file ``in.xml``."""
    found: list[str] = []

    def noted(opened: object, tag: str, *given: object) -> list[RecordRange]:
        found.append(tag)
        return record_ranges(opened, tag, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(splits, "record_ranges", noted)
    write({"in.xml": RECORDS})
    return found


def ranges(file: FileStatus, tag: str = "r", size: int = 1 << 16) -> list[RecordRange]:
    return indexed_ranges(os.path.abspath(file.path), file, tag, size, Limits(), 2)


def test_a_file_is_read_once(passes: list[str]) -> None:
    (file,) = list_files(["in.xml"])
    first = ranges(file)
    assert len(first) > 1
    assert ranges(file) == first
    assert passes == ["r"]
    assert ranges(file, "s") != first
    assert len(ranges(file, size=1 << 20)) == 1
    assert passes == ["r", "s", "r"]


def test_a_file_that_changed_is_read_again(passes: list[str]) -> None:
    (file,) = list_files(["in.xml"])
    first = ranges(file)
    Path("in.xml").write_text(RECORDS.replace("<all>", "<all><r/>"))
    (changed,) = list_files(["in.xml"])
    assert ranges(changed)[-1].start.record == first[-1].start.record + 1
    assert passes == ["r", "r"]


def test_where_times_are_not_known_nothing_is_kept(passes: list[str]) -> None:
    (file,) = list_files(["in.xml"])
    assert ranges(file._replace(modified=0)) == ranges(file._replace(modified=0))
    assert passes == ["r", "r"]


@pytest.mark.parametrize("damage", ["", "[", "[[1]]", "[[0, 0, 1, 1, null, 7]]", "{}", "\0"])
def test_a_damaged_index_is_made_again(passes: list[str], damage: str) -> None:
    (file,) = list_files(["in.xml"])
    first = ranges(file)
    newest = max(cache_folder("records").glob("*.json"), key=lambda path: path.stat().st_mtime)
    newest.write_text(damage)
    assert ranges(file) == first
    assert passes == ["r", "r"]
    assert ranges(file) == first
    assert passes == ["r", "r"]


def test_the_newest_are_kept(tmp_path: Path) -> None:
    for number in range(5):
        path = tmp_path / f"{number}.json"
        path.write_text("")
        os.utime(path, (number, number))
    keep_newest(tmp_path, "*.json", 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["3.json", "4.json"]
