"""Records, read by the kernels as far as they go, and then by libexpat."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import chain

import numpy as np

from tamis.core.arrays import Bytes, Int64, freeze
from tamis.core.errors import DocumentError, DocumentLimitError
from tamis.core.threads import Flush
from tamis.documents import expat, record_batch
from tamis.documents.batch import only
from tamis.documents.expat_records import SMALL_BYTES, ExpatRecords
from tamis.documents.offsets import Excerpt
from tamis.documents.record_batch import RecordBatch, RecordOffsets, RecordParser, StreamPosition
from tamis.documents.source import CHUNK_BYTES, too_large
from tamis.documents.tokenizer.kernels import layout as at
from tamis.documents.tokenizer.kernels.lookup import pass_over
from tamis.documents.tokenizer.kernels.scan import begin_stream
from tamis.documents.tokenizer.scanner import PADDING, NameTable, Scanner, declaration_of

READ_BYTES = 4 << 20
"""The bytes that are read before they are parsed, unless the stream pauses."""
LOOKAHEAD = 8 << 20
"""The bytes that must follow an offset before libexpat takes over there, unless the stream ends.
With fewer bytes, the kernels may have declined markup that is only cut off.
"""
_HEAD_BYTES = 1 << 10
_ZERO, _NO_BYTES = np.zeros(1, np.int64), np.zeros(1, np.uint8)


class TokenizedRecords(RecordParser):
    """A :class:`RecordParser` that leaves to libexpat only what the kernels decline."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.next_record = self.start.record
        self.skipped = 0
        self.first_skipped_line = 0
        self.is_standalone = False
        self.doctype = b""
        self.is_done = False
        self.expat: ExpatRecords | None = None  # where it took over

    def parse(
        self, chunks: Iterable[bytes | memoryview], *, is_all: bool = True
    ) -> Generator[RecordBatch | Flush, None, None]:
        window = Window(chunks, self.start, self.encoding in ("us-ascii", "iso-8859-1"))
        rest = 0
        if self._begin(self.context) and (self.context or self._begin_document(window)):
            yield from self._batches(window, is_all)
            if self.is_done:
                return
            rest = self._position
            self.expat = self._libexpat_from(window)
        else:
            self.expat = self._libexpat(self.context, self.start)
        yield from self.expat.parse(window.rest(rest), is_all=is_all)

    def _libexpat(self, context: bytes, position: StreamPosition) -> ExpatRecords:
        known = self.tag, self.vocabulary, self.projection, self.limits, self.encoding
        return ExpatRecords(*known, context, position)

    def _libexpat_from(self, window: Window) -> ExpatRecords:
        context = self._context()
        position = window.position(self._position, self.next_record)
        if position.offset and not context:  # what follows is not the begin of a document
            context = record_batch.head_of(b"", self.is_standalone) or b"\n"
        return self._libexpat(context, position)

    def log_skipped(self, name: str) -> None:
        count, line = self.skipped, self.first_skipped_line
        if self.expat is not None:
            count += self.expat.handlers.skipped
            line = line or self.expat.handlers.first_skipped_line
        if count:
            expat.warn_of_skipped(name, count, line)

    # -- beginning -----------------------------------------------------------------------------

    def _begin(self, context: bytes) -> bool:
        """Read a context, with a new table of names; False if libexpat has to."""
        names = NameTable(self.vocabulary.fork(), self.projection, self.record)
        self.scanner = Scanner(names, self.projection, self.limits)
        self._forget_contexts()
        self.begun_at = -1
        declaration = declaration_of(context, "utf-8")
        if declaration is None:
            return False
        self.is_standalone = self.is_standalone or declaration.is_standalone
        state = self.scanner.state
        state[at.IN_RECORDS] = 1
        state[at.WITH_NAMESPACE] = self.record.namespace is not None
        state[at.IS_FINAL] = 0
        state[at.RECORDS_MAX] = record_batch.BATCH_RECORDS
        state[at.EVENTS_MAX] = record_batch.BATCH_BYTES // 4
        begin_stream(state, declaration.end)
        status = self._scan(np.frombuffer(context + PADDING, np.uint8), len(context))
        self._position = 0
        return status == at.MORE

    def _begin_document(self, window: Window) -> bool:
        """Read the XML declaration, if there is one; False if libexpat has to."""
        head = b""
        while not (window.is_final or window.is_stuck):
            window.read(0, READ_BYTES)
            head = window.data[: min(window.end, _HEAD_BYTES)].tobytes()
            if head[:5] != b"<?xml"[: len(head)] or b"?>" in head or len(head) == _HEAD_BYTES:
                break
        declaration = declaration_of(head, self.encoding)
        if declaration is None:
            return False
        self.is_standalone = declaration.is_standalone
        self._position = declaration.end
        return True

    @property
    def _position(self) -> int:
        """The offset in the window up to which everything is settled."""
        return int(self.scanner.state[at.POSITION])

    @_position.setter
    def _position(self, offset: int) -> None:
        self.scanner.state[at.POSITION] = offset

    # -- reading -------------------------------------------------------------------------------

    def _batches(self, window: Window, is_all: bool) -> Iterator[RecordBatch | Flush]:
        """The records, as long as the kernels go on."""
        state = self.scanner.state
        while True:
            state[at.IS_FINAL] = window.is_final and is_all
            before = self._saved()
            status = self._scan(window.data, window.end)
            if status == at.DECLINE and state[at.IS_FAULTY]:
                self._restore(before)  # what is no character may be in a tag that was read
                return
            self._count_skipped(window)
            if state[at.DOCUMENTS]:
                yield self._batch(window)
            is_at_end = window.is_final and self._position == window.end
            if status == at.DONE or (is_at_end and not is_all):
                self.is_done = True
                return
            if self.scanner.names.is_full and window.start + self._position > self.begun_at:
                self._begin_anew(window)
                state = self.scanner.state
            elif status in (at.MORE, at.DECLINE) and not (yield from self._read_on(window, status)):
                return

    def _scan(self, data: Bytes, end: int) -> int:
        """Read records from where the state is, into an empty batch: why it stops."""
        if len(self.contexts) == at.CONTEXTS_MAX:
            self._forget_contexts()
        self.scanner.provide(end - self._position + at.PADDING, record_batch.BATCH_RECORDS)
        parts = at.Parts(_ZERO, _ZERO, np.array([end]), _NO_BYTES)
        state = self.scanner.state
        at.register_text(state, at.Text(data, data[:0], 0, len(data), 0, parts))
        state[at.IS_STANDALONE] = self.is_standalone
        while True:
            status = self.scanner.run(data)
            if state[at.HAS_DOCTYPE] and not self.doctype:
                found = slice(state[at.DOCTYPE_FROM], state[at.DOCTYPE_TO])
                self.doctype = data[found].tobytes()
            if status != at.NEW_CONTEXT or len(self.contexts) == at.CONTEXTS_MAX:
                return status
            self._add_context()

    def _saved(self) -> tuple[Int64, Int64, bytes]:
        """Where the kernels are, to go back to."""
        state = self.scanner.state
        stack = self.scanner.work.stack[: int(state[at.DEPTH]) + 1]
        return state.copy(), stack.copy(), self.doctype

    def _restore(self, saved: tuple[Int64, Int64, bytes]) -> None:
        self.scanner.state[:], stack, self.doctype = saved
        self.scanner.work.stack[: len(stack)] = stack

    def _read_on(self, window: Window, status: int) -> Generator[RecordBatch | Flush, None, bool]:
        """Read more of the stream; False if the kernels cannot go on with that."""
        settled = int(self.scanner.state[at.STOPPED_AT]) - self._position
        while True:
            unread = window.end - self._position
            ahead = unread - settled
            if (
                window.is_final
                or window.is_stuck
                or unread > self.limits.document_bytes + LOOKAHEAD
                or (status == at.DECLINE and ahead > LOOKAHEAD)
            ):
                return False
            if window.is_paused:
                if status == at.DECLINE and self._is_readable(window):
                    return False
                yield Flush.FLUSH
            # A record, or a tag, is read anew each time, so that must be in growing steps.
            window.read(self._position, max(READ_BYTES, 2 * unread))
            self._position = 0
            name = self.record.name.encode()
            end_tag = b"</" + name if self.record.namespace is None else name
            added = window.data[max(0, unread - len(end_tag)) : window.end]
            if not window.is_paused or unread <= SMALL_BYTES or end_tag in added.tobytes():
                return True

    def _is_readable(self, window: Window) -> bool:
        """Whether libexpat finds a record or an error in what the kernels declined.

        Otherwise the markup is only cut off.
        """
        piece = window.data[self._position : window.end].tobytes()
        found = self._libexpat_from(window).parse([piece, b""])
        return next(found) is not Flush.FLUSH

    def _begin_anew(self, window: Window) -> None:
        position = self._position
        is_read = self._begin(self._context())
        assert is_read, "it was read before"
        self._position = position
        self.begun_at = window.start + position

    # -- what was read -------------------------------------------------------------------------

    def _batch(self, window: Window) -> RecordBatch:
        output = self.scanner.output
        count = int(self.scanner.state[at.DOCUMENTS])
        starts = output.record_starts[:count] + window.start
        ends = output.record_ends[:count] + window.start
        context = output.record_contexts[:count]
        freeze(starts, ends, context)
        start = window.position(int(output.record_starts[0]), self.next_record)
        offsets = RecordOffsets(
            self.next_record, starts, ends, context, tuple(self.contexts), start
        )
        self.next_record += count
        is_large = ends - starts > self.limits.document_bytes
        batch = only(self.scanner.batch(), ~is_large)
        errors: dict[int, DocumentError] = {
            number: DocumentLimitError(too_large(self.limits))
            for number in np.flatnonzero(is_large).tolist()
        }
        excerpt = None
        if self.projection.offsets:
            batch = batch._replace(offsets=batch.offsets + window.start)
            freeze(batch.offsets)
            first, last = int(output.record_starts[0]), int(output.record_ends[count - 1])
            data = window.data[first:last].tobytes()  # of records that need no DTD to be read
            line = window.line(first)
            excerpt = Excerpt(data, start=window.start + first, line=line, head=b"")
        return RecordBatch(batch, errors, self.scanner.names.vocabulary, offsets, None, excerpt)

    def _count_skipped(self, window: Window) -> None:
        state = self.scanner.state
        if state[at.SKIPPED]:
            if not self.skipped:
                self.first_skipped_line = window.line(int(state[at.FIRST_SKIPPED]))
            self.skipped += int(state[at.SKIPPED])
            state[at.SKIPPED] = 0

    # -- contexts ------------------------------------------------------------------------------

    def _forget_contexts(self) -> None:
        self.contexts: list[bytes] = []
        self.scanner.state[[at.CONTEXTS, at.CONTEXT]] = 0

    def _add_context(self) -> None:
        """Have the kernels know the context of the record that begins."""
        state = self.scanner.state
        depth = int(state[at.DEPTH])
        rows = self.scanner.output.contexts.reshape(at.CONTEXTS_MAX, -1)
        row = rows[len(self.contexts)]
        row[at.CONTEXT_DEPTH] = depth
        row[at.CONTEXT_SCOPE] = state[at.CURRENT_SCOPE]
        row[at.CONTEXT_STACK :][:depth] = self.scanner.work.stack[1 : depth + 1]
        self.contexts.append(self._context())
        state[at.CONTEXTS] = len(self.contexts)

    def _context(self) -> bytes:
        """What is open where the state is, to be read before what follows."""
        state, names = self.scanner.state, self.scanner.names
        depth = int(state[at.DEPTH])
        entries = self.scanner.work.stack[1 : depth + 1].tolist()
        scopes = [entry >> 32 for entry in entries] + [int(state[at.CURRENT_SCOPE])]
        tags = [
            record_batch.start_tag(
                names.name(entry & 0xFFFFFFFF).decode(),
                names.declared[inside].items() if inside != outside else (),
            )
            for entry, outside, inside in zip(entries, scopes, scopes[1:], strict=False)
        ]
        if state[at.ROOT] == at.ROOT_IS_CLOSED:
            tags.append(b"<b/>" if self.record.name == "a" else b"<a/>")
        head = record_batch.head_of(self.doctype, self.is_standalone) if self.doctype else b""
        return head + b"".join(tags)


