"""``MatchSet``: what matched in a batch, by reference; the one thing that every consumer reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.documents.batch import Int32, Int64, freeze
from tamis.errors import DocumentError


class MatchSet(NamedTuple):
    """Which subscriptions matched which documents of a batch.

    A document refers to *sets* of subscription numbers, and equal sets are stored once, so that a
    million matches that many documents share cost each of them one integer.

    Attributes:
        document_starts: int64[d + 1]; the sets of document i are
            ``set_ids[document_starts[i]:document_starts[i + 1]]``.
        set_ids: int32[].
        set_starts: int64[s + 1]; the members of set j are
            ``members[set_starts[j]:set_starts[j + 1]]``.
        members: int32[]; subscription numbers.
        errors: the errors of documents that could not be answered, by document number.

    >>> matches = match_set([np.array([0, 2]), np.array([0, 2]), np.array([], int)], {})
    >>> matches.set_ids, matches.numbers(1)
    (array([0, 0], dtype=int32), array([0, 2], dtype=int32))
    """

    document_starts: Int64
    set_ids: Int32
    set_starts: Int64
    members: Int32
    errors: Mapping[int, DocumentError]

    @property
    def documents(self) -> int:
        """The number of documents, those in error included."""
        return len(self.document_starts) - 1

    def numbers(self, document: int) -> Int32:
        """The subscription numbers that matched one document, ascending, each once."""
        sets = self.set_ids[self.document_starts[document] : self.document_starts[document + 1]]
        members = [self.members[self.set_starts[s] : self.set_starts[s + 1]] for s in sets]
        if len(members) == 1:
            return members[0]  # the usual case: already ascending
        if not members:
            return self.members[:0]
        numbers = np.unique(np.concatenate(members))
        freeze(numbers)
        return numbers


def match_set(
    by_document: Sequence[NDArray[np.integer[Any]]],
    errors: Mapping[int, DocumentError],
) -> MatchSet:
    """A ``MatchSet`` from the ascending subscription numbers of each document."""
    sets: dict[bytes, int] = {}
    members: list[Int32] = []
    set_ids: list[int] = []
    document_starts = [0]
    for numbers in by_document:
        if len(numbers):
            values = np.ascontiguousarray(numbers, dtype=np.int32)
            key = values.tobytes()
            if key not in sets:
                sets[key] = len(sets)
                members.append(values)
            set_ids.append(sets[key])
        document_starts.append(len(set_ids))
    matches = MatchSet(
        document_starts=np.array(document_starts, dtype=np.int64),
        set_ids=np.array(set_ids, dtype=np.int32),
        set_starts=np.cumsum([0, *map(len, members)], dtype=np.int64),
        members=np.concatenate(members) if members else np.zeros(0, dtype=np.int32),
        errors=errors,
    )
    freeze(*matches[:4])
    return matches
