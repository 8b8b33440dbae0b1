"""The kernel on a CUDA GPU: a node of a twig a thread, a pack of twigs a block of threads.

Where there is no GPU, Numba's simulator runs it (``NUMBA_ENABLE_CUDASIM=1``), to test its answers.
"""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
from numba import cuda as numba_cuda
from numba import int32, uint8

from tamis.core.arrays import Bytes, Int32, Int64, starts_of
from tamis.core.errors import EngineRefused
from tamis.core.gpu import on_device
from tamis.core.index.matchset import MatchSet, Which
from tamis.documents.batch import DocumentBatch
from tamis.documents.vocabulary import Vocabulary
from tamis.matching.engine import Sources
from tamis_papers.twigstacks import layout as at
from tamis_papers.twigstacks.execute import Encoded, Encoder, match_set
from tamis_papers.twigstacks.kernels import step
from tamis_papers.twigstacks.program import TwigOptions, TwigProgram

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
CELL_BYTES = 4
"""Of the cell of a column that its children report to with atomic operations."""
HAS_ATOMICS: bool = False
"""Whether they do, see ``kernel_of``."""

_on_device = partial(cuda.jit, device=True, inline="always")
decoded = _on_device(step.decoded)
prefix_of = _on_device(step.prefix_of)
passes = _on_device(step.passes)
pushed = _on_device(step.pushed)
popped = _on_device(step.popped)
has_reported = _on_device(step.has_reported)


def _load(stack: Any, place: int) -> Any:
    """A stack entry.

    Args:
        stack: the array of the levels in shared memory, that of deeper ones; where the former end,
            and what to add to a place for its index in the latter.
        place: of the entry, if all levels were in shared memory.
    """
    shared, spill, shared_end, spill_begin = stack
    if place < shared_end:
        return shared[np.uint32(place)]
    return spill[np.uint64(spill_begin + place)]


def _store(stack: Any, place: int, entry: int) -> None:
    """Change a stack entry; see ``_load``."""
    shared, spill, shared_end, spill_begin = stack
    if place < shared_end:
        shared[np.uint32(place)] = entry
    else:
        spill[np.uint64(spill_begin + place)] = entry


load, store = _on_device(_load), _on_device(_store)


def _have_children(stack: Any, level: int, child: int, child_end: int) -> Any:
    """1 if all children of a column reported to a level, else 0: their matches in arrays.

    Args:
        level: where its entries begin.
        child, child_end: the columns of the children.
    """
    held = np.int64(1)
    while child < child_end:
        held &= has_reported(load(stack, level + child))
        child += 1
    return held


def _push(stack: Any, below: int, row: int, column: int, own: int, tag: int) -> None:
    """An element begins: one column, with its personality."""
    prefix = load(stack, below + prefix_of(own))
    entry = load(stack, below + column)
    store(stack, below + row + column, pushed(own, passes(own, tag), entry, prefix))


def _pop(stack: Any, below: int, row: int, column: int, own: int, tag: int, held: int) -> None:
    """An element ends: one column, with its personality.

    Args:
        held: 1 if all its children reported to the level that ends, else 0.
    """
    closed, top = load(stack, below + column), below - row + column
    entry = load(stack, top)
    store(stack, top, popped(own, passes(own, tag), entry, closed, held))


have_children, push, pop = _on_device(_have_children), _on_device(_push), _on_device(_pop)


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

    Shared memory holds the events of a stride, decoded; a cell for each column, if there are atomic
    operations; and the lower levels of the stack. Unsigned indices spare the code that counts
    negative ones from the end; those of shared memory have 32 bits.

    With atomic operations (Section 4.6), a cell is 1 between events. At an end tag, each child ANDs
    what it has reported to the level that ends into the cell of its parent; the parent reads it
    behind a barrier.

    Args:
        row: columns of a level. levels: how many are in shared memory.
        spill: the deeper levels; each block of threads has ``spill_bytes`` of it.
        results: uint8[documents, twigs]; gets 1 for twigs that are true.
    """
    staged, shared = cuda.shared.array(0, int32), cuda.shared.array(0, uint8)  # the same memory
    column = np.int64(cuda.threadIdx.x)
    packs, documents = len(block_starts) - 1, len(document_starts) - 1
    level_0 = stride * EVENT_BYTES + (row * CELL_BYTES if HAS_ATOMICS else 0)
    cell = np.uint32(stride + column)
    shared_end = level_0 + levels * row
    stack = shared, spill, shared_end, cuda.blockIdx.x * spill_bytes - shared_end
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
            if HAS_ATOMICS:
                staged[cell] = 1
            shared[np.uint32(level_0 + column)] = at.BEGINNING if column < twigs else 0
        is_child, parent_cell = is_used and column >= twigs, np.uint32(stride + prefix_of(own))
        below = level_0  # where the entries of the open element's level begin
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
                        push(stack, below, row, column, own, tag)
                    below += row
                else:
                    if HAS_ATOMICS:
                        if is_child:
                            reported = has_reported(load(stack, below + column))
                            cuda.atomic.and_(staged, parent_cell, reported)
                        cuda.syncthreads()
                    if is_used:
                        if HAS_ATOMICS:
                            held = np.int64(staged[cell])
                            staged[cell] = 1
                        else:
                            held = have_children(stack, below, child, child_end)
                        pop(stack, below, row, column, own, tag, held)
                    below -= row
                cuda.syncthreads()
        if HAS_ATOMICS and has_events:
            if is_child:
                reported = has_reported(load(stack, level_0 + column))
                cuda.atomic.and_(staged, parent_cell, reported)
            cuda.syncthreads()
        if column < twigs:
            held = np.int64(has_events)
            if HAS_ATOMICS:
                held &= staged[cell]
            elif has_events:
                held = have_children(stack, level_0, child, child_end)
            results[document, twig_starts[pack] + column] = held
        cuda.syncthreads()


def kernel_of(has_atomics: bool) -> Any:
    """The kernel, with children's matches in arrays or with atomic operations.

    Numba takes globals for constants, and leaves out what they exclude.
    """
    own = {**globals(), "HAS_ATOMICS": has_atomics}
    return cuda.jit(FunctionType(_match.__code__, own, _match.__name__))


match, match_with_atomics = kernel_of(has_atomics=False), kernel_of(has_atomics=True)


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
        size = end - begin
        self._reserve(size, (documents, len(program.queries)), deeper * blocks)
        self._events[:size] = encoded.events[begin:end]
        self._starts[:] = starts - starts[0]
        # Without what is reserved for larger batches: copies take time.
        self._device_events[:size].copy_to_device(self._events[:size], stream=stream)
        self._device_starts.copy_to_device(self._starts, stream=stream)
        threads = -(-row // _WARP) * _WARP
        kernel = match_with_atomics if options.has_atomics else match
        kernel[blocks, threads, stream, shared_bytes(program.options, program.widest)](
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
        if shared_bytes(program.options, program.widest) > _SHARED_BYTES_MAX:
            raise EngineRefused("fewer levels, or a shorter stride, fit into shared memory")
        self.program = program
        self._encoder = Encoder(program)
        self._arrays = tuple(map(on_device, program.arrays))
        self._lanes = [_Lane(program) for _ in range(program.options.streams)]

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
            lane = self._lanes[turn % len(self._lanes)]
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


def shared_bytes(options: TwigOptions, columns: int) -> int:
    """Bytes of shared memory that a block of threads takes: events, cells and lower levels."""
    of_column = options.levels + (CELL_BYTES if options.has_atomics else 0)
    return options.stride * EVENT_BYTES + of_column * columns
