"""The trusted parser: libexpat, through ordinary Python handlers.

Slower than a tokenizer of our own but right about everything: encodings, internal DTD subsets with
their entities, attribute defaults and types, namespaces. All errors about documents come from here.
Nothing external is ever fetched: references to external entities, and to entities that an
external DTD may declare, stand for nothing. In text they divide text nodes, and a warning is
logged. Expat does not report those in attribute values.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from mmap import mmap
from typing import Any, NamedTuple, NoReturn
from xml.parsers import expat

from tamis.core import errors
from tamis.core.errors import DocumentError, DocumentLimitError, MalformedDocument
from tamis.core.lazy import lazy_pattern
from tamis.core.limits import Limits
from tamis.documents.batch import BatchBuilder, DocumentBatch
from tamis.documents.encodings import VERSION, encoding_problem, newer_name_problem
from tamis.documents.offsets import settle_ends
from tamis.documents.source import Source
from tamis.documents.vocabulary import Projection, Vocabulary

log = logging.getLogger("tamis")

# Separates namespace, local name and prefix in expat's names; no XML document can contain it.
_SEPARATOR = "\f"
# What an element, a comment or a PI counts beside its characters, where entities may multiply it.
EVENT_CHARS = 16
_REFERENCE = lazy_pattern("[&%][^#&%; ]+;")


def _codes(*names: str) -> tuple[int, ...]:
    return tuple(expat.errors.codes[getattr(expat.errors, f"XML_ERROR_{name}")] for name in names)


(_MISMATCHED_TAG, _JUNK, _INVALID_TOKEN, _SYNTAX) = _codes(
    "TAG_MISMATCH", "JUNK_AFTER_DOC_ELEMENT", "INVALID_TOKEN", "SYNTAX"
)
_MAY_BE_ENCODING = _codes("INVALID_TOKEN", "PARTIAL_CHAR")
_UNFINISHED = _codes("NO_ELEMENTS", "UNCLOSED_TOKEN", "UNCLOSED_CDATA_SECTION")
_ENCODING = _codes("UNKNOWN_ENCODING", "INCORRECT_ENCODING", "PARTIAL_CHAR")
_AMPLIFICATION = 43  # XML_ERROR_AMPLIFICATION_LIMIT_BREACH, without a name in Python 3.11


def parse(
    sources: Iterable[Source | DocumentError],
    vocabulary: Vocabulary,
    projection: Projection,
    limits: Limits,
) -> tuple[DocumentBatch, dict[int, DocumentError]]:
    """Parse documents into one batch, as :meth:`.parser.Parser.parse` does."""
    builder = BatchBuilder()
    parser = ExpatParser(vocabulary, projection, limits)
    failed: dict[int, DocumentError] = {}
    for number, source in enumerate(sources):
        if isinstance(source, DocumentError):
            failed[number] = source
            builder.end_document()
            continue
        try:
            parser.parse(source, builder)
        except DocumentError as error:
            # Where it was raised would keep its parser, some 10 KB for each document in error.
            error.__traceback__ = error.__context__ = None
            failed[number] = error
    return builder.freeze(), failed


class ExpatParser:
    """Parses documents one after the other into a :class:`BatchBuilder`."""

    def __init__(self, vocabulary: Vocabulary, projection: Projection, limits: Limits) -> None:
        self.vocabulary = vocabulary
        self.projection = projection
        self.limits = limits
        # Expat's spelling of a name → what is known of it, kept across documents; None for the
        # attributes that are not projected.
        self.elements: dict[str, _Name] = {}
        self.attributes: dict[str, _Name | None] = {}

    def parse(self, source: Source, builder: BatchBuilder) -> None:
        """Append one document; of one in error, which is raised, the builder has no events."""
        lengths = builder.lengths()
        parser = create_parser(source.encoding)
        handlers = Handlers(self, parser, builder, len(source.data))
        handlers.handle_elements(handlers.start, handlers.end)
        try:
            parser.Parse(source.data, True)
        except expat.ExpatError as error:
            failure = handlers.failure(error, source.encoding, source.data)
            builder.drop_document(lengths)
            raise failure from None
        except DocumentError:
            builder.drop_document(lengths)
            raise
        finally:
            handlers.close()
        handlers.settle_offsets(source.data)
        builder.end_document()
        handlers.log_skipped(source.name)


def create_parser(encoding: str | None) -> expat.XMLParserType:
    """A parser for :class:`Handlers`; ``encoding`` overrules what documents declare."""
    parser = expat.ParserCreate(encoding, _SEPARATOR)
    if hasattr(parser, "SetReparseDeferralEnabled"):  # from libexpat 2.6 on
        parser.SetReparseDeferralEnabled(False)  # callers who feed pieces take care of their sizes
    return parser


def warn_of_skipped(name: str, count: int, first_line: int) -> None:
    """Log that references to entities were left out of a document."""
    what = "%s: entities that the document does not declare itself were left out"
    log.warning(f"{what}: %d times, first in line %d", name or "a document", count, first_line)


class _Name(NamedTuple):
    """A name of the documents: its id, that of its prefix or -1, and what is projected of it."""

    id: int
    prefix: int
    is_text_projected: bool


def split_name(name: str) -> tuple[str, str, str | None]:
    r"""The parts of a name that expat spells ``local``, ``uri local`` or ``uri local prefix``.

    >>> split_name("urn:x\fa\fp"), split_name("urn:x\fa"), split_name("a")
    (('urn:x', 'a', 'p'), ('urn:x', 'a', None), ('', 'a', None))
    """
    match name.split(_SEPARATOR):
        case [namespace, local, prefix]:
            return namespace, local, prefix
        case [namespace, local]:
            return namespace, local, None
    return "", name, None


class Handlers:
    """The handlers of one document; made with a parser, and to be closed with it."""

    def __init__(
        self,
        owner: ExpatParser,
        parser: expat.XMLParserType,
        builder: BatchBuilder,
        document_bytes: int,
    ) -> None:
        self.owner = owner
        self.parser = parser
        self.builder = builder
        self.elements = owner.elements
        self.attributes = owner.attributes
        self.projection = projection = owner.projection
        self.has_details = projection.prefixes or projection.lines or projection.offsets
        self.limits = owner.limits
        self.first_event = len(builder.tags)
        self.depth = 0
        self.text_depth = 0  # of the outermost open element whose text is projected, or 0
        self.pieces: list[str] = []  # of the text node that is being read
        self.skipped = self.first_skipped_line = 0
        self.document_bytes = document_bytes
        self.counting = False
        self.produced = self.referring_entities = 0
        parser.ordered_attributes = parser.namespace_prefixes = True
        parser.XmlDeclHandler = self.read_declaration
        parser.StartDoctypeDeclHandler = self.start_doctype
        parser.EntityDeclHandler = self.declare_entity
        parser.SkippedEntityHandler = self.skip
        # Parameter entities of the internal subset are read, so that what follows them counts; the
        # external ones, and the external subset, are asked for and stand for nothing.
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_ALWAYS)
        parser.ExternalEntityRefHandler = self.skip_external
        if projection.text:
            parser.buffer_text = True
            parser.buffer_size = 1 << 16
        self.set_misc_handlers()

    def close(self) -> None:
        """Undo the cycles, which would keep the parser for a while."""
        del self.parser, self.on_start

    def handle_elements(
        self, start: Callable[[str, list[str]], None], end: Callable[[str], None]
    ) -> None:
        self.on_start = start
        self.parser.StartElementHandler = self.counted_start if self.counting else start
        self.parser.EndElementHandler = end

    def set_misc_handlers(self) -> None:
        # Comments and PIs divide text nodes, and may come from entities.
        if self.projection.text or self.projection.misc or self.counting:
            self.parser.CommentHandler = self.comment
            self.parser.ProcessingInstructionHandler = self.processing_instruction

    def start(self, name: str, attributes: list[str]) -> None:
        self.depth += 1
        problem = self.excess(self.depth, attributes)
        if problem:
            return self.refuse(problem)
        if self.pieces:
            self.end_text()
        found = self.elements.get(name) or self.intern_element(name)
        self.builder.tags.append(found.id)
        if found.is_text_projected and not self.text_depth:
            self.text_depth = self.depth
            self.set_text_handler()
        if self.has_details:
            self.add_details(found.prefix)
        if attributes and self.projection.attributes:
            self.start_attributes(attributes)

    def excess(self, depth: int, attributes: list[str]) -> str | None:
        """The message for an element that is too deep, or has too many attributes; else None."""
        limits = self.limits
        if depth > limits.depth:
            return f"deeper than the limit depth = {limits.depth:,}"
        most = limits.attributes
        if len(attributes) > 2 * most:
            return f"an element with more attributes than the limit attributes = {most:,}"
        return None

    def start_attributes(self, attributes: list[str]) -> None:
        builder = self.builder
        event = len(builder.tags) - 1
        for index in range(0, len(attributes), 2):
            name = attributes[index]
            if name not in self.attributes:
                self.intern_attribute(name)
            found = self.attributes[name]
            if found is None:
                continue
            builder.attribute_event.append(event)
            builder.attribute_name.append(found.id)
            if self.projection.prefixes:
                builder.attribute_prefixes.append(found.prefix)
            builder.attribute_values += attributes[index + 1].encode()
            builder.value_end.append(len(builder.attribute_values))

    def end(self, _name: str) -> None:
        if self.pieces:
            self.end_text()
        if self.depth == self.text_depth:
            self.text_depth = 0
            self.set_text_handler()
        self.depth -= 1
        self.builder.tags.append(-1)
        if self.has_details:
            self.add_details(-1)

    def add_details(self, prefix: int) -> None:
        builder = self.builder
        if self.projection.prefixes:
            builder.prefixes.append(prefix)
        if self.projection.lines:
            builder.lines.append(self.position()[0])
        if self.projection.offsets:
            builder.offsets.append(self.parser.CurrentByteIndex)

    def settle_offsets(self, data: bytes | bytearray | memoryview | mmap, origin: int = 0) -> None:
        """Move the offsets of end events, if they are projected: see ``settle_ends``."""
        if self.projection.offsets:
            settle_ends(self.builder.offsets, self.builder.tags, self.first_event, data, origin)

    def set_text_handler(self) -> None:
        """Take text only where it is projected: each call of a handler costs."""
        if not self.counting:
            self.parser.CharacterDataHandler = self.pieces.append if self.text_depth else None

    def end_text(self) -> None:
        builder = self.builder
        builder.text_event.append(len(builder.tags) - 1)
        builder.text_values += "".join(self.pieces).encode()
        builder.text_end.append(len(builder.text_values))
        self.pieces.clear()

    def comment(self, data: str) -> None:
        self.misc(-1, data)

    def processing_instruction(self, target: str, data: str) -> None:
        self.misc(self.owner.vocabulary.add("", target), data)

    def misc(self, name: int, data: str) -> None:
        if self.counting:
            self.count(EVENT_CHARS + len(data))
        if self.pieces:
            self.end_text()
        if not self.projection.misc:
            return
        builder = self.builder
        builder.misc_event.append(len(builder.tags) - 1)
        builder.misc_text.append(len(builder.text_event))
        builder.misc_name.append(name)
        builder.misc_values += data.encode()
        builder.misc_end.append(len(builder.misc_values))

    def intern_element(self, name: str) -> _Name:
        found = self.elements[name] = self.interned(*split_name(name))
        return found

    def intern_attribute(self, name: str) -> None:
        namespace, local, prefix = split_name(name)
        projected = (namespace, local) in self.projection.attributes
        self.attributes[name] = self.interned(namespace, local, prefix) if projected else None

    def interned(self, namespace: str, local: str, prefix: str | None) -> _Name:
        vocabulary = self.owner.vocabulary
        prefix_id = -1 if prefix is None else vocabulary.add_prefix(prefix)
        is_text_projected = (namespace, local) in self.projection.text
        return _Name(vocabulary.add(namespace, local), prefix_id, is_text_projected)

    def read_declaration(self, version: str | None, _encoding: str | None, _alone: int) -> None:
        if version is not None and not VERSION.fullmatch(version):
            message = f"the version of XML is declared as {version!r}, and is 1.0, or 1.x at most"
            raise MalformedDocument(message, *self.here())

    # -- DTD and entities ----------------------------------------------------------------------

    def start_doctype(self, *declared: Any) -> None:
        """Comments and PIs of the DTD are not of the document; what it declares may amplify."""
        parser = self.parser
        parser.CommentHandler = parser.ProcessingInstructionHandler = None
        parser.EndDoctypeDeclHandler = self.set_misc_handlers
        if declared[-1]:  # there is an internal subset
            self.counting = True
            parser.StartElementHandler = self.counted_start
            parser.CharacterDataHandler = self.counted_text

    def counted_start(self, name: str, attributes: list[str]) -> None:
        self.count(EVENT_CHARS + sum(map(len, attributes[1::2])))
        self.on_start(name, attributes)

    def counted_text(self, data: str) -> None:
        self.count(len(data))
        if self.text_depth:
            self.pieces.append(data)

    def count(self, produced: int) -> None:
        """Entities and attribute defaults may expand to so much and no more."""
        self.produced += produced
        limits = self.limits
        most = limits.entity_amplification
        if self.produced > max(limits.entity_free_chars, most * self.document_bytes):
            what = f"entities and defaults expand to more than {most} times the document"
            self.give_up(f"{what}: the limit entity_amplification")

    def skip(self, _name: str, is_parameter_entity: bool) -> None:
        if not is_parameter_entity:
            self.skip_reference()

    def skip_external(self, context: str | None, *_: object) -> int:
        """Leave an external entity out; ``context`` is None for those of the DTD."""
        if context is not None:
            self.skip_reference()
        return 1

    def skip_reference(self) -> None:
        if self.pieces:
            self.end_text()
        self.skipped += 1
        self.first_skipped_line = self.first_skipped_line or self.position()[0]

    def log_skipped(self, name: str) -> None:
        if self.skipped:
            warn_of_skipped(name, self.skipped, self.first_skipped_line)

    def declare_entity(
        self, _name: str, _is_parameter: bool, value: str | None, *_: object
    ) -> None:
        if value is None or not _REFERENCE.search(value):
            return
        self.referring_entities += 1
        most = self.limits.entity_references
        if self.referring_entities > most:
            what = "more entities that refer to entities than the limit entity_references"
            self.give_up(f"{what} = {most:,}")

    # -- errors --------------------------------------------------------------------------------

    def refuse(self, message: str) -> None:
        self.give_up(message)

    def give_up(self, message: str) -> NoReturn:
        raise DocumentLimitError(message, *self.here())

    def here(self) -> tuple[int, int, int | None]:
        """Line, column and offset of what expat is reading."""
        return *self.position(), self.offset(self.parser.CurrentByteIndex)

    def failure(
        self,
        error: expat.ExpatError,
        encoding: str | None,
        data: bytes | memoryview | mmap,
        start: int = 0,
    ) -> DocumentError:
        """The error of ours for one of expat; ``data`` was parsed last, and begins at ``start``."""
        index = self.parser.ErrorByteIndex
        position, offset = self.located(error.lineno, error.offset), self.offset(index)
        if error.code in _MAY_BE_ENCODING and index >= start and index > 0:
            problem = encoding_problem(bytes(data[index - start : index - start + 4]), encoding)
            if problem is not None:
                return errors.DocumentEncodingError(problem, *position, offset)
        message = self.explanation(error.code)
        if error.code == _INVALID_TOKEN:
            message = newer_name_problem(data, index - start) or message
        if error.code in _ENCODING:
            return errors.DocumentEncodingError(message, *position, offset)
        kind = DocumentLimitError if error.code == _AMPLIFICATION else MalformedDocument
        return kind(message, *position, offset)

    def position(self) -> tuple[int, int]:
        return self.located(self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber)

    def located(self, line: int, column: int) -> tuple[int, int]:
        """Line and column, from 1; expat's columns are from 0."""
        return line, column + 1

    def offset(self, index: int) -> int | None:
        """The offset; expat's is -1 where it does not know."""
        return index if index >= 0 else None

    def explanation(self, code: int) -> str:
        """Explain an error code: expat's message, and the element that is open where that helps."""
        message = expat.ErrorString(code) or f"expat error {code}"
        if code == _SYNTAX:
            return f"no markup where it must begin: {message}"
        if code == _JUNK:
            divider = "tamis.documents.concatenated.split()"
            return f"{message}: documents one after the other are what {divider} divides"
        if code == _AMPLIFICATION:
            return "entities expand to more than expat's own limit on amplification"
        name = self.innermost() if code in (*_UNFINISHED, _MISMATCHED_TAG) else None
        if name is None:
            return message
        if code == _MISMATCHED_TAG:
            return f"{message}: <{name}> is open"
        return f"the document ends inside <{name}>: {message}"

    def innermost(self) -> str | None:
        closed = 0
        for tag in reversed(self.builder.tags[self.first_event :]):
            if tag < 0:
                closed += 1
            elif closed:
                closed -= 1
            else:
                return self.owner.vocabulary.expanded(tag)[1]
        return None
