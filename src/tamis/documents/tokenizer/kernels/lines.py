"""Counts lines and columns."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel import U, kernel
from tamis.core.kernel.bits import last, ones
from tamis.documents.tokenizer.kernels.layout import Bytes, Int64
from tamis.documents.tokenizer.vectors import ALL, BLOCK, ONE, line_ends


@kernel
def pass_over(data: Bytes, start: int, end: int, place: Int64) -> None:
    """Count lines and columns on from a place, over bytes with ``PADDING`` behind them.

    Args:
        place: int64[3]; line, column, and whether the last byte was a carriage return, so that a
            newline begins no further line.
    """
    address = np.int64(data.ctypes.data)
    line, column, carry = place[0], place[1], U(place[2])
    for block in range(start, end, BLOCK):
        size = min(BLOCK, end - block)
        valid = ALL >> U(BLOCK - size)
        newlines, carriage_returns, tails = line_ends(address + block)
        newlines &= valid
        carriage_returns &= valid
        characters = ~tails & valid
        line += ones(carriage_returns | newlines & ~(carriage_returns << ONE | carry))
        ends = newlines | carriage_returns
        if ends:
            column = 1 + ones(characters >> U(last(ends)) >> ONE)
        else:
            column += ones(characters)
        carry = carriage_returns >> U(size - 1)
    place[0], place[1], place[2] = line, column, np.int64(carry)
