"""Where conditions hold, in the documents of a batch: a set of nodes at a time, from below.

The nodes that reached a state are its occurrences, in document order; where a condition holds is a
mask of these. A step back, from a state to the one before, keeps the nodes that have one of the
others inside: a semijoin.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int64
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.model import Axis, KindTest, NameTest, NodeTest
from tamis.language.values import normalize_space, xpath_number
from tamis.matching.engines.nfa import conditions as given
from tamis.matching.engines.nfa import layout as at
from tamis.matching.engines.nfa.conditions import Asked, Source
from tamis.matching.engines.nfa.kernels import find_parents

_NOWHERE = np.zeros(0, np.int64)


class Occurrences:
    """The nodes that reached watched states, by state.

    Args:
        rows: int64[n, OCCURRENCE], by start event (see ``layout``).
    """

    def __init__(self, rows: Int64) -> None:
        self.rows = rows
        order = np.argsort(rows[:, at.STATE], kind="stable")
        states, starts = np.unique(rows[order, at.STATE], return_index=True)
        bounds = [*starts.tolist(), len(rows)]
        self._of = {
            state: order[start:end]
            for state, (start, end) in zip(states.tolist(), pairwise(bounds), strict=True)
        }
        self._places = np.empty(len(rows), np.int64)
        self._places[order] = np.arange(len(rows)) - np.repeat(starts, np.diff(bounds))

    def of(self, state: int) -> Int64:
        """The occurrences of a state: places in ``rows``, ascending."""
        return self._of.get(state, _NOWHERE)

    def places(self, occurrences: Int64) -> Int64:
        """The places of occurrences among those of the same state."""
        return self._places[occurrences]


class Evaluation:
    """What is true of the nodes of one batch. All that is computed is kept for the next query."""

    def __init__(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        occurrences: Occurrences,
        conditions: given.Conditions,
    ) -> None:
        self.batch = batch
        self.vocabulary = vocabulary
        self.occurrences = occurrences
        self.conditions = conditions
        self._masks: dict[tuple[int, int], Mask | None] = {}
        self._strings: dict[tuple[int, Source], tuple[Int64, Strings]] = {}
        self._owners: dict[tuple[int, Source], tuple[Int64, Int64]] = {}
        self._attributes: dict[NodeTest, Int64] = {}

    def where(self, condition: int, state: int) -> Mask | None:
        """At which nodes of a state a condition holds; None for nowhere."""
        key = condition, state
        if key in self._masks:
            return self._masks[key]
        mask = None
        if len(self.occurrences.of(state)):
            mask = self._computed(condition, state)
            if mask is not None and not mask.any():
                mask = None
        self._masks[key] = mask
        return mask

    def _computed(self, condition: int, state: int) -> Mask | None:
        count = len(self.occurrences.of(state))
        match self.conditions[condition]:
            case given.Constant(value):
                return np.full(count, value)
            case given.Negation(operand):
                mask = self.where(operand, state)
                return np.ones(count, np.bool_) if mask is None else ~mask
            case given.Conjunction(operands):
                return self._all(operands, state)
            case given.Disjunction(operands):
                masks = [self.where(operand, state) for operand in operands]
                found = [mask for mask in masks if mask is not None]
                return np.logical_or.reduce(found) if found else None
            case given.Inside(inner, descends, asked):
                return self._inside(state, inner, descends, asked)
            case given.ValueIs(source, question):
                owners, _ = self._nodes(state, source)
                if question is not None:
                    owners, strings = self._strings_of(state, source)
                    owners = owners[strings.find(question)]
                return _mask(owners, count)
            case given.FirstIs() as first:
                return self._first(state, first)

    def _first(self, state: int, condition: given.FirstIs) -> Mask:
        """Of which nodes the first string is as asked."""
        last = condition.through[-1][0] if condition.through else state
        owners, strings = self._strings_of(last, condition.source)
        nodes = self.occurrences.of(last)[owners]
        counts = np.ones(len(nodes), np.bool_)  # whether the string is one of the path's
        for inner, asked in condition.through[::-1]:
            mask = self.where(asked, inner)
            counts &= mask[self.occurrences.places(nodes)] if mask is not None else False
            nodes = self.occurrences.rows[nodes, at.ABOVE]
        is_asked = np.zeros(len(nodes), np.bool_)
        is_asked[strings.find(condition.asked)] = True
        # Child steps lead from nodes in document order to nodes in document order.
        _, firsts = np.unique(nodes[counts], return_index=True)
        is_empty_asked = len(Strings([b""]).find(condition.asked)) > 0
        result = np.full(len(self.occurrences.of(state)), is_empty_asked)
        result[self.occurrences.places(nodes[counts][firsts])] = is_asked[counts][firsts]
        return result

    def _all(self, operands: tuple[int, ...], state: int) -> Mask | None:
        result: Mask | None = None
        for operand in operands:
            mask = self.where(operand, state)
            if mask is None:
                return None
            result = mask if result is None else result & mask
        return result

    def _inside(self, state: int, inner: int, descends: bool, condition: int) -> Mask | None:
        """Which nodes have one inside that reached a state and of which a condition is true."""
        rows = self.occurrences.rows
        found = self.occurrences.of(inner)
        if condition != given.ALWAYS:
            mask = self.where(condition, inner)
            if mask is None:
                return None
            found = found[mask]
        if not len(found):
            return None
        own = self.occurrences.of(state)
        if not descends:
            return _mask(self.occurrences.places(rows[found, at.ABOVE]), len(own))
        starts = np.append(rows[found, at.START], np.iinfo(np.int64).max)
        following = starts[np.searchsorted(starts, rows[own, at.START], side="right")]
        return np.asarray(following < rows[own, at.END])

    # -- strings -----------------------------------------------------------------------------------

    def _strings_of(self, state: int, source: Source) -> tuple[Int64, Strings]:
        """The strings of a source, and for each the place of its node among those of the state."""
        key = state, source
        if key not in self._strings:
            owners, places = self._nodes(state, source)
            batch = self.batch
            if source.axis is Axis.ATTRIBUTE:
                values, starts, ends = (
                    self._attribute_values,
                    batch.value_start[places],
                    batch.value_end[places],
                )
            elif source == given.TEXTS:
                values, starts, ends = (
                    self._text_values,
                    batch.text_start[places],
                    batch.text_end[places],
                )
            else:
                values, starts, ends = self._text_values, *self._own_texts(state)
            pairs = zip(starts.tolist(), ends.tolist(), strict=True)
            self._strings[key] = owners, Strings(values[start:end] for start, end in pairs)
        return self._strings[key]

    def _nodes(self, state: int, source: Source) -> tuple[Int64, Int64]:
        """The nodes that have the strings: places in the batch; and whose they are, ascending."""
        key = state, source
        if key not in self._owners:
            own = self.occurrences.rows[self.occurrences.of(state), at.START]
            if source.axis is Axis.SELF:
                self._owners[key] = np.arange(len(own)), own
            else:
                places, events = self._candidates(source)
                owners = np.searchsorted(own, events)
                inside = owners < len(own)
                inside[inside] = own[owners[inside]] == events[inside]
                if (
                    state == given.DOCUMENT_STATE
                ):  # its number is that of an event of another document
                    inside[:] = False
                self._owners[key] = owners[inside], places[inside]
        return self._owners[key]

    def _candidates(self, source: Source) -> tuple[Int64, Int64]:
        """All attributes, or text nodes, that a source may be, and the start events of parents."""
        if source == given.TEXTS:
            order = np.argsort(self._text_parents, kind="stable")
            return order, self._text_parents[order]
        if source.test not in self._attributes:
            names = self.batch.attribute_name
            self._attributes[source.test] = np.flatnonzero(self._passes(source.test)[names])
        places = self._attributes[source.test]
        return places, self.batch.attribute_event[places]

    def _passes(self, test: NodeTest) -> Mask:
        count = len(self.vocabulary)
        if test is KindTest.NODE:
            return np.ones(count, np.bool_)
        assert isinstance(test, NameTest)
        if test.namespace is not None and test.local is not None:
            wanted = self.vocabulary.find(test.namespace, test.local)
            return np.asarray(np.arange(count) == wanted)
        return np.array([test.passes(*name) for name in self.vocabulary], np.bool_)

    def _own_texts(self, state: int) -> tuple[Int64, Int64]:
        """Where the string value of each node of a state begins and ends, in ``text_values``."""
        batch, rows = self.batch, self.occurrences.rows[self.occurrences.of(state)]
        first = np.searchsorted(batch.text_event, rows[:, at.START])
        last = np.searchsorted(batch.text_event, rows[:, at.END])
        has_some = first < last
        starts = np.zeros(len(rows), np.int64)
        ends = np.zeros(len(rows), np.int64)
        starts[has_some] = batch.text_start[first[has_some]]
        ends[has_some] = batch.text_end[last[has_some] - 1]
        return starts, ends

    @cached_property
    def _text_parents(self) -> Int64:
        batch = self.batch
        deepest = np.cumsum(np.where(batch.tags >= 0, 1, -1)).max(initial=0)
        parents = np.zeros(len(batch.text_event), np.int64)
        find_parents(batch.tags, batch.text_event, parents, np.zeros(int(deepest), np.int64))
        return parents

    @cached_property
    def _text_values(self) -> bytes:
        return self.batch.text_values.tobytes()

    @cached_property
    def _attribute_values(self) -> bytes:
        return self.batch.attribute_values.tobytes()


def _mask(places: Int64, count: int) -> Mask:
    mask = np.zeros(count, np.bool_)
    mask[places] = True
    return mask


# -- strings ---------------------------------------------------------------------------------------


Mask = NDArray[np.bool_]

_COMPARISONS = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


_NONE = np.zeros(0, np.int64)


class Strings:
    """A sequence of strings.

    Attributes:
        distinct: each, once.
        ids: int64[n]; which of these each is.

    >>> strings = Strings([b"1", b" a", b"1.0"])
    >>> strings.find(Asked((), "=", 1.0)), strings.find(Asked((), "=", b"1"))
    (array([0, 2]), array([0]))
    >>> strings.find(Asked(("normalize-space",), "starts-with", b"a"))
    array([1])
    """

    def __init__(self, values: Iterable[bytes]) -> None:
        numbers: dict[bytes, int] = {}
        ids = [numbers.setdefault(value, len(numbers)) for value in values]
        self._numbers = numbers
        self.distinct = list(numbers)
        self.ids: Int64 = np.array(ids, np.int64)

    def find(self, asked: Asked) -> Int64:
        """The places of those that are as asked, in no order."""
        if not asked.functions and asked.operator == "=" and isinstance(asked.literal, bytes):
            number = self._numbers.get(asked.literal)
            if number is None:
                return _NONE
            order, starts = self._by_number
            return order[starts[number] : starts[number + 1]]
        return np.flatnonzero(self._where_distinct(asked)[self.ids])

    @cached_property
    def _by_number(self) -> tuple[Int64, Int64]:
        """The places of all, those of equal ones together; and where those of each begin."""
        order = np.argsort(self.ids, kind="stable")
        return order, np.searchsorted(self.ids[order], np.arange(len(self.distinct) + 1))

    def _where(self, asked: Asked) -> Mask:
        return self._where_distinct(asked)[self.ids]

    def _where_distinct(self, asked: Asked) -> Mask:
        literal = asked.literal
        if asked.functions:
            *inner, last = asked.functions
            if last == "string-length":
                return self._compared(self._lengths(tuple(inner)), asked)
            return self._normalized._where(Asked((), asked.operator, literal))
        if isinstance(literal, float):
            return self._compared(self._as_numbers, asked)
        if asked.operator == "contains":
            return np.array([literal in value for value in self.distinct], np.bool_)
        if asked.operator == "starts-with":
            return np.array([value.startswith(literal) for value in self.distinct], np.bool_)
        is_equal = np.zeros(len(self.distinct), np.bool_)
        if (number := self._numbers.get(literal)) is not None:
            is_equal[number] = True
        return is_equal if asked.operator == "=" else ~is_equal

    @staticmethod
    def _compared(numbers: NDArray[np.float64], asked: Asked) -> Mask:
        return np.asarray(_COMPARISONS[asked.operator](numbers, asked.literal), np.bool_)

    def _lengths(self, functions: tuple[str, ...]) -> NDArray[np.float64]:
        """How many characters each distinct one has, after what functions make of it."""
        if functions:
            normalized = self._normalized
            return normalized._lengths(())[normalized.ids]
        return np.array([len(value.decode()) for value in self.distinct], np.float64)

    @cached_property
    def _normalized(self) -> Strings:
        return Strings(map(normalize_space, self.distinct))

    @cached_property
    def _as_numbers(self) -> NDArray[np.float64]:
        return np.array([xpath_number(value) for value in self.distinct], np.float64)
