"""Records, read by libexpat: the trusted parser, which goes on where the tokenizer declines."""

from __future__ import annotations

import re
from array import array
from collections.abc import Generator, Iterable, Iterator
from itertools import chain, starmap
from typing import Any
from xml.parsers import expat

import numpy as np

from tamis.core.arrays import freeze
from tamis.core.errors import DocumentError, DocumentLimitError
from tamis.core.lazy import OR_NOTHING, lazy_pattern
from tamis.core.threads import Flush
from tamis.documents import record_batch
from tamis.documents.batch import BatchBuilder
from tamis.documents.encodings import LineCounter
from tamis.documents.expat import EVENT_CHARS, ExpatParser, Handlers, create_parser, split_name
from tamis.documents.offsets import COMMENT, PI, Excerpt
from tamis.documents.record_batch import RecordBatch, RecordOffsets, RecordParser, StreamPosition
from tamis.documents.source import CHUNK_BYTES, too_large

SMALL_BYTES = 1 << 18
"""Unfinished markup up to this size is parsed again at each pause; larger, if it may be whole."""

# Up to the DOCTYPE of a document that is known to be well-formed so far.
_BEFORE_DOCTYPE = lazy_pattern(
    rb"(?:[ \t\r\n]|" + PI + rb"|" + COMMENT + OR_NOTHING + rb")*+", re.DOTALL
)


