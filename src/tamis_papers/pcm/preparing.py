"""What CCM does on the processor: ``Input`` for the events of a batch, some at a time."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel.record import register
from tamis.events.model import EventBatch
from tamis_papers.pcm.kernels.preparing import prepare_events
from tamis_papers.pcm.layout import (
    EVENT,
    EVENT_END,
    EVENTS,
    INPUT,
    LONGEST,
    PARTS,
    PREPARED,
    STATE_SIZE,
    TABLE_COUNT,
    TABLES,
    Events,
)
from tamis_papers.pcm.matching import events_of, room_for_lines
from tamis_papers.pcm.tables import PcmProgram, UInt64


class Preparation:
    """Prepares the events of one batch after the other.

    Args:
        program: its tables must stay alive, as arrays that kernels find by their addresses.
    """

    def __init__(self, program: PcmProgram) -> None:
        self._state = state = np.zeros(STATE_SIZE, np.int64)
        state[PARTS] = 1
        state[TABLE_COUNT] = program.tables.total
        register(state, TABLES.vector_bits, program.tables)

    def begin(self, batch: EventBatch) -> Events:
        """Begin with the first event of a batch."""
        self._events, self._input = events_of(batch), room_for_lines(batch)
        register(self._state, EVENTS.event_starts, self._events)
        register(self._state, INPUT.attributes, self._input)
        self._state[EVENT], self._state[EVENT_END] = 0, batch.events
        return self._events

    @property
    def event(self) -> int:
        """The next one; behind the last, how many there are."""
        return int(self._state[EVENT])

    @property
    def lines(self) -> int:
        """How many lines were prepared."""
        return int(self._state[PREPARED])

    @property
    def longest(self) -> int:
        """The most constraints that one of them asks about."""
        return int(self._state[LONGEST])

    def prepare(self, lines: Int64, blooms: UInt64) -> int:
        """Prepare the next events, as many as there is room for; how many: 0 if for none."""
        return int(prepare_events(self._state, lines, blooms))
