"""Where kernels find strings and constants; strategies have their own arrays behind these."""

from __future__ import annotations

from typing import Any, NamedTuple

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel.record import fields

NONE = -1
"""No record: the end of a chain."""

(
    SOURCE_KIND,
    SOURCE_NAME,
    SOURCE_EXISTS,
    SOURCE_TEXTS,
    SOURCE_NUMBERS,
    SOURCE_UNEQUAL,
    SOURCE_RANGES,
) = range(7)
SOURCE_OWN = 10
SOURCE = 16
"""Strings to compare with constants: those of an element, an attribute of it, its text nodes.

``KIND``, ``NAME``  see ``shapes``; the number of the attribute's name, or ``NONE`` for any.
``EXISTS``   the leaf that asks whether there is a string, or ``NONE``.
``TEXTS``    how many leaves ask for equality with a string.
``NUMBERS``  how many ask for equality with a number.
``UNEQUAL``  the first leaf that asks for a difference, or ``NONE``; chained by ``LEAF_NEXT``.
``RANGES``   four numbers of ranges of thresholds, for ``< <= > >=``, or ``NONE``.
``OWN``      from here on, a strategy's own.
"""

LEAF_SOURCE, LEAF_OPERATOR, LEAF_NEXT, LEAF_TEXT, LEAF_TEXT_END, LEAF_OWN = range(6)
LEAF = 8
"""A condition on the strings of a source.

``NEXT``   of those that ask for a difference.
``TEXT``, ``TEXT_END``  the string that it compares with, in ``texts``; or ``NONE``, for a number.
``OWN``    from here on, a strategy's own.
"""

COMPARISON_KIND, COMPARISON_NAME, COMPARISON_OPERATOR, COMPARISON_TEXT, COMPARISON_TEXT_END = range(
    5
)
COMPARISON = 8
"""A test of a step, of the strings of the node itself."""

EQUAL, UNEQUAL, LESS, LESS_EQUAL, MORE, MORE_EQUAL, EXISTS = range(7)
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "exists")

EVENTS, FULL, ODD_FOUND, ODD_KNOWN, OWN_SCALARS = range(5)
_SCALARS = 32
"""``EVENTS``: of the document. ``FULL``: the place of the array that was full. ``ODD_FOUND``:
numbers with too many digits for a kernel to read. ``ODD_KNOWN``: those that Python has read. Where
there is one that Python has not read, the kernel runs again. Then the counters of a strategy."""

DONE, NO_ROOM = range(2)
"""What a kernel says: all is done; or some array is full, and all begins again."""


class Constants(NamedTuple):
    """What strings are compared with.

    Attributes:
        sources: int32[SOURCE * n].
        leaves: int32[LEAF * n].
        literals: float64[n]; the number that a leaf compares with.
        texts: uint8[]; the strings that leaves and comparisons compare with.
        equals: int64[2 * slots]; by hash, of source and value: the leaf plus one, 0 for none.
        range_starts, range_counts: int64[n]; of thresholds.
        thresholds: float64[]; ascending in each range.
        range_leaves: int32[]; the leaf of each threshold.
        tests: int32[]; for each step from the last one on, the comparisons, each list ended by
            ``NONE``.
        comparisons: int32[COMPARISON * n].
        comparison_literals: float64[n].
    """

    sources: Int32
    leaves: Int32
    literals: Any
    texts: Bytes
    equals: Int64
    range_starts: Int64
    range_counts: Int64
    thresholds: Any
    range_leaves: Int32
    tests: Int32
    comparisons: Int32
    comparison_literals: Any


class Read(NamedTuple):
    """The document, one batch: see ``DocumentBatch``.

    Attributes:
        rows: int64[OCCURRENCE * n]; the NFA's occurrences, by event.
        records: int32[RECORD * n]; the NFA's states.
        names: int32[n]; the vocabulary's ids of the names of attributes that sources have.
    """

    rows: Int64
    records: Int32
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
    names: Int32


class Nodes(NamedTuple):
    """What is inside what, and what a string makes true.

    Attributes:
        ends, parents: int64[events]; the end of a start event; the start of what is around.
        attributes_from, texts_from: int64[events + 1]; the first attribute, and text node, of an
            event or behind it.
        stack: int64[]; open elements.
        found_leaves: int32[]; those that a string makes true.
        number: float64[1].
        odd_found: int64[2 * n]; numbers that kernels cannot read: where they begin, times two, plus
            one for those in values of attributes; and where they end.
        odd_known: int64[2 * n]; those that Python has read, ascending.
        odd_values: float64[n]; what they are.
    """

    ends: Int64
    parents: Int64
    attributes_from: Int64
    texts_from: Int64
    stack: Int64
    found_leaves: Int32
    number: Any
    odd_found: Int64
    odd_known: Int64
    odd_values: Any


CONSTANTS: Any = fields(Constants, _SCALARS)
READ: Any = fields(Read, _SCALARS + 2 * len(Constants._fields))
NODES: Any = fields(Nodes, _SCALARS + 2 * (len(Constants._fields) + len(Read._fields)))
OWN = _SCALARS + 2 * (len(Constants._fields) + len(Read._fields) + len(Nodes._fields))
"""The first place of a strategy's own arrays."""
