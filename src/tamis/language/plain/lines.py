"""Lines of a file of subscriptions, and ids, found by kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.language.columns import Ids
from tamis.language.plain.kernels.lines import check_ids, find_lines, write_ids
from tamis.language.plain.layout import NUMBERED, ODD, Bytes, Int32, Int64
from tamis.language.plain.reader import MULTIPLIER

__all__ = ["NUMBERED", "ODD", "Lines", "found_lines", "ids_of_lines", "suspect_ids"]


class Lines(NamedTuple):
    """Lines that hold something.

    Attributes:
        lines: their numbers, from 1.
        starts, ends: where they are, without what ends them.
        tabs: where the first tab is; ``NUMBERED`` if there is none and the line is an expression;
            ``ODD`` if Python has to look at it.
    """

    lines: Int64
    starts: Int64
    tabs: Int64
    ends: Int64


def found_lines(data: bytes) -> Lines:
    r"""The lines of a file; comments and blank lines are left out.

    >>> found_lines(b"x\t//a\n# comment\n\n//b\r\n")
    Lines(lines=array([1, 4]), starts=array([ 0, 17]), tabs=array([ 1, -1]), ends=array([ 5, 20]))
    """
    room = data.count(b"\n") + 1
    result = Lines(*(np.empty(room, np.int64) for _ in Lines._fields))
    count = find_lines(np.frombuffer(data, np.uint8), *result)
    return Lines(*(array[:count] for array in result))


def ids_of_lines(data: bytes, found: Lines) -> Ids:
    """What is before the tabs of lines, and the numbers of those that have none."""
    lengths = np.where(found.tabs >= 0, found.tabs - found.starts, 20)
    ids = np.empty(int(lengths.sum()), np.uint8)
    bounds = np.zeros(len(lengths) + 1, np.int64)
    text = np.frombuffer(data, np.uint8)
    write_ids(text, found.lines, found.starts, found.tabs, ids, bounds[1:])
    return Ids(ids[: bounds[-1]].tobytes(), bounds[:-1], bounds[1:])


def suspect_ids(ids: Ids) -> tuple[Int32, Bytes]:
    """For each id the number of the first that equals it, or -1; and where they may be no good."""
    first, is_odd = np.empty(len(ids), np.int32), np.empty(len(ids), np.uint8)
    slots = np.zeros(1 << (2 * len(ids)).bit_length(), np.int32)
    data = np.frombuffer(ids.data, np.uint8)
    check_ids(data, ids.starts, ids.ends, MULTIPLIER[0], slots, first, is_odd)
    return first, is_odd
