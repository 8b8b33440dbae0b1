"""Constants that values are looked up among: a hash table, and tries to search with."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, Words
from tamis.core.kernel import U, kernel
from tamis.core.kernel.table import free_slot
from tamis.matching.engines.automaton import program as pr
from tamis.matching.engines.automaton.kernels.facts import slot_of
from tamis.matching.engines.automaton.kernels.values import TAG, bit_of, hash_gram, hashed, seed


@kernel
def fill_slots(constants: Int32, texts: Bytes, slots: Words, bits: Words) -> None:
    """Put constants into an empty hash table, and prefixes into bits, as ``read_string`` looks."""
    mask = U(len(slots) - 1)
    for number in range(len(constants) // pr.CONSTANT_ROW - 1):
        row = number * pr.CONSTANT_ROW
        group = np.int64(constants[row + pr.ASKED_OF])
        hash = seed(group & ~1)
        for place in range(
            constants[row + pr.FIRST_BYTE], constants[row + pr.CONSTANT_ROW + pr.FIRST_BYTE]
        ):
            hash = hashed(hash, texts[place])
        if group & 1:
            bit = bit_of(hash, bits)
            bits[bit >> U(6)] |= U(1) << (bit & U(63))
        slot = (hash ^ hash >> U(29)) & mask
        while slots[slot] != U(0):
            slot = (slot + U(1)) & mask
        slots[slot] = hash & TAG | U(number + 1)


@kernel
def fill_grams(grams: Int32, bits: Words, slots: Int32) -> None:
    """Put the grams of strings into empty tables, as ``search_grams`` looks for them."""
    for number in range(len(grams) // pr.GRAM_ROW - 1):
        row = number * pr.GRAM_ROW
        gram = U(np.uint32(grams[row + pr.GRAM]))
        bit = bit_of(gram, bits)
        bits[bit >> U(6)] |= U(1) << (bit & U(63))
        is_known = number > 0 and (
            grams[row + pr.GRAM] == grams[row - pr.GRAM_ROW + pr.GRAM]
            and grams[row + pr.GROUP] == grams[row - pr.GRAM_ROW + pr.GROUP]
        )
        if not is_known:
            slots[free_slot(slots, hash_gram(gram, grams[row + pr.GROUP]))] = number + 1


@kernel
def add_searched(
    roots: Int32,
    literals: Int32,
    said: Int32,
    starts: Int64,
    texts: Bytes,
    keys: Words,
    values: Int32,
    facts: Int32,
    before: Int32,
    byte: Int32,
    depth: Int32,
    count: int,
) -> int:
    """Add strings to tries, from their roots on; there must be room.

    Returns:
        How many nodes there are, where there were ``count``.
    """
    for i in range(len(roots)):
        node = np.int64(roots[i])
        literal = np.int64(literals[i])
        for place in range(starts[literal], starts[literal + 1]):
            key = U(node) << U(8) | U(texts[place])
            slot = slot_of(keys, key)
            if keys[slot] == U(0):
                keys[slot], values[slot] = key, count
                before[count], byte[count], depth[count] = node, texts[place], depth[node] + 1
                count += 1
            node = np.int64(values[slot])
        facts[node] = said[i]
    return count


@kernel
def link_searched(
    roots: int,
    keys: Words,
    values: Int32,
    facts: Int32,
    before: Int32,
    byte: Int32,
    failures: Int32,
    outputs: Int32,
    shorter: Int32,
) -> None:
    """Link each node with those of the strings that its own ends with.

    Nodes are numbered from 1, first the roots, and then those nearer to a root before others.

    Args:
        keys, values: an empty hash table, filled.
    """
    for node in range(roots + 1, len(failures)):
        key = U(before[node]) << U(8) | U(byte[node])
        slot = slot_of(keys, key)
        keys[slot], values[slot] = key, node
    for node in range(roots + 1, len(failures)):
        above = np.int64(before[node])
        failure = above
        if above > roots:
            failure = np.int64(failures[above])
            slot = slot_of(keys, U(failure) << U(8) | U(byte[node]))
            while keys[slot] == U(0) and failure > roots:
                failure = np.int64(failures[failure])
                slot = slot_of(keys, U(failure) << U(8) | U(byte[node]))
            if keys[slot] != U(0):
                failure = np.int64(values[slot])
        failures[node] = failure
        shorter[node] = outputs[failure]
        outputs[node] = node if facts[node] >= 0 else outputs[failure]


@kernel
def fill_rows(
    roots: int,
    keys: Words,
    values: Int32,
    failures: Int32,
    letters: Bytes,
    width: int,
    rows: Int32,
) -> None:
    """Write down where each letter leads from the first nodes, whatever fails on the way.

    Args:
        letters: of each byte; 0 for those that are in no string, which lead to the root.
        rows: int32[nodes, width], by node, the first of which is none, and letter.
    """
    for node in range(1, len(rows) // width):
        row = node * width
        failure = np.int64(failures[node])
        for letter in range(width):
            is_root = node <= roots
            rows[row + letter] = node if is_root else rows[failure * width + letter]
        for byte in range(256):
            if letters[byte] != 0:
                slot = slot_of(keys, U(node) << U(8) | U(byte))
                if keys[slot] != U(0):
                    rows[row + letters[byte]] = values[slot]
