"""Stacks on a CUDA GPU: a thread for each word of 64 twigs, in all subtrees of one height at once.

The processor compresses documents to distinct subtrees. What a subtree latches depends only on the
subtrees inside it. So one launch evaluates all subtrees of one height, for some groups of twigs.
Within a launch no thread waits for another one. Each thread runs ``kernels/step.py``.

Where there is no GPU, Numba's simulator runs it (``NUMBA_ENABLE_CUDASIM=1``), to test its answers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import FunctionType
from typing import Any

import numpy as np
from numba import cuda as numba_cuda
from numba import uint64
from numpy.typing import NDArray

from tamis.core.arrays import Int32, Int64, Words, starts_of
from tamis.core.gpu import on_device
from tamis.core.kernel.blocks import BLOCK
from tamis.matching.engines.stacks import layout as at
from tamis.matching.engines.stacks.execute import StacksSearcher
from tamis.matching.engines.stacks.kernels import step
from tamis.matching.engines.stacks.kernels.compress import list_heights
from tamis.matching.engines.stacks.kernels.evaluate import collect, compress_segment
from tamis.matching.engines.stacks.program import StacksProgram

# Numba has no types for mypy.
cuda: Any = numba_cuda

_THREADS, _WARP = 64, 32
"""Of a block: eight subtrees, if what is known inside of them fits into shared memory."""
_BLOCKS_MAX = 65_535
"""Along the y axis; along the x axis there are enough."""
_SHARED_BYTES_MAX = 48 << 10
"""Of a block, unless the driver is asked for more."""
_SUBTREES, _ANSWER_WORDS = 1 << 16, 1 << 27
"""Of a segment, at most; the answers of as many documents take no more than 1 GB."""
_LATCHED_WORDS = 1 << 27
"""Of ``latched`` and ``known`` together, for some groups of twigs: 1 GB."""

# -- blocks ----------------------------------------------------------------------------------------


def _load(words: Any, index: int) -> Any:
    """This thread's word of a block."""
    return words[np.uint64(index + cuda.threadIdx.x % BLOCK)]


def _store(words: Any, index: int, word: Any) -> None:
    """Write it."""
    words[np.uint64(index + cuda.threadIdx.x % BLOCK)] = word


def _device_function(function: Callable[..., Any], **names: Any) -> Any:
    """A function of the device, in which some names stand for functions of the device."""
    plain = getattr(function, "py_func", function)
    own = FunctionType(plain.__code__, {**plain.__globals__, **names}, plain.__name__)
    return cuda.jit(own, device=True, inline="always")


store = _device_function(_store)
_BLOCKS = {
    "load": _device_function(_load),
    "store": store,
    **{"and_": operator.and_, "or_": operator.or_, "xor": operator.xor},
}
_FROM_BELOW = {
    "with_children": _device_function(step.with_children, **_BLOCKS),
    "with_latched": _device_function(step.with_latched, **_BLOCKS),
}
evaluate_subtree = _device_function(step.evaluate_subtree, **_BLOCKS, **_FROM_BELOW)
document_answers = _device_function(step.document_answers, **_BLOCKS, **_FROM_BELOW)

# -- arrays in one ---------------------------------------------------------------------------------
# Numba prepares each argument of each launch, so a launch gets few arrays.

(
    ORDER,  # int32[n]; the subtrees of a segment, by height
    SYMBOLS,  # see ``Dag`` in ``layout.py``; so are the next two
    CHILD_STARTS,
    CHILDREN,
    KNOWN_ROWS,  # int32[n]; the row of what is known inside, apart from children; 0: nothing
    ANSWER_ROWS,  # int32[n]; where the answers of a document go; -1 for other elements
    LEVEL_ROWS,  # int32[]; for each of the rows that are known, the row of ``levels`` it begins as
    FACTS,  # int32[]; of elements
    FACT_ROWS,  # int32[]; the rows that are known of these
    OPEN_CHILDREN,  # int32[]; of open elements
    OPEN_STARTS,  # int32[levels + 1]; where those of each one begin
    HAS_ROW,  # int32[levels]; whether an open element is in ``levels`` already
) = range(12)
"""A segment, in one array."""

GROUP_SLOTS, IS_GENERAL, EDGE_STARTS, EDGE_SLOTS, NEGATIONS, OWNS = range(6)
BELOW, OWN, UNASKED, NEGATED, TWIGS = range(5)
_NUMBERS = ("group_slots", "is_general", "edge_starts", "edge_slots", "negations", "owns")
_WORDS = ("below", "own", "unasked", "negated", "twigs")
"""The arrays of a program, in one of int32 and one of words."""


