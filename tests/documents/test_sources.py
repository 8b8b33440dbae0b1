"""Where documents may come from, and what is said of those that cannot be read."""

from __future__ import annotations

import codecs
import gzip
import io
import mmap
import os
import zipfile
from collections.abc import Iterator
from encodings.aliases import aliases
from pathlib import Path

import numpy as np
import pytest

import tamis
from tamis.core.limits import Limits
from tamis.documents.source import Document, read
from tests.support.parsing import batch_of, error_of, texts

TEXT = "<a>é\n<b/></a>"
DATA = TEXT.encode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "document.xml"
    found.write_bytes(DATA)
    return found


def answered(document: Document) -> bool:
    """Whether it is read as TEXT is."""
    batch, errors = batch_of(document)
    assert not errors, errors[0]
    return texts(batch) == ["é\n"] and batch.tags.tolist() == [0, 1, -1, -1]


@pytest.mark.parametrize(
    "document",
    [
        TEXT,
        DATA,
        bytearray(DATA),
        memoryview(DATA),
        memoryview(bytearray(DATA)),
        memoryview(b"<x>" + DATA + b"</x>")[3:-4],
        memoryview(b"".join(bytes([byte, 0]) for byte in DATA))[::2],
        memoryview(np.frombuffer(DATA, dtype=np.int8)),
        memoryview(DATA.ljust(24)).cast("B", (4, 6)),
        io.BytesIO(DATA),
        io.StringIO(TEXT),
        io.BufferedReader(io.BytesIO(DATA)),
        gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(DATA))),
    ],
    ids=lambda document: type(document).__name__,
)
def test_kinds(document: Document) -> None:
    assert answered(document)


def test_files(path: Path, tmp_path: Path) -> None:
    assert answered(path)
    with path.open("rb") as file:
        assert answered(file)
    with path.open("rb", buffering=0) as file:
        assert answered(file)
    with path.open(encoding="utf-8") as file:
        assert answered(file)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert answered(mapped)
        assert answered(memoryview(mapped)[:])
    link = tmp_path / "link.xml"
    link.symlink_to(path)
    assert answered(link)
    with zipfile.ZipFile(tmp_path / "documents.zip", "w") as archive:
        archive.write(path, "a.xml")
        with archive.open("a.xml") as member:
            assert answered(member)


def test_a_stream_is_read_from_where_it_is() -> None:
    stream = io.BytesIO(b"<x/>" + DATA)
    stream.seek(4)
    assert answered(stream)


class Drops(io.RawIOBase):
    """A raw stream that gives three bytes at a time, as a socket may."""

    def __init__(self) -> None:
        self.stream = io.BytesIO(DATA)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        return self.stream.readinto(memoryview(buffer)[:3])  # a bytearray's slice is a copy


def test_a_stream_that_gives_a_little_at_a_time() -> None:
    assert answered(Drops())


def test_what_is_read_is_what_was_given() -> None:
    """A document is not copied where that can be helped, and never changed."""
    for data in (DATA, memoryview(DATA)):
        assert bytes(read(data, Limits()).data) == DATA
    assert read(DATA, Limits()).data is DATA


@pytest.mark.parametrize("thing", [None, 5, ["<a/>"], {"a": 1}, object(), Path])
def test_what_is_no_document(thing: object) -> None:
    with pytest.raises(tamis.UsageError, match="a document is bytes"):
        tamis.compile({"x": "//a"}).match(thing)


# -- what cannot be read -----------------------------------------------------------------------


def unreadable(tmp_path: Path) -> Iterator[Document]:
    """All of these, with the documents beside them answered."""
    yield tmp_path
    yield tmp_path / "missing.xml"
    yield tmp_path / "missing" / "missing.xml"
    yield tmp_path / ("x" * 5_000)
    yield Path("a\0b")
    closed = io.BytesIO(DATA)
    closed.close()
    yield closed
    loop = tmp_path / "loop.xml"
    loop.symlink_to(loop)
    yield loop
    yield io.TextIOWrapper(io.BytesIO(b"<a>\xff</a>"), encoding="utf-8")
    if os.geteuid() != 0:
        secret = tmp_path / "secret.xml"
        secret.write_bytes(DATA)
        secret.chmod(0)
        yield secret


def test_unreadable(tmp_path: Path) -> None:
    documents = list(unreadable(tmp_path))
    mixed = [document for pair in ((DATA, each) for each in documents) for document in pair]
    matches = list(tamis.compile({"x": "//a"}).match_many(mixed))
    assert [list(match) for match in matches[::2]] == [["x"]] * len(documents)
    for document, match in zip(documents, matches[1::2], strict=True):
        assert match.error.code == "document-unreadable", document
        assert "\n" not in str(match.error)
        assert (
            not isinstance(document, Path)
            or "missing" not in document.name
            or (str(document) in str(match.error))
        )


