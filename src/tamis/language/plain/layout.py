"""The state of the kernels: the fields of one array (see tamis.core.kernel.record)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel.record import fields
from tamis.language.table import LITERAL_MAX, WORDS_MAX

Words = NDArray[np.uint64]


class Interned(NamedTuple):
    """Byte strings, each once; the next one to look for stands behind all others.

    Attributes:
        data: uint8[]; starts: int64[n + 1]; string i is ``data[starts[i]:starts[i + 1]]``.
        hashes: uint64[n].
        slots: int32[2**k], a hash table with open addressing: 1 and the number of a string, or 0.
        counts: int64[1]; how many there are.
    """

    data: Bytes
    starts: Int64
    hashes: Words
    slots: Int32
    counts: Int64


class Task(NamedTuple):
    """What is read, and where its answers go.

    Expression i is ``data[starts[i]:ends[i]]``; ``queries[i]`` is its query's number or
    ``DECLINED``.
    """

    data: Bytes
    starts: Int64
    ends: Int64
    queries: Int32


class Work(NamedTuple):
    """What kernels work with besides.

    Attributes:
        tests: int32[]; by the number of a name as it is written, its test; ``DECLINED`` where it is
            none, ``UNKNOWN`` before the caller has seen it.
        code: int32[], the bytes of ``QUERIES``.
        numbers: float64[], the bytes of ``NUMBERS``.
        frames: int64[]; what is open: ``FRAME_COLUMNS`` for each predicate, parenthesis and not().
    """

    tests: Int32
    code: Int32
    numbers: NDArray[np.float64]
    frames: Int64


DECLINED, UNKNOWN = -1, -2
# Of lines: they have no tab, and their numbers for ids; they are left to Python.
NUMBERED, ODD = -1, -2
# What ``read`` returns: all is read; a table has to grow; the last name was not met before.
DONE, FULL, NEW_NAME = range(3)

# What comes next in an expression, or what has become of it.
EXPECT_STEP, AFTER_STEP, EXPECT_OPERAND, AFTER_OPERAND = range(1, 5)
FINISHED, IS_DECLINED, ASKS_NAME = 0, -1, -2

# Kinds of frames, and their columns. LEVELS are those of the path around a predicate; the
# operand of ``or`` begins at OPERAND_FROM, and has so many ITEMS; HAS_ANY: there was an ``or``.
IN_PREDICATE, IN_PARENTHESES, IN_NOT = range(3)
KIND, FROM, OPERAND_FROM, ITEMS, HAS_ANY, LEVELS_AROUND, LEAF_AROUND, FRAME_COLUMNS = range(8)
FRAMES_MAX = 64
WORDS_ROOM = 4 * WORDS_MAX
"""Words that an expression may take before it is known to have too many."""
NAME_BYTES_MAX = LITERAL_MAX + 3
"""Bytes of a name, with an @ before it or parentheses behind it."""

# The scalars. Of the caller: the limits, and a factor of hashes. LEVELS: the open ones of the path
# that is read; IS_LEAF: what the innermost level is at has no children.
(STEPS_MAX, PREDICATES_MAX, NESTED_MAX, CHARS_MAX, MULTIPLIER,
 EXPRESSION, POSITION, STOP, CODE_FROM, CODE_TO, STEPS, PREDICATES, DEPTH, LEVELS, IS_LEAF,
 FLAGS, SCALARS) = range(17)  # fmt: skip

TASK = fields(Task, SCALARS)
NAMES = fields(Interned, TASK[-1] + 2)
STRINGS = fields(Interned, NAMES[-1] + 2)
NUMBERS = fields(Interned, STRINGS[-1] + 2)
QUERIES = fields(Interned, NUMBERS[-1] + 2)
WORK = fields(Work, QUERIES[-1] + 2)
STATE_SIZE = WORK[-1] + 2
