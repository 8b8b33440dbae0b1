"""Each bound on a document: reached is allowed, beyond it is an error that names it and its place.

The documents beside it are answered, and nothing takes long or much memory.
"""

from __future__ import annotations

import io
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tamis
from tamis.core.errors import DocumentLimitError
from tamis.core.limits import Limits
from tamis.documents.vocabulary import EVERYTHING, Projection
from tests.support.parsing import batch_of, error_of

GOOD = b"<good/>"


@pytest.mark.parametrize("value", ["1", None, 1.5, float("nan"), True, -1])
def test_a_bound_is_a_whole_number(value: object) -> None:
    with pytest.raises(tamis.UsageError, match=r"cache_bytes=.* is not a whole number from 0"):
        Limits(cache_bytes=value)  # type: ignore[arg-type]


@pytest.fixture
def _cheap() -> Iterator[None]:
    """Bounds what a test may cost: 10 seconds of the processor and 500 MB more than were in use."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    yield
    assert time.process_time() - start < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000


def refused(document: bytes | str, limits: Limits | None = None) -> tamis.DocumentError:
    """The limit error of a document between two good ones, the same whatever is projected."""
    limits = limits or Limits()
    for projection in (EVERYTHING, Projection()):
        batch, errors = batch_of(GOOD, document, GOOD, projection=projection, limits=limits)
        assert list(errors) == [1]
        assert batch.document_starts.tolist() == [0, 2, 2, 4]
    assert isinstance(errors[1], DocumentLimitError)
    assert errors[1].code == "document-limit"
    return errors[1]


def accepted(document: bytes | str, limits: Limits | None = None) -> None:
    for projection in (EVERYTHING, Projection()):
        _, errors = batch_of(document, projection=projection, limits=limits)
        assert not errors


# -- plain bounds ------------------------------------------------------------------------------


def test_depth() -> None:
    limits = Limits(depth=3)
    accepted("<a><b><c/><c/></b><b><c/></b></a>", limits)
    error = refused("<a><b>\n <c>é<d/></c></b></a>", limits)
    assert str(error) == "line 2, column 6: deeper than the limit depth = 3"


def test_depth_within_entities() -> None:
    limits = Limits(depth=3)
    accepted("<!DOCTYPE a [<!ENTITY e '<b><c/></b>'>]><a>&e;</a>", limits)
    error = refused("<!DOCTYPE a [<!ENTITY e '<b><c><d/></c></b>'>]>\n<a>&e;</a>", limits)
    assert str(error) == "line 2, column 4: deeper than the limit depth = 3"


def test_attributes() -> None:
    limits = Limits(attributes=3)
    accepted("<a b='' c='' d=''/>", limits)
    error = refused("<x>\n  <a b='' c='' d=''\n e=''/></x>", limits)
    assert str(error) == (
        "line 2, column 3: an element with more attributes than the limit attributes = 3"
    )


def test_defaulted_attributes_count_and_namespaces_do_not() -> None:
    limits = Limits(attributes=2)
    accepted("<a xmlns='urn:1' xmlns:p='urn:2' xmlns:q='urn:3' b='' c=''/>", limits)
    refused("<!DOCTYPE a [<!ATTLIST a b CDATA '' c CDATA ''>]><a d=''/>", limits)


@pytest.mark.parametrize("size", [40, 41])
@pytest.mark.parametrize("kind", ["bytes", "str", "stream", "text stream", "path", "memoryview"])
def test_document_bytes(kind: str, size: int, tmp_path: Path) -> None:
    text = "<a>" + "é" * 16
    text += " " * (size - 4 - len(text.encode())) + "</a>"
    data = text.encode()
    assert len(data) == size
    path = tmp_path / "document.xml"
    path.write_bytes(data)
    document = {
        "bytes": data,
        "str": text,
        "stream": io.BytesIO(data),
        "text stream": io.StringIO(text),
        "path": path,
        "memoryview": memoryview(data),
    }[kind]
    (match,) = tamis.compile({"x": "/a"}, limits=Limits(document_bytes=40)).match_many([document])
    if size == 40:
        assert list(match) == ["x"]
    else:
        assert str(match.error) == (
            "larger than the limit document_bytes = 40: read it as records, with match_records()"
        )


def test_a_stream_without_end_is_not_read_to_it() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:
            self.given += len(buffer)
            buffer[:] = b" " * len(buffer)
            return len(buffer)

    endless = Endless()
    error = error_of(io.BufferedReader(endless), limits=Limits(document_bytes=10_000))
    assert error.code == "document-limit"
    assert endless.given < 100_000


# -- what expands ------------------------------------------------------------------------------

LEVELS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
LONG = "x" * 50_000


def laughs(innermost: str, content: str = "<a>&l9;</a>", more: str = "") -> str:
    """A billion of something."""
    return f'<!DOCTYPE a [<!ENTITY l0 "{innermost}">{LEVELS}{more}]>{content}'


def quadratic(value: str, content: str) -> str:
    """One long thing, 20,000 times."""
    return f'<!DOCTYPE a [<!ENTITY q "{value}"><!ATTLIST b d CDATA "{LONG}">]>{content}'


BOMBS = {
    "text": laughs("lol"),
    "attribute": laughs("lol", '<a b="&l9;"/>'),
    "default": laughs("lol", "<a/>", '<!ATTLIST a b CDATA "&l9;">'),
    "elements": laughs(f"<{'b' * 50}/>"),
    "comments": laughs(f"<!--{'x' * 50}-->"),
    "PIs": laughs(f"<?x {'x' * 50}?>"),
    "nothing": laughs(""),
    "quadratic text": quadratic(LONG, f"<a>{'&q;' * 20_000}</a>"),
    "quadratic attribute": quadratic(LONG, f'<a b="{"&q;" * 20_000}"/>'),
    "quadratic attributes": quadratic(LONG, "<a>" + "<c d='&q;'/>" * 20_000 + "</a>"),
    "quadratic comment": quadratic(f"<!--{LONG}-->", f"<a>{'&q;' * 20_000}</a>"),
    "quadratic PI": quadratic(f"<?x {LONG}?>", f"<a>{'&q;' * 20_000}</a>"),
    "quadratic default": quadratic("", f"<a>{'<b/>' * 20_000}</a>"),
}


@pytest.mark.usefixtures("_cheap")
@pytest.mark.parametrize("document", BOMBS.values(), ids=BOMBS)
def test_expansion(document: str) -> None:
    """Entities and defaults that expand to 100 MB and more; expat's own limit may come first."""
    error = refused(document)
    assert "expand to more than" in str(error)
    assert error.line == 1
    assert error.column is not None


