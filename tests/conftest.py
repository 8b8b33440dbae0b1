"""What all tests share: how Hypothesis draws, and a folder with files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# Anew on every run; on CI the same each time, so that a change is to blame. No test is timed.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
_PROFILE = "ci" if os.environ.get("CI") else "here"
# Where other tests draw as many cases as usual of the same.
settings.register_profile("few", settings.get_profile(_PROFILE), max_examples=20)
settings.load_profile(_PROFILE)


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Names a parameter; binary data by its size, as gzip has the time of packing in it.

    Processes that share the tests out must all have the same names of them.
    """
    if isinstance(val, bytes) and not val.isascii():
        return f"{len(val)} bytes"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What a long test is of goes into its report: see ``benchmarks/long_tests.py``."""
    for item in items:
        if (mark := item.get_closest_marker("long")) is not None:
            item.user_properties.append(("sources", list(mark.args)))


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Writes files, by name, into an empty folder in which the test runs."""
    monkeypatch.chdir(tmp_path)

    def write_files(files: dict[str, str | bytes]) -> None:
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    return write_files
