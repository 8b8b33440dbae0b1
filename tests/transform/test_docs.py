"""The examples of the page about transformations."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "transform.md"


def test_examples() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted > 4
    assert found.failed == 0
