"""Reads documents: one pass over the bytes, 64 of them at a time.

``scan`` notes where structure is (``<``, ``&``, ``]]``), a window at a time, checking all bytes on
the way, and then goes from one place to the next. What it does not know it leaves to its caller: a
name or a scope that it meets for the first time, a full buffer; it then goes on where it was. What
it does not do ends the document as declined: libexpat then reads it from its start, and says what
is wrong if something is.

A *place* counts the bytes of what is read; ``at`` gives its address. What reads returns the place
behind what it read, or minus one of the statuses below.

Memory is read in whole blocks, beyond the end of a document: behind each are ``PADDING`` bytes
of NUL, which no document has, so that every search ends there. A document of its own buffer is
read in place, but for its last bytes, of which there is a padded copy (``Text.tail``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.documents.tokenizer.vectors import (
    attribute,
    bits,
    byte,
    bytes_at,
    copy,
    first,
    found,
    int32s_at,
    int64s_at,
    last,
    line_ends,
    name_ends,
    near_name_ends,
    ones,
    returns,
    structure,
    utf8_faults,
    value_ends,
    word,
    words_at,
)
from tamis.jit import called, inlined, kernel

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

PADDING = 256
"""Bytes of NUL behind each document, and the most that is read beyond a place without looking."""

U = np.uint64
ALL = U(0xFFFFFFFFFFFFFFFF)
GOLDEN = U(0x9E3779B97F4A7C15)
ONE = U(1)
ZERO = U(0)
BLOCK = 64
SLOT_BITS = 16
"""There are so many slots for names, as a power of two."""
# By the length of a name, up to 16: which of its first 8 bytes, and of the next 8, there are.
HEAD_MASKS = np.array([(1 << 8 * min(n, 8)) - 1 for n in range(17)], np.uint64)
NECK_MASKS = np.array([(1 << 8 * max(n - 8, 0)) - 1 for n in range(17)], np.uint64)
NAME_MAX = 0xFFFFFF
"""Bytes of a name."""
PLAIN_ATTRIBUTES_MAX = 32
"""Attributes of a tag that is read the fast way."""
CONTEXTS_MAX = 64
"""Contexts of records that are known at a time."""

LT, AMP, BRACKET_OPEN, BRACKET, SLASH, GT, EQUALS = (ord(c) for c in "<&[]/>=")
BANG, QUESTION, HASH, SEMICOLON, COLON, DASH, DOT = (ord(c) for c in "!?#;:-.")
EMPTY_END = SLASH | GT << 8
PUBLIC = tuple(ord(c) for c in "=?!#@$_%")
QUOTE, APOSTROPHE, SPACE, TAB, NEWLINE, RETURN = (ord(c) for c in "\"' \t\n\r")

# Kinds of names; part of the key of a name.
ELEMENT, ATTRIBUTE, TARGET = range(1, 4)
# What is to be done about a name.
READ_TEXT, READ_VALUE = 1, 2
# Columns of Names.table.
HEAD, NECK, KEY, ANSWER, NAME_COLUMNS = range(5)
# Columns of Names.scopes.
PARENT, SPELLED_FROM, SPELLED_TO, SCOPE, SCOPE_COLUMNS = range(5)
# Columns of Output.contexts; from CONTEXT_STACK on the open elements, as in the stack.
CONTEXT_DEPTH, CONTEXT_SCOPE, CONTEXT_STACK = range(3)

# What ``scan`` returns.
(DONE, MORE, ENOUGH, NEW_NAME, NEW_SCOPE, NEW_CONTEXT, FULL_EVENTS, FULL_ATTRIBUTES, FULL_VALUES,
 FULL_TEXTS, FULL_TEXT_VALUES, FULL_MISC, FULL_MISC_VALUES, DECLINE) = range(14)  # fmt: skip

# Places in the state. First what the caller sets; then where the scan is; what it asks; and arrays,
# each as its address and length.
(IN_RECORDS, IS_FINAL, WITH_PREFIXES, WITH_MISC, DEPTH_MAX, ATTRIBUTES_MAX, RECORDS_MAX, EVENTS_MAX,
 DOCUMENTS_MAX, IS_STANDALONE, IS_EXTERNAL, HAS_DOCTYPE, IS_REFUSED, SERIAL,
 LEFT_TAG, LEFT_AT, LEFT_COUNT, LEFT_BYTES, LEFT_ALLOWED, LEFT_SCOPE,
 POSITION, DOCUMENT, DEPTH, CURRENT_SCOPE, ROOT, IS_EMITTING, FLOOR, TEXT_DEPTH,
 EVENTS, ATTRIBUTES, VALUE_BYTES, TEXTS, TEXT_BYTES, MISC, MISC_BYTES, TEXT_FROM, DOCUMENTS,
 EVENTS_MARK, ATTRIBUTES_MARK, VALUE_BYTES_MARK, TEXTS_MARK, TEXT_BYTES_MARK, MISC_MARK,
 MISC_BYTES_MARK, SKIPPED, FIRST_SKIPPED, SKIPPED_MARK, RECORD_FROM, STOPPED_AT, CONTEXTS, CONTEXT,
 DOCTYPE_FROM, DOCTYPE_TO,
 ASKED_AT, ASKED_LENGTH, ASKED_KIND, ASKED_SLOT, ASKED_SCOPE, INDEXED, CARRY, IS_FAULTY,
 BODY, TAIL, SWITCH, FIRST_DOCUMENT, MULTIPLIER, ARRAYS) = range(67)  # fmt: skip
(TABLE, OFFSETS, NAME_PREFIXES, SPELLED, SCOPES, STAMPS, DECLARATIONS, RECORD, STACK,
 TAGS, PREFIXES, ATTRIBUTE_EVENT, ATTRIBUTE_NAME, ATTRIBUTE_PREFIXES, VALUE_START, VALUE_END,
 ATTRIBUTE_VALUES, TEXT_EVENT, TEXT_START, TEXT_END, TEXT_VALUES, MISC_EVENT, MISC_TEXT, MISC_NAME,
 MISC_START, MISC_END, MISC_VALUES, DOCUMENT_STARTS, MISC_STARTS, RECORD_STARTS, RECORD_ENDS,
 RECORD_CONTEXTS, CONTEXT_ROWS, ORIGINS, STARTS, ENDS, STANDALONE, DECLINED, SKIPPED_COUNTS,
 SKIPPED_PLACES, INDEX, STATES) = range(ARRAYS, ARRAYS + 84, 2)  # fmt: skip

# Values of ROOT.
NO_ROOT, ROOT_IS_OPEN, ROOT_IS_CLOSED = range(3)


class Text(NamedTuple):
    """The bytes of documents.

    Attributes:
        data: uint8. From ``switch`` on it is not read, but ``tail`` instead.
        tail: uint8; the last bytes of ``data`` and ``PADDING`` of NUL.
        tail_from: the place in ``data`` of the first byte of ``tail``.
        origins, starts, ends: int64[d]; where in ``data`` each document begins, where it does
            behind its XML declaration, and where it ends.
        standalone: uint8[d]; whether the declaration says so.
        first: the number of the first of them.
    """

    data: Bytes
    tail: Bytes
    tail_from: int
    switch: int
    origins: Int64
    starts: Int64
    ends: Int64
    standalone: Bytes
    first: int


class Names(NamedTuple):
    """Hash tables of what was met before, to which only the caller adds; and room for work.

    Attributes:
        table: uint64[NAME_COLUMNS << SLOT_BITS], rows, with open addressing. HEAD and NECK, the
            first 16 bytes of a name as it is written; KEY, its length, kind and scope (0: nothing
            is here); ANSWER, its id, and from bit 32 on what is to be done about it.
        offsets: int64[1 << SLOT_BITS]; where a name of over 16 bytes is in ``spelled``, whole.
        prefixes: int32[1 << SLOT_BITS]; the id of its prefix, -1 without one.
        spelled: uint8.
        scopes: int64[SCOPE_COLUMNS * 2**j], rows; namespace declarations as they are written, in
            ``spelled``, the scope that they are made in, and the one that they make (0: nothing is
            here).
        stamps: int64; by id of a name, the last element that had it as an attribute.
        declarations: uint8; where the declarations of a tag are put together.
        record: uint8; the tag of records, and 8 bytes more.
        multiplier: uint64[1]; of the hash. Odd; 0 makes all names collide.
    """

    table: NDArray[np.uint64]
    offsets: Int64
    prefixes: Int32
    spelled: Bytes
    scopes: Int64
    stamps: Int64
    declarations: Bytes
    record: Bytes
    multiplier: Words


class Output(NamedTuple):
    """What becomes an ``EventBatch``; see there. The buffers are larger than what is in them.

    Attributes:
        record_starts, record_ends: int64; the bytes of each record, in ``Text.data``.
        record_contexts: int32; the number of the context that each is in.
        contexts: int64[CONTEXTS_MAX * c], rows: how many elements are open around records, the
            scope inside them, and these elements, as in the stack. Only the caller adds to them.
        declined: uint8[d]; whether a document was left to libexpat.
        skipped, first_skipped: int64[d]; how many references to entities that are not declared were
            left out, and where the first one is.
    """

    tags: Int32
    prefixes: Int32
    attribute_event: Int64
    attribute_name: Int32
    attribute_prefixes: Int32
    value_start: Int64
    value_end: Int64
    attribute_values: Bytes
    text_event: Int64
    text_start: Int64
    text_end: Int64
    text_values: Bytes
    misc_event: Int64
    misc_text: Int64
    misc_name: Int32
    misc_start: Int64
    misc_end: Int64
    misc_values: Bytes
    document_starts: Int64
    misc_starts: Int64
    record_starts: Int64
    record_ends: Int64
    record_contexts: Int32
    contexts: Int64
    declined: Bytes
    skipped: Int64
    first_skipped: Int64


@inlined
def at(state: Int64, place: int) -> int:
    """The address of a place; good for half of ``PADDING``."""
    return (state[BODY] if place < state[SWITCH] else state[TAIL]) + place


WINDOW = 1 << 13
"""So many bytes are checked, and then read."""
ZEROS = np.zeros(BLOCK, np.uint8)
INDEX_SIZE = WINDOW + 2 * BLOCK
BEYOND = 1 << 62
"""More than any place."""


# -- blocks ----------------------------------------------------------------------------------------


@inlined
def note(index: Int64, count: int, block: int, mask: np.uint64) -> int:
    """Note the places of a mask, and return how many there are then.

    Four at a time, some of them in vain: how many there are is what a processor cannot guess.
    """
    after = count + ones(mask)
    while True:
        for i in range(4):
            index[U(count + i)] = block + first(mask)
            mask &= mask - ONE
        if mask == ZERO:
            return after
        count += 4


@called
def index_window(state: Int64, end: int) -> None:
    """Check the next blocks of a document, and note the places where its structure is.

    These are ``<``, ``&``, the second of two ``]``, and the end of the document. Behind the last is
    ``BEYOND``. What may not be in a document ends the window, and is noted.
    """
    index = int64s_at(state[INDEX], state[INDEX + 1])
    body, tail, switch = state[BODY], state[TAIL], state[SWITCH]
    zeros = np.int64(ZEROS.ctypes.data)
    start = state[POSITION]
    block = state[INDEXED]
    stop = block + WINDOW
    carry = U(state[CARRY])
    count = 0
    while block < stop and block <= end:
        address = (body if block < switch else tail) + block
        special, brackets, controls, high = structure(address)
        special |= brackets & (brackets << ONE | carry & ONE)
        valid = ALL
        if end - block < BLOCK:
            valid = (ONE << U(end - block)) - ONE
            special = special & valid | ONE << U(end - block)
            high &= valid
            controls &= valid
        if high | carry >> ONE:
            before = block - BLOCK
            before_address = (body if before < switch else tail) + before
            if block == start:
                before_address = zeros
            controls |= utf8_faults(address, before_address) & valid
        if controls:
            state[IS_FAULTY] = 1
            break
        carry = brackets >> U(63) | high >> U(61) << ONE
        count = note(index, count, block, special)
        block += BLOCK
    index[count] = BEYOND
    state[INDEXED] = block
    state[CARRY] = np.int64(carry)


@inlined
def skip_space(state: Int64, place: int) -> int:
    """The first place from here on that is not whitespace."""
    while True:
        character = byte(at(state, place))
        if character > SPACE or not is_space(character):
            return place
        place += 1


@inlined
def is_space(character: int) -> bool:
    """Whether a byte is whitespace."""
    return character in (SPACE, NEWLINE, TAB, RETURN)


@inlined
def search(state: Int64, place: int, character: int) -> int:
    """The first place from here on with this byte, or with NUL."""
    while True:
        mask = found(at(state, place), character)
        if mask:
            return place + first(mask)
        place += BLOCK


# -- names -----------------------------------------------------------------------------------------


@inlined
def name_length(state: Int64, place: int) -> int:
    """How many bytes there are up to whitespace, ``/``, ``>``, ``=`` or a control."""
    here = place
    while True:
        mask = name_ends(at(state, here))
        if mask:
            return here + first(mask) - place
        here += BLOCK


@inlined
def low_bytes(value: np.uint64, count: int) -> np.uint64:
    """The first ``count`` of 8 bytes, from 0 to 8; 0 for the others."""
    return value & (ALL >> U(64 - 8 * count) if count > 0 else ZERO)


@called
def same_bytes(state: Int64, place: int, address: int, length: int) -> bool:
    """Whether bytes of a document equal those at an address, which have 8 more behind them."""
    done = 0
    while done < length:
        difference = word(at(state, place + done)) ^ word(address + done)
        if low_bytes(difference, min(8, length - done)) != ZERO:
            return False
        done += 8
    return True


@inlined
def find_name(
    state: Int64,
    table: Words,
    multiplier: np.uint64,
    address: int,
    place: int,
    length: int,
    kind: int,
    scope: int,
) -> int:
    """The slot of a name; if it is not known, ``~slot`` of where to put it.

    Args:
        address: of the name, good for 16 bytes.
        place: of the name.
    """
    key = U(length) | U(kind) << U(24) | U(scope) << U(32)
    head = word(address) & HEAD_MASKS[U(min(length, 16))]
    neck = word(address + 8) & NECK_MASKS[U(min(length, 16))]
    mixed = head * multiplier ^ (neck + key) * (multiplier * GOLDEN)
    if length > 16:
        mixed ^= hash_of_rest(state, place + 16, length - 16)
    last_slot = U((1 << SLOT_BITS) - 1)
    slot = mixed >> U(64 - SLOT_BITS)  # which every bit of a name has a part in
    while True:
        row = slot * U(NAME_COLUMNS)
        is_like = table[row + U(KEY)] == key and table[row] == head and table[row + U(NECK)] == neck
        if is_like and (length <= 16 or is_spelled(state, place, np.int64(slot), length)):
            return np.int64(slot)
        if table[row + U(KEY)] == ZERO:
            return ~np.int64(slot)
        slot = (slot + ONE) & last_slot


@called
def hash_of_rest(state: Int64, place: int, length: int) -> np.uint64:
    """A hash of bytes, all of them."""
    multiplier = U(state[MULTIPLIER])
    mixed = ZERO
    for done in range(0, length, 8):
        part = low_bytes(word(at(state, place + done)), min(8, length - done))
        mixed = (mixed ^ mixed >> U(32) ^ part) * multiplier
    return mixed


@called
def is_spelled(state: Int64, place: int, slot: int, length: int) -> bool:
    """Whether a name of more than 16 bytes is at a place."""
    start = int64s_at(state[OFFSETS], state[OFFSETS + 1])[slot]
    return same_bytes(state, place, state[SPELLED] + start, length)


@inlined
def ask(
    state: Int64, status: int, place: int, length: int, kind: int, slot: int, scope: int
) -> int:
    """Leave a question to the caller."""
    state[ASKED_AT] = place
    state[ASKED_SCOPE] = scope
    state[ASKED_LENGTH] = length
    state[ASKED_KIND] = kind
    state[ASKED_SLOT] = slot
    return -status


# -- values ----------------------------------------------------------------------------------------


@called
def transfer(state: Int64, start: int, end: int, target: int) -> None:
    """Copy the bytes of a document to an address."""
    middle = min(max(start, state[SWITCH]), end)
    if start < middle:
        copy(target, state[BODY] + start, middle - start)
    if middle < end:
        copy(target + middle - start, state[TAIL] + middle, end - middle)


@called
def append(state: Int64, start: int, end: int, array: int, used: int) -> int:
    """Append bytes of a document to an array, each line end as a newline.

    Args:
        array: its place in the state.
        used: how many of its bytes are.

    Returns:
        How many bytes are then used, or -1 if they may not fit.
    """
    if used + end - start > state[array + 1]:
        return -1
    place = start
    while place < end:
        mask = returns(at(state, place))
        if end - place < BLOCK:
            mask &= (ONE << U(end - place)) - ONE
        if mask:
            return append_lines(state, start, end, array, used)
        place += BLOCK
    transfer(state, start, end, state[array] + used)
    return used + end - start


@called
def append_lines(state: Int64, start: int, end: int, array: int, used: int) -> int:
    """``append``, byte by byte."""
    values = bytes_at(state[array], state[array + 1])
    place = start
    while place < end:
        character = byte(at(state, place))
        if character == RETURN:
            character = NEWLINE
            if byte(at(state, place + 1)) == NEWLINE:  # behind a value there always is a byte
                place += 1
        values[used] = character
        used += 1
        place += 1
    return used


@called
def append_character(state: Int64, code: int, array: int, used: int) -> int:
    """Append a character in UTF-8; there is room for 4 bytes. Returns how many are then used."""
    values = bytes_at(state[array], state[array + 1])
    if code < 0x80:
        values[used] = code
        return used + 1
    if code < 0x800:
        values[used] = 0xC0 | code >> 6
        values[used + 1] = 0x80 | code & 0x3F
        return used + 2
    if code < 0x10000:
        values[used] = 0xE0 | code >> 12
        values[used + 1] = 0x80 | code >> 6 & 0x3F
        values[used + 2] = 0x80 | code & 0x3F
        return used + 3
    values[used] = 0xF0 | code >> 18
    values[used + 1] = 0x80 | code >> 12 & 0x3F
    values[used + 2] = 0x80 | code >> 6 & 0x3F
    values[used + 3] = 0x80 | code & 0x3F
    return used + 4


SKIP = -1
"""The code of a reference that stands for nothing."""


@called
def numeric_reference(state: Int64, place: int) -> tuple[int, int]:
    """Read a character reference from behind its ``#`` on: the code, and the place behind it."""
    base = 10
    if byte(at(state, place)) == ord("x"):
        base = 16
        place += 1
    code = 0
    start = place
    while True:
        character = byte(at(state, place))
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
    if character != SEMICOLON or place == start or is_control or is_other:
        return 0, -DECLINE
    return code, place + 1


