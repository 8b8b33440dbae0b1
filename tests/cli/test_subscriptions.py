"""``tamis subscriptions``: folders that keep subscriptions, and the commands that take them."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tamis.cli import app

DOCUMENT = "<o><order><total>2000</total></order><x xmlns='urn:p'/></o>"
QUERY = "<r>{ for $t in //order return $t/total }</r>"


def tamis(*words: object, exit_code: int = 0) -> Result:
    result = CliRunner().invoke(app, list(map(str, words)))
    assert result.exit_code == exit_code, result.output
    return result


def lines(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "o.xml"
    path.write_text(DOCUMENT)
    return path


def test_expressions_come_and_go(tmp_path: Path, document: Path) -> None:
    folder, file = tmp_path / "store", tmp_path / "q.tsv"
    file.write_text("large\t//order[total > 1000]\nany\t//order\n")
    made = tamis("subscriptions", "create", folder, "--subscriptions", file, "--ns", "p=urn:p")
    assert "2 subscriptions" in made.stderr
    tamis("subscriptions", "add", folder, "--id", "x", "--expression", "//p:x")
    assert lines(tamis("match", "--subscriptions", folder, document))[0]["matches"] == [
        "large",
        "any",
        "x",
    ]
    listed = tamis("subscriptions", "list", folder)
    assert lines(listed)[2] == {"id": "x", "expression": "//p:x"}
    again = tmp_path / "again.ndjson"
    again.write_text(listed.stdout + '{"id": 7, "expression": "//total"}\n')
    tamis("subscriptions", "add", folder, "--subscriptions", again, exit_code=2)
    tamis("subscriptions", "add", folder, "--subscriptions", again, "--replace")
    tamis("subscriptions", "remove", folder, "any", "7")
    tamis("subscriptions", "remove", folder, "large", "any", exit_code=2)  # and large stays
    tamis("subscriptions", "compact", folder)
    for option in ("--subscriptions", "--program"):
        assert lines(tamis("match", option, folder, document))[0]["matches"] == ["large", "x"]
    program = tmp_path / "s.tamis"
    tamis("compile", "--subscriptions", folder, "--output", program)
    assert lines(tamis("match", "--program", program, document))[0]["matches"] == ["large", "x"]
    assert lines(tamis("check", "--subscriptions", folder))[-1]["ok"] == 2


def test_events_and_transformations(tmp_path: Path, document: Path) -> None:
    alarms, events, given = tmp_path / "alarms", tmp_path / "e.ndjson", tmp_path / "a.ndjson"
    events.write_text('{"temp": 35, "wind": 25}\n')
    given.write_text(
        '{"id": "hot", "expression": "temp > 30", "interface": "i"}\n'
        '{"id": "storm", "expression": "wind > 20", "interface": "i"}\n'
    )
    tamis("subscriptions", "create", alarms, "--kind", "events", "--subscriptions", given)
    tamis("subscriptions", "add", alarms, "--id", "odd", "--expression", "temp >", exit_code=2)
    listed = lines(tamis("subscriptions", "list", alarms))
    assert [line["interface"] for line in listed] == ["i", "i"]
    tamis("subscriptions", "add", alarms, "--id", "own", "--expression", "gust > 1")
    given.write_text(tamis("subscriptions", "list", alarms).stdout)
    tamis("subscriptions", "add", alarms, "--replace", "--subscriptions", given)
    tamis("subscriptions", "remove", alarms, "own")
    for by, expected in (("subscription", ["hot", "storm"]), ("interface", ["i"])):
        found = tamis("match-events", "--subscriptions", alarms, "--by", by, events)
        assert lines(found)[0]["matches"] == expected
    assert lines(tamis("check", "--events", "--subscriptions", alarms))[-1]["ok"] == 2
    messages, query = tmp_path / "messages", tmp_path / "late.xq"
    query.write_text(QUERY)
    tamis("subscriptions", "create", messages, "--kind", "transform", "--subscriptions", query)
    (line,) = lines(tamis("transform", "--subscriptions", messages, document))
    assert line["message"] == "<r><total>2000</total></r>"
    assert lines(tamis("subscriptions", "list", messages)) == [{"id": "late", "query": QUERY}]
    tamis("match", "--subscriptions", messages, document, exit_code=2)


def test_wrong_usage(tmp_path: Path, document: Path) -> None:
    folder = tmp_path / "store"
    said = tamis("subscriptions", "list", folder, exit_code=2).stderr
    assert "tamis subscriptions create makes one" in said
    tamis("subscriptions", "create", folder)
    tamis("subscriptions", "create", folder, exit_code=2)
    tamis("subscriptions", "add", folder, exit_code=2)
    tamis("subscriptions", "add", folder, "--id", "x", exit_code=2)
    said = tamis("match", "--ns", "p=q", "--subscriptions", folder, document, exit_code=2).stderr
    assert "give them to tamis subscriptions create" in said
    other, bad = tmp_path / "other", tmp_path / "bad.tsv"
    bad.write_text("b\t//[\n")
    tamis("subscriptions", "create", other, "--subscriptions", bad, exit_code=2)
    tamis("subscriptions", "remove", folder, "9" * 5000, exit_code=2)
    for options in (
        ("--kind", "events", "--ns", "p=q"),
        ("--kind", "transform", "--engine", "nfa"),
        ("--kind", "transform", "--unsupported", "slow"),
        ("--root", "a"),
    ):
        tamis("subscriptions", "create", other, *options, exit_code=2)
        assert not other.exists()