class Window:
    """Some bytes of a stream in memory that is used again and again; and where in it they stand.

    Where they ``must_be_ascii``, what is not is left to libexpat.

    Attributes:
        data: uint8, read-only; the bytes, with ``PADDING`` of NUL behind them.
        start: where in the stream the first byte stands.
        end: how many bytes there are.
        is_final: nothing follows them.
        is_paused: reading on may have to wait.
        is_stuck: nothing more is to be read here: what follows is an error, or not ASCII.
    """

    def __init__(
        self, chunks: Iterable[bytes | memoryview], start: StreamPosition, must_be_ascii: bool
    ) -> None:
        self.end = 0
        self.is_final = self.is_paused = self.is_stuck = False
        self._chunks = _sliced(chunks)
        self._must_be_ascii = must_be_ascii
        self.start = start.offset
        self._lines = np.array([start.line, start.column, 0])  # see pass_over
        self._counted = 0  # up to where
        self._line = start.line  # of the first byte
        self._provide(READ_BYTES)

    def read(self, start: int, wanted: int) -> None:
        """Forget what is before an offset, and read on to have ``wanted`` bytes, or to a pause."""
        self._line = self.position(start).line
        unread = self.data[start : self.end]
        size = max(wanted, len(unread))
        room = size + CHUNK_BYTES + at.PADDING
        if not room <= len(self._memory) <= 4 * room:
            self._provide(size)
        self._memory[: len(unread)] = unread
        self.end = len(unread)
        self.start += start
        self._counted -= start
        self.is_paused = False
        while self.end < wanted and not (self.is_final or self.is_stuck or self.is_paused):
            chunk = self._next()
            self._memory[self.end : self.end + len(chunk)] = np.frombuffer(chunk, np.uint8)
            self.end += len(chunk)
        self._memory[self.end : self.end + at.PADDING] = 0

    def position(self, offset: int, record: int = 0) -> StreamPosition:
        """Where in the stream an offset in the window is; later calls may not go back."""
        pass_over(self.data, self._counted, offset, self._lines)
        self._counted = offset
        line, column, is_after_return = self._lines.tolist()
        if is_after_return and self.data[offset] == at.NEWLINE:  # whoever goes on counts it
            line -= 1
        return StreamPosition(record, self.start + offset, line, column)

    def line(self, offset: int) -> int:
        """The line of an offset in the window."""
        excerpt = Excerpt(self.data[: self.end].data, line=self._line)
        return int(excerpt.lines(np.array([offset]))[0])

    def rest(self, start: int) -> Iterator[bytes | memoryview]:
        """The stream from an offset on, for another reader; this one is then done."""
        unread = self.data[start : self.end].tobytes()
        pause = [b""] if self.is_paused else []
        return chain([unread] if unread else [], pause, self._chunks)

    def _next(self) -> bytes | memoryview:
        """The next chunk, empty if there is none, or none yet."""
        try:
            chunk = next(self._chunks, None)
        except DocumentError as error:
            self.is_stuck = True
            self._chunks = _failing(error)
            return b""
        if chunk is not None and self._must_be_ascii and not bytes(chunk).isascii():
            self.is_stuck = True
            self._chunks = chain([chunk], self._chunks)
            return b""
        self.is_final, self.is_paused = chunk is None, chunk == b""
        return chunk or b""

    def _provide(self, size: int) -> None:
        self._memory = np.empty(size + CHUNK_BYTES + at.PADDING, np.uint8)
        self._memory[: at.PADDING] = 0
        self.data = self._memory[:]
        self.data.flags.writeable = False


def _sliced(chunks: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    for chunk in chunks:
        for start in range(0, len(chunk) or 1, CHUNK_BYTES):
            yield chunk[start : start + CHUNK_BYTES]


def _failing(error: DocumentError) -> Iterator[bytes]:
    yield from ()
    raise error
