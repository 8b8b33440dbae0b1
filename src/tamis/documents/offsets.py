"""Where nodes stand in a document, found by looking at its markup again.

A :class:`DocumentBatch` has the offsets of its tags, if they are projected. Those of attributes, of
text, comments and PIs are asked for seldom, so they are looked for when they are. Only expat knows
which references stand for text in a document with an internal DTD subset: it reads such a document
again.
"""

from __future__ import annotations

import mmap
import re
from array import array
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import NamedTuple
from xml.parsers import expat

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.errors import DocumentError
from tamis.core.lazy import OR_NOTHING, lazy_pattern
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary

Range = tuple[int, int]
"""The place of the first byte, and the one behind the last."""
KEPT_RANGES = 1 << 16  # ranges that a ``Markup`` remembers, of what it looked at last

_AMP, _SLASH = b"&/"
QUOTED = rb"""(?:"[^"]*+"|'[^']*+'""" + OR_NOTHING + rb")"
TAG_PATTERN = lazy_pattern(rb"""<[^"'>]*+(?:""" + QUOTED + rb"""[^"'>]*+)*+>""")
_TAG_END = lazy_pattern(b">")
_REFERENCE_END = lazy_pattern(b";")
ATTRIBUTE_PATTERN = lazy_pattern(
    rb"""[ \t\r\n]([^ \t\r\n=/>"']++)[ \t\r\n]*+=[ \t\r\n]*+("[^"]*+"|'[^']*+')"""
)
"""An attribute in a tag: its name, and its value in quotes."""
COMMENT, PI, CDATA = rb"<!--.*?-->", rb"<\?.*?\?>", rb"<!\[CDATA\[.*?\]\]>"
REFERENCE, CHARACTERS = rb"&[^;]*+;", rb"[^<&]++"
_PIECE = lazy_pattern(b"|".join((COMMENT, PI, CDATA, REFERENCE, CHARACTERS)), re.DOTALL)
# What stands between two tags; a DOCTYPE also between the document's begin and the first one.
_CONTENT = lazy_pattern(
    rb"(?P<misc>" + COMMENT + rb"|" + PI + rb")"
    rb"""|(?P<doctype><!DOCTYPE(?:[^>"']|""" + QUOTED + OR_NOTHING + rb")*+>)"
    rb"|(?P<cdata>" + CDATA + rb")"
    rb"|(?P<reference>" + REFERENCE + rb")"
    rb"|(?P<characters>" + CHARACTERS + rb")",
    re.DOTALL,
)
_DECLARATION = lazy_pattern(rb"<\?xml[ \t\r\n].*?\?>", re.DOTALL)
_KNOWN_REFERENCE = lazy_pattern(rb"&(?:#.*|lt|gt|amp|apos|quot);")


