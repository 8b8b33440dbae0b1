"""Kernels that list the subscriptions of documents, from the sets that engines found.

Numbers are marked in a bitmap, of which a second one says what words have any; so they come out
ascending and each once, and a document with few matches costs one word for each 4,096 subscriptions
that there are. :mod:`.matches` calls this.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, Words
from tamis.core.kernel import called, inlined, kernel
from tamis.core.kernel.bits import first
from tamis.core.kernel.declare import U
from tamis.core.kernel.record import fields, int32s, int64s, lay_out, uint8s, uint64s


class Work(NamedTuple):
    """What belongs to one thread.

    Attributes:
        marked: uint64[]; bit n: subscription n matches the present document.
        used: uint64[]; bit n: word n of ``marked`` is not 0.
        covered: uint64[]; bit n: what stands at n among a part's ``sliced`` is marked.
        numbers: int32[]; the subscriptions of the documents, document after document.
        starts: int64[documents + 1]; where those of each document begin in ``numbers``.
    """

    marked: Words
    used: Words
    covered: Words
    numbers: Int32
    starts: Int64


class Part(NamedTuple):
    """What one engine found, as in ``MatchSet``, and ``Subscribers`` of its queries."""

    document_starts: Int64
    set_ids: Int32
    set_starts: Int64
    members: Int32
    sliced: Int32
    subscriber_starts: Int64
    subscribers: Int32
    is_removed: Bytes


NEXT, END, FIRST, MOST, LISTED, MARKED, PARTS, NUMBERS = range(8)
"""The document that is next; behind the last one; the first one; the numbers after which no other
document is listed; how many are listed; how many are marked; the parts."""
WORK, FIRST_PART = lay_out(NUMBERS, Work)
PART = fields(Part, 1)
"""From where a part begins, which is with the number of its first subscription."""
PART_SIZE = 1 + 2 * len(PART)


class Marking(NamedTuple):
    """What ``mark`` reads of a part, and the words of ``Work`` that it writes."""

    starts: Int64
    numbers: Int32
    is_removed: Bytes
    marked: Words
    used: Words


@inlined
def mark(own: Marking, first_number: int, number: int) -> int:
    """Mark a subscription of a part, unless it was removed; 1 if it is new."""
    if len(own.is_removed) and own.is_removed[number]:
        return 0
    number += first_number
    word, bit = number >> 6, U(number & 63)
    before = own.marked[word]
    own.marked[word] = before | U(1) << bit
    own.used[word >> 6] |= U(1) << U(word & 63)
    return np.int64(1) - np.int64(before >> bit & U(1))


@inlined
def mark_query(own: Marking, first_number: int, query: int) -> int:
    """Mark the subscriptions of a query; how many are new."""
    if not len(own.starts):
        return mark(own, first_number, query)
    new = np.int64(0)
    for place in range(own.starts[query], own.starts[query + 1]):
        new += mark(own, first_number, np.int64(own.numbers[place]))
    return new


@called
def mark_document(state: Int64, part: int, document: int) -> None:
    """Mark what a part found in a document."""
    document_starts = int64s(state, part + PART.document_starts)
    set_ids, set_starts = int32s(state, part + PART.set_ids), int64s(state, part + PART.set_starts)
    members, sliced = int32s(state, part + PART.members), int32s(state, part + PART.sliced)
    own = Marking(
        int64s(state, part + PART.subscriber_starts),
        int32s(state, part + PART.subscribers),
        uint8s(state, part + PART.is_removed),
        uint64s(state, WORK.marked),
        uint64s(state, WORK.used),
    )
    covered = uint64s(state, WORK.covered)
    first_number, new = state[part], np.int64(0)
    low, high = len(covered), 0
    for place in range(document_starts[document], document_starts[document + 1]):
        row = np.int64(set_ids[place])
        at, end = set_starts[row], set_starts[row + 1]
        while at < end:
            member = np.int64(members[at])
            at += 1
            if member >= 0:
                new += mark_query(own, first_number, member)
                continue
            start, last = -1 - member, np.int64(members[at]) - 1
            at += 1
            low, high = min(low, start >> 6), max(high, (last >> 6) + 1)
            for word in range(start >> 6, (last >> 6) + 1):  # most slices overlap others
                bits = ~U(0)
                if word == start >> 6:
                    bits <<= U(start & 63)
                if word == last >> 6:
                    bits &= ~U(0) >> U(63 - (last & 63))
                bits &= ~covered[word]
                covered[word] |= bits
                while bits:
                    index = (word << 6) + first(bits)
                    new += mark_query(own, first_number, np.int64(sliced[index]))
                    bits &= bits - U(1)
    for word in range(low, high):
        covered[word] = U(0)
    state[MARKED] += new


@called
def list_marked(state: Int64) -> None:
    """List what is marked, and clear the marks."""
    marked, used = uint64s(state, WORK.marked), uint64s(state, WORK.used)
    numbers, listed = int32s(state, WORK.numbers), state[LISTED]
    for block in range(len(used)):
        words = used[block]
        used[block] = U(0)
        while words:
            word = (block << 6) + first(words)
            words &= words - U(1)
            found = marked[word]
            marked[word] = U(0)
            while found:
                numbers[listed] = (word << 6) + first(found)
                listed += 1
                found &= found - U(1)
    state[LISTED] = listed


@kernel
def list_documents(state: Int64) -> int:
    """List documents until there are ``MOST`` numbers; a field where an array is full."""
    starts = int64s(state, WORK.starts)
    while state[NEXT] < state[END] and (state[LISTED] < state[MOST] or state[NEXT] == state[FIRST]):
        for part in range(state[PARTS]):
            mark_document(state, FIRST_PART + part * PART_SIZE, state[NEXT])
        if state[LISTED] + state[MARKED] > len(int32s(state, WORK.numbers)):
            return WORK.numbers  # the same marks are set again
        list_marked(state)
        state[MARKED] = 0
        state[NEXT] += 1
        starts[state[NEXT] - state[FIRST]] = state[LISTED]
    return 0


@inlined
def hand_over(state: Int64, field: int, length: int, listing: Int64, into: int) -> None:
    """Register the first items of an array, of an engine's state, with a listing."""
    listing[into], listing[into + 1] = state[field], length


