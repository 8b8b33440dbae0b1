"""Bit vectors compared, eight at once, and asked for ahead.

How threads meet: words of memory that all of them change and wait for.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int64
from tamis.core.kernel import called
from tamis.core.kernel.declare import intrinsic
from tamis_papers.pcm import layout as at


@intrinsic
def covered(vectors: NDArray[np.uint64], place: int, outside: np.uint64) -> np.uint64:
    """Which of eight vectors, from a place on, have no bit of ``outside``: a mask, unchecked."""
    eight = vectors[place : place + 8]
    return np.uint64(sum(1 << lane for lane, vector in enumerate(eight) if not vector & outside))


_SPINS = 300
"""How often a thread looks before it lets others have its core: some microseconds."""


@intrinsic
def add(words: Int64, place: int, amount: int) -> int:
    """Add to a word, at one stroke; what it was before. What was written before can be seen.

    The twin in Python is for one thread alone.
    """
    before = int(words[place])
    words[place] = before + amount
    return before


@intrinsic
def look(words: Int64, place: int) -> int:
    """A word as it is now; what was written before it can be seen."""
    return int(words[place])


@intrinsic
def put(words: Int64, place: int, value: int) -> None:
    """Change a word."""
    words[place] = value


@intrinsic
def pause() -> None:
    """Tell the processor that this thread waits."""


@intrinsic
def let_others() -> None:
    """Let other threads have this core."""
    os.sched_yield()


@called
def meet(words: Int64, arrivals: int) -> bool:
    """Wait until so many arrived, all meetings counted, this thread too; False if one failed."""
    add(words, np.int64(at.ARRIVED), np.int64(1))
    spins = 0
    while look(words, np.int64(at.ARRIVED)) < arrivals:
        if look(words, np.int64(at.ABORT)) != 0:
            return False
        spins += 1
        if spins < _SPINS:
            pause()
        else:
            let_others()
    return True
