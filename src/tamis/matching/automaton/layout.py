"""Where kernels find their arrays: one array of addresses, since to hand each over takes Numba long.

All places are even; behind an address is the length of the array. ``Lists`` and ``Pairs`` take
several places, and are named by the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import Int32, Int64
from tamis.documents.tokenizer.vectors import intrinsic, populate_array, types
from tamis.matching.automaton.memo import MemoArrays, Scratch
from tamis.matching.automaton.program import ProgramArrays

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]


class Events(NamedTuple):
    """What is read of a batch (see ``EventBatch``), and what symbols names are.

    Attributes:
        elements, attributes: int32[names]; the symbol of an element, or an attribute, by name.
    """

    document_starts: Int64
    tags: Int32
    attribute_event: Int64
    attribute_name: Int32
    text_event: Int64
    misc_starts: Int64
    misc_event: Int64
    misc_text: Int64
    elements: Int32
    attributes: Int32


class Progress(NamedTuple):
    """Where a scan is, and what it found.

    Attributes:
        outer_states, outer_gathered, symbols: int32[depth]; of the open elements: the state around
            each and what was gathered there, and its symbol.
        found_starts: int64[documents + 1]; found: int32[]; the answers of each document.
        seen: int64[answers]; the stamp of the last document that had an answer.
    """

    outer_states: Int32
    outer_gathered: Int32
    symbols: Int32
    found_starts: Int64
    found: Int32
    seen: Int64


# The scalars of a scan.
(DOCUMENT, EVENT, IS_OPEN, DEPTH, CURRENT, GATHERED, ATTRIBUTE_AT, TEXT_AT, MISC_AT, FOUND_COUNT,
 STAMP, REGAINED, EPOCH, WIDTH, HAS_NOTES, HAS_COUNTERS, HAS_LEAVES, SCALARS) = range(18)  # fmt: skip

# Parts of lists and of pairs, behind their first place.
_STARTS, _MEMBERS, _HASHES, _SLOTS, _COUNTS, _LISTS_END = range(0, 12, 2)
_KEYS, _VALUES, _PAIR_COUNTS, _PAIRS_END = range(0, 8, 2)

# The arrays of the program, in their order,
(CHILDREN, DESCENDANTS, TESTS, WILDCARDS, ACCEPT_STARTS, ACCEPTED, RULE_STARTS, RULES,
 FORMULA_STARTS, FORMULA_CODE, FORMULA_KINDS, WATCHES, FACT_KINDS, FACT_COUNTERS, COUNTER_BASES,
 COUNTER_LIMITS, NEEDS_STARTS, NEEDS, CHAIN_STARTS, CHAIN_NUMBERS, STAGE_STARTS, STAGES,
 CHAIN_FACTS, _PROGRAM_END) = range(SCALARS + SCALARS % 2, SCALARS + SCALARS % 2 + 48, 2)  # fmt: skip
# of the memo,
STATES = _PROGRAM_END
INFO = STATES + _LISTS_END
TABLE = INFO + 2
PENDINGS = TABLE + 2
PENDING_INFO = PENDINGS + _LISTS_END
NEEDED = PENDING_INFO + 2
FACTS = NEEDED + _LISTS_END
ANSWERS = FACTS + _LISTS_END
CLOSES = ANSWERS + _LISTS_END
MERGES = CLOSES + _PAIRS_END
_MEMO_END = MERGES + _PAIRS_END
# of the room for work,
(NODES_ROOM, SOURCES_ROOM, FACTS_ROOM, ANSWERS_ROOM, NODE_MARKS, SOURCE_MARKS, FACT_MARKS,
 RESULT_MARKS, MERGED_MARKS, ANSWER_MARKS, COUNTER_MARKS, COUNTER_VALUES,
 _SCRATCH_END) = range(_MEMO_END, _MEMO_END + 26, 2)  # fmt: skip
# of the events,
(DOCUMENT_STARTS, TAGS, ATTRIBUTE_EVENT, ATTRIBUTE_NAME, TEXT_EVENT, MISC_STARTS, MISC_EVENT,
 MISC_TEXT, ELEMENTS, ATTRIBUTES, _EVENTS_END) = range(_SCRATCH_END, _SCRATCH_END + 22, 2)  # fmt: skip
# and of the progress.
(OUTER_STATES, OUTER_GATHERED, SYMBOLS, FOUND_STARTS, FOUND, SEEN,
 PLACES) = range(_EVENTS_END, _EVENTS_END + 14, 2)  # fmt: skip

_FIRSTS: dict[type, int] = {
    ProgramArrays: CHILDREN,
    MemoArrays: STATES,
    Scratch: NODES_ROOM,
    Events: DOCUMENT_STARTS,
    Progress: OUTER_STATES,
}


def bind(arrays: ProgramArrays | MemoArrays | Scratch | Events | Progress, state: Int64) -> None:
    """Note where arrays are; somebody must keep them."""
    place = _FIRSTS[type(arrays)]
    for array in _flat(arrays):
        state[place] = array.__array_interface__["data"][0]
        state[place + 1] = array.size
        place += 2


def _array(of: Any, part: int = 0) -> Any:
    """An intrinsic that makes an array of the address and the length at a place, and a part."""
    result, state = types.Array(of, 1, "C"), types.Array(types.int64, 1, "C")

    def generate(context: Any, builder: Any, _signature: Any, values: list[Any]) -> Any:
        places = context.make_array(state)(context, builder, values[0]).data
        place = builder.gep(places, [builder.add(values[1], values[1].type(part))])
        length = builder.load(builder.gep(place, [values[1].type(1)]))
        item = context.get_data_type(of)
        size = context.get_constant(types.intp, context.get_abi_sizeof(item))
        array = context.make_array(result)(context, builder)
        populate_array(
            array,
            data=builder.inttoptr(builder.load(place), item.as_pointer()),
            shape=[length],
            strides=[size],
            itemsize=size,
            meminfo=None,
        )
        return array._getvalue()

    return result(state, types.int64), generate


def _flat(arrays: Sequence[Any]) -> Iterator[NDArray[Any]]:
    for part in arrays:
        if isinstance(part, np.ndarray):
            yield part
        else:
            yield from part


@intrinsic
def int32s(_typing: Any, _state: Any, _place: Any) -> Any:
    """The array of a place."""
    return _array(types.int32)


@intrinsic
def int64s(_typing: Any, _state: Any, _place: Any) -> Any:
    """The array of a place."""
    return _array(types.int64)


@intrinsic
def bytes(_typing: Any, _state: Any, _place: Any) -> Any:
    """The array of a place."""
    return _array(types.uint8)


@intrinsic
def starts(_typing: Any, _state: Any, _place: Any) -> Any:
    """Where each of some lists begins."""
    return _array(types.int64, _STARTS)


@intrinsic
def members(_typing: Any, _state: Any, _place: Any) -> Any:
    """The members of some lists, behind each other."""
    return _array(types.int32, _MEMBERS)


@intrinsic
def hashes(_typing: Any, _state: Any, _place: Any) -> Any:
    """The hash of each of some lists."""
    return _array(types.uint64, _HASHES)


@intrinsic
def slots(_typing: Any, _state: Any, _place: Any) -> Any:
    """The hash table of some lists."""
    return _array(types.int32, _SLOTS)


@intrinsic
def counts(_typing: Any, _state: Any, _place: Any) -> Any:
    """How many lists, and members, there are."""
    return _array(types.int64, _COUNTS)


@intrinsic
def keys(_typing: Any, _state: Any, _place: Any) -> Any:
    """The keys of pairs."""
    return _array(types.uint64, _KEYS)


@intrinsic
def values(_typing: Any, _state: Any, _place: Any) -> Any:
    """The values of pairs."""
    return _array(types.int64, _VALUES)


@intrinsic
def pair_counts(_typing: Any, _state: Any, _place: Any) -> Any:
    """How many pairs there are."""
    return _array(types.int64, _PAIR_COUNTS)
