"""String values: looked up among the constants that they are compared with, not tried one by one.

A value of a node matters through what is true of it: which constant it is, which ones it begins
with or contains, between which thresholds it lies as a number. These are facts about the node
itself; they join the child facts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, Words
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.ahocorasick import next_output
from tamis.core.kernel.bits import first
from tamis.core.kernel.record import float64s, int32s, int64s, uint8s, uint64s
from tamis.core.kernel.table import GOLDEN, prober
from tamis.core.kernel.text import is_space, parse_number, same_bytes
from tamis.matching.engines.automaton import layout as at
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels import facts as sets
from tamis.matching.engines.automaton.kernels.ends import merge_facts
from tamis.matching.engines.automaton.kernels.overlay import is_sparse, lay_derived, lay_over

TAG = ~U(0) << U(32)
"""The bits of a hash that a slot has."""


@called
def read_value(
    state: Int64, current: int, child_facts: int, buffer: int, start: int, end: int
) -> int:
    """The child facts, with what is true of a string value; or a status, negated.

    The value is in a buffer, given by its field, from ``start`` to ``end``.
    """
    overlaid = state[at.OVERLAID]
    offsets, places, words = sets.fact_sets(state)
    info = int32s(state, at.CACHE.state_info)
    unconditional = np.int64(info[current * at.STATE_COLUMNS + at.UNCONDITIONAL_FACTS])
    last = int64s(state, at.PROGRAM.fact_ends)[pr.OF_GROUP]
    i = offsets[unconditional]
    while child_facts >= 0 and i < offsets[unconditional + 1] and places[i] < last:
        groups = words[i]
        while child_facts >= 0 and groups != U(0):
            row = (64 * np.int64(places[i]) + first(groups)) * pr.GROUP_COLUMNS
            groups &= groups - U(1)
            child_facts = read_function(state, row, child_facts, buffer, start, end)
        i += 1
    if child_facts < 0:
        state[at.OVERLAID] = overlaid  # all is read again
    return child_facts


@called
def read_function(
    state: Int64, row: int, child_facts: int, buffer: int, start: int, end: int
) -> int:
    """The child facts, with what is true of a function of a value; or a status, negated."""
    function = np.int64(int32s(state, at.PROGRAM.groups)[row + pr.FUNCTION])
    if function & pr.NORMALIZED:
        if end - start > len(uint8s(state, at.PROGRESS.text)):
            state[at.TEXT_NEEDED] = end - start
            return -at.FULL_TEXT
        end = normalize(uint8s(state, buffer), start, end, uint8s(state, at.PROGRESS.text))
        buffer, start = at.PROGRESS.text, 0
    if function & pr.LENGTH:
        length = np.float64(count_characters(uint8s(state, buffer), start, end))
        return find_class(state, row, child_facts, length)
    child_facts = read_string(state, row, child_facts, buffer, start, end)
    if child_facts >= 0:
        child_facts = search_string(state, row, child_facts, buffer, start, end)
    if child_facts >= 0:
        child_facts = read_number(state, row, child_facts, buffer, start, end)
    return child_facts


@called
def normalize(values: Bytes, start: int, end: int, text: Bytes) -> int:
    """Copy a string with single spaces inside, and none at its ends: where the copy ends."""
    last = 0
    is_between = False
    for place in range(start, end):
        byte = np.int64(values[place])
        if is_space(byte):
            is_between = last > 0
        else:
            if is_between:
                text[last] = 32
                last += 1
                is_between = False
            text[last] = byte
            last += 1
    return last


@called
def count_characters(values: Bytes, start: int, end: int) -> int:
    """How many characters there are in some bytes of UTF-8."""
    count = 0
    for place in range(start, end):
        count += values[place] & 0xC0 != 0x80
    return count


# -- strings ---------------------------------------------------------------------------------------


@inlined
def hashed(hash: np.uint64, byte: int) -> np.uint64:
    """The hash of a string with one more byte."""
    return (hash ^ U(byte)) * GOLDEN ^ hash >> U(47)


@inlined
def seed(group: int) -> np.uint64:
    """The hash of the empty string in a group of constants."""
    return U(group) * sets.MIXER


@called
def read_string(state: Int64, row: int, child_facts: int, buffer: int, start: int, end: int) -> int:
    """The child facts, with the constants of a group that a value is or begins with."""
    groups, lengths = int32s(state, at.PROGRAM.groups), int32s(state, at.PROGRAM.prefix_lengths)
    longest = np.int64(groups[row + pr.LONGEST])
    if longest < 0:
        return child_facts
    values = uint8s(state, buffer)
    group = 2 * (row // pr.GROUP_COLUMNS)
    index, last = groups[row + pr.LENGTHS], groups[row + pr.GROUP_COLUMNS + pr.LENGTHS]
    bits = uint64s(state, at.PROGRAM.prefix_bits)
    hash = seed(group)
    place = start
    while child_facts >= 0:
        if index < last and place - start == lengths[index]:
            bit = bit_of(hash, bits)
            if bits[bit >> U(6)] >> (bit & U(63)) & U(1) != U(0):
                child_facts = with_constant(
                    state, group + 1, child_facts, hash, values, start, place
                )
            index += 1
        if place == end or place - start == longest:
            break
        hash = hashed(hash, values[place])
        place += 1
    if child_facts >= 0 and place == end:
        child_facts = with_constant(state, group, child_facts, hash, values, start, end)
    return child_facts


@inlined
def _is_constant(table: Any, slot: np.uint64, searched: Any) -> bool:
    """Whether a slot is empty or has a constant; a slot begins with some bits of the hash."""
    (slots, constants, texts), (hash, group, values, start, end) = table, searched
    entry = slots[slot]
    if entry == U(0):
        return True
    row = (np.int64(entry & ~TAG) - 1) * pr.CONSTANT_ROW
    if (entry ^ hash) & TAG != U(0) or constants[row + pr.ASKED_OF] != group:
        return False
    index = np.int64(constants[row + pr.FIRST_BYTE])
    last = np.int64(constants[row + pr.CONSTANT_ROW + pr.FIRST_BYTE])
    return same_bytes(texts, index, last, values, start, end)


_find_constant = prober(_is_constant)


@called
def with_constant(
    state: Int64, group: int, child_facts: int, hash: np.uint64, values: Bytes, start: int, end: int
) -> int:
    """The child facts, with the constant that some bytes are, if they are one."""
    slots = uint64s(state, at.PROGRAM.constant_slots)
    texts, constants = uint8s(state, at.PROGRAM.constant_bytes), int32s(state, at.PROGRAM.constants)
    searched = (hash, group, values, start, end)
    slot = _find_constant(len(slots), hash ^ hash >> U(29), (slots, constants, texts), searched)
    if slots[slot] == U(0):
        return child_facts
    return with_fact(state, (np.int64(slots[slot] & ~TAG) - 1) * pr.CONSTANT_ROW, child_facts)


@called
def with_fact(state: Int64, row: int, child_facts: int) -> int:
    """The child facts, with what is true of a constant; or a status, negated."""
    fact = np.int64(int32s(state, at.PROGRAM.constants)[row + pr.MEANS])
    if is_sparse(state, fact):
        status = lay_over(state, state[at.LEVEL], fact)
        return -status if status else child_facts
    known, number = int32s(state, at.CACHE.constant_sets), row // pr.CONSTANT_ROW
    if not known[number]:
        sets.derive(state, fact)
        found = sets.intern_derived(state)
        if found < 0:
            return -at.FULL_FACTS
        known[number] = found + 1
    return merge_facts(state, child_facts, known[number] - 1, True)


@called
def search_string(
    state: Int64, row: int, child_facts: int, buffer: int, start: int, end: int
) -> int:
    """The child facts, with the constants of a group that a value contains."""
    groups = int32s(state, at.PROGRAM.groups)
    root = np.int64(groups[row + pr.ROOT])
    if not root or not search_trie(state, root, buffer, start, end):
        return child_facts
    status = lay_derived(state, state[at.LEVEL])
    if status:
        return -status
    contained = sets.intern_derived(state)
    if contained == at.EMPTY:
        return child_facts
    return merge_facts(state, child_facts, contained, True) if contained >= 0 else -at.FULL_FACTS


@inlined
def bit_of(hash: np.uint64, bits: Words) -> np.uint64:
    """The number of a hash's bit."""
    return (hash * GOLDEN >> U(32)) & U(64 * len(bits) - 1)


