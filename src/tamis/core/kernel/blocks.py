"""Blocks of 512 bits, in kernels: eight words, for which LLVM takes the widest registers there are.

With AVX-512 a block is one register, with AVX2 it is two, with NEON four.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.core.arrays import Words
from tamis.core.kernel.declare import intrinsic

BLOCK = 8
"""How many words a block has."""
BLOCK_BITS = 64 * BLOCK

Block = NDArray[np.uint64]
"""What kernels hold in registers; it is no array to them."""


def aligned(words: Words) -> Words:
    """A copy that begins at a line of the cache: a block that lies in two takes twice the time.

    >>> aligned(np.arange(3, dtype=np.uint64)).ctypes.data % 64
    0
    """
    room = np.empty(len(words) + BLOCK, np.uint64)
    first = -(room.ctypes.data // 8) % BLOCK
    result = room[first : first + len(words)]
    result[:] = words
    return result


@intrinsic
def load(words: Words, index: int) -> Block:
    """The block that begins at a word."""
    return words[index : index + BLOCK].copy()


@intrinsic
def store(words: Words, index: int, block: Block) -> None:
    """Write a block at a word and those behind it."""
    words[index : index + BLOCK] = block


@intrinsic
def and_(one: Block, other: Block) -> Block:
    """The bits that are in both."""
    return one & other


@intrinsic
def or_(one: Block, other: Block) -> Block:
    """The bits that are in one of them, or in both."""
    return one | other


@intrinsic
def xor(one: Block, other: Block) -> Block:
    """The bits that are in one of them alone."""
    return one ^ other