@called
def reference(state: Int64, place: int) -> tuple[int, int]:
    """Read the reference at a place: its code or ``SKIP``, and the place behind it."""
    start = place + 1
    address = at(state, start)
    if byte(address) == HASH:
        return numeric_reference(state, start + 1)
    text = word(address)
    if text & U(0xFFFFFF) == U(0x3B746C):  # lt;
        return LT, start + 3
    if text & U(0xFFFFFF) == U(0x3B7467):  # gt;
        return GT, start + 3
    if text & U(0xFFFFFFFF) == U(0x3B706D61):  # amp;
        return AMP, start + 4
    if text & U(0xFFFFFFFFFF) == U(0x3B736F7061):  # apos;
        return APOSTROPHE, start + 5
    if text & U(0xFFFFFFFFFF) == U(0x3B746F7571):  # quot;
        return QUOTE, start + 5
    if not state[IS_EXTERNAL]:
        return 0, -DECLINE
    here = start
    while True:  # an ASCII name; others are left to libexpat
        character = byte(at(state, here))
        letter = character | 0x20
        is_first = ord("a") <= letter <= ord("z") or character == ord("_")
        is_later = ord("0") <= character <= ord("9") or character in (ord("-"), ord("."))
        if not is_first and (here == start or not is_later):
            break
        here += 1
    if character != SEMICOLON or here == start:
        return 0, -DECLINE
    return SKIP, here + 1


