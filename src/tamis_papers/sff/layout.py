"""Where the kernel that matches finds everything: an array of integers, the state."""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel.record import lay_out
from tamis_papers.sff.program import Index

(
    FIRST,  # the first event, and the one behind the last
    END,
    EVENT,  # the next one to be matched
    STAMP,  # the number of the present event among all that were ever begun
    BASE,  # what the counters of this event begin from
    STEP,  # how far a counter may get beyond that
    SHIFT,
    PART_NODE,
    EXISTS_NODE,
    PRUNES,  # whether owners are marked, and then passed over
    OWNERS,  # how many can be marked, and how many of them are not yet
    LEFT,
    ALWAYS,  # the set of owners of filters without constraints; -1 where there are none
    FOUND_COUNT,
    FOUND_MAX,  # what one event can find
    SCALARS,
) = range(16)


class Events(NamedTuple):
    """A batch.

    Attributes:
        starts, names, kinds, values, string_starts, string_bytes: as in ``EventBatch``.
        in_error: uint8[n]; whether each event is.
    """

    starts: Int64
    names: Int32
    kinds: Bytes
    values: Int64
    string_starts: Int64
    string_bytes: Bytes
    in_error: Bytes


class Reported(NamedTuple):
    """What is reported, for all threads.

    Attributes:
        owners: int32[places]; of filters.
        block_owners: int32[blocks]; the one owner of all filters in each block, where it is marked.
        always: int32[]; the owners of filters without constraints, each once.
    """

    owners: Int32
    block_owners: Int32
    always: Int32


class Work(NamedTuple):
    """What is needed while matching.

    Attributes:
        counters: int32[places]; of those less than ``BASE``, nothing was counted in this event.
        marked_in: int64[owners]; the last event in which each was marked.
        found_starts: int64[n + 1]; found: int32[]; what each event found.
    """

    counters: Int32
    marked_in: Int64
    found_starts: Int64
    found: Int32


INDEX, EVENTS, REPORTED, WORK, STATE_SIZE = lay_out(SCALARS, Index, Events, Reported, Work)
