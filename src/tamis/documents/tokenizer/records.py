"""Records, read by the kernels as far as they go, and then by libexpat."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator

import numpy as np

from tamis.core.arrays import freeze
from tamis.core.errors import DocumentError, DocumentLimitError
from tamis.core.limits import Limits
from tamis.core.threads import Flush
from tamis.documents import expat, record_batch
from tamis.documents.batch import BatchBuilder, DocumentBatch, interleaved
from tamis.documents.expat_records import (
    SMALL_BYTES,
    ExpatRecords,
    head_of,
    start_tag,
    too_large,
)
from tamis.documents.projection import Projection
from tamis.documents.record_batch import RecordBatch, RecordPlaces, StreamPlace
from tamis.documents.tokenizer.kernels import layout
from tamis.documents.tokenizer.kernels.spans import begin_stream
from tamis.documents.tokenizer.names import NameTable
from tamis.documents.tokenizer.scanner import PADDING, Scanner, declaration_of
from tamis.documents.tokenizer.window import READ_BYTES, Window
from tamis.documents.vocabulary import Vocabulary

LOOKAHEAD = 8 << 20
"""What has to follow a place that the kernels decline, unless the stream ends: before that, what
is there may just be cut off.
"""

_HEAD_BYTES = 1 << 10
_ZERO = np.zeros(1, np.int64)
_NO_BYTES = np.zeros(1, np.uint8)


class TokenizedRecords:
    """A :class:`RecordParser` that leaves to libexpat only what the kernels decline."""

    def __init__(
        self,
        tag: str,
        vocabulary: Vocabulary,
        projection: Projection,
        limits: Limits,
        *,
        encoding: str | None = None,
        context: bytes = b"",
        start: StreamPlace = StreamPlace(),  # noqa: B008 - it is immutable
    ) -> None:
        self.tag = tag
        self.vocabulary = vocabulary
        self.projection = projection
        self.limits = limits
        self.encoding = encoding
        self.context = context
        self.start = start
        self.next_record = start.record
        self.skipped = 0
        self.first_skipped_line = 0
        self.is_standalone = False
        self.doctype = b""
        self.is_done = False
        self.expat: ExpatRecords | None = None  # where it took over

    def parse(
        self, chunks: Iterable[bytes | memoryview], *, is_all: bool = True
    ) -> Generator[RecordBatch | Flush, None, None]:
        """See :meth:`RecordParser.parse`."""
        window = Window(chunks, self.start, self.encoding in ("us-ascii", "iso-8859-1"))
        self.expat = self._libexpat(self.context, self.start)
        rest = 0
        if self._begin(self.context) and (self.context or self._begin_document(window)):
            self.expat = None
            yield from self._batches(window, is_all)
            if self.is_done:
                return
            rest = self._position
            self.expat = self._libexpat_from(window)
        yield from self.expat.parse(window.rest(rest), is_all=is_all)

    def _libexpat(self, context: bytes, place: StreamPlace) -> ExpatRecords:
        return ExpatRecords(
            self.tag,
            self.vocabulary,
            self.projection,
            self.limits,
            encoding=self.encoding,
            context=context,
            start=place,
        )

    def _libexpat_from(self, window: Window) -> ExpatRecords:
        """A parser that goes on where the kernels are."""
        context = self._context()
        place = window.place(self._position, self.next_record)
        if place.offset and not context:  # what follows is not the begin of a document
            context = head_of(b"", self.is_standalone) or b"\n"
        return self._libexpat(context, place)

    def warn_of_skipped(self, name: str) -> None:
        """See :meth:`RecordParser.warn_of_skipped`."""
        count, line = self.skipped, self.first_skipped_line
        if self.expat is not None:
            count += self.expat.handlers.skipped
            line = line or self.expat.handlers.first_skipped_line
        if count:
            expat.log_skipped(name, count, line)

    # -- beginning -----------------------------------------------------------------------------

    def _begin(self, context: bytes) -> bool:
        """Read a context, with a new table of names; False if libexpat has to."""
        names = NameTable(self.vocabulary.fork(), self.projection, self.tag.encode())
        self.scanner = Scanner(names, self.projection, self.limits)
        self._forget_contexts()
        self.begun_at = -1
        declaration = declaration_of(context, "utf-8")
        if declaration is None:
            return False
        self.is_standalone = self.is_standalone or declaration.standalone
        state = self.scanner.state
        state[layout.IN_RECORDS] = 1
        state[layout.IS_FINAL] = 0
        state[layout.RECORDS_MAX] = record_batch.BATCH_RECORDS
        state[layout.EVENTS_MAX] = record_batch.BATCH_BYTES // 4
        begin_stream(state, declaration.end)
        status = self._scan(np.frombuffer(context + PADDING, np.uint8), len(context))
        self._position = 0
        return status == layout.MORE

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
        self.is_standalone = declaration.standalone
        self._position = declaration.end
        return True

    @property
    def _position(self) -> int:
        """The place in the window up to which everything is settled."""
        return int(self.scanner.state[layout.POSITION])

    @_position.setter
    def _position(self, place: int) -> None:
        self.scanner.state[layout.POSITION] = place

    # -- reading -------------------------------------------------------------------------------

    def _batches(self, window: Window, is_all: bool) -> Iterator[RecordBatch | Flush]:
        """The records, as long as the kernels go on."""
        state = self.scanner.state
        while True:
            state[layout.IS_FINAL] = window.is_final and is_all
            before = self._saved()
            status = self._scan(window.data, window.end)
            if status == layout.DECLINE and state[layout.IS_FAULTY]:
                self._restore(before)  # what is no character may be in a tag that was read
                return
            self._count_skipped(window)
            if state[layout.DOCUMENTS]:
                yield self._batch(window)
            is_at_end = window.is_final and self._position == window.end
            if status == layout.DONE or (is_at_end and not is_all):
                self.is_done = True
                return
            if self.scanner.names.is_full and window.start + self._position > self.begun_at:
                self._begin_anew(window)
                state = self.scanner.state
            elif status in (layout.MORE, layout.DECLINE):
                goes_on = yield from self._read_on(window, status)
                if not goes_on:
                    return

    def _scan(self, data: layout.Bytes, end: int) -> int:
        """Read records from where the state is, into an empty batch: why it stops."""
        if len(self.contexts) == layout.CONTEXTS_MAX:
            self._forget_contexts()
        self.scanner.provide(end - self._position + layout.PADDING, record_batch.BATCH_RECORDS)
        ends = np.array([end])
        parts = layout.Parts(_ZERO, _ZERO, ends, _NO_BYTES)
        text = layout.Text(data, data[:0], 0, len(data), 0, parts)
        state = self.scanner.state
        layout.register_text(state, text)
        state[layout.IS_STANDALONE] = self.is_standalone
        while True:
            status = self.scanner.run(data)
            if state[layout.HAS_DOCTYPE] and not self.doctype:
                place = slice(state[layout.DOCTYPE_FROM], state[layout.DOCTYPE_TO])
                self.doctype = data[place].tobytes()
            if status != layout.NEW_CONTEXT or len(self.contexts) == layout.CONTEXTS_MAX:
                return status
            self._add_context()

    def _saved(self) -> tuple[layout.Int64, layout.Int64, bytes]:
        """Where the kernels are, to go back to."""
        state = self.scanner.state
        stack = self.scanner.work.stack[: int(state[layout.DEPTH]) + 1]
        return state.copy(), stack.copy(), self.doctype

    def _restore(self, saved: tuple[layout.Int64, layout.Int64, bytes]) -> None:
        self.scanner.state[:], stack, self.doctype = saved
        self.scanner.work.stack[: len(stack)] = stack

    def _read_on(self, window: Window, status: int) -> Generator[RecordBatch | Flush, None, bool]:
        """Read more of the stream; False if the kernels cannot go on with that."""
        settled = int(self.scanner.state[layout.STOPPED_AT]) - self._position
        while True:
            unread = window.end - self._position
            ahead = unread - settled
            if (
                window.is_final
                or window.is_stuck
                or unread > self.limits.document_bytes + LOOKAHEAD
                or (status == layout.DECLINE and ahead > LOOKAHEAD)
            ):
                return False
            if window.is_paused:
                if status == layout.DECLINE and self._is_readable(window):
                    return False
                yield Flush.FLUSH
            # A record, or a tag, is read anew each time, so that must be in growing steps.
            window.read(self._position, max(READ_BYTES, 2 * unread))
            self._position = 0
            if not window.is_paused or unread <= SMALL_BYTES or self._may_end(window, unread):
                return True

    def _may_end(self, window: Window, start: int) -> bool:
        """Whether a record may end in what was read from a place on."""
        end_tag = b"</" + self.tag.encode()
        return end_tag in window.data[max(0, start - len(end_tag)) : window.end].tobytes()

    def _is_readable(self, window: Window) -> bool:
        """Whether libexpat finds a record, or an error, in what the kernels declined.

        Else that is just cut off.
        """
        piece = window.data[self._position : window.end].tobytes()
        found = self._libexpat_from(window).parse([piece, b""])
        return next(found) is not Flush.FLUSH

    def _begin_anew(self, window: Window) -> None:
        """Forget the names that were met."""
        position = self._position
        is_read = self._begin(self._context())
        assert is_read, "it was read before"
        self._position = position
        self.begun_at = window.start + position

    # -- what was read -------------------------------------------------------------------------

    def _batch(self, window: Window) -> RecordBatch:
        output = self.scanner.output
        count = int(self.scanner.state[layout.DOCUMENTS])
        starts = output.record_starts[:count] + window.start
        ends = output.record_ends[:count] + window.start
        context = output.record_contexts[:count]
        freeze(starts, ends, context)
        start = window.place(int(output.record_starts[0]), self.next_record)
        places = RecordPlaces(self.next_record, starts, ends, context, tuple(self.contexts), start)
        self.next_record += count
        batch = self.scanner.batch()
        large = np.flatnonzero(ends - starts > self.limits.document_bytes).tolist()
        if large:
            batch = interleaved(batch, _empty(len(large)), large)
        errors: dict[int, DocumentError] = {
            number: DocumentLimitError(too_large(self.limits)) for number in large
        }
        excerpt = None
        if self.projection.offsets:
            batch = batch._replace(offsets=batch.offsets + window.start)
            freeze(batch.offsets)
            first, last = int(output.record_starts[0]), int(output.record_ends[count - 1])
            excerpt = window.excerpt(first, last)
        return RecordBatch(batch, errors, self.scanner.names.vocabulary, places, None, excerpt)

    def _count_skipped(self, window: Window) -> None:
        state = self.scanner.state
        if state[layout.SKIPPED]:
            if not self.skipped:
                self.first_skipped_line = window.line(int(state[layout.FIRST_SKIPPED]))
            self.skipped += int(state[layout.SKIPPED])
            state[layout.SKIPPED] = 0

    # -- contexts ------------------------------------------------------------------------------

    def _forget_contexts(self) -> None:
        self.contexts: list[bytes] = []
        self.scanner.state[[layout.CONTEXTS, layout.CONTEXT]] = 0

    def _add_context(self) -> None:
        """Have the kernels know the context of the record that begins."""
        state = self.scanner.state
        depth = int(state[layout.DEPTH])
        rows = self.scanner.output.contexts.reshape(layout.CONTEXTS_MAX, -1)
        row = rows[len(self.contexts)]
        row[layout.CONTEXT_DEPTH] = depth
        row[layout.CONTEXT_SCOPE] = state[layout.CURRENT_SCOPE]
        row[layout.CONTEXT_STACK :][:depth] = self.scanner.work.stack[1 : depth + 1]
        self.contexts.append(self._context())
        state[layout.CONTEXTS] = len(self.contexts)

    def _context(self) -> bytes:
        """What is open where the state is, to be read before what follows."""
        state, names = self.scanner.state, self.scanner.names
        depth = int(state[layout.DEPTH])
        entries = self.scanner.work.stack[1 : depth + 1].tolist()
        scopes = [entry >> 32 for entry in entries] + [int(state[layout.CURRENT_SCOPE])]
        tags = [
            start_tag(
                names.name(entry & 0xFFFFFFFF).decode(),
                names.declared[inside].items() if inside != outside else (),
            )
            for entry, outside, inside in zip(entries, scopes, scopes[1:], strict=False)
        ]
        if state[layout.ROOT] == layout.ROOT_IS_CLOSED:
            tags.append(b"<b/>" if self.tag == "a" else b"<a/>")
        head = head_of(self.doctype, self.is_standalone) if self.doctype else b""
        return head + b"".join(tags)


def _empty(documents: int) -> DocumentBatch:
    builder = BatchBuilder()
    for _ in range(documents):
        builder.end_document()
    return builder.freeze()