# -- attributes ------------------------------------------------------------------------------------


@called
def slow_value(state: Int64, place: int, quote: int, used: int, wanted: bool) -> tuple[int, int]:
    """Read a value that is not just copied: normalise whitespace, and resolve references.

    Args:
        place: of the first byte behind the opening quote.
        used: bytes of the attributes' values.

    Returns:
        The place behind the closing quote, and how many bytes are then used.
    """
    values = bytes_at(state[ATTRIBUTE_VALUES], state[ATTRIBUTE_VALUES + 1])
    while True:
        character = byte(at(state, place))
        if character == quote:
            return place + 1, used
        if wanted and used + 4 > len(values):
            return -FULL_VALUES, used
        if character == AMP:
            code, place = reference(state, place)
            if place < 0:
                return place, used
            if wanted and code != SKIP:
                used = append_character(state, code, ATTRIBUTE_VALUES, used)
            continue
        if character == LT or (character < SPACE and not is_space(character)):
            return -DECLINE, used
        if character < SPACE:
            if character == RETURN and byte(at(state, place + 1)) == NEWLINE:
                place += 1
            character = SPACE
        if wanted:
            values[used] = character
            used += 1
        place += 1


@inlined
def value_end(state: Int64, place: int, quote: int) -> int:
    """The first place from here on with what a value cannot be copied over, its quote for one."""
    while True:
        mask = value_ends(at(state, place), quote)
        if mask:
            return place + first(mask)
        place += BLOCK