@dataclass(eq=False)
class Excerpt:
    r"""Bytes of a document, as they were parsed, and where in it they stand.

    Attributes:
        encoding: theirs: one in which markup is ASCII.
        start: the number of bytes before them, of those that were parsed.
        base_offset: the number of bytes of the document before all that was parsed.
        line: the line that they begin in.
        head: what has to be read before any record of theirs, to read it alone; None where they
            are a document.

    >>> excerpt = Excerpt(b"<a>\r\n<b/></a>")
    >>> excerpt.lines(np.array([0, 5])), excerpt.text(5, 9)
    (array([1, 2]), '<b/>')
    """

    data: bytes | memoryview | mmap.mmap
    encoding: str = "utf-8"
    _: KW_ONLY
    start: int = 0
    base_offset: int = 0
    line: int = 1
    head: bytes | None = None

    def lines(self, offsets: Int64) -> Int64:
        """The lines of places of the document."""
        found = np.searchsorted(self._line_ends, offsets - (self.start + self.base_offset))
        return (found + self.line).astype(np.int64)

    def text(self, start: int, end: int) -> str:
        """What stands between two places of the document."""
        before = self.start + self.base_offset
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

    What stands between two tags is looked at once for all nodes there, and a tag once for all its
    attributes. Only where there is an internal DTD subset may references stand for something that
    is to be found; there, expat reads the document again.

    The batch was parsed with offsets, and with prefixes where attributes in namespaces are
    recorded. The events of the document are those from ``first`` on, up to ``last``.
    """

    def __init__(
        self, batch: DocumentBatch, document: int, excerpt: Excerpt, vocabulary: Vocabulary
    ) -> None:
        self.batch = batch
        self.excerpt = excerpt
        self.vocabulary = vocabulary
        self.data = excerpt.data
        # Between an event and the next one: the ranges of text nodes, and of comments and PIs.
        self._gaps: dict[int, tuple[list[Range], list[Range]]] = {}
        self._attributes: dict[int, dict[bytes, Range]] = {}  # by the event; then by name
        self._kept = 0
        self._miscs = slice(*batch.misc_starts[document : document + 2].tolist())
        self.first, self.last = batch.document_starts[document : document + 2].tolist()

    def elements(self, events: Int64) -> tuple[Int64, Int64]:
        """The starts and the ends of elements, by their start events."""
        offsets = self.batch.offsets
        return offsets[events], offsets[self.ends(events)]

    def ends(self, events: Int64) -> Int64:
        """The end events of elements, by their start events."""
        ends: Int64 = self.first + self._partners[events - self.first]
        return ends

    def attribute(self, number: int) -> Range:
        """The range of an attribute, from its name to its closing quote.

        Of one that the DTD gives: that of its element's tag.
        """
        batch = self.batch
        event = int(batch.attribute_event[number])
        start = self._offset(event)
        if self.data[start] == _AMP:
            return self._placed(start, _end_of(_REFERENCE_END.search(self.data, start)))
        _, local = self.vocabulary.expanded(int(batch.attribute_name[number]))
        prefix = int(batch.attribute_prefixes[number]) if len(batch.attribute_prefixes) else -1
        name = local if prefix < 0 else f"{self.vocabulary.prefix(prefix)}:{local}"
        if event not in self._attributes:
            tag_end = _end_of(TAG_PATTERN.match(self.data, start))
            tokens = ATTRIBUTE_PATTERN.finditer(self.data, start, tag_end)
            found = {token[1]: (token.start(1), token.end()) for token in tokens}
            self._keep(len(found))
            self._attributes[event] = found
        place = self._attributes[event].get(name.encode(self.excerpt.encoding, "replace"))
        return self._placed(*(place or (start, _end_of(TAG_PATTERN.match(self.data, start)))))

    def text(self, number: int) -> Range:
        """The range of a text node, with its references and CDATA sections as they are written."""
        event = int(self.batch.text_event[number])
        first, count = _rows_of(self.batch.text_event, event)
        by_expat = self._by_expat
        if by_expat is None:
            texts, _ = self._gap(event)
            assert len(texts) == count, "text is divided where the parser divided it"
            return self._placed(*texts[number - first])
        row, count_by_expat = _rows_of(by_expat.text_event, event - self.first)
        assert count_by_expat == count, "expat reads the same each time"
        row += number - first
        return int(by_expat.text_start[row]), int(by_expat.text_end[row])

    def misc(self, number: int) -> Range:
        """The range of a comment or PI."""
        events = self.batch.misc_event[self._miscs]  # not those of the document before or behind
        row = number - self._miscs.start
        by_expat = self._by_expat
        if by_expat is not None:
            assert len(by_expat.misc_start) == len(events), "expat tells the same each time"
            return int(by_expat.misc_start[row]), int(by_expat.misc_end[row])
        first, _ = _rows_of(events, int(events[row]))
        _, miscs = self._gap(int(events[row]))
        return self._placed(*miscs[row - first])

    @cached_property
    def _partners(self) -> Int64:
        """For each start event the end event of its element; both counted from the first."""
        return partners(self.batch.tags[self.first : self.last])

    def _placed(self, start: int, end: int) -> Range:
        return start + self.excerpt.start, end + self.excerpt.start

    def _offset(self, event: int) -> int:
        return int(self.batch.offsets[event]) - self.excerpt.start

    @cached_property
    def _by_expat(self) -> NodeOffsets | None:
        """What expat tells of the document, if there is an internal DTD subset."""
        head, start, end = self.excerpt.head, 0, len(self.data)
        if head is None:
            head, prolog = b"", bytes(self.data[: self._offset(self.first)])
        else:
            start, end, prolog = self._offset(self.first), self._offset(self.last - 1), head
        if b"<!DOCTYPE" not in prolog or b"[" not in prolog:
            return None
        places = node_offsets(head + bytes(self.data[start:end]), self.excerpt.encoding)
        before = start - len(head) + self.excerpt.start
        return NodeOffsets(places.text_event, *(column + before for column in places[1:]))

    def _gap(self, event: int) -> tuple[list[Range], list[Range]]:
        """What stands between an event and the next one, where there is no internal DTD subset.

        References to entities that XML does not define are of such that nobody declares: they
        stand for nothing, and divide text as comments do.
        """
        if event in self._gaps:
            return self._gaps[event]
        runs: list[list[int]] = [[]]
        miscs: list[Range] = []
        for token in _CONTENT.finditer(self.data, *self._behind(event)):
            if token["misc"]:
                miscs.append(token.span())
                runs.append([])
            elif token["reference"] and not _KNOWN_REFERENCE.fullmatch(token[0]):
                runs.append([])
            elif token[0] != b"<![CDATA[]]>":
                runs[-1] += token.span()
        gap = [(run[0], run[-1]) for run in runs if run], miscs
        self._keep(len(gap[0]) + len(miscs))
        self._gaps[event] = gap
        return gap

    def _keep(self, ranges: int) -> None:
        """Make room for what will be remembered."""
        self._kept += ranges + 1
        if self._kept > KEPT_RANGES:
            self._gaps.clear()
            self._attributes.clear()
            self._kept = ranges + 1

    def _behind(self, event: int) -> Range:
        """The range between an event and the next one, in ``data``."""
        tags = self.batch.tags
        start = 0 if event < self.first else self._offset(event)
        if event >= self.first and tags[event] >= 0:
            start = _end_of(TAG_PATTERN.match(self.data, start))
        elif start == 0:
            declared = _DECLARATION.match(self.data)
            start = declared.end() if declared else 0
        if event + 1 >= self.last:
            return start, len(self.data)
        end = self._offset(event + 1)
        if tags[event + 1] < 0:  # the offset is behind its tag
            end = start + bytes(self.data[start:end]).rindex(b"</")
        return start, end


def by_level(tags: Int32) -> Int64:
    """The events of whole documents, level after level; on each, starts and ends take turns.

    >>> by_level(np.array([0, 1, -1, -1], np.int32))
    array([0, 3, 1, 2])
    """
    is_start = tags >= 0
    levels = np.cumsum(np.where(is_start, 1, -1)) + ~is_start
    if levels.max(initial=0) <= np.iinfo(np.int16).max:
        levels = levels.astype(np.int16)  # NumPy sorts these by counting
    return np.argsort(levels, kind="stable")


def partners(tags: Int32) -> Int64:
    """For each start event of a document the end event of its element.

    >>> partners(np.array([0, 1, -1, -1], np.int32))[:2]
    array([3, 2])
    """
    order = by_level(tags)
    found = np.zeros(len(tags), np.int64)
    found[order[::2]] = order[1::2]
    return found


def _end_of(found: re.Match[bytes] | None) -> int:
    """Where a match ends that well-formed markup has."""
    assert found is not None
    return found.end()


def _rows_of(events: Int64, event: int) -> tuple[int, int]:
    """The first row of an event, and how many it has, in an ascending array."""
    first, last = (int(np.searchsorted(events, event, side)) for side in ("left", "right"))
    return first, last - first


def settle_ends(
    offsets: array[int],
    tags: array[int],
    first: int,
    data: bytes | bytearray | memoryview | mmap.mmap,
    origin: int = 0,
) -> None:
    """Move the offsets of end events behind their tags, from event ``first`` on.

    Expat reports an end tag where it begins, the end of an empty element where its tag ends, and
    what an entity holds where the reference to it begins. The first byte of ``data`` has the offset
    ``origin``. Where its markup is not ASCII, nothing can be settled.

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
            end = TAG_PATTERN.match(data, start) if begun == event - 1 else None
            if end is None or data[end.end() - 2] != _SLASH:
                end = _TAG_END.search(data, offsets[event] - origin)
        if end is not None:
            offsets[event] = end.end() + origin


