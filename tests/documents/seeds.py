"""What mutations start from: documents of 30 to 300 bytes, in families."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from tests.documents import adversarial_documents
from tests.documents.mutations import Document, taken_apart
from tests.support.corpora import CORPORA, ROOT

_REPOSITORY = Path(__file__).parent.parent.parent
_SMALLEST, _LARGEST = 30, 300
_SUBSETS_MAX = 150
_PIECES_PER_CORPUS = 60
_READ_BYTES = 200_000


@cache
def xml_suite() -> Path:
    """The folder of the W3C's conformance suite, which is fetched where it is not here yet."""
    script = _REPOSITORY / "scripts" / "find-xml-suite"
    done = subprocess.run([script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def suite_files() -> list[Path]:
    """Every file of the suite: documents, and the DTDs and entities, which are none."""
    return sorted(path for path in xml_suite().rglob("*") if path.is_file())


def hand() -> list[bytes]:
    """The adversarial documents made by hand."""
    return adversarial_documents.DOCUMENTS


def suite() -> list[bytes]:
    """Small documents of the conformance suite, spread over all of it.

    Most of them have an internal subset, which is not for the fast path: of those only some.
    """
    plain: dict[bytes, None] = {}
    subsets: dict[bytes, None] = {}
    for path in suite_files():
        if path.suffix == ".xml" and path.stat().st_size <= _LARGEST:
            data = path.read_bytes()
            kind = subsets if b"[" in data.partition(b"<!DOCTYPE")[2] else plain
            if b"\0" not in data:  # UTF-16
                kind[data] = None
    return [*plain, *list(subsets)[:: len(subsets) // _SUBSETS_MAX + 1]]


def corpora() -> list[bytes]:
    """Small elements of the real documents, those that are well-formed by themselves."""
    found: list[bytes] = []
    for name, pattern in CORPORA.items():
        pieces: dict[bytes, None] = {}
        for path in sorted((ROOT / name).glob(pattern), key=lambda path: path.stat().st_size)[:8]:
            with path.open("rb") as file:
                pieces |= dict.fromkeys(elements(file.read(_READ_BYTES)))
        alone = [piece for piece in pieces if is_well_formed(piece)]
        found += alone[:: len(alone) // _PIECES_PER_CORPUS + 1]
    return found


FAMILIES = {"hand": hand, "suite": suite, "corpora": corpora}


def elements(data: bytes) -> Iterator[bytes]:
    """The elements of the right size in (the beginning of) a document."""
    parser = expat.ParserCreate()
    starts: list[int] = []
    spans: list[tuple[int, int]] = []

    def start(_name: str, _attributes: Any) -> None:
        starts.append(parser.CurrentByteIndex)

    def end(_name: str) -> None:
        spans.append((starts.pop(), parser.CurrentByteIndex))

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    with suppress(expat.ExpatError):  # of a broken file, what comes before the fault will do
        parser.Parse(data, False)
    for first, last in spans:
        piece = data[first : data.find(b">", last) + 1]
        if _SMALLEST <= len(piece) <= _LARGEST:
            yield piece


def is_well_formed(data: bytes) -> bool:
    parser = expat.ParserCreate(None, "\f")
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError):  # the last two of unknown encodings
        return False
    return True


def available() -> tuple[str, ...]:
    """The families that can be had: the real documents may be absent."""
    return tuple(name for name in FAMILIES if name != "corpora" or ROOT.is_dir())


class Seeds(NamedTuple):
    """The seeds of a family, taken apart."""

    good: list[Document]
    bad: list[Document]


@cache
def seeds(family: str) -> Seeds:
    """The seeds of a family."""
    found = Seeds([], [])
    for data in FAMILIES[family]():
        (found.good if is_well_formed(data) else found.bad).append(taken_apart(data))
    assert found.good, f"the family {family} has no documents"
    return found
