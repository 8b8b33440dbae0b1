"""Every error that Tamis raises on purpose.

::

    TamisError
    ├── SubscriptionError          one subscription cannot be used
    │   ├── SubscriptionSyntaxError  subscription-syntax       not in the language
    │   ├── UnsupportedExpression    subscription-unsupported  outside the streamed fragment
    │   ├── SubscriptionIdError      subscription-id           duplicate or unusable id
    │   └── SubscriptionLimitError   subscription-limit        beyond a limit
    ├── BadSubscriptions           bad-subscriptions         all those of a set, in order
    ├── DocumentError              one document cannot be answered
    │   ├── MalformedDocument        document-malformed        not well-formed XML
    │   ├── DocumentEncodingError    document-encoding         bytes are not as declared
    │   ├── DocumentLimitError       document-limit            beyond a limit
    │   ├── UnreadableDocument       document-unreadable       the file cannot be read
    │   └── LxmlEvaluationError      document-lxml             lxml could not evaluate it
    ├── MessageError               message                   one message cannot be made
    │   └── MessageLimitError        message-limit             beyond a limit
    ├── EventError                 one event cannot be answered
    │   ├── MalformedEvent           event-malformed           not a JSON object of plain values
    │   ├── EventLimitError          event-limit               beyond a limit
    │   └── UnreadableEvents         event-unreadable          the file cannot be read
    ├── SchemaError                one DTD cannot be used
    │   ├── SchemaSyntaxError        schema-syntax             not a DTD
    │   ├── SchemaLimitError         schema-limit              beyond a limit
    │   └── UnreadableSchema         schema-unreadable         a file of it cannot be read
    ├── ProgramError               one saved program cannot be used
    │   ├── DamagedProgram           program-damaged           not as Tamis wrote it
    │   ├── OtherVersion             program-version           another version of Tamis wrote it
    │   └── UnreadableProgram        program-unreadable        the file cannot be read
    ├── StoreError                 store                     a set in a folder cannot be used
    ├── LibraryError               kernel-library            the native library cannot be used
    └── UsageError                 usage                     the call cannot work
        ├── UnknownSubscription      subscription-unknown      no such id; also an IdError
        ├── EngineRefused            engine-refused            no such engine, or it cannot
        ├── UnwritableOutput         output-unwritable         a file cannot be written
        └── MissingExtra             missing-extra             a package is not installed

The code beside each class is stable: programs may compare ``error.code``, messages may change. All
errors can be pickled, so they cross process borders whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

SubscriptionId = str | int


class TamisError(Exception):
    """The root of the tree; catching it catches everything that Tamis raises on purpose."""

    code: ClassVar[str] = "error"

    def __post_init__(self) -> None:
        """Of errors with fields: these are its ``args``, by which Python shows and pickles it."""
        self.args = tuple(vars(self).values())


@dataclass(eq=False, repr=False)
class SubscriptionError(TamisError):
    """One subscription cannot be used.

    Attributes:
        message: what is wrong, without the context.
        expression: the text of the subscription, or None where the id is at fault.
        position: index into ``expression`` (in characters, from 0) of the fault, or None.
        hint: what to write instead, or None.
        id: the subscription's id, or None while it has none.
        line: line of the subscription file (from 1), or None where there is no file.

    >>> error = SubscriptionSyntaxError("a step is missing", "/a//", 4, hint="end with a name")
    >>> print(error)
    a step is missing
      /a//
          ^
      hint: end with a name
    """

    code = "subscription"

    message: str
    expression: str | None = None
    position: int | None = None
    hint: str | None = None
    id: SubscriptionId | None = None
    line: int | None = None

    def located(self, id: SubscriptionId | None, line: int | None) -> SubscriptionError:
        """The same error with the subscription's id, if it has one, and its line in the file."""
        return type(self)(self.message, self.expression, self.position, self.hint, id, line)

    def __str__(self) -> str:
        where = "" if self.id is None else f"subscription {_shortened(repr(self.id))}: "
        if self.line is not None:
            where = f"line {self.line}: {where}"
        lines = [where + self.message]
        if self.expression is not None and self.position is not None:
            before, newline, _ = self.expression[: self.position].rpartition("\n")
            start = len(before) + len(newline)
            if "\n" in self.expression.rstrip():
                number = self.expression.count("\n", 0, start) + 1
                lines[0] += f" (line {number} of its text)"
            lines += caret(self.expression[start:].partition("\n")[0], self.position - start)
        if self.hint is not None:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


class SubscriptionSyntaxError(SubscriptionError):
    """The text is not an XPath 1.0 expression, or not one about events."""

    code = "subscription-syntax"

    def located(self, id: SubscriptionId | None, line: int | None) -> SubscriptionError:
        """See :meth:`SubscriptionError.located`; a further column in a file is hinted at."""
        error = super().located(id, line)
        before = (self.expression or "")[: self.position]
        if line is not None and "\t" in before and self.hint is None:
            error.hint = "a tab in an expression: a line of a file is id, tab, expression, no more"
        return error