class NodeOffsets(NamedTuple):
    """Where the text nodes, and the comments and PIs, of a document stand, each in their order.

    All are int64. ``text_event`` counts events from 0, the document's first one; the others are
    byte offsets.
    """

    text_event: Int64
    text_start: Int64
    text_end: Int64
    misc_start: Int64
    misc_end: Int64


def node_offsets(data: bytes, encoding: str) -> NodeOffsets:
    """Read a well-formed document: where its nodes stand.

    What an entity holds stands where the reference to it does.

    >>> document = b"<!DOCTYPE a [<!ENTITY e 'x<!--k-->y'>]><a>1&e;2<!--z--></a>"
    >>> places = node_offsets(document, "utf-8")
    >>> [document[i:j] for i, j in zip(places.text_start, places.text_end)]
    [b'1&e;', b'&e;2']
    >>> [document[i:j] for i, j in zip(places.misc_start, places.misc_end)]
    [b'&e;', b'<!--z-->']
    """
    reader = _Reader(data, encoding)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise DocumentError(f"where its nodes stand cannot be told: {error}") from None
    finally:
        del reader.parser  # a cycle, which would keep it for a while
    columns = (reader.text_event, *reader.texts, *reader.miscs)
    return NodeOffsets(*(np.array(column, dtype=np.int64) for column in columns))


