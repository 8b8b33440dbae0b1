"""Constants, each once, and the tables that their ranks are found in."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, inlined, kernel
from tamis.events.engines.signature.kernels.words import mixed
from tamis.events.engines.signature.program import DENSE, HASHED


@inlined
def value_hash(key: int, kind: int, value: int) -> np.uint64:
    """The hash of a number, or of a constant's kind and value, in a key."""
    return mixed(U(value) + mixed((U(key) << U(8)) | U(kind)))


@inlined
def string_hash(string: Bytes, start: int, end: int) -> np.uint64:
    """The hash of some bytes."""
    found = U(end - start)
    for place in range(start, end):
        found = (found ^ U(string[place])) * U(0x100000001B3)
    return mixed(found)


@kernel
def intern_constants(
    keys: Int32, kinds: Bytes, values: Int64, table: Int32, firsts: Int32, numbers: Int32
) -> int:
    """Number the distinct constants in the order that they come in; how many there are.

    Args:
        keys, kinds, values: of all constants.
        table: -1 in each place; its length is a power of two, and more than that of the constants.
        firsts: gets where each distinct one is first.
        numbers: gets the number of each.
    """
    mask = len(table) - 1
    count = 0
    for constant in range(len(keys)):
        key, kind, value = keys[constant], kinds[constant], values[constant]
        place = np.int64(value_hash(key, kind, value) & U(mask))
        while table[place] >= 0:
            first = firsts[table[place]]
            if keys[first] == key and kinds[first] == kind and values[first] == value:
                break
            place = (place + 1) & mask
        if table[place] < 0:
            table[place] = count
            firsts[count] = constant
            count += 1
        numbers[constant] = table[place]
    return count


@kernel
def fill_tables(
    modes: Bytes,
    starts: Int64,
    kinds: Bytes,
    values: Int64,
    string_starts: Int64,
    string_bytes: Bytes,
    are_strings: Bytes,
    table_starts: Int64,
    table_bases: Int64,
    tables: Int32,
) -> None:
    """Fill the tables of dense and hashed keys; see ``Ranks``. They are -1 at first."""
    for key in range(len(modes)):
        start, end = starts[key], starts[key + 1]
        table, size = table_starts[key], table_starts[key + 1] - table_starts[key]
        if modes[key] == DENSE:
            constant = start
            for place in range(size):
                while constant < end and values[constant] < table_bases[key] + place:
                    constant += 1
                rank = 2 * (constant - start)
                if constant < end and values[constant] == table_bases[key] + place:
                    rank += 1
                tables[table + place] = rank
        elif modes[key] == HASHED:
            for constant in range(start, end):
                value = values[constant]
                if are_strings[key]:
                    found = string_hash(
                        string_bytes, string_starts[value], string_starts[value + 1]
                    )
                else:
                    found = value_hash(0, kinds[constant], value)
                place = np.int64(found & U(size - 1))
                while tables[table + place] >= 0:
                    place = (place + 1) & (size - 1)
                tables[table + place] = constant - start