@pytest.mark.usefixtures("_cheap")
def test_expansion_bounds() -> None:
    limits = Limits(entity_amplification=5, entity_free_chars=10_000)
    subset = f'<!DOCTYPE a [<!ENTITY q "{"x" * 1_000}">]>'
    accepted(f"{subset}<a>{'&q;' * 9}</a>", limits)
    accepted(f"{subset}<a>{'<b/>' * 10_000}{'&q;' * 40}</a>", limits)
    accepted(
        f"{subset}<a>{'&q;' * 40}</a>{' ' * 8_000}", limits
    )  # the size is the whole document's
    error = refused(f"{subset}<a>{'&q;' * 20}</a>", limits)
    assert "more than 5 times the document: the limit entity_amplification" in str(error)


@pytest.mark.parametrize(
    ("content", "count"),
    [
        ("<a/>", 16),
        ("<a><b/><c></c></a>", 48),
        ("<a xmlns='urn:x' xmlns:p='urn:p'><p:b/></a>", 32),
        ("<a name='value'/>", 21),
        ("<a>&t;&t;</a>", 26),
        ("<a b='&t;'/>", 21),
        ("<a>&c;</a>", 35),
        ("<a>&p;</a>", 33),
        ("<a>&e;</a>", 34),
        ("<d/>", 23),
    ],
)
def test_what_is_counted_as_expansion(content: str, count: int) -> None:
    """Each tag, comment and PI is 16 characters, and attribute values and text what they are."""
    subset = """<!DOCTYPE a [<!ENTITY t "&#233;text"><!ENTITY c "<!--com-->"><!ENTITY p "<?p i?>">
        <!ENTITY e "<b>xy</b>"><!ATTLIST d e CDATA "default">]>"""
    accepted(subset + content, Limits(entity_amplification=0, entity_free_chars=count))
    refused(subset + content, Limits(entity_amplification=0, entity_free_chars=count - 1))


