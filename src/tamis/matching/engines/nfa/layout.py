"""The records of states, stacks and occurrences, and the fields of the kernels' state."""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel.record import lay_out

STAR, BELOW, ACCEPTS, WATCHED, MASK, _, PARENT, CODE = range(8)
RECORD = 8
"""A state is a record of eight int32, half a cache line:

``STAR``      the state behind ``*``, or -1.
``BELOW``     its ``//``-state, where the descendant steps from it begin, or -1.
``ACCEPTS``   the first of the sets of queries that it answers, or -1.
``WATCHED``   how many ask for the nodes that reach it.
``MASK``      two words of 32 bits: by label modulo 64, whether a transition may be there.
``PARENT``    the state of the steps before the last one; of a ``//``-state, what it is below of.
``CODE``      the last step, ``label << 1 | descends``; -1 of the start, and of a ``//``-state.
"""

ENTRY = 4
"""An active state on a stack: its number, ``STAR``, and its mask, so that few are looked up."""

HERE_FROM, PENDING_FROM, OCCURRENCES_FROM, OCCURRENCES_TO = range(4)
LEVEL = 4
"""An open element: how full the stacks were before it, and which occurrences it is."""

STATE, START, END, OUTER, ABOVE = range(5)
OCCURRENCE = 5
"""That an element reached a watched state:

``STATE``  the state.
``START``  the start event; of a document node, one less than its first event.
``END``    the end event; of a document node, one more than its last.
``OUTER``  the occurrence of the same state at the nearest element around, or -1.
``ABOVE``  the occurrence of the state's parent at the nearest element around, or -1.
"""

(
    DOCUMENT,  # the next of the batch
    EVENT,  # the next of the batch
    IS_OPEN,  # whether the document has begun
    DEPTH,  # the level of the innermost element, 0 for the document
    HERE_USED,
    PENDING_USED,
    OCCURRENCES_USED,
    FOUND_USED,
    SERIAL,  # of the document, of all that were ever matched
    SETS,  # how many there are
    IS_WATCHING,  # whether any state is watched
    NUMBERS,
) = range(12)
"""The numbers at the beginning of the kernels' state, kept between calls."""


class Read(NamedTuple):
    """What a run reads of the program, of the batch, and of ``ElementLabels``.

    Attributes:
        records: int32[RECORD * states].
        table: a pair table: from a state and a label to a state.
        next_set: int32[sets]; the next set that the same state answers, or -1.
    """

    records: Int32
    table: Int64
    next_set: Int32
    document_starts: Int64
    tags: Int32
    labels: Int32
    namespace_labels: Int32


class Work(NamedTuple):
    """What a run writes.

    Attributes:
        here: int32[ENTRY * n]; the states that each open element reached, from which child steps
            lead on, element after element.
        pending: int32[ENTRY * n]; the ``//``-states that are active.
        targets: int32[n]; the states that an element reaches.
        probes: int32[n]; states from which they may be reached.
        is_pending: uint8[states].
        reached_in: int32[states]; the serial number of the last document that reached a state.
        tops: int64[states]; the innermost occurrence of a watched state, or -1.
        found: int32[n]; the sets found, document after document.
        found_starts: int64[d + 1]; those of document i begin at ``found_starts[i]``.
        occurrences: int64[OCCURRENCE * n]; by start event, ascending.
    """

    here: Int32
    pending: Int32
    levels: Int64
    targets: Int32
    probes: Int32
    is_pending: Bytes
    reached_in: Int32
    tops: Int64
    found: Int32
    found_starts: Int64
    occurrences: Int64


class One(NamedTuple):
    """What one document is borrowed from: see ``tamis.documents.parser.Recorded``."""

    recorded: Int64
    places: Int64


READ, WORK, ONE, STATE_SIZE = lay_out(NUMBERS, Read, Work, One)
