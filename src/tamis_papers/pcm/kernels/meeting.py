"""How threads meet: words of memory that all of them change and wait for."""

from __future__ import annotations

import os

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import called
from tamis.core.kernel.declare import intrinsic
from tamis_papers.pcm.layout import ABORT, ARRIVED

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
    add(words, np.int64(ARRIVED), np.int64(1))
    spins = 0
    while look(words, np.int64(ARRIVED)) < arrivals:
        if look(words, np.int64(ABORT)) != 0:
            return False
        spins += 1
        if spins < _SPINS:
            pause()
        else:
            let_others()
    return True
