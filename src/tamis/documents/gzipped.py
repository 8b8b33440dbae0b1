"""Gzip, told by its first bytes: any number of members, decompressed piece by piece."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from tamis.core.errors import UnreadableDocument

MAGIC = b"\x1f\x8b"

# What goes in at a time is small, since what follows a member in it is copied; what comes out at a
# time is bounded, so that a bomb ends where the caller stops.
_PIECE_IN = 1 << 14
_PIECE_OUT = 1 << 20
_WITH_HEADER = 31  # zlib's window bits for gzip


def gunzipped(chunks: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    r"""Decompress gzip that is given in chunks of any size.

    Zeros after a member are padding, as on tapes.

    Yields:
        Pieces of at most 1 MiB; an empty one for each empty chunk.

    Raises:
        UnreadableDocument: it is damaged, or ends too early.

    >>> import gzip
    >>> b"".join(gunzipped([gzip.compress(b"<a>"), gzip.compress(b"</a>") + b"\0\0"]))
    b'<a></a>'
    """
    member = zlib.decompressobj(_WITH_HEADER)
    is_between = False
    for chunk in chunks:
        if not chunk:
            yield b""
        for start in range(0, len(chunk), _PIECE_IN):
            given = bytes(chunk[start : start + _PIECE_IN])
            while given:
                if is_between:
                    given = given.lstrip(b"\0")
                    if not given:
                        break
                    member = zlib.decompressobj(_WITH_HEADER)
                    is_between = False
                yield from _member(member, given)
                is_between = member.eof
                given = member.unused_data
    if not is_between:
        raise UnreadableDocument("damaged gzip: it ends too early")


def _member(member: zlib._Decompress, given: bytes) -> Iterator[bytes]:
    """What a member makes of ``given``; it may end before that does."""
    while not member.eof:
        try:
            piece = member.decompress(given, _PIECE_OUT)
        except zlib.error as error:
            reason = str(error).rpartition(": ")[2]
            raise UnreadableDocument(f"damaged gzip: {reason}") from None
        if piece:
            yield piece
        given = member.unconsumed_tail
        if not given and len(piece) < _PIECE_OUT:
            return
