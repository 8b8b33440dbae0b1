"""Words of 64 bits, in kernels."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes
from tamis.core.kernel.declare import U, intrinsic


@intrinsic
def first(word: np.uint64) -> int:
    """The number of the lowest bit that is set, 64 for none."""
    bits = int(word)
    return (bits & -bits).bit_length() - 1 if bits else 64


@intrinsic
def ones(word: np.uint64) -> int:
    """How many bits are set."""
    return int(word).bit_count()


@intrinsic
def last(word: np.uint64) -> int:
    """The number of the highest bit that is set; the word is not 0."""
    return int(word).bit_length() - 1


@intrinsic
def big_endian(data: Bytes, offset: int) -> np.uint64:
    """Eight bytes from an offset on, the first of them in the highest bits."""
    return U(int.from_bytes(data[offset : offset + 8].tobytes().ljust(8, b"\0"), "big"))


@intrinsic
def if_less(one: np.uint64, other: np.uint64, value: int, otherwise: int) -> int:
    """A value if one word is less than another, otherwise another one; never by a branch."""
    return value if one < other else otherwise
