"""Documents of a template: the same bytes for the same seed and number, whatever else is made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.core.errors import UsageError
from tamis_workload.documents import kernels
from tamis_workload.documents.kernels import Template
from tamis_workload.documents.template import Kind

SIZE_MAX = 1 << 40
_BUFFER_BYTES = 1 << 20
_ATTEMPTS = 20


class Bounds(NamedTuple):
    """What one document may be.

    Attributes:
        depth: levels of elements, at most.
        size: bytes, at most.
        records: how often the outermost loops go round; 0 leaves that to chance.
        fill: let the outermost loops go round until the size is reached.
    """

    depth: int
    size: int
    records: int = 0
    fill: bool = False


class Expansion:
    """Expands one template within bounds, again and again.

    Raises:
        UsageError: nothing that the template permits is within the bounds.
    """

    def __init__(self, template: Template, bounds: Bounds) -> None:
        if bounds.size > SIZE_MAX:
            raise UsageError(f"a document has {SIZE_MAX:,} bytes at most, not {bounds.size:,}")
        self._template = template
        self._bounds = bounds
        # Each takes this many bytes and its markup, so there are never more of them than numbers.
        self._id_digits = len(str(bounds.size // 8))
        self._frame_count = (bounds.depth + 2) * (template.nesting + 1)
        leaves = np.concatenate([template.of_kind(Kind.TEXT)[:, :2], template.values[:, :2]])
        self._longest = max(self._id_digits, int((leaves[:, 1] - leaves[:, 0]).max(initial=0)))
        self._elements = len(template.of_kind(Kind.ELEMENT))
        self._references = len(template.of_kind(Kind.REFERENCE)) > 0
        self._has_ids = len(template.of_kind(Kind.ID)) > 0
        self._costs = self._fewest_bytes(without_references=False)
        self._check()

    def _fewest_bytes(self, without_references: bool) -> NDArray[np.int64]:
        # The rows stop changing after at most as many levels as there are elements.
        rows = min(self._bounds.depth, self._elements) + 1
        table = np.empty((rows, len(self._template.nodes)), np.int64)
        rows = kernels.costs(self._template, self._id_digits, without_references, table)
        return table[:rows]

    @cached_property
    def _costs_without_references(self) -> NDArray[np.int64]:
        return self._fewest_bytes(without_references=True)

    def _check(self) -> None:
        depth, size = self._bounds.depth, self._bounds.size
        fewest = int(self._costs[min(depth, len(self._costs) - 1), self._template.root])
        if fewest >= kernels.IMPOSSIBLE:
            raise UsageError(
                f"there is no document of {depth} levels: each has to go deeper, or has to have "
                "what is not declared or cannot be written"
            )
        if fewest > size:
            raise UsageError(
                f"the smallest document of {depth} levels has {fewest:,} bytes: "
                f"ask for a size of that at least, not {size:,}"
            )

    def document(self, seed: int, number: int) -> bytes:
        """One document."""
        return b"".join(self.pieces(seed, number))

    def pieces(self, seed: int, number: int) -> Iterator[bytes]:
        """One document, in pieces of some mebibyte: it never has to fit into memory."""
        if not self._references:
            yield from self._expand(_random(seed, number, 0), 0, self._costs)
            return
        for attempt in range(_ATTEMPTS if self._has_ids else 0):
            # References go to IDs before and after them: how many there are is known in the end.
            random = _random(seed, number, attempt)
            ids, references = self._count(random.copy(), self._costs)
            if ids or not references:
                yield from self._expand(random, ids, self._costs)
                return
        costs = self._costs_without_references
        if costs[min(self._bounds.depth, len(costs) - 1), self._template.root] > self._bounds.size:
            raise UsageError(
                "an IDREF is required, and no document was found that has an ID for it: ask for "
                f"more levels than {self._bounds.depth}, or more bytes than {self._bounds.size:,}"
            )
        yield from self._expand(_random(seed, number, _ATTEMPTS), 0, costs)

    def _count(self, random: NDArray[np.uint64], costs: NDArray[np.int64]) -> tuple[int, int]:
        """How many IDs and references a document has."""
        state = np.zeros(kernels.STATES, np.int64)
        for _ in self._filled(random, 0, costs, state):
            pass
        return int(state[kernels.IDS]), int(state[kernels.REFERENCES])

    def _expand(
        self, random: NDArray[np.uint64], ids: int, costs: NDArray[np.int64]
    ) -> Iterator[bytes]:
        state = np.zeros(kernels.STATES, np.int64)
        for piece in self._filled(random, ids, costs, state):
            yield piece.tobytes()

    def _filled(
        self,
        random: NDArray[np.uint64],
        ids: int,
        costs: NDArray[np.int64],
        state: NDArray[np.int64],
    ) -> Iterator[NDArray[np.uint8]]:
        """The part of the buffer that was written, each time that it is full, and in the end."""
        depth, size, records, fill = self._bounds
        options = kernels.Options(ids, self._id_digits, records, fill)
        frames = np.empty((self._frame_count, kernels.COLUMNS), np.int64)
        buffer = np.empty(min(size, _BUFFER_BYTES) + self._longest, np.uint8)
        slack = size - int(costs[min(depth, len(costs) - 1), self._template.root])
        written = kernels.start(
            self._template, costs, frames, depth, slack, options, random, state, buffer
        )
        yield buffer[:written]
        status = kernels.FULL
        while status == kernels.FULL:
            before = state[kernels.WRITTEN]
            status = kernels.write(
                self._template, costs, frames, options, self._longest, random, state, buffer
            )
            yield buffer[: state[kernels.WRITTEN] - before]


def _random(seed: int, number: int, attempt: int) -> NDArray[np.uint64]:
    digest = hashlib.sha256(f"{seed} {number} {attempt}".encode()).digest()
    return np.frombuffer(digest[:8], "<u8").astype(np.uint64)
