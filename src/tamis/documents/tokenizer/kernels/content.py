"""Everything but tags: text, references, comments, instructions, CDATA sections, DOCTYPE."""

from __future__ import annotations

import numpy as np

from tamis.core.arrays import Int64
from tamis.core.kernel import U, called, inlined
from tamis.core.kernel.record import int32s, int64s, uint8s, uint64s
from tamis.documents.tokenizer.kernels import layout as at
from tamis.documents.tokenizer.kernels.lookup import ask, find_name, search, skip_space
from tamis.documents.tokenizer.vectors import BLOCK, byte, copy, found, name_ends, returns, word

SKIP = -1  # the code of a reference that stands for nothing


@called
def transfer(state: Int64, start: int, end: int, target: int) -> None:
    """Copy the bytes of a document to an address."""
    middle = min(max(start, state[at.SWITCH]), end)
    if start < middle:
        copy(target, state[at.BODY] + start, middle - start)
    if middle < end:
        copy(target + middle - start, state[at.TAIL] + middle, end - middle)


@called
def append(state: Int64, start: int, end: int, array: int, used: int) -> int:
    """Append bytes of a document to an array, given by its field, each line end as a newline.

    Returns how many bytes of the array are then used, or -1 if they may not fit.
    """
    if used + end - start > at.length_of(state, array):
        return -1
    place = start
    while place < end:
        mask = returns(at.address(state, place))
        if end - place < BLOCK:
            mask &= (U(1) << U(end - place)) - U(1)
        if mask:
            return append_lines(state, start, end, array, used)
        place += BLOCK
    transfer(state, start, end, state[array] + used)
    return used + end - start


@called
def append_lines(state: Int64, start: int, end: int, array: int, used: int) -> int:
    """``append``, byte by byte."""
    values = uint8s(state, array)
    place = start
    while place < end:
        character = byte(at.address(state, place))
        if character == at.RETURN:
            character = at.NEWLINE
            # Behind a value there always is a byte.
            if byte(at.address(state, place + 1)) == at.NEWLINE:
                place += 1
        values[used] = character
        used += 1
        place += 1
    return used


@called
def append_character(state: Int64, code: int, array: int, used: int) -> int:
    """Append a character in UTF-8; there is room for 4 bytes. Returns how many are then used."""
    values = uint8s(state, array)
    if code < 0x80:
        values[used] = code
        return used + 1
    more = 1 + (code >= 0x800) + (code >= 0x10000)  # bytes behind the first
    values[used] = 0xFF00 >> more + 1 & 0xFF | code >> 6 * more  # a one for each of its bytes
    for i in range(1, more + 1):
        values[used + i] = 0x80 | code >> 6 * (more - i) & 0x3F
    return used + more + 1


@called
def reference(state: Int64, place: int) -> tuple[int, int]:
    """Read the reference at a place: its code or ``SKIP``, and the place behind it."""
    start = place + 1
    address = at.address(state, start)
    if byte(address) == at.HASH:
        return numeric_reference(state, start + 1)
    text = word(address)
    if text & U(0xFFFFFF) == U(0x3B746C):  # lt;
        return at.LT, start + 3
    if text & U(0xFFFFFF) == U(0x3B7467):  # gt;
        return at.GT, start + 3
    if text & U(0xFFFFFFFF) == U(0x3B706D61):  # amp;
        return at.AMP, start + 4
    if text & U(0xFFFFFFFFFF) == U(0x3B736F7061):  # apos;
        return at.APOSTROPHE, start + 5
    if text & U(0xFFFFFFFFFF) == U(0x3B746F7571):  # quot;
        return at.QUOTE, start + 5
    if not state[at.IS_EXTERNAL]:
        return 0, -at.DECLINE
    here = start
    while True:  # an ASCII name; others are left to libexpat
        character = byte(at.address(state, here))
        letter = character | 0x20
        is_first = ord("a") <= letter <= ord("z") or character == ord("_")
        is_later = ord("0") <= character <= ord("9") or character in (ord("-"), ord("."))
        if not is_first and (here == start or not is_later):
            break
        here += 1
    if character != at.SEMICOLON or here == start:
        return 0, -at.DECLINE
    return SKIP, here + 1


@called
def numeric_reference(state: Int64, place: int) -> tuple[int, int]:
    """Read a character reference from behind its ``#`` on: the code, and the place behind it."""
    base = 10
    if byte(at.address(state, place)) == ord("x"):
        base = 16
        place += 1
    code = 0
    start = place
    while True:
        character = byte(at.address(state, place))
        if ord("0") <= character <= ord("9"):
            digit = character - ord("0")
        elif base == 16 and ord("a") <= character | 0x20 <= ord("f"):
            digit = (character | 0x20) - ord("a") + 10
        else:
            break
        code = min(code * base + digit, 0x110000)
        place += 1
    is_control = code < 0x20 and code not in (0x9, 0xA, 0xD)
    is_other = 0xD800 <= code < 0xE000 or code in (0xFFFE, 0xFFFF) or code > 0x10FFFF
    if character != at.SEMICOLON or place == start or is_control or is_other:
        return 0, -at.DECLINE
    return code, place + 1


