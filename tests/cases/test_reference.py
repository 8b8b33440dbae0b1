"""The reference's tables of support (docs/xpath.md) are those that the cases make."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tamis.core.limits import DEFAULT_LIMITS

ROOT = Path(__file__).parents[2]


def support_table() -> str:
    command = [sys.executable, str(ROOT / "scripts" / "support-table")]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout


def test_every_row_has_an_example() -> None:
    lines = support_table().splitlines()
    assert sum(line.startswith("|") for line in lines) > 40
    assert all(line.count(" | ") == 2 for line in lines if line and not line.startswith("|--"))


def test_the_reference_has_the_table() -> None:
    text = (ROOT / "docs" / "xpath.md").read_text(encoding="utf-8")
    block = re.search(r"<!-- support-table -->\n(.*?)<!-- /support-table -->", text, re.DOTALL)
    assert block, "docs/xpath.md lacks <!-- support-table --> and <!-- /support-table -->"
    assert block[1].strip() == support_table().strip(), "paste what scripts/support-table prints"


def test_the_reference_has_the_limits_as_they_are() -> None:
    text = (ROOT / "docs" / "xpath.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+)( MiB)? \|", text, re.MULTILINE)
    assert len(rows) > 8
    for name, number, is_mebibytes in rows:
        expected = int(number.replace(",", "")) << (20 if is_mebibytes else 0)
        assert getattr(DEFAULT_LIMITS, name) == expected