@called
def value(state: Int64, place: int, used: int, wanted: bool) -> tuple[int, int]:
    """Read a value from its opening quote on.

    Returns:
        The place behind the closing quote, or a status; and how many bytes of the values are used.
    """
    quote = byte(at(state, place))
    start = place + 1
    end = value_end(state, start, quote)
    if byte(at(state, end)) != quote:
        return slow_value(state, start, quote, used, wanted)
    if wanted:
        if used + end - start > state[ATTRIBUTE_VALUES + 1]:
            return -FULL_VALUES, used
        transfer(state, start, end, state[ATTRIBUTE_VALUES] + used)
        used += end - start
    return end + 1, used


@inlined
def value_from(state: Int64, place: int) -> int:
    """Behind an attribute's name, the place of the opening quote, or a status."""
    place = skip_space(state, place)
    if byte(at(state, place)) != EQUALS:
        return -DECLINE
    place = skip_space(state, place + 1)
    quote = byte(at(state, place))
    return place if quote in (QUOTE, APOSTROPHE) else -DECLINE


DECLARED = 100
"""What ``attributes`` returns, negative, when it meets a namespace declaration."""


@called
def attributes(
    state: Int64, place: int, scope: int, event: int, declared: bool
) -> tuple[int, bool]:
    """Read the rest of a start tag, from behind its name on.

    Args:
        event: the number of the start event, or -1 if it is not recorded.
        declared: the scope is that of the tag's own declarations.

    Returns:
        The place behind the tag, or the negative of a status; whether the element is empty.
    """
    table = words_at(state[TABLE], state[TABLE + 1])
    multiplier = U(state[MULTIPLIER])
    stamps = int64s_at(state[STAMPS], state[STAMPS + 1])
    if state[LEFT_TAG] == place:  # go on where a question was asked
        place = state[LEFT_AT]
    else:
        state[LEFT_TAG] = place
        state[LEFT_COUNT] = state[ATTRIBUTES]
        state[LEFT_BYTES] = state[VALUE_BYTES]
        state[LEFT_ALLOWED] = state[ATTRIBUTES_MAX]
        state[SERIAL] += 1
    count, used, allowed = state[LEFT_COUNT], state[LEFT_BYTES], state[LEFT_ALLOWED]
    while True:
        state[LEFT_AT], state[LEFT_COUNT], state[LEFT_BYTES] = place, count, used
        state[LEFT_ALLOWED] = allowed
        behind = skip_space(state, place)
        address = at(state, behind)
        character = byte(address)
        if character == GT or (character == SLASH and byte(address + 1) == GT):
            state[ATTRIBUTES] = count
            state[VALUE_BYTES] = used
            state[LEFT_TAG] = -1
            return behind + 1 + (character == SLASH), character == SLASH
        length = name_length(state, behind)
        if behind == place or length == 0 or length > NAME_MAX:
            return -DECLINE, False
        opening = value_from(state, behind + length)
        if opening < 0:
            return -DECLINE, False
        if declares(state, behind, length):
            if not declared:
                state[LEFT_TAG] = -1
                return -DECLARED, False
            place, _ = value(state, opening, 0, False)
            if place < 0:
                return place, False
            continue
        slot = find_name(state, table, multiplier, address, behind, length, ATTRIBUTE, scope)
        if slot < 0:
            return ask(state, NEW_NAME, behind, length, ATTRIBUTE, ~slot, scope), False
        answer = table[slot * NAME_COLUMNS + ANSWER]
        id = np.int64(answer & U(0xFFFFFFFF))
        if allowed == 0 or stamps[id] == state[SERIAL]:  # too many, or twice
            return -DECLINE, False
        begin = used
        wanted = event >= 0 and np.int64(answer >> U(32)) & READ_VALUE != 0
        place, used = value(state, opening, used, wanted)
        if place < 0:
            return place, False
        if wanted:
            if count == state[ATTRIBUTE_EVENT + 1]:
                return -FULL_ATTRIBUTES, False
            record_attribute(state, count, event, id, slot, begin, used)
            count += 1
        allowed -= 1
        stamps[id] = state[SERIAL]


@called
def declares(state: Int64, place: int, length: int) -> bool:
    """Whether the attribute name at a place is ``xmlns``, or begins with ``xmlns:``."""
    address = at(state, place)
    is_xmlns = word(address) & U(0xFFFFFFFFFF) == U(0x736E6C6D78)
    return is_xmlns and (length == 5 or (length > 6 and byte(address + 5) == COLON))


@inlined
def record_attribute(
    state: Int64, count: int, event: int, id: int, slot: int, begin: int, end: int
) -> None:
    """Record an attribute as number ``count``."""
    int64s_at(state[ATTRIBUTE_EVENT], state[ATTRIBUTE_EVENT + 1])[count] = event
    int32s_at(state[ATTRIBUTE_NAME], state[ATTRIBUTE_NAME + 1])[count] = id
    int64s_at(state[VALUE_START], state[VALUE_START + 1])[count] = begin
    int64s_at(state[VALUE_END], state[VALUE_END + 1])[count] = end
    if state[WITH_PREFIXES]:
        prefixes = int32s_at(state[NAME_PREFIXES], state[NAME_PREFIXES + 1])
        into = int32s_at(state[ATTRIBUTE_PREFIXES], state[ATTRIBUTE_PREFIXES + 1])
        into[count] = prefixes[slot]


@called
def declare(state: Int64, place: int, scope: int) -> int:
    """The scope that the namespace declarations of a start tag make.

    Args:
        place: behind the name of the tag.
        scope: that the tag is in.

    Returns:
        The scope, or the negative of a status.
    """
    declarations = bytes_at(state[DECLARATIONS], state[DECLARATIONS + 1])
    used = 0
    while True:
        place = skip_space(state, place)
        length = name_length(state, place)
        if length == 0:
            return find_scope(state, used, scope)
        opening = value_from(state, place + length)
        if opening < 0 or length > NAME_MAX:
            return -DECLINE
        quote = byte(at(state, opening))
        closing = search(state, opening + 1, quote)
        if byte(at(state, closing)) != quote:
            return -DECLINE
        if declares(state, place, length):
            size = closing + 1 - place
            if used + size + 1 > len(declarations):
                return -DECLINE
            transfer(state, place, closing + 1, state[DECLARATIONS] + used)
            used += size
            declarations[used] = SPACE
            used += 1
        place = closing + 1


