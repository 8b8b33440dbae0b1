"""Interprets a CUDA kernel: the threads of a block run in shuffled order between barriers.

Numba's simulator neither finds a missing barrier nor wraps integers. This interpreter does:

* The kernel's source is executed as a generator for each thread, which gives way after each
  statement. A scheduler draws which thread goes on, and how far; a barrier holds it until all
  threads of the block are there. A thread that ends while others wait is a fault.
* Memory remembers who read and wrote each byte since the last barrier. Two threads that touch the
  same byte without a barrier between, one of them writing, are a fault, whatever the answer is.
* Shared memory begins with garbage. Indices out of bounds are a fault.
* ``np.uint32`` and the like cut numbers to their bits, and stores cut them to those of the array.

* Atomic operations do not race with each other, but with all other accesses.

Kernels may use ``threadIdx.x``, ``blockIdx.x``, ``blockDim.x``, ``gridDim.x``, dynamic shared
memory, ``atomic.and_`` and ``syncthreads()``.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Generator, Sequence
from random import Random
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Fault(Exception):  # noqa: N818 - what a kernel does wrong
    """What a GPU would not do as the kernel expects."""


Fix = tuple[str, str, int]
"""A piece of the kernel's source, what to write instead; and which of its occurrences, from 0."""


class Memory:
    """An array of a kernel, whose accesses are checked.

    Args:
        array: of one or two dimensions.
        machine: knows the present thread and the barriers before.
        is_shared: whether a block has it for itself.
        first: the index of the array's first item: arrays too large for this machine begin later.
    """

    def __init__(
        self, array: NDArray[Any], machine: Machine, is_shared: bool = False, first: int = 0
    ) -> None:
        self.array, self._machine, self._first = array, machine, first
        self._is_shared = is_shared
        self.shape = array.shape

    def __len__(self) -> int:
        return self._first + len(self.array)

    def _place(self, index: Any) -> tuple[Any, range]:
        parts = [int(part) for part in (index if isinstance(index, tuple) else (index,))]
        parts[0] -= self._first
        for part, size in zip(parts, self.array.shape, strict=True):
            if not 0 <= part < size:
                raise Fault(f"index {index} is out of bounds: {self.array.shape}")
        flat = int(np.ravel_multi_index(parts, self.array.shape)) * self.array.itemsize
        return tuple(parts), range(flat, flat + self.array.itemsize)

    def __getitem__(self, index: Any) -> int:
        place, own = self._place(index)
        self._machine.check(self._key, own, writes=False)
        return int(self.array[place])

    def __setitem__(self, index: Any, value: Any) -> None:
        place, own = self._place(index)
        self._machine.check(self._key, own, writes=True)
        bits = int(value) & ((1 << (8 * self.array.itemsize)) - 1)
        self.array[place] = np.array(bits, f"u{self.array.itemsize}").view(self.array.dtype)

    def atomic_and(self, index: Any, value: int) -> None:
        """Read and write an item at once."""
        place, own = self._place(index)
        self._machine.check(self._key, own, writes=True, is_atomic=True)
        self.array[place] &= self.array.dtype.type(value)

    @property
    def _key(self) -> int:
        return 0 if self._is_shared else id(self.array)


