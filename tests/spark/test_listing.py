"""Paths → files → tasks."""

import os
from collections.abc import Callable
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.documents.files import FileStatus
from tamis.spark.filesystems import ASKED_AT_ONCE, at_once, opened
from tamis.spark.splits import OPENING_BYTES, TASK_BYTES, assign_splits, check_paths, list_files


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("in/b.xml", "in/a.xml", "in/.hidden.xml", "in/notes.txt", "in/below/c.xml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["in"], ["in/a.xml", "in/b.xml"]),
        (["in/"], ["in/a.xml", "in/b.xml"]),
        (["in/notes.txt", "in/b.xml"], ["in/notes.txt", "in/b.xml"]),
        (["in/*"], ["in/a.xml", "in/b.xml", "in/below/c.xml", "in/notes.txt"]),
        (["i?/[ab].xml"], ["in/a.xml", "in/b.xml"]),
        (["in", "in/b.xml", "in"], ["in/a.xml", "in/b.xml"]),
    ],
)
def test_what_paths_stand_for(paths: list[str], names: list[str]) -> None:
    found = list_files(paths)
    assert sorted(document.path for document in found) == sorted(names)
    assert all(document.size == len(document.path) for document in found)
    assert not any(document.problem for document in found)


def test_what_cannot_be_tried_is_listed_all_the_same(folder: Path) -> None:
    (folder / "empty").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "in" / "folder.xml").mkdir()
    (folder / "in" / "broken.xml").symlink_to("gone")
    (folder / "odd[1].xml").write_text("odd")
    found = list_files(["empty", "pipe", "odd[1].xml"])
    assert [file._replace(modified=0) for file in found] == [
        FileStatus("empty", problem="a folder without *.xml or *.xml.gz"),
        FileStatus("pipe", problem="not a regular file"),
        FileStatus("odd[1].xml", 3),
    ]
    assert FileStatus("in/folder.xml", problem="not a regular file") in list_files(["in"])
    assert FileStatus("in/broken.xml") in list_files(["in"])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("start", ["", "file://{}/"])
@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("gone.xml", "gone.xml: there is no such file or folder"),
        ("in/gone", "in/gone: there is no such file or folder"),
        ("in/a.xml/b.xml", "in/a.xml/b.xml: there is no such file or folder"),
        ("in/*.html", r"in/\*.html: no file has a name like this"),
        ("what://ever/x.xml", "what://ever/x.xml: Tamis reads file, .*s3a.*, and not what"),
        ("what://ever/*.xml", r"what://ever/\*.xml: Tamis reads file"),
    ],
)
def test_what_leads_nowhere_is_an_error(start: str, path: str, message: str) -> None:
    given = path if "://" in path else f"{start.format(os.getcwd())}{path}"
    with pytest.raises(tamis.UsageError, match=message):
        list_files(["in", given])
    if "://" not in given or "*" not in given:
        with pytest.raises(tamis.UsageError, match=message):
            check_paths(["in", given])
    check_paths(["in", "in/*.xml", f"file://{os.getcwd()}/in", f"file://{os.getcwd()}/in/*.xml"])


def test_files_are_known_again_by_their_time(folder: Path) -> None:
    (before,) = list_files(["in/a.xml"])
    assert list_files(["in/a.xml"]) == [before]
    os.utime(folder / "in" / "a.xml", ns=(0, before.modified + 1))
    assert list_files(["in/a.xml"]) != [before]
    (by_uri,) = list_files([f"file://{folder}/in/a.xml"])
    assert by_uri[1:] == (before.size, before.modified + 1, None)


def test_relative_paths_begin_in_the_folder_of_the_caller(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    given = ["in", "in/[ab].xml", "in/notes.txt", f"{folder}/in/a.xml"]
    names = [file.path for file in list_files(given, str(folder))]
    assert names == ["in/a.xml", "in/b.xml", "in/notes.txt"]


def test_a_folder_that_is_called_as_a_pattern_is(tmp_path: Path) -> None:
    here = tmp_path / "in[1]"
    here.mkdir()
    (here / "1.xml").write_text("<a/>")
    assert [file.path for file in list_files(["*.xml", "1.xml"], str(here))] == ["1.xml"]


@given(st.lists(st.integers(0, 3 * TASK_BYTES)))
def test_tasks_are_about_equal(sizes: list[int]) -> None:
    tasks = assign_splits(sizes)
    loads: dict[int, int] = dict.fromkeys(tasks, 0)
    for size, task in zip(sizes, tasks, strict=True):
        loads[task] += size + OPENING_BYTES
    if sizes:
        assert sorted(loads) == list(range(len(loads)))
        assert max(loads.values()) - min(loads.values()) <= max(sizes) + OPENING_BYTES


def test_many_small_documents_share_a_task() -> None:
    assert max(assign_splits([100] * 200)) == 0
    assert max(assign_splits([10_000] * 3_000)) + 1 == 5
    assert max(assign_splits([1_000_000] * 1_000)) + 1 == 16
    assert max(assign_splits([1_000_000] * 10_000)) + 1 == 74


def test_what_is_found_twice_is_read_once(write: Callable[..., None]) -> None:
    write({"in/1.xml": "<a/>"})
    paths = ["in/1.xml", "./in/1.xml", os.path.abspath("in/1.xml"), "in", "in/*.xml"]
    assert [file.path for file in list_files(paths)] == ["in/1.xml"]
    os.mkdir("empty")
    paths = ["empty", "empty/", "./empty/.", os.path.abspath("empty"), "in/../empty"]
    assert [file.path for file in list_files(paths)] == ["empty"]
    assert [file.path for file in list_files(["empty", "empty/"], os.getcwd())] == ["empty"]


def test_names_in_uris(write: Callable[..., None]) -> None:
    """Each is that of its own file, whatever is in it."""
    names = ["a%41.xml", "aA.xml", "a b.xml", "é.xml", "a#b.xml", "a?b.xml", "a%.xml", "a[1].xml"]
    write({f"in/{name}": name for name in names})
    uri = f"file://{os.getcwd()}/in"
    found = list_files([uri])
    texts = []
    for file in found:
        with opened(file.path) as content:
            texts.append(content.read().decode())
    assert sorted(texts) == sorted(names)
    assert [file.problem for file in found] == [None] * len(names)
    assert list_files([f"{uri}/a*.xml"]) == [file for file in found if "é" not in file.path]


def test_links_that_lead_in_circles_are_no_documents(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<a/>")
    (tmp_path / "b.xml").symlink_to("b.xml")
    (tmp_path / "below").symlink_to("below")
    (tmp_path / "up").symlink_to(tmp_path)
    a, b = list_files([str(tmp_path)])
    assert (Path(a.path).name, a.size, b) == ("a.xml", 4, FileStatus(str(tmp_path / "b.xml")))


def test_stores_are_asked_for_several_things_at_a_time() -> None:
    barrier = Barrier(ASKED_AT_ONCE)

    def ask(number: int) -> int:
        barrier.wait(60)
        return -number

    numbers = range(2 * ASKED_AT_ONCE)
    assert at_once(ask, numbers) == [-number for number in numbers]
    with pytest.raises(ZeroDivisionError):
        at_once(lambda number: 1 // number, numbers)