@kernel
def list_one(state: Int64) -> int:
    """List one document, of which the parts are registered.

    Returns 0, or the field of an array that is too short: it has to have ``LISTED`` items, and then
    the document is listed again.
    """
    state[NEXT] = state[FIRST] = state[LISTED] = state[MARKED] = 0
    state[END] = state[MOST] = 1
    for part in range(FIRST_PART, FIRST_PART + state[PARTS] * PART_SIZE, PART_SIZE):
        words = (len(int32s(state, part + PART.sliced)) + 63) >> 6
        if words > len(uint64s(state, WORK.covered)):
            state[LISTED] = max(state[LISTED], words)
    if state[LISTED]:
        return WORK.covered
    status = list_documents(state)
    if status:
        marked, used = uint64s(state, WORK.marked), uint64s(state, WORK.used)
        for block in range(len(used)):
            if used[block]:
                for word in range(64 * block, min(64 * (block + 1), len(marked))):
                    marked[word] = U(0)
                used[block] = U(0)
        state[LISTED] = state[MARKED]
    return status


@kernel
def write_lists(
    starts: Int64,
    numbers: Int32,
    data: Bytes,
    begins: Int64,
    ends: Int64,
    into: Bytes,
    bounds: Int64,
) -> None:
    """Write lists of what stands in ``data``, by number from begins to ends, as JSON has lists."""
    at = np.int64(0)
    for row in range(len(starts) - 1):
        into[at] = 91  # [
        at += 1
        for place in range(starts[row], starts[row + 1]):
            if place > starts[row]:
                into[at], into[at + 1] = 44, 32  # a comma and a space
                at += 2
            number = numbers[place]
            for index in range(begins[number], ends[number]):
                into[at] = data[index]
                at += 1
        into[at] = 93  # ]
        at += 1
        bounds[row + 1] = at
