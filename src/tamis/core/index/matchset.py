"""``MatchSet``: which queries an engine found true of which documents of a batch, by reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tamis.core.arguments import is_one_of
from tamis.core.arrays import Int32, Int64, distinct, flat_indices, freeze, starts_of
from tamis.core.errors import LxmlEvaluationError, UsageError

Which = Literal["first", "all"]
"""The nodes that are asked for, of those that an expression selects in a document."""


def checked_nodes(nodes: object, values: bool) -> tuple[Which | None, bool]:
    """The nodes that are asked for, and whether their values are.

    Raises:
        UsageError: there are no such nodes, or values are asked for without nodes.
    """
    if nodes is not None and not is_one_of(nodes, ("first", "all")):
        raise UsageError(f'nodes is None, "first" or "all", not {nodes!r}')
    if values and nodes is None:
        raise UsageError('values are of nodes: say nodes="all", or "first", beside values=True')
    return cast("Which | None", nodes), bool(values)


_NOTHING = np.zeros(0, np.int32)
freeze(_NOTHING)

QueryValue = bool | float | str
"""The value of an expression that selects no nodes."""


class Occurrences(NamedTuple):
    """The nodes at which an engine found sets of queries true.

    Attributes:
        document_starts: int64[d + 1]; those of document i are from ``document_starts[i]`` on, up to
            ``document_starts[i + 1]``, in document order.
        set_ids: int32[]; sets of the ``MatchSet``.
        node_refs: int64[]; the reference of each node (see ``KIND_BITS``).
        values: document number → query → its value, of queries that select no nodes, where an
            engine has it.
    """

    document_starts: Int64
    set_ids: Int32
    node_refs: Int64
    values: Mapping[int, Mapping[int, QueryValue]] = MappingProxyType({})


class MatchSet(NamedTuple):
    """Which queries an engine found true of which documents of a batch.

    A document refers to *sets* of queries, which are stored once: a million queries that are true
    of many documents cost each of them one integer. :class:`tamis.core.index.matches.Matches` lists
    the subscriptions.

    Attributes:
        document_starts: int64[d + 1]; the sets of document i are
            ``set_ids[document_starts[i]:document_starts[i + 1]]``.
        set_ids: int32[].
        set_starts: int64[s + 1]; the members of set j are
            ``members[set_starts[j]:set_starts[j + 1]]``.
        members: int32[]; numbers of queries, in no order; sets may share some. A member n < 0 and
            the next one, m, stand for ``sliced[-1 - n:m]``.
        sliced: int32[]; numbers of queries that many sets have parts of.
        occurrences: the nodes of sets, if they were asked for and the engine records them.
        failed: what could not be answered of documents whose other queries were: document number →
            query → error.

    >>> matches = match_set([np.array([0, 2]), np.array([0, 2]), np.array([], int)])
    >>> matches.set_ids, matches.numbers(1)
    (array([0, 0], dtype=int32), array([0, 2], dtype=int32))
    """

    document_starts: Int64
    set_ids: Int32
    set_starts: Int64
    members: Int32
    sliced: Int32 = _NOTHING
    occurrences: Occurrences | None = None
    failed: Mapping[int, Mapping[int, LxmlEvaluationError]] = MappingProxyType({})

    @property
    def documents(self) -> int:
        """The number of documents, those in error included."""
        return len(self.document_starts) - 1

    def numbers(self, document: int) -> Int32:
        """The queries that are true of one document, ascending, each once."""
        sets = self.set_ids[self.document_starts[document] : self.document_starts[document + 1]]
        numbers = distinct(self._unsliced(ranges(self.set_starts, sets, self.members)))
        freeze(numbers)
        return numbers

    def _unsliced(self, members: Int32) -> Int32:
        """Members, without slices."""
        is_start = members < 0
        if not is_start.any():
            return members
        at = np.flatnonzero(is_start)
        size = len(self.sliced) + 1
        is_start[at + 1] = True  # their ends
        begun = np.bincount(-1 - members[at], minlength=size)
        is_inside = np.cumsum(begun - np.bincount(members[at + 1], minlength=size))[:-1] > 0
        return np.concatenate([members[~is_start], self.sliced[is_inside]])


def ranges(starts: Int64, rows: Int32, values: Int32) -> Int32:
    """``values[starts[row]:starts[row + 1]]`` of each row, behind each other."""
    if len(rows) == 1:
        return values[starts[rows[0]] : starts[rows[0] + 1]]
    firsts = starts[rows]
    return values[flat_indices(firsts, starts[rows.astype(np.int64) + 1] - firsts)]


def only_used(set_ids: Int32, starts: Int64, members: Int32) -> tuple[Int32, Int64, Int32]:
    """The same sets, without those that nothing refers to: an engine may know many more."""
    used, renumbered = np.unique(set_ids, return_inverse=True)
    counts = starts[used.astype(np.int64) + 1] - starts[used]
    return renumbered.astype(np.int32), starts_of(counts), ranges(starts, used, members)


def joined(parts: Sequence[tuple[MatchSet, Int32 | None]]) -> MatchSet:
    """The matches of several engines in the same documents, each for some of the queries.

    Args:
        parts: what matched, and the numbers of the engine's queries; None where all are its own.

    >>> one = match_set([np.array([0]), np.array([], int)])
    >>> both = joined([(one, None), (one, np.array([7], np.int32))])
    >>> both.numbers(0), both.numbers(1)
    (array([0, 7], dtype=int32), array([], dtype=int32))
    """
    if len(parts) == 1 and parts[0][1] is None:
        return parts[0][0]
    counts = [np.diff(matches.document_starts) for matches, _ in parts]
    starts = starts_of(np.sum(counts, axis=0))
    set_ids = np.empty(starts[-1], np.int32)
    set_starts = [np.zeros(1, np.int64)]
    members: list[Int32] = []
    sliced: list[Int32] = []
    failed: dict[int, dict[int, LxmlEvaluationError]] = {}
    next_index = starts[:-1].copy()
    sets = used = 0
    for (matches, numbers), count in zip(parts, counts, strict=True):
        own_ids, own_starts, own_members = only_used(
            matches.set_ids, matches.set_starts, matches.members
        )
        within = np.arange(len(own_ids)) - np.repeat(matches.document_starts[:-1], count)
        set_ids[np.repeat(next_index, count) + within] = own_ids + sets
        next_index += count
        set_starts.append(own_starts[1:] + used)
        members.append(_renumbered(own_members, numbers, sum(map(len, sliced))))
        sliced.append(matches.sliced if numbers is None else numbers[matches.sliced])
        for document, errors in matches.failed.items():
            own = errors if numbers is None else {int(numbers[q]): errors[q] for q in errors}
            failed.setdefault(document, {}).update(own)
        sets += len(own_starts) - 1
        used += len(own_members)
    result = parts[0][0]._replace(
        document_starts=starts,
        set_ids=set_ids,
        set_starts=np.concatenate(set_starts),
        members=np.concatenate(members),
        sliced=np.concatenate(sliced),
        occurrences=None,
        failed=failed,
    )
    freeze(*result[:5])
    return result


def _renumbered(members: Int32, numbers: Int32 | None, sliced: int) -> Int32:
    """Members by their numbers among all queries, with so many sliced ones before their own."""
    is_start = members < 0
    is_end = np.zeros(len(members), bool)
    is_end[1:] = is_start[:-1]
    own = members if numbers is None else numbers[np.where(is_start | is_end, 0, members)]
    return np.where(is_start, members - sliced, np.where(is_end, members + sliced, own))


def match_set(by_document: Sequence[NDArray[np.integer[Any]]]) -> MatchSet:
    """A ``MatchSet`` from the ascending numbers of the queries that are true of each document."""
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
        set_starts=starts_of(list(map(len, members))),
        members=np.concatenate(members) if members else np.zeros(0, dtype=np.int32),
    )
    freeze(*matches[:5])
    return matches


@dataclass(frozen=True)
class Explanation:
    """Why a document or an event matches a subscription or not; printing it shows the steps.

    Attributes:
        matched: whether it matches.
        lines: the explanation, a line each.
    """

    matched: bool
    lines: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.matched

    def __str__(self) -> str:
        return "\n".join(self.lines)