class ExpatRecords(RecordParser):
    """A :class:`RecordParser` that is libexpat alone."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.recent = b"", 0  # what was parsed last, and where it begins
        self.parser = create_parser(self.encoding or ("utf-8" if self.context else None))
        self.handlers = _RecordHandlers(self)

    def parse(
        self, chunks: Iterable[bytes | memoryview], *, is_all: bool = True
    ) -> Generator[RecordBatch | Flush, None, None]:
        handlers = self.handlers
        try:
            for piece in self._pieces(chain([self.context] if self.context else [], chunks)):
                if piece:
                    self._feed(piece)
                else:
                    handlers.flush()
                yield from handlers.take_batches()
                if not piece:
                    yield Flush.FLUSH
            handlers.is_all_read = True
            if is_all:
                self.parser.Parse(b"", True)
            handlers.end_of_input()
        except expat.ExpatError as error:
            handlers.stop(handlers.failure(error, self.encoding, *self.recent))
        except DocumentError as error:
            handlers.stop(error)
        finally:
            handlers.close()
        yield from handlers.take_batches()

    def log_skipped(self, name: str) -> None:
        self.handlers.log_skipped(name)

    def _pieces(self, chunks: Iterable[bytes | memoryview]) -> Iterator[bytes]:
        """The chunks, in pieces that expat takes in linear time.

        It looks at an unfinished tag or comment anew each time that more of it comes, so that must
        be twice as much each time; or, where they pause, have what may end it. An empty piece
        stands where the chunks pause. An error of the chunks comes after what they gave before it.
        """
        waiting = bytearray()
        failure = None
        try:
            for chunk in chunks:
                for start in range(0, len(chunk), CHUNK_BYTES):
                    waiting += chunk[start : start + CHUNK_BYTES]
                    if len(waiting) >= self.handlers.unfinished:
                        yield bytes(waiting)
                        waiting.clear()
                if not chunk:
                    if waiting and (self.handlers.unfinished <= SMALL_BYTES or b">" in waiting):
                        yield bytes(waiting)
                        waiting.clear()
                    yield b""
        except DocumentError as error:
            failure = error
        if waiting:
            yield bytes(waiting)
        if failure is not None:
            raise failure

    def _feed(self, piece: bytes) -> None:
        handlers = self.handlers
        before = self.recent[0][-3:]  # a character may have begun there
        self.recent = before + piece, handlers.fed - len(before)
        handlers.fed += len(piece)
        if self.projection.offsets:
            handlers.retained += piece
        if handlers.prolog is not None:
            handlers.prolog += piece
        self.parser.Parse(piece, False)
        handlers.unfinished = handlers.fed - max(0, self.parser.CurrentByteIndex)
        handlers.trim_retained()
        handlers.check_sizes()


class _RecordHandlers(Handlers):
    """The handlers of a stream: outside of records, in one that is recorded, in one that is not.

    Offsets here are those of the parser, which has read the context first.
    """

    def __init__(self, stream: ExpatRecords) -> None:
        self.record, self.base = stream.record, stream.vocabulary
        self.stream_start = start = stream.start
        self.shift = start.offset - len(stream.context)  # from the parser's offsets to the stream's
        self.context_end = LineCounter()
        self.context_end.pass_over(stream.context.decode())
        self.fed = 0
        self.unfinished = 0  # the bytes that expat has of a token that is not complete
        self.is_all_read = self.is_standalone = self.is_inside = False
        self.is_refused = False  # the record that is being read
        self.is_ending = False  # its end tag was read, but where that ends is not known yet
        self.record_start = 0
        self.record_position = (1, 1)  # line and column
        self.lengths: dict[str, int] = {}  # of the builder, before the record
        self.prolog: bytearray | None = bytearray()  # until the root element begins
        self.retained = bytearray()  # what a batch has of the stream, where offsets are projected
        self.retained_from = 0
        self.first_position = start  # of the first record of the batch
        self.head = b""  # of contexts
        # Open elements: their names as written, and the namespaces that they declare.
        self.around: list[tuple[str, tuple[tuple[str | None, str | None], ...]]] = []
        self.declared: list[tuple[str | None, str | None]] = []  # by the next start tag
        self.record_context: bytes | None = None  # of the next record, while it is known
        self.counted_from = self.produced_before = 0
        self.batches: list[RecordBatch] = []
        owner = ExpatParser(stream.vocabulary, stream.projection, stream.limits)
        super().__init__(owner, stream.parser, BatchBuilder(), 0)
        self.next_record = start.record
        self.begin_batch()
        self.set_outside_handlers()

    # -- batches -------------------------------------------------------------------------------

    def begin_batch(self) -> None:
        self.owner = ExpatParser(self.base.fork(), self.projection, self.limits)
        self.elements, self.attributes = self.owner.elements, self.owner.attributes
        self.builder = BatchBuilder()
        self.errors: dict[int, DocumentError] = {}
        self.starts, self.ends, self.contexts = array("q"), array("q"), array("i")
        self.context_numbers: dict[bytes, int] = {}

    def cut_batch(self, stream_error: DocumentError | None = None) -> None:
        starts, ends = (np.array(each, np.int64) + self.shift for each in (self.starts, self.ends))
        contexts = np.array(self.contexts, dtype=np.int32)
        freeze(starts, ends, contexts)
        first = self.next_record - len(starts)
        texts = tuple(self.context_numbers)
        offsets = RecordOffsets(first, starts, ends, contexts, texts, self.first_position)
        batch = self.builder.freeze()
        excerpt = None
        if self.projection.offsets:
            last = max(self.ends[-1], *self.builder.offsets[-1:], 0)
            data = bytes(
                self.retained[self.starts[0] - self.retained_from : last - self.retained_from]
            )
            start, line = self.starts[0] + self.shift, self.first_position.line
            excerpt = Excerpt(data, start=start, line=line, head=self.head)
            batch = batch._replace(offsets=batch.offsets + self.shift)
            freeze(batch.offsets)
        self.batches.append(
            RecordBatch(batch, self.errors, self.owner.vocabulary, offsets, stream_error, excerpt)
        )
        self.begin_batch()

    def flush(self) -> None:
        """Have all complete records in batches; reading on may have to wait."""
        self.end_record()
        if self.is_inside and len(self.starts) > 1:
            self.cut_before_record()
        elif self.starts and not self.is_inside:
            self.cut_batch()

    def cut_before_record(self) -> None:
        """End the batch before the record that is being read, which the next one begins with."""
        owner = self.owner
        start = self.starts.pop()
        self.contexts.pop()
        refusal = self.errors.pop(len(self.starts), None)
        if refusal is not None:  # the builder has it as a document without events
            del self.builder.document_starts[-1], self.builder.misc_starts[-1]
        rest = self.builder.split(self.lengths)
        self.cut_batch()
        self.owner, self.builder = owner, rest
        self.elements, self.attributes = owner.elements, owner.attributes
        self.lengths = BatchBuilder().lengths()
        self.first_event = 0
        self.register_record(start)
        if refusal is not None:
            self.errors[0] = refusal
            rest.end_document()

    def trim_retained(self) -> None:
        if self.projection.offsets:
            needed = self.starts[0] if self.starts else self.parser.CurrentByteIndex
            if needed > self.retained_from:
                del self.retained[: needed - self.retained_from]
                self.retained_from = needed

    def take_batches(self) -> list[RecordBatch]:
        batches, self.batches = self.batches, []
        return batches

    # -- outside of records --------------------------------------------------------------------

    def set_outside_handlers(self) -> None:
        self.handle_elements(self.start_outside, self.end_outside)
        self.parser.StartNamespaceDeclHandler = self.declare_namespace
        self.set_misc_handlers()

    def set_misc_handlers(self) -> None:
        if self.is_inside or self.counting:
            super().set_misc_handlers()
        else:
            self.parser.CommentHandler = self.parser.ProcessingInstructionHandler = None

    def declare_namespace(self, prefix: str | None, uri: str | None) -> None:
        self.end_record()
        self.declared.append((prefix, uri))

    def start_outside(self, name: str, attributes: list[str]) -> None:
        self.end_record()
        self.prolog = None
        namespace, local, prefix = split_name(name)
        qualified = f"{prefix}:{local}" if prefix else local
        if self.record in ((None, qualified), (namespace, local)):
            self.start_record(name, attributes)
            return
        problem = self.excess(len(self.around) + 1, attributes)
        if problem:
            self.give_up(problem)
        self.around.append((qualified, tuple(self.declared)))
        self.declared.clear()
        self.record_context = None

    def end_outside(self, _name: str) -> None:
        self.end_record()
        self.around.pop()
        self.record_context = None

    # -- records -------------------------------------------------------------------------------

    def start_record(self, name: str, attributes: list[str]) -> None:
        self.is_inside = True
        self.is_refused = False
        self.record_start = self.parser.CurrentByteIndex
        self.record_position = self.position()
        self.register_record(self.record_start)
        self.declared.clear()
        self.lengths = self.builder.lengths()
        self.first_event = len(self.builder.tags)
        self.depth = 0
        self.count_from_here()
        self.parser.StartNamespaceDeclHandler = None
        self.parser.buffer_text = bool(self.projection.text)
        self.handle_elements(self.start, self.end)
        self.set_misc_handlers()
        self.start(name, attributes)

    def register_record(self, start: int) -> None:
        """Register a record: where it starts, and its context."""
        if self.record_context is None:
            self.record_context = self.head + b"".join(starmap(record_batch.start_tag, self.around))
        if not self.starts:
            position = start + self.shift, *self.record_position
            self.first_position = StreamPosition(self.next_record, *position)
        self.starts.append(start)
        numbers = self.context_numbers
        self.contexts.append(numbers.setdefault(self.record_context, len(numbers)))

    def end(self, name: str) -> None:
        super().end(name)
        if self.depth == 0:
            self.leave_record()

    def leave_record(self) -> None:
        """After its end tag; where that ends is known when expat comes to what follows it."""
        self.is_inside = False
        self.is_ending = True
        self.set_outside_handlers()
        self.parser.buffer_text = False  # or it would be told of too late
        self.parser.DefaultHandlerExpand = lambda _data: self.end_record()
        if not self.counting:
            self.parser.CharacterDataHandler = self.parser.DefaultHandlerExpand

    def end_record(self, end: int | None = None) -> None:
        """If a record is ending, it does so at ``end``, or at what expat is reading now."""
        if not self.is_ending:
            return
        self.is_ending = False
        self.parser.DefaultHandlerExpand = None
        self.set_text_handler()
        end = self.parser.CurrentByteIndex if end is None else end
        if not self.is_refused and end - self.record_start > self.limits.document_bytes:
            self.drop_record(DocumentLimitError(too_large(self.limits)))
        if not self.is_refused:
            self.settle_offsets(self.retained, self.retained_from)
            self.builder.end_document()
        self.ends.append(end)
        self.next_record += 1
        self.count_from_here()
        is_long = end - self.starts[0] >= record_batch.BATCH_BYTES
        if is_long or len(self.starts) >= record_batch.BATCH_RECORDS:
            self.cut_batch()

    def refuse(self, message: str) -> None:
        self.drop_record(DocumentLimitError(message, *self.here()))

    def drop_record(self, error: DocumentError) -> None:
        """The record that is being read is in error; it is read to its end, for the others."""
        self.errors[len(self.starts) - 1] = error
        if self.is_refused:
            return
        self.is_refused = True
        self.builder.drop_document(self.lengths)
        self.pieces.clear()
        self.text_depth = 0
        self.set_text_handler()
        if self.is_inside:
            self.handle_elements(self.start_refused, self.end_refused)

    def start_refused(self, _name: str, _attributes: list[str]) -> None:
        self.depth += 1

    def end_refused(self, _name: str) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.leave_record()

    def misc(self, name: int, data: str) -> None:
        if self.is_inside and not self.is_refused:
            super().misc(name, data)
            return
        self.end_record()
        if self.counting:
            self.count(EVENT_CHARS + len(data))

    def check_sizes(self) -> None:
        """Between pieces, what is being read may have become too large to go on with."""
        if self.unfinished > self.limits.document_bytes:
            self.give_up(f"a tag, a comment or the like is {too_large(self.limits)}")
        if self.prolog is not None and len(self.prolog) > self.limits.document_bytes:
            self.give_up(f"what stands before the root element is {too_large(self.limits)}")
        if self.is_inside and self.fed - self.record_start > self.limits.document_bytes:
            self.drop_record(DocumentLimitError(too_large(self.limits)))

    def start_doctype(self, *declared: Any) -> None:
        super().start_doctype(*declared)
        self.parser.EndDoctypeDeclHandler = self.end_doctype

    def end_doctype(self) -> None:
        assert self.prolog is not None
        before = _BEFORE_DOCTYPE.match(self.prolog)
        assert before is not None
        doctype = self.prolog[before.end() : self.parser.CurrentByteIndex + 1]
        self.head = record_batch.head_of(bytes(doctype), self.is_standalone)
        self.set_misc_handlers()

    def read_declaration(self, version: str | None, encoding: str | None, standalone: int) -> None:
        super().read_declaration(version, encoding, standalone)
        self.is_standalone = standalone == 1

    def counted_text(self, data: str) -> None:
        self.end_record()
        super().counted_text(data)

    def skip_reference(self) -> None:
        self.end_record()
        super().skip_reference()

    def count_from_here(self) -> None:
        """What entities may expand to is counted for each record, and for the whole stream."""
        if self.counting:
            self.produced_before += self.produced
            self.produced = 0
            self.counted_from = self.parser.CurrentByteIndex

    def count(self, produced: int) -> None:
        offset = self.parser.CurrentByteIndex
        self.document_bytes = offset - self.counted_from
        super().count(produced)
        own, self.produced = self.produced, self.produced + self.produced_before
        self.document_bytes = offset
        super().count(0)
        self.produced = own

    def end_of_input(self) -> None:
        self.end_record(self.fed)
        if self.starts:
            self.cut_batch()

    def stop(self, error: DocumentError) -> None:
        offset = max(0, self.parser.ErrorByteIndex)
        if not self.is_all_read:
            message = f"{error.message}{record_batch.NOT_READ}"
            error = type(error)(message, error.line, error.column, error.offset)
        self.end_record(offset)
        if self.is_inside:
            self.drop_record(error)
        else:
            self.record_position = self.position()
            self.register_record(offset)
            self.errors[len(self.starts) - 1] = error
            self.builder.end_document()
        self.ends.append(offset)
        self.next_record += 1
        self.cut_batch(error)

    def located(self, line: int, column: int) -> tuple[int, int]:
        end, start = self.context_end, self.stream_start
        if line == end.line:
            column += start.column - end.column
        return line - end.line + start.line, column + 1

    def offset(self, index: int) -> int | None:
        return index + self.shift if index >= 0 else None

    def innermost(self) -> str | None:
        if self.is_inside:
            return super().innermost() or self.record.name.rpartition(":")[2]
        return self.around[-1][0].rpartition(":")[2] if self.around else None