@called
def before_markup(state: Int64, start: int, place: int, event: int) -> int:
    """Settle the text between two places, the second that of a ``<``: 0, or a negative status.

    Called only if the text is to be recorded, or outside the root element.
    """
    second = byte(at.address(state, place + 1))
    if state[at.TEXT_DEPTH] >= 0:
        if state[at.TEXTS] == at.length_of(state, at.OUT.text_event):
            return -at.FULL_TEXTS
        if start < place and not add_text(state, start, place):
            return -at.FULL_TEXT_VALUES
        is_cdata = second == at.BANG and byte(at.address(state, place + 2)) == at.BRACKET_OPEN
        if not is_cdata:
            end_text(state, event)
        return 0
    if skip_space(state, start) < place:
        return -at.DECLINE
    if second in (at.BANG, at.QUESTION):
        return 0
    return -at.DECLINE if state[at.ROOT] != at.NO_ROOT or second == at.SLASH else 0


@called
def text_reference(state: Int64, start: int, place: int, event: int) -> int:
    """Settle the text up to a reference and the reference: the place behind it, or a status."""
    if state[at.ROOT] != at.ROOT_IS_OPEN:
        return -at.DECLINE
    code, behind = reference(state, place)
    if behind < 0:
        return behind
    if state[at.TEXT_DEPTH] >= 0:
        if state[at.TEXT_BYTES] + place - start + 4 > at.length_of(state, at.OUT.text_values):
            return -at.FULL_TEXT_VALUES
        if code == SKIP and state[at.TEXTS] == at.length_of(state, at.OUT.text_event):
            return -at.FULL_TEXTS
        add_text(state, start, place)
        if code == SKIP:
            end_text(state, event)
        else:
            state[at.TEXT_BYTES] = append_character(
                state, code, at.OUT.text_values, state[at.TEXT_BYTES]
            )
    if code == SKIP:
        if state[at.SKIPPED] == 0:
            state[at.FIRST_SKIPPED] = place
        state[at.SKIPPED] += 1
    return behind


@inlined
def add_text(state: Int64, start: int, end: int) -> bool:
    """Add bytes to the text node that is being read; False if there is no room for them."""
    used = append(state, start, end, at.OUT.text_values, state[at.TEXT_BYTES])
    if used < 0:
        return False
    state[at.TEXT_BYTES] = used
    return True


@inlined
def end_text(state: Int64, event: int) -> None:
    """End the text node that is being read, if any; there is room for it."""
    begin, end = state[at.TEXT_FROM], state[at.TEXT_BYTES]
    if begin == end:
        return
    count = state[at.TEXTS]
    int64s(state, at.OUT.text_event)[count] = event
    int64s(state, at.OUT.text_start)[count] = begin
    int64s(state, at.OUT.text_end)[count] = end
    state[at.TEXTS] = count + 1
    state[at.TEXT_FROM] = end


@called
def markup(state: Int64, place: int, event: int) -> int:
    """Read what begins with ``<!`` or ``<?``: the place behind it, or a negative status."""
    text = word(at.address(state, place + 1))
    if text & U(0xFF) == U(at.QUESTION):
        return instruction(state, place, event)
    if text & U(0xFFFFFF) == U(0x2D2D21):  # !--
        return comment(state, place, event)
    if text == U(0x5B41544144435B21) and state[at.ROOT] == at.ROOT_IS_OPEN:  # ![CDATA[
        return cdata(state, place)
    is_prolog = state[at.ROOT] == at.NO_ROOT and not state[at.HAS_DOCTYPE]
    if text == U(0x45505954434F4421) and is_prolog:  # !DOCTYPE
        return doctype(state, place + 9)
    return -at.DECLINE


@called
def find_pair(state: Int64, place: int, character: int, next: int) -> int:
    """The first place from here on of two bytes that follow each other, or -1 without."""
    while True:
        place = search(state, place, found, character)
        address = at.address(state, place)
        if byte(address) != character:
            return -1
        if byte(address + 1) == next:
            return place
        place += 1


@called
def comment(state: Int64, place: int, event: int) -> int:
    """Read a comment from its ``<`` on: the place behind it, or a negative status."""
    start = place + 4
    here = find_pair(state, start, at.DASH, at.DASH)
    if here < 0 or byte(at.address(state, here + 2)) != at.GT:
        return -at.DECLINE
    status = record_misc(state, start, here, -1, event)
    return status if status < 0 else here + 3


