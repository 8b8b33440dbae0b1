"""Automata over many texts, by the kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tamis.core.arrays import starts_of
from tamis.core.kernel.dfa import Dfas, run_dfa


def accepted(dfas: Dfas, number: int, texts: Sequence[bytes]) -> list[bool]:
    """Whether texts match an automaton."""
    found = np.zeros(len(texts), np.uint8)
    data = np.frombuffer(b"".join(texts), np.uint8)
    run_dfa(dfas, number, data, starts_of([*map(len, texts)]), found)
    return list(map(bool, found.tolist()))
