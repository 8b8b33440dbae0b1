"""Deterministic automata in kernels: many of them in one set of arrays, run over bytes.

:mod:`..automata` makes them. A *row* is the index of a state's first transition, so a step is one
addition and one load. Rows 0 and 1 are those of no automaton: no text can match any more, or all
do. An automaton that has come to one of these reads no further.

>>> from tamis.core.automata import build
>>> from tamis.core.nfa import Characters
>>> dfas = packed([build(Characters(((97, 122),))), build(Characters(((48, 57),)))])
>>> data, starts = np.frombuffer(b"a7A7", np.uint8), np.array([0, 1, 2, 4])  # three texts
>>> found = np.zeros((2, 3), np.uint8)
>>> for number in (0, 1):
...     run_dfa(dfas, number, data, starts, found[number])
>>> found.tolist()
[[1, 0, 0], [0, 1, 1]]

When not to use it: for strings that are equal to a constant, begin or end with it, or contain it.
A hash table and :mod:`.ahocorasick` look for any number of these at once; here, each automaton
reads the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, starts_of
from tamis.core.errors import UsageError
from tamis.core.kernel.declare import inlined, kernel

if TYPE_CHECKING:
    from tamis.core.automata import Dfa


_TRANSITIONS_MAX = 1 << 26


class Dfas(NamedTuple):
    """Automata, by number.

    Attributes:
        classes: uint8[automata * 256]; the class of each byte.
        transitions: int32[]; the row behind each class, and behind the end of the text.
        rows: int32[automata]; the row of the first state.
        ends: int32[automata]; which transition of a row is for the end of the text.
    """

    classes: Bytes
    transitions: Int32
    rows: Int32
    ends: Int32


def packed(dfas: Sequence[Dfa]) -> Dfas:
    """The arrays of some automata.

    Raises:
        UsageError: they have more than 2**26 transitions.
    """
    starts = starts_of(
        [2, *((len(dfa.transitions) - 2) * dfa.transitions.shape[1] for dfa in dfas)]
    )
    if starts[-1] > _TRANSITIONS_MAX:
        message = f"the automata of {len(dfas):,} patterns are too large together"
        raise UsageError(f"{message}: divide the subscriptions")
    transitions = np.zeros(starts[-1], np.int32)
    rows, ends = np.zeros((2, len(dfas)), np.int32)
    for number, dfa in enumerate(dfas):
        states, width = dfa.transitions.shape
        row_of = (np.arange(states) - 2) * width + starts[number + 1]
        row_of[:2] = 0, 1
        transitions[starts[number + 1] : starts[number + 2]] = row_of[dfa.transitions[2:]].reshape(
            -1
        )
        rows[number], ends[number] = row_of[dfa.start], width - 1
    classes = np.concatenate([np.zeros(0, np.uint8), *(dfa.classes for dfa in dfas)])
    return Dfas(classes, transitions, rows, ends)


@inlined
def accepts(
    classes: Bytes, transitions: Int32, rows: Int32, ends: Int32,
    number: int, data: Bytes, start: int, end: int,
) -> bool:  # fmt: skip
    """Whether a text matches an automaton; the first four are the arrays of ``Dfas``."""
    row, first = np.int64(rows[number]), number * 256
    for place in range(start, end):
        if row < 2:
            return row == 1
        row = np.int64(transitions[row + classes[first + data[place]]])
    if row >= 2:
        row = np.int64(transitions[row + ends[number]])
    return row == 1


@kernel
def run_dfa(dfas: Dfas, number: int, data: Bytes, starts: Int64, found: Bytes) -> None:
    """Write down which texts match an automaton, 1 for those that do.

    Args:
        starts: int64[texts + 1]; text i is ``data[starts[i]:starts[i + 1]]``.
    """
    for text in range(len(found)):
        found[text] = accepts(
            dfas.classes, dfas.transitions, dfas.rows, dfas.ends,
            number, data, starts[text], starts[text + 1],
        )  # fmt: skip
