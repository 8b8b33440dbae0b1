"""``TwigProgram``: twigs as personalities, packed into blocks, in frozen arrays."""

from __future__ import annotations

from typing import NamedTuple

from tamis.core.arrays import Int32, Int64
from tamis.documents.vocabulary import Projection


class TwigOptions(NamedTuple):
    """How the kernel is laid out.

    Attributes:
        block: how many columns a block of threads has; the paper's best is 256. A larger twig gets
            a block of its own.
        levels: CUDA: how many levels of the stack are in shared memory. Deeper ones are in global
            memory.
        stride: CUDA: how many events are copied into shared memory at once.
        documents_at_once: CUDA: how many documents one launch matches, at most.
        streams: CUDA: how many launches take turns. With two, the next documents are copied while
            the last ones are matched.
        has_atomics: CUDA: children report to their parent with atomic operations instead of in
            arrays. To compare with, see Section 4.6.
    """

    block: int = 256
    levels: int = 32
    stride: int = 256
    documents_at_once: int = 64
    streams: int = 2
    has_atomics: bool = False


class TwigArrays(NamedTuple):
    """What kernels read.

    A *column* is a node of a twig. Columns of a block are numbered from 0: first the dummy roots of
    its twigs, then level by level. So the children of a column stand side by side.

    Attributes:
        block_starts: int64[blocks + 1]; the columns of block i are ``block_starts[i]`` up to
            ``block_starts[i + 1]``, counted over all blocks.
        twig_starts: int64[blocks + 1]; its twigs, likewise. The root of its n-th twig is column n.
        personalities: int64[columns]; see :mod:`.layout`.
        child_starts: int32[columns + blocks]; the children of column c of block i are the columns
            of the block from ``child_starts[block_starts[i] + i + c]`` on, up to the next entry.
    """

    block_starts: Int64
    twig_starts: Int64
    personalities: Int64
    child_starts: Int32


class TwigProgram(NamedTuple):
    """Compiled twigs.

    Attributes:
        arrays: for kernels.
        queries: int32[twigs]; the query of each twig, in the order of blocks.
        names: the expanded names that twigs test for; the tag of the n-th is n + 1.
        options: how it was compiled.
    """

    arrays: TwigArrays
    queries: Int32
    names: tuple[tuple[str, str], ...]
    options: TwigOptions

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return len(self.arrays.block_starts) - 1

    @property
    def widest(self) -> int:
        """The columns of the widest block."""
        starts = self.arrays.block_starts
        return int((starts[1:] - starts[:-1]).max(initial=0))

    @property
    def event_width(self) -> int:
        """Bytes of an encoded event: 1 with up to 127 names, as in Table 1; else 2 or 4."""
        return next(width for width in (1, 2, 4) if len(self.names) < 1 << (8 * width - 1))

    @property
    def projection(self) -> Projection:
        """Tags alone."""
        return Projection()

    def memory_usage(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in (*self.arrays, self.queries))
