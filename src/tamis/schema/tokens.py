"""The tokens of a DTD's declarations, with references to entities followed."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import NamedTuple

from tamis.core.errors import SchemaError
from tamis.core.lazy import lazy_pattern
from tamis.core.names import NAME_REST, NAME_START, NOT_XML
from tamis.schema.inputs import Entity, Input, Inputs

_log = logging.getLogger("tamis")

_NAME = f"[:{NAME_START}][:{NAME_REST}]*"
IS_NAME = lazy_pattern(_NAME)
_TOKEN = lazy_pattern(
    rf"""(?P<space>[ \t\n]+)
    | (?P<entity>%{_NAME};)
    | (?P<word>[:{NAME_REST}]+)
    | (?P<literal>"[^"]*"|'[^']*')
    | (?P<keyword>\#[A-Z]+)
    | (?P<mark>[()|,?*+%<>\[\]])""",
    re.VERBOSE,
)
_REFERENCE = lazy_pattern(
    rf"&\#0*(?P<decimal>[0-9]{{1,10}});|&\#x0*(?P<hexadecimal>[0-9a-fA-F]{{1,10}});"
    rf"|%(?P<parameter>{_NAME});|&(?P<general>{_NAME});|[&%]"
)
_WHITE = lazy_pattern("[\t\n]")
_PREDEFINED = {"lt": "<", "gt": ">", "amp": "&", "apos": "'", "quot": '"'}


class Token(NamedTuple):
    """A token of a declaration.

    Attributes:
        kind: the name of its group in the pattern of tokens, or "end".
        text: as it is written.
        spaced: whether white space, or the edge of an entity, is before it.
        input: the text that it is in.
        offset: its index there.
    """

    kind: str
    text: str
    spaced: bool
    input: Input
    offset: int


Replacement = Callable[[Token, re.Match[str]], str | None]


class Tokens:
    """Reads tokens from a stack of texts, and knows the entities.

    Attributes:
        inputs: the texts.
        parameters: the parameter entities declared so far.
        generals: the general entities declared so far.
        internal: whether a document's internal subset is being read.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.parameters: dict[str, Entity] = {}
        self.generals: dict[str, Entity] = {}
        self.internal = False
        self._peeked: Token | None = None

    # -- tokens --------------------------------------------------------------------------------

    def next(self) -> Token:
        """The next token inside a declaration; references to parameter entities are followed."""
        if self._peeked is not None:
            token, self._peeked = self._peeked, None
            return token
        spaced = False
        while True:
            top = self.inputs.top
            start = top.position
            match = _TOKEN.match(top.text, start)
            if match is None:
                if start < len(top.text):
                    kind = "quote" if top.text[start] in "'\"" else "stranger"
                    return Token(kind, top.text[start], spaced, top, start)
                if not top.entity:
                    return Token("end", "", spaced, top, start)
                self.inputs.stack.pop()
                spaced = True
                continue
            top.position = match.end()
            token = Token(match.lastgroup or "", match[0], spaced, top, start)
            if token.kind == "entity":
                if not self.in_external():
                    raise self.wrong(
                        token, f"{match[0]} inside a declaration of an internal subset"
                    )
                self.follow(token)
            elif token.kind != "space":
                return token
            spaced = True

    def reference(self) -> None:
        """Follow the reference to a parameter entity that is between declarations."""
        top = self.inputs.top
        match = _TOKEN.match(top.text, top.position)
        if match is None or match.lastgroup != "entity":
            raise self.inputs.error("expected a parameter entity such as %name;, found '%'")
        token = Token("entity", match[0], False, top, top.position)
        top.position = match.end()
        self.follow(token)

    def peek(self) -> Token:
        if self._peeked is None:
            self._peeked = self.next()
        return self._peeked

    def spaced(self, what: str) -> Token:
        token = self.next()
        if not token.spaced and token.kind != "end":
            raise self.unexpected(f"white space before {what}", token)
        return token

    def name(self, what: str, spaced: bool = True) -> str:
        token = self.spaced(what) if spaced else self.next()
        if token.kind != "word" or not IS_NAME.fullmatch(token.text):
            raise self.unexpected(what, token)
        return token.text

    def expect(self, mark: str, what: str) -> None:
        token = self.next()
        if token.text != mark:
            raise self.unexpected(what, token)

    def end(self, first: Input) -> None:
        """The ``>`` of a declaration, in the text where the declaration began."""
        token = self.next()
        if token.text != ">":
            raise self.unexpected("> at the end of the declaration", token)
        if token.input is not first:
            raise self.wrong(token, "a declaration ends in another entity than it begins in")

    def unexpected(self, what: str, token: Token) -> SchemaError:
        found = {"end": "the end", "quote": "a quote that is not closed"}.get(
            token.kind, repr(token.text[:40])
        )
        return self.wrong(token, f"expected {what}, found {found}{self.inputs.hint()}")

    def wrong(self, token: Token, message: str) -> SchemaError:
        """An error at a token."""
        return self.inputs.error(message, token.input, token.offset)

    # -- parameter entities --------------------------------------------------------------------

    def in_external(self) -> bool:
        """Whether this is an external part of a DTD, where references may stand in declarations."""
        return not self.internal or any(given.file is not None for given in self.inputs.stack[1:])

    def follow(self, token: Token) -> None:
        """Read on in the replacement text of a parameter entity."""
        name = token.text[1:-1]
        entity = self.parameters.get(name)
        if entity is None:
            self._undeclared(token, token.text)
            return
        if entity.text is not None:
            self.inputs.count(len(entity.text))
            given: Input | None = Input(entity.text, None, token.input.folder, name)
        else:
            given = self.external(entity, name)
        if given is not None:
            given.parent, given.reference = token.input, token.offset
            self.inputs.push(given)

    def _undeclared(self, token: Token, reference: str) -> None:
        """Read on as if it stood for nothing: what declares it may be in a part not found."""
        if self.inputs.note_missing(reference):
            where = self.wrong(token, f"{reference} is not declared: read on without it")
            _log.warning("%s", where)

    def external(self, entity: Entity, name: str) -> Input | None:
        """The text of an external part, or None where there is no such file."""
        assert entity.system is not None
        path = self.inputs.find(entity.system, entity.folder)
        if path is None:
            if self.inputs.note_missing(entity.system):
                _log.warning(
                    "%s: not found beside the DTD nor in a catalogue folder: read on without it",
                    self.inputs.error(f'"{entity.system}"'),
                )
            return None
        return Input(self.inputs.file_text(path, str(path)), str(path), path.parent, name)

    # -- values --------------------------------------------------------------------------------

    def entity_value(self, token: Token) -> str:
        """The replacement text: character and parameter entity references are replaced."""
        return self._replaced(token, token.text[1:-1], (), self._in_entity_value)

    def attribute_value(self, token: Token) -> str:
        """The value of an attribute: all references are replaced, white space is spaces."""
        if "<" in token.text:
            raise self.wrong(token, "< in the value of an attribute: write &lt;")
        return self._replaced(token, token.text[1:-1], (), self._in_attribute)

    def _replaced(self, token: Token, text: str, inside: tuple[str, ...], how: Replacement) -> str:
        if len(inside) > self.inputs.limits.schema_entities:
            raise self.inputs.limit_error(
                f"entities are inside each other beyond the limit schema_entities = "
                f"{self.inputs.limits.schema_entities}"
            )

        def replace(match: re.Match[str]) -> str:
            number = match["decimal"] or match["hexadecimal"]
            if number:
                return self._character(token, match[0], int(number, 10 if match["decimal"] else 16))
            content = how(token, match)
            if content is None:
                kept = _PREDEFINED if how == self._in_attribute else {}
                return kept.get(match["general"], match[0])
            if match[0] in inside:
                raise self.wrong(token, f"{match[0]} refers to itself")
            self.inputs.count(len(content))
            return self._replaced(token, content, (*inside, match[0]), how)

        if how == self._in_attribute:
            text = _WHITE.sub(" ", text)
        return _REFERENCE.sub(replace, text)

    def _in_entity_value(self, token: Token, match: re.Match[str]) -> str | None:
        """What replaces a reference, or None where it stays."""
        if match["general"]:
            return None
        if not match["parameter"]:
            raise self._stray(token, match[0])
        if not self.in_external():
            raise self.wrong(token, f"{match[0]} inside a declaration of an internal subset")
        entity = self.parameters.get(match["parameter"])
        if entity is None:
            self._undeclared(token, match[0])
            return ""
        if entity.text is not None:
            return entity.text
        external = self.external(entity, match["parameter"])
        return "" if external is None else external.text[external.position :]

    def _in_attribute(self, token: Token, match: re.Match[str]) -> str | None:
        """What replaces a reference, or None where it stays or is predefined."""
        if match[0].startswith("%") or match["general"] in _PREDEFINED:
            return None
        if not match["general"]:
            raise self._stray(token, match[0])
        entity = self.generals.get(match["general"])
        if entity is None:
            if not self.inputs.missing:
                raise self.wrong(token, f"{match[0]} is not declared")
            self._undeclared(token, match[0])
            return ""
        if entity.text is None:
            raise self.wrong(token, f"{match[0]} is external, which no attribute may refer to")
        if "<" in entity.text:
            raise self.wrong(token, f"{match[0]} has < in it, which no attribute may have")
        return entity.text

    def _character(self, token: Token, reference: str, number: int) -> str:
        if number > 0x10FFFF or NOT_XML.match(chr(number)):
            raise self.wrong(token, f"{reference} is no character of XML")
        return chr(number)

    def _stray(self, token: Token, mark: str) -> SchemaError:
        # &#38; in an entity would be a mark that begins no reference wherever it is used.
        instead = "&amp;" if mark == "&" else "&#37;"
        return self.wrong(token, f"{mark} that begins no reference: write {instead}")
