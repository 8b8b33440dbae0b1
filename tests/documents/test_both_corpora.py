"""The real documents, parsed in both ways with every projection; none is declined in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from tamis.core.errors import DocumentError
from tamis.core.limits import Limits
from tamis.documents.source import Source, read
from tests.documents.eligible import compare_all, is_for_the_fast_path
from tests.support.corpora import ROOT

FOLDERS = sorted(path.name for path in ROOT.iterdir() if path.is_dir()) if ROOT.is_dir() else []

pytestmark = [
    pytest.mark.corpora,
    pytest.mark.skipif(not FOLDERS, reason=f"the corpora are not there: {ROOT}"),
]


def files(folder: str) -> list[Path]:
    """The XML of a corpus; of the odd files, and of DTDs, all: these have to be refused alike."""
    everything = [path for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
    if folder in ("robustness", "entrez-dtds"):
        return everything
    return [path for path in everything if path.suffix == ".xml"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_corpus(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    sources: list[Source | DocumentError] = []
    for path in files(folder):
        try:
            sources.append(read(path, Limits()))
        except DocumentError as error:
            sources.append(error)
    if not sources:
        pytest.skip("no XML in it")
    counts, ours = compare_all(sources)
    with capsys.disabled():
        print(f"\n{folder}: {counts}; {ours:,} are for the fast path")


def test_what_is_for_the_fast_path() -> None:
    """The canary: were nothing for it, the tests above would show nothing."""
    found = [read(path, Limits()) for folder in ("docutils", "xmark") for path in files(folder)]
    assert sum(map(is_for_the_fast_path, found)) > len(found) // 2
