"""Words of 64 bits, in kernels."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel.declare import intrinsic


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
