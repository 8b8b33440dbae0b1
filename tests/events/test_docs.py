"""What the page about events advises, and its other examples cannot show."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import tamis

PAGE = Path(__file__).parents[2] / "docs" / "events.md"


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs Debian's package jq")
def test_the_jq_program_flattens_every_value() -> None:
    command = re.search(r"^jq -c '.*'$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert command
    nested = {
        "on": False,
        "http": {"ok": False, "code": 500, "body": None, "deep": {"er": [{"x": True}, []]}},
        "tags": ["a", ["b", 1.5]],
        "nothing": {},
        "none": [],
        "text": "x",
    }
    lines = f"{json.dumps(nested)}\n{{}}\n".encode()
    flat = subprocess.run(["sh", "-c", command[0]], input=lines, capture_output=True, check=True)
    first, second = flat.stdout.splitlines()
    assert json.loads(second) == {}
    assert json.loads(first) == {
        "on": False,
        "http.ok": False,
        "http.code": 500,
        "http.body": None,
        "http.deep.er.0.x": True,
        "tags.0": "a",
        "tags.1.0": "b",
        "tags.1.1": 1.5,
        "text": "x",
    }
    filters = ["on = false", "http.ok = false", "http.deep.er.0.x = true", 'tags.1.0 = "b"']
    matcher = tamis.compile_events(dict(enumerate(filters)))
    assert [list(match) for match in matcher.match_ndjson(flat.stdout)] == [[0, 1, 2, 3], []]
