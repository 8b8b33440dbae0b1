"""Where kernels find numbers and arrays: places in one array (tamis.core.kernel.record)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel.record import fields
from tamis.matching.engines.automaton.cache import CacheArrays, FactSets, Lists, Pairs, Scratch
from tamis.matching.engines.automaton.program import ProgramArrays


class Events(NamedTuple):
    """What is read of a batch (see ``DocumentBatch``), and what symbols names are.

    Attributes:
        elements, attributes: int32[names]; the symbol of an element, or an attribute, by name.
    """

    document_starts: Int64
    tags: Int32
    attribute_event: Int64
    attribute_name: Int32
    value_start: Int64
    value_end: Int64
    attribute_values: Bytes
    text_event: Int64
    text_start: Int64
    text_end: Int64
    text_values: Bytes
    misc_starts: Int64
    misc_event: Int64
    misc_text: Int64
    misc_start: Int64
    misc_end: Int64
    misc_values: Bytes
    elements: Int32
    attributes: Int32


class Progress(NamedTuple):
    """Where a scan is, and what it found.

    Attributes:
        outer_states, outer_gathered, symbols: int32[depth]; of the open elements: the state around
            each and what was gathered there, and its symbol.
        outer_texts: int64[depth]; how many text nodes there were before each of them.
        text: uint8[]; room for a string without its white space.
        number: float64[1]; the number that was read last.
        found_starts: int64[documents + 1]; found: int32[]; the answers of each document.
        seen: int64[answers]; the stamp of the last document that had an answer.
        overlay_facts, overlay_levels: int32[]; the sparse facts of the open elements, and how deep
            each of these is; the innermost one's are the last.
        met_starts, met_answers, met_places: where the answers of states were met: ``Occurrences``.
    """

    outer_states: Int32
    outer_gathered: Int32
    symbols: Int32
    outer_texts: Int64
    text: Bytes
    number: NDArray[np.float64]
    found_starts: Int64
    found: Int32
    seen: Int64
    overlay_facts: Int32
    overlay_levels: Int32
    met_starts: Int64
    met_answers: Int32
    met_places: Int64


# The scalars of a scan.
(DOCUMENT, EVENT, IS_OPEN, DEPTH, CURRENT, GATHERED, ATTRIBUTE_AT, TEXT_AT, MISC_AT, FOUND_COUNT,
 STAMP, REGAINED, WIDTH, HAS_COUNTERS, HAS_LEAVES, TAKEN, TURNED_TO, QUERIES, COUNTED_FROM,
 TRUE_AT_MOST, LOOK_AT, IS_SETTLED, NUMBER_BUFFER, NUMBER_START, NUMBER_END,
 DOCUMENT_TEXT, TEXT_NEEDED, NOTES, MET_COUNT, OVERLAID, LEVEL, SPENT,
 SCALARS) = range(33)  # fmt: skip
# Values of NOTES: which of the places where answers of states are met are noted.
NOTES_NONE, NOTES_FIRST, NOTES_ALL = range(3)
# What ``scan`` returns: what has to grow, or that Python has to read a number; negated, what the
# functions that add to the cache return.
(DONE, FULL_STATES, FULL_PENDINGS, FULL_FACTS, FULL_ANSWERS, FULL_CLOSES, FULL_MERGES, FULL_FOUND,
 FULL_DEPTH, FULL_TEXT, FULL_OVERLAY, FULL_REACHED, ASKS_NUMBER) = range(13)  # fmt: skip

PROGRAM = fields(ProgramArrays, SCALARS)


def _cache_places(start: int) -> Iterator[Any]:
    place = start
    for kind in get_type_hints(CacheArrays).values():
        if kind in (Lists, FactSets, Pairs):
            yield fields(kind, place)
            place += 2 * len(kind._fields)
        else:
            yield place
            place += 2


CACHE: Any = CacheArrays(*_cache_places(PROGRAM[-1] + 2))
SCRATCH = fields(Scratch, CACHE[-1][-1] + 2)
EVENTS = fields(Events, SCRATCH[-1] + 2)
PROGRESS = fields(Progress, EVENTS[-1] + 2)
STATE_SIZE = PROGRESS[-1] + 2
