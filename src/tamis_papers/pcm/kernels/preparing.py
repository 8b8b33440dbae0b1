"""What CCM does on the CPU: ``Input`` for several events at once."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, inlined, kernel
from tamis.core.kernel.prototype import Rows
from tamis.core.kernel.record import int32s, int64s, uint8s
from tamis.events.model import STRING
from tamis_papers.pcm.kernels.selecting import choose_tables, fill_input, first_way, name_bits
from tamis_papers.pcm.layout import (
    CHOSEN_COUNT,
    EVENT,
    EVENT_END,
    EVENTS,
    INPUT,
    LINE_COPY,
    LINE_COUNT,
    LINE_END,
    LINE_FIRST,
    LINE_KIND,
    LINE_NUM_CONSTR,
    LINE_START,
    LINE_VALUE,
    LONGEST,
    PREPARED,
)
from tamis_papers.pcm.tables import UInt64


@kernel
def prepare_events(state: Int64, lines: Rows[np.int64], blooms: UInt64) -> int:
    """Prepare events from ``EVENT`` on: how many; 0 where there is no room for the lines of one.

    Args:
        lines: int64[l, LINE_WIDTH]; gets the lines.
        blooms: uint64[events at once]; gets the Bloom filter of each event.
    """
    state[PREPARED] = state[LONGEST] = 0
    copies = np.int64(0)
    while copies < len(blooms) and state[EVENT] < state[EVENT_END]:
        event, before, longest = state[EVENT], state[PREPARED], state[LONGEST]
        vector, bloom = name_bits(state, event)
        way = first_way(state, vector)
        is_room = True
        while is_room and way != U(0):
            way = choose_tables(state, vector, way)
            table = np.int64(0)
            while is_room and table < state[CHOSEN_COUNT]:
                table = fill_input(state, event, table)
                is_room = state[PREPARED] + state[LINE_COUNT] <= len(lines)
                if is_room:
                    _take_lines(state, lines, copies)
        if not is_room:
            state[PREPARED], state[LONGEST] = before, longest
            break
        blooms[copies] = bloom
        copies += 1
        state[EVENT] = event + 1
    return copies


@inlined
def _take_lines(state: Int64, lines: Rows[np.int64], copy: int) -> None:
    """Complete the lines that were filled."""
    event_kinds = uint8s(state, EVENTS.event_kinds)
    event_values = int64s(state, EVENTS.event_values)
    event_string_starts = int64s(state, EVENTS.event_string_starts)
    attributes = int32s(state, INPUT.attributes)
    starts, ends = int32s(state, INPUT.starts), int32s(state, INPUT.ends)
    for place in range(state[LINE_COUNT]):
        line = state[PREPARED]
        state[PREPARED] += 1
        attribute = attributes[place]
        value = event_values[attribute]
        lines[line, LINE_COPY] = copy
        lines[line, LINE_KIND] = event_kinds[attribute]
        lines[line, LINE_VALUE] = value
        lines[line, LINE_START] = lines[line, LINE_END] = 0
        if event_kinds[attribute] == STRING:
            lines[line, LINE_START] = event_string_starts[value]
            lines[line, LINE_END] = event_string_starts[value + 1]
        lines[line, LINE_FIRST] = starts[place]
        lines[line, LINE_NUM_CONSTR] = ends[place] - starts[place]
        state[LONGEST] = max(state[LONGEST], lines[line, LINE_NUM_CONSTR])
