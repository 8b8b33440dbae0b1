"""``NfaRun``: runs an NFA over batches, and holds what that takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel.record import register
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.matching.engines.nfa import layout
from tamis.matching.engines.nfa.kernels.running import run
from tamis.matching.engines.nfa.layout import AT, DONE, ENTRY, LEVEL, OCCURRENCE, Arrays
from tamis.matching.engines.nfa.states import Nfa
from tamis.matching.filters import ElementLabels

_ROOM = 1 << 10


class NfaRun:
    """The workspace of one thread; it learns nothing, and the NFA may grow between two runs."""

    def __init__(self) -> None:
        self._element_labels = ElementLabels([])
        self._known_labels = -1
        self._state = np.zeros(layout.STATE_SIZE, np.int64)
        self._arrays: dict[str, Any] = {
            "here": np.zeros(_ROOM * ENTRY, np.int32),
            "pending": np.zeros(_ROOM * ENTRY, np.int32),
            "levels": np.zeros(_ROOM * LEVEL, np.int64),
            "targets": np.zeros(_ROOM, np.int32),
            "probes": np.zeros(_ROOM, np.int32),
            "is_pending": np.zeros(0, np.uint8),
            "reached_in": np.zeros(0, np.int32),
            "tops": np.zeros(0, np.int64),
            "found": np.zeros(_ROOM, np.int32),
            "found_starts": np.zeros(1, np.int64),
            "occurrences": np.zeros(_ROOM * OCCURRENCE, np.int64),
        }

    def memory_usage(self) -> int:
        """The bytes of the workspace."""
        usage: int = sum(array.nbytes for array in self._arrays.values())
        return usage

    def found(self) -> tuple[Int64, Int32]:
        """The sets found in the last run: ``found[starts[i]:starts[i + 1]]`` in document i.

        Both are the caller's.
        """
        used = self._state[layout.FOUND_USED]
        return self._arrays["found_starts"].copy(), self._arrays["found"][:used].copy()

    def run(
        self, nfa: Nfa, names: Sequence[str], batch: DocumentBatch, vocabulary: Vocabulary
    ) -> Int64:
        """Run an NFA over a batch.

        Args:
            names: what the labels of the NFA stand for.
            vocabulary: that the batch was parsed with.

        Returns:
            int64[n, OCCURRENCE]; the nodes that reached watched states, by start event; until the
            next run.
        """
        state = self._state
        if len(names) != self._known_labels:
            self._known_labels = len(names)
            self._element_labels = ElementLabels(names)
        own, of_namespace = self._element_labels.of(vocabulary)
        self._arrays["found_starts"] = np.zeros(batch.documents + 1, np.int64)
        self._reserve("is_pending", len(nfa), 0)
        self._reserve("tops", len(nfa), -1)
        self._reserve("reached_in", len(nfa), 0)
        serial = int(state[layout.SERIAL])
        if serial + batch.documents > np.iinfo(np.int32).max:
            self._arrays["reached_in"][:] = serial = 0
        state[: AT.records] = 0
        state[layout.SERIAL] = serial
        state[layout.SETS] = nfa.sets
        state[layout.IS_WATCHING] = nfa.is_watching
        read: dict[str, Any] = {
            "records": nfa.records.reshape(-1),
            "table": nfa.table,
            "next_set": nfa.next_set,
            "document_starts": batch.document_starts,
            "tags": batch.tags,
            "labels": own,
            "namespace_labels": of_namespace,
        }
        register(state, AT.records, Arrays(**read, **self._arrays))
        while run(state) != DONE:
            self._make_room()
            register(state, AT.records, Arrays(**read, **self._arrays))
        used = int(state[layout.OCCURRENCES_USED])
        rows: Int64 = self._arrays["occurrences"][: used * OCCURRENCE].reshape(used, OCCURRENCE)
        return rows

    def _make_room(self) -> None:
        """Make room for what the next event may add to stacks and lists."""
        state = self._state
        needed = int(state[layout.NEEDED])
        self._reserve("here", (int(state[layout.HERE_USED]) + needed) * ENTRY, 0)
        self._reserve("pending", (int(state[layout.PENDING_USED]) + needed) * ENTRY, 0)
        self._reserve("targets", needed, 0)
        self._reserve("probes", needed, 0)
        self._reserve("levels", (int(state[layout.DEPTH]) + 2) * LEVEL, 0)
        self._reserve("found", int(state[layout.FOUND_USED] + state[layout.SETS]), 0)
        if state[layout.IS_WATCHING]:
            occurrences = int(state[layout.OCCURRENCES_USED]) + needed
            self._reserve("occurrences", occurrences * OCCURRENCE, 0)

    def _reserve(self, name: str, size: int, filled_with: int) -> None:
        """Make an array as long as asked, and half as long again, unless it is."""
        array = self._arrays[name]
        if size > len(array):
            wide = np.full(size + size // 2, filled_with, array.dtype)
            wide[: len(array)] = array
            self._arrays[name] = wide
