"""The state of kernels that strategies share: strings of nodes, and what these compare with.

A strategy has its own numbers and arrays behind these, and its own columns from ``…_OWN`` on.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Bytes, Floats, Int32, Int64
from tamis.core.kernel.record import lay_out

NONE = -1
"""No record: the end of a chain."""
NO_NAME = -2
"""The name of attributes that no document so far has."""
DONE = 0
"""A kernel's status; any other is the field of an array that is full."""


class Groups(NamedTuple):
    """The answers of a document: the transformations that have a message.

    This is the groupSequence–listSequence format of Diao and Franklin (*Query Processing for
    High-Volume XML Message Brokering*, VLDB 2003, section 2.2). Each transformation has a sequence
    of groups, one for each bound node. A group has a list for each path of the transformation. A
    list has the selected nodes in document order. All strategies write this format; the factory
    reads it. Answers share groups, and the lists of a path: all transformations that have a path
    read its lists.

    A node reference is ``number << KIND_BITS | kind``, as in :mod:`tamis.documents.batch`.
    """

    transformations: Int32  # [a]; that of each answer, ascending
    group_starts: Int64  # [a]; the groups of each answer, a range of ``bound``
    group_ends: Int64
    bound: Int64  # the start event of each group's bound element, in document order
    path_starts: Int64  # [a]; the paths of answer i are paths[path_starts[i]] and so on
    paths: Int32  # numbers of paths
    of_path: Int64  # [p + 1]; the lists of path i are those from of_path[i] to of_path[i + 1]
    list_bound: Int64  # [l]; the bound node of each list that is not empty, ascending for each path
    list_starts: Int64  # [l]; ranges of ``nodes``
    list_ends: Int64
    nodes: Int64  # node references


(
    SOURCE_KIND,  # see ``shapes``
    SOURCE_NAME,  # the number of the attribute's name, or NONE for any
    SOURCE_EXISTS,  # the leaf that asks whether there is a string, or NONE
    SOURCE_TEXTS,  # how many leaves ask for equality with a string
    SOURCE_NUMBERS,  # how many ask for equality with a number
    SOURCE_UNEQUAL,  # the first leaf that asks for a difference, or NONE; chained by LEAF_NEXT
    SOURCE_RANGES,  # four numbers of ranges of thresholds, for < <= > >=, or NONE
) = range(7)
SOURCE_OWN, SOURCE = 10, 16
"""Strings to compare with constants: those of an element, an attribute of it, its text nodes."""

LEAF_SOURCE, LEAF_OPERATOR, LEAF_NEXT, LEAF_TEXT, LEAF_TEXT_END, LEAF_OWN = range(6)
LEAF = 8
"""A condition on the strings of a source.

``NEXT``   of those that ask for a difference; of those with the same key in ``equals``.
``TEXT``, ``TEXT_END``  the string that it compares with, in ``texts``; or ``NONE``, for a number.
"""

COMPARED_KIND, COMPARED_NAME, COMPARED_OPERATOR, COMPARED_TEXT, COMPARED_TEXT_END = range(5)
COMPARED = 8
"""A test of a step, of the strings of the node itself."""

EQUAL, UNEQUAL, LESS, LESS_EQUAL, MORE, MORE_EQUAL, EXISTS = range(7)
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "exists")

(
    EVENTS,  # of the document
    LONG_FOUND,  # numbers with too many digits for a kernel to read
    LONG_KNOWN,  # those that Python has read
    OWN_SCALARS,  # from here on, the counters of a strategy
) = range(4)
_SCALARS = 32


class Constants(NamedTuple):
    """What strings are compared with."""

    sources: Int32  # [SOURCE * n]
    leaves: Int32  # [LEAF * n]
    literals: Floats  # the number that a leaf compares with
    texts: Bytes  # the strings that leaves and comparisons compare with
    equals: Int64  # a pair table; by the hash of source and value the first leaf
    range_starts: Int64  # of thresholds
    range_counts: Int64
    thresholds: Floats  # ascending in each range
    range_leaves: Int32  # the leaf of each threshold
    tests: Int32  # for each step from the last one on, the comparisons, each list ended by NONE
    comparisons: Int32  # [COMPARED * n]
    comparison_literals: Floats


class Read(NamedTuple):
    """The document, one batch: see ``DocumentBatch``."""

    rows: Int64  # [OCCURRENCE * n]; the NFA's occurrences, by event
    records: Int32  # [RECORD * n]; the NFA's states
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
    names: Int32  # the vocabulary's ids of the names of attributes that sources have


class Nodes(NamedTuple):
    """The tree of the document, and the leaves that a string makes true."""

    ends: Int64  # [events]; the end of a start event
    parents: Int64  # [events]; the start of the element around
    attributes_from: Int64  # [events + 1]; the first attribute of an event or behind it
    texts_from: Int64  # [events + 1]; likewise the first text node
    stack: Int64  # open elements
    found_leaves: Int32  # those that a string makes true
    number: Floats  # [1]
    long_found: Int64  # [2 * n]; numbers that kernels cannot read: see ``read_number``
    long_known: Int64  # [2 * n]; those that Python has read, ascending
    long_values: Floats  # their values


CONSTANTS, READ, NODES, OWN = lay_out(_SCALARS, Constants, Read, Nodes)
"""``OWN``: the first field of a strategy's own arrays; those that kernels fill come first."""
