"""The tokens of a DTD: its files, the entities that they refer to, and what these expand to."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tamis.core import errors
from tamis.core.errors import SchemaError, SchemaLimitError, SchemaSyntaxError, UnreadableSchema
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.core.names import NAME_REST, NAME_START, NOT_XML
from tamis.documents.source import read

_log = logging.getLogger("tamis")

_ENTITY_CHARS = 16  # what following a reference, or looking for a file, costs at least
_WARNINGS = 100  # of what is missing: to say where takes time, and nobody reads more
_PATH_PARTS = 32  # in a system identifier; each is a place to look
_SCHEME = lazy_pattern(r"[A-Za-z][A-Za-z0-9+.\-]*:(//[^/]*)?")
# One of XML's declarations of documents too, and without the encoding, which people leave out.
_TEXT_DECLARATION = lazy_pattern(
    r"<\?xml(?=\s)"
    + "".join(
        rf"""(?:\s+{name}\s*=\s*(?:"{value}"|'{value}'))?"""
        for name, value in (
            ("version", r"1\.[0-9]+"),
            ("encoding", r"[A-Za-z][A-Za-z0-9._\-]*"),
            ("standalone", "(?:yes|no)"),
        )
    )
    + r"\s*\?>"
)


class Entity(NamedTuple):
    """A declared entity: its replacement text, or the system identifier of an external one.

    That is relative to ``folder``, if there is one.
    """

    text: str | None
    system: str | None = None
    folder: Path | None = None


@dataclass(slots=True, eq=False)
class Input:
    """A text that is being read, and how it came in.

    Attributes:
        text: with line ends normalised.
        file: what messages call it, or None of an internal entity.
        folder: what the system identifiers in it are relative to, or None.
        entity: the parameter entity that it replaces, or "".
        parent, reference: what holds the reference, and its index in that text.
        position: index of the next character, in the beginning after the text declaration.
    """

    text: str
    file: str | None
    folder: Path | None
    entity: str = ""
    parent: Input | None = None
    reference: int = 0
    position: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.file is not None or not self.entity:
            declaration = _TEXT_DECLARATION.match(self.text)
            self.position = declaration.end() if declaration else 0


class Inputs:
    """The stack of texts, with the limits on what they may grow to.

    External parts are searched for in the folder ``root``, if there is one, and then in the others.
    """

    def __init__(self, root: Path | None, catalog: Sequence[Path], limits: Limits) -> None:
        self.folders = [Path(os.path.abspath(folder)) for folder in (root, *catalog) if folder]
        self.limits = limits
        self.stack: list[Input] = []
        self.missing: dict[str, None] = {}
        self._texts: dict[Path, str] = {}
        self._found: dict[tuple[str, Path | None], Path | None] = {}
        self._chars = 0

    def push(self, given: Input) -> None:
        """Read on in this text, unless it is inside itself."""
        depth, outer = 1, given.parent
        while outer is not None:
            if given.entity and outer.entity == given.entity:
                raise self.error(f"%{given.entity}; refers to itself")
            depth, outer = depth + 1, outer.parent
        self.check_depth(depth)
        self.stack.append(given)

    def check_depth(self, depth: int) -> None:
        most = self.limits.schema_entities
        if depth > most:
            problem = "entities are inside each other beyond the limit schema_entities"
            raise self.limit_error(f"{problem} = {most}")

    def file_text(self, path: Path, name: str) -> str:
        """The text of a file, read once, counted at each use."""
        if path not in self._texts:
            with suppress(OSError, ValueError):  # reading it tells what is wrong
                if path.stat().st_size > 4 * self.limits.schema_chars:  # no character takes more
                    raise self.chars_error()
            self._texts[path] = decoded(path, name, self.limits)
        self.count(len(self._texts[path]))
        return self._texts[path]

    def count(self, chars: int) -> None:
        """Count the characters of a file, or of what an entity stands for, up to the limit."""
        self._chars += chars + _ENTITY_CHARS
        if self._chars > self.limits.schema_chars:
            raise self.chars_error()

    def register_missing(self, what: str) -> bool:
        """Add it to ``missing``; true where it is new, and not one of very many: warn of it."""
        new = what not in self.missing
        self.missing.setdefault(what, None)
        return new and len(self.missing) <= _WARNINGS

    def find(self, system: str, folder: Path | None) -> Path | None:
        """The file of a system identifier, or None.

        It is looked for where the identifier says, if that is inside one of the folders, and then
        by the last parts of its path in each of them: identifiers are often addresses on the
        network, where nothing is ever fetched.
        """
        if (system, folder) not in self._found:
            self._found[system, folder] = self._searched(system, folder)
        return self._found[system, folder]

    def _searched(self, system: str, folder: Path | None) -> Path | None:
        scheme = _SCHEME.match(system)
        parts = [part for part in system[scheme.end() if scheme else 0 :].split("/") if part]
        if not scheme and folder is not None:
            path = Path(os.path.abspath(folder / system))
            is_inside = any(path.is_relative_to(allowed) for allowed in self.folders)
            if is_inside and os.path.isfile(path):
                return path
        known = [part for part in parts if part not in (".", "..")][-_PATH_PARTS:]
        for inside in self.folders:
            for start in range(len(known)):
                self.count(0)
                path = inside.joinpath(*known[start:])
                if os.path.isfile(path):
                    return path
        return None

    def hint(self) -> str:
        if not self.missing:
            return ""
        first = ", ".join(list(self.missing)[:5])
        return f" (it may be for want of {first}{', …' if len(self.missing) > 5 else ''})"

    @property
    def top(self) -> Input:
        return self.stack[-1]

    def error(
        self,
        message: str,
        given: Input | None = None,
        offset: int | None = None,
        kind: type[SchemaError] = SchemaSyntaxError,
    ) -> SchemaError:
        """An error at an index of a text; by default where reading is now."""
        if given is None and not self.stack:
            return kind(message)
        given = given or self.top
        offset = given.position if offset is None else offset
        inside: list[str] = []
        while given.file is None and given.parent is not None:
            inside.append(f"%{given.entity};")
            given, offset = given.parent, given.reference
        if inside:
            more = f" and {len(inside) - 3} more" if len(inside) > 3 else ""
            message += f" (in {', in '.join(inside[:3])}{more})"
        return kind(message, given.file, *_line_and_column(given.text, offset))

    def chars_error(self) -> SchemaError:
        what = "its files, and what its entities expand to, are larger than the limit schema_chars"
        return self.limit_error(f"{what} = {self.limits.schema_chars:,}")

    def limit_error(self, message: str) -> SchemaError:
        return self.error(message, kind=SchemaLimitError)


def _line_and_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def decoded(path: Path, name: str, limits: Limits) -> str:
    """The text of a file, normalised."""
    try:
        source = read(path, limits)
        text = bytes(source.data).decode(source.encoding or "utf-8")
    except errors.DocumentLimitError as error:
        raise SchemaLimitError(error.message, name) from None
    except errors.DocumentError as error:
        message = error.message.removeprefix(f"cannot read {name}: ")
        raise UnreadableSchema(message, name, error.line, error.column) from None
    except UnicodeDecodeError as error:
        good = bytes(source.data)[: error.start].decode(error.encoding)
        message = f"not {error.encoding}: {error.reason}"
        raise UnreadableSchema(message, name, *_line_and_column(good, len(good))) from None
    return normalized(text, name)


def normalized(text: str, name: str | None) -> str:
    """A text with XML's line ends, and without a byte order mark."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    wrong = NOT_XML.search(text)
    if wrong:
        message = f"U+{ord(wrong[0]):04X} is no character of XML"
        raise SchemaSyntaxError(message, name, *_line_and_column(text, wrong.start()))
    return text