class Machine:
    """The threads of a grid, a block after the other."""

    def __init__(self, draw: Random, threads: int, blocks: int, shared_bytes: int) -> None:
        self._draw = draw
        self._threads, self._blocks, self._shared_bytes = threads, blocks, shared_bytes
        self._accesses: dict[tuple[int, int], list[tuple[int, int, int, bool, bool]]] = {}
        self._epoch = 0
        self.cuda = SimpleNamespace(
            threadIdx=SimpleNamespace(x=0),
            blockIdx=SimpleNamespace(x=0),
            blockDim=SimpleNamespace(x=threads),
            gridDim=SimpleNamespace(x=blocks),
            shared=SimpleNamespace(array=self._shared_array),
            atomic=SimpleNamespace(and_=Memory.atomic_and),
        )

    def _shared_array(self, size: int, dtype: Any) -> Memory:
        assert size == 0, "dynamic shared memory"
        item = np.dtype(str(dtype))
        whole = self._shared_bytes // item.itemsize * item.itemsize
        return Memory(self._shared[:whole].view(item), self, is_shared=True)

    def check(self, memory: int, places: range, writes: bool, is_atomic: bool = False) -> None:
        """Remember an access, and compare it with those before."""
        block, thread = self.cuda.blockIdx.x, self.cuda.threadIdx.x
        for place in places:
            before = self._accesses.setdefault((memory, place), [])
            for other_block, other, epoch, wrote, was_atomic in before:
                apart = other_block != block or (other != thread and epoch == self._epoch)
                if apart and (writes or wrote) and not (is_atomic and was_atomic):
                    raise Fault(f"threads {other} and {thread} race for byte {place}")
            own = (block, thread, self._epoch, writes, is_atomic)
            if own not in before:
                # Accesses of this block before the last barrier are no concern any more.
                before[:] = [a for a in before if a[0] != block or a[2] == self._epoch]
                before.append(own)

    def run(self, kernel: Callable[..., Generator[bool, None, None]], arguments: Any) -> None:
        """Run all blocks, in a drawn order."""
        for block in self._draw.sample(range(self._blocks), self._blocks):
            self.cuda.blockIdx.x = block
            self._epoch += 1
            self._accesses = {key: a for key, a in self._accesses.items() if key[0]}
            garbage = self._draw.randbytes(self._shared_bytes)
            self._shared = np.frombuffer(bytearray(garbage), np.uint8)
            self._run_block([kernel(*arguments) for _ in range(self._threads)])

    def _run_block(self, threads: list[Generator[bool, None, None]]) -> None:
        running, waiting = list(range(len(threads))), list[int]()
        while running:
            thread = self._draw.choice(running)
            for _ in range(self._draw.choice((1, 10, 1_000_000))):
                self.cuda.threadIdx.x = thread
                try:
                    is_barrier = next(threads[thread])
                except StopIteration:
                    running.remove(thread)
                    break
                if is_barrier:
                    running.remove(thread)
                    waiting.append(thread)
                    break
            if not running and waiting:
                if len(waiting) < len(threads):
                    raise Fault("threads wait at a barrier that others never reach")
                running, waiting = waiting, []
                self._epoch += 1


def interpret(
    kernel: Callable[..., None],
    arguments: Sequence[Any],
    machine: Machine,
    faults: Sequence[Fix] = (),
) -> None:
    """Run a kernel.

    Args:
        kernel: the function as it is written, not compiled.
        arguments: numbers and ``Memory``.
        faults: what to change in it before, to see that it is found.

    Raises:
        Fault: the kernel does what a GPU need not do as it expects.
    """
    numbers = SimpleNamespace(
        uint32=lambda number: int(number) & 0xFFFFFFFF,
        uint64=lambda number: int(number) & 0xFFFFFFFFFFFFFFFF,
        int64=int,
    )
    names = {**_in_python(kernel.__globals__, numbers, {})}
    source = textwrap.dedent(inspect.getsource(kernel))
    for old, new, occurrence in faults:
        parts = source.split(old)
        assert len(parts) > occurrence + 1, f"{old} is not in the kernel"
        left, right = old.join(parts[: occurrence + 1]), old.join(parts[occurrence + 1 :])
        source = left + new + right
    tree = ast.fix_missing_locations(_Steps().visit(ast.parse(source)))
    names |= {"cuda": machine.cuda, "np": numbers}
    exec(compile(tree, f"<{kernel.__name__}>", "exec"), names)
    machine.run(names[kernel.__name__], arguments)


def _in_python(
    names: dict[str, Any], numbers: SimpleNamespace, done: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    """The names of a module, with the functions of the device as Python runs them.

    Args:
        done: by the identity of a module's names, what was made of them.
    """
    if id(names) not in done:
        own = done[id(names)] = {**names, "np": numbers}
        for name, value in names.items():
            function = getattr(value, "py_func", None)
            if function is not None:
                inner = _in_python(function.__globals__, numbers, done)
                own[name] = FunctionType(function.__code__, inner)
    return done[id(names)]


class _Steps(ast.NodeTransformer):
    """Barriers become ``yield True``; behind other simple statements comes ``yield False``."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns, node.decorator_list = None, []
        for argument in node.args.args:
            argument.annotation = None
        self.generic_visit(node)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        is_barrier = ast.unparse(node) == "cuda.syncthreads()"
        return _gives_way(True) if is_barrier else [node, _gives_way(False)]

    def visit_Assign(self, node: ast.Assign) -> Any:
        return [node, _gives_way(False)]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        return [node, _gives_way(False)]


def _gives_way(is_barrier: bool) -> ast.Expr:
    return ast.Expr(ast.Yield(ast.Constant(is_barrier)))
