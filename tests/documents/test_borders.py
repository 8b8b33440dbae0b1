"""Nothing is read beyond a document, and no place in a block is special."""

from __future__ import annotations

import signal

import pytest

from tests.documents.borders import Guarded
from tests.support.processes import output, start

MODULE = "tests.documents.borders"


@pytest.mark.long("tamis/documents")
@pytest.mark.parametrize("how", ["", "-in-place"])
def test_lengths_and_places(how: str) -> None:
    lengths, places = start(MODULE, f"lengths{how}"), start(MODULE, f"places{how}")
    for process in (lengths, places):
        found = output(process)
        assert int(found.split()[0].replace(",", "")) > 50_000
        print(found)


def test_reading_beyond_is_noticed() -> None:
    """The canary: with one byte too many, the process would not have ended well."""
    process = start(MODULE, "beyond")
    out, _ = process.communicate()
    assert out == "alive\n"
    assert process.returncode in (-signal.SIGSEGV, -signal.SIGBUS)


def test_documents_are_where_they_should_be() -> None:
    guarded = Guarded(4)
    documents = [bytes([n]) * (n + 1) for n in range(4)]
    views = [guarded.place(n, data, n % 2 == 1) for n, data in enumerate(documents)]
    assert [bytes(view) for view in views] == documents
