"""Documents whose bytes stand for themselves: without a DTD, in UTF-8, all entities in place.

Any stretch of such a document that is an element is XML of its own, whatever it is put into. Most
documents are so already; the others are written anew, by libexpat's account of them.
"""

from __future__ import annotations

import re
from xml.parsers import expat

from tamis.core.lazy import lazy_pattern
from tamis.documents.source import Source

_DOCTYPE = lazy_pattern(
    rb"""(?:[^<]|<\?.*?\?>|<!--.*?-->)*+<!DOCTYPE(?:"[^"]*+"|'[^']*+'|[^>"'\[])*+(?P<subset>\[)?""",
    re.DOTALL,
)
_DECLARED = lazy_pattern(
    rb"""<\?xml[ \t\r\n][^>]*?encoding[ \t\r\n]*=[ \t\r\n]*["']([A-Za-z0-9._-]+)"""
)
_ENTITY = lazy_pattern(rb"&(?!lt;|gt;|amp;|quot;|apos;|#)")
_IS_UTF8 = frozenset((b"utf-8", b"utf8", b"us-ascii", b"ascii"))

_IN_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_IN_VALUE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)


def is_plain(source: Source) -> bool:
    """Whether a well-formed document is plain as it is.

    >>> is_plain(Source(b"<a>&lt;</a>")), is_plain(Source(b"<!DOCTYPE a []><a/>"))
    (True, False)
    >>> is_plain(Source(b"<?xml version='1.0' encoding='latin1'?><a/>"))
    False
    """
    data = bytes(source.data)
    if source.encoding is None:
        declared = _DECLARED.match(data)
        if declared is not None and declared[1].lower() not in _IS_UTF8:
            return False
        if data[:2] in (b"\xff\xfe", b"\xfe\xff", b"<\0", b"\0<"):
            return False
    elif source.encoding.lower() != "utf-8":
        return False
    doctype = _DOCTYPE.match(data) if b"<!DOCTYPE" in data else None
    return doctype is None or not (doctype["subset"] or _ENTITY.search(data))


def plain(source: Source) -> Source:
    """A well-formed document, written anew so that it is plain.

    Attributes that the DTD gives are written out, and entities are replaced by what they hold; what
    nobody declares stands for nothing.

    >>> document = b"<!DOCTYPE a [<!ENTITY e 'x'><!ATTLIST a k CDATA '1'>]><a>&e;<b/>&amp;</a>"
    >>> plain(Source(document)).data
    b'<a k="1">x<b/>&amp;</a>'
    """
    writer = _Writer(source.encoding)
    writer.parser.Parse(bytes(source.data), True)
    del writer.parser  # a cycle, which would keep it for a while
    return source._replace(data="".join(writer.pieces).encode(), encoding="utf-8", mark=0)


class _Writer:
    """The handlers of one document, which write what they are told."""

    def __init__(self, encoding: str | None) -> None:
        self.pieces: list[str] = []
        self.parser = parser = expat.ParserCreate(encoding)  # names and xmlns as they are written
        parser.ordered_attributes = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.text
        parser.StartDoctypeDeclHandler = self.start_doctype
        parser.EndDoctypeDeclHandler = self.handle_misc
        parser.ExternalEntityRefHandler = lambda *_: 1
        self.handle_misc()

    def handle_misc(self) -> None:
        self.parser.CommentHandler = self.comment
        self.parser.ProcessingInstructionHandler = self.instruction

    def start_doctype(self, *_: object) -> None:
        self.parser.CommentHandler = self.parser.ProcessingInstructionHandler = None

    def start(self, name: str, attributes: list[str]) -> None:
        self.pieces.append(f"<{name}")
        for attribute, value in zip(attributes[::2], attributes[1::2], strict=True):
            self.pieces.append(f' {attribute}="{value.translate(_IN_VALUE)}"')
        self.pieces.append(">")

    def end(self, name: str) -> None:
        if self.pieces[-1] == ">":  # nothing came behind the start tag
            self.pieces[-1] = "/>"
        else:
            self.pieces.append(f"</{name}>")

    def text(self, data: str) -> None:
        self.pieces.append(data.translate(_IN_TEXT))

    def comment(self, data: str) -> None:
        self.pieces.append(f"<!--{data}-->")

    def instruction(self, target: str, data: str) -> None:
        self.pieces.append(f"<?{target} {data}?>")
