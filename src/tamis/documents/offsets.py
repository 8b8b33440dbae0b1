"""Where nodes stand in a document, found by looking at its markup again.

An :class:`EventBatch` has the places of its tags, where they are demanded. Those of attributes, of
text, comments and PIs are asked for seldom, so they are looked for when they are.
"""

from __future__ import annotations

import mmap
import re
from array import array
from functools import cached_property

import numpy as np

from tamis.documents.batch import EventBatch, Int64
from tamis.documents.vocabulary import Vocabulary

Range = tuple[int, int]
"""The place of the first byte, and the one behind the last."""

_NAME_MAX = 1 << 16
_AMP, _SLASH, _SEMICOLON = b"&/;"
_TAG = re.compile(rb"""<[^"'>]*+(?:(?:"[^"]*+"|'[^']*+')[^"'>]*+)*+>""")
_TAG_END = re.compile(b">")
_REFERENCE_END = re.compile(b";")
_ATTRIBUTE = re.compile(
    rb"""[ \t\r\n]([^ \t\r\n=/>"']++)[ \t\r\n]*+=[ \t\r\n]*+(?:"[^"]*+"|'[^']*+')"""
)
_COMMENT, _PI, _CDATA = rb"<!--.*?-->", rb"<\?.*?\?>", rb"<!\[CDATA\[.*?\]\]>"
_LITERAL = rb""""[^"]*+"|'[^']*+'"""
# What stands between two tags; a DOCTYPE also between the document's begin and the first one.
_CONTENT = re.compile(
    rb"(?P<misc>" + _COMMENT + rb"|" + _PI + rb")"
    rb"|(?P<doctype><!DOCTYPE(?:" + _LITERAL + rb"|[^\[>\"'])*+"
    rb"(?:\[(?:" + _COMMENT + rb"|" + _PI + rb"|" + _LITERAL + rb"|[^\]\"'])*+\][^>]*+)?>)"
    rb"|(?P<cdata>" + _CDATA + rb")"
    rb"|(?P<reference>&[^;]*+;)"
    rb"|(?P<characters>[^<&]++)",
    re.DOTALL,
)
_DECLARATION = re.compile(rb"<\?xml[ \t\r\n].*?\?>", re.DOTALL)
_KNOWN_REFERENCE = re.compile(rb"&(?:#.*|lt|gt|amp|apos|quot);")


class Excerpt:
    r"""Bytes of a document, and where in it they stand; the caller may not change them.

    Args:
        data: the bytes, as they were parsed.
        encoding: theirs: one in which markup is ASCII.
        start: the number of bytes before them, of those that were parsed.
        mark: the number of bytes of the document before all that was parsed.
        line: the line that they begin in.

    >>> excerpt = Excerpt(b"<a>\r\n<b/></a>")
    >>> excerpt.lines(np.array([0, 5])), excerpt.text(5, 9)
    (array([1, 2]), '<b/>')
    """

    def __init__(
        self,
        data: bytes | memoryview | mmap.mmap,
        encoding: str = "utf-8",
        *,
        start: int = 0,
        mark: int = 0,
        line: int = 1,
    ) -> None:
        self.data = data
        self.encoding = encoding
        self.start = start
        self.mark = mark
        self.line = line

    def lines(self, offsets: Int64) -> Int64:
        """The lines of places of the document."""
        found = np.searchsorted(self._line_ends, offsets - (self.start + self.mark))
        return (found + self.line).astype(np.int64)

    def text(self, start: int, end: int) -> str:
        """What stands between two places of the document."""
        before = self.start + self.mark
        return bytes(self.data[max(0, start - before) : end - before]).decode(self.encoding)

    @cached_property
    def _line_ends(self) -> Int64:
        data = np.frombuffer(self.data, np.uint8)
        ends = data == ord("\n")
        returns = np.flatnonzero(data == ord("\r"))
        if len(returns):
            is_alone = data[np.minimum(returns + 1, len(data) - 1)] != ord("\n")
            ends[returns[is_alone]] = True
        return np.flatnonzero(ends)