@called
def search_trie(state: Int64, root: int, buffer: int, start: int, end: int) -> bool:
    """Derive which strings of a trie a value contains: whether there are any.

    The automaton of Aho and Corasick (CACM 18, 1975).
    """
    outputs, search = int32s(state, at.PROGRAM.searched_outputs), at.PROGRAM.searched_letters
    node, place, is_found = root, start, False
    while place < end:
        node, place = next_output(state, search, buffer, root, start, place, end, node)
        if outputs[node] != 0:
            is_found |= derive_searched(state, np.int64(outputs[node]))
    return is_found


@called
def derive_searched(state: Int64, node: int) -> bool:
    """Derive a constant, and those that it ends with: whether the first was not derived before."""
    facts = int32s(state, at.PROGRAM.searched_facts)
    shorter = int32s(state, at.PROGRAM.searched_shorter)
    derived = uint64s(state, at.SCRATCH.derived)
    is_new = not sets.holds_fact(derived, np.int64(facts[node]))
    # What a derived constant ends with was derived with it.
    while node != 0 and not sets.holds_fact(derived, np.int64(facts[node])):
        sets.derive(state, np.int64(facts[node]))
        node = np.int64(shorter[node])
    return is_new


# -- numbers ---------------------------------------------------------------------------------------


@called
def read_number(state: Int64, row: int, child_facts: int, buffer: int, start: int, end: int) -> int:
    """The child facts, with the comparisons of a group that are true of a value as a number."""
    groups = int32s(state, at.PROGRAM.groups)
    if groups[row + pr.THRESHOLDS] == groups[row + pr.GROUP_COLUMNS + pr.THRESHOLDS]:
        return child_facts
    number = float64s(state, at.PROGRESS.number)
    last = (state[at.NUMBER_BUFFER], state[at.NUMBER_START], state[at.NUMBER_END])
    if last != (buffer, start, end):
        state[at.NUMBER_BUFFER], state[at.NUMBER_START], state[at.NUMBER_END] = buffer, start, end
        if not parse_number(uint8s(state, buffer), start, end, number):
            return -at.ASKS_NUMBER
    return find_class(state, row, child_facts, number[0])