@called
def find_scope(state: Int64, used: int, scope: int) -> int:
    """The scope that declarations make inside of a scope, or the negative of ``NEW_SCOPE``."""
    declarations = bytes_at(state[DECLARATIONS], state[DECLARATIONS + 1])
    spelled = bytes_at(state[SPELLED], state[SPELLED + 1])
    scopes = int64s_at(state[SCOPES], state[SCOPES + 1])
    multiplier = U(state[MULTIPLIER])
    mixed = U(scope) * multiplier
    for i in range(used):
        mixed = (mixed ^ mixed >> U(32) ^ U(declarations[i])) * multiplier
    size = len(scopes) // SCOPE_COLUMNS
    slot = np.int64((mixed ^ mixed >> U(32)) & U(size - 1))
    while True:
        row = slot * SCOPE_COLUMNS
        if scopes[row + SCOPE] == 0:
            return ask(state, NEW_SCOPE, 0, used, 0, slot, scope)
        start = scopes[row + SPELLED_FROM]
        if scopes[row + PARENT] == scope and scopes[row + SPELLED_TO] - start == used:
            same = 0
            while same < used and spelled[start + same] == declarations[same]:
                same += 1
            if same == used:
                return scopes[row + SCOPE]
        slot = (slot + 1) & (size - 1)


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
    table = words_at(state[TABLE], state[TABLE + 1])
    multiplier = U(state[MULTIPLIER])
    slot = find_name(state, table, multiplier, at(state, place), place, length, ELEMENT, scope)
    if slot < 0:  # the tag is read once more when that is known
        state[ATTRIBUTES], state[VALUE_BYTES] = count, used
        return ask(state, NEW_NAME, place, length, ELEMENT, ~slot, scope), 0, False, 0
    return behind, slot, empty, scope


# -- markup ----------------------------------------------------------------------------------------


@inlined
def end_text(state: Int64, event: int) -> None:
    """End the text node that is being read, if any; there is room for it."""
    begin, end = state[TEXT_FROM], state[TEXT_BYTES]
    if begin == end:
        return
    count = state[TEXTS]
    int64s_at(state[TEXT_EVENT], state[TEXT_EVENT + 1])[count] = event
    int64s_at(state[TEXT_START], state[TEXT_START + 1])[count] = begin
    int64s_at(state[TEXT_END], state[TEXT_END + 1])[count] = end
    state[TEXTS] = count + 1
    state[TEXT_FROM] = end


@inlined
def add_text(state: Int64, start: int, end: int) -> bool:
    """Add bytes to the text node that is being read; False if there is no room for them."""
    used = append(state, start, end, TEXT_VALUES, state[TEXT_BYTES])
    if used < 0:
        return False
    state[TEXT_BYTES] = used
    return True


@called
def before_markup(state: Int64, start: int, place: int, event: int) -> int:
    """Settle the text between two places, the second that of a ``<``: 0, or a negative status.

    Called only if the text is to be recorded, or outside the root element.
    """
    second = byte(at(state, place + 1))
    if state[TEXT_DEPTH] >= 0:
        if state[TEXTS] == state[TEXT_EVENT + 1]:
            return -FULL_TEXTS
        if start < place and not add_text(state, start, place):
            return -FULL_TEXT_VALUES
        is_cdata = second == BANG and byte(at(state, place + 2)) == BRACKET_OPEN
        if not is_cdata:
            end_text(state, event)
        return 0
    if skip_space(state, start) < place:
        return -DECLINE
    if second in (BANG, QUESTION):
        return 0
    return -DECLINE if state[ROOT] != NO_ROOT or second == SLASH else 0


@called
def record_misc(state: Int64, start: int, end: int, name: int, event: int) -> int:
    """Record a comment or processing instruction: 0, or a negative status."""
    if not (state[WITH_MISC] and state[IS_EMITTING]):
        return 0
    count = state[MISC]
    if count == state[MISC_EVENT + 1]:
        return -FULL_MISC
    begin = state[MISC_BYTES]
    used = append(state, start, end, MISC_VALUES, begin)
    if used < 0:
        return -FULL_MISC_VALUES
    int64s_at(state[MISC_EVENT], state[MISC_EVENT + 1])[count] = event
    int64s_at(state[MISC_TEXT], state[MISC_TEXT + 1])[count] = state[TEXTS]
    int32s_at(state[MISC_NAME], state[MISC_NAME + 1])[count] = name
    int64s_at(state[MISC_START], state[MISC_START + 1])[count] = begin
    int64s_at(state[MISC_END], state[MISC_END + 1])[count] = used
    state[MISC] = count + 1
    state[MISC_BYTES] = used
    return 0


@called
def comment(state: Int64, place: int, event: int) -> int:
    """Read a comment from its ``<`` on: the place behind it, or a negative status."""
    start = place + 4
    here = start
    while True:
        here = search(state, here, DASH)
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
    length = name_length(state, target)
    here = target + length
    if length > 0 and byte(at(state, here)) == GT and byte(at(state, here - 1)) == QUESTION:
        length -= 1
        here -= 1
    elif not is_space(byte(at(state, here))):
        return -DECLINE
    if length == 0 or length > NAME_MAX:
        return -DECLINE
    table = words_at(state[TABLE], state[TABLE + 1])
    multiplier = U(state[MULTIPLIER])
    slot = find_name(state, table, multiplier, at(state, target), target, length, TARGET, 0)
    if slot < 0:
        return ask(state, NEW_NAME, target, length, TARGET, ~slot, 0)
    start = skip_space(state, here)
    here = start
    while True:
        here = search(state, here, QUESTION)
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
def cdata(state: Int64, place: int) -> int:
    """Read a CDATA section from its ``<`` on: the place behind it, or a negative status."""
    start = place + 9
    here = start
    while True:
        here = search(state, here, BRACKET)
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


@inlined
def is_public_character(character: int) -> bool:
    """Whether a character may be in a public identifier."""
    letter = character | 0x20
    if ord("a") <= letter <= ord("z") or ord("'") <= character <= ord(";"):
        return True  # letters, digits, '()*+,-./:;
    return character in (SPACE, RETURN, NEWLINE, *PUBLIC)


@called
def text_reference(state: Int64, start: int, place: int, event: int) -> int:
    """Settle the text up to a reference and the reference: the place behind it, or a status."""
    if state[ROOT] != ROOT_IS_OPEN:
        return -DECLINE
    code, behind = reference(state, place)
    if behind < 0:
        return behind
    if state[TEXT_DEPTH] >= 0:
        if state[TEXT_BYTES] + place - start + 4 > state[TEXT_VALUES + 1]:
            return -FULL_TEXT_VALUES
        if code == SKIP and state[TEXTS] == state[TEXT_EVENT + 1]:
            return -FULL_TEXTS
        add_text(state, start, place)
        if code == SKIP:
            end_text(state, event)
        else:
            state[TEXT_BYTES] = append_character(state, code, TEXT_VALUES, state[TEXT_BYTES])
    if code == SKIP:
        if state[SKIPPED] == 0:
            state[FIRST_SKIPPED] = place
        state[SKIPPED] += 1
    return behind


