"""Where the kernels that match find everything: an array of integers, the state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel.record import fields
from tamis.events.engines.signature.program import Cells, Ranks, Tests, UInt64

(
    EVENT,  # the next one to be matched
    END,  # of the events
    STAMP,  # the number of the present event among all that were ever begun
    FOUND_COUNT,
    CANDIDATE_COUNT,
    ALWAYS,  # the distinct filter without constraints, or -1
    ARE_INTERFACES,  # whether owners are reported, each once an event
    OWNERS,  # how many have filters that can match
    LEFT,  # how many of them are not reported yet
    TABLE_SHIFT,
    BLOOM_SHIFT,
    SIZE_MAX,  # of signatures
    KEYS_START,  # of the present event, in its tile
    KEYS_END,
    SCALARS,
) = range(15)

DONE, FULL_FOUND = range(2)
"""What the kernel returns: all events are matched, or room is missing for the next ones."""

TILE = 16
"""So many events at most go through each step before any goes through the next one."""
CANDIDATES = 1 << 16
ENUMERATED_MAX = 1 << 15
"""So many subsets of an event's keys at most are looked up."""
ENUMERATED_KEYS_MAX = 64
FEW_KEYS = 8
"""Of so few keys, the sums of all subsets are made, where most of these are wanted."""

NO_CELL = -1
ABSENT = -1
"""The rank of a key that the event does not have."""


class Events(NamedTuple):
    """A batch; see ``EventBatch``.

    Attributes:
        is_bad: uint8[n]; events in error, which nothing matches.
    """

    event_starts: Int64
    names: Int32
    kinds: Bytes
    values: Int64
    string_starts: Int64
    string_bytes: Bytes
    is_bad: Bytes


class Reported(NamedTuple):
    """The owners of distinct filters.

    Attributes:
        starts: int64[d + 1]; numbers: int32[].
        only: int32[d] or []; where they are few, the owner of those that have but one, or -1: it is
            found with one access to memory less.
    """

    starts: Int64
    numbers: Int32
    only: Int32


class Work(NamedTuple):
    """What is needed while matching.

    Attributes:
        found_starts: int64[n + 1]; found: int32[]; what each event matched.
        ranks: int32[k]; the rank of the present event's value in each key, or ABSENT.
        tile_starts: int64[TILE + 1]; tile_keys, tile_ranks: int32[]; the keys of the events of a
            tile, and the ranks of their values; tile_places: int64[]; their attributes, ``~`` of
            those of keys that accept anything. Events without candidates have none.
        candidate_starts: int64[TILE + 1]; candidates: uint64[]; hashes of cells that there may be;
            found_cells: int32[]; where these are, or NO_CELL.
        is_wide: uint8[TILE]; events with so many keys that their subsets are not looked up.
        sums: uint64[]; of the hashes of subsets; chosen: int32[]; a subset while it is made.
        few_subsets: uint8[]; the subsets of FEW_KEYS whose sizes there are, as masks, ascending;
            few_counts: int64[FEW_KEYS + 1]; how many of these are of so many keys, or -1 where it
            is better to make them one by one.
        own_ranks: int32[]; those that a cell asks for.
        sizes: uint8[]; see ``SignatureProgram``; subsets: int64[]; how many subsets of up to
            SIZE_MAX keys there are of so many keys.
        reported_in: int64[owners]; the last event that each was reported for.
    """

    found_starts: Int64
    found: Int32
    ranks: Int32
    tile_starts: Int64
    tile_keys: Int32
    tile_ranks: Int32
    tile_places: Int64
    candidate_starts: Int64
    candidates: UInt64
    found_cells: Int32
    is_wide: Bytes
    sums: UInt64
    chosen: Int32
    few_subsets: Bytes
    few_counts: Int64
    own_ranks: Int32
    sizes: NDArray[np.uint8]
    subsets: Int64
    reported_in: Int64


RANKS = fields(Ranks, SCALARS)
CELLS = fields(Cells, RANKS.tables + 2)
TESTS = fields(Tests, CELLS.under_keys + 2)
EVENTS = fields(Events, TESTS.string_bytes + 2)
REPORTED = fields(Reported, EVENTS.is_bad + 2)
WORK = fields(Work, REPORTED.only + 2)
STATE_SIZE = WORK.reported_in + 2
