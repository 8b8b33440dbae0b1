"""Start tags with namespaces, and elements that open and close."""

from __future__ import annotations

from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.documents.tokenizer.kernels.attributes import DECLARED, attributes, declares, value_from
from tamis.documents.tokenizer.kernels.characters import SPACE
from tamis.documents.tokenizer.kernels.layout import (
    ATTRIBUTES,
    DECLINE,
    DOCUMENT,
    ELEMENT,
    FIRST_DOCUMENT,
    LEFT_SCOPE,
    LEFT_TAG,
    MULTIPLIER,
    NAME_MAX,
    NAMES,
    NEW_NAME,
    OUT,
    PARTS,
    ROOT,
    ROOT_IS_CLOSED,
    ROOT_IS_OPEN,
    TEXT_DEPTH,
    VALUE_BYTES,
    WITH_OFFSETS,
    WITH_PREFIXES,
    Int64,
    at,
)
from tamis.documents.tokenizer.kernels.lookup import ask, find_name, find_scope
from tamis.documents.tokenizer.kernels.search import search, skip_space
from tamis.documents.tokenizer.kernels.values import transfer
from tamis.documents.tokenizer.vectors import byte, found, name_ends


@called
def start_tag(
    state: Int64, place: int, length: int, scope: int, event: int
) -> tuple[int, int, bool, int]:
    """Read a start tag that is new, or that has more than ``plain_attributes`` reads.

    Args:
        place: of its name.
        length: of its name.
        event: the number of the start event, or -1 if it is not recorded.

    Returns:
        The place behind the tag, or the negative of a status; the slot of its name; whether the
        element is empty; the scope inside it.
    """
    if length == 0 or length > NAME_MAX:
        return -DECLINE, 0, False, 0
    count, used = state[ATTRIBUTES], state[VALUE_BYTES]
    declared = state[LEFT_TAG] == place + length and state[LEFT_SCOPE] != scope
    if declared:
        scope = state[LEFT_SCOPE]
    behind, empty = attributes(state, place + length, scope, event, declared)
    if behind == -DECLARED:
        scope = declare(state, place + length, scope)
        if scope < 0:
            return scope, 0, False, 0
        behind, empty = attributes(state, place + length, scope, event, True)
    state[LEFT_SCOPE] = scope
    if behind < 0:
        return behind, 0, False, 0
    table = uint64s(state, NAMES.table)
    multiplier = U(state[MULTIPLIER])
    slot = find_name(state, table, multiplier, at(state, place), place, length, ELEMENT, scope)
    if slot < 0:  # the tag is read once more when that is known
        state[ATTRIBUTES], state[VALUE_BYTES] = count, used
        return ask(state, NEW_NAME, place, length, ELEMENT, ~slot, scope), 0, False, 0
    return behind, slot, empty, scope


@called
def declare(state: Int64, place: int, scope: int) -> int:
    """The scope that the namespace declarations of a start tag make.

    Args:
        place: behind the name of the tag.
        scope: that the tag is in.

    Returns:
        The scope, or the negative of a status.
    """
    declarations = uint8s(state, NAMES.declarations)
    used = 0
    while True:
        place = skip_space(state, place)
        length = search(state, place, name_ends) - place
        if length == 0:
            return find_scope(state, used, scope)
        opening = value_from(state, place + length)
        if opening < 0 or length > NAME_MAX:
            return -DECLINE
        quote = byte(at(state, opening))
        closing = search(state, opening + 1, found, quote)
        if byte(at(state, closing)) != quote:
            return -DECLINE
        if declares(state, place, length):
            size = closing + 1 - place
            if used + size + 1 > len(declarations):
                return -DECLINE
            transfer(state, place, closing + 1, state[NAMES.declarations] + used)
            used += size
            declarations[used] = SPACE
            used += 1
        place = closing + 1


@inlined
def record_more(state: Int64, event: int, slot: int, place: int) -> None:
    """Record what else is asked of an event.

    Args:
        slot: of the element's name, or -1 at an end, which has no prefix.
        place: where the event stands.
    """
    if state[WITH_PREFIXES]:
        into = int32s(state, OUT.prefixes)
        prefixes = int32s(state, NAMES.prefixes)
        into[event] = -1 if slot < 0 else prefixes[slot]
    if state[WITH_OFFSETS]:
        offsets, origins = int64s(state, OUT.offsets), int64s(state, PARTS.origins)
        offsets[event] = place - origins[state[DOCUMENT] - state[FIRST_DOCUMENT]]


@called
def open_element(state: Int64, depth: int, is_read: bool) -> bool:
    """Note an element that is now open: whether the text in it matters."""
    state[ROOT] = ROOT_IS_OPEN
    if is_read and state[TEXT_DEPTH] < 0:
        state[TEXT_DEPTH] = depth
    return state[TEXT_DEPTH] >= 0


@called
def close_element(state: Int64, depth: int) -> bool:
    """Note that an element is closed, and how many are open: whether text matters now."""
    if depth < state[TEXT_DEPTH]:
        state[TEXT_DEPTH] = -1
    if depth == 0:
        state[ROOT] = ROOT_IS_CLOSED
    return depth == 0 or state[TEXT_DEPTH] >= 0
