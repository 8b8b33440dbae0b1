"""``NfaSearcher``: a program at work; and where conditions hold, in the documents of a batch.

The nodes that reached a state are its occurrences, in document order; where a condition holds is a
mask of these. Conditions are evaluated from below, a set of nodes at a time: a step back, from a
state to the one before, keeps the nodes that have one of the others inside: a semijoin.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tamis.core.arrays import Int32, Int64, freeze, starts_of
from tamis.core.index.matchset import MatchSet, Which
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.model import Axis, NodeTest
from tamis.matching.engine import Sources
from tamis.matching.engines.nfa import compile as given
from tamis.matching.engines.nfa import layout as at
from tamis.matching.engines.nfa.compile import DOCUMENT_STATE, NfaProgram, Source
from tamis.matching.engines.nfa.states import NfaRun
from tamis.matching.strings import NONE, BatchValues, Mask, Strings, mask_of


class NfaSearcher:
    """A program at work, without a cache."""

    def __init__(self, program: NfaProgram) -> None:
        self.program = program
        self._nfa_run = NfaRun()
        self.memory_usage = self._nfa_run.memory_usage

    def match(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        _nodes: Which | None = None,
        _sources: Sources | None = None,
    ) -> MatchSet:
        """Which queries are true of which documents."""
        program = self.program
        rows = self._nfa_run.run(program.nfa, program.labels.names, batch, vocabulary)
        starts, found = self._nfa_run.found()
        if program.twigs:
            evaluation = Evaluation(program, batch, vocabulary, rows)
            starts, found = self._with_twigs(starts, found, evaluation)
        freeze(starts, found)
        return MatchSet(starts, found, program.set_starts, program.members)

    def _with_twigs(
        self, starts: Int64, found: Int32, evaluation: Evaluation
    ) -> tuple[Int64, Int32]:
        """The sets that were found, and those of twigs that are true, document after document."""
        answered = np.flatnonzero(np.diff(evaluation.batch.document_starts))
        counts = np.diff(starts)
        documents, sets = [np.repeat(np.arange(len(counts)), counts)], [found]
        for set, condition in self.program.twigs:
            mask = evaluation.where(condition, DOCUMENT_STATE)
            if mask is not None:
                documents.append(answered[mask])
                sets.append(np.full(len(documents[-1]), set, np.int32))
        together = np.concatenate(documents)
        order = np.argsort(together, kind="stable")
        counts = np.bincount(together, minlength=len(counts))
        return starts_of(counts), np.concatenate(sets)[order]


class Evaluation:
    """What is true of the nodes of one batch. All that is computed is kept for the next query.

    Args:
        rows: the occurrences: int64[n, OCCURRENCE], by start event (see ``layout``).
    """

    def __init__(
        self, program: NfaProgram, batch: DocumentBatch, vocabulary: Vocabulary, rows: Int64
    ) -> None:
        self.batch = batch
        self._values = BatchValues(batch, vocabulary)
        self._conditions = program.conditions
        self._rows = rows
        order = np.argsort(rows[:, at.STATE], kind="stable")
        states, starts = np.unique(rows[order, at.STATE], return_index=True)
        bounds = [*starts.tolist(), len(rows)]
        self._of_state = {
            state: order[start:end]
            for state, (start, end) in zip(states.tolist(), pairwise(bounds), strict=True)
        }
        # The index of each occurrence among those of the same state.
        self._indices = np.empty(len(rows), np.int64)
        self._indices[order] = np.arange(len(rows)) - np.repeat(starts, np.diff(bounds))
        self._masks: dict[tuple[int, int], Mask | None] = {}
        self._strings: dict[tuple[int, Source], tuple[Int64, Strings]] = {}
        self._owners: dict[tuple[int, Source], tuple[Int64, Int64]] = {}
        self._attributes: dict[NodeTest, Int64] = {}

    def where(self, condition: int, state: int) -> Mask | None:
        """At which nodes of a state a condition holds; None for nowhere."""
        key = condition, state
        if key not in self._masks:
            mask = self._computed(condition, state) if len(self._of(state)) else None
            self._masks[key] = mask if mask is not None and mask.any() else None
        return self._masks[key]

    def _of(self, state: int) -> Int64:
        """The occurrences of a state: their rows, ascending."""
        return self._of_state.get(state, NONE)

    def _computed(self, condition: int, state: int) -> Mask | None:
        count = len(self._of(state))
        match self._conditions[condition]:
            case given.Combination("not", (operand,)):
                mask = self.where(operand, state)
                return np.ones(count, np.bool_) if mask is None else ~mask
            case given.Combination("or", operands):
                masks = [self.where(operand, state) for operand in operands]
                found = [mask for mask in masks if mask is not None]
                return np.logical_or.reduce(found) if found else None
            case given.Combination(_, operands):
                result = np.ones(count, np.bool_)
                for operand in operands:
                    mask = self.where(operand, state)
                    if mask is None:
                        return None
                    result &= mask
                return result
            case given.Inside(inner, descends, asked):
                return self._inside(state, inner, descends, asked)
            case given.NthInside(inner, stages, asked):
                return self._nth_inside(count, inner, stages, asked)
            case given.ValueIs(source, question, nth):
                if question is None:
                    owners, _ = self._nodes(state, source)
                    passes = np.arange(len(owners))
                else:
                    owners, strings = self._strings_of(state, source)
                    passes = strings.find(question)
                if nth:
                    passes = passes[_ranks(owners)[passes] == nth]
                return mask_of(owners[passes], count)

    def _nth_inside(
        self, count: int, inner: int, stages: tuple[tuple[int, int], ...], condition: int
    ) -> Mask | None:
        """Of which of ``count`` nodes the child at some positions is as asked."""
        found = self._of(inner)
        for asked, nth in (*stages, (condition, 0)):
            if asked != given.ALWAYS:
                mask = self.where(asked, inner)
                if mask is None:
                    return None
                found = found[mask[self._indices[found]]]
            if nth:
                found = found[_ranks(self._rows[found, at.ABOVE]) == nth]
        return mask_of(self._indices[self._rows[found, at.ABOVE]], count)

    def _inside(self, state: int, inner: int, descends: bool, condition: int) -> Mask | None:
        """Which nodes have one inside that reached a state and of which a condition is true."""
        rows = self._rows
        found = self._of(inner)
        if condition != given.ALWAYS:
            mask = self.where(condition, inner)
            if mask is None:
                return None
            found = found[mask]
        if not len(found):
            return None
        own = self._of(state)
        if not descends:
            return mask_of(self._indices[rows[found, at.ABOVE]], len(own))
        starts = np.append(rows[found, at.START], np.iinfo(np.int64).max)
        following = starts[np.searchsorted(starts, rows[own, at.START], side="right")]
        return np.asarray(following < rows[own, at.END])

    # -- strings -----------------------------------------------------------------------------------

    def _strings_of(self, state: int, source: Source) -> tuple[Int64, Strings]:
        """The strings of a source, and for each the index of its node among those of the state."""
        key = state, source
        if key not in self._strings:
            owners, numbers = self._nodes(state, source)
            if source.axis is Axis.ATTRIBUTE:
                strings = self._values.attributes(numbers)
            elif source == given.TEXTS:
                strings = self._values.texts(numbers)
            else:
                rows = self._rows[self._of(state)]
                strings = self._values.elements(rows[:, at.START], rows[:, at.END])
            self._strings[key] = owners, strings
        return self._strings[key]

    def _nodes(self, state: int, source: Source) -> tuple[Int64, Int64]:
        """The owners of strings, ascending; and the numbers of the nodes with these strings."""
        key = state, source
        if key not in self._owners:
            own = self._rows[self._of(state), at.START]
            if source.axis is Axis.SELF:
                self._owners[key] = np.arange(len(own)), own
            else:
                numbers, events = self._candidates(source)
                owners = np.searchsorted(own, events)
                inside = owners < len(own)
                inside[inside] = own[owners[inside]] == events[inside]
                if state == DOCUMENT_STATE:  # its number is that of an event of another document
                    inside[:] = False
                self._owners[key] = owners[inside], numbers[inside]
        return self._owners[key]

    def _candidates(self, source: Source) -> tuple[Int64, Int64]:
        """All attributes, or text nodes, that a source may be, and the start events of parents."""
        if source == given.TEXTS:
            order = np.argsort(self._values.text_parents, kind="stable")
            return order, self._values.text_parents[order]
        if source.test not in self._attributes:
            names = self.batch.attribute_name
            self._attributes[source.test] = np.flatnonzero(self._values.passes(source.test)[names])
        numbers = self._attributes[source.test]
        return numbers, self.batch.attribute_event[numbers]


def _ranks(groups: Int64) -> Int64:
    """The how manieth of its group each item is, from 1 on."""
    order = np.argsort(groups, kind="stable")
    _, firsts, counts = np.unique(groups[order], return_index=True, return_counts=True)
    ranks = np.empty(len(groups), np.int64)
    ranks[order] = np.arange(1, len(groups) + 1) - np.repeat(firsts, counts)
    return ranks
