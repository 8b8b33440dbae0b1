"""Where text, comments and PIs stand in a document with an internal DTD subset: as expat tells.

Which references there stand for text, which for markup and which for nothing, only expat knows.
Such documents are few, so they are not noted while all are parsed: one is read again when asked of.
"""

from __future__ import annotations

import re
from array import array
from typing import NamedTuple
from xml.parsers import expat

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.errors import DocumentError
from tamis.core.lazy import lazy_pattern

COMMENT, PI, CDATA = rb"<!--.*?-->", rb"<\?.*?\?>", rb"<!\[CDATA\[.*?\]\]>"
REFERENCE, CHARACTERS = rb"&[^;]*+;", rb"[^<&]++"
_PIECE = lazy_pattern(b"|".join((COMMENT, PI, CDATA, REFERENCE, CHARACTERS)), re.DOTALL)


class NodePlaces(NamedTuple):
    """Where the text nodes, and the comments and PIs, of a document stand, each in their order.

    Attributes:
        text_event: int64[t]; the event before the text, from 0, the document's first one.
        text_start, text_end: int64[t]; byte offsets.
        misc_start, misc_end: int64[m], likewise.
    """

    text_event: Int64
    text_start: Int64
    text_end: Int64
    misc_start: Int64
    misc_end: Int64


def node_places(data: bytes, encoding: str) -> NodePlaces:
    """Read a well-formed document: where its nodes stand.

    What an entity holds stands where the reference to it does.

    Raises:
        DocumentError: it is not well-formed.

    >>> document = b"<!DOCTYPE a [<!ENTITY e 'x<!--k-->y'>]><a>1&e;2<!--z--></a>"
    >>> places = node_places(document, "utf-8")
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
    return NodePlaces(*(np.array(column, dtype=np.int64) for column in columns))


class _Reader:
    """The handlers of one document. They know the same nodes as those that made its events."""

    def __init__(self, data: bytes, encoding: str) -> None:
        self.data = data
        self.event = -1
        self.text_from = -1  # of the text node that is being read
        self.piece_from = -1  # of the last piece of it
        self.cdata_from = -1
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
        self.miscs[1].append(self.end_of(start))

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
            self.texts[1].append(self.end_of(self.piece_from))
            self.text_from = -1

    def end_of(self, start: int) -> int:
        """The place behind what begins at a place: a reference, where an entity holds it."""
        found = _PIECE.match(self.data, start)
        assert found is not None
        return found.end()