@pytest.mark.parametrize("kind", ["truncated gzip", "closed mmap"])
def test_broken_streams(kind: str) -> None:
    if kind == "truncated gzip":
        broken: Document = gzip.GzipFile(fileobj=io.BytesIO(gzip.compress(DATA)[:-10]))
    else:
        broken = mmap.mmap(-1, 10)
        broken.close()
    assert error_of(broken).code == "document-unreadable"


def test_a_view_in_another_order() -> None:
    columns = np.asfortranarray(np.frombuffer(DATA.ljust(24), dtype=np.uint8).reshape(4, 6))
    assert answered(memoryview(columns))


@pytest.mark.parametrize("text", ["document.xml", "a\0b", "hello", "x" * 10_000])
def test_a_str_that_is_no_xml(text: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be meant as the name of a file, which is not looked for."""
    monkeypatch.chdir(path.parent)
    error = error_of(text)
    assert error.code == "document-malformed"
    assert "pathlib.Path" in str(error)
    assert len(str(error)) < 200


@pytest.mark.parametrize(
    "data",
    [b"", b" ", b"\x00", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\x89PNG\r\n", b"PK\x03\x04"],
)
def test_what_is_not_xml(data: bytes) -> None:
    assert error_of(data).code in ("document-malformed", "document-encoding")
    assert error_of(data).line is not None


# -- encodings ---------------------------------------------------------------------------------


def encodings(*, of_unicode: bool) -> list[str]:
    """The names of encodings that Python knows: of UTF-8 and UTF-16, or all others."""
    known = sorted(name for name in {*aliases, *aliases.values()} if name[0].isalpha())
    return [name for name in known if _is_text(name) and of_unicode == _is_unicode(name)]


def _is_text(name: str) -> bool:
    try:
        return codecs.lookup(name)._is_text_encoding
    except LookupError:  # of another operating system
        return False


def _is_unicode(name: str) -> bool:
    return codecs.lookup(name).name.startswith(("utf-8", "utf-16"))


def read_in(encoding: str) -> str | None:
    """What is read of a letter in an encoding, or the code of the error; None if it is not."""
    letter = next((x for x in "漢яéx" if x.encode(encoding, "ignore").decode(encoding) == x), "x")
    declaration = f'<?xml version="1.0" encoding="{encoding}"?>'
    batch, errors = batch_of(f"{declaration}<a b='1'>{letter}</a>".encode(encoding))
    found = errors[0].code if errors else "".join(texts(batch))
    return None if found == letter else found


def test_every_encoding_that_python_knows() -> None:
    """Each is read rightly, but for those that no document should be in."""
    names = encodings(of_unicode=False)
    found = {name: read_in(name) for name in names if name not in ("idna", "punycode", "undefined")}
    assert len(found) > 200
    wrong = {name: code for name, code in found.items() if code is not None}
    assert wrong == {
        **dict.fromkeys(("u7", "unicode_1_1_utf_7", "utf7", "utf_7"), "document-encoding"),
        # Its quotation mark is not where other EBCDIC pages have it.
        **dict.fromkeys(("cp1026", "csibm1026", "ibm1026"), "document-malformed"),
    }


@pytest.mark.parametrize("name", encodings(of_unicode=True))
def test_other_spellings_of_utf_8_and_utf_16(name: str) -> None:
    assert read_in(name) is None


@pytest.mark.parametrize("name", ["x-nonsense", "hex"])
def test_a_declaration_that_is_far_away(name: str) -> None:
    document = f'<?xml version="1.0" {" " * 2_000} encoding="{name}"?><a/>'
    error = error_of(document.encode())
    assert error.code == "document-limit"
    assert str(error) == "line 1, column 1: the XML declaration is longer than 1,024 bytes"


@pytest.mark.parametrize("space", ["\n", "\t", "\r\n"])
def test_a_declaration_that_is_far_away_after_other_white_space(space: str) -> None:
    document = f'<?xml{space}version="1.0" {" " * 2_000} encoding="x-nonsense"?><a/>'
    assert error_of(document.encode()).code == "document-limit"


def test_an_encoding_of_escapes_is_no_encoding_of_documents() -> None:
    for name in ("unicode_escape", "unicode-escape", "raw_unicode_escape", "raw-unicode-escape"):
        document = f'<?xml version="1.0" encoding="{name}"?><a>\\u003cb/></a>'
        assert error_of(document.encode()).code == "document-encoding", name
