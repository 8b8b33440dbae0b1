"""Looks for bytes, from a place in a document on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tamis.core.kernel import inlined
from tamis.core.kernel.bits import first
from tamis.documents.tokenizer.kernels.characters import SPACE, is_space
from tamis.documents.tokenizer.kernels.layout import Int64, at
from tamis.documents.tokenizer.vectors import BLOCK, byte


@inlined
def search(state: Int64, place: int, mask_of: Callable[..., np.uint64], *which: int) -> int:
    """The first place from here on that is in a mask of its block.

    Args:
        mask_of: ``found``, ``name_ends`` or ``value_ends``, which all have NUL in their masks.
        which: the byte or the quote that it is told to look for.
    """
    while True:
        mask = mask_of(at(state, place), *which)
        if mask:
            return place + first(mask)
        place += BLOCK


@inlined
def skip_space(state: Int64, place: int) -> int:
    """The first place from here on that is not whitespace."""
    while True:
        character = byte(at(state, place))
        if character > SPACE or not is_space(character):
            return place
        place += 1