# -- tokens ----------------------------------------------------------------------------------------

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
    """A token of a declaration, and where it is.

    ``kind`` is the name of its group in the pattern of tokens, or "end". It is ``spaced`` if white
    space, or the edge of an entity, is before it.
    """

    kind: str
    text: str
    spaced: bool
    input: Input
    offset: int


Replacement = Callable[[Token, re.Match[str]], str | None]


class Tokens:
    """Reads tokens from a stack of texts, and knows the entities that were declared so far."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.parameters: dict[str, Entity] = {}
        self.generals: dict[str, Entity] = {}
        self.internal = False  # whether a document's internal subset is being read
        self._peeked: Token | None = None

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
                self._check_external(token, match[0])
                self.follow(token)
            elif token.kind != "space":
                return token
            spaced = True

    def reference(self) -> None:
        """Follow the reference to a parameter entity that stands between declarations."""
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

    def expect(self, mark: str, what: str) -> Token:
        token = self.next()
        if token.text != mark:
            raise self.unexpected(what, token)
        return token

    def literal(self, what: str, expected: str) -> str:
        """The next token, a string in quotes behind white space, without these."""
        token = self.spaced(what)
        if token.kind != "literal":
            raise self.unexpected(expected, token)
        return token.text[1:-1]

    def end(self, first: Input) -> None:
        token = self.expect(">", "> at the end of the declaration")
        if token.input is not first:
            raise self.wrong(token, "a declaration ends in another entity than it begins in")

    def unexpected(self, what: str, token: Token) -> SchemaError:
        found = {"end": "the end", "quote": "a quote that is not closed"}.get(
            token.kind, repr(token.text[:40])
        )
        return self.wrong(token, f"expected {what}, found {found}{self.inputs.hint()}")

    def wrong(self, token: Token, message: str) -> SchemaError:
        return self.inputs.error(message, token.input, token.offset)

    def in_external(self) -> bool:
        """Whether this is an external part of a DTD, where references may stand in declarations."""
        return not self.internal or any(given.file is not None for given in self.inputs.stack[1:])

    def _check_external(self, token: Token, reference: str) -> None:
        if not self.in_external():
            raise self.wrong(token, f"{reference} inside a declaration of an internal subset")

    def follow(self, token: Token) -> None:
        name = token.text[1:-1]
        entity = self.parameters.get(name)
        given: Input | None = None
        if entity is None:
            self._undeclared(token, token.text)
        elif entity.text is None:
            given = self.external(entity, name)
        else:
            self.inputs.count(len(entity.text))
            given = Input(entity.text, None, token.input.folder, name)
        if given is not None:
            given.parent, given.reference = token.input, token.offset
            self.inputs.push(given)

    def _undeclared(self, token: Token, reference: str) -> None:
        """Read on as if it stood for nothing: what declares it may be in a part not found."""
        if self.inputs.register_missing(reference):
            problem = self.wrong(token, f"{reference} is not declared: read on without it")
            _log.warning("%s", problem)

    def external(self, entity: Entity, name: str) -> Input | None:
        assert entity.system is not None
        path = self.inputs.find(entity.system, entity.folder)
        if path is None:
            if self.inputs.register_missing(entity.system):
                why = "not found beside the DTD nor in a catalogue folder: read on without it"
                _log.warning("%s: %s", self.inputs.error(f'"{entity.system}"'), why)
            return None
        return Input(self.inputs.file_text(path, str(path)), str(path), path.parent, name)

    def entity_value(self, token: Token) -> str:
        """The replacement text; character and parameter entity references are replaced."""
        return self._replaced(token, token.text[1:-1], (), self._in_entity_value)

    def attribute_value(self, token: Token) -> str:
        """The value of an attribute: all references are replaced, white space is spaces."""
        if "<" in token.text:
            raise self.wrong(token, "< in the value of an attribute: write &lt;")
        return self._replaced(token, token.text[1:-1], (), self._in_attribute)

    def _replaced(self, token: Token, text: str, inside: tuple[str, ...], how: Replacement) -> str:
        self.inputs.check_depth(len(inside))

        def replace(match: re.Match[str]) -> str:
            number = match["decimal"] or match["hexadecimal"]
            if number:
                code = int(number, 10 if match["decimal"] else 16)
                if code > 0x10FFFF or NOT_XML.match(chr(code)):
                    raise self.wrong(token, f"{match[0]} is no character of XML")
                return chr(code)
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
        self._check_external(token, match[0])
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

    def _stray(self, token: Token, mark: str) -> SchemaError:
        # &#38; in an entity would be a mark that begins no reference wherever it is used.
        instead = "&amp;" if mark == "&" else "&#37;"
        return self.wrong(token, f"{mark} that begins no reference: write {instead}")
