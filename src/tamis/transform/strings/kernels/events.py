"""What is inside what: ends, parents, attributes and text of each event of a document."""

from __future__ import annotations

from tamis.core.arrays import Int64
from tamis.core.kernel import called
from tamis.core.kernel.record import int32s, int64s
from tamis.transform.strings.layout import EVENTS, NODES, NONE, READ


@called
def index_events(state: Int64) -> None:
    """Walk over the events once, with a stack of open elements."""
    tags = int32s(state, READ.tags)
    attribute_event, text_event = (
        int64s(state, READ.attribute_event),
        int64s(state, READ.text_event),
    )
    ends, parents, stack = (
        int64s(state, NODES.ends),
        int64s(state, NODES.parents),
        int64s(state, NODES.stack),
    )
    attributes_from, texts_from = (
        int64s(state, NODES.attributes_from),
        int64s(state, NODES.texts_from),
    )
    depth = attribute = text = 0
    for event in range(state[EVENTS]):
        attributes_from[event], texts_from[event] = attribute, text
        while attribute < len(attribute_event) and attribute_event[attribute] == event:
            attribute += 1
        while text < len(text_event) and text_event[text] == event:
            text += 1
        if tags[event] < 0:
            depth -= 1
            ends[stack[depth]] = event
        parents[event] = stack[depth - 1] if depth > 0 else NONE
        if tags[event] >= 0:
            stack[depth] = event
            depth += 1
    attributes_from[state[EVENTS]], texts_from[state[EVENTS]] = attribute, text


@called
def parent_of_text(state: Int64, text: int) -> int:
    """The element that a text node is a child of."""
    event = int64s(state, READ.text_event)[text]
    return event if int32s(state, READ.tags)[event] >= 0 else int64s(state, NODES.parents)[event]
