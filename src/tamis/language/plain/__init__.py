"""Plain expressions, as flat arrays: what nearly all of a large set of subscriptions is.

A *plain* expression is a location path from the document node with steps to children, descendants,
attributes and text nodes, and predicates of ``and``, ``or``, ``not()``, relative paths of the same
steps, comparisons of these, ``.`` and attributes with literals, ``contains()`` and
``starts-with()``. A kernel reads them from bytes, some hundred thousand a second, without a Python
object for any (:mod:`tamis.language.plain.reader`); what is not plain it declines, and
:func:`tamis.language.xpath.parse` then reads it, or says what is wrong with it.

A query is a sequence of words, ``kind | payload << 3``:

========  =====================================================================================
``STEP``  begins a level, at what a step leads to; payload: ``BELOW`` (the step was after ``//``),
          ``FIRST`` (to the first of the children that pass), ``ANCHOR``, ``ONWARD``, and from
          ``TEST_SHIFT`` on the number of the test
``ALL``   begins a group: all in it hold
``ANY``   begins a group: one of the items in it holds
``NOT``   begins a group: not all in it hold
``END``   ends a level or group
``ASKS``  the string value of what the nearest level is at is as asked; payload: the operator's
          place in ``OPERATORS``; the next word is the literal: n is string n, -1 - n is number n
========  =====================================================================================

A level holds where there is a node for which all in it holds; what follows a step of a path is
inside of its level, like a predicate. The *anchor* is the first step of the path from the document
that has a predicate, or else its last step. The steps before it have no END; its own is the last
word. The steps of that path behind the anchor are ``ONWARD``: they say as much as a predicate, but
lead to other nodes. So ``//a[b = 'x' or @c]/d`` is::

    STEP a|BELOW|ANCHOR, ANY, STEP b, ASKS =, 0, END, STEP @c, END, END, STEP d|ONWARD, END, END
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import freeze
from tamis.language.model import NodeTest

STEP, ALL, ANY, NOT, END, ASKS = range(6)
KIND_BITS = 3
BELOW, FIRST, ANCHOR, ONWARD = 1, 2, 4, 8
TEST_SHIFT = 4
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "starts-with", "contains")

WORDS_MAX = 500
"""Words of a query."""
NESTING_MAX = 60
"""Levels and groups inside each other."""
LITERAL_MAX = 255
"""Bytes of a string literal, and of a name as it is written."""


class PlainQueries(NamedTuple):
    """Queries, each once.

    Attributes:
        starts: int64[q + 1]; the words of query i are ``code[starts[i]:starts[i + 1]]``.
        code: int32[].
        tests: by number, whether a test is on the attribute axis, and the test.
        string_starts: int64[s + 1]; string i is ``string_bytes[string_starts[i]:…]``.
        string_bytes: uint8[]; the string literals, UTF-8, each once.
        numbers: float64[n]; the number literals, each once.
    """

    starts: NDArray[np.int64]
    code: NDArray[np.int32]
    tests: tuple[tuple[bool, NodeTest], ...]
    string_starts: NDArray[np.int64]
    string_bytes: NDArray[np.uint8]
    numbers: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.starts) - 1


NO_PLAIN_QUERIES = PlainQueries(
    starts=np.zeros(1, np.int64),
    code=np.zeros(0, np.int32),
    tests=(),
    string_starts=np.zeros(1, np.int64),
    string_bytes=np.zeros(0, np.uint8),
    numbers=np.zeros(0, np.float64),
)
"""None; Python's parser alone reads small sets."""
# As those of all others are: kernels are compiled for that.
freeze(*(array for array in NO_PLAIN_QUERIES if isinstance(array, np.ndarray)))
