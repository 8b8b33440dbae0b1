"""The texts that a DTD is made of: files, and the replacement texts of parameter entities."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tamis.core.errors import (
    DocumentError,
    DocumentLimitError,
    SchemaError,
    SchemaLimitError,
    SchemaSyntaxError,
    UnreadableSchema,
)
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.core.names import NOT_XML
from tamis.documents.source import read

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
    """A declared entity.

    Attributes:
        text: the replacement text, or None of an external one.
        system: the system identifier of an external one, or None.
        folder: the folder that ``system`` is relative to, or None where there is none.
    """

    text: str | None
    system: str | None = None
    folder: Path | None = None


class Input:
    """A text that is being read, and how it came in.

    Attributes:
        text: with line ends normalised.
        position: index of the next character, in the beginning after the text declaration.
        file: what messages call it, or None of an internal entity.
        folder: what the system identifiers in it are relative to, or None.
        entity: the parameter entity that it replaces, or "".
        parent: what holds the reference, or None.
        reference: the index of the reference in the parent's text.
    """

    __slots__ = ("entity", "file", "folder", "parent", "position", "reference", "text")

    def __init__(
        self,
        text: str,
        file: str | None,
        folder: Path | None,
        entity: str = "",
        parent: Input | None = None,
        reference: int = 0,
    ) -> None:
        self.text = text
        declaration = None if entity and file is None else _TEXT_DECLARATION.match(text)
        self.position = declaration.end() if declaration else 0
        self.file = file
        self.folder = folder
        self.entity = entity
        self.parent = parent
        self.reference = reference


class Inputs:
    """The stack of texts, with the limits on what they may grow to.

    Args:
        root: the folder that files may be beside, or None.
        catalog: folders that are searched for external parts.
        limits: ``schema_chars`` and ``schema_entities`` hold here.
    """

    def __init__(self, root: Path | None, catalog: Sequence[Path], limits: Limits) -> None:
        self.folders = [Path(os.path.abspath(folder)) for folder in (root, *catalog) if folder]
        self.limits = limits
        self.stack: list[Input] = []
        self.missing: dict[str, None] = {}
        self._texts: dict[Path, str] = {}
        self._found: dict[tuple[str, Path | None], Path | None] = {}
        self._chars = 0

    # -- what comes in -------------------------------------------------------------------------

    def push(self, given: Input) -> None:
        """Read on in this text.

        Raises:
            SchemaError: it is inside itself, or a limit is reached.
        """
        chain: Input | None = given.parent
        depth = 1
        while chain is not None:
            if given.entity and chain.entity == given.entity:
                raise self.error(f"%{given.entity}; refers to itself")
            chain = chain.parent
            depth += 1
        if depth > self.limits.schema_entities:
            raise self.limit_error(
                f"entities are inside each other beyond the limit schema_entities = "
                f"{self.limits.schema_entities}"
            )
        self.stack.append(given)

    def file_text(self, path: Path, name: str) -> str:
        """The text of a file, read once, counted at each use.

        Raises:
            SchemaError: it cannot be read, decoded, or has what is no character.
        """
        if path not in self._texts:
            if _size(path) > 4 * self.limits.schema_chars:  # no character takes more bytes
                raise self.chars_error()
            self._texts[path] = _decoded(path, name, self.limits)
        self.count(len(self._texts[path]))
        return self._texts[path]

    def document_text(self, path: Path, name: str) -> str:
        """The beginning of a document: not counted, as most of it may be no DTD.

        Raises:
            SchemaError: it cannot be read, decoded, or has what is no character.
        """
        return _decoded(path, name, self.limits)[: 2 * self.limits.schema_chars]

    def count(self, chars: int) -> None:
        """Note that a file, or what an entity stands for, has this many characters.

        Raises:
            SchemaLimitError: there are too many of them.
        """
        self._chars += chars + _ENTITY_CHARS
        if self._chars > self.limits.schema_chars:
            raise self.chars_error()

    def note_missing(self, what: str) -> bool:
        """Note it in ``missing``: whether to warn of it, as it is new, and not one of very many."""
        new = what not in self.missing
        self.missing.setdefault(what, None)
        return new and len(self.missing) <= _WARNINGS

    def find(self, system: str, folder: Path | None) -> Path | None:
        """The file of a system identifier, or None.

        It is looked for where the identifier says, if that is inside one of the folders, and then
        by the last parts of its path in each of them: the same DTD is unpacked in many ways, and
        identifiers are often addresses on the network, where nothing is ever fetched.
        """
        if (system, folder) not in self._found:
            self._found[system, folder] = self._searched(system, folder)
        return self._found[system, folder]

    def _searched(self, system: str, folder: Path | None) -> Path | None:
        scheme = _SCHEME.match(system)
        parts = [part for part in system[scheme.end() if scheme else 0 :].split("/") if part]
        if not scheme and folder is not None:
            path = Path(os.path.abspath(folder / system))
            if any(path.is_relative_to(allowed) for allowed in self.folders) and _is_file(path):
                return path
        known = [part for part in parts if part not in (".", "..")][-_PATH_PARTS:]
        for inside in self.folders:
            for start in range(len(known)):
                self.count(0)
                path = inside.joinpath(*known[start:])
                if _is_file(path):
                    return path
        return None

    def hint(self) -> str:
        """What may be behind an error: something was missing before it."""
        if not self.missing:
            return ""
        first = ", ".join(list(self.missing)[:5])
        return f" (it may be for want of {first}{', …' if len(self.missing) > 5 else ''})"

    # -- where things are ----------------------------------------------------------------------

    @property
    def top(self) -> Input:
        """What is being read."""
        return self.stack[-1]

    def error(
        self,
        message: str,
        given: Input | None = None,
        offset: int | None = None,
        kind: type[SchemaError] = SchemaSyntaxError,
    ) -> SchemaError:
        """An error at an index of a text (what comes next, if none is named)."""
        if given is None:
            if not self.stack:
                return kind(message)
            given = self.top
        offset = given.position if offset is None else offset
        inside: list[str] = []
        while given.file is None and given.parent is not None:
            inside.append(f"%{given.entity};")
            given, offset = given.parent, given.reference
        if inside:
            more = f" and {len(inside) - 3} more" if len(inside) > 3 else ""
            message += f" (in {', in '.join(inside[:3])}{more})"
        line = given.text.count("\n", 0, offset) + 1
        column = offset - (given.text.rfind("\n", 0, offset) + 1) + 1
        return kind(message, given.file, line, column)

    def chars_error(self) -> SchemaError:
        return self.limit_error(
            f"its files, and what its entities expand to, are larger than the limit "
            f"schema_chars = {self.limits.schema_chars:,}"
        )

    def limit_error(self, message: str) -> SchemaError:
        """A limit was reached where reading is now."""
        return self.error(message, kind=SchemaLimitError)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):  # reading it tells what is wrong
        return 0


def _decoded(path: Path, name: str, limits: Limits) -> str:
    try:
        source = read(path, limits)
        text = bytes(source.data).decode(source.encoding or "utf-8")
    except DocumentLimitError as error:
        raise SchemaLimitError(error.message, name) from None
    except DocumentError as error:
        message = error.message.removeprefix(f"cannot read {name}: ")
        raise UnreadableSchema(message, name, error.line, error.column) from None
    except UnicodeDecodeError as error:
        good = bytes(source.data)[: error.start].decode(error.encoding)
        line, column = good.count("\n") + 1, len(good) - (good.rfind("\n") + 1) + 1
        raise UnreadableSchema(
            f"not {error.encoding}: {error.reason}", name, line, column
        ) from None
    return normalized(text, name)


def normalized(text: str, name: str | None) -> str:
    """A text with XML's line ends, and without a byte order mark.

    Raises:
        SchemaSyntaxError: it has a character that XML does not allow.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    wrong = NOT_XML.search(text)
    if wrong:
        given = Input(text, name, None)
        raise Inputs(None, (), Limits()).error(
            f"U+{ord(wrong[0]):04X} is no character of XML", given, wrong.start()
        )
    return text