class UnsupportedExpression(SubscriptionError):  # noqa: N818 - the name is part of the public API
    """The text is XPath 1.0, but outside the fragment that can be streamed."""

    code = "subscription-unsupported"


class SubscriptionIdError(SubscriptionError):
    """An id is used twice, or cannot be used at all."""

    code = "subscription-id"


class SubscriptionLimitError(SubscriptionError):
    """A subscription reaches a limit of :class:`tamis.Limits`, which the message names."""

    code = "subscription-limit"


@dataclass(eq=False, repr=False)
class BadSubscriptions(TamisError):  # noqa: N818 - the name is part of the public API
    """A set holds subscriptions that cannot be used; ``errors`` has every one of them, in order."""

    code = "bad-subscriptions"

    errors: tuple[SubscriptionError, ...]

    def __str__(self) -> str:
        count = len(self.errors)
        head = f"{count} bad subscription{'' if count == 1 else 's'}"
        shown = [str(error) for error in self.errors[:20]]
        if count > len(shown):
            shown.append(f"… and {count - len(shown)} more")
        return "\n".join([head, *shown])


@dataclass(eq=False, repr=False)
class DocumentError(TamisError):
    """One document cannot be answered; the others are not concerned.

    Attributes:
        message: what is wrong and, where there is something, what to do.
        line: line in the document, from 1, or None where there is no place to name.
        column: column in that line, in characters from 1, or None.
        offset: of that place, in bytes from 0, as they were parsed: without a byte order mark, and
            in UTF-8 where Python decoded them. None where it is not known.

    >>> print(MalformedDocument("mismatched tag", 3, 7))
    line 3, column 7: mismatched tag
    """

    code = "document"

    message: str
    line: int | None = None
    column: int | None = None
    offset: int | None = None

    def __str__(self) -> str:
        if self.line is None:
            return self.message
        return f"line {self.line}, column {self.column}: {self.message}"


class MalformedDocument(DocumentError):  # noqa: N818 - says what the document is
    """The document is not well-formed XML 1.0 with namespaces."""

    code = "document-malformed"


class DocumentEncodingError(DocumentError):
    """The bytes are not in the encoding that the document declares, or nobody knows it."""

    code = "document-encoding"


class DocumentLimitError(DocumentError):
    """The document reaches a limit of :class:`tamis.Limits`, which the message names."""

    code = "document-limit"


class UnreadableDocument(DocumentError):  # noqa: N818 - says what the document is
    """The document's file or stream cannot be read."""

    code = "document-unreadable"


class LxmlEvaluationError(DocumentError):
    """lxml could not answer a subscription outside the fragment for this document.

    The other subscriptions are not concerned: the error is in ``Match.failed``.
    """

    code = "document-lxml"


class MessageError(TamisError):
    """What one subscription makes of one document is no message; the others are not concerned."""

    code = "message"


class MessageLimitError(MessageError):
    """A message reaches a limit of :class:`tamis.Limits`, which the text names."""

    code = "message-limit"


@dataclass(eq=False, repr=False)
class EventError(TamisError):
    """One event cannot be answered; the others are not concerned.

    Attributes:
        message: what is wrong and, where there is something, what to do.
        line: the line or row that it is in, from 1, or None where it is not of a file.
        unit: what ``line`` counts: "line" or "row".

    >>> print(MalformedEvent("the attribute 'temp' is a list: ...", 3))
    line 3: the attribute 'temp' is a list: ...
    """

    code = "event"

    message: str
    line: int | None = None
    unit: str = "line"

    def __str__(self) -> str:
        return self.message if self.line is None else f"{self.unit} {self.line}: {self.message}"


class MalformedEvent(EventError):  # noqa: N818 - says what the event is
    """It is not a set of attributes with names of their own and plain values."""

    code = "event-malformed"


class EventLimitError(EventError):
    """It reaches a limit of :class:`tamis.Limits`, which the message names."""

    code = "event-limit"


class UnreadableEvents(EventError):  # noqa: N818 - says what the events are
    """The file or stream that events are in cannot be read, or not any further."""

    code = "event-unreadable"


@dataclass(eq=False, repr=False)
class SchemaError(TamisError):
    """One DTD cannot be used.

    Attributes:
        message: what is wrong and, where there is something, what to do.
        file: the file that the place is in, or None where there is none.
        line: line in that file, from 1, or None where there is no place to name.
        column: column in that line, in characters from 1, or None.

    >>> print(SchemaSyntaxError("expected a name, found '>'", "book.dtd", 3, 12))
    book.dtd, line 3, column 12: expected a name, found '>'
    """

    code = "schema"

    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        where = [] if self.file is None else [self.file]
        if self.line is not None:
            where.append(f"line {self.line}, column {self.column}")
        return ": ".join([", ".join(where), self.message]) if where else self.message


