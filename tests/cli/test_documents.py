"""Which documents a command is given, and what it says of those that it leaves out."""

import gzip
import json
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.running import run, start

Write = Callable[[dict[str, str | bytes]], None]

MATCH = ("match", "--subscriptions", "s")


@pytest.fixture(autouse=True)
def _files(write: Write) -> None:
    write(
        {
            "s": "//b",
            "in/1.xml": "<a/>",
            "in/TWO.XML": "<a><b/></a>",
            "in/.hidden.xml": "<a/>",
            "in/n.rss": "<rss><b/></rss>",
            "in/x.kml": "<kml/>",
            "in/below/3.xml": "<a/>",
            "in/.git/4.xml": "<a/>",
        }
    )


def names(*args: str) -> list[str]:
    outcome = run(*MATCH, *args)
    return [found["document"] for found in outcome.results]


@pytest.mark.parametrize(
    ("args", "found"),
    [
        (["in"], ["1.xml", "TWO.XML"]),
        (["--recursive", "in"], ["1.xml", "TWO.XML", "below/3.xml"]),
        (["--glob", "*.rss", "--glob", "x.*", "in"], ["n.rss", "x.kml"]),
        (["--recursive", "--glob", "3*", "in"], ["below/3.xml"]),
        (["in/[1n].*"], ["1.xml", "n.rss"]),
        (["in/**/*.xml"], ["1.xml", "below/3.xml"]),
    ],
)
def test_what_arguments_stand_for(args: list[str], found: list[str]) -> None:
    assert names(*args) == [f"in/{name}" for name in found]


