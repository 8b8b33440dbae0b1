"""Reads what begins with ``<!`` or ``<?``."""

from __future__ import annotations

import numpy as np

from tamis.core.kernel import U, called
from tamis.core.kernel.record import int32s, int64s, uint64s
from tamis.documents.tokenizer.kernels.characters import (
    APOSTROPHE,
    BRACKET,
    COLON,
    DASH,
    DOT,
    GT,
    QUESTION,
    QUOTE,
    is_public_character,
    is_space,
)
from tamis.documents.tokenizer.kernels.layout import (
    ANSWER,
    DECLINE,
    DOCTYPE_FROM,
    DOCTYPE_TO,
    FULL_MISC,
    FULL_MISC_VALUES,
    FULL_TEXT_VALUES,
    HAS_DOCTYPE,
    IS_EMITTING,
    IS_EXTERNAL,
    IS_STANDALONE,
    MISC,
    MISC_BYTES,
    MULTIPLIER,
    NAME_COLUMNS,
    NAME_MAX,
    NAMES,
    NEW_NAME,
    NO_ROOT,
    OUT,
    ROOT,
    ROOT_IS_OPEN,
    TARGET,
    TEXT_DEPTH,
    TEXTS,
    WITH_MISC,
    Int64,
    at,
    length_of,
)
from tamis.documents.tokenizer.kernels.lookup import ask, find_name
from tamis.documents.tokenizer.kernels.search import search, skip_space
from tamis.documents.tokenizer.kernels.texts import add_text
from tamis.documents.tokenizer.kernels.values import append
from tamis.documents.tokenizer.vectors import byte, found, name_ends, word


@called
def markup(state: Int64, place: int, event: int) -> int:
    """Read what begins with ``<!`` or ``<?``: the place behind it, or a negative status."""
    text = word(at(state, place + 1))
    if text & U(0xFF) == U(QUESTION):
        return instruction(state, place, event)
    if text & U(0xFFFFFF) == U(0x2D2D21):  # !--
        return comment(state, place, event)
    if text == U(0x5B41544144435B21) and state[ROOT] == ROOT_IS_OPEN:  # ![CDATA[
        return cdata(state, place)
    is_prolog = state[ROOT] == NO_ROOT and not state[HAS_DOCTYPE]
    if text == U(0x45505954434F4421) and is_prolog:  # !DOCTYPE
        return doctype(state, place + 9)
    return -DECLINE


@called
def comment(state: Int64, place: int, event: int) -> int:
    """Read a comment from its ``<`` on: the place behind it, or a negative status."""
    start = place + 4
    here = start
    while True:
        here = search(state, here, found, DASH)
        address = at(state, here)
        if byte(address) != DASH:
            return -DECLINE
        if byte(address + 1) == DASH:
            break
        here += 1
    if byte(address + 2) != GT:
        return -DECLINE
    status = record_misc(state, start, here, -1, event)
    return status if status < 0 else here + 3


@called
def instruction(state: Int64, place: int, event: int) -> int:
    """Read a processing instruction from its ``<`` on: the place behind it, or a status."""
    target = place + 2
    length = search(state, target, name_ends) - target
    here = target + length
    if length > 0 and byte(at(state, here)) == GT and byte(at(state, here - 1)) == QUESTION:
        length -= 1
        here -= 1
    elif not is_space(byte(at(state, here))):
        return -DECLINE
    if length == 0 or length > NAME_MAX:
        return -DECLINE
    table = uint64s(state, NAMES.table)
    multiplier = U(state[MULTIPLIER])
    slot = find_name(state, table, multiplier, at(state, target), target, length, TARGET, 0)
    if slot < 0:
        return ask(state, NEW_NAME, target, length, TARGET, ~slot, 0)
    start = skip_space(state, here)
    here = start
    while True:
        here = search(state, here, found, QUESTION)
        address = at(state, here)
        if byte(address) != QUESTION:
            return -DECLINE
        if byte(address + 1) == GT:
            break
        here += 1
    id = np.int64(table[slot * NAME_COLUMNS + ANSWER] & U(0xFFFFFFFF))
    status = record_misc(state, start, here, id, event)
    return status if status < 0 else here + 2


