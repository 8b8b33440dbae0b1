"""CCM: the tables at work on a CUDA GPU. The only module that imports CUDA.

Where there is no GPU, Numba's simulator runs it (``NUMBA_ENABLE_CUDASIM=1``), to test what it does.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numba import cuda as numba_cuda

from tamis.core.arrays import Bytes, Int32, Int64, freeze
from tamis.core.gpu import on_device
from tamis.core.index.matchset import MatchSet
from tamis.events.model import EventBatch, Owners
from tamis_papers.pcm import layout as at
from tamis_papers.pcm.execute import Preparation, joined, singletons
from tamis_papers.pcm.kernels.select import covers, sat_with
from tamis_papers.pcm.program import PcmProgram, UInt64

# Numba has no types for mypy.
cuda: Any = numba_cuda

STAGES = 8
"""A counter of 32 bits has so many half bytes, of which each counts for one launch."""
_HALF_BYTE = 15

_THREADS = 256
"""Of a block, at most."""
_WARP = 32
_BLOCKS_MAX = 65_535
"""Along the y axis."""

_LANES = 2
"""While the GPU works for one, the CPU prepares the next."""
_LANE_BYTES_MAX = 1 << 28
_LINES_AT_FIRST = 4_096

_on_device = partial(cuda.jit, device=True, inline="always")
_covers = _on_device(covers)
_sat = _on_device(sat_with(_on_device))


def _evaluate(
    lines: Int64,
    line_count: int,
    blooms: UInt64,
    strings: Bytes,
    constr_op: Bytes,
    constr_val: Int64,
    constr_filter_id: Int32,
    constr_bf: UInt64,
    sizes: Int32,
    list_starts: Int64,
    list_kinds: Bytes,
    list_values: Int64,
    string_starts: Int64,
    string_bytes: Bytes,
    owner_of: Int32,
    filters_count: Any,
    interfaces: Any,
    stage: int,
    count_max: int,
) -> None:
    """The paper's Algorithm 1: a thread along x is a constraint, a block along y lines of Input.

    Args:
        filters_count: uint32[events at once, f]; interfaces: uint8[events at once, owners].
        stage: which half byte counts, from 0 on.
        count_max: the mask of a counter.
    """
    x = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    for y in range(cuda.blockIdx.y, line_count, cuda.gridDim.y):
        if x >= lines[y, at.LINE_NUM_CONSTR]:
            continue
        constraint = lines[y, at.LINE_FIRST] + x
        copy = lines[y, at.LINE_COPY]
        if not _covers(blooms[copy], constr_bf[constraint]):
            continue
        if not _sat(
            np.int64(constr_op[constraint]),
            constr_val[constraint],
            lines[y, at.LINE_KIND],
            lines[y, at.LINE_VALUE],
            lines[y, at.LINE_START],
            lines[y, at.LINE_END],
            strings,
            list_starts,
            list_kinds,
            list_values,
            string_starts,
            string_bytes,
        ):
            continue
        filter = constr_filter_id[constraint]
        shift = 4 * stage
        before = cuda.atomic.add(filters_count, (copy, filter), np.uint32(1 << shift))
        if ((np.int64(before) >> shift) & count_max) + 1 == sizes[filter]:
            interfaces[copy, owner_of[filter]] = 1


def _reset(filters_count: Any, interfaces: Any, copies: int, is_new: bool) -> None:
    """Clear what the last launch left; the counters only if it used their last half byte."""
    first, step = cuda.grid(1), cuda.gridsize(1)
    owners = interfaces.shape[1]
    for place in range(first, copies * owners, step):
        interfaces[place // owners, place % owners] = 0
    if is_new:
        filters = filters_count.shape[1]
        for place in range(first, filters_count.shape[0] * filters, step):
            filters_count[place // filters, place % filters] = 0


evaluate = cuda.jit(_evaluate)
reset = cuda.jit(_reset)


class _Lane:
    """A stream, and the memory that it works on, here and on the GPU.

    Attributes:
        lines, blooms: here, to be prepared.
        first, copies: the events that are under way, none if there are no copies.
    """

    def __init__(self, copies: int, filters: int, owners: int) -> None:
        self.stream = cuda.stream()
        self.first = self.copies = 0
        self._stage = 0
        self.blooms = cuda.pinned_array(copies, np.uint64)
        self._marked = cuda.pinned_array((copies, owners), np.uint8)
        self._device_blooms = cuda.device_array(copies, np.uint64)
        self._filters_count = cuda.device_array((copies, filters), np.uint32)
        self._interfaces = cuda.device_array((copies, owners), np.uint8)
        self.make_room(_LINES_AT_FIRST)

    def make_room(self, lines: int) -> None:
        """Room for so many lines."""
        self.lines = cuda.pinned_array((lines, at.LINE_WIDTH), np.int64)
        self._device_lines = cuda.device_array((lines, at.LINE_WIDTH), np.int64)

    def memory_usage(self) -> int:
        """Bytes of what is on the GPU."""
        arrays = (self._device_lines, self._device_blooms, self._filters_count, self._interfaces)
        return sum(int(array.nbytes) for array in arrays)

    def launch(
        self, count: int, longest: int, size_max: int, strings: Any, tables: tuple[Any, ...]
    ) -> None:
        """Queue all that is to be done with what was prepared; nothing is waited for."""
        stream, copies = self.stream, self.copies
        is_small = size_max <= _HALF_BYTE
        stage = self._stage if is_small else 0
        self._stage = (self._stage + 1) % STAGES
        blocks = min(-(-self._filters_count.size // _THREADS), 4 * _THREADS)
        reset[blocks, _THREADS, stream](self._filters_count, self._interfaces, copies, stage == 0)
        if count:
            self._device_lines[:count].copy_to_device(self.lines[:count], stream=stream)
            self._device_blooms.copy_to_device(self.blooms, stream=stream)
            threads = min(_THREADS, -(-longest // _WARP) * _WARP)
            grid = (-(-longest // threads), min(count, _BLOCKS_MAX))
            evaluate[grid, threads, stream](
                self._device_lines,
                count,
                self._device_blooms,
                strings,
                *tables,
                self._filters_count,
                self._interfaces,
                stage,
                _HALF_BYTE if is_small else 0xFFFFFFFF,
            )
        self._interfaces[:copies].copy_to_host(self._marked[:copies], stream=stream)

    def finish(self) -> tuple[Int64, Int64]:
        """Wait for it: the events that have owners, and these."""
        self.stream.synchronize()
        copies, owners = np.nonzero(self._marked[: self.copies])
        self.copies = 0
        return copies + self.first, owners


class CcmSearcher:
    """Matches batches with the tables of a program, on a GPU."""

    def __init__(self, program: PcmProgram, owners: Owners, threads: int) -> None:
        del threads
        self.program = program
        self._always = np.unique(owners.of[program.empty])
        self._singletons = singletons(owners.total)
        tables = program.tables
        copied = (
            *(tables.constr_op, tables.constr_val, tables.constr_filter_id, tables.constr_bf),
            *(tables.sizes, tables.list_starts, tables.list_kinds, tables.list_values),
            *(tables.string_starts, tables.string_bytes, owners.of[program.numbers]),
        )
        self._tables = tuple(map(on_device, copied))
        filters = len(tables.sizes)
        copy_bytes = 4 * filters + 2 * owners.total
        at_once = min(program.options.events_at_once, _LANE_BYTES_MAX // max(copy_bytes, 1))
        self._lanes = [
            _Lane(max(at_once, 1), max(filters, 1), max(owners.total, 1)) for _ in range(_LANES)
        ]
        self._preparation = Preparation(program)

    def match(self, batch: EventBatch) -> MatchSet:
        """The owners of filters that match each event."""
        for lane in self._lanes:
            lane.finish()  # what is left of a batch that failed
        preparation = self._preparation
        events = preparation.begin(batch)
        strings = on_device(batch.string_bytes)
        fine = np.flatnonzero(events.is_error == 0)
        owners = np.tile(self._always.astype(np.int64), len(fine))
        found: list[tuple[Int64, Int64]] = [(np.repeat(fine, len(self._always)), owners)]
        turn = 0
        while preparation.event < batch.events:
            lane = self._lanes[turn % _LANES]
            found.append(lane.finish())
            lane.first = preparation.event
            while not (copies := preparation.prepare(lane.lines, lane.blooms)):
                lane.make_room(2 * len(lane.lines))
            lane.copies = copies
            count, longest = preparation.lines, preparation.longest
            lane.launch(count, longest, self.program.size_max, strings, self._tables)
            turn += 1
        found += [lane.finish() for lane in self._lanes]
        return self._match_set(found, batch.events)

    def _match_set(self, found: list[tuple[Int64, Int64]], events: int) -> MatchSet:
        of = np.concatenate([part[0] for part in found])
        owners = np.concatenate([part[1] for part in found]).astype(np.int32)
        counts = np.bincount(of, minlength=events).astype(np.int32)
        starts, set_ids = joined(counts[None], [owners[np.argsort(of, kind="stable")]])
        matches = self._singletons._replace(document_starts=starts, set_ids=set_ids)
        freeze(*matches[:5])
        return matches

    def memory_usage(self) -> int:
        """Bytes of the room for work; the GPU's."""
        lanes = sum(lane.memory_usage() for lane in self._lanes)
        return lanes + sum(int(array.nbytes) for array in self._tables)
