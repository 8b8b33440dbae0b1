"""Reads the declarations of a DTD (XML 1.0, sections 2.8, 3.2 to 3.4, 4.2 to 4.4).

Everything is read that can declare something: parameter entities wherever they may stand, external
parts, conditional sections. What is read twice binds once, as XML says: the first declaration of an
entity or attribute; a second one of an element is an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tamis.core.errors import SchemaError, SchemaSyntaxError
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import DEFAULT_LIMITS, Limits
from tamis.schema.dtd import (
    AttributeKind,
    AttributeType,
    Child,
    ContentKind,
    Dtd,
    ElementType,
    Group,
    Occurs,
    Particle,
    Presence,
)
from tamis.schema.graph import SchemaGraph
from tamis.schema.tokens import IS_NAME, Entity, Input, Inputs, Tokens, decoded, normalized

_SPACE = lazy_pattern(r"[ \t\n]+")
_ANY = lazy_pattern(".*")
_PUBLIC = lazy_pattern("[ \n0-9A-Za-z\\-'()+,./:=?;!*#@$_%]*")
_SECTION_EDGE = lazy_pattern(r"<!\[|\]\]>")
_PROLOG = lazy_pattern(r"(?:[ \t\n]+|<!--.*?-->|<\?.*?\?>)*", re.DOTALL)
_KINDS = {kind.value: kind for kind in AttributeKind if kind is not AttributeKind.ENUMERATION}


def read_dtd(
    file: os.PathLike[str],
    catalog: Sequence[os.PathLike[str]] = (),
    limits: Limits = DEFAULT_LIMITS,
) -> Dtd:
    """The DTD in a file of declarations, with all its external parts; or a ``SchemaError``.

    ``catalog`` are folders to look for external parts in, after the folder of the file. Parts that
    are not found are listed in ``Dtd.missing``, and the logger ``tamis`` warns of them.
    """
    path = Path(file)
    inputs = Inputs(path.parent, [Path(folder) for folder in catalog], limits)
    reader = Reader(inputs)
    reader.external_subset(inputs.file_text(path, str(path)), str(path), path.parent)
    return reader.result()


def read_doctype(
    document: os.PathLike[str],
    catalog: Sequence[os.PathLike[str]] = (),
    limits: Limits = DEFAULT_LIMITS,
) -> Dtd:
    """The DTD of a document: its internal subset, then the external one; see :func:`read_dtd`."""
    path = Path(document)
    inputs = Inputs(path.parent, [Path(folder) for folder in catalog], limits)
    # It is not counted yet, as most of it may be no DTD.
    text = decoded(path, str(path), limits)[: 2 * limits.schema_chars]
    prolog = _PROLOG.match(text)
    start = prolog.end() if prolog else 0
    if not text.startswith("<!DOCTYPE", start):
        raise SchemaSyntaxError("the document has no document type declaration", str(path))
    reader = Reader(inputs)
    reader.doctype(text, start + len("<!DOCTYPE"), str(path), path.parent)
    return reader.result()


def read_graph(
    file: os.PathLike[str],
    catalog: Sequence[os.PathLike[str]] = (),
    roots: Sequence[str] = (),
    limits: Limits = DEFAULT_LIMITS,
) -> SchemaGraph:
    """The graph of a DTD (``*.dtd``, ``*.mod``, ``*.ent``), or of the one that a document has.

    A ``SchemaError`` says that it cannot be read or declares no elements, a ``UsageError`` that it
    does not declare a root.
    """
    is_dtd = Path(file).suffix.lower() in (".dtd", ".mod", ".ent")
    dtd = (read_dtd if is_dtd else read_doctype)(file, catalog, limits)
    if not dtd.elements:
        where = f" ({dtd.missing[0]} was not found)" if dtd.missing else ""
        message = f"no element is declared here{where}: give a DTD, or a document that has one"
        raise SchemaSyntaxError(message, str(file))
    return SchemaGraph.of(dtd, roots)


def parse_dtd(text: str, limits: Limits = DEFAULT_LIMITS) -> Dtd:
    """The DTD in a string, as :func:`read_dtd` reads it from a file.

    >>> parse_dtd("<!ELEMENT a (b?)><!ELEMENT b EMPTY>").elements["a"].children
    ('b',)
    >>> parse_dtd("<!ELEMENT a (b?>")
    Traceback (most recent call last):
    tamis.core.errors.SchemaSyntaxError: line 1, column 16: expected , or | or ), found '>'
    """
    inputs = Inputs(None, (), limits)
    text = normalized(text, None)
    inputs.count(len(text))
    reader = Reader(inputs)
    reader.external_subset(text, None, None)
    return reader.result()


class Reader:
    """Reads one DTD; use it once."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.tokens = Tokens(inputs)
        self.elements: dict[str, ElementType] = {}
        self.attributes: dict[str, dict[str, AttributeType]] = {}
        self.notations: list[str] = []
        self.unparsed: list[str] = []
        self.root: str | None = None
        self._declare: Mapping[str, Callable[[], None]] = {
            "<!ELEMENT": self._element,
            "<!ATTLIST": self._attributes,
            "<!ENTITY": self._entity,
            "<!NOTATION": self._notation,
        }

    def result(self) -> Dtd:
        elements = {
            name: replace(element, attributes=tuple(self.attributes.get(name, {}).values()))
            for name, element in self.elements.items()
        }
        lists = (tuple(each) for each in (self.notations, self.unparsed, self.inputs.missing))
        return Dtd(elements, self.root, *lists)

    def external_subset(self, text: str, file: str | None, folder: Path | None) -> None:
        self.inputs.push(Input(text, file, folder))
        self._declarations("")
        self.inputs.stack.pop()

    def doctype(self, text: str, start: int, file: str | None, folder: Path | None) -> None:
        """Read the document type declaration whose name starts here, and then its external part."""
        document = Input(text, file, folder)
        document.position = start
        self.tokens.internal = True
        self.inputs.push(document)
        self.root = self.tokens.name("the name of the root element")
        has_id = self.tokens.peek().kind == "word"
        system = self._external_id(public_alone=False) if has_id else None
        if self.tokens.peek().text == "[":
            self.tokens.next()
            self._declarations("]")
            document.position += 1
        self.tokens.expect(">", "the end of the document type declaration")
        self.inputs.count(document.position)
        self.tokens.internal = False
        if system is None:
            return
        external = self.tokens.external(Entity(None, system, folder), "")
        if external is not None:
            self.inputs.stack.pop()
            self.inputs.push(external)
            self._declarations("")

    def _declarations(self, closing: str) -> None:
        """Declarations up to ``closing``, or to the end of the text where that is empty."""
        inputs = self.inputs
        base = len(inputs.stack)
        sections: list[Input] = []
        while True:
            top = inputs.top
            space = _SPACE.match(top.text, top.position)
            if space:
                top.position = space.end()
            is_outermost = len(inputs.stack) == base
            is_in_section = bool(sections) and sections[-1] is top
            if top.position == len(top.text):
                if is_in_section:
                    raise inputs.error("a conditional section is not closed: expected ]]>")
                if is_outermost and closing:
                    raise inputs.error(f"expected a declaration or {closing}, found the end")
                if is_outermost:
                    return
                inputs.stack.pop()
            elif closing and is_outermost and top.text.startswith(closing, top.position):
                return
            elif is_in_section and top.text.startswith("]]>", top.position):
                sections.pop()
                top.position += 3
            elif top.position > inputs.limits.schema_chars:  # in a document, not counted so far
                raise inputs.chars_error()
            elif top.text.startswith("<![", top.position):
                if self._conditional():
                    sections.append(inputs.top)
            else:
                self._declaration()

    def _declaration(self) -> None:
        top = self.inputs.top
        start = top.position
        if top.text.startswith("<!--", start):
            end = top.text.find("--", start + 4)
            if end < 0:
                raise self.inputs.error("a comment is not closed: expected -->")
            if not top.text.startswith("-->", end):
                raise self.inputs.error("-- inside a comment", top, end)
            top.position = end + 3
        elif top.text.startswith("<?", start):
            self._instruction(top)
        elif top.text.startswith("%", start):
            self.tokens.reference()
        else:
            for keyword, declare in self._declare.items():
                if top.text.startswith(keyword, start):
                    top.position += len(keyword)
                    declare()
                    self.tokens.end(top)
                    return
            raise self._stranger(top)

    def _instruction(self, top: Input) -> None:
        start = top.position
        end = top.text.find("?>", start + 2)
        if end < 0:
            raise self.inputs.error("a processing instruction is not closed: expected ?>")
        name = IS_NAME.match(top.text, start + 2)
        if not name:
            raise self.inputs.error("a processing instruction without a name")
        if name.end() != end and top.text[name.end()] not in " \t\n":
            message = "expected white space after the name of a processing instruction"
            raise self.inputs.error(message, top, name.end())
        if name[0].lower() == "xml":
            message = 'the XML declaration of a DTD is <?xml version="1.0" encoding="…"?>'
            if start:
                message = "an XML declaration can only be the first thing in a file"
            raise self.inputs.error(message)
        top.position = end + 2

    def _stranger(self, top: Input) -> SchemaError:
        found = top.text[top.position : top.position + 12].split("\n")[0]
        hint = ""
        if found.startswith("<!DOCTYPE"):
            hint = ": a DTD file has declarations alone, this is the beginning of a document"
        elif re.match(r"<[^!?]", found):
            hint = ": this is a document, not a DTD"
        return self.inputs.error(
            f"expected a declaration, found {found!r}{hint or self.inputs.hint()}"
        )

    def _conditional(self) -> bool:
        """``<![INCLUDE[``: true, and read on; ``<![IGNORE[``: false, and all of it is passed."""
        top = self.inputs.top
        if not self.tokens.in_external():
            raise self.inputs.error("conditional sections stand in external parts of a DTD only")
        top.position += 3
        keyword = self.tokens.next()
        if keyword.text not in ("INCLUDE", "IGNORE"):
            raise self.tokens.unexpected("INCLUDE or IGNORE", keyword)
        bracket = self.tokens.expect("[", "[")
        if bracket.input is not top:
            raise self.tokens.wrong(bracket, "[ is in another entity than the <! before it")
        if keyword.text == "INCLUDE":
            return True
        depth = 1
        for edge in _SECTION_EDGE.finditer(top.text, top.position):
            depth += 1 if edge[0] == "<![" else -1
            if depth == 0:
                top.position = edge.end()
                return False
        raise self.inputs.error("an ignored section is not closed: expected ]]>")

    def _element(self) -> None:
        name = self.tokens.name("the name of an element")
        token = self.tokens.spaced("a content model")
        model: Particle | None = None
        if token.text == "EMPTY":
            kind = ContentKind.EMPTY
        elif token.text == "ANY":
            kind = ContentKind.ANY
        elif token.text == "(" and self.tokens.peek().text == "#PCDATA":
            kind, model = ContentKind.MIXED, self._mixed()
        elif token.text == "(":
            kind, model = ContentKind.CHILDREN, self._group(1)
        else:
            raise self.tokens.unexpected("EMPTY, ANY or ( after the name of the element", token)
        if name in self.elements:
            raise self.tokens.wrong(token, f"<{name}> is declared a second time")
        self.elements[name] = ElementType(name, kind, model)

    def _mixed(self) -> Particle | None:
        self.tokens.next()
        names: dict[str, Particle] = {}
        while (token := self.tokens.next()).text == "|":
            name = self.tokens.name("the name of an element", spaced=False)
            names[name] = Child(name)
        if token.text != ")":
            raise self.tokens.unexpected("| or ) after #PCDATA", token)
        occurs = self._occurs()
        if occurs is not Occurs.ZERO_OR_MORE and (names or occurs is not Occurs.ONCE):
            raise self.inputs.error("mixed content ends in )*")
        return Group(tuple(names.values()), True, Occurs.ZERO_OR_MORE) if names else None

    def _group(self, depth: int) -> Group:
        most = self.inputs.limits.schema_nesting
        if depth > most:
            raise self.inputs.limit_error(f"parentheses beyond the limit schema_nesting = {most}")
        parts: list[Particle] = []
        separator = ""
        while True:
            token = self.tokens.next()
            if token.text == "(":
                parts.append(self._group(depth + 1))
            elif token.kind == "word" and IS_NAME.fullmatch(token.text):
                parts.append(Child(token.text, self._occurs()))
            else:
                raise self.tokens.unexpected("the name of an element or (", token)
            token = self.tokens.next()
            if token.text == ")":
                return Group(tuple(parts), separator == "|", self._occurs())
            if token.text not in (separator or ",", separator or "|"):
                raise self.tokens.unexpected(f"{separator or ', or |'} or )", token)
            separator = token.text

    def _occurs(self) -> Occurs:
        """The mark directly after what was just read."""
        top = self.inputs.top
        mark = top.text[top.position : top.position + 1]
        if not mark or mark not in "?*+":
            return Occurs.ONCE
        top.position += 1
        return Occurs(mark)

    def _attributes(self) -> None:
        declared = self.attributes.setdefault(self.tokens.name("the name of an element"), {})
        while self.tokens.peek().text != ">":
            attribute = self._attribute()
            declared.setdefault(attribute.name, attribute)

    def _attribute(self) -> AttributeType:
        name = self.tokens.name("the name of an attribute")
        token = self.tokens.spaced("the type of the attribute")
        values: tuple[str, ...] = ()
        if token.text == "(":
            kind, values = AttributeKind.ENUMERATION, self._enumeration()
        elif token.text in _KINDS:
            kind = _KINDS[token.text]
        else:
            raise self.tokens.unexpected(f"the type of the attribute {name}", token)
        if kind is AttributeKind.NOTATION:
            opening = self.tokens.spaced("(")
            if opening.text != "(":
                raise self.tokens.unexpected("(", opening)
            values = self._enumeration(IS_NAME, "the name of a notation")
        token = self.tokens.spaced("#REQUIRED, #IMPLIED, #FIXED or a value")
        if token.text in ("#REQUIRED", "#IMPLIED"):
            return AttributeType(name, kind, Presence(token.text), values)
        presence = Presence.DEFAULT
        if token.text == "#FIXED":
            presence = Presence.FIXED
            token = self.tokens.spaced("the value")
        if token.kind != "literal":
            raise self.tokens.unexpected("#REQUIRED, #IMPLIED, #FIXED or a value in quotes", token)
        default = self.tokens.attribute_value(token)
        if kind is not AttributeKind.CDATA:
            default = re.sub(" +", " ", default.strip(" "))
        return AttributeType(name, kind, presence, values, default)

    def _enumeration(
        self, pattern: re.Pattern[str] = _ANY, what: str = "a value of the enumeration"
    ) -> tuple[str, ...]:
        """What follows ``(`` of an enumeration of words that the pattern matches."""
        values: dict[str, None] = {}
        while True:
            token = self.tokens.next()
            if token.kind != "word" or not pattern.fullmatch(token.text):
                raise self.tokens.unexpected(what, token)
            values[token.text] = None
            token = self.tokens.next()
            if token.text == ")":
                return tuple(values)
            if token.text != "|":
                raise self.tokens.unexpected("| or )", token)

    def _entity(self) -> None:
        entities = self.tokens.generals
        if not self.tokens.peek().spaced:
            raise self.tokens.unexpected("white space", self.tokens.next())
        if self.tokens.peek().text == "%":
            self.tokens.next()
            entities = self.tokens.parameters
        name = self.tokens.name("the name of an entity")
        if self.tokens.peek().kind == "literal":
            entity = Entity(self.tokens.entity_value(self.tokens.spaced("a value")))
        else:
            folder = self.inputs.top.folder
            entity = Entity(None, self._external_id(public_alone=False), folder)
            if self.tokens.peek().text == "NDATA" and entities is self.tokens.generals:
                self.tokens.spaced("NDATA")
                self.tokens.name("the name of a notation")
                if name not in self.tokens.generals:
                    self.unparsed.append(name)
        entities.setdefault(name, entity)

    def _notation(self) -> None:
        self.notations.append(self.tokens.name("the name of a notation"))
        self._external_id(public_alone=True)

    def _external_id(self, public_alone: bool) -> str:
        """``SYSTEM "…"`` or ``PUBLIC "…" "…"``: the system identifier."""
        keyword = self.tokens.spaced("SYSTEM, PUBLIC or a value")
        if keyword.text not in ("SYSTEM", "PUBLIC"):
            raise self.tokens.unexpected("SYSTEM, PUBLIC or a value in quotes", keyword)
        token = self.tokens.peek()
        literal = self.tokens.literal("an identifier in quotes", "an identifier in quotes")
        if keyword.text == "SYSTEM":
            return literal
        if not _PUBLIC.fullmatch(literal):
            raise self.tokens.wrong(token, "a character that no public identifier may have")
        if public_alone and self.tokens.peek().kind != "literal":
            return literal
        return self.tokens.literal("a system identifier", "a system identifier in quotes")