@called
def find_class(state: Int64, row: int, child_facts: int, number: np.float64) -> int:
    """The child facts, with the comparisons of a group that are true of the number."""
    groups, thresholds = int32s(state, at.PROGRAM.groups), float64s(state, at.PROGRAM.thresholds)
    low, high = groups[row + pr.THRESHOLDS], groups[row + pr.GROUP_COLUMNS + pr.THRESHOLDS]
    begin, count = low, high - low
    while low < high:
        middle = (low + high) // 2
        if thresholds[middle] < number:
            low = middle + 1
        else:
            high = middle
    which = 2 * (low - begin)
    if low - begin < count and thresholds[low] == number:
        which += 1
    if np.isnan(number):
        which = 2 * count + 1
    status = lay_class(state, row, which, 2 * count + 1)
    if status:
        return -status
    facts = class_set(state, row, which, 2 * count + 1)
    return merge_facts(state, child_facts, facts, True) if facts >= 0 else facts


@called
def class_set(state: Int64, row: int, which: int, no_number: int) -> int:
    """The set of what is true of a class of numbers in a group; or a status, negated."""
    groups, comparisons = int32s(state, at.PROGRAM.groups), int32s(state, at.PROGRAM.comparisons)
    known = int32s(state, at.CACHE.class_sets)
    number = groups[row + pr.CLASSES] + which
    if not known[number]:
        start, end = groups[row + pr.COMPARISONS], groups[row + pr.GROUP_COLUMNS + pr.COMPARISONS]
        for comparison in range(start, end):
            i = comparison * pr.COMPARISON_COLUMNS
            fact = np.int64(comparisons[i + pr.FACT])
            if is_true(comparisons, i, which, no_number) and not is_sparse(state, fact):
                sets.derive(state, fact)
        found = sets.intern_derived(state)
        if found < 0:
            return -at.FULL_FACTS
        known[number] = found + 1
    return np.int64(known[number] - 1)


@called
def lay_class(state: Int64, row: int, which: int, no_number: int) -> int:
    """Lay over the sparse facts that are true of a class of numbers: DONE, or a status."""
    groups, comparisons = int32s(state, at.PROGRAM.groups), int32s(state, at.PROGRAM.comparisons)
    i = np.int64(groups[row + pr.COMPARISONS]) * pr.COMPARISON_COLUMNS
    end = np.int64(groups[row + pr.GROUP_COLUMNS + pr.COMPARISONS]) * pr.COMPARISON_COLUMNS
    status = at.DONE
    while i < end and is_sparse(state, np.int64(comparisons[i + pr.FACT])) and not status:
        if is_true(comparisons, i, which, no_number):
            status = lay_over(state, state[at.LEVEL], np.int64(comparisons[i + pr.FACT]))
        i += pr.COMPARISON_COLUMNS
    return status


@inlined
def is_true(comparisons: Int32, row: int, which: int, no_number: int) -> bool:
    """Whether a comparison is true of a class of numbers."""
    operator, index = comparisons[row + pr.OPERATOR], 2 * comparisons[row + pr.THRESHOLD] + 1
    if which == no_number:
        return operator == pr.LESS | pr.MORE
    if which == index:
        return operator & pr.EQUAL != 0
    return operator & (pr.LESS if which < index else pr.MORE) != 0
