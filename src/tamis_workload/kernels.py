"""Random bits for kernels: the same on every machine, since they are made of integers alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.core.kernel import inlined

Words = NDArray[np.uint64]


@inlined
def draw(random: Words) -> np.uint64:
    """The next 64 random bits: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def below(random: Words, count: int) -> int:
    """One of 0, …, count - 1, each as likely as the others to some 2**-32; count < 2**31."""
    return np.int64(((draw(random) >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32))
