"""Gzip and zip: what is in them is read, and what is wrong with them is said."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import mmap
import os
import pickle
import resource
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import tamis
from tamis.core.errors import MalformedDocument, UnreadableDocument
from tamis.core.limits import Limits
from tamis.documents.files import Member, NameFilter, ZipMember, archive_members, is_zip
from tamis.documents.source import Document, gunzipped, read
from tests.support.parsing import batch_of, error_of, texts

DATA = "<a>é\n<b/></a>".encode()
GZIP = gzip.compress(DATA)


def answered(document: Document) -> bool:
    batch, errors = batch_of(document)
    assert not errors, errors[0]
    return texts(batch) == ["é\n"] and batch.tags.tolist() == [0, 1, -1, -1]


@pytest.mark.parametrize(
    ("data", "packer"), [(bz2.compress(DATA), "bzip2"), (lzma.compress(DATA), "xz")]
)
def test_what_is_packed_otherwise_is_told(data: bytes, packer: str) -> None:
    message = f"packed with {packer}: unpack it, or pack it with gzip"
    matcher = tamis.compile({"b": "//b"})
    for found in (matcher.match_many([data]), matcher.match_records(data, "b")):
        (match,) = found
        assert isinstance(match.error, MalformedDocument)
        assert match.error.message == message


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_tar_archive_is_told(mode: str) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo("b.xml")
        member.size = len(DATA)
        archive.addfile(member, io.BytesIO(DATA))
    matcher = tamis.compile({"b": "//b"})
    for found in (
        matcher.match_many([packed.getvalue()]),
        matcher.match_records(packed.getvalue(), "b"),
    ):
        (match,) = found
        assert match.error is not None
        assert match.error.message == "a tar archive: give its members one by one"


# -- gzip --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        GZIP,
        gzip.compress(DATA, 0),
        b"".join(gzip.compress(DATA[place : place + 1]) for place in range(len(DATA))),
        gzip.compress(b"") * 3 + GZIP + gzip.compress(b""),
        GZIP + b"\0" * 1000,
        gzip.compress(DATA[:3]) + b"\0" * 20_000 + gzip.compress(DATA[3:]),
        gzip.compress(
            b'<?xml version="1.0" encoding="utf-16"?><a>\xe9\n<b/></a>'.decode("latin-1").encode(
                "utf-16"
            )
        ),
    ],
    ids=["plain", "stored", "members", "empty members", "padding", "padding between", "utf-16"],
)
def test_gzip_is_told_by_its_bytes(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "named.xml"
    path.write_bytes(data)
    assert answered(data)
    assert answered(memoryview(data))
    assert answered(io.BytesIO(data))
    assert answered(path)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert answered(mapped)


def test_a_name_does_not_make_gzip(tmp_path: Path) -> None:
    path = tmp_path / "a.xml.gz"
    path.write_bytes(DATA)
    assert answered(path)


@pytest.mark.parametrize("size", [1, 2, 7, 1 << 14])
def test_gzip_in_chunks(size: int) -> None:
    """Including output that ends where a piece does."""
    content = os.urandom(1 << 20) + b"\0" * (3 << 20)
    data = gzip.compress(content[:3]) + gzip.compress(content[3:]) + b"\0"
    if size < 100:
        content, data = b"<a/>" * 1000, gzip.compress(b"<a/>" * 1000)
    pieces = list(gunzipped(data[place : place + size] for place in range(0, len(data), size)))
    assert b"".join(pieces) == content
    assert 0 < min(map(len, pieces)) <= max(map(len, pieces)) <= 1 << 20


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (GZIP[:2] + b"\7" * 20, "damaged gzip: unknown compression method"),
        (GZIP[:2], "damaged gzip: it ends too early"),
        (GZIP[:-1], "damaged gzip: it ends too early"),
        (GZIP[:-8] + b"\1" * 8, "damaged gzip: incorrect data check"),
        (GZIP + b"<a/>", "damaged gzip: incorrect header check"),
        (GZIP + GZIP[:5], "damaged gzip: it ends too early"),
    ],
)
def test_damaged_gzip_is_an_error_of_its_own(data: bytes, message: str) -> None:
    first, bad, last = tamis.compile({"x": "//a"}).match_many([DATA, data, DATA])
    assert (list(first), list(last)) == (["x"], ["x"])
    assert isinstance(bad.error, UnreadableDocument)
    assert str(bad.error) == message


def test_gzip_is_limited_by_what_is_in_it() -> None:
    document = b"<a>" + b" " * 993 + b"</a>"
    limits = Limits(document_bytes=1000)
    _, errors = batch_of(gzip.compress(document), gzip.compress(document + b" "), limits=limits)
    assert {number: error.code for number, error in errors.items()} == {1: "document-limit"}


def test_a_gzip_bomb_ends_at_the_limit() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    bomb = gzip.compress(b"<a>" + b" " * (400 << 20)) * 2
    error = error_of(bomb, limits=Limits(document_bytes=10 << 20))
    assert error.code == "document-limit"
    assert "document_bytes = 10,485,760" in str(error)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 900_000


def test_many_empty_members_are_not_quadratic() -> None:
    assert b"".join(gunzipped([gzip.compress(b"") * 50_000 + GZIP])) == DATA


# -- zip ---------------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "some.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("in/b.xml", DATA)
        opened.writestr("notes.txt", "no document")
        opened.writestr("in/", "")
        opened.writestr("a.xml.gz", GZIP)
        opened.writestr("__MACOSX/._a.xml", b"\0")
        opened.writestr("z.xml", b"<a>")
    return path


def members_of(path: Path, left_out: list[str] | None = None) -> list[Member]:
    others = [] if left_out is None else left_out
    with path.open("rb") as file:
        return list(archive_members(file, str(path), NameFilter(), others))


def test_members_of_a_tar_archive() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tape:
        for name in ("b.xml", "notes.txt"):
            member = tarfile.TarInfo(name)
            member.size = len(DATA)
            tape.addfile(member, io.BytesIO(DATA))
    packed.seek(0)
    left_out: list[str] = []
    (found,) = archive_members(packed, "in.tar", NameFilter(), left_out)
    assert (found.name, found.size, left_out) == ("b.xml", len(DATA), ["notes.txt"])
    with pytest.raises(tarfile.ReadError):
        list(archive_members(io.BytesIO(b"no tar"), "in.tar", NameFilter(), []))


def test_members_are_documents_in_order(archive: Path) -> None:
    assert is_zip(archive)
    left_out: list[str] = []
    members = members_of(archive, left_out)
    assert left_out == ["notes.txt"]
    assert [member.name for member in members] == ["in/b.xml", "a.xml.gz", "z.xml"]
    assert str(members[0]) == f"{archive}/in/b.xml"
    assert read(members[0], Limits()).name == str(members[0])
    assert answered(members[0])
    assert answered(pickle.loads(pickle.dumps(members[1])))
    assert error_of(members[2]).code == "document-malformed"
    assert error_of(members[0], limits=Limits(document_bytes=5)).code == "document-limit"


def test_members_read_by_several_threads(archive: Path) -> None:
    members = members_of(archive)[:2] * 50
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(answered, members))


def test_members_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "twice.zip"
    with zipfile.ZipFile(path, "w") as opened:
        opened.writestr("a.xml", b"<a/>")
        with pytest.warns(UserWarning, match="Duplicate"):
            opened.writestr("a.xml", b"<b/>")
    matcher = tamis.compile({"a": "/a", "b": "/b"})
    assert [list(match) for match in matcher.match_many(members_of(path))] == [["a"], ["b"]]


def test_bad_members_are_errors_of_their_own(archive: Path) -> None:
    data = bytearray(archive.read_bytes())
    place = data.index(b"in/b.xml") + len("in/b.xml")
    data[place : place + 4] = b"\xff" * 4
    encrypted = data.rindex(b"PK\x01\x02")
    data[encrypted + 8] |= 1
    archive.write_bytes(data)
    damaged, good, secret = tamis.compile({"a": "/a"}).match_many(members_of(archive))
    assert list(good) == ["a"]
    assert damaged.error.code == secret.error.code == "document-unreadable"
    assert str(damaged.error).startswith("cannot read it from the archive: ")
    assert str(secret.error) == "cannot read it from the archive: it is encrypted"


def test_an_archive_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "some.zip"
    path.write_bytes(b"PK\x03\x04 and no more")
    assert is_zip(path)
    with pytest.raises(zipfile.BadZipFile):
        members_of(path)
    with zipfile.ZipFile(path, "w"):
        pass
    assert is_zip(path)
    assert members_of(path) == []
    path.unlink()
    assert not is_zip(path)
    assert error_of(ZipMember(path, 0, "a.xml")).code == "document-unreadable"


def test_what_is_no_archive(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.zip")
    assert not is_zip(tmp_path / "pipe.zip")
    assert not is_zip(tmp_path)
    assert not is_zip("a\0b")
