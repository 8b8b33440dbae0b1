"""Kernels of several engines: what lies in what."""

from __future__ import annotations

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import kernel


@kernel
def find_extents(
    tags: Int32, text_event: Int64, ends: Int64, parents: Int64, levels: Int64
) -> None:
    """Find where elements end, and which element each text node is in.

    Args:
        text_event: the event before each text node.
        ends: written: by start event, the end event.
        parents: written: by text node, the start event of its parent.
        levels: room for the deepest element.
    """
    depth = text = 0
    for event in range(len(tags)):
        if tags[event] >= 0:
            levels[depth] = event
            depth += 1
        else:
            depth -= 1
            ends[levels[depth]] = event
        while text < len(text_event) and text_event[text] == event:
            parents[text] = levels[depth - 1]
            text += 1