@called
def record_misc(state: Int64, start: int, end: int, name: int, event: int) -> int:
    """Record a comment or processing instruction: 0, or a negative status."""
    if not (state[WITH_MISC] and state[IS_EMITTING]):
        return 0
    count = state[MISC]
    if count == length_of(state, OUT.misc_event):
        return -FULL_MISC
    begin = state[MISC_BYTES]
    used = append(state, start, end, OUT.misc_values, begin)
    if used < 0:
        return -FULL_MISC_VALUES
    int64s(state, OUT.misc_event)[count] = event
    int64s(state, OUT.misc_text)[count] = state[TEXTS]
    int32s(state, OUT.misc_name)[count] = name
    int64s(state, OUT.misc_start)[count] = begin
    int64s(state, OUT.misc_end)[count] = used
    state[MISC] = count + 1
    state[MISC_BYTES] = used
    return 0


@called
def cdata(state: Int64, place: int) -> int:
    """Read a CDATA section from its ``<`` on: the place behind it, or a negative status."""
    start = place + 9
    here = start
    while True:
        here = search(state, here, found, BRACKET)
        address = at(state, here)
        if byte(address) != BRACKET:
            return -DECLINE
        if byte(address + 1) == BRACKET and byte(address + 2) == GT:
            break
        here += 1
    if state[TEXT_DEPTH] >= 0 and not add_text(state, start, here):
        return -FULL_TEXT_VALUES
    return here + 3


@called
def doctype(state: Int64, place: int) -> int:
    """Read a DOCTYPE without internal subset from behind its keyword: the place behind it."""
    state[DOCTYPE_FROM] = place - 9
    name = skip_space(state, place)
    length = doctype_name_length(state, name)
    here = skip_space(state, name + length)
    if name == place or length == 0:
        return -DECLINE
    text = word(at(state, here)) & U(0xFFFFFFFFFFFF)
    is_external = text in (U(0x4D4554535953), U(0x43494C425550))  # SYSTEM, PUBLIC
    if is_external:
        if here == name + length:
            return -DECLINE
        here += 6
        if text == U(0x43494C425550):
            here = literal_end(state, here, True)
        if here > 0:
            here = literal_end(state, here, False)
        if here < 0:
            return -DECLINE
        here = skip_space(state, here)
    if byte(at(state, here)) != GT:
        return -DECLINE
    state[HAS_DOCTYPE] = 1
    state[DOCTYPE_TO] = here + 1
    state[IS_EXTERNAL] = is_external and not state[IS_STANDALONE]
    return here + 1


@called
def doctype_name_length(state: Int64, place: int) -> int:
    """The length of an ASCII name with at most one colon, inside; 0 if there is none."""
    here = place
    colons = 0
    is_start = True
    while True:
        character = byte(at(state, here))
        letter = character | 0x20
        if character == COLON and not is_start and colons == 0:
            colons = 1
            is_start = True
        elif ord("a") <= letter <= ord("z") or character == ord("_"):
            is_start = False
        elif is_start or not (ord("0") <= character <= ord("9") or character in (DASH, DOT)):
            return 0 if is_start else here - place
        here += 1


@called
def literal_end(state: Int64, place: int, is_public: bool) -> int:
    """The place behind whitespace and a literal, or a negative status."""
    start = skip_space(state, place)
    quote = byte(at(state, start))
    if start == place or quote not in (QUOTE, APOSTROPHE):
        return -DECLINE
    here = start + 1
    while True:
        character = byte(at(state, here))
        if character == quote:
            return here + 1
        if character == 0 or (is_public and not is_public_character(character)):
            return -DECLINE
        here += 1