class SchemaSyntaxError(SchemaError):
    """The text is not a DTD."""

    code = "schema-syntax"


class SchemaLimitError(SchemaError):
    """The DTD reaches a limit of :class:`tamis.Limits`, which the message names."""

    code = "schema-limit"


class UnreadableSchema(SchemaError):  # noqa: N818 - says what the DTD is
    """A file of the DTD cannot be read or decoded."""

    code = "schema-unreadable"


@dataclass(eq=False, repr=False)
class ProgramError(TamisError):
    """One saved program cannot be used.

    Attributes:
        message: what is wrong and, where there is something, what to do.
        file: the file that it is in.

    >>> print(DamagedProgram("it is not a file of Tamis's", "news.tamis"))
    news.tamis: it is not a file of Tamis's
    """

    code = "program"

    message: str
    file: str

    def __str__(self) -> str:
        return f"{self.file}: {self.message}"


class DamagedProgram(ProgramError):  # noqa: N818 - says what the program is
    """The file is not as Tamis wrote it, or Tamis did not write it."""

    code = "program-damaged"


class OtherVersion(ProgramError):  # noqa: N818 - says what is the matter
    """Another version of Tamis wrote the file; subscriptions have to be compiled again."""

    code = "program-version"


class UnreadableProgram(ProgramError):  # noqa: N818 - says what the program is
    """The file cannot be read."""

    code = "program-unreadable"


@dataclass(eq=False, repr=False)
class StoreError(TamisError):
    """A folder that subscriptions are kept in cannot be used, or a change cannot be written.

    Attributes:
        message: what is wrong and, where there is something, what to do.
        file: the file or folder that it is about.
        offset: the byte in that file where the damage begins, or None.

    >>> print(StoreError("a record was changed since it was written", "news/1.journal", 96))
    news/1.journal, offset 96: a record was changed since it was written
    """

    code = "store"

    message: str
    file: str
    offset: int | None = None

    def __str__(self) -> str:
        where = self.file if self.offset is None else f"{self.file}, offset {self.offset}"
        return f"{where}: {self.message}"


class LibraryError(TamisError):
    """The native library of kernels is absent, damaged, or not made for here."""

    code = "kernel-library"


class UsageError(TamisError):
    """The call cannot work; the message says what to do instead."""

    code = "usage"


@dataclass(eq=False, repr=False)
class UnknownSubscription(SubscriptionIdError, UsageError):  # noqa: N818 - says what is unknown
    """No subscription has the id that was given.

    >>> print(UnknownSubscription(id="s1"))
    subscription 's1': there is no such subscription
    """

    code = "subscription-unknown"

    message: str = "there is no such subscription"

    def __str__(self) -> str:
        return f"subscription None: {self.message}" if self.id is None else super().__str__()


class EngineRefused(UsageError):  # noqa: N818 - says what happened
    """The engine that was asked for does not exist, or cannot run one of the queries."""

    code = "engine-refused"


class UnwritableOutput(UsageError):  # noqa: N818 - says what cannot be written
    """A file or folder cannot be written."""

    code = "output-unwritable"


@dataclass(eq=False, repr=False)
class MissingExtra(UsageError):  # noqa: N818 - says what is the matter
    """A part of Tamis needs a package that is not installed.

    >>> print(MissingExtra("slow", "lxml"))
    this needs lxml, which is not installed: pip install 'tamis[slow]'
    """

    code = "missing-extra"

    extra: str
    package: str

    def __str__(self) -> str:
        return (
            f"this needs {self.package}, which is not installed: pip install 'tamis[{self.extra}]'"
        )


_CARET_WIDTH = 76


def _shortened(text: str) -> str:
    return text if len(text) <= _CARET_WIDTH else text[: _CARET_WIDTH - 1] + "…"


def caret(text: str, position: int) -> list[str]:
    r"""Two lines: the part of ``text`` around ``position``, and a caret under it.

    >>> print("\n".join(caret("a" * 100 + "!" + "b" * 100, 100)))
      …aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb…
                                           ^
    """
    start = 0
    if len(text) > _CARET_WIDTH:
        start = max(0, min(position - _CARET_WIDTH // 2 + 1, len(text) - _CARET_WIDTH))
    shown = text[start : start + _CARET_WIDTH]
    shown = "".join(c if c.isprintable() else " " for c in shown)
    if start > 0:
        shown = "…" + shown[1:]
    if start + _CARET_WIDTH < len(text):
        shown = shown[:-1] + "…"
    return ["  " + shown, "  " + " " * (position - start) + "^"]