@called
def instruction(state: Int64, place: int, event: int) -> int:
    """Read a processing instruction from its ``<`` on: the place behind it, or a status."""
    target = place + 2
    length = search(state, target, name_ends) - target
    here = target + length
    behind, before = byte(at.address(state, here)), byte(at.address(state, here - 1))
    if length > 0 and behind == at.GT and before == at.QUESTION:
        length -= 1
        here -= 1
    elif not at.is_space(behind):
        return -at.DECLINE
    if length == 0 or length > at.NAME_MAX:
        return -at.DECLINE
    table = uint64s(state, at.NAMES.table)
    multiplier = U(state[at.MULTIPLIER])
    slot = find_name(
        state, table, multiplier, at.address(state, target), target, length, at.TARGET, 0
    )
    if slot < 0:
        return ask(state, at.NEW_NAME, target, length, at.TARGET, ~slot, 0)
    start = skip_space(state, here)
    here = find_pair(state, start, at.QUESTION, at.GT)
    if here < 0:
        return -at.DECLINE
    id = np.int64(table[slot * at.NAME_COLUMNS + at.ANSWER] & U(0xFFFFFFFF))
    status = record_misc(state, start, here, id, event)
    return status if status < 0 else here + 2


@called
def record_misc(state: Int64, start: int, end: int, name: int, event: int) -> int:
    """Record a comment or processing instruction: 0, or a negative status."""
    if not (state[at.WITH_MISC] and state[at.IS_EMITTING]):
        return 0
    count = state[at.MISC]
    if count == at.length_of(state, at.OUT.misc_event):
        return -at.FULL_MISC
    begin = state[at.MISC_BYTES]
    used = append(state, start, end, at.OUT.misc_values, begin)
    if used < 0:
        return -at.FULL_MISC_VALUES
    int64s(state, at.OUT.misc_event)[count] = event
    int64s(state, at.OUT.misc_text)[count] = state[at.TEXTS]
    int32s(state, at.OUT.misc_name)[count] = name
    int64s(state, at.OUT.misc_start)[count] = begin
    int64s(state, at.OUT.misc_end)[count] = used
    state[at.MISC] = count + 1
    state[at.MISC_BYTES] = used
    return 0


@called
def cdata(state: Int64, place: int) -> int:
    """Read a CDATA section from its ``<`` on: the place behind it, or a negative status."""
    start = place + 9
    here = find_pair(state, start, at.BRACKET, at.BRACKET)
    while here >= 0 and byte(at.address(state, here + 2)) != at.GT:
        here = find_pair(state, here + 1, at.BRACKET, at.BRACKET)
    if here < 0:
        return -at.DECLINE
    if state[at.TEXT_DEPTH] >= 0 and not add_text(state, start, here):
        return -at.FULL_TEXT_VALUES
    return here + 3


@called
def doctype(state: Int64, place: int) -> int:
    """Read a DOCTYPE without internal subset from behind its keyword: the place behind it."""
    state[at.DOCTYPE_FROM] = place - 9
    name = skip_space(state, place)
    length = doctype_name_length(state, name)
    here = skip_space(state, name + length)
    if name == place or length == 0:
        return -at.DECLINE
    text = word(at.address(state, here)) & U(0xFFFFFFFFFFFF)
    is_external = text in (U(0x4D4554535953), U(0x43494C425550))  # SYSTEM, PUBLIC
    if is_external:
        if here == name + length:
            return -at.DECLINE
        here += 6
        if text == U(0x43494C425550):
            here = literal_end(state, here, True)
        if here > 0:
            here = literal_end(state, here, False)
        if here < 0:
            return -at.DECLINE
        here = skip_space(state, here)
    if byte(at.address(state, here)) != at.GT:
        return -at.DECLINE
    state[at.HAS_DOCTYPE] = 1
    state[at.DOCTYPE_TO] = here + 1
    state[at.IS_EXTERNAL] = is_external and not state[at.IS_STANDALONE]
    return here + 1


@called
def doctype_name_length(state: Int64, place: int) -> int:
    """The length of an ASCII name with at most one colon, inside; 0 if there is none."""
    here = place
    colons = 0
    is_start = True
    while True:
        character = byte(at.address(state, here))
        letter = character | 0x20
        if character == at.COLON and not is_start and colons == 0:
            colons = 1
            is_start = True
        elif ord("a") <= letter <= ord("z") or character == ord("_"):
            is_start = False
        elif is_start or not (ord("0") <= character <= ord("9") or character in (at.DASH, at.DOT)):
            return 0 if is_start else here - place
        here += 1


@called
def literal_end(state: Int64, place: int, is_public: bool) -> int:
    """The place behind whitespace and a literal, or a negative status."""
    start = skip_space(state, place)
    quote = byte(at.address(state, start))
    if start == place or quote not in (at.QUOTE, at.APOSTROPHE):
        return -at.DECLINE
    here = start + 1
    while True:
        character = byte(at.address(state, here))
        if character == quote:
            return here + 1
        if character == 0 or (is_public and not at.is_public_character(character)):
            return -at.DECLINE
        here += 1
