"""Which documents the fast path must do itself, found out without it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.parsers import expat

from tamis.core.errors import DocumentError
from tamis.documents.source import Source
from tests.documents.both_paths import PROJECTIONS, BothPaths, Counts

_ODD_DOCTYPE = re.compile(rb"<!DOCTYPE\s+[!-~]*[\x80-\xff]")
_ENCODING = re.compile(rb"<\?xml[^>]*encoding\s*=\s*[\"']([^\"']+)")


def is_for_the_fast_path(source: Source | DocumentError) -> bool:
    """Is it well-formed for expat, without an internal subset, and UTF-8, declared or not?

    Left out: DOCTYPEs whose name is not ASCII.
    """
    if isinstance(source, DocumentError) or source.encoding not in (None, "utf-8"):
        return False
    data = bytes(source.data)
    if _ODD_DOCTYPE.search(data):
        return False
    declared = _ENCODING.match(data)
    if declared and declared[1].lower() not in (b"utf-8", b"utf8"):
        return False
    subsets = []
    parser = expat.ParserCreate(source.encoding, "\f")
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
    parser.ExternalEntityRefHandler = lambda *_: 1
    parser.StartDoctypeDeclHandler = lambda _name, _system, _public, subset: subsets.append(subset)
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, LookupError, ValueError):  # the last two of unknown encodings
        return False
    return not any(subsets)


def compare_all(sources: Sequence[Source | DocumentError]) -> tuple[Counts, int]:
    """Compare both paths with every projection: what must not be declined apart from the others.

    Returns:
        What became of all of them, and how many the fast path had to do itself.
    """
    ours = [source for source in sources if is_for_the_fast_path(source)]
    others = [source for source in sources if not is_for_the_fast_path(source)]
    most = Counts()
    for number, projection in enumerate(PROJECTIONS.values()):
        counts = BothPaths(projection, fast_first=bool(number % 2)).compare(ours)
        assert counts.accepted == len(ours)
        assert counts.declined == 0
        counts = counts.plus(BothPaths(projection, fast_first=bool(number % 2)).compare(others))
        most = max(most, counts)
    return most, len(ours)
