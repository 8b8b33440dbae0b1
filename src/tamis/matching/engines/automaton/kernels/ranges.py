"""What numbers of programs and caches may be, for the kernels that check them."""

from __future__ import annotations

from typing import Any

from tamis.core.arrays import Int64
from tamis.core.kernel import called
from tamis.core.kernel.record import int32s, int64s
from tamis.matching.engines.automaton.layout import PROGRAM
from tamis.matching.engines.automaton.program import (
    GROUP_COLUMNS,
    OF_DESCENDANT,
    OF_GROUP,
    OF_ITSELF,
    OF_VALUE,
)


@called
def are_in(values: Any, start: int, end: int) -> bool:
    """Whether all numbers are in a range."""
    faults = 0
    for i in range(len(values)):
        faults += (values[i] < start) | (values[i] >= end)
    return faults == 0


@called
def are_starts(starts: Any, length: int) -> bool:
    """Whether numbers ascend from 0 to the length of what they lead into."""
    last = len(starts) - 1
    faults = (starts[0] != 0) | (starts[last] != length)
    for i in range(last):
        faults |= starts[i] > starts[i + 1]
    return faults == 0


@called
def is_of_value(state: Int64, fact: int) -> bool:
    """Whether a fact may be one about a value."""
    ends = int64s(state, PROGRAM.fact_ends)
    return 64 * ends[OF_ITSELF] <= fact < 64 * ends[OF_VALUE]


@called
def is_fact(state: Int64, fact: int) -> bool:
    """Whether there may be a fact of a number."""
    ends = int64s(state, PROGRAM.fact_ends)
    groups = len(int32s(state, PROGRAM.groups)) // GROUP_COLUMNS - 1
    last = 64 * ends[OF_DESCENDANT] + len(int32s(state, PROGRAM.fact_counters))
    return 0 <= fact < last and (fact < groups or fact >= 64 * ends[OF_GROUP])
