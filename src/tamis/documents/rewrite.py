"""Documents written anew, as libexpat reads them: entities are expanded, defaults are written out.

``plain`` gives documents whose bytes stand for themselves: without a DTD, in UTF-8. Any stretch of
such a document that is an element is XML of its own, whatever it is put into. Most documents are
plain already. ``resolved`` is for parsers that read DTDs in another way.
"""

from __future__ import annotations

import re
from xml.parsers import expat

from tamis.core.errors import MalformedDocument
from tamis.core.lazy import OR_NOTHING, lazy_pattern
from tamis.documents.offsets import COMMENT, PI, QUOTED
from tamis.documents.source import Source

DOCTYPE = lazy_pattern(
    rb"(?:[^<]|" + PI + rb"|" + COMMENT + OR_NOTHING + rb")*+"
    rb"""<!DOCTYPE(?:[^>"'\[]|""" + QUOTED + OR_NOTHING + rb")*+(?P<subset>\[)?",
    re.DOTALL,
)
"""The prolog up to the internal DTD subset, or to the end of the DOCTYPE without one."""
_DECLARED = lazy_pattern(
    rb"""<\?xml[ \t\r\n][^>]*?encoding[ \t\r\n]*=[ \t\r\n]*["']([A-Za-z0-9._-]+)"""
)
_ENTITY = lazy_pattern(rb"&(?!lt;|gt;|amp;|quot;|apos;|#)")
_IS_UTF8 = frozenset((b"utf-8", b"utf8", b"us-ascii", b"ascii"))

IN_TEXT = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
IN_VALUE = str.maketrans(
    {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
"""How characters are written in text, and in the value of an attribute."""
_DECLARES = re.compile("xmlns(?::|$)").match


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
    doctype = DOCTYPE.match(data) if b"<!DOCTYPE" in data else None
    return doctype is None or not (doctype["subset"] or _ENTITY.search(data))


def plain(source: Source) -> Source:
    """A well-formed document, written anew so that it is plain.

    What nobody declares stands for nothing.

    >>> document = b"<!DOCTYPE a [<!ENTITY e 'x'><!ATTLIST a k CDATA '1'>]><a>&e;<b/>&amp;</a>"
    >>> plain(Source(document)).data
    b'<a k="1">x<b/>&amp;</a>'
    """
    data = _Writer(source.encoding).written(source)
    return source._replace(data=data, encoding="utf-8", base_offset=0)


def resolved(source: Source, head: int = 0) -> Source:
    """The same nodes, in UTF-8, without the DTD.

    An undeclared reference divides text, so it becomes a reference to an empty entity. Attributes
    that are IDs stay declared, for ``id()``. If ``head`` bytes of start tags come before a record,
    it becomes the root, with their namespaces.

    Raises:
        MalformedDocument: libexpat cannot read the document.

    >>> xml = b"<!DOCTYPE b SYSTEM 'x.dtd' [<!ENTITY e '<c/>'>]><b>&e;M&nbsp;</b>"
    >>> print(resolved(Source(xml)).data.decode())
    <!DOCTYPE b [<!ENTITY nothing "">]><b><c/>M&nothing;</b>
    """
    try:
        data = _Resolver(source.encoding, head).written(source)
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code)
        raise MalformedDocument(message, error.lineno, error.offset + 1) from None
    return Source(data, "utf-8", source.name)


class _Writer:
    """The handlers of one document, which write what they are told."""

    def __init__(self, encoding: str | None, head: int = 0) -> None:
        self.head = head
        self.pieces: list[str] = []
        self.parser = parser = expat.ParserCreate(encoding)  # names and xmlns as they are written
        parser.ordered_attributes = True
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = lambda data: self.pieces.append(data.translate(IN_TEXT))
        parser.StartDoctypeDeclHandler = self.start_doctype
        parser.EndDoctypeDeclHandler = self.end_doctype
        parser.ExternalEntityRefHandler = self.refer_to_external
        _Writer.end_doctype(self)

    def written(self, source: Source) -> bytes:
        try:
            self.parser.Parse(bytes(source.data), not self.head)  # what is around does not end
        finally:
            del self.parser  # a cycle, which would keep it for a while
        return "".join(self.pieces).encode()

    def start_doctype(self, _name: object, *_: object) -> None:
        self.parser.CommentHandler = self.parser.ProcessingInstructionHandler = None

    def end_doctype(self) -> None:
        write = self.pieces.append
        self.parser.CommentHandler = lambda data: write(f"<!--{data}-->")
        self.parser.ProcessingInstructionHandler = lambda *parts: write(f"<?{' '.join(parts)}?>")

    def start(self, name: str, attributes: list[str]) -> None:
        self.pieces.append(f"<{name}")
        for attribute, value in zip(attributes[::2], attributes[1::2], strict=True):
            self.pieces.append(f' {attribute}="{value.translate(IN_VALUE)}"')
        self.pieces.append(">")

    def end(self, name: str) -> None:
        if self.pieces[-1:] == [">"]:  # nothing came behind the start tag
            self.pieces[-1] = "/>"
        else:
            self.pieces.append(f"</{name}>")

    def refer_to_external(self, _context: object, *_: object) -> int:
        return 1


class _Resolver(_Writer):
    """Writes a DOCTYPE of its own, and what stands behind ``head``."""

    def __init__(self, encoding: str | None, head: int) -> None:
        super().__init__(encoding, head)
        self.scope: list[str] = []  # the namespaces that are declared around the record
        self.parser.AttlistDeclHandler = self.declare_attribute
        self.parser.SkippedEntityHandler = self.skip

    def start_doctype(self, _name: object, *_: object) -> None:
        super().start_doctype(_name)
        self.pieces.append(f'<!DOCTYPE {_name} [<!ENTITY nothing "">')

    def end_doctype(self) -> None:
        self.pieces.append("]>")
        super().end_doctype()

    def declare_attribute(self, element: str, name: str, type: str, *_: object) -> None:
        if type == "ID":
            self.pieces.append(f"<!ATTLIST {element} {name} ID #IMPLIED>")

    def start(self, name: str, attributes: list[str]) -> None:
        if self.parser.CurrentByteIndex < self.head:
            for index in range(0, len(attributes), 2):
                if _DECLARES(attributes[index]):
                    self.scope += attributes[index : index + 2]
            return
        if self.scope:
            pairs = [*self.scope, *attributes]
            given = dict(zip(pairs[::2], pairs[1::2], strict=True))  # the last one counts
            attributes = [each for pair in given.items() for each in pair]
            self.scope.clear()
        super().start(name, attributes)

    def refer_to_external(self, _context: object, *_: object) -> int:
        if _context is not None:  # as it is for those of the DTD
            self.pieces.append("&nothing;")
        return 1

    def skip(self, _name: str, is_parameter_entity: bool) -> None:
        if not is_parameter_entity:
            self.pieces.append("&nothing;")