@pytest.mark.parametrize("name", ["t.tar", "t.tar.gz", "t.TGZ", "t.tar.xz", "t.tar.bz2"])
def test_the_members_of_a_tar_archive_are_documents(name: str) -> None:
    packer = name.rpartition(".")[2].lower().replace("tgz", "gz").replace("tar", "")
    with tarfile.open(name, f"w:{packer}") as archive:  # type: ignore[call-overload]
        archive.add("in")
    for options in ([], ["--record", "a"], ["--concatenated"]):
        outcome = run(*MATCH, *options, name, "in/1.xml")
        found = {line["document"]: line["matches"] for line in outcome.results}
        assert found.pop("in/1.xml") == []
        assert found.pop(f"{name}/in/TWO.XML") == ["1"]
        assert sorted(found) == [
            f"{name}/in/{one}" for one in (".git/4.xml", "1.xml", "below/3.xml")
        ]
        assert "2 files left out" in outcome.err
    assert names("--glob", "*.rss", name) == [f"{name}/in/n.rss"]
    data = Path(name).read_bytes()
    Path(name).write_bytes(data[: len(data) // 2])
    outcome = run(*MATCH, name)
    assert outcome.status == 3
    assert "cannot read" in outcome.results[-1]["error"]


def test_a_tar_archive_that_ends_inside_a_document_is_an_error(write: Write) -> None:
    write({"packed/1.xml": "<a/>", "packed/2.xml": f"<a>{os.urandom(100_000).hex()}</a>"})
    with tarfile.open("cut.tar.gz", "w:gz") as archive:
        archive.add("packed/1.xml")
        archive.add("packed/2.xml")
    data = Path("cut.tar.gz").read_bytes()
    Path("cut.tar.gz").write_bytes(data[: len(data) // 2])
    outcome = run(*MATCH, "cut.tar.gz")
    assert outcome.status == 3
    assert "matches" in outcome.results[0]
    assert all("cannot read" in found["error"] for found in outcome.results[1:])
    assert outcome.results[1]["document"] == "cut.tar.gz/packed/2.xml"


def test_what_is_left_out_is_told() -> None:
    assert run(*MATCH, "in").err == (
        "tamis: warning: in: 2 files left out, whose names are not like *.xml or *.xml.gz: n.rss, "
        "x.kml; --glob takes them\n"
    )
    assert "in: 2 files left out" in run(*MATCH, "--glob", "*.rss", "--glob", "*.kml", "in").err


def test_what_is_not_there() -> None:
    outcome = run(*MATCH, "in/*.json", "in")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err == "tamis: in/*.json: no file has a name like this\n"
    Path("empty/below").mkdir(parents=True)
    (only,) = run(*MATCH, "empty").results
    assert only["error"] == (
        "a folder without *.xml or *.xml.gz, but with folders, which were not read"
    )
    (only,) = run(*MATCH, "--recursive", "empty").results
    assert only["error"] == "a folder without *.xml or *.xml.gz"


def test_a_uri_is_not_fetched() -> None:
    outcome = run(*MATCH, "https://example.org/a.xml", "in/1.xml")
    first, _ = outcome.results
    assert outcome.status == 3
    assert first["document"] == "https://example.org/a.xml"
    assert first["error"] == (
        "cannot read https://example.org/a.xml: nothing is fetched: pipe it in, and give -"
    )
    outcome = run("explain", "//a", "https://example.org/a.xml")
    assert "cannot read https://example.org/a.xml: nothing is fetched" in outcome.err


def test_no_document_has_a_record() -> None:
    outcome = run(*MATCH, "--record", "p:a", "in")
    assert (outcome.status, outcome.out) == (3, "")
    assert outcome.err.endswith(
        "tamis: no document has an element p:a: give the tag as documents write it, page or w:p; "
        "or with its namespace, {uri}page\n"
    )
    assert run(*MATCH, "--record", "b", "in").status == 0
    assert run("select", "//x", "--record", "gone", "in").status == 3


# -- one after the other -----------------------------------------------------------------------

SEVERAL = b"<?xml version='1.0'?><a/>\n<b/><?xml version='1.0'?>\n<c><b/></c>"


@pytest.mark.parametrize("name", ["-", "all.xml"])
def test_documents_one_after_the_other(name: str) -> None:
    Path("all.xml").write_bytes(gzip.compress(SEVERAL))
    outcome = run(*MATCH, "--concatenated", name, stdin=SEVERAL)
    assert outcome.status == 0
    assert outcome.results == [
        {"document": name, "number": number, "matches": matches}
        for number, matches in enumerate([[], ["1"], ["1"]])
    ]
    outcome = run("select", "//b", "--concatenated=xml", name, stdin=SEVERAL)
    assert outcome.out == f"{name}[1]:1:<b/>\n{name}[2]:2:<b/>\n"
    outcome = run("select", "//b", "--json", "--concatenated", name, stdin=SEVERAL)
    assert [found["number"] for found in outcome.results] == [1, 2]
    outcome = run(*MATCH, name, stdin=SEVERAL)
    assert outcome.results[0]["error"] == (
        "junk after document element: documents one after the other are read with --concatenated"
    )


def test_a_bad_document_among_others() -> None:
    lines = b"<a/>\n<a>\n\n<b/>\n"
    outcome = run(*MATCH, "--concatenated=lines", "-", stdin=lines)
    assert outcome.status == 3
    assert [found.get("matches", found.get("line")) for found in outcome.results] == [[], 1, ["1"]]
    outcome = run(*MATCH, "--concatenated=nul", "-", stdin=lines.replace(b"\n", b"\0"))
    assert [found.get("matches", found.get("line")) for found in outcome.results] == [[], 1, ["1"]]
    outcome = run(*MATCH, "--concatenated", "-", stdin=b"<a></b><c/><?xml version='1.0'?><b/>")
    assert outcome.results[0]["error"].endswith("up to the next XML declaration, was not read")
    assert outcome.results[1] == {"document": "-", "number": 1, "matches": ["1"]}
    assert "- has no documents" in run(*MATCH, "--concatenated", "-", stdin=b"\n").err


@pytest.mark.parametrize("threads", ["1", "3"])
def test_documents_of_a_pipe_are_answered_as_they_come(threads: str) -> None:
    args = (*MATCH, "--concatenated", "--threads", threads, "-")
    with start(*args, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(3):
            process.stdin.write(b"<b/>\n<c")
            process.stdin.flush()
            found = json.loads(process.stdout.readline())
            assert (found["number"], found["matches"]) == (2 * number, ["1"])
            process.stdin.write(b"/>")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["matches"] == []
        process.kill()


# -- limits ------------------------------------------------------------------------------------


def test_limits_are_options() -> None:
    outcome = run(*MATCH, "--limit", "depth=1", "in/TWO.XML")
    assert outcome.results[0]["error"] == "deeper than the limit depth = 1 (--limit depth=…)"
    outcome = run(*MATCH, "--limit", "subscription_steps=1", "in/1.xml")
    assert "the limit subscription_steps = 1 (--limit subscription_steps=…)" in outcome.err
    run("compile", "--subscriptions", "s", "--output", "s.tamis")
    outcome = run("match", "--program", "s.tamis", "--limit", "document_bytes=5", "in/TWO.XML")
    assert outcome.results[0]["error"] == (
        "larger than the limit document_bytes = 5 (--limit document_bytes=…): read it as records, "
        "with --record TAG"
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("dept=1", "there is no limit 'dept': did you mean depth?"),
        ("x=1", "there is no limit 'x': choose from document_bytes, "),
        ("depth=-1", "expected NAME=VALUE, the value a whole number"),
        ("depth", "expected NAME=VALUE, the value a whole number"),
    ],
)
def test_limits_that_are_none(setting: str, message: str) -> None:
    outcome = run(*MATCH, "--limit", setting, "in")
    assert (outcome.status, outcome.out) == (2, "")
    assert outcome.err.startswith(f"tamis: --limit {setting}: {message}")


def test_bytes_that_are_not_of_the_encoding() -> None:
    for options in ([], ["--record", "a"]):
        (found,) = run(*MATCH, *options, "-", stdin=b"<x>\n<a>\xe9</a></x>").results
        assert (found["line"], found["column"]) == (2, 4)
        assert found["error"].startswith(
            "the byte 0xE9 is not UTF-8, and the document declares no encoding: declare"
        )
    declared = b"<?xml version='1.0' encoding='ascii'?><x>\xe9</x>"
    (found,) = run(*MATCH, "-", stdin=declared).results
    assert found["error"].startswith("the byte 0xE9 is not US-ASCII, the document's encoding")


def test_a_third_column_is_hinted_at(write: Write) -> None:
    write({"t": "x\t//a\ta comment\ny\t//a\t[b]\n"})
    outcome = run("check", "--subscriptions", "t")
    assert outcome.status == 2
    assert "hint: a tab in an expression: a line of a file is id, tab, expression" in outcome.err
    assert outcome.results[-1]["ok"] == 1


def test_a_file_is_named_once() -> None:
    assert run("select", "//a", "gone.xml").err == (
        "tamis: cannot read gone.xml: No such file or directory\n"
    )
