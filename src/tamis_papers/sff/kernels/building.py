"""Constraints are shared, and their filters listed."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64
from tamis.core.kernel import U, kernel
from tamis_papers.sff.kernels.strings import in_common
from tamis_papers.sff.program import CONTAINED, PARTS, SUFFIXES

_GOLDEN = U(0x9E3779B97F4A7C15)
_MIX = U(0xBF58476D1CE4E5B9)


@kernel
def number_distinct(
    groups: Int64, kinds: Bytes, values: Int64, slots: Int32, firsts: Int32, numbers: Int32
) -> int:
    """Number triples of a group, a kind and a value, equal ones alike, in the order they come in.

    Args:
        slots: of a hash table, -1; their number is a power of two, and twice that of triples.
        firsts: gets the place of the first triple of each number.
        numbers: gets the number of each triple.

    Returns:
        How many numbers there are.
    """
    mask = U(len(slots) - 1)
    count = 0
    for place in range(len(groups)):
        group, kind, value = groups[place], kinds[place], values[place]
        hash = (U(value) ^ U(value) >> U(32)) * _GOLDEN + U(group) * _MIX + U(kind)
        hash = (hash ^ hash >> U(31)) * _GOLDEN
        slot = (hash ^ hash >> U(29)) & mask
        while True:
            number = np.int64(slots[slot])
            if number < 0:
                slots[slot] = number = count
                firsts[count] = place
                count += 1
                break
            first = firsts[number]
            if groups[first] == group and values[first] == value and kinds[first] == kind:
                break
            slot = (slot + U(1)) & mask
        numbers[place] = number
    return count


@kernel
def count_postings(
    starts: Int64, nodes: Int32, seen_in: Int32, posting_counts: Int64, sizes: Int32
) -> None:
    """How many filters each node has, and how many nodes each filter: equal constraints are one.

    Args:
        starts: where the constraints of each filter begin; nodes: of constraints.
        seen_in: of nodes, -1.
        posting_counts, sizes: zeros.
    """
    for filter in range(len(sizes)):
        for place in range(starts[filter], starts[filter + 1]):
            node = nodes[place]
            if seen_in[node] != filter:
                seen_in[node] = filter
                posting_counts[node] += 1
                sizes[filter] += 1


@kernel
def fill_postings(
    starts: Int64,
    nodes: Int32,
    filters: Int32,
    seen_in: Int32,
    next_posting: Int64,
    postings: Int32,
) -> None:
    """List the filters of each node, by their places.

    Args:
        starts, nodes: as above.
        filters: the filter at each place; -1 where there is none.
        seen_in: of nodes, -1.
        next_posting: where the first of each node goes; moved on.
    """
    for at in range(len(filters)):
        filter = filters[at]
        if filter >= 0:
            for place in range(starts[filter], starts[filter + 1]):
                node = nodes[place]
                if seen_in[node] != filter:
                    seen_in[node] = filter
                    postings[next_posting[node]] = at
                    next_posting[node] += 1


@kernel
def link_parts(
    part_starts: Int64,
    part_strings: Int32,
    string_starts: Int64,
    string_bytes: Bytes,
    stack: Int32,
    part_shorter: Int32,
) -> None:
    """The longest part that each part begins (or ends) with itself: it came before it.

    Args:
        stack: as long as there are parts.
    """
    for group in range(len(part_starts) - 1):
        which = group % PARTS
        if which == CONTAINED:
            continue
        depth = 0
        for part in range(part_starts[group], part_starts[group + 1]):
            string = part_strings[part]
            start, end = string_starts[string], string_starts[string + 1]
            while depth > 0:
                shorter = part_strings[stack[depth - 1]]
                first, last = string_starts[shorter], string_starts[shorter + 1]
                if last - first == in_common(
                    which == SUFFIXES, string_bytes, start, end, string_bytes, first, last
                ):
                    part_shorter[part] = stack[depth - 1]
                    break
                depth -= 1
            stack[depth] = part
            depth += 1