# -- documents and records -------------------------------------------------------------------------


@kernel
def begin_document(state: Int64, number: int) -> None:
    """Set out to read document ``number`` of the text."""
    state[IS_STANDALONE] = bytes_at(state[STANDALONE], state[STANDALONE + 1])[number]
    begin_stream(state, int64s_at(state[STARTS], state[STARTS + 1])[number])


@kernel
def begin_stream(state: Int64, place: int) -> None:
    """Set out to read what begins at a place."""
    state[POSITION] = place
    state[LEFT_TAG] = -1
    state[DEPTH] = 0
    state[CURRENT_SCOPE] = 0
    state[ROOT] = NO_ROOT
    state[IS_EMITTING] = state[IN_RECORDS] == 0
    state[FLOOR] = 0
    state[TEXT_DEPTH] = -1
    state[IS_EXTERNAL] = 0
    state[HAS_DOCTYPE] = 0
    state[SKIPPED] = 0
    mark(state)


@called
def mark(state: Int64) -> None:
    """Remember what is recorded, for ``forget``."""
    for i in range(MISC_BYTES_MARK - EVENTS_MARK + 1):
        state[EVENTS_MARK + i] = state[EVENTS + i]
    state[TEXT_FROM] = state[TEXT_BYTES]


@called
def forget(state: Int64) -> None:
    """Forget what was recorded since the last ``mark``."""
    for i in range(MISC_BYTES_MARK - EVENTS_MARK + 1):
        state[EVENTS + i] = state[EVENTS_MARK + i]
    state[TEXT_FROM] = state[TEXT_BYTES]


@called
def end_document(state: Int64) -> None:
    """What was recorded since the last mark is a document."""
    number = state[DOCUMENTS]
    int64s_at(state[DOCUMENT_STARTS], state[DOCUMENT_STARTS + 1])[number + 1] = state[EVENTS]
    int64s_at(state[MISC_STARTS], state[MISC_STARTS + 1])[number + 1] = state[MISC]
    state[DOCUMENTS] = number + 1


@called
def find_context(state: Int64, depth: int, scope: int) -> int:
    """The number of the context that the open elements are, or -1; mostly it is the last one."""
    contexts = int64s_at(state[CONTEXT_ROWS], state[CONTEXT_ROWS + 1])
    stack = int64s_at(state[STACK], state[STACK + 1])
    columns = len(contexts) // CONTEXTS_MAX
    count = state[CONTEXTS]
    number = state[CONTEXT]
    for _ in range(count):
        row = number * columns
        if contexts[row + CONTEXT_DEPTH] == depth and contexts[row + CONTEXT_SCOPE] == scope:
            same = 0
            while same < depth and contexts[row + CONTEXT_STACK + same] == stack[1 + same]:
                same += 1
            if same == depth:
                state[CONTEXT] = number
                return number
        number = number + 1 if number + 1 < count else 0
    return -1


@called
def begin_record(state: Int64, place: int, event: int, depth: int, scope: int) -> int:
    """A record begins at the start tag at a place: -1, or that its context is new."""
    context = find_context(state, depth, scope)
    if context < 0:
        return NEW_CONTEXT
    state[EVENTS] = event
    mark(state)
    state[SKIPPED_MARK] = state[SKIPPED]
    state[IS_EMITTING] = 1
    state[FLOOR] = depth
    state[RECORD_FROM] = place
    int32s_at(state[RECORD_CONTEXTS], state[RECORD_CONTEXTS + 1])[state[DOCUMENTS]] = context
    return -1


@called
def end_record(state: Int64, place: int, event: int) -> int:
    """The record ends before a place: -1, or that there are enough of them."""
    number = state[DOCUMENTS]
    int64s_at(state[RECORD_STARTS], state[RECORD_STARTS + 1])[number] = state[RECORD_FROM]
    int64s_at(state[RECORD_ENDS], state[RECORD_ENDS + 1])[number] = place
    state[EVENTS] = event
    end_document(state)
    state[IS_EMITTING] = 0
    state[FLOOR] = 0
    is_enough = number + 1 >= state[RECORDS_MAX] or event >= state[EVENTS_MAX]
    return ENOUGH if is_enough else -1


@called
def is_record(state: Int64, place: int, length: int) -> bool:
    """Whether the name at a place is that of records."""
    size = state[RECORD + 1] - 8
    return length == size and same_bytes(state, place, state[RECORD], length)


@called
def at_end(state: Int64, start: int, end: int, depth: int) -> int:
    """What to do at the end of the bytes; the text from ``start`` on is not settled."""
    if not state[IS_FINAL]:
        return MORE
    is_whole = depth == 0 and state[ROOT] == ROOT_IS_CLOSED and skip_space(state, start) >= end
    return DONE if is_whole else DECLINE


