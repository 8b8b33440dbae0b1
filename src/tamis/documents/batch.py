"""``DocumentBatch``: parsed documents as flat arrays, the one thing that every engine reads."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64, freeze, starts_of

DOCUMENT, ELEMENT, ATTRIBUTE, TEXT, MISC = range(5)
"""Kinds of nodes. A node's number is that of its document, start event, attribute, text or misc."""
KIND_BITS = 3
"""The number of a node, shifted by so many bits, and its kind are one integer, its *node_ref*."""


class DocumentBatch(NamedTuple):
    """Many documents, parsed: the start and end of each element, and what the projection asked for.

    All arrays are C-contiguous and read-only. *Names* are ids of the :class:`Vocabulary` that the
    batch was parsed with. Positions of attributes, text and misc are event numbers in the batch.
    Values are UTF-8; ``start`` and ``end`` are byte offsets into the buffer beside them.

    Attributes:
        document_starts: int64[d + 1]; the events of document i are ``starts[i]:starts[i + 1]``.
            A document in error has none.
        tags: int32[n]; the element's name at a start, -1 at an end.
        attribute_event: int64[a]; the start event that carries the attribute.
        attribute_name: int32[a].
        value_start, value_end: int64[a], into ``attribute_values``.
        text_event: int64[t]; the event before the text node.
        text_start, text_end: int64[t], into ``text_values``; the text nodes of a document follow
            each other without gaps, so that the string value of an element whose text was projected
            is one slice.
        misc_starts: int64[d + 1]; the comments and PIs of document i.
        misc_event: int64[m]; the event before it, one less than the document's first in its prolog.
        misc_text: int64[m]; the number of text nodes of the batch before it.
        misc_name: int32[m]; a PI's target, or -1 for a comment.
        misc_start, misc_end: int64[m], into ``misc_values``.
        prefixes, attribute_prefixes: int32[n], int32[a]; a prefix's id, -1 at ends and without one.
        lines: int32[n]; the line of the event in its document, from 1.
        offsets: int64[n]; where the event stands in the bytes that were parsed: at a start its
            ``<``, at an end the place behind its ``>``. What an entity holds stands where the
            reference to it does.
    """

    document_starts: Int64
    tags: Int32
    attribute_event: Int64
    attribute_name: Int32
    value_start: Int64
    value_end: Int64
    attribute_values: Bytes
    text_event: Int64
    text_start: Int64
    text_end: Int64
    text_values: Bytes
    misc_starts: Int64
    misc_event: Int64
    misc_text: Int64
    misc_name: Int32
    misc_start: Int64
    misc_end: Int64
    misc_values: Bytes
    prefixes: Int32
    attribute_prefixes: Int32
    lines: Int32
    offsets: Int64

    @property
    def documents(self) -> int:
        """The number of documents, those in error included."""
        return len(self.document_starts) - 1


class BatchBuilder:
    """The growing form of a :class:`DocumentBatch`; parsers append to its arrays.

    >>> builder = BatchBuilder()
    >>> builder.tags.extend([0, -1])
    >>> builder.end_document()
    >>> builder.freeze().document_starts
    array([0, 2])
    """

    def __init__(self) -> None:
        self.tags = array("i")
        self.prefixes = array("i")
        self.lines = array("i")
        self.offsets = array("q")
        self.attribute_event = array("q")
        self.attribute_name = array("i")
        self.attribute_prefixes = array("i")
        self.value_end = array("q")
        self.attribute_values = bytearray()
        self.text_event = array("q")
        self.text_end = array("q")
        self.text_values = bytearray()
        self.misc_event = array("q")
        self.misc_text = array("q")
        self.misc_name = array("i")
        self.misc_end = array("q")
        self.misc_values = bytearray()
        self._growing: dict[str, Any] = dict(vars(self))
        self.document_starts = array("q", [0])
        self.misc_starts = array("q", [0])

    def end_document(self) -> None:
        """Everything since the last call is one document."""
        self.document_starts.append(len(self.tags))
        self.misc_starts.append(len(self.misc_event))

    def lengths(self) -> dict[str, int]:
        """The present lengths, for :meth:`drop_document` and :meth:`split`."""
        return {name: len(values) for name, values in self._growing.items()}

    def drop_document(self, lengths: dict[str, int]) -> None:
        """Forget everything since :meth:`lengths`; the document stays, without events."""
        for name, values in self._growing.items():
            del values[lengths[name] :]
        self.end_document()

    def split(self, lengths: dict[str, int]) -> BatchBuilder:
        """Move everything since :meth:`lengths`, in an open document, to a new builder.

        >>> builder = BatchBuilder()
        >>> builder.tags.extend([0, -1])
        >>> builder.end_document()
        >>> lengths = builder.lengths()
        >>> builder.tags.append(1)
        >>> builder.split(lengths).tags, builder.freeze().document_starts
        (array('i', [1]), array([0, 2]))
        """
        rest = BatchBuilder()
        for name, values in self._growing.items():
            shift = lengths[_COUNTED[name]] if name in _COUNTED else 0
            moved = values[lengths[name] :]
            rest._growing[name].extend([number - shift for number in moved] if shift else moved)
        self.drop_document(lengths)
        del self.document_starts[-1], self.misc_starts[-1]
        return rest

    def freeze(self) -> DocumentBatch:
        """The arrays, read-only."""
        arrays: dict[str, Any] = {}
        for name, values in vars(self).items():
            if isinstance(values, array):
                arrays[name] = np.array(values, dtype=f"i{values.itemsize}")
            elif isinstance(values, bytearray):
                arrays[name] = np.frombuffer(bytes(values), dtype=np.uint8)
        for prefix in _RANGES:
            ends = arrays[f"{prefix}_end"]
            arrays[f"{prefix}_start"] = np.concatenate([np.zeros(1, np.int64), ends])[:-1]
        freeze(*arrays.values())
        return DocumentBatch(**arrays)


