"""Records behind one that is damaged: each is what it is in a document without damage."""

from __future__ import annotations

import gzip
import io
import random
import resource
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.core.errors import DocumentError
from tamis.core.limits import Limits
from tamis.documents import record_batch, resumed_records

MATCHER = tamis.compile({"b": "/a/b", "n": "/a[@n > 5]", "t": "/a[contains(., 'é')]"})
RECORDS = [
    f"<a n='{n}'>{'<b/>' * (n % 3)}{'é' * (n % 4)}<!--{n}-->\r\n<c>{n}</c></a>" for n in range(12)
]
DAMAGE = {
    "entity": "<a><b/>&e;</a>",
    "mismatch": "<a><b></a>",
    "mismatch below": "<a><b><c></b></c></a>",
    "control": "<a>\x01</a>",
    "twice": "<a b='' b=''/>",
    "unbound": "<a><p:b/></a>",
    "half a tag": "<a><b",
    "half an attribute": "<a b=",
    "not closed": "<a><b>",
    "not closed with text": "<a>1<b/>2",
    "end": "</c>",
    "outside": "&e;",
    "half a tag outside": "<c",
}
Told = tuple[int, list[str] | None]


def told(document: object, nodes: bool = False, tag: str = "a") -> list[Told]:
    """The number of each record, and what it matches, or None for an error."""
    found = MATCHER.match_records(
        document, tag, nodes="all" if nodes else None, on_bad_record="resume"
    )
    return [(m.record or 0, None if m.error else sorted(map(str, m))) for m in found]


def in_chunks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[place : place + size] for place in range(0, len(data), size))


class Chunks(io.RawIOBase):
    """A stream that gives some bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self.left = in_chunks(data, size)

    def read(self, _size: int = -1) -> bytes:
        return next(self.left, b"")


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("at", [1, 6, 11])
@pytest.mark.parametrize("nodes", [False, True])
def test_records_behind_damage(name: str, at: int, nodes: bool) -> None:
    good, before = told(f"<x>{''.join(RECORDS)}</x>"), RECORDS[:at]
    data = f"<x>\n{''.join(before)}{DAMAGE[name]}\n{''.join(RECORDS[at:])}</x>"
    for document in (data, data.encode(), data.encode("utf-16"), gzip.compress(data.encode())):
        found = told(document, nodes)
        errors = [number for number, answer in found if answer is None]
        assert errors == [at]
        assert [answer for _, answer in found if answer is not None] == [a for _, a in good]
        assert [number for number, _ in found] == list(range(len(good) + 1))


@pytest.mark.parametrize("name", [name for name in DAMAGE if "not closed" not in name])
def test_where_damage_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes that are passed over, and the lines of what follows."""
    monkeypatch.setattr(record_batch, "BATCH_RECORDS", 4)
    data = f"<x>\n{'<a/>' * 9}{DAMAGE[name]}\n\n é <a>&x;</a>\n<a><b/></a></x>".encode()
    for size in (1, 7, len(data)):
        found = list(MATCHER.match_records(Chunks(data, size), "a", on_bad_record="resume"))
        wrong = [match.error for match in found if match.error]
        assert len(wrong) == 2
        start = data.index(b"<a>&x;")
        assert f" to {start:,} were passed over" in wrong[0].message or "nothing" in str(wrong[0])
        assert f"; bytes {start:,} to {data.index(b'<a><b/></a></x>'):,} were" in wrong[1].message
        assert (wrong[1].line, wrong[1].column) == (4, 7)
        assert list(found[-1]) == ["b"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*RECORDS, *DAMAGE.values()]), max_size=30), st.integers(1, 300))
def test_any_damage(parts: list[str], size: int) -> None:
    """However it comes: no good record is lost, and the bytes are the same for all readers."""
    data = f"<x><a/>{'  '.join(parts)}</x>".encode()
    whole = told(data)
    assert told(Chunks(data, size)) == told(data, nodes=True) == whole
    assert told(Chunks(data, size), nodes=True) == whole
    good = [
        answer for _, answer in told("<x>" + "".join(p for p in parts if p in RECORDS) + "</x>")
    ]
    rest = iter(answer for _, answer in whole if answer is not None)
    assert all(answer in rest for answer in good)  # in this order


def test_both_readers_pass_over_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_batch, "BATCH_RECORDS", 5)
    drawn = random.Random(7)
    for _ in range(100):
        parts = drawn.choices([*RECORDS, *DAMAGE.values()], k=20)
        data = f"<x><a/>{''.join(parts)}</x>".encode()
        said = [
            [
                (m.record, str(m.error), list(m) if m.error is None else None)
                for m in MATCHER.match_records(data, "a", nodes=nodes, on_bad_record="resume")
            ]
            for nodes in (None, "first")
        ]
        assert said[0] == said[1]


def test_what_ends_a_stream_still() -> None:
    for document in (
        b"<x><a",
        b"<x y><a/></x>",  # what is around records is not known
        b"<!DOCTYPE x [<!ENTITY e '1'>]><x><a/><a>&f;</a><a/></x>",
        b"<x><a/><a>&e;</a></x>",  # no record follows
        "<x>" * 1001 + "<a/>" + "</x>" * 1001,  # a limit is no damage
        gzip.compress(b"<x><a/><b></x>" + b"<a/>" * 9999)[:-20],
    ):
        *_, last = MATCHER.match_records(document, "a", on_bad_record="resume")
        (error,) = [m.error for m in [last] if m.error]
        assert isinstance(error, DocumentError)
        assert "passed over" not in str(error)


