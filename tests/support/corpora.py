"""The real documents that the tests read, where they are at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3] / "shared" / "data"

# Folder → the documents in it that take part in comparisons (all are well-formed but those of
# blast's and entrez's broken files).
CORPORA = {
    "blast": "*.xml",
    "cldr": "main/*.xml",
    "dblp": "*.xml",
    "docutils": "*.xml",
    "elife-jats": "*.xml",
    "entrez": "*.xml",
    "mondial": "*.xml",
    "shakespeare": "*.xml",
    "usecases": "*.xml",
    "xmark": "*.xml",
}


def real(name: str) -> Path:
    """A file or folder of the corpora; skips the test where they are absent."""
    if not ROOT.is_dir():
        pytest.skip(f"the real documents are not at {ROOT}")
    return ROOT / name


def corpus(name: str) -> list[Path]:
    """The documents of one corpus, in order; skips the test where the corpora are absent."""
    return sorted(real(name).glob(CORPORA[name]))
