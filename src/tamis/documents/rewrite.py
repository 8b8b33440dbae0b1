"""Documents whose bytes stand for themselves: without a DTD, in UTF-8, all entities in place.

Any stretch of such a document that is an element is XML of its own, whatever it is put into. Most
documents are so already; the others are written anew, by libexpat's account of them.
"""

from __future__ import annotations

import re
from xml.parsers import expat

from tamis.core.errors import MalformedDocument
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
    return source._replace(data="".join(writer.pieces).encode(), encoding="utf-8", base_offset=0)


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


_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_IS_DECLARATION = re.compile("xmlns(?::|$)").match
_VALUE = _TEXT | str.maketrans({'"': "&quot;", "\n": "&#10;", "\t": "&#9;"})


def resolved(source: Source, head: int = 0) -> Source:
    """The same nodes, in UTF-8.

    Args:
        head: how many bytes come before a record: start tags, whose namespaces the record gets. It
            becomes the root.

    Raises:
        MalformedDocument: libexpat cannot read the document.

    >>> xml = b"<!DOCTYPE b SYSTEM 'x.dtd' [<!ENTITY e '<c/>'>]><b>&e;M&nbsp;</b>"
    >>> print(resolved(Source(xml)).data.decode())
    <!DOCTYPE b [<!ENTITY nothing "">]><b><c></c>M&nothing;</b>
    """
    pieces: list[str] = []
    scope: dict[str, str] = {}  # the namespaces that are declared around the record

    def start_doctype(name: str, *_: object) -> None:
        parser.CommentHandler = parser.ProcessingInstructionHandler = None
        pieces.append(f'<!DOCTYPE {name} [<!ENTITY nothing "">')

    def end_doctype() -> None:
        pieces.append("]>")
        handle_misc()

    def declare_attribute(element: str, name: str, type: str, *_: object) -> None:
        if type == "ID":
            pieces.append(f"<!ATTLIST {element} {name} ID #IMPLIED>")

    def start(name: str, attributes: list[str]) -> None:
        given = dict(zip(attributes[::2], attributes[1::2], strict=True))
        if parser.CurrentByteIndex < head:
            declared = ((key, value) for key, value in given.items() if _IS_DECLARATION(key))
            scope.update(declared)
            return
        if scope:
            given = scope | given
            scope.clear()
        written = "".join(f' {key}="{value.translate(_VALUE)}"' for key, value in given.items())
        pieces.append(f"<{name}{written}>")

    def refer_to_external(context: str | None, *_: object) -> int:
        if context is not None:  # as it is for those of the DTD
            pieces.append("&nothing;")
        return 1

    def skip(_name: str, is_parameter_entity: bool) -> None:
        if not is_parameter_entity:
            pieces.append("&nothing;")

    def handle_misc() -> None:
        parser.CommentHandler = lambda data: pieces.append(f"<!--{data}-->")
        parser.ProcessingInstructionHandler = lambda *parts: pieces.append(f"<?{' '.join(parts)}?>")

    parser = expat.ParserCreate(source.encoding)
    parser.ordered_attributes = True
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
    parser.StartDoctypeDeclHandler, parser.EndDoctypeDeclHandler = start_doctype, end_doctype
    parser.AttlistDeclHandler = declare_attribute
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: pieces.append(f"</{name}>")
    parser.CharacterDataHandler = lambda data: pieces.append(data.translate(_TEXT))
    parser.ExternalEntityRefHandler = refer_to_external
    parser.SkippedEntityHandler = skip
    handle_misc()
    try:
        parser.Parse(source.data, not head)  # what is around a record does not end
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code)
        raise MalformedDocument(message, error.lineno, error.offset + 1) from None
    finally:  # the handlers refer to the parser, and it to them
        parser.StartDoctypeDeclHandler = parser.EndDoctypeDeclHandler = None
    return Source("".join(pieces).encode(), "utf-8", source.name)