def test_elements_around_are_those_of_the_record_before() -> None:
    good = "<g><a><b/></a></g>"
    for damage in ("<h xmlns='u'>&e;</h>", "<g><h>&e;</h></g>", "</h>"):
        found = told(f"<x>{good}{damage}{good * 3}</x>")
        assert [answer for _, answer in found if answer] == [["b"]] * 4
        assert len(found) <= 6  # the damage, and at most what it leaves open
    found = told("<donnée xmlns:p='é'><a/><a>&e;</a><a p:x=''><b/></a></donnée>")
    assert found == [(0, []), (1, None), (2, ["b"])]
    latin = b"<?xml version='1.0' encoding='latin1'?>" + "<é><a/>&e;<a/></é>".encode("latin-1")
    assert told(latin) == [(0, []), (1, None), (2, [])]


@pytest.mark.parametrize("size", [1, 7, 64, 1000, 4096, 1 << 20])
def test_lines_of_what_is_passed_over(size: int) -> None:
    for between in ("\r\n" * 3000, "é€😀\r" * 1000, "x" * 5000):
        head = f"<x>\n<a><b>&e;</b></a>{between}"
        data = f"{head}<a>3&f;</a><a/></x>".encode()
        found = list(MATCHER.match_records(Chunks(data, size), "a", on_bad_record="resume"))
        error = found[1].error
        assert error is not None
        lines = head.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        assert (error.line, error.column) == (len(lines), len(lines[-1]) + 5)
    name = "a" * 1100
    data = f"<x><{name}>&e;</{name}>{' ' * 100}<{name}>3</{name}></x>".encode()
    assert told(Chunks(data, size), tag=name) == [(0, None), (1, [])]


@pytest.mark.parametrize("count", [1, 12, 100])
def test_many_records_without_end_tags(count: int) -> None:
    """Each is an error, and no good record is lost."""
    good = "".join(RECORDS)
    data = f"<x>{good}{'<a><b>' * count}{good * 20}</x>"
    for document in (data, Chunks(data.encode(), 1000)):
        found = told(document)
        assert sum(answer is None for _, answer in found) == count
        assert [answer for _, answer in found if answer is not None] == 21 * [
            answer for _, answer in told(f"<x>{good}</x>")
        ]


def test_a_record_without_end_tag_in_a_large_file() -> None:
    """Of which more follows than is kept."""
    limited = MATCHER.with_limits(Limits(document_bytes=1 << 16))
    record, count = b"<a n='6'>" + b"<c/>" * 500 + b"</a>", 10_000  # 20 MB
    document = b"<x><a/><a><b>" + record * count + b"</x>"
    found = list(limited.match_records(document, "a", on_bad_record="resume"))
    assert sum(list(match) == ["n"] for match in found if not match.error) == count
    (error,) = [match.error for match in found if match.error]
    assert error.message.startswith("larger than the limit document_bytes = 65,536; bytes 7 to 13 ")
    document = b"<x><a/><a>" + b"<c/>" * 6_000_000 + b"</a>" + record * 3 + b"</x>"  # no damage
    found = list(limited.match_records(document, "a", on_bad_record="resume"))
    assert [match.record for match in found if match.error] == [1]
    assert [list(match) for match in found if not match.error] == [[], ["n"], ["n"], ["n"]]


def test_junk_after_the_root() -> None:
    assert [answer for _, answer in told("<x><a><b/></a></x><x><a><b/></a></x>")][:3] == [
        ["b"],
        None,
        ["b"],
    ]


def test_bytes_are_not_read_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    read_from = resumed_records._KeptChunks.read_from

    def counted(*given: Any) -> Iterator[bytes]:
        nonlocal read
        for piece in read_from(*given):
            read += len(piece)
            yield piece

    monkeypatch.setattr(resumed_records._KeptChunks, "read_from", counted)
    monkeypatch.setattr(resumed_records, "_PIECE", 64)
    monkeypatch.setattr(resumed_records, "_AGAIN_BYTES", 1 << 10)
    limited = MATCHER.with_limits(Limits(depth=200_000))
    for one in (b"<a>", b"<a><b></a>", b"</a>", b"&e;<a/>", b"<a b=<a/>", b"<a><!--"):
        for count in (50, 400):
            document, read = b"<x><a/>" + one * count, 0
            found = list(limited.match_records(document, "a", on_bad_record="resume"))
            errors = sum(match.error is not None for match in found)
            assert 1 <= errors <= count + 1
            assert read < 25 * len(document) + 200 * errors, (one, count)


def test_memory_is_bounded() -> None:
    """A bad record that is never closed, of which more follows than is kept."""
    limited = MATCHER.with_limits(Limits(document_bytes=1 << 20))

    def chunks() -> Iterator[bytes]:
        yield b"<x><a/><a>"
        for _ in range(80):
            yield b"<c>1</c>" * (1 << 17)
        yield b"</x>"

    class Many(io.RawIOBase):
        left = chunks()

        def read(self, _size: int = -1) -> bytes:
            return next(self.left, b"")

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = list(limited.match_records(Many(), "a", on_bad_record="resume"))
    assert len(found) == 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150_000
