"""A million mutated documents are the same to both paths; and faults would be found."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import pytest

from tamis.documents.source import Source
from tests.documents.both_paths import BothPaths, Difference
from tests.documents.fuzz import BATCH, Run, documents, fuzz, sources
from tests.documents.seeds import available
from tests.documents.test_both_paths import Wrong
from tests.support.processes import output, start

HAND = Run(0, ("hand",))


def check_shares(found: dict[str, Any]) -> None:
    """Were few accepted, or most of them declined, little of the fast path would be tested."""
    assert found["accepted_share"] >= 0.3
    assert found["declined_share_of_accepted"] <= 0.2


def test_some() -> None:
    check_shares(fuzz(HAND, 20_000, processes=1))


@pytest.mark.corpora
@pytest.mark.parametrize(
    "count", [100_000, pytest.param(1_000_000, marks=pytest.mark.long("tamis/documents"))]
)
def test_many(capsys: pytest.CaptureFixture[str], count: int) -> None:
    run = Run(int(os.environ.get("TAMIS_FUZZ_SEED", "0")), available())
    found = fuzz(run, count, processes=len(os.sched_getaffinity(0)))
    with capsys.disabled():
        print(f"\nfuzzed: {found}")
    check_shares(found)
    assert found["documents"] == count


def test_a_seed_stands_for_the_same_documents() -> None:
    assert documents(HAND, 3) == documents(HAND, 3)
    assert documents(HAND, 3) != documents(HAND, 4)
    assert documents(HAND, 3) != documents(Run(1, ("hand",)), 3)
    assert len(set(documents(HAND, 3))) > 0.8 * BATCH


def test_a_document_is_shown_again() -> None:
    command = "--seed 0 --families hand --batch 3 --document 11".split()
    shown = output(start("tests.documents.fuzz", *command))
    assert shown.startswith(str(sources(HAND, 3)[11]).split("<memory")[0])


# -- faults that a tokenizer may have, planted -----------------------------------------------------

FAULTS: dict[str, Callable[[bytes], bytes]] = {
    "]]> in text": lambda data: re.sub(rb"(?<!\])(\]\])>(?=[^<]*</)", rb"\1&gt;", data),
    "-- in a comment": lambda data: data.replace(b" -- ", b" - "),
    "U+FFFE": lambda data: data.replace(b"\xef\xbf\xbe", b"\xef\xbf\xbd"),
    "a surrogate": lambda data: data.replace(b"&#xD800;", b"&#xD7FF;"),
    "an overflow": lambda data: data.replace(b"&#99999999999;", b"&#65;"),
    "a control character": lambda data: data.replace(b"\x1f", b" "),
    "an overlong form": lambda data: data.replace(b"\xc0\x80", b"?"),
    "a NUL": lambda data: data.replace(b"\0", b" "),
    "CR in text": lambda data: re.sub(rb"\r\n(?=[^<>]*</)", rb"&#13;\n", data),
    "a tab in a value": lambda data: re.sub(rb"='([^'<]*)\t", rb"='\1&#9;", data),
    "no space between attributes": lambda data: re.sub(rb"(='[^']*')(\w)", rb"\1 \2", data),
    "a prefix unbound": lambda data: data.replace(b" xmlns:p=''", b""),
    "PI targets with colons": lambda data: data.replace(b"<?p:q", b"<?p-q"),
    "case of entities": lambda data: data.replace(b"&AMP;", b"&amp;"),
    "case of CDATA": lambda data: data.replace(b"<![cdata[", b"<![CDATA["),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_found(name: str) -> None:
    class Faulty(Wrong):
        def parse(self, sources: Any) -> Any:
            return super().parse(
                s._replace(data=FAULTS[name](bytes(s.data))) if isinstance(s, Source) else s
                for s in sources
            )

    both = BothPaths(fast=Faulty)
    with pytest.raises(Difference):
        all(both.compare(sources(HAND, batch)) for batch in range(60))
