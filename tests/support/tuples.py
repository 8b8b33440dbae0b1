"""Path-tuples: each way in which the steps of a filter bind nodes, from the NFA's occurrences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Int64
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.language.filters import Labels
from tamis.matching.engines.nfa import layout as at
from tamis.matching.engines.nfa.states import Nfa, NfaRun


class PathTuples(NamedTuple):
    """The matches of one filter.

    Attributes:
        nodes: int64[k, steps]; for each step the start event of the element that it bound. The last
            column ascends.
        documents: int64[k]; in which document each is.
    """

    nodes: Int64
    documents: Int64


def path_tuples(
    filters: Sequence[str], batch: DocumentBatch, vocabulary: Vocabulary
) -> list[PathTuples]:
    """All path-tuples of each filter."""
    labels, nfa = Labels(), Nfa()
    ends = nfa.add([labels.read(text) for text in filters]).tolist()
    paths = [path_to(nfa, end) for end in ends]
    nfa.watch([state for path in paths for state in path])
    rows = NfaRun().run(nfa, labels.names, batch, vocabulary)
    return [_tuples(nfa, path, batch, rows) for path in paths]


def path_to(nfa: Nfa, state: int) -> list[int]:
    """The states that the steps of a filter lead to, the last one being that state."""
    found: list[int] = []
    while state > 0:
        found.append(state)
        state = int(nfa.records[state, at.PARENT])
    return found[::-1]


def _tuples(nfa: Nfa, path: Sequence[int], batch: DocumentBatch, rows: Int64) -> PathTuples:
    starts, outer, above = (rows[:, field].tolist() for field in (at.START, at.OUTER, at.ABOVE))
    descends = [nfa.descends(state) for state in path]

    def ways(row: int, step: int) -> Iterator[tuple[int, ...]]:
        """The nodes of all steps up to one, which bound the node of an occurrence."""
        if step == 0:
            yield (starts[row],)
            return
        before = above[row]
        while before >= 0:
            for way in ways(before, step - 1):
                yield (*way, starts[row])
            before = outer[before] if descends[step] else -1

    lasts = np.flatnonzero(rows[:, at.STATE] == path[-1]).tolist()
    found = [way for row in lasts for way in ways(row, len(path) - 1)]
    nodes = np.array(found, np.int64).reshape(-1, len(path))
    documents = np.searchsorted(batch.document_starts, nodes[:, -1], side="right") - 1
    return PathTuples(nodes, documents)
