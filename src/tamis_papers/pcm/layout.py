"""Where the kernels that match find everything: an array of integers, the state of a thread."""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel.record import lay_out
from tamis_papers.pcm.program import Tables, UInt64

(
    PART,  # the number of this thread among those that share the tables of each event
    PARTS,  # how many do; 1 where they share events
    IN_STEP,  # whether they share the tables of each event
    ARE_INTERFACES,  # whether owners are marked in ``interfaces``, or noted as filters match
    TABLE_COUNT,
    EVENT,  # the next one, of this thread
    EVENT_END,  # where its present share of the events ends
    SHARE,  # how many events a thread takes at once
    EVENTS_BEFORE,  # how many there were in earlier batches
    BASE_STEP,  # what the counters of an event begin with is so much more than before
    NEED,  # room for what one event may have found
    FOUND_COUNT,
    LINE_COUNT,  # lines of ``Input`` that are filled
    CHOSEN_COUNT,  # tables that wait for being looked into
    TURN,  # whose the next table is that an event selects
    PREPARED,  # lines for a GPU
    LONGEST,  # the most constraints in one of them
    SCALARS,
) = range(18)

DONE, FULL, ABORTED = range(3)
"""What the kernel returns: there are no more events, room is missing, or a thread failed."""

LINE = 8
"""Integers in a line of memory: words that threads wait for are in lines of their own."""

ARRIVED, STOP, NEXT, ABORT = range(0, 4 * LINE, LINE)
"""Places in ``Meeting.words``: how many threads arrived, all events counted; the event before which
all stop; the next one that nobody has taken; whether a thread failed.
"""
MEETING_SIZE = 4 * LINE


CHOSEN = 64
"""Tables that are chosen before they are looked into: their memory arrives meanwhile."""

LINES = 256
"""Lines of ``Input`` that are filled before they are evaluated, likewise; or as many as an event
has attributes, if these are more.
"""


LEFT = 64
"""Constraints that are left by Bloom filters before they are evaluated, likewise."""


(
    LINE_COPY,  # which copy of FiltersCount and Interfaces, and which Bloom filter
    LINE_KIND,
    LINE_VALUE,
    LINE_START,  # of a string
    LINE_END,
    LINE_FIRST,  # constraint
    LINE_NUM_CONSTR,
    LINE_WIDTH,
) = range(8)
"""What a line of ``Input`` is on a GPU."""


class Owned(NamedTuple):
    """What is reported.

    Attributes:
        owner_of: int32[f]; of each filter, by its number in the tables.
        always: int32[]; owners of filters without constraints, each once.
    """

    owner_of: Int32
    always: Int32


class Events(NamedTuple):
    """A batch, see ``EventBatch``.

    Attributes:
        is_error: uint8[n]; 1 for an event in error.
    """

    event_starts: Int64
    event_names: Int32
    event_kinds: Bytes
    event_values: Int64
    event_string_starts: Int64
    event_string_bytes: Bytes
    is_error: Bytes


class Work(NamedTuple):
    """What is needed while matching.

    Attributes:
        filters_count: int64[f]; how many constraints of each filter are satisfied, on top of a base
            that grows from event to event: what is less is of an earlier one, and means 0.
        interfaces: uint8[2 * w]; a byte for each owner, where they are few; twice, since one half
            is read while the other one is written. Between events they are 0.
        interface_words: uint64[]; the same memory.
        found: int32[]; the owners that this thread found.
        found_counts: int32[n]; how many of them are of each event.
    """

    filters_count: Int64
    interfaces: Bytes
    interface_words: UInt64
    found: Int32
    found_counts: Int32


class Input(NamedTuple):
    """The paper's ``Input``: a line for each table that an event selects, and attribute of it.

    Attributes:
        attributes: int32[l]; which of the batch.
        starts, ends: int32[l]; the constraints of the table that have its name.
        chosen: uint64[2 * CHOSEN]; NameVectors of tables, and their rows as ``Tables.slots`` has
            them.
        of_bit: int32[64]; for each bit of the event's NameVector an attribute of it that has this
            bit, by its place in the event; next_of_bit: int32[l]; for each such place the next one
            with the same bit, or -1.
        left, left_of: int32[LEFT]; constraints that are to be evaluated, and for which attribute;
            then the filters of those that are satisfied.
    """

    attributes: Int32
    starts: Int32
    ends: Int32
    chosen: UInt64
    of_bit: Int32
    next_of_bit: Int32
    left: Int32
    left_of: Int32


class Meeting(NamedTuple):
    """Where threads meet; one for all.

    Attributes:
        words: int64[MEETING_SIZE].
    """

    words: Int64


TABLES, OWNED, EVENTS, WORK, INPUT, MEETING, STATE_SIZE = lay_out(
    SCALARS, Tables, Owned, Events, Work, Input, Meeting
)
