"""What the kernels need of the processor, and hashes."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Bytes, Int32
from tamis.core.kernel import U, inlined
from tamis.core.kernel.declare import intrinsic

LANES = 16
"""So many filters are looked at at a time."""
ALL = U((1 << LANES) - 1)


def _bits(conditions: np.ndarray) -> np.uint64:
    return U(sum(1 << lane for lane, holds in enumerate(conditions.tolist()) if holds))


@intrinsic
def within(arena: Int32, place: int, rank: int) -> np.uint64:
    """Bit i: whether a rank is within the i-th of LANES ranges of 16 bits; see ``Cells.arena``."""
    bounds = arena[place : place + LANES].view(np.uint32)
    return _bits(((U(rank) - bounds) & 0xFFFF) <= bounds >> 16)


@intrinsic
def within_wide(arena: Int32, low: int, width: int, rank: int) -> np.uint64:
    """The same of ranges of 32 bits, the parts of which are from two places on."""
    lows, widths = (arena[start : start + LANES].view(np.uint32) for start in (low, width))
    return _bits(((U(rank) - lows) & 0xFFFFFFFF) <= widths)


@intrinsic
def big_endian(data: Bytes, place: int) -> np.uint64:
    """Eight bytes from a place on, the first of them in the highest bits."""
    return U(int.from_bytes(data[place : place + 8].tobytes().ljust(8, b"\0"), "big"))


@intrinsic
def if_less(one: np.uint64, other: np.uint64, value: int, otherwise: int) -> int:
    """A value if one word is less than another, otherwise another one; never by a branch."""
    return value if one < other else otherwise


@inlined
def is_within(bounds: int, rank: int) -> bool:
    """The same of one range of 16 bits."""
    return ((rank - bounds) & 0xFFFF) <= ((bounds >> 16) & 0xFFFF)


@inlined
def mixed(word: np.uint64) -> np.uint64:
    """Another word, each bit of which depends on all of this one (SplitMix64's last steps)."""
    word = (word ^ (word >> U(30))) * U(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> U(27))) * U(0x94D049BB133111EB)
    return word ^ (word >> U(31))


@inlined
def constant_hash(signature: np.uint64, key: int, rank: int) -> np.uint64:
    """The hash of a cell for a constant of a key, from the sum for its signature."""
    return mixed(signature + mixed((U(key) << U(32)) | U(rank)))


@inlined
def key_bit(key_hash: np.uint64) -> np.uint64:
    """The bit of a key in a set of keys, of 64 bits."""
    return U(1) << (key_hash >> U(58))
