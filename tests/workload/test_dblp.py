"""The bibliography: valid by DBLP's DTD, of the size asked for, some 16 bytes an event."""

from __future__ import annotations

import hashlib
import re
from io import BytesIO

import pytest
from lxml import etree

from tamis.core.errors import UsageError
from tamis_workload.documents.dblp import authors, dblp
from tests.support.corpora import ROOT


def test_size_and_events() -> None:
    document = b"".join(dblp(size=3_000_000))
    assert 2_999_000 < len(document) <= 3_000_000
    events = len(re.findall(rb"<[a-z/]", document))
    assert 15.5 < len(document) / events < 16.5
    tags = set(re.findall(rb"<(\w+)", document))
    assert {b"article", b"inproceedings", b"phdthesis", b"incollection", b"sub", b"cite"} < tags
    document.decode()
    assert b"&amp;" in document


def test_records_and_streaming() -> None:
    pieces = dblp(records=30_000, seed=3)
    assert max(map(len, pieces)) <= 1 << 21
    document = b"".join(dblp(records=30_000, seed=3))
    assert len(etree.fromstring(document)) == 30_000
    assert len(set(authors().given)) == 200_000
    found = re.findall(rb"<author>(.*?)</author>", document)
    assert 20_000 < len(set(found)) < len(found)  # Zipf: a few are everywhere


def test_the_same_bytes_everywhere() -> None:
    digest = hashlib.sha256(b"".join(dblp(records=500, seed=7))).hexdigest()[:16]
    assert digest == "6638c5d80fed17a2"


@pytest.mark.corpora
def test_valid() -> None:
    if not ROOT.is_dir():
        pytest.skip(f"the DTD is not at {ROOT}")
    validator = etree.DTD(str(ROOT / "dblp" / "dblp.dtd"))
    for seed in range(3):
        tree = etree.parse(BytesIO(b"".join(dblp(size=2_000_000, seed=seed))))
        assert validator.validate(tree), validator.error_log


def test_refused() -> None:
    with pytest.raises(UsageError, match="has 54 bytes at least, not 50"):
        list(dblp(size=50))
    with pytest.raises(UsageError, match="either size or records"):
        dblp()
    with pytest.raises(UsageError, match="either size or records"):
        dblp(size=100, records=3)