class Markup:
    """The places of the nodes of one document of a batch, in the bytes that were parsed.

    Args:
        batch: parsed with offsets, and with prefixes where attributes in namespaces are recorded.
        document: which of the batch.
        excerpt: has its bytes.
        vocabulary: that the batch was parsed with.

    Attributes:
        first, last: the events of the document are those from ``first`` on, up to ``last``.
    """

    def __init__(
        self, batch: EventBatch, document: int, excerpt: Excerpt, vocabulary: Vocabulary
    ) -> None:
        self.batch = batch
        self.excerpt = excerpt
        self.vocabulary = vocabulary
        self.data = excerpt.data
        self.first, self.last = batch.document_starts[document : document + 2].tolist()

    def elements(self, events: Int64) -> tuple[Int64, Int64]:
        """The starts and the ends of elements, by their start events."""
        offsets = self.batch.offsets
        return offsets[events], offsets[self.first + self._partners[events - self.first]]

    def attribute(self, number: int) -> Range:
        """The range of an attribute, from its name to its closing quote.

        Of one that the DTD gives: that of its element's tag.
        """
        batch = self.batch
        start = self._offset(int(batch.attribute_event[number]))
        if self.data[start] == _AMP:
            return self._placed(start, self._reference_end(start))
        _, local = self.vocabulary.expanded(int(batch.attribute_name[number]))
        prefix = int(batch.attribute_prefixes[number]) if len(batch.attribute_prefixes) else -1
        name = local if prefix < 0 else f"{self.vocabulary.prefix(prefix)}:{local}"
        end = _tag_end(self.data, start)
        for found in _ATTRIBUTE.finditer(self.data, start, end):
            if found[1] == name.encode(self.excerpt.encoding, "replace"):
                return self._placed(found.start(1), found.end())
        return self._placed(start, end)

    def text(self, number: int) -> Range:
        """The range of a text node, with its references and CDATA sections as they are written."""
        batch = self.batch
        event = int(batch.text_event[number])
        texts = slice(*np.searchsorted(batch.text_event, [event, event + 1]).tolist())
        start, end = self._behind(event)
        for divides in (True, False):
            found = self._runs(start, end, divides)
            if len(found) == texts.stop - texts.start:
                return self._placed(*found[number - texts.start])
        return self._placed(start, end)

    def misc(self, number: int) -> Range:
        """The range of a comment or PI."""
        batch = self.batch
        event = int(batch.misc_event[number])
        same = np.flatnonzero(batch.misc_event[: number + 1] == event)
        start, end = self._behind(event)
        declared = _DECLARATION.match(self.data, start) if start == 0 else None
        found = [
            token.span()
            for token in _CONTENT.finditer(self.data, declared.end() if declared else start, end)
            if token["misc"]
        ]
        before = int(np.searchsorted(same, number))
        return self._placed(*(found[before] if before < len(found) else (start, end)))

    @cached_property
    def _partners(self) -> Int64:
        """For each start event the end event of its element; both counted from the first."""
        starts = self.batch.tags[self.first : self.last] >= 0
        levels = np.cumsum(np.where(starts, 1, -1)) + ~starts
        if levels.max(initial=0) <= np.iinfo(np.int16).max:
            levels = levels.astype(np.int16)  # NumPy sorts these by counting
        order = np.argsort(levels, kind="stable")  # on a level, starts and ends take turns
        partners = np.zeros(len(starts), np.int64)
        partners[order[0::2]] = order[1::2]
        return partners

    def _placed(self, start: int, end: int) -> Range:
        return start + self.excerpt.start, end + self.excerpt.start

    def _offset(self, event: int) -> int:
        """Where an event is in ``data``."""
        return int(self.batch.offsets[event]) - self.excerpt.start

    def _reference_end(self, start: int) -> int:
        found = _REFERENCE_END.search(self.data, start)
        assert found is not None
        return found.end()

    def _behind(self, event: int) -> Range:
        """What stands between an event and the next one, in ``data``.

        Where both are in an entity, it is the reference to it.
        """
        tags = self.batch.tags
        start = 0 if event < self.first else self._offset(event)
        if event >= self.first and tags[event] >= 0:
            if self.data[start] == _AMP:
                return start, self._reference_end(start)
            start = _tag_end(self.data, start)
        if event + 1 >= self.last:
            return start, len(self.data)
        end = self._offset(event + 1)
        if tags[event + 1] < 0 and self.data[end - 1] != _SEMICOLON:
            end = _last(self.data, b"</", start, end)
        if start > end:
            return end, start
        if start == end and self.data[start] == _AMP:
            return start, self._reference_end(start)
        if start == end and self.data[start - 1] == _SEMICOLON:
            return _last(self.data, b"&", max(0, start - _NAME_MAX), start), start
        return start, end

    def _runs(self, start: int, end: int, divides: bool) -> list[Range]:
        """The text between comments and PIs.

        Args:
            divides: references to entities that XML does not define divide text too, as those
                do that nobody declares.
        """
        runs: list[list[int]] = [[]]
        for token in _CONTENT.finditer(self.data, start, end):
            if token["misc"] or (
                divides and token["reference"] and not _KNOWN_REFERENCE.fullmatch(token[0])
            ):
                runs.append([])
            elif token[0] != b"<![CDATA[]]>":
                runs[-1] += token.span()
        return [(run[0], run[-1]) for run in runs if run]


def settle_ends(
    offsets: array[int],
    tags: array[int],
    first: int,
    data: bytes | bytearray | memoryview | mmap.mmap,
    origin: int = 0,
) -> None:
    """Put the places behind end tags where those are that expat told, from an event on.

    Expat tells of an end tag where it begins, of the end of an empty element where its tag ends,
    and of what an entity holds where the reference to it begins.

    Args:
        data: what the offsets are of; where its markup is not ASCII, nothing can be settled.
        origin: the offset of its first byte.

    >>> offsets = array("q", [0, 3, 7, 7])
    >>> settle_ends(offsets, array("i", [0, 1, -1, -1]), 0, b"<a><b/></a>")
    >>> offsets
    array('q', [0, 3, 7, 11])
    """
    open_events: list[int] = []
    for event in range(first, len(tags)):
        if tags[event] >= 0:
            open_events.append(event)
            continue
        begun = open_events.pop()
        start = offsets[begun] - origin
        if data[start] == _AMP:
            end = _REFERENCE_END.search(data, start)
        else:
            end = _TAG.match(data, start) if begun == event - 1 else None
            if end is None or data[end.end() - 2] != _SLASH:
                end = _TAG_END.search(data, offsets[event] - origin)
        if end is not None:
            offsets[event] = end.end() + origin


def _tag_end(data: bytes | memoryview | mmap.mmap, start: int) -> int:
    found = _TAG.match(data, start)
    assert found is not None
    return found.end()


def _last(data: bytes | memoryview | mmap.mmap, wanted: bytes, start: int, end: int) -> int:
    """Where something stands for the last time between two places; it does."""
    return start + bytes(data[start:end]).rindex(wanted)
