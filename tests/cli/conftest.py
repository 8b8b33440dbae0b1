"""Files for the tests of the command line."""

from collections.abc import Callable
from pathlib import Path

import pytest


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


@pytest.fixture
def orders(write: Callable[..., None]) -> None:
    """A set of subscriptions, a folder of documents, one of them broken."""
    write(
        {
            "orders.tsv": "large\t//order[total > 100]\n# a comment\n\nurgent\t//order[@urgent]\n"
            "//item\n",
            "in/1.xml": "<order urgent='yes'><total>250</total><item/></order>",
            "in/2.xml": "<order>\n<total>5</order>",
            "in/3.xml": "<order><total>5</total></order>",
        }
    )
