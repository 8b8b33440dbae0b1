"""Random bits for kernels, and the sets of constraints or attributes that filters and events are.

The bits are the same on every machine, since they are made of integers alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.kernel import inlined, kernel
from tamis.core.kernel.declare import Rows
from tamis.events.model import INTEGER, STRING

Words = NDArray[np.uint64]


@inlined
def draw(random: Words) -> np.uint64:
    """The next 64 random bits: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def below(random: Words, count: int) -> int:
    """One of 0, …, count - 1, each as likely as the others to some 2**-32; count < 2**31."""
    return np.int64(((draw(random) >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32))


Int64 = NDArray[np.int64]

# Places in ``random``.
NEXT, SEED, RANDOM_SIZE = 0, 1, 2

_SHARE_BITS = 20
SHARES = 1 << _SHARE_BITS
"""A share is a number of these."""

_TRIES = 64


class Options(NamedTuple):
    """How each set is drawn.

    Attributes:
        least: of its elements.
        most: of them.
        names: how many names there are.
        strings: the share of the names that stand for strings.
        values: how many values there are.
    """

    least: int
    most: int
    names: int
    strings: int
    values: int


class Drawn(NamedTuple):
    """What is drawn: those of set i are from ``starts[i]`` on.

    Attributes:
        starts: int64[sets + 1]; the first is set.
        names: int32[]; with ``Options.most`` for each set there is room enough, as below.
        kinds: uint8[].
        operators: uint8[]; numbers of columns of the table of operators.
        ranks: int64[]; of values, from 0.
    """

    starts: Int64
    names: NDArray[np.int32]
    kinds: NDArray[np.uint8]
    operators: NDArray[np.uint8]
    ranks: Int64


@kernel
def draw_sets(
    options: Options,
    thresholds: NDArray[np.uint32],
    aliases: NDArray[np.int32],
    operators: Rows[np.int64],
    first: int,
    random: Words,
    drawn: Drawn,
) -> None:
    """Draw sets, those from the number ``first`` on; each depends on its number alone.

    Args:
        thresholds: of Walker's method, for the names; see ``Values.alias_table``.
        aliases: of it.
        operators: int64[2, n], of constraints with numbers and with strings: up to which of 2**32
            equally likely draws each operator is taken.
    """
    place = drawn.starts[0]
    for number in range(len(drawn.starts) - 1):
        random[NEXT] = random[SEED] + np.uint64(first + number) * np.uint64(0x9E3779B97F4A7C15)
        random[NEXT] = draw(random)
        begin = place
        end = begin + options.least + below(random, options.most - options.least + 1)
        is_distinct = end - begin <= options.names
        for place in range(begin, end):
            name = _name(random, thresholds, aliases)
            if is_distinct:
                name = _other_name(random, thresholds, aliases, drawn.names, begin, place, name)
            drawn.names[place] = name
            is_string = _strings_before(options, name + 1) > _strings_before(options, name)
            drawn.kinds[place] = STRING if is_string else INTEGER
            bits = draw(random)
            half, low = np.int64(bits >> np.uint64(32)), bits & np.uint64(0xFFFFFFFF)
            column = 0
            while half >= operators[np.int64(is_string), column]:
                column += 1
            drawn.operators[place] = column
            drawn.ranks[place] = np.int64((low * np.uint64(options.values)) >> np.uint64(32))
        place = end
        drawn.starts[number + 1] = end


@inlined
def _strings_before(options: Options, name: int) -> int:
    """How many of the names before one stand for strings: as evenly among them as can be."""
    return (name * options.strings) >> _SHARE_BITS


@inlined
def _name(random: Words, thresholds: NDArray[np.uint32], aliases: NDArray[np.int32]) -> int:
    bits = draw(random)
    name = np.int64(((bits >> np.uint64(32)) * np.uint64(len(aliases))) >> np.uint64(32))
    if np.int64(bits & np.uint64(0xFFFFFFFF)) > thresholds[name]:
        name = np.int64(aliases[name])
    return name


@inlined
def _other_name(
    random: Words,
    thresholds: NDArray[np.uint32],
    aliases: NDArray[np.int32],
    names: NDArray[np.int32],
    begin: int,
    end: int,
    name: int,
) -> int:
    """A name that is not among those from ``begin`` on: this one, or drawn again.

    Where nearly all draws are of a few names, it is in the end the next one that is free.
    """
    tries = 0
    while _is_among(names, begin, end, name):
        tries += 1
        name = _name(random, thresholds, aliases) if tries < _TRIES else (name + 1) % len(aliases)
    return name


@inlined
def _is_among(names: NDArray[np.int32], begin: int, end: int, name: int) -> bool:
    place = begin
    while place < end and names[place] != name:
        place += 1
    return place < end