def packed(arrays: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    """Several arrays in one. It begins with where each of them begins, at a line of memory.

    >>> packed([np.array([5]), np.array([6, 7])], np.int64)[[0, 1, 8, 16, 17]]
    array([ 8, 16,  5,  6,  7])
    """
    sizes = len(arrays), *map(len, arrays)
    starts = starts_of([-(-size // BLOCK) * BLOCK for size in sizes])
    result = np.zeros(starts[-1], dtype)
    result[: len(arrays)] = starts[1:-1]
    for start, array in zip(starts[1:-1].tolist(), arrays, strict=True):
        result[start : start + len(array)] = array
    return result


def _part(arrays: Any, number: int) -> Any:
    """One of the arrays; those behind it follow."""
    return arrays[np.int64(arrays[number]) :]


part = _device_function(_part)

# -- kernels ---------------------------------------------------------------------------------------


def _begin_rows(
    segment: Int32, rows: int, levels: Words, row_words: int, begin: int, known: Words, width: int
) -> None:
    """What open elements have of some groups, from earlier segments; zeros for other elements."""
    level_rows = part(segment, LEVEL_ROWS)
    for item in range(cuda.grid(1), rows * width, cuda.gridsize(1)):
        row = np.int64(level_rows[item // width])
        known[item] = levels[row * row_words + begin + item % width]


def _add_facts(
    rows: Int32,
    facts: Int32,
    starts: Int64,
    words: Int64,
    bits: Words,
    begin: int,
    end: int,
    target: Words,
    width: int,
) -> None:
    """Set the nodes that facts are about, in rows of some groups; a fact a block of threads."""
    pair = cuda.blockIdx.x
    fact, first = facts[pair], np.int64(rows[pair]) * width - begin
    last = starts[fact + 1]
    for place in range(starts[fact] + cuda.threadIdx.x, last, cuda.blockDim.x):
        word = words[place]
        if begin <= word < end:
            cuda.atomic.or_(target, first + word, bits[place])


def _evaluate(
    first: int,
    count: int,
    segment: Int32,
    subtrees: int,
    first_group: int,
    groups: int,
    row_words: int,
    numbers: Int32,
    blocks: Words,
    known: Words,
    known_words: int,
    passing: Words,
    latched: Words,
    answers: Words,
) -> None:
    """What subtrees of one height latch, for some groups of twigs.

    Args:
        first, count: which subtrees, in their order; ``subtrees``: of the segment.
        groups: of the program.
        known: rows of so many words.
        passing: by symbol, a row of the nodes whose test it passes.
        latched: of the groups; for each one of them, of all subtrees of the segment.
    """
    inner_words = cuda.shared.array(0, uint64)
    own = np.int64(cuda.threadIdx.x // BLOCK)
    item = cuda.blockIdx.x * (cuda.blockDim.x // BLOCK) + own
    if item < count:
        subtree = np.int64(part(segment, ORDER)[first + item])
        number = np.int64(first_group + cuda.blockIdx.y)
        slots = part(numbers, GROUP_SLOTS)
        chunk = np.int64(slots[first_group]) * BLOCK
        begin, end = np.int64(slots[number]) * BLOCK, np.int64(slots[number + 1]) * BLOCK
        group = number, begin, end, part(numbers, IS_GENERAL)[number] != 0
        edges = (
            *(part(numbers, EDGE_STARTS), part(numbers, EDGE_SLOTS), part(blocks, UNASKED)),
            *(part(numbers, NEGATIONS), part(blocks, NEGATED)),
        )
        program = part(blocks, BELOW), part(numbers, OWNS), part(blocks, OWN), edges
        row = np.int64(part(segment, KNOWN_ROWS)[subtree]) * known_words - chunk
        tests = np.int64(part(segment, SYMBOLS)[subtree]) * row_words
        starts, children = part(segment, CHILD_STARTS), part(segment, CHILDREN)
        child, last = np.int64(starts[subtree]), np.int64(starts[subtree + 1])
        while child < last and children[child] < 0:  # facts, which are known
            child += 1
        inner = inner_words, own * (end - begin) - begin
        below = latched, (begin - chunk) * subtrees
        element = (known, row), (passing, tests), (children, child, last), subtree
        evaluate_subtree(program, group, element, below, inner)
        answer = np.int64(part(segment, ANSWER_ROWS)[subtree])
        if answer >= 0:
            found = document_answers(program, part(blocks, TWIGS), group, inner)
            store(answers, (answer * groups + number) * BLOCK, found)


def _keep_open(
    segment: Int32,
    subtrees: int,
    open_levels: int,
    first_group: int,
    row_words: int,
    numbers: Int32,
    latched: Words,
    levels: Words,
) -> None:
    """The segment ends inside a document: what open elements have of some groups so far."""
    slots, number = part(numbers, GROUP_SLOTS), first_group + cuda.blockIdx.y
    children, starts = part(segment, OPEN_CHILDREN), part(segment, OPEN_STARTS)
    chunk, begin = np.int64(slots[first_group]) * BLOCK, np.int64(slots[number]) * BLOCK
    width = np.int64(slots[number + 1]) * BLOCK - begin
    below = (begin - chunk) * subtrees
    for item in range(cuda.grid(1), open_levels * width, cuda.gridsize(1)):
        level, word = item // width, item % width
        place = (at.FIRST + level) * row_words + begin + word
        known = levels[place] if part(segment, HAS_ROW)[level] else np.uint64(0)
        for index in range(starts[level], starts[level + 1]):
            child = np.int64(children[index])
            if child >= 0:
                known |= latched[below + child * width + word]
        levels[place] = known


begin_rows, add_facts = cuda.jit(_begin_rows), cuda.jit(_add_facts)
evaluate, keep_open = cuda.jit(_evaluate), cuda.jit(_keep_open)

# -- segments --------------------------------------------------------------------------------------


class _Segment:
    """What launches have to know of a segment.

    Attributes:
        arrays: see ``ORDER`` and those behind it.
        heights: where the subtrees of each height begin in their order; and the end.
        documents: how many distinct ones end.
    """

    def __init__(self, words: Int64, dag: at.Dag, work: at.Work) -> None:
        count = int(words[at.SUBTREES])
        heights = np.empty(count, np.int32)
        list_heights(words, heights)
        self.heights = starts_of(np.bincount(heights)).tolist()
        starts, children = dag.child_starts[: count + 1], work.children[: words[at.CHILDREN]]
        facts = np.flatnonzero(children < 0)
        owners = np.searchsorted(starts, facts, side="right") - 1
        is_known = dag.rows[:count] != at.NOTHING
        is_known[owners] = True
        rows = np.where(is_known, np.cumsum(is_known), 0)
        symbols = dag.symbols[:count]
        is_document = symbols == words[at.DOCUMENT_SYMBOL]
        levels = slice(at.FIRST, int(words[at.LEVEL]) + 1)
        self.arrays = (
            *(np.argsort(heights, kind="stable"), symbols, starts, children, rows),
            np.where(is_document, dag.sets[:count] - words[at.SEGMENT_SETS], -1),
            np.append(at.NOTHING, dag.rows[:count][is_known]),
            *(~children[facts], rows[owners]),
            work.pending[: words[at.PENDING]],
            np.append(work.starts[levels], words[at.PENDING]),
            work.has_row[levels],
        )
        self.documents = int(words[at.SETS] - words[at.SEGMENT_SETS])

    def count(self, number: int) -> int:
        """How many items one of its arrays has."""
        return len(self.arrays[number])


class CudaStacksSearcher(StacksSearcher):
    """Answers batches with a program, on a GPU, in one thread at a time."""

    def __init__(self, program: StacksProgram) -> None:
        arrays = program.arrays
        subtrees = _ANSWER_WORDS // (max(len(arrays.is_general), 1) * BLOCK)
        super().__init__(program, subtrees=max(min(subtrees, _SUBTREES), 2))
        self._numbers = on_device(packed([getattr(arrays, name) for name in _NUMBERS], np.int32))
        self._blocks = on_device(packed([getattr(arrays, name) for name in _WORDS], np.uint64))
        fact_bits = arrays.fact_starts, arrays.fact_words, arrays.fact_bits
        self._fact_bits = tuple(map(on_device, fact_bits))
        self._room: dict[str, Any] = {"levels": on_device(np.zeros(program.row, np.uint64))}
        self._passing: tuple[Words, Any] | None = None

    def memory_usage(self) -> int:
        """Bytes of the room for work, here and on the GPU."""
        arrays = (self._numbers, self._blocks, *self._fact_bits, *self._room.values())
        passing = 0 if self._passing is None else self._passing[0].nbytes
        return super().memory_usage() + passing + sum(int(array.nbytes) for array in arrays)

    def _run(self) -> None:
        words = self._state.words
        while words[at.DOCUMENT] < len(self._state.arrays.document_sets):
            self._state.run(compress_segment)
            if words[at.SUBTREES]:
                self._evaluate()
            words[at.PHASE] = at.COLLECT
            self._state.run(collect)

    def _evaluate(self) -> None:
        """What is true of the documents of a segment."""
        segment = _Segment(self._state.words, self._dag, self._state.arrays)
        groups, widest = len(self.program.arrays.is_general), self.program.widest
        arrays = packed(segment.arrays, np.int32)
        on_gpu = self._reserved("segment", len(arrays), np.int32)
        on_gpu[: len(arrays)].copy_to_device(arrays)
        answers = self._reserved("answers", segment.documents * groups * BLOCK)
        rows = segment.count(ORDER) + segment.count(LEVEL_ROWS)
        at_once = min(max(_LATCHED_WORDS // (rows * widest), 1), _BLOCKS_MAX)
        for first in range(0, groups, at_once):
            some = first, min(at_once, groups - first)
            self._evaluate_groups(segment, on_gpu, some, answers)
        if segment.count(HAS_ROW):
            self._add_open_facts(segment)
        found = self._state.arrays.answers[: segment.documents * groups * BLOCK]
        if len(found):
            answers[: len(found)].copy_to_host(found)

    def _evaluate_groups(
        self, segment: _Segment, arrays: Any, some: tuple[int, int], answers: Any
    ) -> None:
        """What subtrees latch, for some groups."""
        (first, count), program = some, self.program
        slots, row_words = program.arrays.group_slots, program.row
        begin, end = int(slots[first]) * BLOCK, int(slots[first + count]) * BLOCK
        width, subtrees = end - begin, segment.count(ORDER)
        open_levels, rows = segment.count(HAS_ROW), segment.count(LEVEL_ROWS)
        levels, passing = self._levels(open_levels), self._passing_rows()
        known = self._reserved("known", rows * width)
        latched = self._reserved("latched", subtrees * width)
        grid = _grid(rows * width)
        begin_rows[grid, _THREADS](arrays, rows, levels, row_words, begin, known, width)
        self._add_facts(segment.arrays[FACT_ROWS], segment.arrays[FACTS], begin, end, known, width)
        together = min(_THREADS // BLOCK, _SHARED_BYTES_MAX // (8 * program.widest))
        shared = together * 8 * program.widest
        for begin_order, end_order in pairwise(segment.heights):
            height = end_order - begin_order
            evaluate[(-(-height // together), count), BLOCK * together, 0, shared](
                *(begin_order, height, arrays, subtrees, first, len(slots) - 1, row_words),
                *(self._numbers, self._blocks, known, width, passing, latched, answers),
            )
        if open_levels:
            keep_open[(_grid(open_levels * program.widest), count), _THREADS](
                arrays, subtrees, open_levels, first, row_words, self._numbers, latched, levels
            )

    def _add_facts(
        self, rows: Any, facts: Any, begin: int, end: int, target: Any, width: int
    ) -> None:
        """Set the nodes that facts are about, in rows of so many words."""
        if len(facts):
            pairs = [on_device(each.astype(np.int32)) for each in (rows, facts)]
            launched = add_facts[len(facts), _WARP]
            launched(*pairs, *self._fact_bits, begin, end, target, width)

    def _add_open_facts(self, segment: _Segment) -> None:
        """The facts of open elements."""
        children, row_words = segment.arrays[OPEN_CHILDREN], self.program.row
        facts = np.flatnonzero(children < 0)
        level = np.searchsorted(segment.arrays[OPEN_STARTS], facts, side="right") - 1
        levels = self._levels(segment.count(HAS_ROW))
        self._add_facts(at.FIRST + level, ~children[facts], 0, row_words, levels, row_words)

    def _passing_rows(self) -> Any:
        """By symbol, the nodes whose test it passes."""
        rows = self._names.tests
        if self._passing is None or self._passing[0] is not rows:
            self._passing = rows, on_device(rows)
        return self._passing[1]

    def _levels(self, open_levels: int) -> Any:
        """The rows of open elements, which stay as they are when there are more of them."""
        levels, size = self._room["levels"], (at.FIRST + open_levels) * self.program.row
        if size > levels.size:
            self._room["levels"] = cuda.device_array(2 * size, np.uint64)
            self._room["levels"][: levels.size].copy_to_device(levels)
        return self._room["levels"]

    def _reserved(self, name: str, size: int, dtype: Any = np.uint64) -> Any:
        """Room for so many items, whose contents are lost when it grows."""
        if name not in self._room or self._room[name].size < size:
            self._room.pop(name, None)  # freed before more is taken
            self._room[name] = cuda.device_array(max(size, 1), dtype)
        return self._room[name]


def _grid(threads: int) -> int:
    """Blocks of threads for so many items."""
    return max(min(-(-threads // _THREADS), _BLOCKS_MAX), 1)
