"""Where two parses of the same documents differ, said so that it can be seen again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.core.errors import DocumentError
from tamis.documents.batch import DocumentBatch
from tamis.documents.source import Source
from tamis.documents.vocabulary import Vocabulary

Sources = Sequence[Source | DocumentError]
Parsed = tuple[DocumentBatch, dict[int, DocumentError]]
_SHOWN = 2_000
_TRIES_MAX = 5_000  # for a smaller document that differs


class Both(NamedTuple):
    """What expat and the fast path gave for some documents."""

    vocabulary: Vocabulary
    trusted: Parsed
    fast: Parsed


def same(both: Both) -> bool:
    """Are the arrays and the errors equal, and made alike?"""
    (trusted, expected), (fast, found) = both.trusted, both.fast
    return (
        all(map(_same_array, trusted, fast))
        and list(expected) == list(found)
        and all(map(_same_error, expected.values(), found.values()))
    )


def _same_array(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> bool:
    return (
        expected.dtype == found.dtype
        and bool(found.flags.c_contiguous)
        and not found.flags.writeable
        and np.array_equal(expected, found)
    )


def _same_error(expected: DocumentError | None, found: DocumentError | None) -> bool:
    if expected is None or found is None:
        return expected is found
    return type(expected) is type(found) and expected.args == found.args


def report(sources: Sources, parsed: Callable[[Sources], Both], both: Both | None) -> str:
    """Say which document differs, where first, and the smallest part of it that still does.

    Args:
        parsed: parses documents in both ways, anew.
        both: what all of them gave, or None where the fast path raised.
    """
    if both:
        number, found = first_difference(both, len(sources))
    else:
        number = next((n for n, s in enumerate(sources) if _difference(s, parsed)), None)
        found = "the fast path raises"
    if number is None:
        return f"{found}; no document by itself differs"
    source = sources[number]
    lines = [f"document {number} of {len(sources)}: {found}", _shown(source)]
    kind = _kind(_difference(source, parsed))
    if isinstance(source, Source) and kind:
        smaller = shrunk(source, lambda some: _kind(_difference(some, parsed)) == kind)
        lines += [f"smaller, alone: {_difference(smaller, parsed)}", _shown(smaller)]
    else:
        lines.append("(alone it does not differ: what comes before it matters)")
    return "\n".join(lines)


def _difference(source: Source | DocumentError, parsed: Callable[[Sources], Both]) -> str:
    """What differs in a document by itself; nothing where it is the same."""
    try:
        both = parsed([source])
    except Exception as error:
        return f"the fast path raises {error!r}"
    return "" if same(both) else first_difference(both, 1)[1]


def _kind(difference: str) -> str:
    """What is said of a difference, without its details."""
    return re.split(r"[\[(0-9]", difference)[0]


def first_difference(both: Both, documents: int) -> tuple[int | None, str]:
    """The first document that differs and what differs in it, or None and the array."""
    (trusted, expected), (fast, found) = both.trusted, both.fast
    for number in range(documents):
        if not _same_error(expected.get(number), found.get(number)):
            return number, f"error {found.get(number)!r}, for expat {expected.get(number)!r}"
        expected_view = view(trusted, number, both.vocabulary)
        try:
            found_view = view(fast, number, both.vocabulary)
        except (IndexError, ValueError) as error:
            return number, f"arrays that cannot be read ({error}): {_first_array(both)}"
        for name, values in expected_view.items():
            if values != found_view[name]:
                return number, f"{name}{_first_place(values, found_view[name])}"
    return None, _first_array(both)


def view(batch: DocumentBatch, number: int, vocabulary: Vocabulary) -> dict[str, list[Any]]:
    """A document by itself: names spelt out, places counted from its own first event."""
    names = list(vocabulary)
    start, end = batch.document_starts[number : number + 2].tolist()
    attributes = slice(*np.searchsorted(batch.attribute_event, [start, end]).tolist())
    texts = slice(*np.searchsorted(batch.text_event, [start, end]).tolist())
    miscs = slice(*batch.misc_starts[number : number + 2].tolist())
    return {
        "events": [end - start],
        "tags": [_name(id, names) for id in batch.tags[start:end].tolist()],
        "attribute_event": (batch.attribute_event[attributes] - start).tolist(),
        "attribute_name": [_name(id, names) for id in batch.attribute_name[attributes].tolist()],
        **_values("attribute", batch[4:7], attributes),
        "text_event": (batch.text_event[texts] - start).tolist(),
        **_values("text", batch[8:11], texts),
        "comments and PIs": [miscs.stop - miscs.start],
        "misc_event": (batch.misc_event[miscs] - start).tolist(),
        "misc_text": (batch.misc_text[miscs] - texts.start).tolist(),
        "misc_name": [_name(id, names) for id in batch.misc_name[miscs].tolist()],
        **_values("misc", batch[15:18], miscs),
        "prefixes": batch.prefixes[start:end].tolist(),
        "attribute_prefixes": batch.attribute_prefixes[attributes].tolist(),
        "lines": batch.lines[start:end].tolist(),
        "offsets": batch.offsets[start:end].tolist(),
    }


def _values(kind: str, arrays: Sequence[Any], chosen: slice) -> dict[str, list[Any]]:
    """The values, and their lengths: a slice of the buffer may be cut short by its end."""
    starts, ends, buffer = arrays
    pairs = list(zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True))
    return {
        f"{kind} values": [buffer[start:end].tobytes() for start, end in pairs],
        f"{kind} lengths": [end - start for start, end in pairs],
    }


def _name(id: int, names: list[tuple[str, str]]) -> tuple[str, str] | int:
    return names[id] if 0 <= id < len(names) else id


def _first_place(expected: Sequence[Any], found: Sequence[Any]) -> str:
    for place, (a, b) in enumerate(zip(expected, found, strict=False)):
        if a != b:
            return f"[{place}] is {b!r}, for expat {a!r}"
    return f" has {len(found)}, for expat {len(expected)}"


def _first_array(both: Both) -> str:
    """The first array that differs, and where; else what is different in the errors."""
    pairs = zip(DocumentBatch._fields, both.trusted[0], both.fast[0], strict=True)
    for name, expected, found in pairs:
        if _same_array(expected, found):
            continue
        if np.array_equal(expected, found):
            return f"{name} is {found.dtype}, {found.flags}"
        return f"{name}{_first_place(expected.tolist(), found.tolist())}"
    return f"documents in error: {list(both.fast[1])}, for expat {list(both.trusted[1])}"


def shrunk(source: Source, differs: Callable[[Source], bool]) -> Source:
    """The document with spans left out, shorter and shorter ones, while it still differs."""
    data = bytes(source.data)
    span = max(1, len(data) // 2)
    tries = 0
    while span:
        start = 0
        while start < len(data) and tries < _TRIES_MAX:
            tries += 1
            shorter = data[:start] + data[start + span :]
            if differs(source._replace(data=shorter)):
                data = shorter
            else:
                start += span
        span //= 2
    return source._replace(data=data)


def _shown(source: Source | DocumentError) -> str:
    if isinstance(source, DocumentError):
        return repr(source)
    data = bytes(source.data)
    more = f"  # the first {_SHOWN} of {len(data)} bytes" if len(data) > _SHOWN else ""
    return f"Source({data[:_SHOWN]!r}, {source.encoding!r}, {source.name!r}){more}"


def by_itself(sources: Iterable[Source], parsed: Callable[[Sources], Both]) -> list[Any]:
    """What the fast path gives for each document in a batch of its own."""
    views = []
    for source in sources:
        both = parsed([source])
        error = both.fast[1].get(0)
        views.append((view(both.fast[0], 0, both.vocabulary), error and error.args))
    return views
