"""``TwigSearcher``: a program at work on the CPU; and batches encoded, for the GPU too."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.core.arrays import Bytes, Int32, Int64, freeze, starts_of
from tamis.core.index.matchset import MatchSet, Which
from tamis.core.kernel.state import State, zeros
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import NameNumbers, Vocabulary
from tamis.matching.engine import Sources
from tamis_papers.twigstacks import layout as at
from tamis_papers.twigstacks.kernels.match import encode, match_documents
from tamis_papers.twigstacks.program import TwigProgram


class Encoded(NamedTuple):
    """A batch as Table 1 has it.

    Attributes:
        document_starts: int64[d + 1]; in events.
        events: uint8[width * n].
        depth: of the deepest element.
    """

    document_starts: Int64
    events: Bytes
    depth: int


class Encoder:
    """Encodes batches for a program; it remembers the tags of a vocabulary's names."""

    def __init__(self, program: TwigProgram) -> None:
        tags = {name: number for number, name in enumerate(program.names, start=1)}
        self._tags = NameNumbers(tags, at.OTHER)
        self.width = program.event_width

    def encode(self, batch: DocumentBatch, vocabulary: Vocabulary) -> Encoded:
        """Encode a batch."""
        tags = batch.tags
        depth = depth_of(tags)
        events = np.empty(self.width * len(tags), np.uint8)
        encode(tags, self._tags.of(vocabulary), self.width, np.empty(depth, np.int32), events)
        return Encoded(batch.document_starts, events, depth)


def depth_of(tags: Int32) -> int:
    """The depth of the deepest element of some documents.

    >>> depth_of(np.array([0, 1, -1, 1, 2, -1, -1, -1], np.int32))
    3
    """
    steps = np.where(tags >= 0, np.int32(1), np.int32(-1))
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def match_set(program: TwigProgram, starts: Int64, twigs: Int32) -> MatchSet:
    """The matches of documents.

    Args:
        starts: int64[d + 1]; the twigs of document i are ``twigs[starts[i]:starts[i + 1]]``.
    """
    sets = starts_of(np.ones(len(program.queries), np.int64))
    freeze(starts, twigs, sets)
    return MatchSet(starts, twigs, sets, program.queries)


class TwigSearcher:
    """Matches batches on one core. It belongs to one thread at a time."""

    def __init__(self, program: TwigProgram) -> None:
        self.program = program
        self._encoder = Encoder(program)
        self._state = State(at.STATE_SIZE, at.WORK, zeros(at.Work, 0, found_starts=1))
        self._state.register(at.PROGRAM, program.arrays)
        self._state.words[at.WIDTH] = program.event_width
        self.memory_usage = self._state.memory_usage

    def match(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        _nodes: Which | None = None,
        _sources: Sources | None = None,
    ) -> MatchSet:
        """Which queries are true of which documents; where they matched is not recorded."""
        state, program = self._state, self.program
        encoded = self._encoder.encode(batch, vocabulary)
        state.words[at.DOCUMENT] = state.words[at.FOUND_COUNT] = 0
        state.register(at.READ, at.Read(encoded.document_starts, encoded.events))
        state.reserve((encoded.depth + 1) * program.widest, "stack")
        state.replace(
            found_starts=np.zeros(batch.documents + 1, np.int64),
            found=np.empty(len(program.queries) + 4 * batch.documents, np.int32),
        )
        state.run(match_documents)
        starts, found = state.arrays.found_starts, state.arrays.found
        matches = match_set(program, starts, found[: state.words[at.FOUND_COUNT]].copy())
        state.replace(found_starts=np.zeros(1, np.int64), found=np.zeros(0, np.int32))
        return matches
