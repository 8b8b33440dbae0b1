"""``declared_encoding``: what a document declares counts, or is left out."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import tamis
from tamis.transform.transformer import Transformer

TEXT = "<?xml version='1.0' encoding='{}'?><l><a>é𐀀</a></l>"
MATCHER = tamis.compile({"x": "//a = 'é𐀀'", "s": "//a[last()] = 'é𐀀'"}, unsupported="slow")
DECLARED = [
    "ISO-8859-1",
    "UTF-16",
    "us-ascii",
    "windows-1252",
    "cp037",
    "no-such-encoding",
    "utf-8",
]


def forms(text: str, folder: Path) -> dict[str, object]:
    """A document in all the ways that it can be given in."""
    path = folder / "x.xml"
    path.write_bytes(text.encode())
    return {
        "str": text,
        "str with a mark": "\ufeff" + text,
        "text stream": io.StringIO(text),
        "bytes": text.encode(),
        "bytes with a mark": text.encode("utf-8-sig"),
        "UTF-16 with a mark": text.encode("utf-16"),
        "UTF-32 with a mark": text.encode("utf-32"),
        "file": path,
        "stream": io.BytesIO(text.encode()),
    }


@pytest.mark.parametrize("declared", DECLARED)
def test_ignored(declared: str, tmp_path: Path) -> None:
    """A str is what it is; bytes are what their mark says, or UTF-8."""
    text = TEXT.format(declared)
    for name in forms(text, tmp_path):
        match = MATCHER.match(forms(text, tmp_path)[name], declared_encoding="ignore")
        assert (list(match), match.failed) == (["x", "s"], {}), name
        (record,) = MATCHER.match_records(
            forms(text, tmp_path)[name], "l", declared_encoding="ignore"
        )
        assert (record.error, list(record)) == (None, ["x", "s"]), name


@pytest.mark.parametrize("declared", DECLARED[:-1])
def test_checked_by_default(declared: str, tmp_path: Path) -> None:
    text = TEXT.format(declared)
    for name in ("str", "str with a mark", "text stream", "bytes with a mark"):
        for options in ({}, {"declared_encoding": "check"}):
            (match,) = MATCHER.match_many([forms(text, tmp_path)[name]], **options)
            assert match.error is not None
            assert match.error.code == "document-encoding"
            assert 'declared_encoding="ignore"' in str(match.error)


def test_bytes_that_are_not_utf_8_stay_an_error() -> None:
    document = TEXT.format("ISO-8859-1").replace("𐀀", "").encode("latin-1")
    (match,) = MATCHER.match_many([document], declared_encoding="ignore")
    assert match.error is not None
    (packed,) = MATCHER.match_many([b"BZh91AY&SY"], declared_encoding="ignore")
    assert "packed with bzip2" in str(packed.error)


def test_everything_that_reads_documents_has_it() -> None:
    text = TEXT.format("ISO-8859-1")
    live = tamis.Matcher({"x": "//a"})
    assert list(live.match(text, declared_encoding="ignore")) == ["x"]
    assert live.explain(text, "x", declared_encoding="ignore").matched
    transformer = Transformer({"x": "<r>{ for $a in //a return <b>{ $a/text() }</b> }</r>"})
    (message,) = transformer.transform(text, declared_encoding="ignore")
    assert "é𐀀" in message.text
    for ask in (live.match, transformer.transform):
        with pytest.raises(tamis.UsageError, match='is "check" or "ignore", not True'):
            ask(text, declared_encoding=True)