@called
def retreat(state: Int64, end: int, status: int) -> None:
    """Go back to where reading can begin again: the start of the record, or of the text.

    Long text that nobody reads is not kept: only its last bytes, which may be half a character, or
    the begin of ``]]>``.
    """
    state[STOPPED_AT] = state[POSITION]
    state[LEFT_TAG] = -1
    if state[IN_RECORDS] and state[IS_EMITTING]:
        forget(state)
        state[SKIPPED] = state[SKIPPED_MARK]
        state[POSITION] = state[RECORD_FROM]
        state[DEPTH] = state[FLOOR]
        contexts = int64s_at(state[CONTEXT_ROWS], state[CONTEXT_ROWS + 1])
        row = state[CONTEXT] * (len(contexts) // CONTEXTS_MAX)
        state[CURRENT_SCOPE] = contexts[row + CONTEXT_SCOPE]
        state[FLOOR] = 0
        state[IS_EMITTING] = 0
        state[TEXT_DEPTH] = -1
        state[ROOT] = ROOT_IS_OPEN if state[DEPTH] else NO_ROOT
    elif status == MORE and state[DEPTH] > 0 and state[TEXT_DEPTH] < 0:
        place = max(state[POSITION], end - 4)
        while place > state[POSITION] and byte(at(state, place)) & 0xC0 == 0x80:
            place -= 1
        state[POSITION] = place


@kernel
def pass_over(data: Bytes, start: int, end: int, place: Int64) -> None:
    """Count lines and columns on from a place, over bytes with ``PADDING`` behind them.

    Args:
        place: int64[3]; line, column, and whether the last byte was a carriage return, so that a
            newline begins no further line.
    """
    address = np.int64(data.ctypes.data)
    line, column, carry = place[0], place[1], U(place[2])
    for block in range(start, end, BLOCK):
        size = min(BLOCK, end - block)
        valid = ALL >> U(BLOCK - size)
        newlines, carriage_returns, tails = line_ends(address + block)
        newlines &= valid
        carriage_returns &= valid
        characters = ~tails & valid
        line += bits(carriage_returns | newlines & ~(carriage_returns << ONE | carry))
        ends = newlines | carriage_returns
        if ends:
            column = 1 + bits(characters >> U(last(ends)) >> ONE)
        else:
            column += bits(characters)
        carry = carriage_returns >> U(size - 1)
    place[0], place[1], place[2] = line, column, np.int64(carry)


@inlined
def plain_attributes(
    state: Int64,
    table: Words,
    multiplier: np.uint64,
    stamps: Int64,
    place: int,
    scope: int,
    recording: bool,
) -> tuple[int, bool]:
    """Read the rest of a start tag if there is nothing special about it.

    Args:
        place: of the space behind the tag's name.

    Returns:
        The place behind the tag, or -1 where ``start_tag`` has to read it; whether the element is
        empty.
    """
    state[SERIAL] += 1
    serial = state[SERIAL]
    for _ in range(min(PLAIN_ATTRIBUTES_MAX, state[ATTRIBUTES_MAX])):
        address = at(state, place)
        equals, quotes, apostrophes, special = attribute(address + 1)
        if equals == ZERO:
            return -1, False
        length = first(equals)
        opening = length + 1
        if byte(address + 1 + opening) == APOSTROPHE:
            quotes = apostrophes
        if opening >= BLOCK:
            return -1, False
        behind = quotes & (ALL << U(opening))
        if length == 0 or behind & (ONE << U(opening)) == ZERO:
            return -1, False
        behind &= behind - ONE
        if special & (behind ^ (behind - ONE)):  # up to the closing quote, or all
            return -1, False
        closing = first(behind)
        if closing == BLOCK:
            quote = byte(address + 1 + opening)
            end = value_end(state, place + 1 + BLOCK, quote)
            closing = end - place - 1
            if byte(at(state, end)) != quote:
                return -1, False
        slot = find_name(state, table, multiplier, address + 1, place + 1, length, ATTRIBUTE, scope)
        if slot < 0:
            return -1, False
        answer = table[U(slot) * U(NAME_COLUMNS) + U(ANSWER)]
        flags = answer >> U(32)
        if flags & U(READ_VALUE) and recording:
            return -1, False
        id = answer & U(0xFFFFFFFF)
        if stamps[id] == serial:
            return -1, False
        stamps[id] = serial
        place += closing + 2
        after = word(address + closing + 2 if closing < BLOCK else at(state, place))
        if after & U(0xFF) == U(GT):
            return place + 1, False
        if after & U(0xFFFF) == U(EMPTY_END):
            return place + 2, True
        if after & U(0xFF) != U(SPACE):
            return -1, False
    return -1, False


@called
def scan_document(state: Int64, end: int) -> int:
    """Read one document from where the state is: why it stops.

    This is the loop in which time goes, so it is one function: what changes with each tag is in
    local variables, and everything that is seldom is elsewhere.
    """
    body, tail, switch = state[BODY], state[TAIL], state[SWITCH]
    table = words_at(state[TABLE], state[TABLE + 1])
    multiplier = U(state[MULTIPLIER])
    stamps = int64s_at(state[STAMPS], state[STAMPS + 1])
    stack = int64s_at(state[STACK], state[STACK + 1])
    tags = int32s_at(state[TAGS], state[TAGS + 1])
    with_prefixes = state[WITH_PREFIXES] != 0
    depth_max = state[DEPTH_MAX]
    room = len(tags) - 2
    place = state[POSITION]
    start = place  # of the text that is not settled
    event = state[EVENTS]
    depth = state[DEPTH]
    scope = state[CURRENT_SCOPE]
    emitting = state[IS_EMITTING]
    floor = state[FLOOR]
    watching = depth == 0 or state[TEXT_DEPTH] >= 0
    seeking = state[IN_RECORDS] != 0 and not emitting
    index = int64s_at(state[INDEX], state[INDEX + 1])
    state[INDEXED] = place
    state[CARRY] = 0
    state[IS_FAULTY] = 0
    index[0] = BEYOND
    next = 0
    status = DECLINE if state[IS_REFUSED] else -1
    state[IS_REFUSED] = 0
    while status < 0:
        here = index[U(next)]
        next += 1
        if here < place:  # inside of what was read
            continue
        if here == BEYOND:
            if state[IS_FAULTY] or state[INDEXED] > end:
                status = DECLINE
                break
            index_window(state, end)
            next = 0
            continue
        place = here
        address = (body if place < switch else tail) + place
        text = word(address)
        if text & U(0xFF) != U(LT):
            if text & U(0xFF) == U(AMP):
                behind = text_reference(state, start, place, event - 1)
                if behind < 0:
                    status = -behind
                    break
                place = start = behind
            elif place < end:  # the second of two brackets
                if text & U(0xFF00) == U(GT << 8):
                    status = DECLINE
                place += 1
            else:
                status = at_end(state, start, end, depth)
            continue
        if event > room:
            status = FULL_EVENTS
            break
        if watching:
            behind = before_markup(state, start, place, event - 1)
            if behind < 0:
                status = -behind
                break
        start = place
        second = np.int64(text >> U(8) & U(0xFF))
        closes = False
        if second == SLASH:
            row = U(stack[U(depth)] & 0xFFFFFFFF) * U(NAME_COLUMNS)
            length = np.int64(table[row + U(KEY)] & U(NAME_MAX))
            behind = place + 2 + length
            other = (word(address + 2) ^ table[row]) & HEAD_MASKS[U(min(length, 16))]
            other |= (word(address + 10) ^ table[row + U(NECK)]) & NECK_MASKS[U(min(length, 16))]
            if other or (
                length > 16 and not is_spelled(state, place + 2, stack[depth] & 0xFFFFFFFF, length)
            ):
                status = DECLINE
                break
            near = address + 2 + length if length <= BLOCK else at(state, behind)
            if byte(near) != GT:
                behind = skip_space(state, behind)
                if byte(at(state, behind)) != GT:
                    status = DECLINE
                    break
            place = behind + 1
            closes = True
        elif second in (BANG, QUESTION):
            behind = markup(state, place, event - 1)
            if behind < 0:
                status = -behind
                break
            place = behind
        else:
            mask = near_name_ends(address + 1)
            length = np.int64(first(mask) if mask else name_length(state, place + 1))
            if seeking and is_record(state, place + 1, length):
                status = begin_record(state, place, event, depth, scope)
                if status >= 0:
                    break
                emitting = 1
                floor = depth
                seeking = False
            if depth - floor >= depth_max or length > NAME_MAX:
                status = DECLINE
                break
            outside = scope
            slot = find_name(
                state, table, multiplier, address + 1, place + 1, length, ELEMENT, scope
            )
            behind = -1
            if slot >= 0:
                near = address + 1 + length if length <= BLOCK else at(state, place + 1 + length)
                after = word(near)
                if after & U(0xFF) == U(GT):
                    behind = place + 2 + length
                elif after & U(0xFF) == U(SPACE) and state[LEFT_TAG] < 0:
                    behind, closes = plain_attributes(
                        state, table, multiplier, stamps, place + 1 + length, scope, emitting != 0
                    )
                elif after & U(0xFFFF) == U(EMPTY_END):
                    behind = place + 3 + length
                    closes = True
            if behind < 0:
                behind, slot, closes, scope = start_tag(
                    state, place + 1, length, scope, event if emitting else -1
                )
                if behind < 0:
                    status = -behind
                    scope = outside
                    break
            answer = table[U(slot) * U(NAME_COLUMNS) + U(ANSWER)]
            tags[U(event)] = np.int32(answer & U(0xFFFFFFFF))
            if with_prefixes:
                record_prefix(state, event, slot)
            event += emitting
            depth += 1
            stack[U(depth)] = slot | outside << 32
            if watching or depth == 1 or (answer >> U(32) & U(READ_TEXT) and emitting):
                watching = open_element(state, depth, answer >> U(32) & U(READ_TEXT) and emitting)
            place = behind
        if closes:
            tags[U(event)] = -1
            if with_prefixes:
                record_prefix(state, event, -1)
            event += emitting
            scope = stack[U(depth)] >> 32
            depth -= 1
            if watching or depth == floor:
                watching = close_element(state, depth)
                if depth == floor and emitting and state[IN_RECORDS]:
                    status = end_record(state, place, event)
                    emitting = 0
                    floor = 0
                    seeking = True
        start = place
    state[POSITION] = start
    state[EVENTS] = event
    state[DEPTH] = depth
    state[CURRENT_SCOPE] = scope
    if status == ENOUGH and not is_sound(state, start, end):
        status = DECLINE
    if status in (MORE, DECLINE):
        retreat(state, end, status)
    return status


@called
def is_sound(state: Int64, place: int, end: int) -> bool:
    """Whether all before a place may be in a document; a tag may be read before that is known."""
    while state[INDEXED] < place and not state[IS_FAULTY]:
        index_window(state, end)
    return not state[IS_FAULTY] or place <= state[INDEXED]


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


@called
def record_prefix(state: Int64, event: int, slot: int) -> None:
    """Record the prefix of the name in a slot, or none for -1."""
    into = int32s_at(state[PREFIXES], state[PREFIXES + 1])
    prefixes = int32s_at(state[NAME_PREFIXES], state[NAME_PREFIXES + 1])
    into[event] = -1 if slot < 0 else prefixes[slot]


@kernel
def scan(state: Int64) -> int:
    """Read documents from where the state is: why it stops. All arrays were noted by ``bind``."""
    ends = int64s_at(state[ENDS], state[ENDS + 1])
    while state[DOCUMENT] < state[DOCUMENTS_MAX]:
        number = state[DOCUMENT] - state[FIRST_DOCUMENT]
        status = scan_document(state, ends[number])
        if state[IN_RECORDS] or status not in (DONE, DECLINE):
            return status
        if status == DECLINE:
            forget(state)
            state[SKIPPED] = 0
        note_outcome(state, number, status == DECLINE)
        end_document(state)
        state[DOCUMENT] += 1
        if state[DOCUMENT] < state[DOCUMENTS_MAX]:
            begin_document(state, number + 1)
    return DONE


@inlined
def note_outcome(state: Int64, number: int, declined: bool) -> None:
    """Note what became of document ``number`` of the text."""
    document = state[DOCUMENT]
    origins = int64s_at(state[ORIGINS], state[ORIGINS + 1])
    bytes_at(state[DECLINED], state[DECLINED + 1])[document] = declined
    int64s_at(state[SKIPPED_COUNTS], state[SKIPPED_COUNTS + 1])[document] = state[SKIPPED]
    first_skipped = int64s_at(state[SKIPPED_PLACES], state[SKIPPED_PLACES + 1])
    first_skipped[document] = state[FIRST_SKIPPED] - origins[number]


@inlined
def bind_array(state: Int64, place: int, values: NDArray[np.generic]) -> None:
    """Note where an array is, for the functions that get the state alone."""
    state[place] = np.int64(values.ctypes.data)
    state[place + 1] = len(values)


@kernel
def bind(names: Names, out: Output, stack: Int64, index: Int64, state: Int64) -> None:
    """Note where arrays are: handing them over at each call would take longer than the work.

    Args:
        stack: of the open elements, from 1: the slot of the name, and from bit 32 on the scope that
            the element is in.
        index: of ``INDEX_SIZE``; where structure is.
    """
    state[MULTIPLIER] = np.int64(names.multiplier[0])
    bind_array(state, TABLE, names.table)
    bind_array(state, OFFSETS, names.offsets)
    bind_array(state, NAME_PREFIXES, names.prefixes)
    bind_array(state, SPELLED, names.spelled)
    bind_array(state, SCOPES, names.scopes)
    bind_array(state, STAMPS, names.stamps)
    bind_array(state, DECLARATIONS, names.declarations)
    bind_array(state, RECORD, names.record)
    bind_array(state, STACK, stack)
    bind_array(state, INDEX, index)
    bind_array(state, TAGS, out.tags)
    bind_array(state, PREFIXES, out.prefixes)
    bind_array(state, ATTRIBUTE_EVENT, out.attribute_event)
    bind_array(state, ATTRIBUTE_NAME, out.attribute_name)
    bind_array(state, ATTRIBUTE_PREFIXES, out.attribute_prefixes)
    bind_array(state, VALUE_START, out.value_start)
    bind_array(state, VALUE_END, out.value_end)
    bind_array(state, ATTRIBUTE_VALUES, out.attribute_values)
    bind_array(state, TEXT_EVENT, out.text_event)
    bind_array(state, TEXT_START, out.text_start)
    bind_array(state, TEXT_END, out.text_end)
    bind_array(state, TEXT_VALUES, out.text_values)
    bind_array(state, MISC_EVENT, out.misc_event)
    bind_array(state, MISC_TEXT, out.misc_text)
    bind_array(state, MISC_NAME, out.misc_name)
    bind_array(state, MISC_START, out.misc_start)
    bind_array(state, MISC_END, out.misc_end)
    bind_array(state, MISC_VALUES, out.misc_values)
    bind_array(state, DOCUMENT_STARTS, out.document_starts)
    bind_array(state, MISC_STARTS, out.misc_starts)
    bind_array(state, RECORD_STARTS, out.record_starts)
    bind_array(state, RECORD_ENDS, out.record_ends)
    bind_array(state, RECORD_CONTEXTS, out.record_contexts)
    bind_array(state, CONTEXT_ROWS, out.contexts)
    bind_array(state, DECLINED, out.declined)
    bind_array(state, SKIPPED_COUNTS, out.skipped)
    bind_array(state, SKIPPED_PLACES, out.first_skipped)


@kernel
def bind_text(text: Text, state: Int64) -> None:
    """Note where documents are."""
    state[BODY] = np.int64(text.data.ctypes.data)
    state[TAIL] = np.int64(text.tail.ctypes.data) - text.tail_from
    state[SWITCH] = text.switch
    state[FIRST_DOCUMENT] = text.first
    state[DOCUMENTS_MAX] = text.first + len(text.ends)
    bind_array(state, ORIGINS, text.origins)
    bind_array(state, STARTS, text.starts)
    bind_array(state, ENDS, text.ends)
    bind_array(state, STANDALONE, text.standalone)
