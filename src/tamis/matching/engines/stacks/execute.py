"""``StacksSearcher``: a program at work."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64, Words, freeze, starts_of
from tamis.core.index.matchset import MatchSet, Which
from tamis.core.kernel.blocks import aligned
from tamis.core.kernel.state import State, zeros
from tamis.core.kernel.table import slots_for
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import NameNumbers, Vocabulary
from tamis.language.model import Axis, NameTest, NodeTest
from tamis.matching.engine import Sources
from tamis.matching.engines.stacks import layout as at
from tamis.matching.engines.stacks.kernels.evaluate import run
from tamis.matching.engines.stacks.program import StacksProgram
from tamis.matching.strings import BatchValues, Strings

_ROOM = 64
_LATCHED_BYTES = 1 << 23
"""Of ``latched``, about: a core's share of the last cache. Larger segments share more subtrees."""
_SUBTREES_MIN = 64


class StacksSearcher:
    """Answers batches with a program, in one thread at a time.

    Args:
        subtrees: of a segment, where they are evaluated elsewhere; 0: as many as fit into a cache.
    """

    def __init__(self, program: StacksProgram, subtrees: int = 0) -> None:
        self.program = program
        self._names = _Names(program)
        latched = 0
        if not subtrees:
            subtrees = max(_LATCHED_BYTES // (8 * program.widest), _SUBTREES_MIN)
            latched = subtrees * program.widest
        self._dag = zeros(at.Dag, subtrees, child_starts=subtrees + 1, slots=slots_for(subtrees))
        work = zeros(
            at.Work,
            _ROOM,
            latched=aligned(np.zeros(latched, np.uint64)),
            inner=aligned(np.zeros(program.widest, np.uint64)),
            levels=aligned(np.zeros(at.FIRST * program.row, np.uint64)),
            fact_at=len(program.facts),
        )
        together = [("open_symbols", "elements", "starts", "has_row")]
        self._state = _State(at.STATE_SIZE, at.WORK, work, together)
        self._state.register(at.PROGRAM, program.arrays)
        self._state.register(at.DAG, self._dag)
        self._state.words[at.ROW] = program.row

    def memory_usage(self) -> int:
        """Bytes of the kernels' state, of the DAG, and of the rows of names."""
        dag = sum(array.nbytes for array in self._dag)
        return self._state.memory_usage() + dag + self._names.tests.nbytes

    def match(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        _nodes: Which | None = None,
        _sources: Sources | None = None,
    ) -> MatchSet:
        """Which queries are true of which documents."""
        state, words, program = self._state, self._state.words, self.program
        symbols = self._names.of(vocabulary)
        words[: at.SUBTREES] = 0
        words[at.DOCUMENT_SYMBOL] = self._names.document
        events, facts = self._facts(batch, vocabulary)
        sets = np.full(batch.documents, -1, np.int32)
        state.replace(document_sets=sets, set_starts=np.zeros(batch.documents + 1, np.int64))
        read = at.Read(
            batch.document_starts,
            batch.tags,
            symbols,
            self._names.tests,
            events,
            facts,
            program.queries,
        )
        state.register(at.READ, read)
        self._run()
        starts = state.arrays.set_starts[: words[at.SETS] + 1]
        members = state.arrays.members[: words[at.MEMBERS]].copy()
        has_set = sets >= 0
        matches = MatchSet(starts_of(has_set), sets[has_set], starts, members)
        freeze(*matches[:4])
        return matches

    def _run(self) -> None:
        """Answer the documents of a batch."""
        self._state.run(run)

    def _facts(self, batch: DocumentBatch, vocabulary: Vocabulary) -> tuple[Int64, Int32]:
        """What is true of elements beside their names, by start event."""
        sources: dict[tuple[Axis, NodeTest], list[int]] = {}
        for number, (axis, test, _) in enumerate(self.program.facts):
            sources.setdefault((axis, test), []).append(number)
        events, facts = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        values = BatchValues(batch, vocabulary)
        for (axis, test), numbers in sources.items():
            located, strings = _strings_of(values, batch, axis, test)
            for number in numbers:
                question = self.program.facts[number].question
                found = located if question is None else located[strings().find(question)]
                events.append(found)
                facts.append(np.full(len(found), number, np.int32))
        together = np.concatenate(events)
        order = np.argsort(together, kind="stable")
        return together[order], np.concatenate(facts)[order]


def _strings_of(
    values: BatchValues, batch: DocumentBatch, axis: Axis, test: NodeTest
) -> tuple[Int64, Callable[[], Strings]]:
    """The elements that have certain strings, by start event; and these strings."""
    passes = values.passes(test)
    if axis is Axis.ATTRIBUTE:
        numbers = np.flatnonzero(passes[batch.attribute_name])
        return batch.attribute_event[numbers], cache(lambda: values.attributes(numbers))
    if axis is Axis.CHILD:
        numbers = np.flatnonzero(passes[batch.tags[values.text_parents]])
        return values.text_parents[numbers], cache(lambda: values.texts(numbers))
    starts = np.flatnonzero((batch.tags >= 0) & passes[batch.tags])
    return starts, cache(lambda: values.elements(starts, values.ends[starts]))


class _State(State[at.Work]):
    """Whose levels begin at a line of the cache."""

    def replace(self, **arrays: NDArray[Any]) -> None:
        if "levels" in arrays:
            arrays["levels"] = aligned(arrays["levels"])
        super().replace(**arrays)


class _Names:
    """The symbols of a vocabulary's names: what names pass the same tests have the same symbol.

    Attributes:
        tests: the row of each symbol: which nodes' tests its names pass.
    """

    def __init__(self, program: StacksProgram) -> None:
        self._program = program
        self._numbers = {test: number for number, test in enumerate(program.tests)}
        self._symbols: dict[tuple[int, ...], int] = {(): 0}
        self._of = NameNumbers({}, self._symbol)
        self.tests = aligned(np.concatenate([program.any_element, program.document]))

    @property
    def document(self) -> int:
        """The symbol of the document: the last one."""
        return len(self._symbols)

    def of(self, vocabulary: Vocabulary) -> Int32:
        """By name: its symbol."""
        symbols = len(self._symbols)
        found = self._of.of(vocabulary)
        if len(self._symbols) > symbols:
            program = self._program
            rows = [self._row(passed) for passed in [*self._symbols][symbols:]]
            before = self.tests[: symbols * program.row]
            self.tests = aligned(np.concatenate([before, *rows, program.document]))
        return found

    def _symbol(self, namespace: str, local: str) -> int:
        tests = (NameTest(namespace, local), NameTest(namespace, None), NameTest(None, local))
        passed = tuple(self._numbers[test] for test in tests if test in self._numbers)
        return self._symbols.setdefault(passed, len(self._symbols))

    def _row(self, passed: tuple[int, ...]) -> Words:
        """The nodes whose test a name passes."""
        row = self._program.any_element.copy()
        starts, words, bits = self._program.test_bits
        for test in passed:
            some = slice(starts[test], starts[test + 1])
            row[words[some]] |= bits[some]
        return row
