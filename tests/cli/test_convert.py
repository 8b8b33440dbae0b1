"""``tamis convert``."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.support.running import run

Write = Callable[[dict[str, str]], None]

PATTERN = {"source": ["aws.ec2"], "detail": {"cpu": [{"numeric": [">", 80]}]}}
MEANT = 'source[] = "aws.ec2" and detail[].(cpu[] > 80)'


def test_patterns_of_files(write: Write) -> None:
    listed = {"Rules": [{"Name": "a", "EventPattern": json.dumps(PATTERN)}, {"Name": "cron"}]}
    lines = [{"id": 7, "pattern": PATTERN}, {"source": ["x"]}, {"id": "b", "rule": {"n": [1]}}]
    write({"ec2.json": json.dumps(PATTERN), "rules.json": json.dumps(listed)})
    write({"more.ndjson": "\n\n".join(map(json.dumps, lines))})
    found = run("convert", "--from", "eventbridge", "ec2.json", "rules.json", "more.ndjson")
    assert (found.status, found.err) == (0, "")
    assert found.results == [
        {"id": "ec2", "expression": MEANT},
        {"id": "a", "expression": MEANT},
        {"id": 7, "expression": MEANT},
        {"id": 3, "expression": 'source[] = "x"'},
        {"id": "b", "expression": "n[] = 1"},
    ]


def test_what_cannot_be_said_stops_no_others(write: Write) -> None:
    write({"rules.tsv": '# ours\nred\t{a=~"[xy"}\n\nblue\t{a="x"}\n{b!="y"}\n'})
    found = run("convert", "--from", "alertmanager", "rules.tsv", "--output", "out.ndjson")
    assert found.status == 2
    assert "rules.tsv: rule 'red': the regular expression '[xy' cannot be used" in found.err
    write({"events.ndjson": '{"a": "x", "b": "y"}\n'})
    found = run("match-events", "--subscriptions", "out.ndjson", "events.ndjson")
    assert [each["matches"] for each in found.results] == [["blue"]]


def test_files_that_are_none(write: Write) -> None:
    write({"bad.json": "{", "bad.ndjson": '{"a": [1]}\n{'})
    write(
        {"odd.json": json.dumps({"Rules": [{"Name": "a", "EventPattern": "{"}, 7, "EventPattern"]})}
    )
    write({"odd.ndjson": json.dumps({"pattern": ["x"], "rule": ["y"], "t": ["z"]})})
    found = run("convert", "--from", "eventbridge", "odd.json", "odd.ndjson")
    assert (found.status, found.err.count("a pattern is an object")) == (2, 3)
    assert [each["id"] for each in found.results] == [1]
    assert "bad.json: not JSON" in run("convert", "--from", "sns", "bad.json").err
    assert "bad.ndjson, line 2: not JSON" in run("convert", "--from", "sns", "bad.ndjson").err
    found = run("convert", "--from", "sns", "none.json")
    assert (found.status, "none.json" in found.err) == (2, True)
