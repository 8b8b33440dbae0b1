"""The W3C's conformance suite: accepted and rejected exactly as expat does."""

from __future__ import annotations

import pytest

from tamis.core.errors import DocumentError
from tamis.core.limits import Limits
from tamis.documents.source import Source, read
from tests.documents.eligible import compare_all
from tests.documents.seeds import suite_files

pytestmark = pytest.mark.corpora


def test_every_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Its documents, and its DTDs and entities too: most of these are no documents."""
    files = suite_files()
    assert len(files) > 3_000
    sources: list[Source | DocumentError] = []
    for path in files:
        try:
            sources.append(read(path, Limits()))
        except DocumentError as error:
            sources.append(error)
    counts, ours = compare_all(sources)
    with capsys.disabled():
        print(f"\nthe XML conformance suite: {counts}; {ours:,} are for the fast path")
    assert counts.accepted > 1_000
    assert counts.rejected > 1_000
    assert ours > 100
