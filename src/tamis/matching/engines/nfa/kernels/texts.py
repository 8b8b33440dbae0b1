"""Whose children text nodes are."""

from __future__ import annotations

from tamis.core.arrays import Int32, Int64
from tamis.core.kernel import kernel


@kernel
def note_parents(tags: Int32, text_event: Int64, parents: Int64, levels: Int64) -> None:
    """The start event of the parent of each text node, in ``parents``.

    Args:
        text_event: the event before each text node.
        levels: room for as many numbers as elements are open at a time.
    """
    depth = 0
    text = 0
    for event in range(len(tags)):
        if tags[event] >= 0:
            levels[depth] = event
            depth += 1
        else:
            depth -= 1
        while text < len(text_event) and text_event[text] == event:
            parents[text] = levels[depth - 1]
            text += 1
