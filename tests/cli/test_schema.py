"""``tamis schema``: what a DTD permits, in four formats."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.running import environment, run, run_process

Write = Callable[[dict[str, str | bytes]], None]

DTD = "<!ELEMENT é (b*)> <!ELEMENT b EMPTY>"


def test_text(write: Write) -> None:
    write({"a.dtd": DTD})
    outcome = run("schema", "a.dtd")
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out == (
        "root: é\nelements: 2, of which none recursive\ndepth: 2\npaths: 2\n\né\n└─ b*: empty\n"
    )


def test_json(write: Write) -> None:
    write({"a.dtd": DTD})
    outcome = run("schema", "a.dtd", "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    (found,) = outcome.results
    assert found["roots"] == ["é"]
    assert found["elements"]["é"]["children"] == {"b": "*"}


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_drawing_is_utf_8_wherever_it_goes(write: Write, encoding: str) -> None:
    write({"a.dtd": DTD})
    options = {"env": environment(PYTHONIOENCODING=encoding)}
    assert (
        '"é" -> "b" [label="*"]\n'
        in run_process("schema", "a.dtd", "--format", "dot", **options).out
    )
    picture = run_process("schema", "a.dtd", "--format", "svg", **options).out
    assert ">é</text>" in picture
    assert ET.fromstring(picture.encode()).tag == "{http://www.w3.org/2000/svg}svg"


def test_a_document_with_a_doctype_and_a_catalog(write: Write) -> None:
    write(
        {
            "in/1.xml": "<!DOCTYPE b SYSTEM 'http://example.org/a.dtd' [<!ELEMENT c (b)>]><b/>",
            "dtds/a.dtd": DTD,
        }
    )
    outcome = run("schema", "in/1.xml", "--catalog", "dtds", "--format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    (found,) = outcome.results
    assert (found["roots"], found["unreachable"], found["missing"]) == (["b"], ["c", "é"], [])


def test_what_is_missing_is_told(write: Write) -> None:
    write({"1.xml": "<!DOCTYPE b SYSTEM 'a.dtd' [<!ELEMENT b EMPTY>]><b/>"})
    outcome = run("schema", "1.xml")
    assert outcome.status == 0
    assert "a.dtd" in outcome.err
    assert "\nfiles that were not found: a.dtd\n" in outcome.out


def test_roots(write: Write) -> None:
    write({"a.dtd": DTD})
    outcome = run("schema", "a.dtd", "--root", "b", "--root", "é", "--format", "json")
    assert outcome.results[0]["roots"] == ["b", "é"]


def test_output(write: Write) -> None:
    write({"a.dtd": DTD})
    outcome = run("schema", "a.dtd", "--format", "json", "--output", "out.json")
    assert outcome == (0, "", "")
    assert json.loads(Path("out.json").read_bytes())["depth"] == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["a.dtd", "--root", "c"], "no element 'c' is declared: there are é, b"),
        (["bad.dtd"], "bad.dtd, line 2, column"),
        (["none.dtd"], "none.dtd"),
        (["1.xml"], "1.xml"),
        (["a.dtd", "--format", "png"], "png"),
        ([], "DTD"),
    ],
)
def test_wrong_usage_and_bad_dtds(write: Write, args: list[str], message: str) -> None:
    write({"a.dtd": DTD, "bad.dtd": "<!ELEMENT a EMPTY>\n<!ELEMENT b", "1.xml": "<a/>"})
    outcome = run("schema", *args)
    assert (outcome.status, outcome.out) == (2, "")
    assert message in outcome.err


def test_without_graphviz_an_old_drawing_stays(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write({"a.dtd": DTD, "a.svg": "old"})
    monkeypatch.setenv("PATH", "")
    outcome = run("schema", "a.dtd", "--format", "svg", "--output", "a.svg")
    assert (outcome.status, outcome.out) == (2, "")
    assert "Graphviz" in outcome.err
    assert Path("a.svg").read_text() == "old"


def test_paths(write: Write) -> None:
    write({"a.dtd": "<!ELEMENT a (b?, c*)> <!ELEMENT b (c)> <!ELEMENT c (#PCDATA)>"})
    assert run("schema", "a.dtd", "--format", "paths").out == "/a\n/a/b\n/a/c\n/a/b/c\n"
    write({"b.dtd": "<!ELEMENT b (b | c | d)*> <!ELEMENT c (b | d)*> <!ELEMENT d (b | c | d)*>"})
    assert len(run("schema", "b.dtd", "--format", "paths").out.splitlines()) == 10_000


def test_a_file_without_a_dtd_is_an_error(write: Write) -> None:
    write({"a.dtd": "<!-- nothing -->", "b.xml": "<!DOCTYPE b SYSTEM 'gone.dtd'><b/>"})
    outcome = run("schema", "a.dtd")
    assert (outcome.status, outcome.out) == (2, "")
    assert "a.dtd: no element is declared here: give a DTD" in outcome.err
    outcome = run("schema", "b.xml")
    assert outcome.status == 2
    assert "b.xml: no element is declared here (gone.dtd was not found): " in outcome.err
