"""The part of a stream that is in memory, for the kernels to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np

from tamis.core.errors import DocumentError
from tamis.documents.offsets import Excerpt
from tamis.documents.record_batch import StreamPlace
from tamis.documents.streams import CHUNK_BYTES
from tamis.documents.tokenizer.kernels import layout
from tamis.documents.tokenizer.kernels.characters import NEWLINE
from tamis.documents.tokenizer.kernels.lines import pass_over

READ_BYTES = 4 << 20
"""What is read before it is looked at, if it comes in full chunks."""


class Window:
    """Some bytes of a stream in memory that is used again and again; and where in it they stand.

    Args:
        chunks: of the stream, of any size.
        start: where they begin.
        must_be_ascii: what is not is left to libexpat.

    Attributes:
        data: uint8, read-only; the bytes, with ``PADDING`` of NUL behind them.
        start: where in the stream the first byte stands.
        end: how many bytes there are.
        is_final: nothing follows them.
        is_paused: reading on may have to wait.
        is_stuck: nothing more is to be read here: what follows is an error, or not ASCII.
    """

    def __init__(
        self, chunks: Iterable[bytes | memoryview], start: StreamPlace, must_be_ascii: bool
    ) -> None:
        self.end = 0
        self.is_final = False
        self.is_paused = False
        self.is_stuck = False
        self._chunks = _sliced(chunks)
        self._must_be_ascii = must_be_ascii
        self.start = start.offset
        self._lines = np.array([start.line, start.column, 0])  # see pass_over
        self._counted = 0  # up to where
        self._line = start.line  # of the first byte
        self._provide(READ_BYTES)

    def read(self, start: int, wanted: int) -> None:
        """Forget what is before a place, and read on, up to where the stream pauses.

        Args:
            wanted: how many bytes to have then.
        """
        self._line = self.place(start).line
        self._slide(start, wanted)
        self.is_paused = False
        while self.end < wanted and not (self.is_final or self.is_stuck or self.is_paused):
            chunk = self._next()
            self._memory[self.end : self.end + len(chunk)] = np.frombuffer(chunk, np.uint8)
            self.end += len(chunk)
        self._memory[self.end : self.end + layout.PADDING] = 0

    def place(self, at: int, record: int = 0) -> StreamPlace:
        """Where in the stream a place in the window is; later calls may not go back."""
        pass_over(self.data, self._counted, at, self._lines)
        self._counted = at
        line, column, is_after_return = self._lines.tolist()
        if is_after_return and self.data[at] == NEWLINE:  # whoever goes on counts it
            line -= 1
        return StreamPlace(record, self.start + at, line, column)

    def line(self, at: int) -> int:
        """The line of a place in the window."""
        (line,) = (
            Excerpt(self.data[: self.end].data, line=self._line).lines(np.array([at])).tolist()
        )
        return int(line)

    def excerpt(self, start: int, end: int) -> Excerpt:
        """A copy of the bytes between two places."""
        data = self.data[start:end].tobytes()  # of records that need no DTD to be read
        return Excerpt(data, start=self.start + start, line=self.line(start), head=b"")

    def rest(self, start: int) -> Iterator[bytes | memoryview]:
        """The stream from a place on, for another reader; this one is then done."""
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
        if chunk is None:
            self.is_final = True
            return b""
        if self._must_be_ascii and not bytes(chunk).isascii():
            self.is_stuck = True
            self._chunks = chain([chunk], self._chunks)
            return b""
        self.is_paused = not chunk
        return chunk

    def _slide(self, start: int, wanted: int) -> None:
        kept = self.data[start : self.end]
        room = max(wanted, len(kept)) + CHUNK_BYTES + layout.PADDING
        if not room <= len(self._memory) <= 4 * room:
            self._provide(max(wanted, len(kept)))
        self._memory[: len(kept)] = kept
        self.end = len(kept)
        self.start += start
        self._counted -= start

    def _provide(self, size: int) -> None:
        self._memory = np.empty(size + CHUNK_BYTES + layout.PADDING, np.uint8)
        self._memory[: layout.PADDING] = 0
        self.data = self._memory[:]
        self.data.flags.writeable = False


def _sliced(chunks: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    for chunk in chunks:
        for start in range(0, len(chunk) or 1, CHUNK_BYTES):
            yield chunk[start : start + CHUNK_BYTES]


def _failing(error: DocumentError) -> Iterator[bytes]:
    yield from ()
    raise error