def test_entities_that_refer_to_entities() -> None:
    """Characters by number are no entities; parameter entities and unused ones count."""
    limits = Limits(entity_references=2)
    plain = '<!ENTITY x "x"><!ENTITY y "&#120;&#38;#120;&#60;b/>">'
    two = '<!ENTITY z "&x;&y;&x;"><!ENTITY w "<b c=\'&x;\'/>">'
    accepted(f"<!DOCTYPE a [{plain}{two}]><a>&y;&z;&w;</a>", limits)
    error = refused(f"<!DOCTYPE a [{plain}{two}\n<!ENTITY v '&x;'>]><a/>", limits)
    assert "the limit entity_references = 2" in str(error)
    assert error.line == 2


def test_documents_without_declarations_are_not_counted() -> None:
    limits = Limits(entity_amplification=1, entity_free_chars=0)
    accepted(b"<a xmlns='urn:" + b"x" * 1000 + b"'>" + b"<b/>" * 1000 + b"</a>", limits)


def test_long_namespaces_are_no_expansion() -> None:
    document = f"<!DOCTYPE a [<!ENTITY e 'x'>]><a xmlns='urn:{'x' * 500}'>{'<b/>' * 30_000}</a>"
    accepted(document)


NESTED = """
import sys, tamis
entities = "".join(f'<!ENTITY e{i} "&e{i - 1};">' for i in range(1, 200_000))
start, end = sys.argv[1:]
document = f'<!DOCTYPE a [<!ENTITY e0 "x">{entities}]>{start}&e199999;{end}'
(match,) = tamis.compile({"x": "/a"}).match_many([document])
print(match.error)
"""


@pytest.mark.parametrize("around", [("<a>", "</a>"), ('<a b="', '"/>')], ids="".join)
def test_entities_in_entities_in_entities(around: tuple[str, str]) -> None:
    """In a process of its own, which a stack overflow would end."""
    done = subprocess.run(
        [sys.executable, "-c", NESTED, *around],
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.returncode
    assert "limit" in done.stdout


# -- large but plain ---------------------------------------------------------------------------


@pytest.mark.usefixtures("_cheap")
@pytest.mark.parametrize(
    "document",
    [
        b"<a>" * 1_000_000 + b"</a>" * 1_000_000,
        b"<a " + b" ".join(b"a%d=''" % number for number in range(200_000)) + b"/>",
        b"<!DOCTYPE a [<!ATTLIST a "
        + b" ".join(b"a%d CDATA ''" % number for number in range(20_000))
        + b">]><a/>",
    ],
    ids=["a million levels", "many attributes", "many defaults"],
)
def test_many(document: bytes) -> None:
    refused(document)


@pytest.mark.usefixtures("_cheap")
@pytest.mark.parametrize(
    "document",
    [
        b"<a b='" + b"x" * 10_000_000 + b"'/>",
        b"<a>" + b"x" * 10_000_000 + b"</a>",
        b"<a><!--" + b"x" * 10_000_000 + b"--></a>",
        b"<a><?x " + b"x" * 10_000_000 + b"?></a>",
        b"<a><![CDATA[" + b"]" * 10_000_000 + b"]]></a>",
        b"<" + b"a" * 5_000_000 + b"/>",
        b"<a>" + b"&lt;" * 1_000_000 + b"</a>",
        b"<a" + b" " * 10_000_000 + b"/>",
    ],
    ids="attribute text comment pi cdata name references space".split(),
)
def test_one_large_thing(document: bytes) -> None:
    accepted(document)


@pytest.mark.usefixtures("_cheap")
@pytest.mark.parametrize(
    "document",
    [b"<a b='" + b"x" * 10_000_000, b"<" * 5_000_000, b"<!--" + b"-" * 5_000_000, b"&" * 5_000_000],
    ids="attribute tags comment references".split(),
)
def test_one_large_thing_that_does_not_end(document: bytes) -> None:
    assert error_of(document).line == 1
