"""The kernel on a CUDA GPU: a node of a twig a thread, a pack of twigs a block of threads.

Where there is no GPU, Numba's simulator runs it (``NUMBA_ENABLE_CUDASIM=1``), to test its answers.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import cuda as numba_cuda
from numba import int32, uint8

from tamis.core.arrays import Bytes, Int32, Int64, starts_of
from tamis.core.errors import EngineRefused
from tamis.core.index.matchset import MatchSet, Which
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.matching.engine import Sources
from tamis_papers.twigstacks import layout as at
from tamis_papers.twigstacks.execute import Encoded, Encoder, match_set
from tamis_papers.twigstacks.kernels import step
from tamis_papers.twigstacks.program import TwigProgram

# Numba has no types for mypy.
cuda: Any = numba_cuda

_WARP, _THREADS_MAX = 32, 1_024
_BLOCKS_MAX = 1 << 16
"""Blocks of one launch. Each takes one pack and document after the other."""
_SHARED_BYTES_MAX = 48 << 10
"""Of a block, unless the driver is asked for more."""
_SPILL_BYTES_MAX = 1 << 28
_RESULT_BYTES_MAX = 1 << 26
EVENT_BYTES = 4
"""Of a decoded event in shared memory."""
_LANES = 2
"""While one chunk of documents is matched, the next one is copied."""

_on_device = partial(cuda.jit, device=True, inline="always")
decoded = _on_device(step.decoded)
prefix_of = _on_device(step.prefix_of)
passes = _on_device(step.passes)
pushed = _on_device(step.pushed)
popped = _on_device(step.popped)
has_reported = _on_device(step.has_reported)


def _load(shared: Any, spill: Any, place: int, shared_end: int, spill_begin: int) -> Any:
    """A stack entry.

    Args:
        place: of the entry, if all levels were in shared memory.
        shared_end: where the levels in shared memory end.
        spill_begin: what to add to a place for its index in ``spill``.
    """
    if place < shared_end:
        return shared[np.uint32(place)]
    return spill[np.uint64(spill_begin + place)]


def _store(
    shared: Bytes, spill: Bytes, place: int, shared_end: int, spill_begin: int, entry: int
) -> None:
    """Change a stack entry; see ``_load``."""
    if place < shared_end:
        shared[np.uint32(place)] = entry
    else:
        spill[np.uint64(spill_begin + place)] = entry


load, store = _on_device(_load), _on_device(_store)


def _match(
    events: Bytes,
    width: int,
    stride: int,
    document_starts: Int64,
    block_starts: Int64,
    twig_starts: Int64,
    personalities: Int64,
    child_starts: Int32,
    row: int,
    levels: int,
    spill: Bytes,
    spill_bytes: int,
    results: Any,
) -> None:
    """Algorithm 1, for one pack of twigs and one document after the other.

    Shared memory holds the events of a stride, decoded, and behind them the lower levels of the
    stack. Unsigned indices spare the code that counts negative ones from the end; those of shared
    memory have 32 bits.

    Args:
        row: columns of a level. levels: how many are in shared memory.
        spill: the deeper levels; each block of threads has ``spill_bytes`` of it.
        results: uint8[documents, twigs]; gets 1 for twigs that are true.
    """
    staged, shared = cuda.shared.array(0, int32), cuda.shared.array(0, uint8)  # the same memory
    column = np.int64(cuda.threadIdx.x)
    packs, documents = len(block_starts) - 1, len(document_starts) - 1
    stack = stride * EVENT_BYTES
    shared_end = stack + levels * row
    spill_begin = cuda.blockIdx.x * spill_bytes - shared_end
    for item in range(cuda.blockIdx.x, packs * documents, cuda.gridDim.x):
        pack, document = item % packs, item // packs
        first = block_starts[np.uint64(pack)]
        twigs = twig_starts[np.uint64(pack + 1)] - twig_starts[np.uint64(pack)]
        is_used = column < block_starts[np.uint64(pack + 1)] - first
        own, child, child_end = np.int64(0), np.int64(0), np.int64(0)
        if is_used:
            own = personalities[np.uint64(first + column)]
            child = np.int64(child_starts[np.uint64(first + pack + column)])
            child_end = np.int64(child_starts[np.uint64(first + pack + column + 1)])
            shared[np.uint32(stack + column)] = at.BEGINNING if column < twigs else 0
        prefix_column = prefix_of(own)
        below = stack  # where the entries of the open element's level begin
        start, end = document_starts[np.uint64(document)], document_starts[np.uint64(document + 1)]
        has_events = start < end  # else it is in error
        while start < end:
            count = min(np.int64(stride), end - start)
            for index in range(column, count, cuda.blockDim.x):
                staged[np.uint32(index)] = decoded(
                    events, np.uint64((start + index) * width), width
                )
            start += count
            cuda.syncthreads()
            for index in range(count):
                code = np.int64(staged[np.uint32(index)])
                tag = code >> 1
                if code & 1 == 0:
                    if is_used:
                        prefix = load(shared, spill, below + prefix_column, shared_end, spill_begin)
                        entry = load(shared, spill, below + column, shared_end, spill_begin)
                        entry = pushed(own, passes(own, tag), entry, prefix)
                        top = below + row + column
                        store(shared, spill, top, shared_end, spill_begin, entry)
                    below += row
                else:
                    if is_used:
                        held, each = np.int64(1), child
                        while each < child_end:
                            entry = load(shared, spill, below + each, shared_end, spill_begin)
                            held &= has_reported(entry)
                            each += 1
                        closed = load(shared, spill, below + column, shared_end, spill_begin)
                        top = below - row + column
                        entry = load(shared, spill, top, shared_end, spill_begin)
                        entry = popped(own, passes(own, tag), entry, closed, held)
                        store(shared, spill, top, shared_end, spill_begin, entry)
                    below -= row
                cuda.syncthreads()
        if column < twigs:
            held, each = np.int64(has_events), child
            while has_events and each < child_end:
                held &= has_reported(np.int64(shared[np.uint32(stack + each)]))
                each += 1
            results[document, twig_starts[pack] + column] = held
        cuda.syncthreads()


match = cuda.jit(_match)


class _Lane:
    """A stream, and the memory that it works on, here and on the GPU."""

    def __init__(self, program: TwigProgram) -> None:
        self._stream = cuda.stream()
        self._program = program
        self._first = self._documents = 0
        self._capacity = -1
        self._shape = (0, 0)
        self._spill = cuda.device_array(1, np.uint8)

    def _reserve(self, size: int, shape: tuple[int, int], spill_size: int) -> None:
        if size > self._capacity:
            self._capacity = size + size // 2 + 1
            self._events = cuda.pinned_array(self._capacity, np.uint8)
            self._device_events = cuda.device_array(self._capacity, np.uint8)
        if shape != self._shape:
            self._shape = shape
            self._starts = cuda.pinned_array(shape[0] + 1, np.int64)
            self._results = cuda.pinned_array(shape, np.uint8)
            self._device_starts = cuda.device_array(shape[0] + 1, np.int64)
            self._device_results = cuda.device_array(shape, np.uint8)
        if spill_size > self._spill.size:
            self._spill = cuda.device_array(spill_size, np.uint8)

    def launch(self, encoded: Encoded, first: int, documents: int, arrays: tuple[Any, ...]) -> None:
        """Queue all that is to be done with some documents; nothing is waited for."""
        program, stream = self._program, self._stream
        options, width, row = program.options, program.event_width, program.widest
        starts = encoded.document_starts[first : first + documents + 1]
        begin, end = int(starts[0]) * width, int(starts[-1]) * width
        deeper = max(0, encoded.depth + 1 - options.levels) * row
        blocks = min(program.blocks * documents, _BLOCKS_MAX)
        if deeper:
            blocks = max(1, min(blocks, _SPILL_BYTES_MAX // deeper))
        self._reserve(end - begin, (documents, len(program.queries)), deeper * blocks)
        self._events[: end - begin] = encoded.events[begin:end]
        self._starts[:] = starts - starts[0]
        self._device_events.copy_to_device(self._events, stream=stream)
        self._device_starts.copy_to_device(self._starts, stream=stream)
        threads = -(-row // _WARP) * _WARP
        match[blocks, threads, stream, _shared_bytes(program)](
            *(self._device_events, width, options.stride, self._device_starts, *arrays),
            *(row, options.levels, self._spill, deeper, self._device_results),
        )
        self._device_results.copy_to_host(self._results, stream=stream)
        self._first, self._documents = first, documents

    def finish(self) -> tuple[Int64, Int64]:
        """Wait for it: the documents that twigs are true of, and these twigs."""
        self._stream.synchronize()
        if not self._documents:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        documents, twigs = np.nonzero(self._results)
        self._documents = 0
        return documents + self._first, twigs

    def memory_usage(self) -> int:
        """Bytes on the GPU."""
        return int(self._spill.nbytes) + max(self._capacity, 0) + self._shape[0] * self._shape[1]


class CudaTwigSearcher:
    """Matches batches on a GPU. It belongs to one thread at a time."""

    def __init__(self, program: TwigProgram) -> None:
        if program.widest > _THREADS_MAX:
            raise EngineRefused(f"a block of CUDA has {_THREADS_MAX} threads at most")
        if _shared_bytes(program) > _SHARED_BYTES_MAX:
            raise EngineRefused("fewer levels, or a shorter stride, fit into shared memory")
        self.program = program
        self._encoder = Encoder(program)
        self._arrays = tuple(map(_copied, program.arrays))
        self._lanes = [_Lane(program) for _ in range(_LANES)]

    def match(
        self,
        batch: DocumentBatch,
        vocabulary: Vocabulary,
        _nodes: Which | None = None,
        _sources: Sources | None = None,
    ) -> MatchSet:
        """Which queries are true of which documents; where they matched is not recorded."""
        encoded = self._encoder.encode(batch, vocabulary)
        queries = max(len(self.program.queries), 1)
        at_once = min(self.program.options.documents_at_once, _RESULT_BYTES_MAX // queries)
        firsts = range(0, batch.documents if self.program.blocks else 0, max(at_once, 1))
        found = []
        for turn, first in enumerate(firsts):
            lane = self._lanes[turn % _LANES]
            found.append(lane.finish())
            documents = min(firsts.step, batch.documents - first)
            lane.launch(encoded, first, documents, self._arrays)
        found += [lane.finish() for lane in self._lanes]
        of = np.concatenate([part[0] for part in found])  # a document each
        twigs = np.concatenate([part[1] for part in found]).astype(np.int32)
        starts = starts_of(np.bincount(of, minlength=batch.documents))
        return match_set(self.program, starts, twigs[np.argsort(of, kind="stable")])

    def memory_usage(self) -> int:
        """Bytes of the room for work; the GPU's."""
        lanes = sum(lane.memory_usage() for lane in self._lanes)
        return lanes + sum(int(array.nbytes) for array in self._arrays)


def _shared_bytes(program: TwigProgram) -> int:
    """Bytes of shared memory that a block of threads takes: events and lower levels."""
    return program.options.stride * EVENT_BYTES + program.options.levels * program.widest


def _copied(array: Any) -> Any:
    """An array on the GPU, where none may be empty."""
    return cuda.to_device(np.ascontiguousarray(array) if len(array) else np.zeros(1, array.dtype))


def is_there() -> bool:
    """Whether there is a GPU, or its simulator."""
    return bool(cuda.is_available())