ROWS = {
    "document_starts": ("document_starts", "misc_starts"),
    "tags": ("tags", "prefixes", "lines", "offsets"),
    "attribute_event": tuple(
        "attribute_event attribute_name attribute_prefixes value_start value_end".split()
    ),
    "attribute_values": ("attribute_values",),
    "text_event": ("text_event", "text_start", "text_end"),
    "text_values": ("text_values",),
    "misc_event": ("misc_event", "misc_text", "misc_name", "misc_start", "misc_end"),
    "misc_values": ("misc_values",),
}
"""The arrays that are as long as one of them, those that were not projected apart."""

_RANGES = {"value": "attribute_values", "text": "text_values", "misc": "misc_values"}
# What the numbers in an array count: they grow by as many as there are before.
_COUNTED = {
    **dict.fromkeys(("document_starts", "attribute_event", "text_event", "misc_event"), "tags"),
    **{f"{prefix}_start": values for prefix, values in _RANGES.items()},
    **{f"{prefix}_end": values for prefix, values in _RANGES.items()},
    "misc_starts": "misc_event",
    "misc_text": "text_event",
}


def part(batch: DocumentBatch, first: int, last: int) -> DocumentBatch:
    """The documents from number ``first`` on up to ``last``, as a batch of their own."""
    if last - first == batch.documents:
        return batch
    bounds = batch.document_starts[[first, last]]
    rows = {
        "document_starts": slice(first, last + 1),
        "tags": slice(*bounds),
        "attribute_event": slice(*np.searchsorted(batch.attribute_event, bounds)),
        "text_event": slice(*np.searchsorted(batch.text_event, bounds)),
        "misc_event": slice(*batch.misc_starts[[first, last]]),
    }
    for prefix, values in _RANGES.items():  # which follow each other without gaps
        of = rows[values.replace("values", "event")]
        start, end = getattr(batch, f"{prefix}_start")[of], getattr(batch, f"{prefix}_end")[of]
        rows[values] = slice(start[0], end[-1]) if len(start) else slice(0, 0)
    arrays = {}
    for length, names in ROWS.items():
        for name in names:
            taken = getattr(batch, name)[rows[length]]
            arrays[name] = taken - rows[_COUNTED[name]].start if name in _COUNTED else taken
    return DocumentBatch(**arrays)


def joined(batches: Sequence[DocumentBatch]) -> DocumentBatch:
    """The documents of several batches, at least one, as one.

    >>> builder = BatchBuilder()
    >>> builder.tags.extend([0, -1])
    >>> builder.end_document()
    >>> batch = builder.freeze()
    >>> joined([batch, batch]).document_starts
    array([0, 2, 4])
    """
    arrays = {}
    for name in DocumentBatch._fields:
        pieces = [getattr(batch, name) for batch in batches]
        if name in _COUNTED:
            lengths = [len(getattr(batch, _COUNTED[name])) for batch in batches]
            before = starts_of(lengths)[:-1]
            pieces = [piece + count for piece, count in zip(pieces, before, strict=True)]
        if name in ("document_starts", "misc_starts"):  # each ends where the next one begins
            pieces = [*(piece[:-1] for piece in pieces[:-1]), pieces[-1]]
        arrays[name] = np.concatenate(pieces)
    freeze(*arrays.values())
    return DocumentBatch(**arrays)


def only(batch: DocumentBatch, is_chosen: NDArray[np.bool_]) -> DocumentBatch:
    """The same batch without the events of documents that are not chosen.

    >>> builder = BatchBuilder()
    >>> for _ in range(2):
    ...     builder.tags.extend([0, -1])
    ...     builder.end_document()
    >>> only(builder.freeze(), np.array([False, True])).document_starts
    array([0, 0, 2])
    """
    if is_chosen.all():
        return batch
    none = BatchBuilder()
    others = np.flatnonzero(~is_chosen).tolist()
    for _ in others:
        none.end_document()
    return interleaved(batch, none.freeze(), others)


def interleaved(
    batch: DocumentBatch, others: DocumentBatch, numbers: Sequence[int]
) -> DocumentBatch:
    """A batch in which the documents with these ascending numbers come from another one."""
    parts = []
    done = taken = 0  # documents of ``batch``, of ``others``
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]  # which follow each other
        parts.append(part(batch, done, members[0]))
        parts.append(part(others, taken, taken + len(members)))
        done = members[-1] + 1
        taken += len(members)
    parts.append(part(batch, done, batch.documents))
    return joined(parts)
