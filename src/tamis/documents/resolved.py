"""Rewrites a document without its DTD, for parsers that read DTDs in another way.

Libexpat reads the document as it does for Tamis, and the events are written as XML again.
Entities are expanded, and attributes have their defaults. An undeclared reference divides text, so
it becomes a reference to an empty entity. Attributes that are IDs stay declared, for ``id()``.
"""

from __future__ import annotations

import re
from xml.parsers import expat

from tamis.core.errors import MalformedDocument
from tamis.documents.source import Source

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
