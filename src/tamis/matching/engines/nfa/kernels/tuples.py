"""Path-tuples: each way in which the steps of a filter bind nodes."""

from __future__ import annotations

from tamis.core.arrays import Int64
from tamis.core.kernel import called, kernel
from tamis.matching.engines.nfa.layout import ABOVE, DONE, NO_ROOM, OCCURRENCE, OUTER, START

LAST, USED, COUNT, BEGUN, IS_INSIDE = range(5)
"""Where the listing is: the next of the last nodes, tuples used, those of the document, where its
tuples begin, and whether ``fields`` hold a tuple that is to be written."""


@called
def bind_above(occurrences: Int64, fields: Int64, field: int) -> None:
    """Bind the fields before one to the innermost nodes that they can have."""
    while field > 0:
        fields[field - 1] = occurrences[fields[field] * OCCURRENCE + ABOVE]
        field -= 1


@called
def advance(occurrences: Int64, fields: Int64, descends: Int64) -> bool:
    """Bind the fields before the last to other nodes; False if all were bound already.

    As the wheels of an odometer, the first field turns fastest: it goes on to the next node further
    out, and where there is none begins again below what the field behind it goes on to. There are
    no dead ends: whatever reached a state has a node above that reached the state before.
    """
    for field in range(len(fields) - 1):
        outer = occurrences[fields[field] * OCCURRENCE + OUTER]
        if descends[field + 1] and outer >= 0:
            fields[field] = outer
            bind_above(occurrences, fields, field)
            return True
    return False


@kernel
def list_tuples(
    at: Int64,
    occurrences: Int64,
    lasts: Int64,
    documents: Int64,
    descends: Int64,
    tuples_max: int,
    fields: Int64,
    tuples: Int64,
    of: Int64,
) -> int:
    """Write the tuples of a filter, those of the same last node after each other.

    Args:
        at: where the listing is.
        lasts: the occurrences of the filter's state, ascending.
        documents: of each of these.
        descends: of each step, whether it is one to descendants.
        tuples_max: how many a document may have; of one with more, the first one too many is kept.
        fields: the occurrences that are bound at present, for each step.
        tuples: the start events, as many as there are steps for each tuple.
        of: for each tuple its document.
    """
    steps = len(fields)
    for last in range(at[LAST], len(lasts)):
        at[LAST] = last
        if not at[IS_INSIDE]:
            if last > 0 and documents[last - 1] != documents[last]:
                at[COUNT] = 0
            if at[COUNT] > tuples_max:
                continue
            fields[steps - 1] = lasts[last]
            bind_above(occurrences, fields, steps - 1)
            at[IS_INSIDE] = 1
        while at[IS_INSIDE]:
            used = at[USED]
            if used >= len(of):
                return NO_ROOM
            for field in range(steps):
                tuples[used * steps + field] = occurrences[fields[field] * OCCURRENCE + START]
            of[used] = documents[last]
            at[USED] += 1
            at[COUNT] += 1
            at[IS_INSIDE] = at[COUNT] <= tuples_max and advance(occurrences, fields, descends)
    return DONE
