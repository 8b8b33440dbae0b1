"""Counters, whose values are facts, and the chains of stages that positions are."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import int32s, int64s, uint64s
from tamis.matching.engines.automaton.kernels.facts import (
    add_set,
    holds_fact,
    known_told,
    remove_set,
    tell,
    tell_word,
)
from tamis.matching.engines.automaton.layout import CACHE, PROGRAM, SCRATCH
from tamis.matching.engines.automaton.program import OF_DESCENDANT, OF_STAGE, OF_VALUE


@inlined
def counter_of(state: Int64, fact: int) -> int:
    """The counter whose value a fact says."""
    start = 64 * int64s(state, PROGRAM.fact_ends)[OF_DESCENDANT]
    return np.int64(int32s(state, PROGRAM.fact_counters)[fact - start])


@called
def set_counts(state: Int64, number: int) -> None:
    """Add what the facts of a set say to their counters, up to the limits."""
    offsets, start = int64s(state, CACHE.facts.starts), int64s(state, PROGRAM.fact_ends)
    places, words = int32s(state, CACHE.facts.places), uint64s(state, CACHE.facts.words)
    values, limits = int32s(state, SCRATCH.counter_values), int32s(state, PROGRAM.counter_limits)
    bases = int32s(state, PROGRAM.counter_bases)
    for i in range(offsets[number], offsets[number + 1]):
        word = words[i] if places[i] >= start[OF_DESCENDANT] else U(0)
        while word != U(0):
            fact = 64 * np.int64(places[i]) + first(word)
            word &= word - U(1)
            counter = counter_of(state, fact)
            value = values[counter] + fact - bases[counter]
            values[counter] = min(value, np.int64(limits[counter]))


@called
def forget_counts(state: Int64, number: int) -> None:
    """Set the counters of which a set says something to 0."""
    offsets, start = int64s(state, CACHE.facts.starts), int64s(state, PROGRAM.fact_ends)
    places, words = int32s(state, CACHE.facts.places), uint64s(state, CACHE.facts.words)
    values = int32s(state, SCRATCH.counter_values)
    for i in range(offsets[number], offsets[number + 1]):
        word = words[i] if places[i] >= start[OF_DESCENDANT] else U(0)
        while word != U(0):
            values[counter_of(state, 64 * np.int64(places[i]) + first(word))] = 0
            word &= word - U(1)


@called
def tell_count(state: Int64, counter: int, source: int) -> None:
    """Note the fact that says how much an element adds to a counter, if it does."""
    value = np.int64(1)
    if source >= 0:
        value = np.int64(int32s(state, SCRATCH.counter_values)[source])
    if value:
        limit = np.int64(int32s(state, PROGRAM.counter_limits)[counter])
        tell(state, int32s(state, PROGRAM.counter_bases)[counter] + min(value, limit))


@called
def merge_counts(state: Int64, gathered: int, result: int) -> int:
    """The set of what is gathered with a child's result where something is counted, or -1."""
    facts = uint64s(state, SCRATCH.gathered)
    set_counts(state, gathered)
    set_counts(state, result)
    add_set(state, facts, result)
    lead_through_chains(state, result, True)
    remove_set(state, facts, result)
    collect(state, gathered)
    collect(state, result)
    forget_counts(state, gathered)
    forget_counts(state, result)
    lead_through_chains(state, result, False)
    return known_told(state)


@called
def collect(state: Int64, number: int) -> None:
    """Tell the facts of a set, counters with their present value, but not the stages."""
    offsets, ends = int64s(state, CACHE.facts.starts), int64s(state, PROGRAM.fact_ends)
    places, words = int32s(state, CACHE.facts.places), uint64s(state, CACHE.facts.words)
    values, bases = int32s(state, SCRATCH.counter_values), int32s(state, PROGRAM.counter_bases)
    for i in range(offsets[number], offsets[number + 1]):
        place, word = np.int64(places[i]), words[i]
        if place >= ends[OF_DESCENDANT]:
            while word != U(0):
                counter = counter_of(state, 64 * place + first(word))
                tell(state, np.int64(bases[counter]) + values[counter])
                word &= word - U(1)
        elif place >= ends[OF_STAGE]:
            tell_word(state, place, word)


@called
def lead_through_chains(state: Int64, result: int, is_forward: bool) -> None:
    """Lead a child through the chains that begin with one of its facts, or set these back to 0."""
    offsets, ends = int64s(state, CACHE.facts.starts), int64s(state, PROGRAM.fact_ends)
    places, words = int32s(state, CACHE.facts.places), uint64s(state, CACHE.facts.words)
    starts, numbers = int64s(state, PROGRAM.chain_starts), int32s(state, PROGRAM.chain_numbers)
    for i in range(offsets[result], offsets[result + 1]):
        word = words[i] if ends[OF_VALUE] <= places[i] < ends[OF_STAGE] else U(0)
        while word != U(0):
            fact = 64 * (places[i] - ends[OF_VALUE]) + first(word)
            word &= word - U(1)
            for j in range(starts[fact], starts[fact + 1]):
                if not is_forward:
                    set_back(state, numbers[j])
                elif lead(state, numbers[j]):
                    tell_numbered(state, result, numbers[j])


@called
def lead(state: Int64, chain: int) -> bool:
    """Lead a child through the stages of a chain: whether it passes them all."""
    offsets, stages = int64s(state, PROGRAM.stage_starts), int32s(state, PROGRAM.stages)
    facts, values = uint64s(state, SCRATCH.gathered), int32s(state, SCRATCH.counter_values)
    for i in range(offsets[chain], offsets[chain + 1]):
        fact, counter, number = stages[3 * i], stages[3 * i + 1], stages[3 * i + 2]
        if not holds_fact(facts, fact) or values[counter] >= number:
            return False
        values[counter] += 1
        tell(state, int32s(state, PROGRAM.counter_bases)[counter] + values[counter])
        if values[counter] < number:
            return False
    return True


@called
def tell_numbered(state: Int64, result: int, chain: int) -> None:
    """Tell what follows of a child that passed a chain, by what else it told."""
    offsets, ends = int64s(state, CACHE.facts.starts), int64s(state, PROGRAM.fact_ends)
    places, words = int32s(state, CACHE.facts.places), uint64s(state, CACHE.facts.words)
    starts, lasts = int64s(state, PROGRAM.last_starts), int32s(state, PROGRAM.lasts)
    for i in range(offsets[result], offsets[result + 1]):
        word = words[i] if ends[OF_VALUE] <= places[i] < ends[OF_STAGE] else U(0)
        while word != U(0):
            fact = 64 * (places[i] - ends[OF_VALUE]) + first(word)
            word &= word - U(1)
            for j in range(starts[fact], starts[fact + 1]):
                if lasts[2 * j] == chain:
                    tell(state, np.int64(lasts[2 * j + 1]))


@called
def set_back(state: Int64, chain: int) -> None:
    """Set the counters of a chain to 0."""
    offsets, stages = int64s(state, PROGRAM.stage_starts), int32s(state, PROGRAM.stages)
    for i in range(offsets[chain], offsets[chain + 1]):
        int32s(state, SCRATCH.counter_values)[stages[3 * i + 1]] = 0