class _Reader:
    """The handlers of one document. They know the same nodes as those that made its events."""

    def __init__(self, data: bytes, encoding: str) -> None:
        self.data = data
        self.event = self.cdata_from = -1
        self.text_from = -1  # of the text node that is being read
        self.piece_from = -1  # of the last piece of it
        self.text_event = array("q")
        self.texts = array("q"), array("q")
        self.miscs = array("q"), array("q")
        self.parser = parser = expat.ParserCreate(encoding)
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
        parser.ExternalEntityRefHandler = self.skip_external
        parser.SkippedEntityHandler = self.skip
        parser.StartDoctypeDeclHandler = self.start_doctype
        parser.EndDoctypeDeclHandler = self.handle_misc
        parser.StartElementHandler = parser.EndElementHandler = self.tag
        parser.CharacterDataHandler = self.text
        parser.StartCdataSectionHandler = self.start_cdata
        parser.EndCdataSectionHandler = self.end_cdata
        self.handle_misc()

    def handle_misc(self) -> None:
        self.parser.CommentHandler = self.parser.ProcessingInstructionHandler = self.misc

    def start_doctype(self, *_: object) -> None:
        """Comments and PIs of the DTD are not of the document."""
        self.parser.CommentHandler = self.parser.ProcessingInstructionHandler = None

    def tag(self, *_: object) -> None:
        self.end_text()
        self.event += 1

    def misc(self, *_: object) -> None:
        self.end_text()
        start = self.parser.CurrentByteIndex
        self.miscs[0].append(start)
        self.miscs[1].append(_end_of(_PIECE.match(self.data, start)))  # of a reference, perhaps

    def skip(self, _name: str, is_parameter_entity: bool) -> None:
        if not is_parameter_entity:
            self.end_text()

    def skip_external(self, context: str | None, *_: object) -> int:
        if context is not None:  # it is not of the DTD
            self.end_text()
        return 1

    def text(self, _data: str) -> None:
        is_cdata = self.cdata_from >= 0
        self.piece_from = self.cdata_from if is_cdata else self.parser.CurrentByteIndex
        if self.text_from < 0:
            self.text_from = self.piece_from

    def start_cdata(self) -> None:
        self.cdata_from = self.parser.CurrentByteIndex

    def end_cdata(self) -> None:
        self.cdata_from = -1

    def end_text(self) -> None:
        if self.text_from >= 0:
            self.text_event.append(self.event)
            self.texts[0].append(self.text_from)
            # Text comes in many pieces: only the end of the last one is looked for.
            self.texts[1].append(_end_of(_PIECE.match(self.data, self.piece_from)))
            self.text_from = -1
