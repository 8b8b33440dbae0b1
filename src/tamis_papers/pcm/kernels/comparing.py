"""Bit vectors compared, eight at once, and asked for ahead."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.core.kernel.declare import intrinsic


@intrinsic
def covered(vectors: NDArray[np.uint64], place: int, outside: np.uint64) -> np.uint64:
    """Which of eight vectors, from a place on, have no bit of ``outside``: a mask, unchecked."""
    eight = vectors[place : place + 8]
    return np.uint64(sum(1 << lane for lane, vector in enumerate(eight) if not vector & outside))
